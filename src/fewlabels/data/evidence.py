"""What speaks for each role of a column, as log-odds that add: its name and its values.

All weights stand in `words.toml`; a column that is not used has 0. A `Sheet` is the columns of one
table, the evidence for their roles, and what is assigned so far.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from fewlabels.checks.class_words import MAYBE_NO_LABEL, folded, same_answer
from fewlabels.data.agreement import cut_apart, kappa
from fewlabels.data.options import ColumnOptions
from fewlabels.data.profiles import Profile, item_in_name, names_role, profile, words_table
from fewlabels.data.roles import split_native
from fewlabels.data.table import Table
from fewlabels.errors import InputError
from fewlabels.kernels.arrays import Array, Ints

MARGIN = 1.0
"""Log-odds by which a choice must be better than the next that means something else."""

NEARLY_ALL = 0.9

MANY_ITEMS = 40
"""So many votes never agree in all items by chance."""

AGREE = 0.2
"""Agreement beyond chance (kappa) from which a column of the labels' values is a prediction."""

APART = 3.0
"""Standard errors from which numbers rank the classes of the labels."""

FEW_WORDS = 12
"""Different values beyond which a column is not compared with the classes."""


class Evidence(NamedTuple):
    """What speaks for one role of a column: log-odds, and why."""

    role: str
    score: float
    reason: str


def weigh(p: Profile, role: str, *facts: str, of: str | None = None) -> Evidence:
    """The evidence of a column's name, by the words for `of` a role, and of facts on its values."""
    weights = words_table().values.get(role, {})
    name = p.of(of or role)
    parts = [("name", name)] if name else []
    parts += [(fact, float(weights[fact])) for fact in facts]
    reason = ", ".join(f"{what} {weight:+g}" if weight else what for what, weight in parts)
    return Evidence(role, sum(weight for _, weight in parts), reason)


class ColumnEvidence(NamedTuple):
    """A column's role, the log-odds of that and why, and what it would be else."""

    column: str
    role: str
    score: float
    reason: str
    runner_up: str | None
    runner_up_score: float | None


def weight_evidence(p: Profile) -> Evidence:
    """Only numbers that are not negative, and not all the same, weigh anything."""
    # They are used where every row has one above 0, and no inverse probability is below 1.
    facts = ["all the same"] if p.distinct < 2 else []
    least = p.known.min() if len(p.known) else -1.0
    facts += ["negative, or no numbers"] if least < 0 else []
    facts += ["not above 0 in every row"] if p.filled < p.rows or least <= 0 else []
    facts += ["inverse, and below 1"] if p.says("inverse") and least < 1 else []
    return weigh(p, "weight", *facts)


@dataclass(frozen=True)
class Reading:
    """What was recognised: the options that say it, in lines, and whether the rows are votes.

    `lines` are empty where the caller and the native names say everything. `votes` says that every
    row is the vote of an annotator. `sheet` is what it was read from, where it was.
    """

    options: ColumnOptions
    lines: tuple[str, ...] = ()
    votes: bool = False
    sheet: Sheet | None = field(default=None, repr=False, compare=False)

    @property
    def evidence(self) -> tuple[ColumnEvidence, ...]:
        """The evidence for the role of each column; empty where nothing had to be recognised."""
        return () if self.sheet is None else self.sheet.table_of_evidence(decided=True)


class UnjudgedError(InputError):
    """There are scores, and no labels by which to see how good they are."""


class AmbiguousError(InputError):
    """A file can be read in two ways; `readings` are the options of each."""

    def __init__(self, message: str, readings: Sequence[Sequence[str]]) -> None:
        self.readings = tuple(" ".join(map(shlex.quote, reading)) for reading in readings)
        super().__init__(f"{message}: say which with {' or '.join(self.readings)}")


@lru_cache(4096)
def _all_mean(texts: frozenset[str], classes: tuple[str, ...]) -> bool:
    """Whether every text means one of the classes."""
    return all(same_answer(text, classes) for text in texts)


def fits(p: Profile, classes: Sequence[str]) -> bool:
    """Whether a column holds classes, and all its values mean one of them."""
    return bool(p.counts) and _all_mean(frozenset(p.counts or ()), tuple(classes))


