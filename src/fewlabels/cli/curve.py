"""`fewlabels curve FILE`: precision-recall and ROC with bands, from few labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fewlabels.cli import terminal
from fewlabels.cli.one_model import (
    METHODS,
    Files,
    OneModel,
    item_table,
    one_model_options,
    result_options,
)
from fewlabels.cli.output import json_text

if TYPE_CHECKING:
    from fewlabels.evaluation.evaluator import Estimand
    from fewlabels.operating.answer import IntervalKind


@click.command(short_help="Precision-recall and ROC with bands.", epilog=METHODS)
@click.option("--confidence-level", type=float, default=0.95, show_default=True)
@click.option(
    "--estimand",
    type=click.Choice(["population", "sample"]),
    default="population",
    show_default=True,
    help="The population the items come from, or these very items.",
)
@click.option(
    "--interval",
    type=click.Choice(["shortest", "equal-tailed"]),
    default="shortest",
    show_default=True,
    help="Which interval of the draws the band shows at each point.",
)
@result_options("Write the recalibrated probability of every item; .csv or .parquet.")
@one_model_options
def curve(
    chosen: OneModel,
    files: Files,
    confidence_level: float,
    estimand: Estimand,
    interval: IntervalKind,
) -> None:
    """Draw the precision-recall and ROC curves of one classifier in FILE, with bands.

    --out gives row (from 1), score, label and recalibrated probability of every item.
    """
    files.check(chosen.source)

    from fewlabels.operating.curve import curves as run

    predictions = chosen.read()
    with terminal.progress_bar("drawing curves") as progress:
        curves = run(
            predictions,
            confidence_level=confidence_level,
            estimand=estimand,
            interval=interval,
            progress=progress,
            **chosen.arguments(),
        )
    report = curves.report()
    files.write(
        report,
        curves.save_html,
        lambda: {
            **item_table(predictions, report["model"], report["positive"]),
            "probability": curves.recalibrated,
        },
    )
    if files.json == "-":
        click.echo(json_text(report), nl=False)
        terminal.print_warnings(report["warnings"])
    else:
        click.echo(curves.summary(terminal.width()))
        files.tell()
