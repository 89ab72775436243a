"""What public functions take where they take predictions: these, or a path or frame to read."""

from __future__ import annotations

from typing import Any

from fewlabels.predictions import Predictions
from fewlabels.wording import quoted


def predictions_of(source: Any, columns: Any = None, positive: Any = None) -> Predictions:
    """The predictions themselves, or those that a path or frame holds.

    What reads is loaded only where there is something to read.

    Parameters
    ----------
    source, columns
        As in `fewlabels.frames.as_predictions`.
    positive
        The positive class; of more than two it is judged against the rest, and a note says so.

    Raises
    ------
    InputError, UsageError
        As in `fewlabels.frames.as_predictions`.
    """
    if isinstance(source, Predictions) and columns is None:
        found = source
    else:
        from fewlabels.frames import as_predictions

        found = as_predictions(source, columns)
    return found if positive is None else against_the_rest(found, positive)


def against_the_rest(predictions: Predictions, positive: Any) -> Predictions:
    """The same with this class as the positive one, and a note where it stands against several.

    Raises
    ------
    UsageError
        If it is no class.
    """
    turned = predictions.with_positive(positive)
    if predictions.n_classes == 2:
        return turned
    return turned.noting((*predictions.notes, one_against(positive, predictions.n_classes)))


def one_against(positive: Any, n_classes: int) -> str:
    """Say that one class is judged against all others."""
    return (
        f"class {quoted(str(positive))} is judged against the other {n_classes - 1} taken together"
    )
