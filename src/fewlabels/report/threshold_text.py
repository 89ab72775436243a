"""Thresholds as text: the answer first, then the rates there and where else it holds."""

from __future__ import annotations

from collections.abc import Iterator

from fewlabels.report.curve_blocks import Report, ThresholdBlock, level, who
from fewlabels.report.curve_text import NARROWEST, aligned, facts, foot
from fewlabels.report.words import clean, probability, wrap


def render_threshold(report: Report, width: int = 80) -> str:
    """The best threshold, the rates at it, and the ranges in which the conditions hold.

    Parameters
    ----------
    report
        The dictionary of `Thresholds.report`; plain JSON values.
    width
        Columns of the terminal; less than 60 counts as 60.

    Returns
    -------
    str
        Lines of at most `width` columns (wide characters count as two), without colour codes;
        control characters in names are escaped.
    """
    width = max(width, NARROWEST)
    block = ThresholdBlock(report)
    lines = [*wrap(f"{clean(report['model'])}: {who(report)}", width), ""]
    lines += [*wrap(answer(block), width), ""]
    lines += wrap(facts(report, "intervals"), width)
    if block.rates and block.verdict != "nothing":
        lines += ["", f"At {block.best}", *_rates(block)]
    if block.verdict in ("met", "unlikely"):
        lines += ["", *_ranges(block, width)]
    lines += foot(report, width)
    return "\n".join(line.rstrip() for line in lines)


def answer(block: ThresholdBlock) -> str:
    """Where to put the threshold, and how probable it is that the conditions hold there."""
    found = probability(block.report["best_probability"])
    if block.verdict == "met":
        return f"Call it positive from {block.best} up: {block.conditions} with probability {found}"
    if block.verdict == "unlikely":
        return (
            f"No threshold is more likely than not to meet {block.conditions}. The best there is, "
            f"with probability {found}: call it positive from {block.best} up"
        )
    if block.verdict == "nothing":
        return f"No threshold can be given for {block.conditions}"
    short = f": {block.shortfall}" if block.shortfall else ""
    return f"No threshold meets {block.conditions}. The nearest is {block.best}{short}"


def _rates(block: ThresholdBlock) -> Iterator[str]:
    asked = any(rate.asked for rate in block.rates)
    rows = [["", "value", f"[{level(block.report)} interval]", "asked" if asked else ""]]
    rows += [[rate.name, *rate.number.parts, rate.asked] for rate in block.rates]
    return aligned(rows, (False, True, False, False))


def _ranges(block: ThresholdBlock, width: int) -> Iterator[str]:
    yield from wrap("Thresholds at which the conditions hold with probability at least", width)
    for least in (0.5, 0.9):
        first, *rest = wrap(block.ranges_text(least), width - 7)
        yield from [f"  {least:.0%}: {first}", *(" " * 7 + line for line in rest)]
