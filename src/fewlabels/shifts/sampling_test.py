"""Whether labeled items look like a random sample of all, by what the classifiers say of them.

Under random sampling without replacement every subset of the labeled items' size was equally likely
to be them, so a statistic's rank among those of random subsets has a known distribution: the test
is exact for any statistic, dimension and number of items. First the items as points, and their
traits with names; then the test; then statistics of subsets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Array, Bools, Floats, Ints
from fewlabels.kernels.blocks import one_blas_thread
from fewlabels.kernels.counter_based import mix, some_items
from fewlabels.kernels.simplex import centred_log, clip, vote_counts
from fewlabels.predictions import Predictions
from fewlabels.report.words import apart

_MANY = 20

Kind = Literal["confidence", "agreement", "predicted", "score", "missing"]


class Split(NamedTuple):
    """Masks (n,) of the labeled and the unlabeled items, between which a shift is.

    Items of sampling weight 0 stand for none of the population, and are in neither.
    """

    labeled: Bools
    unlabeled: Bools

    @staticmethod
    def from_predictions(predictions: Predictions) -> Split:
        """The parts of these items."""
        mask, weighty = predictions.told, predictions.weight > 0
        return Split(mask & weighty, ~mask & weighty)

    @property
    def missing(self) -> str | None:
        """Which part has no item, in words; None where both have some."""
        if self.labeled.any() and self.unlabeled.any():
            return None
        return self.counting(f"{'every' if self.labeled.any() else 'no'} item has a label")

    def counting(self, words: str) -> str:
        """Words that count items, and a note where those of sampling weight 0 do not count."""
        everything = (self.labeled | self.unlabeled).all()
        return words if everything else f"{words} (not counting those of sampling weight 0)"


class Trait(NamedTuple):
    """A number per item (column of `Traits.values`), and what it is in words.

    `about` is a classifier or a class; None is all of them.
    """

    kind: Kind
    about: str | None


@dataclass(frozen=True, eq=False)
class Traits:
    """Traits of items, values (n, t), NaN where an item lacks one."""

    names: tuple[Trait, ...]
    values: Floats


def beliefs(predictions: Predictions) -> Floats:
    """P(class) of every classifier whatever it gives, (n, M, K); NaN where it gives nothing.

    A vote is the probability .9 of its class, and a score, which has no unit, is taken in
    standard deviations from its mean as a log odds.
    """
    n, m, k = predictions.n_items, predictions.n_models, predictions.n_classes
    out = np.full((n, m, k), np.nan)
    if predictions.scores is not None and k == 2:
        spread = standard_deviations(predictions.scores)
        centre = _means(predictions.scores)
        z = (predictions.scores - centre) / np.where(spread > 0, spread, 1.0)
        out[:, :, 1] = 1 / (1 + np.exp(-z))
        out[:, :, 0] = 1 - out[:, :, 1]
    votes = predictions.hard
    bare = np.isnan(out[:, :, 0]) & (votes >= 0)
    item, model = np.nonzero(bare)
    out[item, model] = 0.1 / (k - 1)
    out[item, model, votes[item, model]] = 0.9
    if predictions.probabilities is not None:
        provided = predictions.has_probabilities
        out[provided] = predictions.probabilities[provided]
    return out


def standard_deviations(values: Floats) -> Floats:
    """Standard deviations of columns (n, t) over what is not NaN; 0 where nothing is, (t,)."""
    defined = ~np.isnan(values)
    square = np.where(defined, values - _means(values), 0.0) ** 2
    out: Floats = np.sqrt(square.sum(axis=0) / np.maximum(defined.sum(axis=0), 1))
    return out


def _means(values: Floats) -> Floats:
    defined = ~np.isnan(values)
    out: Floats = np.where(defined, values, 0.0).sum(axis=0) / np.maximum(defined.sum(axis=0), 1)
    return out


def points(p: Floats) -> Floats:
    """Items as points, (n, d): each classifier's centred log-ratio scores.

    A classifier's block has mean square 1, so that none outweighs the others by its sharpness;
    what is missing is at its mean. Of more than 20 classifiers the mean score stands for all.
    """
    centred = centred_log(clip(p))
    if centred.shape[1] > _MANY:
        defined = ~np.isnan(centred[:, :, :1])
        count = np.maximum(defined.sum(axis=1), 1)
        return _unit(np.where(defined, centred, 0.0).sum(axis=1) / count)
    return np.concatenate([_unit(centred[:, j]) for j in range(centred.shape[1])], axis=1)


def disagreement(centred: Floats) -> Floats:
    """Root mean square deviation of the classifiers' centred logs (n, M, K) from their mean."""
    defined = ~np.isnan(centred[:, :, :1])
    count = np.maximum(defined.sum(axis=(1, 2)), 1)
    values = np.where(defined, centred, 0.0)
    mean = values.sum(axis=1) / count[:, None]
    square = np.where(defined, centred - mean[:, None, :], 0.0) ** 2
    out: Floats = np.sqrt(square.sum(axis=(1, 2)) / count)
    return out


