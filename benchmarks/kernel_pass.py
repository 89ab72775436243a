"""What a row costs in the pass of kernel and flow posteriors over a stream, on one thread.

    OMP_NUM_THREADS=1 python benchmarks/kernel_pass.py [--rows 200000] [--support 1000 5000]

Batches of 65,536 rows of seven classifiers go through fitted models, as streaming does it: P(label)
and all replicates in one pass. Beside them, what the products take alone. CPU time, best of three,
in ns per row and support point for kernels, in microseconds per row for the flow.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import fewlabels as fl
from fewlabels.kernels.blocks import one_blas_thread, spans, using_workers
from fewlabels.methods.base import FittedLabelModel
from fewlabels.methods.ssme.kde_mixture import SupportSums
from fewlabels.models import SSMEKDE, SSMEFlow
from speed import few_labels, make_scores

BATCH_ROWS = 65_536
REPLICATES = (1, 10, 20)


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds, the best of three runs after one that touches the memory."""
    work()
    best = np.inf
    for _ in range(3):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return float(best)


def posteriors(fitted: FittedLabelModel, batches: list[fl.Predictions]) -> None:
    """P(label) and all parameter draws of every batch."""
    for batch in batches:
        found = fitted.posterior(batch)
        _ = found.probabilities


def make_batches(n: int) -> list[fl.Predictions]:
    """Batches of unlabeled rows."""
    scores, _ = make_scores(n, seed=1)
    batches = []
    for rows in spans(n, BATCH_ROWS):
        batch = fl.Predictions(scores[rows], np.full(rows.stop - rows.start, -1))
        _ = batch.keys, batch.evidence
        batches.append(batch)
    return batches


def products(n: int, m: int, columns: int) -> float:
    """Seconds of the sums alone."""
    rng = np.random.default_rng(3)
    sums = SupportSums(rng.normal(size=(m, 7)), rng.random((m, columns)))
    queries = rng.normal(size=(n, 7))
    return seconds(lambda: [sums.of(queries[rows]) for rows in spans(n, 4096)])


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=200_000)
    options.add_argument("--support", type=int, nargs="+", default=[1000, 5000])
    arguments = options.parse_args()
    n, batches = arguments.rows, make_batches(arguments.rows)
    print("| support | replicates | whole pass, ns per pair | products alone |")
    print("|---|---|---|---|")
    for m in arguments.support:
        sample = few_labels(m, seed=2, known=100)
        for replicates in REPLICATES:
            model = SSMEKDE(epochs=20, replicates=replicates, max_support=max(m, 1))
            fitted = model.fit(sample, np.random.default_rng(0))
            fitted.posterior(sample).prepare()
            whole = seconds(lambda fitted=fitted: posteriors(fitted, batches)) / (n * m)
            alone = products(n, m, 2 + 2 * replicates) / (n * m)
            print(f"| {m} | {replicates} | {whole * 1e9:.2f} | {alone * 1e9:.2f} |", flush=True)
    flow = SSMEFlow(flow_epochs=20, joint_epochs=20)
    sample = few_labels(2000, seed=2, known=100)
    fitted = flow.fit(sample, np.random.default_rng(0))
    fitted.posterior(sample).prepare()
    taken = seconds(lambda: posteriors(fitted, batches[:1])) / batches[0].n_items
    print(f"\nflow, with {flow.replicates} replicates: {taken * 1e6:.1f} us per row")


if __name__ == "__main__":
    with using_workers(1), one_blas_thread():
        main()
