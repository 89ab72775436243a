"""An interval that holds whenever one looks, and stops: a confidence sequence for a mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaln, xlog1py, xlogy

_PRIOR = 0.5


def confidence_sequence(
    correct: Sequence[float],
    probability: Sequence[float],
    left: Sequence[int],
    level: float = 0.95,
    pool: Any = None,
) -> tuple[float, float]:
    """Low and high after so many labels, valid at every such moment at once.

    Parameters
    ----------
    correct
        Whether each labeled item is predicted rightly (or a loss from 0 to 1), in order.
    probability, left
        With which probability each was drawn among how many.

    Notes
    -----
    {p: B(a + S, b + F) / (B(a, b) p^S (1 - p)^F) < 1 / alpha} (Waudby-Smith, Ramdas 2020).
    """
    successes = float(np.sum(correct))
    failures = len(correct) - successes
    if not len(correct):
        return 0.0, 1.0
    mixture = betaln(_PRIOR + successes, _PRIOR + failures) - betaln(_PRIOR, _PRIOR)

    def over(p: float) -> float:
        wealth = mixture - xlogy(successes, p) - xlog1py(failures, -p)
        return float(wealth + np.log(1 - level))

    middle, edge = successes / len(correct), 1e-12
    low = 0.0 if over(edge) <= 0 else brentq(over, edge, max(middle, 2 * edge))
    high = 1.0 if over(1 - edge) <= 0 else brentq(over, min(middle, 1 - 2 * edge), 1 - edge)
    return float(low), float(high)
