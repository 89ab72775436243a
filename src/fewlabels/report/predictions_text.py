"""Predictions as text: how many, what was taken for what, and what each classifier gives."""

from __future__ import annotations

from fewlabels.report.blocks import Report
from fewlabels.report.curve_text import NARROWEST, aligned
from fewlabels.report.headline import first_lines
from fewlabels.report.words import clean, fit

_KINDS = {"probabilities": "probabilities", "hard": "hard predictions", "scores": "scores"}
_NAME = 40


def render_predictions(report: Report, width: int = 80) -> str:
    """A line of facts, one per thing that was recognised, and one per classifier.

    Parameters
    ----------
    report
        The facts of the headline, `reading`, and `gives`: for each of
        "probabilities", "hard" and "scores" whether each classifier has any.
    width
        Columns of the terminal; less than 60 counts as 60.
    """
    width = max(width, NARROWEST)
    lines = first_lines(report, width)
    rows = []
    for place, model in enumerate(report["models"]):
        kinds = [_KINDS[kind] for kind, has in report["gives"].items() if has[place]]
        rows.append([fit(clean(model), _NAME), " and ".join(kinds) or "no predictions"])
    return "\n".join(line.rstrip() for line in (*lines, *aligned(rows, (False, False))))
