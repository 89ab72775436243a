"""Comparing classifiers: who is ahead, who cannot be told apart, how many labels would settle it.

Arrays in, numbers out. The room imports `errors` and `kernels` alone. Start with `compare.py`.
Everything is computed from draws of one metric that are paired over the classifiers: in draw d all
of them are judged by the same labels, parameters and row weights, so shared errors cancel in a
difference.
"""
