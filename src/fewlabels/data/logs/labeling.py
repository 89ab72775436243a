"""Exports of labeling tools: what people say, and what models suggested or predicted.

Argilla and doccano; and Label Studio's JSON, tasks with the annotations of people and predictions
of models. Its cancelled annotations are no labels, `completed_by` is a number or an object, and
where `origin` says that a label was a prediction before, the person saw it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fewlabels.data.logs.record import MODEL, PERSON, Log, Verdict, time_text

_COUNTED = (None, "submitted")
SUGGESTED = (
    "Argilla shows people what was suggested before they answer: agreement with the suggestions "
    "may be too high"
)


def argilla(documents: Iterable[Mapping[str, Any]], log: Log) -> Iterator[Verdict]:
    """Responses and suggestions, nested (`to_json`) or flat (`to_list(flatten=True)`, data sets).

    Only submitted responses are labels: no drafts, and nothing that was discarded.
    """
    log.about.append("Argilla export")
    suggested = stated = False
    for row in documents:
        item = str(log.need(row, "id", "a record"))
        log.once(item, "the record")
        nested = isinstance(row.get("responses"), Mapping)
        fields = row.get("fields")
        if isinstance(fields, Mapping):
            log.show(item, input=" | ".join(str(v) for v in fields.values()))
        answers = _nested_answers(row) if nested else _flat_answers(row)
        for question, user, value, status in answers:
            stated |= status is not None
            if status not in _COUNTED:
                log.left[f"responses are {'drafts' if status == 'draft' else status} and are left "
                         "out"] += 1  # fmt: skip
                continue
            if isinstance(value, list | dict):
                log.left["responses are several things at once, which are no class"] += 1
                continue
            yield Verdict(item, question, PERSON, str(user), value)
        for question, agent, value, score in _suggestions(row, nested=nested):
            suggested = True
            if not isinstance(value, list | dict):
                number = score if isinstance(score, float) else None
                yield Verdict(item, question, MODEL, str(agent or "suggestion"), value, number)
    if suggested:
        log.warnings.append(SUGGESTED)
    if not stated:
        log.warnings.append(
            "this export does not say which responses are drafts or discarded, so all count; "
            "export a data set (to_datasets) or rows (to_list(flatten=True))"
        )


_Answer = tuple[str, Any, Any, Any]


def _nested_answers(row: Mapping[str, Any]) -> Iterator[_Answer]:
    for question, answers in row["responses"].items():
        for one in answers or []:
            yield question, one.get("user_id"), one.get("value"), one.get("status")


def _flat_answers(row: Mapping[str, Any]) -> Iterator[_Answer]:
    for key in row:
        if key.endswith(".responses"):
            values = row[key] or []
            users = row.get(f"{key}.users") or [None] * len(values)
            states = row.get(f"{key}.status") or [None] * len(values)
            for user, value, status in zip(users, values, states, strict=False):
                yield key.removesuffix(".responses"), user, value, status


def _suggestions(row: Mapping[str, Any], *, nested: bool) -> Iterator[_Answer]:
    if nested:
        for question, one in (row.get("suggestions") or {}).items():
            yield question, one.get("agent"), one.get("value"), one.get("score")
        return
    for key in row:
        if key.endswith(".suggestion") and row[key] is not None:
            yield (
                key.removesuffix(".suggestion"), row.get(f"{key}.agent"), row[key],
                row.get(f"{key}.score"),
            )  # fmt: skip


def doccano(documents: Iterable[Mapping[str, Any]], author: str, log: Log) -> Iterator[Verdict]:
    """The category of each text: a file per person, or one of all."""
    log.about.append(f"doccano export of {author}")
    for number, row in enumerate(documents, start=1):
        item = str(row.get("id", number))
        log.show(item, input=row.get("text", row.get("data")))
        labels = row.get("label", row.get("labels", row.get("cats")))
        if row.get("is_confirmed") is False:
            log.left["texts are not confirmed and are left out"] += 1
            continue
        if not isinstance(labels, list):
            labels = [labels]
        if not labels or any(isinstance(label, list) for label in labels):
            log.left["texts have no category (none, or spans within them)"] += 1
            continue
        if len(labels) > 1:
            log.left["texts have several categories at once, which are no class"] += 1
            continue
        yield Verdict(item, "category", PERSON, author, labels[0])


_CHOICES = ("choices", "rating", "number", "taxonomy", "pairwise", "text")
SEEN = (
    "labels were made on top of a prediction (origin 'prediction' or 'prediction-changed'): people "
    "saw what the model said, and agreement with it is too high; label without predictions"
)


def label_studio(documents: Iterable[Mapping[str, Any]], log: Log) -> Iterator[Verdict]:
    """What people and models say of the tasks."""
    log.about.append("Label Studio export")
    seen = total = 0
    for task in documents:
        item = str(log.need(task, "id", "a task"))
        log.once(item, "the task")
        data = task.get("data")
        if isinstance(data, Mapping):
            shown = [str(v) for v in data.values() if isinstance(v, str | int | float)]
            log.show(item, input=" | ".join(shown))
        annotations = task.get("annotations", task.get("completions"))
        if annotations is None:
            annotations = log.need(task, "annotations", "a task", list)
        for annotation in annotations:
            if annotation.get("was_cancelled") or annotation.get("skipped"):
                log.left["annotations were cancelled (skipped) and are left out"] += 1
                continue
            by = annotation.get("completed_by")
            if isinstance(by, Mapping):
                by = by.get("email") or by.get("username") or by.get("id")
            time = annotation.get("updated_at") or annotation.get("created_at")
            for result, criterion, value in _results(annotation, log):
                total += 1
                seen += result.get("origin") in ("prediction", "prediction-changed")
                yield Verdict(item, criterion, PERSON, f"{by}", value, None, time_text(time))
        for prediction in task.get("predictions") or []:
            if not isinstance(prediction, Mapping):  # numbers of predictions that were not exported
                log.left["predictions are numbers alone: export them with the tasks"] += 1
                continue
            model = str(prediction.get("model_version") or "prediction")
            for _, criterion, value in _results(prediction, log):
                yield Verdict(item, criterion, MODEL, model, value)
    if seen:
        log.warnings.append(f"{seen:,} of {total:,} {SEEN}")


def _results(
    annotation: Mapping[str, Any], log: Log
) -> Iterator[tuple[Mapping[str, Any], str, Any]]:
    """Each result that is a class or a grade of the whole task: the result, its name, its value."""
    for result in annotation.get("result") or []:
        value = result.get("value") or {}
        kind = next((kind for kind in _CHOICES if kind in value), None)
        if kind is None and "selected" in value:  # Pairwise
            kind = "selected"
        if kind is None or kind == "text" or "start" in value or "end" in value:
            log.left["results are regions or texts, which are no classes of the whole task"] += 1
            continue
        choice = value[kind]
        if kind == "taxonomy":
            choice = [" / ".join(map(str, path)) for path in choice]
        if isinstance(choice, list):
            if len(choice) > 1:
                log.left["results are several choices at once, which are no class"] += 1
                continue
            choice = choice[0] if choice else None
        yield result, str(result.get("from_name") or "label"), choice
