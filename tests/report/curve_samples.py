"""Made-up reports of curves and thresholds: the dictionaries that the renderers are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from report_samples import NASTY

Report = dict[str, Any]
Picture = dict[str, Any]

GRID = (np.arange(100) + 0.5) / 100
QUANTILES = [0.05, 0.5, 0.95]


class World:
    """Scores of n items whose classes are known, and draws of the labels that a method has not."""

    def __init__(
        self,
        n: int = 1797,
        rate: float = 0.1,
        labeled: int = 20,
        *,
        apart: float = 3.0,
        doubt: float = 0.8,
        probability: bool = True,
        seed: int = 5,
    ) -> None:
        rng = np.random.default_rng(seed)
        truth = rng.random(n) < rate
        margin = rng.normal(apart * truth + np.log(rate / (1 - rate)) - apart / 3, 1.2)
        self.margin = np.sort(margin)[::-1]
        self.truth = truth[np.argsort(-margin)]
        self.scores = 1 / (1 + np.exp(-self.margin)) if probability else 20 * self.margin
        self.labeled = np.zeros(n, dtype=bool)
        self.labeled[rng.choice(n, labeled, replace=False)] = True
        # Draws of P(positive | score), which differ by a shift and a slope.
        shift = rng.normal(0.3, doubt, (120, 1))
        slope = np.exp(rng.normal(0, doubt / 3, (120, 1)))
        self.chances = 1 / (1 + np.exp(-(slope * self.margin + shift)))
        drawn = rng.random(self.chances.shape) < self.chances
        drawn[:, self.labeled] = self.truth[self.labeled]
        self.tp = np.cumsum(drawn, axis=1)
        self.positive = np.maximum(self.tp[:, -1:], 1)
        self.called = np.arange(1, n + 1)

    @property
    def n_positive(self) -> int:
        """Labeled positives."""
        return int(self.truth[self.labeled].sum())

    def precision_recall(self) -> tuple[Any, Any]:
        """Precision at each recall, and where it is reached, per draw."""
        recall, precision = self.tp / self.positive, self.tp / self.called
        cut = np.array([np.searchsorted(r, GRID) for r in recall]).clip(max=len(self.scores) - 1)
        return np.take_along_axis(precision, cut, axis=1), self.scores[cut]

    def roc(self) -> tuple[Any, Any]:
        """True-positive rate at each false-positive rate, and where it is reached, per draw."""
        fp = self.called - self.tp
        fpr = fp / np.maximum(fp[:, -1:], 1)
        cut = np.array([np.searchsorted(r, GRID) for r in fpr]).clip(max=len(self.scores) - 1)
        return np.take_along_axis(self.tp / self.positive, cut, axis=1), self.scores[cut]

    def line(self, kind: str) -> Report:
        """A curve's lists and its area."""
        values, cuts = self.precision_recall() if kind == "precision-recall" else self.roc()
        low, value, high = np.quantile(values, QUANTILES, axis=0)
        x, y = ("recall", "precision") if kind == "precision-recall" else ("fpr", "tpr")
        metric = "average_precision" if kind == "precision-recall" else "roc_auc"
        return {
            x: GRID.tolist(),
            y: value.tolist(),
            "low": low.tolist(),
            "high": high.tolist(),
            "threshold": np.median(cuts, axis=0).tolist(),
            "area": {"metric": metric, **interval(values.mean(axis=1))},
        }

    def facts(self) -> Report:
        """What all reports say."""
        return {
            "fewlabels": "0.1.0",
            "model": "logreg",
            "positive": "spam",
            "classes": ["ham", "spam"],
            "method": "monotone-curves",
            "estimand": "sample",
            "confidence_level": 0.9,
            "seed": 0,
            "n_items": len(self.scores),
            "n_labeled": int(self.labeled.sum()),
            "n_labeled_positive": self.n_positive,
            "unit": "probability" if self.scores.max() <= 1 else "score",
        }

    def picture(self) -> Picture:
        """The histogram of scores and the recalibration curve."""
        probability = self.scores.max() <= 1
        edges = np.linspace(0, 1, 41) if probability else np.histogram(self.scores, 40)[1]
        sides = {
            "unlabeled": self.scores[~self.labeled],
            "negative": self.scores[self.labeled & ~self.truth],
            "positive": self.scores[self.labeled & self.truth],
        }
        places = np.linspace(len(self.scores) - 1, 0, 60).astype(int)
        low, value, high = np.quantile(self.chances[:, places], QUANTILES, axis=0)
        return {
            "histogram": {
                "edges": edges.tolist(),
                **{side: np.histogram(s, edges)[0].tolist() for side, s in sides.items()},
            },
            "recalibration": {
                "score": self.scores[places].tolist(),
                "probability": value.tolist(),
                "low": low.tolist(),
                "high": high.tolist(),
            },
        }


