"""Several files of the same items, such as one per classifier: their columns beside one another."""

from __future__ import annotations

import glob
import os
import re
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fewlabels.data.keys import (
    Keyed,
    counts_rows,
    item_columns,
    may_name_items,
    names_of,
    predicts,
    side_by_side,
    with_item,
)
from fewlabels.data.options import ColumnOptions
from fewlabels.data.profiles import (
    differences,
    is_role,
    name_words,
    predicts_in_name,
    truth_in_name,
)
from fewlabels.data.roles import PLAIN, split_native
from fewlabels.data.shapes import is_nested, shaped
from fewlabels.data.sources import (
    LOG,
    FirstRows,
    is_part,
    locate,
    open_beside,
    open_source,
    path_of,
    stem_of,
)
from fewlabels.data.stores import is_pattern
from fewlabels.data.table import NO_LABEL, Source, Table, fractions_in
from fewlabels.errors import InputError, UsageError, listed, quoted
from fewlabels.kernels.arrays import Ints

TRUTH = "true"
"""What the names of columns of labels begin with, which have the names of those of predictions."""


@dataclass(frozen=True)
class JoinedFiles:
    """A source with the columns of others beside its own.

    `columns` maps a name to the sources that have it, by number, each with its own name of the
    column: the first value counts. `rows` are those of the items in every source, (n,), -1 where it
    has none.
    """

    sources: tuple[Source, ...]
    keys: tuple[Keyed, ...]
    rows: tuple[Ints, ...]
    columns: Mapping[str, tuple[tuple[int, str], ...]] = field(default_factory=dict)
    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str | None:
        """What messages call it."""
        return self.sources[0].name

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(self.columns)

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Read some columns; those of other files are in the order of the first one's items."""
        wanted = tuple(dict.fromkeys([*numbers, *texts]))
        needed: dict[int, dict[str, None]] = {0: {}}
        for name in wanted:
            for source, column in self.columns[name]:
                needed.setdefault(source, {})[column] = None
        own = [n for n in numbers if self.columns[n] == ((0, n),)]
        first = self.sources[0].read(own, [n for n in needed[0] if n not in own] or self.names[:1])
        first.notes.extend(self.notes)
        held = {k: first if k == 0 else self.sources[k].read((), tuple(of)) for k, of in
                needed.items()}  # fmt: skip
        whole = len(self.rows[0]) == first.n_rows
        made: dict[str, list[pa.ChunkedArray]] = {}
        for name in wanted:
            if not (whole and self.columns[name] == ((0, name),)):
                parts = [_taken(held[k].pieces(c), self.rows[k]) for k, c in self.columns[name]]
                made[name] = [pa.chunked_array([_first_value(parts)])]
        if whole:
            return first.with_columns(made)
        rows, place = self.rows[0], first.place
        return replace(
            first, names=wanted, pieces=made.__getitem__, n_rows=len(rows), files=(),
            place=lambda row: place(int(rows[row])),
        )  # fmt: skip

    def named(self, k: int, name: str) -> list[str | None]:
        """What a column of one of the sources says of each item."""
        names, row = names_of(self.sources[k], (name,))[name], self.rows[k]
        cells = [*names.texts, None]
        return [cells[c] for c in np.where(row < 0, -1, names.codes[row]).tolist()]

    def differ(self, name: str, where: Sequence[int]) -> tuple[int, int, str, str] | None:
        """The first item of which two sources say different things in a column, by number."""
        first, *others = ((k, self.named(k, name)) for k in where)
        for k, texts in others:
            for i, (a, b) in enumerate(zip(first[1], texts, strict=True)):
                if a is not None and b is not None and a != b:
                    return i, k, a, b
        return None


def _taken(pieces: Sequence[pa.ChunkedArray], rows: Ints) -> pa.Array:
    """The cells of some rows, null where the row is -1."""
    chunks = [chunk for piece in pieces for chunk in piece.chunks]
    if len({chunk.type for chunk in chunks}) > 1 or any(
        pa.types.is_dictionary(chunk.type) for chunk in chunks
    ):
        chunks = [chunk.cast(pa.string()) for chunk in chunks]
    whole = pa.concat_arrays(chunks) if chunks else pa.nulls(0)
    return whole.take(pa.array(rows, mask=rows < 0))


