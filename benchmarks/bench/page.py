"""The page of a benchmark: what ran, who did best, figures and tables, as Markdown."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

import fewlabels
from bench.errors import Errors
from bench.figures import FIGURES, draw, figures
from bench.protocol import FLOOR, HISTOGRAMS, REFERENCE, Protocol
from bench.results import Results, replace_file
from bench.tables import OFFERED, escaped, glance, glance_table, losses, number, plural, sections
from fewlabels import UsageError

FEWEST_RUNS = 10
"""Of fewer runs the headline names no method as the best."""

_MOST_NOTES = 20
_READING = "What the columns mean: docs/benchmark.md, How to read a page."


def check_shown(protocol: Protocol) -> None:
    """Refuse tables and figures that there are not."""
    for kind, wanted, known in (
        ("table", protocol.tables, OFFERED), ("figure", protocol.figures, tuple(FIGURES))
    ):  # fmt: skip
        for name in wanted:
            if name not in known:
                raise UsageError(f"unknown {kind} {name!r}; choose from {', '.join(known)}")


def write_page(results: Results, folder: Path, command: str = "") -> str:
    """Write report.md and figures/*.svg into a folder; what a terminal shows of it."""
    protocol = results.protocol
    place, drawn, first = folder / "figures", list[str](), list[str]()
    shutil.rmtree(place, ignore_errors=True)
    if protocol.design == HISTOGRAMS:
        tables = [("losses", "Losses by method and classifier", list(losses(results)))]
    else:
        errors = Errors(results)
        tables = list(sections(errors))
        found = glance(errors)
        first = [f"**{headline(found, int(results.rows['run'].nunique()))}**", ""]
        first += glance_table(found).markdown()
        for heading, about, figure in figures(errors):
            place.mkdir(exist_ok=True)
            draw(figure, place / f"{figure.slug}.svg", [*protocol.methods, FLOOR])
            image = f"![{escaped(heading)}](figures/{figure.slug}.svg)"
            drawn += [f"### {escaped(heading)}", "", image, "", about, ""]
    lines = [f"# Benchmark: {escaped(protocol.name)}", "", escaped(protocol.title), ""]
    lines += [*(f"- {name}: {escaped(value)}" for name, value in _facts(results, command)), ""]
    said = [f"- {escaped(note)}" for note in notes(results)]
    said += [""] * bool(said)
    for title, own in {"Please note": said, "At a glance": first, "Figures": drawn}.items():
        lines += [f"## {title}", "", *own] if own else []
    for _, title, made in tables:
        lines += [f"## {escaped(title)}", "", *(line for t in made for line in t.markdown())]
    lines += [_READING, "", "## Data sets", ""]
    for dataset in results.datasets:
        of = f"{plural(dataset.n_items, 'item')}, {plural(len(dataset.models), 'classifier')}, "
        of += f"{len(dataset.classes)} classes"
        lines.append(f"- {escaped('; '.join([f'{dataset.name}: {of}', *dataset.notes]))}")
    replace_file(folder / "report.md", "\n".join(lines).rstrip() + "\n")
    shown = [t for kind, _, made in tables for t in made if kind in (tables[0][0], "intervals")]
    return "\n".join([*first, *(line for t in shown if not t.folded for line in t.markdown())])


def _facts(results: Results, command: str) -> Iterator[tuple[str, str]]:
    protocol, level = results.protocol, results.protocol.confidence_level
    yield "Protocol", protocol.name
    yield "Data sets", f"{len(results.datasets):,}"
    yield "Methods", f"{sum(m != FLOOR for m in protocol.methods):,}"
    yield "Runs", f"{protocol.runs:,}"
    yield "Labels", ", ".join(f"{n:,}" for n in protocol.n_labeled)
    if protocol.design != HISTOGRAMS:
        yield "Unlabeled", ", ".join(f"{n:,}" for n in protocol.n_unlabeled)
        yield "Sampler", protocol.sampler
        yield "Estimand", protocol.estimand
        yield "Intervals", f"{level:.0%}" if level else "none"
    yield "Seed", str(protocol.seed)
    yield "Version", f"fewlabels {fewlabels.__version__}"
    if command:
        yield "Command", command


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
    text = (
        f"{' and '.join(leaders)} {'has' if len(leaders) == 1 else 'each have'} the least error, "
        f"or one within a standard error of it, in {top:,} of {plural(contested, 'comparison')}."
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
    lost = results.rows[results.rows["model"] == ""]
    lost = lost.assign(reason=lost["message"].where(lost["message"] != "", lost["status"]))
    count = lost.groupby(["method", "dataset", "reason"], sort=False).size()
    failed = [
        f"No result of {method} on {dataset} in {plural(int(n), 'cell')}: {reason}"
        for (method, dataset, reason), n in count.items()
    ]
    if len(failed) > _MOST_NOTES:
        failed[_MOST_NOTES:] = [f"and {plural(len(failed) - _MOST_NOTES, 'more such line')}"]
    return [*failed, *(f"Skipped: {line}" for line in results.skipped)]
