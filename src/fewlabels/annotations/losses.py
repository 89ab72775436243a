"""Losses against annotators' labels: of predicted probabilities, and of statistics of labels.

Each kind of loss is a statistic of items: states, sums over items, that add over blocks and files,
and values that follow from a state. Draws of a state are states of weighted items
(`fewlabels.evaluation.draws.drawn_sums`), so a value, an interval in memory and one of a stream are
read alike. Source: Mimori, Sasada, Matsui, Sato (2021), "Diagnostic Uncertainty Calibration".
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from fewlabels.annotations.label_histograms import (
    Annotated,
    HistogramSums,
    Origin,
    Scheme,
    Scored,
    bootstrap_origin,
    calibration_loss,
    epistemic_excess,
    histogram_sums,
    read_cells,
    scored_sums,
    sums_by_unit,
)
from fewlabels.annotations.statistics import DISAGREEMENT, LabelStatistic
from fewlabels.annotations.statistics import statistic as resolve
from fewlabels.checks.arguments import (
    RandomState,
    bins_of,
    bounded,
    label_counts,
    level_of,
    probability_rows,
    seed_of,
    whole,
)
from fewlabels.checks.arrays import sampling_weight
from fewlabels.errors import InputError, UsageError
from fewlabels.evaluation.draws import drawn_sums
from fewlabels.kernels.arrays import Array, Bools, Floats, Ints
from fewlabels.kernels.interval_draws import interval

Compat = Literal["lh_calib"] | None
Variance = Literal["labels", "residual"]
State = Sequence[Floats]
Ends = tuple[float, float]


class Loss(NamedTuple):
    """A metric of label histograms.

    An item needs `sets` disjoint sets of labels, each of the statistic's order. With `mean` it is a
    mean over items, and its bootstrap draws are centred on the estimate. It is between 0 and
    `largest`; None if it is debiased and so may be negative. `root_of` is the calibration loss
    whose root it is. An `independent` one takes off what labels add by chance, if those of an item
    are independent draws.
    """

    name: str
    sets: int = 1
    mean: bool = False
    largest: float | None = None
    root_of: str | None = None
    independent: bool = False


_OF_HISTOGRAMS = (
    Loss("accuracy", mean=True, largest=1),
    Loss("L", mean=True, largest=2),
    Loss("EL", 2, mean=True, independent=True),
    Loss("EL_plugin", mean=True, largest=2),
    Loss("CL"),
    Loss("CL_plugin", largest=2),
    Loss("CE", root_of="CL"),
    Loss("DL", 2, independent=True),
    Loss("DL_plugin", largest=2),
    Loss("L_disagreement", 2, mean=True, largest=1),
    Loss("CL_disagreement", 2),
    Loss("CL_disagreement_plugin", 2, largest=1),
    Loss("CE_disagreement", 2, root_of="CL_disagreement"),
)
_OF_STATISTICS = (
    Loss("L", mean=True, largest=1),
    Loss("CL"),
    Loss("CL_plugin", largest=1),
    Loss("CE", root_of="CL"),
    Loss("EL", 2, mean=True, independent=True),
)

METRICS = tuple(loss.name for loss in _OF_HISTOGRAMS)
"""The metrics of `evaluate`, in this order."""

BOUNDS = {m.name: (0.0 if m.largest else -math.inf, m.largest or 2.0) for m in _OF_HISTOGRAMS}
"""Between what they lie."""

STATISTIC_METRICS = tuple(loss.name for loss in _OF_STATISTICS)
"""The metrics of `evaluate_statistic`, in this order."""

_Items = TypeVar("_Items", Annotated, Scored)
Origins = tuple[Origin, ...]


def draws_for(level: float) -> int:
    """Number of draws for an interval: more for levels with ends further out."""
    return min(max(1000, 50 * math.ceil(0.8 / (1 - level))), 20_000)


@dataclass(frozen=True)
class Losses(ABC, Generic[_Items]):
    """Losses of one kind: how their state is summed, and read.

    A state is some arrays (U, ...), one row per unit of items; those of all items together have
    one. `order` is how many labels a set has, `unit` the unit of the losses.
    """

    metrics: ClassVar[tuple[Loss, ...]]
    scheme: Scheme
    name: str = ""
    order: int = 1
    unit: float = 1.0

    @abstractmethod
    def sums(self, items: _Items) -> State:
        """The state of all items as one unit."""

    @abstractmethod
    def read(
        self, state: State, origins: Origins | None = None
    ) -> tuple[dict[str, Floats], Origins]:
        """The metrics of each unit, (U,), and what bootstrap draws take from it where it is one."""

    @abstractmethod
    def _drawn(
        self, items: _Items, size: int, seed: int, all_items: State | None
    ) -> Iterator[State]:
        """States of bootstrap draws (`drawn_sums`); of no items, none."""

    @abstractmethod
    def lacking(self, loss: Loss, enough: int) -> str:
        """Why a metric is undefined, where so many items have enough labels."""

    def labels(self, loss: Loss) -> int:
        """How many labels an item needs to count for a metric."""
        needed = loss.sets * self.order
        return int(min(needed, self.scheme.panel)) if loss.independent else needed

    def bounds(self, loss: Loss) -> Ends:
        """The least and the largest that a loss may be."""
        if loss.largest is not None:
            return 0.0, loss.largest * self.unit
        return (0.0 if loss.root_of else -math.inf), math.inf

    def full_name(self, loss: Loss) -> str:
        """A metric's name among those of an assessment."""
        return f"{loss.name}_{self.name}" if self.name else loss.name

    def values(self, state: State) -> dict[str, float]:
        """The metrics of all items together."""
        value, _ = self.read(state)
        return {loss.name: float(value[loss.name][0]) for loss in self.metrics}

    def intervals(
        self, items: _Items, state: State, level: float, seed: int, *, sampled: bool = False
    ) -> dict[str, Ends]:
        """Interval of each metric; (NaN, NaN) where it is undefined.

        `state` is that of all items as one unit; with `sampled`, `items` are a random sample of
        them.
        """
        value, origins = self.read(state)
        states = self._drawn(items, draws_for(level), seed, state if sampled else None)
        values = [self.read(draw, origins)[0] for draw in states]
        out = {}
        for loss in self.metrics:
            source = loss.root_of or loss.name
            middle = float(value[source][0])
            drawn = np.concatenate([draw[source] for draw in values] or [np.zeros(0)])
            drawn = drawn[~np.isnan(drawn)]
            if not loss.mean and len(drawn):
                # The bootstrap mean of a debiased loss is the plugin of the data, as a resample
                # adds the sampling variance once more: the draws are shifted to the value.
                drawn = drawn + (middle - drawn.mean())
            low, high = interval(middle, drawn, level, self.bounds(loss))
            if loss.root_of:
                low, high = np.sqrt(np.maximum([low, high], 0))
            out[loss.name] = (float(low), float(high))
        return out

    def _rooted(self, value: dict[str, Floats]) -> dict[str, Floats]:
        roots = {loss.name: loss.root_of for loss in self.metrics if loss.root_of}
        return value | {e: np.sqrt(np.maximum(value[name_], 0)) for e, name_ in roots.items()}


