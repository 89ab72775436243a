"""Items to label next: which, what each is worth, and who may learn from their labels."""

from __future__ import annotations

from fewlabels.report.blocks import Report
from fewlabels.report.document import Document, Para, Section, Table, name, strong
from fewlabels.report.one_classifier import about_one
from fewlabels.report.words import count, escape_control, fit, plural, probability, score_text

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
    return about_one(
        "Which items to label next?",
        report,
        f"Label {these} to learn most of the {strong(aim)} of {name(report['model'])}.",
        [
            *_strata(report),
            Section("Items, in the order to label them", [
                Para("Rows count from 1, after the header of the file."
                     + _gain(report, aim if votes else "band"), "soft"),
                _items(report),
            ]),
        ],
        _TERMS,
        basis=[report["statement"]],
    )  # fmt: skip


def _gain(report: Report, of: str) -> str:
    """What the numbers of an item mean."""
    if report.get("strata"):
        return " Drawn is how probable it was to draw the item from its stratum."
    return (
        f" Gain is the share of the variance of the {of} that the label is expected to remove. "
        "Drawn is how probable it was to draw the item."
    )


def _items(report: Report) -> Table:
    if "likeliest" in report:
        heads = ["likeliest", "P(likeliest)"]
        shown = [name(fit(escape_control(c), 20)) for c in report["likeliest"]]
    else:
        heads = ["score", "P(positive)"]
        shown = [score_text(score, report["unit"] == "probability") for score in report["score"]]
    gains = report["gain"]
    shares = gains if any(gains) else report["drawn"]
    top = max(share or 0.0 for share in shares) or 1.0
    numbers = (report[key] for key in ("items", "probability", "drawn"))
    return Table(
        ["row", *heads, "gain", "drawn"],
        [
            [count(item + 1), text, probability(chance), "-" if gain is None else f"{gain:.1%}",
             f"1 in {1 / drawn:,.0f}"]
            for text, gain, item, chance, drawn in zip(shown, gains, *numbers, strict=True)
        ],
        "Items to label next", sides="r", style="next",
        bars=[share and share / top for share in shares], bar_at=3 if any(gains) else 4,
    )  # fmt: skip


def _strata(report: Report) -> list[Section]:
    """Items, labels, spread and labels to add of every stratum, where they are named."""
    rows = [
        [one["name"], count(one["n_items"]), count(one["n_labeled"]), f"{one['spread']:.3f}",
         count(one["n_next"])]
        for one in report.get("strata", ())
    ]  # fmt: skip
    meaning = (
        "Spread is how much an item's value varies in the stratum. Labels go in proportion to "
        "items times spread (Neyman), with those there are."
    )
    head = ["stratum", "items", "labeled", "spread", "to label"]
    table = Table(head, rows, "Strata", widest=30)
    return [Section("How many of each stratum", [Para(meaning, "soft"), table])] if rows else []
