"""Files whose right answer is known: computed here from the truth, or by another reader.

A table is made of labels, predictions, groups and weights; it is written in some format and some
odd way, and the answer of the command must be what numpy makes of the numbers. Mutated files are
read by csv, json, pyarrow, numpy or openpyxl: where the command answers, it saw what these see.
"""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
import re
import sys
import unicodedata
import warnings
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from openpyxl import Workbook, load_workbook
from openpyxl.styles import PatternFill
from pyarrow import feather

sys.path += [str(Path(__file__).resolve().parents[1] / room) for room in ("", "report")]
from page import Page

TESTS = Path(__file__).resolve().parents[1]

HOW = ("--method", "labeled", "--estimand", "sample", "--json", "-")


class Table(NamedTuple):
    """Labels (n,), None unknown; P(1) by classifier, None missing; hard ones; group and weight."""

    label: list[int | None]
    p: dict[str, list[float | None]]
    y: dict[str, list[int | None]]
    group: list[str] | None
    weight: list[float] | None

    def columns(self) -> dict[str, list[Any]]:
        """Columns by their native names."""
        out: dict[str, list[Any]] = {"label": list(self.label)}
        out |= {f"p__{name}__1": list(p) for name, p in self.p.items()}
        out |= {f"y__{name}": list(y) for name, y in self.y.items()}
        if self.group is not None:
            out["site"] = list(self.group)
        if self.weight is not None:
            out["weight"] = list(self.weight)
        return out

    def expected(self) -> dict[str, Any]:
        """What the JSON must say."""
        known = [i for i, label in enumerate(self.label) if label is not None]
        groups: dict[str | None, list[int]] = {None: known}
        for name in dict.fromkeys(self.group or ()):
            groups[f"site={name}"] = [i for i in known if (self.group or [])[i] == name]
        rows = []
        for group, items in groups.items():
            if not items:
                continue  # the values of all items are borrowed, which is said
            for model in (*self.p, *self.y):
                rows += [[model, m, group, v] for m, v in self._metrics(model, items).items()]
        return {"n_items": len(self.label), "n_labeled": len(known), "rows": rows}

    def _metrics(self, model: str, items: list[int]) -> dict[str, float]:
        given = self.p.get(model) or self.y[model]
        here = [i for i in items if given[i] is not None]
        if not here:
            return {}
        label = np.array([self.label[i] for i in here])
        value = np.array([given[i] for i in here], dtype=float)
        weight = np.array([1.0 if self.weight is None else self.weight[i] for i in here])
        # Of two equal probabilities the first class is the prediction.
        hard = (value > 0.5).astype(int) if model in self.p else value.astype(int)
        right = float((weight * (hard == label)).sum() / weight.sum())
        out = {"accuracy": right, "error_rate": 1 - right}
        if model in self.p:
            out["brier"] = float((weight * (value - label) ** 2).sum() / weight.sum())
            one, zero = label == 1, label == 0
            if one.any() and zero.any():
                above = value[one][:, None] - value[zero]
                pairs = weight[one][:, None] * weight[zero]
                area = (pairs * ((above > 0) + 0.5 * (above == 0))).sum() / pairs.sum()
                out["roc_auc"] = float(area)
        return out

    @property
    def metrics(self) -> str:
        """The metrics that are asked for."""
        return "accuracy,error_rate,brier,roc_auc" if self.p else "accuracy,error_rate"


# Tables, and odd ways to write them ---------------------------------------------------------------


