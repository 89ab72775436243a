"""Attempts to break the commands: made-up files, options, maps, protocols and logs, by area.

An attempt is files in an empty folder and the arguments of a command. It holds where the command
ends in time and memory with exit code 0, 1 or 2, says one clear line for 2, leaves nothing
half-written and no process behind.

    python tests/fuzz/attempts.py                             # tries all areas, prints the table
    python tests/fuzz/attempts.py --write docs/attempts.md    # and writes it

What did not hold is added to `corpus/`, and is tried again by every run of the tests.
"""

from __future__ import annotations

import argparse
import base64
import bz2
import contextlib
import datetime as dt
import gzip
import hashlib
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from answers import ANSWERS, ARRAYS, Case, of_arrays, wrong_answer
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from oracles import HOW, as_format, live, made_of, seen_by_others, truths, with_part, written
from pyarrow import csv, feather

from fewlabels.data.label_record import key_hash, keys_digest
from fewlabels.errors import FewlabelsError
from fewlabels.metrics import METRICS
from places import PASSWORD

CORPUS = Path(__file__).parent / "corpus"
SECONDS, MEGABYTES = 120, 4_000
"""What one attempt may take, and the process that makes them all."""


class Attempt(NamedTuple):
    """Files by name, arguments, and the files that the command may write.

    `expected` is what the answer must be, if there is one (`answers.wrong_answer`), and whether
    there must be one; `code` is the exit code, where only one is right.
    """

    files: dict[str, bytes]
    arguments: list[str]
    outputs: tuple[str, ...] = ()
    process: bool = False
    expected: dict[str, Any] | None = None
    code: int | None = None

    def to_json(self) -> str:
        """As the corpus holds it."""
        files = {name: base64.b85encode(content).decode() for name, content in self.files.items()}
        said = {"arguments": self.arguments, "outputs": self.outputs, "process": self.process}
        right = {"expected": self.expected, "code": self.code}
        said |= {name: value for name, value in right.items() if value is not None}
        return json.dumps({**said, "files": files}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Attempt:
        """What `to_json` gave."""
        said = json.loads(text)
        files = {name: base64.b85decode(content) for name, content in said["files"].items()}
        right = said.get("expected"), said.get("code")
        return cls(files, said["arguments"], tuple(said["outputs"]), said["process"], *right)


class Counted:
    """How attempts ended: answers that were compared with the right one, and refusals."""

    def __init__(self) -> None:
        self.compared = self.refused = 0


Run = Callable[[list[str]], tuple[int, str, str]]
"""What arguments are given to: exit code, output and errors."""


class TooLateError(BaseException):
    """No end within the seconds; nothing that is tried may catch it, as it would a TimeoutError."""


def broken_by(
    attempt: Attempt, counted: Counted | None = None, run: Run | None = None
) -> str | None:
    """What did not hold; None where all did. `run` is what is tried: by default, the command."""
    run = run or (_as_process if attempt.process else within)
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        for file, content in attempt.files.items():
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_bytes(content)
        before, running = {str(path) for path in Path().rglob("*")}, _children()
        try:
            code, out, err = run(attempt.arguments)
        except TooLateError:
            return f"no end within {SECONDS} s"
        wrong = wrong_answer(out, attempt.expected) if attempt.expected and code != 2 else None
        left = {str(path) for path in Path().rglob("*")} - before
        changed = [f for f, content in attempt.files.items() if Path(f).read_bytes() != content]
    if code not in (0, 1, 2):
        return f"exit code {code}: {err.strip().splitlines()[-1:]}"
    if counted is not None:
        counted.refused += code == 2
        counted.compared += code != 2 and (attempt.expected or attempt.code) is not None
    if attempt.code is not None and code != attempt.code:
        return f"exit code {code}, not {attempt.code}: {err.strip()[:200]}"
    if wrong is not None:
        return f"wrong answer: {wrong}"
    if "Traceback" in err or "RuntimeWarning" in err:
        return f"shows its insides: {err[-300:]}"
    # The doctor shows what it found, and says beside it that the file is refused.
    quiet = attempt.arguments[:1] == ["doctor"] or not out.strip()
    if code == 2 and not (err.startswith("error: ") and err.count("\n") == 1 and quiet):
        return f"not one line: {out[-200:]!r}, {err[-300:]!r}"
    if code == 2 and len(err) > 1_300:
        return f"a line of {len(err)} characters"
    if changed and not set(changed) <= set(attempt.outputs):
        return f"changed {changed}"
    odd = {f for f in left if f.split("/")[0] not in attempt.outputs or "/." in f or f[0] == "."}
    odd = {f for f in odd if Path(f).name != ".lock"}
    if odd or (code == 2 and left & {f for f in attempt.outputs if "." in f}):
        return f"left {sorted(left)}"
    if _children() - running:
        return "left a process behind"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"took {peak:,.0f} MB" if peak > MEGABYTES else None


def judged(arguments: list[str], parts: set[str] | None = None) -> int:
    """The command's exit code, or 70 and why where what is shown or written is more than text."""
    from fewlabels.cli import main as command

    code = command(arguments)
    shown = "".join(s.getvalue() for s in (sys.stdout, sys.stderr) if isinstance(s, io.StringIO))
    wrong = live(shown, PASSWORD)
    if parts is not None and code != 2 and made_of() - parts:
        wrong = f"of no harmless page: {min(made_of() - parts)!a}"
    print(wrong or "", end="", file=sys.stderr)
    return 70 if wrong else code


class Attack(NamedTuple):
    """An attempt, and what is called with its arguments."""

    attempt: Attempt
    call: Callable[[list[str]], int] = judged

    def broken(self, counted: Counted | None = None) -> str | None:
        """What did not hold; None where all did."""
        return broken_by(self.attempt, counted, partial(within, call=self.call))


def calling(what: str, function: Callable[[], object], code: int | None = None) -> Attack:
    """A function in an empty folder, which raises our own errors, or another if it goes wrong."""

    def call(_: list[str]) -> int:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            try:
                function()
            except FewlabelsError as error:
                print(f"error: {error}", file=sys.stderr)
                return 2
            except MemoryError as error:  # as the command says it
                print(f"error: not enough memory: {error}", file=sys.stderr)
                return 2
            except Exception:
                traceback.print_exc()
                return 70
            return 0

    return Attack(Attempt({}, [what], code=code), call)


def _children() -> set[str]:
    """Processes that this one started and that run; none where the system does not say."""
    threads = Path("/proc/self/task").glob("*/children")
    return set(" ".join(path.read_text() for path in threads).split())


def within(
    arguments: list[str], call: Callable[[list[str]], int] | None = None
) -> tuple[int, str, str]:
    """Call a command in this process: exit code, output and errors; TooLateError if it hangs."""
    from fewlabels.cli import main

    if arguments[:1] == [ARRAYS]:
        return of_arrays(arguments)

    def late(*_: object) -> None:
        raise TooLateError

    out, err = io.StringIO(), io.StringIO()
    handler = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            code = (call or main)(arguments)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
    return code, out.getvalue(), err.getvalue()


def _as_process(arguments: list[str]) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "fewlabels", *arguments]
    try:
        run = subprocess.run(
            command, capture_output=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise TooLateError from None
    return run.returncode, run.stdout.decode(), run.stderr.decode()


# What attempts are made of ------------------------------------------------------------------------

LABELED = ("--method", "labeled", "--metrics", "accuracy")
NUMBERS = st.sampled_from([
    "", "0", "1", "1.0", "-1", ".5", "0.25", "1e999", "-1e308", "1e-320", "nan", "inf", "50%",
    "1,5", "0x1", "007", "1_000", "9" * 400, "-0", "None",
])  # fmt: skip
CELLS = st.one_of(NUMBERS, st.text(max_size=6), st.sampled_from(["yes", "no", "?", "N/A", '"']))
COLUMNS = st.sampled_from([
    "label", "domain", "weight", "item", "g", "h__0", "h__1", "p__a__0", "p__a__1", "p__b__1",
    "y__a", "y__c", "s__a", "s__d", "p__a=b__1", "p____1", "", "label ",
])  # fmt: skip
VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(), st.text(max_size=6),
        st.sampled_from([0, 1, -1, 1e308, 10**400, "labeled", "accuracy", "p__a__1", ""]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=6,
)  # fmt: skip


def _table(labels: int) -> bytes:
    rows = [
        f"i{i},{i % 2 if i < labels else ''},{0.2 + i % 3 / 10:.1f},{0.3 + i % 4 / 10:.1f},g{i % 3}"
        for i in range(40)
    ]
    return "\n".join(["item,label,p__a__1,p__b__1,g", *rows, ""]).encode()


TABLE, LABELED_TABLE = _table(12), _table(40)


def _formats() -> dict[str, bytes]:
    """The same table in every format that is read."""

    table = csv.read_csv(io.BytesIO(TABLE))
    rows = "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()
    parquet, arrow, npz, zipped = (io.BytesIO() for _ in range(4))
    pq.write_table(table, parquet, write_page_checksum=True)
    feather.write_feather(table, arrow, compression="zstd")
    p = np.linspace(0.1, 0.9, 40)
    labels = np.where(np.arange(40) < 12, np.arange(40) % 2, -1)
    np.savez(npz, probabilities=p[:, None], labels=labels)
    np.savez_compressed(zipped, probabilities=p[:, None], labels=labels)
    return {
        "f.csv": TABLE, "f.csv.gz": gzip.compress(TABLE, mtime=0), "f.csv.bz2": bz2.compress(TABLE),
        "f.jsonl": rows, "f.jsonl.gz": gzip.compress(rows, mtime=0), "f.npz": npz.getvalue(),
        "z.npz": zipped.getvalue(), "f.parquet": parquet.getvalue(), "f.feather": arrow.getvalue(),
    }  # fmt: skip


FORMATS = _formats()


@st.composite
def tables(draw: Any) -> Attempt:
    """Any cells under any headers."""
    header = draw(st.lists(COLUMNS, min_size=1, max_size=6))
    rows = draw(st.lists(st.lists(CELLS, min_size=len(header), max_size=len(header)), max_size=8))
    mark = draw(st.sampled_from(",,,;\t"))
    text = "\n".join(mark.join(line) for line in [header, *rows])
    command = draw(st.sampled_from(["estimate", "estimate", "doctor", "compare", "shift"]))
    options = [*LABELED] if command == "estimate" else []
    engine = draw(st.sampled_from([[], ["--engine", "threads"]])) if options else []
    return Attempt(
        {"f.csv": text.encode("utf-8", "replace")}, [command, "f.csv", *options, *engine]
    )


@st.composite
def damaged(draw: Any) -> Attempt:
    """Files of every format with bytes changed, or cut short."""
    name = draw(st.sampled_from(sorted(FORMATS)))
    content = bytearray(FORMATS[name])
    for _ in range(draw(st.integers(0, 4))):
        content[draw(st.integers(0, len(content) - 1))] = draw(st.integers(0, 255))
    cut = draw(st.one_of(st.none(), st.integers(0, len(content))))
    command = draw(st.sampled_from([["estimate", *LABELED], ["doctor"]]))
    part = draw(st.booleans())
    files = {f"d/{name}": bytes(content[:cut])} | ({"d/a.csv": TABLE} if part else {})
    source = draw(st.sampled_from(["d", f"d/{name}"]))
    return Attempt(files, [command[0], source, *command[1:]])


@st.composite
def column_files(draw: Any) -> Attempt:
    """Files of --columns: known keys with any values, and texts."""
    from fewlabels.data.options import ColumnOptions

    keys = st.sampled_from([*ColumnOptions.__dataclass_fields__, "modles", "a.b"])
    said = draw(st.dictionaries(keys, VALUES, max_size=4))
    return Attempt(
        {"f.csv": TABLE, "c.toml": _toml(said, draw)},
        ["estimate", "f.csv", "--columns", "c.toml", *LABELED],
    )


def _toml(said: dict[str, Any], draw: Callable[[Any], Any]) -> bytes:
    lines = []
    for key, value in said.items():
        if isinstance(value, dict):
            inner = (f"{json.dumps(k)} = {json.dumps(v)}" for k, v in value.items())
            lines.append(f"{key} = {{{', '.join(inner)}}}")
        else:
            lines.append(f"{key} = {json.dumps(value)}")
    text = "\n".join(lines)
    if draw(st.integers(0, 9)) == 0:
        text += draw(st.text(max_size=20))
    return text.encode("utf-8", "replace")


@cache
def _map() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        Path("f.csv").write_bytes(TABLE)
        code, _, err = within(["calibrate", "f.csv", "--method", "vector", "--save", "m.json"])
        assert code == 0, err
        return dict(json.loads(Path("m.json").read_text()))


def _changed(draw: Callable[[Any], Any], whole: Any) -> Any:
    """A plain value with one part of it replaced by any other."""
    if isinstance(whole, dict) and whole and draw(st.integers(0, 5)):
        key = draw(st.sampled_from(sorted(whole)))
        return {**whole, key: _changed(draw, whole[key])}
    if isinstance(whole, list) and whole and draw(st.integers(0, 5)):
        k = draw(st.integers(0, len(whole) - 1))
        return [*whole[:k], _changed(draw, whole[k]), *whole[k + 1 :]]
    return draw(VALUES)


@st.composite
def maps(draw: Any) -> Attempt:
    """Saved calibrations, of which one part is another."""
    said = _changed(draw, _map())
    files = {"f.csv": TABLE, "m.json": json.dumps(said).encode()}
    return Attempt(files, ["calibrate", "f.csv", "--apply", "m.json", "--out", "o.csv"], ("o.csv",))


@st.composite
def beside(draw: Any) -> Attempt:
    """Votes, labels and reference data beside a table, with any cells."""
    header = draw(
        st.lists(st.sampled_from(["item", "annotator", "label", "domain", "x"]), max_size=4)
    )
    width = max(len(header), 1)
    cell = st.one_of(CELLS, st.sampled_from([f"i{k}" for k in range(6)]))
    rows = draw(st.lists(st.lists(cell, min_size=width, max_size=width), max_size=6))
    text = "\n".join(",".join(line) for line in [header, *rows]).encode("utf-8", "replace")
    option = draw(st.sampled_from(["--votes", "--labels", "--reference"]))
    method = [] if option == "--reference" else LABELED
    item = ["--item", "item"] if option != "--reference" else []
    return Attempt(
        {"f.csv": TABLE, "b.csv": text}, ["estimate", "f.csv", option, "b.csv", *item, *method]
    )


OPTIONS = st.sampled_from([
    "--by", "--models", "--threshold", "--require", "--confidence-level", "--seed", "--metrics",
    "--model", "--hard", "--score", "--weight", "--domain", "--label", "--classes", "--positive",
    "--same", "--no-label", "--option", "--estimand", "--workers", "--json", "--html", "--method",
])  # fmt: skip
WORDS = st.one_of(
    st.sampled_from(
        [
            "g",
            "a",
            "a,b",
            "a=.3",
            "accuracy>=.1",
            "low:accuracy>=.9",
            "0",
            "1",
            "-1",
            ".95",
            "1e400",
            "nan",
            "label",
            "a=p__a__1",
            "a=g",
            "out.json",
            "out.html",
            "/nowhere/o",
            "labeled",
            "",
            "ensemble",
            "x=1",
            "9" * 50,
            "accuracy,ece",
            "f.csv",
            "item",
            "population",
            "=",
            "a=b=c",
        ]
    ),
    st.text(max_size=6).filter(lambda text: "\0" not in text),
)


@st.composite
def options(draw: Any) -> Attempt:
    """Any option with any word."""
    given_options = draw(st.lists(st.tuples(OPTIONS, WORDS), min_size=1, max_size=3))
    command = draw(
        st.sampled_from(["estimate"] * 3 + ["compare", "doctor", "curve", "annotations"])
    )
    words = [word for pair in given_options for word in pair]
    written = tuple(word for option, word in given_options if option in ("--json", "--html"))
    return Attempt({"f.csv": TABLE}, [command, "f.csv", *words], written)


_DIGEST = keys_digest(np.array([key_hash(f"i{i}") for i in range(40)], dtype=np.uint64))


def _labels() -> list[dict[str, Any]]:
    """A record of labels, a value of JSON to a line: the header, then events."""
    when = {"annotator": "me", "time": "2026-01-01T00:00:00Z"}
    header = {
        "fewlabels": "labels", "format": 1, "file": "f.csv", "item": "item", "items": 40,
        "digest": keys_digest(np.array([key_hash(f"i{i}") for i in range(40)], dtype=np.uint64)),
        "classes": ["0", "1"], "positive": "1", "annotator": "me",
        "created": when["time"],
    }  # fmt: skip
    drawn = {"order": "informative", "shown": ["item"], "predictions_seen": False, **when}
    events: list[dict[str, Any]] = [
        {"event": "label", "item": f"i{12 + i}", "class": str(i % 2), "probability": 0.1,
         "left": 28 - i, **drawn}
        for i in range(12)
    ]  # fmt: skip
    change = {"event": "change", "item": "i12", "class": "1", **when}
    note = {"event": "note", "item": "i13", "text": "?", **when}
    return [header, *events, change, note, {"event": "undo", "item": "i14", **when}]


def _lines(values: list[Any]) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode("utf-8", "replace")


OTHER_TABLE = "\n".join(["item,y__a", *(f"k{i},{i % 2}" for i in range(40)), ""]).encode()


def _cut(draw: Callable[[Any], Any], content: bytes) -> bytes:
    """Bytes changed, or cut short."""
    out = bytearray(content)
    for _ in range(draw(st.integers(0, 2))):
        out[draw(st.integers(0, len(out) - 1))] = draw(st.integers(0, 255))
    return bytes(out[: draw(st.one_of(st.none(), st.integers(0, len(out))))])


@st.composite
def records(draw: Any) -> Attempt:
    """Records of labels as side files: torn, with other values, of another file, several."""
    said = _labels()
    for _ in range(draw(st.integers(0, 2))):
        k = draw(st.integers(0, len(said) - 1))
        said[k] = _changed(draw, said[k])
    content = _lines(said)
    if draw(st.booleans()):
        content = _cut(draw, content)
    files = {"f.csv": draw(st.sampled_from([TABLE, TABLE, LABELED_TABLE, OTHER_TABLE]))}
    files |= {"r.labels.jsonl": content, "q.labels.jsonl": _lines(_labels())}
    several = draw(st.sampled_from([[], [], ["--labels", "q.labels.jsonl"]]))
    asked = draw(
        st.sampled_from([["estimate", *LABELED], ["score"], ["doctor"], ["convert", "o.csv"]])
    )
    beside = ["--labels", "r.labels.jsonl", *several, "--item", "item"]
    return Attempt(files, [asked[0], "f.csv", *asked[1:], *beside], ("o.csv",))


@st.composite
def written_labels(draw: Any) -> Attempt:
    """`label --out`, with records that are torn, hostile, or of other items."""
    said = _labels()
    for _ in range(draw(st.integers(0, 2))):
        k = draw(st.integers(0, len(said) - 1))
        said[k] = _changed(draw, said[k])
    content = _lines(said)
    if draw(st.booleans()):
        content = _cut(draw, content)
    out = draw(st.sampled_from(["o.csv", "o.parquet", "o.txt", "f.csv", "nowhere/o.csv", ".", ""]))
    files = {"f.csv": draw(st.sampled_from([TABLE, TABLE, OTHER_TABLE])), "r.jsonl": content}
    asked = ["--out", out, "--item", "item", "--labels", "r.jsonl"]
    return Attempt(files, ["label", "f.csv", *asked], ("o.csv", "o.parquet"))


def _tool_logs() -> dict[str, Any]:
    """Small logs of evaluation tools: a value of JSON, or a list of which each is a line."""

    def trace(i: int) -> dict[str, Any]:
        who = [("LLM_JUDGE", "gpt"), *([("HUMAN", "ann")] if i < 12 else [])]
        said = [
            {"assessment_name": "good", "source": {"source_type": kind, "source_id": by},
             "feedback": {"value": i % (3 + k) > 0}, "create_time": "2026-01-01T00:00:00Z"}
            for k, (kind, by) in enumerate(who)
        ]  # fmt: skip
        return {"info": {"trace_id": f"t{i}", "assessments": said}, "data": {"spans": []}}

    def result(i: int) -> dict[str, Any]:
        part = {"pass": i % 2 == 0, "score": 1, "assertion": {"type": "equals"}}
        graded = {"pass": True, "score": 1, "reason": "ok", "componentResults": [part]}
        return {"testIdx": i, "promptIdx": 0, "gradingResult": graded, "vars": {"q": i}}

    def task(i: int) -> dict[str, Any]:
        of = [{"from_name": "c", "value": {"choices": ["a" if i % 3 else "b"]}}]
        said = {"completed_by": 3, "result": of, "created_at": "2026-01-01"}
        guess = {"model_version": "m", "result": of}
        return {"id": i, "data": {"t": "t"}, "annotations": [said], "predictions": [guess]}

    def sample(i: int) -> dict[str, Any]:
        return {"id": i, "epoch": 1, "scores": {"judge": {"value": "CI"[i % 2]}}, "metadata": {}}

    n = range(16)
    return {
        "mlflow.jsonl": [trace(i) for i in n],
        "promptfoo.json": {"evalId": "e", "results": {
            "version": 3, "prompts": [], "results": [result(i) for i in n]}},
        "studio.json": [task(i) for i in n],
        "inspect.json": {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"},
                         "samples": [sample(i) for i in n]},
        "doccano.jsonl": [{"id": i, "text": "t", "label": ["ab"[i % 2]], "Comments": []}
                          for i in n],
    }  # fmt: skip


@st.composite
def tool_logs(draw: Any) -> Attempt:
    """Logs of evaluation tools with other values, or bytes changed or cut short."""
    name = draw(st.sampled_from(sorted(_tool_logs())))
    said = _tool_logs()[name]
    for _ in range(draw(st.integers(0, 2))):
        said = _changed(draw, said)
    by_line = name.endswith("l") and isinstance(said, list)
    content = _lines(said) if by_line else json.dumps(said).encode("utf-8", "replace")
    if draw(st.booleans()):
        content = _cut(draw, content)
    options = draw(
        st.sampled_from(
            [[], ["--criterion", "good"], ["--people", "votes"], ["--people", "histogram"],
             ["--pass-from", "0.5"], ["--format", "mlflow"], ["--repeats", "all"]]
        )
    )  # fmt: skip
    out = draw(st.sampled_from(["o.csv", "o.parquet"]))
    command = draw(st.sampled_from([["score"], ["convert", out], ["doctor"]]))
    return Attempt({name: content}, [command[0], name, *command[1:], *options], (out,))


@st.composite
def scores_and_copies(draw: Any) -> Attempt:
    """`score` and `convert` of any cells, and of tables with any options."""
    made = draw(st.one_of(tables(), damaged(), beside()))
    source = made.arguments[1]
    labels = [
        w for k, w in enumerate(made.arguments) if "--labels" in made.arguments[k - 1 : k + 1]
    ]
    side = [*labels, "--item", "item"] if labels else []
    if draw(st.booleans()):
        words = draw(st.lists(st.tuples(OPTIONS, WORDS), max_size=2))
        said = [word for pair in words for word in pair]
        written = tuple(word for option, word in words if option in ("--json", "--html"))
        return Attempt(made.files, ["score", source, *side, *said], written)
    out = draw(st.sampled_from(["o.csv", "o.parquet", "o.txt", source, "nowhere/o.csv"]))
    return Attempt(made.files, ["convert", source, out, *side], ("o.csv", "o.parquet"))


@st.composite
def processes(draw: Any) -> Attempt:
    """Some of all of these as processes, as a user starts them."""
    made = draw(st.one_of(tables(), damaged(), column_files(), maps(), beside()))
    return made._replace(process=True)


@st.composite
def known_answers(draw: Any) -> Attempt:
    """Tables in any format and odd ways of writing them."""
    table = draw(truths())
    name, content = written(draw, table)
    by = ["--by", "site"] if table.group is not None else []
    return Attempt(
        {name: content}, ["estimate", name, *HOW, "--metrics", table.metrics, *by],
        expected=table.expected(), code=0,
    )  # fmt: skip


@st.composite
def other_names(draw: Any) -> Attempt:
    """The same under other names, which options say."""
    table = draw(truths())
    columns, options = dict[str, list[Any]](), list[str]()
    for k, (name, values) in enumerate(table.columns().items()):
        column = name if name == "site" else f"col {k}" if k % 2 else f"c{k}"
        columns[column] = values
        if name == "label":
            options += ["--label", column]
        elif name == "weight":
            options += ["--weight", column]
        elif name[:3] == "p__":
            options += ["--model", f"{name[3:-3]}={column}"]
        elif name[:3] == "y__":
            options += ["--hard", f"{name[3:]}={column}"]
    by = ["--by", "site"] if table.group is not None else []
    kind = draw(st.sampled_from(["csv", "jsonl", "parquet"]))
    return Attempt(
        {f"f.{kind}": as_format(kind, columns, draw)},
        ["estimate", f"f.{kind}", *HOW, "--metrics", table.metrics, *by, *options],
        expected=table.expected(), code=0,
    )  # fmt: skip


@st.composite
def labels_apart(draw: Any) -> Attempt:
    """Labels in a file of their own, in another order, of some of the items."""
    table = draw(truths())
    columns, n = table.columns(), len(table.label)
    label = columns.pop("label")
    names = [f"item {i}" if i % 2 else f"i{i}" for i in range(n)]
    kept = [i for i in draw(st.permutations(range(n))) if label[i] is not None]
    apart = {"item": [names[i] for i in kept], "label": [label[i] for i in kept]}
    kind = draw(st.sampled_from(["csv", "jsonl", "parquet"]))
    by = ["--by", "site"] if table.group is not None else []
    return Attempt(
        {f"f.{kind}": as_format(kind, {"item": names} | columns, draw),
         "l.csv": as_format("csv", apart, draw)},
        ["estimate", f"f.{kind}", "--labels", "l.csv", "--item", "item", *HOW,
         "--metrics", table.metrics, *by],
        expected=table.expected(), code=0,
    )  # fmt: skip


@st.composite
def gates(draw: Any) -> Attempt:
    """Conditions on values that are known, for all classifiers or one: exit code 0 or 1."""
    table = draw(truths(gaps=False, plain=True))
    rows = table.expected()["rows"]
    _, metric, _, value = draw(st.sampled_from(rows))
    one = draw(st.sampled_from([None, *table.p]))
    low, high = METRICS[metric].bounds  # what every value meets, or none, is refused
    bound = round(value + draw(st.sampled_from([-0.2, -0.01, 0.01, 0.2])), 3)
    bound = min(max(bound, low + 0.001), high - 0.001)
    sign = draw(st.sampled_from([">=", "<="]))
    asked = [v for m, name, _, v in rows if name == metric and one in (None, m)]
    met = all(v >= bound if sign == ">=" else v <= bound for v in asked)
    missing = one is None and len(asked) < len(table.p) + len(table.y)  # not applicable to some
    condition = f"{metric}{sign}{bound}" if one is None else f"{one}:{metric}{sign}{bound}"
    name, content = written(draw, table)
    return Attempt(
        {name: content},
        ["estimate", name, *HOW, "--metrics", table.metrics, "--require", condition],
        expected=table.expected(), code=int(not met or missing or not asked),
    )  # fmt: skip


def mutated(kind: str) -> st.SearchStrategy[Attempt]:
    """Files of a kind with cells or bytes changed; if they are read, then as others read them."""

    @st.composite
    def made(draw: Any) -> Attempt:
        table = draw(truths(plain=True))._replace(y={})
        columns = table.columns()
        for _ in range(draw(st.integers(0, 2))):
            column = draw(st.sampled_from(list(columns)))
            values = columns[column]
            at, there = (draw(st.integers(0, len(values) - 1)) for _ in range(2))
            some = [None, 0, 1] if column == "label" else [None, 0.0, 1.0, 0.5]
            values[at] = draw(st.sampled_from([*some, values[there]]))
        if kind == "xlsx":
            return _mutated_workbook(draw, columns, table.metrics)
        content = bytearray(as_format(kind, columns))
        head = content.find(b"\n") + 1 if kind in ("csv", "tsv") else 0
        changes = 0 if kind.endswith("gz") else draw(st.sampled_from([0, 0, 1, 1, 2]))
        content = _with_bytes(draw, content, changes, head)
        if draw(st.integers(0, 19)) == 0:
            del content[draw(st.integers(head, len(content) - 1)) :]
        return _read_by_others(f"f.{kind}", bytes(content), table.metrics)

    return made()


def _read_by_others(name: str, content: bytes, metrics: str, *more: str) -> Attempt:
    seen = seen_by_others(name, content)
    return Attempt(
        {name: content}, ["estimate", name, *HOW, "--metrics", metrics, *more],
        expected=None if seen is None else seen.expected(),
    )  # fmt: skip


_BYTES = st.sampled_from(b'0123456789.,;\t\n"\r -x:{}[]') | st.integers(0, 255)


def _with_bytes(
    draw: Any, content: bytearray, changes: int, head: int = 0, inside: bytes | None = None
) -> bytearray:
    """So many bytes changed, put in or left out, behind a head; in what matches, by its bytes."""
    for _ in range(changes):
        if inside is None:
            at, byte = draw(st.integers(head, len(content) - 1)), draw(_BYTES)
        else:
            within = draw(st.sampled_from([m.span() for m in re.finditer(inside, content)] or [()]))
            if not within:
                return content
            at = draw(st.integers(within[0], within[1] - 1))
            byte = draw(st.sampled_from(b"0123456789.-+eEABCDnsbdrit "))
        how = draw(st.sampled_from(["change", "insert", "drop"]))
        if how == "insert":
            content.insert(at, byte)
        elif how == "drop":
            del content[at]
        else:
            content[at] = byte
    return content


CELLS_OF_BOOKS = (
    None, 0, 1, 0.5, "0.5", "1", "", " ", "x", True, False, 1e-300, "#N/A", "#REF!",
    dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30), dt.time(6), dt.timedelta(hours=30),
)  # fmt: skip

