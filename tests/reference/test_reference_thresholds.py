"""fl.threshold against counting by hand over drawn labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference_questions import threshold_of
from reference_spe_naive import (
    RATES,
    answer_or_one_line,
    counts_at,
    cuts,
    draw_monotone_world,
    features,
    monotone_posterior,
    probability_met,
)
from scipy.special import expit

import fewlabels as fl
from worlds import ScoreWorld, score_world, world

# argument -> (rate, at least or at most, a level that some cuts meet and some do not)
CONDITIONS = {
    "min_precision": ("precision", "least", 0.7),
    "min_recall": ("recall", "least", 0.8),
    "min_specificity": ("specificity", "least", 0.75),
    "min_f1": ("f1", "least", 0.6),
    "min_accuracy": ("accuracy", "least", 0.72),
    "max_fpr": ("fpr", "most", 0.25),
}
METHODS = ("monotone-curves", "spe")
# section 5b to the letter
PLAIN = fl.models.MonotoneCurves(prior="plain", zero="natural", particles=800)


def by_hand(w: ScoreWorld, draws: np.ndarray, at, **conditions: float) -> np.ndarray:
    least, most = {}, {}
    for argument, level in conditions.items():
        rate, side, _ = CONDITIONS[argument]
        (least if side == "least" else most)[rate] = level
    return probability_met(w.scores, draws, np.asarray(at), least, most)


def check(result: fl.Thresholds) -> None:
    thresholds, probability = np.asarray(result.thresholds), np.asarray(result.probability)
    assert thresholds.shape == probability.shape
    assert thresholds.ndim == 1
    assert np.isfinite(thresholds).all()
    assert (np.diff(thresholds) > 0).all() or (np.diff(thresholds) < 0).all()
    assert ((probability >= 0) & (probability <= 1)).all()
    least = result.report()["least"]
    assert result.best_probability >= min(least, probability.max())
    assert probability[thresholds == result.best].tolist() == [result.best_probability]
    assert result.met == (result.best_probability > 0)


# every label known


@pytest.mark.product
@pytest.mark.parametrize("ties", [False, True], ids=["distinct", "ties"])
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("method", [*METHODS, "tempered-ensemble"])
def test_all_labels_known_is_yes_or_no(method, condition, ties):
    w = score_world(n=60, labeled=60, seed=41, probability=True, ties=ties)
    level = CONDITIONS[condition][2]
    result = threshold_of(w.predictions(), method=method, **{condition: level})
    check(result)
    wanted = by_hand(w, w.truth[None], result.thresholds, **{condition: level})
    assert np.array_equal(result.probability, wanted)
    assert 0 < wanted.mean() < 1


@pytest.mark.parametrize("probability", [False, True], ids=["score", "probability"])
def test_every_cut_is_tried_and_in_the_units_of_the_file(probability):
    w = score_world(n=60, labeled=20, seed=42, probability=probability)
    result = threshold_of(w.predictions(), method=PLAIN, min_recall=0.5)
    assert result.report()["unit"] == ("probability" if probability else "score")
    said = {tuple(w.scores >= t) for t in result.thresholds}
    assert {tuple(w.scores >= t) for t in cuts(w.scores)} <= said


def test_all_labels_known_rates_at_the_best_threshold():
    w = score_world(n=60, labeled=60, seed=43)
    result = threshold_of(w.predictions(), method=PLAIN, min_precision=0.7, min_recall=0.6)
    rates = result.report()["rates"]
    assert set(rates) - {"confidence_level", "cost"} == set(RATES)
    for name, rate in RATES.items():
        wanted = float(rate(*counts_at(w.scores, w.truth, result.best)))
        got = [rates[name][k] for k in ("low", "value", "high")]
        assert got == pytest.approx([wanted] * 3, abs=1e-12), name


@pytest.mark.parametrize("cost", [(1.0, 1.0), (1.0, 5.0)])
def test_cost_is_that_of_false_alarms_and_misses(cost):
    """Per item: false positives times the first, false negatives times the second."""
    w = score_world(n=60, labeled=60, seed=45)

    def per_item(t: float) -> float:
        tp, fp, p, n = counts_at(w.scores, w.truth, t)
        return (cost[0] * fp + cost[1] * (p - tp)) / (p + n)

    every = [per_item(t) for t in cuts(w.scores)]
    level = float(np.quantile(every, 0.3)) + 1e-6
    result = threshold_of(w.predictions(), method=PLAIN, max_cost=level, cost=cost)
    check(result)
    wanted = [per_item(t) <= level for t in result.thresholds]
    assert np.array_equal(result.probability, np.array(wanted, dtype=float))
    assert result.report()["rates"]["cost"]["value"] == pytest.approx(per_item(result.best))


# some labels known


@pytest.mark.product
@pytest.mark.parametrize("ties", [False, True], ids=["distinct", "ties"])
@pytest.mark.parametrize("method", [*METHODS, "tempered-ensemble"])
def test_probability_is_the_share_of_label_draws(method, ties, rng):
    """Labels drawn here from the posterior's own parameter draws; counted here."""
    w = score_world(n=60, labeled=15, seed=46, probability=True, ties=ties)
    estimates = fl.estimate(
        w.predictions(), method=method, metrics=["accuracy"], estimand="sample", random_state=1
    )
    drawn = w.draws(estimates.posterior.of(0), rng, size=1000)
    for conditions in ({"min_precision": 0.7, "min_recall": 0.7}, {"min_f1": 0.6}):
        result = threshold_of(w.predictions(), method=method, random_state=1, **conditions)
        check(result)
        wanted = by_hand(w, drawn, result.thresholds, **conditions)
        # 400 draws against 1000, and two runs of one sampler of 800 particles
        error = np.sqrt(np.maximum(wanted * (1 - wanted), 0.01) * (1 / 400 + 1 / 1000 + 1 / 300))
        assert np.abs((result.probability - wanted) / error).max() < 4.5


