"""Label histograms: how near classifiers are to what annotators say."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

from fewlabels.errors import listed
from fewlabels.report import agreement
from fewlabels.report.axis import reliability
from fewlabels.report.blocks import (
    Block,
    Report,
    Row,
    Verdict,
    blocks,
    common_axis,
    grouped,
    verdict,
)
from fewlabels.report.document import (
    Document,
    Drawing,
    Fold,
    Forest,
    Group,
    Legend,
    Node,
    Para,
    Section,
    Table,
    name,
    sentence,
    strong,
)
from fewlabels.report.words import (
    capital,
    enumerated,
    made_by,
    percent,
    plural,
    share,
)

LOSSES = {
    "accuracy": (
        "right on the most frequent label", "share of items on which the classifier's likeliest "
        "class is the annotators' most frequent label",
    ),
    "L": (
        "distance from single labels", "squared distance of the probabilities from single labels; "
        "as annotators disagree, even the best classifier does not reach 0",
    ),
    "EL": (
        "distance from their shares", "epistemic loss: squared distance of the probabilities from "
        "the shares of the labels that annotators give. What few labels add by chance is taken "
        "off; 0 is a perfect match",
    ),
    "CL": (
        "of it by calibration", "calibration loss: the part of EL that calibration could remove",
    ),
    "DL": (
        "of it by the classifier", "dispersion loss: the rest of EL, for a better classifier",
    ),
    "CE": ("calibration error", "the square root of CL, so in units of probability"),
}  # fmt: skip
"""What a column says, and what each loss is."""

_OF_STATISTIC = ("L", "CL", "CE", "EL")
"""What is shown of a statistic of labels, where it is known; its name follows an underscore."""

_ORDERING = {
    "EL": ("the shares of the annotators' labels", "0 is a perfect match"),
    "L": ("single labels", "smaller is better"),
}
"""What orders the classifiers: from what a distance by it is, and which values are good."""

_OF_GROUPS = {"EL": "EL", "CL": "CL", "DL": "DL", "CE_disagreement": "CE of pairs", "CE": "CE"}
_FAMILIES = {
    "disagreement": "how often annotators disagree",
    "unanimity": "whether {} labels of an item are all the same",
    "majority_strength": "share of the most frequent class among {} labels of an item",
}

_MOST_PRINTED = 20
"""With more classifiers, only the nearest are printed."""

_BELOW = (
    "A loss below 0 cannot be told from 0. Few labels add to a loss by chance, and the estimate "
    "takes that off again (it is unbiased). So a true 0 comes out below 0 about as often as above."
)

Bin = Mapping[str, Any]

_OPEN_CLASSES = 3
"""Classes of a classifier whose diagrams are in sight; others are folded."""

_DRAWN = ((40, 30), (8, 20), (4, 10), (2, 5))
LEVELS = len(_DRAWN)
"""Classifiers and classes whose diagrams a page has, fewer at each level; the JSON has all."""


class Assessed(NamedTuple):
    """The report, its estimates by group, metric and classifier, and who comes nearest to labels.

    `models` are in this order, which is by EL, or by L if no item has two labels.
    """

    report: Report
    rows: Mapping[tuple[str | None, str, str], tuple[Block, Row]]
    models: Sequence[str]
    best: Verdict | None

    @classmethod
    def from_report(cls, report: Report) -> Assessed:
        """All estimates, read once."""
        info: dict[str, Any] = {row["metric"]: {"direction": -1} for row in report["estimates"]}
        info["accuracy"] = {"direction": 1, "bounds": (0.0, 1.0)}
        shown = blocks({**report, "metric_info": info})
        ordering = {block.metric: verdict(block) for block in shown if block.group is None}
        best = ordering.get("EL") or ordering.get("L")
        models = [row.model for row in best.block.ranked()] if best else report["models"]
        rows = {(b.group, b.metric, row.model): (b, row) for b in shown for row in b.rows}
        return cls(report, rows, models, best)

    @property
    def level(self) -> str:
        """What is said of the intervals."""
        level = next((row["confidence_level"] for row in self.report["estimates"]), None)
        return "" if level is None else f"{percent(level)} intervals"

    def table(
        self, caption: str, metrics: Mapping[str, str], groups: Sequence[str | None] = (None,),
        rates: Mapping[str, Any] | None = None, **more: Any,
    ) -> Table:  # fmt: skip
        """A row for each group and classifier, and a column for each metric, by its heading."""
        rows, chips, seen = [], [], ("observed", "predicted") if rates else ()
        for group, model in itertools.product(groups, self.models):
            found = [self.rows[group, metric, model] for metric in metrics]
            known = (rates or {}).get(model)
            rows.append([
                *filter(None, [group]), model, *(share(known[k]) if known else "-" for k in seen),
                *(" ".join(filter(None, block.figures(row))) for block, row in found),
            ])  # fmt: skip
            statuses = (row.status for _, row in found)
            chips.append(next((s for s in statuses if s not in ("ok", "undefined")), ""))
        names = ["group", "classifier"][groups[0] is None :]
        return Table([*names, *seen, *metrics.values()], rows, caption, "l" * len(names) + "r",
                     names=len(names), chips=chips, style="losses", **more)  # fmt: skip

    def losses(self, of: Iterable[str], statistic: str = "", **more: Any) -> Table:
        """The losses of classes, or of another statistic; of many classifiers a text has few."""
        metrics = {f"{one}{statistic}": f"{LOSSES[one][0]} ({one})" for one in of}
        known = {metric for _, metric, _ in self.rows}
        heads = {metric: head for metric, head in metrics.items() if metric in known}
        caption = f"Losses of {statistic[1:] or 'the classes'}"
        return self.table(caption, heads, whole=True, most=_MOST_PRINTED, **more)


def _removable(found: Assessed, leader: Row) -> str:
    """How much of the first classifier's EL calibration could remove; "" if that is unknown."""
    if leader.status == "contradicted":
        return (
            "No squared distance is below 0, so the labels of an item are not independent: "
            "`--panel fixed` takes the labels of these annotators for the distribution."
        )
    if (leader.value or 0.0) <= 0:
        return "That cannot be told from 0: the labels show no distance."
    block, _ = found.rows[None, "EL", leader.model]
    losses = [found.rows[None, metric, leader.model][1].value for metric in ("CL", "DL")]
    removed, left = (block.write(max(loss or 0.0, 0.0)) for loss in losses)
    if None in losses:
        return ""
    return (
        f"Calibration could remove {removed} of it (CL); the other {left} (DL) takes a better "
        "classifier."
    )


