"""Comparisons of two, one row each or one row a judge: who met whom, and what was said of it.

A comparison is an item of three classes: the contestant that was presented first wins, the second
does, or neither. Judges are its classifiers, and the verdict of people is its label. Where a judge
saw the same two answers in both orders, the second verdict is that of a classifier of its own,
turned round: the two are no independent judges.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fewlabels.data.keys import names_of
from fewlabels.data.profiles import name_words, says, truth_in_name, words_table
from fewlabels.data.roles import split_native
from fewlabels.data.sources import locate, open_source
from fewlabels.data.table import NO_LABEL, Names, naming_file
from fewlabels.errors import InputError, UsageError, listed, quoted, unknown
from fewlabels.kernels.arrays import Bools, Frozen, Ints
from fewlabels.predictions import Predictions

CLASSES = ("model_a", "model_b", "tie")
"""The classes of a comparison, as Chatbot Arena calls them."""

TURNED = np.array([1, 0, 2, -1])
"""What a class is where the two are seen in the other order."""

SWAPPED = " (swapped)"
"""Behind the name of a judge: its verdicts on what is seen in the other order."""

MOST_CONTESTANTS = 300
_BETWEEN = re.compile(r"[^\w<>=]|_")
_COLUMNS = "first", "second", "winner", "judge", "label", "weight"


class Verdicts(NamedTuple):
    """Verdicts (N,): of which comparison, by whom, the class in the order seen, and if swapped."""

    row: Ints
    judge: Ints
    said: Ints
    swapped: Bools

    def take(self, which: Any) -> Verdicts:
        """Some of them."""
        return Verdicts(*(column[which] for column in self))


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
    source: Any, *, people: Collection[str] = (), item: str | None = None,
    cluster: Sequence[str] = (), **columns: str | None,
) -> Comparisons:  # fmt: skip
    """Read comparisons from any table that `read_predictions` reads; see `fewlabels.rank`.

    `columns` are `first`, `second`, `winner`, `judge`, `label` and `weight`.
    """
    located = locate(source)
    with naming_file(None if located is None else located.name):
        if located is not None and located.kind == "NPZ":
            raise InputError("holds arrays, and comparisons are rows of a table; save it as CSV")
        table = open_source(source, located)
        names = [*dict.fromkeys(table.names)]
        for name in filter(None, [*columns.values(), *cluster, *(item or "").split(",")]):
            if name not in names:
                raise UsageError(unknown("column", name, names))
        given = {role: columns.get(role) for role in _COLUMNS}
        rows = _Rows.of(names_of(table, names), given, item)
        weight = given["weight"]
        weights = None if weight is None else table.read((weight,), ()).numbers(weight)
        return rows.gathered(rows.spoken(given, frozenset(people)), weights, cluster)


def _named(names: Collection[str], what: str) -> str | None:
    """The first column whose whole name says a role."""
    known = words_table().says[what]
    return next((n for n in names if "".join(name_words(n)) in known), None)


def _plain(text: str) -> str:
    return _BETWEEN.sub("", text.lower())


def _are_verdicts(column: Names) -> bool:
    """Whether the values of a column, whatever its name, are words of verdicts."""
    words, values = words_table().says, {_plain(t) for t in column.counts()} - {*NO_LABEL}
    known = words["verdict_first"] | words["verdict_second"] | words["verdict_tie"]
    return len(values) > 1 and values <= known and not all(map(str.isdigit, values))


class _Spoken(NamedTuple):
    """What one column says: a class per row (n,), -1 for nothing; who spoke, and who are people."""

    said: Ints
    speakers: Sequence[str]
    codes: Ints
    people: Collection[str]


@dataclass(frozen=True)
class _Rows:
    """The rows of a table, as texts by column, and the contestants `a` and `b` of each, (n,)."""

    texts: Mapping[str, Names]
    sides: tuple[str, str]
    contestants: tuple[str, ...]
    a: Ints
    b: Ints
    prompt: tuple[str, ...]
    by: str | None

    @staticmethod
    def of(texts: Mapping[str, Names], given: Mapping[str, str | None], item: str | None) -> _Rows:
        """Find the columns of contestants, prompts and judges."""
        first, second = (given[s] or _named(texts, f"compared_{s}") for s in ("first", "second"))
        if first is None or second is None or first == second:
            raise InputError(
                "has no two columns that say who is compared, such as model_a and model_b; its "
                f"columns are {listed(map(quoted, texts), 6)}: name them with --first COL and "
                "--second COL"
            )
        place: dict[str, int] = {}
        for name in (*texts[first].each(), *texts[second].each()):
            if name is not None:
                place.setdefault(name, len(place))
        if len(place) > MOST_CONTESTANTS:
            raise InputError(
                f"columns {quoted(first)} and {quoted(second)} name {len(place):,} contestants, "
                f"and at most {MOST_CONTESTANTS} are ranked; keep some with --where, or name other "
                "columns with --first COL and --second COL"
            )
        a, b = (
            np.array([place.get(t, -1) for t in texts[side].each()], dtype=np.int64)
            for side in (first, second)
        )
        found = _named(texts, "compared_item"), _named(texts, "compared_part")
        prompt = item.split(",") if item else [n for n in found if n is not None and found[0]]
        others = [name for name, column in texts.items() if not _are_verdicts(column)]
        by = given["judge"] or _named(others, "compared_by")
        return _Rows(texts, (first, second), tuple(place), a, b, tuple(prompt), by)

    def spoken(self, given: Mapping[str, str | None], people: frozenset[str]) -> list[_Spoken]:
        """The columns of verdicts, told by their names or values, and who speaks in each."""
        texts = self.texts
        taken = {*self.sides, self.by, *self.prompt, given["weight"]}
        free = [n for n in texts if n not in taken]
        native = {n: s[1] for n in free if (s := split_native(n)) is not None and s[0] == "y"}
        label = given["label"] or next(
            (n for n in free if n == "label" or (n not in native and truth_in_name(n) == 3)), None
        )
        winner = given["winner"] or _named([n for n in free if n != label], "compared_verdict")
        columns = dict(native) if winner is None else {winner: winner, **native}
        columns |= {n: n for n in free if n not in columns and _are_verdicts(texts[n])}
        if label is not None:
            columns[label] = ""
        if not columns:
            raise InputError(
                "has no column that says who won, such as winner with model_a, model_b or tie; "
                f"its columns are {listed(map(quoted, texts), 6)}: name it with --winner COL"
            )
        registered = {*columns.values(), *(texts[self.by].texts if self.by else ())}
        for one in people - registered:
            raise UsageError(unknown("judge", one, sorted(registered - {""})))
        alone = columns == {winner: winner} and self.by is None
        out = []
        for column, who in columns.items():
            speakers, codes = [who], np.zeros(len(self.a), dtype=np.int64)
            if self.by is not None and column == winner:
                speakers, codes = [*texts[self.by].texts], texts[self.by].codes
            persons = {s for s in speakers if not s or alone or s in people or says(s, "people")}
            out.append(_Spoken(self._verdicts(texts[column]), speakers, codes, persons))
        return out

    def _verdicts(self, column: Names) -> Ints:
        """The class that each row says, (n,), -1 for none; the name of one of the two counts."""
        words, plain = words_table().says, [_plain(t) for t in column.texts]
        # Of 0 and 1 alone, 1 is the first; with 2, that is the second, and 0 a tie.
        binary = {*plain} - {*NO_LABEL} == {"0", "1"}
        kinds = [words[f"verdict_{k}"] for k in ("first", "second", "tie")]
        meaning = [
            1 if binary and t == "0" else next((k for k in range(3) if t in kinds[k]), -2)
            for t in plain
        ]
        place = {name: i for i, name in enumerate(self.contestants)}
        wins = np.array([*(place.get(t, -3) for t in column.texts), -3])[column.codes]
        out = np.array([*meaning, -1], dtype=np.int64)[column.codes]
        out = np.where(wins == self.a, 0, np.where(wins == self.b, 1, out))
        out[np.array([*(t in NO_LABEL for t in column.texts), True])[column.codes]] = -1
        strange = np.flatnonzero((out == -2) & (self.a >= 0) & (self.b >= 0))
        if len(strange):
            row = int(strange[0])
            two = listed([self.contestants[self.a[row]], self.contestants[self.b[row]]])
            raise InputError(
                f"column {quoted(column.column)} says {quoted(str(column.each()[row]))} in row "
                f"{row + 1}, and must say model_a, model_b or tie, or one of the two that are "
                f"compared there ({two}); correct it, or leave the cell empty"
            )
        return out

    def _places(self) -> tuple[Ints, Bools, Ints]:
        """The comparison of each row (n,), -1 for none; if swapped (n,); their first rows.

        Rows of one prompt and two contestants are one comparison; without a prompt each is one.
        """
        a, b = self.a, self.b
        met = np.flatnonzero((a >= 0) & (b >= 0) & (a != b))
        if not len(met):
            raise InputError(
                f"has no row with two different names in {listed(map(quoted, self.sides))}"
            )
        keys = (
            [np.arange(len(a))] if not self.prompt else [self.texts[c].codes for c in self.prompt]
        )
        both = np.column_stack([*keys, np.minimum(a, b), np.maximum(a, b)])[met]
        _, firsts, place = np.unique(both, axis=0, return_index=True, return_inverse=True)
        out = np.full(len(a), -1)
        out[met] = np.argsort(np.argsort(firsts))[place.reshape(-1)]  # in the order of the file
        rows = met[np.sort(firsts)]
        return out, (out >= 0) & (a != a[rows][out]), rows

    def gathered(
        self, spoken: Sequence[_Spoken], weights: Any, cluster: Sequence[str]
    ) -> Comparisons:
        """The comparisons, from what was said in each column."""
        place, swapped, rows = self._places()
        machines = {s for one in spoken for s in one.speakers if s not in one.people}
        if self.by is not None and not self.prompt and len(machines) > 1:
            raise InputError(
                f"column {quoted(self.by)} says who judged each row, and no column says which rows "
                "are of one comparison; name that of the prompt with --item COL"
            )
        n, notes, counts = len(rows), list[str](), np.zeros((len(rows), 3))
        judges = dict[str, int]()
        parts = []
        for one in spoken:
            use = np.flatnonzero((place >= 0) & (one.said >= 0) & (one.codes >= 0))
            person = np.array([s in one.people for s in one.speakers])[one.codes[use]]
            at = use[person]
            turned = np.where(swapped[at], TURNED[one.said[at]], one.said[at])
            np.add.at(counts, (place[at], turned), 1)
            use = use[~person]
            codes, inverse = np.unique(one.codes[use], return_inverse=True)
            who = [judges.setdefault(one.speakers[c], len(judges)) for c in codes]
            judge = np.array(who, dtype=np.int64)[inverse]
            parts.append(Verdicts(place[use], judge, one.said[use], swapped[use]))
        every = Verdicts(*map(np.concatenate, zip(*parts, strict=True)))
        seen = np.column_stack([every.row, every.judge, every.swapped])
        once = np.sort(np.unique(seen, axis=0, return_index=True)[1])
        if len(once) < len(seen):
            notes.append(
                f"{len(seen) - len(once):,} verdicts are left out: of judges who had judged the "
                "same comparison in the same order before"
            )
        if (place < 0).any():
            notes.append(
                f"{int((place < 0).sum()):,} rows are left out: they do not name two contestants"
            )
        every = every.take(once)
        block, models = _votes(every, [*judges], n)
        heard = counts.any(axis=1) | (block >= 0).any(axis=1)
        if not heard.any():
            raise InputError("has no verdict: every cell that says who won is empty")
        labels = np.where(counts.any(axis=1), counts.argmax(axis=1), -1)
        several = bool((counts.sum(axis=1) > 1).any())
        clusters = {c: self.texts[c].each()[rows] for c in cluster or self.prompt[:1]}
        if not cluster and clusters:
            again = n - len({*clusters[self.prompt[0]].tolist()})
            clusters = clusters if again else {}
            notes += [f"comparisons of one {quoted(self.prompt[0])} go together"] * bool(again)
        names = np.array(self.contestants, dtype=object)
        first, second = self.a[rows], self.b[rows]
        prompt = f", by prompt {listed(map(quoted, self.prompt))}" if self.prompt else ""
        made = Predictions(
            votes=block if models else labels[:, None], labels=None if several else labels,
            classes=list(CLASSES), histogram=counts if several else None,
            models=models or ["people"], clusters=clusters, notes=notes,
            groups={"first": names[first], "second": names[second]},
            weight=None if weights is None else weights[rows],
            reading=(
                f"compared: {listed(map(quoted, self.sides))}{prompt}",
                f"verdicts: of people {int(counts.sum()):,}, of judges {len(once):,}",
            ),
        )  # fmt: skip
        kept = np.flatnonzero(heard)
        return Comparisons(
            made.take(kept), self.contestants, first[kept], second[kept], rows[kept],
            tuple(judges), every._replace(row=np.searchsorted(kept, every.row)),
        )  # fmt: skip


def _votes(every: Verdicts, judges: Sequence[str], n: int) -> tuple[Ints, list[str]]:
    """The verdicts as votes (n, M) in the order of the comparison, and who casts them."""
    column = every.judge * 2 + every.swapped
    used, place = np.unique(column, return_inverse=True)
    block = np.full((n, len(used)), -1)
    block[every.row, place] = np.where(every.swapped, TURNED[every.said], every.said)
    return block, [judges[c // 2] + SWAPPED * (c % 2) for c in used.tolist()]
