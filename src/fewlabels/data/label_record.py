"""The record of labels: JSON lines, to which a page adds one for each decision.

The first line describes the items; every other is an event. A label is tied to an item by its key
and by what was shown of it: two files whose items are numbered from 0 have the same keys.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from fewlabels.checks.arguments import MOST_BYTES, check_format
from fewlabels.data.table import class_text, naming_file
from fewlabels.errors import InputError, listed, quoted, unknown
from fewlabels.kernels.arrays import Array, Floats, Ints, UInts
from fewlabels.kernels.importance import lure_weights

ENDING = ".labels.jsonl"
"""What names of records end in, where nobody says otherwise."""

FORMAT = 1
"""The version of the format that is written; those up to it are read."""

LEAST_SHARE = 1e-6
"""Least probability of a draw, as a multiple of that if all items left were equally likely."""

_MARK = b'{"fewlabels": "labels"'
"""How every record begins."""

Kind = Literal["label", "cannot-say", "change", "undo", "note"]
KINDS: tuple[Kind, ...] = ("label", "cannot-say", "change", "undo", "note")


@dataclass(frozen=True)
class Header:
    """The items that a record is about; `digest` is that of their keys in any order."""

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
    """One action of an annotator on an item.

    `label` is the class of a label or change, or None for "cannot say". `order` is how the item was
    chosen, and `probability` that of drawing it among the `left` remaining items, itself included;
    None: not drawn. `shown` are the columns that the annotator saw, `content` is their digest (see
    `content_digest`), and `predictions_seen` says whether the classifiers' answers were among them.
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
    content: str | None = None

    def line(self) -> bytes:
        """The event as a line of the record."""
        fields: dict[str, Any] = {"event": self.kind, "item": self.item}
        if self.kind in ("label", "change"):
            fields["class"] = self.label
        if self.kind == "note":
            fields["text"] = self.text
        fields["annotator"] = self.annotator
        if self.kind in ("label", "cannot-say"):
            fields |= {"order": self.order, "probability": self.probability, "left": self.left}
        if self.kind in ("label", "cannot-say", "change"):
            fields |= {"shown": self.shown, "content": self.content}
            fields |= {"predictions_seen": self.predictions_seen}
        return _line(fields | {"time": self.time})


def _line(fields: Mapping[str, Any]) -> bytes:
    # Plain ASCII on one line: a line break within a name is written as two characters.
    return json.dumps(fields, allow_nan=False).encode("ascii") + b"\n"


def key_hash(key: str) -> int:
    """A 64-bit hash of the key of an item."""
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def keys_digest(hashes: UInts) -> str:
    """A digest of the keys of all items, in any order."""
    return hashlib.blake2b(np.sort(hashes).tobytes(), digest_size=12).hexdigest()


def content_digest(cells: Mapping[str, Any], item: str) -> str | None:
    """A digest of the shown cells of an item but its key, alike where spaces and six digits are."""
    texts = [[n, _plain(value)] for n, value in cells.items() if n != item]
    listed_texts = json.dumps(sorted(texts)).encode("ascii")
    return hashlib.blake2b(listed_texts, digest_size=8).hexdigest() if texts else None


def _plain(value: Any) -> str:
    text = " ".join(class_text(value).split())
    if re.fullmatch(r"-?\d*\.\d+(?:[eE][-+]?\d+)?", text):
        return f"{float(text):.6g}"
    return text.lower() if text.lower() in ("true", "false") else text


class ItemsHere(NamedTuple):
    """The items of a file to compare with a record; contents are None where it lacks columns."""

    file: str
    items: int
    digest: str
    contents: Mapping[str, str | None] = {}


class Decision(NamedTuple):
    """The decision on an item: its class (None: cannot say), and how it was drawn."""

    label: str | None
    annotator: str
    order: str | None
    probability: float | None
    left: int | None


