"""Long votes: one row per vote, alone or joined to the items of a wide table."""

from __future__ import annotations

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fewlabels as fl
from fewlabels.data.doctor.diagnose import diagnose
from fewlabels.errors import InputError

HEAD = "item,annotator,label\n"
VOTES = "item,annotator,label\nx,ann,yes\nx,bob,no\ny,ann,no\nx,cy,\n"


def long(**columns):
    return pa.table(columns)


def said(predictions):
    """Votes by name: {(item row, annotator): class}."""
    rows, columns = np.nonzero(predictions.hard >= 0)
    return {
        (int(i), predictions.models[j]): predictions.classes[predictions.hard[i, j]]
        for i, j in zip(rows, columns, strict=True)
    }


def test_votes_alone(write):
    predictions = fl.read_predictions(votes=write(VOTES))
    assert predictions.models == ("ann", "bob")  # cy gives no label, and so no vote
    assert predictions.classes == ("no", "yes")
    assert said(predictions) == {(0, "ann"): "yes", (0, "bob"): "no", (1, "ann"): "no"}
    assert predictions.hard.dtype == np.int8
    assert predictions.probabilities is None
    assert predictions.n_labeled == 0


def test_a_negative_vote_is_asked_about(write):
    """-1 among numbers may be a grade; among words it is no vote, which a line counts."""
    grades = HEAD + "x,ann,5\nx,bob,-1\ny,ann,-1\ny,bob,0\n"
    with pytest.raises(InputError, match=r"0 \(1 rows\), 5 \(1 rows\) and -1 \(2 rows\)"):
        fl.read_predictions(votes=write(grades))
    named = fl.read_predictions(votes=write(grades), same={"-1": "none of them"})
    assert (named.hard >= 0).sum() == 4
    left_out = fl.read_predictions(votes=write(grades), no_label=["-1"])
    assert (left_out.hard >= 0).sum() == 2
    words = fl.read_predictions(votes=write(VOTES + "y,bob,-1\nz,bob,-1\n"))
    for read in (left_out, words):
        assert any("read '-1' (2 rows) as no label" in note for note in read.notes)
    gold = pa.table({"task": [1, 1, 2], "worker": [1, 2, 1], "vote": [0, 1, 1], "gold": [0, 0, -1]})
    assert fl.read_predictions(votes=gold, label="gold", answer="vote", item="task",
                               annotator="worker").n_labeled == 1  # fmt: skip


def test_every_kind_of_source(write):
    """Votes are opened as tables are; of those every format is tried."""
    text = "item,annotator,label\n1,7,0\n1,a,1.0\n2,a,1\n"
    head, *rows = text.splitlines()
    columns = {"item": [1, 1, 2], "annotator": ["7", "a", "a"], "label": [0.0, 1.0, 1.0]}
    folder = [write(f"{head}\n{row}\n", f"votes/{i}.csv").parent for i, row in enumerate(rows)]
    for source in (write(text), folder[0], pandas.DataFrame(columns), polars.DataFrame(columns)):
        predictions = fl.read_predictions(votes=source)
        assert predictions.classes == (0, 1)
        assert said(predictions) == {(0, "7"): 0, (0, "a"): 1, (1, "a"): 1}


def test_joined_to_a_wide_table():
    wide = pa.table(
        {"item": ["2", "1"], "label": ["b", None], "p__net__b": [0.9, 0.2], "site": ["s", "t"]}
    )
    votes = long(item=[1, 3, 1], annotator=[5, 5, 6], label=["a", "b", "b"])
    predictions = fl.read_predictions(wide, votes=votes)
    assert predictions.models == ("net", "5", "6")
    assert predictions.labels.tolist() == [1, -1, -1]
    assert predictions.votes.tolist() == [[-1, -1, -1], [-1, 0, 1], [-1, 1, -1]]
    assert predictions.probabilities[:2, 0, 1].tolist() == [0.9, 0.2]
    assert np.isnan(predictions.probabilities[2]).all()
    assert np.isnan(predictions.probabilities[:, 1:]).all()
    assert predictions.groups["site"].tolist() == ["s", "t", None]
    assert "item" not in predictions.groups


