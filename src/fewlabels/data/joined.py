"""What is kept apart from the table and joined to its items: long votes, and labels."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import scipy.sparse

from fewlabels.checks.arrays import UNKNOWN
from fewlabels.data.chosen_rows import items_here
from fewlabels.data.classes import Classes
from fewlabels.data.delimited import NO_HEADER
from fewlabels.data.evidence import consensus_of
from fewlabels.data.keys import as_known, may_name_items, names_of, repeats, same_values, with_item
from fewlabels.data.label_record import LabelRecord, is_record, read_record
from fewlabels.data.options import ColumnOptions
from fewlabels.data.profiles import (
    item_in_name,
    name_evidence,
    names_items,
    names_role,
    profile,
    truth_in_name,
)
from fewlabels.data.roles import ITEMS, Roles, VoteRoles, assign_vote_roles, missing_column
from fewlabels.data.shapes import shaped
from fewlabels.data.sources import Located, locate, open_beside, open_source
from fewlabels.data.table import (
    NO_LABEL,
    Derived,
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
    of_items: tuple[Names, ...] = ()
    notes: tuple[str, ...] = ()

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
        """Arguments of `Predictions`: the wide table's, with the votes as further classifiers."""
        label = classes.indices(self.labels, self.place).astype(np.int64)
        kept = np.flatnonzero(label >= 0)
        if not kept.size:
            raise InputError(f"there are no votes; column {quoted(self.roles.label)} is empty")
        paired = not keys or isinstance(keys[0], tuple)
        rows: dict[Key, int] = {key: i for i, key in enumerate(keys)}
        codes, texts = _item_codes(self.items, self.domains if paired else None)
        item = _numbered(codes[kept], texts, rows)
        people: dict[Key, int] = {}
        annotator = _numbered(self.annotators.codes[kept], self.annotators.texts, people)
        both = {*wide["models"]} & people.keys()
        if both:
            raise InputError(
                f"annotator {listed(map(quoted, sorted(map(str, both))), 3)} has the name of a "
                "classifier in the other file; rename one of them"
            )
        models = (*wide["models"], *map(str, people))
        votes = np.column_stack([item, annotator + len(wide["models"]), label[kept]])
        again, notes = self._repeated(votes, kept)
        entries = votes if again is None else votes[~again]
        if (given := wide["votes"]) is not None:
            place = np.nonzero(given >= 0)
            entries = np.concatenate([entries, np.column_stack([*place, given[place]])])
        small = np.min_scalar_type(-int(entries[:, 2].max()) - 1)
        ballots = scipy.sparse.csr_matrix(
            ((entries[:, 2] + 1).astype(small), (entries[:, 0], entries[:, 1])),
            (len(rows), len(models)),
        )
        if keys and item.min() >= len(keys):
            notes.append(f"no item of {self.name} is in the other file; are the items the same?")
        grown = _grown(wide, len(keys), len(rows), len(models))
        names, groups = list(rows), grown["groups"]
        domain = grown["domain"]
        if isinstance(names[0], tuple):
            domain = np.array([key[1] for key in names], dtype=object)
        elif self.domains is not None:
            column = quoted(self.domains.column)
            mend = f"but the other file has no domain: give it the column {column}"
            domain = self._of_items(self.domains, names, item, kept, "domains", mend)
        if self.known is not None:
            grown["labels"] = self._known_labels(self.known, item, kept, len(rows), classes)
        for one in self.of_items:
            what = f"groups of column {quoted(one.column)}"
            own = self._of_items(one, names, item, kept, what, "and an item is of one")
            for kind in ("groups", "clusters"):
                if one.column in getattr(self.roles, kind):
                    grown[kind].setdefault(one.column, own)
        called = self.roles.domain
        if called not in (None, "domain", *groups) and (keep is None or called in keep):
            groups[str(called)] = domain
        if keep is not None and ITEMS in keep and ITEMS not in groups:
            # As many values as there are items.
            groups[ITEMS] = np.array([k if isinstance(k, str) else k[0] for k in names], object)
        return {
            **wide,
            **grown,
            "votes": ballots,
            "models": models,
            "repeated_votes": None if again is None or self.duplicates == "last" else votes[again],
            "domain": domain,
            "item": ITEMS if ITEMS in groups else None,
            "notes": (*wide["notes"], *self.notes, *notes),
        }

    def _repeated(self, votes: Ints, kept: Ints) -> tuple[Array | None, list[str]]:
        """Which votes (V, 3) come beside another by the same annotator on the same item."""
        pair = votes[:, 0] * (votes[:, 1].max() + 1) + votes[:, 1]
        again = repeats(pair)
        size = int(again.sum())
        if not size:
            return None, []
        if self.duplicates == "last":
            note = f"{size:,} votes are left out: their annotators vote on the same items again"
            return repeats(pair[::-1])[::-1], [f"{note} later (--duplicates last)"]
        if self.duplicates == "keep":
            note = f"{size:,} repeated votes of annotators on the same items count as well"
            return again, [f"{note} (--duplicates keep)"]
        second = int(np.flatnonzero(again)[0])
        first, row = kept[[int(np.flatnonzero(pair == pair[second])[0]), second]].tolist()
        item, annotator = (
            names.texts[names.codes[row]] for names in (self.items, self.annotators)
        )  # fmt: skip
        pairs = len(np.unique(pair[again])) - 1
        raise RepeatedVotesError(
            f"annotator {quoted(annotator)} votes on item {quoted(item)} more than once "
            f"({self.place(first)} and {self.place(row)})"
            + f", and {pairs:,} more pairs do so" * (pairs > 0)
            + ": --duplicates keep counts every vote, --duplicates last the last one"
        )

    def _known_labels(self, known: Names, item: Ints, kept: Ints, n: int, classes: Classes) -> Ints:
        """The known label of every item, (n,), which all rows of the item say."""
        answers = classes.indices(known, self.place)[kept].astype(np.int64)
        there = np.flatnonzero(answers >= 0)
        labels = _first_of_each(answers[there], item[there], n)
        odd = there[labels[item[there]] != answers[there]]
        if odd.size:
            first, other = (classes.texts[k] for k in (labels[item[odd[0]]], answers[odd[0]]))
            raise InputError(
                f"the known labels (column {quoted(known.column)}) of one item differ: "
                f"{quoted(first)} and, in {self.place(int(kept[odd[0]]))}, {quoted(other)}; an "
                "item has one"
            )
        return labels

    def _of_items(
        self, names: Names, keys: Sequence[Key], item: Ints, kept: Ints, what: str, mend: str
    ) -> Array:
        """What all votes on an item agree on, (n,)."""
        codes = names.codes[kept]
        of_item = _first_of_each(codes, item, len(keys))
        odd = np.flatnonzero(of_item[item] != codes)
        if odd.size:
            raise InputError(
                f"item {quoted(keys[item[odd[0]]])} has votes in several {what} (again in "
                f"{self.place(int(kept[odd[0]]))}), {mend}"
            )
        return np.array([*names.texts, None], dtype=object)[of_item]

    def with_labels(self, kept: KeptLabels) -> LongVotes:
        """The votes with labels that are kept apart, where the items have none of their own."""
        items, together = self.items, self.items.column
        if self.domains is not None:
            codes, keys = _item_codes(items, self.domains)
            if kept.item != together:
                texts = tuple(", ".join(map(str, key)) for key in keys)
                items, together = replace(items, codes=codes, texts=texts), kept.item
            elif {i for i, n in Counter(k[0] for k in keys).items() if n > 1} & {*kept.by_item}:
                together = f"{together},{self.domains.column}"
        if kept.item != together:
            raise InputError(
                f"items are named by {quoted(together)} together, and {kept.name} says by "
                f"{quoted(kept.item)} alone which one a label is of: give it these columns"
            )
        labels = pa.array(fill_in(self.known, items, kept, self.place), pa.string())
        table = Table.of({"label": pa.chunked_array([labels])}, len(labels))
        return replace(self, known=Names.of(table, "label"), notes=(*self.notes, *kept.notes))


