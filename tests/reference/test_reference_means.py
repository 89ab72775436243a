"""AutoEval and active testing (ssme.md section 4) by their formulas; bias and coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference_baselines_naive import lure_weights, pick_probabilities, ppi_lambdas, ppi_mean
from reference_questions import MEANS, Oracle, covered, estimates_of, per_item, ppi_parts, value

import fewlabels as fl
from worlds import World, world

# AutoEval


@pytest.mark.parametrize("proxy", ["ensemble", "own"])
@pytest.mark.parametrize("name", MEANS)
def test_autoeval_without_power_tuning_is_ppi(name, proxy):
    w = world(n=300, models=3, labeled=40, seed=61, strength=0.8)
    for j in range(3):
        wanted = ppi_mean(*ppi_parts(w, name, j, proxy), lam=1.0)
        model = fl.models.AutoEval(proxy=proxy, power_tuning=False)
        got = value(w.predictions(), model, name, j, estimand="population")
        assert got == pytest.approx(wanted, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("proxy", ["ensemble", "own"])
def test_autoeval_tunes_lambda_by_the_formula(proxy):
    """Example 6.1 of PPI++, in one and the same reading of its moments throughout."""
    model = fl.models.AutoEval(proxy=proxy)
    readings: set[str] = set()
    for seed in range(6):
        w = world(n=200, models=3, labeled=50, seed=62 + seed, strength=0.5)
        for name in ("accuracy", "brier"):
            for j in range(3):
                y, f, fu = ppi_parts(w, name, j, proxy)
                got = value(w.predictions(), model, name, j, estimand="population")
                fits = set()
                for reading, lam in ppi_lambdas(y, f, fu).items():
                    for cut, tuned in (("", lam), (", in [0, 1]", min(max(lam, 0.0), 1.0))):
                        if abs(ppi_mean(y, f, fu, tuned) - got) < 1e-9:
                            fits.add(reading + cut)
                readings = fits if (seed, name, j) == (0, "accuracy", 0) else readings & fits
                assert readings, (seed, name, j)


@pytest.mark.parametrize("name", MEANS)
def test_autoeval_with_worthless_proxies_is_the_labels_alone(name):
    """A proxy that is the same for all items has no variance: lambda cannot matter."""
    w = world(n=200, models=1, labeled=30, seed=68)
    P = np.full_like(w.P, 0.4)
    P[..., 1] = 0.6
    predictions = World(P, w.truth, w.shown).predictions()
    wanted = value(predictions, "labeled", name, estimand="population")
    assert value(predictions, "autoeval", name, estimand="population") == pytest.approx(wanted)


def test_autoeval_with_perfect_proxies_is_the_mean_proxy():
    """Where the averaged classifier is sure and right, the unlabeled items count as labels."""
    rng = np.random.default_rng(9)
    truth = rng.integers(0, 2, 400)
    sure = np.where(truth == 1, 1 - 1e-9, 1e-9)
    # two classifiers whose average is nearly an oracle's; the second often errs a little
    shown = np.where(np.arange(400) < 60, truth, -1)
    other = np.where(rng.random(400) < 0.7, sure, 0.5 + 0.01 * (0.5 - truth))
    predictions = fl.Predictions(np.stack([other, sure, sure, sure, sure], axis=1), shown)
    model = fl.models.AutoEval(proxy="ensemble")
    got = value(predictions, model, j=0, estimand="population")
    wanted = ((other > 0.5) == truth).mean()
    alone = value(predictions, "labeled", j=0, estimand="population")
    assert abs(got - wanted) < min(0.03, abs(alone - wanted))


@pytest.mark.product
@pytest.mark.parametrize("estimand", ["population", "sample"])
@pytest.mark.parametrize("labeled", [1, 2, 5, 20])
def test_autoeval_intervals_do_not_collapse_when_labels_agree(labeled, estimand):
    truth = np.arange(200) % 2
    p = np.where(truth == 1, 0.95, 0.05)
    shown = np.where(np.arange(200) < labeled, truth, -1)
    estimates = estimates_of(
        fl.Predictions(p[:, None], shown), method="autoeval",
        metrics=["accuracy", "error_rate", "brier"], estimand=estimand,
    )  # fmt: skip
    for row in estimates.rows:
        assert 0 <= row.low <= row.value <= row.high <= 1, tuple(row)
        assert row.high - row.low > 0.01, tuple(row)
    if labeled <= 5:  # Jeffreys' 95% interval for 5 of 5 begins at .62
        assert estimates.rows[0].low < 0.75
        assert {str(r.status) for r in estimates.rows} <= {
            "few-labels",
            "assumption",
        } or labeled == 5


def test_autoeval_stays_within_bounds_where_ppi_leaves_them():
    """Rectified means of few labels pass 1; estimates do not."""
    for seed in range(20):
        w = world(n=120, models=2, labeled=8, seed=100 + seed, strength=1.0)
        estimates = estimates_of(w.predictions(), method="autoeval", metrics=["accuracy", "brier"])
        for row in estimates.rows:
            assert 0 <= row.low <= row.value <= row.high <= 1, tuple(row)


@pytest.mark.parametrize("method", ["autoeval", "active-testing"])
def test_metrics_that_are_no_means_are_not_applicable(method):
    w = world(n=100, models=2, labeled=20, seed=69)
    names = ["roc_auc", "average_precision", "ece", "f1", "accuracy"]
    estimates = estimates_of(w.predictions(), method=method, metrics=names)
    for row in estimates.rows:
        if row.metric == "accuracy":
            assert math.isfinite(row.value)
        else:
            assert row.status == fl.Status.NOT_APPLICABLE
            assert math.isnan(row.value)


def test_autoeval_by_group_uses_the_groups_items():
    w = world(n=300, models=2, labeled=60, seed=70, strength=0.8)
    side = np.where(np.arange(300) % 3 == 0, "x", "y")
    model = fl.models.AutoEval(proxy="ensemble", power_tuning=False)
    estimates = estimates_of(
        w.predictions(groups={"side": side}), method=model, metrics=["brier"], by="side"
    )
    for name in ("x", "y"):
        rows = side == name
        part = World(w.P[rows], w.truth[rows], w.shown[rows])
        wanted = ppi_mean(*ppi_parts(part, "brier", 0), lam=1.0)
        assert estimates.get("a", "brier", f"side={name}").value == pytest.approx(wanted, abs=1e-9)


def test_autoeval_weights_are_copies():
    """Sampling weights count items; integers are copies (lambda 1: nothing is tuned)."""
    w = world(n=150, models=2, labeled=40, seed=78, strength=0.8)
    copies = np.random.default_rng(0).integers(1, 4, 150)
    rows = np.repeat(np.arange(150), copies)
    model = fl.models.AutoEval(power_tuning=False)
    copied = World(w.P[rows], w.truth[rows], w.shown[rows])
    for name in MEANS:
        for estimand in ("population", "sample"):
            a = value(w.predictions(weight=copies), model, name, estimand=estimand)
            b = value(copied.predictions(), model, name, estimand=estimand)
            assert a == pytest.approx(b, abs=1e-9)


@pytest.mark.slow
def test_autoeval_is_unbiased_for_these_items_over_choices_of_labels():
    """Estimand sample, lambda 1: the mean over random labeled subsets is the items' own metric."""
    w = world(n=80, models=1, labeled=0, seed=79, strength=1.0)
    wanted = per_item("brier", w.P[:, 0], w.truth).mean()
    rng = np.random.default_rng(0)
    model, got = fl.models.AutoEval(power_tuning=False), []
    for _ in range(200):
        shown = np.full(80, -1)
        chosen = rng.choice(80, 30, replace=False)
        shown[chosen] = w.truth[chosen]
        got.append(value(w.predictions(labels=shown), model, "brier"))
    assert abs(np.mean(got) - wanted) < 4 * np.std(got) / math.sqrt(200)


