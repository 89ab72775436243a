"""The tables of a benchmark's page: settings side by side, a row per method."""

from __future__ import annotations

import html
import math
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from bench.errors import Errors, best, natural, rank_correlation, scale, spread
from bench.protocol import FLOOR, LABELS, REFERENCE
from fewlabels.report.markdown import escaped, not_live

NOTHING = "-"
"""Stands where there is no number; a footnote says why."""

KINDS = {
    "overview": "RMAE (error over that of labeled), mean over the data sets",
    "methods": "Error by number of labels",
    "intervals": "Intervals: coverage and width",
    "classifiers": "Error of each classifier",
    "group-ratios": "RMAE (error over that of labeled), mean over groups and metrics",
    "groups": "Error by group",
    "levels": "Error by {factor}",
    "effective-sizes": "Effective sample size",
    "associations": "Rank correlation of the error with traits of the classifiers",
    "correlation": "How alike the classifiers are",
}
_FACTORS = {
    "labels": "drawn or expected labels",
    "sharpness": "sharpness of the scores",
    "classifiers": "number of classifiers",
    "subset": "subset of classifiers",
}
_LEVELS = {"labels": "{} labels", "sharpness": "a = {}", "classifiers": "{} classifiers"}
_CURVE_SIZES = (10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1000)

Cell = Mapping[str, Any]


@dataclass
class Table:
    """A table of text: its title, a frame of cells by row and column, and footnotes.

    `floor` names rows in italics; a table of second rank is `folded`.
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
            title = html.escape(not_live(self.title))
            yield from ["<details>", f"<summary>{title}</summary>", ""]
        elif self.title:
            yield from [f"### {escaped(self.title)}", ""]
        if self.caption:
            yield from [self.caption, ""]
        rows = [[self.corner, *map(escaped, self.cells.columns)]]
        for name, row in zip(self.cells.index, self.cells.to_numpy().tolist(), strict=True):
            shown = "*all labels known*" if name == FLOOR else escaped(name)
            rows.append([shown, *row])
        widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
        rule = ["-" * w if k == 0 else "-" * (w - 1) + ":" for k, w in enumerate(widths)]
        for line in (rows[0], rule, *rows[1:]):
            sides = (f"{t:{'>' if k else '<'}{widths[k]}}" for k, t in enumerate(line))
            yield f"| {' | '.join(sides)} |"
        yield ""
        if self.notes:
            yield from (f"- <sup>{mark}</sup> {text}" for text, mark in self.notes.items())
            yield ""
        if self.folded:
            yield from ["</details>", ""]


@dataclass(frozen=True)
class Part:
    """What columns of a table show of a cell: how it is written, and its footnote."""

    heading: str
    write: Callable[[Cell], str]
    footnote: Callable[[Cell], str] = lambda cell: ""
    bold: bool = False


def lay_out(
    title: str,
    columns: Sequence[tuple[str, pd.DataFrame]],
    parts: Sequence[Part],
    methods: Sequence[str],
    **rest: Any,
) -> Table:
    """Columns (heading, cells with a row per method) beside one another, part by part."""
    notes: dict[str, str] = {}
    by_method = [(h, c.set_index("method").to_dict("index")) for h, c in columns]
    there = [m for m in methods if any(m in cells for _, cells in by_method)]

    def text(cell: Cell | None, part: Part) -> str:
        if cell is None:
            said, note = NOTHING, "no value: the method was not run here"
        else:
            said, note = part.write(cell), part.footnote(cell)
            said = f"**{said}**" if part.bold and cell.get("best") else said
        if not note:
            return said
        mark = notes.setdefault(
            note, string.ascii_lowercase[len(notes) % 26] * (len(notes) // 26 + 1)
        )
        return f"{said}<sup>{mark}</sup>"

    heads = [f"{part.heading} {heading}".strip() for part in parts for heading, _ in by_method]
    texts = [
        [
            text({"method": m, **cells[m]} if m in cells else None, part)
            for part in parts
            for _, cells in by_method
        ]
        for m in there
    ]
    return Table(title, pd.DataFrame(texts, index=there, columns=heads), notes=notes, **rest)


# --- how numbers are written ---------------------------------------------------------------------


def number(value: float, digits: int = 2) -> str:
    """A number with so many decimals; nothing is written as minus nothing."""
    return NOTHING if math.isnan(value) else f"{round(value, digits) + 0.0:,.{digits}f}"


def signed(value: float) -> str:
    """A number with its sign."""
    text = number(value)
    return text if value <= 0 or text in (NOTHING, "0.00") else f"+{text}"


def _error(cell: Cell) -> str:
    """An error ± its standard deviation; of a difference of levels, the paired standard error."""
    write, by = (signed, "se") if cell.get("paired") else (number, "sd")
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
    why = cell.get("reasons")
    if not why:
        return ""
    noun, empty = cell.get("over", "run"), math.isnan(cell["mean"])
    counted = not empty or len(why) > 1
    told = "; ".join(f"{r} ({plural(n, noun)})" if counted else str(r) for r, n in why.items())
    some = f"mean over {cell['n_runs']:,} of {plural(cell['n_of'], noun)}"
    return f"no value: {told}" if empty else f"{some}: {told}"


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


# --- what stands side by side --------------------------------------------------------------------


def factor_name(factor: str) -> str:
    """What a protocol varies, in words."""
    return _FACTORS.get(factor, factor)


def level_name(factor: str, level: str) -> str:
    """A level of a factor, in words."""
    if factor == "labels" and level == "by-item":
        return "item by item"
    return _LEVELS.get(factor, "{}").format(level)


def place_name(place: Mapping[str, Any]) -> str:
    """What a table or figure holds fixed, in words."""
    parts = [place.get("dataset", ""), place.get("metric", "")]
    if place.get("grouping"):
        parts.append(f"by {place['grouping']}")
    if place.get("level"):
        parts.append(level_name(place["factor"], place["level"]))
    if place.get("n_labeled"):
        parts.append(plural(place["n_labeled"], "label"))
    if place.get("n_unlabeled"):
        parts.append(f"{place['n_unlabeled']:,} unlabeled")
    return ", ".join(part for part in parts if part)


def together(cells: pd.DataFrame, *keys: str) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Cells of equal keys, with these as a dictionary, in their order."""
    for values, part in cells.groupby(list(keys), sort=False):
        yield dict(zip(keys, values, strict=True)), part


