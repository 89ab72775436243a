"""The record of labels: lines of JSON to which a page adds one whenever somebody decides.

The first line says of which items the record is, every other is an event: a label, "cannot say", a
change, an undo, or a note. Nothing is ever written over, so the record holds what was changed, too;
what stands in the end is worked out when it is read. `labeling.journal` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from fewlabels.checks.side_files import MOST_BYTES
from fewlabels.data.table import told_of
from fewlabels.errors import InputError, listed, quoted, unknown
from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.lure import lure_weights

ENDING = ".labels.jsonl"
"""What names of records end in, where nobody says otherwise."""

FORMAT = 1
"""The version of the format that is written; those up to it are read."""

_MARK = b'{"fewlabels": "labels"'
"""How every record begins."""

Kind = Literal["label", "cannot-say", "change", "undo", "note"]
KINDS: tuple[Kind, ...] = ("label", "cannot-say", "change", "undo", "note")


@dataclass(frozen=True)
class Header:
    """Of which items a record is.

    `file` is the name of the data without its folder, `item` its column of items, `items` how many
    it has, and `digest` stands for their keys, whatever their order. `classes` are texts.
    """

    file: str
    item: str
    items: int
    digest: str
    classes: tuple[str, ...]
    positive: str | None
    annotator: str
    created: str

    def line(self) -> bytes:
        """The first line of a record."""
        return _line({"fewlabels": "labels", "format": FORMAT, **asdict(self)})


@dataclass(frozen=True)
class Event:
    """One thing that an annotator did to an item.

    `label` is the class of a label or change, None where the annotator cannot say. `order` is how
    the item was chosen, `probability` that with which it was drawn among the `left` items that
    were left, itself included; None where it was not drawn. `shown` are the columns that the
    annotator saw, and `predictions_seen` whether the classifiers' answers were among it.
    """

    kind: Kind
    item: str
    annotator: str
    time: str
    label: str | None = None
    order: str | None = None
    probability: float | None = None
    left: int | None = None
    shown: tuple[str, ...] = ()
    predictions_seen: bool = False
    text: str | None = None

    def line(self) -> bytes:
        """The event as a line of the record."""
        said: dict[str, Any] = {"event": self.kind, "item": self.item}
        if self.kind in ("label", "change"):
            said["class"] = self.label
        if self.kind == "note":
            said["text"] = self.text
        said["annotator"] = self.annotator
        if self.kind in ("label", "cannot-say"):
            said |= {"order": self.order, "probability": self.probability, "left": self.left}
        if self.kind in ("label", "cannot-say", "change"):
            said |= {"shown": self.shown, "predictions_seen": self.predictions_seen}
        return _line(said | {"time": self.time})


def _line(said: Mapping[str, Any]) -> bytes:
    # Plain ASCII on one line: a line break within a name is written as two characters.
    return json.dumps(said, allow_nan=False).encode("ascii") + b"\n"


class Decision(NamedTuple):
    """What stands of an item: its class (None: the annotator cannot say), and how it was drawn."""

    label: str | None
    annotator: str
    order: str | None
    probability: float | None
    left: int | None


class DecidedItems(NamedTuple):
    """Items in the order in which they were decided, (m,), and how they were drawn.

    `labels` is -1 of items that nobody could say the class of. `probability` and `left` are NaN and
    0 of items that were not drawn.
    """

    rows: Ints
    labels: Ints
    probability: Floats
    left: Ints

    @staticmethod
    def of(
        decisions: Mapping[str, Decision], place: Mapping[str, int], classes: Sequence[str]
    ) -> DecidedItems:
        """Those decisions whose items have a place (row) here."""
        code = {name: k for k, name in enumerate(classes)} | {None: -1}
        here = [(place[item], d) for item, d in decisions.items() if item in place]
        return DecidedItems(
            np.array([row for row, _ in here], dtype=np.int64),
            np.array([code[d.label] for _, d in here], dtype=np.int64),
            np.array([d.probability or np.nan for _, d in here], dtype=float),
            np.array([d.left or 0 for _, d in here], dtype=np.int64),
        )

    def where(self, chosen: Array) -> DecidedItems:
        """Some of them, by a mask."""
        return DecidedItems(
            self.rows[chosen], self.labels[chosen], self.probability[chosen], self.left[chosen]
        )

    @property
    def labeled(self) -> DecidedItems:
        """Those with a class."""
        return self.where(self.labels >= 0)

    @property
    def drawn(self) -> DecidedItems:
        """Those that were drawn with a known probability."""
        return self.where(self.left > 0)

    def first(self, size: int) -> DecidedItems:
        """All up to the label of this number."""
        return self.where(np.cumsum(self.labels >= 0) <= size)

    def weights(self) -> Floats:
        """What each label weighs in a mean over the items it was drawn from; 1 if not drawn.

        Items that nobody could say the class of were drawn as well, and count as drawn.
        """
        out, drawn = np.ones(len(self.rows)), self.left > 0
        out[drawn] = lure_weights(self.probability[drawn], self.left[drawn])
        return out


@dataclass(frozen=True)
class LabelRecord:
    """A record as it was read; `size` are the bytes of whole lines, `torn` those behind them."""

    header: Header
    ledger: Ledger
    n_events: int
    size: int
    torn: int

    @property
    def decisions(self) -> Mapping[str, Decision]:
        """What stands of every item that was decided, in the order of the decisions."""
        return self.ledger.decisions

    @property
    def labels(self) -> dict[str, str]:
        """Item -> class, where somebody could say."""
        return {i: d.label for i, d in self.decisions.items() if d.label is not None}

    @property
    def weights(self) -> dict[str, float]:
        """Item -> the weight of its label for a mean over the items that it was drawn from."""
        place = {item: row for row, item in enumerate(self.decisions)}
        found = DecidedItems.of(self.decisions, place, self.header.classes)
        each = zip(self.decisions, found.weights().tolist(), found.left.tolist(), strict=True)
        return {item: weight for item, weight, left in each if left}


def is_record(path: str | Path) -> bool:
    """Whether a file begins as a record does."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(_MARK)) == _MARK
    except (OSError, ValueError):
        return False


