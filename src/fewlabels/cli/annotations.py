"""`fewlabels annotations FILE`: how well classifiers predict what annotators say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from fewlabels.cli.input import Engine, Input, Settings
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
from fewlabels.cli.output import Output, check_classifiers, progress_bar, require, verdict
from fewlabels.errors import UsageError, listed, quoted

if TYPE_CHECKING:
    from fewlabels.annotations import Assessment, LabelStatistic
    from fewlabels.calibration.recalibration import Recalibrated, Recalibration

_EPILOG = """\b
Losses, smaller is better:
  L     squared distance of the probabilities from single labels
  EL    the same from the shares of the labels; EL = CL + DL
  CL    what calibration could remove; CE is its square root
  DL    what takes a better classifier
  L_disagreement, CL_disagreement, CE_disagreement
        of the predicted probability that two annotators disagree
"""


class AnnotationOptions(Record):
    """Options of `fewlabels annotations` beside the common ones."""

    statistic: tuple[str, ...] = option(
        CHOICE,
        "Also assess unanimity:3 or majority:5 (of so many labels).",
        "NAME:N",
        (),
        rare=True,
    )
    panel: Literal["random", "fixed"] = option(
        CHOICE,
        "Labels are those of annotators drawn from many, or of these few, a fixed panel.",
        default="random",
        rare=True,
    )
    scale: Literal["nominal", "ordinal", "interval"] = option(
        CHOICE,
        "For the agreement of annotators: classes are names, ordered, or grades.",
        default="nominal",
        rare=True,
    )
    bins: int = option(CHOICE, "Number of bins of equal width.", "N", 15, rare=True)
    calibration: str | None = option(
        HOW,
        "First apply a calibration that `fewlabels calibrate` saved.",
        "MODEL.json",
        file="read",
    )
    require: tuple[str, ...] = require("<=", "high")


@command(
    "annotations", short_help="How well classifiers predict what annotators say.", epilog=_EPILOG
)
@takes("source", Input, without=("reference",), positive={"rare": True}, score={"rare": True})
@takes(
    "settings",
    Settings,
    "models",
    "confidence_level",
    "seed",
    "workers",
    by="Assess by group too.",
)
@takes("options", AnnotationOptions)
@takes(
    "output",
    Output,
    "json",
    "html",
    "raw_cells",
    out="Write what is known and predicted of every item; .csv or .parquet.",
)
@takes("engine", Engine, without=("posterior",))
def assess_annotations(
    source: Input, settings: Settings, options: AnnotationOptions, output: Output, engine: Engine
) -> int:
    """Assess the classifiers in FILE by what annotators say (h__ columns).

    Shows how far each is from the shares of their labels, and how much of that calibration could
    remove. Then how well it predicts that annotators disagree, and how far these agree (of votes
    alone too). A known label is one annotator's; so are --votes and classifiers without
    probabilities.
    """
    from fewlabels.annotations.agreement import METRICS as AGREEMENTS
    from fewlabels.annotations.losses import BOUNDS, METRICS, STATISTIC_METRICS
    from fewlabels.calibration.recalibration import Recalibration
    from fewlabels.checks.arguments import bins_of, level_of
    from fewlabels.estimates import ITEM

    statistics = _statistics(options.statistic)
    bins_of(options.bins), level_of(settings.confidence_level)
    registered = [*METRICS, *(f"{m}_{phi.name}" for phi in statistics for m in STATISTIC_METRICS)]
    bounds = {**BOUNDS, **dict.fromkeys(AGREEMENTS, (-math.inf, 1.0))}
    conditions = output.conditions(options.require, bounds.get)
    for condition in conditions:
        check_choice("metric", condition.metric, [*registered, *AGREEMENTS])
    of_people = [condition for condition in conditions if condition.metric in AGREEMENTS]
    conditions = [condition for condition in conditions if condition not in of_people]
    recalibration = None if options.calibration is None else Recalibration.load(options.calibration)
    table = output.out is not None
    columns = source.column_names() if settings.by or table or recalibration else ()
    groups = comma_list(settings.by, verbatim=columns)
    arguments = {
        **settings.arguments("confidence_level", "random_state", "workers"),
        "by": groups or None,
        "bins": options.bins,
        "statistics": statistics,
    }
    fixed = "--panel fixed" if options.panel == "fixed" else None
    held = "--calibration" if recalibration else "--out" if table else fixed
    streamed = engine.streams(source, held)
    items: dict[str, Any] = {}
    if streamed is not None:
        from fewlabels.streaming.annotations_files import assess_files

        check_classifiers(conditions, lambda: engine.classifiers(source, settings.chosen()))
        arguments |= engine.reading() | {"models": settings.chosen() or None}
        assessment = engine.run(assess_files, streamed, source, **arguments)
    else:
        from fewlabels.annotations import assess
        from fewlabels.calibration.recalibration import Recalibrated

        names = [ITEM] if source.votes is not None or ITEM in columns else []
        features = [] if recalibration is None else recalibration.settings.features
        retained = list(dict.fromkeys([*(names if table else []), *groups, *features]))
        everybody = source.read(retained)
        read = everybody.with_annotators(some=recalibration is not None)
        judged = Recalibrated(read) if recalibration is None else recalibration.apply(read)
        models = judged.predictions.models
        if chosen := settings.chosen(models):
            # Of all, as a calibration may have needed the others.
            at = [models.index(name) for name in chosen]
            tables = {
                name: None if (block := getattr(judged, name)) is None else block[:, at]
                for name in ("concentration", "disagreement", "posterior")
            }
            judged = Recalibrated(judged.predictions.select_models(chosen), **tables)
        check_classifiers(conditions, lambda: judged.predictions.models)
        if table:
            items = _table(judged, names, groups)
        with progress_bar("assessing") as progress:
            assessment = assess(
                judged.predictions,
                concentration=_concentration(judged),
                panel=options.panel,
                scale=options.scale,
                annotators=everybody,
                progress=progress,
                **arguments,
            )
    if recalibration is not None:
        assessment = _calibrated(assessment, recalibration)
    if of_people and assessment.agreement is None:
        raise UsageError(
            f"--require {quoted(of_people[0].text)} is of annotators' agreement, and "
            + ("no item has two labels" if streamed is None else "files in parts have none: add "
               "--engine memory")
        )  # fmt: skip
    output.save_all(assessment.to_dict, html=assessment.save_html, out=lambda: items)
    output.show(assessment.to_dict, assessment.summary, table="Items")
    agreed = verdict(of_people, assessment.agreement) if assessment.agreement else 0
    return verdict(conditions, assessment) or agreed


_FAMILIES = {
    "unanimity": "unanimity",
    "majority": "majority_strength",
    "majority_strength": "majority_strength",
}


def _statistics(texts: Sequence[str]) -> tuple[LabelStatistic, ...]:
    """Statistics by the names of the command line or of the library."""
    from fewlabels.annotations.assessment import resolve_statistics

    names = []
    for value in dict.fromkeys(texts):
        family, colon, order = value.partition(":")
        takes_number = family in _FAMILIES and order.isascii() and order.isdigit()
        if (colon or value in _FAMILIES) and not takes_number:
            raise UsageError(
                "`--statistic` must be unanimity:N or majority:N, of N labels of an item; got "
                f"{quoted(value)}"
            )
        names.append(f"{_FAMILIES[family]}_{order}" if colon else value)
    return resolve_statistics(dict.fromkeys(names))


def _concentration(judged: Recalibrated) -> dict[str, Any] | None:
    """Concentrations of the classifiers that have any."""
    if judged.concentration is None:
        return None
    columns = zip(judged.predictions.models, judged.concentration.T, strict=True)
    # NaN is where nothing is known, and not above 0.
    return {name: alpha for name, alpha in columns if (alpha > 0).any()}


def _calibrated(assessment: Assessment, recalibration: Recalibration) -> Assessment:
    """Note on the calibration applied first, and on losses that would be too good."""
    settings = recalibration.settings
    alpha = settings.method == "alpha"
    what = f"alpha-calibration ({settings.kind})" if alpha else f"{settings.method} scaling"
    models = [name for name in recalibration.estimators if name in assessment.models]
    warning = (
        f"{what} was applied first: where it was learned from labels of this very file, its "
        "losses are too good; `fewlabels calibrate` checks it on items left out"
    )
    return replace(
        assessment,
        diagnostics={**assessment.diagnostics, "calibration": f"{what} of {listed(models)}"},
        warnings=(*assessment.warnings, warning),
    )


_OWN = ("row", "labels", "observed_disagreement")
"""Columns of --out that are not of FILE."""


def _table(judged: Recalibrated, named: Sequence[str], groups: Sequence[str]) -> dict[str, Any]:
    """What annotators said of every item, and what each classifier expects them to say.

    `labels` is how many there are; `observed_disagreement` the share of pairs of them that differ.
    """
    from fewlabels.annotations import DISAGREEMENT

    taken = [name for name in groups if name in _OWN]
    if taken:
        raise UsageError(
            f"--out has columns of its own named {listed(taken)}; rename those of --by, or leave "
            "one of the two options out"
        )
    items = judged.predictions
    counts = items.as_histograms().histogram
    assert counts is not None
    repeated = dict.fromkeys([*named, *(name for name in groups if name != "domain")])
    out: dict[str, Any] = {"row": range(1, items.n_items + 1), **items.item_names}
    out |= {name: list(items.groups[name]) for name in repeated}
    if items.domain is not None:
        out["domain"] = list(items.domain)
    out["labels"] = counts.sum(axis=1).astype(int)
    out["observed_disagreement"] = DISAGREEMENT.observed(counts)
    alpha = _concentration(judged) or {}
    for j, model in enumerate(items.models):
        if items.probabilities is None or not items.has_probabilities[:, j].any():
            continue
        expected = DISAGREEMENT.expected(items.probabilities[:, j], alpha.get(model))
        out[f"disagreement {model}"] = expected
        if model in alpha:
            out[f"concentration {model}"] = alpha[model]
            if judged.posterior is not None:
                names = [f"posterior {model} {name}" for name in items.classes]
                out |= zip(names, judged.posterior[:, j].T, strict=True)
    return out
