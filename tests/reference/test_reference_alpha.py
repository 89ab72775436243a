"""Alpha-calibration and ensembles against plain loops, Theorem 1 and made worlds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference_histograms_naive import (
    alpha_loss,
    ensemble_posterior,
    log_dirmult,
    random_histograms,
    slope,
    squared_bins,
    world,
)
from scipy.optimize import minimize_scalar

import fewlabels as fl


@pytest.fixture(scope="module")
def calibration():
    return pytest.importorskip("fewlabels.calibration")


def fit(calibration, f, y, features=None, kind=None, penalty=0.005, **options):
    model = calibration.AlphaCalibration(concentration=kind, penalty=penalty)
    return model.fit(f, y, features, **options)


# ---------------------------------------------------------------- loss (50)


@pytest.mark.parametrize("penalty", [0.005, 0.3])
def test_constant_concentration_is_the_minimum_of_the_loss(calibration, rng, penalty):
    _, f, _, _, y = world(rng, 80, rng.integers(2, 7, 80))
    model = fit(calibration, f, y, kind="constant", penalty=penalty)
    best = minimize_scalar(lambda t: alpha_loss(y, f, t, penalty), (-2, 2), tol=1e-10)
    found = np.log(model.concentration(f))
    np.testing.assert_allclose(found, best.x, atol=1e-5)
    assert np.ptp(found) == 0
    assert model.loss_ == pytest.approx(best.fun, rel=1e-9)
    assert model.intercept_ == pytest.approx(found[0])
    # The released code does not divide by the number of labels: another optimum.
    other = minimize_scalar(lambda t: alpha_loss(y, f, t, penalty / 4), (-2, 2), tol=1e-10)
    assert abs(other.x - best.x) > 1e-4


@pytest.mark.parametrize("kind", ["features", "logits"])
def test_a_fit_is_stationary(calibration, rng, kind):
    h, f, _, _, y = world(rng, 60, rng.integers(2, 7, 60))
    model = fit(calibration, f, y, h if kind == "features" else None, kind)
    x = h if kind == "features" else np.log(f)
    log_alpha0 = np.log(model.concentration(f, h if kind == "features" else None))
    assert model.loss_ == pytest.approx(alpha_loss(y, f, log_alpha0), rel=1e-9)
    if kind == "features":
        coef = np.ravel(model.coef_)
        np.testing.assert_allclose(log_alpha0, x @ coef + model.intercept_, atol=1e-10)

    def moved(direction):
        return alpha_loss(y, f, log_alpha0 + x @ direction[1:] + direction[0])

    assert np.abs(slope(moved, np.zeros(x.shape[1] + 1))).max() < 2e-6
    assert np.abs(slope(moved, np.full(x.shape[1] + 1, 0.1))).max() > 1e-3


def test_default_is_features_when_passed_else_constant(calibration, rng):
    h, f, _, _, y = world(rng, 100, 5)
    auto, named = fit(calibration, f, y), fit(calibration, f, y, kind="constant")
    np.testing.assert_array_equal(auto.concentration(f), named.concentration(f))
    auto, named = fit(calibration, f, y, h), fit(calibration, f, y, h, "features")
    np.testing.assert_array_equal(auto.concentration(f, h), named.concentration(f, h))
    assert np.ptp(auto.concentration(f, h)) > 0


def test_single_labels_contribute_nothing(calibration, rng):
    h, f, _, _, y = world(rng, 120, np.repeat([0, 1, 2, 5], 30))
    used = y.sum(axis=1) > 1
    for features, kind in ((None, "constant"), (h, "features")):
        part = None if features is None else h[used]
        whole = fit(calibration, f, y, features, kind).concentration(f, features)
        alone = fit(calibration, f[used], y[used], part, kind).concentration(f, features)
        np.testing.assert_allclose(whole, alone, rtol=1e-5)


def test_released_code(calibration, rng):
    """Constant n: its NLL is not divided by n, so that its penalty is n times weaker."""
    _, f, _, _, y = world(rng, 100, 5)
    theirs = calibration.AlphaCalibration("constant", penalty=0.5, compat="lh_calib").fit(f, y)
    ours = fit(calibration, f, y, kind="constant", penalty=0.1)
    np.testing.assert_allclose(theirs.concentration(f), ours.concentration(f), rtol=1e-5)


# ---------------------------------------------------------------- invariances


def test_invariances(calibration, rng):
    h, f, _, _, y = world(rng, 100, rng.integers(2, 6, 100))
    w = rng.integers(1, 4, 100).astype(float)
    before = fit(calibration, f, y, h, sample_weight=w).concentration(f, h)

    def same(found):
        np.testing.assert_allclose(found, before, rtol=2e-5)

    order, classes = rng.permutation(100), rng.permutation(4)
    model = fit(calibration, f[order], y[order], h[order], sample_weight=w[order])
    same(model.concentration(f, h))
    model = fit(calibration, f[:, classes], y[:, classes], h, sample_weight=w)
    same(model.concentration(f[:, classes], h))
    same(fit(calibration, f, y, h, sample_weight=w * 1e3).concentration(f, h))
    times = np.repeat(np.arange(100), w.astype(int))
    same(fit(calibration, f[times], y[times], h[times]).concentration(f, h))
    # The penalty is on log alpha0, so the units of the features do not matter.
    moved = h @ rng.normal(size=(6, 6)) + 5
    same(fit(calibration, f, y, moved, sample_weight=w).concentration(f, moved))
    scaled = h * 10.0 ** np.arange(-3, 3)
    same(fit(calibration, f, y, scaled, sample_weight=w).concentration(f, scaled))
    assert np.abs(fit(calibration, f, y, h).concentration(f, h) / before - 1).max() > 1e-2


# ---------------------------------------------------------------- what follows from alpha0


def test_disagreement_and_posterior_of_a_model(calibration, rng):
    h, f, _, _, y = world(rng, 50, 4)
    votes = random_histograms(rng, 50, 4, (0, 9))
    votes[0], votes[1] = 0, [4_000_000, 0, 0, 0]
    for features, kind in ((None, "constant"), (None, "logits"), (h, "features")):
        model = fit(calibration, f, y, features, kind)
        a = model.concentration(f, features)
        assert a.shape == (50,)
        expected = [a[i] / (a[i] + 1) * (1 - (f[i] ** 2).sum()) for i in range(50)]
        np.testing.assert_allclose(model.predict_disagreement(f, features), expected, rtol=1e-10)
        found = model.posterior(f, votes, features)
        for i in range(50):
            expected = (a[i] * f[i] + votes[i]) / (a[i] + votes[i].sum())
            np.testing.assert_allclose(found[i], expected, rtol=1e-10)
        np.testing.assert_allclose(found.sum(axis=1), 1)
        np.testing.assert_allclose(found[0], f[0], rtol=1e-10)
        np.testing.assert_array_equal(model.predict_proba(f), f)


def test_theorem_1(calibration):
    """If Q ~ Dir(a0 f), both tasks are best at a0 and better than uncalibrated above (a0-1)/2."""
    rng, f, a0 = np.random.default_rng(1), np.array([0.5, 0.3, 0.2]), 3.0
    S = 1 - (f**2).sum()
    D, V = a0 / (a0 + 1) * S, S / (a0 + 1)
    f = f[None]

    def disagreement_loss(a):
        d = calibration.ensemble_disagreement(f[None], np.array([a]))[0]
        return D * (1 - d) ** 2 + (1 - D) * d**2

    labels = np.eye(3, dtype=int)
    q = rng.dirichlet(a0 * f[0], 200_000)

    def posterior_loss(a):
        """Over the drawn Q exactly: each label y has the chance Q_y."""
        each = calibration.ensemble_posterior(np.tile(f, (1, 3, 1)), labels, np.full(3, a))
        return sum((q[:, k] * ((each[k] - q) ** 2).sum(axis=1)).mean() for k in range(3))

    drawn = ((q - f) ** 2).sum(axis=1).mean(), (1 - (q**2).sum(axis=1)).mean()
    raw = D * (1 - S) ** 2 + (1 - D) * S**2
    for loss, best, limit, tol in (
        (disagreement_loss, a0, raw, 1e-6),
        (posterior_loss, drawn[1] / drawn[0], V, 1e-4),
    ):
        found = minimize_scalar(lambda t, g=loss: g(math.exp(t)), (-1, 3), tol=1e-9)
        assert math.exp(found.x) == pytest.approx(best, rel=1e-3)
        limit = loss(1e9)
        low = 1.0 if loss is disagreement_loss else (drawn[1] / drawn[0] - 1) / 2
        assert loss(low * 1.01) < limit < loss(low * 0.99)
        assert loss(low) == pytest.approx(limit, abs=tol)
    assert drawn[1] / drawn[0] == pytest.approx(a0, rel=0.02)


def test_a_constant_world_is_recovered(calibration):
    """log alpha0 of Q ~ Dir(3 f) within four standard errors, from the curvature of the loss."""
    rng, N = np.random.default_rng(2), 3000
    f = np.tile([0.5, 0.3, 0.2], (N, 1))
    y = rng.multinomial(4, rng.dirichlet(3 * f[0], N))
    found = math.log(fit(calibration, f, y, penalty=0.0).concentration(f)[0])

    def nll(t):
        return alpha_loss(y, f, t, 0.0) * y.sum()

    curvature = (nll(found + 0.05) - 2 * nll(found) + nll(found - 0.05)) / 0.05**2
    assert abs(found - math.log(3)) < 4 / math.sqrt(curvature)
    assert 1 / math.sqrt(curvature) < 0.1


def judged(y, d, posterior, q):
    """L and CE of disagreement on labels, and the posterior's distance to the true Q."""
    n = y.sum(axis=1)
    u = 1 - (y * (y - 1)).sum(axis=1) / (n * (n - 1))
    ce = math.sqrt(max(0.0, squared_bins(u, d, np.ones(len(d)))[1]))
    return ((u - d) ** 2 + u * (1 - u)).mean(), ce, ((posterior - q) ** 2).sum(axis=1).mean()


