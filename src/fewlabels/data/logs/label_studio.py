"""Label Studio's JSON export: tasks with the annotations of people and predictions of models.

Cancelled annotations are no labels. `completed_by` is a number or an object. Where `origin` says
that a label was a prediction before, the person saw it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fewlabels.data.logs.record import MODEL, PERSON, Log, Said, time_text

_CHOICES = ("choices", "rating", "number", "taxonomy", "pairwise", "text")
SEEN = (
    "labels were made on top of a prediction (origin 'prediction' or 'prediction-changed'): people "
    "saw what the model said, and agreement with it is too high; label without predictions"
)


def read(documents: Iterable[Mapping[str, Any]], log: Log) -> Iterator[Said]:
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
                yield Said(item, criterion, PERSON, f"{by}", value, None, time_text(time))
        for prediction in task.get("predictions") or []:
            if not isinstance(prediction, Mapping):  # numbers of predictions that were not exported
                log.left["predictions are numbers alone: export them with the tasks"] += 1
                continue
            model = str(prediction.get("model_version") or "prediction")
            for _, criterion, value in _results(prediction, log):
                yield Said(item, criterion, MODEL, model, value)
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
        said = value[kind]
        if kind == "taxonomy":
            said = [" / ".join(map(str, path)) for path in said]
        if isinstance(said, list):
            if len(said) > 1:
                log.left["results are several choices at once, which are no class"] += 1
                continue
            said = said[0] if said else None
        yield result, str(result.get("from_name") or "label"), said
