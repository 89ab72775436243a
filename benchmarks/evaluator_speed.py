"""Speed and memory of estimates by two source trees, in turns; a section of docs/speed.md.

    python -m benchmarks evaluator_speed --before OLD/src --after src [WORK ...] [--repeats 3]
        [--limit 300] [--without-numba] [--growth] [--json FILE] [--page]

Every run is a process of its own, the trees in turns, and calls what a user calls, with no option;
figures are medians, of large works of one run. Small works are timed in a second call, when
everything is loaded, large ones in the first. A yardstick runs before every
work, so that machines compare: a loop of numpy, and 100 bootstrap resamples of 1,000 items x 5
classifiers through scikit-learn's metrics. --growth is the exponent of processor time in rows,
classifiers, classes, groups and labels: the slope of its logarithm in theirs.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from measure import ONE_THREAD, elsewhere, memory, timed

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "speed.md"
MARK = "evaluator"
FOUR = ("accuracy", "ece", "roc_auc", "average_precision")
WARM_CELLS = 300_000
"""Rows x classifiers x classes up to which a work is small, and timed in a second call."""

PART_ROWS, SEED = 250_000, 22

Record = dict[str, Any]


class Case(NamedTuple):
    """Items by their sizes; those of a file are made once, from a seed."""

    models: int
    rows: int
    classes: int = 2
    groups: int = 0
    labels: int = 100


class Work(NamedTuple):
    """An estimate: the items, as a file or as arrays, and what is asked of them."""

    case: Case
    metrics: tuple[str, ...] | None = FOUR
    method: str = "auto"
    source: Literal["arrays", "file", "votes"] = "arrays"

    @property
    def is_small(self) -> bool:
        """Whether it is timed in a second call."""
        return self.case.rows * self.case.models * self.case.classes <= WARM_CELLS

    def __str__(self) -> str:
        case = self.case
        groups = f", {case.groups:,} groups" if case.groups else ""
        held = {"arrays": "", "file": ", Parquet", "votes": " of votes"}[self.source]
        metrics = f", {self.metrics[0]}" if self.metrics and len(self.metrics) == 1 else ""
        size = f"{case.rows:,} x {case.models:,}{held}, K={case.classes:,}{groups}"
        return f"{self.method}{metrics}, {size}, {case.labels:,} labels"


WORKS = {
    "small": Work(Case(5, 1_000)),
    "accuracy": Work(Case(5, 1_000), ("accuracy",)),
    "rows-20000": Work(Case(7, 20_000)),
    "rows-25000": Work(Case(7, 25_000)),
    "ten-classes": Work(Case(7, 20_000, classes=10)),
    "hundred-classes": Work(Case(5, 1_000, classes=100)),
    "one-classifier": Work(Case(1, 160_000, groups=8)),
    "in-memory": Work(Case(7, 260_000)),
    "file": Work(Case(7, 1_000_000), source="file"),
    "votes": Work(Case(2, 20_000, classes=5_000, labels=500), None, source="votes"),
    "thousand-classes": Work(Case(3, 50_000, classes=1_000, labels=500), source="file"),
    "many-groups": Work(Case(3, 1_000_000, groups=10_000, labels=1_000), source="file"),
    "kde": Work(Case(7, 1_020, labels=20), method="ssme-kde"),
    "kde-10000": Work(Case(7, 10_000, labels=20), method="ssme-kde"),
}


GROWTH = {
    "rows": {n: Work(Case(5, n)) for n in (2_000, 20_000, 200_000)},
    "classifiers": {m: Work(Case(m, 5_000)) for m in (2, 20)},
    "classes": {k: Work(Case(3, 2_000, k, labels=400)) for k in (2, 20, 200)},
    "groups": {g: Work(Case(3, 50_000, groups=g, labels=1_000)) for g in (10, 100, 1_000)},
    "labels": {n: Work(Case(5, 20_000, labels=n)) for n in (20, 200, 2_000)},
}


def part(case: Case, start: int, rows: int) -> pa.Table:
    """Some rows: classifiers share an error, and differ in skill; the first rows are labeled."""
    rng, two = np.random.default_rng([SEED, start, case.classes]), case.classes == 2
    truth = rng.integers(case.classes, size=rows)
    if two:
        truth = (rng.random(rows) < 0.3).astype(np.int64)
    shown = np.arange(start, start + rows) < case.labels
    columns: dict[str, Any] = {"label": pa.array(truth, mask=~shown)}
    if case.groups:
        columns["site"] = rng.integers(case.groups, size=rows).astype(np.int32)
    skill, shared = np.linspace(1.5, 3.0, case.models), 0.7 * rng.normal(size=rows * two)
    for j in range(case.models):
        if two:
            z = skill[j] * (truth - 0.5) + shared + rng.normal(size=rows)
            columns[f"p__m{j}__1"] = (1 / (1 + np.exp(-z))).astype(np.float32)
            continue
        z = rng.normal(size=(rows, case.classes)).astype(np.float32)
        z[np.arange(rows), truth] += 2 * skill[j]
        p = np.exp(z)
        p /= p.sum(axis=1, keepdims=True)
        columns |= {f"p__m{j}__{k}": p[:, k] for k in range(case.classes)}
    return pa.table(columns)


def make(case: Case, path: Path) -> None:
    """Write the file of a case, a part at a time; one that is there already stays."""
    if path.exists():
        return
    draft, writer = path.with_suffix(".draft"), None
    size = min(PART_ROWS, max(20_000_000 // (case.models * case.classes), 1))
    for start in range(0, case.rows, size):
        block = part(case, start, min(size, case.rows - start))
        writer = writer or pq.ParquetWriter(draft, block.schema)
        writer.write_table(block)
    assert writer is not None
    writer.close()
    os.replace(draft, path)


def items_of(work: Work, folder: Path) -> Any:
    """What `fewlabels.estimate` is given: a path, or predictions in memory."""
    import fewlabels as fl

    case, n = work.case, work.case.rows
    if work.source == "file":
        return str(_file(case, folder))
    if work.source == "votes":
        rng = np.random.default_rng(SEED)
        truth = rng.zipf(1.3, n) % case.classes
        right = rng.random((n, case.models)) < np.linspace(0.8, 0.7, case.models)
        votes = np.where(right, truth[:, None], rng.integers(case.classes, size=(n, case.models)))
        labels = np.where(rng.permutation(n) < case.labels, truth, -1)
        return fl.Predictions(votes=votes, labels=labels, classes=range(case.classes))
    table = part(case, 0, n)
    labels = np.where(np.arange(n) < case.labels, table["label"].fill_null(0).to_numpy(), -1)
    p = np.stack([table[c].to_numpy() for c in table.column_names if c.startswith("p__")], axis=1)
    if case.classes > 2:
        p = p.reshape(n, case.models, case.classes)
    groups = {"site": table["site"].to_numpy()} if case.groups else None
    return fl.Predictions(p.astype(float), labels.astype(int), groups=groups)


def _file(case: Case, folder: Path) -> Path:
    name = f"{case.models}-{case.rows}-{case.classes}-{case.groups}-{case.labels}.parquet"
    return folder / name


def yardstick() -> Record:
    """Seconds of a loop of numpy, and of bootstraps through scikit-learn's metrics."""
    from speed import make_scores, sklearn_bootstrap

    rng = np.random.default_rng(0)
    values, rows = rng.random(200_000), rng.integers(1_000, size=200_000)

    def loop() -> None:
        for _ in range(10):
            np.bincount(rows, np.exp(values)).cumsum()
            values[np.argsort(values)].sum()

    p, labels = make_scores(1_000, 0, 5)
    items = SimpleNamespace(
        labeled=labels >= 0, labels=labels, probabilities=np.stack([1 - p, p], axis=2)
    )
    sklearn_bootstrap(items, 1)
    works = {"numpy": loop, "scikit-learn": lambda: sklearn_bootstrap(items, 100)}
    return {name: timed(work)[0]["cpu"] for name, work in works.items()}