def _first_value(parts: Sequence[pa.Array]) -> pa.Array:
    """The first of several cells that is not empty."""
    if len(parts) == 1:
        return parts[0]
    if is_nested(parts[0].type):
        return pc.coalesce(*parts)
    texts = [part.cast(pa.string()) for part in parts]
    return pc.coalesce(
        *(pc.if_else(pc.equal(t, ""), pa.scalar(None, pa.string()), t) for t in texts)
    )


def joined_files(
    source: Source, others: Any, options: ColumnOptions, path: Any, *, truth: bool = False,
    labeled: bool = False,
) -> tuple[Source, ColumnOptions]:  # fmt: skip
    """The source with the columns of other files, and the options with the item."""
    # `truth` says that the other file holds labels; `labeled` that none does, as these are apart.
    first, files = _named_sources(others, path)
    logs = _one_log(path, list(files.values()))
    if logs is not None:
        return logs, options
    lines: list[str] = list(getattr(source, "lines", ()))
    opened = [_opened(name, one, lines, options) for name, one in files.items()]
    for one in (source, *opened):
        if len(set(one.names)) < len(one.names):
            raise InputError(f"{one.name}: two columns have the same name; rename one of them")
    stems = [first, *files]
    short = differences(stems)
    names = short if short and len(set(short)) == len(stems) else tuple(stems)
    sources = tuple(with_item(one, options.item, (source, *opened)) for one in (source, *opened))
    keys = item_columns(sources, options)
    item = keys[0].column
    sources = tuple(with_item(one, k.column) for one, k in zip(sources, keys, strict=True))
    joined = JoinedFiles(sources, tuple(keys), side_by_side(keys))
    if item is None:
        lines.append(_checked_order(joined, stems))
    elif len({one.column for one in keys}) > 1:
        shown = [
            f"{quoted(str(one.column))} of {quoted(stem)}"
            for one, stem in zip(keys, stems, strict=True)
        ]
        lines.append(f"items: {listed(shown, 4)} hold the same values")
    elif "," in item:
        lines.append(f"items: named by columns {listed(map(quoted, item.split(',')))} together")
    each = zip(stems[1:], keys[1:], strict=True)
    notes = [_left_out(stem, keys[0], one, some=truth) for stem, one in each]
    left = keys[0].left
    notes += [f"{quoted(first)} has {left:,} rows {_LEFT}"] * bool(left)
    where: dict[str, list[int]] = {}
    for k, (one, key) in enumerate(zip(sources, keys, strict=True)):
        for name in one.names:
            if name and (not k or name != key.column):
                where.setdefault(name, []).append(k)
    several = {n: ks for n, ks in where.items() if len(ks) > 1 and n != item}
    mirrored = {n: ks for n, ks in several.items() if joined.differ(n, ks) is not None}
    label_of, label, said = (
        (None, options.label, ()) if labeled
        else _labels(joined, mirrored, truth=truth, names=stems, known=options.label)
    )  # fmt: skip
    columns: dict[str, tuple[tuple[int, str], ...]] = {}
    own_names: dict[str, dict[int, str]] = {}
    for name, ks in where.items():
        by_itself = predicts(name) and split_native(name) is None and is_role(name)
        truth_like = name in mirrored and truth_in_name(name) == 3
        soft = truth_like and all(fractions_in({*filter(None, joined.named(k, name))}) for k in ks)
        said_apart = labeled or label_of is not None or options.label not in (None, name)
        if truth_like and not soft and not said_apart:
            alike = {n: of[0] for n, of in several.items() if n not in mirrored}
            _refuse_two_labels(joined, name, ks, alike)
        if len(ks) > 1 and name not in mirrored and not _predicts(name):
            columns[name] = tuple((k, name) for k in ks)
        elif len(ks) == 1 and (ks == [0] or not (PLAIN.fullmatch(name) or by_itself)):
            columns[name] = ((ks[0], name),)
        else:
            for k in ks:
                own = names[k]
                if k == label_of and (name in mirrored or PLAIN.fullmatch(name)):
                    own = TRUTH
                plain = [n for n in filter(PLAIN.fullmatch, sources[k].names) if n in where]
                own_ones = [n for n in plain if n in mirrored or where[n] == [k]]
                alone = (
                    (soft and not predicts_in_name(name_words(name)))
                    or own_ones == [name]
                    or own_ones == [keys[k].column, name]
                )
                called = f"{names[k]}_prediction" if alone and own != TRUTH else _of_file(name, own)
                while called in where or called in columns:
                    called += "_"
                columns[called] = ((k, name),)
                own_names.setdefault(name, {})[k] = called
    if options.label is not None:
        parts = re.split("[,|]", options.label)
        ours = label_of is not None and all(label_of in mirrored.get(part, ()) for part in parts)
        renamed = ",".join(_of_file(part, TRUTH) for part in parts)
        label = renamed if ours and options.label not in columns else options.label
    made = replace(joined, columns=columns, lines=(*lines, *said), notes=tuple(filter(None, notes)))
    said_of: dict[str, Any] = {
        kind: _of_files(getattr(options, kind), own_names, names)
        for kind in ("models", "logits", "hard", "scores", "confidence")
    }
    return shaped(made, replace(options, item=item, label=label, **said_of))


