"""Who is labeled: halves of the data, and the samplers that draw items and labels from one.

The released SSME code draws everything with pandas' `DataFrame.sample` and numpy's global
generator, seeded anew with the number of the run before each step. What pandas does there is
`RandomState(seed).choice`, so the very splits of the paper come out here without pandas.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fewlabels.errors import InputError
from fewlabels.kernels.arrays import Bools, Ints

MOST_TRIES = 1000

Random = np.random.RandomState | np.random.Generator


class Split(NamedTuple):
    """Rows of the items of a run (n_l + n_u,), and which of them are labeled."""

    rows: Ints
    labeled: Bools


def halve(n: int, run: int, seed: int = 0) -> tuple[Ints, Ints]:
    """Rows that run `run` draws from, in random order, and the others, which the truth is for.

    The first are those of pandas' `DataFrame.sample(frac=.5, random_state=run)` for seed 0.
    """
    chosen = np.random.RandomState(_released_seed(run, seed)).choice(
        n, size=round(n / 2), replace=False
    )
    others = np.ones(n, dtype=bool)
    others[chosen] = False
    return chosen, np.flatnonzero(others)


def draw(
    sampler: str, labels: Ints, rows: Ints, n_labeled: int, n_unlabeled: int, n_classes: int,
    *, run: int, seed: int, dataset: str,
) -> Split:  # fmt: skip
    """Draw the items of a run from `rows`, and say which of them are labeled.

    Parameters
    ----------
    sampler
        "released" or "uniform".
    labels
        Class of every item of the data set, (n,).

    Raises
    ------
    InputError
        If the rows are too few, or a class is too rare.
    """
    check_size(sampler, len(rows), n_labeled, n_unlabeled, n_classes)
    if sampler == "released":
        at = _released_seed(run, seed)
        return released(
            labels, rows, n_labeled, n_unlabeled, n_classes, lambda: np.random.RandomState(at)
        )
    rng = generator("uniform", seed, dataset, n_labeled, n_unlabeled, run)
    return uniform(labels, rows, n_labeled, n_unlabeled, n_classes, rng)


def items_needed(sampler: str, n_labeled: int, n_unlabeled: int) -> int:
    """How many items a half must have; the released sampler draws two more in place of two."""
    return n_labeled + n_unlabeled + (2 if sampler == "released" else 0)


def check_size(
    sampler: str, available: int, n_labeled: int, n_unlabeled: int, n_classes: int
) -> None:
    """Refuse sizes that a half of the data cannot serve.

    Raises
    ------
    InputError
        Saying how many items are needed.
    """
    needed = items_needed(sampler, n_labeled, n_unlabeled)
    sizes = f"n_labeled {n_labeled:,} with n_unlabeled {n_unlabeled:,}"
    if needed > available:
        raise InputError(
            f"{sizes} needs {needed:,} items, and a run draws from {available:,}; ask for fewer"
        )
    if n_labeled < n_classes:
        raise InputError(f"{sizes}: one label of each of {n_classes} classes needs more labels")


def released(
    labels: Ints,
    rows: Ints,
    n_labeled: int,
    n_unlabeled: int,
    n_classes: int,
    start: Callable[[], Random],
) -> Split:
    """The released code's sampler, by which labeled items hold more of a rare class than the data.

    n_l rows, then n_u of the others; the last two of these places go to one more row of class 1
    and one of class 0. Of these items one per class is labeled, and n_l - K of the rest.

    Parameters
    ----------
    labels, rows
        Class of every item of the data set (n,); rows to draw from, in their order.
    start
        Called before each step: a `RandomState` seeded anew is the released code, one generator
        all along draws from the same distribution.

    Raises
    ------
    InputError
        If a class is too rare.
    """
    left = np.ones(len(rows), dtype=bool)

    def pick(size: int, where: Bools) -> Ints:
        """Places in `rows` among those left."""
        places = np.flatnonzero(where)
        if len(places) < size:
            raise InputError("a class is rarer than needed: nothing is left of it to draw")
        picked: Ints = places[start().choice(len(places), size=size, replace=False)]
        left[picked] = False
        return picked

    drawn = np.concatenate([pick(n_labeled, left), pick(n_unlabeled, left)])
    known = labels[rows]
    one_of_each = [pick(1, left & (known == k)) for k in (1, 0)]
    pool = rows[np.concatenate([drawn[: len(drawn) - 2], *one_of_each])]
    return Split(pool, _one_label_per_class(labels[pool], n_labeled, n_classes, start()))


def _one_label_per_class(labels: Ints, n_labeled: int, n_classes: int, rng: Random) -> Bools:
    forced = []
    for k in range(n_classes):
        members = np.flatnonzero(labels == k)
        if not len(members):
            raise InputError(
                f"a class is rarer than needed: class {k} (from 0) is not among {len(labels):,} "
                "drawn items; ask for more items, or leave it out of the data"
            )
        forced.append(rng.choice(members, 1))
    labeled = np.zeros(len(labels), dtype=bool)
    labeled[np.concatenate(forced)] = True
    rest = rng.choice(np.flatnonzero(~labeled), n_labeled - n_classes, replace=False)
    labeled[rest] = True
    return labeled


def uniform(
    labels: Ints,
    rows: Ints,
    n_labeled: int,
    n_unlabeled: int,
    n_classes: int,
    rng: np.random.Generator,
) -> Split:
    """Items drawn uniformly, and labels among them, again until every class has one.

    Raises
    ------
    InputError
        If after 1000 draws a class is still without a label.
    """
    pool = rows[rng.choice(len(rows), n_labeled + n_unlabeled, replace=False)]
    known = labels[pool]
    for _ in range(MOST_TRIES):
        chosen = rng.choice(len(pool), n_labeled, replace=False)
        absent = np.flatnonzero(np.bincount(known[chosen], minlength=n_classes) == 0)
        if not len(absent):
            labeled = np.zeros(len(pool), dtype=bool)
            labeled[chosen] = True
            return Split(pool, labeled)
    raise InputError(
        f"a class is rarer than needed: {n_labeled:,} labels drawn {MOST_TRIES:,} times never held "
        f"every class (missing at last: {absent[0]}, from 0); ask for more labels"
    )


def _released_seed(run: int, seed: int) -> int:
    """The released code seeds with the run's number; another `seed` gives other splits."""
    return run if seed == 0 else seed_of("released", seed, run) % 2**32


def seed_of(*parts: str | int) -> int:
    """A seed below 2^63: the same for equal parts on every machine and in every process."""
    text = json.dumps(parts).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1


def generator(*parts: str | int) -> np.random.Generator:
    """A generator of its own for these parts."""
    return np.random.default_rng(np.random.SeedSequence(seed_of(*parts)))
