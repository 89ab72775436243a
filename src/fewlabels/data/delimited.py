"""CSV and TSV, plain or compressed, through Arrow's reader.

A broken row is found again and described by `_refuse`; a cell of the wrong kind is refused where
the arrays are assembled (`assemble`).
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
import shlex
from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from fewlabels.data.content import (
    ENDINGS,
    UTF16,
    byte_stream,
    check_fits,
    compression,
    first_bytes,
    not_utf8,
)
from fewlabels.data.limits import Inflation, refuse_whole
from fewlabels.data.profiles import words_table
from fewlabels.data.stores import File
from fewlabels.data.table import (
    BROKEN_ROWS,
    FRONT_ROWS,
    MISSING_NUMBERS,
    NATIVE,
    SAMPLE_ROWS,
    Table,
    check_header,
    distinct_names,
    header_levels,
    rows_passed,
    shape,
    table_start,
)
from fewlabels.errors import InputError, listed, quoted

_BLOCK = 8 << 20
"""Bytes that Arrow parses at once. A row must fit in, which limits the memory for broken files."""

_SMALL_BLOCK = 1 << 20
"""The same for a stream, of which Arrow reads some 32 blocks ahead; it grows for a longer row."""

_HEADER = 4 << 20
"""Bytes that the header must fit into."""

_CHUNK = 4 << 20
_BATCHES_BETWEEN = 64
"""Batches between checks of the memory."""

_TO_THE_END, _DELIMITERS = 2**62, ",\t;"
_NO_NUMBER = "conversion error to double"

# What a spreadsheet would run, of any width, and a number, which it would not. An apostrophe
# in front makes text of it, there and here; where there is one already, another one comes before.
_FORMULA = r"'*[=+\-@\t\r\n\x{FF0B}\x{FF0D}\x{FF1D}\x{FF20}]"
_NUMBER = r"^'*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?%?$"


def without_formulas(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows for a CSV file, an apostrophe before each text or name that would be a formula."""
    names, *columns = (
        pc.if_else(_formulas(cells, ""), pc.binary_join_element_wise("'", cells, ""), cells)
        if pa.types.is_string(cells.type)
        else cells
        for cells in (pa.array(rows.schema.names, pa.string()), *rows.columns)
    )
    return pa.RecordBatch.from_arrays(columns, names.to_pylist())


def as_written(cells: pa.Array) -> pa.Array:
    """Cells of a CSV file as they were before `without_formulas`."""
    if not pa.types.is_string(cells.type) or not pc.any(pc.starts_with(cells, "'")).as_py():
        return cells
    return pc.if_else(_formulas(cells, "'"), pc.utf8_slice_codeunits(cells, 1), cells)


def _formulas(cells: pa.Array, front: str) -> pa.Array:
    """Which texts begin so and go on as a formula does."""
    formula = pc.match_substring_regex(cells, f"^{front}{_FORMULA}")
    return pc.and_not(formula, pc.match_substring_regex(cells, _NUMBER))


