"""`fewlabels doctor`, `fewlabels methods`, and `--option`, by which settings reach commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fewlabels.methods.settings import settings_of
from fewlabels.models import METHODS

Run = Callable[..., tuple[int, str, str]]


FEW_DRAWS = ("--method", "bayesian-calibration", "--option", "n_draws=50")
COMMANDS = {
    "estimate": ["--metrics", "accuracy"],
    "compare": ["--metric", "accuracy"],
    "curve": ["--model", "good"],
    "threshold": ["--model", "good", "--min-recall", ".5"],
    "label-next": ["--model", "good", "--size", "2"],
    "shift": [],
}


def test_all_methods_are_listed(cli: Run) -> None:
    code, out, err = cli("methods")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if line[:1].isalpha()][1:] == ["auto", *METHODS]
    code, out, _ = cli("methods", "--json", "-")
    found = {one["name"]: one for one in json.loads(out)["methods"]}
    assert list(found) == ["auto", *METHODS]
    for name, method in METHODS.items():
        assert found[name]["summary"] == method.summary
        assert (found[name]["learns_from"], found[name]["streams"]) == (
            method.learns_from, method.streams,
        )  # fmt: skip


@pytest.mark.parametrize("name", ["auto", *METHODS])
def test_one_method(name: str, cli: Run, tmp_path: Path) -> None:
    code, out, err = cli("methods", name, "--json", tmp_path / "m.json")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    words = "".join(out.split())  # a line may be broken at a hyphen
    about = json.loads((tmp_path / "m.json").read_text())
    assert words.startswith("".join(f"{name}:{about['summary']}".split()))
    settings = {} if name == "auto" else settings_of(name)
    assert [s["name"] for s in about["settings"]] == list(settings)
    for setting in settings:
        assert f"{setting}=" in words
    if name != "auto":
        for sentence in (*METHODS[name].assumes, *METHODS[name].fails_when, METHODS[name].how):
            assert "".join(sentence.split()) in words


@pytest.mark.parametrize("command", COMMANDS)
def test_settings_reach_every_command_and_are_said(
    command: str, answer: Callable[..., dict[str, Any]], predictions_file: Path
) -> None:
    arguments = (command, predictions_file, *COMMANDS[command])
    changed = answer(*arguments, *FEW_DRAWS)
    assert changed["method"] == "bayesian-calibration"
    assert changed["diagnostics"]["settings"] == {"n_draws": 50}
    plain = answer(*arguments, *FEW_DRAWS[:2])
    assert "settings" not in plain.get("diagnostics", {})


@pytest.mark.parametrize("engine", ["memory", "threads"])
def test_settings_change_the_answer_whole_and_in_parts(
    engine: str, answer: Callable[..., dict[str, Any]], predictions_file: Path
) -> None:
    asked = ("estimate", predictions_file, "--metrics", "ece", "--engine", engine)
    kde = ("--method", "ssme-kde", "--option", "epochs=2", "--option", "bandwidth=scott")
    changed, plain = (answer(*asked, *method) for method in (kde, kde[:2]))
    assert changed["diagnostics"]["settings"] == {"bandwidth": "scott", "epochs": 2}
    assert changed["estimates"] != plain["estimates"]
