"""A calibration: what was fitted, and the losses before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fewlabels.report.blocks import Block, Report, Row, common_axis
from fewlabels.report.diagnostics import spoken
from fewlabels.report.document import (
    Document,
    Fold,
    Forest,
    Group,
    Legend,
    Para,
    Section,
    Table,
    name,
    sentence,
    strong,
)
from fewlabels.report.words import fact, made_by, plural

_OF_MAPS = {
    "EL": "squared distance to the label distribution",
    "CL": "its part that calibration removes",
    "CE": "calibration error, the root of CL",
}
"""What is shown of maps of the probabilities, most important first, and what it is."""

_OF_ALPHA = {
    "L_disagreement": "squared error of the predicted disagreement of two annotators",
    "CE_disagreement": "calibration error of that prediction",
}
"""What is shown of alpha-calibration, which does not change the probabilities."""

_PARAMETERS = {
    "temperature": "scores are divided by it: below 1 sharper, above 1 softer",
    "scale": "slope of each class",
    "weights": "slopes, a row per class",
    "intercept": "offset, in logarithms",
    "penalty": "weight of the penalty that was chosen",
    "coef": "of the logarithm of the concentration",
    "concentration": "alpha0 of the items: the larger, the surer the probabilities are",
}
"""What parameters are, in words."""

_TERMS = {
    "After": "The items were dealt into parts; each part was judged by a calibration that was "
    "fitted to the others. What is saved is fitted to all of them.",
    "Below 0": "A loss below 0 cannot be told from 0: the estimate takes off what few labels add "
    "by chance (it is unbiased). So a true 0 comes out below 0 about as often as above.",
}


def _fitted(entry: Mapping[str, Any]) -> str:
    """What was fitted, in a few characters."""
    if estimate := entry.get("concentration"):
        low, high = estimate["10%"], estimate["90%"]
        same = f"{estimate['median']:.3g}"
        return f"alpha0 {same if low == high else f'{low:.2g}..{high:.2g}'}"
    if "temperature" in entry:
        return f"temperature {entry['temperature']:.3g}"
    penalty = entry["penalty"]
    several = penalty if isinstance(penalty, list) else [penalty]
    return "penalty " + ", ".join(f"{value:g}" for value in several)


def _loss(value: float | None) -> str:
    """A loss to three decimals, more than few labels can determine."""
    return "undefined" if value is None else f"{round(value, 3) + 0.0:.3f}"


def _answer(report: Report, kind: str, loss: str) -> str:
    """Whether the first loss is lower on items that the calibration was not fitted to."""
    changes = [
        (before - after, entry["model"], f"from {_loss(before)} to {strong(_loss(after))}")
        for entry in report["calibrations"]
        if (before := entry["before"][loss]) is not None
        and (after := (entry["after"] or {}).get(loss)) is not None
    ]
    if not changes:
        return f"{sentence(kind)} There are too few labels to say what it is worth on other items."
    gain, model, values = max(changes, key=lambda change: change[0])
    what = "distance to the label distribution"
    if report["method"] == "alpha":
        what = "error of the predicted disagreement"
    start = f"On items that it was not fitted to, {kind}"
    if len(changes) == 1:
        does = "lowers" if gain > 0 else "does not lower"
        return f"{start} {does} the {what} of {name(model)} ({loss}): {values}."
    many = plural(len(changes), "classifier")
    if better := sum(change[0] > 0 for change in changes):
        return (
            f"{start} lowers the {what} ({loss}) of {better} of {many}. It lowers it the most for "
            f"{name(model)}: {values}."
        )
    return f"{start} lowers the {what} ({loss}) of none of the {many}. Leave them as they are."


def document(report: Report) -> Document:
    """All that is said of what `fewlabels.calibration.recalibration.fit` says."""
    alpha = report["method"] == "alpha"
    losses = _OF_ALPHA if alpha else _OF_MAPS
    kind = f"{report['method']} scaling"
    if alpha:
        kind = f"alpha-calibration ({report['concentration']})"
    entries: Sequence[Mapping[str, Any]] = report["calibrations"]
    items, labels = plural(entries[0]["n_items"], "item"), plural(entries[0]["n_labels"], "label")
    loss, statuses = next(iter(losses)), [one["status"] for one in entries]
    cells, ends, parameters = [], [], []
    for one in entries:
        before, after = one["before"], one["after"] or {}
        row = [one["model"], _fitted(one)]
        for of in losses:
            row += [_loss(before[of]), strong(_loss(after[of])) if after else "-"]
        cells.append(row)
        ends.append(
            Row(one["model"], after.get(loss), None, None, one["status"], None, before[loss])
        )
        parameters += [
            [one["model"], spoken(key), meaning, fact(one[key])]
            for key, meaning in _PARAMETERS.items()
            if key in one
        ]
    block = Block(loss, None, tuple(ends), None, direction=-1, writes=_loss, truth_name="before")
    forest = Forest(block, ends, common_axis([block]), f"{loss} before and after")
    terms = {loss: sentence(meaning) for loss, meaning in losses.items()} | _TERMS
    first = " (the first classifier)" * (len(entries) > 1)
    return Document(
        "What does the calibration change?",
        report,
        {
            "Items": report["n_items"], "Classifiers": len(entries),
            "Classes": len(report["classes"]), "Fitted to": f"{labels} of {items}{first}",
        },
        answer=[_answer(report, kind, loss)],
        basis=[
            "The probabilities stay as they are. What is fitted is how sure they are, and so how "
            "often two annotators will disagree."
        ] if alpha else [],
        body=[
            Section("Losses before and after", [
                Para("Smaller is better. After: on items that the calibration was not fitted to.",
                     "soft"),
                Group("", [Legend([("estimate", f"{loss} after"), ("truth", "before")]), forest],
                      on="page"),
                Table(
                    ["classifier", "fitted", *(h for loss in losses for h in (loss, "after"))],
                    cells, "Losses before and after the calibration", "llr", chips=statuses,
                ),
            ]),
            Section("What was fitted", [Fold("Parameters of each classifier", [
                Table(["classifier", "parameter", "what it is", "value"], parameters,
                      "Parameters", "l"),
            ])], on="page"),
        ],
        terms=terms,
        explained=True,
        foot=[made_by(report)],
    )  # fmt: skip
