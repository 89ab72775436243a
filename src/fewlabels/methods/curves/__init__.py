"""One classifier whose score orders the items: curves that only fall or rise.

`monotone_curves` is the method and its sampler; `ordered_rates`, the curves, what labels say of
them, and their priors.
"""
