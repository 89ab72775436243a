"""Baselines of the papers, and estimators of one classifier alone."""
