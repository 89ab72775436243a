"""
Can I trust it on my data?
==========================

Last month's 1,500 comments have all their labels. Hide all but 20, estimate, and compare with the
truth. Do so five times.
"""

from pathlib import Path

import fewlabels as fl

HERE = Path(__file__).parent
found = fl.backtest(HERE / "moderation_labeled.csv", [20, 100], runs=5, metrics="accuracy")
for n in (20, 100):
    for method in ("auto", "labeled"):
        row = found.get(n, method, "accuracy")
        print(f"{n} labels, {method}: off by {row.error:.3f}, intervals {row.width:.3f} wide")

# %%
# Each classifier by itself:
found.plot()
