"""How a file was read that nobody has described, or why it is not read."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from fewlabels.errors import InputError
from fewlabels.frames.options import ColumnOptions


@dataclass(frozen=True)
class Reading:
    """What was recognised: the options that say it, in lines, and whether the rows are votes.

    `lines` are empty where the caller and the native names say everything. `votes` says that every
    row is the vote of an annotator.
    """

    options: ColumnOptions
    lines: tuple[str, ...] = ()
    votes: bool = False


class AmbiguousError(InputError):
    """A file can be read in two ways; `readings` are the options of each."""

    def __init__(self, message: str, readings: Sequence[Sequence[str]]) -> None:
        self.readings = tuple(" ".join(map(shlex.quote, reading)) for reading in readings)
        super().__init__(f"{message}: say which with {' or '.join(self.readings)}")
