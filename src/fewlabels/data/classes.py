"""Which classes there are, which is positive, and which of them a text means."""

from __future__ import annotations

import difflib
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fewlabels.checks.arrays import UNKNOWN
from fewlabels.checks.class_words import (
    MAYBE_NO_LABEL,
    NO_LABEL,
    folded,
    polarity,
    positive_index,
    same_answer,
    spelling,
)
from fewlabels.data.options import ColumnOptions
from fewlabels.data.profiles import MOST_CLASSES, by_names, class_of_one, differences
from fewlabels.data.roles import Roles, places, split_native
from fewlabels.data.shapes import tags_as_tasks, tags_in
from fewlabels.data.table import Names, Place, class_names, class_text, fractions_in, in_order
from fewlabels.errors import InputError, UsageError, listed, quoted, unknown
from fewlabels.kernels.arrays import Array

Counts = Mapping[str, Mapping[str, int]]
"""Column -> text -> rows that have it."""

_BOOLEAN = {"true": "1", "false": "0", "1": "true", "0": "false"}
_IMPLIED = (("0", "1"), ("false", "true"))
"""Classes of a file whose columns name none, if nothing else occurs."""

_RARE = 0.1
"""A spelling with at most this share of another one's rows is a typing error."""


@dataclass(frozen=True)
class Classes:
    """The classes by their text, in order.

    `positive` is the positive one of two, or the requested one of more. `given` is the caller's
    order, or empty; only by it can columns be matched by position. `none` are the (folded) texts
    for a missing label; `same` maps a text to the class it means. `scaled` are columns of
    percentages, recognised from some of the rows. `doubt` is the question to ask if there seem to
    be too many classes.
    """

    texts: tuple[str, ...]
    notes: tuple[str, ...] = ()
    positive: str | None = None
    given: tuple[str, ...] = ()
    none: frozenset[str] = NO_LABEL | MAYBE_NO_LABEL
    same: Mapping[str, str] | None = None
    scaled: frozenset[str] = frozenset()
    doubt: str = ""

    @property
    def names(self) -> tuple[int, ...] | tuple[str, ...]:
        """Integers when every class is written as one, else the texts."""
        return class_names(self.texts)

    @property
    def positive_name(self) -> int | str | None:
        """The positive class as `names` has it."""
        return None if self.positive is None else self.names[self.texts.index(self.positive)]

    @cached_property
    def _index(self) -> dict[str, int]:
        return {text: i for i, text in enumerate(self.texts)}

    def positive_last(self) -> Classes:
        """The same classes with the positive one of two at the end, where metrics look for it."""
        if len(self.texts) != 2 or self.positive == self.texts[-1]:
            return self
        return replace(self, texts=self.texts[::-1])

    def find(self, text: str) -> int | None:
        """Index of the class; -1 where the text says that it is unknown; None if it is no class."""
        # A class as it is written; what `same` says; the one spelling that differs in case and
        # blanks alone; then the texts for no label; then synonyms (yes, true, pass, 1).
        text = (self.same or {}).get(text, text)
        if text in self._index:
            return self._index[text]
        if folded(text) not in self.none or folded(text) in map(folded, self.texts):
            meant = same_answer(text, self.texts)
            return None if meant is None else self._index[meant]
        return UNKNOWN

    def indices(self, names: Names, place: Place) -> Array:
        """Class index per row (n,), in the smallest integers that hold them; -1 = unknown."""
        index = [self.find(text) for text in names.texts]
        small = np.min_scalar_type(-max(len(self.texts), 2))
        table = np.array([-2 if i is None else i for i in index] + [UNKNOWN], dtype=small)
        out: Array = table[names.codes]
        strangers = np.flatnonzero(out == -2)
        if strangers.size:
            row = int(strangers[0])
            raise InputError(
                f"{quoted(names.texts[names.codes[row]])} in column {quoted(names.column)}, "
                f"{place(row)}, is not a class; the classes are {listed(self.texts)}: correct "
                "it, leave it empty, or name all classes with --classes"
            )
        return out

    def columns_of(self, model: str, columns: tuple[str, ...]) -> dict[str, str]:
        """Class -> column of a classifier whose columns the caller names, by the names' ends."""
        size = len(self.texts)
        if len(columns) == 1 and size == 2:
            named = class_of_one(columns[0], self.texts)
            return {named or self.positive or self.texts[-1]: columns[0]}
        if len(columns) != size:
            raise InputError(
                f"classifier {quoted(model)} has {len(columns)} columns, but there are {size} "
                f"classes ({listed(self.texts)}); give one column per class{self.doubt}"
            )
        if not self.given and places(columns) is not None:
            return dict(zip(in_order(self.texts, in_words=False), columns, strict=True))
        found = by_names(columns, self.texts, in_words=not self.given)
        if found is not None:
            return found
        if not self.given:
            raise InputError(
                f"which class each column of classifier {quoted(model)} is of is not said by the "
                f"names ({listed(columns)}; the classes are {listed(self.texts)}); name the "
                f"classes in the order of the columns: --classes {','.join(self.texts)}"
            )
        return dict(zip(self.given, columns, strict=True))


