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
from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.kernels.interval_draws import interval
from fewlabels.kernels.weighting import (
    Indicator,
    Weighting,
    between,
    equal_width,
    quantile_edges,
)
from fewlabels.methods.registry import METHODS
from fewlabels.methods.votes.data import domain_codes, domain_texts, votes_given
from fewlabels.metrics.base import Metric, ScoreView
from fewlabels.metrics.calibration import CalibrationBins, frequency
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
        return Details(
            {
                name: {
                    "description": m.description,
                    "direction": m.direction,
                    "bounds": list(m.bounds),
                }
                for name, m in metrics.items()
            }
        )

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
    present = predictions.has_probabilities[rows]
    # Classifiers with probabilities for the same items, and the same posterior, share draws.
    alike: dict[tuple[int, bytes], list[int]] = {}
    for j in np.flatnonzero(present.any(axis=0)).tolist():
        alike.setdefault((id(posterior.of(j)), present[:, j].tobytes()), []).append(j)
    reliability: dict[int, dict[str, Any]] = {}
    for columns in alike.values():
        subset = rows[present[:, columns[0]]]
        # All of them are a view; indices would copy.
        rows_of = slice(None) if len(subset) == predictions.n_items else subset
        bins = [
            ScoreBins.of(
                CalibrationBins("positive", "equal-width", RELIABILITY_BINS),
                ScoreView(predictions.n_classes, predictions.probabilities[rows_of, j]),
            )[0]
            for j in columns
        ]
        calibrated = reliability_of(some, posterior.of(columns[0]), subset, bins, level)
        reliability |= zip(columns, calibrated, strict=True)
    classes = _shown_classes(predictions, posterior)
    out = []
    for j in sorted(reliability):
        subset = rows[present[:, j]]
        labels, mass = predictions.labels[subset], some.weight[subset] * some.times[subset]
        p, q = predictions.probabilities[subset, j], posterior.of(j).marginals()
        out.append(
            {
                "model": predictions.models[j],
                "n_items": predictions.size_of(predictions.has_probabilities[:, j]),
                "missing": predictions.size_of(~predictions.has_probabilities[:, j]),
                "distributions": [
                    score_distribution(
                        predictions.classes[k],
                        p[:, k],
                        q[subset, k] * mass,
                        mass,
                        labels == k,
                        labels,
                    )
                    for k in classes
                ],
                "reliability": _reliability(predictions, reliability[j]),
            }
        )
    return out


def _shown_classes(predictions: Predictions, posterior: LabelPosterior) -> list[int]:
    """The second of two classes, or all; of very many those that are commonest."""
    if predictions.n_classes == 2:
        return [1]
    if predictions.n_classes <= _MANY_CLASSES:
        return list(range(predictions.n_classes))
    common = np.argsort(-posterior.marginals().sum(axis=0), kind="stable")
    shown: list[int] = np.sort(common[:MOST_CELLS]).tolist()
    return shown


def score_distribution(
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


@dataclass(frozen=True, eq=False)
class ScoreBins:
    """Items by the probability of an event: the class (n,) in question, and the edges (B + 1,)."""

    event: Ints
    confidence: Floats  # (n,)
    items: Indicator
    edges: Floats

    @staticmethod
    def of(bins: CalibrationBins, view: ScoreView) -> list[ScoreBins]:
        """The bins of a classifier's probabilities, of each event that a metric is about."""
        out = []
        for event, p in bins.confidences(view):
            if bins.quantiles:
                edges = quantile_edges(p, bins.size, view.times)
                codes = between(edges, p)
            else:
                edges, codes = np.arange(bins.size + 1) / bins.size, equal_width(p, bins.size)
            out.append(ScoreBins(event, p, Indicator(codes, bins.size), edges))
        return out

    def take(self, rows: Ints) -> ScoreBins:
        """Some of the items in the same bins."""
        items = Indicator(self.items.codes[rows], self.items.size)
        return ScoreBins(self.event[rows], self.confidence[rows], items, self.edges)

    def sums(self, weights: Weighting, block: slice | None) -> Floats:
        """Weight of the classes in question, and of all, per bin: (2, B, D)."""
        event = self.event if block is None else self.event[block]
        sums = np.empty((2, self.items.size, weights.size))
        sums[0] = self.items.sums(weights.of_events(event), block)
        sums[1] = self.items.sums(weights.total, block)
        if weights.pseudo is not None:
            item, draw, _, mass, total = weights.pseudo
            event_mass = mass[np.arange(len(item)), event[item]]
            sums[:, self.items.part(block).codes[item], draw] += event_mass, total
        return sums


class _Sums:
    """Sums of classifiers' bins, (C, 2, B, D)."""

    def __init__(self, classifiers: Sequence[ScoreBins]) -> None:
        self.classifiers = classifiers
        self.drawn: Floats | float = 0.0

    def add(self, weights: Weighting, block: slice | None = None) -> None:
        """Add a block of items."""
        self.drawn += np.stack([bins.sums(weights, block) for bins in self.classifiers])

    def frequencies(self) -> Floats:
        """How often classifiers are right in every bin, (C, B, D)."""
        hits, total = np.moveaxis(np.asarray(self.drawn), 1, 0)
        return frequency(hits, total)


def reliability_of(
    predictions: Predictions, posterior: LabelPosterior, rows: Ints,
    classifiers: Sequence[ScoreBins], level: float | None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Predicted against inferred frequency in bins, with bands of a population's draws.

    Columns of the bins that hold items, whose places are `bin`. Without a level there are no bands:
    they would be the only ones to need draws, such as refits.
    """
    n_draws = 0 if level is None else _DRAWS
    if n_draws:
        posterior.prepare()
    weights = LabelWeights.from_rows(predictions, posterior, rows, n_draws)
    chunks = weights.summed(
        n_draws, [(POPULATION, partial(_Sums, classifiers))], lambda sums, _: sums[0].frequencies()
    )
    nothing = np.empty((len(classifiers), classifiers[0].items.size, 0))
    draws = np.concatenate([nothing, *chunks], axis=2)
    marginals, mass = posterior.marginals()[rows], weights.mass
    out = []
    for bins, drawn in zip(classifiers, draws, strict=True):
        size = bins.items.sums(mass)
        shown = np.flatnonzero(size > 0)
        expected = np.take_along_axis(marginals, bins.event[:, None], axis=1)[:, 0]
        observed = bins.items.sums(expected * mass)[shown] / size[shown]
        low = high = np.full(len(shown), np.nan)
        if level is not None:
            low, high = interval(observed, drawn[shown].T, level)
        out.append({
            "bin": shown,
            "from": bins.edges[shown],
            "to": bins.edges[shown + 1],
            "weight": size[shown] / size.sum(),
            "predicted": bins.items.sums(bins.confidence * mass)[shown] / size[shown],
            "observed": observed,
            "low": low,
            "high": high,
        })  # fmt: skip
    return out


def _reliability(predictions: Predictions, columns: Mapping[str, Any]) -> dict[str, Any]:
    """A reliability diagram as a report holds it, a dictionary for each bin."""
    kind = "confidence of the predicted class"
    if predictions.n_classes == 2:
        kind = f"P({predictions.classes[1]})"
    names = [name for name in columns if name != "bin"]
    rows = zip(*(columns[name].tolist() for name in names), strict=True)
    return {"kind": kind, "bins": [dict(zip(names, row, strict=True)) for row in rows]}


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
