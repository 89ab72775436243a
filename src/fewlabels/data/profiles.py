"""What a column looks like: how full, how many different values, numbers or words, and its name.

Words and weights stand in `words.toml`; what a name says for or against a role is the sum of those
of its words, as log-odds.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from itertools import chain, dropwhile, takewhile
from typing import Any, NamedTuple

import numpy as np

from fewlabels.checks.class_words import NO_LABEL, folded, same_answer
from fewlabels.data.options import ColumnOptions
from fewlabels.data.table import Names, Table, class_text
from fewlabels.errors import InputError
from fewlabels.kernels.arrays import Bools, Floats, Ints

WORD = re.compile(r"[0-9a-zA-Z\u0080-\uffff]+")
"""A word of a column's name."""

_NEGATIONS = {"not", "non", "no"}
_OF_A_CLASS = re.compile(
    r"(?i)(.*[^a-z])?(p|pr|prob|proba|probs|probability|class|cls|label|y|c|is)"
)
"""What stands before a number that is a class, not the number of a fold or of a model."""


class Part(NamedTuple):
    """The class that a column's name says, and what is left of the name."""

    name: str
    rest: str


def tokens(name: str) -> list[str]:
    """The words of a column's name."""
    return WORD.findall(name)


def class_of_name(column: str, classes: Sequence[str]) -> Part | None:
    """The class that a column's name ends in, else begins with: the longest one, whole words."""
    shown = tokens(column)
    words = tuple(folded(word) for word in shown)
    names, sizes = _by_words(tuple(classes))
    sizes = [k for k in sizes if k <= len(words)]
    at_end = ((names.get(words[-k:], ""), shown[:-k], True) for k in sizes)
    at_start = ((names.get(words[:k], ""), shown[k:], False) for k in sizes)
    for name, rest, is_end in chain(at_end, at_start):
        if not name:
            continue
        if is_end and len(classes) == 2 and rest and folded(rest[-1]) in _NEGATIONS:
            return Part(classes[1 - list(classes).index(name)], "_".join(rest[:-1]))
        return Part(name, "_".join(rest))
    return None


@lru_cache(8)
def _by_words(classes: tuple[str, ...]) -> tuple[dict[tuple[str, ...], str], list[int]]:
    """The class of each sequence of folded words, and how many words there are, most first."""
    words = ((tuple(map(folded, tokens(name))), name) for name in reversed(classes))
    names = {of: name for of, name in words if of}
    return names, sorted(set(map(len, names)), reverse=True)


def by_names(
    columns: Sequence[str], classes: Sequence[str], *, in_words: bool = True
) -> dict[str, str] | None:
    """Class -> column of a classifier, where the names say so one to one; else None."""
    # Unless `in_words`, whole words alone say so, and no letter or number within one.
    found = [class_of_name(column, classes) for column in columns]
    named = [None if part is None else part.name for part in found]
    # no and yes for 0 and 1: synonyms, where all that differs between the names is that; the letter
    # of choiceA, the number of p0.
    for told in (differences, letters_apart)[: 1 + in_words] if None in named else ():
        if None in named:
            named = [same_answer(name, classes) for name in told(columns) or ()] or [None]
    if len(named) != len(classes) or None in named or len(set(named)) < len(named):
        return None
    return {name: column for name, column in zip(named, columns, strict=True) if name is not None}


def class_of_one(column: str, classes: Sequence[str]) -> str | None:
    """Which of two classes a single column is of, if its name says so."""
    # A number counts only behind a word such as "proba": `fold_0` is no column of class 0.
    part = class_of_name(column, classes)
    if part is None:
        return None
    if part.name.isdigit() and not _OF_A_CLASS.fullmatch(part.rest):
        return None
    return part.name


def differences(columns: Sequence[str]) -> tuple[str, ...] | None:
    """What differs between names, whole words: the classes that columns of one classifier name."""
    # None where it is nothing for some name, or the same for two.
    parts = _between([tokens(column) for column in columns])
    return _all_apart(tuple(class_text("_".join(part)) for part in parts))