def _unit(block: Floats) -> Floats:
    """Columns about their means, missing ones there, of mean square 1 in all."""
    centred_block = np.nan_to_num(block - _means(block))
    size = np.sqrt((centred_block**2).sum(axis=1).mean())
    return centred_block / size if size > 1e-12 else np.zeros_like(centred_block)


def traits(predictions: Predictions, p: Floats) -> Traits:
    """Traits of items: confidence, agreement, predicted classes, scores, gaps.

    Of more than 20 classifiers, those of all together; nobody looks at each of so many.
    """
    names: list[Trait] = []
    columns: list[Floats] = []

    def add(kind: Kind, about: str | None, column: Floats) -> None:
        names.append(Trait(kind, about))
        columns.append(column)

    each = predictions.n_models <= _MANY
    counts = vote_counts(predictions.hard, predictions.n_classes)
    size = counts.sum(axis=1)
    if predictions.has_probabilities.any():
        sure = np.where(predictions.has_probabilities, p.max(axis=2), np.nan)
        if predictions.n_models > 1:
            total = np.nan_to_num(sure).sum(axis=1)
            add("confidence", None, _ratio(total, (~np.isnan(sure)).sum(axis=1)))
        for j in np.flatnonzero(each & predictions.has_probabilities.any(axis=0)):
            add("confidence", predictions.models[j], sure[:, j])
    if predictions.n_models > 1:
        pairs = size * (size - 1)
        add("agreement", None, _ratio((counts * (counts - 1)).sum(axis=1), pairs))
    for k, name in enumerate(predictions.classes):
        if predictions.n_classes > 2 or k == 1:  # of two classes one says it all
            add("predicted", str(name), _ratio(counts[:, k], size))
    if predictions.scores is not None and each:
        alone = ~predictions.has_probabilities.any(axis=0)
        for j in np.flatnonzero(alone & ~np.isnan(predictions.scores).all(axis=0)):
            add("score", predictions.models[j], predictions.scores[:, j])
    missing = np.isnan(p[:, :, 0])
    if not each:
        add("missing", None, missing.mean(axis=1))
    for j in np.flatnonzero(each & missing.any(axis=0) & ~missing.all(axis=0)):
        add("missing", predictions.models[j], missing[:, j].astype(float))
    values = np.stack(columns, axis=1) if columns else np.empty((predictions.n_items, 0))
    return Traits(tuple(names), values)


def _ratio(numerator: Floats, denominator: Array) -> Floats:
    """Part of the whole, (n,); NaN where the whole is 0."""
    return np.divide(
        numerator, denominator, out=np.full(len(numerator), np.nan), where=denominator > 0
    )


FEWEST_LABELS = 5
"""With fewer labeled items nothing can be found: the rarest of subsets would not be rare."""

POWER = 1.96 + 0.84
"""A difference of so many standard errors is found in four cases of five, at the level .05."""

LEVEL = 0.05
"""Level at which a difference is reported."""

_DRAWN_SALT, _ORDER_SALT = 0x5A3C, np.uint64(0x5A3D)

_EQUAL = 1e-9
"""Statistics that differ by less, relatively, are ties: sums in another order."""

_GATHER = 5
"""Reading a distance by index takes as long as multiplying so many rows."""

_AT_ONCE = 2**22


