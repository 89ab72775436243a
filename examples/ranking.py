"""
Which assistant do people prefer?
=================================

Five assistants answered the same questions. An LLM judged 400 pairs of answers, people 60 of them.
The judge likes long answers and the one it reads first. The 60 verdicts correct that.
"""

from pathlib import Path

import fewlabels as fl

HERE = Path(__file__).parent
ranking = fl.rank(HERE / "battles.csv")
for name in ranking.estimates.models:
    row = ranking.estimates.get(name, "win_rate")  # against the average opponent
    print(f"{name}: preferred in {row.value:.0%} [{row.low:.0%}, {row.high:.0%}]")

# %%
ranking.plot()

# %%
# Which comparisons should people judge next?
for one in ranking.next[:3]:
    print(one)
