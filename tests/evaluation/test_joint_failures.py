"""Joint errors against plain counting, over drawn labels, and where something is missing."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.errors import UsageError
from fewlabels.evaluation.differences import errors_together
from fewlabels.posterior import draw_labels


def votes_of(n: int, m: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n)
    hard = np.where(rng.random((n, 1)) < 0.3, rng.integers(k, size=(n, 1)), truth[:, None])
    own = rng.random((n, m)) < 0.25
    return np.where(own, rng.integers(k, size=(n, m)), hard), truth


def naive(votes: np.ndarray, truth: np.ndarray, k: int) -> dict[str, Any]:
    """Rates by counting, for items with all votes."""
    wrong = votes != truth[:, None]
    counts = np.stack([(votes == c).sum(axis=1) for c in range(k)], axis=1)
    most = counts == counts.max(axis=1, keepdims=True)
    share = most / most.sum(axis=1, keepdims=True)
    return {
        "all_wrong": wrong.all(axis=1).mean(),
        "oracle": (~wrong).any(axis=1).mean(),
        "majority": share[np.arange(len(truth)), truth].mean(),
        "best_single": (~wrong).mean(axis=0).max(),
    }


@pytest.mark.parametrize("k", [2, 4])
def test_with_all_labels_known_rates_are_counts(k: int) -> None:
    votes, truth = votes_of(300, 4, k)
    found = errors_together(fl.estimate(
        fl.Predictions(votes=votes, labels=truth, classes=range(k)), "labeled", "accuracy",
        estimand="sample",
    ))  # fmt: skip
    for name, expected in naive(votes, truth, k).items():
        assert getattr(found, name).value == pytest.approx(expected, abs=1e-12), name
    wrong = votes != truth[:, None]
    correlation = np.corrcoef(wrong.T.astype(float))
    for pair in found.pairs:
        a, b = (found.models.index(model) for model in (pair.a, pair.b))
        both = (wrong[:, a] & wrong[:, b]).mean()
        same = (wrong[:, a] & (votes[:, a] == votes[:, b])).mean()
        assert pair.both_wrong.value == pytest.approx(both, abs=1e-12)
        assert pair.same_wrong.value == pytest.approx(same, abs=1e-12)
        assert pair.disagreement.value == pytest.approx((votes[:, a] != votes[:, b]).mean())
        assert pair.correlation.value == pytest.approx(correlation[a, b])
        independent = wrong[:, a].mean() * wrong[:, b].mean()
        assert pair.excess.value == pytest.approx(both / independent)
    mean = correlation[np.triu_indices(4, 1)].mean()
    assert found.effective_voters.value == pytest.approx(4 / (1 + 3 * mean))


def predictions(n: int = 300, k: int = 2, labeled: int = 40, seed: int = 1, m: int = 3) -> Any:
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n)
    shared = rng.standard_normal((n, 1, k))
    logit = 1.5 * np.eye(k)[truth][:, None] + shared + rng.standard_normal((n, m, k))
    p = np.exp(logit) / np.exp(logit).sum(axis=2, keepdims=True)
    labels = np.where(np.arange(n) < labeled, truth, -1)
    names = [f"m{j}" for j in range(m)]
    return fl.Predictions(p, labels, models=names, groups={"g": np.array(list("xyz"))[truth % 2]})


@pytest.mark.parametrize("k", [2, 3])
def test_the_value_is_the_mean_over_drawn_labels(k: int) -> None:
    given = predictions(k=k)
    estimates = fl.estimate(given, "ssme-kde", "accuracy", estimand="sample")
    found = errors_together(estimates)
    labels = draw_labels(estimates.posterior.marginals(), given.keys, np.arange(4000), 7)
    wrong = given.hard[:, :, None] != labels[:, None, :]
    drawn = wrong.all(axis=1).mean(axis=0)
    assert found.all_wrong.value == pytest.approx(drawn.mean(), abs=4 * drawn.std() / np.sqrt(4000))
    both = (wrong[:, 0] & wrong[:, 1]).mean(axis=0)
    assert found.pair("m1", "m0").both_wrong.value == pytest.approx(
        both.mean(), abs=4 * both.std() / np.sqrt(4000)
    )


@pytest.mark.product
@pytest.mark.parametrize("method", ["tempered-ensemble", "labeled", "ssme-kde", "dawid-skene"])
@pytest.mark.parametrize("estimand", ["population", "sample"])
def test_rates_keep_their_bounds_and_agree_with_accuracy(method: str, estimand: Any) -> None:
    estimates = fl.estimate(predictions(), method, "accuracy", by="g", estimand=estimand)
    for group in (None, "g=x"):
        found = errors_together(estimates, group)
        for rate in (found.all_wrong, found.oracle, found.majority, found.best_single):
            assert 0 <= rate.low <= rate.value <= rate.high <= 1
        assert found.oracle.value == pytest.approx(1 - found.all_wrong.value)
        assert found.best_single.value <= found.oracle.value
        for pair in found.pairs:
            assert pair.same_wrong == pytest.approx(pair.both_wrong)  # of two classes
            assert pair.both_wrong.value >= found.all_wrong.value - 1e-12
        if method != "dawid-skene":  # its accuracy is that of its rates, not of its labels
            assert found.best_model is not None
            row = estimates.get(found.best_model, "accuracy", group)
            assert found.best_single.value == pytest.approx(row.value, abs=1e-9)
        assert json.dumps(found.to_dict())


def test_the_order_of_the_classifiers_does_not_matter() -> None:
    given = predictions()
    there = errors_together(fl.estimate(given, "labeled", "accuracy"))
    order = ["m2", "m0", "m1"]
    back = errors_together(fl.estimate(given.select_models(order), "labeled", "accuracy"))
    # Draws belong to what an item's classifiers say, in their order; values do not.
    assert back.all_wrong.value == pytest.approx(there.all_wrong.value)
    for a, b in (("m0", "m2"), ("m1", "m0")):
        here, elsewhere = there.pair(a, b), back.pair(a, b)
        assert elsewhere.correlation.value == pytest.approx(here.correlation.value)
        assert elsewhere.excess.value == pytest.approx(here.excess.value)


def test_missing_votes_leave_the_items_that_pairs_share() -> None:
    votes, truth = votes_of(400, 3, 3, seed=2)
    votes[:150, 0] = -1
    votes[350:, 2] = -1
    found = errors_together(fl.estimate(
        fl.Predictions(votes=votes, labels=truth, classes=range(3)), "labeled", "accuracy",
        estimand="sample",
    ))  # fmt: skip
    assert found.n_items == 200
    part = slice(150, 350)
    assert found.all_wrong.value == pytest.approx(
        (votes[part] != truth[part, None]).all(axis=1).mean()
    )
    for pair in found.pairs:
        a, b = (found.models.index(model) for model in (pair.a, pair.b))
        both = (votes[:, [a, b]] >= 0).all(axis=1)
        wrong = votes[both] != truth[both, None]
        assert pair.both_wrong.value == pytest.approx((wrong[:, a] & wrong[:, b]).mean())
        assert pair.correlation.value == pytest.approx(
            np.corrcoef(wrong[:, a].astype(float), wrong[:, b])[0, 1]
        )


def test_no_item_has_all_votes() -> None:
    votes, truth = votes_of(200, 3, 2, seed=3)
    votes[np.arange(200), np.arange(200) % 3] = -1
    found = errors_together(
        fl.estimate(fl.Predictions(votes=votes, labels=truth), "labeled", "accuracy")
    )
    assert found.n_items == 0
    assert np.isnan(found.all_wrong.value)
    assert found.best_model is None
    assert all(0 <= pair.both_wrong.value <= 1 for pair in found.pairs)


def test_copies_fail_together_and_one_that_never_errs_has_no_correlation() -> None:
    truth = np.arange(200) % 2
    vote = np.where(np.arange(200) % 5 == 0, 1 - truth, truth)
    found = errors_together(fl.estimate(
        fl.Predictions(votes=np.column_stack([vote, vote, truth]), labels=truth,
                       models=["a", "copy", "right"]),
        "labeled", "accuracy", estimand="sample",
    ))  # fmt: skip
    assert found.pair("a", "copy").correlation.value == pytest.approx(1)
    assert found.pair("a", "copy").disagreement.value == 0
    assert np.isnan(found.pair("a", "right").correlation.value)
    assert np.isnan(found.pair("a", "right").excess.value)
    assert (found.all_wrong.value, found.oracle.value) == (0, 1)


@pytest.mark.slow
def test_intervals_of_labels_alone_hold_the_truth() -> None:
    """Of 50 labels of a large population, at 90%."""
    votes, truth = votes_of(20_000, 3, 2, seed=4)
    wrong = votes != truth[:, None]
    both = (wrong[:, 0] & wrong[:, 1]).mean()
    rng, runs, hits = np.random.default_rng(5), 40, 0
    for _ in range(runs):
        rows = rng.choice(20_000, 50, replace=False)
        found = errors_together(fl.estimate(
            fl.Predictions(votes=votes[rows], labels=truth[rows], models=list("abc")),
            "labeled", "accuracy", confidence_level=0.9,
        ))  # fmt: skip
        rate = found.pair("a", "b").both_wrong
        hits += rate.low <= both <= rate.high
    assert hits / runs >= 0.9 - 2.5 * np.sqrt(0.09 / runs)


def test_weights_count() -> None:
    votes, truth = votes_of(100, 2, 2, seed=6)
    weight = np.where(np.arange(100) < 50, 3.0, 1.0)
    found = errors_together(fl.estimate(
        fl.Predictions(votes=votes, labels=truth, weight=weight), "labeled", "accuracy",
        estimand="sample",
    ))  # fmt: skip
    wrong = (votes != truth[:, None]).all(axis=1)
    assert found.all_wrong.value == pytest.approx(np.average(wrong, weights=weight))


def test_workers_do_not_matter() -> None:
    given = predictions()
    one = errors_together(fl.estimate(given, metrics="accuracy", workers=1))
    estimates = fl.estimate(given, metrics="accuracy", workers=2)
    assert errors_together(estimates) == one


def test_without_a_confidence_level_there_are_no_intervals() -> None:
    found = errors_together(fl.estimate(predictions(), metrics="accuracy", confidence_level=None))
    assert np.isfinite(found.all_wrong.value)
    assert np.isnan(found.all_wrong.low)


def test_refusals() -> None:
    given = predictions()
    with pytest.raises(UsageError, match="'autoeval' estimates one mean at a time"):
        errors_together(fl.estimate(given, "autoeval", "accuracy"))
    with pytest.raises(UsageError, match="two classifiers at least"):
        errors_together(fl.estimate(given.select_models(["m0"]), "labeled", "accuracy"))
    estimates = fl.estimate(given, "labeled", "accuracy", by="g")
    with pytest.raises(UsageError, match="unknown group 'g=nobody'"):
        errors_together(estimates, "g=nobody")
    with pytest.raises(UsageError, match="no pair"):
        errors_together(estimates).pair("m0", "m0")


@pytest.mark.product
@pytest.mark.parametrize("method", ["agreement-ensemble", "monotone-curves"])
@pytest.mark.parametrize("estimand", ["population", "sample"])
def test_the_best_single_is_the_row_of_its_accuracy(method: str, estimand: Any) -> None:
    """Stretched as the metrics are, and judged by the classifier's own posterior."""
    estimates = fl.estimate(predictions(n=150), method, "accuracy", by="g", estimand=estimand)
    own = bool(estimates.posterior.per_model)
    assert own == (method == "monotone-curves")
    for group in (None, "g=x"):
        found = errors_together(estimates, group)
        rows = [estimates.get(model, "accuracy", group) for model in found.models]
        best = max(rows, key=lambda row: row.value)
        assert found.best_model == best.model
        assert found.best_single == pytest.approx((best.value, best.low, best.high), abs=1e-9)
        assert len(found.warnings) == own
        assert found.oracle.low == pytest.approx(1 - found.all_wrong.high)


