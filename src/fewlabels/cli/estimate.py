"""`fewlabels estimate FILE`: how good each classifier is, from a file with few labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from fewlabels.cli import terminal
from fewlabels.cli.options import Input, input_options, positive_option, reference_option
from fewlabels.cli.output import Writer, json_text, json_writer, write_outputs
from fewlabels.cli.require import Requirement, check_classifiers, parse_requirement, with_required
from fewlabels.cli.streaming import Engine, engine_options, stream_bar
from fewlabels.cli.text import check_choice, comma_list, text
from fewlabels.errors import UsageError
from fewlabels.wording import one_line, quoted

if TYPE_CHECKING:
    from fewlabels.engine.executors import Engine as EngineName
    from fewlabels.estimates import Estimates
    from fewlabels.evaluation.evaluator import Estimand
    from fewlabels.frames.write import TableKind
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
    "--method",
    type=text,
    default="auto",
    show_default=True,
    help="One of those below.",
)
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
    "--by", type=text, multiple=True, metavar="COL", help="Estimate by group too. Repeatable."
)
@click.option("--models", type=text, metavar="A,B,..", help="Only these classifiers.")
@click.option(
    "--threshold",
    "thresholds",
    type=text,
    multiple=True,
    metavar="[NAME=]P",
    help="Predict positive from P(positive) >= P on, not .5. Repeatable.",
)
@click.option("--confidence-level", type=float, default=0.95, show_default=True)
@click.option(
    "--estimand",
    type=click.Choice(["population", "sample"]),
    default="population",
    show_default=True,
    help="The population the items come from, or these very items.",
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
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--workers", type=click.IntRange(min=1), help="Threads; the answer is the same.")
@click.option(
    "--require",
    "requirements",
    type=text,
    multiple=True,
    metavar="'METRIC>=X'",
    help="Exit with 1 unless every classifier meets it, or one: MODEL:METRIC; low:METRIC tests "
    "the lower bound. Repeatable.",
)
@click.option("--json", "json_path", metavar="PATH", help="Write JSON; - prints it alone.")
@click.option("--html", "html_path", metavar="PATH", help="Write the report as one HTML file.")
@click.option(
    "--labels-out",
    "labels_path",
    type=text,
    metavar="PATH",
    help="Write the likeliest class of every item, as .csv or .parquet.",
)
@engine_options
@input_options
@positive_option
@reference_option
def estimate(
    source: Input,
    engine: Engine,
    method: str,
    metrics: str,
    by: tuple[str, ...],
    models: str | None,
    thresholds: tuple[str, ...],
    confidence_level: float,
    estimand: Estimand,
    against: Against,
    shift: Correction | None,
    seed: int,
    workers: int | None,
    requirements: tuple[str, ...],
    json_path: str | None,
    html_path: str | None,
    labels_path: str | None,
) -> int:
    """Estimate how good each classifier in FILE is, from the few labels there are."""
    conditions = [parse_requirement(condition) for condition in requirements]
    asked = with_required(comma_list(metrics), conditions)
    paths = {"--json": None if json_path == "-" else json_path, "--html": html_path}
    labels = None if labels_path is None else _Labels.at(labels_path)
    source.check({**paths, "--labels-out": labels_path})

    _check_names(method, asked, source.reference)
    # A name may hold a comma where a file has such a column.
    groups = comma_list(by, whole=source.column_names()) if by else []
    settings = {
        "method": method,
        "metrics": asked,
        "by": groups or None,
        "confidence_level": confidence_level,
        "estimand": estimand,
        "against": against,
        "random_state": seed,
        "workers": workers,
    }
    cuts = _parse_thresholds(thresholds)
    held = "--labels-out" if labels is not None else "--shift" if shift is not None else None
    streamed = engine.streams(source, None if held is None else f"{held} would")
    if streamed is not None:
        check_classifiers(conditions, lambda: engine.classifiers(source, models))
        estimates = _stream(source, engine, streamed, models, cuts, settings)
    else:
        kept = groups if labels is None else [*groups, *labels.item(source)]
        predictions = _thresholded(_select(source.read(kept), models), cuts)
        check_classifiers(conditions, lambda: predictions.models)
        reference = _cut_alike(source.reference_of(predictions), cuts)
        estimates = _in_memory(predictions, settings | {"shift": shift, "reference": reference})
    _write(estimates, paths["--json"], html_path, labels)
    _print(estimates, as_json=json_path == "-")
    if json_path != "-":
        written = (
            *(("JSON", json_path), ("Report", html_path), ("Likeliest labels", labels_path)),
            ("Class probabilities", engine.posterior),
        )
        for what, path in written:
            if path is not None:
                click.echo(f"\n{what}: {one_line(path)}", nl=True)
    return _verdict(conditions, estimates)


def _check_names(method: str, metrics: Sequence[str], reference: str | None) -> None:
    """Refuse unknown names, and a reference of no use, before a large file is read."""
    from fewlabels.metrics.registry import check_asked
    from fewlabels.models import METHODS
    from fewlabels.models.registry import check_reference

    check_choice("method", method, ["auto", *(name for name in METHODS if name != "auto")])
    check_reference(method, reference)
    check_asked(metrics)


def _in_memory(predictions: Predictions, settings: dict[str, Any]) -> Estimates:
    from fewlabels.estimating import estimate as run

    with terminal.progress_bar("estimating") as progress:
        return run(predictions, progress=progress, **settings)


def _stream(
    source: Input, engine: Engine, name: EngineName, models: str | None, cuts: _Cuts,
    settings: dict[str, Any],
) -> Estimates:  # fmt: skip
    """Estimate from parts of the files."""
    from fewlabels.engine.stream import estimate_files

    assert source.file is not None
    if name == "dask" and engine.scheduler is not None:
        settings = {**settings, "workers": None}
    with stream_bar() as progress:
        return estimate_files(
            source.file,
            engine=name,
            progress=progress,
            select=None if models is None else comma_list(models),
            threshold=cuts.everyone,
            thresholds=cuts.named,
            positive=source.positive,
            reference=source.reference,
            **engine.arguments(),
            **settings,
            **source.columns.arguments(),
        )


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
    from fewlabels.sources import cut_at

    return None if reference is None else cut_at(reference, cuts.everyone, cuts.named)


def _select(predictions: Predictions, models: str | None) -> Predictions:
    if models is None:
        return predictions
    wanted = comma_list(models, whole=predictions.models)
    for name in wanted:
        check_choice("model", name, predictions.models)
    return predictions.select_models(wanted) if wanted else predictions


@dataclass(frozen=True)
class _Labels:
    """Where the likeliest classes go."""

    path: str
    kind: TableKind

    @staticmethod
    def at(path: str) -> _Labels:
        """Refuse an ending that does not say what to write, before a large file is read."""
        from fewlabels.frames.write import table_kind

        return _Labels(path, table_kind(path))

    def item(self, source: Input) -> list[str]:
        """The group that names the items, where there is one."""
        from fewlabels.estimates import ITEM

        return [ITEM] if source.votes is not None or ITEM in source.column_names() else []

    def writer(self, estimates: Estimates) -> Writer:
        """Write the table of them."""
        from fewlabels.estimates import ITEM
        from fewlabels.frames.write import write_table

        columns = estimates.label_columns()
        if ITEM not in estimates.predictions.groups:  # rows count from 1, as in all other files
            columns = {"row": [item + 1 for item in columns.pop(ITEM)], **columns}
        return lambda path: write_table(columns, path, self.kind)


def _write(
    estimates: Estimates, json_path: str | None, html_path: str | None, labels: _Labels | None
) -> None:
    writers: dict[str, Writer] = {}
    if labels is not None:
        writers[labels.path] = labels.writer(estimates)
    if json_path is not None:
        writers[json_path] = json_writer(estimates.to_dict())
    if html_path is not None:
        writers[html_path] = estimates.save_html
    write_outputs(writers)


def _print(estimates: Estimates, *, as_json: bool) -> None:
    if as_json:
        click.echo(json_text(estimates.to_dict()), nl=False)
        terminal.print_warnings(estimates.warnings)
    else:
        click.echo(estimates.summary(terminal.width()))


def _verdict(conditions: Sequence[Requirement], estimates: Estimates) -> int:
    failures = [line for condition in conditions for line in condition.failures(estimates)]
    for line in failures:
        click.echo(line, err=True)
    return 1 if failures else 0
