"""`fewlabels doctor FILE`: what was recognised, what is wrong and how to mend it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fewlabels.cli import terminal
from fewlabels.cli.options import Input, input_options, positive_option
from fewlabels.cli.output import Writer, json_text, json_writer, write_outputs
from fewlabels.cli.streaming import Engine, place_options, stream_bar
from fewlabels.cli.text import text
from fewlabels.errors import UsageError

if TYPE_CHECKING:
    from fewlabels.engine.executors import Engine as EngineName
    from fewlabels.frames import Diagnosis


@click.command(short_help="What is in a file, what is wrong and how to mend it.")
@input_options
@positive_option
@click.option("--json", "json_path", metavar="PATH", help="Write JSON; - prints it alone.")
@click.option(
    "--write",
    "toml_path",
    type=text,
    metavar="TOML",
    help="Write what was recognised as a file for --columns.",
)
@click.option("--workers", type=click.IntRange(min=1), help="Who reads large files in parts.")
@place_options
def doctor(
    source: Input,
    engine: Engine,
    json_path: str | None,
    toml_path: str | None,
    workers: int | None,
) -> None:
    """Say what each column of FILE is, what is wrong with it and how to mend it.

    The exit code is 2 where `fewlabels estimate` would refuse the file, and 0 where it would not.
    """
    path = None if json_path == "-" else json_path
    source.check({"--json": path, "--write": toml_path})

    streamed = engine.streams(source)
    if streamed is None:
        from fewlabels.frames import diagnose

        diagnosis = diagnose(**source.arguments())
    else:
        diagnosis = _stream(source, engine, streamed, workers)
    writers: dict[str, Writer] = {}
    if path is not None:
        writers[path] = json_writer(diagnosis.to_dict())
    if toml_path is not None and diagnosis.ok:
        writers[toml_path] = partial(_write_toml, diagnosis)
    write_outputs(writers)
    if json_path == "-":
        click.echo(json_text(diagnosis.to_dict()), nl=False)
    else:
        click.echo(diagnosis.summary(terminal.width()))
    if not diagnosis.ok:
        raise UsageError(f"`fewlabels estimate` refuses {source.name!r}: {_first_error(diagnosis)}")


def _write_toml(diagnosis: Diagnosis, path: Path) -> None:
    path.write_text(diagnosis.columns, encoding="utf-8")


def _stream(source: Input, engine: Engine, name: EngineName, workers: int | None) -> Diagnosis:
    """Look at parts of the files."""
    from fewlabels.engine.diagnose_files import diagnose_files

    assert source.file is not None
    with stream_bar() as progress:
        return diagnose_files(
            source.file,
            engine=name,
            workers=None if engine.scheduler is not None else workers,
            scheduler=engine.scheduler,
            progress=progress,
            positive=source.positive,
            **source.columns.arguments(),
        )


def _first_error(diagnosis: Diagnosis) -> str:
    return next(f.what for f in diagnosis.findings if f.severity == "error")