class _Calibration(NamedTuple):
    """Calibration loss of each unit, (U,), NaN without weight; what debiasing removes from cells.

    `several` is where cells (U, K, B) have more than one item; `origin` what draws take.
    """

    plugin: Floats
    debiased: Floats
    removed: Floats
    several: Bools
    origin: Origin

    @staticmethod
    def from_sums(
        sums: Floats, weight: Floats, scheme: Scheme, origin: Origin | None
    ) -> _Calibration:
        """From sums of cells (U, F, K, B) and the weight of each unit."""
        cells = read_cells(sums, residual=scheme.residual, origin=origin)
        losses = calibration_loss(cells, weight, keep_singles=scheme.agreement)
        plugin, debiased = (
            np.where(weight > 0, loss.sum(axis=(-2, -1)), np.nan) for loss in losses
        )
        several = ~np.isnan(cells.unbiased)
        return _Calibration(
            plugin, debiased, losses[0] - losses[1], several, bootstrap_origin(cells, *losses)
        )


class HistogramLosses(Losses[Annotated]):
    """Losses of predicted probabilities against the label distribution, and of disagreement."""

    metrics = _OF_HISTOGRAMS

    def sums(self, items: Annotated) -> HistogramSums:
        """The state of all items as one unit."""
        return histogram_sums(items, self.scheme)

    def _drawn(
        self, items: Annotated, size: int, seed: int, all_items: State | None
    ) -> Iterator[State]:
        used = _used(items)
        # Without what diagrams alone need.
        scheme = replace(self.scheme, dispersion=self.scheme.agreement)

        def by_unit(data: Annotated, rows: Ints, units: int) -> HistogramSums:
            return sums_by_unit(data, scheme, rows, units)

        def as_pseudo_observation(
            data: Annotated, mass: Floats, generator: np.random.Generator
        ) -> Annotated:
            """As many labels as the items have, from a random distribution."""
            share = np.maximum(mass, 1e-300)
            share /= share.sum(axis=1, keepdims=True)
            labels = data.counts.sum(axis=1).astype(np.int64)
            return data._replace(counts=generator.multinomial(labels, share))

        if not used.all():
            items = items.take(np.flatnonzero(used))
        if len(items.counts):
            k = items.counts.shape[1]
            yield from drawn_sums(items, by_unit, as_pseudo_observation, k, size, seed, all_items)

    def read(
        self, state: State, origins: Origins | None = None
    ) -> tuple[dict[str, Floats], Origins]:
        """The metrics of each unit, (U,), and what bootstrap draws take from it where it is one."""
        sums = HistogramSums(*state)
        _, w, right, loss, el, w2, el2, excess, pair_loss = sums.items.T
        class_origin, pair_origin = origins or (None, None)
        cl = _Calibration.from_sums(sums.cells, w, self.scheme, class_origin)
        pair_weight = sums.pairs[:, 1].sum(axis=(-2, -1))
        pair = _Calibration.from_sums(sums.pairs, pair_weight, self.scheme, pair_origin)
        as_code = self.scheme.agreement
        with np.errstate(divide="ignore", invalid="ignore"):
            el_plugin = el / w
            el_debiased = el_plugin - excess / w if as_code else (el2 - excess) / w2
            out = {
                "accuracy": right / w,
                "L": loss / w,
                "EL": el_debiased,
                "EL_plugin": el_plugin,
                "CL": cl.debiased,
                "CL_plugin": cl.plugin,
                "DL": el_debiased - cl.debiased,
                "DL_plugin": el_plugin - cl.plugin,
                "L_disagreement": pair_loss / sums.pairs[:, 2].sum(axis=(-2, -1)),
                "CL_disagreement": pair.debiased,
                "CL_disagreement_plugin": pair.plugin,
            }
            if as_code:
                # lh_calib skips bins of one item here, but not in the epistemic loss.
                removed = epistemic_excess(sums.cells, w) - cl.removed
                out["DL"] = out["DL_plugin"] - removed.sum(axis=(-2, -1), where=cl.several)
        return self._rooted(out), (cl.origin, pair.origin)

    def lacking(self, loss: Loss, enough: int) -> str:
        """Why a metric is undefined."""
        several = f" of the panel's {self.scheme.panel:.0f}" if self.scheme.fixed else ""
        return (
            f"EL, DL and the losses of disagreement need items that two annotators or more{several}"
            " labeled, and there is none: ask a second annotator about some items"
        )