@st.composite
def truths(draw: Any, *, gaps: bool = True, plain: bool = False) -> Table:
    """A table of both classes, of 8 to 40 rows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, share = int(rng.integers(8, 41)), rng.uniform(0.3, 0.7)
    truth = (rng.random(n) < share).astype(int)
    truth[:2], known = (0, 1), rng.random(n) < (rng.choice([0.6, 1.0]) if gaps else 1.0)
    known[:2] = True
    label = [int(t) if k else None for t, k in zip(truth, known, strict=True)]

    def column(make: Any, kind: type) -> list[Any]:
        values, there = make(), rng.random(n) >= (0.1 if gaps and rng.random() < 0.4 else 0)
        there[:2] = True
        return [kind(v) if t else None for v, t in zip(values, there, strict=True)]

    names = ["a", "b", "large model", "B-2", "über", "x.y"][int(rng.integers(3)) :]
    digits = int(rng.integers(1, 6))
    p = {
        name: column(
            lambda: np.round(
                np.clip(0.5 + 0.3 * (truth - 0.5) + rng.normal(0, 0.3, n), 0, 1), digits
            ),
            float,
        )
        for name in names[: int(rng.integers(1, 3))]
    }
    y = {
        name: column(lambda: np.where(rng.random(n) < 0.8, truth, 1 - truth), int)
        for name in names[2 : 2 + int(rng.integers(0, 2))]
    }
    extra = not plain
    group = rng.choice(["north", "south", "no, comma", 'the "old"'], n).tolist()
    weight = np.round(rng.uniform(0.5, 3, n), 2).tolist()
    return Table(
        label, p, y, group if extra and rng.random() < 0.5 else None,
        weight if extra and rng.random() < 0.3 else None,
    )  # fmt: skip


def _text(value: Any, comma: bool) -> str:
    text = "" if value is None else repr(value) if isinstance(value, float) else str(value)
    return text.replace(".", ",") if comma and isinstance(value, float) else text


def delimited(draw: Any, columns: dict[str, list[Any]]) -> bytes:
    """The columns as text, separated, quoted and encoded in some way."""
    mark = draw(st.sampled_from([",", ",", ";", "\t"]))
    comma = mark == ";" and draw(st.booleans())
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    names = draw(st.permutations(list(columns)))
    text = io.StringIO()
    writer = csv.writer(text, delimiter=mark, quoting=quoting, lineterminator=end)
    writer.writerow(names)
    writer.writerows(zip(*([_text(v, comma) for v in columns[n]] for n in names), strict=True))
    said = text.getvalue()
    if draw(st.booleans()):
        said = said.rstrip("\r\n")
    return said.encode(draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig"])))


def written(draw: Any, table: Table) -> tuple[str, bytes]:
    """The table in some format: name and content of the file."""
    columns = table.columns()
    kinds = ["csv", "csv", "csv.gz", "jsonl", "parquet", "feather"]
    if all(any(v is not None for v in row) for row in zip(*columns.values(), strict=True)):
        kinds.append("xlsx")  # a row of a sheet without anything in it is none
    if not table.y and table.group is None:
        kinds.append("npz")
    kind = draw(st.sampled_from(kinds))
    return f"f.{kind}", as_format(kind, columns, draw)


def as_format(kind: str, columns: dict[str, list[Any]], draw: Any = None) -> bytes:
    """Columns in a format."""
    out = io.BytesIO()
    if kind.startswith("csv") or kind == "tsv":
        if draw is None:
            text = io.StringIO()
            mark = "\t" if kind == "tsv" else ","
            writer = csv.writer(text, delimiter=mark, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(
                [_text(v, False) for v in row] for row in zip(*columns.values(), strict=True)
            )
            content = text.getvalue().encode()
        else:
            content = delimited(draw, columns)
        return gzip.compress(content, mtime=0) if kind.endswith("gz") else content
    if kind == "xlsx":
        return workbook(draw, columns)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if kind == "jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    if kind == "json":
        return json.dumps(rows).encode()
    if kind == "npz":
        label = [-1 if v is None else v for v in columns["label"]]
        p = [columns[c] for c in columns if c.startswith("p__")]
        names = [c[3:-3] for c in columns if c.startswith("p__")]
        said = {"probabilities": np.array(p, dtype=float).T, "labels": np.array(label)}
        said |= {"models": np.array(names)} | (
            {"weight": np.array(columns["weight"])} if "weight" in columns else {}
        )
        np.savez(out, **said)
        return out.getvalue()
    made = pa.table(columns)
    if kind == "parquet":
        pq.write_table(made, out)
    else:
        feather.write_feather(made, out)
    return out.getvalue()


FORMATS = (
    "General", "0%", "0.00E+00", '"day" 0.0', "[Red]0.0", "0.0_);(0.0)", "# ?/?", "0.0\\d", "@",
    'General;"d"', "#,##0.00 [$€-407]", "[>1]0;General",
)  # fmt: skip
"""Of numbers that are numbers, though some hold the letters of dates."""

DATES = ("yyyy-mm-dd", "h:mm", "[h]:mm", "mm", "[$-409]d mmm")


def workbook(draw: Any, columns: dict[str, list[Any]]) -> bytes:
    """The columns as the only table of a workbook: below and beside empty cells, with notes.

    Numbers have formats, are texts, or are what a formula gave when the workbook was saved.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    book = Workbook()
    sheet = book.active
    sheet.title = str(rng.choice(["Sheet1", "My data & more", "<ü>"]))
    if rng.random() < 0.2:
        book.epoch = datetime.datetime(1904, 1, 1)
    down, right = (int(k) for k in rng.integers(0, 3, 2) * (rng.random() < 0.4))
    odd = rng.random() < 0.7
    formulas: dict[tuple[int, int], str] = {}
    for k, (name, values) in enumerate(columns.items()):
        sheet.cell(down + 1, right + k + 1, name)
        for i, value in enumerate(values):
            cell = sheet.cell(down + i + 2, right + k + 1)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            how = rng.choice(["plain", "format", "text", "formula"], p=[0.7, 0.1, 0.1, 0.1])
            if odd and number and how == "text":
                value = repr(value)
            elif odd and number and how == "formula":
                formulas[i, k] = f"<v>{value!r}</v>"
                value = f"={value!r}+0"
            elif odd and number and how == "format":
                cell.number_format = str(rng.choice(FORMATS))
            elif odd and value is None and rng.random() < 0.3:
                cell.fill = PatternFill("solid", fgColor="FFFF00")
            elif odd and value is None and rng.random() < 0.3:
                value = str(rng.choice(["#N/A", "#DIV/0!"]))
            cell.value = value
    if rng.random() < 0.3:
        notes = book.create_sheet("Notes", int(rng.integers(0, 2)))
        notes.append(["made in May"])
        notes.append(["by us"])
        notes.sheet_state = str(rng.choice(["visible", "hidden", "veryHidden"]))
    if rng.random() < 0.2:
        end = down + len(next(iter(columns.values()))) + 3
        sheet.merge_cells(start_row=end, end_row=end + 1, start_column=1, end_column=2)
    out = io.BytesIO()
    book.save(out)
    values_of = (formulas[place] for place in sorted(formulas))  # as they stand: row by row
    return with_part(
        out.getvalue(), f"sheet{1 + book.worksheets.index(sheet)}.xml",
        lambda part: re.sub(rb"<v ?/>", lambda _: next(values_of).encode(), part),
    )  # fmt: skip


