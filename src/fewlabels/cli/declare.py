"""Options as fields of records: declared once, and commands take all of a record or some."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, field, fields
from functools import wraps
from typing import Any, TypeVar, cast

import click

from fewlabels.cli.text import text

Command = TypeVar("Command", bound=Callable[..., Any])


def option(
    about: str | None = None,
    flag: str | None = None,
    *,
    type: Any = text,
    default: Any = None,
    **attributes: Any,
) -> Any:
    """A field of a record that an option of the command line fills.

    Parameters
    ----------
    about
        What `--help` says; None where every command says its own.
    flag
        Unless given, the field's name with dashes.
    type, default, **attributes
        Of `click.option`; a default is shown.
    """
    attributes |= {"help": about, "type": None if attributes.get("is_flag") else type}
    empty: Any = () if attributes.get("multiple") else default
    if attributes.get("is_flag"):
        empty = False
    elif default is not None:
        attributes = {"default": default, "show_default": True, **attributes}
    return field(default=empty, metadata={"flag": flag, "attributes": attributes})


def flag_of(one: Field[Any]) -> str:
    """What the option of a field is called."""
    return one.metadata["flag"] or f"--{one.name.replace('_', '-')}"


def takes(
    argument: str,
    record: Any,
    *names: str,
    without: Collection[str] = (),
    **changes: str | Mapping[str, Any],
) -> Callable[[Command], Command]:
    """Add options of a record, which the command gets as one argument.

    Parameters
    ----------
    argument
        The command's argument.
    record
        A dataclass of `option`; its class method `of`, if it has one, makes it of their values.
    names
        The options that are taken, beside those of `changes`; all unless given.
    without
        Those that are not.
    changes
        What a command says otherwise: the help of an option, or several attributes.
    """
    wanted = {*names, *changes} if names else {f.name for f in fields(record)} - {*without}
    unknown = {*names, *changes, *without} - {f.name for f in fields(record)}
    if unknown:
        raise TypeError(f"{record.__name__} has no {', '.join(sorted(unknown))}")
    taken = [f for f in fields(record) if f.name in wanted]
    make = getattr(record, "of", record)

    def add(command: Command) -> Command:
        @wraps(command)
        def wrapper(**given: Any) -> Any:
            values = {f.name: given.pop(f.name) for f in taken}
            return command(**{argument: make(**values)}, **given)

        decorated: Any = wrapper
        for one in reversed(taken):
            change = changes.get(one.name, {})
            attributes = {
                **one.metadata["attributes"],
                **({"help": change} if isinstance(change, str) else change),
            }
            decorated = _declared(one, attributes)(decorated)
        return cast(Command, decorated)

    return add


def _declared(one: Field[Any], attributes: dict[str, Any]) -> Callable[[Any], Any]:
    if attributes.pop("positional", False):
        del attributes["help"]
        return click.argument(one.name, required=False, **attributes)
    return click.option(flag_of(one), one.name, **attributes)
