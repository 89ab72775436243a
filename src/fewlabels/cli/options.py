"""What a command reads: FILE, long votes beside it or alone, and which column is what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from fewlabels.cli.output import check_outputs
from fewlabels.cli.text import comma_list, text
from fewlabels.errors import UsageError
from fewlabels.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fewlabels.predictions import Predictions

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


def _check_mapped(models: Sequence[str]) -> None:
    """Refuse a name without columns, which selects: another option does, or none."""
    known = {parameter.name: parameter for parameter in click.get_current_context().command.params}
    if known["model"].metavar == SELECTS:
        return
    for said in models:
        if "=" not in said:
            selects = "--models NAME selects, " if "models" in known else ""
            raise UsageError(
                f"--model {quoted(said)} names no columns: {selects}--model NAME=COL maps"
            )


SELECTS = "NAME"
"""Metavar of --model in commands that look at one classifier, where a name alone chooses it."""


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
        _check_mapped(model)
        said = Columns(label, model, domain, weight, columns, classes)
        return command(columns=said, **others)

    decorated: Any = wrapper
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return cast(Command, decorated)


@dataclass(frozen=True)
class Input:
    """What a command reads; `file` is None where there are votes alone, `votes` where none are."""

    file: str | None
    votes: str | None
    duplicates: str
    item: str | None
    columns: Columns
    positive: str | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.file or self.votes or ""

    def arguments(self) -> dict[str, Any]:
        """Arguments of `fewlabels.read_predictions` and `fewlabels.diagnose`."""
        said = {"votes": self.votes, "duplicates": self.duplicates, "item": self.item}
        return {"source": self.file, **said, **self.columns.arguments()}

    def read(self, groups: Sequence[str] | None) -> Predictions:
        """The predictions, with some other columns, or all (None), as groups.

        Raises
        ------
        UsageError
            Where the positive class is none.
        """
        from fewlabels.frames import read_predictions
        from fewlabels.sources import predictions_of

        found = read_predictions(keep=groups, **self.arguments())
        return predictions_of(found, positive=self.positive)

    def column_names(self) -> tuple[str, ...]:
        """The columns of all files."""
        from fewlabels.frames import column_names

        return tuple(
            name
            for path in (self.file, self.votes)
            if path is not None
            for name in column_names(path)
        )

    def check(self, outputs: Mapping[str, str | None]) -> None:
        """Prove that every output can be written, and would replace no input.

        Raises
        ------
        UsageError
            Where it cannot be written, is an input, or is named twice.
        """
        for path in (self.file, self.votes):
            if path is not None:
                check_outputs(outputs, source=path)


_ALONE = ""
"""The value of --votes where FILE itself holds the votes."""

_INPUT = (
    click.argument("file", type=text, required=False, metavar="FILE"),
    click.option(
        "--votes",
        type=text,
        is_flag=False,
        flag_value=_ALONE,
        metavar="[VOTES]",
        help="Long votes: item, annotator, label. Alone it says that FILE holds them.",
    ),
    click.option(
        "--duplicates",
        type=click.Choice(["refuse", "keep", "last"]),
        default="refuse",
        show_default=True,
        help="Several votes of an annotator on an item: an error, all count, or the last.",
    ),
    click.option("--item", type=text, metavar="COL", help="Column of the item, to join votes by."),
)


def input_options(command: Command) -> Command:
    """Add FILE, votes and the column options, handed to the command as one `source` argument."""

    @wraps(command)
    def wrapper(
        file: str | None,
        votes: str | None,
        duplicates: str,
        item: str | None,
        columns: Columns,
        **others: Any,
    ) -> Any:
        if file is None and not votes:
            missing = "Missing argument 'FILE'" + ("; --votes names none" if votes == "" else "")
            raise click.UsageError(missing, click.get_current_context())
        if votes == _ALONE:
            file, votes = None, file
        return command(source=Input(file, votes, duplicates, item, columns), **others)

    decorated: Any = file_options(wrapper)
    for option in reversed(_INPUT):
        decorated = option(decorated)
    return cast(Command, decorated)


def positive_option(command: Command) -> Command:
    """Add the positive class, which becomes that of the `source` argument."""

    @wraps(command)
    def wrapper(source: Input, positive: str | None, **others: Any) -> Any:
        return command(source=replace(source, positive=positive), **others)

    decorated: Any = click.option(
        "--positive",
        type=text,
        metavar="CLASS",
        help="The positive class; of two, the last. Of more, it is judged against the rest.",
    )(wrapper)
    return cast(Command, decorated)
