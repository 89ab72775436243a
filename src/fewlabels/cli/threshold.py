"""`fewlabels threshold FILE`: the threshold that meets conditions, and how probably it does."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from fewlabels.cli import terminal
from fewlabels.cli.one_model import (
    METHODS,
    Command,
    Files,
    OneModel,
    interval_options,
    item_table,
    one_model_options,
    result_options,
)
from fewlabels.cli.text import text
from fewlabels.errors import UsageError
from fewlabels.wording import quoted

if TYPE_CHECKING:
    from fewlabels.operating.threshold import Thresholds
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
@interval_options
@result_options("Write what the threshold makes of every item; .csv or .parquet.")
@one_model_options
def threshold(
    chosen: OneModel,
    files: Files,
    cost: str,
    conditions: tuple[str, ...],
    required: float | None,
    **settings: Any,
) -> int:
    """Find the threshold of one classifier in FILE that most probably meets all conditions.

    --out gives row (from 1), score, label and whether the best threshold calls it positive.
    """
    costs = _costs(cost)
    bounds = [bound for name, bound in settings.items() if name.startswith(("min_", "max_"))]
    if not conditions and all(bound is None for bound in bounds):
        raise UsageError(
            "say what the threshold must meet: --min-precision .8, --min-recall .8, --max-fpr .05, "
            "or --condition 'npv >= .99'"
        )
    files.check(chosen.source)

    from fewlabels.operating.threshold import threshold as run

    predictions = chosen.read()
    with terminal.progress_bar("trying thresholds") as progress:
        found = run(
            predictions,
            cost=costs,
            condition=" and ".join(conditions) or None,
            progress=progress,
            **settings,
            **chosen.arguments(),
        )
    files.deliver(
        found.report(), found.summary, lambda: _decisions(predictions, found), found.save_html
    )
    return _verdict(required, found.best_probability)


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


def _decisions(predictions: Predictions, found: Thresholds) -> dict[str, Any]:
    columns = item_table(predictions, found.model, found.positive)
    columns["called_positive"] = [
        None if math.isnan(score) or math.isnan(found.best) else score >= found.best
        for score in columns["score"].tolist()
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
