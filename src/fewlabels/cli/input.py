"""Input of a command and its settings: FILE and its columns, the method, the engine.

Start at `Input`; `Settings` are the library's arguments; `Engine` is for files read in parts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, get_args

import click

from fewlabels.cli.interrupts import advise
from fewlabels.cli.options import (
    CHOICE,
    HOW,
    INPUT,
    OUTPUT,
    RUNNING,
    Record,
    check_choice,
    comma_list,
    fields_of,
    method_names,
    option,
)
from fewlabels.cli.output import stream_bar
from fewlabels.errors import InputError, UsageError, one_line, quoted

if TYPE_CHECKING:
    from fewlabels.predictions import Predictions
    from fewlabels.streaming.executors import Engine as EngineName
    from fewlabels.streaming.posterior_files import PosteriorFolder

T = TypeVar("T")

STREAMED_ROWS = 250_000
"""Files of more rows are streamed unless another engine is requested."""

SELECTS = "NAME"
"""Metavar of --model in commands that look at one classifier, where a name alone chooses it."""

_DASH = "-"
"""FILE of standard input."""

_ALONE = ""
"""The value of --votes where FILE itself holds the votes."""

_Table = Literal["csv", "tsv", "jsonl", "json", "parquet", "feather", "npz", "excel"]
_Log = Literal[
    "inspect", "promptfoo", "mlflow", "mlflow-table", "langfuse", "phoenix", "scores",
    "label-studio", "lm-eval", "deepeval", "argilla", "doccano", "judgebench", "helm",
    "openai-evals", "alpaca-eval", "sagemaker",
]  # fmt: skip

_SAID, _ROWS = "fewlabels.columns", "fewlabels.rows"
"""Keys of the click context: the settings from the file of --columns, and the rows to read."""


def _key(name: str) -> str:
    """The key in the file of --columns of a field of `Input`."""
    return (fields_of(Input)[name].flag or name).lstrip("-").replace("-", "_")


def _besides() -> list[str]:
    """The fields of `Input` that the file of --columns may set, and the library does not know."""
    from fewlabels.data.options import COLUMN_KEYS

    return [n for n in fields_of(Input) if _key(n) not in {*COLUMN_KEYS, "file", "columns"}]


def _read_columns(context: click.Context, _: click.Parameter, path: str | None) -> str | None:
    """Take the defaults of all options of `Input` from the file of --columns.

    What the library knows goes to it; the others are checked as if they had been typed.
    """
    if path is None or context.resilient_parsing:
        return path
    from fewlabels.data.options import column_file

    fields = {_key(name): name for name in _besides()}
    context.meta[_SAID], values = column_file(path, fields)
    params = {made.name: made.param for made in context.command.made if made.record is Input}  # type: ignore[attr-defined]
    defaults = {}
    for key, value in values.items():
        number, several = fields[key] == "pass_from", fields_of(Input)[fields[key]].default == ()
        one = "a number" if number else "a text in quotes"
        kinds = (int, float) if number else str
        if several and isinstance(value, str):
            value = [value]
        elif several:
            one = "a list of texts in quotes"
        items = value if several and isinstance(value, list) else [value]
        if isinstance(value, bool) or not all(isinstance(item, kinds) for item in items):
            raise InputError(f"{path}: `{key}` must be {one}; got {quoted(value)}")
        param = params.get(fields[key])
        if param is not None:
            try:
                param.type_cast_value(context, value)
            except click.BadParameter as error:
                raise InputError(f"{path}: {error.format_message()}") from None
            defaults[fields[key]] = value
    context.default_map = {**(context.default_map or {}), **defaults}
    return path


class Input(Record):
    """What a command reads; `file` is None if there are only votes, `votes` if there are none."""

    label: str | None = option(INPUT, "Column of the known labels.", "COL")
    model: tuple[str, ...] = option(
        INPUT,
        "A classifier and its probability columns, one per class, or that of the positive class.",
        "NAME=COL,COL",
        (),
    )
    logits: tuple[str, ...] = option(
        INPUT,
        "A classifier and its columns of logits or log-probabilities, one per class.",
        "NAME=COL,COL",
        (),
        rare=True,
    )
    hard: tuple[str, ...] = option(
        INPUT,
        "A classifier and its column of predicted classes.",
        "NAME=COL",
        (),
    )
    score: tuple[str, ...] = option(
        INPUT,
        "A classifier and its column of scores; larger is more positive.",
        "NAME=COL",
        (),
    )
    confidence: tuple[str, ...] = option(
        INPUT,
        "For a classifier with --hard: its column with the probability it gives its own "
        "prediction (two classes).",
        "NAME=COL",
        (),
        rare=True,
    )
    task: tuple[str, ...] = option(
        INPUT,
        "One of several tasks (tags of a text, criteria of a rubric) and its columns, labels and "
        "predictions; other options then name what is left of their names. By default those that "
        "the names show. COL alone: the column that says of which task a row is (docs/tasks.md).",
        "NAME=COL,COL",
        (),
        rare=True,
    )
    domain: str | None = option(INPUT, "Column of the domain.", "COL", rare=True)
    cluster: tuple[str, ...] = option(
        INPUT,
        "Column that says which rows belong together: ratings of a case, sentences of a document. "
        "Several are crossed.",
        "COL",
        (),
        rare=True,
    )
    weight: str | None = option(INPUT, "Column of the sampling weight.", "COL", rare=True)
    stratum: str | None = option(
        INPUT,
        "Column of the strata within which items to label were drawn at random; labels count by "
        "their stratum's share of the items.",
        "COL",
        rare=True,
    )
    columns: str | None = option(
        INPUT,
        "Read these options from a file; `fewlabels doctor FILE --write TOML` makes one.",
        "TOML",
        file="read",
        is_eager=True,
        callback=_read_columns,
    )
    classes: str | None = option(
        INPUT, "All classes, in the order of the columns.", "A,B,..", rare=True
    )
    no_label: tuple[str, ...] = option(
        INPUT,
        "A text that means an unknown label, besides N/A, ? and the like.",
        "TEXT",
        (),
        rare=True,
    )
    same: tuple[str, ...] = option(
        INPUT, "A text in the file and the class it means.", "TEXT=CLASS", (), rare=True
    )

    file: str | None = option(INPUT, metavar="FILE", file="read", positional=True)
    positive: str | None = option(
        INPUT,
        "The positive class, against all others. By default a known word (yes, 1, spam ...), else "
        "the last of two.",
        "CLASS",
    )
    join: tuple[str, ...] = option(
        INPUT,
        "Files of further classifiers (or a pattern or folder), joined to FILE by the item, or row "
        "by row; "
        "classifiers without a name are called by their files.",
        "FILE..",
        (),
        file="read",
        rare=True,
        spreads=True,
    )
    labels: tuple[str, ...] = option(
        INPUT,
        "Labels in a file of their own: a record of `fewlabels label`, or a table of item and "
        "label.",
        "FILE",
        (),
        file="read",
    )
    labels_as: Literal["votes", "counts"] | None = option(
        INPUT,
        "Use labels of several annotators as counts to judge by, or as votes of classifiers. By "
        "default, different labels of one item are an error.",
        rare=True,
    )
    reference: str | None = option(
        INPUT,
        "Labeled items of the same classifiers from elsewhere (a validation set, last month), "
        "read by the same options; the labels in FILE decide how much it counts "
        "(docs/reference-data.md).",
        "FILE",
        file="read",
        rare=True,
    )
    votes: str | None = option(
        INPUT,
        "Votes, one per row: item, annotator, label. Alone: FILE holds them.",
        "[VOTES]",
        file="read",
        is_flag=False,
        flag_value=_ALONE,
    )
    duplicates: Literal["refuse", "keep", "last"] = option(
        INPUT,
        "Several votes of an annotator on one item: refuse them, keep all, or keep the last.",
        default="refuse",
        rare=True,
    )
    items: tuple[str, ...] = option(
        INPUT, "Columns that name an item together; votes, labels and files are joined by them.",
        "COL", (), flag="--item", rare=True,
    )  # fmt: skip
    annotator: str | None = option(INPUT, "Column of the annotator of a vote.", "COL", rare=True)
    answer: str | None = option(INPUT, "Column of the class voted for.", "COL", rare=True)
    format_name: Literal[_Table, _Log] | None = option(
        INPUT,
        "Format of standard input (FILE is -) or of a log, if its content does not show it: "
        f"{', '.join([*get_args(_Table), *get_args(_Log)])}.",
        "FORMAT",
        flag="--format",
        rare=True,
    )
    criterion: str | None = option(
        INPUT,
        "For logs (docs/llm-judges.md): the criterion to look at; A,B if people and judges use "
        "different names for it.",
        "NAME",
        rare=True,
    )
    people: Literal["auto", "majority", "histogram", "votes"] = option(
        INPUT,
        "For logs: how to use several people's labels of one item. By default one label if they "
        "agree on all items, else counts.",
        default="auto",
        rare=True,
    )
    repeats: Literal["one", "all"] = option(
        INPUT,
        "For logs: use one of an item's repeats (epochs), or all as rows.",
        default="one",
        rare=True,
    )
    pass_from: float | None = option(
        INPUT, "For logs: grades from this number on count as a pass.", "X", rare=True
    )
    no_header: bool = option(
        INPUT,
        "The first row of FILE is an item; its columns are called c1, c2, ...",
        default=False,
        rare=True,
    )
    sheet: str | None = option(
        INPUT,
        "Sheet of the workbook FILE; for other workbooks write book.xlsx#NAME.",
        "NAME",
        rare=True,
    )

    where: str | None = option(
        INPUT,
        'Only rows of FILE with "date >= 2026-09-01".',
        "CONDITION",
    )
    query: str | None = option(
        INPUT,
        "Read what this query gives; FILE is the address of a database, as sqlite:///file.db.",
        "SQL",
        rare=True,
    )

    @classmethod
    def from_values(cls, **values: Any) -> Self:
        """The input from the values of the options, checked."""
        context = click.get_current_context()
        params = {param.name: param for param in context.command.get_params(context)}
        maps = "model" in params and params["model"].metavar != SELECTS
        for text in values["model"] if maps else ():
            if "=" not in text:
                selects = "--models NAME selects, " if "models" in params else ""
                raise UsageError(
                    f"--model {quoted(text)} names no columns: {selects}--model NAME=COL maps"
                )
        file, votes = values.pop("file"), values.pop("votes", None)
        behind: str | None
        if file is None and not votes:
            missing = "Missing argument 'FILE'" + ("; --votes names none" if votes == "" else "")
            raise click.UsageError(missing, context)
        form, sheet = values.get("format_name"), values.get("sheet")
        fields = fields_of(cls)
        of_log = {
            _key(name).replace("_", "-"): value
            for name in ("people", "repeats", "pass_from", "format_name")
            if (value := values.get(name)) not in (None, fields[name].default, *get_args(_Table))
        }
        criterion = values.get("criterion")
        if criterion or of_log:
            if file is None or sheet is not None:
                why = "--sheet is of a workbook" if file is not None else "there is no FILE"
                first = "criterion" if criterion else next(iter(of_log))
                raise UsageError(f"--{first} is of a log, and {why}; leave one out")
            behind = "&".join([criterion or "", *(f"{n}={v}" for n, v in of_log.items())])
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
            behind = form if sheet is None else sheet
        else:
            behind = None
        if values.get("no_header"):
            if behind is not None or file is None:
                raise UsageError("--no-header is of a table in a file of text; leave it out")
            behind = "no-header"
        if behind is not None:  # the form in which files are opened
            file = f"{file}#{behind}"
        if votes == _ALONE:
            file, votes = None, file
        for flag, other in (("--votes", votes), ("--reference", values.get("reference"))):
            if (file or "")[:1] == (other or "")[:1] == _DASH:
                raise UsageError(f"FILE and {flag} are both standard input; save one as a file")
        values["columns"] = context.meta.get(_SAID)
        return cls(file=file, votes=votes, **values)

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `fewlabels.read_predictions` and `fewlabels.diagnose`."""
        from fewlabels.data.options import parse_model_options, parse_pairs, parse_task_options

        mapped = (
            *self.model, *self.logits, *self.hard, *self.score, *self.confidence, *self.task,
        )  # fmt: skip
        names = self.column_names() if any(text.count("=") > 1 for text in mapped) else ()
        return {
            "label": self.label,
            "models": parse_model_options(self.model, names),
            "logits": parse_model_options(self.logits, names, "--logits"),
            "hard": parse_pairs("--hard", "COL", self.hard, names),
            "scores": parse_pairs("--score", "COL", self.score, names),
            "confidence": parse_pairs("--confidence", "COL", self.confidence, names),
            "domain": self.domain,
            "cluster": self.cluster,
            "weight": self.weight,
            "stratum": self.stratum,
            "columns": self.columns,
            "classes": comma_list(self.classes) if self.classes is not None else None,
            "no_label": self.no_label,
            "same": parse_pairs("--same", "CLASS", self.same),
            **parse_task_options(self.task, names),
        }

    def to_toml(self) -> str:
        """What the file of --columns says besides columns."""
        fields = fields_of(Input)
        table = {_key(n): v for n in _besides() if (v := getattr(self, n)) != fields[n].default}
        return "".join(f"{k} = {json.dumps(v, ensure_ascii=False)}\n" for k, v in table.items())

    @property
    def item(self) -> str | None:
        """The column of item names; "A,B" are two that name an item together."""
        return ",".join(self.items) or None

    @property
    def place(self) -> Any:
        """FILE and which of its rows are read; None where it holds the votes."""
        return None if self.file is None else self._chosen(self.file)

    @property
    def _read_votes(self) -> Any:
        alone = self.file is None and self.votes is not None
        return self._chosen(self.votes) if alone else self.votes  # type: ignore[arg-type]

    def _chosen(self, file: str) -> Any:
        """The same object each time in a command: what a query gives is read once."""
        if self.where is None and self.query is None and "://" not in file:
            return file
        from fewlabels.data.sources import source

        held = click.get_current_context().meta.setdefault(_ROWS, {})
        key = (file, self.where, self.query)
        if key not in held:
            held[key] = source(file, where=self.where, query=self.query)
        return held[key]

    @property
    def name(self) -> str:
        """Name of the input in messages."""
        return self.file or self.votes or ""

    def reading(self) -> dict[str, Any]:
        """All arguments of `fewlabels.read_predictions` and `fewlabels.diagnose`."""
        names = ("duplicates", "item", "labels_as", "annotator", "answer", "positive")
        return {name: getattr(self, name) for name in names} | {
            "source": self.place,
            "votes": self._read_votes,
            "labels": list(self.labels) or None,
            "join": list(self.join) or None,
            **self.arguments(),
        }

    def read(self, groups: Sequence[str] | None, *, tasks: bool = False) -> Predictions:
        """The predictions, with some other columns, or all (None), as groups.

        Several tasks are refused unless the command takes `tasks`.
        """
        from fewlabels.data.inputs import against_the_rest, refuse_tasks
        from fewlabels.data.read import read_predictions

        read = read_predictions(keep=groups, **self.reading())
        if not tasks:
            refuse_tasks(read, f"`fewlabels {click.get_current_context().info_name}`")
        return against_the_rest(read, self.positive)

    def read_reference_for(self, predictions: Predictions, *keep: str) -> Predictions:
        """The labeled items of --reference in the terms of these predictions; groups to keep."""
        from fewlabels.data.inputs import reference_of

        return reference_of(self.reference, predictions, keep, item=self.item, **self.arguments())

    def names_classifier(self, value: str) -> bool:
        """Whether native columns are those of a classifier of this name, which may hold a `=`."""
        front = (f"p__{value}__", f"y__{value}", f"s__{value}")
        return any(name in front[1:] or name.startswith(front[0]) for name in self.column_names())

    def column_names(self) -> tuple[str, ...]:
        """The columns of all files."""
        from fewlabels.data.read import column_names

        reading = (self.place, self._read_votes)
        return tuple(name for one in reading if one is not None for name in column_names(one))

    def names_items(self) -> bool:
        """Whether items have names: those that votes are joined by, or a column of that name."""
        from fewlabels.estimates import ITEM

        return self.votes is not None or ITEM in self.column_names()

    @property
    def is_standard_input(self) -> bool:
        """Whether FILE is `-`, or what `-` is said to be."""
        from fewlabels.data.sources import is_standard_input

        return self.file is not None and is_standard_input(self.file)


