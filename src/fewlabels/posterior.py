"""Posteriors over labels, of three kinds.

`LabelPosterior` is a class posterior: draws of P(label | parameters) for every item.
`ObservedLabels` are labels, or annotators' counts, and nothing of other items. `Means` estimate
metrics that are means over items without going through labels. The evaluation asks all three alike:
which items they cover, whether they infer labels, which draws there are.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from scipy.special import ndtri

from fewlabels.errors import Status
from fewlabels.kernels.arrays import Bools, Floats, Frozen, Ints, UInts
from fewlabels.kernels.blocks import computed_once, map_blocks, spans
from fewlabels.kernels.counter_based import uniforms
from fewlabels.kernels.importance import kept_places

_LABELS_SALT, _DOUBTS_SALT = 0x1ABE1, 0xD0B7
_CELLS = 2**19
"""Probabilities of a block of items, class by class and draw by draw, when draws are averaged."""


class ParameterDraws(Protocol):
    """Draws of a model's parameters, each with P(label) of every item."""

    @property
    def size(self) -> int:
        """How many draws there are."""

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        """P(label | draw) for these draws (D,) and items: a new array, shape (n, K, D).

        What every block needs, such as refits, is computed by the first and kept: see
        `first_block`.
        """


class MeanEstimator(Protocol):
    """Estimates metrics that are means over items without going through a label posterior."""

    def estimate(
        self, values: Floats, rows: Ints, *, best: float, size: int, population: bool
    ) -> tuple[float, Floats]:
        """Mean of a metric over items, NaN where undefined, and its interval draws (size,).

        `values` (n, K) are the metric's values for each item under each class, `rows` (n,) the
        items, indices into the predictions, and `best` the value of a perfect classifier. With
        `population` the mean is that of the population that the items come from, else of these
        items.
        """


class ScoreRates(Protocol):
    """Knows the population's rates at any threshold of one classifier's score."""

    def rates(self, thresholds: Floats, index: Ints) -> tuple[Floats, Floats, Floats]:
        """Prevalence (D,), recall (T, D) and false-positive rate (T, D) of parameter draws.

        An item is called positive where its score is at least the threshold; thresholds (T,) are
        in the units of the file.
        """


