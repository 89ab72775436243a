"""From the long record to the columns of one criterion: a row per item, a column per judge.

People are labels, judges (models and code) are classifiers. What was left out on the way is
counted, and said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from fewlabels.checks.class_words import polarity, positive_index, same_answer
from fewlabels.data.logs.record import CODE, GOLD, MODEL, PERSON, PROBABILITY, Log, Record
from fewlabels.data.table import in_order
from fewlabels.errors import (
    InputError,
    UsageError,
    did_you_mean,
    listed,
    one_line,
    quoted,
    unknown,
)
from fewlabels.kernels.arrays import Array, Bools, Floats, Ints

People = Literal["auto", "majority", "histogram", "votes"]
Repeats = Literal["one", "all"]

PASS, FAIL = "pass", "fail"

_MOST_GRADES = 20
"""So many different numbers may be classes; more are measurements."""

_MOST_CLASSES = 100
_MOST_SHOWN, _MOST_ABOUT = 8, 4


@dataclass(frozen=True)
class LogOptions:
    """What is said of a log behind the `#` of its path: `run.eval#helpful&people=votes`.

    `criteria` are the names under which verdicts stand, several where people and judges call the
    same thing differently; None: the only one. `people` says what several labels of an item are,
    `repeats` which of an item's repeats are rows, `pass_from` from which number on a grade passes,
    `form` the format, where the content does not say it.
    """

    criteria: str | None = None
    people: People = "auto"
    repeats: Repeats = "one"
    pass_from: float | None = None
    form: str | None = None

    @classmethod
    def parse(cls, text: str | None) -> LogOptions:
        """Read what stands behind the `#`.

        Examples
        --------
        >>> LogOptions.parse("helpful&people=votes").people
        'votes'
        """
        criteria, settings = text or "", dict[str, str]()
        while match := _SETTING.fullmatch(criteria):
            criteria, settings[match[2]] = match[1], match[3]
        for name, choices in (("people", get_args(People)), ("repeats", get_args(Repeats))):
            if settings.get(name, choices[0]) not in choices:
                raise UsageError(unknown(f"--{name}", settings[name], choices))
        try:
            cut = float(settings["pass-from"]) if "pass-from" in settings else None
        except ValueError:
            raise UsageError(
                f"--pass-from must be a number; got {quoted(settings['pass-from'])}"
            ) from None
        people: Any = settings.get("people", "auto")
        repeats: Any = settings.get("repeats", "one")
        return cls(criteria or None, people, repeats, cut, settings.get("format"))

    def under(self, criterion: str) -> str:
        """What stands behind the `#` for one criterion, with the same settings."""
        settings = {
            "people": None if self.people == "auto" else self.people,
            "repeats": None if self.repeats == "one" else self.repeats,
            "pass-from": self.pass_from,
            "format": self.form,
        }
        texts = [f"{name}={value}" for name, value in settings.items() if value is not None]
        return "&".join([criterion, *texts])


_SETTING = re.compile(r"(.*?)(?:&|(?<![^&]))(people|repeats|pass-from|format)=([^&]*)", re.DOTALL)


@dataclass(frozen=True)
class Columns:
    """Columns of one length; `notes` are warnings, `lines` say what was taken for what."""

    columns: dict[str, pa.ChunkedArray]
    n_rows: int
    notes: tuple[str, ...]
    lines: tuple[str, ...]


def columns_of(record: Record, log: Log, options: LogOptions) -> Columns:
    """The columns of one criterion: item, label, y__, s__ or p__ of each judge, texts."""
    notes = log.notes()
    if not record.size:
        raise InputError(
            f"is a log of {log.tool} without a single score"
            + (f" ({listed(notes)})" if notes else "")
            + ": score it first, or name another file"
        )
    chosen, lines = _chosen(record, options)
    notes += _corrections(log, chosen)
    record = _kept(record.of_criteria(chosen), notes)
    if options.pass_from is not None:
        record = _cut(record, options.pass_from)
    record = _one_of_each_cluster(record, options.repeats, notes)
    judges, gold = record.of_kind(MODEL, CODE), record.of_kind(GOLD)
    # What is marked as the truth is the label, and what people answered beside it are votes.
    marked = options.people == "auto" and gold.size > 0
    people = _last_of_each(gold if marked else record.of_kind(PERSON, GOLD), notes)
    voters = _last_of_each(record.of_kind(PERSON), notes) if marked else people
    classes = _classes(people, judges)
    items, row_of = _rows(record)
    columns: dict[str, Any] = {"item": [record.item.texts[i] for i in items.tolist()]}
    labels, line = _labels(people, row_of, len(items), options.people, notes)
    columns |= labels
    columns |= _judges(judges, row_of, len(items), classes, chosen, notes)
    notes += _repeats_labels(columns)
    if marked or options.people == "votes":
        taken = [c.removeprefix("y__") for c in columns]
        columns |= _votes(voters, row_of, len(items), taken)
    lines += [line, _who("judges", judges)] if judges.size else [line]
    if marked and voters.size:
        line = _who("people beside the ground truth, each a classifier", voters)
        lines.append(f"{line} (--people majority: all are labels)")
    for column, texts in log.texts.items():
        name = column if column not in columns else f"{column} text"
        columns[name] = [texts.get(item) for item in columns["item"]]
    made = {name: _arrow(values) for name, values in columns.items()}
    about = list(dict.fromkeys(log.about))
    if len(about) > _MOST_ABOUT:
        about = [*about[:_MOST_ABOUT], f"and {len(about) - _MOST_ABOUT:,} more logs"]
    lines = [*about, *lines]
    return Columns(made, len(items), tuple(dict.fromkeys(notes)), tuple(lines))


def _arrow(values: Any) -> pa.ChunkedArray:
    kind = None if isinstance(values, np.ndarray) and values.dtype != object else pa.string()
    return pa.chunked_array([pa.array(values, kind, from_pandas=True)])


# Which criterion ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Criterion:
    """What a log holds under one criterion."""

    name: str
    n_items: int
    n_labeled: int
    judges: tuple[str, ...]

    def __str__(self) -> str:
        what = [f"{self.n_labeled:,} labeled by people"] if self.n_labeled else []
        what += [f"judges {listed(self.judges, 3)}"] if self.judges else []
        return f"{quoted(self.name)} ({', '.join(what)})"


def criteria_of(record: Record) -> list[Criterion]:
    """What there is under each criterion, in the order of the log."""
    out = []
    scored = (record.value.codes >= 0) | ~np.isnan(record.score)
    person = np.isin(
        record.kind.codes, [i for i, kind in enumerate(record.kind.texts) if kind in (PERSON, GOLD)]
    )
    order = np.argsort(record.criterion.codes, kind="stable")
    bounds = np.searchsorted(
        record.criterion.codes[order], np.arange(len(record.criterion.texts) + 1)
    )
    for code, name in enumerate(record.criterion.texts):
        rows = order[bounds[code] : bounds[code + 1]]
        rows = rows[scored[rows]]
        if not len(rows):
            continue
        items = record.item.codes[rows]
        authors = np.unique(record.author.codes[rows[~person[rows]]])
        judges = tuple(record.author.texts[a] if a >= 0 else "judge" for a in authors.tolist())
        out.append(
            Criterion(name, len(np.unique(items)), len(np.unique(items[person[rows]])), judges)
        )
    return out


def _chosen(record: Record, options: LogOptions) -> tuple[tuple[str, ...], list[str]]:
    """The criteria that are meant, and lines on those that are not."""
    known = criteria_of(record)
    names = [one.name for one in known]
    if options.criteria is not None:
        whole = options.criteria in names
        parts = [options.criteria] if whole else [p.strip() for p in options.criteria.split(",")]
        for name in parts:
            if name not in names:
                raise InputError(
                    f"unknown criterion {quoted(name)}; {did_you_mean(name, names)}choose from "
                    f"{listed(map(quoted, names), 60)}"
                )
        return tuple(dict.fromkeys(parts)), [f"criterion: {listed(map(quoted, parts))}"]
    both = [one for one in known if one.n_labeled and one.judges]
    alone = both or known
    first = alone[0].name
    # The same answers by several filters: those of the first, which has the name of the task.
    if len(alone) == 1 or all(one.name.startswith(f"{first}, filter ") for one in alone[1:]):
        others = [one for one in known if one is not alone[0]]
        line = f"criterion: {quoted(alone[0].name)}"
        if others:
            line += f"; not looked at: {listed(map(str, others), 3)} (--criterion)"
        return (alone[0].name,), [line]
    labeled = [one for one in known if one.n_labeled]
    judged = [one for one in known if one.judges]
    if not both and len(labeled) == len(judged) == 1:
        pair = (labeled[0].name, judged[0].name)
        return pair, [
            f"criterion: people's {quoted(pair[0])} beside the judges' {quoted(pair[1])}, the only "
            "ones there are"
        ]
    shown = ", ".join(one_line(str(one), 160) for one in alone[:_MOST_SHOWN])
    shown += f" and {len(alone) - _MOST_SHOWN:,} more" * (len(alone) > _MOST_SHOWN)
    name = alone[0].name
    together = ""
    if not both and labeled:
        together = (
            "; people and judges have no criterion in common: name theirs together, as "
            f"--criterion {quoted(f'{labeled[0].name},{judged[0].name}' if judged else name)}"
        )
    elif not labeled:
        together = "; no person has labeled anything: add labels with --labels FILE"
    raise InputError(
        f"has {len(alone)} criteria: {shown}: choose one with --criterion {quoted(name)} "
        f"(in Python FILE#{name}){together}"
    )


def _corrections(log: Log, chosen: Sequence[str]) -> list[str]:
    """What to say of labels that are people's corrections of a judge's own verdicts.

    Where most of them changed the verdict, people did not look at a random sample.
    """
    out = []
    for name in dict.fromkeys(name.partition("/")[0] for name in chosen):
        changed, confirmed = (log.corrected[f"{what} {name}"] for what in ("change", "confirm"))
        if not changed + confirmed:
            continue
        line = (
            f"labels under {quoted(name)} are people's corrections of verdicts that they saw "
            f"({changed:,} changed, {confirmed:,} confirmed); the judge is judged by what it said "
            "before"
        )
        if changed > confirmed:
            line += (
                ": people seem to have corrected what they found wrong and left the rest, so that "
                "the labels are no random sample and the judge looks far worse than it is; confirm "
                "the verdicts of a random sample as well"
            )
        out.append(line)
    return out


_LEAST_ALIKE = 20
"""So many labels and no verdict beside them that differs is worth a word."""


def _repeats_labels(columns: Mapping[str, Any]) -> list[str]:
    """Judges that say what the labels say on every labeled item: perhaps the labels themselves."""
    label = columns.get("label")
    if label is None:
        return []
    out = []
    for name, verdict in columns.items():
        if not name.startswith("y__"):
            continue
        pairs = [(a, b) for a, b in zip(label, verdict, strict=True) if a and b]
        if len(pairs) >= _LEAST_ALIKE and all(same_answer(b, [a]) for a, b in set(pairs)):
            out.append(
                f"judge {quoted(name.removeprefix('y__'))} says what the labels say on all "
                f"{len(pairs):,} labeled items: see whether its verdicts were overwritten by them"
            )
    return out


# What counts --------------------------------------------------------------------------------------


def _kept(record: Record, notes: list[str]) -> Record:
    """The verdicts that say something; the others are counted."""
    empty = (record.value.codes < 0) & np.isnan(record.score)
    for kind, who in (
        (PERSON, "labels of people"),
        (GOLD, "labels of the ground truth"),
        (MODEL, "verdicts"),
        (CODE, "verdicts of code"),
    ):
        size = int(empty.sum()) and int(record.take(empty).of_kind(kind).size)
        if size:
            notes.append(f"{size:,} {who} are empty, NaN or long texts (unscored) and are left out")
    if empty.all():
        raise InputError("holds nothing but empty scores under this criterion; score it first")
    return record.take(~empty) if empty.any() else record


def _cut(record: Record, cut: float) -> Record:
    """The same verdicts as pass or fail, where they have numbers."""
    texts = (*record.value.texts, PASS, FAIL)
    passed = np.where(record.score >= cut, len(texts) - 2, len(texts) - 1)
    codes = np.where(np.isnan(record.score), record.value.codes, passed)
    names = replace(record.value, codes=codes, texts=texts)
    return replace(record, value=names, score=np.full(record.size, np.nan))


def _one_of_each_cluster(record: Record, repeats: Repeats, notes: list[str]) -> Record:
    """One item of each cluster: the first that a person labeled, else the first.

    Repeats of one item (epochs) are no independent items, whose intervals would be too narrow; and
    one of them, judged as it is, is right about verdicts on single answers, as a share of verdicts
    beside one of the labels is not.
    """
    if (record.cluster.codes < 0).all():
        return record
    person = np.array([kind in (PERSON, GOLD) for kind in record.kind.texts])[record.kind.codes]
    # What is no repeat is a cluster of its own.
    own = np.where(record.cluster.codes < 0, record.item.codes, -1)
    cluster = np.where(own < 0, record.cluster.codes, own + len(record.cluster.texts))
    first = np.lexsort([np.arange(record.size), ~person, cluster])
    _, start = np.unique(cluster[first], return_index=True)
    chosen = np.unique(record.item.codes[first[start]])
    size, there = len(np.unique(record.item.codes)), len(chosen)
    if size == there:
        return record
    if repeats == "all":
        notes.append(
            f"{size:,} repeats of {there:,} items count as items each (--repeats all), which they "
            "are not: intervals are too narrow"
        )
        return record
    kept = np.isin(record.item.codes, chosen)
    lost = len(np.unique(record.item.codes[~kept & person]))
    notes.append(
        f"{there:,} items were repeated (epochs): one repeat of each is a row, a labeled one where "
        f"there is one; {size - there:,} repeats are left out"
        + (f", {lost:,} of them labeled" if lost else "")
        + " (--repeats all takes each for an item)"
    )
    return record.take(kept)


def _last_of_each(people: Record, notes: list[str]) -> Record:
    """What each person said last of each item."""
    key = people.item.codes * (len(people.author.texts) + 1) + people.author.codes
    order = np.lexsort([people.order, key])
    last = np.ones(len(order), dtype=bool)
    last[:-1] = key[order][1:] != key[order][:-1]
    # Said again is nothing new.
    value = people.value.codes[order]
    changed = int((~last[:-1] & (value[1:] != value[:-1])).sum()) if len(order) else 0
    if changed:
        notes.append(
            f"{changed:,} labels were changed by the same person later; the last one counts"
        )
    return people.take(np.sort(order[last]))


def _rows(record: Record) -> tuple[Ints, Ints]:
    """Codes of the items (n,) by their first appearance, and the row of each code."""
    distinct, first = np.unique(record.item.codes, return_index=True)
    items = distinct[np.argsort(first)]
    row_of = np.full(len(record.item.texts), -1)
    row_of[items] = np.arange(len(items))
    return items, row_of


# Classes, labels, judges --------------------------------------------------------------------------


def _classes(people: Record, judges: Record) -> tuple[str, ...]:
    """What people say; where nobody does, what judges say in words."""
    if people.size:
        texts = _texts(people)
        numbers = np.unique(people.score[~np.isnan(people.score)])
        measured = len(numbers) > _MOST_GRADES or len(texts) > _MOST_CLASSES
        few = len(numbers) > 2 and (numbers != np.round(2 * numbers) / 2).any()
        if len(numbers) and (measured or few):
            raise InputError(
                f"people's labels are numbers such as {numbers[len(numbers) // 2]:.4g} and no "
                f"classes: say from where on they pass with --pass-from {np.median(numbers):.4g}"
            )
        if measured:
            raise InputError(
                f"people say {len(texts):,} different things, such as {quoted(texts[0], 60)}, "
                "which are texts and no classes: choose another criterion"
            )
        return texts
    return _texts(judges.take(np.isnan(judges.score)))


def _texts(record: Record) -> tuple[str, ...]:
    codes = np.unique(record.value.codes)
    return in_order([record.value.texts[code] for code in codes[codes >= 0].tolist()])


_Columns = dict[str, Any]


def _labels(
    people: Record, row_of: Ints, n: int, how: People, notes: list[str]
) -> tuple[_Columns, str]:
    """Columns of what people say, and a line on it."""
    if not people.size:
        return {}, "labels: none; no person has said anything"
    if how == "votes":
        return {}, _who("people, each a classifier (--people votes)", people)
    counts, texts = _counts(people, row_of, n)
    several = (counts > 0).sum(axis=1) > 1
    line = f"{_who('labels', people)}, of {int(counts.any(axis=1).sum()):,} items"
    if how == "histogram" or (how == "auto" and several.any()):
        if several.any():
            line += f"; they differ on {int(several.sum()):,}"
        columns = {f"h__{text}": counts[:, k].astype(float) for k, text in enumerate(texts)}
        return columns, line
    top = counts.max(axis=1)
    tied = ((counts == top[:, None]).sum(axis=1) > 1) & (top > 0)
    if several.any():
        notes.append(
            f"people differ on {int(several.sum()):,} items: what most say is the label"
            + (f", and {int(tied.sum()):,} ties are left unlabeled" if tied.any() else "")
        )
    label = np.array([*texts, None], dtype=object)
    chosen = np.where((top > 0) & ~tied, counts.argmax(axis=1), len(texts))
    return {"label": label[chosen]}, line


def _counts(record: Record, row_of: Ints, n: int) -> tuple[Ints, tuple[str, ...]]:
    """How often each class was said of each row (n, C), and the classes."""
    texts = _texts(record)
    place = np.full(len(record.value.texts) + 1, -1)
    for k, text in enumerate(texts):
        place[record.value.texts.index(text)] = k
    code = place[record.value.codes]
    counts = np.zeros((n, len(texts)), dtype=np.int64)
    there = code >= 0
    np.add.at(counts, (row_of[record.item.codes[there]], code[there]), 1)
    return counts, texts


def _votes(people: Record, row_of: Ints, n: int, taken: Sequence[str]) -> _Columns:
    """A column of votes per person."""
    out: _Columns = {}
    for name, rows in _by_author(people, ("",), taken):
        votes = people.take(rows)
        texts = np.array([*votes.value.texts, None], dtype=object)
        column = np.full(n, None, dtype=object)
        column[row_of[votes.item.codes]] = texts[votes.value.codes]
        out[f"y__{name}"] = column
    return out


def _judges(
    judges: Record, row_of: Ints, n: int, classes: Sequence[str], chosen: Sequence[str],
    notes: list[str],
) -> _Columns:  # fmt: skip
    """Columns of every judge: words are hard predictions, numbers probabilities or scores."""
    out: _Columns = {}
    for name, rows in _by_author(judges, chosen, ()):
        out |= _judge(name, judges.take(rows), row_of, n, classes, notes)
    return out


def _by_author(
    record: Record, criteria: Sequence[str], taken: Sequence[str]
) -> list[tuple[str, Ints]]:
    """Every author under every criterion: a name that no other has, and its rows."""
    width = len(record.author.texts) + 1
    key = record.criterion.codes * width + record.author.codes + 1
    order = np.argsort(key, kind="stable")
    distinct, start = np.unique(key[order], return_index=True)
    first = [order[s] for s in start]
    found: list[tuple[str, Ints]] = []
    names = set(taken)
    authors = np.bincount(distinct % width, minlength=width)
    pieces = np.split(order, start[1:]) if len(start) else []
    for row, rows in sorted(zip(first, pieces, strict=True), key=lambda pair: pair[0]):
        code, criterion = (
            record.author.codes[row],
            record.criterion.texts[record.criterion.codes[row]],
        )
        author = (
            record.author.texts[code] if code >= 0 else record.kind.texts[record.kind.codes[row]]
        )
        if len(criteria) > 1 and authors[code + 1] > 1 and author != criterion:
            author = f"{author} ({criterion})"
        while author in names:
            author += "'"
        names.add(author)
        found.append((author, np.sort(rows)))
    return found


def _judge(
    name: str, judge: Record, row_of: Ints, n: int, classes: Sequence[str], notes: list[str]
) -> _Columns:
    """Columns of one judge: y__ of words and grades, p__ of shares, else s__."""
    texts = judge.value.texts
    numbers = np.array([*map(_is_number, texts), True])[judge.value.codes]
    if texts and judge.value.codes.min() >= 0 and _texts(judge)[0].startswith(PROBABILITY):
        return _shares(name, judge, row_of, n)
    own = set(_texts(judge))
    if numbers.all() and not _are_grades(own, classes):
        score = _mean(row_of[judge.item.codes], judge.score, n)
        given = score[~np.isnan(score)]
        if len(classes) > 2:
            raise InputError(
                f"judge {quoted(name)} gives numbers such as {given[0]:.4g}, and people the "
                f"classes {listed(map(quoted, classes), 6)}: say from where on a number passes "
                "with --pass-from X, for both"
            )
        if given.min() >= 0 and given.max() <= 1:
            positive = classes[positive_index(list(classes))] if len(classes) == 2 else PASS
            return {f"p__{name}__{positive}": score}
        return {f"s__{name}": score}
    # Words decide; a score beside them says the same again.
    known = numbers & ~np.isin(judge.value.codes, [texts.index(t) for t in own & {*classes}])
    strange = known & (judge.value.codes >= 0) if not numbers.all() else np.zeros(judge.size, bool)
    unworded = judge.value.codes < 0
    dropped = int((strange | unworded).sum())
    if dropped:
        notes.append(f"{dropped:,} verdicts of {quoted(name)} are numbers among words: left out")
    return _hard(name, judge.take(~(strange | unworded)), row_of, n, notes)


def _are_grades(own: set[str], classes: Sequence[str]) -> bool:
    """Whether numbers are classes: those of people, 0 and 1 for yes and no, or a few whole ones."""
    if own and own <= set(classes):
        return True
    if own and own <= {"0", "1"} and len(classes) <= 2:
        return all(polarity(c) is not None for c in classes)
    return not classes and 1 < len(own) <= _MOST_GRADES and all(_WHOLE.fullmatch(t) for t in own)


_WHOLE = re.compile(r"-?\d+")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _shares(name: str, judge: Record, row_of: Ints, n: int) -> _Columns:
    """Probabilities that the log holds, a row per class; a class that an item lacks has none."""
    texts = _texts(judge)
    block = np.full((n, len(texts)), np.nan)
    row = row_of[judge.item.codes]
    block[np.unique(row)] = 0.0
    for k, text in enumerate(texts):
        own = judge.value.codes == judge.value.texts.index(text)
        block[row[own], k] = judge.score[own]
    return {f"p__{name}__{t.removeprefix(PROBABILITY)}": block[:, k] for k, t in enumerate(texts)}


def _hard(name: str, judge: Record, row_of: Ints, n: int, notes: list[str]) -> _Columns:
    """Hard predictions; shares of a judge that says several things of one item."""
    counts, texts = _counts(judge, row_of, n)
    several = (counts > 0).sum(axis=1) > 1
    if not several.any() or len(texts) > _MOST_CLASSES:
        label = np.array([*texts, None], dtype=object)
        chosen = np.where(counts.any(axis=1), counts.argmax(axis=1), len(texts))
        return {f"y__{name}": label[chosen]}
    total = counts.sum(axis=1)
    share = np.where(total[:, None] > 0, counts / np.maximum(total, 1)[:, None], np.nan)
    notes.append(
        f"judge {quoted(name)} judged {int((total > 1).sum()):,} items repeatedly, and not always "
        "alike: the shares of its verdicts are its probabilities"
    )
    return {f"p__{name}__{text}": share[:, k] for k, text in enumerate(texts)}


def _mean(row: Ints, score: Floats, n: int) -> Floats:
    """Mean score of each row, (n,); NaN where there is none."""
    there: Bools = ~np.isnan(score)
    total = np.bincount(row[there], score[there], minlength=n)
    size = np.bincount(row[there], minlength=n)
    out: Array = np.full(n, np.nan)
    np.divide(total, size, out=out, where=size > 0)
    return out


def _who(what: str, record: Record) -> str:
    codes = np.unique(record.author.codes)
    names = [record.author.texts[c] for c in codes.tolist() if c >= 0]
    return f"{what}: {listed(names, 4)}" if names else f"{what}: of people without names"
