"""Estimates under a correction, the warning, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from shift_worlds import confident_labeled, label_shifted

import fewlabels as fl
from fewlabels.checks.conditions import NOT_RANDOM
from fewlabels.errors import Status
from fewlabels.evaluation.input_facts import not_a_random_sample, selection_facts
from fewlabels.shifts.analysis import Correction, class_importance, covariate_weights
from fewlabels.shifts.label_shift import LEARN_FREQUENCIES, LabelShift


def test_told_items_have_a_label_or_counts() -> None:
    counts = np.zeros((4, 2))
    counts[1, 0] = 2
    known = fl.Predictions(np.full((4, 1), 0.5), [0, -1, -1, -1], histogram=counts).told
    assert known.tolist() == [True, True, False, False]


def test_label_shift_adjusts_unlabeled_items_alone() -> None:
    predictions = label_shifted(0, 50, [0.5, 0.5], [0.9, 0.1]).predictions()
    plain = fl.models.TemperedEnsemble()
    before = plain.infer(predictions, 0)
    after = LabelShift(plain).infer(predictions, 0)
    np.testing.assert_array_equal(after.marginals()[:50], before.marginals()[:50])
    assert (after.marginals()[50:, 1] < before.marginals()[50:, 1]).all()
    np.testing.assert_allclose(after.marginals().sum(axis=1), 1)
    rows = np.array([3, 60, 200])
    block = after.parameters.block(np.arange(5), rows)
    np.testing.assert_array_equal(block, after.parameters.block(np.arange(5), slice(None))[rows])
    np.testing.assert_allclose(block.sum(axis=1), 1)


def test_label_shift_needs_both_kinds_of_items() -> None:
    p = np.full((6, 2), 0.4)
    for labels in ([-1] * 6, [0, 1] * 3):
        with pytest.raises(fl.InputError, match="label shift is between labeled and unlabeled"):
            LabelShift(fl.models.TemperedEnsemble()).infer(fl.Predictions(p, labels), 0)


@pytest.mark.slow
@pytest.mark.slow_with("tempered-ensemble")
@pytest.mark.parametrize("method", ["tempered-ensemble", "labeled"])
def test_label_correction_brings_precision_to_the_unlabeled_population(method: str) -> None:
    plain, mended = [], []
    for seed in range(4):
        world = label_shifted(seed, 60, [0.5, 0.5], [0.9, 0.1], 1000)
        predictions = world.predictions()
        hidden = fl.Predictions(world.probabilities[60:], world.truth[60:])
        for rows, shift in ((plain, None), (mended, "label")):
            found = fl.estimate(
                predictions, method, "precision", shift=shift, confidence_level=None
            )
            true = fl.estimate(hidden, "labeled", "precision", confidence_level=None)
            gaps = [a.value - b.value for a, b in zip(found.rows, true.rows, strict=True)]
            rows.append(np.mean(gaps))
    assert abs(np.mean(mended)) < 0.5 * abs(np.mean(plain))


def test_covariate_correction_mends_labeled() -> None:
    plain, mended = [], []
    for seed in range(2):
        world = confident_labeled(seed, 100, [0.5, 0.5], 1000)
        hidden = (world.probabilities[100:].argmax(axis=2) == world.truth[100:, None]).mean()
        for rows, shift in ((plain, None), (mended, "covariate")):
            found = fl.estimate(
                world.predictions(), "labeled", "accuracy", shift=shift, confidence_level=None,
            )  # fmt: skip
            rows.append(np.mean([row.value for row in found.rows]) - hidden)
    assert abs(np.mean(mended)) < 0.5 * abs(np.mean(plain))


# One of each kind that is treated differently; samplers are left out for their time.
KINDS = (
    *("tempered-ensemble", "monotone-curves", "bayesian-calibration", "pseudo-label", "labeled"),
    *("ssme-kde", "dawid-skene", "majority-vote", "ensemble", "autoeval"),
    *("agreement-ensemble", "learned-ensemble"),
)


def test_methods_that_learn_frequencies_exist() -> None:
    assert {*fl.models.METHODS} >= LEARN_FREQUENCIES


@pytest.mark.few(5)
@pytest.mark.parametrize("method", KINDS)
def test_methods_under_both_corrections(method: str) -> None:
    predictions = label_shifted(1, 20, [0.5, 0.5], [0.8, 0.2], 80).predictions()
    for shift in ("covariate", "label"):
        if method == "autoeval" and shift == "label":
            with pytest.raises(fl.UsageError, match="cannot be corrected for label shift"):
                fl.estimate(predictions, method, "accuracy", shift="label")
            continue
        found = fl.estimate(predictions, method, "accuracy", shift=shift)
        assert all(row.low <= row.value <= row.high for row in found.rows)
        assert any("population of the unlabeled items" in said for said in found.warnings)
        note = any("learns how frequent" in said for said in found.warnings)
        assert note == (shift == "label" and method in LEARN_FREQUENCIES)


def test_auto_without_a_shift_changes_no_number() -> None:
    predictions = label_shifted(2, 30, [0.7, 0.3], [0.7, 0.3]).predictions()
    plain = fl.estimate(predictions, metrics="accuracy")
    auto = fl.estimate(predictions, metrics="accuracy", shift="auto")
    assert plain.rows == auto.rows
    assert any("look like a random sample" in said for said in auto.warnings)


def test_auto_corrects_what_it_finds() -> None:
    predictions = label_shifted(3, 50, [0.5, 0.5], [0.95, 0.05]).predictions()
    found = fl.estimate(predictions, metrics="accuracy", shift="auto")
    assert "label_shift" in found.diagnostics
    assert any("class 1 makes up" in said for said in found.warnings)


@pytest.mark.parametrize(("shift", "what"), [("covariate", "scores"), ("label", "classes")])
def test_a_correction_rests_on_what_no_label_tests(shift: Correction, what: str) -> None:
    predictions = label_shifted(1, 60, [0.5, 0.5], [0.9, 0.1], 1000).predictions()
    found = fl.estimate(predictions, "tempered-ensemble", "accuracy", shift=shift)
    assert {row.status for row in found.rows} == {Status.ASSUMPTION}
    assert found.warnings[0].startswith(
        f"assumption: the correction is right only if the {what} alone decided"
    )


@pytest.mark.parametrize("n_labeled", [0, 600])
def test_nothing_to_correct(n_labeled: int) -> None:
    world = label_shifted(4, n_labeled, [0.5, 0.5], [0.5, 0.5], 600 - n_labeled)
    for shift in ("auto", "covariate", "label"):
        found = fl.estimate(world.predictions(), "tempered-ensemble", "accuracy", shift=shift)
        assert any("no correction for shift" in said for said in found.warnings)


def test_sampling_weights_are_multiplied() -> None:
    world = label_shifted(5, 40, [0.5, 0.5], [0.9, 0.1])
    weight = np.where(np.arange(640) % 2, 1.0, 3.0)
    found = fl.estimate(world.predictions(weight=weight), "labeled", "accuracy", shift="label")
    assert all(0 <= row.low <= row.value <= row.high <= 1 for row in found.rows)


def test_order_of_items_does_not_matter() -> None:
    world = label_shifted(6, 30, [0.5, 0.5], [0.9, 0.1], 100)
    order = np.random.default_rng(0).permutation(130)
    shuffled = fl.Predictions(world.probabilities[order], world.shown[order])
    for shift in ("covariate", "label"):
        one = fl.estimate(world.predictions(), metrics="accuracy", shift=shift)
        two = fl.estimate(shuffled, metrics="accuracy", shift=shift)
        for a, b in zip(one.rows, two.rows, strict=True):
            assert a[3:6] == pytest.approx(b[3:6], abs=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shift": "both"}, "`shift` must be None or one of auto, covariate, label; got 'both'"),
        ({"shift": "label", "estimand": "sample"}, "population that unlabeled items come from"),
        ({"shift": "auto", "method": "active-testing"}, "chooses its labels itself"),
    ],
)
def test_what_is_refused(options: dict[str, str], message: str) -> None:
    predictions = label_shifted(7, 10, [0.5, 0.5], [0.5, 0.5], 30).predictions()
    with pytest.raises(fl.UsageError, match=message):
        fl.estimate(predictions, metrics="accuracy", **options)  # type: ignore[arg-type]


def test_annotators_distributions_are_refused() -> None:
    p = np.random.default_rng(0).dirichlet([1, 1], (40, 2))
    counts = np.zeros((40, 2))
    counts[:10] = [2, 1]
    with pytest.raises(fl.UsageError, match="weights items of one class"):
        fl.estimate(fl.Predictions(p, histogram=counts), metrics="accuracy", shift="covariate")


class TestWarning:
    """One sentence, only where something shows."""

    def test_a_shift_is_said(self) -> None:
        predictions = confident_labeled(0, 100, [0.5, 0.5]).predictions()
        test = not_a_random_sample(predictions, "labeled")
        assert test is not None
        found = fl.estimate(predictions, "labeled", "accuracy")
        (said,) = (warning for warning in found.warnings if warning.startswith("shift: "))
        assert found.diagnostics[NOT_RANDOM] == {
            "p_value": test.p_value,
            "difference": test.worst,
            "remedy": "`fewlabels estimate --shift auto` (shift='auto') corrects by weights",
        }
        assert "do not look like a random sample" in said
        assert "--shift" in said
        assert "docs/shift.md" in said
        # Named with the command that has the option.
        assert "`fewlabels estimate --shift auto`" in said
        corrected = fl.estimate(predictions, "labeled", "accuracy", shift="covariate")
        assert said not in corrected.warnings
        assert NOT_RANDOM not in corrected.diagnostics
        allowing = fl.estimate(predictions, "tempered-ensemble", "accuracy").warnings
        assert "assumes that they were chosen by their scores" in " ".join(allowing)

    def test_no_weights_are_proposed_where_a_kind_of_item_is_never_labeled(self) -> None:
        rng = np.random.default_rng(0)
        truth = rng.integers(0, 2, 600)
        votes = np.stack([truth ^ (rng.random(600) < 0.2) for _ in range(3)], axis=1)
        for known, proposed in ((votes[:, 0] != votes[:, 1], False), (votes.sum(1) < 3, True)):
            some = known & (rng.random(600) < 0.8) | (proposed & (rng.random(600) < 0.05))
            labels = np.where(some, truth, -1)
            items = fl.Predictions(votes=votes, labels=labels, models=["a", "b", "c"])
            warnings = fl.estimate(items, "labeled", "accuracy").warnings
            (said,) = (warning for warning in warnings if warning.startswith("shift: "))
            assert ("--shift auto" in said) == proposed
            assert ("no labeled item is one where a and b agree" in said) == (not proposed)

    @pytest.mark.parametrize("annotated", [False, True])
    def test_false_alarms_are_rare(self, annotated: bool) -> None:
        alarms = 0
        for seed in range(150):
            items = label_shifted(seed, 10, [0.7, 0.3], [0.7, 0.3], 100).predictions()
            items = items.as_histograms() if annotated else items
            alarms += selection_facts(items, "auto", distribution=annotated) != ({}, [])
        assert alarms <= 6  # 1.5 expected at most; more in one of a thousand

    def test_silence(self) -> None:
        shifted = confident_labeled(0, 100, [0.5, 0.5])
        p, y = shifted.probabilities, shifted.shown
        weighted = fl.Predictions(p, y, weight=np.where(y >= 0, 1.0, 2.0))
        few = fl.Predictions(p, np.where(np.arange(len(y)) < 4, y, -1))
        every = fl.Predictions(p, shifted.truth)
        assert not_a_random_sample(weighted, "auto") is None
        assert not_a_random_sample(few, "auto") is None
        assert not_a_random_sample(every, "auto") is None
        assert not_a_random_sample(shifted.predictions(), "active-testing") is None


def test_command_line(tmp_path: Path, cli: Callable[..., tuple[int, str, str]]) -> None:
    world = confident_labeled(0, 100, [0.5, 0.5])
    rows = ["label,p__a__1,p__b__1"]
    for y, p in zip(world.shown, world.probabilities[:, :2, 1], strict=True):
        rows.append(f"{'' if y < 0 else y},{p[0]:.5f},{p[1]:.5f}")
    path = tmp_path / "picked.csv"
    path.write_text("\n".join(rows))
    code, out, _ = cli("estimate", path, "--metrics", "accuracy", "--shift", "covariate")
    assert code == 0
    assert "population of the unlabeled items" in " ".join(out.split())
    code, out, _ = cli("estimate", path, "--metrics", "accuracy")
    assert "do not look like a random sample" in " ".join(out.split())
    code, _, err = cli("estimate", path, "--shift", "covariate", "--estimand", "sample")
    assert code == 2
    assert err.count("\n") == 1


class TestZeroWeights:
    """Items of sampling weight 0 are on neither side of a shift."""

    @pytest.mark.parametrize("side", ["labeled", "unlabeled"])
    def test_a_side_without_weight_is_no_side(self, side: str) -> None:
        world = label_shifted(8, 20, [0.5, 0.5], [0.9, 0.1], 60)
        mine = world.shown >= 0
        weight = np.where(mine == (side == "labeled"), 0.0, 1.0)
        predictions = world.predictions(weight=weight)
        for shift in ("auto", "covariate", "label"):
            found = fl.estimate(predictions, "tempered-ensemble", "accuracy", shift=shift)
            said = [s for s in found.warnings if s.startswith("no correction for shift")]
            assert len(said) == 1
            assert "not counting those of sampling weight 0" in said[0]
            assert all(np.isfinite(row.value) for row in found.rows)
        with pytest.raises(fl.InputError, match="not counting those of sampling weight 0"):
            LabelShift(fl.models.TemperedEnsemble()).infer(predictions, 0)
        with pytest.raises(fl.InputError, match="give both"):
            fl.shift(predictions)
        assert not_a_random_sample(predictions, "tempered-ensemble") is None

    def test_labels_without_weight_inform_no_weights(self) -> None:
        world = label_shifted(9, 40, [0.5, 0.5], [0.9, 0.1], 200)
        aside = np.arange(240) < 10
        predictions = world.predictions(weight=np.where(aside, 0.0, 1.0))
        found = covariate_weights(predictions)
        assert found.n_labeled == 30
        assert found.weights[10:40].mean() == pytest.approx(1)
        assert (found.weights[aside] == 1).all()
        fitted = LabelShift(fl.models.TemperedEnsemble()).fit(predictions, np.random.default_rng(0))
        by_class = class_importance(predictions, fitted.frequencies.target.mean(axis=0))
        assert by_class.n_labeled == 30
        assert by_class.weights[10:40].mean() == pytest.approx(1)
        report = fl.shift(predictions)
        assert report.n_labeled == 30
        assert not any("sampling weights" in said for said in report.warnings)


@pytest.mark.parametrize("n_unlabeled", [1, 2])
def test_hardly_any_unlabeled_items(n_unlabeled: int) -> None:
    world = label_shifted(10, 40, [0.5, 0.5], [0.5, 0.5], n_unlabeled)
    predictions = world.predictions()
    assert np.isfinite(covariate_weights(predictions).weights).all()
    if n_unlabeled == 1:
        assert (covariate_weights(predictions).weights == 1).all()
    found = fl.shift(predictions)
    assert 0 < found.p_value <= 1
    assert np.isfinite(found.label.unlabeled).all()
    for shift in ("auto", "covariate", "label"):
        rows = fl.estimate(predictions, "tempered-ensemble", "accuracy", shift=shift).rows
        assert all(row.low <= row.value <= row.high for row in rows)


@pytest.mark.parametrize("method", ["agreement-ensemble", "learned-ensemble"])
def test_ensembles_anchored_on_agreement_are_adjusted(method: str) -> None:
    """All items say how sharp the pool is, but none how frequent the classes are."""
    world = label_shifted(0, 40, [0.5, 0.5], [0.9, 0.1], 400)
    predictions, true = world.predictions(), world.truth[40:].mean()
    fitted = LabelShift(fl.models.METHODS[method].make()).fit(predictions, np.random.default_rng(0))
    plain = fitted.inner.posterior(predictions).marginals()[40:, 1].mean()
    adjusted = fitted.posterior(predictions).marginals()[40:, 1].mean()
    assert abs(adjusted - true) < 0.3 * abs(plain - true)
    low, high = np.quantile(fitted.interval_frequencies.target[:, 1], [0.05, 0.95])
    assert low < true < high
    assert method not in LEARN_FREQUENCIES
