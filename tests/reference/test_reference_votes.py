"""The models of votes against exact sums, per-item samplers and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference_votes_naive import (
    KINDS,
    Prior,
    dirichlet,
    draw_grouping,
    gibbs,
    groupings,
    log_votes,
    vote_counts,
)
from reference_votes_worlds import (
    NAMES,
    VoteWorld,
    agree,
    agreement_errors,
    batch_error,
    dawid_skene,
    exact,
    infer,
    label_draws,
    model,
    prior_world,
    symmetric_world,
    together,
    world_of,
)
from scipy.stats import beta, kstest

import fewlabels as fl


def matches(posterior, wanted, prior: Prior) -> None:
    """Everything the exact sum says of a world."""
    rates = posterior.vote_rates
    agree(rates.error_rates, wanted.error)
    if wanted.error_sd is not None:
        square = wanted.error_sd**2 + wanted.error**2
        agree(rates.error_rates**2, square)
    agree(rates.shares, wanted.shares)
    confusion = np.exp(log_votes(wanted.theta, prior))
    agree(rates.confusion, confusion)
    agree(together(rates), wanted.together)
    draws = label_draws(posterior)
    agree(draws, wanted.marginals)
    error = batch_error(draws) + 1e-4
    assert (np.abs(posterior.marginals() - wanted.marginals) < 5 * error).all()


# Every kind in the slow suite: of each way to share, and of either rate, one is quick.
KINDS_OF_RATES = [
    pytest.param(*each, marks=[] if each in {(False, "bee"), (True, "cbee"), (False, "hcbee")}
                 else pytest.mark.slow)
    for each in NAMES
]  # fmt: skip


# the oracle itself


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cells", [(1, 3), (2, 2), (3, 2)])
def test_the_oracle_knows_every_grouping(kind, cells):
    """Probabilities sum to 1, and what is drawn is what is enumerated."""
    prior, rng = Prior(kind, alpha=0.7, gamma=1.6), np.random.default_rng(1)
    wanted = {key: math.exp(log_p) for key, log_p in groupings(prior, *cells).items()}
    assert sum(wanted.values()) == pytest.approx(1, abs=1e-12)
    seen = dict.fromkeys(wanted, 0)
    for _ in range(600):
        names: dict[int, int] = {}
        drawn = draw_grouping(prior, *cells, rng).ravel().tolist()
        seen[tuple(names.setdefault(g, len(names)) for g in drawn)] += 1
    for key, p in wanted.items():
        assert abs(seen[key] - 600 * p) < 5 * math.sqrt(600 * p * (1 - p)) + 1e-9


@pytest.mark.parametrize(("kind", "confusion"), [("bee", True), ("cbee", False), ("hcbee", False)])
def test_the_oracles_sampler_and_sum_agree(kind, confusion):
    prior = Prior(kind, confusion, alpha=0.8, gamma=1.5, error=(1, 4))
    w = prior_world(prior, 2, 2, 3, np.random.default_rng(5), 0.15).show(1)
    wanted = exact(prior, w)
    draws = gibbs(w.votes, w.labels, w.domain, prior, 800, 50, np.random.default_rng(1))
    agree(draws.error, wanted.error)
    agree(draws.shares, wanted.shares)
    agree(draws.by_sweep, wanted.marginals)


# labels summed out exactly


def tiny(prior: Prior, seed: int = 5, known: int = 0) -> VoteWorld:
    """About eight items (fewer of three classes) in two domains, or six in one for bee."""
    D, N, S = (1, 3, 6) if prior.kind == "bee" else (2, 2, 4)
    S -= prior.K - 2
    return prior_world(prior, D, N, S, np.random.default_rng(seed), 0.15).show(known)


@pytest.mark.product
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize(("confusion", "kind"), list(NAMES))
def test_no_labels_is_the_exact_sum(confusion, kind, K):
    """The weak prior leaves both sides of one half: the flip move has to weigh them."""
    error = (1.0, 2.5) if K == 2 else (1.0, 6.0)
    prior = Prior(kind, confusion, K, alpha=0.7, gamma=1.6, error=error, class_prior=1.5)
    w = tiny(prior)
    matches(infer(prior, w), exact(prior, w), prior)


@pytest.mark.parametrize(("confusion", "kind"), [(False, "bee"), (False, "hcbee"), (True, "cbee")])
def test_some_labels_is_the_exact_sum(confusion, kind):
    prior = Prior(kind, confusion, 2, alpha=1.4, gamma=0.6, error=(1.5, 4.0))
    w = tiny(prior, seed=8, known=2)
    matches(infer(prior, w), exact(prior, w), prior)


@pytest.mark.product
@pytest.mark.parametrize("sampler", ["uncollapsed", "collapsed then uncollapsed"])
@pytest.mark.parametrize("confusion", [False, True])
def test_every_sampler_of_cbee_is_the_exact_sum(confusion, sampler):
    prior = Prior("cbee", confusion, alpha=0.7, error=(1.0, 4.0))
    w = prior_world(prior, 3, 2, 3, np.random.default_rng(3), 0.1)
    matches(infer(prior, w, sampler=sampler), exact(prior, w), prior)


@pytest.mark.parametrize("confusion", [False, True])
def test_uncollapsed_hcbee_is_the_exact_sum(confusion):
    prior = Prior("hcbee", confusion, alpha=0.8, gamma=1.3, error=(1.0, 4.0))
    w = prior_world(prior, 2, 2, 4, np.random.default_rng(4), 0.1)
    matches(infer(prior, w, sampler="uncollapsed"), exact(prior, w), prior)


@pytest.mark.parametrize("kind", ["bee", "cbee", "hcbee"])
def test_without_the_flip_a_strong_prior_gives_the_same(kind):
    prior = Prior(kind, error=(1.0, 20.0))
    w = tiny(prior, seed=2)
    matches(infer(prior, w, flip=False), exact(prior, w), prior)


@pytest.mark.parametrize(("confusion", "kind"), KINDS_OF_RATES)
def test_labels_gathered_by_choice_stay_out_of_the_shares(confusion, kind):
    prior = Prior(kind, confusion, error=(1.0, 4.0))
    w = tiny(prior, seed=9, known=3)
    wanted = exact(prior, w, labeled_at_random=False)
    assert np.abs(wanted.shares - exact(prior, w).shares).max() > 0.02
    matches(infer(prior, w, labeled_at_random=False), wanted, prior)


# all labels known: nothing is left but conjugate draws


def known_world(prior: Prior, D: int, N: int, S: int, seed: int = 0) -> VoteWorld:
    w = prior_world(prior, D, N, S, np.random.default_rng(seed), 0.2)
    return w.show(len(w.truth))


def test_all_labels_known_is_an_exact_beta():
    """Kolmogorov and Smirnov can tell: with all labels known the draws are independent."""
    prior = Prior("bee", error=(1.3, 7.0), class_prior=0.8)
    w = known_world(prior, 2, 3, 30)
    rates = infer(prior, w, burn_in=10).vote_rates
    counts = vote_counts(w.votes, w.truth, w.domain, 2, prior)[:, :, 0]
    for d in range(2):
        ones = w.truth[w.domain == d].sum()
        share = beta(0.8 + ones, 0.8 + 30 - ones)
        assert kstest(rates.shares[:, d, 1], share.cdf).pvalue > 1e-3
        for j in range(3):
            m, r = counts[d, j]
            law = beta(1.3 + m, 7.0 + r)
            e = rates.error_rates[:, d, j]
            assert kstest(e, law.cdf).pvalue > 1e-3
            assert abs(e.mean() - law.mean()) < 4 * law.std() / math.sqrt(len(e))
            assert e.std() == pytest.approx(law.std(), rel=0.08)


def test_all_labels_known_is_an_exact_dirichlet_for_three_classes():
    prior = Prior("bee", confusion=True, K=3, error=(1.0, 6.0))
    w = known_world(prior, 1, 3, 40, seed=1)
    rates = infer(prior, w, burn_in=10).vote_rates
    a = prior.rates + vote_counts(w.votes, w.truth, w.domain, 1, prior)
    agree(rates.confusion, a / a.sum(axis=-1, keepdims=True))
    for j in range(3):
        for k in range(3):
            law = beta(a[0, j, k, k], a[0, j, k].sum() - a[0, j, k, k])
            assert kstest(rates.confusion[:, 0, j, k, k], law.cdf).pvalue > 1e-3
    s = 1 + np.bincount(w.truth, minlength=3)
    agree(rates.shares[:, 0], s / s.sum())


def test_error_rate_of_a_confusion_matrix_weighs_its_rows_by_the_shares():
    prior = Prior("bee", confusion=True, K=3)
    rates = infer(prior, tiny(prior), sweeps=200).vote_rates
    right = np.einsum("tdjkk,tdk->tdj", rates.confusion, rates.shares)
    np.testing.assert_allclose(rates.error_rates, 1 - right, atol=1e-12)


@pytest.mark.parametrize("K", [2, 3])
def test_confusion_of_one_rate_spreads_the_error_evenly(K):
    prior = Prior("bee", K=K)
    rates = infer(prior, tiny(prior), sweeps=200).vote_rates
    theta = np.stack([rates.error_rates, 1 - rates.error_rates], axis=-1)[..., None, :]
    np.testing.assert_allclose(rates.confusion, np.exp(log_votes(theta, prior)), atol=1e-12)


@pytest.mark.product
@pytest.mark.parametrize(("confusion", "kind"), [k for k in NAMES if k[1] != "bee"])
@pytest.mark.parametrize("cells", [(3, 2), (2, 3)])
def test_all_labels_known_is_the_sum_over_groupings(confusion, kind, cells):
    """Partitions of domains, of classifiers, or seatings of the franchise, by enumeration."""
    prior = Prior(kind, confusion, alpha=0.6, gamma=1.7)
    w = known_world(prior, *cells, 12, seed=2)
    wanted = exact(prior, w)
    posterior = infer(prior, w)
    matches(posterior, wanted, prior)
    np.testing.assert_array_equal(posterior.marginals(), np.eye(2)[w.truth])


@pytest.mark.parametrize("confusion", [False, True])
def test_cbee_puts_likely_partitions_first(confusion):
    prior = Prior("cbee", confusion)
    e = [[0.05, 0.3, 0.1], [0.4, 0.1, 0.3], [0.05, 0.3, 0.1], [0.4, 0.1, 0.3]]
    w = symmetric_world(e, 150, np.random.default_rng(0)).show(600)
    diagnostics = infer(prior, w).diagnostics
    partition = {tuple(sorted(group)) for group in diagnostics["partition"]}
    assert partition == {("d0000", "d0002"), ("d0001", "d0003")}
    similarity = np.array(diagnostics["domain_similarity"])
    cells = exact(prior, w).together[::3, ::3]
    np.testing.assert_allclose(similarity, cells, atol=0.04)


# learned concentrations: the exact sum, integrated over Gamma(1, 1)


@pytest.mark.parametrize("kind", ["cbee", "cbcc"])
def test_learned_concentration_is_integrated_out(kind):
    w = known_world(Prior(kind, alpha=0.5), 3, 3, 15, seed=6)
    nodes, weights = np.polynomial.laguerre.laggauss(20)
    parts = [exact(Prior(kind, alpha=float(a)), w) for a in nodes]
    p = weights * np.exp([part.log_evidence - parts[0].log_evidence for part in parts])
    p /= p.sum()
    rates = infer(Prior(kind), w, concentration="learned").vote_rates
    agree(together(rates), sum(q * part.together for q, part in zip(p, parts, strict=True)))
    agree(rates.error_rates, sum(q * part.error for q, part in zip(p, parts, strict=True)))


def test_learned_concentrations_of_the_franchise_are_integrated_out():
    w = known_world(Prior("hcbee"), 2, 2, 20, seed=7)
    nodes, weights = np.polynomial.laguerre.laggauss(12)
    grid = [(a, g, u * v) for a, u in zip(nodes, weights, strict=True)
            for g, v in zip(nodes, weights, strict=True)]  # fmt: skip
    parts = [exact(Prior("hcbee", alpha=float(a), gamma=float(g)), w) for a, g, _ in grid]
    p = np.array([u * math.exp(x.log_evidence) for (_, _, u), x in zip(grid, parts, strict=True)])
    p /= p.sum()
    options = {"concentration": "learned", "top_concentration": "learned"}
    rates = infer(Prior("hcbee"), w, **options).vote_rates
    agree(together(rates), sum(q * part.together for q, part in zip(p, parts, strict=True)))


# the limits of the concentrations


@pytest.mark.parametrize(
    ("kind", "alpha", "gamma", "same_as"),
    [
        ("cbee", 1e9, 1.0, Prior("bee")),
        ("cbcc", 1e9, 1.0, Prior("bee")),
        ("hcbee", 1e9, 1e9, Prior("bee")),
        ("hcbee", 0.8, 1e9, Prior("cbcc", alpha=0.8)),
    ],
)
def test_large_concentrations_couple_nothing(kind, alpha, gamma, same_as):
    w = prior_world(same_as, 2, 2, 4, np.random.default_rng(11))
    wanted = exact(same_as, w)
    rates = infer(Prior(kind, alpha=alpha, gamma=gamma), w).vote_rates
    agree(rates.error_rates, wanted.error)
    agree(rates.shares, wanted.shares)


def test_small_concentration_pools_the_domains():
    """One set of rates for all domains, but class shares of their own."""
    w = prior_world(Prior("cbee", alpha=1e-9), 3, 3, 3, np.random.default_rng(12))
    wanted = exact(Prior("cbee", alpha=1e-12), w)
    posterior = infer(Prior("cbee", alpha=1e-9), w)
    rates = posterior.vote_rates
    assert (rates.error_rates == rates.error_rates[:, :1]).all()
    agree(rates.error_rates, wanted.error)
    agree(rates.shares, wanted.shares)
    assert posterior.diagnostics["clusters"] == pytest.approx(1, abs=1e-9)


def test_small_concentrations_leave_one_rate():
    prior = Prior("hcbee", alpha=1e-9, gamma=1e-9)
    w = prior_world(prior, 2, 2, 4, np.random.default_rng(13))
    rates = infer(prior, w).vote_rates
    assert (rates.error_rates == rates.error_rates[:, :1, :1]).all()
    agree(rates.error_rates, exact(prior, w).error)


# forty items: the per-item samplers


@pytest.mark.parametrize(
    ("confusion", "kind", "K", "sweeps"),
    [(False, "bee", 2, 1500), (False, "bee", 3, 1000), (True, "bee", 3, 1000),
     (False, "cbee", 2, 800)],
)  # fmt: skip
def test_forty_items_are_the_per_item_sampler(confusion, kind, K, sweeps):
    prior = Prior(kind, confusion, K)
    D = 1 if kind == "bee" else 3
    w = prior_world(prior, D, 4, 40 // D, np.random.default_rng(21), 0.2).show(3)
    rng = np.random.default_rng(2)
    naive = gibbs(w.votes, w.labels, w.domain, prior, sweeps, 200, rng)
    posterior = infer(prior, w)
    rates = posterior.vote_rates
    agree(rates.error_rates, naive.error.mean(axis=0), extra=batch_error(naive.error))
    agree(rates.shares, naive.shares.mean(axis=0), extra=batch_error(naive.shares))
    agree(label_draws(posterior), naive.marginals, extra=batch_error(naive.by_sweep))
    square = naive.error**2
    agree(rates.error_rates**2, square.mean(axis=0), extra=batch_error(square))


# what a user relies on


@pytest.mark.parametrize(("confusion", "kind"), KINDS_OF_RATES)
def test_weak_classifiers_are_on_the_right_side(confusion, kind):
    """Section 1's world: without the flip an inverted start stays inverted."""
    w = symmetric_world([0.2, 0.25, 0.3, 0.3], 200, np.random.default_rng(0))
    posterior = infer(Prior(kind, confusion), w)
    e = posterior.vote_rates.error_rates.mean(axis=0)[0]
    assert (e < 0.45).all(), e
    assert np.abs(e - w.error[0]).max() < 0.15, e
    assert (posterior.marginals().argmax(axis=1) != w.truth).mean() < 0.25


