"""Do the labels alone contradict an estimate? A check that the label model is not far off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fewlabels.errors import Status
from fewlabels.estimates import Estimate
from fewlabels.evaluate import Evaluator
from fewlabels.models.base import LabelModel
from fewlabels.models.label_distribution import LabelDistribution
from fewlabels.models.labeled import Labeled
from fewlabels.trust import Reasons

_LEAST, _MOST = 10, 20_000
"""With fewer labels nothing is contradicted; with more, estimates rest on the labels anyway."""

_TAIL = 0.005


def doubted_by_labels(
    rows: Sequence[Estimate], evaluator: Evaluator, reasons: Reasons
) -> list[Estimate]:
    """Estimates of all items, with status `assumption` where the labels alone speak against them.

    That is where a value lies outside the 99% interval of method `labeled`. With many classifiers
    and metrics one in a hundred does so by chance.
    """
    predictions = evaluator.predictions
    speak_for_themselves = evaluator.posterior.support is not None or not evaluator.n_draws
    informed = predictions.n_labeled
    alone: LabelModel = Labeled()
    if evaluator.posterior.spread is not None:
        informed, alone = predictions.n_annotated, LabelDistribution(alone)
    if speak_for_themselves or not _LEAST <= informed <= _MOST:
        return list(rows)
    by_labels = replace(
        evaluator,
        posterior=alone.infer(predictions, evaluator.posterior.salt),
        metrics={n: m for n, m in evaluator.metrics.items() if not m.in_memory},
        estimand="population",
        confidence_level=0.95,
    ).measure(np.arange(predictions.n_items))
    out = []
    for row in rows:
        against = False
        if row.status is Status.OK and row.metric in by_labels:
            draws = by_labels[row.metric].draws[:, predictions.models.index(row.model)]
            draws = draws[~np.isnan(draws)]
            if len(draws):
                low, high = np.quantile(draws, [_TAIL, 1 - _TAIL])
                against = not low <= row.value <= high
        if against:
            reasons.add(
                f"contradicted: the labels alone put {row.metric} elsewhere (outside their 99% "
                "interval); get more labels, or use method labeled",
                row.model,
            )
        out.append(row._replace(status=Status.ASSUMPTION) if against else row)
    return out
