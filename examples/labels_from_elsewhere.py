"""
Last month's labels
===================

Last month 1,500 comments were labeled to test the same four models. This month there are 1,000 new
ones and 50 labels. How much do last month's labels help?
"""

from pathlib import Path

import matplotlib.pyplot as plt

import fewlabels as fl

HERE = Path(__file__).parent
month = HERE / "moderation.csv"
alone = fl.estimate(month, metrics=["roc_auc"])
together = fl.estimate(month, metrics=["roc_auc"], reference=HERE / "moderation_labeled.csv")

for model in alone.models:
    a, b = alone.get(model, "roc_auc"), together.get(model, "roc_auc")
    print(
        f"{model}: [{a.low:.3f}, {a.high:.3f}] alone, [{b.low:.3f}, {b.high:.3f}] with last month's"
    )

# %%
# This month's labels decide how far last month's are believed:
print(f"weight of last month's labels: {together.diagnostics['reference']['weight']:.0%}")

# %%
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
for shift, (name, estimates) in enumerate([("50 labels", alone), ("with last month's", together)]):
    rows = [estimates.get(m, "roc_auc") for m in alone.models]
    places = [k + 0.25 * shift for k in range(len(rows))]
    axes.hlines(
        places, [r.low for r in rows], [r.high for r in rows], color=f"C{shift}", label=name
    )
    axes.plot([r.value for r in rows], places, "o", color=f"C{shift}")
axes.set_yticks(range(len(alone.models)), alone.models)
axes.set_xlabel("AUC, 95% interval")
axes.legend()
