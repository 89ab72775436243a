"""The one list of metrics.

A new one is a function in its family's file and a line in that file's tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from fewlabels.errors import UsageError, unknown
from fewlabels.metrics.base import Metric, custom
from fewlabels.metrics.calibration import CALIBRATION_METRICS, PROPER_METRICS
from fewlabels.metrics.confusion import CONFUSION_METRICS, GRADE_METRICS
from fewlabels.metrics.ranking import RANKING_METRICS
from fewlabels.predictions import Predictions

_FAMILIES = (CONFUSION_METRICS, GRADE_METRICS, RANKING_METRICS, CALIBRATION_METRICS, PROPER_METRICS)

METRICS: Mapping[str, Metric] = MappingProxyType({m.name: m for f in _FAMILIES for m in f})
"""Every metric by its name."""

assert len(METRICS) == sum(map(len, _FAMILIES)), "two metrics have one name"

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "auc": "roc_auc",
        "auprc": "average_precision",
        "ap": "average_precision",
        "acc": "accuracy",
        "sensitivity": "recall",
        "ppv": "precision",
        "error": "error_rate",
        "kappa": "cohen_kappa",
        "quadratic_kappa": "weighted_kappa",
        "mae": "mean_absolute_error",
        "spearmanr": "spearman",
        "ccc": "concordance",
        "mcc": "matthews_corrcoef",
        "logloss": "log_loss",
        "brier_score": "brier",
        "brier_score_loss": "brier",
    }
)
"""Aliases; a row of the estimates has the requested name."""

DEFAULT = "default"
"""As a requested name it stands for those of `defaults`."""

GRADES = "grades"
"""It stands for all metrics of grades."""


def defaults(predictions: Predictions) -> tuple[str, ...]:
    """The metrics of an input unless others are requested, by what it provides.

    Whatever gives a class: accuracy, then calibration and ranking of probabilities, agreement
    beyond chance of hard predictions. Scores: ranking. Votes that no label judges: error rates.
    """
    ranking = ("roc_auc", "average_precision")
    if predictions.gives("probabilities").any():
        return ("accuracy", "ece", *ranking)
    if not predictions.gives("hard").any():
        return ranking
    hard = ("accuracy" if predictions.told.any() else "error_rate", "cohen_kappa")
    return (*hard, *ranking) if predictions.gives("ranking").any() else hard


def check_asked(metrics: Any) -> None:
    """Refuse what `resolve` would, before the defaults are known."""
    resolve(asked_of(metrics))


def asked_of(metrics: Any, predictions: Predictions | None = None) -> list[Any]:
    """The requested metrics, with the defaults of these predictions for None and "default"."""
    names = ("accuracy",) if predictions is None else defaults(predictions)
    if metrics is None:
        return list(names)
    each = [metrics] if isinstance(metrics, str) or not isinstance(metrics, Iterable) else metrics
    several = {DEFAULT: names, GRADES: [metric.name for metric in GRADE_METRICS]}
    out: list[Any] = []
    for item in each:
        out += several.get(item, [item]) if isinstance(item, str) else [item]
    return out


def resolve(
    metrics: str | Metric | Callable[..., Any] | Sequence[str | Metric | Callable[..., Any]],
) -> dict[str, Metric]:
    """Name asked for -> metric, in the order asked; a `UsageError` of unknown names or none."""
    choices: list[Any]
    if isinstance(metrics, Iterable) and not isinstance(metrics, str):
        choices = list(metrics)
    else:
        choices = [metrics]
    if not choices:
        raise UsageError("`metrics` is empty; choose from " + ", ".join(METRICS))
    chosen: dict[str, Metric] = {}
    for item in choices:
        if isinstance(item, str):
            chosen[item] = _by_name(item)
            continue
        metric = item if isinstance(item, Metric) else custom(item)
        if chosen.get(metric.name, metric) != metric:
            raise UsageError(
                f"two metrics are named {metric.name!r}; name one with fewlabels.metrics.custom"
            )
        chosen[metric.name] = metric
    return chosen


def bounds_of(name: str) -> tuple[float, float] | None:
    """Between what a metric of this name lies; None where there is none of it."""
    metric = METRICS.get(ALIASES.get(name, name))
    return None if metric is None else metric.bounds


def _by_name(name: str) -> Metric:
    metric = METRICS.get(ALIASES.get(name, name))
    if metric is None and "@" in name:
        at = "fewlabels threshold FILE --model NAME --min-specificity 0.95"
        raise UsageError(f"metric {name!r} is one at a threshold, which is asked for by {at}")
    if metric is None:
        raise UsageError(unknown("metric", name, [*METRICS, *ALIASES]))
    return metric
