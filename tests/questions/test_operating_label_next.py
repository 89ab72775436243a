"""fl.label_next: its gains are those of labels drawn, and labels chosen so are worth more."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from operating_naive import question_of, random_world, told

import fewlabels as fl
from fewlabels.evaluation.draws import LABELS
from fewlabels.kernels.blocks import silent
from fewlabels.models import METHODS
from fewlabels.questions import label_next as module
from fewlabels.questions.counts import KINDS
from fewlabels.questions.next_items import Target, greedy

METHOD = "bayesian-calibration"


def world(seed: int, n: int, known: int) -> tuple[fl.Predictions, np.ndarray]:
    """A classifier that is overconfident and off, and the truth."""
    rng = np.random.default_rng(seed)
    x = rng.normal(-1, 1.8, n)
    truth = (rng.random(n) < 1 / (1 + np.exp(0.3 - 1.5 * x))).astype(int)
    labels = np.where(np.arange(n) < known, truth, -1)
    return fl.Predictions(1 / (1 + np.exp(-x))[:, None], labels, models=["a"]), truth


def design(predictions: fl.Predictions, kind: str) -> module.Design:
    return module.Design(question_of(predictions, METHOD, "sample"), KINDS[kind])


@pytest.mark.slow
@pytest.mark.product
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [60, 250])
def test_gains_are_those_of_drawn_labels(kind, n):
    """Var(E[f | y_i]) from 16,000 joint draws of labels and curves, counted in this test."""
    predictions, _ = world(1, n, 12)
    found = design(predictions, kind)
    chance = found.chances()
    mean = chance.mean(axis=1)
    variance = mean * (1 - mean)
    gain = (found.covariance(chance) ** 2).sum(axis=0) / variance

    size = 16_000
    (f,) = found.counts.sample(size).arrays(lambda drawn: KINDS[kind].read(drawn)[:1], silent)
    y = found.weights.drawn(LABELS, np.arange(size)).labels[found.places].T.astype(float)
    covariance = (f - f.mean(axis=0)).T @ (y - y.mean(axis=0)) / size
    total = f.var(axis=0).sum()
    exact = (covariance**2).sum(axis=0) / y.var(axis=0) - total / size  # less its noise
    assert np.corrcoef(gain, exact)[0, 1] > 0.95
    assert exact[gain.argmax()] > 0.75 * exact.max()
    assert gain.sum() == pytest.approx(exact.sum(), rel=0.3)


def test_a_batch_does_not_ask_the_same_twice():
    """Three groups of items, each with a label probability of its own: one is picked of each."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], 5)
    chance = np.clip(0.5 + 0.4 * rng.choice([-1, 1], (3, 400)), 0, 1)[group]
    curve = chance[[0, 5, 10]] - chance[[0, 5, 10]].mean(axis=1, keepdims=True)
    curve *= np.array([[1.0], [0.9], [0.8]])
    covariance = curve @ (chance - chance.mean(axis=1, keepdims=True)).T / 400
    picks, gains = greedy(Target(np.arange(15), covariance, chance, 1.0), 15)
    assert group[picks[:3]].tolist() == [0, 1, 2]
    assert sorted(picks.tolist()) == list(range(15))
    assert (np.diff(gains) <= 1e-12).all()
    total = curve.var(axis=1).sum()
    assert 0.8 * total < gains.sum() <= total * (1 + 1e-9)


def test_rank_one_updates_are_gaussian_conditioning():
    rng = np.random.default_rng(1)
    chance = rng.beta(2, 3, (12, 300))
    places = rng.normal(size=(300, 4)) + 3 * chance[:4].T
    mean = chance.mean(axis=1)
    labels = np.cov(chance, bias=True)
    labels[np.diag_indices(12)] = mean * (1 - mean)
    with_labels = (places - places.mean(axis=0)).T @ (chance - mean[:, None]).T / 300
    picks, gains = greedy(Target(np.arange(12), with_labels, chance, 1.0), 5)
    for count in range(1, 6):
        some = picks[:count]
        solved = np.linalg.solve(labels[np.ix_(some, some)], with_labels[:, some].T)
        removed = np.trace(with_labels[:, some] @ solved)
        assert gains[:count].sum() == pytest.approx(removed, rel=1e-9)


def narrowed(seeds: int, size: int) -> np.ndarray:
    """Mean width of the band after labeling random items, and after those chosen, per seed."""
    widths = []
    for seed in range(seeds):
        predictions, truth = world(seed, 600, 10)
        chosen = fl.label_next(predictions, size=size, method=METHOD).items
        rng = np.random.default_rng(seed)
        random = rng.choice(np.flatnonzero(~predictions.labeled), size, replace=False)
        row = []
        for items in (random, chosen):
            labels = predictions.labels.copy()
            labels[items] = truth[items]
            found = fl.curve(predictions.with_labels(labels), method=METHOD)
            row.append((found.high - found.low).mean())
        widths.append(row)
    return np.array(widths)


@pytest.mark.slow
def test_chosen_labels_narrow_the_band_faster():
    random, chosen = narrowed(6, 20).mean(axis=0)
    assert chosen < 0.92 * random


