"""Every input of `Predictions` is checked here, once, with one-line messages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from fewlabels.checks.arguments import (
    SUM_ROUNDING,
    SUM_TOLERANCE,
    as_real,
    is_missing,
    matrix,
    one_per,
    plain_array,
    refuse,
    refuse_beyond_memory,
)
from fewlabels.checks.class_words import (
    MAYBE_NO_LABEL,
    NO_LABEL,
    folded,
    positive_index,
    same_answer,
)
from fewlabels.errors import InputError, UsageError, listed, quoted, unknown
from fewlabels.kernels.arrays import Array, Bools, Floats, Ints
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.ranking import ranked_apart

UNKNOWN = -1
"""The label of an item without a known label, and a missing vote."""

_ROWS = 65_536


def check_shapes(
    n: int, k: int, m: int, p: Array | None, v: Array | None, s: Array | None, h: Array | None
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


def model_names(models: Sequence[str] | None, *arrays: Any) -> tuple[str, ...]:
    """Names of the classifiers, all different."""
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


class ByName(NamedTuple):
    """Arguments of `Predictions` that a mapping of classifiers stands for."""

    probabilities: Floats | None
    votes: Array | None
    scores: Floats | None
    models: tuple[str, ...]
    classes: Sequence[Any] | None


def refuse_beside_mapping(**others: Any) -> None:
    """Refuse arguments that repeat what a mapping of classifiers says."""
    for name, value in others.items():
        if value is not None:
            raise UsageError(
                f"a mapping of classifiers holds their names and all that they say; put `{name}` "
                "into it, or pass arrays"
            )


def by_name(
    provided: Mapping[Any, Any], classes: Sequence[Any] | None, labels: Any = None
) -> ByName:
    """Split a mapping, name -> what a classifier said, into arrays by kind."""
    if not provided:
        raise InputError("the mapping of classifiers is empty; pass name -> array")
    blocks: dict[int, Floats] = {}
    votes: dict[int, Array] = {}
    scores: dict[int, Floats] = {}
    for j, (name, value) in enumerate(provided.items()):
        array, named = output_array(name, value)
        if named and classes is None:
            classes = named
        if array.ndim == 2:
            blocks[j] = _class_block(str(name), array, named, classes)
        elif is_hard(array):
            _refuse_wrapped(str(name), array)
            votes[j] = array
        else:
            one = array.astype(np.float64)
            share = one[~np.isnan(one)]
            inside = len(share) and share.min() >= 0 and share.max() <= 1
            (blocks if inside else scores)[j] = one
    n, m = len(output_array(*next(iter(provided.items())))[0]), len(provided)
    for name, value in provided.items():
        if len(output_array(name, value)[0]) != n:
            raise InputError(
                f"classifiers must have one row per item; the first has {n} and {name!r} has "
                f"{len(output_array(name, value)[0])}"
            )
    texts = {t for a in votes.values() for t in class_texts(a)}
    if texts and classes is None:
        if any(b.ndim == 2 for b in blocks.values()):
            raise InputError(
                f"hard predictions name classes ({listed(sorted(texts))}) but the columns of the "
                "probabilities do not; say their order with `classes` (of scikit-learn: "
                "classes=model.classes_)"
            )
        label_names = class_texts(labels) if labels is not None else []
        classes = sorted(spelled_once([*label_names, *sorted(texts)]))
    widths = {b.shape[1]: j for j, b in blocks.items() if b.ndim == 2}
    if len(widths) > 1:
        widths_text = [f"{list(provided)[j]!r} has {k}" for k, j in widths.items()]
        raise InputError(f"classifiers must have one column per class; {listed(widths_text)}")
    k = max(widths, default=2)
    p = None
    if blocks:
        p = np.full((n, m, k), np.nan)
        for j, block in blocks.items():
            if block.ndim == 1 and k > 2:
                raise InputError(
                    f"classifier {list(provided)[j]!r} has one probability per item, but there are "
                    f"{k} classes; pass one column per class"
                )
            p[:, j] = block if block.ndim == 2 else np.stack([1 - block, block], axis=1)
    return ByName(
        p,
        None if not votes else _columns(votes, n, m, UNKNOWN, classes),
        None if not scores else _columns(scores, n, m, np.nan, None),
        tuple(str(name) for name in provided),
        classes,
    )


def output_array(name: Any, value: Any) -> tuple[Array, list[str]]:
    """One classifier's array, and the names of its columns where it is a frame."""
    columns = getattr(value, "column_names", None) or getattr(value, "columns", None)
    if columns is not None and np.ndim(columns) == 1 and len(columns):
        named = [str(c) for c in columns]
        return np.column_stack([label_array(str(name), value[c]) for c in columns]), named
    array = label_array(str(name), value)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2) or array.dtype.kind not in "biufOU":
        raise InputError(
            f"classifier {str(name)!r} must be (n, K) probabilities or (n,) probabilities, hard "
            f"predictions or scores; got shape {array.shape}"
        )
    return array, []