ESTIMATING = ("method", "confidence_level", "estimand", "random_state", "workers")
"""Settings of every estimate, as the library calls them."""


class Settings(Record):
    """Method, groups, classifiers, intervals, randomness; each command takes some of them."""

    models: str | None = option(CHOICE, "Only these classifiers.", "A,B,..")
    by: tuple[str, ...] = option(CHOICE, "By group too.", "COL", ())
    method: str = option(
        HOW, "How labels are inferred (see `fewlabels methods`).", "METHOD", "auto"
    )
    options: tuple[str, ...] = option(
        HOW,
        "A setting of the method, as in --method ssme-kde --option bandwidth=scott; `fewlabels "
        "methods METHOD` lists them.",
        "NAME=VALUE",
        (),
        flag="--option",
        rare=True,
    )
    confidence_level: float = option(HOW, "Of the intervals.", "LEVEL", 0.95)
    estimand: Literal["population", "sample"] = option(
        HOW,
        "Estimate for the population the items come from, or for these items only.",
        default="population",
        rare=True,
    )
    seed: int = option(
        HOW,
        "Random seed; the same seed gives the same answer.",
        default=0,
        at_least=0,
        rare=True,
    )
    workers: int | None = option(RUNNING, "Threads; the answer is the same.", at_least=1, rare=True)

    def arguments(self, *names: str, reference: str | None = None) -> dict[str, Any]:
        """Some of the settings as keyword arguments of the library, which calls a seed otherwise.

        `method` is a name, or a label model where settings of it were given; `reference` is what
        else the method is to learn from.

        Examples
        --------
        >>> Settings(seed=3).arguments("estimand", "random_state")
        {'estimand': 'population', 'random_state': 3}
        """
        values: dict[str, Any] = {**vars(self), "random_state": self.seed}
        if "method" in names:
            from fewlabels.methods.registry import check_reference, named
            from fewlabels.methods.settings import model_of

            check_reference(named(self.method, method_names()), reference)
            values["method"] = model_of(self.method, self.options)
        return {name: values[name] for name in names}

    def groups(self, source: Input) -> list[str]:
        """Columns to group by; a name may hold a comma where a file has such a column."""
        return comma_list(self.by, verbatim=source.column_names()) if self.by else []

    def chosen(self, registered: Collection[str] | None = None) -> list[str] | None:
        """The classifiers that --models names, None being all; each must be known, if any is."""
        if self.models is None:
            return None
        names = comma_list(self.models, verbatim=registered or ())
        for name in names if registered is not None else ():
            check_choice("model", name, registered or ())
        return names


