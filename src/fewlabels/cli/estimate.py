"""`fewlabels estimate FILE`: how good each classifier is, from a file with few labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from fewlabels.cli import terminal
from fewlabels.cli.declare import takes
from fewlabels.cli.options import Input
from fewlabels.cli.output import Output, table_writer
from fewlabels.cli.require import (
    check_classifiers,
    parse_requirement,
    require_option,
    verdict,
    with_required,
)
from fewlabels.cli.settings import Settings
from fewlabels.cli.streaming import Engine
from fewlabels.cli.text import check_choice, comma_list, text
from fewlabels.errors import UsageError, quoted

if TYPE_CHECKING:
    from fewlabels.estimates import Estimates
    from fewlabels.pipeline import Against
    from fewlabels.predictions import Predictions
    from fewlabels.shifts.correction import Correction


_METHODS = """\b
Methods:
  auto                  the default: learned-ensemble; monotone-curves for the scores
                        of one classifier, vote-selection for votes without a label
  learned-ensemble      probabilities, scores and votes, weighed by the labels
  agreement-ensemble, tempered-ensemble
                        the pooled classifiers, recalibrated by the labels
  monotone-curves, spe  one classifier's score at a time: curves, or densities per class
  ssme-kde, ssme-kde-marginal, ssme-flow
                        mixtures of all classifiers' scores, or of one at a time
  dawid-skene, majority-vote, agreement-rates, crowd-svm
                        from hard predictions and votes
  bee, cbee, hcbee, cbcc, confusion-bee, confusion-cbee, confusion-hcbee
                        error rates from votes, in each domain; vote-selection
                        takes the one that predicts held-out votes best
  pseudo-label, bayesian-calibration, autoeval, active-testing, ensemble, labeled
                        baselines; `labeled` is the labeled items alone
"""


@click.command(short_help="How good each classifier is, with intervals.", epilog=_METHODS)
@click.option(
    "--metrics",
    type=text,
    default="default",
    metavar="A,B,..",
    help="By scikit-learn's names. Unless said it follows FILE: accuracy, ece, roc_auc and "
    "average_precision of probabilities; roc_auc and average_precision of scores; error_rate and "
    "cohen_kappa of votes.",
)
@click.option(
    "--threshold",
    "thresholds",
    type=text,
    multiple=True,
    metavar="[NAME=]P",
    help="Predict positive from P(positive) >= P on, not .5. Repeatable.",
)
@click.option(
    "--against",
    type=click.Choice(["auto", "class", "distribution"]),
    default="auto",
    show_default=True,
    help="With annotators' counts (h__ columns): one class per item, or the distribution of "
    "their labels.",
)
@click.option(
    "--shift",
    type=click.Choice(["auto", "covariate", "label"]),
    help="Correct by weights for labeled items that differ from the others (docs/shift.md).",
)
@takes(
    "settings",
    Settings,
    method="One of those below.",
    by="Estimate by group too. Repeatable.",
)
@require_option(">=", "low")
@takes("output", Output, "json", "html", "labels_out")
@takes("engine", Engine)
@takes("source", Input)
def estimate(
    source: Input,
    engine: Engine,
    settings: Settings,
    output: Output,
    metrics: str,
    thresholds: tuple[str, ...],
    against: Against,
    shift: Correction | None,
    requirements: tuple[str, ...],
) -> int:
    """Estimate how good each classifier in FILE is, from the few labels there are."""
    conditions = [parse_requirement(condition) for condition in requirements]
    asked = with_required(comma_list(metrics), conditions)
    output.check(source)

    from fewlabels.metrics.registry import check_asked

    settings.check_method(source.reference)
    check_asked(asked)
    groups = settings.groups(source)
    arguments = {
        **settings.arguments("method", "confidence_level", "estimand", "random_state", "workers"),
        "metrics": asked,
        "by": groups or None,
        "against": against,
    }
    cuts = _parse_thresholds(thresholds)
    held = "--labels-out" if output.labels_out else "--shift" if shift is not None else None
    streamed = engine.streams(source, None if held is None else f"{held} would")
    if streamed is not None:
        from fewlabels.streaming.stream import estimate_files

        check_classifiers(conditions, lambda: engine.classifiers(source, settings.chosen()))
        estimates = engine.run(
            estimate_files,
            streamed,
            source,
            select=settings.chosen(),
            threshold=cuts.everyone,
            thresholds=cuts.named,
            reference=source.reference,
            posterior=engine.posterior,
            **engine.reading(),
            **arguments,
        )
    else:
        from fewlabels.estimating import estimate as run

        item = [] if output.labels_out is None else _item(source)
        predictions = _thresholded(_select(source.read([*groups, *item]), settings), cuts)
        check_classifiers(conditions, lambda: predictions.models)
        reference = _cut_alike(source.reference_of(predictions), cuts)
        with terminal.progress_bar("estimating") as progress:
            estimates = run(
                predictions, progress=progress, shift=shift, reference=reference, **arguments
            )
    labels = table_writer(output.labels_out, lambda: _likeliest(estimates))
    output.save_all(estimates.to_dict, html=estimates.save_html, labels_out=labels)
    also = {"Class probabilities": engine.posterior}
    output.show(estimates.to_dict, estimates.summary, also=also)
    return verdict(conditions, estimates)


class _Cuts(NamedTuple):
    """Where predictions become positive: for all classifiers, and for those that are named."""

    everyone: float | None
    named: dict[str, float]


def _parse_thresholds(texts: Sequence[str]) -> _Cuts:
    everyone: float | None = None
    named: dict[str, float] = {}
    for given in texts:
        name, _, number = given.rpartition("=")
        try:
            cut = float(number)
        except ValueError:
            raise UsageError(
                f"--threshold must be P or NAME=P with a number P; got {quoted(given)}"
            ) from None
        if name in named or (not name and everyone is not None):
            raise UsageError(f"--threshold {quoted(given)}: there is another one before it")
        if name:
            named[name] = cut
        else:
            everyone = cut
    return _Cuts(everyone, named)


def _thresholded(predictions: Predictions, cuts: _Cuts) -> Predictions:
    """Cut the probabilities of all classifiers that have any, then of those that are named."""
    if cuts.everyone is not None:
        predictions = predictions.thresholded(cuts.everyone)
    return predictions.thresholded(cuts.named) if cuts.named else predictions


def _cut_alike(reference: Predictions | None, cuts: _Cuts) -> Predictions | None:
    from fewlabels.data.inputs import cut_at

    return None if reference is None else cut_at(reference, cuts.everyone, cuts.named)


def _select(predictions: Predictions, settings: Settings) -> Predictions:
    wanted = settings.chosen(predictions.models) or []
    for name in wanted:
        check_choice("model", name, predictions.models)
    return predictions.select_models(wanted) if wanted else predictions


def _item(source: Input) -> list[str]:
    """The group that names the items, where there is one."""
    from fewlabels.estimates import ITEM

    return [ITEM] if source.votes is not None or ITEM in source.column_names() else []


def _likeliest(estimates: Estimates) -> dict[str, Any]:
    """The likeliest class of every item; rows count from 1, as in all other files."""
    from fewlabels.estimates import ITEM

    columns = estimates.label_columns()
    if ITEM in estimates.predictions.groups:
        return columns
    return {"row": [item + 1 for item in columns.pop(ITEM)], **columns}
