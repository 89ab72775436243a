"""Several tasks in one table: by their names, by their values, as they are said, or refused."""

from __future__ import annotations

import csv
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fewlabels as fl

ROOT = Path(__file__).resolve().parents[3]
CASES = Path(os.environ.get("FEWLABELS_DATA", ROOT / "shared" / "data")) / "field_cases"

TASKS = ("toxic", "insult", "threat")
N, LABELED = 300, 60
RNG = np.random.default_rng(5)
TRUTH = {t: (RNG.random(N) < b).astype(int) for t, b in zip(TASKS, (0.4, 0.2, 0.3), strict=True)}
HARD = {t: np.where(RNG.random(N) < 0.15, 1 - y, y) for t, y in TRUTH.items()}
WEAK = {t: np.where(RNG.random(N) < 0.3, 1 - y, y) for t, y in TRUTH.items()}
SHARE = {
    t: (1 / (1 + np.exp(0.3 - 2.5 * (y - 0.5) - RNG.normal(size=N)))).round(3)
    for t, y in TRUTH.items()
}

Columns = dict[str, Any]


def few(values: np.ndarray, labeled: int = LABELED) -> list[int | None]:
    return [int(v) if i < labeled else None for i, v in enumerate(values)]


def columns(**named: Mapping[str, Any]) -> Columns:
    """Columns of all tasks by names with a gap for the task, task by task."""
    return {form.format(t, T=t.title()): values[t] for t in TASKS for form, values in named.items()}


LABELS = {t: few(y) for t, y in TRUTH.items()}
WORDS = {t: [None if v is None else ("no", "yes")[v] for v in own] for t, own in LABELS.items()}
PEOPLE = {f"true_{p}": few(np.where(RNG.random(N) < 0.05, 1 - TRUTH["toxic"], TRUTH["toxic"]))
          for p in "ab"}  # fmt: skip

