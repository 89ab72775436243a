"""Curves as text: tables of operating points, and the band in plain ASCII characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fewlabels.ink import ink
from fewlabels.report.curve_blocks import (
    ESTIMANDS,
    CurveBlock,
    Report,
    curve_blocks,
    interval,
    level,
    score_text,
    status_note,
    who,
)
from fewlabels.report.words import clean, pad, percent, wrap

NARROWEST = 60
"""Smaller widths are treated as this one: no table fits there."""

_ROWS = 10  # Of the picture: a tenth each, and one for the value 0.
_MOST_COLUMNS = 61
_LABEL = 5
_GAP = "  "


def render_curves(report: Report, width: int = 80) -> str:
    """One curve, or several from one fit, as tables of points and a picture of the band.

    Parameters
    ----------
    report
        The dictionary of `Curve.report` or `Curves.report`; plain JSON values.
    width
        Columns of the terminal; less than 60 counts as 60.

    Returns
    -------
    str
        Lines of at most `width` columns (wide characters count as two), without colour codes;
        control characters in names are escaped.
    """
    width = max(width, NARROWEST)
    blocks = curve_blocks(report)
    lines = [line for said in _head(report, blocks) for line in wrap(said, width)]
    for block in blocks:
        lines += ["", *_table(report, block, width, first=block is blocks[0])]
    # Precision is what few labels leave open; the other picture looks much alike for everybody.
    lines += ["", *picture(blocks[0], width), *foot(report, width)]
    return "\n".join(line.rstrip() for line in lines)


def facts(report: Report, what: str) -> str:
    """Version, method, seed, and what the intervals or bands speak about."""
    estimand = ESTIMANDS.get(report["estimand"], clean(report["estimand"]))
    made = f"fewlabels {report['fewlabels']}, {report['method']}, seed {report['seed']}"
    return f"{made}; {level(report)} {what} {estimand}"


def foot(report: Report, width: int) -> Iterator[str]:
    """Status and warnings in plain words."""
    note = status_note(report)
    if note:
        said = wrap(f"{report['status']}: {note}", width, "  ")
        yield from ["", *(ink(line, "warning") for line in said)]
    warnings: Sequence[str] = report.get("warnings") or ()
    if warnings:
        yield from ["", ink("Warnings", "title")]
        for warning in warnings:
            yield from wrap(f"- {warning}", width, "  ")


def aligned(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> Iterator[str]:
    """Rows of texts with their columns below one another."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, right, strict=True)
        yield "  " + _GAP.join(pad(cell, room, right=to_right) for cell, room, to_right in cells)


def _head(report: Report, blocks: Sequence[CurveBlock]) -> Iterator[str]:
    yield who(report)
    first = blocks[0]
    yield f"{clean(report['model'])}: {first.kind.area} {first.area.text}"
    if first.kind.name == "precision-recall":
        yield f"Chance would give {interval(report.get('prevalence')).text}, the prevalence."
    yield facts(report, "bands")


def _table(report: Report, block: CurveBlock, width: int, *, first: bool) -> Iterator[str]:
    kind = block.kind
    yield from wrap(kind.title if first else f"{kind.title}: {kind.area} {block.area.text}", width)
    probability = report["unit"] == "probability"
    rows = [[kind.x_short, kind.y_short, f"[{percent(block.level)} band]", "threshold"]]
    for point in block.read_off:
        value, band = point.y.parts
        rows.append([percent(point.x), value, band, score_text(point.threshold, probability)])
    yield from aligned(rows, (True, True, False, True))


def picture(block: CurveBlock, width: int) -> Iterator[str]:
    """The curve and its band, eleven rows high, both axes from 0 to 1."""
    columns = (min(_MOST_COLUMNS, width - _LABEL - 2) - 1) // 4 * 4 + 1
    points = [block.at(k / (columns - 1)) for k in range(columns)]
    yield block.kind.y_name
    for row in reversed(range(_ROWS + 1)):
        label = f"{row / _ROWS:.1f}" if row % 2 == 0 else ""
        cells = "".join(_cell(point.y.value, point.y.low, point.y.high, row) for point in points)
        yield f"{label:>{_LABEL}} |{cells}"
    quarter = (columns - 1) // 4
    yield " " * _LABEL + " +" + ("-" * (quarter - 1) + "+") * 4
    ticks = "0" + "".join(f"{tick:>{quarter}}" for tick in ("0.25", "0.5", "0.75", "1"))
    yield " " * _LABEL + "  " + ticks
    names = f"{block.kind.x_name}   (o median, : {percent(block.level)} band)"
    yield " " * (_LABEL + 2) + names


def _cell(value: float | None, low: float | None, high: float | None, row: int) -> str:
    if value is not None and round(value * _ROWS) == row:
        return "o"
    inside = low is not None and high is not None and round(low * _ROWS) <= row <= round(
        high * _ROWS
    )  # fmt: skip
    return ":" if inside else " "
