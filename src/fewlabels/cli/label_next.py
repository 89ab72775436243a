"""`fewlabels label-next FILE`: the items whose labels would narrow the curve the most."""

from __future__ import annotations

import click

from fewlabels.cli import terminal
from fewlabels.cli.one_model import METHODS, OneModel, one_model_options
from fewlabels.cli.output import Writer, json_text, json_writer, write_outputs
from fewlabels.cli.text import text
from fewlabels.wording import one_line


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
    from fewlabels.frames.write import table_kind

    table = None if out is None else table_kind(out)
    paths = {"--json": None if json_path == "-" else json_path, "--out": out}
    chosen.source.check(paths)

    from fewlabels.operating.label_next import label_next as run
    from fewlabels.report.label_next_text import render_label_next

    predictions = chosen.read()
    with terminal.progress_bar("choosing items") as progress:
        found = run(predictions, size=size, kind=kind, progress=progress, **chosen.arguments())
    report = found.report()
    answer = {**report, "rows": [item + 1 for item in report["items"]]}
    writers: dict[str, Writer] = {}
    if paths["--json"] is not None:
        writers[paths["--json"]] = json_writer(answer)
    if out is not None and table is not None:
        from fewlabels.frames.write import write_table

        names = {c: [n[i] for i in report["items"]] for c, n in predictions.item_names.items()}
        numbers = {key: answer[key] for key in ("score", "probability", "gain")}
        columns = {"row": answer["rows"], **names, **numbers}
        writers[out] = lambda path: write_table(columns, path, table)
    write_outputs(writers)
    if json_path == "-":
        click.echo(json_text(answer), nl=False)
        terminal.print_warnings(report["warnings"])
        return
    click.echo(render_label_next(report, terminal.width()))
    for what, path in (("JSON", json_path), ("Table", out)):
        if path is not None:
            click.echo(f"\n{what}: {one_line(path)}")
