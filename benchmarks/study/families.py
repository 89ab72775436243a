"""Made sets of classifiers: scikit-learn's data and learners, thousands of kinds, all labels known.

A set is fixed by its family (where the data come from) and a seed, which draws how many classes
and classifiers it has, what they learn, from what, and how far their confidence is off.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn import datasets
from sklearn.base import ClassifierMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from fewlabels import Predictions

Floats, Ints = np.ndarray, np.ndarray

POPULATION = 20_000
"""Items whose predictions and labels are known; the truth is the metric on all of them."""

_MOST_TRAINING = 4_000
_PREVALENCES = (0.01, 0.03, 0.1, 0.2, 0.35, 0.5)
COMPOSITIONS = ("siblings", "mixed", "regions", "features")
"""How the classifiers of a set differ: by training sample alone, by learner as well, by the part of
the items that they learned from, or by the columns that they see."""

_SHARES = (0.35, 0.35, 0.15, 0.15)


class MadeSet(NamedTuple):
    """A set of classifiers, how it was made, and all predictions and labels."""

    name: str
    family: str
    composition: str
    prevalence: float
    temperature: float
    predictions: Predictions


Table = tuple[Floats, Ints]
Source = Callable[[np.random.Generator, int, int], Table]
"""(rng, n, K) -> features (n, d) and classes (n,)."""


def make_set(family: str, seed: int, population: int = POPULATION) -> MadeSet:
    """The set of classifiers of a family and a seed; the same seed gives the same bits."""
    source, most_classes = FAMILIES[family]
    rng = np.random.default_rng([zlib.crc32(family.encode()), seed])
    several = rng.random() >= 0.5 and most_classes > 2
    k = int(rng.integers(3, most_classes + 1)) if several else 2
    n_models = int(rng.integers(2, 9))
    composition = str(rng.choice(COMPOSITIONS, p=_SHARES))
    prevalence = float(rng.choice(_PREVALENCES)) if k == 2 else 1 / k
    spare = 1.2 / (1 if k > 2 else min(prevalence / 0.5, 1.0))
    wanted = population + 4 * _MOST_TRAINING
    x, y = source(rng, int(wanted * min(spare, 8)), k)
    x, y = _at_prevalence(rng, x, y, prevalence if k == 2 else None, wanted)
    y = np.where(rng.random(len(y)) < rng.choice([0, 0, 0.02, 0.1]), rng.permutation(y), y)
    x = x[:, rng.permutation(x.shape[1])]
    held, own = slice(0, population), np.arange(population, len(y))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # half-trained networks are wanted too
        probabilities = _train(rng, x, y, k, own, held, n_models, composition)
    temperature, off = off_by(rng, probabilities, 0.4, 0.3)
    name, models = f"{family}-{seed}", [f"m{j + 1}" for j in range(n_models)]
    predictions = Predictions(off, y[held], models=models, classes=list(range(k)))
    share = float((y[held] == 1).mean()) if k == 2 else float("nan")
    return MadeSet(name, family, composition, share, temperature, predictions)


def _at_prevalence(
    rng: np.random.Generator, x: Floats, y: Ints, prevalence: float | None, wanted: int
) -> Table:
    """Rows in random order, of two classes as many positive as asked."""
    order = rng.permutation(len(y))
    if prevalence is None:
        return x[order[:wanted]], y[order[:wanted]]
    positive, negative = order[y[order] == 1], order[y[order] == 0]
    size = int(min(wanted, len(positive) / prevalence, len(negative) / (1 - prevalence)))
    count = round(size * prevalence)
    rows = rng.permutation(np.concatenate([positive[:count], negative[: size - count]]))
    return x[rows], y[rows]


def off_by(
    rng: np.random.Generator, probabilities: Floats, together: float, each: float
) -> tuple[float, Floats]:
    """A temperature of all classifiers, and probabilities (n, M, K) off by it and by one of each.

    `together` and `each` say how often there is one in common, and one each, other than 1.
    """
    n_models = probabilities.shape[1]
    temperature = float(np.exp(rng.normal(0, 0.5))) if rng.random() < together else 1.0
    own = np.exp(rng.normal(0, 0.3, n_models)) if rng.random() < each else np.ones(n_models)
    if temperature == 1 and (own == 1).all():
        return temperature, probabilities
    return temperature, sharpened(probabilities, 1 / (temperature * own))


def sharpened(probabilities: Floats, sharpness: Floats) -> Floats:
    """Probabilities (n, M, K) to the power of each classifier's sharpness (M,), normalised."""
    logs = np.log(np.clip(probabilities, 1e-12, None))
    return softmax(logs * sharpness[:, None], axis=2)


