"""LabelShift: the classes are not as frequent among the unlabeled items as among the labeled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fewlabels.errors import InputError
from fewlabels.kernels.arrays import Bools, Floats, Ints, UInts
from fewlabels.kernels.blocks import map_blocks, spans
from fewlabels.kernels.keyed import exponentials
from fewlabels.kernels.label_shift import bias_correction, likeliest_frequencies
from fewlabels.models.base import FittedLabelModel, LabelModel
from fewlabels.posterior import LabelPosterior, ParameterDraws, first_block
from fewlabels.predictions import Predictions

_FEWEST_DRAWS = 200
_DRAWS_AT_ONCE = 50
_MOST_UNLABELED = 2000
"""Unlabeled items that frequencies are learned from: so many leave .01 of standard error."""

_BIAS_SPREAD = 2.5
"""Prior standard deviation of the bias, in log odds: labeled items may be of any population."""

_LEAST = 1e-9
_SALT, _NOISE = 0x5A1F7, 11


def told(predictions: Predictions) -> Bools:
    """Items of whose label anything is known: a label, or annotators' counts, shape (n,)."""
    if predictions.histogram is None:
        return predictions.labeled
    return predictions.labeled | np.asarray(predictions.histogram.any(axis=1))


def sides(predictions: Predictions) -> tuple[Bools, Bools]:
    """Labeled and unlabeled items, between which a shift is, (n,) each.

    An item of sampling weight 0 stands for none of the population: it is on neither side.
    """
    known, weighty = told(predictions), predictions.weight > 0
    return known & weighty, ~known & weighty


def one_sided(predictions: Predictions) -> str | None:
    """Which of the two `sides` has no item, in words; None where both have some."""
    known, others = sides(predictions)
    if known.any() and others.any():
        return None
    said = "every item has a label" if known.any() else "no item has a label"
    return said + weightless(predictions)


def weightless(predictions: Predictions) -> str:
    """What to add to a count of items where some have sampling weight 0; else nothing."""
    return "" if (predictions.weight > 0).all() else " (not counting those of sampling weight 0)"


class Frequencies(NamedTuple):
    """Class frequencies of the labeled (source) and the unlabeled (target) items, (D, K) each.

    `bias` are the factors that calibrate the model's probabilities for the labeled items.
    """

    source: Floats
    target: Floats
    bias: Floats

    @property
    def weights(self) -> Floats:
        """Class weights w = target / source, (D, K)."""
        return self.target / self.source

    @property
    def factors(self) -> Floats:
        """What turns the model's P(class | s) into that of the unlabeled items, (D, K)."""
        return self.weights * self.bias


@dataclass(frozen=True)
class LabelShift(LabelModel):
    """A label model of P(class | scores), for unlabeled items with other class frequencies.

    P(scores | class) is taken to be the same for both. What the model learned from the labels
    holds under the labeled items' class frequencies p; those of the unlabeled items, q, maximise
    the likelihood of their scores, and P_q(class | s) is proportional to (q / p) P_p(class | s)
    (Saerens et al. 2002). Each parameter draw finds its own p, the mean of its P_p over the
    labeled items' scores (Alexandari et al. 2020), and its own q, both under Bayesian-bootstrap
    weights of the items: how uncertain the calibration and the frequencies are, jointly, is in the
    draws. The model is the calibration that Alexandari et al. found to be needed.

    Parameters
    ----------
    model
        A label model that learns P(class | scores) from labeled items. One that learns how
        frequent the classes are from all items (a mixture) has no use for this.
    """

    model: LabelModel

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelShift:
        """Fit the model, then the frequencies under each of its draws.

        Raises
        ------
        InputError
            If no item has a label, or none lacks one; items of sampling weight 0 do not count.
        """
        if (missing := one_sided(predictions)) is not None:
            raise InputError(
                f"label shift is between labeled and unlabeled items, and {missing}; leave the "
                "correction out"
            )
        known, others = sides(predictions)
        inner = self.model.fit(predictions, rng)
        salt = int(rng.integers(2**63))
        unlabeled = np.flatnonzero(others)
        order = np.argsort(predictions.keys[unlabeled])
        rows = np.concatenate([np.flatnonzero(known), unlabeled[order[:_MOST_UNLABELED]]])
        blank = predictions.with_evidence(None).take(rows)
        labels = predictions.labels[rows]
        items = _Items(blank, predictions.keys[rows], labels, known[rows], salt)
        found = inner.posterior(blank)
        return FittedLabelShift(
            inner,
            _Ratios.of(found, items),
            tuple(None if one is None else _Ratios.of(one, items) for one in found.per_model),
        )


