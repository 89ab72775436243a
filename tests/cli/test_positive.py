"""`--positive`, `--models`, the default metrics and `--require` of one classifier."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., tuple[int, str, str]]
Answer = Callable[..., dict[str, Any]]
Table = dict[str, list[Any]]


@pytest.fixture
def named(columns: Table, write: Callable[..., Path]) -> Path:
    """The table with classes by name."""
    names = {"0": "ham", "1": "spam"}
    table = {f"{k[:-1]}{names[k[-1]]}" if k[:3] == "p__" else k: v for k, v in columns.items()}
    known = [names.get(str(value).removesuffix(".0")) for value in columns["label"]]
    return write({**table, "label": known}, "named.csv")


def test_engines_have_the_same_positive_class(answer: Answer, named: Path) -> None:
    for command, options in (("estimate", ["--metrics", "recall"]), ("annotations", [])):
        asked = [command, named, *options, "--positive", "ham", "--engine"]
        whole, streamed = (answer(*asked, engine) for engine in ("memory", "threads"))
        assert streamed["classes"] == whole["classes"] == ["spam", "ham"]
        assert streamed["positive"] == whole["positive"] == "ham"


def test_a_threshold_is_of_the_positive_class(answer: Answer, named: Path) -> None:
    """A cut of P(ham) >= .9 calls fewer items ham than one of .1."""
    asked = ("--positive", "ham", "--metrics", "recall", "--method", "labeled")
    low, high = (answer("estimate", named, *asked, "--threshold", cut) for cut in ("0.1", "0.9"))
    assert low["estimates"][1]["value"] > high["estimates"][1]["value"]


@pytest.mark.parametrize(
    ("kept", "metrics", "engine"),
    [
        ("p__", ["accuracy", "ece", "roc_auc", "average_precision"], "memory"),
        ("s__", ["roc_auc", "average_precision"], "memory"),
        ("y__", ["accuracy", "cohen_kappa"], "threads"),
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
    # What only a requirement names comes after them, as asked.
    for more, wanted in (([], metrics), (["--require", "f1>=0"], [*metrics, "f1"])):
        out = cli("estimate", file, "--engine", engine, "--json", "-", *more)[1]
        found = [r["metric"] for r in json.loads(out)["estimates"] if r["model"] == "good"]
        assert found == wanted


@pytest.mark.parametrize("engine", ["memory", "threads"])
def test_requirements_of_one_classifier(cli: Run, predictions_file: Path, engine: str) -> None:
    ask = ["estimate", predictions_file, "--engine", engine, "--metrics", "accuracy"]
    good = json.loads(cli(*ask, "--json", "-")[1])["estimates"][0]
    assert good["model"] == "good"
    floor = f"{good['value'] - 1e-6:.9f}"
    assert cli(*ask, "--require", f"good:acc>={floor}")[0] == 0
    assert cli(*ask, "--require", f"good:accuracy>={floor}", "--require", "poor:acc<=.99")[0] == 0
    code, _, err = cli(*ask, "--require", f"acc>={floor}")
    assert code == 1
    assert err.startswith(f"not met: acc>={floor}: model 'poor' has ")
    code, _, err = cli(*ask, "--require", f"good:low:acc>={floor}")
    assert code == 1
    assert err.count("not met: good:low:acc") == 1
