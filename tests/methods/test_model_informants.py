"""What classifiers say, whatever they say it in; latent classes; the mixture that rests on them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import multivariate_normal, spearmanr
from sklearn.metrics import roc_auc_score

import fewlabels as fl
from fewlabels.kernels.simplex import calibrated_pool, softmax
from fewlabels.kernels.votes import Patterns, patterns
from fewlabels.methods.ensembles import belief_mixture
from fewlabels.methods.ensembles import informants as module
from fewlabels.methods.ensembles.informants import Informants, NormalScores, VotedClasses, VoteTable
from fewlabels.methods.registry import resolve
from fewlabels.models import LearnedEnsemble
from worlds import votes_of, world


def truth_of(n: int = 1_200, share: float = 0.4, seed: int = 0) -> np.ndarray:
    """Classes of n items."""
    return (np.random.default_rng(seed).random(n) < share).astype(int)


def log_odds(truth: np.ndarray, strengths, seed: int = 1) -> np.ndarray:
    """Scores (n, M), normal given the class, calibrated."""
    rng = np.random.default_rng(seed)
    d = np.asarray(strengths, dtype=float)
    return d * (d * (truth[:, None] - 0.5) + rng.normal(size=(len(truth), len(d)))) + logit(0.4)


def judges(truth: np.ndarray, rates, seed: int = 2) -> np.ndarray:
    """Votes (n, M) that are right so often."""
    rng = np.random.default_rng(seed)
    return np.where(
        rng.random((len(truth), len(rates))) < rates, truth[:, None], 1 - truth[:, None]
    )


def some(truth: np.ndarray, n_labeled: int) -> np.ndarray:
    """The labels of the first items."""
    return np.where(np.arange(len(truth)) < n_labeled, truth, -1)


def mixed(n_labeled: int = 40, **changes) -> fl.Predictions:
    """A verdict, a score without a scale and a probability, of the same items."""
    truth = truth_of()
    odds = log_odds(truth, (1.5, 1.5))
    said = {
        "verdict": judges(truth, (0.93,))[:, 0],
        "score": 250.0 + 40 * odds[:, 0],
        "probability": expit(odds[:, 1]),
    } | changes
    return fl.Predictions(said, some(truth, n_labeled))


# --- normal scores --------------------------------------------------------------------------


def test_normal_scores_are_standard_and_rising():
    values = np.random.default_rng(0).exponential(size=500)
    z = NormalScores.of(values)(values)
    assert z.mean() == pytest.approx(0, abs=1e-9)
    assert z.std() == pytest.approx(1)
    assert (np.diff(z[np.argsort(values)]) >= 0).all()


def test_equal_values_share_a_rank_and_a_constant_says_nothing():
    z = NormalScores.of(np.array([0.0, 0, 0, 1, 1, 2]))(np.array([0.0, 1, 2, np.nan]))
    assert z[0] < z[1] < z[2]
    assert np.isnan(z[3])
    assert (NormalScores.of(np.full(9, 0.3))(np.array([0.0, 0.3])) == 0).all()


def test_many_values_keep_their_order_between_knots():
    values = np.random.default_rng(0).normal(size=30_000)
    z = NormalScores.of(values)(values)
    assert np.abs(z - values).mean() < 0.02


# --- what is said ---------------------------------------------------------------------------


def test_every_kind_becomes_a_probability():
    given = mixed()
    informants = Informants.of(given)
    assert dict(zip(given.models, informants.kinds, strict=True)) == {
        "verdict": "vote", "score": "score", "probability": "probability",
    }  # fmt: skip
    said = informants.said(given).probabilities
    j = {name: place for place, name in enumerate(given.models)}
    np.testing.assert_array_equal(
        said[:, j["probability"]], given.probabilities[:, j["probability"]]
    )
    truth = truth_of()
    voted = said[given.hard[:, j["verdict"]] == 1, j["verdict"], 1]
    assert np.ptp(voted) == 0
    assert 0.75 < voted[0] < 0.97
    rising = said[np.argsort(given.scores[:, j["score"]]), j["score"], 1]
    assert (np.diff(rising) >= -1e-12).all()
    assert abs(said[:, j["score"], 1].mean() - truth.mean()) < 0.06


def test_a_score_that_falls_with_the_class_is_turned_round():
    given = mixed()
    turned = mixed(score=-given.scores[:, given.models.index("score")])
    upright, reversed_ = (Informants.of(p).said(p).probabilities for p in (given, turned))
    np.testing.assert_allclose(reversed_, upright, atol=5e-3)


def test_what_is_missing_stays_missing():
    given = mixed()
    votes = given.votes.copy()
    votes[:50] = -1
    said = Informants.of(given)
    p = fl.Predictions(given.probabilities, given.labels, votes=votes, scores=given.scores,
                       models=given.models)  # fmt: skip
    j = given.models.index("verdict")
    assert np.isnan(said.said(p).probabilities[:50, j]).all()


@pytest.mark.parametrize("turned", [False, True])
def test_a_latent_class_finds_the_classes_and_signs(turned):
    truth = truth_of()
    odds = log_odds(truth, (1.8, 1.5, 1.6, 1.4)) * (-1 if turned else 1, 1, 3, 0.2)
    given = fl.Predictions(expit(odds))
    informants = Informants.of(given)
    said = informants.said(given)
    index = informants.latent_index(said, "latent")[:, 1]
    assert roc_auc_score(truth, index) > 0.97
    shared = Informants.of(given.with_labels(some(truth, 100)))
    again = shared.latent_index(shared.said(given), "latent")[:, 1]
    np.testing.assert_array_equal(index, again)  # no label taught it


def test_votes_of_domains_have_rates_of_their_own():
    """The first judge is good in one domain, the second in the other."""
    truth = truth_of(2_000)
    home = np.arange(2_000) % 2 == 0
    good = judges(truth, (0.95, 0.6, 0.6, 0.7))
    poor = judges(truth, (0.6, 0.95, 0.6, 0.7), seed=5)
    votes = np.where(home[:, None], good, poor)
    names = np.where(home, "home", "abroad")
    informants = Informants.of(fl.Predictions(votes=votes, domain=names))
    index = informants.latent_index(
        informants.said(fl.Predictions(votes=votes, domain=names)), "votes"
    )
    pooled = Informants.of(fl.Predictions(votes=votes))
    alone = pooled.latent_index(pooled.said(fl.Predictions(votes=votes)), "votes")
    right, without = (((i[:, 1] > 0) == truth).mean() for i in (index, alone))
    assert right > without
    elsewhere = informants.said(fl.Predictions(votes=votes, domain=np.full(2_000, "moon")))
    assert np.ptp(informants.latent_index(elsewhere, "votes")) < 1e-9  # nothing is known there


def test_many_votes_of_many_classes_do_not_tie():
    """Pairs of ten classes are mixed up; thirty votes tell which of the two it is."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 10, 1_500)
    twin = truth ^ 1
    votes = np.where(rng.random((1_500, 30)) < 0.7, truth[:, None], twin[:, None])
    given = fl.Predictions(votes=votes, classes=list("abcdefghij"))
    informants = Informants.of(given)
    index = informants.latent_index(informants.said(given), "votes")
    assert (index.argmax(axis=1) == truth).mean() > 0.95
    top = np.sort(index, axis=1)
    assert (top[:, -1] - top[:, -2] > 0.1).mean() > 0.95


