"""SSME-KDE and the flow, fitted on a sample and applied to batches of a stream."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.methods.base import FittedLabelModel
from fewlabels.methods.ssme.kde_mixture import KernelSums, SupportSums, choose_support
from fewlabels.models import SSMEKDE, SSMEFlow

KNOWN = 100
KDE = SSMEKDE(bandwidth=0.4, epochs=10, replicates=5)
FLOW = SSMEFlow(n_couplings=4, hidden=16, flow_epochs=20, joint_epochs=20, replicates=5)
MODELS = {"kde": KDE, "flow": FLOW}

SINGLE = 2e-6
"""Rounding in single precision: how a product is cut into blocks differs between processors."""


def correlated(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores (n, 4) of classifiers with a shared error, and labels of which 30% are 1."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.3).astype(int)
    shared = 0.6 * rng.normal(size=(n, 1))
    logits = 2.4 * (truth[:, None] - 0.5) + shared + rng.normal(size=(n, 4))
    return 1 / (1 + np.exp(-logits)), truth


def few_labels(n: int) -> fl.Predictions:
    scores, truth = correlated(n)
    return fl.Predictions(scores, np.where(np.arange(n) < KNOWN, truth, -1))


def sample_of(whole: fl.Predictions, m: int) -> tuple[np.ndarray, np.ndarray]:
    """All labeled items and some others, and how many items each of these stands for."""
    n = whole.n_items
    others = KNOWN + np.random.default_rng(5).choice(n - KNOWN, m - KNOWN, replace=False)
    stands = np.full(m, (n - KNOWN) / (m - KNOWN))
    stands[:KNOWN] = 1
    return np.r_[:KNOWN, others], stands


def with_multiplicity(some: fl.Predictions, stands: np.ndarray) -> fl.Predictions:
    return fl.Predictions(some.probabilities, some.labels, multiplicity=stands)


def fitted_on_sample(model: fl.LabelModel) -> FittedLabelModel:
    whole = few_labels(1200)
    rows, stands = sample_of(whole, 400)
    return model.fit(with_multiplicity(whole.take(rows), stands), np.random.default_rng(0))


def stream(n: int = 900) -> fl.Predictions:
    """Rows of every kind: of the sample, labeled ones outside it, missing and far-off scores."""
    scores, truth = correlated(1200)
    scores = np.concatenate([scores[:300], correlated(n - 300, seed=1)[0]])
    scores[310:320, 1] = np.nan
    scores[320:330] = [1e-9, 1 - 1e-9, 1e-9, 1 - 1e-9]
    labels = np.where(np.arange(n) < KNOWN, np.r_[truth[:300], np.zeros(n - 300, int)], -1)
    labels[330:340] = np.arange(10) % 2
    return fl.Predictions(scores, labels)


def everything(fitted: FittedLabelModel, rows: fl.Predictions) -> tuple[np.ndarray, np.ndarray]:
    found = fitted.posterior(rows)
    return found.probabilities, found.parameters.block(np.arange(5), slice(None))


class TestLabelWeight:
    def test_a_sample_says_what_all_items_say(self):
        whole = few_labels(3000)
        rows, stands = sample_of(whole, 750)
        model = SSMEKDE(bandwidth=0.4, init="soft", epochs=20, leave_one_out=True, replicates=1)

        def error(fitted: FittedLabelModel) -> float:
            found = fitted.posterior(whole).marginals() - exact
            return float(np.abs(found[KNOWN:]).mean())

        exact = model.infer(whole, 0).marginals()
        sample = whole.take(rows)
        scaled = error(model.fit(with_multiplicity(sample, stands), np.random.default_rng(0)))
        assert scaled < 0.03
        assert error(model.fit(sample, np.random.default_rng(0))) > 3 * scaled

    @pytest.mark.parametrize("most", [400, 200])
    def test_labels_keep_their_share_of_the_weight(self, most):
        keys = np.random.default_rng(0).integers(2**63, size=400, dtype=np.uint64)
        informed, stands = np.arange(400) < KNOWN, np.r_[np.ones(KNOWN), np.arange(1.0, 301)]
        support = choose_support(keys, informed, most, 0, stands)
        inside = informed[support.rows]
        weight = np.where(inside, support.label_scale, 1) * support.counts
        share = stands[informed].sum() / stands.sum()
        odds = weight[inside].sum() / weight[~inside].sum()
        assert odds == pytest.approx(share / (1 - share))
        assert weight[~inside].mean() == pytest.approx(1)
        # Among the others, each counts as often as it stands for.
        ratio = weight[~inside] / stands[support.rows][~inside]
        np.testing.assert_allclose(ratio, ratio[0])

    def test_the_flow_weighs_them_alike(self):
        weight = fitted_on_sample(FLOW).items.weight
        assert weight.sum() - 300 == pytest.approx(300 * KNOWN / 1100)

    @pytest.mark.parametrize("model", MODELS)
    def test_one_item_per_row_changes_nothing(self, model):
        sample = few_labels(400)
        once = with_multiplicity(sample, np.ones(400))
        found = [MODELS[model].infer(given, 0) for given in (sample, once)]
        np.testing.assert_array_equal(found[0].marginals(), found[1].marginals())


@pytest.mark.parametrize("model", MODELS)
class TestFitAndRefits:
    def test_rows_have_probabilities_that_keep_the_labels(self, model):
        rows = stream()
        fit, refits = everything(fitted_on_sample(MODELS[model]), rows)
        assert np.abs(fit - refits.mean(axis=2)).max() > 1e-3
        np.testing.assert_allclose(fit.sum(axis=1), 1, atol=1e-12)
        known = np.flatnonzero(rows.labeled)
        assert (fit[known, rows.labels[known]] == 1).all()

    def test_rows_do_not_show_what_they_come_with(self, model):
        fitted, rows = fitted_on_sample(MODELS[model]), stream()
        whole = everything(fitted, rows)
        order = np.random.default_rng(2).permutation(900)
        for part in (order[:1], order[1:8], order[8:300], order[300:]):
            for some, all_rows in zip(everything(fitted, rows.take(part)), whole, strict=True):
                np.testing.assert_allclose(some, all_rows[part], atol=SINGLE)

    def test_batches_in_threads_and_copies_agree(self, model):
        fitted, rows = fitted_on_sample(MODELS[model]), stream()
        whole = everything(fitted, rows)
        shipped = pickle.dumps(fitted)
        assert len(shipped) < 3e6
        batches = [rows.take(np.arange(i, i + 100)) for i in range(0, 900, 100)]
        for served in (fitted, pickle.loads(shipped)):
            with ThreadPoolExecutor(3) as pool:
                parts = list(pool.map(lambda batch, by=served: everything(by, batch), batches))
            for part, expected in zip(zip(*parts, strict=True), whole, strict=True):
                np.testing.assert_allclose(np.concatenate(part), expected, atol=SINGLE)

    def test_rows_pass_once_and_refits_are_run_once(self, model, monkeypatch):
        passed, refits = [], []
        fitted = fitted_on_sample(MODELS[model])
        kinds = type(fitted), SupportSums, type(getattr(fitted, "mixture", fitted))
        sums, latent = SupportSums.of, getattr(kinds[0], "latent", None)
        if latent is None:
            monkeypatch.setattr(
                SupportSums, "of", lambda self, x: passed.append(len(x)) or sums(self, x)
            )
        else:
            monkeypatch.setattr(
                kinds[0], "latent", lambda self, p: passed.append(len(p)) or latent(self, p)
            )
        refit = kinds[2].refit
        monkeypatch.setattr(
            kinds[2], "refit", lambda self, size: refits.append(size) or refit(self, size)
        )
        rows = fl.Predictions(correlated(500, seed=3)[0], np.full(500, -1))
        fitted.posterior(rows.take(np.arange(1))).marginals()
        assert not refits  # nobody has asked for draws
        fitted.posterior(rows.take(np.arange(1))).prepare()
        passed.clear()
        for part in (np.arange(200), np.arange(200, 500)):
            everything(fitted, rows.take(part))
        assert (sum(passed), refits) == (500, [5])


class TestSupportSums:
    def world(self, scale: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(0)
        support, weights = rng.normal(size=(1300, 3)), rng.random((1300, 4))
        return scale * rng.normal(size=(600, 3)), scale * support, weights

    @pytest.mark.parametrize(
        ("scale", "away"),
        [(1, 0), (20, 0), (2000, 0), (1, 30), (1, 1000)],
        ids=["near", "narrow", "narrower than single precision", "no kernel near", "far"],
    )
    def test_ratios_equal_those_in_double_precision(self, scale, away):
        queries, support, weights = self.world(scale)
        queries[::7] += away
        found = SupportSums(support, weights).of(queries).astype(float)
        expected = KernelSums(queries, support, np.full(600, -1), keep=False).times(weights)
        for sums in (found, expected):
            sums /= sums.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found, expected, atol=1e-4)
        assert np.abs(found - expected).mean() < 1e-5

    def test_near_kernels_far_from_the_centre(self):
        """Exponents of about 1, as differences of numbers of about a million."""
        rng = np.random.default_rng(1)
        pairs = np.repeat(2000 * rng.normal(size=(300, 3)), 2, axis=0)
        support = pairs + rng.normal(size=(600, 3))
        weights = np.tile(np.eye(2), (300, 1))
        found = SupportSums(support, weights).of(pairs[::2]).astype(float)
        kernels = np.exp(-0.5 * ((support - pairs) ** 2).sum(axis=1)).reshape(300, 2)
        for sums in (found, kernels):
            sums /= sums.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found, kernels, atol=1e-6)

    @pytest.mark.parametrize("scale", [1, 20, 2000])
    def test_the_same_bits_in_any_company(self, scale):
        queries, support, weights = self.world(scale)
        queries[::7] *= 50
        sums = SupportSums(support, weights)
        whole = sums.of(queries)
        np.testing.assert_array_equal(sums.of(queries[3:300]), whole[3:300])
        for i in (0, 1, 255, 599):
            np.testing.assert_array_equal(sums.of(queries[i : i + 1]), whole[i : i + 1])

    def test_points_without_weight_do_not_set_the_scale(self):
        """A point of no weight at the query, and one of some weight sixty widths away."""
        support, weights = np.array([[0.0], [60.0], [61.0]]), np.array([[0.0, 0], [1, 3], [0, 1]])
        found = SupportSums(support, weights).of(np.array([[0.0]]))[0]
        assert found[0] / found.sum() == pytest.approx(0.25)


def test_evidence_outside_the_support_counts():
    """Annotators' votes multiply what the kernels say, at rows that are no support points."""
    scores, _ = correlated(300)
    votes = np.zeros((300, 2))
    votes[::3] = [1, 2]
    fitted = KDE.fit(fl.Predictions(scores, histogram=votes), np.random.default_rng(0))
    new = correlated(200, seed=4)[0]
    silent, spoken = (
        fitted.posterior(fl.Predictions(new, histogram=np.tile(h, (200, 1)))).marginals()
        for h in ([0.0, 0.0], [0.0, 1.0])
    )
    right = 0.9
    expected = silent[:, 1] * right / (silent[:, 1] * right + silent[:, 0] * (1 - right))
    np.testing.assert_allclose(spoken[:, 1], expected, atol=1e-6)
