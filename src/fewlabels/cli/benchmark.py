"""`fewlabels benchmark NAME --data DIR`: the protocols of the papers on any predictions."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from fewlabels.cli import terminal
from fewlabels.cli.options import Columns, file_options
from fewlabels.cli.spelling import in_options
from fewlabels.cli.text import comma_list, text
from fewlabels.errors import InputError, UsageError, one_line, quoted

if TYPE_CHECKING:
    from fewlabels.bench.results import Results

EXIT_INTERRUPTED = 130
DISAGREEMENT = "disagreement"
"""The benchmark of label histograms: it has maps and concentrations where others have methods."""


@click.command(short_help="Compare methods by a protocol of the papers, on labeled data.")
@click.argument("name", required=False, type=text)
@click.option("--list", "list_protocols", is_flag=True, help="List the protocols and stop.")
@click.option(
    "--data", type=text, multiple=True, metavar="PATH", help="File or folder. Repeatable."
)
@click.option(
    "--out", type=text, metavar="DIR", help="Output, a new folder. Default: ./benchmark-NAME."
)
@click.option("--resume", is_flag=True, help="Go on where a run was interrupted, or add to it.")
@click.option(
    "--workers", type=click.IntRange(min=1), help="Processes; the answer is the same. Default: all."
)
@click.option(
    "--runs", type=click.IntRange(min=1), help="Repetitions of each setting: 50, trained sets 500."
)
@click.option(
    "--methods",
    type=text,
    multiple=True,
    metavar="A,B,..",
    help="Rows of the table; with settings as in 'ssme-kde[compat=official]'. Repeatable.",
)
@click.option(
    "--metrics", type=text, multiple=True, metavar="A,B,..", help="What is estimated. Repeatable."
)
@click.option(
    "--n-labeled",
    type=text,
    multiple=True,
    metavar="N,N,..",
    help="How many labels: 20, 50 and 100, in some protocols 20 alone. Repeatable.",
)
@click.option(
    "--n-unlabeled",
    type=text,
    multiple=True,
    metavar="N,N,..",
    help="How many unlabeled items: 1,000. Repeatable.",
)
@click.option(
    "--labels-per-item",
    type=text,
    multiple=True,
    metavar="N,N,..",
    help="Disagreement: labels that a validation item keeps, 2 and 5. Repeatable.",
)
@click.option(
    "--sampler",
    type=click.Choice(["released", "uniform"]),
    help="Labels as the released SSME code draws them, or uniformly until all classes are there.",
)
@click.option("--seed", type=click.IntRange(min=0), help="0 gives the splits of the papers.")
@click.option(
    "--estimand",
    type=click.Choice(["population", "sample"]),
    help="The metric on what the items come from, or on these items: sample, but population "
    "with --confidence-level.",
)
@click.option(
    "--confidence-level",
    type=float,
    help="Compute intervals too, and their coverage; for the population, as the truth is that of "
    "other items.",
)
@click.option(
    "--levels",
    type=text,
    multiple=True,
    metavar="A,B,..",
    help="Levels of what the protocol varies. Repeatable.",
)
@click.option("--curve-runs", type=click.IntRange(min=0), help="Draws per curve size; 0: no curve.")
@click.option("--by", type=text, multiple=True, metavar="COL", help="Within groups. Repeatable.")
@click.option(
    "--bins",
    type=text,
    multiple=True,
    metavar="COL=N,N,..",
    help="Cut a numeric --by column. Repeatable.",
)
@click.option(
    "--models", type=text, multiple=True, metavar="A,B,..", help="Only these. Repeatable."
)
@click.option(
    "--exclude-models",
    type=text,
    multiple=True,
    metavar="A,B,..",
    help="All but these. Repeatable.",
)
@click.option(
    "--where", type=text, multiple=True, metavar="COL=VALUE", help="Only these rows. Repeatable."
)
@click.option(
    "--most-items",
    type=click.IntRange(min=2),
    help="Rows of a file that are used at most, drawn at random: 200,000.",
)
@click.option("--slice-by", type=text, metavar="COL", help="Trained sets: where ranges are cut.")
@click.option("--train-rows", type=click.IntRange(min=2), help="Trained sets: rows of each.")
@click.option("--truth-rows", type=click.IntRange(min=1), help="Trained sets: rows of the truth.")
@file_options
def benchmark(
    name: str | None,
    list_protocols: bool,
    data: tuple[str, ...],
    out: str | None,
    resume: bool,
    workers: int | None,
    models: tuple[str, ...],
    exclude_models: tuple[str, ...],
    where: tuple[str, ...],
    most_items: int | None,
    columns: Columns,
    **options: Any,
) -> int:
    """Compare methods by protocol NAME (a name, or a .toml file) on data whose labels are known.

    Every run hides most labels, estimates, and compares with the other half of the data. Unless
    options say otherwise, it takes 1,000 unlabeled items and 20, 50 or 100 labels from one half,
    and there are 50 runs. Finished cells are kept in the output folder: after an interruption,
    --resume goes on.
    """
    if list_protocols:
        return _list()
    if name is None:
        raise UsageError("name a protocol; `fewlabels benchmark --list` lists them")
    asked = _options(options)
    rows = _pairs("--where", where)

    from fewlabels.bench.folder import folder_of

    chosen = _benchmark(name)
    try:
        folder = folder_of(out, chosen.name)
        with terminal.progress_bar(f"benchmark {chosen.name}") as progress:
            results = chosen.run(
                data,
                folder,
                resume=resume,
                workers=workers,
                models=comma_list(models),
                exclude_models=comma_list(exclude_models),
                where=rows,
                most_items=most_items,
                columns={k: v for k, v in columns.arguments().items() if v},
                progress=progress,
                **asked,
            )
        _report(results, chosen, folder)
    except KeyboardInterrupt:
        click.echo(_interrupted(name, out, folder), err=True)
        return EXIT_INTERRUPTED
    except (InputError, UsageError) as error:
        raise type(error)(_as_options(str(error))) from None
    return 0


class _Benchmark(NamedTuple):
    """What a name stands for: how it is run, summed up and shown."""

    name: str
    run: Callable[..., Results]
    summarise: Callable[[Results], dict[str, Any]]
    render: Callable[[Any], dict[str, str]]
    render_text: Callable[..., str]


def _benchmark(name: str) -> _Benchmark:
    if name == DISAGREEMENT:
        from fewlabels.bench import disagreement
        from fewlabels.report import disagreement as shown

        return _Benchmark(
            name, disagreement.run, disagreement.summarise, shown.render, shown.render_text
        )
    from fewlabels.bench import load, run, summarise
    from fewlabels.report.benchmark import render
    from fewlabels.report.benchmark_text import render_text

    return _Benchmark(load(name).name, partial(run, name), summarise, render, render_text)


def _as_options(line: str) -> str:
    """A line of the engine, which names arguments of Python, as the command line spells them."""
    return in_options(line, benchmark)


def _interrupted(name: str, out: str | None, folder: Path) -> str:
    if not (folder / "manifest.json").exists():
        return "interrupted before anything was computed"
    place = "" if out is None else f" --out {shlex.quote(out)}"
    return (
        "interrupted; what is finished is kept, go on with: fewlabels benchmark "
        f"{one_line(shlex.quote(name) + place)} --resume"
    )


def _list() -> int:
    from fewlabels.bench import load, names
    from fewlabels.bench.disagreement.protocol import PROTOCOL

    for protocol in (*map(load, names()), PROTOCOL):
        click.echo(f"{protocol.name:24}{protocol.title}")
    return 0


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options that were given, as fields of a protocol."""
    from fewlabels.bench.methods import split_methods

    said = {k: v for k, v in given.items() if v is not None and v != ()}
    for field in ("metrics", "levels", "by"):
        if field in said:
            said[field] = comma_list(said[field])
    for field in ("n_labeled", "n_unlabeled", "labels_per_item"):
        if field in said:
            option = f"--{field.replace('_', '-')}"
            said[field] = [_number(option, n, int) for n in comma_list(said[field])]
    if "methods" in said:
        said["methods"] = split_methods(",".join(said["methods"]))
    if "bins" in said:
        said["bins"] = {
            column: [_number("--bins", e, float) for e in comma_list(edges)]
            for column, edges in _pairs("--bins", said["bins"]).items()
        }
    return said


