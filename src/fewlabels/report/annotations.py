"""Label histograms: how near classifiers are to what annotators say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fewlabels.errors import listed
from fewlabels.report import agreement
from fewlabels.report.axis import profile
from fewlabels.report.blocks import Block, Report, Verdict, blocks, common_axis, verdict
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
    Terms,
    name,
    sentence,
    strong,
)
from fewlabels.report.words import capital, classes_text, made_by, percent, plural, share

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
        "the shares of the labels that annotators give; 0 is a perfect match",
    ),
    "CL": (
        "of it by calibration", "calibration loss: the part of EL that calibration could remove",
    ),
    "DL": (
        "of it by the classifier", "dispersion loss: the rest of EL, for a better classifier",
    ),
    "CE": ("calibration error", "the square root of CL, so in units of probability"),
    "L_disagreement": (
        "error of the prediction", "squared error of the predicted probability that two annotators "
        "disagree",
    ),
    "CL_disagreement": ("of it by calibration", "the part of it that calibration could remove"),
    "CE_disagreement": (
        "calibration error", "the square root of that: how far off the predicted disagreement is",
    ),
}  # fmt: skip
"""The losses of classes, then of disagreement: what a column says, and what each is."""

_OF_CLASSES, _OF_PAIRS = [*LOSSES][:6], [*LOSSES][6:]
_OF_STATISTIC = ("L", "CL", "CE", "EL")
"""What is shown of any other statistic of labels; its name follows an underscore."""

_OF_GROUPS = {"EL": "EL", "CL": "CL", "DL": "DL", "CE_disagreement": "CE of pairs", "CE": "CE"}
_FAMILIES = {
    "unanimity": "whether {} labels of an item are all the same",
    "majority_strength": "share of the most frequent class among {} labels of an item",
}

_PRINTED: dict[str, Any] = {"whole": True, "most": 20}
"""With more classifiers, only the nearest are printed."""

_BELOW = (
    " A loss below 0 cannot be told from 0. Few labels add to a loss by chance, and the estimate "
    "takes that off again (it is unbiased). So a true 0 comes out below 0 about as often as above."
)

_OPEN_CLASSES, _MOST_CLASSES, _MOST_DIAGRAMS = 3, 30, 240
"""Classes of a classifier whose diagrams are in sight, and all that are drawn; with many
classifiers each gets fewer, so that a page has at most so many. The JSON has all."""

_DRAWN = (None, 8, 4, 2)
LEVELS = len(_DRAWN)
"""Classifiers whose diagrams a page has, fewer at each level."""


@dataclass(frozen=True)
class Assessed:
    """The report, with its estimates by group and metric."""

    report: Report

    @cached_property
    def blocks(self) -> dict[tuple[str | None, str], Block]:
        """The estimates by group and metric, in the order in which they are shown."""
        info = {
            row["metric"]: {
                "direction": 1 if row["metric"] == "accuracy" else -1,
                "bounds": (0.0, 1.0) if row["metric"] == "accuracy" else None,
            }
            for row in self.report["estimates"]
        }
        shown = blocks({**self.report, "metric_info": info})
        return {(block.group, block.metric): block for block in shown}

    @cached_property
    def nearest(self) -> Block:
        """Metric that orders the classifiers: EL, or L if no item has two labels."""
        block = self.blocks[None, "EL"]
        defined = any(row.value is not None for row in block.rows)
        return block if defined else self.blocks[None, "L"]

    @cached_property
    def models(self) -> Sequence[str]:
        """Classifiers, the nearest to the labels first."""
        return [row.model for row in self.nearest.ranked()] if self.report["models"] else []

    @cached_property
    def verdict(self) -> Verdict | None:
        """The classifier named first; None if none could be assessed."""
        return verdict(self.nearest) if self.report["models"] else None

    def value(self, model: str, metric: str) -> float | None:
        """An estimate for all items."""
        rows = self.blocks[None, metric].rows
        return next(row.value for row in rows if row.model == model)

    def table(
        self, caption: str, metrics: Mapping[str, str], groups: Sequence[str | None] = (None,),
        rates: Mapping[str, Any] | None = None, **more: Any,
    ) -> Table:  # fmt: skip
        """A row for each group and classifier, and a column for each metric, by its heading."""
        rows, chips = [], []
        for group in groups:
            shown = [self.blocks[group, metric] for metric in metrics]
            for found in zip(*(block.in_order(self.models) for block in shown), strict=True):
                row = [*([] if group is None else [group]), found[0].model]
                if rates is not None:
                    own = rates.get(found[0].model)
                    row += [share(own[k]) if own else "-" for k in ("observed", "predicted")]
                figures = (b.figures(one) for b, one in zip(shown, found, strict=True))
                rows.append(row + [" ".join(filter(None, cell)) for cell in figures])
                statuses = (one.status for one in found)
                chips.append(next((s for s in statuses if s not in ("ok", "undefined")), ""))
        names = ["group", "classifier"][groups[0] is None :]
        head = [*names, *(() if rates is None else ("observed", "predicted")), *metrics.values()]
        return Table(head, rows, caption, "l" * len(names) + "r", names=len(names), chips=chips,
                     style="losses", **more)  # fmt: skip


def _heads(metrics: Sequence[str], suffix: str = "") -> dict[str, str]:
    """Headings of columns of losses, by metric."""
    return {f"{one}{suffix}": f"{LOSSES[one][0]} ({one})" for one in metrics}


def _removable(found: Assessed) -> str:
    """How much of the first classifier's EL calibration could remove; "" if EL is unknown."""
    best = found.verdict
    if best is None or found.nearest.metric != "EL" or best.leader.value is None:
        return ""
    if best.leader.status == "contradicted":
        return (
            "No squared distance is below 0, so the labels of an item are not independent: "
            "`--panel fixed` takes the labels of these annotators for the distribution."
        )
    if best.leader.value <= 0:
        return (
            "That cannot be told from 0: the labels show no distance. (The estimate is unbiased, "
            "so a true 0 comes out below 0 about as often as above.)"
        )
    removed, left = (found.value(best.leader.model, metric) for metric in ("CL", "DL"))
    write = found.nearest.write
    if removed is None or left is None:
        return ""
    if removed <= 0:
        return (
            "The labels show nothing that calibration could remove; all of it takes a better "
            f"classifier (DL {write(left)})."
        )
    if left <= 0:
        return f"Calibration could remove all of it (CL {write(removed)})."
    return (
        f"Calibration could remove {write(removed)} of it (CL); the other {write(left)} (DL) takes "
        "a better classifier."
    )


