"""One way to an estimate: resolve, fit, judge, evaluate, decide the status.

`estimate_in_memory` does it for items in memory; streams (`streaming/two_passes.py`) bring their
sums to `build_estimates`, the one place where estimates are made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fewlabels.checks.arguments import level_of, workers_of
from fewlabels.checks.class_words import alphabetical
from fewlabels.checks.conditions import NOT_RANDOM
from fewlabels.comparison.draws import Residuals
from fewlabels.data.agreement import useless
from fewlabels.data.inputs import reference_of
from fewlabels.data.reading_lines import are_recognised
from fewlabels.errors import Status, UsageError, gravest_first, listed
from fewlabels.estimates import Estimate, Estimates, GroupSize, Reference
from fewlabels.evaluation.details import Details
from fewlabels.evaluation.differences import allowing_for_discrepancy
from fewlabels.evaluation.draws import basis_size
from fewlabels.evaluation.evaluator import Estimand, Evaluator, Measured, measure_many_groups
from fewlabels.evaluation.groups import (
    Group,
    ManyGroups,
    all_and,
    groups_by_column,
    refuse_many_groups,
)
from fewlabels.evaluation.guard import Guard, guarded_rows, guards_differences
from fewlabels.evaluation.input_facts import facts, selection_facts
from fewlabels.evaluation.item_variance import design_effect
from fewlabels.evaluation.status import Reasons, reasons_of_many_groups
from fewlabels.evaluation.strata import strata_facts
from fewlabels.evaluation.suspect_labels import suspect_labels
from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.blocks import silent, step
from fewlabels.methods.base import (
    FittedLabelModel,
    LabelModel,
    refuse_multiplicity,
    refuse_strata,
    whole_items,
)
from fewlabels.methods.group_curves import MOST_PERIODS
from fewlabels.methods.label_distribution import LabelDistribution
from fewlabels.methods.registry import METHODS, check_reference
from fewlabels.methods.registry import resolve as resolve_method
from fewlabels.methods.settings import changed_settings
from fewlabels.methods.voices import Unheard
from fewlabels.metrics.base import Metric
from fewlabels.metrics.confusion import Graded, step_of
from fewlabels.metrics.registry import asked_of, check_asked
from fewlabels.metrics.registry import resolve as resolve_metrics
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions
from fewlabels.shifts.analysis import Correction, check_correction, corrected

Against = Literal["auto", "class", "distribution"]


MOST_DESIGN_EFFECT = 3.0
"""Up to this design effect (Kish) a sample of items shows what sampling weights add to the
noise."""


@dataclass(frozen=True)
class Question:
    """The checked arguments of `estimate`; see there. `periods` says that groups are in order."""

    method: str | LabelModel = "auto"
    metrics: Any = None
    by: str | Sequence[str] | None = None
    confidence_level: float | None = 0.95
    estimand: Estimand = "population"
    against: Against = "auto"
    seed: int = 0
    reference: Predictions | None = field(default=None, repr=False)
    shift: Correction | None = None
    periods: bool = False

    def __post_init__(self) -> None:
        check_settings(self.confidence_level, self.estimand, None)
        check_asked(self.metrics)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose groups are estimated separately as well."""
        by = () if self.by is None else self.by
        return (by,) if isinstance(by, str) else tuple(dict.fromkeys(by))

    def about(self, items: Predictions, reference: Predictions | None = None) -> Question:
        """The same question, with the default metrics of these items and an aligned reference."""
        return replace(self, metrics=asked_of(self.metrics, items), reference=reference)

    def setup(self, items: Predictions) -> Setup:
        """The label model and metrics for these items; refused if the method cannot serve them."""
        metrics = resolve_metrics(self.metrics)
        name, model = resolve_method(self.method, items, self.reference)
        settings = changed_settings(name, model)
        against = judged_against(items, self.against, name)
        if against == "distribution":
            model = LabelDistribution(model)
        _check_multiplicity(items, name, metrics, against, self.shift)
        if self.shift is not None:
            refuse_strata(items, f"the correction `shift` {self.shift!r}")
        check_correction(self.shift, self.estimand, name, distribution=against == "distribution")
        return Setup(name, model, metrics, against, settings)

    def answered_in_parts(self, setup: Setup, items: Predictions) -> bool:
        """Whether a few draws of every item, and all draws of a sample, suffice.

        They do not with few items, methods that do not stream rows, clusters or strata (a sample
        splits them), sparse or repeated votes, rows of several items, metrics of all items at once,
        a correction for shift, the estimand `sample`, or weights of which a few are most.
        """
        registered = METHODS.get(setup.name)
        return (
            basis_size(items.n_items, items.n_classes) < math.inf
            and registered is not None
            and registered.streams == "rows"
            and self.estimand == "population"
            and self.shift is None
            and items.multiplicity is None
            and items.repeated_votes is None
            and not items.is_sparse
            and not items.clusters
            and items.stratum is None
            and design_effect(items.weight, items.times) <= MOST_DESIGN_EFFECT
            and not any(metric.in_memory for metric in setup.metrics.values())
        )


