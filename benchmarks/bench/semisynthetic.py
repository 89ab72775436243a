"""Sets of classifiers trained on slices of a table of features, a new set in every run.

Each classifier is a logistic regression on a few rows of its own range of a numeric column, so
that sets differ in how good and how calibrated they are (SSME, section 6.4 and appendix B.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from bench.datasets import digest_of, find_files, read_each
from bench.protocol import Protocol
from bench.splits import generator
from bench.world import DatasetFacts, Trait, likeness, mean_of, quality, varied
from fewlabels import InputError, Predictions

Array = np.ndarray

_PREDICTIONS = ("p__", "y__", "s__")
_NOT_FEATURES = ("split", "partition", "fold", "id", "index")
_MOST_CATEGORIES = 100
_LEAST_SPARE = 4
"""A range must hold so many times the rows that a classifier learns from."""

_MOST_TRIES = 200


@dataclass(frozen=True, eq=False)
class TrainedSets:
    """A table of features whose labels are known, and classifiers trained on it run by run.

    features (n, d) are standardised numbers and indicators; `slice_values` (n,) is the column
    whose ranges the classifiers learn from. Levels are how many classifiers a set has, or how
    sharp their probabilities are; see `bench.world.World`.
    """

    facts: DatasetFacts
    features: Array
    labels: Array
    slice_values: Array
    protocol: Protocol
    levels: tuple[str, ...]
    by: tuple[str, ...] = ()
    _kept: dict[tuple[int, int], Array] = field(default_factory=dict, repr=False)

    def halves(self, run: int) -> tuple[Array, Array]:
        """Rows that a run draws from, and rows that its truth is computed on; training has none."""
        return self._parts(run)[:2]

    def predictions(self, rows: Array, level: str, run: int) -> Predictions:
        """What the classifiers of a set say of some rows, with all labels."""
        counted = self.protocol.factor == "classifiers" and level
        size = int(float(level)) if counted else self.protocol.subset_size
        if (run, size) not in self._kept:
            self._kept.clear()  # cells of one run follow each other
            training = self._parts(run)[2]
            # The k-th classifier of a run is the same in sets of every size.
            columns = [self._train(training, run, k) for k in range(size)]
            self._kept[run, size] = np.stack(columns, axis=1)
        weights = self._kept[run, size]
        logit = self.features[rows] @ weights[:-1] + weights[-1]
        found = Predictions(
            1 / (1 + np.exp(-np.clip(logit, -500, 500))), self.labels[rows], models=_names(size),
            classes=self.facts.classes,
        )  # fmt: skip
        return varied(found, self.protocol.factor, level)

    def traits(self) -> list[Trait]:
        """Size and prevalence of the table."""
        share = float(self.labels.mean())
        return [("", -1, "n_items", float(len(self.labels))), ("", -1, "prevalence", share)]

    def traits_of_run(self, level: str, run: int, truth: Predictions) -> list[Trait]:
        """Quality of the set's classifiers, and the mean likeness of its pairs."""
        pairs = pd.DataFrame(list(likeness(truth).values()))
        found = quality(truth) | {str(name): mean_of(pairs[name]) for name in pairs}
        return [(level, run, name, value) for name, value in found.items()]

    def _parts(self, run: int) -> tuple[Array, Array, Array]:
        """Rows to draw from, for the truth, and to train on: they share none."""
        rng = generator("sets", self.protocol.seed, self.facts.name, run)
        truth, rest = np.split(rng.permutation(len(self.labels)), [self.protocol.truth_rows])
        drawn, training = np.split(rest, [len(rest) // 2])
        return drawn, truth, training

    def _train(self, training: Array, run: int, k: int) -> Array:
        """Coefficients and, last, intercept of a classifier of one random range of the column."""
        rng = generator("classifier", self.protocol.seed, self.facts.name, run, k)
        values = self.slice_values[training]
        known = np.sort(values[~np.isnan(values)])
        need = self.protocol.train_rows
        for _ in range(_MOST_TRIES):
            low, high = np.sort(known[rng.integers(len(known), size=2)])
            inside = training[(values >= low) & (values <= high)]
            if len(inside) < min(_LEAST_SPARE * need, len(known)):
                continue
            rows = np.sort(rng.choice(inside, need, replace=False))
            if np.ptp(self.labels[rows]):
                model = LogisticRegression(max_iter=5000)
                fitted = model.fit(self.features[rows], self.labels[rows])
                return np.append(fitted.coef_[0], fitted.intercept_[0])
        raise InputError(
            f"a class is rarer than needed: {_MOST_TRIES} ranges of {self.protocol.slice_by!r} "
            f"never gave {need} rows of both classes"
        )


def read_tables(
    sources: Sequence[str | Path], protocol: Protocol, label: str = "label"
) -> tuple[list[TrainedSets], list[str]]:
    """Every table that the protocol can train on, and a line for each file that it cannot."""
    files = [f for f in find_files(sources) if f.suffix.lower() != ".npz"]
    return read_each(files, lambda file, name: _read(file, name, protocol, label))


def _read(file: Path, name: str, protocol: Protocol, label: str) -> TrainedSets:
    try:
        table = (pd.read_parquet if file.suffix.lower() == ".parquet" else pd.read_csv)(file)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}") from None
    if any(str(c).startswith(_PREDICTIONS) for c in table):
        raise InputError("holds predictions, and the protocol trains its own classifiers")
    for column, option in ((label, "label"), (protocol.slice_by, "slice_by")):
        if column not in table:
            there = ", ".join(map(str, table))
            raise InputError(f"has no column {column!r} (`{option}`); there are {there}")
    notes = []
    if lost := int(table[label].isna().sum()):
        notes.append(f"{lost:,} rows without a label are left out")
    table = table[table[label].notna()]
    labels, classes = pd.factorize(table[label], sort=True)
    if len(classes) != 2:
        raise InputError(f"{protocol.name} serves two classes; {label!r} has {len(classes)}")
    slices = pd.to_numeric(table[protocol.slice_by], errors="coerce").to_numpy(dtype=float)
    if np.isnan(slices).all():
        raise InputError(f"column {protocol.slice_by!r} (`slice_by`) has no numbers")
    needed = protocol.truth_rows + 2 * _LEAST_SPARE * protocol.train_rows
    if len(labels) < needed:
        raise InputError(
            f"has {len(labels):,} labeled rows; {protocol.truth_rows:,} for the truth and "
            f"{protocol.train_rows} per classifier need {needed:,} (`truth_rows`, `train_rows`)"
        )
    unused = [c for c in table if str(c).lower() in _NOT_FEATURES]
    features, left_out = _features(table.drop(columns=[label, *unused]))
    notes += [f"not used as features: {', '.join([*unused, *left_out])}"] * bool(unused or left_out)
    half = (len(labels) - protocol.truth_rows) // 2
    levels = protocol.levels if protocol.factor else ("",)
    counts = [int(float(level)) for level in levels if protocol.factor == "classifiers"]
    facts = DatasetFacts(
        name, len(labels), half, _names(max(counts, default=protocol.subset_size)),
        tuple(map(str, classes)), (f"trained on {features.shape[1]} features", *notes),
        digest_of(features, labels, slices),
    )  # fmt: skip
    return TrainedSets(facts, features, labels.astype(np.int64), slices, protocol, levels)


def _features(table: pd.DataFrame) -> tuple[Array, list[str]]:
    """Standardised numbers and one indicator per category, (n, d); columns that are left out."""
    parts, left_out = [], []
    for column, values in table.items():
        if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
            numbers = values.to_numpy(dtype=float)
            if not np.isnan(numbers).all():
                middle = np.nanmean(numbers)
                numbers = np.where(np.isnan(numbers), middle, numbers) - middle
                parts.append((numbers / (numbers.std() or 1.0))[:, None])
                continue
        else:
            texts = values.astype(object).where(values.notna()).astype(str)
            codes, categories = pd.factorize(texts, sort=True)
            if len(categories) <= _MOST_CATEGORIES:
                parts.append((codes[:, None] == np.arange(len(categories))).astype(float))
                continue
        left_out.append(str(column))
    if not parts:
        raise InputError("has no features")
    return np.concatenate(parts, axis=1), left_out


def _names(size: int) -> tuple[str, ...]:
    return tuple(f"classifier_{k + 1}" for k in range(size))
