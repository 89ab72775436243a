"""`fewlabels label-next FILE`: the items whose labels would narrow the curve the most."""

from __future__ import annotations

from typing import Any

import click

from fewlabels.cli import terminal
from fewlabels.cli.one_model import METHODS, Files, OneModel, one_model_options
from fewlabels.cli.text import text


@click.command("label-next", short_help="Which items to label next.", epilog=METHODS)
@click.option("--size", type=click.IntRange(min=1), default=10, show_default=True)
@click.option(
    "--kind",
    type=click.Choice(["precision-recall", "roc"]),
    default="precision-recall",
    show_default=True,
    help="The curve whose band is to become narrow.",
)
@click.option("--json", "json_path", metavar="PATH", help="Write JSON; - prints it alone.")
@click.option("--out", type=text, metavar="FILE", help="Write the list; .csv or .parquet.")
@one_model_options
def label_next(
    chosen: OneModel, size: int, kind: str, json_path: str | None, out: str | None
) -> None:
    """List the items of FILE whose labels would narrow the band of a curve the most.

    Rows count from 1, after the header; `items` of the JSON count from 0, its `rows` from 1. The
    gain is the share of the band's variance that an item's label is expected to remove, those
    above it in the list being known.
    """
    files = Files(json_path, out)
    files.check(chosen.source)

    from fewlabels.operating.label_next import label_next as run

    predictions = chosen.read()
    with terminal.progress_bar("choosing items") as progress:
        found = run(predictions, size=size, kind=kind, progress=progress, **chosen.arguments())
    items = found.items.tolist()
    report = {**found.report(), "rows": [item + 1 for item in items]}

    def table() -> dict[str, Any]:
        names = {c: [n[i] for i in items] for c, n in predictions.item_names.items()}
        numbers = {key: report[key] for key in ("score", "probability", "gain")}
        return {"row": report["rows"], **names, **numbers}

    files.deliver(report, found.summary, table)
