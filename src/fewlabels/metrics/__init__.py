"""Metrics: functions of scores and label weights.

The room imports `errors`, `kernels`, `posterior` and `predictions`. Start with `base.py` (what a
metric and its statistic are), then `confusion.py` as an example; `registry` lists all metrics, and
`plans` computes them for several classifiers at once.
"""

from fewlabels.metrics.base import Metric, custom
from fewlabels.metrics.registry import ALIASES, METRICS, resolve

__all__ = ["ALIASES", "METRICS", "Metric", "custom", "resolve"]