def _refuse_two_labels(
    joined: JoinedFiles, name: str, ks: Sequence[int], alike: Mapping[str, int]
) -> None:
    """Refuse labels of which files say different things, unless they agree on others."""
    # These are in a column of the same words among those that are `alike`, with a file of each.
    words = {*joined.named(ks[0], name)} - {None}
    if any(words == {*joined.named(k, n)} - {None, *NO_LABEL} for n, k in alike.items()):
        return
    i, k, a, b = joined.differ(name, ks) or (0, 0, "", "")
    both = [joined.sources[j].name or "the first" for j in (ks[0], k)]
    raise InputError(
        f"item {quoted(joined.keys[0].texts[i])} has {quoted(a)} in column {quoted(name)} of "
        f"{both[0]}, and {quoted(b)} in that of {both[1]}; an item has one label: correct one of "
        "them"
    )


def _of_files(
    mapped: Mapping[str, Any], own: Mapping[str, Mapping[int, str]], files: Sequence[str]
) -> dict[str, Any]:
    """Classifiers by their columns, one of each file where these are columns of several files."""
    out: dict[str, Any] = {}
    for model, of in mapped.items():
        columns = (of,) if isinstance(of, str) else of
        ks = [k for k in range(len(files)) if all(k in own.get(c, ()) for c in columns)]
        for k in ks:
            named = tuple(own[c][k] for c in columns)
            called = files[k] if len(mapped) == 1 else f"{files[k]} {model}"
            out[called] = named[0] if isinstance(of, str) else named
        out |= {} if ks else {model: of}
    return out


def _named_sources(others: Any, path: Any) -> tuple[str, dict[str, Any]]:
    """What to call the first source, and name -> path or frame of the files to join."""
    if isinstance(others, Mapping):
        first = stem_of(str(path)) if isinstance(path, str | Path) else "first"
        return first, {str(name): one for name, one in others.items()}
    several = [others] if isinstance(others, str | Path) else list(others)
    own = os.path.realpath(path_of(str(path))) if isinstance(path, str | Path) else None
    files: list[str] = []
    for one in several:
        if not isinstance(one, str | Path):
            raise UsageError(
                f"`join` must be paths, or a mapping of names to paths or frames; got {quoted(one)}"
            )
        name = str(one)
        if os.path.isdir(name):
            found = sorted(str(f) for f in Path(name).iterdir() if f.is_file() and is_part(f.name))
        elif not os.path.exists(name) and is_pattern(name):
            found = sorted(glob.glob(name, recursive=True))
        else:
            found = [name]
        files += [f for f in found if "\0" in f or os.path.realpath(f) != own]
        if not found:
            raise InputError(f"{name}: no file is named so")
    if not files:
        raise InputError("--join names no file beside FILE")
    files = list(dict.fromkeys(files))
    first, *names = _called([str(path), *files]) if own is not None else ["first", *_called(files)]
    return first, dict(zip(names, files, strict=True))


