"""The tables of a benchmark's page: settings side by side, a row per method."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from bench.errors import Errors, best, rank_correlation, scale, spread
from bench.protocol import FLOOR, LABELS, REFERENCE
from bench.results import Results

NOTHING = "-"
"""Stands where there is no number; a footnote says why."""

_SAME = 1e-12
"""Equal to the last bits but one: methods that leave probabilities as they are."""

_FACTORS = {
    "labels": "drawn or expected labels", "sharpness": "sharpness of the scores",
    "classifiers": "number of classifiers", "subset": "subset of classifiers",
}  # fmt: skip
_LEVELS = {"labels": "{} labels", "sharpness": "a = {}", "classifiers": "{} classifiers"}
_CURVE_SIZES = (10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1000)

Cell = Mapping[str, Any]


@dataclass
class Table:
    """A table of text: its title, a frame of cells by row and column, and footnotes.

    A table of second rank is `folded`.
    """

    title: str
    cells: pd.DataFrame
    caption: str = ""
    corner: str = "method"
    folded: bool = False
    notes: dict[str, str] = field(default_factory=dict)

    def markdown(self) -> Iterator[str]:
        """Its lines, pleasant to read as text as well."""
        if self.folded:
            yield from ["<details>", f"<summary>{escaped(self.title)}</summary>", ""]
        elif self.title:
            yield from [f"### {escaped(self.title)}", ""]
        if self.caption:
            yield from [self.caption, ""]
        rows = self.cells.rename(index={FLOOR: "*all labels known*"}).itertuples()
        lines = [[self.corner, *map(escaped, self.cells)]]
        lines += [[escaped(str(name)), *row] for name, *row in rows]
        widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
        lines.insert(1, ["-" * widths[0], *("-" * (w - 1) + ":" for w in widths[1:])])
        for first, *rest in lines:
            cells = (text.rjust(w) for text, w in zip(rest, widths[1:], strict=True))
            yield f"| {' | '.join([first.ljust(widths[0]), *cells])} |"
        yield ""
        if self.notes:
            yield from (f"- <sup>{mark}</sup> {text}" for text, mark in self.notes.items())
            yield ""
        if self.folded:
            yield from ["</details>", ""]


def escaped(text: str) -> str:
    """A name as Markdown shows it."""
    return text.replace("<", "&lt;").replace("|", "\\|")


@dataclass(frozen=True)
class Part:
    """What columns of a table show of a cell: how it is written, and its footnote."""

    heading: str
    write: Callable[[Cell], str]
    footnote: Callable[[Cell], str] = lambda cell: ""
    bold: bool = False


def lay_out(
    title: str, cells: pd.DataFrame, by: str, parts: Sequence[Part], methods: Sequence[str],
    **rest: Any,
) -> Table:  # fmt: skip
    """A row per method, and part by part a column per value of `by`, in the order they come in."""
    notes: dict[str, str] = {}
    heads = list(dict.fromkeys(cells[by]))
    named = {head: column_name(by, head, cells) for head in heads}
    there = [m for m in methods if m in {*cells["method"]}]
    records = {(c["method"], c[by]): c for c in cells.to_dict("records")}

    def text(part: Part, place: tuple[str, Any]) -> str:
        cell = records.get(place)
        if cell is None:
            said, note = NOTHING, "no value: the method was not run here"
        else:
            said, note = part.write(cell), part.footnote(cell)
            said = f"**{said}**" if part.bold and cell["best"] is True else said
        if not note:
            return said
        mark = string.ascii_lowercase[len(notes) % 26] * (len(notes) // 26 + 1)
        return f"{said}<sup>{notes.setdefault(note, mark)}</sup>"

    texts = [[text(part, (m, head)) for part in parts for head in heads] for m in there]
    columns = [f"{part.heading} {named[head]}".strip() for part in parts for head in heads]
    return Table(title, pd.DataFrame(texts, index=there, columns=columns), notes=notes, **rest)


def column_name(by: str, value: Any, cells: pd.DataFrame) -> str:
    """A column in words: a number of labels, a level, a group or a classifier."""
    if by == "n_labeled":
        return f"n_l = {value:,}"
    if by == "level":
        return level_name(cells["factor"].iloc[0], value)
    return value.partition("=")[2] or value if by == "group" else str(value)


def number(value: float, digits: int = 2) -> str:
    """A number with so many decimals; nothing is written as minus nothing."""
    return NOTHING if math.isnan(value) else f"{round(value, digits) + 0.0:,.{digits}f}"


def signed(value: float) -> str:
    """A number with its sign."""
    text = number(value)
    return text if text.startswith("-") or text == "0.00" else f"+{text}"


def _error(cell: Cell) -> str:
    """An error ± its standard deviation; of a difference of levels, the paired standard error."""
    write, by = (signed, "se") if cell.get("paired") is True else (number, "sd")
    around = "" if math.isnan(cell["mean"]) or math.isnan(cell[by]) else f" ± {number(cell[by])}"
    return write(cell["mean"]) + around


def _ratio(cell: Cell) -> str:
    low, high = cell["rmae_low"], cell["rmae_high"]
    interval = "" if math.isnan(low) or low == high else f" [{number(low)}, {number(high)}]"
    return number(cell["rmae"]) + interval


def _size(cell: Cell) -> str:
    return NOTHING if math.isnan(cell["ess"]) else f"{cell['ess_bound']}{cell['ess']:,.0f}"


def _size_range(cell: Cell) -> str:
    low, high = cell["ess_low"], cell["ess_high"]
    return _size(cell) + ("" if math.isnan(low) or low == high else f" ({low:,.0f} to {high:,.0f})")


def _coverage(cell: Cell) -> str:
    if math.isnan(cell["coverage"]):
        return NOTHING
    return f"{100 * cell['coverage']:.1f}% ± {100 * cell['coverage_se']:.1f}%"


def plural(n: int, noun: str) -> str:
    """A count and its noun."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _missing(cell: Cell) -> str:
    """Why runs are missing from a cell; "" if none is."""
    why, noun, empty = cell.get("reasons"), cell.get("over"), math.isnan(cell["mean"])
    if not isinstance(why, dict) or not why:
        return ""
    noun, counted = noun if isinstance(noun, str) else "run", not empty or len(why) > 1
    told = "; ".join(f"{r} ({plural(n, noun)})" if counted else str(r) for r, n in why.items())
    if empty:
        return f"no value: {told}"
    return f"mean over {cell['n_runs']:,.0f} of {plural(int(cell['n_of']), noun)}: {told}"


