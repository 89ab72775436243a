"""What a result says, in the order in which it is said: a text and a page are made from it.

A builder makes a `Document` of the report, a dictionary of plain values; `text` and `page` render
any document, and know nothing of any kind of result. Sentences are plain texts, in which `name`
marks what comes from the data, `strong` the number that matters, and backticks what is to be typed.
What is marked `on` "page" or "text" is in one of the two alone, and `page_only` parts are made by
a page alone.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from fewlabels.errors import gravest_first
from fewlabels.report.words import escape_control, plural

On = Literal["", "page", "text"]
Role = Literal["", "title", "soft", "warning", "error", "good"]

# Controls, which no escaped name holds.
_NAME, _STRONG, _END = "\x02", "\x03", "\x04"
MARKS = re.compile(f"{_NAME}([^{_END}]*){_END}|{_STRONG}([^{_END}]*){_END}|`([^`]*)`")
"""Marked parts of a sentence: a name, what matters, what is to be typed."""

# A name may have full stops.
_SENTENCE = re.compile(rf"(?:{_NAME}[^{_END}]*{_END}|\.(?!\s)|[^.{_NAME}])+\.?")
_INTERVAL = re.compile(r"(\S+) (\[[-+\d.,e%<>= ]+\])")


def name(text: object) -> str:
    """A name of the data within a sentence; it stays on its line, and keeps its direction."""
    return f"{_NAME}{escape_control(text)}{_END}"


def plain(text: object) -> str:
    """Text of the data, or of a file, within a sentence: its backticks are its own."""
    return escape_control(text).replace("`", name("`"))


def strong(text: object) -> str:
    """The number that a sentence is about."""
    return f"{_STRONG}{escape_control(text)}{_END}"


def pieces(text: object) -> Iterator[tuple[Literal["", "name", "strong", "typed"], str]]:
    """The parts of a sentence, and how each is marked; controls are escaped."""
    place, sentence = 0, str(text)
    for match in MARKS.finditer(sentence):
        yield "", escape_control(sentence[place : match.start()])
        found, strong, typed = match.groups()
        if found is not None:
            yield "name", escape_control(found)
        else:
            yield ("typed", escape_control(typed)) if strong is None else ("strong", strong)
        place = match.end()
    yield "", escape_control(sentence[place:])


def opening(text: str, most: int) -> str:
    """The first sentence, and those behind it that are within so many characters.

    Examples
    --------
    >>> unmarked(opening(f"{name('v. 2')} leads, by 0.1. It is sure. More.", 36))
    'v. 2 leads, by 0.1. It is sure.'
    """
    until = itertools.accumulate(_SENTENCE.findall(text))
    first = next(until, "")
    return max((one for one in until if len(one) <= most), key=len, default=first).rstrip()


def unmarked(sentence: str) -> str:
    """The sentence without its marks, as a terminal has it; backticks stay."""
    return re.sub(f"[{_NAME}{_STRONG}{_END}]", "", sentence)


def parted(cell: str) -> tuple[str, str]:
    """A cell's number and its interval, "" where it has none: every table sets them apart.

    Examples
    --------
    >>> parted("0.12 [0.10, 0.15]"), parted("few [or none]")
    (('0.12', '[0.10, 0.15]'), ('few [or none]', ''))
    """
    match = _INTERVAL.fullmatch(cell)
    return (match[1], match[2]) if match else (cell, "")


def sentence(phrase: str) -> str:
    """A phrase with a capital letter and a full stop; a name at its beginning stays as it is.

    Examples
    --------
    >>> sentence("by accuracy, a leads"), sentence(name("a") + " leads") == name("a") + " leads."
    ('By accuracy, a leads.', True)
    """
    phrase = phrase.strip()
    end = "" if phrase[-1:] in {".", "!", "?", ":", ""} else "."
    return phrase[:1].upper() + phrase[1:] + end


@dataclass(frozen=True)
class Node:
    """A part of a document."""

    on: On = field(default="", kw_only=True)

    @property
    def kind(self) -> str:
        """What it is, as templates name it."""
        return type(self).__name__.lower()


@dataclass(frozen=True)
class Later(Node):
    """Parts that are made where they are shown: a text does not make what a page alone has."""

    make: Callable[[], Iterable[Node]]


def page_only(make: Callable[..., Iterable[Node]], *arguments: Any, **more: Any) -> Later:
    """The parts that a function makes of its arguments, on a page alone."""
    return Later(partial(make, *arguments, **more), on="page")


@dataclass(frozen=True)
class Para(Node):
    """A paragraph; soft is what explains, and a text alone has the other roles."""

    text: str
    role: Role = ""


@dataclass(frozen=True)
class Listing(Node):
    """Points, one below the other."""

    items: Sequence[str]


@dataclass(frozen=True)
class Terms(Node):
    """Words, and what each means."""

    meanings: Mapping[str, str]


@dataclass(frozen=True)
class Table(Node):
    """Rows of cells; the first `names` columns are names of the data.

    `sides` has "l" or "r" for each column, the last one for all that follow. `caption` says what
    the table is to who cannot see it. `bars` has a number for each row (None: none), shown as a bar
    in `bar_at`, which is full at `full`, or at the largest; `chips` a status for each row, beside
    its name; `places` where a row stands on the figures of its section, in percent across, which a
    slider goes through. A terminal has the first `most` rows, and shortens names to at most
    `widest` columns; `wrapped` cells on the left take lines. Where it is too narrow, intervals
    behind the first go, then columns; with `whole` nothing goes, and each row is a list.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str
    sides: str = "lr"
    names: int = 1
    bars: Sequence[float | None] = ()
    bar_at: int = 1
    full: float | None = None
    chips: Sequence[str] = ()
    places: Sequence[float] = ()
    note: str = ""
    most: int | None = None
    widest: int = 32
    style: str = ""
    wrapped: bool = False
    whole: bool = False

    @property
    def shares(self) -> list[float | None]:
        """How far each bar goes, from 0 to 1."""
        full = self.full or max((bar or 0.0 for bar in self.bars), default=0.0) or 1.0
        return [bar and bar / full for bar in self.bars]

    def side(self, column: int) -> str:
        """On which side a column is set."""
        return self.sides[min(column, len(self.sides) - 1)]


