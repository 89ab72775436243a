"""On data whose truth is known: `fewlabels benchmark NAME --data DIR`, and `fewlabels demo`."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import click

from fewlabels.cli import interrupts, terminal
from fewlabels.cli.input import Columns
from fewlabels.cli.options import (
    CHOICE,
    HOW,
    INPUT,
    OUTPUT,
    RUNNING,
    Record,
    also_named,
    comma_list,
    command,
    in_options,
    option,
    takes,
)
from fewlabels.cli.output import (
    Writer,
    json_writer,
    of_this_command,
    write_outputs,
)
from fewlabels.cli.settings import Settings
from fewlabels.errors import InputError, UsageError, one_line, quoted

if TYPE_CHECKING:
    from fewlabels.bench.results import Results


class Data(Record):
    """Which data a benchmark runs on, and where."""

    name: str | None = option(INPUT, metavar="[NAME]", file="read", positional=True)
    list_protocols: bool = option(
        OUTPUT, "List the protocols and stop.", default=False, flag="--list"
    )
    data: tuple[str, ...] = option(INPUT, "File or folder. Repeatable.", "PATH", (), file="read")
    where: tuple[str, ...] = option(INPUT, "Only these rows. Repeatable.", "COL=VALUE", ())
    most_items: int | None = option(
        INPUT,
        "Most rows of a file that are used, drawn at random. Default: 200,000.",
        at_least=2,
    )
    models: tuple[str, ...] = option(CHOICE, "Only these. Repeatable.", "A,B,..", ())
    exclude_models: tuple[str, ...] = option(CHOICE, "All but these. Repeatable.", "A,B,..", ())
    out: str | None = option(
        OUTPUT, "Output, a new folder. Default: ./benchmark-NAME.", "DIR", file="folder"
    )
    resume: bool = option(
        RUNNING, "Continue a run that was interrupted, or add to it.", default=False
    )
    workers: int | None = option(
        RUNNING, "Processes; the answer is the same. Default: all.", at_least=1
    )


class Protocol(Record):
    """Fields of a protocol that the command line sets otherwise; see `fewlabels.bench`."""

    methods: tuple[str, ...] = option(
        CHOICE,
        "Rows of the table; with settings as in 'ssme-kde[compat=official]'. Repeatable.",
        "A,B,..",
        (),
    )
    metrics: tuple[str, ...] = option(CHOICE, "What is estimated. Repeatable.", "A,B,..", ())
    by: tuple[str, ...] = option(CHOICE, "Within groups. Repeatable.", "COL", ())
    bins: tuple[str, ...] = option(
        CHOICE, "Cut a numeric --by column. Repeatable.", "COL=N,N,..", ()
    )
    levels: tuple[str, ...] = option(
        CHOICE, "Levels of the factor that the protocol varies. Repeatable.", "A,B,..", ()
    )
    slice_by: str | None = option(CHOICE, "Trained sets: where ranges are cut.", "COL")
    runs: int | None = option(
        HOW, "Repetitions of each setting. Default: 50, trained sets 500.", at_least=1
    )
    n_labeled: tuple[str, ...] = option(
        HOW,
        "How many labels. Default: 20, 50 and 100; in some protocols only 20. Repeatable.",
        "N,N,..",
        (),
    )
    n_unlabeled: tuple[str, ...] = option(
        HOW, "How many unlabeled items. Default: 1,000. Repeatable.", "N,N,..", ()
    )
    labels_per_item: tuple[str, ...] = option(
        HOW,
        "Disagreement: labels per validation item. Default: 2 and 5. Repeatable.",
        "N,N,..",
        (),
    )
    sampler: Literal["released", "uniform"] | None = option(
        HOW,
        "Labels as the released SSME code draws them, or uniformly until all classes are there.",
    )
    seed: int | None = option(HOW, "0 gives the splits of the papers.", at_least=0)
    estimand: Literal["population", "sample"] | None = option(
        HOW,
        "Truth on the population that the items come from, or on these items. Default: sample, but "
        "population with --confidence-level.",
    )
    confidence_level: float | None = option(
        HOW,
        "Also compute intervals and their coverage; for the population, as the truth is from other "
        "items.",
    )
    curve_runs: int | None = option(HOW, "Draws per curve size; 0: no curve.", at_least=0)
    train_rows: int | None = option(HOW, "Trained sets: rows of each.", at_least=2)
    truth_rows: int | None = option(HOW, "Trained sets: rows of the truth.", at_least=1)

    def fields(self) -> dict[str, Any]:
        """Those that were given, as the protocol has them.

        Raises
        ------
        UsageError
            Where a number is none, or a pair has another form.
        """
        from fewlabels.methods.settings import split_methods

        given = {k: v for k, v in vars(self).items() if v is not None and v != ()}
        for name in {"metrics", "levels", "by"} & set(given):
            given[name] = comma_list(given[name])
        for name in {"n_labeled", "n_unlabeled", "labels_per_item"} & set(given):
            flag = f"--{name.replace('_', '-')}"
            given[name] = [_number(flag, n, int) for n in comma_list(given[name])]
        if "methods" in given:
            given["methods"] = split_methods(",".join(given["methods"]))
        if "bins" in given:
            given["bins"] = {
                column: [_number("--bins", e, float) for e in comma_list(edges)]
                for column, edges in _pairs("--bins", given["bins"]).items()
            }
        return given


def _number(option: str, value: str, kind: type) -> Any:
    try:
        return kind(value)
    except ValueError:
        what = "whole numbers" if kind is int else "numbers"
        raise UsageError(f"{option} must be {what}; got {quoted(value)}") from None


def _pairs(option: str, values: tuple[str, ...]) -> dict[str, str]:
    """Column -> the rest; one column cannot mean two things."""
    pairs: dict[str, str] = {}
    for value in values:
        column, equals, rest = value.partition("=")
        if not (column and equals):
            raise UsageError(f"{option} must be COL=VALUE; got {quoted(value)}")
        if pairs.get(column, rest) != rest:
            raise UsageError(f"{option} names column {quoted(column)} twice; name it once")
        pairs[column] = rest
    return pairs


@command(short_help="Compare methods by a protocol of the papers, on labeled data.")
@takes("data", Data)
@takes("columns", Columns)
@takes("protocol", Protocol)
def benchmark(data: Data, columns: Columns, protocol: Protocol) -> int:
    """Compare methods by protocol NAME (a name, or a .toml file) on data whose labels are known.

    Every run hides most labels, estimates, and compares with the other half of the data. Unless
    options say otherwise, it takes 1,000 unlabeled items and 20, 50 or 100 labels from one half,
    and there are 50 runs. Finished cells are kept in the output folder: after an interruption,
    --resume goes on.
    """
    if data.list_protocols:
        from fewlabels.bench import load, names

        for known in map(load, names()):
            click.echo(f"{known.name:24}{known.title}")
        return 0
    if data.name is None:
        raise UsageError("name a protocol; `fewlabels benchmark --list` lists them")
    asked, rows = protocol.fields(), _pairs("--where", data.where)

    from fewlabels.bench import load, run
    from fewlabels.bench.folder import folder_of

    name = load(data.name).name
    try:
        folder = folder_of(data.out, name)
        also_named("--out", str(folder), "folder")
        interrupts.advise(partial(_how_to_go_on, data.name, data.out, folder))
        with terminal.progress_bar(f"benchmark {name}") as progress:
            results = run(
                data.name,
                data.data,
                folder,
                resume=data.resume,
                workers=data.workers,
                models=comma_list(data.models),
                exclude_models=comma_list(data.exclude_models),
                where=rows,
                most_items=data.most_items,
                columns={k: v for k, v in columns.arguments().items() if v},
                progress=progress,
                **asked,
            )
        _report(results, folder)
    except (InputError, UsageError) as error:
        raise type(error)(_as_options(str(error))) from None
    return 0


def _how_to_go_on(name: str, out: str | None, folder: Path) -> str:
    """What to say when it is stopped."""
    if not (folder / "manifest.json").exists():
        return " before anything was computed"
    place = "" if out is None else f" --out {shlex.quote(out)}"
    return (
        "; what is finished is kept, go on with: fewlabels benchmark "
        f"{one_line(shlex.quote(name) + place)} --resume"
    )


def _as_options(line: str) -> str:
    """A line of the engine, which names arguments of Python, as the command line spells them."""
    return in_options(line, benchmark)


def _report(results: Results, folder: Path) -> None:
    """Write the report and print its main table."""
    from fewlabels.bench import summarise
    from fewlabels.bench.folder import replace_text, writing
    from fewlabels.report.benchmark import render, render_text
    from fewlabels.report.benchmark_content import notes

    summary = summarise(results)
    files = render(summary)
    with writing(folder):
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            replace_text(folder / path, content)
    width = terminal.width()
    click.echo(render_text(summary, width=width))
    for dataset in results.datasets:
        for note in dataset.notes:
            click.echo("\n" + fill(one_line(_as_options(f"{dataset.name}: {note}")), width))
    known = results.protocol
    if (
        known.confidence_level is not None
        and known.estimand == "population"
        and known.factor != "labels"
    ):
        note = (
            "Intervals are for the population that the items come from (estimand population), "
            "since the truth is that of other items; --estimand sample asks for those of the very "
            "items."
        )
        click.echo("\n" + fill(note, width))
    terminal.print_warnings(map(_as_options, notes(summary)))
    where = one_line(str(folder))
    click.echo(f"\nReport: {where}/report.html, {where}/report.md\nData:   {where}/results.csv")


class Demonstration(Record):
    """What `fewlabels demo` keeps and writes."""

    labels: int = option(HOW, "How many labels are kept.", default=20, at_least=0)
    out: str = option(OUTPUT, "The report.", "PATH", "report.html", file="written", type=str)
    json: str | None = option(
        OUTPUT, "Write the estimates as JSON.", "PATH", file="written", type=str
    )
    save_data: str | None = option(
        OUTPUT, "Write the predictions as Parquet.", "PATH", file="written", type=str
    )


@command(short_help="Estimate five classifiers from 20 labels and compare with the truth.")
@takes("settings", Settings, "seed")
@takes("asked", Demonstration)
def demo(settings: Settings, asked: Demonstration) -> None:
    """Estimate five classifiers from few labels, and compare with the hidden truth.

    They are trained on small parts of the handwritten digits that come with scikit-learn; of
    1,000 other digits most labels are hidden. Nothing is downloaded.
    """
    from fewlabels.bench.demo import compare, make_demo, save_predictions

    world = make_demo(asked.labels, settings.seed)
    with terminal.progress_bar("estimating") as progress:
        comparison = compare(world, settings.seed, progress)
    estimates = comparison.estimates
    writers: dict[str, Writer] = {asked.out: estimates.save_html}
    if asked.json is not None:
        writers[asked.json] = json_writer(estimates.to_dict())
    if asked.save_data is not None:
        writers[asked.save_data] = partial(save_predictions, world)
    with of_this_command():
        write_outputs(writers)
    width = terminal.width()
    said = (
        f"Only {estimates.n_labeled} of {estimates.n_items:,} labels were used. "
        f"{comparison.held} of the {comparison.intervals} intervals hold the hidden truth "
        f"({estimates.confidence_level:.0%} intervals should hold it "
        f"about {estimates.confidence_level * comparison.intervals:.0f} times; they rest on the "
        "same few labels, so they miss together)."
    )
    click.echo(f"{estimates.summary(width)}\n\n{fill(said, width)}\n\nReport: {asked.out}")
    if asked.save_data is not None:
        click.echo(f"Go on with: fewlabels estimate {asked.save_data}")
