"""MLflow evaluates a classifier of which 60 of 800 targets are known, and a threshold on the
interval decides.
"""

import mlflow
import numpy as np
import pandas as pd
from mlflow.models import MetricThreshold

rng = np.random.default_rng(0)
truth = rng.random(800) < 0.4
score = 1 / (1 + np.exp(-rng.normal(4 * truth - 2, 1)))
target = np.where(np.arange(800) < 60, truth, np.nan)

with mlflow.start_run():
    result = mlflow.models.evaluate(
        data=pd.DataFrame({"score": score, "target": target}),
        predictions="score",
        targets="target",
        model_type="classifier",
        evaluators="fewlabels",
        evaluator_config={"metrics": ["accuracy", "f1"], "require": "low:accuracy>=0.9"},
    )
print({name: round(value, 3) for name, value in result.metrics.items()})

# The run passes where the lower end of the interval is at least .9.
mlflow.validate_evaluation_results(
    validation_thresholds={
        "model/accuracy_low": MetricThreshold(threshold=0.9, greater_is_better=True)
    },
    candidate_result=result,
)
