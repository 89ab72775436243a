"""Reference data from files: on the command line, and beside rows that are streamed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewlabels as fl
from fewlabels.data.inputs import reference_of
from fewlabels.models import LearnedEnsemble
from fewlabels.streaming import passes

Run = Callable[..., tuple[int, str, str]]


def table(n: int, known: int, seed: int, classes: tuple[str, str] = ("no", "yes")) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n)
    out = pd.DataFrame({"label": np.where(truth, classes[1], classes[0])}, dtype=object)
    out.loc[known:, "label"] = None
    for model in ("good", "fair", "poor"):
        out[f"p__{model}__{classes[1]}"] = 1 / (1 + np.exp(-rng.normal(2.0 * truth - 1)))
    return out


@pytest.fixture
def this(tmp_path: Path) -> Path:
    path = tmp_path / "this.csv"
    table(120, 20, 0).to_csv(path, index=False)
    return path


@pytest.fixture
def last(tmp_path: Path) -> Path:
    """Last month: spelled otherwise, without one classifier, with another."""
    path = tmp_path / "last.csv"
    old = table(80, 60, 1, ("No", "Yes")).drop(columns="p__poor__Yes")
    old.assign(p__retired__Yes=0.5 * old["p__good__Yes"]).to_csv(path, index=False)
    return path


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> list[fl.Predictions | None]:
    """The references that models were fitted with."""
    seen: list[fl.Predictions | None] = []
    fit = LearnedEnsemble.fit

    def recording(self: LearnedEnsemble, *arguments: Any) -> Any:
        seen.append(self.reference)
        return fit(self, *arguments)

    monkeypatch.setattr(LearnedEnsemble, "fit", recording)
    return seen


@pytest.fixture(autouse=True)
def _checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWLABELS_CHECKPOINTS", str(tmp_path / "checkpoints"))


@pytest.mark.parametrize("command", ["estimate", "compare"])
def test_the_command_reads_it(
    command: str, cli: Run, this: Path, last: Path, fitted: list[fl.Predictions | None]
) -> None:
    code, out, err = cli(command, this, "--reference", last, "--json", "-")
    assert code == 0, err
    assert json.loads(out)["reference"] == {"n_items": 60, "models": ["good", "fair"]}
    (reference,) = fitted
    assert reference is not None
    assert (reference.models, reference.classes) == (("good", "fair", "poor"), ("no", "yes"))
    assert "reference: classifiers that only the reference has are left out: retired" in err
    code, out, _ = cli(command, this, "--reference", last)
    assert "60 reference items" in " ".join(out.split())


def test_options_hold_for_both_files(cli: Run, tmp_path: Path, fitted: list[Any]) -> None:
    names = {"label": "truth", "p__good__yes": "g", "p__fair__yes": "f", "p__poor__yes": "p"}
    for name, seed, gone in (("this", 0, []), ("last", 1, ["p"])):
        rows = table(60, 30, seed).rename(columns=names).drop(columns=gone)
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    code, out, err = cli(
        "estimate", tmp_path / "this.csv", "--reference", tmp_path / "last.csv",
        "--label", "truth", "--model", "good=g", "--model", "fair=f", "--model", "poor=p",
        "--models", "good,poor", "--threshold", "good=0.8", "--positive", "yes", "--json", "-",
    )  # fmt: skip
    assert code == 0, err
    assert json.loads(out)["reference"] == {"n_items": 30, "models": ["good"]}
    (reference,) = fitted
    said = reference.probabilities[:, 0, 1] >= 0.8
    np.testing.assert_array_equal(reference.hard[:, 0], said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--method", "labeled"), "method 'labeled' learns nothing from reference data; leave --reference out, or use auto, learned-ensemble"),  # noqa: E501
        (("--shift", "label"), "--shift and --reference do not go together"),
        (("--html", "last.csv"), "last.csv"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused_in_one_line(
    arguments: tuple[str, ...], said: str, cli: Run, this: Path, last: Path
) -> None:
    given = [last if a == "last.csv" else a for a in arguments]
    code, out, err = cli("estimate", this, "--reference", last, *given)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_both_cannot_be_standard_input(cli: Run) -> None:
    code, _, err = cli("estimate", "-", "--reference", "-")
    assert code == 2
    assert "FILE and --reference are both standard input" in err


def test_mistakes_in_it_are_told_with_its_name(cli: Run, this: Path, last: Path) -> None:
    rows = pd.read_csv(last)
    rows.assign(label=None).to_csv(last, index=False)
    code, _, err = cli("estimate", this, "--reference", last)
    assert (code, err.count("\n")) == (2, 1)
    assert "last.csv: none of its 80 items has a label" in err
    rows.assign(p__good__Yes=7.0).to_csv(last, index=False)
    for engine in ((), ("--engine", "threads")):
        code, _, err = cli("estimate", this, "--reference", last, *engine)
        assert (code, err.count("\n")) == (2, 1)
        assert "last.csv: " in err
        assert "this.csv" not in err


@pytest.mark.slow
def test_streams_fit_with_it(this: Path, last: Path, fitted: list[Any]) -> None:
    asked = {"metrics": ["accuracy", "auc"], "reference": last}
    here, there = fl.estimate_files(this, **asked), fl.estimate(this, **asked)
    assert here.to_dict()["reference"] == there.to_dict()["reference"]
    assert here.method == "learned-ensemble"
    assert any("left out: retired" in said for said in here.warnings)
    streamed, whole = fitted
    np.testing.assert_array_equal(streamed.probabilities, whole.probabilities)
    np.testing.assert_array_equal(streamed.labels, whole.labels)
    for row in there.rows:
        assert here.get(row.model, row.metric).value == pytest.approx(row.value, abs=0.02)


def test_a_stream_goes_on_only_with_the_same_reference(
    this: Path, last: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes, "SECONDS_BETWEEN", -1.0)
    monkeypatch.setattr(passes, "SHARE", 0)
    folder = tmp_path / "parts"
    folder.mkdir()
    for part in range(3):
        table(50, 10, part).to_csv(folder / f"{part}.csv", index=False)

    class InterruptedRunError(Exception):
        pass

    def stop(progress: passes.Progress) -> None:
        if progress.step == "estimating":
            raise InterruptedRunError

    other = last.with_name("other.csv")
    pd.read_csv(last).iloc[:-30].to_csv(other, index=False)
    ask = {"metrics": "accuracy", "confidence_level": None, "workers": 1}
    for held in (False, True):

        def run(path: Path, held: bool = held, **more: Any) -> fl.Estimates:
            if not held:
                return fl.estimate_files(folder, reference=path, **ask, **more)
            aligned = reference_of(path, fl.read_predictions(folder))
            return fl.estimate_files(folder, LearnedEnsemble(reference=aligned), **ask, **more)

        with pytest.raises(InterruptedRunError):
            run(last, progress=stop)
        assert run(other, resume=True).diagnostics["stream"]["resumed"] == []
        assert run(last, resume=True).diagnostics["stream"]["resumed"] != []
