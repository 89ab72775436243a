"""The manifest: what a benchmark is, so that a later run can go on with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fewlabels import __version__
from fewlabels.bench.files import replace_text
from fewlabels.bench.protocol import Protocol, from_plain
from fewlabels.bench.results import DatasetFacts
from fewlabels.errors import InputError, UsageError
from fewlabels.wording import one_line, quoted

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


def read(folder: Path) -> Manifest:
    """The manifest of a benchmark that is to go on.

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
                "the two may compute differently; name another --out"
            )
        return Manifest(
            from_plain(said["protocol"]),
            tuple(said["data"]),
            said["reading"],
            tuple(DatasetFacts.from_plain(d) for d in said["datasets"]),
            tuple(said["skipped"]),
        )
    except FileNotFoundError:
        raise InputError(f"{where} is not there: nothing to resume; leave --resume out") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{where} is damaged; name another --out, or delete the folder") from None


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
            f"--resume: the folder holds protocol {quoted(before.name)}, not {quoted(name)}; name "
            "another --out"
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
                f"--resume: {field} was {_shown(old)} and is {_shown(new)} now, and finished cells "
                "depend on it; leave it as it was, or name another --out"
            )
    return replace(before, **changes)


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
                    f"--resume: the {what} of data set {quoted(dataset.name)} ({dataset.file}) "
                    "changed since the benchmark began; name another --out"
                )
    if known:
        raise UsageError(
            f"--resume: data set {quoted(next(iter(known)))} is missing; name its file with --data "
            "as before"
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
