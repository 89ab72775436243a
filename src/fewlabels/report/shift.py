"""Shift between labeled and unlabeled items: the answer, the tests, what differs, the classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fewlabels.report.blocks import Block, Report, Row, common_axis
from fewlabels.report.document import (
    Document,
    Forest,
    Legend,
    Para,
    Section,
    Table,
    counts,
    sentence,
)
from fewlabels.report.words import made_by, percent, probability

_MOST_DIFFERENCES, _MOST_CLASSES = 6, 12

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
    fit, n_compared = report["label_shift"], sum(report["compared"].values())
    answer, _, rest = report["statement"].partition(". ")
    tests = {
        "labeled items are a random sample of all": report["p_value"],
        "classes are equally frequent in both": fit["p_value"],
        "class frequencies are all that differs": fit["fit_p_value"],
    }
    traits = [(one["words"], _p(one["p_value"])) for one in report["differences"]]
    differ = Table(["Trait", "p-value"], traits, "What differs", names=0, most=_MOST_DIFFERENCES,
                   wrapped=True)  # fmt: skip
    nothing = Para("No trait of the items differs: all have the same scores.")
    return Document(
        "Do the labeled items differ from the others?",
        report,
        counts(report) | {"Compared": n_compared if n_compared < report["n_items"] else None},
        answer=[sentence(answer)],
        basis=[rest] if rest else [],
        body=[
            Section("Tests", [
                Para("A small p-value (below 0.05, say) speaks against the sentence in its row.",
                     "soft", on="page"),
                Table(["If this were so", "p-value"],
                      [(said, _p(value)) for said, value in tests.items()], "Tests", names=0),
            ]),
            *_classes(report),
            Section("What differs most", [differ if traits else nothing],
                    aside="p-values adjusted for all traits" if traits else ""),
        ],
        terms=_TERMS,
        foot=[made_by(report)],
    )  # fmt: skip


def _classes(report: Report) -> Iterator[Section]:
    """How frequent the classes are among labeled items, and by estimate among the others."""
    classes, worth = report["label_shift"]["classes"], report["effective_labels"]
    level = report["confidence_level"]
    rows = [
        Row(str(one["class"]), one["unlabeled"], one["low"], one["high"], "ok", None,
            one["labeled"])
        for one in classes
    ]  # fmt: skip
    block = Block("frequency", None, tuple(rows), level, bounds=(0.0, 1.0), writes=probability,
                  truth_name="labeled")  # fmt: skip
    extras = [
        (head, [f"{one[key]:.2f}" for one in classes])
        for head, key in (("weight", "weight"), ("BBSE", "bbse"), ("RLLS", "rlls"))
    ]
    if classes:
        yield Section("How frequent the classes are", [
            Para("Among the labeled items, and by estimate among the unlabeled ones with its "
                 f"{percent(level)} interval. The estimate holds if items of a class have the "
                 "same scores in both. The weight is what a label of the class would count for; "
                 "BBSE and RLLS are two other estimates of it.", "soft"),
            Legend([("estimate", "unlabeled, estimated"), ("truth", "labeled")]),
            Forest(block, rows, common_axis([block]), "Class frequencies", "Class", extras,
                   ends=_MOST_CLASSES),
            Para(f"After a correction the {report['n_labeled']:,} labels count like "
                 f"{worth['covariate']:.1f} (weighted by scores, `--shift covariate`) or "
                 f"{worth['label']:.1f} (weighted by classes, `--shift label`)."),
        ])  # fmt: skip


def _p(value: Any) -> str:
    if value is None:
        return "-"
    return "<.001" if value < 0.001 else f"{value:.3f}"
