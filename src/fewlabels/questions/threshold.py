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
from typing import Any

import numpy as np

from fewlabels.checks.arguments import RandomState
from fewlabels.errors import Status, UsageError, quoted, unknown
from fewlabels.evaluation.evaluator import Estimand
from fewlabels.kernels.arrays import Array, Bools, Floats
from fewlabels.kernels.blocks import Progress, using_workers
from fewlabels.kernels.interval_draws import UNDEFINED, Interval, spelled
from fewlabels.methods.base import LabelModel
from fewlabels.questions.counts import (
    COSTS,
    FORMULAS,
    Counts,
    Draws,
    Points,
    Rates,
    evenly,
    operating_points,
)
from fewlabels.questions.question import Answer, Band, OneClassifier, summarise
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


@dataclass(frozen=True)
class Cheaper:
    """A cost below that of calling all items positive, and of calling none."""

    most: float
    text: str = "cost < that of calling all or none positive"

    def holds(self, rates: Rates) -> Bools:
        """Cuts and draws where it is, (G, D)."""
        return np.asarray(self._gap(rates) < -_ROUNDING * self.most)

    def shortfall(self, rates: Rates) -> Floats:
        """By how much it is above, (G, D), as a share of the largest cost."""
        short: Floats = np.maximum(np.nan_to_num(self._gap(rates)), 0.0) / self.most
        return short

    def _gap(self, rates: Rates) -> Floats:
        return rates["cost"] - np.minimum(rates["cost_of_all"], rates["cost_of_none"])


Condition = Inequality | Function | Cheaper


