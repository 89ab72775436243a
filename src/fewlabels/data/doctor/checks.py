"""The checks: what each looks at, when it is a finding, and the sentence.

A check takes the `Evidence` and yields findings; `CHECKS` lists them in the order in which findings
of equal severity are shown. They are the same in memory and for files of any size: counts are of
all rows, and items are compared with each other among the rows in the evidence. Columns that may
hold something else are checked apart, as a file may have no others.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from fewlabels.checks.class_words import NO_LABEL, folded
from fewlabels.data.doctor.facts import (
    Evidence,
    Finding,
    Severity,
    correlations,
    order_auc,
    rank_shares,
)
from fewlabels.data.families import named_families
from fewlabels.data.profiles import Profile, names_role
from fewlabels.data.table import Table
from fewlabels.errors import InputError, listed, quoted
from fewlabels.kernels.arrays import Array, Floats, Ints

_NEAR = 0.999
"""Correlation of two classifiers' scores from which they may be the same."""

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
"""With fewer votes, it is no surprise that all are of one class."""

_COMPARED, _TOGETHER, _SAME, _FURTHER = 200, 50, 0.95, 0.1
"""Limits for annotators that copy: at most so many, the busiest, are compared; votes on the same
items that this takes; how often copies agree, and how much more often than with others."""

_IDENTIFIED = 3
"""From so many classifiers on, votes on the same items determine error rates."""

_SHOWN = 5


def findings(evidence: Evidence) -> Iterator[Finding]:
    """What all checks find."""
    return itertools.chain.from_iterable(each(evidence) for each in CHECKS)


def _named(what: str, names: Sequence[str], chosen: Array) -> str:
    """The chosen ones: the only one by its name, else their number and the first names."""
    some = [names[i] for i in np.flatnonzero(chosen).tolist()]
    if len(some) == 1:
        return f"{what} {some[0]}"
    return f"{len(some):,} {what}s ({listed(some, _SHOWN)})"


def _plural(what: str, names: Sequence[str], limit: int = 8) -> str:
    return f"{what}{'s' if len(names) > 1 else ''} {listed(names, limit)}"


# Votes ------------------------------------------------------------------------------------------


def votes(evidence: Evidence) -> Iterator[Finding]:
    """How many votes there are, and by how many annotators."""
    if evidence.annotators is None:
        return
    voted = evidence.voted[:, evidence.annotators :]
    people, items = np.diff(voted.tocsc().indptr), np.diff(voted.indptr)
    without = int((items == 0).sum())

    def spread(sizes: Ints) -> str:
        low, high = int(sizes.min()), int(sizes.max())
        return (
            f"{low:,}" if low == high else f"{low:,} to {high:,} (median {np.median(sizes):,.0f})"
        )

    yield Finding(
        "info",
        f"{int(evidence.votes_by_class.sum()):,} by {len(people):,} annotators on "
        f"{int((items > 0).sum()):,} items: {spread(items[items > 0])} annotators per item, "
        f"{spread(people)} items per annotator"
        + (f"; {without:,} items have none" if without else ""),
        "votes",
        "",
    )


def annotators(evidence: Evidence) -> Iterator[Finding]:
    """Annotators who share no item with others, and those who always give the same answer."""
    if evidence.annotators is None:
        return
    names = evidence.some.models[evidence.annotators :]
    shared = evidence.voted.T @ np.maximum(evidence.votes_per_item - 1, 0)
    alone = shared[evidence.annotators :] == 0
    if alone.any():
        yield Finding(
            "warning",
            "share no item with anybody: nothing but the class prior tells how good they are",
            _named("annotator", names, alone),
            "have them vote on items that others vote on, or leave them out",
        )
    by_class = evidence.votes_by_class
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