class VoteRates(Protocol):
    """Knows the population's confusion matrix of every classifier, draw by draw."""

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the M classifiers."""

    @property
    def place(self) -> Mapping[str, int]:
        """Place of every classifier among them, by its name."""

    @property
    def domains(self) -> tuple[str | None, ...]:
        """Names of the D domains; None alone where there are none."""

    @property
    def size(self) -> int:
        """How many draws there are, T."""

    @property
    def one_rate(self) -> bool:
        """Whether all it knows of a classifier is one error rate."""

    @property
    def error_rates(self) -> Floats:
        """Error rate of every classifier in every domain, (T, D, M)."""

    @property
    def confusion(self) -> Floats:
        """P(vote | class) of every classifier in every domain, (T, D, M, K classes, K votes)."""

    def covers(self, rows: Ints, j: int) -> bool:
        """Whether these items are all that classifier j votes on in the domains they are of."""

    def joint(self, rows: Ints, j: int, draws: slice = slice(None)) -> Floats:
        """P(vote, label) of classifier j, (K votes, K classes, T), where these items come from."""


@dataclass(frozen=True, eq=False)
class LabelSpread:
    """How far an item's label distribution is from its mean, in units of a single label's.

    A Dirichlet around the mean, of concentration alpha0 plus the number of labels that it was
    updated by; `sizes` (n,), infinite where the mean is the distribution, and `concentrations`
    (S,), which draws take in turn.
    """

    sizes: Floats
    concentrations: Floats

    def of(self, index: Ints, rows: Ints) -> Floats:
        """Share of the standard deviation of a single label of these items, (n, D)."""
        alpha0 = self.concentrations[index % len(self.concentrations)]
        share: Floats = 1 / np.sqrt(1 + alpha0 + self.sizes[rows, None])
        return share

    @property
    def none(self) -> bool:
        """Whether every mean is the distribution."""
        return bool(np.isinf(self.sizes).all())


@dataclass(frozen=True, eq=False)
class Fixed:
    """One certain parameter: the same P(label) in every draw."""

    probabilities: Floats
    size: int = 1

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        """P(label) of these items, shape (n, K, D)."""
        return np.repeat(self.probabilities[rows][:, :, None], len(index), axis=2)


def first_block(parameters: ParameterDraws) -> Floats:
    """A block of no items, (0, K, size): what every block needs is then there, before threads."""
    return parameters.block(np.arange(parameters.size), slice(0, 0))


def mean_of_draws(parameters: ParameterDraws, n: int, rows: Ints | None = None) -> Floats:
    """Mean of P(label) of n items, or some of them, over all parameter draws, (n, K)."""
    every = np.arange(parameters.size)
    k = first_block(parameters).shape[1]
    blocks = spans(n if rows is None else len(rows), max(_CELLS // (k * len(every)), 1))
    blocks_: list[Ints | slice] = [block if rows is None else rows[block] for block in blocks]
    means = map_blocks(lambda some: parameters.block(every, some).mean(axis=2), blocks_)
    return np.concatenate([np.empty((0, k)), *means])


class Allowance(NamedTuple):
    """Model error of a model of votes: how much better, and worse, classifiers may be.

    Standard deviations of a normal error in log-odds, one for each side.
    """

    better: float = 0.0
    worse: float = 0.0


_NO_DOUBT = Allowance()


@dataclass(frozen=True, eq=False)
class LabelPosterior(Frozen):
    """Posterior over the labels of n items, with the parameters' uncertainty.

    `given` is P(label) per item, (n, K), or a function that computes it on demand, as streams need
    only some parameter draws. None is the mean over the parameter draws. Known labels keep
    probability 1. `value_from` says what a point estimate is computed from: the parameter draws
    (a Bayesian model), or the marginals (a method that fixes its parameters at one estimate; its
    parameter draws then serve the interval alone). `interval_parameters`, where given, are draws
    under a more sceptical prior, for the intervals; `inflation` is by how much a metric's draws are
    moved away from the estimate, where they are known to lie too close. `allowance` is by how much,
    in log-odds, the model may be wrong about any bounded metric: see `log_odds_errors`.

    A method that fits one classifier at a time gives `per_model`, the posterior by which each one
    is judged (None: by the posterior of all); see `fit_each`. Where the draws are those of a
    mixture, and classifiers are judged by parts of it, `shares` say how much each parameter draw
    counts for a classifier, of values and of intervals: see `drawn_for`. `score_rates`, where
    given, are the rates of the population that follow from the parameters alone; `vote_rates`,
    those of hard predictions.

    Where a label is a distribution over classes (what annotators say of the item), `label_spread`
    says how far that distribution is from P(label), its mean. None: a label is one class.
    """

    given: Floats | Callable[[], Floats] | None
    parameters: ParameterDraws
    keys: UInts
    salt: int = 0
    value_from: Literal["draws", "marginals"] = "draws"
    interval_parameters: ParameterDraws | None = None
    inflation: float = 1.0
    allowance: Allowance = _NO_DOUBT
    label_spread: LabelSpread | None = None
    per_model: tuple[LabelPosterior | None, ...] = ()
    shares: Mapping[str, tuple[Floats, Floats]] = field(default_factory=dict)
    score_rates: ScoreRates | None = None
    vote_rates: VoteRates | None = None
    status: Status = Status.OK
    warnings: tuple[str, ...] = ()
    diagnostics: Mapping[str, Any] = field(default_factory=dict)

    infers: ClassVar[bool] = True
    """Whether it infers labels of items without one."""

    @property
    def counts_alone(self) -> bool:
        """Whether it knows only annotators' counts of some items."""
        return False

    @property
    def means(self) -> MeanEstimator | None:
        """Estimator of metrics that are means, where there is no P(label)."""
        return None

    def speaks_of(self, rows: Ints) -> Bools:
        """Items among these, (n,), whose labels it knows or infers."""
        return np.ones(len(rows), dtype=bool)

    @property
    def value_draws(self) -> ParameterDraws:
        """The draws that point estimates come from."""
        return self.parameters if self.value_from == "draws" else Fixed(self.probabilities)

    @property
    def interval_draws(self) -> ParameterDraws:
        """The draws that intervals come from."""
        return self.interval_parameters or self.parameters

    def __getstate__(self) -> dict[str, Any]:
        # The function holds the items and their features: its result is pickled instead.
        return self.__dict__ | {"given": self.probabilities}

    @computed_once
    def probabilities(self) -> Floats:
        """P(label) per item, shape (n, K)."""
        if self.given is None:
            return mean_of_draws(self.parameters, len(self.keys))
        return self.given() if callable(self.given) else self.given

    def probabilities_of(self, rows: Ints) -> Floats:
        """P(label) of some items, (n, K); of these alone where they are a part."""
        if self.given is None and len(rows) < len(self.keys):
            return mean_of_draws(self.parameters, len(rows), rows)
        return self.probabilities[rows]

    def of(self, j: int) -> LabelPosterior:
        """The posterior by which classifier j is judged."""
        return (self.per_model[j] if self.per_model else None) or self

    def drawn_for(
        self, who: Sequence[str], drawn: Floats, kind: Literal["values", "intervals"]
    ) -> Floats:
        """Draws (D, M) of metrics of some classifiers, each by the `shares` of its own.

        Draw d is of parameter draw d, modulo their number. Most keep their places, in which what is
        drawn beside the parameters is the same for all classifiers.
        """
        if not self.shares or len(drawn) < 2:
            return drawn
        out, columns_of = drawn.copy(), np.array(who)
        for name in self.shares.keys() & {*who}:
            weights = self.shares[name][kind == "intervals"]
            places = kept_places(weights[np.arange(len(drawn)) % len(weights)])
            columns = np.flatnonzero(columns_of == name)
            out[:, columns] = drawn[np.ix_(places, columns)]
        return out

    def log_odds_errors(self, who: Sequence[str], size: int) -> Floats | None:
        """What the `allowance` adds to log-odds of metrics of some classifiers, (size, M).

        Positive is better. Half of the variance is the same for all of them. None where the model
        is not doubted.
        """
        if not any(self.allowance):
            return None
        names = np.array([zlib.crc32(name.encode()) for name in ("", *who)], dtype=np.uint64)
        # Strata of (0, 1), each classifier's in an order of its own: spread as a normal is.
        order = np.argsort(uniforms(names, np.arange(size), self.salt ^ _DOUBTS_SALT), axis=1)
        z = ndtri((np.argsort(order, axis=1) + 0.5) / size).T
        z = (z[:, :1] + z[:, 1:]) / np.sqrt(2)
        out: Floats = np.where(z > 0, self.allowance.better, self.allowance.worse) * z
        return out

    def prepare(self) -> None:
        """Run the one-time work of the parameter draws, before threads start."""
        every = [self, *(posterior for posterior in self.per_model if posterior is not None)]
        both = (p for posterior in every for p in (posterior.parameters, posterior.interval_draws))
        for parameters in {id(p): p for p in both}.values():
            first_block(parameters)

    def marginals(self) -> Floats:
        """P(label) per item, (n, K), by `estimates.classes`: of two, `positive` is the last."""
        return self.probabilities

    def draws(self, size: int, rng: np.random.Generator | int = 0) -> Ints:
        """Hard labels drawn from the marginals, shape (size, n)."""
        salt = int(np.random.default_rng(rng).integers(2**63))
        return draw_labels(self.probabilities, self.keys, np.arange(size), salt).T

    def soft_draws(
        self, size: int, rng: np.random.Generator | int = 0, chunk: int = 32
    ) -> Iterator[tuple[Floats, Floats]]:
        """Parameter draws in chunks: weights (c,), summing to 1 in all, and P(label) (c, n, K)."""
        start = int(np.random.default_rng(rng).integers(self.parameters.size))
        for first in range(0, size, chunk):
            index = (start + np.arange(first, min(first + chunk, size))) % self.parameters.size
            block = self.parameters.block(index, slice(None))
            yield np.full(len(index), 1 / size), block.transpose(2, 0, 1)


