"""Labels of several annotators per item: how much they are worth, and drawing some of them."""

from __future__ import annotations

import numpy as np
import scipy.optimize

from fewlabels.kernels.arrays import Floats, Ints, UInts
from fewlabels.kernels.dirichlet_multinomial import derivatives, terms
from fewlabels.kernels.keyed import uniforms

_MOST_ITEMS = 20_000
"""Of so many items one number is as good as known."""

_PRIOR_SD = 3.0
"""Standard deviation of log alpha0 beforehand: hardly any belief, but never 0 or infinite."""

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


def likeliest_concentration(probabilities: Floats, histogram: Floats) -> float:
    """Concentration alpha0 under which histograms (n, K) around probabilities (n, K) are likeliest.

    One for all items, by the likelihood of Mimori et al. (2021), eq. (50), and a normal prior on
    its logarithm instead of their penalty, which does not fade as labels come in.
    """
    if len(histogram) > _MOST_ITEMS:
        chosen = np.linspace(0, len(histogram) - 1, _MOST_ITEMS).astype(np.int64)
        probabilities, histogram = probabilities[chosen], histogram[chosen]
    found_once = terms(histogram, probabilities)

    def loss(log_concentration: float) -> float:
        fit = derivatives(found_once, np.full(len(histogram), log_concentration)).value
        return float(-fit.sum() + (log_concentration / _PRIOR_SD) ** 2 / 2)

    found = scipy.optimize.minimize_scalar(loss, bounds=(-7.0, 12.0), method="bounded")
    return float(np.exp(found.x))