def _class_block(
    name: str, array: Array, named: Sequence[str], classes: Sequence[Any] | None
) -> Floats:
    """Probabilities (n, K) of one classifier, its columns in the order of the classes."""
    block = matrix(f"probabilities of {name}", array)
    if not sums_to_one(block):
        raise InputError(
            f"classifier {name!r} has an array of shape {array.shape} whose rows do not sum to 1; "
            "pass probabilities (n, K), or one (n,) array of scores"
        )
    if not named:
        return block
    order = [str(c) for c in classes or named]
    if sorted(order) != sorted(named):
        raise InputError(
            f"classifier {name!r} has the columns {listed(named)}, but the classes are "
            f"{listed(order)}; name the columns by the classes"
        )
    return block[:, [list(named).index(c) for c in order]]


def spelled_once(texts: Iterable[str]) -> list[str]:
    """The classes that texts mean, each as it is written first."""
    retained: list[str] = []
    for text in dict.fromkeys(texts):
        if same_answer(text, retained) is None:
            retained.append(text)
    return retained


def class_texts(array: Array) -> list[str]:
    """The classes among the texts of an array, in order; none if it holds numbers."""
    if array.dtype.kind not in "OU":
        return []
    none = NO_LABEL | MAYBE_NO_LABEL
    return [str(v) for v in array if v is not None and folded(str(v)) not in none]


def is_hard(array: Array) -> bool:
    """Whether one classifier's array (n,) holds classes: text, booleans, whole numbers."""
    return array.dtype.kind in "bOU" or (array.dtype.kind in "iuf" and _whole(array))


def _whole(array: Array) -> bool:
    defined = array[~np.isnan(array)] if array.dtype.kind == "f" else array
    return bool((defined == np.round(defined)).all()) and bool((defined >= UNKNOWN).all())


def _columns(
    by_model: Mapping[int, Array], n: int, m: int, absent: float, classes: Sequence[Any] | None
) -> Array:
    """Columns (n, M) of the classifiers that have one; text is looked up in the classes."""
    out = np.full((n, m), float(absent))
    for j, column in by_model.items():
        if column.dtype.kind in "OU":
            column = _looked_up(column, tuple(classes or ()))
        out[:, j] = column
    return out


def sums_to_one(block: Array) -> bool:
    """Whether the rows (n, K) are probabilities of K classes, rows of NaN left out."""
    missing = np.isnan(block)
    rows = block[~missing.all(axis=1)]
    if block.shape[1] < 2 or not len(rows) or np.isnan(rows).any():
        return False
    inside = rows.min() >= -1e-6 and rows.max() <= 1 + 1e-6
    return bool(inside and (np.abs(rows.sum(axis=1) - 1) <= SUM_TOLERANCE).all())


def one_of_classes(probabilities: Any, models: Sequence[str] | None, notes: list[str]) -> Any:
    """Probabilities as given, but (n, K) whose rows sum to 1 as one classifier's, (n, 1, K)."""
    block = None if probabilities is None else label_array("probabilities", probabilities)
    if block is not None and block.ndim == 1 and block.dtype.kind == "f":
        return block[:, None]
    if block is None or block.ndim != 2:
        return block
    if block.dtype.kind not in "iuf" or not sums_to_one(block.astype(np.float64)):
        return block
    k = block.shape[1]
    if models is not None and len(models) == k:
        raise InputError(
            f"`probabilities` has {k} columns that sum to 1 in every row: the classes of one "
            f"classifier, but `models` names {k}; pass {{name: probabilities}} for one classifier, "
            "or (n, M, K) for several"
        )
    notes.append(
        f"`probabilities` of shape (n, {k}) sum to 1 in every row: one classifier, {k} classes"
    )
    return block[:, None, :]


