"""Hundreds of classes: drawn labels counted cell by cell say what sums class by class say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

import fewlabels as fl
from fewlabels import posterior
from fewlabels.kernels import weighting
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.methods.ensembles import belief_mixture
from fewlabels.metrics import ranking as metrics_ranking
from fewlabels.metrics.base import ScoreView
from fewlabels.metrics.ranking import Ranking

METRICS = ["accuracy", "f1", "specificity", "cohen_kappa", "weighted_kappa",
           "mean_absolute_error", "within_one", "matthews_corrcoef", "ece",
           "ece_quantile", "brier", "log_loss", "roc_auc", "average_precision"]  # fmt: skip


def classified(n: int, k: int, labels: int, seed: int = 0) -> tuple[Floats, Ints, Ints]:
    """Probabilities (n, 2, K) of two classifiers, the truth, and the labels that are known."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n)
    z = rng.normal(size=(n, 2, k))
    z[np.arange(n), :, truth] += np.array([2.5, 4.0])
    p = np.exp(z)
    p /= p.sum(axis=2, keepdims=True)
    return p, truth, np.where(np.arange(n) < labels, truth, -1)


@pytest.fixture(scope="module")
def items() -> fl.Predictions:
    """Items of 12 classes, with weights; one classifier lacks some."""
    p, _, labels = classified(300, 12, 80)
    p[200:230, 0] = np.nan
    weight = np.random.default_rng(1).uniform(0.5, 2, size=300)
    return fl.Predictions(p, labels, weight=weight, groups={"half": np.arange(300) % 2})


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"by": "half"}, marks=pytest.mark.slow),
        {"estimand": "sample"},
        {"method": "labeled", "by": "half"},
        {"method": "labeled", "estimand": "sample"},
        pytest.param({"method": "pseudo-label"}, marks=pytest.mark.slow),
        {"method": "tempered-ensemble", "confidence_level": None},
    ],
    ids=str,
)
def test_labels_counted_by_cell_say_what_sums_by_class_say(
    items: fl.Predictions, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To rounding, whatever the number of classes that are ranked at a time."""

    def rows() -> list[Any]:
        return fl.estimate(items, metrics=METRICS, **asked).rows  # type: ignore[return-value]

    plain = rows()
    monkeypatch.setattr(weighting, "FEW_CLASSES", 20)
    monkeypatch.setattr(posterior, "_FEW_CLASSES", 4)
    monkeypatch.setattr(metrics_ranking, "_AT_ONCE", 2**10)
    for row, other in zip(plain, rows(), strict=True):
        assert row[:3] == other[:3]
        assert row.status == other.status
        ends, others = (np.array([r.value, r.low, r.high]) for r in (row, other))
        np.testing.assert_allclose(others, ends, rtol=0, atol=1e-9, err_msg=str(row[:3]))


@pytest.mark.parametrize(
    ("k", "error"),
    [(5, 2e-5), (60, 2e-5), pytest.param(400, 1e-4, marks=pytest.mark.slow)],
)
def test_bins_are_near_exact_rankings(k: int, error: float) -> None:
    """Of 5,000 items, of any number of classes, and where many probabilities are equal.

    Of many classes there are fewer bins.
    """
    rng = np.random.default_rng(2)
    p, truth, _ = classified(5000, k, 0)
    rows = rng.standard_exponential((5000, 3))
    for given in (p[:, 0], np.round(p[:, 0], 2)):
        drawn = weighting.Drawn(truth[:, None], rows, k, 3)
        view = ScoreView(k, given, exact=False)
        plans = [Ranking().prepare(view), Ranking().prepare(replace(view, exact=True))]
        near, exact = (plan.measured(drawn)[..., 0, :] for plan in plans)
        gap = abs((near - exact).mean(axis=1))
        assert (gap < [[error / 2], [error]]).all(), gap.max(axis=1)


@pytest.mark.parametrize("soft", [False, True])
def test_rankings_are_those_of_scikit_learn(soft: bool) -> None:
    """Ties, weights and pseudo-observations, one draw after the other."""
    rng = np.random.default_rng(4)
    score = np.round(rng.random(200), 1)
    labels = (rng.random((200, 4)) < score[:, None]).astype(np.int64)
    rows = rng.standard_exponential((200, 4))
    weights: weighting.Weighting = weighting.Drawn(labels, rows, 2, 4)
    if soft:
        p = rng.random((200, 4))
        weights = weighting.Soft(np.stack([1 - p, p], axis=1), rows)
    p = np.stack([1 - score, score], axis=1)
    found = Ranking().prepare(ScoreView(2, p)).state(weights)[:, 0, 0]
    own, total = weights.of_class(1), weights.total
    for d in range(4):
        y, w = np.repeat([1, 0], 200), np.concatenate([own[:, d], total[:, d] - own[:, d]])
        s = np.tile(score, 2)
        assert found[0, d] == pytest.approx(roc_auc_score(y, s, sample_weight=w), abs=1e-12)
        wanted = average_precision_score(y, s, sample_weight=w)
        assert found[1, d] == pytest.approx(wanted, abs=1e-12)


def test_labels_by_bisection_are_those_of_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where classes have probability 0, the last among them."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.full(9, 0.3), size=(400, 4)).transpose(0, 2, 1)
    p[:, rng.integers(9, size=3)] = 0
    p[:, -1] = 0
    p /= p.sum(axis=1, keepdims=True)
    keys = rng.integers(2**63, size=400).astype(np.uint64)
    plain = posterior.draw_labels(p, keys, np.arange(4), 5)
    monkeypatch.setattr(posterior, "_FEW_CLASSES", 2)
    np.testing.assert_array_equal(posterior.draw_labels(p, keys, np.arange(4), 5), plain)


def test_features_are_made_anew_where_memory_does_not_hold_them(
    items: fl.Predictions, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = fl.models.LearnedEnsemble(n_draws=10).infer(items, 0).marginals()
    monkeypatch.setattr(belief_mixture, "HELD_FEATURES", 0)
    anew = fl.models.LearnedEnsemble(n_draws=10).infer(items, 0).marginals()
    np.testing.assert_allclose(anew, held, atol=1e-9)


def test_of_more_classes_none_has_coefficients_of_its_own(
    items: fl.Predictions, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    monkeypatch.setattr(belief_mixture, "MOST_OFFSETS", 11)
    monkeypatch.setattr(belief_mixture, "CLASS_DRAWS", 240)
    fitted = fl.models.LearnedEnsemble().fit(items.keeping(()), rng)
    assert not fitted.draws[:, :12].any()  # type: ignore[attr-defined]
    assert fitted.diagnostics["parameter_draws"] == 20  # type: ignore[attr-defined]


@pytest.mark.slow
def test_three_hundred_classes_end_and_hold_the_truth() -> None:
    p, truth, labels = classified(2000, 310, 100, seed=4)
    estimates = fl.estimate(fl.Predictions(p, labels))
    for j, model in enumerate(estimates.models):
        row = next(r for r in estimates.rows if (r.model, r.metric) == (model, "accuracy"))
        assert row.low <= (p[:, j].argmax(axis=1) == truth).mean() <= row.high
    assert all(np.isfinite(row.value) for row in estimates.rows)
    shown = estimates.report()["profiles"][0]["distributions"]
    assert len(shown) == 30
