"""Which column is what in a file that nobody has described: by its values, helped by its names.

Nothing is guessed between two readings: where both are possible, the file is refused, and the
message shows how each of them is said. What is recognised is told in the first lines of a result.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fewlabels.checks.class_words import (
    MAYBE_NO_LABEL,
    folded,
    polarity,
    positive_index,
    same_answer,
)
from fewlabels.data.classes import of_two_signs
from fewlabels.data.options import ColumnOptions
from fewlabels.data.profiles import (
    OF_ITSELF,
    Profile,
    class_of_name,
    class_of_one,
    differences,
    is_role,
    names_chance,
    names_percentages,
    names_truth,
    profile,
    tokens,
    truth_in_name,
    without_role,
)
from fewlabels.data.roles import (
    LIKE_LABELS,
    LIKE_WEIGHTS,
    SAMPLING_WEIGHTS,
    missing_column,
    places,
    split_native,
)
from fewlabels.data.table import Names, Source, Table, in_order
from fewlabels.errors import InputError, listed, quoted
from fewlabels.kernels.arrays import Array


@dataclass(frozen=True)
class Reading:
    """What was recognised: the options that say it, in lines, and whether the rows are votes.

    `lines` are empty where the caller and the native names say everything. `votes` says that every
    row is the vote of an annotator.
    """

    options: ColumnOptions
    lines: tuple[str, ...] = ()
    votes: bool = False


class AmbiguousError(InputError):
    """A file can be read in two ways; `readings` are the options of each."""

    def __init__(self, message: str, readings: Sequence[Sequence[str]]) -> None:
        self.readings = tuple(" ".join(map(shlex.quote, reading)) for reading in readings)
        super().__init__(f"{message}: say which with {' or '.join(self.readings)}")


_MANY_ITEMS = 40
"""So many votes never agree in all items by chance."""


def votes_in_rows(profiles: Sequence[Profile], options: ColumnOptions) -> Reading | None:
    """Rows that are votes of annotators: an item and an annotator that both recur."""
    columns = [p for p in profiles if p.filled == p.rows]
    votes = options.votes
    people = [p for p in columns if p.like_annotator and not p.unique and p.distinct > 1]
    people = [p for p in columns if p.name == votes.get("annotator")] or people
    items = [p for p in columns if not p.unique and p.like_item and p not in people]
    items = [p for p in items if p.counts is None or p.distinct > 2]
    items = [p for p in columns if p.name == (options.item or votes.get("item"))] or items
    items = [p for i, p in enumerate(items) if not any(map(p.names_alike, items[:i]))]
    answers = [
        p for p in profiles
        if p.counts and len(p.counts) > 1 and p not in people and p not in items
    ]  # fmt: skip
    gold = [p for p in answers if p.like_truth == 3 and p.name != "label"]
    said = [p for p in answers if p not in gold and p.like_answer]
    if items and not gold and items[0].rows >= 2 * items[0].distinct >= _MANY_ITEMS:
        # What is the same in all rows of an item is the item's label, and no vote.
        gold = []
        for p in said:
            filled = p.codes >= 0
            same = p.pairs(items[0], filled) == len(np.unique(items[0].codes[filled]))
            if p.like_truth == 3 and filled.any() and same:
                gold.append(p)
        said = [p for p in said if p not in gold]
    said = [p for p in answers if p.name == votes.get("label")] or said
    if not (len(people) == 1 and items):
        return None
    if people[0].pairs(items[0]) < 0.5 * items[0].rows or items[0].distinct >= items[0].rows:
        return None  # annotators see most items more than once: the rows are something else
    if not said:
        if people[0].like_annotator and any(p.in_unit and not p.whole for p in columns):
            raise InputError(
                f"each row is what one of {people[0].distinct} ({quoted(people[0].name)}) says "
                f"of an item ({quoted(items[0].name)}), and probabilities of many rows per "
                "item are not joined: give each item one row and each classifier a column"
            )
        return None
    if len(items) > 1:
        raise AmbiguousError(
            f"each row is an annotator's vote, and columns "
            f"{listed(quoted(p.name) for p in items)} may each name the item",
            [["--votes", "--item", p.name] for p in items[:3]],
        )
    said = [p for p in said if p.name == "label"] or said
    if len(said) > 1:
        raise AmbiguousError(
            f"each row is an annotator's vote, and columns "
            f"{listed(quoted(p.name) for p in said)} may each hold it",
            [["--votes", "--answer", p.name] for p in said[:3]],
        )
    votes = {"item": items[0].name, "annotator": people[0].name, "label": said[0].name}
    known = gold[0].name if len(gold) == 1 else None
    options = replace(options, votes=votes, label=options.label or known)
    lines = [
        f"votes, one per row: item {quoted(items[0].name)}, annotator "
        f"{quoted(people[0].name)}, vote {quoted(said[0].name)}"
    ]
    if options.label is not None:
        lines.append(f"labels: column {quoted(options.label)}, one per item")
    return Reading(options, tuple(lines), votes=True)


_LEAST_TOGETHER = 10
"""Rows that two columns must share before their agreement says anything."""

_AGREE = 0.2
"""Agreement beyond chance (kappa) from which a column of the labels' values is a prediction."""

_APART = 3.0
"""Standard errors from which numbers rank the classes of the labels."""

_LEAST_FILLED_TOGETHER = 2
_NEARLY_ALL = 0.9

