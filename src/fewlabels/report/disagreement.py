"""The benchmark of disagreement as files: the grids, panels and pages are those of benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fewlabels.report import benchmark_text as terminal
from fewlabels.report.benchmark_content import Content, Figure, Section, data_set, notes, slug_of
from fewlabels.report.benchmark_plot import views
from fewlabels.report.benchmark_tables import Grid, GridCell, GridRow
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


def _sections(summary: Summary) -> list[Section]:
    """Grids by data set and kind; tables of one kind stand together."""
    found: dict[str, Section] = {}
    for table in summary["tables"]:
        title = f"{_TITLES[table['kind']]}: {table['dataset']}"
        found.setdefault(title, Section(title, [])).grids.append(_grid(table))
    return list(found.values())


# --- the report ---------------------------------------------------------------------------------


def content_of(summary: Summary) -> Content:
    """The report, from what `fewlabels.bench.summarise` gives of label histograms."""
    protocol = summary["protocol"]
    facts = [
        ("Protocol", protocol["name"]),
        ("Data sets", count(len(summary["datasets"]))),
        ("Runs", count(protocol["runs"])),
        ("Labels per validation item", ", ".join(map(count, protocol["n_labeled"]))),
        ("Methods", count(len(protocol["methods"]))),
    ]
    settings = [("Seed", str(protocol["seed"])), ("Version", f"fewlabels {summary['fewlabels']}")]
    return Content(
        protocol["name"],
        protocol["title"],
        protocol["source"],
        headline(summary),
        facts,
        settings,
        summary["command"],
        notes(summary),
        list(_READING),
        [data_set(dataset) for dataset in summary["datasets"]],
        None,
        [_figure(figure, summary) for figure in summary["figures"]],
        _sections(summary),
        _ABOUT,
    )


def _figure(figure: Mapping[str, Any], summary: Summary) -> Figure:
    place = f"{figure['dataset']}, {plural(figure['n_labeled'], 'label')} per validation item"
    drawn = [replace(v, y_name="observed disagreement") for v in views(figure, summary)]
    return Figure("Reliability of predicted disagreement", place, _ABOUT, drawn, slug_of(figure))