def gaps(n: int, classes: int) -> fl.Predictions:
    """Four classifiers, one item in five missing for each; 40 labels."""
    w = world(n, 4, classes, 40)
    p = w.P.copy()
    p[np.random.default_rng(0).random(p.shape[:2]) < 0.2] = np.nan
    return fl.Predictions(p, w.shown)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_latent_index_is_the_log_odds_of_two_normal_laws(classes):
    """Of what is there of every item, with one factor; and what is said stays as it is."""
    given = gaps(1_000, classes)
    informants = Informants.of(given)
    said = informants.said(given)
    before = said.ranked.scores.copy()
    index = informants.latent_index(said, "latent")
    np.testing.assert_array_equal(said.ranked.scores, before)
    assert informants.latent is not None
    for i in range(40):
        odds = []
        for c, side in enumerate(informants.latent.sides):
            z = before[i, :, c]
            there = ~np.isnan(z)
            covariance = np.diag(side.unique) + np.outer(side.loadings, side.loadings)
            covariance = covariance[np.ix_(there, there)]
            laws = [
                multivariate_normal.logpdf(z[there], m[there], covariance) if there.any() else 0.0
                for m in side.means
            ]
            odds.append(np.clip(side.log_odds + laws[1] - laws[0], -12, 12))
        wanted = np.r_[-odds[0], odds[0]] / 2 if classes == 2 else np.array(odds) - np.mean(odds)
        np.testing.assert_allclose(index[i], wanted, atol=1e-9)


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(6))
def test_a_vote_beside_probabilities_tells_as_much_as_it_does(seed):
    """Of five classes a vote is one word, not five: it is not believed to be always right."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(5, 1_500, p=[0.35, 0.1, 0.2, 0.1, 0.25])
    net, judge = (1.7 * np.eye(5)[truth] + rng.normal(0, 0.8, (1_500, 5)) for _ in range(2))
    said = {"net": softmax(1.6 * net), "judge": judge.argmax(axis=1)}
    predictions = fl.Predictions(said, some(truth, 30))
    table = Informants.of(predictions).tables[predictions.place["judge"]]
    right = [(truth[judge.argmax(axis=1) == c] == c).mean() for c in range(5)]
    np.testing.assert_allclose(np.diag(table.rows), right, atol=0.2)
    assert abs(np.diag(table.rows).mean() - np.mean(right)) < 0.1


@pytest.mark.parametrize("known", [True, False])
def test_votes_by_pattern_teach_what_votes_by_item_do(known, monkeypatch):
    """Items of the same votes, domain and label are one row; with none alike the same is found."""
    given = votes_of(500, n_classes=3, labeled=60, domain=np.arange(500) % 2)
    ballots = Informants.of(given).said(given).ballots
    start = np.random.default_rng(0).dirichlet(np.ones(3), 500)
    labels = given.labels if known else None
    sizes: list[int] = []

    def counted(*columns):
        sizes.append(len(patterns(*columns).first))
        return patterns(*columns)

    monkeypatch.setattr(module, "patterns", counted)
    fitted = VotedClasses.of(ballots, start, labels)
    assert sizes[0] < 400
    every = Patterns(np.arange(500), np.arange(500))
    monkeypatch.setattr(module, "patterns", lambda *columns: every)
    monkeypatch.setattr(module, "distinct_columns", lambda r: Patterns(np.arange(3), np.arange(3)))
    apart = VotedClasses.of(ballots, start, labels)
    np.testing.assert_allclose(fitted.log_rates, apart.log_rates, atol=1e-10)
    np.testing.assert_allclose(fitted.log_shares, apart.log_shares, atol=1e-10)


@pytest.mark.parametrize(("verdict", "times"), [(False, 1), (True, 2)])
def test_temperatures_are_found_once_for_the_same_logs(verdict, times, monkeypatch):
    """Votes get their log odds from the latent classes, which start without: other logs."""
    asked = []

    def counted(c):
        asked.append(c)
        return calibrated_pool(c)

    monkeypatch.setattr(belief_mixture, "calibrated_pool", counted)
    given = mixed() if verdict else gaps(300, 2)
    LearnedEnsemble(n_draws=20).fit(given, np.random.default_rng(0))
    assert len(asked) == times


# --- the mixture ----------------------------------------------------------------------------


def share(estimates: fl.Estimates, member: str) -> float:
    """What share of the answer rests on a member."""
    found = estimates.diagnostics["answered_by"]
    return sum(entry["share"] for entry in found if entry["member"] == member)


def test_no_classifier_is_judged_by_a_posterior_that_ignores_it():
    """A verdict that is right 97% of the time beside two weak scores: the truth is in reach."""
    truth = truth_of()
    odds = log_odds(truth, (0.6, 0.7))
    said = {"judge": judges(truth, (0.97,))[:, 0], "a": expit(odds[:, 0]), "b": expit(odds[:, 1])}
    estimates = fl.estimate(fl.Predictions(said, some(truth, 100)), metrics=["accuracy"])
    assert estimates.method == "learned-ensemble"
    row = estimates.get("judge", "accuracy")
    assert row.low <= (said["judge"] == truth).mean() <= row.high
    assert row.value > 0.9


def test_one_strong_classifier_is_found_by_the_labels():
    truth = truth_of()
    odds = log_odds(truth, (3.5, 0.3, 0.3, 0.2))
    given = fl.Predictions(expit(odds), some(truth, 60), models=["strong", "a", "b", "c"])
    estimates = fl.estimate(given, metrics=["accuracy", "roc_auc"])
    best = estimates.diagnostics["answered_by"][0]
    assert best["member"] == "strong alone"
    assert best["says"] == f"the labels give strong alone a weight of {best['share']:.0%}"
    for metric in ("accuracy", "roc_auc"):
        row = estimates.get("strong", metric)
        everything = fl.estimate(given.with_labels(truth), "labeled", [metric])
        assert row.low <= everything.get("strong", metric).value <= row.high


def test_shares_of_the_answer_add_up():
    found = fl.estimate(mixed(), metrics=["accuracy"]).diagnostics["answered_by"]
    assert 0.9 < sum(entry["share"] for entry in found) <= 1 + 1e-9
    shares = [entry["share"] for entry in found]
    assert shares == sorted(shares, reverse=True)
    silent = fl.estimate(mixed(0), metrics=["accuracy"]).diagnostics["answered_by"]
    assert all(entry["says"].startswith("before any label") for entry in silent)


def test_copies_of_votes_do_not_outvote_the_labels():
    """Three judges are one and the same; the labels know how often it is right."""
    truth = truth_of()
    rng = np.random.default_rng(4)
    one = judges(truth, (0.7,))[:, 0]
    copies = np.where(rng.random((len(truth), 3)) < 0.98, one[:, None], 1 - one[:, None])
    votes = np.column_stack([copies, judges(truth, (0.85, 0.85), seed=6)])
    given = fl.Predictions(votes=votes, labels=some(truth, 100))
    estimates = fl.estimate(given, metrics=["accuracy"])
    for j, row in enumerate(estimates.rows):
        assert row.low <= (votes[:, j] == truth).mean() <= row.high


def grades(n_labeled: int, weak: int = 0) -> tuple[fl.Predictions, np.ndarray]:
    """A judge's grades from 1 to 5, mostly near the truth."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 5, 2_000)
    said = np.clip(truth + rng.choice([-1, 0, 1], p=[0.2, 0.6, 0.2], size=2_000), 0, 4)
    labels = some(truth, n_labeled)
    return fl.Predictions(votes=said[:, None], labels=labels, classes=[1, 2, 3, 4, 5]), truth


