"""Mixtures of beliefs about several classifiers, weighed by the labels.

`ensembles` is the three methods with their tables of beliefs; `belief_mixture`, the model that they
share, its formula and its fit; `pooled_index`, the features that coefficients stand before;
`informants`, what a classifier of any kind says of an item's class.
"""
