"""Labels that are distributions: any label model, judged against what annotators say."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.kernels.counter_based import hash_columns
from fewlabels.methods.label_distribution import (
    concentration_draws,
    draw_labels_of_annotators,
    effective_labels,
    likeliest_concentration,
    round_at_random,
)
from fewlabels.models import (
    SSMEKDE,
    LabelDistribution,
    Labeled,
    SSMEKDEMarginal,
    TemperedEnsemble,
)

quick = partial(fl.estimate, method="tempered-ensemble", metrics="accuracy")


def world(n, counts, seed=0, k=3, concentration=2.0):
    """Three classifiers, the distribution Q of every item, and counts of so many labels (n,)."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.5, (n, k))
    f = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    q = np.array([rng.dirichlet(concentration * p + 1e-3) for p in f])
    noisy = logits[:, None, :] + rng.normal(0, 0.7, (n, 3, k))
    p = np.exp(noisy) / np.exp(noisy).sum(axis=2, keepdims=True)
    h = np.array([rng.multinomial(c, x / x.sum()) for c, x in zip(counts, q, strict=True)])
    return p, q, h


def random_agreement(p, q):
    """How often each classifier says what a random annotator says."""
    return np.array(
        [q[np.arange(len(q)), p[:, j].argmax(axis=1)].mean() for j in range(p.shape[1])]
    )


class TestDrawnLabels:
    def test_as_many_as_asked_and_only_those_there_are(self):
        rng = np.random.default_rng(0)
        counts = rng.integers(0, 4, (300, 3))
        sizes = rng.integers(0, 5, 300).clip(max=counts.sum(axis=1))
        keys = hash_columns(list(counts.T), 300)
        item, label = draw_labels_of_annotators(counts.astype(float), sizes, keys, 1)
        np.testing.assert_array_equal(np.bincount(item, minlength=300), sizes)
        drawn = np.zeros_like(counts)
        np.add.at(drawn, (item, label), 1)
        assert (drawn <= counts).all()
        assert (np.diff(item) >= 0).all()

    def test_each_label_is_as_likely(self):
        counts = np.tile([3.0, 1.0, 2.0], (6000, 1))
        keys = hash_columns([np.arange(6000)], 6000)
        _, label = draw_labels_of_annotators(counts, np.ones(6000, dtype=int), keys, 5)
        share = np.bincount(label) / 6000
        np.testing.assert_allclose(share, [0.5, 1 / 6, 1 / 3], atol=4 * 0.5 / np.sqrt(6000))

    def test_what_labels_of_one_item_are_worth(self):
        sizes = np.array([1.0, 2.0, 50.0])
        np.testing.assert_allclose(effective_labels(sizes, 0.0), 1.0)
        np.testing.assert_allclose(effective_labels(sizes, 1e12), sizes)
        assert effective_labels(np.array([1e9]), 1e12)[0] == 100
        worth = effective_labels(sizes, 2.0)
        np.testing.assert_allclose(worth, [1, 1.5, 50 / (1 + 49 / 3)])
        assert (worth < 3).all()

    def test_the_design_effect_is_that_of_the_dirichlet(self):
        """Variance of a share of n labels, f(1 - f) times (1 + (n - 1) rho) / n."""
        rng = np.random.default_rng(0)
        q = rng.beta(2 * 0.3, 2 * 0.7, 200_000)
        share = rng.binomial(5, q) / 5
        wanted = 0.3 * 0.7 / effective_labels(np.array([5.0]), 2.0)[0]
        assert share.var() == pytest.approx(wanted, rel=0.02)

    def test_rounding_keeps_the_mean(self):
        keys = hash_columns([np.arange(20_000)], 20_000)
        rounded = round_at_random(np.full(20_000, 1.3), keys, 0)
        assert set(rounded.tolist()) == {1, 2}
        assert rounded.mean() == pytest.approx(1.3, abs=4 * 0.46 / np.sqrt(20_000))

    def test_the_likeliest_concentration_is_near_the_true_one(self):
        rng = np.random.default_rng(1)
        f = rng.dirichlet([1, 1, 1], 4000)
        q = np.array([rng.dirichlet(3 * p + 1e-9) for p in f])
        h = np.array([rng.multinomial(5, x) for x in q]).astype(float)
        keys = hash_columns([np.arange(4000)], 4000)
        assert likeliest_concentration(f, h, keys) == pytest.approx(3, rel=0.15)
        draws = concentration_draws(f, h, keys)
        assert np.quantile(draws, 0.02) < 3 < np.quantile(draws, 0.98)
        assert np.log(draws).std() < 0.1

    def test_without_pairs_the_concentration_is_one(self):
        nothing = np.empty((0, 3))
        assert concentration_draws(nothing, nothing, np.empty(0, dtype=np.uint64)).tolist() == [1]

    @pytest.mark.parametrize("alpha0", [0.2, 2.0, 20.0])
    def test_half_way_errs_the_same_whatever_the_concentration(self, alpha0):
        """(f + h) / 2 is off Q by a quarter of a label's variance, which alpha0 = 1 claims."""
        rng = np.random.default_rng(0)
        q = rng.beta(alpha0 * 0.3, alpha0 * 0.7, 200_000)
        h = rng.binomial(1, q)
        mean = (0.3 + h) / 2
        assert ((mean - q) ** 2).mean() == pytest.approx(0.3 * 0.7 / 4, rel=0.02)
        assert (mean * (1 - mean) / 3).mean() == pytest.approx(0.3 * 0.7 / 4, rel=0.02)

    def test_the_order_of_very_many_items_is_irrelevant(self):
        rng = np.random.default_rng(2)
        f = rng.dirichlet([1, 1], 12_000)
        h = rng.multinomial(3, f).astype(float)
        keys = hash_columns([np.arange(12_000)], 12_000)
        back = np.argsort(f[:, 0])
        a, b = (likeliest_concentration(f[o], h[o], keys[o]) for o in (np.arange(12_000), back))
        assert a == b


