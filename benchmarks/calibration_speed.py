"""Speed of calibration, against the same fits as one writes them without this library.

    python benchmarks/calibration_speed.py [--items 100000] [--features 64]

Alpha-calibration against `scipy.optimize.minimize` with the digammas of the loss written out, and
against autograd where it is installed; scalings against scikit-learn's logistic regression. All in
one process, one after the other; the rivals stop at the tolerance of L-BFGS, ours at 1e-9.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import digamma, gammaln
from sklearn.linear_model import LogisticRegression

from fewlabels.calibration import (
    AlphaCalibration,
    MatrixScaling,
    TemperatureScaling,
    VectorScaling,
)
from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.simplex import softmax

CLASSES, LABELS, PENALTY = 10, 5, 0.005


def make_items(n: int, d: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Logits (n, K), probabilities (n, K), counts of five labels (n, K), features (n, d)."""
    rng = np.random.default_rng(6)
    logits = rng.normal(0, 2, (n, CLASSES))
    f = softmax(logits)
    hidden = rng.normal(size=(n, 8))  # features go together, as those of a network do
    features = hidden @ rng.normal(size=(8, d)) + 0.3 * rng.normal(size=(n, d))
    features = features * np.exp(rng.normal(0, 2, d)) + rng.normal(0, 5, d)
    log_alpha0 = 1 + hidden @ rng.normal(0, 0.3, 8)
    gamma = rng.gamma(np.maximum(np.exp(log_alpha0)[:, None] * f, 1e-3))
    q = gamma / gamma.sum(axis=1, keepdims=True)
    return logits, f, rng.multinomial(LABELS, q).astype(float), features


def by_digammas(f: Floats, counts: Floats, features: Floats) -> float:
    """The least loss, by scipy, with special functions of all n x K terms."""
    n = counts.sum(axis=1)
    h = np.column_stack([_units(features), np.ones(len(f))])

    def loss(theta: Floats) -> tuple[float, Floats]:
        log_alpha0 = h @ theta
        a = np.exp(log_alpha0)
        af = a[:, None] * f
        value = gammaln(a) - gammaln(a + n) + (gammaln(af + counts) - gammaln(af)).sum(axis=1)
        slope = a * (digamma(a) - digamma(a + n))
        slope += (af * (digamma(af + counts) - digamma(af))).sum(axis=1)
        pull = 2 * PENALTY / len(f) * log_alpha0
        total = -value.sum() / n.sum() + PENALTY * np.mean(log_alpha0**2)
        return float(total), h.T @ (pull - slope / n.sum())

    return float(minimize(loss, np.zeros(h.shape[1]), jac=True, method="L-BFGS-B").fun)


def by_autograd(f: Floats, counts: Floats, features: Floats) -> float:
    """The least loss, by scipy, with autograd's derivatives."""
    import autograd
    import autograd.numpy as anp
    from autograd.scipy.special import gammaln as lgamma

    n = counts.sum(axis=1)
    h = np.column_stack([_units(features), np.ones(len(f))])

    def loss(theta: Floats) -> Any:
        log_alpha0 = anp.dot(h, theta)
        a = anp.exp(log_alpha0)
        af = a[:, None] * f
        value = lgamma(a) - lgamma(a + n) + anp.sum(lgamma(af + counts) - lgamma(af), axis=1)
        return -anp.sum(value) / n.sum() + PENALTY * anp.mean(log_alpha0**2)

    both = autograd.value_and_grad(loss)
    return float(minimize(both, np.zeros(h.shape[1]), jac=True, method="L-BFGS-B").fun)


def _units(features: Floats) -> Floats:
    return (features - features.mean(axis=0)) / features.std(axis=0)


def timed(name: str, run: Callable[[], Any]) -> Any:
    """Run, say how long it took, and give the result."""
    begin = time.perf_counter()
    try:
        result = run()
    except ImportError as error:
        print(f"{name:<44} skipped: {error}")
        return None
    shown = f"loss {result:.10f}" if isinstance(result, float) else ""
    print(f"{name:<44}{time.perf_counter() - begin:9.2f} s  {shown}")
    return result


def main() -> None:
    """Time everything once and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=64)
    arguments = parser.parse_args()
    logits, f, counts, features = make_items(arguments.items, arguments.features)
    labels = (logits * 0.6 + np.random.default_rng(1).gumbel(size=logits.shape)).argmax(axis=1)
    print(f"{arguments.items:,} items, {CLASSES} classes, {LABELS} labels each")
    many = f"{arguments.features} features"
    timed(f"alpha, {many}", lambda: AlphaCalibration().fit(f, counts, features).loss_)
    timed("  scipy with digammas", lambda: by_digammas(f, counts, features))
    timed("  scipy with autograd", lambda: by_autograd(f, counts, features))
    timed("alpha, logits", lambda: AlphaCalibration("logits").fit(f, counts).loss_)
    timed("alpha, constant", lambda: AlphaCalibration().fit(f, counts).loss_)
    timed("temperature", lambda: TemperatureScaling(inputs="logits").fit(logits, labels))
    timed("vector, one penalty", lambda: VectorScaling(0.1, inputs="logits").fit(logits, labels))
    timed("vector, chosen among 3", lambda: VectorScaling(inputs="logits").fit(logits, labels))
    timed("matrix, one penalty", lambda: MatrixScaling(0.1, inputs="logits").fit(logits, labels))
    timed("  logistic regression", lambda: LogisticRegression(max_iter=1000).fit(logits, labels))
    timed("matrix, chosen among 9", lambda: MatrixScaling(inputs="logits").fit(logits, labels))


if __name__ == "__main__":
    main()
