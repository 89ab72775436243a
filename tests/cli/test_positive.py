"""`--positive`, `--models`, the default metrics and `--require` of one classifier."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., tuple[int, str, str]]
Table = dict[str, list[Any]]
COMMANDS = {
    "estimate": ["--metrics", "accuracy"],
    "compare": [],
    "curve": ["--model", "good"],
    "threshold": ["--model", "good", "--min-recall", ".5"],
    "label-next": ["--model", "good"],
    "shift": [],
    "backtest": ["--labels", "10", "--runs", "1", "--metrics", "accuracy"],
    "annotations": [],
    "doctor": [],
}


@pytest.fixture
def named(columns: Table, write: Callable[..., Path]) -> Path:
    """The table with classes by name."""
    names = {"0": "ham", "1": "spam"}
    table = {f"{k[:-1]}{names[k[-1]]}" if k[:3] == "p__" else k: v for k, v in columns.items()}
    known = [names.get(str(value).removesuffix(".0")) for value in columns["label"]]
    return write({**table, "label": known}, "named.csv")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_and_tells_the_positive_class(
    command: str, cli: Run, named: Path
) -> None:
    arguments = [command, named, *COMMANDS[command]]
    for said, positive in (([], "spam"), (["--positive", "ham"], "ham")):
        code, out, err = cli(*arguments, *said, "--json", "-")
        assert code == 0, err
        assert json.loads(out)["positive"] == positive
        code, out, _ = cli(*arguments, *said)
        where = out if command in ("estimate", "doctor") else out.split("\n\n")[0].split("\n")[0]
        assert code == 0
        assert positive in where
    code, out, err = cli(*arguments, "--positive", "hamm")
    assert code == 2
    assert "unknown class 'hamm'; did you mean 'ham'? choose from ham, spam" in err
    assert err.count("\n") == 1


def test_engines_have_the_same_positive_class(cli: Run, named: Path) -> None:
    for command, options in (("estimate", ["--metrics", "recall"]), ("annotations", [])):
        asked = [command, named, *options, "--positive", "ham", "--json", "-", "--engine"]
        whole, streamed = (json.loads(cli(*asked, engine)[1]) for engine in ("memory", "threads"))
        assert streamed["classes"] == whole["classes"] == ["spam", "ham"]
        assert streamed["positive"] == whole["positive"] == "ham"


def test_a_threshold_is_of_the_positive_class(cli: Run, named: Path) -> None:
    """A cut of P(ham) >= .9 calls fewer items ham than one of .1."""
    found = []
    for cut in ("0.1", "0.9"):
        out = cli(
            "estimate", named, "--positive", "ham", "--threshold", cut, "--metrics", "recall",
            "--method", "labeled", "--models", "poor", "--json", "-",
        )[1]  # fmt: skip
        found.append(json.loads(out)["estimates"][0]["value"])
    assert found[0] > found[1]


@pytest.mark.parametrize(
    ("kept", "metrics", "engine"),
    [
        ("p__", ["accuracy", "ece", "roc_auc", "average_precision"], "memory"),
        ("s__", ["roc_auc", "average_precision"], "memory"),
        ("y__", ["error_rate", "cohen_kappa"], "threads"),
    ],
)
def test_the_default_metrics_follow_the_file(
    cli: Run, columns: Table, write: Callable[..., Path], engine: str, kept: str,
    metrics: list[str],
) -> None:  # fmt: skip
    table: Table = {"label": columns["label"]}
    for model in ("good", "poor"):
        p = columns[f"p__{model}__1"]
        table |= {f"p__{model}__1": p, f"s__{model}": p}
        table[f"y__{model}"] = [int(float(x) > 0.5) for x in p]
    file = write({k: v for k, v in table.items() if k == "label" or k.startswith(kept)})
    code, out, err = cli("estimate", file, "--engine", engine, "--json", "-")
    assert code == 0, err
    found = [r["metric"] for r in json.loads(out)["estimates"] if r["model"] == "good"]
    assert found == metrics
    # What only a requirement names comes after them, as asked.
    out = cli("estimate", file, "--engine", engine, "--json", "-", "--require", "f1>=0")[1]
    found = [r["metric"] for r in json.loads(out)["estimates"] if r["model"] == "good"]
    assert found == [*metrics, "f1"]


@pytest.mark.parametrize("engine", ["memory", "threads"])
def test_requirements_of_one_classifier(cli: Run, predictions_file: Path, engine: str) -> None:
    ask = ["estimate", predictions_file, "--engine", engine, "--metrics", "accuracy"]
    good = json.loads(cli(*ask, "--json", "-")[1])["estimates"][0]
    assert good["model"] == "good"
    floor = f"{good['value'] - 1e-6:.9f}"
    assert cli(*ask, "--require", f"good:acc>={floor}")[0] == 0
    assert cli(*ask, "--require", f"good:accuracy>={floor}", "--require", "poor:acc<=1")[0] == 0
    code, _, err = cli(*ask, "--require", f"acc>={floor}")
    assert code == 1
    assert err.startswith(f"not met: acc>={floor}: model 'poor' has ")
    code, _, err = cli(*ask, "--require", f"good:low:acc>={floor}")
    assert code == 1
    assert err.count("not met: good:low:acc") == 1
    code, out, err = cli(*ask, "--require", "goood:acc>=.1")
    assert (code, out) == (2, "")
    assert "unknown model 'goood'; did you mean 'good'?" in err
    # A classifier that is left out is none to ask about.
    assert cli(*ask, "--models", "poor", "--require", "good:acc>=.1")[0] == 2


def test_annotations_take_requirements_of_one_classifier(cli: Run, predictions_file: Path) -> None:
    assert cli("annotations", predictions_file, "--require", "good:L<=9")[0] == 0
    code, _, err = cli("annotations", predictions_file, "--require", "god:L<=9")
    assert code == 2
    assert "unknown model 'god'; did you mean 'good'?" in err
