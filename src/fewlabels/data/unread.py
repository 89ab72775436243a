"""What a table is seen to hold of which nothing is read as a prediction, and how to say it."""

from __future__ import annotations

import itertools
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fewlabels.checks.class_words import positive_index, same_answer
from fewlabels.data.agreement import ranked_apart
from fewlabels.data.evidence import (
    AGREE,
    APART,
    FEW_WORDS,
    MANY_ITEMS,
    AmbiguousError,
    Sheet,
    UnjudgedError,
    beyond_chance,
    class_indices,
    fits,
    separates,
)
from fewlabels.data.options import ColumnOptions
from fewlabels.data.profiles import LIKELY, SURELY, Profile, names_measure, without_role
from fewlabels.data.roles import PLAIN, no_predictions
from fewlabels.data.row_votes import unnamed_votes
from fewlabels.data.table import in_order
from fewlabels.data.where import identifier
from fewlabels.errors import InputError, listed, quoted
from fewlabels.kernels.arrays import Bools


def refuse_unread(sheet: Sheet, numbers: Sequence[Profile]) -> None:
    """Refuse a table without a classifier by what its columns are seen to be, and how to say so."""
    # `numbers` are columns of which nothing says whether a classifier gave them.
    free = [p for p in sheet.free() if not names_measure(p.name)]
    for p in sheet.free():
        if p.confirms and sheet.label is None:
            raise InputError(
                f"column {quoted(p.name)} says by its name whether a verdict is right, and not "
                "what the class is: write the right classes in a column of their own; if it "
                f"does hold the known labels, say --label {shlex.quote(p.name)}"
            )
    if counted := _counted_votes(sheet):
        raise InputError(counted)
    if compared := sorted(sheet.compared, key=sheet.names.index):
        chooser = next(p for p in sheet.columns.values() if {*compared} & set(p.counts or ()))
        raise InputError(
            f"column {quoted(chooser.name)} says which of {listed(map(quoted, compared))} is "
            "better: each row compares two, and has no class of its own that a classifier could "
            "predict; such comparisons are not read as predictions"
        )
    if sheet.label is None:
        _refuse_raters(sheet)
        _refuse_alike(sheet, free)
        _refuse_unjudged(sheet)
        if unnamed := unnamed_votes(sheet):
            item, person, vote = unnamed
            roles = {"item": item.name, "annotator": person.name, "label": vote.name}
            raise InputError(
                f"no prediction columns, but each row may be the vote of one of "
                f"{person.distinct:,} annotators ({quoted(person.name)}) on one of "
                f"{item.distinct:,} items ({quoted(item.name)}): if so, say "
                + shlex.join(["--votes", *ColumnOptions(votes=roles).arguments()])
            )
    numbers = [p for p in numbers if p.of("label") < SURELY]
    if numbers:
        refuse_numbers(sheet, numbers)
    nested = listed([quoted(p.name) for p in sheet.columns.values() if p.nested], 3)
    labels = listed([quoted(p.name) for p in free if p.few and p.of("label") >= LIKELY], 3)
    if nested or labels:
        seen = f"lists of objects, which are not read, are in {nested}" if nested else ""
        truth = f"labels may be in {labels}" if labels else ""
        raise InputError(no_predictions(sheet.names, filter(None, (seen, truth))))


def other_rows(p: Profile, value: str) -> str:
    """The condition of the rows in which a column does not hold a value, or nothing."""
    name = identifier(p.name)
    return f"{name} != {value}" + f" or {name} is null" * (p.filled < p.rows)


def refuse_total(sheet: Sheet) -> None:
    """Refuse a last row whose every number is the sum of those above it: it is no item."""
    ends = [
        (p, p.numbers[-1], p.numbers[:-1]) for p in sheet.columns.values()
        if p.numbers is not None and not np.isnan(p.numbers[-1])
    ]  # fmt: skip
    sums = [np.isclose(last, np.nansum(above), rtol=1e-3) for _, last, above in ends]
    larger = [p for p, last, above in ends if abs(last) > np.nanmax(np.abs(above), initial=0)]
    if not (larger and all(sums) and larger[0].rows > FEW_WORDS):
        return
    named = [p for p in sheet.columns.values() if (p.codes == p.codes[-1]).sum() == 1]
    named = [p for p in named if p.codes[-1] >= 0 and p.numbers is None] or larger
    value = identifier(named[0].texts[named[0].codes[-1]])
    rows = shlex.quote(other_rows(named[0], value))
    raise InputError(
        f"{sheet.table.place(named[0].rows - 1)} holds the sums of the rows above it (column"
        f"{'s' * (len(larger) > 1)} {listed(quoted(p.name) for p in larger)}) and is no item: "
        f"leave it out with --where {rows}"
    )


