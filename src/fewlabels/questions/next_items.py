"""next_items(): which items to label next, and the probability with which each was drawn."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal, NamedTuple

import numpy as np

from fewlabels.checks.arguments import seed_of, whole
from fewlabels.data.inputs import predictions_of
from fewlabels.errors import UsageError, unknown
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.counter_based import uniforms
from fewlabels.methods.base import LabelModel

Order = Literal["random", "stratified", "informative"]
ORDERS: tuple[Order, ...] = ("random", "stratified", "informative")

_ORDER_SALT = 0x4E58


class NextItems(NamedTuple):
    """Items in the order to label them.

    `items` are rows, `probability` that with which each was drawn among the items that were left
    at that moment, and `left` how many these were, itself included; each of shape (size,).
    """

    items: Ints
    probability: Floats
    left: Ints


def next_items(
    predictions: Any,
    *,
    metric: str = "accuracy",
    model: str | None = None,
    against: str | None = None,
    group: str | None = None,
    order: Order = "random",
    size: int = 1,
    method: str | LabelModel = "auto",
    random_state: int | None = 0,
    skip: Collection[int] = (),
) -> NextItems:
    """Draw the items to label next.

    Parameters
    ----------
    order
        "random": uniform without replacement.
    size
        How many; fewer where fewer are left.
    skip
        Rows that are not to be drawn, beside those that have a label.

    Raises
    ------
    UsageError
        If the order is unknown.
    """
    whole("size", size)
    if order not in ORDERS:
        raise UsageError(unknown("order", order, ORDERS))
    items = predictions_of(predictions)
    free = ~items.labeled
    free[list(skip)] = False
    rows = np.flatnonzero(free)
    # An order that belongs to the items: what is left is drawn as if nothing had been asked before.
    place = uniforms(items.keys[rows], np.arange(1), seed_of(random_state) ^ _ORDER_SALT)[:, 0]
    chosen = rows[np.argsort(place, kind="stable")[:size]]
    left = len(rows) - np.arange(len(chosen))
    return NextItems(chosen, 1.0 / left, left)
