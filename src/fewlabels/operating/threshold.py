"""threshold(): where to put one classifier's threshold, and how probably it meets conditions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fewlabels import report
from fewlabels.errors import Status
from fewlabels.evaluation.evaluator import Estimand
from fewlabels.kernels.arrays import Bools, Floats
from fewlabels.kernels.blocks import using_workers
from fewlabels.models.base import LabelModel
from fewlabels.operating.answer import Answer, Interval, facts_of, summarise
from fewlabels.operating.arguments import Progress, checked, draws_for, silent
from fewlabels.operating.caution import facts, status_of
from fewlabels.operating.condition import Comparison, Condition, checked_cost, conditions_of
from fewlabels.operating.points import Counts, Points, points_of
from fewlabels.operating.question import Question, ask
from fewlabels.operating.rates import Rates
from fewlabels.shown import frame
from fewlabels.shown import plain_values as plain
from fewlabels.sources import predictions_of

SHOWN = (
    "precision",
    "recall",
    "specificity",
    "fpr",
    "f1",
    "accuracy",
    "predicted_positive_rate",
)
"""Rates that are given at the best threshold; `cost` as well where it is asked about."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Thresholds(Answer):
    """What `fewlabels.threshold` returns.

    Attributes
    ----------
    thresholds, probability
        Every threshold, ascending, in the units of the file, and the probability that the
        conditions hold there, (G,).
    best
        The threshold with the largest probability; of several in a row the middle one, of several
        such rows the longest. Where no draw meets the conditions anywhere, the nearest: that with
        the smallest expected `shortfall`. NaN where there is no threshold to choose.
    best_probability
        The probability there, 0 where no draw meets the conditions anywhere.
    met
        Whether any draw meets them anywhere.
    shortfall
        How far the rates at `best` are from the bounds, on average over the draws and in sum over
        the conditions (a cost: as a share of the largest cost).
    rates
        Name -> rate at `best`, with its interval.
    conditions
        The conditions in words.
    """

    _page = "threshold"

    thresholds: Floats
    probability: Floats
    best: float
    best_probability: float
    met: bool
    shortfall: float
    rates: Mapping[str, Interval]
    conditions: tuple[str, ...]

    def for_probability(self, probability: float) -> tuple[float, float] | None:
        """The widest range of thresholds that all meet the conditions with this probability.

        Lowest and highest threshold, None where there is none; what lies between two thresholds
        calls the same items positive as the higher of them.
        """
        ranges = _runs(self.probability >= probability - 1e-12)
        if not ranges:
            return None
        ends = [
            (float(self.thresholds[r.start]), float(self.thresholds[r.stop - 1])) for r in ranges
        ]
        return max(ends, key=lambda end: end[1] - end[0])

    def to_dict(self) -> dict[str, Any]:
        """Thresholds and probabilities, and the best of them; plain values."""
        names = ("thresholds", "probability", "best", "best_probability", "met")
        out: dict[str, Any] = plain({name: getattr(self, name) for name in names})
        return out

    def report(self) -> dict[str, Any]:
        """Everything, as a dictionary of plain values."""
        rates = {name: rate._asdict() for name, rate in self.rates.items()}
        return self._report(
            "threshold",
            {
                "conditions": self.conditions,
                "best": self.best,
                "best_probability": self.best_probability,
                "met": self.met,
                "shortfall": self.shortfall,
                "rates": rates,
                "thresholds": self.thresholds,
                "probability": self.probability,
            },
        )

    def _reported(self) -> dict[str, Any]:
        return self.report()

    def to_frame(self, backend: str | None = None) -> Any:
        """Thresholds and probabilities as a table: "pandas", "polars" or "pyarrow"."""
        return frame({"threshold": self.thresholds, "probability": self.probability}, backend)

    def summary(self, width: int = 80) -> str:
        """The answer as text."""
        return report.render_threshold(self.report(), width=width)

    def save_html(self, path: str | Path) -> None:
        """Write the report as one self-contained HTML file."""
        report.save_page("threshold", self.report(), path)


