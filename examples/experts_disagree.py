"""
When experts disagree
=====================

Up to six pathologists label a slide and do not say the same. How far is each classifier from the
distribution of what they say, and on which slide will they disagree?
"""

from pathlib import Path

import matplotlib.pyplot as plt

import fewlabels as fl

predictions = fl.read_predictions(Path(__file__).parent / "slides.csv")

# %%
# How good each classifier is against the distribution of labels, on all slides.
print(fl.estimate(predictions, metrics=["accuracy", "brier"]).summary())

# %%
# On the annotated slides alone: the squared distance to the distribution (EL). The estimate is
# unbiased, so that of a classifier that is nearly right may come out a little below 0.
found = fl.annotations.assess(predictions)
for model in predictions.models:
    row = found.get(model, "EL")
    print(f"{model}: EL {row.value:.3f} [{row.low:.3f}, {row.high:.3f}]")

# %%
# Calibrate one classifier on the counts, then learn how sure its probabilities are.
small = predictions.models.index("small")
p, counts = predictions.probabilities[:, small], predictions.histogram
scaled = fl.calibration.TemperatureScaling().fit(p, counts).predict_proba(p)
alpha = fl.calibration.AlphaCalibration(concentration="logits").fit(scaled, counts)

disagreement = alpha.predict_disagreement(scaled)
hardest = disagreement.argmax()
print(f"experts will disagree most on item {hardest + 1}: {disagreement[hardest]:.0%} of pairs")

figure, axes = plt.subplots(layout="constrained")
axes.hist(disagreement, bins=30)
axes.set_xlabel("probability that two experts disagree")
axes.set_ylabel("slides")

# %%
# What one expert's label would change there.
label = [[name == "atypical" for name in predictions.classes]]
after = alpha.posterior(scaled[[hardest]], label)[0]
for name, before, now in zip(predictions.classes, scaled[hardest], after, strict=True):
    print(f"  {name}: {before:.2f} -> {now:.2f} after one expert says atypical")
