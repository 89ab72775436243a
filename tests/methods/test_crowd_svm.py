"""CrowdSVM: its sampler against enumeration, its descent against the program it solves."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import gammaln, ndtri

import fewlabels as fl
from fewlabels.methods.votes.crowd_svm import (
    Ballots,
    CrowdSVM,
    Penalty,
    Prior,
    State,
    inverse_gaussian,
    label_logits,
    lead,
    maximum_margin,
    sweep,
)


def crowd(
    n: int = 300,
    skill: tuple[float, ...] = (0.9, 0.8, 0.7, 0.6, 0.8),
    n_classes: int = 3,
    missing: float = 0.2,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Votes (n, M) of classifiers that err independently of each other, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n)
    wrong = (truth[:, None] + rng.integers(1, n_classes, size=(n, len(skill)))) % n_classes
    votes = np.where(rng.random((n, len(skill))) < skill, truth[:, None], wrong)
    votes[rng.random(votes.shape) < missing] = -1
    return votes, truth


def ballots_of(votes: np.ndarray, n_classes: int) -> Ballots:
    predictions = fl.Predictions(votes=votes, classes=list(range(n_classes)))
    return Ballots.of(predictions.vote_counts, predictions.evidence)


def enumerate_labels(
    votes: np.ndarray, n_classes: int, penalty: Penalty, prior: Prior, cells: int = 60
) -> dict[tuple[int, ...], float]:
    """P(labels | votes): confusion matrices in closed form, weights on a grid of quantiles."""
    n, m = votes.shape
    quantiles = ndtri((np.arange(cells) + 0.5) / cells) * np.sqrt(prior.variance)
    eta = np.stack(np.meshgrid(*[quantiles] * m, indexing="ij"), axis=-1).reshape(-1, m)
    score = [[eta @ (votes[i] == d) for d in range(n_classes)] for i in range(n)]
    log = {}
    for y in product(range(n_classes), repeat=n):
        value = 0.0
        for j, d in product(range(m), range(n_classes)):
            seen = [sum(votes[i, j] == v for i in range(n) if y[i] == d) for v in range(n_classes)]
            a = prior.confusion
            value += gammaln(n_classes * a) - gammaln(n_classes * a + sum(seen))
            value += sum(gammaln(a + s) - gammaln(a) for s in seen)
        if prior.shares:  # of a uniform Dirichlet
            value += gammaln(n_classes) - gammaln(n_classes + n)
            value += sum(gammaln(1 + y.count(d)) for d in range(n_classes))
        missed = 0.0
        for i in range(n):
            rival = np.max([score[i][d] for d in range(n_classes) if d != y[i]], axis=0)
            missed = missed + np.maximum(penalty.margin - (score[i][y[i]] - rival), 0)
        log[y] = value + np.log(np.mean(np.exp(-2 * penalty.cost * missed)))
    top = max(log.values())
    total = sum(np.exp(v - top) for v in log.values())
    return {y: float(np.exp(v - top) / total) for y, v in log.items()}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("votes", "penalty", "prior"),
    [
        ([[0, 0], [1, 1], [1, 0]], Penalty(0.5, 1.0), Prior(1.0, 1.0)),
        ([[0, -1], [1, 1], [-1, 0]], Penalty(0.25, 2.0), Prior(0.5, 0.7)),
        ([[0, 0], [0, 1], [1, 0]], Penalty(0.5, 1.0), Prior(1.0, 1.0, shares=True)),
    ],
)
def test_the_sampler_draws_labels_as_often_as_enumeration_says(votes, penalty, prior):
    votes = np.array(votes)
    exact = enumerate_labels(votes, 2, penalty, prior)
    ballots, rng = ballots_of(votes, 2), np.random.default_rng(0)
    state = State(np.zeros(3, dtype=np.int64), np.ones(2), np.zeros((2, 2, 2)), np.zeros(2))
    size, seen = 1000, dict.fromkeys(exact, 0)
    for _ in range(size):
        state = sweep(ballots, state, penalty, prior, rng)
        seen[tuple(state.labels.tolist())] += 1
    # Four standard errors of independent draws at half their number: chains mix in a few sweeps.
    for y, p in exact.items():
        assert seen[y] / size == pytest.approx(p, abs=4 * np.sqrt(2 * p * (1 - p) / size))


@pytest.mark.parametrize("mean", [0.01, 0.5, 3.0, 200.0])
def test_inverse_gaussian_draws(mean):
    rng = np.random.default_rng(0)
    x = inverse_gaussian(np.full(4000, mean), rng)
    assert stats.kstest(x, stats.invgauss(mean).cdf).pvalue > 1e-3


def test_inverse_gaussian_draws_of_huge_mean_are_stable():
    """Towards the Levy distribution, 1 / x chi-square with one degree of freedom."""
    x = inverse_gaussian(np.full(4000, 1e10), np.random.default_rng(0))
    assert stats.kstest(1 / x, stats.chi2(1).cdf).pvalue > 1e-3


def test_the_lead_is_over_the_best_of_the_others():
    scores = np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 0.0]])
    np.testing.assert_array_equal(lead(scores), [[1, -2, -1], [0, 0, -1]])


def test_label_probabilities_are_the_formula():
    votes, _ = crowd(n=12, n_classes=3)
    rng = np.random.default_rng(1)
    ballots = ballots_of(votes, 3)
    eta, penalty = rng.normal(size=5), Penalty(0.3, 2.0)
    confusion = rng.dirichlet(np.ones(3), size=(5, 3)).transpose(0, 2, 1)  # (M, votes, classes)
    found = label_logits(
        ballots.votes,
        np.log(confusion).reshape(15, 3, 1),
        ballots.scores(eta)[:, :, None],
        penalty,
    )
    for i, d in product(range(12), range(3)):
        a = [sum(eta[j] for j in range(5) if votes[i, j] == c) for c in range(3)]
        zeta = max(2.0 - (a[d] - a[c]) for c in range(3) if c != d)
        log = sum(np.log(confusion[j, votes[i, j], d]) for j in range(5) if votes[i, j] >= 0)
        assert found[i, d, 0] == pytest.approx(log - 2 * 0.3 * max(zeta, 0))


def test_the_descent_solves_the_quadratic_program():
    """min |eta|^2 / 2 + c sum w xi, xi_i >= l - eta' (g_i(y_i) - g_i(d)), xi >= 0."""
    votes, truth = crowd(n=15, n_classes=3, missing=0.0)
    ballots, rng = ballots_of(votes, 3), np.random.default_rng(0)
    weights, penalty = rng.exponential(size=15), Penalty(0.2, 1.0)
    gaps = np.array(
        [[(votes[i] == truth[i]).astype(float) - (votes[i] == d) for d in range(3)]
         for i in range(15)]
    )  # fmt: skip

    def loss(x):
        return x[:5] @ x[:5] / 2 + penalty.cost * weights @ x[5:]

    constraints = [
        {"type": "ineq", "fun": lambda x, i=i, d=d: x[5 + i] - 1.0 + gaps[i, d] @ x[:5]}
        for i, d in product(range(15), range(3))
        if d != truth[i]
    ]
    start = np.r_[np.zeros(5), np.ones(15)]
    bounds = [(None, None)] * 5 + [(0, None)] * 15
    exact = minimize(loss, start, method="SLSQP", bounds=bounds, constraints=constraints)
    found = maximum_margin(ballots, truth, weights, penalty, np.zeros(5))
    np.testing.assert_allclose(found, exact.x[:5], atol=0.02)


