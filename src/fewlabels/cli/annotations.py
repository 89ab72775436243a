"""`fewlabels annotations FILE`: how well classifiers predict what annotators say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from fewlabels.cli import terminal
from fewlabels.cli.options import Input, input_options, positive_option
from fewlabels.cli.output import (
    Writer,
    check_outputs,
    json_text,
    json_writer,
    write_outputs,
)
from fewlabels.cli.require import Requirement, check_classifiers, parse_requirement
from fewlabels.cli.streaming import Engine, reading_options, stream_bar
from fewlabels.cli.text import check_choice, comma_list, text
from fewlabels.errors import UsageError
from fewlabels.wording import listed, one_line, quoted

if TYPE_CHECKING:
    from fewlabels.annotations import Assessment, LabelStatistic
    from fewlabels.engine.executors import Engine as EngineName
    from fewlabels.recalibration import Recalibrated, Recalibration

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
    "--by", type=text, multiple=True, metavar="COL", help="Assess by group too. Repeatable."
)
@click.option("--models", type=text, metavar="A,B,..", help="Only these classifiers.")
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
@click.option("--confidence-level", type=float, default=0.95, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--workers", type=click.IntRange(min=1), help="Threads; the answer is the same.")
@click.option(
    "--require",
    "requirements",
    type=text,
    multiple=True,
    metavar="'METRIC<=X'",
    help="Exit with 1 unless every classifier meets it, or one: MODEL:METRIC; high:METRIC tests "
    "the upper bound. Repeatable.",
)
@click.option("--json", "json_path", metavar="PATH", help="Write JSON; - prints it alone.")
@click.option("--html", "html_path", metavar="PATH", help="Write the report as one HTML file.")
@click.option(
    "--out",
    type=text,
    metavar="FILE",
    help="Write what is known and predicted of every item; .csv or .parquet.",
)
@reading_options
@input_options
@positive_option
def assess_annotations(
    source: Input,
    engine: Engine,
    by: tuple[str, ...],
    models: str | None,
    bins: int,
    statistics: tuple[str, ...],
    calibration_path: str | None,
    confidence_level: float,
    seed: int,
    workers: int | None,
    requirements: tuple[str, ...],
    json_path: str | None,
    html_path: str | None,
    out: str | None,
) -> int:
    """Assess the classifiers in FILE by what annotators say (h__ columns).

    How far each is from the distribution of the labels, how much of that calibration could
    remove, and how well it predicts that annotators disagree. A known label counts as one; so do
    the votes of --votes, and of whoever votes without probabilities.
    """
    conditions = [parse_requirement(condition) for condition in requirements]
    files = _Files(json_path, html_path, out)
    files.check(source, calibration_path)

    from fewlabels.checks import bins_of, level_of
    from fewlabels.recalibration import Recalibration

    chosen = _statistics(statistics)
    bins_of(bins), level_of(confidence_level)
    _check_metrics(conditions, [phi.name for phi in chosen])
    recalibration = None if calibration_path is None else Recalibration.load(calibration_path)
    columns = source.column_names() if by or out is not None or recalibration else ()
    groups = comma_list(by, whole=columns)
    settings = {
        "by": groups or None,
        "bins": bins,
        "statistics": chosen,
        "confidence_level": confidence_level,
        "random_state": seed,
        "workers": workers,
    }
    held = "--calibration" if recalibration else "--out" if out is not None else None
    streamed = engine.streams(source, None if held is None else f"{held} would")
    table = None
    if streamed is not None:
        check_classifiers(conditions, lambda: engine.classifiers(source, models))
        assessment = _stream(source, engine, streamed, models, settings)
    else:
        kept = _kept(source, groups, columns, recalibration, out)
        found = _selected(_read(source, kept, recalibration), models)
        check_classifiers(conditions, lambda: found.predictions.models)
        table = None if out is None else _table(found, _shown(groups, columns, source))
        assessment = _in_memory(found, settings)
    if recalibration is not None:
        assessment = _calibrated(assessment, recalibration)
    files.write(assessment, table)
    files.tell(assessment)
    return _verdict(conditions, assessment)


def _in_memory(found: Recalibrated, settings: Mapping[str, Any]) -> Assessment:
    from fewlabels.annotations import assess

    with terminal.progress_bar("assessing") as progress:
        return assess(
            found.predictions, concentration=_concentration(found), progress=progress, **settings
        )


def _stream(
    source: Input, engine: Engine, name: EngineName, models: str | None, settings: dict[str, Any]
) -> Assessment:
    """Assess parts of the files."""
    from fewlabels.engine.annotations_files import assess_files

    assert source.file is not None
    if name == "dask" and engine.scheduler is not None:
        settings = {**settings, "workers": None}
    with stream_bar() as progress:
        return assess_files(
            source.file,
            engine=name,
            progress=progress,
            select=None if models is None else comma_list(models) or None,
            positive=source.positive,
            **engine.reading(),
            **settings,
            **source.columns.arguments(),
        )


@dataclass(frozen=True)
class _Files:
    """Where results go; `json` is "-" for standard output."""

    json: str | None
    html: str | None
    out: str | None

    def check(self, source: Input, calibration: str | None) -> None:
        """Refuse what cannot be written, or would replace what is read."""
        if self.out is not None:
            from fewlabels.frames.write import table_kind

            table_kind(self.out)
        json = None if self.json == "-" else self.json
        paths = {"--json": json, "--html": self.html, "--out": self.out}
        source.check(paths)
        if calibration is not None:
            check_outputs(paths, source=calibration)

    def write(self, assessment: Assessment, table: Mapping[str, Any] | None) -> None:
        """Write all of them, or none."""
        writers: dict[str, Writer] = {}
        if self.json is not None and self.json != "-":
            writers[self.json] = json_writer(assessment.to_dict())
        if self.html is not None:
            writers[self.html] = assessment.save_html
        if self.out is not None and table is not None:
            from fewlabels.frames.write import table_kind, write_table

            kind = table_kind(self.out)
            writers[self.out] = lambda path: write_table(table, path, kind)
        write_outputs(writers)

    def tell(self, assessment: Assessment) -> None:
        """Print the answer, and what was written where."""
        if self.json == "-":
            click.echo(json_text(assessment.to_dict()), nl=False)
            terminal.print_warnings(assessment.warnings)
            return
        click.echo(assessment.summary(terminal.width()))
        for what, path in (("JSON", self.json), ("Report", self.html), ("Items", self.out)):
            if path is not None:
                click.echo(f"\n{what}: {one_line(path)}")


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


def _kept(
    source: Input,
    groups: Sequence[str],
    columns: Sequence[str],
    recalibration: Recalibration | None,
    out: str | None,
) -> list[str]:
    """Columns that are read beside the predictions: groups, features, what names the items."""
    from fewlabels.estimates import ITEM

    features = [] if recalibration is None else recalibration.settings.features
    named = [ITEM] if out is not None and (source.votes is not None or ITEM in columns) else []
    return list(dict.fromkeys([*named, *groups, *features]))


def _shown(groups: Sequence[str], columns: Sequence[str], source: Input) -> list[str]:
    """Columns of FILE that --out repeats."""
    from fewlabels.estimates import ITEM

    taken = [name for name in groups if name in _OWN]
    if taken:
        raise UsageError(
            f"--out has columns of its own named {listed(taken)}; rename those of --by, or leave "
            "one of the two options out"
        )
    named = [ITEM] if source.votes is not None or ITEM in columns else []
    return list(dict.fromkeys([*named, *(name for name in groups if name != "domain")]))


def _read(source: Input, kept: Sequence[str], recalibration: Recalibration | None) -> Recalibrated:
    from fewlabels.recalibration import Recalibrated

    predictions = source.read(kept).with_annotators()
    return Recalibrated(predictions) if recalibration is None else recalibration.apply(predictions)


def _selected(found: Recalibrated, models: str | None) -> Recalibrated:
    """Some of the classifiers; a calibration may have needed the others."""
    if models is None:
        return found
    known = found.predictions.models
    wanted = comma_list(models, whole=known)
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


def _verdict(conditions: Sequence[Requirement], assessment: Assessment) -> int:
    # A requirement asks for `models` and `get`, which an assessment has as estimates do.
    answers: Any = assessment
    failures = [line for condition in conditions for line in condition.failures(answers)]
    for line in failures:
        click.echo(line, err=True)
    return 1 if failures else 0