def parse_conditions(
    bounds: Mapping[str, tuple[str, str, float | None]], condition: Any,
    cost: tuple[float, float], *, cheaper: bool = False,
) -> tuple[Condition, ...]:  # fmt: skip
    """All conditions asked for, at least one; none but the cost where that is to be `cheaper`.

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
    if not out and cheaper:
        out = [Cheaper(max(cost))]
    if not out:
        raise UsageError(
            "no condition given: pass at least one of "
            f"{', '.join(f'`{name}`' for name in bounds)}, `cost` or `condition`"
        )
    return tuple(out)


def checked_cost(cost: Any) -> tuple[float, float]:
    """Cost of a false positive and of a false negative: a pair, or by the names FP and FN."""
    if isinstance(cost, Mapping):
        named = {str(name).upper(): value for name, value in cost.items()}
        cost = [named.get("FP"), named.get("FN")] if named.keys() == {"FP", "FN"} else [*named]
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
    most = max(cost) if rate in COSTS else 1.0
    if not _number(bound) or not 0 <= bound <= most:
        percent = (
            " (write 80% as 0.8)" if rate not in COSTS and _number(bound) and bound > 1 else ""
        )
        raise UsageError(
            f"{where} must be between 0 and {most:g}, as {rate} is; got {quoted(bound)}{percent}"
        )
    if (sign, float(bound)) in ((">", most), ("<", 0.0)):
        raise UsageError(f"{where}: no {rate} can be {sign} {bound:g}; write {sign}= instead")
    return Inequality(rate, sign, float(bound), most)


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


_OTHER_SIDE = {
    "precision": "recall",
    "recall": "precision",
    "sensitivity": "specificity",
    "specificity": "sensitivity",
    "ppv": "sensitivity",
    "npv": "specificity",
    "tpr": "fpr",
    "fpr": "tpr",
    "tnr": "tpr",
    "fnr": "fpr",
    "predicted_positive_rate": "recall",
    "predicted_positive_rate >": "precision",
}
"""What gets worse as the rate gets better; of other rates it is the rate itself that matters."""

_FEWER = ("fpr", "fnr", *COSTS)
"""Rates that are better the lower they are."""

_CLINICAL = ("sensitivity", "specificity", "ppv", "npv")

SHOWN = (
    "precision",
    "recall",
    "specificity",
    "fpr",
    "f1",
    "accuracy",
    "predicted_positive_rate",
)
"""Rates reported at the best threshold, beside those that are asked about."""


MOVED = ("precision", "recall", "fpr", "predicted_positive_rate")
"""Rates reported at other thresholds than the best."""

_MOST_MOVED = 60


def goal_of(conditions: Sequence[Condition]) -> str | None:
    """The rate by which the best of the thresholds that meet the conditions is chosen.

    It is the other side of the first condition that has one of which no condition says enough.
    None where conditions are functions, or on the prevalence alone.
    """
    if any(isinstance(one, Cheaper) for one in conditions):
        return "cost"
    on = [one for one in conditions if isinstance(one, Inequality) and one.rate != "prevalence"]
    sides = [
        _OTHER_SIDE.get(f"{one.rate} {one.sign[0]}") or _OTHER_SIDE.get(one.rate, one.rate)
        for one in on
    ]
    said = {FORMULAS[one.rate] for one in on if one.rate in _OTHER_SIDE}
    open_sides = [side for side in sides if FORMULAS[side] not in said]
    return next(iter([*open_sides, *sides]), None)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Thresholds(Answer):
    """What `fewlabels.threshold` returns.

    `thresholds` (G,) are ascending, in the units of the file; `probability` (G,) is that of the
    conditions holding there. `best` is the threshold to use, `best_probability` that at it, and
    `choice` the rate whose expectation is best there, of all with at least the probability that is
    asked for (`least`); "likeliest" where there is none, or where conditions name no rate: the most
    probable, of several in a row the middle one, of several such rows the longest. If no draw meets
    the conditions anywhere, `met` is false, `best_probability` 0 and `best` has the smallest
    expected `shortfall`; NaN if there is no threshold to choose. `shortfall` is how far the rates
    at `best` are from the bounds, averaged over draws and summed over conditions (a cost: as a
    share of the largest cost). `rates` maps names to rates at `best` with their intervals;
    `conditions` are in words. `prevalence` is the one that was asked for, or None, and
    `prevalence_here` that of the items. `by_threshold` is what other thresholds would give: its
    `threshold` are up to 60 and `best`, ascending, at even steps of items and of expected
    positives; the others are rates there, each with `value`, `low` and `high`.
    """

    _page = "threshold"

    thresholds: Floats
    probability: Floats
    best: float
    best_probability: float
    choice: str
    least: float
    met: bool
    shortfall: float
    rates: Mapping[str, Interval]
    conditions: tuple[str, ...]
    prevalence: float | None
    prevalence_here: Interval
    by_threshold: Mapping[str, Any]

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

    def report(self) -> dict[str, Any]:
        """Everything, as a dictionary of plain values."""
        names = (
            "conditions", "best", "best_probability", "choice", "least", "met", "shortfall",
            "rates", "prevalence", "prevalence_here", "thresholds", "probability",
        )  # fmt: skip
        own = spelled((name, getattr(self, name)) for name in names)
        own |= {name: spelled(getattr(self, name).items()) for name in ("rates", "by_threshold")}
        return self._report("threshold", own)

    def _columns(self) -> dict[str, Any]:
        return {"threshold": self.thresholds, "probability": self.probability}


def threshold(
    predictions: Any,
    model: str | None = None,
    min_precision: float | None = None,
    min_recall: float | None = None,
    *,
    min_specificity: float | None = None,
    min_sensitivity: float | None = None,
    min_ppv: float | None = None,
    min_npv: float | None = None,
    min_f1: float | None = None,
    min_accuracy: float | None = None,
    max_fpr: float | None = None,
    max_cost: float | None = None,
    cost: tuple[float, float] | Mapping[str, float] | None = None,
    prevalence: float | None = None,
    condition: str | Callable[[Mapping[str, Floats]], Any] | Sequence[Any] | None = None,
    probability: float | None = None,
    method: str | LabelModel = "auto",
    confidence_level: float = 0.95,
    estimand: Estimand = "population",
    positive: Any = None,
    random_state: RandomState = 0,
    workers: int | None = None,
    progress: Progress | None = None,
    columns: Any = None,
    y_true: Any = None,
) -> Thresholds:
    """Find thresholds that meet conditions, with the probability that they do.

    Parameters
    ----------
    predictions, model
        As for `fewlabels.curve`.
    min_precision, min_recall, min_specificity, min_f1, min_accuracy, max_fpr
        What the rates must be at least, or at most; between 0 and 1.
    min_sensitivity, min_ppv, min_npv
        The same of recall and precision by other names, and of the negative predictive value.
    max_cost
        What a decision may cost on average, per item.
    cost
        Cost of a false positive and of a false negative, as a pair or {"FP": 1, "FN": 5}. Without
        any condition the threshold of the least expected cost is best, and the probability is that
        of its costing less than calling all, or none, positive.
    prevalence
        The share of positive items where the threshold will be used, above 0 and below 1; None: as
        among these items. P(score | class) is taken to be the same there.
    condition
        More conditions: comparisons in text, joined by `and`, of precision (ppv), recall
        (sensitivity, tpr), specificity (tnr), fpr, fnr, f1, accuracy, balanced_accuracy, npv,
        predicted_positive_rate, prevalence and cost ("precision >= 0.8 and fpr <= 0.05"); a
        function from a mapping of these to arrays (G, D), over thresholds and draws, to booleans
        (G, D); or several of these. All conditions must hold. An undefined rate meets none.
    probability
        How probable it must be that they hold; None: .95. Of the thresholds where it is, the one
        that is best on the other side is best: of the highest precision for a recall, of the
        highest recall for a precision, of the highest sensitivity for a specificity. For a cost, an
        accuracy or an F1 it is that itself, as it is where `cost` is given.
    method, confidence_level, estimand, positive, random_state, workers, progress, columns, y_true
        As for `fewlabels.curve`. The confidence level is that of the rates' intervals.

    Raises
    ------
    UsageError, InputError
        One line that says what is wrong and how to mend it.

    Notes
    -----
    The probability at a threshold is the share of label draws in which the conditions hold there
    (Welinder, Welling, Perona 2013, on recalibration). Thresholds are the distinct scores; of more
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
    costs = (1.0, 1.0) if cost is None else checked_cost(cost)
    bounds: dict[str, tuple[str, str, float | None]] = {
        "min_precision": ("precision", ">=", min_precision),
        "min_recall": ("recall", ">=", min_recall),
        "min_specificity": ("specificity", ">=", min_specificity),
        "min_sensitivity": ("sensitivity", ">=", min_sensitivity),
        "min_ppv": ("ppv", ">=", min_ppv),
        "min_npv": ("npv", ">=", min_npv),
        "min_f1": ("f1", ">=", min_f1),
        "min_accuracy": ("accuracy", ">=", min_accuracy),
        "max_fpr": ("fpr", "<=", max_fpr),
        "max_cost": ("cost", "<=", max_cost),
    }
    conditions = parse_conditions(bounds, condition, costs, cheaper=cost is not None)
    probability = 0.95 if probability is None else probability
    for name, value in (("probability", probability), ("prevalence", prevalence)):
        most = name == "probability"
        if value is not None and not (_number(value) and 0 < value < 1 + most and value <= 1):
            reach = "at most 1" if most else "below 1"
            percent = " (write 3% as 0.03)" if _number(value) and value > 1 else ""
            raise UsageError(f"`{name}` must be above 0 and {reach}; got {quoted(value)}{percent}")
    with using_workers(workers):
        question = OneClassifier.from_arguments(
            predictions, columns, model, method, positive, level=confidence_level,
            estimand=estimand, random_state=random_state, workers=workers, progress=progress,
            y_true=y_true,
        )  # fmt: skip
        points = operating_points(question).cached()
        goal = goal_of(conditions) if cost is None else "cost"
        search = _Search(question, points, conditions, costs, prevalence, goal)
        chance, shortfall = search.tally()
        thresholds, top = points.thresholds[::-1], float(chance.max(initial=0.0))
        best, lack, best_chance, choice = math.nan, math.nan, 0.0, "likeliest"
        if len(thresholds):
            place, choice = search.chosen(chance, shortfall, probability)
            best, lack, best_chance = (float(a[place]) for a in (thresholds, shortfall, chance))
        rates, here, moved = search.rates_at(best)
    verdict = question.verdict("average_precision", 0.0)
    status, unmet = verdict.status, None
    if prevalence is not None and status is Status.OK:
        status = Status.ASSUMPTION
    if math.isnan(best):
        status, unmet = Status.UNDEFINED, "undefined: there is no item to put a threshold at"
    elif not top:
        wanted = " and ".join(one.text for one in conditions)
        unmet = (
            f"no draw meets {wanted} at any threshold; the nearest is {best:.6g}, where the rates "
            f"fall short by {lack:.3g} on average"
        )
    elsewhere = None if prevalence is None else (
        f"assumption: at a prevalence of {prevalence:g}, scores of either class are taken to be "
        "distributed as among these items; labels from there would test it"
    )  # fmt: skip
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
        prevalence=None if prevalence is None else float(prevalence),
        prevalence_here=here,
        by_threshold=moved,
        status=status,
        warnings=question.warnings(verdict.reason, elsewhere, unmet),
    )