def protocol(calibration, seed, n, N):
    rng = np.random.default_rng(seed)
    h, f, _, _, y = world(rng, N, n)
    h2, f2, log_alpha0, q2, y2 = world(rng, N, 5)
    one = rng.multinomial(1, q2)
    out = {"raw": judged(y2, 1 - (f2**2).sum(axis=1), f2, q2)}
    correlation = {}
    for kind in ("constant", "logits", "features"):
        a, b = (h, h2) if kind == "features" else (None, None)
        model = fit(calibration, f, y, a, kind)
        out[kind] = judged(y2, model.predict_disagreement(f2, b), model.posterior(f2, one, b), q2)
        spread = np.log(model.concentration(f2, b))
        correlation[kind] = np.corrcoef(spread, log_alpha0)[0, 1] if np.ptp(spread) else 0.0
    a = np.exp(log_alpha0)
    posterior = (a[:, None] * f2 + one) / (a + 1)[:, None]
    out["oracle"] = judged(y2, a / (a + 1) * (1 - (f2**2).sum(axis=1)), posterior, q2)
    return np.array(list(out.values())), correlation


@pytest.mark.parametrize(
    ("n", "N", "seeds"),
    [(5, 1000, 2), pytest.param(5, 3000, 5, marks=pytest.mark.slow),
     pytest.param(2, 3000, 5, marks=pytest.mark.slow)],
)  # fmt: skip
def test_synthetic_protocol(calibration, n, N, seeds):
    """Raw > constant > logits > features ~ oracle in L of disagreement and in the posterior."""
    made = [protocol(calibration, seed, n, N) for seed in range(seeds)]
    means = np.mean([m[0] for m in made], axis=0)
    for column in (0, 2):
        raw, constant, logits, features, oracle = means[:, column]
        assert raw > constant > logits > features > oracle - 1e-4, means
        assert constant - oracle < 0.6 * (raw - oracle)
        assert features - oracle < 0.1 * (raw - oracle), means
    ce = means[:, 1]
    assert ce[0] > 0.1
    assert (ce[1:] < 0.35 * ce[0]).all(), means
    correlation = np.mean([m[1]["features"] for m in made])
    assert correlation > (0.98 if n == 5 else 0.95), correlation
    assert np.mean([m[1]["logits"] for m in made]) < 0.95


