"""Shift between labeled and unlabeled items: the answer, the tests, what differs, the classes."""

from __future__ import annotations

from typing import Any

from fewlabels.report.axis import fit_axis
from fewlabels.report.blocks import Block, Report, Row
from fewlabels.report.document import (
    Document,
    Forest,
    Legend,
    Para,
    Section,
    Table,
    name,
    sentence,
)
from fewlabels.report.words import classes_text, percent, plural, probability

_MOST_DIFFERENCES = 6
_MOST_CLASSES = 12

TESTS = (
    ("labeled items are a random sample of all", "p_value"),
    ("classes are equally frequent in both", "label_p_value"),
    ("class frequencies are all that differs", "fit_p_value"),
)
"""What is tested, and where its p-value is; a small one speaks against it."""

_TERMS = {
    "Label shift": "The classes are differently frequent among labeled and unlabeled items, and "
    "items of a class have the same scores in both. `fewlabels estimate --shift label` corrects "
    "for it.",
    "Covariate shift": "Items were picked by what their scores depend on, and items of the same "
    "scores are of the same class equally often in both. `--shift covariate` corrects for it. No "
    "label can refute this one.",
}


def document(report: Report) -> Document:
    """All that is said of `Shift.to_dict`."""
    compared, n = report["compared"], report["n_labeled"]
    n_compared = compared["labeled"] + compared["unlabeled"]
    sizes = f"{plural(report['n_items'], 'item')}, {n:,} labeled"
    if n_compared < report["n_items"]:
        sizes += f"; {compared['labeled']:,} and {compared['unlabeled']:,} of them are compared"
    sizes += f"; {classes_text(report)}; method {report['method']}, seed {report['seed']}"
    answer, _, rest = report["statement"].partition(". ")
    p_values = {**report["label_shift"], "p_value": report["p_value"]}
    p_values["label_p_value"] = report["label_shift"]["p_value"]
    tests = [(said, _p(p_values[which])) for said, which in TESTS]
    traits = [(one["words"], _p(one["p_value"])) for one in report["differences"]]
    differ = Section(
        "What differs most",
        [
            Table(["Trait", "p-value"], traits, "What differs", names=0, most=_MOST_DIFFERENCES,
                  wrapped=True)
            if traits else Para("No trait of the items differs: all have the same scores."),
        ],
        aside="p-values adjusted for all traits" if traits else "",
    )  # fmt: skip
    return Document(
        "Do the labeled items differ from the others?",
        report,
        head=[sizes],
        answer=[sentence(answer)],
        basis=[rest] if rest else [],
        facts={
            "Items": report["n_items"], "Labeled": n,
            "Compared": n_compared if n_compared < report["n_items"] else None,
            "Classes": len(report["classes"]),
            "Positive class": None if report.get("positive") is None else name(report["positive"]),
            "Method": report["method"],
        },
        body=[
            Section("Tests", [
                Para("A small p-value (below 0.05, say) speaks against the sentence in its row.",
                     "soft", on="page"),
                Table(["If this were so", "p-value"], tests, "Tests", names=0),
            ]),
            *_classes(report),
            differ,
        ],
        terms=_TERMS,
        warnings=report["warnings"],
    )  # fmt: skip


def _classes(report: Report) -> list[Section]:
    """How frequent the classes are among labeled items, and by estimate among the others."""
    classes = report["label_shift"]["classes"]
    if not classes:
        return []
    level, worth = report["confidence_level"], report["effective_labels"]
    rows = tuple(
        Row(str(one["class"]), one["unlabeled"], one["low"], one["high"], "ok", None,
            one["labeled"])
        for one in classes
    )  # fmt: skip
    block = Block("frequency", None, rows, level, bounds=(0.0, 1.0), writes=probability,
                  truth_name="labeled")  # fmt: skip
    extras = [("weight", [f"{one['weight']:.2f}" for one in classes])]
    extras += [(key.upper(), [f"{one[key]:.2f}" for one in classes]) for key in ("bbse", "rlls")]
    axis = fit_axis([n for row in rows for n in row.numbers], (0.0, 1.0))
    return [
        Section(
            "How frequent the classes are",
            [
                Para(
                    "Among the labeled items, and by estimate among the unlabeled ones with its "
                    f"{percent(level)} interval. The estimate holds if items of a class have the "
                    "same scores in both. The weight is what a label of the class would count for; "
                    "BBSE and RLLS are two other estimates of it.", "soft",
                ),
                Legend([("estimate", "unlabeled, estimated"), ("truth", "labeled")]),
                Forest(block, rows, axis, "Class frequencies", "Class", extras, ends=_MOST_CLASSES),
                Para(
                    f"After a correction the {report['n_labeled']:,} labels count like "
                    f"{worth['covariate']:.1f} (weighted by scores, `--shift covariate`) or "
                    f"{worth['label']:.1f} (weighted by classes, `--shift label`).",
                ),
            ],
        )
    ]  # fmt: skip


def _p(value: Any) -> str:
    if value is None:
        return "-"
    return "<.001" if value < 0.001 else f"{value:.3f}"
