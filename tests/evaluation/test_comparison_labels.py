"""How many more labels would settle it: closed forms, and a simulation of labeling on."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import fewlabels as fl
from fewlabels.comparison.compare import LabelsNeeded, labels_needed
from fewlabels.evaluation.differences import comparison
from fewlabels.evaluation.item_variance import item_variance
from fewlabels.kernels.interval_draws import Interval
from fewlabels.posterior import Fixed, LabelPosterior

Z = stats.norm.ppf(0.975)


def needed(gap: float, sd: float, v: float | None, n: int, **more: int) -> LabelsNeeded:
    return labels_needed(
        Interval(gap, gap - Z * sd, gap + Z * sd), sd, v, level=0.95, n_labeled=n, **more
    )


@pytest.mark.parametrize("gap", [0.0, 0.3, 1.0, -1.8])
@pytest.mark.parametrize(("n", "worth"), [(50, 50), (50, 200)])
def test_with_as_many_labels_half_of_the_futures_are_settled(
    gap: float, n: int, worth: int
) -> None:
    """A normal model played forward: truth from the posterior, labels from the truth."""
    v = 0.1
    s = math.sqrt(v / worth)
    gap *= s
    found = needed(gap, s, v, n)
    assert found.status == "open"
    rng, size = np.random.default_rng(0), 40_000
    truth = rng.normal(gap, s, size)
    for m, chance in ((found.more, 0.5), (found.high, 2 / 3)):
        assert m is not None
        mean = rng.normal(truth, math.sqrt(v / m))
        posterior = (worth * gap + m * mean) / (worth + m)
        settled = np.abs(posterior) > Z * math.sqrt(v / (worth + m))
        # A label more or less: a little either way where few are needed.
        assert settled.mean() == pytest.approx(chance, abs=0.015)
    assert found.low == pytest.approx((found.more or 0) * n / worth, abs=1)


def test_no_gap_at_all_has_a_closed_form() -> None:
    """r = (z / Phi^-1(3/4))^2: an even chance that the gap is not 0 after all."""
    found = needed(1e-9, 0.05, 0.25, 100)
    ratio = (Z / stats.norm.ppf(0.75)) ** 2
    assert found.more == pytest.approx(100 * ratio, abs=1)


def test_what_is_settled_tied_or_unknown() -> None:
    assert needed(0.1, 0.01, 0.2, 50) == LabelsNeeded("settled", 0, 0, 0)
    assert needed(0.0, 0.0, 0.0, 50) == LabelsNeeded("tied")
    assert needed(math.nan, 0.1, 0.2, 50).status == "unknown"
    assert needed(0.1, 0.1, None, 0).status == "unknown"
    # Without labels the variance of an item says it, and there is no proportion to go by.
    bare = needed(0.05, 0.1, 0.2, 0)
    assert bare.status == "open"
    assert bare.low == bare.more
    # Of a metric without such a variance, the posterior itself does.
    assert needed(0.05, 0.05, None, 100) == needed(0.05, 0.05, 0.25, 100)
    # Where these very items count, there are no more than there are.
    assert needed(0.001, 0.05, 0.2, 10, n_unlabeled=30) == LabelsNeeded("open", 30, 30, 30)


def known(p: np.ndarray, truth: np.ndarray) -> tuple[fl.Predictions, LabelPosterior]:
    predictions = fl.Predictions(p, truth)
    posterior = LabelPosterior(
        np.eye(2)[truth], Fixed(np.eye(2)[truth]), predictions.keys, value_from="marginals"
    )
    return predictions, posterior


def scores(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.35).astype(int)
    shared = rng.standard_normal((n, 1))
    logit = (2 * truth - 1)[:, None] * [1.3, 0.9, 0.5] + shared + rng.standard_normal((n, 3))
    return 1 / (1 + np.exp(-logit)), truth


def test_variance_of_means_is_that_of_the_paired_losses() -> None:
    p, truth = scores(400, 0)
    predictions, posterior = known(p, truth)
    rows = np.arange(400)
    right = (p > 0.5) == truth[:, None]
    brier = (p - truth[:, None]) ** 2
    for metric, loss in (("accuracy", right.astype(float)), ("brier", brier)):
        found = item_variance(predictions, posterior, [metric], rows)[metric]
        assert found is not None
        for a, b in ((0, 1), (0, 2), (1, 2)):
            assert found[a, b] == pytest.approx(np.var(loss[:, a] - loss[:, b]))
    assert item_variance(predictions, posterior, ["my own"], rows) == {}


def test_variance_of_an_area_is_delongs() -> None:
    p, truth = scores(1500, 1)
    found = item_variance(*known(p, truth), ["roc_auc"], np.arange(1500))["roc_auc"]
    assert found is not None
    above = [(s[truth == 1][:, None] > s[truth == 0]).astype(float) for s in p.T]
    for a, b in ((0, 1), (0, 2), (1, 2)):
        gap = above[a] - above[b]
        delong = gap.mean(axis=1).var() / truth.sum() + gap.mean(axis=0).var() / (1 - truth).sum()
        # 40 draws of a squared normal: a relative error of sqrt(2 / 40).
        assert found[a, b] == pytest.approx(1500 * delong, rel=0.5)


@pytest.mark.slow
def test_as_many_labels_as_projected_settle_it_in_half_of_the_studies() -> None:
    """Projected from the 60 labels of a pilot; the true number by labeling on, labels alone."""
    rng = np.random.default_rng(2)
    big_p, big_truth = scores(200_000, 3)
    right = ((big_p > 0.5) == big_truth[:, None]).astype(float)
    gap = right[:, 0] - right[:, 1]

    def settled(n: int) -> float:
        drawn = gap[rng.integers(len(gap), size=(2000, n))]
        return float((drawn.mean(axis=1) > Z * drawn.std(axis=1) / np.sqrt(n)).mean())

    low, high = 20, 5000
    while high - low > 10:
        middle = (low + high) // 2
        low, high = (middle, high) if settled(middle) < 0.5 else (low, middle)

    projections = []
    for seed in range(60):
        p, truth = scores(60, 100 + seed)
        pair = comparison(fl.estimate(fl.Predictions(p[:, :2], truth, models=["a", "b"]), "labeled",
                           "accuracy"), "accuracy").pair("a", "b")  # fmt: skip
        assert pair.labels.more is not None
        projections.append(60 + pair.labels.more)
    assert high / 2 < np.median(projections) < 2 * high


@pytest.mark.parametrize("metric", ["accuracy", "roc_auc"])
def test_two_of_one_posterior_are_judged_by_it(metric: str) -> None:
    p, truth = scores(300, 3)
    predictions, own = known(p, truth)
    shared = np.full((300, 2), 0.5)
    everyone = LabelPosterior(shared, Fixed(shared), predictions.keys, value_from="marginals")
    rows = np.arange(300)
    alone = item_variance(predictions, own, [metric], rows)[metric]
    joint = item_variance(predictions, everyone, [metric], rows)[metric]
    mixed = replace(everyone, per_model=(own, None, own))
    found = item_variance(predictions, mixed, [metric], rows)[metric]
    assert alone is not None
    assert joint is not None
    assert found is not None
    assert found[0, 2] == found[2, 0] == pytest.approx(alone[0, 2])
    assert found[0, 1] == pytest.approx(joint[0, 1])
    assert found[1, 2] == pytest.approx(joint[1, 2])