@dataclass(frozen=True)
class Forest(Node):
    """Intervals on one scale: a `report.blocks.Block`, of which `rows` are shown.

    `extras` are further columns: heading and a cell for each row. `versus` are whom the rows are
    compared with, for differences, and `zero` marks none.
    """

    block: Any
    rows: Sequence[Any]
    axis: Any
    caption: str
    who: str = "Classifier"
    extras: Sequence[tuple[str, Sequence[str]]] = ()
    versus: Sequence[str] = ()
    zero: bool = False
    ends: int = 20
    folded: bool = True


@dataclass(frozen=True)
class Drawing(Node):
    """A figure of a page: the macro of `drawings.html.j2` that draws it, and what it draws.

    `lines` make the same for a terminal of so many columns, lines or parts, where that is possible.
    """

    macro: str
    view: Any
    caption: str = ""
    lines: Callable[[int], Iterable[str | Node]] | None = None


@dataclass(frozen=True)
class Legend(Node):
    """Samples of what is drawn, by the macro's name, and what each is."""

    samples: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Group(Node):
    """Parts side by side where there is room; `style` is the class of the page's element."""

    style: str
    body: Sequence[Node]


@dataclass(frozen=True)
class Fold(Node):
    """Parts that a page folds away under a summary."""

    summary: str
    body: Sequence[Node]
    aside: str = ""
    open: bool = False
    printed: bool = True
    style: str = ""


@dataclass(frozen=True)
class Section(Node):
    """Parts under a heading."""

    title: str
    body: Sequence[Node]
    aside: str = ""
    heading: bool = True


