"""Comparisons of two, one row each or one row a judge: who met whom, and what was said of it.

A comparison is an item of three classes: the contestant that was presented first wins, the second
does, or neither. Judges are its classifiers, and the verdict of people is its label. Where a judge
saw the same two answers in both orders, the second verdict is that of a classifier of its own,
turned round: the two are no independent judges.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from fewlabels.data.joined import WithLabels, read_labels
from fewlabels.data.keys import names_of, repeats, with_item
from fewlabels.data.options import ColumnOptions
from fewlabels.data.profiles import name_words, says, truth_in_name, words_table
from fewlabels.data.roles import split_native
from fewlabels.data.shapes import Shaped, together
from fewlabels.data.sources import locate, open_source
from fewlabels.data.table import NO_LABEL, Names, naming_file
from fewlabels.errors import InputError, UsageError, listed, quoted, unknown
from fewlabels.kernels.arrays import Bools, Floats, Frozen, Ints
from fewlabels.predictions import Predictions

CLASSES = ("model_a", "model_b", "tie")
"""The classes of a comparison, as Chatbot Arena calls them."""

_TURNED = np.array([1, 0, 2, -1])
"""What a class is where the two are seen in the other order."""

SWAPPED = " (swapped)"
"""Behind the name of a judge: its verdicts on what is seen in the other order."""

BY_PEOPLE = "person"
"""The clusters of what one person judged, whose taste is in all of it."""

MOST_CONTESTANTS = 300
_BETWEEN = re.compile(r"[^\w<>=]|_")


class Verdicts(NamedTuple):
    """Verdicts (N,): of which comparison, by whom, the class in the order seen, and if swapped."""

    row: Ints
    judge: Ints
    said: Ints
    swapped: Bools

    def take(self, which: Any) -> Verdicts:
        """Some of them."""
        return Verdicts(*(column[which] for column in self))

    @property
    def turned(self) -> Ints:
        """The class in the order of the comparison, (N,)."""
        return np.where(self.swapped, _TURNED[self.said], self.said)


@dataclass(frozen=True, eq=False)
class Comparisons(Frozen):
    """Comparisons as `items`, and who was presented `first` and `second` in each, (n,).

    `contestants` are the names these point to, `rows` (n,) the first row of the file that each is
    of. `verdicts` are those of the `judges`; without judges the votes of `items` are people's.
    """

    items: Predictions
    contestants: tuple[str, ...]
    first: Ints
    second: Ints
    rows: Ints
    judges: tuple[str, ...]
    verdicts: Verdicts


def read_comparisons(
    source: Any, *, first: str | None = None, second: str | None = None, winner: str | None = None,
    judge: str | None = None, people: Collection[str] = (), label: str | None = None,
    labels: Any = None, item: str | None = None, cluster: Sequence[str] = (),
    weight: str | None = None,
) -> Comparisons:  # fmt: skip
    """Read comparisons from any table that `read_predictions` reads; see `fewlabels.rank`."""
    located = locate(source)
    with naming_file(None if located is None else located.name):
        if located is not None and located.kind == "NPZ":
            raise InputError("holds arrays, and comparisons are rows of a table; save it as CSV")
        table = open_source(source, located)
        if labels is not None:
            kept, label = read_labels(labels, table, ColumnOptions(item=item)), label or "label"
            table = WithLabels(with_item(table, kept.item), kept, kept.item, label)
        names = [*dict.fromkeys(table.names)]
        one_hot = together(winner, names) or _named(names if winner is None else (), "compared_won")
        if len(one_hot) > 1:
            names.append(winner := "|".join(one_hot))
            table = Shaped(table, tuple(names))
        asked = first, second, winner, judge, label, weight, *cluster, *(item or "").split(",")
        for name in filter(None, asked):
            if name not in names:
                raise UsageError(unknown("column", name, names))
        rows = _Rows.of(names_of(table, names), (first, second), winner, judge, item)
        verdicts = rows.verdicts(label, {weight}, {*people})
        weights = None if weight is None else table.read((weight,), ()).numbers(weight)
        return rows.comparisons(*verdicts, weights, cluster)


def _named(names: Iterable[str], what: str) -> list[str]:
    """The columns whose whole name says a role."""
    known = words_table().says[what]
    return [n for n in names if "".join(name_words(n)) in known]


def _sides(
    names: Iterable[str], asked: Sequence[str | None], *roles: str
) -> tuple[str | None, str | None]:
    """Two columns of contestants: those asked for, or told by their names."""
    first, second = (
        side or next(iter(_named(names, f"compared_{role}")), None)
        for side, role in zip(asked, roles, strict=True)
    )
    return first, second


def _repetitions(a: Ints, b: Ints) -> list[int]:
    """How often the same two values stand in rows before each row, (n,)."""
    seen = Counter[tuple[int, int]]()
    out = []
    for pair in zip(a.tolist(), b.tolist(), strict=True):
        out.append(seen[pair])
        seen[pair] += 1
    return out


def _drawn_first(one: str, two: str, key: Any) -> str:
    """Which of two names comes first: by a coin, the same for the two and the key in any order."""
    pair = sorted((one, two))
    return pair[crc32(repr((key, pair)).encode()) & 1]


def _plain(text: str) -> str:
    return _BETWEEN.sub("", text.lower())


_CODES: tuple[dict[str, int], ...] = (
    {"1": 0, "0": 1, "0.5": 2}, {"1": 0, "2": 1, "0": 2}, {"1": 0, "-1": 1, "0": 2},
    {"true": 0, "false": 1}, {"win": 0, "w": 0, "won": 0, "loss": 1, "l": 1, "lost": 1, "d": 2},
)  # fmt: skip
"""Classes by texts that mean something together alone: those of a column by the first that fits."""


def _codes(column: Names) -> Mapping[str, int]:
    """The first of `_CODES` with all texts of a column but words for a tie."""
    there = {t.lower() for t in column.counts() if t} - (words_table().says["verdict_tie"] - {"0"})
    return next((codes for codes in _CODES if len(there) > 1 and there <= {*codes}), {})


def _classes(column: Names) -> list[int]:
    """The class that each text says by the words for it: -1 for none, -2 where it is no word."""
    words = words_table().says
    known = {w: k for k, c in enumerate(("first", "second", "tie")) for w in words[f"verdict_{c}"]}
    codes = {**dict.fromkeys(NO_LABEL, -1), **_codes(column)}
    return [codes.get(t.lower(), known.get(_plain(t), -2)) for t in column.texts]


def _are_verdicts(column: Names) -> bool:
    """Whether the values of a column, whatever its name, are words of verdicts."""
    there, classes = column.counts(), dict(zip(column.texts, _classes(column), strict=True))
    words = {_plain(t) for t in there if classes[t] != -1}
    said = all(classes[t] != -2 for t in there)
    return len(words) > 1 and said and not all(map(str.isdigit, words)) and not _codes(column)


@dataclass(frozen=True)
class _Rows:
    """The rows of a table, as texts by column, and the contestants `a` and `b` of each, (n,)."""

    texts: Mapping[str, Names]
    sides: tuple[str, str]
    contestants: tuple[str, ...]
    a: Ints
    b: Ints
    prompt: Sequence[str]
    by: str | None
    winner: str | None

    @staticmethod
    def of(
        texts: Mapping[str, Names], sides: Sequence[str | None], winner: str | None,
        judge: str | None, item: str | None,
    ) -> _Rows:  # fmt: skip
        """Find the columns of contestants, prompts and judges."""
        # Columns of winners and losers are contestants in an order that nobody saw: it is drawn.
        first, second = _sides(texts, sides, "first", "second")
        if first is None or second is None:
            first, second = _sides(texts, sides, "winner", "loser")
            winner = winner or first
        if first is None or second is None or first == second:
            raise InputError(
                "has no two columns that say who is compared, such as model_a and model_b; its "
                f"columns are {listed(map(quoted, texts), 6)}: name them with --first COL and "
                "--second COL"
            )
        each = [texts[side].each().tolist() for side in (first, second)]
        place = {name: i for i, name in enumerate(dict.fromkeys(filter(None, each[0] + each[1])))}
        if len(place) > MOST_CONTESTANTS:
            raise InputError(
                f"columns {quoted(first)} and {quoted(second)} name {len(place):,} contestants, "
                f"and at most {MOST_CONTESTANTS} are ranked; keep some with --where, or name other "
                "columns with --first COL and --second COL"
            )
        a, b = (np.array([place.get(t, -1) for t in side], dtype=np.int64) for side in each)
        prompt = item.split(",") if item else _named(texts, "compared_item")[:1]
        prompt += [] if item or not prompt else _named(texts, "compared_part")[:1]
        if winner in (first, second):
            told = [texts[c].each().tolist() for c in prompt] or [_repetitions(a, b)]
            seen = zip(each[0], each[1], zip(*told, strict=True), strict=True)
            stays = np.array([one == _drawn_first(one, two, key) for one, two, key in seen])
            a, b = np.where(stays, a, b), np.where(stays, b, a)
        others = [name for name, column in texts.items() if not _are_verdicts(column)]
        by = judge or next(iter(_named(others, "compared_by")), None)
        return _Rows(texts, (first, second), tuple(place), a, b, prompt, by, winner)

    def verdicts(
        self, label: str | None, others: set[str | None], people: set[str]
    ) -> tuple[Verdicts, list[str], set[str], list[str]]:
        """Verdicts by row of the table, who speaks in them, who of these are people."""
        # The columns are told by their names or values; lines say what values are taken for.
        texts, others = self.texts, {*self.sides, self.by, *self.prompt, *others}
        free = [n for n in texts if n not in others]
        native = {n: s[1] for n in free if (s := split_native(n)) is not None and s[0] == "y"}
        label = label or next(
            (n for n in free if n == "label" or (n not in native and truth_in_name(n) == 3)), None
        )
        by_name = _named([n for n in free if n != label], "compared_verdict")
        winner = self.winner or next(iter(by_name), None)
        columns = dict(native) if winner is None else {winner: winner, **native}
        columns |= {n: n for n in free if n not in columns and _are_verdicts(texts[n])}
        if label is not None:
            columns[label] = ""
        if not columns:
            raise InputError(
                "has no column that says who won, such as winner with model_a, model_b or tie; "
                f"its columns are {listed(map(quoted, texts), 6)}: name it with --winner COL"
            )
        judges = None if self.by is None else texts[self.by]
        registered = {*columns.values(), *(judges.texts if judges else ())}
        for one in people - registered:
            raise UsageError(unknown("judge", one, sorted(registered - {""})))
        place, parts, reading = dict[str, int](), [], list[str]()
        for column, who in columns.items():
            by_row = judges if column == winner else None
            codes, names = (by_row.codes, by_row.texts) if by_row else (0 * self.a, (who,))
            speakers = np.array([*(place.setdefault(name, len(place)) for name in names), -1])
            said, taken = self._said(texts[column])
            row = np.flatnonzero((codes >= 0) & (said >= 0))
            reading += [f"{quoted(column)}: {listed(taken)}"] * bool(taken)
            parts.append((row, speakers[codes[row]], said[row], np.zeros(len(row), dtype=bool)))
        if winner in self.sides:
            reading.append(f"{listed(map(quoted, self.sides))}: who was seen first is not known")
        alone = columns == {winner: winner} and judges is None
        persons = {s for s in place if not s or alone or s in people or says(s, "people")}
        return Verdicts(*map(np.concatenate, zip(*parts, strict=True))), [*place], persons, reading

    def _said(self, column: Names) -> tuple[Ints, list[str]]:
        """The class that each row says, (n,), -1 for none, and what each text is taken for."""
        # A text is the name of one of the two, or a word. Where some are both, those of the whole
        # column are names, or words: what explains every row.
        place = {name: i for i, name in enumerate(self.contestants) if name not in NO_LABEL}
        texts, counts = dict(zip(column.texts, _classes(column), strict=True)), column.counts()
        word = np.array([*texts.values(), -1], dtype=np.int64)[column.codes]
        named = np.array([*(place.get(t, -1) for t in texts), -1])[column.codes]
        wins = np.where(named == self.a, 0, np.where(named == self.b, 1, -2))
        alone = column.column in self.sides  # and holds names, whatever they are
        ways = np.stack([wins if alone else np.where(named >= 0, wins, word), word])
        met = np.minimum(self.a, self.b) >= 0
        strange = (ways == -2) & met
        if not (alone or strange.any()):
            strange |= (ways[0] != ways[1]) & met
        way = 0 if alone else int(strange.sum(axis=1).argmin())
        if strange[way].any():
            row = int(strange[way].argmax())
            two = listed([self.contestants[self.a[row]], self.contestants[self.b[row]]])
            raise InputError(
                f"column {quoted(column.column)} says {quoted(str(column.each()[row]))} in row "
                f"{row + 1}; it must say model_a, model_b or tie, or one of the two that are "
                f"compared there ({two}); and not what may be both; correct it, or leave the cell "
                "empty"
            )
        by_name = [t for t in texts if t in place and not way]
        taken = [
            f"{t} = {CLASSES[k]}" if k >= 0 else f"-1 = no verdict ({counts[t]:,} rows)"
            for t, k in texts.items()
            if t in counts and t not in ("", *CLASSES, *by_name)
        ]
        return ways[way], taken + ["names of contestants"] * bool(by_name)

    def _places(self) -> tuple[Ints, Ints]:
        """The comparison of each row (n,), -1 for none, and their first rows."""
        # Rows of one prompt and two contestants are one comparison; without a prompt each is one.
        a, b = self.a, self.b
        met = np.flatnonzero((a >= 0) & (b >= 0) & (a != b))
        if not len(met):
            raise InputError(
                f"has no row with two different names in {listed(map(quoted, self.sides))}"
            )
        keys = [self.texts[c].codes for c in self.prompt] or [np.arange(len(a))]
        both = np.column_stack([*keys, np.minimum(a, b), np.maximum(a, b)])[met]
        number = dict[tuple[int, ...], int]()
        out = np.full(len(a), -1)
        out[met] = [number.setdefault(tuple(key), len(number)) for key in both.tolist()]
        return out, met[~repeats(out[met])]

    def comparisons(
        self, every: Verdicts, speakers: Sequence[str], people: set[str], reading: Sequence[str],
        weights: Floats | None, cluster: Sequence[str],
    ) -> Comparisons:  # fmt: skip
        """The comparisons, from all verdicts."""
        place, rows = self._places()
        if self.by is not None and not self.prompt and len({*speakers} - people) > 1:
            raise InputError(
                f"column {quoted(self.by)} says who judged each row, and no column says which rows "
                "are of one comparison; name that of the prompt with --item COL"
            )
        n, notes, counts = len(rows), list[str](), np.zeros((len(rows), 3))
        swapped = self.a != self.a[rows][place]
        every = every._replace(row=place[every.row], swapped=swapped[every.row])
        every = every.take(every.row >= 0)
        person = np.isin(every.judge, [i for i, name in enumerate(speakers) if name in people])
        of_people, every = every.take(person), every.take(~person)
        np.add.at(counts, (of_people.row, of_people.turned), 1)
        used, judge = np.unique(every.judge, return_inverse=True)
        judges = tuple(speakers[j] for j in used)
        every = every._replace(judge=judge)
        again = repeats((every.row * (len(judges) + 1) + judge) * 2 + every.swapped)
        every, left = every.take(~again), int((place < 0).sum())
        if again.any():
            notes.append(
                f"{int(again.sum()):,} verdicts are left out: of judges who had judged the same "
                "comparison in the same order before"
            )
        folded = [c.casefold() for c in self.contestants]
        alike = [c for c in self.contestants if folded.count(c.casefold()) > 1]
        notes += [f"{listed(alike)} differ in upper and lower case, and count apart"] * bool(alike)
        if left:
            notes.append(f"{left:,} rows are left out: they do not name two contestants")
        ways, column = np.unique(every.judge * 2 + every.swapped, return_inverse=True)
        votes = np.full((n, len(ways)), -1)
        votes[every.row, column] = every.turned
        models = [judges[c // 2] + SWAPPED * (c % 2) for c in ways.tolist()] or ["people"]
        spoken = counts.any(axis=1)
        kept = np.flatnonzero(spoken | (votes >= 0).any(axis=1))
        if not len(kept):
            raise InputError("has no verdict: every cell that says who won is empty")
        labels = np.where(spoken, counts.argmax(axis=1), -1)
        several = bool((counts.sum(axis=1) > 1).any())
        clusters = {c: self.texts[c].each()[rows] for c in cluster or self.prompt[:1]}
        if not cluster:
            one = np.array([*map(bool, speakers)])[of_people.judge]
            who, person = np.arange(n), of_people.judge[one]
            who[of_people.row[one]] = n + person
            clusters |= {BY_PEOPLE: who} if len({*person}) > 1 else {}
            clusters = {c: of for c, of in clusters.items() if len({*of.tolist()}) < n}
            notes += [f"comparisons of one {quoted(c)} go together" for c in clusters]
        names, first, second = np.array(self.contestants, object), self.a[rows], self.b[rows]
        prompt = f", by prompt {listed(map(quoted, self.prompt))}" if self.prompt else ""
        items = Predictions(
            votes=votes if judges else labels[:, None], labels=None if several else labels,
            classes=list(CLASSES), histogram=counts if several else None, models=models,
            groups={"first": names[first], "second": names[second]}, clusters=clusters,
            weight=None if weights is None else weights[rows], notes=notes,
            reading=(
                f"compared: {listed(map(quoted, self.sides))}{prompt}",
                f"verdicts: of people {len(of_people.row):,}, of judges {len(every.row):,}",
                *reading,
            ),
        )  # fmt: skip
        every = every._replace(row=np.searchsorted(kept, every.row))
        return Comparisons(
            items.take(kept), self.contestants, first[kept], second[kept], rows[kept], judges, every
        )
