"""The same predictions through every method: how much the answer depends on the method."""

from pathlib import Path

import fewlabels as fl

predictions = fl.read_predictions(Path(__file__).with_name("moderation.csv"))
for name, method in fl.models.METHODS.items():
    if name == "ssme-flow":
        continue  # trains a network for half a minute
    row = fl.estimate(predictions, name, "accuracy").get("large", "accuracy")
    print(f"{name:21} {row.value:.3f} [{row.low:.3f}, {row.high:.3f}]  {method.summary}")
