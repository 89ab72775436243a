"""What the checks look at (`Facts`, `Evidence`) and find (`Finding`, `Diagnosis`)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse

from fewlabels import __version__
from fewlabels.data.evidence import ColumnEvidence
from fewlabels.data.inputs import content_columns
from fewlabels.kernels.arrays import Array, Bools, Floats, Frozen, Ints, UInts
from fewlabels.kernels.counter_based import hash_columns
from fewlabels.predictions import Predictions
from fewlabels.report.shown import Result

MOST_VALUES = 10_000
"""Different values of a group that are counted; above it only "more than" is known."""

_MOST_NUMBERS = 200_000
"""Rows times classes that comparisons look at; evenly spread over the file."""

_MOST_SCORES = 20_000_000
"""Rows times classes times classifiers that are held at once."""

_COUNTS = ("count", "total", "numbers", "ends", "rows", "scored", "hard")
"""What is added up."""


@dataclass(eq=False)
class Facts:
    """Counts over all n rows, of M classifiers and K classes.

    Labels: `count` (K,); `first` and `last`, row numbers from 0 (-1: no label), with the classes
    `at_ends`; `changes`, how many labels differ from the previous one. Classifiers: `total` (M, K),
    sums of probabilities; `numbers`, `ends` (0 or 1), `rows` and `scored` (M,) count them, `hard`
    (M, K) hard predictions; `identical` (M, M) always agree; `ranges` are the least and largest of
    each class. `groups` are the values of each, at most `MOST_VALUES` + 1; `weights` the least and
    largest.
    """

    n_items: int
    count: Ints
    first: int
    last: int
    at_ends: tuple[int, int]
    changes: int
    total: Floats
    numbers: Ints
    ends: Ints
    rows: Ints
    scored: Ints
    hard: Ints
    identical: Bools
    ranges: dict[str, tuple[Floats, Floats]]
    groups: dict[str, set[Any]]
    weights: tuple[float, float]

    @staticmethod
    def of(predictions: Predictions, weight: Floats | None) -> Facts:
        """Facts of some rows with their sampling weights, (n,); None: all are equal."""
        m, k = predictions.n_models, predictions.n_classes
        p, s, votes = predictions.probabilities, predictions.scores, predictions.votes
        labeled = np.flatnonzero(predictions.labeled)
        known = predictions.labels[labeled]
        none, hard = np.zeros(m, dtype=np.int64), predictions.hard
        blocks = {"p": p, "y": votes, "s": s}
        given = {name: block for name, block in blocks.items() if block is not None}
        ranges = {}
        for name, block in given.items():
            # Not -1: there may be no classifier.
            flat = block.reshape(*block.shape[:2], int(np.prod(block.shape[2:])))
            if name == "y":
                flat = np.where(flat < 0, np.nan, flat)
            ranges[name] = np.fmin.reduce(flat, axis=0), np.fmax.reduce(flat, axis=0)
        alike = [b"".join(_digest(block[:, j]) for block in given.values()) for j in range(m)]
        code = np.unique(alike, return_inverse=True)[1] if m else none
        identical = (code[:, None] == code) & ~np.eye(m, dtype=bool)
        return Facts(
            predictions.n_items,
            count=np.bincount(known, minlength=k),
            first=int(labeled[0]) if len(labeled) else -1,
            last=int(labeled[-1]) if len(labeled) else -1,
            at_ends=(int(known[0]), int(known[-1])) if len(labeled) else (-1, -1),
            changes=int((known[1:] != known[:-1]).sum()),
            total=np.zeros((m, k)) if p is None else np.nansum(p, axis=0),
            numbers=none if p is None else (~np.isnan(p)).sum(axis=(0, 2)),
            ends=none if p is None else ((p == 0) | (p == 1)).sum(axis=(0, 2)),
            rows=np.asarray(predictions.has_probabilities.sum(axis=0)),
            scored=none if s is None else (~np.isnan(s)).sum(axis=0),
            hard=np.array([np.bincount(h[h >= 0], minlength=k) for h in hard.T], int).reshape(m, k),
            identical=identical,
            ranges=ranges,
            groups={name: set(a.tolist()) for name, a in predictions.groups.items()},
            weights=(1.0, 1.0) if weight is None else (float(weight.min()), float(weight.max())),
        )

    def merge(self, other: Facts) -> None:
        """Add those of rows that come after these."""
        if other.first >= 0:
            if self.first < 0:
                self.first, self.at_ends = self.n_items + other.first, other.at_ends
            else:
                self.changes += int(self.at_ends[1] != other.at_ends[0])
                self.at_ends = (self.at_ends[0], other.at_ends[1])
            self.last = self.n_items + other.last
        for name in ("n_items", "changes", *_COUNTS):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.identical = self.identical & other.identical
        for name, (low, high) in other.ranges.items():
            mine = self.ranges[name]
            self.ranges[name] = np.fmin(mine[0], low), np.fmax(mine[1], high)
        for name, values in other.groups.items():
            held = self.groups.setdefault(name, set())
            if len(held) <= MOST_VALUES:
                held |= values
            if len(held) > MOST_VALUES + 1:
                # A set of values that may be told in any order: only how many counts.
                self.groups[name] = set(list(held)[: MOST_VALUES + 1])
        least, most = zip(self.weights, other.weights, strict=True)
        self.weights = (min(least), max(most))

    @property
    def n_labeled(self) -> int:
        """How many labels there are."""
        return int(self.count.sum())

    @property
    def constant(self) -> Bools:
        """Which classifiers say one thing for every item, (M,)."""
        same = np.full(len(self.rows), self.n_items > 1)
        for low, high in self.ranges.values():
            same &= ~(high > low).any(axis=1)
        return same

    @property
    def lacking(self) -> Floats:
        """Share of the items, (M,), without a value of each classifier, which rank equal."""
        by_score = np.where(self.scored > 0, self.scored, self.hard.sum(axis=1))
        given = np.where(self.rows > 0, self.rows, by_score)
        return np.asarray(1 - given / max(self.n_items, 1))

    def group_sizes(self, *, cut: bool) -> dict[str, tuple[int, str]]:
        """How many values each group has, and the number in words."""
        return {
            name: (n, f"more than {MOST_VALUES:,}" if cut and n > MOST_VALUES else f"{n:,}")
            for name, n in ((name, len(values)) for name, values in self.groups.items())
        }

    def counts(self) -> dict[str, int]:
        """How many items, labels, classifiers and classes there are."""
        sizes = (self.n_items, self.n_labeled, *self.total.shape)
        return dict(zip(("n_items", "n_labeled", "n_models", "n_classes"), sizes, strict=True))

    def balance(self, models: Sequence[str], classes: Sequence[Any]) -> dict[str, Any]:
        """Share of each class among the labels, and as each classifier sees it."""
        names = [str(c) for c in classes]

        def shares(total: Any) -> dict[str, float] | None:
            whole = float(np.sum(total))
            if not whole:
                return None
            return {c: float(t) / whole for c, t in zip(names, total, strict=True)}

        predicted = {
            model: shares(total if total.any() else hard)
            for model, total, hard in zip(models, self.total, self.hard, strict=True)
        }
        return {"labels": shares(self.count), "predicted": predicted, "classes": names}


@dataclass(frozen=True)
class Evidence:
    """What the checks look at: `facts` of all rows, `some` rows of all kinds, and `known` ones.

    `repeated` rows agree with an earlier one (None: not counted; `about`: some were compared).
    Classifiers from number `annotators` on are checked together; `known` and `facts` lack them.
    """

    facts: Facts
    some: Predictions
    known: Predictions
    repeated: int | None
    groups: Mapping[str, tuple[int, str]]
    about: bool = False
    annotators: int | None = None

    @cached_property
    def scored(self) -> Predictions:
        """The known rows, or some where their scores would fill memory."""
        return self.spread(_MOST_SCORES // max(self.known.n_models, 1))

    @cached_property
    def scores(self) -> Floats:
        """`class_scores` of `scored`."""
        return class_scores(self.scored)

    @cached_property
    def voted(self) -> Any:
        """Who votes on which of some rows, (n, M), a sparse matrix."""
        return scipy.sparse.csr_matrix(self.some.has_hard)

    @cached_property
    def votes_per_item(self) -> Ints:
        """Classifiers that vote on each of some rows, (n,)."""
        return np.diff(self.voted.indptr).astype(np.int64)

    @cached_property
    def votes_by_class(self) -> Array:
        """Votes of each annotator for each class, (A, K)."""
        total = np.asarray(self.some.vote_counts.sum(axis=0)).reshape(-1, self.some.n_classes)
        return total[self.annotators :]

    @property
    def by_votes(self) -> bool:
        """Whether hard predictions are all there is, or annotators vote."""
        any_rows = self.facts.rows.any() or self.facts.scored.any()
        return self.annotators is not None or not any_rows

    def scores_of_some(self) -> Floats:
        """Scores of known rows, evenly spread, where all of them would take long."""
        return class_scores(self.spread(_MOST_NUMBERS))

    def spread(self, most_numbers: int) -> Predictions:
        """Known rows, evenly spread over the file if rows times classes exceed the limit."""
        n, k = self.known.n_items, self.known.n_classes
        most = max(most_numbers // (1 if k == 2 else k), 100)
        rows = self.known if n <= most else self.known.take(np.linspace(0, n - 1, most).astype(int))
        return rows.with_positive() if k == 2 else rows


def _digest(values: Array) -> bytes:
    """A digest that is the same for equal values, whatever the kinds of NaN and zero."""
    plain = np.ascontiguousarray(values, dtype=np.float64) + 0.0
    plain[np.isnan(plain)] = np.nan
    return hashlib.blake2b(plain.tobytes(), digest_size=16).hexdigest().encode()


def class_scores(predictions: Predictions) -> Floats:
    """Score of each class by each classifier, (n, M, C): of two classes the last one's (C = 1)."""
    k = predictions.n_classes
    hard = predictions.hard
    out: Floats = (hard[:, :, None] == np.arange(k)).astype(np.float64)
    out[hard < 0] = np.nan
    if k == 2:
        out = out[:, :, 1:]
    if predictions.scores is not None:
        given = predictions.scores[:, :, None]
        # A classifier ranks all items by one thing: scores wherever it has any.
        out = np.where(np.isnan(given).all(axis=0), out, given)
    if predictions.probabilities is not None:
        given = predictions.probabilities if k > 2 else predictions.probabilities[:, :, 1:]
        out = np.where(np.isnan(given).all(axis=0), out, given)
    return out


