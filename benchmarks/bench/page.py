"""The page of a benchmark: what ran, who did best, figures and tables, as Markdown."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path, PurePath
from typing import Any

import pandas as pd

from bench.errors import LEVEL, RESAMPLES, Errors, failures, without_folders
from bench.figures import FIGURES, Figure, draw, figures
from bench.folder import MANIFEST, replace_text
from bench.protocol import (
    FLOOR,
    HISTOGRAM_OPTIONS,
    HISTOGRAMS,
    REFERENCE,
    TRAINED,
    Protocol,
    load,
    names,
)
from bench.results import Results
from bench.tables import TABLES, Table, glance, glance_table, number, plural, sections
from fewlabels import __version__
from fewlabels.errors import UsageError, one_line, unknown
from fewlabels.methods.settings import canonical
from fewlabels.report.markdown import escaped

FEWEST_RUNS = 10
"""Of fewer runs the headline names no method as the best."""

_MOST_NOTES = 20
_MOST_SHOWN = 12


@dataclass
class Page:
    """A page in its parts, before it is written; `sections` are (title, tables)."""

    headline: str
    reading: Mapping[str, str]
    figures: list[Figure] = field(default_factory=list)
    first: Table | None = None
    sections: list[tuple[str, list[Table]]] = field(default_factory=list)


def page_of(results: Results) -> Page:
    """What the page of a benchmark says."""
    if results.protocol.design == HISTOGRAMS:
        from bench.disagreement_page import page_of as of_histograms

        return of_histograms(results)
    errors = Errors(results)
    if errors.runs.empty:
        return Page("There are no results yet.", {})
    found = glance(errors)
    shown = list(sections(errors))
    for kind, _, tables in shown:
        for table in tables:
            # Of second rank unless they are the content.
            table.folded |= kind == "classifiers" and shown[0][0] != kind
    return Page(
        headline(found, int(results.rows["run"].nunique())),
        reading(errors, {kind for kind, _, _ in shown}),
        list(figures(errors)),
        glance_table(found) if len(found) else None,
        [(title, tables) for _, title, tables in shown],
    )


def write_page(results: Results, folder: Path) -> Page:
    """Write report.md and figures/*.svg into a folder.

    Raises
    ------
    OSError
        If the system refuses.
    """
    page = page_of(results)
    place = folder / "figures"
    shutil.rmtree(place, ignore_errors=True)
    if page.figures:
        place.mkdir()
    for figure in page.figures:
        draw(figure, place / f"{figure.slug}.svg", [*results.protocol.methods, FLOOR])
    replace_text(folder / "report.md", "\n".join(_lines(page, results)).rstrip() + "\n")
    return page


def main_tables(page: Page) -> str:
    """What a terminal shows: the headline, the first tables, and those of coverage."""
    first = [page.first] if page.first else []
    kinds = [tables for title, tables in page.sections[:1]]
    kinds += [tables for title, tables in page.sections[1:] if title.startswith("Intervals")]
    shown = [*first, *(t for tables in kinds for t in tables[:_MOST_SHOWN] if not t.folded)]
    return "\n".join([page.headline, "", *(line for table in shown for line in table.markdown())])


def _lines(page: Page, results: Results) -> Iterator[str]:
    protocol = results.protocol
    yield from [f"# Benchmark: {escaped(protocol.name)}", "", escaped(protocol.title), ""]
    yield from [f"**{escaped(page.headline)}**", ""]
    yield from (f"- {name}: {escaped(value)}" for name, value in facts(results))
    yield ""
    said = notes(results)
    if said:
        yield from ["## Please note", "", *(f"- {escaped(note)}" for note in said), ""]
    if page.first:
        yield from ["## At a glance", "", *page.first.markdown()]
    if page.figures:
        yield from ["## Figures", ""]
    for figure in page.figures:
        title = escaped(figure.title)
        yield from [f"### {title}", "", f"![{title}](figures/{figure.slug}.svg)", ""]
        yield from [figure.about, ""] if figure.about else []
    for title, tables in page.sections:
        yield from [f"## {escaped(title)}", ""]
        for table in tables:
            yield from table.markdown()
    yield from ["## How to read this", ""]
    yield from (f"- **{term}.** {escaped(meaning)}" for term, meaning in page.reading.items())
    yield from ["", "## Data sets", ""]
    for dataset in results.datasets:
        of = f"{plural(dataset.n_items, 'item')}, {plural(len(dataset.models), 'classifier')}, "
        of += plural(len(dataset.classes), "class").replace("classs", "classes")
        yield f"- {escaped('; '.join([f'{dataset.name}: {of}', *dataset.notes]))}"


def facts(results: Results) -> Iterator[tuple[str, str]]:
    """What ran and the choices that decide the numbers, as name and value."""
    protocol = results.protocol
    level = protocol.confidence_level
    yield "Protocol", protocol.name
    yield "Data sets", f"{len(results.datasets):,}"
    yield "Methods", f"{sum(m != FLOOR for m in protocol.methods):,}"
    yield "Runs", f"{protocol.runs:,}"
    yield "Labels", _listed(protocol.n_labeled)
    if protocol.design != HISTOGRAMS:
        yield "Unlabeled", _listed(protocol.n_unlabeled)
        yield "Sampler", protocol.sampler
        yield "Estimand", protocol.estimand
        yield "Intervals", f"{level:.0%}" if level else "none"
    yield "Seed", str(protocol.seed)
    yield "Version", f"fewlabels {__version__}"
    yield "Command", command(results)


def _listed(values: Sequence[int]) -> str:
    if len(values) > 8:
        return f"{values[0]:,} to {values[-1]:,}, {len(values)} sizes"
    return ", ".join(f"{value:,}" for value in values)


def headline(found: pd.DataFrame, runs: int) -> str:
    """Which method came out best, in one or two sentences."""
    methods = found[found.index != FLOOR]
    if methods.empty:
        return "There are no results yet."
    columns, contested = int(methods["n_columns"].iloc[0]), int(methods["n_contested"].iloc[0])
    top = int(methods["n_best"].max())
    what = f"{plural(len(methods), 'method')} in {plural(columns, 'comparison')}."
    if not top:
        return what
    if runs < FEWEST_RUNS:
        return f"{plural(runs, 'run')}: too few to rank methods. {what}"
    leaders = methods.index[methods["n_best"] == top].tolist()
    first = leaders[:3] + ([f"{len(leaders) - 3:,} more"] if len(leaders) > 3 else [])
    who = " and ".join([", ".join(first[:-1]), first[-1]] if len(first) > 1 else first)
    text = (
        f"{who} {'has' if len(leaders) == 1 else 'each have'} the least error, or one within a "
        f"standard error of it, in {top:,} of {plural(contested, 'comparison')}."
    )
    lead = methods.loc[leaders[0]]
    if len(leaders) == 1 and lead["n_ratios"] and leaders[0] != REFERENCE:
        text += (
            f" Its error is {number(lead['rmae'])} times that of {REFERENCE} (geometric mean over "
            f"{plural(int(lead['n_ratios']), 'comparison')})."
        )
    return text


def notes(results: Results) -> list[str]:
    """What a reader has to know before the numbers: failures, and files left out."""
    lost = failures(results.rows).replace({"method": {FLOOR: "all labels known"}})
    count = lost.groupby(["method", "dataset", "reason"], sort=False).size()
    failed = [
        f"No result of {method} on {dataset} in {plural(int(n), 'cell')}: {one_line(reason, 200)}"
        for (method, dataset, reason), n in count.items()
    ]
    if len(failed) > _MOST_NOTES:
        failed[_MOST_NOTES:] = [f"and {plural(len(failed) - _MOST_NOTES, 'more such line')}"]
    skipped = [f"Skipped: {one_line(line, 300)}" for line in results.skipped]
    return [*failed, *map(without_folders, skipped)]


# --- how the numbers are made --------------------------------------------------------------------


def reading(errors: Errors, kinds: set[str]) -> dict[str, str]:
    """The terms that a page with these kinds of tables has, and their meanings."""
    protocol, cells = errors.results.protocol, errors.cells
    trained = protocol.design == TRAINED
    apart, halves = _TRAINED if trained else _HALVES
    coverage = _COVERAGE.format(level=protocol.confidence_level or 0)
    coverage += _OF_SAMPLE if protocol.estimand == "sample" else ""
    ratio = _RATIO if not {"methods"} & kinds else f"{_RATIO} {_BRACKETS}"
    runs = errors.curves["n_runs"]
    behind = f" of {runs.min():,} to {runs.max():,} samples per point" if len(runs) else ""
    known = {
        "Error": (bool(len(cells)), f"{apart} {_ERROR}"),
        "Bold": (len(cells) and cells["best"].any(), _BOLD),
        "RMAE": (len(cells) and cells["rmae"].notna().any(), ratio),
        "Bias": ("methods" in kinds, _BIAS),
        "Labels": (protocol.sampler == "released" and not trained, _RELEASED),
        "active-testing": (any(m.startswith("active-") for m in errors.methods), _ACTIVE),
        "Coverage": ("intervals" in kinds, coverage),
        "Width": ("intervals" in kinds, _WIDTH),
        "ESS": (
            bool({"methods", "effective-sizes"} & kinds) and cells["ess"].notna().any(),
            _ESS.format(behind=behind),
        ),
        "Rank correlation": ("associations" in kinds, _RANKS),
        "All labels known": (FLOOR in errors.methods, f"{_FLOOR} {halves}"),
    }
    return {term: meaning for term, (shown, meaning) in known.items() if shown}


_HALVES = (
    "In each run the items come from one half of the data, and the truth is the metric on the "
    "other half.",
    "What is left is the difference between the two halves of the data.",
)
_TRAINED = (
    "In each run classifiers are trained on some rows, the items are drawn from others, and the "
    "truth is the metric on yet others.",
    "What is left is the difference between them and the rows of the truth.",
)
_ERROR = (
    "The error of a run is |estimate - truth|, averaged over the classifiers; a cell is its mean ± "
    "standard deviation over the runs, in percentage points where the metric is a share."
)
_BOLD = (
    "The least error of a column, and every error that is no more than one paired standard error "
    "above it. The leader is one of the methods with the most runs, so that leaving out hard runs "
    "does not win; the row of all labels takes no part, and where only one method has a value "
    "nothing is bold."
)
_RATIO = f"A method's mean error divided by that of {REFERENCE} on the same splits."
_BRACKETS = (
    f"In brackets is the {LEVEL:.0%} bootstrap interval over runs, in pairs ({RESAMPLES:,} "
    "resamples; none of fewer than 5 runs). The runs share their data, so it says nothing of other "
    "data."
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
_COVERAGE = (
    "The share of intervals that hold the truth, averaged over classifiers and runs; it should be "
    "{level:.0%}. ± is its standard error: that over runs or, if larger, that of Agresti and Coull "
    "(two successes and two failures added to the runs x classifiers), which is above nothing even "
    "at 0% and 100%."
)
_OF_SAMPLE = (
    " These intervals are for the items of the run alone, and the truth is that of other items: "
    "coverage below the level is no fault of theirs (--estimand population asks for intervals that "
    "should hold it)."
)
_WIDTH = "Upper less lower end of an interval, averaged over classifiers and runs."
_ESS = (
    "Effective sample size: the number of labels whose error alone is nearest to the method's, "
    "read from a curve{behind}. Nothing is smoothed. The curve is noisy, and the more so the "
    "flatter it is: sizes near its flat end are rough. Beyond its ends the size is marked > or <; "
    "in brackets are the sizes whose error is within a standard error of the method's. That of "
    f"{REFERENCE} itself is its own number of labels."
)
_RANKS = (
    "Spearman's coefficient of a method's error and a trait, over the runs or sets of classifiers "
    "that differ in it. It says how the two go together, not that one makes the other."
)
_FLOOR = "The floor: the same items with all their labels."


_BROUGHT = ("overview", "intervals", "group-ratios", "associations")
OFFERED = tuple(kind for kind in TABLES if kind not in _BROUGHT)
"""Tables that a protocol may name; the others come with them."""


def check_shown(protocol: Protocol) -> None:
    """Refuse tables and figures that there are not.

    Raises
    ------
    UsageError
        Naming the first of them.
    """
    for kind, wanted, known in (
        ("table", protocol.tables, OFFERED), ("figure", protocol.figures, FIGURES)
    ):  # fmt: skip
        for name in wanted:
            if name not in known:
                raise UsageError(unknown(kind, name, tuple(known)))


# --- the command ---------------------------------------------------------------------------------

_HAVE_NO_OPTION = ("name", "title", "source", "serves", "design", "factor", "tables", "figures")


def command(results: Results) -> str:
    """`python -m benchmarks NAME --data ...` with the options in which the run left its protocol.

    Files and folders are named without the folders that they are in. Of a protocol of one's own
    only the name and the data are known.
    """
    protocol = results.protocol
    manifest: dict[str, Any] = {}
    if results.folder is not None and (results.folder / MANIFEST).exists():
        manifest = json.loads((results.folder / MANIFEST).read_text(encoding="utf-8"))
    shipped = load(protocol.name) if protocol.name in names() else None
    words = ["python", "-m", "benchmarks", protocol.name if shipped else f"{protocol.name}.toml"]
    for place in manifest.get("data") or [d.file for d in results.datasets]:
        words += ["--data", PurePath(str(place)).name]
    if shipped:
        words += _changes(shipped, protocol)
    words += _reading(manifest.get("reading") or {})
    return one_line(shlex.join(words))


def _changes(shipped: Protocol, ran: Protocol) -> Iterator[str]:
    histograms = ran.design == HISTOGRAMS
    options = {name: option for option, name in HISTOGRAM_OPTIONS.items() if histograms}
    for name in (f.name for f in fields(Protocol) if f.name not in _HAVE_NO_OPTION):
        before, now = getattr(shipped, name), getattr(ran, name)
        if name == "methods" and not histograms:
            # As it runs: with the labels alone, and without the floor.
            before = tuple(map(canonical, before))
            now = tuple(m for m in now if m != FLOOR)
            now = now if REFERENCE in now else (REFERENCE, *now)
        made = name == "levels" and ran.factor == "subset"
        if name == "estimand" and ran.confidence_level is not None and ran.factor != "labels":
            before = None  # a level without an estimand would mean that of the population
        if made or now is None or now == before:
            continue
        if name == "bins":
            for column, edges in now.items():
                yield from ("--bins", f"{column}={_written(edges)}")
        else:
            yield from (f"--{options.get(name, name).replace('_', '-')}", _written(now))


def _reading(read: Mapping[str, Any]) -> Iterator[str]:
    for name in ("models", "exclude_models", "most_items"):
        if read.get(name):
            yield from (f"--{name.replace('_', '-')}", _written(read[name]))
    for column, value in (read.get("where") or {}).items():
        yield from ("--where", f"{column}={value}")
    for name, value in (read.get("columns") or {}).items():
        if name == "models":
            for model, columns in value.items():
                yield from ("--model", f"{model}={_written(columns)}")
        else:
            yield from (f"--{name}", PurePath(value).name if name == "columns" else _written(value))


def _written(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_written, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
