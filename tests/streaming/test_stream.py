"""estimate_files: against fl.estimate in memory, and against itself over partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stream_cases import write

import fewlabels as fl
from fewlabels.evaluation import draws
from worlds import items_table

METRICS = ["accuracy", "ece", "auprc", "ece_quantile"]


@pytest.fixture(autouse=True)
def _checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWLABELS_CHECKPOINTS", str(tmp_path / "checkpoints"))


def numbers(estimates: fl.Estimates) -> dict[tuple[str, str, str | None], tuple[float, ...]]:
    return {(r.model, r.metric, r.group): (r.value, r.low, r.high) for r in estimates.rows}


def apart(a: fl.Estimates, b: fl.Estimates) -> float:
    first, second = numbers(a), numbers(b)
    assert set(first) == set(second)
    gaps = [np.abs(np.subtract(first[key], second[key])) for key in first]
    assert all((np.isnan(first[k]) == np.isnan(second[k])).all() for k in first)
    return float(np.nanmax(gaps))


@pytest.mark.few(1)
@pytest.mark.parametrize("method", ["auto", "labeled"])
def test_partitions_do_not_show(method: str, tmp_path: Path) -> None:
    table = items_table(600)
    one = fl.estimate_files(write(table, tmp_path / "a", 1), method, METRICS, by="place")
    five = fl.estimate_files(write(table, tmp_path / "b", 5, 3), method, METRICS, by="place")
    assert apart(one, five) < 1e-9
    for key, drawn in one.draws.items():
        np.testing.assert_allclose(drawn, five.draws[key], atol=1e-9)


def test_clusters_of_files(tmp_path: Path) -> None:
    table = items_table(600).append_column("case", pa.array(np.arange(600) % 60))
    files = write(table, tmp_path / "a", 3)
    told = "the first 600 rows are 60 items (column 'case')"
    assert any(told in said for said in fl.estimate_files(files, "ensemble").warnings)
    clustered = fl.estimate_files(files, "ensemble", cluster="case")
    assert not any(told in said for said in clustered.warnings)
    one = table.set_column(table.num_columns - 1, "case", pa.array([1] * 600))
    with pytest.raises(fl.InputError, match="'case', by which all 600 rows are one cluster"):
        fl.estimate_files(write(one, tmp_path / "b", 2), cluster="case")
    with pytest.raises(fl.InputError, match=r"no column 'cass' \(--cluster\)"):
        fl.estimate_files(files, cluster="cass")
    many = items_table(5000).append_column("case", pa.array(np.arange(5000) % 60))
    with pytest.raises(fl.UsageError, match="part the rows of a cluster; read the files with --en"):
        fl.estimate_files(write(many, tmp_path / "c", 2), cluster="case")


@pytest.mark.slow
def test_few_draws_do_not_show_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "ALL_DRAWS_ITEMS", 0)
    table = items_table(600)
    one = fl.estimate_files(write(table, tmp_path / "a", 1), metrics=METRICS, by="place")
    assert one.diagnostics["stream"]["draws_per_row"] == draws.BASIS_DRAWS
    four = fl.estimate_files(write(table, tmp_path / "b", 4, 9), metrics=METRICS, by="place")
    assert apart(one, four) < 1e-9


@pytest.mark.parametrize(
    ("k", "estimand"),
    [
        (2, "sample"),
        *(
            pytest.param(k, e, marks=pytest.mark.slow)
            for k, e in ((3, "sample"), (3, "population"), (2, "population"))
        ),
    ],
)
def test_as_in_memory(k: int, estimand: Any, tmp_path: Path) -> None:
    table = items_table(k=k)
    there = fl.estimate(fl.read_predictions(table), metrics=METRICS, by="place", estimand=estimand)
    here = fl.estimate_files(
        write(table, tmp_path / "a", 3, 5), metrics=METRICS, by="place", estimand=estimand
    )
    assert here.n_items == there.n_items
    assert here.n_labeled == there.n_labeled
    assert {g.group: g for g in here.groups} == {g.group: g for g in there.groups}
    for key, (value, low, high) in numbers(here).items():
        value_there, low_there, high_there = numbers(there)[key]
        assert abs(value - value_there) < within(key[1], key[2], estimand), key
        width = high_there - low_there
        assert abs(low - low_there) < 0.35 * width + 0.01, key
        assert abs(high - high_there) < 0.35 * width + 0.01, key


def within(metric: str, group: str | None, estimand: str) -> float:
    if estimand == "sample" and metric not in ("accuracy", "brier"):
        return 0.03 if metric.startswith("ece") else 0.005  # there, labels are drawn
    if metric == "ece_quantile" and group is not None:
        return 0.01  # there, quantiles are those of the group
    # In a bin, average precision is interpolated, which shows among some hundred rows.
    return 1e-3 if metric == "auprc" else 2e-4


@pytest.mark.slow
def test_a_control_variate_leaves_little_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(items_table(2_000), tmp_path / "a", 2)
    metrics = [*METRICS, "brier"]
    every = fl.estimate_files(folder, metrics=metrics)
    assert every.diagnostics["stream"]["basis_error"] == 0
    monkeypatch.setattr(draws, "ALL_DRAWS_ITEMS", 0)
    few = fl.estimate_files(folder, metrics=metrics)
    error = few.diagnostics["stream"]["basis_error"]
    assert 0 < error < 1e-3
    # Of means, a value averages the draws, and what is left out of each partly cancels.
    for model in few.models:
        for metric in ("accuracy", "brier"):
            gap = few.get(model, metric).value - every.get(model, metric).value
            assert abs(gap) < 4 * error


def test_votes_alone_are_as_in_memory(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    truth = rng.random(2000) < 0.4
    wrong = rng.random((2000, 4)) < [0.1, 0.2, 0.25, 0.3]
    said = (truth[:, None] ^ wrong).astype(int)
    said[rng.random(said.shape) < 0.1] = -1
    table = pa.table(
        {"label": pa.array(truth.astype(int), mask=np.arange(2000) >= 30)}
        | {f"y__v{j}": said[:, j] for j in range(4)}
    )
    there = fl.estimate(fl.read_predictions(table), "dawid-skene", "error_rate")
    here = fl.estimate_files(write(table, tmp_path / "a", 3, 1), "dawid-skene", "error_rate")
    for model in there.models:
        gap = here.get(model, "error_rate").value - there.get(model, "error_rate").value
        assert abs(gap) < 1e-9
    assert here.n_items == 2000
    assert "distinct rows" in here.diagnostics["stream"]["from"]


def test_rows_that_repeat_are_all_counted(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    table = items_table(30_000, models=1, known=40)
    # Half of all rows are one and the same; a sample of distinct rows would hold it once or never.
    same = rng.random(30_000) < 0.5
    p = np.where(same, 0.03125, table["p__m0__1"].to_numpy())
    label = table["label"].combine_chunks().filter(pa.array(np.ones(30_000, dtype=bool)))
    table = pa.table({"label": label, "p__m0__1": p})
    one = fl.estimate_files(write(table, tmp_path / "a", 1), "ensemble", ["accuracy", "auc"])
    six = fl.estimate_files(write(table, tmp_path / "b", 6, 8), "ensemble", ["accuracy", "auc"])
    there = fl.estimate(fl.read_predictions(table), "ensemble", ["accuracy", "auc"])
    assert apart(one, six) < 1e-9
    for metric in ("accuracy", "auc"):
        row, whole = one.get("m0", metric), there.get("m0", metric)
        assert abs(row.value - whole.value) < 1e-5
        assert row.high - row.low == pytest.approx(whole.high - whole.low, rel=0.3)


@pytest.mark.slow
def test_scores_weights_and_missing_predictions(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    table = items_table(1200)
    p = table["p__m0__1"].to_numpy().copy()
    absent = rng.random(1200) < 0.3
    columns = {
        "label": table["label"],
        "p__m0__1": pa.array(p, mask=absent),
        "p__m1__1": table["p__m1__1"],
        "s__m2": np.log(p) * 3 + rng.normal(0, 1, 1200),
        "weight": rng.integers(1, 4, 1200),
    }
    table = pa.table(columns)
    there = fl.estimate(fl.read_predictions(table), metrics=["accuracy", "auc", "brier"])
    here = fl.estimate_files(
        write(table, tmp_path / "a", 4, 2), metrics=["accuracy", "auc", "brier"]
    )
    assert [r.status for r in here.rows] == [r.status for r in there.rows]
    for key, (value, _, _) in numbers(here).items():
        expected = numbers(there)[key][0]
        assert np.isnan(value) == np.isnan(expected), key
        assert np.isnan(value) or abs(value - expected) < 5e-4, key


@pytest.mark.slow
def test_distributions_of_annotators(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    table = items_table(1200, known=0)
    p = table["p__m0__1"].to_numpy()
    counts = rng.binomial(4, np.clip(p + rng.normal(0, 0.1, 1200), 0, 1))
    counted = np.arange(1200) < 300
    table = table.drop_columns(["label"])
    table = table.append_column("h__0", pa.array(np.where(counted, 4 - counts, 0)))
    table = table.append_column("h__1", pa.array(np.where(counted, counts, 0)))
    asked = "tempered-ensemble", ["accuracy", "brier"]
    there = fl.estimate(fl.read_predictions(table), *asked)
    here = fl.estimate_files(write(table, tmp_path / "a", 3, 2), *asked)
    assert here.against == there.against == "distribution"
    assert here.n_annotated == there.n_annotated == 300
    for key, (value, _, _) in numbers(here).items():
        assert abs(value - numbers(there)[key][0]) < 1e-3, key


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"metrics": lambda y, p: 0.0}, "a function of all items"),
        (
            {"method": "labeled", "estimand": "sample"},
            "cannot estimate for these items only in a stream",
        ),
        ({"method": "labeled", "posterior": "out"}, "goes with methods that apply to every row"),
        ({"engine": "clouds"}, "engine"),
    ],
)
def test_refusals(arguments: dict[str, Any], said: str, tmp_path: Path) -> None:
    folder = write(items_table(200), tmp_path / "a", 1)
    if "posterior" in arguments:
        arguments = arguments | {"posterior": tmp_path / "out"}
    with pytest.raises(fl.UsageError, match=said):
        fl.estimate_files(folder, **arguments)


def test_posterior_of_every_row(tmp_path: Path) -> None:
    table = items_table(1200)
    folder = write(table, tmp_path / "a", 3)
    fl.estimate_files(folder, metrics="accuracy", posterior=tmp_path / "out")
    there = fl.estimate(fl.read_predictions(table), metrics="accuracy")
    written = pq.read_table(tmp_path / "out")
    assert written.num_rows == 1200
    assert written["file"].unique().to_pylist() == ["00.parquet", "01.parquet", "02.parquet"]
    p = written["p__learned-ensemble__1"].to_numpy()
    np.testing.assert_allclose(p, there.posterior.marginals()[:, 1], atol=1e-9)
    assert written["known"].to_numpy().sum() == 60
