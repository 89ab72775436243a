"""How an interval narrows while somebody labels, as a picture within a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fewlabels.report.axis import fit_axis
from fewlabels.report.benchmark_plot import Scale
from fewlabels.report.curve_html import Strip, View
from fewlabels.report.html import render
from fewlabels.report.words import clean, number_format, percent, plural

HEIGHT = 170
"""Pixels of the plot."""


def render_narrowing(picture: Mapping[str, Any]) -> str:
    """The interval and the guard against the number of labels, as SVG for a page with its styles.

    Parameters
    ----------
    picture
        `model`, `metric`, `level`; `points` with n, value, low and high; `guard` with n, low and
        high, which may be empty; `target`, a bound to be reached, or None. Plain values.
    """
    points, guard = picture["points"], picture["guard"]
    # The guard of the first labels is all but everything, which the scale need not show.
    last = max([p["n"] for p in (*points, *guard)], default=1)
    values = [p[key] for p in points for key in ("low", "high")]
    values += [g[key] for g in guard if g["n"] >= last / 3 for key in ("low", "high")]
    values += [] if picture["target"] is None else [picture["target"]]
    y = Scale(fit_axis(values or [0.0, 1.0], (0.0, 1.0) if _unit(values) else (None, None)))
    x = Scale(fit_axis([0, max(last, 5)], (0, None), 4))
    write = number_format([*values, *(p["value"] for p in points)])
    texts = [
        f"{plural(p['n'], 'label')}: {write(p['value'])} ({write(p['low'])} to {write(p['high'])})"
        for p in points
    ]
    told = f" After {texts[-1]}." if texts else ""
    view = View(
        title=f"{clean(picture['metric'])} of {clean(picture['model'])}",
        x_name="labels",
        y_name=picture["metric"],
        x=x,
        y=y,
        band=_outline(x, y, points),
        line=_path(x, y, [(p["n"], p["value"]) for p in points]),
        reference=_path(x, y, [(g["n"], g["low"]) for g in guard])
        + _path(x, y, [(g["n"], g["high"]) for g in guard]),
        strips=_strips(x, [p["n"] for p in points], texts),
        description=f"{percent(picture['level'])} interval (up) against labels (right).{told}",
        marks=_last(x, y, points, texts),
        height=HEIGHT,
    )
    target = picture["target"]
    return render(
        "labeling.svg.j2",
        view=view,
        target=None if target is None else HEIGHT * (1 - y.at(target)),
    ).strip()


def _unit(values: Sequence[float]) -> bool:
    return all(-1e-9 <= v <= 1 + 1e-9 for v in values)


def _at(x: Scale, y: Scale, n: float, value: float) -> str:
    return f"{100 * x.at(n):.2f} {HEIGHT * (1 - y.at(value)):.1f}"


def _path(x: Scale, y: Scale, points: Sequence[tuple[float, float]]) -> str:
    if len(points) < 2:
        return ""
    return "M" + "L".join(_at(x, y, n, value) for n, value in points)


def _outline(x: Scale, y: Scale, points: Sequence[Mapping[str, float]]) -> str:
    lower = [(p["n"], p["low"]) for p in reversed(points)]
    outline = _path(x, y, [*((p["n"], p["high"]) for p in points), *lower])
    return outline + "Z" if len(points) > 1 else ""


def _strips(x: Scale, places: Sequence[float], texts: Sequence[str]) -> tuple[Strip, ...]:
    """A strip per point, from it to the next."""
    ends = [100 * x.at(n) for n in [*places[1:], math.inf]][: len(places)]
    return tuple(
        Strip(100 * x.at(n), end - 100 * x.at(n), text)
        for n, end, text in zip(places, ends, texts, strict=True)
    )


def _last(
    x: Scale, y: Scale, points: Sequence[Mapping[str, float]], texts: Sequence[str]
) -> tuple[tuple[float, float, str], ...]:
    if not points:
        return ()
    p = points[-1]
    return ((100 * x.at(p["n"]), HEIGHT * (1 - y.at(p["value"])), texts[-1]),)
