"""Error rates from votes alone: BEE, CBEE and HCBEE (Platanios, Dubey and Mitchell, 2016).

Start with `bee`: the model, its priors, and seven variants that differ in what domains and
classifiers share, and in which rates. Then `table`: distinct votes and how often each occurs, what
labels may be, the prior of rates and the logic between labels. `gibbs` has the sweeps (labels:
`_draw_labels`; rates and class shares: `_draw_parameters`); `seating` draws which rates are shared:
domains in a Chinese restaurant (CBEE: `seat_domains`), classifiers in its franchise (HCBEE:
`seat_classifiers`). `variational` is a fit without chains; `fitted` holds a sampler's draws;
`selection` finds the model that predicts held-out votes best. The room imports `base`, `em`,
`replicates` and `votes` of methods.
"""
