"""One person labeling: what comes next, what was decided, and what may be taken back.

The page, the terminal and the notebook are its interfaces. Every decision goes to the record first
and counts after that. A background thread draws the next items and makes the estimates, so that
labeling waits for neither.
"""

from __future__ import annotations

import getpass
import os
import threading
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fewlabels.data.label_record import (
    ENDING,
    DecidedItems,
    Decision,
    Event,
    Kind,
    is_record,
    read_record,
)
from fewlabels.data.sources import is_standard_input
from fewlabels.errors import FewlabelsError, InputError, UsageError, one_line, quoted, unknown
from fewlabels.labeling.items import Items, items_in_memory, now, open_items
from fewlabels.labeling.journal import Journal
from fewlabels.labeling.monitor import Monitor, Snapshot
from fewlabels.labeling.stopping import parse_stops
from fewlabels.methods.base import refuse_strata
from fewlabels.metrics.registry import check_asked
from fewlabels.predictions import Predictions
from fewlabels.questions.next_items import Order, next_items

AHEAD = 4
"""Items that an interface preloads."""

_BATCH, _LOW = 10, 6
"""Items that are drawn at a time, and how few of them are left when more are drawn."""

_RECENT = 12
_SNIPPET = 70
_LONGEST_TEXT = 200_000
"""Characters of a cell that are shown."""

_LONGEST_NOTE = 4_000

RESERVED = {"u": "undo", "s": "cannot say", "n": "note"}
"""Letters reserved for other commands than a class."""


class DecidedError(UsageError):
    """The item was decided in the meantime, in another window."""


class Draw(NamedTuple):
    """An item that waits to be labeled, and how it was drawn."""

    row: int
    order: str | None
    probability: float | None
    left: int | None


@dataclass(frozen=True)
class LabelingTarget:
    """The question that items to label are chosen for: see `fewlabels.questions.next_items`."""

    metric: str = "accuracy"
    order: Order = "random"
    model: str | None = None
    against: str | None = None
    group: str | None = None
    method: Any = "auto"
    seed: int = 0


