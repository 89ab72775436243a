"""Curves of their own for groups: exact, found where they are, and nothing where there are none."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import expit, logit

import fewlabels as fl
from fewlabels.methods.base import FittedLabelModel
from fewlabels.methods.group_curves import ALIKE, SDS, _in_order, with_group_curves
from fewlabels.models import MonotoneCurves
from fewlabels.posterior import LabelPosterior


@dataclass(frozen=True)
class Shifted(FittedLabelModel):
    """Log-odds of an item are those of its probability plus a, of which there are draws."""

    a: np.ndarray
    shares: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def size(self) -> int:
        return len(self.a)

    def posterior(self, predictions: fl.Predictions) -> LabelPosterior:
        draws = _ShiftedDraws(self.a, predictions.probabilities[:, 0, 1])
        shares = {} if self.shares is None else {"model0": self.shares}
        return LabelPosterior(
            None, draws, predictions.keys, interval_parameters=draws if shares else None,
            shares=shares,
        )  # fmt: skip


@dataclass(frozen=True)
class _ShiftedDraws:
    a: np.ndarray
    p: np.ndarray

    @property
    def size(self) -> int:
        return len(self.a)

    def block(self, index, rows):
        one = expit(logit(self.p[rows])[:, None] + self.a[index])
        return np.stack([1 - one, one], axis=1)


def tiny(seed: int = 0) -> fl.Predictions:
    """Two groups of 10 and 8 labels, most positive in one."""
    rng = np.random.default_rng(seed)
    group = np.repeat(["a", "b"], [10, 8])
    logits = rng.normal(size=18)
    labels = (rng.random(18) < expit(logits + np.where(group == "a", 0.6, -0.9))).astype(int)
    return fl.Predictions(
        np.column_stack([1 - expit(logits), expit(logits)])[:, None], labels,
        groups={"site": group}, classes=[0, 1],
    )  # fmt: skip


def grid_draws(items: fl.Predictions, size: int) -> np.ndarray:
    """Draws of a ~ N(0, 1) given the labels, evenly spread and in random order."""
    a = np.linspace(-5, 5, 4001)
    z = logit(items.probabilities[:, 0, 1])[:, None] + a
    height = np.where(items.labels[:, None] == 1, z, -z)
    weight = np.exp(-0.5 * a**2 - np.logaddexp(0, -height).sum(axis=0))
    places = np.searchsorted(np.cumsum(weight) / weight.sum(), (np.arange(size) + 0.5) / size)
    return np.random.default_rng(1).permutation(a[places])


@pytest.mark.slow
def test_draws_are_those_of_the_posterior():
    """Means and sds of P(label) against integration over a grid of all that is unknown."""
    items = tiny()
    z, y = logit(items.probabilities[:, 0, 1]), items.labels
    second = items.groups["site"] == "b"
    layered = with_group_curves(
        Shifted(grid_draws(items, 4000)), items, np.random.default_rng(0)
    ).posterior(items.with_evidence(None))
    p = layered.parameters.block(np.arange(4000), slice(None))[:, 1]

    node, height = np.polynomial.hermite_e.hermegauss(14)
    # Of the fitted model, of the difference between the groups, and in common.
    a, u, v, o, w = np.meshgrid(*[node] * 5, indexing="ij")
    prior = np.prod(np.meshgrid(*[height] * 5, indexing="ij"), axis=0)
    total, mean, square = 0.0, np.zeros(18), np.zeros(18)
    for tau, share in ((0.0, ALIKE), *((tau, (1 - ALIKE) / len(SDS)) for tau in SDS)):
        # The mean over the labels of the differences is 0.
        weight, of_each = share * prior, []
        centre = logit(expit(z + node[:, None]).mean(axis=1)).reshape(-1, 1, 1, 1, 1)
        for logit_i, y_i, place in zip(z, y, np.where(second, 10, -8) / 18, strict=True):
            offset = tau * (np.sqrt(2) * u * place + o)
            slope = tau * (v / np.sqrt(2) * place + 0.5 * w)
            one = expit(centre + offset + (1 + slope) * (logit_i + a - centre))
            weight = weight * (one if y_i else 1 - one)
            of_each.append(one)
        total += weight.sum()
        mean += [(weight * one).sum() for one in of_each]
        square += [(weight * one**2).sum() for one in of_each]
    mean /= total
    np.testing.assert_allclose(p.mean(axis=1), mean, atol=0.006)
    np.testing.assert_allclose(p.std(axis=1), np.sqrt(square / total - mean**2), atol=0.006)


def test_draws_of_a_mixture_keep_their_shares():
    items = tiny()
    a = grid_draws(items, 400)
    base = Shifted(a, (np.arange(400.0), np.arange(400.0)))
    layered = with_group_curves(base, items, np.random.default_rng(0)).posterior(items)
    places = layered.shares["model0"][0].astype(int)
    np.testing.assert_array_equal(layered.parameters.effects.places, places)
    assert (places == np.arange(400)).mean() > 0.5  # most keep their places


@pytest.mark.parametrize(
    ("names", "ordered", "first"),
    [
        (["10", "9", "-1.5"], True, "-1.5"),
        (["2024-W10", "2023-W52", "2024-W9"], True, "2023-W52"),
        (["2024-02-01 00:00:00", "2024-01-31 00:00:00"], True, "2024-01-31 00:00:00"),
        (["week 11", "week 2"], True, "week 2"),
        (["north", "2", "east"], False, "2"),
    ],
)
def test_values_with_numbers_have_an_order(names, ordered, first):
    found, has = _in_order(names)
    assert has == ordered
    assert not ordered or found[0] == first


def weekly(
    seed: int = 0, per_week: int = 300, labels: int = 25
) -> tuple[fl.Predictions, np.ndarray]:
    """Eight weeks of one classifier; from week six on it hardly tells the classes apart."""
    rng = np.random.default_rng(seed)
    week = np.repeat(np.arange(1, 9), per_week)
    truth = rng.random(len(week)) < 0.3
    gap = np.where(week >= 6, 0.5, 2.4)
    p = expit(2 * (gap * truth + rng.normal(size=len(week)) - 1.4))
    known = np.arange(len(week)) % per_week < labels
    return (
        fl.Predictions(
            np.column_stack([1 - p, p])[:, None], np.where(known, truth, -1),
            groups={"week": [f"2024-W{w:02}" for w in week]},
        ),
        truth,
    )  # fmt: skip


def test_a_classifier_that_degrades_is_seen():
    items, truth = weekly(per_week=150)
    posterior = MonotoneCurves(particles=200, n_draws=200).infer(items, 0, by=["week"])
    p = posterior.parameters.block(np.arange(200), slice(None))[:, 1]
    called = items.hard[:, 0] == 1
    for week in (2, 7):
        inside = items.groups["week"] == f"2024-W{week:02}"
        recall = p[inside & called].sum(axis=0) / p[inside].sum(axis=0)
        true = called[inside & truth].mean()
        assert abs(recall.mean() - true) < 0.15
        assert np.quantile(recall, 0.02) < true < np.quantile(recall, 0.98)
    weights = posterior.diagnostics["group_curves"]["model0"]["week"]
    assert weights["alike"] < 0.1
    assert sum(weights.values()) == pytest.approx(1, abs=0.01)


def test_without_by_groups_change_nothing():
    items, _ = weekly(per_week=40, labels=8)
    bare, model = items.keeping(()), MonotoneCurves(particles=100, n_draws=60)
    pooled = model.infer(bare, 0).marginals()
    np.testing.assert_array_equal(model.infer(items, 0).marginals(), pooled)
    apart = model.infer(items, 0, by=["week"])
    assert "group_curves" in apart.diagnostics
    assert np.abs(apart.marginals() - pooled).max() > 0.01


def fitted_weekly() -> tuple[FittedLabelModel, fl.Predictions]:
    items, _ = weekly(per_week=40, labels=8)
    model = MonotoneCurves(particles=100, n_draws=60)
    return model.fit(items, np.random.default_rng(0)), items


def test_a_block_of_items_is_as_in_the_whole():
    fitted, items = fitted_weekly()
    whole = fitted.posterior(items).parameters.block(np.arange(60), slice(None))
    some = np.arange(7, items.n_items, 3)
    read_again = pickle.loads(pickle.dumps(fitted))
    part = read_again.posterior(items.take(some)).parameters.block(np.arange(60), slice(None))
    np.testing.assert_allclose(part, whole[some], rtol=1e-9, atol=1e-12)
    # Of a value that was not there, and without the column, items are as they are without groups.
    elsewhere = items.keeping(())
    one = fitted.posterior(elsewhere).parameters.block(np.arange(60), slice(None))
    assert np.isfinite(one).all()


def test_the_order_of_the_rows_does_not_matter():
    fitted, items = fitted_weekly()
    order = np.random.default_rng(3).permutation(items.n_items)
    shuffled = items.take(order)
    again = MonotoneCurves(particles=100, n_draws=60).fit(shuffled, np.random.default_rng(0))
    np.testing.assert_allclose(
        again.posterior(shuffled).marginals(), fitted.posterior(items).marginals()[order],
        atol=1e-9,
    )  # fmt: skip


def test_a_group_without_labels_is_less_certain():
    items, _ = weekly(per_week=60, labels=12)
    hidden = items.with_labels(np.where(items.groups["week"] == "2024-W08", -1, items.labels))
    model = MonotoneCurves(particles=200, n_draws=200)
    rows = np.flatnonzero(hidden.groups["week"] == "2024-W08")
    pooled, apart = (
        model.infer(hidden, 0, by).parameters.block(np.arange(200), rows)[:, 1].mean(axis=0).std()
        for by in ((), ("week",))
    )
    assert apart > 1.5 * pooled


def test_columns_of_very_many_groups_have_no_curves():
    items, _ = weekly(per_week=40, labels=8)
    many = replace_groups(items, [f"{i % 41:c}x" for i in range(97, 97 + items.n_items)])
    model = MonotoneCurves(particles=100, n_draws=60)
    assert "group_curves" not in model.infer(many, 0, by=["g"]).diagnostics
    missing = replace_groups(items, np.where(np.arange(items.n_items) % 2, "x", None))
    assert "group_curves" not in model.infer(missing, 0, by=["g"]).diagnostics


def replace_groups(items: fl.Predictions, values: np.ndarray) -> fl.Predictions:
    return fl.Predictions(items.probabilities, items.labels, groups={"g": values})