def test_grades_that_are_near_each_other_are_known_to_be():
    given, truth = grades(40)
    posterior = LearnedEnsemble().infer(given, 0)
    place = np.arange(5)
    expected = posterior.marginals()[40:] @ place
    assert np.abs(expected - truth[40:]).mean() < 0.6
    assert any(
        e["member"] == "how near the grades are" for e in posterior.diagnostics["answered_by"]
    )
    named = fl.Predictions(votes=given.votes, labels=given.labels, classes=list("abcde"))
    without = LearnedEnsemble().infer(named, 0).diagnostics["answered_by"]
    assert all(e["member"] != "how near the grades are" for e in without)


@pytest.mark.slow
def test_how_far_off_a_judge_is_in_one_grade_is_known_in_the_others():
    """A judge never off by more than one; of plain classes the same votes might be off by more."""
    off = {True: [], False: []}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        truth = np.clip(np.round(2 + 1.2 * rng.normal(size=400)), 0, 4).astype(int)
        step = rng.choice([-1, 0, 1], p=[0.035, 0.93, 0.035], size=400)
        votes = np.clip(truth + step, 0, 4)[:, None]
        for numbers, classes in ((True, [1, 2, 3, 4, 5]), (False, list("abcde"))):
            given = fl.Predictions(votes=votes, labels=some(truth, 50), classes=classes)
            row = fl.estimate(given, metrics="spearman").rows[0]
            off[numbers].append(row.value - spearmanr(votes[:, 0], truth)[0])
            assert row.low < spearmanr(votes[:, 0], truth)[0] < row.high
    assert abs(np.mean(off[True])) < 0.015 < abs(np.mean(off[False]))


