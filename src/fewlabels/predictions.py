"""Predictions: what the classifiers said, and what is known of the labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from fewlabels.errors import InputError, UsageError
from fewlabels.kernels.arrays import Array, Bools, Floats, Ints, UInts
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.keyed import distinguish, hash_columns, hash_strings
from fewlabels.wording import listed, unknown

UNKNOWN = -1
"""The label of an item whose label is not known, and the vote of a classifier that gave none."""

SUM_TOLERANCE = 1e-3
"""Rows of probabilities whose sum is further from 1 than this are refused."""

_SUM_ROUNDING = 1e-5
"""Deviations below this are float32 rounding: neither mended nor mentioned."""

_ROWS = 65_536


@dataclass(frozen=True, eq=False, init=False)
class Predictions:
    """Predictions of M classifiers for n items of K classes, with the labels there are.

    Parameters
    ----------
    probabilities
        Class probabilities, shape (n, M, K), or (n, M) = P(class 1) for two classes. A row of
        NaN says that the classifier has no prediction for the item. Rows whose sum is within
        1e-3 of 1 are renormalised, with a warning.
    labels
        Class index per item, shape (n,); -1 (or NaN) = unknown. Strings are looked up in `classes`.
    votes
        Hard predictions, shape (n, M); -1 = missing. They win over the argmax of `probabilities`.
    scores
        Real-valued scores of two-class classifiers, shape (n, M), larger = more positive;
        NaN = missing.
    histogram
        How many annotators chose each class, shape (n, K).
    groups
        Name -> group of each item, shape (n,); None (or NaN) = not given.
    domain
        Domain of each item, shape (n,).
    weight
        Sampling weight of each item, shape (n,), not negative; normalised to sum to n.
    models, classes
        Names. The last of two classes is the positive one.

    Raises
    ------
    InputError
        Where the arrays are not what is said above; the message says which item and what to do.

    Examples
    --------
    >>> import fewlabels as fl
    >>> predictions = fl.Predictions([[0.9, 0.7], [0.2, 0.4]], [1, -1], models=["a", "b"])
    >>> predictions.n_items, predictions.n_models, predictions.n_classes, predictions.n_labeled
    (2, 2, 2, 1)
    """

    probabilities: Floats | None
    votes: Ints | None
    scores: Floats | None
    labels: Ints
    histogram: Floats | None
    groups: Mapping[str, Array]
    domain: Array | None
    weight: Floats
    models: tuple[str, ...]
    classes: tuple[Any, ...]
    notes: tuple[str, ...]

    def __init__(
        self,
        probabilities: Any = None,
        labels: Any = None,
        *,
        votes: Any = None,
        scores: Any = None,
        histogram: Any = None,
        groups: Mapping[str, Any] | None = None,
        domain: Any = None,
        weight: Any = None,
        models: Sequence[str] | None = None,
        classes: Sequence[Any] | None = None,
        notes: Iterable[str] = (),
    ) -> None:
        said = list(notes)
        names = _names(models, probabilities, votes, scores)
        p = None if probabilities is None else _probabilities(probabilities, names, said)
        s = None if scores is None else _matrix("scores", scores, np.float64)
        v = None if votes is None else _indices("votes", votes, 2)
        h = None if histogram is None else _histogram(histogram)
        if p is None and s is None and v is None:
            raise InputError(
                "no predictions given; pass `probabilities`, `votes` or `scores` (in a file: "
                "columns p__<model>__<class>, y__<model> or s__<model>)"
            )
        class_names = _classes(classes, p, v, s, h, labels)
        k = len(class_names)
        n = next(len(a) for a in (p, v, s) if a is not None)
        _check_shapes(n, k, len(names), p, v, s, h)
        if v is not None and v.size and v.max() >= k:
            _refuse_index("votes", int(v.max()), class_names)
        y = _labels(labels, n, class_names)
        absent = [str(c) for i, c in enumerate(class_names) if not (y == i).any()]
        if (y >= 0).any() and absent:
            said.append(f"no labeled item of class {', '.join(absent)}")
        self._set(
            probabilities=p,
            votes=v,
            scores=s,
            labels=y,
            histogram=h,
            groups={g: _per_item(f"groups[{g!r}]", a, n) for g, a in (groups or {}).items()},
            domain=None if domain is None else _per_item("domain", domain, n),
            weight=_weight(weight, n),
            models=names,
            classes=class_names,
            notes=tuple(said),
        )

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def n_items(self) -> int:
        """Number of items, n."""
        return len(self.labels)

    @property
    def n_models(self) -> int:
        """Number of classifiers, M."""
        return len(self.models)

    @property
    def n_classes(self) -> int:
        """Number of classes, K."""
        return len(self.classes)

    @cached_property
    def labeled(self) -> Bools:
        """Which items have a known label, shape (n,)."""
        return self.labels >= 0

    @property
    def n_labeled(self) -> int:
        """Number of items with a known label."""
        return int(self.labeled.sum())

    @cached_property
    def has_probabilities(self) -> Bools:
        """Where classifier j gives probabilities for item i, shape (n, M)."""
        if self.probabilities is None:
            return np.zeros((self.n_items, self.n_models), dtype=bool)
        return ~np.isnan(self.probabilities[:, :, 0])

    @cached_property
    def hard(self) -> Ints:
        """Hard predictions, shape (n, M): the vote, else the first argmax; -1 = missing."""
        if self.probabilities is None:
            out = np.full((self.n_items, self.n_models), UNKNOWN, dtype=np.int64)
        else:
            out = np.where(self.has_probabilities, np.argmax(self.probabilities, axis=2), UNKNOWN)
        if self.votes is not None:
            out = np.where(self.votes >= 0, self.votes, out)
        return out

    @cached_property
    def evidence(self) -> Floats:
        """Log-likelihood of what is known of each item's label, shape (n, K).

        One-hot (0 and -inf) for a known label, 0 where nothing is known. A histogram is a
        multinomial: each annotator is right with probability r and else names any other class,
        where r is found from how often two annotators of one item agree,
        r^2 + (1 - r)^2 / (K - 1) (moments; r = .9 where no item has two labels).
        """
        out = np.zeros((self.n_items, self.n_classes))
        if self.histogram is not None:
            right = _annotator_accuracy(self.histogram)
            wrong = (1 - right) / (self.n_classes - 1)
            out += self.histogram * (np.log(right) - np.log(wrong))
            out -= out.max(axis=1, keepdims=True)
        out[self.labeled] = -np.inf
        rows = np.flatnonzero(self.labeled)
        out[rows, self.labels[rows]] = 0.0
        return out

    @cached_property
    def keys(self) -> UInts:
        """Identity of each item, shape (n,): a hash of its predictions, label and domain.

        All randomness per item is drawn from it, so no answer depends on the order of the rows.
        """
        columns: list[Array] = [self.labels]
        for block in (self.probabilities, self.votes, self.scores, self.histogram):
            if block is not None:
                columns.extend(block.reshape(len(block), -1).T)
        if self.domain is not None:
            columns.append(hash_strings(self.domain))
        # The weight is known up to its unit only, and groups may come and go: neither belongs to
        # the identity, but both tell equal rows apart in an order of their own.
        aside: list[Array] = [self.weight.astype(np.float32)]
        aside += [hash_strings(group) for group in self.groups.values()]
        return distinguish(hash_columns(columns, self.n_items), hash_columns(aside, self.n_items))

    def take(self, rows: Array) -> Predictions:
        """The same classifiers on some items (indices or a mask); weights are renormalised."""
        per_item = ("probabilities", "labels", "votes", "scores", "histogram", "domain")
        changes = {
            name: None if (block := getattr(self, name)) is None else block[rows]
            for name in per_item
        }
        return self._with(
            **changes,
            groups={g: a[rows] for g, a in self.groups.items()},
            weight=_weight(self.weight[rows], len(changes["labels"])),
        )

    def with_labels(self, labels: Any) -> Predictions:
        """The same predictions with other labels, shape (n,); -1 = unknown."""
        return self._with(labels=_labels(labels, self.n_items, self.classes))

    def select_models(self, models: Sequence[str]) -> Predictions:
        """The same items with some of the classifiers, in the order given.

        Raises
        ------
        UsageError
            If a classifier is unknown.
        """
        for name in models:
            if name not in self.models:
                raise UsageError(unknown("model", name, self.models))
        if tuple(models) == self.models:
            return self
        columns = [self.models.index(m) for m in models]
        changes = {
            name: None if (block := getattr(self, name)) is None else block[:, columns]
            for name in ("probabilities", "votes", "scores")
        }
        return self._with(**changes, models=tuple(models))

    def _with(self, **changes: Any) -> Predictions:
        """A copy with other fields, which are known to be good: nothing is checked twice."""
        copy = object.__new__(Predictions)
        copy._set(**({name: getattr(self, name) for name in _FIELDS} | changes))
        return copy


_FIELDS = tuple(Predictions.__annotations__)


def _check_shapes(
    n: int,
    k: int,
    m: int,
    p: Array | None,
    v: Array | None,
    s: Array | None,
    h: Array | None,
) -> None:
    """Refuse arrays that do not agree on n items, M classifiers and K classes."""
    blocks = (("probabilities", p, m), ("votes", v, m), ("scores", s, m), ("histogram", h, k))
    for name, array, width in blocks:
        if array is not None and (len(array) != n or array.shape[1] != width):
            raise InputError(
                f"`{name}` must have {n} rows and {width} columns; got shape {array.shape}"
            )
    if p is not None and p.shape[2] != k:
        raise InputError(
            f"`probabilities` has {p.shape[2]} classes but `classes` names {k}; make them agree"
        )
    if s is not None and k != 2:
        raise InputError(f"`scores` need two classes; got {k} classes")


def _names(models: Sequence[str] | None, *arrays: Any) -> tuple[str, ...]:
    widths = {np.shape(a)[1] for a in arrays if a is not None and np.ndim(a) > 1}
    if models is None:
        return tuple(f"model{j}" for j in range(max(widths, default=0)))
    names = tuple(str(m) for m in models)
    if len(set(names)) < len(names):
        twice = next(m for m in names if names.count(m) > 1)
        raise InputError(f"`models` must be different; got {twice!r} twice: rename one of them")
    if widths and widths != {len(names)}:
        raise InputError(
            f"`models` names {len(names)} classifiers but the arrays have {sorted(widths)} "
            "columns; pass one name per column"
        )
    return names


def _matrix(name: str, value: Any, dtype: Any, dimensions: int = 2) -> Array:
    try:
        array = np.array(value, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise InputError(f"`{name}` must be numbers; got {error}") from None
    if array.ndim != dimensions:
        raise InputError(
            f"`{name}` must have {dimensions} dimensions; got shape {array.shape}: see "
            "fewlabels.Predictions for the shapes"
        )
    if len(array) == 0:
        raise InputError(f"`{name}` has no rows; pass at least one item")
    if np.isinf(array).any():
        raise InputError(f"`{name}` must be finite or NaN; got an infinite value")
    return array


def _probabilities(value: Any, names: tuple[str, ...], notes: list[str]) -> Floats:
    binary = np.ndim(value) == 2
    p = _matrix("probabilities", value, np.float64, 2 if binary else 3)
    if not binary and p.shape[2] < 2:
        raise InputError("one class declared in `probabilities`; at least two are needed")
    out = np.empty((*p.shape, 2)) if binary else p
    mended = 0
    for block in spans(len(p), _ROWS):
        _check_range(p[block], block.start, names)
        if binary:
            out[block, :, 0], out[block, :, 1] = 1 - p[block], p[block]
        np.clip(out[block], 0.0, 1.0, out=out[block])
        mended += 0 if binary else _mend_sums(out[block], block.start, names)
    if mended:
        notes.append(f"{mended} rows of probabilities did not sum to 1 and were renormalised")
    return out


def _check_range(p: Array, first: int, names: tuple[str, ...]) -> None:
    bad = (p < -1e-6) | (p > 1 + 1e-6)
    if bad.any():
        at = tuple(np.argwhere(bad)[0])
        raise InputError(
            f"`probabilities` must be between 0 and 1; got {p[at]} for item {first + at[0]} (from "
            f"0), classifier {names[at[1]]!r}: pass raw scores as `scores` (in a file: "
            f"s__{names[at[1]]})"
        )


def _mend_sums(p: Array, first: int, names: tuple[str, ...]) -> int:
    """Renormalise rows (b, M, K) in place, and say how many needed it."""
    total = p.sum(axis=2)
    part = np.isnan(total) & ~np.isnan(p).all(axis=2)
    if part.any():
        i, j = np.argwhere(part)[0]
        raise InputError(
            f"`probabilities` has NaN in part of a row: item {first + i} (from 0), classifier "
            f"{names[j]!r}; fill the row, or leave all its classes empty where there is no "
            "prediction"
        )
    off = np.abs(np.where(np.isnan(total), 1.0, total) - 1)
    if off.max() > SUM_TOLERANCE:
        i, j = np.argwhere(off > SUM_TOLERANCE)[0]
        raise InputError(
            f"`probabilities` must sum to 1 over the classes; got {total[i, j]:.6g} for item "
            f"{first + i} (from 0), classifier {names[j]!r}: apply a softmax, or add the missing "
            "class"
        )
    mended = off > _SUM_ROUNDING
    p[mended] /= total[mended][:, None]
    return int(mended.sum())


def _indices(name: str, value: Any, dimensions: int) -> Ints:
    array = np.asarray(value)
    if array.dtype.kind in "fOUS":
        array = _matrix(name, array, np.float64, dimensions)
        array = np.where(np.isnan(array), UNKNOWN, array)
        if (array != np.round(array)).any():
            odd = array[array != np.round(array)][0]
            raise InputError(
                f"`{name}` must be class indices; got {odd}: pass 0 .. K-1, -1 = unknown"
            )
    out = _matrix(name, array, np.int64, dimensions)
    if (out < UNKNOWN).any():
        raise InputError(
            f"`{name}` must be class indices; got {out.min()}: pass 0 .. K-1, -1 = unknown"
        )
    return out


def _histogram(value: Any) -> Floats:
    h = np.nan_to_num(_matrix("histogram", value, np.float64))
    if (h < 0).any():
        raise InputError(
            f"`histogram` must be counts; got {h.min()}: pass how many chose each class"
        )
    return h


def _classes(
    classes: Sequence[Any] | None,
    p: Floats | None,
    v: Ints | None,
    s: Floats | None,
    h: Floats | None,
    labels: Any,
) -> tuple[Any, ...]:
    if classes is not None:
        names = tuple(c.item() if isinstance(c, np.generic) else c for c in classes)
        if len(names) < 2:
            raise InputError(f"one class declared: {names}; at least two are needed")
        if len({str(c) for c in names}) < len(names):
            raise InputError(f"`classes` must be different; got {names}")
        if any(str(c) == str(UNKNOWN) for c in names):
            raise InputError(
                "-1 is declared a class, but it marks unknown labels; rename that class"
            )
        return names
    if p is not None:
        return tuple(range(p.shape[2]))
    if h is not None:
        return tuple(range(h.shape[1]))
    known = [int(v.max())] if v is not None else []
    y = np.asarray([] if labels is None else labels)
    if y.dtype.kind in "iuf" and y.size and not np.isnan(y.astype(float)).all():
        known.append(int(np.nanmax(y.astype(float))))
    return tuple(range(2 if s is not None else max(max(known, default=1) + 1, 2)))


def _labels(labels: Any, n: int, classes: tuple[Any, ...]) -> Ints:
    if labels is None:
        return np.full(n, UNKNOWN, dtype=np.int64)
    array = np.asarray(labels)
    if array.dtype.kind == "O":
        array = _numbers(array)
    if array.dtype.kind in "OUS":
        array = _looked_up(array, classes)
    y = _indices("labels", array, 1)
    if len(y) != n:
        raise InputError(f"`labels` must have {n} entries, one per item; got {len(y)}")
    if y.max() >= len(classes):
        _refuse_index("labels", int(y.max()), classes)
    return y


def _numbers(array: Array) -> Array:
    """An array of objects as numbers, None as NaN; itself where they are not all numbers."""
    if all(value is None or isinstance(value, Real) for value in array.ravel().tolist()):
        return array.astype(np.float64)
    return array


def _looked_up(array: Array, classes: tuple[Any, ...]) -> Ints:
    """Class indices of names."""
    index = {str(c): i for i, c in enumerate(classes)}
    texts = [str(value) for value in array.ravel()]
    for value in texts:
        if value not in index and value not in _NO_LABEL:
            _refuse_class("label", value, classes)
    return np.array([index.get(value, UNKNOWN) for value in texts], dtype=np.int64)


_NO_LABEL = frozenset({"", "-1", "nan", "NaN", "None", "<NA>"})


def _refuse_class(what: str, value: Any, classes: tuple[Any, ...]) -> None:
    raise InputError(
        f"{what} {value!r} is not a class; the classes are {listed(classes, 10)}: correct it, or "
        "declare it in `classes`"
    )


def _refuse_index(name: str, value: int, classes: tuple[Any, ...]) -> None:
    raise InputError(
        f"`{name}` must be class indices 0 .. {len(classes) - 1} (of the classes "
        f"{listed(classes, 10)}), -1 = unknown; got {value}"
    )


def _per_item(name: str, value: Any, n: int) -> Array:
    array = np.array(value)
    if array.shape != (n,):
        raise InputError(f"`{name}` must have {n} entries, one per item; got shape {array.shape}")
    return array


def _weight(weight: Any, n: int) -> Floats:
    if weight is None:
        return np.ones(n)
    w = _matrix("weight", weight, np.float64, 1)
    if len(w) != n:
        raise InputError(f"`weight` must have {n} entries, one per item; got {len(w)}")
    if np.isnan(w).any() or (w < 0).any():
        i = int(np.flatnonzero(np.isnan(w) | (w < 0))[0])
        raise InputError(
            f"`weight` must not be negative or missing; got {w[i]} for item {i} (from 0): "
            "give it a weight, or 0 to leave it out"
        )
    if not w.any():
        raise InputError(
            "`weight` is zero for every item; give at least one item a positive weight"
        )
    return w * (n / math.fsum(w))  # a sum that does not depend on the order of the items


def _annotator_accuracy(histogram: Floats) -> float:
    size = histogram.sum(axis=1)
    many = size >= 2
    if not many.any():
        return 0.9
    h, m = histogram[many], size[many]
    k = histogram.shape[1]
    agree = float(((h * (h - 1)).sum(axis=1) / (m * (m - 1))).mean())
    # r^2 + (1-r)^2/(k-1) = agree; the root above 1/k.
    spread = max((agree - 1 / k) * (k - 1) / k, 0.0)
    return float(np.clip(1 / k + np.sqrt(spread), 1 / k + 1e-3, 1 - 1e-3))
