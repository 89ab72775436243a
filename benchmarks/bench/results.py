"""What a benchmark found: one long table of estimates, made of its cells, in memory and on disk."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import Any

import pandas as pd

from bench.cells import Body, Cell, DatasetFacts
from bench.folder import replace_file
from bench.protocol import HISTOGRAMS, Protocol, from_plain
from bench.world import truth_level
from fewlabels.errors import InputError, Status, listed, one_line

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
        marks the labeled-only curve.
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
        names = listed(dataset.name for dataset in self.datasets)
        lines = [f"Results: protocol {self.protocol.name}, {len(self.rows):,} rows; "
                 f"data sets: {names}"]  # fmt: skip
        lines += [f"  skipped: {one_line(text, 100)}" for text in self.skipped[:10]]
        return "\n".join(lines)

    def save(self, folder: Path) -> None:
        """Write results.parquet and traits.parquet."""
        for name, frame in (("results", self.rows), ("traits", self.traits)):
            replace_file(folder / f"{name}.parquet", partial(frame.to_parquet, index=False))

    @classmethod
    def load(cls, folder: str | Path) -> Results:
        """Read what a benchmark wrote.

        Raises
        ------
        InputError
            If the folder holds no finished benchmark.
        """
        folder = Path(folder)
        try:
            manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
            return cls(
                from_plain(manifest["protocol"]),
                tuple(DatasetFacts.from_plain(d) for d in manifest["datasets"]),
                pd.read_parquet(folder / "results.parquet")[list(COLUMNS)].astype(COLUMNS),
                pd.read_parquet(folder / "traits.parquet")[list(TRAITS)].astype(TRAITS),
                tuple(manifest["skipped"]),
                folder,
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"{one_line(str(folder))} holds no finished benchmark ({one_line(str(error))}); "
                "run it, or finish it with `resume`"
            ) from None


# --- from cells ----------------------------------------------------------------------------------


def tidy(found: Mapping[Cell, Body], protocol: Protocol) -> pd.DataFrame:
    """The rows of all cells, each estimate beside the truth of its run, sorted."""
    truths = {
        (cell.dataset, cell.level, cell.run, *place): value
        for cell, body in found.items()
        if cell.kind == "truth" and body["models"]
        for place, value in zip(_places(body), body["estimate"], strict=True)
    }
    rows: list[tuple[Any, ...]] = []
    histograms = protocol.design == HISTOGRAMS
    for cell, body in found.items():
        if cell.kind not in ("estimates", "curve"):
            continue
        curve = cell.kind == "curve"
        factor, method = ("curve", "labeled") if curve else (protocol.factor, cell.method)
        at = (cell.dataset, factor, cell.level, method, cell.n_labeled, cell.n_unlabeled)
        if not body["models"]:
            run, seconds = body["runs"][0], body["seconds"][0]
            nothing = ("", "", "", None, None, None, None, body["status"])
            rows.append((*at, run, *nothing, body["message"], seconds))
            continue
        level = "" if curve else truth_level(protocol.factor, cell.level)
        places = list(_places(body))
        size = len(places)
        ends = (body[end] or [None] * size * len(body["runs"]) for end in ("low", "high"))
        values = zip(body["estimate"], *ends, body["status"], strict=True)
        for run, seconds in zip(body["runs"], body["seconds"], strict=True):
            for (group, model, metric), (value, low, high, status) in zip(
                places, islice(values, size), strict=True
            ):
                if histograms and status == Status.NOT_APPLICABLE:
                    continue  # a metric that the method has not, or an empty bin
                truth = truths.get((cell.dataset, level, run, group, model, metric))
                rows.append(
                    (*at, run, model, metric, group, value, low, high, truth, status,
                     body["message"], seconds)
                )  # fmt: skip
    return _frame(rows, COLUMNS, list(COLUMNS).index("estimate"))


def traits(found: Mapping[Cell, Body]) -> pd.DataFrame:
    """The rows of all traits, sorted."""
    rows = [(cell.dataset, *trait) for cell, body in found.items() for trait in body["traits"]]
    return _frame(rows, TRAITS, len(TRAITS) - 1)


def _places(body: Body) -> Iterator[tuple[str, str, str]]:
    """Group, classifier and metric of each value of a run."""
    return product(body["groups"], body["models"], body["metrics"])


def _frame(rows: Sequence[tuple[Any, ...]], kinds: Mapping[str, str], keys: int) -> pd.DataFrame:
    """Rows as a frame, sorted by the first of its columns."""
    frame = pd.DataFrame(rows, columns=list(kinds)).astype(kinds)
    return frame.sort_values(list(kinds)[:keys], ignore_index=True)
