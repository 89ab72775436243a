"""What is said around the tables of a benchmark: the answer, what ran, and what to take care of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fewlabels.report import benchmark_words as bw
from fewlabels.report.words import count, percent, plural

_MOST_NOTES = 20
_MOST_SIZES = 8


def headline(summary: bw.Summary) -> str:
    """Which method came out best, in one or two sentences."""
    glance = [entry for entry in summary["glance"] if not entry["floor"]]
    if not glance:
        return "There are no results yet."
    total = glance[0]["n_columns"]
    top = max(entry["n_best"] for entry in glance)
    leaders = [entry for entry in glance if entry["n_best"] == top]
    if not top:
        return f"{plural(len(glance), 'method')} in {plural(total, 'comparison')}."
    names = " and ".join(entry["method"] for entry in leaders[:3])
    has = "has" if len(leaders) == 1 else "each have"
    text = (
        f"{names} {has} the least error, or one within a standard error of it, in "
        f"{count(top)} of {plural(total, 'comparison')}."
    )
    lead = leaders[0]
    if len(leaders) == 1 and lead["rmae"] is not None and lead["method"] != summary["reference"]:
        text += (
            f" Its error is {bw.ratio_text(lead['rmae'])} times that of the labels alone "
            "(geometric mean over the comparisons)."
        )
    return text


def facts(summary: bw.Summary) -> list[tuple[str, str]]:
    """What ran, as name and value."""
    protocol = summary["protocol"]
    found = [
        ("Protocol", protocol.get("name")),
        ("Data sets", count(len(summary["datasets"]))),
        ("Methods", count(sum(not m["floor"] for m in summary["methods"]))),
        ("Runs", _listed(protocol.get("runs"))),
        ("Labels", _listed(protocol.get("n_labeled"))),
        ("Unlabeled", _listed(protocol.get("n_unlabeled"))),
    ]
    return [(name, str(value)) for name, value in found if value not in (None, "", "None")]


def settings(summary: bw.Summary) -> list[tuple[str, str]]:
    """The choices that decide the numbers, as name and value."""
    protocol = summary["protocol"]
    level = protocol.get("confidence_level")
    found = [
        ("Sampler", protocol.get("sampler")),
        ("Estimand", protocol.get("estimand")),
        ("Intervals", percent(level) if level else "none"),
        ("Seed", protocol.get("seed")),
        ("Version", f"fewlabels {summary['fewlabels']}"),
    ]
    return [(name, str(value)) for name, value in found if value is not None]


def _listed(value: Any) -> str:
    if isinstance(value, list | tuple) and len(value) > _MOST_SIZES:
        return f"{_listed(value[0])} to {_listed(value[-1])}, {plural(len(value), 'size')}"
    if isinstance(value, list | tuple):
        return ", ".join(_listed(part) for part in value)
    return count(value) if isinstance(value, int) else str(value)


def reading(summary: bw.Summary) -> list[tuple[str, str]]:
    """How the numbers are made: a term and its meaning each."""
    has_points = any(m["unit"] == "points" for m in summary["metrics"].values())
    unit = " It is in percentage points." if has_points else ""
    trained = summary["protocol"].get("design") == "trained sets"
    apart = (
        "In each run classifiers are trained on some rows, the items are drawn from others, and "
        "the truth is the metric on yet others."
        if trained
        else "In each run the items come from one half of the data, and the truth is the metric on "
        "the other half."
    )
    found = [
        (
            "Error",
            f"{apart} The error of a run is |estimate - truth|, averaged over the "
            f"classifiers; a cell is its mean ± standard deviation over the runs.{unit}",
        ),
        (
            "Bold",
            "The least error of a column, and every error that is no more than one paired standard "
            "error above it. The leader is one of the methods with the most runs, so that leaving "
            "out hard runs does not win; the row of all labels takes no part.",
        ),
        (
            "RMAE",
            "A method's mean error divided by that of Labeled on the same splits; in brackets the "
            f"{percent(summary['level'])} bootstrap interval over runs, in pairs "
            f"({count(summary['resamples'])} resamples). The runs share their data, so it says "
            "nothing of other data.",
        ),
    ]
    if summary["protocol"].get("sampler") == "released":
        found.append(("Labels", _released(summary)))
    if summary["protocol"].get("confidence_level"):
        found.append(("Coverage", _coverage(summary)))
    if summary["curve_runs"]:
        few, most = summary["curve_runs"]
        behind = plural(few, "sample") if few == most else f"{few} to {plural(most, 'sample')}"
        found.append(
            (
                "ESS",
                "Effective sample size: the number of labels whose error alone is nearest to the "
                f"method's, read from a curve of {behind} per point. Nothing is smoothed. The "
                "curve is noisy, and the more so the flatter it is: sizes near its flat end are "
                "rough. Beyond its ends the size is marked > or <.",
            )
        )
    found.append(
        (
            "All labels known",
            "The floor: the same items with all their labels. What is left is the difference "
            + (
                "between them and the rows of the truth."
                if trained
                else "between the two halves of the data."
            ),
        )
    )
    return found


def _released(summary: bw.Summary) -> str:
    """Who is labeled by the released sampler, and whom that puts at a disadvantage."""
    text = (
        "As in the released SSME code, each class has a label and the others are drawn at random: "
        "labels hold more of a rare class than the data do, and what takes them for a random "
        "sample (Labeled, too) inherits that bias."
    )
    if any(m["name"].startswith("active-testing") for m in summary["methods"]):
        text += (
            " active-testing asks for as many labels of its own choice among the same items, and "
            "so is spared it."
        )
    return text


def _coverage(summary: bw.Summary) -> str:
    """What coverage means: intervals and truth may be of different items."""
    text = "The share of intervals that hold the truth, averaged over classifiers and runs."
    if summary["protocol"].get("estimand") == "sample":
        text += (
            " These intervals are for the items of the run alone, and the truth is that of other "
            "items: coverage below the level is no fault of theirs (--estimand population asks for "
            "intervals that should hold it)."
        )
    return text


def notes(summary: bw.Summary) -> list[str]:
    """What a reader has to know before the numbers: failures and files that were left out."""
    runs: dict[tuple[str, str, str], int] = {}
    for entry in summary["failures"]:
        key = bw.method_name(entry["method"]), entry["dataset"], entry["reason"]
        runs[key] = runs.get(key, 0) + entry["n_runs"]
    failed = [
        f"No result of {method} on {dataset} in {plural(n, 'cell')}: {reason}"
        for (method, dataset, reason), n in runs.items()
    ]
    more = [f"and {plural(len(failed) - _MOST_NOTES, 'more such line')}"]
    shown = failed[:_MOST_NOTES] + (more if len(failed) > _MOST_NOTES else [])
    return [*shown, *(f"Skipped: {line}" for line in summary["skipped"])]


def data_set(dataset: Mapping[str, Any]) -> str:
    """A data set in a line: sizes, classes, classifiers, and what was noted when it was read."""
    parts = [plural(dataset["n_items"], "item")]
    if dataset["classes"]:
        names = ", ".join(map(str, dataset["classes"][:12]))
        more = len(dataset["classes"]) - 12
        parts.append(f"classes {names}" + (f" and {count(more)} more" if more > 0 else ""))
    if dataset.get("prevalence") is not None:
        parts.append(f"{100 * dataset['prevalence']:.1f}% of the last class")
    models = dataset["models"]
    parts.append(f"{plural(len(models), 'classifier')}: {', '.join(map(str, models))}")
    text = f"{dataset['name']}: {'; '.join(parts)}"
    return ". ".join([text, *(str(note).rstrip(".") for note in dataset["notes"])]) + "."
