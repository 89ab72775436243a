"""Writes tags.csv: 400 simulated comments, three tags, two classifiers, 60 comments labeled.

The truth, which it does not hold, is printed.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

N, LABELED = 400, 60
TAGS = {"toxic": 0.3, "insult": 0.15, "spam": 0.4}
STRENGTHS = {"bert": 2.6, "rules": 1.4}


def main() -> None:
    """Write the file, and print how often each classifier is right."""
    rng = np.random.default_rng(42)
    labeled = np.zeros(N, dtype=bool)
    labeled[rng.choice(N, LABELED, replace=False)] = True
    anger = rng.normal(size=N)
    columns: dict[str, list[str]] = {"id": [f"c{i:03}" for i in range(N)]}
    for tag, share in TAGS.items():
        truth = anger * (tag != "spam") + rng.normal(size=N)
        truth = truth > np.quantile(truth, 1 - share)
        columns[f"human_{tag}"] = [
            str(int(y)) if known else "" for y, known in zip(truth, labeled, strict=True)
        ]
        for name, strength in STRENGTHS.items():
            # The insults are the harder ones for rules.
            apart = strength * (0.6 if (tag, name) == ("insult", "rules") else 1)
            odds = 2 * apart * (truth - 0.5) + np.log(share / (1 - share)) + rng.normal(size=N)
            p = 1 / (1 + np.exp(-odds))
            columns[f"{name}_proba_{tag}"] = [f"{value:.3f}" for value in p]
            print(f"{tag}, {name}: right on {np.mean((p > 0.5) == truth):.1%}")
    path = Path(__file__).with_name("tags.csv")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


if __name__ == "__main__":
    main()
