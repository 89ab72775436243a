"""Arrays in, arrays out: numerical functions that two rooms or more use.

The room imports no other room, only numpy, scipy and numba; arguments are checked by its callers.
`arrays` and `blocks` (work on threads) come first; `weighting` and `ranking` serve the metrics,
`multinomial` and `hmc` the methods, `interval_draws` and `counter_based` everything that draws.
"""