def _answer(found: Assessed) -> Iterator[str]:
    """The first paragraphs."""
    best = found.verdict
    if best is None:
        if found.report["models"]:
            yield "No classifier could be judged: no item has both a label and a prediction."
        elif agreed := found.report.get("agreement"):
            yield " ".join(agreement.sentences(agreed))
        return
    leader, block = name(best.leader.model), found.nearest
    value, interval = block.figures(best.leader)
    what = "the shares of the annotators' labels" if block.metric == "EL" else "single labels"
    sentences, whose = [], leader
    if best.n_ranked > 1:
        many, whose = plural(best.n_ranked, "classifier"), "its probabilities"
        sentences = [f"Of {many}, {leader} comes nearest to what annotators say."]
    if n := len(best.rivals):
        one, s = ("", "s") if n == 1 else ("s", "")
        overlap = f"interval{one} of {plural(n, 'other')} overlap{s}"
        sentences.append(f"The {overlap} with its own, so the order is not settled.")
    figures = " ".join(filter(None, [strong(value), interval]))
    sentences.append(
        f"The squared distance of {whose} from {what} is {figures} ({block.metric}; "
        f"{'0 is a perfect match' if block.metric == 'EL' else 'smaller is better'})."
    )
    yield " ".join([*sentences, _removable(found)]).strip()
    if rates := found.report["diagnostics"]["disagreement"].get(best.leader.model):
        observed, predicted = strong(share(rates["observed"])), strong(share(rates["predicted"]))
        yield f"Two annotators disagree on {observed} of the items; {leader} predicts {predicted}."