@pytest.mark.slow
@pytest.mark.parametrize("sharper", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("labeled", [20, 80])
@pytest.mark.parametrize("estimand", ["population", "sample"])
def test_autoeval_intervals_cover(estimand, labeled, sharper):
    def method_of(y, m):
        return "autoeval", np.where(np.arange(len(y)) < m, y, -1)

    share = covered(method_of, estimand, labeled, sharper, 400, 0.9)
    # 400 runs: a standard error of 1.5 points
    assert min(share.values()) > 0.9 - 0.045, share


# active testing


def expected_error(P: np.ndarray) -> np.ndarray:
    """The error that the averaged classifier expects of the classifiers, their mean: (n,)."""
    mean, hard = P.mean(axis=1), P.argmax(axis=2)
    n, M = hard.shape
    return np.array([np.mean([1 - mean[i, hard[i, j]] for j in range(M)]) for i in range(n)])


@pytest.mark.parametrize("budget", [1, 15, 79, 80])
def test_active_testing_asks_for_its_budget_once_and_nothing_twice(budget):
    w = world(n=80, models=2, labeled=0, seed=71)
    oracle = Oracle(w.truth)
    model = fl.models.ActiveTesting(oracle=oracle, budget=budget)
    estimates = estimates_of(w.predictions(), method=model, metrics=["accuracy", "brier"])
    assert len(oracle.asked) == 1
    asked = oracle.asked[0]
    assert len(asked) == len(set(asked.tolist())) == budget
    known = np.zeros(80, dtype=bool)
    known[asked] = True
    posterior = estimates.posterior.marginals()
    np.testing.assert_array_equal(posterior[known], np.eye(2)[w.truth[known]])
    assert estimates.posterior.diagnostics["asked"] == asked.tolist()


def test_active_testing_does_not_ask_for_labels_that_are_there():
    w = world(n=80, models=2, labeled=30, seed=72)
    oracle = Oracle(w.truth)
    estimates_of(
        w.predictions(), method=fl.models.ActiveTesting(oracle=oracle, budget=50),
        metrics=["accuracy"],
    )  # fmt: skip
    assert set(oracle.asked[0].tolist()) == set(np.flatnonzero(w.shown < 0).tolist())


@pytest.mark.product
@pytest.mark.parametrize("budget", [1, 5, 25, 59])
@pytest.mark.parametrize("uniform_share", [1e-9, 1.0])
def test_active_testing_weights_by_lure(uniform_share, budget):
    w = world(n=60, models=3, labeled=0, seed=73, strength=1.0)
    score = expected_error(w.P) if uniform_share < 1 else np.ones(60)
    for seed in range(5):
        oracle = Oracle(w.truth)
        model = fl.models.ActiveTesting(oracle=oracle, budget=budget, uniform_share=uniform_share)
        estimates = estimates_of(
            w.predictions(), method=model, metrics=["error_rate", "brier"], random_state=seed,
            estimand="sample", confidence_level=None,
        )  # fmt: skip
        asked = oracle.asked[0]
        weights = lure_weights(pick_probabilities(asked, score), 60)
        for name in ("error_rate", "brier"):
            for j, model_name in enumerate("abc"):
                wanted = np.mean(weights * per_item(name, w.P[asked, j], w.truth[asked]))
                got = estimates.get(model_name, name).value
                assert got == pytest.approx(min(wanted, 1.0), abs=1e-6), (seed, name, j)


def test_active_testing_accuracy_and_error_rate_add_to_one():
    w = world(n=100, models=2, labeled=0, seed=74, strength=1.0)
    for seed in range(5):
        model = fl.models.ActiveTesting(oracle=Oracle(w.truth), budget=20)
        estimates = estimates_of(
            w.predictions(), method=model, metrics=["accuracy", "error_rate"], random_state=seed
        )
        for name in w.models:
            a, e = estimates.get(name, "accuracy"), estimates.get(name, "error_rate")
            assert a.value + e.value == pytest.approx(1, abs=1e-9)
            assert a.low + e.high == pytest.approx(1, abs=1e-9)


@pytest.mark.slow
def test_active_testing_picks_with_the_stated_probabilities():
    """The first of many picks, over seeds, against the expected errors."""
    w = world(n=12, models=2, labeled=0, seed=75, strength=1.0)
    score = expected_error(w.P)
    counts, runs = np.zeros(12), 3000
    for seed in range(runs):
        oracle = Oracle(w.truth)
        model = fl.models.ActiveTesting(oracle=oracle, budget=2, uniform_share=1e-9)
        model.infer(w.predictions(), np.random.default_rng(seed))
        counts[oracle.asked[0][0]] += 1
    wanted = runs * score / score.sum()
    chi2 = ((counts - wanted) ** 2 / wanted).sum()
    assert chi2 < 38  # 11 degrees of freedom: p = 1e-4


@pytest.mark.parametrize("uniform_share", [None, 1e-9, 0.5])
def test_active_testing_is_unbiased_for_the_pool(uniform_share):
    """Mean over many seeds within 4 standard errors of the pool's own metric."""
    w = world(n=60, models=2, labeled=0, seed=76, strength=0.7)
    share = {} if uniform_share is None else {"uniform_share": uniform_share}
    runs = 150
    got = np.empty((runs, 2, 2))
    for seed in range(runs):
        model = fl.models.ActiveTesting(oracle=Oracle(w.truth), budget=20, **share)
        estimates = estimates_of(
            w.predictions(), method=model, metrics=["error_rate", "brier"], random_state=seed,
            estimand="sample", confidence_level=None,
        )  # fmt: skip
        got[seed] = [[estimates.get(m, k).value for k in ("error_rate", "brier")] for m in "ab"]
    wanted = [
        [per_item(k, w.P[:, j], w.truth).mean() for k in ("error_rate", "brier")] for j in (0, 1)
    ]
    z = (got.mean(axis=0) - wanted) / (got.std(axis=0, ddof=1) / math.sqrt(runs))
    assert np.abs(z).max() < 4, z


def test_active_testing_is_unbiased_for_a_weighted_pool():
    """Sampling weights: the pool's weighted mean (a ratio of two means is off by order 1/M^2)."""
    w = world(n=60, models=1, labeled=0, seed=98, strength=0.7)
    weight = np.random.default_rng(0).uniform(0.2, 2, 60)
    predictions = w.predictions(weight=weight)
    got = []
    for seed in range(200):
        model = fl.models.ActiveTesting(oracle=Oracle(w.truth), budget=30)
        options = {"estimand": "sample", "random_state": seed}
        got.append(value(predictions, model, "brier", **options))
    wanted = np.average(per_item("brier", w.P[:, 0], w.truth), weights=weight)
    assert abs(np.mean(got) - wanted) < 4 * np.std(got) / math.sqrt(200) + 0.002


@pytest.mark.parametrize("name", ["accuracy", "error_rate", "brier"])
def test_active_testing_intervals_do_not_collapse(name):
    """Every asked item is right: LURE says 0 errors, the interval does not."""
    rng = np.random.default_rng(10)
    truth = rng.integers(0, 2, 200)
    p = np.where(truth == 1, rng.uniform(0.6, 1, 200), rng.uniform(0, 0.4, 200))
    model = fl.models.ActiveTesting(oracle=Oracle(truth), budget=10)
    for estimand in ("population", "sample"):
        row = estimates_of(
            fl.Predictions(p[:, None]), method=model, metrics=[name], estimand=estimand
        ).rows[0]
        assert 0 <= row.low <= row.value <= row.high <= 1, tuple(row)
        assert row.high - row.low > 0.03, tuple(row)


def test_active_testing_without_an_oracle_is_the_labels_alone():
    w = world(n=150, models=2, labeled=30, seed=77)
    for j in range(2):
        for name in MEANS:
            options = {"j": j, "estimand": "population"}
            got = value(w.predictions(), "active-testing", name, **options)
            assert got == pytest.approx(value(w.predictions(), "labeled", name, **options))


@pytest.mark.slow
@pytest.mark.parametrize("sharper", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("budget", [20, 80])
@pytest.mark.parametrize("estimand", ["population", "sample"])
def test_active_testing_intervals_cover(estimand, budget, sharper):
    def method_of(y, m):
        return fl.models.ActiveTesting(oracle=Oracle(y), budget=m), None

    share = covered(method_of, estimand, budget, sharper, 400, 0.9)
    assert min(share.values()) > 0.9 - 0.045, share
