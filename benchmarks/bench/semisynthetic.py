"""Sets of classifiers trained on slices of a table of features, a new set in every run.

Each classifier is a logistic regression on a few rows of its own range of a numeric column, so
that sets differ in how good and how calibrated they are (SSME, section 6.4 and appendix B.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bench.cells import DatasetFacts
from bench.datasets import digest_of, find_files, name_files
from bench.protocol import Protocol
from bench.splits import generator
from bench.world import Trait, World, likeness, quality, varied
from fewlabels.errors import FewlabelsError, InputError, listed, one_line, quoted
from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.predictions import Predictions

_PREDICTIONS = ("p__", "y__", "s__")
_NOT_FEATURES = ("split", "partition", "fold", "id", "index")
_MOST_CATEGORIES = 100
_LEAST_SPARE = 4
"""A range must hold so many times the rows that a classifier learns from."""

_MOST_TRIES = 200


@dataclass(frozen=True, eq=False)
class TrainedSets(World):
    """A table of features whose labels are known, and classifiers trained on it run by run.

    features (n, d) are standardised numbers and indicators; `slice_values` (n,) is the column
    whose ranges the classifiers learn from.
    """

    facts: DatasetFacts
    features: Floats
    labels: Ints
    slice_values: Floats
    protocol: Protocol
    by: tuple[str, ...] = ()
    _kept: dict[tuple[int, int], Floats] = field(default_factory=dict, repr=False)

    def levels(self) -> tuple[str, ...]:
        """How many classifiers a set has, or how sharp their probabilities are."""
        return self.protocol.levels if self.protocol.factor else ("",)

    def halves(self, run: int) -> tuple[Ints, Ints]:
        """Rows that a run draws from, and rows that its truth is computed on; training has none."""
        drawn, truth, _ = self._parts(run)
        return drawn, truth

    def predictions(self, rows: Ints, level: str, run: int) -> Predictions:
        """What the classifiers of a set say of some rows, with all labels."""
        weights = self._weights(run, self._size(level))
        logit = self.features[rows] @ weights[:-1] + weights[-1]
        found = Predictions(
            1 / (1 + np.exp(-np.clip(logit, -500, 500))),
            self.labels[rows],
            models=_names(self._size(level)),
            classes=self.facts.classes,
        )
        return varied(found, self.protocol.factor, level)

    def traits(self) -> list[Trait]:
        """Size and prevalence of the table."""
        return [
            ("", -1, "n_items", float(len(self.labels))),
            ("", -1, "prevalence", float(self.labels.mean())),
        ]

    def traits_of_run(self, level: str, run: int, truth: Predictions) -> list[Trait]:
        """Quality of the set's classifiers, and the mean likeness of its pairs."""
        found = dict(quality(truth))
        pairs = list(likeness(truth).values())
        for name in pairs[0] if pairs else ():
            values = [t[name] for t in pairs if not np.isnan(t[name])]
            found[name] = float(np.mean(values)) if values else float("nan")
        return [(level, run, name, value) for name, value in found.items()]

    def _size(self, level: str) -> int:
        counted = self.protocol.factor == "classifiers" and level
        return int(float(level)) if counted else self.protocol.subset_size

    def _parts(self, run: int) -> tuple[Ints, Ints, Ints]:
        """Rows to draw from, for the truth, and to train on: they share none."""
        order = generator("sets", self.protocol.seed, self.facts.name, run).permutation(
            len(self.labels)
        )
        truth, rest = np.split(order, [self.protocol.truth_rows])
        drawn, training = np.split(rest, [len(rest) // 2])
        return drawn, truth, training

    def _weights(self, run: int, size: int) -> Floats:
        """Coefficients and, last, intercept of each classifier, (d + 1, size).

        The k-th classifier of a run is the same in sets of every size.
        """
        if (run, size) not in self._kept:
            self._kept.clear()  # cells of one run follow each other
            _, _, training = self._parts(run)
            columns = [self._train(training, run, k) for k in range(size)]
            self._kept[run, size] = np.stack(columns, axis=1)
        return self._kept[run, size]

    def _train(self, training: Ints, run: int, k: int) -> Floats:
        from sklearn.linear_model import LogisticRegression
        from threadpoolctl import threadpool_limits

        rng = generator("classifier", self.protocol.seed, self.facts.name, run, k)
        rows = self._slice(training, rng)
        with threadpool_limits(limits=1):
            fitted = LogisticRegression(max_iter=5000).fit(self.features[rows], self.labels[rows])
        return np.append(fitted.coef_[0], fitted.intercept_[0])

    def _slice(self, training: Ints, rng: np.random.Generator) -> Ints:
        """Rows of one random range of the column that hold both classes."""
        values = self.slice_values[training]
        known = np.sort(values[~np.isnan(values)])
        need = self.protocol.train_rows
        for _ in range(_MOST_TRIES):
            low, high = np.sort(known[rng.integers(len(known), size=2)])
            inside = training[(values >= low) & (values <= high)]
            if len(inside) < min(_LEAST_SPARE * need, len(known)):
                continue
            rows = rng.choice(inside, need, replace=False)
            if np.ptp(self.labels[rows]):
                return np.sort(rows)
        raise InputError(
            f"a class is rarer than needed: {_MOST_TRIES} ranges of "
            f"{quoted(self.protocol.slice_by)} never gave {need} rows of both classes"
        )


def read_tables(
    sources: Sequence[str | Path], protocol: Protocol, label: str | None
) -> tuple[list[TrainedSets], list[str]]:
    """Every table that the protocol can train on, and a line for each file that it cannot.

    Raises
    ------
    InputError
        If there is none.
    """
    files = [f for f in find_files(sources) if f.suffix.lower() != ".npz"]
    worlds, skipped = [], []
    for file, name in zip(files, name_files(files), strict=True):
        try:
            worlds.append(_read(file, name, protocol, label or "label"))
        except FewlabelsError as error:
            skipped.append(one_line(f"{file}: {error}"))
    if not worlds:
        reasons = "; ".join(skipped) or "tables are .parquet or .csv"
        raise InputError(f"no file can be used for protocol {protocol.name!r}: {reasons}")
    return worlds, skipped


def _read(file: Path, name: str, protocol: Protocol, label: str) -> TrainedSets:
    table = _open(file)
    if any(c.startswith(_PREDICTIONS) for c in table):
        raise InputError(
            f"holds predictions; {protocol.name} trains its own classifiers on a table of features"
        )
    there = listed(map(quoted, table))
    if not protocol.slice_by:
        raise InputError(
            "needs a numeric column from whose ranges classifiers learn; name it with `slice_by`: "
            f"there are {there}"
        )
    for column, option in ((label, "label"), (protocol.slice_by, "slice_by")):
        if column not in table:
            raise InputError(f"has no column {quoted(column)} (`{option}`); it has {there}")
    given = np.array([v is not None and v == v for v in table[label].tolist()])
    try:
        classes, labels = np.unique(table[label][given], return_inverse=True)
    except TypeError:
        raise InputError(f"column {quoted(label)} mixes kinds of values; give one kind") from None
    notes = [] if given.all() else [f"{int((~given).sum()):,} rows without a label are left out"]
    if len(classes) != 2:
        raise InputError(f"{protocol.name} serves two classes; {quoted(label)} has {len(classes)}")
    unused = [c for c in table if c.lower() in _NOT_FEATURES]
    features, names, said = _features(
        {c: v[given] for c, v in table.items() if c != label and c not in unused}
    )
    if unused:
        notes.append(f"not used as features: {listed(unused)}")
    slices = table[protocol.slice_by][given]
    if slices.dtype == object:
        raise InputError(f"column {quoted(protocol.slice_by)} (`slice_by`) is not numeric")
    if np.isnan(slices.astype(float)).all():
        raise InputError(f"column {quoted(protocol.slice_by)} (`slice_by`) has no numbers")
    needed = protocol.truth_rows + 2 * _LEAST_SPARE * protocol.train_rows
    if len(labels) < needed:
        raise InputError(
            f"has {len(labels):,} labeled rows; {protocol.truth_rows:,} for the truth and "
            f"{protocol.train_rows} per classifier need {needed:,} (`truth_rows`, `train_rows`)"
        )
    digest = digest_of("", features, labels.astype(np.int64), slices.astype(float))
    half = (len(labels) - protocol.truth_rows) // 2
    counts = protocol.levels if protocol.factor == "classifiers" else ()
    most = max((int(float(level)) for level in counts), default=protocol.subset_size)
    facts = DatasetFacts(
        name, len(labels), half, _names(most), tuple(classes.tolist()), (),
        (f"trained on {len(names)} features", *notes, *said), str(file), digest,
    )  # fmt: skip
    return TrainedSets(facts, features, labels.astype(np.int64), slices.astype(float), protocol)


def _open(file: Path) -> dict[str, Array]:
    """Columns as arrays: numbers, or objects with None where nothing is given."""
    import pyarrow as pa
    import pyarrow.csv

    from fewlabels.data.binary import parquet_file

    parquet = file.suffix.lower() == ".parquet"
    try:
        table = parquet_file(file).read() if parquet else pa.csv.read_csv(file)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {one_line(str(error))}") from None
    found: dict[str, Array] = {}
    for column in table.column_names:
        values = table[column]
        if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
            numbers = values.to_numpy()
            found[column] = numbers if values.null_count else np.asarray(numbers)
        else:
            found[column] = np.array(values.to_pylist(), dtype=object)
    return found


def _features(table: dict[str, Array]) -> tuple[Floats, list[str], list[str]]:
    """Standardised numbers and one indicator per category, (n, d); their names; notes."""
    parts, names, notes = [], [], []
    for column, values in table.items():
        if values.dtype == object:
            texts = np.array([str(v) for v in values.tolist()])
            categories, codes = np.unique(texts, return_inverse=True)
            if len(categories) > _MOST_CATEGORIES:
                notes.append(f"{column} is left out: it has {len(categories):,} categories")
                continue
            parts.append((codes[:, None] == np.arange(len(categories))).astype(float))
            names += [f"{column}={c}" for c in categories]
        else:
            numbers = values.astype(float)
            if np.isnan(numbers).all():
                notes.append(f"{column} is left out: it is empty")
                continue
            middle = np.nanmean(numbers)
            numbers = np.where(np.isnan(numbers), middle, numbers) - middle
            parts.append((numbers / (numbers.std() or 1.0))[:, None])
            names.append(column)
    if not parts:
        raise InputError("has no features")
    return np.concatenate(parts, axis=1), names, notes


def _names(size: int) -> tuple[str, ...]:
    return tuple(f"classifier_{k + 1}" for k in range(size))
