"""Losses of label histograms in a stream: those of the same rows in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fewlabels as fl
from fewlabels.annotations import Assessment, assess
from fewlabels.checks.conditions import NOT_RANDOM
from fewlabels.evaluation import draws
from fewlabels.streaming import annotations_files, reading, samples, scan, units
from fewlabels.streaming.annotations_files import assess_files
from worlds import annotated_table

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small units and batches, so that small files have several of each."""
    monkeypatch.setattr(reading, "BATCH_ROWS", 500)
    monkeypatch.setattr(units, "UNIT_ROWS", 900)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer blocks of items in the bootstrap, where its ends are compared with its own."""
    monkeypatch.setattr(draws, "MOST_UNITS", 200)


def spread(table: pa.Table, folder: Path, files: int, seed: int | None = None) -> Path:
    """The table as so many files of one folder, its rows shuffled where there is a seed."""
    if seed is not None:
        table = table.take(np.random.default_rng(seed).permutation(len(table)))
    folder.mkdir()
    ends = np.linspace(0, len(table), files + 1).astype(int)
    for i in range(files):
        part = table.slice(ends[i], ends[i + 1] - ends[i])
        pq.write_table(part, folder / f"part{i}.parquet", row_group_size=400)
    return folder


def same_values(found: Assessment, expected: Assessment) -> None:
    """Refuse other values, statuses, diagrams or numbers of items; intervals are not looked at."""
    assert [r._replace(value=0, low=0, high=0) for r in found.rows] == [
        r._replace(value=0, low=0, high=0) for r in expected.rows
    ]
    np.testing.assert_allclose(
        [r.value for r in found.rows], [r.value for r in expected.rows], rtol=1e-9, atol=1e-9
    )
    for name in ("reliability", "disagreement_reliability", "dispersion"):
        for mine, other in zip(getattr(found, name), getattr(expected, name), strict=True):
            assert list(mine) == list(other)
            numbers = [k for k, v in other.items() if not isinstance(v, str)]
            assert {k: mine[k] for k in mine if k not in numbers} == {
                k: other[k] for k in other if k not in numbers
            }
            np.testing.assert_allclose(
                [mine[k] for k in numbers], [other[k] for k in numbers], rtol=1e-9, atol=1e-9
            )
    for name in ("n_items", "n_labeled", "n_annotated", "n_labels", "labels_per_item", "models"):
        assert getattr(found, name) == getattr(expected, name), name


def ends(found: Assessment) -> np.ndarray:
    return np.array([[r.low, r.high] for r in found.rows])


@pytest.mark.parametrize("weighted", [False, True])
def test_a_stream_says_what_memory_says(tmp_path: Path, weighted: bool) -> None:
    table = annotated_table() if weighted else annotated_table().drop_columns("weight")
    asked: dict[str, Any] = {"statistics": ["unanimity_2"], "by": "site"}
    if weighted:
        del asked["statistics"]
    folder = spread(table, tmp_path / "rows", 3)
    expected = assess(fl.read_predictions(folder).with_annotators(), **asked)
    found = assess_files(folder, checkpoints=tmp_path, **asked)
    same_values(found, expected)
    assert found.warnings == expected.warnings
    width = np.nanmax(np.diff(ends(expected)))
    np.testing.assert_allclose(ends(found), ends(expected), atol=0.15 * width, equal_nan=True)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["diagnostics"]["stream"] == {
        "engine": "threads", "files": 3, "parts": 6, "skipped_files": 0, "resumed": [],
    }  # fmt: skip
    assert list(tmp_path.glob("*.checkpoint")) == []


def chosen_table(seed: int, *, chosen: bool, frequent: bool) -> pa.Table:
    """Annotators' counts for 300 of 6,000 items, of which a third are the same row."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.8, 1.2, 6000)
    score = rng.normal(size=6000) + 2 * (p > 0.5)
    if frequent:
        same = rng.random(6000) < 0.3
        p[same], score[same] = 0.9, 1.0
    weight = p if chosen else np.ones(6000)
    there = rng.choice(6000, 300, replace=False, p=weight / weight.sum())
    yes, no = np.zeros((2, 6000), dtype=int)
    yes[there] = rng.binomial(2, p[there])
    no[there] = 2 - yes[there]
    return pa.table({"h__0": no, "h__1": yes, "p__a__1": p, "s__b": score})