def interval(draws: Any) -> Report:
    """Median and 90% interval."""
    low, value, high = np.quantile(draws, QUANTILES)
    return {"value": float(value), "low": float(low), "high": float(high)}


def curves(world: World, **changes: Any) -> Report:
    """The report of both curves."""
    lines = {kind: world.line(kind) for kind in ("precision-recall", "roc")}
    tail = {
        "prevalence": interval(world.positive / len(world.scores)),
        "status": "ok",
        "warnings": [],
        "diagnostics": {"effective_sample_size": 713.2, "weights": {"line": 0.61, "kink": 0.39}},
    }
    return {"what": "curves", **world.facts(), "curves": lines, **tail, **changes}


def curve(world: World, kind: str, **changes: Any) -> Report:
    """The report of one curve."""
    both = curves(world)
    line = both.pop("curves")[kind]
    return {**both, "what": "curve", "kind": kind, **line, **changes}


def rates_at(world: World, cut: int) -> dict[str, Any]:
    """Draws of rates where the items down to one are called positive."""
    called, n = cut + 1, len(world.scores)
    tp, positive = world.tp[:, cut], world.positive[:, 0]
    fp, tn = called - tp, n - positive - (called - tp)
    return {
        "precision": tp / called,
        "recall": tp / positive,
        "specificity": tn / (n - positive),
        "fpr": fp / (n - positive),
        "f1": 2 * tp / (called + positive),
        "accuracy": (tp + tn) / n,
        "predicted_positive_rate": np.full(len(tp), called / n),
    }


def threshold(world: World, precision: float = 0.8, recall: float = 0.6, **changes: Any) -> Report:
    """The report of thresholds that meet a precision and a recall."""
    p, r = world.tp / world.called, world.tp / world.positive
    met = ((p >= precision) & (r >= recall)).mean(axis=0)
    short = (np.maximum(precision - p, 0) + np.maximum(recall - r, 0)).mean(axis=0)
    best = int(met.argmax() if met.any() else short.argmin())
    at_best = rates_at(world, best)
    some = np.unique([*np.linspace(0, len(world.scores) - 1, 12).astype(int), best])[::-1]
    moved = [rates_at(world, cut) for cut in some]
    tail = {
        "conditions": [f"precision >= {precision}", f"recall >= {recall}"],
        "best": float(world.scores[best]),
        "best_probability": float(met[best]),
        "choice": "likeliest" if met.max() < 0.95 else "recall",
        "least": 0.95,
        "met": bool(met.any()),
        "rates": {name: interval(values) for name, values in at_best.items()},
        "by_threshold": {
            "threshold": world.scores[some].tolist(),
            **{
                name: {
                    end: [interval(rates[name])[end] for rates in moved]
                    for end in ("value", "low", "high")
                }
                for name in ("precision", "recall", "fpr", "predicted_positive_rate")
            },
        },
        "thresholds": world.scores[::-1].tolist(),
        "probability": met[::-1].tolist(),
        "status": "ok",
        "warnings": [],
        "diagnostics": {},
    }
    return {"what": "threshold", **world.facts(), **tail, **changes}


