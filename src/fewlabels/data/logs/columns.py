"""From the long record to the columns of one criterion: people are labels, judges classifiers."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from fewlabels.checks.class_words import polarity, positive_index, same_answer
from fewlabels.data.logs.record import CODE, GOLD, MODEL, PERSON, PROBABILITY, Log, Record
from fewlabels.data.profiles import names_truth
from fewlabels.data.table import Held, Table, in_order, number_of
from fewlabels.errors import InputError, UsageError, did_you_mean, listed, one_line, quoted, unknown
from fewlabels.kernels.arrays import Array, Floats, Ints

People = Literal["auto", "majority", "histogram", "votes"]
Repeats = Literal["one", "all"]
_Columns = dict[str, Any]

PASS, FAIL = "pass", "fail"

_MOST_GRADES = 20
"""So many different numbers may be classes; more are measurements."""

_MOST_CLASSES = 100
_MOST_SHOWN, _MOST_ABOUT = 8, 4

_LEAST_ALIKE = 20
"""So many labels and no verdict beside them that differs is worth a word."""

_WHOLE = re.compile(r"-?\d+")


@dataclass(frozen=True)
class LogOptions:
    """What is said of a log behind the `#` of its path: `run.eval#helpful&people=votes`.

    `criteria` are the names under which verdicts stand (None: the only one), `people` says what
    several labels of an item are, `repeats` which repeats are rows, `pass_from` from where on a
    grade passes.
    """

    criteria: str | None = None
    people: People = "auto"
    repeats: Repeats = "one"
    pass_from: float | None = None
    form: str | None = None

    @classmethod
    def parse(cls, text: str | None) -> LogOptions:
        """Read what stands behind the `#`."""
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
        said: dict[str, Any] = {n: settings[n] for n in ("people", "repeats") if n in settings}
        return cls(criteria or None, pass_from=cut, form=settings.get("format"), **said)

    def under(self, criterion: str) -> str:
        """What stands behind the `#` for one criterion, with the same settings."""
        settings = {
            "people": self.people, "repeats": self.repeats, "pass-from": self.pass_from,
            "format": self.form,
        }  # fmt: skip
        said = {n: v for n, v in settings.items() if v not in (None, "auto", "one")}
        return "&".join([criterion, *(f"{name}={value}" for name, value in said.items())])


_SETTING = re.compile(r"(.*?)(?:&|(?<![^&]))(people|repeats|pass-from|format)=([^&]*)", re.DOTALL)


def called(log: Held, label: str | None, classifiers: Collection[str]) -> Held:
    """A log as a source, where the caller says which columns are labels and classifiers."""
    names = {name: name for name in log.names}
    if label is not None and label not in names and f"y__{label}" in names:
        names = {label if name == f"y__{label}" else name: name for name in names}
    drop = {f"{kind}__{name}" for name in classifiers for kind in "yps"}
    if label is not None and label != "label" and label in names:
        drop.add("label")
    kept = {n: c for n, c in names.items() if drop.isdisjoint((n, n.rpartition("__")[0]))}
    lines, pieces = log.lines, log.table.pieces
    if label is not None and label in kept:
        lines = tuple(line for line in lines if not line.startswith("labels: "))
        lines += (f"labels: {label} (--label)",)
    table = replace(log.table, names=tuple(kept), pieces=lambda name: pieces(kept[name]))
    return Held(log.name, table, lines)


def columns_of(record: Record, log: Log, options: LogOptions) -> Held:
    """The columns of one criterion: item, label, y__, s__ or p__ of each judge, texts."""
    notes = log.notes()
    if not record.size:
        raise InputError(
            f"is a log of {log.tool} without a single score"
            + (f" ({listed(notes)})" if notes else "")
            + ": score it first, or name another file"
        )
    chosen, lines = _chosen(record, options, log.name)
    notes += _corrections(log, chosen)
    codes = [record.criterion.texts.index(name) for name in chosen]
    record = _kept(record.take(np.isin(record.criterion.codes, codes)), notes)
    if options.pass_from is not None:
        record = _cut(record, options.pass_from)
    record = _one_of_each_cluster(record, options.repeats, notes)
    judges, gold = record.of_kind(MODEL, CODE), record.of_kind(GOLD)
    # What is marked as the truth is the label, and what people answered beside it are votes.
    marked = options.people == "auto" and gold.size > 0
    people = _last_of_each(gold if marked else record.of_kind(PERSON, GOLD), notes)
    voters = _last_of_each(record.of_kind(PERSON), notes) if marked else people
    classes = _classes(people, judges)
    distinct, first = np.unique(record.item.codes, return_index=True)
    items = distinct[np.argsort(first)]
    rows = _Rows(np.full(len(record.item.texts), -1), len(items))
    rows.of_item[items] = np.arange(len(items))
    columns: _Columns = {"item": [record.item.texts[i] for i in items.tolist()]}
    labels, line = _labels(people, rows, options.people, notes)
    columns |= labels
    for name, judge in _by_author(judges, chosen, set()):
        columns |= _judge(name, judge, rows, classes, notes)
    notes += _nothing_tells(columns, people, judges, classes, log.name)
    notes += _repeats_labels(columns)
    if marked or options.people == "votes":
        taken = {name.removeprefix("y__") for name in columns}
        for name, voter in _by_author(voters, (), taken):
            columns |= _hard(name, voter, rows, notes)
    lines += [line, _who("judges", judges)] if judges.size else [line]
    if not judges.size and not marked and options.people != "votes":
        notes.append(
            "people alone say what the items are: --people votes takes each of them for a "
            "classifier, and --label NAME beside it one of them for the truth"
        )
    if marked and voters.size:
        line = _who("people beside the ground truth, each a classifier", voters)
        lines.append(f"{line} (--people majority: all are labels)")
    for column, texts in log.texts.items():
        name = column if column not in columns else f"{column} text"
        columns[name] = [texts.get(item) for item in columns["item"]]
    about = list(dict.fromkeys(log.about))
    if len(about) > _MOST_ABOUT:
        about = [*about[:_MOST_ABOUT], f"and {len(about) - _MOST_ABOUT:,} more logs"]
    made = {name: _arrow(values) for name, values in columns.items()}
    called_items = columns["item"]
    table = Table.of(
        made, len(items), lambda row: f"item {quoted(called_items[row])}", dict.fromkeys(notes)
    )
    return Held(log.name, table, (*about, *lines))


def _typed(name: str) -> str:
    """A log as a command has it; what was piped in has no name."""
    path = name.partition("#")[0]
    return shlex.quote(path) if Path(path).exists() else "FILE"


def _arrow(values: Any) -> pa.ChunkedArray:
    kind = None if isinstance(values, np.ndarray) and values.dtype != object else pa.string()
    return pa.chunked_array([pa.array(values, kind, from_pandas=True)])


@dataclass(frozen=True)
class Criterion:
    """What a log holds under one criterion."""

    name: str
    n_labeled: int
    judges: tuple[str, ...]

    def __str__(self) -> str:
        what = [f"{self.n_labeled:,} labeled by people"] if self.n_labeled else []
        what += [f"judges {listed(self.judges, 3)}"] if self.judges else []
        return f"{quoted(self.name)} ({', '.join(what)})"


def criteria_of(record: Record) -> list[Criterion]:
    """What there is under each criterion, in the order of the log."""
    out = []
    scored = record.take((record.value.codes >= 0) | ~np.isnan(record.score))
    order = np.argsort(scored.criterion.codes, kind="stable")
    bounds = np.searchsorted(
        scored.criterion.codes[order], np.arange(len(record.criterion.texts) + 1)
    )
    for code, name in enumerate(record.criterion.texts):
        under = scored.take(order[bounds[code] : bounds[code + 1]])
        if not under.size:
            continue
        judges = under.of_kind(MODEL, CODE)
        authors = np.unique(judges.author.codes).tolist()
        names = tuple(judges.author.texts[a] if a >= 0 else "judge" for a in authors)
        labeled = len(np.unique(under.of_kind(PERSON, GOLD).item.codes))
        out.append(Criterion(name, labeled, names))
    return out


def _chosen(record: Record, options: LogOptions, file: str) -> tuple[tuple[str, ...], list[str]]:
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
    if all(one.name.startswith(f"{first}, filter ") for one in alone[1:]):
        others = [one for one in known if one is not alone[0]]
        line = f"criterion: {quoted(first)}"
        if others:
            line += f"; not looked at: {listed(map(str, others), 3)} (--criterion)"
        return (first,), [line]
    labeled = [one.name for one in known if one.n_labeled]
    judged = [one for one in known if one.judges]
    if not both and len(labeled) == len(judged) == 1:
        line = (
            f"criterion: people's {quoted(labeled[0])} beside the judges' {quoted(judged[0].name)}"
        )
        return (labeled[0], judged[0].name), [f"{line}, the only ones there are"]
    shown = ", ".join(one_line(str(one), 160) for one in alone[:_MOST_SHOWN])
    shown += f" and {len(alone) - _MOST_SHOWN:,} more" * (len(alone) > _MOST_SHOWN)
    command = f"fewlabels estimate {_typed(file)} --criterion"
    mend = (
        f"choose one with --criterion, as {command} {shlex.quote(first)} (in Python FILE#{first})"
    )
    truth = [one for one in judged if names_truth(one.name) and one.judges == (one.name,)]
    if not both and labeled and judged:
        pair = shlex.quote(f"{labeled[0]},{judged[0].name}")
        mend = (
            f"people and judges have no criterion in common: name theirs together: {command} {pair}"
        )
    elif not labeled and len(truth) == 1 and len(judged) > 1:
        every = ",".join([truth[0].name, *(one.name for one in judged if one is not truth[0])])
        mend += (
            f"; no person has labeled anything, unless {quoted(truth[0].name)} is what people say: "
            f"{command} {shlex.quote(every)} --label {shlex.quote(truth[0].name)}"
        )
    elif not labeled:
        mend += "; no person has labeled anything: add labels with --labels FILE"
    raise InputError(f"has {len(alone)} criteria: {shown}: {mend}")


def _corrections(log: Log, chosen: Sequence[str]) -> list[str]:
    """What to say of labels that are people's corrections of a judge's own verdicts."""
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
                ": people seem to have corrected what they found wrong and left the rest; so the "
                "labels are no random sample, and the judge looks far worse than it is; confirm "
                "the verdicts of a random sample as well"
            )
        out.append(line)
    return out


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


def _nothing_tells(
    columns: _Columns, people: Record, judges: Record, classes: Sequence[str], file: str
) -> list[str]:
    """What to say where no label stands beside a verdict."""
    names = [judges.author.texts[a] for a in np.unique(judges.author.codes).tolist() if a >= 0]
    both = np.intersect1d(people.item.codes, judges.item.codes)
    if people.size and judges.size and not len(both):
        return [
            f"no item has both a label and a verdict ({listed(map(quoted, names), 3)}), so nothing "
            "here tells how often the verdicts are right: have people label some of those items"
        ]
    own = [name for name in columns if name[:3] in ("y__", "p__")]
    if people.size or len(own) != 1:
        return []
    share, positive = columns[own[0]], own[0].rpartition("__")[2]
    if own[0].startswith("y__"):
        if len(classes) != 2:
            return []
        positive = classes[positive_index(list(classes))]
        share = np.array([None if v is None else v == positive for v in share], dtype=np.float64)
    file = _typed(file)
    return [
        "the log has one judge and no label of a person: nothing in it tells how often it is "
        f"right; its own share of {quoted(positive)} is {np.nanmean(share):.3f}. `fewlabels label "
        f"{file}` makes labels, and "
        f"`fewlabels score {file} --labels {file}.labels.jsonl` corrects that share by them"
    ]


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
    """One item of each cluster, as repeats are no items: the first labeled, else the first."""
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
    texts = _texts(judges.take(np.isnan(judges.score)))
    # Several words for yes and no say nothing against 1 and 0.
    return () if len(texts) > 2 and all(polarity(t) is not None for t in texts) else texts


def _texts(record: Record) -> tuple[str, ...]:
    codes = np.unique(record.value.codes)
    return in_order([record.value.texts[code] for code in codes[codes >= 0].tolist()])


@dataclass(frozen=True)
class _Rows:
    """The row of each code of an item, -1 where it has none, and how many rows there are."""

    of_item: Ints
    n: int

    def counts(self, record: Record) -> tuple[Ints, tuple[str, ...]]:
        """How often each class was said of each row (n, C), and the classes."""
        texts = _texts(record)
        place = np.full(len(record.value.texts) + 1, -1)
        place[[record.value.texts.index(text) for text in texts]] = np.arange(len(texts))
        code = place[record.value.codes]
        counts = np.zeros((self.n, len(texts)), dtype=np.int64)
        there = code >= 0
        np.add.at(counts, (self.of_item[record.item.codes[there]], code[there]), 1)
        return counts, texts


def _labels(people: Record, rows: _Rows, how: People, notes: list[str]) -> tuple[_Columns, str]:
    """Columns of what people say, and a line on it."""
    if not people.size:
        return {}, "labels: none; no person has said anything"
    if how == "votes":
        return {}, _who("people, each a classifier (--people votes)", people)
    counts, texts = rows.counts(people)
    differ = int(((counts > 0).sum(axis=1) > 1).sum())
    line = f"{_who('labels', people)}, of {int(counts.any(axis=1).sum()):,} items"
    if how == "histogram" or (how == "auto" and differ):
        line += f"; they differ on {differ:,}" if differ else ""
        return {f"h__{text}": counts[:, k].astype(float) for k, text in enumerate(texts)}, line
    most = counts.max(axis=1)
    tied = ((counts == most[:, None]).sum(axis=1) > 1) & (most > 0)
    if differ:
        notes.append(
            f"people differ on {differ:,} items: what most say is the label"
            + (f", and {int(tied.sum()):,} ties are left unlabeled" if tied.any() else "")
        )
    counts[tied] = 0
    return {"label": _most(counts, texts)}, line


def _most(counts: Ints, texts: Sequence[str]) -> Array:
    """What was said most of each row, (n,); None where nothing was."""
    chosen = np.where(counts.any(axis=1), counts.argmax(axis=1), len(texts))
    return np.array([*texts, None], dtype=object)[chosen]


def _by_author(
    record: Record, criteria: Sequence[str], names: set[str]
) -> Iterator[tuple[str, Record]]:
    """Every author under every criterion, as met: a name that no other has, and the verdicts."""
    width = len(record.author.texts) + 1
    key = record.criterion.codes * width + record.author.codes + 1
    order = np.argsort(key, kind="stable")
    distinct, start = np.unique(key[order], return_index=True)
    authors = np.bincount(distinct % width, minlength=width)
    pieces = np.split(order, start[1:]) if len(start) else []
    for rows in sorted(pieces, key=lambda piece: piece[0]):
        code = record.author.codes[rows[0]]
        criterion = record.criterion.texts[record.criterion.codes[rows[0]]]
        kind = record.kind.texts[record.kind.codes[rows[0]]]
        author = record.author.texts[code] if code >= 0 else kind
        if len(criteria) > 1 and authors[code + 1] > 1 and author != criterion:
            author = f"{author} ({criterion})"
        while author in names:
            author += "'"
        names.add(author)
        yield author, record.take(np.sort(rows))


def _judge(
    name: str, judge: Record, rows: _Rows, classes: Sequence[str], notes: list[str]
) -> _Columns:
    """Columns of one judge: y__ of words and grades, p__ of shares, else s__."""
    texts, own = judge.value.texts, _texts(judge)
    numbers = np.array([*(not math.isnan(number_of(t)) for t in texts), True])[judge.value.codes]
    row = rows.of_item[judge.item.codes]
    if own and judge.value.codes.min() >= 0 and own[0].startswith(PROBABILITY):
        # A row per class; a class that an item lacks has none.
        block = np.full((rows.n, len(own)), np.nan)
        block[np.unique(row)] = 0.0
        for k, text in enumerate(own):
            one = judge.value.codes == texts.index(text)
            block[row[one], k] = judge.score[one]
        return {f"p__{name}__{t.removeprefix(PROBABILITY)}": block[:, k] for k, t in enumerate(own)}
    if numbers.all() and not _are_grades(set(own), classes):
        size = np.bincount(row, minlength=rows.n)
        mean: Floats = np.full(rows.n, np.nan)
        np.divide(np.bincount(row, judge.score, rows.n), size, out=mean, where=size > 0)
        if len(classes) > 2:
            raise InputError(
                f"judge {quoted(name)} gives numbers such as {judge.score[0]:.4g}, and people the "
                f"classes {listed(map(quoted, classes), 6)}: say from where on a number passes "
                "with --pass-from X, for both"
            )
        if judge.score.min() >= 0 and judge.score.max() <= 1:
            positive = classes[positive_index(list(classes))] if len(classes) == 2 else PASS
            return {f"p__{name}__{positive}": mean}
        return {f"s__{name}": mean}
    # Words decide; a score beside them says the same again.
    word = judge.value.codes >= 0
    if not numbers.all():
        graded = [texts.index(text) for text in {*own} & {*classes}]
        word &= ~numbers | np.isin(judge.value.codes, graded)
    if not word.all():
        notes.append(
            f"{(~word).sum():,} verdicts of {quoted(name)} are numbers among words: left out"
        )
    return _hard(name, judge.take(word), rows, notes)


def _are_grades(own: set[str], classes: Sequence[str]) -> bool:
    """Whether numbers are classes: those of people, 0 and 1 for yes and no, or a few whole ones."""
    if own and own <= set(classes):
        return True
    if own and own <= {"0", "1"} and len(classes) <= 2:
        return all(polarity(c) is not None for c in classes)
    return not classes and 1 < len(own) <= _MOST_GRADES and all(_WHOLE.fullmatch(t) for t in own)


def _hard(name: str, judge: Record, rows: _Rows, notes: list[str]) -> _Columns:
    """Hard predictions; shares of a judge that says several things of one item."""
    counts, texts = rows.counts(judge)
    if not ((counts > 0).sum(axis=1) > 1).any() or len(texts) > _MOST_CLASSES:
        return {f"y__{name}": _most(counts, texts)}
    total = counts.sum(axis=1)
    share = np.where(total[:, None] > 0, counts / np.maximum(total, 1)[:, None], np.nan)
    notes.append(
        f"judge {quoted(name)} judged {int((total > 1).sum()):,} items repeatedly, and not always "
        "alike: the shares of its verdicts are its probabilities"
    )
    return {f"p__{name}__{text}": share[:, k] for k, text in enumerate(texts)}


def _who(what: str, record: Record) -> str:
    names = [record.author.texts[c] for c in np.unique(record.author.codes).tolist() if c >= 0]
    return f"{what}: {listed(names, 4)}" if names else f"{what}: of people without names"
