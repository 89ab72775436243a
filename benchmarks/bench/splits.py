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

from fewlabels import InputError

MOST_TRIES = 1000
SAMPLERS = ("released", "uniform")

Random = np.random.RandomState | np.random.Generator
Array = np.ndarray


class Split(NamedTuple):
    """Rows of the items of a run (n_l + n_u,), and which of them are labeled."""

    rows: Array
    labeled: Array


def halve(n: int, run: int, seed: int = 0) -> tuple[Array, Array]:
    """Rows that run `run` draws from, in random order, and the others, which the truth is for.

    The first are those of pandas' `DataFrame.sample(frac=.5, random_state=run)` for seed 0.
    """
    rng = np.random.RandomState(_released_seed(run, seed))
    chosen = rng.choice(n, size=round(n / 2), replace=False)
    return chosen, np.setdiff1d(np.arange(n), chosen)


def draw(
    sampler: str, labels: Array, rows: Array, n_labeled: int, n_unlabeled: int, n_classes: int,
    *, run: int, seed: int, dataset: str,
) -> Split:  # fmt: skip
    """Draw the items of a run from `rows`, and say which of them are labeled.

    `labels` (n,) are the classes of all items of the data set.
    """
    needed = items_needed(sampler, n_labeled, n_unlabeled)
    if needed > len(rows) or n_labeled < n_classes:
        raise InputError(
            f"n_labeled {n_labeled:,} with n_unlabeled {n_unlabeled:,} needs {needed:,} items, of "
            f"{len(rows):,}, and a label of each of {n_classes} classes"
        )
    sizes = (n_labeled, n_unlabeled, n_classes)
    if sampler == "released":
        at = _released_seed(run, seed)
        return released(labels, rows, *sizes, lambda: np.random.RandomState(at))
    rng = generator("uniform", seed, dataset, n_labeled, n_unlabeled, run)
    return uniform(labels, rows, *sizes, rng)


def items_needed(sampler: str, n_labeled: int, n_unlabeled: int) -> int:
    """How many items a half must have; the released sampler draws two more in place of two."""
    return n_labeled + n_unlabeled + (2 if sampler == "released" else 0)


def released(
    labels: Array, rows: Array, n_labeled: int, n_unlabeled: int, n_classes: int,
    start: Callable[[], Random],
) -> Split:  # fmt: skip
    """The released code's sampler, by which labeled items hold more of a rare class than the data.

    n_l rows, then n_u of the others; the last two of these places go to one more row of class 1
    and one of class 0. Of these items one per class is labeled, and n_l - K of the rest.

    `start` is called before each step: a `RandomState` seeded anew is the released code, one
    generator all along draws from the same distribution.
    """
    left = np.ones(len(rows), dtype=bool)

    def pick(size: int, where: Array) -> Array:
        places = np.flatnonzero(where)
        if len(places) < size:
            raise InputError("a class is rarer than needed: nothing is left of it to draw")
        picked = places[start().choice(len(places), size=size, replace=False)]
        left[picked] = False
        return picked

    drawn = np.concatenate([pick(n_labeled, left), pick(n_unlabeled, left)])
    classes = labels[rows]
    one_of_each = [pick(1, left & (classes == k)) for k in (1, 0)]
    pool = rows[np.concatenate([drawn[: len(drawn) - 2], *one_of_each])]
    rng, labeled = start(), np.zeros(len(pool), dtype=bool)
    forced = []
    for k in range(n_classes):
        members = np.flatnonzero(labels[pool] == k)
        if not len(members):
            raise InputError(
                f"a class is rarer than needed: class {k} (from 0) is not among {len(pool):,} "
                "drawn items; ask for more items, or leave it out of the data"
            )
        forced.append(rng.choice(members, 1))
    labeled[np.concatenate(forced)] = True
    labeled[rng.choice(np.flatnonzero(~labeled), n_labeled - n_classes, replace=False)] = True
    return Split(pool, labeled)


def uniform(
    labels: Array, rows: Array, n_labeled: int, n_unlabeled: int, n_classes: int,
    rng: np.random.Generator,
) -> Split:  # fmt: skip
    """Items drawn uniformly, and labels among them, again until every class has one."""
    pool = rows[rng.choice(len(rows), n_labeled + n_unlabeled, replace=False)]
    classes = labels[pool]
    for _ in range(MOST_TRIES):
        chosen = rng.choice(len(pool), n_labeled, replace=False)
        absent = np.flatnonzero(np.bincount(classes[chosen], minlength=n_classes) == 0)
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
