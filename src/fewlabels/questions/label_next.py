"""label_next(): the items whose labels would narrow a curve's band, or what votes say, the most.

Learning y_i takes Cov(f, y_i)^2 / Var(y_i) from the variance of a curve's value f: by the law of
total variance it is Var(E[f | y_i]), and E[f | y_i] is a line, since y_i has two values. With h_i
= P(y_i = 1 | parameters) and f the expected curve under parameters, the covariance is

    Cov(f, y_i) = Cov(f, h_i) + E[h_i (1 - h_i) df/dy_i]:

what the label tells of the parameters, and what the item itself adds to the curve of these items.
A batch is chosen greedily, f and the labels conditioned on each pick as if jointly normal, so that
no two picks ask the same. For votes f is the error rates of all classifiers, or all labels, and y_i
whether an item is of its likeliest class. Labels enter only through the posterior: what is chosen
depends on scores, votes and labels already known, never on the label to come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from fewlabels import report
from fewlabels.checks.arguments import seed_of, whole
from fewlabels.data.inputs import predictions_of
from fewlabels.errors import (
    InputError,
    UsageError,
    gravest_first,
    listed,
    plain_name,
    unknown,
)
from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.blocks import Progress, map_blocks, spans, using_workers
from fewlabels.methods.base import LabelModel, refuse_multiplicity
from fewlabels.methods.registry import METHODS, resolve
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions
from fewlabels.questions.counts import GRID, KINDS, Counts, CutCounts, Kind
from fewlabels.questions.question import Answer, OneClassifier
from fewlabels.report.shown import frame
from fewlabels.report.shown import plain_values as plain

OF_VOTES = ("error-rates", "labels")
"""What votes are asked for, beside the curves of scores."""

_LABEL_CANDIDATES, _PART = 2_000, 4_096
"""Candidates where all labels are asked for, since each tells of each; items at a time."""

CANDIDATES = 5_000
"""Of more unlabeled items, so many that spread evenly over the quantiles of the score."""

_MOST_DRAWS = 400
_LEVEL = 0.95
_TIE = 1e-9
"""Gains that agree so closely are equal: the order of the rows must not decide."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LabelNext(Answer):
    """What `fewlabels.label_next` returns.

    Attributes
    ----------
    items
        Row numbers of the items, counted from 0, in the order to label them.
    gain
        Share of the band's variance, summed over the curve, that each label is expected to
        remove after those before it.
    score, probability
        Score of each item in the units of the file, and P(positive).
    kind
        The kind of curve, or "error-rates" or "labels".
    statement
        Which methods may learn from labels of items chosen so.
    likeliest
        For error rates and labels: the likeliest class of each item, whose probability
        `probability` then is (`score` is NaN).
    """

    items: Ints
    gain: Floats
    score: Floats
    probability: Floats
    kind: str
    statement: str
    likeliest: tuple[Any, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Items, gains, scores and probabilities as lists."""
        names = ("items", "gain", "score", "probability")
        out: dict[str, Any] = plain({name: getattr(self, name) for name in names})
        return out | ({"likeliest": list(self.likeliest)} if self.likeliest else {})

    def report(self) -> dict[str, Any]:
        """Everything, as a dictionary of plain values."""
        answer = {"kind": self.kind, **self.to_dict(), "statement": self.statement}
        return self._report("label-next", answer)

    def summary(self, width: int = 80) -> str:
        """The items in the order to label them, as text; rows count from 1, as a file's do."""
        return report.render_label_next(self.report(), width)

    def to_frame(self, backend: str | None = None) -> Any:
        """A row per item: item, score, probability, gain ("pandas", "polars" or "pyarrow")."""
        columns: dict[str, Any] = {"item": self.items}
        columns |= {"likeliest": self.likeliest} if self.likeliest else {"score": self.score}
        return frame(columns | {"probability": self.probability, "gain": self.gain}, backend)


def label_next(
    predictions: Any,
    model: str | None = None,
    size: int = 10,
    method: str | LabelModel = "auto",
    *,
    kind: str = "precision-recall",
    positive: Any = None,
    random_state: int | None = 0,
    workers: int | None = None,
    progress: Progress | None = None,
    columns: Any = None,
) -> LabelNext:
    """Choose the items to label next, so that what is known of an answer grows the most.

    Parameters
    ----------
    size
        How many items; fewer where fewer are unlabeled.
    kind
        The curve whose band is to narrow ("precision-recall", "roc"), or, of hard predictions and
        votes, "error-rates": those of all classifiers or of `model`; "labels": of all items.
    predictions, model, method, positive, random_state, workers, progress, columns
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
    >>> found = fl.label_next(predictions, size=3, method="bayesian-calibration")
    >>> bool((labels[found.items] == -1).all())
    True
    """
    whole("size", size)
    if kind in OF_VOTES:
        with using_workers(workers):
            return _of_votes(
                predictions_of(predictions, columns, positive, against_rest=False),
                model, size, method, kind, seed_of(random_state),
            )  # fmt: skip
    if kind not in KINDS:
        raise UsageError(unknown("kind", kind, [*KINDS, *OF_VOTES]))
    chosen = KINDS[kind]
    with using_workers(workers):
        question = OneClassifier.of(
            predictions, columns, model, method, positive, level=_LEVEL, estimand="sample",
            random_state=random_state, workers=workers, progress=progress,
        )  # fmt: skip
        if question.posterior.observed is not None:
            raise UsageError(
                f"method {question.method!r} says nothing of items without a label, so it cannot "
                "choose among them; use 'auto' or 'tempered-ensemble'"
            )
        if (question.labels >= 0).all():
            raise InputError(
                f"every item that {question.model} gives a score is labeled; there is none to "
                "choose"
            )
        items, gain = Design(question, chosen).choose(size)
    few = f"only {len(items)} items are unlabeled and have a score" if len(items) < size else None
    return LabelNext(
        **question.facts(),
        items=items,
        gain=gain,
        score=question.scores[items],
        probability=question.posterior.probabilities[items, question.positive],
        kind=kind,
        statement=_statement(question.method),
        status=question.verdict(chosen.area, 0.0).status,
        warnings=question.warnings(few),
    )


def _statement(method: str) -> str:
    """Which methods may learn from labels of items that were chosen by score."""
    known = METHODS.get(method)
    own = "that is not known: ask its author" if known is None else known.chosen_by_score
    others = [
        m.name for m in METHODS.values() if m.name != method and m.chosen_by_score.startswith("yes")
    ]
    also = f" Of the others, {listed(others)} may." if others else ""
    return (
        "These items are chosen by their scores, not at random. May a method learn from their "
        f"labels? With {method}, {own}.{also} A method that takes labeled items for a random "
        "sample must not."
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

    def __init__(self, question: OneClassifier, kind: Kind) -> None:
        self.question, self.kind = question, kind
        self.counts = CutCounts(question, question.rows, question.n_draws)
        self.weights = self.counts.weights
        self.size = min(self.weights.n_interval_parameters, _MOST_DRAWS)
        self.unit = float(self.weights.weight.mean())
        self.places = self._candidates()

    def choose(self, size: int) -> tuple[Ints, Floats]:
        """Items in the order to label them, and their gains."""
        chance = self.chances()
        covariance = self.covariance(chance)
        total = self._band_variance()
        picks, gain = greedy(covariance, chance, min(size, len(self.places)))
        # Lines stand in for curves that bend, so that all gains together may promise too much.
        known = np.minimum(np.cumsum(gain) / total, 1.0) if total > 0 else np.zeros(len(gain))
        return self.question.rows[self.places[picks]], np.diff(known, prepend=0.0)

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
            tp, fp, positives, negatives = counts
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

    def _band_variance(self) -> float:
        """Variance of drawn curves, summed over the places."""

        def curve(counts: Counts) -> tuple[Array, Array]:
            return self.kind.read(counts)[0], self.kind.defined(counts)

        sample = self.counts.sample(self.counts.n_draws)
        curves, defined = sample.arrays(curve, self.question.progress)
        return float(curves[defined].var(axis=0).sum()) if defined.any() else 0.0

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
            own = noise @ moments.below[:, place] + (noise * is_above) @ extra
            return (shared + weight * own) / self.size

        return np.stack(list(map_blocks(at, range(len(GRID)))))


def greedy(covariance: Floats, chance: Floats, size: int) -> tuple[Ints, Floats]:
    """Picks in order, and the variance that each removes from the sum over the places.

    Parameters
    ----------
    covariance
        Of the curve's places with the candidates' labels, (G, C).
    chance
        P(positive) of each candidate under each parameter draw, (C, D).
    """
    mean = chance.mean(axis=1)
    variance = mean * (1 - mean)
    centred = chance - mean[:, None]
    least = _TIE * max(float(variance.max()), np.finfo(float).tiny)
    covariance, left = covariance.copy(), variance.copy()
    factors = np.empty((0, len(mean)))
    free = np.ones(len(mean), dtype=bool)
    picks, gains = [], []
    for _ in range(size):
        removes = (covariance**2).sum(axis=0) / np.maximum(left, least)
        removes[left <= least] = 0.0
        best = float(removes[free].max())
        pick = int(np.flatnonzero(free & (removes >= best * (1 - _TIE)))[0])
        picks.append(pick)
        gains.append(float(removes[pick]))
        free[pick] = False
        if left[pick] <= least:
            continue
        # Covariance of all labels with this one, given the picks before it: a pivoted Cholesky.
        with_pick = centred @ centred[pick] / chance.shape[1]
        with_pick[pick] = variance[pick]
        with_pick -= factors.T @ factors[:, pick]
        factor = with_pick / np.sqrt(left[pick])
        covariance -= np.outer(covariance[:, pick] / np.sqrt(left[pick]), factor)
        left = np.maximum(left - factor**2, 0.0)
        factors = np.vstack([factors, factor])
    return np.array(picks, dtype=np.int64), np.array(gains)


# --- votes ---------------------------------------------------------------------------------------


def _of_votes(
    predictions: Predictions,
    model: str | None,
    size: int,
    method: str | LabelModel,
    kind: str,
    seed: int,
) -> LabelNext:
    """Items whose labels tell most of the error rates of classifiers, or of all labels."""
    refuse_multiplicity(predictions, "this question")
    if model is not None and model not in predictions.models:
        raise UsageError(unknown("model", model, predictions.models))
    who = [model] if model is not None else list(predictions.models)
    ballots = predictions.select_models(who).ballots
    given = np.diff(ballots.indptr) > 0
    if not given.any():
        raise InputError(
            f"kind {kind!r} is of votes, hard predictions or probabilities, and there are none of "
            f"{listed(who, 3)}; ask for the curve of its scores (kind 'precision-recall')"
        )
    called, label_model = resolve(method, predictions)
    posterior = label_model.infer(predictions, np.random.default_rng(seed))
    if posterior.means is not None or posterior.observed is not None:
        raise UsageError(
            f"method {called!r} says nothing of items without a label, so it cannot choose among "
            "them; use 'auto' or 'bee'"
        )
    open_rows = np.flatnonzero(~predictions.labeled & given)
    if not len(open_rows):
        raise InputError("every item with a vote is labeled; there is none to choose")
    most = CANDIDATES if kind == "error-rates" else _LABEL_CANDIDATES
    rows = open_rows[np.argsort(predictions.keys[open_rows])[:most]]
    draws = np.arange(min(posterior.parameters.size, _MOST_DRAWS))
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
    picks, removed = greedy(covariance, chance, min(size, len(rows)))
    known = np.minimum(np.cumsum(removed) / total, 1.0) if total > 0 else np.zeros(len(picks))
    few = f"only {len(picks)} items are unlabeled and have a vote" if len(picks) < size else None
    names = tuple(plain_name(c) for c in predictions.classes)
    return LabelNext(
        model=model or f"{len(np.unique(ballots.indices))} classifiers",
        positive=names[-1], classes=names,
        method=called, estimand="sample", confidence_level=_LEVEL, seed=seed,
        n_items=int(given.sum()), n_labeled=predictions.n_labeled,
        n_labeled_positive=int((predictions.labels == len(names) - 1).sum()), unit="class",
        items=rows[picks], gain=np.diff(known, prepend=0.0),
        score=np.full(len(picks), np.nan), probability=chance[picks].mean(axis=1),
        kind=kind, statement=_statement(called), likeliest=tuple(names[k] for k in best[picks]),
        status=posterior.status,
        warnings=tuple(dict.fromkeys([*gravest_first(posterior.warnings), *filter(None, [few])])),
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
    for part in spans(n, _PART):
        own = ballots[part]
        item = np.repeat(np.arange(own.shape[0]), np.diff(own.indptr))
        right = posterior.parameters.block(draws, part)[item, own.data - 1]
        of_model = scipy.sparse.csr_matrix(
            (np.ones(own.nnz), (own.indices, np.arange(own.nnz))), (m, own.nnz)
        )
        wrong += of_model @ (1 - right)
        noise += of_model @ (right * (1 - right)).mean(axis=1)
    error = wrong / n_votes[:, None]
    chance = block[np.arange(len(rows)), best]
    centred = error - error.mean(axis=1, keepdims=True)
    covariance = centred @ chance.T / len(draws)
    own = ballots[rows]
    item = np.repeat(np.arange(len(rows)), np.diff(own.indptr))
    vote, of_best = own.data - 1, chance[item]
    # Being of the class makes a vote for it right, and any other wrong.
    moved = np.where(
        (vote == best[item])[:, None], -of_best * (1 - of_best), of_best * block[item, vote]
    )
    np.add.at(covariance, (own.indices, item), moved.mean(axis=1) / n_votes[own.indices])
    return covariance, float((error.var(axis=1) + noise / n_votes**2).sum())
