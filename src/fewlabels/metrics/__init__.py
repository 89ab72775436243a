"""Metrics: functions of scores and label weights."""

from fewlabels.metrics.base import Metric
from fewlabels.metrics.custom import custom
from fewlabels.metrics.registry import ALIASES, METRICS, resolve

__all__ = ["ALIASES", "METRICS", "Metric", "custom", "resolve"]
