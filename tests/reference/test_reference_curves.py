"""fl.curve and fl.curves against counting by hand, whatever the method: the contract of curves."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from reference_questions import curve_of, curves_of
from reference_spe_naive import (
    GRID,
    answer_or_one_line,
    counts_at,
    cuts,
    precision_at_recall,
    threshold_at_recall,
)
from sklearn.metrics import average_precision_score, roc_auc_score

import fewlabels as fl
from worlds import ScoreWorld, score_world, world

KINDS = ("precision-recall", "roc")
KEYS = {"precision-recall": ["recall", "precision"], "roc": ["fpr", "tpr"]}
ANY_SCORE = ("auto", "spe")
PROBABILITIES = ("auto", "spe", "tempered-ensemble")


def lists(curve: fl.Curve) -> tuple[np.ndarray, ...]:
    """Abscissa, ordinate, low, high."""
    return tuple(np.array(v) for v in curve.to_dict().values())


def check(curve: fl.Curve, kind: str) -> None:
    """What to_dict promises."""
    d = curve.to_dict()
    assert list(d) == [*KEYS[kind], "low", "high"]
    for name, values in d.items():
        assert isinstance(values, list), name
        assert len(values) == 100, name
        assert all(type(v) is float and math.isfinite(v) and 0 <= v <= 1 for v in values), name
    assert json.loads(json.dumps(d)) == d
    across, value, low, high = lists(curve)
    assert (np.diff(across) > 0).all()
    assert (low <= value).all()
    assert (value <= high).all()
    if kind == "roc":
        assert (np.diff(value) >= 0).all()


# the dictionary


@pytest.mark.product
@pytest.mark.parametrize("estimand", ["sample", "population"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", PROBABILITIES)
@pytest.mark.usefixtures("curves_fitted_once")
def test_the_dictionary_is_the_contracts(method, kind, estimand):
    w = score_world(n=150, labeled=20, seed=1, probability=True)
    curve = curve_of(w.predictions(), kind=kind, method=method, estimand=estimand)
    check(curve, kind)
    across, _, low, high = lists(curve)
    np.testing.assert_allclose(across, GRID, rtol=0, atol=1e-12)
    assert (high - low).mean() > 0.01


def test_several_kinds_come_from_one_fit():
    w = score_world(n=120, labeled=15, seed=3, probability=True)
    both = curves_of(w.predictions(), random_state=2)
    for kind in KINDS:
        alone = curve_of(w.predictions(), kind=kind, random_state=2)
        assert both.curves[kind].to_dict() == alone.to_dict()
    known = w.shown >= 0
    recalibrated = np.asarray(both.recalibrated)
    assert np.array_equal(recalibrated[known], w.shown[known])
    assert ((recalibrated >= 0) & (recalibrated <= 1)).all()
    json.dumps(both.report(), allow_nan=False)


def test_recalibrated_scores_are_the_posterior_means():
    w = score_world(n=120, labeled=15, seed=4)
    both = curves_of(w.predictions(), method="monotone-curves", random_state=3)
    posterior = fl.estimate(
        w.predictions(), method="monotone-curves", metrics=["roc_auc"], random_state=3
    ).posterior.of(0)
    difference = np.abs(both.recalibrated - posterior.marginals()[:, 1])
    assert difference.max() < 0.05  # two seeds of the same sampler at worst


# every label known: counting by hand


@pytest.mark.product
@pytest.mark.parametrize("ties", [False, True], ids=["distinct", "ties"])
@pytest.mark.parametrize("method", PROBABILITIES)
def test_all_labels_known_is_the_curve_itself(method, ties):
    w = score_world(n=70, labeled=70, seed=5, probability=True, ties=ties)
    across, value, low, high = lists(curve_of(w.predictions(), method=method))
    assert np.array_equal(low, high)
    assert np.array_equal(low, value)
    wanted = precision_at_recall(w.scores, w.truth, across)
    np.testing.assert_allclose(value, wanted, rtol=0, atol=1e-12)


@pytest.mark.product
@pytest.mark.parametrize("ties", [False, True], ids=["distinct", "ties"])
@pytest.mark.parametrize("method", PROBABILITIES)
def test_all_labels_known_is_the_roc_curve_itself(method, ties):
    """TPR at the last cut within the FPR, or at the first that reaches it, or between the two."""
    w = score_world(n=70, labeled=70, seed=6, probability=True, ties=ties)
    across, value, low, high = lists(curve_of(w.predictions(), kind="roc", method=method))
    assert np.array_equal(low, high)
    assert np.array_equal(low, value)
    table = [counts_at(w.scores, w.truth, t) for t in [math.inf, *cuts(w.scores)]]
    for x, y in zip(across, value, strict=True):
        within = max(tp / p for tp, fp, p, n in table if fp / n <= x + 1e-9)
        reach = min(tp / p for tp, fp, p, n in table if fp / n >= x - 1e-9)
        assert within - 1e-9 <= y <= max(reach, within) + 1e-9


@pytest.mark.product
@pytest.mark.parametrize("method", PROBABILITIES)
@pytest.mark.parametrize("ties", [False, True], ids=["distinct", "ties"])
def test_all_labels_known_is_the_area_of_scikit_learn(method, ties):
    w = score_world(n=70, labeled=70, seed=7, probability=True, ties=ties)
    both = curves_of(w.predictions(), method=method).report()
    for kind, by_hand in zip(KINDS, (average_precision_score, roc_auc_score), strict=True):
        area = both["curves"][kind]["area"]
        wanted = by_hand(w.truth, w.scores)
        assert [area[k] for k in ("low", "value", "high")] == pytest.approx([wanted] * 3, abs=1e-9)
    share = both["prevalence"]
    assert [share[k] for k in ("low", "value", "high")] == pytest.approx([w.truth.mean()] * 3)


@pytest.mark.slow
@pytest.mark.parametrize("probability", [False, True], ids=["score", "probability"])
def test_all_labels_known_thresholds_reach_the_recall(probability):
    """Also: thresholds are in the units of the file."""
    w = score_world(n=70, labeled=70, seed=8, probability=probability)
    report = curve_of(w.predictions()).report()
    assert report["unit"] == ("probability" if probability else "score")
    wanted = threshold_at_recall(w.scores, w.truth, np.array(report["recall"]))
    for got, t in zip(report["threshold"], wanted, strict=True):
        # any number that calls the same items positive is the same threshold
        assert np.array_equal(w.scores >= got, w.scores >= t)


@pytest.mark.product
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", PROBABILITIES)
def test_all_labels_known_leaves_the_population_uncertain(method, kind):
    w = score_world(n=70, labeled=70, seed=9, probability=True)
    curve = curve_of(w.predictions(), kind=kind, method=method, estimand="population")
    check(curve, kind)
    _, _, low, high = lists(curve)
    assert (high - low).mean() > 0.03
    area = curve.report()["area"]
    assert area["high"] - area["low"] > 0.03


# some labels known: the quantiles over drawn labels


@pytest.mark.product
@pytest.mark.parametrize("ties", [False, True], ids=["distinct", "ties"])
@pytest.mark.parametrize("method", ["monotone-curves", "spe", "tempered-ensemble"])
def test_the_band_is_the_quantiles_over_drawn_labels(method, ties, rng):
    """Labels drawn here from the posterior's own parameter draws; counted here."""
    w = score_world(n=60, labeled=15, seed=10, probability=True, ties=ties)
    estimates = fl.estimate(
        w.predictions(), method=method, metrics=["accuracy"], estimand="sample", random_state=1
    )
    drawn = w.draws(estimates.posterior.of(0), rng, size=600)
    each = np.array([precision_at_recall(w.scores, y, GRID) for y in drawn if y.any()])
    curve = curve_of(w.predictions(), method=method, interval="equal-tailed", random_state=1)
    _, value, low, high = lists(curve)
    for got, q in ((low, 0.05), (value, 0.5), (high, 0.95)):
        # Quantiles of 400 draws: between those of three standard errors of the tail share on
        # either side; and two runs of one sampler of 800 particles are apart by a little more.
        slack = 3 * math.sqrt(q * (1 - q) / 400) + 0.02
        inside = np.quantile(each, [max(q - slack, 0), min(q + slack, 1)], axis=0)
        off = np.maximum(inside[0] - 0.03 - got, got - inside[1] - 0.03)
        assert (off <= 1e-9).mean() > 0.95, (q, off.max())


