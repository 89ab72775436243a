"""Runs of the study: what is drawn, measured, kept and gone on with."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewlabels as fl
import runs
from study import sets, trial

ROOT = Path(__file__).resolve().parents[3]
NAMES = ("wine-9000", "wine-9001")


def _tiny(name: str) -> sets.StudySet:
    rng = np.random.default_rng(NAMES.index(name))
    labels = (rng.random(400) < 0.4).astype(int)
    logits = 2.0 * (2 * labels[:, None] - 1) + 2 * rng.standard_normal((400, 2))
    p = fl.Predictions(1 / (1 + np.exp(-logits)), labels, models=["a", "b"], classes=[0, 1])
    return sets.StudySet(name, "wine", p, sets.truth_of(p, sets.METRICS))


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sets of 400 items and 2 classifiers in place of made ones."""
    monkeypatch.setattr(trial, "load", lambda name, data: _tiny(name))


def _run(file: Path, methods: tuple[str, ...] = ("labeled", "ensemble"), **more: Any) -> Any:
    asked = {"sets": NAMES, "n_labeled": (0, 20), "n_unlabeled": 100, "runs": 6, "seed": 0} | more
    cells = trial.cells(methods=methods, **asked)
    lines = runs.run_missing(file, partial(trial.run_cell, data=Path()), cells, 1)
    return trial.table(lines).drop(columns="seconds")


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_a_study_that_goes_on_is_an_uninterrupted_one(tmp_path: Path) -> None:
    """Also from a line that was cut short, with methods, sets and runs added later."""
    whole = _run(tmp_path / "whole.jsonl")
    cut = tmp_path / "cut.jsonl"
    _run(cut, ("labeled",), sets=NAMES[:1], runs=3)
    cut.write_bytes(cut.read_bytes()[:-40])
    kept = runs.read_lines(cut)
    again = _run(cut)
    assert runs.read_lines(cut)[: len(kept)] == kept
    order = [*trial.PLACE, "method", "run", "metric"]
    pd.testing.assert_frame_equal(
        *(one.sort_values(order, ignore_index=True) for one in (whole, again))
    )
    before = cut.read_bytes()
    _run(cut)
    assert cut.read_bytes() == before


def test_cells_need_not_have_the_same_names(tmp_path: Path) -> None:
    file, cells = tmp_path / "cells.jsonl", [{"a": 1}, {"a": 2, "b": [3, 4]}, {"a": 2, "c": 5}]
    done: list[Any] = []

    def run(cell: Any) -> Any:
        done.append(cell)
        return {"sum": np.float64(len(done))}

    runs.run_missing(file, run, cells[:2], 1)
    kept = runs.run_missing(file, run, cells[::-1], 1)
    assert done == cells
    assert [line["sum"] for line in runs.of_cells(kept, cells)] == [1, 2, 3]


@pytest.mark.usefixtures("tiny")
def test_what_a_method_cannot_do_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimate = fl.estimate

    def refuses(items: Any, model: Any, *rest: Any, **options: Any) -> Any:
        if isinstance(model, fl.models.Ensemble):
            raise ZeroDivisionError("no way")
        return estimate(items, model, *rest, **options)

    monkeypatch.setattr(fl, "estimate", refuses)
    rows = _run(tmp_path / "a.jsonl", runs=1)
    failed = rows[rows.method == "ensemble"]
    assert set(failed.message) == {"ZeroDivisionError: no way"}
    assert (failed.failed == 1).all()
    assert failed.error.isna().all()
    own = rows[rows.method == "labeled"]
    assert (own.failed == (own.n_labeled == 0)).all()


def test_items_are_those_of_the_run() -> None:
    chosen = _tiny(NAMES[0])
    a, b = (trial.items_of(chosen, 20, 100, 3, 0) for _ in range(2))
    np.testing.assert_array_equal(a[0].labels, b[0].labels)
    assert (a[0].n_items, a[1].sum()) == (120, 20)
    assert len(np.unique(a[0].keys)) == 120  # without replacement: scores are all distinct


