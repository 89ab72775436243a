"""What a command reads: FILE, long votes beside it or alone, and which column is what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
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
    hard: tuple[str, ...] = ()
    score: tuple[str, ...] = ()
    confidence: tuple[str, ...] = ()
    domain: str | None = None
    weight: str | None = None
    columns: str | None = None
    classes: str | None = None
    no_label: tuple[str, ...] = ()
    same: tuple[str, ...] = ()

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `fewlabels.read_predictions` and `fewlabels.diagnose`."""
        from fewlabels.frames import parse_model_options, parse_pairs

        return {
            "label": self.label,
            "models": parse_model_options(self.model),
            "hard": parse_pairs("--hard", "COL", self.hard),
            "scores": parse_pairs("--score", "COL", self.score),
            "confidence": parse_pairs("--confidence", "COL", self.confidence),
            "domain": self.domain,
            "weight": self.weight,
            "columns": self.columns,
            "classes": comma_list(self.classes) if self.classes is not None else None,
            "no_label": self.no_label,
            "same": parse_pairs("--same", "CLASS", self.same),
        }


_OPTIONS = (
    click.option("--label", type=text, metavar="COL", help="Column of the known labels."),
    click.option(
        "--model",
        type=text,
        metavar="NAME=COL,COL",
        multiple=True,
        help="A classifier and its probability columns, one per class, or that of the positive "
        "class. Repeatable.",
    ),
    click.option(
        "--hard",
        type=text,
        metavar="NAME=COL",
        multiple=True,
        help="A classifier and its column of hard predictions (any words). Repeatable.",
    ),
    click.option(
        "--score",
        type=text,
        metavar="NAME=COL",
        multiple=True,
        help="A classifier and its column of scores, larger is more positive. Repeatable.",
    ),
    click.option(
        "--confidence",
        type=text,
        metavar="NAME=COL",
        multiple=True,
        help="A classifier with --hard and its column of how probable its own prediction is to "
        "it (two classes). Repeatable.",
    ),
    click.option("--domain", type=text, metavar="COL", help="Column of the domain."),
    click.option("--weight", type=text, metavar="COL", help="Column of the sampling weight."),
    click.option(
        "--columns",
        type=text,
        metavar="TOML",
        help="A file that says all of this; `fewlabels doctor FILE --write TOML` makes one.",
    ),
    click.option(
        "--classes", type=text, metavar="A,B,..", help="All classes, in the order of the columns."
    ),
    click.option(
        "--no-label",
        type=text,
        metavar="TEXT",
        multiple=True,
        help="A text that stands for an unknown label, beside N/A, ? and the like. Repeatable.",
    ),
    click.option(
        "--same",
        type=text,
        metavar="TEXT=CLASS",
        multiple=True,
        help="A text and the class that it means. Repeatable.",
    ),
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
    def wrapper(**given: Any) -> Any:
        said = {f.name: given.pop(f.name) for f in fields(Columns)}
        _check_mapped(said["model"])
        return command(columns=Columns(**said), **given)

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
    labels: str | None = None
    annotator: str | None = None
    answer: str | None = None
    reference: str | None = None

    def __post_init__(self) -> None:
        if (self.file or "")[:1] == (self.reference or "")[:1] == _DASH:
            raise UsageError("FILE and --reference are both standard input; save one as a file")

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.file or self.votes or ""

    def arguments(self) -> dict[str, Any]:
        """Arguments of `fewlabels.read_predictions` and `fewlabels.diagnose`."""
        names = ("votes", "duplicates", "item", "labels", "annotator", "answer", "positive")
        said = {name: getattr(self, name) for name in names}
        return {"source": self.file, **said, **self.columns.arguments()}

    def read(self, groups: Sequence[str] | None) -> Predictions:
        """The predictions, with some other columns, or all (None), as groups.

        Raises
        ------
        UsageError
            Where the positive class is none.
        """
        from fewlabels.frames import read_predictions
        from fewlabels.sources import against_the_rest

        found = read_predictions(keep=groups, **self.arguments())
        return against_the_rest(found, self.positive)

    def reference_of(self, predictions: Predictions) -> Predictions | None:
        """The labeled items of --reference in the terms of these predictions; None without."""
        from fewlabels.sources import reference_of

        if self.reference is None:
            return None
        return reference_of(self.reference, predictions, item=self.item, **self.columns.arguments())

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
        from fewlabels.frames.sources import path_of

        for path in (self.file, self.votes, self.labels, self.reference):
            if path is not None:
                check_outputs(outputs, source=path_of(path))


_DASH = "-"
"""FILE of standard input."""

_ALONE = ""
"""The value of --votes where FILE itself holds the votes."""

_INPUT = (
    click.argument("file", type=text, required=False, metavar="FILE"),
    click.option(
        "--format",
        "format_name",
        type=click.Choice(["csv", "tsv", "jsonl", "json", "parquet", "feather", "npz", "excel"]),
        help="What standard input is (FILE is -), where its content does not say it.",
    ),
    click.option(
        "--sheet",
        type=text,
        metavar="NAME",
        help="Which sheet of the workbook FILE; of other workbooks write book.xlsx#NAME.",
    ),
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
    click.option(
        "--labels",
        type=text,
        metavar="FILE",
        help="Labels kept apart: a table of item and label, joined by the item.",
    ),
    click.option(
        "--item",
        type=text,
        metavar="COL",
        help="Column that names the items; votes and labels are joined by it.",
    ),
    click.option(
        "--annotator", type=text, metavar="COL", help="Column of the annotator of a vote."
    ),
    click.option("--answer", type=text, metavar="COL", help="Column of the class voted for."),
)


def _with_details(file: str | None, format_name: str | None, sheet: str | None) -> str | None:
    """FILE with what the options say of it, behind a `#` as `frames.locate` has it."""
    details = [detail for detail in (format_name, sheet) if detail is not None]
    if file is None or not details:
        return file
    if format_name is not None and file != _DASH:
        raise UsageError(
            "--format says what standard input is (FILE is -), and a file says it by itself; leave "
            "it out"
        )
    if sheet is not None and format_name not in (None, "excel"):
        raise UsageError(f"--sheet is of workbooks, and --format says {format_name}; leave one out")
    return f"{file}#{details[-1]}"


def input_options(command: Command) -> Command:
    """Add FILE, votes and the column options, handed to the command as one `source` argument."""

    @wraps(command)
    def wrapper(
        file: str | None,
        format_name: str | None,
        sheet: str | None,
        votes: str | None,
        columns: Columns,
        **given: Any,
    ) -> Any:
        if file is None and not votes:
            missing = "Missing argument 'FILE'" + ("; --votes names none" if votes == "" else "")
            raise click.UsageError(missing, click.get_current_context())
        file = _with_details(file, format_name, sheet)
        if votes == _ALONE:
            file, votes = None, file
        if file is not None and votes is not None and file[:1] == votes[:1] == _DASH:
            raise UsageError("FILE and --votes are both standard input; save one as a file")
        names = ("duplicates", "item", "labels", "annotator", "answer")
        said = {name: given.pop(name) for name in names}
        return command(source=Input(file, votes, columns=columns, **said), **given)

    decorated: Any = file_options(wrapper)
    for option in reversed(_INPUT):
        decorated = option(decorated)
    return cast(Command, decorated)


def _source_option(name: str, metavar: str, about: str) -> Callable[[Command], Command]:
    """An option whose value becomes the field of the same name of the `source` argument."""

    def add(command: Command) -> Command:
        @wraps(command)
        def wrapper(source: Input, **others: Any) -> Any:
            return command(source=replace(source, **{name: others.pop(name)}), **others)

        option: Any = click.option(f"--{name}", type=text, metavar=metavar, help=about)
        return cast(Command, option(wrapper))

    return add


positive_option = _source_option(
    "positive",
    "CLASS",
    "The positive class; unless said, that of a known word (yes, 1, pass, spam ...), else "
    "the last. Of more than two it is judged against the rest.",
)
reference_option = _source_option(
    "reference",
    "FILE",
    "Labeled items of the same classifiers from elsewhere (a validation set, last month), "
    "read by the same options; the labels at hand decide how far it is trusted "
    "(docs/reference-data.md).",
)
