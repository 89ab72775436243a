"""label_next(): the items whose labels say most about a metric, a curve, or the votes.

What a label says about a question, and how items are drawn, is `questions/next_items.py`. Here are
the questions: a metric of every classifier or of one, a difference, which is best, gaps between
groups; the band of a curve, or the part of it where precision may be high enough; and for votes the
error rates of all classifiers, or all labels. For votes y_i is whether an item is of its likeliest
class.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from fewlabels.checks.arguments import RandomState, bounded, seed_of, whole
from fewlabels.data.inputs import predictions_of
from fewlabels.errors import (
    InputError,
    UsageError,
    gravest_first,
    listed,
    plain_name,
    quoted,
    unknown,
)
from fewlabels.evaluation.strata import Strata, spreads
from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.blocks import Progress, map_blocks, spans, using_workers
from fewlabels.kernels.strata import allocation, whole_numbers
from fewlabels.methods.base import LabelModel, refuse_multiplicity
from fewlabels.methods.registry import METHODS
from fewlabels.metrics.registry import resolve as resolve_metrics
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions
from fewlabels.questions.counts import GRID, KINDS, Counts, CutCounts, Kind
from fewlabels.questions.next_items import (
    CANDIDATES,
    MOST_DRAWS,
    ORDERS,
    NextItems,
    Order,
    Target,
    drawn,
    label_posterior,
    metric_target,
    open_items,
)
from fewlabels.questions.question import Answer, OneClassifier
from fewlabels.report.shown import plain_values as plain

OF_VOTES = ("error-rates", "labels")
"""Questions about votes, beside the curves of scores."""

_LABEL_CANDIDATES, _PART = 2_000, 4_096
"""Candidates if all labels are asked for, as each informs about each; items at a time."""

_LEVEL = 0.95


class StratumPlan(NamedTuple):
    """A stratum: its items and labels, spread S_h of the metric's value, and labels to add."""

    name: str
    n_items: int
    n_labeled: int
    spread: float
    n_next: int


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LabelNext(Answer):
    """What `fewlabels.label_next` returns.

    `items` are row numbers, from 0, in the order to label them. `gain` is the share of the
    question's variance that each label is expected to remove after those before it. `drawn` is the
    probability with which each item was drawn from the `left` items without a label; averages of
    the labels need it (`fewlabels.kernels.importance.lure_weights`). `score` is in the units of the
    file, `probability` is P(positive). With several classifiers `likeliest` is the likeliest class
    of each item, `probability` is its probability, and `score` is NaN. `kind` is the kind of curve,
    "error-rates", "labels", or the metric; `order` is "random", "stratified" or "informative";
    `statement` says which methods may learn from labels of items chosen so. `strata` says how many
    items are of each stratum, where strata were named.
    """

    _page = "label-next"

    items: Ints
    gain: Floats
    drawn: Floats
    left: Ints
    score: Floats
    probability: Floats
    kind: str
    order: Order
    statement: str
    likeliest: tuple[Any, ...] = ()
    strata: tuple[StratumPlan, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Items, how each was drawn, gains, scores and probabilities as lists."""
        names = ("items", "gain", "drawn", "left", "score", "probability")
        out: dict[str, Any] = plain({name: getattr(self, name) for name in names})
        out |= {"strata": [one._asdict() for one in self.strata]} if self.strata else {}
        return out | ({"likeliest": list(self.likeliest)} if self.likeliest else {})

    def report(self) -> dict[str, Any]:
        """Everything, as a dictionary of plain values."""
        about = {"kind": self.kind, "order": self.order}
        return self._report("label-next", {**about, **self.to_dict(), "statement": self.statement})

    def _columns(self) -> dict[str, Any]:
        """A row per item."""
        columns: dict[str, Any] = {"item": self.items}
        columns |= {"likeliest": self.likeliest} if self.likeliest else {"score": self.score}
        columns |= {"probability": self.probability, "gain": self.gain, "drawn": self.drawn}
        return columns


def label_next(
    predictions: Any,
    model: str | None = None,
    size: int = 10,
    method: str | LabelModel = "auto",
    *,
    kind: str = "precision-recall",
    metric: str | None = None,
    against: str | None = None,
    group: str | None = None,
    min_precision: float | None = None,
    strata: str | None = None,
    order: Order = "informative",
    before: int = 0,
    positive: Any = None,
    random_state: RandomState = 0,
    workers: int | None = None,
    progress: Progress | None = None,
    columns: Any = None,
    y_true: Any = None,
) -> LabelNext:
    """Draw the items to label next, so that what is known of an answer grows the most.

    Parameters
    ----------
    size
        How many items; fewer where fewer are unlabeled.
    kind
        The curve whose band is to narrow ("precision-recall", "roc"), or, of hard predictions and
        votes, "error-rates": those of all classifiers or of `model`; "labels": of all items.
    metric
        Instead of a curve: the name of a metric, of every classifier or of `model`.
    against
        Of a metric: another classifier, to know the difference of `model` to it; or "best", to know
        which classifier is best.
    group
        Of a metric: a column, to know how far each of its groups is from all items.
    min_precision
        Of a precision-recall curve: look where precision may be at least this.
    strata
        A column of strata: how many labels each should have (Neyman's allocation, with what it has
        already, and two at least), for a metric that is a mean over items (None: accuracy, or the
        share of positive items for scores), and so many of its items at random.
    order
        "informative": half of the draws in proportion to what a label is expected to tell, half
        stratified; "stratified" by the pooled prediction (and `group`), in proportion; "random".
    before
        How many items were drawn in this order before.
    predictions, model, method, positive, random_state, workers, progress, columns, y_true
        As for `fewlabels.curve`.

    Raises
    ------
    UsageError, InputError
        One line that says what is wrong and how to mend it.

    Examples
    --------
    >>> import numpy as np
    >>> import fewlabels as fl
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(500) < 0.3
    >>> score = 1 / (1 + np.exp(-rng.normal(3 * truth - 1.5, 1.5)))
    >>> labels = np.where(np.arange(500) < 20, truth, -1)
    >>> predictions = fl.Predictions(score[:, None], labels, models=["detector"])
    >>> found = fl.label_next(predictions, size=3, metric="accuracy")
    >>> bool((labels[found.items] == -1).all())
    True
    """
    whole("size", size)
    whole("before", before, least=0)
    if order not in ORDERS:
        raise UsageError(unknown("order", order, ORDERS))
    for name, value in (("against", against), ("group", group)):
        if value is not None and metric is None:
            raise UsageError(f"`{name}` goes with a metric; name one (`metric`), such as accuracy")
    if min_precision is not None and (metric is not None or kind != "precision-recall"):
        raise UsageError("`min_precision` is of the precision-recall curve; leave the other out")
    if min_precision is not None:
        bounded("min_precision", [min_precision], 1)
    seed = seed_of(random_state)
    draw = _Draw(size, order, seed, before, group)
    if strata is not None and any(v is not None for v in (against, group, min_precision)):
        raise UsageError("`strata` goes with a metric alone; leave the other out")
    with using_workers(workers):
        if metric is not None or strata is not None or kind in OF_VOTES:
            items = predictions_of(
                predictions, columns, positive, stratum=strata, against_rest=False, y_true=y_true
            )
            refuse_multiplicity(items, "this question")
            if model is not None and model not in items.models:
                raise UsageError(unknown("model", model, items.models))
            if strata is not None:
                return _next_by_stratum(items, model, method, metric, draw)
            if metric is not None:
                return _next_for_metric(items, model, method, metric, against, draw)
            return _next_for_votes(items, model, method, kind, draw)
        if kind not in KINDS:
            raise UsageError(unknown("kind", kind, [*KINDS, *OF_VOTES]))
        question = OneClassifier.from_arguments(
            predictions, columns, model, method, positive, level=_LEVEL, estimand="sample",
            random_state=seed, workers=workers, progress=progress, y_true=y_true,
        )  # fmt: skip
        return _next_for_curve(question, kind, min_precision, draw)


class _Draw(NamedTuple):
    """How items are drawn."""

    size: int
    order: Order
    seed: int
    before: int
    group: str | None

    def select(self, predictions: Predictions, open_rows: Ints, target: Target | None) -> NextItems:
        """Draw from the items without a label."""
        return drawn(
            predictions, open_rows, self.order, self.size, self.seed,
            before=self.before, target=target, group=self.group,
        )  # fmt: skip


def _next_for_curve(
    question: OneClassifier, kind: str, min_precision: float | None, draw: _Draw
) -> LabelNext:
    """Items whose labels reduce the variance of one classifier's curve."""
    if not question.posterior.infers:
        raise UsageError(
            f"method {question.method!r} says nothing of items without a label, so it cannot "
            "choose among them; use 'auto' or 'tempered-ensemble'"
        )
    open_rows = question.rows[question.labels < 0]
    if not len(open_rows):
        raise InputError(
            f"every item that {question.model} gives a score is labeled; there is none to choose"
        )
    target = (
        Design(question, KINDS[kind], min_precision).target() if draw.order == ORDERS[-1] else None
    )
    selection = draw.select(question.predictions, open_rows, target)
    items = selection.items
    few = f"only {len(items)} items are unlabeled and have a score"
    return LabelNext(
        **question.facts(),
        **_selection_fields(selection),
        order=draw.order,
        score=question.scores[items],
        probability=question.posterior.probabilities[items, question.positive],
        kind=kind,
        statement=_statement(question.method, draw.order),
        status=question.verdict(KINDS[kind].area, 0.0).status,
        warnings=question.warnings(few if len(items) < draw.size else None),
    )


def _selection_fields(items: NextItems) -> dict[str, Any]:
    """The fields of the items drawn, and of how they were drawn."""
    return {
        "items": items.items, "gain": items.gain, "drawn": items.probability, "left": items.left,
    }  # fmt: skip


def _statement(method: str, order: Order) -> str:
    """Which methods may learn from labels of items that were chosen by score."""
    if order != "informative":
        return "All items were equally likely to be drawn: any method may learn from their labels."
    registered = METHODS.get(method)
    may_learn = registered.chosen_by_score if registered else "that is not known: ask its author"
    others = [
        m.name for m in METHODS.values() if m.name != method and m.chosen_by_score.startswith("yes")
    ]
    also = f" Of the others, {listed(others)} may." if others else ""
    return (
        "These items are no random sample: they were drawn by their scores. May a method learn "
        f"from their labels? With {method}, {may_learn}.{also} A method that takes labeled items "
        "for a random sample needs the probabilities with which they were drawn."
    )


class Moments(NamedTuple):
    """Of each parameter draw: expected curve, cut of each place, effect of one more positive.

    All (D, 100): `above`, where that item scores at or above the cut of the place, and `below`.
    """

    value: Floats
    cut: Floats
    above: Floats
    below: Floats


class Design:
    """Candidates, and covariances of their labels with a curve."""

    def __init__(
        self, question: OneClassifier, kind: Kind, min_precision: float | None = None
    ) -> None:
        self.question, self.kind = question, kind
        self.min_precision = min_precision
        self.counts = CutCounts(question, question.rows, question.n_draws)
        self.weights = self.counts.weights
        self.size = min(self.weights.posterior.interval_draws.size, MOST_DRAWS)
        self.unit = float(self.weights.weight.mean())
        self.places = self._candidates()

    def target(self) -> Target:
        """Covariances of the candidates' labels with the curve."""
        chance, (contrast, variance) = self.chances(), self._band()
        covariance = contrast[:, None] * self.covariance(chance)
        total = float((contrast**2 * variance).sum())
        return Target(self.question.rows[self.places], covariance, chance, total)

    def _candidates(self) -> Ints:
        """Unlabeled items, as places among the question's rows, in the order of their keys."""
        keys = self.weights.keys
        places = np.flatnonzero(self.question.labels < 0)
        places = places[np.lexsort((keys[places], self.counts.cuts.codes[places]))]
        if len(places) > CANDIDATES:
            spread = np.linspace(0, len(places) - 1, CANDIDATES)
            places = places[np.round(spread).astype(np.int64)]
        return places[np.argsort(keys[places])]

    def chances(self) -> Floats:
        """P(positive) of every candidate under every parameter draw, (C, D)."""
        chance = self.weights.chances(np.arange(self.size), self.places)
        return np.ascontiguousarray(chance[:, self.question.positive])

    def _moments(self) -> Moments:
        """Of the expected curve; one more positive is of the items' mean weight."""
        kind, unit = self.kind, self.unit

        def effects(counts: Counts) -> Moments:
            tp, fp, positives, negatives, _ = counts
            value, cut = kind.read(counts)
            fewer = np.maximum(negatives - unit, 0.0)
            above = Counts(tp + unit, np.maximum(fp - unit, 0.0), positives + unit, fewer)
            below = Counts(tp, np.minimum(fp, fewer), positives + unit, fewer)
            # Undefined curves, without a positive, are 0 and tell of nothing.
            fine = kind.defined(counts)[:, None]
            gains = (np.where(fine, kind.read(one)[0] - value, 0.0) for one in (above, below))
            return Moments(value, cut, *gains)

        expected = self.counts.expected(self.size)
        return Moments(*expected.arrays(effects, self.question.progress))

    def _band(self) -> tuple[Floats, Floats]:
        """Weight of each place of the curve in the question, and its variance, (100,) each.

        For a whole curve weights are equal. Whether precision is at least P depends on the places
        where that is open: the weight is the derivative of P(f >= P) by f, for a normal f.
        """

        def curve(counts: Counts) -> tuple[Array, Array]:
            return self.kind.read(counts)[0], self.kind.defined(counts)

        sample = self.counts.sample(self.counts.n_draws)
        curves, defined = sample.arrays(curve, self.question.progress)
        if not defined.any():
            return np.ones(len(GRID)), np.zeros(len(GRID))
        variance = curves[defined].var(axis=0)
        if self.min_precision is None:
            return np.ones(len(GRID)), variance
        spread = np.sqrt(np.maximum(variance, np.finfo(float).tiny))
        z = (curves[defined].mean(axis=0) - self.min_precision) / spread
        return np.exp(-(np.minimum(np.abs(z), 9.0) ** 2) / 2) / spread, variance

    def covariance(self, chance: Floats) -> Floats:
        """Covariance of every place of the curve with every candidate's label, (100, C)."""
        moments = self._moments()
        codes = self.counts.cuts.codes[self.places]
        weight = self.weights.weight[self.places] / self.unit
        noise = chance * (1 - chance)
        centred = moments.value - moments.value.mean(axis=0)

        def at(place: int) -> Floats:
            shared = chance @ centred[:, place]
            is_above = codes[:, None] <= moments.cut[None, :, place]
            extra = moments.above[:, place] - moments.below[:, place]
            private = noise @ moments.below[:, place] + (noise * is_above) @ extra
            return (shared + weight * private) / self.size

        return np.stack(list(map_blocks(at, range(len(GRID)))))


# --- votes ---------------------------------------------------------------------------------------


def _next_for_votes(
    predictions: Predictions, model: str | None, method: str | LabelModel, kind: str, draw: _Draw
) -> LabelNext:
    """Items whose labels tell most of the error rates of classifiers, or of all labels."""
    who = [model] if model is not None else list(predictions.models)
    ballots = predictions.select_models(who).ballots
    voted = np.diff(ballots.indptr) > 0
    if not voted.any():
        raise InputError(
            f"kind {kind!r} is of votes, hard predictions or probabilities, and there are none of "
            f"{listed(who, 3)}; ask for the curve of its scores (kind 'precision-recall')"
        )
    called, posterior = label_posterior(predictions, method, draw.seed)
    open_rows = open_items(predictions)
    open_rows = open_rows[voted[open_rows]]
    if not len(open_rows):
        raise InputError("every item with a vote is labeled; there is none to choose")
    most = CANDIDATES if kind == "error-rates" else _LABEL_CANDIDATES
    rows = open_rows[np.argsort(predictions.keys[open_rows])[:most]]
    draws = np.arange(min(posterior.parameters.size, MOST_DRAWS))
    block = posterior.parameters.block(draws, rows)
    best = block.mean(axis=2).argmax(axis=1)
    chance = block[np.arange(len(rows)), best]
    if kind == "labels":
        centred = chance - chance.mean(axis=1, keepdims=True)
        covariance = centred @ centred.T / len(draws)
        covariance[np.diag_indices(len(rows))] += (chance * (1 - chance)).mean(axis=1)
        total = float(np.trace(covariance))
    else:
        covariance, total = _with_error_rates(posterior, ballots, rows, draws, block, best)
    selection = draw.select(predictions, open_rows, Target(rows, covariance, chance, total))
    about = model or f"{len(np.unique(ballots.indices))} classifiers"
    short = f"only {len(selection.items)} items are unlabeled and have a vote"
    return _result(
        predictions, posterior, called, about, kind, draw, selection, int(voted.sum()), short
    )


def _next_for_metric(
    predictions: Predictions, model: str | None, method: str | LabelModel, metric: str,
    against: str | None, draw: _Draw,
) -> LabelNext:  # fmt: skip
    """Items whose labels tell most of a metric, a difference, the best classifier, or gaps."""
    open_rows = open_items(predictions)
    if not len(open_rows):
        raise InputError("every item is labeled; there is none to choose")
    called, posterior = label_posterior(predictions, method, draw.seed)
    target = metric_target(
        predictions, posterior, metric, open_rows, model=model, against=against, group=draw.group
    )
    selection = draw.select(predictions, open_rows, target)
    about = model or f"{predictions.n_models} classifiers"
    if against is not None:
        about += ", the best one" if against == "best" else f" against {against}"
    if draw.group is not None:
        about += f", by {draw.group}"
    short = f"only {len(selection.items)} items are unlabeled"
    return _result(
        predictions, posterior, called, about, metric, draw, selection, predictions.n_items, short
    )


def _next_by_stratum(
    predictions: Predictions, model: str | None, method: str | LabelModel, metric: str | None,
    draw: _Draw,
) -> LabelNext:  # fmt: skip
    """Items at random within strata, as many of each as makes the variance of a mean least."""
    who = [model] if model is not None else list(predictions.models)
    hard = predictions.select_models(who).gives("hard").any()
    name = metric or ("accuracy" if hard else "share of positive items")
    chosen = resolve_metrics([name])[name] if metric or hard else None
    if chosen is not None and chosen.per_item is None:
        raise UsageError(
            f"`strata` needs a metric that is a mean over items, such as accuracy, brier or "
            f"log_loss; got {quoted(name)}"
        )
    open_rows = open_items(predictions)
    if not len(open_rows):
        raise InputError("every item is labeled; there is none to choose")
    called, posterior = label_posterior(predictions, method, draw.seed)
    strata = Strata.of(predictions)
    spread = spreads(predictions, posterior, strata, chosen, who)
    held, most = strata.n_labeled, strata.n_items.astype(np.float64)
    least = np.maximum(held, np.minimum(2.0, most))
    if (least - held).sum() > draw.size:
        least = held.astype(np.float64)
    total = float(held.sum() + min(draw.size, len(open_rows)))
    wanted = allocation(strata.shares * spread, total, least, most)
    add = whole_numbers(wanted - held)
    each = [
        drawn(predictions, open_rows[strata.codes[open_rows] == h], "random", n, draw.seed)
        for h, n in enumerate(add.tolist())
        if n
    ]
    about = who[0] if len(who) == 1 else f"{len(who)} classifiers"
    selection = NextItems(*(np.concatenate(arrays) for arrays in zip(*each, strict=True)))
    plans = strata.table(spread=spread, n_next=add)
    found = _result(
        predictions, posterior, called, about, name,
        draw._replace(order="stratified"), selection, predictions.n_items,
        f"only {len(selection.items)} items are unlabeled",
    )  # fmt: skip
    return replace(
        found,
        strata=tuple(StratumPlan(**plan) for plan in plans),
        statement="Within a stratum all items were equally likely to be drawn: labels count by "
        f"their stratum's share of the items (fewlabels estimate FILE --stratum {strata.column}).",
    )


def _result(
    predictions: Predictions, posterior: LabelPosterior, method: str, about: str, kind: str,
    draw: _Draw, selection: NextItems, n_items: int, short: str,
) -> LabelNext:  # fmt: skip
    """The answer to a question about all classifiers, with the likeliest class of each item."""
    p = posterior.probabilities[selection.items]
    best = p.argmax(axis=1)
    names = tuple(plain_name(c) for c in predictions.classes)
    few = [short] if len(selection.items) < draw.size else []
    return LabelNext(
        model=about, positive=names[-1], classes=names,
        method=method, estimand="sample", confidence_level=_LEVEL, seed=draw.seed,
        n_items=n_items, n_labeled=predictions.n_labeled,
        n_labeled_positive=int((predictions.labels == len(names) - 1).sum()), unit="class",
        **_selection_fields(selection), order=draw.order,
        score=np.full(len(selection.items), np.nan), probability=p[np.arange(len(p)), best],
        kind=kind, statement=_statement(method, draw.order),
        likeliest=tuple(names[k] for k in best), status=posterior.status,
        warnings=tuple(dict.fromkeys([*gravest_first(posterior.warnings), *few])),
        diagnostics=posterior.diagnostics,
    )  # fmt: skip


def _with_error_rates(
    posterior: LabelPosterior,
    ballots: scipy.sparse.csr_matrix,
    rows: Ints,
    draws: Ints,
    block: Floats,
    best: Ints,
) -> tuple[Floats, float]:
    """Covariance (M, C) of error rates with whether items are of their class `best`; variance.

    Ballots (n, M) are class + 1 of all items; block (C, K, D) is P(label) of the items `rows`.
    """
    n, m = ballots.shape
    n_votes = np.maximum(np.bincount(ballots.indices, minlength=m), 1)
    wrong, noise = np.zeros((m, len(draws))), np.zeros(m)
    for span in spans(n, _PART):
        votes = ballots[span]
        item = np.repeat(np.arange(votes.shape[0]), np.diff(votes.indptr))
        right = posterior.parameters.block(draws, span)[item, votes.data - 1]
        model = scipy.sparse.csr_matrix(
            (np.ones(votes.nnz), (votes.indices, np.arange(votes.nnz))), (m, votes.nnz)
        )
        wrong += model @ (1 - right)
        noise += model @ (right * (1 - right)).mean(axis=1)
    error = wrong / n_votes[:, None]
    chance = block[np.arange(len(rows)), best]
    centred = error - error.mean(axis=1, keepdims=True)
    covariance = centred @ chance.T / len(draws)
    votes = ballots[rows]
    item = np.repeat(np.arange(len(rows)), np.diff(votes.indptr))
    vote, p_best = votes.data - 1, chance[item]
    # Being of the class makes a vote for it right, and any other wrong.
    moved = np.where(
        (vote == best[item])[:, None], -p_best * (1 - p_best), p_best * block[item, vote]
    )
    np.add.at(covariance, (votes.indices, item), moved.mean(axis=1) / n_votes[votes.indices])
    return covariance, float((error.var(axis=1) + noise / n_votes**2).sum())
