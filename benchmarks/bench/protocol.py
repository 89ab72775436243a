"""A protocol: what a benchmark varies, repeats and measures, as one small TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

from bench.splits import SAMPLERS
from fewlabels import InputError, UsageError

PROTOCOLS = Path(__file__).parent / "protocols"

FLOOR = "all-labels-known"
"""The row of what the labels of all items would give."""

REFERENCE = "labeled"
"""The row that others are compared with."""

TRAINED, HISTOGRAMS = "trained sets", "histograms"
LABELS = ("drawn", "expected", "by-item")
"""Levels of what labels are: drawn, expected, or compared with the scores item by item."""

VARIES: Mapping[str, tuple[str, ...]] = {
    "predictions": ("", "sharpness", "labels", "subset"),
    TRAINED: ("", "classifiers", "sharpness"),
    HISTOGRAMS: ("",),
}
"""The designs, and the factors that each can vary."""

CHOICES: Mapping[str, tuple[str, ...]] = {
    "serves": ("any", "two classes", "more than two classes"),
    "design": tuple(VARIES),
    "sampler": SAMPLERS,
    "estimand": ("sample", "population"),
    "factor": tuple(dict.fromkeys(factor for design in VARIES.values() for factor in design)),
}
_LEAST = {"seed": 0, "n_unlabeled": 0, "curve_runs": 0, "train_rows": 2}
"""Of whole numbers; 1 of the others."""


@dataclass(frozen=True)
class Protocol:
    """What a benchmark does; docs/benchmark.md says what each field means."""

    name: str
    title: str
    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    n_labeled: tuple[int, ...]
    n_unlabeled: tuple[int, ...]
    runs: int
    source: str = ""
    serves: str = "any"
    design: str = "predictions"
    sampler: str = "released"
    seed: int = 0
    estimand: str = "sample"
    confidence_level: float | None = None
    factor: str = ""
    levels: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    bins: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    curve_first: int = 10
    curve_last: int = 1000
    curve_step: int = 5
    curve_runs: int = 50
    subset_size: int = 3
    subsets: int = 20
    slice_by: str = ""
    train_rows: int = 100
    truth_rows: int = 10_000
    tables: tuple[str, ...] = ("methods",)
    figures: tuple[str, ...] = ()

    def with_options(self, **options: Any) -> Protocol:
        """The same protocol with some fields set otherwise.

        Intervals for the items of a run cannot be held against the truth of others, so where a
        confidence level is set and no estimand, that is "population".
        """
        changed = replace(self, **checked(options))
        begins = self.confidence_level is None and changed.confidence_level is not None
        if begins and changed.factor != "labels":
            changed = replace(changed, estimand=options.get("estimand", "population"))
        if changed.factor not in VARIES[changed.design]:
            raise UsageError(f"design {changed.design!r} cannot vary {changed.factor!r}")
        if changed.factor not in ("", "subset"):
            if not changed.levels:
                raise UsageError(f"a protocol that varies {changed.factor!r} needs `levels`")
            for level in changed.levels:
                _check_level(changed.factor, level)
        return changed

    def plain(self) -> dict[str, Any]:
        """Every field as plain JSON values."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}


def names() -> tuple[str, ...]:
    """Names of the protocols that come along, those of SSME first."""
    found = (path.stem for path in PROTOCOLS.glob("*.toml"))
    return tuple(sorted(found, key=lambda name: (not name.startswith("ssme"), name)))


def load(name: str | Path) -> Protocol:
    """Read a protocol that comes along, or a .toml file of one's own."""
    path = PROTOCOLS / f"{name}.toml" if str(name) in names() else Path(name)
    if path.suffix != ".toml":
        raise UsageError(
            f"unknown protocol {str(name)!r}; choose from {', '.join(names())}, or name a .toml "
            "file of your own"
        )
    try:
        return from_plain({"name": path.stem} | tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:  # an error of TOML or of UTF-8 is a ValueError
        raise InputError(f"protocol {path.name!r}: {error}") from None


def from_plain(values: Mapping[str, Any]) -> Protocol:
    """A protocol from plain values, as in a TOML file."""
    needed = [f.name for f in fields(Protocol) if (f.default, f.default_factory) == (MISSING,) * 2]
    if missing := [name for name in needed if name not in values]:
        raise InputError(f"`{missing[0]}` is missing")
    first = {name: values[name] for name in needed}
    rest = {name: value for name, value in values.items() if name not in needed}
    return Protocol(**checked(first)).with_options(**rest)


def checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of fields, each of its type."""
    kinds = get_type_hints(Protocol)
    if unknown := [name for name in values if name not in kinds]:
        raise UsageError(f"unknown field `{unknown[0]}`; there are {', '.join(kinds)}")
    return {name: _value(name, value, kinds[name]) for name, value in values.items()}


def _value(name: str, value: Any, kind: Any) -> Any:
    if name == "bins":
        edges = value.items() if isinstance(value, Mapping) else ()
        found = {str(c): tuple(_one(name, e, float) for e in each) for c, each in edges}
        if (not edges and value) or any(list(e) != sorted({*e}) or not e for e in found.values()):
            raise UsageError(f"`bins` must map columns to rising numbers; got {value!r}")
        return found
    if name == "confidence_level":
        if value is not None and not 0 < _one(name, value, float) < 1:
            raise UsageError(f"`{name}` must be between 0 and 1; got {value!r}")
        return value
    if not get_args(kind):
        return _one(name, value, kind)
    each = value if isinstance(value, list | tuple) else [value]
    if name == "levels":
        each = [f"{v:g}" if isinstance(v, int | float) else _number_text(v) for v in each]
    found = tuple(dict.fromkeys(_one(name, v, get_args(kind)[0]) for v in each))
    if not found and name in ("methods", "metrics", "n_labeled", "n_unlabeled"):
        raise UsageError(f"`{name}` is empty; name at least one")
    return found


def _one(name: str, value: Any, kind: type) -> Any:
    word = {str: "text", int: "a whole number", float: "a number"}[kind]
    if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else kind):
        raise UsageError(f"`{name}` must be {word}; got {value!r}")
    if name in CHOICES and value not in CHOICES[name]:
        raise UsageError(f"`{name}` must be one of {', '.join(CHOICES[name])}; got {value!r}")
    if kind is int and value < _LEAST.get(name, 1):
        raise UsageError(f"`{name}` must be at least {_LEAST.get(name, 1)}; got {value!r}")
    return value


def _number_text(value: Any) -> Any:
    """A level as results spell it: .50 and 0.5 are one."""
    try:
        return f"{float(value):g}"
    except (TypeError, ValueError):
        return value


def _check_level(factor: str, level: str) -> None:
    fits = level in LABELS
    if factor != "labels":
        fits = level.replace(".", "", 1).replace("e-", "").isdigit() and float(level) > 0
        fits = fits and (factor != "classifiers" or float(level).is_integer())
    if not fits:
        what = {"labels": ", ".join(LABELS), "classifiers": "whole numbers above 0"}
        raise UsageError(
            f"`levels` of {factor!r} are {what.get(factor, 'numbers above 0')}; got {level!r}"
        )