@pytest.mark.slow
@pytest.mark.parametrize("probability", [False, True], ids=["score", "probability"])
def test_monotone_curves_against_particles_of_the_prior(probability, rng):
    """The whole way, from section 5b alone, averaged over seeds of the sampler."""
    w = score_world(n=60, labeled=20, seed=47, probability=probability)
    conditions = {"min_precision": 0.7, "min_recall": 0.7}
    runs = [
        threshold_of(w.predictions(), method=PLAIN, random_state=s, **conditions) for s in range(6)
    ]
    exact = monotone_posterior(features(w.scores, probability=probability), w.shown, rng)
    wanted = by_hand(w, exact.draws(rng)[::4], runs[0].thresholds, **conditions)
    got = np.array([r.probability for r in runs])
    error = np.maximum(got.std(axis=0, ddof=1), 0.02) / math.sqrt(len(runs))
    assert np.abs((got.mean(axis=0) - wanted) / error).max() < 5
    assert np.abs(got.mean(axis=0) - wanted).mean() < 0.015


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.usefixtures("curves_fitted_once")
def test_more_is_asked_less_is_likely(method):
    w = score_world(n=100, labeled=20, seed=48)
    each = [
        np.asarray(threshold_of(w.predictions(), method=method, min_precision=p).probability)
        for p in (0.5, 0.7, 0.9)
    ]
    assert (each[0] >= each[1]).all()
    assert (each[1] >= each[2]).all()
    recall = np.asarray(threshold_of(w.predictions(), method=method, min_recall=0.7).probability)
    both = threshold_of(w.predictions(), method=method, min_precision=0.7, min_recall=0.7)
    assert (both.probability <= np.minimum(each[1], recall) + 1e-12).all()
    assert (both.probability >= each[1] + recall - 1 - 1e-12).all()


def test_recall_is_kept_by_a_lower_threshold():
    w = score_world(n=100, labeled=20, seed=49)
    result = threshold_of(w.predictions(), method=PLAIN, min_recall=0.8)
    order = np.argsort(result.thresholds)[::-1]
    assert (np.diff(np.asarray(result.probability)[order]) >= 0).all()


# what cannot be met, and what cannot be asked


@pytest.mark.product
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("only", [0, 1])
def test_labels_of_one_class_are_few(method, only):
    full = score_world(n=120, labeled=120, seed=53)
    shown = np.where((np.arange(120) < 20) & (full.truth == only), only, -1)
    result = threshold_of(full.with_labels(shown).predictions(), method=method, min_precision=0.8)
    check(result)
    assert result.report()["status"] == "few-labels"
    assert result.report()["warnings"]


