"""Rows of one cluster share their row weight, and intervals are as wide as that makes them."""

from __future__ import annotations

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.evaluation.evaluator import Estimand


def copies(
    each: int, n: int = 120, labels: int = 60, seed: int = 3, **more: object
) -> fl.Predictions:
    """Items of which every one is there several times, its cluster."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n)
    z = 1.2 * (2 * truth[:, None] - 1) + rng.normal(size=(n, 2))
    p, known = 1 / (1 + np.exp(-z)), np.where(np.arange(n) < labels, truth, -1)
    item = np.repeat(np.arange(n), each)
    return fl.Predictions(p[item], known[item], groups={"case": item.astype(str)}, **more)  # type: ignore[arg-type]


def widths(found: fl.Estimates) -> np.ndarray:
    return np.array([row.high - row.low for row in found.rows])


@pytest.mark.parametrize("metrics", [["accuracy", "f1"], ["roc_auc", "average_precision", "brier"]])
def test_copies_of_items_are_worth_one_item_each(metrics: list[str]) -> None:
    plain = widths(fl.estimate(copies(1), "labeled", metrics))
    apart = widths(fl.estimate(copies(8), "labeled", metrics))
    together = widths(fl.estimate(copies(8), "labeled", metrics, cluster="case"))
    assert (apart < 0.6 * plain).all()
    np.testing.assert_allclose(together, plain, rtol=0.25)


SEEDS = range(3)


def relative(method: str, metrics: list[str], each: int, cluster: str | None) -> np.ndarray:
    """Widths, classifier by metric, in units of those of the file with every item once."""
    found = [
        widths(fl.estimate(copies(each, seed=s), method, metrics, cluster=cluster))
        / widths(fl.estimate(copies(1, seed=s), method, metrics))
        for s in SEEDS
    ]
    return np.exp(np.log(found).mean(axis=0))


@pytest.mark.slow
@pytest.mark.slow_with("auto", "monotone-curves")
@pytest.mark.parametrize("method", ["auto", "monotone-curves", "bayesian-calibration"])
def test_a_fit_counts_copies_once(method: str) -> None:
    metrics = ["accuracy", "roc_auc"]
    assert (relative(method, metrics, 8, None) < 0.8).all()
    np.testing.assert_allclose(relative(method, metrics, 8, "case"), 1, atol=0.1)


@pytest.mark.slow
def test_copies_give_the_estimate_of_one_row_per_item() -> None:
    one, many = (fl.estimate(copies(e), cluster="case" if e > 1 else None) for e in (1, 20))
    for row, same in zip(one.rows, many.rows, strict=True):
        assert same.value == pytest.approx(row.value, abs=0.1 * (row.high - row.low))


def independent(rho: float, seed: int, clusters: int = 80, size: int = 5) -> fl.Predictions:
    """Clusters of rows whose labels and scores have an effect of the cluster in them."""
    rng, case = np.random.default_rng(seed), np.repeat(np.arange(clusters), size)

    def noise() -> np.ndarray:
        own = rng.normal(size=len(case))
        return np.sqrt(1 - rho) * own + np.sqrt(rho) * rng.normal(size=clusters)[case]

    truth = (noise() > 0).astype(int)
    z = 1.2 * (2 * truth[:, None] - 1) + np.stack([noise(), noise()], axis=1)
    known = np.where(case < clusters // 2, truth, -1)
    return fl.Predictions(1 / (1 + np.exp(-2 * z)), known, groups={"case": case.astype(str)})


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "labeled"])
def test_rows_that_are_independent_lose_little(method: str) -> None:
    ratios = {
        rho: [
            widths(fl.estimate(independent(rho, s), method, "accuracy", cluster="case"))
            / widths(fl.estimate(independent(rho, s), method, "accuracy"))
            for s in range(6)
        ]
        for rho in (0.0, 0.9)
    }
    assert 0.95 < np.mean(ratios[0.0]) < 1.1
    assert np.mean(ratios[0.9]) > 1.4


def test_rows_that_are_wrong_together_whichever_the_class() -> None:
    rng, case = np.random.default_rng(2), np.repeat(np.arange(40), 10)
    truth = rng.integers(2, size=400)
    for rate, low, high in (
        (np.full(40, 0.2), 0, 0.05),
        (0.2 * (np.arange(40) % 5 == 0) * 5, 0.5, 1),
    ):
        votes = np.where(rng.random(400) < rate[case], 1 - truth, truth)
        items = fl.Predictions(votes=votes[:, None], labels=truth, clusters={"case": case})
        assert low < items.correlation[0] < high


def test_what_labels_are_worth() -> None:
    items = copies(8).with_clusters("case")
    rows = np.flatnonzero(items.labeled)
    assert items.effective_size(rows) == pytest.approx(60, rel=0.05)
    assert items.information[rows].sum() == pytest.approx(60, rel=0.05)
    # Copies get one label in a draw, and rows that are independent labels of their own.
    assert len(np.unique(items.label_keys)) < 1.2 * 120
    apart = independent(0.0, 0).with_clusters("case")
    assert len(np.unique(apart.label_keys)) > 0.8 * apart.n_items
    found = fl.estimate(copies(8, labels=3), "labeled", "accuracy", cluster="case")
    few = found.rows[0]
    assert few.status == "few-labels"
    assert any("by their clusters" in said for said in found.warnings)


def test_differences_and_functions_follow() -> None:
    def share_right(y_true: np.ndarray, y_proba: np.ndarray) -> float:
        return float(((y_proba > 0.5) == y_true).mean())

    plain = fl.estimate(copies(1), "labeled", ["accuracy", share_right])
    apart = fl.estimate(copies(8), "labeled", ["accuracy", share_right])
    together = fl.estimate(copies(8), "labeled", ["accuracy", share_right], cluster="case")
    np.testing.assert_allclose(widths(together), widths(plain), rtol=0.3)
    assert (widths(apart) < 0.6 * widths(plain)).all()
    gaps = [f.difference("model0", "model1", "accuracy") for f in (plain, apart, together)]
    wide, narrow, found = (gap.high - gap.low for gap in gaps)
    assert narrow < 0.6 * wide
    assert found == pytest.approx(wide, rel=0.25)


def test_crossed_clusters_are_wider_than_either() -> None:
    rng = np.random.default_rng(5)
    case, reader = (part.ravel() for part in np.indices((30, 10)))
    right = rng.normal(size=30)[case] + rng.normal(size=10)[reader] + 0.5 * rng.normal(size=300)
    truth = rng.integers(2, size=300)
    votes = np.where(right > -0.8, truth, 1 - truth)
    groups = {"case": case.astype(str), "reader": reader.astype(str)}
    items = fl.Predictions(votes=votes[:, None], labels=truth, groups=groups)
    alone = [
        widths(fl.estimate(items, "labeled", "accuracy", cluster=name))[0]
        for name in ("case", "reader")
    ]
    both = widths(fl.estimate(items, "labeled", "accuracy", cluster=["case", "reader"]))[0]
    assert both > max(alone)


def test_order_of_rows_does_not_show() -> None:
    items = copies(3)
    order = np.random.default_rng(0).permutation(items.n_items)
    one = fl.estimate(items, metrics="accuracy", cluster="case")
    other = fl.estimate(items.take(order), metrics="accuracy", cluster="case")
    for row, same in zip(one.rows, other.rows, strict=True):
        np.testing.assert_allclose(row[3:6], same[3:6], atol=1e-9)


@pytest.mark.parametrize("method", ["autoeval", "active-testing"])
@pytest.mark.parametrize("estimand", ["population", "sample"])
def test_means_of_labels_and_proxies_follow(method: str, estimand: Estimand) -> None:
    plain = fl.estimate(copies(1), method, "accuracy", estimand=estimand)
    apart = fl.estimate(copies(8), method, "accuracy", estimand=estimand)
    together = fl.estimate(copies(8), method, "accuracy", cluster="case", estimand=estimand)
    np.testing.assert_allclose(widths(together), widths(plain), rtol=0.35)
    assert (widths(apart) < 0.6 * widths(plain)).all()
