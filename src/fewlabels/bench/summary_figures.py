"""The figures of a summary, as numbers: panels of series, one series per method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fewlabels.bench.summary_errors import CURVE, FLOOR, REFERENCE, Setting
from fewlabels.bench.summary_facts import Facts, natural, scale
from fewlabels.bench.summary_trends import trend

Figure = dict[str, Any]
Panel = dict[str, Any]


def figures(facts: Facts, kind: str) -> Iterator[Figure]:
    """All figures of a kind; none where the results have nothing for it."""
    yield from _KINDS[kind](facts)


def _by_labels(facts: Facts) -> Iterator[Figure]:
    """Error against the number of labels; one panel per metric."""
    for settings in facts.together(
        lambda s: s._replace(metric="", n_labeled=0), lambda s: not s.group
    ):
        if len({s.n_labeled for s in settings}) > 1:
            panels = [_panel(facts, part, "n_labeled") for part in _by_metric(settings)]
            yield _figure("error-by-labels", settings, "n_labeled", panels)


def _by_level(facts: Facts) -> Iterator[Figure]:
    """Error against what the protocol varies."""
    for settings in facts.together(
        lambda s: s._replace(metric="", level=""), lambda s: bool(s.factor) and not s.group
    ):
        levels = sorted({s.level for s in settings}, key=natural)
        if len(levels) > 1:
            panels = [_panel(facts, part, "level") for part in _by_metric(settings)]
            figure = _figure("error-by-level", settings, settings[0].factor, panels)
            yield figure | {"level": "", "levels": levels, "n_labeled": settings[0].n_labeled}


def _by_trait(kind: str, trait: str, *, pooled: bool) -> Callable[[Facts], Iterator[Figure]]:
    """Error against a trait: of each set of classifiers, or (pooled) of each level."""

    def figures_of_trait(facts: Facts) -> Iterator[Figure]:
        for settings in facts.together(
            lambda s: s._replace(metric="", level=""), lambda s: not s.group
        ):
            parts = [
                part
                for metric in _by_metric(settings)
                for part in ([metric] if pooled else [[s] for s in metric])
            ]
            panels = [_trend_panel(facts, part, trait, pooled) for part in parts]
            if any(panel["series"] for panel in panels):
                figure = _figure(kind, settings, trait, panels)
                yield figure | {"level": "", "n_labeled": settings[0].n_labeled}

    return figures_of_trait


def _trend_panel(facts: Facts, part: Sequence[Setting], trait: str, pooled: bool) -> Panel:
    series = [s | {"floor": s["method"] == FLOOR} for s in trend(facts, part, trait)]
    level = "" if pooled else part[0].level
    return {"metric": part[0].metric, "level": level, "series": series, "marks": []}


def _labeled_curve(facts: Facts) -> Iterator[Figure]:
    """The labeled-only curve, and where the methods stand on it at the fewest labels."""
    for dataset in facts.datasets:
        found = [s for s in facts.compared if s.dataset == dataset and not s.group]
        panels = []
        fewest = min((s.n_labeled for s in found if facts.curve(s)), default=None)
        for metric in facts.metrics:
            curve = facts.curves.get((dataset, metric, ""))
            if curve is not None:
                here = [s for s in found if s.metric == metric and s.n_labeled == fewest
                        and s.factor == "" and facts.curve(s)]  # fmt: skip
                points = [p for p in curve.points(scale(metric)) if p["y"] is not None]
                series = {"method": REFERENCE, "floor": False, "points": points}
                marks = _marks(facts, here[0]) if here else []
                panels.append({"metric": metric, "level": "", "series": [series], "marks": marks})
        if panels:
            place = Setting(dataset, CURVE, "", 0, 0, "")
            yield _figure("labeled-curve", [place], "n_labeled", panels) | {"n_labeled": fewest}


def _marks(facts: Facts, setting: Setting) -> list[dict[str, Any]]:
    cells = facts.cells[setting]
    return [
        {"method": m, "floor": m == FLOOR, "y": c["mean"], "x": c["ess"], "bound": c["ess_bound"]}
        for m in facts.in_order(cells)
        if (c := cells[m])["ess"] is not None and m != REFERENCE
    ]


def _panel(facts: Facts, settings: Sequence[Setting], x: str) -> Panel:
    """Mean error and standard error of every method over the settings of one metric."""
    series = []
    for method in facts.in_order(m for s in settings for m in facts.cells[s]):
        parts = [(s, facts.cells[s].get(method)) for s in settings]
        points = [
            {"x": getattr(s, x), "y": c["mean"], "se": c["se"], "n": c["n_runs"]}
            for s, c in parts
            if c is not None and c["mean"] is not None
        ]
        if points:
            series.append({"method": method, "floor": method == FLOOR, "points": points})
    return {"metric": settings[0].metric, "level": "", "series": series, "marks": []}


def _by_metric(settings: Sequence[Setting]) -> list[list[Setting]]:
    parts: dict[str, list[Setting]] = {}
    for setting in settings:
        parts.setdefault(setting.metric, []).append(setting)
    return list(parts.values())


def _figure(kind: str, settings: Sequence[Setting], x: str, panels: list[Panel]) -> Figure:
    first = settings[0]
    return {
        "kind": kind,
        "dataset": first.dataset,
        "factor": "" if first.factor == CURVE else first.factor,
        "level": first.level,
        "n_labeled": None,
        "n_unlabeled": first.n_unlabeled,
        "x": x,
        "panels": [panel for panel in panels if panel["series"]],
    }


_KINDS: dict[str, Callable[[Facts], Iterator[Figure]]] = {
    "error-by-labels": _by_labels,
    "error-by-accuracy": _by_trait("error-by-accuracy", "mean_accuracy", pooled=False),
    "error-by-calibration": _by_trait("error-by-calibration", "mean_ece", pooled=False),
    "error-by-level": _by_level,
    "labeled-curve": _labeled_curve,
    "error-by-correlation": _by_trait("error-by-correlation", "error_correlation", pooled=True),
}
