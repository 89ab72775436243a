"""Logs of evaluation tools to the columns that everything else reads.

A tool's file is a reader of 30 to 60 lines here: it yields verdicts (`record.Verdict`) and counts
what it leaves out. Nothing of the tools is imported. What happens, in order:

1. `sources.locate` finds files and asks `recognised` whose they are, by their content.
2. The format's reader takes values from `documents` (JSON of any size, an item at a time), from the
   members of an `.eval`, or columns of a table (`flat`), and yields verdicts.
3. `record.collected` makes columns of them: item, criterion, kind of author, author, value, score.
4. `columns.columns_of` makes the columns of one criterion: people are labels, judges classifiers.
5. The result is a `Source` like a CSV file's, with the native names `label`, `y__<judge>`, ...

To add a tool, copy `lm_eval.py`:

1. a reader here;
2. its `Format` in `FORMATS`, which are tried in that order, with a function like `_lm_eval`;
3. its name in `_Log` of `cli/input.py`;
4. layouts typed by hand in `tests/data/logs/test_logs.py`, which `make test` runs;
5. if it can be installed: a writer in `tests/data/logs/tools.py`, a test of what that writes in
   `tests/data/logs/test_written_by_tools.py` (`make test-logs`), the package in the group `logs` of
   `pyproject.toml`;
6. lines in `docs/llm-judges.md`, `docs/formats.md` and `CHANGELOG.md`.

Traps, each with a test: a person's correction overwrites the judge's verdict in the place where it
stood; NaN is unscored; epochs are no items; cancelled annotations and drafts are no labels; one
document of lm-evaluation-harness has a row per filter.
"""

from __future__ import annotations

import csv
import filecmp
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from fewlabels.data.binary import open_feather, open_parquet
from fewlabels.data.cells import RowCollector
from fewlabels.data.content import INSPECT, file_kind, first_bytes
from fewlabels.data.delimited import open_delimited
from fewlabels.data.logs import (
    flat,
    inspect,
    labeling,
    lm_eval,
    mlflow,
    test_runs,
)
from fewlabels.data.logs.columns import LogOptions, columns_of, criteria_of
from fewlabels.data.logs.documents import keys_at_the_beginning, opened
from fewlabels.data.logs.record import Log, Record, Verdict, collected
from fewlabels.data.table import Source, Table, naming_file, row_place
from fewlabels.errors import FewlabelsError, InputError, one_line, quoted, unknown

Keys = frozenset[str]
"""Keys of the first object of a JSON file, or the columns of a table."""

Documents = Iterable[Any]


@dataclass(frozen=True)
class Format:
    """One tool's format: how it is told by its keys, and who reads its files.

    `read` yields what one file says; `keys` are some that it must have for `--format` to be
    believed. `kinds` are the kinds of files that it comes in.
    """

    name: str
    tool: str
    is_it: Callable[[Keys], bool]
    read: Callable[[Path, str, Log], Iterator[Verdict] | Record]
    keys: str
    kinds: tuple[str, ...] = ("JSON",)


_OPENERS: Mapping[str, Callable[[Path, str], Source]] = {
    "CSV": open_delimited, "Parquet": open_parquet, "Feather": open_feather,
}  # fmt: skip


# Values of files ----------------------------------------------------------------------------------


def _rows(path: Path, kind: str, *lists: tuple[str, ...]) -> Iterator[Any]:
    """The objects of a file: its rows, the items of its list, or of a list within its object."""
    if kind in ("Parquet", "Feather"):
        source = (
            open_parquet(path, path.name) if kind == "Parquet" else open_feather(path, path.name)
        )
        columns = source.read((), source.names)
        pieces = {name: pa.chunked_array(columns.pieces(name)[0].chunks) for name in source.names}
        for batch in pa.table(pieces).to_batches(max_chunksize=4096):
            yield from batch.to_pylist()
        return
    keys = keys_at_the_beginning(path)
    with opened(path) as scanner:
        found: Iterator[Any]
        if any(".".join(one) in keys for one in lists):
            found = (value for where, value in scanner.within(lists) if where in lists)
        else:
            found = scanner.values()
        for value in found:
            if not isinstance(value, dict):
                raise InputError(f"holds {quoted(value)} where an object is expected")
            yield value


