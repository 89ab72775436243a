"""Parts to tidy results: estimates beside the truth of their run, sorted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fewlabels.bench.cells import Body, Cell
from fewlabels.bench.protocol import Protocol
from fewlabels.bench.results import COLUMNS, TRAITS
from fewlabels.bench.variants import truth_level
from fewlabels.kernels.arrays import Array, Floats

Columns = dict[str, Array]
_KEYS = tuple(COLUMNS)[: tuple(COLUMNS).index("estimate")]


class Truths:
    """True values by data set, level, run; whatever is not known is NaN."""

    def __init__(self, found: Mapping[Cell, Body]) -> None:
        self._blocks = {
            (cell.dataset, cell.level, cell.run): _Block(body)
            for cell, body in found.items()
            if cell.kind == "truth" and body["models"]
        }

    def of(self, cell: Cell, level: str, body: Body) -> Floats:
        """Truth of every value of a cell, (runs, groups, M, metrics)."""
        shape = (len(body["groups"]), len(body["models"]), len(body["metrics"]))
        nothing = np.full(shape, np.nan)
        return np.stack(
            [
                nothing
                if (block := self._blocks.get((cell.dataset, level, run))) is None
                else block.at(body)
                for run in body["runs"]
            ]
        )


class _Block:
    """The truth of one run, with a NaN behind each axis for what it does not have."""

    def __init__(self, body: Body) -> None:
        self._axes = [{n: k for k, n in enumerate(body[a])} for a in _AXES]
        values = _floats(body["estimate"]).reshape([len(a) for a in self._axes])
        self._values = np.pad(values, [(0, 1)] * 3, constant_values=np.nan)

    def at(self, body: Body) -> Floats:
        places = [
            [axis.get(name, -1) for name in body[a]]
            for a, axis in zip(_AXES, self._axes, strict=True)
        ]
        return self._values[np.ix_(*places)]


_AXES = ("groups", "models", "metrics")


def tidy(found: Mapping[Cell, Body], protocol: Protocol) -> Columns:
    """The tidy rows of all cells, sorted."""
    truths = Truths(found)
    parts = [
        _rows(cell, body, protocol.factor, truths)
        for cell, body in found.items()
        if cell.kind in ("estimates", "curve")
    ]
    return _sorted(parts, COLUMNS, len(_KEYS))


def traits(found: Mapping[Cell, Body]) -> Columns:
    """The rows of all traits, sorted."""
    parts = [
        dict(zip(TRAITS, ([cell.dataset], *([v] for v in trait)), strict=True))
        for cell, body in found.items()
        for trait in body["traits"]
    ]
    return _sorted([_arrays(p, TRAITS) for p in parts], TRAITS, len(TRAITS) - 1)


def _rows(cell: Cell, body: Body, factor: str, truths: Truths) -> Columns:
    curve = cell.kind == "curve"
    place = {
        "dataset": cell.dataset,
        "factor": "curve" if curve else factor,
        "level": cell.level,
        "method": "labeled" if curve else cell.method,
        "n_labeled": cell.n_labeled,
        "n_unlabeled": cell.n_unlabeled,
        "message": body["message"],
    }
    if not body["models"]:
        nothing = dict.fromkeys(("estimate", "low", "high", "truth"), np.nan)
        empty = dict.fromkeys(("model", "metric", "group"), "")
        own = {"run": body["runs"][0], "status": body["status"], "seconds": body["seconds"][0]}
        return _arrays({k: [v] for k, v in (place | nothing | empty | own).items()}, COLUMNS)
    shape = tuple(len(body[axis]) for axis in ("runs", *_AXES))
    size = int(np.prod(shape))
    level = "" if curve else truth_level(factor, cell.level)
    columns: dict[str, Array] = {k: np.full(size, v, dtype=_dtype(k)) for k, v in place.items()}
    seconds = np.array(body["seconds"])
    for k, (name, axis) in enumerate(
        zip(("run", "group", "model", "metric"), ("runs", *_AXES), strict=True)
    ):
        columns[name] = _along(np.array(body[axis], dtype=_dtype(name)), k, shape)
    columns |= {
        "estimate": _floats(body["estimate"]),
        "low": _floats(body["low"], size),
        "high": _floats(body["high"], size),
        "truth": truths.of(cell, level, body).ravel(),
        "status": np.array(body["status"], dtype=object),
        "seconds": _along(seconds, 0, shape),
    }
    return columns


def _along(values: Array, axis: int, shape: Sequence[int]) -> Array:
    """Values of one axis, repeated over the others, flat."""
    wide = [1] * len(shape)
    wide[axis] = len(values)
    return np.broadcast_to(values.reshape(wide), tuple(shape)).ravel()


def _floats(values: list[float | None] | None, size: int = 0) -> Floats:
    if values is None:
        return np.full(size, np.nan)
    return np.array([np.nan if v is None else v for v in values], dtype=float)


def _dtype(name: str) -> type:
    kind = {**COLUMNS, **TRAITS}[name]
    return object if kind is str else kind


def _arrays(lists: Mapping[str, Sequence[object]], kinds: Mapping[str, type]) -> Columns:
    return {
        name: _floats(list(lists[name]))  # type: ignore[arg-type]
        if kind is float
        else np.array(lists[name], dtype=_dtype(name))
        for name, kind in kinds.items()
    }


def _sorted(parts: Sequence[Columns], kinds: Mapping[str, type], keys: int) -> Columns:
    """All parts, one after another, sorted by the first columns."""
    whole = {
        name: np.concatenate([p[name] for p in parts]) if parts else np.empty(0, dtype=_dtype(name))
        for name in kinds
    }
    codes = [_codes(whole[name]) for name in list(kinds)[:keys]]
    order = np.lexsort(codes[::-1]) if len(codes[0]) else np.empty(0, dtype=np.int64)
    return {name: values[order] for name, values in whole.items()}


def _codes(values: Array) -> Array:
    """Numbers in the order of the values; few distinct texts need no sorting of all."""
    if values.dtype != object:
        return values
    texts = values.tolist()
    rank = {text: k for k, text in enumerate(sorted(set(texts)))}
    return np.array([rank[t] for t in texts], dtype=np.int64)