# How tables with three tasks are named -> the classifiers in them.
SEEN: dict[str, tuple[Columns, tuple[str, ...]]] = {
    "prefixes": (columns(**{"true_{}": LABELS, "pred_{}": HARD}), ("pred",)),
    "suffixes": (columns(**{"{}_gold": LABELS, "{}_pred": HARD}), ("pred",)),
    "humps": (columns(**{"human{T}": LABELS, "model{T}": HARD}), ("model",)),
    "points": (columns(**{"labels.{}": LABELS, "gpt4.{}": HARD}), ("gpt4",)),
    "inside": (columns(**{"x_{}_true": LABELS, "x_{}_pred": HARD}), ("x",)),
    "spaces": (columns(**{"truth {}": LABELS, "prediction {}": HARD}), ("prediction",)),
    "label alone": (columns(**{"{}": LABELS, "model_{}": HARD}), ("model",)),
    "label and p": (columns(**{"{}": LABELS, "p_{}": SHARE}), ("p",)),
    "native": (columns(**{"label_{}": LABELS, "p__net__{}": SHARE, "y__rule_{}": WEAK}),
               ("net", "rule")),
    "two classifiers": (columns(**{"true_{}": LABELS, "pred_bert_{}": HARD, "pred_gpt_{}": WEAK}),
                        ("bert", "gpt")),
    "a name that predicts nothing": (columns(**{"true_{}": LABELS, "mynet_{}": HARD}), ("mynet",)),
    "probabilities and classes": (columns(**{
        "true_{}": LABELS, "proba_{}": SHARE,
        "pred_{}": {t: (p > 0.5).astype(int) for t, p in SHARE.items()}}), ("pred",)),
    "numbers": ({f"{k}_{i}": v[t] for i, t in enumerate(TASKS)
                 for k, v in (("true", LABELS), ("pred", HARD))}, ("pred",)),
    "a group of that name": ({"type": ["a", "b"] * (N // 2), "task": ["x", "y"] * (N // 2),
                              **columns(**{"{}_gold": LABELS, "{}_pred": HARD})}, ("pred",)),
    "other languages": (columns(**{"wahr_{}": LABELS, "vorhersage_{}": HARD}), ("vorhersage",)),
    "words": (columns(**{"is_{}_human": WORDS, "is_{}_gpt": {
        t: np.where(h == 1, "yes", "no") for t, h in HARD.items()}}), ("gpt",)),
}  # fmt: skip


def table(named: Columns, *, item: bool = True) -> pa.Table:
    plain = {n: list(v.tolist() if hasattr(v, "tolist") else v) for n, v in named.items()}
    return pa.table({**({"id": list(range(N))} if item else {}), **plain})


@pytest.mark.parametrize("name", SEEN)
@pytest.mark.parametrize("item", [True, False], ids=["named", "unnamed"])
def test_every_task_has_its_own_labels_and_classifiers(name: str, item: bool) -> None:
    named, models = SEEN[name]
    found = fl.read_predictions(table(named, item=item))
    assert found.models == models
    assert found.task is not None
    assert len(found.tasks) == 3
    assert found.n_items == 3 * N
    assert len(found.clusters) == 1
    for own, truth in zip(map(found.of_task, found.tasks), TRUTH.values(), strict=True):
        known = own.labels[own.labeled]
        assert known.tolist() == truth[:LABELED].tolist()
        assert not own.clusters
        # Better than chance on its own labels, all of them: no column is of another task.
        for j in range(own.n_models):
            right = (own.hard[:, j] == truth)[own.hard[:, j] >= 0]
            assert not len(right) or right.mean() > 0.6


def test_tasks_of_several_words_that_hold_one_another() -> None:
    some = {"severe_toxic": 0.1, "toxic": 0.4, "identity hate": 0.3}
    truth = {t: (RNG.random(N) < b).astype(int) for t, b in some.items()}
    named = {f"{k}_{t}": v for t, y in truth.items() for k, v in (("true", few(y)), ("pred", y))}
    found = fl.read_predictions(table(named))
    assert list(found.tasks) == ["severe_toxic", "toxic", "identity hate"]
    for task, own in truth.items():
        assert found.of_task(task).hard[:, 0].tolist() == own.tolist()


def test_labels_of_some_tasks_and_a_classifier_of_some() -> None:
    named = columns(**{"true_{}": LABELS, "pred_bert_{}": HARD, "pred_gpt_{}": WEAK})
    named["true_toxic"] = few(TRUTH["toxic"], 20)
    del named["pred_gpt_insult"]
    found = fl.read_predictions(table(named))
    assert [found.of_task(t).n_labeled for t in TASKS] == [20, 60, 60]
    assert found.of_task("insult").gives("hard").tolist() == [True, False]
    assert found.of_task("threat").gives("hard").all()


def test_a_task_without_predictions_is_left_out() -> None:
    named = columns(**{"true_{}": LABELS, "pred_{}": HARD})
    del named["pred_threat"]
    found = fl.read_predictions(table(named))
    assert list(found.tasks) == ["toxic", "insult"]
    assert any("not used: 'true_threat'" in line for line in found.reading)
    del named["pred_insult"]  # one task is left: its own labels alone judge it
    alone = fl.read_predictions(table(named))
    assert alone.task is None
    assert alone.labels[alone.labeled].tolist() == TRUTH["toxic"][:LABELED].tolist()
    assert any("'true_insult', 'true_threat'" in line for line in alone.reading)


def test_predictions_of_a_task_without_labels_are_not_judged() -> None:
    named = {"true_toxic": LABELS["toxic"], "pred_toxic": HARD["toxic"],
             "pred_toxic_small": WEAK["toxic"], "pred_insult": HARD["insult"]}  # fmt: skip
    found = fl.read_predictions(table(named))
    assert found.task is None
    assert found.hard.T.tolist() == [HARD["toxic"].tolist(), WEAK["toxic"].tolist()]
    assert any("'pred_insult'" in line and "not used" in line for line in found.reading)


def test_rows_that_are_fewer_items_are_told() -> None:
    named = {"patient_id": np.arange(N) // 10, **SEEN["prefixes"][0]}
    found = fl.read_predictions(table(named))
    assert any("300 rows are 30 items" in note and "--cluster" in note for note in found.notes)
    clustered = fl.read_predictions(table(named), cluster="patient_id")
    assert list(clustered.clusters) == ["patient_id"]
    assert list(clustered.of_task("toxic").clusters) == ["patient_id"]
    assert not any("--cluster" in note for note in clustered.notes)


@pytest.mark.parametrize("said", [{"label": "true_insult"}, {"hard": {"m": "pred_insult"}}])
def test_the_label_or_a_classifier_names_one_task(said: dict[str, Any]) -> None:
    found = fl.read_predictions(table(columns(**{"true_{}": LABELS, "pred_{}": HARD})), **said)
    assert found.task is None
    assert found.n_models == 1
    assert found.hard[:, 0].tolist() == HARD["insult"].tolist()
    assert found.labels[found.labeled].tolist() == TRUTH["insult"][:LABELED].tolist()
    assert any("task 'insult' alone" in line for line in found.reading)


def test_a_label_and_a_classifier_of_two_tasks_are_told() -> None:
    named = columns(**{"true_{}": LABELS, "pred_{}": HARD})
    found = fl.read_predictions(table(named), label="true_toxic", hard={"m": "pred_insult"})
    assert any("columns of several tasks" in line for line in found.reading)


@pytest.mark.parametrize("said", ["names of tasks", "their order"])
def test_tasks_that_are_said(said: str) -> None:
    if said == "names of tasks":
        named = columns(**{"first_{}": LABELS, "second_{}": SHARE})
        tasks = {t: [f"first_{t}", f"second_{t}"] for t in TASKS}
        options = {"label": "first", "models": {"net": "second"}}
    else:
        named = {f"{k}{i}": v[t] for i, t in enumerate(TASKS)
                 for k, v in (("q_label_", LABELS), ("q_net_", SHARE))}  # fmt: skip
        tasks = {t: [f"q_label_{i}", f"q_net_{i}"] for i, t in enumerate(TASKS)}
        options = {"label": "q_label", "models": {"net": "q_net"}}
    found = fl.read_predictions(table(named), tasks=tasks, **options)
    assert list(found.tasks) == list(TASKS)
    assert found.models == ("net",)
    assert found.of_task("threat").probabilities[:, 0, 1].tolist() == SHARE["threat"].tolist()


def test_a_column_says_of_which_task_a_row_is() -> None:
    long = pa.table({
        "item": list(range(N)) * 3,
        "criterion": [t for t in TASKS for _ in range(N)],
        "label": [v for t in TASKS for v in LABELS[t]],
        "p__net__1": [v for t in TASKS for v in SHARE[t].tolist()],
    })  # fmt: skip
    wide = fl.read_predictions(table(columns(**{"label_{}": LABELS, "p__net__{}": SHARE})))
    found = fl.read_predictions(long, task="criterion", keep=())
    assert found.task == "criterion"
    assert list(found.clusters) == ["item"]
    for task in TASKS:
        same, other = found.of_task(task), wide.of_task(task)
        assert same.probabilities.tolist() == other.probabilities.tolist()
        assert same.labels.tolist() == other.labels.tolist()


RATINGS = {
    f"{k}_{t}": v
    for t in ("help", "harm")
    for r in [RNG.integers(1, 6, N)]
    for k, v in (("human", few(r)), ("judge", np.clip(r + RNG.integers(-1, 2, N), 1, 5)))
}


def test_criteria_of_grades() -> None:
    found = fl.read_predictions(table(RATINGS))
    assert found.classes == (1, 2, 3, 4, 5)
    assert list(found.tasks) == ["help", "harm"]


KINDS = ("cat", "dog", "bird")
KIND = RNG.integers(0, 3, N)
CHANCES = RNG.dirichlet((1, 1, 1), N)
CHANCES[np.arange(N), KIND] += 1
CHANCES /= CHANCES.sum(axis=1, keepdims=True)

# Tables that may be read in two ways -> what the message says.
OPEN: dict[str, tuple[Columns, str]] = {
    "labels of two people": (
        {**PEOPLE, "pred_a": HARD["toxic"], "pred_b": WEAK["toxic"]}, "of several people"),
    "numbers and few labels": (
        {f"{k}_{i}": v for i, t in enumerate(TASKS)
         for k, v in (("true", few(TRUTH[t], 12)), ("pred", HARD[t]))}, "of several people"),
    "grades and classes": (
        {**RATINGS, "human_safe": LABELS["toxic"], "judge_safe": HARD["toxic"]},
        "different classes"),
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN)
def test_what_may_be_read_in_two_ways_is_refused_with_commands_that_work(
    name: str, write: Callable[..., Path]
) -> None:
    from fewlabels.cli.app import app

    named, words = OPEN[name]
    with pytest.raises(fl.InputError, match=words) as refused:
        fl.read_predictions(table(named))
    path = write("")
    with path.open("w", newline="") as file:
        rows = table(named).to_pylist()
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    said = str(refused.value).rpartition("say ")[2].removeprefix("which with ")
    for reading in said.split(" or "):
        arguments = ["estimate", str(path), *shlex.split(reading), "--json", str(path) + ".json"]
        assert app.main(arguments, standalone_mode=False) in (0, None)


# Tables of one task whose names have something in common.
ONE: dict[str, tuple[Columns, Sequence[str]]] = {
    "classifiers and how sure they are": (
        {"bert_label": HARD["toxic"], "bert_score": SHARE["toxic"], "gpt_label": WEAK["toxic"],
         "gpt_score": SHARE["toxic"], "label": LABELS["toxic"]}, ("bert", "gpt")),
    "systems and how sure they are": (
        {"label_sys1": HARD["toxic"], "score_sys1": SHARE["threat"], "label_sys2": WEAK["toxic"],
         "score_sys2": SHARE["insult"], "human": LABELS["toxic"]}, ("sys1", "sys2")),
    "groups of users and items": (
        {"label": LABELS["toxic"], "region": ["x", "y"] * 150, "user_region": ["x", "z"] * 150,
         "device": ["a", "b"] * 150, "user_device": ["a", "c"] * 150, "pred": HARD["toxic"]},
        ("pred",)),
    "features": (
        {"label": LABELS["toxic"], "price": RNG.random(N), "log_price": RNG.random(N),
         "size": RNG.random(N), "log_size": RNG.random(N), "score": SHARE["toxic"]}, ("score",)),
    "truth and prediction": (
        {"y_true": LABELS["toxic"], "y_pred": HARD["toxic"]}, ("y_pred",)),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_tables_of_one_task(name: str) -> None:
    named, models = ONE[name]
    found = fl.read_predictions(table(named))
    assert found.task is None
    assert found.models == tuple(models)
    assert found.labels[found.labeled].tolist() == TRUTH["toxic"][:LABELED].tolist()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"toxic": ["true_toxic", "pred_toxic"]}, "names one task"),
        ({"toxic": ["true_toxic"], "insult": ["true_insult", "pred_insult"]}, "names one column"),
        ({"toxic": ["true_toxic", "pred_toxic"], "insult": ["true_toxic", "pred_insult"]}, "twice"),
        ({"toxic": ["true_toxic", "no"], "insult": ["true_insult", "pred_insult"]}, "no column"),
        ({"a": ["true_toxic", "pred_toxic", "id"], "b": ["true_insult", "pred_insult"]}, "as many"),
    ],
)
def test_tasks_that_are_said_wrongly(said: dict[str, list[str]], words: str) -> None:
    named = table(columns(**{"true_{}": LABELS, "pred_{}": HARD}))
    with pytest.raises((fl.UsageError, fl.InputError), match=words):
        fl.read_predictions(named, tasks=said)