def test_a_label_does_not_foresee_itself():
    """P(class | vote) of a labeled item is that of a table without it."""
    votes, labels = np.array([1, 1, 1, 2, 0]), np.array([1, 2, -1, 0, -1])
    r = np.where(labels[:, None] < 0, 1 / 3, np.eye(3)[labels])
    table = VoteTable.of(votes, r)
    for item in range(5):
        rest = np.delete(np.arange(5), item) if labels[item] >= 0 else np.arange(5)
        expected = VoteTable.of(votes[rest], r[rest])(votes[[item]])
        np.testing.assert_allclose(table(votes, labels)[[item]], expected, rtol=1e-12)


@pytest.mark.parametrize("n_labeled", [0, 30])
def test_one_classifier_of_many_classes(n_labeled):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 6, 1_000)
    p = np.exp(rng.normal(size=(1_000, 6)) + 2.5 * np.eye(6)[truth])
    p /= p.sum(axis=1, keepdims=True)
    given = fl.Predictions(p, some(truth, n_labeled), classes=list("abcdef"))
    row = fl.estimate(given, metrics=["accuracy"]).rows[0]
    assert row.low <= (p.argmax(axis=1) == truth).mean() <= row.high
    assert row.status == ("ok" if n_labeled else "assumption")


# --- what a reference teaches -----------------------------------------------------------------