def _called(files: Sequence[str]) -> list[str]:
    """What to call files: by their names, or the folder that tells files of one name apart."""
    stems = [stem_of(file) for file in files]
    folders = [Path(os.path.abspath(path_of(file))).parts[-2::-1] for file in files]
    names = []
    for stem, file, own in zip(stems, files, folders, strict=True):
        alike = [of for one, of in zip(stems, folders, strict=True) if one == stem]
        apart = (
            k for k, each in enumerate(zip(*alike, strict=False)) if len({*each}) == len(alike)
        )
        k = next(apart, None)
        names.append(stem if len(alike) == 1 else file if k is None else own[k])
    return names if len({*names}) == len(names) else list(files)


def _opened(name: str, one: Any, lines: list[str], options: ColumnOptions) -> Source:
    """A file to join; one without a header says so by its first row."""
    located = locate(one)
    if located is not None and located.kind == "NPZ":
        raise InputError(f"{located.name}: holds arrays, whose items have no names; save a table")
    found, read_so = open_beside(one, located, "join")
    if read_so is not located:
        lines.append(f"{quoted(name)} is read without a header: columns {listed(found.names, 3)}")
    return shaped(found, options)[0]


def _one_log(path: Any, others: Sequence[Any]) -> Source | None:
    """Several logs of one tool as the one that they are together."""
    if not all(isinstance(one, str | Path) for one in (path, *others)):
        return None
    first, *rest = (locate(one) for one in (path, *others))
    if first is None or first.kind != LOG:
        return None
    odd = next((one for one in rest if one is None or one.form != first.form), None)
    if odd is not None:
        raise InputError(f"{odd.name} is no log of {first.form}, and logs are joined by their tool")
    files = dict.fromkeys(file for one in (first, *rest) if one is not None for file in one.files)
    return open_source(path, replace(first, files=tuple(files)))


def _checked_order(joined: JoinedFiles, stems: Sequence[str]) -> str:
    """What to say of files without a column of items; refused where a shared column differs."""
    first = joined.sources[0]
    alike: dict[str, None] = {}
    for k, one in enumerate(joined.sources[1:], 1):
        for name in one.names:
            if name not in first.names or not (truth_in_name(name) == 3 or may_name_items(name)):
                continue
            odd = joined.differ(name, (0, k))
            each = [set(joined.named(j, name)) for j in (0, k)]
            fixed = min(map(len, each)) == 1
            if PLAIN.fullmatch(name):  # which does not say that it is the same in both
                fixed |= odd is not None
            if odd is not None and not fixed:
                row, _, a, b = odd
                raise InputError(
                    f"the files have no column of items, and their rows are not in one order: row "
                    f"{row + 1} has {quoted(a)} in column {quoted(name)} of {quoted(stems[0])}, "
                    f"and {quoted(b)} in that of {quoted(stems[k])}; give both a column of items, "
                    "or drop this one"
                )
            alike |= {} if fixed else {name: None}
    checked = f"{listed(map(quoted, alike), 4)} agree" if alike else "no other column checks that"
    return (
        f"joined by the order of their {len(joined.rows[0]):,} rows, as nothing names the items: "
        f"{listed(map(quoted, stems), 4)} ({checked})"
    )


_LEFT = "without an item, or without the label that another row of it has, which are left out"


def _left_out(stem: str, first: Keyed, other: Keyed, *, some: bool) -> str:
    """A note on the items that only one of two files has; the other may have but `some`."""
    there = other.find(first.texts) >= 0
    if not there.any():
        raise InputError(
            f"no item of {quoted(stem)} is in the first file; are the items the same? --item says "
            "by which column they are joined"
        )
    without, further = 0 if some else int((~there).sum()), len(other.texts) - int(there.sum())
    said = [f"has no row of {without:,} of the {len(there):,} items"] * bool(without)
    said += [f"has {further:,} items that the first file has not"] * bool(further)
    said += [f"has {other.left:,} rows {_LEFT}"] * bool(other.left)
    return f"{quoted(stem)} {' and '.join(said)}" if said else ""


