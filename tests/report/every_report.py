"""Every made-up report, what it is called, and how it is shown: what holds of one holds of all."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from annotations_samples import ASSESSMENTS, CALIBRATIONS
from curve_samples import CURVES, THRESHOLDS
from page import Page
from report_samples import NASTY, SAMPLES
from scipy.special import expit

import fewlabels as fl
from fewlabels.questions.compare import compared
from fewlabels.report.html import render_fragment, render_page, render_text


def estimates_of(names: list[str], n: int = 120, labeled: int = 40) -> fl.Estimates:
    """Estimates of classifiers, the first the best, of two groups of items."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=n)
    steep = np.linspace(1.5, 0.3, len(names))
    logit = (2 * truth - 1)[:, None] * steep + rng.standard_normal((n, len(names)))
    return fl.estimate(
        fl.Predictions(expit(logit).round(6), np.where(np.arange(n) < labeled, truth, -1),
                       models=names, groups={"g": np.array(["x", "y"])[np.arange(n) % 2]}),
        "labeled", ["accuracy", "brier"], by="g",
    )  # fmt: skip


def some(names: list[str], classes: list[str]) -> fl.Predictions:
    """Predictions whose labeled items are mostly of the first class."""
    rng = np.random.default_rng(1)
    truth = rng.integers(len(classes), size=200)
    p = rng.dirichlet(np.ones(len(classes)), (200, len(names))) / 3
    p[np.arange(200), :, truth] += 2 / 3
    shown = (np.arange(200) < 60) & ((truth == 0) | (np.arange(200) < 20))
    return fl.Predictions(p, np.where(shown, truth, -1), models=names, classes=classes)


def backtest_of(names: list[str], classes: list[str], *method: str) -> dict[str, Any]:
    """A backtest of two runs on the labeled items of `some`."""
    known = some(names, classes)
    known = known.take(known.labeled)
    return fl.backtest(known, (5, 20), 2, method=method, metrics=["accuracy", "brier"]).to_dict()


def agreement_of(names: list[str], classes: list[str]) -> dict[str, Any]:
    """Agreement of people, who err the more often the later they are named."""
    rng = np.random.default_rng(2)
    truth = rng.integers(len(classes), size=80)
    wrong = rng.random((80, len(names))) < np.linspace(0.1, 0.4, len(names))
    votes = np.where(wrong, rng.integers(len(classes), size=wrong.shape), truth[:, None])
    votes[rng.random(votes.shape) < 0.3] = -1
    items = fl.Predictions(votes=votes, models=names, classes=classes)
    return fl.annotations.agreement(items).to_dict()


SHIFTS = {
    "two": lambda: fl.shift(some(["a", "b"], ["no", "yes"]), method="labeled").to_dict(),
    "nasty": lambda: fl.shift(some(NASTY[:3], NASTY[:4]), method="labeled").to_dict(),
}
NEXT = {
    "curve": lambda: fl.label_next(some(NASTY[:1], NASTY[1:3]), method="bayesian-calibration"),
    "metric": lambda: fl.label_next(
        some(["a", "b"], NASTY[:3]), method="ensemble", metric="accuracy", size=3
    ),
}

CALIBRATION_CURVES = {
    "two": lambda: fl.calibration_curve(
        some(["a", "b"], ["no", "yes"]), method="ensemble", bins=5
    ).report(),
    "nasty": lambda: fl.calibration_curve(
        some(NASTY, NASTY[:3]), method="ensemble", bins=3, classwise=True
    ).report(),
}

DIAGNOSES = {
    "nasty": lambda: fl.diagnose({
        "label": [*NASTY[:3], None] * 10, **{f"y__{name}": NASTY[:4] * 10 for name in NASTY[3:]},
    }).report(),
}  # fmt: skip

PEOPLE = {
    "people": lambda: agreement_of(["ann", "bob", "cid"], ["no", "yes"]),
    "hostile": lambda: agreement_of(NASTY, NASTY[:3]),
}

BACKTESTS = {
    "two": lambda: backtest_of(["a", "b"], ["no", "yes"]),
    "nasty": lambda: backtest_of(NASTY, NASTY[:3], "majority-vote"),
}


def monitored(names: list[str], groups: list[str], method: str = "auto") -> dict[str, Any]:
    """Six weeks of classifiers, of which the last have a worse first one, by groups of items."""
    rng = np.random.default_rng(2)
    week = np.repeat(np.arange(7)[np.arange(7) != 3], 60)
    truth = rng.random(len(week)) < 0.5
    apart = np.where((week < 5)[:, None], 4.0, np.r_[0.5, [4.0] * (len(names) - 1)])
    scores = expit(rng.normal(apart * (truth[:, None] - 0.5), 1))
    day = np.array([date(2026, 3, 2) + timedelta(weeks=int(w)) for w in week], dtype=object)
    rows = fl.Predictions(
        dict(zip(names, scores.T, strict=True)), np.where(rng.random(len(week)) < 0.5, truth, -1),
        groups={"day": day, "g": np.array(groups)[np.arange(len(week)) % len(groups)]},
    )  # fmt: skip
    return fl.monitor(rows, "day", "week", "accuracy", by="g", method=method).to_dict()


