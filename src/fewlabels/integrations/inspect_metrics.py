"""Inspect: metrics of a judge's scores that are corrected by the verdicts of people.

    @scorer(metrics=[accuracy(), pass_rate(label="human")])

The verdict of a person stands in the metadata of a sample, for few of the samples, drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable
from logging import getLogger
from typing import Any

import numpy as np
from inspect_ai.scorer import Metric, SampleScore, ValueToFloat, metric, value_to_float

from fewlabels.checks.arguments import is_missing
from fewlabels.errors import FewlabelsError
from fewlabels.estimating import estimate
from fewlabels.questions.score import score

_log = getLogger(__name__)
_JUDGE = "judge"
_NUMBER = value_to_float()


@metric
def pass_rate(
    label: str = "human", to_float: ValueToFloat = _NUMBER, confidence_level: float = 0.95
) -> Metric:
    """The pass rate, or mean grade, of the system that is judged: value, low and high.

    By `fewlabels.score`: the judge's scores of all samples, corrected by people's of some. NaN, and
    a line in the log, where no sample has a verdict of a person.

    Parameters
    ----------
    label
        Key of the metadata of a sample under which a person's verdict stands, in the values that
        the scorer gives ("C", "I", numbers); without it, or None, there is none.
    to_float
        Values as numbers, as for Inspect's `accuracy`.
    confidence_level
        Of the interval.
    """

    def of(arrays: dict[str, Any], y_true: Any, columns: dict[str, Any]) -> Any:
        found = score(arrays, y_true=y_true, columns=columns, confidence_level=confidence_level)
        return found.get("prediction-powered", _JUDGE)

    return _corrected("pass_rate", label, to_float, of)


@metric
def judge_accuracy(
    label: str = "human", to_float: ValueToFloat = _NUMBER, confidence_level: float = 0.95
) -> Metric:
    """How often the judge is right, by people's verdicts and what all scores show, with interval.

    The parameters are those of `pass_rate`.
    """

    def of(arrays: dict[str, Any], y_true: Any, columns: dict[str, Any]) -> Any:
        settings = {"y_true": y_true, "columns": columns, "confidence_level": confidence_level}
        return estimate(arrays, metrics=["accuracy"], **settings).get(_JUDGE, "accuracy")

    return _corrected("judge_accuracy", label, to_float, of)


def _corrected(name: str, label: str, to_float: ValueToFloat, of: Callable[..., Any]) -> Metric:
    """A metric of Inspect: numbers by name from the scores and people's verdicts."""

    def computed(scores: list[SampleScore]) -> dict[str, float]:
        people = [(one.sample_metadata or {}).get(label) for one in scores]
        given = [_text(to_float(one.score.value)) for one in scores]
        known = [None if is_missing(v) else _text(to_float(v)) for v in people]
        classes = sorted({"0", "1", *filter(None, [*given, *known])}, key=float)
        try:
            row = of({_JUDGE: np.array(given)}, known, {"classes": classes})
        except FewlabelsError as error:
            _log.warning("%s: %s", name, error)
            return dict.fromkeys((name, f"{name}_low", f"{name}_high"), float("nan"))
        return {name: row.value, f"{name}_low": row.low, f"{name}_high": row.high}

    return computed


def _text(value: float) -> str:
    return f"{value:g}"