def _answer(found: Assessed) -> Iterator[str]:
    """Who comes nearest to the labels, how near, and what could be done about the rest."""
    best = found.best
    if best is None:
        yield "No classifier could be judged: no item has both a label and a prediction."
        return
    leader = whose = name(best.leader.model)
    if best.n_ranked > 1:
        many, whose = plural(best.n_ranked, "classifier"), "its probabilities"
        yield f"Of {many}, {leader} comes nearest to what annotators say."
    if best.rivals:
        rivals = enumerated([name(row.model) for row in best.rivals], 3)
        yield f"The order is not settled: its interval overlaps with that of {rivals}."
    metric, figures = best.block.metric, best.block.figures(best.leader)
    distance = " ".join(filter(None, [strong(figures[0]), figures[1]]))
    what, zero = _ORDERING[metric]
    yield f"The squared distance of {whose} from {what} is {distance} ({metric}; {zero})."
    if metric == "EL":
        yield _removable(found, best.leader)
    if rates := found.report["diagnostics"]["disagreement"].get(best.leader.model):
        observed, predicted = strong(share(rates["observed"])), strong(share(rates["predicted"]))
        yield f"Two annotators disagree on {observed} of the items; {leader} predicts {predicted}."


def _losses(found: Assessed) -> Iterator[Section]:
    """The losses of all classifiers: of classes, of disagreement, of other statistics."""
    diagnostics, body, losses = found.report["diagnostics"], list[Node](), list[Node]()
    if found.best is not None:
        block, rows = found.best.block, found.best.block.ranked()
        body.append(Forest(block, rows, common_axis([block]), f"Classifiers by {block.metric}"))
    if any(
        (row.value or 0.0) < 0 and row.status != "contradicted" for _, row in found.rows.values()
    ):
        losses.append(Para(_BELOW, "soft"))
    losses.append(found.losses(LOSSES))
    body.append(Section("All losses of the classes", losses, found.level))
    yield Section("How far from what annotators say", body)
    for statistic in ("disagreement", *diagnostics["statistics"]):
        rates = diagnostics["disagreement"] if statistic == "disagreement" else None
        kind, _, n = (statistic, "", "") if rates is not None else statistic.rpartition("_")
        losses = [
            Para("Losses of what each classifier expects of it; in the JSON their names end in "
                 f"{name(f'_{statistic}')}.", "soft"),
            found.losses(_OF_STATISTIC, f"_{statistic}", rates=rates),
        ]  # fmt: skip
        if rates == {}:
            losses = [Para("No item has two labels, so nobody can say. Ask a second annotator "
                           "about some items.")]  # fmt: skip
        what = _FAMILIES[kind].format(n) if kind in _FAMILIES else name(statistic)
        yield Section(capital(what), losses, "" if rates == {} else found.level)


