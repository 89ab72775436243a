"""What a shell completes: methods, metrics and files; commands and options complete themselves."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

VARIABLE = "_FEWLABELS_COMPLETE"
"""Set by the shell's script to what it wants: the script itself, or completions."""

_FILES = frozenset(
    [
        "file",
        "votes",
        "columns",
        "labels",
        "labels-out",
        "json",
        "html",
        "svg",
        "out",
        "write",
        "save",
        "apply",
        "calibration",
        "save-data",
        "posterior",
        "data",
    ]
)
_METHODS = frozenset({"method"})
_METRICS = frozenset({"metric", "metrics"})


def completed(app: click.Command) -> int | None:
    """Answer a shell that asks for completions, and return the exit code; None: nobody asks."""
    instruction = os.environ.get(VARIABLE)
    if not instruction:
        return None
    from click.shell_completion import shell_complete

    return shell_complete(app, {}, "fewlabels", VARIABLE, instruction)


def suggesting(kind: click.ParamType[Any], name: str) -> click.ParamType[Any]:
    """The type of an option, with suggestions where there are any."""
    if name in _FILES | _METHODS | _METRICS and not isinstance(kind, (Suggesting, click.Choice)):
        return Suggesting(kind, name)
    return kind


class Suggesting(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A type that reads values as another does, and completes them."""

    def __init__(self, kind: click.ParamType[Any], of: str) -> None:
        self.kind = kind
        self.of = of
        self.name = kind.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read a value as the other type does."""
        return self.kind.convert(value, param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Methods, metrics (behind the last comma of a list), or that a file is meant."""
        from click.shell_completion import CompletionItem

        if self.of in _FILES:
            return [CompletionItem(incomplete, type="file")]
        before, comma, last = incomplete.rpartition(",")
        if self.of in _METHODS:
            before, comma, last = "", "", incomplete
        return [
            CompletionItem(before + comma + name) for name in self._names() if name.startswith(last)
        ]

    def _names(self) -> list[str]:
        if self.of in _METHODS:
            from fewlabels.cli.settings import method_names

            return method_names()
        from fewlabels.metrics import METRICS

        return list(METRICS)
