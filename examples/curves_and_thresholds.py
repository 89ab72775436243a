"""One classifier and fifty labels: its curve, a threshold to defend, and what to label next."""

from __future__ import annotations

from pathlib import Path

import fewlabels as fl

predictions = fl.read_predictions(Path(__file__).with_name("moderation.csv"))

curve = fl.curve(predictions, model="large")
for place in (24, 49, 74):
    print(
        f"at recall {curve.x[place]:.3f} precision is {curve.y[place]:.2f} "
        f"[{curve.low[place]:.2f}, {curve.high[place]:.2f}]"
    )

cut = fl.threshold(predictions, model="large", condition="precision >= 0.7 and recall >= 0.6")
print(f"flag from {cut.best:.3f} up: it does what is asked with probability {cut.best_probability}")
print("at least 80% probable between", cut.for_probability(0.8))

wanted = fl.label_next(predictions, model="large", size=5)
print("label these rows next:", wanted.items.tolist())
print(wanted.statement)
