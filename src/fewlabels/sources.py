"""What public functions take where they take predictions: these, or a path or frame to read."""

from __future__ import annotations

from typing import Any

from fewlabels.errors import UsageError
from fewlabels.predictions import Predictions
from fewlabels.wording import quoted


def predictions_of(
    source: Any, columns: Any = None, positive: Any = None, *, against_rest: bool = True
) -> Predictions:
    """The predictions themselves, or those that a path or frame holds, the positive class last.

    What reads is loaded only where there is something to read.

    Parameters
    ----------
    source, columns
        As in `fewlabels.read_predictions`.
    positive
        The positive class; None: what `Predictions.positive` says.
    against_rest
        Whether one of more than two classes is judged against the rest, and a note says so.

    Raises
    ------
    InputError, UsageError
        As in `fewlabels.read_predictions`, or if the positive class is none.
    """
    if not isinstance(source, Predictions):
        from fewlabels.frames import read_predictions

        source = read_predictions(source, columns=columns, positive=positive)
    elif columns is not None:
        raise UsageError("`columns` says what the columns of a file or frame are; leave it out")
    return against_the_rest(source, positive) if against_rest else source.with_positive()


def against_the_rest(predictions: Predictions, positive: Any) -> Predictions:
    """The same with this class as the positive one, and a note where it stands against several.

    Raises
    ------
    UsageError
        If it is no class.
    """
    turned = predictions.with_positive(positive)
    if positive is None or predictions.n_classes == 2:
        return turned
    return turned.noting((*predictions.notes, one_against(positive, predictions.n_classes)))


def one_against(positive: Any, n_classes: int) -> str:
    """Say that one class is judged against all others."""
    return (
        f"class {quoted(str(positive))} is judged against the other {n_classes - 1} taken together"
    )
