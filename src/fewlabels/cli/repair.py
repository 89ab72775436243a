"""Repairs: `fewlabels calibrate FILE`, `fewlabels shift FILE`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from fewlabels.cli.input import Input, Settings
from fewlabels.cli.options import (
    CHOICE,
    HOW,
    Record,
    check_choice,
    comma_list,
    command,
    option,
    takes,
)
from fewlabels.cli.output import (
    Output,
    progress_bar,
)
from fewlabels.errors import UsageError, one_line

if TYPE_CHECKING:
    from fewlabels.predictions import Predictions

_METHODS = ("temperature", "vector", "matrix", "alpha")

_EPILOG = """\b
Methods:
  temperature  one number: all probabilities sharper or softer
  vector       a slope and an offset per class
  matrix       every class from the scores of all; needs many labels
  alpha        probabilities stay; learns how sure they are, and so how often
               two annotators will disagree and what another label changes
"""


class Map(Record):
    """The calibration that is fitted, or the saved one that is applied."""

    method: str | None = option(HOW, "One of those below.", "METHOD", shell_complete=None)
    concentration: Literal["constant", "logits", "features", "classifiers"] | None = option(
        HOW, "For alpha: what the concentration depends on."
    )
    features: tuple[str, ...] = option(CHOICE, "Columns of the features.", "COL,..", ())
    penalty: float | None = option(HOW, "Use this penalty instead of choosing one.", "X")
    even_if_worse: bool = option(
        HOW, "Write the map even where it makes a classifier worse.", default=False, rare=True
    )
    apply: str | None = option(
        HOW, "Apply a saved map to FILE.", "MODEL.json", file="read", type=str
    )

    def check(self, settings: Settings, output: Output) -> None:
        """Refuse contradictory options before a file is read."""
        if self.apply is None:
            if self.method is None:
                raise UsageError(
                    "say what to do: --method temperature|vector|matrix|alpha fits a calibration, "
                    "--apply MODEL.json applies one"
                )
            if output.save is output.out is output.json is output.html is None:
                raise UsageError(
                    "say what to write: --save MODEL.json, --out FILE, --json PATH or --html PATH"
                )
            return
        fits = {name: getattr(self, name) for name in ("method", "concentration", "features")}
        fits |= {"penalty": self.penalty, "save": output.save, "json": output.json}
        fits |= {"html": output.html, "models": settings.models}
        fits |= {"even-if-worse": self.even_if_worse or None}
        provided = [f"--{name}" for name, value in fits.items() if value not in (None, ())]
        if provided:
            raise UsageError(
                f"--apply takes the calibration as it was saved; leave out {', '.join(provided)}"
            )
        if output.out is None:
            raise UsageError("--apply needs --out FILE, where the calibrated predictions go")


@command(short_help="Calibrate classifiers; save or apply the calibration.", epilog=_EPILOG)
@takes("source", Input, without=("positive", "reference"))
@takes("settings", Settings, "models", "seed")
@takes("options", Map)
@takes(
    "output",
    Output,
    "json",
    "html",
    "save",
    "raw_cells",
    out="Write FILE calibrated: .csv or .parquet.",
)
def calibrate(source: Input, settings: Settings, options: Map, output: Output) -> int:
    """Fit a calibration to the classifiers in FILE, or apply one that was saved.

    Learns from known labels or from annotators' counts (h__ columns, or --votes). --out writes a
    file like FILE. A calibration that makes a classifier worse on items left out is not written.
    """
    options.check(settings, output)

    from fewlabels.calibration.recalibration import Recalibration, fit
    from fewlabels.calibration.recalibration import Settings as MapSettings

    if options.apply is not None:
        saved = Recalibration.load(options.apply)
        if source.classes is None and not any("," in str(c) for c in saved.classes):
            # Items without labels may not show what the classes are; the calibration knows.
            source = source.but(classes=",".join(map(str, saved.classes)))
        predictions = _everything(source)
        output.save_all(dict, out=lambda: saved.apply(predictions).columns())
        click.echo(f"Calibrated: {one_line(output.out or '')}")
        return 0
    assert options.method is not None
    check_choice("method", options.method, _METHODS)
    features = (
        comma_list(options.features, verbatim=source.column_names()) if options.features else []
    )
    predictions = _everything(source)
    models = settings.chosen(predictions.models)
    chosen = predictions if models is None else predictions.select_models(models)
    with progress_bar("calibrating") as progress:
        fitted = fit(
            chosen,
            MapSettings(
                options.method,
                options.concentration,
                tuple(features),
                options.penalty,
                settings.seed,
            ),
            progress,
        )
    worse = bool(fitted.worse) and not options.even_if_worse
    written = output.but(save=None, out=None) if worse else output
    written.save_all(
        fitted.to_dict,
        html=fitted.save_html,
        save=lambda path: fitted.save(path, even_if_worse=True),
        out=lambda: fitted.apply(predictions).columns(),
    )
    written.show(fitted.to_dict, fitted.summary, table="Calibrated")
    if written is not output and (output.save or output.out):
        fitted.refuse_worse()
    return 0


def _everything(source: Input) -> Predictions:
    """All that is in the files: votes as counts, and every other column, the item's name too.

    Annotators are those of the file of votes: hard predictions in FILE are a classifier's.
    """
    from fewlabels.estimates import ITEM

    everything = source.read(None)
    if source.votes is None:
        return everything
    if ITEM not in everything.groups:  # it joined the votes
        everything = source.read([ITEM, *everything.groups])
    classifiers = source.but(votes=None, duplicates="refuse").read(None).models
    return everything.with_annotators([name not in classifiers for name in everything.models])


@command(short_help="Do labeled items differ from the unlabeled ones?")
@takes("source", Input, without=("reference",))
@takes(
    "settings",
    Settings,
    "options",
    "confidence_level",
    "seed",
    method="The method that learns P(class | scores) from the labels.",
)
@takes("output", Output, "json", "html")
def shift(source: Input, settings: Settings, output: Output) -> None:
    """Test whether the labeled items of FILE look like a random sample of all its items.

    Where they do not: what differs, how frequent the classes are among the unlabeled items, and
    which correction `fewlabels estimate --shift` would make.
    """
    from fewlabels.shifts.analysis import shift as run

    arguments = settings.arguments("method", "confidence_level", "random_state")
    result = run(source.read([]), **arguments)
    output.save_all(result.to_dict, html=result.save_html)
    output.show(result.to_dict, result.summary)
