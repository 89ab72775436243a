"""Results in a dozen lines, as Python shows them where nobody asked for more."""

from __future__ import annotations

from collections.abc import Callable

from fewlabels.report.blocks import Block, Report, Row, applicable, blocks, ranking
from fewlabels.report.curve_text import aligned
from fewlabels.report.headline import headline, warnings
from fewlabels.report.words import clean, count, fit, wrap

_LINES = 12
_WIDTH, _LONGEST = 80, 100
_MORE = "print() shows all"
_CUT = " ..."
_NAME = 30


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
    return "\n".join(line.rstrip() for line in (*head, *rows, *more))


def _cells(block: Block, row: Row) -> list[str]:
    value = row.reason if row.value is None else block.write(row.value)
    interval = f"[{block.write(row.low)}, {block.write(row.high)}]" if row.has_interval else ""
    status = "" if row.status == "ok" else clean(row.status)
    return [fit(clean(row.model), _NAME), clean(block.metric), value, interval, status]


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