def referred(shift: float) -> tuple[fl.Predictions, fl.Predictions, np.ndarray]:
    """Classifiers three times too sure, labeled items of last month, and this month's."""
    truth = truth_of(2_000)
    odds = 3 * log_odds(truth, (1.3, 1.2, 1.4))
    elsewhere = truth_of(800, seed=9)
    before = 3 * log_odds(elsewhere, (1.3, 1.2, 1.4), seed=10) + shift
    return fl.Predictions(expit(odds)), fl.Predictions(expit(before), elsewhere), truth


def test_a_reference_stands_in_for_labels():
    given, reference, truth = referred(0.0)
    with_it, without = (fl.estimate(given, metrics=["accuracy"], reference=r).rows[0]
                        for r in (reference, None))  # fmt: skip
    accuracy = ((given.probabilities[:, 0, 1] > 0.5) == truth).mean()
    assert abs(with_it.value - accuracy) < 0.03
    assert with_it.low <= accuracy <= with_it.high
    assert with_it.high - with_it.low < 0.85 * (without.high - without.low)
    assert with_it.status == "assumption"  # that it still holds is what no label here tests


def test_labels_overrule_a_reference_that_misleads():
    given, reference, truth = referred(0.0)
    wrong = reference.with_labels(np.random.default_rng(3).permutation(reference.labels))
    estimates = fl.estimate(
        given.with_labels(some(truth, 60)), metrics=["accuracy"], reference=wrong
    )
    assert estimates.diagnostics["reference"]["weight"] < 0.05
    accuracy = ((given.probabilities[:, 0, 1] > 0.5) == truth).mean()
    row = estimates.rows[0]
    assert row.low <= accuracy <= row.high


# --- what auto is -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "labeled", "method"),
    [
        ("pp", 0, "learned-ensemble"),
        ("pp", 9, "learned-ensemble"),
        ("p", 9, "monotone-curves"),
        ("s", 0, "monotone-curves"),
        ("ss", 9, "learned-ensemble"),
        ("vp", 0, "learned-ensemble"),
        ("vvvs", 9, "learned-ensemble"),
        ("vvv", 9, "learned-ensemble"),
        ("vv", 9, "learned-ensemble"),
        ("vvv", 0, "vote-selection"),
        ("vv", 0, "vote-selection"),
        ("v", 9, "learned-ensemble"),
    ],
)
def test_auto(said, labeled, method):
    truth = truth_of(60)
    odds = log_odds(truth, np.ones(len(said)))
    votes = judges(truth, np.full(len(said), 0.8))
    kinds = {
        "p": lambda j: expit(odds[:, j]),
        "s": lambda j: odds[:, j],
        "v": lambda j: votes[:, j],
    }
    given = fl.Predictions(
        {f"m{j}": kinds[kind](j) for j, kind in enumerate(said)}, some(truth, labeled)
    )
    assert resolve("auto", given)[0] == method


# --- worlds that fooled an earlier default ------------------------------------------------------


def held(
    said, truth: np.ndarray, n_labeled: int, runs: int, metric: str = "accuracy"
) -> np.ndarray:
    """How often the 90% interval of each classifier holds its accuracy among all items, (M,)."""
    everything = fl.Predictions(said, truth)
    true = fl.estimate(everything, "labeled", metric, confidence_level=None).rows
    out = []
    for run in range(runs):
        order = np.random.default_rng(run).permutation(len(truth))[: 600 + n_labeled]
        some_ = everything.take(order)
        given = some_.with_labels(np.where(np.arange(len(order)) < n_labeled, some_.labels, -1))
        rows = fl.estimate(given, metrics=metric, confidence_level=0.9, random_state=run).rows
        out.append([row.low <= t.value <= row.high for row, t in zip(rows, true, strict=True)])
    return np.mean(out, axis=0)