@pytest.mark.slow
def test_annotated_items_that_were_chosen_are_told_of_as_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"confidence_level": None}
    folder = spread(chosen_table(0, chosen=True, frequent=True), tmp_path / "rows", 3)
    expected = assess(fl.read_predictions(folder), **asked)
    assert expected.diagnostics[NOT_RANDOM]["p_value"] < 0.01
    found = assess_files(folder, checkpoints=tmp_path, **asked)
    assert found.diagnostics[NOT_RANDOM] == expected.diagnostics[NOT_RANDOM]
    assert found.warnings == expected.warnings
    monkeypatch.setattr(annotations_files, "SUPPORT_ROWS", 1000)
    monkeypatch.setattr(annotations_files, "INTERVAL_ROWS", 100)
    found = assess_files(folder, checkpoints=tmp_path, **asked)
    assert found.diagnostics[NOT_RANDOM]["p_value"] < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("frequent", [False, True])
def test_a_sample_of_a_stream_raises_no_false_alarm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frequent: bool
) -> None:
    """Few of the others are held, but as often as they occur: one row is a third of all."""
    monkeypatch.setattr(annotations_files, "SUPPORT_ROWS", 2500)
    for module in (samples, scan):
        monkeypatch.setattr(module, "SUPPORT_ROWS", 2500)
    for seed in range(2):
        table = chosen_table(seed, chosen=False, frequent=frequent)
        folder = spread(table, tmp_path / f"rows{seed}", 2)
        found = assess_files(folder, confidence_level=None, checkpoints=tmp_path)
        assert NOT_RANDOM not in found.diagnostics
        estimates = fl.estimate_files(folder, "labeled", "accuracy", checkpoints=tmp_path)
        assert NOT_RANDOM not in estimates.diagnostics


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_order_and_partition_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotations_files, "INTERVAL_ROWS", 400)
    monkeypatch.setattr(annotations_files, "GROUP_ROWS", 150)
    table = annotated_table(digits=2)
    one = assess_files(spread(table, tmp_path / "one", 1), by="site", checkpoints=tmp_path)
    five = spread(table, tmp_path / "five", 5, 1)
    other = assess_files(five, by="site", checkpoints=tmp_path, workers=1)
    for row in one.rows:
        found = other.get(row.model, row.metric, row.group)
        assert tuple(found[3:6]) == pytest.approx(tuple(row[3:6]), rel=1e-9, abs=1e-9, nan_ok=True)
        assert found.status is row.status
    assert "random sample of 400 of the" in one.warnings[0]


@pytest.mark.slow
def test_intervals_of_a_sample_are_those_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"statistics": ["unanimity_2"], "checkpoints": tmp_path}
    wider = []
    for seed in range(3):
        table = annotated_table(12_000, seed).drop_columns(["weight", "p__b__1"])
        folder = spread(table, tmp_path / f"rows{seed}", 1)
        with monkeypatch.context() as patch:
            whole = assess_files(folder, **asked)
            patch.setattr(annotations_files, "INTERVAL_ROWS", 3000)
            some = assess_files(folder, **asked)
        wide, narrow = np.diff(ends(some)).ravel(), np.diff(ends(whole)).ravel()
        # The variance of 3,000 rows is known to some percent, the ends of 1,000 draws to as much.
        np.testing.assert_allclose(wide, narrow, rtol=0.3)
        wider.append(np.log(wide / narrow).mean())
        same_values(some, whole)
    # In 24 worlds they were wider by .05 on average, with a standard deviation of .033.
    assert abs(np.mean(wider)) < 0.05 + 3 * 0.033 / np.sqrt(3)


