"""Files of judges: language models, people, and both; evaluation logs; votes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from ordinary_worlds import OrdinaryFile, Reading, World, family, save


def _prompts(n: int) -> list[str]:
    """Free text with what breaks careless readers: commas, quotes and line breaks."""
    return [f'Write "hello, {i}",\nthen stop; is that clear?' for i in range(n)]


def _answers(n: int) -> list[str]:
    return [f"Hello, {i}.\n\n- first, a list\n- then 'quotes'" for i in range(n)]


def _lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def verdicts(folder: Path) -> Reading:
    world = World(101, ("fail", "pass"), shares=(0.4, 0.6))
    gpt4, claude = world.predict(0.85), world.predict(0.78)
    path = save(
        folder / "judged.csv",
        {
            "id": range(world.n),
            "prompt": _prompts(world.n),
            "answer": _answers(world.n),
            "gpt4_verdict": world.text(gpt4),
            "claude_verdict": world.text(claude),
            "human_label": world.labels(),
        },
    )
    return world.read(
        path,
        world.hard(("gpt4", "gpt4_verdict"), gpt4),
        world.hard(("claude", "claude_verdict"), claude),
    )


def verdicts_in_capitals(folder: Path) -> Reading:
    world = World(102, ("fail", "pass"), n=300, labeled=40)
    verdict, grades = world.predict(0.8), world.scores(1.2, decimals=1) + 5
    path = save(
        folder / "judge_run_2.csv",
        {
            "sample": [f"s-{i:04d}" for i in range(world.n)],
            "judge_verdict": [text.upper() for text in world.text(verdict)],
            "judge_score": grades.round(1).tolist(),
            "human_label": world.labels(),
        },
    )
    return world.read(
        path,
        world.hard(("judge", "judge_verdict"), verdict),
        world.score(("judge", "judge_score"), grades),
    )


def verdicts_true_false(folder: Path) -> Reading:
    world = World(103, ("False", "True"), n=250, labeled=30)
    gpt4o, llama = world.predict(0.9), world.predict(0.7)
    path = save(
        folder / "correctness.csv",
        {
            "question_id": range(1000, 1000 + world.n),
            "gpt4o_correct": world.text(gpt4o),
            "llama3_correct": world.text(llama),
            "gold": world.labels(),
        },
    )
    return world.read(
        path,
        world.hard(("gpt4o", "gpt4o_correct"), gpt4o),
        world.hard(("llama3", "llama3_correct"), llama),
    )


def grades(folder: Path) -> Reading:
    world = World(104, ("bad", "good"), n=300, labeled=45)
    gpt4 = np.clip(np.round(world.scores(1.5) + 2.3), 1, 5).astype(int)
    llama = np.clip(np.round(world.scores(0.9) + 2.6), 1, 5).astype(int)
    path = save(
        folder / "grades.csv",
        {
            "conversation": [f"c{i}" for i in range(world.n)],
            "gpt4_grade": gpt4.tolist(),
            "llama_grade": llama.tolist(),
            "human_label": world.labels(),
        },
    )
    return world.read(
        path,
        world.score(("gpt4", "gpt4_grade"), gpt4),
        world.score(("llama", "llama_grade"), llama),
    )


def nested_lines(folder: Path) -> Reading:
    world = World(105, ("fail", "pass"), n=300, labeled=60)
    gpt4, claude, score = world.predict(0.86), world.predict(0.75), world.scores(1.4)
    rows = [
        {
            "id": f"ex-{i}",
            "input": {"prompt": prompt, "meta": {"tokens": 10 + i % 7}},
            "judges": {
                "gpt4": {"verdict": world.classes[gpt4[i]], "score": float(score[i])},
                "claude": {"verdict": world.classes[claude[i]]},
            },
            "human": {"label": label},
        }
        for i, (prompt, label) in enumerate(zip(_prompts(world.n), world.labels(None), strict=True))
    ]
    return world.read(
        _lines(folder / "judges.jsonl", rows),
        world.hard(("gpt4", "gpt4.verdict", "judges.gpt4", "judges.gpt4.verdict"), gpt4),
        world.hard(("claude", "claude.verdict", "judges.claude", "judges.claude.verdict"), claude),
        world.score(("gpt4", "gpt4.score", "judges.gpt4", "judges.gpt4.score"), score),
    )


def harness_samples(folder: Path) -> Reading:
    world = World(106, ("A", "B", "C", "D"), n=200, labeled=200)
    answer = world.predict(0.62)
    rows = [
        {
            "doc_id": i,
            "doc": {"question": f"Which, of these, is {i}?", "choices": ["w", "x", "y", "z"]},
            "target": world.classes[world.truth[i]],
            "arguments": [[f"Question {i}\nAnswer:", {"until": ["\n"]}]],
            "resps": [[f" {world.classes[answer[i]]}"]],
            "filtered_resps": [world.classes[answer[i]]],
            "doc_hash": f"{i * 7919:064x}",
            "acc": float(answer[i] == world.truth[i]),
        }
        for i in range(world.n)
    ]
    path = _lines(folder / "samples_mmlu_2026-03-01T10-00-00.jsonl", rows)
    return world.read(path, world.hard((), answer))


def inspect_samples(folder: Path) -> Reading:
    world = World(107, ("A", "B", "C", "D"), n=200, labeled=200)
    answer = world.predict(0.7)
    rows = [
        {
            "id": i + 1,
            "epoch": 1,
            "input": f"Which is it, {i}?",
            "target": world.classes[world.truth[i]],
            "output": {
                "model": "openai/gpt-4o",
                "completion": f"ANSWER: {world.classes[answer[i]]}",
            },
            "scores": {
                "choice": {
                    "value": "C" if answer[i] == world.truth[i] else "I",
                    "answer": world.classes[answer[i]],
                    "explanation": f"ANSWER: {world.classes[answer[i]]}",
                }
            },
        }
        for i in range(world.n)
    ]
    return world.read(_lines(folder / "inspect_samples.jsonl", rows), world.hard((), answer))


def pipeline_output(folder: Path) -> Reading:
    world = World(108, ("NEGATIVE", "POSITIVE"), n=350, labeled=50)
    columns: dict[str, Any] = {"text": _answers(world.n)}
    classifiers = []
    for model, noise in (("distilbert", 1.0), ("roberta", 1.4)):
        p = world.probabilities(noise)
        columns[f"{model}_label"] = world.text(p.argmax(axis=1))
        columns[f"{model}_score"] = p.max(axis=1).tolist()
        # The score is the confidence in the predicted label: no ranking by itself.
        names = (model, f"{model}_label")
        classifiers.append(world.probable(names, p, "hard", "probabilities"))
    columns["gold"] = world.labels()
    return world.read(save(folder / "sentiment.csv", columns), *classifiers)


def none_is_a_class(folder: Path) -> Reading:
    world = World(109, ("hate", "none", "offensive"), n=500, labeled=70, shares=(0.2, 0.5, 0.3))
    mistral, p = world.predict(0.8), world.probabilities(1.0)
    columns = {
        "tweet_id": range(900000, 900000 + world.n),
        "label": world.labels(),
        "mistral": world.text(mistral),
        **family("bert_", world.classes, p, (0, 2, 1)),
    }
    return world.read(
        save(folder / "hate_speech.csv", columns),
        world.hard(("mistral",), mistral),
        world.probable(("bert",), p),
    )


def two_annotators(folder: Path) -> Reading:
    world = World(110, ("no", "yes"), n=300, labeled=60)
    model, second = world.predict(0.8), world.predict(0.9)
    half = world.rng.random(world.n) < 0.4
    path = save(
        folder / "two_annotators.csv",
        {
            "doc": range(world.n),
            "model_prediction": world.text(model),
            "annotator_A": world.labels(),
            "annotator_B": [t if h else "" for t, h in zip(world.text(second), half, strict=True)],
        },
    )
    return world.read(path)


def _votes(folder: Path, seed: int, header: tuple[str, ...], *, gold: bool) -> Reading:
    world = World(seed, ("no", "yes"), n=200, labeled=60)
    rows, workers = [], []
    for w in range(6):
        vote, there = world.predict(0.7 + 0.04 * w), world.rng.random(world.n) < 0.7
        there |= np.arange(world.n) % 6 == w  # else an item may not be in the file
        rows += [(i, f"A{w}QX7", world.classes[vote[i]]) for i in np.flatnonzero(there)]
        judged = there & world.known
        accuracy = float(np.mean(vote[judged] == world.truth[judged]))
        hard = world.hard((f"A{w}QX7",), vote)
        workers.append(hard if not gold else type(hard)(hard.names, hard.kinds, accuracy))
    rows = [rows[k] for k in world.rng.permutation(len(rows))]
    labels = world.labels(None) if gold else [None] * world.n
    columns: dict[str, Any] = {
        header[0]: [f"img_{i:04d}.jpg" for i, _, _ in rows],
        header[1]: [worker for _, worker, _ in rows],
        header[2]: [vote for _, _, vote in rows],
    }
    if gold:
        columns[header[3]] = [labels[i] or "" for i, _, _ in rows]
    return world.read(save(folder / "votes.csv", columns), *workers, labels=labels)


def crowd_votes(folder: Path) -> Reading:
    return _votes(folder, 111, ("task_id", "worker_id", "response"), gold=False)


def crowd_votes_with_gold(folder: Path) -> Reading:
    return _votes(folder, 112, ("item", "worker", "answer", "gold"), gold=True)


FILES = (
    OrdinaryFile(
        "judge-verdicts",
        "Two language-model judges say pass or fail; a person has graded 50 of 400 answers.",
        verdicts,
    ),
    OrdinaryFile(
        "judge-capitals",
        "A judge writes PASS or FAIL and a score; the person who checked wrote pass and fail.",
        verdicts_in_capitals,
    ),
    OrdinaryFile(
        "judge-true-false",
        "A question-answering team's table: two judges say True or False, `gold` is mostly empty.",
        verdicts_true_false,
    ),
    OrdinaryFile(
        "judge-grades",
        "A chat team's table: two judges grade 1 to 5, people said good or bad for some.",
        grades,
    ),
    OrdinaryFile(
        "judge-jsonl",
        "Judges' verdicts and a score as JSON lines of nested objects, from a script.",
        nested_lines,
    ),
    OrdinaryFile(
        "lm-evaluation-samples",
        "Logged samples of lm-evaluation-harness: target, filtered_resps, acc; all targets known.",
        harness_samples,
    ),
    OrdinaryFile(
        "inspect-samples",
        "Samples of an Inspect log as JSON lines; value C or I: is the answer right?",
        inspect_samples,
    ),
    OrdinaryFile(
        "pipeline-output",
        "Output of two Hugging Face pipelines: a label, and the confidence in it as score.",
        pipeline_output,
    ),
    OrdinaryFile(
        "none-is-a-class",
        "Hate speech, where `none` is a class; one classifier's labels, one's probabilities.",
        none_is_a_class,
    ),
    OrdinaryFile(
        "two-annotators",
        "One classifier and two half-filled columns of annotators: whose is the truth?",
        two_annotators,
        refusal=("--label annotator_A", "--label annotator_B"),
    ),
    OrdinaryFile(
        "crowd-votes",
        "Crowd votes of an annotation platform, one per row: task_id, worker_id, response.",
        crowd_votes,
        votes=True,
    ),
    OrdinaryFile(
        "crowd-votes-gold",
        "Crowd votes, one per row, with a gold answer for the control items.",
        crowd_votes_with_gold,
        votes=True,
    ),
)