def copied_votes(evidence: Evidence) -> Iterator[Finding]:
    """Annotators who nearly always say the same as each other, and much less often as others."""
    if evidence.annotators is None:
        return
    counts, k = evidence.some.vote_counts, evidence.some.n_classes
    busy = np.bincount(counts.indices // k, minlength=evidence.some.n_models)
    busy[: evidence.annotators] = 0
    who = np.sort(np.argsort(-busy, kind="stable")[:_COMPARED])
    who = who[busy[who] >= _TOGETHER]
    if len(who) < 3:
        return
    votes = counts[:, (who[:, None] * k + np.arange(k)).ravel()].astype(np.float64)
    voted = votes @ scipy.sparse.kron(scipy.sparse.eye(len(who)), np.ones((k, 1))).tocsr()
    common = (voted.T @ voted).toarray()
    agree = sum((votes[:, c::k].T @ votes[:, c::k]).toarray() for c in range(k))
    np.fill_diagonal(common, 0.0)
    np.fill_diagonal(agree, 0.0)
    typical = agree.sum(axis=1) / np.maximum(common.sum(axis=1), 1)
    share = np.where(common >= _TOGETHER, agree / np.maximum(common, 1), 0.0)
    linked = (share >= _SAME) & (share >= np.maximum.outer(typical, typical) + _FURTHER)
    number, of = scipy.sparse.csgraph.connected_components(linked, directed=False)
    for group in (np.flatnonzero(of == c) for c in range(number)):
        if len(group) > 1:
            yield Finding(
                "warning",
                f"say the same on up to {share[np.ix_(group, group)].max():.1%} of the items that "
                "two of them vote on, and much less often the same as others",
                _plural("annotator", [evidence.some.models[j] for j in who[group]], 20),
                "keep one of them if they are copies: `auto` counts them as about one",
            )


def overlap(evidence: Evidence) -> Iterator[Finding]:
    """Items with too few votes to tell classifiers apart, and items on which all agree."""
    if not evidence.by_votes or evidence.some.n_models == 1:
        return
    size = evidence.votes_per_item
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
    by_class = (evidence.votes @ to_class).toarray()
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
        else "nothing to do; where this is near 100%, error rates rest on few items",
    )


def voted_classes(evidence: Evidence) -> Iterator[Finding]:
    """Classes that no annotator ever votes for."""
    if evidence.annotators is None:
        return
    total = evidence.votes_by_class.sum(axis=0)
    never = [evidence.some.classes[c] for c in np.flatnonzero(total == 0)]
    if never:
        yield Finding(
            "warning", f"no annotator ever votes for class {listed(never)}", "votes",
            "check how the class is written; if it does not occur, leave it out of --classes",
        )  # fmt: skip


def voted_domains(evidence: Evidence) -> Iterator[Finding]:
    """Domains without votes, and those in which nobody shares an item."""
    if not evidence.by_votes or evidence.some.domain is None:
        return
    names = [str(d) for d in evidence.some.domain.tolist()]
    index = {name: i for i, name in enumerate(dict.fromkeys(names))}
    most = np.zeros(len(index), dtype=np.int64)
    np.maximum.at(most, [index[name] for name in names], evidence.votes_per_item)
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


def constant(evidence: Evidence) -> Iterator[Finding]:
    """Classifiers without two different values."""
    for j in np.flatnonzero(evidence.facts.constant).tolist():
        yield Finding(
            "warning", "says the same for every item", f"classifier {_model(evidence, j)}",
            "leave it out; check that the right column was read",
        )  # fmt: skip


def _model(evidence: Evidence, j: int) -> str:
    return listed([evidence.known.models[j]])


def duplicates(evidence: Evidence) -> Iterator[Finding]:
    """Classifiers that are one and the same, or nearly."""
    names, facts = evidence.known.models, evidence.facts
    if not names:
        return
    identical = facts.identical.copy()
    identical[facts.constant] = identical[:, facts.constant] = False
    part = evidence.scores_of_some()
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
        # Sets of two or more that are linked with each other, directly or through others.
        number, of = scipy.sparse.csgraph.connected_components(linked, directed=False)
        for group in (np.flatnonzero(of == c).tolist() for c in range(number)):
            if len(group) > 1:
                where = _plural("classifier", [names[j] for j in group], 20)
                yield Finding("warning", what, where, mend)


def orders(evidence: Evidence) -> Iterator[Finding]:
    """Classifiers whose order of the items is random or reversed."""
    predictions = evidence.known
    count = np.bincount(predictions.labels[predictions.labeled], minlength=predictions.n_classes)
    if not predictions.n_models:
        return
    if count.min() >= _LABELS_PER_CLASS:
        # The mean over classes, one against the rest, if there are more than two.
        labeled = evidence.scored.labeled
        every, labels = evidence.scores[labeled], evidence.scored.labels[labeled]
        ones = [1] if every.shape[2] == 1 else range(every.shape[2])
        areas = [
            np.mean([order_auc(one[:, c % every.shape[2]], labels == c, labels != c) for c in ones])
            for one in every.transpose(1, 0, 2)
        ]
        against = f"{int(count.sum()):,} labels"
        mend_inverted = "turn it around (swap its class columns, or 1 - p), or check the labels"
        doubt = ""
    elif predictions.n_models > 1:
        areas = _areas_by_others(evidence.scores_of_some())
        against = "the mean rank of the others; no label was used"
        mend_inverted = "check the order of its class columns; if the others are at fault, theirs"
        doubt = " as seen by the others"
    else:
        return
    for j, area in enumerate(areas):
        if evidence.facts.constant[j] or np.isnan(area):
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