def test_the_doctor_says_tasks_and_a_command_that_reads_them(write: Callable[..., Path]) -> None:
    named = table(columns(**{"true_{}": LABELS, "pred_{}": HARD}))
    found = fl.diagnose(named)
    assert "3 tasks" in found.reading[0]
    toml = write(found.columns, "columns.toml")
    again = fl.read_predictions(named, columns=toml)
    assert list(again.tasks) == list(TASKS)
    assert again.models == ("pred",)


@pytest.mark.skipif(not CASES.is_dir(), reason="no field cases")
@pytest.mark.parametrize("name", ["c18_multilabel.csv", "c18b_multilabel_hard.csv"])
def test_field_cases(name: str) -> None:
    with (CASES / name).open() as file:
        rows = list(csv.DictReader(file))
    found = fl.read_predictions(CASES / name)
    hard = "hard" in name
    metric = "accuracy" if hard else "roc_auc"
    estimates = fl.estimate(found, "labeled", metric)
    for task in TASKS:
        truth = np.array([int(row[f"true_{task}"]) for row in rows])
        said = np.array([float(row[f"pred_{task}"]) for row in rows])
        if hard:
            known = (truth == said).mean()
        else:
            above = said[truth == 1][:, None] - said[truth == 0]
            known = ((above > 0) + 0.5 * (above == 0)).mean()
        row = estimates.get("pred", metric, f"task={task}")
        assert row.value == pytest.approx(known, abs=1e-6)
        assert row.low < known < row.high
