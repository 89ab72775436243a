"""How good `auto` is on votes with few labels, and the tables of docs/votes.md.

    python -m benchmarks votes_labels [--data DIR] [--runs 20] [--sets NAME,..] [--ways NAME,..]
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
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import ppi_py

import fewlabels as fl
from bench.splits import generator, seed_of
from fewlabels.errors import FewlabelsError, Status
from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.kernels.votes import vote_shares
from fewlabels.predictions import Predictions
from runs import ROOT, between, joined, keep_rows, kept_rows, split
from runs import parser as command_line
from runs import table as markdown_table
from study.sets import truth_of as truths
from study.statistics import Figure, over_clusters, ratio
from votes_crowd import SETS as CROWDS
from votes_crowd import read_crowd
from votes_nell import read_nell

RESULTS = ROOT / "benchmarks" / "votes_labels.json"
PAGE = ROOT / "docs" / "votes.md"
MARKS = "<!-- results: benchmarks/votes_labels.py -->", "<!-- end of results -->"

N_LABELED, N_UNLABELED = (20, 50, 100), 1_000
RUNS, LEVEL = 20, 0.9
SEEDS = {"votes with labels": 1, "judges": 40_000}
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
    return truths(votes, ["accuracy"])[:, 0]


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
    rng = generator("votes with labels", SEEDS["votes with labels"], name, n_labeled, run)
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
            given, name, ["accuracy"], confidence_level=LEVEL, random_state=seed, workers=1
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


def beside(truth: float, value: float, low: float, high: float, ok: bool) -> Row:
    """Error, width and coverage of an estimate, and whether it is wrong and vouched for."""
    # Sums in another order may differ in the last bits.
    below, above = low > truth + 1e-9, high < truth - 1e-9
    return {
        "error": abs(value - truth), "width": high - low,
        "held": bool(low <= truth + 1e-9 and truth <= high + 1e-9),
        "wrong_ok": bool(ok and (below or above)),
    }  # fmt: skip


def asked(
    votes: Predictions, name: str, n_labeled: int, runs: Iterable[int], ways: Sequence[str],
    topic: str,
) -> Iterator[Row]:  # fmt: skip
    """What each way says in each run of the judges that count and have labels."""
    judged, truth = judged_of(votes), dict(zip(votes.models, truth_of(votes).tolist(), strict=True))
    for run in runs:
        given = drawn(votes, name, n_labeled, run)
        reached = (given.has_hard & given.labeled[:, None]).sum(axis=0) >= LEAST_LABELS
        who = [j for j, model in enumerate(given.models) if model in judged and reached[j]]
        for way in ways:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = WAYS[way](given, seed_of(topic, SEEDS[topic], name, n_labeled, run))
            for j in who:
                judge = given.models[j]
                one = {"run": run, "way": way, "judge": judge, "truth": truth[judge]}
                yield one | beside(truth[judge], *(float(part[j]) for part in found))


def measured(
    name: str, votes: Predictions, n_labeled: int, runs: range, ways: Sequence[str]
) -> dict[str, tuple[list[list[float | None]], Ints]]:
    """Figures (runs, figures), means over the classifiers, and counts (classifiers, 2), by way."""
    rows = pd.DataFrame(asked(votes, name, n_labeled, runs, ways, "votes with labels"))
    out = {}
    for way, own in rows.groupby("way", sort=False):
        means = own.groupby("run")[["error", "held", "width", "wrong_ok"]].mean().reindex(runs)
        counts = own.groupby("judge")["held"].agg(["size", "sum"]).reindex(judged_of(votes))
        figures = [[_rounded(value) for value in row] for row in means.to_numpy(float)]
        out[way] = figures, counts.fillna(0).to_numpy(int)
    return out


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
            keep_rows(RESULTS, rows, seed=SEEDS["votes with labels"])
            seconds = time.perf_counter() - started
            print(f"{name}, {n_labeled} labels: {seconds:.0f} s", file=sys.stderr, flush=True)


# --- the tables -------------------------------------------------------------------------------


def places(rows: Sequence[Row]) -> pd.DataFrame:
    """A row per set and size that has `auto` and a rival: what the page says of it."""
    ways_of: dict[tuple[str, int], dict[str, Row]] = {}
    for row in rows:
        if row["runs"]:
            ways_of.setdefault((row["set"], row["n_labeled"]), {})[row["way"]] = row
    found = []
    for (name, n), ways in ways_of.items():
        figures = {
            way: pd.DataFrame(row["runs"], columns=FIGURES, dtype=float)
            for way, row in ways.items()
        }
        rivals = {way: figures[way]["error"].mean() for way in RIVALS if way in figures}
        if "auto" not in figures or not rivals:
            continue
        own, other = figures["auto"], figures[min(rivals, key=rivals.__getitem__)]
        both = min(len(own), len(other))
        counted, held = np.array(ways["auto"]["judges"], dtype=float).T
        # Of a classifier that counted in one run in ten there is nothing to say by itself.
        often = 2 * counted >= len(own)
        found.append({
            "votes": name, "labels": n, "runs": len(own), "coverage": own["coverage"].mean(),
            "ratio": ratio(own["error"][:both], other["error"][:both]),
            "least": (held[often] / counted[often]).min(), "wrong": own["wrong and ok"].mean(),
            **{way: _text(*one.mean()[:3]) for way, one in figures.items()},
        })  # fmt: skip
    return pd.DataFrame(found)


def table(rows: Sequence[Row]) -> str:
    """The page's tables: how often the targets are met, and a line per set and size."""
    cells = places(rows)
    if cells.empty:
        return "Nothing has been measured yet."
    counts = sorted(set(cells["runs"]))
    runs = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    ways = [way for way in WAYS if way in cells]
    by_size = [(str(n), own) for n, own in cells.groupby("labels")]
    shown = cells.assign(
        ratio=cells["ratio"].map(_figure), least=cells["least"].map("{:.0%}".format),
        wrong=cells["wrong"].map("{:.0%}".format),
    )[["votes", "labels", "ratio", "least", "wrong", *ways]].fillna("-")  # fmt: skip
    lines = [
        f"Up to {N_UNLABELED:,} unlabeled items, {runs} runs. *Ratio* is the error of `auto` over "
        "that of the best of " + ", ".join(RIVALS) + "; over sets its geometric mean, ± over sets.",
        "",
        markdown_table(
            ["labels", "sets", "ratio", f"at most {TARGET_RATIO:g}", "coverage",
             f"at least {TARGET_COVERAGE:.0%}", "least set", "wrong and `ok`"],
            [_overall(own, label) for label, own in [*by_size, ("all", cells)]],
        ),
        "",
        f"By set. Cells: mean absolute error in points, how often the {LEVEL:.0%} interval holds, "
        "its mean width in points; *least* is the coverage of the classifier that `auto` covers "
        "least often.",
        "",
        markdown_table(
            ["votes", "labels", "ratio", "least", "wrong and `ok`", *ways], shown.values.tolist()
        ),
    ]  # fmt: skip
    return "\n".join(lines)


def _overall(cells: pd.DataFrame, label: str) -> list[Any]:
    """What the cells of a size say together."""
    leads = pd.Series([lead.value for lead in cells["ratio"]])
    middle = over_clusters(leads, cells["votes"], lambda x: float(np.exp(np.log(x).mean())))
    held = cells["coverage"]
    return [
        label, cells["votes"].nunique(), _figure(middle),
        f"{(leads <= TARGET_RATIO).sum()} of {len(cells)}", f"{held.mean():.0%}",
        f"{(held >= TARGET_COVERAGE).sum()} of {len(cells)}", f"{held.min():.0%}",
        f"{cells['wrong'].mean():.0%}",
    ]  # fmt: skip


def _figure(figure: Figure) -> str:
    return f"{figure.value:.2f}" + (f" ± {figure.se:.2f}" if np.isfinite(figure.se) else "")


def _text(error: float, held: float, width: float) -> str:
    return f"{100 * error:.1f}, {held:.0%}, {100 * width:.0f}" if np.isfinite(error) else "-"


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
