"""The manifest: what a benchmark is, so that a later run can go on with it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fewlabels import __version__
from fewlabels.bench.files import replace_text
from fewlabels.bench.protocol import Protocol, from_plain
from fewlabels.bench.results import DatasetFacts
from fewlabels.errors import InputError, UsageError, listed, one_line, quoted

FORMAT = 1
NAME = "manifest.json"

GROWS = ("methods", "n_labeled", "n_unlabeled", "levels")
"""Fields that a resumed benchmark may add to; `runs` may rise besides."""

_SHOWN = ("title", "source", "tables", "figures")
"""Fields that no cell depends on."""


@dataclass(frozen=True)
class Manifest:
    """A benchmark as it was begun: protocol, data and how they are read."""

    protocol: Protocol
    data: tuple[str, ...]
    reading: Mapping[str, Any]
    datasets: tuple[DatasetFacts, ...] = ()
    skipped: tuple[str, ...] = ()

    def write(self, folder: Path) -> None:
        """Put it in its folder.

        Raises
        ------
        OSError
            If the system refuses.
        """
        said = {
            "format": FORMAT,
            "fewlabels": __version__,
            "protocol": self.protocol.plain(),
            "data": list(self.data),
            "reading": dict(self.reading),
            "datasets": [d.plain() for d in self.datasets],
            "skipped": list(self.skipped),
        }
        replace_text(folder / NAME, json.dumps(said, indent=2) + "\n")


_FIELDS = {"format", "fewlabels", "protocol", "data", "reading", "datasets", "skipped"}


def is_one(path: Path) -> bool:
    """Whether a file is the manifest of a benchmark, of whatever version."""
    try:
        said = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(said, dict) and set(said) >= _FIELDS


def read(
    folder: Path,
    parse: Callable[[Mapping[str, Any]], Any] = from_plain,
    kind: str = "a benchmark",
) -> Manifest:
    """The manifest of a benchmark that is to go on, whose protocol `parse` makes of plain values.

    Raises
    ------
    InputError
        If there is none, it is damaged, or another version wrote it.
    """
    where = one_line(str(folder / NAME))
    try:
        said = json.loads((folder / NAME).read_bytes())
        if said["format"] != FORMAT or said["fewlabels"] != __version__:
            raise InputError(
                f"{where} was written by fewlabels {said['fewlabels']}, this is {__version__}, and "
                "the two may compute differently; name another `out`"
            )
        return Manifest(
            parse(said["protocol"]),
            tuple(said["data"]),
            said["reading"],
            tuple(DatasetFacts.from_plain(d) for d in said["datasets"]),
            tuple(said["skipped"]),
        )
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{where} is not there: nothing to resume; leave `resume` out") from None
    except OSError as error:
        raise InputError(
            f"{where} cannot be read ({error.strerror}); mend that, or name another `out`"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{where} is no manifest of {kind}, or is damaged; name another `out`"
        ) from None


def grown(before: Protocol, name: str, options: Mapping[str, Any]) -> Protocol:
    """The protocol of a benchmark that goes on, with what is asked for besides.

    What may grow is united with what was there, so that nothing finished is lost; what is not
    asked for stays as it was.

    Raises
    ------
    UsageError
        If something differs that all cells depend on.
    """
    if name != before.name:
        raise UsageError(
            f"`resume`: the folder holds protocol {quoted(before.name)}, not {quoted(name)}; name "
            "another `out`"
        )
    asked = before.with_options(**options)
    changes: dict[str, Any] = {}
    for field in options:
        old, new = getattr(before, field), getattr(asked, field)
        if field in GROWS and not (field == "levels" and before.factor == "subset"):
            changes[field] = union(old, new)
        elif field == "runs":
            changes[field] = max(old, new)
        elif field not in _SHOWN and old != new:
            raise UsageError(
                f"`resume`: {field} was {_shown(old)} and is {_shown(new)} now, and finished cells "
                "depend on it; leave it as it was, or name another `out`"
            )
    return replace(before, **changes)


def places(before: Sequence[str], asked: Sequence[str]) -> tuple[str, ...]:
    """Where the data of a benchmark that goes on are: as before, without what is gone, and new.

    Raises
    ------
    UsageError
        If something is gone and nothing is named.
    """
    gone = [place for place in before if not os.path.exists(place)]
    if gone and not asked:
        raise UsageError(
            f"`resume`: there is nothing at {listed(map(quoted, gone))} any more; if the data "
            "moved, name their new place with `data`"
        )
    return union((place for place in before if place not in gone), asked)


def known_names(before: Sequence[DatasetFacts], now: Sequence[DatasetFacts]) -> list[str]:
    """Names of the data sets of now; one of known content keeps its name, wherever its file is.

    Seeds and parts go by the name, which comes from the file's.

    Raises
    ------
    UsageError
        If two would have one name.
    """
    in_place = {(d.name, d.digest) for d in before} & {(d.name, d.digest) for d in now}
    elsewhere = [d for d in before if (d.name, d.digest) not in in_place]
    names = []
    for dataset in now:
        moved = [] if (dataset.name, dataset.digest) in in_place else elsewhere
        old = next((d for d in moved if d.digest == dataset.digest), None)
        if old is not None:
            elsewhere.remove(old)
        names.append(dataset.name if old is None else old.name)
    double = [(d, n) for k, (d, n) in enumerate(zip(now, names, strict=True)) if n in names[:k]]
    if double:
        dataset, name = double[0]
        raise UsageError(
            f"`resume`: {one_line(dataset.file)} and another file would both be data set "
            f"{quoted(name)}; give the new one another name"
        )
    return names


def check_data(before: Sequence[DatasetFacts], now: Sequence[DatasetFacts]) -> None:
    """Refuse data that are no longer those that finished cells were computed from.

    Raises
    ------
    UsageError
        Naming what differs.
    """
    known = {d.name: d for d in before}
    for dataset in now:
        old = known.pop(dataset.name, dataset)
        if old.digest == dataset.digest:
            # It covers all that results depend on: sets that are trained may get more classifiers.
            continue
        for field, what in (("models", "classifiers"), ("groups", "groups"), ("digest", "content")):
            if getattr(old, field) != getattr(dataset, field):
                raise UsageError(
                    f"`resume`: the {what} of data set {quoted(dataset.name)} ({dataset.file}) "
                    "changed since the benchmark began; name another `out`, or with `data` the new "
                    "place of the unchanged file"
                )
    for name, old in known.items():
        raise UsageError(
            f"`resume`: data set {quoted(name)} ({one_line(old.file)}) is missing; name its new "
            "place with `data`"
        )


def fingerprint(protocol: Protocol, dataset: DatasetFacts) -> str:
    """Hash of all that the cells of a data set depend on besides their own keys."""
    free = {*GROWS, *_SHOWN, "runs"}
    fixed = {k: v for k, v in protocol.plain().items() if k not in free}
    text = json.dumps([FORMAT, __version__, fixed, dataset.digest], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


def union(old: Iterable[Any], new: Iterable[Any]) -> tuple[Any, ...]:
    """The old ones in their order, then what is new."""
    return tuple(dict.fromkeys([*old, *new]))


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return one_line(", ".join(map(str, value)), 60) or "nothing"
    return quoted(value) if isinstance(value, str) else str(value)
