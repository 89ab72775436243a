"""`fewlabels compare FILE`: which classifier is best, and how far that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fewlabels.cli import terminal
from fewlabels.cli.options import Input, input_options, positive_option, reference_option
from fewlabels.cli.output import Writer, json_text, json_writer, write_outputs
from fewlabels.cli.text import check_choice, comma_list, text
from fewlabels.wording import one_line

if TYPE_CHECKING:
    from fewlabels.comparisons import Comparisons
    from fewlabels.evaluation.evaluator import Estimand


@click.command(short_help="Which classifier is best, and how far that is known.")
@click.option("--method", type=text, default="auto", show_default=True)
@click.option(
    "--metric",
    "metrics",
    type=text,
    multiple=True,
    metavar="M",
    help="By which metric; unless given accuracy, or roc_auc of scores alone. Repeatable.",
)
@click.option("--by", type=text, multiple=True, metavar="COL", help="By group too. Repeatable.")
@click.option("--models", type=text, metavar="A,B,..", help="Compare only these classifiers.")
@click.option("--confidence-level", type=float, default=0.95, show_default=True)
@click.option(
    "--estimand",
    type=click.Choice(["population", "sample"]),
    default="population",
    show_default=True,
    help="The population the items come from, or these very items.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--workers", type=click.IntRange(min=1), help="Threads; the answer is the same.")
@click.option("--json", "json_path", metavar="PATH", help="Write JSON; - prints it alone.")
@click.option("--html", "html_path", metavar="PATH", help="Write the report as one HTML file.")
@input_options
@positive_option
@reference_option
def compare(
    source: Input,
    method: str,
    metrics: tuple[str, ...],
    by: tuple[str, ...],
    models: str | None,
    confidence_level: float,
    estimand: Estimand,
    seed: int,
    workers: int | None,
    json_path: str | None,
    html_path: str | None,
) -> None:
    """Compare the classifiers in FILE: ranking, paired differences, and joint errors.

    Says who cannot be told apart, who may be the best, about how many more labels would settle it,
    how much the classifiers differ between groups, and how often they fail together.
    """
    path = None if json_path == "-" else json_path
    source.check({"--json": path, "--html": html_path})

    from fewlabels.comparisons import check_ranking
    from fewlabels.comparisons import compare as run
    from fewlabels.models import METHODS
    from fewlabels.models.registry import check_reference

    asked = comma_list(metrics)
    check_choice("method", method, ["auto", *(name for name in METHODS if name != "auto")])
    check_reference(method, source.reference)
    if asked:
        check_ranking(asked)
    groups = comma_list(by, whole=source.column_names()) if by else []
    predictions = source.read(groups)
    reference = source.reference_of(predictions)
    with terminal.progress_bar("estimating") as progress:
        found = run(
            predictions,
            asked or None,
            method=method,
            by=groups or None,
            models=None if models is None else comma_list(models, whole=predictions.models),
            confidence_level=confidence_level,
            estimand=estimand,
            random_state=seed,
            workers=workers,
            progress=progress,
            reference=reference,
        )
    _write(found, path, html_path)
    _tell(found, json_path, html_path)


def _write(found: Comparisons, json_path: str | None, html_path: str | None) -> None:
    writers: dict[str, Writer] = {}
    if json_path is not None:
        writers[json_path] = json_writer(found.to_dict())
    if html_path is not None:
        writers[html_path] = found.save_html
    write_outputs(writers)


def _tell(found: Comparisons, json_path: str | None, html_path: str | None) -> None:
    if json_path == "-":
        click.echo(json_text(found.to_dict()), nl=False)
        terminal.print_warnings(found.warnings)
        return
    click.echo(found.summary(terminal.width()))
    for what, path in (("JSON", json_path), ("Report", html_path)):
        if path is not None:
            click.echo(f"\n{what}: {one_line(path)}")
