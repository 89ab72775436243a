"""What a benchmark found: one long table of estimates, made of its cells, in memory and on disk.

Its folder holds the manifest of what ran, the cells, the table and the page.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from bench.protocol import Protocol, from_plain
from bench.world import ROW, Body, Cell, DatasetFacts, truth_level
from fewlabels import InputError, UsageError

MANIFEST, CELLS = "manifest.json", "cells.jsonl"
WRITTEN = ("results.parquet", "traits.parquet", "report.md", "figures", CELLS, MANIFEST)
"""What a benchmark, its page included, writes into its folder."""


def check_free(folder: Path) -> None:
    """Refuse a folder with finished cells in it, or with files that no benchmark wrote."""
    there = [name for name in WRITTEN if (folder / name).exists()]
    if there and not (folder / MANIFEST).exists():
        raise UsageError(f"`out` {folder} holds {', '.join(there)} of something else; name another")
    if CELLS in there or "results.parquet" in there:
        raise UsageError(f"`out` {folder} holds a benchmark; go on by `resume`, or name another")


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """What the system refuses in the block is one line."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write in {folder}: {error.strerror or error}; what is finished is kept: mend "
            "that, and go on with `resume`"
        ) from None


def replace_file(path: Path, write: Callable[[Path], Any] | str) -> None:
    """Write a file, or a text, beside `path`, then put it in its place, whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        if isinstance(write, str):
            temporary.write_text(write, encoding="utf-8")
        else:
            write(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_manifest(folder: Path, values: Mapping[str, Any]) -> None:
    """Put plain values into the folder, which is made if it is not there."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(folder / MANIFEST, json.dumps(values, indent=2) + "\n")


def read_manifest(folder: Path) -> dict[str, Any]:
    """The plain values that `write_manifest` wrote."""
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{folder / MANIFEST} is not there: nothing to resume") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / MANIFEST} cannot be read ({error})") from None
    if not isinstance(found, dict):
        raise InputError(f"{folder / MANIFEST} is no manifest of a benchmark")
    return found


COLUMNS: Mapping[str, str] = {
    "dataset": "str", "factor": "str", "level": "str", "method": "str", "n_labeled": "int64",
    "n_unlabeled": "int64", "run": "int64", "model": "str", "metric": "str", "group": "str",
    "estimate": "float64", "low": "float64", "high": "float64", "truth": "float64",
    "status": "str", "message": "str", "seconds": "float64",
}  # fmt: skip
"""Columns of the table in their order; the rows are sorted by those before `estimate`."""

TRAITS: Mapping[str, str] = {
    "dataset": "str", "level": "str", "run": "int64", "name": "str", "value": "float64",
}  # fmt: skip
"""Columns of what is known of data sets and levels besides errors; run -1 where of all runs."""


@dataclass(frozen=True, eq=False, repr=False)
class Results:
    """Everything a benchmark found.

    Attributes
    ----------
    rows
        A frame with `COLUMNS`: one row per data set, level, method, size, run, classifier, metric
        and group; `group` "" is all items. A cell that gave nothing is one row with empty `model`
        and `metric`, and its `message`. Method "all-labels-known" is the floor; factor "curve"
        marks the labels-only curve.
    traits
        A frame with `TRAITS`.
    protocol, datasets
        As they ran.
    skipped
        What could not run, a line each.
    folder
        Where the files are.
    """

    protocol: Protocol
    datasets: tuple[DatasetFacts, ...]
    rows: pd.DataFrame
    traits: pd.DataFrame
    skipped: tuple[str, ...] = ()
    folder: Path | None = None

    def __repr__(self) -> str:
        names = ", ".join(dataset.name for dataset in self.datasets)
        return f"Results of {self.protocol.name}: {len(self.rows):,} rows; data sets: {names}"

    @classmethod
    def of_cells(
        cls, found: Mapping[Cell, Body], protocol: Protocol, datasets: tuple[DatasetFacts, ...],
        *rest: Any,
    ) -> Results:  # fmt: skip
        """What the cells of some data sets found."""
        return cls(protocol, datasets, long_table(found, protocol), traits_table(found), *rest)

    def save(self, folder: Path) -> None:
        """Write results.parquet and traits.parquet."""
        for name, frame in (("results", self.rows), ("traits", self.traits)):
            replace_file(folder / f"{name}.parquet", partial(frame.to_parquet, index=False))

    @classmethod
    def load(cls, folder: str | Path) -> Results:
        """Read what a benchmark wrote."""
        folder = Path(folder)
        manifest = read_manifest(folder)
        try:
            datasets = [
                {k: tuple(v) if isinstance(v, list) else v for k, v in plain.items()}
                for plain in manifest["datasets"]
            ]
            return cls(
                from_plain(manifest["protocol"]),
                tuple(DatasetFacts(**plain) for plain in datasets),
                pd.read_parquet(folder / "results.parquet")[list(COLUMNS)].astype(COLUMNS),
                pd.read_parquet(folder / "traits.parquet")[list(TRAITS)].astype(TRAITS),
                tuple(manifest["skipped"]), folder,
            )  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{folder} holds no finished benchmark ({' '.join(str(error).split())}); run it, "
                "or finish it with `resume`"
            ) from None


def joined(parts: Sequence[Results]) -> Results:
    """Results of one protocol on several data sets, each run by itself, as those of one run."""
    return replace(
        parts[0],
        datasets=tuple(dataset for part in parts for dataset in part.datasets),
        rows=pd.concat([part.rows for part in parts], ignore_index=True),
        traits=pd.concat([part.traits for part in parts], ignore_index=True),
    )


def long_table(found: Mapping[Cell, Body], protocol: Protocol) -> pd.DataFrame:
    """The rows of all cells, each estimate beside the truth of its run, sorted."""
    rows: list[tuple[Any, ...]] = []
    for cell, body in found.items():
        seconds = body["seconds"] / max(len({row[0] for row in body["rows"]}), 1)  # of a run
        rows += [(*cell, seconds, *row) for row in body["rows"]]
    names = [*Cell._fields[:5], "at", "method", "seconds", *ROW]
    frame = pd.DataFrame(rows, columns=names)
    frame["truth_level"] = frame["level"].map(lambda level: truth_level(protocol.factor, level))
    place = ["dataset", "truth_level", "run", "group", "model", "metric"]
    truth = frame.loc[frame["kind"] == "truth", [*place, "estimate"]]
    truth = truth.rename(columns={"estimate": "truth"})
    frame = frame[frame["kind"] != "truth"].assign(factor=protocol.factor)
    frame.loc[frame["kind"] == "curve", ["factor", "method"]] = ["curve", "labeled"]
    frame = frame.merge(truth[truth["model"] != ""], on=place, how="left")
    return _sorted(frame, COLUMNS, "estimate")


def traits_table(found: Mapping[Cell, Body]) -> pd.DataFrame:
    """The rows of all traits, sorted."""
    rows = [(cell.dataset, *trait) for cell, body in found.items() for trait in body["traits"]]
    return _sorted(pd.DataFrame(rows, columns=list(TRAITS)), TRAITS, "value")


def _sorted(frame: pd.DataFrame, kinds: Mapping[str, str], first: str) -> pd.DataFrame:
    """A frame with these columns, sorted by those before `first`."""
    keys = list(kinds)[: list(kinds).index(first)]
    return frame[list(kinds)].astype(kinds).sort_values(keys, ignore_index=True)