class Setup(NamedTuple):
    """The label model, the metrics, and the reference that classifiers are judged against.

    `settings` are those of the label model that are not its class's own.
    """

    name: str
    model: LabelModel
    metrics: Mapping[str, Metric]
    against: Literal["class", "distribution"]
    settings: Mapping[str, Any]

    @property
    def distribution(self) -> bool:
        """Whether classifiers are judged against the distribution of annotators' labels."""
        return self.against == "distribution"

    def fit(self, question: Question, items: Predictions) -> FittedLabelModel:
        """The label model, fitted to these items; it knows of no groups that nobody asks for."""
        known = self.model.known(items, question.columns)
        return self.model.fit(known, np.random.default_rng(question.seed))


def estimate_in_memory(
    question: Question,
    setup: Setup,
    items: Predictions,
    fitted: FittedLabelModel | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
    many: Sequence[ManyGroups] = (),
    checks: Checks | None = None,
) -> Estimates:
    """Estimates of items that are held in memory all at once: fit, judge, evaluate.

    `fitted` is the label model if it is fitted to them already. `many` are columns of many groups,
    which the question does not name. `checks` are those of the input where it was checked before.
    """
    judged = items.as_histograms() if setup.distribution else items
    most = MOST_PERIODS if question.periods else None
    group_rows, corrections = groups_by_column(items, question.by, most), tuple[str, ...]()
    groups = all_and(items, group_rows)
    if question.shift is None:
        step("fitting the label model")
        fitted = fitted or setup.fit(question, items)
        posterior = fitted.posterior(items)
        if many:
            refuse_many_groups(items, setup.name, setup.metrics, posterior, _alone(question))
    else:
        rng = np.random.default_rng(question.seed)
        judged, posterior, corrections = corrected(
            items, setup.model, setup.name, question.shift, rng, question.seed, question.columns
        )
    evaluator = Evaluator(
        judged, posterior, setup.metrics, question.estimand, question.confidence_level,
        progress or silent,
    )  # fmt: skip
    everything: dict[str, Measured] = {}

    def measure(group: Group) -> dict[str, Measured]:
        nonlocal everything
        if everything and not posterior.speaks_of(group.rows).any():
            return _borrowed(evaluator, everything, group)
        measured = evaluator.measure(group.rows)
        everything = everything or measured
        return measured

    estimates = build_estimates(
        question,
        setup,
        evaluator,
        groups,
        measure,
        items,
        (*corrections, *posterior.warnings),
        sizes=tuple(
            GroupSize(g.name, items.size_of(g.rows), items.size_of(g.rows[items.labeled[g.rows]]))
            for g in groups
        ),
        n_annotated=judged.n_annotated,
        predictions=items,
        label_posterior=posterior,
        judged=judged,
        judged_by=posterior,
        group_rows=group_rows,
        diagnostics=posterior.diagnostics,
        checks=checks,
        unseen=(
            fitted.posterior(judged.with_evidence(None)) if fitted and question.periods else None
        ),
    )
    return with_many_groups(estimates, question, setup, items, fitted, many) if many else estimates


