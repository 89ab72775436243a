"""SSME-KDE: a semi-supervised mixture whose classes are kernel densities of classifier scores."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, repeat
from numbers import Real
from typing import Literal, NamedTuple

import numpy as np
import scipy.fft
from scipy.optimize import brentq

from fewlabels.checks.arguments import whole
from fewlabels.errors import UsageError, listed
from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.blocks import map_blocks, spans
from fewlabels.kernels.simplex import (
    additive_log_ratio,
    clip,
    filled,
    linear_pool,
    mean_probability,
)
from fewlabels.kernels.votes import has_evidence
from fewlabels.methods.base import (
    FittedLabelModel,
    LabelModel,
    places_of,
    probabilities_of,
    status_of,
    with_probabilities,
)
from fewlabels.methods.em import EMResult
from fewlabels.methods.per_model import fit_each
from fewlabels.methods.replicates import Replicated, Replicates
from fewlabels.methods.ssme.kde_mixture import EMRuns, KDEMixture, KernelSums, choose_support
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

# --- bandwidths, one per dimension ------------------------------------------------------------

_GRID = 2**12
_STAGES = 7


def normal_reference(x: Floats) -> Floats:
    """1.059 min(sd, IQR / 1.349) n^(-1/5) per dimension of x (n, d)."""
    sd = x.std(axis=0, ddof=1) if len(x) > 1 else np.zeros(x.shape[1])
    iqr = np.subtract(*np.quantile(x, [0.75, 0.25], axis=0)) / 1.349
    spread = np.where(iqr > 0, np.minimum(sd, iqr), sd)
    result: Floats = 1.059 * spread * len(x) ** -0.2
    return result


def official_rule(x: Floats) -> Floats:
    """The released SSME code's: normal reference / 4, the minimum over dimensions for all."""
    h = normal_reference(x)
    return np.full(x.shape[1], h[h > 0].min(initial=np.inf) / 4 if (h > 0).any() else 0.0)


def scott(x: Floats) -> Floats:
    """Scott's rule: sd n^(-1/(d+4)) per dimension."""
    n, d = x.shape
    result: Floats = x.std(axis=0, ddof=1) * n ** (-1 / (d + 4))
    return result


def improved_sheather_jones(x: Floats) -> tuple[Floats, int]:
    """Botev, Grotowski, Kroese (2010) per dimension of x (n, d).

    Returns the bandwidths (d,) and in how many dimensions the fixed point was not found; the
    normal reference stands in there.
    """
    fallback = normal_reference(x)
    widths = [_sheather_jones(column) for column in x.T]
    failed = [value is None for value in widths]
    h = np.where(failed, fallback, np.array([value or 0.0 for value in widths]))
    return h, int(np.sum(failed))


def _sheather_jones(x: Floats) -> float | None:
    low, high = x.min(), x.max()
    span = high - low
    if span <= 0:
        return None
    low, span = low - span / 10, span * 1.2
    count = np.bincount(((x - low) * (_GRID / span)).astype(np.int64), minlength=_GRID)[:_GRID]
    energy = (scipy.fft.dct(count / len(x))[1:] / 2) ** 2
    curve = _FixedPoint.of(energy, len(np.unique(x)))
    # The smallest t at which t crosses its own fixed-point map, on a logarithmic grid first. The
    # map rises (until it underflows to 0): where it is v > t, nothing crosses between t and v.
    grid = np.logspace(-14, -1, 80).tolist()
    below, place = -1, 0
    while True:
        value = curve(grid[place])
        if value > grid[place]:
            below = place
        elif below >= 0:
            break
        if place == len(grid) - 1:
            return None
        place = min(max(bisect_left(grid, value), place + 1), len(grid) - 1)
    while place - below > 1:
        middle = (below + place) // 2
        below, place = (middle, place) if curve(grid[middle]) > grid[middle] else (below, middle)
    t = brentq(lambda t: t - curve(t), grid[below], grid[place])
    return float(np.sqrt(t) * span)