@pytest.mark.slow
@pytest.mark.slow_with("auto")
@pytest.mark.parametrize("method", ANY_SCORE)
@pytest.mark.usefixtures("curves_fitted_once")
def test_levels_are_nested(method):
    w = score_world(n=150, labeled=20, seed=11)
    each = [
        lists(curve_of(w.predictions(), method=method, confidence_level=c))
        for c in (0.5, 0.9, 0.99)
    ]
    for inner, outer in pairwise(each):
        assert np.array_equal(inner[1], outer[1])
        assert (outer[2] <= inner[2]).all()
        assert (inner[3] <= outer[3]).all()
        assert (outer[3] - outer[2]).mean() > (inner[3] - inner[2]).mean()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("curves_fitted_once")
def test_shortest_intervals_are_no_longer_than_those_of_quantiles(kind):
    w = score_world(n=150, labeled=20, seed=11)
    a, b = (
        lists(curve_of(w.predictions(), kind=kind, method="spe", interval=interval))
        for interval in ("shortest", "equal-tailed")
    )
    assert np.array_equal(a[1], b[1])
    assert 0 < (a[3] - a[2]).mean() <= (b[3] - b[2]).mean()


@pytest.mark.slow
def test_more_labels_make_narrower_bands():
    full = score_world(n=400, labeled=400, seed=12)
    widths = []
    for labeled in (8, 40, 200, 400):
        shown = np.where(np.arange(400) < labeled, full.truth, -1)
        _, _, low, high = lists(curve_of(full.with_labels(shown).predictions()))
        widths.append((high - low).mean())
    assert widths[0] > widths[1] > widths[2] > widths[3] == 0


