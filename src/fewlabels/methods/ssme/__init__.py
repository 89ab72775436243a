"""Mixtures over the scores of several classifiers: SSME (Shanmugam and others, 2025)."""
