"""`fewlabels threshold FILE`: the threshold that meets conditions, and how probably it does."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from fewlabels.cli import terminal
from fewlabels.cli.declare import Command, takes
from fewlabels.cli.one_model import METHODS, OneModel, item_table, save_drawn, takes_one_model
from fewlabels.cli.output import Output
from fewlabels.cli.text import text
from fewlabels.errors import UsageError, quoted

if TYPE_CHECKING:
    from fewlabels.predictions import Predictions


def _bound(name: str, words: str) -> Callable[[Command], Command]:
    return click.option(name, type=float, metavar="X", help=words)


@click.command(short_help="Where to put the threshold, and how sure that is.", epilog=METHODS)
@_bound("--min-precision", "Of the items called positive, at least this share is.")
@_bound("--min-recall", "Of the positive items, at least this share is called so.")
@_bound("--min-specificity", "Of the other items, at least this share is not called so.")
@_bound("--min-f1", "Harmonic mean of precision and recall.")
@_bound("--min-accuracy", "Share of items that are called rightly.")
@_bound("--max-fpr", "False-positive rate, 1 - specificity.")
@_bound("--max-cost", "Cost per item, of --cost.")
@click.option(
    "--cost",
    type=text,
    metavar="FP,FN",
    default="1,1",
    show_default=True,
    help="Cost of a false positive and of a false negative.",
)
@click.option(
    "--condition",
    "conditions",
    type=text,
    multiple=True,
    metavar="'RATE>=X and ..'",
    help="Any rates, such as 'npv >= .99 and fpr <= .05'. Repeatable.",
)
@click.option(
    "--probability",
    "required",
    type=click.FloatRange(0, 1),
    metavar="X",
    help="Exit with 1 unless the conditions hold with this probability.",
)
@takes(
    "output",
    Output,
    "json",
    "svg",
    html="Write the report as HTML.",
    out="Write what the threshold makes of every item; .csv or .parquet.",
)
@takes_one_model("confidence_level", "estimand")
def threshold(
    chosen: OneModel,
    output: Output,
    cost: str,
    conditions: tuple[str, ...],
    required: float | None,
    **bounds: Any,
) -> int:
    """Find the threshold of one classifier in FILE that most probably meets all conditions.

    --out gives row (from 1), score, label and whether the best threshold calls it positive.
    """
    costs = _costs(cost)
    if not conditions and all(bound is None for bound in bounds.values()):
        raise UsageError(
            "say what the threshold must meet: --min-precision .8, --min-recall .8, --max-fpr .05, "
            "or --condition 'npv >= .99'"
        )
    output.check(chosen.source)

    from fewlabels.questions.threshold import threshold as run

    predictions = chosen.read()
    with terminal.progress_bar("trying thresholds") as progress:
        found = run(
            predictions,
            cost=costs,
            condition=" and ".join(conditions) or None,
            progress=progress,
            **bounds,
            **chosen.arguments("confidence_level", "estimand"),
        )
    report = found.report()
    save_drawn(output, report, found.save_html, lambda: _decisions(predictions, report))
    output.show(lambda: report, found.summary)
    return _verdict(required, report["best_probability"])


def _costs(said: str) -> tuple[float, float]:
    try:
        false_positive, false_negative = (float(part) for part in said.split(","))
    except ValueError:
        false_positive = false_negative = math.nan
    if not all(math.isfinite(c) and c >= 0 for c in (false_positive, false_negative)):
        raise UsageError(
            "`--cost` must be two costs, of a false positive and of a false negative, such as "
            f"--cost 1,5; got {quoted(said)}"
        )
    return false_positive, false_negative


def _decisions(predictions: Predictions, report: Mapping[str, Any]) -> dict[str, Any]:
    columns = item_table(predictions, report["model"], report["positive"])
    best = math.nan if report["best"] is None else report["best"]
    scores = columns["score"].tolist()
    unknown = (math.isnan(score) or math.isnan(best) for score in scores)
    columns["called_positive"] = [
        None if skip else score >= best for score, skip in zip(scores, unknown, strict=True)
    ]
    return columns


def _verdict(required: float | None, probability: float) -> int:
    if required is None or probability >= required:
        return 0
    click.echo(
        f"not met: --probability {required:.4g}: the best threshold meets the conditions with "
        f"probability {probability:.4g}",
        err=True,
    )
    return 1
