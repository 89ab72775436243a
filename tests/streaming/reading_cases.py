"""A stream put together again, to compare with the same file read whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import fewlabels as fl
from fewlabels.data.options import column_options
from fewlabels.streaming.reading import Batch, Reader, find_classes
from fewlabels.streaming.units import Layout, lay_out


def opened(source: Path, **options: Any) -> Reader:
    """A reader of all groups."""
    said = column_options(**options)
    layout = lay_out(source, said)
    return Reader(layout, find_classes(layout, said), layout.roles.groups)


def all_batches(reader: Reader) -> list[list[Batch]]:
    """The batches of every unit."""
    return [list(reader.batches(unit)) for unit in reader.layout.units]


def joined(batches: list[Batch], name: str) -> np.ndarray | None:
    """An array of all batches; None where no batch has it."""
    arrays = [getattr(batch.predictions, name) for batch in batches]
    if all(array is None for array in arrays):
        return None
    return np.concatenate(arrays)


def check_same(source: Path, **options: Any) -> Layout:
    """Refuse a stream whose batches together are not what is read whole."""
    whole = fl.read_predictions(source, **options).with_positive()
    reader = opened(source, **options)
    units = all_batches(reader)
    batches = [batch for unit in units for batch in unit]
    for name in ("probabilities", "votes", "scores", "labels", "histogram", "domain", "identity"):
        found, expected = joined(batches, name), getattr(whole, name)
        assert (found is None) == (expected is None), name
        if found is not None:
            assert found.dtype.kind == expected.dtype.kind, name
            np.testing.assert_array_equal(found, expected, err_msg=name)
    for name, group in whole.groups.items():
        found = np.concatenate([batch.predictions.groups[name] for batch in batches])
        assert found.tolist() == group.tolist()
    for name, cluster in whole.clusters.items():
        found = np.concatenate([batch.predictions.clusters[name] for batch in batches])
        assert found.tolist() == cluster.tolist()
    for batch in batches:
        assert (batch.predictions.models, batch.predictions.classes) == (
            whole.models,
            whole.classes,
        )
        assert set(batch.predictions.groups) == set(whole.groups)
        assert (batch.weight is None) == (batches[0].weight is None)
    _check_weights(whole, batches)
    for unit in units:
        sizes = [batch.predictions.n_items for batch in unit]
        assert [batch.first_row for batch in unit] == [sum(sizes[:i]) for i in range(len(sizes))]
    assert set(reader.notes) <= set(whole.notes)
    of_rows = ("renormalised", "without a value")
    more = set(whole.notes) - set(reader.notes)
    assert all(any(words in note for words in of_rows) for note in more)
    return reader.layout


def _check_weights(whole: fl.Predictions, batches: list[Batch]) -> None:
    if batches[0].weight is None:
        assert (whole.weight == 1).all()
        return
    raw = np.concatenate([batch.weight for batch in batches if batch.weight is not None])
    np.testing.assert_allclose(raw * (len(raw) / raw.sum()), whole.weight, rtol=1e-12)
