"""Writes tickets.csv: 400 simulated support tickets in a spreadsheet's columns, 50 checked.

The truth, which it does not hold: GPT is right on 90% of the tickets, Claude on 81%.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

N, CHECKED = 400, 50
HEADER = ("Ticket", "Team", "checked by hand", "GPT says", "Claude says", "risk %")
WORDS = np.array(["close", "escalate"])


def main() -> None:
    """Write the file, and print how often each classifier is right."""
    rng = np.random.default_rng(26)
    truth = rng.random(N) < 0.35
    teams = rng.choice(["billing", "returns", "shipping"], N)
    # Returns are the harder ones for both.
    wrong = {"GPT": 0.08 + 0.06 * (teams == "returns"), "Claude": 0.16 + 0.1 * (teams == "returns")}
    said = {name: truth != (rng.random(N) < p) for name, p in wrong.items()}
    risk = 100 / (1 + np.exp(-rng.normal(2.2 * truth - 1.4, 1.1, N)))
    checked = np.zeros(N, dtype=bool)
    checked[rng.choice(N, CHECKED, replace=False)] = True

    path = Path(__file__).with_name("tickets.csv")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for i in range(N):
            label = WORDS[int(truth[i])] if checked[i] else ""
            words = [WORDS[int(said[name][i])] for name in said]
            writer.writerow([f"T-{i:04}", teams[i], label, *words, f"{risk[i]:.2f}%"])
    for name, verdicts in said.items():
        print(f"{name}: right on {np.mean(verdicts == truth):.1%}")
    print(f"risk: accuracy {np.mean((risk >= 50) == truth):.1%}")


if __name__ == "__main__":
    main()
