"""Areas whose right answer is computed here: several classes, votes, counts, copies, maps, arrays.

A case is files, arguments, and what the answer must be: rows of estimates, values of the JSON by
their path, or the columns of the files that are written, read here by csv and pyarrow.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from oracles import HOW, Table, as_format, truths
from pyarrow import feather
from sklearn import metrics as sk

from fewlabels.data.label_record import key_hash, keys_digest

Columns = dict[str, list[Any]]


class Case(NamedTuple):
    """Files by name, arguments, what is expected, the files that may be written, and the
    exit code, None where the file may be refused."""

    files: dict[str, bytes]
    arguments: list[str]
    expected: dict[str, Any]
    outputs: tuple[str, ...] = ()
    code: int | None = 0


def wrong_answer(out: str, expected: dict[str, Any]) -> str | None:
    """What of the JSON, or of the files in the working folder, is wrong; None if nothing."""
    found = json.loads(out) if out.lstrip().startswith("{") else {}
    said = [([name], expected[name]) for name in ("n_items", "n_labeled") if name in expected]
    for path, value in [*said, *expected.get("said", [])]:
        got = found
        for key in path:
            got = got[key]
        if not _same(got, value):
            return f"{path} is {got}, not {value}"
    rows = {(r["model"], r["metric"], r["group"]): r["value"] for r in found.get("estimates", [])}
    for model, metric, group, value in expected.get("rows", []):
        got = rows.get((model, metric, group))
        if got is None or not _same(got, value):
            return f"{metric} of {model} in {group} is {got}, not {value}"
    for name, columns in expected.get("files", {}).items():
        wrong = _wrong_file(name, columns)
        if wrong is not None:
            return f"{name}: {wrong}"
    return None


def _wrong_file(name: str, columns: Columns) -> str | None:
    if name.endswith(".parquet"):
        seen = pq.read_table(name).to_pydict()
    else:
        with open(name, encoding="utf-8", newline="") as file:
            names, *rows = csv.reader(file)
        seen = {c: [row[j] for row in rows] for j, c in enumerate(names)}
    if set(seen) != set(columns):
        return f"columns are {sorted(seen)}, not {sorted(columns)}"
    for column, values in columns.items():
        if len(seen[column]) != len(values):
            return f"{len(seen[column])} rows, not {len(values)}"
        for row, (got, value) in enumerate(zip(seen[column], values, strict=True)):
            if not _same(got, value):
                return f"{column!r} in row {row + 1} is {got!r}, not {value!r}"
    return None


def _same(got: Any, value: Any) -> bool:
    """Whether a cell, or a value of JSON, is the expected one; numbers to nine digits."""
    if value is None:
        return got is None or got == ""
    if isinstance(value, list):
        return len(got) == len(value) and all(map(_same, got, value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return math.isclose(float(got), value, rel_tol=1e-9, abs_tol=1e-9)
        except (TypeError, ValueError):
            return False
    return bool(got == value or (isinstance(got, int) and str(got) == value))


# Several classes ----------------------------------------------------------------------------------

NAMES = (
    ("cat", "dog", "hen"), ("0", "1", "2"), ("neg", "neutral", "pos"), ("A", "B", "C", "D"),
    ("a b", "c, d", 'e "f"'), ("1", "2", "10"), ("über", "žluťoučký"), ("no", "yes"), ("0", "1"),
)  # fmt: skip
"""Classes in the order that a file of them has: by number, else by letter."""


class Items(NamedTuple):
    """Classes (K,), truths, P (n, M, K), hard predictions (n,), and which labels are known."""

    classes: tuple[str, ...]
    truth: np.ndarray
    p: np.ndarray
    hard: np.ndarray
    known: np.ndarray
    rng: np.random.Generator

    @property
    def label(self) -> list[str | None]:
        """Labels as a file has them."""
        return [self.classes[t] if k else None for t, k in zip(self.truth, self.known, strict=True)]

    def probabilities(self, *, j: int = 0, model: str = "m") -> Columns:
        """The columns of a classifier."""
        return {f"p__{model}__{c}": self.p[:, j, k].tolist() for k, c in enumerate(self.classes)}

    def votes(self) -> list[str]:
        """Hard predictions as texts."""
        return [self.classes[v] for v in self.hard]


@st.composite
def items(draw: Any, most_classes: int = 4, fewest: int = 12) -> Items:
    """Items of two to four classes, each of which is among the known labels."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    classes = draw(st.sampled_from([names for names in NAMES if len(names) <= most_classes]))
    n, k = int(rng.integers(fewest, 40)), len(classes)
    truth = rng.permutation(np.concatenate([np.arange(k), rng.integers(k, size=n - k)]))
    known = rng.random(n) < rng.choice([0.6, 1.0])
    known[[int(np.flatnonzero(truth == c)[0]) for c in range(k)]] = True
    # Whole thousandths, of which all rows sum to 1, and none is 0.
    counts = 1 + np.stack(
        [rng.multinomial(1000 - k, rng.dirichlet(0.7 + 2 * np.eye(k)[t], 2)) for t in truth]
    )
    hard = np.where(rng.random(n) < 0.7, truth, rng.integers(k, size=n))
    return Items(classes, truth, counts / 1000, hard, known, rng)


@st.composite
def several_classes(draw: Any) -> Case:
    """Metrics of many classes, as scikit-learn has them."""
    of = draw(items())
    weight = np.round(of.rng.uniform(0.5, 3, len(of.truth)), 2) if draw(st.booleans()) else None
    columns: Columns = {"label": of.label, **of.probabilities(), "y__v": of.votes()}
    if weight is not None:
        columns["weight"] = weight.tolist()
    kind = draw(st.sampled_from(["csv", "csv", "jsonl", "json", "parquet", "feather", "tsv"]))
    asked = "accuracy,balanced_accuracy,recall,precision,f1,log_loss,brier,cohen_kappa,mcc"
    return Case(
        {f"f.{kind}": as_format(kind, columns)},
        ["estimate", f"f.{kind}", *HOW, "--metrics", asked],
        {"n_items": len(of.truth), "n_labeled": int(of.known.sum()),
         "said": [[["classes"], list(of.classes)]], "rows": _rows(of, weight)},
    )  # fmt: skip


