"""
Votes and no label at all
=========================

Four classifiers vote on phrases in six categories. Nobody knows the truth. Where classifiers that
err independently agree, they are probably right; how often each one disagrees with the rest says
how often it errs.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import fewlabels as fl

HERE = Path(__file__).parent
predictions = fl.read_predictions(HERE / "votes.csv")
print(predictions)

# %%
# ``method="auto"`` compares six models by held-out likelihood; here one of them by name.
model = fl.models.ConfusionCBEE(concentration="learned", burn_in=400, sweeps=1000, thin=5)
estimates = fl.estimate(predictions, model, metrics=["error_rate", "recall"], by="domain")

row = estimates.get("keywords", "recall", group="domain=sport")
print(f"keywords finds {row.value:.0%} [{row.low:.0%}, {row.high:.0%}] of the sports")
for cluster in estimates.diagnostics["partition"]:
    print("alike:", ", ".join(cluster))
for warning in estimates.warnings:
    print("-", warning)

# %%
# Error rates by category and classifier:
groups = [row.group for row in estimates.rows if row.group]
domains, models = list(dict.fromkeys(groups)), estimates.models
rates = np.array([[estimates.get(m, "error_rate", g).value for m in models] for g in domains])
figure, axes = plt.subplots(layout="constrained")
shown = axes.imshow(rates, cmap="Blues", vmin=0)
axes.set_xticks(range(len(models)), models)
axes.set_yticks(range(len(domains)), [g.removeprefix("domain=") for g in domains])
figure.colorbar(shown, label="error rate")

# %%
# And the likeliest label of each item:
labels = estimates.posterior.marginals()
print(f"the first phrase is an animal with probability {labels[0, 1]:.2f}")
