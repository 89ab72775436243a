"""How good `auto` is on votes with few labels, and the tables of docs/votes.md.

    python benchmarks/votes_labels.py [--data DIR] [--runs 20] [--sets NAME,..] [--ways NAME,..]
        [--fresh] [--page-only]

Real votes with all labels known: annotators, LLM judges, networks that name a class, heuristics. A
run draws up to 1,000 unlabeled items and 20, 50 or 100 labeled ones (at most half of a set), and
asks every way for the accuracy of every classifier. Only classifiers with 50 votes count (the ten
busiest, where these are fewer), in the runs where two of their votes are on labeled items: labels
alone say nothing of the others. Results are kept in benchmarks/votes_labels.json, a set and a size
at a time; another call adds the runs that are missing. Sets whose data are not there are skipped.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import ppi_py

import fewlabels as fl
from bench.splits import generator, seed_of
from curves_parts import table as markdown_table
from fewlabels.errors import FewlabelsError, Status
from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.kernels.votes import vote_shares
from fewlabels.predictions import Predictions
from runs import between, joined, keep_rows, kept_rows, split
from runs import parser as command_line
from study.statistics import Figure, mean, over_clusters, ratio
from votes_crowd import SETS as CROWDS
from votes_crowd import read_crowd
from votes_nell import read_nell

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "votes_labels.json"
PAGE = ROOT / "docs" / "votes.md"
MARKS = "<!-- results: benchmarks/votes_labels.py -->", "<!-- end of results -->"

N_LABELED, N_UNLABELED = (20, 50, 100), 1_000
RUNS, LEVEL = 20, 0.9
SEED = 1
LEAST_VOTES, BUSIEST, LEAST_LABELS = 50, 10, 2
TARGET_RATIO, TARGET_COVERAGE = 0.8, 0.85


# --- the sets ---------------------------------------------------------------------------------


def _crowd(name: str) -> Callable[[Path], Predictions]:
    """Annotators, on the items with a gold label."""

    def read(data: Path) -> Predictions:
        crowd = read_crowd(data, name)
        return crowd.predictions.take(crowd.items).with_labels(crowd.gold)

    return read


def _judges(data: Path) -> Predictions:
    """Verdicts in the first order of the two answers; the second is no independent judge."""
    frame = pd.read_parquet(data / "llm_judges" / "judgebench.parquet")
    columns = [c for c in frame if c.startswith("y__") and c.endswith("__order1")]
    names = [c.removeprefix("y__").removesuffix("__order1") for c in columns]
    return Predictions(
        votes=frame[columns].to_numpy(), labels=frame["label"].to_numpy(), models=names
    )


def _panda(data: Path) -> Predictions:
    """Two judges; the label is what most of three people say, so these do not vote."""
    frame = pd.read_parquet(data / "llm_judges" / "pandalm.parquet")
    names = ["gpt35", "pandalm7b"]
    votes = frame[[f"y__{name}" for name in names]].to_numpy()
    labels = frame["majority"].to_numpy().astype(int)
    return Predictions(votes=votes, labels=labels, models=names, classes=(0, 1, 2))


NETWORKS = (
    "qda_pca40", "lenet5_netcal", "smallcnn_e12", "alexnet_tf_ben", "wrn16_4_netcal",
    "vgg16_vcalib",
)  # fmt: skip
"""CIFAR-10, from 47% to 94% right; no two snapshots of one run."""


def _networks(data: Path) -> Predictions:
    read = fl.read_predictions(data / "cifar10" / "data.parquet").select_models(NETWORKS)
    return Predictions(votes=read.hard, labels=read.labels, models=NETWORKS, classes=read.classes)


def _category(name: str) -> Callable[[Path], Predictions]:
    """NELL's four heuristics in one category, by the thresholds of their authors."""

    def read(data: Path) -> Predictions:
        nell = read_nell(data)
        own = nell.domain == name
        votes, labels = nell.votes[own], nell.labels[own]
        models = nell.predictions().models
        return Predictions(votes=votes, labels=labels, models=models, classes=(0, 1))

    return read


