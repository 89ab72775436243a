"""What labeled items from elsewhere are worth, and the table of docs/reference-data.md.

    python -m benchmarks reference [--data DIR] [--runs 20] [--workers 2] [--page-only]

A pair is a target and a reference: the same classifiers on other people, another category, a tilted
sample, other classes. A run draws 800 unlabeled items of the target, 0, 20 or 50 labeled ones, and
1,000 labeled items of the reference. Four ways are judged by the target's true metrics: `auto` with
and without the reference, the reference alone, and the labels alone. Results are kept in
benchmarks/reference.jsonl, a line for the pairs of a file of the data: another run goes on where
one stopped. Files that are not there are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

import fewlabels as fl
from bench.splits import generator, seed_of
from fewlabels import Predictions
from fewlabels.kernels.multinomial import fit_map  # Newton's method alone diverges here
from runs import DATA, ROOT, across, markdown, plain, run_kept
from study.sets import REAL, truth_of, whole

Bools, Floats, Ints = np.ndarray, np.ndarray, np.ndarray

RESULTS = ROOT / "benchmarks" / "reference.jsonl"
PAGE = ROOT / "docs" / "reference-data.md"

METRICS = ("accuracy", "roc_auc")
N_LABELED, N_UNLABELED, N_REFERENCE = (0, 20, 50), 800, 1_000
RUNS, LEVEL = 20, 0.9
SEED = 1

_CLIP, _DRAWS = 8.0, 100
_PRIOR_SDS = (3.0, 1.0)
"""Of the offset and the slope of a classifier's calibration; the slope's mean is 1."""


class Pair(NamedTuple):
    """A target and a reference, all labels known."""

    name: str
    target: Predictions
    reference: Predictions


def adult(data: Path) -> Iterator[Pair]:
    """Women by men, men by women; the same for white people and all others."""
    for column, value, of, others in (
        ("sex", "Female", "women", "men"),
        ("race", "White", "white people", "others"),
    ):
        read = whole(data / REAL["Adult"].file, column)
        chosen = np.array([str(v) == value for v in read.groups[column]])
        yield Pair(f"Adult: {of} by {others}", read.take(chosen), read.take(~chosen))
        yield Pair(f"Adult: {others} by {of}", read.take(~chosen), read.take(chosen))


def nell(data: Path) -> Iterator[Pair]:
    """A category by another, near or far."""
    read = whole(data / REAL["NELL animal"].file)
    domain = read.domain.astype(str)
    for names in (
        ("vegetable", "animal"), ("animal", "vegetable"), ("animal", "city"), ("city", "animal"),
    ):  # fmt: skip
        yield Pair(f"NELL: {' by '.join(names)}", *(read.take(domain == name) for name in names))


def civil_comments(data: Path) -> Iterator[Pair]:
    """Comments by a half of which most that are surely fine are missing."""
    source = REAL["CivilComments"]
    read = whole(data / source.file, left_out=source.left_out)
    rng = generator("reference", "civil comments")
    half = rng.random(read.n_items) < 0.5
    surely = read.probabilities[:, read.models.index("ERM"), 1] < 0.02
    chance = rng.random(read.n_items)
    kept = chance > np.where(read.labels == 0, 0.6, 0.0)
    kept &= rng.random(read.n_items) > np.where(surely, 0.9, 0.0)
    yield Pair("CivilComments: all by a tilted half", read.take(~half), read.take(half & kept))


_ANIMALS = (2, 3, 4, 5, 6, 7)


def cifar(data: Path) -> Iterator[Pair]:
    """Pairs of classes by other pairs, as two classes each."""
    read = whole(data / REAL["CIFAR-10"].file)
    p, labels = read.probabilities, read.labels
    animal = p[:, :, list(_ANIMALS)].sum(axis=2)

    def vehicle_or_animal(classes: Sequence[int]) -> Predictions:
        rows = np.isin(labels, classes)
        truth, names = np.isin(labels[rows], _ANIMALS).astype(int), ["vehicle", "animal"]
        return Predictions(animal[rows], truth, models=read.models, classes=names)

    def second_of(first: int, second: int) -> Predictions:
        rows = np.isin(labels, [first, second])
        one, other = p[rows][:, :, first] + 1e-12, p[rows][:, :, second] + 1e-12
        return Predictions(other / (one + other), labels[rows] == second, models=read.models)

    # 0 airplane, 1 automobile, 2 bird, 3 cat, 4 deer, 5 dog, 6 frog, 7 horse, 8 ship, 9 truck.
    first, other = vehicle_or_animal([4, 6, 8, 9]), vehicle_or_animal([3, 5, 0, 1])
    yield Pair("CIFAR-10: animal or vehicle by other ones", first, other)
    yield Pair("CIFAR-10: cat or dog by deer or horse", second_of(3, 5), second_of(4, 7))
    yield Pair("CIFAR-10: deer or horse by cat or dog", second_of(4, 7), second_of(3, 5))


SOURCES: Mapping[str, Callable[[Path], Iterator[Pair]]] = {
    REAL["Adult"].file: adult, REAL["NELL animal"].file: nell,
    REAL["CivilComments"].file: civil_comments, REAL["CIFAR-10"].file: cifar,
}  # fmt: skip


class Answer(NamedTuple):
    """Value and interval of each classifier and metric, (M, metrics)."""

    value: Floats
    low: Floats
    high: Floats


def _estimated(given: Predictions, seed: int, method: str = "auto", **more: Any) -> Answer:
    found = fl.estimate(
        given, method, list(METRICS), confidence_level=LEVEL, random_state=seed, workers=1, **more
    )
    shape = (given.n_models, len(METRICS))
    return Answer(*(np.array([r[k] for r in found.rows]).reshape(shape) for k in (3, 4, 5)))


def reference_only(given: Predictions, reference: Predictions, seed: int) -> Answer:
    """The reference at its word: each classifier calibrated on it, its metrics then expected.

    That is the idea of CBPE (NannyML); the map is logistic in the classifier's log odds. Intervals
    draw the map from its posterior, the items with replacement, and their labels from the map.
    """
    rng = np.random.default_rng(seed)
    value, low, high = found = np.empty((3, given.n_models, len(METRICS)))
    for j in range(given.n_models):
        x, called = _log_odds(given, j), given.hard[:, j] == 1
        maps = _calibrations(_log_odds(reference, j), reference.labels, rng)
        value[j] = expected_metrics(expit(maps[0, 0] + maps[0, 1] * x), called, x)
        drawn = []
        for offset, slope in maps[1:]:
            rows = rng.integers(len(x), size=len(x))
            y = rng.random(len(x)) < expit(offset + slope * x[rows])
            drawn.append([np.mean(y == called[rows]), _area(y, x[rows])])
        found[1:, j] = np.nanquantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return Answer(value, np.minimum(low, value), np.maximum(high, value))


def expected_metrics(p: Floats, called: Bools, scores: Floats) -> tuple[float, float]:
    """Expected accuracy, and area of the expected pairs, of labels drawn from p (n,)."""
    n = len(p)
    positive = np.r_[np.ones(n), np.zeros(n)]
    area = roc_auc_score(positive, np.r_[scores, scores], sample_weight=np.r_[p, 1 - p])
    # An item is no pair with itself, which counts as a tie there.
    pairs, own = p.sum() * (1 - p).sum(), (p * (1 - p)).sum()
    return float(np.where(called, p, 1 - p).mean()), float((area * pairs - own / 2) / (pairs - own))


def _area(y: Bools, scores: Floats) -> float:
    """Area under the ROC curve by ranks, as `roc_auc_score` in a tenth of its time."""
    positive = int(y.sum())
    above = rankdata(scores)[y].sum() - positive * (positive + 1) / 2
    return float(above / pairs) if (pairs := positive * (len(y) - positive)) else float("nan")


def _log_odds(predictions: Predictions, j: int) -> Floats:
    p = np.clip(predictions.probabilities[:, j, 1], 1e-12, 1 - 1e-12)
    return np.clip(np.log(p / (1 - p)), -_CLIP, _CLIP)


def _calibrations(x: Floats, labels: Ints, rng: np.random.Generator) -> Floats:
    """Offset and slope of the logistic map: the mode, and draws around it, (1 + draws, 2)."""
    design = np.zeros((len(x), 2, 2))
    design[:, 1] = np.stack([np.ones(len(x)), x], axis=1)
    evidence = np.where(np.arange(2) == labels[:, None], 0.0, -np.inf)
    mode = fit_map(design, evidence, np.array([0.0, 1.0]), np.array(_PRIOR_SDS) ** -2)
    root = np.linalg.cholesky(np.linalg.inv(mode.hessian))
    draws = mode.coefficients + rng.standard_normal((_DRAWS, 2)) @ root.T
    return np.concatenate([mode.coefficients[None], draws])


WAYS: Mapping[str, Callable[[Predictions, Predictions, int], Answer]] = {
    "with reference": lambda given, other, seed: _estimated(given, seed, reference=other),
    "without": lambda given, other, seed: _estimated(given, seed),
    "reference only": reference_only,
    "labels only": lambda given, other, seed: _estimated(given, seed, "labeled"),
}
"""`auto` with and without the reference, the reference alone, and the labels alone."""


def judged(
    pair: Pair, runs: int, ways: Sequence[str] = tuple(WAYS), sizes: Sequence[int] = N_LABELED
) -> list[dict[str, Any]]:
    """Error, coverage and width of each way, size and metric: means over classifiers and runs."""
    truth, found = truth_of(pair.target, METRICS), []
    for n_labeled, run in product(sizes, range(runs)):
        rng = generator("reference", SEED, pair.name, n_labeled, run)
        n = min(n_labeled + N_UNLABELED, pair.target.n_items)
        items = pair.target.take(rng.choice(pair.target.n_items, n, replace=False))
        given = items.revealing(np.arange(n_labeled))
        size = min(N_REFERENCE, pair.reference.n_items)
        chosen = rng.choice(pair.reference.n_items, size, replace=False)
        seed = seed_of("reference", SEED, pair.name, n_labeled, run)
        for way in ways:
            if n_labeled or way != "labels only":
                value, low, high = WAYS[way](given, pair.reference.take(chosen), seed)
                known = np.isfinite([value, low, high, truth]).all(axis=0)
                each = {"error": np.abs(value - truth), "width": high - low,
                        "coverage": (low <= truth) & (truth <= high)}  # fmt: skip
                each = {k: pd.DataFrame(np.where(known, v, np.nan)).mean() for k, v in each.items()}
                place = {"pair": pair.name, "n_labeled": n_labeled, "way": way}
                found.append(pd.DataFrame(each).assign(**place, metric=METRICS))
    rows = pd.concat(found).groupby(["pair", "n_labeled", "way", "metric"], sort=False)
    means = rows[["error", "coverage", "width"]].mean()
    means = means.assign(error_se=rows["error"].sem(), runs=rows["error"].count())
    columns = ["error", "error_se", "coverage", "width", "runs"]
    return plain(means[columns].round(5).reset_index().to_dict("records"))


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The page's tables: one per metric, a line per pair and size, a column per way."""
    runs = max((row["runs"] for row in rows), default=0)
    head = (
        f"{N_UNLABELED} unlabeled items of the target, {N_REFERENCE:,} labeled ones of the "
        f"reference, {runs} run{'s' * (runs != 1)}. Cells: mean absolute error in points, how "
        f"often the {LEVEL:.0%} interval holds, its mean width in points."
    )
    text = [
        "-" if r["error"] is None
        else f"{100 * r['error']:.1f}, {r['coverage']:.0%}, {100 * r['width']:.0f}"
        for r in rows
    ]  # fmt: skip
    tables = []
    for metric, own in pd.DataFrame(rows).assign(text=text).groupby("metric", sort=False):
        wide = across(own, ["pair", "n_labeled"], "way", empty="-")
        wide = wide.reindex(columns=list(WAYS), fill_value="-")
        tables.append(markdown(wide, [f"{metric}: target by reference", "labels"]))
    return "\n\n".join([head, *tables])


def run_cell(cell: dict[str, Any], data: Path) -> dict[str, Any]:
    """What is found on the pairs of a file."""
    pairs = SOURCES[cell["source"]](data)
    return {"rows": [row for pair in pairs for row in judged(pair, cell["runs"])]}


def blocks(lines: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The page's tables."""
    last = {line["source"]: line["rows"] for line in lines}
    return {"results": table([row for rows in last.values() for row in rows])}


if __name__ == "__main__":
    run_kept(
        __doc__, RESULTS, run_cell,
        lambda given: (
            {"source": source, "runs": given.runs}
            for source in SOURCES
            if given.page_only or (given.data / source).is_file()
        ),
        blocks, PAGE, data=DATA, runs=RUNS,
    )  # fmt: skip
