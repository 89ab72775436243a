"""Items to label next: which, what each is worth, and who may learn from their labels."""

from __future__ import annotations

from fewlabels.report.blocks import Report
from fewlabels.report.document import Document, Para, Section, Table, name, strong
from fewlabels.report.one_classifier import about_one, score_writer
from fewlabels.report.words import count, escape_control, fit, plural, probability

_TERMS = {
    "Gain": "How much of what is still unknown the label is expected to settle, once those above "
    "it are known.",
    "Drawn": "How probable it was to draw the item. Whoever averages labels of items that were "
    "drawn unevenly needs it, and `label-next --out` writes it.",
}
_AIMS = {"error-rates": "error rates", "labels": "labels of all items"}


def document(report: Report) -> Document:
    """All that is said of `LabelNext.report`; rows are numbered from 1, as a file's are."""
    votes, kind = "likeliest" in report, report["kind"].replace("roc", "ROC")
    aim = _AIMS.get(kind, kind.replace("_", " ")) if votes else f"{kind} curve"
    n = len(report["items"])
    these = "this item" if n == 1 else f"these {plural(n, 'item')}"
    about = (
        f" Gain is the share of the variance of the {aim if votes else 'band'} that the label is "
        "expected to remove. Drawn is how probable it was to draw the item"
    )
    strata = report.get("strata") or ()
    if strata:
        about = " Drawn is how probable it was to draw the item from its stratum"
    body = [
        Section("Items, in the order to label them", [
            Para(f"Rows count from 1, after the header of the file.{about}.", "soft"),
            _items(report),
        ]),
    ]  # fmt: skip
    if strata:
        rows = [
            [one["name"], count(one["n_items"]), count(one["n_labeled"]), f"{one['spread']:.3f}",
             count(one["n_next"])]
            for one in strata
        ]  # fmt: skip
        head = ["stratum", "items", "labeled", "spread", "to label"]
        body.insert(0, Section("How many of each stratum", [
            Para("Spread is how much an item's value varies in the stratum. Labels go in "
                 "proportion to items times spread (Neyman), with those there are.", "soft"),
            Table(head, rows, "Strata", widest=30),
        ]))  # fmt: skip
    return about_one(
        "Which items to label next?",
        report,
        f"Label {these} to learn most of the {strong(aim)} of {name(report['model'])}.",
        body,
        _TERMS,
        basis=[report["statement"]],
    )


def _items(report: Report) -> Table:
    if "likeliest" in report:
        heads = ["likeliest", "P(likeliest)"]
        shown = [name(fit(escape_control(c), 20)) for c in report["likeliest"]]
    else:
        heads = ["score", "P(positive)"]
        shown = [*map(score_writer(report), report["score"])]
    gains = report["gain"]
    shares = gains if any(gains) else report["drawn"]
    numbers = (report[key] for key in ("items", "probability", "drawn"))
    return Table(
        ["row", *heads, "gain", "drawn"],
        [
            [count(item + 1), text, probability(chance), "-" if gain is None else f"{gain:.1%}",
             f"1 in {1 / drawn:,.0f}"]
            for text, gain, item, chance, drawn in zip(shown, gains, *numbers, strict=True)
        ],
        "Items to label next", sides="r", style="next",
        bars=shares, bar_at=3 if any(gains) else 4,
    )  # fmt: skip
