"""SPE: the paper's worlds, what a posterior must keep to, and cases without an easy answer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import fewlabels as fl
from fewlabels.kernels.simplex import two_classes
from fewlabels.methods.spe.families import FAMILIES
from fewlabels.methods.spe.mixture import (
    ClassDensity,
    ScoreMixture,
    ScoreScale,
    grouped,
    score_data,
    spread_ties,
)
from fewlabels.methods.spe.sampling import (
    RELIABLE,
    Target,
    find_modes,
    importance_ladder,
    is_even,
    run_chains,
)
from fewlabels.methods.spe.spe import SPE, check_fit, smooth_test, surprise_of_labels


def normals(
    n: int = 1000, known: int = 20, share: float = 0.3, seed: int = 0
) -> tuple[fl.Predictions, np.ndarray]:
    """Normal scores in both classes, .35 and .65 with deviation .12, and the truth."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < share).astype(int)
    scores = rng.normal(np.where(truth == 1, 0.65, 0.35), 0.12)
    labels = np.where(np.arange(n) < known, truth, -1)
    return fl.Predictions(scores=scores[:, None], labels=labels, models=["m"]), truth


def bayes(scores: np.ndarray, share: float = 0.3) -> np.ndarray:
    """P(y=1 | s) in the world of `normals`."""
    gap = ((scores - 0.35) ** 2 - (scores - 0.65) ** 2) / (2 * 0.12**2)
    return expit(np.log(share / (1 - share)) + gap)


@pytest.mark.slow
@pytest.mark.parametrize("label", [0, 1])
def test_labels_of_one_class_leave_the_other_above_or_below(label):
    predictions, truth = normals(known=0)
    labels = np.where((truth == label) & (np.arange(1000) < 40), label, -1)
    found = SPE().infer(predictions.with_labels(labels), 0)
    assert ((found.marginals()[:, 1] > 0.5) == truth).mean() > 0.85


def test_labels_win_over_the_direction_of_the_scores():
    predictions, _ = normals(known=60)
    turned = fl.Predictions(scores=-predictions.scores, labels=predictions.labels)
    found = SPE().infer(turned, 0).marginals()[:, 1]
    straight = SPE().infer(predictions, 0).marginals()[:, 1]
    assert np.corrcoef(found, straight)[0, 1] > 0.99