def with_part(content: bytes, end: str, changed: Callable[[bytes], bytes]) -> bytes:
    """A zip archive with the members of such an end changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            new.writestr(zipfile.ZipInfo(name), changed(part) if name.endswith(end) else part)
    return out.getvalue()


# What another reader sees of mutated files --------------------------------------------------------


def seen_by_others(name: str, content: bytes) -> Table | None:
    """The table as csv, json, pyarrow, numpy or openpyxl reads it; None where it is not plain."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # A number that no date has: readers of workbooks differ in what they make of it.
            warnings.filterwarnings("error", "Cell .* outside the limits for dates")
            return _as_table(_columns(name, content))
    except Exception:  # whatever these readers raise: they do not see a table
        return None


def _columns(name: str, content: bytes) -> dict[str, list[Any]]:
    if name.endswith(".gz"):
        name, content = name[:-3], gzip.decompress(content)
    if name.endswith((".csv", ".tsv")):
        mark = "\t" if name.endswith("tsv") else ","
        header, *rows = csv.reader(io.StringIO(content.decode(), newline=""), delimiter=mark)
        rows = [row for row in rows if row]
        if any(len(row) != len(header) for row in rows) or len(set(header)) < len(header):
            raise ValueError("ragged")
        return {c: [row[i] for row in rows] for i, c in enumerate(header)}
    if name.endswith("jsonl"):
        return _of_records([json.loads(line) for line in content.decode().split("\n") if line])
    if name.endswith("json"):
        return _of_records(json.loads(content))
    if name.endswith("xlsx"):
        return _of_workbook(content)
    if name.endswith("npz"):
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {n: file[n] for n in file.files}
        known, given = arrays["labels"], arrays["probabilities"]
        out = {"label": [None if v == -1 else v for v in known.tolist()]}
        for j, model in enumerate(arrays["models"].tolist()):
            out[f"p__{model}__1"] = [None if v != v else v for v in given[:, j].tolist()]
        return out
    table = (
        pq.read_table(io.BytesIO(content))
        if name.endswith("parquet")
        else feather.read_table(io.BytesIO(content))
    )
    return dict(table.to_pydict())


