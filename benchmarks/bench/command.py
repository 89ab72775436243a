"""`python -m benchmarks NAME --data PATH`: a protocol of the papers on files of predictions."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.folder import MANIFEST, folder_of, writing
from bench.page import main_tables, write_page
from bench.protocol import load, names
from bench.runner import run
from fewlabels.cli import interrupts
from fewlabels.cli import output as terminal
from fewlabels.errors import FewlabelsError, UsageError, one_line, quoted
from fewlabels.methods.settings import split_methods

BAD_INPUT = 2


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _numbers(text: str, kind: type = int) -> list[Any]:
    return [kind(part) for part in _list(text)]


def _edges(text: str) -> tuple[str, list[float]]:
    column, edges = _pair(text)
    return column, _numbers(edges, float)


def _pair(text: str) -> tuple[str, str]:
    column, equals, rest = text.partition("=")
    if not (column and equals):
        raise ValueError
    return column, rest


_FIELDS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "runs": (int, "how often items and labels are drawn"),
    "methods": (lambda text: split_methods(text), "methods, with settings in brackets"),
    "metrics": (_list, "metrics"),
    "n-labeled": (_numbers, "labels, each number with each of --n-unlabeled"),
    "n-unlabeled": (_numbers, "items without a label"),
    "labels-per-item": (_numbers, "labels of a validation item (disagreement)"),
    "sampler": (str, "released (that of the SSME code) or uniform"),
    "seed": (int, "0 gives the splits of the SSME code"),
    "estimand": (str, "sample or population"),
    "confidence-level": (float, "also compute intervals, and their coverage"),
    "levels": (_list, "levels of what the protocol varies"),
    "by": (_list, "columns to estimate by"),
    "slice-by": (str, "trained sets: the numeric column that is sliced"),
    "train-rows": (int, "trained sets: rows of each classifier"),
    "truth-rows": (int, "trained sets: rows of the truth"),
    "curve-runs": (int, "draws of each size of the curve; 0: no curve"),
    "subset-size": (int, "classifiers in a subset"),
    "subsets": (int, "subsets at most"),
}
"""Fields of a protocol that the command line sets otherwise."""

_COLUMNS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "label": (str, "column of the labels"),
    "domain": (str, "column of the domain"),
    "weight": (str, "column of the sampling weight"),
    "columns": (str, "TOML file that says which columns are what"),
    "classes": (_list, "all classes, in the order of the columns"),
}


def parser() -> argparse.ArgumentParser:
    """The options of a protocol."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, allow_abbrev=False, exit_on_error=False
    )
    made.add_argument("name", help="a protocol, or a .toml file of your own")
    made.add_argument("--data", action="append", default=[], metavar="PATH", help="file or folder")
    made.add_argument("--where", action="append", default=[], type=_pair, metavar="COL=VALUE",
                      help="only these rows")  # fmt: skip
    made.add_argument("--most-items", type=int, help="rows of a file that are used at most")
    made.add_argument("--models", type=_list, default=[], help="only these classifiers")
    made.add_argument("--exclude-models", type=_list, default=[], help="all but these")
    made.add_argument("--out", help="a new folder; default: ./benchmark-NAME")
    made.add_argument("--resume", action="store_true", help="go on, or add to what is there")
    made.add_argument("--workers", type=int, help="processes; the answer does not depend on them")
    made.add_argument("--model", action="append", default=[], type=_pair, metavar="NAME=COL,..",
                      help="columns of a classifier")  # fmt: skip
    made.add_argument("--bins", action="append", default=[], type=_edges, metavar="COL=EDGE,..",
                      help="where a numeric column of --by is cut")  # fmt: skip
    for options in (_FIELDS, _COLUMNS):
        for name, (kind, meaning) in options.items():
            made.add_argument(f"--{name}", type=kind, help=meaning)
    return made


def main(arguments: Sequence[str]) -> int:
    """Run a protocol, write its page, and print its main tables.

    Returns
    -------
    int
        The exit code: 0, 2 for bad input, or that of a signal.
    """
    try:
        given = parser().parse_args(arguments)
        asked = {k: v for k, v in vars(given).items() if v not in (None, [])}
        fields = {k: asked[k] for k in (n.replace("-", "_") for n in _FIELDS) if k in asked}
        if "bins" in asked:
            fields["bins"] = _once("--bins", given.bins)
        columns: dict[str, Any] = {k: asked[k] for k in _COLUMNS if k in asked}
        if given.model:
            columns["models"] = {n: _list(c) for n, c in _once("--model", given.model).items()}
        with interrupts.heard():
            return _run(given, fields, columns)
    except interrupts.Stopped as stop:
        interrupts.say(stop.number)
        return stop.code
    except (FewlabelsError, argparse.ArgumentError) as error:
        print(f"error: {one_line(as_options(str(error)))}", file=sys.stderr)
        return BAD_INPUT


def _once(option: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Column -> the rest; one column cannot mean two things."""
    found: dict[str, Any] = {}
    for column, rest in pairs:
        if found.setdefault(column, rest) != rest:
            raise UsageError(f"{option} names column {quoted(column)} twice; name it once")
    return found


def _run(given: argparse.Namespace, fields: dict[str, Any], columns: dict[str, Any]) -> int:
    name = load(given.name).name
    folder = folder_of(given.out, name)
    interrupts.advise(partial(_how_to_go_on, given.name, given.out, folder))
    with terminal.progress_bar(f"benchmark {name}") as progress:
        results = run(
            given.name, given.data, folder, resume=given.resume, workers=given.workers,
            models=given.models, exclude_models=given.exclude_models,
            where=_once("--where", given.where), most_items=given.most_items, columns=columns,
            progress=progress, **fields,
        )  # fmt: skip
    with writing(folder):
        page = write_page(results, folder)
    print(main_tables(page))
    for dataset in results.datasets:
        for note in dataset.notes:
            print(one_line(as_options(f"{dataset.name}: {note}")))
    print(f"\nPage:  {folder}/report.md\nTable: {folder}/results.parquet")
    return 0


def _how_to_go_on(name: str, out: str | None, folder: Path) -> str:
    """What to say when it is stopped."""
    if not (folder / MANIFEST).exists():
        return " before anything was computed"
    place = "" if out is None else f" --out {shlex.quote(out)}"
    return (
        "; what is finished is kept, go on with: python -m benchmarks "
        f"{one_line(shlex.quote(name) + place)} --resume"
    )


def as_options(line: str) -> str:
    """A line of the engine, which names arguments of Python, as the command line spells them."""
    options = {a.dest: a.option_strings[-1] for a in parser()._actions if a.option_strings}
    return re.sub(r"`(\w+)`", lambda m: options.get(m[1], m[0]), line)


def listed() -> str:
    """The protocols and what they are about."""
    return "\n".join(f"{known.name:24}{known.title}" for known in map(load, names()))