def document(report: Report, *, level: int = 0) -> Document:
    """All that is said of `Assessment.to_dict`."""
    agreed, diagnostics = report["agreement"], report["diagnostics"]
    if not report["models"]:
        only = "There are no classifiers with probabilities to judge, only annotators."
        people = agreement.document(agreed)
        return replace(people, report=report, basis=[only], foot=[made_by(report)])
    found = Assessed.from_report(report)
    sizes = sorted(map(int, report["labels_per_item"]))
    each = f"{sizes[0]}" if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
    groups = list(dict.fromkeys(group for group, *_ in found.rows if group is not None))
    terms = {one: sentence(meaning) for one, (_, meaning) in LOSSES.items()}
    terms |= agreement.terms(agreed) if agreed else {}
    terms["Labels"] = (
        "What annotators say of an item; several may differ, and none of them is called the truth. "
        "A known label of an item without counts is one."
    )
    applied, panel = (diagnostics.get(key) for key in ("calibration", "panel"))
    return Document(
        "How well do the classifiers predict what annotators say?",
        report,
        {
            "Items": report["n_items"], "With labels": report["n_annotated"],
            "With two or more": diagnostics["n_items_of_two_labels"],
            "Labels": report["n_labels"], "Classifiers": len(report["models"]),
            "Labels of an item": each, "Classes": name(listed(report["classes"], 12)),
        },
        answer=[" ".join(filter(None, _answer(found)))],
        basis=[
            *([f"Applied first: {name(applied)}."] if applied else []),
            *([f"Annotators: a fixed panel of {panel}."] if panel else []),
        ],
        body=[
            *_losses(found),
            *([Section("How far annotators agree", [
                Para(" ".join(agreement.sentences(agreed)), "soft"), *agreement.tables(agreed),
            ])] if agreed else []),
            *([Section("By group", [found.table("Losses by group", _OF_GROUPS, groups)])]
              if groups else []),
        ],
        more=[*_diagrams(found, *_DRAWN[level])],
        terms=terms,
        explained=True,
        foot=[made_by(report)],
    )  # fmt: skip


# --- diagrams of a page ---------------------------------------------------------------------------


