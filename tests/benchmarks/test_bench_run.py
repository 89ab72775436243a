"""Runs: what comes out, that it is right, and that nothing but timing depends on how it ran."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewlabels as fl
from bench import Results, load
from bench.cells import Body, Cell
from bench.folder import CELLS, KeptCells, held, writing
from bench.results import COLUMNS
from bench.splits import draw, halve
from fewlabels.errors import InputError, UsageError

Run = Callable[..., Results]
Write = Callable[..., Path]
Same = Callable[[Results, Results], bool]


def _rows(results: Results, **keys: Any) -> np.ndarray:
    found = np.ones(len(results.rows["run"]), dtype=bool)
    for name, value in keys.items():
        found &= results.rows[name] == value
    return np.flatnonzero(found)


def test_rows(short: Run) -> None:
    found = short(methods=["ensemble"])
    columns = found.rows
    assert list(columns) == list(COLUMNS)
    # Labeled, which all are compared with, and the floor are always there.
    assert set(columns["method"]) == {"labeled", "ensemble", "all-labels-known"}
    n_cells, n_values = 3 * 2, 3 * 2
    assert len(_rows(found, factor="")) == n_cells * n_values
    assert len(_rows(found, factor="curve")) == 4 * 2 * n_values
    assert (columns["seconds"] >= 0).all()
    keys = list(zip(*(columns[k].tolist() for k in list(COLUMNS)[:10]), strict=True))
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)
    loaded = Results.load(found.folder or "")
    assert loaded.datasets == found.datasets
    assert loaded.protocol == found.protocol


def test_values_are_those_of_estimate(short: Run, write: Write) -> None:
    path = write()
    found = short(data=path, methods=["labeled", "ensemble"])
    everything = fl.read_predictions(path, keep=())
    half, truth_rows = halve(300, 1)
    rows, labeled = draw("released", everything.labels, half, 10, 40, 2,
                         run=1, seed=0, dataset="toy")  # fmt: skip
    seen = everything.take(rows)
    metrics = ["accuracy", "ece_quantile"]

    def check(predictions: fl.Predictions, by: str, column: str, **keys: Any) -> None:
        expected = fl.estimate(
            predictions, by, metrics, confidence_level=None, estimand="sample", random_state=9
        )
        for row in expected.rows:
            at = _rows(found, run=1, factor="", model=row.model, metric=row.metric, **keys)
            # The draws of ece differ by their seed.
            error = 0.01 if (by, row.metric) == ("ensemble", "ece_quantile") else 1e-12
            assert found.rows[column].to_numpy()[at] == pytest.approx(row.value, abs=error)

    check(everything.take(truth_rows), "labeled", "truth", method="ensemble")
    known = seen.with_labels(np.where(labeled, seen.labels, -1))
    check(known, "labeled", "estimate", method="labeled")
    check(known, "ensemble", "estimate", method="ensemble")
    check(seen, "labeled", "estimate", method="all-labels-known")


def test_the_answer_does_not_depend_on_workers(
    short: Run, write: Write, tmp_path: Path, same: Same
) -> None:
    path = write()
    methods = ["labeled", "ssme-kde[epochs=3]", "tempered-ensemble"]
    one, two = (short(data=path, out=tmp_path / str(w), workers=w, methods=methods) for w in (1, 2))
    assert same(one, two)
    assert same(two, Results.load(tmp_path / "2"))


def test_resuming_recomputes_only_what_is_missing(
    short: Run, write: Write, tmp_path: Path, same: Same
) -> None:
    path = write()
    whole = short(data=path)
    path_of_cells = tmp_path / "out" / CELLS
    lines = [line for line in path_of_cells.read_bytes().splitlines() if b'"estimates"' in line]
    others = path_of_cells.read_bytes()
    for place, line in enumerate(lines[1:4]):
        damaged = (b"", line[:-9], line.replace(b'"estimate":[', b'"estimate":[0.123,'))[place]
        others = others.replace(line, damaged)
    path_of_cells.write_bytes(others)
    (tmp_path / "out" / ".report.md.99.tmp").write_text("left by a kill")
    seen: list[tuple[int, int]] = []
    again = short(data=path, resume=True, progress=lambda *done: seen.append(done))
    assert same(whole, again)
    assert seen[0][0] == seen[-1][1] - 3
    assert path_of_cells.read_bytes().startswith(others)
    assert [p.name for p in (tmp_path / "out").glob(".*")] == [".lock"]


def test_a_resumed_benchmark_may_grow(short: Run, write: Write, tmp_path: Path, same: Same) -> None:
    first, second = write("first.parquet"), write("second.parquet", seed=1)
    short(data=first, runs=1, methods=["labeled"])
    seen: list[tuple[int, int]] = []
    grown = short(
        data=second, resume=True, runs=2, methods=["ensemble"], n_labeled=[12],
        progress=lambda *done: seen.append(done),
    )  # fmt: skip
    assert seen[0][0] > 0
    assert grown.protocol.methods == ("labeled", "ensemble")
    assert grown.protocol.n_labeled == (10, 12)
    asked = {"methods": ["labeled", "ensemble"], "n_labeled": [10, 12]}
    assert same(grown, short(data=[first, second], out=tmp_path / "at-once", **asked))
    # Not named is as it was: nothing shrinks.
    from bench import run

    assert same(grown, run("ssme-binary", out=tmp_path / "out", resume=True, workers=1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 3}, r"`resume`: seed was 0 and is 3 now, and finished cells depend on it"),
        ({"metrics": ["accuracy"]}, "metrics was accuracy, ece_quantile and is accuracy now"),
        ({"sampler": "uniform"}, "sampler was 'released' and is 'uniform' now"),
        ({"curve_runs": 5}, "curve_runs was 2 and is 5 now"),
        ({"models": ["good"]}, "the classifiers of data set 'toy' .* changed"),
        ({"where": {"site": "north"}}, "the content of data set 'toy' .* changed"),
    ],
)
def test_what_must_not_change_on_resume(
    short: Run, write: Write, options: dict[str, Any], message: str
) -> None:
    path = write()
    short(data=path, runs=1)
    with pytest.raises(UsageError, match=message):
        short(data=path, runs=1, resume=True, **options)


def test_folders_that_cannot_go_on(short: Run, write: Write, tmp_path: Path) -> None:
    path = write()
    with pytest.raises(InputError, match="nothing to resume; leave `resume` out"):
        short(data=path, resume=True)
    short(data=path, runs=1)
    with pytest.raises(UsageError, match="holds parts of a benchmark already; go on with it by"):
        short(data=path)
    with pytest.raises(UsageError, match="holds protocol 'ssme-binary', not 'ssme-ess'"):
        short("ssme-ess", data=path, resume=True)
    write(seed=5)
    with pytest.raises(UsageError, match=r"the content of data set 'toy' .* changed"):
        short(data=path, resume=True)
    manifest = tmp_path / "out" / "manifest.json"
    said = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(said | {"fewlabels": "0.0.1"}))
    with pytest.raises(InputError, match=r"was written by fewlabels 0\.0\.1"):
        short(data=path, resume=True)
    manifest.write_text("{}")
    with pytest.raises(InputError, match="is damaged"):
        short(data=path, resume=True)


def test_a_full_disk_is_one_line(
    short: Run, monkeypatch: pytest.MonkeyPatch, write: Write, same: Same, tmp_path: Path
) -> None:
    path, real, written = write(), KeptCells.add, []

    def full(cells: KeptCells, cell: Cell, body: Body) -> None:
        with writing(cells.folder):
            if len(written) == 5:
                raise OSError(errno.ENOSPC, "No space left on device")
        written.append(cell)
        real(cells, cell, body)

    monkeypatch.setattr(KeptCells, "add", full)
    with pytest.raises(
        InputError, match=r"the disk is full; what is finished is kept: .* `resume`"
    ):
        short(data=path)
    monkeypatch.undo()
    assert len((tmp_path / "out" / CELLS).read_bytes().split()) == 10
    assert same(short(data=path, resume=True), short(data=path, out=tmp_path / "other"))


def test_two_runs_in_one_folder(short: Run, write: Write, tmp_path: Path) -> None:
    path = write()
    with held(tmp_path), pytest.raises(UsageError, match="another process runs a benchmark in"):
        short(data=path, out=tmp_path)
    short(data=path, out=tmp_path)


def test_what_a_method_cannot_do_is_a_row(short: Run, write: Write) -> None:
    found = short(
        "ssme-multiclass", data=write(n_classes=3), methods=["ensemble", "bayesian-calibration"],
        metrics=["accuracy", "ece"],
    )  # fmt: skip
    rows = _rows(found, method="bayesian-calibration")
    assert len(rows) == 2
    for row in rows:
        values = {k: v[row] for k, v in found.rows.items()}
        assert (values["model"], values["metric"], values["status"]) == ("", "", "not-applicable")
        assert "two classes" in values["message"]
        assert np.isnan(values["estimate"])
    assert len(_rows(found, method="ensemble")) == 2 * 3 * 2


def test_a_method_that_breaks_is_a_row(short: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from fewlabels.models import Ensemble

    def broken(*_: object) -> None:
        raise np.linalg.LinAlgError("singular\nmatrix")

    monkeypatch.setattr(Ensemble, "fit", broken)
    found = short()
    rows = _rows(found, method="ensemble")
    assert found.rows["status"][rows].tolist() == ["failed", "failed"]
    assert found.rows["message"].to_numpy()[rows][0] == "LinAlgError: singular\\nmatrix"


def test_a_rare_class_fails_the_run_only(short: Run, write: Write) -> None:
    labels = np.zeros(300, dtype=int)
    labels[[0, 1, 2]] = 1
    found = short(data=write(label=labels), sampler="uniform", curve_runs=0, runs=6, n_labeled=[2])
    failed = _rows(found, status="failed")
    assert len(failed)
    assert "rarer than needed" in found.rows["message"].to_numpy()[failed][0]


def test_sizes_larger_than_the_data(short: Run, write: Write, tmp_path: Path) -> None:
    path = write()
    found = short(data=path, n_labeled=[10, 200])
    assert found.skipped == (
        "toy: n_labeled 200 with n_unlabeled 40 needs 242 items, and a run draws from 150 (half "
        "of its 300 items are kept for the truth); the largest `n_unlabeled` that works with "
        "n_labeled 10 is 138",
    )
    assert set(found.rows["n_labeled"][_rows(found, factor="")]) == {10}
    with pytest.raises(InputError, match=r"nothing can run: toy: n_labeled 200"):
        short(data=path, n_labeled=[200], out=tmp_path / "none")


def test_active_testing_asks_for_its_labels(short: Run) -> None:
    found = short(methods=["active-testing"], metrics=["accuracy"])
    rows = _rows(found, method="active-testing", metric="accuracy")
    assert np.isfinite(found.rows["estimate"][rows]).all()
    assert (found.rows["message"][rows] == "").all()


def test_intervals_on_request(short: Run) -> None:
    found = short(confidence_level=0.9, estimand="population", metrics=["accuracy"])
    rows = _rows(found, method="ensemble")
    low, value, high = (found.rows[k][rows] for k in ("low", "estimate", "high"))
    assert ((low <= value) & (value <= high) & (low < high)).all()


def test_groups(short: Run) -> None:
    found = short("ssme-subgroup", by=["site", "age"], bins={"age": [40]}, metrics=["accuracy"])
    groups = {"", "site=north", "site=south", "age=<40", "age=>=40"}
    assert set(found.rows["group"]) == groups
    for factor in ("", "curve"):
        rows = _rows(found, factor=factor, group="site=north")
        assert np.isfinite(found.rows["truth"][rows]).all()
        assert np.isfinite(found.rows["estimate"][rows]).all()


def test_classifiers_with_gaps(short: Run, write: Write) -> None:
    path = write(p__late__1=np.where(np.arange(300) < 150, np.nan, 0.7))
    found = short(data=path)
    rows = _rows(found, model="late", metric="accuracy", method="ensemble")
    assert np.isfinite(found.rows["truth"][rows]).all()
    assert np.isfinite(found.rows["estimate"][rows]).all()


def test_bad_requests(short: Run, write: Write) -> None:
    with pytest.raises(UsageError, match="no data; name files or folders"):
        short(data=[])
    with pytest.raises(UsageError, match="unknown metric 'acuracy'"):
        short(metrics=["acuracy"])
    with pytest.raises(UsageError, match="unknown method 'ensembel'"):
        short(methods=["ensembel"])
    with pytest.raises(UsageError, match="`by` serves files of predictions"):
        short("ssme-semisynthetic", by=["sex"])


def test_an_unfinished_folder_has_no_results(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no finished benchmark"):
        Results.load(tmp_path)


def test_a_protocol_object(short: Run, tmp_path: Path) -> None:
    protocol = load("ssme-binary").with_options(name="mine", title="Mine")
    found = short(protocol)
    assert found.protocol.name == "mine"
    assert (tmp_path / "out" / "results.parquet").is_file()


def test_repr_of_results_is_short(short: Callable[..., Results]) -> None:
    text = repr(short())
    assert text.startswith("Results: protocol ssme-binary, ")
    assert "array(" not in text
    assert text.count("\n") <= 10
