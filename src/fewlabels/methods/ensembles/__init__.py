"""Ensembles of classifiers by beliefs about them that the labels weigh; the default."""