Key = str | tuple[str, str | None]
"""What identifies an item: its name, or name and domain if both files have a domain."""


def open_votes(source: Any, options: ColumnOptions) -> tuple[Source, ColumnOptions]:
    """Open long votes, a file, a folder or a frame, and say what the options are of them."""
    located = locate(source)
    with naming_file("votes" if located is None else located.name):
        if located is not None and located.kind == "NPZ":
            raise InputError("holds arrays; save votes as a table with item, annotator and label")
        return shaped(open_source(source, located, "votes"), options)


def read_votes(
    source: Source, options: ColumnOptions, duplicates: Duplicates, *, alone: bool = False
) -> LongVotes:
    """Read long votes of a table."""
    source = with_item(source, options.votes.get("item"))
    roles = assign_vote_roles(source.names, options, alone=alone)
    known = options.label if alone else None
    if known is not None and known not in source.names:
        raise InputError(missing_column(known, source.names, "--label"))
    gold = () if known is None else (known,)
    table = source.read((), (*roles.columns, *gold))
    if table.n_rows == 0:
        raise InputError("there are no rows; a file of votes needs at least one")
    place = table.place if source.name is not None else "vote {} (from 0)".format
    items, annotators = (
        _identities(table, column, what, place)
        for column, what in ((roles.item, "item"), (roles.annotator, "annotator"))
    )
    domains = None if roles.domain is None else Names.of(table, roles.domain, group_text)
    labels = Names.of(table, roles.label)
    different, n_votes = len(labels.texts), int((labels.codes >= 0).sum())
    if different > MOST_CLASSES_UNASKED and 2 * different > n_votes:
        raise InputError(
            f"column {quoted(labels.column)} has {different:,} different values in {n_votes:,} "
            f"votes, such as {listed(map(quoted, labels.texts), 3)}: they are no classes; name the "
            "column of the votes with --answer COL"
        )
    of_items = tuple(Names.of(table, column, group_text) for column in roles.of_items)
    known_labels = None if known is None else Names.of(table, known)
    return LongVotes(
        source.name or "votes", roles, items, annotators, labels, domains, place, duplicates,
        known_labels, of_items,
    )  # fmt: skip