class DecidedItems(NamedTuple):
    """Items as decided, (m,): `labels` -1 for "cannot say", `left` 0 of those not drawn."""

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
        return DecidedItems._make(column[chosen] for column in self)

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
        """Weight of each label in a mean over the items it was drawn from; 1 if not drawn."""
        out, drawn = np.ones(len(self.rows)), self.left > 0
        out[drawn] = lure_weights(self.probability[drawn], self.left[drawn])
        return out


@dataclass(frozen=True)
class LabelRecord:
    """A record as read: whole lines, bytes after them, `bad` lines by number with the reason."""

    header: Header
    ledger: Ledger
    n_events: int
    content: bytes
    torn: int
    bad: Mapping[int, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The bytes of its whole lines."""
        return len(self.content)

    def notes(self, name: str | Path) -> tuple[str, ...]:
        """What is left out of it, for a warning; `name` is what it is called."""
        cut = f"{name}: the last line was cut short ({self.torn} bytes), and is left out"
        out = [cut] if self.torn else []
        if self.bad:
            first, *rest = self.bad
            also = f", and so are lines {listed(rest)}" if rest else ""
            out.append(f"{name}: line {first}: {self.bad[first]}; it is left out{also}")
        return tuple(out)

    def match(self, here: ItemsHere, *, all_items: bool = False) -> tuple[str, ...]:
        """Warnings on items of a file that differ from the record's; others are refused."""
        own, seen = self.header, self.ledger.seen
        found = {item: here.contents.get(item) for item in self.decisions}
        changed = [i for i, now in found.items() if now and i in seen and now != seen[i][1]]
        unknown = [i for i in here.contents if i in found and not (found[i] and i in seen)]
        shown = dict.fromkeys(c for i in found if i in seen for c in seen[i][0] if c != own.item)
        columns = listed(map(quoted, shown))
        named = f"is the record of another file, {quoted(own.file)}: "
        if changed:
            more = f" (and {len(changed) - 1:,} more)" if len(changed) > 1 else ""
            raise InputError(
                f"{named}what was labeled as item {quoted(changed[0])}{more} held something else "
                f"in {columns} than in {quoted(here.file)}; name another record with --labels, or, "
                "where a text was corrected, remove the lines of these items from the record"
            )
        if (own.items, own.digest) == (here.items, here.digest):
            numbered = all(i.isdecimal() and len(i) < 16 and int(i) <= own.items for i in found)
            of = f" ({columns})" if columns else ""
            alone = (
                "its items are known by their numbers alone, and nothing shows that those of "
                f"{quoted(here.file)} hold what was labeled{of}; make sure that they are the same"
            )
            return (alone,) if unknown and numbered else ()
        differ = (
            f"its {own.items:,} items (column {quoted(own.item)}) are not the {here.items:,} of "
            f"{quoted(here.file)}"
        )
        if all_items or unknown or not here.contents:
            told = "" if all_items else ", and nothing shows that those in both are the same"
            raise InputError(f"{named}{differ}{told}; name another record with --labels")
        return (
            f"{differ}; those in both hold the same, and its labels, drawn among the former, speak "
            "for these alone",
        )

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


def read_record(path: str | Path) -> LabelRecord:
    """Read a record, except a last line that was cut short."""
    with naming_file(str(path)):
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
    if ends_with_an_event(content):
        content += b"\n"  # an editor's habit: nothing of it was cut
    whole = content.rfind(b"\n") + 1
    lines = content[:whole].split(b"\n")[:-1]
    if lines and not _is_object(lines[-1]):
        # A crash of the machine may leave zeros where the last line was to be.
        whole -= len(lines.pop()) + 1
    if not lines:
        raise InputError(
            "was cut short in its first line and holds no label; remove it, and a new one is begun"
        )
    header, ledger, bad = read_header(lines[0]), Ledger(), dict[int, str]()
    for number, line in enumerate(lines[1:], 2):
        try:
            ledger.take(read_event(line, header))
        except InputError as error:
            bad[number] = str(error)
    n_events = len(lines) - 1 - len(bad)
    if bad and not n_events:
        raise InputError(f"line 2: {bad[2]}; no line is an event: restore the record from a copy")
    return LabelRecord(header, ledger, n_events, content[:whole], len(content) - whole, bad)


def ends_with_an_event(content: bytes) -> bool:
    """Whether a record's last line is complete except for its line break."""
    return b"\n" in content and _is_object(content[content.rfind(b"\n") + 1 :])


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _parsed(line: bytes) -> dict[str, Any]:
    """What a line says, of plain text and numbers."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        fields = json.loads(line, parse_constant=refuse)
        json.dumps(fields, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError("half of a character, which no text may hold") from None
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise InputError(f"no event ({listed(KINDS)})")
    return fields


def read_header(line: bytes) -> Header:
    """The first line of a record."""
    try:
        fields = _parsed(line)
    except InputError:
        fields = {}
    version = fields.get("format")
    if version is not None:
        check_format(version, FORMAT)
    known: dict[str, Any] = {n: fields.get(n) for n in Header.__annotations__}
    classes, positive, items = known.pop("classes"), known.pop("positive"), known.pop("items")
    texts = [*known.values(), *(classes if isinstance(classes, list) else [None])]
    if (
        version is None
        or type(items) is not int
        or not 0 < items < 1 << 53
        or not isinstance(positive, str | None)
        or not all(isinstance(text, str) for text in texts)
    ):
        raise InputError(
            "has a first line that does not say of which items it is; restore it from a copy"
        )
    return Header(**known, items=items, classes=tuple(classes or ()), positive=positive)


def read_event(line: bytes, header: Header) -> Event:
    """The event that a line is: what is written is read by this first."""
    fields = _parsed(line)
    kind, shown = fields.get("event"), fields.get("shown", [])
    texts = [fields.get("annotator"), fields.get("time")]
    maybe = [fields.get(name) for name in ("order", "content", "text")]
    if (
        kind not in KINDS
        or not isinstance(shown, list)
        or not all(isinstance(text, str) for text in (fields.get("item"), *texts, *shown))
        or not all(isinstance(text, str | None) for text in maybe)
    ):
        raise InputError(f"no event ({listed(KINDS)})")
    label = fields.get("class")
    if (kind == "label" or label is not None) and label not in header.classes:
        raise InputError(unknown("class", label, header.classes))
    chance, left = fields.get("probability"), fields.get("left")
    if (chance, left) != (None, None) and not (
        isinstance(left, int)
        and isinstance(chance, int | float)
        and not isinstance(left, bool)
        and not isinstance(chance, bool)
        and 1 <= left <= header.items
        and LEAST_SHARE / left <= chance <= 1
    ):
        raise InputError(
            "an item must be drawn with a probability above 0 among 1 item or more, "
            f"{header.items:,} at most; got {quoted(chance)} among {quoted(left)}"
        )
    return Event(
        kind, fields["item"], fields["annotator"], fields["time"], label, maybe[0], chance, left,
        tuple(shown), fields.get("predictions_seen") is True, maybe[2], maybe[1],
    )  # fmt: skip


class Ledger:
    """The state of every item after some events.

    An undo takes back the last decision on its item; a decision keeps how its item was drawn.
    `actions` are what an undo could take back; `seen` is what was shown (columns, digest of their
    content).
    """

    def __init__(self) -> None:
        self.decisions: dict[str, Decision] = {}
        self.notes: dict[str, list[str]] = {}
        self.actions: list[str] = []
        self.seen: dict[str, tuple[tuple[str, ...], str]] = {}
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
        if event.content is not None:
            self.seen[item] = (event.shown, event.content)
        draw = (event.order, event.probability, event.left)
        now = self.decisions.get(item)
        if now is not None:
            self._before.setdefault(item, []).append(now)
            draw = now[2:]
        self.decisions[item] = Decision(event.label, event.annotator, *draw)
        self.actions.append(item)
