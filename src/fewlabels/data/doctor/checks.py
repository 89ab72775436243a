"""The checks: what each looks at, and when it finds something; `findings.toml` has the sentences.

A check is the same in memory and for files of any size: counts are of all rows, and items are
compared with each other among the rows in the evidence.
"""

from __future__ import annotations

import itertools
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from fewlabels.data.agreement import order_auc, rank_shares
from fewlabels.data.doctor.facts import Evidence, Finding, correlations
from fewlabels.data.families import named_families
from fewlabels.data.profiles import Profile, names_role
from fewlabels.data.table import Table
from fewlabels.errors import InputError, listed, quoted
from fewlabels.kernels.arrays import Array, Floats, Ints

_NEAR = 0.999
"""Correlation of two classifiers' scores from which they may be the same."""

_CHANCE, _INVERTED, _LABELS_PER_CLASS, _SATURATED = (0.45, 0.55), 0.3, 10, 0.01
_FEW, _MOST_GROUPS, _Z, _MANY_DUPLICATES, _MANY_CLASSES = 20, 50, 4.0, 0.05, 50

_FEW_TO_SAY_THE_SAME = 5
"""With fewer votes, it is no surprise that all are of one class."""

_COMPARED, _TOGETHER, _SAME, _FURTHER = 200, 50, 0.95, 0.1
"""Limits for annotators that copy: at most so many, the busiest, are compared; votes on the same
items that this takes; how often copies agree, and how much more often than with others."""

_IDENTIFIED = 3
"""From so many classifiers on, votes on the same items determine error rates."""

_SHOWN = 3
"""Names that a finding shows; of things that are one by another it shows more."""


class Found(NamedTuple):
    """A kind, the names it is found of (each alone unless `together`), the sentence's values."""

    kind: str
    names: Sequence[str] = ()
    values: Mapping[str, Any] = {}
    together: bool = False
    severity: str | None = None


@cache
def kinds() -> dict[str, dict[str, str]]:
    """Read `findings.toml`."""
    return tomllib.loads(files(__package__).joinpath("findings.toml").read_text("utf-8"))


def findings(evidence: Evidence) -> Iterator[Finding]:
    """What all checks find."""
    return in_words(itertools.chain.from_iterable(each(evidence) for each in CHECKS))


def in_words(found: Iterable[Found]) -> Iterator[Finding]:
    """Findings as sentences; what is found of several things alike is one finding."""
    alike: dict[Any, list[Found]] = {}
    for number, one in enumerate(found):
        said = {k: v for k, v in one.values.items() if k not in ("column", "option")}
        alone = one.together or not one.names
        key = (one.kind, one.severity, str(said), number if alone else -1)
        alike.setdefault(key, []).append(one)
    for group in alike.values():
        kind, first = kinds()[group[0].kind], group[0]
        names = [name for one in group for name in one.names]
        each = len(names) == 1
        words: dict[str, Any] = {**first.values, "s": "s" * each, "has": "has" if each else "have"}
        mend = kind.get("mend", "")
        if len(group) > 1 and "option" in words:
            words["option"] = "NAME=COL"
        if "column" in words:  # --label a or --label b
            words["column"] = f" or {mend.split()[0]} ".join(o.values["column"] for o in group[:3])
        where = kind["where"]
        if names:
            columns = map(quoted, names) if where == "column" else names
            most = 20 if first.together else _SHOWN
            where = f"{where}{'s' * (len(names) > 1)} {listed(columns, most)}"
        yield Finding(
            first.severity or kind["severity"],  # type: ignore[arg-type]
            kind["what"].format(**words), where, mend.format(**words),
        )  # fmt: skip


def votes(evidence: Evidence) -> Iterator[Found]:
    """How many votes there are, by how many annotators, and classes that nobody votes for."""
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

    yield Found("votes", values={
        "n": int(evidence.votes_by_class.sum()), "people": len(people),
        "items": int((items > 0).sum()), "per_item": spread(items[items > 0]),
        "per_person": spread(people), "without": f"; {without:,} items have none" * bool(without),
    })  # fmt: skip
    total = evidence.votes_by_class.sum(axis=0)
    never = [evidence.some.classes[c] for c in np.flatnonzero(total == 0)]
    if never:
        yield Found("never_voted", values={"classes": listed(never)})


def annotators(evidence: Evidence) -> Iterator[Found]:
    """Annotators who share no item with others, and those who always give the same answer."""
    if evidence.annotators is None:
        return
    names = np.array(evidence.some.models[evidence.annotators :], dtype=object)
    shared = evidence.voted.T @ np.maximum(evidence.votes_per_item - 1, 0)
    by_class = evidence.votes_by_class
    total = by_class.sum(axis=1)
    same = (by_class.max(axis=1) == total) & (total >= _FEW_TO_SAY_THE_SAME)
    yield from (Found("alone", [name]) for name in names[shared[evidence.annotators :] == 0])
    least = {"least": _FEW_TO_SAY_THE_SAME}
    yield from (Found("same_vote", [name], least) for name in names[same])


