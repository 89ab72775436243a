"""Labels of several annotators per item: how much they are worth, and drawing some of them."""

from __future__ import annotations

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints, UInts
from fewlabels.kernels.dirichlet_multinomial import derivatives, terms
from fewlabels.kernels.keyed import uniforms

_MOST_ITEMS = 5_000
"""Of so many items one number is as good as known."""

_PRIOR_SD = 1.5
"""Standard deviation of log alpha0 beforehand: .05 to 20, unless the labels know better."""

_DRAWS = 64

_MOST_LABELS = 100.0
"""No item counts for more, however much its annotators know."""

_SIZE_SALT, _LABEL_SALT = 0xA11E, 0xA11F


def effective_labels(sizes: Floats, concentration: float) -> Floats:
    """How many independent labels the labels of one item are worth, (n,), 1 + alpha0 at most.

    Labels of one item agree beyond what its prediction explains: under a Dirichlet of this
    concentration around the prediction their correlation is 1 / (1 + alpha0), and the variance of
    their mean is that of n / (1 + (n - 1) correlation) independent ones (Kish's design effect).
    """
    correlation = 1 / (1 + concentration)
    return np.minimum(sizes / (1 + (np.maximum(sizes, 1) - 1) * correlation), _MOST_LABELS)


def round_at_random(sizes: Floats, keys: UInts, salt: int) -> Ints:
    """Whole numbers (n,) whose expectations are `sizes`, each drawn by the item's own key."""
    whole = np.floor(sizes)
    up = uniforms(keys, np.zeros(1), salt ^ _SIZE_SALT)[:, 0] < sizes - whole
    return (whole + up).astype(np.int64)


def draw_labels_of_annotators(
    histogram: Floats, sizes: Ints, keys: UInts, salt: int
) -> tuple[Ints, Ints]:
    """Some labels of every item, drawn without replacement: items (T,), ascending, and classes.

    Parameters
    ----------
    histogram
        Whole counts per class, (n, K).
    sizes
        How many labels to draw of each item, (n,), at most as many as it has.
    keys
        Identity of each item, (n,), which its draw hangs on.
    salt
        Separates draws.
    """
    left, rows = histogram.copy(), np.flatnonzero(sizes)
    items, labels = [rows[:0]], [rows[:0]]
    for slot in range(int(sizes.max(initial=0))):
        rows = rows[sizes[rows] > slot]
        cumulative = np.cumsum(left[rows], axis=1)
        u = uniforms(keys[rows], np.array([slot]), salt ^ _LABEL_SALT)
        label = (u * cumulative[:, -1:] >= cumulative).sum(axis=1)
        left[rows, label] -= 1
        items.append(rows)
        labels.append(label)
    item = np.concatenate(items)
    order = np.argsort(item, kind="stable")
    return item[order], np.concatenate(labels)[order]


def likeliest_concentration(probabilities: Floats, histogram: Floats, keys: UInts) -> float:
    """Concentration alpha0 under which histograms (n, K) around probabilities (n, K) are likeliest.

    One for all items, by the likelihood of Mimori et al. (2021), eq. (50), and a normal prior on
    its logarithm instead of their penalty, which does not fade as labels come in.
    """
    grid, log_posterior = _log_posterior(probabilities, histogram, keys)
    return float(np.exp(grid[log_posterior.argmax()]))


def concentration_draws(probabilities: Floats, histogram: Floats, keys: UInts) -> Floats:
    """Draws of the concentration alpha0 from its posterior, (64,): its quantiles, in a mixed order.

    Items of fewer than two labels say nothing of it. Without any other (n = 0) it is 1: half-way
    between an item's one label and its prediction, the squared error is a quarter of a label's
    variance whatever alpha0 truly is, and an alpha0 of 1 claims just that.
    """
    if not len(histogram):
        return np.ones(1)
    grid, log_posterior = _log_posterior(probabilities, histogram, keys)
    weight = np.exp(log_posterior - log_posterior.max())
    cumulative = np.cumsum(weight) / weight.sum()
    at = (np.arange(_DRAWS) + 0.5) / _DRAWS
    draws: Floats = np.exp(np.interp(at, cumulative, grid))
    return np.random.default_rng(0).permutation(draws)


def _log_posterior(probabilities: Floats, histogram: Floats, keys: UInts) -> tuple[Floats, Floats]:
    """Grid of log alpha0 (G,), and the log posterior there up to a constant (G,)."""
    if len(histogram) > _MOST_ITEMS:
        chosen = np.sort(np.argsort(keys, kind="stable")[:_MOST_ITEMS])
        probabilities, histogram = probabilities[chosen], histogram[chosen]
    grid = np.linspace(-7.0, 12.0, 381)
    prior = -((grid / _PRIOR_SD) ** 2) / 2
    found_once = terms(histogram, probabilities)
    likelihood = [derivatives(found_once, np.full(len(histogram), x)).value.sum() for x in grid]
    return grid, prior + np.array(likelihood)
