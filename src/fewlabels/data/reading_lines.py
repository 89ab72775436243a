"""What was recognised of a table in lines, and what of it is not used and how to say it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

import numpy as np

from fewlabels.data.agreement import go_together
from fewlabels.data.evidence import FEW_WORDS, NEARLY_ALL, Sheet
from fewlabels.data.families import largest
from fewlabels.data.profiles import Profile, names_measure
from fewlabels.data.table import Names, Table, in_order
from fewlabels.errors import listed, quoted

WEIGHT_LINE = "sampling weights"

_SLIPS = 5
"""Different cells that are no numbers, from which a column is none of numbers."""


def label_line(label: Profile, table: Table) -> str:
    """The column of the labels, and how many there are."""
    held = Names.of(table, label.name).counts()
    none = f"; -1 is unlabeled, {held['-1']:,} rows" if held.get("-1") else ""
    return f"labels: column {quoted(label.name)} ({label.filled:,} of {label.rows:,} rows{none})"


def weight_line(column: str) -> str:
    """The column of sampling weights."""
    return f"{WEIGHT_LINE}: column {quoted(column)} (rename it if it is something else)"


def reading_lines(sheet: Sheet, label: Profile | None, item: str | None) -> Iterable[str]:
    """What was recognised, and what is not used, in lines."""
    if label is not None:
        yield label_line(label, sheet.table)
    else:
        yield from list(doubts(sheet)) or ["labels: none recognised"]
    for what, mapped in (
        ("probabilities", sheet.models),
        ("hard predictions", {name: (c,) for name, c in sheet.hard.items()}),
        ("scores (larger is more positive)", {n: (c,) for n, c in sheet.scores.items()}),
        ("probability of what is predicted", {n: (c,) for n, c in sheet.confidence.items()}),
    ):
        if mapped:
            said = (f"{name} = {', '.join(map(quoted, c))}" for name, c in mapped.items())
            yield f"{what}: {'; '.join(said)}"
    shares = [n for n, c in sheet.scores.items() if sheet.columns[c].in_unit]
    if shares:
        models = " ".join(f"--model {shlex.quote(f'{n}={sheet.scores[n]}')}" for n in shares[:3])
        yield f"scores from 0 to 1: if they are probabilities, say so with {models}"
    if (weight := sheet.options.weight or "weight") in sheet.columns:
        yield weight_line(weight)
    if (domain := sheet.options.domain or "domain") in sheet.columns:
        yield f"domains: column {quoted(domain)} (rename it if it is something else)"
    if item is not None:
        yield f"items: named by column {quoted(item)}"
    for p in sheet.free():
        if p.of("item") > 0 and NEARLY_ALL * p.filled < p.distinct < p.filled:
            yield (
                f"items: {quoted(p.name)} repeats ({p.distinct:,} values in {p.filled:,} "
                "rows); every row is read as an item of its own"
            )
    constant = [p.name for p in sheet.free() if p.distinct == 1 and p.filled > 0.9 * p.rows]
    if constant:
        yield f"not used: {listed(map(quoted, constant))} (one value only)"
    flags = [p for p in sheet.flags if label is not None or not p.agrees]
    if flags:
        yield (
            f"not used: {listed(quoted(p.name) for p in flags)} (by the name what was "
            "done with an item, or whether somebody agrees; if a classifier said it, add "
            "--hard NAME=COL to the command that `fewlabels doctor` shows)"
        )
    yield from (f"not used: {said}" for said in spoiled(sheet, constant=False))
    yield from _other_words(sheet, label)
    numbers = [
        p.name for p in sheet.free()
        if p.numbers is not None and p.distinct > 1
        and (p.counts is None or not p.whole or p.of_itself)
    ]  # fmt: skip
    if numbers:
        yield (
            f"not used: {listed(map(quoted, numbers))} (numbers; if a classifier gave them, "
            "add --model or --score NAME=COL to the command that `fewlabels doctor` shows)"
        )


def doubts(sheet: Sheet) -> Iterable[str]:
    """Lines on columns that may hold the labels, and are not used."""
    alike = [
        p for p in sheet.free()
        if p.name not in sheet.claimed and (
            p in sheet.doubted or p.agrees
            or (p.few and p.sparse and not names_measure(p.name))
        )
    ]  # fmt: skip
    if alike:
        said = " or ".join(f"--label {shlex.quote(p.name)}" for p in alike[:3])
        few = listed(f"{quoted(p.name)} ({p.filled:,} of {p.rows:,} rows)" for p in alike[:3])
        yield f"labels: none used; if {few} holds the known labels, say {said}"


def spoiled(sheet: Sheet, *, constant: bool = True) -> Iterable[str]:
    """What keeps columns that are named as scores from being read as numbers."""
    for p in sheet.free():
        if p.name in sheet.claimed or not (p.of("score") > 0 or p.predicts):
            continue
        if p.numbers is not None and constant and p.distinct == 1 < p.filled:
            yield f"column {quoted(p.name)} holds one value only"
        bad = [] if p.numbers is not None else [t for t in p.texts if not _is_finite(t)]
        rows = int(np.isin(p.codes, [p.texts.index(text) for text in bad[:_SLIPS]]).sum())
        if 0 < len(bad) <= _SLIPS and rows <= (1 - NEARLY_ALL) * p.filled:
            cells = "1 cell" if rows == 1 else f"{rows} cells"
            yield (
                f"column {quoted(p.name)} holds numbers but for {cells} "
                f"({listed(map(quoted, bad), 3)}): correct or empty them, or drop the rows"
            )


def _other_words(sheet: Sheet, label: Profile | None) -> Iterable[str]:
    """Lines on columns that go with the labels or predictions, in other words than these."""
    known = [sheet.columns[c].codes for c in sheet.hard.values()]
    for columns in sheet.models.values():
        known.append(largest([sheet.columns[c] for c in columns]))
    known += [] if label is None else [label.codes]
    told = [*sheet.flags, *sheet.doubted]
    for q in sheet.free():
        words = in_order(q.counts or ())
        few = (len(words) > 1 or q.filled < q.rows) and 0 < len(words) <= FEW_WORDS
        named = names_measure(q.name) or q.judges_another or q.of_itself
        if not few or q.wordy or q in told or named or (label and label.known_with(q)):
            continue
        if any(go_together(q.codes + 1, codes) for codes in known):
            ways = " ".join(f"--same {shlex.quote(word)}=CLASS" for word in words[:3])
            empty = " (and write a word in its empty cells)" if len(words) == 1 else ""
            what, role = "a classifier gave it", ""
            if label is None and not q.predicts:
                what = "it holds the known labels"
                role = f"--label {shlex.quote(q.name)} "
            yield (
                f"not used: {quoted(q.name)} ({listed(map(quoted, words))}) goes with the "
                f"labels or predictions; if {what}, say what its words mean: "
                f"{role}{ways}{empty}"
            )


def _is_finite(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
