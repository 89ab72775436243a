"""Logs of Inspect: `.eval` (a zip of samples) and `.json`.

After an edit `value` is the person's, and what the judge said stands in `history`, which summaries
lack. NaN is unscored. Epochs answer one question anew: an item each, and a cluster together.
"""

from __future__ import annotations

import itertools
import re
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from fewlabels.data.limits import Inflation
from fewlabels.data.logs.answers import Answer
from fewlabels.data.logs.documents import Scanner, opened
from fewlabels.data.logs.facts import are_classes
from fewlabels.data.logs.record import Log
from fewlabels.errors import InputError, quoted

_SAMPLES = ("samples",)
_UNCHANGED = "UNCHANGED"
_ZSTANDARD = 93
_EXPLAINED = re.compile(r"(^|[/_])model_graded")


def samples(path: Path, log: Log) -> Iterator[Mapping[str, Any]]:
    """The samples of one log, each with its `verdicts` of scorers and people."""
    with _header_and_samples(path, log) as (header, documents):
        repeated = ((header.get("config") or {}).get("epochs") or 1) > 1
        for sample in documents:
            name, epoch = str(log.need(sample, "id", "a sample")), sample.get("epoch", 1)
            again = f"{name}_epoch_{epoch}" if repeated or epoch != 1 else None
            scores = sample.get("scores")
            if scores is None and "score" in sample:  # before version 0.3
                scores = {"score": sample["score"]}
            said = {} if sample.get("invalidation") else scores or {}
            asked = sample.get("input")
            if isinstance(asked, list):  # the last that a user said
                users = [m for m in asked if isinstance(m, Mapping) and m.get("role") == "user"]
                asked = users[-1].get("content") if users else None
            answer = ((sample.get("output") or {}).get("choices") or [{}])[0].get("message") or {}
            yield {
                **sample, "run": header, "item": again or name, "repeats": name if again else None,
                "verdicts": [v for scorer in said for v in _of_scorer(scorer, said[scorer], log)],
                "asked": _content(asked), "answer": _content(answer.get("content")),
            }  # fmt: skip


def answered(path: Path, log: Log) -> list[Answer]:
    """The answers of a log that scorers of no judgement hold to a key; none of another log."""
    found: list[Answer] = []
    run: Mapping[str, Any] = {}
    for sample in samples(path, Log(log.name, log.tool)):
        run, scores = sample["run"], sample.get("scores")
        said = scores.values() if isinstance(scores, Mapping) else ()
        answers = {s.get("answer") for s in said if isinstance(s, Mapping)}
        by_key = all(v["kind"] == "code" for v in sample["verdicts"]) and len(answers) < 2
        target = sample.get("target")
        if sample["repeats"] or not by_key or not isinstance(target, str):
            return []
        log.show(sample["item"], input=sample["asked"], reference=target)
        word = next(iter(answers), None)
        found.append(Answer(sample["item"], str(run.get("task")), "", word, target, {}))
    if not are_classes([one.word for one in found], [one.target for one in found]):
        return []
    about = f"task {quoted(str(run.get('task')))}, model {quoted(str(run.get('model')))}"
    log.about.append(f"Inspect log: {about}; answers beside the key of its scorer")
    model = log.distinct(str(run.get("model")))
    return [one._replace(model=model) for one in found]


def _of_scorer(scorer: str, score: Any, log: Log) -> Iterator[Mapping[str, Any]]:
    """What a scorer said, and what people made of it."""
    if score is None or (isinstance(score, Mapping) and score.get("value", "") is None):
        log.left["scores are null: nothing was scored"] += 1
        return
    value = log.need(score, "value", "a score")
    history = score.get("history") or []
    own = [e["value"] for e in history if not e.get("provenance")]
    if history:
        value = own[0] if own and own[0] != _UNCHANGED else None
    if value is not None:
        graded = (score.get("metadata") or {}).get("grading") or _EXPLAINED.search(scorer)
        kind = "model" if graded else "code"
        for criterion, one in _criteria(scorer, value):
            yield {"criterion": criterion, "kind": kind, "author": scorer, "value": one}
    for edit in history:
        by, edited = edit.get("provenance"), edit.get("value")
        if edited == _UNCHANGED:  # looked at, and left as it is
            edited = own[0] if own else None
        if not by or edited is None:
            continue
        if value is not None:
            log.corrected[f"{'confirm' if edited == value else 'change'} {scorer}"] += 1
        for criterion, one in _criteria(scorer, edited):
            yield {
                "criterion": criterion, "kind": "human", "author": by.get("author") or "person",
                "value": one, "time": by.get("timestamp"),
            }  # fmt: skip


def _criteria(scorer: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Criterion and value; those of an object or a list are criteria of their own."""
    if isinstance(value, Mapping | list):
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        yield from ((f"{scorer}/{key}", one) for key, one in pairs)
    else:
        yield scorer, value


def _content(content: Any) -> str | None:
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else None


@contextmanager
def _header_and_samples(
    path: Path, log: Log
) -> Iterator[tuple[Mapping[str, Any], Iterator[Mapping[str, Any]]]]:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            yield _of_archive(path, archive, log)
        return
    with opened(path) as scanner:
        values = scanner.within([_SAMPLES])
        header: dict[str, Any] = {}
        first: Mapping[str, Any] | None = None
        for where, value in values:
            if where == _SAMPLES:
                first = value
                break
            header[where[0]] = value
        about = log.need(header, "eval", "the log", dict)
        if first is None:
            raise InputError(
                f"is a log of Inspect without samples (status {quoted(header.get('status'))}); log "
                "samples (log_samples), or name the log of a run that has finished"
            )
        rest = (value for where, value in values if where == _SAMPLES)
        yield about, itertools.chain([first], rest)


def _of_archive(
    path: Path, archive: zipfile.ZipFile, log: Log
) -> tuple[Mapping[str, Any], Iterator[Mapping[str, Any]]]:
    names = {member.filename: member for member in archive.infolist()}
    start = names.get("header.json") or names.get("_journal/start.json")
    if start is None:
        raise InputError(
            "is an Inspect log (.eval) without header.json; it was cut short: run it again"
        )
    inflation = Inflation(path, packed=True)
    header = _member(path, start, inflation).value()
    samples = [m for name, m in names.items() if name.startswith("samples/")]
    if not samples:
        raise InputError("is an Inspect log (.eval) without samples; log samples (log_samples)")

    def parsed() -> Iterator[Mapping[str, Any]]:
        for member in samples:
            yield {
                where[0]: value
                for where, value in _member(path, member, inflation).within(())
                if where[0] not in ("events", "attachments", "store", "messages")
            }

    return log.need(header, "eval", "header.json", dict), parsed()


def _member(path: Path, member: zipfile.ZipInfo, inflation: Inflation) -> Scanner:
    """A member of the archive; those that zstd compresses are unknown to Python before 3.14."""
    inflation.take(member.file_size)
    codec = {zipfile.ZIP_STORED: None, _ZSTANDARD: "zstd"}.get(member.compress_type, "")
    if codec == "":
        with zipfile.ZipFile(path) as archive:
            return Scanner(pa.BufferReader(archive.read(member)))
    with path.open("rb") as file:
        # A local header: 30 bytes, of which the last four are the lengths of what follows.
        file.seek(member.header_offset)
        head = file.read(30)
        if len(head) < 30:
            raise InputError("is an Inspect log (.eval) that is damaged or cut short")
        file.seek(sum(struct.unpack("<HH", head[26:30])), 1)
        packed = pa.py_buffer(file.read(member.compress_size))
    return Scanner(pa.input_stream(packed, compression=codec))