LABELS_OF_BOOKS = (None, 0, 1, 1.0, "1", "0", " ", "", "#N/A", True)
_VALUES_OF_XML = rb"""(?<=\s[rst]=")[^"]+(?=")|(?<=<v>)[^<]+|(?<=<t>)[^<]+|(?<=Id=")\w+"""


def _mutated_workbook(draw: Any, columns: dict[str, list[Any]], metrics: str) -> Attempt:
    """Cells of any types, groups of one or several, then bytes of a part or of the archive."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, by = len(columns["label"]), []
    if rng.random() < 0.5:
        kinds = rng.choice(len(CELLS_OF_BOOKS), int(rng.integers(1, 4)), replace=False)
        columns["site"] = [CELLS_OF_BOOKS[k] for k in rng.choice(kinds, n)]
        by = ["--by", "site"]
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        column = draw(st.sampled_from(list(columns)))
        some = LABELS_OF_BOOKS if column == "label" else CELLS_OF_BOOKS
        columns[column][int(rng.integers(n))] = draw(st.sampled_from(some))
    content = as_format("xlsx", columns, draw)
    where = draw(st.sampled_from([None, "/sheet1.xml", "/sheet1.xml", "/sheet1.xml", ".xml", ""]))
    if where == "":
        content = bytes(_with_bytes(draw, bytearray(content), 1))
    elif where is not None:
        changes = draw(st.integers(1, 2))
        inside = None if draw(st.integers(0, 4)) == 0 else _VALUES_OF_XML
        content = with_part(
            content, where,
            lambda part: bytes(_with_bytes(draw, bytearray(part), changes, inside=inside)),
        )  # fmt: skip
    return _read_by_others("f.xlsx", content, metrics, *by)


MUTATED = {
    "csv": 1_100, "tsv": 1_100, "jsonl": 1_600, "json": 1_600, "parquet": 1_500, "feather": 1_700,
    "npz": 1_600, "csv.gz": 620, "xlsx": 2_200,
}  # fmt: skip
"""Kinds of files, and attempts: at least 500 of each are still read, and compared."""


def _attempt(case: Case) -> Attempt:
    return Attempt(case.files, case.arguments, case.outputs, expected=case.expected, code=case.code)


AREAS: dict[str, tuple[st.SearchStrategy[Attempt], int, str]] = {
    "tables": (tables(), 700, "any cells under any headers, read whole and in parts"),
    "damaged files": (damaged(), 500, "nine formats, bytes changed or cut short, folders too"),
    "options": (options(), 250, "any option with any word"),
    "columns": (column_files(), 200, "files of --columns with any values"),
    "saved maps": (maps(), 200, "calibrations of which a part is another"),
    "votes, labels, reference": (beside(), 200, "tables beside the table"),
    "score, convert": (scores_and_copies(), 200, "the tables above under other commands"),
    "records of labels": (records(), 150, "torn, with other values, of another file, several"),
    "label --out": (written_labels(), 100, "such records, written into tables of any name"),
    "logs of tools": (tool_logs(), 200, "five tools' logs with other values, changed or cut short"),
    "processes": (processes(), 20, "some of all these as a user starts them"),
    "known answers": (known_answers(), 1_200, "tables in any format, written in odd ways"),
    "other names": (other_names(), 300, "their columns under names that options say"),
    "labels apart": (labels_apart(), 300, "their labels in another file, in another order"),
    "gates": (gates(), 300, "conditions on values that are known"),
    **{
        f"mutated {kind}": (
            mutated(kind),
            times,
            f"{kind} with cells or bytes changed",
        )
        for kind, times in MUTATED.items()
    },
    **{area: (made.map(_attempt), times, what) for area, (made, times, what) in ANSWERS.items()},
}


def tried(
    area: str, times: int | None = None, counted: Counted | None = None
) -> tuple[int, list[tuple[Attempt, str]]]:
    """Make the attempts of an area: how many, those that did not hold, and what did not."""
    strategy, most, _ = AREAS[area]
    count = 0
    broken: list[tuple[Attempt, str]] = []

    @seed(22)
    @settings(
        max_examples=times or most, deadline=None, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def attempt_all(attempt: Attempt) -> None:
        nonlocal count
        count += 1
        reason = broken_by(attempt, counted)
        if reason is not None:
            broken.append((attempt, reason))

    attempt_all()
    return count, broken


def known() -> list[Path]:
    """The corpus: what did not hold once."""
    return sorted(CORPUS.glob("*.json"))


def write_table(page: Path, table: str, *, second: bool = False) -> None:
    """Write the first table of the page, or the second; the other one stays as it is."""
    text = page.read_text(encoding="utf-8") if page.exists() else PAGE + SECOND
    first, _, other = text.partition(SECOND)
    text = f"{first.rstrip()}\n\n{SECOND}{table}" if second else f"{PAGE}{table}\n{SECOND}{other}"
    page.write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Try all areas, print the table, and keep what did not hold."""
    parser = argparse.ArgumentParser(description="Tries to break the commands.")
    parser.add_argument("--write", metavar="FILE", help="write the table as a page")
    parser.add_argument("--share", type=float, default=1.0, help="so many times as many attempts")
    parser.add_argument("--areas", nargs="*", default=[], help="these alone")
    asked = parser.parse_args(arguments)
    lines = ["| area | what | tried | held | compared | refused |", "|---|---|---|---|---|---|"]
    total = failed = compared = refused = 0
    for area, (_, count, what) in AREAS.items():
        if asked.areas and area not in asked.areas:
            continue
        ends = Counted()
        times, broken = tried(area, max(int(count * asked.share), 1), ends)
        for k, (attempt, reason) in enumerate(broken[:20]):
            mark = hashlib.blake2b(attempt.to_json().encode(), digest_size=4).hexdigest()
            path = CORPUS / f"{area.replace(', ', '-').replace(' ', '-')}-{mark}.json"
            path.write_text(attempt.to_json() + "\n")
            print(f"{area} {k}: {attempt.arguments} {reason}", file=sys.stderr)
        held = times - len(broken)
        lines.append(
            f"| {area} | {what} | {times:,} | {held:,} | {ends.compared:,} | {ends.refused:,} |"
        )
        print(lines[-1], flush=True)
        compared, refused = compared + ends.compared, refused + ends.refused
        total, failed = total + times, failed + len(broken)
    again = [broken_by(Attempt.from_json(path.read_text())) for path in known()]
    held = sum(reason is None for reason in again)
    lines.append(f"| found before | the corpus | {len(again):,} | {held:,} | | |")
    total, failed = total + len(again), failed + len(again) - held
    ends_of_all = f"**{compared:,}** | **{refused:,}**"
    lines.append(f"| all | | **{total:,}** | **{total - failed:,}** | {ends_of_all} |")
    print("\n".join(lines))
    if asked.write:
        write_table(Path(asked.write), "\n".join(lines) + "\n")
    return int(failed > 0)


PAGE = """# Attempts to break it

An attempt is files that nobody would write by hand and a command on them. It holds where the
command ends with exit code 0, 1 or 2 within two minutes and 4 GB, says one clear line for 2, and
leaves no traceback, nothing half-written, no changed input and no process behind. Where the right
answer is known (from numpy, or from another reader of the same file), the answer must be that one
to nine digits: those are `compared`. The table is written by
`python tests/fuzz/attempts.py --write docs/attempts.md`; `make test-slow` tries them.

"""

SECOND = """## By other roads

Here nothing is a file and options alone: pages, records, servers, databases, arrays, kills. The
same must hold. No name becomes markup, a formula, or a command to a terminal or a CI. No password
is shown. A stream that goes on after a kill has the same bits. The table is written by
`python tests/fuzz/attacks.py --write docs/attempts.md`; `make test-slow` tries them.

"""

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
