"""AlphaCalibration: golden values, Theorem 1, gradients, conventions, bad input."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.special import gammaln
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import fewlabels as fl
from fewlabels.calibration import AlphaCalibration, TemperatureScaling
from fewlabels.calibration.alpha import _Problem


def naive_loss(theta, f, counts, h, penalty=0.005, weight=None, xp=np, lgamma=gammaln):
    """Loss (50) as it stands, on items of two labels or more."""
    n = counts.sum(axis=1)
    w = np.ones(len(n)) if weight is None else weight
    log_alpha0 = xp.dot(h, theta[:-1]) + theta[-1]
    a = xp.exp(log_alpha0)
    af = a[:, None] * np.maximum(f, 1e-12)
    log = lgamma(a) - lgamma(a + n) + xp.sum(lgamma(af + counts) - lgamma(af), axis=1)
    return -xp.sum(w * log) / (w @ n) + penalty * xp.sum(w * log_alpha0**2) / w.sum()


def several(world):
    keep = world["counts"].sum(axis=1) >= 2
    return world["f"][keep], world["counts"][keep], world["features"][keep]


def of_log_alpha0(log_alpha0):
    """A calibration whose concentrations are given."""
    model = AlphaCalibration("features", penalty=0.005).fit([[0.5, 0.5]], [[1, 1]], [[1.0]])
    model.coef_, model.intercept_ = np.ones(1), 0.0
    return model, np.asarray(log_alpha0)[:, None]


# --- the loss and its minimum ---------------------------------------------------------------------


def test_gradients_are_autograds(world):
    autograd = pytest.importorskip("autograd")
    from autograd.scipy.special import gammaln as lgamma

    f, counts, features = several(world)
    h = (features - features.mean(axis=0)) / features.std(axis=0)
    weight = np.linspace(0.5, 2, len(f))
    problem = _Problem.from_items(np.column_stack([h, np.ones(len(h))]), counts, f, weight)
    theta = np.array([0.3, -0.8, 0.1, 0.7])

    def loss(t):
        return naive_loss(t, f, counts, h, weight=weight, xp=autograd.numpy, lgamma=lgamma)

    value, slope = problem.loss(theta, 0.005)
    assert value == pytest.approx(loss(theta), rel=1e-12)
    np.testing.assert_allclose(slope, autograd.grad(loss)(theta), rtol=1e-8, atol=1e-12)
    step = 1e-5 * np.eye(4)
    ends = [[problem.loss(theta + sign * e, 0.005)[1] for sign in (1, -1)] for e in step]
    rows = [(above - below) / 2e-5 for above, below in ends]
    np.testing.assert_allclose(problem.hessian(theta, 0.005), rows, rtol=1e-5, atol=1e-8)
    labels = weight @ counts.sum(axis=1)
    assert problem.misfit(theta) == pytest.approx(problem.loss(theta, 0.0)[0] * labels, rel=1e-12)


def test_units_of_features_do_not_matter(world):
    f, counts, features = several(world)
    raw = AlphaCalibration(standardize=False, max_iter=5000).fit(f, counts, features[:, [0, 2]])
    scaled = AlphaCalibration().fit(f, counts, features[:, [0, 2]])
    assert raw.loss_ == pytest.approx(scaled.loss_, rel=1e-6)


def test_constant_and_repeated_features_are_harmless(world):
    f, counts, features = several(world)
    plain = AlphaCalibration().fit(f, counts, features)
    padded = np.column_stack([features, features[:, 0], np.full(len(f), 0.1)])
    model = AlphaCalibration().fit(f, counts, padded)
    assert model.converged_
    assert model.coef_[4] == pytest.approx(0, abs=1e-9)
    assert model.coef_[0] == pytest.approx(model.coef_[3], rel=1e-6)
    np.testing.assert_allclose(
        model.concentration(f, padded), plain.concentration(f, features), rtol=1e-6
    )


def test_many_features_are_left_to_lbfgs(rng):
    f = rng.dirichlet(np.ones(3), 300)
    features = rng.normal(size=(300, 600))
    model = AlphaCalibration(penalty=0.5).fit(f, rng.multinomial(4, f), features)
    assert np.isfinite(model.coef_).all()


def test_logits_and_probabilities_agree(world):
    f, counts, _ = several(world)
    logits = np.log(f)
    a = AlphaCalibration("logits").fit(f, counts)
    b = AlphaCalibration("logits", inputs="logits").fit(logits, counts)
    np.testing.assert_allclose(a.concentration(f), b.concentration(logits), rtol=1e-9)
    np.testing.assert_allclose(b.predict_proba(logits), f, rtol=1e-12)
    np.testing.assert_array_equal(a.predict_proba(f), f)


# --- the penalty ----------------------------------------------------------------------------------


@pytest.mark.parametrize("validation", ["split", 3])
def test_the_penalty_of_the_least_held_out_loss(world, validation):
    f, counts, features = (rows[:80] for rows in several(world))
    noise = np.column_stack([features, np.random.default_rng(1).normal(size=(80, 6))])
    model = AlphaCalibration(penalties=(1e-6, 0.02, 1e3), validation=validation)
    model.fit(f, counts, noise)
    losses = {}
    for penalty in model.penalties:
        losses[penalty] = 0.0
        for h in model._held_out(80):
            part = AlphaCalibration(penalty=penalty).fit(f[~h], counts[~h], noise[~h])
            losses[penalty] -= part.score(f[h], counts[h], noise[h]) * counts[h].sum()
    assert model.penalty_ == min(losses, key=losses.__getitem__) < 1e3
    fixed = AlphaCalibration(penalty=model.penalty_).fit(f, counts, noise)
    np.testing.assert_array_equal(model.coef_, fixed.coef_)


@pytest.mark.slow
def test_a_perfect_classifier_is_left_alone(rng):
    """Labels are draws of f: alpha0 is infinite. The paper's penalty holds it at 9."""
    f, g = rng.dirichlet(np.ones(4), (2, 20_000))
    counts, later = rng.multinomial(4, f), rng.multinomial(4, g)
    error = {}
    for penalty in ("cross-validated", 0.005):
        model = AlphaCalibration(penalty=penalty).fit(f, counts)
        said = model.predict_disagreement(g)
        error[penalty] = fl.annotations.evaluate(later, g, disagreement=said)["CE_disagreement"]
    assert error["cross-validated"] < 0.01
    assert error[0.005] == pytest.approx(0.062, abs=0.006)


