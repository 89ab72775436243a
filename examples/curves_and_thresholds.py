"""
A curve with a band, and a threshold to defend
==============================================

One model, 1,000 scores, 50 labels of which 5 are positive. What does its precision-recall curve
look like, and where should one cut?
"""

from __future__ import annotations

from pathlib import Path

import fewlabels as fl

HERE = Path(__file__).parent
predictions = fl.read_predictions(HERE / "moderation.csv")

curve = fl.curve(predictions, model="large")
for place in (24, 49, 74):
    print(
        f"at recall {curve.x[place]:.3f} precision is {curve.y[place]:.2f} "
        f"[{curve.low[place]:.2f}, {curve.high[place]:.2f}]"
    )
curve.plot()

# %%
# A precision of .9, with probability 90%: any threshold in these ranges. The lowest one finds most
# positives.
cut = fl.threshold(predictions, model="large", min_precision=0.9)
ranges = cut.for_probability(0.9)
print("precision of .9 or more with probability 90% at thresholds", ranges)

# %%
# Ask for recall as well, and the answer is one threshold:
cut = fl.threshold(predictions, model="large", condition="precision >= 0.7 and recall >= 0.6")
print(f"flag from {cut.best:.3f} up: it does what is asked with probability {cut.best_probability}")

# %%
# Which items would narrow the curve's band most, if somebody labeled them?
wanted = fl.label_next(predictions, model="large", size=5)
print("label these rows next:", wanted.items.tolist())
print(wanted.statement)
