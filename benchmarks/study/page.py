"""The study as a page of Markdown: promises, a table per real set, made sets by family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from study.heading import at_usual, heading
from study.protocol import DEFAULT, LEVELS, METRICS, PUBLISHED, USUAL
from study.results import Place, StudyResults
from study.statistics import Figure, coverage, mean, over_clusters, ratio
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
    Share,
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
    for name, facts in results.sets.items():
        if not facts["family"]:
            lines += _real(results, name)
    lines += [*_made(results), *_by_size(results), *_others(results), *_calibrated(results)]
    lines += _failures(results)
    return "\n".join([*lines, *more]).rstrip() + "\n"


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
    return [
        "## Promises",
        "",
        "| promise | sets | cells | as measured | not broken beyond 2 s.e. | worst cell |",
        "|---|---|---|---|---|---|",
        *(
            _share_row(promise, part, share)
            for promise, shares in rows
            for part, share in shares.items()
            if share.kept.n
        ),
        *(
            f"| median width at most {NARROW} of labeled-only's | {part} | {median.n} | "
            f"{number(median, 1, 2)} | | |"
            for part, median in found.median_width.items()
            if median.n
        ),
        *_published(found),
        "",
    ]


def _published(found: Promises) -> list[str]:
    """Against the published method, where its set is there."""
    if not found.published:
        return []
    return [
        "",
        f"On {PUBLISHED_SET} against {PUBLISHED}, as the ratio of errors:",
        "",
        "| labels | metric | at most | ratio | kept |",
        "|---|---|---|---|---|",
        *(
            f"| {cell.place.n_labeled} | {cell.metric} | {most:.2f} | "
            f"{number(cell.figure, 1, 3)} | {_verdict(cell, most)} |"
            for cell, most in found.published
        ),
    ]


def _share_row(promise: str, part: str, share: Share) -> str:
    assert share.extreme is not None
    return (
        f"| {promise} | {part} | {share.kept.n} | {_percent(share.kept)} | "
        f"{_percent(share.not_broken)} | {_cell(share.extreme)} |"
    )


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


def _real(results: StudyResults, name: str) -> list[str]:
    """Error, coverage and width of 90% of the methods of all sets, at the usual size."""
    methods = results.study.methods
    places = [p for p in results.places if p.set == name and results.is_usual(p)]
    if not places:
        return []
    facts = results.sets[name]
    lines = [
        f"## {name}",
        "",
        f"{_described(facts)}. Each cell: error, coverage of 90% intervals in percent, width; "
        "each ± its standard error.",
        "",
        "| metric | n_l | " + " | ".join(methods) + " |",
        "|---" * (2 + len(methods)) + "|",
    ]
    for metric in METRICS:
        for place in places:
            cells = [_three(results, place, method, metric) for method in methods]
            lines.append(f"| {_name(metric)} | {place.n_labeled} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def _described(facts: Any) -> str:
    prevalence = facts["prevalence"]
    share = "" if prevalence is None else f", {prevalence:.1%} positive"
    low, high = facts["accuracy"]
    return (
        f"{facts['n_items']:,} items, {facts['n_models']} classifiers of accuracy {low:.3f} to "
        f"{high:.3f}, {facts['n_classes']} classes{share}"
    )


def _three(results: StudyResults, place: Place, method: str, metric: str) -> str:
    runs = results.table.get((place, method))
    if runs is None:
        return ""
    error = mean(runs.figure("error", metric))
    if not error.n:
        return "none"
    covered, width = (
        coverage(runs.figure("coverage_0.9", metric)),
        mean(runs.figure("width_0.9", metric)),
    )
    failed = mean(runs.figure("failed", metric)).value
    lost = f", no answer {failed:.0%}" if failed >= 0.005 else ""
    return f"{number(error, 100, 1)}, {number(covered, 100, 0)}, {number(width, 100, 1)}{lost}"


def _made(results: StudyResults) -> list[str]:
    """Made sets, a row per family and metric: ratios of errors, coverage, and widths."""
    families = list(dict.fromkeys(f["family"] for f in results.sets.values() if f["family"]))
    if not families:
        return []
    lines = [
        "## Made sets",
        "",
        f"By family, and over all labels from 5 on, at {at_usual(results)}: geometric mean of "
        f"the errors of `{DEFAULT}` over those of each other method; coverage of its 90% intervals "
        "in percent; median width over labeled-only's. ± is over sets.",
        "",
    ]
    rivals = [m for m in results.study.methods if m != DEFAULT]
    head = [*(f"error / {m}" for m in rivals), "coverage", "least", "width / labeled"]
    lines += ["| family | metric | " + " | ".join(head) + " |", "|---" * (2 + len(head)) + "|"]
    for family in families:
        sets = [n for n, f in results.sets.items() if f["family"] == family]
        lines.append(_summed(results, sets, family, METRICS, "all", rivals))
    every = [n for n, f in results.sets.items() if f["family"]]
    for metric in METRICS:
        lines.append(_summed(results, every, "all", (metric,), _name(metric), rivals))
    lines.append(_summed(results, every, "all", METRICS, "all", rivals))
    return [*lines, "", *_made_facts(results)]


def _made_facts(results: StudyResults) -> list[str]:
    """What the made sets are, a row each."""
    return [
        "| made set | items | classes | classifiers | positive | accuracy |",
        "|---|---|---|---|---|---|",
        *(
            f"| {name} | {f['n_items']:,} | {f['n_classes']} | {f['n_models']} | "
            f"{'' if f['prevalence'] is None else format(f['prevalence'], '.1%')} | "
            f"{f['accuracy'][0]:.3f} to {f['accuracy'][1]:.3f} |"
            for name, f in results.sets.items()
            if f["family"]
        ),
        "",
    ]


def _summed(
    results: StudyResults, sets: Sequence[str], title: str, metrics: Sequence[str], shown: str,
    rivals: Sequence[str],
) -> str:  # fmt: skip
    """One row over some sets and metrics; what each cell is summed from are places."""
    places = [
        (p, m)
        for p in results.places
        for m in metrics
        if p.set in sets and p.n_labeled >= 5 and results.is_usual(p)
        and (p, DEFAULT) in results.table
    ]  # fmt: skip
    texts = []
    for figure, others in (("error", rivals), ("width_0.9", ["labeled"])):
        for rival in others:
            pairs = [
                (p.set, ratio(*results.paired(p, DEFAULT, rival, figure, m)).value)
                for p, m in places
                if (p, rival) in results.table
            ]
            pairs = [(s, r) for s, r in pairs if np.isfinite(r) and r > 0]
            names, values = [s for s, _ in pairs], [r for _, r in pairs]
            statistic = _geometric if figure == "error" else _middle
            texts.append(number(over_clusters(values, names, statistic), 1, 2))
    covered = [(p.set, mean(results.table[p, DEFAULT].figure("coverage_0.9", m)).value)
               for p, m in places]  # fmt: skip
    covered = [(s, c) for s, c in covered if np.isfinite(c)]
    share = over_clusters([c for _, c in covered], [s for s, _ in covered], _average)
    least = f"{100 * min(c for _, c in covered):.0f}" if covered else ""
    middle = [number(share, 100, 1), least]
    return f"| {title} | {shown} | " + " | ".join([*texts[:-1], *middle, texts[-1]]) + " |"


def _geometric(x: Any) -> float:
    return float(np.exp(np.mean(np.log(x))))


def _average(x: Any) -> float:
    return float(np.mean(x))


def _middle(x: Any) -> float:
    return float(np.median(x))


def _by_size(results: StudyResults) -> list[str]:
    """The sets with several numbers of unlabeled items."""
    named = {p.set for p in results.places if not results.is_usual(p)}
    if not named:
        return []
    lines = [
        "## Numbers of unlabeled items",
        "",
        f"`{DEFAULT}` with 20 labels: error, coverage of 90% intervals in percent, width.",
        "",
        "| set | n_u | " + " | ".join(map(_name, METRICS)) + " |",
        "|---" * (2 + len(METRICS)) + "|",
    ]
    for place in results.places:
        if place.set in named and place.n_labeled == 20:
            cells = [_three(results, place, DEFAULT, metric) for metric in METRICS]
            lines.append(f"| {place.set} | {place.n_unlabeled:,} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def _others(results: StudyResults) -> list[str]:
    """Every method on the central sets: errors with 20 labels."""
    if not results.study.others:
        return []
    methods = [*results.study.methods, *results.study.others]
    lines = [
        "## Every method",
        "",
        f"With 20 labels and {at_usual(results)}: error, coverage of 90% intervals in percent, "
        "width; and seconds an estimate took on one core.",
        "",
        "| set | method | seconds | " + " | ".join(map(_name, METRICS)) + " |",
        "|---" * (3 + len(METRICS)) + "|",
    ]
    for place in results.places:
        present = results.methods_at(place)
        if place.n_labeled != 20 or not results.is_usual(place):
            continue
        if not set(present) & set(results.study.others):
            continue
        for method in (m for m in methods if m in present):
            cells = [_three(results, place, method, metric) for metric in METRICS]
            took = mean(results.table[place, method].seconds)
            seconds = "" if not took.n else f"{took.value:.2f}"
            lines.append(f"| {place.set} | {method} | {seconds} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def _calibrated(results: StudyResults) -> list[str]:
    """Coverage of every level and the interval score, over all cells of a method."""
    lines = [
        "## Levels",
        "",
        f"Mean over all cells with {at_usual(results)} of methods that all sets have: coverage in "
        "percent of intervals of four levels, and interval score of 90% ones (Gneiting & Raftery "
        "2007) in percentage points. ± is over sets.",
        "",
        "| sets | method | " + " | ".join(f"{level:.0%}" for level in LEVELS) + " | score |",
        "|---" * (3 + len(LEVELS)) + "|",
    ]
    for part in ("made", "real"):
        for method in results.study.methods:
            own = [
                (p.set, runs)
                for (p, m), runs in results.table.items()
                if m == method and results.is_usual(p)
                and bool(results.sets[p.set]["family"]) == (part == "made")
            ]  # fmt: skip
            texts = []
            for name in (*(f"coverage_{level:g}" for level in LEVELS), "score_0.9"):
                pairs = [(s, mean(r.figure(name, k)).value) for s, r in own for k in METRICS]
                pairs = [(s, v) for s, v in pairs if np.isfinite(v)]
                figure = over_clusters([v for _, v in pairs], [s for s, _ in pairs], _average)
                texts.append(number(figure, 100, 1))
            if own:
                lines.append(f"| {part} | {method} | " + " | ".join(texts) + " |")
    return [*lines, ""]


def _failures(results: StudyResults) -> list[str]:
    """What methods said where they gave no answer, and in how many settings."""
    said: dict[tuple[str, str], int] = {}
    for (_, method), runs in results.table.items():
        for message in runs.messages:
            said[method, message] = said.get((method, message), 0) + 1
    if not said:
        return []
    lines = ["## Without an answer", "", "| method | settings | why |", "|---|---|---|"]
    lines += [f"| {method} | {n} | {why.replace('|', ' ')} |" for (method, why), n in said.items()]
    return [*lines, ""]


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
