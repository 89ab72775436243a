"""
Labels that are no random sample
================================

Half of the labeled items are positive, but only a tenth of the others: somebody looked for
positives. What does that do to the precision, and what does a correction make of it?
"""

import numpy as np

import fewlabels as fl

rng = np.random.default_rng(0)
truth = np.r_[rng.random(60) < 0.5, rng.random(2000) < 0.1].astype(int)
logits = rng.normal(3.0 * truth[:, None] - 1.5, 1.3, (2060, 2))
p = 1 / (1 + np.exp(-logits))
labels = np.where(np.arange(2060) < 60, truth, -1)
predictions = fl.Predictions({"new": p[:, 0], "old": p[:, 1]}, labels)

# %%
# The test:
print(fl.shift(predictions).summary())

# %%
# With and without the correction, beside the truth:
for shift in (None, "auto"):
    estimates = fl.estimate(
        predictions, metrics=["precision"], **({"shift": shift} if shift else {})
    )
    for name, scores in (("new", p[:, 0]), ("old", p[:, 1])):
        row = estimates.get(name, "precision")
        real = truth[60:][scores[60:] >= 0.5].mean()
        print(
            f"{name}, {'corrected' if shift else 'as it is'}: {row.value:.2f} "
            f"[{row.low:.2f}, {row.high:.2f}], truth {real:.2f}"
        )
