"""
A metric of your own
====================

A missed positive costs 5, a false alarm 1. Any function of (y_true, y_proba) is a metric, with
intervals like the others.
"""

from pathlib import Path

import numpy as np

import fewlabels as fl


def cost(y_true: np.ndarray, y_proba: np.ndarray) -> float:
    """Mean cost per item: a missed positive costs 5, a false alarm 1."""
    alarm = y_proba >= 0.5
    return float(np.mean(5 * (y_true & ~alarm) + (1 - y_true) * alarm))


predictions = fl.read_predictions(Path(__file__).with_name("moderation.csv"))
metric = fl.metrics.custom(cost, direction=-1, bounds=(0, 5))
estimates = fl.estimate(predictions, metrics=["accuracy", metric])
print(estimates.probability_best("cost"))

# %%
estimates.plot("cost")

# %%
print(estimates.summary())