def copied_votes(evidence: Evidence) -> Iterator[Found]:
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
    for group in _linked(linked):
        share_of = {"share": share[np.ix_(group, group)].max()}
        yield Found("copied_votes", [evidence.some.models[j] for j in who[group]], share_of, True)


def _linked(pairs: Array) -> Iterator[Array]:
    """Sets of two or more that are linked with each other, directly or through others."""
    number, of = scipy.sparse.csgraph.connected_components(pairs, directed=False)
    groups = (np.flatnonzero(of == c) for c in range(number))
    return (group for group in groups if len(group) > 1)


def overlap(evidence: Evidence) -> Iterator[Found]:
    """Items with too few votes to tell classifiers apart, and items on which all agree."""
    if not evidence.by_votes or evidence.some.n_models == 1:
        return
    size = evidence.votes_per_item
    several = size > 1
    if not several.any():
        yield Found("no_overlap")
        return
    if size.max() < _IDENTIFIED:
        yield Found("little_overlap")
    # Column j K + l of the counts is class l.
    to_class = scipy.sparse.csr_matrix(
        np.tile(np.eye(evidence.some.n_classes), (evidence.some.n_models, 1))
    )
    by_class = (evidence.some.vote_counts @ to_class).toarray()
    equal = several & (by_class.max(axis=1) == by_class.sum(axis=1))
    share = equal.sum() / several.sum()
    said = {"share": share, "several": int(several.sum())}
    yield Found("all_agree" if share == 1 else "some_agree", values=said)


def voted_domains(evidence: Evidence) -> Iterator[Found]:
    """Domains without votes, and those in which nobody shares an item."""
    if not evidence.by_votes or evidence.some.domain is None:
        return
    names = [str(d) for d in evidence.some.domain.tolist()]
    index = {name: i for i, name in enumerate(dict.fromkeys(names))}
    most = np.zeros(len(index), dtype=np.int64)
    np.maximum.at(most, [index[name] for name in names], evidence.votes_per_item)
    for lack, chosen in (
        ("votes", most == 0),
        ("item with votes of two classifiers: nothing can be compared", most == 1),
        (f"item with votes of {_IDENTIFIED} classifiers", most == _IDENTIFIED - 1),
    ):
        if not chosen.all():
            there = (name for name, i in index.items() if chosen[i])
            yield from (Found("domains", [name], {"lack": lack}) for name in there)


def constant(evidence: Evidence) -> Iterator[Found]:
    """Classifiers without two different values."""
    facts, names = evidence.facts, evidence.known.models
    yield from (Found("constant", [names[j]]) for j in np.flatnonzero(facts.constant))


def one_class(evidence: Evidence) -> Iterator[Found]:
    """Classifiers whose hard predictions are all of one class."""
    # Scores have no threshold, so there is no hard prediction of a classifier with nothing else.
    facts, hard = evidence.facts, evidence.facts.hard
    one = (hard.sum(axis=1) > 1) & ((hard > 0).sum(axis=1) == 1) & ~facts.constant
    for j in np.flatnonzero(one):
        said = {"one": evidence.known.classes[hard[j].argmax()]}
        yield Found("one_class", [evidence.known.models[j]], said)


def duplicates(evidence: Evidence) -> Iterator[Found]:
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
    near &= ~np.eye(len(near), dtype=bool)
    for kind, pairs in (("identical", identical), ("nearly_identical", near)):
        for group in _linked(pairs):
            yield Found(kind, [names[j] for j in group], {"near": _NEAR}, True)


def orders(evidence: Evidence) -> Iterator[Found]:
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
        turn = "turn it around (swap its class columns, or 1 - p), or check the labels"
        doubt = ""
    elif predictions.n_models > 1:
        areas = _areas_by_others(evidence.scores_of_some())
        against = "the mean rank of the others; no label was used"
        turn = "check the order of its class columns; if the others are at fault, theirs"
        doubt = " as seen by the others"
    else:
        return
    for j, area in enumerate(areas):
        if evidence.facts.constant[j] or np.isnan(area):
            continue
        random = _CHANCE[0] <= area <= _CHANCE[1]
        if random or area < _INVERTED:
            said = {"auc": f"AUC {area:.2f}", "against": against, "doubt": doubt, "turn": turn}
            kind = "random_order" if random else "reversed_order"
            yield Found(kind, [predictions.models[j]], said)


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


def gaps(evidence: Evidence) -> Iterator[Found]:
    """Probabilities of 0 and 1, those with the most of them first; and missing predictions."""
    names, facts = evidence.known.models, evidence.facts
    share = facts.ends / np.maximum(facts.numbers, 1)
    many = np.flatnonzero(share > _SATURATED)
    for j in many[np.argsort(-share[many], kind="stable")]:
        yield Found("saturated", [f"{names[j]} ({share[j]:.0%})"])
    for j in np.flatnonzero(facts.lacking > 0):
        yield Found("missing", [f"{names[j]} ({facts.lacking[j]:.1%})"])


