"""Trials: `fewlabels demo`, and `fewlabels backtest FILE` on the user's own labels."""

from __future__ import annotations

from functools import partial
from textwrap import fill
from typing import Any

import click

from fewlabels.cli import interrupts
from fewlabels.cli.files import Writer, json_text, text_writer, write_outputs
from fewlabels.cli.input import Input, Settings
from fewlabels.cli.options import CHOICE, HOW, OUTPUT, Record, comma_list, command, option, takes
from fewlabels.cli.output import Output, progress_bar, stated_command, width
from fewlabels.errors import UsageError, quoted


class Hiding(Record):
    """How many labels `fewlabels backtest` leaves, how often, and which methods it tries."""

    n_labeled: str = option(
        HOW, "How many labels to leave; all others are hidden.", "N,N,..", "20,50,100",
        flag="--labels",
    )  # fmt: skip
    runs: int = option(HOW, "How often to draw the labels that are left.", default=20, at_least=1)
    method: tuple[str, ...] = option(
        HOW,
        "A method to try beside auto and labeled, with settings in brackets, as in "
        "'ssme-kde[bandwidth=scott]'.",
        "METHOD",
        (),
    )
    metrics: str | None = option(CHOICE, "Metrics; by default those of `estimate`.", "A,B,..")

    def sizes(self) -> list[int]:
        """The numbers of labels."""
        try:
            return [int(n) for n in comma_list(self.n_labeled)]
        except ValueError:
            raise UsageError(
                "`--labels` must be whole numbers, such as --labels 20,50; got "
                f"{quoted(self.n_labeled)}"
            ) from None


@command(short_help="How far off estimates are, on a file whose labels are known.")
@takes("source", Input, without=("reference", "labels", "labels_as"))
@takes("hiding", Hiding)
@takes(
    "settings", Settings, "models", "by", "confidence_level", "seed", "workers",
    estimand={
        "default": "sample",
        "help": "Intervals for these items, whose truth is known, or for the population.",
    },
)  # fmt: skip
@takes("output", Output, "json", "html")
def backtest(source: Input, hiding: Hiding, settings: Settings, output: Output) -> None:
    """Hide all labels of FILE but a few, again and again, and compare estimates with the truth.

    Shows the error, coverage and width of `auto`, of `labeled` and of each --method. Ctrl-C shows
    the runs that are done, and exits with 130.
    """
    sizes = hiding.sizes()
    from fewlabels.questions.backtest import Runs

    arguments: dict[str, Any] = settings.arguments(
        "confidence_level", "estimand", "random_state", "workers"
    )
    metrics = comma_list(hiding.metrics) if hiding.metrics is not None else None
    groups = settings.groups(source)
    predictions = source.read(groups)
    chosen = settings.chosen(predictions.models)
    predictions = predictions.select_models(chosen) if chosen else predictions
    runs = Runs.of(
        predictions, sizes, hiding.runs, hiding.method, metrics=metrics, by=groups or None,
        **arguments,
    )  # fmt: skip
    interrupts.advise(
        lambda: f"; {len(runs.done)} of {runs.n_runs} runs were done", interrupts.TO_SHOW
    )
    stopped = None
    with progress_bar("backtest") as progress:
        try:
            for _ in runs.each(progress):
                pass
        except KeyboardInterrupt as stop:
            if not runs.done:
                raise
            stopped = stop
    result = runs.result()
    output.save_all(result.to_dict, html=result.save_html)
    output.show(result.to_dict, result.summary)
    if stopped is not None:
        raise stopped


class Demonstration(Record):
    """Options of `fewlabels demo`."""

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
@takes("options", Demonstration)
def demo(settings: Settings, options: Demonstration) -> None:
    """Estimate five classifiers from few labels, and compare with the hidden truth.

    They are trained on small parts of the handwritten digits that come with scikit-learn; of
    1,000 other digits most labels are hidden. Nothing is downloaded.
    """
    from fewlabels.questions.demo import compare, make_demo, save_predictions

    world = make_demo(options.labels, settings.seed)
    with progress_bar("estimating") as progress:
        comparison = compare(world, settings.seed, progress)
    estimates = comparison.estimates
    writers: dict[str, Writer] = {options.out: estimates.save_html}
    if options.json is not None:
        writers[options.json] = text_writer(lambda: json_text(estimates.to_dict()))
    if options.save_data is not None:
        writers[options.save_data] = partial(save_predictions, world)
    with stated_command():
        write_outputs(writers)
    columns = width()
    sentence = (
        f"Only {estimates.n_labeled} of {estimates.n_items:,} labels were used. "
        f"{comparison.held} of the {comparison.intervals} intervals hold the hidden truth "
        f"({estimates.confidence_level:.0%} intervals should hold it "
        f"about {estimates.confidence_level * comparison.intervals:.0f} times; they rest on the "
        "same few labels, so they miss together)."
    )
    click.echo(
        f"{estimates.summary(columns)}\n\n{fill(sentence, columns)}\n\nReport: {options.out}"
    )
    if options.save_data is not None:
        click.echo(f"Go on with: fewlabels estimate {options.save_data}")