def child(work: Work, folder: str | Path) -> Record:
    """One estimate in this process: seconds, peak MB, and what the answer is on average."""
    import fewlabels as fl

    items = items_of(work, Path(folder))

    def estimate() -> Any:
        by = "site" if work.case.groups else None
        metrics = None if work.metrics is None else list(work.metrics)
        return fl.estimate(items, work.method, metrics, by)

    if work.is_small:
        estimate()
    found, estimates = timed(estimate)
    found["mb"] = memory()
    for name in ("value", "low", "high"):
        found[name] = float(np.nanmean([getattr(row, name) for row in estimates.rows]))
    return found


class Runner(NamedTuple):
    """How works are run: in processes of their own, at most `limit` seconds each."""

    folder: Path
    limit: float = 300
    without_numba: bool = False

    def run(self, call: str, tree: Path) -> Record:
        """What a call says in a process that loads a tree, or why there is nothing."""
        path = os.pathsep.join([str(tree), *filter(None, [os.environ.get("PYTHONPATH")])])
        without = ["numba"] if self.without_numba else []
        try:
            return elsewhere(
                "evaluator_speed", call, ONE_THREAD | {"PYTHONPATH": path}, self.limit, without
            )
        except RuntimeError as error:
            return {"failed": str(error)}

    def alternating(self, name: str, work: Work, trees: Mapping[str, Path], repeats: int) -> Record:
        """Medians by tree, of runs in turns; a tree that fails is not run again."""
        if work.source == "file":
            self.folder.mkdir(parents=True, exist_ok=True)
            make(work.case, _file(work.case, self.folder))
        found: dict[str, list[Record]] = {side: [] for side in trees}
        measure = self.run("yardstick()", next(iter(trees.values())))
        for _ in range(repeats if work.is_small else 1):
            for side, tree in trees.items():
                if not any("failed" in run for run in found[side]):
                    call = f"child({work!r}, {str(self.folder)!r})"
                    found[side].append(self.run(call, tree))
        record: Record = {"name": name, "work": str(work), "small": work.is_small,
                          "yardstick": measure, "without_numba": self.without_numba}  # fmt: skip
        for side, runs in found.items():
            medians = {key: [run.get(key) for run in runs] for key in runs[0]}
            record[side] = next((run for run in runs if "failed" in run), None) or {
                key: statistics.median(each) for key, each in medians.items()
            }
        return record


