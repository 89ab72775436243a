"""What a benchmark's methods, metrics, numbers and footnotes are called."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from fewlabels.report.words import clean, count, fit, number_format, plural, short_names

Summary = Mapping[str, Any]
Cell = Mapping[str, Any]

NOTHING = "-"
"""Stands where there is no number; a footnote says why."""

KINDS = {
    "overview": "RMAE (error over that of labeled), mean over the data sets",
    "methods": "Error by number of labels",
    "intervals": "Intervals: coverage and width",
    "classifiers": "Error of each classifier",
    "group-ratios": "RMAE (error over that of labeled), mean over groups and metrics",
    "groups": "Error by group",
    "levels": "Error by {factor}",
    "effective-sizes": "Effective sample size",
    "associations": "Rank correlation of the error with traits of the classifiers",
    "pairs": "How alike the classifiers are",
}

FIGURES = {
    "error-by-labels": "Error against the number of labels",
    "error-by-accuracy": "Error against the mean accuracy of the classifiers",
    "error-by-calibration": "Error against the mean calibration error of the classifiers",
    "error-by-level": "Error by {factor}",
    "labeled-curve": "Error of the labels alone against their number",
    "error-by-correlation": "Error against the correlation of the classifiers' errors",
}

_FACTORS = {
    "labels": "drawn or expected labels",
    "sharpness": "sharpness of the scores",
    "classifiers": "number of classifiers",
    "subset": "subset of classifiers",
}

_AXES = {
    "n_labeled": "labels",
    "mean_accuracy": "mean accuracy of the classifiers",
    "mean_ece": "mean calibration error of the classifiers",
    "error_correlation": "mean correlation of the classifiers' errors",
    "sharpness": "sharpness a of the scores",
    "classifiers": "classifiers",
}


def method_name(method: str) -> str:
    """The name of a method as it is shown."""
    return "all labels known" if method == "all-labels-known" else method


def labels(names: Sequence[str], width: int) -> dict[str, str]:
    """Each name in at most `width` columns, no two alike; those that already differ stay as cut.

    Examples
    --------
    >>> labels(["labeled", "ssme-kde[bandwidth=0.1]", "ssme-kde[bandwidth=0.2]"], 14)
    {'labeled': 'labeled', 'ssme-kde[bandwidth=0.1]': '...1]', 'ssme-kde[bandwidth=0.2]': '...2]'}
    """
    cut = {name: fit(clean(name), width) for name in names}
    alike = [name for name in names if list(cut.values()).count(cut[name]) > 1]
    found = cut | short_names(alike, width)
    return found if len(set(found.values())) == len(found) else short_names(names, width)


def factor_name(factor: str) -> str:
    """What a protocol varies, in words."""
    return _FACTORS.get(factor, factor.replace("_", " "))


def varied(factor: str) -> str:
    """What the numbers in the heads of columns of levels are."""
    heads = {"sharpness": "sharpness a =", "classifiers": "classifiers ="}
    return heads.get(factor, "")


def level_name(factor: str, level: str) -> str:
    """A level of a factor, in words."""
    patterns = {"labels": "{} labels", "sharpness": "a = {}", "classifiers": "{} classifiers"}
    if factor == "labels" and level == "by-item":
        return "item by item"
    return patterns.get(factor, "{}").format(level)


def trait_name(trait: str) -> str:
    """A trait in words."""
    return trait.replace("_", " ").replace(" ece", " ECE")


def axis_name(x: str) -> str:
    """What an axis shows."""
    return _AXES.get(x, factor_name(x))


def short_paths(paths: Sequence[str]) -> dict[str, str]:
    """Each path by the end of it that no other one has: its file, and folders where files agree.

    Examples
    --------
    >>> short_paths(["/mine/a/data.csv", "/mine/b/data.csv", "/mine/c.csv"]).values()
    dict_values(['a/data.csv', 'b/data.csv', 'c.csv'])
    """
    parts = {path: [p for p in re.split(r"[/\\]", path) if p] or [path] for path in paths}

    def end(path: str, size: int) -> str:
        return "/".join(parts[path][-size:])

    found = {}
    for path in parts:
        sizes = range(1, len(parts[path]) + 1)
        others = [other for other in parts if other != path]
        alone = (n for n in sizes if end(path, n) not in {end(other, n) for other in others})
        found[path] = end(path, next(alone, len(parts[path])))
    return found


def kind_title(names: Mapping[str, str], entry: Mapping[str, Any]) -> str:
    """Title of all tables or figures of a kind."""
    return names[entry["kind"]].format(factor=factor_name(entry.get("factor") or ""))


def place(entry: Mapping[str, Any], *, sizes: bool = True) -> str:
    """What a table or figure holds fixed, in words."""
    parts = [str(entry["dataset"])] if entry.get("dataset") else []
    if entry.get("metric"):
        parts.append(str(entry["metric"]))
    if entry.get("grouping"):
        parts.append(f"by {entry['grouping']}")
    if entry.get("level"):
        parts.append(level_name(entry["factor"], entry["level"]))
    if entry.get("trait"):
        parts.append(trait_name(entry["trait"]))
    if sizes and entry.get("n_labeled") is not None and entry["kind"] != "labeled-curve":
        parts.append(plural(entry["n_labeled"], "label"))
    if sizes and entry.get("n_unlabeled"):
        parts.append(f"{count(entry['n_unlabeled'])} unlabeled")
    return ", ".join(parts)


def error_unit(summary: Summary, metric: str) -> str:
    """Unit of a metric's errors: "points", or "" for its own."""
    return str(summary["metrics"].get(metric, {}).get("unit", ""))


def error_text(value: float | None, unit: str) -> str:
    """An error: two decimals in points, else as the values of estimates are written."""
    if value is None:
        return NOTHING
    return ratio_text(value) if unit == "points" else number_format([value])(value)


def signed_text(value: float | None, unit: str) -> str:
    """A signed error."""
    if value is None:
        return NOTHING
    text = error_text(abs(value), unit)
    return text if float(text) == 0 else ("+" if value > 0 else "-") + text


def size_text(cell: Cell) -> str:
    """An effective size, beyond the end of its curve with a sign."""
    if cell.get("ess") is None:
        return NOTHING
    return f"{cell['ess_bound']}{count(cell['ess'])}"


def ratio_text(value: float | None) -> str:
    """A ratio of errors."""
    # + 0.0: nothing is written as minus nothing.
    return NOTHING if value is None else f"{round(value, 2) + 0.0:.2f}"


def correlation_text(value: float | None) -> str:
    """A correlation with its sign."""
    if value is None:
        return NOTHING
    text = f"{value:+.2f}"
    return text if float(text) else "0.00"


def seconds_text(value: float | None) -> str:
    """A duration with two significant digits."""
    if value is None:
        return NOTHING
    if value <= 0:
        return "0 s"
    digits = max(0, 1 - math.floor(math.log10(value)))
    return f"{value:.{min(digits, 4)}f} s"


def footnote(cell: Cell) -> str:
    """Why runs are missing from a cell; "" if none is."""
    reasons = cell.get("reasons") or {}
    if not reasons:
        return ""
    noun = cell.get("over") or "run"
    listed = "; ".join(
        f"{reason} ({plural(n, noun)})" if cell.get("mean") is not None or len(reasons) > 1
        else reason
        for reason, n in reasons.items()
    )  # fmt: skip
    if cell.get("mean") is None:
        return f"no value: {listed}"
    return f"mean over {count(cell['n_runs'])} of {plural(cell['n_of'], noun)}: {listed}"