def threshold(
    predictions: Any,
    model: str | None = None,
    min_precision: float | None = None,
    min_recall: float | None = None,
    *,
    min_specificity: float | None = None,
    min_f1: float | None = None,
    min_accuracy: float | None = None,
    max_fpr: float | None = None,
    max_cost: float | None = None,
    cost: tuple[float, float] = (1.0, 1.0),
    condition: str | Callable[[Mapping[str, Floats]], Any] | Sequence[Any] | None = None,
    method: str | LabelModel = "auto",
    confidence_level: float = 0.95,
    estimand: Estimand = "population",
    positive: Any = None,
    random_state: int | None = 0,
    workers: int | None = None,
    progress: Progress | None = None,
    columns: Any = None,
) -> Thresholds:
    """Find thresholds that meet conditions, with the probability that they do.

    Parameters
    ----------
    predictions, model
        As for `fewlabels.curve`.
    min_precision, min_recall, min_specificity, min_f1, min_accuracy, max_fpr
        What the rates must be at least, or at most; between 0 and 1.
    max_cost
        What a decision may cost on average, per item.
    cost
        Cost of a false positive and of a false negative.
    condition
        More conditions: comparisons in text, joined by `and`, of precision, recall (tpr),
        specificity (tnr), fpr, fnr, f1, accuracy, balanced_accuracy, npv,
        predicted_positive_rate, prevalence and cost ("precision >= 0.8 and fpr <= 0.05"); a
        function from a mapping of these to arrays (G, D), over thresholds and draws, to booleans
        (G, D); or several of these. All conditions must hold. An undefined rate meets none.
    method, confidence_level, estimand, positive, random_state, workers, progress, columns
        As for `fewlabels.curve`. The confidence level is that of the rates' intervals.

    Raises
    ------
    UsageError, InputError
        One line that says what is wrong and how to mend it.

    Notes
    -----
    The probability at a threshold is the share of label draws in which the conditions hold there
    (Welinder, Welling, Perona 2013, section 3.3). Thresholds are the distinct scores; of more
    than 20,000, about 4,000 of them.

    Examples
    --------
    >>> import numpy as np
    >>> import fewlabels as fl
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(500) < 0.3
    >>> score = 1 / (1 + np.exp(-rng.normal(3 * truth - 1.5, 1.5)))
    >>> labels = np.where(np.arange(500) < 20, truth, -1)
    >>> predictions = fl.Predictions(score[:, None], labels, models=["detector"])
    >>> found = fl.threshold(predictions, min_recall=0.5, method="bayesian-calibration")
    >>> found.conditions, found.met
    (('recall >= 0.5',), True)
    """
    predictions = predictions_of(predictions, columns, positive, against_rest=False)
    seed = checked(predictions, confidence_level, estimand, workers, random_state)
    costs = checked_cost(cost)
    bounds: dict[str, tuple[str, str, float | None]] = {
        "min_precision": ("precision", ">=", min_precision),
        "min_recall": ("recall", ">=", min_recall),
        "min_specificity": ("specificity", ">=", min_specificity),
        "min_f1": ("f1", ">=", min_f1),
        "min_accuracy": ("accuracy", ">=", min_accuracy),
        "max_fpr": ("fpr", "<=", max_fpr),
        "max_cost": ("cost", "<=", max_cost),
    }
    asked = conditions_of(bounds, condition, costs)
    watch = progress or silent
    with using_workers(workers):
        question = ask(predictions, model, method, positive, estimand, seed)
        points = points_of(question, draws_for(confidence_level)).kept(watch)
        search = _search(points, asked, costs, watch)
        place = np.flatnonzero(points.thresholds == search.best)
        at_best = points.only(int(place[0])) if len(place) else None
        rates = _rates(at_best, asked, costs, confidence_level, watch)
    status, warnings = _trust(question, search, asked, confidence_level)
    return Thresholds(
        **facts_of(question, predictions.classes, confidence_level),
        **search._asdict(),
        rates=rates,
        conditions=tuple(one.text for one in asked),
        status=status,
        warnings=warnings,
    )


