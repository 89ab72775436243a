"""The study as a page of Markdown: promises, a table per real set, made sets by family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from curves_parts import table
from fewlabels.kernels.arrays import Floats
from runs import across
from study.heading import at_usual, heading
from study.protocol import DEFAULT, LEVELS, METRICS, PUBLISHED, REFERENCE, USUAL
from study.results import Place, StudyResults
from study.statistics import Figure, mean, over_clusters, ratio
from study.targets import (
    COVERED,
    FLOOR,
    NARROW,
    NEAR_LOWEST,
    NOT_WORSE,
    PUBLISHED_SET,
    REDUCED,
    WIDE,
    Compared,
    Promises,
    counted,
    promises,
    why_wider,
)

_MOST_NAMED = 12
_SHORT = {"balanced_accuracy": "balanced acc.", "average_precision": "average prec."}


def render(results: StudyResults, more: Sequence[str] = ()) -> str:
    """The page; `more` are sections behind it, as Markdown.

    Errors, widths and biases are in percentage points; ± is a standard error.
    """
    found = promises(results)
    lines = [*heading(results), *_promises(results, found), *_broken(results, found)]
    lines += [*_tables(results), *_failures(results), *more]
    return "\n".join(lines).rstrip() + "\n"


def render_text(results: StudyResults) -> str:
    """The promises alone, for a terminal."""
    return "\n".join(_promises(results, promises(results))[2:]).rstrip()


# --- promises -------------------------------------------------------------------------------------


def _promises(results: StudyResults, found: Promises) -> list[str]:
    rows = (
        (f"error lowest, or within {NEAR_LOWEST - 1:.0%} of it: 90% of cells", found.lowest),
        (f"error at most {NOT_WORSE:.2f} of labeled-only's, 20 labels or more", found.labeled),
        (f"90% intervals hold {COVERED[0]:.0%} to {COVERED[1]:.0%}: 90% of cells", found.coverage),
        (f"and never below {FLOOR:.0%}", found.floor),
        (f"width at most {WIDE} of labeled-only's", found.width),
    )
    head = [
        "promise", "sets", "cells", "as measured", "not broken beyond 2 s.e.", "worst cell",
    ]  # fmt: skip
    shares = [
        (promise, part, share.kept.n, _percent(share.kept), _percent(share.not_broken),
         _cell(share.extreme))
        for promise, by_part in rows
        for part, share in by_part.items()
        if share.extreme is not None
    ]  # fmt: skip
    widths = [
        (f"median width at most {NARROW} of labeled-only's", part, f.n, number(f, 1, 2), "", "")
        for part, f in found.median_width.items()
        if f.n
    ]
    return ["## Promises", "", table(head, [*shares, *widths]), *_published(found), ""]


def _published(found: Promises) -> list[str]:
    """Against the published method, where its set is there."""
    if not found.published:
        return []
    rows = [
        (cell.place.n_labeled, cell.metric, f"{most:.2f}", number(cell.figure, 1, 3),
         _verdict(cell, most))
        for cell, most in found.published
    ]  # fmt: skip
    return [
        "",
        f"On {PUBLISHED_SET} against {PUBLISHED}, as the ratio of errors:",
        "",
        table(["labels", "metric", "at most", "ratio", "kept"], rows),
    ]


def _verdict(cell: Compared, most: float) -> str:
    """Surely, as measured, or not; a metric that may not lose is broken by a sure loss alone."""
    if cell.surely_below(most):
        return "yes, beyond 2 s.e."
    if cell.figure.value <= most:
        return "yes, as measured"
    return "no" if cell.metric in REDUCED or cell.surely_above(most) else "not surely lost"


def _cell(cell: Compared) -> str:
    other = f" to {cell.other}" if cell.other else ""
    return (
        f"{number(cell.figure, 1, 2)}{other} ({cell.place.set}, {cell.metric}, "
        f"n_l {cell.place.n_labeled}{_size(cell.place)})"
    )


def _size(place: Place) -> str:
    return "" if place.n_unlabeled == USUAL else f", n_u {place.n_unlabeled:,}"


def _broken(results: StudyResults, found: Promises) -> list[str]:
    lines = ["## Where promises break, beyond two standard errors", ""]
    for title, share in (
        ("Not the lowest error", found.lowest["all"]),
        ("Worse than labeled-only", found.labeled["all"]),
        ("Coverage outside", found.coverage["all"]),
        ("Wider than labeled-only", found.width["all"]),
    ):
        counts = ", ".join(f"{metric} {n}" for metric, n in counted(share.broken).items())
        total = f"{len(share.broken)} cells" + (f" ({counts})" if counts else "")
        lines += [f"**{title}**: {total}.", ""]
        for cell in share.broken[:_MOST_NAMED]:
            why = f": {why_wider(results, cell)}" if title.startswith("Wider") else ""
            lines.append(f"- {_cell(cell)}{why}")
        if share.broken:
            lines.append("")
    return lines


# --- tables ---------------------------------------------------------------------------------------


def _tables(results: StudyResults) -> list[str]:
    """A table per real set, the made ones by family, and what only some cells have."""
    if not results.table:
        return []
    cells = _cells(results)
    usual = cells[cells.usual]
    return [
        *(line for name in _real_names(results) for line in _real(results, usual, name)),
        *_made(results), *_by_size(cells), *_others(results, usual), *_calibrated(results, usual),
    ]  # fmt: skip


def _cells(results: StudyResults) -> pd.DataFrame:
    """A row per cell: its figures, its part of the sets, and its text (`_three`)."""
    cells = pd.json_normalize(list(results.cells()))
    cells["part"] = ["made" if results.sets[n]["family"] else "real" for n in cells.set]
    cells["usual"] = cells.n_unlabeled == cells.set.map(results.usual)
    cells["text"] = [_three(cell) for cell in cells.to_dict("records")]
    return cells


def _three(cell: Mapping[str, Any]) -> str:
    """Error, coverage of 90% intervals in percent and width, each ± its standard error."""
    if np.isnan(cell["error.mean"]):
        return "none"
    said = [
        number(Figure(cell[f"{name}.mean"], cell[f"{name}.se"], cell["runs"]), 100, digits)
        for name, digits in (("error", 1), ("coverage_0.9", 0), ("width_0.9", 1))
    ]
    failed = cell["failed.mean"]
    return ", ".join([*said, *([f"no answer {failed:.0%}"] if failed >= 0.005 else [])])


def _markdown(wide: pd.DataFrame, head: Sequence[str]) -> list[str]:
    rows = ((*map(_plain, key), *texts) for key, *texts in wide.itertuples())
    return [table([*head, *map(_name, wide.columns)], rows), ""]


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:,}"


def _real_names(results: StudyResults) -> list[str]:
    return [name for name, facts in results.sets.items() if not facts["family"]]


def _real(results: StudyResults, usual: pd.DataFrame, name: str) -> list[str]:
    """Error, coverage and width of 90% of the methods of all sets, at the usual size."""
    own = usual[(usual.set == name) & usual.method.isin(results.study.methods)]
    if own.empty:
        return []
    own = own.sort_values("metric", key=lambda m: m.map(METRICS.index), kind="stable")
    texts = across(own.replace({"metric": _SHORT}), ["metric", "n_labeled"], "method")
    return [
        f"## {name}",
        "",
        f"{_described(results.sets[name])}. Each cell: error, coverage of 90% intervals in "
        "percent, width; each ± its standard error.",
        "",
        *_markdown(
            texts.reindex(columns=list(results.study.methods), fill_value=""), ["metric", "n_l"]
        ),
    ]


def _described(facts: Mapping[str, Any]) -> str:
    prevalence = facts["prevalence"]
    share = "" if prevalence is None else f", {prevalence:.1%} positive"
    low, high = facts["accuracy"]
    return (
        f"{facts['n_items']:,} items, {facts['n_models']} classifiers of accuracy {low:.3f} to "
        f"{high:.3f}, {facts['n_classes']} classes{share}"
    )


def _made(results: StudyResults) -> list[str]:
    """Made sets, a row per family and metric: ratios of errors, coverage, and widths."""
    made = {name: facts for name, facts in results.sets.items() if facts["family"]}
    if not made:
        return []
    rivals = [m for m in results.study.methods if m != DEFAULT]
    cells = _beside(results, made, rivals)
    head = [*(f"error / {m}" for m in rivals), "coverage", "least", "width / labeled"]
    rows = [
        (family, "all", *_summed(cells[cells.family == family], rivals))
        for family in dict.fromkeys(facts["family"] for facts in made.values())
    ]
    rows += [("all", _name(m), *_summed(cells[cells.metric == m], rivals)) for m in METRICS]
    rows.append(("all", "all", *_summed(cells, rivals)))
    facts = [
        (
            name, f"{f['n_items']:,}", f["n_classes"], f["n_models"],
            "" if f["prevalence"] is None else f"{f['prevalence']:.1%}",
            "{:.3f} to {:.3f}".format(*f["accuracy"]),
        )
        for name, f in made.items()
    ]  # fmt: skip
    return [
        "## Made sets",
        "",
        f"By family, and over all labels from 5 on, at {at_usual(results)}: geometric mean of "
        f"the errors of `{DEFAULT}` over those of each other method; coverage of its 90% intervals "
        "in percent; median width over labeled-only's. ± is over sets.",
        "",
        table(["family", "metric", *head], rows),
        "",
        table(["made set", "items", "classes", "classifiers", "positive", "accuracy"], facts),
        "",
    ]


def _beside(results: StudyResults, made: Mapping[str, Any], rivals: Sequence[str]) -> pd.DataFrame:
    """A row per cell of `DEFAULT`: its coverage, its errors over each rival's, and width."""

    def beside(place: Place, rival: str, figure: str, metric: str) -> float:
        if (place, rival) not in results.table:
            return float("nan")
        found = ratio(*results.paired(place, DEFAULT, rival, figure, metric)).value
        return found if found > 0 else float("nan")

    rows = [
        {"set": place.set, "family": made[place.set]["family"], "metric": metric}
        | {rival: beside(place, rival, "error", metric) for rival in rivals}
        | {"width": beside(place, REFERENCE, "width_0.9", metric)}
        | {"coverage": mean(results.table[place, DEFAULT].figure("coverage_0.9", metric)).value}
        for place in results.places
        if place.set in made and place.n_labeled >= 5 and results.is_usual(place)
        and (place, DEFAULT) in results.table
        for metric in METRICS
    ]  # fmt: skip
    columns = ["set", "family", "metric", *rivals, "width", "coverage"]
    return pd.DataFrame(rows, columns=columns).replace(np.inf, np.nan)


