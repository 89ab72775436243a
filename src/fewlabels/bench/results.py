"""What a benchmark found: tidy rows and traits, made of its cells, in memory and in a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np

from fewlabels.bench.cells import Body, Cell, DatasetFacts
from fewlabels.bench.folder import replace_file
from fewlabels.bench.protocol import HISTOGRAMS, Protocol, from_plain
from fewlabels.bench.world import truth_level
from fewlabels.errors import InputError, Status, listed, one_line
from fewlabels.kernels.arrays import Array

Columns = dict[str, Array]

COLUMNS: Mapping[str, type] = {
    "dataset": str,
    "factor": str,
    "level": str,
    "method": str,
    "n_labeled": int,
    "n_unlabeled": int,
    "run": int,
    "model": str,
    "metric": str,
    "group": str,
    "estimate": float,
    "low": float,
    "high": float,
    "truth": float,
    "status": str,
    "message": str,
    "seconds": float,
}
"""Tidy columns in their order; the rows are sorted by those before `estimate`."""

TRAITS: Mapping[str, type] = {
    "dataset": str,
    "level": str,
    "run": int,
    "name": str,
    "value": float,
}
"""Columns of what is known of data sets and levels besides errors; run -1 where of all runs."""


@dataclass(frozen=True, eq=False, repr=False)
class Results:
    """Everything a benchmark found.

    Attributes
    ----------
    columns
        Tidy rows: name (`COLUMNS`) -> array (rows,); text is of type object. One row per data set,
        level, method, size, run, classifier, metric and group; `group` "" is all items.
        A cell that gave nothing is one row with empty `model` and `metric`, and its `message`.
        Method "all-labels-known" is the floor; factor "curve" marks the labeled-only curve.
    traits
        Name (`TRAITS`) -> array (rows,).
    protocol, datasets
        As they ran.
    skipped
        What could not run, a line each.
    folder
        Where the files are.
    """

    protocol: Protocol
    datasets: tuple[DatasetFacts, ...]
    columns: Mapping[str, Array]
    traits: Mapping[str, Array]
    skipped: tuple[str, ...] = ()
    folder: Path | None = None

    def __repr__(self) -> str:
        names = listed(dataset.name for dataset in self.datasets)
        rows = len(next(iter(self.columns.values()), ()))
        lines = [f"Results: protocol {self.protocol.name}, {rows:,} rows; data sets: {names}"]
        lines += [f"  skipped: {one_line(text, 100)}" for text in self.skipped[:10]]
        return "\n".join(lines)

    def save(self, folder: Path) -> None:
        """Write results.parquet, results.csv and traits.csv.

        Raises
        ------
        OSError
            If the system refuses.
        """
        import pyarrow as pa
        import pyarrow.parquet

        from fewlabels.data.write import write_table

        rows = pa.table(dict(self.columns))
        replace_file(folder / "results.parquet", partial(pa.parquet.write_table, rows))
        for name, columns in (("results.csv", self.columns), ("traits.csv", self.traits)):
            replace_file(folder / name, partial(write_table, columns, kind="csv"))

    @classmethod
    def load(cls, folder: str | Path) -> Results:
        """Read what a benchmark wrote.

        Raises
        ------
        InputError
            If the folder holds no finished benchmark.
        """
        import pyarrow as pa
        import pyarrow.csv

        from fewlabels.data.binary import parquet_file
        from fewlabels.data.delimited import as_written

        folder = Path(folder)
        try:
            manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
            with parquet_file(folder / "results.parquet") as file:
                rows = file.read()
            convert = pa.csv.ConvertOptions(column_types=_schema(TRAITS), strings_can_be_null=False)
            read = pa.csv.read_csv(folder / "traits.csv", convert_options=convert)
            traits = pa.table({name: as_written(read[name]) for name in read.column_names})
            return cls(
                from_plain(manifest["protocol"]),
                tuple(DatasetFacts.from_plain(d) for d in manifest["datasets"]),
                _arrays(rows, COLUMNS),
                _arrays(traits, TRAITS),
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


_ARROW = {str: "string", int: "int64", float: "float64"}


def _schema(kinds: Mapping[str, type]) -> Any:
    import pyarrow as pa

    return pa.schema([(name, pa.type_for_alias(_ARROW[kind])) for name, kind in kinds.items()])


def _arrays(table: Any, kinds: Mapping[str, type]) -> Columns:
    found: Columns = {}
    for name, kind in kinds.items():
        values = table[name]
        if kind is str:
            found[name] = np.array(values.to_pylist(), dtype=object)
        else:
            found[name] = np.asarray(values.fill_null(np.nan) if kind is float else values)
    return found


# --- from cells ----------------------------------------------------------------------------------


def tidy(found: Mapping[Cell, Body], protocol: Protocol) -> Columns:
    """The tidy rows of all cells, each estimate beside the truth of its run, sorted."""
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
    return _sorted(rows, COLUMNS, list(COLUMNS).index("estimate"))


def traits(found: Mapping[Cell, Body]) -> Columns:
    """The rows of all traits, sorted."""
    rows = [(cell.dataset, *trait) for cell, body in found.items() for trait in body["traits"]]
    return _sorted(rows, TRAITS, len(TRAITS) - 1)


def _places(body: Body) -> Iterator[tuple[str, str, str]]:
    """Group, classifier and metric of each value of a run."""
    return product(body["groups"], body["models"], body["metrics"])


def _sorted(rows: Sequence[tuple[Any, ...]], kinds: Mapping[str, type], keys: int) -> Columns:
    """Rows as columns, sorted by the first of these."""
    import pyarrow as pa

    schema = _schema(kinds)
    columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
    table = pa.table(list(map(pa.array, columns, schema.types)), schema=schema)
    return _arrays(table.sort_by([(name, "ascending") for name in list(kinds)[:keys]]), kinds)