def label_counts(evidence: Evidence) -> Iterator[Found]:
    """How many labels there are, of which classes."""
    labels = evidence.facts
    if not labels.n_labeled:
        yield from [Found("no_labels")] if evidence.known.histogram is None else []
        return
    if labels.n_labeled < _FEW:
        yield Found("few_labels", values={"n": labels.n_labeled, "least": _FEW})
    absent = [evidence.known.classes[c] for c in np.flatnonzero(labels.count == 0)]
    if absent:
        yield Found("absent_class", values={"classes": listed(absent)})


def not_random(evidence: Evidence) -> Iterator[Found]:
    """Signs that the labeled items were not drawn at random."""
    labels = evidence.facts
    n, labeled = labels.n_items, labels.n_labeled
    if labeled == n or labeled < 2:
        return
    if labels.last - labels.first == labeled - 1 and (labels.first == 0 or labels.last == n - 1):
        end = "first" if labels.first == 0 else "last"
        yield Found("in_one_piece", values={"end": end, "n": labeled})
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
        yield Found("not_random", values={"model": model, "side": side, "z": z})


def ordered(evidence: Evidence) -> Iterator[Found]:
    """Labels that hardly ever change from row to row."""
    labels = evidence.facts
    share = labels.count / max(labels.n_labeled, 1)
    expected = (labels.n_labeled - 1) * (1 - float((share**2).sum()))
    if expected >= 10 and labels.changes < expected / 5:
        yield Found("ordered", values={"changes": labels.changes, "expected": expected})


def classes(evidence: Evidence) -> Iterator[Found]:
    """Classes that may be the same, and too many classes to be real ones."""
    written: dict[str, list[str]] = {}
    for name in map(str, evidence.some.classes):
        written.setdefault(" ".join(name.casefold().split()), []).append(name)
    for same in written.values():
        if len(same) > 1:
            yield Found("alike_classes", values={"classes": listed(same)})
    if evidence.some.n_classes > _MANY_CLASSES and evidence.some.votes is not None:
        yield Found("many_classes", values={"n": evidence.some.n_classes})


def repeated(evidence: Evidence) -> Iterator[Found]:
    """Rows that occur more than once."""
    n, copies = evidence.facts.n_items, evidence.repeated
    if copies:
        said = {"about": "about " * evidence.about, "n": copies, "all": n, "share": copies / n}
        grave = "warning" if copies / n > _MANY_DUPLICATES else None
        yield Found("repeated", values=said, severity=grave)


def groups(evidence: Evidence) -> Iterator[Found]:
    """Groups with too many or too few values for `--by`."""
    for name, (count, words) in evidence.groups.items():
        if count == 1:
            yield Found("one_value", [name])
        if count > _MOST_GROUPS:
            yield Found("many_values", [f"{name} ({words})"], {"most": _MOST_GROUPS})


_LIKE = ("label", "weight", "domain", "probability", "score", "prediction")
"""Roles that a name nearly says; the first one counts that no column has."""

_LOOKED_AT = 10_000
"""Rows of a column that are looked at to tell whether it holds probabilities."""


def note_findings(notes: Iterable[str], name: str) -> Iterator[Finding]:
    """What was noted while the data `name` were read."""
    for note in notes:
        # Said in full by label_counts and column_findings.
        if not note.startswith("no labeled item") and "may hold sampling weights" not in note:
            mends = kinds()["notes"].items()
            yield Finding("warning", note, name, next((m for w, m in mends if w in note), ""))


def column_findings(
    described: Mapping[str, str], table: Table | None, models: Sequence[str]
) -> Iterator[Finding]:
    """Columns that may be something else, by their names and, if there are rows, their values."""
    return in_words(_columns(described, table, models))


def _columns(
    described: Mapping[str, str], table: Table | None, models: Sequence[str]
) -> Iterator[Found]:
    free = [c for c, role in described.items() if role in ("group", "not recognised")]
    free = [c for c in free if not names_role(c, "drawn")]
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
        for role in _LIKE[: 4 if name in values else None]:
            if role not in roles and names_role(name, role):
                yield Found(f"like_{role}", [name], {"column": shlex.quote(name)})
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
        yield Found("shares" if several else "share", columns, {"option": option}, several)


CHECKS: tuple[Callable[[Evidence], Iterator[Found]], ...] = (
    votes, annotators, copied_votes, overlap, voted_domains, constant,
    duplicates, orders, one_class, gaps, label_counts, not_random, ordered,
    classes, repeated, groups,
)  # fmt: skip
"""All checks of the items, in the order in which their findings are shown."""
