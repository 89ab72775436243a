"""
A spreadsheet with columns of its own
=====================================

A support team's table: a column "checked by hand" that is mostly empty, what GPT and Claude say in
words, and a risk in percent. Nothing is named for this program.
"""

import os
from pathlib import Path

import fewlabels as fl

file = os.path.relpath(Path(__file__).with_name("tickets.csv"))
print("\n".join(Path(file).read_text(encoding="utf-8").splitlines()[:5]))

# %%
# What would each column be taken for?
print(fl.diagnose(file).summary())

# %%
# The risk is a probability of escalating; the doctor took it for a score. Say all columns
# yourself, once:
columns = {
    "label": "checked by hand",
    "item": "Ticket",
    "hard": {"GPT": "GPT says", "Claude": "Claude says"},
    "models": {"risk": "risk %"},
    "positive": "escalate",
}
estimates = fl.estimate(file, metrics=["accuracy", "recall"], columns=columns)
print(estimates.summary())

# %%
# The data are simulated: GPT is right on 90.5% of the tickets, the risk on 85.5%, Claude on 81.5%.
estimates.plot("accuracy")
