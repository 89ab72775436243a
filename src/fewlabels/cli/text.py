"""Text in: comma lists, choices, options that are proper text."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import click

from fewlabels.errors import UsageError, unknown


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
    if name not in known:
        raise UsageError(unknown(kind, name, known, "the file has none"))
