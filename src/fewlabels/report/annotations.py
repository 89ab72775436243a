"""Label histograms as text and as a page: how near classifiers are to what annotators say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fewlabels.errors import listed
from fewlabels.report.agreement import (
    COEFFICIENTS,
    Agreed,
    agreement_lines,
    agreement_meanings,
)
from fewlabels.report.axis import Profile, profile
from fewlabels.report.blocks import Block, Report, Row, Verdict, blocks, common_axis, verdict
from fewlabels.report.html import render, within_budget
from fewlabels.report.words import (
    NARROWEST,
    as_text,
    cell_width,
    classes_text,
    escape_control,
    fit,
    fitted,
    made_by,
    percent,
    plural,
    share,
    warning_lines,
    wrap,
)

LOSSES = ("accuracy", "L", "EL", "CL", "DL", "CE")
"""What is shown of the classes, in this order."""

OF_PAIRS = ("L_disagreement", "CL_disagreement", "CE_disagreement")
"""What is shown of the disagreement between two annotators."""

OF_STATISTIC = ("L", "CL", "CE", "EL")
"""What is shown of any other statistic of labels; its name follows an underscore."""

MEANINGS = {
    "accuracy": "share of items on which the classifier's likeliest class is the annotators' most "
    "frequent label",
    "L": "squared distance of the probabilities from single labels; as annotators disagree, even "
    "the best classifier does not reach 0",
    "EL": "epistemic loss: squared distance of the probabilities from the shares of the labels "
    "that annotators give; 0 is a perfect match",
    "CL": "calibration loss: the part of EL that calibration could remove",
    "DL": "dispersion loss: the rest of EL, which takes a better classifier",
    "CE": "calibration error: the square root of CL, so in units of probability",
    "L_disagreement": "squared error of the predicted probability that two annotators disagree",
    "CL_disagreement": "the part of it that calibration could remove",
    "CE_disagreement": "the square root of that: how far off the predicted disagreement is",
}
"""What each loss is, in words."""

HEADINGS = {
    "accuracy": "Right on the most frequent label",
    "L": "Distance from single labels",
    "EL": "Distance from their shares",
    "CL": "of it by calibration",
    "DL": "of it by the classifier",
    "CE": "Calibration error",
    "L_disagreement": "Error of the prediction",
    "CL_disagreement": "of it by calibration",
    "CE_disagreement": "Calibration error",
}
"""What a column of a page says, above the symbol."""

UNBIASED = (
    "a loss below 0 cannot be told from 0; with few labels chance adds to a loss, and the estimate "
    "takes that off again (it is unbiased), so a true 0 comes out below 0 about as often as above"
)

_DIRECTION = {"accuracy": 1}
_BOUNDS: dict[str, tuple[float | None, float | None]] = {"accuracy": (0.0, 1.0)}
_FAMILIES = {
    "unanimity": "whether {} labels of an item are all the same",
    "majority_strength": "share of the most frequent class among {} labels of an item",
}

_MOST_PRINTED = 20
"""With more classifiers, only the nearest are printed."""

_OF_GROUPS = ("EL", "CL", "DL", "CE_disagreement")

_OPEN_CLASSES = 3
"""Classes of a classifier whose diagrams are visible; the others are folded."""

_MOST_CLASSES = 30
"""Classes of a classifier that are drawn; the JSON has all."""

_MOST_DIAGRAMS = 240
"""Diagrams of classes on a page: with many classifiers each gets fewer."""


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

    def row(self, model: str, metric: str, group: str | None = None) -> Row:
        """One estimate."""
        return next(row for row in self._blocks[group, metric].rows if row.model == model)

    def figures(self, model: str, metric: str, group: str | None = None) -> tuple[str, str, str]:
        """Value, interval and status of one estimate, as they are written."""
        row = self.row(model, metric, group)
        return (*self._blocks[group, metric].figures(row), row.status)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups, all items left out."""
        return tuple(dict.fromkeys(group for group, _ in self._blocks if group is not None))

    @property
    def level(self) -> float | None:
        """Confidence level of the intervals; None where there are none."""
        return next((block.level for block in self._blocks.values()), None)

    @property
    def statistics(self) -> dict[str, list[str]]:
        """Statistics besides disagreement, with the names of their losses."""
        names: Sequence[str] = self.report["diagnostics"]["statistics"]
        return {name: [f"{metric}_{name}" for metric in OF_STATISTIC] for name in names}

    @cached_property
    def nearest(self) -> Block:
        """Metric that orders the classifiers: EL, or L if no item has two labels."""
        block = self._blocks[None, "EL"]
        defined = any(row.value is not None for row in block.rows)
        return block if defined else self._blocks[None, "L"]

    @property
    def models(self) -> Sequence[str]:
        """Classifiers, the nearest to the labels first."""
        return [row.model for row in self.nearest.ranked()] if self.report["models"] else []

    @cached_property
    def answer(self) -> Verdict | None:
        """The classifier named first; None if none could be assessed."""
        return verdict(self.nearest) if self.report["models"] else None

    @cached_property
    def agreed(self) -> Agreed | None:
        """How far annotators agree among themselves; None where that is not known."""
        agreement = self.report.get("agreement")
        return None if agreement is None else Agreed(agreement)

    @property
    def no_answer(self) -> str:
        """Why no classifier is named first."""
        if not self.report["models"]:
            return "There are no classifiers with probabilities to judge, only annotators."
        return "No classifier could be judged: no item has both a label and a prediction."

    @property
    def parts(self) -> str:
        """How much of the first classifier's EL calibration could remove; "" if EL is unknown."""
        if self.answer is None:
            return ""
        model, value = self.answer.leader.model, self.answer.leader.value
        removed, left = (self.row(model, metric).value for metric in ("CL", "DL"))
        if self.nearest.metric != "EL" or value is None or removed is None or left is None:
            return ""
        write = self.nearest.write
        if self.answer.leader.status == "contradicted":
            return (
                "No squared distance is below 0, so the labels of an item are not independent: "
                "--panel fixed takes the labels of these annotators for the distribution."
            )
        if value <= 0:
            return (
                "That cannot be told from 0: the labels show no distance. (The estimate is "
                "unbiased, so a true 0 comes out below 0 about as often as above.)"
            )
        if removed <= 0:
            return (
                "The labels show nothing that calibration could remove; all of it takes a better "
                f"classifier (DL {write(left)})."
            )
        if left <= 0:
            return f"Calibration could remove all of it (CL {write(removed)})."
        return (
            f"Calibration could remove {write(removed)} of it (CL); the other {write(left)} (DL) "
            "takes a better classifier."
        )

    @property
    def rates(self) -> Mapping[str, Mapping[str, Any]]:
        """How often two annotators disagree, observed and predicted; of none if nobody does."""
        rates: Mapping[str, Mapping[str, Any]] = self.report["diagnostics"]["disagreement"]
        return rates

    @cached_property
    def negative(self) -> bool:
        """Whether a loss that is shown is below 0."""
        shown = {*LOSSES, *OF_PAIRS}.union(*self.statistics.values())
        return any(
            row.value is not None and row.value < 0 and row.status != "contradicted"
            for (_, metric), block in self._blocks.items()
            if metric in shown
            for row in block.rows
        )

    @property
    def panel(self) -> str:
        """Whose labels are the distribution, if not those of many annotators."""
        size = self.report["diagnostics"].get("panel")
        return f"Annotators: a fixed panel of {size}" if size else ""

    @property
    def labels(self) -> str:
        """How many labels there are, in words."""
        per_item: Mapping[str, int] = self.report["labels_per_item"]
        sizes = sorted(int(size) for size in per_item)
        each = f"{sizes[0]}" if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
        n_items: int = self.report["n_annotated"]
        labels = plural(self.report["n_labels"], "label")
        return f"{labels} of {plural(n_items, 'item')}" + (f", {each} each" if n_items > 1 else "")