def test_labels_by_choice_leave_the_shares_to_their_prior():
    """All labels known and none of them random: nothing is learned of the shares."""
    prior = Prior("bee", class_prior=2.0)
    w = known_world(prior, 1, 3, 25)
    rates = infer(prior, w, labeled_at_random=False, burn_in=10).vote_rates
    assert kstest(rates.shares[:, 0, 1], beta(2, 2).cdf).pvalue > 1e-3
    m, r = vote_counts(w.votes, w.truth, w.domain, 1, prior)[0, 0, 0]
    assert kstest(rates.error_rates[:, 0, 0], beta(1 + m, 10 + r).cdf).pvalue > 1e-3


@pytest.mark.parametrize("kind", ["bee", "cbee", "hcbee"])
def test_an_item_without_votes_says_nothing_and_gets_the_shares(kind):
    prior = Prior(kind, error=(1.0, 4.0))
    w = tiny(prior)
    silent = VoteWorld(**(vars(w) | {
        "votes": np.vstack([w.votes, np.full((2, w.votes.shape[1]), -1)]),
        "domain": np.append(w.domain, [0, w.domain.max()]),
        "truth": np.append(w.truth, [0, 0]), "labels": np.append(w.labels, [-1, -1]),
    }))  # fmt: skip
    wanted, posterior = exact(prior, w), infer(prior, silent)
    agree(posterior.vote_rates.error_rates, wanted.error)
    agree(posterior.vote_rates.shares, wanted.shares)
    agree(label_draws(posterior)[:, -2], wanted.shares[0])
    agree(label_draws(posterior)[:, -1], wanted.shares[-1])


