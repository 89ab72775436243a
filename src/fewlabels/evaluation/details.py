"""What a report shows beside the estimates, in plain values, computed when it is rendered.

Scores and reliability of each classifier, comparisons, joint errors, class balance, votes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fewlabels.errors import Status, UsageError
from fewlabels.estimates import MOST_COMPARED, Estimates
from fewlabels.evaluation.confusion_matrices import confusion_matrices
from fewlabels.evaluation.differences import comparisons, errors_together
from fewlabels.evaluation.disagreements import disagreements
from fewlabels.evaluation.draws import POPULATION, LabelWeights, item_sample
from fewlabels.evaluation.evaluator import Evaluator
from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.kernels.interval_draws import interval
from fewlabels.kernels.weighting import Soft
from fewlabels.methods.registry import METHODS
from fewlabels.methods.votes.data import domain_codes, domain_texts, votes_given
from fewlabels.metrics.base import Metric, Plan, ratio
from fewlabels.metrics.calibration import calibration_error, frequency
from fewlabels.metrics.plans import States, view_of
from fewlabels.posterior import LabelPosterior, VoteRates
from fewlabels.predictions import Predictions
from fewlabels.report.shown import Result, plain_values

SCORE_BINS = 30
RELIABILITY_BINS = 10
_DRAWS = 400
_MOST_ITEMS = 50_000
_MOST_TICKS = 200

MOST_CELLS = 30
"""Rows and columns of a heat map that can still be read."""

_NO_ITEMS = ("status_messages", "method_info", "metric_info", "diagnostic_info")
_MANY_CLASSES = 100
_MOST_MATRICES = 12
_MOST_CLASSES = 6


@dataclass(frozen=True)
class Details:
    """Computes what a report shows beside the estimates.

    `metric_info` has the description, direction and bounds of every metric. `refused` is why
    nothing is said of the items, where they are not held.
    """

    metric_info: Mapping[str, Mapping[str, Any]]
    refused: UsageError | None = None

    @staticmethod
    def from_metrics(metrics: Mapping[str, Metric]) -> Details:
        """The details for these metrics."""
        return Details({
            name: {"description": m.description, "direction": m.direction, "bounds": list(m.bounds)}
            for name, m in metrics.items()
        })  # fmt: skip

    def __call__(self, estimates: Estimates, names: Sequence[str] | None) -> dict[str, Any]:
        """Some parts, by name, or all (None), in plain values."""
        stated = estimates.confidence_level
        level, predictions = 0.95 if math.isnan(stated) else stated, estimates.judged
        posterior, method = estimates.judged_by, estimates.method

        def together() -> dict[str, Any] | None:
            """None where the method or the input has no joint errors."""
            if len(estimates.models) > MOST_COMPARED:
                return None
            try:
                return errors_together(estimates).to_dict()
            except UsageError:
                return None

        parts: dict[str, Callable[[], Any]] = {
            "comparison": lambda: {n: c.to_dict() for n, c in comparisons(estimates).items()},
            "status_messages": lambda: {
                s.value: s.message for s in Status if any(row.status is s for row in estimates.rows)
            },
            "method_info": lambda: _method_info(method),
            "diagnostic_info": lambda: (
                dict(METHODS[method].diagnostics) if method in METHODS else {}
            ),
            "metric_info": lambda: self.metric_info,
            "best": lambda: {
                name: estimates.probability_best(name)
                for name, way in estimates.directions.items()
                if way and len(estimates.draws[name, None])
            },
            "class_balance": lambda: _class_balance(predictions, posterior),
            "profiles": lambda: _profiles(
                predictions, posterior, None if math.isnan(stated) else level
            ),
            "votes": lambda: _votes(predictions, posterior, level),
            "together": together,
        }
        chosen = parts if names is None else names
        made = {name: parts[name]() for name in chosen if not self.refused or name in _NO_ITEMS}
        plain: dict[str, Any] = plain_values(made)
        return plain

    def confusion(self, estimates: Estimates, group: str | None) -> Result:
        """Confusion matrices of all items, or of a group."""
        return confusion_matrices(self._held(estimates), group)

    def disagreements(self, estimates: Estimates, confident: float) -> Result:
        """Items on which classifiers and labels, or confident classifiers, differ."""
        return disagreements(self._held(estimates), confident)

    def _held(self, estimates: Estimates) -> Estimates:
        if self.refused:
            raise self.refused
        return estimates


def _class_balance(predictions: Predictions, posterior: LabelPosterior) -> dict[str, Any]:
    """How many labels there are of each class, and its share as inferred."""
    item, label = predictions.named
    labeled = np.bincount(label, predictions.times[item], minlength=predictions.n_classes)
    mass, classes = predictions.weight * predictions.times, [str(c) for c in predictions.classes]
    balance = np.average(posterior.marginals(), axis=0, weights=mass)
    return {
        "labeled": {c: int(v) for c, v in zip(classes, labeled, strict=True)},
        "estimated": dict(zip(classes, balance.tolist(), strict=True)),
    }


def _method_info(method: str) -> dict[str, Any]:
    registered = METHODS.get(method)
    if registered is None:
        return {"title": method, "summary": "a label model given by the user"}
    info = dataclasses.asdict(registered)
    return {"title": info.pop("name")} | {
        k: info[k] for k in ("summary", "how", "assumes", "fails_when", "source")
    }


def _profiles(
    predictions: Predictions, posterior: LabelPosterior, level: float | None
) -> list[dict[str, Any]]:
    """Scores and reliability of every classifier with probabilities, by some of the items."""
    if predictions.probabilities is None:
        return []
    rows = np.arange(predictions.n_items)
    rows = rows[posterior.speaks_of(rows) & (predictions.weight > 0)]
    some, rows = item_sample(predictions, rows, _MOST_ITEMS)
    classes = _shown_classes(predictions, posterior)
    error = calibration_error(size=RELIABILITY_BINS)
    evaluator = Evaluator(some, posterior, {error.name: error}, "population", level)
    out: dict[int, dict[str, Any]] = {}
    for shared, _, columns, subset in evaluator.patterns(rows):
        plans = [error.statistic.prepare(view_of(some, subset, j)) for j in columns]
        curves = reliability_of(some, shared, subset, plans, level)
        labels, mass = predictions.labels[subset], some.weight[subset] * some.times[subset]
        q = shared.marginals()[subset]
        for j, curve in zip(columns.tolist(), curves, strict=True):
            p = predictions.probabilities[subset, j]
            out[j] = {
                "model": predictions.models[j],
                "n_items": predictions.size_of(predictions.has_probabilities[:, j]),
                "missing": predictions.size_of(~predictions.has_probabilities[:, j]),
                "distributions": [
                    _distribution(
                        predictions.classes[k], p[:, k], q[:, k] * mass, mass, labels == k, labels
                    )
                    for k in classes
                ],
                "reliability": _reliability(predictions, curve),
            }
    return [out[j] for j in sorted(out)]


def _shown_classes(predictions: Predictions, posterior: LabelPosterior) -> list[int]:
    """The second of two classes, or all; of very many those that are commonest."""
    if predictions.n_classes == 2:
        return [1]
    if predictions.n_classes <= _MANY_CLASSES:
        return list(range(predictions.n_classes))
    common = np.argsort(-posterior.marginals().sum(axis=0), kind="stable")
    shown: list[int] = np.sort(common[:MOST_CELLS]).tolist()
    return shown


def _distribution(
    name: Any, score: Floats, q: Floats, mass: Floats, of_class: Bools, labels: Ints
) -> dict[str, Any]:
    """Scores of a class by whether items are of it: weight q of mass (n,), and labels of it."""
    edges = np.linspace(0, 1, SCORE_BINS + 1)

    def density(weights: Floats) -> list[float]:
        height = np.histogram(score, bins=edges, weights=weights)[0]
        total = height.sum()
        return (height * SCORE_BINS / total if total > 0 else height).tolist()

    return {
        "class": str(name),
        "edges": edges.tolist(),
        "own": density(q),
        "other": density(mass - q),
        "labeled_own": score[of_class][:_MOST_TICKS].tolist(),
        "labeled_other": score[(labels >= 0) & ~of_class][:_MOST_TICKS].tolist(),
    }


def reliability_of(
    predictions: Predictions, posterior: LabelPosterior, rows: Ints, plans: Sequence[Plan],
    level: float | None,
) -> list[dict[str, Floats]]:  # fmt: skip
    """Predicted against inferred frequency in bins (B,), with bands of a population's draws.

    `plans` are those of `CalibrationBins`; a bin of `weight` 0 has no frequency. Without a level
    there are no bands: they would be the only ones to need draws, such as refits.
    """
    n_draws = 0 if level is None else _DRAWS
    if n_draws:
        posterior.prepare()
    weights = LabelWeights.from_rows(predictions, posterior, rows, n_draws)
    expected = Soft(posterior.marginals()[rows][:, :, None], weights.mass[:, None])

    def frequencies(sums: list[States], _: Ints) -> list[Floats]:
        digests = (digest[""][..., 0, :] for digest in sums[0].digests())
        return [frequency(hits, weight) for weight, _, hits in digests]

    states = partial(States, [{"": plan} for plan in plans])
    chunks = weights.summed(n_draws, [(POPULATION, states)], frequencies)
    out = []
    for j, plan in enumerate(plans):
        size, confidence, hits = plan.state(expected)[..., 0, 0]
        observed, low, high = ratio(hits, size), *np.full((2, len(size)), np.nan)
        shown = np.flatnonzero(size)
        if level is not None:
            drawn = np.concatenate([chunk[j][shown] for chunk in chunks], axis=1)
            low[shown], high[shown] = interval(observed[shown], drawn.T, level)
        out.append({
            "weight": ratio(size, size.sum()), "predicted": ratio(confidence, size),
            "observed": observed, "low": low, "high": high,
        })  # fmt: skip
    return out


def _reliability(predictions: Predictions, columns: Mapping[str, Floats]) -> dict[str, Any]:
    """A reliability diagram as a report holds it, a dictionary for each bin with items."""
    kind = "confidence of the predicted class"
    if predictions.n_classes == 2:
        kind = f"P({predictions.classes[1]})"
    bins = [
        {"from": b / RELIABILITY_BINS, "to": (b + 1) / RELIABILITY_BINS}
        | {name: float(column[b]) for name, column in columns.items()}
        for b in np.flatnonzero(columns["weight"]).tolist()
    ]
    return {"kind": kind, "bins": bins}


def _votes(predictions: Predictions, posterior: LabelPosterior, level: float) -> dict[str, Any]:
    """Heat maps of a model of votes, without those that would be empty."""
    rates = posterior.vote_rates
    if rates is None:
        return {}
    served = predictions.select_models(rates.models)
    domains = domain_texts(rates.domains)
    out: dict[str, Any] = {}
    if len(domains) > 1:
        out["error_rates"] = _error_rates(served, rates, domains, level)
    if not rates.one_rate and predictions.n_classes <= _MOST_CLASSES:
        out["confusion"] = _confusion(served, rates)
    for what, names in (("domain", domains), ("classifier", list(rates.models))):
        matrix = posterior.diagnostics.get(f"{what}_similarity")
        if matrix is not None and len(matrix) == len(names) > 1:
            out.setdefault("similarity", []).append(
                {"of": what, **_similarity(np.array(matrix), names)}
            )
    return out


def _error_rates(
    predictions: Predictions, rates: VoteRates, domains: list[str], level: float
) -> dict[str, Any]:
    """Mean error rates with intervals; of many domains or classifiers the worst ones."""
    mean = rates.error_rates.mean(axis=0)
    codes = domain_codes(predictions, rates.domains)
    everything = np.arange(predictions.n_items)
    count = votes_given(predictions, codes, len(domains), everything)
    # A classifier that does not vote in a domain has its prior there, which is no finding.
    rate = np.where((count > 0) & ~np.isnan(mean), mean, 0.0)
    voted = np.maximum(count > 0, 1e-9)
    shown_d = _largest((rate * voted).sum(axis=1) / voted.sum(axis=1))
    shown_m = _largest((rate * voted).sum(axis=0) / voted.sum(axis=0))
    block = np.ix_(shown_d, shown_m)
    draws = rates.error_rates[:, shown_d[:, None], shown_m]
    low, high = interval(mean[block], draws, level)
    no_votes = count[block] == 0

    def table(values: Floats) -> list[list[float | None]]:
        return np.where(no_votes, np.nan, values).tolist()

    return {
        "level": level,
        "n_domains": len(domains),
        "n_models": len(rates.models),
        "domains": [domains[d] for d in shown_d],
        "models": [rates.models[j] for j in shown_m],
        "value": table(mean[block]),
        "low": table(low),
        "high": table(high),
        "n_votes": count[block].tolist(),
    }


def _largest(values: Floats) -> Ints:
    """The places of the largest values, as many as a heat map can show, in the order given."""
    if len(values) <= MOST_CELLS:
        return np.arange(len(values))
    return np.sort(np.argsort(-values, kind="stable")[:MOST_CELLS])


def _confusion(predictions: Predictions, rates: VoteRates) -> dict[str, Any]:
    """P(vote | class) of the first classifiers, over the domains that they vote in."""
    matrices = []
    for j in range(min(len(rates.models), _MOST_MATRICES)):
        joint = rates.joint(predictions.given_by("hard", j), j)
        conditional = joint / np.maximum(joint.sum(axis=0), np.finfo(float).tiny)
        matrices.append({"model": rates.models[j], "matrix": conditional.mean(axis=2).T.tolist()})
    return {
        "classes": [str(c) for c in predictions.classes],
        "n_models": len(rates.models),
        "matrices": matrices,
    }


def _similarity(matrix: Floats, names: list[str]) -> dict[str, Any]:
    """Probabilities of sharing rates, in an order that puts those alike beside each other."""
    # Loaded here: it takes a tenth of a second, and most reports have no such figure.
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    # Of many, those that share most with their nearest.
    nearest = (matrix - 2 * np.eye(len(matrix))).max(axis=1)
    shown = _largest(nearest)
    matrix = matrix[np.ix_(shown, shown)]
    order = np.arange(len(shown))
    if len(shown) > 2:
        distance = 1 - (matrix + matrix.T) / 2
        np.fill_diagonal(distance, 0.0)
        near = squareform(np.maximum(distance, 0.0), checks=False)
        order = leaves_list(linkage(near, "average", optimal_ordering=True))
    return {
        "n_names": len(names),
        "names": [names[shown[i]] for i in order],
        "matrix": matrix[np.ix_(order, order)].tolist(),
    }