def test_figures_are_those_of_the_rows() -> None:
    """By hand for 90%, and against the rows of an estimate that is asked for 95%."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=200)
    p = fl.Predictions(rng.random((200, 3)), np.where(np.arange(200) < 50, labels, -1))
    found = fl.estimate(p, "labeled", list(sets.METRICS), confidence_level=0.95, workers=1)
    truth = rng.random((3, len(sets.METRICS)))
    out = dict(zip(trial.FIGURES, trial.figures(found, truth), strict=True))
    k = sets.METRICS.index("brier")
    rows = [r for r in found.rows if r.metric == "brier"]
    value, low, high = np.array([r[3:6] for r in rows]).T
    assert out["width_0.95"][k] == pytest.approx((high - low).mean())
    assert out["error"][k] == pytest.approx(np.abs(value - truth[:, k]).mean())
    assert out["bias"][k] == pytest.approx((value - truth[:, k]).mean())
    held = (low <= truth[:, k]) & (truth[:, k] <= high)
    assert out["coverage_0.95"][k] == pytest.approx(held.mean())
    low, high = np.quantile(found.draws["brier", None], [0.05, 0.95], axis=0)
    assert out["width_0.9"][k] == pytest.approx((high - low).mean())
    assert (out["failed"] == 0).all()


@pytest.mark.parametrize("method", ["auto", "learned-ensemble"])
def test_nothing_is_judged_on_what_it_was_learned_from(method: str) -> None:
    """On a made set the learned prior is the one without its family; on a real one the whole."""
    p = fl.Predictions(np.full((4, 2), 0.4), np.array([0, 1, 0, 1]))
    for family in sets.FAMILIES:
        assert trial.method_for(method, family, p) == fl.models.LearnedEnsemble(left_out=family)
    assert trial.method_for(method, "", p) == fl.models.LearnedEnsemble()
    assert trial.method_for("labeled", "wine", p) == fl.models.METHODS["labeled"].make()


def test_sets_are_chosen_by_name_and_kind(tmp_path: Path) -> None:
    assert sets.chosen((), tmp_path) == list(sets.MADE)
    assert sets.chosen(("wine", "blobs-9001"), tmp_path) == [
        name for name in sets.MADE if name.startswith("wine") or name == "blobs-9001"
    ]
    (tmp_path / "adult").mkdir()
    (tmp_path / sets.REAL["Adult"].file).touch()
    assert sets.chosen(("real",), tmp_path) == ["Adult"]
    with pytest.raises(SystemExit, match="error: no set wnie; have Adult, classification-9000"):
        sets.chosen(("wnie",), tmp_path)


@pytest.mark.usefixtures("tiny")
def test_the_script_writes_a_page_with_the_peers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    options = ["--sets", "wine-9000", "--methods", "auto,labeled", "--workers", "1", "--runs", "1"]
    options += ["--n-labeled", "0,20", "--out", str(tmp_path / "s.jsonl"), "--page", str(page)]

    def run(*more: str) -> str:
        monkeypatch.setattr(sys, "argv", ["study", *options, *more])
        command_main()
        return capsys.readouterr().out

    command_main = _command().main
    assert "90% intervals hold 87% to 94%" in run("--data", str(tmp_path))
    first = page.read_text()
    assert first.startswith("# Coverage and error study")
    assert "Runs per cell: auto 1; labeled 1." in first
    assert json.loads((tmp_path / "s.jsonl").read_text().splitlines()[0])["set"] == "wine-9000"
    (tmp_path / "peers.md").write_text("## Peers\n\nnone\n")
    run("--page-only")
    assert page.read_text() == f"{first}\n## Peers\n\nnone\n"


def _command() -> Any:
    """`benchmarks/study.py`, whose name the folder beside it has."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("study_command", ROOT / "benchmarks" / "study.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
