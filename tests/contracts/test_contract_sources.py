"""Every public function takes a path or frame where it takes predictions, and a positive class."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewlabels as fl

Ask = Callable[..., Any]

QUICK = {"method": "ensemble"}
FUNCTIONS: dict[str, Ask] = {
    "estimate": lambda p, **k: fl.estimate(p, metrics="accuracy", **QUICK, **k).to_dict(),
    "compare": lambda p, **k: fl.compare(p, **QUICK, **k).to_dict(),
    "backtest": lambda p, **k: fl.backtest(p, 10, 1, metrics="accuracy", **k).to_dict(),
    "shift": lambda p, **k: fl.shift(p, **k).to_dict(),
    "assess": lambda p, **k: fl.annotations.assess(p, confidence_level=None, **k).to_dict(),
    "calibration_curve": lambda p, **k: fl.calibration_curve(p, **QUICK, **k).report(),
    "curve": lambda p, **k: fl.curve(p, "a", **QUICK, **k).report(),
    "curves": lambda p, **k: fl.curves(p, "a", **QUICK, **k).report(),
    "threshold": lambda p, **k: fl.threshold(p, "a", min_recall=0.5, **QUICK, **k).report(),
    "label_next": lambda p, **k: fl.label_next(p, "a", 2, **QUICK, **k).report(),
}


def table(classes: int = 2, n: int = 80) -> dict[str, list[Any]]:
    rng = np.random.default_rng(0)
    names = ["cat", "dog", "ham"][:classes]
    truth = rng.integers(classes, size=n)
    out: dict[str, list[Any]] = {
        "label": [names[k] if i < 30 else None for i, k in enumerate(truth)]
    }
    for model, sharp in (("a", 2.0), ("b", 1.0)):
        logits = sharp * np.eye(classes)[truth] + rng.normal(size=(n, classes))
        p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        out |= {f"p__{model}__{name}": p[:, k].tolist() for k, name in enumerate(names)}
    return out


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_path_frame_and_predictions_give_the_same(name: str, tmp_path: Path) -> None:
    frame, path = pd.DataFrame(table()), tmp_path / "p.csv"
    frame.to_csv(path, index=False)
    ask = FUNCTIONS[name]
    expected = ask(fl.read_predictions(path))
    assert same(ask(path), expected)
    assert same(ask(str(path)), expected)
    assert same(ask(frame), expected)
    assert expected["positive"] == "dog"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_columns_go_with_a_source_alone(name: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(table()).rename(columns={"label": "gold"})
    said = tmp_path / "columns.toml"
    said.write_text('label = "gold"\n', encoding="utf-8")
    found = FUNCTIONS[name](frame, columns=said)
    assert found["n_labeled"] == 30
    with pytest.raises(fl.UsageError, match="`columns` says what the columns"):
        FUNCTIONS[name](fl.read_predictions(frame, columns=said), columns=said)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_positive_class_is_said_and_told(name: str) -> None:
    predictions = fl.read_predictions(pd.DataFrame(table()))
    assert FUNCTIONS[name](predictions, positive="cat")["positive"] == "cat"
    with pytest.raises(fl.UsageError, match="unknown class 'bird'; choose from cat, dog"):
        FUNCTIONS[name](predictions, positive="bird")


@pytest.mark.parametrize("name", ["estimate", "compare", "shift", "assess"])
def test_of_more_classes_the_positive_one_is_judged_against_the_rest(name: str) -> None:
    predictions = fl.read_predictions(pd.DataFrame(table(3)))
    ask = FUNCTIONS[name]
    assert ask(predictions)["positive"] is None
    found = ask(predictions, positive="dog")
    assert (found["positive"], found["classes"]) == ("dog", ["not dog", "dog"])
    said = "class 'dog' is judged against the other 2 taken together"
    assert [w for w in found["warnings"] if w == said] == [said]
    assert said not in ask(predictions)["warnings"]


def test_the_positive_class_turns_the_metrics() -> None:
    predictions = fl.read_predictions(pd.DataFrame(table()))
    metrics = ["accuracy", "recall", "specificity", "roc_auc"]
    straight = fl.estimate(predictions, "labeled", metrics)
    turned = fl.estimate(predictions, "labeled", metrics, positive="cat")
    assert turned.classes == ("dog", "cat")
    assert turned.positive == "cat"
    for a, b in zip(metrics, ["accuracy", "specificity", "recall", "roc_auc"], strict=True):
        assert turned.get("a", a).value == pytest.approx(straight.get("a", b).value, abs=1e-12)


@pytest.mark.parametrize(
    "function", [fl.estimate, fl.compare, fl.calibration_curve, fl.curve, fl.curves, fl.threshold,
                 fl.shift, fl.annotations.assess, fl.estimate_files],
)  # fmt: skip
def test_defaults_are_95_percent_and_the_population(function: Ask) -> None:
    known = inspect.signature(function).parameters
    assert known["confidence_level"].default == 0.95
    if "estimand" in known:
        assert known["estimand"].default == "population"


@pytest.mark.parametrize("classes", [2, 3])
def test_a_stream_has_the_positive_class_that_memory_has(classes: int, tmp_path: Path) -> None:
    pd.DataFrame(table(classes)).to_csv(tmp_path / "p.csv", index=False)
    path = tmp_path / "p.csv"
    streamed = fl.estimate_files(path, "ensemble", ["recall", "mcc"], positive="cat")
    whole = fl.estimate(path, "ensemble", ["recall", "mcc"], positive="cat")
    assert (streamed.classes, streamed.positive) == (whole.classes, "cat")
    for row in whole.rows:
        found = streamed.get(row.model, row.metric)
        assert found.value == pytest.approx(row.value, abs=1e-3)
    said = [w for w in streamed.warnings if "judged against the other" in w]
    assert len(said) == (classes == 3)
    with pytest.raises(fl.UsageError, match="unknown class 'bird'"):
        fl.estimate_files(path, positive="bird")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("kept", "metrics"),
    [
        ("p__", ["accuracy", "ece", "roc_auc", "average_precision"]),
        ("s__", ["roc_auc", "average_precision"]),
        ("y__", ["accuracy", "cohen_kappa"]),
        (("s__", "y__"), ["accuracy", "cohen_kappa", "roc_auc", "average_precision"]),
    ],
)
def test_a_stream_has_the_default_metrics_that_memory_has(
    kept: Any, metrics: list[str], tmp_path: Path
) -> None:
    columns = table()
    columns |= {f"s__{m}": columns[f"p__{m}__dog"] for m in "ab"}
    columns |= {f"y__{m}": ["dog" if p > 0.5 else "cat" for p in columns[f"s__{m}"]] for m in "ab"}
    frame = pd.DataFrame({k: v for k, v in columns.items() if k == "label" or k.startswith(kept)})
    frame.to_parquet(tmp_path / "p.parquet")
    for found in (
        fl.estimate(frame, confidence_level=None),
        fl.estimate_files(tmp_path / "p.parquet", confidence_level=None),
    ):
        assert list(found.directions) == metrics