@pytest.mark.slow
def test_hard_predictions_of_real_classifiers_with_labels():
    """Three classifiers that share mistakes: agreement alone takes them for far better."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    x, digit = load_digits(return_X_y=True)
    truth = (digit % 2).astype(int)
    learners = (
        LogisticRegression(C=1e-3, max_iter=2_000),
        GaussianNB(),
        DecisionTreeClassifier(max_depth=3),
    )
    votes = np.column_stack([m.fit(x[:200], truth[:200]).predict(x[200:]) for m in learners])
    said = {f"m{j}": votes[:, j] for j in range(3)}
    share = held(said, truth[200:], 60, 8)
    assert share.min() >= 0.6
    assert share.mean() >= 0.75


@pytest.mark.slow
def test_gains_that_differ():
    """Probabilities far too sure beside others far too timid, one of them reversed."""
    truth = truth_of(8_000)
    odds = log_odds(truth, (1.5, 1.4, 1.6, 1.5)) * (8, 0.1, 1, -1)
    said = {f"m{j}": expit(odds[:, j]) for j in range(4)}
    share = held(said, truth, 60, 8)
    assert share.mean() >= 0.75
    assert share.min() >= 0.5


def index_by_all_classes(votes, start, labels, later):
    """Centred logs of P(class) of votes and later ones, by EM over every pair of classes."""
    r, k = start, start.shape[1]
    for _ in range(module.VOTE_STEPS):
        r = np.where(labels[:, None] >= 0, np.arange(k) == labels[:, None], r)
        seen = np.stack([[r[own == v].sum(axis=0) for v in range(k)] for own in votes.T])
        seen += module.SMOOTHING * 2 / k
        rates, shares = np.log(seen / seen.sum(axis=1, keepdims=True)), r.sum(axis=0) + 0.5
        both = np.concatenate([votes, later])
        h = np.log(shares / shares.sum()) + sum(rates[j][own] for j, own in enumerate(both.T))
        h = np.maximum(h - h.max(axis=1, keepdims=True), -24)
        r = np.exp(h[: len(votes)]) / np.exp(h[: len(votes)]).sum(axis=1, keepdims=True)
    return h - h.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("n_classes", [3, 40])
def test_votes_and_classes_that_differ_stand_for_all(n_classes):
    """As matrices of all pairs of classes say, also of votes that were not cast when fitted."""
    rng = np.random.default_rng(4)
    truth = rng.zipf(1.5, 300) % n_classes
    guesses = rng.integers(n_classes, size=(300, 3))
    votes = np.where(rng.random((300, 3)) < 0.7, truth[:, None], guesses)
    labels = np.where(np.arange(300) < 40, truth, -1)
    given = fl.Predictions(votes=votes, labels=labels, classes=range(n_classes))
    some = given.take(np.arange(120))
    start = np.where(votes[:120, :1] == np.arange(n_classes), 0.8, 0.2 / (n_classes - 1))
    ballots = Informants.of(given).said(given).ballots
    fitted = VotedClasses.of(Informants.of(some).said(some).ballots, start, some.labels)
    expected = index_by_all_classes(votes[:120], start, labels[:120], votes[120:])
    np.testing.assert_allclose(fitted.index(ballots), expected, atol=1e-10)
    cast = {(j, v) for vote in votes[:120] for j, v in enumerate(vote)}
    assert len(fitted.log_rates) == len(cast) + 2 * 3  # others of 3 voters, in 2 domains
    if n_classes > 3:
        assert fitted.log_rates.shape[1] < n_classes
        assert any((j, v) not in cast for vote in votes[120:] for j, v in enumerate(vote))


def test_what_a_vote_tells_holds_the_votes_that_occur():
    """P(class | vote) as by a matrix of all votes; one that was not cast is a usual voter's."""
    votes, r = np.array([2, 4, 2, -1]), np.random.default_rng(0).dirichlet(np.ones(6), 4)
    every = np.full((6, 6), 0.2 / 5) + np.eye(6) * (0.8 - 0.2 / 5)
    every += np.stack([r[votes == v].sum(axis=0) for v in range(6)])
    every = (every / every.sum(axis=1, keepdims=True)) ** 0.8
    table = VoteTable.of(votes, r)
    assert table.rows.shape == (2, 6)
    asked = np.array([5, 2, 0, 4, 2])
    expected = (every / every.sum(axis=1, keepdims=True))[asked]
    np.testing.assert_allclose(table(asked), expected, rtol=1e-12)
