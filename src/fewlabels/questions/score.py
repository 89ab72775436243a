"""Score of the system that judges assess: its pass rate, or mean grade, corrected by labels.

A judge's own pass rate is biased by its mistakes; the labels alone are unbiased and few. Together
they are prediction-powered (Angelopoulos, Duchi, Zrnic 2023): mean of the judge on all items, plus
the mean difference of the labels from it, as far as the two are correlated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from fewlabels import __version__
from fewlabels.annotations.agreement import Agreement, agreement
from fewlabels.checks.arguments import RandomState, few_enough, level_of, seed_of
from fewlabels.checks.class_words import numbers_of, polarity
from fewlabels.data.inputs import predictions_of
from fewlabels.errors import InputError, UsageError, listed, quoted
from fewlabels.estimates import Estimates
from fewlabels.estimating import estimate
from fewlabels.evaluation.input_facts import selection_facts
from fewlabels.evaluation.strata import strata_facts
from fewlabels.kernels.arrays import Bools, Floats, Frozen
from fewlabels.kernels.interval_draws import ends
from fewlabels.methods.base import LabelModel
from fewlabels.methods.baselines.autoeval import AutoEval
from fewlabels.metrics.base import Metric, ScoreView, ratio
from fewlabels.metrics.confusion import Confusion, Margins
from fewlabels.predictions import Predictions
from fewlabels.report.shown import Result, plain_values

UNCORRECTED, LABELS, POWERED, TOGETHER = (
    "uncorrected",
    "labels only",
    "prediction-powered",
    "judges together",
)
"""The ways to a score; `judges together` is the method that was asked for."""

_DRAWS = 2_000
_UNLIKE = 3
"""Standard errors between shares beyond chance."""
_FEW = 3
"""Least labels for a correlation."""
MOST_JUDGES = 1_000
"""Most judges that are scored: each is an estimate of some ten milliseconds."""


class ScoreRow(NamedTuple):
    """One score of the judged system: by which way, by which judge (None: by all, or none)."""

    criterion: str | None
    way: str
    judge: str | None
    value: float
    low: float
    high: float
    confidence_level: float
    status: str


class Help(NamedTuple):
    """Whether a judge can help: its correlation with the labels, and the bound that it must pass.

    Of n labeled items a judge of correlation rho multiplies the variance of the labels' mean by
    (1 - rho^2) (n - 2) / (n - 3), which is below 1 where rho^2 > 1 / (n - 2) (Lavenberg and Welch
    1981, of control variates whose coefficient is estimated).
    """

    judge: str
    correlation: float
    n_labeled: int
    bound: float
    helps: bool


@dataclass(frozen=True)
class CriterionScore(Frozen):
    """The scores under one criterion, and the data behind them."""

    criterion: str | None
    what: str
    n_items: int
    n_labeled: int
    rows: tuple[ScoreRow, ...]
    judges: tuple[Help, ...]
    people: Agreement | None
    judge_pairs: Mapping[str, float]
    reading: tuple[str, ...]
    warnings: tuple[str, ...]
    look: Callable[[str | LabelModel | None], Estimates] = field(repr=False)
    confusion: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        left_out = {"look"} | ({"confusion"} if self.confusion is None else set())
        shown = {n: v for n, v in vars(self).items() if n not in left_out}
        out: dict[str, Any] = plain_values(
            shown
            | {
                "rows": [row._asdict() for row in self.rows],
                "judges": [judge._asdict() for judge in self.judges],
                "people": None if self.people is None else self.people.to_dict(),
            }
        )
        return out


@dataclass(frozen=True, repr=False)
class Scores(Frozen, Result):
    """What `fewlabels.score` returns: the scores under each criterion."""

    _page, _row_fields = "score", ScoreRow._fields
    _text_columns = ("criterion", "judge")

    criteria: tuple[CriterionScore, ...]
    seed: int
    confidence_level: float

    @property
    def rows(self) -> tuple[ScoreRow, ...]:
        """The scores under all criteria."""
        return tuple(row for one in self.criteria for row in one.rows)

    def get(self, way: str, judge: str | None = None, criterion: str | None = None) -> ScoreRow:
        """The score of one way, judge and criterion; `UsageError` if there is none."""
        for row in self.rows:
            named = criterion is None or row.criterion == criterion
            if (row.way, row.judge) == (way, judge) and named:
                return row
        raise UsageError(
            f"no score {way!r} by judge {judge!r}; the ways are "
            f"{listed(dict.fromkeys(row.way for row in self.rows))}"
        )

    def confusion(self, criterion: str | None = None) -> Result:
        """The confusion matrix of each judge on the labeled items, with intervals.

        `criterion` is needed where there are several; errors are those of `Estimates.confusion`.
        """
        return self._criterion(criterion).look("labeled").confusion()

    def disagreements(self, criterion: str | None = None, confident: float = 0.7) -> Result:
        """The items on which judges and labels, or confident judges, differ.

        As `Estimates.disagreements`, by the method that puts the judges together.
        """
        return self._criterion(criterion).look(None).disagreements(confident)

    def _criterion(self, name: str | None) -> CriterionScore:
        by_name = {one.criterion: one for one in self.criteria}
        if name is None and len(by_name) == 1:
            return self.criteria[0]
        if name not in by_name or name is None:
            raise UsageError(
                f"there are several criteria ({listed(map(str, by_name), 5)}): name one of them, "
                "with --criterion NAME, or --label COL for one of several columns of labels"
            )
        return by_name[name]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return {
            "fewlabels": __version__,
            "seed": self.seed,
            "confidence_level": self.confidence_level,
            "criteria": [one.to_dict() for one in self.criteria],
            "warnings": list(dict.fromkeys(w for one in self.criteria for w in one.warnings)),
        }


def score(
    predictions: Any,
    *,
    method: str | LabelModel = "auto",
    confidence_level: float = 0.95,
    random_state: RandomState = 0,
    workers: int | None = None,
    columns: Any = None,
    positive: Any = None,
    models: Sequence[str] | None = None,
    y_true: Any = None,
    cluster: Any = None,
) -> Scores:
    """Estimate the pass rate, or mean grade, of the system that the classifiers judge.

    Parameters
    ----------
    predictions
        Verdicts of judges and labels of people: `Predictions`, or a path or frame that
        `read_predictions` would read. Of a log with several criteria, or a table with several
        tasks, each is scored.
    method
        By which the judges are put together, as for `fewlabels.estimate`.
    confidence_level, random_state, workers, columns
        As for `fewlabels.estimate`.
    positive
        What passes. None: of two classes the positive one; of grades in numbers the mean grade; of
        other classes the one whose word is a usual one for yes (pass, correct, good ...).
    models
        Only these judges.
    y_true, cluster
        As for `fewlabels.estimate`.

    Raises
    ------
    InputError
        If there are no labels, or the data cannot be read.
    UsageError
        If an argument is not what is said above.

    Examples
    --------
    >>> import numpy as np
    >>> import fewlabels as fl
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(400) < 0.7
    >>> verdict = np.where(rng.random(400) < 0.85, truth, ~truth).astype(int)
    >>> labels = np.where(np.arange(400) < 60, truth, -1)
    >>> found = fl.score(fl.Predictions(votes=verdict[:, None], labels=labels, models=["judge"]))
    >>> row = found.get("prediction-powered", "judge")
    >>> row.low < 0.7 < row.high
    True
    """
    from fewlabels.data.sources import by_criterion

    each: list[tuple[str | None, Any]] = [(None, predictions)]
    if not isinstance(predictions, Predictions) and y_true is None:
        each = by_criterion(predictions)
    more = {"against_rest": False, "cluster": cluster, "tasks": True, "y_true": y_true}
    read = ((name, predictions_of(source, columns, **more)) for name, source in each)
    return scored(read, method, confidence_level, random_state, workers, positive, models)


def scored(
    each: Iterable[tuple[str | None, Predictions]], method: str | LabelModel,
    confidence_level: float, random_state: RandomState, workers: int | None, positive: Any,
    models: Sequence[str] | None, *, confusion: bool = False,
) -> Scores:  # fmt: skip
    """The scores of the items read of each criterion, perhaps with the judges' `confusion`."""
    level, seed = level_of(confidence_level), seed_of(random_state)
    if level is None:
        raise UsageError("`confidence_level` must be between 0 and 1; got None")
    scores = []
    for criterion, items in chain.from_iterable(map(_tasks, each)):
        chosen = items if models is None else items.select_models(list(models))
        few_enough(chosen.n_models, MOST_JUDGES, "scores")
        if chosen.n_classes == 2:
            # The grades go by the order of the classes, which `estimate` ends with the positive.
            chosen = chosen.with_positive(positive)
        task = _Criterion(chosen, criterion, method, level, seed, workers, positive)
        found = task.scored()
        if confusion:
            found = replace(found, confusion=found.look("labeled").confusion().to_dict())
        scores.append(found)
    return Scores(tuple(scores), seed, level)


