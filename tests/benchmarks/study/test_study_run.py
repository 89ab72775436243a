"""Runs of the study: what is drawn, kept, resumed and refused."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.folder import CELLS, Manifest
from fewlabels.errors import FewlabelsError, InputError, UsageError
from fewlabels.estimating import estimate
from fewlabels.methods.ensembles.ensembles import LearnedEnsemble
from fewlabels.methods.registry import METHODS as METHODS_THERE
from fewlabels.predictions import Predictions
from study import facts, render, run, sets, so_far, trial
from study.methods import method_for
from study.protocol import (
    CENTRAL,
    EVERYWHERE,
    FIGURES,
    METRICS,
    N_LABELED,
    OTHERS,
    Study,
)
from study.results import StudyResults
from study.sets import FAMILIES, MADE, REAL, known_sets
from study.trial import Bench, figures

METHODS = ["labeled", "ensemble"]
SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "study.py"


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
    kept = (tmp_path / "cut" / CELLS).read_bytes()
    assert sum(map(bool, kept.splitlines())) == 7
    half = so_far(tmp_path / "cut")
    assert sum(len(r.runs) for r in half.table.values()) < sum(
        len(r.runs) for r in whole.table.values()
    )
    again = run((), tmp_path / "cut", resume=True, workers=1)
    assert same(whole, again)
    assert (tmp_path / "cut" / CELLS).read_bytes().startswith(kept)


def test_a_damaged_part_is_computed_again(tmp_path: Path, tiny: tuple[str, ...]) -> None:
    whole = _run(tmp_path, tiny, runs=2)
    cells = tmp_path / CELLS
    cells.write_bytes(cells.read_bytes()[:-40])
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


@pytest.mark.slow
def test_the_answer_does_not_depend_on_workers(tmp_path: Path, kept_small: Path) -> None:
    found = []
    for workers in (1, 2):
        out = tmp_path / str(workers)
        out.mkdir()
        shutil.copytree(kept_small / "sets", out / "sets")
        found.append(_run(out, ("wine-9000", "wine-9001"), workers=workers, runs=2))
    assert same(*found)
    assert [f["n_items"] for f in found[0].sets.values()] == [400, 400]


@pytest.mark.slow
def test_a_kill_loses_the_part_at_hand_alone(tmp_path: Path, kept_small: Path) -> None:
    out = tmp_path / "killed"
    out.mkdir()
    shutil.copytree(kept_small / "sets", out / "sets")
    command = [
        sys.executable, str(SCRIPT), "--reduced", "--runs", "20",
        "--sets", "wine-9000", "--methods", "labeled,ensemble", "--workers", "1", "--out", str(out),
    ]  # fmt: skip
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    cells = out / CELLS
    while (
        not (cells.exists() and len(cells.read_bytes().splitlines()) >= 6)
        and started.poll() is None
    ):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(started.pid, signal.SIGKILL)
    started.wait()
    kept = cells.read_bytes()
    again = run((), out, resume=True, workers=1)
    assert cells.read_bytes().startswith(kept)
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
    central = [c for b in range(20) for c in study.cells("CivilComments", 100_000, b)]
    assert {c.n_unlabeled for c in central} == {200, 1000, 10_000}
    assert {c.method for c in central} == {*EVERYWHERE, *OTHERS}
    assert {c.method for c in study.cells("Adult", 16_000, 1)} == {"auto", "labeled"}
    assert {c.n_unlabeled for c in study.cells("CIFAR-10", 10_000, 3)} == {200, 1000, 5000}
    # Asked for by name, a method has runs from the first block on.
    asked_for = Study(("Adult",), ("ensemble",), ())
    assert {c.method for c in asked_for.cells("Adult", 16_000, 0)} == {"ensemble"}


def test_sets_and_families_are_those_there_are() -> None:
    from study import families

    assert set(FAMILIES) == set(families.FAMILIES)
    assert all(LearnedEnsemble(left_out=family) for family in FAMILIES)
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
        ({"sets": ["wnie"]}, "unknown set 'wnie'; did you mean 'wine'"),
        ({"sets": ["real"]}, "`sets`: there are no real sets here"),
        ({"methods": ["psychic"]}, "unknown method 'psychic'"),
        ({"resume": True}, "is not there: nothing to resume; leave `resume` out"),
        ({"data": "nowhere"}, "`data` 'nowhere': there is no such file or folder"),
    ],
)
def test_refusals_are_one_line(
    options: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FewlabelsError) as error:
        run(**options)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_the_manifest_of_another_protocol_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format": 1}')
    with pytest.raises(InputError, match="no manifest of a study, or is damaged"):
        run((), tmp_path, resume=True)


def test_the_script_writes_a_page_and_goes_on(kept_small: Path) -> None:
    def shown(*options: str) -> str:
        command = [sys.executable, "-W", "error", str(SCRIPT), "--out", str(kept_small), *options]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    sets = ["--sets", "wine-9000", "--methods", "auto,labeled", "--workers", "1"]
    first = shown("--reduced", "--runs", "1", "--data", "nowhere", *sets)
    assert "90% intervals hold 87% to 94%" in first
    page = kept_small / "report.md"
    assert page.read_text().startswith("# Coverage and error study")
    assert "Runs per cell: auto 1; labeled 1." in page.read_text()
    again = page.read_text()
    (kept_small / "peers.md").write_text("## Peers\n\nnone\n")
    shown("--page-only")
    assert page.read_text() == f"{again}\n## Peers\n\nnone\n"


def test_the_script_refuses_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--out", str(tmp_path), "--sets", "wnie"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: unknown set 'wnie'; did you mean 'wine'")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("method", ["auto", "learned-ensemble", "learned-ensemble[n_draws=150]"])
def test_nothing_is_judged_on_what_it_was_learned_from(method: str) -> None:
    """On a made set the learned prior is the one without its family; on a real one the whole."""
    p = Predictions(np.full((4, 2), 0.4), None)
    n_draws = 150 if "[" in method else LearnedEnsemble().n_draws
    assert method_for(method, "wine", p) == LearnedEnsemble(n_draws, "wine")
    assert method_for(method, "", p) == LearnedEnsemble(n_draws)
    assert method_for("labeled", "wine", p) == METHODS_THERE["labeled"].make()


# --- the page while it runs -----------------------------------------------------------------------


def _never(*_: Any, **__: Any) -> Any:
    raise AssertionError("a set was trained, or made")


def test_the_page_needs_no_sets_where_their_facts_are_kept(
    tmp_path: Path, tiny: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _run(tmp_path, tiny, runs=1)
    monkeypatch.setattr(sets, "_made", _never)
    monkeypatch.setattr(sets, "_with_truth", _never)
    found = so_far(tmp_path)
    assert same(whole, found)
    assert found.sets == whole.sets
    assert render(found) == render(whole)


def test_sets_without_facts_are_left_out_or_read(
    tmp_path: Path, kept_small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an unfinished study that kept no facts: one set is there, one damaged, one not begun."""
    out, names = kept_small, ("wine-9000", "wine-9001", "wine-9002")
    study = Study(names, ("labeled",), (), (20,), runs=1)
    Manifest(study, (), {}, skipped=("Adult is left out",)).write(out)
    damaged = out / "sets" / "wine-9001.npz"
    damaged.write_bytes(damaged.read_bytes()[:-40])
    monkeypatch.setattr(sets, "_made", _never)
    monkeypatch.setattr(sets, "recipe_of", _never)  # any recipe: the digest tells whose parts
    found = so_far(out)
    assert list(found.sets) == ["wine-9000"]
    assert found.notes == ("Adult is left out", "not begun yet: wine-9001, wine-9002")
    assert "- not begun yet: wine-9001, wine-9002" in render(found)
    assert not (out / facts.FILE).exists()  # it may be another process's


