"""Which items to label next, for any question, and with which probability each was drawn.

Learning a label y_i (is item i of class c_i, or not?) takes Cov(f, y_i)^2 / Var(y_i) from the
variance of a number f: by the law of total variance that is Var(E[f | y_i]), and E[f | y_i] is a
line, since y_i has two values. With h_i = P(y_i = 1 | parameters) and f the number expected under
parameters,

    Cov(f, y_i) = Cov(f, h_i) + E[h_i (1 - h_i) df/dy_i]:

what the label tells of the parameters, and what the item itself adds to the number. A question is
several such numbers (a metric of each classifier, a difference, the places of a curve), whose
variances add up; what is chosen is conditioned on, f and the labels taken as jointly normal, so
that no two picks of a batch ask the same.

Three orders, each with the probability q with which an item was drawn from those that were left:

    random        q = 1 / left
    stratified    in the order of group and pooled prediction the items that are left fall into ten
                  equal parts; every ten draws visit each part once, in a random order. Before that
                  order is drawn all items are equally likely: q = 1 / left
    informative   q = .5 / left + .5 g_i^2 / sum g^2, g_i the variance that item i takes: half of
                  the draws are stratified ones, so that no item is impossible

Labels enter only through the posterior: what is chosen depends on scores, votes and labels that
are known, so a label model's likelihood is as it was (ignorable selection; Rubin 1976). Who
averages the labels weighs them by 1 / q (`kernels/importance.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal, NamedTuple

import numpy as np

from fewlabels.errors import InputError, UsageError, unknown
from fewlabels.evaluation.anytime import pooled
from fewlabels.evaluation.evaluator import Evaluator
from fewlabels.evaluation.groups import groups_by_column
from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.counter_based import uniforms
from fewlabels.methods.base import LabelModel, refuse_multiplicity
from fewlabels.methods.registry import resolve as resolve_method
from fewlabels.metrics.base import Metric
from fewlabels.metrics.plans import view_of
from fewlabels.metrics.registry import resolve as resolve_metrics
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

Order = Literal["random", "stratified", "informative"]
ORDERS: tuple[Order, ...] = ("random", "stratified", "informative")

CANDIDATES = 5_000
"""Most candidates, chosen by key if more items are unlabeled."""

MOST_DRAWS = 400
PARTS = 10
"""Equal parts of the items; so many draws take one from each."""

STRATIFIED = 0.5
"""Share of stratified draws among informative ones."""


def least_share(probability: Floats, left: Ints) -> float:
    """The least that q times the number left can be, in these orders or another one."""
    share = probability * left
    return 1.0 if np.allclose(share, 1.0) else min(STRATIFIED, float(share.min()))


SHARPNESS = 2.0
"""Power of the gains to which informative draws are proportional. It and the share above were
chosen among five pairs by errors of accuracy on thirty simulated sets of five classifiers with a
common factor, which are not reported; 1 and 2 were equally good."""

_ORDER_SALT = 0x4E58
_TIE = 1e-9
"""Gains within this are equal, so that the order of the rows does not decide."""

_CLOSE = 1e-12


class NextItems(NamedTuple):
    """Items (m,) in the order to label them, and how each was drawn.

    `probability` is that of drawing it from the `left` items without a label, itself included;
    `gain` is the share of the question's variance that its label is expected to remove, NaN if not
    asked for.
    """

    items: Ints
    probability: Floats
    left: Ints
    gain: Floats


class Target(NamedTuple):
    """The requested numbers (G of them), and their covariances with the labels of candidates.

    `rows` (C,) are the candidates, `covariance` (G, C) those of the numbers with their labels.
    `chance` (C, D) is P(the label is of the class in question) under each parameter draw. `total`
    is the sum of the numbers' variances.
    """

    rows: Ints
    covariance: Floats
    chance: Floats
    total: float


class Conditioned:
    """Gains of candidates, given the labels of those picked: a pivoted Cholesky decomposition."""

    def __init__(self, target: Target) -> None:
        self.mean = target.chance.mean(axis=1)
        self.centred = target.chance - self.mean[:, None]
        self.left = self.mean * (1 - self.mean)
        self.variance = self.left.copy()
        self.least = _TIE * max(float(self.left.max()), np.finfo(float).tiny)
        self.covariance = target.covariance.copy()
        self.factors = np.empty((0, len(self.mean)))
        self.free = np.ones(len(self.mean), dtype=bool)

    def gains(self) -> Floats:
        """Variance of the numbers that each candidate's label removes, (C,); 0 for a pick."""
        removes = (self.covariance**2).sum(axis=0) / np.maximum(self.left, self.least)
        return np.where(self.free & (self.left > self.least), removes, 0.0)

    def pick(self, place: int) -> None:
        """Condition on a candidate's label."""
        self.free[place] = False
        if self.left[place] <= self.least:
            return
        # Covariance of all labels with this one, given the picks before it.
        row = self.centred @ self.centred[place] / self.centred.shape[1]
        row[place] = self.variance[place]
        row -= self.factors.T @ self.factors[:, place]
        factor = row / np.sqrt(self.left[place])
        self.covariance -= np.outer(self.covariance[:, place] / np.sqrt(self.left[place]), factor)
        self.left = np.maximum(self.left - factor**2, 0.0)
        self.factors = np.vstack([self.factors, factor])


