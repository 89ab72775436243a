"""SSME-KDE against a double loop, improved Sheather-Jones against KDEpy, the self-share warning."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from reference_naive import log_ratios, naive_kde_em

import fewlabels as fl
from worlds import World, world


def marginals(w: World, **options) -> np.ndarray:
    model = fl.models.SSMEKDE(init="soft", **options)
    return model.infer(w.predictions(), np.random.default_rng(0)).marginals()


@pytest.mark.product(2)
@pytest.mark.parametrize("leave_one_out", [False, True], ids=["own-kernel", "leave-one-out"])
@pytest.mark.parametrize("bandwidth", [0.3, 2.5])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("epochs", [1, 6])
def test_em_equals_the_double_loop(classes, bandwidth, leave_one_out, epochs):
    w = world(n=45, models=2, classes=classes, labeled=9, seed=3)
    got = marginals(w, bandwidth=bandwidth, epochs=epochs, leave_one_out=leave_one_out)
    wanted = naive_kde_em(w.P, w.shown, bandwidth, epochs, leave_one_out)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("leave_one_out", [False, True])
def test_a_bandwidth_per_dimension(leave_one_out):
    w = world(n=40, models=2, classes=3, labeled=8, seed=4)
    h = np.array([0.4, 0.8, 1.2, 2.0])  # model a: class 0, class 1 over class 2; then model b
    got = marginals(w, bandwidth=h, epochs=3, leave_one_out=leave_one_out)
    np.testing.assert_allclose(
        got, naive_kde_em(w.P, w.shown, h, 3, leave_one_out), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_exact_zeros_are_clipped_to_a_millionth(classes):
    w = world(n=40, models=2, classes=classes, labeled=8, seed=5)
    P = w.P.copy()
    P[::3, 0] = np.eye(classes)[P[::3, 0].argmax(axis=1)]
    w = World(P, w.truth, w.shown)
    got = marginals(w, bandwidth=1.5, epochs=2, leave_one_out=True)
    # the start may average clipped or raw probabilities: 1e-6 apart before the first epoch
    np.testing.assert_allclose(got, naive_kde_em(P, w.shown, 1.5, 2, True), rtol=0, atol=3e-6)


def test_far_points_do_not_underflow():
    """Leaving the own kernel out at a tiny bandwidth: densities of exp(-1000) still compare."""
    w = world(n=40, models=2, labeled=8, seed=6)
    got = marginals(w, bandwidth=0.02, epochs=2, leave_one_out=True)
    assert np.isfinite(got).all()
    np.testing.assert_allclose(got.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(got, naive_kde_em(w.P, w.shown, 0.02, 2, True), rtol=0, atol=1e-6)


@pytest.mark.product
@pytest.mark.parametrize("init", ["soft", "draw"])
@pytest.mark.parametrize("compat", [None, "official"])
@pytest.mark.parametrize("classes", [2, 3])
def test_labels_are_kept(init, compat, classes):
    w = world(n=80, models=2, classes=classes, labeled=20, seed=7)
    model = fl.models.SSMEKDE(
        init=init, compat=compat, bandwidth=0.5 if compat is None else "official"
    )
    posterior = model.infer(w.predictions(), np.random.default_rng(0))
    known = w.shown >= 0
    assert np.array_equal(posterior.marginals()[known], np.eye(classes)[w.shown[known]])
    np.testing.assert_allclose(posterior.marginals().sum(axis=1), 1, atol=1e-9)
    assert (posterior.draws(5, np.random.default_rng(1))[:, known] == w.shown[known]).all()


def test_init_draw_starts_from_labels_drawn_from_the_mean_classifier():
    """At a bandwidth that freezes EM the answer is the start: draws with the mean's frequencies."""
    w = world(n=150, models=2, labeled=10, seed=8)
    unknown = w.shown < 0
    mean = w.P.mean(axis=1)[unknown, 1]
    model = fl.models.SSMEKDE(bandwidth=1e-3, init="draw", leave_one_out=False, epochs=3)
    drawn = [
        model.infer(w.predictions(), np.random.default_rng(seed)).marginals()[unknown, 1]
        for seed in range(100)
    ]
    drawn = np.array(drawn)
    assert (np.abs(drawn - np.round(drawn)) < 1e-6).all()
    z = (drawn.mean(axis=0) - mean) / np.sqrt(mean * (1 - mean) / len(drawn))
    assert np.abs(z).max() < 5
    assert scipy.stats.kstest(z, "norm").pvalue > 1e-4


def _smooth(n: int, rng: np.random.Generator) -> np.ndarray:
    """Scores of three classifiers: normal, two bumps, skewed."""
    s = np.stack(
        [
            rng.normal(0, 1.5, n),
            np.where(rng.random(n) < 0.6, rng.normal(-3, 0.7, n), rng.normal(2, 1.0, n)),
            np.log(rng.gamma(3.0, size=n)),
        ],
        axis=1,
    )
    return 1 / (1 + np.exp(-s))


def _kdepy_isj(x: np.ndarray) -> float:
    """KDEpy solves on a grid wider than the data, then scales back by the range of the data.

    Botev's algorithm scales by the range of the grid (KDEpy issues 199 and 201): put that right.
    """
    selection = pytest.importorskip("KDEpy.bw_selection", reason="cross-check with KDEpy")
    grid = selection.autogrid(x[:, None], boundary_abs=6, num_points=2**10, boundary_rel=0.5)
    return selection.improved_sheather_jones(x[:, None]) * np.ptp(grid) / np.ptp(x)


