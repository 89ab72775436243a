"""Ensembles: disagreement and posteriors from several predictions per item.

An ensemble is any array (S, n, K): passes of Monte Carlo dropout, test-time augmentations, several
classifiers. Source: Mimori et al. (2021), equations 72, 73 and 81.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fewlabels.calibration import inputs as door_of
from fewlabels.errors import InputError
from fewlabels.kernels import dirichlet_multinomial as kernel
from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.simplex import softmax


def ensemble_mean(samples: Any) -> Floats:
    """Mean probabilities (n, K) of an ensemble (S, n, K).

    Raises
    ------
    InputError
        Not three dimensions, probabilities out of range, rows that do not sum to 1, NaN.
    """
    return np.mean(_members(samples), axis=0)


def ensemble_disagreement(samples: Any, concentration: Any = None) -> Floats:
    """Probability that two labels of an item differ, (n,), by an ensemble (S, n, K).

    Without a concentration the mean of 1 - sum f^2 (equation 72); with alpha0, (n,) or (S, n), the
    mean of alpha0 / (alpha0 + 1) (1 - sum f^2) (equation 73).

    Raises
    ------
    InputError
        As `ensemble_mean`; a concentration that is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from fewlabels.calibration import ensemble_disagreement
    >>> samples = np.array([[[1.0, 0.0]], [[0.5, 0.5]]])
    >>> print(ensemble_disagreement(samples))
    [0.25]
    """
    f = _members(samples)
    alpha0 = None if concentration is None else _concentrations(concentration, f)
    out: Floats = kernel.disagreement(f, alpha0).mean(axis=0)
    return out


def ensemble_posterior(samples: Any, histogram: Any, concentration: Any = None) -> Floats:
    """Expected class probabilities (n, K) given labels (n, K), by an ensemble (S, n, K).

    Members weigh as much as they explain the labels: in proportion to the product of f_k^y_k
    (equation 81, as text and formula have it; the released code sums). With a concentration, (n,)
    or (S, n), a member is a Dirichlet(alpha0 f): it weighs by its Dirichlet-multinomial likelihood,
    and its labels move its own mean. Weights are formed in logarithms and never underflow.

    Raises
    ------
    InputError
        As `ensemble_disagreement`; counts that are negative or fractional.
    """
    f = _members(samples)
    counts = door_of.histogram(histogram, *f.shape[1:])
    if concentration is None:
        explained = np.stack(
            [np.einsum("nk,nk->n", counts, np.log(np.maximum(one, kernel.FLOOR))) for one in f]
        )
        return _mixed(explained, f)
    alpha0 = _concentrations(concentration, f)
    explained = np.stack(
        [kernel.log_likelihood(counts, *pair) for pair in zip(f, np.log(alpha0), strict=True)]
    )
    return _mixed(explained, kernel.posterior_mean(f, counts, alpha0))


def _mixed(log_weights: Floats, means: Floats) -> Floats:
    out: Floats = np.einsum("sn,snk->nk", softmax(log_weights, axis=0), means)
    return out


def _members(samples: Any) -> Floats:
    members = door_of.block("samples", samples, 3)
    for s in range(len(members)):
        try:
            members[s] = door_of.scores(members[s], "probabilities")
        except InputError as error:
            raise InputError(f"`samples`, member {s} (from 0): {error}") from None
    return members


def _concentrations(value: Any, f: Floats) -> Floats:
    """Concentrations (S, n)."""
    alpha0 = door_of.block("concentration", value, np.ndim(value))
    if alpha0.shape not in {f.shape[1:2], f.shape[:2]} or not (alpha0 > 0).all():
        raise InputError(
            f"`concentration` must be positive, of shape {f.shape[1:2]} or {f.shape[:2]}; got "
            f"shape {alpha0.shape}, smallest {alpha0.min():.6g}"
        )
    return np.broadcast_to(alpha0, f.shape[:2])
