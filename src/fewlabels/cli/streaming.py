"""Files that do not fit into memory: who reads them, how to go on, and what is shown meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from fewlabels.cli.declare import option
from fewlabels.cli.options import Input
from fewlabels.errors import UsageError

if TYPE_CHECKING:
    from fewlabels.streaming.executors import Engine as EngineName
    from fewlabels.streaming.passes import Progress

T = TypeVar("T")

STREAMED_BYTES = 64 << 20
"""Files of more than this are counted before they are read: they may have very many rows."""

STREAMED_ROWS = 250_000
"""More rows than these are streamed unless another engine is asked for; see also
`fewlabels.estimating.WHOLE_ROWS`, which is not imported here lest `--help` loads numpy."""


@dataclass(frozen=True)
class Engine:
    """What the options say of it; see `fewlabels.estimate_files`."""

    engine: str = option(
        "Read FILE whole (memory), or in parts, which more rows than 250,000 are by default.",
        type=click.Choice(["auto", "memory", "threads", "processes", "dask"]),
        default="auto",
    )
    scheduler: str | None = option("Dask cluster, as tcp://host:8786.", metavar="ADDRESS")
    resume: bool = option("Go on where a run that reads in parts was stopped.", is_flag=True)
    skip_bad_files: bool = option(
        "Leave out files that cannot be read or have other columns; they are counted.",
        is_flag=True,
    )
    posterior: str | None = option(
        "Write P(label) of every row as Parquet, a file per part.", metavar="FOLDER"
    )

    def __post_init__(self) -> None:
        if self.scheduler is not None and self.engine not in ("auto", "dask"):
            raise UsageError(
                f"--scheduler is the address of a Dask cluster, and --engine is {self.engine}; "
                "leave one of them out"
            )

    def streams(self, source: Input, held: str | None = None) -> EngineName | None:
        """The engine that reads the input in parts; None reads it whole.

        Parameters
        ----------
        held
            What the command was asked for that holds all items, in words; None: nothing.

        Raises
        ------
        UsageError
            If the options exclude each other.
        """
        asked = self._asked
        if source.votes is not None or source.file is None:
            held = "long votes (--votes), which are joined by item,"
        elif source.labels is not None:
            held = "labels kept apart (--labels), which are joined by item,"
        elif asked is None and _is_npz(source.file):
            return None
        if held is not None and asked is not None:
            raise UsageError(f"{asked} reads the files in parts, and {held} need them whole")
        if self.resume and source.file is not None and _is_standard_input(source.file):
            raise UsageError(
                "--resume goes on with a file, and standard input comes once; save it as a file"
            )
        if self.engine == "memory" or (asked is None and held is not None):
            return None
        if self.engine != "auto":
            return cast("EngineName", self.engine)
        if self.scheduler is not None:
            return "dask"
        if asked is not None or _is_large(source):
            return "threads"
        return None

    @property
    def _asked(self) -> str | None:
        """The option that needs the input in parts."""
        said = {
            f"--engine {self.engine}": self.engine not in ("auto", "memory"),
            "--scheduler": self.scheduler is not None,
            "--resume": self.resume,
            "--skip-bad-files": self.skip_bad_files,
            "--posterior": self.posterior is not None,
        }
        asked = [option for option, given in said.items() if given]
        if self.engine == "memory" and asked:
            raise UsageError(f"{asked[0]} reads the files in parts; leave out --engine memory")
        return asked[0] if asked else None

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
        assert source.file is not None
        if self.scheduler is not None:
            settings["workers"] = None
        with stream_bar() as progress:
            return reader(
                source.file,
                engine=name,
                scheduler=self.scheduler,
                progress=progress,
                positive=source.positive,
                **settings,
                **source.arguments(),
            )


def _is_npz(file: str) -> bool:
    path = Path(file)
    if path.is_dir():
        return any(path.glob("*.npz"))
    return path.suffix.lower() == ".npz"


def _is_standard_input(file: str) -> bool:
    from fewlabels.data.sources import is_standard_input

    return is_standard_input(file)


def _is_large(source: Input) -> bool:
    """Whether there are more rows than fit well into memory; whatever cannot be told is not."""
    assert source.file is not None
    path = Path(source.file)
    try:
        files = [p for p in path.iterdir() if p.is_file()] if path.is_dir() else [path]
        if sum(file.stat().st_size for file in files) <= STREAMED_BYTES // 8:
            return False
    except OSError:
        if not _is_standard_input(source.file):
            return False
    from fewlabels.errors import InputError
    from fewlabels.streaming.units import about_rows

    try:
        return about_rows(source.file) > STREAMED_ROWS
    except InputError:
        return False


@contextmanager
def stream_bar() -> Iterator[Callable[[Progress], None] | None]:
    """Show step, share, rate and time left on stderr; gives None where that is not a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.percentage:>3.0f}%  {task.fields[rate]}  {task.fields[left]}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(progress: Progress) -> None:
            if progress.step not in tasks:
                for task in tasks.values():
                    bar.update(task, visible=False)
                tasks[progress.step] = bar.add_task(progress.step, rate="", left="")
            bar.update(
                tasks[progress.step],
                completed=progress.done_bytes,
                total=progress.all_bytes,
                rate=rate_text(progress.rate),
                left=left_text(progress.seconds_left),
            )

        yield show


def rate_text(rate: float) -> str:
    """Rows per second in words."""
    if rate != rate:
        return ""
    for unit, size in (("million", 1e6), ("thousand", 1e3)):
        if rate >= size:
            return f"{rate / size:.1f} {unit} rows/s"
    return f"{rate:.0f} rows/s"


def left_text(seconds: float) -> str:
    """Time left in words."""
    if seconds != seconds:
        return ""
    whole = int(seconds + 0.5)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min left"
    return f"{whole // 60}:{whole % 60:02d} min left" if whole >= 60 else f"{whole} s left"
