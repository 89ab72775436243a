"""Make moderation.csv, 1,000 simulated comments of which 50 keep their label, and another whole."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc


def make(seed: int = 0, n: int = 1000, known: int = 50) -> pa.Table:
    """A fifth of the comments is toxic; each classifier sees the signal with its own noise."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < 0.2
    language = rng.choice(["en", "es", "de"], size=n, p=[0.6, 0.25, 0.15])
    hard = np.where(language == "en", 1.0, 1.4)  # the classifiers learned mostly from English
    signal = np.where(truth, 1.0, -1.0) + 0.35 * hard * rng.normal(size=n)
    columns = {
        "label": pa.array(np.where(truth, "toxic", "fine"), mask=rng.permutation(n) >= known),
        "language": pa.array(language),
    }
    # Name: how sharply it sees, how noisily, how confident it is of what it saw.
    classifiers = {"large": (2.2, 0.7, 1.0), "tuned": (1.9, 0.8, 1.3), "small": (1.5, 1.0, 1.0),
                   "keywords": (0.9, 1.1, 1.8)}  # fmt: skip
    for name, (sharpness, noise, confidence) in classifiers.items():
        logit = confidence * (sharpness * signal + noise * hard * rng.normal(size=n) - 0.6)
        columns[f"p__{name}__toxic"] = pa.array((1 / (1 + np.exp(-logit))).round(4))
    return pa.table(columns)


if __name__ == "__main__":
    for name, table in {
        "moderation.csv": make(),
        "moderation_labeled.csv": make(seed=1, n=1500, known=1500),
    }.items():
        pc.write_csv(table, Path(__file__).with_name(name))
        known = table.num_rows - table["label"].null_count
        print(f"{name}: {table.num_rows} comments, {known} labels")
