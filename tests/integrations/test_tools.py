"""The examples for MLflow and Inspect, by the tools themselves, in a process of their own.

They run by FEWLABELS_LOGS_PYTHON, an interpreter that has both tools and this package (`make
test-logs`), or by this one if it has them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.errors import UsageError
from fewlabels.integrations.mlflow_evaluator import FewlabelsEvaluator

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "in_tools"


def python_with(tool: str) -> str:
    elsewhere = os.environ.get("FEWLABELS_LOGS_PYTHON")
    if elsewhere is None and importlib.util.find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed: make test-logs, or FEWLABELS_LOGS_PYTHON")
    return elsewhere or sys.executable


def run(tool: str, folder: Path, *command: str, **more: str) -> str:
    python = python_with(tool)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), **more}
    done = subprocess.run(
        [python, *command], capture_output=True, text=True, check=False, cwd=folder,
        env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def numbers(line: str) -> dict[str, float]:
    found: dict[str, float] = json.loads(re.search(r"{.*}", line)[0].replace("'", '"'))  # type: ignore[index]
    return found


def test_mlflow(tmp_path: Path) -> None:
    where = {"MLFLOW_TRACKING_URI": (tmp_path / "runs").as_uri(), "MLFLOW_ALLOW_FILE_STORE": "true"}
    out = run("mlflow", tmp_path, str(EXAMPLES / "mlflow_evaluation.py"), **where)
    found = numbers(out.splitlines()[0])
    names = {f"model/{m}{end}" for m in ("accuracy", "f1") for end in ("", "_low", "_high")}
    assert names | {"requirements_met"} <= {*found}
    assert 0.9 <= found["model/accuracy_low"] <= found["model/accuracy"] <= 1
    assert found["requirements_met"] == 1
    logged = {path.name for path in (tmp_path / "runs").glob("*/*/metrics/model/*")}
    assert {"accuracy", "accuracy_low", "accuracy_high"} <= logged
    (report,) = (tmp_path / "runs").glob("*/*/artifacts/fewlabels/report.html")
    assert "accuracy" in report.read_text(encoding="utf-8")


def test_inspect(tmp_path: Path) -> None:
    out = run("inspect_ai", tmp_path, str(EXAMPLES / "inspect_task.py"))
    found = numbers(out.splitlines()[-1])
    # The judge passes 70%; 60% are right, and it is wrong on 12%.
    assert found["accuracy"] > 0.66
    assert found["pass_rate_low"] < 0.6 < found["pass_rate_high"] < found["accuracy"] + 0.02
    assert found["judge_accuracy_low"] < 0.88 < found["judge_accuracy_high"]
    (log,) = (tmp_path / "logs").glob("*.eval")
    assert log.stat().st_size > 0


def test_inspect_without_verdicts_of_people(tmp_path: Path) -> None:
    """An evaluation of hours does not fail for want of labels: NaN, and a line in the log."""
    code = (
        "from inspect_ai.scorer import SampleScore, Score\n"
        "from fewlabels.integrations.inspect_metrics import pass_rate\n"
        "print(pass_rate()([SampleScore(score=Score(value='C'))] * 5))"
    )
    out = run("inspect_ai", tmp_path, "-c", code)
    assert out.strip() == "{'pass_rate': nan, 'pass_rate_low': nan, 'pass_rate_high': nan}"


def stand_in(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What of MLflow the evaluator calls; it holds what was logged."""
    logged: dict[str, Any] = {}
    fake = SimpleNamespace(
        log_metrics=logged.update, log_metric=logged.__setitem__, set_tag=logged.__setitem__,
        log_dict=lambda content, name: None, log_text=lambda content, name: None,
        get_artifact_uri=lambda name: name, logged=logged,
    )  # fmt: skip
    models = SimpleNamespace(EvaluationResult=lambda metrics, artifacts: (metrics, artifacts))
    artifacts = SimpleNamespace(JsonEvaluationArtifact=lambda uri, content: (uri, content))
    for name, module in {
        "mlflow": fake, "mlflow.models": models, "mlflow.models.evaluation": SimpleNamespace(),
        "mlflow.models.evaluation.artifacts": artifacts,
    }.items():  # fmt: skip
        monkeypatch.setitem(sys.modules, name, module)
    return fake


@pytest.mark.parametrize("by", ["predictions", "model"])
def test_the_evaluator_logs_what_estimate_says(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fake, rng = stand_in(monkeypatch), np.random.default_rng(0)
    truth = rng.random(300) < 0.5
    said = np.where(rng.random(300) < 0.8, truth, ~truth).astype(int)
    y = np.where(np.arange(300) < 60, truth, np.nan)
    model = SimpleNamespace(predict=lambda items: said) if by == "model" else None
    dataset = SimpleNamespace(
        labels_data=y, features_data=np.zeros((300, 1)),
        predictions_data=said if by == "predictions" else None,
    )  # fmt: skip
    config = {"metrics": ["accuracy"], "name": "judge", "require": "low:accuracy>=0.95"}
    metrics, artifacts = FewlabelsEvaluator().evaluate(
        model_type="classifier", dataset=dataset, run_id="1", evaluator_config=config, model=model
    )
    direct = fl.estimate({"judge": said}, y_true=y, metrics=["accuracy"])
    assert metrics == {**direct.to_dict(flat=True), "requirements_met": 0.0}
    assert fake.logged["requirements_met"] == 0
    assert fake.logged["fewlabels.not_met"].startswith("not met: low:accuracy>=0.95: model 'judge'")
    assert artifacts["fewlabels/estimates.json"][1]["n_labeled"] == 60
    assert FewlabelsEvaluator.can_evaluate(model_type="classifier", evaluator_config={})
    assert not FewlabelsEvaluator.can_evaluate(model_type="regressor", evaluator_config={})
    nothing = SimpleNamespace(labels_data=y, predictions_data=None)
    with pytest.raises(UsageError, match="name the column of predictions"):
        FewlabelsEvaluator().evaluate(model_type="classifier", dataset=nothing, run_id="1")
