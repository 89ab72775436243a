"""From a file to estimates, a comparison of two classifiers, and a report."""

from pathlib import Path

import fewlabels as fl

predictions = fl.read_predictions(Path(__file__).with_name("income.csv"))
estimates = fl.estimate(predictions, metrics=["accuracy", "roc_auc"], by="sex")
print(estimates.summary())

difference = estimates.difference("boosting", "logistic_200", "accuracy")
print(
    f"\nboosting is {difference.value:+.3f} more accurate than logistic_200, "
    f"between {difference.low:+.3f} and {difference.high:+.3f}"
)

estimates.save_html("income.html")
