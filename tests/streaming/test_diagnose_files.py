"""The doctor on a stream: what it says of the same rows in memory, and every bad file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import fewlabels as fl
from fewlabels.streaming import diagnose_files as doctor
from fewlabels.streaming import reading, units
from fewlabels.streaming.diagnose_files import diagnose_files

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small units and batches, so that small files have several of each."""
    monkeypatch.setattr(reading, "BATCH_ROWS", 300)
    monkeypatch.setattr(units, "UNIT_ROWS", 700)
    monkeypatch.setattr(units, "UNIT_BYTES", 20_000)


def ill(n: int = 2000, seed: int = 0) -> dict[str, Any]:
    """Nearly everything that the doctor has something to say of."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < 0.4
    good = np.clip(0.5 + 0.3 * (truth - 0.5) + 0.1 * rng.normal(size=n), 0.001, 0.999).round(5)
    labeled = (rng.random(n) < 0.1) & (truth | (rng.random(n) < 0.5))
    return {
        "labels": pa.array(truth.astype(int), mask=~labeled),
        "p__good__1": good,
        "p__copy__1": good,
        "p__near__1": np.clip(good + 1e-4 * rng.random(n), 0, 1),
        "p__same__1": np.full(n, 0.25),
        "p__inverted__1": 1 - good,
        "p__sure__1": np.where(rng.random(n) < 0.2, 1.0, good),
        "s__chance": rng.normal(size=n),
        "y__gaps": pa.array(truth.astype(int), mask=rng.random(n) < 0.3),
        "y__yes": np.ones(n, dtype=int),
        "weights": rng.random(n).round(6),
        "p_other_1": rng.random(n).round(6),
        "one": ["x"] * n,
        "id": [f"row {i}" for i in range(n)],
    }


def ordered(n: int = 1500) -> dict[str, Any]:
    """Labels in the first rows, sorted; rows that repeat; -1 beside 1; counts; weights."""
    rng = np.random.default_rng(1)
    score = rng.random(n).round(2)
    return {
        "label": pa.array(np.sort(score[:200] > 0.5).astype(int).tolist() + [None] * (n - 200)),
        "p__a__no": 0.9999 * (1 - score),
        "p__a__yes": 0.9999 * score,
        "h__no": rng.integers(0, 3, n),
        "h__yes": rng.integers(0, 3, n),
        "weight": rng.random(n),
        "domain": rng.choice(["x", "y"], n),
    }


def votes(n: int = 900) -> dict[str, Any]:
    """Hard predictions alone."""
    rng = np.random.default_rng(2)
    columns = {f"y__{m}": pa.array(rng.integers(0, 2, n), mask=rng.random(n) < 0.5) for m in "abc"}
    return columns | {"domain": rng.choice(["x", "y"], n)}


CASES = {
    "ill": (ill, {"label": "labels"}),
    "ordered": (ordered, {"classes": [0, 1]}),
    "votes": (votes, {}),
    "minus": (lambda: {"label": [1, -1, 1] * 300, "p__a__1": np.linspace(0, 1, 900)}, {}),
}


def spread(columns: dict[str, Any], folder: Path, files: int, kind: str = "parquet") -> Path:
    table = pa.table(columns)
    folder.mkdir()
    ends = np.linspace(0, len(table), files + 1).astype(int)
    for i in range(files):
        part = table.slice(ends[i], ends[i + 1] - ends[i])
        if kind == "parquet":
            pq.write_table(part, folder / f"part{i}.parquet", row_group_size=250)
        else:
            pyarrow.csv.write_csv(part, folder / f"part{i}.csv")
    return folder


@pytest.mark.few(6)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("files", [1, 4])
@pytest.mark.parametrize("case", CASES)
def test_a_stream_says_what_memory_says(tmp_path: Path, case: str, files: int, kind: str) -> None:
    make, options = CASES[case]
    columns = make()
    if case == "ordered":
        columns = {k.replace("__no", "__0").replace("__yes", "__1"): v for k, v in columns.items()}
    folder = spread(columns, tmp_path / "rows", files, kind)
    expected = fl.diagnose(folder, **options)
    found = diagnose_files(folder, workers=2, columns=options)
    assert {(f.severity, f.what, f.where, f.mend) for f in found.findings} == {
        (f.severity, f.what, f.where, f.mend) for f in expected.findings
    }
    assert found.roles == expected.roles
    assert {k: found.counts[k] for k in expected.counts} == expected.counts
    assert found.class_balance["classes"] == expected.class_balance["classes"]
    assert found.class_balance["labels"] == expected.class_balance["labels"]
    for model, shares in expected.class_balance["predicted"].items():
        assert found.class_balance["predicted"][model] == (
            None if shares is None else pytest.approx(shares, rel=1e-9)
        )
    assert found.summary().splitlines()[0] == expected.summary().splitlines()[0]


def test_the_sample_depends_on_the_rows_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "SAMPLE_ROWS", 300)
    columns = ill()
    one = diagnose_files(spread(columns, tmp_path / "one", 1), columns={"label": "labels"})
    order = np.random.default_rng(3).permutation(2000)
    shuffled = {n: v.take(pa.array(order)) for n, v in zip(columns, pa.table(columns), strict=True)}
    five = diagnose_files(spread(shuffled, tmp_path / "five", 5), columns={"label": "labels"})
    assert set(five.findings) == set(one.findings)
    assert one.counts == five.counts
    assert one.counts["n_sampled"] < 600
    said = [f.what for f in one.findings]
    assert any(f"is from {one.counts['n_sampled']} of the 2,000 rows" in what for what in said)
    for words in ("identical on every item", "nearly identical", "same for every item", "exactly"):
        assert any(words in what for what in said), words
    assert any("wrong way round" in what for what in said)


@pytest.mark.parametrize("most", [400, 20_000])
def test_repeated_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(doctor, "SAMPLE_ROWS", most)
    p = np.random.default_rng(0).permutation(np.repeat(np.arange(1000) / 1000, 3))
    rows = spread({"p__a__1": p}, tmp_path / "rows", 2)
    found = diagnose_files(rows, columns={"classes": [0, 1]})
    said = next(f.what for f in found.findings if f.where == "rows" and "repeat" in f.what)
    assert said.startswith("about " * (most == 400) + "2,000 of 3,000 rows (66.7%) repeat")


def test_annotators_are_counted(tmp_path: Path) -> None:
    columns = {k.replace("__no", "__0").replace("__yes", "__1"): v for k, v in ordered().items()}
    counts = diagnose_files(spread(columns, tmp_path / "rows", 2)).counts
    both = columns["h__0"] + columns["h__1"]
    assert counts["n_annotated"] == (both > 0).sum()
    assert counts["n_annotator_labels"] == both.sum()


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """Six files; the second is cut, the fourth has other columns, the fifth a number that is none.

    The third has a damaged page.
    """
    columns = {"label": ["no", "yes"] * 600, "p__a__yes": np.linspace(0.1, 0.9, 1200)}
    folder = spread(columns, tmp_path / "rows", 6)
    cut = (folder / "part1.parquet").read_bytes()
    (folder / "part1.parquet").write_bytes(cut[:-40])
    (folder / "part2.parquet").write_bytes(cut[:4] + b"\xff" * 120 + cut[124:])
    pq.write_table(pa.table({"label": ["no"], "p__b__yes": [0.5]}), folder / "part3.parquet")
    pq.write_table(pa.table({"label": ["no"], "p__a__yes": [1.5]}), folder / "part4.parquet")
    return folder


@pytest.mark.parametrize("engine", ["threads", "auto"])
def test_all_bad_files_are_said(cli: Run, bad: Path, tmp_path: Path, engine: str) -> None:
    if engine == "auto":
        assert cli("doctor", bad)[0] == 2  # small files are read as before
        return
    saved = tmp_path / "doctor.json"
    code, out, err = cli("doctor", bad, "--engine", engine, "--json", saved)
    assert code == 2
    assert err.startswith("error: `fewlabels estimate` refuses ")
    assert len(err.splitlines()) == 1
    found = json.loads(saved.read_text())
    errors = [f["what"] for f in found["findings"] if f["severity"] == "error"]
    named = {name for name in sorted(p.name for p in bad.iterdir()) for e in errors if name in e}
    assert named >= {f"part{i}.parquet" for i in (1, 2, 3, 4)}
    assert len(errors) == 4
    assert "row 1" in next(e for e in errors if "part4" in e)
    assert not found["ok"]
    assert found["counts"]["n_items"] == 400
    assert "part2.parquet" in out


def test_nothing_to_read(cli: Run, tmp_path: Path) -> None:
    code, out, err = cli("doctor", tmp_path / "no.parquet", "--engine", "threads")
    assert (code, out) == (2, "")
    assert "no such file" in err
    (tmp_path / "some.parquet").write_bytes(b"PAR1 and nothing else")
    code, out, err = cli("doctor", tmp_path / "some.parquet", "--engine", "threads")
    assert code == 2
    assert "some.parquet" in out
    path = tmp_path / "odd.csv"
    path.write_text("labels,p__a__1,p__a__2\nx,0.5,0.5\n")
    code, out, _ = cli("doctor", path, "--engine", "threads")
    assert (code, "may hold the labels" in out) == (0, True)
    assert "--label labels" not in out, "which is refused, as x is none of the classes"


def test_small_files_are_read_whole(cli: Run, tmp_path: Path) -> None:
    folder = spread(votes(), tmp_path / "rows", 2)
    assert cli("doctor", folder)[1] == cli("doctor", folder, "--engine", "memory")[1]
    assert "No such option '--resume'" in cli("doctor", folder, "--resume")[2]