_FIXED = ("dataset", "factor", "level", "n_unlabeled", "metric")


def side_by_side(cells: pd.DataFrame, key: str) -> list[tuple[str, pd.DataFrame]]:
    """A column per value of a key: numbers of labels, levels, classifiers or groups."""
    columns = []
    for value, part in cells.groupby(key, sort=False):
        factor = part["factor"].iloc[0]
        name = {
            "n_labeled": f"n_l = {value:,}" if key == "n_labeled" else "",
            "level": level_name(factor, str(value)),
            "group": str(value).partition("=")[2],
        }.get(key, str(value))
        columns.append((name, part))
    return columns


def _of_all(errors: Errors) -> pd.DataFrame:
    return errors.cells[errors.cells["group"] == ""]


def _methods(errors: Errors) -> Iterator[Table]:
    """One table per data set, level and metric; columns are numbers of labels."""
    for place, part in together(_of_all(errors), *_FIXED):
        columns, title = side_by_side(part, "n_labeled"), place_name(place)
        parts = [ERROR, *([RATIO] if part["rmae"].notna().any() else []),
                 *([SIZE] if part["ess"].notna().any() else [])]  # fmt: skip
        yield lay_out(title, columns, parts, errors.methods)
        title = f"{title}: bias (mean signed error)"
        yield lay_out(title, columns, [BIAS], errors.methods, folded=True)


def _effective_sizes(errors: Errors) -> Iterator[Table]:
    """Effective sizes, and the curve that they are read from."""
    for place, part in together(_of_all(errors), *_FIXED):
        curve = errors.curve({**place, "group": ""})
        if curve is None:
            continue
        columns = side_by_side(part, "n_labeled")
        yield lay_out(place_name(place), columns, [SIZE_RANGE], errors.methods)
        known = curve[curve["mean"].notna()]
        round_sizes = known[known["n_labeled"].isin(_CURVE_SIZES)]
        shown = (round_sizes if len(round_sizes) else known.head(13)).copy()
        shown[["mean", "sd"]] = shown[["mean", "se"]] * scale(place["metric"])
        texts = {f"n_l = {c['n_labeled']:,}": [_error(c)] for c in shown.to_dict("records")}
        yield Table(
            f"{place['dataset']}, {place['metric']}: the curve",
            pd.DataFrame(texts, index=[REFERENCE]),
            "Mean error of the labels alone ± its standard error, by the number of labels.",
            folded=True,
        )


def _classifiers(errors: Errors) -> Iterator[Table]:
    """One table per data set, level, metric and number of labels; columns are classifiers."""
    keys = (*_FIXED, "n_labeled")
    mean = dict(_keyed(_of_all(errors), keys))
    for place, part in together(errors.cells_of_models, *keys):
        columns = [*side_by_side(part, "model"), ("mean", mean[tuple(place.values())])]
        yield lay_out(place_name(place), columns, [ERROR], errors.methods)


def _keyed(cells: pd.DataFrame, keys: Sequence[str]) -> Iterator[tuple[Any, pd.DataFrame]]:
    yield from cells.groupby(list(keys), sort=False)