def letters_apart(columns: Sequence[str]) -> tuple[str, ...] | None:
    """What differs between names, letter by letter, as `differences` has it."""
    return _all_apart(tuple("".join(part) for part in _between(differences(columns) or ())))


def _between(names: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """What is left of each name without what all begin with, and then what all end in."""
    for _ in range(2):
        same = takewhile(lambda each: len(set(map(folded, each))) == 1, zip(*names, strict=False))
        head = sum(1 for _ in same)
        names = [name[head:][::-1] for name in names]
    return list(names)


def _all_apart(texts: tuple[str, ...]) -> tuple[str, ...] | None:
    """The texts, if there are several, each of its own; else None."""
    own = len(set(map(folded, texts))) == len(texts) > 1 and all(texts)
    return texts if own else None


MOST_CLASSES = 200
"""A column of more different values holds no classes."""

_SOME = 200
"""Values that are looked at to tell names from sentences."""

_MANY = 12
"""More different numbers are no codes, of which one may stand for none."""

_MOST_OF_A_NAME = 16.0
"""What a name says at most for or against a role."""

_NUMBERED = re.compile(r"(.*?[^\W\d])\d+[a-z]?")


class Words(NamedTuple):
    """The table of words: word -> role -> weight; what else is said; weights of values; cells."""

    roles: dict[str, dict[str, float]]
    says: dict[str, frozenset[str]]
    values: dict[str, dict[str, float]]
    cells: dict[str, str]


@cache
def words_table() -> Words:
    """Read `words.toml`."""
    table = tomllib.loads(files("fewlabels.data").joinpath("words.toml").read_text("utf-8"))
    values, cells = table.pop("values"), table.pop("cells")
    lists = table.pop("says") | {role: " ".join(by.values()) for role, by in table.items()}
    roles: dict[str, dict[str, float]] = {}
    for role, by in table.items():
        for weight, words in by.items():
            of_lists = " ".join(lists[word[1:]] for word in words.split() if word[0] == "@")
            for word in (*words.split(), *of_lists.split()):
                known = roles.setdefault(word, {})
                known[role] = known.get(role, 0.0) + float(weight)
    return Words(
        roles, {what: frozenset(text.split()) for what, text in lists.items()}, values, cells
    )


@cache
def cell_patterns() -> tuple[re.Pattern[str], ...]:
    """What texts look like that hold several values, by the table [cells]."""
    return tuple(map(re.compile, words_table().cells.values()))


_OF_UNNAMED = re.compile(r"c\d+\[([^\[\]]+)\]")


def _said_name(name: str) -> str:
    """The name of a column, or the key of what a cell of one without a name says."""
    key = _OF_UNNAMED.fullmatch(name)
    return name if key is None else key[1]


def name_words(name: str) -> list[str]:
    """The words of a column's name in lower case, humps taken apart."""
    humps = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", _said_name(name))
    return [folded(word) for word in tokens(humps)]


def _plain(word: str, known: Collection[str]) -> str:
    """A word that is known, else without the number at its end."""
    numbered = None if word in known else _NUMBERED.fullmatch(word)
    return word if numbered is None else numbered[1]


@lru_cache(1 << 14)
def _weights_of(name: str) -> tuple[dict[str, float], ...]:
    """What each word of a name says: role -> weight."""
    known, words = words_table().roles, name_words(name)
    found = []
    for i, word in enumerate(words):
        plain, of_word = _plain(word, known), dict[str, float]()
        ways = [plain, f"^{plain}" if not i else "", f"${plain}" if i == len(words) - 1 else ""]
        ways += [f"={word}" if len(words) == 1 else "", "_".join(words[i : i + 2])]
        for way in {*ways} & known.keys():
            for role, weight in known[way].items():
                of_word[role] = of_word.get(role, 0.0) + weight
        found.append(of_word)
    return tuple(found)


def name_evidence(name: str, role: str) -> float:
    """What a name says of a role: the log-odds of its words, added."""
    total = sum(of_word.get(role, 0.0) for of_word in _weights_of(name))
    return max(min(total, _MOST_OF_A_NAME), -_MOST_OF_A_NAME)


@lru_cache(1 << 14)
def says(name: str, what: str) -> bool:
    """Whether a word of a name says something, by the table [says]."""
    known = words_table().says[what]
    return any(_plain(word, known) in known for word in name_words(name))


SURELY, LIKELY = 9.0, 2.0
"""What a name says of labels from which it surely, or likely, is that of labels."""


def names_role(name: str, role: str) -> bool:
    """Whether a name is that of one role, which no word speaks against, and of no measure."""
    # Names of labels, of sampling weights and of their inverse have no other words.
    each = [of_word.get(role, 0.0) for of_word in _weights_of(name)]
    if role == "label":
        return sum(each) >= SURELY and min(each) > 0 and says(name, "labels")
    if role in ("weight", "drawn"):
        return sum(each) >= LIKELY and 0.0 not in each
    other = role == "prediction" and name_evidence(name, "annotator") > 0
    return sum(each) > 0 and not other and (role == "domain" or not names_measure(name))


def truth_in_name(name: str) -> int:
    """How much a name is that of labels: 3 surely, 2 likely, 1 perhaps, 0 not at all."""
    evidence = name_evidence(name, "label")
    return (evidence > 0) + (evidence >= LIKELY) + (evidence >= SURELY)


def names_truth(name: str) -> bool:
    """Whether a word of a name is one that only labels have."""
    return any(weight >= SURELY for weight in _of_words(name_words(name), "label"))


def predicts_in_name(words: Collection[str]) -> bool:
    """Whether the words of a name are of a classifier, or of something that one says."""
    return any(weight > 0 for weight in _of_words(words, "prediction"))


def names_chance(name: str) -> bool:
    """Whether a name says that numbers are how likely something is, and not how sure one is."""
    words = [word for word in name_words(name) if not says(word, "percent")]
    likely = (_of_words(words, role) for role in ("probability", "score", "prediction"))
    return any(weight > 0 for each in likely for weight in each) and not says(name, "sure")


def _of_words(words: Collection[str], role: str) -> list[float]:
    """What each word says of a role wherever it stands in a name."""
    known = words_table().roles
    return [known.get(_plain(word, known), {}).get(role, 0.0) for word in words]


def names_measure(name: str) -> bool:
    """Whether a name is that of a group or of a feature."""
    return name_evidence(name, "group") > 0 or name_evidence(name, "feature") > 0


def item_in_name(name: str) -> int:
    """How much a name is that of items: 2 numbers them or what they are of, 1 is their text."""
    most = max((of_word.get("item", 0.0) for of_word in _weights_of(name)), default=0.0)
    return 2 if most >= 4 else int(most > 0 and not names_measure(name))


def names_items(name: str) -> bool:
    """Whether a whole name is one of columns that name the items, if all their values differ."""
    return "".join(name_words(name)) in words_table().says["names_items"]


def names_result(name: str) -> bool:
    """Whether a whole name is that of a measure of how good something is: f1-score."""
    # What it is a measure on may stand before it: metrics.val_f1, macro avg precision.
    known, words = words_table().says, name_words(name)
    own = "".join(dropwhile(lambda word: word in known["results_on"], words))
    return own in known["results"]


def of_a_run(name: str) -> bool:
    """Whether a name is that of a setting of a training run: params.learning_rate."""
    words = name_words(name)
    return len(words) > 1 and words[0] in words_table().says["settings"]


def names_percentages(name: str) -> bool:
    """Whether a column's name says that it holds percentages."""
    return "%" in name or says(name, "percent")


def is_role(name: str, also: Collection[str] = ()) -> bool:
    """Whether a name says what a column holds, and not of which classifier."""
    holds = words_table().says["holds"]
    return all(folded(word) in holds or folded(word) in also for word in tokens(name))


def without_role(name: str, also: Collection[str] = ()) -> str:
    """A classifier's name: that of its column without the words for what it holds, and `also`."""
    name = _said_name(name)
    words = list(WORD.finditer(name))
    role = [is_role(word[0], also) for word in words]
    first, last = 0, len(words) - 1
    while first < last and role[last]:
        last -= 1
    while first < last and role[first]:
        first += 1
    if not words or role[first]:
        return name
    # What stands outside the words, such as a bracket, stays where no word goes.
    start = words[first].start() if first else 0
    left = name[start:]
    if last < len(words) - 1:
        left = re.sub(r"(?:_|[^\w)\]}])+$", "", name[start : words[last + 1].start()])
    closes = [end for begin, end in ("()", "[]") if left.count(begin) < left.count(end)]
    return left.rstrip("".join(closes)) if closes else left


@dataclass(frozen=True)
class Profile:
    """One column: its values, and what its name says.

    `counts` are texts of classes and how many rows have each, without those for no label; None
    where there are too many. `codes` (n,) are into `texts`, -1 = none. `numbers` (n,) are its
    numbers, None where it holds others. `wordy` says that its values are sentences, `nested` that
    they are lists of objects.
    """

    name: str
    rows: int
    filled: int
    distinct: int
    counts: Mapping[str, int] | None
    numbers: Floats | None
    codes: Ints
    texts: tuple[str, ...] = ()
    wordy: bool = False
    nested: bool = False

    def without(self, words: Collection[str]) -> Profile:
        """The same column, where some texts (folded) are none of its values."""
        if self.counts is None or not any(folded(t) in words for t in self.counts):
            return self
        kept = {t: rows for t, rows in self.counts.items() if folded(t) not in words}
        return replace(self, counts=kept, distinct=len(kept), filled=sum(kept.values()))

    def of(self, role: str) -> float:
        """What its name says of a role."""
        return name_evidence(self.name, role)

    def says(self, what: str) -> bool:
        """Whether its name says something, by the table [says]."""
        return says(self.name, what)

    @cached_property
    def words(self) -> list[str]:
        """The words of its name."""
        return name_words(self.name)

    @property
    def unique(self) -> bool:
        """Whether no value comes twice."""
        return self.filled > 1 and self.distinct == self.filled

    @property
    def sparse(self) -> bool:
        """Whether it is mostly empty."""
        return 0 < self.filled <= 0.6 * self.rows

    @cached_property
    def whole(self) -> bool:
        """Whether all its numbers are whole."""
        return bool(len(self.known)) and bool((self.known == np.round(self.known)).all())

    @cached_property
    def known(self) -> Floats:
        """Its numbers, without those that are missing."""
        return np.empty(0) if self.numbers is None else self.numbers[~np.isnan(self.numbers)]

    @cached_property
    def in_unit(self) -> bool:
        """Whether all its numbers are from 0 to 1."""
        known = self.known
        return bool(len(known)) and bool(known.min() >= 0 and known.max() <= 1)

    @cached_property
    def marker(self) -> float | None:
        """The whole number of several rows that alone lies outside of what many others are in."""
        # It is the only negative one, or the only one above 1: -1 or 99, where nothing is known.
        known = self.known
        for apart in (known < 0, known > 1):
            odd, rest = known[apart], np.unique(known[~apart])
            if len(odd) > 1 and odd[0] == np.round(odd[0]) and (odd == odd[0]).all():
                return float(odd[0]) if len(rest) > _MANY and rest[0] >= 0 else None
        return None

    @property
    def never_below_half(self) -> bool:
        """Whether its numbers are shares that a larger one of two may have."""
        return self.in_unit and float(self.known.min()) >= 0.5 - 1e-9

    @property
    def coded(self) -> bool:
        """Whether it holds several texts or whole numbers, few enough for classes."""
        return len(self.counts or ()) > 1 and (self.numbers is None or self.whole)

    @property
    def few(self) -> bool:
        """Whether its values come often enough to be classes."""
        return len(self.counts or ()) > 1 and (2 * self.distinct <= self.filled or self.filled < 10)

    @property
    def predicts(self) -> bool:
        """Whether its name is that of a classifier, or of something that one says."""
        return self.of("prediction") > 0

    @property
    def measures(self) -> bool:
        """Whether it is a feature or a group by its name."""
        ends = bool(self.words) and name_evidence(self.words[-1], "feature") > 0
        return ends or (names_measure(self.name) and not self.predicts)

    @property
    def of_itself(self) -> bool:
        """Whether its name is that of how sure a classifier is of what it predicts."""
        return self.of("confidence") >= 4

    @property
    def judges_another(self) -> bool:
        """Whether its name says that it tells if something else is right: gpt_correct."""
        return len(self.words) > 1 and says(self.words[-1], "right")

    @property
    def yes_or_no(self) -> bool:
        """Whether all its values are plain words for yes and no."""
        known = words_table().says["yes_or_no"]
        return bool(self.counts) and all(folded(t) in known for t in self.counts or ())

    @property
    def agrees(self) -> bool:
        """Whether yes and no say, by its name, that somebody agrees."""
        return self.yes_or_no and self.says("agrees")

    @property
    def done(self) -> bool:
        """Whether yes and no say, by its name, what was done with an item: reviewed, is_labeled."""
        known = words_table().says
        alone = set(self.words) <= known["done"] | known["by_whom"]
        return self.yes_or_no and self.says("done") and alone

    @property
    def confirms(self) -> bool:
        """Whether yes and no say perhaps that a verdict is right: human_agrees, verified."""
        return self.agrees or (self.done and self.says("confirmed"))

    def pairs(self, other: Profile, rows: Bools | slice = slice(None)) -> int:
        """How many different pairs of values some rows of two columns hold."""
        width = int(other.codes.max(initial=0)) + 2
        return len(np.unique(self.codes[rows] * width + other.codes[rows]))

    def known_with(self, other: Profile) -> bool:
        """Whether another column is known in the same rows alone, or in none of them."""
        mine, theirs = self.codes >= 0, other.codes >= 0
        same = bool((mine == theirs).all()) or not (mine & theirs).any()
        return same and not mine.all() and bool(mine.any())

    def names_alike(self, other: Profile) -> bool:
        """Whether two columns tell the same rows apart."""
        return self.distinct == other.distinct == self.pairs(other)


def profile(table: Table, name: str, options: ColumnOptions) -> Profile:
    """Look at one column of a table, which has been read as it stands."""
    declared = set(map(class_text, options.classes or ()))
    none = NO_LABEL - set(map(folded, declared)) | {folded(text) for text in options.no_label}

    def text_of(value: Any) -> str | None:
        text = class_text(value)
        text = options.same.get(text, text)
        return None if folded(text) in none else text

    try:
        names = Names.of(table, name, text_of)
    except InputError:
        return Profile(name, table.n_rows, 0, 0, None, None, np.full(table.n_rows, -1), nested=True)
    held = names.counts()
    numbers = None
    try:
        numbers = table.numbers(name)
    except InputError:
        pass
    else:
        if not (~np.isnan(numbers)).any() or np.isinf(numbers).any():
            numbers = None
    small = held if len(held) <= MOST_CLASSES else None
    some = list(held)[:_SOME]
    wordy = sum(len(text.split()) > 2 for text in some) > len(some) / 2
    return Profile(
        name, table.n_rows, sum(held.values()), len(held), small, numbers, names.codes, names.texts,
        wordy, any(text.startswith("[{") for text in some),
    )  # fmt: skip