ITEM_NAMES = re.compile(r"(?i)(item|example|doc|sample|row|record)?_?(id|uuid)|uuid")
"""Names of columns that name the items, where all their values differ."""


def recognise(source: Source, options: ColumnOptions, *, joined: bool = False) -> Reading:
    """Complete what the caller says of the columns; see `_recognised`. Weights come first."""
    weight, perhaps = _weights(source, options)
    found = _recognised(
        source, options if weight is None else replace(options, weight=weight), joined=joined
    )
    if found.votes:  # which have no weights
        return replace(found, options=replace(found.options, weight=options.weight))
    lines = found.lines
    if weight is not None and not any(line.startswith(_WEIGHT_LINE) for line in lines):
        lines = (*lines, _weight_line(weight))
    return replace(found, options=replace(found.options, perhaps_weights=perhaps), lines=lines)


_WEIGHT_LINE = "sampling weights"


def _weight_line(column: str) -> str:
    return f"{_WEIGHT_LINE}: column {quoted(column)} (rename it if it is something else)"


def _weights(source: Source, options: ColumnOptions) -> tuple[str | None, tuple[str, ...]]:
    """The column of sampling weights, where one says by its name what it is, and those to ask of.

    Only numbers that are not negative, and not all the same, weigh anything. They are used where
    every row has one above 0, and of inverse probabilities none is below 1.
    """
    names = [name for name in source.names if LIKE_WEIGHTS.fullmatch(name)]
    said = {options.label, options.domain, options.item, *(options.keep or ())}
    said |= options.of_classifiers
    names = [n for n in names if n not in said and source.names.count(n) == 1]
    if options.weight is not None or "weight" in source.names or not names:
        return None, ()
    table = source.read((), names)
    columns = [profile(table, name, options) for name in names]
    columns = [p for p in columns if p.distinct > 1 and len(p.known) and p.known.min() >= 0]
    sure = [
        p.name for p in columns
        if SAMPLING_WEIGHTS.fullmatch(p.name) and p.filled == p.rows and p.known.min() > 0
        and (p.known.min() >= 1 or not p.says({"inverse", "inv", "ip", "ipw"}))
    ]  # fmt: skip
    if len(sure) == 1:
        return sure[0], ()
    return None, tuple(p.name for p in columns)


def _recognised(source: Source, options: ColumnOptions, *, joined: bool) -> Reading:
    """Complete the options, if nothing says which columns hold predictions.

    If `joined`, votes or labels kept apart are joined to this table, which may then lack either.
    """
    names = [name for name in source.names if name]
    native = [name for name in names if split_native(name) is not None]
    alone = not (native or options.names_classifiers or joined)
    named = [
        ("--label", options.label), ("--domain", options.domain), ("--weight", options.weight),
        ("--item", options.item), *(("a group", name) for name in options.keep or ()),
        *(("--cluster", name) for name in options.cluster),
    ]  # fmt: skip
    for what, asked in named:
        if asked is not None and asked not in names:
            if alone:
                raise InputError(missing_column(asked, names, what))
            return Reading(options)  # `assign_roles` says that there is no such column
    if len(set(names)) < len(names):
        return Reading(options)  # `assign_roles` refuses it in better words
    if alone:
        table = source.read((), names)
        return _Recognition(table, names, options).reading() if table.n_rows else Reading(options)
    reading = _label_by_name(source, names, options)
    if joined or reading.options.label is not None or not options.names_classifiers:
        return reading
    if "label" in names:
        rest = [n for n in names if n != "label" and n not in options.of_classifiers]
        others = [n for n in rest if names_truth(n)]
        if others and not native:
            both = listed(map(quoted, ["label", *others]))
            raise AmbiguousError(
                f"columns {both} may each hold the known labels",
                [["--label", name] for name in ["label", *others][:3]],
            )
        return reading
    # Whoever names the classifiers has not said that there are no labels.
    table = source.read((), names)
    if not table.n_rows:
        return reading
    return _Recognition(table, names, reading.options).labels_beside_named()


def _label_by_name(source: Source, names: Sequence[str], options: ColumnOptions) -> Reading:
    """The label, where a column is named like one and nothing else is; and the items' names."""
    named = [name for name in names if ITEM_NAMES.fullmatch(name)]
    if options.item is None and "item" not in names and len(named) == 1:
        found = profile(source.read((), named), named[0], options)
        if found.unique and found.filled == found.rows:
            options = replace(options, item=named[0])
    if options.label is not None or "label" in names:
        return Reading(options)
    claimed = {*options.of_classifiers, options.domain, options.weight, options.item}
    claimed |= {*options.cluster}
    free = [n for n in names if n not in claimed and split_native(n) is None]
    alike = [n for n in free if LIKE_LABELS.fullmatch(n) or truth_in_name(n) == 3]
    if len(alike) != 1:
        return Reading(options)
    table = source.read((), alike)
    found = profile(table, alike[0], options)
    if found.counts is None or not found.filled or found.confirms:
        return Reading(options)
    classes = {folded(parts[2]) for n in names if (parts := split_native(n)) and parts[0] in "ph"}
    hard = [n for n in names if (parts := split_native(n)) and parts[0] == "y"]
    if hard and not classes:
        held = source.read((), hard)
        for column in hard:
            classes |= set(profile(held, column, options).counts or ())
    strangers = [t for t in found.counts if same_answer(t, sorted(classes)) is None]
    if len(strangers) > (2 if not classes else 1 if len(classes) == 1 else 0):
        return Reading(options)
    return Reading(replace(options, label=alike[0]), (_label_line(found, table),))