class Session:
    """A labeling in progress: what comes next, the record that grows, and the estimates.

    Items are chosen for the question `target`; decisions of `annotator` are written to `journal`,
    and `monitor` makes the estimates. The record notes whether classifiers' answers are shown
    (`see_predictions`).
    """

    def __init__(
        self,
        items: Items,
        journal: Journal,
        monitor: Monitor,
        *,
        target: LabelingTarget | None = None,
        annotator: str,
        see_predictions: bool = False,
    ) -> None:
        self.items, self.journal, self.monitor = items, journal, monitor
        self.target, self.annotator, self.see_predictions = (
            target or LabelingTarget(),
            annotator,
            see_predictions,
        )
        self.keys = class_keys(items.classes)
        self.queue: deque[Draw] = deque()
        self.closing = False
        self.notice: str | None = None
        self._place = {text: k for k, text in enumerate(items.classes)}
        self._lock = threading.RLock()
        self._wake = threading.Condition(self._lock)
        self._drawn_for = -1
        self._snapshot: Snapshot | None = None
        self._looked_at = -1
        self._version = 0
        self._worker: threading.Thread | None = None
        self._draw_more(AHEAD)

    # What interfaces show ------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything that a page needs to begin, in plain values."""
        with self._lock:
            return {
                "name": self.items.name,
                "record": str(self.journal.path),
                "annotator": self.annotator,
                "classes": [
                    {"name": name, "keys": list(self.keys[name])} for name in self.items.classes
                ],
                "order": self.target.order,
                "see_predictions": self.see_predictions,
                "metrics": list(self.monitor.metrics),
                "models": list(self.items.predictions.models),
                "until": [stop.text for stop in self.monitor.stops],
                **self.progress(),
            }

    def progress(self) -> dict[str, Any]:
        """How far the labeling is, the next items, and the last decisions."""
        with self._lock:
            decisions = self.journal.decisions
            labeled = sum(d.label is not None for d in decisions.values())
            return {
                "labeled": labeled,
                "cannot_say": len(decisions) - labeled,
                "known": self.items.predictions.n_labeled,
                "items": self.items.table.n_items,
                "left": int((~self.items.predictions.labeled).sum()) - len(decisions),
                "queue": [self.view(draw.row) for draw in list(self.queue)[:AHEAD]],
                "recent": self.recent(),
                "undo": self.undoable(),
                "notice": self.notice,
                "version": self._version,
            }

    def view(self, row: int) -> dict[str, Any]:
        """An item as it is shown, in plain values."""
        key = self.items.keys[row]
        decision = self.journal.decisions.get(key)
        cells = [cell._asdict() for cell in self.items.cells(row)]
        for cell in cells:
            if len(cell["text"]) > _LONGEST_TEXT:
                cut = f"\n\n[cut after {_LONGEST_TEXT:,} characters]"
                cell["text"] = cell["text"][:_LONGEST_TEXT] + cut
        return {
            "key": key,
            "cells": cells,
            "answers": self.items.answers(row) if self.see_predictions else [],
            "decided": decision is not None,
            "label": None if decision is None else decision.label,
            "notes": list(self.journal.ledger.notes.get(key, ())),
        }

    def item(self, key: str) -> dict[str, Any]:
        """What the page shows of an item."""
        with self._lock:
            return self.view(self.row(key))

    def row(self, key: str) -> int:
        """The row of an item; UsageError if there is none."""
        place = self.items.place.get(key)
        if place is None:
            raise UsageError(f"there is no item {quoted(key)}")
        return place

    def recent(self) -> list[dict[str, Any]]:
        """The last decisions, the newest first."""
        with self._lock:
            every = list(self.journal.decisions.items())
            out = []
            for number in range(len(every), max(len(every) - _RECENT, 0), -1):
                key, decision = every[number - 1]
                out.append({"number": number, "key": key, "label": decision.label,
                              "text": self._snippet(self.items.place.get(key))})  # fmt: skip
            return out

    def _snippet(self, row: int | None) -> str:
        cells = [] if row is None else self.items.cells(row)
        text = next((c.text for c in cells if c.text.strip()), "")
        shown = " ".join(text[: 4 * _SNIPPET].split())
        return shown if len(shown) <= _SNIPPET else shown[: _SNIPPET - 3] + "..."

    def neighbour(self, key: str | None, step: int) -> dict[str, Any] | None:
        """The decided item before (-1) or after (1) another, an open one being last; or None."""
        with self._lock:
            every = list(self.journal.decisions)
            place = every.index(key) if key in self.journal.decisions else len(every)
            at = place + step
            beside = every[at] if 0 <= at < len(every) else None
            if beside is None or beside not in self.items.place:
                return None
            return self.view(self.items.place[beside])

    def undoable(self) -> str | None:
        """The item of the last decision; None where there is none."""
        actions = self.journal.ledger.actions
        return actions[-1] if actions else None

    # What a person does --------------------------------------------------------------------------

    def decide(self, key: str, label: str | None) -> None:
        """Give an item its label, or say that one cannot say (None).

        DecidedError if it is decided already. If the decision cannot be written, NotSavedError:
        then nothing has changed.
        """
        with self._lock:
            row = self.row(key)
            self._check_class(label)
            before = self.journal.decisions.get(key)
            if before is not None:
                raise DecidedError(
                    f"item {quoted(key)} is decided already: {_decision_text(before)}"
                )
            if self.items.predictions.labels[row] >= 0:
                raise UsageError(f"item {quoted(key)} has a label in {self.items.name}")
            draw = next((d for d in self.queue if d.row == row), Draw(row, None, None, None))
            kind: Kind = "cannot-say" if label is None else "label"
            self.journal.add(
                Event(
                    kind,
                    key,
                    self.annotator,
                    now(),
                    label,
                    draw.order,
                    draw.probability,
                    draw.left,
                    self.items.shown,
                    self.see_predictions,
                    content=self.items.content(row),
                )
            )
            if draw in self.queue:
                self.queue.remove(draw)
            self._changed()

    def change(self, key: str, label: str | None) -> None:
        """Give a decided item another label, or none (None: one cannot say)."""
        with self._lock:
            row = self.row(key)
            self._check_class(label)
            before = self.journal.decisions.get(key)
            if before is None:
                raise UsageError(f"item {quoted(key)} has no label to change")
            if before.label == label:
                return
            self.journal.add(
                Event(
                    "change",
                    key,
                    self.annotator,
                    now(),
                    label,
                    shown=self.items.shown,
                    predictions_seen=self.see_predictions,
                    content=self.items.content(row),
                )
            )
            self._changed()

    def undo(self, expected: str | None = None) -> str:
        """Take back the last decision or change, and return the key of its item.

        `expected` is the item that the caller has in mind; DecidedError if the last decision is of
        another item by now, made in another window.
        """
        with self._lock:
            key = self.undoable()
            if key is None:
                raise UsageError("there is nothing to undo")
            if expected not in (None, key):
                raise DecidedError(f"the last decision is of item {quoted(key)} by now")
            before = self.journal.decisions[key]
            self.journal.add(Event("undo", key, self.annotator, now()))
            if key not in self.journal.decisions and key in self.items.place:
                # Drawn once: the probability stays what it was.
                draw = Draw(self.items.place[key], *before[2:])
                self.queue.appendleft(draw)
            self._changed()
            return key

    def note(self, key: str, text: str) -> None:
        """Write a note of an item to the record."""
        with self._lock:
            self.row(key)
            if not text.strip() or len(text) > _LONGEST_NOTE:
                raise UsageError(f"a note must have 1 to {_LONGEST_NOTE:,} characters")
            self.journal.add(Event("note", key, self.annotator, now(), text=text))

    def _check_class(self, label: str | None) -> None:
        if label is not None and label not in self._place:
            raise UsageError(unknown("class", label, self.items.classes))

    def _changed(self) -> None:
        self._version += 1
        if not self.queue:
            self._draw_more(AHEAD, uniform=True)
        self._wake.notify_all()

    # Which items come next -----------------------------------------------------------------------

    def _draw_more(self, size: int, *, uniform: bool = False) -> None:
        """Draw further items; `uniform` where the user waits, as other orders take longer."""
        target = self.target
        with self._lock:
            labels = np.array(self.items.predictions.labels)
            decided = self.decided()
            labeled, unsure = decided.labeled, decided.rows[decided.labels < 0].tolist()
            labels[labeled.rows] = labeled.labels
            waiting = [draw.row for draw in self.queue]
            version = self._version
        order: Order = "random" if uniform else target.order
        selection = next_items(
            self.items.predictions.with_labels(labels),
            metric=target.metric,
            model=target.model,
            against=target.against,
            group=target.group,
            order=order,
            size=size,
            method=target.method,
            random_state=target.seed,
            skip=[*waiting, *unsure],
            before=len(labeled.rows) + len(waiting),
        )
        with self._lock:
            # What was decided or drawn while these were drawn, in another window.
            taken = {draw.row for draw in self.queue}
            taken |= {self.items.place.get(key, -1) for key in self.journal.decisions}
            drawn = (selection.items, selection.probability, selection.left)
            for row, q, left in zip(*(array.tolist() for array in drawn), strict=True):
                if row not in taken:
                    self.queue.append(Draw(row, order, q, left))
            if not uniform:
                self._drawn_for = version

    # Estimates -----------------------------------------------------------------------------------

    def decided(self) -> DecidedItems:
        """What was decided, in its order, and how the items were drawn."""
        with self._lock:
            return DecidedItems.of(self.journal.decisions, self.items.place, tuple(self._place))

    def start(self) -> None:
        """Begin to draw and to estimate in the background."""
        self._worker = threading.Thread(target=self._work, name="fewlabels-labeling", daemon=True)
        self._worker.start()

    def close(self) -> None:
        """End the background work, and let others write to the record."""
        with self._lock:
            self.closing = True
            self._wake.notify_all()
        if self._worker is not None:
            self._worker.join(timeout=0.5)  # without waiting for the end of an estimate
        with self._lock:
            self.journal.close()

    def estimate(self, *, wait: bool = False) -> dict[str, Any] | None:
        """The newest estimates, and the number of labels that they are from; None before the first.

        With `wait` they are made now, from the current labels. They are `fresh` where nothing is
        under way that would change them, or their picture.
        """
        if wait:
            self._look()
        with self._lock:
            snapshot = self._snapshot
            if snapshot is None:
                return None
            labeled = self.decided().labeled
            done = self._looked_at == self._version and not self.monitor.missing(len(labeled.rows))
            return self.monitor.report(snapshot) | {"fresh": done}

    def picture(self, model: str, metric: str) -> dict[str, Any]:
        """How an interval came to be, in plain values."""
        if model not in self.items.predictions.models:
            raise UsageError(unknown("model", model, self.items.predictions.models))
        if metric not in self.monitor.metrics:
            raise UsageError(unknown("metric", metric, self.monitor.metrics))
        return dict(self.monitor.picture(model, metric, self.decided()))

    def _look(self) -> None:
        with self._lock:
            version, decided = self._version, self.decided()
        snapshot = self.monitor.look(decided)
        with self._lock:
            if version >= self._looked_at:  # another thread may have looked at more labels
                self._snapshot, self._looked_at = snapshot, version
                self.monitor.forget_after(snapshot.n)

    def _work(self) -> None:
        """Draw items before they run out, then estimate now, and for earlier numbers of labels."""
        while True:
            with self._lock:
                todo = self._todo()
                while todo is None and not self.closing:
                    self._wake.wait()
                    todo = self._todo()
                if self.closing or todo is None:
                    return
            try:
                todo()
            except Exception as error:  # labeling goes on: items are drawn uniformly then
                if not isinstance(error, FewlabelsError):
                    traceback.print_exc()
                with self._lock:
                    self.notice = f"items are drawn at random: {error}"
                    self._drawn_for = self._version

    def _todo(self) -> Callable[[], object] | None:
        if len(self.queue) < _LOW and self._drawn_for != self._version:
            return lambda: self._draw_more(_BATCH)
        if self._looked_at != self._version:
            return self._look
        decided = self.decided()
        missing = self.monitor.missing(len(decided.labeled.rows))
        if missing:
            return partial(self.monitor.look, decided.first(missing[-1]))
        return None


