"""Make slides.csv: three classifiers and up to six pathologists look at slides, and differ."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

CLASSES = ("benign", "atypical", "malignant")
SHARPNESS = {"large": 1.8, "small": 1.0, "rules": 0.6}
"""How much surer than right (above 1), or less sure, each classifier is."""


def make(seed: int = 0, n: int = 1200) -> tuple[pa.Table, np.ndarray]:
    """Slides, of which a third have labels; and what experts say of each, as a distribution."""
    rng = np.random.default_rng(seed)
    logits = rng.normal((0.6, -0.4, 0.0), 1.4, (n, 3))
    expected = softmax(logits)
    # Experts are of one mind on clear slides, of several on atypical ones.
    concentration = np.exp(1.5 - 2.5 * expected[:, 1] + rng.normal(0, 0.4, n))
    truth = np.array(
        [rng.dirichlet(a * p + 1e-3) for a, p in zip(concentration, expected, strict=True)]
    )
    columns = {"item": pa.array([f"slide{i + 1:04d}" for i in range(n)])}
    columns["scanner"] = pa.array(rng.choice(["A", "B"], n))
    for name, sharpness in SHARPNESS.items():
        p = softmax(sharpness * (logits + rng.normal(0, 0.6, (n, 3)))).round(4)
        p[:, 2] = (1 - p[:, 0] - p[:, 1]).round(4)
        for k, label in enumerate(CLASSES):
            columns[f"p__{name}__{label}"] = pa.array(p[:, k])
    size = np.zeros(n, dtype=int)
    size[: n // 4] = rng.integers(3, 7, n // 4)
    size[n // 4 : n // 3] = 1
    counts = np.array([rng.multinomial(s, q) for s, q in zip(size, truth, strict=True)])
    for k, label in enumerate(CLASSES):
        columns[f"h__{label}"] = pa.array(counts[:, k])
    return pa.table(columns).take(rng.permutation(n)), truth


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities of logits (n, K)."""
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


if __name__ == "__main__":
    table, _ = make()
    pc.write_csv(table, Path(__file__).with_name("slides.csv"))
    print(f"slides.csv: {table.num_rows} slides, a third of them with labels of experts")