def _train(
    rng: np.random.Generator, x: Floats, y: Ints, k: int, own: Ints, held: slice,
    n_models: int, composition: str,
) -> Floats:  # fmt: skip
    """Probabilities of the held items (n, M, K) by classifiers of a composition."""
    sizes = np.exp(rng.uniform(np.log(100), np.log(_MOST_TRAINING), n_models))
    if composition == "siblings":
        sizes[:] = sizes[0]
    kinds = rng.integers(len(LEARNERS), size=n_models)
    if composition != "mixed":
        kinds[:] = kinds[0]
    out = np.empty((len(x[held]), n_models, k))
    direction = rng.standard_normal((x.shape[1],))
    for j in range(n_models):
        pool = region_of(rng, x, own, direction) if composition == "regions" else own
        features = composition == "features"
        columns = some_columns(rng, x.shape[1]) if features else np.arange(x.shape[1])
        rows = with_every_class(rng, y, pool, own, k, int(sizes[j]))
        learner = trained(LEARNERS[kinds[j]](rng), x, y, rows, columns)
        out[:, j] = learner.predict_proba(x[held][:, columns])
    return out


def region_of(rng: np.random.Generator, x: Floats, own: Ints, direction: Floats) -> Ints:
    """Those of some rows that lie in two fifths of a direction (d,), with a blurred border."""
    place = x[own] @ direction + rng.normal(0, 0.5 * x[own].std(), len(own))
    rank = place.argsort().argsort() / len(own)
    low = rng.uniform(0, 0.6)
    return own[(rank >= low) & (rank <= low + 0.4)]


def some_columns(rng: np.random.Generator, d: int) -> Ints:
    """From three to seven tenths of d columns, at least one."""
    return rng.permutation(d)[: max(1, round(d * rng.uniform(0.3, 0.7)))]


def trained(learner: ClassifierMixin, x: Floats, y: Ints, rows: Ints, columns: Ints) -> Pipeline:
    """A learner on some rows and columns, which are standardised."""
    return make_pipeline(StandardScaler(), learner).fit(x[np.ix_(rows, columns)], y[rows])


def with_every_class(
    rng: np.random.Generator, y: Ints, pool: Ints, own: Ints, k: int, size: int
) -> Ints:
    """Training rows of a pool, and at least two of each class, from elsewhere if need be."""
    rows = rng.choice(pool, min(size, len(pool)), replace=False)
    for c in range(k):
        lacking = 2 - int((y[rows] == c).sum())
        if lacking > 0:
            rows = np.append(rows, rng.choice(own[y[own] == c], lacking))
    return rows


def drawn_seed(rng: np.random.Generator) -> int:
    """A seed for scikit-learn."""
    return int(rng.integers(2**31))


LEARNERS: tuple[Callable[[np.random.Generator], ClassifierMixin], ...] = (
    lambda rng: LogisticRegression(C=float(10 ** rng.uniform(-2, 2)), max_iter=300),
    lambda rng: GaussianNB(),
    lambda rng: LinearDiscriminantAnalysis(solver="lsqr", shrinkage=float(rng.uniform(0.05, 0.9))),
    lambda rng: KNeighborsClassifier(int(rng.choice([5, 15, 40]))),
    lambda rng: DecisionTreeClassifier(
        min_samples_leaf=int(rng.choice([1, 5, 20])), random_state=drawn_seed(rng)
    ),
    lambda rng: RandomForestClassifier(
        30, min_samples_leaf=int(rng.choice([1, 5])), random_state=drawn_seed(rng)
    ),
    lambda rng: ExtraTreesClassifier(
        30, max_depth=int(rng.choice([4, 12])), random_state=drawn_seed(rng)
    ),
    lambda rng: MLPClassifier(
        (32,), max_iter=int(rng.choice([30, 120])), tol=0, n_iter_no_change=1000,
        early_stopping=False, random_state=drawn_seed(rng),
    ),
)  # fmt: skip
"""Unfitted classifiers, whose settings are drawn."""


