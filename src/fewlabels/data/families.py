"""Columns of one classifier: probabilities of its classes, by their names and their sums."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from fewlabels.checks.class_words import folded
from fewlabels.data.profiles import (
    Profile,
    class_of_name,
    differences,
    letters_apart,
    names_percentages,
    tokens,
    without_role,
)
from fewlabels.kernels.arrays import Floats, Ints

MODEL = "model"
"""The name of a classifier whose columns name none."""

LEAST_TOGETHER = 2


def apart_in(columns: Sequence[str]) -> list[tuple[str, ...]]:
    """The classes that the names of columns may say."""
    return [of for of in (differences(columns), letters_apart(columns)) if of is not None]


def largest(columns: Sequence[Profile]) -> Ints:
    """The place of the likeliest class in each row; of one column whether it is above a half."""
    p = np.stack([q.numbers for q in columns if q.numbers is not None])
    p = 1 / p if are_odds(list(p)) else p
    place = p.argmax(0) if len(p) > 1 else (p[0] > 0.5).astype(np.int64)
    return np.where(np.isnan(p).any(0), -1, place)


def are_odds(columns: Sequence[Floats]) -> bool:
    """Whether numbers are decimal odds of all classes: 1/x sums to 1 and a bookmaker's margin."""
    x = np.stack(columns)
    x = x[:, ~np.isnan(x).any(0)]
    if len(x) < LEAST_TOGETHER or x.shape[1] < LEAST_TOGETHER or x.min() < 1:
        return False
    shares = 1 / x
    total = shares.sum(0)
    if total.std() > 0.5 * shares.std(1).max():
        return False  # what is likelier for one is not less likely for another: prices
    return bool(
        (total > 0.95).all() and (total < _MARGIN).all() and (x % 1 > 0).any(0).mean() > 0.5
    )


_MARGIN = 1.25


def named_families(columns: Sequence[Profile], classes: Sequence[str]) -> dict[str, list[Profile]]:
    """Columns whose names differ in the class alone and whose rows sum to one number, by stem."""
    stems: dict[tuple[int, str], list[Profile]] = {}
    names = {p.name for p in columns}
    for p in columns:
        words = tokens(p.name)
        part = class_of_name(p.name, classes) if classes else None
        places_of = [len(words) - 1, *range(len(words) - 1)] if len(words) > 1 else []
        keys = ["_".join(words[:at] + words[at + 1 :]) for at in places_of]
        if part is not None:
            stems.setdefault((0, part.rest), []).append(p)
        for i, key in enumerate(dict.fromkeys(keys), 1):
            stems.setdefault((i, key), []).append(p)
        # The letter of a class behind the name: B365H, B365D, B365A.
        ends = [p.name.removesuffix(c) for c in classes if part is None and p.name.endswith(c)]
        for stem in (stem for stem in ends if {stem + c for c in classes} <= names):
            stems.setdefault((len(words) + 1, stem), []).append(p)
    found: dict[str, list[Profile]] = {}
    used: set[str] = set()
    ranked = sorted(stems.items(), key=lambda one: one[0][0])
    # Columns that sum to 1 are whole; of the others a class may be missing that no label has.
    for at_once, (of, members) in itertools.product((True, False), ranked):
        left = [p for p in members if p.name not in used]
        if len(left) > 1 and _is_family(left, classes) and (sums(left) or not at_once):
            found[of[1]] = left
            used |= {p.name for p in left}
    whole = [p for p in columns if p.name not in used and p.in_unit and not p.whole]
    for p, q in _perhaps_sums(whole):
        if not {p.name, q.name} & used and sums([p, q]):
            apart = letters_apart([p.name, q.name]) or ()
            numbered = all(text.isdigit() for text in apart) and len(tokens(q.name)) == 1
            found[MODEL if apart and numbered else without_role(q.name)] = [p, q]
            used |= {p.name, q.name}
    whole = [p for p in whole if p.name not in used]
    named = {folded(p.name) for p in whole}
    bare = {folded(c) for c in classes} <= named if classes else len(whole) > 2
    if bare and not found and len(whole) > 1 and sums(whole):
        found[MODEL] = whole
    return found


def _perhaps_sums(shares: Sequence[Profile]) -> Iterator[tuple[Profile, Profile]]:
    """Pairs whose first rows sum to 1, or lack one."""
    first = np.array([p.numbers[:3] for p in shares if p.numbers is not None])
    for i, p in enumerate(shares[:-1]):
        near = ~(np.abs(first[i + 1 :] + first[i] - 1) > 0.02).any(axis=1)
        yield from ((p, shares[i + 1 + j]) for j in np.flatnonzero(near).tolist())


def _is_family(members: Sequence[Profile], classes: Sequence[str]) -> bool:
    """Whether columns are those of one classifier: their rows sum to 1, or name all classes."""
    if sums(members):
        return members[0].in_unit or len(members) >= len(classes)
    named = {part.name for p in members if (part := class_of_name(p.name, classes))}
    several = len(classes) > 1 and named == set(classes) and len(members) == len(classes)
    # Probabilities that do not sum to 1, or logits: taken for what the names say, and refused
    # with what is wrong; neither shares nor logits are amounts, such as a price.
    return several and not any(
        p.whole or (p.known.min() >= 0 and p.known.max() > 1
                    and not (p.predicts or names_percentages(p.name)))
        for p in members
    )  # fmt: skip


def sums(members: Sequence[Profile]) -> bool:
    """Whether the rows of some columns sum to 1, or to 100, but for rounding; or are odds."""
    total = np.sum([p.numbers for p in members if p.numbers is not None], axis=0)
    known = total[~np.isnan(total)]
    if len(known) < LEAST_TOGETHER or min(float(p.known.min()) for p in members) < 0:
        return False
    if are_odds([p.numbers for p in members if p.numbers is not None]):
        return True
    # Of two digits each is off by .005 at most, and many together by less than the sum of that.
    slack = 0.005 * min(len(members), 2 * len(members) ** 0.5) + 1e-6
    return any((np.abs(known - whole) <= slack * whole).all() for whole in (1.0, 100.0))


def like_shares(p: Profile) -> bool:
    """Whether numbers may be probabilities, or percentages by their names."""
    percent = names_percentages(p.name) and p.known.min() >= 0 and p.known.max() <= 100
    return percent or (p.in_unit and (not p.whole or p.of("probability") > 0))