def test_real_data_may_be_gone_when_the_page_is_written(tmp_path: Path) -> None:
    said = dict.fromkeys(facts.KEYS) | {
        "name": "Adult", "family": "", "n_items": 9000, "n_models": 2, "n_classes": 2,
        "accuracy": [0.5, 0.6], "digest": "0",
    }  # fmt: skip
    Manifest(Study(("Adult", "NELL city")), (str(tmp_path / "gone"),), {}).write(tmp_path)
    facts.write(tmp_path, {"Adult": said})
    found = so_far(tmp_path)
    assert found.sets == {"Adult": said}
    assert found.notes == ("not begun yet: NELL city",)


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"a": {"name": "a"}}', "{"])
def test_damaged_facts_are_none(text: str, tmp_path: Path) -> None:
    (tmp_path / facts.FILE).write_text(text)
    assert facts.read(tmp_path) == {}


# --- sizes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"runs": -3}, "`runs` must be a whole number, at least 1; got -3"),
        ({"runs": 0}, "`runs` must be a whole number, at least 1; got 0"),
        ({"n_labeled": [20, -5]}, "`n_labeled` must be a whole number, at least 0; got -5"),
        ({"n_unlabeled": [0]}, "`n_unlabeled` must be a whole number, at least 1; got 0"),
        ({"n_unlabeled": [10.5]}, "`n_unlabeled` must be a whole number, at least 1; got 10.5"),
    ],
)
def test_sizes_that_cannot_be(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        run((), tmp_path / "out", sets=["wine"], **options)
    assert str(error.value) == said
    assert not (tmp_path / "out").exists()


def test_the_usual_size_is_the_nearest_and_half_at_most() -> None:
    assert Study(()).usual(20_000) == 1000
    assert Study(()).usual(1500) == 750
    assert Study((), n_unlabeled=(200, 700)).usual(20_000) == 700
    own = Study(("Adult",), n_unlabeled=(200, 700)).cells("Adult", 20_000, 0)
    assert {c.n_unlabeled for c in own} == {700}
    small = list(Study(("CIFAR-10",)).cells("CIFAR-10", 1500, 3))
    assert {c.n_unlabeled for c in small} == {200, 750}
    assert {c.n_unlabeled for c in small if c.method in OTHERS} == {750}


def test_other_sizes_are_refused_on_resume(tmp_path: Path, tiny: tuple[str, ...]) -> None:
    _run(tmp_path, tiny[:1], runs=1, n_labeled=[20, 20, 0], n_unlabeled=[100])
    again = run((), tmp_path, resume=True, workers=1, n_labeled=[0, 20], n_unlabeled=[100])
    assert {(p.n_labeled, p.n_unlabeled) for p in again.places} == {(0, 100), (20, 100)}
    with pytest.raises(UsageError, match="`n_labeled` cannot differ from what is resumed"):
        run((), tmp_path, resume=True, n_labeled=[50])
