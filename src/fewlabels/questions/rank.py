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
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, ndtr

from fewlabels.checks.arguments import RandomState, seed_of, some_level, whole
from fewlabels.data.comparisons import BY_PEOPLE, CLASSES, Comparisons, Verdicts, read_comparisons
from fewlabels.errors import Status, gravest_first, listed, quoted
from fewlabels.estimates import Estimates, GroupSize
from fewlabels.evaluation.evaluator import Evaluator, Measured
from fewlabels.evaluation.groups import Group
from fewlabels.evaluation.input_facts import selection_facts
from fewlabels.evaluation.pair_draws import ORDER, PAIR_METRICS, WIN_RATE, PairEvaluator
from fewlabels.kernels.arrays import Frozen, Ints
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

    _page = "ranking"
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
    random_state: RandomState = 0,
    workers: int | None = None,
    size: int = 10,
    first: str | None = None,
    second: str | None = None,
    winner: str | None = None,
    judge: str | None = None,
    people: str | Sequence[str] = (),
    label: str | None = None,
    labels: Any = None,
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
        values are verdicts are judges too, and so are `y__` columns.
    people
        Names, of those in `judge` or of columns, that are people; by default those whose name says
        so (human, expert, annotator ...). Their verdicts are the labels.
    label
        Column of people's verdicts beside those of judges.
    labels
        People's verdicts in a file or frame of their own, as for `fewlabels.read_predictions`.
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
            cluster=(cluster,) if isinstance(cluster, str) else cluster, labels=labels,
        )  # fmt: skip
    by, level = ("first", "second"), float(confidence_level)
    question = Question(method, "accuracy", by, level, seed=seed_of(random_state))
    with using_workers(workers):
        return _ranking(held, question, size)


