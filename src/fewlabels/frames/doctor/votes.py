"""What may be wrong with long votes: who votes on what, how often, and with whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse

from fewlabels.frames.doctor.diagnosis import Finding
from fewlabels.kernels.arrays import Array, Ints
from fewlabels.predictions import Predictions
from fewlabels.wording import listed

_FEW_TO_SAY_THE_SAME = 5
"""With fewer votes it is no wonder that all of them are of one class."""

_IDENTIFIED = 3
"""From so many classifiers on, votes on the same items determine error rates."""

_SHOWN = 5


def vote_findings(predictions: Predictions, first: int) -> Iterator[Finding]:
    """Everything there is to say about the votes of classifiers `first`, `first + 1`, ..."""
    voted = scipy.sparse.csr_matrix(predictions.has_hard)  # (n, M), other classifiers included
    counts = predictions.vote_counts
    columns = slice(first * predictions.n_classes, None)
    yield _size(counts[:, columns], voted[:, first:])
    yield from _annotators(predictions, counts, voted, first)
    yield from _items(predictions, counts, voted)
    yield from _classes(predictions, counts[:, columns])
    yield from _domains(predictions, voted)


def overlap_findings(predictions: Predictions) -> Iterator[Finding]:
    """What hard predictions of a wide file, with nothing else, cannot tell."""
    voted = scipy.sparse.csr_matrix(predictions.has_hard)
    yield from _items(predictions, predictions.vote_counts, voted)
    yield from _domains(predictions, voted)


def _size(counts: scipy.sparse.csr_matrix, voted: scipy.sparse.csr_matrix) -> Finding:
    people = np.diff(voted.tocsc().indptr)
    items = np.diff(voted.indptr)
    without = int((items == 0).sum())
    return Finding(
        "info",
        f"{int(counts.sum()):,} by {len(people):,} annotators on {int((items > 0).sum()):,} items: "
        f"{_spread(items[items > 0])} annotators per item, {_spread(people)} items per annotator"
        + (f"; {without:,} items have none" if without else ""),
        "votes",
        "",
    )


def _spread(sizes: Ints) -> str:
    """Least, median and most."""
    low, high = int(sizes.min()), int(sizes.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,} (median {np.median(sizes):,.0f})"


def _annotators(
    predictions: Predictions,
    counts: scipy.sparse.csr_matrix,
    voted: scipy.sparse.csr_matrix,
    first: int,
) -> Iterator[Finding]:
    names = predictions.models[first:]
    others = np.asarray(voted.sum(axis=1)).ravel() - 1
    alone = (voted.T @ np.maximum(others, 0))[first:] == 0
    if alone.any():
        yield Finding(
            "warning",
            "share no item with anybody: nothing but the class prior tells how good they are",
            _named("annotator", names, alone),
            "have them vote on items that others vote on, or leave them out",
        )
    by_class = np.asarray(counts.sum(axis=0)).reshape(predictions.n_models, -1)[first:]
    same = (by_class.max(axis=1) == by_class.sum(axis=1)) & (
        by_class.sum(axis=1) >= _FEW_TO_SAY_THE_SAME
    )
    if same.any():
        yield Finding(
            "warning",
            f"always vote for the same class (on {_FEW_TO_SAY_THE_SAME} items or more)",
            _named("annotator", names, same),
            "look at their votes; a confusion matrix (dawid-skene) discounts them, one error rate "
            "does not",
        )


def _items(
    predictions: Predictions, counts: scipy.sparse.csr_matrix, voted: scipy.sparse.csr_matrix
) -> Iterator[Finding]:
    size = np.diff(voted.indptr)
    several = size > 1
    if not several.any():
        yield Finding(
            "warning", "no item has votes of two classifiers: nothing can be compared", "items",
            "check that the items of the files have the same names; have several vote on each",
        )  # fmt: skip
        return
    if size.max() < _IDENTIFIED:
        yield Finding(
            "warning", f"no item has votes of {_IDENTIFIED} classifiers", "items",
            "error rates are not determined without labels; get a third vote on some items",
        )  # fmt: skip
    k = predictions.n_classes
    # Column j K + l of the counts is class l.
    to_class = scipy.sparse.csr_matrix(np.tile(np.eye(k), (predictions.n_models, 1)))
    by_class = (counts @ to_class).toarray()
    equal = several & (by_class.max(axis=1) == by_class.sum(axis=1))
    share = equal.sum() / several.sum()
    every = bool(share == 1)
    yield Finding(
        "warning" if every else "info",
        f"all votes are equal on {'every one' if every else f'{share:.1%}'} of the "
        f"{int(several.sum()):,} items with several",
        "items",
        "nobody ever disagrees, so nothing tells the annotators apart; are they independent?"
        if every
        else "nothing; where this is near 100%, error rates rest on few items",
    )


def _classes(predictions: Predictions, counts: scipy.sparse.csr_matrix) -> Iterator[Finding]:
    total = np.asarray(counts.sum(axis=0)).reshape(-1, predictions.n_classes).sum(axis=0)
    never = [predictions.classes[k] for k in np.flatnonzero(total == 0)]
    if never:
        yield Finding(
            "warning", f"no annotator ever votes for class {listed(never)}", "votes",
            "check how the class is written; if it does not occur, leave it out of --classes",
        )  # fmt: skip


def _domains(predictions: Predictions, voted: scipy.sparse.csr_matrix) -> Iterator[Finding]:
    """Domains without votes, and those in which nobody shares an item."""
    if predictions.domain is None:
        return
    names = [str(d) for d in predictions.domain.tolist()]
    index = {name: i for i, name in enumerate(dict.fromkeys(names))}
    most = np.zeros(len(index), dtype=np.int64)
    np.maximum.at(most, [index[name] for name in names], np.diff(voted.indptr))
    for what, chosen in (
        ("have no votes", most == 0),
        ("have no item with votes of two classifiers: nothing can be compared", most == 1),
        (f"have no item with votes of {_IDENTIFIED} classifiers", most == _IDENTIFIED - 1),
    ):
        if chosen.any() and not chosen.all():
            yield Finding(
                "warning", what, _named("domain", list(index), chosen),
                "a coupled method (cbee, hcbee) lends them the error rates of other domains",
            )  # fmt: skip


def _named(what: str, names: Sequence[str], chosen: Array) -> str:
    found = [names[i] for i in np.flatnonzero(chosen).tolist()]
    if len(found) == 1:
        return f"{what} {found[0]}"
    return f"{len(found):,} {what}s ({listed(found, _SHOWN)})"