# --- what it is for -------------------------------------------------------------------------------


def test_new_items_far_away_do_not_overflow():
    model, _ = of_log_alpha0([0.0])
    far = np.array([[1e308], [-1e308], [800.0], [-800.0]])
    model.coef_ = np.array([10.0])
    f = np.array([[0.3, 0.7]] * 4)
    alpha0 = model.concentration(f, far)
    assert np.isfinite(alpha0).all()
    assert (alpha0 > 0).all()
    np.testing.assert_allclose(model.predict_disagreement(f, far), [0.42, 0, 0.42, 0], atol=1e-12)
    posterior = model.posterior(f, [[1, 0]] * 4, far)
    np.testing.assert_allclose(posterior[:2], [[0.3, 0.7], [1, 0]], atol=1e-12)
    np.testing.assert_allclose(model.posterior(f, np.zeros((4, 2)), far), f)


# --- scikit-learn's conventions -------------------------------------------------------------------


def test_the_parameter_and_the_method_share_a_name(world):
    f, counts, _ = several(world)
    model = AlphaCalibration(concentration="logits")
    assert model.get_params()["concentration"] == "logits"
    assert "concentration='logits'" in repr(model)
    assert callable(model.concentration)
    assert "alpha0" in (AlphaCalibration.concentration.__doc__ or "")
    assert clone(model).get_params() == model.get_params()
    model.set_params(concentration="constant").fit(f, counts)
    assert model.concentration(f).shape == (len(f),)
    again = pickle.loads(pickle.dumps(model))
    assert again.get_params()["concentration"] == "constant"
    np.testing.assert_array_equal(again.concentration(f), model.concentration(f))


