"""Label histograms as text and as a page: how near classifiers are to what annotators say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fewlabels.errors import listed
from fewlabels.report.blocks import Block, Report, Row, Verdict, blocks, common_axis, verdict
from fewlabels.report.html import render
from fewlabels.report.profiles import Profile, profile
from fewlabels.report.words import (
    NARROWEST,
    aligned,
    as_text,
    cell_width,
    classes_text,
    clean,
    fit,
    made_by,
    number,
    percent,
    plural,
    share,
    short_names,
    warning_lines,
    wrap,
)

LOSSES = ("accuracy", "L", "EL", "CL", "DL", "CE")
"""What is shown of the classes, in this order."""

OF_PAIRS = ("L_disagreement", "CL_disagreement", "CE_disagreement")
"""What is shown of the disagreement of two annotators."""

OF_STATISTIC = ("L", "CL", "CE", "EL")
"""What is shown of any other statistic of labels; its name follows an underscore."""

MEANINGS = {
    "accuracy": "share of items whose most frequent label is the classifier's likeliest class",
    "L": "squared distance of the probabilities from single labels; what annotators disagree "
    "about is in it, so the best classifier does not reach 0",
    "EL": "epistemic loss: squared distance of the probabilities from the label distribution",
    "CL": "calibration loss: the part of EL that calibration could remove",
    "DL": "dispersion loss: the rest of EL, which only a better classifier removes",
    "CE": "calibration error: the square root of CL",
    "L_disagreement": "squared error of the predicted probability that two annotators disagree",
    "CL_disagreement": "the part of it that calibration could remove",
    "CE_disagreement": "the square root of that: how far off the predicted disagreement is",
}
"""What each loss is, in words."""

UNBIASED = (
    "a loss below 0 is one too small to tell from 0: what few labels add by chance is taken off, "
    "at times too much"
)

_DIRECTION = {"accuracy": 1}
_BOUNDS: dict[str, tuple[float | None, float | None]] = {"accuracy": (0.0, 1.0)}
_FAMILIES = {
    "unanimity": "whether {} labels of an item are all the same",
    "majority_strength": "share of the most frequent class among {} labels of an item",
}

_MOST_PRINTED = 20
"""Of more classifiers than these only the nearest are printed."""

_NAMES = (18, 10)  # Columns of the names; where they do not fit.

_OF_GROUPS = ("EL", "CL", "DL", "CE_disagreement")

_OPEN_CLASSES = 3
"""Classes of a classifier whose diagrams are in sight; the others are folded."""

_MOST_CLASSES = 30
"""Classes of a classifier that are drawn; the JSON has all."""

_MOST_DIAGRAMS = 240
"""Diagrams of classes on a page: of many classifiers each gets fewer."""

_ByClass = dict[str, dict[Any, list[Mapping[str, Any]]]]


@dataclass(frozen=True)
class Rates:
    """How often two annotators disagree on an item, and how often a classifier says they will."""

    model: str
    observed: float
    predicted: float
    n_items: int


@dataclass(frozen=True)
class Answer:
    """The classifier nearest to the labels, by EL, or by L where no item has two labels."""

    verdict: Verdict
    calibration: float | None
    dispersion: float | None
    rates: Rates | None

    @property
    def metric(self) -> str:
        """By what it is the nearest."""
        return self.verdict.block.metric

    @property
    def leader(self) -> Row:
        """The nearest."""
        return self.verdict.leader

    @property
    def parts(self) -> str:
        """How much of EL calibration could remove; "" where EL is not known."""
        value, removed, left = self.leader.value, self.calibration, self.dispersion
        if self.metric != "EL" or value is None or removed is None or left is None:
            return ""
        if value <= 0:
            return "That is too small to tell from 0: the labels show no distance."
        if removed <= 0:
            return (
                f"The labels show nothing that calibration could remove (CL {number(removed)}); "
                f"only a better classifier is nearer (DL {number(left)})."
            )
        if left <= 0:
            return f"Calibration could remove all of it (CL {number(removed)}, DL {number(left)})."
        return (
            f"Calibration could remove {number(removed)} of it (CL); {number(left)} would be left "
            "(DL), which only a better classifier removes."
        )


@dataclass(frozen=True)
class Assessed:
    """The report, with its estimates by group and metric."""

    report: Report

    @cached_property
    def _blocks(self) -> dict[tuple[str | None, str], Block]:
        metrics = dict.fromkeys(row["metric"] for row in self.report["estimates"])
        info = {
            name: {
                "description": MEANINGS.get(name, ""),
                "direction": _DIRECTION.get(name, -1),
                "bounds": _BOUNDS.get(name),
            }
            for name in metrics
        }
        shown = blocks({**self.report, "metric_info": info})
        return {(block.group, block.metric): block for block in shown}

    def block(self, metric: str, group: str | None = None) -> Block:
        """All classifiers by one metric."""
        return self._blocks[group, metric]

    def row(self, model: str, metric: str, group: str | None = None) -> Row:
        """One estimate."""
        return next(row for row in self.block(metric, group).rows if row.model == model)

    def figures(self, model: str, metric: str, group: str | None = None) -> tuple[str, str, str]:
        """Value, interval and status of one estimate, as they are written."""
        row = self.row(model, metric, group)
        return (*self.block(metric, group).figures(row), row.status)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups, all items left out."""
        return tuple(dict.fromkeys(group for group, _ in self._blocks if group is not None))

    @property
    def level(self) -> float | None:
        """Confidence level of the intervals; None where there are none."""
        return next((block.level for block in self._blocks.values()), None)

    @property
    def statistics(self) -> Sequence[str]:
        """Names of the statistics besides disagreement."""
        names: Sequence[str] = self.report["diagnostics"]["statistics"]
        return names

    @property
    def models(self) -> Sequence[str]:
        """Classifiers, the nearest to the labels first."""
        return [row.model for row in self._nearest.ranked()]

    @property
    def _nearest(self) -> Block:
        of_el = self.block("EL")
        return of_el if any(row.value is not None for row in of_el.rows) else self.block("L")

    @cached_property
    def answer(self) -> Answer | None:
        """The classifier that is named first; None where none could be judged."""
        found = verdict(self._nearest)
        if found is None:
            return None
        of_it = found.leader.model
        return Answer(
            found,
            self.row(of_it, "CL").value,
            self.row(of_it, "DL").value,
            next((rates for rates in self.rates if rates.model == of_it), None),
        )

    @cached_property
    def rates(self) -> tuple[Rates, ...]:
        """Observed and predicted disagreement, in the order of `models`; none are possible."""
        known: Mapping[str, Mapping[str, Any]] = self.report["diagnostics"]["disagreement"]
        return tuple(Rates(model, **known[model]) for model in self.models if model in known)

    @cached_property
    def negative(self) -> bool:
        """Whether a loss that is shown is below 0."""
        shown = {*LOSSES, *OF_PAIRS}
        shown |= {f"{metric}_{name}" for name in self.statistics for metric in OF_STATISTIC}
        return any(
            row.value is not None and row.value < 0
            for (_, metric), block in self._blocks.items()
            if metric in shown
            for row in block.rows
        )

    @property
    def labels(self) -> str:
        """How many labels there are, in words."""
        per_item: Mapping[str, int] = self.report["labels_per_item"]
        sizes = sorted(int(size) for size in per_item)
        each = f"{sizes[0]}" if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
        n_items: int = self.report["n_annotated"]
        labels = plural(self.report["n_labels"], "label")
        return f"{labels} of {plural(n_items, 'item')}" + (f", {each} each" if n_items > 1 else "")

    @property
    def calibration(self) -> str:
        """The calibration that was applied first; "" if none."""
        return str(self.report["diagnostics"].get("calibration") or "")


