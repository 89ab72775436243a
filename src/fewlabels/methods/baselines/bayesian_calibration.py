"""Bayesian calibration: each classifier's scores are recalibrated by the labels, by itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Real

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from fewlabels.checks.arguments import whole
from fewlabels.errors import UsageError
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import map_blocks, spans
from fewlabels.kernels.importance import ImportanceSample, Proposal
from fewlabels.kernels.simplex import CLIP
from fewlabels.kernels.votes import has_evidence
from fewlabels.methods.base import (
    FittedLabelModel,
    LabelModel,
    probabilities_of,
    refuse_more_classes,
    status_of,
    with_probabilities,
)
from fewlabels.methods.per_model import ScoreDraws, fit_each
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

FEW_EFFECTIVE = 100
"""With a smaller effective sample size, the draws do not represent a posterior."""


@dataclass(frozen=True)
class BayesianCalibration(LabelModel):
    """Logit P(y=1|s) = a log s - b log(1-s) + c for every classifier, from its labels.

    Two classes only. The posterior of (log a, log b, c) is drawn by importance sampling; metrics
    are averages over the draws. Source: Ji, Smyth, Steyvers (2020), section 3, for one group;
    the map is beta calibration, Kull, Silva Filho, Flach (2017).

    Parameters
    ----------
    slope_sd, offset_sd
        Prior standard deviations of log a and log b, and of c, all centred at 0: the classifier is
        taken to be calibrated until labels say otherwise. The defaults are those of a single group
        under the hierarchical prior of the source's released code: a group's mean has standard
        deviation .4 (2 for c), and its deviation from that is half-normal with scale .15 (.75), so
        together sqrt(.4^2 + .15^2) = .43 and sqrt(2^2 + .75^2) = 2.14.
    n_draws
        Parameter draws.
    proposals
        Proposals of the importance sampler.
    """

    slope_sd: float = 0.43
    offset_sd: float = 2.14
    n_draws: int = 200
    proposals: int = 1000

    def __post_init__(self) -> None:
        whole("n_draws", self.n_draws)
        whole("proposals", self.proposals)
        for name in ("slope_sd", "offset_sd"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0 < float(value) < np.inf:
                raise UsageError(f"`{name}` must be a positive number; got {value!r}")

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Draw every classifier's calibration map."""
        others = "'tempered-ensemble', 'ssme-kde' or 'dawid-skene'"
        refuse_more_classes(predictions, "bayesian-calibration", others)
        served, _ = with_probabilities(predictions, "bayesian-calibration")
        return fit_each(self._fit_one, served, rng)

    def _fit_one(self, served: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """The calibration map of one classifier."""
        p = probabilities_of(served, served.models, "bayesian-calibration")
        there = ~np.isnan(p[:, 0, 0])
        informed = np.flatnonzero(there & has_evidence(served.evidence))
        # By their keys, so that the order of the rows does not show in the last digits.
        informed = informed[np.argsort(served.keys[informed])]
        x, sds = log_scores(p[informed, 0, 1]), np.array([self.slope_sd] * 2 + [self.offset_sd])
        data = (x, served.evidence[informed], served.information[informed], sds)
        mode = minimize(
            lambda t: -log_posterior(t[None], *data)[0],
            np.zeros(3),
            jac=lambda t: -slope_and_curvature(t, *data)[0],
            hess=lambda t: -slope_and_curvature(t, *data)[1],
            method="trust-exact",
            options={"gtol": 1e-6 * max(len(x), 1) ** 0.5},
        )
        values, vectors = np.linalg.eigh(-slope_and_curvature(mode.x, *data)[1])
        # At a mode the least curvature is positive; the prior's is a floor wherever it is not.
        root = vectors / np.sqrt(np.maximum(values, 0.1 * sds.max() ** -2.0))
        # Three parameters: a multivariate t covers the posterior well, and systematic resampling
        # leaves little Monte Carlo error, so no chain has to be run or judged.
        sample = ImportanceSample.draw(
            lambda theta: log_posterior(theta, *data),
            Proposal.of(mode.x, root, _FREEDOM),
            self.proposals,
            rng,
        )
        draws = sample.points[sample.resample(self.n_draws, rng)]
        return _FittedBetaCalibration(
            served.models, p[there, 0, 1], draws, sample.effective_size, bool(mode.success),
            len(informed), int(rng.integers(2**63)),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _FittedBetaCalibration(FittedLabelModel):
    """Equally weighted draws `theta` (D, 3) of log a, log b and c, and how they came about."""

    models: tuple[str, ...]
    scores: Floats
    theta: Floats
    effective_size: float
    converged: bool
    n_informed: int
    salt: int

    @property
    def size(self) -> int:
        """How many draws there are."""
        return len(self.theta)

    @cached_property
    def logit_prevalence(self) -> Floats:
        """Logit of the share of class 1 among the items fitted to, (D,): stands in for a score."""

        def total(rows: slice) -> Floats:
            z = logits(self.theta, log_scores(self.scores[rows]))
            return expit(z, out=z).sum(axis=0)

        n = len(self.scores)
        return logit(np.sum(list(map_blocks(total, spans(n, 4096))), axis=0) / n)

    def log_odds(self, scores: Floats, index: Ints) -> Floats:
        """Calibrated log-odds of scores, (n, D)."""
        return logits(self.theta[index], log_scores(scores))

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        scores = probabilities_of(predictions, self.models, "bayesian-calibration")[:, 0, 1]
        slopes, offset = np.exp(self.theta[:, :2]), self.theta[:, 2]
        return LabelPosterior(
            None,
            ScoreDraws(self, scores, predictions.evidence),
            predictions.keys,
            salt=self.salt,
            status=status_of(self._warnings()),
            warnings=self._warnings(),
            diagnostics={
                "a": float(slopes[:, 0].mean()),
                "b": float(slopes[:, 1].mean()),
                "c": float(offset.mean()),
                "effective_sample_size": self.effective_size,
            },
        )

    def _warnings(self) -> tuple[str, ...]:
        warnings = []
        if not self.n_informed:
            warnings.append(
                "assumption: no labels; the estimates rest on the prior belief that the classifier "
                "is calibrated"
            )
        if not self.converged:
            warnings.append("not-converged: the mode of the calibration map was not reached")
        if self.effective_size < FEW_EFFECTIVE:
            warnings.append(
                f"not-converged: fewer than {FEW_EFFECTIVE} effective draws of the calibration map"
            )
        return tuple(warnings)


# --- the posterior of the calibration map -----------------------------------------------------
#
# Mode, importance sampling, resampling.


_FREEDOM = 5.0
"""Degrees of freedom of the proposals: tails heavier than those of any posterior here."""

_BLOCK = 2**21


def log_scores(s: Floats) -> Floats:
    """Log s and log(1 - s) of P(class 1), (n,) -> (n, 2)."""
    s = np.clip(s, CLIP, 1 - CLIP)
    return np.column_stack([np.log(s), np.log1p(-s)])


def logits(theta: Floats, x: Floats) -> Floats:
    """Calibrated log-odds a log s - b log(1 - s) + c, (D, 3) and (n, 2) -> (n, D).

    Source: Kull, Silva Filho, Flach (2017), equation 6; theta = (log a, log b, c).
    """
    slopes = np.exp(theta[:, :2]) * (1.0, -1.0)
    out: Floats = x @ slopes.T
    out += theta[:, 2]
    return out


def log_posterior(theta: Floats, x: Floats, evidence: Floats, power: Floats, sds: Floats) -> Floats:
    """Unnormalised log posterior of parameters (D, 3), priors N(0, sds^2): (D,).

    The likelihood of an item is sum_k exp(evidence_k) P(y = k | s), evidence (n, 2), to a power.
    """
    out: Floats = -0.5 * ((theta / sds) ** 2).sum(axis=1)
    for block in spans(len(x), max(_BLOCK // len(theta), 1)):
        z = logits(theta, x[block])
        some = evidence[block]
        gain = np.logaddexp(some[:, :1], some[:, 1:] + z) - np.logaddexp(0.0, z)
        out += (power[block, None] * gain).sum(axis=0)
    return out


def slope_and_curvature(
    theta: Floats, x: Floats, evidence: Floats, power: Floats, sds: Floats
) -> tuple[Floats, Floats]:
    """Gradient (3,) and Hessian (3, 3) of the log posterior at one theta (3,)."""
    z = logits(theta[None], x)[:, 0]
    p, informed = expit(z), expit(z + (evidence[:, 1] - evidence[:, 0]))
    # dz/dtheta: a log s and -b log(1 - s), which are also their own second derivatives.
    inner = np.column_stack([x * np.exp(theta[:2]) * (1.0, -1.0), np.ones(len(x))])
    error = power * (informed - p)
    bend = power * (informed * (1 - informed) - p * (1 - p))
    hessian = inner.T @ (inner * bend[:, None]) - np.diag(sds**-2.0)
    hessian[[0, 1], [0, 1]] += error @ inner[:, :2]
    return error @ inner - theta / sds**2, hessian
