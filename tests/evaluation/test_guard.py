"""Where labels speak against a method: the answer moves to them, and is not called the best."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fewlabels as fl
import fewlabels.evaluation.guard
from fewlabels.evaluation.differences import comparison, errors_together
from fewlabels.evaluation.evaluator import Evaluator, Measured
from fewlabels.evaluation.groups import Group, all_and_groups
from fewlabels.evaluation.guard import Guard, Guarded, _Gap
from fewlabels.methods.base import FittedLabelModel, with_evidence
from fewlabels.methods.registry import METHODS
from fewlabels.metrics.registry import resolve
from fewlabels.posterior import Fixed, LabelPosterior
from fewlabels.questions.compare import compared
from fewlabels.report.blocks import Block, Row, verdict
from fewlabels.report.html import render_page

N, BIG = 1000, 200_000


@dataclass(frozen=True)
class Fitted(FittedLabelModel):
    """P(label) is a function of the scores, learned elsewhere: the mean, or what it is told."""

    slope: float
    offset: float = 0.0

    def posterior(self, predictions: fl.Predictions) -> LabelPosterior:
        assert predictions.probabilities is not None
        p = predictions.probabilities[:, :, 1]
        logit = self.slope * np.nanmean(np.log(p / (1 - p)), axis=1) + self.offset
        q = 1 / (1 + np.exp(-logit))
        known = with_evidence(np.column_stack([1 - q, q]), predictions.evidence)
        return LabelPosterior(known, Fixed(known), predictions.keys, salt=3, value_from="marginals")


def drawn(n: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Scores of three classifiers whose mean logit is right with slope 1, labels and a group."""
    logit = 1.5 * rng.standard_normal(n)
    truth = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    each = logit[:, None] + 0.8 * rng.standard_normal((n, 3))
    each += (logit - each.mean(axis=1))[:, None]
    return 1 / (1 + np.exp(-each)), truth, rng.integers(2, size=n)


def of_labels(seed: int, known: int = 100) -> fl.Predictions:
    p, truth, group = drawn(N, np.random.default_rng(seed))
    labels = np.where(np.arange(N) < known, truth, -1)
    return fl.Predictions(p, labels, groups={"g": np.array(["a", "b"])[group]}, classes=[0, 1])


def asked(
    predictions: fl.Predictions, fitted: Fitted, method: str = "learned-ensemble",
    metrics: tuple[str, ...] = ("accuracy", "roc_auc", "ece"), by: str | None = None,
    level: float | None = 0.9,
) -> list[tuple[Measured, Guarded, str]]:  # fmt: skip
    """What was measured of every group before the guard, and after; a metric each."""
    evaluator = Evaluator(
        predictions, fitted.posterior(predictions), resolve(metrics), "population", level
    )
    guard = Guard.from_evaluator(evaluator, method)
    assert guard is not None
    out = []
    for group in all_and_groups(predictions, by):
        measured = evaluator.measure(group.rows)
        found = guard.adjust(group, measured)
        out += [(measured[name], found, name) for name in metrics]
    return out


def test_a_method_that_is_right_keeps_its_values_and_most_of_its_draws() -> None:
    moved: int = 0
    changed: dict[bool, list[np.ndarray]] = {False: [], True: []}
    for seed in range(3):
        for place, (before, found, name) in enumerate(asked(of_labels(seed), Fitted(1.0), by="g")):
            after, weight = found.measured[name], found.weights[name]
            still = weight == 0
            np.testing.assert_array_equal(after.value[still], before.value[still])
            share = (after.draws != before.draws)[:, still].mean(axis=0)
            changed[place >= 3].append(share)
            moved += int((~still).sum())
    # The labels' share at B = 5^-1/2, where the two agree, and at B = 1, where values move; of all
    # items, and of groups.
    for in_group, wrong in ((False, 0.2), (True, 0.4)):
        least = 1 / (1 + (1 - wrong) / wrong * np.sqrt(5))
        shares = np.concatenate(changed[in_group])
        assert shares.min() > least - 4 * np.sqrt(least / 400)
        assert shares.max() < wrong + 4 * np.sqrt(wrong * (1 - wrong) / 400)
    # |z| > 1.42 in 16% of normal draws; 3 x 3 groups x 3 metrics x 3 classifiers that go together.
    assert moved < 0.25 * 3 * 27


