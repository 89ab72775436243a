"""Agreement of people among themselves."""

from __future__ import annotations

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.annotations import agreement
from fewlabels.errors import InputError, UsageError

# Krippendorff (2019), data of chapter 12: nominal .743, ordinal .815, interval .849.
UNITS = [
    (1, 1, 1), (2, 2, 3, 2), (3, 3, 3, 3), (3, 3, 3, 3), (2, 2, 2, 2), (1, 2, 3, 4), (4, 4, 4, 4),
    (1, 1, 2, 1), (2, 2, 2, 2), (5, 5, 5), (1, 1), (3,),
]  # fmt: skip
COUNTS = np.array([[unit.count(c) for c in range(1, 6)] for unit in UNITS])


@pytest.mark.parametrize(
    ("scale", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_krippendorffs_own_example(scale, value):
    found = agreement(COUNTS, scale=scale)
    assert round(found.alpha.value, 3) == value
    assert found.alpha.low < found.alpha.value < found.alpha.high
    assert (found.n_items, found.n_labels) == (11, 40)


def test_alpha_is_crowd_kits():
    pytest.importorskip("crowdkit")
    import pandas as pd
    from crowdkit.metrics.data import alpha_krippendorff

    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=60)
    said = np.where(rng.random((60, 4)) < 0.8, truth[:, None], rng.integers(3, size=(60, 4)))
    rows = [(i, w, said[i, w]) for i in range(60) for w in range(4) if rng.random() < 0.8]
    counts = np.zeros((60, 3), int)
    for task, _, label in rows:
        counts[task, label] += 1
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    theirs = alpha_krippendorff(frame[frame.groupby("task")["task"].transform("size") > 1])
    assert agreement(counts).alpha.value == pytest.approx(theirs)


def test_fleiss_own_example():
    """Fleiss (1971) as it is often printed: 10 subjects, 14 raters, kappa .210."""
    counts = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    found = agreement(counts, confidence_level=None)
    assert round(found.fleiss_kappa.value, 3) == 0.210
    assert round(found.pairs.value, 3) == 0.378
    assert np.isnan(found.pairs.low)


def test_intervals_cover():
    """Of alpha on the population: the truth is that of very many items."""

    def counts(n, rng):
        truth = rng.random(n) < 0.4
        said = np.where(rng.random((n, 3)) < 0.85, truth[:, None], ~truth[:, None])
        ones = said.sum(axis=1)
        return np.stack([3 - ones, ones], axis=1)

    truth = agreement(counts(200_000, np.random.default_rng(0)), confidence_level=None).alpha.value
    held = 0
    for seed in range(100):
        found = agreement(counts(60, np.random.default_rng(seed + 1)), confidence_level=0.9).alpha
        held += found.low <= truth <= found.high
    assert held >= 90 - 3 * np.sqrt(100 * 0.9 * 0.1)


def test_what_is_refused():
    with pytest.raises(InputError, match="no item has two labels"):
        agreement([[1, 0], [0, 1]])
    with pytest.raises(UsageError, match="unknown scale 'ratio'"):
        agreement(COUNTS, scale="ratio")
    with pytest.raises(InputError, match="there are no counts of annotators"):
        agreement(fl.Predictions(votes=[[0], [1]], labels=[0, 1]))
    same = agreement([[2, 0], [3, 0]])
    assert np.isnan(same.alpha.value)
    assert same.pairs.value == 1
