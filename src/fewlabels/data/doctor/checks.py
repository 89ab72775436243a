"""The checks: what is looked at, what makes it a finding, and the sentence.

Every check takes the `Evidence` and yields findings; `CHECKS` are all of them in the order in which
findings of equal severity are shown. They are the same for data in memory and in files of any size:
counts are of all rows, and what compares items with each other looks at the rows that the evidence
holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from fewlabels.data.doctor.diagnosis import Finding
from fewlabels.data.doctor.facts import Facts
from fewlabels.errors import listed
from fewlabels.kernels.arrays import Array, Bools, Floats, Ints, UInts
from fewlabels.kernels.counter_based import hash_columns
from fewlabels.kernels.ranking import auc, dense_codes
from fewlabels.predictions import Predictions

_NEAR = 0.999
"""Correlation of two classifiers' scores from which they are perhaps one."""

_CHANCE = (0.45, 0.55)
_INVERTED = 0.3
_LABELS_PER_CLASS = 10
_SATURATED = 0.01

_FEW = 20
_MOST_GROUPS = 50
_Z = 4.0
_MANY_DUPLICATES = 0.05
_MANY_CLASSES = 50

_FEW_TO_SAY_THE_SAME = 5
"""With fewer votes it is no wonder that all of them are of one class."""

_IDENTIFIED = 3
"""From so many classifiers on, votes on the same items determine error rates."""

_SHOWN = 5

_MOST_NUMBERS = 200_000
"""Rows times classes that comparisons look at; evenly spread over the file."""


class Votes:
    """Who votes on what: `counts` (n, M K) of votes, `voted` (n, M) whether there is any."""

    def __init__(self, predictions: Predictions) -> None:
        self.counts = predictions.vote_counts
        self.voted = scipy.sparse.csr_matrix(predictions.has_hard)

    @cached_property
    def per_item(self) -> Ints:
        """Classifiers that vote on each item, (n,)."""
        size: Ints = np.diff(self.voted.indptr).astype(np.int64)
        return size


@dataclass(frozen=True)
class Evidence:
    """What the checks look at.

    `facts` are of all rows. `some` are rows to compare with each other, drawn without regard to
    what they say, and `known` rows with a label or annotators' counts before others; in memory both
    are all rows. `repeated` rows, of all, agree with an earlier one in every prediction and the
    label, `about` so many where only some rows were compared; None where nobody counted. Many
    `groups` may have been cut, as their sizes in words say. From classifier `annotators` on, those
    of `some` vote on few items each, and are looked at together; `known` and `facts` leave them
    out.
    """

    facts: Facts
    some: Predictions
    known: Predictions
    repeated: int | None
    groups: Mapping[str, tuple[int, str]]
    about: bool = False
    annotators: int | None = None

    @cached_property
    def scores(self) -> Floats:
        """`class_scores` of the known rows."""
        return class_scores(self.known)

    @cached_property
    def votes(self) -> Votes:
        """The votes of all classifiers on some rows."""
        return Votes(self.some)

    @property
    def by_votes(self) -> bool:
        """Whether hard predictions are all there is, or annotators vote."""
        seen = self.facts.classifiers
        return self.annotators is not None or not (seen.rows.any() or seen.scored.any())


def findings(evidence: Evidence) -> Iterator[Finding]:
    """What all checks find."""
    for check in CHECKS:
        yield from check(evidence)


def _named(what: str, names: Sequence[str], chosen: Array) -> str:
    """Those that are chosen: the only one by its name, else how many and the first ones."""
    some = [names[i] for i in np.flatnonzero(chosen).tolist()]
    if len(some) == 1:
        return f"{what} {some[0]}"
    return f"{len(some):,} {what}s ({listed(some, _SHOWN)})"


def _plural(what: str, names: Sequence[str], limit: int = 8) -> str:
    return f"{what}{'s' if len(names) > 1 else ''} {listed(names, limit)}"


# Votes ------------------------------------------------------------------------------------------


