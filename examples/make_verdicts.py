"""Writes verdicts.csv: 400 simulated answers of a system, two LLM judges, 60 labels of a person.

The table is what Phoenix's client exports: a row per verdict. The truth, which it does not hold, is
that 276 of the 400 answers are right.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

N, LABELED, RIGHT = 400, 60, 276
HEADER = ("span_id", "annotation_name", "annotator_kind", "identifier", "user_id", "result.label")


def made() -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """The truth (n,), what each judge says (n,), and whether a person labeled it (n,)."""
    rng = np.random.default_rng(24)
    truth = np.arange(N) < RIGHT
    # What makes an answer hard misleads both judges: they err together.
    hard = rng.random(N) < 0.3
    wrong = {
        "large": np.where(truth, 0.03, 0.25) * np.where(hard, 2.0, 0.6),
        "small": np.where(truth, 0.08, 0.40) * np.where(hard, 1.8, 0.7),
    }
    judges = {name: truth != (rng.random(N) < p) for name, p in wrong.items()}
    order = rng.permutation(N)
    labeled = np.zeros(N, dtype=bool)
    labeled[rng.choice(N, LABELED, replace=False)] = True
    return truth[order], {name: said[order] for name, said in judges.items()}, labeled


def rows() -> Iterator[tuple[str, ...]]:
    """The rows of the export."""
    truth, judges, labeled = made()
    for i in range(N):
        said = [("LLM", name, verdict[i]) for name, verdict in judges.items()]
        said += [("HUMAN", "anna", truth[i])] * bool(labeled[i])
        for kind, who, right in said:
            judge, person = (who, "") if kind == "LLM" else ("", who)
            word = "correct" if right else "incorrect"
            yield f"span-{i:03}", "correctness", kind, judge, person, word


def main() -> None:
    """Write the file."""
    path = Path(__file__).with_name("verdicts.csv")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows(rows())
    truth, judges, _ = made()
    for name, said in judges.items():
        print(f"{name}: right on {np.mean(said == truth):.1%}, passes {np.mean(said):.1%}")
    print(f"pass rate of the system: {truth.mean():.1%}")


if __name__ == "__main__":
    main()
