"""Flat exports of scores, a row per verdict: Langfuse, Phoenix, MLflow, and tables like theirs.

The columns are told by their names, whatever their case and separators: `traceId`, `trace_id`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fewlabels.data.logs.record import (
    CODE,
    MODEL,
    PERSON,
    Log,
    Record,
    of_columns,
    word_and_number,
)
from fewlabels.data.table import Names, Source, Table, group_text
from fewlabels.errors import InputError, listed, quoted
from fewlabels.kernels.arrays import Array, Floats

_ROLES: Mapping[str, tuple[str, ...]] = {
    # The first that a table has; a part of a trace is the item where there is one.
    "part": ("observationid", "spanid", "contextspanid", "subjectid"),
    "item": ("traceid", "contexttraceid", "sessionid", "runid", "exampleid", "itemid", "item"),
    "criterion": ("annotationname", "assessmentname", "scorename", "name", "criterion", "metric"),
    "kind": ("annotatorkind", "sourcesourcetype", "sourcetype", "source", "authorkind", "kind"),
    "author": ("sourcesourceid", "sourceid", "annotator", "author", "authoruserid", "userid"),
    "judge": ("sourcesourceid", "sourceid", "annotator", "author", "evaluator", "identifier"),
    "label": ("stringvalue", "resultlabel", "label"),
    "value": ("value", "feedbackvalue", "resultscore", "score"),
    "time": ("updatedat", "lastupdatetime", "timestamp", "createdat", "createtime", "time"),
}  # fmt: skip

KINDS = {
    "human": PERSON, "annotation": PERSON, "person": PERSON, "user": PERSON,
    "llm": MODEL, "llmjudge": MODEL, "aijudge": MODEL, "eval": MODEL, "model": MODEL,
    "code": CODE, "api": CODE, "heuristic": CODE,
}  # fmt: skip
"""Words for kinds of authors, folded."""


def _folded(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def columns_by_role(names: Collection[str]) -> dict[str, str]:
    """The columns of a flat export by what they hold."""
    by_word = {_folded(name): name for name in reversed(list(names))}
    found = {
        role: next((by_word[word] for word in words if word in by_word), None)
        for role, words in _ROLES.items()
    }
    return {role: name for role, name in found.items() if name is not None}


def is_flat(names: Collection[str], kinds: Collection[str] = ()) -> bool:
    """Whether columns are those of such an export; `kinds` are some values of that column."""
    roles = columns_by_role(names)
    enough = {"criterion", "kind"} <= roles.keys() and (
        ("item" in roles or "part" in roles) and ("value" in roles or "label" in roles)
    )
    return enough and all(_folded(kind) in KINDS for kind in kinds if kind)


def read(source: Source, log: Log) -> Record:
    """The verdicts of such a table."""
    roles = columns_by_role(source.names)
    table = source.read((), roles.values())
    missing = {"criterion", "kind"} - roles.keys()
    if missing or not roles.keys() & {"item", "part"}:
        raise InputError(
            f"is no export of scores: no column of {listed(sorted(missing) or ['the item'])}; the "
            f"columns are {listed(map(quoted, source.names))}"
        )
    log.about.append(f"flat export of scores: {_said(roles)}")
    n = table.n_rows
    empty = np.full(n, None, dtype=object)

    def texts(role: str) -> Array:
        if role not in roles:
            return empty
        names = Names.of(table, roles[role], group_text)
        return np.array([*names.texts, None], dtype=object)[names.codes]

    part, item = texts("part"), texts("item")
    item = np.where(part == None, item, part)  # noqa: E711 (elementwise)
    kind, unknown = _kinds(table, roles["kind"])
    if len(unknown):
        log.left[
            f"rows are of unknown authors ({listed(map(quoted, unknown), 3)}) and left out"
        ] += int((kind == None).sum())  # noqa: E711
    criterion = texts("criterion")
    for column, name in ((item, "item"), (criterion, "name")):
        lacking = int((column == None).sum())  # noqa: E711
        if lacking:
            log.left[f"rows have no {name} and are left out"] += lacking
    word, score = _values(table, roles)
    kept = np.flatnonzero((item != None) & (criterion != None) & (kind != None))  # noqa: E711
    author, judge = texts("author"), texts("judge")
    # A judge without a name is known by what it judges.
    judge = np.where(judge == None, criterion, judge)  # noqa: E711
    author = np.where(kind == PERSON, author, judge)
    columns = {
        "item": item, "criterion": criterion, "kind": kind, "author": author, "value": word,
        "time": np.where(kind == PERSON, texts("time"), empty), "cluster": empty,
    }  # fmt: skip
    made = {
        name: [pa.array(column[kept], pa.string()).dictionary_encode()]
        for name, column in columns.items()
    }
    return of_columns(made, [score[kept]])


def _said(roles: Mapping[str, str]) -> str:
    return ", ".join(f"{role} {quoted(column)}" for role, column in roles.items())


def _kinds(table: Table, column: str) -> tuple[Array, Sequence[str]]:
    names = Names.of(table, column, group_text)
    known = [KINDS.get(_folded(text)) for text in names.texts]
    unknown = [text for text, kind in zip(names.texts, known, strict=True) if kind is None]
    return np.array([*known, None], dtype=object)[names.codes], unknown


def _values(table: Table, roles: Mapping[str, str]) -> tuple[Array, Floats]:
    """What each row says as a word, and as a number."""
    n = table.n_rows
    word, score = np.full(n, None, dtype=object), np.full(n, np.nan)
    for role in ("label", "value"):
        if role not in roles:
            continue
        pieces = [_as_text(piece) for piece in table.pieces(roles[role])]
        part = Table.of({role: pa.chunked_array(pieces, pa.large_string())}, n)
        names = Names.of(part, role, group_text)
        pairs = [word_and_number(text) for text in names.texts]
        words = np.array([*(w for w, _ in pairs), None], dtype=object)[names.codes]
        numbers = np.array([*(x for _, x in pairs), np.nan])[names.codes]
        word = np.where(word == None, words, word)  # noqa: E711
        score = np.where(np.isnan(score), numbers, score)
    return word, score


def _as_text(piece: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_boolean(piece.type):
        piece = pc.if_else(piece, "true", "false")
    if pa.types.is_dictionary(piece.type):
        piece = piece.cast(piece.type.value_type)
    return piece.cast(pa.large_string()).combine_chunks()