@dataclass(frozen=True)
class Sizes:
    """Limits of the items of each kind that are examined, and of the subsets drawn.

    Of many classifiers, as many are examined as give `cells` probabilities. Items are chosen by
    their keys: a random part of a random sample is a random sample.
    """

    labeled: int
    unlabeled: int
    permutations: int
    cells: int = 2**23


THOROUGH = Sizes(500, 2000, 1999)
QUICK = Sizes(500, 2000, 999)
GLANCE = Sizes(500, 2000, 99)


class Difference(NamedTuple):
    """A trait's mean in the labeled and in the other items, and how strange that is.

    `effect` is the difference in standard deviations of the trait, `p_value` adjusted for all the
    traits looked at, `detectable` the difference that would be found in four cases of five, and
    `gap` the largest difference between the two distribution functions.
    """

    trait: Trait
    labeled: float
    unlabeled: float
    effect: float
    p_value: float
    detectable: float
    gap: float

    @property
    def words(self) -> str:
        """The difference in words and numbers."""
        kind, about = self.trait
        labeled, unlabeled = apart(self.labeled, self.unlabeled, 0, "%")
        shares = f"{labeled} of labeled and {unlabeled} of unlabeled items"
        if kind == "confidence":
            who = "the classifiers are" if about is None else f"{about} is"
            ours, others = apart(self.labeled, self.unlabeled)
            more = "as" if ours == others else "more" if self.labeled > self.unlabeled else "less"
            return f"{who} {more} confident on labeled items: {ours} on average, against {others}"
        if kind == "agreement":
            return f"classifiers agree on {shares}"
        if kind == "predicted":
            return f"class {about} is predicted for {shares}"
        if kind == "missing" and about is None:
            return (
                f"classifiers lack {labeled} of their predictions on labeled and {unlabeled} on "
                "unlabeled items"
            )
        if kind == "missing":
            return f"{about} has no prediction for {shares}"
        ours, others = apart(self.labeled, self.unlabeled, 3, "g")
        return f"{about} scores labeled items {ours} on average, and unlabeled ones {others}"


@dataclass(frozen=True, eq=False)
class SamplingTest:
    """Whether the labeled items look like a random sample; p-values of exact permutation tests.

    `p_value` is of the two tests together: the `energy` distance between score vectors, and the
    largest difference of a trait. `differences` go from the least probable to the most.
    """

    p_value: float
    energy: float
    energy_p_value: float
    differences: tuple[Difference, ...]
    n_labeled: int
    n_unlabeled: int

    @property
    def worst(self) -> str:
        """The difference that random sampling explains least, in words."""
        if self.differences and self.differences[0].p_value < LEVEL:
            return self.differences[0].words
        return "the joint distribution of their scores differs, though no one trait does"


def compared(predictions: Predictions, sizes: Sizes) -> tuple[Predictions, int]:
    """The items examined, labeled first, in an order that is random by their keys; their number.

    Not those of smallest key: a stream keeps rows because their keys are small, but copies of a
    frequent row whatever theirs. Of a cluster, which was drawn as a whole, one row.
    """
    split = Split.from_predictions(predictions)
    masks, most = (split.labeled, split.unlabeled), (sizes.labeled, sizes.unlabeled)
    if predictions.multiplicity is None:
        mixed = mix(predictions.keys ^ _ORDER_SALT)
        order = predictions.apart(np.lexsort((mixed, ~split.labeled)))
        rows = [order[mask[order]][:size] for mask, size in zip(masks, most, strict=True)]
    else:
        rows = [
            _drawn(predictions, np.flatnonzero(mask), size)
            for mask, size in zip(masks, most, strict=True)
        ]
        predictions = predictions.with_multiplicity(None)
    return _most_heard(predictions.take(np.concatenate(rows)), sizes.cells), len(rows[0])


