"""Make crowd.csv: 24 volunteers say whether photos show a damaged roof, three to five of each."""

import csv
from pathlib import Path

import numpy as np

PHOTOS, VOLUNTEERS = 240, 24
GUESSING = (5, 17)
"""Volunteers who answer at random."""


def make(seed: int = 2) -> tuple[list[tuple[str, str, str]], np.ndarray, np.ndarray]:
    """Rows (photo, volunteer, label), which photos show damage, and everybody's error rate."""
    rng = np.random.default_rng(seed)
    truth = rng.random(PHOTOS) < 0.4
    missed = rng.beta(3, 14, VOLUNTEERS)  # of damaged roofs
    invented = rng.beta(2, 18, VOLUNTEERS)
    missed[[*GUESSING]] = invented[[*GUESSING]] = 0.5
    rows = []
    for i in range(PHOTOS):
        for j in np.sort(rng.permutation(VOLUNTEERS)[: rng.integers(3, 6)]):
            says = rng.random() >= missed[j] if truth[i] else rng.random() < invented[j]
            rows.append((f"photo{i + 1:03d}", f"v{j + 1:02d}", "damaged" if says else "whole"))
    return rows, truth, np.where(truth[:, None], missed, invented).mean(axis=0)


if __name__ == "__main__":
    rows, truth, errors = make()
    with Path(__file__).with_name("crowd.csv").open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["item", "annotator", "label"])
        out.writerows(rows)
    print(
        f"crowd.csv: {len(rows)} labels of {PHOTOS} photos, {truth.mean():.0%} damaged; error rate"
    )
    print("  " + ", ".join(f"v{j + 1:02d} {e:.2f}" for j, e in enumerate(errors)))