def _groups(errors: Errors) -> Iterator[Table]:
    """One table per data set, level, grouping, metric and number of labels; columns are groups."""
    for place, part in _by_grouping(errors.cells, *_FIXED, "n_labeled"):
        runs = errors.runs.merge(part[[*_FIXED, "n_labeled", "group"]].drop_duplicates())
        columns = [*side_by_side(part, "group"), ("mean of groups", _mean_of_groups(part, runs))]
        caption = "The mean weighs all groups alike."
        yield lay_out(place_name(place), columns, [ERROR], errors.methods, caption=caption)


def _by_grouping(cells: pd.DataFrame, *keys: str) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    grouped = cells[cells["group"] != ""]
    yield from together(grouped.assign(grouping=grouped["group"].str.partition("=")[0]), "grouping",
                        *keys)  # fmt: skip


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
    n_of = len(parts[list(over)].drop_duplicates())
    found = []
    for method, own in parts.groupby("method", sort=False):
        lost = own[own["rmae"].isna()]
        why = pd.Series(
            [
                r
                for cell in lost["reasons"]
                for r in cell or ["there is no ratio to that of labeled"]
            ],
            dtype=object,
        )
        reasons = why.value_counts().sort_index().to_dict()
        found.append({"method": method, **spread(own["rmae"]), "n_of": n_of, "over": noun,
                      "reasons": reasons})  # fmt: skip
    cells = pd.DataFrame(found)
    entered = cells[(cells["method"] != FLOOR) & cells["mean"].notna()]
    full = entered[entered["n_runs"] == entered["n_runs"].max()]
    cells["best"] = cells.index == full["mean"].idxmin() if len(entered) > 1 else False
    return cells


def _overview(errors: Errors) -> Iterator[Table]:
    """Mean ratio to Labeled over the data sets, where there are several."""
    for place, part in together(_of_all(errors), "factor", "level", "n_unlabeled", "metric"):
        if part["dataset"].nunique() > 1:
            columns = [
                (head, _mean_ratios(cells, ["dataset"], "data set"))
                for head, cells in side_by_side(part, "n_labeled")
            ]
            yield lay_out(place_name(place), columns, [ERROR], errors.methods)


def _group_ratios(errors: Errors) -> Iterator[Table]:
    """Mean ratio to Labeled over metrics and groups (SSME, Table 2): a column per grouping."""
    cells = errors.cells[errors.cells["group"] != ""]
    for place, part in together(cells, "dataset", "factor", "level", "n_unlabeled", "n_labeled"):
        grouping = part["group"].str.partition("=")[0]
        parts = [*part.groupby(grouping, sort=False), ("all", part)]
        columns = [(h, _mean_ratios(p, ["metric", "group"], "cell")) for h, p in parts]
        yield lay_out(place_name(place), columns, [ERROR], errors.methods)


def _levels(errors: Errors) -> Iterator[Table]:
    """Levels side by side; of two, or of labels, also the paired difference of the first two."""
    cells = _of_all(errors)
    keys = ("dataset", "factor", "n_unlabeled", "metric", "n_labeled")
    for place, part in together(cells[cells["factor"] != ""], *keys):
        columns = side_by_side(part, "level")
        levels = list(dict.fromkeys(part["level"]))
        if place["factor"] == "labels":
            order = [level for level in LABELS if level in levels]
            columns = [columns[levels.index(level)] for level in order]
            levels = order
        said = []
        if place["factor"] == "sharpness":
            said.append(_SHARPNESS)
        if len(levels) == 2 or (len(levels) > 2 and place["factor"] == "labels"):
            runs = errors.runs.merge(part[[*keys, "level", "group"]].drop_duplicates())
            wide = runs.pivot(index="method", columns=["level", "run"], values="error")
            gaps = (wide[levels[1]] - wide[levels[0]]) * scale(place["metric"])
            rows = [
                {"method": m, **spread(g.to_numpy()), "paired": True} for m, g in gaps.iterrows()
            ]
            columns.append((f"{levels[1]} - {levels[0]}", pd.DataFrame(rows)))
            said.append("The difference is paired by run; ± its standard error.")
        yield lay_out(place_name(place), columns, [ERROR], errors.methods, caption=" ".join(said))


_SHARPNESS = (
    "The scores p of two classes become p^a / (p^a + (1 - p)^a), of more p^a / sum p^a: a = 1 "
    "leaves them as they are, a larger a makes them surer."
)


def _intervals(errors: Errors) -> Iterator[Table]:
    """Coverage and width, where a confidence level was asked for; levels are side by side."""
    cells = _of_all(errors)
    for varied, part in cells[cells["factor"] != "subset"].groupby(cells["factor"] != ""):
        keys = ["dataset", "factor", "n_unlabeled", "metric", "n_labeled" if varied else "level"]
        for place, own in together(part, *keys):
            if own["coverage"].notna().any():
                columns = side_by_side(own, "level" if varied else "n_labeled")
                yield lay_out(place_name(place), columns, COVERAGE, errors.methods)


