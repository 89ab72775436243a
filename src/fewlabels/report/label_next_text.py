"""Which items to label next, as text."""

from __future__ import annotations

from fewlabels.report.curve_blocks import Report, score_text, who
from fewlabels.report.curve_text import NARROWEST, aligned, foot
from fewlabels.report.words import clean, count, plural, probability, wrap


def render_label_next(report: Report, width: int = 80) -> str:
    """The items in the order to label them, what each is worth, and who may learn from them.

    Parameters
    ----------
    report
        The dictionary of `LabelNext.report`; plain JSON values. Rows are shown as the file has
        them, from 1.
    width
        Columns of the terminal; less than 60 counts as 60.
    """
    width = max(width, NARROWEST)
    kind = report["kind"].replace("roc", "ROC")
    number = plural(len(report["items"]), "item")
    lines = wrap(who(report), width)
    said = f"{clean(report['model'])}: label {number} for the {kind} curve"
    lines += [*wrap(said, width), ""]
    scored = report["unit"] == "probability"
    rows = [["row", "score", "P(positive)", "gain"]]
    rows += [
        [count(item + 1), score_text(score, scored), probability(chance), _gain(gain)]
        for item, score, chance, gain in zip(
            *(report[key] for key in ("items", "score", "probability", "gain")), strict=True
        )
    ]
    lines += [*aligned(rows, (True, True, True, True)), ""]
    gain = "The gain is the share of the band's variance that a label is expected to remove."
    lines += [*wrap(gain, width), "", *wrap(report["statement"], width), *foot(report, width)]
    return "\n".join(line.rstrip() for line in lines)


def _gain(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}%"
