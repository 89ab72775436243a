"""What a message proposes is tried on the first rows of the source before anybody reads it.

A proposal that lacks options which are proposed in turn, or labels that its scores rank, is
completed by these; what is refused else is left out. Placeholders (`--label COL`) stay.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fewlabels.checks.class_words import NO_LABEL, folded, positive_index
from fewlabels.data.agreement import no_labels, ranked_apart, useless
from fewlabels.data.delimited import NO_HEADER
from fewlabels.data.evidence import UnjudgedError
from fewlabels.data.options import (
    ColumnOptions,
    column_options,
    parse_model_options,
    parse_pairs,
    parse_task_options,
)
from fewlabels.data.shapes import shaped
from fewlabels.data.sources import FirstRows, Selection, locate, open_source
from fewlabels.data.table import Names, in_order
from fewlabels.data.where import Condition
from fewlabels.errors import FewlabelsError, InputError, UsageError, one_line
from fewlabels.predictions import Predictions

ROWS = 5_000
"""Rows of a source that a proposal is tried on."""

_MOST = 8
"""Proposals that are tried for one source; what comes after them is left out."""

_WORD = r"""(?:[\w@%+=:./,-]|'[^']*'|"'")+"""
_OPTION = re.compile(rf"--(?:votes|no-header)\b|--[a-z][a-z-]*(?:=| (?!--)){_WORD}")

_APART, _SPARSE = 4.0, 2.0
"""Standard errors from which a score ranks the values of a column, the best of all of them, and how
many fewer where this is mostly empty, as labels are."""

_LOOKS = "fewlabels doctor "
"""A command that shows what there is, whether or not that can be read."""

Read = Callable[..., Predictions]
"""Reads a source by options: `source, options, **beside`, as `read_predictions` does."""

Span = tuple[int, int]

_COLUMN = {"label", "item", "annotator", "answer", "domain", "weight", "cluster", "by"}
_PAIRS = {"hard": "hard", "score": "scores", "confidence": "confidence"}


class Outcome(NamedTuple):
    """What becomes of a proposal: the options that read the source, or why none do.

    It is doubtful where its labels go with no prediction, and then not said beside one that is not.
    """

    options: str | None
    refusal: str = ""
    doubtful: bool = False


class Said(NamedTuple):
    """A proposal as arguments: of columns, beside them, what stands behind a `#`, which rows."""

    columns: dict[str, Any]
    beside: dict[str, Any]
    place: tuple[str | None, str | None]
    of_classifiers: frozenset[str]


