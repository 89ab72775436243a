"""SSME-KDE: what is particular to it."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.models import SSMEKDE


def two_moons(n: int = 300, known: int = 20, seed: int = 0) -> tuple[fl.Predictions, np.ndarray]:
    """Two classifiers, well separated classes."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.4).astype(int)
    logits = 3 * (truth[:, None] - 0.5) + rng.normal(size=(n, 2))
    p = 1 / (1 + np.exp(-logits))
    return fl.Predictions(p, np.where(np.arange(n) < known, truth, -1)), truth


def test_em_learns_with_wide_kernels():
    predictions, truth = two_moons()
    wide = SSMEKDE(bandwidth="scott").infer(predictions, 0)
    start = SSMEKDE(bandwidth=1e-3).infer(predictions, 0)
    unlabeled = ~predictions.labeled
    error = [np.mean(p.marginals().argmax(1)[unlabeled] != truth[unlabeled]) for p in (wide, start)]
    assert error[0] < error[1]
    assert wide.status == "ok"


def test_leaving_the_own_kernel_out_makes_em_move():
    predictions, _ = two_moons()
    moved = {}
    for leave_out in (False, True):
        model = SSMEKDE(bandwidth=0.01, leave_one_out=leave_out)
        fitted = model.fit(predictions, np.random.default_rng(0))
        start = fitted.mixture._start(1, 0)[:, :, 0].argmax(axis=1)
        end = fitted.posterior(predictions).marginals().argmax(axis=1)
        moved[leave_out] = (start != end)[~predictions.labeled].mean()
    assert moved[False] < 0.01
    assert moved[True] > 0.05


def test_support_points_approximate_the_whole():
    predictions, _ = two_moons(n=3000, known=100)
    whole = SSMEKDE(bandwidth=0.4, init="soft").infer(predictions, 0)
    part = SSMEKDE(bandwidth=0.4, init="soft", max_support=2000).infer(predictions, 0)
    assert part.diagnostics["support_points"] == 1000
    assert np.abs(whole.marginals() - part.marginals()).mean() < 0.02
    rows = np.flatnonzero(predictions.labeled)
    assert (part.marginals()[rows, predictions.labels[rows]] == 1).all()


def test_labels_weigh_the_same_on_a_support():
    """Without scaling, taking a tenth of the items would multiply the labels' influence by ten."""
    predictions, _ = two_moons(n=4000, known=400)
    flipped = predictions.with_labels(np.where(predictions.labeled, 1, -1))
    options = {"bandwidth": 1.5, "init": "soft", "epochs": 3}
    whole = SSMEKDE(**options).infer(flipped, 0).marginals()[400:, 1].mean()
    part = SSMEKDE(**options, max_support=1600).infer(flipped, 0).marginals()[400:, 1].mean()
    assert part == pytest.approx(whole, abs=0.02)


@pytest.mark.parametrize("weight", [0.5, 0.25])
def test_a_weight_between_is_that_of_repeated_labels(weight):
    """Unlabeled items that count w are every label 1/w times, beside unlabeled items that count 1.

    The objective is sum_labeled log P(s, y) + w sum_unlabeled log P(s): times 1/w it is the other.
    """
    rng = np.random.default_rng(3)
    truth = (rng.random(240) < 0.4).astype(int)
    p = 1 / (1 + np.exp(-2.5 * (truth[:, None] - 0.5) - rng.normal(size=(240, 2))))
    labels = np.where(np.arange(240) < 30, truth, -1)
    times = round(1 / weight)
    settings = {"bandwidth": 0.7, "init": "soft", "epochs": 30}
    once = SSMEKDE(unlabeled_weight=weight, **settings).infer(fl.Predictions(p, labels), 0)
    rows = np.concatenate([np.tile(np.arange(30), times), np.arange(30, 240)])
    often = SSMEKDE(**settings).infer(fl.Predictions(p[rows], labels[rows]), 0)
    np.testing.assert_allclose(once.marginals()[30:], often.marginals()[30 * times :], atol=2e-6)
    plain = SSMEKDE(**settings).infer(fl.Predictions(p, labels), 0)
    assert np.abs(once.marginals() - plain.marginals()).max() > 0.01


def test_unlabeled_weight_zero_learns_from_labels_alone():
    predictions, _ = two_moons(known=100)
    alone = SSMEKDE(bandwidth=0.5, unlabeled_weight=0.0, init="soft").infer(predictions, 0)
    few = predictions.take(np.r_[0:100, 150:160])
    fewer = SSMEKDE(bandwidth=0.5, unlabeled_weight=0.0, init="soft").infer(few, 0)
    np.testing.assert_allclose(alone.marginals()[150:160], fewer.marginals()[100:], atol=1e-9)


def test_items_far_from_all_labels_have_the_nearest_ones_class():
    """Of unlabeled items that weigh nothing, none sets the scale, however narrow the kernels."""
    p = np.concatenate([np.linspace(0.01, 0.2, 20), np.linspace(0.8, 0.99, 20)])
    labels = np.full(40, -1)
    labels[[0, 39]] = 0, 1
    model = SSMEKDE(bandwidth=0.02, unlabeled_weight=0.0, init="soft")
    found = model.infer(fl.Predictions(p[:, None], labels), 0).marginals()[:, 1]
    np.testing.assert_allclose(found, np.arange(40) >= 20, atol=1e-9)


def test_no_kernels_are_kept_after_a_fit():
    predictions, _ = two_moons(n=1200)
    kept = []
    tracemalloc.start()
    try:
        for seed in range(3):
            fitted = SSMEKDE(replicates=2, epochs=3).fit(predictions, np.random.default_rng(seed))
            kept.append(fitted.posterior(predictions))
            kept[-1].prepare()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 8 * 1200**2  # those of one fit


def test_oscillation_is_reported():
    predictions, _ = two_moons()
    posterior = SSMEKDE(bandwidth=1e-3, leave_one_out=True, epochs=2).infer(predictions, 0)
    assert posterior.status == "not-converged"
    assert any(w.startswith("not-converged") for w in posterior.warnings)


def test_official_differs_by_its_own_rules():
    predictions, _ = two_moons()
    posterior = SSMEKDE(compat="official").infer(predictions, 0)
    assert posterior.diagnostics["epochs"] <= 20
    h = posterior.diagnostics["bandwidth"]
    assert h[0] == h[1]


@pytest.mark.parametrize("bandwidth", [(0.1, 0.2, 0.3), -1.0])
def test_bandwidth_numbers_are_checked(bandwidth):
    with pytest.raises(fl.UsageError, match="`bandwidth` must be one positive number or 2 of them"):
        SSMEKDE(bandwidth=bandwidth).infer(two_moons()[0], 0)
