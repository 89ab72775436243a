"""What was recognised of a table in lines, and what of it is not used and how to say it."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterable

import numpy as np

from fewlabels.checks.class_words import folded, same_answer
from fewlabels.data.agreement import go_together
from fewlabels.data.classes import as_slips
from fewlabels.data.evidence import (
    FEW_WORDS,
    MOST_STRAYS,
    NEARLY_ALL,
    Sheet,
    class_indices,
    fits,
    strays,
)
from fewlabels.data.families import largest
from fewlabels.data.profiles import Profile, names_measure
from fewlabels.data.table import Names, Table, in_order, number_of
from fewlabels.errors import listed, quoted

WEIGHT_LINE = "sampling weights"

_SLIPS = 5
"""Different cells that are no numbers, from which a column is none of numbers."""


def label_line(label: Profile, table: Table) -> str:
    """The column of the labels, and how many there are."""
    held = Names.of(table, label.name).counts()
    none = f"; -1 is unlabeled, {held['-1']:,} rows" if held.get("-1") else ""
    return f"labels: column {quoted(label.name)} ({label.filled:,} of {label.rows:,} rows{none})"


DRAWN = "how likely the item was to be labeled"
"""The role of probabilities by which items to label were drawn."""


def weight_line(column: str) -> str:
    """The column of sampling weights."""
    return f"{WEIGHT_LINE}: column {quoted(column)} (rename it if it is something else)"


def reading_lines(sheet: Sheet, label: Profile | None, item: str | None) -> Iterable[str]:
    """What was recognised, and what is not used, in lines."""
    if label is not None:
        yield label_line(label, sheet.table)
    else:
        yield from list(doubts(sheet)) or ["labels: none recognised"]
    single = (sheet.hard, sheet.scores, sheet.confidence)
    columns: list[dict[str, tuple[str, ...]]] = [sheet.models]
    columns += [{n: (c,) for n, c in one.items()} for one in single]
    for what, mapped in zip(_OF_CLASSIFIERS, columns, strict=True):
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
                f"items: {quoted(p.name)} repeats ({p.distinct:,} values in {p.filled:,} rows); "
                f"every row is an item of its own, unless you say --cluster {shlex.quote(p.name)}"
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
    for name in (name for name, role in sheet.roles.items() if role == DRAWN):
        yield (
            f"not used: {quoted(name)} ({DRAWN}, by the name: if so, --weight with a column "
            "of 1/P where there is a label, and nothing elsewhere, counts by it; if a classifier "
            "gave it, add --model NAME=COL to the command that `fewlabels doctor` shows)"
        )
    told = [*_no_predictions(sheet, label), *_other_words(sheet, label)]
    yield from told
    numbers = [
        p.name for p in sheet.free()
        if p.numbers is not None and p.distinct > 1
        and (p.counts is None or not p.whole or p.of_itself or (p.predicts and not p.measures))
        and not any(quoted(p.name) in line for line in told)
    ]  # fmt: skip
    if numbers:
        yield (
            f"not used: {listed(map(quoted, numbers))} (numbers; if a classifier gave them, "
            "add --model or --score NAME=COL to the command that `fewlabels doctor` shows)"
        )


_OF_CLASSIFIERS = (
    "probabilities", "hard predictions", "scores (larger is more positive)",
    "probability of what is predicted",
)  # fmt: skip
"""What lines on recognised classifiers begin with."""


def are_recognised(lines: Iterable[str]) -> bool:
    """Whether lines say that columns were recognised as those of classifiers."""
    return any(line.startswith(tuple(f"{what}: " for what in _OF_CLASSIFIERS)) for line in lines)


_LEFT_OUT = ("not used: ", "labels: none used")


def left_out(lines: Iterable[str]) -> list[str]:
    """Those of the lines that say what is not used, and may have been meant to be."""
    return [s for s in lines if s.startswith(_LEFT_OUT) and not s.endswith("(one value only)")]


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
        scores = {n: e["label"].score for n, e in sheet.evidence.items() if "label" in e}
        alike.sort(key=lambda p: -scores.get(p.name, 0.0))
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
        bad = [] if p.numbers is not None else [t for t in p.texts if math.isnan(number_of(t))]
        rows = int(np.isin(p.codes, [p.texts.index(text) for text in bad[:_SLIPS]]).sum())
        if 0 < len(bad) <= _SLIPS and rows <= (1 - NEARLY_ALL) * p.filled:
            cells = "1 cell" if rows == 1 else f"{rows} cells"
            yield (
                f"column {quoted(p.name)} holds numbers but for {cells} "
                f"({listed(map(quoted, bad), 3)}): correct or empty them, or drop the rows"
            )


def _no_predictions(sheet: Sheet, label: Profile | None) -> Iterable[str]:
    """Lines on columns of the labels' values that no classifier gave, by their values."""
    if label is None:
        return
    classes = tuple(label.counts or ())
    fitting = [p for p in sheet.free() if p.coded and fits(p, classes) and p not in sheet.flags]
    made = [p for p in fitting if label.known_with(p)]
    if made:
        yield (
            f"not used: {listed(quoted(p.name) for p in made)} (known only where the labels are, "
            "which are perhaps made of them; if classifiers gave them, add --hard NAME=COL to the "
            "command that `fewlabels doctor` shows)"
        )
    other = [p for p in fitting if p not in made and not names_measure(p.name)]
    other = [p for p in other if "prediction" in sheet.evidence.get(p.name, {})]
    if other:
        yield (
            f"not used: {listed(quoted(p.name) for p in other)} (values of the labels, which "
            "hardly agree with them: groups; if classifiers gave them, add --hard NAME=COL to the "
            "command that `fewlabels doctor` shows)"
        )


