"""`fewlabels compare FILE`: which classifier is best, and how far that is known."""

from __future__ import annotations

import click

from fewlabels.cli import terminal
from fewlabels.cli.declare import takes
from fewlabels.cli.options import Input
from fewlabels.cli.output import Output
from fewlabels.cli.settings import Settings
from fewlabels.cli.text import comma_list, text


@click.command(short_help="Which classifier is best, and how far that is known.")
@click.option(
    "--metric",
    "metrics",
    type=text,
    multiple=True,
    metavar="M",
    help="By which metric; unless given accuracy, or roc_auc of scores alone. Repeatable.",
)
@takes(
    "settings",
    Settings,
    "method",
    "by",
    "confidence_level",
    "estimand",
    "seed",
    "workers",
    models="Compare only these classifiers.",
)
@takes("output", Output, "json", "html")
@takes("source", Input)
def compare(source: Input, settings: Settings, output: Output, metrics: tuple[str, ...]) -> None:
    """Compare the classifiers in FILE: ranking, paired differences, and joint errors.

    Says who cannot be told apart, who may be the best, about how many more labels would settle it,
    how much the classifiers differ between groups, and how often they fail together.
    """
    output.check(source)

    from fewlabels.questions.compare import check_ranking
    from fewlabels.questions.compare import compare as run

    asked = comma_list(metrics)
    settings.check_method(source.reference)
    if asked:
        check_ranking(asked)
    groups = settings.groups(source)
    predictions = source.read(groups)
    reference = source.reference_of(predictions)
    with terminal.progress_bar("estimating") as progress:
        found = run(
            predictions,
            asked or None,
            by=groups or None,
            models=settings.chosen(predictions.models),
            progress=progress,
            reference=reference,
            **settings.arguments(
                "method", "confidence_level", "estimand", "random_state", "workers"
            ),
        )
    output.save_all(found.to_dict, html=found.save_html)
    output.show(found.to_dict, found.summary)
