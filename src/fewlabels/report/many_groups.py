"""Of thousands of groups a page shows the largest and the worst; the JSON has all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

MOST_GROUPS = 50
"""Groups of a column that are all shown."""

LARGEST, WORST = 10, 10
"""Of more groups so many of either kind are."""


def with_some_groups(report: Mapping[str, Any]) -> dict[str, Any]:
    """The report with the estimates of some groups of each column that has many.

    The worst are those whose interval's better end is worst, by the first metric that has a
    direction and the classifier that is best of all items: a small group of which nothing is known
    is no bad one.
    """
    columns: dict[str, list[Mapping[str, Any]]] = {}
    for size in report["groups"]:
        if size["group"] is not None:
            columns.setdefault(size["group"].partition("=")[0], []).append(size)
    left_out, said = set[str](), list[str]()
    for column, sizes in columns.items():
        if len(sizes) <= MOST_GROUPS:
            continue
        largest = sorted(sizes, key=lambda size: -size["n_items"])[:LARGEST]
        shown = {size["group"] for size in largest}
        names = {size["group"] for size in sizes}
        what, worst = _worst(report, names)
        shown |= set(worst)
        left_out |= names - shown
        said.append(
            f"{column} has {len(sizes):,} groups: shown are the {LARGEST} largest"
            f"{what}; the others are in the JSON"
        )
    if not said:
        return dict(report)
    return {
        **report,
        "estimates": [row for row in report["estimates"] if row["group"] not in left_out],
        "warnings": [*report["warnings"], *said],
    }


def _worst(report: Mapping[str, Any], names: Iterable[str]) -> tuple[str, list[str]]:
    """The worst of some groups, and by what."""
    directions = {name: info["direction"] for name, info in report["metric_info"].items()}
    metric = next((name for name, way in directions.items() if way), None)
    of_all = [
        row
        for row in report["estimates"]
        if row["group"] is None and row["metric"] == metric and row["value"] is not None
    ]
    if metric is None or not of_all:
        return "", []
    way = directions[metric]
    model = max(of_all, key=lambda row: way * row["value"])["model"]
    end, known = "high" if way > 0 else "low", set(names)
    found = [
        (way * row[end], row["group"])
        for row in report["estimates"]
        if row["group"] in known
        and (row["model"], row["metric"]) == (model, metric)
        and row[end] is not None
    ]
    worst = [group for _, group in sorted(found, key=lambda pair: pair[0])[:WORST]]
    return f" and the {len(worst)} where {metric} of {model} is clearly worst", worst
