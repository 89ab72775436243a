"""`fewlabels compare FILE`: which classifier is best, and how far that is known."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from fewlabels.cli import terminal
from fewlabels.cli.options import Input, input_options
from fewlabels.cli.output import Writer, json_text, json_writer, write_outputs
from fewlabels.cli.text import check_choice, comma_list, text
from fewlabels.errors import UsageError
from fewlabels.wording import one_line, quoted

if TYPE_CHECKING:
    from fewlabels.evaluate import Estimand


def _with_names(command: Any) -> Any:
    """Say that a name alone chooses a classifier; with columns it maps them, as elsewhere."""
    for option in command.__click_params__:
        if option.name == "model":
            option.metavar = "NAME"
            option.help = (
                "Compare only the classifiers that are named so. Repeatable. NAME=COL,COL names "
                "probability columns, one per class."
            )
    return command


@click.command(short_help="Which classifier is best, and how far that is known.")
@click.option("--method", type=text, default="auto", show_default=True)
@click.option(
    "--metric",
    "metrics",
    type=text,
    multiple=True,
    metavar="M",
    help="By which metric; accuracy unless given. Repeatable.",
)
@click.option("--by", type=text, multiple=True, metavar="COL", help="By group too. Repeatable.")
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
@_with_names
@input_options
def compare(
    source: Input,
    method: str,
    metrics: tuple[str, ...],
    by: tuple[str, ...],
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
    paths = {"--json": None if json_path == "-" else json_path, "--html": html_path}
    source.check(paths)
    asked = comma_list(metrics) or ["accuracy"]
    _check_names(method, asked)
    source, models = _named(source)

    from fewlabels.pipeline import estimate
    from fewlabels.profiles import comparison_report

    groups = comma_list(by, whole=source.column_names()) if by else []
    predictions = source.read(groups)
    for model in models:
        check_choice("model", model, predictions.models)
    with terminal.progress_bar("estimating") as progress:
        estimates = estimate(
            predictions,
            method=method,
            metrics=asked,
            by=groups or None,
            confidence_level=confidence_level,
            estimand=estimand,
            random_state=seed,
            workers=workers,
            progress=progress,
        )
    report = comparison_report(estimates, models or None, workers)
    _write(report, paths["--json"], html_path)
    _tell(report, json_path, html_path)


def _check_names(method: str, metrics: list[str]) -> None:
    """Refuse unknown names, and metrics that rank nobody, before a large file is read."""
    from fewlabels.metrics import resolve
    from fewlabels.models import METHODS

    check_choice("method", method, ["auto", *(name for name in METHODS if name != "auto")])
    for name, metric in resolve(metrics).items():
        if not metric.direction:
            raise UsageError(
                f"metric {quoted(name)} does not say whether larger or smaller is better; compare "
                "by another one"
            )


def _named(source: Input) -> tuple[Input, list[str]]:
    """The classifiers that are named, and the input without these names."""
    said = source.columns.model
    names = list(dict.fromkeys(value for value in said if "=" not in value))
    if len(names) == 1:
        raise UsageError(
            f"--model {quoted(names[0])} is one classifier; name two, or leave it out to compare "
            "all"
        )
    mapped = tuple(value for value in said if "=" in value)
    return replace(source, columns=replace(source.columns, model=mapped)), names


def _write(report: dict[str, Any], json_path: str | None, html_path: str | None) -> None:
    writers: dict[str, Writer] = {}
    if json_path is not None:
        writers[json_path] = json_writer(report)
    if html_path is not None:
        from fewlabels.report.comparison_html import save_comparison_html

        writers[html_path] = lambda path: save_comparison_html(report, path)
    write_outputs(writers)


def _tell(report: dict[str, Any], json_path: str | None, html_path: str | None) -> None:
    if json_path == "-":
        click.echo(json_text(report), nl=False)
        terminal.print_warnings(report["warnings"])
        return
    from fewlabels.report.comparison_text import render_comparison

    click.echo(render_comparison(report, terminal.width()))
    for what, path in (("JSON", json_path), ("Report", html_path)):
        if path is not None:
            click.echo(f"\n{what}: {one_line(path)}")
