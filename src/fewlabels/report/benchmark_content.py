"""What the report of a benchmark says, before Markdown and HTML lay it out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fewlabels.report import benchmark_words as bw
from fewlabels.report.benchmark_plot import View, views
from fewlabels.report.benchmark_tables import Grid, glance, sections
from fewlabels.report.words import count, percent, plural

_SECOND = frozenset({"classifiers"})
"""Kinds of tables that are folded, many of them and of second rank, unless they are the content."""

_ABOUT = {
    "error-by-labels": "Shaded: one standard error over the runs, to both sides.",
    "error-by-level": "Shaded: one standard error over the runs, to both sides.",
    "labeled-curve": "Each method stands where its error{fewest} meets the curve of the labels "
    "alone; behind its name is the number of labels there.",
    "trend": "Points are means of about as many sets each, shaded is one standard error; behind a "
    "name is the rank correlation.",
}


class Figure(NamedTuple):
    """A figure: what it shows, where, how to read it, its panels, and what its file is called."""

    kind: str
    place: str
    about: str
    views: list[View]
    slug: str

    @property
    def title(self) -> str:
        """Kind and place."""
        return f"{self.kind}: {self.place}" if self.place else self.kind


class Section(NamedTuple):
    """Tables of one kind."""

    title: str
    grids: list[Grid]
    folded: bool = False


@dataclass(frozen=True)
class Content:
    """A report in its parts; `about_figures` is said once where figures are files of their own."""

    name: str
    title: str
    source: str
    headline: str
    facts: list[tuple[str, str]]
    settings: list[tuple[str, str]]
    command: str
    notes: list[str]
    reading: list[tuple[str, str]]
    datasets: list[str]
    glance: Grid | None
    figures: list[Figure]
    sections: list[Section]
    about_figures: str = ""


def content_of(summary: bw.Summary) -> Content:
    """The report of a benchmark of errors, from what `fewlabels.bench.summarise` gives."""
    protocol = summary["protocol"]
    return Content(
        protocol.get("name") or "",
        protocol.get("title") or "",
        protocol.get("source") or "",
        headline(summary),
        facts(summary),
        settings(summary),
        summary.get("command") or "",
        notes(summary),
        reading(summary),
        [data_set(dataset) for dataset in summary["datasets"]],
        glance(summary) if summary["glance"] else None,
        [_figure(figure, summary) for figure in summary["figures"]],
        list(_sections(summary)),
    )


def _figure(figure: Mapping[str, Any], summary: bw.Summary) -> Figure:
    fewest = figure["n_labeled"] if figure["kind"] == "labeled-curve" else None
    at = f" at {fewest} labels" if fewest is not None else ""
    about = _ABOUT.get(figure["kind"], _ABOUT["trend"]).format(fewest=at)
    return Figure(
        bw.kind_title(bw.FIGURES, figure), bw.place(figure), about, views(figure, summary),
        slug_of(figure),
    )  # fmt: skip


def slug_of(figure: Mapping[str, Any]) -> str:
    """What tells a figure from others, as words of a file's name."""
    parts = [figure["kind"], figure["dataset"], figure["level"]]
    parts += [figure["n_labeled"], figure["n_unlabeled"] or None]
    return "-".join(str(part) for part in parts if part not in (None, ""))


def _sections(summary: bw.Summary) -> list[Section]:
    found = []
    for title, tables in sections(summary):
        kind = tables[0][0]["kind"]
        folded = kind in _SECOND and kind != summary["tables"][0]["kind"]
        found.append(Section(title, [grid for _, part in tables for grid in part], folded))
    return found


# --- what is said around the tables ---------------------------------------------------------------

FEWEST_RUNS = 10
"""Of fewer runs the headline names no method as the best."""

_MOST_NOTES = 20
_MOST_NAMES = 5
_LIST = re.compile(r"[^,;:]+(?:, [^,;:]+){7,}")
_FOLDERS = re.compile(
    r"(?<![\w.~:/\\-])(?:[A-Za-z]:)?(?:[\\/][^\s\\/:'\"]+)*[\\/](?=[^\s\\/:'\"]+)"
)
_MOST_SIZES = 8