def test_a_wide_table_of_labels_alone():
    wide = pa.table({"id": [2, 1], "label": ["no", "yes"]})
    votes = long(item=[1, 2], annotator=["a", "a"], label=["yes", "yes"])
    predictions = fl.read_predictions(wide, votes=votes, item="id")
    assert predictions.labels.tolist() == [0, 1]
    assert predictions.hard.tolist() == [[1], [1]]


def test_a_wide_table_of_votes_scores_and_counts():
    wide = pa.table({"item": [1], "y__net": [1], "s__raw": [2.5], "h__0": [1], "h__1": [0]})
    votes = long(item=[2, 1], annotator=["a", "a"], label=[0, 1])
    predictions = fl.read_predictions(wide, votes=votes)
    assert predictions.models == ("net", "raw", "a")
    assert predictions.votes.tolist() == [[1, -1, 1], [-1, -1, 0]]
    assert predictions.histogram.tolist() == [[1, 0], [0, 0]]
    assert np.isnan(predictions.scores[1]).all()


def test_domains_of_both():
    wide = pa.table({"item": [1, 1], "domain": ["u", "v"], "label": [0, 1]})
    votes = long(item=[1, 1, 2], annotator=["a"] * 3, label=[1, 0, 1], domain=["v", "u", "u"])
    predictions = fl.read_predictions(wide, votes=votes)
    assert predictions.domain.tolist() == ["u", "v", "u"]
    assert predictions.hard.ravel().tolist() == [0, 1, 1]


def test_domains_of_the_votes_alone():
    votes = long(item=[1, 1, 1], annotator=["a"] * 3, label=[1, 0, 1], site=["v", "u", None])
    predictions = fl.read_predictions(votes=votes, domain="site", keep=["site"])
    assert predictions.domain.tolist() == ["v", "u", None]
    assert predictions.groups["site"].tolist() == ["v", "u", None]
    wide = pa.table({"item": [2, 1], "label": [0, 1]})
    one = fl.read_predictions(wide, votes=votes.slice(0, 1), domain="site")
    assert one.domain.tolist() == [None, "v"]


def test_domains_of_the_wide_table_alone():
    wide = pa.table({"item": [2, 1], "domain": ["u", "v"], "label": [0, 1]})
    votes = long(item=[1, 3], annotator=["a", "a"], label=[1, 0])
    assert fl.read_predictions(wide, votes=votes).domain.tolist() == ["u", "v", None]


REPEATED = {"item": [1, 1, 2, 1], "annotator": ["a", "a", "a", "a"], "label": [0, 1, 1, 0]}


def test_repeated_votes_count():
    predictions = fl.read_predictions(votes=long(**REPEATED), duplicates="keep")
    assert predictions.hard.tolist() == [[0], [1]]
    assert predictions.repeated_votes.tolist() == [[0, 0, 1], [0, 0, 0]]
    assert predictions.vote_counts.toarray().tolist() == [[2, 1], [0, 1]]
    assert "2 repeated votes" in predictions.notes[0]


def test_the_last_vote_wins():
    predictions = fl.read_predictions(votes=long(**REPEATED).slice(0, 3), duplicates="last")
    assert predictions.hard.tolist() == [[1], [1]]
    assert predictions.repeated_votes is None
    assert "1 votes are left out" in predictions.notes[0]


def test_repeated_votes_beside_classifiers():
    wide = pa.table({"item": [2, 1], "y__net": [0, 1]})
    predictions = fl.read_predictions(wide, votes=long(**REPEATED), duplicates="keep")
    assert predictions.repeated_votes.tolist() == [[1, 1, 1], [1, 1, 0]]


def test_other_names(write):
    votes = write("task,worker,answer,item\n1,a,0,z\n1,b,1,z\n")
    toml = write("[votes]\nitem = 'task'\nannotator = 'worker'\nlabel = 'answer'\n", "c.toml")
    by_file = fl.read_predictions(votes=votes, columns=toml)
    names = {"item": "task", "annotator": "worker", "label": "answer"}
    by_argument = fl.read_predictions(votes=votes, vote_columns=names)
    assert by_file.hard.tolist() == by_argument.hard.tolist() == [[0, 1]]


def test_arrays_have_no_items(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, votes=[[0], [1]])
    with pytest.raises(fl.InputError, match="no names to join anything by"):
        fl.read_predictions(path, votes=long(**REPEATED), duplicates="last")
    with pytest.raises(fl.InputError, match="holds arrays; save votes as a table"):
        fl.read_predictions(votes=path)


