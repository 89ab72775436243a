"""The one list of methods: a new one is a file beside this and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fewlabels.errors import UsageError
from fewlabels.models import (
    active_testing,
    autoeval,
    bayesian_calibration,
    dawid_skene,
    ensemble,
    labeled,
    majority_vote,
    monotone_curves,
    pseudo_label,
    spe,
    ssme_flow,
    ssme_kde,
    ssme_kde_marginal,
    tempered_ensemble,
)
from fewlabels.models.base import LabelModel
from fewlabels.models.method import Method
from fewlabels.predictions import Predictions
from fewlabels.wording import unknown

_ALL = (
    tempered_ensemble.METHOD,
    monotone_curves.METHOD,
    spe.METHOD,
    ssme_kde.METHOD,
    ssme_kde_marginal.METHOD,
    ssme_flow.METHOD,
    dawid_skene.METHOD,
    majority_vote.METHOD,
    pseudo_label.METHOD,
    bayesian_calibration.METHOD,
    ensemble.METHOD,
    autoeval.METHOD,
    active_testing.METHOD,
    labeled.METHOD,
)

METHODS: Mapping[str, Method] = MappingProxyType({m.name: m for m in _ALL})
"""Every method by its name."""


def resolve(method: str | LabelModel, predictions: Predictions) -> tuple[str, LabelModel]:
    """Name and label model of what was asked for; "auto" looks at the predictions.

    Raises
    ------
    UsageError
        If the name is unknown.
    """
    if isinstance(method, LabelModel):
        known = [m.name for m in _ALL if m.make is type(method)]
        return (known[0] if known else type(method).__name__), method
    if method == "auto":
        method = _automatic(predictions)
    if not isinstance(method, str) or method not in METHODS:
        raise UsageError(unknown("method", method, ["auto", *METHODS]))
    return method, METHODS[method].make()


def _automatic(predictions: Predictions) -> str:
    """One classifier's score, or scores alone: curves; several with probabilities: their pool."""
    with_probabilities = int(predictions.has_probabilities.any(axis=0).sum())
    if with_probabilities > 1 or (with_probabilities and predictions.n_classes > 2):
        return "tempered-ensemble"
    return "monotone-curves" if predictions.provides("ranking").any() else "labeled"
