"""Mixtures of beliefs about several classifiers, weighed by the labels.

Start with `ensembles`, the three methods with their tables of beliefs; then `belief_mixture`, the
model that they share, its formula and its fit; `pooled_index`, the features that the coefficients
multiply; `informants`, what a classifier of any kind says of an item's class. The room imports
`base`, `group_curves`, `per_model` and `votes.data` of methods.
"""
