"""`fewlabels.anytime`: beside estimates, intervals that hold whenever one stops labeling."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from fewlabels.data.label_record import DecidedItems, ItemsHere, key_hash, keys_digest, read_record
from fewlabels.data.table import naming_file
from fewlabels.errors import InputError, UsageError, listed
from fewlabels.estimates import Estimates
from fewlabels.evaluation.anytime import GUARDED
from fewlabels.evaluation.anytime import anytime as confidence_sequences
from fewlabels.kernels.arrays import Floats
from fewlabels.metrics.base import Metric
from fewlabels.metrics.registry import METRICS
from fewlabels.predictions import Predictions
from fewlabels.questions.next_items import least_share

LEVEL = 0.95


def anytime(estimates: Estimates, record: str | Path) -> Estimates:
    """The same estimates, beside intervals that hold however often one looks, whenever one stops.

    An ordinary interval holds at one look. Who labels until it says what they hope for is misled in
    nearly half of all cases (docs/benchmarks/labeling.md). These intervals hold at all looks
    together. They go by the items of a record alone, in the order in which they were drawn, and
    use the classifiers only as a control variate: no model has to be right. They are of the mean
    over all items, and wider.

    Parameters
    ----------
    estimates
        What `fewlabels.estimate` returns of predictions that were read with this record as
        `labels`, and with the column of items kept.
    record
        The record that `fewlabels label` wrote.

    Returns
    -------
    Estimates
        With `diagnostics["anytime"]`: `labels` (how many were drawn), `confidence_level`, and
        `intervals`: metric -> classifier -> [low, high].

    Raises
    ------
    UsageError
        If no metric is a mean over items with bounds, such as accuracy, or the predictions have no
        names of items.
    InputError
        If the record cannot be read, is of other items, or none of its labels was drawn with a
        known probability.

    References
    ----------
    Waudby-Smith and Ramdas 2020; Shekhar et al. 2023.
    """
    predictions, labels = estimates.predictions, read_record(record)
    if not predictions.item_names:
        raise UsageError(
            "the intervals need the names of the items, by which a record knows its labels; keep "
            "the column of items"
        )
    metrics = [name for name in estimates.directions if name in GUARDED]
    if not metrics:
        raise UsageError(
            "no metric here has an interval that holds whenever one stops; those that have: "
            f"{listed(GUARDED)}"
        )
    (names,) = predictions.item_names.values()
    place = {str(name): row for row, name in enumerate(names)}
    hashes = np.array([key_hash(name) for name in place], dtype=np.uint64)
    with naming_file(str(record)):
        labels.match(ItemsHere("the predictions", len(place), keys_digest(hashes)), all_items=True)
    drawn = DecidedItems.of(labels.decisions, place, labels.header.classes).labeled.drawn
    if not drawn.rows.size:
        raise InputError(
            f"{record}: none of its labels was drawn with a known probability, which the intervals "
            "go by; draw items with `fewlabels label`"
        )
    level = LEVEL if estimates.confidence_level is None else estimates.confidence_level
    ends = {
        metric: {
            model: [float(low[-1]), float(high[-1])]
            for model, (low, high) in intervals(predictions, METRICS[metric], drawn, level).items()
        }
        for metric in metrics
    }
    summary = {"labels": len(drawn.rows), "confidence_level": level, "intervals": ends}
    return replace(estimates, diagnostics={**estimates.diagnostics, "anytime": summary})


def intervals(
    predictions: Predictions, metric: Metric, drawn: DecidedItems, level: float
) -> dict[str, tuple[Floats, Floats]]:
    """The interval of each classifier's metric after each draw, (T,); see `evaluation.anytime`.

    `drawn` are the labeled items, all of them drawn; `predictions` hold their labels.
    """
    least = least_share(drawn.probability, drawn.left)
    return confidence_sequences(
        predictions, metric, drawn.rows, drawn.probability, drawn.left, level=level, least=least
    )
