"""Reports of label histograms and of calibrations: plain ones, and those that are hard to show."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.special import softmax

import fewlabels as fl
from fewlabels.calibration.recalibration import Settings, fit
from fewlabels.estimates import plain_values
from worlds import rounded

Report = dict[str, Any]

HOSTILE = "<script>ran=true</script>\u202e\n&\"' \x1b[31m"


def predictions(
    n: int = 120,
    classes: Any = (0, 1, 2),
    models: Any = ("good", "poor"),
    labels: tuple[int, int] = (0, 6),
    groups: dict[str, Any] | None = None,
) -> fl.Predictions:
    """Items whose annotators choose from a Dirichlet; the first classifier sees it best."""
    rng = np.random.default_rng(5)
    k = len(classes)
    truth = rng.dirichlet(np.full(k, 0.4), size=n)
    size = rng.integers(*labels, size=n, endpoint=True)
    counts = np.array([rng.multinomial(m, q) for m, q in zip(size, truth, strict=True)])
    noise = np.arange(1, len(models) + 1) / len(models)
    logits = np.log(truth + 0.02)[:, None] + noise[:, None] * rng.normal(size=(n, len(models), k))
    return fl.Predictions(
        rounded(softmax(1.5 * logits, axis=2)),
        histogram=counts,
        models=list(models),
        classes=list(classes),
        groups=groups,
    )


def _assessed(items: fl.Predictions, **arguments: Any) -> Report:
    report = fl.annotations.assess(items, **arguments).to_dict()
    return report


@cache
def plain() -> Report:
    """Two classifiers, three classes."""
    return _assessed(predictions(), statistics=["unanimity_3"])


@cache
def binary() -> Report:
    """One classifier, two classes."""
    return _assessed(predictions(classes=("no", "yes"), models=("net",)))


@cache
def one_label() -> Report:
    """Nobody was asked twice: EL and disagreement are undefined."""
    return _assessed(predictions(n=12, labels=(1, 1)))


@cache
def no_intervals() -> Report:
    """No confidence level."""
    return _assessed(predictions(), confidence_level=None, statistics=["majority_strength_5"])


@cache
def grouped() -> Report:
    """Six groups, some small."""
    site = np.array([f"site {HOSTILE} {i % 6}" for i in range(120)], dtype=object)
    return _assessed(predictions(groups={"place": site}), by="place")


@cache
def hostile() -> Report:
    """Names that hold markup, line breaks, terminal codes."""
    own = fl.annotations.Statistic(2, lambda counts: counts[:, 0] >= 1, f"own{HOSTILE}")
    names = [f"{HOSTILE}{j}" for j in range(2)]
    items = predictions(classes=[f"{HOSTILE}{k}" for k in "abc"], models=names)
    report = _assessed(items, statistics=[own])
    report["warnings"] = [HOSTILE, *report["warnings"]]
    report["diagnostics"]["calibration"] = f"temperature scaling of {HOSTILE}"
    return report


@cache
def many() -> Report:
    """Twenty-two classifiers with long names, twenty classes."""
    names = [f"{'a/very/long/path/' * 6}{j}" for j in range(22)]
    items = predictions(n=40, classes=range(20), models=names)
    return _assessed(items, confidence_level=0.9, bins=5)


ASSESSMENTS: dict[str, Callable[[], Report]] = {
    made.__name__: made for made in (plain, binary, one_label, no_intervals, grouped, hostile, many)
}


def _calibrated(items: fl.Predictions, method: str, **settings: Any) -> Report:
    return fit(items, Settings(method, **settings)).report()


@cache
def alpha() -> Report:
    """Alpha-calibration."""
    return _calibrated(predictions(), "alpha")


@cache
def temperature() -> Report:
    """Temperature scaling of one classifier."""
    return _calibrated(predictions(models=("net",)), "temperature")


@cache
def matrix() -> Report:
    """Matrix scaling, whose parameters are many."""
    return _calibrated(predictions(), "matrix", penalty=1.0)


@cache
def unchecked() -> Report:
    """Too few labels to check it; hostile names."""
    report = _calibrated(
        predictions(models=[f"{HOSTILE}{j}" for j in range(2)]), "vector", penalty=1.0
    )
    for entry in report["calibrations"]:
        entry["after"], entry["status"] = None, "not-converged"
    report["warnings"] = [HOSTILE]
    return plain_values(report)


CALIBRATIONS: dict[str, Callable[[], Report]] = {
    made.__name__: made for made in (alpha, temperature, matrix, unchecked)
}