def headline(summary: bw.Summary) -> str:
    """Which method came out best, in one or two sentences."""
    glance = [entry for entry in summary["glance"] if not entry["floor"]]
    if not glance:
        return "There are no results yet."
    total = glance[0]["n_contested"]
    top = max(entry["n_best"] for entry in glance)
    leaders = [entry for entry in glance if entry["n_best"] == top]
    what = f"{plural(len(glance), 'method')} in {plural(glance[0]['n_columns'], 'comparison')}."
    if not top:
        return what
    if summary["runs"] < FEWEST_RUNS:
        return f"{plural(summary['runs'], 'run')}: too few to rank methods. {what}"
    first = [entry["method"] for entry in leaders[:3]]
    first += [f"{count(len(leaders) - 3)} more"] if len(leaders) > 3 else []
    names = " and ".join([", ".join(first[:-1]), first[-1]] if len(first) > 1 else first)
    has = "has" if len(leaders) == 1 else "each have"
    text = (
        f"{names} {has} the least error, or one within a standard error of it, in "
        f"{count(top)} of {plural(total, 'comparison')}."
    )
    lead = leaders[0]
    if len(leaders) == 1 and lead["rmae"] is not None and lead["method"] != summary["reference"]:
        text += (
            f" Its error is {bw.ratio_text(lead['rmae'])} times that of {summary['reference']} "
            f"(geometric mean over {plural(lead['n_ratios'], 'comparison')})."
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
    """How the numbers that the report has are made: a term and its meaning each."""
    return [(term, " ".join(said)) for term, said in _terms(summary)]


def _terms(summary: bw.Summary) -> Iterator[tuple[str, list[str]]]:
    kinds = {table["kind"] for table in summary["tables"]}
    cells = [cell for table in summary["tables"] for cell in _cells(table)]
    trained = summary["protocol"].get("design") == "trained sets"
    if cells:
        yield "Error", _error(summary, trained)
    if any(cell.get("best") for cell in cells):
        yield "Bold", [_BOLD]
    if any(cell.get("rmae") is not None for cell in summary["cells"]):
        yield "RMAE", list(_ratio(summary, kinds))
    if "methods" in kinds:
        yield "Bias", [_BIAS]
    if summary["protocol"].get("sampler") == "released" and not trained:
        yield "Labels", [_RELEASED]
    if any(m["name"].startswith("active-") for m in summary["methods"]):
        yield "active-testing", [_ACTIVE]
    if "intervals" in kinds:
        yield "Coverage", _coverage(summary)
        yield "Width", ["Upper less lower end of an interval, averaged over classifiers and runs."]
    if kinds & {"methods", "effective-sizes"} and any(c.get("ess") for c in cells):
        yield "ESS", list(_sizes(summary, kinds))
    if "associations" in kinds:
        yield "Rank correlation", [_RANKS]
    if any(method["floor"] for method in summary["methods"]):
        halves = "them and the rows of the truth." if trained else "the two halves of the data."
        yield "All labels known", [f"{_FLOOR_IS} What is left is the difference between {halves}"]


def _cells(table: Mapping[str, Any]) -> list[bw.Cell]:
    return [cell for row in table.get("rows", ()) for cell in row["cells"] if cell]


_BOLD = (
    "The least error of a column, and every error that is no more than one paired standard error "
    "above it. The leader is one of the methods with the most runs, so that leaving out hard runs "
    "does not win; the row of all labels takes no part, and where only one method has a value "
    "nothing is bold."
)
_BIAS = (
    "The mean of estimate - truth over classifiers and runs: positive where the method is too "
    "optimistic of a metric that should be high."
)
_RELEASED = (
    "As in the released SSME code, each class has a label and the others are drawn at random: "
    "labels hold more of a rare class than the data do, and what takes them for a random sample "
    "(labeled, too) inherits that bias."
)
_ACTIVE = (
    "It picks which items are labeled: as many as the others have, of its own choice among the "
    "same items. The other methods get theirs by the sampler."
)
_RANKS = (
    "Spearman's coefficient of a method's error and a trait, over the runs or sets of classifiers "
    "that differ in it. It says how the two go together, not that one makes the other."
)
_FLOOR_IS = "The floor: the same items with all their labels."


def _error(summary: bw.Summary, trained: bool) -> list[str]:
    apart = (
        "In each run classifiers are trained on some rows, the items are drawn from others, and "
        "the truth is the metric on yet others."
        if trained
        else "In each run the items come from one half of the data, and the truth is the metric on "
        "the other half."
    )
    error = (
        "The error of a run is |estimate - truth|, averaged over the classifiers; a cell is its "
        "mean ± standard deviation over the runs."
    )
    points = any(m["unit"] == "points" for m in summary["metrics"].values())
    return [apart, error, *(["It is in percentage points."] if points else [])]


def _ratio(summary: bw.Summary, kinds: set[str]) -> Iterator[str]:
    yield f"A method's mean error divided by that of {summary['reference']} on the same splits."
    if "methods" in kinds and any(cell["rmae_low"] is not None for cell in summary["cells"]):
        yield (
            f"In brackets is the {percent(summary['level'])} bootstrap interval over runs, in "
            f"pairs ({count(summary['resamples'])} resamples; none of fewer than 5 runs). The runs "
            "share their data, so it says nothing of other data."
        )


def _sizes(summary: bw.Summary, kinds: set[str]) -> Iterator[str]:
    """What an effective size is, as far as the report shows it."""
    yield (
        "Effective sample size: the number of labels whose error alone is nearest to the method's"
        + (
            f", read from a curve of {_behind(summary)} per point."
            if summary["curve_runs"]
            else "."
        )
    )
    yield (
        "Nothing is smoothed. The curve is noisy, and the more so the flatter it is: sizes near "
        "its flat end are rough. Beyond its ends the size is marked > or <."
    )
    yield f"That of {summary['reference']} itself is its own number of labels."
    if "effective-sizes" in kinds:
        yield "In brackets: the sizes whose error is within a standard error of the method's."


def _behind(summary: bw.Summary) -> str:
    few, most = summary["curve_runs"]
    return plural(few, "sample") if few == most else f"{few} to {plural(most, 'sample')}"


def _coverage(summary: bw.Summary) -> list[str]:
    """What coverage means: intervals and truth may be of different items."""
    level = summary["protocol"].get("confidence_level")
    nominal = f"; it should be {percent(level)}" if level else ""
    said = [
        "The share of intervals that hold the truth, averaged over classifiers and runs"
        f"{nominal}. ± is its standard error: that over runs or, if larger, that of Agresti "
        "and Coull (two successes and two failures added to the runs x classifiers), which is "
        "above nothing even at 0% and 100%."
    ]
    if summary["protocol"].get("estimand") == "sample":
        said.append(
            "These intervals are for the items of the run alone, and the truth is that of other "
            "items: coverage below the level is no fault of theirs (--estimand population asks for "
            "intervals that should hold it)."
        )
    return said


def notes(summary: bw.Summary) -> list[str]:
    """What a reader has to know before the numbers: failures, and files left out or alike."""
    runs: dict[tuple[str, str, str], int] = {}
    for entry in summary["failures"]:
        key = bw.method_name(entry["method"]), entry["dataset"], entry["reason"]
        runs[key] = runs.get(key, 0) + entry["n_runs"]
    failed = [
        f"No result of {method} on {dataset} in {plural(n, 'cell')}: {_short(reason)}"
        for (method, dataset, reason), n in runs.items()
    ]
    more = [f"and {plural(len(failed) - _MOST_NOTES, 'more such line')}"]
    shown = failed[:_MOST_NOTES] + (more if len(failed) > _MOST_NOTES else [])
    return [*_alike(summary), *shown, *(f"Skipped: {line}" for line in _skipped(summary))]


def _alike(summary: bw.Summary) -> Iterator[str]:
    """Which file is behind which name, where files are called the same."""
    files = {d["name"]: str(d.get("file") or d["name"]) for d in summary["datasets"]}
    short = bw.short_paths(list(files.values()))
    by_stem: dict[str, list[str]] = {}
    for name, file in files.items():
        stem = re.split(r"[/\\]", file)[-1].rpartition(".")[0]
        by_stem.setdefault(stem or file, []).append(name)
    for names in by_stem.values():
        if len(names) > 1:
            told = (f"{name} is {short[files[name]]}" for name in names)
            yield f"Data sets of files of the same name: {', '.join(told)}"


def _skipped(summary: bw.Summary) -> Iterator[str]:
    """The lines of files that were left out, without the folders of this machine."""
    split = [line.partition(": ") for line in summary["skipped"]]
    named = [bool(re.search(r"[/\\]", place)) and bool(why) for place, _, why in split]
    short = bw.short_paths([place for (place, _, _), is_file in zip(split, named, strict=True)
                            if is_file])  # fmt: skip
    for (place, colon, why), is_file in zip(split, named, strict=True):
        yield _short((short[place] if is_file else place) + colon + why)


def _short(text: str) -> str:
    """Without the folders of absolute paths, and with long lists cut."""

    def cut(found: re.Match[str]) -> str:
        parts = found[0].split(", ")
        return f"{', '.join(parts[:_MOST_NAMES])} and {count(len(parts) - _MOST_NAMES)} more"

    return _LIST.sub(cut, _FOLDERS.sub("", text))


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
    return ". ".join([text, *(_short(str(note)).rstrip(".") for note in dataset["notes"])]) + "."
