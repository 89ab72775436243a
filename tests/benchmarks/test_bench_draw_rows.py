"""Benchmarks on files of many rows: a random sample, the same in any order of the rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import fewlabels as fl
from bench import load
from bench.command import main
from bench.datasets import Dataset, Reading, read_datasets
from bench.disagreement import read_worlds
from bench.draw_rows import draw_rows
from fewlabels.streaming import reading, units

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small units and batches, so that small files have several of each."""
    monkeypatch.setattr(reading, "BATCH_ROWS", 400)
    monkeypatch.setattr(units, "UNIT_ROWS", 1000)
    monkeypatch.setattr(units, "UNIT_BYTES", 30_000)


def world(n: int = 4000, seed: int = 0, digits: int = 6) -> pa.Table:
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.4).astype(int)
    score = np.clip(0.5 + 0.4 * (truth - 0.5) + 0.2 * rng.normal(size=n), 0, 1)
    shares = np.stack([1 - truth, truth], axis=1)
    counts = rng.multinomial(3, 0.2 + 0.6 * shares)
    return pa.table(
        {
            "label": pa.array(truth, mask=rng.random(n) < 0.25),
            "p__a__1": score.round(digits),
            "p__b__1": rng.random(n).round(digits),
            "h__0": counts[:, 0],
            "h__1": counts[:, 1],
            "site": rng.choice(["n", "s"], n),
        }
    )


def stored(table: pa.Table, path: Path, seed: int | None = None, size: int = 700) -> Path:
    if seed is not None:
        table = table.take(np.random.default_rng(seed).permutation(len(table)))
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pq.write_table(table, path, row_group_size=size)
    return path


def dataset(path: Path, **said: Any) -> Dataset:
    (found,), skipped = read_datasets([path], load("ssme-binary"), Reading(**said))
    assert skipped == []
    return found


def test_few_rows_are_all_used(tmp_path: Path) -> None:
    path = stored(world(), tmp_path / "rows.parquet")
    whole, same = dataset(path), dataset(path, most_items=4000)
    assert whole.facts == same.facts
    assert whole.facts.n_items == 4000 - world().column("label").null_count
    assert not any("most_items" in note for note in whole.facts.notes)


def test_order_and_storage_do_not_show(tmp_path: Path) -> None:
    one = dataset(stored(world(), tmp_path / "a" / "x.parquet"), most_items=500)
    for name, seed in (("b/x.parquet", 1), ("c/x.csv", 2)):
        other = dataset(stored(world(), tmp_path / name, seed, 123), most_items=500)
        assert other.facts.digest == one.facts.digest
        np.testing.assert_array_equal(other.everything.keys, one.everything.keys)
    assert one.everything.n_items == 500
    n_labeled = 4000 - world().column("label").null_count
    assert one.facts.notes[0] == (
        f"500 of the {n_labeled:,} rows with a label and a prediction are used, drawn at random "
        "(`most_items`); there are 4,000 rows"
    )


def test_the_sample_is_random(tmp_path: Path) -> None:
    path = stored(world(20_000), tmp_path / "x.parquet", size=5000)
    drawn, n = draw_rows(path, 4000, {"label": lambda p: p.labeled})
    rows, n_fit = drawn["label"]
    every = fl.read_predictions(path)
    known = every.labeled
    assert (n, n_fit, rows.n_items) == (20_000, known.sum(), 4000)
    share, others = (rows.labels == 1).mean(), (every.labels[known] == 1).mean()
    assert abs(share - others) < 4 * np.sqrt(0.24 / 4000)
    for j in range(2):
        mean, real = rows.probabilities[:, j, 1].mean(), every.probabilities[known, j, 1]
        assert abs(mean - real.mean()) < 4 * real.std() / np.sqrt(4000)
    assert set(rows.groups) == {"site"}


def test_copies_keep_their_share(tmp_path: Path) -> None:
    """One row is a third of all; the others are different, or each there often."""
    for digits, most in ((6, 500), (2, 500), (1, 1500)):
        table = world(3000, digits=digits).drop_columns(["p__b__1", "h__0", "h__1", "site"])
        often = pa.table({"label": pa.array([1] * 1500), "p__a__1": np.full(1500, 0.123)})
        path = stored(pa.concat_tables([table, often]), tmp_path / "x.parquet", digits)
        rows, n_fit = draw_rows(path, most, {"label": lambda p: p.labeled})[0]["label"]
        share = (rows.probabilities[:, 0, 1] == 0.123).mean()
        assert rows.n_items == most
        assert share == pytest.approx(1500 / n_fit, abs=1 / most)
        values = rows.probabilities[:, 0, 1][rows.probabilities[:, 0, 1] != 0.123]
        truth = table.filter(pc.is_valid(table.column("label"))).column("p__a__1")
        real = truth.to_numpy()
        assert abs(values.mean() - real.mean()) < 4 * real.std() / np.sqrt(len(values))


def test_where_and_groups(tmp_path: Path) -> None:
    path = stored(world(), tmp_path / "x.parquet")
    found = dataset(path, most_items=300, where=(("site", "n"),))
    assert found.everything.n_items == 300
    table = world()
    there = (np.array(table.column("site")) == "n") & np.array(table.column("label").is_valid())
    assert f"300 of the {there.sum():,} rows" in found.facts.notes[0]
    for where, message in (
        (("site", "z"), "none of its 4,000 rows of site=z"),
        (
            ("sites", "n"),
            "has no column 'sites'",
        ),
    ):
        with pytest.raises(fl.InputError, match=message):
            dataset(path, most_items=300, where=(where,))


def test_counts_where_there_is_no_label(tmp_path: Path) -> None:
    path = stored(world().drop_columns("label"), tmp_path / "x.parquet")
    found = dataset(path, most_items=600, columns={"classes": [0, 1]})
    assert 500 < found.everything.n_items <= 600
    assert "600 of the 4,000 rows with annotators' counts" in found.facts.notes[0]
    (histograms,), _ = read_worlds([path], Reading(most_items=600))
    assert len(histograms.histogram) == 600
    assert any("600 of the 4,000 rows" in note for note in histograms.facts.notes)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Run:
    """The command of the benchmark, in this process: exit code, what it prints, and its errors."""

    def run(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


def test_command(command: Run, tmp_path: Path) -> None:
    path = stored(world(), tmp_path / "x.parquet")
    asked = ["ssme-binary", "--data", path, "--methods", "labeled", "--runs", 2]
    asked += ["--n-labeled", 20, "--n-unlabeled", 100, "--curve-runs", 0, "--workers", 1]
    out = tmp_path / "out"
    code, said, err = command(*asked, "--most-items", 600, "--out", out)
    assert code == 0, err
    assert "600 of the" in said
    assert "(--most-items); there are 4,000 rows" in " ".join(said.split())
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["reading"]["most_items"] == 600
    assert manifest["datasets"][0]["n_items"] == 600
    assert command(*asked, "--resume", "--out", out)[0] == 0
    code, _, err = command(*asked, "--resume", "--most-items", 700, "--out", out)
    assert code == 2
    assert "changed since the benchmark began" in err


def test_a_bad_row_in_the_middle(command: Run, tmp_path: Path) -> None:
    table = world().to_pydict()
    table["p__a__1"][2500] = 1.5
    path = stored(pa.table(table), tmp_path / "x.parquet")
    code, _, err = command(
        "ssme-binary", "--data", path, "--most-items", 600, "--out", tmp_path / "o"
    )
    assert code == 2
    assert "row 2501" in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "o").exists()
