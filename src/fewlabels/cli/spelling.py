"""Messages of the library, which name arguments of Python, in the words of the command line."""

from __future__ import annotations

import re

import click

_FIELD = re.compile(r"`([a-z][a-z0-9_]*|--[a-z0-9-]+)`")

_ARGUMENTS = {"random_state": "seed", "select": "models"}
"""Arguments of Python that an option of another name stands for."""

_PLAIN = {
    "predictions": "FILE",
    "source": "FILE",
    "probabilities": "probabilities",
    "labels": "labels",
    "votes": "votes",
    "scores": "scores",
    "histogram": "annotators' counts",
    "path": "the path",
}
"""Arguments of Python that stand for what a file holds, whatever options are called so."""


def in_options(line: str, command: click.Command | None) -> str:
    """The line with the command's own options in place of what Python calls them.

    Examples
    --------
    >>> command = click.Command("estimate", params=[click.Option(["--confidence-level"])])
    >>> in_options("`confidence_level` must be between 0 and 1; got 2.0", command)
    '--confidence-level must be between 0 and 1; got 2.0'
    """
    if command is None:
        return line
    options: dict[str, str] = {}
    for param in command.params:
        longest = max(param.opts, key=len)
        if isinstance(param, click.Option):
            options |= {str(param.name): longest, longest.lstrip("-").replace("-", "_"): longest}

    def spelled(found: re.Match[str]) -> str:
        if found[1].startswith("--"):
            return found[1]
        name = _ARGUMENTS.get(found[1], found[1])
        return _PLAIN.get(name) or options.get(name, found[0])

    # None cannot be typed: who wants it leaves the option out.
    return _FIELD.sub(spelled, line).replace(", or None; got", "; got")
