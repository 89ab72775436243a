"""What a command reads: FILE, long votes beside it or alone, and which column is what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import click

from fewlabels.cli.options import INPUT, Record, comma_list, option
from fewlabels.errors import UsageError, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fewlabels.predictions import Predictions

SELECTS = "NAME"
"""Metavar of --model in commands that look at one classifier, where a name alone chooses it."""

_DASH = "-"
"""FILE of standard input."""

_ALONE = ""
"""The value of --votes where FILE itself holds the votes."""


class Columns(Record):
    """What the options say of a file's columns; None or empty where they say nothing."""

    label: str | None = option(INPUT, "Column of the known labels.", "COL")
    model: tuple[str, ...] = option(
        INPUT,
        "A classifier and its probability columns, one per class, or that of the positive "
        "class. Repeatable.",
        "NAME=COL,COL",
        (),
    )
    hard: tuple[str, ...] = option(
        INPUT,
        "A classifier and its column of hard predictions (any words). Repeatable.",
        "NAME=COL",
        (),
    )
    score: tuple[str, ...] = option(
        INPUT,
        "A classifier and its column of scores, larger is more positive. Repeatable.",
        "NAME=COL",
        (),
    )
    confidence: tuple[str, ...] = option(
        INPUT,
        "For a classifier with --hard: its column with the probability it gives its own "
        "prediction (two classes). Repeatable.",
        "NAME=COL",
        (),
    )
    domain: str | None = option(INPUT, "Column of the domain.", "COL")
    cluster: tuple[str, ...] = option(
        INPUT,
        "Column that says which rows belong together: ratings of a case, sentences of a document. "
        "Repeatable: several are crossed.",
        "COL",
        (),
    )
    weight: str | None = option(INPUT, "Column of the sampling weight.", "COL")
    columns: str | None = option(
        INPUT,
        "Read all these options from a file; `fewlabels doctor FILE --write TOML` makes one.",
        "TOML",
        file="read",
    )
    classes: str | None = option(INPUT, "All classes, in the order of the columns.", "A,B,..")
    no_label: tuple[str, ...] = option(
        INPUT,
        "A text that means an unknown label, besides N/A, ? and the like. Repeatable.",
        "TEXT",
        (),
    )
    same: tuple[str, ...] = option(
        INPUT, "A text in the file and the class it means. Repeatable.", "TEXT=CLASS", ()
    )

    @classmethod
    def of(cls, **values: Any) -> Self:
        """What the options say, where each --model maps columns."""
        _check_mapped(values["model"])
        return cls(**values)

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `fewlabels.read_predictions` and `fewlabels.diagnose`."""
        from fewlabels.data import parse_model_options, parse_pairs

        mapped = (*self.model, *self.hard, *self.score, *self.confidence)
        known = self.column_names() if any(text.count("=") > 1 for text in mapped) else ()
        return {
            "label": self.label,
            "models": parse_model_options(self.model, known),
            "hard": parse_pairs("--hard", "COL", self.hard, known),
            "scores": parse_pairs("--score", "COL", self.score, known),
            "confidence": parse_pairs("--confidence", "COL", self.confidence, known),
            "domain": self.domain,
            "cluster": self.cluster,
            "weight": self.weight,
            "columns": self.columns,
            "classes": comma_list(self.classes) if self.classes is not None else None,
            "no_label": self.no_label,
            "same": parse_pairs("--same", "CLASS", self.same),
        }

    def column_names(self) -> tuple[str, ...]:
        """The columns that there are, where that is known."""
        return ()


_TABLES = ("csv", "tsv", "jsonl", "json", "parquet", "feather", "npz", "excel")
"""Formats of tables; the others are those of logs."""


def _of_log(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """What is said of a log, by option, the criterion first; nothing where nothing is."""
    form = values.get("format_name")
    settings = {
        "people": None if values.get("people") == "auto" else values.get("people"),
        "repeats": None if values.get("repeats") == "one" else values.get("repeats"),
        "pass-from": values.get("pass_from"),
        "format": None if form in _TABLES else form,
    }
    given = [(name, value) for name, value in settings.items() if value is not None]
    return (
        [("criterion", values.get("criterion")), *given] if given or values.get("criterion") else []
    )


def _check_mapped(models: Sequence[str]) -> None:
    """Refuse a name without columns, which selects: another option does, or none."""
    context = click.get_current_context()
    known = {param.name: param for param in context.command.get_params(context)}
    if known["model"].metavar == SELECTS:
        return
    for given in models:
        if "=" not in given:
            selects = "--models NAME selects, " if "models" in known else ""
            raise UsageError(
                f"--model {quoted(given)} names no columns: {selects}--model NAME=COL maps"
            )


class Input(Columns):
    """What a command reads; `file` is None where there are votes alone, `votes` where none are."""

    file: str | None = option(INPUT, metavar="FILE", file="read", positional=True)
    positive: str | None = option(
        INPUT,
        "The positive class. By default a known word (yes, 1, pass, spam ...), else the last "
        "class. Of more than two classes, it is judged against the rest.",
        "CLASS",
    )
    labels: tuple[str, ...] = option(
        INPUT,
        "Labels in a file of their own: a record of `fewlabels label`, or a table of item and "
        "label, joined by the item. Repeatable.",
        "FILE",
        (),
        file="read",
    )
    labels_as: Literal["votes", "counts"] | None = option(
        INPUT,
        "Use labels of several annotators as counts to judge by, or as votes of classifiers. By "
        "default, different labels of one item are an error.",
    )
    reference: str | None = option(
        INPUT,
        "Labeled items of the same classifiers from elsewhere (a validation set, last month), "
        "read by the same options; the labels in FILE decide how much it counts "
        "(docs/reference-data.md).",
        "FILE",
        file="read",
    )
    votes: str | None = option(
        INPUT,
        "Votes, one per row: item, annotator, label. Without a value, FILE itself holds them.",
        "[VOTES]",
        file="read",
        is_flag=False,
        flag_value=_ALONE,
    )
    duplicates: Literal["refuse", "keep", "last"] = option(
        INPUT,
        "Several votes of an annotator on one item: refuse them, keep all, or keep the last.",
        default="refuse",
    )
    item: str | None = option(
        INPUT, "Column of item names; votes and labels are joined by it.", "COL"
    )
    annotator: str | None = option(INPUT, "Column of the annotator of a vote.", "COL")
    answer: str | None = option(INPUT, "Column of the class voted for.", "COL")
    format_name: (
        Literal[
            "csv", "tsv", "jsonl", "json", "parquet", "feather", "npz", "excel", "inspect",
            "promptfoo", "mlflow", "mlflow-table", "langfuse", "phoenix", "scores", "label-studio",
            "lm-eval", "deepeval", "argilla", "doccano",
        ]
        | None
    ) = option(
        INPUT,
        "Format of standard input (FILE is -) or of a log, if its content does not show it.",
        flag="--format",
    )  # fmt: skip
    criterion: str | None = option(
        INPUT,
        "For logs (docs/llm-judges.md): the criterion to look at; A,B if people and judges use "
        "different names for it.",
        "NAME",
    )
    people: Literal["auto", "majority", "histogram", "votes"] = option(
        INPUT,
        "For logs: how to use several people's labels of one item. By default one label if they "
        "agree on all items, else counts.",
        default="auto",
    )
    repeats: Literal["one", "all"] = option(
        INPUT, "For logs: use one of an item's repeats (epochs), or all as rows.", default="one"
    )
    pass_from: float | None = option(
        INPUT, "For logs: grades from this number on count as a pass.", "X"
    )
    sheet: str | None = option(
        INPUT, "Sheet of the workbook FILE; for other workbooks write book.xlsx#NAME.", "NAME"
    )

    @classmethod
    def of(cls, **values: Any) -> Self:
        """The files that the options name, and what they say of them."""
        _check_mapped(values["model"])
        file, votes = values.pop("file"), values.pop("votes", None)
        form, sheet = values.get("format_name"), values.get("sheet")
        of_log = _of_log(values)
        if file is None and not votes:
            missing = "Missing argument 'FILE'" + ("; --votes names none" if votes == "" else "")
            raise click.UsageError(missing, click.get_current_context())
        if of_log:
            if file is None or sheet is not None:
                why = "--sheet is of a workbook" if file is not None else "there is no FILE"
                raise UsageError(
                    f"--{next(n for n, v in of_log if v)} is of a log, and {why}; leave one out"
                )
            # Behind a `#`, as whoever opens files has it.
            behind = "&".join([of_log[0][1] or "", *(f"{n}={v}" for n, v in of_log[1:])])
            file = f"{file}#{behind}"
        elif file is not None and (form or sheet) is not None:
            if form is not None and file != _DASH:
                raise UsageError(
                    "--format says what standard input (FILE is -) or a log is, and a table says "
                    "it by itself; leave it out"
                )
            if sheet is not None and form not in (None, "excel"):
                raise UsageError(
                    f"--sheet is of workbooks, and --format says {form}; leave one out"
                )
            # Behind a `#`, as whoever opens files has it.
            file = f"{file}#{form if sheet is None else sheet}"
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
        names = ("votes", "duplicates", "item", "labels_as", "annotator", "answer", "positive")
        return {name: getattr(self, name) for name in names} | {
            "source": self.file,
            "labels": list(self.labels) or None,
            **self.arguments(),
        }

    def predictions(self, keep: Sequence[str] | None) -> Predictions:
        """The predictions as they are read, the positive class where it stands."""
        from fewlabels.data import read_predictions

        return read_predictions(keep=keep, **self.reading())

    def read(self, groups: Sequence[str] | None) -> Predictions:
        """The predictions, with some other columns, or all (None), as groups.

        Raises
        ------
        UsageError
            Where the positive class is none.
        """
        from fewlabels.data.inputs import against_the_rest

        return against_the_rest(self.predictions(groups), self.positive)

    def reference_of(self, predictions: Predictions) -> Predictions | None:
        """The labeled items of --reference in the terms of these predictions; None without."""
        from fewlabels.data.inputs import reference_of

        if self.reference is None:
            return None
        return reference_of(self.reference, predictions, item=self.item, **self.arguments())

    def names_classifier(self, value: str) -> bool:
        """Whether native columns are those of a classifier of this name, which may hold a `=`."""
        front = (f"p__{value}__", f"y__{value}", f"s__{value}")
        return any(name in front[1:] or name.startswith(front[0]) for name in self.column_names())

    def column_names(self) -> tuple[str, ...]:
        """The columns of all files."""
        from fewlabels.data import column_names

        paths = [path for path in (self.file, self.votes) if path is not None]
        return tuple(name for path in paths for name in column_names(path))

    def names_items(self) -> bool:
        """Whether items have names: those that votes are joined by, or a column of that name."""
        from fewlabels.estimates import ITEM

        return self.votes is not None or ITEM in self.column_names()

    @property
    def is_standard_input(self) -> bool:
        """Whether FILE is `-`, or what `-` is said to be."""
        from fewlabels.data.sources import is_standard_input

        return self.file is not None and is_standard_input(self.file)
