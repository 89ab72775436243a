"""Worlds of label histograms with known distributions."""

from __future__ import annotations

import json

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20210)


@pytest.fixture(scope="session")
def golden(golden_folder):
    return json.loads((golden_folder / "golden_lh_calib.json").read_text())


@pytest.fixture
def world(rng):
    """Logits (n, K), probabilities, distributions around them, counts and features."""
    n, k = 900, 4
    logits = rng.normal(0, 1.5, (n, k))
    f = np.exp(logits)
    f /= f.sum(axis=1, keepdims=True)
    features = rng.normal(size=(n, 3)) * [1.0, 50.0, 1e-3] + [0.0, 300.0, 0.0]
    log_alpha0 = 1.0 + 0.8 * features[:, 0] + 400 * features[:, 2]
    q = np.array([rng.dirichlet(a * p) for a, p in zip(np.exp(log_alpha0), f, strict=True)])
    sizes = rng.integers(0, 7, n)
    counts = np.array([rng.multinomial(m, p) for m, p in zip(sizes, q, strict=True)])
    return {"logits": logits, "f": f, "features": features, "q": q, "counts": counts,
            "log_alpha0": log_alpha0}  # fmt: skip
