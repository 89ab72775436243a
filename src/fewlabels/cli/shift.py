"""`fewlabels shift FILE`: whether labeled items differ from unlabeled ones, and how."""

from __future__ import annotations

import click

from fewlabels.cli import terminal
from fewlabels.cli.options import Input, input_options, positive_option
from fewlabels.cli.output import json_text, json_writer, write_outputs
from fewlabels.cli.text import check_choice, text
from fewlabels.wording import one_line


@click.command(short_help="Do labeled items differ from the unlabeled ones?")
@click.option(
    "--method",
    type=text,
    default="auto",
    show_default=True,
    help="The method that learns P(class | scores) from the labels.",
)
@click.option("--confidence-level", type=float, default=0.95, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--json", "json_path", metavar="PATH", help="Write JSON; - prints it alone.")
@input_options
@positive_option
def shift(
    source: Input, method: str, confidence_level: float, seed: int, json_path: str | None
) -> None:
    """Test whether the labeled items of FILE look like a random sample of all its items.

    Where they do not: what differs, how frequent the classes are among the unlabeled items, and
    which correction `fewlabels estimate --shift` would make.
    """
    path = None if json_path == "-" else json_path
    source.check({"--json": path})

    from fewlabels.models import METHODS
    from fewlabels.shifts.analysis import shift as run

    check_choice("method", method, ["auto", *(name for name in METHODS if name != "auto")])
    found = run(
        source.read([]), method=method, confidence_level=confidence_level, random_state=seed
    )
    if path is not None:
        write_outputs({path: json_writer(found.to_dict())})
    if json_path == "-":
        click.echo(json_text(found.to_dict()), nl=False)
        terminal.print_warnings(found.warnings)
        return
    click.echo(found.summary(terminal.width()))
    if path is not None:
        click.echo(f"\nJSON: {one_line(path)}")
