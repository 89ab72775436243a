"""Files that people have: `doctor` and the command it prints take each to a right answer.

What is right is what a data scientist would mean by the file; it stands beside the files, in
`files/readings.json`.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ordinary_files import FILES, Classifier, OrdinaryFile
from sklearn.metrics import accuracy_score, roc_auc_score

import fewlabels as fl

Run = Callable[..., tuple[int, str, str]]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ordinary-files.md"
CLEAR = [name for name, file in FILES.items() if not file.refusal and not file.votes]
AMBIGUOUS = [name for name, file in FILES.items() if file.refusal]
VOTES = [name for name, file in FILES.items() if file.votes]
TOLERANCE = 1e-6


def canonical(text: Any) -> str:
    """Classes and names alike but for case, blanks and the zero of a float."""
    return re.sub(r"\.0$", "", str(text).strip().casefold())


def named(name: str, classifier: Classifier) -> bool:
    return not classifier.names or canonical(name) in map(canonical, classifier.names)


def values(predictions: fl.Predictions, m: int, answers: np.ndarray) -> dict[str, dict[str, float]]:
    """By kind of what is known of classifier m: its accuracy and area under the ROC curve."""
    labeled = answers >= 0
    weight = predictions.weight[labeled]
    of_two = len(predictions.classes) == 2
    column = predictions.classes.index(predictions.positive) if of_two else -1

    def accuracy(hard: np.ndarray) -> float:
        return float(accuracy_score(answers[labeled], hard[labeled], sample_weight=weight))

    def area(scores: np.ndarray) -> float:
        return float(
            roc_auc_score(answers[labeled] == column, scores[labeled], sample_weight=weight)
        )

    found: dict[str, dict[str, float]] = {}
    if predictions.probabilities is not None:
        p = predictions.probabilities[:, m]
        if np.isfinite(p).any():
            found["probabilities"] = {"accuracy": accuracy(p.argmax(axis=1))}
            if of_two:
                found["probabilities"]["roc_auc"] = area(p[:, column])
    if predictions.scores is not None and np.isfinite(predictions.scores[:, m]).any():
        found["score"] = {"roc_auc": area(predictions.scores[:, m])} if of_two else {}
    if predictions.votes is not None and (predictions.votes[:, m] >= 0).any():
        found["hard"] = {"accuracy": accuracy(predictions.votes[:, m])}
    return found


def agrees(name: str, kind: str, found: dict[str, float], classifier: Classifier) -> bool:
    return (
        named(name, classifier)
        and kind in classifier.kinds
        and all(
            math.isclose(value, getattr(classifier, metric), abs_tol=TOLERANCE)
            for metric, value in found.items()
            if getattr(classifier, metric) is not None
        )
    )


def check_predictions(predictions: fl.Predictions, reading: OrdinaryFile) -> None:
    """The arrays are those of the file's maker, whatever the classifiers are called."""
    classes = [canonical(c) for c in predictions.classes]
    assert sorted(classes) == sorted(map(canonical, reading.classes))
    index = {None: -1} | {canonical(c): classes.index(canonical(c)) for c in reading.classes}
    labels = np.array([index[label and canonical(label)] for label in reading.labels])
    answers = np.array([index[label and canonical(label)] for label in reading.answers])
    assert predictions.n_items == len(labels)
    if predictions.labels is None:
        assert reading.n_labels == 0
    else:
        np.testing.assert_array_equal(predictions.labels, labels)
    if reading.positive:
        assert canonical(predictions.positive) == canonical(reading.positive)
    # Without weights all items weigh the same.
    assert (np.ptp(predictions.weight) > 0) == reading.weighted
    assert set(reading.groups) <= set(predictions.groups or {})
    found = [
        (name, kind, metrics)
        for m, name in enumerate(predictions.models)
        for kind, metrics in values(predictions, m, answers).items()
    ]
    for row in found:
        assert any(agrees(*row, c) for c in reading.classifiers), f"nobody meant {row}"
    for classifier in reading.classifiers:
        assert any(agrees(*row, classifier) for row in found), f"{classifier} is not in {found}"


