"""fl.threshold: where to put one classifier's threshold, and how probably it meets conditions.

First the conditions on rates: from arguments, from text, or a function of one's own.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np

from fewlabels import report
from fewlabels.errors import Status, UsageError, quoted, unknown
from fewlabels.evaluation.evaluator import Estimand
from fewlabels.kernels.arrays import Bools, Floats
from fewlabels.kernels.blocks import Progress, using_workers
from fewlabels.kernels.interval_draws import UNDEFINED, Interval
from fewlabels.methods.base import LabelModel
from fewlabels.questions.counts import FORMULAS, Counts, Points, Rates, operating_points
from fewlabels.questions.question import Answer, OneClassifier, summarise
from fewlabels.report.shown import plain_values as plain

_ROUNDING = 1e-12
"""Rates this close to a bound count as equal to it."""

_SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}

_COMPARISON = re.compile(r"\s*(\w+)\s*(>=|<=|>|<)\s*([^\s<>=]+)\s*")


@dataclass(frozen=True)
class Inequality:
    """A rate that must be at least, at most, above or below a bound.

    `most` is the largest value the rate can have, by which a shortfall is measured.
    """

    rate: str
    sign: str
    bound: float
    most: float = 1.0

    @property
    def text(self) -> str:
        """The condition in words and symbols."""
        return f"{self.rate} {self.sign} {self.bound:.12g}"

    def holds(self, rates: Rates) -> Bools:
        """Cuts and draws where the condition holds, (G, D); not where the rate is undefined."""
        slack = _ROUNDING * self.most * (-1 if self.sign in (">=", "<") else 1)
        holds: Bools = _SIGNS[self.sign](rates[self.rate], self.bound + slack)
        return holds

    def shortfall(self, rates: Rates) -> Floats:
        """How far the rate is from the bound, (G, D), as a share of what the rate can be."""
        worst = 0.0 if self.sign[0] == ">" else self.most
        rate = np.where(np.isnan(rates[self.rate]), worst, rates[self.rate])
        gap = self.bound - rate if self.sign[0] == ">" else rate - self.bound
        short: Floats = np.maximum(gap, 0.0) / self.most
        return short


@dataclass(frozen=True)
class Function:
    """A function of one's own: rates (a mapping of arrays (G, D)) to where it holds, (G, D)."""

    call: Callable[[Rates], Any]

    @property
    def text(self) -> str:
        """Name of the function."""
        return str(getattr(self.call, "__name__", type(self.call).__name__))

    def holds(self, rates: Rates) -> Bools:
        """Where the function holds, one bool per cut and draw; anything else is a `UsageError`."""
        try:
            with np.errstate(all="ignore"):
                holds = np.asarray(self.call(rates))
        except Exception as error:
            raise UsageError(
                f"`condition` {self.text} raised {type(error).__name__}: {error}; it is called "
                f"with a mapping of arrays: {', '.join(FORMULAS)}"
            ) from error
        shape = rates.tp.shape
        if holds.shape != shape or holds.dtype != np.bool_:
            raise UsageError(
                f"`condition` {self.text} must give an array of booleans of shape {shape}, "
                f"as its rates have; got {holds.dtype} of shape {holds.shape}: combine with & and "
                "|, and compare with >= or <="
            )
        return holds

    def shortfall(self, rates: Rates) -> Floats:
        """1 where the condition does not hold, as its distance is unknown."""
        return (~self.holds(rates)).astype(np.float64)


Condition = Inequality | Function


def parse_conditions(
    bounds: Mapping[str, tuple[str, str, float | None]], condition: Any, cost: tuple[float, float]
) -> tuple[Condition, ...]:
    """All conditions asked for, at least one.

    `bounds` maps an argument to rate, sign and bound (None: not asked for). `condition` is a text
    such as "precision >= 0.8 and fpr <= 0.05", a function of the rates, or several of these. `cost`
    is that of a false positive and of a false negative.
    """
    out: list[Condition] = [
        _comparison(rate, sign, bound, cost, f"`{argument}`")
        for argument, (rate, sign, bound) in bounds.items()
        if bound is not None
    ]
    several = condition if isinstance(condition, (list, tuple)) else [condition]
    for one in several:
        if isinstance(one, str):
            out += _parsed(one, cost)
        elif callable(one):
            out.append(Function(one))
        elif one is not None:
            raise UsageError(
                "`condition` must be text such as 'precision >= 0.8 and fpr <= 0.05', or a "
                f"function of the rates; got {quoted(one)}"
            )
    if not out:
        raise UsageError(
            "no condition given: pass at least one of "
            f"{', '.join(f'`{name}`' for name in bounds)} or `condition`"
        )
    return tuple(out)