def decide_classes(roles: Roles, options: ColumnOptions, seen: Counts) -> Classes:
    """Decide on the classes: from `classes=`, else the p and h columns, else what was `seen`."""
    declared = {c: column for by in roles.probabilities.values() for c, column in by.items()}
    declared |= roles.histogram
    given = () if options.classes is None else tuple(class_text(c) for c in options.classes)
    if options.classes is not None:
        for name, column in declared.items():
            if name not in given:
                raise InputError(
                    f"column {quoted(column)} is of class {quoted(name)}, which is not among the "
                    f"classes given ({listed(given)}); add it, or drop the column"
                )
    known = set(given) | set(declared)
    none = _texts_for_none(seen, roles, known, options)
    notes: list[str] = []
    if not given:
        _refuse_in_both(seen, roles, options)
        _refuse_several(seen, roles, options)
        label = roles.label or ""
        signs = seen.get(label, {})
        if "-1" in signs and (doubt := of_two_signs(label, signs, options)):
            notes += _of_contract(doubt, roles, seen)
        votes = next((c for c in seen if c.startswith("votes.")), None)  # then their known labels
        if votes is not None and (doubt := of_two_signs(votes, seen[votes], options)):
            raise InputError(doubt)
    start = Classes((), given=given, none=none, same=options.same)
    # The texts that are classes, those of `same` under the class they mean.
    counts: dict[str, Counter[str]] = {column: Counter() for column in seen}
    for column, held in seen.items():
        for text, rows in held.items():
            meant = options.same.get(text, text)
            if meant in known or folded(meant) not in none:
                counts[column][meant] += rows
    if given:
        texts = given
    elif len(declared) > 1:
        texts = in_order(declared)
    else:
        counts = _one_spelling(counts, known | {*counts.get(roles.label or "", ())}, notes)
        if declared:
            texts = _with_other(*declared.items(), seen={t for c in counts.values() for t in c})
            if texts[0] == f"not {next(iter(declared))}":
                notes.append(f"one class occurs, {texts[1]}; the other is called '{texts[0]}'")
        else:
            texts = _implied(roles, _one_vocabulary(counts, roles))
    classes = replace(start, texts=texts)
    misspelt = () if given or declared else tuple(_misspelt(counts, texts))
    notes += misspelt
    classes = replace(classes, doubt="".join(f"; {sentence}" for sentence in misspelt))
    if len(texts) == 2 or options.positive is not None:
        # The one asked for, else that of a known word of two, or the last.
        positive: int | None
        if options.positive is None:
            positive = positive_index(texts)
        else:
            positive = classes.find(options.positive)
        if positive is None or positive < 0:
            raise UsageError(unknown("class", options.positive, texts))
        classes = replace(classes, positive=texts[positive])
    _check_models(roles, classes)
    notes += _by_place(roles, classes) if roles.mapped else []
    _refuse_strangers(seen, roles, classes)
    notes += _read_as(seen, classes)
    if roles.votes and not (roles.probabilities or roles.mapped):
        notes += _never_predicted(seen, roles, classes)
    return replace(classes, notes=tuple(notes))