# ---------------------------------------------------------------- ensembles


def some_samples(rng, S=5, n=12, K=3):
    samples = rng.dirichlet(np.ones(K), (S, n))
    return samples, random_histograms(rng, n, K, (0, 6)), rng.gamma(2, size=(S, n))


def test_ensembles(calibration, rng):
    samples, y, alpha0 = some_samples(rng)
    S, n, _ = samples.shape
    raw = 1 - (samples**2).sum(axis=2)
    np.testing.assert_allclose(calibration.ensemble_disagreement(samples), raw.mean(axis=0))
    for a in (alpha0, alpha0[0]):
        found = calibration.ensemble_disagreement(samples, a)
        full = np.broadcast_to(a, (S, n))
        np.testing.assert_allclose(found, (full / (full + 1) * raw).mean(axis=0))
        found = calibration.ensemble_posterior(samples, y, a)
        for i in range(n):
            expected = ensemble_posterior(samples[:, i], y[i], full[:, i])
            np.testing.assert_allclose(found[i], expected, rtol=1e-9)
    found = calibration.ensemble_posterior(samples, y)
    for i in range(n):
        np.testing.assert_allclose(found[i], ensemble_posterior(samples[:, i], y[i]), rtol=1e-9)
        wrong = samples[:, i].T @ (samples[:, i] ** y[i]).sum(axis=1)
        if y[i].sum() > 2:  # weights that are sums, as the released code has them
            assert np.abs(found[i] - wrong / wrong.sum()).max() > 1e-3
    mean = calibration.ensemble_mean(samples)
    np.testing.assert_allclose(mean, samples.mean(axis=0))
    np.testing.assert_allclose(calibration.ensemble_posterior(samples, y * 0), mean)
    order = rng.permutation(S)
    again = calibration.ensemble_posterior(samples[order], y, alpha0[order])
    np.testing.assert_allclose(calibration.ensemble_posterior(samples, y, alpha0), again)