@dataclass(frozen=True)
class StatisticLosses(Losses[Scored]):
    """Losses of predictions of a statistic of several labels, (15) and (16)."""

    metrics = _OF_STATISTICS
    phi: LabelStatistic = DISAGREEMENT

    @staticmethod
    def from_statistic(phi: LabelStatistic, scheme: Scheme) -> StatisticLosses:
        """Those of a statistic; their unit is that of its squared differences."""
        low, high = phi.bounds
        return StatisticLosses(scheme, phi.name, phi.order, (high - low) ** 2, phi)

    def scored(self, counts: Array, predicted: Floats, weight: Floats | None) -> Scored:
        """The items with enough labels and a prediction; the statistic's bounds become [0, 1]."""
        mean, square, product = self.phi.moments(counts)
        low, high = self.phi.bounds
        width = high - low
        scored = Scored(
            (mean - low) / width,
            (square - 2 * low * mean + low**2) / width**2,
            (product - 2 * low * mean + low**2) / width**2,
            (predicted - low) / width,
            weight,
        )
        used = ~np.isnan(mean) & ~np.isnan(predicted)
        if weight is not None:
            used &= weight > 0
        return scored if used.all() else scored.take(np.flatnonzero(used))

    def sums(self, items: Scored) -> State:
        """The state of all items as one unit."""
        return self._by_unit(items, np.arange(len(items.mean)), 1)

    def _by_unit(self, items: Scored, rows: Ints, units: int) -> State:
        return scored_sums(items.take(rows), self.scheme, np.arange(len(rows)) % units, units)

    def _drawn(
        self, items: Scored, size: int, seed: int, all_items: State | None
    ) -> Iterator[State]:
        def as_pseudo_observation(
            data: Scored, mass: Floats, generator: np.random.Generator
        ) -> Scored:
            """What has not been seen is at an end of [0, 1]."""
            end = (mass[:, 1] > mass[:, 0]).astype(np.float64)
            return data._replace(mean=end, square=end, product=end)

        if len(items.mean):
            yield from drawn_sums(
                items, self._by_unit, as_pseudo_observation, 2, size, seed, all_items
            )

    def read(
        self, state: State, origins: Origins | None = None
    ) -> tuple[dict[str, Floats], Origins]:
        """The metrics of each unit, (U,), and what bootstrap draws take from it where it is one."""
        _, w, loss, w2, epistemic = state[0].T
        cl = _Calibration.from_sums(state[1], w, self.scheme, origins[0] if origins else None)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = {
                "L": loss / w,
                "CL": cl.debiased,
                "CL_plugin": cl.plugin,
                # Sets of labels of a panel that is not drawn from are no products.
                "EL": np.full_like(w2, np.nan) if self.scheme.fixed else epistemic / w2,
            }
        out = {name: value * self.unit for name, value in values.items()}
        return self._rooted(out), (cl.origin,)

    def lacking(self, loss: Loss, enough: int) -> str:
        """Why a metric is undefined."""
        if self.scheme.fixed and loss.independent:
            return f"EL_{self.name} is defined for annotators drawn at random, not a fixed panel"
        if enough:
            return f"EL_{self.name} has too many outcomes to sum over; the other losses stand"
        what = "EL" if loss.name == "EL" else "the losses"
        return (
            f"{what} of {self.name} need items of {self.labels(loss)} labels or more, and there is "
            "none: ask more annotators, or take a statistic of fewer labels"
        )