class TestAsHistograms:
    def test_a_label_is_one_annotator_where_there_is_no_count(self):
        p = fl.Predictions(
            np.full((4, 1, 2), 0.5), [1, 1, -1, -1], histogram=[[0, 0], [3, 0], [1, 2], [0, 0]]
        )
        told = p.as_histograms()
        assert told.histogram.tolist() == [[0, 1], [3, 0], [1, 2], [0, 0]]
        assert (told.labels == -1).all()
        assert (p.labels >= 0).sum() == 2
        assert told.as_histograms() is told

    def test_what_is_named(self):
        p = fl.Predictions(
            np.full((4, 1, 2), 0.5), [1, 1, -1, -1], histogram=[[0, 0], [3, 0], [1, 2], [0, 0]]
        )
        item, label = p.named
        assert item.tolist() == [0, 1, 2, 2]
        assert label.tolist() == [1, 1, 0, 1]


class TestPosterior:
    def test_counts_update_what_fits_without_them_say(self):
        """E[(alpha0 f + h) / (alpha0 + n)], f from a fit without the item's labels."""
        p, _, h = world(400, np.r_[np.full(100, 4), np.zeros(300, dtype=int)])
        told = fl.Predictions(p, histogram=h)
        model = LabelDistribution(TemperedEnsemble(), imputations=2).fit(
            told, np.random.default_rng(0)
        )
        found = model.posterior(told)
        a = model.concentrations[0]
        fold = (told.keys % np.uint64(5)).astype(int)
        blank = told.with_evidence(None)
        for r in range(5):
            rows = np.flatnonzero((fold == r) & h.any(axis=1))
            f = model.apart[r].posterior(blank.take(rows)).marginals()
            share = (a / (a + 4)).mean()
            wanted = share * f + (1 - share) * h[rows] / 4
            np.testing.assert_allclose(found.marginals()[rows], wanted, atol=1e-9)
        alone = np.mean([fit.posterior(blank).marginals() for fit in model.fits], axis=0)
        np.testing.assert_allclose(found.marginals()[100:], alone[100:], atol=1e-12)
        spread = found.label_spread.of(np.array([0]), np.arange(400))[:, 0]
        np.testing.assert_allclose(spread, 1 / np.sqrt(1 + a[0] + h.sum(axis=1)))

    def test_labels_are_not_used_twice(self):
        """A model that repeats the labels it has seen must not make annotators seem of one mind."""
        p, _, h = world(300, np.r_[np.full(80, 4), np.zeros(220, dtype=int)])
        model = LabelDistribution(SSMEKDE(), imputations=2).fit(
            fl.Predictions(p, histogram=h), np.random.default_rng(0)
        )
        assert np.median(model.concentrations[0]) < 6  # 2 in truth; 70 by the fits that saw them

    def test_draws_are_the_models_and_average_to_the_marginals(self):
        p, _, h = world(200, np.r_[np.full(60, 3), np.zeros(140, dtype=int)])
        found = LabelDistribution(TemperedEnsemble(), imputations=4).infer(
            fl.Predictions(p, histogram=h), 0
        )
        total = sum(
            np.tensordot(w, draws, 1) for w, draws in found.soft_draws(found.parameters.size)
        )
        np.testing.assert_allclose(total, found.marginals(), atol=0.02)
        np.testing.assert_allclose(found.marginals().sum(axis=1), 1)

    def test_a_distribution_that_is_known_leaves_nothing_to_draw(self):
        """With very many labels per item, intervals for these very items shrink to the value."""
        p, q, _ = world(120, np.zeros(120, dtype=int))
        h = np.rint(q * 10**6)
        found = quick(fl.Predictions(p, histogram=h), estimand="sample")
        truth = random_agreement(p, h / h.sum(axis=1, keepdims=True))
        for j in range(3):
            row = found.get(found.models[j], "accuracy")
            assert row.value == pytest.approx(truth[j], abs=1e-3)
            assert row.high - row.low < 0.03

    def test_single_labels_say_nothing_of_the_spread(self):
        p, _, h = world(300, np.r_[np.ones(80, dtype=int), np.zeros(220, dtype=int)])
        found = LabelDistribution(TemperedEnsemble()).infer(fl.Predictions(p, histogram=h), 0)
        assert found.diagnostics["imputations"] == 1
        assert found.status is fl.Status.ASSUMPTION
        assert any("no item has two labels" in w for w in found.warnings)
        labels = np.where(h.any(axis=1), h.argmax(axis=1), -1)
        rng = np.random.default_rng(0)
        rng.integers(2**63)  # what the drawing of labels takes
        plain = TemperedEnsemble().infer(fl.Predictions(p, labels), rng)
        np.testing.assert_allclose(found.marginals()[80:], plain.marginals()[80:], atol=1e-12)

    def test_a_known_label_keeps_its_probability(self):
        p, _, h = world(200, np.r_[np.full(50, 3), np.zeros(150, dtype=int)])
        labels = np.full(200, -1)
        labels[60:80] = 1
        found = quick(fl.Predictions(p, labels, histogram=h))
        assert found.against == "distribution"
        np.testing.assert_array_equal(found.posterior.marginals()[60:80], np.eye(3)[[1] * 20])

    def test_each_classifier_has_a_concentration_of_its_own(self):
        p, _, h = world(400, np.r_[np.full(150, 5), np.zeros(250, dtype=int)], k=2)
        p[:, 2] = np.random.default_rng(0).dirichlet([2, 2], 400)
        model = LabelDistribution(SSMEKDEMarginal(), imputations=2).fit(
            fl.Predictions(p, histogram=h), np.random.default_rng(0)
        )
        of_all, first, _, random = (np.median(a) for a in model.concentrations)
        assert random < first
        assert of_all > random

    def test_items_of_no_weight_may_be_annotated(self):
        p, _, h = world(100, np.r_[np.full(30, 3), np.zeros(70, dtype=int)])
        weight = np.r_[np.zeros(30), np.ones(70)]
        found = quick(fl.Predictions(p, histogram=h, weight=weight))
        assert all(np.isfinite(r.value) for r in found.rows)


