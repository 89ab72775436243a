"""Score mixtures for one classifier: SPE (Welinder, Welling and Perona, 2013).

Start with `spe`: the method, pairs of families and their weights, draws of what turns scores into
odds, and whether scores and labels look as the densities say. Then `mixture`, the likelihood pi
p_1(s) + (1 - pi) p_0(s) of the scores with its gradient (section 3), and the scores on the unit
interval (section 4); `families`, the densities p_k (section 4); `sampling`, modes and draws of the
parameters. The room imports `base` and `per_model` of methods.

Sections are cited, not numbers of equations. The likelihood of scores and labels is
`ScoreMixture.log_likelihood`; recall and false-positive rate at a threshold are
`ScoreMixture.survival`.
"""