# --- classifiers that are alike ------------------------------------------------------------------


def trait_name(trait: str) -> str:
    """A trait in words."""
    return trait.replace("_", " ").replace(" ece", " ECE")


def _correlation(errors: Errors) -> Iterator[Table]:
    """How alike the classifiers are: a matrix per data set and trait that is known of pairs."""
    for dataset in errors.results.datasets:
        models = sorted(dataset.models)
        own = errors.traits[errors.traits["dataset"] == dataset.name]
        for trait, part in own.groupby("name"):
            values = part.set_index("level")["value"].to_dict()
            pairs = [
                [values.get(f"{a}+{b}", values.get(f"{b}+{a}", math.nan)) if a != b else math.nan
                 for b in models] for a in models
            ]  # fmt: skip
            if np.isfinite(pairs).any():
                cells = pd.DataFrame(pairs, index=models, columns=models).map(number)
                title = f"{dataset.name}, {trait_name(str(trait))}"
                yield Table(title, cells, corner="classifier")


def points(errors: Errors, settings: pd.DataFrame, trait: str) -> pd.DataFrame:
    """The trait `x` and each method's error of the runs of some settings, a row per point.

    Where a trait belongs to a whole level a point is the mean over the level's runs.
    """
    dataset = settings["dataset"].iloc[0]
    own = errors.traits[(errors.traits["dataset"] == dataset) & (errors.traits["name"] == trait)]
    own = own.dropna().rename(columns={"value": "x"})[["level", "run", "x"]]
    by_run = settings.merge(own, on=["level", "run"])
    keys = ["level", "method"]
    means = settings.groupby(keys, sort=False, as_index=False)["error"].mean()
    by_level = means.merge(own[own["run"] == -1], on="level")
    by_level = by_level[~by_level["level"].isin(by_run["level"])]
    return pd.concat([by_run, by_level], ignore_index=True)[
        ["x", "method", "level", "run", "error"]
    ]


def _associations(errors: Errors) -> Iterator[Table]:
    """Rank correlation of each method's error with each trait that varies, a table per setting.

    Subsets of classifiers are one table; what else a protocol varies would be confounded.
    """
    runs = errors.runs[errors.runs["group"] == ""]
    runs = runs.assign(within=runs["level"].mask(runs["factor"] == "subset", ""))
    keys = ("dataset", "factor", "within", "n_unlabeled", "metric", "n_labeled")
    for place, part in together(runs, *keys):
        columns = []
        for trait in sorted(
            errors.traits.loc[errors.traits["dataset"] == place["dataset"], "name"].unique()
        ):
            rows = [
                {"method": method, "mean": rank_correlation(own["x"], own["error"])}
                for method, own in points(errors, part, trait).groupby("method")
            ]
            if any(not math.isnan(row["mean"]) for row in rows):
                columns.append((trait_name(trait), pd.DataFrame(rows)))
        if columns:
            title = place_name({**place, "level": place["within"]})
            parts = [Part("", lambda cell: signed(cell["mean"]))]
            caption = "Spearman's coefficient; positive where the error grows with the trait."
            yield lay_out(title, columns, parts, errors.methods, caption=caption)


TABLES: Mapping[str, Callable[[Errors], Iterator[Table]]] = {
    "overview": _overview, "methods": _methods, "intervals": _intervals,
    "classifiers": _classifiers, "group-ratios": _group_ratios, "groups": _groups,
    "levels": _levels, "effective-sizes": _effective_sizes, "correlation": _correlation,
    "associations": _associations,
}  # fmt: skip

_BROUGHT = {"methods": ("overview",), "groups": ("group-ratios",)}
"""Kinds that come before another."""

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
        found = list(TABLES[kind](errors))
        if found:
            yield kind, KINDS[kind].format(factor=factor), found


def glance(errors: Errors) -> pd.DataFrame:
    """Each method over all columns: how often no other is better, and the mean ratio to Labeled.

    n_contested of the n_columns are those in which at least two methods have a value: in the others
    nobody is best. Ratios are averaged as logarithms, so that halving and doubling cancel.
    """
    cells = errors.cells
    setting = cells.groupby(["dataset", "factor", "level", "n_labeled", "n_unlabeled", "metric",
                             "group"], sort=False)  # fmt: skip
    positive = cells["rmae"].where(cells["rmae"] > 0)
    grouped = cells.assign(log=np.log(positive)).groupby("method")
    found = pd.DataFrame({
        "n_best": grouped["best"].sum(),
        "rmae": np.exp(grouped["log"].mean()),
        "n_ratios": grouped["log"].count(),
        "n_known": grouped["mean"].count(),
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


def levels_in_order(levels: Sequence[str]) -> list[str]:
    """Levels by their size."""
    return sorted(levels, key=natural)