def _diagrams(found: Assessed, most: int, classes: int) -> Iterator[Section]:
    """Reliability of the first classifiers, and where their loss lies."""
    kinds = ("dispersion", "reliability", "disagreement_reliability")
    bins = [grouped(found.report[kind], itemgetter("model")) for kind in kinds]
    drawn = [model for model in found.models if model in bins[0]]
    folds: list[Node] = []
    for k, model in enumerate(drawn[:most]):
        portrait = _portrait(model, [of.get(model, []) for of in bins], classes)
        folds.append(Fold(name(model), [Group("pair", [*portrait])], style="profile",
                          open=k == 0 or len(drawn[:most]) <= 2))  # fmt: skip
    if len(drawn) > most:
        undrawn = plural(len(drawn) - most, "more classifier")
        folds.append(Para(f"Not drawn, for the page to stay short: {undrawn}.", "soft"))
    about = (
        "A reliability diagram shows how often annotators choose a class, or disagree, at each "
        f"predicted probability{found.level and f', shaded with {found.level}'}. Larger points "
        "hold more items; on the diagonal the classifier is calibrated. Below it, bars show how "
        "much the items at each probability add to the loss."
    )
    legend = Legend([
        ("diagonal", "perfect calibration"),
        ("calibration", "calibration could remove it (CL)"),
        ("dispersion", "takes a better classifier (DL)"),
    ])  # fmt: skip
    if drawn:
        yield Section("Reliability and where the loss lies",
                      [Para(about, "soft"), legend, Group("stack", folds)], on="page")  # fmt: skip


def _portrait(model: str, bins: Sequence[Sequence[Bin]], most: int) -> Iterator[Node]:
    """What is drawn of a classifier: disagreement, the first classes, the folded ones."""
    maps, curves = (grouped(rows, itemgetter("class")) for rows in bins[:2])
    # By their part of the epistemic loss; of two, which mirror each other, the last.
    classes = sorted(maps, key=lambda one: -sum(row["EL_plugin"] or 0.0 for row in maps[one]))
    classes = [*maps][-1:] if len(maps) == 2 else classes

    def loss(row: Bin, of: str) -> float:
        """A debiased loss below 0 is drawn as 0, and said as it is."""
        return max(row[of] or 0.0, 0.0)

    # All classes of a classifier share a scale, so that they can be compared.
    top = max(loss(row, "CL") + loss(row, "DL") for rows in maps.values() for row in rows)

    def diagrams(one: Any) -> Group:
        # In percent from the lower left corner, one loss on the other.
        bars = [
            {
                "left": 100 * row["low"], "width": 100 * (row["high"] - row["low"]), "source": row,
                "calibration": 100 * loss(row, "CL") / (top or 1.0),
                "dispersion": 100 * loss(row, "DL") / (top or 1.0),
            }
            for row in maps[one]
        ]  # fmt: skip
        loss_map = Drawing("loss_map", {"name": one, "bars": bars, "top": top}, model)
        return Group("class", [_reliability(model, f"P({one})", curves[one]), loss_map])

    if bins[2]:
        yield Group("class", [_reliability(model, "disagreement", bins[2])])
    yield from map(diagrams, classes[:_OPEN_CLASSES])
    if folded := classes[_OPEN_CLASSES:most]:
        more = plural(len(folded), "more class", "more classes")
        yield Fold(more, [Group("pair", [*map(diagrams, folded)])], "with smaller losses",
                   printed=False)  # fmt: skip
    if hidden := len(classes[most:]):
        more = plural(hidden, "further class", "further classes")
        yield Para(f"{more}, with the smallest losses, in the JSON", "soft")


_OF_BINS = {
    "low": "from", "high": "to", "mean_probability": "predicted", "label_frequency": "observed",
    "frequency_low": "low", "frequency_high": "high", "share": "weight",
}  # fmt: skip
"""Names of the numbers of a bin, here and where scores are plotted."""


def _reliability(model: str, kind: str, rows: Sequence[Bin]) -> Drawing:
    """A reliability diagram as the plots of scores draw theirs."""
    bins = [{there: row[here] for here, there in _OF_BINS.items()} for row in rows]
    return Drawing("reliability", reliability(model, kind, bins))
