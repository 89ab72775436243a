"""Agreement rates: exact cases, what the optimisation solves, and what is particular to it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse

import fewlabels as fl
from fewlabels.kernels.votes import in_triangle
from fewlabels.methods.votes.agreement_rates import (
    Agreement,
    AgreementRates,
    agreement,
    agreement_rates,
    closed_form,
    nearest_to_independence,
    rank_one,
    subsets,
)


def world(
    errors: tuple[float, ...], n: int = 2000, missing: float = 0.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Votes (n, M) of classifiers that err independently of each other, and the truth."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.3).astype(int)
    wrong = rng.random((n, len(errors))) < errors
    votes = np.where(wrong, 1 - truth[:, None], truth[:, None])
    votes[rng.random(votes.shape) < missing] = -1
    return votes, truth


def exact_pairs(errors: list[float]) -> Agreement:
    """What independent classifiers of these error rates agree on, items without number."""
    u = 1 - 2 * np.array(errors)
    overlap = 1.0 - np.eye(len(u))
    return Agreement(np.outer(u, u) * overlap, overlap)


@pytest.mark.parametrize(
    "errors", [[0.1, 0.2, 0.3], [0.1, 0.2, 0.3, 0.4, 0.05], [0.1, 0.2, 0.7, 0.3, 0.9, 0.1]]
)
def test_error_rates_in_closed_form(errors):
    """Those worse than a guess are told by their disagreement with the others."""
    pairs = exact_pairs(errors)
    np.testing.assert_allclose(closed_form(pairs).error, errors, atol=1e-12)
    np.testing.assert_allclose(rank_one(pairs, closed_form(pairs).error), errors, atol=1e-6)


def test_triples_of_classifiers_that_meet_no_others():
    """Two groups of three; and one more who meets a single classifier of the first."""
    errors = [0.1, 0.2, 0.3, 0.15, 0.25, 0.35, 0.4]
    pairs = exact_pairs(errors)
    overlap = np.zeros((7, 7))
    for group in ([0, 1, 2], [3, 4, 5], [0, 6]):
        overlap[np.ix_(group, group)] = 1
    np.fill_diagonal(overlap, 0)
    found = closed_form(Agreement(pairs.c * overlap, overlap))
    np.testing.assert_allclose(found.error, errors, atol=1e-12)
    assert found.identified.tolist() == [True] * 6 + [False]


def test_agreement_of_pairs_is_over_items_that_both_vote_on():
    votes = np.array([[1, 1, -1], [0, 1, 0], [1, -1, 1], [0, 0, 1]])
    sign = scipy.sparse.csr_matrix(np.where(votes < 0, 0, 2 * votes - 1).astype(float))
    found = agreement(sign, abs(sign), np.array([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_allclose(found.overlap, [[0, 7, 9], [7, 0, 6], [9, 6, 0]])
    expected = [[0, 3 / 7, 1 / 9], [3 / 7, 0, -1.0], [1 / 9, -1.0, 0]]
    np.testing.assert_allclose(found.c, expected)


def test_agreement_rates_of_all_joint_errors():
    """Inclusion and exclusion, against counting who errs with whom."""
    votes, truth = world((0.2, 0.3, 0.35, 0.25), n=500)
    rates = agreement_rates(votes, np.ones(500), 4)
    wrong = votes != truth[:, None]
    joint = np.array([wrong[:, a].all(axis=1).mean() for a in subsets(4, 4)])
    place = {a: s for s, a in enumerate(subsets(4, 4))}
    even = [a for a in subsets(4, 4) if len(a) % 2 == 0]
    for a, rate in zip(even, rates, strict=True):
        smaller = [(size, b) for size in range(1, len(a)) for b in combinations(a, size)]
        none = 1 + sum((-1) ** size * joint[place[b]] for size, b in smaller) + joint[place[a]]
        assert rate == pytest.approx(none + joint[place[a]])


def test_the_optimisation_keeps_its_constraints():
    votes, _ = world((0.2, 0.3, 0.35, 0.25), n=500)
    rates = agreement_rates(votes, np.ones(500), 4)
    found = nearest_to_independence(rates, 4, 4)
    assert found.converged
    value = dict(zip(subsets(4, 4), found.values, strict=True))
    for a, e in value.items():
        assert -1e-9 <= e <= 0.5 + 1e-9
        for i in range(len(a) if len(a) > 1 else 0):
            assert e <= value[a[:i] + a[i + 1 :]] + 1e-9
    pair = next(a for a in value if len(a) == 2)
    agree = 2 * value[pair] + 1 - value[pair[:1]] - value[pair[1:]]
    assert agree == pytest.approx(rates[0], abs=1e-6)


def test_pairs_are_a_matrix_of_rank_one():
    """The optimisation of order 2 is least squares on the agreement matrix."""
    votes, _ = world((0.2, 0.3, 0.35, 0.25, 0.1), n=800)
    sign = scipy.sparse.csr_matrix(2.0 * votes - 1)
    pairs = agreement(sign, abs(sign), np.ones(800))
    joint = nearest_to_independence(agreement_rates(votes, np.ones(800), 2), 5, 2).values[:5]
    np.testing.assert_allclose(rank_one(pairs, closed_form(pairs).error), joint, atol=2e-4)


@pytest.mark.parametrize("solver", ["optimisation", "closed-form"])
@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("size", [3, 5, 8, 12])
def test_finds_the_error_rates(solver, missing, size):
    errors = tuple(np.linspace(0.05, 0.4, size))
    votes, _ = world(errors, n=20_000, missing=missing)
    posterior = AgreementRates(solver=solver).infer(fl.Predictions(votes=votes), 0)
    found = list(posterior.diagnostics["error_rate"].values())
    np.testing.assert_allclose(found, errors, atol=0.035 if size == 3 else 0.02)
    assert posterior.status == "assumption"


def test_labels_are_weighted_votes():
    votes, _ = world((0.1, 0.2, 0.3), n=1000)
    posterior = AgreementRates().infer(fl.Predictions(votes=votes), 0)
    right = 1 - np.array(list(posterior.diagnostics["error_rate"].values()))
    np.testing.assert_allclose(posterior.marginals()[:, 1], votes @ right / right.sum())


def test_the_population_rates_are_the_error_rates_that_were_found():
    votes, _ = world((0.1, 0.2, 0.3), n=3000, seed=1)
    posterior = AgreementRates().infer(fl.Predictions(votes=votes), 0)
    rates = posterior.vote_rates
    found = np.array(list(posterior.diagnostics["error_rate"].values()))
    np.testing.assert_allclose(rates.error_rates[:, 0].mean(axis=0), found, atol=1e-9)
    low, high = np.quantile(rates.error_rates[:, 0], [0.025, 0.975], axis=0)
    assert ((low < [0.1, 0.2, 0.3]) & (high > [0.1, 0.2, 0.3]) & (high - low < 0.1)).all()
    every = np.arange(3000)
    assert rates.covers(every, 0)
    assert not rates.covers(every[:50], 0)
    joint = rates.joint(every, 2).mean(axis=2)
    assert 1 - np.trace(joint) == pytest.approx(found[2], abs=1e-9)


def test_estimates_are_the_error_rates_that_were_found():
    votes, _ = world((0.1, 0.2, 0.3), n=1000)
    estimates = fl.estimate(fl.Predictions(votes=votes), "agreement-rates", "error_rate")
    found = estimates.posterior.diagnostics["error_rate"]
    for row in estimates.rows:
        assert row.value == pytest.approx(found[row.model], abs=1e-3)
        assert row.low < row.value < row.high


@pytest.mark.slow
def test_refits_spread_like_fresh_samples():
    def rates(seed, replicates=2):
        votes, _ = world((0.1, 0.2, 0.3), n=500, seed=seed)
        model = AgreementRates(replicates=replicates)
        return model.fit(fl.Predictions(votes=votes), np.random.default_rng(0))

    fresh = np.stack([rates(seed).result.error[0] for seed in range(100)], axis=1).std(axis=1)
    boot = rates(0, 200).refits[0].std(axis=1)
    np.testing.assert_allclose(boot, fresh, rtol=0.3)


def test_domains_by_themselves_are_fits_of_each():
    parts = [world((0.1, 0.2, 0.3), n=300, seed=seed)[0] for seed in range(2)]
    whole = fl.Predictions(votes=np.concatenate(parts), domain=np.repeat(["x", "y"], 300))
    fitted = AgreementRates(by_domain=True).fit(whole, np.random.default_rng(0))
    posterior = fitted.posterior(whole)
    for d, (name, votes) in enumerate(zip("xy", parts, strict=True)):
        alone = AgreementRates().infer(fl.Predictions(votes=votes), 0)
        found = posterior.diagnostics["error_rate"][name]
        assert found == pytest.approx(alone.diagnostics["error_rate"], abs=1e-9)
        rows = slice(300 * d, 300 * d + 300)
        np.testing.assert_allclose(posterior.marginals()[rows], alone.marginals(), atol=1e-9)


def test_repeated_votes_count_as_their_mean():
    votes = np.array([[1, 1, 1], [0, 0, 1], [1, 1, 0], [0, 0, 0]])
    once = AgreementRates(solver="closed-form").fit(
        fl.Predictions(votes=votes, repeated_votes=[(0, 0, 0), (1, 1, 0)]), np.random.default_rng(0)
    )
    rows = once.items.of_item
    assert once.signs.toarray()[rows][0].tolist() == [0, 1, 1]
    assert once.signs.toarray()[rows][1].tolist() == [-1, -1, 1]
    assert once.voted.toarray().min() == 1


def test_known_labels_do_not_change_the_error_rates():
    votes, truth = world((0.1, 0.2, 0.3), n=400)
    free = AgreementRates().infer(fl.Predictions(votes=votes), 0)
    told = AgreementRates().infer(fl.Predictions(votes=votes, labels=truth), 0)
    assert told.diagnostics["error_rate"] == pytest.approx(free.diagnostics["error_rate"], abs=1e-9)
    assert (told.marginals().argmax(axis=1) == truth).all()


def test_two_classifiers_are_taken_to_be_equally_good():
    votes, truth = world((0.2, 0.2), n=4000)
    labels = np.where(np.arange(4000) < 10, truth, -1)
    posterior = AgreementRates().infer(fl.Predictions(votes=votes, labels=labels), 0)
    first, second = posterior.diagnostics["error_rate"].values()
    assert first == second == pytest.approx(0.2, abs=0.02)
    assert any("no three classifiers vote on the same items" in w for w in posterior.warnings)


def test_worse_than_chance_is_said():
    votes, _ = world((0.1, 0.2, 0.15, 0.8))
    posterior = AgreementRates(solver="closed-form").infer(fl.Predictions(votes=votes), 0)
    assert posterior.diagnostics["error_rate"]["model3"] == pytest.approx(0.8, abs=0.05)
    assert any(w.startswith("assumption: model3: agreement") for w in posterior.warnings)


def test_agreement_that_no_error_rates_explain_is_clipped_and_said():
    """Each two of three disagree more often than not."""
    votes = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]] * 20)
    posterior = AgreementRates(solver="closed-form").infer(fl.Predictions(votes=votes), 0)
    assert any("no error rate explains the agreement" in w for w in posterior.warnings)
    assert np.isfinite(list(posterior.diagnostics["error_rate"].values())).all()
    other = AgreementRates().infer(fl.Predictions(votes=votes), 0)
    assert other.status in ("assumption", "not-converged")


@pytest.mark.slow
def test_a_classifier_that_meets_nobody_has_no_rate():
    votes, _ = world((0.1, 0.2, 0.3, 0.2), n=900)
    votes[:300, 3] = -1
    votes[300:600, 3] = -1
    votes[600:, :3] = -1
    for solver in ("optimisation", "closed-form"):
        posterior = AgreementRates(solver=solver).infer(fl.Predictions(votes=votes), 0)
        assert np.isnan(posterior.diagnostics["error_rate"]["model3"])
        np.testing.assert_array_equal(posterior.marginals()[600:, 1], votes[600:, 3])
        assert not posterior.vote_rates.covers(np.arange(600, 900), 3)


def test_larger_subsets_that_are_left_out_are_said():
    votes, _ = world((0.2,) * 9, n=500)
    posterior = AgreementRates().infer(fl.Predictions(votes=votes), 0)
    assert posterior.diagnostics["subset_size"] == 2
    assert any(w.startswith("assumption: subsets of two classifiers only") for w in
               posterior.warnings)  # fmt: skip


def test_two_classes_only():
    with pytest.raises(fl.InputError, match="'agreement-rates' is for two classes, and these"):
        AgreementRates().infer(fl.Predictions(votes=[[0, 1, 2]]), 0)


def test_in_triangle_is_the_loop_over_triples():
    rng = np.random.default_rng(0)
    for size in (4, 7, 12):
        votes = np.where(rng.random((6, size)) < 0.25, rng.integers(2, size=(6, size)), -1)
        meet = np.array([[((votes[:, [i, j]] >= 0).all(axis=1)).any() for j in range(size)]
                         for i in range(size)])  # fmt: skip
        expected = np.zeros(size, dtype=bool)
        for i, j, k in combinations(range(size), 3):
            if meet[i, j] and meet[i, k] and meet[j, k]:
                expected[[i, j, k]] = True
        counts = fl.Predictions(votes=votes, classes=[0, 1]).vote_counts
        np.testing.assert_array_equal(in_triangle(counts, 2), expected)


def test_items_that_weigh_nothing_are_not_missed():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=80)
    votes = np.where(rng.random((80, 4)) < 0.2, 1 - truth[:, None], truth[:, None])
    predictions = fl.Predictions(votes=votes, weight=np.arange(80) >= 5)
    rates = AgreementRates().infer(predictions, 0).vote_rates
    assert rates.covers(np.arange(5, 80), 0)
    assert not rates.covers(np.arange(6, 80), 0)
