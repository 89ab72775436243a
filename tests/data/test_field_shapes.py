"""Tables of annotation platforms and of published data: what each column is taken for.

The tables are made here in the shapes that the platforms export; `SHAPES` says what is meant.
Files of others in these shapes are read as well, where they are there.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import test_named_classifiers as named_classifiers
import test_sure_columns as sure_columns

import fewlabels as fl
from fewlabels.data import recognise as recognise_module
from fewlabels.data.options import ColumnOptions
from fewlabels.data.profiles import name_evidence, name_words, words_table
from fewlabels.data.recognise import evidence_table, recognise
from fewlabels.data.shapes import shaped
from fewlabels.data.sources import open_source

ROOT = Path(__file__).resolve().parents[3]
CASES = Path(os.environ.get("FEWLABELS_DATA", ROOT / "shared" / "data")) / "field_cases"

N, WORKERS, EACH = 60, 8, 3
RNG = np.random.default_rng(7)
ITEM = np.repeat(np.arange(N), EACH)
WORKER = np.concatenate([RNG.choice(WORKERS, EACH, replace=False) for _ in range(N)])
TRUTH = RNG.integers(0, 2, N)
SAID = TRUTH[ITEM] ^ (RNG.random(N * EACH) < 0.2)
ROW = np.arange(N * EACH)
KNOWN = ITEM < 12


def words(codes: np.ndarray, *names: str) -> np.ndarray:
    return np.array(names, dtype=object)[codes.astype(int)]


def gold(codes: np.ndarray, known: np.ndarray, *names: str) -> np.ndarray:
    return np.where(known, words(codes, *names), None)


def named(start: str, codes: np.ndarray) -> list[str]:
    return [f"{start}{code}" for code in codes]


def moments(codes: np.ndarray) -> list[str]:
    return [f"2021-09-{1 + c // 1440:02}T{c // 60 % 24:02}:{c % 60:02}:00" for c in codes]


def moods(codes: np.ndarray) -> np.ndarray:
    return words(codes, "Negative", "Positive")


SEEN = np.arange(200) % 5
GUESS = RNG.random(200) < 0.7
CAT = RNG.integers(0, 3, 200)
P = RNG.random(200)


def animals(seed: int, right: float = 0.8) -> np.ndarray:
    rng = np.random.default_rng(seed)
    said = np.where(rng.random(200) < right, CAT, rng.integers(0, 3, 200))
    return words(said, "bird", "cat", "dog")


def wide(seed: int) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random(200) < 0.4, animals(seed), None)


@dataclass
class Shape:
    """A table; the roles of its columns, or, of what must be refused, the options it proposes.

    `roles` are fields of `ColumnOptions`; `votes` those of the rows that are votes.
    """

    table: dict[str, Any]
    roles: dict[str, Any] = field(default_factory=dict)
    votes: tuple[str, str, str] | None = None
    proposed: tuple[str, ...] = ()
    real: str | None = None


SHAPES = {
    "Label Studio": Shape(
        {"id": ITEM, "text": named("text ", ITEM), "sentiment": moods(SAID), "annotator": WORKER,
         "annotation_id": 1000 + ROW, "created_at": moments(ROW), "updated_at": moments(ROW),
         "lead_time": RNG.random(N * EACH).round(3) * 20},
        votes=("id", "annotator", "sentiment"), real="k13_labelstudio_csv.csv",
    ),
    "Appen": Shape(
        {"_unit_id": 700000 + ITEM, "_golden": words(KNOWN, "false", "true"), "_id": 9000 + ROW,
         "_channel": "elite", "_trust": (0.7 + WORKER / 40 + ROW / 10000).round(4),
         "_worker_id": 40000 + WORKER, "_country": words(WORKER % 2, "USA", "GBR"),
         "sentiment": moods(SAID), "tweet": named("tweet ", ITEM),
         "sentiment_gold": gold(TRUTH[ITEM], KNOWN, "Negative", "Positive")},
        {"label": "sentiment_gold"}, ("_unit_id", "_worker_id", "sentiment"),
        real="a01_appen_full.csv",
    ),
    "Toloka": Shape(
        {"INPUT:image": named("http://x/", ITEM), "OUTPUT:result": words(SAID, "cat", "dog"),
         "GOLDEN:result": gold(TRUTH[ITEM], KNOWN, "cat", "dog"), "HINT:text": None,
         "ASSIGNMENT:link": named("https://x/", ROW), "ASSIGNMENT:task_id": named("t", ITEM),
         "ASSIGNMENT:assignment_id": named("a", ROW),
         "ASSIGNMENT:task_suite_id": named("s", ITEM // 5),
         "ASSIGNMENT:worker_id": named("w", WORKER), "ASSIGNMENT:status": "APPROVED",
         "ASSIGNMENT:started": moments(ROW), "ASSIGNMENT:reward": 0.01},
        {"label": "GOLDEN:result"}, ("ASSIGNMENT:task_id", "ASSIGNMENT:worker_id", "OUTPUT:result"),
        real="a02_toloka_assignments.tsv",
    ),
    "Mechanical Turk": Shape(
        {"HITId": named("3X", ITEM), "HITTypeId": "3Q8", "Reward": "$0.05",
         "AssignmentId": named("A", ROW), "WorkerId": named("W", WORKER),
         "AssignmentStatus": "Approved", "AcceptTime": moments(ROW),
         "WorkTimeInSeconds": RNG.integers(5, 300, N * EACH), "Input.text": named("text ", ITEM),
         "Answer.sentiment": moods(SAID)},
        votes=("HITId", "WorkerId", "Answer.sentiment"),
    ),
    "Zooniverse": Shape(
        {"classification_id": 5000 + ROW, "user_name": named("user", WORKER),
         "user_id": 100 + WORKER, "workflow_id": 17, "created_at": moments(ROW),
         "annotations": words(SAID, '[{"task": "T0", "value": "No"}]',
                              '[{"task": "T0", "value": "Yes"}]'),
         "subject_ids": 80 + ITEM},
        votes=("subject_ids", "user_id", "annotations[value]"),
    ),
    "crowd-kit": Shape(
        {"task": named("t", ITEM), "worker": named("w", WORKER),
         "label": words(SAID, "cat", "dog")},
        votes=("task", "worker", "label"),
    ),
    "crowd-kit, nobody shares a task": Shape(
        {"task": named("u", np.arange(150)), "worker": named("w", np.arange(150) // 50),
         "label": animals(1)[:150]},
        votes=("task", "worker", "label"), real="k04_disjoint.csv",
    ),
    "crowd-kit, one worker": Shape(
        {"task": named("u", np.arange(100)), "worker": "w0", "label": animals(1)[:100]},
        votes=("task", "worker", "label"), real="k05_one_annotator.csv",
    ),
    "indices of questions": Shape(
        {"Unnamed: 0": ROW, "worker_unique_ids": named("batch0_worker", WORKER),
         "question_indices": ITEM % 20, "ratings": SAID + 0, "guid": named("1_", ITEM)},
        votes=("guid", "worker_unique_ids", "ratings"), real="k11_vacstance_style.tsv",
    ),
    "readers and cases": Shape(
        {"reader": np.tile(np.repeat(np.arange(4), 2), 60), "treatment": np.tile([1, 2], 240),
         "case": np.repeat(np.arange(60), 8), "truth": np.repeat(TRUTH, 8),
         "rating": 1 + RNG.integers(0, 5, 480)},
        {"label": "truth", "scores": {"rating": "rating"}}, real="k10_mrmc.csv",
    ),
    "each annotator twice": Shape(
        {"row": ITEM, "condition": words(ITEM % 2, "en-en", "en-es"), "annotator": WORKER,
         "label1": words(SAID, "Not hateful", "Hateful"),
         "label2": words(SAID ^ (ROW % 7 == 0), "Not hateful", "Hateful")},
        proposed=("--votes --item row --annotator annotator --answer label1",
                  "--votes --item row --annotator annotator --answer label2"),
        real="x01_intra_annotator.csv",
    ),
    "a column per annotator": Shape(
        {"image": named("i", np.arange(200)),
         **{f"annotator{k}@example.org": wide(k) for k in range(5)},
         "annotator9@example.org": None},
        {"item": "image",
         "hard": {f"annotator{k}@example.org": f"annotator{k}@example.org" for k in range(5)}},
        real="k01_wide_emails_empty.csv",
    ),
    "a topic beside the label": Shape(
        {"pair_id": np.arange(200) // 2, "language": words(np.arange(200) % 2, "en", "bn"),
         "text": named("t", np.arange(200)),
         "category": words(CAT, "neutral", "toxic", "borderline"),
         "expected_label": words(GUESS, "non-toxic", "toxic"),
         "toxic_bert_label": words(GUESS ^ (P < 0.2), "non-toxic", "toxic"),
         "detoxify_label": words(GUESS ^ (P > 0.7), "non-toxic", "toxic")},
        {"label": "expected_label", "item": "text",
         "hard": {"toxic_bert": "toxic_bert_label", "detoxify": "detoxify_label"}},
        real="r02_bangla20.csv",
    ),
    "how sure, and is it right": Shape(
        {"question": named("q", np.arange(200)), "model_answer": named("a", np.arange(200)),
         "verbal_confidence": 50 + 10 * SEEN, "is_correct": GUESS},
        proposed=("--label is_correct --score verbal=verbal_confidence",),
        real="c52_llm_confidence.csv",
    ),
    "is it right, beside two models": Shape(
        {"gpt": animals(1), "llama": animals(2), "gold": animals(3, 1.0), "is_correct": GUESS},
        {"label": "gold", "hard": {"gpt": "gpt", "llama": "llama"}},
    ),
}  # fmt: skip


def proposals(error: Exception) -> list[str]:
    """The options that a message proposes."""
    said = re.search(r"say (?:which with )?(--.*)$", str(error))
    assert said is not None, error
    return said[1].split(" or ")


def check(shape: Shape, source: Any, run: Callable[..., tuple[int, str, str]], file: Path) -> None:
    if shape.proposed:
        with pytest.raises(fl.InputError) as error:
            fl.read_predictions(source)
        assert proposals(error.value) == list(shape.proposed)
        for options in shape.proposed:
            code, _, err = run("estimate", file, *shlex.split(options), "--json", "-")
            assert code == 0, err
        return
    reading = recognise(*shaped(open_source(source, None), ColumnOptions()))
    found = reading.options
    votes = dict(zip(("item", "annotator", "label"), shape.votes or (), strict=False))
    assert (dict(found.votes), reading.votes) == (votes, bool(votes))
    expected = {"label": None, "models": {}, "hard": {}, "scores": {}, "confidence": {}}
    assert {k: getattr(found, k) for k in expected | shape.roles} == expected | shape.roles
    # The command that the doctor shows says the same.
    command = found.command(str(file), votes=reading.votes)
    code, _, err = run(*shlex.split(command)[1:], "--json", "-")
    assert code == 0, err


@pytest.mark.parametrize("name", SHAPES)
def test_what_columns_are(name: str, cli: Any, tmp_path: Path) -> None:
    shape, table = SHAPES[name], pd.DataFrame(SHAPES[name].table)
    file = tmp_path / "file.csv"
    table.to_csv(file, index=False)
    check(shape, table, cli, file)


@pytest.mark.skipif(not CASES.is_dir(), reason="no field cases")
@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if shape.real])
def test_what_columns_of_real_files_are(name: str, cli: Any) -> None:
    file = CASES / str(SHAPES[name].real)
    table = pd.read_csv(file, sep="\t" if file.suffix == ".tsv" else ",")
    check(SHAPES[name], table, cli, file)


def test_who_wrote_a_text_is_no_annotator() -> None:
    table = pd.DataFrame({"tweet_id": ITEM[:50] + ROW[:50], "user": named("u", WORKER[:50]),
                          "label": moods(SAID[:50])})  # fmt: skip
    with pytest.raises(fl.InputError, match="no prediction columns"):
        fl.read_predictions(table)


TAKEN = {
    f"{about}, {name}": table
    for about, tables in (sure_columns.READ | named_classifiers.READ).items()
    for name, given in tables.items()
    for table, options in [given if isinstance(given, tuple) else (given, {})]
    if not options
}


def test_what_messages_propose_works(cli: Any, tmp_path: Path) -> None:
    """Every option that any of these tables is refused with, but for corrections of cells."""
    file, tried = tmp_path / "file.csv", 0
    for name, table in TAKEN.items():
        try:
            fl.read_predictions(table)
        except fl.InputError as error:
            if "--" not in str(error) or "=NAME" in str(error):
                continue
            table.to_csv(file, index=False)
            for options in proposals(error):
                asked = [*shlex.split(options), "--metrics", "accuracy", "--json", "-"]
                code, _, err = cli("estimate", file, *asked)
                assert code == 0, (name, options, err)
                tried += 1
    assert tried > 30


def test_votes_and_labels_are_those_of_the_makers() -> None:
    for name in ("Label Studio", "Appen", "Toloka", "Mechanical Turk", "Zooniverse", "crowd-kit"):
        found = fl.read_predictions(pd.DataFrame(SHAPES[name].table))
        assert (found.n_items, found.n_models) == (N, WORKERS)
        right = (found.votes == TRUTH[:, None])[found.votes >= 0]
        assert right.mean() == pytest.approx(np.mean(TRUTH[ITEM] == SAID)), name
        if found.n_labeled:
            np.testing.assert_array_equal(found.labels[:12], TRUTH[:12])


def test_the_table_of_words_holds_what_is_used() -> None:
    table = words_table()
    source = Path(recognise_module.__file__).read_text("utf-8")
    facts = {fact for weights in table.values.values() for fact in weights}
    assert [fact for fact in facts if f'"{fact}"' not in source] == []
    plain = [word.lstrip("^$=") for word in table.roles if not word.startswith("@")]
    assert [word for word in plain if word != "_".join(name_words(word))] == []


@pytest.mark.parametrize(("name", "role", "weight"), [
    ("human_label", "label", 16), ("gpt4o_label", "label", -3), ("outcome", "label", 4),
    ("reader2", "annotator", 4), ("subject_ids", "item", 6), ("status", "vote", -4),
    ("HumanLabel", "label", 16), ("annotation_id", "item", 10),
])  # fmt: skip
def test_what_a_name_says_adds_up(name: str, role: str, weight: float) -> None:
    assert name_evidence(name, role) == weight


def test_the_table_of_evidence() -> None:
    table = pd.DataFrame(SHAPES["a topic beside the label"].table)
    found = {one.column: one for one in evidence_table(open_source(table, None), ColumnOptions())}
    assert {name: one.role for name, one in found.items()} == {
        "pair_id": "cluster", "language": "group", "text": "item", "category": "group",
        "expected_label": "label", "toxic_bert_label": "prediction",
        "detoxify_label": "prediction",
    }  # fmt: skip
    assert found["expected_label"].score > 10 > found["category"].score
    assert "its values recur" in found["expected_label"].reason
    diagnosis = fl.diagnose(table)
    assert [one["column"] for one in diagnosis.to_dict()["evidence"]] == list(table)
    text = diagnosis.summary(80)
    assert max(map(len, text.splitlines())) <= 80
    assert "label +18" in text