def _own_size(cell: Cell) -> str:
    """ESS of the labels alone, read from their own curve, would be n_l and noise."""
    if cell["method"] != REFERENCE or math.isnan(cell["ess"]):
        return ""
    return "labeled is what the others are measured by: its ESS is its own number of labels"


ERROR = Part("", _error, _missing, bold=True)
RATIO = Part("RMAE", _ratio)
SIZE = Part("ESS", _size, _own_size)
SIZE_RANGE = Part("ESS", _size_range, _own_size)
BIAS = Part("bias", lambda cell: signed(cell["bias"]))
COVERAGE = (Part("coverage", _coverage), Part("width", lambda cell: number(cell["width"])))
LOSS = Part("", lambda cell: f"{number(cell['mean'], 4)} ± {number(cell['sd'], 4)}", bold=True)
RANK = Part("", lambda cell: signed(cell["mean"]))


def factor_name(factor: str) -> str:
    """What a protocol varies, in words."""
    return _FACTORS.get(factor, factor)


def level_name(factor: str, level: str) -> str:
    """A level of a factor, in words."""
    if factor == "labels" and level == "by-item":
        return "item by item"
    return _LEVELS.get(factor, "{}").format(level) if " - " not in level else level


def place_name(place: Mapping[str, Any]) -> str:
    """What a table or figure holds fixed, in words."""
    write: Mapping[str, Callable[[Any], str]] = {
        "dataset": str, "metric": str, "grouping": "by {}".format,
        "level": lambda level: level_name(place["factor"], level),
        "n_labeled": lambda n: plural(n, "label"), "n_unlabeled": "{:,} unlabeled".format,
    }  # fmt: skip
    return ", ".join(say(place[name]) for name, say in write.items() if place.get(name))


