"""Tables of annotation platforms and of published data: what each column is taken for.

The tables are made here in the shapes that the platforms export; `SHAPES` says what is meant.
Files of others in these shapes are read as well, where they are there.
"""

from __future__ import annotations

import json
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
from fewlabels.data import profiles
from fewlabels.data import recognise as recognise_module
from fewlabels.data.options import ColumnOptions
from fewlabels.data.profiles import name_evidence, name_words, words_table
from fewlabels.data.recognise import evidence_table, recognise
from fewlabels.data.roles import places
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


SEEN, SEEN_4 = np.arange(200) % 5, np.arange(200) % 4
GUESS = RNG.random(200) < 0.7
CAT = RNG.integers(0, 3, 200)
P = RNG.random(200)
ODDS = np.random.default_rng(5).dirichlet(np.ones(3), 200) * 0.9 + 1 / 30


def animals(seed: int, right: float = 0.8) -> np.ndarray:
    rng = np.random.default_rng(seed)
    said = np.where(rng.random(200) < right, CAT, rng.integers(0, 3, 200))
    return words(said, "bird", "cat", "dog")


def wide(seed: int) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random(200) < 0.4, animals(seed), None)


@dataclass
class Shape:
    """A table; the roles of its columns, or, of what must be refused, the options it proposes.

    `roles` are fields of `ColumnOptions`; `votes` those of the rows that are votes. `refused` is in
    the message of what is refused without an option that would mend it.
    """

    table: dict[str, Any]
    roles: dict[str, Any] = field(default_factory=dict)
    votes: tuple[str, str, str] | None = None
    proposed: tuple[str, ...] = ()
    real: str | None = None
    refused: str = ""


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
        proposed=("--cluster case --by reader", "--cluster case --by treatment"),
        real="k10_mrmc.csv",
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
    "Toloka, items of a suite": Shape(
        {"INPUT:image": named("http://x/", ITEM), "OUTPUT:result": words(SAID, "cat", "dog"),
         "GOLDEN:result": gold(TRUTH[ITEM], KNOWN, "cat", "dog"),
         "ASSIGNMENT:assignment_id": named("a", 100 * (ITEM // 5) + WORKER),
         "ASSIGNMENT:task_id": named("t", ITEM), "ASSIGNMENT:worker_id": named("w", WORKER)},
        {"label": "GOLDEN:result"}, ("ASSIGNMENT:task_id", "ASSIGNMENT:worker_id", "OUTPUT:result"),
    ),
    "several questions to each rater": Shape(
        {"id": ROW, "rater_id": 100 + WORKER, "rater_age": words(WORKER % 3, "y", "m", "o"),
         "item_id": ITEM, "safety_gold": words(TRUTH[ITEM], "No", "Yes"),
         "Q1_bias": words(ROW % 3, "No", "Unsure", "Yes"),
         "Q_overall": words(np.where(ROW % 11, 2 * SAID, 1), "No", "Unsure", "Yes")},
        proposed=(
            "--votes --label safety_gold --item item_id --annotator rater_id --answer Q_overall",
            "--votes --label safety_gold --item item_id --annotator rater_id --answer Q1_bias",
        ),
    ),
    "votes of which no name says what they are": Shape(
        {"c1": named("A", WORKER), "c2": named("http://x/", ITEM),
         "c3": words(TRUTH[ITEM] ^ (ROW % 9 == 0), "G", "P")},
        proposed=("--votes --item c2 --annotator c1 --answer c3",),
    ),
    "columns of annotators without names": Shape(
        {f"c{k}": wide(k) for k in range(1, 6)}, {"hard": {f"c{k}": f"c{k}" for k in range(1, 6)}}
    ),
    "tags of the same items": Shape(
        {"id": np.arange(200), **{name: np.where(SEEN == 0, (cut > P) + 0.0, np.nan)
         for name, cut in (("toxic", 0.2), ("threat", 0.4), ("rude", 0.6))}},
        refused="'toxic', 'threat', 'rude' may each hold the known labels",
    ),
    "counts of annotators, and what most chose": Shape(
        {"": ROW, "count": 3 + ROW % 2, "offensive": SAID * 2, "neither": 3 + ROW % 2 - SAID * 2,
         "class": 1 - (SAID * 4 > 3 + ROW % 2)},
        refused="'offensive', 'neither' count .* 'count' in every row.; 'class' is the class that",
    ),
    "who wins against whom": Shape(
        {"question_id": ITEM, "model_a": words(ROW % 2, "m1", "m2"),
         "model_b": words(ROW % 2, "m2", "m1"), "winner": words(ROW % 3, "model_a", "model_b",
         "tie"), "judge": named("expert_", WORKER)},
        refused="'winner' says which of 'model_a', 'model_b' is better",
    ),
    "a label that is the classifier's own answer": Shape(
        {"text": named("t", np.arange(200)), "class": animals(1), **{
            f"net_{name}": (0.2 + 0.4 * (animals(1) == name)).round(3)
            for name in ("bird", "cat", "dog")}},
        proposed=(
            "--label class --model net=net_bird,net_cat,net_dog",
            "--model net=net_bird,net_cat,net_dog --hard class=class",
        ),
    ),
    "a column `label` that is the classifier's own answer": Shape(
        {"label": animals(1), "net_pred": animals(1)},
        proposed=("--label label --hard net=net_pred",),
    ),
    "few labels, and a classifier that is right in all": Shape(
        {"label": np.where(SEEN == 0, animals(1), None), "net_pred": animals(1)},
        {"label": "label", "hard": {"net": "net_pred"}},
    ),
    "a truth that a classifier always says": Shape(
        {"y_true": animals(1), "net_pred": animals(1)},
        {"label": "y_true", "hard": {"net": "net_pred"}},
    ),
    "metadata of a labeling job": Shape(
        {"source-ref": named("s3://x/", np.arange(200)), "job-1": SEEN % 3,
         "job-1-metadata.class-name": words(SEEN % 3, "clean", "dirty", "unsure"),
         "job-1-metadata.job-name": "labeling-job/job-1",
         "job-1-metadata.confidence": P.round(2), "job-1-metadata.type": "image-classification",
         "job-1-metadata.human-annotated": words(GUESS, "no", "yes")},
        refused="no column holds known labels",
    ),
    "letters of choices inside names": Shape(
        {"0": named("question ", np.arange(200)), "5": words(CAT, "A", "B", "C"),
         "x_correct": CAT == SEEN % 3,
         **{f"x_choice{c}_probs": 0.2 + 0.4 * (k == SEEN % 3) for k, c in enumerate("ABC")}},
        {"label": "5", "models": {"x": tuple(f"x_choice{c}_probs" for c in "ABC")}},
    ),
    "classes of probabilities in a column without a name": Shape(
        {"5": words(CAT, "A", "B", "C"),
         **{f"x_choice{c}_probs": 0.2 + 0.4 * (k == np.where(GUESS, CAT, SEEN % 3))
            for k, c in enumerate("ABC")}},
        proposed=(
            "--label 5 --model x=x_choiceA_probs,x_choiceB_probs,x_choiceC_probs",
            "--model x=x_choiceA_probs,x_choiceB_probs,x_choiceC_probs --hard 5=5",
        ),
    ),
    "RapidMiner": Shape(
        {"Row No.": np.arange(200), "Home Owner": SEEN % 2,
         "prediction(Good Risk)": words(P > 0.5, "No", "Yes"), "confidence(Yes)": P,
         "confidence(No)": 1 - P, "max_confidence": np.maximum(P, 1 - P),
         "uncertain_flag": abs(P - 0.5) < 0.1},
        {"models": {"Good Risk": ("confidence(Yes)", "confidence(No)")},
         "hard": {"Good Risk": "prediction(Good Risk)"}},
    ),
    "H2O": Shape(
        {"PassengerId": 800 + np.arange(200), "Sex": words(GUESS, "male", "female"),
         "Cabin": np.where(SEEN == 0, named("C", np.arange(200)), None),
         "predict": (P > 0.37) + 0, "p0": 1 - P, "p1": P},
        {"item": "PassengerId", "models": {"predict": ("p0", "p1")},
         "hard": {"predict": "predict"}},
    ),
    "a frequency beside letters": Shape(
        {"ExAC_ALL": np.where(GUESS, P.round(5).astype(str), "."),
         "SIFT_pred": words(P > 0.5, "T", "D"), "FATHMM_pred": words(P > 0.4, "T", "D")},
        {"hard": {"SIFT": "SIFT_pred", "FATHMM": "FATHMM_pred"}},
    ),
    "how much annotators agree": Shape(
        {"clip": named("c", np.arange(200)), "agreement": P, "mean": 50 * P},
        refused="no labels, and one column of scores, so that nothing tells how good they are",
    ),
    "a preference beside its price and time": Shape(
        {"instruction": named("i ", np.arange(200)), "preference": 1 + P, "price_per_example": P,
         "time_per_example": 9 * P, "content[logprob]": -P},
        refused="no labels, and one column of scores, so that nothing tells how good they are",
    ),
    "a rank, first where the label is 1": Shape(
        {"record_id": np.arange(200), "included": np.where(SEEN == 0, 0.0 + (P < 0.5), np.nan),
         "rank": P.argsort().argsort() + 1},
        proposed=("--label included --positive 0 --score rank=rank",),
    ),
    "scores beside a key without names": Shape(
        {"c1": named("LA_E_", np.arange(200)), "c2": words(CAT, "A01", "A02", "-"),
         "c3": words(P > 0.5, "spoof", "bonafide"), "c4": 4 * P - 2 + 0.1 * SEEN},
        proposed=("--label c3 --positive bonafide --score c4=c4",),
    ),
    "whole numbers without names": Shape(
        {"c1": np.arange(200) // 8, "c2": np.arange(200) % 8, "c3": GUESS + 0,
         "c4": GUESS ^ (P < 0.1)},
        proposed=("--label c3 --hard c4=c4", "--label c4 --hard c3=c3"),
    ),
    "predictions by two configurations, each of every item": Shape(
        {".pred_yes": P, ".pred_no": 1 - P, ".row": np.arange(200) % 100,
         "Class": words(np.tile(GUESS[:100], 2), "no", "yes"),
         ".config": words(np.arange(200) // 100, "Model1", "Model2"),
         "fold": np.arange(200) % 100 // 20},
        proposed=("--cluster .row --by .config",),
    ),
    "two languages of every item, with labels of their own": Shape(
        {"pair_id": np.arange(200) // 2, "spoken": words(np.arange(200) % 2, "en", "bn"),
         "gold": words(GUESS, "no", "yes"), "net": words(GUESS ^ (P < 0.2), "no", "yes")},
        {"label": "gold", "hard": {"net": "net"}},
    ),
    "tasks in the names of items": Shape(
        {"ID": [f"ID_{k // 4}_{('any', 'dural', 'fungal', 'plain')[k % 4]}" for k in range(200)],
         "gold": GUESS + 0, "net_prob": P},
        {"label": "gold", "item": "ID", "models": {"net": ("net_prob",)}},
    ),
    "probabilities under names, as texts, beside a truth value": Shape(
        {"predicted_label": GUESS + 0, "predicted_label_probs": [
            str([{"label": "1", "prob": f"{p:.3f}"}, {"label": "0", "prob": f"{1 - p:.3f}"}])
            for p in np.where(GUESS, 0.5, 0) + P / 2],
         "label": np.where(SEEN < 3, GUESS ^ (P < 0.2), None), "is_mobile": P > 0.5},
        {"label": "label", "hard": {"predicted_label": "predicted_label"},
         "models": {"predicted_label": ("predicted_label_probs[1]", "predicted_label_probs[0]")}},
    ),
    "a list of one object, and objects within it": Shape(
        {"truth": GUESS + 0, "results": [
            json.dumps([{"id": k, "scores": {"rude": p, "length": k}}])
            for k, p in enumerate(P)]},
        {"label": "truth", "scores": {"results[scores.rude]": "results[scores.rude]"}},
    ),
    "whether each answer passed, its score and itself": Shape(
        {f"[{m}] Classify: {{x}}": [
            f"[PASS] (1.00) {a}" if a == b else f"[FAIL] (0.00) Expected {b}\n---\n{a}."
            for a, b in zip(animals(k), animals(3, 1.0), strict=True)]
            for k, m in enumerate(("gpt", "llama"))} | {"expected": animals(3, 1.0)},
        {"label": "expected", "hard": {m: f"{m}[answer]" for m in (
            "[gpt] Classify: {x}", "[llama] Classify: {x}")}},
    ),
    "decimal odds, and a score that is known afterwards": Shape(
        {"truth": np.where(SEEN < 3, words(CAT, "H", "D", "A"), None),
         "HALF": np.where(SEEN < 3, words(CAT * GUESS, "H", "D", "A"), None),
         **{f"BET{c}": np.round(1 / (1.05 * ODDS[:, k]), 4) for k, c in enumerate("HDA")},
         "BET>2": 1.5 + P},
        {"label": "truth", "models": {"BET": ("BETH", "BETD", "BETA")}},
    ),
    "what a filter says, that its numbers are cut at": Shape(
        {"log": [f"judge={a} class={b} prob={p:.4f}" for a, b, p in zip(
            words(GUESS, "ham", "spam"), words(P > 0.4, "ham", "spam"), P, strict=True)]},
        proposed=(
            "--label 'log[judge]' --model 'log=log[prob]' --hard 'log=log[class]'",
            "--label 'log[class]' --model 'log=log[prob]' --hard 'log[judge]=log[judge]'",
            "--model 'log=log[prob]' --hard 'log[judge]=log[judge]' --hard 'log=log[class]'",
        ),
    ),
    "labels on other rows than the predictions": Shape(
        {"case_id": np.repeat(np.arange(50), 4), "reader_score": np.where(SEEN_4 > 0, P, None),
         "path_result": np.where(SEEN_4 == 0, GUESS + 0, None)},
        refused="'path_result' is known in 50 rows.* by column 'case_id'.*transform",
    ),
    "ratings by a judge": Shape(
        {"question_id": np.arange(200), "model": words(CAT, "a", "b", "c"), "score": 1 + SEEN},
        refused="'score': it has no labels, and one column of scores, .* --labels FILE$",
    ),
    "a summary of results": Shape(
        {"": ["cat", "dog", "bird"], "precision": P[:3], "recall": P[3:6], "f1-score": P[6:9],
         "support": [20, 30, 40]},
        refused="'precision', 'recall', 'f1-score', 'support' are measures of how good",
    ),
    "predictions alone, of files in folders": Shape(
        {"": np.arange(200), "Filename": [f"{a}/{k:03}.png" for k, a in enumerate(animals(1))],
         "Predictions": animals(2)},
        refused="'Predictions' holds predictions.* --labels FILE; if the folders in 'Filename'",
    ),
    "the status of a form, and known labels": Shape(
        {"record_id": np.arange(200), "reference_standard_complete": 2 * GUESS,
         "gold": np.where(SEEN == 0, GUESS + 0, None), "net_prob": P},
        {"label": "gold", "item": "record_id", "models": {"net": ("net_prob",)}},
    ),
    "is it right, in the codes of the classes": Shape(
        {"gold": CAT, "acc": GUESS + 0, "acc_norm": (P > 0.4) + 0, "exact_match": (P > 0.3) + 0},
        refused="^(?!.*acc=acc)no prediction columns",
    ),
    "what is known afterwards": Shape(
        {"outcome": words(P > 0.5, "Good", "Poor"), "gos": np.where(P > 0.5, 1, 4) + CAT % 2,
         "marker": P + 0.2 * SEEN, "age": 20 + 5 * SEEN},
        refused="'gos' separates the classes of 'outcome' perfectly.* say --label outcome "
        "--positive Poor --score marker=marker$",
    ),
    "labels of several tasks": Shape(
        {"prompt": named("text ", np.arange(200)),
         **{tag: np.where(np.random.default_rng(k).random(200) < 0.5,
            np.random.default_rng(k + 9).random(200) < 0.2, np.nan)
            for k, tag in enumerate(("S", "V", "HR", "SH"))}},
        refused="'S', 'V', 'HR', 'SH' hold yes and no, and do not agree .* say --hard S=S --hard",
    ),
    "counts of two things": Shape(
        {"home": RNG.poisson(1.5, 200), "away": RNG.poisson(1.2, 200)},
        refused="'home', 'away' hold numbers, and nothing says whether classifiers gave them",
    ),
    "several accepted answers in a cell": Shape(
        {"mood_pred": words(CAT, "neg", "neu", "pos"),
         "mood_gold": np.where(SEEN == 0, words(CAT + 3 * (P > 0.8), "neg", "neu", "pos", "neg",
         "neu", "neg\nneu"), None)},
        refused="'mood_gold' holds several labels .* add --no-label 'neg neu'$",
    ),
    "is it right, beside two models": Shape(
        {"gpt": animals(1), "llama": animals(2), "gold": animals(3, 1.0), "is_correct": GUESS},
        {"label": "gold", "hard": {"gpt": "gpt", "llama": "llama"}},
    ),
}  # fmt: skip


LATE = np.random.default_rng(11)
YES, FEW = LATE.random(400) < 0.4, np.arange(400) % 10 < 4
SHARE = np.clip(
    0.4 + 0.25 * (2 * YES - 1) * LATE.random(400) * 2 + 0.1 * LATE.random(400), 0.01, 0.99
)
VOTES = np.stack([YES ^ (LATE.random(400) < 0.15) for _ in range(3)]) + 0
GRADE = LATE.integers(0, 4, 400)
KINDS = LATE.integers(0, 3, 400)


def of_few(values: np.ndarray) -> np.ndarray:
    return np.where(FEW, values, None)


def about(codes: np.ndarray, most: int, right: float) -> np.ndarray:
    return np.where(LATE.random(400) < right, codes, LATE.integers(0, most, 400))


FIRST, SECOND = about(GRADE, 4, 0.8), about(GRADE, 4, 0.8)
AGREED = np.where(FIRST == SECOND, FIRST, GRADE)
AUTO = words(
    np.where(LATE.random(400) < 0.06, 3, about(KINDS, 3, 0.8)), "owl", "tit", "jay", "NoID"
)
GOOD, FAIR, GRADED = about(YES, 2, 0.8) + 0, about(YES, 2, 0.7) + 0, about(GRADE, 4, 0.7)
NOISE, FLAGS = LATE.integers(0, 2, 400), LATE.random((4, 400)) < 0.5
HEAD = np.c_[LATE.dirichlet(np.ones(3), 400) * 0.9, np.full(400, 0.1)]

SHAPES |= {
    "a full prediction called Label, beside a truth of few rows": Shape(
        {"Id": np.arange(400), "buys": of_few(words(YES, "CH", "MM")),
         "Price CH": 1.7 + LATE.random(400), "Price MM": 1.8 + LATE.random(400),
         "Label": words(SHARE > 0.4, "CH", "MM"), "Score": 0.5 + abs(SHARE - 0.4) / 2},
        {"label": "buys", "hard": {"Label": "Label"}, "confidence": {"Label": "Score"}},
    ),
    "a truth that the headers name, beside another called actual": Shape(
        {"visit_id": np.arange(400), "back": of_few(words(YES, "False", "True")),
         "insured": words(LATE.integers(0, 2, 400), "No", "Yes"),
         "back_True_PREDICTION": SHARE, "back_False_PREDICTION": 1 - SHARE,
         "WHY_1_ACTUAL_VALUE": LATE.integers(0, 6, 400)},
        {"label": "back", "models": {"back": ("back_True_PREDICTION", "back_False_PREDICTION")}},
    ),
    "what most people said of few rows": Shape(
        {"Index": np.arange(400), **{f"human{k}": of_few(v) for k, v in enumerate(VOTES)},
         "human_all": of_few((VOTES.sum(0) > 1) + 0), "gpt_cf": GOOD,
         "llama_cf": FAIR},
        {"label": "human_all", "hard": {"gpt_cf": "gpt_cf", "llama_cf": "llama_cf"}},
    ),
    "a grade that two raters agreed on, one of whom graded all": Shape(
        {"essay_id": np.arange(400), "rater1_grades": FIRST, "rater2_grades": of_few(SECOND),
         "final_score": of_few(AGREED)},
        {"label": "final_score", "hard": {"rater1_grades": "rater1_grades"}},
    ),
    "what agrees predicts, whatever its name": Shape(
        {"IN FILE": named("f", np.arange(400)), "AUTO ID*": AUTO,
         "ALTERNATE 1": words(LATE.integers(0, 3, 400), "owl", "tit", "jay"),
         "MANUAL ID": of_few(words(KINDS, "owl", "tit", "jay"))},
        {"label": "MANUAL ID", "hard": {"AUTO ID*": "AUTO ID*"}},
    ),
    "groups in other words than the labels, beside probabilities": Shape(
        {"row ID": named("Row", np.arange(400)), "Churn": of_few(words(YES, "No", "Yes")),
         "Old": LATE.integers(0, 2, 400), "Partner": words(LATE.integers(0, 2, 400), "No", "Yes"),
         "P (Churn=No)": 1 - SHARE, "P (Churn=Yes)": SHARE},
        {"label": "Churn", "models": {"Churn": ("P (Churn=No)", "P (Churn=Yes)")}, "hard": {}},
    ),
    "probabilities of a class that no label has": Shape(
        {"object": np.arange(400), "target": of_few(np.array([6, 15, 42])[KINDS]),
         **{f"class_{c}": p for c, p in zip((6, 15, 42, 99), HEAD.T, strict=True)}},
        {"label": "target", "models": {"class": ("class_6", "class_15", "class_42", "class_99")}},
    ),
    "a class that its column is called by": Shape(
        {"case": np.arange(400), "low": of_few(words(YES, "normal", "low")),
         "class_lasso": words(GOOD, "normal", "low"), "phat_logit": SHARE,
         "phat_forest": np.clip(SHARE + 0.2 * HEAD[:, 0], 0, 1)},
        {"label": "low", "positive": "low", "hard": {"lasso": "class_lasso"},
         "models": {"phat": ("phat_logit",), "phat_forest": ("phat_forest",)}},
    ),
    "metrics and settings of runs": Shape(
        {"run_id": named("r", np.arange(400)), "status": words(YES, "FAILED", "FINISHED"),
         "metrics.val_accuracy": SHARE, "metrics.val_f1": LATE.random(400),
         "params.learning_rate": LATE.random(400)},
        refused="^(?!.*--label).*'metrics.val_accuracy', 'metrics.val_f1' are measures of how good",
    ),
    "counts of what is right and wrong": Shape(
        {"study": named("s", np.arange(400) // 4), "TP": LATE.poisson(9, 400),
         "FP": LATE.poisson(3, 400), "FN": LATE.poisson(2, 400), "TN": LATE.poisson(20, 400),
         "quadas_flow": words(KINDS, "low", "high", "unclear"),
         "quadas_reference": words(LATE.integers(0, 3, 400), "low", "high", "unclear")},
        refused="^(?!.*--).*'TP', 'FP', 'FN', 'TN' are measures of how good",
    ),
}  # fmt: skip


def quickly(options: list[str]) -> list[str]:
    """The options and a quick method, on which it does not depend how columns are read."""
    scores = any(option.startswith("--score") for option in options)
    method = "labeled" if scores else "majority-vote"
    return [*options, "--method", method, "--json", "-"]


def proposals(error: Exception) -> list[str]:
    """The options that a message proposes."""
    said = re.search(r"(?:say|say which with|say so with) (--.*)$", str(error))
    assert said is not None, error
    return said[1].split(" or ")


def check(shape: Shape, source: Any, run: Callable[..., tuple[int, str, str]], file: Path) -> None:
    if shape.refused:
        with pytest.raises(fl.InputError, match=shape.refused):
            fl.read_predictions(source)
        return
    if shape.proposed:
        with pytest.raises(fl.InputError) as error:
            fl.read_predictions(source)
        assert proposals(error.value) == list(shape.proposed)
        for options in shape.proposed:
            words = shlex.split(options)
            asked = quickly(words) if "--votes" in words else [*words, "--json", "-"]
            code, _, err = run("estimate", file, *asked)
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
    code, _, err = run(*quickly(shlex.split(command)[1:]))
    assert code == 0, err


@pytest.mark.few(24)
@pytest.mark.parametrize("name", SHAPES)
def test_what_columns_are(name: str, cli: Any, tmp_path: Path) -> None:
    shape, table = SHAPES[name], pd.DataFrame(SHAPES[name].table)
    file = tmp_path / "file.csv"
    table.to_csv(file, index=False)
    check(shape, table, cli, file)


@pytest.mark.few(4)
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
                asked = quickly(shlex.split(options))
                code, _, err = cli("estimate", file, *asked, "--metrics", "accuracy")
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
    room = Path(recognise_module.__file__).parent
    source = "".join(path.read_text("utf-8") for path in room.glob("*.py"))
    facts = {fact for weights in table.values.values() for fact in weights}
    assert [fact for fact in facts if f'"{fact}"' not in source] == []
    plain = [word.lstrip("^$=") for word in table.roles if not word.startswith("@")]
    assert [word for word in plain if word != "_".join(name_words(word))] == []


ANIMALS = ["cat", "dog"]


@pytest.mark.parametrize(("found", "expected"), [
    (profiles.tokens("rf P(not toxic)"), ["rf", "P", "not", "toxic"]),
    (profiles.class_of_name("rf_not_toxic", ["not toxic", "toxic"]), ("not toxic", "rf")),
    (profiles.class_of_name("cat_prob", ANIMALS), ("cat", "prob")),
    (profiles.class_of_name("rf", ANIMALS), None),
    (profiles.by_names(["rf_dog", "rf_cat"], ANIMALS), {"dog": "rf_dog", "cat": "rf_cat"}),
    (profiles.by_names(["x_choiceA_p", "x_choiceB_p"], ["A", "B"]),
     {"A": "x_choiceA_p", "B": "x_choiceB_p"}),
    (profiles.differences(["net_cat", "net_cow"]), ("cat", "cow")),
    (profiles.differences(["P(a)", "P(b)"]), ("a", "b")),
    (profiles.differences(["x"]), None),
    (profiles.letters_apart(["gpt_choiceA_p", "gpt_choiceB_p"]), ("A", "B")),
    (profiles.letters_apart(["p0", "p1"]), ("0", "1")),
    (name_words("HumanLabel_2"), ["human", "label", "2"]),
    (name_words("y_true"), ["y", "true"]),
    ([profiles.truth_in_name(n) for n in ("human_label", "outcome", "gpt4_label")], [3, 2, 0]),
    ([profiles.without_role(n) for n in ("gpt4_verdict", "y_pred_rf", "label_a",
      "prediction(Good Risk)")], ["gpt4", "rf", "a", "Good Risk"]),
    ([profiles.names_items(n) for n in ("item_id", "UUID", "sampleId", "id2", "worker_id")],
     [True, True, True, False, False]),
    (places(["probs[0]", "probs[1]"]), "probs"),
    (places(["c2", "c3"]), "c2 to c3"),
    (places(["probs[cat]", "probs[dog]"]), None),
])  # fmt: skip
def test_how_names_are_taken_apart(found: Any, expected: Any) -> None:
    assert found == expected


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
    read = recognise(open_source(table, None), ColumnOptions())
    assert read.evidence == tuple(found.values())
    assert found["expected_label"].score > 10 > found["category"].score
    assert "its values recur" in found["expected_label"].reason
    diagnosis = fl.diagnose(table)
    assert [one["column"] for one in diagnosis.to_dict()["evidence"]] == list(table)
    text = diagnosis.summary(80)
    assert max(map(len, text.splitlines())) <= 80
    assert "label +18" in text


def test_words_of_one_column_alone_may_be_no_answers() -> None:
    culture = words(np.where(ROW_400 % 37 == 0, 2, YES), "Negative", "Positive", "Contaminated")
    swab = words(np.where(ROW_400 % 29 == 0, 2, GOOD), "Negative", "Positive", "Invalid")
    table = {"id": ROW_400, "culture": of_few(culture), "swab": swab,
             "urine": words(FAIR, "Negative", "Positive")}  # fmt: skip
    found = fl.read_predictions(pd.DataFrame(table))
    said = "--no-label Contaminated --no-label Invalid"
    assert any(line.startswith("in one column alone: ") and said in line for line in found.reading)
    told = fl.read_predictions(pd.DataFrame(table), no_label=["Contaminated", "Invalid"])
    assert (told.classes, told.models) == (("Negative", "Positive"), ("swab", "urine"))
    assert not any("in one column alone" in line for line in told.reading)


ROW_400 = np.arange(400)


def test_what_is_no_prediction_by_its_values_is_said() -> None:
    for name, said in (
        ("what most people said of few rows", "'human0', 'human1', 'human2' (known only where"),
        ("what agrees predicts, whatever its name", "'ALTERNATE 1' (values of the labels, which"),
    ):
        reading = fl.read_predictions(pd.DataFrame(SHAPES[name].table)).reading
        assert any(f"not used: {said}" in line for line in reading), reading


def test_a_recognised_classifier_at_chance_is_an_assumption() -> None:
    """Whoever names the columns has said what they are."""
    table = pd.DataFrame({"verdict": words(YES, "bad", "good"), "net_pred": words(
        NOISE, "bad", "good"), "big_pred": words(GOOD, "bad", "good"),
    })  # fmt: skip
    by_name = {"label": "verdict", "hard": {"net": "net_pred", "big": "big_pred"}}
    for options, expected in (({}, "assumption"), (by_name, "ok")):
        estimates = fl.estimate(fl.read_predictions(table, **options), metrics=["accuracy"])
        statuses = {row.model: str(row.status) for row in estimates.rows}
        assert statuses == {"net": expected, "big": "ok"}
        warned = any("net: taken for classifiers" in one for one in estimates.warnings)
        assert warned == (expected != "ok")


def test_labels_that_no_classifier_predicts_are_not_proposed(tmp_path: Path) -> None:
    file, truth = tmp_path / "oof.csv", tmp_path / "train.csv"
    scores = {"frozen": SHARE, "tuned": np.clip(SHARE + 0.2 * HEAD[:, 0], 0, 1)}
    pd.DataFrame({"id": ROW_400, **scores}).to_csv(file, index=False)
    flags = dict(zip(("Sleep", "VIP", "Cabin", "Deck"), FLAGS, strict=True))
    pd.DataFrame({"id": ROW_400, **flags, "Moved": YES}).to_csv(truth, index=False)
    with pytest.raises(fl.InputError, match=r"say which it is with --label Moved$"):
        fl.read_predictions(file, labels=[str(truth)])


def test_a_consensus_among_labels_of_several_people_is_taken(tmp_path: Path) -> None:
    file, graded = tmp_path / "models.csv", tmp_path / "essays.csv"
    pd.DataFrame({"id": ROW_400, "net_pred": GRADED}).to_csv(file, index=False)
    people = {"rater1": of_few(FIRST), "rater2": of_few(SECOND), "resolved": of_few(AGREED)}
    pd.DataFrame({"id": ROW_400, **people}).to_csv(graded, index=False)
    found = fl.read_predictions(file, labels=graded)
    assert found.labels[found.labeled].tolist() == AGREED[FEW].tolist()
    assert any("'resolved' is what most of the others say" in note for note in found.notes)