class _FixedPoint(NamedTuple):
    """Map whose fixed point is the squared bandwidth on [0, 1] (Botev et al., Algorithm 1).

    The roughness of derivative s is 2 pi^(2s) sum_k k^(2s) a_k^2 exp(-k^2 pi^2 t), with a_k^2 the
    energy of cosine k; `terms` are the sum's, less the exponentials, for every s.
    """

    squares: Floats
    terms: dict[int, Floats]
    n_values: int

    @staticmethod
    def of(energy: Floats, n_values: int) -> _FixedPoint:
        """From energies of the cosines, and how many distinct values there are."""
        squares = np.arange(1.0, _GRID) ** 2
        powers = accumulate(repeat(squares, _STAGES), np.multiply)
        return _FixedPoint(squares, {s: p * energy for s, p in enumerate(powers, 1)}, n_values)

    def __call__(self, t: float) -> float:
        for s in range(_STAGES, 1, -1):
            # Of more cosines the exponentials underflow to 0.
            some = slice(int(np.sqrt(_UNDERFLOW / t) / np.pi))
            f = float(self.terms[s][some] @ np.exp(self.squares[some] * (-(np.pi**2) * t)))
            f *= 2 * np.pi ** (2 * s)
            if f <= 0:
                return 0.0
            t = (_NUMERATORS[s - 1] / (self.n_values * f)) ** (2 / (1 + 2 * s))
        return t


_UNDERFLOW = 745.2
_NUMERATORS = {1: 1 / (2 * math.sqrt(math.pi))} | {
    s: 2 * (1 + 0.5 ** (s + 0.5)) / 3 * math.prod(range(1, 2 * s, 2)) / math.sqrt(2 * math.pi)
    for s in range(2, _STAGES)
}


# --- the method -------------------------------------------------------------------------------

NARROW = 0.99
"""Self-share above which the kernels are too narrow for EM to learn from unlabeled items."""

_ROWS = 4096
"""Items at a time, of those that are no support points."""

_RULES = {
    "official": official_rule,
    "scott": scott,
    "normal-reference": normal_reference,
}


