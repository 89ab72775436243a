"""How an answer is computed: the method and its settings, randomness, and who does the work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from fewlabels.cli.input import Input
from fewlabels.cli.interrupts import advise
from fewlabels.cli.options import (
    CHOICE,
    HOW,
    OUTPUT,
    RUNNING,
    Record,
    check_choice,
    comma_list,
    method_names,
    option,
)
from fewlabels.cli.terminal import stream_bar
from fewlabels.errors import UsageError

if TYPE_CHECKING:
    from fewlabels.methods.base import LabelModel
    from fewlabels.streaming.executors import Engine as EngineName
    from fewlabels.streaming.posterior_files import PosteriorFolder

T = TypeVar("T")

STREAMED_ROWS = 250_000
"""More rows than these are not read whole unless another engine is asked for."""


class Settings(Record):
    """Method, groups, classifiers, intervals, randomness; each command takes some of them."""

    models: str | None = option(CHOICE, "Only these classifiers.", "A,B,..")
    by: tuple[str, ...] = option(CHOICE, "By group too. Repeatable.", "COL", ())
    method: str = option(
        HOW, "How labels are inferred; `fewlabels methods` lists the methods.", "METHOD", "auto"
    )
    options: tuple[str, ...] = option(
        HOW,
        "A setting of the method, as in --method ssme-kde --option bandwidth=scott; `fewlabels "
        "methods METHOD` lists them. Repeatable.",
        "NAME=VALUE",
        (),
        flag="--option",
    )
    confidence_level: float = option(HOW, "Confidence level of the intervals.", default=0.95)
    estimand: Literal["population", "sample"] = option(
        HOW,
        "Estimate for the population the items come from, or for these items only.",
        default="population",
    )
    seed: int = option(
        HOW,
        "Random seed; the same seed gives the same answer.",
        default=0,
        at_least=0,
    )
    workers: int | None = option(RUNNING, "Threads; the answer is the same.", at_least=1)

    def arguments(self, *names: str, reference: str | None = None) -> dict[str, Any]:
        """Some of the settings as keyword arguments of the library, which calls a seed otherwise.

        Parameters
        ----------
        names
            Those arguments; `method` is a name, or a label model where settings of it were given.
        reference
            What else the method is to learn from.

        Raises
        ------
        UsageError
            Where the method or a setting of it is unknown, or it takes no reference.

        Examples
        --------
        >>> Settings(seed=3).arguments("estimand", "random_state")
        {'estimand': 'population', 'random_state': 3}
        """
        known: dict[str, Any] = {**vars(self), "random_state": self.seed}
        if "method" in names:
            known["method"] = self._method(reference)
        return {name: known[name] for name in names}

    def _method(self, reference: str | None) -> str | LabelModel:
        from fewlabels.methods.registry import check_reference
        from fewlabels.methods.settings import model_of

        check_choice("method", self.method, method_names())
        check_reference(self.method, reference)
        return model_of(self.method, self.options)

    def groups(self, source: Input) -> list[str]:
        """Columns to group by; a name may hold a comma where a file has such a column."""
        return comma_list(self.by, whole=source.column_names()) if self.by else []

    def chosen(self, known: Collection[str] | None = None) -> list[str] | None:
        """The classifiers that --models names, None being all; each must be known, if any is."""
        if self.models is None:
            return None
        names = comma_list(self.models, whole=known or ())
        for name in names if known is not None else ():
            check_choice("model", name, known or ())
        return names


class Engine(Record):
    """How files that do not fit into memory are read; see `fewlabels.estimate_files`."""

    posterior: str | None = option(
        OUTPUT, "Write P(label) of every row as Parquet, a file per part.", "FOLDER", file="folder"
    )
    engine: Literal["auto", "memory", "threads", "processes", "dask"] = option(
        RUNNING,
        "Read FILE whole (memory) or in parts. By default in parts from 250,000 rows on.",
        default="auto",
    )
    scheduler: str | None = option(RUNNING, "Dask cluster, as tcp://host:8786.", "ADDRESS")
    resume: bool = option(
        RUNNING, "Continue a run that was stopped (when reading in parts).", default=False
    )
    skip_bad_files: bool = option(
        RUNNING,
        "Skip files that cannot be read or have other columns; reports how many.",
        default=False,
    )

    @classmethod
    def of(cls, **values: Any) -> Self:
        """How files are read, where the options agree."""
        engine = cls(**values)
        if engine.scheduler is not None and engine.engine not in ("auto", "dask"):
            raise UsageError(
                f"--scheduler is the address of a Dask cluster, and --engine is {engine.engine}; "
                "leave one of them out"
            )
        return engine

    def streams(self, source: Input, held: str | None = None) -> EngineName | None:
        """The engine that reads the input in parts; None reads it whole.

        Parameters
        ----------
        held
            The option that needs all items at once, of what was asked; None: none does.

        Raises
        ------
        UsageError
            If the options exclude each other.
        """
        asked = self._asked()
        if held is not None:
            held = f"{held} would"
        if source.votes is not None or source.file is None:
            held = "long votes (--votes), which are joined by item,"
        elif source.labels:
            held = "labels kept apart (--labels), which are joined by item,"
        elif asked is None:
            path = Path(source.file)
            if any(path.glob("*.npz")) if path.is_dir() else path.suffix.lower() == ".npz":
                return None
        if held is not None and asked is not None:
            raise UsageError(f"{asked} reads the files in parts, and {held} need them whole")
        if self.resume and source.is_standard_input:
            raise UsageError(
                "--resume goes on with a file, and standard input comes once; save it as a file"
            )
        if self.engine == "memory" or (asked is None and held is not None):
            return None
        if self.engine != "auto":
            return self.engine
        if self.scheduler is not None:
            return "dask"
        return "threads" if asked is not None or _is_large(source) else None

    @property
    def asks_for_parts(self) -> bool:
        """Whether an option needs the input in parts."""
        return self._asked() is not None

    def _asked(self) -> str | None:
        """The option that needs the input in parts."""
        given = {
            f"--engine {self.engine}": self.engine not in ("auto", "memory"),
            "--scheduler": self.scheduler is not None,
            "--resume": self.resume,
            "--skip-bad-files": self.skip_bad_files,
            "--posterior": self.posterior is not None,
        }
        asked = next((option for option, there in given.items() if there), None)
        if self.engine == "memory" and asked is not None:
            raise UsageError(f"{asked} reads the files in parts; leave out --engine memory")
        return asked

    def classifiers(self, source: Input, chosen: list[str] | None) -> list[str]:
        """Names of the classifiers that a stream will judge: those chosen, or all."""
        if chosen is not None:
            return chosen
        from fewlabels.data.options import column_options
        from fewlabels.streaming.units import lay_out

        assert source.file is not None
        options = column_options(**source.arguments())
        layout = lay_out(source.file, options, skip_bad_files=self.skip_bad_files)
        return list(layout.roles.models)

    @contextmanager
    def folder(self) -> Iterator[PosteriorFolder | None]:
        """The folder of --posterior, a draft until it is put in its place; None without it."""
        if self.posterior is None:
            yield None
            return
        from fewlabels.streaming.posterior_files import PosteriorFolder

        made = PosteriorFolder(self.posterior)
        with made.held():
            yield made

    def reading(self) -> dict[str, Any]:
        """Arguments of what goes on, or leaves files out."""
        return {"resume": self.resume, "skip_bad_files": self.skip_bad_files}

    def run(self, reader: Callable[..., T], name: EngineName, source: Input, **settings: Any) -> T:
        """Call what reads files in parts, and show how far it is.

        Parameters
        ----------
        reader
            `fewlabels.estimate_files`, or another that takes the arguments of files as it does.
        name
            What `streams` gives.
        settings
            Its other arguments; `workers` are the cluster's own where there is one.
        """
        if self.scheduler is not None:
            settings["workers"] = None
        if "resume" in settings and not source.is_standard_input:
            advise(lambda: "; the same command with --resume goes on from what is saved")
        from fewlabels.data.options import column_options

        with stream_bar() as progress:
            return reader(
                source.file,
                engine=name,
                scheduler=self.scheduler,
                progress=progress,
                positive=source.positive,
                columns=column_options(**source.arguments()),
                **settings,
            )


def _is_large(source: Input) -> bool:
    """Whether there are more rows than fit well into memory; whatever cannot be told is not."""
    assert source.file is not None
    path = Path(source.file)
    try:
        files = [p for p in path.iterdir() if p.is_file()] if path.is_dir() else [path]
        if not any(file.stat().st_size for file in files):
            return False
    except (OSError, ValueError):
        if not source.is_standard_input:
            return False
    from fewlabels.errors import InputError
    from fewlabels.streaming.units import about_rows

    try:
        return about_rows(source.file) > STREAMED_ROWS
    except InputError:
        return False
