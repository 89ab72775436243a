"""The options that say which column of a file is what; every command that reads a file has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

import click

from fewlabels.cli.text import comma_list, text

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Columns:
    """What the options say of a file's columns; None or empty where they say nothing."""

    label: str | None = None
    model: tuple[str, ...] = ()
    domain: str | None = None
    weight: str | None = None
    columns: str | None = None
    classes: str | None = None

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `fewlabels.read_predictions` and `fewlabels.diagnose`."""
        from fewlabels.frames import parse_model_options

        return {
            "label": self.label,
            "models": parse_model_options(self.model),
            "domain": self.domain,
            "weight": self.weight,
            "columns": self.columns,
            "classes": comma_list(self.classes) if self.classes is not None else None,
        }


_OPTIONS = (
    click.option("--label", type=text, metavar="COL", help="Column of the known labels."),
    click.option(
        "--model",
        type=text,
        metavar="NAME=COL,COL",
        multiple=True,
        help="A classifier and its probability columns, one per class. Repeatable.",
    ),
    click.option("--domain", type=text, metavar="COL", help="Column of the domain."),
    click.option("--weight", type=text, metavar="COL", help="Column of the sampling weight."),
    click.option("--columns", type=text, metavar="TOML", help="File that says all of this."),
    click.option("--classes", type=text, metavar="A,B,..", help="Classes, the positive one last."),
)


def file_options(command: Command) -> Command:
    """Add the column options, handed to the command as one `columns` argument."""

    @wraps(command)
    def wrapper(
        label: str | None,
        model: tuple[str, ...],
        domain: str | None,
        weight: str | None,
        columns: str | None,
        classes: str | None,
        **others: Any,
    ) -> Any:
        said = Columns(label, model, domain, weight, columns, classes)
        return command(columns=said, **others)

    decorated: Any = wrapper
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return cast(Command, decorated)
