"""
Is the filter still good?
=========================

A spam filter sees 150 messages a week, and somebody labels some 30 of them. How good is it in each
week, and since when is it worse?
"""

from pathlib import Path

import fewlabels as fl

HERE = Path(__file__).parent
weeks = fl.monitor(HERE / "messages.csv", "date", every="week", metrics="accuracy")
for row in weeks.rows:
    print(f"{row.group}: {row.value:.2f} [{row.low:.2f}, {row.high:.2f}]")

# %%
# What fell, since when, and how sure that is:
for change in weeks.changes:
    print(f"{change.metric} of {change.model} since {change.since}, P {change.probability:.2f}")

# %%
weeks.plot()
