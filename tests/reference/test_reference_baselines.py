"""SSME-KDE-M, Dawid-Skene, votes and pseudo-labels against plain loops and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from reference_baselines_naive import (
    clamp,
    confusion,
    dawid_skene_log_likelihood,
    naive_dawid_skene,
    naive_pseudo_label,
    soft_accuracy,
    vote_shares,
)
from reference_naive import naive_kde_em
from reference_questions import infer, marginals, value

import fewlabels as fl
from worlds import PI_2, PI_3, World, as_probabilities, crowd, world

# SSME-KDE-M


def marginal_kde(**options) -> fl.models.LabelModel:
    return fl.models.SSMEKDEMarginal(mixture=fl.models.SSMEKDE(init="soft", **options))


@pytest.mark.parametrize("leave_one_out", [False, True], ids=["own-kernel", "leave-one-out"])
@pytest.mark.parametrize("classes", [2, 3])
def test_kde_m_is_the_double_loop_of_each_classifier(classes, leave_one_out):
    w = world(n=30, models=3, classes=classes, labeled=9, seed=31)
    model = marginal_kde(bandwidth=0.7, epochs=3, leave_one_out=leave_one_out)
    posterior = infer(model, w.predictions())
    for j in range(3):
        wanted = naive_kde_em(w.P[:, [j]], w.shown, 0.7, 3, leave_one_out)
        np.testing.assert_allclose(posterior.of(j).marginals(), wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("bandwidth", ["isj", "official", "scott", 1.3])
def test_kde_m_is_kde_of_each_classifier_alone(bandwidth):
    w = world(n=90, models=3, classes=3, labeled=12, seed=32)
    posterior = infer(marginal_kde(bandwidth=bandwidth), w.predictions())
    alone = fl.models.SSMEKDE(init="soft", bandwidth=bandwidth)
    for j, name in enumerate(w.models):
        wanted = marginals(alone, w.predictions().select_models([name]))
        np.testing.assert_allclose(posterior.of(j).marginals(), wanted, rtol=0, atol=1e-9)


def test_kde_m_judges_each_classifier_by_its_own_posterior():
    w = world(n=120, models=3, labeled=15, seed=33)
    model = marginal_kde(bandwidth=0.5)
    estimates = fl.estimate(w.predictions(), method=model, metrics=["accuracy"], estimand="sample")
    for j, name in enumerate(w.models):
        Q = estimates.posterior.of(j).marginals()
        wanted = soft_accuracy(Q, w.P[:, j].argmax(axis=1))
        assert estimates.get(name, "accuracy").value == pytest.approx(wanted, abs=1e-9)


def test_kde_m_of_one_classifier_ignores_the_others():
    """Another classifier may become noise: what is said of the first stays."""
    w = world(n=100, models=2, labeled=15, seed=34)
    P = w.P.copy()
    P[:, 1] = np.random.default_rng(0).dirichlet([1, 1], 100)
    model = marginal_kde(bandwidth=0.5)
    before = infer(model, w.predictions()).of(0).marginals()
    after = infer(model, World(P, w.truth, w.shown).predictions()).of(0).marginals()
    np.testing.assert_allclose(before, after, rtol=0, atol=1e-12)


def test_kde_m_defaults_are_the_papers():
    """50 epochs, labels clamped, own kernel kept, start drawn: the settings of ssme-kde."""
    assert fl.models.SSMEKDEMarginal().mixture == fl.models.SSMEKDE()


# Dawid-Skene


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("pi", [PI_2, PI_3], ids=["2", "3"])
@pytest.mark.parametrize("steps", [1, 2, 20])
def test_dawid_skene_is_the_loop_over_items(steps, pi, missing):
    predictions, votes, _, shown = crowd(60, pi, 8, seed=1, missing=missing)
    got = marginals(fl.models.DawidSkene(iterations=steps, tolerance=0.0), predictions)
    wanted = naive_dawid_skene(votes, shown, pi.shape[1], steps)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-7)


@pytest.mark.parametrize("pi", [PI_2, PI_3], ids=["2", "3"])
def test_dawid_skene_by_name_stops_at_the_tolerance_or_at_100(pi):
    predictions, votes, _, shown = crowd(150, pi, 10, seed=2)
    got = fl.estimate(predictions, method="dawid-skene", metrics=["accuracy"]).posterior.marginals()
    wanted = naive_dawid_skene(votes, shown, pi.shape[1], 100, 1e-5)
    # a criterion on likelihood or on parameters stops a step earlier or later
    np.testing.assert_allclose(got, wanted, rtol=0, atol=2e-3)
    # and more steps do not fall in likelihood
    further = naive_dawid_skene(votes, shown, pi.shape[1], 150)
    assert dawid_skene_log_likelihood(got, votes, shown) == pytest.approx(
        dawid_skene_log_likelihood(further, votes, shown), abs=0.05
    )


def test_dawid_skene_reads_votes_as_it_reads_the_argmax():
    predictions, votes, _, shown = crowd(80, PI_3, 10, seed=3, missing=0.2)
    a = marginals(fl.models.DawidSkene(), predictions)
    b = marginals(fl.models.DawidSkene(), fl.Predictions(votes=votes, labels=shown))
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("models", [2, 5])
def test_identical_classifiers_without_labels_are_believed(models):
    votes = np.repeat(np.arange(30)[:, None] % 3, models, axis=1)
    got = marginals(fl.models.DawidSkene(), fl.Predictions(as_probabilities(votes, 3)))
    np.testing.assert_allclose(got, np.eye(3)[votes[:, 0]], rtol=0, atol=1e-9)


@pytest.mark.parametrize("K", [2, 3])
def test_perfect_classifiers_with_labels_are_believed(K):
    truth = np.arange(60) % K
    votes = np.repeat(truth[:, None], 3, axis=1)
    shown = np.where(np.arange(60) < 12, truth, -1)
    predictions = fl.Predictions(as_probabilities(votes, K), shown)
    estimates = fl.estimate(
        predictions, method="dawid-skene", metrics=["accuracy"], estimand="sample"
    )
    np.testing.assert_allclose(estimates.posterior.marginals(), np.eye(K)[truth], atol=1e-9)
    assert [r.value for r in estimates.rows] == pytest.approx([1, 1, 1], abs=1e-9)


@pytest.mark.parametrize("steps", [1, 5, 40])
def test_one_classifier_approaches_the_labeled_rates_at_the_rate_of_missing_labels(steps):
    """With one classifier EM is linear: q_l - r_l shrinks by u_l / (u_l + c_l) in every step.

    r_l is how often the label is 1 among the c_l labeled items with vote l; u_l have no label.
    """
    labeled = {0: (20, 5), 1: (10, 8)}  # vote: labeled items, of which class 1
    unlabeled = {0: 30, 1: 15}
    votes, shown = [], []
    for vote, (count, ones) in labeled.items():
        votes += [vote] * count
        shown += [1] * ones + [0] * (count - ones)
    for vote, count in unlabeled.items():
        votes += [vote] * count
        shown += [-1] * count
    votes, shown = np.array(votes), np.array(shown)
    model = fl.models.DawidSkene(iterations=steps, tolerance=0.0)
    got = marginals(model, fl.Predictions(as_probabilities(votes[:, None], 2), shown))
    for vote, (count, ones) in labeled.items():
        u, r = unlabeled[vote], ones / count
        wanted = r + (vote - r) * (u / (u + count)) ** steps
        rows = (votes == vote) & (shown < 0)
        np.testing.assert_allclose(got[rows, 1], wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("labeled", [0, 50])
@pytest.mark.parametrize("pi", [PI_2, PI_3], ids=["2", "3"])
def test_dawid_skene_recovers_the_confusion_matrices(pi, labeled):
    """At n = 3000 within six standard errors of a row's frequencies, had labels been known."""
    predictions, votes, truth, _ = crowd(3000, pi, labeled, seed=4)
    model = fl.models.DawidSkene(iterations=1000, tolerance=1e-8)
    posterior = infer(model, predictions)
    found = confusion(posterior.marginals(), votes)
    per_class = np.bincount(truth)
    error = np.sqrt(np.maximum(pi * (1 - pi), 0.02) / per_class[None, :, None])
    # labels that EM has to guess cost more than labels that are known
    assert (np.abs(found - pi) < 6 * 1.7 * error).all(), np.abs(found - pi) / error
    wrong = [(votes[:, j] != truth).mean() for j in range(len(pi))]
    told = posterior.diagnostics["error_rate"]
    np.testing.assert_allclose([told[m] for m in predictions.models], wrong, atol=0.04)


