"""Make readings.csv: three readers and a program look for nodules in chest films; CT says of 60."""

import csv
from pathlib import Path

import numpy as np

READERS = {"ana": (1.1, 1.7), "ben": (0.3, 2.3), "cleo": (1.7, 1.0)}
"""How far a film with a nodule is above a reader's threshold, and one without below it."""
N, LABELED, FREQUENCY = 600, 60, 0.25


def make(seed: int = 4) -> tuple[list[dict[str, object]], np.ndarray]:
    """Films as rows, of which 60 at random have the answer of CT, and whether each has a nodule."""
    rng = np.random.default_rng(seed)
    truth = rng.random(N) < FREQUENCY
    hard = rng.normal(0, 0.5, N)  # a film that is hard for one reader is so for the others
    columns: dict[str, np.ndarray] = {}
    for name, (above, below) in READERS.items():
        evidence = np.where(truth, above, -below) + hard + rng.normal(0, 0.8, N)
        columns[f"y__{name}"] = np.where(evidence > 0, "nodule", "none")
    logit = np.where(truth, 1.6, -2.2) + 1.2 * hard + rng.normal(0, 1.1, N)
    columns["p__program__nodule"] = (1 / (1 + np.exp(-logit))).round(4)
    labeled = rng.permutation(N) < LABELED
    columns["label"] = np.where(labeled, np.where(truth, "nodule", "none"), "")
    columns["hospital"] = rng.choice(["north", "south"], N)
    names = [f"film{i + 1:03d}" for i in range(N)]
    rows = [
        {"film": name} | {k: v.item() for k, v in zip(columns, one, strict=True)}
        for name, *one in zip(names, *columns.values(), strict=True)
    ]
    return rows, truth


if __name__ == "__main__":
    rows, truth = make()
    with Path(__file__).with_name("readings.csv").open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, [*rows[0]], lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    for name in READERS:
        found = np.array([row[f"y__{name}"] == "nodule" for row in rows])
        print(f"{name}: sensitivity {found[truth].mean():.3f}, specificity "
              f"{1 - found[~truth].mean():.3f}")  # fmt: skip
    found = np.array([row["p__program__nodule"] for row in rows], dtype=float) >= 0.5
    print(f"program: sensitivity {found[truth].mean():.3f}, specificity "
          f"{1 - found[~truth].mean():.3f}")  # fmt: skip
