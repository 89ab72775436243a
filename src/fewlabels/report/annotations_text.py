"""Losses of label histograms as text: a table per classifier, then what each number is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fewlabels.report.annotations_blocks import (
    LOSSES,
    MEANINGS,
    OF_PAIRS,
    OF_STATISTIC,
    UNBIASED,
    Answer,
    Assessed,
    figures,
    share,
    statistic_meaning,
)
from fewlabels.report.blocks import Report
from fewlabels.report.curve_text import NARROWEST, aligned
from fewlabels.report.words import (
    cell_width,
    classes_text,
    clean,
    fit,
    pad,
    percent,
    plural,
    short_names,
    wrap,
)
from fewlabels.wording import listed

_MOST = 20
"""Of more classifiers than these only the nearest are printed."""

_NAMES = (18, 10)  # Columns of the names; where they do not fit.
_OF_GROUPS = ("EL", "CL", "DL", "CE_disagreement")


def render_annotations(report: Report, width: int = 80) -> str:
    """The losses of every classifier, a table each, in lines of at most `width` columns.

    Parameters
    ----------
    report
        The dictionary of `Assessment.to_dict`; plain JSON values.
    width
        Columns of the terminal; less than 60 counts as 60.

    Returns
    -------
    str
        Lines without colour codes; control characters in names are escaped.
    """
    width = max(width, NARROWEST)
    found = Assessed(report)
    lines = [line for said in _head(found) for line in wrap(said, width)]
    lines += ["", *wrap(_answer(found.answer), width)]
    for model in found.models[:_MOST]:
        lines += ["", fit(clean(model), width), *_table(found, model, width)]
    if len(found.models) > _MOST:
        hidden = plural(len(found.models) - _MOST, "more classifier")
        lines += ["", *wrap(f"... {hidden}: the JSON and the HTML report have all", width)]
    for group in found.groups:
        lines += ["", *_group(found, group, width)]
    lines += ["", *_meanings(found, width)]
    warnings: Sequence[str] = report.get("warnings") or ()
    if warnings:
        lines += ["", "Warnings"]
        for said in warnings:
            lines += wrap(f"- {said}", width, "  ")
    return "\n".join(line.rstrip() for line in lines)


def _head(found: Assessed) -> Iterator[str]:
    report = found.report
    yield f"{plural(report['n_items'], 'item')}; {found.labels}; {classes_text(report)}"
    yield f"fewlabels {report['fewlabels']}, {report['method']}, seed {report['seed']}"
    yield f"Classes: {listed(report['classes'], 12)}"
    if found.calibration:
        yield f"Applied first: {found.calibration}"


def _answer(answer: Answer | None) -> str:
    """The first paragraph."""
    if answer is None:
        return "No classifier could be judged: no item has both a label and a prediction."
    leader, name = answer.leader, clean(answer.leader.model)
    value, interval = figures(answer.verdict.block, leader)
    nearest = "the label distribution" if answer.metric == "EL" else "the labels"
    distance = f"{answer.metric} {' '.join(filter(None, (value, interval)))}."
    if answer.verdict.n_ranked > 1:
        said = [f"{name} is nearest to {nearest}: {distance}"]
    else:
        said = [f"The squared distance of {name} from {nearest}: {distance}"]
    if answer.verdict.rivals:
        n = len(answer.verdict.rivals)
        overlap = "The interval of 1 other overlaps"
        if n > 1:
            overlap = f"The intervals of {plural(n, 'other')} overlap"
        said.append(f"{overlap} with its own, so the order is not settled.")
    said.append(answer.parts)
    if answer.rates is not None:
        said.append(
            f"Two annotators disagree on {share(answer.rates.observed)} of the items; {name} "
            f"predicts {share(answer.rates.predicted)}."
        )
    return " ".join(filter(None, said))


def _table(found: Assessed, model: str, width: int) -> Iterator[str]:
    """Losses of one classifier, all items."""
    metrics = [*LOSSES, *OF_PAIRS]
    metrics += [f"{metric}_{name}" for name in found.statistics for metric in OF_STATISTIC]
    cells = [["value", "" if found.level is None else f"[{percent(found.level)} interval]", ""]]
    for metric in metrics:
        row = found.row(model, metric)
        status = "" if row.status in ("ok", "undefined") else row.status
        cells.append([*figures(found.block(metric), row), status])
    # Names of statistics can have any length.
    room = width - sum(2 + max(map(len, column)) for column in zip(*cells, strict=True)) - 2
    names = ["", *_padded(metrics, room)]
    rows = [[name, *rest] for name, rest in zip(names, cells, strict=True)]
    yield from aligned(rows, (False, True, False, False))
    for rates in found.rates:
        if rates.model == model:
            yield (
                f"  two annotators disagree: observed {share(rates.observed)}, predicted "
                f"{share(rates.predicted)}"
            )


def _padded(names: Sequence[str], room: int) -> list[str]:
    """Names of one width, at most `room` columns, no two of them alike."""
    short = short_names(names, room)
    longest = max(map(cell_width, short.values()))
    return [pad(short[name], longest) for name in names]


def _group(found: Assessed, group: str, width: int) -> Iterator[str]:
    """A row per classifier of one group."""
    heading = fit(clean(group), width)
    yield heading
    yield "=" * cell_width(heading)
    for many in range(len(_OF_GROUPS), 0, -1):
        for room in _NAMES:
            lines = list(_group_lines(found, group, _OF_GROUPS[:many], room))
            if max(map(cell_width, lines)) <= width:
                yield from lines
                return


def _group_lines(found: Assessed, group: str, metrics: Sequence[str], room: int) -> Iterator[str]:
    models = found.models[:_MOST]
    rows = [["", "EL", "", *metrics[1:]]]
    for model, name in zip(models, _padded(models, room), strict=True):
        row = [name]
        for metric in metrics:
            value, interval = figures(found.block(metric, group), found.row(model, metric, group))
            row += [value, interval] if metric == "EL" else [value]
        rows.append(row)
    yield from aligned(rows, (False, True, False, *(True for _ in metrics[1:])))


def _meanings(found: Assessed, width: int) -> Iterator[str]:
    for metric in (*LOSSES, *OF_PAIRS):
        yield from wrap(f"{metric}: {MEANINGS[metric]}", width, "  ")
    for name in found.statistics:
        meaning = statistic_meaning(name)
        if meaning:
            yield from wrap(f"{name}: {meaning}", width, "  ")
    pairs = found.report["diagnostics"]["n_items_of_two_labels"]
    if pairs:
        rest = f"Disagreement and EL are of the {plural(pairs, 'item')} with two labels or more"
        yield from wrap(rest, width, "  ")
    if found.negative:
        yield from wrap(f"Below 0: {UNBIASED}", width, "  ")