def test_dawid_skene_turns_round_a_classifier_that_errs_more_than_a_guess():
    pi = np.concatenate([PI_2, PI_2[:1, :, ::-1]])
    predictions, votes, truth, _ = crowd(2000, pi, 20, seed=5)
    Q = marginals(fl.models.DawidSkene(), predictions)
    assert confusion(Q, votes)[3, 0, 0] == pytest.approx(0.1, abs=0.05)
    assert (Q.argmax(axis=1) == truth).mean() > (votes[:, 0] == truth).mean()


# majority vote


def voting(votes, shown, K: int = 2, **options) -> fl.Predictions:
    return fl.Predictions(as_probabilities(np.array(votes), K), np.array(shown), **options)


HAND_VOTES = [
    [0, 0, 1],  # labeled 0
    [1, 0, 1],  # labeled 1
    [1, 1, 0],  # labeled 1
    [0, 1, 1],  # labeled 0
    [1, 0, 0],
    [0, 1, 1],
    [1, 1, 1],
]
HAND_SHOWN = [0, 1, 1, 0, -1, -1, -1]
# right: a 4 of 4, b 2 of 4, c 1 of 4; so weights 1, 1/2, 1/4
HAND_SHARES = [1 / 1.75, 0.75 / 1.75, 1.0]