@pytest.mark.product
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("values", [(0.5,), (0.2, 0.9)], ids=str)
def test_one_or_two_distinct_scores(values, method):
    scores = np.resize(values, 50)
    truth = (np.random.default_rng(0).random(50) < 0.5).astype(int)
    w = ScoreWorld(scores, truth, np.where(np.arange(50) < 10, truth, -1))
    result = answer_or_one_line(
        lambda: threshold_of(w.predictions(), method=method, min_precision=0.4)
    )
    if result is not None:
        check(result)
        assert 0 < result.best_probability < 1


def test_three_classes():
    w = world(n=60, models=1, classes=3, labeled=60, seed=54)
    s, y = w.P[:, 0, 2], (w.truth == 2).astype(int)
    result = threshold_of(w.predictions(), positive="2", min_precision=0.7, min_recall=0.5)
    wanted = by_hand(
        ScoreWorld(s, y, y), y[None], result.thresholds, min_precision=0.7, min_recall=0.5
    )
    assert np.array_equal(result.probability, wanted)


@pytest.mark.parametrize("method", [*METHODS, "tempered-ensemble"])
def test_all_labels_known_leaves_the_population_uncertain(method):
    w = score_world(n=60, labeled=60, seed=55, probability=True)
    result = threshold_of(
        w.predictions(), method=method, min_precision=0.7, min_recall=0.7, estimand="population"
    )
    check(result)
    probability = np.asarray(result.probability)
    assert ((probability > 0.02) & (probability < 0.98)).any()


# a probability that is one


@pytest.mark.slow
def test_what_is_claimed_is_realised_in_worlds_from_the_prior():
    """Labels drawn from section 5b's own prior: of the cuts said to meet it with p, p do."""
    rng = np.random.default_rng(56)
    claimed, realised, of = [], [], []
    runs = 150
    for run in range(runs):
        s = rng.normal(-0.4, 1, 150)
        truth = draw_monotone_world(features(s, probability=False), rng)
        shown = np.where(np.arange(150) < rng.choice([10, 30, 60]), truth, -1)
        w = ScoreWorld(s, truth, shown)
        result = threshold_of(
            w.predictions(), method=PLAIN, min_precision=0.7, min_recall=0.7, random_state=run
        )
        at = np.quantile(s, [0.3, 0.5, 0.6, 0.7, 0.8])
        claimed.extend(np.interp(at, result.thresholds, result.probability))
        realised.extend(by_hand(w, truth[None], at, min_precision=0.7, min_recall=0.7))
        of.extend([run] * len(at))
    claimed, realised, of = np.array(claimed), np.array(realised), np.array(of)
    # 5% of the average always is the prior's: by so much the claims may be off.
    for low, high in ((0, 0.1), (0.1, 0.4), (0.4, 0.7), (0.7, 0.95), (0.95, 1.01)):
        inside = (claimed >= low) & (claimed < high)
        worlds = len(np.unique(of[inside]))
        if worlds < 10:
            continue
        p = claimed[inside].mean()
        assert abs(realised[inside].mean() - p) < 0.03 + 3.3 * math.sqrt(
            max(p * (1 - p), 0.01) / worlds
        ), (low, high, p, realised[inside].mean(), worlds)
    gap = claimed - realised
    per_world = np.array([gap[of == r].mean() for r in range(runs)])
    assert abs(per_world.mean()) < 0.02 + 3.3 * per_world.std() / math.sqrt(runs)


def test_probabilities_and_their_logits_have_the_same_answer():
    """Both know their natural zero; only the unit of the threshold differs."""
    w = score_world(n=90, labeled=20, seed=57, strength=1.0)
    as_scores = ScoreWorld(w.scores / 3, w.truth, w.shown)
    as_probabilities = ScoreWorld(expit(w.scores / 3), w.truth, w.shown, True)
    a, b = (
        threshold_of(v.predictions(), method=PLAIN, min_precision=0.6, min_recall=0.7)
        for v in (as_scores, as_probabilities)
    )
    np.testing.assert_allclose(expit(a.thresholds), b.thresholds, rtol=0, atol=1e-9)
    assert np.abs(a.probability - b.probability).mean() < 0.02
    assert b.best == pytest.approx(expit(a.best), abs=1e-9) or (
        abs(a.best_probability - b.best_probability) < 0.05
    )
