"""`draw_rows`: a random sample of the rows of a file that fit, the same in any order of the rows.

Of very many rows those are drawn whose hash is smallest, so neither the order of the rows nor how
they are stored shows. Rows that are equal have one hash, and share what is drawn by how often they
occur; rows that make up a large part of all are counted by themselves, in a second pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fewlabels.data.options import column_options
from fewlabels.kernels.arrays import Bools, UInts
from fewlabels.kernels.counter_based import hash_columns, hash_strings
from fewlabels.predictions import Predictions
from fewlabels.streaming.executors import open_executor
from fewlabels.streaming.passes import Passes, Piece
from fewlabels.streaming.reading import Batch, Feed, Reader, find_classes
from fewlabels.streaming.samples import HeavyRows, sampled
from fewlabels.streaming.scan import frequent
from fewlabels.streaming.sketch import BottomSample, RowArrays
from fewlabels.streaming.units import lay_out

Fits = Callable[[Predictions], Bools]
"""Which rows of a batch may be drawn, (n,), by what each says."""


class Drawn(NamedTuple):
    """A sample of the rows that fit, None where none does, and how many fit."""

    rows: Predictions | None
    n_fit: int


def draw_rows(
    source: str | Path,
    most: int,
    fits: Mapping[str, Fits],
    *,
    keep: Sequence[str] | None = None,
    workers: int | None = None,
    **columns: Any,
) -> tuple[dict[str, Drawn], int]:
    """At most so many random rows of a Parquet or CSV file by each of some conditions.

    Parameters
    ----------
    most
        Rows of a sample; where no more fit, it is all of them.
    fits
        Conditions by name.
    keep
        Other columns to keep as groups; None = all.
    workers
        Threads; the sample does not depend on them.
    columns
        As in `fewlabels.read_predictions`: label, models, domain, weight, columns, classes.

    Returns
    -------
    dict, int
        The sample by each condition, in an order that depends on the rows alone; and how many rows
        there are. Sampling weights are left out.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    options = column_options(keep=keep, **columns)
    layout = lay_out(source, options)
    reader = Reader(layout, find_classes(layout, options), layout.roles.groups)
    feed = Feed(reader)
    passes = Passes(open_executor("threads", workers), layout.units)
    empty = partial(_Pools.empty, tuple(fits), most)
    with passes:
        pools: _Pools = passes.run("reading", partial(_draw, feed, fits, empty), empty)
        heavy = _heavy(passes, feed, pools)
    found = {
        name: pool.drawn(reader, most, heavy.get(name, HeavyRows.none()))
        for name, pool in pools.by_name.items()
    }
    return found, pools.n_rows


@dataclass(eq=False)
class _Pool:
    """Rows that are kept, those that occurred often somewhere, and how many fit."""

    kept: BottomSample
    repeated: BottomSample
    n_fit: int = 0

    def update(self, batch: Batch, fits: Fits) -> None:
        which, ranks = np.asarray(fits(batch.predictions)), _ranks(batch)
        rows = RowArrays.of(batch.predictions, None)
        self.kept.update(ranks, rows, which)
        self.repeated.update(ranks, rows, frequent(ranks, which))
        self.n_fit += int(which.sum())

    def merge(self, other: _Pool) -> None:
        self.kept.merge(other.kept)
        self.repeated.merge(other.repeated)
        self.n_fit += other.n_fit

    def drawn(self, reader: Reader, most: int, heavy: HeavyRows) -> Drawn:
        kept = replace(self.kept, complete=True)  # copies of all that are kept, in proportion
        rows = sampled(kept, heavy, most, self.n_fit)
        if rows is None:
            return Drawn(None, 0)
        found = rows.predictions(reader.layout.roles.models, reader.classes.names)
        return Drawn(found.noting(reader.notes), self.n_fit)


@dataclass(eq=False)
class _Pools:
    """A pool by each condition."""

    by_name: dict[str, _Pool]
    n_rows: int = 0

    @staticmethod
    def empty(names: Sequence[str], most: int) -> _Pools:
        return _Pools({n: _Pool(BottomSample.empty(most), BottomSample.empty(most)) for n in names})

    def take(self, result: _Pools) -> int:
        for name, pool in result.by_name.items():
            self.by_name[name].merge(pool)
        self.n_rows += result.n_rows
        return result.n_rows


def _ranks(batch: Batch) -> UInts:
    """A hash of a row's content, (n,), its groups among it."""
    given = batch.predictions
    groups = [hash_strings(group) for group in given.groups.values()]
    return hash_columns([given.identity, *groups], given.n_items)


def _draw(
    feed: Feed, fits: Mapping[str, Fits], empty: Callable[[], _Pools], piece: Piece
) -> _Pools:
    pools = empty()
    for batch in feed.batches(piece.unit):
        for name, condition in fits.items():
            pools.by_name[name].update(batch, condition)
        pools.n_rows += batch.predictions.n_items
    return pools


def _heavy(passes: Passes, feed: Feed, pools: _Pools) -> dict[str, HeavyRows]:
    """Rows that make up much of all: a sample of distinct rows takes or leaves all of their copies.

    They are counted in a pass of their own, where not all distinct rows are held anyway; equal rows
    fit alike.
    """
    asked = {
        name: pool
        for name, pool in pools.by_name.items()
        if len(pool.repeated.ranks) and not pool.kept.complete
    }
    if not asked:
        return {}
    ranks = np.unique(np.concatenate([pool.repeated.ranks for pool in asked.values()]))
    counts = passes.counts(feed, _ranks, ranks)
    return {
        name: HeavyRows.of(
            pool.repeated, counts[np.searchsorted(ranks, pool.repeated.ranks)], True, pool.n_fit
        )
        for name, pool in asked.items()
    }
