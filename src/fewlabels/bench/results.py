"""What a benchmark found: tidy rows and traits, in memory and in a directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fewlabels.bench.files import replace_file
from fewlabels.bench.protocol import Protocol, from_plain
from fewlabels.errors import InputError, listed, one_line
from fewlabels.kernels.arrays import Array

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


@dataclass(frozen=True)
class DatasetFacts:
    """What ran: sizes, classifiers and classes of a data set, and what to know of it.

    n_half is how many items a run draws from.
    """

    name: str
    n_items: int
    n_half: int
    models: tuple[str, ...]
    classes: tuple[Any, ...]
    groups: tuple[str, ...]
    notes: tuple[str, ...]
    file: str
    digest: str

    def plain(self) -> dict[str, Any]:
        """Every field as plain JSON values."""
        return {
            "name": self.name,
            "n_items": self.n_items,
            "n_half": self.n_half,
            "models": list(self.models),
            "classes": [c if isinstance(c, int | float) else str(c) for c in self.classes],
            "groups": list(self.groups),
            "notes": list(self.notes),
            "file": self.file,
            "digest": self.digest,
        }

    @classmethod
    def from_plain(cls, said: Mapping[str, Any]) -> DatasetFacts:
        """The inverse of `plain`."""
        lists = ("models", "classes", "groups", "notes")
        values: dict[str, Any] = {k: tuple(v) if k in lists else v for k, v in said.items()}
        return cls(**values)


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
        import pyarrow.csv
        import pyarrow.parquet

        rows = pa.table(dict(self.columns))
        replace_file(folder / "results.parquet", partial(pa.parquet.write_table, rows))
        for name, table in (("results.csv", rows), ("traits.csv", pa.table(dict(self.traits)))):
            replace_file(folder / name, partial(pa.csv.write_csv, _nan_to_null(table)))

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
        import pyarrow.parquet

        folder = Path(folder)
        try:
            manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
            rows = pa.parquet.read_table(folder / "results.parquet")
            types = {name: _ARROW[kind] for name, kind in TRAITS.items()}
            convert = pa.csv.ConvertOptions(
                column_types={n: pa.type_for_alias(t) for n, t in types.items()},
                strings_can_be_null=False,
            )
            traits = pa.csv.read_csv(folder / "traits.csv", convert_options=convert)
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


def _nan_to_null(table: Any) -> Any:
    """An empty field says in a CSV file what NaN says in memory."""
    import pyarrow as pa

    columns = {}
    for name in table.column_names:
        values = table[name]
        if pa.types.is_floating(values.type):
            array = values.to_numpy()
            values = pa.array(array, mask=np.isnan(array))
        columns[name] = values
    return pa.table(columns)


def _arrays(table: Any, kinds: Mapping[str, type]) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for name, kind in kinds.items():
        values = table[name]
        if kind is str:
            found[name] = np.array(values.to_pylist(), dtype=object)
        else:
            found[name] = np.asarray(values.fill_null(np.nan) if kind is float else values)
    return found
