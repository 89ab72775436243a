"""What protocols vary: sharpness, labels, subsets and trained sets of classifiers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fewlabels as fl
from bench import Results
from bench.world import likeness, quality, sharpen
from fewlabels.errors import InputError

Run = Callable[..., Results]
Write = Callable[..., Path]


def _column(results: Results, column: str, **keys: str | int) -> np.ndarray:
    found = np.ones(len(results.rows["run"]), dtype=bool)
    for name, value in keys.items():
        found &= results.rows[name] == value
    return results.rows[column].to_numpy()[found]


def _traits(results: Results, name: str) -> dict[tuple[str, int], float]:
    columns = (results.traits[k].tolist() for k in ("level", "run", "name", "value"))
    return {(lv, run): v for lv, run, n, v in zip(*columns, strict=True) if n == name}


def test_sharpening() -> None:
    p = np.array([[[0.8, 0.2], [1.0, 0.0], [np.nan, np.nan]]])
    q = sharpen(p, 2.0)
    assert q[0, 0] == pytest.approx([0.64 / 0.68, 0.04 / 0.68])
    assert q[0, 1].tolist() == [1.0, 0.0]
    assert np.isnan(q[0, 2]).all()
    assert sharpen(np.array([1e-300, 1.0]), 4.0).tolist() == [0.0, 1.0]


def test_ensembling_by_sharpness(short: Run) -> None:
    found = short("ssme-ensembling", levels=[0.5, 1, 2], metrics=["accuracy", "ece"])
    assert set(_column(found, "level", factor="sharpness")) == {"0.5", "1", "2"}
    sets = [_column(found, "truth", level=lv, metric="accuracy") for lv in ("0.5", "1", "2")]
    # Order stays, so accuracy does; calibration does not.
    assert np.array_equal(sets[0], sets[1])
    assert np.array_equal(sets[1], sets[2])
    eces = [_column(found, "truth", level=lv, metric="ece") for lv in ("0.5", "2")]
    assert not np.allclose(*eces)
    assert len(_column(found, "truth", factor="curve")) > 0
    assert set(_traits(found, "mean_ece")) == {(lv, -1) for lv in ("", "0.5", "1", "2")}


def test_drawn_against_expected(short: Run) -> None:
    found = short("ssme-drawn-vs-expected", metrics=["accuracy", "ece_quantile"])
    drawn, expected = (
        _column(found, "estimate", level=lv, method="ensemble", metric="ece_quantile")
        for lv in ("drawn", "expected")
    )
    # Drawn labels inflate a sum of absolute gaps.
    assert (drawn > expected).all()
    # The splits, and all that does not rest on drawing, are the same.
    for keys in ({"method": "labeled"}, {"method": "ensemble", "metric": "accuracy"}):
        one, other = (_column(found, "estimate", level=lv, **keys) for lv in ("drawn", "expected"))
        assert one == pytest.approx(other, abs=1e-12)


def test_calibration_item_by_item(short: Run, write: Write) -> None:
    file = write(models=("good", "poor"))
    found = short("ssme-drawn-vs-expected", data=file, metrics=["accuracy", "ece"])
    item, expected = (
        _column(found, "estimate", level=lv, method="ensemble", metric="ece")
        for lv in ("by-item", "expected")
    )
    # Nothing cancels within a bin.
    assert (item > expected).all()
    # The mean of two classifiers is off by half their distance, which no label changes.
    rows = {m: pq.read_table(file)[f"p__{m}__1"].to_numpy() for m in ("good", "poor")}
    whole = np.abs(rows["good"] - rows["poor"]).mean() / 2
    assert item.mean() == pytest.approx(whole, rel=0.25)
    others = {"level": "by-item", "metric": "accuracy"}
    assert np.isnan(_column(found, "estimate", **others)).all()
    assert set(_column(found, "status", **others)) == {"not-applicable"}


def test_subsets_and_how_alike_they_are(short: Run, write: Write, tmp_path: Path) -> None:
    models = ("a", "b", "c", "d")
    found = short(
        "ssme-correlation", data=write(models=models), metrics=["accuracy"], subsets=3, runs=1
    )
    levels = set(found.rows["level"])
    assert len(levels) == 3
    for level in levels:
        assert set(_column(found, "model", level=level)) == set(level.split("+"))
    assert np.isfinite(_column(found, "truth")).all()
    errors = _traits(found, "error_correlation")
    pairs = {f"{a}+{b}" for i, a in enumerate(models) for b in models[i + 1 :]}
    assert {lv for lv, _ in errors} == {"", *pairs, *levels}
    level = sorted(levels)[0]
    a, b, c = level.split("+")
    mean = np.mean([errors[f"{x}+{y}", -1] for x, y in ((a, b), (a, c), (b, c))])
    assert errors[level, -1] == pytest.approx(mean)
    every = short(
        "ssme-correlation", data=write(), out=tmp_path / "all", metrics=["accuracy"], runs=1
    )
    assert set(every.rows["level"]) == {"good+fair+poor"}


def test_too_few_classifiers_for_a_subset(short: Run, write: Write) -> None:
    with pytest.raises(InputError, match=r"has 2 classifiers, and subsets need 3: .*`subset_size`"):
        short("ssme-correlation", data=write(models=("a", "b")))


def test_likeness_of_made_up_pairs() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=4000)
    logit = 1.5 * (2 * labels - 1) + rng.standard_normal(4000)
    noise = 1.5 * (2 * labels - 1) + rng.standard_normal(4000)
    p = 1 / (1 + np.exp(-np.stack([logit, logit, noise], axis=1)))
    predictions = fl.Predictions(p, labels, models=["a", "copy", "other"])
    found = likeness(predictions)
    assert found["a", "copy"] == pytest.approx(dict.fromkeys(found["a", "copy"], 1.0))
    apart = found["a", "other"]
    assert apart["score_correlation"] == pytest.approx(1.5**2 / (1.5**2 + 1), abs=0.03)
    assert apart["score_correlation_within_class"] == pytest.approx(0, abs=0.05)
    assert apart["error_correlation"] == pytest.approx(0, abs=0.05)
    accuracy = quality(predictions)["mean_accuracy"]
    assert apart["agreement"] == pytest.approx(accuracy**2 + (1 - accuracy) ** 2, abs=0.02)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """600 rows with a number to slice by, another, a text, and a label."""
    rng = np.random.default_rng(0)
    age, x = rng.integers(18, 90, size=600), rng.standard_normal(600)
    label = rng.random(600) < 1 / (1 + np.exp(-2 * x - 0.05 * (age - 50)))
    columns = {
        "age": age,
        "x": pa.array(x, mask=np.arange(600) % 50 == 0),
        "town": rng.choice(["a", "b", "c", None], 600),
        "split": ["train"] * 600,
        "label": np.where(label, "yes", "no"),
    }
    pq.write_table(pa.table(columns), tmp_path / "table.parquet")
    return tmp_path / "table.parquet"


def test_trained_sets_by_sharpness(short: Run, table: Path) -> None:
    found = short(
        "ssme-ensembling-trained", data=table, train_rows=20, truth_rows=200, levels=[1, 2],
        metrics=["average_precision", "ece_quantile"],
    )  # fmt: skip
    kept, moved = (
        [_column(found, "truth", level=lv, metric=m) for lv in ("1", "2")]
        for m in ("average_precision", "ece_quantile")
    )
    assert kept[0] == pytest.approx(kept[1], abs=1e-12)
    assert not np.allclose(*moved)
    assert set(_column(found, "model")) == {"classifier_1", "classifier_2", "classifier_3"}


def test_trained_sets_may_grow(short: Run, table: Path, tmp_path: Path) -> None:
    options = {"data": table, "train_rows": 20, "truth_rows": 200, "metrics": ["accuracy"]}
    short("ssme-semisynthetic", levels=[2], **options)
    grown = short("ssme-semisynthetic", levels=[3], resume=True, **options)
    whole = short("ssme-semisynthetic", levels=[2, 3], out=tmp_path / "whole", **options)
    assert grown.datasets == whole.datasets
    assert np.array_equal(_column(grown, "estimate"), _column(whole, "estimate"))


def test_trained_sets(short: Run, table: Path, tmp_path: Path) -> None:
    options = {"data": table, "train_rows": 20, "truth_rows": 200, "levels": [2, 3]}
    found = short("ssme-semisynthetic", metrics=["accuracy"], **options)
    assert found.datasets[0].models == ("classifier_1", "classifier_2", "classifier_3")
    assert "not used as features: split" in found.datasets[0].notes
    assert set(_column(found, "model", level="2")) == {"classifier_1", "classifier_2"}
    # The sets of three hold the sets of two, and a run is judged on the same rows.
    two, three = (
        _column(found, "truth", level=lv, model="classifier_2", method="labeled") for lv in "23"
    )
    assert np.array_equal(two, three)
    # Classifiers are new in every run.
    assert two[0] != two[1]
    accuracy = _traits(found, "mean_accuracy")
    assert set(accuracy) == {(lv, run) for lv in "23" for run in (0, 1)}
    own = _column(found, "truth", level="2", run=0, method="labeled")
    assert accuracy["2", 0] == pytest.approx(own.mean())
    assert len(_column(found, "truth", factor="curve")) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slice_by": "height"}, r"has no column 'height' \(`slice_by`\)"),
        ({"slice_by": "town"}, r"column 'town' \(`slice_by`\) is not numeric"),
        ({"truth_rows": 10_000}, "has 600 labeled rows; 10,000 for the truth"),
        ({"columns": {"label": "town"}}, r"serves two classes"),
        ({"columns": {"label": "truth"}}, r"has no column 'truth' \(`label`\)"),
    ],
)
def test_tables_that_cannot_be_used(
    short: Run, table: Path, options: dict[str, object], message: str
) -> None:
    fitting = {"data": table, "train_rows": 20, "truth_rows": 200}
    with pytest.raises(InputError, match=message):
        short("ssme-semisynthetic", **(fitting | options))


def test_predictions_are_no_table_to_train_on(short: Run, write: Write) -> None:
    with pytest.raises(InputError, match="holds predictions; ssme-semisynthetic trains its own"):
        short("ssme-semisynthetic", data=write())
