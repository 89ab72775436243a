"""Speed and memory of curves, as ratios within one run against what a user would run instead."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import fewlabels as fl
from curves_data import OF_THESE, Scores, sample_curve, stream
from curves_mcmc import chains, importance, summary
from curves_spe import WORLDS, draw_world, target_of
from measure import Line, best, elsewhere, memory
from parts import speed_part
from runs import number

sample_curves = partial(fl.curves, **OF_THESE)
sample_threshold = partial(fl.threshold, **OF_THESE)

_WORLD = WORLDS["n/n, prevalence .3"]
_ITEMS = 2_000
_SIXTEEN = ("normal", "gamma", "student-t", "weibull-min")
_KEPT = 400
"""Effective draws that a curve stands on."""


def scores_of(items: int) -> Scores:
    """Scores of so many items, normal in both classes."""
    return draw_world(_WORLD._replace(items=items), stream("speed", items))


def bootstrap(scores: Scores, labeled: int, size: int = 400) -> None:
    """What a user runs instead: scikit-learn's curve of the labeled items, resampled."""
    from sklearn.metrics import precision_recall_curve

    rng = np.random.default_rng(0)
    values, labels = scores.values[:labeled], scores.labels[:labeled]
    grid = np.linspace(0, 1, 100)
    lines = []
    for _ in range(size):
        take = rng.integers(labeled, size=labeled)
        if labels[take].any():
            precision, recall, _ = precision_recall_curve(labels[take], values[take])
            lines.append(np.interp(grid, recall[::-1], precision[::-1]))
    np.quantile(lines, [0.05, 0.95], axis=0)


def chain_seconds(scores: Scores, labeled: int) -> float:
    """Seconds that Metropolis-Hastings takes for the effective draws of one pair's curve."""
    rng = stream("speed", "chains")
    target = target_of(scores, labeled, (_WORLD.positive[0], _WORLD.negative[0]))
    drawn = chains("mh", target, rng, length=400, warmup=1000)
    return drawn.seconds * _KEPT / summary(target, drawn)["effective"]


def line(what: str, ours: float, instead: str, rival: float, target: str) -> Line:
    """A row of the table, from seconds."""
    mine = f"{number(ours, 2)} s"
    if not np.isfinite(rival):
        return Line(what, mine, instead, "", target)
    return Line(what, mine, f"{number(rival, 2)} s ({instead})", f"{rival / ours:.1f}x", target)


def spe_lines() -> list[Line]:
    """Fits of 4 and of 16 pairs with the band, against Markov chains for as many posteriors."""
    scores = scores_of(_ITEMS)
    predictions = scores.show(_WORLD.labeled)
    chain = chain_seconds(scores, _WORLD.labeled)
    out = []
    for model, pairs, target in (
        (fl.models.SPE(), 4, "0.5 s"),
        (fl.models.SPE(families=_SIXTEEN), 16, "2 s"),
    ):
        ours = _curve_seconds(predictions, model)
        what = f"`spe`, {pairs} pairs with the band, n = {_ITEMS:,}, {_WORLD.labeled} labels"
        instead = f"Metropolis-Hastings, {_KEPT} effective draws of a pair; one timed x {pairs}"
        out.append(line(what, ours, instead, chain * pairs, target))
    rng = np.random.default_rng(0)
    target_density = target_of(scores, _WORLD.labeled, (_WORLD.positive[0], _WORLD.negative[0]))
    ours, _ = best(lambda: importance(target_density, rng), 3)
    instead = f"Metropolis-Hastings, {_KEPT} effective draws"
    what = f"`spe`, one pair's mode and 2,000 weighted draws, n = {_ITEMS:,}"
    out.append(line(what, ours, instead, chain, ""))
    return out


def curve_lines(method: str) -> list[Line]:
    """Bands from 10 to 5,000 labels, against bootstraps of the labels alone."""
    out = []
    for labeled, target in ((10, "0.17 s (§5b)"), (100, "0.17 s (§5b)"), (5_000, "7 s (§5b)")):
        items = max(_ITEMS, 2 * labeled)
        scores = scores_of(items)
        ours = _curve_seconds(scores.show(labeled), method)
        rival, _ = best(lambda s=scores, m=labeled: bootstrap(s, m), 1)
        what = f"`{method}` with the band, n = {items:,}, {labeled:,} labels"
        instead = "400 bootstraps of scikit-learn's curve of the labels"
        out.append(line(what, ours, instead, rival, target))
    return out


def other_lines() -> list[Line]:
    """A threshold, and the choice of items, from 20 labels."""
    predictions = scores_of(_ITEMS).show(20)
    calls: dict[str, Callable[[], Any]] = {
        "`threshold`, precision and recall at least .8": lambda: sample_threshold(
            predictions, None, 0.8, 0.8, workers=1
        ),
        "`label_next`, 20 items": lambda: fl.label_next(predictions, size=20, workers=1),
    }
    return [
        line(f"{what}, n = {_ITEMS:,}, 20 labels", best(call, 5)[0], "", np.nan, "")
        for what, call in calls.items()
    ]


def large_lines(items: int) -> list[Line]:
    """A million scores, by a process of its own."""
    out = []
    for method in ("spe", "averaged-curves", "monotone-curves"):
        seconds, peak = best(
            lambda m=method: elsewhere("curves_speed", f"large({m!r}, {items})"), 1
        )
        what = (
            f"`{method}`, both curves with bands, n = {items:,}, 100 labels: the whole process, "
            f"all processors; peak {peak:.0f} MB"
        )
        bare = elsewhere("curves_speed", f"large('', {items})")
        instead = f"{bare:.0f} MB with scores and labels alone"
        out.append(line(what, seconds, instead, np.nan, "60 s"))
    return out


def large(method: str, items: int) -> float:
    """Peak memory in MB of both curves of many items; "": of these alone."""
    predictions = scores_of(items).show(100)
    if method:
        sample_curves(predictions, method=method)
    return memory()


def _curve_seconds(predictions: fl.Predictions, method: Any) -> float:
    return best(lambda: sample_curve(predictions, method=method, workers=1), 5)[0]


SPEED = speed_part(
    {
        "spe": (spe_lines, {}, {}),
        "averaged-curves": (partial(curve_lines, "averaged-curves"), {}, {}),
        "monotone-curves": (partial(curve_lines, "monotone-curves"), {}, {}),
        "other": (other_lines, {}, {}),
        "large": (large_lines, {"items": 1_000_000}, {"items": 20_000}),
    },
    "best of 5 (large files and what runs instead: once), one thread but where it says otherwise; "
    "ratios are of one run",
)