@given(
    st.lists(
        st.lists(st.sampled_from(["", "no", "yes"]), min_size=3, max_size=3), min_size=1, max_size=8
    ).filter(lambda rows: {c for row in rows for c in row} >= {"no", "yes"}),
    st.randoms(use_true_random=False),
)
def test_wide_and_long_are_one(rows, shuffler):
    people = ["a", "b", "c"]
    wide = pa.table({f"y__{name}": [row[j] for row in rows] for j, name in enumerate(people)})
    votes = [(i, name, row[j]) for i, row in enumerate(rows) for j, name in enumerate(people)]
    shuffler.shuffle(votes)
    item, annotator, label = zip(*votes, strict=True)
    table = long(item=item, annotator=annotator, label=label)
    one = fl.read_predictions(wide)
    known = pa.table({"item": range(len(rows))})
    two = fl.read_predictions(known, votes=table)
    assert said(two) == said(one)
    assert two.n_items == one.n_items
    assert two.classes == one.classes


CROWD = {
    # items, annotators, votes, classes, repeated (summary.csv beside the data)
    "bluebird": (108, 39, 4212, 2, 0),
    "dog": (807, 109, 8070, 4, 0),
    "rte": (800, 164, 8000, 2, 0),
    "weather_cf": (300, 461, 1720, 5, 0),
    "weather_cf_amt": (300, 110, 6030, 5, 5),
    "sentiment_sp": (4999, 203, 27746, 2, 0),
    "sentiment_sp_amt": (500, 143, 10000, 2, 0),
    "face": (584, 27, 5242, 4, 0),
    "s5_adult": (11040, 825, 92721, 4, 2922),
    "adultcontent2": (11040, 825, 92721, 4, 2922),
    "adultcontent3": (496, 338, 44373, 5, 9050),
}


LARGE_TWICE = pytest.param("s5_adult", marks=pytest.mark.slow)  # the votes of adultcontent2


@pytest.mark.parametrize("name", [LARGE_TWICE if name == "s5_adult" else name for name in CROWD])
def test_crowd_data(name, data_folder):
    items, annotators, votes, classes, repeated = CROWD[name]
    folder = data_folder / "crowd"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    path = folder / f"{name}.votes.parquet"
    predictions = fl.read_predictions(votes=path, duplicates="keep")
    assert (predictions.n_items, predictions.n_models) == (items, annotators)
    assert predictions.n_classes == classes
    assert predictions.vote_counts.sum() == votes
    again = predictions.repeated_votes
    assert (0 if again is None else len(again)) == repeated
    last = fl.read_predictions(votes=path, duplicates="last")
    assert (last.hard >= 0).sum() == votes - repeated
    frame = pq.read_table(path).to_pandas()
    kept = frame.drop_duplicates(["item", "annotator"], keep="last")
    i = {int(v): r for r, v in enumerate(dict.fromkeys(frame["item"]))}
    j = last.models.index
    found = last.hard[kept["item"].map(i), kept["annotator"].map(lambda a: j(str(a)))]
    index = {c: k for k, c in enumerate(last.classes)}
    np.testing.assert_array_equal(found, kept["label"].map(index))
    if repeated:
        with pytest.raises(fl.InputError, match=r"more than once.*--duplicates keep"):
            fl.read_predictions(votes=path)
        diagnosis = diagnose(votes=path)
        assert not diagnosis.ok
        assert diagnosis.counts["n_items"] == items
    else:
        assert diagnose(votes=path).ok


def test_crowd_gold_as_the_wide_table(data_folder):
    folder = data_folder / "crowd"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    gold, votes = (folder / f"rte.{part}.parquet" for part in ("gold", "votes"))
    predictions = fl.read_predictions(gold, votes=votes, label="gold")
    assert predictions.n_labeled == predictions.n_items == 800
    counts = predictions.vote_counts.toarray().reshape(800, -1, 2).sum(axis=1)
    ahead = np.sign(counts[:, 1] - counts[:, 0]) * np.where(predictions.labels == 1, 1, -1)
    assert ((ahead + 1) / 2).mean() == pytest.approx(0.8975, abs=0.005)