def statistic_meaning(name: str) -> str:
    """A statistic in words; "" for a user's own."""
    match = re.fullmatch(r"(unanimity|majority_strength)_(\d+)", name)
    return _FAMILIES[match[1]].format(match[2]) if match else ""


def render_annotations(report: Report, width: int = 80) -> str:
    """The losses of every classifier, a table each, in lines of at most `width` columns.

    `report` is the dictionary of `Assessment.to_dict`.
    """
    width = max(width, NARROWEST)
    assessed = Assessed(report)
    applied = report["diagnostics"].get("calibration")
    head = [
        f"{plural(report['n_items'], 'item')}; {assessed.labels}; {classes_text(report)}",
        made_by(report),
        f"Classes: {listed(report['classes'], 12)}",
        *([f"Applied first: {applied}"] if applied else []),
        *([assessed.panel] if assessed.panel else []),
    ]
    lines = [line for sentence in head for line in wrap(sentence, width)]
    lines += ["", *wrap(" ".join(_answer(assessed)), width)]
    metrics = [*LOSSES, *OF_PAIRS, *(m for names in assessed.statistics.values() for m in names)]
    models = assessed.models[:_MOST_PRINTED]
    for model in models:
        level = "" if assessed.level is None else f"[{percent(assessed.level)} interval]"
        rows = [["", "value", level, ""]]
        for metric in metrics:
            *numbers, status = assessed.figures(model, metric)
            rows.append([metric, *numbers, "" if status in ("ok", "undefined") else status])
        lines += ["", fit(escape_control(model), width), *fitted(rows, "lrl", width, most=width)]
        if model in assessed.rates:
            rates = assessed.rates[model]
            lines.append(
                f"  two annotators disagree: observed {share(rates['observed'])}, predicted "
                f"{share(rates['predicted'])}"
            )
    if len(assessed.models) > _MOST_PRINTED:
        hidden = plural(len(assessed.models) - _MOST_PRINTED, "more classifier")
        lines += ["", *wrap(f"... {hidden}: the JSON and the HTML report have all", width)]
    for group in assessed.groups:
        heading = fit(escape_control(group), width)
        rows = [["", "EL", "", *_OF_GROUPS[1:]]]
        for model in models:
            first, *rest = (assessed.figures(model, metric, group) for metric in _OF_GROUPS)
            rows.append([model, *first[:2], *(value for value, _, _ in rest)])
        lines += ["", heading, "=" * cell_width(heading), *fitted(rows, "lrlr", width)]
    if assessed.agreed is not None:
        heading = "How far annotators agree"
        lines += ["", heading, "=" * len(heading), *agreement_lines(assessed.agreed, width)]
    lines.append("")
    for sentence in _meanings(assessed):
        lines += wrap(sentence, width, "  ")
    return as_text([*lines, *warning_lines(report, width)])


