"""`fewlabels doctor FILE`: what was recognised, what is wrong and how to mend it."""

from __future__ import annotations

from pathlib import Path

import click

from fewlabels.cli.declare import takes
from fewlabels.cli.options import Input
from fewlabels.cli.output import Output
from fewlabels.cli.settings import Settings
from fewlabels.cli.streaming import Engine
from fewlabels.errors import UsageError


@click.command(short_help="What is in a file, what is wrong and how to mend it.")
@takes("source", Input, without=("reference",))
@takes("output", Output, "json", "write")
@takes("settings", Settings, "workers", workers="Who reads large files in parts.")
@takes("engine", Engine, "engine", "scheduler")
def doctor(source: Input, engine: Engine, settings: Settings, output: Output) -> None:
    """Say what each column of FILE is, what is wrong with it and how to mend it.

    The exit code is 2 where `fewlabels estimate` would refuse the file, and 0 where it would not.
    """
    output.check(source)

    streamed = engine.streams(source)
    if streamed is None:
        from fewlabels.data import diagnose

        diagnosis = diagnose(**source.reading())
    else:
        from fewlabels.streaming.diagnose_files import diagnose_files

        diagnosis = engine.run(diagnose_files, streamed, source, workers=settings.workers)

    def write_columns(path: Path) -> None:
        path.write_text(diagnosis.columns, encoding="utf-8")

    recognised = {"write": write_columns} if diagnosis.ok else {}
    output.save_all(diagnosis.to_dict, **recognised)
    output.show(diagnosis.to_dict, diagnosis.summary, named=False)
    if not diagnosis.ok:
        error = next(f.what for f in diagnosis.findings if f.severity == "error")
        raise UsageError(f"`fewlabels estimate` refuses {source.name!r}: {error}")