def together(cells: pd.DataFrame, *keys: str) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Cells of equal keys, with these as a dictionary, in their order."""
    for values, part in cells.groupby(list(keys), sort=False):
        yield dict(zip(keys, values, strict=True)), part


_FIXED = ("dataset", "factor", "level", "n_unlabeled", "metric")
_SIDES = (*_FIXED, "n_labeled")


def _methods(errors: Errors) -> Iterator[Table]:
    """One table per data set, level and metric; columns are numbers of labels."""
    for place, part in together(errors.of_all, *_FIXED):
        title = place_name(place)
        shown = ((RATIO, "rmae"), (SIZE, "ess"))
        parts = [ERROR, *(extra for extra, name in shown if part[name].notna().any())]
        yield lay_out(title, part, "n_labeled", parts, errors.methods)
        title = f"{title}: bias (mean signed error)"
        yield lay_out(title, part, "n_labeled", [BIAS], errors.methods, folded=True)


def _effective_sizes(errors: Errors) -> Iterator[Table]:
    """Effective sizes, and the curve that they are read from."""
    for place, part in together(errors.of_all, *_FIXED[1:]):
        if part["dataset"].nunique() > 1:
            means = part.groupby(["method", "n_labeled"], as_index=False)["ess"].mean()
            yield lay_out(
                place_name(place), means.assign(ess_bound=""), "n_labeled", [SIZE], errors.methods,
                caption="The mean over the data sets; beyond a curve its end is taken.",
            )  # fmt: skip
    for place, part in together(errors.of_all, *_FIXED):
        curve = errors.curve({**place, "group": ""})
        if curve is None:
            continue
        yield lay_out(place_name(place), part, "n_labeled", [SIZE_RANGE], errors.methods)
        known = curve[curve["mean"].notna()]
        round_sizes = known[known["n_labeled"].isin(_CURVE_SIZES)]
        shown = round_sizes if len(round_sizes) else known.head(len(_CURVE_SIZES))
        shown = shown.assign(method=REFERENCE, best=False)
        shown[["mean", "sd"]] = shown[["mean", "se"]] * scale(place["metric"])
        yield lay_out(
            f"{place['dataset']}, {place['metric']}: the curve", shown, "n_labeled", [ERROR],
            [REFERENCE], folded=True,
            caption="Mean error of the labels alone ± its standard error, by the number of labels.",
        )  # fmt: skip


def _classifiers(errors: Errors) -> Iterator[Table]:
    """One table per data set, level, metric and number of labels; columns are classifiers."""
    cells = pd.concat([errors.cells_of_models, errors.of_all.assign(model="mean")])
    for place, part in together(cells, *_SIDES):
        yield lay_out(place_name(place), part, "model", [ERROR], errors.methods)


def _groups(errors: Errors) -> Iterator[Table]:
    """One table per data set, level, grouping, metric and number of labels; columns are groups."""
    for place, part in together(_grouped(errors), *_SIDES, "grouping"):
        runs = errors.runs.merge(part[[*_SIDES, "group"]].drop_duplicates())
        mean = _mean_of_groups(part, runs).assign(group="mean of groups")
        yield lay_out(
            place_name(place), pd.concat([part, mean]), "group", [ERROR], errors.methods,
            caption="The mean weighs all groups alike.",
        )  # fmt: skip


def _grouped(errors: Errors) -> pd.DataFrame:
    """Cells of groups, those of one column together."""
    cells = errors.cells[errors.cells["group"] != ""]
    cells = cells.assign(grouping=cells["group"].str.partition("=")[0])
    return cells.sort_values("grouping", kind="stable")


def _mean_of_groups(part: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """The mean of the groups' mean errors: small groups count like large ones."""
    marks = best(runs.pivot(index="method", columns=["group", "run"], values="error"))
    means = part.pivot(index="method", columns="group", values="mean")
    complete = means.notna().all(axis=1)
    entered = complete[complete.index != FLOOR].sum()
    found = pd.DataFrame({"mean": means.mean(axis=1).where(complete), "sd": math.nan})
    found["best"] = marks & complete & (entered > 1)
    found["reasons"] = [{} if whole else {"a group has no error": 1} for whole in complete]
    sizes = part.groupby("method")[["n_runs", "n_of"]].max()
    return found.join(sizes).reset_index()


