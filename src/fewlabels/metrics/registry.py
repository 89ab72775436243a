"""The one list of metrics: a new one is a function in a family's file and a line there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from fewlabels.errors import UsageError
from fewlabels.metrics.base import Metric
from fewlabels.metrics.calibration import CALIBRATION_METRICS
from fewlabels.metrics.confusion import CONFUSION_METRICS
from fewlabels.metrics.custom import custom
from fewlabels.metrics.proper import PROPER_METRICS
from fewlabels.metrics.ranking import RANKING_METRICS
from fewlabels.wording import unknown

_FAMILIES = (CONFUSION_METRICS, RANKING_METRICS, CALIBRATION_METRICS, PROPER_METRICS)

METRICS: Mapping[str, Metric] = MappingProxyType({m.name: m for f in _FAMILIES for m in f})
"""Every metric by its name."""

ALIASES: Mapping[str, str] = MappingProxyType({"auc": "roc_auc", "auprc": "average_precision"})
"""Other names; a row of the estimates carries the name that was asked for."""


def resolve(
    metrics: str | Metric | Callable[..., Any] | Sequence[str | Metric | Callable[..., Any]],
) -> dict[str, Metric]:
    """Name asked for -> metric, in the order asked.

    Raises
    ------
    UsageError
        If a name is unknown, or none is given.
    """
    asked: list[Any]
    if isinstance(metrics, Iterable) and not isinstance(metrics, str):
        asked = list(metrics)
    else:
        asked = [metrics]
    if not asked:
        raise UsageError("`metrics` is empty; choose from " + ", ".join(METRICS))
    found: dict[str, Metric] = {}
    for item in asked:
        if isinstance(item, str):
            found[item] = _by_name(item)
            continue
        metric = item if isinstance(item, Metric) else custom(item)
        if found.get(metric.name, metric) != metric:
            raise UsageError(
                f"two metrics are named {metric.name!r}; name one with fewlabels.metrics.custom"
            )
        found[metric.name] = metric
    return found


def _by_name(name: str) -> Metric:
    metric = METRICS.get(ALIASES.get(name, name))
    if metric is None:
        raise UsageError(unknown("metric", name, [*METRICS, *ALIASES]))
    return metric
