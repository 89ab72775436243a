"""SSME-NF: a semi-supervised mixture of Gaussians in the latent space of a normalising flow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from numbers import Real
from operator import add

import numpy as np
from scipy.special import ndtri

from fewlabels.checks.arguments import positive, whole
from fewlabels.errors import InputError, UsageError
from fewlabels.kernels.arrays import Array, Floats, Ints, UInts
from fewlabels.kernels.blocks import map_blocks, spans
from fewlabels.kernels.counter_based import shared_exponentials, uniforms
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
    probabilities_of,
    status_of,
    with_evidence,
    with_probabilities,
)
from fewlabels.methods.replicates import Replicated, Replicates
from fewlabels.methods.ssme.flow_training import (
    Expectation,
    Items,
    LatentMixture,
    MixturePrior,
    Trained,
    Training,
    TrainingOptions,
    mean_log_likelihood,
)
from fewlabels.methods.ssme.kde_mixture import choose_support, posterior
from fewlabels.methods.ssme.real_nvp import BLOCK, RealNVP, Trace
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

# One stream of randomness per use, all from one seed.
_HELD_OUT_SALT, _REFIT_SALT, _NOISE_SALT = 0x4E1D, 0xF2EF, 0x2015E

REFIT_STEPS = 20
"""EM steps of a bootstrap replicate; it starts at the mixture of the fit."""


@dataclass(frozen=True)
class SSMEFlow(LabelModel):
    """P(scores | class) by a normalising flow, P(class), and labels where they are known.

    A RealNVP maps the classifiers' log-ratios, standardised, to a latent space in which every
    class is a Gaussian. Flow and Gaussians maximise sum_i weight_i log sum_k exp(evidence_ik)
    P(k) P(scores_i | k): an item with a known label has evidence for that class alone. First the
    flow is trained with the Gaussians as they are estimated from the scores under the mean
    classifier; then both, the Gaussians by one EM step per epoch (in the paper the Gaussians
    alone, without a prior: `joint=False`, `covariance_prior=0`).

    The intervals hold the trained flow fixed: each bootstrap replicate refits the latent mixture
    alone, by EM under Exp(1) row weights.

    Source: Shanmugam et al. (2025), section 4 and appendix; Dinh et al. (2017).

    Parameters
    ----------
    n_couplings, hidden
        Coupling layers, and the width of their networks of three fully connected layers.
    flow_epochs, joint_epochs
        Epochs of the two stages, each on all items at once.
    learning_rate
        Step of Adam; over the second stage it falls to a hundredth (cosine).
    noise
        Standard deviation of the noise that is added to the standardised scores in every epoch.
        It keeps the density from collapsing onto ties and onto single items.
    weight_decay
        Share of each of the flow's parameters that a step takes away, times the learning rate.
    joint
        Whether the flow learns in the second stage too; else the Gaussians alone do (the paper).
    covariance_prior
        How many pseudo-observations per dimension each class's covariance starts from; they have
        the covariance within classes, pooled, at the start. 0 is none (the paper).
    unlabeled_weight
        Weight of an unlabeled item against a labeled one (the paper's lambda).
    validation_share, patience
        Share of the items, chosen by their keys, that is held out of training; each stage then
        ends when their likelihood has not improved for `patience` epochs, and its best epoch is
        kept. 0 holds out none (the paper).
    replicates
        Bootstrap refits of the latent mixture.
    max_support
        Up to this many items training uses all; beyond, half as many (labeled ones first, for up
        to half of them), with the labels' weight scaled to match.
    dtype
        Type that the flow is trained in: "float32" or "float64", at twice the time.
    """

    n_couplings: int = 10
    hidden: int = 128
    flow_epochs: int = 300
    joint_epochs: int = 700
    learning_rate: float = 3e-4
    noise: float = 0.2
    weight_decay: float = 0.0
    joint: bool = True
    covariance_prior: float = 5.0
    unlabeled_weight: float = 1.0
    validation_share: float = 0.0
    patience: int = 50
    replicates: int = 20
    max_support: int = 5_000
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name in (
            "n_couplings", "hidden", "flow_epochs", "joint_epochs", "patience", "replicates",
            "max_support",
        ):  # fmt: skip
            whole(name, getattr(self, name))
        positive("learning_rate", self.learning_rate)
        for name in ("noise", "weight_decay", "unlabeled_weight", "covariance_prior"):
            if not _is_number(value := getattr(self, name)) or not value >= 0:
                raise UsageError(f"`{name}` must be a number, 0 or larger; got {value!r}")
        if not _is_number(self.validation_share) or not 0 <= self.validation_share < 1:
            raise UsageError(
                f"`validation_share` must be at least 0 and below 1; got {self.validation_share!r}"
            )
        if self.dtype not in ("float32", "float64"):
            raise UsageError(f"`dtype` must be 'float32' or 'float64'; got {self.dtype!r}")

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Choose the support, standardise its scores, and train."""
        served, p = with_probabilities(predictions, "ssme-flow")
        salt = int(rng.integers(2**63))
        average = mean_probability(p)
        informed = has_evidence(served.evidence)
        chosen = choose_support(served.keys, informed, self.max_support, salt, served.times)
        # In the order of the keys, so that no sum depends on the order of the items.
        order = np.argsort(served.keys[chosen.rows])
        support = chosen.rows[order]
        weight = np.where(informed[support], chosen.label_scale, float(self.unlabeled_weight))
        weight = weight * chosen.counts[order]
        if not weight.any():
            raise InputError(
                "method 'ssme-flow' with unlabeled_weight=0 learns from labels alone, and there "
                "are none; label some items, or raise unlabeled_weight"
            )
        scores = log_ratios(p[support], average)
        scale = scores.std(axis=0)
        # A dimension without spread carries no information.
        standard = Standard(average, scores.mean(axis=0), np.where(scale > 1e-9, scale, 1.0))
        pool = with_evidence(linear_pool(p[support], average), served.evidence[support])
        clusters = served.clusters_of(support)
        items = Items(standard.of(scores), served.evidence[support].T, weight, clusters)

        def train(keys: UInts) -> _FittedFlow:
            d = len(items.scores)
            flow = RealNVP(d, self.n_couplings, self.hidden, getattr(np, self.dtype))
            prior, start = MixturePrior.of_scores(
                items.scores, pool, items.weight, self.noise, self.covariance_prior * d
            )
            u = uniforms(keys, np.arange(1), salt ^ _HELD_OUT_SALT)[:, 0]
            inside = np.flatnonzero(u >= self.validation_share)
            outside = np.flatnonzero(u < self.validation_share)
            if not items.weight[inside].any() or not items.weight[outside].any():
                inside, outside = np.arange(len(keys)), outside[:0]
            cast = replace(items, scores=items.scores.astype(flow.dtype))
            held_out = cast.take(outside) if len(outside) else None
            options = TrainingOptions(
                self.flow_epochs, self.joint_epochs, self.learning_rate, self.noise,
                self.weight_decay, self.patience, self.joint,
            )  # fmt: skip
            training = Training(flow, prior, options, cast.take(inside), held_out, rng)
            at_start = mean_log_likelihood(flow, training.parameters, start, cast.take(inside))
            trained = training.run(start)
            outcome = {
                "log_likelihood_start": at_start,
                "log_likelihood": trained.log_likelihood,
                "log_likelihood_held_out": None
                if held_out is None
                else mean_log_likelihood(flow, trained.parameters, trained.mixture, held_out),
            }
            return _FittedFlow(
                self, served.models, standard, flow, prior, trained, items, keys, salt, outcome
            )

        # One block: BLAS is held to one thread, and its sums do not depend on their number.
        (fitted,) = map_blocks(train, [served.keys[support]])
        return fitted


@dataclass(frozen=True, eq=False)
class Standard:
    """Log-ratios standardised by the support's mean and standard deviation, both (d,)."""

    average: Floats
    mean: Floats
    scale: Floats

    def of(self, scores: Floats) -> Floats:
        """Standardised scores (d, n) of log-ratios (n, d)."""
        return np.ascontiguousarray(((scores - self.mean) / self.scale).T)


def log_ratios(p: Floats, average: Floats) -> Floats:
    """Additive log-ratios (n, M(K-1)) of probabilities (n, M, K); see `SSMEKDE.log_ratios`."""
    return additive_log_ratio(filled(clip(p), average))


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and bool(np.isfinite(float(value)))


@dataclass(frozen=True, eq=False)
class _FittedFlow(Replicated):
    model: SSMEFlow
    models: tuple[str, ...]
    standard: Standard
    flow: RealNVP
    prior: MixturePrior
    trained: Trained
    items: Items
    keys: UInts
    salt: int
    outcome: dict[str, float | None]

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        p = probabilities_of(predictions, self.models, "ssme-flow")
        draws = Replicates(self.model.replicates, self, predictions, p)
        labeled = bool((self.items.evidence != 0).any())
        return LabelPosterior(
            draws.marginals,
            draws,
            predictions.keys,
            salt=self.salt,
            value_from="marginals",
            status=status_of(self._warnings(labeled)),
            warnings=self._warnings(labeled),
            diagnostics={
                "epochs": self.trained.epochs,
                **self.outcome,
                "stopped_early": self.trained.stopped_early,
                "smallest_class_share": float(self.trained.mixture.shares.min()),
                "latent_dimension": self.flow.n_dimensions,
                "support_points": len(self.keys),
            },
        )

    @cached_property
    def _with_refits(self) -> list[LatentMixture]:
        """The latent mixture of the fit, and those of the refits after it."""
        return [self.trained.mixture, *self.refit(self.model.replicates)]

    def class_probabilities(
        self, predictions: Predictions, p: Floats, refits: bool
    ) -> Iterator[tuple[Ints | slice, Array]]:
        """P(label) under each of the mixtures, from one pass through the flow."""
        evidence = predictions.evidence
        mixtures = self._with_refits if refits else [self.trained.mixture]
        d, n_classes = self.flow.n_dimensions, evidence.shape[1]
        # The joint has the shares in it already.
        even = np.ones((n_classes, len(mixtures)))

        def run(rows: slice) -> Floats:
            z = self.latent(p[rows])
            step = Expectation(n_classes, d, z.shape[1], np.float64)
            joint = [step.log_joint(mixture, z).T for mixture in mixtures]
            return posterior(np.stack(joint, axis=2), even, evidence[rows])

        blocks = spans(len(evidence), 4 * BLOCK)
        yield from zip(blocks, map_blocks(run, blocks), strict=True)

    def latent(self, p: Floats) -> Floats:
        """Latent scores (d, n) of probabilities (n, M, K).

        All blocks are of one size, the last one filled up: BLAS rounds products of other sizes
        otherwise, and in single precision an item's posterior would show what else there is.
        """
        scores = self.standard.of(log_ratios(p, self.standard.average))
        weights = self.flow.views(self.trained.parameters)
        trace = Trace(self.flow, BLOCK, keep=False)
        block = np.zeros((len(scores), BLOCK), self.flow.dtype)
        out = np.empty(scores.shape)
        for rows in spans(scores.shape[1], BLOCK):
            size = rows.stop - rows.start
            block[:, :size] = scores[:, rows]
            out[:, rows] = trace.forward(weights, block)[0][:, :size]
        return out

    def refit(self, size: int) -> list[LatentMixture]:
        """Latent mixtures of `size` bootstrap replicates, the flow as it is."""
        weights = shared_exponentials(self.items.clusters, np.arange(size), self.salt ^ _REFIT_SALT)
        # With the noise of training: without it, each refit would be narrower than the fit.
        dimensions = np.arange(self.flow.n_dimensions)
        noise = ndtri(uniforms(self.keys, dimensions, self.salt ^ _NOISE_SALT)).T
        scores = (self.items.scores + self.model.noise * noise).astype(self.flow.dtype)
        latent, _ = self.flow.forward(self.trained.parameters, scores)
        blocks = [
            (block, np.ascontiguousarray(latent[:, block]))
            for block in spans(latent.shape[1], BLOCK)
        ]

        def run(row_weights: Floats) -> LatentMixture:
            """EM of the latent mixture alone, from that of the fit."""
            weight, mixture = self.items.weight * row_weights, self.trained.mixture
            k, memory = len(self.items.evidence), {}
            for _, z in blocks:
                memory[z.shape[1]] = Expectation(k, len(z), z.shape[1], z.dtype.type)
            for _ in range(REFIT_STEPS):
                parts = []
                for block, z in blocks:
                    step = memory[z.shape[1]]
                    step.run(mixture, z, self.items.evidence[:, block], weight[block])
                    parts.append(step.moments())
                mixture = self.prior.update(reduce(add, parts), mixture.means)
            return mixture

        return list(map_blocks(run, list(weights.T)))

    def _warnings(self, labeled: bool) -> tuple[str, ...]:
        warnings = []
        if not labeled:
            warnings.append(
                "assumption: no labels; the classes are those that the averaged classifier starts "
                "the mixture with"
            )
        if self.trained.failed:
            warnings.append(
                f"not-converged: {self.trained.failed} after {self.trained.epochs} epochs; the "
                "flow of the epoch before is used (a smaller learning_rate may help)"
            )
        return tuple(warnings)
