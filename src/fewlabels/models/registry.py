"""The one list of methods: a new one is a file beside this and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fewlabels.errors import UsageError
from fewlabels.models import (
    active_testing,
    agreement_ensemble,
    agreement_rates,
    autoeval,
    bayesian_calibration,
    bee,
    cbee,
    crowd_svm,
    dawid_skene,
    ensemble,
    hcbee,
    labeled,
    learned_ensemble,
    majority_vote,
    monotone_curves,
    pseudo_label,
    spe,
    ssme_flow,
    ssme_kde,
    ssme_kde_marginal,
    tempered_ensemble,
    vote_selection,
)
from fewlabels.models.base import LabelModel
from fewlabels.models.method import Method
from fewlabels.predictions import Predictions
from fewlabels.wording import unknown

_ALL = (
    learned_ensemble.METHOD,
    tempered_ensemble.METHOD,
    agreement_ensemble.METHOD,
    monotone_curves.METHOD,
    spe.METHOD,
    ssme_kde.METHOD,
    ssme_kde_marginal.METHOD,
    ssme_flow.METHOD,
    vote_selection.METHOD,
    bee.CONFUSION_METHOD,
    bee.METHOD,
    cbee.CONFUSION_METHOD,
    cbee.METHOD,
    hcbee.CONFUSION_METHOD,
    hcbee.METHOD,
    hcbee.CLUSTERED_METHOD,
    dawid_skene.METHOD,
    agreement_rates.METHOD,
    crowd_svm.METHOD,
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
    """What the data allow: pool, curves, a model of the votes, or the labels alone."""
    with_probabilities = int(predictions.has_probabilities.any(axis=0).sum())
    if with_probabilities > 1:
        return "learned-ensemble"
    votes, ranks = predictions.has_hard.any(axis=0), predictions.provides("ranking").any(axis=0)
    # Three voters determine error rates; the score of one alone says less than all their votes.
    if votes.sum() > 2 and ranks.sum() < 2:
        return "vote-selection"
    if with_probabilities and predictions.n_classes > 2:
        return "learned-ensemble"
    if ranks.any():
        return "monotone-curves"
    # Fewer than three determine nothing without labels, and add little to these.
    known = predictions.n_labeled or predictions.n_annotated
    return "labeled" if known else "vote-selection"
