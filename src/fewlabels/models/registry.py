"""The one list of methods: a new one is a file beside this and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any

from fewlabels.errors import UsageError
from fewlabels.models import (
    active_testing,
    agreement_rates,
    autoeval,
    bayesian_calibration,
    bee,
    crowd_svm,
    dawid_skene,
    ensemble,
    ensembles,
    labeled,
    majority_vote,
    monotone_curves,
    pseudo_label,
    spe,
    ssme_flow,
    ssme_kde,
    vote_selection,
)
from fewlabels.models.base import LabelModel
from fewlabels.models.method import Method
from fewlabels.predictions import Predictions
from fewlabels.wording import listed, unknown

_ALL = (
    ensembles.LEARNED_METHOD,
    ensembles.TEMPERED_METHOD,
    ensembles.AGREEMENT_METHOD,
    monotone_curves.METHOD,
    spe.METHOD,
    ssme_kde.METHOD,
    ssme_kde.MARGINAL_METHOD,
    ssme_flow.METHOD,
    vote_selection.METHOD,
    *bee.METHODS,
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


def resolve(
    method: str | LabelModel, predictions: Predictions, reference: Predictions | None = None
) -> tuple[str, LabelModel]:
    """Name and label model of what was asked for; "auto" looks at the predictions.

    Parameters
    ----------
    reference
        Labeled items from elsewhere, which the label model then holds; with them "auto" is
        `learned-ensemble`, whatever the predictions.

    Raises
    ------
    UsageError
        If the name is unknown, or the method learns nothing from a reference.
    """
    if isinstance(method, LabelModel):
        known = [m.name for m in _ALL if m.make is type(method)]
        return (known[0] if known else type(method).__name__), _with_reference(method, reference)
    check_reference(method, reference)
    if method == "auto":
        method = _automatic(predictions) if reference is None else ensembles.LEARNED_METHOD.name
    if not isinstance(method, str) or method not in METHODS:
        raise UsageError(unknown("method", method, ["auto", *METHODS]))
    return method, _with_reference(METHODS[method].make(), reference)


def check_reference(method: Any, reference: object) -> None:
    """Refuse a method, by its name, that learns nothing from the reference there is.

    Raises
    ------
    UsageError
        One line that says which methods do.
    """
    known = METHODS.get(method) if isinstance(method, str) else None
    if reference is not None and known is not None:
        _check_takes(known.make(), known.name)


def _check_takes(model: LabelModel, name: str) -> None:
    if not _takes_reference(model):
        able = [m.name for m in _ALL if _takes_reference(m.make())]
        raise UsageError(
            f"method {name!r} learns nothing from reference data; leave `reference` out, or use "
            f"{listed(['auto', *able])}"
        )


def _takes_reference(model: LabelModel) -> bool:
    """Whether a label model has the field that holds a reference."""
    return is_dataclass(model) and any(field.name == "reference" for field in fields(model))


def _with_reference(model: LabelModel, reference: Predictions | None) -> LabelModel:
    """The label model with the reference, if there is one."""
    if reference is None:
        return model
    _check_takes(model, type(model).__name__)
    return replace(model, reference=reference)  # type: ignore[type-var]


def _automatic(predictions: Predictions) -> str:
    """What the data allow: one mixture for all, curves for one classifier, a model of votes."""
    votes, ranks = predictions.has_hard.any(axis=0), predictions.provides("ranking").any(axis=0)
    informants = int((votes | ranks).sum())
    known = predictions.n_labeled or predictions.n_annotated
    several = predictions.multiplicity is not None
    if ranks.any():
        alone = informants == 1 and predictions.n_classes == 2
        return "monotone-curves" if alone else "learned-ensemble"
    # Without a label only votes that agree tell how often voters err.
    return (
        "learned-ensemble"
        if known and informants > 1 and not several
        else ("labeled" if known and informants < 3 else "vote-selection")
    )
