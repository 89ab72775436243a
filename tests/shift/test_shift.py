"""fl.shift: sizes and power, hard inputs, invariances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from shift_worlds import classified, confident_labeled, label_shifted

import fewlabels as fl
from fewlabels.shifts.analysis import covariate_weights, importance, shift
from fewlabels.shifts.sampling_test import Sizes, beliefs, sampling_test, traits

SMALL = Sizes(200, 600, 199)


def p_values(worlds: Any) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.array([sampling_test(w.predictions(), rng, SMALL).p_value for w in worlds])


@pytest.mark.parametrize("n_labeled", [5, 20])
def test_the_level_is_kept(n_labeled: int) -> None:
    worlds = (label_shifted(s, n_labeled, [0.8, 0.2], [0.8, 0.2], 200) for s in range(120))
    found = p_values(worlds)
    for level in (0.05, 0.2, 0.5):
        error = np.sqrt(level * (1 - level) / 120)
        assert abs((found <= level).mean() - level) < 3.5 * error


def test_the_power_is_there() -> None:
    label = p_values(label_shifted(s, 30, [0.5, 0.5], [0.9, 0.1], 300) for s in range(20))
    sure = p_values(confident_labeled(s, 50, [0.5, 0.5], 300) for s in range(20))
    assert (label < 0.05).mean() > 0.8
    assert (sure < 0.05).mean() > 0.8


@pytest.mark.slow
def test_a_small_difference_among_many_labels_is_warned_of() -> None:
    rng = np.random.default_rng(0)
    p = 1 / (1 + np.exp(-rng.normal(0, 2, 6000)))
    # The less sure of two items is labeled: a difference of .2 standard deviations.
    chosen = rng.random(6000) < 0.1 * (1.2 - 0.4 * np.abs(2 * p - 1))
    found = {
        n: fl.estimate(fl.Predictions({"m": p}, np.where(labeled, p > rng.random(6000), -1)))
        for n, labeled in (("chosen", chosen), ("random", rng.permutation(chosen)))
    }
    assert "shift: labeled items" in " ".join(found["chosen"].warnings)
    assert "shift: labeled items" not in " ".join(found["random"].warnings)


def test_label_shift_is_found_and_measured() -> None:
    predictions = label_shifted(0, 50, [0.5, 0.5], [0.9, 0.1]).predictions()
    found = shift(predictions, confidence_level=0.99)
    assert found.p_value < 0.01
    assert found.label.p_value < 0.01
    assert found.label.low[1] < 0.1 < found.label.high[1] < 0.3
    assert found.suggested == "label"
    assert found.verdict == "not-decidable"
    assert found.label.weights[1] < 0.5 < 1 < found.label.weights[0]
    assert found.label.black_box[1] < 0.5
    assert "these data cannot tell which" in found.statement


def test_confident_labels_are_no_label_shift() -> None:
    found = shift(confident_labeled(1, 100, [0.5, 0.5]).predictions())
    assert found.p_value < 0.01
    assert found.verdict == "not-label-alone"
    assert found.suggested == "covariate"
    assert "confident" in found.statement or "agree" in found.statement
    assert found.effective["covariate"] < 100


def test_five_classes() -> None:
    target = np.array([0.6, 0.1, 0.1, 0.1, 0.1])
    found = shift(label_shifted(2, 100, np.full(5, 0.2), target, 1000).predictions())
    assert found.p_value < 0.05
    np.testing.assert_allclose(found.label.unlabeled.sum(), 1)
    assert ((found.label.low <= target) & (target <= found.label.high)).sum() >= 4


@pytest.mark.slow
def test_order_and_seed() -> None:
    world = label_shifted(3, 20, [0.6, 0.4], [0.8, 0.2], 150)
    first = shift(world.predictions()).to_dict()
    again = shift(world.predictions()).to_dict()
    assert first == again
    order = np.random.default_rng(0).permutation(len(world.truth))
    shuffled = fl.Predictions(world.probabilities[order], world.shown[order])
    other = shift(shuffled).to_dict()
    for key in ("p_value", "energy_p_value", "verdict", "statement"):
        assert other[key] == first[key]
    for one, two in zip(
        first["label_shift"]["classes"], other["label_shift"]["classes"], strict=True
    ):
        assert one["unlabeled"] == pytest.approx(two["unlabeled"], abs=1e-9)
    assert shift(world.predictions(), random_state=1).p_value != pytest.approx(0, abs=1e-9)


def hard_cases() -> dict[str, fl.Predictions]:
    world = label_shifted(4, 12, [0.5, 0.3, 0.2], [0.5, 0.3, 0.2], 120)
    p, y = world.probabilities, world.shown
    votes = p.argmax(axis=2)
    gaps = p.copy()
    gaps[np.random.default_rng(0).random(p.shape[:2]) < 0.3] = np.nan
    two = classified(np.random.default_rng(5), 132, [0.7, 0.3])
    shown = np.where(np.arange(132) < 12, two[1], -1)
    return {
        "absent class": fl.Predictions(p, np.where(y == 2, 1, y), classes=["a", "b", "c"]),
        "one class": fl.Predictions(p, np.where(y >= 0, 0, y)),
        "one classifier": fl.Predictions(p[:, :1], y),
        "votes": fl.Predictions(votes=votes, labels=y),
        "votes with gaps": fl.Predictions(
            votes=np.where(np.isnan(gaps[:, :, 0]), -1, votes), labels=y
        ),
        "gaps": fl.Predictions(gaps, y),
        "nothing for some items": fl.Predictions(
            np.where(np.arange(132)[:, None, None] % 7 == 0, np.nan, p), y
        ),
        "copies": fl.Predictions(np.repeat(p[:, :1], 3, axis=1), y),
        "scores": fl.Predictions(scores=np.log(two[0][:, :, 1]), labels=shown),
        "constant": fl.Predictions(np.full((132, 2, 3), 1 / 3), y),
        "zeros and ones": fl.Predictions(np.eye(3)[votes], y),
        "histogram": fl.Predictions(
            p, np.where(np.arange(132) < 6, y, -1),
            histogram=np.where((np.arange(132) < 12)[:, None], np.eye(3)[y], 0.0),
        ),
    }  # fmt: skip


@pytest.mark.few(5)
@pytest.mark.parametrize("case", hard_cases())
def test_hard_cases(case: str) -> None:
    found = shift(hard_cases()[case])
    assert 0 < found.p_value <= 1
    assert 0 < found.label.p_value <= 1
    assert 0 < found.label.fit_p_value <= 1
    assert np.isfinite(found.label.unlabeled).all()
    np.testing.assert_allclose(found.label.unlabeled.sum(), 1)
    assert all(len(line) <= 80 for line in found.summary(80).splitlines())
    if case == "constant":
        assert found.p_value == 1.0
    if case == "absent class":
        assert any("no labeled item of class c" in said for said in found.warnings)


def test_votes_that_differ_are_found() -> None:
    world = label_shifted(5, 40, [0.2, 0.8], [0.9, 0.1])
    votes = fl.Predictions(votes=world.probabilities.argmax(axis=2), labels=world.shown)
    assert shift(votes).p_value < 0.01


def test_missing_predictions_are_a_difference() -> None:
    world = label_shifted(6, 30, [0.5, 0.5], [0.5, 0.5], 200)
    p = world.probabilities.copy()
    p[30:180, 0] = np.nan
    found = shift(fl.Predictions(p, world.shown, models=["slow", "b", "c"]))
    assert found.p_value < 0.01
    assert "slow has no prediction" in found.statement


def test_agreement_and_predicted_classes_are_shares_of_what_is_said() -> None:
    votes = np.array([[0, 0, 1], [1, 1, 1], [0, -1, 1], [1, -1, -1], [-1, -1, -1]])
    found = traits(fl.Predictions(votes=votes), beliefs(fl.Predictions(votes=votes)))
    column = dict(zip(found.names, found.values.T, strict=True))
    np.testing.assert_allclose(column["agreement", None], [1 / 3, 1, 0, np.nan, np.nan])
    np.testing.assert_allclose(column["predicted", "1"], [1 / 3, 1, 0.5, 1, np.nan])


@pytest.mark.parametrize("models", [20, 21])
def test_many_classifiers_are_looked_at_together(models: int) -> None:
    world = label_shifted(7, 40, [0.5, 0.5], [0.5, 0.5], 200, models)
    p = world.probabilities.copy()
    p[40:][np.random.default_rng(0).random((200, models)) < 0.5] = np.nan
    found = shift(fl.Predictions(p, world.shown))
    alone = {d.trait.kind for d in found.sampling.differences if d.trait.about is not None}
    assert alone == ({"predicted"} if models > 20 else {"confidence", "missing", "predicted"})
    assert found.p_value < 0.01
    if models > 20:
        top = found.sampling.differences[0]
        assert top.trait == ("missing", None)
        assert top.labeled == 0
        assert top.unlabeled == pytest.approx(0.5, abs=0.03)
        assert "classifiers lack 0% of their predictions on labeled and " in found.statement


@pytest.mark.parametrize(("n_labeled", "n"), [(0, 20), (4, 20), (20, 20)])
def test_nothing_to_compare_is_an_error(n_labeled: int, n: int) -> None:
    p, y = classified(np.random.default_rng(0), n, [0.5, 0.5])
    with pytest.raises(fl.InputError, match="shift is between labeled and unlabeled items"):
        shift(fl.Predictions(p, np.where(np.arange(n) < n_labeled, y, -1)))


def test_a_wrong_level_is_an_error() -> None:
    with pytest.raises(fl.UsageError, match="`confidence_level` must be between 0 and 1"):
        shift(label_shifted(0, 10, [0.5, 0.5], [0.5, 0.5]).predictions(), confidence_level=1)


def test_weights_have_mean_one_and_a_cap() -> None:
    known = np.arange(10) < 4
    found = importance(np.array([1e-9, 1e-9, 1e-9, 100.0, 5, 5, 5, 5, 5, 5]), known)
    assert found.weights[known].mean() == pytest.approx(1)
    assert (found.weights[~known] == 1).all()
    assert found.capped == 1
    assert 1 <= found.effective <= 4
    flat = importance(np.zeros(10), known)
    assert (flat.weights == 1).all()


def test_density_ratio_weights_bring_labeled_items_closer() -> None:
    worlds = [confident_labeled(s, 100, [0.5, 0.5], 1000) for s in range(5)]
    before, after = [], []
    for world in worlds:
        found = covariate_weights(world.predictions())
        assert found.weights[:100].mean() == pytest.approx(1)
        sure = world.probabilities.mean(axis=1).max(axis=1)
        before.append(sure[:100].mean() - sure[100:].mean())
        after.append(np.average(sure[:100], weights=found.weights[:100]) - sure[100:].mean())
    assert abs(np.mean(after)) < 0.4 * abs(np.mean(before))


def test_without_a_shift_weights_are_near_one() -> None:
    effective = [
        covariate_weights(label_shifted(s, 50, [0.7, 0.3], [0.7, 0.3]).predictions()).effective
        for s in range(10)
    ]
    assert np.median(effective) > 45
