"""`fewlabels label-next FILE`: the items whose labels would narrow the curve the most."""

from __future__ import annotations

from functools import partial

import click

from fewlabels.cli import terminal
from fewlabels.cli.declare import takes
from fewlabels.cli.one_model import METHODS, OneModel, takes_one_model
from fewlabels.cli.output import Output, table_writer


@click.command("label-next", short_help="Which items to label next.", epilog=METHODS)
@click.option(
    "--size",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="How many items to list.",
)
@click.option(
    "--kind",
    type=click.Choice(["precision-recall", "roc"]),
    default="precision-recall",
    show_default=True,
    help="The curve whose band is to become narrow.",
)
@takes("output", Output, "json", out="Write the list; .csv or .parquet.")
@takes_one_model()
def label_next(chosen: OneModel, output: Output, size: int, kind: str) -> None:
    """List the items of FILE whose labels would narrow the band of a curve the most.

    Rows count from 1, after the header; `items` of the JSON count from 0, its `rows` from 1. The
    gain is the share of the band's variance that an item's label is expected to remove, those
    above it in the list being known.
    """
    output.check(chosen.source)

    from fewlabels.questions.label_next import label_next as run
    from fewlabels.report import render_label_next

    predictions = chosen.read()
    with terminal.progress_bar("choosing items") as progress:
        found = run(predictions, size=size, kind=kind, progress=progress, **chosen.arguments())
    report = found.report()
    answer = {**report, "rows": [item + 1 for item in report["items"]]}
    names = {c: [n[i] for i in report["items"]] for c, n in predictions.item_names.items()}
    numbers = {key: answer[key] for key in ("score", "probability", "gain")}
    columns = {"row": answer["rows"], **names, **numbers}
    output.save_all(lambda: answer, out=table_writer(output.out, lambda: columns))
    output.show(lambda: answer, partial(render_label_next, report))