class Engine(Record):
    """How files that do not fit into memory are read; see `fewlabels.estimate_files`."""

    posterior: str | None = option(
        OUTPUT,
        "Write P(label) of every row as Parquet, a file per part; or as a table of a database, "
        "sqlite:///file.db#TABLE.",
        "FOLDER",
        file="folder",
        rare=True,
    )
    engine: Literal["auto", "memory", "threads", "processes", "dask"] = option(
        RUNNING,
        "Read FILE whole (memory) or in parts. By default in parts from 250,000 rows on.",
        default="auto",
        rare=True,
    )
    scheduler: str | None = option(
        RUNNING, "Dask cluster, as tcp://host:8786.", "ADDRESS", rare=True
    )
    resume: bool = option(
        RUNNING,
        "Continue a run that was stopped (when reading in parts).",
        default=False,
        rare=True,
    )
    skip_bad_files: bool = option(
        RUNNING,
        "Skip files that cannot be read or have other columns; reports how many.",
        default=False,
        rare=True,
    )

    def streams(self, source: Input, held: str | None = None) -> EngineName | None:
        """The engine that reads the input in parts; None reads it whole.

        `held` names the requested option that needs all items at once, if there is one.
        """
        if self.scheduler is not None and self.engine not in ("auto", "dask"):
            raise UsageError(
                f"--scheduler is the address of a Dask cluster, and --engine is {self.engine}; "
                "leave one of them out"
            )
        requested = self.requested
        if held is not None:
            held = f"{held} would"
        if source.votes is not None or source.file is None:
            held = "long votes (--votes), which are joined by item,"
        elif source.join:
            held = "further files (--join), which are joined by item,"
        elif source.labels:
            held = "labels kept apart (--labels), which are joined by item,"
        elif source.stratum is not None:
            held = "strata (--stratum), whose shares are those of all items,"
        elif requested is None:
            path = Path(source.file)
            if any(path.glob("*.npz")) if path.is_dir() else path.suffix.lower() == ".npz":
                return None
        if held is not None and requested is not None:
            raise UsageError(f"{requested} reads the files in parts, and {held} need them whole")
        if self.resume and source.is_standard_input:
            raise UsageError(
                "--resume goes on with a file, and standard input comes once; save it as a file"
            )
        if self.engine == "memory" or (requested is None and held is not None):
            return None
        if self.engine != "auto":
            return self.engine
        if self.scheduler is not None:
            return "dask"
        return "threads" if requested is not None or _is_large(source) else None

    @property
    def requested(self) -> str | None:
        """The option that needs the input in parts, if one does."""
        provided = {
            f"--engine {self.engine}": self.engine not in ("auto", "memory"),
            "--scheduler": self.scheduler is not None,
            "--resume": self.resume,
            "--skip-bad-files": self.skip_bad_files,
            "--posterior": self.posterior is not None,
        }
        requested = next((option for option, there in provided.items() if there), None)
        if self.engine == "memory" and requested is not None:
            raise UsageError(f"{requested} reads the files in parts; leave out --engine memory")
        return requested

    def classifiers(self, source: Input, chosen: list[str] | None) -> list[str]:
        """Names of the classifiers that a stream will judge: those chosen, or all."""
        if chosen is not None:
            return chosen
        from fewlabels.data.options import column_options
        from fewlabels.streaming.units import SeveralTasksError, lay_out

        options = column_options(**source.arguments())
        try:
            layout = lay_out(source.place, options, skip_bad_files=self.skip_bad_files)
        except SeveralTasksError as several:
            return list(several.models)
        return list(layout.roles.models)

    @contextmanager
    def folder(self) -> Iterator[PosteriorFolder]:
        """The folder of --posterior, a draft until it is put in its place."""
        assert self.posterior is not None
        from fewlabels.streaming.posterior_files import PosteriorFolder

        made = PosteriorFolder(self.posterior)
        with made.held():
            yield made

    def reading(self) -> dict[str, Any]:
        """Arguments of readers that resume, or leave files out."""
        return {"resume": self.resume, "skip_bad_files": self.skip_bad_files}

    def run(self, reader: Callable[..., T], name: EngineName, source: Input, **settings: Any) -> T:
        """Call a streaming reader, and show its progress.

        `reader` takes the arguments of files as `fewlabels.estimate_files` does, `name` is what
        `streams` gave, and `settings` are its other arguments; a cluster has its own `workers`.
        """
        if self.scheduler is not None:
            settings["workers"] = None
        if "resume" in settings and not source.is_standard_input:
            begun = time.time()
            advise(lambda: f"; {_kept(begun)}")
        from fewlabels.data.options import column_options

        with stream_bar() as progress:
            return reader(
                source.place,
                engine=name,
                scheduler=self.scheduler,
                progress=progress,
                positive=source.positive,
                columns=column_options(**source.arguments()),
                **settings,
            )


def _kept(begun: float) -> str:
    """What a run that began at this time has saved, as checkpoints, and how to go on."""
    from fewlabels.streaming.checkpoint import default_folder

    folder, saved = default_folder(), 0.0
    with suppress(OSError):
        saved = max((path.stat().st_mtime for path in folder.glob("*.checkpoint")), default=0.0)
    if saved < begun:
        return "nothing was saved yet"
    return (
        f"what was done up to {max(0.0, time.time() - saved):.0f} s ago is kept in "
        f"{one_line(str(folder))}: the same command with --resume goes on from there"
    )


def _is_large(source: Input) -> bool:
    """Whether there are more rows than fit well into memory; False where it cannot be told."""
    from fewlabels.data.sources import path_of

    assert source.file is not None
    path = Path(path_of(source.file))
    try:
        if path.is_file() and not path.stat().st_size:
            return False
    except (OSError, ValueError):
        return False
    from fewlabels.errors import InputError
    from fewlabels.streaming.units import about_rows

    try:
        return about_rows(source.place) > STREAMED_ROWS
    except InputError:
        return False
