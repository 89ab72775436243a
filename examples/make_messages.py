"""Writes messages.csv: eight weeks of messages and a spam filter that fails from the sixth on.

Some messages of each week, drawn at random, are labeled; how often the filter is right is printed.
"""

from __future__ import annotations

import csv
import datetime
from pathlib import Path

import numpy as np

N, WEEKS, FALLS = 1_200, 8, 5


def main() -> None:
    """Write the file, and print how often the filter is right in each week."""
    rng = np.random.default_rng(11)
    day = np.sort(rng.integers(0, 7 * WEEKS, N))
    week, spam = day // 7, rng.random(N) < 0.3
    apart = np.where(week < FALLS, 3.0, 1.2)  # how well the filter tells spam from the rest
    logit = apart * rng.normal(apart * (spam - 0.5), 1) - 0.2
    labeled = rng.random(N) < np.where(week < 4, 0.25, 0.15)
    for w in range(WEEKS):
        print(f"week {w + 1}: right on {np.mean(((logit > 0) == spam)[week == w]):.1%}")
    path = Path(__file__).with_name("messages.csv")
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["date", "label", "p__filter__spam"])
        for at, is_spam, known, z in zip(day, spam, labeled, logit, strict=True):
            date = datetime.date(2026, 9, 7) + datetime.timedelta(days=int(at))
            label = ("spam" if is_spam else "ham") if known else ""
            out.writerow([date, label, f"{1 / (1 + np.exp(-z)):.4f}"])


if __name__ == "__main__":
    main()