def with_many_groups(
    estimates: Estimates, question: Question, setup: Setup, items: Predictions,
    fitted: FittedLabelModel | None, many: Sequence[ManyGroups],
) -> Estimates:  # fmt: skip
    """The estimates with those of columns of many groups, in one pass over the items.

    Warnings about these groups count them instead of naming them.
    """
    assert fitted is not None
    # The labeled items, and for every classifier one with its prediction.
    firsts = [items.provides(metric.needs).argmax(axis=0) for metric in setup.metrics.values()]
    held = np.unique(np.concatenate([np.flatnonzero(items.labeled), *firsts]))
    labeled, level = items.take(held), question.confidence_level
    evaluator = Evaluator(labeled, fitted.posterior(labeled), setup.metrics, "population", level)
    random, rows = NOT_RANDOM not in estimates.diagnostics, list(estimates.rows)
    guard = Guard.from_evaluator(evaluator, setup.name, random=random)
    sizes, sentences = estimates.groups, list(estimates.warnings)
    for column in many:
        n_groups = len(column.names)
        step(f"estimating {n_groups:,} groups")
        n_items = np.bincount(column.codes, minlength=n_groups)
        n_labeled = np.bincount(column.codes[items.labeled], minlength=n_groups)
        group_sizes = tuple(map(GroupSize, column.names, n_items.tolist(), n_labeled.tolist()))
        order = np.argsort(column.codes[held], kind="stable")
        ends = np.searchsorted(column.codes[held][order], np.arange(n_groups + 1))
        measured = measure_many_groups(items, column, fitted.posterior, setup.metrics, level)
        first = len(rows)
        for g, values in enumerate(measured):
            group = Group(column.names[g], np.sort(order[ends[g] : ends[g + 1]]))
            rows += guarded_rows(evaluator, guard, group, values, level, Reasons())[0]
        sizes += group_sizes
        sentences += reasons_of_many_groups(column.name, rows[first:], group_sizes)
    return replace(
        estimates, rows=tuple(rows), groups=sizes, warnings=tuple(gravest_first(sentences))
    )


class Checks(NamedTuple):
    """What the input shows by itself: `records` for the diagnostics, and `sentences` for people.

    Whether labels are of a `random` sample, which classifiers seem to have been given labels, which
    are perhaps none, and whether labels are significantly `suspect`, or `lacking` in some strata.
    """

    records: Mapping[str, Any]
    sentences: Sequence[str]
    random: bool
    given_labels: Collection[str]
    perhaps_none: Collection[str]
    suspect: bool
    lacking: bool = False

    @staticmethod
    def of(question: Question, setup: Setup, items: Predictions) -> Checks:
        """The checks of these items."""
        records, sentences, name = dict[str, Any](), list[str](), setup.name
        elsewhere, shifted = question.reference, list[str]()
        unheard, distribution = Unheard.from_predictions(items), setup.distribution
        suspects = None if distribution else suspect_labels(items, unheard.others(items.models))
        if question.shift is None:
            chosen_notes, shifted = selection_facts(items, name, distribution=distribution)
            records |= chosen_notes
        if suspects is not None:
            found, sentence = suspects.facts(items)
            records |= found
            sentences.append(sentence)
        sentences += facts(
            items, name, question.confidence_level, unheard, distribution=distribution
        )
        sentences += shifted
        lacking = False
        if items.stratum is not None:
            by_stratum, about_strata, lacking = strata_facts(items, setup.metrics)
            records |= by_stratum
            sentences += about_strata
        sentences += (f"reference: {note}" for note in (elsewhere.notes if elsewhere else ()))
        recognised = bool(items.reading) and are_recognised(items.reading)
        none = useless(items) if recognised and not distribution else ()
        if none:
            sentences.append(
                f"assumption: {listed(none, 5)}: taken for classifiers by their columns, which "
                "agree with the labels no better than chance: `fewlabels doctor` says why; say "
                "what the columns are with --label, --hard, --model or --score"
            )
        significant = suspects is not None and suspects.significant
        random = NOT_RANDOM not in records
        return Checks(records, sentences, random, unheard.given_labels, none, significant, lacking)


