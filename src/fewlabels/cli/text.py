"""Text in and out: one-line messages, comma lists, options that are proper text."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

import click

from fewlabels.errors import UsageError


def one_line(message: str) -> str:
    r"""Escape line breaks, control characters and lone surrogates, so a message stays one line.

    Examples
    --------
    >>> print(one_line("no column 'a\nb'"))
    no column 'a\nb'
    """
    return "".join(c if c.isprintable() else _escaped(c) for c in message)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def text(value: str) -> str:
    """Refuse lone surrogates, which is how undecodable bytes of the command line arrive.

    An option's `type`; what it lets through can be written to any file.

    Raises
    ------
    click.BadParameter
        Where the value is not text.
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        # Not a `UsageError`, which is a ValueError: click would put its own words for the message.
        raise click.BadParameter(
            f"it must be text in this terminal's encoding; got {value!r}"
        ) from None
    return value


def comma_list(values: str | Iterable[str], whole: Collection[str] = ()) -> list[str]:
    """Split at commas, except what is a name as it stands; drop empty parts and repetitions.

    Examples
    --------
    >>> comma_list(["a, b", "b", "x,y"], whole={"x,y"})
    ['a', 'b', 'x,y']
    """
    names: list[str] = []
    for value in [values] if isinstance(values, str) else values:
        parts = [value] if value in whole else [part.strip() for part in value.split(",")]
        names.extend(part for part in parts if part)
    return list(dict.fromkeys(names))


def check_choice(kind: str, name: str, choices: Iterable[str]) -> None:
    """Refuse a name that is not among the choices.

    Raises
    ------
    UsageError
        Naming the nearest choice, where one is near, and all of them.
    """
    known = list(choices)
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    listed = f"choose from {', '.join(known)}" if known else "the file has none"
    raise UsageError(f"unknown {kind} {name!r}; {hint}{listed}")
