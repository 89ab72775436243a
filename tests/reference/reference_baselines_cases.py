"""Awkward data, each a function of a generator, and what every method must still keep to."""

from __future__ import annotations

import math
import warnings

import numpy as np
from reference_questions import estimates_of

import fewlabels as fl
from worlds import PI_3, crowd, world


def one_class(rng):
    w = world(n=60, models=2, labeled=20, seed=84)
    return w.predictions(labels=np.where(w.shown == 1, -1, w.shown))


def identical(rng):
    w = world(n=60, models=1, labeled=20, seed=85)
    return fl.Predictions(np.repeat(w.P, 2, axis=1), w.shown)


def constant(rng):
    labels = np.where(np.arange(60) < 20, np.arange(60) % 2, -1)
    return fl.Predictions(np.full((60, 2), 0.3), labels)


def constant_beside_a_good_one(rng):
    w = world(n=60, models=2, labeled=20, seed=86)
    P = w.P.copy()
    P[:, 1] = [0.5, 0.5]
    return fl.Predictions(P, w.shown)


def saturated(rng):
    w = world(n=60, models=2, labeled=20, seed=87)
    return fl.Predictions(np.eye(2)[w.P.argmax(axis=2)], w.shown)


def saturated_and_wrong(rng):
    """Sure of the opposite of every label."""
    labels = np.where(np.arange(60) < 20, np.arange(60) % 2, -1)
    return fl.Predictions((1.0 - np.arange(60) % 2)[:, None], labels)


def one_label(rng):
    w = world(n=60, models=2, labeled=1, seed=88)
    return w.predictions()


def missing_predictions(rng):
    w = world(n=60, models=3, labeled=20, seed=89)
    P = w.P.copy()
    P[rng.random((60, 3)) < 0.3] = np.nan
    P[:20, 2] = np.nan  # and where it is missing, half of the labels are
    P[np.isnan(P[:, :, 0]).all(axis=1), 0] = 0.5
    return fl.Predictions(P, w.shown)


def nothing_predicted_for_some(rng):
    w = world(n=60, models=2, labeled=20, seed=90)
    P = w.P.copy()
    P[:6] = np.nan
    return fl.Predictions(P, w.shown)


def absent_class(rng):
    """K = 5; class 4 is never predicted and has no label."""
    w = world(n=80, models=2, classes=4, labeled=25, seed=91)
    return fl.Predictions(np.pad(w.P, ((0, 0), (0, 0), (0, 1))), w.shown, classes=list("vwxyz"))


def weighted(rng):
    w = world(n=60, models=2, labeled=20, seed=92)
    return w.predictions(weight=rng.gamma(0.3, size=60))


def weightless_labels(rng):
    """Half of the labeled items, and others, count for nothing."""
    w = world(n=60, models=2, labeled=20, seed=93)
    weight = (rng.random(60) < 0.5).astype(float)
    weight[np.flatnonzero(w.shown >= 0)[0]] = 1
    return w.predictions(weight=weight)


def three_items(rng):
    return fl.Predictions([[0.9, 0.6], [0.2, 0.4], [0.6, 0.8]], [1, -1, -1])


def three_items_all_labeled(rng):
    return fl.Predictions([[0.9, 0.6], [0.2, 0.4], [0.6, 0.8]], [1, 0, 0])


def all_items_equal(rng):
    return fl.Predictions(
        np.full((30, 1), 0.8), np.where(np.arange(30) < 10, np.arange(30) % 2, -1)
    )


def votes_only(rng):
    _, votes, _, shown = crowd(60, PI_3, 15, seed=9, missing=0.2)
    return fl.Predictions(votes=votes, labels=shown)


def opinions(rng):
    w = world(n=60, models=2, labeled=5, seed=94)
    histogram = np.array(
        [rng.multinomial(rng.integers(0, 4), 0.8 * np.eye(2)[t] + 0.1) for t in w.truth]
    )
    return w.predictions(histogram=histogram)


CASES = (
    one_class, identical, constant, constant_beside_a_good_one, saturated, saturated_and_wrong,
    one_label, missing_predictions, nothing_predicted_for_some, absent_class, weighted,
    weightless_labels, three_items, three_items_all_labeled, all_items_equal, votes_only, opinions,
)  # fmt: skip


def hold_to_the_contract(predictions: fl.Predictions, method, **options) -> fl.Estimates | None:
    """One line that refuses, or numbers within bounds, ordered, and a posterior that is one."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            estimates = estimates_of(
                predictions, method=method, metrics=["accuracy", "brier", "log_loss", "ece"],
                **options,
            )  # fmt: skip
        except fl.FewlabelsError as error:
            refusal = str(error)
        else:
            refusal = ""
    if refusal:
        assert "\n" not in refusal
        assert len(refusal) > 20
        return None
    top = {"accuracy": 1, "ece": 1, "log_loss": math.inf}
    top["brier"] = 1 if predictions.n_classes == 2 else 2
    for row in estimates.rows:
        if math.isnan(row.value):
            assert row.status in (fl.Status.UNDEFINED, fl.Status.NOT_APPLICABLE), tuple(row)
            continue
        assert 0 <= row.low <= row.value <= row.high <= top[row.metric], tuple(row)
        assert row.metric == "log_loss" or math.isfinite(row.high)
    for j in range(predictions.n_models):
        Q = estimates.posterior.of(j).marginals()
        assert np.isfinite(Q).all()
        assert (Q >= 0).all()
        np.testing.assert_allclose(Q.sum(axis=1), 1, atol=1e-9)
        known = predictions.labeled
        np.testing.assert_array_equal(
            Q[known], np.eye(predictions.n_classes)[predictions.labels[known]]
        )
    return estimates
