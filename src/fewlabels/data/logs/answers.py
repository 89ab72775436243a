"""Answers beside what is right: lm-evaluation-harness, tables of `mlflow.evaluate`.

Log-likelihoods of choices become probabilities by a softmax; answers in few words are classes; of
others metrics are the judges.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from fewlabels.checks.class_words import folded
from fewlabels.data.logs.facts import are_classes, at
from fewlabels.data.logs.record import CODE, MODEL, PERSON, PROBABILITY, Log, Verdict
from fewlabels.data.table import number_of
from fewlabels.errors import InputError, listed, quoted
from fewlabels.kernels.simplex import softmax

_LAYOUT = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter"}


class Answer(NamedTuple):
    """An answer in words (None: a long one) beside what is right, and what metrics say of it."""

    item: str
    criterion: str
    model: str
    word: str | None
    target: str | None
    metrics: Mapping[str, Any]


def judged(answers: Iterable[Answer], *, beside: bool, log: Log) -> Iterator[Verdict]:
    """Answers as classes where what is right is one; else metrics, each answer an item."""
    answers = list(answers)
    targets = {one.target for one in answers}
    alike = {folded(target): target for target in targets if target is not None}
    classes = are_classes([one.word for one in answers], [one.target for one in answers])
    odd = 0
    for item, criterion, model, word, target, metrics in answers:
        if classes:
            same = alike.get(folded((word or "").strip(" .!\"'`*")))
            odd += word not in targets and same is not None
            yield Verdict(item, criterion, PERSON, "target", target)
            yield Verdict(item, criterion, MODEL, model, word if same is None else same)
        for metric, value in metrics.items():
            if beside:
                yield Verdict(item, metric, MODEL, metric, value)
            elif not classes:
                yield Verdict(f"{item} {model}", criterion, CODE, metric, value)
    if odd:
        log.warnings.append(
            f"{odd:,} of {len(answers):,} answers are a class but for case and punctuation, and "
            "count as it"
        )


def samples(
    documents: Iterable[Mapping[str, Any]], model: str, task: str, log: Log
) -> Iterator[Verdict]:
    """What one model answers in one task, of `samples_<task>_<date>.jsonl`."""
    log.about.append(f"lm-evaluation-harness: model {model}, task {task}")
    passes: Counter[tuple[str, Any]] = Counter()
    worded: list[Answer] = []
    for row in documents:
        item, name = str(log.need(row, "doc_id", "a sample")), row.get("filter")
        # Before a row said which filter it is of, each filter had all documents again.
        passes[item, name] += 1
        again = passes[item, name]
        answers = log.need(row, "filtered_resps", "a sample", list)
        criterion = task if name in (None, "none") else f"{task}, {name}"
        criterion += f", filter {again}" if again > 1 else ""
        asked = at(row, "arguments.*.0.*.0|arguments.0.0")
        log.show(item, input=asked, reference=row.get("target"))
        likelihoods = [_likelihood(answer) for answer in answers]
        place = number_of(row.get("target"))
        if len(answers) > 1 and None not in likelihoods and 0 <= place < len(answers):
            yield Verdict(item, criterion, PERSON, "target", int(place))
            for k, p in enumerate(
                softmax(np.array(likelihoods, dtype=np.float64), axis=0).tolist()
            ):
                yield Verdict(item, criterion, MODEL, model, f"{PROBABILITY}{k}", p)
            continue
        # Before there was a field of their names, numbers under keys of no layout.
        names = row.get("metrics") or [
            key for key in row if key not in _LAYOUT and not key.endswith("_hash")
        ]
        values = {metric: row.get(metric) for metric in names}
        metrics = {m: v for m, v in values.items() if isinstance(v, int | float) and v == v}
        word = _word(answers[0]) if len(answers) == 1 else None
        worded.append(Answer(item, criterion, model, word, _word(row.get("target")), metrics))
    yield from judged(worded, beside=False, log=log)


def table(document: Mapping[str, Any], tool: Mapping[str, Any], log: Log) -> Iterator[Verdict]:
    """`eval_results_table.json` of MLflow: columns `metric/v1/score`, and perhaps what is right."""
    log.about.append("MLflow table of evaluation results")
    columns = log.need(document, "columns", "the table", list)
    metrics = {
        name: name.rpartition("/")[0].removesuffix("/v1")
        for name in map(str, columns)
        if name.endswith(("/score", "/value"))
    }
    right, answer = (
        next((name for name in tool[what].split("|") if name in columns), None)
        for what in ("right", "answer")
    )
    if not metrics and (right is None or answer is None):
        raise InputError(
            f"is an MLflow table whose columns are {listed(map(quoted, columns), 6)}, none of them "
            "a score: evaluate with a metric that judges each row, or save the traces"
        )
    answers = []
    for i, cells in enumerate(log.need(document, "data", "the table", list), start=1):
        row, item = dict(zip(columns, cells, strict=False)), f"row {i}"
        log.show(item, **{name: row.get(name) for name in columns})
        said = {metric: row.get(name) for name, metric in metrics.items()}
        word, target = _word(row.get(answer)), _word(row.get(right))
        answers.append(Answer(item, answer or "answer", answer or "answer", word, target, said))
    yield from judged(answers, beside=True, log=log)


def _word(value: Any) -> str | None:
    """A short text, or a whole number as one; None of anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    text = str(value).strip()
    return text if text and len(text) <= 64 else None


def _likelihood(answer: Any) -> float | None:
    """The log-likelihood of a choice, of [log-likelihood, whether it is the greedy answer]."""
    if not isinstance(answer, list) or len(answer) != 2:
        return None
    number = number_of(answer[0])
    greedy = str(answer[1]) in ("True", "False")
    return number if greedy and not math.isnan(number) else None
