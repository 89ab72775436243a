"""Baselines of the papers, and estimators of one classifier alone.

Start with `plain`: labels alone, the averaged classifier, the majority vote and pseudo-labels.
`bayesian_calibration` is Ji, Smyth, Steyvers (2020); `autoeval`, PPI++ (Angelopoulos, Duchi, Zrnic
2023); `active_testing`, which asks for labels, Kossen, Farquhar, Gal, Rainforth (2021, 2022). The
room imports `base`, `per_model`, `replicates`, `votes.data` and, for a surrogate, `ensembles` of
methods.
"""