def _label_line(label: Profile, table: Table) -> str:
    held = Names.of(table, label.name).counts()
    none = f"; -1 is unlabeled, {held['-1']:,} rows" if held.get("-1") else ""
    return f"labels: column {quoted(label.name)} ({label.filled:,} of {label.rows:,} rows{none})"


def _ranked_apart(numbers: Array, labels: Array) -> float | None:
    """By how many standard errors one class's numbers rank above the other's (Mann-Whitney)."""
    known = (labels >= 0) & ~np.isnan(numbers)
    above = labels[known] == 1
    m, n = int(above.sum()), int((~above).sum())
    if min(m, n) < 2 or m + n < _LEAST_TOGETHER:
        return None
    _, place, count = np.unique(numbers[known], return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    area = (ranks[above].sum() - m * (m + 1) / 2) / (m * n)
    return float(abs(area - 0.5) / np.sqrt((m + n + 1) / (12 * m * n)))


@dataclass
class _Recognition:
    """The columns of one table, and what has been found of them so far."""

    table: Table
    names: Sequence[str]
    options: ColumnOptions
    probabilities: dict[str, tuple[str, ...]] = field(default_factory=dict)
    hard: dict[str, str] = field(default_factory=dict)
    scores: dict[str, str] = field(default_factory=dict)
    confidence: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    claimed: frozenset[str] = frozenset()
    doubted: list[Profile] = field(default_factory=list)
    flags: list[Profile] = field(default_factory=list)
    nameless: str | None = None

    def __post_init__(self) -> None:
        named = (self.options.label, self.options.domain, self.options.weight, self.options.item)
        found = {n: profile(self.table, n, self.options) for n in self.names}
        # "none" and "unknown" are no label, unless several columns say so.
        said = Counter(t for p in found.values() for t in set(map(folded, p.counts or ())))
        none = {word for word in MAYBE_NO_LABEL if said[word] < 2}
        self.columns = {name: p.without(none) for name, p in found.items()}
        of_role = (*named, *(self.options.keep or ()), *self.options.cluster, "domain", "weight")
        self.taken |= {name for name in of_role if name in self.columns}
        native = {name for name in self.names if split_native(name) is not None}
        self.claimed = self.options.of_classifiers | native

    def free(self) -> list[Profile]:
        """Columns that have no role yet."""
        return [p for name, p in self.columns.items() if name not in self.taken and p.filled]

    def reading(self) -> Reading:
        """Everything, in the order in which one thing tells the next."""
        votes = votes_in_rows(list(self.columns.values()), self.options)
        if votes is not None:
            return votes
        item = self._item()
        label = self._label()
        classes = self._classes(label)
        self._families(classes)
        self._hard(label, classes)
        self._numbers(label, classes)
        if not (self.probabilities or self.hard or self.scores):
            held = {} if label is None else Names.of(self.table, label.name).counts()
            if label is not None and (said := of_two_signs(label.name, held, self.options)):
                raise InputError(said)
            if spoiled := list(self._spoiled()):
                raise InputError(f"no prediction columns: {'; '.join(spoiled)}")
            self._refuse_alike(label)
            return Reading(self.options)  # `assign_roles` says that there are no predictions
        self._drop_shared_prefix()
        options = replace(
            self.options,
            label=None if label is None else label.name,
            item=item,
            models=self.probabilities,
            hard=self.hard,
            scores=self.scores,
            confidence=self.confidence,
        )
        return Reading(options, tuple(self._lines(label, item)))

    def labels_beside_named(self) -> Reading:
        """The labels and the items' names, where the caller has named the classifiers alone.

        What nobody has named is taken for the labels only if its name is like theirs, and its
        values go with what the classifiers say; else a line says how to name it.
        """
        try:
            label = self._label()
        except AmbiguousError as error:
            return Reading(self.options, (f"labels: none used, as {error}",))
        if label is not None and label.like_truth < 2:
            self.taken.discard(label.name)
            self.doubted.append(label)
            label = None
        if label is None:
            return Reading(self.options, tuple(self._doubts()))
        item = self._item()
        options = replace(self.options, label=label.name, item=item)
        lines = [_label_line(label, self.table)]
        if item is not None:
            lines.append(f"items: named by column {quoted(item)}")
        return Reading(options, tuple(lines))

    def _drop_shared_prefix(self) -> None:
        """Take off what all names of classifiers begin with up to a dot, as in judges.gpt4."""
        names = {*self.probabilities, *self.hard, *self.scores, *self.confidence}
        parts = zip(*(name.split(".")[:-1] for name in names), strict=False)
        shared = list(itertools.takewhile(lambda words: len(set(words)) == 1, parts))
        if len(names) < 2 or not shared:
            return
        cut = sum(len(words[0]) + 1 for words in shared)
        for kind in ("probabilities", "hard", "scores", "confidence"):
            named = getattr(self, kind).items()
            setattr(self, kind, {name[cut:]: columns for name, columns in named})

    def _item(self) -> str | None:
        """The column that names the items: all different, and named so or text."""
        if self.options.item is not None:
            return self.options.item
        found = [
            p for p in self.free()
            if p.name not in self.claimed and p.unique and p.filled == p.rows
            and (p.numbers is None or p.whole) and not p.wordy
            and (p.like_item or {"id", "uuid", "key", "index"} & set(p.words))
        ]  # fmt: skip
        chosen = [p for p in found if {"id", "uuid", "key", "item"} & set(p.words)] or found
        self.taken |= {p.name for p in found}
        return chosen[0].name if chosen and chosen[0].name.strip() else None

    # Labels -------------------------------------------------------------------------------------

    def _label(self) -> Profile | None:
        """The column of known labels."""
        if self.options.label is not None:
            return self.columns.get(self.options.label)
        candidates = [
            p for p in self.free()
            if p.counts and p.name not in self.claimed and not (p.like_group and p.like_truth < 2)
            and (p.numbers is None or p.whole) and (p.like_truth or p.sparse) and not p.not_truth
        ]  # fmt: skip
        if any(p.like_truth == 3 and not p.done for p in candidates):
            candidates = [p for p in candidates if not p.done]
        unlike = [
            p for p in candidates
            if (p.like_truth < 3 and self._goes_with(p) is False) or self._is_of_judge(p)
        ]  # fmt: skip
        self.doubted += unlike
        candidates = [p for p in candidates if p not in unlike]
        held = {p.name: self._recurs(p) for p in candidates}
        ranked: dict[int, list[Profile]] = {}
        for p in candidates:
            if not held[p.name] and not (p.like_truth == 3 and self._has_numbers(p)):
                # Beside numbers alone, whose values do not recur, a mostly empty column of words.
                coded = p.numbers is None or set(p.counts or ()) <= {"0", "1"}
                words = coded and p.sparse and len(p.counts or {}) > 1
                if words and not p.like_group and self._has_numbers(p):
                    ranked.setdefault(0, []).append(p)
                continue
            # A name that surely says so, then one that likely does; empty cells weigh with it.
            rank = 2 * p.like_truth + p.sparse
            if p.like_prediction and p.like_truth < 3:
                rank = min(rank, 1) if p.sparse and p.like_truth else 0
            if rank:
                ranked.setdefault(rank, []).append(p)
            elif p.sparse and not p.like_group and (p.like_annotator or not p.like_prediction):
                ranked.setdefault(0, []).append(p)
        if not ranked:
            return None
        best = ranked[max(ranked)]
        truths = [p for p in best if names_truth(p.name)]
        exact = [p for p in best if p.name == "label"]
        best = best if truths else exact or best
        if len(best) > 1:
            raise AmbiguousError(
                f"columns {listed(quoted(p.name) for p in best)} may each hold the known labels",
                [["--label", p.name] for p in best[:3]],
            )
        self.taken.add(best[0].name)
        return best[0]

    def _is_of_judge(self, p: Profile) -> bool:
        """Whether yes and no say perhaps that the one judge is right, not what the class is."""
        judges = [q for q in self.columns.values() if q.yes_or_no or not q.like_score]
        judges = [q for q in judges if q.counts and len(q.counts) > 1 and q.like_prediction]
        one = len(judges) - (p in judges) == 1
        return p.agrees or (p.confirms and one and self._goes_with(p) is not True)

    def _goes_with(self, label: Profile) -> bool | None:
        """Whether known labels go with some prediction beyond chance; None: nothing tells.

        Labels that no classifier predicts better than chance are perhaps none.
        """
        found = []
        classes = tuple(label.counts or ())
        for p in self.columns.values():
            if p.name == label.name or p.name in self.taken - self.claimed or not p.filled:
                continue
            if p.counts and len(p.counts) > 1 and all(same_answer(t, classes) for t in p.counts):
                kappa = self._agreement(p, label, classes)
                found += [] if kappa is None else [kappa > _AGREE]
            elif p.numbers is not None and len(classes) == 2 and not self._measures(p):
                gap = _ranked_apart(p.numbers, self._indices(label, classes))
                found += [] if gap is None else [gap > _APART]
        return any(found) if found else None

    def _doubts(self) -> Iterable[str]:
        """Lines on columns that may hold the labels, and are not used."""
        free = [p for p in self.free() if p.name not in self.claimed]
        alike = [
            p for p in free
            if p in self.doubted
            or p.agrees
            or (p.counts and len(p.counts) > 1 and p.sparse and not p.like_group)
        ]  # fmt: skip
        if alike:
            said = " or ".join(f"--label {shlex.quote(p.name)}" for p in alike[:3])
            few = listed(f"{quoted(p.name)} ({p.filled:,} of {p.rows:,} rows)" for p in alike[:3])
            yield f"labels: none used; if {few} holds the known labels, say {said}"

    def _recurs(self, label: Profile) -> bool:
        """Whether its values recur in another column, or in the names of columns."""
        if label.counts is None:
            return False
        classes = list(label.counts)
        for other in self.free():
            if other.name == label.name or other.counts is None or other.like_group:
                continue
            if len(other.counts) > 1 and all(same_answer(t, classes) for t in other.counts):
                return True
            if label.like_truth == 3 and set(map(folded, classes)) < set(map(folded, other.counts)):
                return True
        if len(classes) < 2:
            return False
        named = [
            part.name for p in self.free()
            if p.numbers is not None and (part := class_of_name(p.name, classes)) is not None
        ]  # fmt: skip
        return bool(set(named) - {c for c in classes if c.isdigit()}) or len(set(named)) > 1

    def _has_numbers(self, label: Profile) -> bool:
        """Whether there are other columns that may be scores or probabilities."""
        return any(
            p.name != label.name and p.numbers is not None and not p.like_group
            and (p.like_prediction or (p.in_unit and not p.whole))
            for p in self.free()
        )  # fmt: skip

    def _classes(self, label: Profile | None) -> tuple[str, ...]:
        """The classes: those of the labels, which may not show all of them, or none."""
        if self.options.classes is not None:
            return tuple(map(str, self.options.classes))
        if label is None or label.counts is None:
            return ()
        spelled: dict[str, str] = {}
        for text in sorted(label.counts, key=lambda t: -label.counts[t] if label.counts else 0):
            spelled.setdefault(folded(text), text)
        if len(spelled) == 1:
            # Few labels of one class: hard predictions may say what the others are.
            for p in self.free():
                sure = label.like_truth == 3 and not p.like_group
                wider = p.counts and set(spelled) < set(map(folded, p.counts))
                if wider and p.counts and (p.like_prediction or sure):
                    return in_order({*spelled.values(), *p.counts})
            return ()
        return in_order(spelled.values())

    # Probabilities ------------------------------------------------------------------------------

    def _families(self, classes: tuple[str, ...]) -> None:
        """Columns of numbers that are named by class, family by family."""
        fitting = [p for p in self.free() if p.numbers is not None and not self._measures(p)]
        for stem, columns in self._named_families(fitting, classes).items():
            self._take_family(stem, columns)
        if len(classes) == 2:
            for p in [p for p in self.free() if p.numbers is not None and not self._measures(p)]:
                one = class_of_one(p.name, classes)
                if one is not None and self._like_shares([p]):
                    stem = (class_of_name(p.name, classes) or (one, ""))[1]
                    self._take_family(stem or p.name, [p])

    def _measures(self, p: Profile) -> bool:
        """Whether a column of numbers is a feature or a group by its name."""
        return p.ends_in_feature or (p.like_group and not p.like_prediction)

    def _named_families(
        self, columns: Sequence[Profile], classes: tuple[str, ...]
    ) -> dict[str, list[Profile]]:
        """Columns whose names differ in the class alone and whose rows sum to one number."""
        stems: dict[tuple[str, ...], dict[str, list[Profile]]] = {}
        for p in columns:
            words = tokens(p.name)
            part = class_of_name(p.name, classes) if classes else None
            keys = [part.rest] if part is not None else []
            if len(words) > 1:
                keys += ["_".join(words[:-1]), "_".join(words[1:])]
            for i, key in enumerate(dict.fromkeys(keys)):
                stems.setdefault((str(i if part is not None else i + 1),), {}).setdefault(
                    key, []
                ).append(p)
        found: dict[str, list[Profile]] = {}
        used: set[str] = set()
        for level in sorted(stems):
            for stem, members in stems[level].items():
                left = [p for p in members if p.name not in used]
                if len(left) > 1 and self._is_family(left, classes):
                    found[stem] = left
                    used |= {p.name for p in left}
        whole = [p for p in columns if p.name not in used and p.in_unit and not p.whole]
        for i, p in enumerate(whole):
            for q in whole[i + 1 :]:
                if not {p.name, q.name} & used and self._sums([p, q]):
                    found[without_role(q.name)] = [p, q]
                    used |= {p.name, q.name}
        whole = [p for p in whole if p.name not in used]
        named = {folded(p.name) for p in whole}
        bare = {folded(c) for c in classes} <= named if classes else len(whole) > 2
        if bare and not found and len(whole) > 1 and self._sums(whole):
            found["model"] = whole
        return found

    def _is_family(self, members: Sequence[Profile], classes: tuple[str, ...]) -> bool:
        """Whether columns are those of one classifier: their rows sum to 1, or name all classes."""
        if self._sums(members):
            return True
        named = {part.name for p in members if (part := class_of_name(p.name, classes))}
        several = len(classes) > 1 and named == set(classes) and len(members) == len(classes)
        # Probabilities that do not sum to 1, or logits: taken for what the names say, and refused
        # with what is wrong.
        return several and not any(p.whole for p in members)

    @staticmethod
    def _sums(members: Sequence[Profile]) -> bool:
        """Whether the rows of some columns sum to 1, or to 100, but for rounding."""
        total = np.sum([p.numbers for p in members if p.numbers is not None], axis=0)
        known = total[~np.isnan(total)]
        if len(known) < _LEAST_FILLED_TOGETHER or min(float(p.known.min()) for p in members) < 0:
            return False
        slack = 0.005 * len(members) + 1e-6
        return any((np.abs(known - whole) <= slack * whole).all() for whole in (1.0, 100.0))

    def _like_shares(self, members: Sequence[Profile]) -> bool:
        """Whether numbers may be probabilities, or percentages by their names."""
        return all(
            (p.in_unit and not (p.whole and not p.like_probability))
            or (names_percentages(p.name) and p.known.min() >= 0 and p.known.max() <= 100)
            for p in members
        )

    def _take_family(self, stem: str, columns: Sequence[Profile]) -> None:
        stem = places([p.name for p in columns]) or stem
        name = without_role(stem) if stem else columns[0].name
        if name.isdigit():
            name = "model"
        while name in self.probabilities:
            name += "_"
        self.probabilities[name] = tuple(p.name for p in columns)
        self.taken |= {p.name for p in columns}

    # Hard predictions ---------------------------------------------------------------------------

    def _hard(self, label: Profile | None, classes: tuple[str, ...]) -> None:
        """Columns that hold the labels' values; without labels, such as share theirs."""
        values = classes or self._shared_values()
        families = {name for columns in self.probabilities.values() for name in columns}
        if len(values) < 2:
            named = [differences(columns) for columns in self.probabilities.values()]
            values = tuple(named[0] or ()) if named else values
        alike: list[Profile] = []
        unsure: list[Profile] = []
        further: set[str] = set()
        for p in sorted(self.free(), key=lambda p: not p.like_prediction):
            if p.name in families or p.counts is None or not values:
                continue
            if p.judges_another and any(q.words == p.words[:-1] for q in self.columns.values()):
                continue
            if p.agrees or p.done:
                as_labels = all(same_answer(text, values) for text in p.counts)
                self.flags += [p] if as_labels and p not in self.doubted else []
                continue
            if p.like_annotator and len(p.counts) == 1:
                continue
            if not all(same_answer(text, values) for text in p.counts):
                # A classifier may say a class that no label shows.
                known = [rows for t, rows in p.counts.items() if same_answer(t, values)]
                shown = len(known) > 1 and len(p.counts) == len(known) + 1
                often = sum(known) > 0.5 * p.filled
                new = {folded(t) for t in p.counts if not same_answer(t, values)}
                usual = p.like_prediction or new <= further
                if not (shown and often and usual and p.numbers is None):
                    continue
                further |= new
            if p.like_prediction and not (p.like_score and self._has_finer(p)):
                alike.append(p)
            elif self._measures(p):
                continue
            elif label is None and not any(polarity(v) is None for v in values):
                unsure.append(p)
            else:
                agreement = None if label is None else self._agreement(p, label, values)
                words = any(polarity(v) is None and not v.isdigit() for v in values)
                if words or (agreement is not None and agreement > _AGREE):
                    alike.append(p)
                elif len(p.counts) > 1:
                    unsure.append(p)
        if unsure and not alike and label is None:
            alike, unsure = unsure, []
        if unsure:
            first = unsure[0]
            said = self._options_so_far(label, alike)
            raise AmbiguousError(
                f"column {quoted(first.name)} holds the values of the labels: a classifier's "
                "hard predictions, or a group",
                [
                    [*said, "--hard", f"{without_role(first.name)}={first.name}"],
                    [*said, "--by", first.name],
                ],
            )
        alike.sort(key=lambda p: self.names.index(p.name))
        names = [without_role(p.name) for p in alike]
        self.nameless = names[0] if len(alike) == 1 and is_role(names[0]) else None
        for p, name in zip(alike, names, strict=True):
            self.hard[name if names.count(name) == 1 else p.name] = p.name
            self.taken.add(p.name)

    def _has_finer(self, p: Profile) -> bool:
        """Whether another column holds hard predictions of the same classifier."""
        own = without_role(p.name)
        return any(
            q.name != p.name and without_role(q.name) == own and q.counts is not None
            and not q.like_score
            for q in self.free()
        )  # fmt: skip

    def _shared_values(self) -> tuple[str, ...]:
        """The values that most columns of few values hold, where there are no labels."""
        sets = [
            frozenset(map(folded, p.counts))
            for p in self.free()
            if p.counts and len(p.counts) > 1 and p.like_prediction and not p.like_score
            and (p.numbers is None or p.whole)
        ]  # fmt: skip
        if len(sets) < 2:
            return ()
        common = max(sets, key=lambda s: sum(other <= s for other in sets))
        return in_order(common) if sum(other <= common for other in sets) > 1 else ()

    def _agreement(self, p: Profile, label: Profile, classes: Sequence[str]) -> float | None:
        """Kappa of a column and the labels; None on too few rows."""
        mine = self._indices(p, classes)
        theirs = self._indices(label, classes)
        both = (mine >= 0) & (theirs >= 0)
        if both.sum() < _LEAST_TOGETHER:
            return None
        k = len(classes)
        a, b = (np.bincount(x[both], minlength=k) / both.sum() for x in (mine, theirs))
        chance = float(a @ b)
        if chance >= 1:
            return None
        return (float((mine[both] == theirs[both]).mean()) - chance) / (1 - chance)

    @staticmethod
    def _indices(p: Profile, classes: Sequence[str]) -> Array:
        order = list(classes)
        index = []
        for text in p.texts:
            meant = same_answer(text, order) if text in (p.counts or ()) else None
            index.append(-1 if meant is None else order.index(meant))
        codes = np.where(p.codes < len(index), p.codes, -1)
        return np.array([*index, -1], dtype=np.int64)[codes]

    def _options_so_far(self, label: Profile | None, hard: Iterable[Profile]) -> list[str]:
        said = [] if label is None else ["--label", label.name]
        for name, columns in self.probabilities.items():
            said += ["--model", f"{name}={','.join(columns)}"]
        for p in hard:
            said += ["--hard", f"{without_role(p.name)}={p.name}"]
        return said

    def _refuse_alike(self, label: Profile | None) -> None:
        """Say of columns with the same values that one of them may hold the labels."""
        for p in self.free() if label is None else ():
            if p.agrees or (p.confirms and p in self.doubted):
                raise InputError(
                    f"column {quoted(p.name)} says by its name whether a verdict is right, and not "
                    "what the class is: write the right classes in a column of their own; if it "
                    f"does hold the known labels, say --label {shlex.quote(p.name)}"
                )
        few = [p for p in self.free() if p.counts and len(p.counts) > 1 and not p.like_group]
        for p in few if label is None else ():
            alike = [
                q for q in few if all(same_answer(t, list(p.counts or ())) for t in q.counts or ())
            ]
            if len(alike) > 1:
                raise AmbiguousError(
                    f"columns {listed(quoted(q.name) for q in alike)} hold the same values, and no "
                    "name says which are the known labels",
                    [["--label", q.name] for q in alike[:3]],
                )

    # Scores -------------------------------------------------------------------------------------

    def _numbers(self, label: Profile | None, classes: tuple[str, ...]) -> None:
        """Other numbers: probabilities where the name says so, else scores; never features."""
        if len(classes) > 2 or (len(classes) < 2 and self.probabilities):
            return
        unnamed: list[Profile] = []
        for p in self.free():
            if p.numbers is None or p.distinct < 3 or p.name in self.taken or self._measures(p):
                continue
            also = OF_ITSELF if p.of_itself else ()
            name = without_role(p.name, also)
            nobody = is_role(name, also)
            bare = nobody and not self.probabilities
            never_below_half = p.in_unit and float(p.known.min()) >= 0.5 - 1e-9
            if bare and self.nameless is not None:
                name = self.nameless  # y_pred and y_prob are of one classifier
            elif bare and len(self.hard) == 1 and (p.of_itself or never_below_half):
                name = next(iter(self.hard))  # and so are gpt and max_prob
            known = nobody and self.probabilities and never_below_half
            if p.of_itself and (known or name in self.confidence or names_truth(p.name)):
                continue  # the largest of the probabilities; said twice; how sure the expert is
            if name in self.hard and name not in self.probabilities and never_below_half:
                self.confidence[name] = p.name
                self.taken.add(p.name)
                continue
            if p.of_itself and p.known.max() <= 0 and name in self.hard:
                continue  # logarithms of how probable its own prediction is
            self._refuse_sureness(p, name, bare, label)
            others = bool(self.probabilities or self.hard)
            if not (p.like_prediction or p.like_score or name in self.hard) and (
                others or not p.in_unit
            ):
                unnamed.append(p)
                continue
            if p.like_annotator and not p.like_score and not p.in_unit:
                continue
            likely = p.like_probability or (names_percentages(p.name) and names_chance(p.name))
            likely = likely and self._like_shares([p])
            if likely and name not in self.probabilities:
                self.probabilities[name] = (p.name,)
            else:
                self.scores[name if name not in self.scores else p.name] = p.name
            self.taken.add(p.name)
        if not (unnamed and not (self.probabilities or self.hard or self.scores)):
            return
        numbers = [p for p in self.free() if p.numbers is not None and p.distinct > 2]
        options = [shlex.quote(f"{without_role(p.name)}={p.name}") for p in numbers]
        raise InputError(
            f"columns {listed(quoted(p.name) for p in numbers)} hold numbers, and nothing says "
            "whether classifiers gave them: if they are scores, say so with "
            + " ".join(f"--score {option}" for option in options[:3])
        )

    def _refuse_sureness(self, p: Profile, name: str, bare: bool, label: Profile | None) -> None:
        """Refuse numbers beside hard predictions that are perhaps how sure these are."""
        low, high = float(p.known.min()), float(p.known.max())
        half = 50 if high > 1 else 0.5
        sure = low >= half and high <= 2 * half
        own = name in self.hard
        asked = own or bare or sure if p.of_itself else low >= 50 and sure
        if not self.hard or not asked or not (p.of_itself or own or names_percentages(p.name)):
            return
        name = name if own else next(iter(self.hard))
        if self._cuts(p, self.columns[self.hard[name]]):
            return
        pair = f"{name}={p.name}"
        said = [] if label is None else ["--label", label.name]
        said += [w for m, column in self.hard.items() for w in ("--hard", f"{m}={column}")]
        range_of = f"never below {half:g}" if sure else f"from {low:g} to {high:g}"
        what = f"how sure {name} is of its own prediction{', in percent' * (sure and half == 50)}"
        first = [*said, "--confidence", pair]
        if high > 1 and not sure:
            first = said
            what += (
                f", which --confidence {shlex.quote(pair)} takes as a share (rescale the column, "
                "or leave it out)"
            )
        raise AmbiguousError(
            f"column {quoted(p.name)} is {range_of}: perhaps {what}, perhaps a score of the "
            "positive class",
            [first, [*said, "--score", pair]],
        )

    def _cuts(self, p: Profile, hard: Profile) -> bool:
        """Whether two predicted classes are numbers below and above some value."""
        words = list(hard.counts or ())
        if len(words) != 2 or p.numbers is None:
            return False
        predicted = np.where(np.isnan(p.numbers), -1, self._indices(hard, words))
        above = p.numbers[predicted == positive_index(words)]
        below = p.numbers[predicted == 1 - positive_index(words)]
        enough = min(len(above), len(below)) > 1 and len(above) + len(below) >= _LEAST_TOGETHER
        return bool(enough and below.max() <= above.min())

    # Words --------------------------------------------------------------------------------------

    def _lines(self, label: Profile | None, item: str | None) -> Iterable[str]:
        if label is not None:
            yield _label_line(label, self.table)
        else:
            yield from list(self._doubts()) or ["labels: none recognised"]
        for what, mapped in (
            ("probabilities", self.probabilities),
            ("hard predictions", {name: (c,) for name, c in self.hard.items()}),
            ("scores (larger is more positive)", {n: (c,) for n, c in self.scores.items()}),
            ("probability of what is predicted", {n: (c,) for n, c in self.confidence.items()}),
        ):
            if mapped:
                said = (f"{name} = {', '.join(map(quoted, c))}" for name, c in mapped.items())
                yield f"{what}: {'; '.join(said)}"
        shares = [n for n, c in self.scores.items() if self.columns[c].in_unit]
        if shares:
            models = " ".join(f"--model {shlex.quote(f'{n}={self.scores[n]}')}" for n in shares[:3])
            yield f"scores from 0 to 1: if they are probabilities, say so with {models}"
        if (weight := self.options.weight or "weight") in self.columns:
            yield _weight_line(weight)
        if (domain := self.options.domain or "domain") in self.columns:
            yield f"domains: column {quoted(domain)} (rename it if it is something else)"
        if item is not None:
            yield f"items: named by column {quoted(item)}"
        for p in self.free():
            if p.like_item and _NEARLY_ALL * p.filled < p.distinct < p.filled:
                yield (
                    f"items: {quoted(p.name)} repeats ({p.distinct:,} values in {p.filled:,} "
                    "rows); every row is read as an item of its own"
                )
        constant = [p.name for p in self.free() if p.distinct == 1 and p.filled > 0.9 * p.rows]
        if constant:
            yield f"not used: {listed(map(quoted, constant))} (one value only)"
        flags = [p for p in self.flags if label is not None or not p.agrees]
        if flags:
            yield (
                f"not used: {listed(quoted(p.name) for p in flags)} (by the name what was "
                "done with an item, or whether somebody agrees; if a classifier said it, add "
                "--hard NAME=COL to the command that `fewlabels doctor` shows)"
            )
        yield from (f"not used: {said}" for said in self._spoiled(constant=False))
        yield from self._other_words(label)
        numbers = [
            p.name
            for p in self.free()
            if p.numbers is not None and p.distinct > 1
            and (p.counts is None or not p.whole or p.of_itself)
        ]  # fmt: skip
        if numbers:
            yield (
                f"not used: {listed(map(quoted, numbers))} (numbers; if a classifier gave them, "
                "add --model or --score NAME=COL to the command that `fewlabels doctor` shows)"
            )

    def _spoiled(self, *, constant: bool = True) -> Iterable[str]:
        """What keeps columns that are named as scores from being read as numbers."""
        for p in self.free():
            if p.name in self.claimed or not (p.like_score or p.like_prediction):
                continue
            if p.numbers is not None and constant and p.distinct == 1 < p.filled:
                yield f"column {quoted(p.name)} holds one value only"
            bad = [] if p.numbers is not None else [t for t in p.texts if not _is_finite(t)]
            rows = int(np.isin(p.codes, [p.texts.index(text) for text in bad[:_SLIPS]]).sum())
            if 0 < len(bad) <= _SLIPS and rows <= (1 - _NEARLY_ALL) * p.filled:
                cells = "1 cell" if rows == 1 else f"{rows} cells"
                yield (
                    f"column {quoted(p.name)} holds numbers but for {cells} "
                    f"({listed(map(quoted, bad), 3)}): correct or empty them, or drop the rows"
                )

    def _other_words(self, label: Profile | None) -> Iterable[str]:
        """Lines on columns that go with the labels or predictions, in other words than these."""
        known = [self.columns[c].codes for c in self.hard.values()]
        for columns in self.probabilities.values():
            p = np.stack([self.columns[c].numbers for c in columns])  # type: ignore[misc]
            said = p.argmax(0) if len(p) > 1 else p[0] > 0.5
            known.append(np.where(np.isnan(p).any(0), -1, said))
        known += [] if label is None else [label.codes]
        told = [*self.flags, *self.doubted]
        for q in self.free():
            words = in_order(q.counts or ())
            few = (len(words) > 1 or q.filled < q.rows) and 0 < len(words) <= _FEW_WORDS
            if not few or q.wordy or q in told or q.like_group or q.judges_another or q.of_itself:
                continue
            if any(_go_together(q.codes + 1, codes) for codes in known):
                ways = " ".join(f"--same {shlex.quote(word)}=CLASS" for word in words[:3])
                empty = " (and write a word in its empty cells)" if len(words) == 1 else ""
                yield (
                    f"not used: {quoted(q.name)} ({listed(map(quoted, words))}) goes with the "
                    f"labels or predictions; if a classifier gave it, say what its words mean: "
                    f"{ways}{empty}"
                )


_SLIPS = 5
"""Different cells that are no numbers, from which a column is none of numbers."""

_FEW_WORDS = 12
"""Different values beyond which a column is not compared with the classes."""

_TOGETHER = 0.4
"""Cramer's V, corrected for its bias (Bergsma 2013), from which two columns go together."""


def _go_together(one: Array, other: Array) -> bool:
    """Whether codes (0 is an empty cell) go with known codes (-1 unknown) beyond chance."""
    known = other >= 0
    n, k = int(known.sum()), int(other.max(initial=0)) + 1
    seen = np.bincount(one[known] * k + other[known], minlength=(one.max(initial=0) + 1) * k)
    table = seen.reshape(-1, k)
    table = table[table.any(1)][:, table.any(0)]
    if n < _LEAST_TOGETHER or min(table.shape) < 2:
        return False
    chance = table.sum(1, keepdims=True) * table.sum(0) / n
    squared = float(((table - chance) ** 2 / chance).sum())
    sizes = np.array(table.shape)
    free = float((sizes - 1).prod())
    most = float((sizes - (sizes - 1) ** 2 / (n - 1)).min()) - 1
    beyond = max(squared - free * n / (n - 1), 0) / n
    return beyond > _TOGETHER**2 * most and squared > free + _APART * np.sqrt(2 * free)


def _is_finite(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