def check_estimates(output: str, reading: OrdinaryFile) -> None:
    """The values on standard output are those of the labeled items."""
    answer = json.loads(output)
    assert answer["n_items"] == len(reading.labels)
    assert answer["n_labeled"] == reading.n_labels
    if not reading.n_labels:
        return
    rows = {(row["model"], row["metric"]): row["value"] for row in answer["estimates"]}
    for classifier in reading.classifiers:
        metric = "accuracy" if classifier.roc_auc is None else "roc_auc"
        metrics = {metric} | ({"accuracy"} if classifier.kinds == ("probabilities",) else set())
        for metric in metrics:
            value = getattr(classifier, metric)
            got = [rows[m, metric] for m in answer["models"] if named(m, classifier)]
            assert any(v is not None and math.isclose(v, value, abs_tol=TOLERANCE) for v in got), (
                f"{metric} of {classifier} is not in {got}"
            )


def printed_command(text: str) -> list[str]:
    """The arguments of the one command that `doctor` prints, `fewlabels` left out."""
    lines = text.replace("\\\n", " ").splitlines()
    commands = [
        line.strip().removeprefix("$ ")
        for line in lines
        if line.strip().removeprefix("$ ").startswith("fewlabels estimate ")
    ]
    assert len(commands) == 1, text
    return shlex.split(commands[0])[1:]


def options(reading: OrdinaryFile) -> list[str]:
    """What is asked of the command: the labeled items alone, where there are any."""
    method = "labeled" if reading.n_labels else "ensemble"
    asked = ["--metrics", "accuracy,roc_auc", "--method", method, "--confidence-level", "0.9"]
    return [*asked, "--json", "-"]


def done(cli: Run, *arguments: str | Path) -> str:
    """Standard output of a command that must succeed."""
    code, out, err = cli(*arguments)
    if "fewlabels[excel]" in err:
        pytest.skip("Excel needs the extra `excel`")
    assert code == 0, err or out
    return out


@pytest.mark.few(14)
@pytest.mark.parametrize("name", CLEAR)
def test_doctor_prints_a_command_that_works(name: str, cli: Run) -> None:
    written = FILES[name]
    command = printed_command(done(cli, "doctor", written.path))
    check_estimates(done(cli, *command, *options(written)), written)


@pytest.mark.few(14)
@pytest.mark.parametrize("name", CLEAR)
def test_doctor_writes_the_columns(name: str, cli: Run, tmp_path: Path) -> None:
    written = FILES[name]
    columns = tmp_path / "columns.toml"
    done(cli, "doctor", written.path, "--write", columns)
    check_predictions(fl.read_predictions(written.path, columns=columns), written)


@pytest.mark.few(14)
@pytest.mark.parametrize("name", CLEAR)
def test_read_as_it_is(name: str, cli: Run) -> None:
    written = FILES[name]
    check_estimates(done(cli, "estimate", written.path, *options(written)), written)
    check_predictions(fl.read_predictions(written.path), written)


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_two_readings_are_refused(name: str, cli: Run) -> None:
    written = FILES[name]
    code, out, err = cli("estimate", written.path)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert len(err.splitlines()) == 1, err
    for word in written.refusal:
        assert word in err
    with pytest.raises(fl.InputError):
        fl.read_predictions(written.path)


@pytest.mark.parametrize("name", VOTES)
def test_doctor_knows_votes(name: str, cli: Run) -> None:
    written = FILES[name]
    command = printed_command(done(cli, "doctor", written.path))
    assert "--votes" in command
    check_votes(done(cli, *command, *vote_options(written)), written)


@pytest.mark.parametrize("name", VOTES)
def test_votes_are_no_table_of_items(name: str, cli: Run) -> None:
    """They are read as votes, or the way to say so is shown."""
    written = FILES[name]
    code, out, err = cli("estimate", written.path, *vote_options(written))
    if code:
        assert (code, out) == (2, "")
        assert "--votes" in err
    else:
        check_votes(out, written)


def vote_options(reading: OrdinaryFile) -> list[str]:
    method = "labeled" if reading.n_labels else "majority-vote"
    return ["--metrics", "accuracy", "--method", method, "--json", "-"]


def check_votes(output: str, reading: OrdinaryFile) -> None:
    """Every worker is a classifier, every item counts once."""
    answer = json.loads(output)
    names = [c.names[0] for c in reading.classifiers]
    assert sorted(answer["models"]) == sorted(names)
    assert sorted(map(canonical, answer["classes"])) == sorted(map(canonical, reading.classes))
    check_estimates(output, reading)


def test_the_page_lists_every_file() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| (.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(name, file.about) for name, file in FILES.items()]
