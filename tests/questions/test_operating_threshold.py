"""fl.threshold and its conditions: against loops, and what cannot be met, read or asked."""

from __future__ import annotations

import json
import math
import re
from functools import partial

import numpy as np
import pytest
from operating_naive import (
    Told,
    counts,
    label_weights,
    question_of,
    random_world,
    shortest,
    told,
)

import fewlabels as fl
from fewlabels.posterior import Fixed, LabelPosterior
from fewlabels.questions.counts import FORMULAS
from fewlabels.questions.threshold import Thresholds

# The values compared here are of 90% and of these very items.
_OF_THESE = {"confidence_level": 0.9, "estimand": "sample"}
threshold = partial(fl.threshold, **_OF_THESE)

COST = (1.0, 4.0)


def rates_of(tp: float, fp: float, positives: float, negatives: float) -> dict[str, float]:
    """Every rate from four numbers; NaN where it divides by nothing (but for rounding)."""
    fn, tn = positives - tp, negatives - fp
    total = positives + negatives

    def share(a: float, b: float) -> float:
        return a / b if b > 1e-9 else math.nan

    recall, specificity = share(tp, positives), share(tn, negatives)
    return {
        "precision": share(tp, tp + fp),
        "recall": recall,
        "tpr": recall,
        "specificity": specificity,
        "tnr": specificity,
        "fpr": share(fp, negatives),
        "fnr": share(fn, positives),
        "f1": share(2 * tp, 2 * tp + fp + fn),
        "accuracy": (tp + tn) / total,
        "balanced_accuracy": (recall + specificity) / 2,
        "npv": share(tn, tn + fn),
        "predicted_positive_rate": (tp + fp) / total,
        "prevalence": positives / total,
        "cost": (COST[0] * fp + COST[1] * fn) / total,
        "cost_of_all": COST[0] * negatives / total,
        "cost_of_none": COST[1] * positives / total,
    }


def naive_probability(q, asked: dict[str, tuple[str, float]], kind: str) -> dict[float, float]:
    """Threshold -> share of 400 draws that satisfy all of the conditions."""
    scores, w = label_weights(q, 400, kind)
    met: dict[float, int] = {}
    for d in range(400):
        negatives, positives = w[:, :, d].sum(axis=0)
        for t, tp, fp in counts(scores, w[:, :, d]):
            rates = rates_of(tp, fp, positives, negatives)
            good = all(
                rates[name] >= bound - 1e-12 if sign == ">=" else rates[name] <= bound + 1e-12
                for name, (sign, bound) in asked.items()
            )
            met[t] = met.get(t, 0) + good
    return {t: m / 400 for t, m in met.items()}


@pytest.mark.slow
def test_few_items_called_positive_are_not_certain() -> None:
    """All 150 items are labeled, and of the top ones 87% are positive in truth."""
    rng = np.random.default_rng(804)
    score = rng.beta(0.6, 0.9, 150)
    labels = rng.random(150) < 0.12 + 0.76 / (1 + np.exp(-8 * (score - 0.5)))
    predictions = fl.Predictions(scores=np.round(score, 3)[:, None], labels=labels)
    found = fl.threshold(predictions, min_precision=0.95)
    assert found.best_probability < 0.9
    precision = found.rates["precision"]
    assert precision.low < 0.866 < precision.high
    band = fl.curves(predictions, kinds="precision-recall")
    assert (band.by_threshold.precision.high > band.by_threshold.precision.low).all()
    curve = band.curves["precision-recall"]
    assert (curve.high > curve.low).all()


EVERY = [
    {"precision": (">=", 0.4), "recall": (">=", 0.5)},
    {"specificity": (">=", 0.6)},
    {"f1": (">=", 0.45), "fpr": ("<=", 0.7)},
    {"accuracy": (">=", 0.5), "npv": (">=", 0.4), "fnr": ("<=", 0.6)},
    {"cost": ("<=", 1.4), "balanced_accuracy": (">=", 0.45)},
    {"predicted_positive_rate": ("<=", 0.6), "prevalence": (">=", 0.4), "tnr": (">=", 0.3)},
]