class Source(NamedTuple):
    """The file that must be there, and how it is read."""

    file: str
    read: Callable[[Path], Predictions]


SETS: Mapping[str, Source] = {
    **{f"crowd: {name}": Source(f"crowd/{name}.gold.parquet", _crowd(name)) for name in CROWDS},
    "LLM judges: JudgeBench": Source("llm_judges/judgebench.parquet", _judges),
    "LLM judges: PandaLM": Source("llm_judges/pandalm.parquet", _panda),
    "CIFAR-10, six networks": Source("cifar10/data.parquet", _networks),
    "NELL: animal": Source("nell/data.parquet", _category("animal")),
    "NELL: vegetable": Source("nell/data.parquet", _category("vegetable")),
}
"""Of the crowd sets adultcontent2 has the votes of s5_adult, and adultcontent3 no gold labels."""


def truth_of(votes: Predictions) -> Floats:
    """Accuracy of each classifier on all items it votes on, (M,)."""
    found = fl.estimate(
        votes, "labeled", ["accuracy"], confidence_level=None, estimand="sample", workers=1
    )
    return np.array([r.value for r in found.rows])


def judged_of(votes: Predictions) -> tuple[str, ...]:
    """The classifiers that count: with `LEAST_VOTES`, else the `BUSIEST`."""
    busy = votes.has_hard.sum(axis=0)
    least = min(LEAST_VOTES, np.sort(busy)[-min(BUSIEST, len(busy))])
    return tuple(name for name, n in zip(votes.models, busy, strict=True) if n >= least)


def sizes_of(votes: Predictions) -> tuple[int, ...]:
    """Numbers of labels that leave half of the items without."""
    return tuple(n for n in N_LABELED if 2 * n <= votes.n_items)


def drawn(votes: Predictions, name: str, n_labeled: int, run: int) -> Predictions:
    """The items of a run; who votes on none of them is not there."""
    n = min(n_labeled + N_UNLABELED, votes.n_items)
    rng = generator("votes with labels", SEED, name, n_labeled, run)
    items = votes.take(rng.choice(votes.n_items, n, replace=False))
    given = items.with_labels(np.where(np.arange(n) < n_labeled, items.labels, -1))
    there = given.has_hard.any(axis=0)
    return given.select_models([given.models[j] for j in np.flatnonzero(there)])


# --- the ways ---------------------------------------------------------------------------------


class Answer(NamedTuple):
    """Accuracy of each classifier and its interval, (M,); whether the way vouches for it."""

    value: Floats
    low: Floats
    high: Floats
    ok: Bools


Way = Callable[[Predictions, int], Answer]


def _method(name: str) -> Way:
    """One of fewlabels' methods."""

    def ask(given: Predictions, seed: int) -> Answer:
        found = fl.estimate(
            given,
            name,
            ["accuracy"],
            confidence_level=LEVEL,
            random_state=seed,
            workers=1,
        )
        columns = (np.array([r[k] for r in found.rows], dtype=float) for k in (3, 4, 5))
        return Answer(*columns, np.array([r.status is Status.OK for r in found.rows]))

    return ask


def _shares(given: Predictions, seed: int) -> Floats:
    """How large a part of an item's votes each class has, (n, K)."""
    k = given.n_classes
    weights, empty = np.ones((given.n_models, 1)), np.full(k, 1 / k)
    return vote_shares(given.vote_counts, weights, empty)[:, :, 0]


def _by_votes(given: Predictions, seed: int) -> Floats:
    """P(class) of Dawid and Skene's model, which sees no label, (n, K)."""
    unlabeled = given.with_labels(np.full(given.n_items, -1))
    return fl.models.DawidSkene().infer(unlabeled, np.random.default_rng(seed)).marginals()


def _rectified(proxy: Callable[[Predictions, int], Floats]) -> Way:
    """ppi-python (PPI++), from a probability of each item's label that no label has touched."""

    def ask(given: Predictions, seed: int) -> Answer:
        p = proxy(given, seed)
        rows = [_rectified_one(given, p, j) for j in range(given.n_models)]
        return Answer(*np.array(rows).T, np.ones(given.n_models, dtype=bool))

    return ask