def _by_place(roles: Roles, classes: Classes) -> list[str]:
    """Say of vectors without names that their numbers are taken in the order of the classes."""
    stems = [stem for columns in roles.mapped.values() if (stem := places(columns)) is not None]
    order = in_order(classes.texts, in_words=False)
    if classes.given or not stems or order == tuple(map(str, range(len(order)))):
        return []
    return [
        f"the numbers in column{'s' * (len(stems) > 1)} {listed(map(quoted, stems))} are taken in "
        f"the order of the classes ({listed(order)}); --classes says another"
    ]


def _misspelt(counts: Mapping[str, Counter[str]], classes: Collection[str]) -> Iterator[str]:
    """Rare classes that are spelled nearly like a frequent one."""
    total = sum(counts.values(), Counter[str]())
    if len(classes) > MOST_CLASSES:  # every text with every other would take long
        return
    for text in (text for text in classes if 0 < total[text] <= _TYPOS):
        others = [c for c in classes if total[c] >= _USUAL * total[text]]
        near = difflib.get_close_matches(text, others, n=1, cutoff=_ALIKE)
        if near and near[0].strip(_DIGITS) != text.strip(_DIGITS):
            where = listed(quoted(column) for column, held in counts.items() if text in held)
            times = "once" if total[text] == 1 else f"{total[text]} times"
            meaning = shlex.quote(f"{text}={near[0]}")
            yield (
                f"class {quoted(text)} occurs {times} (column {where}); if it is a misspelling of "
                f"{quoted(near[0])}, say --same {meaning}"
            )


_TYPOS, _USUAL, _ALIKE = 2, 10, 0.75
"""Limits for a misspelling: how rare it is, how many times as frequent the right form, how alike
both."""

_DIGITS = "0123456789"


def as_slips(strays: Sequence[str], classes: Sequence[str]) -> str:
    """What is to be said where labels that are no classes were written by mistake."""
    said = list[str]()
    for text in strays:
        near = difflib.get_close_matches(text, classes, n=1, cutoff=_ALMOST)
        said += ["--same", f"{text}={near[0]}"] if near else ["--no-label", text]
    one = "is a mistake" if len(strays) == 1 else "are mistakes"
    return f"if {listed(map(quoted, strays))} {one}, say {shlex.join(said)}"


_ALMOST = 0.6
"""How alike a class and its misspelling are, where no column is of the misspelling."""


def _texts_for_none(
    seen: Counts, roles: Roles, known: Collection[str], options: ColumnOptions
) -> frozenset[str]:
    """The texts, folded, for a missing label or prediction."""
    # "none" and "unknown" are classes if labels and hard predictions both contain them; but not
    # "None", as Python writes it, among classes without capitals.
    asked = {folded(text) for text in options.no_label}
    labels = {t for c, texts in seen.items() if c == roles.label for t in texts}
    others = {t for c, texts in seen.items() if c != roles.label for t in texts}
    names = {t for t in labels | others if folded(t) not in NO_LABEL | MAYBE_NO_LABEL}
    capital = any(t[:1].isupper() for t in names)
    classes = {
        folded(t) for t in labels & others
        if folded(t) in MAYBE_NO_LABEL and (t != "None" or capital)
    }  # fmt: skip
    return frozenset((NO_LABEL | MAYBE_NO_LABEL) - classes - set(known) | asked)


def _refuse_in_both(seen: Counts, roles: Roles, options: ColumnOptions) -> None:
    """Refuse a text that says "no label" where labels and predictions hold it: NA, ?, -1."""
    # Native columns mean it by contract; others may well mean a class.
    declared = {folded(text) for text in options.no_label} | set(options.same)
    labels = seen.get(roles.label or "", {})
    for column in roles.votes.values():
        if split_native(column) is not None or column not in seen:
            continue
        texts = seen[column]
        for text in sorted(set(texts) & set(labels)):
            often = texts[text] > _RARE / 2 * sum(texts.values())
            if folded(text) in NO_LABEL and text and folded(text) not in declared and often:
                mend = f"--same={text}=NAME" if text.startswith("-") else "--classes A,B,.."
                raise InputError(
                    f"{quoted(text)} stands for an unknown label, and columns "
                    f"{quoted(roles.label)} and {quoted(column)} both hold it: if it is none, say "
                    f"--no-label={text}; if it is a class, say {mend}"
                )


