"""`fewlabels curve FILE`: precision-recall and ROC with bands, from few labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fewlabels.cli import terminal
from fewlabels.cli.declare import takes
from fewlabels.cli.one_model import METHODS, OneModel, item_table, save_drawn, takes_one_model
from fewlabels.cli.output import Output

if TYPE_CHECKING:
    from fewlabels.questions.answer import IntervalKind


@click.command(short_help="Precision-recall and ROC with bands.", epilog=METHODS)
@click.option(
    "--interval",
    type=click.Choice(["shortest", "equal-tailed"]),
    default="shortest",
    show_default=True,
    help="Which interval of the draws the band shows at each point.",
)
@takes(
    "output",
    Output,
    "json",
    "svg",
    html="Write the report as HTML.",
    out="Write the recalibrated probability of every item; .csv or .parquet.",
)
@takes_one_model("confidence_level", "estimand")
def curve(chosen: OneModel, output: Output, interval: IntervalKind) -> None:
    """Draw the precision-recall and ROC curves of one classifier in FILE, with bands.

    --out gives row (from 1), score, label and recalibrated probability of every item.
    """
    output.check(chosen.source)

    from fewlabels.questions.curve import curves as run

    predictions = chosen.read()
    with terminal.progress_bar("drawing curves") as progress:
        curves = run(
            predictions,
            interval=interval,
            progress=progress,
            **chosen.arguments("confidence_level", "estimand"),
        )
    report = curves.report()
    save_drawn(
        output,
        report,
        curves.save_html,
        lambda: {
            **item_table(predictions, report["model"], report["positive"]),
            "probability": curves.recalibrated,
        },
    )
    output.show(lambda: report, curves.summary)