def _no_answers(sheet: Sheet, label: Profile, hard: Iterable[Profile]) -> Iterable[str]:
    """A line on words of few rows that one column alone holds, and the others' classes are not."""
    # They may say that there was no answer: contaminated, invalid, timeout.
    classes = tuple(label.counts or ())
    columns = [label, *(p for p in hard if strays(p, classes) is not None)]
    own = [{t: folded(same_answer(t, classes) or t) for t in p.counts or ()} for p in columns]
    times = Counter(meant for words in own for meant in set(words.values()))
    found = list[tuple[str, Profile]]()
    for p, words in zip(columns, own, strict=True):
        alone = [t for t, meant in words.items() if times[meant] == 1]
        rows = sum((p.counts or {})[t] for t in alone)
        if len(words) - len(alone) > 1 and len(alone) <= MOST_STRAYS and rows <= 0.2 * p.filled:
            found += [(text, p) for text in alone]
    if found and len(columns) > 1:
        said = (f"{quoted(t)} ({(p.counts or {})[t]:,} rows of {quoted(p.name)})" for t, p in found)
        usual = sorted({t for words in own for t in words}.difference(t for t, _ in found))
        yield f"in one column alone: {listed(said)}; {as_slips([t for t, _ in found], usual)}"


def _meaning(p: Profile, word: str, label: Profile | None) -> str:
    """What a word means, as an option: the class that labels beside it are rather than usual."""
    # A rare word of which the labels tell nothing may be none; of others nothing is said.
    counts = {} if label is None else label.counts or {}
    if label is not None and len(counts) > 1:
        rows, own = p.codes == p.texts.index(word), class_indices(label, tuple(counts))
        beside, usual = own[rows & (own >= 0)], np.bincount(own[own >= 0], minlength=len(counts))
        share = usual / usual.sum()
        gain = np.bincount(beside, minlength=len(counts)) / max(len(beside), 1) - share
        best = int(gain.argmax())
        if gain[best] > _GAIN * np.sqrt(share[best] * (1 - share[best]) / max(len(beside), 1)):
            return f"--same {shlex.quote(f'{word}={tuple(counts)[best]}')}"
        if rows.sum() < (1 - NEARLY_ALL) * p.filled:
            return f"--no-label {shlex.quote(word)}"
    return f"--same {shlex.quote(word)}=CLASS"


_GAIN = 2.5
"""Standard errors by which a class must be more frequent than usual beside a word that means it."""


def _other_words(sheet: Sheet, label: Profile | None) -> Iterable[str]:
    """Lines on columns that go with the labels or predictions, in other words than these."""
    known = [sheet.columns[c].codes for c in sheet.hard.values()]
    for columns in sheet.models.values():
        known.append(largest([sheet.columns[c] for c in columns]))
    known += [] if label is None else [label.codes]
    told = [*sheet.flags, *sheet.doubted]
    if label is not None and not sheet.models:
        of_classes = [p for p in sheet.free() if p not in told and not names_measure(p.name)]
        of_classes = [p for p in of_classes if strays(p, tuple(label.counts or ()))]
        told += of_classes
        hard = [sheet.columns[c] for c in sheet.hard.values()]
        yield from _no_answers(sheet, label, [*hard, *of_classes])
    for q in sheet.free():
        words = in_order(q.counts or ())
        few = (len(words) > 1 or q.filled < q.rows) and 0 < len(words) <= FEW_WORDS
        named = names_measure(q.name) or q.judges_another or q.of_itself
        if not few or q.wordy or q in told or named or (label and label.known_with(q)):
            continue
        if any(go_together(q.codes + 1, codes) for codes in known):
            ways = " ".join(_meaning(q, word, label) for word in words[:3])
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