_BETWEEN_ANSWERS = re.compile(r"\s*[\n|]\s*")


def _refuse_several(seen: Counts, roles: Roles, options: ColumnOptions) -> None:
    """Refuse labels of which a cell holds several, each a label or prediction by itself."""
    for column, texts in seen.items():
        if re.search("[,;|]", "".join(texts)) and (mark := tags_in(texts, 2)):
            raise InputError(tags_as_tasks(column, mark, texts))
    labels = seen.get(roles.label or "", {})
    alone = {folded(text) for texts in seen.values() for text in texts}
    declared = {folded(text) for text in (*options.no_label, *options.same)}
    several = [
        text for text in labels
        if len(parts := _BETWEEN_ANSWERS.split(text)) > 1
        and alone.issuperset(map(folded, parts)) and folded(text) not in declared
    ]  # fmt: skip
    if several:
        rows = sum(labels[text] for text in several)
        shown = [folded(text) for text in several]
        left_out = shlex.join(word for text in shown for word in ("--no-label", text))
        raise InputError(
            f"column {quoted(roles.label)} holds several labels in one cell in {rows:,} rows "
            f"({listed(map(quoted, shown))}): write the right one; or leave these rows out of "
            f"the labels (if they are classes, name all classes with --classes): add {left_out}"
        )


def of_two_signs(label: str, held: Mapping[str, int], options: ColumnOptions) -> str:
    """A warning on labels of only 1 and -1, or votes of -1 among numbers, unless that is said."""
    texts = {t for t in held if folded(t) not in NO_LABEL}
    grades = label.startswith("votes.") and texts and all(t.lstrip("-").isdecimal() for t in texts)
    doubtful = {*held} - {*options.no_label, *options.same}
    if "-1" not in doubtful or not (grades or texts == {"1"}):
        return ""
    others = listed((f"{t} ({held[t]:,} rows)" for t in in_order(texts)), 3)
    return (
        f"column {quoted(label)} holds {others} and -1 ({held['-1']:,} rows), and -1 stands for an "
        "unknown label: if these rows are unlabeled, say --no-label=-1; if it is a class, name "
        "that: --same=-1=NAME"
    )


def _of_contract(doubt: str, roles: Roles, seen: Counts) -> list[str]:
    """A note on native labels of 1 and -1, by contract unlabeled, unless 0 is named elsewhere."""
    predicted = [set(seen.get(c, {})) - {""} for c in roles.votes.values()]
    native = roles.label == "label" and any(map(split_native, (*roles.text, *roles.numeric)))
    declared = len({c for by in roles.probabilities.values() for c in by}) > 1
    named = declared or any("0" in texts for texts in predicted)
    if not native or (not named and {"-1", "1"} in predicted):
        raise InputError(doubt)
    return [] if named else [doubt]


_FEW = 10
"""With fewer labels, predictions may well name classes that no label shows."""


def _refuse_strangers(seen: Counts, roles: Roles, classes: Classes) -> None:
    """Refuse hard predictions that share no class with the labels: they use other names."""
    labels = {t: rows for t, rows in seen.get(roles.label or "", {}).items() if _is(t, classes)}
    if sum(labels.values()) < _FEW or len({classes.find(t) for t in labels}) < 2:
        return
    known = {classes.find(text) for text in labels}
    for model, column in roles.votes.items():
        texts = [t for t in seen.get(column, {}) if _is(t, classes)]
        if texts and not known & {classes.find(text) for text in texts}:
            shown = in_order(classes.texts[k] for k in known if k is not None)
            if fractions_in(texts):
                said = shlex.quote(f"{model}={column}")
                raise InputError(
                    f"column {quoted(column)} holds fractions such as {quoted(max(texts))}, which "
                    f"are no classes: say --model {said} if they are probabilities, else --score "
                    f"{said}"
                )
            raise InputError(
                f"column {quoted(column)} holds {listed(map(quoted, sorted(texts)))}, none of "
                f"which is a label (column {quoted(roles.label)}: {listed(shown)}); say what means "
                f"what: --same {sorted(texts)[0]}={shown[0]}"
            )


