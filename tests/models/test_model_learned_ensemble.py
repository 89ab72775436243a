"""Learned ensemble: its prior, and what it makes of odd sets of classifiers."""

from __future__ import annotations

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.errors import UsageError
from fewlabels.models import LearnedEnsemble
from fewlabels.models.ensembles import (
    EVEN,
    REFERENCE,
    STRETCH,
    WIDE_WEIGHT,
    _table,
    beliefs_of,
)

FAMILIES = [family for family in _table()["weights"] if family]


def overconfident(columns: int, labeled: int, copies: int = 1) -> fl.Predictions:
    """Classifiers three times as confident as they should be, each given several times."""
    rng = np.random.default_rng(0)
    score = rng.normal(size=600)
    truth = (rng.random(600) < 1 / (1 + np.exp(-score))).astype(int)
    noisy = score[:, None] + 0.4 * rng.normal(size=(600, columns))
    p = np.repeat(1 / (1 + np.exp(-3 * noisy)), copies, axis=1)
    return fl.Predictions(p, np.where(np.arange(600) < labeled, truth, -1))


def interval(predictions: fl.Predictions) -> tuple[float, float, float]:
    """Value, low and high of the first classifier's accuracy."""
    row = fl.estimate(predictions, LearnedEnsemble(), "accuracy", confidence_level=0.9).rows[0]
    return row.value, row.low, row.high


@pytest.mark.parametrize("left_out", [None, *FAMILIES])
def test_weights_of_the_beliefs(left_out):
    beliefs = beliefs_of(left_out)
    assert sum(b.weight for b in beliefs) == pytest.approx(1, abs=1e-3)
    assert all(b.slope_sd > 0 and b.offset_sd > 0 for b in beliefs)
    by_kind: dict[str, float] = {}
    for belief in beliefs:
        kind = "pool" if belief.pool in ("raw", "calibrated") else belief.pool
        by_kind[kind] = by_kind.get(kind, 0.0) + belief.weight
    assert by_kind.pop("reference") == pytest.approx(REFERENCE, abs=1e-3)
    assert len(by_kind) == 8
    assert min(by_kind.values()) >= (1 - REFERENCE) * (1 - WIDE_WEIGHT) * EVEN / len(by_kind) - 1e-9


def test_every_family_has_weights_of_its_own():
    """A family that is left out teaches nothing: the weights without it are others."""
    tables = {beliefs_of(f) for f in (None, *FAMILIES)}
    assert len(tables) == 1 + len(FAMILIES)


def test_unknown_family():
    with pytest.raises(UsageError, match="family"):
        LearnedEnsemble(left_out="penguins")


@pytest.mark.parametrize("labeled", [0, 20])
def test_copies_of_a_classifier_are_no_agreement(labeled):
    """Given twice it says what it says once; counted as agreement it would be far too sure."""
    once, twice = (interval(overconfident(1, labeled, copies)) for copies in (1, 2))
    np.testing.assert_allclose(twice, once, atol=0.1)
    agreeing = fl.models.AgreementEnsemble().infer(overconfident(1, labeled, 2), 0)
    assert agreeing.diagnostics["anchor"] > 2
    learned = LearnedEnsemble().infer(overconfident(1, labeled, 2), 0)
    assert learned.diagnostics["anchor"] == 1


def test_without_labels_intervals_are_wide_and_say_what_they_rest_on():
    posterior = LearnedEnsemble().infer(overconfident(3, 0), 0)
    assert posterior.status == "assumption"
    assert any("no labels" in w for w in posterior.warnings)
    _, low, high = interval(overconfident(3, 0))
    _, low_100, high_100 = interval(overconfident(3, 100))
    assert high - low > 2 * (high_100 - low_100)


def test_intervals_are_stretched_less_with_more_labels():
    few, many = (LearnedEnsemble().infer(overconfident(3, n), 0).stretch for n in (20, 80))
    assert few == pytest.approx(1 + STRETCH)
    assert many == pytest.approx(1 + STRETCH / 2)


def test_labels_of_one_class_leave_the_other_open():
    p = overconfident(3, 20)
    labels = np.where(p.labels == 0, 0, -1)
    one_class = fl.Predictions(p.probabilities, labels)
    row = fl.estimate(one_class, LearnedEnsemble(), "recall", confidence_level=0.9).rows[0]
    assert row.high - row.low > 0.1
    assert row.status == "few-labels"


def test_a_copy_that_lacks_a_prediction_is_a_copy():
    twice = overconfident(1, 0, 2)
    p = twice.probabilities.copy()
    p[3, 1] = np.nan
    posterior = LearnedEnsemble().infer(fl.Predictions(p, twice.labels), 0)
    assert posterior.diagnostics["anchor"] == 1


def test_labels_of_items_without_predictions_are_no_labels():
    p = overconfident(2, 20)
    probabilities = p.probabilities.copy()
    probabilities[:20] = np.nan
    posterior = LearnedEnsemble().infer(fl.Predictions(probabilities, p.labels), 0)
    assert posterior.status == "assumption"
    assert posterior.stretch == pytest.approx(1 + 2 * STRETCH)


def test_many_annotators_of_ten_items_are_ten_labels():
    p = overconfident(2, 10)
    histogram = np.zeros((600, 2))
    rng = np.random.default_rng(0)
    histogram[:10, 1] = rng.integers(5, 45, 10)
    histogram[:10, 0] = 50 - histogram[:10, 1]
    told = fl.Predictions(p.probabilities, histogram=histogram)
    model = fl.models.LabelDistribution(LearnedEnsemble(), imputations=1)
    posterior = model.infer(told, 0)
    assert posterior.stretch == pytest.approx(1 + STRETCH * np.sqrt(2), rel=0.02)


def test_many_labels_weigh_beliefs_by_some_and_fit_by_all(monkeypatch):
    """With more labels than beliefs are weighed by, posteriors are nearly those of all."""
    rng = np.random.default_rng(2)
    score = rng.normal(size=3000)
    truth = (rng.random(3000) < 1 / (1 + np.exp(-1.5 * score))).astype(int)
    p = 1 / (1 + np.exp(-(score[:, None] + 0.3 * rng.normal(size=(3000, 3)))))
    told = fl.Predictions(p, np.where(np.arange(3000) < 1500, truth, -1))
    everything = LearnedEnsemble().infer(told, 0).marginals()
    monkeypatch.setattr("fewlabels.models.belief_mixture.WEIGHED_ITEMS", 500)
    some = LearnedEnsemble().infer(told, 0).marginals()
    assert np.abs(some - everything).mean() < 0.01
    assert np.abs(some - everything).max() > 0


def test_intervals_of_these_very_items_are_stretched_too():
    p = overconfident(3, 20)
    widths = []
    for stretch in (STRETCH, 0.0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("fewlabels.models.ensembles.STRETCH", stretch)
            row = fl.estimate(p, LearnedEnsemble(), "brier", estimand="sample").rows[0]
        widths.append(row.high - row.low)
    assert widths[0] == pytest.approx((1 + STRETCH) * widths[1], rel=0.05)
