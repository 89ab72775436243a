"""Groups have curves of their own: a layer over any fitted label model, learned from the labels.

Let P_d(k | x) be the fitted model's parameter draw d, f_k its logarithms less their mean over the
classes, and c_k those of its mean over the labeled items. In group g

P_d(k | x, g) = softmax_k(c_k + a_gk + (1 + b_g) (f_k - c_k)),

offsets a of sd tau (between two classes) and slopes b of sd tau / 2. Over the groups they are
independent; or, where groups have an order, a random walk, or one step. Which of these and which
tau, the evidence says, and tau = 0 leaves the model as it is.

Draws of the fitted model are from prior x P(labels | d). Weighed by P(labels | d, groups) over
P(labels | d) they are from the posterior of the model with groups, so the layer is exact however
the model was fitted (importance sampling). Given d, effects are proposed by a normal at their mode
(Laplace), and chosen among several by target over proposal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fewlabels.checks.arguments import is_missing
from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.importance import kept_places
from fewlabels.kernels.simplex import centred_log, logsumexp, softmax
from fewlabels.kernels.votes import has_evidence
from fewlabels.methods.base import FittedLabelModel
from fewlabels.posterior import LabelPosterior, ParameterDraws
from fewlabels.predictions import Predictions

MOST_GROUPS, MOST_PERIODS = 40, 160
"""A column with more groups has no curves of its own for them; in order they may be more, and what
they have of their own is then interpolated between so many of them."""

ALIKE, SDS = 0.4, (0.3, 0.7, 1.5)
"""Prior weight of groups that are alike, and else the sds tau, in log odds, of equal weights."""

MOST_CLASSES, MOST_OFFSETS = 12, 120
"""With more classes, or groups times classes, groups have slopes of their own and no offsets."""

_SCREENED, _WORTH = 50, 0.005
"""Kinds are tried on so many draws first, and left out if their weight there is below this."""

_CELLS = 2**23
"""Labels times draws, classes and effects of a group: of more labels those of the smallest keys
tell of groups."""

_CANDIDATES, _STEPS, _LONGEST, _CLOSE = 8, 20, 2.0, 1e-2
_TINY = float(np.finfo(float).tiny)


def with_group_curves(
    fitted: FittedLabelModel, predictions: Predictions, rng: np.random.Generator
) -> FittedLabelModel:
    """The fitted model, with curves of their own for the groups of every column.

    Parameters
    ----------
    fitted
        A label model, fitted to these predictions.
    predictions
        The n items with their groups: a column of 2 to 40 values counts, of which any may be
        without labels. Items without a value are in no group, and stay as they are.
    rng
        Not touched where there are no groups.
    """
    spoken = (predictions.has_hard | predictions.provides("ranking")).any(axis=1)
    rows = np.flatnonzero(spoken & has_evidence(predictions.evidence))
    rows = rows[np.argsort(predictions.keys[rows], kind="stable")]
    for column in sorted(predictions.groups) if len(rows) else ():
        names, ordered = _in_order({*_names(predictions.groups[column]).values()} - {None})
        most = MOST_PERIODS if ordered else MOST_GROUPS
        if column != predictions.item and 1 < len(names) <= most:
            fitted = _fit(fitted, predictions, rows, column, names, ordered, rng)
    return fitted


def _names(values: Array) -> dict[Any, str | None]:
    """Values and their text, of whole numbers however they are written; None where missing."""
    return {
        value: None
        if is_missing(value)
        else str(int(value) if isinstance(value, float) and value.is_integer() else value)
        for value in {*values.tolist()}
    }


def _codes(values: Array, place: Mapping[str, int]) -> Ints:
    """Place of the group of each item, (n,); -1 where it is in none."""
    there = values.tolist()
    code = {value: place.get(str(name), -1) for value, name in _names(values).items()}
    return np.array([code.get(value, -1) for value in there], dtype=np.int64)


def _in_order(names: Iterable[str | None]) -> tuple[list[str], bool]:
    """Names sorted, and whether each has a number, so that the numbers are their order."""
    some = [name for name in names if name is not None]
    try:
        numbers = {name: [float(name)] for name in some}
    except ValueError:
        numbers = {name: [float(n) for n in re.findall(r"\d+(?:\.\d+)?", name)] for name in some}
    return sorted(some, key=lambda name: (numbers[name], name)), all(numbers.values())


class _Kind(NamedTuple):
    """How effects z ~ N(0, 1) make those of the groups: tau times shape (G, r) times z (r,)."""

    name: str
    shape: Floats
    tau: float
    weight: float


def _kinds(names: Sequence[str], labels: Floats, *, ordered: bool) -> Iterator[_Kind]:
    """What groups may have of their own, less its mean over the labels of the groups, (G,).

    What they have in common the fitted model has learned.
    """
    g, m = len(names), min(len(names), MOST_GROUPS)
    shapes = [("each apart", np.eye(g), 1.0)] if g == m else []
    if ordered and g > 2:
        # A walk whose mean variance about its mean is 1, and steps up or down at one place.
        knots = np.linspace(0, g - 1, m)
        walk = np.stack([np.interp(np.arange(g), knots, np.arange(m) >= j) for j in range(1, m)], 1)
        spread = (walk - walk.mean(axis=0)) ** 2
        shapes.append(("a walk", walk / np.sqrt(spread.sum() / g), 1.0))
        for j in np.ceil(knots[1:]).astype(int):
            step = 2.0 * (np.arange(g) >= j)[:, None]
            shapes.append((f"a step at {names[j]}", step, 1 / (m - 1)))
    total = sum(weight for _, _, weight in shapes) * len(SDS) / (1 - ALIKE)
    for name, shape, weight in shapes:
        apart = shape - labels @ shape / labels.sum()
        yield from (_Kind(name, apart, tau, weight / total) for tau in SDS)


class _Fit(NamedTuple):
    """Effects at their modes (D, q), Hessians (D, q, q), and log P(labels | draw, kind), (D,)."""

    mode: Floats
    hessian: Floats
    log_evidence: Floats


class _Effects(NamedTuple):
    """Draws: of which draw of the model (D,), c (K, D), a (K, G + 1, D), b (G + 1, D).

    The last group is that of items without one, and has no effects.
    """

    places: Ints
    centre: Floats
    offsets: Floats
    slopes: Floats


def _fit(
    fitted: FittedLabelModel, predictions: Predictions, rows: Ints, column: str,
    names: Sequence[str], ordered: bool, rng: np.random.Generator,
) -> FittedLabelModel:  # fmt: skip
    """One layer, for the groups of a column; without a label in any the model stays as it is."""
    place = {name: number for number, name in enumerate(names)}
    seed = int(rng.integers(2**63))
    code = _codes(predictions.groups[column][rows], place)
    evidence, power = predictions.evidence[rows], predictions.information[rows]
    labels: Floats = np.bincount(code + 1, power, minlength=len(names) + 1)[1:].astype(float)
    if not labels.any():
        return fitted
    kinds = list(_kinds(names, labels, ordered=ordered))
    blank = predictions.with_evidence(None, np.ones(predictions.n_items))
    base = fitted.posterior(blank.take(rows))

    def learn(draws: ParameterDraws) -> tuple[_Effects, dict[str, float]]:
        told = _Labels.of(draws, evidence, power, code, len(names))
        return told.effects(kinds, np.random.default_rng(seed))

    values, weights = learn(base.parameters)
    of_intervals = base.interval_parameters
    intervals = None if of_intervals is None else learn(of_intervals)[0]
    return _FittedGroups(fitted, column, place, values, intervals, weights)


@dataclass(frozen=True, eq=False)
class _Labels:
    """Labeled items under the fitted model's draws, and what groups change of their likelihood.

    `centre` (K, D) and `away` (K, n, D) are c and f - c, `evidence` (K, n, 1) is of the labels,
    each to a power (n, 1); items are in the order of their groups `code` (n,), of `n_groups`.
    `contrasts` (K, K - 1) are an orthonormal basis of the offsets, (K, 0) where there are none. A
    group has e effects, those and its slope.
    """

    centre: Floats
    away: Floats
    evidence: Floats
    power: Floats
    code: Ints
    n_groups: int
    contrasts: Floats

    @cached_property
    def _certain(self) -> Floats | None:
        """The labels (K, n, 1) where every item has one, None where some are uncertain."""
        known = (self.evidence > -np.inf).sum(axis=0) == 1
        return softmax(self.evidence, axis=0) if known.all() else None

    def _by_group(self, values: Floats) -> Floats:
        """Sums over the items of each group, (G, ...)."""
        there, starts = np.unique(self.code, return_index=True)
        out = np.zeros((self.n_groups, *values.shape[1:]))
        out[there] = np.add.reduceat(values, starts, axis=0)
        return out

    @staticmethod
    def of(
        draws: ParameterDraws, evidence: Floats, power: Floats, code: Ints, n_groups: int
    ) -> _Labels:
        k = evidence.shape[1]
        contrasts = np.zeros((k, 0))
        if k <= MOST_CLASSES and k * min(n_groups, MOST_GROUPS) <= MOST_OFFSETS:
            helmert = np.tril(np.ones((k, k - 1))) - np.diag(np.arange(k, 0.0, -1))[:, :-1]
            contrasts = helmert / np.sqrt((helmert**2).sum(axis=0))
        most = max(_CELLS // (k * (contrasts.shape[1] + 1) * draws.size), 1)
        p = draws.block(np.arange(draws.size), slice(0, most))
        centre = _centred(p.mean(axis=0, keepdims=True))[0]
        some = np.flatnonzero(code[:most] >= 0)
        some = some[np.argsort(code[some], kind="stable")]
        return _Labels(
            centre,
            np.ascontiguousarray(_centred(p[some]).swapaxes(0, 1)) - centre[:, None],
            evidence[some].T[:, :, None],
            power[some][:, None],
            code[some],
            n_groups,
            contrasts,
        )

    def _scale(self, tau: float) -> Floats:
        """Sds of a group's effects, offsets and slope."""
        return tau * np.r_[np.full(self.contrasts.shape[1], np.sqrt(0.5)), 0.5]

    def of_groups(self, kind: _Kind, z: Floats) -> tuple[Floats, Floats]:
        """Offsets (K, G, D) and slopes (G, D) of effects z (D, r e)."""
        r = kind.shape.shape[1]
        every = np.einsum("gr,dre->ged", kind.shape, z.reshape(len(z), r, -1))
        every *= self._scale(kind.tau)[:, None]
        return np.einsum("ke,ged->kgd", self.contrasts, every[:, :-1]), every[:, -1]

    def logits(self, kind: _Kind, z: Floats, which: Ints) -> Floats:
        """Logits (K, n, D) of some draws of the model with effects z (D, r e)."""
        offsets, slopes = self.of_groups(kind, z)
        out = self.away[:, :, which] * (1 + slopes[self.code])
        out += offsets[:, self.code]
        out += self.centre[:, None, which]
        return out

    def log_likelihood(self, logits: Floats) -> Floats:
        """Log-likelihood of all labels, (D,)."""
        told = self._certain
        of_labels = (
            logsumexp(logits + self.evidence, axis=0)
            if told is None
            else np.take_along_axis(logits, told.argmax(axis=0)[None], axis=0)[0]
        )
        both = of_labels - logsumexp(logits, axis=0)
        out: Floats = (self.power * both).sum(axis=0)
        return out

    def _moments(self, weight: Floats, away: Floats) -> Floats:
        """Sums over the classes of weights (K, n, D) times what the effects add, (n, e, D)."""
        offsets = np.tensordot(weight, self.contrasts, (0, 0)).transpose(0, 2, 1)
        return np.concatenate([offsets, (weight * away).sum(axis=0)[:, None]], axis=1)

    def _spread(self, p: Floats, away: Floats) -> Floats:
        """Covariance under P(class) of what the effects add, times the power, (n, e, e, D)."""
        mean, of_slope = self._moments(p, away), self._moments(p * away, away)
        e = mean.shape[1]
        out = np.empty((len(mean), e, e, mean.shape[2]))
        squares = self.contrasts[:, :, None] * self.contrasts[:, None, :]
        out[:, :-1, :-1] = np.moveaxis(np.tensordot(p, squares, (0, 0)), 1, -1)
        out[:, -1] = out[:, :, -1] = of_slope
        out -= mean[:, :, None] * mean[:, None]
        out *= self.power[:, :, None, None]
        return out

    def laplace(self, kind: _Kind, which: Ints, start: Floats | float = 0.0) -> _Fit:
        """The modes of the effects for some draws of the model, by Newton's method from `start`."""
        shape, away = kind.shape, self.away[:, :, which]
        r, e, size = shape.shape[1], self.contrasts.shape[1] + 1, len(which)
        scale = self._scale(kind.tau)
        pairs = (shape[:, :, None] * shape[:, None, :]).reshape(-1, r * r)
        z = np.zeros((size, r * e)) + start
        for _ in range(_STEPS):
            logits = self.logits(kind, z, which)
            p = softmax(logits, axis=0)
            told = self._certain
            rest = softmax(logits + self.evidence, axis=0) if told is None else told
            gradient = self._moments(self.power * (rest - p), away)
            gradient = self._by_group(gradient) * scale[:, None]
            gradient = np.einsum("gr,ged->dre", shape, gradient)
            spread = self._by_group(self._spread(p, away))
            spread *= (scale[:, None] * scale)[:, :, None]
            spread = pairs.T @ spread.reshape(self.n_groups, -1)
            hessian = spread.reshape(r, r, e, e, size).transpose(4, 0, 2, 1, 3)
            hessian = hessian.reshape(size, r * e, r * e) + np.eye(r * e)
            step = np.linalg.solve(hessian, (gradient.reshape(z.shape) - z)[:, :, None])[:, :, 0]
            longest = np.abs(step).max(axis=1, keepdims=True)
            if longest.max() < _CLOSE:
                break
            z += step * np.minimum(1, _LONGEST / np.maximum(longest, _TINY))
        height = self.log_likelihood(logits) - 0.5 * (z**2).sum(axis=1)
        return _Fit(z, hessian, height - 0.5 * np.linalg.slogdet(hessian)[1])

    def effects(
        self, kinds: list[_Kind], rng: np.random.Generator
    ) -> tuple[_Effects, dict[str, float]]:
        """Draws of the model with effects of the groups, and the weight of every kind."""
        k, size, g = *self.centre.shape, self.n_groups
        pooled = self.log_likelihood(self.centre[:, None] + self.away)
        # Of 50 draws: which kinds the labels favour at all.
        few = np.unique(np.linspace(0, size - 1, min(_SCREENED, size)).astype(np.int64))
        tried = [self.laplace(kind, few) for kind in kinds]
        weights = self._posterior(tried, kinds, pooled[few])[0].mean(axis=1)[1:]
        worth = np.flatnonzero(weights > _WORTH)
        kinds, modes = [kinds[w] for w in worth], [tried[w].mode.mean(axis=0) for w in worth]
        every = np.arange(size)
        fits = [self.laplace(kind, every, z) for kind, z in zip(kinds, modes, strict=True)]
        shares, total = self._posterior(fits, kinds, pooled)
        # No draw stands for very many (truncated importance sampling; Ionides 2008).
        places = kept_places(np.minimum(total, total.mean() * np.sqrt(size)))
        said: dict[str, float] = {"alike": 0.0}
        names = ["alike", *(kind.name for kind in kinds)]
        for name, weight in zip(names, shares @ total / total.sum(), strict=True):
            said[name] = said.get(name, 0.0) + float(weight)
        at = (rng.permutation(size) + rng.random(size)) / size
        chosen = (at >= np.cumsum(shares[:-1, places], axis=0)).sum(axis=0)
        offsets, slopes = np.zeros((k, g + 1, size)), np.zeros((g + 1, size))
        correction = np.ones(size)
        for number, (kind, fit) in enumerate(zip(kinds, fits, strict=True), 1):
            slots = np.flatnonzero(chosen == number)
            if len(slots):
                of = places[slots]
                at_slots = _Fit(*(values[of] for values in fit))
                z, correction[slots] = self._drawn(kind, of, at_slots, rng)
                offsets[:, :-1, slots], slopes[:-1, slots] = self.of_groups(kind, z)
        last = kept_places(np.minimum(correction, np.sqrt(size)))
        places = places[last]
        centre = self.centre[:, places]
        return _Effects(places, centre, offsets[:, :, last], slopes[:, last]), said

    @staticmethod
    def _posterior(
        fits: Sequence[_Fit], kinds: Sequence[_Kind], pooled: Floats
    ) -> tuple[Floats, Floats]:
        """Shares of "alike" and the kinds by draw (1 + kinds, D), and weights of the draws (D,)."""
        log = np.vstack([np.zeros(len(pooled)), *(fit.log_evidence - pooled for fit in fits)])
        log += np.log([ALIKE, *(kind.weight for kind in kinds)])[:, None]
        total = logsumexp(log, axis=0)
        return softmax(log, axis=0), np.exp(total - total.max())

    def _drawn(
        self, kind: _Kind, which: Ints, fit: _Fit, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Effects (S, q), one of several candidates each, and mean target over proposal (S,)."""
        mode, hessian, height = fit
        half = rng.standard_normal((_CANDIDATES // 2, *mode.shape))
        normal = np.concatenate([half, -half])
        root = np.linalg.cholesky(hessian).swapaxes(1, 2)
        points = np.linalg.solve(root[None], normal[..., None])[..., 0] + mode
        ratio = np.stack(
            [
                self.log_likelihood(self.logits(kind, z, which))
                - 0.5 * (z**2).sum(axis=1)
                + 0.5 * (e**2).sum(axis=1)
                for z, e in zip(points, normal, strict=True)
            ]
        )
        ratio -= height + 0.5 * np.linalg.slogdet(hessian)[1]
        at = rng.random(len(which))
        best = (at >= np.cumsum(softmax(ratio, axis=0), axis=0)[:-1]).sum(axis=0)
        return points[best, np.arange(len(which))], np.exp(ratio).mean(axis=0)


@dataclass(frozen=True, eq=False)
class _FittedGroups(FittedLabelModel):
    """A fitted model, and the effects of the groups of a column on its draws."""

    fitted: FittedLabelModel
    column: str
    place: Mapping[str, int]
    values: _Effects
    intervals: _Effects | None
    weights: Mapping[str, float]

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        """Posterior of the labels of any items; a group is recognised by its value."""
        base = self.fitted.posterior(predictions.with_evidence(None))
        values = predictions.groups.get(self.column)
        code = np.full(predictions.n_items, -1) if values is None else _codes(values, self.place)

        def draws(of: ParameterDraws, effects: _Effects) -> ParameterDraws:
            return _GroupDraws(of, effects, code, predictions.evidence)

        of_intervals, intervals = base.interval_parameters, self.intervals or self.values
        places = self.values.places, intervals.places
        return replace(
            base,
            given=None,
            parameters=draws(base.parameters, self.values),
            interval_parameters=None if of_intervals is None else draws(of_intervals, intervals),
            keys=predictions.keys,
            shares={
                name: (share[0][places[0]], share[1][places[1]])
                for name, share in base.shares.items()
            },
            score_rates=None,
            vote_rates=None,
            diagnostics={
                **base.diagnostics,
                "group_curves": {
                    **base.diagnostics.get("group_curves", {}),
                    self.column: {name: round(w, 4) for name, w in self.weights.items()},
                },
            },
        )


@dataclass(frozen=True, eq=False)
class _GroupDraws:
    """P(label | draw) of items of groups `code` (n,), with what is known of them, (n, K)."""

    base: ParameterDraws
    effects: _Effects
    code: Ints
    evidence: Floats

    @property
    def size(self) -> int:
        return len(self.effects.places)

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        code, effects, evidence = self.code[rows], self.effects, self.evidence[rows]
        logits = _centred(self.base.block(effects.places[index], rows))
        centre = effects.centre[:, index]
        logits -= centre
        logits *= 1 + effects.slopes[:, index][code][:, None]
        logits += effects.offsets[:, :, index][:, code].swapaxes(0, 1)
        logits += centre
        logits += evidence[:, :, None]
        return softmax(logits, out=logits)


def _centred(p: Floats) -> Floats:
    """Log P(class) less its mean over the classes, (n, K, D)."""
    return np.moveaxis(centred_log(np.moveaxis(np.maximum(p, _TINY), 1, 2)), 2, 1)
