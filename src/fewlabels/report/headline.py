"""What results say first: what was read, what decides how far to trust it, and a dozen lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fewlabels.errors import decides
from fewlabels.report.blocks import Block, Report, Row, applicable, blocks, ranking
from fewlabels.report.ink import ink
from fewlabels.report.words import NARROWEST, aligned, as_text, clean, count, fit, plural, wrap

_LINES = 12
_WIDTH, _LONGEST = 80, 100
_MORE = "print() shows all"
_CUT = " ..."
_NAME = 30
_KINDS = {"probabilities": "probabilities", "hard": "hard predictions", "scores": "scores"}

_LONGEST_NAME = 40


def headline(report: Report) -> str:
    """How many items, labels, classifiers and classes there are, and which class is positive."""
    elsewhere = reference_items(report)
    annotated = report.get("n_annotated")
    facts = [
        plural(report["n_items"], "item"),
        f"{report['n_labeled']:,} labeled",
        *([f"{annotated:,} with counts of annotators"] if annotated else []),
        *([elsewhere] if elsewhere else []),
        plural(len(report["models"]), "classifier"),
        plural(len(report["classes"]), "class", "classes"),
    ]
    positive = report.get("positive")
    return ", ".join(facts) + (f"; positive: {clean(positive)}" if positive is not None else "")


def reference_items(report: Report) -> str:
    """How many labeled items from elsewhere there are; nothing where there are none."""
    reference = report.get("reference")
    return plural(reference["n_items"], "reference item") if reference else ""


def reading(report: Report) -> Sequence[str]:
    """Which column was taken for what, where nobody had said it: a line each."""
    return report.get("reading") or ()


def first_lines(report: Report, width: int) -> list[str]:
    """Headline and reading as text."""
    lines = [ink(line, "title") for line in wrap(headline(report), width)]
    for said in reading(report):
        lines += [ink(f"  {line}", "soft") for line in wrap(said, width - 2, "  ")]
    return lines


def warnings(report: Report) -> tuple[str | None, Sequence[str]]:
    """The warning that decides how far to trust the estimates, if any does, and the others."""
    said: Sequence[str] = report.get("warnings") or ()
    if said and decides(said[0]):
        return said[0], said[1:]
    return None, said


def brief_estimates(name: str, report: Report) -> str:
    """What was read, what decides how far to trust it, and the first rows of the estimates.

    Parameters
    ----------
    name
        Of the kind of result.
    report
        A dictionary with `estimates` and the facts about them; plain JSON values.
    """
    deciding, _ = warnings(report)
    head = wrap(f"{name}: {headline(report)}", _LONGEST)
    if deciding is not None:
        first, *rest = wrap(f"! {deciding}", _WIDTH - len(_CUT))
        head.append(first + (_CUT if rest else ""))
    shown, _ = applicable([block for block in blocks(report) if block.group is None])
    order = ranking(shown)
    cells = [_cells(block, row) for block in shown for row in block.in_order(order).rows]
    room = _LINES - len(head) - 1
    if len(cells) > room:
        kept = room - 1
        more = [f"  ... {count(len(cells) - kept)} more; {_MORE}"]
    else:
        kept, more = len(cells), []
    table = [["classifier", "metric", "value", "", ""], *cells[:kept]]
    rows = aligned(table, (False, False, True, False, False)) if cells else ()
    return as_text([*head, *rows, *more])


def _cells(block: Block, row: Row) -> list[str]:
    status = "" if row.status == "ok" else clean(row.status)
    return [fit(clean(row.model), _NAME), clean(block.metric), *block.figures(row), status]


def brief_summary(name: str, summary: Callable[[int], str]) -> str:
    """The first lines of a summary, which is made to a width."""
    head = f"{name}: "
    first, *rest = (line for line in summary(_WIDTH - len(head)).split("\n") if line.strip())
    lines = [head + first, *rest]
    if len(lines) > _LINES:
        lines = [
            *lines[: _LINES - 1],
            f"  ... {count(len(lines) - _LINES + 1)} more lines; {_MORE}",
        ]
    return "\n".join(lines)


def render_predictions(report: Report, width: int = 80) -> str:
    """A line of facts, one per thing that was recognised, and one per classifier.

    `report` is the facts of the headline, `reading`, and `gives`: for each of "probabilities",
    "hard" and "scores" whether each classifier has any.
    """
    width = max(width, NARROWEST)
    lines = first_lines(report, width)
    rows = []
    for place, model in enumerate(report["models"]):
        kinds = [_KINDS[kind] for kind, has in report["gives"].items() if has[place]]
        rows.append([fit(clean(model), _LONGEST_NAME), " and ".join(kinds) or "no predictions"])
    return as_text([*lines, *aligned(rows, (False, False))])
