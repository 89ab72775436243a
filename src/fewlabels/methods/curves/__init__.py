"""One classifier whose score orders the items: curves that only fall or rise.

Start with `monotone_curves`: the method and its sampler, and the curves averaged with densities of
the scores. `ordered_rates` holds the curves, what labels say of them, and their priors. The room
imports `base`, `group_curves`, `per_model` and, for the densities, `spe` of methods.
"""
