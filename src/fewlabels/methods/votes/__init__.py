"""Label models of votes: the rates of every voter, or how often they agree.

Start with `dawid_skene` (rates by EM); `crowd_svm` weighs voters so that labels win by a margin,
`agreement_rates` asks only how often two-class voters agree. `dependence` finds voters that make
the same mistakes, for `bee.selection`. `data` is what all share, `bee` too: domains, distinct rows
of votes, draws of rates, and why votes do not identify them. Samplers are in `bee`; the plain
majority is a baseline. The room imports `base`, `em` and `replicates` of methods.
"""
