"""How alike classifiers are, and which weak supervision takes to be dependent (SSME, D.3, D.5).

    python -m benchmarks dependencies [--data DIR]

Writes benchmarks/results/dependencies.json: the pairs of CivilComments' seven classifiers in the
sparse part of the inverse covariance of their votes (Varma et al. 2019), and the mean correlation
of their log-ratios, on all items.
"""

from __future__ import annotations

import itertools
import json

import numpy as np

import fewlabels as fl
from bench.world import likeness
from runs import DATA, ROOT, command_line

RESULTS = ROOT / "benchmarks" / "results" / "dependencies.json"
MODELS = ("CORAL", "ERM", "ERM_seed1", "ERM_seed2", "IRM", "IRM_seed1", "IRM_seed2")


def dependencies(votes: np.ndarray, threshold: float = 1.0) -> set[tuple[int, int]]:
    """Pairs of sources in the sparse part of the inverse covariance of the votes (n, M).

    Off the diagonal, inverse covariance = sparse - z z', where z z' is that of the hidden class.
    Each z_i^2 is a median over triplets (i, j, k) of e_ij e_ik / e_jk with e = z z', which a few
    dependent pairs do not move; what the rank-one part leaves over is the sparse part.
    """
    e = -np.linalg.inv(np.cov(votes.T.astype(float)))
    m = len(e)
    z = np.zeros(m)
    for i in range(m):
        pairs = itertools.combinations([j for j in range(m) if j != i], 2)
        z[i] = np.sqrt(max(np.median([e[i, j] * e[i, k] / e[j, k] for j, k in pairs]), 0.0))
    return {
        (i, j)
        for i, j in itertools.combinations(range(m), 2)
        if abs(e[i, j] - z[i] * z[j]) > threshold
    }


def main() -> None:
    """Infer the dependencies and keep them."""
    data = command_line(__doc__, data=DATA).parse_args().data
    predictions = fl.read_predictions(data / "ssme_civilcomments" / "data.parquet")
    predictions = predictions.select_models(MODELS)
    pairs = sorted(dependencies(predictions.hard))
    scores = [pair["score_correlation"] for pair in likeness(predictions).values()]
    kept = {
        "command": "python -m benchmarks dependencies", "items": predictions.n_items,
        "pairs": len(scores), "dependent": len(pairs),
        "score_correlation": round(float(np.mean(scores)), 4),
        "which": [[MODELS[i], MODELS[j]] for i, j in pairs],
    }  # fmt: skip
    RESULTS.write_text(json.dumps(kept) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