def _answer(assessed: Assessed) -> Iterator[str]:
    """The first paragraph."""
    if assessed.answer is None:
        yield assessed.no_answer
        return
    leader, block = assessed.answer.leader, assessed.nearest
    name = escape_control(leader.model)
    figures = " ".join(filter(None, block.figures(leader)))
    what = "the shares of the annotators' labels" if block.metric == "EL" else "single labels"
    if assessed.answer.n_ranked > 1:
        yield f"{name} comes nearest to what annotators say."
    yield (
        f"The squared distance of its probabilities from {what} is {figures} "
        f"({block.metric}; 0 is a perfect match)."
        if assessed.answer.n_ranked > 1
        else f"The squared distance of {name} from {what} is {figures} ({block.metric}; 0 is a "
        "perfect match)."
    )
    n = len(assessed.answer.rivals)
    if n:
        overlap = "interval of 1 other overlaps"
        if n > 1:
            overlap = f"intervals of {plural(n, 'other')} overlap"
        yield f"The {overlap} with its own, so the order is not settled."
    if assessed.parts:
        yield assessed.parts
    if leader.model in assessed.rates:
        rates = assessed.rates[leader.model]
        yield (
            f"Two annotators disagree on {share(rates['observed'])} of the items; {name} predicts "
            f"{share(rates['predicted'])}."
        )


def _meanings(assessed: Assessed) -> Iterator[str]:
    """What the losses and the coefficients of agreement are, a sentence each."""
    if assessed.models:
        yield from (f"{metric}: {MEANINGS[metric]}" for metric in (*LOSSES, *OF_PAIRS))
    for name in assessed.statistics:
        if statistic_meaning(name):
            yield f"{name}: {statistic_meaning(name)}"
    pairs = assessed.report["diagnostics"]["n_items_of_two_labels"]
    if pairs and assessed.models:
        yield f"Disagreement and EL are of the {plural(pairs, 'item')} with two labels or more"
    if assessed.negative:
        yield f"Below 0: {UNBIASED}"
    if assessed.agreed is not None:
        yield from agreement_meanings(assessed.agreed)