def _mean_ratios(parts: pd.DataFrame, over: Sequence[str], noun: str) -> pd.DataFrame:
    """Mean ratio of every method over data sets, or groups and metrics.

    These are no sample of anything, so the least mean alone is marked.
    """
    found, count = [], len(parts[list(over)].drop_duplicates())
    for method, own in parts.groupby("method", sort=False):
        lost = own.loc[own["rmae"].isna(), "reasons"]
        why = [r for cell in lost for r in cell or ["there is no ratio to that of labeled"]]
        reasons = pd.Series(why, dtype=object).value_counts().sort_index().to_dict()
        found.append({"method": method, **spread(own["rmae"]), "over": noun, "n_of": count,
                      "reasons": reasons})  # fmt: skip
    cells = pd.DataFrame(found)
    entered = cells[(cells["method"] != FLOOR) & cells["mean"].notna()]
    full = entered[entered["n_runs"] == entered["n_runs"].max()]
    return cells.assign(best=(cells.index == full["mean"].idxmin()) & (len(entered) > 1))


def _overview(errors: Errors) -> Iterator[Table]:
    """Mean ratio to Labeled over the data sets, where there are several."""
    for place, part in together(errors.of_all, *_FIXED[1:]):
        if part["dataset"].nunique() > 1:
            cells = pd.concat(
                _mean_ratios(own, ["dataset"], "data set").assign(n_labeled=n)
                for n, own in part.groupby("n_labeled", sort=False)
            )
            yield lay_out(place_name(place), cells, "n_labeled", [ERROR], errors.methods)


def _group_ratios(errors: Errors) -> Iterator[Table]:
    """Mean ratio to Labeled over metrics and groups (SSME, Table 2): a column per grouping."""
    keys = ("dataset", "factor", "level", "n_unlabeled", "n_labeled")
    for place, part in together(_grouped(errors), *keys):
        cells = pd.concat(
            _mean_ratios(own, ["metric", "group"], "cell").assign(column=name)
            for name, own in [*part.groupby("grouping", sort=False), ("all", part)]
        )
        yield lay_out(place_name(place), cells, "column", [ERROR], errors.methods)


_SHARPNESS = (
    "The scores p of two classes become p^a / (p^a + (1 - p)^a), of more p^a / sum p^a: a = 1 "
    "leaves them as they are, a larger a makes them surer."
)


def _levels(errors: Errors) -> Iterator[Table]:
    """Levels side by side; of two, or of labels, also the paired difference of the first two."""
    keys = ("dataset", "factor", "n_unlabeled", "metric", "n_labeled")
    for place, part in together(errors.of_all[errors.of_all["factor"] != ""], *keys):
        levels = list(dict.fromkeys(part["level"]))
        said = [_SHARPNESS] if place["factor"] == "sharpness" else []
        if place["factor"] == "labels":
            levels = [level for level in LABELS if level in levels]
            part = part.sort_values("level", key=lambda v: v.map(levels.index), kind="stable")
        if len(levels) == 2 or (len(levels) > 2 and place["factor"] == "labels"):
            runs = errors.runs.merge(part[[*keys, "level", "group"]].drop_duplicates())
            wide = runs.pivot(index="method", columns=["level", "run"], values="error")
            gaps = (wide[levels[1]] - wide[levels[0]]) * scale(place["metric"])
            name = f"{levels[1]} - {levels[0]}"
            rows = [{"method": m, "level": name, **spread(g)} for m, g in gaps.iterrows()]
            part = pd.concat([part, pd.DataFrame(rows).assign(paired=True, best=False)])
            said.append("The difference is paired by run; ± its standard error.")
        yield lay_out(
            place_name(place), part, "level", [ERROR], errors.methods, caption=" ".join(said)
        )


def _intervals(errors: Errors) -> Iterator[Table]:
    """Coverage and width, where a confidence level was asked for; levels are side by side."""
    cells = errors.of_all
    for varied, part in cells[cells["factor"] != "subset"].groupby(cells["factor"] != ""):
        keys = ["dataset", "factor", "n_unlabeled", "metric", "n_labeled" if varied else "level"]
        for place, own in together(part, *keys):
            if own["coverage"].notna().any():
                by = "level" if varied else "n_labeled"
                yield lay_out(place_name(place), own, by, COVERAGE, errors.methods)