def statistic_meaning(name: str) -> str:
    """What a statistic is, in words; "" for one's own."""
    found = re.fullmatch(r"(unanimity|majority_strength)_(\d+)", name)
    return _FAMILIES[found[1]].format(found[2]) if found else ""


def render_annotations(report: Report, width: int = 80) -> str:
    """The losses of every classifier, a table each, in lines of at most `width` columns.

    `report` is the dictionary of `Assessment.to_dict`.
    """
    width = max(width, NARROWEST)
    found = Assessed(report)
    lines = [line for said in _head(found) for line in wrap(said, width)]
    lines += ["", *wrap(_answer(found.answer), width)]
    for model in found.models[:_MOST_PRINTED]:
        lines += ["", fit(clean(model), width), *_table(found, model, width)]
    if len(found.models) > _MOST_PRINTED:
        hidden = plural(len(found.models) - _MOST_PRINTED, "more classifier")
        lines += ["", *wrap(f"... {hidden}: the JSON and the HTML report have all", width)]
    for group in found.groups:
        lines += ["", *_group_table(found, group, width)]
    lines += ["", *_meanings(found, width)]
    return as_text([*lines, *warning_lines(report, width)])


def _head(found: Assessed) -> Iterator[str]:
    report = found.report
    yield f"{plural(report['n_items'], 'item')}; {found.labels}; {classes_text(report)}"
    yield made_by(report)
    yield f"Classes: {listed(report['classes'], 12)}"
    if found.calibration:
        yield f"Applied first: {found.calibration}"


