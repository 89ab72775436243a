"""Error rates from votes alone: BEE, CBEE and HCBEE (Platanios, Dubey and Mitchell, 2016).

In the order of reading: `bee` is the model, its priors, and the seven that differ in what domains
and classifiers share and in which rates; `table`, distinct votes and how often each occurs;
`gibbs`, the sweeps (labels: `_draw_labels`; rates and class shares: `_draw_parameters`);
`seating`, who shares a rate with whom: domains in a Chinese restaurant (CBEE: `seat_domains`),
classifiers in its franchise (HCBEE: `seat_classifiers`); `fitted`, what a sampler leaves behind;
`selection`, the model that predicts held-out votes best.
"""
