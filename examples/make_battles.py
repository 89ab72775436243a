"""Writes battles.csv: 400 simulated comparisons of five assistants, by an LLM judge and people.

A row is a verdict, as in MT-Bench: the judge has seen every comparison, people 60 of them. The
judge prefers what stands first, and long answers, which are those of willow; the truth, which the
file does not hold, is `STRENGTH`, by which elm and oak are best.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

N, LABELED = 400, 60
STRENGTH = {"elm": 0.8, "oak": 0.5, "fir": 0.0, "willow": -0.4, "yew": -0.9}
LENGTH = {"elm": -0.3, "oak": -0.1, "fir": 0.0, "willow": 1.2, "yew": -0.2}
HEADER = ("question_id", "model_a", "model_b", "winner", "judge")
VERDICTS = np.array(["model_a", "model_b", "tie"])


def drawn(rng: np.random.Generator, a: np.ndarray, b: np.ndarray, tie: float) -> np.ndarray:
    """Verdicts by Davidson's model, of log strengths (n,)."""
    p = np.exp(np.stack([a, b, (a + b) / 2 + tie], axis=1))
    return (rng.random((len(a), 1)) > np.cumsum(p / p.sum(axis=1, keepdims=True), axis=1)).sum(1)


def rows() -> Iterator[tuple[str, ...]]:
    """The rows of the file."""
    rng = np.random.default_rng(44)
    names = np.array([*STRENGTH])
    strength, length = np.array([*STRENGTH.values()]), np.array([*LENGTH.values()])
    a = rng.integers(len(names), size=N)
    b = (a + rng.integers(1, len(names), size=N)) % len(names)
    truth = drawn(rng, strength[a], strength[b], -0.5)
    biased = drawn(rng, length[a] + 0.8, length[b], -1.5)
    said = np.where(rng.random(N) < 0.65, truth, biased)
    people = np.isin(np.arange(N), rng.choice(N, LABELED, replace=False))
    for i in range(N):
        front = f"q{i:03}", names[a[i]], names[b[i]]
        yield *front, VERDICTS[said[i]], "gpt"
        if people[i]:
            yield *front, VERDICTS[truth[i]], "expert_1"


def main() -> None:
    """Write the file."""
    path = Path(__file__).with_name("battles.csv")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows(rows())
    print(f"{path.name} is written")


if __name__ == "__main__":
    main()