def _tasks(read: tuple[str | None, Predictions]) -> list[tuple[str | None, Predictions]]:
    """A criterion and its items; where there are several tasks, each is a criterion."""
    _, items = read
    return [read] if items.task is None else [(task, items.of_task(task)) for task in items.tasks]


@dataclass(frozen=True)
class _Criterion:
    """One criterion: its items and labels, and the arguments of `score`."""

    items: Predictions
    criterion: str | None
    method: str | LabelModel
    level: float
    seed: int
    workers: int | None
    positive: Any

    def scored(self) -> CriterionScore:
        items = self.items
        labeled = items.told
        if not labeled.any():
            raise InputError(
                "no item has a label, and a score is corrected by labels of people; label some "
                "items drawn at random, or give labels with --labels FILE"
            )
        grades, what = self._grades()
        warnings = [*items.notes, *strata_facts(items, {})[1]]
        rows = [*self._uncorrected(grades), *self._corrected(grades, warnings)]
        if chosen := selection_facts(items, "labeled", distribution=True)[1]:
            rows = [row if row.way == UNCORRECTED else _assumed(row) for row in rows]
            warnings[:0] = [] if any(w.startswith("shift:") for w in warnings) else chosen
        alone = "" if chosen else "; go by the labels alone"
        judges = tuple(self._help(grades))
        useless = [one.judge for one in judges if one.n_labeled and not one.helps]
        if useless:
            warnings.append(
                f"{listed(map(quoted, useless), 4)}: correlated with the labels by no more than "
                f"1/sqrt(n - 2), the bound below which a judge cannot help{alone}"
            )
        people, pairs = self._people()
        n_labeled = items.size_of(np.flatnonzero(labeled))
        return CriterionScore(
            self.criterion, what, items.size, n_labeled, tuple(rows), judges, people, pairs,
            items.reading, tuple(dict.fromkeys(warnings)), self.look,
        )  # fmt: skip

    def look(self, method: str | LabelModel | None) -> Estimates:
        """Estimates of the judges by a method; None: the one that was asked for."""
        return estimate(
            self.items, method or self.method, ["accuracy"], confidence_level=self.level,
            random_state=self.seed, workers=self.workers,
        )  # fmt: skip

    def _grades(self) -> tuple[Floats, str]:
        """Grade of each class, (K,), and the name of their mean."""
        classes, numbers = [str(c) for c in self.items.classes], numbers_of(self.items.classes)
        if self.positive is None and len(classes) > 2 and numbers is not None:
            return numbers, f"mean grade ({classes[0]} to {classes[-1]})"
        passing = self.positive
        if passing is None:
            yes = [c for c in classes if polarity(c) is True]
            passing = self.items.positive if len(classes) == 2 else yes[0] if yes else None
            if passing is None or (len(classes) > 2 and len(yes) > 1):
                raise UsageError(
                    f"the classes are {listed(map(quoted, classes), 6)}: say which of them passes "
                    "with --positive CLASS"
                )
        turned = self.items.with_positive(passing)
        if str(turned.classes[-1]) not in classes:
            raise UsageError(f"--positive {quoted(passing)} is no class")
        grades = np.array([float(c == str(turned.classes[-1])) for c in classes])
        return grades, f"share of {quoted(str(turned.classes[-1]))}"

    def _metric(self, grades: Floats) -> Metric:
        """The mean grade of the labels, whatever the classifier says: linear in the labels."""

        def finish(state: Floats) -> Floats:
            label_mass = Margins(*state).present
            out: Floats = ratio(grades @ label_mass, label_mass.sum(axis=0))
            return out

        def per_item(view: ScoreView) -> Floats:
            assert view.hard is not None
            return np.broadcast_to(grades, (len(view.hard), len(grades)))

        bounds = (float(grades.min()), float(grades.max()))
        return Metric(
            "score", "mean grade of the labels", 0, bounds, "hard", Confusion(), finish,
            per_item=per_item,
        )  # fmt: skip

    def _uncorrected(self, grades: Floats) -> Iterator[ScoreRow]:
        """The mean grade that each judge gives, with the sampling error alone."""
        rng = np.random.default_rng([self.seed, 1])
        for j, name in enumerate(self.items.models):
            hard, there = self._verdicts(j)
            if not there.any():
                continue
            provided, times = grades[hard[there]], (self.items.weight * self.items.times)[there]
            # The standard error of a mean of independent items.
            value = float(provided @ times / times.sum())
            spread = np.sqrt(((provided - value) ** 2) @ times**2) / times.sum()
            drawn = value + spread * rng.standard_normal(_DRAWS)
            low, high = ends(np.clip(drawn, grades.min(), grades.max()), self.level)
            yield ScoreRow(
                self.criterion, UNCORRECTED, name, value, float(low), float(high), self.level,
                "assumption",
            )  # fmt: skip

    def _corrected(self, grades: Floats, warnings: list[str]) -> Iterator[ScoreRow]:
        metric, items = self._metric(grades), self.items
        # Of all items, also those that a judge has not judged.
        everyone = items.of_classifier("everyone", votes=np.zeros(items.n_items, dtype=np.int64))
        yield self._row(everyone, "labeled", metric, LABELS, None, warnings)
        labels, unlike = self._one_label(), list[str]()
        for j, name in enumerate(items.models):
            hard, there = self._verdicts(j)
            if not there.any() or not (there & (labels >= 0)).any():
                continue
            # Where the judge says nothing its mean stands: the score is that of all items.
            verdicts = np.eye(items.n_classes)[hard[there]]
            p = np.tile(verdicts.mean(axis=0), (len(hard), 1, 1))
            p[there, 0] = verdicts
            judged = items.with_evidence(labels).of_classifier(name, p)
            row = self._row(judged, AutoEval(), metric, POWERED, name, warnings)
            if silence := _silence(name, there, labels >= 0):
                unlike.append(silence)
            yield _assumed(row) if silence else row
        if items.n_models > 1:
            row = self._row(items, self.method, metric, TOGETHER, None, warnings)
            yield _assumed(row) if unlike else row
        warnings[:0] = unlike

    def _row(
        self, items: Predictions, method: str | LabelModel, metric: Metric, way: str,
        judge: str | None, warnings: list[str],
    ) -> ScoreRow:  # fmt: skip
        estimates = estimate(
            items, method, [metric], confidence_level=self.level, random_state=self.seed,
            workers=self.workers,
        )  # fmt: skip
        # The posterior is the same for all judges; who has judged most speaks of most items.
        row = estimates.rows[int(items.has_hard.sum(axis=0).argmax())]
        if way == TOGETHER:
            warnings += [w for w in estimates.warnings if w not in warnings]
        return ScoreRow(
            self.criterion, way, judge, row.value, row.low, row.high, self.level, str(row.status)
        )

    def _one_label(self) -> Any:
        """The label of each item, (n,); of several people's one at random, whose mean is theirs."""
        labels, counts = self.items.labels.copy(), self.items.histogram
        if counts is None:
            return labels
        rng = np.random.default_rng([self.seed, 2])
        several = np.flatnonzero((labels < 0) & counts.any(axis=1))
        share = np.cumsum(counts[several], axis=1) / counts[several].sum(axis=1, keepdims=True)
        labels[several] = (rng.random((len(several), 1)) > share).sum(axis=1)
        return labels

    def _verdicts(self, j: int) -> tuple[Any, Any]:
        """Hard predictions of one judge, and where there are some, (n,)."""
        hard = self.items.hard[:, j]
        return hard, hard >= 0

    def _mean_label(self, grades: Floats) -> Floats:
        """Grade that people give each item, (n,); NaN where nobody does."""
        items = self.items
        out = np.full(items.n_items, np.nan)
        if items.histogram is not None:
            total = items.histogram.sum(axis=1)
            out[total > 0] = (items.histogram @ grades)[total > 0] / total[total > 0]
        out[items.labeled] = grades[items.labels[items.labeled]]
        return out

    def _help(self, grades: Floats) -> Iterator[Help]:
        label = self._mean_label(grades)
        for j, name in enumerate(self.items.models):
            hard, there = self._verdicts(j)
            both = there & ~np.isnan(label) & (self.items.weight > 0)
            n, rho = int(both.sum()), float("nan")
            x, y = grades[hard[both]], label[both]
            if n >= _FEW and np.ptp(x) > 0 and np.ptp(y) > 0:
                moments = np.cov(x, y, aweights=self.items.weight_of_labels[both])
                rho = float(moments[0, 1] / np.sqrt(moments.diagonal().prod()))
            bound = 1 / np.sqrt(n - 2) if n > 2 else float("nan")
            yield Help(name, rho, n, float(bound), bool(rho > bound))

    def _people(self) -> tuple[Agreement | None, dict[str, float]]:
        """Agreement of people, and how often each judge says what one of them says."""
        counts = self.items.histogram
        if counts is None or not (counts.sum(axis=1) >= 2).any():
            return None, {}
        graded = self.items.n_classes > 2 and numbers_of(self.items.classes) is not None
        people = agreement(
            counts, scale="ordinal" if graded else "nominal", confidence_level=self.level,
            random_state=self.seed,
        )  # fmt: skip
        pairs = {}
        several = counts.sum(axis=1) >= 2
        share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        for j, name in enumerate(self.items.models):
            hard, there = self._verdicts(j)
            rows = np.flatnonzero(there & several)
            if len(rows):
                pairs[name] = float(share[rows, hard[rows]].mean())
        return people, pairs


def _assumed(row: ScoreRow) -> ScoreRow:
    return row._replace(status="assumption") if row.status == "ok" else row


def _silence(judge: str, there: Bools, labeled: Bools) -> str | None:
    """Warning if a judge lacks verdicts on different shares of labeled and other items."""
    # They are then of different items: a log lacks items that were neither scored nor labeled.
    here, others = there[labeled], there[~labeled]
    if not len(here) or not len(others):
        return None
    shares = np.array([1 - here.mean(), 1 - others.mean()])
    pooled = 1 - there.mean()
    error = np.sqrt(pooled * (1 - pooled) * (1 / len(here) + 1 / len(others)))
    if abs(shares[0] - shares[1]) <= _UNLIKE * error:
        return None
    return (
        f"{quoted(judge)} has no verdict on {shares[0]:.0%} of the labeled and {shares[1]:.0%} of "
        "the other items: the labels speak of other items than the verdicts; go by the labels "
        "alone, or let the judge score every item"
    )
