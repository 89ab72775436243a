"""From a file to estimates, a comparison of two classifiers, and a report."""

from pathlib import Path

import fewlabels as fl

predictions = fl.read_predictions(Path(__file__).with_name("moderation.csv"))
estimates = fl.estimate(predictions, metrics=["accuracy", "roc_auc"], by="language")
print(estimates.summary())

difference = estimates.difference("large", "keywords", "accuracy")
print(
    f"\nlarge is {difference.value:+.3f} more accurate than keywords, "
    f"between {difference.low:+.3f} and {difference.high:+.3f}"
)

estimates.save_html("moderation.html")
