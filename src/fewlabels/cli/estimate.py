"""`fewlabels estimate FILE`: how good each classifier is, from a file with few labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from fewlabels.cli import terminal
from fewlabels.cli.options import Columns, file_options
from fewlabels.cli.output import Writer, check_outputs, json_text, json_writer, write_outputs
from fewlabels.cli.require import Requirement, parse_requirement, with_required
from fewlabels.cli.text import check_choice, comma_list, text
from fewlabels.wording import one_line

if TYPE_CHECKING:
    from fewlabels.estimates import Estimates
    from fewlabels.evaluate import Estimand
    from fewlabels.predictions import Predictions


_METHODS = """\b
Methods:
  auto                  the default: tempered-ensemble for probabilities of several
                        classifiers, monotone-curves for one or for scores, else labeled
  tempered-ensemble     the averaged classifier, recalibrated by the labels
  monotone-curves, spe  one classifier's score at a time: curves, or densities per class
  ssme-kde, ssme-kde-marginal, ssme-flow
                        mixtures of all classifiers' scores, or of one at a time
  dawid-skene, majority-vote
                        from hard predictions
  pseudo-label, bayesian-calibration, autoeval, active-testing, ensemble, labeled
                        baselines; `labeled` is the labeled items alone
"""


@click.command(short_help="How good each classifier is, with intervals.", epilog=_METHODS)
@click.argument("file", type=text)
@click.option(
    "--method",
    type=text,
    default="auto",
    show_default=True,
    help="One of those below.",
)
@click.option(
    "--metrics", type=text, default="accuracy,ece,auc,auprc", show_default=True, metavar="A,B,.."
)
@click.option(
    "--by", type=text, multiple=True, metavar="COL", help="Estimate by group too. Repeatable."
)
@click.option("--models", type=text, metavar="A,B,..", help="Only these classifiers.")
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
@click.option(
    "--require",
    "requirements",
    type=text,
    multiple=True,
    metavar="'METRIC>=X'",
    help="Exit with 1 unless every classifier meets it; low:METRIC tests the lower bound.",
)
@click.option("--json", "json_path", metavar="PATH", help="Write JSON; - prints it alone.")
@click.option("--html", "html_path", metavar="PATH", help="Write the report as one HTML file.")
@file_options
def estimate(
    file: str,
    columns: Columns,
    method: str,
    metrics: str,
    by: tuple[str, ...],
    models: str | None,
    confidence_level: float,
    estimand: Estimand,
    seed: int,
    workers: int | None,
    requirements: tuple[str, ...],
    json_path: str | None,
    html_path: str | None,
) -> int:
    """Estimate how good each classifier in FILE is, from the few labels there are."""
    conditions = [parse_requirement(condition) for condition in requirements]
    asked = with_required(comma_list(metrics), conditions)
    paths = {"--json": None if json_path == "-" else json_path, "--html": html_path}
    check_outputs(paths, source=file)

    from fewlabels.pipeline import estimate as run

    _check_names(method, asked)
    groups = _groups(file, by)
    predictions = _select(_read(file, columns, groups), models)
    with terminal.progress_bar("estimating") as progress:
        estimates = run(
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
    _write(estimates, paths["--json"], html_path)
    _print(estimates, as_json=json_path == "-")
    if json_path != "-":
        for what, path in (("JSON", json_path), ("Report", html_path)):
            if path is not None:
                click.echo(f"\n{what}: {one_line(path)}", nl=True)
    return _verdict(conditions, estimates)


def _check_names(method: str, metrics: Sequence[str]) -> None:
    """Refuse unknown names before a large file is read."""
    from fewlabels.metrics import resolve
    from fewlabels.models import METHODS

    check_choice("method", method, ["auto", *(name for name in METHODS if name != "auto")])
    resolve(metrics)


def _groups(file: str, by: tuple[str, ...]) -> list[str]:
    """Columns to group by; a name may hold a comma where the file has such a column."""
    if not by:
        return []
    from fewlabels.frames import column_names

    return comma_list(by, whole=column_names(file))


def _read(file: str, columns: Columns, groups: Sequence[str]) -> Predictions:
    from fewlabels.frames import read_predictions

    return read_predictions(file, keep=groups, **columns.arguments())


def _select(predictions: Predictions, models: str | None) -> Predictions:
    if models is None:
        return predictions
    wanted = comma_list(models, whole=predictions.models)
    for name in wanted:
        check_choice("model", name, predictions.models)
    return predictions.select_models(wanted) if wanted else predictions


def _write(estimates: Estimates, json_path: str | None, html_path: str | None) -> None:
    writers: dict[str, Writer] = {}
    if json_path is not None:
        writers[json_path] = json_writer(estimates.to_dict())
    if html_path is not None:
        writers[html_path] = estimates.save_html
    write_outputs(writers)


def _print(estimates: Estimates, *, as_json: bool) -> None:
    if as_json:
        click.echo(json_text(estimates.to_dict()), nl=False)
        terminal.print_warnings(estimates.warnings)
    else:
        click.echo(estimates.summary(terminal.width()))


def _verdict(conditions: Sequence[Requirement], estimates: Estimates) -> int:
    failures = [line for condition in conditions for line in condition.failures(estimates)]
    for line in failures:
        click.echo(line, err=True)
    return 1 if failures else 0
