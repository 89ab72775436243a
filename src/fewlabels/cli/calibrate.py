"""`fewlabels calibrate FILE`: calibrate classifiers by labels or by annotators' counts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from fewlabels.cli import terminal
from fewlabels.cli.options import Input, input_options
from fewlabels.cli.output import Writer, check_outputs, json_text, json_writer, write_outputs
from fewlabels.cli.text import check_choice, comma_list, text
from fewlabels.errors import UsageError
from fewlabels.wording import one_line

if TYPE_CHECKING:
    from fewlabels.predictions import Predictions
    from fewlabels.recalibration import Recalibration

_METHODS = ("temperature", "vector", "matrix", "alpha")

_EPILOG = """\b
Methods:
  temperature  one number: all probabilities sharper or softer
  vector       a slope and an offset per class
  matrix       every class from the scores of all; needs many labels
  alpha        probabilities stay; how sure they are, so how often two annotators
               will disagree, and what a label or two would change
"""


@click.command(short_help="Calibrate classifiers, and save or apply the map.", epilog=_EPILOG)
@click.option("--method", type=text, metavar="METHOD", help="One of those below.")
@click.option(
    "--concentration",
    type=click.Choice(["constant", "logits", "features", "classifiers"]),
    help="For alpha: of what the concentration is a function.",
)
@click.option(
    "--features", type=text, multiple=True, metavar="COL,..", help="Columns of the features."
)
@click.option("--penalty", type=float, metavar="X", help="Instead of the one that is chosen.")
@click.option("--models", type=text, metavar="A,B,..", help="Only these classifiers.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--save", "save_path", metavar="MODEL.json", help="Write the fitted map as JSON.")
@click.option("--apply", "apply_path", metavar="MODEL.json", help="Apply a saved map to FILE.")
@click.option("--out", type=text, metavar="FILE", help="Write FILE calibrated: .csv or .parquet.")
@click.option("--json", "json_path", metavar="PATH", help="Write JSON; - prints it alone.")
@click.option("--html", "html_path", metavar="PATH", help="Write the report as one HTML file.")
@input_options
def calibrate(
    source: Input,
    method: str | None,
    concentration: Any,
    features: tuple[str, ...],
    penalty: float | None,
    models: str | None,
    seed: int,
    save_path: str | None,
    apply_path: str | None,
    out: str | None,
    json_path: str | None,
    html_path: str | None,
) -> int:
    """Fit a calibration to the classifiers in FILE, or apply one that was saved.

    Learned from known labels or from annotators' counts (h__ columns, or --votes). What comes out
    of --out is a file like FILE.
    """
    fit_only = {
        "--method": method, "--concentration": concentration, "--features": features,
        "--penalty": penalty, "--save": save_path, "--json": json_path, "--html": html_path,
        "--models": models,
    }  # fmt: skip
    _check(fit_only, apply_path, out)
    json_file = None if json_path == "-" else json_path
    paths = {"--save": save_path, "--out": out, "--json": json_file, "--html": html_path}
    source.check(paths)
    if apply_path is not None:
        check_outputs(paths, source=apply_path)

    from fewlabels.recalibration import Recalibration, Settings, fit

    if apply_path is not None:
        found = Recalibration.load(apply_path)
        if source.columns.classes is None and not any("," in str(c) for c in found.classes):
            # Items without labels may not show what the classes are; the calibration knows.
            classes = ",".join(map(str, found.classes))
            source = replace(source, columns=replace(source.columns, classes=classes))
        _write(_everything(source), found, {}, None, out)
        if out is not None:
            click.echo(f"Calibrated: {one_line(out)}")
        return 0
    assert method is not None
    check_choice("method", method, _METHODS)
    columns = comma_list(features, whole=source.column_names()) if features else []
    settings = Settings(method, concentration, tuple(columns), penalty, seed)
    predictions = _everything(source)
    chosen = predictions
    if models is not None:
        chosen = predictions.select_models(comma_list(models, whole=predictions.models))
    with terminal.progress_bar("calibrating") as progress:
        found, report = fit(chosen, settings, progress)
    writers: dict[str, Writer] = {}
    if json_path is not None and json_path != "-":
        writers[json_path] = json_writer(report)
    if html_path is not None:
        from fewlabels.report.calibration_html import save_calibration_html

        writers[html_path] = partial(save_calibration_html, report)
    _write(predictions, found, writers, save_path, out)
    _tell(report, json_path, {"Report": html_path, "Model": save_path, "Calibrated": out})
    return 0


def _check(
    fit_only: dict[str, Any],
    apply_path: str | None,
    out: str | None,
) -> None:
    """Refuse what contradicts itself, before a file is read."""
    if out is not None:
        from fewlabels.frames.write import table_kind

        table_kind(out)
    if apply_path is None:
        if fit_only["--method"] is None:
            raise UsageError(
                "say what to do: --method temperature|vector|matrix|alpha fits a calibration, "
                "--apply MODEL.json applies one"
            )
        if out is None and all(fit_only[name] is None for name in ("--save", "--json", "--html")):
            raise UsageError(
                "say what to write: --save MODEL.json, --out FILE, --json PATH or --html PATH"
            )
        return
    given = [name for name, value in fit_only.items() if value not in (None, ())]
    if given:
        raise UsageError(
            f"--apply takes the calibration as it was saved; leave out {', '.join(given)}"
        )
    if out is None:
        raise UsageError("--apply needs --out FILE, where the calibrated predictions go")


def _everything(source: Input) -> Predictions:
    """All that is in the files: votes as counts, and every other column, the item's name too."""
    from fewlabels.estimates import ITEM

    found = source.read(None)
    if source.votes is not None and ITEM not in found.groups:  # it joined the votes: ask for it
        found = source.read([ITEM, *found.groups])
    return found.with_annotators()


def _write(
    predictions: Predictions,
    found: Recalibration,
    writers: dict[str, Writer],
    save_path: str | None,
    out: str | None,
) -> None:
    if save_path is not None:
        writers[save_path] = found.save
    if out is not None:
        from fewlabels.frames.write import table_kind, write_table

        kind, columns = table_kind(out), found.apply(predictions).columns()
        writers[out] = lambda path: write_table(columns, path, kind)
    write_outputs(writers)


def _tell(report: dict[str, Any], json_path: str | None, others: dict[str, str | None]) -> None:
    if json_path == "-":
        click.echo(json_text(report), nl=False)
        terminal.print_warnings(report["warnings"])
        return
    from fewlabels.report.calibration_text import render_calibration

    click.echo(render_calibration(report, terminal.width()))
    for what, path in {"JSON": json_path, **others}.items():
        if path is not None:
            click.echo(f"\n{what}: {one_line(path)}")