def evaluate(
    histogram: Any,
    probabilities: Any,
    *,
    disagreement: Any = None,
    weight: Any = None,
    bins: int = 15,
    variance: Variance = "labels",
    compat: Compat = None,
    panel: int | None = None,
    confidence_level: float | None = None,
    random_state: RandomState = 0,
) -> dict[str, Any]:
    """Losses of predicted probabilities against the label distribution, unbiased by few labels.

    L = EL + E sum Q (1 - Q), where the epistemic loss EL is the squared distance of the
    predictions from the label distribution Q, and EL = CL + DL: calibration loss plus dispersion
    loss, within equal-width bins of each class's probability, summed over classes (with two
    classes all are twice those of one class's probability). CE = sqrt(max(CL, 0)).

    Parameters
    ----------
    histogram
        How many annotators chose each class, shape (n, K). Items without a label are left out;
        EL and the disagreement use items of two labels or more, the rest all items with a label.
    probabilities
        Predicted probabilities, shape (n, K). A row of NaN = no prediction: left out.
    disagreement
        Predicted probability that two annotators disagree, shape (n,); NaN = no prediction.
        None: 1 - sum p^2.
    weight
        Sampling weight of each item, shape (n,), not negative. A weight says how many items one
        stands for, not how often it was seen: the debiased CL of an item of weight 2 is not that of
        two items.
    bins
        Number of bins.
    variance
        What the debiasing of CL removes: the variance of the mean label frequency of a bin
        ("labels", the paper's), or of its gap to the mean prediction ("residual"), which is
        unbiased also for the random predictions in a bin.
    compat
        "lh_calib" computes as the paper's code does: CL of a bin of one item is its plugin (the
        paper: 0), items of one label count as if nothing had to be removed from their EL, and
        disagreement is binned by agreement.
    panel
        Number of annotators of a fixed panel, whose labels are the label distribution: EL is then
        exact for items that all of them labeled. None: annotators are drawn at random from many.
    confidence_level
        Adds `intervals`: for each metric (low, high), by a Bayesian bootstrap over items.
    random_state
        Seed of the bootstrap; None = 0.

    Returns
    -------
    dict
        `METRICS`: debiased, and plugin under `..._plugin`; NaN where the labels do not define it
        (EL and disagreement if no item has two labels). Then n_items (used), n_annotated (items
        with a label) and n_labels (labels of the items used).

    Raises
    ------
    InputError, UsageError
        If an array or argument is not what is said here.

    Notes
    -----
    Mimori, Sasada, Matsui, Sato (2021), "Diagnostic Uncertainty Calibration": (9), (10), (12),
    (14), and (16) for two labels.

    Examples
    --------
    >>> import fewlabels as fl
    >>> found = fl.annotations.evaluate([[2, 0], [1, 1], [0, 2]], [[0.9, 0.1], [0.5, 0.5], [0, 1]])
    >>> round(found["L"], 4), round(found["EL"], 4), found["n_labels"]
    (0.1733, -0.16, 6)
    """
    if variance not in ("labels", "residual"):
        raise UsageError(f"`variance` must be 'labels' or 'residual'; got {variance!r}")
    if compat not in (None, "lh_calib"):
        raise UsageError(f"`compat` must be None or 'lh_calib'; got {compat!r}")
    if compat and (weight is not None or variance == "residual"):
        raise UsageError(
            "lh_calib has neither weights nor the residual variance; leave out `compat`, or "
            "`weight` and `variance`"
        )
    as_code = compat == "lh_calib"
    scheme = Scheme(
        bins_of(bins),
        variance == "residual",
        dispersion=as_code,
        agreement=as_code,
        panel=math.inf if panel is None else whole("panel", panel, 1, 1_000_000),
    )
    level, seed = level_of(confidence_level), seed_of(random_state)
    items = annotated(histogram, probabilities, disagreement, weight)
    size = items.counts.sum(axis=1)
    used = (size > 0) & ~np.isnan(items.probabilities[:, 0])
    sizes = {
        "n_items": int(used.sum()),
        "n_annotated": int((size > 0).sum()),
        "n_labels": int(size[used].sum()),
    }
    return _evaluated(HistogramLosses(scheme), items, level, seed, sizes)


