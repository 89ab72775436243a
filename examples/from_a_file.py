"""
From a file to a report
=======================

Four models scored 1,000 comments, and 50 of these have a label. How good is each model, overall
and by language?
"""

from pathlib import Path

import fewlabels as fl

HERE = Path(__file__).parent

predictions = fl.read_predictions(HERE / "moderation.csv")
estimates = fl.estimate(predictions, metrics=["accuracy", "roc_auc"], by="language")
print(estimates.summary())

# %%
# Two models, compared on the same items:
difference = estimates.difference("large", "keywords", "accuracy")
print(
    f"large is {difference.value:+.3f} more accurate than keywords, "
    f"between {difference.low:+.3f} and {difference.high:+.3f}"
)

# %%
# As a figure:
estimates.plot("accuracy")

# %%
# ``estimates.save_html("moderation.html")`` writes the report. In a notebook the last value of a
# cell shows itself as a part of it:
estimates