def plain() -> tuple[Report, Picture]:
    """A rare class, twenty labels."""
    world = World()
    return curves(world), world.picture()


def score_unit() -> tuple[Report, Picture]:
    """Margins of another unit, and one curve alone."""
    world = World(n=300, rate=0.3, labeled=50, probability=False, doubt=0.4)
    return curve(world, "roc"), world.picture()


def one_label() -> tuple[Report, Picture]:
    """One label: nearly everything is what the method believes beforehand."""
    world = World(n=60, labeled=1, doubt=2.5)
    said = ["only 1 label; the answer leans on what the method believes beforehand"]
    return curves(world, status="few-labels", warnings=said), world.picture()


def no_labels() -> tuple[Report, Picture]:
    """No label at all, and no threshold known where the curve begins."""
    world = World(n=200, labeled=0, doubt=2.0)
    report = curves(world, status="few-labels", warnings=["no labels at all: the prior's answer"])
    for line in report["curves"].values():
        line["threshold"] = [None] * 12 + line["threshold"][12:]
    return report, world.picture()


def undefined() -> tuple[Report, Picture]:
    """No draw has a positive item: the band is everything, the area is not known."""
    report, picture = no_labels()
    for line in report["curves"].values():
        line |= {"low": [0.0] * 100, "high": [1.0] * 100, "threshold": [None] * 100}
        line["area"] |= {"value": None, "low": None, "high": None}
    report |= {"status": "undefined", "prevalence": {"value": None, "low": None, "high": None}}
    nothing: Picture = {"score": [], "probability": [], "low": [], "high": []}
    return report, picture | {"recalibration": nothing}


def nasty_names() -> tuple[Report, Picture]:
    """Names that hold markup, controls, half an emoji; three classes; certain everywhere."""
    world = World(n=90, rate=0.4, labeled=90, doubt=0.0)
    report = curves(
        world,
        model=NASTY[0],
        positive=NASTY[1],
        classes=NASTY[1:4],
        method=NASTY[4],
        status="assumption",
        warnings=NASTY[5:],
        diagnostics={NASTY[0]: NASTY[3]},
        estimand="population",
    )
    return report, world.picture()


CURVES: dict[str, Callable[[], tuple[Report, Picture]]] = {
    made.__name__: made
    for made in (plain, score_unit, one_label, no_labels, undefined, nasty_names)
}


def met() -> Report:
    """A condition that several thresholds may meet."""
    return threshold(World(apart=5.0, doubt=0.4), 0.75, 0.5)


def unlikely() -> Report:
    """A condition that the best threshold meets with a small probability."""
    return threshold(World(), 0.7, 0.5)


def not_met() -> Report:
    """A condition that no draw meets anywhere."""
    said = ["no draw meets the conditions at any threshold; the nearest falls short by .12"]
    return threshold(World(), 0.99, 0.99, warnings=said, status="assumption")


def sure() -> Report:
    """All labels are known; margins; a cost beside the rates."""
    world = World(n=120, rate=0.4, labeled=120, probability=False, doubt=0.0)
    report = threshold(world, 0.5, 0.5)
    report["rates"]["cost"] = {"value": 2.25, "low": 2.25, "high": 2.25}
    return report


def nasty_conditions() -> Report:
    """Names and conditions that hold markup; rates that are not known."""
    report = threshold(World(n=40, labeled=1), model=NASTY[0], positive=NASTY[3], method=NASTY[5])
    report["rates"]["precision"] = {"value": None, "low": None, "high": None}
    return report | {"conditions": NASTY[:4], "warnings": NASTY, "status": "few-labels"}


THRESHOLDS: dict[str, Callable[[], Report]] = {
    made.__name__: made for made in (met, unlikely, not_met, sure, nasty_conditions)
}