def _most_heard(items: Predictions, cells: int) -> Predictions:
    """Of many classifiers, those with predictions on most items, as many as a test can hold."""
    most = max(cells // max(items.n_items * items.n_classes, 1), _MANY)
    if items.n_models <= most:
        return items
    heard = items.ballots.getnnz(axis=0)
    if items.scores is not None:
        heard = np.maximum(heard, np.isfinite(items.scores).sum(axis=0))
    chosen = np.sort(np.argsort(-heard, kind="stable")[:most])
    return items.select_models([items.models[j] for j in chosen])


def _drawn(predictions: Predictions, rows: Ints, size: int) -> Ints:
    """Rows of `size` of the items that some rows stand for, chosen at random by their keys."""
    keys = predictions.keys[rows]
    times = some_items(predictions.times[rows], keys, size, _DRAWN_SALT)
    return np.repeat(rows, times.astype(np.int64))


def sampling_test(
    predictions: Predictions, rng: np.random.Generator, sizes: Sizes = THOROUGH
) -> SamplingTest:
    """Test by permutation that the labeled items are a random sample of all.

    Two statistics of the labeled against the others are ranked among those of random subsets of as
    many items: the energy distance between score vectors (any difference in distribution), and the
    largest standardised difference of a trait's mean (confidence, agreement, predicted class: what
    a person would name). The smaller p-value of the two is ranked likewise, so the level of the
    whole is exact. Labels are not used.

    Source: Székely & Rizzo (2004); Westfall & Young (1993).
    """
    chosen, n_labeled = compared(predictions, sizes)
    every = first_and_random(rng, chosen.n_items, n_labeled, sizes.permutations)
    p = beliefs(chosen)
    energies = energy_distances(distances(points(p)), every)
    each = traits(chosen, p)
    spread = standard_deviations(each.values)
    differing = np.flatnonzero(spread > 1e-12)
    values, spread = each.values[:, differing], spread[differing]
    drawn = mean_differences(values, every)
    # In standard errors under random sampling: where much is missing, means of few items vary more.
    error = np.sqrt(np.mean(np.nan_to_num(drawn) ** 2, axis=0))
    z = np.abs(drawn) / np.where(error > 0, error, np.inf)
    top = np.nan_to_num(z).max(axis=1) if len(differing) else np.zeros(len(every))
    least = np.minimum(_ranks(energies), _ranks(top))
    adjusted = max_adjusted(z[0], z[1:])
    inside = np.arange(chosen.n_items) < n_labeled
    differences = [
        Difference(
            each.names[column],
            _mean(values[inside, t]),
            _mean(values[~inside, t]),
            float(drawn[0, t] / spread[t]),
            float(adjusted[t]),
            float(POWER * error[t]),
            kolmogorov_smirnov(values[:, t], inside),
        )
        for t, column in enumerate(differing)
    ]
    order = np.argsort(-np.nan_to_num(z[0]), kind="stable")
    return SamplingTest(
        p_value=p_value(-least[0], -least[1:]),
        energy=float(energies[0]),
        energy_p_value=p_value(energies[0], energies[1:]),
        differences=tuple(differences[t] for t in order),
        n_labeled=n_labeled,
        n_unlabeled=chosen.n_items - n_labeled,
    )


def _ranks(drawn: Floats) -> Floats:
    """How many of the values are at least as large as each, itself included, (B,)."""
    near = drawn - 1e-9 * np.abs(drawn)
    out: Floats = len(drawn) - np.searchsorted(np.sort(drawn), near, side="left").astype(float)
    return out


def _mean(values: Floats) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


# --- statistics of subsets, and their ranks -----------------------------------------------------


def random_subsets(rng: np.random.Generator, n: int, size: int, count: int) -> Ints:
    """Random subsets of 0 .. n-1, one per row, shape (count, size)."""
    if size == 0 or n == 0:
        return np.empty((count, size), dtype=np.int64)
    height = max(_AT_ONCE // n, 1)
    blocks = [
        rng.random((min(height, count - first), n), dtype=np.float32).argpartition(
            size - 1, axis=1
        )[:, :size]
        for first in range(0, count, height)
    ]
    return np.concatenate(blocks)


def first_and_random(rng: np.random.Generator, n: int, size: int, count: int) -> Ints:
    """The first `size` of n items, then random subsets of as many, shape (1 + count, size)."""
    return np.concatenate([np.arange(size)[None], random_subsets(rng, n, size, count)])


def distances(points: Floats) -> Floats:
    """Euclidean distances between all pairs of points (n, d), shape (n, n).

    By a matrix product, five times as fast as pair by pair; distances below 1e-7 of the points'
    length drown in rounding, which no mean of distances notices.
    """
    square = np.einsum("nd,nd->n", points, points)
    with one_blas_thread():
        out: Floats = points @ points.T
    out *= -2
    out += square
    out += square[:, None]
    np.maximum(out, 0.0, out=out)
    np.fill_diagonal(out, 0.0)
    np.sqrt(out, out=out)
    return out


def energy_distances(pairwise: Floats, subsets: Ints) -> Floats:
    """Energy distance between the items of each subset (B, s) and the others, shape (B,).

    2 E|X - Y| - E|X - X'| - E|Y - Y'|, the means over all pairs; 0 for equal distributions, and for
    those only. Source: Székely & Rizzo (2004), "Testing for equal distributions in high dimension",
    equation 5 without its factor of the sizes, which no permutation changes.
    """
    n, size = len(pairwise), subsets.shape[1]
    if size in (0, n):
        return np.zeros(len(subsets))
    rows = pairwise.sum(axis=1)
    total = rows.sum()
    inside = _inside(pairwise, subsets)
    incident = rows[subsets].sum(axis=1)
    across = incident - inside
    outside = total - 2 * incident + inside
    others = n - size
    energy: Floats = 2 * across / (size * others) - inside / size**2 - outside / others**2
    return energy


def _inside(pairwise: Floats, subsets: Ints) -> Floats:
    """Sum of the distances within each subset, (B,)."""
    n, size = len(pairwise), subsets.shape[1]
    out = np.empty(len(subsets))
    few = size * _GATHER < n
    height = max(_AT_ONCE // (size * size if few else n), 1)
    for first in range(0, len(subsets), height):
        chosen = subsets[first : first + height]
        if few:
            each = pairwise[chosen[:, :, None], chosen[:, None, :]].sum(axis=(1, 2))
        else:
            marks = np.zeros((len(chosen), n))
            np.put_along_axis(marks, chosen, 1.0, axis=1)
            with one_blas_thread():
                each = np.einsum("bn,bn->b", marks @ pairwise, marks)
        out[first : first + height] = each
    return out


def mean_differences(values: Floats, subsets: Ints) -> Floats:
    """Mean inside each subset minus mean outside, of columns (n, t) with NaN for missing: (B, t).

    NaN where one of the two has no value at all.
    """
    present = ~np.isnan(values)
    filled = np.where(present, values, 0.0)
    total, count = filled.sum(axis=0), present.sum(axis=0)
    out = np.full((len(subsets), values.shape[1]), np.nan)
    # A column at a time: gathering (B, s, t) at once would leave the cache.
    for column in range(values.shape[1]):
        inside = filled[:, column][subsets].sum(axis=1)
        sizes = present[:, column][subsets].sum(axis=1)
        rest = count[column] - sizes
        defined = (sizes > 0) & (rest > 0)
        out[defined, column] = (
            inside[defined] / sizes[defined] - (total[column] - inside[defined]) / rest[defined]
        )
    return out


def p_value(observed: float, drawn: Floats) -> float:
    """(1 + how many draws are at least as large) / (1 + draws): never below, exact on average.

    Source: Phipson & Smyth (2010), equation 2.
    """
    least = observed - _EQUAL * abs(observed)
    return float((1 + (drawn >= least).sum()) / (1 + len(drawn)))


def max_adjusted(observed: Floats, drawn: Floats) -> Floats:
    """P-values (t,) of statistics (t,) judged together against draws (B, t); larger is stranger.

    Each is compared with the largest of every draw, so that the chance that any of them is below
    alpha is at most alpha. Undefined draws (NaN) count as 0. Source: Westfall & Young (1993), maxT,
    single step.
    """
    top = np.nan_to_num(drawn).max(axis=1) if drawn.shape[1] else np.zeros(len(drawn))
    return np.array([p_value(float(value), top) for value in np.nan_to_num(observed)])


def kolmogorov_smirnov(values: Floats, inside: Bools) -> float:
    """Largest gap between the distribution functions inside and outside; NaN without values."""
    defined = ~np.isnan(values)
    x, y = np.sort(values[defined & inside]), np.sort(values[defined & ~inside])
    if not len(x) or not len(y):
        return float("nan")
    places = np.concatenate([x, y])
    gap = np.searchsorted(x, places, side="right") / len(x)
    gap -= np.searchsorted(y, places, side="right") / len(y)
    return float(np.abs(gap).max())