def _summed(cells: pd.DataFrame, rivals: Sequence[str]) -> list[str]:
    """The columns of `_beside` over some cells, each ± its standard error over sets."""

    def over_sets(column: str, statistic: Callable[[Floats], float], scale: float) -> str:
        known = cells[cells[column].notna()]
        figure = over_clusters(known[column], known.set, statistic)
        return number(figure, scale, 1 if scale == 100 else 2)

    errors = [over_sets(rival, lambda x: float(np.exp(np.log(x).mean())), 1) for rival in rivals]
    least = "" if cells.coverage.isna().all() else f"{100 * cells.coverage.min():.0f}"
    width = over_sets("width", lambda x: float(np.median(x)), 1)
    return [*errors, over_sets("coverage", np.mean, 100), least, width]


def _by_size(cells: pd.DataFrame) -> list[str]:
    """The sets with several numbers of unlabeled items."""
    several = cells.set.isin(cells.set[~cells.usual])
    if not several.any():
        return []
    own = cells[several & (cells.n_labeled == 20) & (cells.method == DEFAULT)]
    return [
        "## Numbers of unlabeled items",
        "",
        f"`{DEFAULT}` with 20 labels: error, coverage of 90% intervals in percent, width.",
        "",
        *_markdown(across(own, ["set", "n_unlabeled"], "metric"), ["set", "n_u"]),
    ]


