"""Dawid-Skene: against crowd-kit, against a naive loop, and what is particular to it."""

from __future__ import annotations

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.methods.em import expectation_maximisation
from fewlabels.methods.votes.dawid_skene import DawidSkene


def crowd(
    n: int = 400,
    skill: tuple[float, ...] = (0.9, 0.8, 0.7, 0.6),
    n_classes: int = 3,
    missing: float = 0.2,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Votes (n, M) of classifiers that err independently of each other, and the truth."""
    rng = np.random.default_rng(seed)
    share = np.arange(1, n_classes + 1)
    truth = rng.choice(n_classes, size=n, p=share / share.sum())
    wrong = (truth[:, None] + rng.integers(1, n_classes, size=(n, len(skill)))) % n_classes
    votes = np.where(rng.random((n, len(skill))) < skill, truth[:, None], wrong)
    votes[rng.random(votes.shape) < missing] = -1
    votes[(votes < 0).all(axis=1), 0] = 0
    return votes, truth


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("iterations", [1, 7, pytest.param(60, marks=pytest.mark.slow)])
def test_agrees_with_crowd_kit(iterations):
    aggregation = pytest.importorskip("crowdkit.aggregation")
    pandas = pytest.importorskip("pandas")
    votes, _ = crowd()
    task, worker = np.nonzero(votes >= 0)
    table = pandas.DataFrame({"task": task, "worker": worker, "label": votes[task, worker]})
    theirs = aggregation.DawidSkene(n_iter=iterations, tol=-1.0).fit_predict_proba(table)
    ours = DawidSkene(iterations=iterations, tolerance=0.0).infer(fl.Predictions(votes=votes), 0)
    expected = theirs.sort_index()[[0, 1, 2]].to_numpy()
    np.testing.assert_allclose(ours.marginals(), expected, atol=1e-6)


def test_finds_confusion_matrices_without_labels():
    votes, truth = crowd(n=20_000, missing=0.0)
    posterior = DawidSkene().infer(fl.Predictions(votes=votes), 0)
    errors = list(posterior.diagnostics["error_rate"].values())
    np.testing.assert_allclose(errors, (votes != truth[:, None]).mean(axis=0), atol=0.01)
    shares = list(posterior.diagnostics["class_share"].values())
    np.testing.assert_allclose(shares, np.bincount(truth) / 20_000, atol=0.01)
    assert posterior.diagnostics["vote_patterns"] <= 3**4
    assert posterior.status == "assumption"
    assert posterior.warnings[0].startswith(
        "assumption: no labels; error rates rest on classifiers"
    )


def test_with_labels_independence_is_still_assumed():
    votes, truth = crowd(n=2000)
    labels = np.where(np.arange(2000) < 100, truth, -1)
    posterior = DawidSkene().infer(fl.Predictions(votes=votes, labels=labels), 0)
    assert posterior.status == "assumption"
    assert [w.partition(",")[0] for w in posterior.warnings] == [
        "assumption: classifiers err independently of each other"
    ]


@pytest.mark.parametrize("size", [1, 2])
def test_too_few_classifiers_without_labels(size):
    votes, _ = crowd(missing=0.0)
    posterior = DawidSkene().infer(fl.Predictions(votes=votes[:, :size]), 0)
    assert posterior.status == "assumption"
    few = "assumption: fewer than 3 classifiers vote on the same items"
    assert any(w.startswith(few) for w in posterior.warnings)


def test_traded_names_are_noticed():
    """Every classifier calls class 0 class 1 and the other way round; labels say so."""
    votes, truth = crowd(n_classes=2, missing=0.0)
    posterior = DawidSkene().infer(fl.Predictions(votes=1 - votes, labels=truth), 0)
    assert posterior.status == "assumption"
    assert posterior.warnings[1:] == (
        "assumption: items of 0, 1 are mostly called otherwise by the classifiers; these "
        "classes may have traded names",
    )


def test_stopping_early_is_a_status():
    votes, _ = crowd()
    posterior = DawidSkene(iterations=1).infer(fl.Predictions(votes=votes), 0)
    assert posterior.status == "not-converged"
    assert any(w.startswith("not-converged: after 1 iterations") for w in posterior.warnings)


def test_annotators_count_as_evidence():
    votes, truth = crowd(n=600)
    histogram = np.zeros((600, 3))
    histogram[np.arange(200), truth[:200]] = 30
    told = DawidSkene().infer(fl.Predictions(votes=votes, histogram=histogram), 0)
    labels = np.where(np.arange(600) < 200, truth, -1)
    known = DawidSkene().infer(fl.Predictions(votes=votes, labels=labels), 0)
    np.testing.assert_allclose(told.marginals(), known.marginals(), atol=1e-4)


def test_items_without_votes_get_the_class_shares():
    votes, truth = crowd(n=500, missing=0.0)
    votes[450:] = -1
    labels = np.where(np.arange(500) < 400, truth, -1)
    posterior = DawidSkene(tolerance=1e-9).infer(fl.Predictions(votes=votes, labels=labels), 0)
    shares = list(posterior.diagnostics["class_share"].values())
    np.testing.assert_allclose(posterior.marginals()[450:], np.tile(shares, (50, 1)), atol=1e-6)


def test_other_items_are_judged_by_what_was_learned():
    votes, truth = crowd(n=1000)
    labels = np.where(np.arange(1000) < 50, truth, -1)
    whole = fl.Predictions(votes=votes, labels=labels)
    fitted = DawidSkene().fit(whole, np.random.default_rng(0))
    new, _ = crowd(n=60, missing=0.5, seed=1)
    found = fitted.posterior(fl.Predictions(votes=new, classes=[0, 1, 2])).marginals()
    rates = fitted.rates
    joint = np.tile(rates.shares[0, :, 0], (60, 1))
    for i, j in np.argwhere(new >= 0):
        joint[i] *= rates.confusion[0, j, new[i, j], :, 0]
    np.testing.assert_allclose(found, joint / joint.sum(axis=1, keepdims=True), atol=1e-12)


def test_refits_spread_like_fresh_samples():
    """The bootstrap's spread of an error rate is that over samples drawn anew."""

    def error(seed):
        votes, truth = crowd(n=800, missing=0.0, seed=seed)
        labels = np.where(np.arange(800) < 100, truth, -1)
        model = DawidSkene(replicates=60)
        return model.fit(fl.Predictions(votes=votes, labels=labels), np.random.default_rng(0))

    def rate(rates):
        return 1 - np.einsum("jkkb,kb->jb", rates.confusion[0], rates.shares[0])

    fresh = np.concatenate([rate(error(seed).rates) for seed in range(60)], axis=1).std(axis=1)
    boot = rate(error(0).refits).std(axis=1)
    np.testing.assert_allclose(boot, fresh, rtol=0.4)


def test_one_rate_finds_the_error_rates():
    votes, truth = crowd(n=20_000, missing=0.0)
    posterior = DawidSkene(rates="one").infer(fl.Predictions(votes=votes), 0)
    errors = list(posterior.diagnostics["error_rate"].values())
    np.testing.assert_allclose(errors, (votes != truth[:, None]).mean(axis=0), atol=0.01)


@pytest.mark.parametrize("rates", ["confusion", "one"])
def test_domains_by_themselves_are_fits_of_each(rates):
    parts = [crowd(n=200, seed=seed, n_classes=2)[0] for seed in range(3)]
    domain = np.repeat(["x", "y", "z"], 200)
    order = np.random.default_rng(0).permutation(600)
    whole = fl.Predictions(votes=np.concatenate(parts)[order], domain=domain[order])
    options = {"rates": rates, "iterations": 15, "tolerance": 0.0, "smoothing": 0.1}
    fitted = DawidSkene(by_domain=True, **options).fit(whole, np.random.default_rng(0))
    posterior = fitted.posterior(whole)
    for name, votes in zip("xyz", parts, strict=True):
        # The start of items without votes is the mean of all domains; there are none here.
        alone = DawidSkene(**options).infer(fl.Predictions(votes=votes), 0)
        rows = np.flatnonzero(domain[order] == name)
        back = np.argsort(order[rows])
        np.testing.assert_allclose(posterior.marginals()[rows][back], alone.marginals(), atol=1e-10)
        assert posterior.diagnostics["error_rate"][name] == pytest.approx(
            alone.diagnostics["error_rate"]
        )
    part = fitted.posterior(whole.take(np.arange(50)))
    np.testing.assert_allclose(part.marginals(), posterior.marginals()[:50], atol=1e-12)
    with pytest.raises(fl.InputError, match="domain w is not among those"):
        fitted.posterior(fl.Predictions(votes=[[0, 1, 0, 1]], domain=["w"]))


def test_repeated_votes_count():
    """An annotator who votes twice alike says as much as two who are equally good."""
    votes, _ = crowd(n=300, missing=0.3)
    i, j = (a[:60] for a in np.nonzero(votes >= 0))
    again = np.stack([i, j, votes[i, j]], axis=1)
    repeated = fl.Predictions(votes=votes, repeated_votes=again)
    found = DawidSkene(iterations=1).fit(repeated, np.random.default_rng(0))
    counts = repeated.vote_counts.toarray()
    start = counts.reshape(300, 4, 3).sum(axis=1)
    start /= start.sum(axis=1, keepdims=True)
    seen = np.einsum("iv,ik->vk", counts, start).reshape(4, 3, 3)
    np.testing.assert_allclose(
        found.rates.confusion[0, :, :, :, 0], seen / seen.sum(axis=1, keepdims=True), atol=1e-9
    )


def test_smoothing_and_start_of_the_paper():
    """Pseudo-counts in every cell and class, EM from the majority's labels."""
    votes = np.array([[0, 0, 1], [1, 1, 1], [1, 0, 1], [0, 0, 0]])
    model = DawidSkene(smoothing=0.01, start="majority", iterations=1)
    rates = model.fit(fl.Predictions(votes=votes), np.random.default_rng(0)).rates
    label = np.array([0, 1, 1, 0])
    expected = [
        [[(votes[label == k, j] == v).sum() + 0.01 for k in (0, 1)] for v in (0, 1)]
        for j in range(3)
    ]
    np.testing.assert_allclose(rates.confusion[0, :, :, :, 0], np.array(expected) / 2.02)
    np.testing.assert_allclose(rates.shares[0, :, 0], [0.5, 0.5])


def test_refits_from_where_em_ended_have_converged():
    votes, _ = crowd(n=600, skill=(0.75, 0.7, 0.65, 0.6, 0.7), n_classes=2)
    model = DawidSkene(replicates=100, tolerance=1e-7, iterations=2000)
    fitted = model.fit(fl.Predictions(votes=votes), np.random.default_rng(0))
    quick = DawidSkene(replicates=100).fit(fl.Predictions(votes=votes), np.random.default_rng(0))
    spread = [f.refits.confusion[0, :, 0, 1].std(axis=1) for f in (quick, fitted)]
    np.testing.assert_allclose(spread[0], spread[1], rtol=0.3)


def test_votes_that_never_differ_are_said():
    votes = np.tile(np.arange(2), 30)[:, None].repeat(3, axis=1)
    said = DawidSkene().infer(fl.Predictions(votes=votes), 0).warnings
    assert any(w.startswith("assumption: the classifiers never disagree") for w in said)


def test_a_classifier_without_votes_in_a_domain_has_no_rate_there():
    votes, _ = crowd(n=200, missing=0.0)
    votes[:100, 3] = -1
    whole = fl.Predictions(votes=votes, domain=np.repeat(["x", "y"], 100))
    found = DawidSkene(by_domain=True).infer(whole, 0).diagnostics["error_rate"]
    assert np.isnan(found["x"]["model3"])
    assert 0 <= found["y"]["model3"] <= 1


@pytest.mark.slow
@pytest.mark.product
@pytest.mark.parametrize("rates", ["confusion", "one"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_extrapolated_steps_reach_the_fixed_point_of_plain_ones(rates, smoothing):
    table = fl.Predictions(votes=crowd(seed=4, skill=(0.8, 0.7, 0.7, 0.6))[0])
    options = {"rates": rates, "smoothing": smoothing, "replicates": 3}
    plain = DawidSkene(iterations=3000, tolerance=0.0, **options).fit(
        table, np.random.default_rng(0)
    )
    quick = DawidSkene(iterations=3000, tolerance=1e-13, **options).fit(
        table, np.random.default_rng(0)
    )
    assert np.allclose(quick.rates.confusion, plain.rates.confusion, atol=1e-8)
    assert np.allclose(quick.refits.shares, plain.refits.shares, atol=1e-7)
    loose = DawidSkene(iterations=3000, tolerance=1e-8, **options).fit(
        table, np.random.default_rng(0)
    )
    assert loose.result.iterations < steps_of_plain_em(loose, 1e-8)


def steps_of_plain_em(fitted, tolerance):
    """How many steps EM takes that does not extrapolate."""
    table, counts = fitted.table, fitted.counts
    return expectation_maximisation(
        lambda w: table.expect(table.maximise(w, counts)),
        fitted.start,
        iterations=5000,
        tolerance=tolerance,
        counts=counts,
    ).iterations


def test_extrapolated_steps_never_lose_likelihood():
    table = fl.Predictions(votes=crowd(seed=5)[0])
    likely = [
        fitted.table.likelihood(fitted.rates, fitted.counts)[1][0]
        for steps in range(2, 30, 2)
        for fitted in [
            DawidSkene(iterations=steps, tolerance=1e-300).fit(table, np.random.default_rng(0))
        ]
    ]
    assert (np.diff(likely) >= -1e-9 * np.abs(likely[0])).all()
