"""`fewlabels demo`: five classifiers, 20 labels, and the hidden truth."""

from __future__ import annotations

from functools import partial
from textwrap import fill

import click

from fewlabels.cli import terminal
from fewlabels.cli.options import HOW, OUTPUT, Record, command, option, takes
from fewlabels.cli.output import Writer, json_writer, of_this_command, write_outputs
from fewlabels.cli.settings import Settings


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
    from fewlabels.questions.demo import compare, make_demo, save_predictions

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
