"""Samplers: their properties, and the very splits of the released code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.splits import Split, draw, halve
from fewlabels import InputError

LABELS = np.random.default_rng(0).choice(3, p=[0.7, 0.25, 0.05], size=5000)


def _draw(sampler: str, run: int = 0, *, labels: np.ndarray = LABELS, seed: int = 0,
          n_labeled: int = 20, n_unlabeled: int = 300, n_classes: int = 3) -> Split:  # fmt: skip
    half, _ = halve(len(labels), run, seed)
    return draw(
        sampler, labels, half, n_labeled, n_unlabeled, n_classes, run=run, seed=seed, dataset="d"
    )


def test_halves_are_those_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    half, rest = halve(101, 7)
    expected = pandas.DataFrame(index=range(101)).sample(frac=0.5, random_state=7).index
    assert half.tolist() == expected.tolist()
    assert sorted([*half, *rest]) == list(range(101))


@pytest.mark.parametrize("sampler", ["released", "uniform"])
@pytest.mark.parametrize("seed", [0, 5])
def test_what_every_sampler_holds(sampler: str, seed: int) -> None:
    for run in range(8):
        half, rest = halve(len(LABELS), run, seed)
        split = _draw(sampler, run, seed=seed)
        assert len(set(split.rows)) == len(split.rows) == 320
        assert split.labeled.sum() == 20
        assert set(LABELS[split.rows[split.labeled]]) == {0, 1, 2}
        assert set(split.rows) <= set(half)
        assert not set(split.rows) & set(rest)
        again = _draw(sampler, run, seed=seed)
        assert all(map(np.array_equal, split, again))


def test_runs_and_seeds_differ() -> None:
    rows = [tuple(_draw("uniform", run, seed=s).rows) for run in (0, 1) for s in (0, 1)]
    assert len(set(rows)) == 4


def test_released_pool_ends_with_one_of_each() -> None:
    binary = np.minimum(LABELS, 1)
    for run in range(20):
        split = _draw("released", run, labels=binary, n_classes=2)
        assert binary[split.rows[-2:]].tolist() == [1, 0]


@pytest.mark.slow
def test_released_sampler_labels_more_of_a_rare_class() -> None:
    rare = (np.random.default_rng(1).random(5000) < 0.05).astype(int)
    shares = {
        sampler: np.mean(
            [
                rare[(s := _draw(sampler, r, labels=rare, n_classes=2)).rows[s.labeled]].mean()
                for r in range(200)
            ]
        )
        for sampler in ("released", "uniform")
    }
    # 18 labels at random and one of each class; the uniform one only refuses sets without any.
    assert shares["released"] == pytest.approx((18 * 0.05 + 1) / 20, abs=0.01)
    assert shares["uniform"] == pytest.approx(0.05 / (1 - 0.95**20), abs=0.01)


@pytest.mark.parametrize("sampler", ["released", "uniform"])
def test_a_class_rarer_than_needed(sampler: str) -> None:
    with pytest.raises(InputError, match="rarer than needed"):
        _draw(sampler, labels=np.zeros(1000, dtype=int), n_classes=2)


@pytest.mark.parametrize("sizes", [{"n_labeled": 2}, {"n_unlabeled": 5000}])
def test_sizes_that_a_half_cannot_serve(sizes: dict[str, int]) -> None:
    with pytest.raises(InputError, match=r"needs .* items, of 2,500, and a label of each of 3"):
        _draw("uniform", **sizes)


@pytest.mark.slow
@pytest.mark.parametrize(
    "n_labeled", [20, *(pytest.param(n, marks=pytest.mark.slow) for n in (50, 100))]
)
def test_the_very_splits_of_the_released_code(
    data_folder: Path, golden_folder: Path, n_labeled: int
) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(data_folder / "ssme_civilcomments" / "data.parquet", columns=["label"])
    labels = table["label"].to_numpy().astype(int)
    stored = np.load(golden_folder / f"ssme_civilcomments_splits_nl{n_labeled}.npz")
    # Each run parts half a million rows: of the quick size every fifth.
    for k, run in list(enumerate(stored["runs"].tolist()))[:: 5 if n_labeled == 20 else 1]:
        split = _draw(
            "released", run, labels=labels, n_labeled=n_labeled, n_unlabeled=1000, n_classes=2
        )
        assert split.rows[split.labeled].tolist() == stored["labeled_idx"][k].tolist()
        assert split.rows[~split.labeled].tolist() == stored["unlabeled_idx"][k].tolist()
    if n_labeled == 20:
        assert labels[stored["labeled_idx"]].mean() == pytest.approx(0.15, abs=0.02)
