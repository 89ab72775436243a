"""Files of any number of rows, made from CivilComments: rows drawn again, scores jittered.

Every row is a comment drawn at random whose logits move by Normal(0, 0.05), each by itself, so that
no two rows are alike. The label is kept; all but `--labels` of them are then hidden. Parts have a
million rows, each from a seed of its own: the first parts are the same however many there are.

    python benchmarks/big_files.py --rows 10000000 --out build/big-10000000
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MODELS = ("CORAL", "ERM", "ERM_seed1", "ERM_seed2", "IRM", "IRM_seed1", "IRM_seed2")
PART_ROWS = 1_000_000
JITTER = 0.05
SEED = 81


def source(data: Path) -> tuple[np.ndarray, np.ndarray]:
    """Logits (n, 7) and labels (n,) of CivilComments."""
    columns = [f"p__{m}__1" for m in MODELS]
    file = data / "ssme_civilcomments" / "data.parquet"
    table = pq.read_table(file, columns=["label", *columns])
    p = np.stack([table[c].to_numpy().astype(float) for c in columns], axis=1)
    p = np.clip(p, 1e-7, 1 - 1e-7)
    return np.log(p) - np.log1p(-p), table["label"].to_numpy().astype(int)


def part(logits: np.ndarray, labels: np.ndarray, number: int, rows: int, known: int) -> pa.Table:
    """One part, of which the first `known` rows keep their labels."""
    rng = np.random.default_rng([SEED, number])
    drawn = rng.integers(len(labels), size=rows)
    z = logits[drawn] + rng.normal(0, JITTER, (rows, len(MODELS)))
    p = (1 / (1 + np.exp(-z))).astype(np.float32)
    shown = labels[drawn].astype(np.int8)
    columns = {"label": pa.array(shown, mask=np.arange(rows) >= known)}
    columns |= {f"p__{m}__1": pa.array(p[:, j]) for j, m in enumerate(MODELS)}
    columns["quarter"] = pa.array(np.array(list("abcd"), dtype=object)[drawn % 4])
    return pa.table(columns)


def make(data: Path, rows: int, out: Path, known: int = 100) -> None:
    """Write the parts; those that are there already stay."""
    out.mkdir(parents=True, exist_ok=True)
    logits, labels = source(data)
    for number, start in enumerate(range(0, rows, PART_ROWS)):
        path = out / f"part-{number:04d}.parquet"
        if not path.exists():
            size = min(PART_ROWS, rows - start)
            table = part(logits, labels, number, size, known if number == 0 else 0)
            pq.write_table(table, path.with_suffix(".draft"), row_group_size=2**17)
            os.replace(path.with_suffix(".draft"), path)


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--labels", type=int, default=100)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("FEWLABELS_DATA", "data")))
    given = parser.parse_args()
    make(given.data, given.rows, given.out, given.labels)


if __name__ == "__main__":
    main()
