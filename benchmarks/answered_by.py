"""Which belief answered, world by world: the picture of docs/default.md.

    python -m benchmarks answered_by [--runs 5] [--labels 100] [--out FILE]

The worlds are those of `make stress`. Shares are means over the runs; classifiers alone, and all
but one of them, are summed.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.ticker import PercentFormatter

import fewlabels as fl
from runs import ROOT, command_line, panels, save_svg
from stress_worlds import WORLDS

FIGURE = ROOT / "docs" / "benchmarks" / "figures" / "answered-by.svg"
SHOWN = (
    "siblings", "equal", "one-strong", "one-reversed", "wild-calibration", "rare-shifted",
    "judge-beside-scores", "verdict-beside-probabilities", "votes-independent", "votes-one-good",
    "votes-copies", "votes-rare",
)  # fmt: skip
KINDS = {
    "all classifiers pooled": "#4c78a8", "one classifier alone": "#f58518",
    "all but one": "#eeca3b", "what the classifiers' scores share": "#54a24b",
    "what the classifiers' votes agree on": "#72b7b2",
}  # fmt: skip


def shares(world: str, n_labeled: int, runs: int) -> list[float]:
    """Mean share of the answer by kind."""
    total = dict.fromkeys(KINDS, 0.0)
    for run in range(runs):
        sample = WORLDS[world](1_000 + n_labeled, np.random.default_rng([run, 2]))
        found = fl.estimate(sample.predictions(n_labeled), metrics="accuracy", random_state=run)
        for entry in found.diagnostics["answered_by"]:
            member = "all but one" if entry["member"].startswith("all but ") else entry["member"]
            kind = "one classifier alone" if member.endswith(" alone") else member
            total[kind] += entry["share"] / runs
    return list(total.values())


def main() -> None:
    """Estimate, and draw."""
    given = command_line(__doc__, runs=5, labels=100, out=FIGURE).parse_args()
    found = {world: shares(world, given.labels, given.runs) for world in SHOWN}
    frame = pd.DataFrame.from_dict(found, orient="index", columns=list(KINDS))
    figure, axes = panels((8, 4.2))
    frame.plot.barh(ax=axes, stacked=True, color=list(KINDS.values()), width=0.7, legend=False)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.set_xlabel(f"share of the answer, {given.labels} labels, mean of {given.runs} runs")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    save_svg(figure, given.out)
    print(f"wrote {given.out}")


if __name__ == "__main__":
    main()
