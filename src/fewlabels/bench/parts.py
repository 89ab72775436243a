"""Parts: one file per finished cell, whole or not at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fewlabels.bench.cells import Body, Cell
from fewlabels.bench.files import remove_leftovers, replace_text

_KEYS = {
    "models", "metrics", "groups", "runs", "estimate", "low", "high", "status", "message",
    "seconds", "traits",
}  # fmt: skip


@dataclass(frozen=True)
class Parts:
    """The folder of parts of a benchmark.

    `settings` maps a data set to the fingerprint of all that its cells depend on besides their
    own keys: a part of another fingerprint is foreign, and is computed again.
    """

    folder: Path
    settings: Mapping[str, str]

    def prepare(self) -> None:
        """Make the folder, and sweep what a kill left in it.

        Raises
        ------
        OSError
            If the system refuses.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.folder)

    def write(self, cell: Cell, body: Body) -> None:
        """Keep what a cell found.

        Raises
        ------
        OSError
            If the system refuses.
        """
        text = _text(body)
        part = {
            "cell": cell._asdict(),
            "settings": self.settings[cell.dataset],
            "digest": _hash(text),
        }
        # The body goes in as the text that was hashed.
        head = json.dumps(part)[:-1]
        replace_text(self._path(cell), f'{head}, "body": {text}}}\n')

    def read(self, cell: Cell) -> Body | None:
        """What a cell found; None if it is not there, damaged, or another's."""
        try:
            part: Any = json.loads(self._path(cell).read_bytes())
            body: Body = part["body"]
            intact = (
                part["cell"] == cell._asdict()
                and part["settings"] == self.settings[cell.dataset]
                and part["digest"] == _hash(_text(body))
                and set(body) == _KEYS
            )
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return body if intact else None

    def _path(self, cell: Cell) -> Path:
        return self.folder / f"{cell.kind}-{_hash(json.dumps(cell))}.json"


def any_parts(folder: Path) -> bool:
    """Whether a folder holds parts of some benchmark."""
    return any(folder.glob("*.json"))


def _text(body: Body) -> str:
    return json.dumps(body, allow_nan=False, sort_keys=True)


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()