def greedy(target: Target, size: int) -> tuple[Ints, Floats]:
    """Picks (m,), each the one that removes most variance, and how much (m,)."""
    state = Conditioned(target)
    picks, removed = [], []
    for _ in range(min(size, len(target.rows))):
        gains = np.where(state.free, state.gains(), -1.0)
        best = int(np.flatnonzero(gains >= gains.max() * (1 - _TIE))[0])
        picks.append(best)
        removed.append(max(float(gains[best]), 0.0))
        state.pick(best)
    return np.array(picks, dtype=np.int64), np.array(removed)


# --- the three orders -----------------------------------------------------------------------------


def drawn(
    predictions: Predictions,
    open_rows: Ints,
    order: Order,
    size: int,
    seed: int,
    *,
    before: int = 0,
    target: Target | None = None,
    group: str | None = None,
) -> NextItems:
    """Draw items without replacement, in one of the orders, from the unlabeled `open_rows` (N,).

    `before` items were drawn in this order already, which gives the place in the order of the
    strata. `target` is what an informative order is to find out. Strata separate the groups of
    `group`, too.
    """
    # By key, so that the order of the rows does not matter.
    rows = open_rows[np.argsort(predictions.keys[open_rows])]
    rng = np.random.default_rng([seed, before, len(rows)])
    size = min(size, len(rows))
    left = len(rows) - np.arange(size)
    if order == "random":
        # An order of the items' own: who asks again, for what is left, goes on in it.
        place = uniforms(predictions.keys[rows], np.arange(1), seed ^ _ORDER_SALT)[:, 0]
        items = rows[np.argsort(place, kind="stable")[:size]]
        return NextItems(items, 1 / left, left, np.full(size, np.nan))
    strata = _Strata(predictions, rows, seed, before, group)
    if order == "stratified":
        items = np.array([strata.draw(rng) for _ in range(size)], dtype=np.int64)
        return NextItems(items, 1 / left, left, np.full(size, np.nan))
    assert target is not None
    return _informative(target, strata, rng, left)


def _informative(
    target: Target, strata: _Strata, rng: np.random.Generator, left: Ints
) -> NextItems:
    """Draws of which a share is stratified, the others in proportion to their gain."""
    state = Conditioned(target)
    places = {int(row): place for place, row in enumerate(target.rows)}
    items, probability, gained = [], [], []
    for remaining in left.tolist():
        gains = state.gains()
        total = gains.max()
        share = (
            (gains / total) ** SHARPNESS if total > _CLOSE * target.total else np.zeros(len(gains))
        )
        share /= max(share.sum(), 1e-300)
        mixed = STRATIFIED if share.any() else 1.0
        if rng.random() < mixed:
            row = strata.draw(rng)
        else:
            row = int(target.rows[rng.choice(len(share), p=share)])
            strata.take(row)
        place = places.get(row)
        p_informative = 0.0 if place is None else float(share[place])
        items.append(row)
        probability.append(mixed / remaining + (1 - mixed) * p_informative)
        gained.append(0.0 if place is None else float(gains[place]))
        if place is not None:
            state.pick(place)
    explained = np.cumsum(gained) / target.total if target.total > 0 else np.zeros(len(gained))
    # Lines stand in for numbers that bend, so that all gains together may promise too much.
    gain = np.diff(np.minimum(explained, 1.0), prepend=0.0)
    return NextItems(np.array(items, dtype=np.int64), np.array(probability), left, gain)


class _Strata:
    """Items without a label in the order of the strata: ten draws come from ten equal parts."""

    def __init__(
        self, predictions: Predictions, rows: Ints, seed: int, before: int, group: str | None
    ) -> None:
        self.open: list[int] = rows[np.argsort(along_strata(predictions, group)[rows])].tolist()
        self.parts = _visits(seed, before)

    def draw(self, rng: np.random.Generator) -> int:
        """A random item of the stratum that is next."""
        place = (next(self.parts) + rng.random()) / PARTS
        return self.open.pop(int(place * len(self.open)))

    def take(self, row: int) -> None:
        """Remove an item."""
        self.open.remove(row)