def _rectified_one(given: Predictions, p: Floats, j: int) -> tuple[float, float, float]:
    voted = given.has_hard[:, j]
    labeled, other = voted & given.labeled, voted & ~given.labeled
    if labeled.sum() < LEAST_LABELS:
        return float("nan"), float("nan"), float("nan")
    right = (given.hard[labeled, j] == given.labels[labeled]).astype(float)
    own = p[np.arange(given.n_items), np.maximum(given.hard[:, j], 0)]
    # A proxy that says the same of all items tells nothing, and its weight would be 0 / 0.
    known = labeled.sum() > 1 and other.any() and np.ptp(own[voted]) > 0
    proxies = (own[labeled], own[other]) if known else (np.zeros(len(right)), np.zeros(2))
    lam = None if known else 0.0
    value = ppi_py.ppi_mean_pointestimate(right, *proxies, lam=lam)
    low, high = ppi_py.ppi_mean_ci(right, *proxies, alpha=1 - LEVEL, lam=lam)
    return float(value[0]), float(low[0]), float(high[0])


RIVALS: Mapping[str, Way] = {
    "labels only": _method("labeled"),
    "ppi by shares of votes": _rectified(_shares),
    "ppi by Dawid-Skene": _rectified(_by_votes),
}
"""The better of them is what `auto` is compared with."""

WAYS: Mapping[str, Way] = {
    "auto": _method("auto"),
    **RIVALS,
    "dawid-skene": _method("dawid-skene"),
    "vote-selection": _method("vote-selection"),
}
SLOW = ("vote-selection",)
"""Asked by name alone."""


# --- runs -------------------------------------------------------------------------------------

Row = dict[str, Any]
"""A set, a size and a way: the figures of each run, and of each classifier in how many runs it
counted and in how many the interval held."""

FIGURES = ("error", "coverage", "width", "wrong and ok")


def measured(
    name: str, votes: Predictions, n_labeled: int, runs: range, ways: Sequence[str]
) -> dict[str, tuple[list[list[float | None]], Ints]]:
    """Figures (runs, figures), means over the classifiers, and counts (classifiers, 2), by way."""
    judged = judged_of(votes)
    truth = dict(zip(votes.models, truth_of(votes), strict=True))
    figures: dict[str, list[list[float | None]]] = {way: [] for way in ways}
    counts = {way: np.zeros((len(judged), 2), dtype=int) for way in ways}
    for run in runs:
        given = drawn(votes, name, n_labeled, run)
        place = {model: j for j, model in enumerate(given.models)}
        reached = (given.has_hard & given.labeled[:, None]).sum(axis=0) >= LEAST_LABELS
        who = [i for i, m in enumerate(judged) if m in place and reached[place[m]]]
        own = [place[judged[i]] for i in who]
        true = np.array([truth[judged[i]] for i in who])
        for way in ways:
            seed = seed_of("votes with labels", SEED, name, n_labeled, run)
            value, low, high, ok = (a[own] for a in WAYS[way](given, seed))
            # Sums in another order may differ in the last bits.
            held = (low <= true + 1e-9) & (true <= high + 1e-9)
            wrong = (low > true + 1e-9) | (high < true - 1e-9)
            parts = (np.abs(value - true), held, high - low, wrong & ok)
            figures[way].append([_rounded(mean(np.asarray(part, float)).value) for part in parts])
            counts[way][who] += np.stack([np.ones(len(who), int), held.astype(int)], axis=1)
    return {way: (figures[way], counts[way]) for way in ways}


def _rounded(value: float) -> float | None:
    return round(value, 5) if np.isfinite(value) else None


def added(row: Row, figures: Sequence[Sequence[float | None]], counts: Ints) -> Row:
    """A row with further runs."""
    before = np.array(row["judges"]) if row["judges"] else np.zeros_like(counts)
    return {**row, "runs": [*row["runs"], *figures], "judges": (before + counts).tolist()}


ORDER = {"set": tuple(SETS), "n_labeled": N_LABELED, "way": tuple(WAYS)}