@dataclass(frozen=True)
class _Inferred:
    """Contestants as classifiers under the posterior of verdicts; comparisons as they are judged.

    A contestant is a classifier that says that it wins itself.
    """

    evaluator: PairEvaluator
    items: Predictions
    setup: Setup
    question: Question

    @staticmethod
    def of(
        league: Comparisons, question: Question, voiced: Predictions | None = None,
        status: Status | None = None,
    ) -> _Inferred:  # fmt: skip
        """The method is fitted to the comparisons with all voices."""
        voiced, names = league.items if voiced is None else voiced, league.contestants
        setup = question.setup(voiced)
        posterior = setup.fit(question, voiced).posterior(voiced)
        posterior = replace(posterior, per_model=(), shares={}, status=status or posterior.status)
        items = league.items.as_histograms() if setup.distribution else league.items
        rows, votes = np.arange(items.n_items), np.full((items.n_items, len(names)), -1)
        votes[rows, league.first], votes[rows, league.second] = 0, 1
        contestants = Predictions(
            votes=votes, labels=None if items.histogram is not None else items.labels,
            histogram=items.histogram, weight=items.weight, classes=list(CLASSES), models=names,
            reading=items.reading,
        ).in_clusters(items.clusters)  # fmt: skip
        evaluator = PairEvaluator(
            contestants, posterior, PAIR_METRICS, "population", question.confidence_level,
            first=league.first, second=league.second,
        )  # fmt: skip
        return _Inferred(evaluator, items, setup._replace(metrics=PAIR_METRICS), question)

    @cached_property
    def measured(self) -> dict[str, Measured]:
        """All metrics of the contestants, and the order effect."""
        return self.evaluator.with_order(np.arange(self.items.n_items))

    def win_rates(self) -> dict[str, Interval]:
        """Win rates by contestant."""
        return self._shares(self.measured[WIN_RATE], self.evaluator.predictions.models)

    def agreement(self) -> dict[str, Interval]:
        """How often each judge says what people would."""
        chosen, level = {"accuracy": METRICS["accuracy"]}, self.question.confidence_level
        judged = Evaluator(self.items, self.evaluator.posterior, chosen, "population", level)
        found = judged.measure(np.arange(self.items.n_items))
        return self._shares(found["accuracy"], self.items.models)

    def order(self) -> tuple[Interval, float]:
        """How often the first of two equals is preferred, and whether that may be chance."""
        order = self.measured[ORDER]
        share = Measured.from_draws(expit(order.value), expit(order.draws))
        p_value = 2 * float(ndtr(-abs(order.value[0]) / order.draws.std()))
        return self._shares(share, [ORDER])[ORDER], p_value

    def _shares(self, measured: Measured, names: Sequence[str]) -> dict[str, Interval]:
        level, bounds = self.question.confidence_level, (0.0, 1.0)
        assert level is not None
        ends = interval(measured.value, measured.draws, level, bounds)
        rows = np.stack([measured.value, *ends], axis=1).tolist()
        return {name: Interval(*row) for name, row in zip(names, rows, strict=True)}

    def estimates(self, notes: Sequence[str], n_labeled: int, checks: Checks) -> Estimates:
        """Estimates of all contestants, guarded by people's verdicts."""
        evaluator, posterior = self.evaluator, self.evaluator.posterior
        contestants, rows = evaluator.predictions, np.arange(self.items.n_items)
        shown = {name: self.measured[name] for name in PAIR_METRICS}
        estimates = build_estimates(
            self.question, self.setup, evaluator, [Group(None, rows)], lambda _: shown, contestants,
            [*notes, *posterior.warnings], sizes=(GroupSize(None, len(rows), n_labeled),),
            n_annotated=contestants.n_annotated, predictions=contestants, judged=contestants,
            label_posterior=posterior, judged_by=posterior, diagnostics=posterior.diagnostics,
            checks=checks,
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


def _ranking(held: Comparisons, question: Question, n_next: int) -> Ranking:
    counts, alone_by_labels = held.items.histogram, replace(question, method="labeled")
    informed = held.items.labeled if counts is None else counts.any(axis=1)
    n_labeled, notes = int(informed.sum()), [*held.items.notes]
    alone: dict[str, dict[str, Interval]] = {}
    picks: tuple[NextComparison, ...] = ()
    checks = Checks({}, (), True, (), (), False)
    step("inferring verdicts")
    agreement: dict[str, Interval] = {}
    if not n_labeled:
        seen = _as_seen(held, held.verdicts)
        inferred = _Inferred.of(seen, alone_by_labels, status=Status.ASSUMPTION)
        notes.append(_WORD)
    elif not held.judges:
        inferred = _Inferred.of(held, alone_by_labels)
    else:
        seen = _as_seen(held, held.verdicts)
        inferred = _Inferred.of(held, question, _with_strengths(held, seen))
        alone = {
            way: _Inferred.of(part, alone_by_labels).win_rates()
            for way, part in ((JUDGES, seen), (PEOPLE, held))
        }
        picks = _next(held, inferred.evaluator, np.flatnonzero(~informed), n_next)
        agreement = inferred.agreement()
        found, said = selection_facts(_by_contestant(held), "auto", distribution=True)
        checks = checks._replace(records=found, sentences=said, random=not found)
    n_people = n_labeled if counts is None else int(counts.sum())
    judges = []
    for j, name in enumerate(held.judges):
        own = held.verdicts.take(held.verdicts.judge == j)
        verdicts = np.full((2, held.items.n_items), -1)
        verdicts[own.swapped.astype(int), own.row] = own.turned
        both = (verdicts >= 0).all(axis=0)
        alike = float((verdicts[0] == verdicts[1])[both].mean()) if both.any() else float("nan")
        order = _Inferred.of(_as_seen(held, own), alone_by_labels).order()
        value = agreement.get(name, UNDEFINED)
        judges.append(Voice(name, len(own.row), value, *order, int(both.sum()), alike))
    return Ranking(
        inferred.estimates(notes, n_labeled, checks), tuple(judges),
        Voice("people", n_people, UNDEFINED, *inferred.order()), alone, picks,
    )  # fmt: skip


def _as_seen(held: Comparisons, verdicts: Verdicts) -> Comparisons:
    """Verdicts of judges as comparisons of their own, in the order that each was seen in.

    The verdicts are the labels; those on one comparison share its weight, and go together.
    """
    items, (row, _, said, swapped) = held.items, verdicts
    a, b = held.first[row], held.second[row]
    first, second = np.where(swapped, b, a), np.where(swapped, a, b)
    names, times = np.array(held.contestants, dtype=object), np.bincount(row)
    seen = Predictions(
        votes=said[:, None], labels=said, classes=list(CLASSES), reading=items.reading,
        groups={"first": names[first], "second": names[second]},
        weight=items.weight[row] / times[row],
        clusters={"comparison": row} if (times > 1).any() else None,
    )  # fmt: skip
    if items.clusters:
        seen = seen.in_clusters({c: k[row] for c, k in items.clusters.items() if c != BY_PEOPLE})
    nobody = verdicts.take(slice(0))
    return Comparisons(seen, held.contestants, first, second, held.rows[row], (), nobody)


def _by_contestant(held: Comparisons) -> Predictions:
    """What judges say of each contestant (1 won, -1 lost), as scores of the comparisons.

    Less the mean of the two who met there: who meets whom may be chosen, but not by who won.
    """
    items, size = held.items, len(held.contestants)
    rows, turn = np.arange(items.n_items), np.where(held.first < held.second, 1.0, -1.0)
    pair = np.minimum(held.first, held.second) * size + np.maximum(held.first, held.second)
    said = np.array([1.0, -1.0, 0.0, 0.0])[items.hard].sum(axis=1)
    won = turn * said / np.maximum((items.hard >= 0).sum(axis=1), 1)
    won -= (np.bincount(pair, won) / np.maximum(np.bincount(pair), 1))[pair]
    scores = np.zeros((items.n_items, size))
    scores[rows, held.first], scores[rows, held.second] = turn * won, -turn * won
    return Predictions(
        scores=scores, labels=np.where(items.told, 0, -1), classes=["judged", "other"],
        models=[f"judges on {name}" for name in held.contestants], weight=items.weight,
    ).in_clusters({c: k for c, k in items.clusters.items() if c != BY_PEOPLE})  # fmt: skip


def _with_strengths(held: Comparisons, seen: Comparisons) -> Predictions:
    """The comparisons with a voice more: what the judges' strengths foretell."""
    items = held.items
    assert items.votes is not None
    both = np.column_stack([seen.first, seen.second])
    pairs, code = np.unique(both, axis=0, return_inverse=True)
    mass = np.full((len(pairs), 3, 1), _PRIOR)
    np.add.at(mass[:, :, 0], (code.reshape(-1), seen.items.labels), seen.items.weight)
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


def _next(
    held: Comparisons, evaluator: PairEvaluator, rows: Ints, size: int
) -> tuple[NextComparison, ...]:
    """Comparisons whose verdict by people would tell most of all win rates."""
    posterior = evaluator.posterior
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
