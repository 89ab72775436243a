"""Judges of a system: `fewlabels score FILE`, and `fewlabels convert SOURCE OUT` of their logs."""

from __future__ import annotations

import click

from fewlabels.cli import terminal
from fewlabels.cli.input import Input
from fewlabels.cli.options import CHOICE, OUTPUT, Record, command, option, takes
from fewlabels.cli.output import Output, write_outputs
from fewlabels.cli.settings import Settings
from fewlabels.errors import UsageError, one_line


class Passing(Record):
    """What passes, where `fewlabels score` is asked."""

    positive: str | None = option(
        CHOICE,
        "The class that counts as a pass. By default the positive one of two; for numeric grades "
        "the mean grade.",
        "CLASS",
    )


@command(short_help="Pass rate of what judges evaluate, corrected for their mistakes.")
@takes("source", Input, without=("reference", "positive"))
@takes("passing", Passing)
@takes(
    "settings",
    Settings,
    "models",
    "method",
    "options",
    "confidence_level",
    "seed",
    "workers",
    models="Only these judges.",
)
@takes("output", Output, "json")
def score(source: Input, passing: Passing, settings: Settings, output: Output) -> None:
    """Estimate the pass rate, or mean grade, of the system that the judges in FILE evaluate.

    Shows the judges' own rates, that of the labels alone, that of the labels and each judge
    together (prediction-powered), and that of all judges together. A log with several criteria
    gets a score for each.
    """
    from fewlabels.data.sources import by_criterion
    from fewlabels.questions.score import scored

    each = [(None, None)] if source.file is None else by_criterion(source.file)
    arguments = settings.arguments("method", "confidence_level", "random_state", "workers")
    with terminal.progress_bar("scoring"):
        read = ((name, source.but(file=path).predictions(keep=[])) for name, path in each)
        found = scored(read, positive=passing.positive, models=settings.chosen(), **arguments)
    output.save_all(found.to_dict)
    output.show(found.to_dict, found.summary)


class Target(Record):
    """What `fewlabels convert` writes."""

    out: str | None = option(OUTPUT, metavar="OUT", file="table", positional=True, type=str)


@command(short_help="Turn a log, or any file, into a table with native columns.")
@takes("source", Input, without=("reference",))
@takes("target", Target)
@takes("output", Output, "raw_cells")
def convert(source: Input, target: Target, output: Output) -> None:
    """Write what FILE holds as OUT, a table of the native columns (label, y__, p__, ...).

    OUT ends in .csv or .parquet. A log of an evaluation tool becomes a row per item.
    """
    from fewlabels.data.write import native_columns

    if target.out is None:
        raise click.UsageError("Missing argument 'OUT'", click.get_current_context())
    with terminal.progress_bar("reading"):
        predictions = source.read(None)
    columns = native_columns(predictions)
    if not columns:
        raise UsageError("there is nothing to write")
    write_outputs({target.out: output.table(target.out, lambda: columns)})
    click.echo(predictions.summary(terminal.width()))
    click.echo(f"\nTable: {one_line(target.out)}")
    terminal.print_warnings(predictions.notes)
