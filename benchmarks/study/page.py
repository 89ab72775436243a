"""The study as a page of Markdown: promises, a table per real set, made sets by family.

A cell is a set, its sizes and a metric. Where two methods are compared their runs are paired: both
saw the same items and labels. A cell breaks a promise as measured, and breaks it "surely" if it
does so beyond two standard errors. Errors, widths and biases are in percentage points; ± is a
standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import gmean

from fewlabels import __version__
from runs import across, table
from study.sets import METRICS
from study.statistics import Figure, coverage, mean, number, over_clusters, ratio
from study.trial import DEFAULT, FIGURES, LEVELS, PLACE, PUBLISHED, REFERENCE, UNLABELED

NEAR_LOWEST, NOT_WORSE = 1.05, 1.10
"""Most that the error may be of the lowest one, and of labeled-only's."""
COVERED, FLOOR = (0.87, 0.94), 0.80
"""Where the coverage of 90% intervals belongs, and its least."""
NARROW, WIDE = 0.8, 1.1
"""Most that the median width may be of labeled-only's, and most in any cell."""
PUBLISHED_SET, REDUCTIONS = "CivilComments", {20: 0.15, 50: 0.20, 100: 0.30}
REDUCED, KEPT = ("accuracy", "ece"), ("roc_auc", "average_precision")
"""Least reductions of the error of `PUBLISHED`, by labels; metrics that may not lose."""
FEW_LABELS, FEWEST_RUNS = 20, 0.5
"""Labels alone are a rival from so many labels on, and any other where it often has an answer."""

PROMISES = {
    "lowest": f"error lowest, or within {NEAR_LOWEST - 1:.0%} of it: 90% of cells",
    "labeled": f"error at most {NOT_WORSE:.2f} of labeled-only's, 20 labels or more",
    "coverage": f"90% intervals hold {COVERED[0]:.0%} to {COVERED[1]:.0%}: 90% of cells",
    "floor": f"and never below {FLOOR:.0%}",
    "width": f"width at most {WIDE} of labeled-only's",
}
BREAKS = {
    "lowest": "Not the lowest error", "labeled": "Worse than labeled-only",
    "coverage": "Coverage outside", "width": "Wider than labeled-only",
}  # fmt: skip
_CELL = [*PLACE, "metric"]
_SHORT = {"balanced_accuracy": "balanced acc.", "average_precision": "average prec."}
_MOST_NAMED, _MOST_RUNS = 12, 4


def render(rows: pd.DataFrame, facts: Mapping[str, Any], seed: int, more: Sequence[str]) -> str:
    """The page from `trial.table` and the facts of each set; `more` are sections behind it."""
    cells, found = cells_of(rows), judged(rows)
    real = [name for name in dict.fromkeys(rows["set"]) if not facts[name]["family"]]
    parts = [*_heading(rows, facts, seed), *_promises(rows, found), *_broken(rows, found)]
    for name in real:
        parts += _real(cells, name, facts[name])
    parts += [*_made(rows, facts), *_levels(cells), *_failures(rows), *more]
    return "\n\n".join(parts).rstrip() + "\n"


def render_text(rows: pd.DataFrame) -> str:
    """The promises alone, for a terminal."""
    return "\n\n".join(_promises(rows, judged(rows))[1:])


