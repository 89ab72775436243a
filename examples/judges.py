"""
Is my LLM judge good enough?
============================

Two LLM judges graded 400 answers of a system, and a person graded 60 drawn at random. The log
holds all of it.
"""

from pathlib import Path

import fewlabels as fl

HERE = Path(__file__).parent
estimates = fl.estimate(HERE / "verdicts.csv", metrics=["accuracy"])
for judge in estimates.models:
    row = estimates.get(judge, "accuracy")
    print(f"{judge} agrees with the person on {row.value:.0%} [{row.low:.0%}, {row.high:.0%}]")

# %%
# What is the pass rate of the system? Both judges say 75%. Corrected by the 60 labels it is lower;
# the truth is 69%.
scores = fl.score(HERE / "verdicts.csv")
print(scores.summary())

# %%
import matplotlib.pyplot as plt

rows = [
    ("a judge's own rate (small)", scores.get("uncorrected", "small")),
    ("a judge's own rate (large)", scores.get("uncorrected", "large")),
    ("60 labels only", scores.get("labels only")),
    ("corrected (large)", scores.get("prediction-powered", "large")),
]
figure, axes = plt.subplots(figsize=(7, 2.2), layout="constrained")
for place, (_, row) in enumerate(reversed(rows)):
    axes.plot([row.low, row.high], [place, place], color="C0")
    axes.plot(row.value, place, "o", color="C0")
axes.set_yticks(range(len(rows)), [name for name, _ in reversed(rows)])
axes.margins(y=0.2)
axes.axvline(0.69, color="grey", linestyle=":")
axes.set_xlabel("pass rate, 95% interval; dotted: the truth")
