"""Runs commands while one call into a library or the system fails; prints what was not one line.

    python tests/fuzz/injected.py [MOST]

Calls in these rooms are wrapped as the modules are loaded. A good run of every command says which
places call what; then each place fails once with each error that it may raise, in a random order:
so many of them, or all.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import errno
import hashlib
import importlib.abc
import importlib.machinery
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import pyarrow as pa

ROOMS = ("data", "streaming", "cli", "checks", "calibration", "labeling", "report")

_SYSTEM = {
    *("open", "stat", "replace", "fsync", "scandir", "link", "rename", "mkdir", "readlink"),
    *("read_bytes", "read_text", "write_text", "write_bytes", "iterdir", "glob", "exists"),
    *("is_file", "is_dir", "read", "write", "load", "savez", "seek", "mkdtemp", "touch"),
}
"""Names of functions that fail where the disk does; what cleans up (close, unlink) does not."""

_PLAIN = {
    *("float64", "string", "large_string", "binary", "int64", "bool_", "null", "field", "schema"),
    *("default_memory_pool", "release_unused"),
}
"""Functions of Arrow that make a type, and touch no data."""

_NUMBERS = (errno.ENOENT, errno.EIO, errno.ENOSPC, errno.EMFILE, errno.EACCES)
_OF_SYSTEM = [lambda n=n: OSError(n, os.strerror(n)) for n in _NUMBERS]
_OF_ARROW = [
    lambda: pa.ArrowInvalid("injected"),
    lambda: pa.ArrowNotImplementedError("injected"),
    lambda: pa.ArrowMemoryError("injected"),
]
_OF_TEXT = [lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "injected")]
_OF_NUMPY = [lambda: ValueError("injected")]


def errors_of(function: Any) -> list[Any]:
    """What a call of it may raise; nothing where it is none of a library or the system."""
    owner = getattr(function, "__self__", None)
    home = getattr(function, "__module__", None) or type(owner).__module__
    name = getattr(function, "__name__", "")
    if (
        isinstance(owner, str | io.BytesIO | io.StringIO)
        or owner is sys.stdout
        or owner is sys.stderr
    ):
        return []
    if home in ("pyarrow.types", "pyarrow.lib") and name in _PLAIN | set(dir(pa.types)):
        return []
    if home.startswith("pyarrow"):
        return _OF_ARROW + (_OF_SYSTEM[1:2] if name in _SYSTEM | {"open_csv", "read_csv"} else [])
    if isinstance(owner, bytes) and name == "decode":
        return _OF_TEXT
    if home.startswith("numpy"):
        return _OF_SYSTEM + _OF_NUMPY * (name == "load") if name in ("load", "savez") else []
    if name in _SYSTEM and home.partition(".")[0] in (
        *("io", "_io", "os", "posix", "pathlib", "shutil", "tempfile", "zipfile", "builtins"),
    ):
        return [*_OF_SYSTEM, MemoryError]
    return []


class Calls:
    """Places that call what may fail, and which of them fails how."""

    def __init__(self) -> None:
        self.seen: dict[str, list[Any]] = {}
        self.fails: tuple[str, Any] | None = None

    def call(self, function: Any, place: str) -> Any:
        """What is called in its stead."""
        if self.fails is not None:
            if self.fails[0] == place and errors_of(function):
                raise self.fails[1]()
        elif place not in self.seen:
            errors = errors_of(function)
            if errors:
                self.seen[place] = errors
        return function


CALLS = Calls()


class _Wrapped(ast.NodeTransformer):
    def __init__(self, path: str) -> None:
        self.path = path.partition("fewlabels/")[2].rpartition("fewlabels/")[2] or path

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        place = ast.Constant(f"{self.path}:{node.lineno}:{node.col_offset}")
        name = ast.Name("__called__", ast.Load())
        node.func = ast.copy_location(ast.Call(name, [node.func, place], []), node.func)
        return node


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        tree = _Wrapped(path).visit(ast.parse(Path(path).read_text(encoding="utf-8")))
        return compile(ast.fix_missing_locations(tree), path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name.split(".")[:1] != ["fewlabels"] or name.split(".")[1:2] not in [[r] for r in ROOMS]:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(name, spec.origin)
        return spec


def made() -> None:
    """The files that the commands read, in the working folder."""
    import pyarrow.parquet as pq
    from pyarrow import csv

    rng = np.random.default_rng(0)
    n = 60
    label = np.arange(n) % 2
    p = np.clip(label * 0.5 + rng.uniform(0, 0.5, n), 0.01, 0.99)
    texts = ["no", "yes"]
    table = pa.table({
        "item": [f"i{i}" for i in range(n)],
        "label": [texts[label[i]] if i % 2 or i < 20 else None for i in range(n)],
        "p__a__yes": p,
        "y__b": [texts[int(v > 0.6)] for v in p],
    })  # fmt: skip
    csv.write_csv(table, "f.csv")
    pq.write_table(table, "f.parquet")
    Path("f.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    both = np.stack([1 - p, p], axis=1)[:, None]
    np.savez("f.npz", probabilities=both, labels=np.where(label, 1, 0), models=["a"])
    Path("folder").mkdir()
    csv.write_csv(table, "folder/1.csv")
    csv.write_csv(table, "folder/2.csv")
    Path("wide.csv").write_text("label,p__a__yes,x\n" + "yes,0.4\nno,0.2\n" * 9)
    Path("labels.csv").write_text("item,label\ni1,yes\ni2,no\n")
    _record(Path("f.labels.jsonl"), [str(name) for name in table.column("item").to_pylist()])
    # In a process of its own: here the package is loaded with every call wrapped.
    fitted = ["calibrate", "f.csv", "--models", "a", "--method", "temperature", "--save", "m.json"]
    subprocess.run(
        [sys.executable, "-m", "fewlabels", *fitted], check=True, stdout=subprocess.DEVNULL
    )


def _record(path: Path, names: list[str]) -> None:
    """A record of two labels of these items."""
    keys = [hashlib.blake2b(name.encode(), digest_size=8).digest() for name in names]
    hashes = np.sort(np.array([int.from_bytes(key, "little") for key in keys], dtype=np.uint64))
    by = {"annotator": "me", "time": "2026-01-01T00:00:00Z"}
    head = {
        "fewlabels": "labels", "format": 1, "file": "f.csv", "item": "item", "items": len(names),
        "digest": hashlib.blake2b(hashes.tobytes(), digest_size=12).hexdigest(),
        "classes": ["no", "yes"], "positive": "yes", "annotator": "me", "created": by["time"],
    }  # fmt: skip
    events = [{"event": "label", "item": n, "class": "yes", **by} for n in names[20:24:2]]
    path.write_text("".join(json.dumps(line) + "\n" for line in (head, *events)))


_QUICK = ["--method", "labeled", "--metrics", "accuracy"]
COMMANDS = [
    *(["doctor", f] for f in ("f.csv", "f.parquet", "f.jsonl", "f.npz", "folder", "wide.csv")),
    *(["estimate", f, *_QUICK] for f in ("f.csv", "f.parquet", "f.jsonl", "f.npz", "folder")),
    *(
        ["estimate", f, *_QUICK, "--engine", "threads"]
        for f in ("f.csv", "f.parquet", "folder", "wide.csv")
    ),
    ["estimate", "f.csv", *_QUICK, "--json", "o.json", "--html", "o.html"],
    ["estimate", "f.csv", *_QUICK, "--labels", "labels.csv"],
    ["calibrate", "f.csv", "--models", "a", "--method", "temperature", "--save", "o.json"],
    ["doctor", "f.csv", "--write", "o.toml"],
    ["convert", "f.csv", "o.csv"],
    ["convert", "f.parquet", "o.parquet"],
    ["label", "f.csv", "--item", "item", "--labels", "f.labels.jsonl", "--out", "o.csv"],
    ["calibrate", "f.csv", "--apply", "m.json", "--out", "o.csv"],
]


def run(main: Any, arguments: list[str]) -> tuple[int, str, str]:
    """Exit code and what was printed."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        code = main(arguments)
    return code, out.getvalue(), err.getvalue()