def _losses(found: Assessed) -> Iterator[Section]:
    """The losses of all classifiers: of classes, of disagreement, of other statistics."""
    diagnostics, block = found.report["diagnostics"], found.nearest
    by_shares = block.metric == "EL" and found.verdict is not None
    brackets = "" if block.level is None else f" In brackets are {percent(block.level)} intervals."
    below = any(
        row.value is not None and row.value < 0 and row.status != "contradicted"
        for shown in found.blocks.values()
        for row in shown.rows
    )
    forest = Forest(block, block.ranked(), common_axis([block]), f"Classifiers by {block.metric}")
    yield Section(f"How far from {'the label distribution' if by_shares else 'the labels'}", [
        Para(
            "The squared distance of the probabilities from the shares of the labels that "
            "annotators give (EL), without what few labels add by chance. Smaller is better; 0 is "
            "a perfect match."
            if by_shares
            else "The squared distance of the probabilities from single labels (L). Smaller is "
            "better.", "soft",
        ),
        *([forest] if found.verdict else []),
        Section("All losses of the classes", [
            Para(
                "The distance from the shares (EL) has two parts, EL = CL + DL: what calibration "
                f"could remove, and what takes a better classifier.{brackets}{below * _BELOW}",
                "soft",
            ),
            found.table("Losses of the classes", _heads(_OF_CLASSES), **_PRINTED),
        ]),
    ])  # fmt: skip
    rates = diagnostics["disagreement"]
    twice = plural(diagnostics["n_items_of_two_labels"], "item")
    yield Section("How often annotators disagree", [
        Para(
            "How often two annotators of an item disagree, how often each classifier expects them "
            f"to, and how far off it is. It is of the {twice} with two labels or more, as EL is.",
            "soft",
        ),
        found.table("Disagreement of two annotators", _heads(_OF_PAIRS), rates=rates, **_PRINTED),
    ] if rates else [
        Para("No item has two labels, so nobody can say how often annotators disagree. Ask a "
             "second annotator about some items."),
    ])  # fmt: skip
    for statistic in diagnostics["statistics"]:
        match = re.fullmatch(r"(unanimity|majority_strength)_(\d+)", statistic)
        what = _FAMILIES[match[1]].format(match[2]) if match else name(statistic)
        named = name(f"_{statistic}")
        yield Section(capital(what), [
            Para("Losses of what each classifier expects of it; in the JSON their names end in "
                 f"{named}.", "soft"),
            found.table(statistic, _heads(_OF_STATISTIC, f"_{statistic}"), **_PRINTED),
        ])  # fmt: skip


def document(report: Report, *, level: int = 0) -> Document:
    """All that is said of `Assessment.to_dict`."""
    found, agreed = Assessed(report), report.get("agreement")
    models, diagnostics = report["models"], report["diagnostics"]
    sizes = sorted(map(int, report["labels_per_item"]))
    each = f"{sizes[0]}" if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
    labels = f"{plural(report['n_labels'], 'label')} of {plural(report['n_annotated'], 'item')}"
    labels += f", {each} each" if report["n_annotated"] > 1 else ""
    groups = list(dict.fromkeys(group for group, _ in found.blocks if group is not None))
    terms = {one: sentence(meaning) for one, (_, meaning) in LOSSES.items() if models}
    terms |= agreement.terms(agreed) if agreed else {}
    terms["Labels"] = (
        "What annotators say of an item; several may differ, and none of them is called the truth. "
        "A known label of an item without counts is one."
    )
    applied, panel = (diagnostics.get(key) for key in ("calibration", "panel"))
    said = [Para(" ".join(agreement.sentences(agreed)), "soft")] if agreed and models else []
    return Document(
        "How well do the classifiers predict what annotators say?"
        if models else "How far do annotators agree?",
        report,
        head=[
            f"{plural(report['n_items'], 'item')}; {labels}; {classes_text(report)}",
            f"Classes: {listed(report['classes'], 12)}",
        ],
        answer=[*_answer(found)],
        basis=[
            *([] if models else [
                "There are no classifiers with probabilities to judge, only annotators."
            ]),
            *([f"Applied first: {name(applied)}."] if applied else []),
            *([f"Annotators: a fixed panel of {panel}."] if panel else []),
        ],
        facts={
            "Items": report["n_items"], "With labels": report["n_annotated"],
            "With two or more": diagnostics["n_items_of_two_labels"],
            "Labels": report["n_labels"], "Labels of an item": each,
            "Classifiers": len(models), "Classes": len(report["classes"]),
            "Positive class": report.get("positive") and name(report["positive"]),
        },
        body=[
            *(_losses(found) if models else ()),
            *([Section("How far annotators agree", [*said, *agreement.tables(agreed)])]
              if agreed else ()),
            *([Section("By group", [found.table("Losses by group", _OF_GROUPS, groups)])]
              if groups else ()),
            Section("What the words mean", [Terms(terms)], on="text"),
        ],
        more=[*_diagrams(found, _DRAWN[level])],
        terms=terms,
        foot=[made_by(report)],
        warnings=report["warnings"],
    )  # fmt: skip


# --- diagrams of a page ---------------------------------------------------------------------------


