"""No label at all: error rates of four classifiers in six categories, from how they agree."""

from pathlib import Path

import fewlabels as fl

predictions = fl.read_predictions(Path(__file__).with_name("votes.csv"))
print(predictions)

# `method="auto"` compares six models by held-out likelihood; here one of them by name.
model = fl.models.ConfusionCBEE(concentration="learned")
estimates = fl.estimate(predictions, model, metrics=["error_rate", "recall"], by="domain")

row = estimates.get("keywords", "recall", group="domain=sport")
print(f"keywords finds {row.value:.0%} [{row.low:.0%}, {row.high:.0%}] of the sports")
for cluster in estimates.diagnostics["partition"]:
    print("alike:", ", ".join(cluster))
for warning in estimates.warnings:
    print("-", warning)

labels = estimates.posterior.marginals()
print(f"the first phrase is an animal with probability {labels[0, 1]:.2f}")
