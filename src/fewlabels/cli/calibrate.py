"""`fewlabels calibrate FILE`: calibrate classifiers by labels or by annotators' counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from fewlabels.cli import terminal
from fewlabels.cli.declare import takes
from fewlabels.cli.options import Input
from fewlabels.cli.output import Output, table_writer
from fewlabels.cli.settings import Settings
from fewlabels.cli.text import check_choice, comma_list, text
from fewlabels.errors import UsageError, one_line

if TYPE_CHECKING:
    from fewlabels.predictions import Predictions

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
@click.option("--apply", "apply_path", metavar="MODEL.json", help="Apply a saved map to FILE.")
@takes("settings", Settings, "models", "seed")
@takes("output", Output, "json", "html", "save", out="Write FILE calibrated: .csv or .parquet.")
@takes("source", Input, without=("positive", "reference"))
def calibrate(
    source: Input,
    settings: Settings,
    output: Output,
    method: str | None,
    concentration: Any,
    features: tuple[str, ...],
    penalty: float | None,
    apply_path: str | None,
) -> int:
    """Fit a calibration to the classifiers in FILE, or apply one that was saved.

    Learned from known labels or from annotators' counts (h__ columns, or --votes). What comes out
    of --out is a file like FILE.
    """
    fit_only = {
        "--method": method, "--concentration": concentration, "--features": features,
        "--penalty": penalty, "--save": output.save, "--json": output.json, "--html": output.html,
        "--models": settings.models,
    }  # fmt: skip
    _check(fit_only, apply_path, output)
    output.check(source, apply_path)

    from fewlabels.calibration.recalibration import Recalibration, fit
    from fewlabels.calibration.recalibration import Settings as Map

    if apply_path is not None:
        found = Recalibration.load(apply_path)
        if source.classes is None and not any("," in str(c) for c in found.classes):
            # Items without labels may not show what the classes are; the calibration knows.
            source = replace(source, classes=",".join(map(str, found.classes)))
        predictions = _everything(source)
        out = table_writer(output.out, lambda: found.apply(predictions).columns())
        output.save_all(dict, out=out)
        click.echo(f"Calibrated: {one_line(output.out or '')}")
        return 0
    assert method is not None
    check_choice("method", method, _METHODS)
    columns = comma_list(features, whole=source.column_names()) if features else []
    predictions = _everything(source)
    models = settings.chosen(predictions.models)
    chosen = predictions if models is None else predictions.select_models(models)
    asked = Map(method, concentration, tuple(columns), penalty, settings.seed)
    with terminal.progress_bar("calibrating") as progress:
        found, report = fit(chosen, asked, progress)

    from fewlabels.report import render_calibration, save_page

    output.save_all(
        lambda: report,
        html=partial(save_page, "calibration", report),
        save=found.save,
        out=table_writer(output.out, lambda: found.apply(predictions).columns()),
    )
    output.show(lambda: report, partial(render_calibration, report), table="Calibrated")
    return 0


def _check(fit_only: Mapping[str, Any], apply_path: str | None, output: Output) -> None:
    """Refuse what contradicts itself, before a file is read."""
    if apply_path is None:
        if fit_only["--method"] is None:
            raise UsageError(
                "say what to do: --method temperature|vector|matrix|alpha fits a calibration, "
                "--apply MODEL.json applies one"
            )
        if output.out is None and all(
            fit_only[name] is None for name in ("--save", "--json", "--html")
        ):
            raise UsageError(
                "say what to write: --save MODEL.json, --out FILE, --json PATH or --html PATH"
            )
        return
    given = [name for name, value in fit_only.items() if value not in (None, ())]
    if given:
        raise UsageError(
            f"--apply takes the calibration as it was saved; leave out {', '.join(given)}"
        )
    if output.out is None:
        raise UsageError("--apply needs --out FILE, where the calibrated predictions go")


def _everything(source: Input) -> Predictions:
    """All that is in the files: votes as counts, and every other column, the item's name too."""
    from fewlabels.estimates import ITEM

    found = source.read(None)
    if source.votes is not None and ITEM not in found.groups:  # it joined the votes: ask for it
        found = source.read([ITEM, *found.groups])
    return found.with_annotators()
