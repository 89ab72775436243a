"""What is kept apart from the table and joined to its items: long votes, and labels.

Long votes are one row per vote (item, annotator, label), labels one row per label.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import scipy.sparse

from fewlabels.checks.arrays import UNKNOWN
from fewlabels.data.chosen_rows import items_here
from fewlabels.data.classes import Classes
from fewlabels.data.label_record import LabelRecord, is_record, read_record
from fewlabels.data.options import ColumnOptions
from fewlabels.data.profiles import names_items, names_role
from fewlabels.data.roles import (
    ITEMS,
    Roles,
    VoteRoles,
    assign_vote_roles,
    missing_column,
)
from fewlabels.data.shapes import shaped
from fewlabels.data.sources import locate, open_source
from fewlabels.data.table import (
    NO_LABEL,
    Names,
    Place,
    Source,
    Table,
    class_text,
    group_text,
    naming_file,
)
from fewlabels.errors import InputError, listed, one_line, quoted
from fewlabels.kernels.arrays import Array, Floats, Ints

Duplicates = Literal["refuse", "keep", "last"]
DUPLICATES: tuple[Duplicates, ...] = ("refuse", "keep", "last")

LabelsAs = Literal["votes", "counts"]
LABELS_AS: tuple[LabelsAs, ...] = ("votes", "counts")


class RepeatedVotesError(InputError):
    """An annotator votes on an item more than once, and nothing says what that means."""


@dataclass(frozen=True)
class LongVotes:
    """Votes as they were read, one per row; `name` is what messages call the file."""

    name: str
    roles: VoteRoles
    items: Names
    annotators: Names
    labels: Names
    domains: Names | None
    place: Place
    duplicates: Duplicates
    known: Names | None = None
    clusters: tuple[Names, ...] = ()

    def class_texts(self) -> dict[str, dict[str, int]]:
        """The texts of the votes and of the known labels, by column, and in how many rows."""
        found = {f"votes.{self.labels.column}": self.labels.counts()}
        if self.known is not None:
            found[f"votes.{self.known.column}"] = self.known.counts()
        return found

    def described(self) -> dict[str, str]:
        """Column -> its role in words."""
        known = {} if self.known is None else {f"votes.{self.known.column}": "label of the item"}
        return self.roles.described() | known

    def join(
        self,
        wide: Mapping[str, Any],
        keys: Sequence[Key],
        classes: Classes,
        keep: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Arguments of `Predictions`: the wide table's, with the votes as further classifiers.

        `keys` are the `item_keys` of the items of `wide`. Items that only have votes follow, by
        first appearance. `keep` names the columns to keep as groups; None keeps all.
        """
        label = classes.indices(self.labels, self.place)
        kept = np.flatnonzero(label >= 0)
        if not kept.size:
            raise InputError(f"there are no votes; column {quoted(self.roles.label)} is empty")
        paired = not keys or isinstance(keys[0], tuple)
        rows: dict[Key, int] = {key: i for i, key in enumerate(keys)}
        item = _numbered(*self._item_codes(kept, by_pair=paired), rows)
        domain = self._domain(list(rows), item, kept, wide["domain"])
        people: dict[Key, int] = {}
        annotator = _numbered(self.annotators.codes[kept], self.annotators.texts, people)
        models = (*wide["models"], *map(str, people))
        both = set(wide["models"]) & set(models[len(wide["models"]) :])
        if both:
            raise InputError(
                f"annotator {listed(map(quoted, sorted(both)), 3)} has the name of a classifier in "
                "the other file; rename one of them"
            )
        votes = _Votes(item, annotator + len(wide["models"]), label[kept], kept)
        repeated = votes.repeated()
        if repeated.any() and self.duplicates == "refuse":
            self._refuse_repeated(votes, repeated)
        first, again, notes = votes.settled(repeated, self.duplicates)
        entries = [(first.item, first.annotator, first.label.astype(np.int64))]
        if (given := wide["votes"]) is not None:
            place = np.nonzero(given >= 0)
            entries.append((*place, given[place]))
        row, column, answers = (np.concatenate(part) for part in zip(*entries, strict=True))
        shape = (len(rows), len(models))
        small = np.min_scalar_type(-int(answers.max()) - 1)
        ballots = scipy.sparse.csr_matrix(((answers + 1).astype(small), (row, column)), shape)
        if keys and item.min() >= len(keys):
            notes.append(f"no item of {self.name} is in the other file; are the items the same?")
        grown = _grown(wide, len(keys), len(rows), len(models))
        if self.known is not None:
            grown["labels"] = self._known_labels(self.known, item, kept, len(rows), classes)
        groups = self._groups(list(rows), domain, grown["groups"], keep)
        return {
            **wide,
            **grown,
            "votes": ballots,
            "models": models,
            "repeated_votes": None
            if again is None
            else np.column_stack([again.item, again.annotator, again.label.astype(np.int64)]),
            "domain": domain,
            "groups": groups,
            "clusters": self._clusters(list(rows), item, kept, wide["clusters"]),
            "item": ITEMS if ITEMS in groups else None,
            "notes": (*wide["notes"], *notes),
        }

    def _known_labels(self, known: Names, item: Ints, kept: Ints, n: int, classes: Classes) -> Ints:
        """The known label of every item, (n,), which all rows of the item say."""
        answers = classes.indices(known, self.place)[kept].astype(np.int64)
        labels = np.full(n, UNKNOWN, dtype=np.int64)
        there = answers >= 0
        labels[item[there][::-1]] = answers[there][::-1]
        odd = np.flatnonzero(there & (labels[item] != answers))
        if odd.size:
            row = int(odd[0])
            first, other = (classes.texts[k] for k in (labels[item[row]], answers[row]))
            raise InputError(
                f"the known labels (column {quoted(known.column)}) of one item differ: "
                f"{quoted(first)} and, in {self.place(int(kept[row]))}, {quoted(other)}; an item "
                "has one"
            )
        return labels

    def _item_codes(self, kept: Ints, *, by_pair: bool) -> tuple[Ints, Sequence[Key]]:
        items = replace(self.items, codes=self.items.codes[kept])
        if not by_pair or self.domains is None:
            return items.codes, items.texts
        return _pairs(items, replace(self.domains, codes=self.domains.codes[kept]))

    def _domain(self, keys: list[Key], item: Ints, kept: Ints, known: Array | None) -> Array | None:
        """Domain of every item, (n,): the wide table's, the votes', or what the key says."""
        if self.domains is None:
            return None if known is None else _longer(known, len(keys), None)
        if isinstance(keys[0], tuple):
            return np.array([key[1] for key in keys], dtype=object)
        mend = f"but the other file has no domain: give it the column {quoted(self.domains.column)}"
        return self._of_items(self.domains, keys, item, kept, "domains", mend)

    def _of_items(
        self, names: Names, keys: Sequence[Key], item: Ints, kept: Ints, what: str, mend: str
    ) -> Array:
        """What all votes on an item agree on, (n,)."""
        codes = names.codes[kept]
        of_item = np.full(len(keys), -1)
        of_item[item[::-1]] = codes[::-1]
        odd = np.flatnonzero(of_item[item] != codes)
        if odd.size:
            raise InputError(
                f"item {quoted(keys[item[odd[0]]])} has votes in several {what} (again in "
                f"{self.place(int(kept[odd[0]]))}), {mend}"
            )
        return np.array([*names.texts, None], dtype=object)[of_item]

    def _clusters(
        self, keys: Sequence[Key], item: Ints, kept: Ints, wide: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Clusters of every item: the wide table's, and by columns of the votes alone."""
        out = {name: _longer(values, len(keys), None) for name, values in wide.items()}
        for names in self.clusters:
            what = f"clusters of column {quoted(names.column)}"
            own = self._of_items(names, keys, item, kept, what, "and an item is of one")
            out.setdefault(names.column, own)
        return out

    def _groups(
        self,
        keys: Sequence[Key],
        domain: Array | None,
        wide: Mapping[str, Any],
        keep: Sequence[str] | None,
    ) -> dict[str, Any]:
        """The wide table's groups, a domain by another name, and items where they are asked for."""
        groups, name = dict(wide), self.roles.domain
        if name not in (None, "domain", *groups) and (keep is None or name in keep):
            groups[str(name)] = domain
        if keep is not None and ITEMS in keep and ITEMS not in groups:
            # As many values as there are items.
            names = [key if isinstance(key, str) else key[0] for key in keys]
            groups[ITEMS] = np.array(names, object)
        return groups

    def _refuse_repeated(self, votes: _Votes, repeated: Array) -> None:
        key = votes.pair
        again = int(np.flatnonzero(repeated)[0])
        before = int(np.flatnonzero(key == key[again])[0])
        pairs = len(np.unique(key[repeated]))
        places = [self.place(int(votes.row[i])) for i in (before, again)]
        item, annotator = (
            names.texts[names.codes[votes.row[again]]] for names in (self.items, self.annotators)
        )
        others = "" if pairs == 1 else f", and {pairs - 1:,} more pairs do so"
        raise RepeatedVotesError(
            f"annotator {quoted(annotator)} votes on item {quoted(item)} more than once "
            f"({places[0]} and {places[1]}){others}: --duplicates keep counts every vote, "
            "--duplicates last the last one"
        )


Key = str | tuple[str, str | None]
"""What identifies an item: its name, or name and domain if both files have a domain."""


@dataclass(frozen=True)
class _Votes:
    """Votes (V,): item, annotator and class as indices, and the row of the file."""

    item: Ints
    annotator: Ints
    label: Array
    row: Ints

    def take(self, chosen: Array) -> _Votes:
        return _Votes(
            self.item[chosen], self.annotator[chosen], self.label[chosen], self.row[chosen]
        )

    @property
    def pair(self) -> Ints:
        """One number per item and annotator, (V,)."""
        out: Ints = self.item * (self.annotator.max() + 1) + self.annotator
        return out

    def repeated(self) -> Array:
        """Which votes come after another one by the same annotator on the same item, (V,)."""
        return _after_another(self.pair)

    def settled(
        self, repeated: Array, duplicates: Duplicates
    ) -> tuple[_Votes, _Votes | None, list[str]]:
        """One vote per item and annotator, the others where they count too, and notes."""
        size = int(repeated.sum())
        if not size:
            return self, None, []
        if duplicates == "last":
            later = _after_another(self.pair[::-1])[::-1]
            note = f"{size:,} votes are left out: their annotators vote on the same items again"
            return self.take(~later), None, [f"{note} later (--duplicates last)"]
        note = f"{size:,} repeated votes of annotators on the same items count as well"
        return self.take(~repeated), self.take(repeated), [f"{note} (--duplicates keep)"]


def read_votes(
    source: Any, options: ColumnOptions, duplicates: Duplicates, *, alone: bool = False
) -> LongVotes:
    """Read long votes from a file, a folder or a frame.

    If `alone`, there is no table beside them, and `options.label` is one of their columns: the
    known label of the vote's item.
    """
    located = locate(source)
    name = "votes" if located is None else located.name
    with naming_file(name):
        if located is not None and located.kind == "NPZ":
            raise InputError("holds arrays; save votes as a table with item, annotator and label")
        opened, options = shaped(open_source(source, located, "votes"), options)
        roles = assign_vote_roles(opened.names, options, alone=alone)
        known = options.label if alone else None
        if known is not None and known not in opened.names:
            raise InputError(missing_column(known, opened.names, "--label"))
        table = opened.read((), (*roles.columns, *(() if known is None else (known,))))
        if table.n_rows == 0:
            raise InputError("there are no rows; a file of votes needs at least one")
        place = table.place
        if located is None:
            place = "vote {} (from 0)".format
        items, annotators = (
            _identities(table, column, what, place)
            for column, what in ((roles.item, "item"), (roles.annotator, "annotator"))
        )
        domains = None if roles.domain is None else Names.of(table, roles.domain, group_text)
        labels = Names.of(table, roles.label)
        _refuse_names(labels)
        gold = None if known is None else Names.of(table, known)
        clusters = tuple(Names.of(table, column, group_text) for column in roles.clusters)
        return LongVotes(
            name, roles, items, annotators, labels, domains, place, duplicates, gold, clusters
        )


MOST_CLASSES_UNASKED = 20
"""With more different votes, each must occur twice on average to be a class."""


def _refuse_names(labels: Names) -> None:
    """Refuse votes that hardly repeat: names, times or numbers instead of classes."""
    different, votes = len(labels.texts), int((labels.codes >= 0).sum())
    if different > MOST_CLASSES_UNASKED and 2 * different > votes:
        raise InputError(
            f"column {quoted(labels.column)} has {different:,} different values in {votes:,} "
            f"votes, such as {listed(map(quoted, labels.texts), 3)}: they are no classes; name the "
            "column of the votes with --answer COL"
        )


def item_keys(table: Table, roles: Roles, votes: LongVotes) -> list[Key]:
    """The keys of the wide table's items when votes are joined to them."""
    if roles.item is None:
        return []
    items = _identities(table, roles.item, "item", table.place)
    domains = None if roles.domain is None else Names.of(table, roles.domain, group_text)
    by_pair = domains is not None and votes.domains is not None
    codes, texts = _pairs(items, domains) if by_pair and domains else (items.codes, items.texts)
    repeated = np.flatnonzero(_after_another(codes))
    if repeated.size:
        again = int(repeated[0])
        before = int(np.flatnonzero(codes == codes[again])[0])
        mend = "give each item one row"
        if domains is not None and domains.codes[again] != domains.codes[before]:
            mend = "votes on it could be of either domain: give the votes a column of domains"
        raise InputError(
            f"item {quoted(items.texts[items.codes[again]])} is in {table.place(before)} and in "
            f"{table.place(again)}; {mend}"
        )
    return [texts[code] for code in codes.tolist()]


def _identities(table: Table, column: str, what: str, place: Place) -> Names:
    """A column of items or annotators, of which none may be missing."""
    names = Names.of(table, column, lambda value: class_text(value) or None)
    missing = np.flatnonzero(names.codes < 0)
    if missing.size:
        others = "" if missing.size == 1 else f" ({missing.size - 1:,} more like it)"
        raise InputError(
            f"{place(int(missing[0]))} has no {what} in column {quoted(column)}{others}; fill it "
            "in, or drop the row"
        )
    return names


def _pairs(items: Names, domains: Names) -> tuple[Ints, list[Key]]:
    """Codes (n,) of items and domains together, and what they stand for."""
    width = len(domains.texts) + 1
    distinct, codes = np.unique(items.codes * width + domains.codes + 1, return_inverse=True)
    texts = (*domains.texts, None)  # Code 0 is that of no domain.
    pairs: list[Key] = [(items.texts[c // width], texts[c % width - 1]) for c in distinct.tolist()]
    return codes, pairs


def _numbered(codes: Ints, texts: Sequence[Key], known: dict[Key, int]) -> Ints:
    """The number of each row's text: as known, else counted on by first appearance."""
    distinct, first, place = np.unique(codes, return_index=True, return_inverse=True)
    number = np.empty(len(distinct), dtype=np.int64)
    for u in np.argsort(first).tolist():
        number[u] = known.setdefault(texts[distinct[u]], len(known))
    out: Ints = number[place]
    return out


def _after_another(key: Ints) -> Array:
    """Which entries equal an earlier one, (n,)."""
    order = np.argsort(key, kind="stable")
    out = np.zeros(len(key), dtype=bool)
    ordered = key[order]
    out[order[1:]] = ordered[1:] == ordered[:-1]
    return out


def _grown(wide: Mapping[str, Any], before: int, n: int, models: int) -> dict[str, Any]:
    """The wide table's arrays for n items and all classifiers, missing where they are new."""
    if wide["weight"] is not None and n > before:
        raise InputError(
            f"{n - before:,} items have votes but no row in the file that has the weights; add "
            "them there, or leave the weight out"
        )
    grown: dict[str, Any] = {}
    for name, missing in (("probabilities", np.nan), ("scores", np.nan)):
        if (array := wide[name]) is not None:
            grown[name] = np.full((n, models, *array.shape[2:]), missing)
            grown[name][:before, : array.shape[1]] = array
    for name, missing in (("labels", UNKNOWN), ("histogram", 0), ("label_weight", 1.0)):
        if (array := wide.get(name)) is not None:
            grown[name] = _longer(array, n, missing)
    grown["groups"] = {name: _longer(group, n, None) for name, group in wide["groups"].items()}
    return grown


def _longer(array: Array, n: int, missing: Any) -> Array:
    out = np.full((n, *array.shape[1:]), missing, dtype=array.dtype)
    out[: len(array)] = array
    return out


@dataclass(frozen=True)
class KeptLabels:
    """Labels by item, as they were read; `name` is what messages call the file.

    `by` has the annotator of every label, and `weight_of_item` the weight of one that was drawn
    with a known probability (a record of labels has it), for a mean over all items. `classes` are
    those that a record knows. `notes` are worth a warning. `record` is the record they are of.
    """

    name: str
    by_item: Mapping[str, str]
    item: str
    by: Mapping[str, str]
    weight_of_item: Mapping[str, float] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    record: LabelRecord | None = None


def read_labels(
    source: Any, names: Collection[str], options: ColumnOptions, *, several: bool = False
) -> tuple[KeptLabels, ...]:
    """Read labels that are kept apart, from a record or table, or a list of several.

    `names` are the columns of the table that they are joined to. If `several`, an item may have
    several labels in one table, each of which is of another annotator.
    """
    listing = isinstance(source, list | tuple) and not all(isinstance(s, Mapping) for s in source)
    each = [_kept(one, names, options, several) for one in (source if listing else [source])]
    return tuple(kept for some in each for kept in some)


def _kept(
    source: Any, names: Collection[str], options: ColumnOptions, several: bool
) -> list[KeptLabels]:
    if isinstance(source, str | Path) and is_record(source):
        return [_of_record(str(source))]
    located = locate(source)
    name = "labels" if located is None else located.name
    with naming_file(name):
        opened, options = shaped(open_source(source, located, "labels"), options)
        of_labels = opened.names
        if {"event", "item", "annotator"} <= set(of_labels):
            raise InputError(
                "holds the events of a record of labels without its first line, which says of "
                "which items it is; put that line back, or restore the record from a copy"
            )
        asked = [c for c in (options.item, "item") if c is not None and c in of_labels]
        shared = [n for n in of_labels if n and n in names and n != "label"]
        # A table of two columns, one of which is that of the labels: the other names the items.
        others = [n for n in of_labels if n and not names_role(n, "label") and n != options.label]
        named = [n for n in shared if names_items(n)]
        shared = named if len(named) == 1 else shared
        if asked or len(shared) == 1:
            item = (asked or shared)[0]
        elif len(others) == 1 and len(of_labels) == 2:
            item = others[0]
        else:
            wanted_item = options.item or "item"
            missing = missing_column(wanted_item, of_labels, "what labels are joined by")
            raise InputError(f"{missing}; say which it is with --item COL")
        rest = [n for n in opened.names if n != item]
        wanted = [n for n in (options.label, options.votes.get("label"), "label") if n in rest]
        likely = wanted[:1] or [n for n in rest if names_role(n, "label")] or rest
        if len(likely) != 1:
            table = opened.read((), rest)
            few = {n: len(Names.of(table, n).texts) for n in rest if n in names}
            both = [n for n, size in few.items() if 1 < size <= MOST_CLASSES_UNASKED]
            raise InputError(
                f"no column 'label'; the columns are {listed(map(quoted, rest))}: say which it is "
                f"with {' or '.join(f'--label {shlex.quote(n)}' for n in both[:3] or ['COL'])}"
            )
        label = str(likely[0])
        by = options.votes.get("annotator") or "annotator"
        by = by if several and by in rest else ""
        table = opened.read((), (item, label, *([by] if by else [])))
        items, labels = Names.of(table, item), Names.of(table, label)
        if several:
            people = Names.of(table, by) if by else None
            found = _of_annotators(items, labels, people, table.place, name, item)
            if len(found) > 1:
                return found
        by_item: dict[str, str] = {}
        first: dict[str, int] = {}
        for row, (i, k) in enumerate(zip(items.codes.tolist(), labels.codes.tolist(), strict=True)):
            if i < 0 or k < 0 or not labels.texts[k]:
                continue
            named, text = items.texts[i], labels.texts[k]
            if by_item.setdefault(named, text) != text:
                raise InputError(
                    f"item {quoted(named)} has two labels: {quoted(by_item[named])} in "
                    f"{table.place(first[named])} and {quoted(text)} in {table.place(row)}; keep "
                    "one of them, or judge by all of them with --labels-as counts"
                )
            first.setdefault(named, row)
        if not by_item:
            raise InputError(
                "there are no labels in it; every cell of the column of labels is empty"
            )
        return [KeptLabels(name, by_item, item, dict.fromkeys(by_item, Path(name).name))]


def _of_annotators(
    items: Names, labels: Names, people: Names | None, place: Place, name: str, item: str
) -> list[KeptLabels]:
    """The labels by annotator, or where nobody is named, the first, the second ... of each item."""
    by: dict[str, dict[str, str]] = {}
    met: Counter[str] = Counter()
    for row, (i, k) in enumerate(zip(items.codes.tolist(), labels.codes.tolist(), strict=True)):
        if i < 0 or k < 0 or not labels.texts[k]:
            continue
        key = items.texts[i]
        met[key] += 1
        who = f"label {met[key]}"
        if people is not None:
            code = int(people.codes[row])
            if code < 0 or not people.texts[code]:
                raise InputError(f"{place(row)} has a label and no annotator; say whose it is")
            who = people.texts[code]
        own = by.setdefault(who, {})
        if key in own:
            raise InputError(
                f"annotator {quoted(who)} labels item {quoted(key)} more than once (again in "
                f"{place(row)}); keep one of them"
            )
        own[key] = labels.texts[k]
    return [
        KeptLabels(f"{name} ({who})", own, item, dict.fromkeys(own, who)) for who, own in by.items()
    ]


def _of_record(path: str) -> KeptLabels:
    record = read_record(path)
    if not record.labels:
        raise InputError(f"{path}: there are no labels in it yet; `fewlabels label` adds them")
    return KeptLabels(
        path,
        record.labels,
        record.header.item,
        {item: record.decisions[item].annotator for item in record.labels},
        record.weights,
        record.header.classes,
        record.notes(path),
        record,
    )


def held_to(kept: KeptLabels, source: Source, item: str) -> KeptLabels:
    """Check a record of labels against the items of this source; other labels pass."""
    if kept.record is None:
        return kept
    here = items_here(source, item, kept.record, source.name or "the frame")
    with naming_file(kept.name):
        notes = kept.record.match(here)
    return replace(kept, notes=(*kept.notes, *(f"{kept.name}: {note}" for note in notes)))


def differs(source: Source, item: str, label: str, kept: Sequence[KeptLabels]) -> bool:
    """Whether the source's own column says something else of an item than the labels."""
    if label not in source.names:
        return False
    table = source.read((), (item, label))
    items, own = Names.of(table, item), Names.of(table, label)
    for i, k in zip(items.codes.tolist(), own.codes.tolist(), strict=True):
        text = own.texts[k] if k >= 0 else ""
        others = [one.by_item.get(items.texts[i]) for one in kept] if i >= 0 else []
        if text not in NO_LABEL and any(other not in (None, text) for other in others):
            return True
    return False


def one_label(kept: Sequence[KeptLabels]) -> KeptLabels:
    """Merge the labels of several files; an item with the same label twice has it once."""
    if len(kept) == 1:
        return kept[0]
    by_item: dict[str, str] = {}
    first: dict[str, KeptLabels] = {}
    by: dict[str, str] = {}
    for one in kept:
        for item, label in one.by_item.items():
            if by_item.setdefault(item, label) != label:
                texts = [
                    f"{quoted(k.by_item[item])} ({one_line(k.by[item])}, {k.name})"
                    for k in (first[item], one)
                ]
                raise InputError(
                    f"item {quoted(item)} has two labels: {' and '.join(texts)}; --labels-as "
                    "counts judges by all of them, --labels-as votes takes annotators for "
                    "classifiers"
                )
            first.setdefault(item, one)
            by.setdefault(item, one.by[item])
    weights = [{i: w for i, w in k.weight_of_item.items() if first.get(i) is k} for k in kept]
    return KeptLabels(
        listed([k.name for k in kept]),
        by_item,
        kept[0].item,
        by,
        {item: weight for one in weights for item, weight in one.items()},
        tuple(dict.fromkeys(c for k in kept for c in k.classes)),
        tuple(note for k in kept for note in k.notes),
    )


def labels_as_votes(kept: Sequence[KeptLabels], duplicates: Duplicates) -> LongVotes:
    """Labels kept apart as long votes, so that every annotator is a classifier."""
    rows = [(i, k.by[i], label) for k in kept for i, label in k.by_item.items()]
    columns = zip(*rows, strict=True)
    table = pa.table({n: pa.array(c, pa.string()) for n, c in zip(VOTES, columns, strict=True)})
    votes = read_votes(table, ColumnOptions(), duplicates)
    return replace(votes, name=listed([k.name for k in kept]))


_EVEN = 1e-9
"""Weights closer to 1 are of labels drawn with equal probability."""

VOTES = ("item", "annotator", "label")
"""The columns of long votes, by their usual names."""


@dataclass(frozen=True)
class WithCounts:
    """A source with how many labels kept apart name each class, in columns `h__<class>`."""

    inner: Source
    kept: tuple[KeptLabels, ...]
    item: str

    @property
    def name(self) -> str | None:
        """What messages call it."""
        return self.inner.name

    @cached_property
    def counts(self) -> dict[str, dict[str, int]]:
        """Column -> item -> how many labels."""
        known = [c for k in self.kept for c in k.classes]
        labels = [label for k in self.kept for label in k.by_item.values()]
        found: dict[str, dict[str, int]] = {f"h__{c}": {} for c in dict.fromkeys([*known, *labels])}
        for kept in self.kept:
            for item, label in kept.by_item.items():
                of = found[f"h__{label}"]
                of[item] = of.get(item, 0) + 1
        return found

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns, those of the counts last."""
        own = [name for name in self.inner.names if name.startswith("h__")]
        if own:
            raise InputError(
                f"column {quoted(own[0])} already counts annotators; leave out --labels-as counts, "
                "or the column"
            )
        return (*self.inner.names, *self.counts)

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Read some columns; counts are joined by the item."""
        asked = [n for n in dict.fromkeys([*numbers, *texts]) if n in self.counts]
        own = [t for t in dict.fromkeys([*texts, self.item]) if t not in asked]
        table = self.inner.read([n for n in numbers if n not in asked], own)
        if not asked:
            return table
        items = joined_items(table, self.item, self.kept)
        keys = [items.texts[i] if i >= 0 else None for i in items.codes.tolist()]
        columns = {
            n: [pa.chunked_array([pa.array([self.counts[n].get(k or "", 0) for k in keys])])]
            for n in asked
        }
        return table.with_columns(columns)


def joined_items(table: Table, column: str, kept: Sequence[KeptLabels]) -> Names:
    """The items of a table that labels are joined to; notes say which labels are of no item."""
    items = Names.of(table, column)
    count = np.bincount(items.codes[items.codes >= 0], minlength=len(items.texts))
    known = set(items.texts)
    for one in kept:
        named = [i for i in np.flatnonzero(count > 1).tolist() if items.texts[i] in one.by_item]
        if named:
            rows = np.flatnonzero(items.codes == named[0])[:2].tolist()
            raise InputError(
                f"item {quoted(items.texts[named[0]])} is in {table.place(rows[0])} and in "
                f"{table.place(rows[1])}, so its label cannot be joined; give each item one row"
            )
        strangers = len(one.by_item.keys() - known)
        if strangers == len(one.by_item):
            here = f", here {quoted(items.texts[0])}" if items.texts else ""
            raise InputError(
                f"no item of {one.name} is in column {quoted(column)}; are the items the same? "
                f"there {quoted(next(iter(one.by_item)))}{here}"
            )
        if strangers:
            table.notes.append(
                f"{strangers:,} of {len(one.by_item):,} labels in {one.name} are of items that "
                "are not in the file; they are not used"
            )
        table.notes.extend(one.notes)
    return items


@dataclass(frozen=True)
class WithLabels:
    """A source whose column of labels is filled from labels that are kept apart."""

    inner: Source
    labels: KeptLabels
    item: str
    label: str

    @property
    def label_is_own(self) -> bool:
        """Whether the table has a column of labels of its own."""
        return self.label in self.inner.names

    @property
    def name(self) -> str | None:
        """What messages call it."""
        return self.inner.name

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns, that of the labels among them."""
        inner = self.inner.names
        return inner if self.label in inner else (*inner, self.label)

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Read some columns; labels are joined by the item."""
        own = self.label in self.inner.names
        wanted = [t for t in dict.fromkeys([*texts, self.item]) if own or t != self.label]
        table = self.inner.read(numbers, wanted)
        if self.label not in texts:
            return table
        return table.with_columns({self.label: [self._joined(table, own=own)]})

    def weights(self, table: Table) -> Floats | None:
        """Weights of the labels, (n,), by the probabilities of their draws; None if all were equal.

        `table` has the column of items.
        """
        of = self.labels.weight_of_item
        if all(abs(weight - 1) < _EVEN for weight in of.values()):
            return None
        items = Names.of(table, self.item)
        drawn = [of.get(text, 1.0) for text in items.texts]
        other = len(self.labels.by_item.keys() - of.keys())
        if other:
            table.notes.append(
                f"{other:,} labels in {self.labels.name} were not drawn with a known probability; "
                "beside those that were, each counts as one"
            )
        return np.array([*drawn, 1.0])[items.codes]

    def _joined(self, table: Table, *, own: bool) -> pa.ChunkedArray:
        items = joined_items(table, self.item, [self.labels])
        by_item = self.labels.by_item
        joined = [by_item.get(items.texts[i]) if i >= 0 else None for i in items.codes.tolist()]
        if own:
            known = Names.of(table, self.label)
            for row, (k, label) in enumerate(zip(known.codes.tolist(), joined, strict=True)):
                mine = known.texts[k] if k >= 0 and known.texts[k] not in NO_LABEL else ""
                if mine and label is not None and mine != label:
                    raise InputError(
                        f"item {quoted(items.texts[items.codes[row]])} has two labels: "
                        f"{quoted(mine)} in {table.place(row)} and {quoted(label)} in "
                        f"{self.labels.name}; correct one of them"
                    )
                joined[row] = mine or label
        return pa.chunked_array([pa.array(joined, pa.string())])