class _Search(NamedTuple):
    """Fields of `Thresholds` that come from all cuts."""

    thresholds: Floats
    probability: Floats
    best: float
    best_probability: float
    met: bool
    shortfall: float


def _search(
    points: Points, asked: Sequence[Condition], costs: tuple[float, float], watch: Progress
) -> _Search:
    """How probably the conditions hold at every cut, and the best of the cuts."""
    tallies = points.interval.each(partial(_tally, asked, costs), watch)
    thresholds = points.thresholds[::-1]
    probability, shortfall = (
        (np.sum(part, axis=0) / points.interval.size)[::-1] for part in zip(*tallies, strict=True)
    )
    if not len(thresholds):
        return _Search(thresholds, probability, math.nan, 0.0, False, math.nan)
    top = float(probability.max())
    at = _middle(probability == top if top > 0 else shortfall <= shortfall.min() + 1e-12)
    return _Search(
        thresholds, probability, float(thresholds[at]), top, top > 0, float(shortfall[at])
    )


def _tally(
    asked: Sequence[Condition], costs: tuple[float, float], counts: Counts
) -> tuple[Floats, Floats]:
    """In how many draws all conditions hold at each cut, and the sum of what they lack, (G,)."""
    rates = Rates(counts, costs)
    holds: Bools = np.logical_and.reduce([one.holds(rates) for one in asked])
    lacks: Floats = np.sum([one.shortfall(rates).sum(axis=1) for one in asked], axis=0)
    return holds.sum(axis=1).astype(np.float64), lacks


def _runs(mask: Bools) -> list[slice]:
    """Unbroken stretches of True."""
    edges = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0))
    return [slice(a, b) for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)]


def _middle(mask: Bools) -> int:
    """Middle of the longest stretch of True, by the number of cuts: units do not matter."""
    longest = max(_runs(mask), key=lambda run: run.stop - run.start)
    return int(longest.start + longest.stop - 1) // 2


def _rates(
    at_best: Points | None,
    asked: Sequence[Condition],
    costs: tuple[float, float],
    level: float,
    watch: Progress,
) -> dict[str, Interval]:
    """Rates at one threshold, with their intervals; NaN where there is no threshold."""
    about = [one.rate for one in asked if isinstance(one, Comparison)]
    names = [*SHOWN, *(["cost"] if "cost" in about or costs != (1.0, 1.0) else [])]
    if at_best is None:
        return dict.fromkeys(names, Interval(math.nan, math.nan, math.nan))

    def finish(counts: Counts) -> list[Floats]:
        rates = Rates(counts, costs)
        return [rates[name][0] for name in names]

    values, drawn = at_best.measure(finish, watch)
    return {
        name: summarise(value, draws, level, max(costs) if name == "cost" else 1.0)
        for name, value, draws in zip(names, values, drawn, strict=True)
    }


def _trust(
    question: Question, search: _Search, asked: Sequence[Condition], level: float
) -> tuple[Status, tuple[str, ...]]:
    """Status and warnings."""
    said = facts(question, level)
    verdict = status_of(question, "average_precision", 0.0)
    status = verdict.status
    if verdict.reason:
        said.append(verdict.reason)
    if math.isnan(search.best):
        status = Status.UNDEFINED
        said.append("undefined: there is no item to put a threshold at")
    elif not search.met:
        wanted = " and ".join(one.text for one in asked)
        said.append(
            f"no draw meets {wanted} at any threshold; the nearest is {search.best:.6g}, where the "
            f"rates lack {search.shortfall:.3g} on average"
        )
    return status, tuple(dict.fromkeys(said))
