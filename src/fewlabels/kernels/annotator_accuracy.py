"""How often annotators are right, from how often two of one item agree."""

from __future__ import annotations

import numpy as np

from fewlabels.kernels.arrays import Floats


def agreement(histogram: Floats, times: Floats | None = None) -> tuple[float, float, int]:
    """How often two annotators of one item agree, summed over items with two; how many; classes.

    The first two add up over parts of the items. `times` (n,) is how many items a row stands for.
    """
    size = histogram.sum(axis=1)
    many = size >= 2
    h, m = histogram[many], size[many]
    share = (h * (h - 1)).sum(axis=1) / (m * (m - 1))
    each = np.ones(len(m)) if times is None else times[many]
    return float((share * each).sum()), float(each.sum()), histogram.shape[1]


def annotator_accuracy(agree: float, items: float, n_classes: int) -> float:
    """How often an annotator is right, from `agreement`; .9 where no item has two labels."""
    if not items:
        return 0.9
    # r^2 + (1-r)^2/(k-1) = agree; the root above 1/k.
    spread = max((agree / items - 1 / n_classes) * (n_classes - 1) / n_classes, 0.0)
    return float(np.clip(1 / n_classes + np.sqrt(spread), 1 / n_classes + 1e-3, 1 - 1e-3))
