"""What decides an exit code, or ends labeling: nothing passes that is not to be trusted."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from fewlabels.annotations import Assessment
from fewlabels.checks.conditions import parse_requirement
from fewlabels.cli.app import app
from fewlabels.errors import Status, UsageError
from fewlabels.estimates import Estimate, Estimates
from fewlabels.evaluation.status import Verdict
from fewlabels.labeling.stopping import Row, parse_stops
from fewlabels.metrics.registry import bounds_of
from fewlabels.questions.calibration_curve import CalibrationCurves
from fewlabels.questions.over_time import Monitoring
from fewlabels.questions.question import OneClassifier

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., Path]
Columns = dict[str, list[Any]]

REFUSED = [Status.CONTRADICTED, Status.NOT_CONVERGED, Status.UNDEFINED]
PASSING = [Status.OK, Status.FEW_LABELS, Status.ASSUMPTION]


class Answer:
    """Estimates of one classifier."""

    models = ("m",)

    def __init__(self, status: Status, **diagnostics: Any) -> None:
        self.status, self.diagnostics = status, diagnostics

    def get(self, model: str, metric: str) -> Estimate:
        return Estimate(model, metric, None, 0.98, 0.97, 0.99, 0.95, self.status)


CONDITIONS = ["accuracy>=.82", "low:m:accuracy>=.82", "high:accuracy<=1", "width:accuracy<.5"]


@pytest.mark.parametrize("text", CONDITIONS)
@pytest.mark.parametrize("status", [*REFUSED, *PASSING])
def test_a_status_decides_before_the_numbers(text: str, status: Status) -> None:
    failures = parse_requirement(text).failures(Answer(status))
    assert len(failures) == (status in REFUSED)
    assert all(f"is {status}: {status.message}" in line for line in failures)


@pytest.mark.parametrize("text", CONDITIONS)
def test_labels_that_are_no_random_sample_decide_too(text: str) -> None:
    finding = {
        "p_value": 0.001, "difference": "m is more confident on labeled items",
        "remedy": "--shift auto corrects by weights",
    }  # fmt: skip
    (line,) = parse_requirement(text).failures(Answer(Status.OK, not_a_random_sample=finding))
    assert line.endswith(
        "; labeled items are shown not to be a random sample (p = 0.001: m is more confident on "
        "labeled items), and nothing corrects for it; --shift auto corrects by weights"
    )


COMMANDS: dict[str, tuple[type, str, str]] = {
    "estimate": (Estimates, "accuracy>=0", "good"),
    "annotations": (Assessment, "L<=1.9", "good"),
    "calibration": (CalibrationCurves, "ece<=.99", "good"),
    "monitor": (Monitoring, "accuracy>=0", "good"),
    "rank": (Estimates, "win_rate>=0", "good"),
}
"""Commands with --require: their result, and a condition that anything meets."""


def test_each_command_with_conditions_is_here() -> None:
    found = {
        name
        for name, command in app.commands.items()
        for param in command.get_params(click.Context(command))
        if param.name == "require"
    }
    assert found == COMMANDS.keys()


@pytest.mark.few(8)
@pytest.mark.parametrize("status", [*REFUSED, Status.FEW_LABELS])
@pytest.mark.parametrize("command", COMMANDS)
def test_exit_codes(
    command: str, status: Status, cli: Run, columns: Columns, write: Write,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    n = len(next(iter(columns.values())))
    pairs = {"model_a": ["good", "bad"] * (n // 2), "model_b": ["bad", "good"] * (n // 2)}
    of_pairs = pairs if command == "rank" else {}
    years = [2020 + i % 2 for i in range(n)]
    predictions_file = write({**columns, **of_pairs, "year": years})
    kind, condition, model = COMMANDS[command]
    get = kind.get

    def judged(self: Any, name: str, metric: str, group: str | None = None) -> Estimate:
        row: Estimate = get(self, name, metric, group)
        return row._replace(status=status) if name == model else row

    monkeypatch.setattr(kind, "get", judged)
    timed = ["--time", "year"] if command == "monitor" else []
    code, _, err = cli(command, predictions_file, *timed, "--require", condition)
    lines = [line for line in err.splitlines() if line.startswith("not met: ")]
    assert (code, len(lines)) == ((1, 1) if status in REFUSED else (0, 0))
    assert all(f"model '{model}' has " in line and str(status) in line for line in lines)


IDLE = {
    "estimate": "high:error_rate<=5", "annotations": "L<=20", "calibration": "ece<=5",
    "monitor": "low:acc>=90", "rank": "win_rate>=55",
}  # fmt: skip
"""What somebody writes who thinks of percent."""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_condition_that_decides_nothing_is_refused(
    command: str, cli: Run, predictions_file: Path
) -> None:
    timed = ["--time", "year"] if command == "monitor" else []
    code, out, err = cli(command, predictions_file, *timed, "--require", IDLE[command])
    (line,) = err.splitlines()
    assert (code, out) == (2, "")
    assert re.search(rf"'{IDLE[command]}': \w+ is between .* value meets it; for \d+% write", line)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("accuracy<=1", "every value meets it; for 1% write 0.01"),
        ("accuracy>1", "no value meets it; for 1% write 0.01"),
        ("accuracy>-1", "every value meets it"),
        ("accuracy<0", "no value meets it"),
        ("accuracy>=500%", "no value meets it"),
        ("width:mcc<=2", "the width of mcc is between 0 and 2, so every value meets it; for 2% "),
        ("mcc<=40", "mcc is between -1 and 1, so every value meets it; for 40% write 0.4"),
        ("log_loss<-1", "log_loss is between 0 and inf, so no value meets it"),
    ],
)
def test_what_no_value_or_every_one_meets(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)) as caught:
        parse_requirement(text, bounds_of)
    assert ("write" in str(caught.value)) == ("write" in said or text.startswith("width"))


@pytest.mark.parametrize(
    "text", ["accuracy>=1", "f1>=0", "high:ece<=0", "log_loss<=5", "low:mcc>=0", "mine<=9"]
)
def test_what_decides_is_taken(text: str) -> None:
    """The lower end, too: what is not to be trusted does not meet it."""
    assert parse_requirement(text, bounds_of).text == text


@pytest.fixture
def chosen(write: Write) -> Path:
    """The items that a classifier is sure of are labeled."""
    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=400)
    p = 1 / (1 + np.exp(-((2 * truth - 1) * 1.2 + rng.standard_normal(400))))
    labeled = np.argsort(-np.abs(p - 0.5))[:60]
    label = ["" if i not in labeled else int(y) for i, y in enumerate(truth)]
    return write({"label": label, "p__m__1": p.round(6).tolist()}, "chosen.csv")


@pytest.mark.parametrize("engine", ["memory", "threads"])
def test_a_selected_sample_passes_nothing_unless_it_is_corrected(
    cli: Run, chosen: Path, tmp_path: Path, engine: str
) -> None:
    junit = tmp_path / "junit.xml"
    base = ("estimate", chosen, "--metrics", "accuracy", "--method", "labeled",
            "--require", "low:accuracy>=.01", "--junit", junit)  # fmt: skip
    code, _, err = cli(*base, "--engine", engine)
    assert code == 1
    (line,) = (line for line in err.splitlines() if line.startswith("not met: "))
    assert "not to be a random sample (p = 0.00" in line
    (failure,) = ET.parse(junit).iter("failure")
    assert failure.text == failure.attrib["message"] == line
    if engine == "memory":
        code, _, err = cli(*base, "--shift", "auto")
        assert (code, err) == (0, "")
        assert not list(ET.parse(junit).iter("failure"))


Annotated = Callable[..., Path]


@pytest.fixture
def annotated(write: Write) -> Annotated:
    """Three annotators' counts for 80 of 600 items: those of the highest scores, or any."""

    def make(seed: int, *, chosen: bool, by_vote: bool = False) -> Path:
        rng = np.random.default_rng(seed)
        p = rng.beta(0.8, 1.2, 600).round(6)
        counts = rng.binomial(3, p)
        there = np.argsort(-p)[:80] if chosen else rng.choice(600, 80, replace=False)
        told = np.isin(np.arange(600), there)
        columns = {
            f"h__{k}": [int(n) if t else "" for n, t in zip(of, told, strict=True)]
            for k, of in enumerate((3 - counts, counts))
        }
        if by_vote:
            columns = {
                "y__person": [n // 2 if t else "" for n, t in zip(counts, told, strict=True)]
            }
        weight = np.where(told, 1.0, 2.0).tolist()
        return write({**columns, "p__m__1": p.tolist(), "w": weight}, f"{seed}.csv")

    return make


OF_ANNOTATORS = {
    "losses": ("annotations", "--require", "L<=1.9"),
    "accuracy": (
        "estimate", "--against", "distribution", "--metrics", "accuracy", "--method", "labeled",
        "--require", "accuracy>=0",
    ),
}  # fmt: skip
"""Commands on annotators' labels, with a condition that anything meets."""


@pytest.mark.parametrize("engine", ["memory", "threads"])
@pytest.mark.parametrize("what", OF_ANNOTATORS)
def test_annotated_items_that_were_chosen_pass_nothing(
    cli: Run, annotated: Annotated, what: str, engine: str
) -> None:
    command, *options = OF_ANNOTATORS[what]
    path = annotated(0, chosen=True)
    code, out, err = cli(command, path, *options, "--engine", engine)
    (line,) = (line for line in err.splitlines() if line.startswith("not met: "))
    assert code == 1
    assert "not to be a random sample (p = 0.001: class 1 is predicted for" in line
    assert line.endswith("or give sampling weights (--weight COL)")
    assert "do not look like a random sample of all items" in " ".join(out.split())
    code, _, err = cli(command, path, *options, "--engine", engine, "--weight", "w")
    assert (code, err) == (0, "")


def test_items_that_somebody_chose_to_vote_on_pass_nothing(cli: Run, annotated: Annotated) -> None:
    for engine in ("memory", "threads"):
        path = annotated(0, chosen=True, by_vote=True)
        code, _, err = cli("annotations", path, "--require", "L<=1.9", "--engine", engine)
        assert (code, "not to be a random sample" in err) == (1, True)


@pytest.mark.parametrize("what", OF_ANNOTATORS)
def test_annotated_items_drawn_at_random_pass(cli: Run, annotated: Annotated, what: str) -> None:
    command, *options = OF_ANNOTATORS[what]
    for seed in range(5):
        code, _, err = cli(command, annotated(seed, chosen=False), *options)
        assert (code, err) == (0, "")


def test_junit_says_why_a_contradicted_row_fails(
    cli: Run, tmp_path: Path, predictions_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    get = Estimates.get
    monkeypatch.setattr(
        Estimates, "get", lambda *asked: get(*asked)._replace(status=Status.CONTRADICTED)
    )
    junit = tmp_path / "junit.xml"
    code, _, _ = cli("estimate", predictions_file, "--require", "low:accuracy>=0", "--junit", junit)
    assert code == 1
    failures = list(ET.parse(junit).iter("failure"))
    assert len(failures) == 2
    assert all(Status.CONTRADICTED.message in (one.text or "") for one in failures)


@pytest.mark.parametrize("status", [*REFUSED, Status.FEW_LABELS])
def test_a_threshold(
    status: Status, cli: Run, predictions_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OneClassifier, "verdict", lambda *_: Verdict(status))
    options = ("--model", "good", "--min-precision", "0", "--probability", "0")
    code, _, err = cli("threshold", predictions_file, *options)
    assert code == (status in REFUSED)
    assert (f", which is {status}: {status.message}" in err) == (status in REFUSED)


@pytest.mark.parametrize("text", ["low:accuracy>=.8", "high:accuracy<=.995", "width:accuracy<=.5"])
@pytest.mark.parametrize("status", [*REFUSED, *PASSING])
def test_labeling_goes_on(text: str, status: Status) -> None:
    (stop,) = parse_stops([text], ["accuracy"], ["a", "b"])
    rows = [
        Row("a", "accuracy", 0.95, 0.9, 0.99, Status.OK, (0.85, 0.99)),
        Row("b", "accuracy", 0.95, 0.9, 0.99, status, (0.85, 0.99)),
    ]
    verdict = stop.verdict(rows, 50)
    assert verdict.met == (status in PASSING)
    if status in REFUSED:
        assert verdict.labels is None
        assert verdict.why == f"go on: accuracy of b is {status}: {status.message}"
