"""Labels that are distributions: any label model, judged against what annotators say."""

from __future__ import annotations

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.kernels.annotator_labels import (
    draw_labels_of_annotators,
    effective_labels,
    likeliest_concentration,
    round_at_random,
)
from fewlabels.kernels.keyed import hash_columns
from fewlabels.models import LabelDistribution, Labeled, TemperedEnsemble


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

    def test_an_item_draws_the_same_wherever_it_stands(self):
        counts = np.random.default_rng(3).integers(0, 5, (50, 4)).astype(float)
        keys = hash_columns([np.arange(50)], 50)
        sizes = np.minimum(2, counts.sum(axis=1)).astype(int)
        item, label = draw_labels_of_annotators(counts, sizes, keys, 9)
        back = np.arange(50)[::-1]
        again, other = draw_labels_of_annotators(counts[back], sizes[back], keys[back], 9)
        for i in range(50):
            assert sorted(label[item == i]) == sorted(other[again == 49 - i])

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
        assert likeliest_concentration(f, h) == pytest.approx(3, rel=0.15)


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
    def test_counts_update_what_the_model_says(self):
        """(alpha0 f + h) / (alpha0 + n), with f what the model says of an item without counts."""
        p, _, h = world(400, np.r_[np.full(100, 4), np.zeros(300, dtype=int)])
        told = fl.Predictions(p, histogram=h)
        model = LabelDistribution(TemperedEnsemble(), imputations=2).fit(
            told, np.random.default_rng(0)
        )
        found = model.posterior(told)
        alone = model.posterior(fl.Predictions(p, histogram=np.zeros_like(h))).marginals()
        a = found.diagnostics["annotator_concentration"]
        wanted = (a * alone + h) / (a + h.sum(axis=1, keepdims=True))
        np.testing.assert_allclose(found.marginals(), wanted, atol=1e-12)
        np.testing.assert_allclose(found.spread, 1 / np.sqrt(1 + a + h.sum(axis=1)))

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

    def test_the_order_of_items_is_irrelevant(self):
        p, _, h = world(150, np.r_[np.full(50, 3), np.zeros(100, dtype=int)])
        model = LabelDistribution(TemperedEnsemble(), imputations=3)
        back = np.random.default_rng(0).permutation(150)
        a = model.infer(fl.Predictions(p, histogram=h), 0).marginals()
        b = model.infer(fl.Predictions(p[back], histogram=h[back]), 0).marginals()
        np.testing.assert_allclose(a[back], b, atol=1e-9)

    def test_a_distribution_that_is_known_leaves_nothing_to_draw(self):
        """With very many labels per item, intervals for these very items shrink to the value."""
        p, q, _ = world(120, np.zeros(120, dtype=int))
        h = np.rint(q * 10**6)
        found = fl.estimate(fl.Predictions(p, histogram=h), metrics="accuracy", estimand="sample")
        truth = random_agreement(p, h / h.sum(axis=1, keepdims=True))
        for j in range(3):
            row = found.get(found.models[j], "accuracy")
            assert row.value == pytest.approx(truth[j], abs=1e-3)
            assert row.high - row.low < 0.03

    def test_single_labels_are_labels(self):
        """One label per item, as counts, gives what labels give: nothing is known of spread."""
        p, _, h = world(300, np.r_[np.ones(80, dtype=int), np.zeros(220, dtype=int)])
        labels = np.where(h.any(axis=1), h.argmax(axis=1), -1)
        a = LabelDistribution(TemperedEnsemble()).infer(fl.Predictions(p, histogram=h), 0)
        rng = np.random.default_rng(0)
        rng.integers(2**63)  # what the drawing of labels takes
        b = TemperedEnsemble().infer(fl.Predictions(p, labels), rng)
        assert a.diagnostics["imputations"] == 1
        np.testing.assert_allclose(a.marginals(), b.marginals(), atol=1e-12)


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
        a = fl.estimate(fl.Predictions(p, labels, histogram=several), metrics="accuracy")
        b = fl.estimate(fl.Predictions(p, histogram=h), metrics="accuracy")
        assert [r.value for r in a.rows] == [r.value for r in b.rows]
        assert (a.n_labeled, a.n_annotated) == (40, 100)

    @pytest.mark.parametrize("estimand", ["population", "sample"])
    @pytest.mark.parametrize("method", ["auto", "labeled", "dawid-skene", "ssme-kde-marginal"])
    def test_every_kind_of_method(self, method, estimand):
        p, q, h = world(300, np.r_[np.full(80, 4), np.zeros(220, dtype=int)], seed=4)
        found = fl.estimate(
            fl.Predictions(p, histogram=h), method, ["accuracy", "ece", "auc"],
            estimand=estimand, confidence_level=0.9,
        )  # fmt: skip
        for row in found.rows:
            assert row.low <= row.value <= row.high
        if method == "dawid-skene":  # annotators' disagreement is none of its classes' business
            assert {r.status for r in found.rows} == {fl.Status.ASSUMPTION}
            return
        truth = random_agreement(p, q)
        for j, model in enumerate(found.models):
            assert abs(found.get(model, "accuracy").value - truth[j]) < 0.12

    def test_the_class_when_asked_and_where_every_item_has_one(self):
        p, _, h = world(200, np.r_[np.full(50, 3), np.zeros(150, dtype=int)])
        told = fl.Predictions(p, histogram=h)
        assert fl.estimate(told, metrics="accuracy", against="class").against == "class"
        assert fl.estimate(told, metrics="accuracy").against == "distribution"
        single = fl.Predictions(p, histogram=np.minimum(h.cumsum(axis=1), 1) * 0 + np.eye(3)[0])
        assert fl.estimate(single, metrics="accuracy").against == "class"
        labels = h.argmax(axis=1)
        assert fl.estimate(fl.Predictions(p, labels, histogram=h)).against == "class"

    def test_what_cannot_be_judged_so_is_refused(self):
        p, _, h = world(60, np.full(60, 3))
        told = fl.Predictions(p, histogram=h)
        with pytest.raises(fl.UsageError, match="must be one of auto, class, distribution"):
            fl.estimate(told, against="truth")
        with pytest.raises(fl.UsageError, match="does not use counts of annotators"):
            fl.estimate(told, "autoeval", against="distribution")
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

        found = fl.estimate(told, metrics=["accuracy", own], by="site")
        for model in found.models:
            a, b = found.get(model, "accuracy"), found.get(model, "own")
            assert a.value == pytest.approx(b.value, abs=0.03)
        assert {r.group for r in found.rows} == {None, "site=0", "site=1"}

    @pytest.mark.slow
    @pytest.mark.parametrize("method", ["auto", "labeled"])
    def test_intervals_hold_what_a_random_annotator_says(self, method):
        hits = []
        for seed in range(60):
            p, q, h = world(
                600, np.r_[np.full(60, 4), np.ones(40, dtype=int), np.zeros(500, int)], seed
            )
            found = fl.estimate(
                fl.Predictions(p, histogram=h), method, "accuracy",
                confidence_level=0.9, estimand="sample",
            )  # fmt: skip
            truth = random_agreement(p, q)
            hits += [r.low <= t <= r.high for r, t in zip(found.rows, truth, strict=True)]
        assert np.mean(hits) > 0.82


def test_the_number_of_imputations_is_checked():
    with pytest.raises(fl.UsageError, match="imputations"):
        LabelDistribution(Labeled(), imputations=0)