def read_record(path: str | Path, name: str | None = None) -> LabelRecord:
    """Read a record, without a last line that was cut short.

    Parameters
    ----------
    name
        What messages call it; the path, unless given.

    Raises
    ------
    InputError
        If it is no record, was written by a newer version, or holds a line that is no event, or a
        class that it does not know.
    """
    with told_of(str(path) if name is None else name):
        try:
            if Path(path).stat().st_size > MOST_BYTES * 16:
                raise InputError("is larger than 1 GB, which no record of labels is")
            content = Path(path).read_bytes()
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}") from None
        return parse_record(content)


def parse_record(content: bytes) -> LabelRecord:
    """The record that these bytes are; see `read_record`, whose errors it raises."""
    if not content.startswith(_MARK):
        raise InputError(
            "is no record of labels: its first line does not begin with "
            f"{_MARK.decode()}; name another file with --labels"
        )
    whole = content.rfind(b"\n") + 1
    lines = content[:whole].split(b"\n")[:-1]
    if lines and _parsed(lines[-1]) is None:
        # A crash of the machine may leave zeros where the last line was to be.
        whole -= len(lines.pop()) + 1
    if not lines:
        raise InputError(
            "was cut short in its first line and holds no label; remove it, and a new one is begun"
        )
    header, ledger = _header(_parsed(lines[0])), Ledger()
    for number, line in enumerate(lines[1:], 2):
        ledger.take(_event(_parsed(line), number, header))
    return LabelRecord(header, ledger, len(lines) - 1, whole, len(content) - whole)


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _header(said: dict[str, Any] | None) -> Header:
    version = None if said is None else said.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise InputError(
            f"was written by a newer version (format {version}, and this one reads up to "
            f"{FORMAT}); update fewlabels"
        )
    known: dict[str, Any] = {n: (said or {}).get(n) for n in Header.__annotations__}
    classes, positive, items = known.pop("classes"), known.pop("positive"), known.pop("items")
    texts = [*known.values(), *(classes if isinstance(classes, list) else [None])]
    if (
        version != FORMAT
        or not isinstance(items, int)
        or not isinstance(positive, str | None)
        or not all(isinstance(text, str) for text in texts)
    ):
        raise InputError(
            "has a first line that does not say of which items it is; restore it from a copy"
        )
    return Header(**known, items=items, classes=tuple(classes or ()), positive=positive)


def _event(said: dict[str, Any] | None, number: int, header: Header) -> Event:
    kind = None if said is None else said.get("event")
    if said is None or kind not in KINDS or not isinstance(said.get("item"), str):
        raise InputError(
            f"line {number} is no event ({listed(KINDS)}); restore the record from a copy, or "
            "remove the line"
        )
    label = said.get("class")
    if (kind == "label" or label is not None) and label not in header.classes:
        raise InputError(
            f"line {number}: {unknown('class', label, header.classes)}; correct the line, or the "
            "classes in the first one"
        )
    chance, left = said.get("probability"), said.get("left")
    drawn = isinstance(chance, float | int) and isinstance(left, int) and 0 < chance <= 1 <= left
    if not drawn and (chance, left) != (None, None):
        raise InputError(
            f"line {number}: an item must be drawn with a probability above 0 among 1 item or "
            f"more; got {quoted(chance)} among {quoted(left)}"
        )
    return Event(
        kind, said["item"], str(said.get("annotator")), str(said.get("time")), label,
        said.get("order"), chance, left, text=said.get("text"),
    )  # fmt: skip


class Ledger:
    """What stands of every item after some events: a label, until it is changed or undone.

    An undo takes back the last decision on its item: a changed label is again what it was, and an
    item that was labeled once is open again. How an item was drawn stays with its decisions.
    `actions` are the items of the decisions and changes that an undo could take back.
    """

    def __init__(self) -> None:
        self.decisions: dict[str, Decision] = {}
        self.notes: dict[str, list[str]] = {}
        self.actions: list[str] = []
        self._before: dict[str, list[Decision]] = {}

    def take(self, event: Event) -> None:
        """Take in the next event."""
        item = event.item
        if event.kind == "note":
            self.notes.setdefault(item, []).append(event.text or "")
            return
        if event.kind == "undo":
            if item in self.decisions:
                del self.actions[-1 - self.actions[::-1].index(item)]
            if before := self._before.get(item):
                self.decisions[item] = before.pop()
            else:
                self.decisions.pop(item, None)
            return
        draw = (event.order, event.probability, event.left)
        now = self.decisions.get(item)
        if now is not None:
            self._before.setdefault(item, []).append(now)
            draw = now[2:]
        self.decisions[item] = Decision(event.label, event.annotator, *draw)
        self.actions.append(item)