MOST_CLASSES_UNASKED = 20
"""With more different votes, each must occur twice on average to be a class."""


def item_keys(table: Table, roles: Roles, votes: LongVotes) -> list[Key]:
    """The keys of the wide table's items when votes are joined to them."""
    if roles.item is None:
        return []
    items = _identities(table, roles.item, "item", table.place)
    domains = None if roles.domain is None else Names.of(table, roles.domain, group_text)
    codes, texts = _item_codes(items, None if votes.domains is None else domains)
    repeated = np.flatnonzero(repeats(codes))
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


def _item_codes(items: Names, domains: Names | None) -> tuple[Ints, Sequence[Key]]:
    """Codes (n,) of items, with their domains if these are given, and what they stand for."""
    if domains is None:
        return items.codes, items.texts
    width = len(domains.texts) + 1
    distinct, codes = np.unique(items.codes * width + domains.codes + 1, return_inverse=True)
    texts = (*domains.texts, None)  # Code 0 is that of no domain.
    return codes, [(items.texts[c // width], texts[c % width - 1]) for c in distinct.tolist()]


def _numbered(codes: Ints, texts: Sequence[Key], known: dict[Key, int]) -> Ints:
    """The number of each row's text: as known, else counted on by first appearance."""
    distinct, first, place = np.unique(codes, return_index=True, return_inverse=True)
    number = np.empty(len(distinct), dtype=np.int64)
    for u in np.argsort(first).tolist():
        number[u] = known.setdefault(texts[distinct[u]], len(known))
    out: Ints = number[place]
    return out


def _first_of_each(codes: Ints, item: Ints, n: int) -> Ints:
    """What the first row of every item says, (n,); -1 where it has none."""
    out = np.full(n, UNKNOWN, dtype=np.int64)
    out[item[::-1]] = codes[::-1]
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
    for name, fill in (("labels", UNKNOWN), ("histogram", 0), ("label_weight", 1.0)):
        if (array := wide.get(name)) is not None:
            grown[name] = _longer(array, n, fill)
    grown["domain"] = None if wide["domain"] is None else _longer(wide["domain"], n, None)
    for several in ("groups", "clusters"):
        grown[several] = {name: _longer(one, n, None) for name, one in wide[several].items()}
    return grown


def _longer(array: Array, n: int, missing: Any) -> Array:
    out = np.full((n, *array.shape[1:]), missing, dtype=array.dtype)
    out[: len(array)] = array
    return out


class Label(NamedTuple):
    """What somebody says of an item, where that stands, and its weight if it was drawn."""

    item: str
    text: str
    by: str
    where: str
    weight: float | None = None


@dataclass(frozen=True)
class KeptLabels:
    """Labels kept apart, of files called `name`, joined by the column `item` of the table."""

    name: str
    item: str
    labels: tuple[Label, ...]
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def by_item(self) -> dict[str, Label]:
        """The one label of each item."""
        found: dict[str, Label] = {}
        for label in self.labels:
            first = found.setdefault(label.item, label)
            if first.text != label.text:
                both = [f"{quoted(one.text)} ({one_line(one.where)})" for one in (first, label)]
                raise InputError(
                    f"item {quoted(label.item)} has two labels: {' and '.join(both)}; keep one of "
                    "them, judge by all of them with --labels-as counts, or take annotators for "
                    "classifiers with --labels-as votes"
                )
        return found

    def written_as(self, known: Sequence[str]) -> KeptLabels:
        """The labels of items as these are written in the table."""
        items = as_known([label.item for label in self.labels], known)
        each = zip(self.labels, items, strict=True)
        return replace(self, labels=tuple(label._replace(item=item) for label, item in each))

    @property
    def first_of_each(self) -> KeptLabels:
        """The first label of each item alone."""
        first = {label.item: label for label in reversed(self.labels)}
        return replace(self, labels=tuple(first.values()))


class SeveralLabelsError(InputError):
    """A file of labels has several columns of them, and nothing says which is meant."""


class NoKeyError(SeveralLabelsError):
    """A file of labels has no column that names the items."""


def read_labels(
    source: Any, table: Source, options: ColumnOptions, *, several: bool = False
) -> KeptLabels:
    """Read labels that are kept apart, from a record or table, or a list of several."""
    listing = isinstance(source, list | tuple) and not all(isinstance(s, Mapping) for s in source)
    each = [_kept(one, table, options, several) for one in (source if listing else [source])]
    item = each[0].item
    items = names_of(with_item(table, item), (item,))[item]
    each = [kept.written_as(items.texts) for kept in each]
    return KeptLabels(
        listed([kept.name for kept in each]),
        item,
        tuple(label for kept in each for label in kept.labels),
        tuple(dict.fromkeys(c for kept in each for c in kept.classes)),
        tuple(note for kept in each for note in (*_strangers(items, kept), *kept.notes)),
    )


def _strangers(items: Names, kept: KeptLabels) -> list[str]:
    """A note on labels that are of no item here; refused where all are."""
    known = {*items.texts}
    labeled = list(dict.fromkeys(label.item for label in kept.labels))
    strangers = sum(item not in known for item in labeled)
    if strangers == len(labeled):
        here = f", here {quoted(items.texts[0])}" if items.texts else ""
        raise InputError(
            f"no item of {kept.name} is in column {quoted(kept.item)}; are the items the same? "
            f"there {quoted(labeled[0])}{here}"
        )
    note = (
        f"{strangers:,} of {len(labeled):,} labels in {kept.name} are of items that are not in the "
        "file; they are not used"
    )
    return [note] * bool(strangers)


def _kept(source: Any, table: Source, options: ColumnOptions, several: bool) -> KeptLabels:
    if isinstance(source, str | Path) and is_record(source):
        return _of_record(str(source), table, options)
    located = locate(source)
    name = "labels" if located is None else located.name
    with naming_file(name):
        opened, theirs, item = _paired(source, located, table, options)
        rest = [n for n in opened.names if n not in (theirs, *theirs.split(","))]
        wanted = [n for n in (options.label, options.votes.get("label"), "label") if n in rest]
        likely = wanted[:1] or [n for n in rest if names_role(n, "label")] or rest
        notes = list[str]()
        if not rest:
            raise InputError(f"has no column of labels beside {quoted(theirs)}, which names items")
        if len(likely) != 1:
            held = names_of(opened, [theirs, *rest])
            people = [n for n in rest if names_role(n, "annotator")]
            items, by = held[theirs].codes, held[[*people, theirs][0]]
            both = items * (len(by.texts) + 1) + by.codes
            if len(people) == 1 and repeats(items).any() and not repeats(both).any():
                likely = [n for n in rest if n not in people]  # a row for each label of an item
        if len(likely) != 1:
            few = [n for n in rest if 1 < len(held[n].texts) <= MOST_CLASSES_UNASKED]
            each = opened.read((), few) if few else None
            likely = list(consensus_of([profile(each, n, options) for n in few if each]))
            what = "is what most of the others say, and read as the labels (--label COL: another)"
            notes = [f"{name}: {quoted(n)} {what}" for n in likely]
        if len(likely) != 1:
            ways = [f"--label {shlex.quote(n)}" for n in few[:-_MOST_WAYS:-1] or ["COL"]]
            raise SeveralLabelsError(
                f"no column 'label'; the columns are {listed(map(quoted, rest))}: say which it is "
                f"with {' or '.join(ways)}"
            )
        who = options.votes.get("annotator") or "annotator"
        columns = [theirs, str(likely[0]), *([who] if several and who in rest else [])]
        rows = _rows_of(opened, columns, name, several=several)
        times = Counter((one.item, one.text) for one in rows if not several)
        twice = listed((quoted(item) for (item, _), n in times.items() if n > 1), 3)
        notes += [f"{name}: the same label of an item twice counts once: {twice}"] * bool(twice)
        return KeptLabels(name, item, rows, notes=tuple(notes))


_MOST_WAYS = 9
"""One more than the columns that are proposed; that of the labels is often the last."""


def _paired(
    source: Any, located: Located | None, table: Source, options: ColumnOptions
) -> tuple[Source, str, str]:
    """A file of labels, its column of items, and that of the table: by their names, or values."""
    found_so, located = open_beside(source, located, "labels")
    named_so = located is None or located.fragment != NO_HEADER
    own = options if named_so else replace(options, item=None)
    domain = options.votes.get("domain")  # an item of two is two
    if own.item is not None and {own.item, domain} <= {*found_so.names}:
        own = options = replace(options, item=f"{own.item},{domain}")
    table = with_item(table, options.item)
    opened = with_item(shaped(found_so, own)[0], own.item, (table,))
    names = opened.names
    if {"event", "item", "annotator"} <= set(names):
        raise InputError(
            "holds the events of a record of labels without its first line, which says of "
            "which items it is; put that line back, or restore the record from a copy"
        )
    theirs = [c for c in (options.item, "item") if named_so and c is not None and c in names][:1]
    shared = [n for n in names if named_so and n and n in table.names and may_name_items(n)]
    named = [n for n in shared if names_items(n)]
    # A table of two columns, one of which is that of the labels: the other names the items.
    others = [n for n in names if n and not names_role(n, "label") and n != options.label]
    found = theirs or (named if len(named) == 1 else shared)
    found = found if len(found) == 1 else others if len(names) == 2 and len(others) == 1 else []
    one = [n for n in found or shared if n in table.names and item_in_name(n)][:1]
    if options.item is None and one:
        several = _named_together(table, opened, one[0])
        if len(several) == 1:
            return _paired(source, located, table, replace(options, item=several[0]))
    item = _item_of(table, options, found[0] if found else None)
    pair = (item, found[0]) if found and item else same_values(table, opened, item, options=options)
    if pair is None:
        # What names items of its own is never joined by the order of the rows.
        keyed = options.item is not None or found or any(item_in_name(n) > 1 for n in names)
        kind = InputError if keyed else NoKeyError
        both = shlex.quote(",".join(shared)) if len(shared) == 2 else "COL"
        raise kind(
            f"none of its columns ({listed(map(quoted, names))}) has the values of "
            f"{quoted(item) if item else 'a column of items'} in the table: write items alike in "
            f"both, in columns of one name, and say which with --item {both}"
        )
    heads = {*map(class_text, names), ", ".join(pair[1].split(","))}
    if (
        pair[1] not in theirs
        and located is not None
        and named_so
        and heads & {*names_of(with_item(table, pair[0]), pair[:1])[pair[0]].texts}
    ):
        return _paired(source, replace(located, fragment=NO_HEADER), table, options)
    return with_item(opened, pair[1]), pair[1], pair[0]


def _named_together(table: Source, labels: Source, item: str) -> list[str]:
    """What names items that come several times, with a further column of both (A,B)."""
    more = [n for n in labels.names if n != item and n in table.names and truth_in_name(n) == 0]
    more = [n for n in more if may_name_items(n) or name_evidence(n, "factor") > 0]
    own = names_of(table, (item, *more)) if more else {}
    if not more or not repeats(own[item].codes).any():
        return []
    theirs = names_of(labels, (item, *more))
    pairs = {
        n: [{*zip(one[item].each(), one[n].each(), strict=True)} for one in (own, theirs)]
        for n in more
    }
    rows = len(theirs[item].codes)
    return [
        f"{item},{n}" for n, (here, there) in pairs.items()
        if len(here) > len(own[item].texts) and len(there) == rows and 2 * len(here & there) > rows
    ]  # fmt: skip


def _item_of(table: Source, options: ColumnOptions, theirs: str | None) -> str | None:
    """The column of a table that labels are joined to; None where its values have to say."""
    if options.item is not None:
        if options.item not in table.names:
            raise InputError(
                missing_column(options.item, table.names, "what labels are joined by")
                + "; say which it is with --item COL"
            )
        return options.item
    alike = [name for name in table.names if names_items(name)]
    there = [c for c in ("item", theirs, *(alike if len(alike) == 1 else [])) if c in table.names]
    return there[0] if there else None


def _rows_of(
    opened: Source, columns: Sequence[str], name: str, *, several: bool
) -> tuple[Label, ...]:
    """The labels of a table, each of the annotator that it names, else the first, the second ..."""
    table = opened.read((), columns)
    each = (Names.of(table, c, lambda value: class_text(value) or None) for c in columns)
    cells = zip(*(names.each() for names in each), strict=True)
    met: Counter[str] = Counter()
    found: list[Label] = []
    for row, (key, text, *person) in enumerate(cells):
        if key is None or text is None:
            continue
        met[key] += 1
        if person == [None]:
            raise InputError(f"{table.place(row)} has a label and no annotator; say whose it is")
        who = person[0] if person else f"label {met[key]}" if several else Path(name).name
        found.append(Label(key, text, who, f"{table.place(row)} of {name}"))
    again = Counter((one.item, one.by) for one in found if len(columns) > 2)
    twice = next((one for one in reversed(found) if again[one.item, one.by] > 1), None)
    if twice is not None:
        raise InputError(
            f"annotator {quoted(twice.by)} labels item {quoted(twice.item)} more than once (again "
            f"in {twice.where}); keep one of them"
        )
    if not found:
        raise InputError("there are no labels in it; every cell of the column of labels is empty")
    return tuple(found)


def labels_of(record: LabelRecord, name: str) -> tuple[Label, ...]:
    """The labels of a record."""
    by, weights = record.decisions, record.weights
    return tuple(
        Label(item, text, by[item].annotator, f"{by[item].annotator}, {name}", weights.get(item))
        for item, text in record.labels.items()
    )


def _of_record(path: str, table: Source, options: ColumnOptions) -> KeptLabels:
    """The labels of a record, held to the items of the table."""
    record = read_record(path)
    if not record.labels:
        raise InputError(f"{path}: there are no labels in it yet; `fewlabels label` adds them")
    item = _item_of(table, options, record.header.item)
    if item is None:
        missing = missing_column(record.header.item, table.names, "what labels are joined by")
        raise InputError(f"{missing}; say which it is with --item COL")
    here = items_here(table, item, record, table.name or "the frame")
    with naming_file(path):
        notes = (f"{path}: {note}" for note in record.match(here))
    return KeptLabels(
        path, item, labels_of(record, path), record.header.classes, (*record.notes(path), *notes)
    )


def differs(source: Source, item: str, label: str, kept: KeptLabels) -> bool:
    """Whether the source's own column says something else of an item than the labels."""
    if label not in source.names:
        return False
    names = names_of(source, (item, label))
    with suppress(InputError):
        fill_in(names[label], names[item], kept.first_of_each, "row {}".format)
        return False
    return True


def labels_as_votes(kept: KeptLabels, duplicates: Duplicates) -> LongVotes:
    """Labels kept apart as long votes, so that every annotator is a classifier."""
    rows = ((label.item, label.by, label.text) for label in kept.labels)
    columns = zip(*rows, strict=True)
    table = pa.table({n: pa.array(c, pa.string()) for n, c in zip(VOTES, columns, strict=True)})
    votes = read_votes(open_source(table, None), ColumnOptions(), duplicates)
    return replace(votes, name=kept.name)


_EVEN = 1e-9
"""Weights closer to 1 are of labels drawn with equal probability."""

VOTES = ("item", "annotator", "label")
"""The columns of long votes, by their usual names."""


def fill_in(own: Names | None, items: Names, kept: KeptLabels, place: Place) -> list[str | None]:
    """The labels of rows by their items; a row's own label counts, and none may differ."""
    of_item = [*(one and one.text for one in map(kept.by_item.get, items.texts)), None]
    joined = [of_item[i] for i in items.codes.tolist()]
    for row, k in enumerate([] if own is None else own.codes.tolist()):
        mine = own.texts[k] if own is not None and k >= 0 and own.texts[k] not in NO_LABEL else ""
        label = joined[row]
        if mine and label is not None and mine != label:
            raise InputError(
                f"item {quoted(items.texts[items.codes[row]])} has two labels: {quoted(mine)} in "
                f"{place(row)} and {quoted(label)} in {kept.name}; correct one of them"
            )
        joined[row] = mine or label
    return joined


@dataclass(frozen=True)
class WithLabels(Derived):
    """A source with labels that are kept apart: in its column `label`, which they fill.

    Where `label` is None, how many of them name each class, in columns `h__<class>`.
    """

    inner: Source
    kept: KeptLabels
    item: str
    label: str | None

    @property
    def label_is_own(self) -> bool:
        """Whether the table has a column of labels of its own."""
        return self.label in self.inner.names

    @cached_property
    def counts(self) -> dict[str, Counter[str]]:
        """Column -> item -> how many labels."""
        texts = dict.fromkeys([*self.kept.classes, *(label.text for label in self.kept.labels)])
        found = {f"h__{text}": Counter[str]() for text in texts}
        for label in self.kept.labels:
            found[f"h__{label.text}"][label.item] += 1
        return found

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns, and those of the labels last."""
        if self.label is not None:
            return tuple(dict.fromkeys([*self.inner.names, self.label]))
        own = [name for name in self.inner.names if name.startswith("h__")]
        if own:
            raise InputError(
                f"column {quoted(own[0])} already counts annotators; leave out --labels-as counts, "
                "or the column"
            )
        return (*self.inner.names, *self.counts)

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Read some columns; labels are joined by the item."""
        made = {self.label} if self.label is not None else {*self.counts}
        asked = [n for n in dict.fromkeys([*numbers, *texts]) if n in made]
        there = {*self.inner.names}
        table = self.inner.read(
            [n for n in numbers if n in there],
            [t for t in dict.fromkeys([*texts, self.item]) if t in there],
        )
        if not asked:
            return table
        items = Names.of(table, self.item)
        table.notes.extend(self.kept.notes)
        labeled = {label.item for label in self.kept.labels}
        known = np.array([*(text in labeled for text in items.texts), False])[items.codes]
        again = np.flatnonzero(known & repeats(items.codes))
        if len(again):
            code = items.codes[again[0]]
            first, second = np.flatnonzero(items.codes == code)[:2].tolist()
            raise InputError(
                f"item {quoted(items.texts[code])} is in {table.place(first)} and in "
                f"{table.place(second)}, so its label cannot be joined; give each item one row"
            )
        if self.label is not None:
            own = Names.of(table, self.label) if self.label_is_own else None
            filled = pa.array(fill_in(own, items, self.kept, table.place), pa.string())
            return table.with_columns({self.label: [pa.chunked_array([filled])]})
        keys = [items.texts[i] if i >= 0 else "" for i in items.codes.tolist()]
        counted = {n: pa.array([self.counts[n][key] for key in keys]) for n in asked}
        return table.with_columns({n: [pa.chunked_array([c])] for n, c in counted.items()})

    def weights(self, table: Table) -> Floats | None:
        """Weights of the labels, (n,), by how they were drawn; None if all were equal."""
        labels = self.kept.by_item.values() if self.label is not None else ()
        of = {one.item: one.weight for one in labels if one.weight is not None}
        if all(abs(weight - 1) < _EVEN for weight in of.values()):
            return None
        items = Names.of(table, self.item)
        drawn = [of.get(text, 1.0) for text in items.texts]
        other = len(labels) - len(of)
        if other:
            table.notes.append(
                f"{other:,} labels in {self.kept.name} were not drawn with a known probability; "
                "beside those that were, each counts as one"
            )
        return np.array([*drawn, 1.0])[items.codes]