def _votes(evidence: Evidence) -> Iterator[Finding]:
    """How many votes there are, by whom."""
    if evidence.annotators is None:
        return
    predictions, voted = evidence.some, evidence.votes.voted[:, evidence.annotators :]
    counts = evidence.votes.counts[:, evidence.annotators * predictions.n_classes :]
    people, items = np.diff(voted.tocsc().indptr), np.diff(voted.indptr)
    without = int((items == 0).sum())
    yield Finding(
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


def _annotators(evidence: Evidence) -> Iterator[Finding]:
    """Annotators who share no item, and those who always say the same."""
    first = evidence.annotators
    if first is None:
        return
    predictions, votes = evidence.some, evidence.votes
    names = predictions.models[first:]
    alone = (votes.voted.T @ np.maximum(votes.per_item - 1, 0))[first:] == 0
    if alone.any():
        yield Finding(
            "warning",
            "share no item with anybody: nothing but the class prior tells how good they are",
            _named("annotator", names, alone),
            "have them vote on items that others vote on, or leave them out",
        )
    by_class = np.asarray(votes.counts.sum(axis=0)).reshape(predictions.n_models, -1)[first:]
    total = by_class.sum(axis=1)
    same = (by_class.max(axis=1) == total) & (total >= _FEW_TO_SAY_THE_SAME)
    if same.any():
        yield Finding(
            "warning",
            f"always vote for the same class (on {_FEW_TO_SAY_THE_SAME} items or more)",
            _named("annotator", names, same),
            "look at their votes; a confusion matrix (dawid-skene) discounts them, one error rate "
            "does not",
        )


def _overlap(evidence: Evidence) -> Iterator[Finding]:
    """Items with too few votes to tell classifiers apart, and items on which all agree."""
    if not evidence.by_votes:
        return
    size = evidence.votes.per_item
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
    # Column j K + l of the counts is class l.
    to_class = scipy.sparse.csr_matrix(
        np.tile(np.eye(evidence.some.n_classes), (evidence.some.n_models, 1))
    )
    by_class = (evidence.votes.counts @ to_class).toarray()
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


def _voted_classes(evidence: Evidence) -> Iterator[Finding]:
    """Classes that no annotator ever votes for."""
    if evidence.annotators is None:
        return
    k = evidence.some.n_classes
    total = np.asarray(evidence.votes.counts.sum(axis=0)).reshape(-1, k)[evidence.annotators :]
    never = [evidence.some.classes[c] for c in np.flatnonzero(total.sum(axis=0) == 0)]
    if never:
        yield Finding(
            "warning", f"no annotator ever votes for class {listed(never)}", "votes",
            "check how the class is written; if it does not occur, leave it out of --classes",
        )  # fmt: skip


def _voted_domains(evidence: Evidence) -> Iterator[Finding]:
    """Domains without votes, and those in which nobody shares an item."""
    if not evidence.by_votes or evidence.some.domain is None:
        return
    names = [str(d) for d in evidence.some.domain.tolist()]
    index = {name: i for i, name in enumerate(dict.fromkeys(names))}
    most = np.zeros(len(index), dtype=np.int64)
    np.maximum.at(most, [index[name] for name in names], evidence.votes.per_item)
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


# Classifiers ------------------------------------------------------------------------------------


def _constant(evidence: Evidence) -> Iterator[Finding]:
    """Classifiers without two different values."""
    for j in np.flatnonzero(evidence.facts.classifiers.constant).tolist():
        yield Finding(
            "warning", "says the same for every item", f"classifier {_model(evidence, j)}",
            "leave it out; check that the right column was read",
        )  # fmt: skip


def _model(evidence: Evidence, j: int) -> str:
    return listed([evidence.known.models[j]])


def _duplicates(evidence: Evidence) -> Iterator[Finding]:
    """Classifiers that are one and the same, or nearly."""
    names, seen = evidence.known.models, evidence.facts.classifiers
    if not names:
        return
    identical = seen.identical.copy()
    identical[seen.constant] = identical[:, seen.constant] = False
    every = evidence.scores
    part = every[sample_rows(*every.shape[::2])]
    given = np.maximum((~np.isnan(part)).sum(axis=0), 1)
    centered = part - np.nansum(part, axis=0) / given
    flat = centered.transpose(0, 2, 1).reshape(-1, len(names))
    near = np.nan_to_num(correlations(flat)) > _NEAR
    near[identical] = False
    for linked, what, mend in (
        (
            identical,
            "are identical on every item",
            "keep one of them: copies count as independent evidence and make intervals too short",
        ),
        (
            near & ~np.eye(len(near), dtype=bool),
            f"are nearly identical (their scores correlate above {_NEAR})",
            "keep one of them, unless they were trained apart",
        ),
    ):
        for group in _connected(linked):
            where = _plural("classifier", [names[j] for j in group], 20)
            yield Finding("warning", what, where, mend)


def _connected(linked: Bools) -> Iterator[list[int]]:
    """Sets of two or more that are linked with each other, directly or through others."""
    number, of = scipy.sparse.csgraph.connected_components(linked, directed=False)
    for c in range(number):
        group = np.flatnonzero(of == c).tolist()
        if len(group) > 1:
            yield group


def _orders(evidence: Evidence) -> Iterator[Finding]:
    """Classifiers whose order of the items is random or reversed."""
    predictions = evidence.known
    count = np.bincount(predictions.labels[predictions.labeled], minlength=predictions.n_classes)
    if not predictions.n_models:
        return
    if count.min() >= _LABELS_PER_CLASS:
        known = predictions.labeled
        areas = _areas_by_labels(evidence.scores[known], predictions.labels[known])
        against = f"{int(count.sum()):,} labels"
        mend_inverted = "turn it around (swap its class columns, or 1 - p), or check the labels"
        doubt = ""
    elif predictions.n_models > 1:
        areas = _areas_by_others(evidence.scores[sample_rows(*evidence.scores.shape[::2])])
        against = "the mean rank of the others; no label was used"
        mend_inverted = "check the order of its class columns; if the others are at fault, theirs"
        doubt = " as seen by the others"
    else:
        return
    for j, area in enumerate(areas):
        if evidence.facts.classifiers.constant[j] or np.isnan(area):
            continue
        shown, where = f"(AUC {area:.2f} against {against})", f"classifier {_model(evidence, j)}"
        if _CHANCE[0] <= area <= _CHANCE[1]:
            yield Finding(
                "warning", f"orders the items no better than chance{doubt} {shown}", where,
                "check that its rows are those of the file; if so, leave it out",
            )  # fmt: skip
        elif area < _INVERTED:
            what = f"orders the items the wrong way round{doubt} {shown}"
            yield Finding("warning", what, where, mend_inverted)


def _areas_by_labels(every: Floats, labels: np.ndarray) -> list[float]:
    """AUC of each classifier, the mean over classes (one against the rest) if more than two."""
    width = every.shape[2]
    classes = [1] if width == 1 else range(width)
    return [
        float(
            np.mean([order_auc(every[:, j, c % width], labels == c, labels != c) for c in classes])
        )
        for j in range(every.shape[1])
    ]


def _areas_by_others(every: Floats) -> list[float]:
    """AUC of each classifier between the top and the bottom quarter by the others' mean rank."""
    n, m, width = every.shape
    if n < 4 * _LABELS_PER_CLASS:
        return [float("nan")] * m
    areas = np.full((m, width), np.nan)
    for c in range(width):
        ranks = np.stack([rank_shares(every[:, j, c]) for j in range(m)], axis=1)
        given = (~np.isnan(ranks)).sum(axis=1)
        total = np.nansum(ranks, axis=1)
        for j in range(m):
            present = ~np.isnan(ranks[:, j])
            with np.errstate(invalid="ignore", divide="ignore"):
                others = (total - np.nan_to_num(ranks[:, j])) / (given - present)
            if np.isnan(others).all():
                continue
            low, high = np.nanquantile(others, [0.25, 0.75])
            if low < high:
                areas[j, c] = order_auc(every[:, j, c], others >= high, others <= low)
    return [float(np.mean(row)) for row in areas]


def _one_class(evidence: Evidence) -> Iterator[Finding]:
    """Classifiers whose hard predictions are all of one class."""
    # Scores have no threshold, so there is no hard prediction of a classifier with nothing else.
    seen = evidence.facts.classifiers
    one = (seen.hard.sum(axis=1) > 1) & ((seen.hard > 0).sum(axis=1) == 1)
    for j in np.flatnonzero(one & ~seen.constant).tolist():
        yield Finding(
            "warning",
            f"predicts class {evidence.known.classes[seen.hard[j].argmax()]} for every item",
            f"classifier {_model(evidence, j)}",
            "its accuracy is the share of that class; judge it by roc_auc",
        )


def _saturated(evidence: Evidence) -> Iterator[Finding]:
    """Probabilities of 0 and 1, the classifier with the most of them first."""
    seen, names = evidence.facts.classifiers, evidence.known.models
    share = seen.ends / np.maximum(seen.numbers, 1)
    many = np.flatnonzero(share > _SATURATED)
    worst = many[np.argsort(-share[many], kind="stable")].tolist()
    if worst:
        yield Finding(
            "warning",
            f"give{'s' * (len(worst) == 1)} probabilities of exactly 0 or 1",
            _plural("classifier", [f"{names[j]} ({share[j]:.0%})" for j in worst], 20),
            "logarithms clip them at 1e-6; calibrate the classifier, and store more digits",
        )


def _missing(evidence: Evidence) -> Iterator[Finding]:
    """Classifiers that leave items out."""
    names, lacking = evidence.known.models, evidence.facts.classifiers.lacking
    gaps = np.flatnonzero(lacking > 0).tolist()
    if gaps:
        yield Finding(
            "info",
            f"{'has' if len(gaps) == 1 else 'have'} no prediction for some items",
            _plural("classifier", [f"{names[j]} ({lacking[j]:.1%})" for j in gaps], 20),
            "nothing, if meant so: an item is judged by the classifiers that have it",
        )


# Labels -----------------------------------------------------------------------------------------


def _label_counts(evidence: Evidence) -> Iterator[Finding]:
    """How many labels there are, of which classes."""
    labels = evidence.facts.labels
    if not labels.n_labeled:
        if evidence.known.histogram is None:
            yield Finding(
                "info", "none is known", "labels",
                "label items drawn at random, or say where the labels are with --label",
            )  # fmt: skip
        return
    if labels.n_labeled < _FEW:
        yield Finding(
            "warning", f"few labels: {labels.n_labeled}", "labels",
            f"label at least {_FEW}, drawn at random; intervals are wide until then",
        )  # fmt: skip
    absent = [evidence.known.classes[c] for c in np.flatnonzero(labels.count == 0)]
    if absent:
        yield Finding(
            "warning", f"no labeled item is of class {listed(absent)}", "labels",
            "label items that the classifiers think are of it; fine if there are none",
        )  # fmt: skip


def _not_random(evidence: Evidence) -> Iterator[Finding]:
    """Signs that the labeled items were not drawn at random."""
    labels = evidence.facts.labels
    n, labeled = labels.n_items, labels.n_labeled
    if labeled == n or labeled < 2:
        return
    if labels.last - labels.first == labeled - 1 and (labels.first == 0 or labels.last == n - 1):
        end = "first" if labels.first == 0 else "last"
        yield Finding(
            "info", f"the labeled items are the {end} {labeled:,} rows", "labels",
            "fine if the rows were shuffled before; else label rows drawn at random",
        )  # fmt: skip
    low, high = evidence.facts.weights
    if not evidence.known.n_models or low < high:
        return
    model, z = _largest_gap(evidence)
    if abs(z) > _Z:
        side = "higher" if z > 0 else "lower"
        yield Finding(
            "warning",
            f"{model} scores labeled items {side} than the others (z = {z:.1f}): they are perhaps "
            "not a random sample",
            "labels",
            "draw the items to label at random, or give their sampling weights (--weight)",
        )


def _largest_gap(evidence: Evidence) -> tuple[str, float]:
    """Classifier, and the z of its mean score on labeled against unlabeled items."""
    every, known = evidence.scores, evidence.known.labeled
    size, mean = [], []
    for part in (every[known], every[~known]):
        size.append(np.maximum((~np.isnan(part)).sum(axis=0), 1))
        mean.append(np.nansum(part, axis=0) / size[-1])
    # The variance of all items: that of a few labeled ones may be zero by chance.
    middle = np.nansum(every, axis=0) / (size[0] + size[1])
    variance = np.nansum((every - middle) ** 2, axis=0) / (size[0] + size[1])
    spread = np.sqrt(variance * (1 / size[0] + 1 / size[1]))
    # A share of few expected hits (a rare class of a hard prediction) is far from normal.
    usable = (spread > 1e-9) & (size[0] * np.minimum(middle, 1 - middle) >= 2)
    z = np.where(usable, mean[0] - mean[1], 0.0) / np.where(usable, spread, 1.0)
    j, c = np.unravel_index(np.argmax(np.abs(z)), z.shape)
    return evidence.known.models[int(j)], float(z[j, c])


def _ordered(evidence: Evidence) -> Iterator[Finding]:
    """Labels that hardly ever change from row to row."""
    labels = evidence.facts.labels
    share = labels.count / max(labels.n_labeled, 1)
    expected = (labels.n_labeled - 1) * (1 - float((share**2).sum()))
    if expected >= 10 and labels.changes < expected / 5:
        yield Finding(
            "info",
            f"the rows are ordered by label: it changes {labels.changes:,} times where "
            f"{expected:,.0f} are expected",
            "labels",
            "shuffle the rows before you take a part of them",
        )


# Classes, rows, groups --------------------------------------------------------------------------


def _classes(evidence: Evidence) -> Iterator[Finding]:
    """Classes that are perhaps one, and so many that the cells are perhaps no classes."""
    written: dict[str, list[str]] = {}
    for name in map(str, evidence.some.classes):
        written.setdefault(" ".join(name.casefold().split()), []).append(name)
    for same in written.values():
        if len(same) > 1:
            yield Finding(
                "warning", f"{listed(same)} are different classes", "classes",
                "if they are one, write it the same way everywhere",
            )  # fmt: skip
    if evidence.some.n_classes > _MANY_CLASSES and evidence.some.votes is not None:
        yield Finding(
            "warning", f"{evidence.some.n_classes:,} classes", "classes",
            "if hard predictions hold numbers that are no classes, name their column s__<model>",
        )  # fmt: skip


def _repeated(evidence: Evidence) -> Iterator[Finding]:
    """Rows that occur more than once."""
    if evidence.repeated:
        n = evidence.facts.labels.n_items
        share = evidence.repeated / n
        yield Finding(
            "warning" if share > _MANY_DUPLICATES else "info",
            f"{'about ' * evidence.about}{evidence.repeated:,} of {n:,} rows ({share:.1%}) repeat "
            "an earlier row in every prediction and the label",
            "rows",
            "drop them if they are the same items; fine if different items got the same scores",
        )


def _groups(evidence: Evidence) -> Iterator[Finding]:
    """Groups that `--by` can do nothing with, from the number of their values."""
    sizes = evidence.groups
    single = [name for name, (count, _) in sizes.items() if count == 1]
    many = [f"{name} ({words})" for name, (count, words) in sizes.items() if count > _MOST_GROUPS]
    if single:
        yield Finding(
            "info", "one value only", _plural("group", single), "nothing; it cannot split the items"
        )
    if many:
        yield Finding(
            "info", f"more values than --by takes ({_MOST_GROUPS})", _plural("group", many),
            "nothing, if it is an identifier or a feature; else merge its values",
        )  # fmt: skip


CHECKS: tuple[Callable[[Evidence], Iterator[Finding]], ...] = (
    *(_votes, _annotators, _overlap, _voted_classes, _voted_domains),
    *(_constant, _duplicates, _orders, _one_class, _saturated, _missing),
    *(_label_counts, _not_random, _ordered),
    *(_classes, _repeated, _groups),
)


# What classifiers say as columns of numbers that can be compared with each other ----------------


def class_scores(predictions: Predictions) -> Floats:
    """Score of each class by each classifier, shape (n, M, C); NaN where it gives none.

    Two classes need one score, that of the positive class (C = 1): its probability, else the raw
    score, else the vote. More classes have C = K, and a vote counts as 0 and 1.
    """
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


def sample_rows(n: int, classes: int) -> Array:
    """Rows to look at where all of them would take long, evenly spread."""
    most = max(_MOST_NUMBERS // classes, 1000)
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.int64)


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


def rank_shares(values: Floats) -> Floats:
    """Mid-rank of each value among those present, in (0, 1), shape (n,); NaN stays NaN."""
    out = np.full(len(values), np.nan)
    present = ~np.isnan(values)
    if present.any():
        codes, size = dense_codes(values[present])
        count = np.bincount(codes, minlength=size)
        out[present] = ((np.cumsum(count) - 0.5 * count) / present.sum())[codes]
    return out


def order_auc(values: Floats, positive: Array, negative: Array) -> float:
    """AUC of the scores, shape (n,), on the items with a score; NaN where a class has none."""
    present = ~np.isnan(values)
    own, other = positive & present, negative & present
    if not (own.any() and other.any()):
        return float("nan")
    codes, size = dense_codes(values[present])
    weights: list[Floats] = [
        np.bincount(codes, chosen[present], minlength=size).astype(np.float64)[:, None]
        for chosen in (own, other)
    ]
    return float(auc(weights[0], weights[1])[0])


def row_hashes(predictions: Predictions) -> UInts | None:
    """A hash of every prediction and the label of each row, (n,); None where rows repeat anyway."""
    if predictions.probabilities is None and predictions.scores is None:
        return None  # Votes repeat by nature.
    columns = [predictions.labels]
    for block in (predictions.probabilities, predictions.votes, predictions.scores):
        if block is not None:
            columns.extend(block.reshape(len(block), -1).T)
    return hash_columns(columns, predictions.n_items)