def broken(main: Any, arguments: list[str], place: str, error: Any) -> str | None:
    """What was not one line, where the place fails so."""
    before = set(Path().rglob("*"))
    CALLS.fails = place, error
    try:
        code, _, err = run(main, arguments)
    except BaseException as escaped:
        return f"raised {escaped!r}"
    finally:
        CALLS.fails = None
    left = set(Path().rglob("*")) - before
    for path in left:
        path.unlink()
    if code not in (0, 1, 2) or "Traceback" in err:
        return f"exit code {code}: {err[-400:]}"
    if code == 2 and not (err.count("\n") == 1 and err.startswith("error: ")):
        return f"not one line: {err!r}"
    if code == 2 and left:
        return f"left {sorted(map(str, left))}"
    return None


def python_broken(fl: Any, path: str, place: str, error: Any) -> str | None:
    """The same of `read_predictions`."""
    CALLS.fails = place, error
    try:
        fl.read_predictions(path)
    except (fl.InputError, fl.UsageError) as said:
        return None if "\n" not in str(said) else f"not one line: {said}"
    except MemoryError:
        return None
    except Exception as escaped:
        return f"raised {escaped!r}"
    finally:
        CALLS.fails = None
    return None


def walk(most: int | None) -> tuple[int, list[str]]:
    """How many failures were tried, at most so many, and what was found."""
    builtins.__dict__["__called__"] = CALLS.call
    sys.meta_path.insert(0, _Finder())
    import fewlabels as fl
    from fewlabels.cli import main

    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        made()
        todo: list[tuple[Any, Any, str, Any]] = []
        for arguments in COMMANDS:
            CALLS.seen = {}
            before = set(Path().rglob("*"))
            code, _, err = run(main, arguments)
            assert code == (2 if "wide.csv" in arguments else 0), (arguments, err[-600:])
            for path in set(Path().rglob("*")) - before:
                path.unlink()
            todo += [(main, arguments, p, e) for p, errors in CALLS.seen.items() for e in errors]
        for file in ("f.csv", "f.parquet", "f.jsonl", "f.npz", "folder"):
            CALLS.seen = {}
            fl.read_predictions(file)
            todo += [(fl, file, p, e) for p, errors in CALLS.seen.items() for e in errors]
        random.Random(0).shuffle(todo)
        for at, given, place, error in todo[:most]:
            check = broken if at is main else python_broken
            what = check(at, given, place, error)
            if what is not None:
                found.setdefault(f"{place} {error()!r}", f"{given}: {what}")
    return len(todo[:most]), [f"{place} {what}" for place, what in found.items()]


if __name__ == "__main__":
    tried, found = walk(int(sys.argv[1]) if len(sys.argv) > 1 else None)
    print(json.dumps({"tried": tried, "found": found}, indent=1))
