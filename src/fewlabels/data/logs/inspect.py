"""Logs of Inspect: `.eval` (a zip of samples) and `.json`.

After an edit `value` is the person's, and what the judge said stands in `history`; the summaries of
an `.eval` have no history, so the samples are read. NaN is unscored. Samples that were invalidated
do not count. Epochs answer one question anew: an item each, and a cluster together.
"""

from __future__ import annotations

import itertools
import re
import struct
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from fewlabels.data.limits import Inflation
from fewlabels.data.logs.documents import Scanner, opened
from fewlabels.data.logs.record import CODE, MODEL, PERSON, Log, Verdict
from fewlabels.errors import InputError, quoted

_SAMPLES = ("samples",)
_UNCHANGED = "UNCHANGED"
_WORDS = {"C": "correct", "I": "incorrect", "P": "partial", "N": "no answer"}
_ZSTANDARD = 93
_EXPLAINED = re.compile(r"(^|[/_])model_graded")


def read(path: Path, log: Log) -> Iterator[Verdict]:
    """What scorers and people say of the samples of one log."""
    with _header_and_samples(path, log) as (header, samples):
        task = header.get("task"), header.get("model")
        log.about.append(f"Inspect log: task {quoted(task[0])}, model {quoted(task[1])}")
        epochs = (header.get("config") or {}).get("epochs") or 1
        for sample in samples:
            yield from _of_sample(sample, log, repeated=epochs > 1)


def _of_sample(sample: Mapping[str, Any], log: Log, *, repeated: bool) -> Iterator[Verdict]:
    name = str(log.need(sample, "id", "a sample"))
    epoch = sample.get("epoch", 1)
    item = f"{name}_epoch_{epoch}" if repeated or epoch != 1 else name
    item, name = f"{log.before}{item}", f"{log.before}{name}"
    cluster = name if item != name else None
    log.once(item, "the sample")
    if sample.get("invalidation"):
        log.left["samples were invalidated and are left out"] += 1
        return
    scores = sample.get("scores")
    if scores is None and "score" in sample:  # before version 0.3
        scores = {"score": sample["score"]}
    if not scores:
        log.left["samples have no scores"] += 1
        return
    log.show(item, input=_text(sample.get("input")), output=_answer(sample.get("output")))
    for scorer, score in scores.items():
        original, edits = _history(score, log)
        if original is not None:
            graded = (score.get("metadata") or {}).get("grading") or _EXPLAINED.search(scorer)
            kind = MODEL if graded else CODE
            for criterion, value in _values(scorer, original):
                yield Verdict(item, criterion, kind, scorer, value, cluster=cluster)
        for edit in edits:
            by = edit["provenance"]
            if original is not None:
                same = "confirm" if _same(edit["value"], original) else "change"
                log.corrected[f"{same} {scorer}"] += 1
            for criterion, value in _values(scorer, edit["value"]):
                author, time = str(by.get("author") or "person"), by.get("timestamp")
                yield Verdict(item, criterion, PERSON, author, value, None, time, cluster)


def _history(score: Any, log: Log) -> tuple[Any, list[Mapping[str, Any]]]:
    """What the scorer said (None: nothing), and what people made of it."""
    if score is None or (isinstance(score, Mapping) and score.get("value", "") is None):
        log.left["scores are null: nothing was scored"] += 1
        return None, []
    log.need(score, "value", "a score")
    history = score.get("history") or []
    edits = [e for e in history if e.get("provenance") and e.get("value") != _UNCHANGED]
    if not history:
        return score["value"], []
    own = [e["value"] for e in history if not e.get("provenance")]
    confirmed = [  # looked at, and its value left as it is
        e | {"value": own[0]}
        for e in history
        if own and e.get("provenance") and e.get("value") == _UNCHANGED
    ]
    return (own[0] if own and own[0] != _UNCHANGED else None), [*edits, *confirmed]


def _same(value: Any, other: Any) -> bool:
    return bool(value == other)


def _values(scorer: str, value: Any) -> Iterable[tuple[str, Any]]:
    """Criterion and value; those of an object or a list are criteria of their own."""
    if isinstance(value, Mapping):
        return [(f"{scorer}/{key}", _word(v)) for key, v in value.items()]
    if isinstance(value, list):
        return [(f"{scorer}/{k}", _word(v)) for k, v in enumerate(value)]
    return [(scorer, _word(value))]


def _word(value: Any) -> Any:
    return _WORDS.get(value, value) if isinstance(value, str) else value


def _text(messages: Any) -> str | None:
    """The last that a user said."""
    if isinstance(messages, str) or not isinstance(messages, list):
        return messages if isinstance(messages, str) else None
    contents = [
        m.get("content") for m in messages if isinstance(m, Mapping) and m.get("role") == "user"
    ]
    return _content(contents[-1]) if contents else None


def _content(content: Any) -> str | None:
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else None


def _answer(output: Any) -> str | None:
    choices = output.get("choices") if isinstance(output, Mapping) else None
    if not choices:
        return None
    return _content((choices[0].get("message") or {}).get("content"))


# Where header and samples stand -------------------------------------------------------------------


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