def positive_class(classes: Sequence[Any], requested: Any) -> Any:
    """The requested positive class, else that of two classes; None if there are more."""
    if requested is not None:
        return classes[class_index(requested, classes)]
    return classes[positive_index(classes)] if len(classes) == 2 else None


def class_index(requested: Any, classes: Sequence[Any]) -> int:
    """Index of the class that is meant: as it is written, in another case, 1.0 for 1, a synonym."""
    names = [str(c) for c in classes]
    integral = isinstance(requested, float) and requested.is_integer()
    text = str(requested).lower() if isinstance(requested, bool | np.bool_) else str(requested)
    match = same_answer(str(int(requested)) if integral else text, names)
    if match is None:
        raise UsageError(unknown("class", requested, names))
    return names.index(match)


def probability_block(value: Any, names: tuple[str, ...], notes: list[str]) -> Floats:
    """Probabilities (n, M, K), in range and summing to 1."""
    value = plain_array("probabilities", value)
    binary = value.ndim == 2
    p = matrix("probabilities", value, 2 if binary else 3)
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
        notes.append(f"{mended:,} rows of probabilities did not sum to 1 and were renormalised")
    return out


def _check_range(p: Array, first: int, names: tuple[str, ...]) -> None:
    bad = (p < -1e-6) | (p > 1 + 1e-6)
    if bad.any():
        at = tuple(np.argwhere(bad)[0])
        percent = "divide percentages by 100, or " if 1 < p[at] <= 100 else ""
        raise InputError(
            f"`probabilities` must be between 0 and 1; got {p[at]} for item {first + at[0]} (from "
            f"0), classifier {names[at[1]]!r}: {percent}pass raw scores as `scores` (in a "
            f"file: s__{names[at[1]]})"
        )


def _mend_sums(p: Array, first: int, names: tuple[str, ...]) -> int:
    """Renormalise rows (b, M, K) in place, and say how many items needed it."""
    total = p[:, :, 0] + p[:, :, 1]  # class by class: sums over a short axis are slow
    for k in range(2, p.shape[2]):
        total += p[:, :, k]
    missing = np.argwhere(np.isnan(total))
    incomplete = ~np.isnan(p[missing[:, 0], missing[:, 1]]).all(axis=1)
    if incomplete.any():
        i, j = missing[incomplete][0]
        raise InputError(
            f"`probabilities` has NaN in part of a row: item {first + i} (from 0), classifier "
            f"{names[j]!r}; fill the row, or leave all its classes empty where there is no "
            "prediction"
        )
    total[missing[:, 0], missing[:, 1]] = 1.0
    off = np.abs(total - 1)
    for j in np.flatnonzero((off > SUM_TOLERANCE).any(axis=0)):
        bad = (off[:, j] > rounding(p[:, j].T)[0]) | (total[:, j] == 0)
        if bad.any():
            i = int(np.argmax(bad))
            raise InputError(
                f"`probabilities` must sum to 1 over the classes; got {total[i, j]:.6g} for item "
                f"{first + i} (from 0), classifier {names[j]!r}: {NO_SUM}"
            )
    mended = off > SUM_ROUNDING
    p[mended] /= total[mended][:, None]
    return int(mended.any(axis=1).sum())


NO_SUM = (
    "a class may be missing; if each class has a probability of its own (one against the rest), "
    "divide each row by its sum"
)
"""Why probabilities may not sum to 1, and what to do."""


def rounding(columns: Sequence[Floats] | Floats) -> tuple[Floats, Ints]:
    """How far from 1 the sum of rounded probabilities may be, and their digits, (n,) each.

    `columns` are the probabilities of the K classes, (n,) each, and each of K rounded numbers is
    off by at most half a unit of its last digit. One digit is no sign of rounding where all of them
    would have to be off by that much.
    """
    digits = np.full(len(columns[0]), 6)
    for d in reversed(range(6)):
        # Single precision is exact to 6e-8 of a number up to 1.
        scaled = [c * 10.0**d for c in columns]
        off = np.max([np.abs(s - np.round(s)) for s in scaled], axis=0)
        digits[off < 1e-7 * 10.0**d] = d
    slack = np.where(digits > 1, 1e-9, -1e-9)
    most = np.where(digits > 0, len(columns) / 2 * 10.0**-digits * (1 + slack), 0.0)
    return np.maximum(most, SUM_TOLERANCE), digits