def _rows(of: Items, weight: np.ndarray | None) -> list[Any]:
    at, k = np.flatnonzero(of.known), len(of.classes)
    truth, w = of.truth[at], None if weight is None else weight[at]
    p = of.p[at, 0]
    rows: list[Any] = [
        ["m", "log_loss", None, sk.log_loss(truth, p, sample_weight=w, labels=range(k))],
        ["m", "brier", None,
         float(np.average(((p - np.eye(k)[truth]) ** 2).sum(1) / (2 if k == 2 else 1), weights=w))],
    ]  # fmt: skip
    for model, hard in (("m", p.argmax(1)), ("v", of.hard[at])):
        of_all = [
            ("accuracy", sk.accuracy_score(truth, hard, sample_weight=w)),
            ("balanced_accuracy", sk.balanced_accuracy_score(truth, hard, sample_weight=w)),
        ]
        if len(set(hard.tolist())) == k:  # else precision is undefined of a class
            how = {"sample_weight": w, "average": "binary" if k == 2 else "macro"}
            of_all += [
                ("recall", sk.recall_score(truth, hard, **how)),
                ("precision", sk.precision_score(truth, hard, **how)),
                ("f1", sk.f1_score(truth, hard, **how)),
                ("cohen_kappa", sk.cohen_kappa_score(truth, hard, sample_weight=w)),
                ("mcc", sk.matthews_corrcoef(truth, hard, sample_weight=w)),
            ]
        rows += [[model, name, None, float(value)] for name, value in of_all]
    return rows


@st.composite
def in_parts(draw: Any) -> Case:
    """Tables of two classes read in parts: groups, weights and gaps, also from a folder."""
    table = draw(truths())
    columns = table.columns()
    kind = draw(st.sampled_from(["csv", "parquet"]))
    by = ["--by", "site"] if table.group is not None else []
    cuts = sorted(draw(st.sets(st.integers(2, len(table.label) - 1), max_size=2)))
    files = {
        f"d/{k}.{kind}": _part({c: v[a:b] for c, v in columns.items()}, kind)
        for k, (a, b) in enumerate(zip([0, *cuts], [*cuts, len(table.label)], strict=True))
    }
    how = [*HOW[:2], *HOW[4:], "--metrics", table.metrics, "--engine", "threads"]
    return Case(files, ["estimate", "d", *how, *by], table.expected())


def _part(columns: Columns, kind: str) -> bytes:
    if kind == "parquet":
        types = {"label": pa.int64(), "site": pa.string(), "weight": pa.float64()}
        types |= {c: pa.float64() if c[0] == "p" else pa.int64() for c in columns if c[1] == "_"}
        out = io.BytesIO()
        pq.write_table(pa.table({c: pa.array(v, types[c]) for c, v in columns.items()}), out)
        return out.getvalue()
    return as_format(kind, columns)


# Odd cells and types ------------------------------------------------------------------------------

WORDS = (("0", "1"), ("0.0", "1.0"), ("no", "yes"), ("False", "True"), ("ham", "spam"), ("N", "Y"))
MISSING = ("", "NA", "N/A", "nan", "NULL", "null", "None", "<NA>")
FORMS: tuple[Callable[[float], str], ...] = (
    repr, lambda v: f" {v} ", lambda v: f"{v:.6e}", lambda v: f"{v:+.5f}",
    lambda v: f"{v:.7f}".lstrip("0"), lambda v: f"{v:.9f}",
)  # fmt: skip
"""Ways to write a number of up to five digits."""


@st.composite
def odd_cells(draw: Any) -> Case:
    """Text of a table with numbers, labels and gaps in many forms, blank lines, other encodings."""
    table = draw(truths())
    words = draw(st.sampled_from(WORDS))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    forms = draw(st.lists(st.sampled_from(FORMS), min_size=1, max_size=2))
    shares = draw(st.integers(0, 5)) == 0
    gap = draw(st.sampled_from(MISSING))

    def cell(column: str, value: Any) -> str:
        if value is None:
            return gap
        if column == "label" or column.startswith("y__"):
            return words[value]
        if isinstance(value, str):
            return value
        if shares and column.startswith("p__"):
            return f"{100 * value:.5f}%"
        return forms[int(rng.integers(len(forms)))](value)

    suffix = words[1].removesuffix(".0")
    columns = {
        (f"{c[:-3]}__{suffix}" if c.startswith("p__") else c): [cell(c, v) for v in values]
        for c, values in table.columns().items()
    }
    columns = {c: columns[c] for c in draw(st.permutations(list(columns)))}
    if draw(st.booleans()):
        columns["comment"] = [rng.choice(["x", "two\nlines", 'a "b"', ""]) for _ in table.label]
    text = io.StringIO()
    mark = draw(st.sampled_from([",", ",", ";", "\t"]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    writer = csv.writer(text, delimiter=mark, lineterminator=end)
    extra = [""] * draw(st.sampled_from([0, 0, 1, 3]))
    writer.writerow([*columns, *extra])
    blank = draw(st.sampled_from([0, 0, 0.2]))
    for row in zip(*columns.values(), strict=True):
        writer.writerow([*row, *extra])
        if rng.random() < blank:
            text.write(end)
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le"]))
    content = text.getvalue().encode(encoding)
    kind, pack = draw(st.sampled_from(sorted(PACKED.items())))
    by = ["--by", "site"] if table.group is not None else []
    return Case(
        {f"f.csv{kind}": pack(content)},
        ["estimate", f"f.csv{kind}", *HOW, "--metrics", table.metrics, *by],
        table.expected(), code=None,
    )  # fmt: skip


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": lambda content: gzip.compress(content, mtime=0),
    ".bz2": bz2.compress,
    ".zst": lambda content: pa.compress(content, "zstd", asbytes=True),
}

NUMBERS = (pa.float64(), pa.float32(), pa.float16(), pa.decimal128(9, 6), pa.string())
WHOLE = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64(), pa.float32()),
    *(pa.float64(), pa.bool_(), pa.string(), pa.large_string(), pa.decimal128(5, 2)),
    *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.int64())),
)
TEXTS = (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int16(), pa.string()))


