"""How an interval narrows while somebody labels, as a figure beside the page to label in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fewlabels.report.axis import Panel, View, fit_axis, strips
from fewlabels.report.html import environment
from fewlabels.report.words import escape_control, number_format, percent, plural

_HEIGHT = 170
"""Pixels of the plot."""


def render_narrowing(picture: Mapping[str, Any]) -> str:
    """The interval and the guard against the number of labels, as SVG for a page with its styles.

    `picture` has plain values: `model`, `metric`, `level`; `points` with n, value, low and high;
    `guard` with n, low and high, which may be empty; `target`, a bound to be reached, or None.
    """
    points, guard = picture["points"], picture["guard"]
    # The guard of the first labels is nearly the whole range, which would stretch the scale.
    last = max([p["n"] for p in (*points, *guard)], default=1)
    values = [p[key] for p in points for key in ("low", "high")]
    values += [g[key] for g in guard if g["n"] >= last / 3 for key in ("low", "high")]
    values += [] if picture["target"] is None else [picture["target"]]
    unit = all(-1e-9 <= v <= 1 + 1e-9 for v in values)
    y = fit_axis(values or [0.0, 1.0], (0.0, 1.0) if unit else (None, None))
    panel = Panel(fit_axis([0, max(last, 5)], (0, None), 4), y, _HEIGHT)
    write = number_format([*values, *(p["value"] for p in points)])
    texts = [
        f"{plural(p['n'], 'label')}: {write(p['value'])} ({write(p['low'])} to {write(p['high'])})"
        for p in points
    ]
    latest = f" After {texts[-1]}." if texts else ""
    view = View(
        **vars(panel),
        title=f"{escape_control(picture['metric'])} of {escape_control(picture['model'])}",
        x_name="labels",
        y_name=picture["metric"],
        runs=[[(p["n"], p["value"], p["low"], p["high"]) for p in points]],
        dashed=[[(g["n"], g[end]) for g in guard] for end in ("low", "high")],
        # From each point to the next.
        strips=strips([*(100 * panel.x.at(p["n"]) for p in points), 100.0], texts),
        description=f"{percent(picture['level'])} interval (up) against labels (right).{latest}",
        points=[(p["n"], p["value"], texts[-1]) for p in points[-1:]],
    )
    target = picture["target"]
    down = None if target is None else panel.down(target)
    template = environment().get_template("labeling.svg.j2")
    return template.render(view=view, target=down).strip()
