"""Who behaves like whom: what draws of shared rates say of domains and of classifiers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.models.vote_data import domain_texts

_MOST_NAMES = 200
"""Beyond so many names a matrix of their similarities helps nobody."""


def summary(
    atom: Ints, domains: Sequence[str | None], models: Sequence[str], *, by_domain: bool
) -> dict[str, Any]:
    """Similarities and the most probable partition.

    Parameters
    ----------
    atom
        Places (T, D, M): classifiers in domains that have the same one share their rates.
    by_domain
        Whether domains share the rates of all their classifiers, or single classifiers do.
    """
    names = domain_texts(domains)
    out: dict[str, Any] = {"clusters": float(np.mean([len(np.unique(draw)) for draw in atom]))}
    if by_domain:
        units = atom[:, :, 0]
        out["clusters"] = float(np.mean([len(np.unique(draw)) for draw in units]))
    if 1 < len(names) <= _MOST_NAMES:
        out["domain_similarity"] = _similarity(atom).tolist()
    if not by_domain and 1 < len(models) <= _MOST_NAMES:
        out["classifier_similarity"] = _similarity(atom.transpose(0, 2, 1)).tolist()
    if by_domain:
        members = names
    else:
        units = atom.reshape(len(atom), -1)
        several = len(names) > 1
        members = [f"{d}/{m}" if several else m for d in names for m in models]
    if len(members) <= _MOST_NAMES:
        blocks, share = _most_probable(units)
        out["partition"] = [[members[u] for u in np.flatnonzero(blocks == b)]
                            for b in dict.fromkeys(blocks.tolist())]  # fmt: skip
        out["partition_probability"] = share
    return out


def _similarity(atom: Ints) -> Floats:
    """Posterior probability of sharing rates between rows of (T, rows, columns), over columns."""
    rows = atom.shape[1]
    total = np.zeros((rows, rows))
    for draw in atom:
        total += (draw[:, None, :] == draw[None, :, :]).mean(axis=2)
    total /= len(atom)
    return total


def _most_probable(units: Ints) -> tuple[Ints, float]:
    """The partition that most draws (T, units) have, and how many; of equals the most central.

    Central: the least sum of squares from the posterior similarities (Dahl 2006).
    """
    named = [tuple(_renumber(draw)) for draw in units]
    count = Counter(named)
    most = max(count.values())
    best = [partition for partition, times in count.items() if times == most]
    if len(best) > 1:
        similar = _similarity(units[:, :, None])
        loss = [float((((np.array(p)[:, None] == np.array(p)) - similar) ** 2).sum()) for p in best]
        best = [best[int(np.argmin(loss))]]
    return np.array(best[0]), most / len(units)


def _renumber(draw: Ints) -> list[int]:
    """Places numbered by first appearance, so that equal partitions look equal."""
    first: dict[int, int] = {}
    return [first.setdefault(place, len(first)) for place in draw.tolist()]
