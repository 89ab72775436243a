"""How good the classifiers are: `fewlabels estimate FILE`, `fewlabels compare FILE`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Literal

import click

from fewlabels.cli.input import ESTIMATING, Engine, Input, Settings
from fewlabels.cli.options import CHOICE, HOW, Record, comma_list, command, loudness, option, takes
from fewlabels.cli.output import (
    Output,
    check_classifiers,
    junit_text,
    progress_bar,
    require,
    together,
    verdict,
)
from fewlabels.errors import UsageError, quoted

if TYPE_CHECKING:
    from fewlabels.predictions import Predictions
    from fewlabels.report.shown import Result


_SECONDS, _BYTES = 1e-5, 180
"""What an item times a class takes on one processor, about (docs/speed.md), with intervals."""

_LONG = 200.0


def long_run(predictions: Predictions, method: str) -> str:
    """What a run of many items times classes will take, and what takes less; "" of others."""
    n, k = predictions.n_items, predictions.n_classes
    seconds = _SECONDS * n * k
    if seconds < _LONG or method == "labeled" or predictions.multiplicity is not None:
        return ""
    return (
        f"{n:,} items x {k:,} classes take about {seconds / 60:,.0f} minutes on one processor and "
        f"{_BYTES * n * k / 1e9:,.0f} GB: --method labeled takes seconds, as it judges by the "
        "labels alone; so do fewer items, and rare classes in one (--same RARE=other)"
    )


class EstimateOptions(Record):
    """Options of `fewlabels estimate` beside the common ones."""

    metrics: str | None = option(
        CHOICE,
        "Named as in scikit-learn; `grades` are all of grades. By default accuracy, ece, roc_auc "
        "and average_precision, as far as FILE gives them.",
        "A,B,..",
    )
    threshold: tuple[str, ...] = option(
        CHOICE,
        "Predict positive from this P(positive) on, instead of .5.",
        "[NAME=]P",
        (),
    )
    against: Literal["auto", "class", "distribution"] = option(
        HOW,
        "With annotators' counts (h__ columns): judge by one class per item, or by the "
        "distribution of their labels.",
        default="auto",
        rare=True,
    )
    shift: Literal["auto", "covariate", "label"] | None = option(
        HOW, "Weight labeled items that differ from the others (docs/shift.md)."
    )
    anytime: bool = option(
        HOW,
        "Also give intervals that stay valid however often you look and whenever you stop "
        "labeling; needs --labels RECORD, a record of `fewlabels label`.",
        default=False,
        rare=True,
    )
    require: tuple[str, ...] = require(">=", "low")


@command(short_help="How good each classifier is, with intervals.")
@takes("source", Input)
@takes("settings", Settings, by="Estimate by group too.")
@takes("options", EstimateOptions)
@takes(
    "output", Output, "json", "html", "to", "labels_out", "raw_cells", "markdown", "junit",
    "confusion", "disagreements",
)  # fmt: skip
@takes("engine", Engine)
def estimate(
    source: Input, settings: Settings, options: EstimateOptions, output: Output, engine: Engine
) -> int:
    """Estimate how good each classifier in FILE is, from the few labels there are."""
    from fewlabels.metrics.registry import DEFAULT, bounds_of, check_asked

    conditions = output.conditions(options.require, bounds_of)
    required = [requirement.metric for requirement in conditions]
    metrics = [*dict.fromkeys([*comma_list(options.metrics or DEFAULT), *required])]
    if options.anytime and (len(source.labels) != 1 or source.labels_as is not None):
        raise UsageError(
            "--anytime goes by the order in which items were drawn; give one record of "
            "`fewlabels label` (--labels RECORD), without --labels-as"
        )

    from fewlabels.estimates import ITEM

    arguments = settings.arguments(*ESTIMATING, reference=source.reference)
    check_asked(metrics)
    groups = settings.groups(source)
    arguments |= {"metrics": metrics, "by": groups or None, "against": options.against}
    everyone, named = _cuts(options.threshold)
    held = {
        "--labels-out": output.labels_out, "--shift": options.shift,
        "--disagreements": output.disagreements,
    }  # fmt: skip
    streamed = engine.streams(source, next((n for n, v in held.items() if v), None))
    folder, done = None, ExitStack()
    if engine.posterior is not None:
        folder = click.get_current_context().with_resource(engine.folder())
    estimates = None
    if streamed is not None:
        from fewlabels.streaming.scan import TooManyGroupsError
        from fewlabels.streaming.stream import estimate_files

        check_classifiers(conditions, lambda: engine.classifiers(source, settings.chosen()))
        try:
            estimates = engine.run(
                estimate_files,
                streamed,
                source,
                models=settings.chosen(),
                threshold=everyone,
                thresholds=named,
                reference=source.reference,
                posterior=folder,
                done=done,
                **engine.reading(),
                **arguments,
            )
        except TooManyGroupsError:
            if engine.requested is not None:
                raise
    if estimates is None:  # read whole
        from fewlabels.data.inputs import apply_thresholds
        from fewlabels.estimating import estimate as run

        items = [ITEM] if output.labels_out is not None and source.names_items() else []
        with progress_bar("reading") as progress:
            keep = None if output.disagreements is not None else [*groups, *items]
            predictions = source.read(keep, tasks=True)
            chosen = settings.chosen(predictions.models)
            predictions = predictions.select_models(chosen) if chosen else predictions
            if everyone is not None:
                predictions = predictions.thresholded(everyone)
            if named:
                predictions = predictions.thresholded(named)
            check_classifiers(conditions, lambda: predictions.models)
            reference = None
            if source.reference is not None:
                reference = apply_thresholds(
                    source.read_reference_for(predictions), everyone, named
                )
            if (note := long_run(predictions, settings.method)) and loudness() != "quiet":
                click.echo(note, err=True)
            estimates = run(
                predictions,
                progress=progress,
                shift=options.shift,
                reference=reference,
                **arguments,
            )

    if options.anytime:
        from fewlabels.questions.anytime import anytime

        estimates = anytime(estimates, source.labels[0])
    if options.metrics is None:
        estimates = estimates.showing(asked=required)
    if output.confusion:
        estimates = estimates.showing(confusion=estimates.confusion().to_dict())

    def likeliest() -> dict[str, Any]:
        columns = estimates.label_columns()
        if estimates.predictions.item_names:
            return columns
        # Rows count from 1, as in all other files.
        return {"row": [item + 1 for item in columns.pop(ITEM)], **columns}

    def rows() -> dict[str, Any]:
        every = estimates.to_dict()["estimates"]
        return {name: [row[name] for row in every] for name in every[0]}

    shown: list[Result] = [estimates]
    if output.disagreements is not None:
        shown.append(estimates.disagreements())
    tables = {}
    if folder is not None and folder.table is not None:
        tables[folder.table] = folder.batches
        done.callback(folder.discard)
    output.save_all(
        estimates.to_dict,
        None if folder is None or tables else folder.place,
        tables,
        to=rows,
        html=estimates.save_html,
        labels_out=likeliest,
        markdown=estimates.to_markdown,
        junit=lambda: junit_text(conditions, estimates),
        disagreements=lambda: shown[-1].to_dict()["columns"],
    )
    done.close()
    also = {"Class probabilities": engine.posterior}
    output.show(estimates.to_dict, together(shown), also=also, markdown=estimates.to_markdown)
    return verdict(conditions, estimates)


def _cuts(texts: Sequence[str]) -> tuple[float | None, dict[str, float]]:
    """From where on predictions are positive: for all classifiers, and for those named."""
    cuts: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            cut = float(number)
        except ValueError:
            raise UsageError(
                f"--threshold must be P or NAME=P with a number P; got {quoted(text)}"
            ) from None
        if name in cuts:
            raise UsageError(f"--threshold {quoted(text)}: there is another one before it")
        cuts[name] = cut
    return cuts.pop("", None), cuts


class Ranking(Record):
    """The metrics that `fewlabels compare` ranks by."""

    metric: tuple[str, ...] = option(
        CHOICE,
        "Metric to compare by. By default accuracy, or roc_auc if there are scores alone. ",
        "M",
        (),
    )


@command(short_help="Which classifier is best, and how sure that is.")
@takes("source", Input)
@takes("settings", Settings, models="Compare only these classifiers.")
@takes("ranking", Ranking)
@takes("output", Output, "json", "html")
def compare(source: Input, settings: Settings, ranking: Ranking, output: Output) -> None:
    """Compare the classifiers in FILE: ranking, paired differences, and joint errors.

    Says which classifiers differ significantly, which may be the best, and about how many more
    labels are needed to decide; then how much they differ between groups, and fail together.
    """
    from fewlabels.questions.compare import check_ranking
    from fewlabels.questions.compare import compare as run

    arguments = settings.arguments(*ESTIMATING, reference=source.reference)
    metrics = comma_list(ranking.metric)
    if metrics:
        check_ranking(metrics)
    groups = settings.groups(source)
    predictions = source.read(groups, tasks=True)
    with progress_bar("estimating") as progress:
        compared = run(
            predictions,
            metrics or None,
            by=groups or None,
            models=settings.chosen(predictions.models),
            progress=progress,
            reference=source.read_reference_for(predictions)
            if source.reference is not None
            else None,
            **arguments,
        )
    output.save_all(compared.to_dict, html=compared.save_html)
    output.show(compared.to_dict, compared.summary)


class Passing(Record):
    """The class that passes, for `fewlabels score`."""

    positive: str | None = option(
        CHOICE,
        "The class that counts as a pass. By default the positive one of two; for numeric grades "
        "the mean grade.",
        "CLASS",
    )


@command(short_help="Pass rate of what judges evaluate, corrected for their mistakes.")
@takes("source", Input, without=("reference", "positive"))
@takes("passing", Passing)
@takes(
    "settings", Settings, "method", "options", "confidence_level", "seed", "workers",
    models="Only these judges.",
)  # fmt: skip
@takes("output", Output, "json", "html", "raw_cells", "confusion", "disagreements")
def score(source: Input, passing: Passing, settings: Settings, output: Output) -> None:
    """Estimate the pass rate, or mean grade, of the system that the judges in FILE evaluate.

    Shows the judges' own rates, that of the labels alone, that of the labels and each judge
    together (prediction-powered), and that of all judges together. A log with several criteria
    gets a score for each.
    """
    from fewlabels.data.read import read_predictions
    from fewlabels.data.sources import by_criterion
    from fewlabels.questions.score import scored

    keep: list[str] | None = [] if output.disagreements is None else None
    each = [(None, None)] if source.file is None else by_criterion(source.file)
    arguments = settings.arguments("method", "confidence_level", "random_state", "workers")
    with progress_bar("scoring"):
        read = (
            (name, read_predictions(keep=keep, **source.but(file=path).reading()))
            for name, path in each
        )
        scores = scored(
            read, positive=passing.positive, models=settings.chosen(), confusion=output.confusion,
            **arguments,
        )  # fmt: skip
    shown: list[Result] = [scores]
    if output.disagreements is not None:
        shown.append(scores.disagreements())
    output.save_all(
        scores.to_dict,
        html=scores.save_html,
        disagreements=lambda: shown[-1].to_dict()["columns"],
    )
    output.show(scores.to_dict, together(shown))
