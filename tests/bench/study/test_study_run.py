"""Runs of the study: what is drawn, kept, resumed and refused."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fewlabels.bench.study import methods as named
from fewlabels.bench.study import run, so_far, trial
from fewlabels.bench.study.protocol import (
    CENTRAL,
    EVERYWHERE,
    FIGURES,
    METRICS,
    N_LABELED,
    OTHERS,
    Study,
)
from fewlabels.bench.study.results import StudyResults
from fewlabels.bench.study.sets import FAMILIES, MADE, REAL, known_sets
from fewlabels.bench.study.trial import Bench, figures
from fewlabels.cli import main
from fewlabels.errors import InputError, UsageError
from fewlabels.pipeline import estimate
from fewlabels.predictions import Predictions

METHODS = ["labeled", "ensemble"]


def same(a: StudyResults, b: StudyResults) -> bool:
    """Whether two studies found the same, but for the time it took."""
    return a.table.keys() == b.table.keys() and all(
        np.array_equal(a.table[k].runs, b.table[k].runs)
        and np.array_equal(a.table[k].values, b.table[k].values, equal_nan=True)
        for k in a.table
    )


def _run(out: Path, tiny: tuple[str, ...], **options: Any) -> StudyResults:
    options = {"methods": METHODS, "sets": tiny, "runs": 6, "workers": 1, "reduced": True} | options
    return run((), out, **options)


def test_a_resumed_study_is_an_uninterrupted_one(tmp_path: Path, tiny: tuple[str, ...]) -> None:
    whole = _run(tmp_path / "whole", tiny)

    def stop(done: int, total: int) -> None:
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _run(tmp_path / "cut", tiny, progress=stop)
    kept = {p: p.stat().st_mtime_ns for p in (tmp_path / "cut" / "parts").glob("*.json")}
    assert len(kept) == 7
    half = so_far(tmp_path / "cut")
    assert sum(len(r.runs) for r in half.table.values()) < sum(
        len(r.runs) for r in whole.table.values()
    )
    again = run((), tmp_path / "cut", resume=True, workers=1)
    assert same(whole, again)
    assert all(p.stat().st_mtime_ns == t for p, t in kept.items())


def test_a_damaged_part_is_computed_again(tmp_path: Path, tiny: tuple[str, ...]) -> None:
    whole = _run(tmp_path, tiny, runs=2)
    part = next((tmp_path / "parts").glob("*.json"))
    part.write_text(part.read_text()[:-40])
    assert same(whole, run((), tmp_path, resume=True, workers=1))


def test_methods_sets_and_runs_added_later(tmp_path: Path, tiny: tuple[str, ...]) -> None:
    """The last block of a shorter study is not taken for a whole one."""
    whole = _run(tmp_path / "whole", tiny)
    _run(tmp_path / "grown", tiny[:1], methods=["labeled"], runs=3)
    grown = run(
        (), tmp_path / "grown", resume=True, workers=1, runs=6, methods=["ensemble"], sets=tiny[1:]
    )
    assert same(whole, grown)
    with pytest.raises(UsageError, match="can only rise"):
        run((), tmp_path / "grown", resume=True, runs=2)


def test_the_answer_does_not_depend_on_workers(tmp_path: Path, kept_small: Path) -> None:
    found = []
    for workers in (1, 2):
        out = tmp_path / str(workers)
        out.mkdir()
        shutil.copytree(kept_small / "sets", out / "sets")
        found.append(_run(out, ("wine-9000", "wine-9001"), workers=workers, runs=2))
    assert same(*found)
    assert [f["n_items"] for f in found[0].sets.values()] == [400, 400]


def test_a_kill_loses_the_part_at_hand_alone(tmp_path: Path, kept_small: Path) -> None:
    out = tmp_path / "killed"
    out.mkdir()
    shutil.copytree(kept_small / "sets", out / "sets")
    command = [
        sys.executable, "-m", "fewlabels", "benchmark", "study", "--reduced", "--runs", "20",
        "--sets", "wine-9000", "--methods", "labeled,ensemble", "--workers", "1", "--out", str(out),
    ]  # fmt: skip
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list((out / "parts").glob("*.json"))) < 3 and started.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(started.pid, signal.SIGKILL)
    started.wait()
    kept = {p: p.stat().st_mtime_ns for p in (out / "parts").glob("*.json")}
    assert len(kept) >= 3
    again = run((), out, resume=True, workers=1)
    assert all(p.stat().st_mtime_ns == t for p, t in kept.items())
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    shutil.copytree(kept_small / "sets", fresh / "sets")
    assert same(again, _run(fresh, ("wine-9000",), runs=20))


# --- what is drawn and measured -------------------------------------------------------------------


def test_items_are_those_of_the_run(tmp_path: Path, tiny: tuple[str, ...]) -> None:
    bench = Bench(Study(tiny), (), tmp_path)
    chosen = bench.set_of(tiny[0])
    a, b = (bench.items(chosen, 20, 100, run) for run in (3, 3))
    np.testing.assert_array_equal(a[0].labels, b[0].labels)
    assert a[0].n_items == 120
    assert a[1].sum() == 20
    assert len(np.unique(a[0].keys)) == 120  # without replacement: scores are all distinct


def test_figures_are_those_of_the_rows() -> None:
    """By hand for 90%, and against the rows of an estimate that is asked for 95%."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=200)
    p = Predictions(rng.random((200, 3)), np.where(np.arange(200) < 50, labels, -1))
    found = estimate(p, "labeled", list(METRICS), confidence_level=0.95, workers=1)
    truth = rng.random((3, len(METRICS)))
    out = dict(zip(FIGURES, figures(found, truth), strict=True))
    rows = [r for r in found.rows if r.metric == "brier"]
    k = METRICS.index("brier")
    t = truth[:, k]
    assert out["width_0.95"][k] == pytest.approx(np.mean([r.high - r.low for r in rows]))
    assert out["error"][k] == pytest.approx(
        np.mean([abs(r.value - x) for r, x in zip(rows, t, strict=True)])
    )
    assert out["bias"][k] == pytest.approx(
        np.mean([r.value - x for r, x in zip(rows, t, strict=True)])
    )
    held = [r.low <= x <= r.high for r, x in zip(rows, t, strict=True)]
    assert out["coverage_0.95"][k] == pytest.approx(np.mean(held))
    low, high = np.quantile(found.draws["brier", None], [0.05, 0.95], axis=0)
    assert out["width_0.9"][k] == pytest.approx((high - low).mean())
    assert (out["failed"] == 0).all()


