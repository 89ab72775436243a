"""Estimates as text: tables with a small ASCII forest plot, a dozen lines in brief; scores."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fewlabels.errors import decides
from fewlabels.report.axis import Axis
from fewlabels.report.blocks import (
    NOT_APPLICABLE,
    PREFERENCES,
    Block,
    Report,
    Row,
    applicable,
    blocks,
    common_axis,
    status_notes,
)
from fewlabels.report.comparison import comparison_lines
from fewlabels.report.confusion import confusion_lines
from fewlabels.report.diagnostics import diagnostics_lines, reference_trust
from fewlabels.report.words import (
    NARROWEST,
    UNDEFINED,
    Role,
    aligned,
    as_text,
    bulleted,
    cell_width,
    count,
    enumerated,
    escape_control,
    fit,
    fitted,
    number_format,
    pad,
    percent,
    plural,
    probability,
    reference_items,
    short_names,
    speaks_of,
    style,
    warning_lines,
    with_interval,
    wrap,
)

_INDENT = 2
_GAP = 2
_GUTTER = 2  # Between tables that lie beside each other.
_WIDEST = 10_000  # More columns than any terminal has.
_NAMES = (10, 18)  # Columns of the names, if they need them: at least; before the plot is wide.
_PLOT = (10, 16, 36)  # Columns of the plot: at least; before long names get more; at most.

_LINES = 12  # Of a result in brief.
_WIDTH, _LONGEST = 80, 100
_MORE = "print() shows all"
_CUT = " ..."
_KINDS = {"probabilities": "probabilities", "hard": "hard predictions", "scores": "scores"}


def headline(report: Report) -> str:
    """How many items, labels, classifiers and classes there are, and which class is positive."""
    annotated, positive = report.get("n_annotated"), report.get("positive")
    facts = [
        plural(report["n_items"], "item"),
        f"{report['n_labeled']:,} labeled",
        f"{annotated:,} with counts of annotators" if annotated else "",
        reference_items(report),
        plural(len(report["models"]), "classifier"),
        plural(len(report["classes"]), "class", "classes"),
    ]
    positive_class = "" if positive is None else f"; positive: {escape_control(positive)}"
    return ", ".join(filter(None, facts)) + positive_class


def warnings(report: Report) -> tuple[str | None, Sequence[str]]:
    """The warning that decides how far to trust the estimates, if any does, and the others."""
    every: Sequence[str] = report.get("warnings") or ()
    # A warning may come twice, once with the status that it is the reason of.
    reasons = {text.partition(": ")[2] for text in every}
    others = [text for text in every if text not in reasons]
    return (others[0], others[1:]) if others and decides(others[0]) else (None, others)


def _first_lines(report: Report, width: int) -> Iterator[str]:
    """What was read, and which column was taken for what where nobody had said it."""
    yield from (style(line, "title") for line in wrap(headline(report), width))
    for entry in report.get("reading") or ():
        yield from (style(f"  {line}", "soft") for line in wrap(entry, width - 2, "  "))


def render_text(report: Report, width: int = 80) -> str:
    """What was read, what decides how far to trust it, and a table per group and metric.

    Classifiers are in the order of the first metric, the best first. Where there is room, two
    metrics lie beside each other.

    `report` is the dictionary of `Estimates.report`.
    """
    width = max(width, NARROWEST)
    shown, unfit = applicable(blocks(report))
    order = [row.model for row in shown[0].ranked()] if shown else []
    deciding, others = warnings(report)
    lines = [*_first_lines(report, width)]
    trust = reference_trust(report)
    if trust is not None:
        lines += [style(f"  {line}", "soft") for line in wrap(trust, width - 2, "  ")]
    if deciding is not None:
        lines += [style(line, "warning") for line in wrap(f"! {deciding}", width, "  ")]

    sizes = {size["group"]: size for size in report.get("groups", ())}
    by_group = {
        group: [_Table.from_block(block, order) for block in members]
        for group, members in itertools.groupby(shown, key=lambda block: block.group)
    }
    overall = _sides([tables for group, tables in by_group.items() if group is None], width)
    grouped = _sides([tables for group, tables in by_group.items() if group is not None], width)
    for group, tables in by_group.items():
        if group is not None:
            size = sizes.get(group)
            totals = f" ({size['n_items']:,} items, {size['n_labeled']:,} labeled)" if size else ""
            heading = fit(escape_control(group) + totals, width)
            lines += ["", style(heading, "title"), "=" * cell_width(heading)]
        sides = overall if group is None else grouped
        for start in range(0, len(tables), len(sides)):
            beside = list(zip(tables[start:], sides, strict=False))
            drawn = [table.lines(side) for table, side in beside]
            lines.append("")
            # Headings of several lines must not push the rows of one table below the other's.
            for line_pair in zip(*drawn, strict=True):
                for cells in itertools.zip_longest(*line_pair, fillvalue=""):
                    padded = (pad(c, s.width) for c, (_, s) in zip(cells, beside, strict=True))
                    lines.append((" " * _GUTTER).join(padded))
    lines += [*diagnostics_lines(report, width), ""]
    if report.get("confusion"):
        lines += [*confusion_lines(report["confusion"], width), ""]

    if shown:
        with_truth = any(row.truth is not None for block in shown for row in block.rows)
        truth = ", x truth, * both" if with_truth else ""
        lines += [
            style(line_pair, "soft")
            for line_pair in wrap(f"o estimate, |--| interval{truth}", width)
        ]
    estimand = f"intervals {speaks_of(report)}"
    if report.get("against") == "distribution":
        estimand += ", against the distribution of annotators' labels"
    made = (
        f"{percent(report['confidence_level'])} {estimand}; method {report['method']}, seed "
        f"{report['seed']}, fewlabels {report['fewlabels']}; classes: "
        f"{', '.join(escape_control(c) for c in report['classes'])}"
    )
    lines += [style(line_pair, "soft") for line_pair in wrap(made, width)]
    for status, message in status_notes(report, shown):
        lines += wrap(f"{status}: {message}", width, "  ")
    if unfit:
        why = report.get("status_messages", {}).get(NOT_APPLICABLE)
        because = f" ({why})" if why else ""
        lines += wrap(f"not applicable here: {enumerated(unfit)}{because}", width, "  ")
    lines += comparison_lines(report, width)
    applying = any(row.status == NOT_APPLICABLE for block in shown for row in block.rows)
    note = [text for text in others if applying or not text.startswith(NOT_APPLICABLE)]
    return as_text([*lines, *bulleted(style("Warnings", "title"), note, width)])


class _Column(NamedTuple):
    """A column of a table: its heading and a cell per row, padded to one width."""

    heading: str
    cells: list[str]
    role: Role | None
    width: int

    @classmethod
    def from_cells(
        cls, heading: str, cells: Sequence[str], *, right: bool = False, role: Role | None = None
    ) -> _Column:
        width = max(map(cell_width, [heading, *cells]))
        padded = [pad(text, width, right=right) for text in [heading, *cells]]
        return cls(padded[0], padded[1:], role, width)


class _Side(NamedTuple):
    """Tables below one another: columns of all, of names and of the plot; how many extras."""

    width: int
    name: int
    plot: int
    extras: int
    scales: Mapping[str, Axis]


class _Table(NamedTuple):
    """A block with its rows as they are shown; `extras` go where the terminal is narrow.

    Names and plot have what is left of the width: with n extras all else takes `taken[n]` columns.
    """

    block: Block
    rows: Sequence[Row]
    above: int  # How many rows stand before those that are hidden.
    hidden: int
    estimates: _Column
    extras: list[_Column]
    status: list[_Column]
    longest: int  # Columns of the longest name.
    taken: list[int]

    @classmethod
    def from_block(cls, block: Block, order: Sequence[str]) -> _Table:
        first, between, last = block.ends(block.ranked())
        rows = [*first, *last] if between else block.in_order(order)
        write = block.write
        room = max((len(write(r.value)) for r in rows if r.value is not None), default=0)
        figures = (block.figures(row) for row in rows)
        cells = [f"{pad(value, room, right=True)} {interval}" for value, interval in figures]
        interval_text = "" if block.level is None else f" [{percent(block.level)} interval]"
        extras = []
        if any(row.truth is not None for row in rows):
            truths = ["-" if row.truth is None else write(row.truth) for row in rows]
            extras.append(_Column.from_cells("truth", truths, right=True))
        if any(row.best is not None for row in rows):
            bests = [probability(row.best) for row in rows]
            extras.append(_Column.from_cells("P(best)", bests, right=True))
        statuses = ["" if row.status == "ok" else escape_control(row.status) for row in rows]
        estimates = _Column.from_cells(f"{pad('value', room)}{interval_text}", cells)
        status = [_Column.from_cells("status", statuses, role="warning")] if any(statuses) else []
        longest = max(cell_width(escape_control(row.model)) for row in rows)
        taken = [
            _INDENT + sum(c.width + _GAP for c in (estimates, *extras[:n], *status))
            for n in range(3)
        ]
        hidden = len(between)
        return cls(block, rows, len(first), hidden, estimates, extras, status, longest, taken)

    def lines(self, side: _Side) -> tuple[list[str], list[str]]:
        """The heading of the table, and its rows."""
        block = self.block
        better = f" ({PREFERENCES[block.direction]})" if block.direction else ""
        # The description is said once, with all items.
        about = f": {block.description}" if block.description and block.group is None else ""
        name = escape_control(block.metric)
        first, *rest = wrap(name + better + about, side.width)
        heading = [style(name, "title") + style(first.removeprefix(name), "soft")]
        heading += [style(line, "soft") for line in rest]
        names = short_names([row.model for row in self.rows], side.name)
        columns = [
            _Column.from_cells("", [*names.values()]),
            self.estimates,
            *self.extras[: side.extras],
        ]
        if side.plot:
            axis = side.scales[block.metric]
            low, high = axis.ends
            plots = [_plot(row, axis, side.plot) for row in self.rows]
            columns.append(_Column.from_cells(low + high.rjust(side.plot - len(low)), plots))
        columns += self.status
        indent, gap = " " * _INDENT, " " * _GAP
        lines = [indent + gap.join(style(column.heading, "soft") for column in columns)]
        for k in range(len(self.rows)):
            cells = (style(c.cells[k], c.role) if c.role else c.cells[k] for c in columns)
            lines.append(indent + gap.join(cells))
        if self.hidden:
            hidden = f"{count(self.hidden)} of {count(len(block.rows))} classifiers"
            left_out = f"... {hidden} are not shown; the JSON and the HTML report have all"
            note = [indent + line for line in wrap(left_out, side.width - _INDENT)]
            lines[1 + self.above : 1 + self.above] = note
        return heading, lines


def _sides(groups: Sequence[Sequence[_Table]], width: int) -> list[_Side]:
    """Two sides where every table fits with all it has, and no name is cut; else one.

    Tables below one another line up: all items and groups each on their own.
    """
    everything = [table for tables in groups for table in tables]
    sides = [(everything, width)] if everything else []
    halves = [[table for tables in groups for table in tables[k::2]] for k in (0, 1)]
    if all(halves):
        least = [
            max(
                t.longest + _GAP + sum(map(len, common_axis([t.block]).ends)) + 1 + t.taken[2]
                for t in half
            )
            for half in halves
        ]
        spare = width - _GUTTER - sum(least)
        if spare >= 0 and max(table.longest for table in everything) <= _NAMES[1]:
            rooms = least[0] + spare // 2, least[1] + spare - spare // 2
            sides = list(zip(halves, rooms, strict=True))
    out = []
    for alike, wide in sides:
        # Groups are compared with one another, so they share a scale; theirs is wider.
        scales = {
            metric: common_axis(table.block for table in alike if table.block.metric == metric)
            for metric in dict.fromkeys(table.block.metric for table in alike)
        }
        # On a narrow terminal the extras go before the names become unreadable.
        rooms_left = [wide - max(table.taken[n] for table in alike) for n in range(3)]
        extras = next((n for n in (2, 1) if rooms_left[n] >= _NAMES[0]), 0)
        room, longest = rooms_left[extras], max(table.longest for table in alike)
        least_plot = max(_PLOT[0], *(sum(map(len, axis.ends)) + 1 for axis in scales.values()))
        name = min(longest, max(_NAMES[1], room - _GAP - _PLOT[1]), room - _GAP - least_plot)
        if name < min(longest, _NAMES[0]):
            out.append(_Side(wide, room, 0, extras, scales))
        else:
            out.append(_Side(wide, name, min(_PLOT[2], room - _GAP - name), extras, scales))
    return out


def _plot(row: Row, axis: Axis, width: int) -> str:
    """A row of the forest plot: interval, estimate, truth."""
    low, value, high, truth = (
        None if number is None else round(axis.at(number) * (width - 1))
        for number in (row.low, row.value, row.high, row.truth)
    )
    cells = [" "] * width
    if low is not None and high is not None:
        cells[low : high + 1] = "-" * (high - low + 1)
        cells[low] = cells[high] = "|"
    if value is not None:
        cells[value] = "o"
    if truth is not None:
        cells[truth] = "*" if truth == value else "x"
    return "".join(cells)


def brief_estimates(name: str, report: Report) -> str:
    """What was read, what decides how far to trust it, and the first rows of the estimates.

    `name` is that of the kind of result; `report` has `estimates` and the facts about them.
    """
    deciding, _ = warnings(report)
    head = wrap(f"{name}: {headline(report)}", _LONGEST)
    if deciding is not None:
        first, *rest = wrap(f"! {deciding}", _WIDTH - len(_CUT))
        head.append(first + (_CUT if rest else ""))
    shown, _ = applicable([block for block in blocks(report) if block.group is None])
    order = [row.model for row in shown[0].ranked()] if shown else []
    cells = []
    for block in shown:
        for row in block.in_order(order):
            status = "" if row.status == "ok" else row.status
            cells.append([row.model, block.metric, *block.figures(row), status])
    room = _LINES - len(head) - 1
    more = []
    if len(cells) > room:
        more = [f"  ... {count(len(cells) - room + 1)} more; {_MORE}"]
        cells = cells[: room - 1]
    table = [["classifier", "metric", "value", "", ""], *cells]
    rows = fitted(table, "llrl", _WIDEST, most=30) if cells else ()
    return as_text([*head, *rows, *more])


def brief_summary(name: str, summary: Callable[[int], str]) -> str:
    """The first lines of a summary, which is made to a width."""
    head = f"{name}: "
    first, *rest = (line for line in summary(_WIDTH - len(head)).split("\n") if line.strip())
    lines = [head + first, *rest]
    if len(lines) > _LINES:
        more = f"  ... {count(len(lines) - _LINES + 1)} more lines; {_MORE}"
        lines = [*lines[: _LINES - 1], more]
    return "\n".join(lines)


def render_predictions(report: Report, width: int = 80) -> str:
    """A line of facts, one per thing that was recognised, and one per classifier.

    `report` is the facts of the headline, `reading`, and `gives`: for each of "probabilities",
    "hard" and "scores" whether each classifier has any.
    """
    width = max(width, NARROWEST)
    rows = []
    for place, model in enumerate(report["models"]):
        kinds = [_KINDS[kind] for kind, has in report["gives"].items() if has[place]]
        rows.append([fit(escape_control(model), 40), " and ".join(kinds) or "no predictions"])
    return as_text([*_first_lines(report, width), *aligned(rows, "l")])


# --- scores of the judged system ------------------------------------------------------------------


_UNCORRECTED = "uncorrected"


def render_score(report: Mapping[str, Any], width: int = 80) -> str:
    """A table per criterion: by which way, by which judge, value and interval.

    `report` is the dictionary of `Scores.to_dict`.
    """
    width = max(width, NARROWEST)
    lines: list[str] = []
    for one in report["criteria"]:
        lines += [*([""] if lines else []), *_criterion(one, report, width)]
    level = percent(report["confidence_level"])
    foot = (
        f"{level} intervals for the population that the items come from; seed {report['seed']}, "
        f"fewlabels {report['fewlabels']}. The uncorrected rate is the judge's own, whose interval "
        "ignores its mistakes."
    )
    return as_text([*lines, "", *wrap(foot, width), *warning_lines(report, width)])


def _criterion(one: Mapping[str, Any], report: Mapping[str, Any], width: int) -> Iterator[str]:
    named = "" if one["criterion"] is None else f"{escape_control(one['criterion'])}: "
    head = f"{named}{escape_control(one['what'])}; {plural(one['n_items'], 'item')}, "
    yield from (
        style(line, "title") for line in wrap(head + f"{count(one['n_labeled'])} labeled", width)
    )
    for line in one["reading"]:
        yield from wrap(f"  {escape_control(line)}", width, "  ")
    write = number_format([row[key] for row in one["rows"] for key in ("value", "low", "high")])
    rows = [["", "value", f"[{percent(report['confidence_level'])} interval]", ""]]
    for row in one["rows"]:
        who = row["way"] if row["judge"] is None else f"{row['way']}, {row['judge']}"
        ends = f"[{write(row['low'])}, {write(row['high'])}]"
        status = "" if row["status"] == "ok" or row["way"] == _UNCORRECTED else row["status"]
        rows.append([who, write(row["value"]), ends, status])
    yield ""
    yield from fitted(rows, "lrl", width, least=20, most=44)
    yield ""
    for judge in one["judges"]:
        yield from wrap(_help(judge), width, "  ")
    if one["people"] is not None:
        yield from wrap(_people(one), width, "  ")
    if one.get("confusion"):
        yield from ["", *confusion_lines(one["confusion"], width)]


def _help(judge: Mapping[str, Any]) -> str:
    name, rho, n = escape_control(judge["judge"]), judge["correlation"], judge["n_labeled"]
    if not n:
        return f"{name}: no labeled item has a predicted class or probabilities of it"
    if rho is None:
        return (
            f"{name}: no correlation with the labels can be told from {plural(n, 'labeled item')}"
        )
    above = "above" if judge["helps"] else "not above"
    return (
        f"{name}: correlation with the labels {rho:.2f}, {above} the bound {judge['bound']:.2f} "
        f"(1/sqrt(n - 2), n = {n}): it {'helps' if judge['helps'] else 'cannot help'}"
    )


def _people(one: Mapping[str, Any]) -> str:
    people = one["people"]
    of_all = {row["metric"]: row for row in people["estimates"] if row["annotator"] is None}

    def figures(name: str) -> str:
        return with_interval(of_all[name], lambda n: UNDEFINED if n is None else f"{n:.2f}")

    shares = ", ".join(f"{escape_control(n)} {v:.2f}" for n, v in one["judge_pairs"].items())
    return (
        f"people among themselves ({plural(people['n_items'], 'item')} with several labels): "
        f"Krippendorff's alpha ({people['scale']}) {figures('alpha')}, Fleiss' kappa "
        f"{figures('fleiss_kappa')}; two of them agree on {figures('agreement')} of the items"
        + (f", a judge and one of them on {shares}" if shares else "")
    )
