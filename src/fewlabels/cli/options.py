"""What a command reads: FILE, long votes beside it or alone, and which column is what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from fewlabels.cli.declare import option, takes
from fewlabels.cli.text import comma_list
from fewlabels.errors import UsageError, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewlabels.predictions import Predictions

SELECTS = "NAME"
"""Metavar of --model in commands that look at one classifier, where a name alone chooses it."""

_DASH = "-"
"""FILE of standard input."""

_ALONE = ""
"""The value of --votes where FILE itself holds the votes."""


@dataclass(frozen=True)
class Columns:
    """What the options say of a file's columns; None or empty where they say nothing."""

    label: str | None = option("Column of the known labels.", metavar="COL")
    model: tuple[str, ...] = option(
        "A classifier and its probability columns, one per class, or that of the positive "
        "class. Repeatable.",
        metavar="NAME=COL,COL",
        multiple=True,
    )
    hard: tuple[str, ...] = option(
        "A classifier and its column of hard predictions (any words). Repeatable.",
        metavar="NAME=COL",
        multiple=True,
    )
    score: tuple[str, ...] = option(
        "A classifier and its column of scores, larger is more positive. Repeatable.",
        metavar="NAME=COL",
        multiple=True,
    )
    confidence: tuple[str, ...] = option(
        "A classifier with --hard and its column of how probable its own prediction is to "
        "it (two classes). Repeatable.",
        metavar="NAME=COL",
        multiple=True,
    )
    domain: str | None = option("Column of the domain.", metavar="COL")
    weight: str | None = option("Column of the sampling weight.", metavar="COL")
    columns: str | None = option(
        "A file that says all of this; `fewlabels doctor FILE --write TOML` makes one.",
        metavar="TOML",
    )
    classes: str | None = option("All classes, in the order of the columns.", metavar="A,B,..")
    no_label: tuple[str, ...] = option(
        "A text that stands for an unknown label, beside N/A, ? and the like. Repeatable.",
        metavar="TEXT",
        multiple=True,
    )
    same: tuple[str, ...] = option(
        "A text and the class that it means. Repeatable.", metavar="TEXT=CLASS", multiple=True
    )

    @classmethod
    def of(cls, **values: Any) -> Columns:
        """What the options say, where each --model maps columns."""
        _check_mapped(values["model"])
        return cls(**values)

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `fewlabels.read_predictions` and `fewlabels.diagnose`."""
        from fewlabels.data import parse_model_options, parse_pairs

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


file_options = takes("columns", Columns)
"""Add the column options, handed to the command as one `columns` argument."""


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


@dataclass(frozen=True)
class Input(Columns):
    """What a command reads; `file` is None where there are votes alone, `votes` where none are."""

    file: str | None = option(positional=True, metavar="FILE")
    format_name: str | None = option(
        "What standard input is (FILE is -), where its content does not say it.",
        "--format",
        type=click.Choice(["csv", "tsv", "jsonl", "json", "parquet", "feather", "npz", "excel"]),
    )
    sheet: str | None = option(
        "Which sheet of the workbook FILE; of other workbooks write book.xlsx#NAME.",
        metavar="NAME",
    )
    votes: str | None = option(
        "Long votes: item, annotator, label. Alone it says that FILE holds them.",
        is_flag=False,
        flag_value=_ALONE,
        metavar="[VOTES]",
    )
    duplicates: str = option(
        "Several votes of an annotator on an item: an error, all count, or the last.",
        type=click.Choice(["refuse", "keep", "last"]),
        default="refuse",
    )
    labels: str | None = option(
        "Labels kept apart: a table of item and label, joined by the item.", metavar="FILE"
    )
    item: str | None = option(
        "Column that names the items; votes and labels are joined by it.", metavar="COL"
    )
    annotator: str | None = option("Column of the annotator of a vote.", metavar="COL")
    answer: str | None = option("Column of the class voted for.", metavar="COL")
    positive: str | None = option(
        "The positive class; unless said, that of a known word (yes, 1, pass, spam ...), else "
        "the last. Of more than two it is judged against the rest.",
        metavar="CLASS",
    )
    reference: str | None = option(
        "Labeled items of the same classifiers from elsewhere (a validation set, last month), "
        "read by the same options; the labels at hand decide how far it is trusted "
        "(docs/reference-data.md).",
        metavar="FILE",
    )

    @classmethod
    def of(cls, **values: Any) -> Input:
        """The files that the options name, and what they say of them."""
        _check_mapped(values["model"])
        file, votes = values.pop("file"), values.pop("votes")
        if file is None and not votes:
            missing = "Missing argument 'FILE'" + ("; --votes names none" if votes == "" else "")
            raise click.UsageError(missing, click.get_current_context())
        file = _with_details(file, values.pop("format_name"), values.pop("sheet"))
        if votes == _ALONE:
            file, votes = None, file
        for option_name, other in (("--votes", votes), ("--reference", values.get("reference"))):
            if (file or "")[:1] == (other or "")[:1] == _DASH:
                raise UsageError(
                    f"FILE and {option_name} are both standard input; save one as a file"
                )
        return cls(file=file, votes=votes, **values)

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.file or self.votes or ""

    def reading(self) -> dict[str, Any]:
        """All arguments of `fewlabels.read_predictions` and `fewlabels.diagnose`."""
        names = ("votes", "duplicates", "item", "labels", "annotator", "answer", "positive")
        return {name: getattr(self, name) for name in names} | {
            "source": self.file,
            **self.arguments(),
        }

    def read(self, groups: Sequence[str] | None) -> Predictions:
        """The predictions, with some other columns, or all (None), as groups.

        Raises
        ------
        UsageError
            Where the positive class is none.
        """
        from fewlabels.data import read_predictions
        from fewlabels.data.inputs import against_the_rest

        found = read_predictions(keep=groups, **self.reading())
        return against_the_rest(found, self.positive)

    def reference_of(self, predictions: Predictions) -> Predictions | None:
        """The labeled items of --reference in the terms of these predictions; None without."""
        from fewlabels.data.inputs import reference_of

        if self.reference is None:
            return None
        return reference_of(self.reference, predictions, item=self.item, **self.arguments())

    def column_names(self) -> tuple[str, ...]:
        """The columns of all files."""
        from fewlabels.data import column_names

        return tuple(
            name
            for path in (self.file, self.votes)
            if path is not None
            for name in column_names(path)
        )

    @property
    def files(self) -> list[str]:
        """Where everything that is read lies, without what a name says of the content."""
        from fewlabels.data.sources import path_of

        named = (self.file, self.votes, self.labels, self.reference)
        return [path_of(path) for path in named if path is not None]


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
