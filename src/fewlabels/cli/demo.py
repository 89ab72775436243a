"""`fewlabels demo`: the whole road on real data, with the truth to compare with."""

from __future__ import annotations

from functools import partial
from textwrap import fill
from typing import TYPE_CHECKING

import click

from fewlabels.cli import terminal
from fewlabels.cli.declare import takes
from fewlabels.cli.output import Writer, check_outputs, json_writer, write_outputs
from fewlabels.cli.settings import Settings

if TYPE_CHECKING:
    from fewlabels.bench.demo import Comparison


@click.command(short_help="Estimate five classifiers from 20 labels and compare with the truth.")
@click.option("--out", default="report.html", show_default=True, metavar="PATH", help="The report.")
@takes("settings", Settings, "seed")
@click.option(
    "--labels",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="How many labels are kept.",
)
@click.option("--json", "json_path", metavar="PATH", help="Write the estimates as JSON.")
@click.option("--save-data", metavar="PATH", help="Write the predictions as Parquet.")
def demo(
    settings: Settings, out: str, labels: int, json_path: str | None, save_data: str | None
) -> None:
    """Estimate five classifiers from few labels, and compare with the hidden truth.

    They are trained on small parts of the handwritten digits that come with scikit-learn; of
    1,000 other digits most labels are hidden. Nothing is downloaded.
    """
    check_outputs({"--out": out, "--json": json_path, "--save-data": save_data})

    from fewlabels.bench.demo import compare, make_demo, save_predictions

    world = make_demo(labels, settings.seed)
    with terminal.progress_bar("estimating") as progress:
        comparison = compare(world, settings.seed, progress)
    writers: dict[str, Writer] = {out: comparison.estimates.save_html}
    if json_path is not None:
        writers[json_path] = json_writer(comparison.estimates.to_dict())
    if save_data is not None:
        writers[save_data] = partial(save_predictions, world)
    write_outputs(writers)
    width = terminal.width()
    click.echo(comparison.estimates.summary(width))
    click.echo("\n" + fill(_in_words(comparison), width) + "\n")
    click.echo(f"Report: {out}")
    if save_data is not None:
        click.echo(f"Go on with: fewlabels estimate {save_data}")


def _in_words(comparison: Comparison) -> str:
    estimates = comparison.estimates
    return (
        f"Only {estimates.n_labeled} of {estimates.n_items:,} labels were used. "
        f"{comparison.held} of the {comparison.intervals} intervals hold the hidden truth "
        f"({estimates.confidence_level:.0%} intervals should hold it "
        f"about {estimates.confidence_level * comparison.intervals:.0f} times; they rest on the "
        "same few labels, so they miss together)."
    )
