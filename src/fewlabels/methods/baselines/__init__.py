"""Baselines of the papers, and estimators of one classifier alone.

`plain` holds labels alone, the averaged classifier and pseudo-labels; `bayesian_calibration`, Ji,
Smyth, Steyvers (2020); `autoeval`, PPI++ (Angelopoulos, Duchi, Zrnic 2023); `active_testing`,
Kossen, Farquhar, Gal, Rainforth (2021).
"""