def test_one_domain_needs_no_name_and_domains_keep_their_order():
    w = symmetric_world([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]], 60, np.random.default_rng(6))
    named = w.predictions(domain=["wine"] * 60 + ["beer"] * 60)
    rates = model(Prior("bee"), sweeps=200).infer(named, np.random.default_rng(0)).vote_rates
    assert tuple(rates.domains) == ("wine", "beer")
    assert tuple(rates.models) == ("c0", "c1", "c2")
    np.testing.assert_array_equal(rates.n_votes, np.full((2, 3), 60))
    alone = fl.Predictions(votes=w.votes[:60], models=["c0", "c1", "c2"], classes=[0, 1])
    without = model(Prior("bee")).infer(alone, np.random.default_rng(0)).vote_rates
    assert without.error_rates.shape[1:] == (1, 3)
    agree(rates.error_rates[:, 0], without.error_rates[:, 0].mean(axis=0),
          extra=batch_error(without.error_rates[:, 0]))  # fmt: skip


@pytest.mark.parametrize(("confusion", "kind"), list(NAMES))
def test_the_fewest_draws_are_no_cause_for_warnings(confusion, kind):
    prior = Prior(kind, confusion)
    posterior = infer(prior, tiny(prior), chains=1, burn_in=1, sweeps=2, thin=1)
    assert len(posterior.vote_rates.error_rates) == 2


