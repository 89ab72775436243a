"""Votes without labels where no model of them is right: what `auto` finds, says and allows for."""

from __future__ import annotations

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.errors import UsageError
from fewlabels.methods.bee.selection import _weights
from fewlabels.methods.bee.table import draw_rates_prior, fit_rates_prior
from fewlabels.methods.votes.dependence import counted_votes


def labels_of(rng, n, share=0.4):
    return (rng.random(n) < share).astype(int)


def by_errors(rng, truth, errors):
    """Votes (n, M) of two classes by independent errors."""
    wrong = rng.random((len(truth), len(errors))) < errors
    return np.where(wrong, 1 - truth[:, None], truth[:, None])


def copies_of(rng, votes, share, times):
    """So many copies of the votes (n,), each with a share of them turned."""
    turned = rng.random((len(votes), times)) < share
    return np.where(turned, 1 - votes[:, None], votes[:, None])


def near_copies(seed=0, n=600):
    """Three 97% copies of a classifier that errs in 30%, beside four good ones."""
    rng = np.random.default_rng(seed)
    truth = labels_of(rng, n)
    copies = copies_of(rng, by_errors(rng, truth, [0.3])[:, 0], 0.03, 3)
    votes = np.concatenate([copies, by_errors(rng, truth, [0.1, 0.12, 0.15, 0.2])], axis=1)
    return fl.Predictions(votes=votes, classes=(0, 1)), truth


@pytest.fixture(scope="module")
def of_copies():
    """Near copies, the truth, and what is estimated of them."""
    predictions, truth = near_copies()
    return predictions, truth, fl.estimate(predictions, metrics="error_rate")


def held(found, truth, votes):
    """Which error rates lie in their intervals."""
    rows = {e["model"]: e for e in found.to_dict()["estimates"] if e["group"] is None}
    error = (votes != truth[:, None]).mean(axis=0)
    return [
        rows[m]["low"] <= e <= rows[m]["high"] for m, e in zip(found.models, error, strict=True)
    ]


class TestSharedMistakes:
    def test_near_copies_are_named_and_count_as_about_one(self, of_copies):
        predictions, truth, found = of_copies
        (group,) = found.diagnostics["shared_mistakes"]
        assert group["classifiers"] == ["model0", "model1", "model2"]
        assert group["z"] > 10
        assert group["counted"] < 1.3
        assert any("model0, model1, model2 make the same mistakes" in w for w in found.warnings)
        assert all(held(found, truth, predictions.votes))

    @pytest.mark.slow
    def test_exact_copies_and_one_good_classifier(self):
        rng = np.random.default_rng(1)
        truth = labels_of(rng, 600)
        bad, good = by_errors(rng, truth, [0.3, 0.1]).T
        predictions = fl.Predictions(votes=np.stack([bad, bad, bad, good], axis=1), classes=(0, 1))
        counted = counted_votes(predictions, (None,))
        assert counted.weights.tolist() == [[1 / 3, 1 / 3, 1 / 3, 1]]
        found = fl.estimate(predictions, metrics="error_rate")
        # Two votes do not determine error rates, and the interval must not look as if they did.
        rows = [e for e in found.to_dict()["estimates"] if e["model"] == "model0"]
        assert rows[0]["high"] > 0.15
        assert rows[0]["status"] != "ok"

    def test_a_pair_is_found_among_five(self):
        rng = np.random.default_rng(0)
        truth = labels_of(rng, 800)
        votes = by_errors(rng, truth, [0.25, 0.25, 0.1, 0.15, 0.2])
        votes[:, 1] = np.where(rng.random(800) < 0.7, votes[:, 0], votes[:, 1])
        (group,) = counted_votes(fl.Predictions(votes=votes), (None,)).groups
        assert group.members == ("model0", "model1")
        assert 1 < group.counted < 1.6

    def test_independent_classifiers_are_left_alone(self):
        found = 0
        for seed in range(8):
            rng = np.random.default_rng(seed)
            truth = labels_of(rng, 400)
            votes = by_errors(rng, truth, rng.uniform(0.05, 0.4, 6))
            found += len(counted_votes(fl.Predictions(votes=votes), (None,)).groups)
        assert found == 0

    @pytest.mark.slow
    def test_domain_by_domain_and_whatever_the_order_of_the_items(self):
        predictions, truth = near_copies(n=400)
        votes = predictions.votes.copy()
        rng = np.random.default_rng(5)
        votes[200:, :3] = by_errors(rng, truth[200:], [0.2, 0.25, 0.3])
        domain = np.repeat(["copied", "own"], 200)
        order = rng.permutation(400)
        for rows in (np.arange(400), order):
            some = fl.Predictions(votes=votes[rows], domain=domain[rows], classes=(0, 1))
            counted = counted_votes(some, ("copied", "own"))
            assert {group.domain for group in counted.groups} == {"copied"}
            assert (counted.of(("own",), some.models) == 1).all()

    @pytest.mark.slow
    def test_votes_that_never_differ_may_all_be_one(self):
        rng = np.random.default_rng(0)
        one = by_errors(rng, labels_of(rng, 300), [0.2])
        found = fl.estimate(fl.Predictions(votes=np.repeat(one, 6, axis=1)), metrics="error_rate")
        row = found.to_dict()["estimates"][0]
        assert row["high"] > 0.2
        assert row["status"] != "ok"

    def test_a_silent_classifier_does_not_shift_the_others(self):
        rng = np.random.default_rng(4)
        truth = labels_of(rng, 800)
        votes = by_errors(rng, truth, [0.05, 0.1, 0.2, 0.3, 0.4])
        silent = np.insert(votes, 2, -1, axis=1)
        found = fl.estimate(fl.Predictions(votes=silent, classes=(0, 1)), "bee", "error_rate")
        value = {e["model"]: e["value"] for e in found.to_dict()["estimates"]}
        error = (votes != truth[:, None]).mean(axis=0)
        named = ["model0", "model1", "model3", "model4", "model5"]
        assert [value[m] for m in named] == pytest.approx(error, abs=0.05)