def correlations(values: Floats) -> Floats:
    """Correlation of every two columns over the rows that both have, shape (M, M)."""
    present = ~np.isnan(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        middle = np.nansum(values, axis=0) / present.sum(axis=0)
    x, w = np.nan_to_num(values - middle), present.astype(np.float64)
    size = w.T @ w
    with np.errstate(invalid="ignore", divide="ignore"):
        total = x.T @ w
        square = (x**2).T @ w - total**2 / size
        cross = x.T @ x - total * total.T / size
        # Rounding leaves a constant column with a tiny variance.
        square[square < 1e-20 * np.maximum(size, 1)] = np.nan
        result: Floats = cross / np.sqrt(square * square.T)
    return result


def row_hashes(predictions: Predictions) -> UInts | None:
    """A hash of every prediction and the label of each row, (n,); None if rows repeat by nature."""
    if predictions.probabilities is None and predictions.scores is None:
        return None  # Votes repeat by nature.
    return hash_columns(content_columns(predictions, predictions.votes), predictions.n_items)


Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Finding:
    """Something to know about the data: what it is, where, and how to mend it.

    With an error, `fewlabels estimate` would refuse the data; its message holds the mend.
    """

    severity: Severity
    what: str
    where: str
    mend: str


@dataclass(frozen=True, repr=False)
class Diagnosis(Frozen, Result):
    """What `fewlabels.diagnose` returns.

    `roles` maps every column (or NPZ key) to its role in words. `counts` are the numbers of
    items, labels, classifiers and classes. `class_balance` holds the `classes`, the share of each
    among the `labels` (None without labels), and its mean probability as `predicted` by each
    classifier (None for raw scores). `positive` is the positive class of two, `reading` says
    what was recognised without being said;
    `command` is the command line that reads the data so (None for a frame, or where it cannot be
    read), and `columns` the same as the TOML file of --columns.
    """

    _page, _row_fields = "diagnosis", ("severity", "what", "where", "mend")

    name: str
    roles: Mapping[str, str]
    counts: Mapping[str, int]
    class_balance: Mapping[str, Any]
    findings: tuple[Finding, ...]
    positive: str | None = None
    reading: tuple[str, ...] = ()
    command: str | None = None
    columns: str = ""
    evidence: tuple[ColumnEvidence, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the data can be used."""
        return not any(finding.severity == "error" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Everything as a dictionary of plain values."""
        plain = ("name", "ok", "counts", "roles", "positive", "command", "class_balance")
        return {
            "fewlabels": __version__,
            **{name: getattr(self, name) for name in plain},
            "findings": [asdict(finding) for finding in self.findings],
            "reading": list(self.reading),
            "evidence": [one._asdict() for one in self.evidence],
        }

    @property
    def rows(self) -> tuple[Finding, ...]:
        """The findings, of which a table has one each."""
        return self.findings
