"""Which items to label next: what a label tells, with which probability it is drawn, for all."""

from __future__ import annotations

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.evaluation.evaluator import Evaluator
from fewlabels.kernels.importance import lure_weights
from fewlabels.metrics.registry import resolve
from fewlabels.questions.next_items import (
    PARTS,
    STRATIFIED,
    along_strata,
    drawn,
    label_posterior,
    metric_target,
    next_items,
    open_items,
)


def world(seed: int, n: int = 400, known: int = 20, models: int = 3):
    """Classifiers of two classes that share a difficulty, two groups, and the truth."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.35).astype(int)
    apart = np.linspace(0.6, 1.8, models)
    x = (
        apart * (2 * truth[:, None] - 1)
        + 0.6 * rng.normal(size=(n, 1))
        + rng.normal(size=(n, models))
    )
    p = 1 / (1 + np.exp(-1.5 * x))
    labels = np.where(np.arange(n) < known, truth, -1)
    groups = {"site": np.where(rng.random(n) < 0.3, "north", "south")}
    return fl.Predictions(p, labels, models=list("abc")[:models], groups=groups), truth


def relabeled(predictions, rows, labels):
    """The same, with these labels known as well."""
    out = predictions.labels.copy()
    out[rows] = labels
    return predictions.with_labels(out)


class TestLureWeights:
    def test_drawn_evenly_all_weigh_one(self):
        left = 50 - np.arange(20)
        assert lure_weights(1 / left, left) == pytest.approx(np.ones(20))

    def test_labels_of_all_items_weigh_one(self):
        rng = np.random.default_rng(0)
        left = 6 - np.arange(6)
        assert lure_weights(rng.uniform(0.1, 0.9, 6), left)[-1] == 1

    def test_the_weighted_mean_is_unbiased(self):
        """Every sequence of two draws from four items, by its probability."""
        loss, chance = np.array([1.0, 0.0, 3.0, 0.5]), np.array([0.1, 0.4, 0.3, 0.2])
        total = 0.0
        for first in range(4):
            for second in set(range(4)) - {first}:
                q = np.array([chance[first], chance[second] / (1 - chance[first])])
                v = lure_weights(q, np.array([4, 3]))
                total += q.prod() * (v * loss[[first, second]]).mean()
        assert total == pytest.approx(loss.mean(), abs=1e-12)


class TestOrders:
    @pytest.mark.parametrize("order", ["random", "stratified"])
    def test_even_orders_say_one_of_those_left(self, order):
        predictions, _ = world(0)
        found = next_items(predictions, order=order, size=30)
        assert found.left.tolist() == list(range(380, 350, -1))
        assert found.probability == pytest.approx(1 / found.left)
        assert len(set(found.items.tolist())) == 30
        assert (predictions.labels[found.items] < 0).all()

    def test_every_ten_stratified_draws_visit_each_part_once(self):
        predictions, _ = world(1)
        place = along_strata(predictions)[open_items(predictions)]
        part = dict(zip(open_items(predictions), np.argsort(np.argsort(place)) // 38, strict=True))
        found = next_items(predictions, order="stratified", size=40)
        visits = [[part[row] for row in found.items[i : i + PARTS]] for i in range(0, 40, PARTS)]
        assert sorted(visits[0]) == list(range(PARTS))  # later rounds have other ends of parts
        assert all(len(set(round_)) >= PARTS - 1 for round_ in visits)

    def test_a_round_goes_on_where_it_stopped(self):
        predictions, truth = world(2)
        whole = next_items(predictions, order="stratified", size=10).items
        seen, place = [], along_strata(predictions)
        for before in range(10):
            (row,) = next_items(predictions, order="stratified", before=before).items
            seen.append(row)
            predictions = relabeled(predictions, [row], truth[row])
        assert np.ptp(place[seen]) > 300
        tenths = np.sort(place[seen]) // 40 - np.sort(place[whole]) // 40
        assert (np.abs(tenths) <= 1).all()

    def test_groups_are_drawn_in_proportion(self):
        predictions, _ = world(3, n=1000)
        north = predictions.groups["site"] == "north"
        found = next_items(predictions, order="stratified", group="site", size=100)
        assert north[found.items].sum() == pytest.approx(100 * north.mean(), abs=6)

    @pytest.mark.slow
    def test_draws_are_as_likely_as_they_say(self):
        """First draws of 4,000 seeds, beside the probabilities that the draws themselves state."""
        predictions, _ = world(4, n=40, known=12)
        _, posterior = label_posterior(predictions, "auto", 0)
        open_rows = open_items(predictions)
        target = metric_target(predictions, posterior, "accuracy", open_rows)
        count, said = np.zeros(40), np.full(40, np.nan)
        for seed in range(4000):
            found = drawn(predictions, open_rows, "informative", 1, seed, target=target)
            count[found.items[0]] += 1
            said[found.items[0]] = found.probability[0]
        known = ~np.isnan(said)
        assert said[known].sum() == pytest.approx(1, abs=0.02)
        error = np.sqrt(said[known] * (1 - said[known]) / 4000)
        assert (np.abs(count[known] / 4000 - said[known]) < 4.5 * error).all()

    def test_no_item_is_impossible(self):
        predictions, _ = world(5)
        found = next_items(predictions, order="informative", size=25)
        assert (found.probability * found.left >= STRATIFIED - 1e-12).all()
        assert (found.gain >= 0).all()
        assert found.gain.sum() <= 1

    def test_order_of_rows_and_skipped_items(self):
        predictions, _ = world(6)
        turn = np.random.default_rng(0).permutation(400)
        for order in ("random", "stratified", "informative"):
            a = next_items(predictions, order=order, size=8)
            b = next_items(predictions.take(turn), order=order, size=8)
            assert turn[b.items].tolist() == a.items.tolist()
            assert b.probability == pytest.approx(a.probability)
            others = next_items(predictions, order=order, size=8, skip=a.items.tolist())
            assert not set(others.items.tolist()) & set(a.items.tolist())

    def test_all_that_are_left(self):
        predictions, _ = world(7, n=60)
        for order in ("random", "stratified", "informative"):
            found = next_items(predictions, order=order, size=100)
            assert sorted(found.items.tolist()) == list(range(20, 60))
            assert found.probability[-1] == pytest.approx(1)

    def test_votes_alone_and_scores_alone(self):
        predictions, _ = world(8)
        labels = predictions.labels
        votes = fl.Predictions(votes=(predictions.probabilities[:, :, 1] > 0.5).astype(int),
                               labels=labels)  # fmt: skip
        scores = fl.Predictions(scores=predictions.probabilities[:, :, 1] * 7 - 3, labels=labels)
        for one in (votes, scores):
            for order in ("stratified", "informative"):
                metric = "roc_auc" if one is scores else "accuracy"
                found = next_items(one, metric=metric, order=order, size=12)
                assert len(set(found.items.tolist())) == 12


class TestTarget:
    def test_gains_are_those_of_drawn_labels(self):
        """Var(E[f | y_i]) of accuracies, from 20,000 joint draws of parameters and labels."""
        predictions, _ = world(9, n=150, known=15)
        _, posterior = label_posterior(predictions, "auto", 0)
        rows = open_items(predictions)
        target = metric_target(predictions, posterior, "accuracy", rows)
        gain = (target.covariance**2).sum(axis=0) / np.maximum(
            target.chance.mean(axis=1) * (1 - target.chance.mean(axis=1)), 1e-9
        )
        rng, size = np.random.default_rng(1), 20_000
        parameters = posterior.interval_parameters
        which = rng.integers(min(parameters.size, 400), size=size)
        chance = parameters.block(np.arange(400), slice(None))[:, 1][:, which]
        y = (rng.random(chance.shape) < chance).astype(float)
        y[predictions.labeled] = predictions.labels[predictions.labeled, None]
        right = predictions.probabilities[:, :, 1] > 0.5
        f = np.stack([(y == right[:, [j]]).mean(axis=0) for j in range(3)])
        place = target.rows
        covariance = (
            (f - f.mean(axis=1, keepdims=True))
            @ (y[place] - y[place].mean(axis=1, keepdims=True)).T
            / size
        )
        exact = (covariance**2).sum(axis=0) / np.maximum(y[place].var(axis=1), 1e-9)
        assert np.corrcoef(gain, exact)[0, 1] > 0.95
        assert gain.sum() == pytest.approx(exact.sum(), rel=0.25)
        assert target.total == pytest.approx(f.var(axis=1).sum(), rel=0.15)

    @pytest.mark.parametrize(
        ("asked", "size"),
        [({}, 3), ({"model": "b"}, 1), ({"model": "a", "against": "c"}, 1),
         ({"against": "best"}, 2), ({"group": "site"}, 6), ({"model": "b", "group": "site"}, 2)],
    )  # fmt: skip
    def test_every_question_is_a_combination_of_metrics(self, asked, size):
        predictions, _ = world(10)
        _, posterior = label_posterior(predictions, "auto", 0)
        for metric in ("accuracy", "roc_auc", "ece"):
            found = metric_target(predictions, posterior, metric, open_items(predictions), **asked)
            assert found.covariance.shape == (size, len(found.rows))
            assert np.isfinite(found.covariance).all()
            assert found.total > 0

    def test_a_difference_is_that_of_two(self):
        predictions, _ = world(11)
        _, posterior = label_posterior(predictions, "auto", 0)
        rows = open_items(predictions)
        one, other, both = (
            metric_target(predictions, posterior, "accuracy", rows, **asked).covariance
            for asked in ({"model": "a"}, {"model": "c"}, {"model": "a", "against": "c"})
        )
        assert both == pytest.approx(one - other)

    def test_parameters_move_the_metric_as_the_evaluator_says(self):
        predictions, _ = world(12)
        _, posterior = label_posterior(predictions, "auto", 0)
        metric = resolve(["accuracy"])
        evaluator = Evaluator(predictions, posterior, metric, "population", None)
        found = evaluator.of_parameters(np.arange(400), 50)["accuracy"]
        chance = posterior.interval_parameters.block(np.arange(50), slice(None))[:, 1]
        right = predictions.probabilities[:, :, 1] > 0.5
        for j in range(3):
            expected = np.where(right[:, [j]], chance, 1 - chance).mean(axis=0)
            assert found[:, j] == pytest.approx(expected)

    def test_what_cannot_be_asked(self):
        predictions, truth = world(13)
        with pytest.raises(fl.UsageError, match="unknown order"):
            next_items(predictions, order="best")
        with pytest.raises(fl.UsageError, match="unknown model"):
            next_items(predictions, order="informative", model="z")
        with pytest.raises(fl.UsageError, match="says nothing of items without a label"):
            next_items(predictions, order="informative", method="labeled")
        assert not len(next_items(predictions.with_labels(truth)).items)
        with pytest.raises(fl.InputError, match="none to choose"):
            fl.label_next(predictions.with_labels(truth), metric="accuracy")


class TestWeightsOfLabels:
    """Who averages labels undoes how they were drawn; label models need not."""

    @pytest.mark.slow
    @pytest.mark.slow_with("labeled", "active-testing")
    @pytest.mark.parametrize("method", ["labeled", "autoeval", "active-testing"])
    def test_labels_drawn_by_size_of_error_are_undone(self, method):
        gaps, plain = [], []
        for seed in range(30):
            rng = np.random.default_rng(seed)
            predictions, truth = world(seed, n=300, known=0, models=1)
            wrong = (predictions.probabilities[:, 0, 1] > 0.5) != truth
            chance, rows, q = np.where(wrong, 4.0, 1.0), [], []
            for _ in range(60):
                p = chance / chance.sum()
                row = int(rng.choice(300, p=p))
                rows.append(row)
                q.append(p[row])
                chance[row] = 0.0
            weight = np.ones(300)
            weight[rows] = lure_weights(np.array(q), 300 - np.arange(60))
            labeled = relabeled(predictions, rows, truth[rows])
            for known, out in ((labeled.with_label_weight(weight), gaps), (labeled, plain)):
                found = fl.estimate(known, method, "accuracy", confidence_level=None)
                out.append(found.rows[0].value - (1 - wrong.mean()))
        error = np.std(gaps, ddof=1) / np.sqrt(len(gaps))
        assert abs(np.mean(gaps)) < 3.5 * error + 0.005
        assert np.mean(plain) < -0.15

    def test_weights_are_checked(self):
        predictions, _ = world(0)
        with pytest.raises(fl.InputError, match="`label_weight` must be above 0"):
            predictions.with_label_weight(np.zeros(400))
        assert (predictions.with_label_weight(np.full(400, 2.0)).label_weight[20:] == 1).all()

    def test_few_labels_by_what_they_are_worth(self):
        predictions, _ = world(0)
        weight = np.full(400, 1e-3)
        weight[:2] = 1.0
        found = fl.estimate(predictions.with_label_weight(weight), "labeled", "accuracy")
        assert {row.status for row in found.rows} == {"few-labels"}

    def test_recorded_draws_are_no_shift(self):
        predictions, truth = world(3, n=600, known=0)
        rows = np.argsort(-predictions.probabilities[:, 0, 1])[:60]
        found = relabeled(predictions, rows, truth[rows])
        assert any(w.startswith("shift") for w in fl.estimate(found).warnings)
        weighted = found.with_label_weight(np.ones(600))
        assert not any(w.startswith("shift") for w in fl.estimate(weighted).warnings)