def _refuse_raters(sheet: Sheet) -> None:
    """Refuse a survey: a rater in each row, an item in each of many columns of the same words."""
    texts = [p for p in sheet.columns.values() if p.counts and p.numbers is None]
    times = Counter(word for p in texts for word in p.counts or ())
    said = [word for word, columns in times.items() if columns >= MANY_RATED]
    items = [p.name for p in texts if not {*said}.isdisjoint(p.counts or ())]
    raters = [p.name for p in sheet.columns.values() if p.unique and p.filled == p.rows]
    if not 1 < len(said) <= FEW_WORDS or not raters:
        return
    raise InputError(
        f"{len(items):,} columns ({listed(map(quoted, items), 2)}) hold the same words "
        f"({listed(map(quoted, said), 3)}), as if each row were what one rater says of items: "
        f"write a row for each item and a column for each rater ({quoted(raters[-1])}); "
        "in pandas: frame.set_index(...)[items].T; then name those columns with --hard NAME=COL"
    )


MANY_RATED = 20
"""Columns of the same words from which each may be an item, and a row a rater."""


def _refuse_alike(sheet: Sheet, free: Sequence[Profile]) -> None:
    """Refuse columns of the same values, of which one may hold the labels."""
    few = [p for p in free if p.few and (p.numbers is None or p.whole)]
    for p in few:
        alike = [q for q in few if fits(q, tuple(p.counts or ()))]
        alike = [q for q in alike if fits(p, tuple(q.counts or ()))]
        # Counts of two things, such as goals, are no labels and predictions.
        near = [beyond_chance(p, q, tuple(p.counts or ())) for q in alike if q is not p]
        if (
            p.numbers is not None
            and p.distinct > 2
            and max((k for k in near if k is not None), default=1) <= AGREE
        ):
            continue
        if len(alike) < 2:
            continue
        named = {without_role(q.name): q.name for q in alike}
        classes, ways = tuple(p.counts or ()), list[list[str]]()
        # The truth is known for few, and most go with it.
        each = {q.name: [beyond_chance(q, r, classes) or 0.0 for r in alike] for q in alike}
        alike.sort(key=lambda q: (not q.sparse, -sum(each[q.name])))
        for q in alike[:2]:
            hard = {name: column for name, column in named.items() if column != q.name}
            ways.append(ColumnOptions(q.name, hard=hard).arguments())
        message = f"columns {listed(quoted(q.name) for q in alike)} hold the same values, and no "
        if len(alike) < _MANY_VOICES or alike[0].sparse:
            raise AmbiguousError(f"{message}name says which are the known labels", ways)
        raise AmbiguousError(
            f"{message}name says whether one holds the known labels, or all are votes",
            [ColumnOptions(hard=named).arguments(), *ways[:1]],
        )


_MANY_VOICES = 3
"""Columns of the same values from which there may be no labels: their votes tell of each other."""


def _refuse_unjudged(sheet: Sheet) -> None:
    """Refuse a column of predictions alone, by its name or without one, and without labels."""
    # Numbers beside it may be the scores of which it is the label.
    numbers = any(p.numbers is not None and not p.few for p in sheet.free())
    unnamed = not numbers and all(map(PLAIN.fullmatch, sheet.names))
    said = [p for p in sheet.free() if p.few and (p.predicts or unnamed) and not p.measures]
    said = [p for p in said if p.of("annotator") <= 0]
    if len(said) != 1 or any(p.of("label") > 0 for p in sheet.free()):
        return
    classes = tuple(said[0].counts or ())
    folders = ""
    for p in sheet.columns.values():
        parts = {part for text in p.texts for part in text.replace("\\", "/").split("/")[:-1]}
        if len([t for t in classes if same_answer(t, sorted(parts))]) > 1:
            folders = (
                f"; if the folders in {quoted(p.name)} are the right classes, write them in a "
                "column of their own"
            )
    how = (
        "has no name, and if it holds predictions" if unnamed else "holds predictions, by its name"
    )
    raise InputError(
        f"column {quoted(said[0].name)} {how}, {'' if unnamed else 'and '}no column holds known "
        f"labels, without which nothing tells how good they are: join them with --labels FILE"
        f"{folders}"
    )