def table(records: list[Record]) -> str:
    """A row per work: processor time, wall time and memory of both trees, and ratios."""
    from runs import table as markdown

    head = [
        "estimate", "before: processor", "wall", "peak", "after: processor", "wall", "peak",
        "times as fast", "memory", "mean value, width",
    ]  # fmt: skip
    rows = []
    for record in records:
        sides = record["before"], record["after"]
        done = [side for side in sides if "failed" not in side]
        rows.append([
            record["work"] + " (first call)" * (not record["small"])
            + ", without numba" * record["without_numba"]
        ])  # fmt: skip
        for side in sides:
            rows[-1] += [side["failed"], "", ""] if "failed" in side else [
                f"{side['cpu']:.2f} s", f"{side['seconds']:.2f} s", f"{side['mb']:,.0f} MB"
            ]  # fmt: skip
        for of in ("cpu", "mb"):
            rows[-1].append(f"{sides[0][of] / sides[1][of]:.2f}" if len(done) == 2 else "")
        said = (f"{side['value']:.4f}, {side['high'] - side['low']:.4f}" for side in done)
        rows[-1].append(" -> ".join(said))
    return markdown(head, rows)


def slope(sizes_: list[int], seconds: list[float]) -> float:
    """Exponent of a power law: the slope of log seconds in log size, by least squares."""
    return float(np.polyfit(np.log(sizes_), np.log(seconds), 1)[0])