def test_grid_search_and_pipeline(world):
    f, counts, _ = several(world)
    search = GridSearchCV(AlphaCalibration(), {"penalty": [0.005, 100.0]}, cv=3).fit(f, counts)
    assert search.best_params_ == {"penalty": 0.005}
    chain = make_pipeline(TemperatureScaling(), AlphaCalibration()).fit(f, counts)
    scaled = TemperatureScaling().fit(f, counts).predict_proba(f)
    np.testing.assert_allclose(chain.predict_proba(f), scaled)
    alone = AlphaCalibration().fit(scaled, counts)
    assert chain[-1].intercept_ == pytest.approx(alone.intercept_, rel=1e-9)


# --- bad input ------------------------------------------------------------------------------------

F = [[0.2, 0.8], [0.5, 0.5]]
BAD = {
    "fractional": (F, [[0.5, 1.5], [1, 1]], None, "whole counts; got 0.5 for item 0, column 0"),
    "negative": (F, [[2, 0], [1, -1]], None, "got -1 for item 1, column 1"),
    "NaN counts": (F, [[2, np.nan], [1, 1]], None, "NaN; got nan for item 0, column 1"),
    "infinite": (F, [[2, np.inf], [1, 1]], None, "must be finite"),
    "K": (F, [[1, 1, 0], [1, 1, 0]], None, r"\(2, 2\); got shape \(2, 3\)"),
    "single labels": (F, [[1, 0], [0, 1]], None, "no item has two labels"),
    "no labels": (F, [[0, 0], [0, 0]], None, "no item has two labels"),
    "features NaN": (F, [[1, 1], [2, 0]], [[1.0], [np.nan]], "`features`.*item 1, column 0"),
    "features rows": (F, [[1, 1], [2, 0]], [[1.0]], "`features` must have 2 rows"),
    "sums": ([[0.2, 0.9], [0.5, 0.5]], [[1, 1], [2, 0]], None, "must sum to 1.*got 1.1 for item 0"),
    "range": ([[-0.2, 1.2], [0.5, 0.5]], [[1, 1], [2, 0]], None, "between 0 and 1"),
    "f NaN": ([[np.nan, 1], [0.5, 0.5]], [[1, 1], [2, 0]], None, "`probabilities` must not have"),
    "one class": ([[1.0], [1.0]], [[2], [2]], None, "two or more"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(case):
    f, counts, features, message = BAD[case]
    with pytest.raises(fl.InputError, match=message) as caught:
        AlphaCalibration().fit(f, counts, features)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["constant", "logits"])
def test_a_concentration_of_something_else_looks_at_no_features(world, kind):
    f, counts, features = several(world)
    with_features = AlphaCalibration(kind).fit(f, counts, features)
    without = AlphaCalibration(kind).fit(f, counts)
    np.testing.assert_array_equal(
        with_features.concentration(f, features), without.concentration(f)
    )


def test_bad_use_is_one_line(world):
    f, counts, features = several(world)
    with pytest.raises(fl.UsageError, match="pass `features`"):
        AlphaCalibration("features").fit(f, counts)
    model = AlphaCalibration().fit(f, counts, features)
    with pytest.raises(fl.UsageError, match="pass `features`"):
        model.concentration(f)
    with pytest.raises(fl.InputError, match="3 columns"):
        model.concentration(f, features[:, :2])
    with pytest.raises(fl.InputError, match="fitted on 4"):
        model.concentration(f[:, :2] / f[:, :2].sum(axis=1, keepdims=True), features)
    with pytest.raises(fl.UsageError, match="unknown `concentration` 'logit'; did you mean"):
        AlphaCalibration("logit").fit(f, counts)
    with pytest.raises(fl.UsageError, match="`penalty` must be a finite number"):
        AlphaCalibration(penalty=-1).fit(f, counts)
    with pytest.raises(fl.UsageError, match="unknown `compat`"):
        AlphaCalibration(compat="paper").fit(f, counts)
    with pytest.raises(NotFittedError):
        AlphaCalibration().predict_disagreement(f)