def trait_name(trait: str) -> str:
    """A trait in words."""
    return trait.replace("_", " ").replace(" ece", " ECE")


def _correlation(errors: Errors) -> Iterator[Table]:
    """How alike the classifiers are: a matrix per data set and trait that is known of pairs."""
    for dataset in errors.results.datasets:
        own = errors.traits[errors.traits["dataset"] == dataset.name]
        models = sorted(dataset.models)
        for trait, part in own.groupby("name"):
            pairs = pd.DataFrame(np.nan, index=models, columns=models)
            for level, value in zip(part["level"], part["value"], strict=True):
                a, _, b = level.partition("+")
                if a in models and b in models:
                    pairs.loc[a, b] = pairs.loc[b, a] = value
            if pairs.notna().any(axis=None):
                title = f"{dataset.name}, {trait_name(str(trait))}"
                yield Table(title, pairs.map(number), corner="classifier")


def points(errors: Errors, settings: pd.DataFrame, trait: str) -> pd.DataFrame:
    """The trait `x` and each method's error of the runs of some settings, a row per point.

    Where a trait belongs to a whole level a point is the mean over the level's runs.
    """
    dataset = settings["dataset"].iloc[0]
    own = errors.traits[(errors.traits["dataset"] == dataset) & (errors.traits["name"] == trait)]
    own = own.dropna().rename(columns={"value": "x"})[["level", "run", "x"]]
    by_run = settings.merge(own, on=["level", "run"])
    means = settings.groupby(["level", "method"], sort=False, as_index=False)["error"].mean()
    by_level = means.merge(own[own["run"] == -1], on="level")
    by_level = by_level[~by_level["level"].isin(by_run["level"])]
    found = pd.concat([by_run, by_level], ignore_index=True)
    return found[["x", "method", "level", "run", "error"]]


def _associations(errors: Errors) -> Iterator[Table]:
    """Rank correlation of each method's error with each trait that varies, a table per setting.

    Subsets of classifiers are one table; what else a protocol varies would be confounded.
    """
    runs = errors.runs[errors.runs["group"] == ""]
    runs = runs.assign(within=runs["level"].mask(runs["factor"] == "subset", ""))
    keys = ("dataset", "factor", "within", "n_unlabeled", "metric", "n_labeled")
    for place, part in together(runs, *keys):
        known = errors.traits["dataset"] == place["dataset"]
        rows = [
            (trait_name(trait), method, rank_correlation(own["x"], own["error"]))
            for trait in sorted(errors.traits.loc[known, "name"].unique())
            for method, own in points(errors, part, trait).groupby("method")
        ]
        cells = pd.DataFrame(rows, columns=["trait", "method", "mean"])
        cells = cells[cells.groupby("trait")["mean"].transform("count") > 0]
        if len(cells):
            caption = "Spearman's coefficient; positive where the error grows with the trait."
            title = place_name({**place, "level": place["within"]})
            yield lay_out(title, cells, "trait", [RANK], errors.methods, caption=caption)


TABLES: Mapping[str, tuple[str, Callable[[Errors], Iterator[Table]]]] = {
    "overview": ("RMAE (error over that of labeled), mean over the data sets", _overview),
    "methods": ("Error by number of labels", _methods),
    "intervals": ("Intervals: coverage and width", _intervals),
    "classifiers": ("Error of each classifier", _classifiers),
    "group-ratios": ("RMAE (error over that of labeled), mean over groups and metrics",
                     _group_ratios),
    "groups": ("Error by group", _groups),
    "levels": ("Error by {factor}", _levels),
    "effective-sizes": ("Effective sample size", _effective_sizes),
    "correlation": ("How alike the classifiers are", _correlation),
    "associations": ("Rank correlation of the error with traits of the classifiers",
                     _associations),
}  # fmt: skip
"""The kinds of tables: their title, and what makes them."""

_BROUGHT = {"methods": ("overview",), "groups": ("group-ratios",)}
"""Kinds that come before another."""

