"""`fewlabels annotations FILE`: how well classifiers predict what annotators say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from fewlabels.cli import terminal
from fewlabels.cli.declare import takes
from fewlabels.cli.options import Input
from fewlabels.cli.output import Output, table_writer
from fewlabels.cli.require import (
    Requirement,
    check_classifiers,
    parse_requirement,
    require_option,
    verdict,
)
from fewlabels.cli.settings import Settings
from fewlabels.cli.streaming import Engine
from fewlabels.cli.text import check_choice, comma_list, text
from fewlabels.errors import UsageError, listed, quoted

if TYPE_CHECKING:
    from fewlabels.annotations import Assessment, LabelStatistic
    from fewlabels.calibration.recalibration import Recalibrated, Recalibration

_EPILOG = """\b
Losses, smaller is better:
  L     squared distance of the probabilities from single labels
  EL    from the label distribution; EL = CL + DL
  CL    what calibration could remove; CE is its square root
  DL    what only a better classifier removes
  L_disagreement, CL_disagreement, CE_disagreement
        of the predicted probability that two annotators disagree
"""


@click.command(
    "annotations", short_help="How well classifiers predict what annotators say.", epilog=_EPILOG
)
@click.option(
    "--bins", type=int, default=15, show_default=True, metavar="N", help="Of equal width."
)
@click.option(
    "--statistic",
    "statistics",
    type=text,
    multiple=True,
    metavar="NAME:N",
    help="Score unanimity:3 or majority:5 (of so many labels) as well. Repeatable.",
)
@click.option(
    "--calibration",
    "calibration_path",
    type=text,
    metavar="MODEL.json",
    help="Apply first what `fewlabels calibrate` saved.",
)
@takes(
    "settings",
    Settings,
    "models",
    "confidence_level",
    "seed",
    "workers",
    by="Assess by group too. Repeatable.",
)
@require_option("<=", "high")
@takes(
    "output",
    Output,
    "json",
    "html",
    out="Write what is known and predicted of every item; .csv or .parquet.",
)
@takes("engine", Engine, without=("posterior",))
@takes("source", Input, without=("reference",))
def assess_annotations(
    source: Input,
    engine: Engine,
    settings: Settings,
    output: Output,
    bins: int,
    statistics: tuple[str, ...],
    calibration_path: str | None,
    requirements: tuple[str, ...],
) -> int:
    """Assess the classifiers in FILE by what annotators say (h__ columns).

    How far each is from the distribution of the labels, how much of that calibration could
    remove, and how well it predicts that annotators disagree. A known label counts as one; so do
    the votes of --votes, and of whoever votes without probabilities.
    """
    conditions = [parse_requirement(condition) for condition in requirements]
    output.check(source, calibration_path)

    from fewlabels.calibration.recalibration import Recalibration
    from fewlabels.checks.arguments import bins_of, level_of
    from fewlabels.estimates import ITEM

    chosen = _statistics(statistics)
    bins_of(bins), level_of(settings.confidence_level)
    _check_metrics(conditions, [phi.name for phi in chosen])
    recalibration = None if calibration_path is None else Recalibration.load(calibration_path)
    table = output.out is not None
    columns = source.column_names() if settings.by or table or recalibration else ()
    groups = comma_list(settings.by, whole=columns)
    arguments = {
        **settings.arguments("confidence_level", "random_state", "workers"),
        "by": groups or None,
        "bins": bins,
        "statistics": chosen,
    }
    held = "--calibration" if recalibration else "--out" if table else None
    streamed = engine.streams(source, None if held is None else f"{held} would")
    items: dict[str, Any] = {}
    if streamed is not None:
        from fewlabels.streaming.annotations_files import assess_files

        check_classifiers(conditions, lambda: engine.classifiers(source, settings.chosen()))
        models = settings.chosen() or None
        assessment = engine.run(
            assess_files, streamed, source, select=models, **engine.reading(), **arguments
        )
    else:
        from fewlabels.annotations import assess

        names = [ITEM] if source.votes is not None or ITEM in columns else []
        features = [] if recalibration is None else recalibration.settings.features
        kept = list(dict.fromkeys([*(names if table else []), *groups, *features]))
        found = _selected(_read(source, kept, recalibration), settings)
        check_classifiers(conditions, lambda: found.predictions.models)
        items = _table(found, _shown(names, groups)) if table else {}
        with terminal.progress_bar("assessing") as progress:
            assessment = assess(
                found.predictions,
                concentration=_concentration(found),
                progress=progress,
                **arguments,
            )
    if recalibration is not None:
        assessment = _calibrated(assessment, recalibration)
    write_items = table_writer(output.out, lambda: items)
    output.save_all(assessment.to_dict, html=assessment.save_html, out=write_items)
    output.show(assessment.to_dict, assessment.summary, table="Items")
    return verdict(conditions, assessment)


def _statistics(said: Sequence[str]) -> tuple[LabelStatistic, ...]:
    """Statistics by the names of the command line or of the library."""
    from fewlabels.annotations.assessment import statistics_of

    names = []
    for value in dict.fromkeys(said):
        family, colon, order = value.partition(":")
        of_labels = family in _FAMILIES and order.isascii() and order.isdigit()
        if (colon or value in _FAMILIES) and not of_labels:
            raise UsageError(
                "`--statistic` must be unanimity:N or majority:N, of N labels of an item; got "
                f"{quoted(value)}"
            )
        names.append(f"{_FAMILIES[family]}_{order}" if colon else value)
    return statistics_of(dict.fromkeys(names))


_FAMILIES = {
    "unanimity": "unanimity",
    "majority": "majority_strength",
    "majority_strength": "majority_strength",
}


def _check_metrics(conditions: Sequence[Requirement], statistics: Sequence[str]) -> None:
    """Refuse a requirement of a metric that will not be there."""
    from fewlabels.annotations.losses import METRICS, STATISTIC_METRICS

    known = [*METRICS, *(f"{metric}_{name}" for name in statistics for metric in STATISTIC_METRICS)]
    for condition in conditions:
        check_choice("metric", condition.metric, known)


def _shown(names: Sequence[str], groups: Sequence[str]) -> list[str]:
    """Columns of FILE that --out repeats."""
    taken = [name for name in groups if name in _OWN]
    if taken:
        raise UsageError(
            f"--out has columns of its own named {listed(taken)}; rename those of --by, or leave "
            "one of the two options out"
        )
    return list(dict.fromkeys([*names, *(name for name in groups if name != "domain")]))


def _read(source: Input, kept: Sequence[str], recalibration: Recalibration | None) -> Recalibrated:
    from fewlabels.calibration.recalibration import Recalibrated

    predictions = source.read(kept).with_annotators()
    return Recalibrated(predictions) if recalibration is None else recalibration.apply(predictions)


def _selected(found: Recalibrated, settings: Settings) -> Recalibrated:
    """Some of the classifiers; a calibration may have needed the others."""
    known = found.predictions.models
    wanted = settings.chosen(known) or []
    for name in wanted:
        check_choice("model", name, known)
    if not wanted:
        return found
    at = [known.index(name) for name in wanted]
    parts = {
        name: None if (block := getattr(found, name)) is None else block[:, at]
        for name in ("concentration", "disagreement", "posterior")
    }
    return replace(found, predictions=found.predictions.select_models(wanted), **parts)


def _concentration(found: Recalibrated) -> dict[str, Any] | None:
    """Concentrations of the classifiers that have any."""
    if found.concentration is None:
        return None
    columns = zip(found.predictions.models, found.concentration.T, strict=True)
    # NaN is where nothing is known, and not above 0.
    return {name: alpha for name, alpha in columns if (alpha > 0).any()}


def _calibrated(assessment: Assessment, recalibration: Recalibration) -> Assessment:
    """Say what was applied first, and when its losses would be too good."""
    settings = recalibration.settings
    alpha = settings.method == "alpha"
    what = f"alpha-calibration ({settings.kind})" if alpha else f"{settings.method} scaling"
    models = [name for name in recalibration.estimators if name in assessment.models]
    said = (
        f"{what} was applied first: where it was learned from labels of this very file, its "
        "losses are too good; `fewlabels calibrate` checks it on items left out"
    )
    return replace(
        assessment,
        diagnostics={**assessment.diagnostics, "calibration": f"{what} of {listed(models)}"},
        warnings=(*assessment.warnings, said),
    )


_OWN = ("row", "labels", "observed_disagreement")


def _table(found: Recalibrated, groups: Sequence[str]) -> dict[str, Any]:
    """What annotators said of every item, and what each classifier expects them to say.

    `labels` is how many there are; `observed_disagreement` the share of pairs of them that differ.
    """
    from fewlabels.annotations import DISAGREEMENT

    items = found.predictions
    counts = items.as_histograms().histogram
    assert counts is not None
    out: dict[str, Any] = {"row": range(1, items.n_items + 1), **items.item_names}
    out |= {name: list(items.groups[name]) for name in groups}
    if items.domain is not None:
        out["domain"] = list(items.domain)
    out["labels"] = counts.sum(axis=1).astype(int)
    out["observed_disagreement"] = DISAGREEMENT.observed(counts)
    alpha = _concentration(found) or {}
    for j, model in enumerate(items.models):
        if items.probabilities is None or not items.has_probabilities[:, j].any():
            continue
        expected = DISAGREEMENT.expected(items.probabilities[:, j], alpha.get(model))
        out[f"disagreement {model}"] = expected
        if model in alpha:
            out[f"concentration {model}"] = alpha[model]
            out |= _posterior(found, j, model)
    return out


def _posterior(found: Recalibrated, j: int, model: str) -> dict[str, Any]:
    if found.posterior is None:
        return {}
    return {
        f"posterior {model} {name}": found.posterior[:, j, k]
        for k, name in enumerate(found.predictions.classes)
    }