def _predicts(name: str) -> bool:
    return (split_native(name) is not None and name[:1] in "pys") or predicts(name)


_FLAGS = {*NO_LABEL, "0", "1", "true", "false"}


def _labels(
    joined: JoinedFiles, mirrored: Mapping[str, Sequence[int]], *, truth: bool,
    names: Sequence[str], known: str | None,
) -> tuple[int | None, str | None, tuple[str, ...]]:  # fmt: skip
    """Which source has 0 and 1 where others have fractions: its number, the label, and lines."""
    kinds: dict[str, dict[int, str]] = {}
    if truth and any(map(PLAIN.fullmatch, joined.sources[1].names)):
        return 1, None, ()
    for name, ks in mirrored.items():
        of = {k: _kind({t for t in joined.named(k, name) if t is not None}) for k in ks}
        if "fractions" in of.values():
            kinds[name] = of
    labeled = any(truth_in_name(n) == 3 and n not in kinds for s in joined.sources for n in s.names)
    if not kinds or (labeled and not truth):
        return None, None, ()
    flags = [
        k for k in range(len(joined.sources))
        if (truth or not predicts_in_name(name_words(names[k])))
        and {of.get(k) for of in kinds.values()} <= {"flags", None}
        and any(k in of for of in kinds.values())
    ]  # fmt: skip
    shown = listed(map(quoted, kinds), 4)
    if len(flags) != 1 or (truth and flags != [1]):
        soft = [k for k in range(len(names)) if all(of.get(k) for of in kinds.values())][:1]
        rows = zip(*(joined.named(k, name) for k in soft for name in kinds), strict=True)
        sums = [sum(float(cell or "nan") for cell in row) for row in rows]
        if truth or (
            known is None
            and len(kinds) > 1
            and any(abs(total - 1) > 0.01 * len(kinds) for total in sums)
        ):
            raise InputError(
                f"columns {shown} hold fractions in {listed(map(quoted, names), 4)}, and fractions "
                "are no labels: labels are classes, 0 and 1, or counts of annotators (h__CLASS); "
                "round them to 0 and 1 to judge by them"
            )
        return None, None, ()
    k = flags[0]
    own = [name for name, of in kinds.items() if k in of]
    lines = (
        f"labels are columns {shown} of {quoted(names[k])}: 0 and 1, where the columns of the same "
        f"names hold fractions; they are called {quoted(_of_file(own[0], TRUTH))}"
        + ", ..."
        * (len(own) > 1),
    )
    ones = zip(*(joined.named(k, name) for name in own), strict=True)
    filled = [row for row in ones if not {*row} <= {None, *NO_LABEL}]
    hot = all(sum(cell in ("1", "true") for cell in row) == 1 for row in filled)
    if len(own) > 1 and not hot:
        return k, None, lines  # a task each
    return k, ",".join(_of_file(name, TRUTH) for name in own), lines


def _kind(texts: set[str]) -> str:
    """What a column holds: "flags" (0 and 1), "fractions", or something else."""
    return "flags" if texts <= _FLAGS else "fractions" if fractions_in(texts) else "other"


def _of_file(name: str, file: str) -> str:
    """What to call a column of one of the files: a native one by its classifier, else by both."""
    native = split_native(name)
    if native is None:
        return f"{file}_{name}"
    kind, _, text = native
    return f"{kind}__{file}__{text}" if kind == "p" else f"{kind}__{file}"


_BY_CHANCE, _LONGEST_PERIOD = 1e-6, 12
"""Chance of the same labels row by row, below which two files are of the same items, unless their
labels are sorted, or come again and again in one order."""