def strays(p: Profile, classes: Sequence[str]) -> list[str] | None:
    """Words (folded) of few rows that are none of the classes, where several others are."""
    # None of a column that holds other values than the classes.
    if not p.counts or not (p.numbers is None or fits(p, classes)):
        return None
    known = [rows for text, rows in p.counts.items() if same_answer(text, classes)]
    new = {folded(text) for text in p.counts if not same_answer(text, classes)}
    several = len(known) > 1 and len(new) == len(p.counts) - len(known) <= MOST_STRAYS
    return sorted(new) if several and sum(known) > 0.5 * p.filled else None


MOST_STRAYS = 3
"""Words beside the classes that a column may hold where something had no answer."""


def class_indices(p: Profile, classes: Sequence[str]) -> Array:
    """The number of the class in each row of a column, -1 for none."""
    order = list(classes)
    index = []
    for text in p.texts:
        meant = same_answer(text, order) if text in (p.counts or ()) else None
        index.append(-1 if meant is None else order.index(meant))
    codes = np.where(p.codes < len(index), p.codes, -1)
    return np.array([*index, -1], dtype=np.int64)[codes]


def beyond_chance(p: Profile, label: Profile, classes: Sequence[str]) -> float | None:
    """Cohen's kappa of two columns of some classes; None on too few rows."""
    return kappa(class_indices(p, classes), class_indices(label, classes), len(classes))


def made_with(p: Profile, label: Profile) -> bool:
    """Whether a column is known just where the labels are, and is no classifier's by its name."""
    # A person's are those that the labels were made of.
    return label.known_with(p) and (not p.predicts or p.says("person"))


def consensus_of(columns: Sequence[Profile]) -> set[str]:
    """Of columns of people the one that says, where it is known, what most of the others say."""
    # One of these is known in the same rows and in no other. The consensus may differ in few of the
    # rows in which most say one thing; no other column that is known there does so as seldom.
    shares: dict[bytes, dict[str, float]] = {}
    for p in columns:
        words, known = tuple(p.counts or ()), p.codes >= 0
        others = [q for q in columns if q is not p and (q.codes >= 0)[known].all()]
        if len(others) < 2 or not any(map(p.known_with, others)):
            continue
        others = [q for q in others if fits(q, words) and (not q.predicts or q.says("person"))]
        person = not p.predicts or all(q.says("person") for q in others)
        if len(others) < 2 or not person or not any(map(p.known_with, others)):
            continue
        own, said = class_indices(p, words), [class_indices(q, words) for q in others]
        pairs = [(one[both], own[both]) for one in said for both in [(one >= 0) & (own >= 0)]]
        if not all((one > of).any() and (one < of).any() for one, of in pairs):
            continue  # tags, of which one implies another, are of several questions
        counts = np.stack([sum((one == k).astype(int) for one in said) for k in range(len(words))])
        clear = (own >= 0) & (2 * counts.max(0) > len(others))
        if clear.sum() >= MANY_ITEMS // 2:
            share = float((counts.argmax(0) == own)[clear].mean())
            shares.setdefault(known.tobytes(), {})[p.name] = share
    found = set[str]()
    for share_of in shares.values():
        most = max(share_of.values())
        best = [name for name, share in share_of.items() if share == most]
        found |= {*best} if most >= _CONSENSUS and len(best) == 1 else set()
    return found


_CONSENSUS = 0.97
"""Share of the rows with a majority in which a consensus is what that says."""


def separates(p: Profile, codes: Ints) -> bool:
    """Whether numbers are apart in many rows of two classes, as what is known afterwards is."""
    x = np.empty(0) if p.numbers is None else p.numbers
    known = (codes >= 0) & ~np.isnan(x)
    return int(known.sum()) >= _MANY_ROWS and any(
        cut_apart(x[known], codes[known], k) for k in (0, 1)
    )


_MANY_ROWS = 100
"""So many known labels no score of a classifier separates, but by what it must not know."""


def same_within(p: Profile, other: Profile) -> bool:
    """Whether a column is the same in all rows in which another one is."""
    filled = p.codes >= 0
    return bool(filled.any()) and p.pairs(other, filled) == len(np.unique(other.codes[filled]))