@st.composite
def odd_types(draw: Any) -> Case:
    """Parquet and Feather with any types of columns, in several pieces."""
    table = draw(truths())
    numbers, whole, texts = (draw(st.sampled_from(of)) for of in (NUMBERS, WHOLE, TEXTS))

    def column(name: str, values: list[Any]) -> pa.Array:
        hard = name == "label" or name.startswith("y__")
        kind = whole if hard else numbers if name.startswith("p__") else pa.float64()
        return _cast(values, texts if name == "site" else kind)

    columns = {n: column(n, v) for n, v in table.columns().items()}
    if pa.types.is_boolean(whole):
        named = {n: f"{n[:-3]}__true" if n.startswith("p__") else n for n in columns}
        columns = {named[n]: values for n, values in columns.items()}
    seen = {m: _cast(v, numbers).to_pylist() for m, v in table.p.items()}
    seen = {m: [None if v is None else float(v) for v in q] for m, q in seen.items()}
    made, out = pa.table(columns), io.BytesIO()
    size = draw(st.sampled_from([3, 1000]))
    kind = draw(st.sampled_from(["parquet", "feather"]))
    if kind == "parquet":
        pq.write_table(made, out, row_group_size=size)
    else:
        feather.write_feather(made, out, chunksize=size)
    by = ["--by", "site"] if table.group is not None else []
    parts = ["--engine", "threads"] if kind == "parquet" and draw(st.booleans()) else []
    how = [*HOW[:2], *HOW[4:]] if parts else HOW
    return Case(
        {f"f.{kind}": out.getvalue()},
        ["estimate", f"f.{kind}", *how, "--metrics", table.metrics, *by, *parts],
        table._replace(p=seen).expected(), code=None,
    )  # fmt: skip


def _cast(values: list[Any], to: pa.DataType) -> pa.Array:
    """Values as a column of the type."""
    if pa.types.is_dictionary(to):
        return _cast(values, to.value_type).dictionary_encode().cast(to)
    made = {"decimal": lambda value: Decimal(str(value)), "bool": bool, "halffloat": np.float16}
    kind = next((make for name, make in made.items() if str(to).startswith(name)), None)
    kind = str if "string" in str(to) else kind
    return pa.array([v if v is None or kind is None else kind(v) for v in values], to)


@st.composite
def odd_arrays(draw: Any) -> Case:
    """NPZ with other types, byte orders and layouts, compressed or not."""
    table = draw(truths())._replace(y={}, group=None)
    of_p = draw(st.sampled_from(["<f8", ">f8", "<f4", ">f4", "<f2"]))
    of_label = draw(st.sampled_from(["<i8", ">i8", "<i2", ">i4", "i1", "<f8", ">f4"]))
    p = np.array([[np.nan if v is None else v for v in q] for q in table.p.values()]).T.astype(of_p)
    two = draw(st.booleans())
    given = np.stack([1 - p.astype(float), p.astype(float)], -1) if two else p
    if not two and draw(st.booleans()):
        given = np.asfortranarray(given)
    label = np.array([-1 if v is None else v for v in table.label]).astype(of_label)
    said = {"probabilities": given, "labels": label, "models": np.array(list(table.p))}
    if table.weight is not None:
        said["weight"] = np.array(table.weight).astype(draw(st.sampled_from(["<f8", ">f8"])))
    out = io.BytesIO()
    (np.savez_compressed if draw(st.booleans()) else np.savez)(out, **said)
    seen = {m: [None if v is None else float(q) for v, q in zip(table.p[m], p[:, j], strict=True)]
            for j, m in enumerate(table.p)}  # fmt: skip
    return Case(
        {"f.npz": out.getvalue()}, ["estimate", "f.npz", *HOW, "--metrics", table.metrics],
        table._replace(p=seen).expected(), code=None,
    )  # fmt: skip


GROUPS: tuple[tuple[Any, ...], ...] = (
    (1, 2, 3), (0.5, 1.5, 2.0), (True, False), ("1", "01", "1.0"), ("x", "X", "x "),
    ("a=b", "a", "="), ("null", "x"), ("é", "e\u0301"), ("-1", "1"),
    ("2026-01-01", "2026-01-02"), ("0x1", "1e0"),
)  # fmt: skip


@st.composite
def odd_groups(draw: Any) -> Case:
    """Several groups of odd values, with gaps; and the domain."""
    table = draw(truths(plain=True))
    columns, n = table.columns(), len(table.label)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    by = {}
    for name in draw(st.permutations(["g", "domain", "my group", "G"]))[: draw(st.integers(1, 3))]:
        among = [*draw(st.sampled_from(GROUPS)), *draw(st.sampled_from([[], [], [None]]))]
        by[name] = [among[int(j)] for j in rng.integers(len(among), size=n)]
    kind = draw(st.sampled_from(["jsonl", "parquet", "csv"]))
    rows = list(table.expected()["rows"])
    for name, values in by.items():
        texts = [_group(v, kind) for v in values]
        for text in dict.fromkeys(texts):
            some = [i for i, t in enumerate(texts) if t == text]
            own = table._replace(
                label=[table.label[i] for i in some],
                p={m: [v[i] for i in some] for m, v in table.p.items()},
                y={m: [v[i] for i in some] for m, v in table.y.items()},
            )
            if any(v is not None for v in own.label):
                of_all = [row for row in own.expected()["rows"] if row[2] is None]
                rows += [[m, metric, f"{name}={text}", v] for m, metric, _, v in of_all]
    options = [word for name in by for word in ("--by", name)]
    return Case(
        {f"f.{kind}": as_format(kind, columns | by)},
        ["estimate", f"f.{kind}", *HOW, "--metrics", table.metrics, *options],
        table.expected() | {"rows": rows},
    )  # fmt: skip


