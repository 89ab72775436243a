"""Hundreds of classes: what is measured without label weights of every class is what these say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fewlabels.evaluation.many_classes import RankBins

import fewlabels as fl
from fewlabels import posterior
from fewlabels.evaluation import many_classes
from fewlabels.evaluation.item_variance import item_variance
from fewlabels.kernels import ranking
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.methods.ensembles import belief_mixture
from fewlabels.metrics.plans import States

METRICS = ["accuracy", "f1", "specificity", "cohen_kappa", "weighted_kappa",
           "mean_absolute_error", "within_one", "matthews_corrcoef", "ece",
           "ece_quantile", "brier", "log_loss", "roc_auc", "average_precision"]  # fmt: skip
RANKINGS = {"roc_auc", "average_precision"}


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


@pytest.mark.parametrize(
    "asked",
    [
        {"by": "half"},
        {"estimand": "sample"},
        {"method": "labeled"},
        {"method": "labeled", "estimand": "sample"},
        {"method": "pseudo-label"},
        {"method": "tempered-ensemble", "confidence_level": None},
    ],
    ids=str,
)
def test_answers_are_those_of_label_weights(
    items: fl.Predictions, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but rankings to rounding; of these, bins of ranks are a small share of an interval."""

    def rows() -> list[Any]:
        return fl.estimate(items, metrics=METRICS, **asked).rows  # type: ignore[return-value]

    plain = rows()
    monkeypatch.setattr(many_classes, "MANY", 10)
    monkeypatch.setattr(posterior, "_FEW_CLASSES", 4)
    monkeypatch.setattr(many_classes, "_AT_ONCE", 2**12)
    for row, other in zip(plain, rows(), strict=True):
        assert row[:3] == other[:3]
        assert row.status == other.status
        ends, others = (np.array([r.value, r.low, r.high]) for r in (row, other))
        width = ends[2] - ends[1]
        close = 1e-9
        if row.metric in RANKINGS:
            close = 0.03 * width if width > 0 else 1e-4
        np.testing.assert_allclose(others, ends, rtol=0, atol=close, err_msg=str(row[:3]))


def test_bins_of_ranks_are_near_exact_rankings() -> None:
    """Of 3,000 items and soft labels, and where many probabilities are equal."""
    rng = np.random.default_rng(2)
    p, truth, _ = classified(3000, 5, 0)
    for given in (p[:, 0], np.round(p[:, 0], 1)):
        ranks = RankBins(given, np.ones(3000))
        hot = (truth[:, None] == np.arange(5)) * rng.standard_exponential(3000)[:, None]
        rows = hot.sum(axis=1)
        drawn = many_classes.Drawn(truth[:, None], rows[:, None], None)
        found = ranks.digest(drawn)
        for k in range(5):
            codes, size = ranking.dense_codes(given[:, k])
            own, total = (np.bincount(codes, w, minlength=size)[:, None] for w in (hot[:, k], rows))
            assert found[0, k] == pytest.approx(ranking.auc(own, total - own), abs=2e-4)
            exact = ranking.average_precision(own, total - own)
            assert found[1, k] == pytest.approx(exact, abs=2e-3)


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
    fitted = fl.models.LearnedEnsemble().fit(items, rng)
    assert not fitted.draws[:, :12].any()  # type: ignore[attr-defined]
    assert fitted.diagnostics["parameter_draws"] == 20  # type: ignore[attr-defined]


def test_an_item_tells_of_a_difference_what_label_weights_say(
    items: fl.Predictions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without weights of every class, or ranks of every item, which a thousand have no room for."""
    posterior_of = fl.models.LearnedEnsemble(n_draws=10).infer(items, 0)
    every = np.arange(items.n_items)
    names = ["f1", "ece", "roc_auc"]
    plain = item_variance(items, posterior_of, names, every)
    monkeypatch.setattr(many_classes, "MANY", 10)
    monkeypatch.setattr(many_classes, "_AT_ONCE", 2**12)
    monkeypatch.delattr(States, "add")
    found = item_variance(items, posterior_of, names, every)
    for name in names:
        close = 0.05 if name in RANKINGS else 1e-9
        np.testing.assert_allclose(found[name], plain[name], rtol=close, err_msg=name)


@pytest.mark.slow
def test_three_hundred_classes_end_and_hold_the_truth() -> None:
    p, truth, labels = classified(2000, 310, 100, seed=4)
    estimates = fl.estimate(fl.Predictions(p, labels))
    for j, model in enumerate(estimates.models):
        row = next(r for r in estimates.rows if (r.model, r.metric) == (model, "accuracy"))
        assert row.low <= (p[:, j].argmax(axis=1) == truth).mean() <= row.high
    assert all(np.isfinite(row.value) for row in estimates.rows)
    shown = estimates.details["profiles"][0]["distributions"]  # type: ignore[index]
    assert len(shown) == 30