def _others(results: StudyResults, usual: pd.DataFrame) -> list[str]:
    """Every method on the central sets: errors with 20 labels."""
    if not results.study.others:
        return []
    own = usual[usual.n_labeled == 20]
    own = own[own.set.isin(own.set[own.method.isin(results.study.others)])]
    own = own.assign(took=["" if np.isnan(s) else f"{s:.2f}" for s in own.seconds])
    return [
        "## Every method",
        "",
        f"With 20 labels and {at_usual(results)}: error, coverage of 90% intervals in percent, "
        "width; and seconds an estimate took on one core.",
        "",
        *_markdown(across(own, ["set", "method", "took"], "metric"), ["set", "method", "seconds"]),
    ]


def _calibrated(results: StudyResults, usual: pd.DataFrame) -> list[str]:
    """Coverage of every level and the interval score, over all cells of a method."""
    figures = [*(f"coverage_{level:g}" for level in LEVELS), "score_0.9"]
    rows = []
    for part, method in product(("made", "real"), results.study.methods):
        own = usual[(usual.part == part) & (usual.method == method)]
        known = [own[own[f"{name}.mean"].notna()] for name in figures]
        texts = [
            number(over_clusters(cells[f"{name}.mean"], cells.set, np.mean), 100, 1)
            for name, cells in zip(figures, known, strict=True)
        ]
        if len(own):
            rows.append((part, method, *texts))
    return [
        "## Levels",
        "",
        f"Mean over all cells with {at_usual(results)} of methods that all sets have: coverage in "
        "percent of intervals of four levels, and interval score of 90% ones (Gneiting & Raftery "
        "2007) in percentage points. ± is over sets.",
        "",
        table(["sets", "method", *(f"{level:.0%}" for level in LEVELS), "score"], rows),
        "",
    ]


def _failures(results: StudyResults) -> list[str]:
    """What methods said where they gave no answer, and in how many settings."""
    said = Counter((m, why) for (_, m), runs in results.table.items() for why in runs.messages)
    if not said:
        return []
    rows = [(method, n, why.replace("|", " ")) for (method, why), n in said.items()]
    return ["## Without an answer", "", table(["method", "settings", "why"], rows), ""]


# --- words ----------------------------------------------------------------------------------------


def _name(metric: str) -> str:
    return _SHORT.get(metric, metric)


def _percent(figure: Figure) -> str:
    return f"{number(figure, 100, 1)}%" if figure.n else ""


def number(figure: Figure, scale: float, digits: int) -> str:
    """A number times `scale` with its standard error; "none" where there is none."""
    if not figure.n or not np.isfinite(figure.value):
        return "none"
    text = f"{scale * figure.value:.{digits}f}"
    if not np.isfinite(figure.se):
        return text
    return f"{text} ± {scale * figure.se:.{max(digits, 1) if scale == 1 else digits}f}"