@pytest.mark.parametrize("confusion", [False, True])
def test_estimates_of_the_error_rate_are_the_posteriors(confusion):
    w = symmetric_world([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]], 60, np.random.default_rng(7))
    method = model(Prior("bee", confusion))
    estimates = fl.estimate(
        w.predictions(), method=method, metrics=["error_rate", "accuracy"], by="domain",
        confidence_level=0.9,
    )  # fmt: skip
    e = estimates.posterior.vote_rates.error_rates
    for d in range(2):
        for j in range(3):
            wrong = estimates.get(f"c{j}", "error_rate", f"domain=d{d:04d}")
            right = estimates.get(f"c{j}", "accuracy", f"domain=d{d:04d}")
            assert wrong.value == pytest.approx(e[:, d, j].mean(), abs=1e-9)
            assert right.value == pytest.approx(1 - wrong.value, abs=1e-9)
            low, high = np.quantile(e[:, d, j], [0.05, 0.95])
            assert wrong.low == pytest.approx(low, abs=0.01)
            assert wrong.high == pytest.approx(high, abs=0.01)


# the baselines


@pytest.mark.parametrize("one_rate", [False, True], ids=["confusion", "one"])
@pytest.mark.parametrize("K", [2, 3])
def test_dawid_skene_with_one_or_all_rates(one_rate, K):
    rng = np.random.default_rng(31)
    prior = Prior("bee", confusion=not one_rate, K=K, error=(4.0, 12.0))
    theta = dirichlet(np.broadcast_to(prior.rates, (1, 5, *prior.rates.shape)), rng)
    w = world_of(theta, np.full((1, K), 1 / K), 300, prior, rng, 0.1)
    e, q = dawid_skene(w.votes, K, one_rate, smoothing=1e-10)
    method = fl.models.DawidSkene(
        rates="one" if one_rate else "confusion", iterations=3000, tolerance=1e-12
    )
    posterior = method.infer(w.predictions(domain=None), np.random.default_rng(0))
    np.testing.assert_allclose(posterior.marginals(), q, atol=1e-5)
    got = [posterior.diagnostics["error_rate"][f"c{j}"] for j in range(5)]
    np.testing.assert_allclose(got, e, atol=1e-5)


def test_agreement_rates_of_independent_classifiers():
    """e = (.1, .2, .3): a thousand items that err in exactly these proportions."""
    e = np.array([0.1, 0.2, 0.3])
    a = 1 - e[:, None] - e + 2 * np.outer(e, e)
    np.testing.assert_allclose(agreement_errors(a), e, rtol=0, atol=1e-15)
    rows, truth = [], []
    for wrong in np.ndindex(2, 2, 2):
        n = round(1000 * math.prod(x if err else 1 - x for x, err in zip(e, wrong, strict=True)))
        for i in range(n):
            truth.append(i % 2)
            rows.append([(i + err) % 2 for err in wrong])
    predictions = fl.Predictions(votes=np.array(rows), classes=[0, 1], models=["a", "b", "c"])
    posterior = fl.models.AgreementRates().infer(predictions, np.random.default_rng(0))
    got = [posterior.diagnostics["error_rate"][name] for name in "abc"]
    np.testing.assert_allclose(got, e, rtol=0, atol=1e-6)


def test_dirichlet_draws_of_the_oracle():
    a = np.array([0.05, 0.5, 3.0])
    draws = dirichlet(np.broadcast_to(a, (4000, 3)), np.random.default_rng(0))
    agree(draws, a / a.sum())