@pytest.mark.slow_with("auto")
@pytest.mark.product
@pytest.mark.parametrize("method", ANY_SCORE)
@pytest.mark.parametrize("only", [0, 1])
def test_labels_of_one_class_make_wide_bands(method, only):
    full = score_world(n=200, labeled=200, seed=14)
    shown = np.where((np.arange(200) < 30) & (full.truth == only), only, -1)
    curve = curve_of(full.with_labels(shown).predictions(), method=method)
    check(curve, "precision-recall")
    report = curve.report()
    assert report["status"] == "few-labels"
    assert report["warnings"]
    _, _, low, high = lists(curve)
    # Twelve positives of twelve do say that precision is high.
    assert (high - low).mean() > (0.5, 0.05)[only]


@pytest.mark.slow_with("auto")
@pytest.mark.parametrize(
    ("method", "labels"), [("auto", "none"), ("auto", "missing"), ("spe", "missing")]
)
def test_no_labels_at_all_is_said_so(method, labels):
    w = score_world(n=200, labeled=0, seed=15)
    predictions = w.predictions(labels=None if labels == "none" else w.shown)
    curve = curve_of(predictions, method=method)
    check(curve, "precision-recall")
    report = curve.report()
    assert report["n_labeled"] == 0
    assert report["status"] != "ok"
    assert report["warnings"]
    if method == "auto":
        _, _, low, high = lists(curve)
        assert (high - low).mean() > 0.3


# what must not matter


@pytest.mark.slow
@pytest.mark.slow_with("auto")
@pytest.mark.parametrize("method", ANY_SCORE)
def test_the_same_seed_gives_the_same_bits_with_any_workers(method):
    w = score_world(n=120, labeled=20, seed=17)
    first = curve_of(w.predictions(), method=method, random_state=3).report()
    assert first == curve_of(w.predictions(), method=method, random_state=3).report()
    assert first == curve_of(w.predictions(), method=method, random_state=3, workers=2).report()
    other = curve_of(w.predictions(), method=method, random_state=4).to_dict()
    assert other["low"] != first["low"]


def test_auto_sees_no_other_classifier():
    """Nor does it write into the arrays that it was given."""
    w = world(n=120, models=2, labeled=20, seed=18)
    P = w.P.copy()
    P[:, 1] = np.random.default_rng(0).dirichlet([1, 1], 120)
    a = curve_of(w.predictions(), "a").to_dict()
    assert np.array_equal(P[:, 0], w.P[:, 0])
    assert a == curve_of(fl.Predictions(P, w.shown, models=w.models), "a").to_dict()
    assert a == curve_of(w.predictions().select_models(["a"]), "a").to_dict()


# more than two classes


@pytest.mark.slow_with("auto")
@pytest.mark.parametrize("method", PROBABILITIES)
def test_one_class_against_the_rest(method):
    w = world(n=90, models=2, classes=3, labeled=90, seed=20)
    predictions = w.predictions(classes=["x", "y", "z"])
    for k, name in enumerate("xyz"):
        curve = curve_of(predictions, "b", method=method, positive=name)
        assert curve.report()["positive"] == name
        across, value, low, high = lists(curve)
        wanted = precision_at_recall(w.P[:, 1, k], (w.truth == k).astype(int), across)
        np.testing.assert_allclose([low, value, high], [wanted] * 3, rtol=0, atol=1e-12)


