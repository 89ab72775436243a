"""The command that asks for a benchmark again, without the paths of the machine that ran it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from fewlabels.bench.manifest import NAME
from fewlabels.bench.methods import FLOOR, REFERENCE, canonical
from fewlabels.bench.protocol import Protocol, load, names
from fewlabels.errors import one_line

if TYPE_CHECKING:
    from fewlabels.bench.results import Results

_FIELDS = (
    "runs", "methods", "metrics", "n_labeled", "n_unlabeled", "sampler", "seed", "estimand",
    "confidence_level", "levels", "curve_runs", "by", "slice_by", "train_rows", "truth_rows",
)  # fmt: skip
OPTIONS: Mapping[str, str] = {field: field for field in _FIELDS}
"""Fields of a protocol -> option of their own, in the order of the command's help."""


def value_of(protocol: Protocol, field: str) -> Any:
    """A field as it runs: with the labels alone, without the floor and without made levels."""
    value = getattr(protocol, field)
    if field != "methods":
        return () if field == "levels" and protocol.factor == "subset" else value
    named = tuple(m for m in value if m != FLOOR)
    return named if REFERENCE in named else (REFERENCE, *named)


def command(
    results: Results,
    shipped: Protocol | None = None,
    options: Mapping[str, str] = OPTIONS,
    value: Callable[[Protocol, str], Any] = value_of,
) -> str:
    """`fewlabels benchmark NAME --data ...` with the options in which the run left its protocol.

    Files and folders are named without the folders that they are in. Of a protocol that does not
    come with the package only the name and the data are known; `shipped` is that which does,
    unless it is a file of the package.
    """
    protocol = results.protocol
    manifest = _manifest(results.folder)
    if shipped is None and protocol.name in names():
        file = load(protocol.name)
        shipped = replace(file, methods=tuple(map(canonical, file.methods)))
    words = ["fewlabels", "benchmark", protocol.name if shipped else f"{protocol.name}.toml"]
    data = manifest.get("data") or [d.file for d in results.datasets]
    for place in data:
        words += ["--data", PurePath(str(place)).name]
    if shipped:
        words += _changes(shipped, protocol, options, value)
    words += _reading(manifest.get("reading") or {})
    return one_line(shlex.join(words))


def _manifest(folder: Path | None) -> Mapping[str, Any]:
    """What the folder's manifest says; nothing where there is none, as in memory."""
    try:
        said = json.loads((folder / NAME).read_bytes()) if folder is not None else {}
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def _changes(
    shipped: Protocol,
    ran: Protocol,
    options: Mapping[str, str],
    value: Callable[[Protocol, str], Any],
) -> Iterator[str]:
    # A confidence level brings an estimand of its own unless one is named.
    named = ran.confidence_level is not None and ran.factor != "labels"
    for field, option in options.items():
        before, now = value(shipped, field), value(ran, field)
        if field == "estimand" and named:
            before = None
        if now != before and now is not None:
            yield from (f"--{option.replace('_', '-')}", _written(now))
    for column, edges in ran.bins.items():
        if shipped.bins.get(column) != edges:
            yield from ("--bins", f"{column}={_written(edges)}")


def _reading(said: Mapping[str, Any]) -> Iterator[str]:
    for field in ("models", "exclude_models"):
        if said.get(field):
            yield from (f"--{field.replace('_', '-')}", _written(said[field]))
    for column, value in (said.get("where") or {}).items():
        yield from ("--where", f"{column}={value}")
    for field, value in (said.get("columns") or {}).items():
        if field == "models":
            for model, columns in value.items():
                yield from ("--model", f"{model}={_written(columns)}")
        else:
            written = PurePath(value).name if field == "columns" else _written(value)
            yield from (f"--{field}", written)


def _written(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_written, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