def checked_cost(cost: Any) -> tuple[float, float]:
    """Cost of a false positive and of a false negative."""
    pair = tuple(cost) if isinstance(cost, (Sequence, np.ndarray)) else ()
    good = len(pair) == 2 and all(_number(c) and c >= 0 for c in pair) and any(pair)
    if not good or isinstance(cost, str):
        raise UsageError(
            "`cost` must be two numbers, the cost of a false positive and of a false negative, "
            f"neither negative and not both 0; got {quoted(cost)}"
        )
    return float(pair[0]), float(pair[1])


def _parsed(text: str, cost: tuple[float, float]) -> list[Condition]:
    """Comparisons joined by `and`."""
    out: list[Condition] = []
    for one in re.split(r"\band\b", text):
        match = _COMPARISON.fullmatch(one)
        if match is None:
            raise UsageError(
                f"`condition` cannot be read at {quoted(one.strip())}; write comparisons joined "
                "by `and`, such as 'precision >= 0.8 and fpr <= 0.05'"
            )
        name, sign, number = match.groups()
        if name not in FORMULAS:
            raise UsageError(unknown("rate", name, FORMULAS))
        try:
            bound = float(number)
        except ValueError:
            raise UsageError(
                f"`condition` must compare {name} with a number; got {quoted(number)}"
            ) from None
        out.append(_comparison(name, sign, bound, cost, "`condition`"))
    return out


def _comparison(
    rate: str, sign: str, bound: Any, cost: tuple[float, float], where: str
) -> Inequality:
    """A comparison whose bound the rate can reach."""
    most = max(cost) if rate == "cost" else 1.0
    if not _number(bound) or not 0 <= bound <= most:
        percent = " (write 80% as 0.8)" if rate != "cost" and _number(bound) and bound > 1 else ""
        raise UsageError(
            f"{where} must be between 0 and {most:g}, as {rate} is; got {quoted(bound)}{percent}"
        )
    if (sign, float(bound)) in ((">", most), ("<", 0.0)):
        raise UsageError(f"{where}: no {rate} can be {sign} {bound:g}; write {sign}= instead")
    return Inequality(rate, sign, float(bound), most)


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


_FINDING = frozenset(["recall", "tpr", "fnr", "npv"])
_SPARING = frozenset(["precision", "specificity", "tnr", "fpr", "predicted_positive_rate"])
"""Rates that get better as more, and as fewer, items are called positive."""

Choice = Literal["lowest", "highest", "likeliest"]

SHOWN = (
    "precision",
    "recall",
    "specificity",
    "fpr",
    "f1",
    "accuracy",
    "predicted_positive_rate",
)
"""Rates reported at the best threshold; `cost` as well if it is asked for."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Thresholds(Answer):
    """What `fewlabels.threshold` returns.

    `thresholds` (G,) are ascending, in the units of the file; `probability` (G,) is that of the
    conditions holding there. `best` is the threshold to use, `best_probability` that at it, and
    `choice` says which one it is: of those with at least the probability that is asked for,
    "lowest" (it finds the most), or "highest" (it flags the fewest) where all conditions ask for
    finding enough; "likeliest" where there is none, or where conditions say nothing of that: of
    several in a row the middle one, of several such rows the longest. If no draw meets the
    conditions anywhere, `met` is false, `best_probability` 0 and `best` has the smallest expected
    `shortfall`; NaN if there is no threshold to choose. `shortfall` is how far the rates at `best`
    are from the bounds, averaged over draws and summed over conditions (a cost: as a share of the
    largest cost). `rates` maps names to rates at `best` with their intervals; `conditions` are in
    words.
    """

    _page, _text = "threshold", "render_threshold"

    thresholds: Floats
    probability: Floats
    best: float
    best_probability: float
    choice: Choice
    least: float
    met: bool
    shortfall: float
    rates: Mapping[str, Interval]
    conditions: tuple[str, ...]

    def for_probability(self, probability: float) -> tuple[float, float] | None:
        """The widest range of thresholds that all meet the conditions with this probability.

        Lowest and highest threshold, None if there is none. A value between two thresholds calls
        the same items positive as the higher one.
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

    def plot(self) -> Any:
        """P(all conditions hold) at each threshold, as a matplotlib figure (extra `plot`)."""
        return report.render_curve_figure(self.report())

    def report(self) -> dict[str, Any]:
        """Everything, as a dictionary of plain values."""
        rates = {name: rate._asdict() for name, rate in self.rates.items()}
        return self._report(
            "threshold",
            {
                "conditions": self.conditions,
                "best": self.best,
                "best_probability": self.best_probability,
                "choice": self.choice,
                "least": self.least,
                "met": self.met,
                "shortfall": self.shortfall,
                "rates": rates,
                "thresholds": self.thresholds,
                "probability": self.probability,
            },
        )

    def _columns(self) -> dict[str, Any]:
        return {"threshold": self.thresholds, "probability": self.probability}


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
    probability: float | None = None,
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
    probability
        How probable it must be that they hold; None: .95. Of the thresholds where it is, the one
        that finds most is best; where all conditions are on recall, fnr or npv, the one that flags
        fewest.
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
    conditions = parse_conditions(bounds, condition, costs)
    probability = 0.95 if probability is None else probability
    if not _number(probability) or not 0 < probability <= 1:
        raise UsageError(f"`probability` must be above 0 and at most 1; got {quoted(probability)}")
    with using_workers(workers):
        question = OneClassifier.from_arguments(
            predictions, columns, model, method, positive, level=confidence_level,
            estimand=estimand, random_state=random_state, workers=workers, progress=progress,
        )  # fmt: skip
        points = operating_points(question).cached()
        chance, shortfall = _tally(question, points, conditions, costs)
        thresholds, top = points.thresholds[::-1], float(chance.max(initial=0.0))
        best, lack, best_chance = math.nan, math.nan, 0.0
        choice: Choice = "likeliest"
        if len(thresholds):
            place, choice = _chosen(chance, shortfall, conditions, probability)
            best, lack, best_chance = (float(a[place]) for a in (thresholds, shortfall, chance))
        rates = _rates(question, points, best, conditions, costs)
    verdict = question.verdict("average_precision", 0.0)
    status, unmet = verdict.status, None
    if math.isnan(best):
        status, unmet = Status.UNDEFINED, "undefined: there is no item to put a threshold at"
    elif not top:
        wanted = " and ".join(one.text for one in conditions)
        unmet = (
            f"no draw meets {wanted} at any threshold; the nearest is {best:.6g}, where the rates "
            f"fall short by {lack:.3g} on average"
        )
    return Thresholds(
        **question.facts(),
        thresholds=thresholds,
        probability=chance,
        best=best,
        best_probability=best_chance,
        choice=choice,
        least=float(probability),
        met=top > 0,
        shortfall=lack,
        rates=rates,
        conditions=tuple(one.text for one in conditions),
        status=status,
        warnings=question.warnings(verdict.reason, unmet),
    )