def refuse_numbers(sheet: Sheet, numbers: Sequence[Profile], why: str = "") -> None:
    """Refuse numbers that may be scores, with the labels that they rank, else for a reason."""
    free = [p for p in sheet.free() if not names_measure(p.name)]
    others = list(numbers)
    if not why:
        others = [p for p in sheet.free() if p.numbers is not None and p.distinct > 2]
    names = listed([quoted(p.name) for p in others])
    answers = sheet.answers()
    if answers and all(p.of_itself for p in numbers):
        raise InputError(
            f"column {listed(quoted(p.name) for p in numbers)} says by its name how sure somebody "
            "is of an answer, and no column holds known labels to judge that by: join them with "
            f"--labels FILE, and if {quoted(answers[0].name)} is the answer, add --hard "
            + shlex.quote(f"NAME={answers[0].name}")
        )
    best: tuple[float, Profile, int, dict[str, str]] | None = None
    leaks = dict[str, str]()
    for label in [p for p in free if p.few and p.coded] if sheet.label is None else [sheet.label]:
        classes = tuple(in_order(label.counts or ()))
        codes = class_indices(label, classes)
        for side in range(len(classes)) if len(classes) == 2 else ():
            above = _above(numbers, label, codes == side, codes == 1 - side)
            perfect = {name for _, name in above if separates(sheet.columns[name], codes)}
            leaks |= dict.fromkeys(perfect, label.name)
            above = [one for one in above if one[1] not in perfect]
            if above and (best is None or max(above)[0] > best[0]):
                scores = {without_role(name): name for _, name in above[:3]}
                best = max(above)[0], label, side, scores
    what = f"columns {names} hold numbers, and nothing says whether classifiers gave them"
    if leaks:
        few = listed(map(quoted, leaks), 3)
        of = listed(map(quoted, dict.fromkeys(leaks.values())), 3)
        apart, what_is = ("separates", "is it") if len(leaks) == 1 else ("separate", "are they")
        what += f"; {few} {apart} the classes of {of} perfectly: {what_is} known only afterwards?"
    if best is None and why:
        raise UnjudgedError(why)
    if best is None and leaks:
        raise InputError(f"{what} If a classifier gave it, name both: --label COL --score NAME=COL")
    if best is None:
        scores = {without_role(p.name): p.name for p in numbers[:3]}
        some = [p for p in sheet.free() if p.few and p.coded and p.sparse and p not in numbers]
        known = some[0].name if sheet.label is None and len(some) == 1 else None
        said = shlex.join(ColumnOptions(known, scores=scores).arguments())
        none = ", and no column holds known labels, which --labels FILE joins"
        none = "" if sheet.label is not None or known else none
        raise InputError(f"{what}{none}: if they are scores, say so with {said}")
    _, label, side, scores = best
    classes = tuple(in_order(label.counts or ()))
    positive = None if side == positive_index(classes) else classes[side]
    said = shlex.join(ColumnOptions(label.name, positive=positive, scores=scores).arguments())
    raise (UnjudgedError if why else InputError)(
        f"{what}; {listed(map(quoted, scores.values()))}: larger where {quoted(label.name)} is "
        f"{quoted(classes[side])}; if these are scores and the known labels, say {said}"
    )


def _above(
    numbers: Sequence[Profile], label: Profile, one: Bools, other: Bools
) -> list[tuple[float, str]]:
    """The columns of numbers that are larger in some rows than in others, and by how much."""
    rows = np.where(one, 1, np.where(other, 0, -1))
    found = []
    for p in numbers:
        x = np.empty(0) if p.numbers is None else p.numbers
        gap = None if p is label else ranked_apart(x, rows)
        if gap is None or gap <= APART or len(np.unique(x[one | other])) <= 2:
            continue  # of two values only it is the same in other words
        if np.nanmedian(x[one]) >= np.nanmedian(x[other]):
            found.append((gap, p.name))
    return found


def _counted_votes(sheet: Sheet) -> str:
    """What to say of neighbouring columns of counts whose sum is another column; or nothing."""
    whole = [p for p in sheet.columns.values() if p.whole and len(p.known) == p.rows]
    if not whole or whole[0].rows < MANY_ITEMS:
        return ""
    x = np.array([p.numbers for p in whole])
    sums = np.vstack([np.zeros(x.shape[1]), x.cumsum(0)])
    for first, last in itertools.combinations(range(len(whole) + 1), 2):
        if not 2 <= last - first <= FEW_WORDS:
            continue
        head = (x[:, :MANY_ITEMS] == (sums[last] - sums[first])[:MANY_ITEMS]).all(1)
        places = [i for i in np.flatnonzero(head) if not first <= i < last]
        same = [whole[i] for i in places if (x[i] == sums[last] - sums[first]).all()]
        if not same or (x[first:last] < 0).any() or (x[first:last].max(1) < 1).any():
            continue
        counts = whole[first:last]
        most = x[first:last].argmax(0)
        clear = (x[first:last] == x[first:last].max(0)).sum(0) == 1
        index = replace(counts[0], codes=most, distinct=len(np.unique(most)))
        others = [p for p in sheet.columns.values() if p.few and p not in [*counts, *same]]
        known = {p.name: clear & (p.codes >= 0) for p in others}
        derived = [p.name for p in others if p.pairs(index, known[p.name]) == index.distinct]
        most_chose = f"{listed(map(quoted, derived))} is the class that most chose, and no truth"
        so = f"; {most_chose} beside them" if derived else ""
        named = listed([f"h__{p.name}" for p in counts], 3)
        return (
            f"columns {listed(quoted(p.name) for p in counts)} count who chose each class (their "
            f"sum is {quoted(same[0].name)} in every row){so}; there are no predictions to judge "
            f"by them: join those of a classifier, and name the counts {named}"
        )
    return ""