def _classification(rng: np.random.Generator, n: int, k: int) -> Table:
    clusters = int(rng.integers(1, 4))
    informative = int(rng.integers(int(np.ceil(np.log2(k * clusters))) + 1, 12))
    return datasets.make_classification(
        n, informative + int(rng.integers(0, 10)), n_informative=informative, n_redundant=0,
        n_classes=k, n_clusters_per_class=clusters, class_sep=float(rng.uniform(0.6, 1.8)),
        random_state=drawn_seed(rng),
    )  # fmt: skip


def _quantiles(rng: np.random.Generator, n: int, k: int) -> Table:
    return datasets.make_gaussian_quantiles(
        n_samples=n, n_features=int(rng.integers(2, 7)), n_classes=k, random_state=drawn_seed(rng)
    )


def _blobs(rng: np.random.Generator, n: int, k: int) -> Table:
    d = int(rng.integers(2, 10))
    centres = rng.normal(0, rng.uniform(1, 2.5), (k, d))
    spread = list(np.exp(rng.normal(0.2, 0.3, k)))
    return datasets.make_blobs(n, centers=centres, cluster_std=spread, random_state=drawn_seed(rng))


def _shapes(rng: np.random.Generator, n: int, k: int) -> Table:
    noise = float(rng.uniform(0.1, 0.5))
    make = datasets.make_moons if rng.random() < 0.5 else datasets.make_circles
    x, y = make(n, noise=noise, random_state=drawn_seed(rng))
    return np.column_stack([x, rng.normal(size=(n, int(rng.integers(0, 4))))]), y


def _cut(rng: np.random.Generator, value: Floats, k: int) -> Ints:
    """Classes of about equal size by the rank of a noisy value."""
    noisy = value + rng.normal(0, rng.uniform(0.05, 0.6) * value.std(), len(value))
    return np.asarray(np.searchsorted(np.quantile(noisy, np.arange(1, k) / k), noisy))


def _friedman(rng: np.random.Generator, n: int, k: int) -> Table:
    make = (datasets.make_friedman1, datasets.make_friedman2, datasets.make_friedman3)
    x, value = make[int(rng.integers(3))](n, random_state=drawn_seed(rng))
    return x, _cut(rng, value, k)


def _sparse(rng: np.random.Generator, n: int, k: int) -> Table:
    x, value = datasets.make_sparse_uncorrelated(
        n, int(rng.integers(6, 20)), random_state=drawn_seed(rng)
    )
    return x, _cut(rng, value, k)


def _manifold(rng: np.random.Generator, n: int, k: int) -> Table:
    make = datasets.make_swiss_roll if rng.random() < 0.5 else datasets.make_s_curve
    x, place = make(n, noise=float(rng.uniform(0.05, 0.5)), random_state=drawn_seed(rng))
    return x, _cut(rng, place, k)


def _hastie(rng: np.random.Generator, n: int, k: int) -> Table:
    x, y = datasets.make_hastie_10_2(n, random_state=drawn_seed(rng))
    return x, (y > 0).astype(np.int64)


def _real(load: Callable[..., Any], rng: np.random.Generator, n: int, k: int) -> Table:
    """Rows of a real table, drawn again and again with noise; classes merged to k of them."""
    x, y = load(return_X_y=True)
    merged = rng.permutation(int(y.max()) + 1) % k
    rows = rng.integers(len(y), size=n)
    noise = rng.normal(0, rng.uniform(0.3, 1.0), (n, x.shape[1]))
    return x[rows] + noise * x.std(axis=0), merged[y[rows]]


FAMILIES: Mapping[str, tuple[Source, int]] = {
    "classification": (_classification, 10), "quantiles": (_quantiles, 6), "blobs": (_blobs, 10),
    "shapes": (_shapes, 2), "friedman": (_friedman, 5), "sparse": (_sparse, 5),
    "manifold": (_manifold, 8), "hastie": (_hastie, 2),
    "digits": (partial(_real, datasets.load_digits), 10),
    "tumours": (partial(_real, datasets.load_breast_cancer), 2),
    "wine": (partial(_real, datasets.load_wine), 3),
}  # fmt: skip
"""Each family's source of data, and how many classes it has at most."""