def class_indices(name: str, value: Any, dimensions: int) -> Ints:
    """Class indices, -1 where unknown."""
    array = plain_array(name, value)
    _refuse_wrapped(name, array)
    if array.dtype.kind in "fOU":
        array = matrix(name, array, dimensions)
        array = np.where(np.isnan(array), UNKNOWN, array)
        if (array != np.round(array)).any():
            odd = array[array != np.round(array)][0]
            raise InputError(
                f"`{name}` must be class indices; got {odd}: pass 0 .. K-1, -1 = unknown"
            )
    # Signed integers keep their type: the votes of a thousand annotators fit only as bytes.
    kind = array.dtype if array.dtype.kind == "i" else np.int64
    out = matrix(name, array, dimensions, kind)
    if (out < UNKNOWN).any():
        raise InputError(
            f"`{name}` must be class indices; got {out.min()}: pass 0 .. K-1, -1 = unknown"
        )
    return out


def _refuse_wrapped(name: str, array: Array) -> None:
    """Refuse what -1 becomes among unsigned integers."""
    if array.dtype.kind == "u" and array.size and array.max() == np.iinfo(array.dtype).max:
        raise InputError(
            f"`{name}` must be class indices; got {array.max()}, which -1 becomes in "
            f"{array.dtype}: pass signed integers, -1 = unknown"
        )


def sparse_votes(value: Any) -> scipy.sparse.csr_matrix:
    """Votes (n, M) as a CSR matrix of class + 1 in sorted rows, each once."""
    out = scipy.sparse.csr_matrix(value)
    if out.dtype.kind not in "iu" or (out.data < 0).any():
        raise InputError(
            "`votes` as a sparse matrix hold class + 1, whole numbers from 1; nothing where there "
            "is no vote"
        )
    if not out.has_canonical_format or not out.data.all():
        stored = out.nnz
        out = out.copy()
        out.sum_duplicates()
        if out.nnz < stored:
            raise InputError("`votes` name a classifier twice on one item: give `repeated_votes`")
        out.eliminate_zeros()
    return out


_MOST_DENSE = 2**32
"""Cells of a dense table of votes, a byte or two each, beyond which it is refused."""


def dense_votes(ballots: scipy.sparse.csr_matrix) -> Array:
    """The reverse of `as_ballots`, in the integers of the matrix."""
    if np.prod(ballots.shape, dtype=np.float64) > _MOST_DENSE:
        n, m = ballots.shape
        raise InputError(
            f"{n:,} items x {m:,} annotators are too many for what takes a table of all of them; "
            "take a method of votes ('dawid-skene', 'confusion-bee', 'majority-vote')"
        )
    out: Array = ballots.toarray()
    out -= 1
    return out


def votes_again(value: Any, n: int, m: int, k: int) -> Ints:
    """Further votes, (E, 3): item, classifier, class."""
    out = matrix("repeated_votes", value)
    integral = out.shape[1] == 3 and bool(((out >= 0) & (out == np.round(out))).all())
    if not integral or (out >= [n, m, k]).any():
        raise InputError(
            "`repeated_votes` must have the columns item, classifier, class, all indices from 0; "
            f"got shape {out.shape} for {n:,} items, {m} classifiers, {k} classes"
        )
    return out.astype(np.int64)