def build_estimates(
    question: Question,
    setup: Setup,
    evaluator: Evaluator,
    groups: Iterable[Group],
    measure: Callable[[Group], dict[str, Measured]],
    items: Predictions,
    warnings: Iterable[str],
    *,
    sizes: tuple[GroupSize, ...],
    judged: Predictions,
    judged_by: LabelPosterior,
    diagnostics: Mapping[str, Any],
    checks: Checks | None = None,
    unseen: LabelPosterior | None = None,
    **data: Any,
) -> Estimates:
    """The estimates of all groups: measured, guarded by the labels, with warnings.

    `groups` are all items, then every group, each with those of its rows that `evaluator` holds (of
    a stream, the labeled items and some others); `sizes` are in the same order. `measure` measures
    a group, by the evaluator or by the sums over a stream. Labels and facts of the input are those
    of `items`; comparisons and pictures are made from `judged`, whose posterior is `judged_by`.

    `warnings` and `diagnostics` are of the fit and the run, to which facts of the input and changed
    settings are added; `data` are all other fields of the result. `unseen`, where groups are
    periods, is the posterior of these items without their labels.
    """
    reasons, level, name = Reasons(), question.confidence_level, setup.name
    checks = checks or Checks.of(question, setup, items)
    shown = dict(diagnostics) | dict(checks.records)
    if setup.settings:
        shown["settings"] = setup.settings
    for sentence in (*checks.sentences, *_order_of_grades(evaluator), *warnings):
        reasons.add(sentence)
    told = () if setup.distribution else checks.given_labels
    guard = Guard.from_evaluator(
        evaluator, name, random=checks.random, given_labels=told, unseen=unseen
    )
    n_items = {size.group: size.n_items for size in sizes}
    rows: list[Estimate] = []
    draws: dict[tuple[str, str | None], Floats] = {}
    residuals: dict[tuple[str, str | None], Residuals] = {}
    for group in groups:
        step("estimating" if group.name is None else f"estimating {group.name}")
        guarded_estimates, guarded = guarded_rows(
            evaluator, guard, group, measure(group), level, reasons, n_items.get(group.name)
        )
        rows += guarded_estimates
        draws |= {(metric, group.name): m.draws for metric, m in guarded.measured.items()}
        residuals |= {(metric, group.name): r for metric, r in guarded.residuals.items()}
    predictions = evaluator.predictions
    doubted: Collection[str] = {*checks.given_labels, *checks.perhaps_none}
    corrected_shift = question.shift is not None and judged is not items
    in_doubt = not checks.random or checks.suspect or checks.lacking or corrected_shift
    doubted = items.models if in_doubt else doubted
    estimates = Estimates(
        rows=tuple(_doubting(rows, doubted)),
        method=name,
        estimand=question.estimand,
        seed=question.seed,
        confidence_level=float("nan") if level is None else level,
        against=setup.against,
        n_items=sizes[0].n_items,
        n_labeled=sizes[0].n_labeled,
        groups=sizes,
        models=predictions.models,
        classes=predictions.classes,
        directions={n: m.direction for n, m in evaluator.metrics.items()},
        draws=draws,
        warnings=tuple(reasons.sentences()),
        judged=judged,
        judged_by=judged_by,
        reference=reference_facts(question.reference),
        describe=Details.from_metrics(setup.metrics),
        diagnostics=shown,
        **data,
    )
    step("comparing")
    if guards_differences(name, predictions):
        estimates = replace(estimates, paired=allowing_for_discrepancy(estimates, residuals))
    return estimates


def _doubting(rows: Iterable[Estimate], doubted: Container[str]) -> Iterator[Estimate]:
    """Estimates whose labels are no random sample (corrected or not), known, or perhaps none."""
    for row in rows:
        doubt = row.status is Status.OK and row.model in doubted
        yield row._replace(status=Status.ASSUMPTION) if doubt else row


def _order_of_grades(evaluator: Evaluator) -> Iterable[str]:
    """What metrics of grades rest on: an order nobody said, and a step that is not 1."""
    graded = [n for n, m in evaluator.metrics.items() if isinstance(m.statistic, Graded)]
    predictions = evaluator.predictions
    if graded and (steps := alphabetical(predictions.classes)):
        yield f"assumption: {listed(graded)} count {steps}"
    if "within_one" in graded and predictions.n_classes > 2:
        step = step_of(predictions.grades)
        if step != 1:
            yield f"within_one: one step of these grades is {step:g}"


