"""What a report shows beside the estimates: scores by inferred class, and reliability."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fewlabels.errors import Status
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.binning import Indicator, equal_width
from fewlabels.kernels.blocks import map_blocks, using_workers
from fewlabels.kernels.keyed import exponentials
from fewlabels.metrics.base import Metric
from fewlabels.models.registry import METHODS
from fewlabels.posterior import LabelPosterior, draw_labels
from fewlabels.predictions import Predictions

if TYPE_CHECKING:
    from fewlabels.estimates import Estimates

SCORE_BINS = 30
RELIABILITY_BINS = 10
_DRAWS = 400
_MOST_ITEMS = 50_000
_MOST_TICKS = 200


def describe(
    predictions: Predictions,
    posterior: LabelPosterior,
    method: str,
    metrics: Mapping[str, Metric],
    workers: int | None,
    estimates: Estimates,
) -> dict[str, Any]:
    """Everything that a report shows beyond the estimates themselves, as plain values."""
    rows = _some_rows(predictions, posterior)
    labeled = np.bincount(predictions.labels[predictions.labeled], minlength=predictions.n_classes)
    shown = dict.fromkeys(row.status for row in estimates.rows)
    level = 0.9 if math.isnan(estimates.confidence_level) else estimates.confidence_level
    with using_workers(workers):
        profiles = [
            _profile(predictions, posterior.of(j), j, rows, level)
            for j in range(predictions.n_models)
        ]
    return {
        "status_messages": {s.value: s.message for s in Status if s in shown},
        "method_info": _method_info(method),
        "diagnostic_info": dict(METHODS[method].diagnostics) if method in METHODS else {},
        "metric_info": {
            name: {"description": m.description, "direction": m.direction, "bounds": list(m.bounds)}
            for name, m in metrics.items()
        },
        "best": {
            name: estimates.probability_best(name)
            for name, m in metrics.items()
            if m.direction and len(estimates.draws[name, None])
        },
        "class_balance": {
            "labeled": {str(c): int(v) for c, v in zip(predictions.classes, labeled, strict=True)},
            "estimated": {
                str(c): float(v)
                for c, v in zip(
                    predictions.classes,
                    np.average(posterior.marginals(), axis=0, weights=predictions.weight),
                    strict=True,
                )
            },
        },
        "profiles": [p for p in profiles if p],
    }


def _method_info(method: str) -> dict[str, Any]:
    known = METHODS.get(method)
    if known is None:
        return {"title": method, "summary": "a label model given by the user"}
    info = dataclasses.asdict(known)
    return {"title": info.pop("name")} | {
        k: info[k] for k in ("summary", "how", "assumes", "fails_when", "source")
    }


def _some_rows(predictions: Predictions, posterior: LabelPosterior) -> Ints:
    """All items that the posterior speaks of, or 50,000 of them chosen by identity."""
    rows = np.arange(predictions.n_items)
    if posterior.support is not None:
        rows = rows[posterior.support]
    if len(rows) > _MOST_ITEMS:
        rows = np.sort(rows[np.argsort(predictions.keys[rows])[:_MOST_ITEMS]])
    return rows


def _profile(
    predictions: Predictions, posterior: LabelPosterior, j: int, rows: Ints, level: float
) -> dict[str, Any] | None:
    present = predictions.has_probabilities[rows, j]
    if predictions.probabilities is None or not present.any():
        return None
    rows = rows[present]
    p = predictions.probabilities[rows, j]
    q = posterior.marginals()[rows] * predictions.weight[rows][:, None]
    labels = predictions.labels[rows]
    classes = [1] if predictions.n_classes == 2 else range(predictions.n_classes)
    return {
        "model": predictions.models[j],
        "n_items": int(predictions.has_probabilities[:, j].sum()),
        "missing": int((~predictions.has_probabilities[:, j]).sum()),
        "distributions": [
            _distribution(predictions.classes[k], p[:, k], q, labels, k) for k in classes
        ],
        "reliability": _reliability(predictions, posterior, rows, p, level),
    }


def _distribution(name: Any, score: Floats, q: Floats, labels: Ints, k: int) -> dict[str, Any]:
    edges = np.linspace(0, 1, SCORE_BINS + 1)

    def density(weights: Floats) -> list[float]:
        height = np.histogram(score, bins=edges, weights=weights)[0]
        total = height.sum()
        return (height * SCORE_BINS / total if total > 0 else height).tolist()

    known = labels >= 0
    return {
        "class": str(name),
        "edges": edges.tolist(),
        "own": density(q[:, k]),
        "other": density(q.sum(axis=1) - q[:, k]),
        "labeled_own": score[labels == k][:_MOST_TICKS].tolist(),
        "labeled_other": score[known & (labels != k)][:_MOST_TICKS].tolist(),
    }


def _reliability(
    predictions: Predictions, posterior: LabelPosterior, rows: Ints, p: Floats, level: float
) -> dict[str, Any]:
    """Predicted against inferred frequency in ten bins, with bands over posterior draws."""
    two = predictions.n_classes == 2
    event = np.ones(len(p), dtype=np.int64) if two else np.argmax(p, axis=1)
    confidence = np.take_along_axis(p, event[:, None], axis=1)[:, 0]
    weight, keys = predictions.weight[rows], predictions.keys[rows]
    codes = equal_width(confidence, RELIABILITY_BINS)
    items = Indicator(codes, RELIABILITY_BINS)

    parameters = posterior.interval_parameters or posterior.parameters
    parameters.prepare()

    def frequency(index: Ints) -> Floats:
        drawn = parameters.block(index % parameters.size, rows)
        labels = draw_labels(drawn, keys, index, posterior.salt)
        row_weight = exponentials(keys, index, posterior.salt) * weight[:, None]
        hit = items.sums(row_weight * (labels == event[:, None]))
        total = items.sums(row_weight)
        # Half a hit and half a miss keep a bin of few items from certainty.
        return (hit + 0.5) / (total + 1)

    width = max(2**20 // max(len(rows) * predictions.n_classes, 1), 1)
    blocks = [np.arange(i, min(i + width, _DRAWS)) for i in range(0, _DRAWS, width)]
    draws = np.concatenate(list(map_blocks(frequency, blocks)), axis=1)
    expected = np.take_along_axis(posterior.marginals()[rows], event[:, None], axis=1)[:, 0]
    size = items.sums(weight)
    bins = []
    for b in np.flatnonzero(size > 0):
        low, high = np.quantile(draws[b], [(1 - level) / 2, (1 + level) / 2])
        inside = codes == b
        observed = float(np.average(expected[inside], weights=weight[inside]))
        bins.append(
            {
                "from": b / RELIABILITY_BINS,
                "to": (b + 1) / RELIABILITY_BINS,
                "weight": float(size[b] / size.sum()),
                "predicted": float(np.average(confidence[inside], weights=weight[inside])),
                "observed": observed,
                "low": min(float(low), observed),
                "high": max(float(high), observed),
            }
        )
    kind = f"P({predictions.classes[1]})" if two else "confidence of the predicted class"
    return {"kind": kind, "bins": bins}