def _chosen(
    chance: Floats, shortfall: Floats, conditions: Sequence[Condition], least: float
) -> tuple[int, Choice]:
    """Place of the best threshold among them, ascending, and which of those that do it is."""
    rates = [one.rate if isinstance(one, Inequality) else "" for one in conditions]
    enough = chance >= least - _ROUNDING
    finding, sparing = (set(rates) <= kind for kind in (_FINDING, _FINDING | _SPARING))
    top = chance.max()
    if not (sparing and enough.any()):
        enough = chance == top if top > 0 else shortfall <= shortfall.min() + _ROUNDING
    # The longest stretch, by the number of cuts: units do not matter.
    longest = max(_runs(enough), key=lambda run: run.stop - run.start)
    if not (sparing and top >= least - _ROUNDING):
        return int(longest.start + longest.stop - 1) // 2, "likeliest"
    return (longest.stop - 1, "highest") if finding else (longest.start, "lowest")


def _tally(
    question: OneClassifier,
    points: Points,
    conditions: Sequence[Condition],
    costs: tuple[float, float],
) -> tuple[Floats, Floats]:
    """Probability that the conditions hold, and their mean shortfall, at the cuts upwards, (G,)."""

    def tally(counts: Counts) -> tuple[Floats, Floats]:
        rates = Rates(counts.at_fixed_cuts(), costs)
        holds: Bools = np.logical_and.reduce([one.holds(rates) for one in conditions])
        lacks: Floats = np.sum([one.shortfall(rates).sum(axis=1) for one in conditions], axis=0)
        return holds.sum(axis=1).astype(np.float64), lacks

    chunks = points.interval.each(tally, question.progress)
    probability, shortfall = (
        (np.sum(chunk, axis=0) / points.interval.size)[::-1] for chunk in zip(*chunks, strict=True)
    )
    return probability, shortfall


def _runs(mask: Bools) -> list[slice]:
    """Unbroken stretches of True."""
    edges = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0))
    return [slice(a, b) for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)]


def _rates(
    question: OneClassifier,
    points: Points,
    best: float,
    conditions: Sequence[Condition],
    costs: tuple[float, float],
) -> dict[str, Interval]:
    """Rates at one threshold, with their intervals; NaN where there is no threshold."""
    about = [one.rate for one in conditions if isinstance(one, Inequality)]
    names = [*SHOWN, *(["cost"] if "cost" in about or costs != (1.0, 1.0) else [])]
    if math.isnan(best):
        return dict.fromkeys(names, UNDEFINED)
    cut = int(np.flatnonzero(points.thresholds == best)[0])

    def at_best(counts: Counts) -> list[Floats]:
        rates = Rates(counts.at_fixed_cuts().at(cut), costs)
        return [rates[name][0] for name in names]

    values, drawn = points.measure(at_best, question.progress)
    return {
        name: summarise(value, draws, question.level, max(costs) if name == "cost" else 1.0)
        for name, value, draws in zip(names, values, drawn, strict=True)
    }
