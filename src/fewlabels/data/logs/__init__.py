"""Logs of evaluation tools to columns; `tools.toml` says where a log holds what.

`facts` follows the paths of a tool (or a reader of its own: `inspect`, `answers`) to verdicts,
`record.collected` keeps these, and `columns.columns_of` makes the native columns of them.

To add a tool: a table in `tools.toml`; its name in `_Log` of `cli/input.py`; layouts typed by hand
in `tests/data/logs/test_logs.py`; if it can be installed, a writer in `tests/data/logs/tools.py`, a
test in `tests/data/logs/test_written_by_tools.py` and the package in the group `logs` of
`pyproject.toml`; lines in `docs/llm-judges.md`, `docs/formats.md` and `CHANGELOG.md`.
"""

from __future__ import annotations

import csv
import filecmp
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from fewlabels.data.binary import open_feather, open_parquet
from fewlabels.data.content import INSPECT, file_kind, first_bytes
from fewlabels.data.delimited import open_delimited
from fewlabels.data.logs import answers, inspect
from fewlabels.data.logs.columns import LogOptions, columns_of
from fewlabels.data.logs.documents import keys_at_the_beginning, opened
from fewlabels.data.logs.facts import facts, fold, kind_of, tools
from fewlabels.data.logs.record import Log, Record, Verdict, collected
from fewlabels.data.table import Held, Source, naming_file
from fewlabels.errors import FewlabelsError, InputError, one_line, quoted, unknown

Keys = frozenset[str]
"""Keys of the first objects of a JSON file, or the columns of a table."""

_OPENERS: Mapping[str, Callable[[Path, str], Source]] = {
    "CSV": open_delimited, "Parquet": open_parquet, "Feather": open_feather,
}  # fmt: skip

ALIASES = {"langfuse": "scores", "phoenix": "scores"}

IN_FOLDERS = ("*/samples_*.jsonl", "*/per_instance_stats.json")
"""Logs of which a folder holds a folder per model."""

_BETWEEN = re.compile(r"[,;:&]")


def recognised(path: Path, kind: str) -> str | None:
    """The format of a log by its content, given its `content.file_kind`; None if it is no log."""
    keys = _keys(path, kind)
    return next((name for name in tools() if _is_of(name, path, kind, keys)), None)


def _is_of(name: str, path: Path, kind: str, keys: Keys) -> bool:
    """Whether a file has the keys of a tool's log."""
    tool = tools()[name]
    if kind not in tool.get("kinds", ("JSON",)):
        return False
    if tool.get("folded"):  # told by what its columns are called
        fact, found = tool["facts"][0], {fold(key.removeprefix("data.")): key for key in keys}
        needed = [tool["item"], fact["criterion"], fact["kind"], fact["value"]]
        if kind == "CSV" and (rows := _first_lines(path))[1:]:
            word = next((found[w] for w in fact["kind"].split("|") if w in found), None)
            said = dict(zip(*rows, strict=False)).get(str(word), "")
            if said and kind_of(said) is None:
                return False
        return all(not found.keys().isdisjoint(words.split("|")) for words in needed)
    if tool.get("only"):
        return keys == set(tool["keys"][0].split())
    return any(_has(keys, words.split()) for words in tool["keys"])


def _has(keys: Keys, words: Sequence[str]) -> bool:
    """Whether there is one alternative of every word; `*` is the same text in all of them."""
    before, _, after = words[0].partition("*")
    stems = [""]
    if "*" in words[0]:
        ends = (key for key in keys if key.startswith(before) and key.endswith(after))
        stems = [key[len(before) : len(key) - len(after)] for key in ends]
    return any(
        all(any(w.replace("*", stem) in keys for w in word.split("|")) for word in words)
        for stem in stems
    )


def _keys(path: Path, kind: str) -> Keys:
    if kind == INSPECT:
        return frozenset({INSPECT})
    if kind == "JSON":
        return keys_at_the_beginning(path)
    try:
        if kind == "CSV":
            return frozenset(next(iter(_first_lines(path)), []))
        return frozenset(_OPENERS[kind](path, path.name).names if kind in _OPENERS else ())
    except FewlabelsError:
        return frozenset()  # who reads it says what is wrong


def _first_lines(path: Path) -> list[list[str]]:
    """The cells of the first two lines."""
    text = first_bytes(path, 1 << 16).decode("utf-8-sig", errors="replace")
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ","
    return list(itertools.islice(csv.reader(text.splitlines(), delimiter=delimiter), 2))


