"""Beta calibration maps and their posterior: mode, importance sampling, resampling."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.simplex import CLIP, softmax

_FREEDOM = 5
"""Degrees of freedom of the proposals: tails heavier than those of any posterior here."""

_BLOCK = 2**21


class BetaPosterior(NamedTuple):
    """Draws (D, 3) of log a, log b and c, equally weighted, and how they came about."""

    draws: Floats
    mode: Floats
    effective_sample_size: float
    converged: bool


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


def log_posterior(theta: Floats, x: Floats, evidence: Floats, sds: Floats) -> Floats:
    """Unnormalised log posterior of parameters (D, 3), priors N(0, sds^2): (D,).

    The likelihood of an item is sum_k exp(evidence_k) P(y = k | s), evidence (n, 2).
    """
    out: Floats = -0.5 * ((theta / sds) ** 2).sum(axis=1)
    for block in spans(len(x), max(_BLOCK // len(theta), 1)):
        z = logits(theta, x[block])
        told = evidence[block]
        out += (np.logaddexp(told[:, :1], told[:, 1:] + z) - np.logaddexp(0.0, z)).sum(axis=0)
    return out


def slope_and_curvature(
    theta: Floats, x: Floats, evidence: Floats, sds: Floats
) -> tuple[Floats, Floats]:
    """Gradient (3,) and Hessian (3, 3) of the log posterior at one theta (3,)."""
    z = logits(theta[None], x)[:, 0]
    p, known = expit(z), expit(z + (evidence[:, 1] - evidence[:, 0]))
    # dz/dtheta: a log s and -b log(1 - s), which are also their own second derivatives.
    inner = np.column_stack([x * np.exp(theta[:2]) * (1.0, -1.0), np.ones(len(x))])
    error = known - p
    bend = known * (1 - known) - p * (1 - p)
    hessian = inner.T @ (inner * bend[:, None]) - np.diag(sds**-2.0)
    hessian[[0, 1], [0, 1]] += error @ inner[:, :2]
    return error @ inner - theta / sds**2, hessian


def sample_posterior(
    x: Floats,
    evidence: Floats,
    sds: Floats,
    *,
    size: int,
    proposals: int,
    rng: np.random.Generator,
) -> BetaPosterior:
    """Draws by importance sampling from a multivariate t around the mode, then resampling.

    Three parameters: the t covers the posterior well, and systematic resampling leaves little
    Monte Carlo error, so no chain has to be run or judged.
    """
    found = minimize(
        lambda t: -log_posterior(t[None], x, evidence, sds)[0],
        np.zeros(3),
        jac=lambda t: -slope_and_curvature(t, x, evidence, sds)[0],
        hess=lambda t: -slope_and_curvature(t, x, evidence, sds)[1],
        method="trust-exact",
        options={"gtol": 1e-6 * max(len(x), 1) ** 0.5},
    )
    values, vectors = np.linalg.eigh(-slope_and_curvature(found.x, x, evidence, sds)[1])
    # At a mode the least curvature is positive; the prior's is a floor wherever it is not.
    root = vectors / np.sqrt(np.maximum(values, 0.1 * sds.max() ** -2.0))
    t = rng.standard_normal((proposals, 3))
    t /= np.sqrt(rng.chisquare(_FREEDOM, size=(proposals, 1)) / _FREEDOM)
    theta = found.x + t @ root.T
    log_proposal = -(_FREEDOM + 3) / 2 * np.log1p((t**2).sum(axis=1) / _FREEDOM)
    weights = softmax(log_posterior(theta, x, evidence, sds) - log_proposal, axis=0)
    points = (np.arange(size) + rng.random()) / size
    chosen = np.minimum(np.searchsorted(np.cumsum(weights), points), proposals - 1)
    return BetaPosterior(theta[chosen], found.x, float(1 / (weights**2).sum()), bool(found.success))