def test_improved_sheather_jones_per_dimension(rng):
    p = _smooth(1500, rng)
    labels = np.full(1500, -1)
    labels[:20] = np.arange(20) % 2
    posterior = fl.models.SSMEKDE(bandwidth="isj", epochs=1).infer(
        fl.Predictions(p, labels), np.random.default_rng(0)
    )
    got = np.asarray(posterior.diagnostics["bandwidth"], dtype=float)
    # the last class is the reference: log P(0) - log P(1); the sign does not change a bandwidth
    s = log_ratios(np.stack([1 - p, p], axis=2))
    np.testing.assert_allclose(got, [_kdepy_isj(s[:, d]) for d in range(3)], rtol=0.05)


def test_improved_sheather_jones_on_civilcomments(golden):
    predictions = golden.predictions(20, 0)
    got = fl.models.SSMEKDE(epochs=1).infer(predictions, np.random.default_rng(0))
    s = log_ratios(predictions.probabilities)
    wanted = [_kdepy_isj(s[:, d]) for d in range(7)]
    np.testing.assert_allclose(got.diagnostics["bandwidth"], wanted, rtol=0.05)


def test_official_bandwidth_is_a_quarter_of_the_normal_reference(rng):
    p = _smooth(800, rng)
    labels = np.full(800, -1)
    labels[:20] = np.arange(20) % 2
    posterior = fl.models.SSMEKDE(compat="official", bandwidth="official").infer(
        fl.Predictions(p, labels), np.random.default_rng(0)
    )
    s = np.log(p / (1 - p))
    iqr = np.quantile(s, 0.75, axis=0) - np.quantile(s, 0.25, axis=0)
    each = 1.059 * np.minimum(s.std(axis=0, ddof=1), iqr / 1.349) * 800**-0.2 / 4
    got = np.unique(np.asarray(posterior.diagnostics["bandwidth"], dtype=float))
    np.testing.assert_allclose(got, [each.min()], rtol=1e-3)


def _told(posterior_or_estimates) -> bool:
    text = " ".join(posterior_or_estimates.warnings)
    return "too narrow" in text and "averaged classifier" in text


def test_self_share_near_one_is_told_and_scotts_bandwidth_is_not():
    w = world(n=400, models=5, labeled=20, seed=9)
    s = log_ratios(w.P)
    scott = s.std(axis=0, ddof=1) * 400 ** (-1 / (5 + 4))
    narrow = fl.models.SSMEKDE(bandwidth=0.02, leave_one_out=False)
    wide = fl.models.SSMEKDE(bandwidth=scott, leave_one_out=False)
    a = narrow.infer(w.predictions(), np.random.default_rng(0))
    b = wide.infer(w.predictions(), np.random.default_rng(0))
    assert a.diagnostics["self_share"] > 0.99
    assert b.diagnostics["self_share"] < 0.9
    assert _told(a)
    assert not _told(b)
    assert _told(fl.estimate(w.predictions(), method=narrow, metrics=["accuracy"]))


def test_self_share_is_the_median_share_of_the_own_kernel():
    w = world(n=50, models=2, labeled=10, seed=3)
    posterior = fl.models.SSMEKDE(bandwidth=0.8, leave_one_out=False, init="soft", epochs=5).infer(
        w.predictions(), np.random.default_rng(0)
    )
    s = log_ratios(w.P)
    K = np.exp(-0.5 * (((s[:, None] - s[None]) / 0.8) ** 2).sum(axis=2))
    assert posterior.diagnostics["self_share"] == pytest.approx(
        np.median(1 / K.sum(axis=1)), abs=0.02
    )


def test_the_papers_defaults_by_name_freeze_on_civilcomments(golden):
    """ssme.md section 2: every point's density is its own kernel, and the warning says so."""
    predictions = golden.predictions(20, 0)
    estimates = fl.estimate(predictions, method="ssme-kde", metrics=["accuracy"])
    assert _told(estimates)
    assert estimates.posterior.diagnostics["self_share"] > 0.99
    marginals = estimates.posterior.marginals()
    assert (np.abs(marginals - np.round(marginals)) < 0.01).all(axis=1).mean() > 0.98
    official = fl.models.SSMEKDE(compat="official").infer(predictions, np.random.default_rng(0))
    h = np.asarray(official.diagnostics["bandwidth"], dtype=float)
    assert 0.05 < h.max() < 0.08


def test_leave_one_out_makes_em_move_on_civilcomments(golden):
    """With its own kernel in, a soft start stays where it is; without, EM moves."""
    P, _, labeled = golden.split(20, 0)
    start = P.mean(axis=1)[~labeled]
    moved = {}
    for leave_one_out in (False, True):
        model = fl.models.SSMEKDE(leave_one_out=leave_one_out, init="soft")
        posterior = model.infer(golden.predictions(20, 0), np.random.default_rng(0))
        moved[leave_one_out] = np.abs(posterior.marginals()[~labeled, 1] - start).mean()
    assert moved[True] > 5 * moved[False], moved