def test_majority_vote_by_hand():
    got = marginals(fl.models.MajorityVote(hard=False), voting(HAND_VOTES, HAND_SHOWN))
    np.testing.assert_allclose(got[4:, 1], HAND_SHARES, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(got[:4, 1], HAND_SHOWN[:4])
    hard = marginals(fl.models.MajorityVote(hard=True), voting(HAND_VOTES, HAND_SHOWN))
    np.testing.assert_array_equal(hard[4:, 1], [1, 0, 1])


def test_majority_vote_tells_its_weights():
    posterior = infer(fl.models.MajorityVote(), voting(HAND_VOTES, HAND_SHOWN))
    assert list(posterior.diagnostics["weights"].values()) == pytest.approx([1, 0.5, 0.25])


def test_majority_vote_accuracy_by_hand():
    """Labeled: a is right 4 times. Unlabeled: it votes 1, 0, 1."""
    predictions = voting(HAND_VOTES, HAND_SHOWN)
    soft = fl.models.MajorityVote(hard=False)
    wanted = (4 + HAND_SHARES[0] + (1 - HAND_SHARES[1]) + HAND_SHARES[2]) / 7
    assert value(predictions, soft) == pytest.approx(wanted, abs=1e-12)
    assert value(predictions, fl.models.MajorityVote(hard=True)) == pytest.approx(1, abs=1e-12)
    # b votes 0, 1, 1 on the unlabeled: the others' verdict is 1, 0, 1
    assert value(predictions, fl.models.MajorityVote(hard=True), j=1) == pytest.approx((2 + 1) / 7)


def test_majority_vote_without_labels_counts_votes():
    votes = np.array([[0, 1, 1], [2, 2, 2], [0, 1, 2]])
    predictions = voting(votes, [-1, -1, -1], 3)
    got = marginals(fl.models.MajorityVote(hard=False), predictions)
    np.testing.assert_allclose(got, vote_shares(votes, 3), rtol=0, atol=1e-12)
    hard = marginals(fl.models.MajorityVote(hard=True), predictions)
    np.testing.assert_array_equal(hard[:2], [[0, 1, 0], [0, 0, 1]])
    # three ways tied: no class has more than another
    np.testing.assert_allclose(hard[2], 1 / 3, atol=1e-12)


def test_majority_vote_where_nobody_was_ever_right():
    """All weights 0: votes count equally rather than dividing by nothing."""
    predictions = voting([[1, 1], [1, 1], [0, 1], [1, 1]], [0, 0, -1, -1])
    got = marginals(fl.models.MajorityVote(hard=False), predictions)
    np.testing.assert_allclose(got[2:, 1], [0.5, 1.0], atol=1e-12)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_majority_vote_is_the_loop_over_items(missing, hard):
    predictions, votes, _, shown = crowd(80, PI_3, 30, seed=7, missing=missing)
    known = shown >= 0
    weights = []
    for j in range(votes.shape[1]):
        rows = known & (votes[:, j] >= 0)
        weights.append((votes[rows, j] == shown[rows]).mean())
    shares = vote_shares(votes, 3, weights)
    if hard:
        top = np.isclose(shares, shares.max(axis=1, keepdims=True), rtol=0, atol=1e-12)
        shares = top / top.sum(axis=1, keepdims=True)
    got = marginals(fl.models.MajorityVote(hard=hard), predictions)
    np.testing.assert_allclose(got, clamp(shares, shown), rtol=0, atol=1e-12)


# pseudo-label


@pytest.mark.parametrize("features", ["log-ratios", "probabilities"])
@pytest.mark.parametrize("classes", [2, 3])
def test_pseudo_label_is_the_logistic_regression_of_scikit_learn(classes, features):
    w = world(n=150, models=3, classes=classes, labeled=30, seed=41)
    P = w.P.copy()
    P[::5, 0] = np.eye(classes)[P[::5, 0].argmax(axis=1)]  # exact 0 and 1: clipped at 1e-6
    got = marginals(fl.models.PseudoLabel(features=features), fl.Predictions(P, w.shown))
    wanted = naive_pseudo_label(P, w.shown, features)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_pseudo_label_metrics_are_those_of_its_labels(seed):
    w = world(n=150, models=2, labeled=25, seed=42 + seed)
    for soft in (True, False):
        model = fl.models.PseudoLabel(soft=soft, features="log-ratios")
        Q = naive_pseudo_label(w.P, w.shown, "log-ratios")
        if not soft:
            Q = np.eye(2)[Q.argmax(axis=1)]
        for j in range(2):
            wanted = soft_accuracy(Q, w.P[:, j].argmax(axis=1))
            assert value(w.predictions(), model, j=j) == pytest.approx(wanted, abs=1e-6)


def test_pseudo_label_says_nothing_of_a_class_without_labels():
    w = world(n=150, models=2, classes=3, labeled=40, seed=47)
    shown = np.where(w.shown == 2, -1, w.shown)
    got = marginals(fl.models.PseudoLabel(features="log-ratios"), fl.Predictions(w.P, shown))
    wanted = naive_pseudo_label(w.P, shown, "log-ratios")
    np.testing.assert_allclose(got, wanted, rtol=0, atol=0.02)


def test_pseudo_label_without_labels_says_what_is_missing():
    w = world(n=50, models=2, labeled=0, seed=48)
    with pytest.raises(fl.InputError, match="label") as error:
        fl.estimate(w.predictions(labels=None), method="pseudo-label", metrics=["accuracy"])
    assert "\n" not in str(error.value)