def _decision_text(decision: Decision) -> str:
    if decision.label is None:
        return f"{one_line(decision.annotator)} could not say"
    return f"{quoted(decision.label)} by {one_line(decision.annotator)}"


def class_keys(classes: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The keys of each class: a digit by its place, and a letter of its name where one is free.

    Classes that are digits themselves have their own.

    Examples
    --------
    >>> class_keys(["ham", "spam"])
    {'ham': ('1', 'h'), 'spam': ('2', 'p')}
    >>> class_keys(["0", "1"])
    {'0': ('0',), '1': ('1',)}
    """
    digits = [name for name in classes if len(name) == 1 and name.isascii() and name.isdigit()]
    assigned: dict[str, list[str]] = {name: [name] if name in digits else [] for name in classes}
    if not digits:
        for digit, name in enumerate(classes[:9], 1):
            assigned[name].append(str(digit))
    taken = {*RESERVED}
    letters = {
        name: [c for c in name.casefold() if c.isalpha() and len(c) == 1] for name in classes
    }
    for most in (1, None):  # first letters before any other
        for name in classes:
            has = any(key.isalpha() for key in assigned[name])
            free = next((c for c in letters[name][:most] if c not in taken), None)
            if free is not None and not has and name not in digits:
                assigned[name].append(free)
                taken.add(free)
    return {name: tuple(keys) for name, keys in assigned.items()}


# --- opening a session ----------------------------------------------------------------------------


@dataclass(frozen=True)
class SessionOptions:
    """Options of a session, as of `fewlabels label`.

    `metrics` may be empty: accuracy then, or roc_auc of scores alone. `annotator` None is the
    name of who is logged in.
    """

    show: Sequence[str] | None = None
    images: str | None = None
    metrics: Sequence[str] = ()
    until: Sequence[str] = ()
    order: Order = "random"
    annotator: str | None = None
    see_predictions: bool = False
    method: Any = "auto"
    confidence_level: float = 0.95
    seed: int = 0
    columns: Mapping[str, Any] = field(default_factory=dict)


def record_path(source: Any, labels: str | os.PathLike[str] | None) -> Path:
    """Path of the record: `labels`, else beside the data."""
    if labels is not None:
        return Path(labels)
    if (
        not isinstance(source, str | os.PathLike)
        or "://" in str(source)
        or is_standard_input(str(source))
    ):
        raise UsageError("say where the record of labels is to be: --labels RECORD.labels.jsonl")
    return Path(f"{str(source).rstrip('/')}{ENDING}")


def open_session(
    source: Any, labels: str | os.PathLike[str] | None, options: SessionOptions, items: Any = None
) -> Session:
    """Open the items and their record, which is begun where there is none.

    `source` is a path, a frame, or `Predictions`, whose texts are `items`; `labels` is the path of
    the record.
    """
    check_asked(list(options.metrics) or None)
    record = record_path(source, labels)
    before = read_record(record) if is_record(record) else None
    recorded = () if before is None else before.decisions.keys()
    opened = _items(source, items, options, recorded)
    refuse_strata(opened.predictions, "labeling")
    usual = "accuracy" if opened.predictions.gives("hard").any() else "roc_auc"
    metrics = tuple(options.metrics) or (usual,)
    stops = parse_stops(options.until, metrics, opened.predictions.models)
    annotator = user_name() if options.annotator is None else options.annotator
    if not annotator.strip():
        raise UsageError("--annotator must name somebody; got an empty name")
    monitor = Monitor(
        opened.predictions.with_positive(), metrics, options.method, options.confidence_level,
        options.seed, stops,
    )  # fmt: skip
    target = LabelingTarget(metrics[0], options.order, method=options.method, seed=options.seed)
    if opened.predictions.labeled.all():
        raise InputError(f"{opened.name}: every item has a label; there is none to label")
    contents = {} if before is None else opened.contents(before)
    journal = Journal(record, opened.header(annotator), contents)
    try:
        return Session(
            opened, journal, monitor, target=target, annotator=annotator,
            see_predictions=options.see_predictions,
        )  # fmt: skip
    except BaseException:
        journal.discard()
        raise


def _items(source: Any, items: Any, wishes: SessionOptions, recorded: Any) -> Items:
    looks: dict[str, Any] = {"show": wishes.show, "images": wishes.images, "seed": wishes.seed}
    if isinstance(source, Predictions):
        if items is None:
            raise UsageError(
                "`items` must be a frame or a list with the texts of the items, where the "
                "predictions are arrays"
            )
        item = wishes.columns.get("item")
        return items_in_memory(source, items, item=item, recorded=recorded, **looks)
    if items is not None:
        raise UsageError("`items` are the texts beside Predictions; a file or frame has its own")
    return open_items(source, recorded=recorded, **looks, **wishes.columns)


def user_name() -> str:
    """Name of the current user."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "somebody"