def _alone(question: Question) -> str:
    """The requested result that needs the items of each group by themselves; empty if none."""
    return "" if question.estimand == "population" else "`estimand` 'sample'"


def aligned_reference(
    reference: Any,
    predictions: Predictions,
    method: str | LabelModel,
    shift: Correction | None = None,
    columns: Any = None,
    keep: Sequence[str] = (),
) -> Predictions | None:
    """The reference in the terms of the predictions, for a method that can use it; None if none.

    It keeps its groups of some columns.
    """
    if reference is None:
        return None
    check_reference(method, reference)
    if shift is not None:
        raise UsageError(
            "`shift` and `reference` do not go together: one says that the labeled items differ "
            "from the others, the other brings more such items; leave one out"
        )
    aligned = reference_of(reference, predictions, keep, columns=columns)
    refuse_multiplicity(aligned, "what learns from `reference`")
    return aligned


def reference_facts(reference: Predictions | None) -> Reference | None:
    """How much reference data there is; None if none."""
    if reference is None:
        return None
    gives = np.flatnonzero(reference.gives("hard") | reference.gives("ranking"))
    return Reference(reference.n_labeled, tuple(reference.models[j] for j in gives))


def check_settings(confidence_level: float | None, estimand: str, workers: int | None) -> None:
    """Refuse settings that no estimate can be made with."""
    level_of(confidence_level)
    workers_of(workers)
    if estimand not in ("population", "sample"):
        raise UsageError(f"`estimand` must be 'population' or 'sample'; got {estimand!r}")


def _check_multiplicity(
    predictions: Predictions,
    method: str,
    metrics: Mapping[str, Metric],
    judged: str,
    shift: Correction | None,
) -> None:
    """Refuse rows that stand for several items where these would be taken for one."""
    if predictions.multiplicity is None:
        return
    registered = METHODS.get(method)
    if registered is None or not registered.counts_rows:
        refuse_multiplicity(predictions, f"method {method!r}")
    for name, metric in metrics.items():
        if metric.in_memory:
            refuse_multiplicity(predictions, f"metric {name!r}, a function of the user's,")
    if judged == "distribution":
        refuse_multiplicity(predictions, "`against` 'distribution'")
    if shift is not None:
        refuse_multiplicity(predictions, f"the correction `shift` {shift!r}")
    whole_items(predictions)


def judged_against(
    predictions: Predictions, against: Any, method: str
) -> Literal["class", "distribution"]:
    """The reference for classifiers: each item's class, or the annotators' distribution."""
    if against not in get_args(Against):
        raise UsageError(f"`against` must be one of {listed(get_args(Against))}; got {against!r}")
    refused = _of_one_class(method)
    if against == "distribution":
        if predictions.histogram is None:
            raise UsageError(
                "`against` 'distribution' needs counts of annotators (`histogram`, columns "
                "h__<class>), and there are none; leave it out"
            )
        if refused:
            raise UsageError(
                f"method {method!r} {refused}, so it cannot judge against the distribution of "
                "annotators' labels; use 'auto', 'tempered-ensemble' or 'labeled'"
            )
    if against != "auto" or refused or predictions.histogram is None:
        return "distribution" if against == "distribution" else "class"
    sizes = predictions.histogram.sum(axis=1)
    if ((sizes > 0) & predictions.labeled).any():  # the label is the truth, the counts are opinions
        return "class"
    return "distribution" if (sizes >= 2).any() else "class"


def _of_one_class(method: str) -> str | None:
    """Why a method takes each item to be of one class, if it does."""
    registered = METHODS.get(method)
    if registered is not None and registered.serves == "means":
        return "does not use counts of annotators"
    if registered is not None and registered.learns_from == "hard predictions":
        return "models votes about one true class"
    return None


def _borrowed(
    evaluator: Evaluator, everything: dict[str, Measured], group: Group
) -> dict[str, Measured]:
    """The values of all items, for the classifiers that have predictions in the group."""
    out = {}
    for name, values in everything.items():
        there = evaluator.predictions.take(group.rows).gives(evaluator.metrics[name].needs)
        out[name] = Measured(
            np.where(there, values.value, np.nan),
            np.where(there, values.draws, np.nan),
            np.where(there, values.undefined, 0),
        )
    return out