@dataclass(frozen=True)
class Document:
    """All that is said of a result.

    `title` is the question that it answers; `answer` and `basis` are paragraphs; `facts` are counts
    and names, with which a page and a text begin, those that are None left out (see `counts`);
    `body` is the answer in full, `more` what a part of another page leaves out; `terms` explain the
    words, in a text where they are `explained`; `foot` ends a text; `warnings` are those of the
    report if no others are given.
    """

    title: str
    report: Mapping[str, Any]
    facts: Mapping[str, Any]
    answer: Sequence[str] = ()
    basis: Sequence[str] = ()
    body: Sequence[Node] = ()
    more: Sequence[Node] = ()
    terms: Mapping[str, str] = field(default_factory=dict)
    explained: bool = False
    foot: Sequence[str] = ()
    warnings: Sequence[str] | None = None

    @property
    def reading(self) -> list[str]:
        """What was taken for what, where nobody had said it."""
        return [*map(plain, self.report.get("reading") or ())]

    @property
    def noted(self) -> list[str]:
        """The warnings, the gravest first, none with its status and once more without it."""
        every = self.report.get("warnings") if self.warnings is None else self.warnings
        reasons = {text.partition(": ")[2] for text in every or ()}
        return gravest_first(text for text in every or () if text not in reasons)


def counts(report: Mapping[str, Any]) -> dict[str, Any]:
    """How much a report is about: items, labels, classifiers and classes; what has none is None."""
    positive, reference = report.get("positive"), report.get("reference") or {}
    return {
        "Classifier": name(report["model"]) if "model" in report else None,
        "Items": report.get("n_items"), "Labeled": report.get("n_labeled"),
        "With counts of annotators": report.get("n_annotated") or None,
        "Reference items": reference.get("n_items"),
        "Classifiers": len(report["models"]) if "models" in report else None,
        "Classes": len(report["classes"]) if "classes" in report else None,
        "Positive": None if positive is None else name(positive),
    }  # fmt: skip


def in_line(facts: Mapping[str, Any]) -> str:
    """Facts in a line: counts, whose headings are those of several, behind what comes before them.

    Examples
    --------
    >>> in_line({"File": "a.csv", "Items": 1_000, "Bins": "wide", "Classes": 1, "Judges": None})
    'a.csv: 1,000 items, 1 class; bins: wide'
    """
    sizes, named, first = list[str](), list[str](), ""
    for heading, fact in facts.items():
        many = heading[:1].lower() + heading[1:]
        one = re.sub(r"(?<=ss)es\b|(?<!s)s\b", "", many, count=1)
        if isinstance(fact, int):
            sizes.append(plural(fact, one, many))
        elif fact is not None and not (sizes or named or first):
            first = fact
        elif fact is not None:
            named.append(f"{many}: {fact}")
    line = "; ".join(filter(None, [", ".join(sizes), *named]))
    return ": ".join(filter(None, [first, line]))


def shortened(document: Document, most: int) -> Document:
    """The document with so many parts of its body, the first ones, and nothing folded away."""
    left = iter(range(most))

    def first(parts: Iterable[Node]) -> Iterator[Node]:
        for part in parts:
            if not isinstance(part, Group | Fold | Section):
                yield from [part] * (next(left, None) is not None)
            elif not isinstance(part, Fold) or part.open:
                yield replace(part, body=[*first(part.body)])

    more = Para("There is more on the page that `save_html` writes.", "soft")
    return replace(document, body=[*first(shown(document.body, "page")), more])


def shown(parts: Iterable[Node], where: On = "") -> Iterator[Node]:
    """The parts that a page or a text has, or all of both, without those that hold nothing."""
    for part in parts:
        if part.on not in ("", where or part.on):
            continue
        match part:
            case Later():
                yield from shown(part.make(), where)
            case Group() | Fold() | Section():
                if body := [*shown(part.body, where)]:
                    yield replace(part, body=body)
            case Listing(items=[]) | Table(rows=[]):
                continue
            case _:
                yield part
