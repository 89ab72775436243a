"""`fewlabels curve FILE`: precision-recall and ROC with bands, from few labels."""

from __future__ import annotations

from typing import Any

import click

from fewlabels.cli import terminal
from fewlabels.cli.one_model import (
    METHODS,
    Files,
    OneModel,
    interval_options,
    item_table,
    one_model_options,
    result_options,
)


@click.command(short_help="Precision-recall and ROC with bands.", epilog=METHODS)
@interval_options
@click.option(
    "--interval",
    type=click.Choice(["shortest", "equal-tailed"]),
    default="shortest",
    show_default=True,
    help="Which interval of the draws the band shows at each point.",
)
@result_options("Write the recalibrated probability of every item; .csv or .parquet.")
@one_model_options
def curve(chosen: OneModel, files: Files, **settings: Any) -> None:
    """Draw the precision-recall and ROC curves of one classifier in FILE, with bands.

    --out gives row (from 1), score, label and recalibrated probability of every item.
    """
    files.check(chosen.source)

    from fewlabels.operating.curve import curves as run

    predictions = chosen.read()
    with terminal.progress_bar("drawing curves") as progress:
        curves = run(predictions, progress=progress, **settings, **chosen.arguments())
    files.deliver(
        curves.report(),
        curves.summary,
        lambda: {
            **item_table(predictions, curves.model, curves.positive),
            "probability": curves.recalibrated,
        },
        curves.save_html,
    )