def _number(option: str, value: str, kind: type) -> Any:
    try:
        return kind(value)
    except ValueError:
        what = "whole numbers" if kind is int else "numbers"
        raise UsageError(f"{option} must be {what}; got {quoted(value)}") from None


def _pair(option: str, value: str) -> tuple[str, str]:
    column, equals, rest = value.partition("=")
    if not (column and equals):
        raise UsageError(f"{option} must be COL=VALUE; got {quoted(value)}")
    return column, rest


def _pairs(option: str, values: tuple[str, ...]) -> dict[str, str]:
    """Column -> the rest; one column cannot mean two things."""
    found: dict[str, str] = {}
    for column, rest in (_pair(option, value) for value in values):
        if found.get(column, rest) != rest:
            raise UsageError(f"{option} names column {quoted(column)} twice; name it once")
        found[column] = rest
    return found


def _report(results: Results, chosen: _Benchmark, folder: Path) -> None:
    """Write the report and print its main table."""
    from fewlabels.bench.files import replace_text
    from fewlabels.bench.folder import writing
    from fewlabels.report.benchmark_notes import notes

    summary = chosen.summarise(results)
    files = chosen.render(dict(summary))
    with writing(folder):
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            replace_text(folder / path, content)
    width = terminal.width()
    click.echo(chosen.render_text(dict(summary), width=width))
    for dataset in results.datasets:
        for note in dataset.notes:
            click.echo("\n" + fill(one_line(_as_options(f"{dataset.name}: {note}")), width))
    click.echo(_said_of_intervals(results, width), nl=False)
    terminal.print_warnings(map(_as_options, notes(summary)))
    where = one_line(str(folder))
    click.echo(f"\nReport: {where}/report.html, {where}/report.md\nData:   {where}/results.csv")


def _said_of_intervals(results: Results, width: int) -> str:
    """Which truth the intervals are for, where it can be the one that they are compared with."""
    protocol = results.protocol
    if protocol.confidence_level is None or protocol.estimand != "population":
        return ""
    if protocol.factor == "labels":
        return ""
    note = (
        "Intervals are for the population that the items come from (estimand population), since "
        "the truth is that of other items; --estimand sample asks for those of the very items."
    )
    return "\n" + fill(note, width) + "\n"
