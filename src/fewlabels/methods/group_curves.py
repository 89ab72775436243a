"""Groups have curves of their own: a layer over any fitted label model, learned from the labels.

Let P_d(k | x) be the fitted model's parameter draw d, f_k its logarithms less their mean over the
classes, and c_k those of its mean over the labeled items. In group g

P_d(k | x, g) = softmax_k(c_k + a_gk + (1 + b_g) (f_k - c_k)),

offsets a of sd tau (between two classes) and slopes b of sd tau / 2. Over the groups they are
independent; or, where groups have an order, a random walk, or one step; and one offset and slope of
the same sds are common to all. Which of these and which tau, the evidence says, and tau = 0 leaves
the model as it is.

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

_WORTH = 0.005
"""Kinds are left out if their weight is below this where the likelihood is expanded once."""

_CELLS = 2**23
"""Labels times draws, classes and effects of a group: of more labels those of the smallest keys
tell of groups."""

_BLOCK = 2**16
"""Classes times items times draws that are looked at together: what is near the processor."""

_CANDIDATES, _STEPS, _LONGEST, _CLOSE = 8, 20, 2.0, 0.1
_TINY = float(np.finfo(float).tiny)


def with_group_curves(
    fitted: FittedLabelModel, predictions: Predictions, rng: np.random.Generator
) -> FittedLabelModel:
    """The model fitted to these items, with curves of their own for the groups of every column.

    A column of 2 to 40 values counts, of which any may be without labels. Items without a value are
    in no group, and stay as they are. `rng` is not touched where there are no groups.
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
    """What groups may have of their own, less its mean over the labels, (G,), and in common.

    The fitted model has learned the curve of their mix, which is flatter than those of groups that
    lie apart: logistic curves do not collapse (Gail, Wieand and Piantadosi 1984).
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
        both = np.column_stack([apart, np.ones(g)])
        yield from (_Kind(name, both, tau, weight / total) for tau in SDS)


class _Fit(NamedTuple):
    """Effects at their modes (D, q), Hessians (D, q, q), and log P(labels | draw, kind), (D,)."""

    mode: Floats
    hessian: Floats
    log_evidence: Floats


class _Local(NamedTuple):
    """The log-likelihood (D,) near effects of the groups (G, e, D).

    Its gradient there, (G, e, D), and expected second derivatives times -1, (G, e, e, D).
    """

    effects: Floats
    value: Floats
    gradient: Floats
    curvature: Floats


class _Block(NamedTuple):
    """Items of a group: f - c and logits (K, n, D), evidence (K, n, 1) to the power (n, 1)."""

    group: int
    away: Floats
    logits: Floats
    evidence: Floats
    power: Floats


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
    def _all_certain(self) -> bool:
        """Whether every item has one label."""
        return bool(((self.evidence > -np.inf).sum(axis=0) == 1).all())

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

    def of_groups(self, kind: _Kind, z: Floats) -> Floats:
        """Effects of the groups (G, e, D), of z (D, r e)."""
        r = kind.shape.shape[1]
        every: Floats = np.einsum("gr,dre->ged", kind.shape, z.reshape(len(z), r, -1))
        return every * self._scale(kind.tau)[:, None]

    def curves(self, effects: Floats) -> tuple[Floats, Floats]:
        """Offsets (K, G, D) and slopes (G, D) of effects of the groups."""
        return np.einsum("ke,ged->kgd", self.contrasts, effects[:, :-1]), effects[:, -1]

    def _blocks(self, effects: Floats, which: Ints) -> Iterator[_Block]:
        """Items of one group at a time, for some draws of the model with effects (G, e, D)."""
        (offsets, slopes), centre = self.curves(effects), self.centre[:, which]
        most = max(_BLOCK // (len(centre) * len(which)), 1)
        there, starts = np.unique(self.code, return_index=True)
        for g, low, high in zip(there, starts, [*starts[1:], len(self.code)], strict=True):
            level = offsets[:, g] + centre
            for start in range(low, high, most):
                rows = slice(start, min(start + most, high))
                away = self.away[:, rows, which]
                logits = away * (1 + slopes[g]) + level[:, None]
                yield _Block(g, away, logits, self.evidence[:, rows], self.power[rows])

    def _of_labels(self, block: _Block, total: Floats) -> tuple[Floats, Floats]:
        """Log-likelihood of a block's labels (D,), and P(class | label) (K, n, D)."""
        logits, evidence = block.logits, block.evidence
        if self._all_certain:
            rest = (evidence > -np.inf).astype(float)
            of_labels = np.take_along_axis(logits, rest.argmax(axis=0)[None], axis=0)[0]
        else:
            rest = softmax(logits + evidence, axis=0)
            of_labels = logsumexp(logits + evidence, axis=0)
        return (block.power * (of_labels - total)).sum(axis=0), rest

    def log_likelihood(self, effects: Floats, which: Ints) -> Floats:
        """Log-likelihood of all labels, (D,)."""
        out = np.zeros(len(which))
        for block in self._blocks(effects, which):
            total = logsumexp(block.logits, axis=0)
            out += self._of_labels(block, total)[0]
        return out

    def near(self, effects: Floats, which: Ints) -> _Local:
        """The log-likelihood and its derivatives."""
        g, e, size = effects.shape
        out = _Local(effects, np.zeros(size), np.zeros((g, e, size)), np.zeros((g, e, e, size)))
        squares = self.contrasts[:, :, None] * self.contrasts[:, None, :]
        for block in self._blocks(effects, which):
            away, power = block.away, block.power
            total = logsumexp(block.logits, axis=0)
            p = np.exp(block.logits - total)
            value, rest = self._of_labels(block, total)
            gradient, curvature = out.gradient[block.group], out.curvature[block.group]
            out.value[:] += value
            gap = power * (rest - p)
            gradient[:-1] += self.contrasts.T @ gap.sum(axis=1)
            gradient[-1] += np.einsum("knd,knd->d", gap, away)
            # The covariance under P(class) of what the effects add, (e, e, D).
            weight = power * p
            of_slope = weight * away
            of_offsets = np.einsum("ke,knd->end", self.contrasts, p)
            mean = np.concatenate([of_offsets, np.einsum("knd,knd->nd", p, away)[None]])
            curvature[:-1, :-1] += np.einsum("kef,kd->efd", squares, weight.sum(axis=1))
            both = self.contrasts.T @ of_slope.sum(axis=1)
            curvature[:-1, -1] += both
            curvature[-1, :-1] += both
            curvature[-1, -1] += np.einsum("knd,knd->d", of_slope, away)
            curvature -= np.einsum("end,fnd->efd", power * mean, mean)
        return out

    def peak(self, kind: _Kind, local: _Local) -> _Fit:
        """The mode of a kind's effects, and the evidence, were the expansion the log-likelihood.

        With u, S the gradient and curvature at e_0, and effects A z: with b = A'(u + S e_0) and
        H = A'SA + 1 the mode is H^-1 b, and the logarithm of the evidence
        l - u'e_0 - e_0'S e_0 / 2 + b'H^-1 b / 2 - log|H| / 2.
        """
        shape, scale, at = kind.shape, self._scale(kind.tau), local.effects
        r, (g, e, size) = shape.shape[1], at.shape
        moved = np.einsum("gefd,gfd->ged", local.curvature, at)
        pull = np.einsum("gr,ged->dre", shape, (local.gradient + moved) * scale[:, None])
        pull = pull.reshape(size, r * e)
        pairs = (shape[:, :, None] * shape[:, None, :]).reshape(g, r * r)
        hessian = pairs.T @ (local.curvature * (scale[:, None] * scale)[:, :, None]).reshape(g, -1)
        hessian = hessian.reshape(r, r, e, e, size).transpose(4, 0, 2, 1, 3)
        hessian = hessian.reshape(size, r * e, r * e) + np.eye(r * e)
        mode = np.linalg.solve(hessian, pull[:, :, None])[:, :, 0]
        height = local.value - np.einsum("ged,ged->d", local.gradient + 0.5 * moved, at)
        height += 0.5 * (pull * mode).sum(axis=1) - 0.5 * np.linalg.slogdet(hessian)[1]
        return _Fit(mode, hessian, height)

    def laplace(self, kind: _Kind, which: Ints, start: Floats) -> tuple[_Fit, _Local]:
        """The modes of the effects for some draws of the model, by Newton's method from `start`.

        Steps that lead down are halved. And the expansion from which the modes are.
        """
        z, best, highest = start, start, np.full(len(which), -np.inf)
        for _ in range(_STEPS):
            local = self.near(self.of_groups(kind, z), which)
            fit = self.peak(kind, local)
            height = local.value - 0.5 * (z**2).sum(axis=1)
            gap = fit.mode - z
            longest = np.abs(gap).max(axis=1, keepdims=True)
            down = height < highest - _CLOSE
            if not (down | (longest[:, 0] >= _CLOSE)).any():
                break
            best = np.where(down[:, None], best, z)
            highest = np.where(down, highest, height)
            step = gap * np.minimum(1, _LONGEST / np.maximum(longest, _TINY))
            z = np.where(down[:, None], 0.5 * (best + z), z + step)
        # Where it is still far from the mode, what it is there, which the expansion exceeds.
        more = 0.5 * np.einsum("di,dij,dj->d", gap, fit.hessian, gap)
        return fit._replace(log_evidence=fit.log_evidence - np.maximum(more - _CLOSE, 0)), local

    def effects(
        self, kinds: list[_Kind], rng: np.random.Generator
    ) -> tuple[_Effects, dict[str, float]]:
        """Draws of the model with effects of the groups, and the weight of every kind.

        The log-likelihood is expanded once, where the freest kind has its mode; from there it is
        told which kinds the labels favour, and where these have theirs.
        """
        k, size, g, e = *self.centre.shape, self.n_groups, self.contrasts.shape[1] + 1
        every = np.arange(size)
        free = next(kind for kind in kinds if kind.tau == SDS[1])
        local = self.laplace(free, every, np.zeros((size, free.shape.shape[1] * e)))[1]
        pooled = self.log_likelihood(np.zeros((g, e, size)), every)
        tried = [self.peak(kind, local) for kind in kinds]
        weights = self._posterior(tried, kinds, pooled)[0].mean(axis=1)[1:]
        worth = np.flatnonzero(weights > _WORTH)
        kinds, modes = [kinds[w] for w in worth], [tried[w].mode for w in worth]
        fits = [self.laplace(kind, every, z)[0] for kind, z in zip(kinds, modes, strict=True)]
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
                offsets[:, :-1, slots], slopes[:-1, slots] = self.curves(self.of_groups(kind, z))
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
        points = np.moveaxis(np.linalg.solve(root, np.moveaxis(normal, 0, 2)), 2, 0) + mode
        ratio = np.stack(
            [
                self.log_likelihood(self.of_groups(kind, z), which)
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
        if (code == code[:1]).all():
            code = code[:1]
        slopes = effects.slopes[:, index]
        # What is the same for all classes of an item makes no difference, so f may stand for f - c.
        level = effects.offsets[:, :, index] - slopes * effects.centre[:, None, index]
        p = self.base.block(effects.places[index], rows)
        logits = np.log(np.maximum(p, _TINY))
        logits *= 1 + slopes[code][:, None]
        logits += level[:, code].swapaxes(0, 1)
        logits += evidence[:, :, None]
        return softmax(logits, out=logits)


def _centred(p: Floats) -> Floats:
    """Log P(class) less its mean over the classes, (n, K, D)."""
    return np.moveaxis(centred_log(np.moveaxis(np.maximum(p, _TINY), 1, 2)), 2, 1)