@pytest.mark.parametrize("known", [100, 300])
def test_a_method_that_is_wrong_moves_to_the_truth(known: int) -> None:
    big, truth, _ = drawn(BIG, np.random.default_rng(99))
    right = ((big > 0.5) == truth[:, None]).mean(axis=0)
    before_errors, after_errors, held, shares = [], [], [], []
    for seed in range(10):
        # Eight times too sharp: classifiers that err on a quarter seem to err on a tenth.
        ((before, found, name),) = asked(of_labels(seed, known), Fitted(8.0), metrics=("accuracy",))
        after = found.measured[name]
        before_errors.append(np.abs(before.value - right))
        after_errors.append(np.abs(after.value - right))
        low, high = np.quantile(after.draws, [0.05, 0.95], axis=0)
        held.append((low <= right) & (right <= high))
        shares.append(found.weights[name])
    assert np.mean(before_errors) > 0.1
    assert np.mean(after_errors) < (0.08 if known == 100 else 0.03)
    assert np.mean(held) > (0.6 if known == 100 else 0.75)
    assert np.mean(np.array(shares) > 0.5) > (0.4 if known == 100 else 0.9)


def test_draws_are_mixed_with_the_probability_that_the_method_is_wrong() -> None:
    predictions = of_labels(1, 40)
    ((before, found, name),) = asked(predictions, Fitted(2.2), metrics=("accuracy",))
    after, weight = found.measured[name], found.weights[name]
    assert ((weight > 0.05) & (weight < 0.95)).any(), "a world in which the labels are undecided"
    changed = (after.draws != before.draws).mean(axis=0)
    factor = 1 + 10 * weight / (1 - weight)
    share = np.where(weight > 0, factor / (4 + factor), changed)
    assert changed == pytest.approx(share, abs=4 * np.sqrt(0.25 / len(after.draws)))
    gap = after.value - before.value
    assert (gap[weight == 0] == 0).all()
    assert (gap[weight > 0] != 0).all()
    # Draws stay paired: whoever has the smaller weight is moved in draws in which the other is.
    order = np.argsort(weight)
    for less, more in itertools.pairwise(order):
        both = (after.draws != before.draws)[:, [less, more]]
        assert not (both[:, 0] & ~both[:, 1]).any()


def test_the_weight_does_not_depend_on_the_level() -> None:
    predictions = of_labels(1, 40)
    weights = [
        asked(predictions, Fitted(2.2), metrics=("accuracy",), level=level)[0][1].weights[
            "accuracy"
        ]
        for level in (None, 0.9, 0.995)
    ]
    np.testing.assert_array_equal(weights[0], weights[1])
    np.testing.assert_array_equal(weights[0], weights[2])


def test_a_group_is_judged_by_its_own_labels() -> None:
    contradicted = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        p, truth, group = drawn(N, rng)
        truth = np.where(group == 1, 1 - truth, truth)  # in b they are reversed
        labels = np.where(np.arange(N) < 120, truth, -1)
        given = fl.Predictions(p, labels, groups={"g": np.array(["a", "b"])[group]}, classes=[0, 1])
        found = asked(given, Fitted(1.0), metrics=("accuracy",), by="g")
        names = [group.name for group in all_and_groups(given, "g")]
        weight = dict(zip(names, (f.weights["accuracy"] for _, f, _ in found), strict=True))
        contradicted.append((weight["g=a"] > 0.5).any())
        assert (weight["g=b"] > 0.5).all()
    assert sum(contradicted) <= 1


@pytest.mark.parametrize("known", [2, 9])
def test_nine_labels_of_a_group_move_no_value_and_two_no_draw(known: int) -> None:
    predictions = of_labels(0, 100)
    group = np.where(np.arange(N) < known, "few", "most")
    few = fl.Predictions(
        predictions.probabilities, predictions.labels, groups={"g": group}, classes=[0, 1]
    )
    before, found, _ = asked(few, Fitted(8.0), metrics=("accuracy",), by="g")[1]
    after = found.measured["accuracy"]
    np.testing.assert_array_equal(after.value, before.value)
    assert (after.draws != before.draws).any() == (known == 9)
    assert not any(weight.any() for weight in found.weights.values())
    assert asked(of_labels(0, 10), Fitted(8.0))[0][1].weights


