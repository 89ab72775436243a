"""Ensembles of one small network: by dropout, and by augmentation of the image.

The images of Mix-MNIST are not at hand, so the mixtures are of scikit-learn's digits (8 x 8):
ratio x_1 + (1 - ratio) x_2, labeled 1 with probability ratio. Labels' distribution Q is known.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import softmax

from bench.disagreement import PAPER_PENALTY
from bench.splits import generator
from disagreement_truth import RUNS, SEED, Floats, draw_labels
from fewlabels import calibration
from fewlabels.annotations import evaluate
from parts import Part, Plan, Record, Some, crossed
from runs import averaged, grouped

MEMBERS = 20
HIDDEN, DROPPED, EPOCHS, BATCH, RATE = 96, 0.3, 60, 64, 2e-3
TRAIN, VALID, TEST = 6000, 1500, 3000
LABELS = 5


class Images(NamedTuple):
    """Images (n, 64) and the distribution Q (n, 10) of their labels."""

    x: Floats
    q: Floats


def mixtures(x: Floats, y: Floats, size: int, rng: np.random.Generator) -> Images:
    """A third of the images are mixtures of two, by a ratio between a half and one."""
    one, two = rng.integers(len(x), size=(2, size))
    ratio = np.where(rng.random(size) < 1 / 3, rng.uniform(0.5, 1.0, size), 1.0)
    q = ratio[:, None] * np.eye(10)[y[one]] + (1 - ratio)[:, None] * np.eye(10)[y[two]]
    return Images(ratio[:, None] * x[one] + (1 - ratio)[:, None] * x[two], q)


def shifted(x: Floats, rng: np.random.Generator) -> Floats:
    """Every image moved by up to a pixel, and a little noise."""
    images = x.reshape(-1, 8, 8)
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    down, right = rng.integers(3, size=(2, len(x)))
    rows = down[:, None, None] + np.arange(8)[:, None]
    columns = right[:, None, None] + np.arange(8)
    moved = padded[np.arange(len(x))[:, None, None], rows, columns].reshape(len(x), -1)
    return moved + rng.normal(0, 0.05, moved.shape)


class Network:
    """One hidden layer with dropout, trained by Adam on single labels."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.w = [
            rng.normal(0, np.sqrt(2 / 64), (64, HIDDEN)), np.zeros(HIDDEN),
            rng.normal(0, np.sqrt(1 / HIDDEN), (HIDDEN, 10)), np.zeros(10),
        ]  # fmt: skip

    def hidden(self, x: Floats, rng: np.random.Generator | None) -> Floats:
        """Activations; with a generator some of them dropped, and the others larger."""
        h = np.maximum(x @ self.w[0] + self.w[1], 0.0)
        return h if rng is None else h * (rng.random(h.shape) > DROPPED) / (1 - DROPPED)

    def probabilities(self, x: Floats, rng: np.random.Generator | None = None) -> Floats:
        """P(class), (n, 10)."""
        return softmax(self.hidden(x, rng) @ self.w[2] + self.w[3], axis=1)

    def train(self, x: Floats, y: Floats, rng: np.random.Generator) -> None:
        """Cross-entropy of labels y (n,)."""
        mean, square = ([np.zeros_like(w) for w in self.w] for _ in range(2))
        step = 0
        for _ in range(EPOCHS):
            for rows in np.array_split(rng.permutation(len(x)), len(x) // BATCH):
                own = shifted(x[rows], rng)
                h = self.hidden(own, rng)
                p = softmax(h @ self.w[2] + self.w[3], axis=1)
                gap = (p - np.eye(10)[y[rows]]) / len(rows)
                back = (gap @ self.w[2].T) * (h > 0) / (1 - DROPPED)
                slopes = [own.T @ back, back.sum(axis=0), h.T @ gap, gap.sum(axis=0)]
                step += 1
                for w, m, s, g in zip(self.w, mean, square, slopes, strict=True):
                    m += 0.1 * (g - m)
                    s += 0.001 * (g**2 - s)
                    unbiased = np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
                    w -= RATE * unbiased * m / (np.sqrt(s) + 1e-8)


def _network(data: Path, run: int) -> list[Record]:
    """Train, and judge the network, its dropout and its augmentation on images of others."""
    from sklearn.datasets import load_digits

    rng = generator("network", SEED, "digits", run)
    x, y = load_digits(return_X_y=True)
    order = rng.permutation(len(x))
    x, y = x[order] / 16.0, y[order]
    parts = np.split(np.arange(len(x)), [900, 1300])
    train, valid, test = (
        mixtures(x[part], y[part], size, rng)
        for part, size in zip(parts, (TRAIN, VALID, TEST), strict=True)
    )
    network = Network(rng)
    network.train(train.x, draw_labels(train.q, 1, rng).argmax(axis=1), rng)
    counts, judged = draw_labels(valid.q, LABELS, rng), draw_labels(test.q, 10, rng)
    one = draw_labels(test.q, 1, rng)
    found = []
    for kind in ("network", "dropout", "augmentation"):
        count, dropping = 1 if kind == "network" else MEMBERS, rng if kind == "dropout" else None
        inside, outside = (
            np.stack([
                network.probabilities(shifted(x, rng) if kind == "augmentation" else x, dropping)
                for _ in range(count)
            ])
            for x in (valid.x, test.x)
        )  # fmt: skip
        mean, seen = map(calibration.ensemble_mean, (outside, inside))
        alpha = calibration.AlphaCalibration(penalty=PAPER_PENALTY).fit(seen, counts)
        of_alpha = alpha.concentration(mean)
        for method, of in (("raw", None), ("alpha", of_alpha)):
            differ = calibration.ensemble_disagreement(outside, concentration=of)
            after = calibration.ensemble_posterior(outside, one, concentration=of)
            losses = evaluate(judged, mean, disagreement=differ)
            found.append({
                "run": run, "kind": kind, "method": method, "EL": losses["EL"],
                "L_disagreement": losses["L_disagreement"],
                "CE_disagreement": losses["CE_disagreement"],
                "before": ((mean - test.q) ** 2).sum(axis=1).mean(),
                "after": ((after - test.q) ** 2).sum(axis=1).mean(),
                "alpha0": float(of_alpha[0]),
            })  # fmt: skip
    return found


def _blocks(records: pd.DataFrame, plan: Plan) -> str:
    heads = {
        "EL": "EL", "L_disagreement": "L of disagreement", "CE_disagreement": "CE of disagreement",
        "before": "distance to Q", "after": "the same after a label", "alpha0": "alpha0",
    }  # fmt: skip
    columns = {head: averaged(name, 4, "std") for name, head in heads.items()}
    return grouped(records, ["kind", "method"], columns, ["by", "disagreement"])


NETWORK = Part(
    crossed(run=Some(range(RUNS))), _network, _blocks,
    f"{RUNS} runs, {MEMBERS} members, {LABELS} labels per validation item, seed {SEED}; ± is the "
    "standard deviation over the runs",
)  # fmt: skip