@pytest.mark.product
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["auto", "spe"])
def test_one_class_against_the_rest_with_few_labels(method, kind):
    w = world(n=150, models=1, classes=3, labeled=25, seed=21)
    curve = curve_of(w.predictions(), kind=kind, method=method, positive="1")
    check(curve, kind)
    assert curve.report()["n_labeled_positive"] == int((w.shown == 1).sum())


# bad input: one line, or a wide answer


def one_line_or_wide(predictions: fl.Predictions, method: str, least: float) -> None:
    curve = answer_or_one_line(lambda: curve_of(predictions, method=method))
    if curve is None:
        return
    check(curve, "precision-recall")
    _, _, low, high = lists(curve)
    assert (high - low).mean() > least


@pytest.mark.slow_with("auto")
@pytest.mark.product
@pytest.mark.parametrize("probability", [False, True], ids=["score", "probability"])
@pytest.mark.parametrize("method", ANY_SCORE)
@pytest.mark.parametrize("values", [(0.5,), (0.2, 0.9), (0.0,), (0.0, 1.0)], ids=str)
def test_one_or_two_distinct_scores(values, method, probability):
    rng = np.random.default_rng(0)
    scores = np.resize(values, 50)
    y = (rng.random(50) < 0.2 + 0.6 * (scores > 0.5)).astype(int)
    w = ScoreWorld(scores, y, np.where(np.arange(50) < 10, y, -1), probability)
    one_line_or_wide(w.predictions(), method, 0.05)


@pytest.mark.slow_with("auto")
@pytest.mark.product
@pytest.mark.parametrize("method", ANY_SCORE)
@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("labeled", [0, 1])
def test_a_handful_of_items(n, labeled, method):
    w = ScoreWorld(np.linspace(-1, 1, n), np.arange(n) % 2, np.where(np.arange(n) < labeled, 1, -1))
    curve = answer_or_one_line(lambda: curve_of(w.predictions(), method=method))
    if curve is None:
        return
    check(curve, "precision-recall")
    # One item's precision is 1 wherever it is defined: then the status must say how little it is.
    assert curve.report()["status"] != "ok" or labeled == n


@pytest.mark.product
@pytest.mark.parametrize("method", ANY_SCORE)
@pytest.mark.parametrize("bad", [math.inf, -math.inf])
def test_infinite_scores_have_one_line(bad, method):
    w = score_world(n=40, labeled=10, seed=26)
    scores = w.scores.copy()
    scores[3] = bad
    with pytest.raises(fl.InputError) as caught:
        curve_of(fl.Predictions(scores=scores[:, None], labels=w.shown), method=method)
    assert "\n" not in str(caught.value)


@pytest.mark.slow_with("auto")
@pytest.mark.parametrize("method", ANY_SCORE)
def test_huge_and_tiny_scores(method):
    w = score_world(n=80, labeled=15, seed=27)
    for factor in (1e-200, 1e200):
        scaled = ScoreWorld(w.scores * factor, w.truth, w.shown)
        check(curve_of(scaled.predictions(), method=method), "precision-recall")


@pytest.mark.slow
@pytest.mark.slow_with("auto")
@pytest.mark.parametrize("method", ANY_SCORE)
def test_one_score_far_from_the_others(method):
    w = score_world(n=80, labeled=15, seed=28)
    scores = w.scores.copy()
    scores[5] = 1e9
    curve = curve_of(ScoreWorld(scores, w.truth, w.shown).predictions(), method=method)
    check(curve, "precision-recall")


@pytest.mark.slow_with("auto")
@pytest.mark.parametrize("method", ANY_SCORE)
def test_items_that_the_classifier_did_not_score(method):
    """Left out of its curve: as if they were not in the file."""
    w = score_world(n=100, labeled=20, seed=29)
    scores = np.where(np.arange(100) % 5 == 0, np.nan, w.scores)
    there = ~np.isnan(scores)
    holes = curve_of(ScoreWorld(scores, w.truth, w.shown).predictions(), method=method)
    check(holes, "precision-recall")
    without = curve_of(
        ScoreWorld(scores[there], w.truth[there], w.shown[there]).predictions(), method=method
    )
    assert np.abs(np.array(lists(holes)) - np.array(lists(without))).mean() < 0.02
