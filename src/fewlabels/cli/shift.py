"""`fewlabels shift FILE`: whether labeled items differ from unlabeled ones, and how."""

from __future__ import annotations

import click

from fewlabels.cli.declare import takes
from fewlabels.cli.options import Input
from fewlabels.cli.output import Output
from fewlabels.cli.settings import Settings


@click.command(short_help="Do labeled items differ from the unlabeled ones?")
@takes(
    "settings",
    Settings,
    "confidence_level",
    "seed",
    method="The method that learns P(class | scores) from the labels.",
)
@takes("output", Output, "json")
@takes("source", Input, without=("reference",))
def shift(source: Input, settings: Settings, output: Output) -> None:
    """Test whether the labeled items of FILE look like a random sample of all its items.

    Where they do not: what differs, how frequent the classes are among the unlabeled items, and
    which correction `fewlabels estimate --shift` would make.
    """
    output.check(source)

    from fewlabels.shifts.analysis import shift as run

    settings.check_method()
    asked = settings.arguments("method", "confidence_level", "random_state")
    found = run(source.read([]), **asked)
    output.save_all(found.to_dict)
    output.show(found.to_dict, found.summary)