def test_a_sample_of_known_labels_does_not_vary() -> None:
    given = predictions(n=30, labeled=30)
    found = errors_together(fl.estimate(given, "learned-ensemble", "accuracy", estimand="sample"))
    for rate in (found.all_wrong, found.best_single, found.effective_voters):
        assert rate.low == rate.value == rate.high


@pytest.mark.parametrize("m", [2, 3, 7])
def test_copies_are_one_voter_at_most(m: int) -> None:
    given = predictions(n=100, m=1)
    copies = fl.Predictions(np.repeat(given.probabilities, m, axis=1), given.labels)
    for method in ("labeled", "tempered-ensemble"):
        voters = errors_together(fl.estimate(copies, method, "accuracy")).effective_voters
        assert voters == pytest.approx((1, 1, 1))
        assert 1 <= voters.low <= voters.value <= voters.high <= m
        assert voters.high == 1


def test_of_some_classifiers_is_what_they_do_alone() -> None:
    given = predictions()
    estimates = fl.estimate(given, "labeled", "accuracy")
    some = errors_together(estimates, models=["m2", "m0"])
    alone = errors_together(fl.estimate(given.select_models(["m0", "m2"]), "labeled", "accuracy"))
    assert some.models == ("m0", "m2")
    assert some.all_wrong.value == pytest.approx(alone.all_wrong.value)
    everyone = errors_together(estimates).pair("m0", "m2").both_wrong
    assert some.pair("m0", "m2").both_wrong == pytest.approx(everyone)
    with pytest.raises(UsageError, match="unknown model 'nobody'"):
        errors_together(estimates, models=["m0", "nobody"])