def _mlflow(path: Path, kind: str, log: Log) -> Iterator[Verdict]:
    return mlflow.traces(_rows(path, kind, ("traces",)), log)


def _mlflow_table(path: Path, kind: str, log: Log) -> Iterator[Verdict]:
    with opened(path) as scanner:
        document = scanner.value()
    return mlflow.table(document, log)


def _argilla(path: Path, kind: str, log: Log) -> Iterator[Verdict]:
    return labeling.argilla(_rows(path, kind), log)


def _doccano(path: Path, kind: str, log: Log) -> Iterator[Verdict]:
    author = path.name.partition(".")[0]
    return labeling.doccano(_rows(path, kind), author, log)


def _label_studio(path: Path, kind: str, log: Log) -> Iterator[Verdict]:
    return labeling.label_studio(_rows(path, kind), log)


def _lm_eval(path: Path, kind: str, log: Log) -> Iterator[Verdict]:
    # output/<model>/samples_<task>_<date>.jsonl
    task = re.sub(r"^samples_|_\d{4}-\d\d-\d\dT[\d.:-]*$", "", path.name.removesuffix(".jsonl"))
    model = path.resolve().parent.name or "model"
    log.about.append(f"lm-evaluation-harness: model {model}, task {task}")
    return lm_eval.read(_rows(path, kind), model, task, log)


def _flat(path: Path, kind: str, log: Log) -> Record:
    if kind == "CSV":
        source: Source = open_delimited(path, path.name)
    elif kind in ("Parquet", "Feather"):
        source = (
            open_parquet(path, path.name) if kind == "Parquet" else open_feather(path, path.name)
        )
    else:
        rows = RowCollector()
        for row in _rows(path, kind, ("data",), ("scores",), ("annotations",)):
            rows.add(row)
        source = rows.table(path.name, row_place)
    return flat.read(source, log)


_TABLES = ("JSON", "Parquet", "Feather")

FORMATS = {
    one.name: one
    for one in (
        Format(
            "inspect", "Inspect", lambda k: k >= {"eval", "eval.task"} or k == {INSPECT},
            lambda path, kind, log: inspect.read(path, log), "eval, samples", ("JSON", INSPECT),
        ),
        Format(
            "promptfoo", "promptfoo",
            lambda k: k >= {"results", "results.version"} and bool(
                k & {"evalId", "results.prompts", "results.stats", "results.timestamp"}),
            lambda path, kind, log: test_runs.promptfoo(path, log), "results.results",
        ),
        Format(
            "deepeval", "DeepEval",
            lambda k: not k.isdisjoint({"testRunData.testCases", "testCases", "test_results",
                                        "testRunData.conversationalTestCases"}),
            lambda path, kind, log: test_runs.deepeval(path, log), "testRunData.testCases",
        ),
        Format(
            "mlflow", "MLflow",
            lambda k: bool(k & {"info.trace_id", "info.request_id", "traces.info"})
            or k >= {"assessments", "trace_id"},
            _mlflow, "info.trace_id, info.assessments", _TABLES,
        ),
        Format(
            "mlflow-table", "MLflow", lambda k: k == {"columns", "data"}, _mlflow_table,
            "columns, data",
        ),
        Format(
            "label-studio", "Label Studio",
            lambda k: bool(k & {"annotations", "completions"}) and bool(
                k & {"annotations.result", "completions.result", "annotations.completed_by",
                     "annotations.was_cancelled"} or k >= {"data", "id", "annotations"}),
            _label_studio, "id, annotations", ("JSON",),
        ),
        Format(
            "lm-eval", "lm-evaluation-harness", lambda k: k >= {"doc_id", "filtered_resps"},
            _lm_eval, "doc_id, filtered_resps", _TABLES,
        ),
        Format(
            "argilla", "Argilla",
            lambda k: k >= {"fields", "responses", "suggestions"}
            or any(f"{key}.users" in k for key in k if key.endswith(".responses")),
            _argilla, "fields, responses", _TABLES,
        ),
        Format(
            "doccano", "doccano",
            lambda k: bool(k & {"text", "data"}) and bool(k & {"label", "cats"})
            and bool(k & {"Comments", "is_confirmed", "annotation_approver"}),
            _doccano, "text, label",
        ),
        Format(
            "scores", "Langfuse, Phoenix and the like",
            lambda k: flat.is_flat({key.removeprefix("data.") for key in k}), _flat,
            "an item, a name, a source and a value", ("CSV", *_TABLES),
        ),
    )
}  # fmt: skip
"""Formats by the name that --format takes, in the order in which they are tried."""