class TestAllowance:
    @pytest.mark.slow
    def test_hard_items_widen_the_intervals(self):
        rng = np.random.default_rng(3)
        truth = labels_of(rng, 900)
        ease = rng.normal(1.2, 1.2, 900)
        wrong = rng.random((900, 8)) < 1 / (1 + np.exp(ease))[:, None]
        votes = np.where(wrong, 1 - truth[:, None], truth[:, None])
        predictions = fl.Predictions(votes=votes, classes=(0, 1))
        found = fl.estimate(predictions, metrics="error_rate", estimand="sample")
        plain = fl.estimate(predictions, "bee", "error_rate", estimand="sample")
        assert any("harder than others" in w for w in found.warnings)
        assert np.mean(held(found, truth, votes)) > np.mean(held(plain, truth, votes)) + 0.5

    @pytest.mark.slow
    def test_few_votes_of_many_annotators(self):
        held_, off = [], []
        for seed in range(4):
            rng = np.random.default_rng(seed)
            truth = labels_of(rng, 300)
            votes = by_errors(rng, truth, rng.beta(2, 6, 60))
            drop = np.argsort(rng.random(votes.shape), axis=1) >= 5
            votes[drop] = -1
            found = fl.estimate(fl.Predictions(votes=votes, classes=(0, 1)), metrics="error_rate")
            rows = found.to_dict()["estimates"]
            error = [((v != truth) & (v >= 0)).sum() / (v >= 0).sum() for v in votes.T]
            held_ += [r["low"] <= e <= r["high"] for r, e in zip(rows, error, strict=True)]
            off += [r["value"] - e for r, e in zip(rows, error, strict=True)]
        assert np.mean(held_) > 0.8
        assert abs(np.mean(off)) < 0.03

    def test_draws_are_spread_and_keep_their_order_of_classifiers(self, of_copies):
        posterior = of_copies[2].posterior
        assert posterior.allowance.better == posterior.allowance.worse >= 0.15
        some, other = (
            posterior.log_odds_errors(["a", "b"], 400),
            posterior.log_odds_errors(["b"], 400),
        )
        assert some[:, 1:] == pytest.approx(other)
        assert some.std(axis=0) == pytest.approx(posterior.allowance.worse, rel=0.15)
        assert np.corrcoef(some.T)[0, 1] == pytest.approx(0.5, abs=0.15)

    @pytest.mark.slow
    def test_of_several_classes_more_is_allowed_for_towards_worse(self):
        """Classes that look alike are taken for each other by everybody: no vote shows it."""
        rng = np.random.default_rng(3)
        truth, seen = rng.integers(4, size=400), rng.random((400, 6))
        looks = np.where(rng.random(400) < 0.07, truth ^ 1, truth)
        votes = np.where(seen < 0.1, rng.integers(4, size=(400, 6)), looks[:, None])
        found = fl.estimate(
            fl.Predictions(votes=votes, classes=(0, 1, 2, 3)),
            metrics=["error_rate", "accuracy"], confidence_level=0.9,
        )  # fmt: skip
        rows = found.to_dict()["estimates"]
        for row in rows:
            up, down = row["high"] - row["value"], row["value"] - row["low"]
            assert up > 1.3 * down if row["metric"] == "error_rate" else down > 1.3 * up
        error = dict(zip(found.models, (votes != truth[:, None]).mean(axis=0), strict=True))
        of_errors = [row for row in rows if row["metric"] == "error_rate"]
        assert all(row["low"] <= error[row["model"]] <= row["high"] for row in of_errors)

    @pytest.mark.slow
    def test_common_mistakes_are_allowed_for_in_joint_errors(self):
        """A majority may be wrong more often than a model of independent errors says."""
        rng = np.random.default_rng(5)
        truth = labels_of(rng, 3000)
        votes = by_errors(rng, truth, [0.1, 0.12, 0.15, 0.2, 0.1])
        predictions = fl.Predictions(votes=votes, classes=(0, 1))
        doubted, plain = (
            fl.compare(predictions, method=method, metric="error_rate").to_dict()["together"][0]
            for method in ("auto", "confusion-bee")
        )
        assert doubted["majority"]["low"] < plain["majority"]["low"] - 0.003
        assert doubted["all_wrong"]["high"] > plain["all_wrong"]["high"]
        for pair in doubted["pairs"]:  # what rests on no label is not doubted
            assert pair["disagreement"]["low"] == pytest.approx(
                pair["disagreement"]["high"], abs=0.05
            )

    @pytest.mark.slow
    def test_nothing_is_allowed_for_where_all_is_known(self):
        predictions, truth = near_copies(n=80)
        model = fl.models.VoteSelection()
        assert model.infer(predictions.with_labels(truth), 0).allowance == (0, 0)


