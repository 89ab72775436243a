"""`fewlabels calibration FILE`: whether probabilities mean what they say."""

from __future__ import annotations

from typing import Literal

from fewlabels.cli.input import Input, Settings
from fewlabels.cli.options import CHOICE, Record, command, option, takes
from fewlabels.cli.output import Output, check_classifiers, progress_bar, require, verdict
from fewlabels.errors import UsageError, quoted


class CalibrationOptions(Record):
    """Options of `fewlabels calibration` beside the common ones."""

    bins: int = option(CHOICE, "Number of bins.", default=15, at_least=1)
    binning: Literal["width", "quantile"] = option(
        CHOICE, "Bins of equal width, or between quantiles of the probabilities.", default="width"
    )
    norm: Literal["l1", "l2", "max"] = option(
        CHOICE,
        "Of the gaps: the mean (l1: ece), root mean square (l2: ece_l2), or the largest (ece_max).",
        default="l1",
    )
    classwise: bool = option(
        CHOICE,
        "A curve for every class of several, not of the confidence in the predicted one.",
        default=False,
    )
    require: tuple[str, ...] = require("<=", "high")


@command(short_help="Whether probabilities mean what they say: calibration curves.")
@takes("source", Input, without=("reference",))
@takes(
    "settings", Settings, "models", "method", "options", "confidence_level", "seed", "workers",
)  # fmt: skip
@takes("options", CalibrationOptions)
@takes(
    "output", Output, "json", "html", "raw_cells",
    out="Write the bins of the curves; .csv or .parquet.",
)  # fmt: skip
def calibration(
    source: Input, settings: Settings, options: CalibrationOptions, output: Output
) -> int:
    """Draw how often events come true at each probability in FILE.

    With the error of calibration and a test; `fewlabels calibrate` makes calibrated ones.
    """
    curve = dict(vars(options))
    from fewlabels.metrics.calibration import calibration_error
    from fewlabels.questions.calibration_curve import calibration_curve

    errors = (calibration_error(options.norm, event) for event in ("positive", "every"))
    bounds = {error.name: error.bounds for error in errors}
    conditions = output.conditions(curve.pop("require"), bounds.get)
    curve |= settings.arguments("method", "confidence_level", "random_state", "workers")
    with progress_bar("reading") as progress:
        predictions = source.read([])
        every = options.classwise and predictions.n_classes > 2
        error = calibration_error(options.norm, "every" if every else "positive").name
        for condition in conditions:
            if condition.metric != error:
                raise UsageError(
                    f"--require {quoted(condition.text)}: the error is {error} here; --norm and "
                    "--classwise choose another"
                )
        check_classifiers(conditions, lambda: predictions.models)
        models = settings.chosen(predictions.models)
        found = calibration_curve(predictions, models, progress=progress, **curve)
    output.save_all(found.to_dict, html=found.save_html, out=found.columns)
    output.show(found.to_dict, found.summary)
    return verdict(conditions, found)