class Sheet:
    """The columns of one table, the evidence for their roles, and what is assigned so far."""

    def __init__(self, table: Table, names: Sequence[str], options: ColumnOptions) -> None:
        self.table, self.names, self.options = table, names, options
        found = {n: profile(table, n, options) for n in names}
        # "none" and "unknown" are no label, unless several columns say so.
        said = Counter(t for p in found.values() for t in set(map(folded, p.counts or ())))
        none = {word for word in MAYBE_NO_LABEL if said[word] < 2}
        self.columns = {name: p.without(none) for name, p in found.items()}
        self.markers = {n: p.marker for n, p in self.columns.items() if p.marker is not None}
        for name, marker in self.markers.items():
            p = self.columns[name]
            known = np.where(p.numbers == marker, np.nan, p.numbers)  # type: ignore[arg-type]
            self.columns[name] = replace(p, numbers=known)
        native = {name for name in names if split_native(name) is not None}
        self.claimed = options.of_classifiers | native
        named = (options.label, options.domain, options.weight, options.item)
        of_role = (*named, *(options.keep or ()), *options.cluster, "domain", "weight")
        self.roles = {name: "as said" for name in of_role if name in self.columns}
        self.label: Profile | None = self.columns.get(options.label or "")
        self.models: dict[str, tuple[str, ...]] = {}
        self.hard: dict[str, str] = {}
        self.scores: dict[str, str] = {}
        self.confidence: dict[str, str] = {}
        self.asked: dict[str, Profile] = {}
        self.evidence: dict[str, dict[str, Evidence]] = {}
        self.doubted: list[Profile] = []
        self.flags: list[Profile] = []
        self.nameless: str | None = None
        self.derived: list[Profile] = []

    def weigh(self, p: Profile, role: str, *facts: str) -> float:
        """The log-odds of a role, which the table of evidence keeps."""
        found = weigh(p, role, *facts)
        self.evidence.setdefault(p.name, {})[role] = found
        return found.score

    def said(self, *, labeled: bool = True, **more: Mapping[str, str]) -> list[str]:
        """The options that say what is assigned, with the label or without, and more of a kind."""
        kinds = {"hard": self.hard, "scores": self.scores, "confidence": self.confidence}
        named = {kind: {**columns, **more.get(kind, {})} for kind, columns in kinds.items()}
        label = None if self.label is None or not labeled else self.label.name
        return ColumnOptions(label, models=self.models, **named).arguments()  # type: ignore[arg-type]

    def answers(self) -> list[Profile]:
        """Columns that by their names hold an answer, though nothing says whose."""
        free = [p for p in self.free() if p.few and p.numbers is None]
        return [p for p in free if p.of("label") > 0 or p.of("vote") > 0]

    def free(self) -> list[Profile]:
        """Columns that have no role yet."""
        return [p for name, p in self.columns.items() if name not in self.roles and p.filled]

    @cached_property
    def compared(self) -> set[str]:
        """Columns that another one chooses among, row by row, by their names."""
        chosen = [self.columns.keys() & set(p.counts or ()) for p in self.columns.values()]
        return {name for names in chosen if len(names) > 1 for name in names}

    @cached_property
    def right(self) -> list[Profile]:
        """Columns that say whether an answer is right."""
        return [p for p in self.free() if p.judges_another and p.yes_or_no and p.coded]

    def table_of_evidence(self, *, decided: bool) -> tuple[ColumnEvidence, ...]:
        """Each column's role and the next best; what has none is open unless all is `decided`."""
        table = []
        for name, p in self.columns.items():
            known = self.evidence.get(name, {})
            rest = [weigh(p, one) for one in ("time", "group", "feature") if p.of(one) > 0]
            rest += [weight_evidence(p)] if names_role(name, "weight") else []
            if item_in_name(name) and 1 < p.distinct < p.filled:
                rest.append(weigh(p, "cluster", "recurs", of="item"))
            rest.append(Evidence("not used", 0.0, "nothing says more"))
            rest.sort(key=lambda one: -one.score)
            role = self.roles.get(name)
            said = Evidence(str(role), 0.0, "by the options or the name")
            free = rest if decided else [*known.values(), *rest]
            best = known.get(role, said) if role else max(free, key=lambda one: one.score)
            others = [one for one in (*known.values(), *rest) if one.role != best.role]
            other = max(others, key=lambda one: one.score, default=None)
            second = (None, None) if other is None else (other.role, other.score)
            table.append(ColumnEvidence(name, *best, *second))
        return tuple(table)