@pytest.mark.slow
def test_probabilities_enter_as_logits_and_thresholds_stay_probabilities():
    predictions, _ = normals(n=1500, known=50)
    z = 8 * (predictions.scores[:, 0] - 0.5)
    as_score = fl.Predictions(scores=z[:, None], labels=predictions.labels)
    as_probability = fl.Predictions(expit(z)[:, None], predictions.labels)
    one, other = (SPE().infer(p, 0).of(0) for p in (as_score, as_probability))
    np.testing.assert_allclose(one.marginals(), other.marginals(), atol=1e-6)
    cut, index = np.array([0.2, 0.5, 0.9]), np.arange(100)
    by_score = one.score_rates.rates(np.log(cut / (1 - cut)), index)
    for a, b in zip(by_score, other.score_rates.rates(cut, index), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    everything = other.score_rates.rates(np.array([0.0, 1.1]), index)[1]
    np.testing.assert_array_equal(everything, np.repeat([[1.0], [0.0]], 100, axis=1))
    plain = SPE(scale="probability").infer(as_probability, 0).of(0)
    assert np.abs(plain.marginals() - other.marginals()).max() > 1e-3


def test_missing_scores_have_the_prevalence():
    predictions, truth = normals(n=600, known=60)
    scores = predictions.scores.copy()
    scores[500:] = np.nan
    labels = predictions.labels.copy()
    labels[599] = 1
    found = SPE().infer(fl.Predictions(scores=scores, labels=labels), 0).of(0)
    share = found.marginals()[500:599, 1]
    assert np.ptp(share) == 0
    assert share[0] == pytest.approx(truth.mean(), abs=0.06)
    assert found.marginals()[599, 1] == 1


def test_sampling_weights_are_powers():
    """Items of weight 2 count as two; those of weight 0 not at all."""
    predictions, _ = normals(n=400, known=40)
    scores, labels = predictions.scores, predictions.labels
    weight = np.where(np.arange(400) % 2, 2.0, 0.0)
    weighted = fl.Predictions(scores=scores, labels=labels, weight=weight)
    kept = np.flatnonzero(weight)
    twice = fl.Predictions(scores=scores[np.repeat(kept, 2)], labels=labels[np.repeat(kept, 2)])
    settings = SPE(n_draws=2000, proposals=8000)
    a = settings.infer(weighted, 0).of(0).diagnostics["prevalence"]
    b = settings.infer(twice, 0).of(0).diagnostics["prevalence"]
    assert a == pytest.approx(b, abs=0.02)


def test_annotators_teach_like_labels():
    predictions, truth = normals(n=600, known=60)
    histogram = np.zeros((600, 2))
    histogram[np.arange(60), truth[:60]] = 30
    told = fl.Predictions(scores=predictions.scores, histogram=histogram)
    labeled, annotated = (SPE().infer(p, 0).marginals() for p in (predictions, told))
    assert np.abs(labeled - annotated).mean() < 0.02


def test_equal_scores_say_nothing():
    labels = np.where(np.arange(50) < 20, np.arange(50) % 4 == 0, -1)
    found = SPE().infer(fl.Predictions(scores=np.full((50, 1), 2.5), labels=labels), 0)
    assert found.status == "assumption"
    assert "all scores are equal" in found.warnings[0]
    open_ = found.marginals()[20:, 1]
    assert np.ptp(open_) == 0
    assert open_[0] == pytest.approx(6 / 22, abs=0.01)
    rates = found.of(0).score_rates.rates(np.array([2.5, 2.6]), np.arange(10))
    np.testing.assert_array_equal(rates[1], np.repeat([[1.0], [0.0]], 10, axis=1))
    assert rates[0].std() > 0.03


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_handful_of_items(n):
    scores = np.arange(n, dtype=float)[:, None]
    found = SPE().infer(fl.Predictions(scores=scores, labels=[1, 0, -1][:n]), 0)
    assert np.isfinite(found.marginals()).all()


def test_misfit_is_said():
    rng = np.random.default_rng(0)
    truth = rng.random(3000) < 0.3
    # Two humps in the negative class: no pair of the families has three.
    middle = np.where(truth, 0.6, np.where(rng.random(3000) < 0.5, 0.1, 0.9))
    scores = rng.normal(middle, 0.04)
    labels = np.where(np.arange(3000) < 60, truth, -1)
    found = SPE().infer(fl.Predictions(scores=scores[:, None], labels=labels), 0)
    assert found.status == "assumption"
    assert "do not follow the fitted densities" in found.warnings[0]
    assert found.of(0).diagnostics["fit_scores"] < 1e-3


def unit_world(seed: int, n: int = 500, known: int = 30):
    """Scores on the unit interval straight from the model, so that nothing is normalised."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < 0.3
    x = np.where(truth, np.abs(rng.normal(0.65, 0.12, n)), rng.gamma(3, 0.07, n))
    evidence = np.zeros((n, 2))
    first = truth[:known]
    evidence[:known][first, 0] = evidence[:known][~first, 1] = -np.inf
    data = score_data(x, evidence, np.ones(n), np.arange(n, dtype=np.uint64))
    mixture = ScoreMixture(ClassDensity(FAMILIES["normal"]), ClassDensity(FAMILIES["gamma"]))
    return Target(mixture, data, ordered=False), truth, x


def test_false_alarms_are_as_rare_as_promised():
    alarms = 0
    for seed in range(40):
        target, truth, x = unit_world(seed)
        mode = find_modes(target).points[0]
        rng = np.random.default_rng(seed)
        near = mode + 0.05 * rng.normal(size=(100, 5))
        odds = target.mixture.log_odds(_points(x[:30]), near)
        labels = truth[:30].astype(int)
        alarms += check_fit(target.mixture, mode, target.data, odds, labels, rng).alarming
    assert alarms <= 5  # binomial(40, .05): 1 in 100


def _points(x):
    from fewlabels.methods.spe.families import Points

    return Points(x)


def test_smooth_test_sees_the_wrong_family():
    target, _, _ = unit_world(0, n=3000)
    wrong = ScoreMixture(ClassDensity(FAMILIES["normal"]), ClassDensity(FAMILIES["normal"]))
    mode = find_modes(Target(wrong, target.data, False)).points[0]
    assert smooth_test(wrong, mode, target.data) < 1e-3


def test_surprise_of_labels():
    rng = np.random.default_rng(0)
    p = two_classes(expit(np.full((40, 50), 4.0)))
    assert surprise_of_labels(p, np.ones(40, dtype=int), rng) > 0.5
    assert surprise_of_labels(p, np.where(np.arange(40) < 8, 0, 1), rng) < 1e-3
    assert surprise_of_labels(p[:0], np.empty(0, dtype=int), rng) == 1


@pytest.mark.parametrize("first", ["diagonal", "full"])
def test_importance_sampling_and_chains_agree(first):
    """Two samplers of one posterior: means within Monte Carlo error, deviations within a tenth."""
    target, _, _ = unit_world(1, n=800)
    rng = np.random.default_rng(0)
    found = importance_ladder(target, find_modes(target), 20_000, first, rng)
    assert found.trusted
    chains = run_chains(found, rng)
    assert chains.sampler == "hmc"
    assert chains.trusted
    mean, covariance = found.sample.moments()
    sd = np.sqrt(np.diag(covariance))
    assert (np.abs(chains.chains.mean(axis=0) - mean) / sd).max() < 0.1
    np.testing.assert_allclose(chains.chains.std(axis=0) / sd, 1, atol=0.1)


def test_weights_that_cannot_be_trusted_are_known():
    target, _, _ = unit_world(0, n=200, known=4)
    modes = find_modes(target)
    found = importance_ladder(target, modes, 1000, "diagonal", np.random.default_rng(0))
    assert found.trusted == is_even(found.sample, RELIABLE)
    assert next(iter(found.pareto_k)) == "diagonal"


def test_ties_are_spread_between_their_neighbours():
    x = np.array([0.1, 0.5, 0.5, 0.5, 0.5, 1.0, 1.0, 0.2])
    keys = np.arange(8, dtype=np.uint64)
    found = spread_ties(x, keys)
    np.testing.assert_allclose(found[[0, 7]], [0.1, 0.2])
    np.testing.assert_allclose(np.sort(found[1:5]), 0.35 + 0.4 * (np.arange(4) + 0.5) / 4)
    np.testing.assert_allclose(np.sort(found[5:7]), [0.8125, 0.9375])


def test_groups_keep_the_likelihood():
    """The log-likelihood moves with the parameters as it does item by item."""
    rng = np.random.default_rng(0)
    n = 200_000
    x = np.where(rng.random(n) < 0.3, np.abs(rng.normal(0.65, 0.12, n)), rng.gamma(3, 0.07, n))
    x = np.sort(x)
    plain, mass = grouped(x, np.ones(n))
    assert mass.sum() == n
    assert len(plain) < 4200
    mixture = ScoreMixture(ClassDensity(FAMILIES["normal"]), ClassDensity(FAMILIES["gamma"]))
    middle = np.array([0.65, np.log(0.12), np.log(0.21), np.log(0.121), np.log(0.3 / 0.7)])
    # As far apart as 200,000 items leave the parameters open, and ten times further.
    theta = middle + np.array([[0.0], [0.003], [-0.003], [0.03]]) * np.array([1, 1, -1, 1, 1])
    each, together = (
        mixture.log_likelihood(theta, data) for data in (_open(x), _open(plain, mass))
    )
    gap = (each - each[0]) - (together - together[0])
    assert np.abs(gap[1:3]).max() < 0.05
    assert np.abs(gap[3]) < 0.5


def _open(x, weight=None):
    from fewlabels.methods.spe.mixture import ScoreData

    none = _points(np.empty(0)), np.empty(0)
    weight = np.ones(len(x)) if weight is None else weight
    return ScoreData(*none, *none, _points(x), weight, np.zeros(len(x)))


def test_many_items_are_fitted_by_groups():
    predictions, _ = normals(n=30_000, known=200)
    found = SPE().infer(predictions, 0)
    assert found.of(0).diagnostics["prevalence"] == pytest.approx(0.3, abs=0.02)
    scores = predictions.scores[:, 0]
    assert np.abs(found.marginals()[200:, 1] - bayes(scores)[200:]).mean() < 0.02


def test_scale_returns_to_the_units_of_the_file():
    p = np.array([0.02, 0.4, 0.97])
    scale = ScoreScale.of(p, logit=True)
    x = scale.unit(p)
    assert x.min() == pytest.approx(1 / 6)
    assert x.max() == pytest.approx(1)
    assert [scale.score(v) for v in x] == pytest.approx(p)


@pytest.mark.parametrize("selection", ["likelihood", "evidence", "average"])
def test_selection(selection):
    predictions, _ = normals()
    pairs = SPE(selection=selection).infer(predictions, 0).of(0).diagnostics["pairs"]
    weights = {name: pair["weight"] for name, pair in pairs.items()}
    if selection != "average":
        key = "log_likelihood" if selection == "likelihood" else "log_evidence"
        best = max(pairs, key=lambda name: pairs[name][key])
        assert weights[best] == 1
    else:
        used = {name: pair for name, pair in pairs.items() if pair["weight"] > 0}
        first, *others = used.values()
        for other in others:
            gap = np.log(other["weight"] / first["weight"])
            assert gap == pytest.approx(other["log_evidence"] - first["log_evidence"])


@pytest.mark.slow
def test_components_and_truncation_and_short_names():
    predictions, truth = normals(n=120)
    assert SPE(families=("n", "f-r")).families == ("normal", "weibull-min")
    model = SPE(families="n", components=2, truncation="unit", selection="evidence")
    found = model.infer(predictions, 0)
    assert ((found.marginals()[:, 1] > 0.5) == truth).mean() > 0.85


@pytest.mark.slow
def test_priors_of_the_user_move_the_answer():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(60, 1))
    predictions = fl.Predictions(
        scores=scores, labels=np.full(60, -1), models=["a"], classes=(0, 1)
    )
    rare, common = (
        fl.models.SPE(prevalence_prior=prior).infer(predictions, 0).diagnostics["prevalence"]["a"]
        for prior in ((5.0, 95.0), (95.0, 5.0))
    )
    assert rare < 0.15
    assert common > 0.85


@pytest.mark.parametrize(
    "bad", [{"prevalence_prior": (0, 1)}, {"location_prior": (0.5, 0)}, {"spread_prior": (1,)}]
)
def test_priors_are_checked(bad):
    with pytest.raises(fl.UsageError, match=f"`{next(iter(bad))}` must be two numbers"):
        fl.models.SPE(**bad)