@dataclass(frozen=True, eq=False)
class ObservedLabels(LabelPosterior):
    """Labels, or annotators' counts, of the items that are `observed` (n,), and of no others."""

    observed: Bools = field(kw_only=True)
    infers = False

    @property
    def counts_alone(self) -> bool:
        """Whether they are annotators' counts.

        Counts do not tell how far the items' own distributions are from them, so even these very
        items are judged as a sample of a population, which makes intervals rather wide.
        """
        return self.label_spread is not None

    def speaks_of(self, rows: Ints) -> Bools:
        """Which of some items (n,) are observed."""
        return self.observed[rows]


@dataclass(frozen=True, eq=False)
class Means(ObservedLabels):
    """Means over items, by an estimator that serves no other metric."""

    estimator: MeanEstimator = field(kw_only=True)

    @property
    def means(self) -> MeanEstimator:
        """The estimator."""
        return self.estimator


def draw_labels(
    probabilities: Floats, keys: UInts, streams: Ints, salt: int, which: Ints | None = None
) -> Ints:
    """One label per item and stream, shape (n, S), from P(label) (n, K) or (n, K, T).

    `which` (S,) of the T distributions each stream takes; None: in turn.
    """
    u = uniforms(keys, streams, salt ^ _LABELS_SALT)
    q = probabilities if probabilities.ndim == 3 else probabilities[:, :, None]
    if q.shape[1] > _FEW_CLASSES:
        which = np.arange(u.shape[1]) % q.shape[2] if which is None else which
        return _by_bisection(q, u, which)
    if which is not None:
        q = q[:, :, which]
    label = np.zeros(u.shape, dtype=np.int64)
    cumulative = np.zeros(q[:, 0].shape)
    # The last class takes what is left, so rounding can never draw a class that does not exist...
    for k in range(q.shape[1] - 1):
        cumulative = cumulative + q[:, k]
        label += u >= cumulative
    # ... unless its own probability is zero: then the last class that has any takes it.
    if q.shape[1] > 2 or (q[:, -1] == 0).any():
        last = q.shape[1] - 1 - np.argmax(q[:, ::-1] > 0, axis=1)
        np.minimum(label, last, out=label)
    return label


_FEW_CLASSES = 16
"""With more classes labels are found by bisection of the cumulative sums."""


def _by_bisection(q: Floats, u: Floats, which: Ints) -> Ints:
    """The same labels from q (n, K, T) and uniforms (n, S)."""
    k = q.shape[1]
    cumulative = np.cumsum(q, axis=1)
    item = np.arange(len(u))[:, None]
    low, high = np.zeros(u.shape, dtype=np.int64), np.full(u.shape, k - 1)
    for _ in range((k - 1).bit_length()):
        middle = (low + high) // 2
        beyond = u >= cumulative[item, middle, which]
        low = np.where(beyond & (low < high), middle + 1, low)
        high = np.where(beyond, high, middle)
    # Rounding can lead to the last class, whose own probability may be zero.
    last = np.argwhere((low == k - 1) & (q[:, -1][:, which] == 0))
    for i, s in last.tolist():
        low[i, s] = np.flatnonzero(q[i, :, which[s]] > 0)[-1]
    return low