def test_product_weights_do_not_underflow(calibration, rng):
    samples = np.array([[[0.6, 0.4]], [[0.3, 0.7]], [[0.6, 0.4]]])
    y = np.array([[30_000, 20_000]])
    assert math.prod([0.6**30_000, 0.4**20_000]) == 0
    found = calibration.ensemble_posterior(samples, y)
    np.testing.assert_allclose(found, [[0.6, 0.4]], rtol=1e-12)
    found = calibration.ensemble_posterior(samples, y, np.full((3, 1), 2.0))
    np.testing.assert_allclose(found, [[0.6, 0.4]], atol=1e-4)
    # Two that differ by little: the ratio of the weights is the exponential of a small difference.
    samples = np.array([[[0.5, 0.5]], [[0.501, 0.499]]])
    ratio = math.exp(5_020 * math.log(1.002) + 4_980 * math.log(0.998))
    expected = (0.5 + ratio * 0.501) / (1 + ratio)
    found = calibration.ensemble_posterior(samples, np.array([[5_020, 4_980]]))
    assert found[0, 0] == pytest.approx(expected, rel=1e-9)


def test_samples_that_exclude_a_vote(calibration):
    samples = np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.4, 0.6], [1.0, 0.0]]])
    found = calibration.ensemble_posterior(samples, np.array([[0, 1], [0, 1]]))
    np.testing.assert_allclose(found[0], [0.4, 0.6], atol=1e-9)
    assert np.isfinite(found).all()  # where every sample excludes the vote
    np.testing.assert_allclose(found.sum(axis=1), 1)


# ---------------------------------------------------------------- edges and bad input