def cells_of(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per cell and method: the mean of each figure, its text, and seconds."""
    groups = rows.groupby([*PLACE, "family", "method", "metric"], sort=False)
    cells = groups[[*FIGURES]].mean().reset_index()
    cells["text"] = [_three(own) for _, own in groups]
    return cells


def _three(own: pd.DataFrame) -> str:
    """Error, coverage of 90% intervals in percent and width, each ± its standard error."""
    figures = mean(own.error), coverage(own["coverage_0.9"]), mean(own["width_0.9"])
    if not figures[0].n:
        return "none"
    texts = [number(one, 100, digits) for one, digits in zip(figures, (1, 0, 1), strict=True)]
    failed = own.failed.mean()
    return ", ".join([*texts, *([f"no answer {failed:.0%}"] if failed >= 0.005 else [])])


def ratios(rows: pd.DataFrame, other: str, figure: str) -> pd.DataFrame:
    """A figure of the default over another method's in every cell that has both."""
    both = rows[rows.method == DEFAULT].merge(
        rows[rows.method == other], on=[*_CELL, "run"], suffixes=("", "_other")
    )
    return _figures([
        (*key, own.family.iloc[0], other, *ratio(own[figure], own[f"{figure}_other"]))
        for key, own in both.groupby(_CELL, sort=False)
    ])  # fmt: skip


def _figures(found: list[Any]) -> pd.DataFrame:
    """Cells whose figure is known."""
    columns = [*_CELL, "family", "other", "value", "se", "n"]
    return pd.DataFrame(found, columns=columns).dropna(subset="value")


def judged(rows: pd.DataFrame) -> pd.DataFrame:
    """Cells of every promise, by `promise`: kept where `excess` is at most 0.

    The lowest error is that of the same runs: the lowest of several means is biased downwards,
    which is in favour of the others.
    """
    known = rows.error.notna().groupby([rows[c] for c in [*_CELL, "method"]]).transform("mean")
    answering = rows[(rows.method == DEFAULT) | (known >= FEWEST_RUNS)]
    rivals = [m for m in dict.fromkeys(rows.method) if m != DEFAULT]
    lowest = pd.concat([ratios(answering, m, "error") for m in rivals], ignore_index=True)
    lowest = lowest.sort_values("value", ascending=False, kind="stable").drop_duplicates(_CELL)
    order = rows[_CELL].drop_duplicates()
    some = rows[rows.n_labeled >= FEW_LABELS]
    held = _figures([
        (*key, own.family.iloc[0], "", *coverage(own["coverage_0.9"]))
        for key, own in rows[rows.method == DEFAULT].groupby(_CELL, sort=False)
    ])  # fmt: skip
    each = {
        "lowest": (order.merge(lowest, on=_CELL), lambda v: v - NEAR_LOWEST),
        "labeled": (ratios(some, REFERENCE, "error"), lambda v: v - NOT_WORSE),
        "coverage": (held, lambda v: np.maximum(COVERED[0] - v, v - COVERED[1])),
        "floor": (held, lambda v: FLOOR - v),
        "width": (ratios(some, REFERENCE, "width_0.9"), lambda v: v - WIDE),
    }
    return pd.concat(
        [own.assign(promise=name, excess=over(own.value)) for name, (own, over) in each.items()],
        ignore_index=True,
    ).assign(sure=lambda cells: cells.excess - 2 * cells.se > 0)


class Share(NamedTuple):
    """How many cells keep a promise on some sets (standard errors are over sets), and the worst."""

    promise: str
    part: str
    kept: Figure
    not_broken: Figure
    worst: Any


def shares(found: pd.DataFrame) -> list[Share]:
    """Every promise on made sets, real ones and all."""
    return [
        Share(
            promise, part, over_clusters(own.excess <= 0, own["set"], np.mean),
            over_clusters(~own.sure, own["set"], np.mean),
            own.sort_values("excess", ascending=False, kind="stable").iloc[0],
        )
        for promise in PROMISES
        for part, own in _parts(found[found.promise == promise])
    ]  # fmt: skip


def _parts(cells: pd.DataFrame) -> Iterable[tuple[str, pd.DataFrame]]:
    """Cells of made sets, of real ones, and all of them, where there are any."""
    made = cells.family != ""
    parts = {"made": cells[made], "real": cells[~made], "all": cells}
    return [(part, own) for part, own in parts.items() if len(own)]


def published(rows: pd.DataFrame) -> list[tuple[Any, float]]:
    """Cells of `PUBLISHED_SET` against `PUBLISHED`, and the most that each ratio may be."""
    own = ratios(rows[rows["set"] == PUBLISHED_SET], PUBLISHED, "error")
    limits = {m: {n: 1 - least if m in REDUCED else 1.0 for n, least in REDUCTIONS.items()}
              for m in (*REDUCED, *KEPT)}  # fmt: skip
    return [
        (cell, limits[metric][n]) for n in REDUCTIONS for metric in limits
        for cell in own[(own.n_labeled == n) & (own.metric == metric)].itertuples()
    ]  # fmt: skip


def _promises(rows: pd.DataFrame, found: pd.DataFrame) -> list[str]:
    head = ["promise", "sets", "cells", "as measured", "not broken beyond 2 s.e.", "worst cell"]
    lines: list[Any] = [
        (PROMISES[s.promise], s.part, s.kept.n, f"{number(s.kept, 100, 1)}%",
         f"{number(s.not_broken, 100, 1)}%", _cell(s.worst))
        for s in shares(found)
    ]  # fmt: skip
    for part, own in _parts(found[found.promise == "width"]):
        middle = over_clusters(own.value, own["set"], np.median)
        name = f"median width at most {NARROW} of labeled-only's"
        lines.append((name, part, middle.n, number(middle, 1, 2), "", ""))
    out = ["## Promises", table(head, lines)]
    if said := [
        (cell.n_labeled, cell.metric, f"{most:.2f}", number(_figure(cell), 1, 3),
         _verdict(cell, most))
        for cell, most in published(rows)
    ]:  # fmt: skip
        out += [f"On {PUBLISHED_SET} against {PUBLISHED}, as the ratio of errors:",
                table(["labels", "metric", "at most", "ratio", "kept"], said)]  # fmt: skip
    return out


def _figure(cell: Any) -> Figure:
    return Figure(cell.value, cell.se, cell.n)


def _verdict(cell: Any, most: float) -> str:
    """Surely, as measured, or not; a metric that may not lose is broken by a sure loss alone."""
    if cell.value + 2 * cell.se < most:
        return "yes, beyond 2 s.e."
    if cell.value <= most:
        return "yes, as measured"
    return "no" if cell.metric in REDUCED or cell.value - 2 * cell.se > most else "not surely lost"


def _cell(cell: Any) -> str:
    other = f" to {cell.other}" if cell.other else ""
    size = "" if cell.n_unlabeled == UNLABELED else f", n_u {cell.n_unlabeled:,}"
    place = f"{cell['set']}, {cell.metric}, n_l {cell.n_labeled}{size}"
    return f"{number(_figure(cell), 1, 2)}{other} ({place})"


def _broken(rows: pd.DataFrame, found: pd.DataFrame) -> list[str]:
    out = ["## Where promises break, beyond two standard errors"]
    for promise, title in BREAKS.items():
        broken = found[(found.promise == promise) & found.sure]
        broken = broken.sort_values("excess", ascending=False, kind="stable")
        # The commonest first, those alike as they come.
        counts = broken.groupby("metric", sort=False).size()
        counts = counts.sort_values(ascending=False, kind="stable")
        by_metric = ", ".join(f"{metric} {n}" for metric, n in counts.items())
        out.append(f"**{title}**: {len(broken)} cells{f' ({by_metric})' * bool(by_metric)}.")
        named = [
            f"- {_cell(cell)}" + (f": {_why_wider(rows, cell)}" if promise == "width" else "")
            for _, cell in broken.head(_MOST_NAMED).iterrows()
        ]
        out += ["\n".join(named)] * bool(named)
    return out


def _why_wider(rows: pd.DataFrame, cell: pd.Series) -> str:
    """What can be said of a cell whose interval is wider than labeled-only's."""
    own = rows[(rows[_CELL] == cell[_CELL]).all(axis=1)].groupby("method")
    held, missing = own["coverage_0.9"].mean(), own.failed.mean()[REFERENCE]
    if held[REFERENCE] < COVERED[0]:
        return f"labeled-only's holds {held[REFERENCE]:.0%} only, this one {held[DEFAULT]:.0%}"
    if missing > 0.1:
        return f"labeled-only has no answer in {missing:.0%}"
    return f"both hold: {held[DEFAULT]:.0%}, labeled-only {held[REFERENCE]:.0%}"


def _real(cells: pd.DataFrame, name: str, facts: Mapping[str, Any]) -> list[str]:
    own = cells[cells["set"] == name]
    own = own.sort_values("metric", key=lambda m: m.map(METRICS.index), kind="stable")
    wide = across(own.replace({"metric": _SHORT}), ["metric", "n_labeled"], "method")
    share = "" if facts["prevalence"] is None else f", {facts['prevalence']:.1%} positive"
    low, high = facts["accuracy"]
    return [
        f"## {name}",
        f"{facts['n_items']:,} items, {facts['n_models']} classifiers of accuracy {low:.3f} to "
        f"{high:.3f}, {facts['n_classes']} classes{share}. Each cell: error, coverage of 90% "
        "intervals in percent, width; each ± its standard error.",
        table(["metric", "n_l", *wide.columns], ((*key, *row) for key, *row in wide.itertuples())),
    ]


def _made(rows: pd.DataFrame, facts: Mapping[str, Any]) -> list[str]:
    """Made sets, a row per family and metric: ratios of errors, coverage, and widths."""
    rows = rows[(rows.family != "") & (rows.n_labeled >= 5)]
    made = {name: one for name, one in facts.items() if one["family"]}
    if not made:
        return []
    rivals = [m for m in dict.fromkeys(rows.method) if m != DEFAULT]
    errors = {m: ratios(rows, m, "error") for m in rivals}
    widths = ratios(rows, REFERENCE, "width_0.9")
    held = cells_of(rows[rows.method == DEFAULT]).rename(columns={"coverage_0.9": "value"})
    held = held.dropna(subset="value")

    def summed(some: Callable[[pd.DataFrame], Any]) -> list[str]:
        """Over some cells, each ± its standard error over sets."""

        def over(cells: pd.DataFrame, statistic: Callable[[Any], float]) -> Figure:
            own = cells[some(cells) & np.isfinite(cells.value) & (cells.value > 0)]
            return over_clusters(own.value, own["set"], statistic)

        all_held = held[some(held)]
        least = f"{100 * all_held.value.min():.0f}" if len(all_held) else ""
        mean_held = over_clusters(all_held.value, all_held["set"], np.mean)
        logs = [number(over(errors[m], gmean), 1, 2) for m in rivals]
        return [*logs, number(mean_held, 100, 1), least, number(over(widths, np.median), 1, 2)]

    families = dict.fromkeys(one["family"] for one in made.values())
    lines = [(f, "all", *summed(lambda c, f=f: c.family == f)) for f in families]
    lines += [("all", _SHORT.get(m, m), *summed(lambda c, m=m: c.metric == m)) for m in METRICS]
    lines.append(("all", "all", *summed(lambda c: c.family != "")))
    head = [*(f"error / {m}" for m in rivals), "coverage", "least", "width / labeled"]
    described = [
        (name, f"{f['n_items']:,}", f["n_classes"], f["n_models"],
         "" if f["prevalence"] is None else f"{f['prevalence']:.1%}",
         "{:.3f} to {:.3f}".format(*f["accuracy"]))
        for name, f in made.items()
    ]  # fmt: skip
    return [
        "## Made sets",
        f"By family, and over all labels from 5 on, at {_unlabeled(rows)}: geometric mean of "
        f"the errors of `{DEFAULT}` over those of each other method; coverage of its 90% intervals "
        "in percent; median width over labeled-only's. ± is over sets.",
        table(["family", "metric", *head], lines),
        table(["made set", "items", "classes", "classifiers", "positive", "accuracy"], described),
    ]


def _levels(cells: pd.DataFrame) -> list[str]:
    """Coverage of every level and the interval score, over all cells of a method."""
    figures = [*(f"coverage_{level:g}" for level in LEVELS), "score_0.9"]
    lines = []
    for part, some in list(_parts(cells))[:-1]:
        for method in dict.fromkeys(cells.method):
            own = some[some.method == method]
            lines.append((part, method, *(
                number(over_clusters(one[name], one["set"], np.mean), 100, 1)
                for name in figures for one in [own[own[name].notna()]]
            )))  # fmt: skip
    return [
        "## Levels",
        f"Mean over all cells with {_unlabeled(cells)}: coverage in percent of intervals of four "
        "levels, and interval score of 90% ones (Gneiting & Raftery 2007) in percentage points. ± "
        "is over sets.",
        table(["sets", "method", *(f"{level:.0%}" for level in LEVELS), "score"], lines),
    ]


def _failures(rows: pd.DataFrame) -> list[str]:
    """What methods said where they gave no answer, and in how many settings."""
    failed = rows[rows.message != ""].drop_duplicates([*PLACE, "method", "message"])
    if failed.empty:
        return []
    counts = failed.groupby(["method", "message"], sort=False).size()
    lines = [(method, n, why.replace("|", " ")) for (method, why), n in counts.items()]
    return ["## Without an answer", table(["method", "settings", "why"], lines)]


def either(counts: Iterable[int]) -> str:
    """Different numbers, as "5 or 10"; as a range if there are many."""
    named = [f"{n:,}" for n in sorted(set(counts))]
    return f"{named[0]} to {named[-1]}" if len(named) > _MOST_RUNS else " or ".join(named)


def _unlabeled(rows: pd.DataFrame) -> str:
    sizes = set(rows.n_unlabeled)
    small = ", half of the items of a small set" if len(sizes) > 1 else ""
    return f"{either(sizes)} unlabeled items{small}"


def _heading(rows: pd.DataFrame, facts: Mapping[str, Any], seed: int) -> list[str]:
    made = sum(bool(f["family"]) for f in facts.values())
    counts = rows.groupby([*PLACE, "method"], sort=False).run.nunique()
    by_method = counts.groupby("method", sort=False)
    runs = "; ".join(f"{method} {either(own)}" for method, own in by_method)
    labels = sorted(set(rows.n_labeled))
    hours = rows[rows.metric == METRICS[0]].seconds.sum() / 3600
    return [
        "# Coverage and error study",
        f"Made by `python -m benchmarks study` with fewlabels {__version__}, seed {seed}: "
        f"{len(facts) - made} real and {made} made sets of classifiers, "
        f"{', '.join(map(str, labels))} labels beside {_unlabeled(rows)}, {len(counts):,} cells "
        f"with {len(METRICS)} metrics each, {hours:.1f} processor hours of estimating. Runs per "
        f"cell: {runs}.",
        "A run draws items from the set at random, labels some of them at random (no class is "
        "forced to have a label), and every method sees the same. The truth is the metric on the "
        "whole set. Numbers are means over the classifiers of a run, then over runs; the "
        "classifiers share the labels, so standard errors (±) are over runs; those of coverage "
        "add two runs that hold and two that do not, so that agreement of all is not certainty. "
        "Those of a share of cells, or of a median over cells, are over sets (cluster bootstrap). "
        "Errors and widths are in percentage points.",
        f"On made sets `{DEFAULT}` has the prior that was learned without the set's family; seeds "
        "of the sets are not among those of the prior. Items are drawn without replacement, so "
        "intervals for the population are wider than they need be where the items are a large part "
        "of the set.",
        "The estimand is the metric on the population that the items come from, of each classifier "
        "as it is. What is assumed, and holds here by design: labeled items are a random sample "
        "of the items, these of the population, and labels are right. Not tested here: labels that "
        "were chosen otherwise, shift, labels that annotators disagree on, votes without "
        "probabilities, and single classifiers.",
    ]