def _is(text: str, classes: Classes) -> bool:
    index = classes.find(text)
    return index is not None and index >= 0


def _never_predicted(seen: Counts, roles: Roles, classes: Classes) -> list[str]:
    """A class of many labels that no classifier predicts: perhaps it is no class."""
    labels = seen.get(roles.label or "", {})
    total = sum(rows for t, rows in labels.items() if _is(t, classes))
    predicted = {classes.find(t) for c in roles.votes.values() for t in seen.get(c, {})}
    if total < _FEW:
        return []
    return [
        f"{quoted(text)} is {rows / total:.0%} of the labels (column {quoted(roles.label)}) and no "
        f"classifier ever says it; if it stands for an unknown label: --no-label {text!r}"
        for text, rows in labels.items()
        if _is(text, classes) and classes.find(text) not in predicted and rows > 0.3 * total
        # A word such as "incorrect" is a class; -1 or 0 may be none.
        if polarity(text) is None or not text.isalpha()
    ]


def _one_spelling(
    counts: Mapping[str, Counter[str]], known: Collection[str], notes: list[str]
) -> dict[str, Counter[str]]:
    """Merge texts that differ only in case and blanks, into the labels' most frequent one."""
    total: Counter[str] = Counter()
    for counter in counts.values():
        total.update(counter)
    alike: dict[str, list[str]] = {}
    for text in total:
        alike.setdefault(spelling(text, total), []).append(text)
    frequent = dict.fromkeys(t for c in counts.values() for t, _ in c.most_common())
    place = {text: i for i, text in enumerate(frequent)}
    chosen = dict(zip(total, total, strict=True))
    for same in (same for same in alike.values() if len(same) > 1):
        keep = next((t for t in same if t in known), min(same, key=place.__getitem__))
        for column, counter in counts.items():
            often = sorted((counter[t], t) for t in same if t in counter)[::-1]
            # What the labels write in one way alone is one class, however others write it.
            sure = polarity(keep) is not None or sum(t in known for t in same) == 1
            if len(often) > 1 and not sure and often[1][0] > _RARE * often[0][0]:
                (many, one), (some, other) = often[:2]
                raise InputError(
                    f"column {quoted(column)} has {quoted(one)} ({many:,} rows) and "
                    f"{quoted(other)} ({some:,} rows), which differ in case or blanks alone; write "
                    f"them the same way, or say that they are one: --same "
                    f"{shlex.quote(f'{other}={one}')}; if they are two classes, name all classes "
                    "with --classes"
                )
        chosen |= dict.fromkeys(same, keep)
    merged: dict[str, Counter[str]] = {column: Counter() for column in counts}
    for column, counter in counts.items():
        for text, rows in counter.items():
            merged[column][chosen[text]] += rows
    return merged


def _one_vocabulary(counts: Mapping[str, Counter[str]], roles: Roles) -> set[str]:
    """The classes that occur; where all are words for yes or no, those of one column."""
    # The labels' words, or those of the first column that has both; true/false beside 0/1 are 0/1.
    texts = {t for counter in counts.values() for t in counter}
    texts = {t.lower() if t.lower() in ("true", "false") else t for t in texts}
    if texts <= set(_BOOLEAN):
        return (
            {_BOOLEAN[t] if t in ("true", "false") else t for t in texts}
            if (texts & {"0", "1"})
            else texts
        )
    if any(polarity(t) is None for t in texts) or len(texts) < 3:
        return texts
    labels = [counter for column, counter in counts.items() if column == roles.label]
    for counter in (*labels, *counts.values()):
        if len(counter) == 2 and len({polarity(t) for t in counter}) == 2:
            return set(counter)
    return texts


