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
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7, 2.5), layout="constrained")
names = []
for place, shift in enumerate((None, "auto")):
    estimates = fl.estimate(predictions, metrics=["precision"], shift=shift)
    for k, name in enumerate(predictions.models):
        row = estimates.get(name, "precision")
        real = truth[60:][p[60:, k] >= 0.5].mean()
        names.append(f"{name}, {'corrected' if shift else 'as it is'}")
        print(f"{names[-1]}: {row.value:.2f} [{row.low:.2f}, {row.high:.2f}], truth {real:.2f}")
        axes.hlines(len(names), row.low, row.high, color=f"C{place}")
        axes.plot(row.value, len(names), "o", color=f"C{place}")
        axes.plot(real, len(names), "k|", markersize=14)
axes.set_yticks(range(1, 5), names)
axes.margins(y=0.2)
axes.set_xlabel("precision, 95% interval; black: the truth")