class TestEstimate:
    def test_labeled_is_the_mean_over_annotators(self):
        p, _, h = world(400, np.r_[np.full(100, 4), np.ones(50, dtype=int), np.zeros(250, int)])
        found = fl.estimate(fl.Predictions(p, histogram=h), "labeled", ["accuracy", "brier"])
        rows = h.any(axis=1)
        mu = h[rows] / h[rows].sum(axis=1, keepdims=True)
        for j, model in enumerate(found.models):
            z = p[rows, j]
            accuracy = mu[np.arange(len(z)), z.argmax(axis=1)].mean()
            brier = (mu * ((np.eye(3)[None] - z[:, None]) ** 2).sum(axis=2)).sum(axis=1).mean()
            assert found.get(model, "accuracy").value == pytest.approx(accuracy, abs=1e-12)
            assert found.get(model, "brier").value == pytest.approx(brier, abs=1e-12)
        assert found.to_dict()["against"] == "distribution"
        assert any("against the distribution" in w for w in found.warnings)

    def test_labels_beside_counts_are_one_annotators(self):
        p, _, h = world(300, np.r_[np.full(60, 3), np.ones(40, dtype=int), np.zeros(200, int)])
        labels = np.full(300, -1)
        labels[60:100] = h[60:100].argmax(axis=1)
        several = np.where(np.arange(300)[:, None] < 60, h, 0)
        a = quick(fl.Predictions(p, labels, histogram=several))
        b = quick(fl.Predictions(p, histogram=h))
        for x, y in zip(a.rows, b.rows, strict=True):
            assert x.value == pytest.approx(y.value, abs=0.01)
        assert (a.n_labeled, a.n_annotated) == (40, 100)

    @pytest.mark.slow_with("ssme-kde-marginal")
    @pytest.mark.parametrize(
        ("method", "estimand"),
        [("auto", "population"), ("labeled", "sample"), ("ensemble", "sample"),
         ("ssme-kde-marginal", "sample")],
    )  # fmt: skip
    def test_every_kind_of_method(self, method, estimand):
        p, q, h = world(300, np.r_[np.full(80, 4), np.zeros(220, dtype=int)], seed=4)
        found = fl.estimate(
            fl.Predictions(p, histogram=h), method, ["accuracy", "ece", "auc"],
            estimand=estimand, confidence_level=0.9,
        )  # fmt: skip
        for row in found.rows:
            assert row.low <= row.value <= row.high
        truth = random_agreement(p, q)
        for j, model in enumerate(found.models):
            assert abs(found.get(model, "accuracy").value - truth[j]) < 0.12

    def test_the_class_when_asked_and_where_every_item_has_one(self):
        p, _, h = world(200, np.r_[np.full(50, 3), np.zeros(150, dtype=int)])
        told = fl.Predictions(p, histogram=h)
        assert quick(told, against="class").against == "class"
        assert quick(told).against == "distribution"
        single = fl.Predictions(p, histogram=np.minimum(h.cumsum(axis=1), 1) * 0 + np.eye(3)[0])
        assert quick(single).against == "class"
        labels = np.where(np.arange(200) < 40, h.argmax(axis=1), -1)  # ten have opinions alone
        beside = fl.Predictions(p, labels, histogram=h)
        assert quick(beside).against == "class"
        forced = quick(beside, against="distribution")
        assert any("40 known labels beside counts are not used" in w for w in forced.warnings)
        assert fl.estimate(told, "dawid-skene", "accuracy").against == "class"

    def test_what_cannot_be_judged_so_is_refused(self):
        p, _, h = world(60, np.full(60, 3))
        told = fl.Predictions(p, histogram=h)
        with pytest.raises(fl.UsageError, match="must be one of auto, class, distribution"):
            fl.estimate(told, against="truth")
        with pytest.raises(fl.UsageError, match="does not use counts of annotators"):
            fl.estimate(told, "autoeval", against="distribution")
        with pytest.raises(fl.UsageError, match="models votes about one true class"):
            fl.estimate(told, "dawid-skene", against="distribution")
        with pytest.raises(fl.UsageError, match="needs counts of annotators"):
            fl.estimate(fl.Predictions(p), against="distribution")

    def test_few_annotated_items_are_few_labels(self):
        p, _, h = world(60, np.r_[np.full(3, 3), np.zeros(57, dtype=int)])
        found = fl.estimate(fl.Predictions(p, histogram=h), metrics="accuracy")
        assert {r.status for r in found.rows} == {fl.Status.FEW_LABELS}
        assert any("only 3 labeled items" in w for w in found.warnings)

    def test_groups_and_users_functions(self):
        p, _, h = world(200, np.r_[np.full(80, 3), np.zeros(120, dtype=int)])
        told = fl.Predictions(p, histogram=h, groups={"site": np.arange(200) % 2})

        def own(y_true, y_proba):
            return (y_proba.argmax(axis=1) == y_true).mean()

        found = quick(told, metrics=["accuracy", own], by="site")
        for model in found.models:
            a, b = found.get(model, "accuracy"), found.get(model, "own")
            assert a.value == pytest.approx(b.value, abs=0.03)
        assert {r.group for r in found.rows} == {None, "site=0", "site=1"}

    @pytest.mark.slow
    @pytest.mark.parametrize("estimand", ["population", "sample"])
    @pytest.mark.parametrize("method", ["auto", "labeled"])
    def test_intervals_hold_what_a_random_annotator_says(self, method, estimand):
        """90% intervals over 100 worlds, and no wider than twice what the values spread."""
        hits, values, widths = [], [], []
        p, q, _ = world(100_000, np.zeros(100_000, dtype=int), 1)
        population = random_agreement(p, q)
        for seed in range(100):
            p, q, h = world(
                600, np.r_[np.full(60, 4), np.ones(40, dtype=int), np.zeros(500, int)], seed
            )
            found = fl.estimate(
                fl.Predictions(p, histogram=h), method, "accuracy",
                confidence_level=0.9, estimand=estimand,
            )  # fmt: skip
            truth = population if estimand == "population" else random_agreement(p, q)
            hits.append([r.low <= t <= r.high for r, t in zip(found.rows, truth, strict=True)])
            values.append([r.value - t for r, t in zip(found.rows, truth, strict=True)])
            widths.append([r.high - r.low for r in found.rows])
        spread = np.std(values, axis=0)
        assert np.mean(hits) > 0.84
        assert (np.mean(widths, axis=0) < 2 * 3.29 * spread).all()

    @pytest.mark.slow
    def test_single_labels_do_not_know_their_items_distributions(self):
        """Taking each label for its item's whole distribution would hold .15 of the truths."""
        hits = []
        for seed in range(100):
            p, q, h = world(300, np.ones(300, dtype=int), seed)
            found = fl.estimate(
                fl.Predictions(p, histogram=h), metrics="accuracy", confidence_level=0.9,
                estimand="sample", against="distribution",
            )  # fmt: skip
            truth = random_agreement(p, q)
            hits.append([r.low <= t <= r.high for r, t in zip(found.rows, truth, strict=True)])
            assert {r.status for r in found.rows} == {fl.Status.ASSUMPTION}
        assert np.mean(hits) > 0.84


def test_the_number_of_imputations_is_checked():
    with pytest.raises(fl.UsageError, match="imputations"):
        LabelDistribution(Labeled(), imputations=0)


def test_whoever_only_votes_may_be_an_annotator():
    """Votes, repeated ones too, become counts; classifiers with probabilities stay."""
    votes = np.array([[-1, 0, 1], [-1, 1, -1], [-1, -1, -1]])
    p = np.full((3, 3, 2), np.nan)
    p[:, 0] = [0.3, 0.7]
    predictions = fl.Predictions(
        p, votes=votes, models=["net", "ann", "bob"],
        repeated_votes=[[0, 1, 1], [1, 1, 1]], histogram=[[0, 0], [0, 0], [2, 0]],
    )  # fmt: skip
    found = predictions.with_annotators()
    assert found.models == ("net",)
    assert found.histogram.tolist() == [[1, 2], [0, 2], [2, 0]]
    assert found.with_annotators() is found
    with pytest.raises(fl.InputError, match="votes alone"):
        fl.Predictions(votes=votes[:, 1:]).with_annotators()