def _read_as(seen: Counts, classes: Classes) -> list[str]:
    """What was read as another class than it says, or as none, by column."""
    notes = []
    for column, texts in seen.items():
        merged, none = [], []
        for text, rows in texts.items():
            index = classes.find(text)
            shown = f"{quoted(text)} ({rows:,} {'row' if rows == 1 else 'rows'})"
            if index == UNKNOWN and (text not in _EMPTY or (text and column.startswith("votes."))):
                none.append(shown)
            elif index is not None and index >= 0 and classes.texts[index] != text:
                merged.append(f"{shown} as {quoted(classes.texts[index])}")
        if merged:
            notes.append(f"column {quoted(column)}: read {listed(merged)}")
        if none:
            notes.append(
                f"column {quoted(column)}: read {listed(none)} as no label (if it is a class, name "
                "all classes with --classes)"
            )
    return notes


_EMPTY = {"", "-1", "nan", "NaN", "null", "NULL", "<NA>"}
"""Usual texts for a missing label, which need no note."""


def _with_other(declared: tuple[str, str], *, seen: Iterable[str]) -> tuple[str, ...]:
    """Two classes, of which the columns name one."""
    known, column = declared
    others = {t for t in seen if same_answer(t, [known]) is None}
    opposite = {"0": "1", "1": "0", "true": "false", "false": "true"}.get(known.lower())
    if opposite is not None and opposite.isalpha() and not known.islower():
        opposite = opposite.upper() if known.isupper() else opposite.title()
    if opposite is not None:
        others = {opposite if same_answer(t, [opposite]) else t for t in others}
    if len(others) > 1:
        raise InputError(
            f"column {quoted(column)} is of class {quoted(known)} alone, but {len(others)} other "
            f"classes occur ({listed(in_order(others))}); add a column for each"
        )
    # The other class comes first where nobody names it, so that the named one is positive.
    return in_order({known, *others}) if others else (f"not {known}", known)


def _implied(roles: Roles, occurring: set[str]) -> tuple[str, ...]:
    """Classes of a file without p and h columns, from what occurs and the names of the columns."""
    wide = {model: columns for model, columns in roles.mapped.items() if len(columns) > 1}
    for columns in wide.values():
        named = None if places(columns) else differences(columns)
        spelled = {same_answer(text, named or ()): text for text in occurring}
        if named and None not in spelled and len(spelled) == len(occurring):
            return in_order(spelled.get(name, name) for name in named)
    size = max(map(len, wide.values()), default=2)
    digits = tuple(str(k) for k in range(size))
    for pair in (digits, *_IMPLIED):
        if occurring <= set(pair) and len(pair) == size:
            return pair
    if len(occurring) == 1:
        raise InputError(
            f"one class occurs ({listed(occurring)}); at least two are needed: name them with "
            "--classes"
        )
    if wide and len(occurring) != size:
        model = max(wide, key=lambda m: len(wide[m]))
        named = (None if places(wide[model]) else differences(wide[model])) or ()
        strays = in_order(t for t in occurring if same_answer(t, named) is None)
        slips = f"{as_slips(strays, named)}, or " if 0 < len(strays) < len(named) else ""
        raise InputError(
            f"{len(occurring)} classes occur ({listed(in_order(occurring))}) but classifier "
            f"{quoted(model)} has {len(wide[model])} columns; {slips}give it one per class, or "
            "name the classes in the order of its columns with --classes"
        )
    return in_order(occurring)


def _check_models(roles: Roles, classes: Classes) -> None:
    """Every classifier, and the annotators, must have a column per class."""
    size = len(classes.texts)
    for model, by_class in roles.probabilities.items():
        lacking = [c for c in classes.texts if c not in by_class]
        if lacking and size > 2:
            raise InputError(
                f"classifier {quoted(model)} has no column for class {listed(lacking)} "
                f"(p__{model}__{lacking[0]}); the classes are {listed(classes.texts)}: every "
                "classifier needs a column for each"
            )
    for model, columns in roles.mapped.items():
        classes.columns_of(model, columns)
    if roles.scores and size > 2 and classes.doubt:
        raise InputError(
            f"scores need two classes; got {size} ({listed(classes.texts)}){classes.doubt}"
        )
    lacking = [c for c in classes.texts if c not in roles.histogram]
    if roles.histogram and lacking:
        raise InputError(
            f"no column says how many annotators chose class {listed(lacking)} "
            f"(h__{lacking[0]}); add it, with 0 where nobody did"
        )