def _of_records(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    names = list(rows[0])
    if any(list(row) != names for row in rows):
        raise ValueError("records of other keys")
    return {name: [row[name] for row in rows] for name in names}


def _of_workbook(content: bytes) -> dict[str, list[Any]]:
    """The only sheet with a table, without the empty cells around it; errors are empty cells."""
    tables = []
    for sheet in load_workbook(io.BytesIO(content), data_only=True).worksheets:
        cells = [
            [None if c.data_type == "e" or c.value == "" else c.value for c in row]
            for row in sheet.iter_rows()
        ]
        rows = [row for row in cells if any(_is_there(value) for value in row)]
        across = [k for k in range(sheet.max_column) if any(row[k] is not None for row in rows)]
        if len(rows) > 1 and len(across) > 1:
            tables.append([[row[k] for k in across] for row in rows])
    ((header, *rows),) = tables
    if sum(value is not None for value in rows[-1]) < 2:
        raise ValueError("the last row may be a note below the table")
    names = ["" if name is None else _group(name).strip() for name in header]
    named = {name: [row[k] for row in rows] for k, name in enumerate(names) if name}
    if len(named) + names.count("") < len(names):
        raise ValueError("two columns of one name")
    return named


def _is_there(value: Any) -> bool:
    """Whether a cell holds anything: white space alone is nothing."""
    return value is not None and (not isinstance(value, str) or bool(value.strip()))


def _group(value: Any) -> str:
    """The name of a group, as text says it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        return (value.date() if value.time() == datetime.time() else value).isoformat()
    if isinstance(value, datetime.time | datetime.timedelta):
        return str(value)
    if isinstance(value, int | float):
        return str(int(value)) if value == int(value) else repr(value)
    if not isinstance(value, str):
        raise ValueError(value)
    return value if value.strip() else "null"


def _as_table(columns: dict[str, list[Any]]) -> Table:
    group = [_group(v) for v in columns.pop("site")] if "site" in columns else None
    label = [_number(v, (0, 1)) for v in columns.pop("label")]
    native = [(c, match[1]) for c in columns if (match := re.fullmatch("p__(.+)__1", c, re.DOTALL))]
    p = {model: [_number(v) for v in columns[c]] for c, model in native}
    if len(p) != len(columns) or not p:
        raise ValueError("other columns")
    for values in p.values():
        if any(v is not None and not 0 <= v <= 1 for v in values):
            raise ValueError("no probability")
    if {v for v in label if v is not None} != {0, 1}:
        raise ValueError("other classes")
    return Table([None if v is None else int(v) for v in label], p, {}, group, None)


def _number(value: Any, among: tuple[int, ...] | None = None) -> float | None:
    """A number in its plainest form, or None for nothing."""
    if value in (None, ""):
        return None
    if isinstance(value, str):
        if not value.replace(".", "", 1).isdigit() or not value.isascii():
            raise ValueError(value)
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(value)
    number = float(value)
    if among is not None and number not in among:
        raise ValueError(value)
    return number


# Names, and what is shown and written -------------------------------------------------------------

_FORMULA = re.compile(r"(?!^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?%?$)^[=+\-@\t\r\n＝＋－＠]", re.I)
_COMMAND = re.compile(r"^\s*(::.*)|(##(?:\[|vso\[).*)", re.MULTILINE)
_CONTROLS = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = set("\n\u200b\u200c\u200d")


def live(shown: str, secret: str) -> str | None:
    """What of a text for a terminal, or of the files in this folder, is more than text, if any.

    That is a secret, a control, a line that is a command to a CI, a formula in a table.
    """
    texts = {"the output": shown}
    texts |= {str(path): path.read_text("utf-8", "replace") for path in Path().iterdir()
              if path.is_file() and not path.is_symlink()}  # fmt: skip
    told = next((f"a secret in {name}" for name, text in texts.items() if secret in text), None)
    if told or shown.lstrip().startswith(("{", "**")):  # JSON and Markdown, which are asked for
        return told
    controls = {c for c in shown if unicodedata.category(c) in _CONTROLS} - _JOINERS
    if controls:
        return f"controls are shown: {controls!a}"
    if command := _COMMAND.search(shown):
        return f"a command to a CI: {command[0]!a}"
    for table in ("o.csv", "p.csv"):
        for cell in (c for row in csv.reader(io.StringIO(texts.get(table, ""), "")) for c in row):
            if _FORMULA.match(cell):
                return f"a formula in {table}: {cell!a}"
    return None


def made_of() -> set[str]:
    """Elements, attributes and kinds of marks of the pages in this folder; the JSON's values."""
    found = set[str]()
    for path in filter(Path.exists, map(Path, ("o.html", "o.md", "o.xml", "o.json"))):
        text = path.read_text("utf-8")
        if path.suffix == ".html":
            found |= {f"<{tag} {a}>" for tag, named in Page(text).elements for a in ("", *named)}
        elif path.suffix == ".xml":
            elements = ElementTree.fromstring(text).iter()
            found |= {f"<{e.tag} {a}>" for e in elements for a in ("", *e.attrib)}
        elif path.suffix == ".md":
            blocks = MarkdownIt().enable(["table", "strikethrough"]).parse(text)
            found |= {t.type for block in blocks for t in (block, *(block.children or ()))}
        else:
            rows = json.loads(text).get("estimates", [])
            found.add(str([(r["metric"], r["value"] and round(r["value"], 9)) for r in rows]))
    return found


ROLES = ("model", "class", "group", "column", "item", "file")
"""What may be called oddly."""


def named(text: str, roles: Iterable[str], counts: bool = False) -> tuple[bytes, dict[str, str]]:
    """A table in which what plays these roles is called so, and what is called how."""
    called = {role: text if role in roles else "plain" for role in ROLES}
    rng, n = np.random.default_rng(0), 48
    truth, one, model = rng.random(n) < 0.5, called["class"], called["model"]
    p, by = np.round(0.3 + 0.4 * truth + 0.25 * rng.random(n), 3), f"{called['column']} by"
    table: dict[str, Any] = {"item": [f"{called['item']} {i}" for i in range(n)]}
    table |= {"label": [None if i > 35 else one if t else "other" for i, t in enumerate(truth)]}
    table |= {f"p__{model}__{one}": p, f"p__{model}__other": 1 - p}
    table |= {f"y__{model} 2": [one if t else "other" for t in rng.permutation(truth)]}
    table |= {by: [f"{called['group']} {i % 2}" for i in range(n)]}
    table |= {"day": [f"2026-09-0{1 + i // 24}" for i in range(n)]}
    table |= {f"h__{one}": 1 + 4 * truth, "h__other": 5 - 4 * truth} if counts else {}
    pq.write_table(pa.table(table), out := io.BytesIO())
    file = f"{called['file']}.parquet".replace("/", "_").replace("\0", "_")[-200:]
    return out.getvalue(), {"BY": by, "CLASS": one, "MODEL": model, "FILE": file}