def _refuses(predictions: Predictions, model: Any, *rest: Any, **options: Any) -> Any:
    if type(model).__name__ == "Ensemble":
        raise ZeroDivisionError("no way")
    return estimate(predictions, model, *rest, **options)


def test_what_a_method_cannot_do_is_recorded(
    tmp_path: Path, tiny: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "estimate", _refuses)
    results = _run(tmp_path, tiny[:1], methods=["ensemble", "labeled"], runs=1)
    said = {m: r.messages for (_, m), r in results.table.items()}
    assert said == {"ensemble": ("ZeroDivisionError: no way",), "labeled": ()}
    for (place, method), runs in results.table.items():
        failed = runs.figure("failed", "accuracy")
        if runs.messages:
            assert (failed == 1).all()
            assert np.isnan(runs.figure("error", "accuracy")).all()
        else:
            assert (failed == (place.n_labeled == 0)).all(), method


# --- the design -----------------------------------------------------------------------------------


def test_the_design_is_fractional() -> None:
    study = Study(("Adult", "CivilComments"))
    plain = list(study.cells("Adult", 16_000, 0))
    assert {c.n_unlabeled for c in plain} == {1000}
    assert {c.method for c in plain} == set(EVERYWHERE)
    assert {c.n_labeled for c in plain} == set(N_LABELED)
    central = list(study.cells("CivilComments", 100_000, 0))
    assert {c.n_unlabeled for c in central} == {200, 1000, 10_000}
    assert {c.method for c in central} == {*EVERYWHERE, *OTHERS}
    assert {c.method for c in study.cells("Adult", 16_000, 1)} == {"auto", "labeled"}
    assert {c.n_unlabeled for c in study.cells("CIFAR-10", 10_000, 0)} == {200, 1000, 5000}


def test_sets_and_families_are_those_there_are() -> None:
    from fewlabels.bench.study import families

    assert set(FAMILIES) == set(families.FAMILIES)
    assert len(MADE) >= 40
    assert set(CENTRAL) <= {*REAL, *MADE}


def test_absent_real_sets_are_left_out_with_a_note(tmp_path: Path) -> None:
    known, notes = known_sets([str(tmp_path)])
    assert set(known) == set(MADE)
    assert len(notes) == len(REAL)
    assert "CivilComments is left out: there is no ssme_civilcomments/data.parquet" in notes[0]


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--metrics", "ece"], "--metrics has no use in protocol 'study': leave it out"),
        (["--sets", "wnie"], "unknown set 'wnie'; did you mean 'wine'"),
        (["--sets", "real"], "--sets: there are no real sets here"),
        (["--methods", "psychic"], "unknown method 'psychic'"),
        (["--resume"], "is not there: nothing to resume; leave --resume out"),
        (["--data", "nowhere"], "--data 'nowhere': there is no such file or folder"),
    ],
)
def test_refusals_are_one_line(
    options: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["benchmark", "study", *options]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_other_protocols_have_no_sets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmark", "ssme-binary", "--sets", "wine"]) == 2
    assert "--sets serves protocol 'study' alone" in capsys.readouterr().err


def test_the_manifest_of_another_protocol_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format": 1}')
    with pytest.raises(InputError, match="no manifest of a study, or is damaged"):
        run((), tmp_path, resume=True)


def test_the_command_writes_a_page(
    tmp_path: Path, tiny: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(
        ["benchmark", "study", "--reduced", "--runs", "1", "--sets", ",".join(tiny), "--methods",
         "auto,labeled", "--workers", "1", "--out", str(out)]
    ) == 0  # fmt: skip
    shown = capsys.readouterr().out
    assert "90% intervals hold 87% to 94%" in shown
    assert (out / "report.md").read_text().startswith("# Coverage and error study")
    assert main(["benchmark", "study", "--out", str(out)]) == 2
    assert "go on with it by --resume" in capsys.readouterr().err


def test_nothing_is_judged_on_what_it_was_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a made set the learned prior is the one without its family; on a real one the whole."""

    @dataclass(frozen=True)
    class Learned:
        left_out: str | None = None

    learned = SimpleNamespace(make=Learned)
    monkeypatch.setattr(named, "METHODS", {named.LEARNED: learned})
    monkeypatch.setattr(named, "resolve", lambda name, p: (named.LEARNED, Learned()))
    p = Predictions(np.full((4, 2), 0.5), None)
    for method in ("auto", named.LEARNED):
        assert named.method_for(method, "wine", p) == Learned("wine")
        assert named.method_for(method, "", p) == Learned()