def render_annotations_html(report: Report, *, fragment: bool = False) -> str:
    """The report, a dictionary of `Assessment.to_dict`, as a page; a fragment has no diagrams."""
    assessed = Assessed(report)
    portraits = [] if fragment else _portraits(assessed)
    limits = (len(portraits), 8, 4, 2)
    return within_budget(
        lambda level: _page(assessed, portraits, limits[level], fragment), len(limits)
    )


def _page(
    assessed: Assessed, portraits: Sequence[Mapping[str, Any]], most: int, fragment: bool
) -> str:
    """The page with diagrams of the first classifiers."""
    report = assessed.report
    return render(
        "annotations.html.j2",
        ("annotations.css",) if fragment else None,
        report=report,
        found=assessed,
        answer=assessed.answer,
        metric=assessed.nearest.metric if assessed.answer else "L",
        # A forest is one of intervals.
        forest=assessed.nearest if assessed.answer and assessed.level is not None else None,
        axis=common_axis([assessed.nearest]) if assessed.models else None,
        tables={"losses": list(LOSSES), "pairs": list(OF_PAIRS)},
        meaning_of=statistic_meaning,
        portraits=portraits[:most],
        undrawn=max(len(portraits) - most, 0),
        meanings=MEANINGS,
        headings=HEADINGS,
        coefficients=COEFFICIENTS,
        unbiased=UNBIASED if assessed.negative else "",
    )


def _portraits(assessed: Assessed) -> list[dict[str, Any]]:
    """What is drawn of each classifier: disagreement, the first classes, the folded ones."""
    report, models = assessed.report, assessed.models
    by_class: dict[tuple[str, str], dict[Any, list[Mapping[str, Any]]]] = {}
    for kind in ("reliability", "dispersion", "disagreement_reliability"):
        for row in report[kind]:
            rows = by_class.setdefault((kind, row["model"]), {})
            rows.setdefault(row.get("class"), []).append(row)
    most = max(_OPEN_CLASSES, min(_MOST_CLASSES, _MOST_DIAGRAMS // max(len(models), 1)))
    out = []
    for model in models:
        maps = by_class.get(("dispersion", model))
        if not maps:
            continue
        # By their part of the epistemic loss; of two, which mirror each other, the last.
        names = sorted(maps, key=lambda name: -sum(row["EL_plugin"] or 0.0 for row in maps[name]))
        if len(report["classes"]) == 2:
            names = list(maps)[-1:]
        # All classes of a classifier share a scale, so that they can be compared. A debiased loss
        # below 0 is drawn as 0, and said as it is.
        drawn = {
            name: [(max(row["CL"] or 0.0, 0.0), max(row["DL"] or 0.0, 0.0), row) for row in rows]
            for name, rows in maps.items()
        }
        top = max((cl + dl for bars in drawn.values() for cl, dl, _ in bars), default=0.0)
        scale = 100 / top if top > 0 else 0.0
        shown = [
            {
                "name": name,
                "reliability": _reliability(
                    model, f"P({name})", by_class["reliability", model][name]
                ),
                # In percent from the lower left corner, one loss on the other.
                "bars": [
                    {
                        "left": 100 * row["low"],
                        "width": 100 * (row["high"] - row["low"]),
                        "calibration": scale * cl,
                        "dispersion": scale * dl,
                        "source": row,
                    }
                    for cl, dl, row in drawn[name]
                ],
                "top": top,
            }
            for name in names[:most]
        ]
        pairs = by_class.get(("disagreement_reliability", model), {}).get(None)
        out.append(
            {
                "model": model,
                "pairs": _reliability(model, "disagreement", pairs) if pairs else None,
                "first": shown[:_OPEN_CLASSES],
                "folded": shown[_OPEN_CLASSES:],
                "hidden": len(names) - len(shown),
            }
        )
    return out


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