@pytest.mark.parametrize("solver", ["gibbs", "gradient-descent"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_finds_the_labels(solver, n_classes):
    votes, truth = crowd(n=1000, n_classes=n_classes)
    model = CrowdSVM(solver=solver, cost=0.05, margin=1.0)
    predictions = fl.Predictions(votes=votes, classes=list(range(n_classes)))
    posterior = model.infer(predictions, 0)
    shares = fl.models.MajorityVote().infer(predictions, 0).marginals()
    right = posterior.marginals()[np.arange(1000), truth].mean()
    found = (posterior.marginals().argmax(axis=1) == truth).mean()
    assert found >= shares[np.arange(1000), truth].mean()
    weights = list(posterior.diagnostics["weights"].values())
    assert np.argmax(weights) == 0
    assert np.argmin(weights) == 3
    if solver == "gibbs":
        assert right == pytest.approx(found, abs=0.05), "calibrated, near enough"


def test_known_labels_teach():
    """Classifiers that are mostly wrong, and labels that say so."""
    votes, truth = crowd(n=400, skill=(0.2, 0.25, 0.3), n_classes=2, missing=0.0)
    labels = np.where(np.arange(400) < 100, truth, -1)
    posterior = CrowdSVM(cost=0.05, margin=1.0).infer(fl.Predictions(votes=votes, labels=labels), 0)
    assert (posterior.marginals()[100:].argmax(axis=1) == truth[100:]).mean() > 0.75
    assert max(posterior.diagnostics["weights"].values()) < 0


def test_other_items_are_judged_by_what_was_learned():
    votes, _ = crowd(n=200)
    fitted = CrowdSVM(cost=0.1, margin=1.0, draws=20).fit(
        fl.Predictions(votes=votes), np.random.default_rng(0)
    )
    new, _ = crowd(n=30, seed=1)
    posterior = fitted.posterior(fl.Predictions(votes=new, classes=[0, 1, 2]))
    every = [posterior.parameters.block(np.array([t]), slice(None))[:, :, 0] for t in range(20)]
    np.testing.assert_allclose(posterior.marginals(), np.mean(every, axis=0), atol=1e-12)


def test_items_without_votes_are_any_class():
    votes, _ = crowd(n=200)
    votes[:5] = -1
    posterior = CrowdSVM(cost=0.1, margin=1.0).infer(fl.Predictions(votes=votes), 0)
    np.testing.assert_allclose(posterior.marginals()[:5], 1 / 3)


def test_repeated_votes_count():
    votes, _ = crowd(n=60, missing=0.0)
    repeated = fl.Predictions(votes=votes, repeated_votes=[(0, 0, votes[0, 0])] * 8)
    model = CrowdSVM(solver="gradient-descent", cost=0.1, margin=1.0)
    fitted = model.fit(repeated, np.random.default_rng(0))
    assert fitted.descent.ballots.ballots.max() == 9


@pytest.mark.parametrize("solver", ["gibbs", "gradient-descent"])
def test_cost_and_margin_are_chosen_from_the_paper_s(solver):
    votes, _ = crowd(n=60, n_classes=2)
    model = CrowdSVM(solver=solver, burn_in=2, draws=3)
    found = model.infer(fl.Predictions(votes=votes), 0).diagnostics
    assert np.log2(found["cost"]) in range(-8, 1)
    assert found["margin"] in (1, 3, 5)
    fixed = CrowdSVM(solver=solver, cost=0.5, burn_in=2, draws=3)
    assert fixed.infer(fl.Predictions(votes=votes), 0).diagnostics["cost"] == 0.5


def test_descent_has_bootstrap_refits():
    votes, _ = crowd(n=100)
    model = CrowdSVM(solver="gradient-descent", cost=0.1, margin=1.0, replicates=7)
    estimates = fl.estimate(fl.Predictions(votes=votes), model, "error_rate")
    assert all(row.low < row.value < row.high for row in estimates.rows)
    assert estimates.posterior.parameters.size == 7


def test_too_few_classifiers_are_said():
    votes, _ = crowd(skill=(0.9, 0.8))
    said = CrowdSVM(cost=0.1, margin=1.0).infer(fl.Predictions(votes=votes), 0).warnings
    assert any("fewer than 3 classifiers vote on the same items" in w for w in said)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_known_labels_rule_classes_out_in_descent(n_classes):
    votes, truth = crowd(n=80, n_classes=n_classes)
    labels = np.where(np.arange(80) < 20, truth, -1)
    predictions = fl.Predictions(votes=votes, labels=labels, classes=list(range(n_classes)))
    found = CrowdSVM("gradient-descent", cost=1.0, margin=1.0).infer(predictions, 0).marginals()
    np.testing.assert_array_equal(found[:20], np.eye(n_classes)[truth[:20]])
    with np.errstate(invalid="raise"):
        out = lead(np.array([[2.0, -np.inf, -np.inf], [1.0, 1.0, -np.inf], [3.0, 1.0, 0.0]]))
    np.testing.assert_array_equal(out, [[np.inf, -np.inf, -np.inf], [0, 0, -np.inf], [2, -2, -3]])


def test_learned_shares_leave_rare_classes_rare():
    """Four voters who invent one in twenty: with equal shares every doubtful item is positive."""
    rng = np.random.default_rng(0)
    truth = (rng.random(2000) < 0.03).astype(int)
    right = rng.random((2000, 4)) < np.where(truth[:, None] == 1, 0.6, 0.95)
    votes = np.where(right, truth[:, None], 1 - truth[:, None])
    predictions = fl.Predictions(votes=votes, classes=[0, 1])
    settings = {"cost": 0.125, "margin": 1.0, "draws": 60}
    equal, learned = (
        (CrowdSVM(class_shares=how, **settings).infer(predictions, 0).marginals()[:, 1] > 0.5)
        for how in ("equal", "learned")
    )
    assert (equal != truth).mean() > 2 * (learned != truth).mean()
    assert (learned != truth).mean() < 0.03