@pytest.mark.product
@pytest.mark.parametrize("estimand", ["sample", "population"])
@pytest.mark.parametrize("case", range(len(EVERY)))
def test_random_worlds_against_loops(case, estimand):
    predictions, asked = random_world(case, scores=case % 2 == 0), EVERY[case]
    method = told(seed=case, interval_draws=20 if case % 3 == 0 else None)
    text = " and ".join(f"{name} {sign} {bound}" for name, (sign, bound) in asked.items())
    found = threshold(predictions, condition=text, cost=COST, method=method, estimand=estimand)
    q = question_of(predictions, method, estimand)
    kind = "bootstrap" if estimand == "population" else "interval"
    wanted = naive_probability(q, asked, kind)
    assert found.thresholds.tolist() == sorted(wanted)
    np.testing.assert_allclose(found.probability, [wanted[t] for t in sorted(wanted)], atol=1e-12)
    assert found.best_probability >= min(found.least, found.probability.max())
    assert found.probability[found.thresholds == found.best] == found.best_probability
    assert list(found.conditions) == text.split(" and ")


def test_rates_at_the_best_threshold_against_loops():
    predictions, method = random_world(1), told(seed=1)
    found = threshold(predictions, min_f1=0.3, method=method, cost=COST)
    q = question_of(predictions, method, "sample")
    rows = np.flatnonzero(~np.isnan(q.scores) & (q.predictions.weight > 0))
    _, w = label_weights(q, 400, "interval")

    def interval_at(cut, name):
        drawn = []
        for d in range(400):
            negatives, positives = w[:, :, d].sum(axis=0)
            tp, fp = w[q.scores[rows] >= cut, :, d].sum(axis=0)[::-1]
            drawn.append(rates_of(tp, fp, positives, negatives)[name])
        value, (low, high) = np.nanmedian(drawn), shortest(np.array(drawn), 0.9)
        return value, low, high

    assert list(found.rates) == [
        "precision", "recall", "specificity", "fpr", "f1", "accuracy", "predicted_positive_rate",
        "cost", "cost_of_all", "cost_of_none",
    ]  # fmt: skip
    for name, rate in found.rates.items():
        assert rate == pytest.approx(interval_at(found.best, name), abs=1e-9), name
    moved = dict(found.by_threshold)
    cuts = moved.pop("threshold")
    assert list(moved) == ["precision", "recall", "fpr", "predicted_positive_rate", "cost"]
    assert found.best in cuts
    assert set(cuts) <= set(found.thresholds)
    for name, band in moved.items():
        for place in (0, len(cuts) // 2, len(cuts) - 1):
            here = [end[place] for end in band]
            assert here == pytest.approx(interval_at(cuts[place], name), abs=1e-9), name


def test_other_thresholds_are_at_even_steps_of_items_and_of_positives():
    """Of a rare class most thresholds would otherwise find nothing."""
    rng = np.random.default_rng(0)
    truth = rng.random(3000) < 0.02
    score = 1 / (1 + np.exp(-rng.normal(4 * truth - 3, 1)))
    data = fl.Predictions(score[:, None], truth.astype(int), models=["a"])
    found = threshold(data, min_recall=0.5, method="labeled", estimand="sample")
    cuts, recall = found.by_threshold["threshold"], found.by_threshold["recall"].value
    assert len(cuts) in (60, 61)
    assert (np.diff(cuts) > 0).all()
    steps = -np.diff(recall) - np.diff(found.by_threshold["predicted_positive_rate"].value)
    assert steps.min() > 0
    assert steps.max() < 2.5 * 2 / 60


def test_arguments_text_and_functions_are_one():
    data = random_world(5)
    named, text, own, several = (
        threshold(data, method=told(), **options)
        for options in (
            {"min_precision": 0.4, "max_fpr": 0.6},
            {"condition": "precision>=.4 and fpr <= 6e-1"},
            {"condition": lambda rates: (rates["precision"] >= 0.4) & (rates["fpr"] <= 0.6)},
            {"min_precision": 0.4, "condition": ["fpr <= 0.6", lambda r: r["recall"] >= 0]},
        )
    )
    for other in (text, own):
        np.testing.assert_array_equal(named.probability, other.probability)
    assert named.best == text.best
    assert (named.choice, own.choice) == ("recall", "likeliest")
    assert (several.probability <= named.probability).all()
    assert text.conditions == ("precision >= 0.4", "fpr <= 0.6")
    assert own.conditions == ("<lambda>",)
    assert several.conditions == ("precision >= 0.4", "fpr <= 0.6", "<lambda>")


def test_a_function_sees_every_rate():
    seen = {}

    def look(rates):
        seen.update(rates)
        return rates["accuracy"] > 0

    threshold(random_world(5), condition=look, method=told())
    assert list(seen) == list(FORMULAS)
    assert len({a.shape for a in seen.values()}) == 1


def certain(scores: list[float], labels: list[int], **options) -> Thresholds:
    """All labels known: each condition holds or not."""
    data = fl.Predictions(scores=np.array(scores)[:, None], labels=labels)
    return threshold(data, method="ensemble" if options.get("p") else told(), **options)


def test_the_best_of_the_other_side():
    """Of all that meet the condition: neither the middle one of them nor that of the longest run.

    Accuracy is 7/8 at 6 and at 4, which are no neighbours: the first of the runs.
    """
    labels = [1, 1, 1, 0, 1, 0, 0, 0]
    scores = [8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
    for asked, best, choice in (
        ({"min_recall": 0.7}, 6.0, "precision"),
        ({"min_precision": 0.7}, 4.0, "recall"),
        ({"min_precision": 0.7, "min_recall": 0.7}, 4.0, "recall"),
        ({"min_accuracy": 0.6}, 4.0, "accuracy"),
        ({"condition": "predicted_positive_rate <= 0.5"}, 5.0, "recall"),
        ({"condition": "predicted_positive_rate >= 0.6"}, 4.0, "precision"),
        ({"condition": "prevalence >= 0.4"}, 4.0, "likeliest"),
    ):
        found = certain(scores, labels, **asked)
        assert (found.best, found.choice, found.best_probability) == (best, choice, 1.0), asked
        assert certain(scores, labels, probability=0.5, **asked).best == best


def known_world(seed: int, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Scores and labels, all of them known."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.3).astype(int)
    return np.round(rng.normal(1.2 * labels, 1.0), 1), labels


@pytest.mark.parametrize("seed", range(5))
def test_all_labels_known_against_scikit_learn(seed):
    """Curves of scikit-learn at every score: the best of those that meet the condition."""
    from sklearn.metrics import precision_recall_curve, roc_curve

    scores, labels = known_world(seed)
    precision, recall, cuts = precision_recall_curve(labels, scores)
    fpr, tpr, roc_cuts = roc_curve(labels, scores, drop_intermediate=False)
    roc = {cut: (t, 1 - f) for cut, t, f in zip(roc_cuts[1:], tpr[1:], fpr[1:], strict=True)}
    points = [(p, r, *roc[cut], cut)
              for p, r, cut in zip(precision, recall, cuts, strict=False)]  # fmt: skip
    for asked, on, other in (
        ("min_recall", 1, 0), ("min_precision", 0, 1), ("min_specificity", 3, 2),
        ("min_sensitivity", 2, 3), ("min_ppv", 0, 2),
    ):  # fmt: skip
        meeting = [point for point in points if point[on] >= 0.6]
        found = certain(scores.tolist(), labels.tolist(), **{asked: 0.6})
        best = next(point for point in points if point[4] == found.best)
        assert best[on] >= 0.6
        assert best[other] == pytest.approx(max(point[other] for point in meeting), abs=1e-8)
        rate = asked.removeprefix("min_")
        assert found.rates[rate].value == pytest.approx(best[on], abs=1e-8)
        assert found.rates[found.choice].value == pytest.approx(best[other], abs=1e-8)


@pytest.mark.parametrize("cost", [(1.0, 5.0), {"FN": 1, "fp": 5}])
def test_the_least_cost_against_a_loop(cost):
    scores, labels = known_world(7)
    fp, fn = (1.0, 5.0) if isinstance(cost, tuple) else (5, 1)
    each = {
        cut: np.where(scores >= cut, fp * (labels == 0), fn * (labels == 1)).mean()
        for cut in scores
    }
    found = certain(scores.tolist(), labels.tolist(), cost=cost)
    assert found.choice == "cost"
    assert each[found.best] == pytest.approx(min(each.values()), abs=1e-12)
    values = [found.rates[name].value for name in ("cost", "cost_of_all", "cost_of_none")]
    wanted = [each[found.best], fp * (labels == 0).mean(), fn * (labels == 1).mean()]
    assert values == pytest.approx(wanted, abs=1e-12)
    cheaper = [each[cut] < min(wanted[1:]) - 1e-12 for cut in found.thresholds]
    assert found.probability.tolist() == cheaper
    within = certain(scores.tolist(), labels.tolist(), cost=cost, min_recall=0.8)
    recalls = {cut: (scores[labels == 1] >= cut).mean() for cut in scores}
    least = min(each[cut] for cut, recall in recalls.items() if recall >= 0.8)
    assert each[within.best] == pytest.approx(least, abs=1e-12)
    assert within.choice == "cost"


def test_the_prevalence_of_another_place_by_hand():
    """P(score | class) is kept, so sensitivity and specificity are; Bayes gives the others."""
    scores, labels = known_world(11)
    asked = {"min_specificity": 0.9, "cost": (1, 5)}
    here, there = (certain(scores.tolist(), labels.tolist(), prevalence=p, **asked)
                   for p in (None, 0.03))  # fmt: skip
    own = labels.mean()
    same = certain(scores.tolist(), labels.tolist(), prevalence=own, **asked)
    assert same.best == here.best
    for name, rate in here.rates.items():
        assert same.rates[name] == pytest.approx(rate, abs=1e-12)
    called = scores >= there.best
    tpr, tnr = called[labels == 1].mean(), 1 - called[labels == 0].mean()
    hits, false, missed, right = 0.03 * tpr, 0.97 * (1 - tnr), 0.03 * (1 - tpr), 0.97 * tnr
    wanted = {
        "sensitivity": tpr, "specificity": tnr, "ppv": hits / (hits + false),
        "npv": right / (right + missed), "predicted_positive_rate": hits + false,
        "cost": false + 5 * missed, "cost_of_all": 0.97, "cost_of_none": 0.15,
    }  # fmt: skip
    for name, value in wanted.items():
        assert there.rates[name].value == pytest.approx(value, abs=1e-8), name
    assert there.prevalence == 0.03
    assert there.prevalence_here.value == pytest.approx(own)
    assert there.status is fl.Status.ASSUMPTION
    assert any("at a prevalence of 0.03" in line for line in there.warnings)
    # Expected by Bayes, every cut: the least cost of those with a specificity of .9.
    costs = {
        cut: 0.97 * (scores[labels == 0] >= cut).mean() + 0.15 * (scores[labels == 1] < cut).mean()
        for cut in scores if (scores[labels == 0] < cut).mean() >= 0.9
    }  # fmt: skip
    assert costs[there.best] == pytest.approx(min(costs.values()), abs=1e-12)


def test_names_of_hospitals_are_the_same_rates():
    data = random_world(5)
    for one, other in (("min_recall", "min_sensitivity"), ("min_precision", "min_ppv")):
        named, clinical = (threshold(data, method=told(), **{name: 0.4}) for name in (one, other))
        np.testing.assert_array_equal(named.probability, clinical.probability)
    assert list(clinical.rates)[:4] == ["ppv", "sensitivity", "specificity", "accuracy"]


def test_a_probability_that_no_threshold_reaches_leaves_the_likeliest():
    found = threshold(random_world(5), min_precision=0.4, method=told(), probability=1.0)
    top = found.probability.max()
    if top < 1:
        assert (found.choice, found.best_probability) == ("likeliest", top)
    eager = threshold(random_world(5), min_precision=0.4, method=told(), probability=top / 2)
    assert eager.choice == "recall"
    assert eager.best <= found.best
    with pytest.raises(fl.UsageError, match="`probability` must be above 0"):
        threshold(random_world(5), min_precision=0.4, probability=0)


def test_the_middle_of_the_longest_plateau():
    # Precision from the top: 1, 1, 2/3, 3/4, 4/5, 5/6, 5/7, 5/8; bound .7: cuts 1-2 and 4-7.
    labels = [1, 1, 0, 1, 1, 1, 0, 0]
    scores = [8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
    asked = {"condition": lambda rates: rates["precision"] >= 0.7}
    found = certain(scores, labels, **asked)
    assert found.probability.tolist() == [0, 1, 1, 1, 1, 0, 1, 1]
    assert found.best == 3.0
    assert found.met
    assert found.best_probability == 1.0
    assert found.shortfall == 0.0
    assert found.for_probability(0.9) == (2.0, 5.0)
    # The widest range is in the units of the score, the plateau in cuts.
    wide = certain([80.0, 7.0, *scores[2:]], labels, **asked)
    assert wide.best == 3.0
    assert wide.for_probability(1.0) == (7.0, 80.0)


def test_for_probability_may_find_nothing():
    found = threshold(random_world(5), min_precision=0.4, method=told())
    assert found.for_probability(1.1) is None
    assert found.for_probability(0) == (found.thresholds[0], found.thresholds[-1])
    low, high = found.for_probability(found.best_probability)
    assert low <= found.best <= high


def test_not_met():
    labels = [0, 1, 0, 1, 0, 0]
    found = certain([6.0, 5.0, 4.0, 3.0, 2.0, 1.0], labels, min_precision=0.9, min_recall=0.9)
    assert not found.met
    assert found.best_probability == 0.0
    assert not found.probability.any()
    # precision + recall lack .4 at the fourth cut (precision .5, recall 1): the least
    assert found.best == 3.0
    assert found.shortfall == pytest.approx(0.4)
    said = "no draw meets precision >= 0.9 and recall >= 0.9 at any threshold; the nearest is 3"
    assert any(said in w for w in found.warnings)
    assert found.rates["precision"] == pytest.approx((0.5, 0.5, 0.5))
    assert json.loads(json.dumps(found.report(), allow_nan=False)) == found.report()


def test_an_undefined_rate_meets_nothing():
    """Nothing is called negative at the lowest cut, so npv is undefined there."""
    found = certain([3.0, 2.0, 1.0], [1, 1, 0], condition="npv >= 0")
    assert found.probability.tolist() == [0, 1, 1]
    empty = certain([3.0, 2.0, 1.0], [0, 0, 0], condition="recall <= 1")
    assert not empty.met


def test_no_item_to_put_a_threshold_at():
    data = fl.Predictions([[0.4], [0.6]], [-1, -1])
    found = threshold(data, min_recall=0.5, method="labeled")
    assert math.isnan(found.best)
    assert found.status is fl.Status.UNDEFINED
    report = found.report()
    assert report["best"] is None
    assert report["met"] is False
    assert report["rates"]["precision"] == {"value": None, "low": None, "high": None}
    assert report["by_threshold"]["recall"] == {"value": [], "low": [], "high": []}


@pytest.mark.parametrize("workers", [1, 2])
def test_workers(workers):
    data = random_world(8, n=60)
    base = threshold(data, min_recall=0.5, method=told(), random_state=3)
    again = threshold(data, min_recall=0.5, method=told(), random_state=3, workers=workers)
    assert base.report() == again.report()


def test_many_draws_for_a_high_level():
    seen = []
    threshold(random_world(8), min_recall=0.5, method=told(), confidence_level=0.99,
                 progress=lambda *step: seen.append(step))  # fmt: skip
    assert seen == 3 * [(i, 20) for i in range(1, 21)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "no condition given: pass at least one of `min_precision`"),
        ({"min_precision": 1.2}, "`min_precision` must be between 0 and 1, as precision is"),
        ({"min_precision": 80}, "write 80% as 0.8"),
        ({"min_recall": -0.1}, "`min_recall` must be between 0 and 1"),
        ({"max_fpr": math.nan}, "`max_fpr` must be between 0 and 1"),
        ({"min_f1": "high"}, "`min_f1` must be between 0 and 1"),
        ({"min_accuracy": True}, "`min_accuracy` must be between 0 and 1"),
        ({"max_cost": 5, "cost": (1, 4)}, "`max_cost` must be between 0 and 4, as cost is"),
        ({"max_cost": 1, "cost": (1, -1)}, "`cost` must be two numbers"),
        ({"max_cost": 1, "cost": (0, 0)}, "`cost` must be two numbers"),
        ({"max_cost": 1, "cost": 3}, "`cost` must be two numbers"),
        ({"max_cost": 1, "cost": "12"}, "`cost` must be two numbers"),
        ({"cost": {"FP": 1}}, "`cost` must be two numbers"),
        ({"min_sensitivity": 1.2}, "`min_sensitivity` must be between 0 and 1, as sensitivity is"),
        ({"min_recall": 0.5, "prevalence": 3}, "`prevalence` must be above 0 and below 1; got 3"),
        ({"min_recall": 0.5, "prevalence": 0}, "`prevalence` must be above 0 and below 1; got 0"),
        ({"min_recall": 0.5, "prevalence": True}, "`prevalence` must be above 0 and below 1"),
        ({"condition": "precision"}, "cannot be read at 'precision'"),
        ({"condition": ""}, "cannot be read at ''"),
        ({"condition": "precision >= 0.8 and"}, "cannot be read at ''"),
        ({"condition": "precision >= 0.8 or recall >= 0.5"}, "cannot be read at"),
        ({"condition": "precison >= 0.8"}, "unknown rate 'precison'; did you mean 'precision'?"),
        ({"condition": "precision >= many"}, "must compare precision with a number; got 'many'"),
        ({"condition": "precision >= inf"}, "between 0 and 1"),
        ({"condition": "precision > 1"}, "no precision can be > 1"),
        ({"condition": "__import__('os')"}, "cannot be read at"),
        ({"condition": 3}, "must be text such as"),
        ({"condition": lambda rates: rates["lift"] > 1}, "raised KeyError"),
        ({"condition": lambda rates: True}, "must give an array of booleans"),
        ({"condition": lambda rates: rates["recall"]}, "must give an array of booleans"),
        ({"min_recall": 0.5, "confidence_level": None}, "between 0 and 1"),
        ({"min_recall": 0.5, "method": "autoeval"}, "forms no posterior"),
        ({"min_recall": 0.5, "model": "nobody"}, "unknown model"),
    ],
)
def test_what_cannot_be_asked(options, said):
    options = {"method": told()} | options
    with pytest.raises(fl.UsageError, match=re.escape(said)) as caught:
        threshold(random_world(5), **options)
    assert "\n" not in str(caught.value)


def test_probability_means_what_it_says():
    """Labels drawn from P(positive | score) that the posterior knows: met as often as claimed."""
    rng = np.random.default_rng(0)
    claimed, happened = [], []
    for _ in range(40):
        p = rng.beta(0.4, 0.4, 150)

        def make(predictions, p=p):
            both = np.column_stack([1 - p, p])
            return LabelPosterior(both, Fixed(both), predictions.keys)

        found = threshold(fl.Predictions(p[:, None], np.full(150, -1)), None, 0.8, 0.6,
                             method=Told(make))  # fmt: skip
        truth = rng.random(150) < p
        for t, probability in zip(found.thresholds[::10], found.probability[::10], strict=True):
            hit = truth[p >= t]
            good = hit.mean() >= 0.8 and hit.sum() >= 0.6 * truth.sum()
            claimed.append(probability)
            happened.append(good)
    claimed, happened = np.array(claimed), np.array(happened)
    assert abs(claimed.mean() - happened.mean()) < 0.03
    sure = claimed > 0.8
    assert sure.sum() > 20
    assert abs(claimed[sure].mean() - happened[sure].mean()) < 0.1


def test_forms():
    found = threshold(random_world(5), None, 0.4, 0.3, method=told(), random_state=2)
    assert list(found.to_dict()) == [
        "thresholds", "probability", "best", "best_probability", "met",
    ]  # fmt: skip
    report = found.report()
    assert report["what"] == "threshold"
    assert report["conditions"] == ["precision >= 0.4", "recall >= 0.3"]
    assert (report["seed"], report["confidence_level"], report["unit"]) == (2, 0.9, "probability")
    assert list(found.to_frame("pandas").columns) == ["threshold", "probability"]
    assert found.to_frame("pyarrow").num_rows == len(found.thresholds)
