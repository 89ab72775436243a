"""MLflow: `mlflow.models.evaluate(..., evaluators="fewlabels")`, of data with few labels.

MLflow finds the class by the entry point `mlflow.model_evaluator` and asks of it the two methods of
its `ModelEvaluator`, from which it need not be made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fewlabels.checks.conditions import parse_requirement
from fewlabels.errors import UsageError
from fewlabels.estimating import estimate
from fewlabels.metrics.registry import bounds_of

MODEL = "model"
"""What the classifier is called unless `evaluator_config` has `name`."""


class FewlabelsEvaluator:
    """The metrics of a classifier with their intervals, where some targets are missing.

    `evaluator_config` holds the arguments of `fewlabels.estimate` by name (`metrics`, `columns`,
    `positive`, `method` ...); `name`, what the classifier is called; and `require`, conditions as
    `--require` has them: the metric `requirements_met` is then 1 or 0.
    """

    @classmethod
    def can_evaluate(
        cls, *, model_type: str, evaluator_config: Mapping[str, Any], **kwargs: Any
    ) -> bool:
        """Whether it is a classifier."""
        return model_type in ("classifier", None)

    def evaluate(
        self, *, model_type: str, dataset: Any, run_id: str,
        evaluator_config: Mapping[str, Any] | None = None, model: Any = None,
        predictions: Any = None, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """Estimate, log to the run, and give MLflow's `EvaluationResult`.

        Metrics are `<name>/<metric>`, with `_low` and `_high`; thresholds of
        `mlflow.validate_evaluation_results` on an end test the interval.

        Raises
        ------
        UsageError, InputError
            If the data are not those of a classifier, or the configuration is not one.
        """
        import mlflow
        from mlflow.models import EvaluationResult
        from mlflow.models.evaluation.artifacts import JsonEvaluationArtifact

        settings = dict(evaluator_config or {})
        name = settings.pop("name", MODEL)
        texts = settings.pop("require", ())
        texts = [texts] if isinstance(texts, str) else texts
        required = [parse_requirement(text, bounds_of) for text in texts]
        if model is not None:
            given = model.predict(dataset.features_data)
        elif (given := dataset.predictions_data) is None:
            raise UsageError("name the column of predictions (`predictions`), or give a model")
        if predictions is not None and hasattr(given, "columns"):
            given = given[predictions]
        found = estimate({name: given}, y_true=dataset.labels_data, **settings)
        metrics = found.to_dict(flat=True)
        if required:
            failures = [line for one in required for line in one.failures(found)]
            metrics["requirements_met"] = float(not failures)
            mlflow.log_metric("requirements_met", metrics["requirements_met"])
            mlflow.set_tag("fewlabels.not_met", "; ".join(failures))
        found.to_mlflow()
        uri = mlflow.get_artifact_uri("fewlabels/estimates.json")
        artifact = JsonEvaluationArtifact(uri=uri, content=found.to_dict())
        return EvaluationResult(metrics, {"fewlabels/estimates.json": artifact})
