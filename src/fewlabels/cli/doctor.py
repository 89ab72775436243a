"""`fewlabels doctor FILE`: what was recognised, what is wrong and how to mend it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from fewlabels.cli import terminal
from fewlabels.cli.options import Input, input_options, positive_option
from fewlabels.cli.output import json_text, json_writer, write_outputs
from fewlabels.cli.streaming import Engine, place_options, stream_bar
from fewlabels.cli.text import check_choice
from fewlabels.errors import UsageError
from fewlabels.wording import one_line

if TYPE_CHECKING:
    from fewlabels.engine.executors import Engine as EngineName
    from fewlabels.frames import Diagnosis


@click.command(short_help="What is in a file, what is wrong and how to mend it.")
@input_options
@positive_option
@click.option("--json", "json_path", metavar="PATH", help="Write JSON; - prints it alone.")
@click.option("--workers", type=click.IntRange(min=1), help="Who reads large files in parts.")
@place_options
def doctor(source: Input, engine: Engine, json_path: str | None, workers: int | None) -> None:
    """Say what each column of FILE is, what is wrong with it and how to mend it.

    The exit code is 2 where `fewlabels estimate` would refuse the file, and 0 where it would not.
    """
    path = None if json_path == "-" else json_path
    source.check({"--json": path})

    streamed = engine.streams(source)
    if streamed is None:
        from fewlabels.frames import diagnose

        diagnosis = diagnose(**source.arguments())
    else:
        diagnosis = _stream(source, engine, streamed, workers)
    classes = diagnosis.class_balance.get("classes", ())
    positive = _positive(source.positive, classes)
    answer = {**diagnosis.to_dict(), "positive": positive}
    if path is not None:
        write_outputs({path: json_writer(answer)})
    if json_path == "-":
        click.echo(json_text(answer), nl=False)
    else:
        click.echo(diagnosis.summary(terminal.width()))
        if positive is not None:
            click.echo(f"\nPositive class: {one_line(positive)}")
    if not diagnosis.ok:
        raise UsageError(f"`fewlabels estimate` refuses {source.name!r}: {_first_error(diagnosis)}")


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
            **source.columns.arguments(),
        )


def _positive(said: str | None, classes: Sequence[str]) -> str | None:
    """The class that is said to be positive, else the last of two; None where there is none."""
    if said is not None and classes:
        check_choice("class", said, classes)
        return said
    return classes[-1] if len(classes) == 2 else None


def _first_error(diagnosis: Diagnosis) -> str:
    return next(f.what for f in diagnosis.findings if f.severity == "error")
