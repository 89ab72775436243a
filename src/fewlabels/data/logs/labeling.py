"""Exports of Argilla and doccano: what people say, and what models suggested."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fewlabels.data.logs.record import MODEL, PERSON, Log, Said

_COUNTED = (None, "submitted")
SUGGESTED = (
    "Argilla shows people what was suggested before they answer: agreement with the suggestions "
    "may be too high"
)


def argilla(documents: Iterable[Mapping[str, Any]], log: Log) -> Iterator[Said]:
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
            yield Said(item, question, PERSON, str(user), value)
        for question, agent, value, score in _suggestions(row, nested=nested):
            suggested = True
            if not isinstance(value, list | dict):
                said = score if isinstance(score, float) else None
                yield Said(item, question, MODEL, str(agent or "suggestion"), value, said)
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


def doccano(documents: Iterable[Mapping[str, Any]], author: str, log: Log) -> Iterator[Said]:
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
        yield Said(item, "category", PERSON, author, labels[0])