@dataclass(frozen=True)
class _Search:
    """The cuts of a question, what is asked of them, and the rate that is to be best."""

    question: OneClassifier
    points: Points
    conditions: tuple[Condition, ...]
    costs: tuple[float, float]
    prevalence: float | None
    goal: str | None

    def _rates(self, counts: Counts) -> Rates:
        counts = counts.at_fixed_cuts()
        there = counts if self.prevalence is None else counts.at_prevalence(self.prevalence)
        return Rates(there, self.costs)

    def _sums(self, draws: Draws, of: Callable[[Rates], Sequence[Array]]) -> list[Floats]:
        """Sums over draws of arrays (G, D) made of the rates, at the cuts upwards, (G,) each."""
        chunks = draws.each(
            lambda counts: [array.sum(axis=1, dtype=float) for array in of(self._rates(counts))],
            self.question.progress,
        )
        return [np.sum(chunk, axis=0)[::-1] for chunk in zip(*chunks, strict=True)]

    def tally(self) -> tuple[Floats, Floats]:
        """Probability that the conditions hold, and mean shortfall, at the cuts upwards, (G,)."""

        def tally(rates: Rates) -> tuple[Array, Array]:
            holds = np.logical_and.reduce([one.holds(rates) for one in self.conditions])
            return holds, np.sum([one.shortfall(rates) for one in self.conditions], axis=0)

        held, lacks = self._sums(self.points.interval, tally)
        return held / self.points.interval.size, lacks / self.points.interval.size

    def _expected(self, goal: str) -> Floats:
        """Mean of the goal over the draws in which it is defined, larger is better, upwards (G,).

        -inf where it is defined in none.
        """

        def defined(rates: Rates) -> tuple[Array, Array]:
            rate = rates[goal]
            return np.nan_to_num(rate), ~np.isnan(rate)

        total, size = self._sums(self.points.value, defined)
        sign = -1.0 if goal in _FEWER else 1.0
        return np.where(size > 0, sign * total / np.maximum(size, 1.0), -np.inf)

    def chosen(self, chance: Floats, shortfall: Floats, least: float) -> tuple[int, str]:
        """Place of the best threshold among them, ascending, and what is best there."""
        top, free = chance.max(), isinstance(self.conditions[0], Cheaper)
        enough = np.ones(len(chance), dtype=bool) if free else chance >= least - _ROUNDING
        choice = self.goal if self.goal and enough.any() else "likeliest"
        if not enough.any() or self.goal is None:
            enough = chance == top if top > 0 else shortfall <= shortfall.min() + _ROUNDING
        if self.goal is not None:
            expected = np.where(enough, self._expected(self.goal), -np.inf)
            enough &= expected >= expected.max() - _ROUNDING * max(*self.costs, 1.0)
            enough &= chance == chance[enough].max()
        # The longest stretch, by the number of cuts: units do not matter.
        longest = max(_runs(enough), key=lambda run: run.stop - run.start)
        return int(longest.start + longest.stop - 1) // 2, choice

    def rates_at(self, best: float) -> tuple[dict[str, Interval], Interval, dict[str, Any]]:
        """Rates at the best threshold, the prevalence of the items, and rates at other thresholds.

        All with intervals; NaN where there is no threshold, and at no others then.
        """
        asked = [one.rate for one in self.conditions if isinstance(one, Inequality)]
        asked += [] if self.goal is None else [self.goal]
        clinical = any(name in _CLINICAL for name in asked)
        shown = (*_CLINICAL, "accuracy", "predicted_positive_rate") if clinical else SHOWN
        costs = COSTS if any(name in COSTS for name in asked) else ()
        by_formula = {FORMULAS[name]: name for name in (*shown, *costs, *reversed(asked))}
        names = [name for name in FORMULAS if name in {*by_formula.values()}]
        moved = [*MOVED, *(name for name in costs[:1] if name in names)]
        if math.isnan(best):
            nothing = dict.fromkeys(moved, Band(*np.empty((3, 0))))
            return dict.fromkeys(names, UNDEFINED), UNDEFINED, {"threshold": np.empty(0)} | nothing
        at_best = np.flatnonzero(self.points.thresholds == best)
        cuts = np.union1d(evenly(self.points.share, _MOST_MOVED), at_best)[::-1]
        every = list(dict.fromkeys([*names, *moved]))

        def at_cuts(counts: Counts) -> list[Floats]:
            rates = self._rates(counts.at_fixed_cuts().at(cuts))
            here = Rates(counts.at(at_best), self.costs)["prevalence"]
            return [here.T, *(rates[name].T for name in every)]

        values, drawn = self.points.measure(at_cuts, self.question.progress)

        def summarised(place: int, top: float) -> list[Interval]:
            pairs = zip(values[place].T, drawn[place].T, strict=True)
            return [summarise(*pair, self.question.level, top) for pair in pairs]

        rates = {
            name: summarised(place, max(self.costs) if name in COSTS else 1.0)
            for place, name in enumerate(every, 1)
        }
        best_place = int(np.flatnonzero(cuts == at_best)[0])
        bands = {name: Band(*np.array(rates[name]).T) for name in moved}
        return (
            {name: rates[name][best_place] for name in names},
            summarised(0, 1.0)[0],
            {"threshold": self.points.thresholds[cuts]} | bands,
        )


def _runs(mask: Bools) -> list[slice]:
    """Unbroken stretches of True."""
    edges = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0))
    return [slice(a, b) for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)]
