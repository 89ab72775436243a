"""Populations whose rates follow from the parameters alone (`LabelPosterior.score_rates`)."""

from __future__ import annotations

import numpy as np
import pytest
from operating_naive import Told

import fewlabels as fl
from fewlabels.posterior import Fixed, LabelPosterior


class _Rates:
    """Scores uniform on (0, 1), P(positive | score) = score: known rates at any threshold."""

    def rates(self, thresholds, index):
        t = thresholds[:, None] + 0.0 * index[None, :]
        return np.full(len(index), 0.5), 1 - t**2, (1 - t) ** 2


@pytest.mark.parametrize("few", [30, 3000])
def test_known_rates_of_a_population(few):
    def make(predictions):
        p = np.tile(0.5, (predictions.n_items, 2))
        return LabelPosterior(p, Fixed(p), predictions.keys, score_rates=_Rates())

    scores = np.linspace(0, 1, few)[:, None]
    both = fl.curves(fl.Predictions(scores, np.full(few, -1)), method=Told(make),
                     estimand="population")  # fmt: skip
    pr, roc = both.curves["precision-recall"], both.curves["roc"]
    t = np.sqrt(1 - pr.x)  # the threshold of that recall
    np.testing.assert_allclose(pr.threshold, t, atol=1e-3)
    np.testing.assert_allclose(pr.y, (1 - t**2) / (1 - t**2 + (1 - t) ** 2), atol=2e-3)
    np.testing.assert_allclose(roc.y, 1 - (1 - np.sqrt(roc.x)) ** 2, atol=1e-3)
    assert both.prevalence == pytest.approx((0.5, 0.5, 0.5))
    assert roc.area.value == pytest.approx(5 / 6, abs=1e-3)
    cut = fl.threshold(fl.Predictions(scores, np.full(few, -1)), min_recall=0.75,
                       method=Told(make), estimand="population")  # fmt: skip
    assert (cut.probability == (cut.thresholds <= 0.5 + 1e-9)).all()


def test_known_rates_are_those_of_the_last_class():
    def make(predictions):
        p = np.tile([0.9, 0.1], (predictions.n_items, 1))
        return LabelPosterior(p, Fixed(p), predictions.keys, score_rates=_Rates())

    data = fl.Predictions(np.linspace(0, 1, 200)[:, None], np.full(200, -1))
    found = fl.curves(data, positive=0, method=Told(make), estimand="population")
    assert found.prevalence.value == pytest.approx(0.9, abs=0.02)


def test_rates_that_end_above_zero_close_at_the_prevalence():
    class Short:
        def rates(self, thresholds, index):
            half = np.full((len(thresholds), len(index)), 0.5)
            return np.full(len(index), 0.2), half, half / 2

    def make(predictions):
        p = np.tile(0.5, (predictions.n_items, 2))
        return LabelPosterior(p, Fixed(p), predictions.keys, score_rates=Short())

    data = fl.Predictions(np.linspace(0.1, 0.9, 20)[:, None], np.full(20, -1))
    found = fl.curve(data, method=Told(make), estimand="population")
    np.testing.assert_allclose(found.y[found.x > 0.5], 0.2)
    assert np.isneginf(found.threshold[found.x > 0.5]).all()
    assert found.report()["threshold"][-1] is None