def refuse_pooled(parts: Sequence[Source], files: Sequence[Any], folder: str) -> None:
    """Refuse files of the same items, such as one per classifier, with what joins them."""
    # Files of other columns than most are joined too, or hold the labels.
    if len(parts) < 2:
        return
    columns = [frozenset(part.names) for part in parts]
    of_most = max(columns, key=lambda one: (columns.count(one), sum(map(_predicts, one))))
    if any(split_native(name) is not None for name in of_most):
        return  # the names say of which classifier they are
    alike = [k for k, one in enumerate(columns) if one == of_most]
    reason = _same_items([parts[k] for k in alike])
    if len(alike) > 1 and not reason:
        return
    join, labels = [str(files[k]) for k in alike[1:]], list[str]()
    here = {str(file) for file in files}
    inside = sorted(Path(folder).iterdir()) if os.path.isdir(folder) else []
    unread = [f for f in inside if f.is_file() and is_part(f.name) and str(f) not in here]
    for k, file in enumerate([*files, *unread]):
        if k in alike:
            continue
        with suppress(InputError, pa.ArrowException):
            other = parts[k] if k < len(parts) else _opened(str(file), file, [], ColumnOptions())
            both = FirstRows(parts[alike[0]], _HEAD), FirstRows(other, _HEAD)
            key = item_columns(both, ColumnOptions())[0].column
            if key is not None:
                beside = join if any(map(_predicts, other.names)) else labels
                beside.append(str(file))
                reason = reason or f"have the same items (column {quoted(key)})"
    if len(alike) == len(files) and not labels:
        join = [folder]
    if not join and not labels:
        return
    command = ["fewlabels", "estimate", str(files[alike[0]])]
    command += [word for flag, names in (("--join", join), ("--labels", labels)) for name in names
                for word in (flag, name)]  # fmt: skip
    names = [str(part.name) for part in parts]
    raise InputError(
        f"{listed(names, 3)} {reason}, as where each file is of another classifier"
        f"{', and one holds the labels' * bool(labels)}; all rows of a folder would be items: join "
        f"the files by {shlex.join(command)}"
    )


_HEAD = 4_000
"""Rows of a file by which its items are known."""


def _same_items(parts: Sequence[Source]) -> str:
    """Why files of one form are of the same items, as of several classifiers; else nothing."""
    # Their items have the same names, or one column says in row after row the same, and none but
    # predictions differs.
    try:
        first, second = (FirstRows(part, _HEAD) for part in parts[:2])
        keys = item_columns((first, second), ColumnOptions())
    except (ValueError, InputError, pa.ArrowException):
        return ""
    joined = JoinedFiles((first, second), tuple(keys), side_by_side(keys))
    key = keys[0].column
    shared = [n for n in first.names if n in second.names and n != key]
    pairs = {n: list(zip(joined.named(0, n), joined.named(1, n), strict=True)) for n in shared}
    pairs = {n: [(a, b) for a, b in both if a and b and {a, b}.isdisjoint(NO_LABEL)]
             for n, both in pairs.items()}  # fmt: skip
    same = {n: [a for a, _ in both] for n, both in pairs.items() if all(a == b for a, b in both)}
    odd = {n: both for n, both in pairs.items() if n not in same}
    for name, both in odd.items():
        each = [{*said} for said in zip(*both, strict=True)]
        words = each[0] | each[1]
        if min(map(len, each)) == 1 and each[0] != each[1]:
            return ""  # told apart by it, as months are
        if fractions_in(words):
            continue
        if truth_in_name(name) == 3 and not any({*said} == words for said in same.values()):
            return ""
        if not (_predicts(name) or PLAIN.fullmatch(name) or 2 * len(words) <= len(both)):
            return ""  # of other days, or others
    if not odd or all(split_native(n) for n in odd):
        return ""  # the same file twice, or classifiers by their names
    for name, said in same.items():
        runs = 1 + sum(a != b for a, b in pairwise(said))
        regular = any(said[p:] == said[:-p] for p in range(1, _LONGEST_PERIOD))
        chance = sum((times / max(len(said), 1)) ** 2 for times in Counter(said).values())
        if chance ** (runs if key is None else len(said)) < _BY_CHANCE and not regular:
            return f"have one column {quoted(name)}, row by row"
    named = key is not None and not counts_rows(names_of(first, (key,))[key])
    return f"have the same items (column {quoted(key)})" if key is not None and named else ""