def _evaluated(
    losses: Losses[_Items],
    items: _Items,
    level: float | None,
    seed: int,
    sizes: dict[str, int],
) -> dict[str, Any]:
    """Values, sizes and, where a level asks for them, intervals."""
    state = losses.sums(items)
    out: dict[str, Any] = {**losses.values(state), **sizes}
    if level is not None:
        out["intervals"] = losses.intervals(items, state, level, seed)
    return out


def annotated(
    histogram: Any, probabilities: Any, disagreement: Any = None, weight: Any = None
) -> Annotated:
    """Counts and probabilities (n, K), predicted disagreement and weight (n,), for the sums.

    Arrays are not copied unnecessarily. Rows of probabilities whose sum is within 1e-3 of 1 are
    renormalised.
    """
    counts = label_counts(histogram)
    p = probability_rows(probabilities, counts.shape)
    pair = None if disagreement is None else bounded("disagreement", disagreement, len(counts))
    items = Annotated(counts, p, pair, item_weights(weight, len(counts)))
    # One item is enough, and nearly always among the first: a pass over all takes a twentieth of
    # the time of the losses.
    for some in (items.take(slice(0, 1000)), items):
        used = _used(some) if some.weight is None else _used(some) & (some.weight > 0)
        if used.any():
            break
    else:
        raise InputError(
            "no item has both a label and a prediction: every row of `histogram` is zero or meets "
            "a row of NaN; pass at least one labeled item with probabilities"
        )
    return items