@dataclass(frozen=True, eq=False)
class _Items:
    """The items that frequencies are learned from, their labels left out."""

    predictions: Predictions
    keys: UInts
    labels: Ints
    known: Bools
    salt: int

    def frequencies(self, parameters: ParameterDraws, size: int) -> Frequencies:
        """Source and target frequencies of draws 0 .. size-1."""
        first_block(parameters)
        chunks = [np.arange(s.start, s.stop) for s in spans(size, _DRAWS_AT_ONCE)]

        def run(index: Ints) -> Frequencies:
            p = parameters.block(index % parameters.size, slice(None))
            weights = exponentials(self.keys, index, self.salt ^ _SALT)
            weights *= self.predictions.weight[:, None]
            seed = [self.salt & (2**64 - 1), _NOISE, int(index[0])]
            noise = np.random.default_rng(seed).standard_normal((p.shape[1], len(index)))
            return self._solve(p, weights, noise)

        parts = list(map_blocks(run, chunks))
        return Frequencies(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def likeliest(self, probabilities: Floats) -> Frequencies:
        """Source and target frequencies of one set of probabilities (n, K)."""
        p, weight = probabilities[:, :, None], self.predictions.weight[:, None]
        return self._solve(p, weight, np.zeros((p.shape[1], 1)))

    def _solve(self, p: Floats, weights: Floats, noise: Floats) -> Frequencies:
        named = self.labels >= 0
        p = np.maximum(p, _LEAST)  # a class that the model rules out here may be there elsewhere
        bias = bias_correction(p[named], self.labels[named], noise, spread=_BIAS_SPREAD)
        p = p * bias
        p /= p.sum(axis=1, keepdims=True)
        mine, others = weights[self.known], weights[~self.known]
        source = np.einsum("nkd,nd->kd", p[self.known], mine) / mine.sum(axis=0)
        others = others * (len(others) / others.sum(axis=0))
        target = likeliest_frequencies(p[~self.known], source, others)
        return Frequencies(source.T, target.T, bias.T)


class _Ratios(NamedTuple):
    """Frequencies by which one posterior's marginals, draws and interval draws are adjusted."""

    point: Frequencies
    draws: Frequencies
    doubted: Frequencies

    @staticmethod
    def of(posterior: LabelPosterior, items: _Items) -> _Ratios:
        point = items.likeliest(posterior.probabilities)
        size = max(posterior.parameters.size, _FEWEST_DRAWS)
        draws = items.frequencies(posterior.parameters, size)
        if posterior.interval_parameters is None:
            return _Ratios(point, draws, draws)
        size = max(posterior.interval_parameters.size, _FEWEST_DRAWS)
        return _Ratios(point, draws, items.frequencies(posterior.interval_parameters, size))


@dataclass(frozen=True, eq=False)
class FittedLabelShift(FittedLabelModel):
    """A fitted model, and how its probabilities change where nothing is known of a label."""

    inner: FittedLabelModel
    ratios: _Ratios
    per_model: tuple[_Ratios | None, ...]

    @property
    def frequencies(self) -> Frequencies:
        """Class frequencies of the labeled and the unlabeled items, for values, (D, K) each."""
        return self.ratios.draws

    @property
    def doubted_frequencies(self) -> Frequencies:
        """The same, in the draws that intervals use."""
        return self.ratios.doubted

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        """Posterior of these items; those of whose label nothing is known are adjusted."""
        found = self.inner.posterior(predictions)
        target = ~told(predictions)
        own = tuple(
            one if one is None or ratios is None else _adjusted(one, ratios, target)
            for one, ratios in zip(found.per_model, self.per_model, strict=True)
        )
        return replace(_adjusted(found, self.ratios, target), per_model=own)


def _adjusted(found: LabelPosterior, ratios: _Ratios, target: Bools) -> LabelPosterior:
    parameters = _Reweighted(found.parameters, ratios.draws.factors, target)
    doubted = None
    if found.interval_parameters is not None:
        doubted = _Reweighted(found.interval_parameters, ratios.doubted.factors, target)
    probabilities = None
    if found.value_from == "marginals":
        probabilities = found.probabilities.copy()
        probabilities[target] *= ratios.point.factors[0]
        probabilities[target] /= probabilities[target].sum(axis=1, keepdims=True)
    return replace(
        found,
        given=probabilities,
        parameters=parameters,
        interval_parameters=doubted,
        score_rates=None,  # those of the labeled items' population
        vote_rates=None,
    )


@dataclass(frozen=True, eq=False)
class _Reweighted:
    """Parameter draws, the target items' probabilities times factors (D, K)."""

    inner: ParameterDraws
    factors: Floats
    target: Bools

    @property
    def size(self) -> int:
        return len(self.factors)

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        """P(label | draw) of these items, shape (n, K, D)."""
        out = self.inner.block(index % self.inner.size, rows)
        target = np.flatnonzero(self.target[rows])
        adjusted = out[target] * self.factors[index].T
        adjusted /= adjusted.sum(axis=1, keepdims=True)
        out[target] = adjusted
        return out
