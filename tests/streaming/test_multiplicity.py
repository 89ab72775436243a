"""Rows that stand for several items: as if every item had a row of its own."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

import fewlabels as fl
from fewlabels.errors import InputError, UsageError
from fewlabels.evaluation.differences import errors_together
from fewlabels.evaluation.item_variance import item_variance
from fewlabels.kernels.counter_based import binomials, gammas, label_counts, mix, some_items
from fewlabels.methods.bee.selection import FOLDS, in_parts
from fewlabels.methods.bee.table import States, VoteData
from fewlabels.models import (
    BEE,
    CBEE,
    METHODS,
    AgreementRates,
    Constraints,
    CrowdSVM,
    DawidSkene,
    LabelModel,
    MajorityVote,
    VoteSelection,
)
from worlds import compressed, scored, votes_of

QUICK = {"burn_in": 50, "sweeps": 200, "thin": 4, "chains": 2}
HARD = ["accuracy", "f1", "balanced_accuracy"]
RNG = np.random.default_rng(4)
DOMAIN = np.where(RNG.random(600) < 0.5, "a", "b")
GROUP = np.where(RNG.random(600) < 0.3, "x", "y")
WEIGHT = RNG.choice([0.5, 1.0, 2.0], 600)

EXACT: dict[str, LabelModel] = {
    "dawid-skene": DawidSkene(),
    "dawid-skene by domain": DawidSkene(by_domain=True),
    "dawid-skene majority": DawidSkene(rates="one", start="majority"),
    "majority-vote": MajorityVote(),
    "agreement-rates": AgreementRates(),
    "bee": BEE(**QUICK),
    "cbee": CBEE(**QUICK),
    "crowd-svm by descent": CrowdSVM(solver="gradient-descent", cost=0.1, margin=1.0),
}


def pair(**columns: object) -> tuple[fl.Predictions, fl.Predictions]:
    whole = votes_of(domain=DOMAIN, groups={"g": GROUP}, weight=WEIGHT, **columns)
    return whole, compressed(whole)


def values(estimates: fl.Estimates) -> np.ndarray:
    return np.array([row.value for row in estimates.rows])


class TestDraws:
    """Counts and sums by key, against the distributions that scipy knows."""

    KEYS = mix(np.arange(400, dtype=np.uint64))
    STREAMS = np.arange(50)

    @pytest.mark.parametrize("shape", [0.3, 1.0, 2.0, 7.0, 1000.0])
    def test_gamma(self, shape):
        drawn = gammas(self.KEYS, self.STREAMS, np.full((400, 1), shape), 7)
        assert stats.kstest(drawn.ravel(), stats.gamma(shape).cdf).pvalue > 1e-4

    @pytest.mark.parametrize(
        ("count", "p"), [(3, 0.4), (60, 0.05), (60, 0.9), (1000, 0.5), (10**7, 0.013)]
    )
    def test_binomial(self, count, p):
        drawn = binomials(self.KEYS, self.STREAMS, np.float64(count), np.float64(p), 7).ravel()
        assert (drawn == np.rint(drawn)).all()
        law = stats.binom(count, p)
        cuts = np.unique(law.ppf(np.linspace(0.05, 0.95, 19)))
        expected = np.diff(np.r_[0, law.cdf(cuts), 1]) * drawn.size
        found = np.bincount(np.searchsorted(cuts, drawn), minlength=len(expected))
        known = expected > 1e-6 * drawn.size
        assert stats.chisquare(found[known], expected[known]).pvalue > 1e-4
        assert found[~known].sum() == 0

    def test_labels_add_up_and_never_fall_where_there_is_no_chance(self):
        p = np.tile([[[0.0], [0.3], [0.7], [0.0]]], (400, 1, 1))
        times = np.arange(1, 401).astype(float)
        counts = label_counts(self.KEYS, self.STREAMS, times, p, 3)
        assert (counts.sum(axis=1) == times[:, None]).all()
        assert not counts[:, [0, 3]].any()
        error = np.sqrt(0.3 * 0.7 / (times.sum() * 50))
        assert abs(counts[:, 1].sum() / (times.sum() * 50) - 0.3) < 4 * error

    def test_a_row_draws_the_same_whoever_is_beside(self):
        p = np.tile([[[0.2], [0.8]]], (400, 1, 1))
        times = np.linspace(1, 90, 400).round()
        whole = label_counts(self.KEYS, self.STREAMS, times, p, 3)
        part = label_counts(self.KEYS[100:7:-3], self.STREAMS[10:], times[100:7:-3], p[:31], 3)
        assert (whole[100:7:-3][:, :, 10:] == part).all()
        shapes = np.maximum(whole[:, 0], 1)
        both = gammas(self.KEYS, self.STREAMS, shapes, 5)
        assert (both[50:] == gammas(self.KEYS[50:], self.STREAMS, shapes[50:], 5)).all()

    def test_some_items_are_some_of_each_row(self):
        times = np.array([5.0, 100.0, 1.0, 40.0])
        found = some_items(times, self.KEYS[:4], 60, 1)
        assert found.sum() == 60
        assert (found <= times).all()
        turned = some_items(times[::-1], self.KEYS[:4][::-1], 60, 1)
        assert (turned[::-1] == found).all()
        assert (some_items(times, self.KEYS[:4], 1000, 1) == times).all()


class TestPredictions:
    def test_counts_items(self):
        whole, rows = pair()
        assert rows.n_items < whole.n_items / 1.5
        assert (rows.size, rows.n_labeled) == (600, 40)
        assert "600 items" in repr(rows)
        assert rows.take(np.arange(5)).size == int(rows.times[:5].sum())

    @pytest.mark.parametrize("counts", [[1.0, 0.0], [1.0], [1.0, np.inf]])
    def test_refuses_what_is_no_count(self, counts):
        with pytest.raises(InputError, match="multiplicity"):
            fl.Predictions(votes=[[0, 1], [1, 1]], multiplicity=counts)


class TestSameAsItemByItem:
    @pytest.mark.few(2)
    @pytest.mark.slow_with("dawid-skene by domain", "dawid-skene majority", "cbee")
    @pytest.mark.parametrize("name", EXACT)
    def test_values(self, name):
        model = EXACT[name]
        whole, rows = pair()
        one, other = (
            fl.estimate(p, model, HARD, by=["g", "domain"], confidence_level=None)
            for p in (whole, rows)
        )
        assert np.allclose(values(one), values(other), atol=1e-9, rtol=0, equal_nan=True)
        assert [r.status for r in one.rows] == [r.status for r in other.rows]
        assert (one.n_items, one.n_labeled, one.groups) == (
            other.n_items, other.n_labeled, other.groups
        )  # fmt: skip
        assert one.warnings == other.warnings

    @pytest.mark.parametrize("estimand", ["population", "sample"])
    def test_labeled_alone(self, estimand):
        whole, rows = pair()
        one, other = (
            fl.estimate(p, "labeled", HARD, by="g", estimand=estimand, confidence_level=None)
            for p in (whole, rows)
        )
        assert np.allclose(values(one), values(other), atol=1e-9, rtol=0, equal_nan=True)

    @pytest.mark.parametrize("n", [600, pytest.param(25_000, marks=pytest.mark.slow)])
    def test_metrics_of_scores(self, n):
        metrics = ["accuracy", "ece", "ece_quantile", "roc_auc", "average_precision", "brier"]
        for whole in (scored(n), fl.Predictions(scores=scored(n).probabilities[:, :, 1] * 9,
                                                labels=scored(n).labels)):  # fmt: skip
            one, other = (
                fl.estimate(p, "labeled", metrics, confidence_level=None)
                for p in (whole, compressed(whole))
            )
            assert np.allclose(values(one), values(other), atol=1e-9, rtol=0, equal_nan=True)
        everywhere = scored(n, labeled=n)
        one, other = (
            fl.estimate(p, "labeled", metrics, confidence_level=None)
            for p in (everywhere, compressed(everywhere))
        )
        assert np.allclose(values(one), values(other), atol=1e-9, rtol=0)

    def test_votes_of_three_classes(self):
        whole = votes_of(n_classes=3)
        one, other = (
            fl.estimate(p, "dawid-skene", HARD, confidence_level=None)
            for p in (whole, compressed(whole))
        )
        assert np.allclose(values(one), values(other), atol=1e-9, rtol=0)
        assert one.diagnostics["iterations"] == other.diagnostics["iterations"]

    def test_what_the_sampler_of_votes_sees(self):
        whole, rows = pair()
        tables = [
            VoteData.of(p, ("a", "b"), States.of(2, ("a", "b"), None)).table for p in (whole, rows)
        ]
        for name, one, other in zip(tables[0]._fields, *tables, strict=True):
            assert np.array_equal(one, other), name

    def test_joint_failures_and_reports(self):
        whole, rows = pair()
        one, other = (
            fl.estimate(p, "dawid-skene", "accuracy", confidence_level=None) for p in (whole, rows)
        )
        a, b = errors_together(one), errors_together(other)
        assert a.n_items == b.n_items
        for name in ("all_wrong", "oracle", "majority", "best_single", "effective_voters"):
            assert getattr(a, name).value == pytest.approx(getattr(b, name).value, abs=1e-9)
        first, second = (found.report()["class_balance"] for found in (one, other))
        assert first["labeled"] == second["labeled"]
        assert first["estimated"] == pytest.approx(second["estimated"], abs=1e-9)

    def test_rows_of_one_item_are_as_without(self):
        whole = votes_of(n=150)
        alone = whole.with_multiplicity(np.ones(150))
        one, other = (fl.estimate(p, BEE(**QUICK), HARD, estimand="sample") for p in (whole, alone))
        for metric in HARD:
            assert np.array_equal(one.draws[metric, None], other.draws[metric, None])


class TestInDistribution:
    """Interval draws: 1,000 of each have means and spreads that agree within their errors."""

    @pytest.mark.product
    @pytest.mark.parametrize("estimand", ["population", "sample"])
    @pytest.mark.parametrize(
        "model",
        ["labeled", BEE(**QUICK), DawidSkene(replicates=500)],
        ids=["labeled", "bee", "dawid-skene"],
    )
    def test_draws(self, model, estimand):
        whole, rows = pair()
        one, other = (
            fl.estimate(p, model, HARD, estimand=estimand, confidence_level=0.98)
            for p in (whole, rows)
        )
        for name, drawn in one.draws.items():
            self.compare(drawn, other.draws[name])

    @staticmethod
    def compare(one: np.ndarray, other: np.ndarray, effective: float = 400) -> None:
        # Draws share 500 refits, or 100 states of chains, whose noise both have: the effective
        # number of draws is less.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spread, again = np.nanstd(one, axis=0), np.nanstd(other, axis=0)
            shift = np.nanmean(other, axis=0) - np.nanmean(one, axis=0)
        varies = spread > 1e-12
        assert (again[~varies] <= 1e-12).all()
        assert (np.abs(shift[varies]) < 4.5 * spread[varies] * np.sqrt(2 / effective)).all()
        ratio = again[varies] / spread[varies]
        # A spread has a relative error of about sqrt(1 / 2n), more with heavy tails.
        assert (np.abs(np.log(ratio)) < 4.5 * np.sqrt(1 / effective) * 1.5).all()

    def test_calibration_errors(self):
        whole = scored()
        one, other = (
            fl.estimate(p, "labeled", ["ece", "roc_auc"], confidence_level=0.99)
            for p in (whole, compressed(whole))
        )
        for name, drawn in one.draws.items():
            self.compare(drawn, other.draws[name])

    @pytest.mark.slow
    def test_gibbs_of_margins(self):
        whole = votes_of(n=100)
        rows, model = compressed(whole), CrowdSVM(cost=0.1, margin=1.0, draws=40)
        one, other = (
            np.array([self.weights(model, p, seed) for seed in range(8)]) for p in (whole, rows)
        )
        assert stats.ttest_ind(one, other).pvalue.min() > 1e-4

    @staticmethod
    def weights(model: LabelModel, predictions: fl.Predictions, seed: int) -> list[float]:
        return list(model.infer(predictions, seed).diagnostics["weights"].values())


class TestItemVariance:
    """Of 600 items, all of which are looked at."""

    @pytest.mark.parametrize(("metric", "bound"), [("accuracy", 1e-9), ("f1", 0.5)])
    def test_is_that_of_the_items(self, metric, bound):
        whole, rows = pair(missing=0.0)  # of pairs of other items f1 has no variance
        one, other = (
            item_variance(p, DawidSkene().infer(p, 0), [metric], np.arange(p.n_items))[metric]
            for p in (whole, rows)
        )
        # In closed form for means; else of 40 drawn labelings: a relative error of .22 each.
        apart = ~np.eye(4, dtype=bool)
        assert np.abs(other[apart] / one[apart] - 1).max() < bound


class TestHeldOut:
    def test_parts_are_equal_and_hold_all_items(self):
        _, rows = pair()
        split, parts = in_parts(rows, "folds")
        assert (split.size, len(parts)) == (600, FOLDS)
        for name in ("a", "b"):
            sizes = [split.size_of(part & (split.domain == name)) for part in parts]
            assert max(sizes) - min(sizes) <= 1
        assert (np.sum(parts, axis=0) == 1).all()
        split, parts = in_parts(rows, "split")
        assert abs(split.size_of(parts[0]) - 60) <= 2

    @pytest.mark.slow
    def test_selection_agrees(self):
        whole = votes_of(n=500, errors=(0.05, 0.15, 0.3, 0.4))
        model = VoteSelection(candidates=[BEE(**QUICK), CBEE(**QUICK)])
        one, other = (model.infer(p, 0) for p in (whole, compressed(whole)))
        gap = {n: one.diagnostics["held_out"][n] - other.diagnostics["held_out"][n] for n in
               one.diagnostics["held_out"]}  # fmt: skip
        # Other folds: the log-likelihood of an item varies by about 1, of 500 fits by .02.
        assert all(abs(g) < 0.02 for g in gap.values())


class TestRefusals:
    @pytest.mark.parametrize("name", [n for n, m in METHODS.items() if not m.counts_rows])
    def test_methods_that_do_not_count(self, name):
        rows = compressed(scored(60))
        with pytest.raises(UsageError, match=rf"method '{name}' takes every row for one item"):
            fl.estimate(rows, name)

    def test_questions_that_do_not_count(self):
        rows = compressed(scored(60))
        with pytest.raises(UsageError, match="takes every row for one item"):
            fl.estimate(rows, "labeled", lambda y, p: 0.5)
        with pytest.raises(UsageError, match="takes every row for one item"):
            fl.estimate(rows, "labeled", shift="covariate")
        with pytest.raises(UsageError, match="takes every row for one item"):
            fl.shift(rows)
        rules = Constraints(exclusive=[["a", "b"]], item="g")
        with pytest.raises(UsageError, match="a model with constraints takes every row"):
            fl.estimate(pair()[1], BEE(constraints=rules, **QUICK))

    def test_parts_of_items(self):
        whole = votes_of(n=50)
        for method in ("labeled", "dawid-skene", "bee"):
            with pytest.raises(InputError, match=r"whole numbers; got 1\.5 for row 0"):
                fl.estimate(whole.with_multiplicity(np.full(50, 1.5)), method)


def test_ten_million_items_cost_their_distinct_rows():
    rng = np.random.default_rng(0)
    truth = rng.random(3000) < 0.4
    votes = np.where(rng.random((3000, 10)) < 0.2, ~truth[:, None], truth[:, None]).astype(int)
    labels = np.where(np.arange(3000) < 100, truth, -1)
    rows = fl.Predictions(
        votes=votes, labels=labels, multiplicity=np.where(labels >= 0, 1.0, 3448.0)
    )
    found = fl.estimate(rows, "dawid-skene", "accuracy")
    assert (found.n_items, found.n_labeled) == (2900 * 3448 + 100, 100)
    assert len(found.draws["accuracy", None]) == 200  # as of any more than 200,000 items
    row = found.rows[0]
    # Ten million items, but for what their parameters leave open: binomial, about 1e-4.
    assert row.high - row.low < 0.002