def _areas_by_others(every: Floats) -> list[Any]:
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


def one_class(evidence: Evidence) -> Iterator[Finding]:
    """Classifiers whose hard predictions are all of one class."""
    # Scores have no threshold, so there is no hard prediction of a classifier with nothing else.
    hard = evidence.facts.hard
    one = (hard.sum(axis=1) > 1) & ((hard > 0).sum(axis=1) == 1)
    for j in np.flatnonzero(one & ~evidence.facts.constant).tolist():
        yield Finding(
            "warning",
            f"predicts class {evidence.known.classes[hard[j].argmax()]} for every item",
            f"classifier {_model(evidence, j)}",
            "its accuracy is the share of that class; judge it by roc_auc",
        )


def saturated(evidence: Evidence) -> Iterator[Finding]:
    """Probabilities of 0 and 1, the classifier with the most of them first."""
    names, facts = evidence.known.models, evidence.facts
    share = facts.ends / np.maximum(facts.numbers, 1)
    many = np.flatnonzero(share > _SATURATED)
    worst = many[np.argsort(-share[many], kind="stable")].tolist()
    if worst:
        yield Finding(
            "warning",
            f"give{'s' * (len(worst) == 1)} probabilities of exactly 0 or 1",
            _plural("classifier", [f"{names[j]} ({share[j]:.0%})" for j in worst], 20),
            "logarithms clip them at 1e-6; calibrate the classifier, and store more digits",
        )


def missing(evidence: Evidence) -> Iterator[Finding]:
    """Classifiers without a prediction on some items."""
    names, lacking = evidence.known.models, evidence.facts.lacking
    gaps = np.flatnonzero(lacking > 0).tolist()
    if gaps:
        yield Finding(
            "info",
            f"{'has' if len(gaps) == 1 else 'have'} no prediction for some items",
            _plural("classifier", [f"{names[j]} ({lacking[j]:.1%})" for j in gaps], 20),
            "nothing to do if this is meant: an item is judged by the classifiers that have it",
        )


# Labels -----------------------------------------------------------------------------------------


def label_counts(evidence: Evidence) -> Iterator[Finding]:
    """How many labels there are, of which classes."""
    labels = evidence.facts
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


def not_random(evidence: Evidence) -> Iterator[Finding]:
    """Signs that the labeled items were not drawn at random."""
    labels = evidence.facts
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
    every, known = evidence.scores, evidence.scored.labeled
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
    gaps = np.where(usable, mean[0] - mean[1], 0.0) / np.where(usable, spread, 1.0)
    j, c = np.unravel_index(np.argmax(np.abs(gaps)), gaps.shape)
    model, z = evidence.known.models[int(j)], float(gaps[j, c])
    if abs(z) > _Z:
        side = "higher" if z > 0 else "lower"
        yield Finding(
            "warning",
            f"{model} scores labeled items {side} than the others (z = {z:.1f}): they are perhaps "
            "not a random sample",
            "labels",
            "draw the items to label at random, or give their sampling weights (--weight)",
        )


def ordered(evidence: Evidence) -> Iterator[Finding]:
    """Labels that hardly ever change from row to row."""
    labels = evidence.facts
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


def classes(evidence: Evidence) -> Iterator[Finding]:
    """Classes that may be the same, and too many classes to be real ones."""
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


def repeated(evidence: Evidence) -> Iterator[Finding]:
    """Rows that occur more than once."""
    if evidence.repeated:
        n = evidence.facts.n_items
        share = evidence.repeated / n
        yield Finding(
            "warning" if share > _MANY_DUPLICATES else "info",
            f"{'about ' * evidence.about}{evidence.repeated:,} of {n:,} rows ({share:.1%}) repeat "
            "an earlier row in every prediction and the label",
            "rows",
            "drop them if they are the same items; fine if different items got the same scores",
        )


def groups(evidence: Evidence) -> Iterator[Finding]:
    """Groups with too many or too few values for `--by`."""
    sizes = evidence.groups
    single = [name for name, (count, _) in sizes.items() if count == 1]
    many = [f"{name} ({words})" for name, (count, words) in sizes.items() if count > _MOST_GROUPS]
    if single:
        yield Finding(
            "info", "one value only", _plural("group", single), "nothing to do: it cannot split"
        )
    if many:
        yield Finding(
            "info", f"more values than --by takes ({_MOST_GROUPS})", _plural("group", many),
            "nothing to do if it is an identifier or a feature; else merge its values",
        )  # fmt: skip