def _group(value: Any, kind: str) -> str:
    """The text of a group: 1.0 is 1 where it is a number."""
    if value is None or value == "":
        return "null"
    if isinstance(value, bool):
        return str(value) if kind == "csv" else str(value).lower()
    if isinstance(value, float) and value == int(value) and kind != "csv":
        return str(int(value))
    return str(value)


ODD_NAMES = (
    "a__b",
    "a",
    "A",
    "p__x",
    "y",
    "a b",
    "1",
    "label",
    "\u00e9",
    "e\u0301",
    "__",
    "m=n",
    "-m",
)


@st.composite
def odd_names(draw: Any) -> Case:
    """Classifiers and classes of odd names in native columns."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    table = draw(truths(plain=True))._replace(y={})
    names = draw(st.lists(st.sampled_from(ODD_NAMES), min_size=2, max_size=3, unique=True))
    n = len(table.label)
    p = {m: np.round(rng.random(n), 4).tolist() for m in names[1:]}
    y = {names[0]: rng.integers(2, size=n).tolist()}
    table = table._replace(p=p, y=y)
    kind = draw(st.sampled_from(["csv", "jsonl", "parquet", "feather"]))
    return Case(
        {f"f.{kind}": as_format(kind, table.columns())},
        ["estimate", f"f.{kind}", *HOW, "--metrics", table.metrics],
        table.expected(), code=None,
    )  # fmt: skip


@st.composite
def late(draw: Any) -> Case:
    """A megabyte or more of text, in which other forms of cells come late, whole and in parts."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, size = 6_000, draw(st.sampled_from([20, 300]))
    truth = rng.integers(2, size=n)
    p = np.round(np.clip(0.3 + 0.4 * truth + rng.normal(0, 0.2, n), 0, 1), 3)
    known = rng.random(n) < 0.5
    known[:10] = draw(st.booleans())
    label = [str(t) if k else "" for t, k in zip(truth, known, strict=True)]
    cells = [f"{v:.3f}" for v in p]
    at = [int(i) for i in rng.integers(n // 2, n, size=draw(st.integers(0, 3)))]
    odd = draw(st.sampled_from(["NA", "", "gap", "number"]))
    given: list[float | None] = p.tolist()
    for i in at:
        if odd == "number":
            cells[i] = f" {p[i]:.2e} "
            given[i] = float(cells[i])
        else:
            cells[i], given[i] = odd.replace("gap", "NaN"), None
    if draw(st.booleans()):  # labels of another form late
        label[n - 3 :] = [f"{v}.0" if v else v for v in label[n - 3 :]]
    text = rng.choice(["x", "y,z", "line\nbreak", 'q"q'], size=n)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["label", "p__a__1", "text"])
    writer.writerows(zip(label, cells, (str(t) * size for t in text), strict=True))
    table = Table([int(t) if k else None for t, k in zip(truth, known, strict=True)],
                  {"a": given}, {}, None, None)  # fmt: skip
    parts = draw(st.booleans())
    how = [*HOW[:2], *HOW[4:], "--engine", "threads"] if parts else [*HOW, "--engine", "memory"]
    kind, pack = draw(st.sampled_from([("", bytes), (".gz", PACKED[".gz"])]))
    return Case(
        {f"f.csv{kind}": pack(out.getvalue().encode())},
        ["estimate", f"f.csv{kind}", *how, "--metrics", table.metrics],
        table.expected(),
    )


# Votes and counts ---------------------------------------------------------------------------------


@st.composite
def long_votes(draw: Any) -> Case:
    """A row per annotator and item, in any order, with gaps and repeats, beside the labels."""
    of = draw(items())
    n, k = len(of.truth), len(of.classes)
    names = [f"q-{i}" for i in range(n)]
    people = ["ann", "bob", "Zoë", "m.k."][: int(of.rng.integers(2, 5))]
    votes: list[tuple[str, str, str]] = []
    last: dict[tuple[str, int], int] = {}
    again = draw(st.booleans())
    order = [(i, who) for i in range(n) for who in people if of.rng.random() < 0.8]
    order += [order[int(j)] for j in of.rng.integers(len(order), size=5)] if again else []
    for j in of.rng.permutation(len(order)):
        i, who = order[int(j)]
        vote = int(of.truth[i] if of.rng.random() < 0.6 else of.rng.integers(k))
        votes.append((names[i], who, of.classes[vote]))
        last[who, i] = vote
    rows = []
    for who in people:
        right = [last[who, i] == of.truth[i] for i in range(n) if of.known[i] and (who, i) in last]
        if right:
            rows.append([who, "accuracy", None, float(np.mean(right))])
    wide = {"case": names, "label": of.label, **of.probabilities()}
    long = dict(
        zip(["case", "annotator", "label"], map(list, zip(*votes, strict=True)), strict=True)
    )
    kind = draw(st.sampled_from(["csv", "jsonl", "parquet"]))
    return Case(
        {"f.csv": as_format("csv", wide, draw), f"v.{kind}": as_format(kind, long)},
        ["estimate", "f.csv", "--votes", f"v.{kind}", "--item", "case", *HOW,
         "--metrics", "accuracy", *(["--duplicates", "last"] if again else [])],
        {"n_items": n, "n_labeled": int(of.known.sum()), "rows": rows},
    )  # fmt: skip


@st.composite
def counts_of_annotators(draw: Any) -> Case:
    """`annotations` of label histograms: losses by their formulas (docs/annotations.md)."""
    of = draw(items())
    n, k = len(of.truth), len(of.classes)
    sizes = of.rng.integers(2, 7, n)
    counts = np.stack([of.rng.multinomial(s, p) for s, p in zip(sizes, of.p[:, 1], strict=True)])
    counts[of.rng.random(n) < draw(st.sampled_from([0, 0.2]))] = 0
    counts[0] = np.eye(k, dtype=int)[0] * 3
    used = counts.sum(1) > 0
    y, z = counts[used], of.p[used, 0]
    m = y.sum(1, keepdims=True)
    mu = y / m
    loss = 1 - 2 * (z * mu).sum(1) + (z**2).sum(1)
    differ = 1 - (y * (y - 1)).sum(1) / (m * (m - 1))[:, 0]
    expected = {
        "accuracy": (z.argmax(1) == y.argmax(1)).mean(),
        "L": loss.mean(),
        "EL": (loss - differ).mean(),
        "EL_plugin": ((z - mu) ** 2).sum(1).mean(),
        "L_disagreement": (
            differ * (1 - 2 * (1 - (z**2).sum(1))) + (1 - (z**2).sum(1)) ** 2
        ).mean(),
    }
    columns = of.probabilities() | {
        f"h__{c}": counts[:, j].tolist() for j, c in enumerate(of.classes)
    }
    kind = draw(st.sampled_from(["csv", "jsonl", "parquet"]))
    return Case(
        {f"f.{kind}": as_format(kind, columns)},
        ["annotations", f"f.{kind}", "--json", "-"],
        {"n_items": n, "rows": [["m", name, None, float(v)] for name, v in expected.items()],
         "said": [[["n_annotated"], int(used.sum())], [["n_labels"], int(counts.sum())]]},
    )  # fmt: skip


@st.composite
def pass_rates(draw: Any) -> Case:
    """`score`: what the judge says of all items, and what the labels say alone."""
    of = draw(items(most_classes=3))
    columns = {"label": of.label, "y__v": of.votes()}
    wanted = draw(st.sampled_from(of.classes))
    k = of.classes.index(wanted)
    said = [
        [["criteria", 0, "rows", 0, "value"], float((of.hard == k).mean())],
        [["criteria", 0, "rows", 1, "value"], float((of.truth[of.known] == k).mean())],
        [["criteria", 0, "n_items"], len(of.truth)],
    ]
    kind = draw(st.sampled_from(["csv", "jsonl", "parquet"]))
    return Case(
        {f"f.{kind}": as_format(kind, columns)},
        ["score", f"f.{kind}", "--positive", wanted, "--method", "labeled", "--json", "-"],
        {"said": said},
    )


@st.composite
def looked_at(draw: Any) -> Case:
    """What the doctor counts."""
    of = draw(items())
    n, k = len(of.truth), len(of.classes)
    columns = {"label": of.label, **of.probabilities(), "y__v": of.votes()}
    columns["place"] = of.rng.choice(["x", "y", "z"], n).tolist()
    columns = {c: columns[c] for c in draw(st.permutations(list(columns)))}
    kind = draw(st.sampled_from(["csv", "jsonl", "parquet", "feather", "json"]))
    shares = np.bincount(of.truth[of.known], minlength=k) / of.known.sum()
    said = [
        [["counts", "n_items"], n],
        [["counts", "n_labeled"], int(of.known.sum())],
        [["counts", "n_models"], 2],
        [["counts", "n_classes"], k],
        [["roles", "label"], "label"],
        [["roles", "y__v"], "hard prediction of v"],
        [["roles", "place"], "group"],
        *([["class_balance", "labels", c], float(shares[j])] for j, c in enumerate(of.classes)),
    ]  # fmt: skip
    return Case(
        {f"f.{kind}": as_format(kind, columns)},
        ["doctor", f"f.{kind}", "--json", "-"],
        {"said": said},
    )  # fmt: skip


# Copies, exports and maps -------------------------------------------------------------------------

HOSTILE = (
    "=1+1", "@SUM(A1)", "+1+cmd", "-2+3", "\t=1", "a,b", 'say "hi"', "two\nlines", " padded ", "é",
    "'", "''=x", "plain", "<b>", "x;y", "NULL?", "-1.5", "+7", "1e5", "#ref", "=", "日本",
)  # fmt: skip


def inert(text: str) -> str:
    """A cell as a CSV table is to hold it: an apostrophe before what a spreadsheet runs."""
    bare = text.lstrip("'")
    try:
        float(bare.removesuffix("%"))
        number = True
    except ValueError:
        number = False
    return f"'{text}" if bare[:1] in ("=", "+", "-", "@", "\t", "\r", "\n") and not number else text


@st.composite
def copies(draw: Any) -> Case:
    """`convert`, and with hostile names of items and groups."""
    of = draw(items())
    n = len(of.truth)
    names = [f"{draw(st.sampled_from(HOSTILE))} {i}" for i in range(n)]
    places = [draw(st.sampled_from(HOSTILE)) for _ in range(n)]
    kind = draw(st.sampled_from(["jsonl", "parquet", "json", "feather"]))
    out = draw(st.sampled_from(["o.csv", "o.csv", "o.parquet"]))
    raw = draw(st.booleans()) and out == "o.csv"
    text = str if raw or out == "o.parquet" else inert
    columns: Columns = {"item": names, "place": places, "label": of.label}
    columns |= of.probabilities() | {"y__v": of.votes()}
    expected: Columns = columns | {"item": list(map(text, names)), "place": list(map(text, places))}
    return Case(
        {f"f.{kind}": as_format(kind, columns)},
        ["convert", f"f.{kind}", out, *["--raw-cells"] * raw],
        {"files": {out: expected}},
        (out,),
    )


MAPS = ("TemperatureScaling", "VectorScaling", "MatrixScaling")


@st.composite
def applied_maps(draw: Any) -> Case:
    """Calibrations with known coefficients, applied: softmax(W log p + b)."""
    of = draw(items())
    k, kind = len(of.classes), draw(st.sampled_from(MAPS))
    w, b = np.eye(k), np.zeros(k)
    fitted: dict[str, Any] = {"n_features_in_": k, "converged_": True, "n_iter_": 3}
    parameters: dict[str, Any] = {"floor": None, "inputs": "probabilities"}
    fitted |= {"floor_": 1e-12, "classes_": list(of.classes)}
    if kind == "TemperatureScaling":
        t = float(np.round(np.exp(of.rng.normal()), 3))
        w, fitted = w / t, fitted | {"temperature_": t}
    else:
        b = np.round(of.rng.normal(size=k), 3)
        scale = np.round(of.rng.normal(1, 0.5, k), 3)
        full = kind == "MatrixScaling"
        w = np.round(of.rng.normal(size=(k, k)), 3) if full else np.diag(scale)
        named = {"weights_": w.tolist()} if full else {"scale_": scale.tolist()}
        fitted |= named | {"intercept_": b.tolist(), "penalty_": [1.0, 1.0] if full else 1.0}
        parameters |= {"max_iter": 1000, "penalties": [0.1, 1.0], "penalty": 1.0}
        parameters |= {"random_state": 0, "tol": 1e-9, "validation": "split"}
    said = {"kind": kind, "version": 1, "parameters": parameters, "fitted": fitted}
    method = kind.removesuffix("Scaling").lower()
    about = {"method": method, "concentration": None, "features": [], "penalty": None, "seed": 0}
    saved = {"format": "fewlabels-calibration", "version": 1, "fewlabels": "0.1.0"}
    facts = {"calibrations": [{"model": "m"}]}
    saved |= {"models": {"m": said}, "about": about | {"classifiers": ["m"], "facts": facts}}
    logits = np.log(of.p[:, 0]) @ w.T + b
    e = np.exp(logits - logits.max(1, keepdims=True))
    q = e / e.sum(1, keepdims=True)
    columns = {"item": [f"i{i}" for i in range(len(q))], "label": of.label}
    columns |= of.probabilities() | {"y__v": of.votes()}
    expected = columns | {f"p__m__{c}": q[:, j].tolist() for j, c in enumerate(of.classes)}
    source = draw(st.sampled_from(["csv", "jsonl", "parquet"]))
    out = draw(st.sampled_from(["o.csv", "o.parquet"]))
    return Case(
        {f"f.{source}": as_format(source, columns), "m.json": json.dumps(saved).encode()},
        ["calibrate", f"f.{source}", "--apply", "m.json", "--out", out],
        {"files": {out: expected}},
        (out,),
    )


@st.composite
def labels_from_records(draw: Any) -> Case:
    """A record of labels with changes, undoings and doubts, joined and written as a table."""
    of = draw(items())
    n, k = len(of.truth), len(of.classes)
    names = [f"{draw(st.sampled_from(HOSTILE)).strip()} {i}" for i in range(n)]
    by = {"annotator": "me", "time": "2026-01-01T00:00:00Z"}
    digest = keys_digest(np.array(list(map(key_hash, names)), dtype=np.uint64))
    header = {
        "fewlabels": "labels", "format": 1, "file": "f.jsonl", "item": "item", "items": n,
        "digest": digest, "classes": list(of.classes), "positive": None, "annotator": "me",
        "created": by["time"],
    }  # fmt: skip
    how = {"order": "random", "shown": ["item"], "predictions_seen": False, **by}
    lines: list[dict[str, Any]] = [header]
    stands: dict[int, int] = {}
    order = of.rng.permutation(n)[: int(of.rng.integers(k + 2, n + 1))].tolist()
    for left, i in enumerate(order):
        c = left % k if left < k else int(of.rng.integers(k))
        drawn = {"probability": 1 / (n - left), "left": n - left, **how}
        lines.append({"event": "label", "item": names[i], "class": of.classes[c], **drawn})
        stands[i] = c
        what = of.rng.random() if left >= k else 1.0
        if what < 0.15:
            c = int(of.rng.integers(k))
            change = {"event": "change", "item": names[i], "class": of.classes[c]}
            lines.append({**change, "shown": ["item"], "predictions_seen": False, **by})
            stands[i] = c
        elif what < 0.25 and left == len(order) - 1:
            lines.append({"event": "undo", "item": names[i], **by})
            del stands[i]
        elif what < 0.4:
            lines.append({"event": "note", "item": names[i], "text": "=1\n?", **by})
    columns = {"item": names, **of.probabilities(), "y__v": of.votes()}
    label = [of.classes[stands[i]] if i in stands else None for i in range(n)]
    record = "".join(json.dumps(line) + "\n" for line in lines).encode()
    files = {"f.jsonl": as_format("jsonl", columns), "r.jsonl": record}
    beside = ["--labels", "r.jsonl", "--item", "item"]
    if draw(st.booleans()):
        right = [of.hard[i] == stands[i] for i in stands]
        rows = [["v", "accuracy", None, float(np.mean(right))]]
        return Case(
            files, ["estimate", "f.jsonl", *beside, *HOW, "--metrics", "accuracy"],
            {"n_items": n, "n_labeled": len(stands), "rows": rows},
        )  # fmt: skip
    return Case(
        files, ["convert", "f.jsonl", "o.parquet", *beside],
        {"files": {"o.parquet": columns | {"label": label}}}, ("o.parquet",),
    )  # fmt: skip


# Said by options, and logs of tools ---------------------------------------------------------------


@st.composite
def said_columns(draw: Any) -> Case:
    """Columns and classes in words of their own, which options or a file of --columns say."""
    of = draw(items(most_classes=3))
    k = len(of.classes)
    order = draw(st.permutations(range(k)))  # of the columns, and so of the classes
    words = {c: f"{c}!" for c in of.classes} if draw(st.booleans()) else {c: c for c in of.classes}
    unknown = draw(st.sampled_from(["", "later", "to do: ask"]))
    by_name = draw(st.booleans())
    names = [f"prob {of.classes[c]}" if by_name else f"col{j}" for j, c in enumerate(order)]
    columns: Columns = {names[j]: of.p[:, 0, c].tolist() for j, c in enumerate(order)}
    columns |= {"what": [unknown if v is None else v for v in of.label]}
    columns |= {"says": [words[v] for v in of.votes()], "other": of.rng.random(len(of.p)).tolist()}
    columns = {c: columns[c] for c in draw(st.permutations(list(columns)))}
    same = {text: c for c, text in words.items() if text != c}
    listed = [of.classes[c] for c in order] if not by_name else []
    if any("," in c for c in of.classes) or draw(st.booleans()):
        said: dict[str, Any] = {"label": "what", "models": {"m": names}, "hard": {"v": "says"}}
        said |= {"classes": listed} if listed else {}
        said |= {"no_label": [unknown]} if unknown else {}
        said |= {"same": same} if same else {}
        lines = [f"{key} = {_toml(value)}" for key, value in said.items()]
        options, files = ["--columns", "c.toml"], {"c.toml": "\n".join(lines).encode()}
    else:
        options, files = ["--label", "what", "--model", f"m={','.join(names)}"], {}
        options += ["--hard", "v=says", *(["--classes", ",".join(listed)] if listed else [])]
        options += ["--no-label", unknown] if unknown else []
        options += [word for text, c in same.items() for word in ("--same", f"{text}={c}")]
    at = np.flatnonzero(of.known)
    rows: list[Any] = _rows(of, None)[:2]
    rows += [["m", "accuracy", None, float((_first(of, order)[at] == of.truth[at]).mean())],
             ["v", "accuracy", None, float((of.hard[at] == of.truth[at]).mean())]]  # fmt: skip
    if k == 2:
        wanted = draw(st.sampled_from(of.classes))
        options += ["--positive", wanted]
        label, hard = of.truth[at] == of.classes.index(wanted), of.hard[at]
        called = hard == of.classes.index(wanted)
        if called.any():
            rows.append(["v", "precision", None, float(sk.precision_score(label, called))])
        rows.append(["v", "recall", None, float(sk.recall_score(label, called))])
    kind = draw(st.sampled_from(["csv", "jsonl", "parquet"]))
    asked = "accuracy,brier,log_loss,precision,recall"
    return Case(
        {f"f.{kind}": as_format(kind, columns), **files},
        ["estimate", f"f.{kind}", *HOW, "--metrics", asked, *options],
        {"n_items": len(of.p), "n_labeled": len(at), "rows": rows},
    )  # fmt: skip


def _first(of: Items, order: list[int]) -> np.ndarray:
    """The likeliest class, the first in the order of the classes on ties."""
    return np.array(order)[of.p[:, 0][:, order].argmax(1)]


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


@st.composite
def logs_read(draw: Any) -> Case:
    """Logs of four tools with known verdicts and labels, as tables."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = int(rng.integers(6, 30))
    verdict, label, known = (rng.random(n) < share for share in (0.6, 0.5, 0.6))
    verdict[:2], label[:2], known[:2] = (True, False), (True, False), True
    when = [f"2026-01-{1 + i % 28:02}T00:00:00Z" for i in range(n)]
    tool = draw(st.sampled_from(["mlflow", "promptfoo", "studio", "inspect"]))
    people: list[Any] = [
        str(bool(v)).lower() if k else None for v, k in zip(label, known, strict=True)
    ]
    says = [str(bool(v)).lower() for v in verdict]
    if tool == "mlflow":

        def said(value: Any, kind: str, who: str, i: int) -> dict[str, Any]:
            source = {"source_type": kind, "source_id": who}
            feedback = {"feedback": {"value": bool(value)}, "create_time": when[i]}
            return {"assessment_name": "good", "source": source, **feedback}

        lines = []
        for i in range(n):
            of = [said(verdict[i], "LLM_JUDGE", "gpt", i)]
            of += [said(label[i], "HUMAN", "ann", i)] if known[i] else []
            trace = {"info": {"trace_id": f"t{i}", "assessments": of}, "data": {"spans": []}}
            lines.append(json.dumps(trace) + "\n")
        name, content = "f.jsonl", "".join(lines)
        columns = {"item": [f"t{i}" for i in range(n)], "label": people, "y__gpt": says}
    elif tool == "promptfoo":
        results = []
        for i in range(n):
            ok = bool(verdict[i])
            part = {"pass": ok, "score": int(ok), "assertion": {"type": "equals"}}
            graded = {"pass": ok, "score": int(ok), "reason": "x", "componentResults": [part]}
            results.append(
                {"testIdx": i, "promptIdx": 0, "gradingResult": graded, "vars": {"q": i}}
            )
        name = "f.json"
        body = {"version": 3, "prompts": [], "results": results}
        content = json.dumps({"evalId": "e", "results": body})
        columns = {"item": [f"test {i} prompt 0" for i in range(n)], "y__equals": says}
        columns["input"] = [str(i) for i in range(n)]
    elif tool == "studio":
        tasks = []
        for i in range(n):
            choice = [
                {"from_name": "c", "value": {"choices": ["yes" if v else "no"]}}
                for v in (label[i], verdict[i])
            ]
            by = {"completed_by": 3, "result": choice[:1], "created_at": "2026-01-01"}
            guess = {"model_version": "m", "result": choice[1:]}
            task = {"id": i, "data": {"t": f"text {i}"}, "predictions": [guess]}
            tasks.append(task | {"annotations": [by] if known[i] else []})
        name, content = "f.json", json.dumps(tasks)
        to = {"true": "yes", "false": "no", None: None}
        columns = {"item": [str(i) for i in range(n)], "input": [f"text {i}" for i in range(n)]}
        columns |= {"label": [to[v] for v in people], "y__m": [to[v] for v in says]}
    else:
        samples = [
            {"id": i, "epoch": 1, "scores": {"judge": {"value": "C" if verdict[i] else "I"}},
             "metadata": {}} for i in range(n)
        ]  # fmt: skip
        head = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}
        name, content = "f.json", json.dumps(head | {"samples": samples})
        columns = {"item": [str(i) for i in range(n)]}
        columns["y__judge"] = ["correct" if v else "incorrect" for v in verdict]
    return Case(
        {name: content.encode()}, ["convert", name, "o.parquet"],
        {"files": {"o.parquet": columns}}, ("o.parquet",),
    )  # fmt: skip


# Arrays -------------------------------------------------------------------------------------------

ARRAYS = "arrays"
"""The first argument where `fl.estimate` runs on arrays, of the kind of the second."""


def _masked(values: list[Any], fill: Any) -> Any:
    gaps = [v is None for v in values]
    return np.ma.masked_array([fill if v is None else v for v in values], gaps)


def _pandas(values: list[Any], _: Any) -> Any:
    import pandas as pd

    whole = all(isinstance(v, int) for v in values if v is not None)
    return pd.array(values, dtype="Int64" if whole else "Float64")


def _polars(values: list[Any], _: Any) -> Any:
    import polars as pl

    return pl.Series(values)


KINDS: dict[str, Any] = {
    "masked": _masked,
    "lists": lambda values, _: list(values),
    "objects": lambda values, _: np.array(values, dtype=object),
    "floats": lambda values, _: np.array([np.nan if v is None else v for v in values], dtype=float),
    "pandas": _pandas,
    "polars": _polars,
    "arrow": lambda values, _: pa.array(values),
}


def of_arrays(arguments: list[str]) -> tuple[int, str, str]:
    """`fl.estimate` of the file's columns as arrays: exit code, JSON, error."""
    import fewlabels as fl

    _, kind, path = arguments
    with open(path, encoding="utf-8") as file:
        said = json.load(file)
    metrics, frame = said.pop("metrics").split(","), said.pop("frame")
    try:
        found = fl.estimate(
            (_of_frame if frame else _of_kind)(kind, said), method="labeled", metrics=metrics,
            estimand="sample", by="site" if said["group"] else None,
        )  # fmt: skip
    except (fl.InputError, fl.UsageError) as error:
        return 2, "", f"error: {error}\n"
    return 0, json.dumps(found.to_dict()), ""


FRAMES = ("pandas", "polars", "lazy", "arrow", "dictionary", "rows", "narwhals", "nullable")


def _frame(kind: str, columns: Columns) -> Any:
    import narwhals as nw
    import pandas as pd
    import polars as pl

    if kind == "rows":
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if kind == "dictionary":
        return columns
    if kind in ("arrow", "narwhals"):
        return pa.table(columns) if kind == "arrow" else nw.from_native(pl.DataFrame(columns))
    if kind in ("pandas", "nullable"):
        frame = pd.DataFrame(columns, index=range(5, 5 + len(columns["label"])))
        return frame if kind == "pandas" else frame.convert_dtypes()
    return pl.DataFrame(columns) if kind == "polars" else pl.LazyFrame(columns)


def _of_frame(kind: str, said: dict[str, Any]) -> Any:
    import fewlabels as fl

    return fl.read_predictions(_frame(kind, Table(**said).columns()))


def _of_kind(kind: str, said: dict[str, Any]) -> Any:
    import fewlabels as fl

    make = KINDS[kind]
    models = {name: make(p, 0.25) for name, p in said["p"].items()}
    models |= {name: make(y, 0) for name, y in said["y"].items()}
    weight = {} if said["weight"] is None else {"weight": make(said["weight"], 1.0)}
    group = {} if said["group"] is None else {"groups": {"site": list(said["group"])}}
    return fl.Predictions(models, make(said["label"], 1), **weight, **group)


@st.composite
def arrays(draw: Any) -> Case:
    """The same numbers as masked arrays, lists with None, objects, columns, and frames."""
    table = draw(truths())
    frame = draw(st.booleans())
    said = table._asdict() | {"metrics": table.metrics, "frame": frame}
    kind = draw(st.sampled_from(FRAMES if frame else sorted(KINDS)))
    return Case({"f.json": json.dumps(said).encode()}, [ARRAYS, kind, "f.json"], table.expected())


ANSWERS: dict[str, tuple[st.SearchStrategy[Case], int, str]] = {
    "several classes": (several_classes(), 300, "nine metrics as scikit-learn has them"),
    "in parts": (in_parts(), 200, "tables and folders with --engine threads"),
    "odd cells": (odd_cells(), 300, "forms of numbers, labels and gaps; blank lines; encodings"),
    "odd types": (odd_types(), 250, "Parquet and Feather of any types, in several pieces"),
    "odd arrays": (odd_arrays(), 150, "NPZ of other types, byte orders and layouts"),
    "odd groups": (odd_groups(), 150, "several, with gaps and values that look alike"),
    "odd names": (odd_names(), 150, "classifiers of odd names in native columns"),
    "late cells": (late(), 40, "megabytes of text in which other forms come late"),
    "long votes": (long_votes(), 150, "a row per annotator and item, with gaps and repeats"),
    "counts of annotators": (counts_of_annotators(), 150, "losses of label histograms"),
    "pass rates": (pass_rates(), 150, "`score`: the judge's own, and the labels' alone"),
    "looked at": (looked_at(), 200, "what the doctor counts"),
    "copies": (copies(), 250, "`convert`, hostile names of items and groups"),
    "applied maps": (applied_maps(), 250, "calibrations of known coefficients"),
    "labels of records": (labels_from_records(), 250, "changes, undoings and notes"),
    "said columns": (said_columns(), 200, "names and words that options or a TOML file say"),
    "logs read": (logs_read(), 200, "four tools' verdicts and labels"),
    "arrays": (arrays(), 300, "seven kinds of arrays with gaps, eight of frames"),
}