MONITORED = {
    "two": lambda: monitored(["a", "b"], ["x", "y"]),
    "nasty": lambda: monitored(NASTY[:2], NASTY[2:4], "labeled"),
}

COMPARED = {"two": ["a", "b"], "nasty": NASTY, "many": [f"m{j}" for j in range(14)]}

TITLES = {
    "agreement": "How far do annotators agree?",
    "estimates": "How good are the classifiers?",
    "annotations": "How well do the classifiers predict what annotators say?",
    "calibration": "What does the calibration change?",
    "calibration-curve": "Do the probabilities mean what they say?",
    "comparison": "Which classifier is best?",
    "curves": "How good is the ranking?",
    "threshold": "Where to put the threshold?",
    "shift": "Do the labeled items differ from the others?",
    "label-next": "Which items to label next?",
    "backtest": "How far off are estimates from few labels?",
    "monitoring": "Is it still as good?",
    "diagnosis": "Can these data be used?",
}

_TEXTS: dict[str, Callable[..., str]] = {
    "agreement": partial(render_text, "agreement"),
    "estimates": partial(render_text, "estimates"),
    "annotations": partial(render_text, "annotations"),
    "calibration": partial(render_text, "calibration"),
    "calibration-curve": partial(render_text, "calibration-curve"),
    "comparison": partial(render_text, "comparison"),
    "curves": partial(render_text, "curves"),
    "threshold": partial(render_text, "threshold"),
    "shift": partial(render_text, "shift"),
    "label-next": partial(render_text, "label-next"),
    "backtest": partial(render_text, "backtest"),
    "monitoring": partial(render_text, "monitoring"),
    "diagnosis": partial(render_text, "diagnosis"),
}

_MADE: dict[tuple[str, str], Callable[[], Any]] = {
    **{("estimates", name): made for name, made in SAMPLES.items()},
    **{("estimates", f"compared {name}"): lambda n=names: estimates_of(n).report()
       for name, names in COMPARED.items()},
    **{("agreement", name): made for name, made in PEOPLE.items()},
    **{("annotations", name): made for name, made in ASSESSMENTS.items()},
    **{("calibration", name): made for name, made in CALIBRATIONS.items()},
    **{("calibration-curve", name): made for name, made in CALIBRATION_CURVES.items()},
    **{("comparison", name): lambda n=names: compared(estimates_of(n)).to_dict()
       for name, names in COMPARED.items()},
    **{("curves", name): made for name, made in CURVES.items()},
    **{("threshold", name): made for name, made in THRESHOLDS.items()},
    **{("shift", name): made for name, made in SHIFTS.items()},
    **{("label-next", name): lambda m=made: m().report() for name, made in NEXT.items()},
    **{("backtest", name): made for name, made in BACKTESTS.items()},
    **{("monitoring", name): made for name, made in MONITORED.items()},
    **{("diagnosis", name): made for name, made in DIAGNOSES.items()},
}  # fmt: skip


@cache
def _made(kind: str, name: str) -> tuple[Any, dict[str, Any]]:
    """A report, and what its page needs besides."""
    made = _MADE[kind, name]()
    return (made[0], {"picture": made[1]}) if kind == "curves" else (made, {})


def _page(kind: str, name: str) -> str:
    made, besides = _made(kind, name)
    return render_page(kind, made, **besides)


def _text(kind: str, name: str, width: int) -> str:
    return _TEXTS[kind](_made(kind, name)[0], width)


PAGES: dict[str, Callable[[], str]] = {
    f"{kind}: {name}": cache(partial(_page, kind, name)) for kind, name in _MADE
}
"""Pages, which are made once: `PAGES[name].__wrapped__()` makes one anew."""
PARTS: dict[str, Callable[[], str]] = {
    f"{kind}: {name}": lambda kind=kind, name=name: render_fragment(kind, _made(kind, name)[0])
    for kind, name in _MADE
}
"""What a notebook shows."""
TEXTS: dict[str, Callable[[int], str]] = {
    f"{kind}: {name}": partial(_text, kind, name) for kind, name in _MADE
}


def _one_of_each() -> set[str]:
    """A page of each kind, the one whose names are hostile where there is one."""
    kinds: dict[str, str] = {}
    for name in PAGES:
        kind, _, sample = name.partition(": ")
        if kind not in kinds or sample.startswith(("nasty", "hostile")):
            kinds[kind] = name
    return {"estimates: two_classes", "estimates: domains", *kinds.values()}


QUICK = _one_of_each()
every = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in PAGES],
)
"""What holds of one holds of all: of one of each kind at once, of the others in the slow suite."""


@cache
def parsed(name: str) -> Page:
    """A page by its name, read once."""
    return Page(PAGES[name]())