class TestWeights:
    def test_a_model_must_be_ahead_by_more_than_its_error(self):
        rng = np.random.default_rng(0)
        keys, times = rng.integers(2**60, size=60).astype(np.uint64), np.ones(60)
        plain = np.zeros(60)
        noisy = rng.normal(0, 0.06 * np.sqrt(60), 60)
        noisy += 0.05 - noisy.mean()  # ahead by .05 +- .06 per item
        assert _weights(np.stack([plain, noisy]), times, [keys])[0] > 0.35
        clear = np.full(60, 0.3)
        assert _weights(np.stack([plain, clear]), times, [keys])[1] > 0.99
        assert _weights(np.empty((2, 0)), np.empty(0), [keys[:0]]).tolist() == [1, 0]


class TestLearnedPrior:
    def test_mean_and_strength_of_the_rates(self):
        rng = np.random.default_rng(0)
        rates = rng.dirichlet([6.0, 14.0], 400)[:, None]
        drawn = np.array([[1.0, 10.0]])
        means = []
        for _ in range(200):
            draw_rates_prior(drawn, rates, rng)
            means.append(drawn[0] / drawn.sum())
        assert np.mean(means, axis=0) == pytest.approx([0.3, 0.7], abs=0.03)
        fitted = np.array([[1.0, 10.0]])
        fit_rates_prior(fitted, np.log(rates))
        assert fitted[0] / fitted.sum() == pytest.approx([0.3, 0.7], abs=0.03)
        assert fitted.sum() == pytest.approx(20, rel=0.3)

    def test_refused(self):
        with pytest.raises(UsageError, match="'learned'"):
            fl.models.BEE(error_prior="guess")
        with pytest.raises(UsageError, match="`levels`"):
            fl.models.BEE(levels=2)


class TestWhichItemToLabel:
    def world(self, n=300):
        rng = np.random.default_rng(2)
        truth = labels_of(rng, n, 0.5)
        votes = by_errors(rng, truth, [0.15, 0.2, 0.25, 0.3])
        return votes, truth

    @pytest.mark.slow
    @pytest.mark.slow_with("error-rates")
    @pytest.mark.parametrize("kind", ["error-rates", "labels"])
    def test_chosen_items_tell_more_than_others(self, kind):
        votes, truth = self.world()
        names = ("no", "yes")
        found = fl.label_next(fl.Predictions(votes=votes, classes=names), size=40, kind=kind)
        assert ((found.drawn > 0) & (found.drawn <= 1)).all()
        assert found.likeliest[0] in names

        def left(rows):
            labels = np.full(len(truth), -1)
            labels[rows] = truth[rows]
            known = fl.Predictions(votes=votes, labels=labels, classes=names)
            model = fl.models.BEE(labeled_at_random=False, burn_in=200, sweeps=600, chains=2)
            posterior = model.infer(known, 0)
            if kind == "labels":
                p = posterior.marginals()[:, 1]
                return (p * (1 - p)).sum()
            return posterior.vote_rates.error_rates.var(axis=0).sum()

        others = [np.random.default_rng(s).choice(len(truth), 40, replace=False) for s in range(2)]
        assert left(found.items) < np.mean([left(rows) for rows in others])

    def test_one_classifier_and_classes_and_refusals(self):
        votes, truth = self.world(120)
        predictions = fl.Predictions(votes=votes, classes=(0, 1))
        one = fl.label_next(predictions, "model2", size=3, kind="error-rates", method="bee")
        assert one.model == "model2"
        assert "likeliest" in one.summary()
        assert list(one.to_frame("pandas").columns) == [
            "item", "likeliest", "probability", "gain", "drawn",
        ]  # fmt: skip
        with pytest.raises(UsageError, match="error-rates, labels"):
            fl.label_next(predictions, kind="rates")
        with pytest.raises(fl.InputError, match="none to choose"):
            fl.label_next(predictions.with_labels(truth), kind="labels", method="bee")
        some = predictions.with_labels(np.where(np.arange(120) < 20, truth, -1))
        with pytest.raises(UsageError, match="says nothing of items without a label"):
            fl.label_next(some, kind="labels", method="labeled")
