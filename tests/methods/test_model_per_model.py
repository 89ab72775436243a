"""One posterior per classifier: marginal SSME-KDE and what the mean of the posteriors answers."""

from __future__ import annotations

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.models import SSMEKDE, SSMEKDEMarginal


def world(n: int = 200, known: int = 30) -> fl.Predictions:
    rng = np.random.default_rng(0)
    truth = (rng.random(n) < 0.4).astype(int)
    p = 1 / (1 + np.exp(-2 * (1.5 * (truth[:, None] - 0.4) + rng.normal(size=(n, 3)))))
    return fl.Predictions(p, np.where(np.arange(n) < known, truth, -1), models=["a", "b", "c"])


SOFT = SSMEKDE(init="soft", bandwidth="scott")


def test_the_posterior_of_all_is_the_mean():
    predictions = world()
    posterior = SSMEKDEMarginal(SOFT).infer(predictions, 0)
    assert len(posterior.per_model) == 3
    mean = np.mean([posterior.of(j).marginals() for j in range(3)], axis=0)
    np.testing.assert_allclose(posterior.marginals(), mean)
    weights, block = next(posterior.soft_draws(5))
    assert block.shape == (5, 200, 2)
    assert weights.shape == (5,)


def test_a_classifier_without_probabilities_is_judged_by_the_mean_of_the_others():
    base = world()
    assert base.probabilities is not None
    p = base.probabilities.copy()
    p[:, 2] = np.nan
    votes = base.probabilities.argmax(axis=2)
    predictions = fl.Predictions(p, base.labels, votes=votes, models=base.models)
    found = fl.estimate(predictions, SSMEKDEMarginal(SOFT), ["accuracy", "ece"])
    posterior = found.posterior
    assert posterior.of(2) is posterior
    q = posterior.marginals()
    expected = np.take_along_axis(q, votes[:, 2:], axis=1).mean()
    row = found.get("c", "accuracy")
    assert row.value == pytest.approx(expected)
    assert found.get("c", "ece").status == "not-applicable"


def test_narrow_kernels_are_reported_of_the_classifiers_they_are_of():
    narrow = SSMEKDEMarginal(SSMEKDE(bandwidth=1e-6))
    found = fl.estimate(world(), narrow, "accuracy", confidence_level=None)
    assert found.diagnostics["self_share"].keys() == {"a", "b", "c"}
    assert any("too narrow" in warning for warning in found.warnings)


def test_report_of_a_method_per_classifier(tmp_path):
    found = fl.estimate(world(), SSMEKDEMarginal(SOFT), ["accuracy", "ece"])
    found.save_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "share of an item&#39;s density that is its own kernel" in page
    assert "SSME-KDE of one classifier at a time" in page
