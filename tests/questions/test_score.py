"""The judged system's score: corrected, with one judge and several."""

from __future__ import annotations

import json

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.errors import InputError, UsageError


def world(n=600, labeled=60, seed=0, rate=0.7):
    """A system that passes at `rate`, a lenient judge, a good one, and one that tosses a coin."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < rate
    lenient = np.where(rng.random(n) < np.where(truth, 0.98, 0.5), truth, ~truth)
    good = np.where(rng.random(n) < 0.95, truth, ~truth)
    coin = rng.random(n) < 0.5
    votes = np.stack([lenient, good, coin], axis=1).astype(int)
    labels = np.where(np.arange(n) < labeled, truth, -1)
    return truth, fl.Predictions(votes=votes, labels=labels, models=["lenient", "good", "coin"])


def test_the_ways_to_a_score():
    truth, predictions = world()
    found = fl.score(predictions)
    rate = truth.mean()
    assert found.get("uncorrected", "lenient").low > rate  # off, and sure of it
    for way, judge in (
        ("labels only", None), ("prediction-powered", "lenient"), ("prediction-powered", "good"),
        ("judges together", None),
    ):  # fmt: skip
        row = found.get(way, judge)
        assert row.low < rate < row.high
        assert 0 <= row.low <= row.value <= row.high <= 1
    width = {row.judge: row.high - row.low for row in found.rows if row.way == "prediction-powered"}
    labels = found.get("labels only")
    assert width["good"] < 0.75 * (labels.high - labels.low)
    helps = {judge.judge: judge for judge in found.criteria[0].judges}
    assert helps["good"].helps
    assert not helps["coin"].helps
    assert helps["coin"].bound == pytest.approx(1 / np.sqrt(58))
    assert any("'coin'" in w and "cannot help" in w for w in found.to_dict()["warnings"])
    assert fl.score(predictions).to_dict() == found.to_dict()


def test_uncorrected_and_labels_only_are_plain_means():
    _, predictions = world()
    found = fl.score(predictions)
    assert found.get("uncorrected", "good").value == pytest.approx(predictions.votes[:, 1].mean())
    known = predictions.labels[predictions.labeled]
    assert found.get("labels only").value == pytest.approx(known.mean())


@pytest.mark.few(1)
@pytest.mark.product
@pytest.mark.parametrize("positive", [None, "correct", "incorrect"])
@pytest.mark.parametrize("classes", [("correct", "incorrect"), ("incorrect", "correct")])
def test_the_class_that_passes_wherever_it_stands(classes, positive):
    """Words sort as they like: 'correct' before 'incorrect', 'fail' before 'pass'."""
    _, two = world()
    turned = classes[0] == "correct"
    votes, labels = two.votes, two.labels
    if turned:
        votes, labels = 1 - votes, np.where(labels < 0, -1, 1 - labels)
    counts = np.where(labels[:, None] < 0, 0, 2 * np.eye(2)[labels] + 1)
    passed = "correct" if positive is None else positive
    for people in ({"labels": labels}, {"histogram": counts}):
        items = fl.Predictions(votes=votes, **people, models=two.models, classes=classes)
        found = fl.score(items, positive=positive)
        known = two.labels[two.labeled].mean()
        rate = known if "labels" in people else (2 * known + 1) / 4
        rate = rate if passed == "correct" else 1 - rate
        assert found.criteria[0].what == f"share of '{passed}'"
        assert found.get("labels only").value == pytest.approx(rate)
        for judge in ("good", None):
            way = "prediction-powered" if judge else "judges together"
            row = found.get(way, judge)
            assert row.low < rate < row.high, (way, people.keys())
            assert abs(row.value - rate) < 0.15


def test_prediction_powered_is_that_of_ppi_python():
    ppi = pytest.importorskip("ppi_py")
    _, predictions = world(labeled=100)
    known = predictions.labeled
    y, verdict = predictions.labels[known].astype(float), predictions.votes[:, 1].astype(float)
    theirs = ppi.ppi_mean_pointestimate(y, verdict[known], verdict[~known])[0]
    ours = fl.score(predictions).get("prediction-powered", "good")
    assert ours.value == pytest.approx(theirs, abs=0.01)


def in_conversations(seed, clusters=150, labeled=30):
    """Turns of conversations that go together, of which whole ones are labeled."""
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(clusters), rng.integers(1, 9, clusters))
    rate = 1 / (1 + np.exp(-(0.7 + rng.normal(0, 1.5, clusters))))
    truth = rng.random(len(of)) < rate[of]
    verdict = np.where(rng.random(len(of)) < 0.85, truth, ~truth).astype(int)
    known = np.isin(of, rng.choice(clusters, labeled, replace=False))
    items = fl.Predictions(
        votes=verdict[:, None], labels=np.where(known, truth, -1), models=["judge"]
    )
    return items, of


def test_copies_of_a_turn_count_as_one():
    items, of = in_conversations(0)
    once = np.unique(of, return_index=True)[1]
    single = fl.Predictions(votes=items.votes[once], labels=items.labels[once], models=["judge"])
    copies = np.tile(np.arange(len(once)), 4)
    fourfold = fl.Predictions(
        votes=single.votes[copies], labels=single.labels[copies], models=["judge"]
    )
    named = fourfold.in_clusters({"conversation": copies.astype(str)})
    for way in ("prediction-powered", "labels only"):
        judge = "judge" if way == "prediction-powered" else None
        one, alone, together = (
            fl.score(given).get(way, judge) for given in (single, fourfold, named)
        )
        width = one.high - one.low
        assert alone.high - alone.low < 0.65 * width
        assert together.high - together.low == pytest.approx(width, rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("labeled", [10, 30])
def test_turns_of_conversations_are_covered(labeled):
    """The pass rate of the system, of which 400 worlds each are seen; +-2 points of chance."""
    truth = 0.6216  # E expit(0.7 + 1.5 Z)
    hits = 0
    for seed in range(400):
        items, of = in_conversations(seed, labeled=labeled)
        named = items.in_clusters({"conversation": of.astype(str)})
        row = fl.score(named).get("prediction-powered", "judge")
        hits += row.low <= truth <= row.high
    assert 0.925 <= hits / 400 <= 0.99


def test_labels_where_judges_differ_make_no_way_sure():
    truth, items = world(n=1500, labeled=1500)
    differ = items.votes[:, 0] != items.votes[:, 1]
    known = np.random.default_rng(0).random(1500) < np.where(differ, 0.4, 0.02)
    chosen = items.with_labels(np.where(known, truth, -1)).select_models(["lenient", "good"])
    found = fl.score(chosen)
    alone = found.get("labels only")
    assert not alone.low < truth.mean() < alone.high
    assert "ok" not in {row.status for row in found.rows if row.way != "uncorrected"}
    said = found.to_dict()["warnings"]
    assert sum(w.startswith("shift:") for w in said) == 1
    assert not any("go by the labels alone" in w for w in said)


def test_grades_and_what_passes():
    rng = np.random.default_rng(1)
    truth = rng.integers(5, size=300)
    judge = np.clip(truth + rng.integers(-1, 2, size=300), 0, 4)
    labels = np.where(np.arange(300) < 60, truth, -1)
    common = {"votes": judge[:, None], "labels": labels, "models": ["j"]}
    graded = fl.score(fl.Predictions(**common, classes=["1", "2", "3", "4", "5"]))
    row = graded.get("prediction-powered", "j")
    assert row.low < truth.mean() + 1 < row.high
    assert graded.criteria[0].what == "mean grade (1 to 5)"
    words = fl.Predictions(**common, classes=list("abcde"))
    with pytest.raises(UsageError, match="say which of them passes with --positive"):
        fl.score(words)
    share = fl.score(words, positive="e")
    assert share.criteria[0].what == "share of 'e'"
    assert share.get("labels only").value == pytest.approx((truth[:60] == 4).mean())


def test_grades_in_words_are_in_the_order_of_the_alphabet_unless_it_is_said():
    votes = np.random.default_rng(1).integers(3, size=(120, 1))
    for classes, warned in (
        (("fair", "good", "poor"), True), (("poor", "fair", "good"), False),
        (("1", "2", "3"), False),
    ):  # fmt: skip
        items = fl.Predictions(votes=votes, labels=votes[::-1, 0], classes=classes)
        for metric in ("within_one", "accuracy"):
            estimates = fl.estimate(items, "labeled", metric)
            doubted = warned and metric == "within_one"
            assert ("say theirs with --classes" in " ".join(estimates.warnings)) == doubted
            assert (estimates.rows[0].status.value == "assumption") == doubted


def test_a_step_of_grades_that_is_not_1_is_said():
    votes = np.random.default_rng(1).integers(3, size=(120, 1))
    for classes, step in ((("0%", "50%", "70%"), "10"), ((1, 2, 3), None)):
        items = fl.Predictions(votes=votes, labels=votes[::-1, 0], classes=classes)
        warnings = fl.estimate(items, "labeled", "within_one").warnings
        said = [w for w in warnings if w.startswith("within_one")]
        assert said == ([f"within_one: one step of these grades is {step}"] if step else [])


def test_several_people_and_their_agreement():
    _, predictions = world(n=200)
    counts = np.zeros((200, 2))
    rng = np.random.default_rng(2)
    for i in range(50):
        for _ in range(3):
            counts[i, int(rng.random() < (0.9 if predictions.votes[i, 1] else 0.1))] += 1
    several = fl.Predictions(votes=predictions.votes, histogram=counts, models=predictions.models)
    found = fl.score(several).criteria[0]
    assert found.n_labeled == 50
    assert found.people is not None
    assert found.people.n_items == 50
    share = counts[:50, 1] / 3
    assert found.rows[3].value == pytest.approx(share.mean())
    of_pairs = np.where(predictions.votes[:50, 1] == 1, share, 1 - share).mean()
    assert found.judge_pairs["good"] == pytest.approx(of_pairs)
    assert "People among themselves (50 items" in " ".join(fl.score(several).summary().split())


def test_every_criterion_of_a_log(tmp_path):
    def said(name, value, kind):
        source = {"source_type": kind, "source_id": kind.lower()}
        return {"assessment_name": name, "source": source, "feedback": {"value": value}}

    with (tmp_path / "log.jsonl").open("w") as file:
        for i in range(80):
            all_said = [said(c, (i + k) % 3 > 0, "LLM_JUDGE") for k, c in enumerate("ab")]
            if i < 30:
                all_said += [said(c, (i + k) % 3 > 0, "HUMAN") for k, c in enumerate("ab")]
            file.write(json.dumps({"info": {"trace_id": f"{i}", "assessments": all_said}}) + "\n")
    found = fl.score(tmp_path / "log.jsonl")
    assert [one.criterion for one in found.criteria] == ["a", "b"]
    assert {row.judge for row in found.rows if row.way == "uncorrected"} == {"llm_judge"}
    assert found.to_frame("pyarrow").num_rows == len(found.rows) == 6


def test_a_judge_that_is_silent_on_what_fails():
    """The score is that of all items, not of those that the judge has scored."""
    truth, two = world(n=1_000, labeled=200, seed=1)
    rng = np.random.default_rng(5)
    silent = rng.random(1_000) < np.where(truth, 0.2, 0.8)
    votes = np.where(silent[:, None], -1, two.votes)
    items = fl.Predictions(votes=votes, labels=two.labels, models=two.models)
    row = fl.score(items).get("prediction-powered", "good")
    assert row.low < truth.mean() < row.high
    assert row.status == "ok"
    # As a log has it: what is neither scored nor labeled is not there.
    found = fl.score(items.take(np.flatnonzero(~silent | items.labeled)))
    assert {r.status for r in found.rows if r.way != "labels only"} == {"assumption"}
    warning = found.to_dict()["warnings"][0]
    assert "'lenient' has no verdict on" in warning
    assert "go by the labels alone" in warning


def test_what_is_refused():
    _, predictions = world(labeled=0)
    with pytest.raises(InputError, match="no item has a label, and a score is corrected by labels"):
        fl.score(predictions)
    _, predictions = world()
    with pytest.raises(UsageError, match="no score 'guess'"):
        fl.score(predictions).get("guess")
    with pytest.raises(UsageError, match="`confidence_level` must be between 0 and 1; got None"):
        fl.score(predictions, confidence_level=None)


def test_a_judge_without_verdicts_is_said_to_have_none():
    _, items = world()
    both = fl.Predictions(
        votes=np.column_stack([items.votes[:, 0], np.full(items.n_items, -1)]),
        scores=np.column_stack([np.full(items.n_items, np.nan), np.arange(items.n_items)]),
        labels=items.labels, models=["good", "scorer"],
    )  # fmt: skip
    text = " ".join(fl.score(both).summary().split())
    assert "scorer: no labeled item has a predicted class or probabilities of it" in text
    assert "'scorer': correlated" not in text