@pytest.mark.slow
def test_copies_count_as_often_as_they_occur(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Distinct rows often, one of them a third of all: each item is drawn for itself."""
    table = annotated_table(6000, digits=2).drop_columns(["weight", "p__b__1"])
    table = pa.concat_tables([table, *[table.slice(3, 1)] * 3000])
    folder = spread(table, tmp_path / "rows", 2)
    exact = ends(assess(fl.read_predictions(folder).with_annotators()))
    for most, tolerance in ((100_000, 0.15), (2000, 0.2), (600, 0.35)):
        monkeypatch.setattr(annotations_files, "INTERVAL_ROWS", most)
        found = ends(assess_files(folder, checkpoints=tmp_path))
        ratio = np.diff(found).ravel() / np.diff(exact).ravel()
        assert np.abs(np.log(ratio)).max() < tolerance, (most, ratio)


def test_a_column_without_a_number_is_no_classifier(tmp_path: Path) -> None:
    table = annotated_table().drop_columns("weight")
    nothing = pa.nulls(len(table), pa.float64())
    table = table.append_column("p__voter__1", nothing)
    folder = spread(table, tmp_path / "rows", 2)
    expected = assess(fl.read_predictions(folder).with_annotators(), confidence_level=None)
    found = assess_files(folder, confidence_level=None, checkpoints=tmp_path)
    same_values(found, expected)
    assert expected.models == ("a", "b")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["h__0", "h__1", "label", "y__voter"], "no item has a label"),
        (["p__a__1", "p__b__1"], "votes alone"),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, columns: list[str], message: str) -> None:
    folder = spread(annotated_table(50).drop_columns(columns), tmp_path / "rows", 1)
    with pytest.raises(fl.InputError, match=message):
        assess_files(folder, columns={"classes": [0, 1]}, checkpoints=tmp_path)


def test_bad_arguments(tmp_path: Path) -> None:
    folder = spread(annotated_table(50), tmp_path / "rows", 1)
    for said in ({"by": "sites"}, {"models": ["c"]}, {"bins": 0}, {"statistics": "disagreement"}):
        with pytest.raises(fl.UsageError):
            assess_files(folder, checkpoints=tmp_path, **said)


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    folder = spread(annotated_table(2000), tmp_path / "rows", 3)
    asked: dict[str, Any] = {"by": "site", "statistics": ["unanimity_2"], "checkpoints": tmp_path}
    whole = assess_files(folder, **asked)
    good = (folder / "part1.parquet").read_bytes()
    bad = pq.read_table(folder / "part1.parquet").to_pydict()
    bad["h__1"][3] = -1
    pq.write_table(pa.table(bad), folder / "part1.parquet")
    with pytest.raises(fl.InputError, match=r"part1\.parquet.*row 4"):
        assess_files(folder, **asked)
    (folder / "part1.parquet").write_bytes(good)
    again = assess_files(folder, resume=True, **asked)
    assert again.diagnostics["stream"]["resumed"] == ["assessing: 1 of 3 parts were done already"]
    same_values(again, whole)
    np.testing.assert_allclose(ends(again), ends(whole), rtol=1e-9, atol=1e-9)


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three files, the one in the middle damaged inside a page."""
    monkeypatch.setenv("FEWLABELS_CHECKPOINTS", str(tmp_path / "checkpoints"))
    folder = spread(annotated_table().drop_columns("weight"), tmp_path / "rows", 3)
    damaged = folder / "part1.parquet"
    content = bytearray(damaged.read_bytes())
    content[4:400] = b"\xff" * 396  # the header of the first page among it
    damaged.write_bytes(bytes(content))
    return folder


def test_a_bad_file_in_the_middle(cli: Run, rows: Path, tmp_path: Path) -> None:
    code, out, err = cli("annotations", rows, "--engine", "threads")
    assert (code, out) == (2, "")
    assert "part1.parquet" in err
    assert len(err.splitlines()) == 1
    saved = tmp_path / "found.json"
    code, out, err = cli("annotations", rows, "--skip-bad-files", "--json", saved)
    assert (code, err) == (0, "")
    assert "1 file was skipped, and the losses are without it: part1.parquet" in " ".join(
        out.split()
    )
    found = json.loads(saved.read_text())
    assert (found["n_items"], found["diagnostics"]["stream"]["skipped_files"]) == (2000, 1)
    (rows / "part1.parquet").unlink()
    code, out, _ = cli("annotations", rows, "--json", "-")
    whole = json.loads(out)["estimates"]
    assert [r["value"] for r in found["estimates"]] == pytest.approx([r["value"] for r in whole])


def test_options_that_need_all_items(cli: Run, rows: Path, tmp_path: Path) -> None:
    for option in (("--out", tmp_path / "items.csv"), ("--votes", tmp_path / "votes.csv")):
        code, _, err = cli("annotations", rows, "--engine", "processes", *option)
        assert code == 2
        assert f"{option[0]}" in err
        assert "need them whole" in err or "needs them whole" in err
    assert "No such option '--posterior'" in cli("annotations", rows, "--posterior", "x")[2]