def _diagrams(found: Assessed, most: int | None) -> Iterator[Section]:
    """Reliability of the first classifiers, and where their loss lies."""
    report, level = found.report, found.nearest.level if found.report["models"] else None
    by: dict[tuple[str, str], dict[Any, list[Mapping[str, Any]]]] = {}
    for kind in ("reliability", "dispersion", "disagreement_reliability"):
        for row in report[kind]:
            by.setdefault((kind, row["model"]), {}).setdefault(row.get("class"), []).append(row)
    drawn = [model for model in found.models if ("dispersion", model) in by]
    folds = [
        Fold(name(model), [Group("pair", [*_portrait(report, model, by)])], style="profile",
             open=k == 0 or len(drawn[:most]) <= 2)
        for k, model in enumerate(drawn[:most])
    ]  # fmt: skip
    undrawn = plural(len(drawn) - len(folds), "more classifier")
    range_ = "" if level is None else f", with the {percent(level)} interval as a shaded range"
    if folds:
        yield Section(
            "Reliability and where the loss lies",
            [
                Para(
                    "A reliability diagram shows how often annotators choose a class, or disagree, "
                    f"at each predicted probability{range_}. Larger points hold more items; on the "
                    "diagonal the classifier is calibrated. Below it, bars show how much the items "
                    "at each probability add to the loss.", "soft",
                ),
                Legend([
                    ("diagonal", "perfect calibration"),
                    ("calibration", "calibration could remove it (CL)"),
                    ("dispersion", "takes a better classifier (DL)"),
                ]),
                Group("stack", folds),
                *([Para(f"Not drawn, for the page to stay short: {undrawn}.", "soft")]
                  if len(drawn) > len(folds) else []),
            ],
            on="page",
        )  # fmt: skip


def _portrait(report: Report, model: str, by: Mapping[Any, Any]) -> Iterator[Node]:
    """What is drawn of a classifier: disagreement, the first classes, the folded ones."""
    maps: Mapping[Any, list[Mapping[str, Any]]] = by["dispersion", model]
    most = max(_OPEN_CLASSES, min(_MOST_CLASSES, _MOST_DIAGRAMS // len(report["models"])))
    # By their part of the epistemic loss; of two, which mirror each other, the last.
    classes = sorted(maps, key=lambda one: -sum(row["EL_plugin"] or 0.0 for row in maps[one]))
    if len(report["classes"]) == 2:
        classes = list(maps)[-1:]
    # All classes of a classifier share a scale, so that they can be compared. A debiased loss below
    # 0 is drawn as 0, and said as it is.
    losses = {
        one: [(max(row["CL"] or 0.0, 0.0), max(row["DL"] or 0.0, 0.0), row) for row in rows]
        for one, rows in maps.items()
    }
    top = max((cl + dl for bars in losses.values() for cl, dl, _ in bars), default=0.0)
    scale = 100 / top if top > 0 else 0.0

    def diagrams(one: Any) -> Group:
        # In percent from the lower left corner, one loss on the other.
        bars = [
            {
                "left": 100 * row["low"], "width": 100 * (row["high"] - row["low"]),
                "calibration": scale * cl, "dispersion": scale * dl, "source": row,
            }
            for cl, dl, row in losses[one]
        ]  # fmt: skip
        bins = _reliability(model, f"P({one})", by["reliability", model][one])
        return Group("class", [bins, Drawing("loss_map", {"name": one, "bars": bars, "top": top},
                                             model)])  # fmt: skip

    if pairs := by.get(("disagreement_reliability", model), {}).get(None):
        yield Group("class", [_reliability(model, "disagreement", pairs)])
    yield from map(diagrams, classes[:_OPEN_CLASSES])
    if folded := classes[_OPEN_CLASSES:most]:
        more = plural(len(folded), "more class", "more classes")
        yield Fold(more, [Group("pair", [*map(diagrams, folded)])], "with smaller losses",
                   printed=False)  # fmt: skip
    if hidden := len(classes[most:]):
        more = plural(hidden, "further class", "further classes")
        yield Para(f"{more}, with the smallest losses, in the JSON", "soft")


def _reliability(model: str, kind: str, rows: Sequence[Mapping[str, Any]]) -> Drawing:
    """A reliability diagram as the plots of scores draw theirs."""
    bins = [
        {
            "from": row["low"], "to": row["high"], "predicted": row["mean_probability"],
            "observed": row["label_frequency"], "low": row["frequency_low"],
            "high": row["frequency_high"], "weight": row["share"],
        }
        for row in rows
    ]  # fmt: skip
    n_items = sum(row["n_items"] for row in rows)
    source = {"model": model, "n_items": n_items, "missing": 0}
    return Drawing("reliability", profile(source | {"reliability": {"kind": kind, "bins": bins}}))