# Columns and notes -------------------------------------------------------------------------------


_LIKE: tuple[tuple[str, Severity, str, str], ...] = (
    ("label", "warning", "may hold the labels", "--label {}"),
    ("weight", "warning", "may be the weight", "--weight {}"),
    ("domain", "info", "may be the domain", "--domain {}"),
    (
        "probability", "warning", "may be a probability, but is not read as one",
        "rename it p__<model>__<class>, or use --model NAME=COL,COL",
    ),
    ("score", "info", "may be a score, but is not read as one", "rename it s__<model>"),
    (
        "prediction", "info", "may be a hard prediction, but is not read as one",
        "rename it y__<model>",
    ),
)  # fmt: skip
"""A role that a name nearly says, and the words; the first one counts that no column has."""

_LOOKED_AT = 10_000
"""Rows of a column that are looked at to tell whether it holds probabilities."""

_NOTE_MENDS = {
    "sum to 1": "store probabilities with more digits",
    "one class occurs": "name both classes with --classes, the positive one last",
    "not read as a prediction": "rename it",
    "not kept as a group": "nothing to do if it is no group",
    "--duplicates": "nothing to do if this is meant",
    "is in the other file": "say with --item which columns hold the item",
}
"""Words of a note -> what to do about it."""


def note_findings(notes: Iterable[str], name: str) -> Iterator[Finding]:
    """What was noted while the data `name` were read."""
    for note in notes:
        # Said in full by label_findings and column_findings.
        if not note.startswith("no labeled item") and "may hold sampling weights" not in note:
            mend = next((m for words, m in _NOTE_MENDS.items() if words in note), "")
            yield Finding("warning", note, name, mend)


def column_findings(
    described: Mapping[str, str], table: Table | None, models: Sequence[str]
) -> Iterator[Finding]:
    """Columns that may be something else, by their names and, if there are rows, their values.

    `described` maps a column to its role in words; `models` are the classifiers.
    """
    free = [c for c, role in described.items() if role in ("group", "not recognised")]
    values: dict[str, Floats] = {}
    for name in free:
        with suppress(InputError):
            there = table is not None and name in table.names
            first = table.head(name, _LOOKED_AT) if table and there else np.empty(0)
            known = first[~np.isnan(first)]
            # Numbers from 0 to 1, and not 0 and 1 alone.
            inside = len(known) and known.min() >= 0 and known.max() <= 1
            if inside and (known != np.round(known)).any():
                values[name] = first
    roles = set(described.values())
    for name in free:
        # The role is taken, or the name is not like it, or it is; what looks like shares is below.
        for role, severity, what, mend in _LIKE[: 4 if name in values else None]:
            if role not in roles and names_role(name, role):
                mend = mend.format(shlex.quote(name))
                yield Finding(severity, what, f"column {quoted(name)}", mend)
                break
    codes = np.empty(0, dtype=np.int64)
    shares = [Profile(n, len(x), len(x), 0, None, x, codes) for n, x in values.items()]
    families = {stem: [p.name for p in of] for stem, of in named_families(shares, ()).items()}
    together = {column for columns in families.values() for column in columns}
    used = set(models)
    for name, columns in (families | {n: [n] for n in values if n not in together}).items():
        while name in used:
            name += "_"
        used.add(name)
        option = shlex.quote(f"{name}={','.join(columns)}")
        if any("," in column for column in columns) or "=" in name:
            option = "NAME=COL (a name with a comma: use --columns TOML)"
        several = len(columns) > 1
        yield Finding(
            "info",
            "look like probabilities that add up to 1" if several else "looks like a probability",
            f"column{'s' if several else ''} {', '.join(map(quoted, columns))}",
            f"if a classifier gave {'them' if several else 'it'}, add to the command below: "
            f"--model {option}",
        )


def minus_one_findings(label: str, texts: set[str]) -> Iterator[Finding]:
    """-1 next to labels of one of two classes may be meant as the other one."""
    known = {text for text in texts if folded(text) not in NO_LABEL}
    if "-1" in texts and len(known) == 1:
        only = known.pop()
        yield Finding(
            "warning",
            f"holds -1 and {quoted(only)} alone; -1 is read as unknown",
            f"column {quoted(label)}",
            "if -1 means the negative class, write it as 0",
        )


CHECKS: tuple[Callable[[Evidence], Iterator[Finding]], ...] = (
    votes, annotators, copied_votes, overlap, voted_classes, voted_domains, constant,
    duplicates, orders, one_class, saturated, missing, label_counts, not_random, ordered,
    classes, repeated, groups,
)  # fmt: skip
"""All checks of the items, in the order in which their findings are shown."""