def class_names(
    classes: Sequence[Any] | None, p: Floats | None, v: Ints | None, s: Floats | None,
    h: Floats | None, labels: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """Names of the classes: those given, else 0 .. K-1."""
    if classes is not None:
        names = tuple(c.item() if isinstance(c, np.generic) else c for c in classes)
        if len(names) < 2:
            raise InputError(f"one class declared: {names}; at least two are needed")
        odd = [c for c in names if is_missing(c) or isinstance(c, list | dict | set | np.ndarray)]
        if odd:
            raise InputError(f"`classes` must be names or numbers; got {odd[0]}")
        # Numbers are one class however they are written (1, 1.0, True), and so are texts.
        numbers = {c if isinstance(c, Real) else str(c) for c in names}
        if min(len(numbers), len({str(c) for c in names})) < len(names):
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
    counts = [int(v.max())] if v is not None else []
    if labels is not None and labels.dtype.kind in "iuf" and not np.isnan(labels).all():
        counts.append(int(min(np.nanmax(labels), 2**62)))
    count = 2 if s is not None else max(max(counts, default=1) + 1, 2)
    what = f"the index {count - 1:,} means {count:,} classes, which"
    refuse_beyond_memory(100.0 * count, what, "number the classes from 0")
    return tuple(range(count))


def label_array(name: str, value: Any) -> Array:
    """An array of numbers or texts; objects that are all numbers become these, None is NaN."""
    array = plain_array(name, value)
    if array.dtype.kind == "O" and all(
        v is None or isinstance(v, Real | Decimal) for v in array.flat
    ):
        return as_real(name, array)
    if array.dtype.kind == "O":
        odd = [v for v in array.flat if isinstance(v, float | np.floating) and not v.is_integer()]
        if odd:
            raise InputError(f"`{name}` must be numbers or texts; got {odd[0]} and texts")
    return array


def known_labels(labels: Any, n: int, classes: tuple[Any, ...]) -> Ints:
    """Class index of each item, (n,), -1 = unknown."""
    if labels is None:
        return np.full(n, UNKNOWN, dtype=np.int64)
    array = label_array("labels", labels)
    if array.dtype.kind == "b" and {*map(str, classes)} == {"True", "False"}:
        array = array.astype(str)  # they are the names, whatever their order
    if array.dtype.kind in "OU":
        array = _looked_up(array, classes)
    y = class_indices("labels", array, 1).astype(np.int64, copy=False)
    one_per("labels", y, n)
    if y.max() >= len(classes):
        refuse_index("labels", int(y.max()), classes)
    return y


_FEWEST_OF_A_SIGN, _APART = 10, 3.0
"""Labels of each sign, and standard errors between them, from which -1 is a class."""


def two_signs(
    labels: Array, y: Ints, p: Floats | None, v: Ints | None, s: Floats | None, notes: list[str]
) -> tuple[Ints, Ints | None]:
    """Labels, (n,), and votes, (n, M), where 1 and -1 may be two classes; a note on what they are.

    That -1 is a class, as support-vector machines have it, is told by the classifiers: what they
    say of the items of -1 ranks apart from what they say of those of 1 (Mann-Whitney), as of items
    that lack a label at random it does not, and of as many items as 1 has, those that rank highest,
    most are 1, as they are not where only some of one class have a label. `labels` are as they were
    given, `y` their indices.
    """
    above, below = int((labels == 1).sum()), int((labels == UNKNOWN).sum())
    if min(above, below) < _FEWEST_OF_A_SIGN or above + below < len(y):
        return y, v
    signs = v is not None and not (v == 0).any()
    said: list[Floats] = [] if s is None else list(s.T)
    said += [] if p is None else list(p[:, :, 1].T)
    if v is not None:
        said += list(np.where(v < 0, 0.0 if signs else np.nan, v).T)
    gaps = [_sign_apart(values, y == 1, above) for values in said]
    what = f"labels are 1 ({above:,} items) and -1 ({below:,})"
    if max((gap for gap in gaps if gap is not None), default=0.0) <= _APART:
        notes.append(
            f"{what}, and -1 is read as unlabeled; if it is the other class, pass 0 instead of -1"
        )
        return y, v
    notes.append(
        f"{what}, and the classifiers tell them apart: -1 is read as the class 0; if it means "
        "unlabeled, pass NaN instead of -1"
    )
    return np.maximum(y, 0), np.maximum(v, 0) if signs and v is not None else v


def _sign_apart(values: Floats, positive: Bools, above: int) -> float | None:
    """Standard errors between the two signs; None where most that rank highest are of the other."""
    highest = np.argsort(np.where(np.isnan(values), -np.inf, values), kind="stable")[-above:]
    return ranked_apart(values, positive) if 2 * positive[highest].sum() > above else None


def _looked_up(array: Array, classes: tuple[Any, ...]) -> Ints:
    """Class indices of names."""
    names = [str(c) for c in classes]
    index: dict[str | None, int] = {None: UNKNOWN}
    texts = [None if value is None else str(value) for value in array.ravel()]
    for value in dict.fromkeys(texts):
        if value is None:
            continue
        match = same_answer(value, names)
        if match is None and folded(value) not in NO_LABEL | MAYBE_NO_LABEL:
            raise InputError(
                f"label {value!r} is not a class; the classes are {listed(classes, 10)}: correct "
                "it, or declare it in `classes`, in the order of the columns (of scikit-learn: "
                "model.classes_)"
            )
        index[value] = UNKNOWN if match is None else names.index(match)
    return np.array([index[value] for value in texts], dtype=np.int64)


def refuse_index(name: str, value: int, classes: tuple[Any, ...]) -> None:
    """Refuse an index that is no class."""
    raise InputError(
        f"`{name}` must be class indices 0 .. {len(classes) - 1} (of the classes "
        f"{listed(classes, 10)}), -1 = unknown; got {value}"
    )


def per_item(name: str, value: Any, n: int) -> Array:
    """A copy of one value per item, (n,)."""
    return one_per(name, np.array(plain_array(name, value, names=True)), n)


def missing_values(values: Array) -> Bools:
    """Where there is no value: None or NaN, (n,)."""
    return np.array([v is None or v != v for v in values.tolist()], dtype=bool)  # NaN differs


def by_column(name: str, value: Any) -> Mapping[str, Any]:
    """A mapping of names to arrays; empty for None."""
    if value is None or isinstance(value, Mapping):
        return value or {}
    raise InputError(
        f"`{name}` must map names to arrays of one value per item; got {type(value).__name__}"
    )


def cluster_values(clusters: Mapping[str, Any], n: int, notes: list[str]) -> dict[str, Array]:
    """A copy of the cluster of each row, (n,) by name; two clusters or more by each."""
    out = {}
    for name, value in clusters.items():
        out[name] = values = per_item(f"clusters[{name!r}]", value, n)
        none = missing_values(values)
        alone = int(none.sum())
        if len(set(map(str, values[~none].tolist()))) + alone < 2:
            raise InputError(
                f"`clusters` must tell rows apart; got {quoted(name)}, by which all {n:,} rows are "
                "one cluster: leave it out (--cluster), or name a column with two values or more"
            )
        if alone:
            notes.append(
                f"{alone:,} rows without a value of the cluster {quoted(name)} count as one "
                "cluster each"
            )
    return out


def positive_counts(multiplicity: Any, n: int, *, some: bool = False) -> Floats:
    """How many items each row stands for, all above 0; or some of them, if they are weighed."""
    counts: Floats = one_per("multiplicity", matrix("multiplicity", multiplicity, 1), n, "row")
    none = ~((counts >= 0 if some else counts > 0) & (counts < np.inf))
    refuse(none, counts, "`multiplicity` must be above 0", "leave the row out", digits="")
    return counts


def label_weights(weight: Any, labels: Ints) -> Floats:
    """Weights of labels among each other, positive where a label is; 1 of other items."""
    w: Floats = one_per("label_weight", matrix("label_weight", weight, 1), len(labels)).copy()
    w[labels < 0] = 1.0
    rule = "`label_weight` must be above 0 where there is a label"
    refuse(~((w > 0) & (w < np.inf)), w, rule, "give it that of its draw, or 1", digits="")
    return w


def sampling_weight(weight: Any, n: int, labels: Any = None, notes: Any = ()) -> Floats:
    """Sampling weights, not negative, summing to n; of `labels` alone where no other has one."""
    if weight is None:
        return np.ones(n)
    w: Floats = one_per("weight", matrix("weight", weight, 1), n)
    lacking = np.isnan(w)
    if lacking.any() and np.array_equal(lacking, labels == UNKNOWN):
        w = np.where(lacking, 0.0, w)
        notes.append("`weight` is missing where there is no label: only the labels count by it")
    rule = "`weight` must not be negative or missing"
    refuse(np.isnan(w) | (w < 0), w, rule, "give it a weight, or 0 to leave it out", digits="")
    if not w.any():
        raise InputError("`weight` is zero for every item; give at least one a positive weight")
    w = w / w.max()  # the unit may be huge or tiny
    return w * (n / math.fsum(w))  # a sum that does not depend on the order of the items
