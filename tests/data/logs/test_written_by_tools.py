"""Logs that the tools themselves write in this run: `make test-logs` installs them.

FEWLABELS_LOGS_PYTHON names the interpreter that has them, FEWLABELS_PROMPTFOO the command of npm.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tools import JUDGE, LABELED, OTHER, TRUTH, N, is_labeled

import fewlabels as fl
from fewlabels.errors import InputError

PYTHON = os.environ.get("FEWLABELS_LOGS_PYTHON")
PROMPTFOO = os.environ.get("FEWLABELS_PROMPTFOO") or shutil.which("promptfoo")

pytestmark = pytest.mark.skipif(
    PYTHON is None, reason="the tools are not installed: make test-logs, or FEWLABELS_LOGS_PYTHON"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of what a tool writes, made once."""
    folders: dict[str, Path] = {}

    def of(tool: str) -> Path:
        if tool not in folders:
            folders[tool] = tmp_path_factory.mktemp(tool)
            if tool == "promptfoo" and PROMPTFOO is None:
                pytest.skip("promptfoo is not installed")
            command = [str(PYTHON), str(Path(__file__).with_name("tools.py")), tool]
            environment = os.environ | {"FEWLABELS_PROMPTFOO": PROMPTFOO or ""}
            environment.pop("PYTHONPATH", None)
            done = subprocess.run(
                [*command, str(folders[tool])], capture_output=True, text=True, env=environment,
                check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr[-2000:]
        return folders[tool]

    return of


def says(predictions, model, verdicts, truth=TRUTH) -> None:
    """That a classifier has these verdicts, and people these labels, in the order of the items."""
    positive = predictions.classes.index(predictions.positive)
    hard = predictions.hard[:, predictions.models.index(model)]
    assert ((hard == positive) == np.array(verdicts)).all()
    known = np.array([is_labeled(i) for i in range(N)])
    assert predictions.n_items == N
    assert predictions.n_labeled == known.sum() == LABELED
    assert ((predictions.labels[known] == positive) == np.array(truth)[known]).all()


@pytest.mark.parametrize("file", ["edited.eval", "edited.json"])
def test_inspect(made, file):
    """The judge's verdict is that of before the edit; NaN is unscored; an object is criteria."""
    path = made("inspect") / file
    found = fl.read_predictions(f"{path}#judge")
    says(found, "judge", JUDGE)
    assert any("(2 changed, 22 confirmed)" in note for note in found.notes)
    helpful = fl.read_predictions(f"{path}#grades/helpful")
    assert helpful.n_items == N - 1
    assert any("1 verdicts of code are empty, NaN or long texts" in note for note in helpful.notes)
    # The one criterion that people labeled is meant where nothing is said.
    assert fl.read_predictions(path).models == ("judge",)


def test_inspect_epochs_and_invalid_samples(made):
    folder = made("inspect")
    found = fl.read_predictions(f"{folder / 'epochs.eval'}#judge", keep=["item"])
    assert any("60 repeats are left out" in note for note in found.notes)
    numbers = [int(item.partition("_")[0]) for item in found.groups["item"]]
    found = found.take(np.argsort(numbers))
    says(found, "judge", JUDGE)
    labeled = [str(i) for i in range(N) if is_labeled(i)]
    items = found.groups["item"][found.labeled].tolist()
    assert items == [f"{i}_epoch_{1 + int(i) % 2}" for i in labeled]
    everything = fl.read_predictions(f"{folder / 'epochs.eval'}#judge&repeats=all")
    assert everything.n_items == 2 * N
    assert any("intervals are too narrow" in note for note in everything.notes)
    invalid = fl.read_predictions(f"{folder / 'invalid.eval'}#judge")
    assert invalid.n_items == N - 1
    assert "1 samples were invalidated and are left out" in invalid.notes


def test_a_folder_of_runs_of_inspect(made):
    """Samples of several runs are answers of several systems, whatever their numbers."""
    assert fl.read_predictions(f"{made('inspect') / 'runs'}#judge").n_items == 2 * N


@pytest.mark.parametrize("file", ["traces.json", "traces.jsonl", "frame.json", "frame.jsonl"])
def test_mlflow(made, file):
    """What a person overrides stays the judge's verdict; an expectation is a label."""
    path = made("mlflow") / file
    with pytest.raises(InputError, match=r"has 2 criteria: 'correct' .* 'polite' .*--criterion"):
        fl.read_predictions(path)
    found = fl.read_predictions(f"{path}#correct")
    order = range(N) if file.startswith("traces") else None
    if order is not None:
        says(found, "gpt", JUDGE)
        says(found, "small", OTHER)
    assert (found.models, found.n_labeled) == (("gpt", "small"), LABELED)
    accuracy = fl.estimate(found, "labeled", ["accuracy"], estimand="sample").get("gpt", "accuracy")
    known = [i for i in range(N) if is_labeled(i)]
    assert accuracy.value == pytest.approx(np.mean([TRUTH[i] == JUDGE[i] for i in known]))
    polite = fl.read_predictions(f"{path}#polite")
    assert polite.classes == (1, 2, 3, 4, 5)
    assert polite.n_labeled == LABELED


def test_label_studio(made):
    """Cancelled annotations are no labels; a person who saw the prediction is warned of."""
    found = fl.read_predictions(made("label_studio") / "export.json")
    says(found, "gpt", JUDGE)
    assert "7 annotations were cancelled (skipped) and are left out" in found.notes
    assert any(note.startswith("10 of 24 labels were made on top of a prediction")
               for note in found.notes)  # fmt: skip
    assert "labels: alice@example.org, 7, of 24 items" in found.reading


def test_lm_eval(made):
    """Models meet by the document; log-likelihoods are probabilities; one filter at a time."""
    folder = made("lm_eval")
    found = fl.read_predictions(folder)
    assert found.models == ("large", "small")
    assert found.classes == (0, 1, 2, 3)
    hard = found.hard == found.labels[:, None]
    assert (hard[:, 0] == TRUTH).all()
    assert (hard[:, 1] == JUDGE).all()
    likelihoods = np.exp([-1.0, -3.0, -3.0, -3.0])
    assert np.allclose(np.sort(found.probabilities[0, 0])[::-1], likelihoods / likelihoods.sum())
    one = folder / "small" / "samples_sums_2026-01-01T00-00-00.000000.jsonl"
    with pytest.raises(InputError, match=r"'sums, strict-match' .*'sums, flexible-extract'"):
        fl.read_predictions(one)
    strict = fl.read_predictions(f"{one}#sums, strict-match")
    assert (strict.n_items, strict.models) == (N, ("exact_match",))
    fine = [JUDGE[i] and i % 5 > 0 for i in range(N)]
    assert ((strict.hard[:, 0] == 1) == fine).all()


def test_deepeval(made):
    """Verdicts by metric; test cases of one name are several; an error is no verdict."""
    path = made("deepeval") / "test_run.json"
    found = fl.read_predictions(f"{path}#Correctness [GEval]")
    assert (found.n_items, found.models) == (N, ("gpt-4.1",))
    assert ((found.hard[:, 0] == found.classes.index("pass")) == JUDGE).all()
    other = fl.read_predictions(f"{path}#Faithfulness")
    assert other.n_items == N - 1
    assert "1 judgments ended in an error and are left out" in other.notes
    labels = {"item": [f"case {i}" for i in range(20)], "label": ["pass"] * 20}
    known = fl.read_predictions(f"{path}#Correctness [GEval]", labels=labels)
    assert known.n_labeled == 20


def test_argilla(made):
    """Submitted responses alone are labels; the nested export does not say which those are."""
    folder = made("argilla")
    found = fl.read_predictions(folder / "flat.json")
    says(found, "gpt", JUDGE)
    assert "6 responses are drafts and are left out" in found.notes
    assert "6 responses are discarded and are left out" in found.notes
    nested = fl.read_predictions(folder / "nested.json")
    assert any("does not say which responses are drafts" in note for note in nested.notes)


def test_promptfoo(made):
    """A thumb overwrites the result; the judge is among the other components."""
    folder = made("promptfoo")
    found = fl.read_predictions(folder / "thumbs.json")
    says(found, "judge", JUDGE)
    says(found, "other", OTHER)
    both = [a and b for a, b in zip(JUDGE, OTHER, strict=True)]
    says(found, "all assertions", both)
    plain = fl.read_predictions(folder / "plain.json")
    assert plain.n_labeled == 0
    assert (plain.hard == found.hard).all()


@pytest.mark.parametrize("file", ["annotations.csv", "rows.json"])
def test_phoenix(made, file):
    found = fl.read_predictions(made("phoenix") / file)
    says(found, "llm", JUDGE)
    says(found, "code", OTHER)


def test_langfuse(made):
    path = made("langfuse") / "scores.json"
    says(fl.read_predictions(f"{path}#correct"), "correct", JUDGE)
    tone = fl.read_predictions(f"{path}#tone", positive="friendly")
    says(tone, "tone", JUDGE)
