"""fl.curve and fl.curves: against loops over items, and at the edges of what can be asked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from operating_naive import GRID, Told, naive_curve, question_of, random_world, told

import fewlabels as fl
from fewlabels.posterior import Fixed, LabelPosterior
from fewlabels.questions import counts
from fewlabels.questions.counts import KINDS, Counts, precision_at_recall
from fewlabels.questions.question import misfitting_tail

# The values compared here are of 90% and of these very items.
_OF_THESE = {"confidence_level": 0.9, "estimand": "sample"}
curve = partial(fl.curve, **_OF_THESE)
curves = partial(fl.curves, **_OF_THESE)
threshold = partial(fl.threshold, **_OF_THESE)

EACH = tuple(KINDS)


def one(seed=0, n=200, known=30, *, probability=True, shift=0.0) -> fl.Predictions:
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < 0.35
    x = rng.normal(2.0 * truth - 1 + shift, 1.2)
    labels = np.where(np.arange(n) < known, truth, -1)
    if probability:
        return fl.Predictions(1 / (1 + np.exp(-x))[:, None], labels, models=["a"])
    return fl.Predictions(scores=x[:, None], labels=labels, models=["a"])


def arrays(curve) -> np.ndarray:
    return np.array([curve.low, curve.y, curve.high])


# --- definitions ------------------------------------------------------------------------------


def test_golden_precision_at_recall(golden_folder):
    golden = json.loads((golden_folder / "golden_spe.json").read_text())["pr_at"]
    y = np.array(golden["y_sorted"], dtype=float)[:, None]
    drawn = Counts(np.cumsum(y, 0), np.cumsum(1 - y, 0), y.sum(0), (1 - y).sum(0))
    found, cut = precision_at_recall(drawn, np.array(golden["recall"]))
    np.testing.assert_allclose(found[0], golden["precision"], rtol=0, atol=1e-15)
    assert cut[0].tolist() == [0, 0, 1, 3, 3, 6]


@pytest.mark.few(3)
@pytest.mark.product(2)
@pytest.mark.parametrize("estimand", ["sample", "population"])
@pytest.mark.parametrize("kind", EACH)
@pytest.mark.parametrize("seed", range(4))
def test_random_worlds_against_loops(seed, kind, estimand):
    """Ties, weights, missing scores; other parameters for intervals in half of the worlds."""
    predictions = random_world(seed, scores=seed % 2 == 1)
    method = told(seed=seed, interval_draws=20 if seed >= 2 else None)
    found = curve(predictions, kind=kind, method=method, estimand=estimand)
    q = question_of(predictions, method, estimand)
    interval = "bootstrap" if estimand == "population" else "interval"
    low, middle, high, undefined = naive_curve(q, kind, 400, "value", interval)
    np.testing.assert_allclose(arrays(found), [low, middle, high], rtol=0, atol=1e-9)
    assert any("undefined" in w for w in found.warnings) == (undefined > 0)


def test_draws_that_are_undefined_are_left_out_and_counted():
    """Three items, of which the only labeled one is negative: often there is no positive."""
    predictions = fl.Predictions([[0.9], [0.5], [0.1]], [-1, 0, -1])
    method = told(seed=3)
    found = curve(predictions, method=method)
    q = question_of(predictions, method, "sample")
    low, middle, high, undefined = naive_curve(q, "precision-recall", 400, "value", "interval")
    assert undefined > 20
    said = f"precision was undefined (no positive item) in {undefined} of 400 draws"
    assert any(said in w for w in found.warnings)
    np.testing.assert_allclose(arrays(found), [low, middle, high], rtol=0, atol=1e-12)


@pytest.mark.parametrize("estimand", ["sample", "population"])
def test_labeled_is_its_own_sample_with_the_bootstrap(estimand):
    predictions = random_world(7, n=80)
    found = curve(predictions, method="labeled", estimand=estimand)
    q = question_of(predictions, "labeled", estimand)
    low, middle, high, _ = naive_curve(q, "precision-recall", 400, "value", "bootstrap")
    np.testing.assert_allclose(arrays(found), [low, middle, high], rtol=0, atol=1e-9)
    assert (found.high - found.low).mean() > 0.1
    assert "only the labeled items are used" in found.warnings


def test_a_threshold_that_no_score_is_reaches_nothing():
    """Of ten items the top three share a score: no threshold has so small an fpr."""
    scores = np.array([0.9] * 3 + [0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.05])
    labels = np.array([1, 0, 0, 1, 0, 0, 1, 0, 0, 0])
    found = curve(fl.Predictions(scores[:, None], labels), kind="roc", method="labeled")
    assert np.isinf(found.threshold[:20]).all()
    assert found.report()["threshold"][0] is None
    assert found.threshold[-1] == 0.1


@pytest.mark.slow
def test_many_scores_are_cut_where_items_and_positives_are(monkeypatch):
    """Few positives, all near the top: coarse cuts must part these as well."""
    rng = np.random.default_rng(0)
    n = 15_000
    scores = rng.random(n)
    chance = 1 / (1 + np.exp(-60 * (scores - 0.98)))

    def make(predictions):
        p = np.column_stack([1 - chance, chance])
        return LabelPosterior(p, Fixed(p), predictions.keys)

    data = fl.Predictions(scores[:, None], np.full(n, -1))
    exact = curves(data, method=Told(make))
    monkeypatch.setattr(counts, "EXACT_CUTS", 100)
    coarse = curves(data, method=Told(make))
    for kind in EACH:
        a, b = exact.curves[kind], coarse.curves[kind]
        assert np.abs(arrays(a) - arrays(b)).max() < 0.02
        assert np.abs(arrays(a) - arrays(b)).mean() < 0.002
        assert a.area.value == pytest.approx(b.area.value, abs=3e-3)
    assert len(threshold(data, min_recall=0.5, method=Told(make)).thresholds) <= 4_000


# --- what must not matter ---------------------------------------------------------------------


def test_the_unit_of_weights():
    base = random_world(12, scores=True)
    found = [
        curve(
            fl.Predictions(scores=base.scores, labels=base.labels, weight=base.weight * unit),
            method=told(),
        )
        for unit in (1.0, 1e-7, 3.3)
    ]
    for other in found[1:]:
        np.testing.assert_allclose(arrays(found[0]), arrays(other), rtol=0, atol=1e-9)


def test_other_units_of_the_score_give_the_same_curve():
    base = one(probability=False, known=200)
    other = fl.Predictions(scores=1e6 + 3 * base.scores, labels=base.labels, models=["a"])
    a, b = curve(base, method="labeled"), curve(other, method="labeled")
    np.testing.assert_array_equal(a.y, b.y)
    np.testing.assert_allclose(a.threshold * 3 + 1e6, b.threshold, rtol=1e-12)


# --- which classifier, which class, which method ------------------------------------------------


def test_methods_of_one_classifier_answer_for_it():
    rng = np.random.default_rng(0)
    p, labels = rng.random((60, 2)), np.where(np.arange(60) < 20, rng.random(60) < 0.5, -1)
    predictions = fl.Predictions(p, labels, models=["a", "b"])
    found = curves(predictions, "b", method="bayesian-calibration")
    posterior = fl.models.BayesianCalibration().infer(predictions, 0).of(1)
    np.testing.assert_array_equal(found.recalibrated, posterior.marginals()[:, 1])


def test_one_class_of_three_is_the_same_from_a_frame_and_as_predictions():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    p, labels = (
        rng.dirichlet([1, 1, 1], 60),
        np.where(np.arange(60) < 20, rng.integers(3, size=60), -1),
    )
    columns = {f"p__a__{name}": p[:, k] for k, name in enumerate("xyz")}
    said = [None if label < 0 else "xyz"[label] for label in labels]
    data = fl.Predictions(p[:, None], labels, classes=["x", "y", "z"], models=["a"])
    found = curve(data, positive="y")
    again = curve(pandas.DataFrame({"label": said, **columns}), positive="y")
    np.testing.assert_array_equal(arrays(found), arrays(again))


def test_the_first_of_two_classes():
    base = one(known=200)
    data = fl.Predictions(base.probabilities, base.labels, classes=["no", "yes"], models=["a"])
    found = curves(data, positive="no", method="bayesian-calibration")
    turned = fl.Predictions(base.probabilities[:, :, ::-1], 1 - base.labels)
    exact = curves(turned, method="ensemble")
    for kind in EACH:
        np.testing.assert_allclose(
            arrays(found.curves[kind]), arrays(exact.curves[kind]), rtol=0, atol=1e-12
        )
    few = fl.Predictions(base.probabilities, np.where(np.arange(200) < 20, base.labels, -1),
                         histogram=np.ones((200, 2)), classes=["no", "yes"])  # fmt: skip
    found = curve(few, positive="no", method="bayesian-calibration")
    assert found.positive == "no"
    assert any("180 items without a label have counts of annotators" in w for w in found.warnings)


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kind": "lift"}, "unknown kind 'lift'"),
        ({"confidence_level": 1}, "between 0 and 1"),
        ({"confidence_level": None}, "between 0 and 1"),
        ({"estimand": "both"}, "'population' or 'sample'"),
        ({"workers": 0}, "at least 1"),
        ({"random_state": -1}, "0 or larger"),
        ({"method": "nothing"}, "unknown method"),
        ({"method": "autoeval"}, "forms no posterior"),
        ({"method": "active-testing"}, "forms no posterior"),
        ({"model": "nobody"}, "unknown model 'nobody'"),
        ({"positive": "maybe"}, "unknown class 'maybe'"),
    ],
    ids=str,
)
def test_arguments_that_cannot_be(options, said):
    options = {"method": "bayesian-calibration"} | options
    with pytest.raises(fl.UsageError, match=re.escape(said)) as caught:
        curve(one(), **options)
    assert "\n" not in str(caught.value)


def test_what_has_no_curve():
    votes = fl.Predictions(votes=[[1, 0], [0, 1]], labels=[1, -1])
    with pytest.raises(fl.InputError, match="hard predictions have no threshold"):
        curve(votes)
    mixed = fl.Predictions([[0.2, np.nan], [0.7, np.nan]], [1, -1], votes=[[0, 1], [1, 0]],
                           models=["p", "v"])  # fmt: skip
    with pytest.raises(fl.InputError, match="'v' gives none"):
        curve(mixed, "v", method="ensemble")
    assert curve(mixed, method="ensemble").model == "p"
    both = fl.Predictions([[0.2, 0.4], [0.7, 0.1]], [1, -1], models=["p", "q"])
    with pytest.raises(fl.UsageError, match="one of the classifiers: 'p', 'q'"):
        curve(both, method="ensemble")
    with pytest.raises(fl.UsageError, match="rank class 1 upwards"):
        curve(one(probability=False), positive=0, method=told())
    with pytest.raises(fl.UsageError, match="must be a path or a frame"):
        curve([[0.5]])


# --- little to go by ----------------------------------------------------------------------------


def test_nothing_is_known_of_a_curve_without_positives():
    found = curve(fl.Predictions([[0.7], [0.2]], [0, 0]), method="ensemble")
    assert (found.low == 0).all()
    assert (found.high == 1).all()
    assert found.status is fl.Status.UNDEFINED
    assert found.report()["area"] == {
        "metric": "average_precision", "value": None, "low": 0.0, "high": 1.0,
    }  # fmt: skip
    none = curve(fl.Predictions([[0.7], [0.2]], [-1, -1]), method="labeled")
    assert none.status is fl.Status.UNDEFINED
    assert none.report()["prevalence"] == {"value": None, "low": 0.0, "high": 1.0}


@pytest.mark.parametrize(
    ("labels", "status", "said"),
    [
        ([], "assumption", "no labels, so the answer"),
        ([1, 0, 1], "few-labels", "only 3 labeled items"),
        ([0] * 8, "few-labels", "no labeled item of class 1"),
        ([1, *[0] * 8], "few-labels", "a single labeled item of class 1"),
        ([1, 1, *[0] * 8], "ok", None),
    ],
    ids=str,
)
def test_status(labels, status, said):
    base = one(n=60, known=0)
    known = np.append(labels, np.full(60 - len(labels), -1))
    found = curve(base.with_labels(known), method="bayesian-calibration")
    assert found.status.value == status
    assert said is None or any(said in w for w in found.warnings)


def test_items_left_out_are_said():
    base = one()
    s = base.probabilities[:, :1, 1].copy()
    s[:20] = np.nan
    found = curve(fl.Predictions(s, base.labels, models=["a"]), method="bayesian-calibration")
    assert found.n_items == 180
    assert found.n_labeled == 10
    assert len(found.recalibrated) == 200
    assert any("20 of 200 items are left out" in w for w in found.warnings)


# --- forms --------------------------------------------------------------------------------------


def test_forms():
    both = curves(one(known=20), method="bayesian-calibration", random_state=5)
    pr = both.curves["precision-recall"]
    assert list(pr.to_dict()) == ["recall", "precision", "low", "high"]
    assert list(both.curves["roc"].to_dict()) == ["fpr", "tpr", "low", "high"]
    assert pr.to_dict()["recall"] == pytest.approx(GRID, abs=0)
    assert both.to_dict()["roc"] == both.curves["roc"].to_dict()
    report = pr.report()
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert report["what"] == "curve"
    assert report["kind"] == "precision-recall"
    assert (report["n_items"], report["n_labeled"], report["seed"]) == (200, 20, 5)
    assert set(both.report()["curves"]["roc"]) == {
        "fpr", "tpr", "low", "high", "threshold", "area",
    }  # fmt: skip
    alone = curve(one(known=20), method="bayesian-calibration", random_state=5)
    assert alone.report() == report
    for backend, width in (("pandas", 5), ("polars", 5), ("pyarrow", 5)):
        pytest.importorskip(backend)
        assert len(pr.to_frame(backend).columns) == width
    assert list(both.to_frame("pandas").columns) == ["kind", "x", "y", "low", "high", "threshold"]
    with pytest.raises(fl.UsageError, match="unknown backend"):
        pr.to_frame("excel")


@pytest.mark.parametrize("probability", [True, False])
def test_picture(probability):
    data = one(known=20, probability=probability)
    method = "bayesian-calibration" if probability else told()
    picture = curve(data, method=method).picture()
    histogram = picture["histogram"]
    assert sum(histogram["unlabeled"]) == 180
    assert sum(histogram["positive"]) == (data.labels == 1).sum()
    assert sum(histogram["negative"]) == (data.labels == 0).sum()
    assert len(histogram["edges"]) == 41
    each = [np.array(picture["recalibration"][k]) for k in ("low", "probability", "high")]
    assert len(each[0]) == 60
    assert (each[0] <= each[1]).all()
    assert (each[1] <= each[2]).all()
    assert (np.diff(picture["recalibration"]["score"]) >= 0).all()
    if probability:
        assert (np.diff(each[1]) >= -1e-12).all()


def test_progress_is_told():
    seen = []
    curve(one(), method="bayesian-calibration", progress=lambda *step: seen.append(step))
    assert seen == [(i, 4) for i in range(1, 5)]


# --- by threshold -----------------------------------------------------------------------------


def test_equal_error_rate_by_hand():
    """Scores 4 3 2 1 of classes 1 0 1 0: half of each is missed at the second cut."""
    y = np.array([1.0, 0.0, 1.0, 0.0])[:, None]
    drawn = Counts(np.cumsum(y, 0), np.cumsum(1 - y, 0), y.sum(0), (1 - y).sum(0))
    assert counts.equal_error_rate(drawn).tolist() == [0.5]
    # All positives first: none of either is missed.
    y = np.array([1.0, 1.0, 0.0, 0.0])[:, None]
    drawn = Counts(np.cumsum(y, 0), np.cumsum(1 - y, 0), y.sum(0), (1 - y).sum(0))
    assert counts.equal_error_rate(drawn).tolist() == [0.0]


@pytest.mark.slow
def test_equal_error_rate_is_where_the_roc_meets_the_falling_diagonal():
    from sklearn.metrics import roc_curve

    rng = np.random.default_rng(0)
    truth = rng.random(300) < 0.3
    scores = rng.normal(1.5 * truth, 1.0).round(1)
    predictions = fl.Predictions(scores=scores[:, None], labels=truth.astype(int), models=["a"])
    found = curves(predictions, method="monotone-curves").by_threshold
    fpr, tpr, _ = roc_curve(truth, scores, drop_intermediate=False)
    x = np.linspace(0, 1, 100_001)
    expected = x[np.argmin(np.abs(1 - np.interp(x, fpr, tpr) - x))]
    assert found.equal_error_rate.value == pytest.approx(expected, abs=2e-5)
    # With every label the rates are those of the items, and their bands have no width.
    for place in range(0, len(found.threshold), 9):
        called = scores >= found.threshold[place]
        assert found.precision.value[place] == pytest.approx(truth[called].mean())
        assert found.recall.value[place] == pytest.approx(truth[called].sum() / truth.sum())
    np.testing.assert_array_equal(found.recall.low, found.recall.high)


def test_bands_by_threshold_hold_the_rates():
    held = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        truth = (rng.random(600) < 0.35).astype(int)
        scores = rng.normal(2.0 * truth, 1.0)
        labels = np.where(np.arange(600) < 40, truth, -1)
        predictions = fl.Predictions(scores=scores[:, None], labels=labels, models=["a"])
        found = curves(predictions, method="monotone-curves").by_threshold
        assert (np.diff(found.threshold) > 0).all()
        for rate, real in (
            (found.recall, [truth[scores >= t].sum() / truth.sum() for t in found.threshold]),
            (found.precision, [truth[scores >= t].mean() for t in found.threshold]),
        ):
            assert (rate.low <= rate.value).all()
            assert (rate.value <= rate.high).all()
            held.append(((rate.low - 1e-9 <= real) & (real <= rate.high + 1e-9)).mean())
    assert np.mean(held) > 0.8


def test_densities_are_drawn_where_a_method_has_them():
    predictions = one(n=400, known=60, probability=False)
    picture = curves(predictions, method="spe").picture()
    found, edges = picture["densities"], picture["histogram"]["edges"]
    assert set(found) == {"positive", "negative"}
    total = sum(np.array(found[side]["value"]) for side in found)
    assert len(total) == len(edges) - 1
    assert total.sum() == pytest.approx(1.0, abs=0.08)
    seen = sum(np.array(picture["histogram"][k]) for k in ("unlabeled", "negative", "positive"))
    assert np.abs(np.cumsum(total) - np.cumsum(seen) / seen.sum()).max() < 0.1
    assert "densities" not in curves(predictions, method="monotone-curves").picture()


def _scored(share: Callable[[np.ndarray], np.ndarray], seed: int, n_labeled: int) -> fl.Predictions:
    """Uniform scores of 1,000 items, with P(positive | score) as said."""
    rng = np.random.default_rng(seed)
    score = rng.random(1000)
    truth = rng.random(1000) < share(score)
    labels = np.where(np.arange(1000) < n_labeled, truth, -1)
    return fl.Predictions(scores=np.round(score, 3)[:, None], labels=labels)


TURNED = {
    "the highest scores are bad": lambda s: np.where(s > 0.85, 0.1, 0.95 * (s > 0.4)),
    "both ends are positive": lambda s: 0.1 + 0.8 * np.abs(2 * s - 1),
}


@pytest.mark.slow_with("the highest scores are bad")
@pytest.mark.parametrize("world", TURNED)
def test_labels_that_do_not_rise_with_the_score_contradict_the_method(world):
    found = fl.curve(_scored(TURNED[world], 0, 200))
    assert found.status == "contradicted"
    said = found.warnings[0]
    assert said.startswith("contradicted: of the ")
    assert " positive, and the method expects " in said
    alone = fl.curve(_scored(TURNED[world], 0, 200), method="labeled")
    assert alone.status == "ok"


RISING = {
    "steep": lambda s: 1 / (1 + np.exp(-30 * (s - 0.5))),
    "a step": lambda s: np.where(s > 0.6, 0.9, 0.1),
    "hardly": lambda s: 0.3 + 0.2 * s,
}


@pytest.mark.few(1)
@pytest.mark.product
@pytest.mark.parametrize("world", RISING)
@pytest.mark.parametrize("n_labeled", [20, 200])
def test_labels_that_rise_with_the_score_contradict_nothing(world, n_labeled):
    assert fl.curve(_scored(RISING[world], 0, n_labeled)).status == "ok"


def test_the_level_of_the_test_of_tails():
    """Of 400 sets of labels drawn from P itself, 1% and three standard errors: 10."""
    rng = np.random.default_rng(5)
    found = 0
    for k in range(400):
        scores = np.round(rng.random((20, 40, 200)[k % 3]), 2)
        p = 1 / (1 + np.exp(-12 * (scores - 0.5)))
        labels = (rng.random(len(p)) < p).astype(np.int64)
        found += misfitting_tail(scores, labels, p) is not None
    assert found <= 10
