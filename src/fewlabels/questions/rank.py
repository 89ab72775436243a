"""Who is best, by comparisons of two: judges' verdicts on all, people's on a few.

People's verdicts on all comparisons are inferred as labels are anywhere (`pipeline`): from what the
judges say, and from one more voice, the strengths that the judges' verdicts add up to, since a
verdict for the weaker of two is likelier a mistake; each contestant may be liked by judges more
than by people (`methods/group_curves.py`). Contestants are then estimated and compared as
classifiers are, by metrics of their own (`evaluation/pair_draws.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, ndtr

from fewlabels.checks.arguments import seed_of, some_level, whole
from fewlabels.data.comparisons import CLASSES, TURNED, Comparisons, Verdicts, read_comparisons
from fewlabels.errors import Status, gravest_first, listed, quoted
from fewlabels.estimates import Estimates, GroupSize
from fewlabels.evaluation.evaluator import Evaluator, Measured
from fewlabels.evaluation.groups import Group
from fewlabels.evaluation.pair_draws import ORDER, PAIR_METRICS, WIN_RATE, PairEvaluator
from fewlabels.kernels.arrays import Floats, Frozen, Ints
from fewlabels.kernels.blocks import step, using_workers
from fewlabels.kernels.interval_draws import UNDEFINED, Interval, interval, spelled
from fewlabels.kernels.pairwise import both_orders, strengths
from fewlabels.methods.base import LabelModel
from fewlabels.metrics.registry import METRICS
from fewlabels.pipeline import Checks, Question, Setup, build_estimates
from fewlabels.predictions import Predictions
from fewlabels.questions.next_items import CANDIDATES, Target, greedy
from fewlabels.report.shown import Result, plain_values

_PRIOR = 0.1
"""Verdicts of each kind added to every pair for the strengths that are a voice."""

JUDGES, PEOPLE = "judges alone", "people alone"
_WORD = (
    "assumption: no verdict of people, so those of judges are counted in their place; have people "
    "judge some comparisons drawn at random"
)


class Voice(NamedTuple):
    """A judge, or people: how many verdicts, how often those are people's, and the order.

    `order` is how often the first of two equals is preferred, where one is, and `p_value` of the
    hypothesis that it does not matter; NaN where no pair stands in both orders. `consistent` is the
    share of the `n_both_orders` comparisons seen in both orders that were judged alike.
    """

    judge: str
    n_verdicts: int
    agreement: Interval
    order: Interval
    p_value: float
    n_both_orders: int = 0
    consistent: float = float("nan")


class NextComparison(NamedTuple):
    """A comparison to ask people about: row of the file (from 0), and who is in it.

    `gain` is the share of the variance of all win rates that their verdict is expected to remove.
    """

    row: int
    first: str
    second: str
    gain: float


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(Frozen, Result):
    """What `fewlabels.rank` returns.

    `estimates` are of the contestants, by win_rate (against the average opponent, a tie being
    half), bradley_terry (log strength, of mean 0) and elo (1000 + 400 / ln(10) times it).
    `alone` has win rates by contestant of the judges alone, and of people alone.
    """

    _page, _text = "ranking", "render_ranking"
    _row_fields = ("model", "metric", "value", "low", "high", "confidence_level", "status")

    estimates: Estimates
    judges: tuple[Voice, ...]
    people: Voice
    alone: Mapping[str, Mapping[str, Interval]]
    next: tuple[NextComparison, ...]

    @property
    def rows(self) -> Any:
        """A row per contestant and metric."""
        return self.estimates.rows

    def next_columns(self) -> dict[str, list[Any]]:
        """The comparisons that people should judge next, by column; rows of the file from 1."""
        rows = [one._asdict() | {"row": one.row + 1} for one in self.next]
        return {name: [row[name] for row in rows] for name in NextComparison._fields}

    def to_dict(self) -> dict[str, Any]:
        """The JSON of the command line as a dictionary; NaN and infinities are None."""
        describe = self.estimates.describe
        assert describe is not None
        own = {
            **describe(self.estimates, ["best", "metric_info"]),
            "judges": [spelled(one._asdict().items()) for one in self.judges],
            "people": spelled(self.people._asdict().items()),
            "alone": {way: spelled(by.items()) for way, by in self.alone.items()},
            "next": [one._asdict() for one in self.next],
        }
        return self.estimates.to_dict() | {n: plain_values(v) for n, v in own.items()}


def rank(
    comparisons: Any,
    *,
    method: str | LabelModel = "auto",
    confidence_level: float = 0.95,
    random_state: int | None = 0,
    workers: int | None = None,
    size: int = 10,
    first: str | None = None,
    second: str | None = None,
    winner: str | None = None,
    judge: str | None = None,
    people: str | Sequence[str] = (),
    label: str | None = None,
    item: str | None = None,
    cluster: str | Sequence[str] = (),
    weight: str | None = None,
) -> Ranking:
    """Rank what was compared two by two, by verdicts of judges and a few of people.

    Parameters
    ----------
    comparisons
        A path or frame with a row per comparison, or per comparison and judge: who was presented
        first and second (model_a, model_b), and who won: model_a, model_b, tie, tie (bothbad), A,
        B, C, or the name of one of the two.
    method
        By which people's verdicts are inferred from the judges', as for `fewlabels.estimate`;
        "labeled" goes by people's alone.
    confidence_level, random_state, workers
        As for `fewlabels.estimate`.
    size
        How many comparisons to propose for people to judge next; 0 for none.
    first, second
        Columns of the contestants; by default model_a and model_b, or names like these.
    winner, judge
        Column of the verdicts, and, of one row per judge, of who judged. Other columns whose
        values are verdicts are judges too, and so are y__ columns.
    people
        Names, of those in `judge` or of columns, that are people; by default those whose name says
        so (human, expert, annotator ...). Their verdicts are the labels.
    label
        Column of people's verdicts beside those of judges.
    item
        Column that names the prompt of a comparison; "A,B": two that name it together.
    cluster
        Columns whose values say which comparisons belong together; by default the prompt, where
        it recurs.
    weight
        Column of sampling weights.

    Raises
    ------
    UsageError, InputError
        One line that says what is wrong and how to mend it.

    Examples
    --------
    >>> import fewlabels as fl
    >>> import pyarrow as pa
    >>> table = {
    ...     "model_a": ["ant", "bee", "ant", "cow"] * 10,
    ...     "model_b": ["bee", "ant", "cow", "bee"] * 10,
    ...     "winner": ["model_a", "model_b", "tie", "model_b"] * 10,
    ... }
    >>> ranking = fl.rank(pa.table(table))
    >>> ranking.estimates.get("ant", "win_rate").value > 0.5
    True
    """
    some_level(confidence_level)
    size = whole("size", size, 0)
    held = comparisons
    if not isinstance(comparisons, Comparisons):
        held = read_comparisons(
            comparisons, first=first, second=second, winner=winner, judge=judge, label=label,
            people=(people,) if isinstance(people, str) else people, item=item, weight=weight,
            cluster=(cluster,) if isinstance(cluster, str) else cluster,
        )  # fmt: skip
    with using_workers(workers):
        return _Task(held, method, float(confidence_level), seed_of(random_state)).ranking(size)


class _League(NamedTuple):
    """Comparisons as items, and who is first and second in each, (n,)."""

    items: Predictions
    first: Ints
    second: Ints


class _Inferred(NamedTuple):
    """Contestants as classifiers, by the posterior of verdicts; comparisons as they are judged."""

    evaluator: PairEvaluator
    items: Predictions
    setup: Setup
    question: Question

    @property
    def measured(self) -> dict[str, Measured]:
        """All metrics of the contestants, and the order effect."""
        return self.evaluator.with_order(np.arange(self.items.n_items))


@dataclass(frozen=True)
class _Task:
    """Comparisons, and the arguments of `rank`."""

    held: Comparisons
    method: str | LabelModel
    level: float
    seed: int

    def ranking(self, n_next: int) -> Ranking:
        held = self.held
        league = _League(held.items, held.first, held.second)
        counts = held.items.histogram
        informed = held.items.labeled if counts is None else counts.any(axis=1)
        n_labeled = int(informed.sum())
        alone: dict[str, Mapping[str, Interval]] = {}
        picks: tuple[NextComparison, ...] = ()
        step("inferring verdicts")
        if not n_labeled:
            inferred = self._inferred(self._spoken(held.verdicts), status=Status.ASSUMPTION)
        elif not held.judges:
            inferred = self._inferred(league)
        else:
            spoken = self._spoken(held.verdicts)
            inferred = self._inferred(league, self._with_strengths(spoken), self.method)
            for way, part in ((JUDGES, spoken), (PEOPLE, league)):
                found = self._inferred(part).measured[WIN_RATE]
                ends = map(self._interval, found.value, found.draws.T)
                alone[way] = dict(zip(held.contestants, ends, strict=True))
            picks = self._next(inferred.evaluator, np.flatnonzero(~informed), n_next)
        measured = inferred.measured
        estimates = self._estimates(inferred, measured, n_labeled)
        agreed = None
        if held.judges and n_labeled:
            chosen, posterior = {"accuracy": METRICS["accuracy"]}, inferred.evaluator.posterior
            judged = Evaluator(inferred.items, posterior, chosen, "population", self.level)
            agreed = judged.measure(np.arange(inferred.items.n_items))["accuracy"]
        judges = tuple(self._judge(j, agreed) for j in range(len(held.judges)))
        n_people = n_labeled if counts is None else int(counts.sum())
        people = Voice("people", n_people, UNDEFINED, *self._order(measured[ORDER]))
        return Ranking(estimates, judges, people, alone, picks)

    # --- what people would say ----------------------------------------------------------------

    def _inferred(
        self, league: _League, voiced: Predictions | None = None,
        method: str | LabelModel = "labeled", status: Status | None = None,
    ) -> _Inferred:  # fmt: skip
        """The posterior of verdicts, fitted to the comparisons with all voices, and contestants.

        A contestant is a classifier that says that it wins itself.
        """
        (items, first, second), names = league, self.held.contestants
        voiced = items if voiced is None else voiced
        by = ("first", "second")
        question = Question(method, "accuracy", by, self.level, random_state=self.seed)
        setup = question.setup(voiced)
        posterior = setup.fit(question, voiced).posterior(voiced)
        posterior = replace(posterior, per_model=(), shares={}, status=status or posterior.status)
        items = items.as_histograms() if setup.distribution else items
        rows, votes = np.arange(items.n_items), np.full((items.n_items, len(names)), -1)
        votes[rows, first], votes[rows, second] = 0, 1
        contestants = Predictions(
            votes=votes, labels=None if items.histogram is not None else items.labels,
            histogram=items.histogram, weight=items.weight, classes=list(CLASSES), models=names,
            reading=self.held.items.reading,
        ).in_clusters(items.clusters)  # fmt: skip
        evaluator = PairEvaluator(
            contestants, posterior, PAIR_METRICS, "population", self.level,
            first=first, second=second,
        )  # fmt: skip
        return _Inferred(evaluator, items, setup._replace(metrics=PAIR_METRICS), question)

    def _with_strengths(self, spoken: _League) -> Predictions:
        """The comparisons with a voice more: what the judges' strengths foretell."""
        held, items = self.held, self.held.items
        assert items.votes is not None
        both = np.column_stack([spoken.first, spoken.second])
        pairs, code = np.unique(both, axis=0, return_inverse=True)
        mass = np.full((len(pairs), 3, 1), _PRIOR)
        np.add.at(mass[:, :, 0], (code.reshape(-1), spoken.items.labels), spoken.items.weight)
        order = both_orders(mass[:, :, 0], pairs.T)
        fit = strengths(mass, pairs.T, len(held.contestants), order=order)
        a, b = fit.strength[held.first, 0], fit.strength[held.second, 0]
        p = np.exp(np.stack([a, b, (a + b) / 2 + fit.tie[0]], axis=1))
        n, m = items.n_items, items.n_models
        block = np.full((n, m + 1, 3), np.nan)
        block[:, m] = p / p.sum(axis=1, keepdims=True)
        return Predictions(
            block, None if items.histogram is not None else items.labels,
            votes=np.column_stack([items.votes, np.full(n, -1)]), histogram=items.histogram,
            groups=items.groups, weight=items.weight, classes=items.classes,
            models=[*items.models, "strengths by the judges"],
        ).in_clusters(items.clusters)  # fmt: skip

    def _spoken(self, verdicts: Verdicts) -> _League:
        """Verdicts of judges as comparisons of their own, in the order that each was seen in.

        The verdicts are the labels; those on one comparison share its weight, and go together.
        """
        held, (row, _, said, swapped) = self.held, verdicts
        a, b = held.first[row], held.second[row]
        first, second = np.where(swapped, b, a), np.where(swapped, a, b)
        names, times = np.array(held.contestants, dtype=object), np.bincount(row)
        items = Predictions(
            votes=said[:, None], labels=said, classes=list(CLASSES),
            groups={"first": names[first], "second": names[second]},
            weight=held.items.weight[row] / times[row],
            clusters={"comparison": row} if (times > 1).any() else None,
        )  # fmt: skip
        if held.items.clusters:
            items = items.in_clusters({c: k[row] for c, k in held.items.clusters.items()})
        return _League(items, first, second)

    # --- what is said of contestants and judges -----------------------------------------------

    def _estimates(
        self, inferred: _Inferred, measured: Mapping[str, Measured], n_labeled: int
    ) -> Estimates:
        """Estimates of all contestants, guarded by people's verdicts."""
        evaluator, _, setup, question = inferred
        contestants, posterior = evaluator.predictions, evaluator.posterior
        rows = np.arange(contestants.n_items)
        shown = {name: measured[name] for name in PAIR_METRICS}
        notes = [*self.held.items.notes, *([] if n_labeled else [_WORD]), *posterior.warnings]
        estimates = build_estimates(
            question, setup, evaluator, [Group(None, rows)], lambda _: shown, contestants, notes,
            sizes=(GroupSize(None, len(self.held.rows), n_labeled),),
            n_annotated=contestants.n_annotated, predictions=contestants, judged=contestants,
            label_posterior=posterior, judged_by=posterior, diagnostics=posterior.diagnostics,
            checks=Checks({}, (), True, (), (), False),
        )  # fmt: skip
        fewest, *others = evaluator.equals(rows)
        if not others:
            return estimates
        changed = (
            row._replace(status=Status.NOT_CONVERGED)
            if row.metric != WIN_RATE and row.status is Status.UNDEFINED
            else row
            for row in estimates.rows
        )
        why = (
            f"not-converged: {listed(map(quoted, fewest), 4)} and the others have not both won and "
            "lost against each other, so strengths have no common scale; win rates have one"
        )
        said = [w for w in estimates.warnings if not w.startswith(("undefined: b", "undefined: e"))]
        return replace(estimates, rows=tuple(changed), warnings=tuple(gravest_first([why, *said])))

    def _interval(self, value: Floats, draws: Floats) -> Interval:
        low, high = interval(value, draws, self.level, (0.0, 1.0))
        return Interval(float(value), float(low), float(high))

    def _order(self, effect: Measured) -> tuple[Interval, float]:
        """How often the first of two equals is preferred, and whether that may be chance."""
        value, draws = effect.value[0], effect.draws[:, 0]
        if np.isnan(value):
            return UNDEFINED, float("nan")
        spread = max(float(draws.std()), np.finfo(float).tiny)
        return self._interval(expit(value), expit(draws)), 2 * float(ndtr(-abs(value) / spread))

    def _judge(self, j: int, agreed: Measured | None) -> Voice:
        """What a judge's verdicts are worth; `agreed` is how often each says what people would."""
        held, name = self.held, self.held.judges[j]
        own = held.verdicts.take(held.verdicts.judge == j)
        agreement, place = UNDEFINED, held.items.place.get(name)
        if agreed is not None and place is not None:
            agreement = self._interval(agreed.value[place], agreed.draws[:, place])
        seen = np.full((2, held.items.n_items), -1)
        seen[own.swapped.astype(int), own.row] = np.where(own.swapped, TURNED[own.said], own.said)
        both = (seen >= 0).all(axis=0)
        alike = float((seen[0] == seen[1])[both].mean()) if both.any() else float("nan")
        order = self._order(self._inferred(self._spoken(own)).measured[ORDER])
        return Voice(name, len(own.row), agreement, *order, int(both.sum()), alike)

    def _next(self, evaluator: PairEvaluator, rows: Ints, size: int) -> tuple[NextComparison, ...]:
        """Comparisons whose verdict by people would tell most of all win rates."""
        held, posterior = self.held, evaluator.posterior
        if not posterior.infers or not len(rows) or not size:
            return ()
        rates = np.nan_to_num(evaluator.expected_win_rates(np.arange(len(held.rows)))).T
        rows = rows[np.argsort(held.items.keys[rows])[:CANDIDATES]]
        n = rates.shape[1]
        # The label's class in question: that the likelier of the two wins.
        p = posterior.interval_draws.block(np.arange(n) % posterior.interval_draws.size, rows)
        wins = p[:, 0].mean(axis=1) >= p[:, 1].mean(axis=1)
        chance = np.where(wins[:, None], p[:, 0], p[:, 1])
        away = rates - rates.mean(axis=1, keepdims=True)
        covariance = away @ (chance - chance.mean(axis=1, keepdims=True)).T / n
        total = max(float((away**2).mean(axis=1).sum()), np.finfo(float).tiny)
        picks, removed = greedy(Target(rows, covariance, chance, total), size)
        names = held.contestants
        return tuple(
            NextComparison(
                int(held.rows[i]), names[held.first[i]], names[held.second[i]], float(gain / total)
            )
            for i, gain in zip(rows[picks], removed, strict=True)
        )