def test_too_few_labels_and_methods_of_labels_alone_have_no_guard() -> None:
    fitted = Fitted(8.0)
    nine = of_labels(0, 9)
    evaluator = Evaluator(nine, fitted.posterior(nine), resolve(["accuracy"]), "population")
    assert Guard.from_evaluator(evaluator, "learned-ensemble") is None
    some = of_labels(0)
    alone = fl.models.METHODS["labeled"].make().infer(some)
    evaluator = Evaluator(some, alone, resolve(["accuracy"]), "population")
    assert Guard.from_evaluator(evaluator, "labeled") is None


# --- through `estimate` ------------------------------------------------------------------------


def strong(seed: int = 0, n: int = 600, known: int = 120) -> tuple[fl.Predictions, Any]:
    """One classifier is right in 97% of the items; the average of all, of which it is one, is not.

    So the plain average takes it for a mediocre one.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n)
    common = rng.standard_normal(n)
    score = 0.4 * (2 * truth - 1)[:, None] + common[:, None] + 0.3 * rng.standard_normal((n, 4))
    best = np.where(rng.random(n) < 0.97, 2 * truth - 1, 1 - 2 * truth)[:, None] * 0.4
    p = 1 / (1 + np.exp(-3 * np.hstack([best, score])))
    labels = np.where(np.arange(n) < known, truth, -1)
    given = fl.Predictions(
        p, labels, models=["strong", "b", "c", "d", "e"], classes=[0, 1],
        groups={"g": np.array(["x", "y"])[np.arange(n) % 2]},
    )  # fmt: skip
    return given, truth


def test_a_paper_keeps_its_numbers_and_says_contradicted(monkeypatch: pytest.MonkeyPatch) -> None:
    given, _ = strong()
    found = fl.estimate(given, "ensemble", ["accuracy", "ece"], by="g")
    row = found.get("strong", "accuracy")
    assert row.status is fl.Status.CONTRADICTED
    assert found.get("strong", "accuracy", "g=x").status is fl.Status.CONTRADICTED
    said = [
        w
        for w in found.warnings
        if w.startswith("contradicted: the labels and the method disagree on accuracy")
    ]
    assert "strong" in said[0]
    assert found.warnings[0] == said[0]
    monkeypatch.setattr(Guard, "from_evaluator", staticmethod(lambda *a, **k: None))
    plain = fl.estimate(given, "ensemble", ["accuracy", "ece"], by="g")
    assert [r[:7] for r in plain.rows] == [r[:7] for r in found.rows]
    assert plain.get("strong", "accuracy").status is not fl.Status.CONTRADICTED
    for key, draws in found.draws.items():
        np.testing.assert_array_equal(draws, plain.draws[key])


def test_a_guarded_method_moves_and_its_interval_holds_the_truth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    methods = {**METHODS, "ensemble": replace(METHODS["ensemble"], guarded=True)}
    held = []
    for seed in range(6):
        given, _ = strong(seed)
        before = fl.estimate(given, "ensemble", ["accuracy"], confidence_level=0.9)
        with monkeypatch.context() as patched:
            patched.setattr(fewlabels.evaluation.guard, "METHODS", methods)
            after = fl.estimate(given, "ensemble", ["accuracy"], by="g", confidence_level=0.9)
        row = after.get("strong", "accuracy")
        assert row.status is fl.Status.CONTRADICTED
        assert before.get("strong", "accuracy").value < 0.85
        assert row.value > 0.88
        assert row.low <= row.value <= row.high
        held.append(row.low <= 0.97 <= row.high)
        assert any("the answer follows the labels" in w and "strong" in w for w in after.warnings)
        # Draws carry the answer: what is compared is what is shown.
        draws = after.draws["accuracy", None][:, 0]
        assert np.quantile(draws, 0.05) == pytest.approx(row.low)
    assert sum(held) >= 5


def test_a_stream_says_and_moves_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.setenv("FEWLABELS_CHECKPOINTS", str(tmp_path / "checkpoints"))
    methods = {**METHODS, "ensemble": replace(METHODS["ensemble"], guarded=True)}
    monkeypatch.setattr(fewlabels.evaluation.guard, "METHODS", methods)
    given, _ = strong()
    assert given.probabilities is not None
    columns = {f"p__{m}__1": given.probabilities[:, j, 1] for j, m in enumerate(given.models)}
    labels = pa.array(given.labels, mask=given.labels < 0)
    table = pa.table({"label": labels, **columns, "g": given.groups["g"].tolist()})
    pq.write_table(table, tmp_path / "rows.parquet")
    streamed = fl.estimate_files(tmp_path / "rows.parquet", "ensemble", ["accuracy"], by="g")
    held = fl.estimate(tmp_path / "rows.parquet", "ensemble", ["accuracy"], by="g")
    for a, b in zip(streamed.rows, held.rows, strict=True):
        assert (a.model, a.group, a.status) == (b.model, b.group, b.status)
        assert (a.value, a.low, a.high) == pytest.approx((b.value, b.low, b.high), abs=0.02)
    assert streamed.get("strong", "accuracy").status is fl.Status.CONTRADICTED


# --- rankings and headlines ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def moved() -> fl.Estimates:
    """Estimates of which the best is contradicted."""
    methods = {**METHODS, "ensemble": replace(METHODS["ensemble"], guarded=True)}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fewlabels.evaluation.guard, "METHODS", methods)
        found = fl.estimate(strong()[0], "ensemble", ["accuracy", "brier"], by="g")
    best = max(
        found.rows, key=lambda r: r.value if (r.metric, r.group) == ("accuracy", None) else 0
    )
    assert (best.model, best.status) == ("strong", fl.Status.CONTRADICTED)
    statuses = {r.status for r in found.rows if (r.metric, r.group) == ("accuracy", None)}
    assert len(statuses) > 1, "others are not contradicted"
    return found


def test_a_contradicted_row_never_leads(moved: fl.Estimates) -> None:
    found = comparison(moved, "accuracy")
    assert found.ranking[-1] == "strong"
    assert found.contradicted[-1:] == ("strong",) or "strong" in found.contradicted
    assert "strong" not in found.may_be_best
    ranked = [s for s in found.standings if s.model not in found.contradicted]
    assert [s.value for s in ranked] == sorted((s.value for s in ranked), reverse=True)
    assert sum(s.probability_best for s in ranked) == pytest.approx(1)
    best = moved.probability_best("accuracy")
    assert best["strong"] == 0
    assert {s.model: s.probability_best for s in found.standings} == pytest.approx(best)
    # It is still compared.
    pair = found.pair("strong", found.ranking[0])
    assert pair.b == "strong"
    assert pair.value < 0
    assert errors_together(moved).best_model != "strong"


def test_texts_and_pages_name_another_one(moved: fl.Estimates) -> None:
    first = Block("accuracy", None, rows_of(moved), 0.95, direction=1).ranked()[0].model
    assert first != "strong"
    text = moved.summary(100)
    assert "Not ranked, as the labels contradict its estimate" in " ".join(text.split())
    assert "strong leads" not in text
    assert "strong is ahead" not in text
    page = render_page("estimates", moved.report())
    answer = page.split('<p class="answer">')[1].split("</p>")[0]
    assert "Not ranked, as the labels contradict" in answer
    assert answer.index(f'title="{first}"') < answer.index('title="strong"')
    assert 'class="chip contradicted">contradicted' in page
    page = compared(moved).summary()
    assert "contradicted" in page
    lines = repr(moved).splitlines()
    head = next(k for k, line in enumerate(lines) if line.split()[:1] == ["value"])
    assert lines[head + 1].split()[0] == first


def rows_of(estimates: fl.Estimates) -> tuple[Row, ...]:
    return tuple(
        Row(r.model, r.value, r.low, r.high, str(r.status))
        for r in estimates.rows
        if (r.metric, r.group) == ("accuracy", None)
    )


def block(*rows: tuple[str, float, str, float]) -> Block:
    return Block(
        "accuracy", None, tuple(Row(m, v, v - 0.1, v + 0.1, s, b) for m, v, s, b in rows), 0.95,
        direction=1,
    )  # fmt: skip


def test_the_verdict_names_whom_the_labels_do_not_contradict() -> None:
    found = verdict(
        block(("a", 0.9, "contradicted", 0), ("b", 0.8, "ok", 0.97), ("c", 0.7, "ok", 0.03))
    )
    assert found is not None
    assert (found.leader.model, found.certainty, found.n_ranked) == ("b", "clear", 2)
    assert [row.model for row in found.contradicted] == ["a"]
    left = verdict(block(("a", 0.9, "contradicted", 0), ("b", 0.8, "ok", 1)))
    assert left is not None
    assert (left.leader.model, left.certainty) == ("b", "left")
    nobody = verdict(block(("a", 0.9, "contradicted", 0), ("b", 0.8, "contradicted", 0)))
    assert nobody is not None
    assert nobody.certainty == "contradicted"
    assert nobody.n_ranked == 0


def test_where_all_are_contradicted_none_is_named() -> None:
    given, truth = strong()
    turned = given.with_labels(np.where(given.labeled, 1 - truth, -1)).select_models(["b", "c"])
    found = fl.estimate(turned, "ensemble", ["accuracy"])
    assert {r.status for r in found.rows} == {fl.Status.CONTRADICTED}
    text = " ".join(found.summary(100).split())
    assert "no classifier is called the best: the labels disagree with what the method says" in text
    page = render_page("estimates", found.report())
    assert "no classifier is called the best" in page
    assert all(np.isnan(p) for p in found.probability_best("accuracy").values())
    assert comparison(found, "accuracy").may_be_best == ()
    assert found.report()["comparison"]["accuracy"]["contradicted"] == ["c", "b"]


def test_a_group_by_hand_is_the_guard_of_its_rows() -> None:
    """A group of all items has the values of all items, and leaves the labels more of the draws."""
    predictions, fitted = of_labels(3, 60), Fitted(4.0)
    evaluator = Evaluator(
        predictions, fitted.posterior(predictions), resolve(["accuracy"]), "population"
    )
    guard = Guard.from_evaluator(evaluator, "learned-ensemble")
    assert guard is not None
    measured = evaluator.measure(np.arange(N))
    one = guard.adjust(Group(None, np.arange(N)), measured)
    two = guard.adjust(Group("all=1", np.arange(N)), measured)
    first, second = one.measured["accuracy"], two.measured["accuracy"]
    np.testing.assert_array_equal(first.value, second.value)
    taken, more = (found.draws != measured["accuracy"].draws for found in (first, second))
    np.testing.assert_array_equal(first.draws[taken], second.draws[taken])
    assert more[taken].all()
    assert more.sum() > taken.sum()


def test_what_is_known_of_these_items_varies_no_more() -> None:
    """On a sample labels are a part of what is asked; where all are known, nothing moves."""
    for known, scale in ((60, np.sqrt(1 - 60 / N)), (N, 0.0)):
        predictions, fitted = of_labels(5, known), Fitted(1.0)
        found = {}
        for estimand in ("population", "sample"):
            evaluator = Evaluator(
                predictions, fitted.posterior(predictions), resolve(["accuracy"]), estimand
            )
            guard = Guard.from_evaluator(evaluator, "learned-ensemble")
            assert guard is not None
            measured = evaluator.measure(np.arange(N))
            after = guard.adjust(Group(None, np.arange(N)), measured).measured["accuracy"]
            taken = (after.draws != measured["accuracy"].draws).all(axis=1)
            found[estimand] = after.draws[taken] - measured["accuracy"].value
        if scale == 0:
            assert not len(found["sample"])
        else:
            spread = found["sample"].std(axis=0) / found["population"].std(axis=0)
            np.testing.assert_allclose(spread, scale, rtol=0.35)


@pytest.mark.parametrize("given", [2, 5])
def test_labels_of_a_classifier_count_not_those_of_the_file(given: int) -> None:
    """An expensive one, asked about few of the labeled items: three move draws, ten the value."""
    whole = of_labels(2, 60)
    assert whole.probabilities is not None
    p = whole.probabilities.copy()
    p[np.flatnonzero(whole.labeled)[given:], 2] = np.nan
    few = fl.Predictions(p, whole.labels, classes=[0, 1])
    ((before, found, _),) = asked(few, Fitted(8.0), metrics=("accuracy",))
    after = found.measured["accuracy"]
    assert after.value[2] == before.value[2]
    assert (after.draws[:, 2] != before.draws[:, 2]).any() == (given == 5)
    assert (after.draws[:, :2] != before.draws[:, :2]).any()


def test_labels_that_the_method_foresees_of_these_items_move_nothing():
    """Where all labeled items look alike their AUC is 1/2 whatever they are, and is no surprise."""
    rng = np.random.default_rng(0)
    gap, draws = np.full(2, -0.25), -0.25 + rng.normal(0, 0.01, (100, 2))
    surprised = np.stack([np.zeros(100), rng.normal(-0.5, 0.05, 100)], axis=1)
    assert _Gap(gap, draws).allowed(0.1).min() > 0.99
    foreseen, not_foreseen = _Gap(gap, draws, surprised).allowed(0.1)
    assert foreseen == 0
    assert not_foreseen > 0.99
    certain = _Gap(gap, draws, np.full((100, 2), -0.1)).allowed(0.1)
    assert certain.min() > 0.99