def test_zero_probabilities_with_votes_on_them(calibration):
    f = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]] * 10)
    y = np.array([[3, 1], [0, 4], [2, 2]] * 10)
    model = fit(calibration, f, y)
    found = model.concentration(f)
    assert np.isfinite(found).all()
    assert (found > 0).all()
    clipped = np.clip(f, 1e-12, None)
    best = minimize_scalar(lambda t: alpha_loss(y, clipped, t), (-2, 2), tol=1e-10)
    assert math.log(found[0]) == pytest.approx(best.x, abs=1e-4)
    posterior = model.posterior(f, y)
    np.testing.assert_allclose(posterior.sum(axis=1), 1)
    assert posterior[0, 1] > 0


@pytest.mark.parametrize("penalty", [0.0, 0.005])
def test_unanimous_labels_are_finite(calibration, penalty):
    f, y = np.tile([0.6, 0.4], (20, 1)), np.tile([[5, 0], [0, 5]], (10, 1))
    model = fit(calibration, f, y, penalty=penalty)
    found = model.concentration(f)
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert (found < 0.5).all()
    assert np.isfinite(model.predict_disagreement(f)).all()
    np.testing.assert_allclose(model.posterior(f, y * 0), f)


def test_underdispersed_labels_are_finite(calibration):
    """Every item splits exactly as predicted: alpha0 has no finite optimum without the penalty."""
    f, y = np.tile([0.5, 0.5], (20, 1)), np.tile([2, 2], (20, 1))
    for penalty in (0.0, 0.005):
        model = fit(calibration, f, y, penalty=penalty)
        found = model.concentration(f)
        assert np.isfinite(found).all()
        assert (found > 10).all()
        np.testing.assert_allclose(model.posterior(f, y).sum(axis=1), 1)


def test_extreme_counts_and_concentrations(calibration):
    """The loss to 1e-9 where differences of log-gamma would lose every digit."""
    f = np.array([[0.7, 0.3], [0.2, 0.8]])
    y = np.array([[20_000, 9_000], [3_000, 9_000]])
    model = fit(calibration, f, y)
    log_alpha0 = math.log(model.concentration(f)[0])
    assert model.loss_ == pytest.approx(alpha_loss(y, f, log_alpha0), rel=1e-9)
    for penalty in (1e3, 1e-9):
        y = np.tile([[5, 0], [0, 5]], (10, 1))
        f = np.tile([0.6, 0.4], (20, 1))
        model = fit(calibration, f, y, penalty=penalty)
        log_alpha0 = math.log(model.concentration(f)[0])
        expected = alpha_loss(y, f, log_alpha0, penalty)
        assert model.loss_ == pytest.approx(expected, rel=1e-8)


def test_bad_use(calibration, rng):
    h, f, _, _, y = world(rng, 30, 3)
    for options in ({"concentration": "x"}, {"penalty": -1.0}, {"compat": "x"}):
        with pytest.raises(fl.UsageError, match=next(iter(options))):
            calibration.AlphaCalibration(**options).fit(f, y)
    with pytest.raises((fl.UsageError, fl.InputError), match="features"):
        fit(calibration, f, y, kind="features")
    model = fit(calibration, f, y, h)
    with pytest.raises((fl.UsageError, fl.InputError), match="features"):
        model.concentration(f)
    with pytest.raises((fl.UsageError, fl.InputError)):
        model.concentration(f, h[:, :2])
    with pytest.raises((fl.UsageError, fl.InputError)):
        model.posterior(f, -y, h)
    samples = f[None]
    for bad in (-y, y[:-1], y[:, :3]):
        with pytest.raises((fl.UsageError, fl.InputError)):
            calibration.ensemble_posterior(samples, bad)
    with pytest.raises((fl.UsageError, fl.InputError)):
        calibration.ensemble_disagreement(samples, -np.ones(30))


def test_likelihood_is_the_polya_urn():
    """The plain code that the above rests on: two labels by hand."""
    assert log_dirmult([1, 1], [0.5, 0.5], 2.0) == pytest.approx(math.log(0.5 * 1 / 3))