def check_format(name: str, path: Path, kind: str) -> str:
    """The format that --format says, where the file can be one."""
    known = ALIASES.get(name, name)
    if known not in tools():
        raise InputError(unknown("format", name, [*tools(), *ALIASES]))
    tool = tools()[known]
    if kind not in tool.get("kinds", ("JSON",)):
        raise InputError(f"is {kind}, and --format says {name}; leave it out")
    if not _is_of(known, path, kind, _keys(path, kind)):
        raise InputError(
            f"has not the fields of {tool['tool']} ({tool['fields']}), and --format says {name}: "
            "it is another format, or a layout that is not known"
        )
    return known


def _rows(path: Path, tool: Mapping[str, Any], log: Log) -> Iterator[Any]:
    """The objects of a file: its rows, the items of its list, or of a list within its object."""
    kind = file_kind(path)
    if kind in _OPENERS:
        source = _OPENERS[kind](path, path.name)
        columns = source.read((), source.names)
        pieces = {
            name: pa.chunked_array([c for piece in columns.pieces(name) for c in piece.chunks])
            for name in source.names
        }
        for batch in pa.table(pieces).to_batches(max_chunksize=4096):
            yield from batch.to_pylist()
        return
    lists = [tuple(one.split(".")) for one in tool.get("lists", ())]
    keys = keys_at_the_beginning(path)
    with opened(path) as scanner:
        found = scanner.values()
        if tool.get("one") or not keys.isdisjoint(tool.get("lists", ())):
            found = (value for where, value in scanner.within(lists) if where in lists)
        none = True
        for value in found:
            none = False
            if not isinstance(value, dict):
                raise InputError(f"holds {quoted(value)} where an object is expected")
            yield value
        if none and lists:
            raise log.unknown(f"the log has no field {quoted(tool['lists'][0])}")


def _verdicts(path: Path, form: str, log: Log) -> Iterator[Verdict]:
    """What one file of a tool says."""
    if form == "mlflow-table":
        with opened(path) as scanner:
            return answers.table(scanner.value(), tools()[form], log)
    tool, folder = tools()[form], path.resolve().parent.name
    if form == "inspect" and (held := inspect.answered(path, log)):
        return answers.judged(held, beside=False, log=log)
    documents = inspect.samples(path, log) if form == "inspect" else _rows(path, tool, log)
    stem = path.name.partition(".")[0]
    if form == "lm-eval":
        # output/<model>/samples_<task>_<date>.jsonl
        task = re.sub(r"^samples_|_\d{4}-\d\d-\d\dT[\d.:-]*$", "", path.name.removesuffix(".jsonl"))
        return answers.samples(documents, folder or "model", task, log)
    pairs = (part.partition("=") for part in _BETWEEN.split(f"{folder},{path.stem}"))
    file = {name: value for name, _, value in pairs if value}
    return facts(documents, tool, {**file, "stem": stem, "folder": folder}, log)


def record_of(files: Sequence[Path], form: str, name: str) -> tuple[Record, Log]:
    """What all files of one log say, and what there is to know of it."""
    log = Log(name, tools()[form]["tool"])

    def each() -> Iterator[Verdict]:
        for file in files:
            with naming_file(one_line(file.name) if len(files) > 1 else None):
                # Runs call their samples alike, which are answers of different systems.
                log.before = f"{one_line(file.stem, 80)}: " if len(files) > 1 else ""
                yield from _verdicts(file, form, log)

    _check_twice(files)
    try:
        record = collected(each())
    except (AttributeError, TypeError, KeyError, IndexError, ValueError) as error:
        if isinstance(error, FewlabelsError):
            raise
        # A value of another kind than the layout has where a reader looks into it.
        why = f"{type(error).__name__}: {one_line(str(error), 80)}"
        raise log.unknown(why) from None
    return record, log


def _check_twice(files: Sequence[Path]) -> None:
    """One log under two names counts every item twice."""
    by_size: dict[int, list[Path]] = {}
    for file in files:
        for other in by_size.setdefault(file.stat().st_size, []):
            if filecmp.cmp(file, other, shallow=False):
                names = f"{quoted(other.name)} and {quoted(file.name)}"
                raise InputError(f"holds one log twice, as {names}; remove one")
        by_size[file.stat().st_size].append(file)


def open_log(
    files: Sequence[Path], form: str, name: str, options: LogOptions, notes: Sequence[str] = ()
) -> Held:
    """Read a log as a table of one criterion; `notes` are what there is to say of its files."""
    record, log = record_of(files, form, name)
    log.warnings += notes
    return columns_of(record, log, options)