def with_runs(
    rows: Sequence[Row], name: str, votes: Predictions, n_labeled: int, runs: int,
    ways: Sequence[str],
) -> list[Row]:  # fmt: skip
    """The rows, after as many runs of a set and a size as are asked for."""
    found = {(r["set"], r["n_labeled"], r["way"]): r for r in rows}
    by_start: dict[int, list[str]] = {}
    for way in ways:
        row = found.setdefault(
            (name, n_labeled, way),
            {"set": name, "n_labeled": n_labeled, "way": way, "runs": [], "judges": []},
        )
        by_start.setdefault(len(row["runs"]), []).append(way)
    for start, late in by_start.items():
        more = measured(name, votes, n_labeled, range(start, runs), late) if start < runs else {}
        for way, (figures, counts) in more.items():
            place = name, n_labeled, way
            found[place] = added(found[place], figures, counts)
    return joined(list(found.values()), ORDER)


def _run(data: Path, runs: int, asked: Sequence[str], ways: Sequence[str], fresh: bool) -> None:
    rows = kept_rows(RESULTS)
    for name, source in SETS.items():
        if asked and not any(part in name for part in asked):
            continue
        if not (data / source.file).is_file():
            print(f"skipped {name}: there is no {source.file} below the data", file=sys.stderr)
            continue
        votes = source.read(data)
        for n_labeled in sizes_of(votes):
            started = time.perf_counter()
            if fresh:
                here = name, n_labeled
                rows = [
                    r for r in rows if (r["set"], r["n_labeled"]) != here or r["way"] not in ways
                ]
            rows = with_runs(rows, name, votes, n_labeled, runs, ways)
            keep_rows(RESULTS, rows, seed=SEED)
            seconds = time.perf_counter() - started
            print(f"{name}, {n_labeled} labels: {seconds:.0f} s", file=sys.stderr, flush=True)


# --- the tables -------------------------------------------------------------------------------


class Cell(NamedTuple):
    """A set and a size: figures (runs, figures) of each way, and each classifier's coverage."""

    name: str
    n_labeled: int
    figures: Mapping[str, Floats]
    held: Mapping[str, Floats]

    def of(self, way: str, figure: str) -> Floats:
        """A figure over the runs (R,)."""
        out: Floats = self.figures[way][:, FIGURES.index(figure)]
        return out

    @property
    def best(self) -> str:
        """The rival that errs least."""
        return min(
            (way for way in RIVALS if way in self.figures),
            key=lambda way: float(np.nanmean(self.of(way, "error"))),
        )

    @property
    def lead(self) -> Figure:
        """Error of `auto` over that of the best rival."""
        a, b = self.of("auto", "error"), self.of(self.best, "error")
        both = min(len(a), len(b))
        return ratio(a[:both], b[:both])

    def least(self, way: str) -> float:
        """Coverage of the classifier that is covered least often."""
        return float(np.nanmin(self.held[way]))


def cells_of(rows: Sequence[Row]) -> list[Cell]:
    """The rows by set and size; those without `auto` or a rival are left out."""
    found: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        if row["runs"]:
            found.setdefault((row["set"], row["n_labeled"]), []).append(row)
    out = []
    for (name, n), own in found.items():
        figures = {r["way"]: np.array(r["runs"], dtype=float) for r in own}
        counts = {r["way"]: np.array(r["judges"], dtype=float) for r in own}
        # Of a classifier that counted in one run in ten there is nothing to say by itself.
        held = {w: np.where(2 * c[:, 0] >= len(figures[w]), c[:, 1] / np.maximum(c[:, 0], 1),
                            np.nan) for w, c in counts.items()}  # fmt: skip
        if "auto" in figures and set(RIVALS) & set(figures):
            out.append(Cell(name, n, figures, held))
    return out