def test_a_thousand_annotators_fit_in_bytes():
    rng = np.random.default_rng(0)
    n, m, v = 4000, 1000, 80_000
    pair = rng.choice(n * m, size=v, replace=False)
    table = long(item=pair // m, annotator=pair % m, label=rng.integers(3, size=v))
    predictions = fl.read_predictions(votes=table)
    assert predictions.votes.nbytes <= n * m
    assert predictions.vote_counts.nnz == v


def test_many_classes_of_votes():
    n = 129
    votes = pa.table(
        {
            "item": [f"i{i % 43}" for i in range(n)],
            "annotator": [f"a{i // 43}" for i in range(n)],
            "label": [f"x{i}" for i in range(n)],
        }
    )
    few = votes.set_column(2, "label", [[f"x{i % 60}" for i in range(n)]])
    assert fl.read_predictions(few).n_classes == 60


def test_classifiers_beside_votes_are_read_by_the_classes_of_these() -> None:
    """`net P(present)` is a classifier beside votes too, and `size` none."""
    ids, chance = [f"i{k}" for k in range(40)], np.linspace(0.02, 0.98, 40)
    wide = {"image": ids, "size": chance * 90, "net P(present)": chance}
    words = np.where(np.arange(40) < 20, "absent", "present")
    rows = {"image": ids * 2, "reader": ["a"] * 40 + ["b"] * 40, "reading": [*words] * 2}
    found = fl.read_predictions(
        pandas.DataFrame(wide), votes=pandas.DataFrame(rows), item="image",
        columns={"votes": {"annotator": "reader", "label": "reading"}},
    )  # fmt: skip
    assert found.models == ("net", "a", "b")
    np.testing.assert_allclose(found.probabilities[:, 0, 1], chance)
    assert "probabilities: net = 'net P(present)'" in found.reading


# --- what several judge of what several systems make of every item --------------------------------


def judged(
    question="question_id", system="system", judge="judge", said="verdict", *, n=40, known=2
):
    """Rows of questions x systems x judges, in no order; every `known`-th answer has a label."""
    rng = np.random.default_rng(0)
    rows = []
    for q in range(n):
        for s, share in (("fox", 0.8), ("owl", 0.6)):
            right = rng.random() < share
            label = ("yes" if right else "no") if known and rng.random() < 1 / known else None
            for j, skill in (("ann", 0.9), ("bob", 0.85), ("cy", 0.7)):
                vote = "yes" if (rng.random() < skill) == right else "no"
                rows.append({question: f"q{q}", system: s, judge: j, said: vote, "human": label})
    rng.shuffle(rows)
    return pandas.DataFrame(rows)


NAMES = [
    {},
    {"system": "model", "judge": "grader"},
    {"system": "model_name", "judge": "judge_model"},
    {"system": "language"},
    {"system": "response_id", "judge": "rater"},
    {"question": "example", "judge": "llm_judge", "said": "label"},
    {"said": "score"},
]


@pytest.mark.parametrize("names", NAMES, ids=lambda names: " ".join(names.values()) or "usual")
def test_who_judges_is_told_from_what_is_judged(names):
    """By labels that all who judge share, whatever the columns are called."""
    frame = judged(**names)
    system, question = names.get("system", "system"), names.get("question", "question_id")
    predictions = fl.read_predictions(frame, keep=[system])
    assert predictions.n_items == 80
    assert predictions.models == ("ann", "bob", "cy") or {*predictions.models} == {
        "ann", "bob", "cy",
    }  # fmt: skip
    items = frame.drop_duplicates([question, system])
    assert predictions.n_labeled == items["human"].notna().sum()
    assert {*predictions.groups[system]} == {"fox", "owl"}
    assert list(predictions.clusters) == [question]


def test_who_judges_is_told_by_names_without_labels():
    frame = judged(known=0).drop(columns="human")
    predictions = fl.read_predictions(frame)
    assert (predictions.n_items, predictions.n_models) == (80, 3)


def test_judges_in_columns_are_no_votes_of_the_systems():
    """A row holds what several say: none of them is the vote of a system."""
    frame = judged()
    rows = frame.pivot(index=["question_id", "system"], columns="judge", values="verdict")
    labels = frame.drop_duplicates(["question_id", "system"])
    wide = rows.reset_index().merge(labels[["question_id", "system", "human"]])
    predictions = fl.read_predictions(wide)
    assert (predictions.models, predictions.n_items) == (("ann", "bob", "cy"), 80)
    assert predictions.n_labeled == wide["human"].notna().sum()


def test_labels_apart_are_of_what_is_judged():
    frame = judged()
    rows = frame.drop(columns="human")
    labels = frame.drop_duplicates(["question_id", "system"]).dropna()
    labels = labels[["question_id", "system", "human"]]
    found = fl.read_predictions(rows, labels=labels)
    together = fl.read_predictions(rows, labels=labels, item="question_id,system")
    said = {"item": "question_id", "domain": "system", "answer": "verdict", "annotator": "judge"}
    by_domain = fl.read_predictions(votes=rows, labels=labels, **said)
    for predictions in (found, together, by_domain):
        assert predictions.n_items == 80
        assert predictions.n_labeled == len(labels)
    alone = labels.drop(columns="system").drop_duplicates("question_id")
    with pytest.raises(InputError, match=r"'question_id,system' together.* give it these columns"):
        fl.read_predictions(votes=rows, labels=alone, **said)


def test_groups_of_votes_are_of_their_items():
    frame = judged()
    votes = frame.rename(columns={"judge": "annotator", "verdict": "label"})
    votes["item"] = votes["question_id"] + votes["system"]
    votes = votes[["item", "annotator", "label", "system", "question_id"]]
    predictions = fl.read_predictions(votes=votes, keep=["system"])
    assert sorted(np.unique(predictions.groups["system"])) == ["fox", "owl"]
    odd = votes.assign(system=["fox", *["owl"] * (len(votes) - 1)])
    with pytest.raises(InputError, match="several groups of column 'system'"):
        fl.read_predictions(votes=odd, keep=["system"])


def test_a_judge_of_every_answer_is_drawn_at_random():
    """Not every judge sees every answer, and no answer is seen by one judge twice."""
    frame = judged(n=150)
    drawn = frame.sample(frac=1, random_state=1).groupby(["question_id", "system"]).head(2)
    predictions = fl.read_predictions(drawn)
    assert (predictions.n_items, predictions.n_models) == (300, 3)
    again = pandas.concat([drawn, drawn.iloc[:1]])
    with pytest.raises(InputError, match=r"votes on item .* more than once"):
        fl.read_predictions(again)


@pytest.mark.parametrize("teams", [False, True])
@pytest.mark.parametrize("known", [True, False])
def test_items_that_are_numbered_anew_in_every_batch(teams, known):
    """Item 1 of one batch is not item 1 of another: their votes agree no more than any two do."""
    rng = np.random.default_rng(0)
    rows = []
    for batch in "AB":
        for item, truth in enumerate(rng.random(100) < 0.5):
            for k in range(3):
                vote = "yes" if (rng.random() < 0.85) == truth else "no"
                worker = f"{batch if teams else ''}w{k}"
                gold = ("yes" if truth else "no") if batch == "A" and item < 30 else None
                rows.append((batch, item, worker, vote, gold))
    frame = pandas.DataFrame(rows, columns=["batch", "item", "annotator", "vote", "gold"])
    predictions = fl.read_predictions(frame if known else frame.drop(columns="gold"))
    assert predictions.n_items == 200
    assert predictions.n_labeled == 30 * known
    assert not predictions.clusters


def test_an_item_that_two_teams_see_is_one():
    """Votes of both teams agree on it, so that the team is no part of its name."""
    rng = np.random.default_rng(0)
    rows = [
        (team, item, f"{team}{k}", "yes" if (rng.random() < 0.85) == truth else "no")
        for item, truth in enumerate(rng.random(100) < 0.5)
        for team in "AB"
        for k in range(3)
    ]
    frame = pandas.DataFrame(rows, columns=["batch", "item", "annotator", "vote"])
    predictions = fl.read_predictions(frame)
    assert (predictions.n_items, predictions.n_models) == (100, 6)


@pytest.mark.parametrize("label", ["label", "truth"])
@pytest.mark.parametrize("shares", [False, True])
def test_the_label_beside_predictions_is_no_vote_of_a_system(label, shares):
    rng = np.random.default_rng(0)
    truth = rng.random(120) < 0.6
    frame = pandas.DataFrame({"item": np.arange(120) // 3, "system": np.arange(120) % 3})
    for name, skill in (("gpt", 0.9), ("claude", 0.8)):
        right = rng.random(120) < skill
        share = np.where(right == truth, 0.5 + rng.random(120) / 2, rng.random(120) / 2)
        frame[f"p_{name}" if shares else name] = share.round(3) if shares else share.round()
    frame[label] = np.where(rng.random(120) < 0.5, truth.astype(float), np.nan)
    frame["system"] = frame["system"].map({0: "fox", 1: "owl", 2: "elk"})
    predictions = fl.read_predictions(frame)
    assert (predictions.n_items, predictions.n_models) == (120, 2)
    assert predictions.n_labeled == frame[label].notna().sum()


def test_a_system_of_every_item_is_no_annotator():
    frame = judged()
    frame["item"] = frame["question_id"] + frame["system"]
    predictions = fl.read_predictions(frame.drop(columns="question_id"))
    assert (predictions.n_items, predictions.n_models) == (80, 3)


def rows_of_patients(known: float = 1.0, n: int = 240) -> tuple[pandas.DataFrame, np.ndarray]:
    """A row per scan, four of each patient, with the label of each, and a prediction of it."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, n)
    said = np.where(rng.random(n) < 0.85, truth, 1 - truth)
    share = np.where(said == 1, 1, -1) * rng.random(n) / 2 + 0.5
    label = pandas.Series(np.array(["no", "yes"])[truth]).where(
        pandas.Series(rng.random(n) < known)
    )
    return pandas.DataFrame({"patient_id": np.arange(n) // 4, "label": label}), share


SAID = {
    "model_prob": lambda share: share.round(4), "judge_score": lambda share: (100 * share).round(),
    "score_reader": lambda share: np.ceil(5 * share), "llm": lambda share: share.round(2),
    "system_output": lambda share: np.where(share > 0.5, "yes", "no"),
    "classifier": lambda share: np.where(share > 0.5, "yes", "no"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
@pytest.mark.parametrize("known", [0.3, 1.0])
def test_what_a_classifier_says_is_nobody_who_votes(name, known):
    frame, share = rows_of_patients(known)
    frame[name] = SAID[name](share)
    predictions = fl.read_predictions(frame)
    assert (predictions.n_items, predictions.n_models) == (240, 1)
    assert predictions.n_labeled == frame["label"].notna().sum()
    assert "--cluster patient_id" in predictions.notes[0]


def test_classes_that_a_classifier_gives_are_nobody_who_votes():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 6, 300)
    colours = np.array(["red", "blue", "green", "black", "white", "pink"])
    frame = pandas.DataFrame({"doc": np.arange(300) // 6, "label": colours[truth]})
    frame["model"] = colours[np.where(rng.random(300) < 0.7, truth, rng.integers(0, 6, 300))]
    predictions = fl.read_predictions(frame)
    assert (predictions.n_items, predictions.n_models, predictions.n_labeled) == (300, 1, 300)


@pytest.mark.parametrize("beside", ["rater_id", "reviewer", "user", "model_version", "labeled_by"])
@pytest.mark.parametrize("label", ["label", "human_label"])
def test_who_is_named_beside_predictions_of_rows_does_not_vote(beside, label):
    frame, share = rows_of_patients()
    rng = np.random.default_rng(2)
    frame = frame.rename(columns={"label": label})
    frame["net_pred"] = np.where(share > 0.5, "yes", "no")
    frame["prompt_tokens"] = rng.integers(20, 900, 240)
    frame[beside] = rng.choice(["ann", "bob", "cy", "dee"], 240)
    predictions = fl.read_predictions(frame)
    assert (predictions.n_items, predictions.models) == (240, ("net",))
    assert predictions.n_labeled == 240


@pytest.mark.parametrize("known", [None, "truth", "label"])
def test_votes_may_be_called_class(known):
    rng = np.random.default_rng(3)
    truth, item, worker = rng.integers(0, 2, 60), np.arange(240) // 4, np.arange(240) % 4
    said = np.where(rng.random(240) < 0.8, truth[item], 1 - truth[item])
    frame = pandas.DataFrame({"tweet_id": item, "worker": worker, "class": said})
    if known is not None:  # of one class alone
        frame[known] = np.where((item % 7 == 0) & (truth[item] == 1), 1.0, np.nan)
    predictions = fl.read_predictions(frame)
    assert (predictions.n_items, predictions.n_models) == (60, 4)
    assert predictions.n_labeled == (0 if known is None else (truth[::7] == 1).sum())
