"""
Which model is best for one group?
==================================

50 labels in three languages, 9 of them Spanish. Is the model that is best overall also the best
in Spanish?
"""

from pathlib import Path

import fewlabels as fl

HERE = Path(__file__).parent
compared = fl.compare(HERE / "moderation.csv", ["accuracy"], by="language")

for group in (None, "language=en", "language=es", "language=de"):
    found = compared.get("accuracy", group)
    best = found.ranking[0]
    first = found.standing(best).probability_top[0]
    print(f"{group or 'all comments'}: {best} leads with probability {first:.0%}")
    print("  may be best:", ", ".join(found.may_be_best))

# %%
# Is ``keywords`` worse in Spanish than in English? The interval of the difference says how sure
# that is.
gap = compared.gap("keywords", "accuracy", "language=en", "language=es")
print(f"English minus Spanish: {gap.value:+.3f}, between {gap.low:+.3f} and {gap.high:+.3f}")

# %%
# The whole comparison:
compared

# %%
# A figure of the accuracies by language. Where there are few labels, intervals are wide.
import matplotlib.pyplot as plt

estimates = fl.estimate(HERE / "moderation.csv", metrics=["accuracy"], by="language")
groups = [f"language={name}" for name in ("en", "es", "de")]
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for k, model in enumerate(estimates.models):
    rows = [estimates.get(model, "accuracy", group) for group in groups]
    places = [place + 0.15 * k for place in range(len(groups))]
    axes.vlines(places, [r.low for r in rows], [r.high for r in rows], color=f"C{k}", label=model)
    axes.plot(places, [r.value for r in rows], "o", color=f"C{k}")
axes.set_xticks([place + 0.22 for place in range(len(groups))], groups)
axes.set_ylabel("accuracy, 95% interval")
axes.legend()