ALIASES = {"langfuse": "scores", "phoenix": "scores"}


def recognised(path: Path, kind: str) -> str | None:
    """The format of a log by its content, given its `content.file_kind`; None if it is no log."""
    keys = _keys(path, kind)
    if kind == "CSV":
        column, rows = flat.columns_by_role(keys).get("kind"), _first_lines(path)
        row = dict(zip(*rows, strict=False)) if len(rows) == 2 else {}
        if not flat.is_flat(keys, [row.get(column, "")]):
            return None
    return next((f.name for f in FORMATS.values() if kind in f.kinds and f.is_it(keys)), None)


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
    known = FORMATS.get(ALIASES.get(name, name))
    if known is None:
        raise InputError(unknown("format", name, [*FORMATS, *ALIASES]))
    if kind not in known.kinds:
        raise InputError(f"is {kind}, and --format says {name}; leave it out")
    if not known.is_it(_keys(path, kind)):
        raise InputError(
            f"has not the fields of {known.tool} ({known.keys}), and --format says {name}: it is "
            "another format, or a layout that is not known"
        )
    return known.name


@dataclass(frozen=True)
class LogTable:
    """A log as a source of columns; `lines` say what was taken for what."""

    name: str
    columns: dict[str, pa.ChunkedArray]
    n_rows: int
    notes: tuple[str, ...]
    lines: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, by their native names."""
        return tuple(self.columns)

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Some of the columns."""
        wanted = {n: c for n, c in self.columns.items() if n in numbers or n in texts}
        items = self.columns["item"]
        table = Table.of(wanted, self.n_rows, lambda row: f"item {quoted(items[row].as_py())}")
        table.notes.extend(self.notes)
        return table


def record_of(files: Sequence[Path], form: str, name: str) -> tuple[Record, Log]:
    """What all files of one log say, and what there is to know of it."""
    log, reader = Log(name, FORMATS[form].tool), FORMATS[form].read

    def verdicts_of(file: Path) -> Iterator[Verdict] | Record:
        return reader(file, file_kind(file), log)

    def each() -> Iterator[Verdict]:
        for file in files:
            with naming_file(one_line(file.name) if len(files) > 1 else None):
                # Runs call their samples alike, which are answers of different systems.
                log.before = f"{one_line(file.stem, 80)}: " if len(files) > 1 else ""
                verdicts = verdicts_of(file)
                if isinstance(verdicts, Record):
                    raise InputError("is a flat export in a folder; put their rows into one file")
                yield from verdicts

    _check_twice(files)
    try:
        verdicts = verdicts_of(files[0]) if len(files) == 1 else each()
        record = verdicts if isinstance(verdicts, Record) else collected(verdicts)
    except (AttributeError, TypeError, KeyError, IndexError) as error:
        # A value of another kind than the layout has where a reader looks into it.
        raise InputError(
            f"is a log of {log.tool} in a layout that is not known ({type(error).__name__}: "
            f"{one_line(str(error), 80)}); docs/llm-judges.md says which versions are read"
        ) from None
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
) -> LogTable:
    """Read a log as a table of one criterion; `notes` are what there is to say of its files."""
    record, log = record_of(files, form, name)
    log.warnings += notes
    made = columns_of(record, log, options)
    return LogTable(name, made.columns, made.n_rows, made.notes, made.lines)


__all__ = [
    "ALIASES",
    "FORMATS",
    "LogOptions",
    "LogTable",
    "check_format",
    "criteria_of",
    "open_log",
    "recognised",
    "record_of",
]