def _used(items: Annotated) -> Bools:
    """Items with a label and a prediction."""
    return np.asarray(items.counts.any(axis=1) & ~np.isnan(items.probabilities[:, 0]))


def item_weights(weight: Any, n: int) -> Floats | None:
    """Weights (n,) that sum to n; None where all are equal."""
    if weight is None:
        return None
    w = sampling_weight(weight, n)
    return None if (w == w[0]).all() else w


def evaluate_statistic(
    statistic: str | LabelStatistic,
    histogram: Any,
    predicted: Any,
    *,
    weight: Any = None,
    bins: int = 15,
    confidence_level: float | None = None,
    random_state: RandomState = 0,
) -> dict[str, Any]:
    """Losses of predictions of a statistic of several labels, such as their disagreement.

    Parameters
    ----------
    statistic
        Its name, or a `Statistic`.
    histogram
        How many annotators chose each class, shape (n, K); items with fewer labels than the
        statistic's order are left out.
    predicted
        Predicted value, shape (n,), such as `statistic.expected(probabilities)`; NaN = none.
    weight, bins, confidence_level, random_state
        As for `evaluate`; the bins divide the statistic's bounds.

    Returns
    -------
    dict
        L: mean of (phi - predicted)^2 over sets of labels; CL (debiased), CL_plugin, and CE =
        sqrt(max(CL, 0)), from bins of the prediction; EL: the squared distance of the prediction
        from the statistic's expectation, unbiased, over items of twice the order of labels, NaN if
        there are none; n_items (used). With a confidence level, `intervals`: metric -> (low, high).

    Raises
    ------
    InputError, UsageError
        If an array or argument is not what is said here, or no item has enough labels.

    Notes
    -----
    Mimori, Sasada, Matsui, Sato (2021), (15) and (16).

    Examples
    --------
    >>> import fewlabels as fl
    >>> found = fl.annotations.evaluate_statistic("disagreement", [[2, 0], [1, 1]], [0.1, 0.8])
    >>> round(found["L"], 4), found["n_items"]
    (0.025, 2)
    """
    losses = StatisticLosses.from_statistic(resolve(statistic), Scheme(bins_of(bins)))
    phi = losses.phi
    level, seed = level_of(confidence_level), seed_of(random_state)
    counts = label_counts(histogram)
    q = bounded("predicted", predicted, len(counts), phi.bounds)
    items = losses.scored(counts, q, item_weights(weight, len(counts)))
    if not len(items.mean):
        raise InputError(
            f"no item has the {phi.order} labels that {phi.name!r} takes, and a prediction; take a "
            "statistic of fewer labels, or ask more annotators"
        )
    return _evaluated(losses, items, level, seed, {"n_items": len(items.mean)})
