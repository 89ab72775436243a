"""ReferenceMap: what labeled items from elsewhere teach of the same classifiers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.multinomial import fit_map
from fewlabels.kernels.pooling import centred_logs
from fewlabels.models.informants import Informants, Said
from fewlabels.predictions import Predictions

_MOST_LOG = 4.0
_OFFSET_SD, _SLOPE_SD, _RANK_SD = 3.0, 1.0, 1.0


@dataclass(frozen=True, eq=False)
class ReferenceMap:
    """P(class | what the classifiers say) among the reference's items.

    A logistic regression on each classifier's centred logs (its prior: their mean) and on its
    normal scores among the reference's items (prior mean 0).
    """

    informants: Informants
    coefficients: Floats

    @staticmethod
    def of(reference: Predictions) -> ReferenceMap:
        """Fit to labeled items."""
        informants = Informants.of(reference)
        design = _design(informants.said(reference))
        k, m = reference.n_classes, reference.n_models
        means = np.r_[np.zeros(k), np.full(m, 1 / m), np.zeros(m)]
        sds = np.r_[np.full(k, _OFFSET_SD / np.sqrt(2)), np.full(m, _SLOPE_SD)]
        sds = np.r_[sds, np.full(m, _RANK_SD)]
        mode = fit_map(design, reference.evidence, means, sds**-2.0)
        return ReferenceMap(informants, mode.coefficients)

    def index(self, predictions: Predictions) -> Floats:
        """Centred logs of P(class) of any items of these classifiers, (n, K)."""
        logits = _design(self.informants.said(predictions)) @ self.coefficients
        out: Floats = logits - logits.mean(axis=1, keepdims=True)
        return out


def _design(said: Said) -> Floats:
    """Offsets, logs and normal scores, (n, K, K + 2 M)."""
    logs = np.clip(np.nan_to_num(centred_logs(said.probabilities)), -_MOST_LOG, _MOST_LOG)
    n, _, k = logs.shape
    ranks = np.nan_to_num(said.ranked.scores)
    if ranks.shape[2] == 1:
        ranks = np.concatenate([-ranks / 2, ranks / 2], axis=2)
    constant = np.broadcast_to(np.eye(k), (n, k, k))
    return np.concatenate([constant, logs.swapaxes(1, 2), ranks.swapaxes(1, 2)], axis=2)
