"""The benchmark of disagreement as files: the grids, panels and pages are those of benchmarks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from fewlabels.report import benchmark_markdown as markdown
from fewlabels.report import benchmark_text as terminal
from fewlabels.report.benchmark_html import Sheet
from fewlabels.report.benchmark_notes import data_set, notes
from fewlabels.report.benchmark_plot import LEADER, View, views
from fewlabels.report.benchmark_tables import Grid, GridCell, GridRow
from fewlabels.report.html import environment
from fewlabels.report.words import NumberFormat, count, number_format, plural, wrap

Summary = Mapping[str, Any]
Table = Mapping[str, Any]

_TITLES = {
    "losses": "Losses of the probabilities",
    "disagreement": "Predicted disagreement",
    "updates": "One label of an expert",
}
_METRICS = {
    "L": "L, expected squared loss",
    "EL": "EL, epistemic loss: squared distance to the label distribution",
    "CL": "CL, calibration loss",
    "CE": "CE, calibration error",
    "accuracy": "Accuracy",
    "L_disagreement": "L of disagreement",
    "CE_disagreement": "CE of disagreement",
    "prior_EL": "EL before the label",
    "posterior_EL": "EL after the label",
}
_TERMINAL = ("L_disagreement", "CE_disagreement", "posterior_EL")
_ABOUT = (
    "Share of pairs of labels that differ, against the predicted probability that two experts "
    "disagree, in bins of equal width; shaded is one standard error over the runs. Where the "
    "curve is below the dotted line, more disagreement is predicted than there is."
)
_READING = (
    (
        "Losses",
        "Means over the test items with all their labels, debiased: L, EL and CL estimate what "
        "infinitely many labels per item would give, so EL and CL can be negative; CE is the root "
        "of CL, or 0 where that is negative.",
    ),
    (
        "Methods",
        "one-number predicts the share of pairs of validation labels that differ for every item, "
        "and looks at no classifier. raw leaves probabilities as they are; temperature, vector and "
        "matrix scaling are fitted to the labels of the validation items. +alpha-... adds an "
        "alpha-calibration, whose concentration is constant, depends on the probabilities of the "
        "classifier (logits), or on the log-probabilities of all of them (features). It changes "
        "neither the probabilities nor their losses, but the predicted disagreement and what a "
        "label teaches.",
    ),
    (
        "Disagreement",
        "The probability that two experts give an item different labels: one less the sum of "
        "squared probabilities without alpha-calibration, and that times a/(a + 1) with it. L is "
        "the squared loss over all pairs of labels, CE the debiased calibration error in 15 bins.",
    ),
    (
        "One label",
        "One label of each test item is drawn, and the posterior after it is judged by the others "
        "(items of fewer than three labels are left out), beside the prior on the same labels.",
    ),
    (
        "Mean and ensemble",
        "'mean of all' is the average probability, treated as one more classifier. 'ensemble' "
        "takes the classifiers as draws of a class probability: disagreement is the mean of "
        "theirs, and a label weights them by the probability that they gave it.",
    ),
    ("±", "Standard deviation over the runs."),
    ("Bold", "The best mean of a column."),
)


def render(summary: Summary) -> dict[str, str]:
    """Relative file name -> text: "report.md", "report.html" and "figures/<slug>.svg".

    Parameters
    ----------
    summary
        The dictionary of `fewlabels.bench.disagreement.summarise`; plain JSON values.
    """
    files, titles = {}, {}
    for figure in summary["figures"]:
        slug = re.sub(r"[^a-z0-9]+", "-", f"reliability-{figure['dataset']}".lower()).strip("-")
        path = f"figures/{slug[:70]}-{figure['n_labeled']}.svg"
        number = 2
        while path in files:
            path, number = f"figures/{slug[:70]}-{number}-{figure['n_labeled']}.svg", number + 1
        files[path] = _svg(figure, summary)
        titles[path] = _figure_title(figure)
    return {"report.md": _markdown(summary, titles), "report.html": _page(summary), **files}


def render_text(summary: Summary, width: int = 80) -> str:
    """What is said of disagreement, as tables for a terminal of this width."""
    width = max(width, terminal.NARROWEST)
    lines = wrap(headline(summary), width)
    for table in summary["tables"]:
        if table["metric"] in _TERMINAL:
            grid = _grid(table)
            lines += ["", *wrap(_place(table), width), *terminal.grid_lines(grid, width)]
    return "\n".join(line.rstrip() for line in [*lines, "", "* the best of the column"])


def headline(summary: Summary) -> str:
    """Which method predicts disagreement best, for how many classifiers."""
    tables = [t for t in summary["tables"] if t["metric"] == "L_disagreement"]
    wins: dict[str, int] = {}
    for table in tables:
        for row in table["rows"]:
            wins.setdefault(row["method"], 0)
            wins[row["method"]] += sum(cell["best"] for cell in row["cells"])
    total = sum(len(table["models"]) for table in tables)
    if not wins or not max(wins.values()):
        return "There are no results to compare."
    top = max(wins.values())
    leaders = [method for method, n in wins.items() if n == top]
    return (
        f"{' and '.join(leaders)} {'has' if len(leaders) == 1 else 'each have'} the least loss of "
        f"predicted disagreement in {count(top)} of {plural(total, 'comparison')} (classifiers, "
        "their mean and ensemble, by data set and labels per item)."
    )


# --- tables -------------------------------------------------------------------------------------


def _place(table: Table) -> str:
    labels = plural(table["n_labeled"], "label")
    return f"{table['dataset']}, {labels} per validation item: {_METRICS[table['metric']]}"


def _grid(table: Table) -> Grid:
    write = _writer(table)
    rows = tuple(
        GridRow(row["method"], tuple(_cell(cell, write) for cell in row["cells"]))
        for row in table["rows"]
    )
    models = tuple(map(str, table["models"]))
    return Grid(_place(table), "", "method", (), models, models, rows)


def _writer(table: Table) -> NumberFormat:
    """Four decimals: differences between methods are often in the third."""
    means = [cell["mean"] for row in table["rows"] for cell in row["cells"]]
    largest = max((abs(m) for m in means if m is not None), default=0.0)
    if largest and largest < 5e-3:
        return number_format(means)
    return lambda value: "-" if value is None else f"{round(value, 4) + 0.0:.4f}"


def _cell(cell: Mapping[str, Any], write: NumberFormat) -> GridCell:
    if cell["mean"] is None:
        return GridCell("-")
    spread = "" if cell["sd"] is None else f"± {write(cell['sd'])}"
    return GridCell(write(cell["mean"]), spread, strong=cell["best"])


def _sections(summary: Summary) -> Iterator[tuple[str, list[Grid]]]:
    """Title and grids, by data set and kind; tables of one kind stand together."""
    found: dict[str, list[Grid]] = {}
    for table in summary["tables"]:
        found.setdefault(f"{_TITLES[table['kind']]}: {table['dataset']}", []).append(_grid(table))
    yield from found.items()


# --- figures ------------------------------------------------------------------------------------


def _figure_title(figure: Mapping[str, Any]) -> str:
    labels = plural(figure["n_labeled"], "label")
    return f"Reliability of predicted disagreement: {figure['dataset']}, {labels} per item"


def _views(figure: Mapping[str, Any], summary: Summary) -> list[View]:
    return [replace(view, y_name="observed disagreement") for view in views(figure, summary)]


def _svg(figure: Mapping[str, Any], summary: Summary) -> str:
    drawn = _views(figure, summary)
    template = environment().get_template("benchmark.svg.j2")
    sheet = Sheet(len(drawn), drawn[0].height)
    return template.render(
        title=_figure_title(figure), views=drawn, sheet=sheet, leader=LEADER
    ).lstrip()


# --- pages --------------------------------------------------------------------------------------


def _facts(summary: Summary) -> list[tuple[str, str]]:
    protocol = summary["protocol"]
    return [
        ("Protocol", protocol["name"]),
        ("Data sets", count(len(summary["datasets"]))),
        ("Runs", count(protocol["runs"])),
        ("Labels per validation item", ", ".join(map(count, protocol["n_labeled"]))),
        ("Methods", count(len(protocol["methods"]))),
    ]


def _settings(summary: Summary) -> list[tuple[str, str]]:
    seed, version = summary["protocol"]["seed"], summary["fewlabels"]
    return [("Seed", str(seed)), ("Version", f"fewlabels {version}")]


def _markdown(summary: Summary, figures: Mapping[str, str]) -> str:
    shown = markdown.escaped
    protocol = summary["protocol"]
    lines = [f"# Benchmark: {shown(protocol['name'])}", "", shown(protocol["title"]), ""]
    lines += [f"**{shown(headline(summary))}**", ""]
    lines += [f"- {term}: {shown(value)}" for term, value in _facts(summary) + _settings(summary)]
    lines += [f"- Command: {shown(summary['command'])}", ""]
    said = notes(summary)
    if said:
        lines += ["## Please note", "", *(f"- {shown(note)}" for note in said), ""]
    for title, grids in _sections(summary):
        lines += [f"## {shown(title)}", ""]
        for grid in grids:
            lines += markdown.section(grid)
    if figures:
        lines += ["## Figures", "", shown(_ABOUT), ""]
    for path, title in figures.items():
        lines += [f"![{shown(title)}]({path})", ""]
    lines += ["## How to read this", ""]
    lines += [f"- **{term}.** {shown(meaning)}" for term, meaning in _READING]
    lines += ["", "## Data sets", "", *(f"- {shown(data_set(d))}" for d in summary["datasets"])]
    return "\n".join(lines) + "\n"


def _page(summary: Summary) -> str:
    figures = [
        {
            "kind": "Reliability of predicted disagreement",
            "place": f"{f['dataset']}, {plural(f['n_labeled'], 'label')} per validation item",
            "about": _ABOUT,
            "views": _views(f, summary),
        }
        for f in summary["figures"]
    ]
    return (
        environment()
        .get_template("benchmark.html.j2")
        .render(
            summary=summary,
            heading=summary["protocol"]["title"],
            headline=headline(summary),
            facts=_facts(summary),
            settings=_settings(summary),
            command=summary["command"],
            notes=notes(summary),
            reading=_READING,
            datasets=[data_set(dataset) for dataset in summary["datasets"]],
            glance=None,
            figures=figures,
            sections=[
                {"title": title, "grids": grids, "folded": False}
                for title, grids in _sections(summary)
            ],
            leader=LEADER,
        )
        .lstrip()
    )