def _answer(answer: Answer | None) -> str:
    """The first paragraph."""
    if answer is None:
        return "No classifier could be judged: no item has both a label and a prediction."
    leader, name = answer.leader, clean(answer.leader.model)
    value, interval = answer.verdict.block.figures(leader)
    nearest = "the label distribution" if answer.metric == "EL" else "the labels"
    distance = f"{answer.metric} {' '.join(filter(None, (value, interval)))}."
    if answer.verdict.n_ranked > 1:
        said = [f"{name} is nearest to {nearest}: {distance}"]
    else:
        said = [f"The squared distance of {name} from {nearest}: {distance}"]
    if answer.verdict.rivals:
        n = len(answer.verdict.rivals)
        overlap = "The interval of 1 other overlaps"
        if n > 1:
            overlap = f"The intervals of {plural(n, 'other')} overlap"
        said.append(f"{overlap} with its own, so the order is not settled.")
    said.append(answer.parts)
    if answer.rates is not None:
        said.append(
            f"Two annotators disagree on {share(answer.rates.observed)} of the items; {name} "
            f"predicts {share(answer.rates.predicted)}."
        )
    return " ".join(filter(None, said))


def _table(found: Assessed, model: str, width: int) -> Iterator[str]:
    """Losses of one classifier, all items."""
    metrics = [*LOSSES, *OF_PAIRS]
    metrics += [f"{metric}_{name}" for name in found.statistics for metric in OF_STATISTIC]
    cells = [["value", "" if found.level is None else f"[{percent(found.level)} interval]", ""]]
    for metric in metrics:
        *numbers, status = found.figures(model, metric)
        cells.append([*numbers, "" if status in ("ok", "undefined") else status])
    # Names of statistics can have any length.
    room = width - sum(2 + max(map(len, column)) for column in zip(*cells, strict=True)) - 2
    names = ["", *short_names(metrics, room).values()]
    rows = [[name, *rest] for name, rest in zip(names, cells, strict=True)]
    yield from aligned(rows, (False, True, False, False))
    for rates in found.rates:
        if rates.model == model:
            yield (
                f"  two annotators disagree: observed {share(rates.observed)}, predicted "
                f"{share(rates.predicted)}"
            )


def _group_table(found: Assessed, group: str, width: int) -> Iterator[str]:
    """A row per classifier of one group."""
    heading = fit(clean(group), width)
    yield heading
    yield "=" * cell_width(heading)
    for many in range(len(_OF_GROUPS), 0, -1):
        for room in _NAMES:
            lines = list(_group_lines(found, group, _OF_GROUPS[:many], room))
            if max(map(cell_width, lines)) <= width:
                yield from lines
                return


def _group_lines(found: Assessed, group: str, metrics: Sequence[str], room: int) -> Iterator[str]:
    models = found.models[:_MOST_PRINTED]
    rows = [["", "EL", "", *metrics[1:]]]
    for model, name in short_names(models, room).items():
        row = [name]
        for metric in metrics:
            value, interval, _ = found.figures(model, metric, group)
            row += [value, interval] if metric == "EL" else [value]
        rows.append(row)
    yield from aligned(rows, (False, True, False, *(True for _ in metrics[1:])))


def _meanings(found: Assessed, width: int) -> Iterator[str]:
    for metric in (*LOSSES, *OF_PAIRS):
        yield from wrap(f"{metric}: {MEANINGS[metric]}", width, "  ")
    for name in found.statistics:
        meaning = statistic_meaning(name)
        if meaning:
            yield from wrap(f"{name}: {meaning}", width, "  ")
    pairs = found.report["diagnostics"]["n_items_of_two_labels"]
    if pairs:
        rest = f"Disagreement and EL are of the {plural(pairs, 'item')} with two labels or more"
        yield from wrap(rest, width, "  ")
    if found.negative:
        yield from wrap(f"Below 0: {UNBIASED}", width, "  ")


@dataclass(frozen=True)
class Bar:
    """The losses of the items of a bin, one on the other; percent from the lower left corner.

    A debiased loss below 0 is drawn as 0, and said as it is.
    """

    left: float
    width: float
    calibration: float
    dispersion: float
    source: Mapping[str, Any]


@dataclass(frozen=True)
class Diagram:
    """Reliability of one class, and below it where the epistemic loss lies."""

    name: Any
    reliability: Profile
    bars: tuple[Bar, ...]
    top: float