def growth_table(axes: Mapping[str, list[Record]]) -> str:
    """A row per axis and tree: processor seconds by size, and the exponent."""
    from runs import table as markdown

    rows = []
    for axis, records in axes.items():
        sizes_ = ", ".join(f"{record['size']:,}" for record in records)
        for side in ("before", "after"):
            done = {r["size"]: r[side]["cpu"] for r in records if "failed" not in r[side]}
            said = [r[side].get("failed") or f"{r[side]['cpu']:.2f}" for r in records]
            exponent = f"{slope([*done], [*done.values()]):.2f}" if len(done) > 1 else ""
            rows.append([axis, sizes_, side, ", ".join(said), exponent])
    return markdown(["in", "sizes", "tree", "processor seconds", "exponent"], rows)


def page(records: list[Record], axes: Mapping[str, list[Record]], repeats: int) -> str:
    """The section of docs/speed.md."""
    sticks = [record["yardstick"] for found in (records, *axes.values()) for record in found]
    sticks = [stick for stick in sticks if "failed" not in stick]
    stick = ", ".join(
        f"{name} {statistics.median(each):.2f} s ({min(each):.2f} to {max(each):.2f})"
        for name in ("numpy", "scikit-learn")
        if (each := [one[name] for one in sticks])
    )
    text = (
        f"Made by `benchmarks/evaluator_speed.py` on {os.cpu_count()} processors, Python "
        f"{platform.python_version()}, numpy {np.__version__}: two versions in turns, each called "
        f"without options; small works in a second call, medians of {repeats}, others once. "
        f"The yardstick of this run, in processor time: {stick}.\n\n{table(records)}"
    )
    if not axes:
        return text
    about = "How processor time grows with each size, the others held:"
    return f"{text}\n\n{about}\n\n{growth_table(axes)}"


def main() -> None:
    """Run, print the tables, and write them where that is asked for."""
    from runs import command_line, fill

    parser = command_line(
        __doc__, before=Path, after=ROOT / "src", repeats=3, limit=300.0, without_numba=False,
        work=ROOT / "build" / "evaluator_speed", json=Path,
    )  # fmt: skip
    parser.add_argument("works", nargs="*", help=f"of {', '.join(WORKS)}; all unless given")
    parser.add_argument("--growth", nargs="*", help=f"of {', '.join(GROWTH)}; all unless named")
    parser.add_argument("--page", type=Path, nargs="?", const=PAGE, help="default: docs/speed.md")
    given = parser.parse_args()
    if given.before is None:
        parser.error("--before must name the folder of the other version's package")
    for names, known in ((given.works, WORKS), (given.growth or (), GROWTH)):
        if unknown := [name for name in names if name not in known]:
            parser.error(f"there is no {unknown[0]!r}; there are {', '.join(known)}")
    if given.growth == []:
        given.growth = list(GROWTH)
    trees = {"before": given.before.resolve(), "after": given.after.resolve()}
    blocked = (False, True) if given.without_numba else (False,)
    asked = [("", name, WORKS[name], out) for out in blocked for name in given.works or WORKS]
    asked += [
        (a, size, work, False) for a in given.growth or () for size, work in GROWTH[a].items()
    ]
    records: list[Record] = []
    axes: dict[str, list[Record]] = {}
    for axis, name, work, without in asked:
        runner = Runner(given.work, given.limit, without)
        record = runner.alternating(axis or name, work, trees, given.repeats)
        print(json.dumps(record), file=sys.stderr, flush=True)
        own = axes.setdefault(axis, []) if axis else records
        own.append(record | ({"size": name} if axis else {}))
        if given.json:
            given.json.write_text(json.dumps({"works": records, "growth": axes}, indent=1) + "\n")
    text = page(records, axes, given.repeats)
    print(text)
    if given.page:
        fill(given.page, {MARK: text})


if __name__ == "__main__":
    main()