@dataclass(frozen=True)
class DelimitedFile:
    """One CSV or TSV file; `skip` rows, which are `body` bytes, come before the first item.

    Rows have `width` cells; those behind the named columns are empty. If `spaced`, its columns are
    separated by spaces, and `body` counts the bytes of the tabs that stand for them. `titled` says
    that it has a header; `quoting` that double quotes stand around cells, and are not part of them;
    `notes` what of the file is not read, or in doubt.
    """

    path: File
    name: str
    names: tuple[str, ...]
    delimiter: str
    skip: int
    body: int
    width: int
    spaced: bool = False
    titled: bool = True
    quoting: bool = True
    notes: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether the bytes of `stream` are those of the file, at the same places."""
        packed = self.spaced or compression(self.path) is not None
        return not packed and not first_bytes(self.path).startswith(UTF16)

    @contextmanager
    def stream(self) -> Iterator[Any]:
        """The bytes of the file as they are parsed: tabs for spaces between columns."""
        with byte_stream(self.path) as stream:
            if not self.spaced:
                yield stream
                return
            # At once: who writes so writes small files.
            check_fits(self.path)
            text = stream.read().decode("utf-8-sig", "replace")
        with pa.BufferReader(by_tabs(text).encode()) as stream:
            yield stream

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Read some columns: numbers as such, the others as they are written."""
        batches: list[pa.RecordBatch] = []
        for asked in ((numbers, texts), ((), (*numbers, *texts))):
            batches, n_bytes = [], 0
            for batch in self.parts(*asked, self.body, _TO_THE_END):
                batches.append(batch)
                n_bytes += batch.nbytes
                if len(batches) % _BATCHES_BETWEEN == 0:
                    # Compressed files may have any number; what is held is gone from what is free.
                    refuse_whole(n_bytes // 2, "its rows")
            # All as text where a cell is no number: how numbers are written is told by them all.
            if len({batch.schema for batch in batches}) < 2:
                break
        if not batches and _check_text(self.path)[1] < self.skip:
            raise InputError("has a header but no rows; a file needs at least one item")
        place, comma = partial(self.place, self.body), self.delimiter == ";"
        wanted = (*numbers, *texts)
        return Table.of_batches(batches, wanted, place, decimal_comma=comma, notes=self.notes)

    def parts(
        self, numbers: Collection[str], texts: Collection[str], start: int, stop: int
    ) -> Iterator[pa.RecordBatch]:
        """The rows that begin at these bytes, all as text from where a cell is no number on."""
        start_of_text = start if start > self.body else 0
        quotes, line_breaks, size = _check_text(self.path, start_of_text, stop)
        types = self._types(numbers, texts)
        block, rows, complete = _SMALL_BLOCK, 0, False
        while not complete:
            seen = 0
            try:
                for batch in self._pass(types, block, start, stop):
                    fresh = batch.slice(min(max(rows - seen, 0), len(batch)))
                    seen += len(batch)
                    rows += len(fresh)
                    yield fresh
                complete = True
            except pa.ArrowInvalid as error:
                # Once more, and on from where it stopped.
                if _NO_NUMBER in str(error):
                    types = dict.fromkeys(types, pa.string())
                elif "straddling" in str(error) and block < _BLOCK:
                    block = _BLOCK
                else:
                    self._refuse(error, size, start)
        if self.quoting and quotes and line_breaks > rows + self.skip:
            with self.stream() as stream:
                lines = io.TextIOWrapper(stream, "utf-8-sig", newline="")
                if stray := _stray_quote(lines, self.delimiter, self.width):
                    raise InputError(_STRAY.format(stray))
            if quotes % 2 == 0:
                return
            # Arrow takes all that follows an open quote as one cell.
            with self.stream() as stream:
                lines = io.TextIOWrapper(stream, "utf-8-sig", newline="")
                try:
                    deque(csv.reader(lines, delimiter=self.delimiter, strict=True), 0)
                except csv.Error:
                    raise InputError(
                        "has a double quote that is opened and never closed; close it, or write a "
                        'quote within a cell as ""'
                    ) from None

    def rows(self, texts: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Some columns as they are written, from the first row to the last, checked."""
        return self.parts((), texts, self.body, _TO_THE_END)

    def batches(self, numbers: Collection[str], texts: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Some columns from the first row on, some megabytes at a time, unchecked."""
        return self._pass(self._types(numbers, texts), _SMALL_BLOCK, self.body, _TO_THE_END)

    def place(self, start: int, row: int) -> str:
        """Where a person finds a row, counted from 0 among those that begin at byte `start`."""
        if start <= self.body:
            return f"row {rows_passed(row) + 1}{' after the header' * self.titled}"
        # Files with quotes are read from the body on: here every line is a row.
        with self.path.open("rb") as stream:
            stream.seek(start)
            lines = io.TextIOWrapper(stream, "utf-8", "replace")
            rows = (line for line in lines if line != "\n")
            found = next(itertools.islice(rows, row, None), "")
        return f"the row that begins with {quoted(found.strip())}"

    def _types(self, numbers: Collection[str], texts: Collection[str]) -> dict[str, pa.DataType]:
        """Position of a column -> the type that it is read as."""
        position = {name: str(i) for i, name in enumerate(self.names)}
        types = {position[name]: pa.string() for name in texts}
        return types | {position[name]: pa.float64() for name in numbers}

    def _pass(
        self, types: dict[str, pa.DataType], block: int, start: int, stop: int
    ) -> Iterator[pa.RecordBatch]:
        names = [self.names[int(i)] if int(i) < len(self.names) else "" for i in types]
        broken = BROKEN_ROWS.get()
        with self.stream() as stream:
            part = stream
            if self.plain:
                part = stream.get_stream(start, max(min(stop, stream.size()) - start, 0))
            else:
                while start and (chunk := stream.read(start)):
                    start -= len(chunk)
            options = {
                "read_options": pa.csv.ReadOptions(
                    # By position: names may be anything, and the header is ours to read.
                    column_names=[str(i) for i in range(self.width)],
                    block_size=block,
                    # Arrow reads ahead on threads of its own otherwise, where no code of Python
                    # should be called.
                    use_threads=False,
                ),
                "parse_options": pa.csv.ParseOptions(
                    delimiter=self.delimiter,
                    quote_char='"' if self.quoting else False,
                    newlines_in_values=self.quoting,
                    invalid_row_handler=None
                    if broken is None
                    else partial(self._pass_over, broken),
                ),
                "convert_options": pa.csv.ConvertOptions(
                    column_types=types,
                    include_columns=list(types),
                    null_values=list(MISSING_NUMBERS),
                    strings_can_be_null=False,
                ),
            }
            try:
                if block == _BLOCK:  # of which 32 ahead would be too much
                    reader = pa.csv.read_csv(part, **options).to_reader()
                else:
                    reader = pa.csv.open_csv(part, **options)
            except pa.ArrowInvalid as error:
                if "Empty CSV" not in str(error):
                    raise
                return
            with reader:
                for batch in reader:
                    yield pa.RecordBatch.from_arrays(list(map(as_written, batch.columns)), names)

    def _pass_over(self, broken: dict[str, int], row: Any) -> str:
        """Note a row of more or fewer cells, which Arrow then skips."""
        where = f"row {row.number}{' after the header' * self.titled}"
        broken[_RAGGED.format(row.expected_columns, where, row.actual_columns)] = row.number
        return "skip"

    def _refuse(self, error: pa.ArrowInvalid, size: int, start: int) -> NoReturn:
        """Say in our words what Arrow found in a text of rows that begin at byte `start`."""
        message = str(error)
        if "straddling" in message and size > _BLOCK:
            raise InputError(
                f"has a row of more than {_BLOCK >> 20} MB; look for a quote that is never closed, "
                "or drop the column with the long text"
            ) from None
        if "straddling" in message or "Empty CSV" in message:
            raise InputError("has a header but no rows; a file needs at least one item") from None
        ragged = re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", message)
        if ragged:
            number, columns, found = ragged.groups()
            row = "a row" if number is None else self.place(start, int(number) - 1)
            raise InputError(_RAGGED.format(columns, row, found)) from None
        raise InputError(f"cannot be read as CSV: {message}") from None


_RAGGED = "has {} columns, but {} has {}; look for a missing or an unquoted delimiter there"

NO_HEADER = "no-header"
"""What stands behind the `#` of the path of a file without a header."""


class _Row(NamedTuple):
    """A row of a text: its cells, its number from 1, and the bytes up to its end."""

    cells: list[str]
    number: int
    after: int


def open_delimited(path: File, name: str, *, header: bool = True) -> DelimitedFile:
    """Read the header of a CSV file, or name its columns c1, c2, ...; notes say what is skipped."""
    with byte_stream(path) as stream:
        head = stream.read(_HEADER)
    try:
        # Not final: the block may end in the middle of a character.
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError:
        _check_text(path)
        raise InputError("is not UTF-8; save it again as UTF-8") from None
    if "\0" in text:
        raise InputError("is not a text file (it holds zero bytes); save it as CSV in UTF-8")
    if len(head) == _HEADER and not re.search(r"[\r\n]", text):
        raise InputError(
            f"has a first row of more than {_HEADER >> 20} MB; it must name the columns"
        )
    lines = [line for line in text.splitlines()[:FRONT_ROWS] if line]
    signed = bool(lines) and lines[0].startswith(_SIGN) and _signed(lines)
    marked = not lines or (not signed and ("," in lines[0] or ";" in lines[0]))
    spaced = _SNIFFED.match(text) is not None or (
        not marked and _is_spaced(lines, whole=len(head) < _HEADER)
    )
    between = spaced and text.count(f"\n{_BETWEEN}") + text.startswith(_BETWEEN)
    start = len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) and not spaced else 0
    notes = (f"lines that begin with {_BETWEEN} are between documents: no items",)
    file = DelimitedFile(path, name, (), "\t", 0, start, 0, spaced, notes=notes if between else ())
    if _ARFF.match(text):
        return _declared(file, text)
    delimiters = ["\t"]
    if not spaced and not path.name.lower().endswith((".tsv", *(f".tsv{e}" for e in ENDINGS))):
        # The one that the header has most of, or a later row where lines of text come before.
        bare = [re.sub(r'"[^"]*"', "", line) for line in (*lines[:1], *lines[-2:-1])] or [""]
        delimiters = list(dict.fromkeys(max(_DELIMITERS, key=line.count) for line in bare))
    tried: list[tuple[list[_Row], int]] = []
    for delimiter in delimiters:
        rows = _first_rows(by_tabs(text) if spaced else text, delimiter, start)
        if len(head) == _HEADER and 1 < len(rows) <= SAMPLE_ROWS:
            rows.pop()  # it may be cut
        widths = {len(row.cells) for row in rows}
        plain = len(widths) == 1 and all(rows[0].cells)
        start_of_table = 0 if plain else table_start([row.cells for row in rows], header=header)
        tried.append((rows, start_of_table))
        if tried[-1][1] or (len(widths) == 1 and widths != {1}):
            break
    k = len(tried) - 1 if tried[-1][1] else 0
    rows, first = tried[k]
    file = replace(file, delimiter=delimiters[k])
    if not rows:
        raise InputError("has no header; the first row must name the columns")
    width = len(rows[first].cells)
    if '"' in text and (
        stray := _stray_quote(io.StringIO(text, newline=""), file.delimiter, width)
    ):
        whole = lines if len(head) < _HEADER else lines[:-1]
        if '"' in file.delimiter.join(rows[first].cells) or any(
            line.count(file.delimiter) != width - 1 for line in whole
        ):
            raise InputError(_STRAY.format(stray))
        note = f"double quotes are part of the cells: that of line {stray} is around no cell"
        file = replace(file, quoting=False, notes=(*file.notes, note))
    if first:
        last = quoted(file.delimiter.join(rows[first - 1].cells).strip(file.delimiter))
        where = f"{'line' if first == 1 else 'lines 1 to'} {rows[first - 1].number}"
        note = f"{where} before the table ({last} is the last): not read"
        file = replace(file, notes=(*file.notes, note))
    before = rows[first - 1] if first else _Row([], 0, start)
    row, below = rows[first], [one.cells for one in rows[first + 1 :]]
    native = any(map(NATIVE.fullmatch, row.cells))
    if header and not native and (declared := _declarations(below)):
        cells = zip(row.cells, *below[:declared], strict=False)
        said = [f"{quoted(name)}: {last}" for name, *_, last in cells if last]
        note = f"{declared} row{'s' * (declared > 1)} below the header say what the columns are"
        file = replace(file, notes=(*file.notes, f"{note} ({listed(said, 3)}): no items"))
        row = row._replace(number=row.number + declared, after=rows[first + declared].after)
        below = below[declared:]
    sample = below[:SAMPLE_ROWS]
    if not header:
        names: tuple[str, ...] = tuple(f"c{k + 1}" for k in range(len(row.cells)))
        return replace(
            file, names=names, skip=before.number, body=before.after, width=len(names), titled=False
        )
    if not native and (levels := header_levels([row.cells, *below])):
        joined, n = levels
        file = replace(file, notes=(*file.notes, f"{n} rows are names of columns, joined by _"))
        row = row._replace(cells=joined, number=row.number + n - 1, after=rows[first + n - 1].after)
        sample = below[n - 1 :][:SAMPLE_ROWS]
    texts: list[str] = as_written(pa.array([cell.strip() for cell in row.cells])).to_pylist()
    if texts[0].lstrip("#").strip():  # the mark of a comment
        texts[0] = re.sub(r"^#+\s+", "", texts[0])
    names = tuple(texts)
    if (
        sample
        and len(sample[0]) > len(names)
        and _has_row_names(names, sample, numbered=not spaced)
    ):
        names = ("", *names)
    widths = {len(cells) for cells in below}
    short = len(names) - max(widths, default=len(names))
    # What is said of the whole file behind the names.
    said = [name for name in names[len(names) - max(short, 0) :] if ":" in name or not name]
    if len(widths) == 1 < len(below) and 0 < short == len(said) and any(said):
        what = f"the header has {short} names more than any row has cells: no columns are"
        shown = listed(map(quoted, names[-short:]), 3)
        file = replace(file, notes=(*file.notes, f"{what} {shown}"))
        names = names[:-short]
    doubt = check_header(
        names, sample,
        "if the file has no header, say so, and its columns are called c1, c2, ...: "
        f"fewlabels doctor {shlex.quote(str(path))} --{NO_HEADER}",
    )  # fmt: skip
    file = replace(
        file, names=names, skip=row.number, body=row.after, width=len(names),
        notes=(*file.notes, *doubt),
    )  # fmt: skip
    if not names[-1] or (sample and len(sample[0]) > len(names)):
        file = _without_empty_columns(file, sample[0] if sample else [])
    times = Counter(file.names)
    if again := tuple(i for i, name in enumerate(file.names) if name and times[name] > 1):
        held = _contents(file, again, _stamp(path)) or {}
        names, again_notes = distinct_names(
            file.names, lambda i, j: i in held and j in held and held[i] == held[j]
        )
        file = replace(file, names=names, notes=(*file.notes, *again_notes))
    return file


def _first_rows(text: str, delimiter: str, start: int) -> list[_Row]:
    """The first rows that are not empty, up to one that cannot be parsed; more if widths differ."""
    after, seen, rows = start, 0, list[_Row]()
    lines = list(io.StringIO(text, newline=""))
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        for number, cells in enumerate(reader, 1):
            after += sum(len(line.encode()) for line in lines[seen : reader.line_num])
            seen = reader.line_num
            if cells:
                rows.append(_Row(cells, number, after))
            alike = len(rows) > SAMPLE_ROWS and len({len(row.cells) for row in rows}) == 1
            if alike or len(rows) > FRONT_ROWS:
                break
    except csv.Error as error:
        if not rows:
            raise InputError(f"has a header that cannot be read as CSV: {error}") from None
    return rows


_STRAY = (
    "the double quote of line {} opens a cell that swallows the rows below it; remove it, or write "
    'it as """" around the cell'
)


def _stray_quote(lines: Iterator[str], delimiter: str, width: int) -> int:
    """The first line whose quote swallows rows of the table into one cell; 0 where none does."""
    # Every line of such a row has the delimiters of a row, some line is within the cell as a whole,
    # and what the cell holds of columns with few kinds of values is of these kinds.
    kinds, seen, number = [set[str]() for _ in range(width)], 0, 0
    suspects: list[tuple[int, int, list[list[str]]]] = []
    for line in lines:
        number += 1
        if '"' not in line:
            if seen < FRONT_ROWS and line.count(delimiter) == width - 1:
                seen += 1
                for kind, cell in zip(kinds, line.rstrip().split(delimiter), strict=False):
                    kind.add(shape(cell))
            continue
        held = [line]
        try:
            row = next(csv.reader(_kept(lines, held), delimiter=delimiter))
        except csv.Error:
            break
        if len(held) > 2 and all(one.count(delimiter) == width - 1 for one in held):
            opened = next(k for k, cell in enumerate(row) if "\n" in cell or "\r" in cell)
            suspects.append((number, opened, [one.strip("\r\n").split(delimiter) for one in held]))
            if len(suspects) == SAMPLE_ROWS:
                break
        number += len(held) - 1
    few = [k for k in range(width) if 2 * len(kinds[k]) <= seen]
    for number, opened, cells in suspects:
        within = [
            shape(cells[i][k]) in kinds[k] for k in few if k != opened
            for i in range(k < opened, len(cells) - (k > opened))
        ]  # fmt: skip
        if within and all(within):
            return number
    return 0


def _kept(lines: Iterator[str], held: list[str]) -> Iterator[str]:
    """The line that is held and further ones as they are asked for, held too; "" is the end."""
    yield held[0]
    for line in lines:
        held.append(line)
        yield line
    held.append("")


_ARFF = re.compile(r"(?i)(?:\s*%.*\n)*\s*@relation\b")
_ATTRIBUTE = re.compile(r"""(?i)\s*@attribute\s+(?:'([^']*)'|"([^"]*)"|(\S+))""")


def _declared(file: DelimitedFile, text: str) -> DelimitedFile:
    """A file of ARFF, whose header declares the columns line by line."""
    names: list[str] = []
    body, lines = file.body, io.StringIO(text, newline="")
    for number, line in enumerate(lines, 1):
        body += len(line.encode())
        if found := _ATTRIBUTE.match(line):
            names.append(next(filter(None, found.groups()), ""))
        elif line.strip().lower() == "@data":
            first = next((line.strip() for line in lines if line.strip()), "")
            if first.startswith("{"):
                raise InputError(
                    f"is sparse ARFF (its first item is {quoted(first)}), which is not read; save "
                    "all values of every item (in WEKA the filter SparseToNonSparse), or CSV"
                )
            return replace(
                file, names=tuple(names), delimiter=",", skip=number, body=body, width=len(names)
            )
    raise InputError("is ARFF without a line @data; the rows of the table come after it")


def _declarations(rows: Sequence[Sequence[str]]) -> int:
    """How many first rows are no items: their cells declare types, roles or all values."""
    words = words_table().says["declares"]
    for n, row in enumerate(rows):
        below = rows[n + 1 :][:SAMPLE_ROWS]
        lists = 0
        cells = [(k, cell.strip()) for k, cell in enumerate(row) if cell.strip()]
        for k, cell in cells:
            values = {one[k].strip() for one in below[1:] if len(one) > k} - {"", "?"}
            each = {value.replace("\\", "") for value in re.split(r"(?<!\\)\s+", cell)}
            if cell.lower() in words and cell not in values:
                continue
            lists += 1
            if not (len(each) > 1 and values <= each):
                return n
        if len(cells) - lists < (2 if n == 0 else 1) or not below:
            return n
    return 0


def _has_row_names(
    names: Sequence[str], sample: Sequence[list[str]], *, numbered: bool = True
) -> bool:
    """Whether rows have a cell more than the header, as R writes their numbers or names."""
    wider = all(len(row) == len(names) + 1 for row in sample) and len(sample) > 1
    first = [row[0] for row in sample]
    if numbered:
        return wider and first in ([str(i + k) for i in range(len(first))] for k in (0, 1))
    return wider and len(set(first)) == len(first)


def _is_spaced(lines: Sequence[str], *, whole: bool) -> bool:
    """Whether the columns of a text are separated by spaces, or by them and by tabs."""
    lines = [line for line in lines if line.strip() and not line.startswith(_BETWEEN)]
    lines = lines[: SAMPLE_ROWS + 1]
    if len(lines) > 1 and _signed(lines):
        return True
    if len(lines) < 2 or any("," in line or ";" in line for line in lines):
        return False
    if len({line.count("\t") for line in lines}) == 1 and "\t" in lines[0]:
        return False
    if not whole and len(lines) <= SAMPLE_ROWS:
        lines = lines[:-1]  # the last one may be cut
    try:
        header, *rows = _by_spaces("\n".join(lines))
    except (csv.Error, ValueError):
        return False
    width = len(rows[0]) if rows else 0
    alike = width > 1 and all(len(row) == width for row in rows)
    return alike and (
        len(header) == width or (len(header) > 1 and _has_row_names(header, rows, numbered=False))
    )


def _by_spaces(text: str) -> list[list[str]]:
    """The cells of rows whose columns are separated by any number of spaces and tabs."""
    # Double quotes stand around cells where rows are of one width so. Where every line begins with
    # a sign of classes, what stands behind the class is one cell. Lines between documents are no
    # rows.
    lines = [line for row in text.splitlines() if (line := row.replace("\t", " ").strip())]
    lines = [line for line in lines if not line.startswith(_BETWEEN)]
    if _signed(lines):
        return [line.split(None, 1) for line in lines]
    plain = [line.split() for line in lines]
    with suppress(csv.Error):
        rows = list(csv.reader(lines, delimiter=" ", skipinitialspace=True, strict=True))
        alike = len(rows) == len(plain) and len({*map(len, rows[1:])}) == 1
        if alike or len({*map(len, plain[1:])}) > 1:
            return rows
    return plain


def _signed(lines: Sequence[str]) -> bool:
    """Whether every line is a class, as fastText writes it, and more behind it."""
    return all(re.match(rf"{_SIGN}\S+\s+\S", line) for line in lines)


_SIGN = "__label__"


_BETWEEN = "-DOCSTART-"
"""What CoNLL writes before a document."""

_SNIFFED = re.compile(
    r"(þ|[^\w\s\"',;])(?:(?!\1)[^\r\n])*\1(?!\1)([^\w\s\"]|[\x01-\x1f])\1[^\r\n]*\1\r?\n"
)
"""A first line in quotes other than the usual: the quote, and the delimiter."""


def _sniffed(text: str) -> list[list[str]] | None:
    """The cells of rows in quotes and with a delimiter that its first line shows; else None."""
    found = _SNIFFED.match(text)
    if found is None:
        return None
    lines = io.StringIO(text, newline="")
    return [row for row in csv.reader(lines, delimiter=found[2], quotechar=found[1]) if row]


def by_tabs(text: str) -> str:
    """A text whose columns are separated by spaces, or by signs that it shows, with tabs."""
    out = io.StringIO(newline="")
    rows = _sniffed(text) or _by_spaces(text)
    csv.writer(out, delimiter="\t", lineterminator="\n").writerows(rows)
    return out.getvalue()


def _without_empty_columns(file: DelimitedFile, row: Sequence[str]) -> DelimitedFile:
    """The file without columns at its end that have neither a name nor a cell, as sheets have."""
    named = len(file.names)
    while named and not file.names[named - 1]:
        named -= 1
    wider = len(row) > len(file.names) and not "".join(row[len(file.names) :]).strip()
    shorter = named <= len(row) < len(file.names)
    width = len(row) if wider or shorter else len(file.names)
    if not named or named == width == len(file.names):
        return file
    # With a column that has a name, as there may be none behind them.
    columns = tuple(range(named - 1, width))
    held = _contents(replace(file, width=width), columns, _stamp(file.path))
    filled = max((i + 1 for i in columns if held and held[i]), default=named)
    if held is None or filled > len(file.names):
        return file
    return replace(file, names=file.names[: max(filled, named)], width=width)


def _stamp(path: File) -> tuple[int, int, int]:
    """What tells when a file has changed."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


@lru_cache(64)
def _contents(
    file: DelimitedFile, columns: tuple[int, ...], stamp: tuple[int, int, int]
) -> dict[int, int] | None:
    """A hash of all cells of some columns, 0 where they are blank; None where rows differ."""
    # Kept, as a file is opened once for each of its parts.
    found, types = dict.fromkeys(columns, 0), {str(i): pa.string() for i in columns}
    try:
        for batch in file._pass(types, _BLOCK, file.body, _TO_THE_END):
            for i, column in zip(columns, batch.columns, strict=True):
                texts = column.to_pylist()
                if found[i] or any(map(str.strip, texts)):
                    found[i] = hash((found[i], *texts))
    except pa.ArrowInvalid:
        return None
    return found


def _check_text(path: File, start: int = 0, stop: int | None = None) -> tuple[int, int, int]:
    """Quotes, line breaks and size of the bytes [start, stop); what is not UTF-8 is refused."""
    quotes = line_breaks = size = 0
    decoder = codecs.getincrementaldecoder("utf-8")()
    with byte_stream(path) as stream:
        if start:
            stream.seek(start)
        left = _CHUNK if stop is None else stop - start
        inflation = Inflation(path, packed=True) if compression(path) is not None else None
        while chunk := stream.read(min(_CHUNK, left)):
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError as error:
                at = start + size + error.start - (len(error.object) - len(chunk))
                line = line_breaks + 1 + error.object[: error.start].count(b"\n")
                # Of a part of a file nobody knows how many lines come before it.
                where = f"at offset {at:,}" if start else f"in line {line}"
                raise not_utf8(error.object[error.start], f" {where}", path) from None
            quotes += chunk.count(b'"')
            line_breaks += chunk.count(b"\n")
            size += len(chunk)
            if inflation is not None:
                inflation.take(len(chunk))
            left -= 0 if stop is None else len(chunk)
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 (it ends within a character); save it again") from None
    return quotes, line_breaks, size