@pytest.mark.slow
def test_chosen_labels_are_worth_more_than_random_ones():
    widths = narrowed(40, 20)
    gap = widths[:, 0] - widths[:, 1]
    # half of the draws are stratified, so that every item has a probability
    assert gap.mean() > 3 * gap.std(ddof=1) / np.sqrt(len(gap))
    # as narrow as with half as many random ones again
    assert widths[:, 1].mean() < narrowed(40, 30)[:, 0].mean()


def test_items_are_unlabeled_and_have_scores():
    predictions = random_world(2, n=60)
    found = fl.label_next(predictions, size=100, method=told())
    assert len(set(found.items.tolist())) == len(found.items)
    assert (predictions.labels[found.items] == -1).all()
    assert not np.isnan(found.score).any()
    assert (predictions.weight[found.items] > 0).all()
    free = (~predictions.labeled) & predictions.has_probabilities[:, 0] & (predictions.weight > 0)
    assert len(found.items) == free.sum()
    assert any("only" in w for w in found.warnings)
    assert (found.gain >= 0).all()
    assert np.isfinite(found.gain).all()


@pytest.mark.parametrize("kind", KINDS)
def test_order_of_rows_and_workers(kind):
    predictions, _ = world(3, 200, 12)
    order = np.random.default_rng(0).permutation(200)
    a = fl.label_next(predictions, method=METHOD, kind=kind)
    b = fl.label_next(predictions.take(order), method=METHOD, kind=kind)
    c = fl.label_next(predictions, method=METHOD, kind=kind, workers=2)
    assert order[b.items].tolist() == a.items.tolist()
    assert a.report() == c.report()


def test_labels_to_come_do_not_show():
    predictions, truth = world(4, 150, 15)
    assert (fl.label_next(predictions, method=METHOD).items >= 15).all()
    other = fl.Predictions(predictions.probabilities, np.where(np.arange(150) < 15, truth, -1))
    assert (
        fl.label_next(other, method=METHOD).items.tolist()
        == fl.label_next(predictions, method=METHOD).items.tolist()
    )


def test_many_items_are_thinned_over_the_scores(monkeypatch):
    monkeypatch.setattr(module, "CANDIDATES", 50)
    predictions, _ = world(5, 1000, 10)
    found = design(predictions, "roc")
    scores = np.sort(found.question.scores[found.question.rows[found.places]])
    assert len(scores) == 50
    places = np.searchsorted(np.sort(found.question.scores), scores)
    assert np.diff(places).max() < 45


def test_certainty_gains_nothing():
    data = fl.Predictions([[1.0], [0.0], [1.0], [0.0]], [1, 0, -1, -1])
    found = fl.label_next(data, method="ensemble")
    assert sorted(found.items.tolist()) == [2, 3]
    assert (found.gain == 0).all()


def test_one_class_of_three():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 60)[:, None, :]
    labels = np.where(np.arange(60) < 12, rng.integers(3, size=60), -1)
    data = fl.Predictions(p, labels, classes=["x", "y", "z"])
    found = fl.label_next(data, size=5, positive="y", method=told())
    assert found.positive == "y"
    np.testing.assert_array_equal(found.score, p[found.items, 0, 1])


def test_the_statement_says_who_may_learn_from_them(monkeypatch):
    predictions, _ = world(3, 80, 10)
    found = fl.label_next(predictions, size=2, method=METHOD)
    assert f"With {METHOD}, {METHODS[METHOD].chosen_by_score}" in found.statement
    assert "not known" in fl.label_next(predictions, size=2, method=told()).statement
    evenly = fl.label_next(predictions, size=2, method=METHOD, order="stratified").statement
    assert "any method may learn from their labels" in evenly
    fit = {"x": replace(METHODS["ensemble"], name="x", chosen_by_score="yes: it may")}
    monkeypatch.setattr(module, "METHODS", {**METHODS, **fit})
    said = fl.label_next(predictions, size=2, method=METHOD).statement
    assert re.search(r"Of the others, [^.]*\bx may\.", said)


def test_what_cannot_be_asked():
    predictions, truth = world(3, 80, 10)
    with pytest.raises(fl.UsageError, match="says nothing of items without a label"):
        fl.label_next(predictions, method="labeled")
    with pytest.raises(fl.UsageError, match="`size` must be a whole number"):
        fl.label_next(predictions, size=0)
    with pytest.raises(fl.UsageError, match="unknown kind"):
        fl.label_next(predictions, kind="lift")
    with pytest.raises(fl.UsageError, match="unknown order"):
        fl.label_next(predictions, order="best")
    with pytest.raises(fl.UsageError, match="`against` goes with a metric"):
        fl.label_next(predictions, against="best")
    with pytest.raises(fl.UsageError, match="`min_precision` is of the precision-recall curve"):
        fl.label_next(predictions, kind="roc", min_precision=0.8)
    with pytest.raises(fl.InputError, match="none to choose"):
        fl.label_next(predictions.with_labels(truth), method=METHOD)


def test_forms():
    predictions, _ = world(3, 80, 0)
    found = fl.label_next(predictions, size=3, method=METHOD)
    assert found.status is fl.Status.ASSUMPTION
    assert list(found.to_dict()) == ["items", "gain", "drawn", "left", "score", "probability"]
    assert found.report()["what"] == "label-next"
    json.dumps(found.report(), allow_nan=False)
    assert list(found.to_frame("pandas").columns) == [
        "item", "score", "probability", "gain", "drawn",
    ]  # fmt: skip