@dataclass(frozen=True)
class Portrait:
    """What is drawn of one classifier."""

    model: str
    pairs: Profile | None
    first: tuple[Diagram, ...]
    folded: tuple[Diagram, ...]
    hidden: int


def render_annotations_html(report: Report, *, fragment: bool = False) -> str:
    """The report as a page of HTML that needs no other file, no network and no script.

    `report` is the dictionary of `Assessment.to_dict`. A fragment shows no diagrams.
    """
    found = Assessed(report)
    tables = {"losses": list(LOSSES), "pairs": list(OF_PAIRS)}
    nearest = None if found.answer is None else found.answer.verdict.block
    return render(
        "annotations.html.j2",
        ("annotations.css",) if fragment else None,
        report=report,
        found=found,
        answer=found.answer,
        # A forest is one of intervals.
        forest=nearest if found.level is not None else None,
        axis=None if nearest is None else common_axis([nearest]),
        tables=tables,
        statistics=[
            (name, statistic_meaning(name), [f"{metric}_{name}" for metric in OF_STATISTIC])
            for name in found.statistics
        ],
        portraits=[] if fragment else _portraits(found),
        meanings=MEANINGS,
        unbiased=UNBIASED if found.negative else "",
        figures_of=found.figures,
    )


def _portraits(found: Assessed) -> list[Portrait]:
    report, models = found.report, found.models
    by_class = {name: _by_class(report[name]) for name in ("reliability", "dispersion")}
    pairs: dict[str, list[Mapping[str, Any]]] = {}
    for row in report["disagreement_reliability"]:
        pairs.setdefault(row["model"], []).append(row)
    most = max(_OPEN_CLASSES, min(_MOST_CLASSES, _MOST_DIAGRAMS // max(len(models), 1)))
    out = []
    for model in models:
        maps = by_class["dispersion"].get(model)
        if not maps:
            continue
        names = _worst_first(maps, len(report["classes"]))
        # All classes of a classifier share a scale, so that they can be compared.
        top = max((_height(row) for rows in maps.values() for row in rows), default=0.0)
        shown = tuple(
            _diagram(model, name, by_class["reliability"][model][name], maps[name], top)
            for name in names[:most]
        )
        out.append(
            Portrait(
                model,
                _reliability(model, "disagreement", pairs[model]) if model in pairs else None,
                shown[:_OPEN_CLASSES],
                shown[_OPEN_CLASSES:],
                len(names) - len(shown),
            )
        )
    return out


def _by_class(rows: Sequence[Mapping[str, Any]]) -> _ByClass:
    out: _ByClass = {}
    for row in rows:
        out.setdefault(row["model"], {}).setdefault(row["class"], []).append(row)
    return out


def _worst_first(maps: Mapping[Any, Sequence[Mapping[str, Any]]], n_classes: int) -> list[Any]:
    """Classes by their part of the epistemic loss; of two, which mirror each other, the last."""
    names = list(maps)
    if n_classes == 2:
        return names[-1:]
    return sorted(names, key=lambda name: -sum(row["EL_plugin"] or 0.0 for row in maps[name]))


def _diagram(
    model: str,
    name: Any,
    reliability: Sequence[Mapping[str, Any]],
    losses: Sequence[Mapping[str, Any]],
    top: float,
) -> Diagram:
    scale = 100 / top if top > 0 else 0.0
    bars = tuple(
        Bar(
            100 * row["low"],
            100 * (row["high"] - row["low"]),
            scale * _above_zero(row["CL"]),
            scale * _above_zero(row["DL"]),
            row,
        )
        for row in losses
    )
    return Diagram(name, _reliability(model, f"P({name})", reliability), bars, top)


def _height(row: Mapping[str, Any]) -> float:
    return _above_zero(row["CL"]) + _above_zero(row["DL"])


def _above_zero(loss: float | None) -> float:
    return max(loss or 0.0, 0.0)


def _reliability(model: str, kind: str, rows: Sequence[Mapping[str, Any]]) -> Profile:
    """A reliability diagram as the plots of scores draw theirs."""
    bins = [
        {
            "from": row["low"],
            "to": row["high"],
            "predicted": row["mean_probability"],
            "observed": row["label_frequency"],
            "low": row["frequency_low"],
            "high": row["frequency_high"],
            "weight": row["share"],
        }
        for row in rows
    ]
    n_items = sum(row["n_items"] for row in rows)
    reliability = {"kind": kind, "bins": bins}
    return profile({"model": model, "n_items": n_items, "missing": 0, "reliability": reliability})
