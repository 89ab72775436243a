"""
How many labels are enough?
===========================

1,500 comments whose labels are all known. Hide most of them, estimate from 10, 20, 50, 100 and
200, and see how the intervals narrow: with the unlabeled items, and from the labels only.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import fewlabels as fl

known = fl.read_predictions(Path(__file__).with_name("moderation_labeled.csv"))
truth = known.labels
model = known.models.index("small")
real = np.mean(known.probabilities[:, model].argmax(axis=1) == truth)
order = np.random.default_rng(1).permutation(known.n_items)

sizes = (10, 20, 50, 100, 200)
found = {}
for method in ("auto", "labeled"):
    for n in sizes:
        labels = np.full(known.n_items, -1)
        labels[order[:n]] = truth[order[:n]]
        predictions = fl.Predictions(known.probabilities, labels, models=known.models)
        estimates = fl.estimate(predictions, method, metrics=["accuracy"])
        found[method, n] = row = estimates.get("small", "accuracy")
        print(f"{method}, {n} labels: {row.value:.3f} [{row.low:.3f}, {row.high:.3f}]")

# %%
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for k, (method, name) in enumerate([("labeled", "labels only"), ("auto", "with unlabeled items")]):
    rows = [found[method, n] for n in sizes]
    places = np.arange(len(sizes)) + 0.15 * k
    axes.vlines(places, [r.low for r in rows], [r.high for r in rows], color=f"C{k}", label=name)
    axes.plot(places, [r.value for r in rows], "o", color=f"C{k}")
axes.axhline(real, color="grey", linestyle=":", label="all labels known")
axes.set_xticks(range(len(sizes)), sizes)
axes.set_xlabel("labels")
axes.set_ylabel("accuracy of small, 95% interval")
axes.legend()
