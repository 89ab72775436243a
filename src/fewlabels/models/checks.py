"""Hyperparameters checked at the door: choices and numbers."""

from __future__ import annotations

import numpy as np

from fewlabels.errors import UsageError


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse what is not one of the choices.

    Raises
    ------
    UsageError
        Naming all of them.
    """
    if value not in choices:
        raise UsageError(f"`{name}` must be one of {', '.join(choices)}; got {value!r}")


def check_not_negative(name: str, value: object) -> None:
    """Refuse what is not a number of at least 0.

    Raises
    ------
    UsageError
        If it is not.
    """
    if not isinstance(value, (int, float, np.number)) or not 0 <= value < np.inf:
        raise UsageError(f"`{name}` must not be negative; got {value!r}")


def check_positive(name: str, value: object) -> None:
    """Refuse what is not a number above 0.

    Raises
    ------
    UsageError
        If it is not.
    """
    if not isinstance(value, (int, float, np.number)) or not 0 < value < np.inf:
        raise UsageError(f"`{name}` must be a number above 0; got {value!r}")
