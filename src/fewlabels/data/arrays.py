"""Arrays as people have them: what classifiers gave, with the labels beside it (`y_true`).

Values are classes here, as in scikit-learn, and not indices of classes: hard predictions and labels
1, 2, 3 are three classes, -1 and 1 are two if the predictions have both. `of_arrays` turns them
into the mapping, name -> array, that `Predictions` takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from fewlabels.checks.arrays import (
    UNKNOWN,
    class_texts,
    is_hard,
    label_array,
    output_array,
    spelled_once,
    sums_to_one,
)
from fewlabels.checks.class_words import numbers_of, same_answer
from fewlabels.data.assemble import check_order
from fewlabels.errors import InputError, listed, quoted
from fewlabels.kernels.arrays import Array
from fewlabels.predictions import Predictions


class Output(NamedTuple):
    """What one classifier gave: its array, and the classes that name its columns, if any do."""

    value: Any
    array: Array
    named: list[str]

    @property
    def hard(self) -> bool:
        """Whether it gave classes."""
        return self.array.ndim == 1 and is_hard(self.array)


def of_arrays(
    source: Any, y_true: Any = None, classes: Iterable[Any] | None = None, positive: Any = None
) -> Predictions:
    """`Predictions` of an array, a mapping of arrays or a frame, and the labels beside it."""
    # One gives (n,) classes, P(class 1) or scores, or (n, K) probabilities; several (n, M), (n, M,
    # K), a mapping or a frame. No label is None, NaN, NA, masked, or -1 where no prediction is.
    outputs = {name: Output(value, *output_array(name, value)) for name, value in _each(source)}
    if not outputs:
        raise InputError("the mapping of classifiers is empty; pass name -> array")
    n = len(next(iter(outputs.values())).array)
    y = None if y_true is None else _labels(y_true, n, source)
    hard = {name: one.array for name, one in outputs.items() if one.hard}
    notes: list[str] = []
    y, hard = _minus_one(y, hard, notes)
    if y is not None:
        _refuse_other_words(y, hard)
    found = _Classes.of(outputs, hard, y, None if classes is None else tuple(classes))
    if found.by_value:
        hard = {name: _texts(array) for name, array in hard.items()}
        y = None if y is None else _texts(y)
    given = {name: hard.get(name, one.value) for name, one in outputs.items()}
    made = Predictions(given, y, classes=found.classes, positive=positive, reading=found.lines)
    if classes is None and made.probabilities is not None:
        texts = list(map(str, made.classes))
        for name, p in zip(made.models, made.probabilities.swapaxes(0, 1), strict=True):
            if not outputs[name].named:
                way = "columns={{'classes': {}}}".format
                check_order(p, made.labels, texts, f"the array of {quoted(name)}", way)
    told = any("-1 is read" in note for note in made.notes)
    return made if told else made.noting((*made.notes, *notes))


def _each(source: Any) -> list[tuple[str, Any]]:
    """Classifiers by name, with their arrays."""
    if isinstance(source, Mapping):
        return [(str(name), value) for name, value in source.items()]
    columns = getattr(source, "column_names", None) or getattr(source, "columns", None)
    if columns is not None:
        names = [str(c) for c in columns]
        block = np.column_stack([label_array(str(c), source[c]) for c in columns])
        if _one_classifier(block):
            # pandas numbers the columns of an array itself, which names no class.
            unnamed = names == [str(j) for j in range(len(names))]
            return [("model0", block if unnamed else source)]
        return [(str(c), source[c]) for c in columns]
    array = label_array("predictions", source)
    if array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1):
        return [(str(getattr(source, "name", None) or "model0"), array.reshape(-1))]
    if _one_classifier(array):
        return [("model0", array)]
    if array.ndim not in (2, 3):
        raise InputError(
            f"`predictions` must be (n,), (n, M), (n, K) or (n, M, K); got shape {array.shape}"
        )
    return [(f"model{j}", array[:, j]) for j in range(array.shape[1])]


def _one_classifier(array: Array) -> bool:
    """Whether an array has a column per class; two columns of 0 and 1 are two classifiers."""
    kinds = "iuf" if array.ndim == 2 and array.shape[1] > 2 else "f"
    numbers = array.ndim == 2 and array.dtype.kind in kinds
    return numbers and sums_to_one(array.astype(np.float64))


def _labels(y_true: Any, n: int, source: Any) -> Array:
    """The labels (n,), in the order of the predictions."""
    y = label_array("y_true", y_true)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim != 1:
        one_hot = y.ndim == 2 and len(y) == n
        mend = ": if a column is a class, pass y_true.argmax(axis=1)" if one_hot else ""
        raise InputError(f"`y_true` must have one label per item, (n,); got shape {y.shape}{mend}")
    index, other = _index(source), _index(y_true)
    named = index is not None and other is not None and index.is_unique and other.is_unique
    shared = len(index.intersection(other)) if named else 0
    if len(y) != n:
        part = named and shared == len(y) < n
        mend = "the shape of `predictions` is (items, ...)"
        mend = "of some of them pass y_true.reindex(predictions.index)" if part else mend
        raise InputError(
            f"`y_true` must have {n} entries, one per item of `predictions`; got {len(y)}: {mend}"
        )
    if shared == n and not index.equals(other):
        raise InputError(
            "`y_true` has the index of `predictions` in another order; pass "
            "y_true.loc[predictions.index], or y_true.to_numpy() if the rows are the same"
        )
    if y.dtype.kind == "f" and (odd := y[~np.isnan(y) & (y != np.round(y))]).size:
        raise InputError(
            f"`y_true` must be classes; got {odd[0]:g}: predictions come first, labels as `y_true`"
        )
    return y


def _index(value: Any) -> Any:
    """The index of pandas; of a mapping that of its first array that has one."""
    for one in value.values() if isinstance(value, Mapping) else (value,):
        index = getattr(one, "index", None)
        if hasattr(index, "is_unique"):
            return index
    return None


def _minus_one(
    y: Array | None, hard: dict[str, Array], notes: list[str]
) -> tuple[Array | None, dict[str, Array]]:
    """Labels and hard predictions in which -1 means unknown, and a note on what it was."""
    below = 0 if y is None else _count(y)
    missing = {name: count for name, array in hard.items() if (count := _count(array))}
    # Who writes NaN for unknown, and else -1 and 1 alone, means two classes by them.
    signs = y is not None and y.dtype.kind == "f" and np.isnan(y).any() and _values(y) == ["1"]
    if y is None or not below or not (missing or signs):
        if below:
            notes.append(
                f"-1 in `y_true` ({below:,} items) is an unknown label, as no prediction is -1"
            )
        for name, count in missing.items():
            notes.append(f"-1 is no prediction of {quoted(name)} ({count:,} items)")
        return y, hard
    others = sorted({v for a in (y, *hard.values()) for v in _values(a)} - {"1"})
    if others:
        raise InputError(
            f"-1 stands in `y_true` and in the predictions, beside {listed(others, 5)}: if it is a "
            "class, call the classes by words; if it is not, write NaN"
        )
    why = "as labels and predictions have it" if missing else "as NaN says what is unknown"
    notes.append(f"-1 in `y_true` is read as the class 0, {why}")
    raised = {name: np.where(array == UNKNOWN, 0, array) for name, array in hard.items()}
    return np.where(y == UNKNOWN, 0, y), raised


def _count(array: Array) -> int:
    return int((array == UNKNOWN).sum()) if array.dtype.kind in "if" else 0


def _values(array: Array) -> list[str]:
    """The classes in an array, as text."""
    if array.dtype.kind in "OU":
        return spelled_once(sorted({*class_texts(array)}))
    known = np.unique(array[np.isfinite(array)] if array.dtype.kind == "f" else array.astype(int))
    return [str(int(v)) for v in known if v != UNKNOWN]


def _texts(array: Array) -> Array:
    """The classes in an array as text, None where there is none."""
    if array.dtype.kind in "OU":
        return array
    none = (np.isnan(array) if array.dtype.kind == "f" else False) | (array == UNKNOWN)
    out = np.array([str(int(v)) for v in np.where(none, 0, array)], dtype=object)
    out[none] = None
    return out


def _refuse_other_words(y: Array, hard: Mapping[str, Array]) -> None:
    """Refuse a classifier none of whose classes is one of the labels."""
    labels = _values(y)
    for name, array in hard.items():
        says = _values(array)
        if len(labels) > 1 and says and not any(same_answer(t, labels) for t in says):
            raise InputError(
                f"{quoted(name)} gives {listed(says, 5)}, and the labels in `y_true` are "
                f"{listed(labels, 5)}: write classes the same way in both"
            )


class _Classes(NamedTuple):
    """The classes (None: as `Predictions` finds them), and whether values are looked up in them.

    `lines` say in which order the columns of probabilities were taken to be.
    """

    classes: tuple[Any, ...] | None
    by_value: bool
    lines: tuple[str, ...] = ()

    @staticmethod
    def of(
        outputs: Mapping[str, Output], hard: Mapping[str, Array], y: Array | None,
        classes: tuple[Any, ...] | None,
    ) -> _Classes:  # fmt: skip
        arrays = [*hard.values(), *([] if y is None else [y])]
        found = spelled_once(v for a in arrays[::-1] for v in _values(a))  # as the labels are
        if classes is not None:
            return _Classes(classes, {*found} <= {*map(str, classes)})
        numbers = [one for one in outputs.values() if not one.hard]
        if any(one.named for one in numbers):
            return _Classes(None, True)
        widths = {one.array.shape[1] if one.array.ndim == 2 else 2 for one in numbers}
        width = max(widths, default=2)
        if {*found} <= {str(k) for k in range(width)}:
            return _Classes(None, False)
        values = numbers_of(found)
        if values is not None and all(a.dtype.kind not in "OU" for a in arrays):
            ordered: tuple[Any, ...] = tuple(int(v) for v in sorted(values))
        else:
            ordered = tuple(sorted(found) if values is None else np.array(found)[values.argsort()])
        if not numbers and len(ordered) > 1:
            return _Classes(ordered, True)
        if len(ordered) != width:
            raise InputError(
                f"the predictions are of {width} classes, and the values of `y_true` and of hard "
                f"predictions are {listed(ordered, 10)}: name them all in their order, "
                "columns={'classes': model.classes_}"
            )
        line = f"classes in the order of scikit-learn: {listed(ordered, 10)}"
        if len(ordered) == 2 and any(one.array.ndim == 1 for one in numbers):
            line += f"; probabilities and scores are of {quoted(str(ordered[1]))}"
        return _Classes(ordered, True, (line,))