@dataclass
class Proposals:
    """Tries what messages about a source propose, completed `most_more` times at most."""

    source: Any
    options: ColumnOptions
    read: Read
    beside: Mapping[str, Any] = field(default_factory=dict)
    most_more: int = 2
    _outcomes: dict[str, Outcome | None] = field(default_factory=dict)
    _heads: dict[Any, FirstRows | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Votes alone are the source."""
        if self.source is None:
            self.source, self.beside = self.beside.get("votes"), {**self.beside, "votes": True}

    def tried(self, error: InputError) -> InputError:
        """A refusal with those proposals alone with which the source is read."""
        text = self.text(str(error), refusal=True)
        return error if text == str(error) else InputError(text)

    def lines(self, lines: Iterable[str]) -> tuple[str, ...]:
        """Lines without the proposals that are refused."""
        return tuple(text for line in lines if (text := self.text(line)))

    def text(
        self, text: str, options: ColumnOptions | None = None, *, refusal: bool = False
    ) -> str:
        """A message without the proposals that are refused when added to the options."""
        if "--" not in text:
            return text
        alive, dead, why = list[tuple[Span, str]](), list[Span](), list[str]()
        for choice in _choices(text):
            tried = [self.outcome(text[a:b], options) for a, b in choice]
            outcomes = [one for one in tried if one is not None]
            if not outcomes:
                continue
            span = choice[0][0], choice[-1][1]
            outcomes = [one for one in outcomes if one.options and not one.doubtful] or outcomes
            kept = list(dict.fromkeys(one.options for one in outcomes if one.options))
            why += [one.refusal for one in outcomes if one.options is None]
            looks = text[: span[0]].rpartition(": ")[2].startswith(_LOOKS)
            ways = " or ".join(kept)
            if looks and (not kept or " or " in ways):  # a command is one way
                ways = text[slice(*span)]
            dead += [] if ways else [span]
            alive += [(span, ways)] if ways else []
        edits = [(*span, said) for span, said in alive if text[slice(*span)] != said]
        edits += [(*_fragment(text, span, [a for a, _ in alive]), "") for span in dead]
        for start, stop, said in sorted(edits, reverse=True):
            text = text[:start] + said + text[stop:]
        place = Selection.of(self.source).place
        name = f"{place}: " if isinstance(place, str | Path) else ""
        if (
            refusal
            and dead
            and not alive
            and why[0]
            and not re.search("; |: ", text.removeprefix(name))
        ):
            return one_line(f"{text}; it cannot be read as it stands: {why[0]}")
        return text.strip()

    def reads(self, words: Sequence[str]) -> bool:
        """Whether the source is read with these options alone, if they are options of columns."""
        try:
            said = self._said(words)
            self._read(said, column_options(keep=said.columns.pop("by", None), **said.columns))
        except FewlabelsError as error:
            return isinstance(error, UsageError)
        return True

    def outcome(self, proposal: str, options: ColumnOptions | None = None) -> Outcome | None:
        """What becomes of a proposal; None of one that names no column of the source."""
        key = str((proposal, options))
        if key not in self._outcomes:
            try:
                said = self._said(shlex.split(proposal))
            except (UsageError, ValueError):
                self._outcomes[key] = None
            else:
                full = sum(one is not None for one in self._outcomes.values()) >= _MOST
                why = Outcome(None, "too much is proposed")
                self._outcomes[key] = why if full else self._tried(proposal, said, options)
        return self._outcomes[key]

    def _tried(self, proposal: str, said: Said, options: ColumnOptions | None) -> Outcome:
        """A proposal and what it lacks: what is proposed in turn, or labels of its scores."""
        head, groups = self._head(*said.place), said.columns.pop("by", ())
        if head is None:
            return Outcome(proposal)
        # What a column is proposed to be it is instead of what it was.
        base = (options or self.options).renamed(lambda c: None if c in said.of_classifiers else c)
        named = column_options(columns=base, keep=groups or None, **said.columns)
        try:
            read = self._read(said, named)
            missing = [name for name in groups if name not in read.groups]
            why = f"{missing[0]!r} is no group" if missing else None
            if why is None and not self.beside.get("join"):  # whose files may hold the labels
                why = nothing_tells(read)
            if why is None:
                return Outcome(proposal, doubtful=len(useless(read)) == read.n_models)
            more = [_labels(head, read)]
        except FewlabelsError as error:
            if isinstance(error, UnjudgedError) and self.beside.get("join"):
                return Outcome(proposal)
            text = str(error)
            clause = re.split(r"; |: say |: if |, or say |: name them ", text)[0]
            why = one_line(_OPTION.split(clause)[0].rstrip(" :,("), 300)
            more = [[text[a:b] for a, b in choice] for choice in _choices(text)]
        further = Proposals(head, named, self.read, self.beside, self.most_more - 1)
        for choice in more if self.most_more else ():
            outcomes = [further.outcome(words) for words in choice if words not in proposal]
            found = [one.options for one in outcomes if one is not None and one.options]
            if found:  # each a whole command, which says no option twice
                ways = [f[a:b] for f in found for of in _choices(f) for a, b in of]
                said_already = {*_OPTION.findall(proposal)}
                rest = [[o for o in _OPTION.findall(w) if o not in said_already] for w in ways]
                return Outcome(" or ".join(" ".join([proposal, *more]) for more in rest))
        return Outcome(None, why)

    def _read(self, said: Said, options: ColumnOptions) -> Predictions:
        head, beside = self._head(*said.place), {**self.beside, **said.beside}
        if beside.get("votes") is True:
            return self.read(None, options, **{**beside, "votes": head})
        return self.read(head, options, **beside)

    def _head(self, fragment: str | None = None, where: str | None = None) -> FirstRows | None:
        """The first of these rows, perhaps with more behind the source's `#`; None of arrays."""
        key = fragment, where
        if key not in self._heads:
            chosen = Selection.of(self.source)
            place = chosen.place
            if fragment is not None and isinstance(place, str | Path):
                place = f"{place}#{fragment}"
            rows = chosen.where if where is None else Condition.parse(where)
            chosen = replace(chosen, place=place, where=rows)
            self._heads[key] = None
            with suppress(FewlabelsError):
                located = locate(chosen, [])
                if located is None or located.kind != "NPZ":
                    self._heads[key] = FirstRows(open_source(chosen, located), ROWS)
        return self._heads[key]

    @cached_property
    def _names(self) -> frozenset[str]:
        """The names of columns of the source, and of a file of labels beside it."""
        head, labels = self._head(), self.beside.get("labels")
        names = set() if head is None else {*head.names}
        files = labels if isinstance(labels, list | tuple) else [labels]
        for one in (head, *(f for f in files if isinstance(f, str | Path))):
            with suppress(FewlabelsError):
                opened = open_source(one, locate(one)) if isinstance(one, str | Path) else one
                names |= set() if opened is None else {*shaped(opened, ColumnOptions())[0].names}
        return frozenset(names)

    def _said(self, words: Sequence[str]) -> Said:
        """Options as arguments; a `UsageError` where they are none, or name no column."""
        by_flag: dict[str, list[str]] = {}
        for word in words:
            flag, _, value = word.partition("=") if word.startswith("--") else ("", "", word)
            by_flag.setdefault(flag[2:] or list(by_flag)[-1], []).extend([value] * bool(value))
        more, beside, fragment, where = dict[str, Any](), dict[str, Any](), None, None
        columns, own = list[str](), set[str]()
        for flag, values in by_flag.items():
            last = values[-1] if values else ""
            if flag == "no-header":
                fragment = NO_HEADER
            elif flag == "where" and Condition.parse(last) != Selection.of(self.source).where:
                where = last
            elif flag == "votes" and not values:
                beside["votes"] = True
            elif flag in ("duplicates", "labels-as") and last.islower():
                beside[flag.replace("-", "_")] = last
            elif flag in _COLUMN:
                columns += [c for v in values for c in ([v] if v in self._names else v.split(","))]
                more[flag] = values if flag in ("cluster", "by") else last
            elif flag in ("model", "logits"):
                mapped = parse_model_options(values, self._names, f"--{flag}")
                own.update(c for of in mapped.values() for c in of)
                more["models" if flag == "model" else flag] = mapped
            elif flag in _PAIRS:
                more[_PAIRS[flag]] = parse_pairs(f"--{flag}", "COL", values, self._names)
                own.update(more[_PAIRS[flag]].values())
            elif flag == "task":
                more |= parse_task_options(values, self._names)
                columns += filter(None, [more.get("task")])
                columns += [c for of in more.get("tasks", {}).values() for c in of]
            elif flag == "same" and not values[0].endswith(("=CLASS", "=NAME")):
                more["same"] = parse_pairs("--same", "CLASS", values)
            elif flag == "classes" and "," in last and not last.startswith("A,B"):
                more["classes"] = last.split(",")
            elif flag == "no-label" and last != "TEXT":
                more["no_label"] = values
            elif flag == "positive" and last != "CLASS":
                more["positive"] = last
            else:
                raise UsageError("a placeholder, or no option of columns")
        if not self._names.issuperset([*columns, *own]):
            raise UsageError("a placeholder")
        return Said(more, beside, (fragment, where), frozenset(own))


def _choices(text: str) -> list[list[Span]]:
    """Where proposals stand: options one behind another, and those joined by `or` together."""
    runs, number = list[list[int]](), list[int]()
    for found in _OPTION.finditer(text):
        start, stop = found.span()
        while text[stop - 1] in ",.:":
            stop -= 1
        between = text[runs[-1][1] : start] if runs else ""
        if between == " ":
            runs[-1][1] = stop
        else:
            number.append((number or [0])[-1] + (between != " or "))
            runs.append([start, stop])
    grouped = groupby(zip(number, runs, strict=True), key=lambda one: one[0])
    return [[(a, b) for _, (a, b) in members] for _, members in grouped]


def _fragment(text: str, span: Span, alive: Sequence[Span]) -> Span:
    """The part of a sentence around a proposal that says it, without the other proposals."""
    depth, depths = 0, list[int]()
    for i, letter in enumerate(text):
        inside = span[0] <= i < span[1] or any(a <= i < b for a, b in alive)
        depth += (letter == "(") - (letter == ")") if not inside else 0
        depths.append(depth)
    own = depths[span[0]]
    for marks in ("; |: |, or ", "; |: |, or |, "):
        found = [m.span() for m in re.finditer(marks, text) if depths[m.start()] == own]
        starts = [(a, b) for a, b in found if b <= span[0]]
        stops = [(a, b) for a, b in found if a >= span[1] and text[a] != ":"]
        opened = max((i for i in range(span[0]) if depths[i] < own), default=-1) + 1
        closed = next((i for i in range(span[1], len(text)) if depths[i] < own), len(text))
        starts = [(a, b) for a, b in starts if not own or a > opened]
        stops = [(a, b) for a, b in stops if not own or b <= closed]
        if starts:
            start, stop = starts[-1][0], stops[0][0] if stops else closed
        elif stops:
            start, stop = (opened + 1 if own else 0), stops[0][1]
        else:  # all of a parenthesis, or of the message
            start, stop = (opened - 1, closed + 1) if own else (0, len(text))
        if not any(start < b and a < stop for a, b in alive):
            return start, stop
    return span


def _labels(head: FirstRows, read: Predictions) -> list[str]:
    """The column of two values that scores rank best, as options; reversed, they say so."""
    table, best = head.read((), ()), (_APART, list[str]())
    if read.scores is None or read.n_items != table.n_rows or read.n_labeled:
        return []
    numbers = read.scores[:, 0]
    for name in head.single:
        with suppress(InputError):
            column = Names.of(table, name)
            two = in_order(t for t in column.counts() if folded(t) not in NO_LABEL)
            if len(two) != 2:
                continue
            place = np.array([*(two.index(t) if t in two else -1 for t in column.texts), -1])
            codes = place[column.codes]
            apart = ranked_apart(numbers, codes) or 0.0
            apart += _SPARSE * (2 * (codes >= 0).sum() < len(codes))
            upper = int(np.nanmean(numbers[codes == 1]) > np.nanmean(numbers[codes == 0]))
            turned = ["--positive", two[upper]] if upper != positive_index(two) else []
            best = max(best, (apart, ["--label", name, *turned]), key=lambda one: one[0])
    return [shlex.join(best[1])] if best[1] else []


def nothing_tells(predictions: Predictions) -> str | None:
    """Why nothing tells how good scores are, where there are no labels to judge them by."""
    scores = predictions.scores
    others = (predictions.probabilities, predictions.votes, predictions.histogram)
    if predictions.n_labeled or scores is None or any(one is not None for one in others):
        return None
    return no_labels(scores.T)