@dataclass(frozen=True)
class SSMEKDE(LabelModel):
    """P(scores | class) by kernel densities, P(class), and labels where they are known, by EM.

    Source: Shanmugam et al. (2025), section 4; bandwidth Botev et al. (2010).

    Parameters
    ----------
    bandwidth
        "isj" (improved Sheather-Jones per dimension), "official" (the released code's), "scott",
        "normal-reference", a number, or one number per dimension (M(K-1) of them).
    epochs
        EM steps; 50 unless given (20 with `compat`).
    leave_one_out
        Leave a point's own kernel out of its density. Without this, narrow kernels keep every
        item at its starting label.
    init
        Labels at the start: "draw" from the mean classifier (the paper), or "soft", its
        probabilities themselves.
    unlabeled_weight
        Weight of an unlabeled item against a labeled one (the paper's lambda).
    compat
        "official" reproduces the released code: one isotropic bandwidth, 20 epochs, labeled
        items weighted tenfold and not clamped during EM, class shares from drawn labels, class 0
        as reference with more than two classes, and clipping of exact zeros and ones only.
    replicates
        Bootstrap refits for the parameters' uncertainty.
    max_support
        Up to this many items EM uses all; beyond, half as many support points (labeled ones
        first, for up to half of them), with the labels' weight scaled to match. The other items
        get their posterior in one pass.
    """

    bandwidth: str | float | tuple[float, ...] = "isj"
    epochs: int | None = None
    leave_one_out: bool = False
    init: Literal["draw", "soft"] = "draw"
    unlabeled_weight: float = 1.0
    compat: Literal["official"] | None = None
    replicates: int = 20
    max_support: int = 20_000

    def __post_init__(self) -> None:
        if isinstance(self.bandwidth, Real):
            object.__setattr__(self, "bandwidth", float(self.bandwidth))
        elif not isinstance(self.bandwidth, str):
            widths = np.asarray(self.bandwidth, dtype=float).ravel()
            object.__setattr__(self, "bandwidth", tuple(widths.tolist()))
        if self.compat not in (None, "official"):
            raise UsageError(f"`compat` must be None or 'official'; got {self.compat!r}")
        if self.init not in ("draw", "soft"):
            raise UsageError(f"`init` must be 'draw' or 'soft'; got {self.init!r}")
        if isinstance(self.bandwidth, str) and self.bandwidth not in ("isj", *_RULES):
            raise UsageError(
                f"`bandwidth` must be 'isj', {', '.join(map(repr, _RULES))} or numbers; "
                f"got {self.bandwidth!r}"
            )
        whole("epochs", 1 if self.epochs is None else self.epochs)
        whole("replicates", self.replicates)
        whole("max_support", self.max_support)
        if not self.unlabeled_weight >= 0:
            raise UsageError(
                f"`unlabeled_weight` must not be negative; got {self.unlabeled_weight!r}"
            )

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Choose the bandwidth and the support points, and run EM."""
        served, probabilities = with_probabilities(predictions, "ssme-kde")
        salt = int(rng.integers(2**63))
        average = mean_probability(probabilities)
        scores = self.log_ratios(probabilities, average)
        h, failed = self._bandwidths(scores, float(served.times @ served.information))
        informed = has_evidence(served.evidence)
        support = choose_support(served.keys, informed, self.max_support, salt, served.times)
        rows = support.rows
        official = self.compat == "official"
        mixture = KDEMixture(
            epochs=self.epochs or (20 if official else 50),
            leave_one_out=self.leave_one_out,
            soft_start=self.init == "soft" and not official,
            unlabeled_weight=self.unlabeled_weight,
            official=official,
            points=scores[rows] / h,
            keys=served.keys[rows],
            clusters=served.clusters_of(rows),
            evidence=served.evidence[rows],
            pool=linear_pool(probabilities[rows], average),
            label_scale=support.label_scale,
            counts=support.counts,
            salt=salt,
        )
        return _FittedKDE(self, served.models, average, h, failed, mixture, mixture.fit())

    def log_ratios(self, p: Floats, average: Floats) -> Floats:
        """Additive log-ratios (n, M(K-1)) of probabilities (n, M, K), as this method clips them.

        A missing prediction is the mean of the other classifiers' there; `average` (K,) stands in
        where all are missing.
        """
        if self.compat == "official":
            p = np.where(p <= 0, 1e-4, np.where(p >= 1, 1 - 1e-4, p))
            reference = 0 if p.shape[2] > 2 else -1
        else:
            p = clip(p)
            reference = -1
        return additive_log_ratio(filled(p, average), reference)

    def _bandwidths(self, scores: Floats, n_items: float) -> tuple[Floats, int]:
        """Bandwidths (d,) for as many items as the rows stand for, and how many were not found."""
        rule = "official" if self.compat == "official" else self.bandwidth
        n, d = scores.shape
        failed = 0
        if rule == "isj":
            h, failed = improved_sheather_jones(scores)
        elif isinstance(rule, str):
            h = _RULES[rule](scores)
        else:
            h = np.atleast_1d(np.asarray(rule, dtype=float))
            if h.shape not in ((1,), (scores.shape[1],)) or not (h > 0).all():
                raise UsageError(
                    f"`bandwidth` must be one positive number or {scores.shape[1]} of them, one "
                    f"per log-ratio; got {h.size} ({listed([f'{one:g}' for one in h.flat], 3)})"
                )
        if isinstance(rule, str):
            # Scott's rule knows all dimensions, the others one at a time.
            h = h * (n / n_items) ** (1 / (d + 4) if rule == "scott" else 1 / 5)
        # A dimension without spread carries no information; any width will do there.
        return np.where(h > 0, h, 1.0) * np.ones(d), failed


@dataclass(frozen=True, eq=False)
class _FittedKDE(Replicated):
    model: SSMEKDE
    models: tuple[str, ...]
    average: Floats
    bandwidths: Floats
    failed_bandwidths: int
    mixture: KDEMixture
    result: EMResult

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        p = probabilities_of(predictions, self.models, "ssme-kde")
        draws = Replicates(self.model.replicates, self, predictions, p)
        share, neighbours = self._self_share
        narrow = share > NARROW and not self.model.leave_one_out
        return LabelPosterior(
            draws.marginals,
            draws,
            predictions.keys,
            salt=self.mixture.salt,
            value_from="marginals",
            status=status_of(self._warnings(narrow, share)),
            warnings=self._warnings(narrow, share),
            diagnostics={
                "bandwidth": [float(h) for h in self.bandwidths],
                "self_share": share,
                "effective_neighbours": neighbours,
                "epochs": self.result.iterations,
                "last_change": self.result.change,
                "support_points": len(self.mixture.points),
                "bandwidths_not_found": self.failed_bandwidths,
            },
        )

    @cached_property
    def _alone(self) -> EMRuns:
        return EMRuns.of(self.mixture, [self._fit])

    @cached_property
    def _with_refits(self) -> EMRuns:
        """The fit, and the refits after it."""
        return EMRuns.of(self.mixture, [self._fit, self.mixture.refit(self.model.replicates)])

    @property
    def _fit(self) -> tuple[EMResult, Floats]:
        return self.result, np.ones((len(self.mixture.points), 1))

    def class_probabilities(
        self, predictions: Predictions, p: Floats, refits: bool
    ) -> Iterator[tuple[Ints | slice, Array]]:
        """P(label) by the runs: support points keep EM's result, the others get one E-step."""
        runs = self._with_refits if refits else self._alone
        place = places_of(predictions.keys, self.mixture.keys)
        inside, outside = np.flatnonzero(place >= 0), np.flatnonzero(place < 0)
        yield inside, runs.responsibilities[place[inside]]
        # As a slice where there is no gap: numpy then copies nothing.
        blocks: list[Ints | slice] = [
            slice(rows[0], rows[-1] + 1) if np.ptp(rows) + 1 == len(rows) else rows
            for rows in (outside[block] for block in spans(len(outside), _ROWS))
        ]

        def e_step(rows: Ints | slice) -> Array:
            scores = self.model.log_ratios(p[rows], self.average)
            return runs.e_step(scores / self.bandwidths, predictions.evidence[rows])

        yield from zip(blocks, map_blocks(e_step, blocks), strict=True)

    @cached_property
    def _self_share(self) -> tuple[float, float]:
        """Medians over at most 2048 support points, chosen by their keys."""
        rows = np.flatnonzero(~self.mixture.informed)
        rows = rows[np.argsort(self.mixture.keys[rows])[:2048]]
        own, points = np.arange(len(self.mixture.points)), self.mixture.points
        return KernelSums(points, points, own, keep=False).self_share(rows)

    def _warnings(self, narrow: bool, share: float) -> tuple[str, ...]:
        warnings = []
        if not self.mixture.informed.any():
            warnings.append(
                "assumption: no labels; the classes are those that the averaged classifier starts "
                "EM with"
            )
        if narrow:
            warnings.append(
                "assumption: the density is too narrow for EM to learn from the unlabeled items "
                f"(self-share {share:.3f}); the estimate equals the averaged classifier"
            )
        if not self.result.converged:
            warnings.append(
                f"not-converged: after {self.result.iterations} epochs the posteriors still change "
                f"by {self.result.change:.2g} on average"
            )
        if self.failed_bandwidths:
            warnings.append(
                f"no improved Sheather-Jones bandwidth in {self.failed_bandwidths} dimensions (too "
                "few distinct scores); the normal reference rule is used instead"
            )
        return tuple(warnings)


@dataclass(frozen=True)
class SSMEKDEMarginal(LabelModel):
    """One mixture of kernel densities per classifier, in K-1 dimensions each.

    Source: Shanmugam et al. (2025), SSME-KDE-M.

    Parameters
    ----------
    mixture
        Bandwidth, epochs and the other settings of every mixture.
    """

    mixture: SSMEKDE = field(default_factory=SSMEKDE)

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Fit a mixture to every classifier alone."""
        served, _ = with_probabilities(predictions, "ssme-kde-marginal")
        return fit_each(self.mixture.fit, served, rng)