def table(rows: Sequence[Row]) -> str:
    """The page's tables: how often the targets are met, and a line per set and size."""
    cells = cells_of(rows)
    if not cells:
        return "Nothing has been measured yet."
    counts = sorted({len(c.figures["auto"]) for c in cells})
    runs = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    ways = [way for way in WAYS if way != "auto" and any(way in c.figures for c in cells)]
    lines = [
        f"Up to {N_UNLABELED:,} unlabeled items, {runs} runs. *Ratio* is the error of `auto` over "
        "that of the best of " + ", ".join(RIVALS) + "; over sets its geometric mean, ± over sets.",
        "",
        markdown_table(
            ["labels", "sets", "ratio", f"at most {TARGET_RATIO:g}", "coverage",
             f"at least {TARGET_COVERAGE:.0%}", "least set", "wrong and `ok`"],
            [*(_overall([c for c in cells if c.n_labeled == n], str(n)) for n in N_LABELED
               if any(c.n_labeled == n for c in cells)),
             _overall(cells, "all")],
        ),
        "",
        f"By set. Cells: mean absolute error in points, how often the {LEVEL:.0%} interval holds, "
        "its mean width in points; *least* is the coverage of the classifier that `auto` covers "
        "least often.",
        "",
        markdown_table(
            ["votes", "labels", "ratio", "least", "wrong and `ok`", "auto", *ways],
            [[c.name, c.n_labeled, _figure(c.lead), f"{c.least('auto'):.0%}",
              f"{np.nanmean(c.of('auto', 'wrong and ok')):.0%}",
              *(_cell(c, way) for way in ("auto", *ways))] for c in cells],
        ),
    ]  # fmt: skip
    return "\n".join(lines)


def _overall(cells: Sequence[Cell], label: str) -> list[Any]:
    """What the cells of a size say together."""
    leads = [cell.lead.value for cell in cells]
    held = [float(np.nanmean(cell.of("auto", "coverage"))) for cell in cells]
    wrong = [float(np.nanmean(cell.of("auto", "wrong and ok"))) for cell in cells]
    names = [cell.name for cell in cells]
    middle = over_clusters(leads, names, lambda x: float(np.exp(np.log(x).mean())))
    good = sum(lead <= TARGET_RATIO for lead in leads)
    held_well = sum(h >= TARGET_COVERAGE for h in held)
    return [
        label, len(set(names)), _figure(middle), f"{good} of {len(cells)}",
        f"{np.mean(held):.0%}", f"{held_well} of {len(cells)}", f"{min(held):.0%}",
        f"{np.mean(wrong):.0%}",
    ]  # fmt: skip


def _figure(figure: Figure) -> str:
    if not np.isfinite(figure.se):
        return f"{figure.value:.2f}"
    return f"{figure.value:.2f} ± {figure.se:.2f}"


def _cell(cell: Cell, way: str) -> str:
    if way not in cell.figures:
        return "-"
    error, held, width = (mean(cell.of(way, figure)).value for figure in FIGURES[:3])
    if not np.isfinite(error):
        return "-"
    return f"{100 * error:.1f}, {held:.0%}, {100 * width:.0f}"


def with_table(page: str, rows: Sequence[Row]) -> str:
    """The page with its tables made anew."""
    return between(page, MARKS, table(rows))


def main() -> None:
    """Run, and write the page's tables."""
    parser = command_line(__doc__, data=True)
    usual = [way for way in WAYS if way not in SLOW]
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--sets", type=split, default=[], help="parts of names, by commas")
    parser.add_argument("--ways", type=split, default=usual, help=f"of {', '.join(WAYS)}")
    parser.add_argument("--fresh", action="store_true", help="forget the runs of what is asked")
    parser.add_argument("--page-only", action="store_true")
    options = parser.parse_args()
    if unknown := [way for way in options.ways if way not in WAYS]:
        parser.error(f"there is no way {unknown[0]!r}; there are {', '.join(WAYS)}")
    if not options.page_only:
        _run(options.data, options.runs, options.sets, options.ways, options.fresh)
    page = with_table(PAGE.read_text(encoding="utf-8"), kept_rows(RESULTS))
    PAGE.write_text(page, encoding="utf-8")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nstopped; the sets and sizes that are finished are kept")
    except FewlabelsError as error:
        sys.exit(f"error: {error}")