OFFERED = ("methods", "classifiers", "groups", "levels", "effective-sizes", "correlation")
"""Tables that a protocol may name; the others come with them."""

_TRENDS = frozenset({"error-by-accuracy", "error-by-calibration", "error-by-correlation"})


def sections(errors: Errors) -> Iterator[tuple[str, str, list[Table]]]:
    """Kind, title and tables of all that a protocol asks for, coverage behind the first kind."""
    wanted = list(errors.results.protocol.tables)
    last = "methods" if "methods" in wanted else next(iter(wanted), "")
    kinds: list[str] = []
    for kind in wanted:
        kinds += [*_BROUGHT.get(kind, ()), kind, *(["intervals"] if kind == last else [])]
    if "correlation" in wanted or _TRENDS & {*errors.results.protocol.figures}:
        kinds.append("associations")
    factor = factor_name(errors.results.protocol.factor)
    for kind in kinds:
        title, make = TABLES[kind]
        if found := list(make(errors)):
            for table in found:
                # Of second rank unless they are the content.
                table.folded |= kind == "classifiers" and kinds[0] != kind
            yield kind, title.format(factor=factor), found


def losses(results: Results) -> Iterator[Table]:
    """Of label histograms: mean ± sd over the runs, a row per method, a column per classifier."""
    rows = results.rows[(results.rows["group"] == "") & (results.rows["model"] != "")]
    for (dataset, size, metric), own in rows.groupby(["dataset", "n_labeled", "metric"]):
        runs = own.groupby(["method", "model"], sort=False)["estimate"]
        cells = pd.DataFrame({"mean": runs.mean(), "sd": runs.std()}).reset_index()
        least = cells.groupby("model")["mean"].transform("max" if metric == "accuracy" else "min")
        cells["best"] = (cells["mean"] - least).abs() <= _SAME
        title = f"{dataset}, {plural(size, 'label')} per validation item: {metric}"
        yield lay_out(title, cells, "model", [LOSS], results.protocol.methods)


def glance(errors: Errors) -> pd.DataFrame:
    """Each method over all columns: how often no other is better, and the mean ratio to Labeled.

    n_contested of the n_columns are those in which at least two methods have a value: in the others
    nobody is best. Ratios are averaged as logarithms, so that halving and doubling cancel.
    """
    cells = errors.cells
    setting = cells.groupby(["dataset", "factor", "level", "n_labeled", "n_unlabeled", "metric",
                             "group"], sort=False)  # fmt: skip
    grouped = cells.assign(log=np.log(cells["rmae"].where(cells["rmae"] > 0))).groupby("method")
    found = pd.DataFrame({
        "n_best": grouped["best"].sum(), "rmae": np.exp(grouped["log"].mean()),
        "n_ratios": grouped["log"].count(), "n_known": grouped["mean"].count(),
        "seconds": grouped["seconds"].mean(),
    })  # fmt: skip
    found["n_contested"] = int(setting["best"].any().sum())
    found["n_columns"] = setting.ngroups
    return found.loc[[m for m in errors.methods if m in found.index]]


def glance_table(found: pd.DataFrame) -> Table:
    """The first table of a page."""
    contested, columns = found[["n_contested", "n_columns"]].iloc[0]
    most = found["n_ratios"].max()
    fewer = found["n_ratios"].between(1, most - 1)
    note = f"mean over fewer than {most:,} comparisons: not to be compared with rows that have all"
    marked = pd.Series("<sup>a</sup>", found.index).where(fewer, "")
    cells = pd.DataFrame({
        "least error": found["n_best"].map("{:,}".format).where(found.index != FLOOR, NOTHING),
        "RMAE": found["rmae"].map(number) + marked,
        "values": [f"{n:,} of {columns:,}" for n in found["n_known"]],
        "time per run": [NOTHING if math.isnan(s) else f"{s:.2g} s" for s in found["seconds"]],
    })  # fmt: skip
    caption = (
        f"Over all comparisons (columns of the tables): in how many of {contested:,} a method has "
        "the least error or one within a standard error of it (those in which only one method has "
        "a value are left out), its geometric mean RMAE, in how many it has a value, and the time "
        "of fit and metrics."
    )
    return Table("", cells, caption, notes={note: "a"} if fewer.any() else {})
