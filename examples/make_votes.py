"""Make votes.csv: four rules of thumb vote whether phrases are of six kinds; no label is known."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

# How often each misses a member of the category, and takes a stranger for one.
EASY = {
    "large": (0.10, 0.02),
    "small": (0.20, 0.05),
    "keywords": (0.30, 0.03),
    "rules": (0.15, 0.20),
}
HARD = {
    "large": (0.25, 0.05),
    "small": (0.35, 0.10),
    "keywords": (0.60, 0.02),
    "rules": (0.30, 0.30),
}
KINDS = {"animal": EASY, "city": EASY, "fruit": EASY, "sport": HARD, "company": HARD, "river": HARD}


def make(seed: int = 0, n: int = 200) -> tuple[pa.Table, np.ndarray]:
    """Votes of n phrases in every category, a fifth of them missing, and the truth."""
    rng = np.random.default_rng(seed)
    domain = np.repeat(list(KINDS), n)
    truth = rng.random(len(domain)) < np.repeat(rng.uniform(0.2, 0.5, len(KINDS)), n)
    columns = {"domain": pa.array(domain)}
    for name in EASY:
        miss, mistake = np.array([KINDS[d][name] for d in domain]).T
        vote = np.where(truth, rng.random(len(truth)) >= miss, rng.random(len(truth)) < mistake)
        said = np.where(vote, "yes", "no")
        columns[f"y__{name}"] = pa.array(said, mask=rng.random(len(truth)) < 0.2)
    return pa.table(columns), truth


if __name__ == "__main__":
    table, _ = make()
    pc.write_csv(table, Path(__file__).with_name("votes.csv"))
    print(f"votes.csv: {table.num_rows} phrases in {len(KINDS)} categories, no label")
