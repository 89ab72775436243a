"""Samples of lm-evaluation-harness: `samples_<task>_<date>.jsonl`, a file per model and task.

The answers to a multiple choice are log-likelihoods, whose softmax are probabilities of the
choices; the target is the label. Answers in words of which there are few (A to D) are classes, and
their targets labels. Other answers are judged by code: a score of 1 or 0 of each metric. One
document may have a row per `filter`, and several models meet by `doc_hash`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fewlabels.data.logs.record import (
    CODE,
    MODEL,
    PERSON,
    PROBABILITY,
    Log,
    Verdict,
    number_of,
)


def read(
    documents: Iterable[Mapping[str, Any]], model: str, task: str, log: Log
) -> Iterator[Verdict]:
    """What one model answers in one task."""
    met: Counter[tuple[str, Any]] = Counter()
    passes: Counter[tuple[Any, Any]] = Counter()
    worded: list[tuple[str, str, str | None, str | None, dict[str, float]]] = []
    for row in documents:
        item = str(row.get("doc_hash") or log.need(row, "doc_id", "a sample"))[:16]
        # Before a row said which filter it is of, each filter had all documents again.
        name = row.get("filter")
        passes[row.get("doc_id"), name] += 1
        again = passes[row.get("doc_id"), name] if row.get("doc_id") is not None else 1
        # A data set may hold a document twice.
        met[item, (name, again)] += 1
        if met[item, (name, again)] > 1:
            item = f"{item} ({met[item, (name, again)]})"
        answers = log.need(row, "filtered_resps", "a sample", list)
        criterion = task if name in (None, "none") else f"{task}, {name}"
        criterion += f", filter {again}" if again > 1 else ""
        log.show(item, input=_first_argument(row), reference=row.get("target"))
        likelihoods = [_likelihood(answer) for answer in answers]
        place = number_of(row.get("target"))
        if len(answers) > 1 and None not in likelihoods and 0 <= place < len(answers):
            yield Verdict(item, criterion, PERSON, "target", int(place))
            yield from _choices(item, criterion, model, [x for x in likelihoods if x is not None])
            continue
        values = {metric: row.get(metric) for metric in row.get("metrics") or _metrics(row)}
        numbers = {
            metric: value
            for metric, value in values.items()
            if isinstance(value, bool | int | float) and not math.isnan(value)
        }
        word = _word(answers[0]) if len(answers) == 1 else None
        worded.append((item, criterion, word, _word(row.get("target")), numbers))
    targets = {target for _, _, _, target, _ in worded}
    right = sum(word in targets for _, _, word, _, _ in worded)
    classes = None not in targets and 1 < len(targets) <= min(_MOST_CLASSES, len(worded) / 2)
    for item, criterion, word, target, numbers in worded:
        if classes and right >= len(worded) / 2:
            yield Verdict(item, criterion, PERSON, "target", target)
            yield Verdict(item, criterion, MODEL, model, word)
            continue
        for metric, value in numbers.items():
            # Each model's answer is an item; metrics are judges of it.
            yield Verdict(f"{item} {model}", criterion, CODE, metric, value)


_MOST_CLASSES = 20
"""More targets than these are answers in free words, as of sums."""


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


def _choices(item: str, criterion: str, model: str, likelihoods: list[float]) -> Iterator[Verdict]:
    """Softmax of the log-likelihoods: P(choice), as scores of the choices' numbers."""
    largest = max(likelihoods)
    mass = [math.exp(x - largest) for x in likelihoods]
    total = sum(mass)
    for k, m in enumerate(mass):
        yield Verdict(item, criterion, MODEL, model, f"{PROBABILITY}{k}", m / total)


def _metrics(row: Mapping[str, Any]) -> list[str]:
    """Before there was a field of their names: numbers under keys that the layout does not have."""
    known = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter"}
    return [
        key
        for key, value in row.items()
        if key not in known and not key.endswith("_hash") and isinstance(value, int | float)
    ]


def _first_argument(row: Mapping[str, Any]) -> Any:
    arguments = row.get("arguments")
    if isinstance(arguments, Mapping):
        arguments = [list(first.values()) for first in arguments.values()]
    try:
        return arguments[0][0] if arguments else None
    except (KeyError, IndexError, TypeError):
        return None
