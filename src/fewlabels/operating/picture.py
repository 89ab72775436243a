"""What a page shows of a classifier's scores: how they spread, and what they mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.blocks import map_blocks, spans, using_workers
from fewlabels.operating.answer import band
from fewlabels.operating.points import VALUE_DRAWS
from fewlabels.operating.question import Question
from fewlabels.shown import plain_values as plain

_BINS = 40
_PLACES = 60
_NEAR = 100
"""At most so many items stand for a place; more would tell nothing new."""


def picture_of(question: Question, level: float, workers: int | None) -> dict[str, Any]:
    """Histogram of the scores by label, and P(positive) by score with a band, in plain values."""
    with using_workers(workers):
        recalibration = _recalibration(question, level)
    picture: dict[str, Any] = plain(
        {"histogram": _histogram(question), "recalibration": recalibration}
    )
    return picture


def _histogram(question: Question) -> dict[str, Any]:
    scores = question.scores[question.rows]
    if question.probability:
        edges = np.linspace(0.0, 1.0, _BINS + 1)
    else:
        # Halves: the difference of two huge scores may not be a number.
        low, high = scores.min() / 2, scores.max() / 2
        room = max(high - low, abs(high) * 1e-6, 1e-300)
        middle = low + (high - low) / 2
        edges = 2 * (middle + room * np.linspace(-0.5, 0.5, _BINS + 1))
    sides = {"unlabeled": -1, "negative": 0, "positive": 1}
    # The outermost scores may lie a rounding error beyond the edges.
    scores = np.clip(scores, edges[0], edges[-1])
    return {
        "edges": edges,
        **{
            name: np.histogram(scores[question.known == label], edges)[0]
            for name, label in sides.items()
        },
    }


def _recalibration(question: Question, level: float) -> dict[str, Floats]:
    """Mean P(positive) of the unlabeled items around about 60 quantiles of the score."""
    rows = question.rows[question.known < 0]
    if question.posterior.support is not None:
        rows = rows[:0]  # it says nothing of items without a label
    # By their keys where scores tie, so that the order of the rows does not show.
    rows = rows[np.lexsort((question.predictions.keys[rows], question.scores[rows]))]
    groups = [group for group in np.array_split(rows, _PLACES) if len(group)]
    groups = [g[np.unique(np.linspace(0, len(g) - 1, _NEAR).astype(np.int64))] for g in groups]
    if not groups:
        return {name: np.empty(0) for name in ("score", "probability", "low", "high")}
    posterior = question.posterior
    posterior.prepare()
    parameters = posterior.interval_parameters or posterior.parameters
    starts = np.cumsum([0, *(len(g) for g in groups)])[:-1]
    size = np.diff(np.append(starts, sum(len(g) for g in groups)))
    taken = np.concatenate(groups)

    def means(index: slice) -> Floats:
        draws = np.arange(index.start, index.stop)
        chance = parameters.block(draws, taken)[:, question.positive]
        return (np.add.reduceat(chance, starts, axis=0) / size[:, None]).T

    count = min(parameters.size, VALUE_DRAWS)
    drawn = np.concatenate(list(map_blocks(means, spans(count, 50))))
    low, middle, high = band(drawn, drawn, level, kind="equal-tailed")
    score = np.add.reduceat(question.scores[taken] / np.repeat(size, size), starts)
    return {"score": score, "probability": middle, "low": low, "high": high}
