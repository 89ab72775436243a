"""`python -m benchmarks NAME --data PATH`: a protocol of the papers on files of predictions."""

from __future__ import annotations

import argparse
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.page import write_page
from bench.protocol import load, names
from bench.results import writing
from bench.runner import run
from fewlabels import FewlabelsError
from fewlabels.methods.settings import split_methods
from runs import numbers

BAD_INPUT, STOPPED = 2, 130


def _pair(text: str) -> tuple[str, str]:
    column, equals, rest = text.partition("=")
    if not (column and equals):
        raise ValueError
    return column, rest


def _edges(text: str) -> tuple[str, list[float]]:
    column, edges = _pair(text)
    return column, [float(edge) for edge in split_methods(edges)]


def _columns(text: str) -> tuple[str, list[str]]:
    name, columns = _pair(text)
    return name, split_methods(columns)


_FIELDS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "runs": (int, "how often items and labels are drawn"),
    "methods": (split_methods, "methods, with settings in brackets"),
    "metrics": (split_methods, "metrics"),
    "n-labeled": (numbers, "labels, each number with each of --n-unlabeled"),
    "n-unlabeled": (numbers, "items without a label"),
    "sampler": (str, "released (that of the SSME code) or uniform"),
    "seed": (int, "0 gives the splits of the SSME code"),
    "estimand": (str, "sample or population"),
    "confidence-level": (float, "also compute intervals, and their coverage"),
    "levels": (split_methods, "levels of what the protocol varies"),
    "by": (split_methods, "columns to estimate by"),
    "slice-by": (str, "trained sets: the numeric column that is sliced"),
    "train-rows": (int, "trained sets: rows of each classifier"),
    "truth-rows": (int, "trained sets: rows of the truth"),
    "curve-runs": (int, "draws of each size of the curve; 0: no curve"),
    "subset-size": (int, "classifiers in a subset"),
    "subsets": (int, "subsets at most"),
}  # fmt: skip
"""Fields of a protocol that the command line sets otherwise."""

_READING: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "label": (str, "column of the labels"),
    "domain": (str, "column of the domain"),
    "weight": (str, "column of the sampling weight"),
    "columns": (str, "TOML file that says which columns are what"),
    "classes": (split_methods, "all classes, in the order of the columns"),
}
"""What `fewlabels.read_predictions` takes."""

_PAIRS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "where": (_pair, "COL=VALUE: only these rows"),
    "model": (_columns, "NAME=COL,..: columns of a classifier"),
    "bins": (_edges, "COL=EDGE,..: where a numeric column of --by is cut"),
}


def parser() -> argparse.ArgumentParser:
    """The options of a protocol."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, allow_abbrev=False, exit_on_error=False
    )
    made.add_argument("name", help="a protocol, or a .toml file of your own")
    made.add_argument("--data", action="append", default=[], metavar="PATH", help="file or folder")
    made.add_argument("--models", type=split_methods, default=[], help="only these classifiers")
    made.add_argument("--exclude-models", type=split_methods, default=[], help="all but these")
    made.add_argument("--out", help="a new folder; default: ./benchmark-NAME")
    made.add_argument("--resume", action="store_true", help="take over what is finished there")
    made.add_argument("--workers", type=int, help="processes; the answer does not depend on them")
    for name, (kind, meaning) in (_FIELDS | _READING).items():
        made.add_argument(f"--{name}", type=kind, help=meaning)
    for name, (kind, meaning) in _PAIRS.items():
        made.add_argument(f"--{name}", type=kind, action="append", default=[], help=meaning)
    return made


def main(arguments: Sequence[str], command: str = "") -> int:
    """Run a protocol, write its page, and print its main tables.

    Returns
    -------
    int
        The exit code: 0, 2 for bad input, 130 where it was stopped.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _run(parser().parse_args(arguments), command)
    except KeyboardInterrupt:
        print("\nstopped; what is finished is kept: the same command with --resume goes on",
              file=sys.stderr)  # fmt: skip
        return STOPPED
    except (FewlabelsError, argparse.ArgumentError) as error:
        options = {a.dest: a.option_strings[-1] for a in parser()._actions if a.option_strings}
        line = re.sub(r"`(\w+)`", lambda m: options.get(m[1], m[0]), " ".join(str(error).split()))
        print(f"error: {line}", file=sys.stderr)
        return BAD_INPUT


def _run(given: argparse.Namespace, command: str) -> int:
    asked = {k: v for k, v in vars(given).items() if v not in (None, [])}
    fields = {k: asked[k] for k in (n.replace("-", "_") for n in _FIELDS) if k in asked}
    if given.bins:
        fields["bins"] = dict(given.bins)
    columns = {k: asked[k] for k in _READING if k in asked}
    if given.model:
        columns["models"] = dict(given.model)
    folder = Path(given.out or f"benchmark-{load(given.name).name}")
    results = run(
        given.name, given.data, folder, resume=given.resume, workers=given.workers,
        models=given.models, exclude_models=given.exclude_models, where=dict(given.where),
        columns=columns, **fields,
    )  # fmt: skip
    with writing(folder):
        print(write_page(results, folder, command))
    for dataset in results.datasets:
        for note in dataset.notes:
            print(f"{dataset.name}: {note}")
    print(f"\nPage:  {folder}/report.md\nTable: {folder}/results.parquet")
    return 0


def listed() -> str:
    """The protocols and what they are about."""
    return "\n".join(f"{known.name:24}{known.title}" for known in map(load, names()))