def _visits(seed: int, before: int) -> Iterator[int]:
    """The next stratum: every one once in each round, in a new random order."""
    turn = before
    while True:
        order = np.random.default_rng([seed, turn // PARTS]).permutation(PARTS)
        yield int(order[turn % PARTS])
        turn += 1


def along_strata(predictions: Predictions, group: str | None = None) -> Ints:
    """Rank of each item, (n,), by group, predicted class and its probability."""
    pool = pooled(predictions)
    by: list[Array] = [predictions.keys]
    if predictions.n_classes == 2:
        by.append(pool[:, 1])
    else:
        by += [pool.max(axis=1), pool.argmax(axis=1)]
    if group is not None:
        by.append(_group_codes(predictions, group))
    place = np.empty(predictions.n_items, dtype=np.int64)
    place[np.lexsort(by)] = np.arange(predictions.n_items)
    return place


def _group_codes(predictions: Predictions, group: str) -> Ints:
    """Number of each item's group, (n,), by the groups' first appearance."""
    codes = np.zeros(predictions.n_items, dtype=np.int64)
    for code, rows in enumerate(_groups(predictions, group).values()):
        codes[rows] = code
    return codes


# --- questions ------------------------------------------------------------------------------------


def next_items(
    predictions: Predictions,
    *,
    metric: str = "accuracy",
    model: str | None = None,
    against: str | None = None,
    group: str | None = None,
    order: Order = "random",
    size: int = 1,
    method: str | LabelModel = "auto",
    random_state: int = 0,
    skip: Collection[int] = (),
    before: int = 0,
) -> NextItems:
    """Items to label next to learn a metric, or a difference of it; empty if no item is left.

    The metric is that of every classifier, or of `model`; with `against`, the difference of `model`
    to that classifier. `against="best"`, without `model`, asks which classifier is best. `group`
    asks how far the metric of each group of a column is from that of all items. `order` is
    "random", "stratified" or "informative"; rows in `skip` are not drawn, and `before` items were
    drawn before.
    """
    if order not in ORDERS:
        raise UsageError(unknown("order", order, ORDERS))
    refuse_multiplicity(predictions, "this question")
    open_rows, target = open_items(predictions, skip), None
    if not len(open_rows):
        return NextItems(open_rows, np.empty(0), open_rows, np.empty(0))
    if order == "informative":
        _, posterior = label_posterior(predictions, method, random_state)
        target = metric_target(
            predictions, posterior, metric, open_rows, model=model, against=against, group=group
        )
    return drawn(
        predictions, open_rows, order, size, random_state, before=before, target=target,
        group=group,
    )  # fmt: skip


def open_items(predictions: Predictions, skip: Collection[int] = ()) -> Ints:
    """Items without a label, (N,), but for those to skip."""
    free = ~predictions.labeled & (predictions.weight > 0)
    free[list(skip)] = False
    return np.flatnonzero(free)


def label_posterior(
    predictions: Predictions, method: str | LabelModel, seed: int
) -> tuple[str, LabelPosterior]:
    """Name and posterior of a method that infers the labels of other items."""
    called, label_model = resolve_method(method, predictions)
    posterior = label_model.infer(predictions, np.random.default_rng(seed))
    if not posterior.infers:
        raise UsageError(
            f"method {called!r} says nothing of items without a label, so it cannot choose among "
            "them; use 'auto' or 'tempered-ensemble'"
        )
    return called, posterior


def metric_target(
    predictions: Predictions,
    posterior: LabelPosterior,
    metric: str,
    open_rows: Ints,
    *,
    model: str | None = None,
    against: str | None = None,
    group: str | None = None,
    among: Ints | None = None,
) -> Target:
    """Covariances of candidates' labels with a metric, a difference, the best classifier, or a gap.

    The metric is that of all items, or of those `among` them.

    The numbers f are the metric's values at P(label | parameters). A label's own effect on them is
    included for metrics that are means over the items, and left out of others, where one item of
    many has little effect.
    """
    ((name, entry),) = resolve_metrics([metric]).items()
    for one in filter(None, (model, None if against == "best" else against)):
        if one not in predictions.models:
            raise UsageError(unknown("model", one, predictions.models))
    if posterior.per_model:
        if model is None and predictions.n_models > 1:
            raise UsageError(
                "the method judges each classifier by itself, so items can be chosen for one of "
                "them; name it (`model`), or use method 'auto'"
            )
        posterior = posterior.of(predictions.place[model] if model else 0)
    size = min(posterior.interval_draws.size, MOST_DRAWS)
    subsets = [np.arange(predictions.n_items) if among is None else among]
    if group is not None:
        subsets += list(_groups(predictions, group).values())
    evaluator = Evaluator(predictions, posterior, {name: entry}, "population", None)
    values = [evaluator.of_parameters(rows, size)[name] for rows in subsets]
    numbers = np.concatenate(values, axis=1)
    contrasts = _contrasts(predictions, numbers, entry.direction, model, against)
    defined = np.isfinite(numbers).all(axis=0)
    contrasts = contrasts[~(contrasts[:, ~defined] != 0).any(axis=1)]
    if not len(contrasts):
        raise InputError(f"{metric} of {model or 'any classifier'} is not defined on these items")
    numbers = np.where(defined, numbers, 0.0) @ contrasts.T
    rows = open_rows[np.argsort(predictions.keys[open_rows])[:CANDIDATES]]
    block = posterior.interval_draws.block(np.arange(size), rows)
    likeliest = block.mean(axis=2).argmax(axis=1)
    chance = block[np.arange(len(rows)), likeliest]
    covariance = (numbers - numbers.mean(axis=0)).T @ chance.T / size
    effect = _own_effects(predictions, entry, subsets, rows, block, likeliest) @ contrasts.T
    noise = (chance * (1 - chance)).mean(axis=1)
    covariance += (effect * noise[:, None]).T
    rest = (noise[:, None] * effect**2).sum() * len(open_rows) / len(rows)
    return Target(rows, covariance, chance, float(numbers.var(axis=0).sum() + rest))


def _contrasts(
    predictions: Predictions, numbers: Floats, direction: int, model: str | None,
    against: str | None,
) -> Floats:  # fmt: skip
    """The question as combinations (G, P M) of the metric of every group and classifier.

    For two classifiers their difference. For the best, the leader's difference to every other,
    with more weight the closer they are. With groups, the difference of each from all items.
    """
    m = predictions.n_models
    places = range(m) if model is None else [predictions.place[model]]
    unit = np.eye(m)
    if against == "best":
        mean, draws = direction * numbers[:, :m].mean(axis=0), numbers[:, :m]
        leader = int(np.nanargmax(mean))
        gap = draws[:, [leader]] - draws
        spread = np.maximum(gap.std(axis=0), np.finfo(float).tiny)
        z = np.abs(gap.mean(axis=0)) / spread
        close = np.exp(-(np.minimum(z, 6.0) ** 2) / 2) / spread
        by_model = np.stack([close[j] * (unit[leader] - unit[j]) for j in range(m) if j != leader])
    elif against is not None:
        by_model = np.stack([unit[j] - unit[predictions.place[against]] for j in places])
    else:
        by_model = unit[list(places)]
    n_groups = numbers.shape[1] // m - 1
    if not n_groups:
        return by_model
    side = np.hstack([-np.ones((n_groups, 1)), np.eye(n_groups)])
    return np.kron(side, by_model)


def _own_effects(
    predictions: Predictions, metric: Metric, subsets: list[Ints], rows: Ints, block: Floats,
    likeliest: Ints,
) -> Floats:  # fmt: skip
    """Effect of an item's likeliest class on the metric of each group and classifier, (C, P M).

    Of a mean over the items: (loss of that class - mean loss of the others) / n; else 0.
    """
    out = np.zeros((len(rows), len(subsets), predictions.n_models))
    if metric.per_item is None:
        return out.reshape(len(rows), -1)
    p = block.mean(axis=2)
    is_likeliest = np.eye(predictions.n_classes, dtype=bool)[likeliest]
    rest = np.where(is_likeliest, 0.0, p)
    rest /= np.maximum(rest.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    for j in range(predictions.n_models):
        provided = predictions.provides(metric.needs)[:, j]
        here = np.flatnonzero(provided[rows])
        if not len(here):
            continue
        value = metric.per_item(view_of(predictions, rows[here], j))
        gap = value[is_likeliest[here]] - (value * rest[here]).sum(axis=1)
        for place, subset in enumerate(subsets):
            inside = np.isin(rows[here], subset)
            out[here[inside], place, j] = gap[inside] / max(int(provided[subset].sum()), 1)
    return out.reshape(len(rows), -1)


def _groups(predictions: Predictions, column: str) -> dict[str, Ints]:
    """The groups of a column and their items."""
    return next(iter(groups_by_column(predictions, column).values()))
