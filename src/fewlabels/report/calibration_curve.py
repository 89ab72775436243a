"""Calibration curves: how far off probabilities are, tests, and the height of each bin."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from fewlabels.report.axis import reliability
from fewlabels.report.blocks import Report, grouped
from fewlabels.report.document import (
    Document,
    Drawing,
    Fold,
    Group,
    Legend,
    Para,
    Section,
    Table,
    counts,
    name,
    sentence,
)
from fewlabels.report.one_classifier import WRITE, spelled
from fewlabels.report.words import (
    count,
    made_by,
    number_format,
    percent,
    plural,
    with_interval,
)

_ENOUGH = 5
"""With fewer labels in a bin a diagram does not show their frequency, whose interval says little.
"""

_SURE = 0.05
"""Below this p-value labels do not look like draws from the probabilities."""

_DRAWN = (None, 60, 24, 12, 4)
LEVELS = len(_DRAWN)
"""Curves of a page, fewer at each level."""

_OPEN = 6
"""Curves that are in sight; the others are folded."""

_MOST_ANSWERS = 3

_NORMS = {
    "l1": "the mean gap between probability and frequency",
    "l2": "the root of the mean squared gap between probability and frequency",
    "max": "the largest gap between probability and frequency in a bin",
}

_TERMS = {
    "All items": "Frequencies as the method infers them for all items, labeled or not, with "
    "intervals for all that is not known.",
    "Labels only": "The labeled items in the same bins. Noise makes gaps, so this error is too "
    "large, the more so the fewer labels there are.",
    "Debiased": "The same less what noise adds to it (Kumar, Liang, Ma 2019); 0 where it is no "
    "more than that.",
    "p-value": "How probable labels this far from the probabilities are if these are right "
    "(Cox 1958). It is small where they are too high, too low, too extreme or too timid. With few "
    "labels it misses much: a large p is no proof.",
    "What mends it": "`fewlabels calibrate` fits a map that makes such probabilities mean what "
    "they say.",
}


def _curves(report: Report) -> Iterator[Fold]:
    """The curve of each event by each classifier: its diagram, and its bins in numbers."""
    by = grouped(report["bins"], itemgetter("model", "event"))
    for k, ((model, event), bins) in enumerate(by.items()):
        what, kind = f"how often {event}, by its probability", event
        if report["kind"] != "top-label":
            what, kind = f"how often it is {name(event)}, by P({name(event)})", f"P({event})"
        rows, drawn = [], []
        for one in bins:
            labeled = [one[f"labeled_{end}"] for end in ("observed", "low", "high")]
            rows.append([
                f"{WRITE(one['start'])}-{WRITE(one['end'])}", count(one["n_items"]),
                WRITE(one["predicted"]), spelled(one["observed"], one["low"], one["high"]),
                count(one["n_labeled"]), spelled(*labeled) if one["n_labeled"] else "-",
            ])  # fmt: skip
            drawn.append({
                **one, "from": one["start"], "to": one["end"], "weight": one["share"],
                "labeled": labeled if one["n_labeled"] >= _ENOUGH else None,
            })  # fmt: skip
        drawing = Drawing("reliability", reliability(model, kind, drawn))
        head = ["probability", "items", "mean", "all items", "labels", "labels only"]
        table = Table(head, rows, f"Bins of {model}, {kind}", names=0)
        yield Fold(
            f"{name(model)}: {what}",
            [
                Group("diagram", [drawing], on="page"),
                Fold("The bins in numbers", [table], on="page"),
                Group("", [table], on="text"),
            ],
            style="profile", open=k < _OPEN,
        )  # fmt: skip


def _errors(report: Report) -> tuple[Table, str]:
    """The error of each classifier by all items and by labels, with the test; the worst in words.

    A p-value is known as far as 1,999 simulated labelings tell.
    """
    write, rows, weighed = number_format([row["value"] for row in report["estimates"]]), [], []
    for row, alone in zip(report["estimates"], report["from_labels"], strict=True):
        p = "-" if alone["p_value"] is None else f"{alone['p_value']:.3f}"
        rows.append([
            row["model"], with_interval(row, write),
            with_interval(alone, write) if alone["n_labeled"] else "-",
            "-" if alone["debiased"] is None else write(alone["debiased"]), p,
        ])  # fmt: skip
        phrase = f"{name(row['model'])} is off by {with_interval(row)}"
        if row["value"] is None:
            phrase = f"The error of {name(row['model'])} is not known"
        elif alone["p_value"] is not None:
            does = "contradict" if alone["p_value"] < _SURE else "do not contradict"
            phrase += f"; its labels {does} its probabilities (p = {p})"
        told = alone["p_value"] is not None and alone["p_value"] < _SURE
        weighed.append((told, row["value"] or 0.0, f"{phrase}."))
    # The weightiest first: whose labels contradict it, then who is off the most.
    phrases = [phrase for *_, phrase in sorted(weighed, key=itemgetter(0, 1), reverse=True)]
    if left := len(rows) - _MOST_ANSWERS:
        phrases[_MOST_ANSWERS:] = [f"{plural(left, 'more classifier')} below."] * (left > 0)
    head = ["classifier", "all items", "labels only", "debiased", "p-value"]
    chips = [row["status"] for row in report["estimates"]]
    return Table(head, rows, "Errors of calibration", chips=chips), " ".join(phrases)


def document(report: Report, *, level: int = 0) -> Document:
    """All that is said of `CalibrationCurves.to_dict`."""
    curves, (errors, answer) = [*_curves(report)], _errors(report)
    drawn, confidence = curves[: _DRAWN[level]], percent(report["confidence_level"])
    bins = "of equal width" if report["binning"] == "width" else "between quantiles"
    bins = f"{report['n_bins']} {bins}"
    undrawn = plural(len(curves) - len(drawn), "more curve")
    return Document(
        "Do the probabilities mean what they say?",
        report,
        counts(report) | {"Bins": bins},
        answer=[answer],
        body=[
            Section("Errors of calibration", [
                Para(
                    f"{sentence(_NORMS[report['norm']])} `{report['estimates'][0]['metric']}` has "
                    f"{confidence} intervals; 0 is perfect.", "soft",
                ),
                errors,
            ]),
            Section("Calibration curves", [
                Para(
                    "How often the event occurs at each predicted probability. On the diagonal the "
                    "classifier is calibrated; below it the probabilities are too high, above it "
                    "too low.", "soft", on="page",
                ),
                Legend([
                    ("binned", f"all items, with the {confidence} interval"),
                    ("labeled", f"labels only, from {_ENOUGH} in a bin"),
                    ("diagonal", "perfect calibration"),
                ]),
                Group("cards", drawn),
                *([Para(f"Not drawn, for the page to stay short: {undrawn}; the JSON has all.",
                        "soft")] if len(curves) > len(drawn) else []),
            ]),
        ],
        terms=_TERMS,
        explained=True,
        foot=[made_by(report)],
    )  # fmt: skip
