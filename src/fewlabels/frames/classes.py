"""Which classes there are, and which of them a text means."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fewlabels.door import UNKNOWN
from fewlabels.errors import InputError
from fewlabels.frames.roles import Roles
from fewlabels.frames.values import UNLABELED, class_names, class_text, in_order
from fewlabels.wording import listed, quoted

_BOOLEAN = {"true": "1", "false": "0", "1": "true", "0": "false"}
_IMPLIED = (("0", "1"), ("false", "true"))
"""Classes of a file whose columns name none, where all that occurs is among them."""


@dataclass(frozen=True)
class Classes:
    """The classes by their text, in order."""

    texts: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[int, ...] | tuple[str, ...]:
        """Integers when every class is written as one, else the texts."""
        return class_names(self.texts)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {text: i for i, text in enumerate(self.texts)}

    def find(self, text: str) -> int | None:
        """Index of the class; -1 where the text says that it is unknown; None if it is no class."""
        alias = same_class(text, self._index)
        if alias is not None:
            return self._index[alias]
        return UNKNOWN if text in UNLABELED else None


def same_class(text: str, classes: Collection[str]) -> str | None:
    """The class that a text means: itself, or true/false in another case or written as 1/0."""
    if text in classes:
        return text
    lower = text.lower()
    if lower not in _BOOLEAN:
        return None
    meant = (lower, _BOOLEAN[lower])
    return next((c for c in classes if c.lower() in meant), None)


def decide_classes(
    roles: Roles, explicit: tuple[Any, ...] | None, seen: Iterable[str], label: str = "label"
) -> Classes:
    """Decide on the classes from `classes=`, else the p and h columns, else what occurs.

    Parameters
    ----------
    seen
        Texts of the labels and of the hard predictions.

    Raises
    ------
    InputError
        If the columns disagree about the classes, or there is but one.
    """
    declared = {c: column for by in roles.probabilities.values() for c, column in by.items()}
    declared |= roles.histogram
    if explicit is not None:
        classes = Classes(tuple(class_text(c) for c in explicit))
        _refuse_others(declared, classes)
    elif len(declared) > 1:
        classes = Classes(in_order(declared))
    elif declared:
        classes = _with_other(*declared.items(), seen=seen)
    else:
        classes = Classes(_implied(roles, _occurring(seen)))
    _check_models(roles, classes)
    return classes


def _occurring(seen: Iterable[str]) -> set[str]:
    """Classes among the texts, true/false written in one way."""
    texts = {t for t in seen if t not in UNLABELED}
    texts = {t.lower() if t.lower() in ("true", "false") else t for t in texts}
    if texts & {"true", "false"} and texts & {"0", "1"}:
        texts = {_BOOLEAN[t] if t in ("true", "false") else t for t in texts}
    return texts


def _with_other(declared: tuple[str, str], *, seen: Iterable[str]) -> Classes:
    """Two classes, of which the columns name one."""
    known, column = declared
    others = {t for t in seen if t == known or t not in UNLABELED}
    others = {t for t in others if same_class(t, {known}) is None}
    opposite = _opposite(known)
    if opposite is not None:
        others = {opposite if same_class(t, {opposite}) else t for t in others}
    if len(others) > 1:
        raise InputError(
            f"column {quoted(column)} is of class {quoted(known)} alone, but {len(others)} other "
            f"classes occur ({listed(in_order(others))}); add a column for each"
        )
    if others:
        return Classes(in_order({known, *others}))
    # The other class comes first, so that the named one is the positive one.
    note = f"one class occurs, {known}; the other is called 'not {known}'"
    return Classes((f"not {known}", known), (note,))


def _opposite(text: str) -> str | None:
    """The other of two boolean classes, written in the same way."""
    if text in ("0", "1"):
        return "1" if text == "0" else "0"
    other = {"true": "false", "false": "true"}.get(text.lower())
    if other is None or text.islower():
        return other
    return other.upper() if text.isupper() else other.title()


def _implied(roles: Roles, occurring: set[str]) -> tuple[str, ...]:
    """Classes of a file whose columns name none."""
    widths = {model: max(len(columns), 2) for model, columns in roles.mapped.items()}
    size = max(widths.values(), default=2)
    digits = tuple(str(k) for k in range(size))
    for pair in (digits, *_IMPLIED):
        if occurring <= set(pair) and len(pair) == size:
            return pair
    if len(occurring) == 1:
        raise InputError(
            f"one class occurs ({listed(occurring)}); at least two are needed: name them, the "
            "positive one last, with --classes"
        )
    if widths and len(occurring) != size:
        model = max(widths, key=lambda m: widths[m])
        raise InputError(
            f"{len(occurring)} classes occur ({listed(in_order(occurring))}) but classifier "
            f"{quoted(model)} has {len(roles.mapped[model])} columns; give it one per class, or "
            "name the classes in the order of its columns with --classes"
        )
    return in_order(occurring)


def _refuse_others(declared: Mapping[str, str], classes: Classes) -> None:
    for name, column in declared.items():
        if name not in classes.texts:
            raise InputError(
                f"column {quoted(column)} is of class {quoted(name)}, which is not among the "
                f"classes given ({listed(classes.texts)}); add it, or drop the column"
            )


def _check_models(roles: Roles, classes: Classes) -> None:
    """Every classifier, and the annotators, must have a column per class."""
    size = len(classes.texts)
    for model, by_class in roles.probabilities.items():
        lacking = [c for c in classes.texts if c not in by_class]
        if lacking and size > 2:
            raise InputError(
                f"classifier {quoted(model)} has no column for class {listed(lacking)} "
                f"(p__{model}__{lacking[0]}); the classes are {listed(classes.texts)}: every "
                "classifier needs a column for each"
            )
    for model, columns in roles.mapped.items():
        if len(columns) != size and not (size == 2 and len(columns) == 1):
            raise InputError(
                f"classifier {quoted(model)} has {len(columns)} columns, but there are {size} "
                f"classes ({listed(classes.texts)}); give one column per class in that order"
            )
    lacking = [c for c in classes.texts if c not in roles.histogram]
    if roles.histogram and lacking:
        raise InputError(
            f"no column says how many annotators chose class {listed(lacking)} "
            f"(h__{lacking[0]}); add it, with 0 where nobody did"
        )
