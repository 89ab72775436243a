"""`fewlabels.estimate`: from what the classifiers said to estimates, in one piece or in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from fewlabels.checks.arguments import RandomState, seed_of
from fewlabels.data.inputs import predictions_of
from fewlabels.data.sources import chosen
from fewlabels.errors import UsageError
from fewlabels.estimates import Estimates
from fewlabels.evaluation.evaluator import Estimand
from fewlabels.evaluation.groups import MAX_GROUPS, ManyGroups, many_and_few
from fewlabels.kernels.blocks import Progress, reporting, using_workers
from fewlabels.methods.base import LabelModel
from fewlabels.metrics.base import Metric
from fewlabels.pipeline import (
    Against,
    Question,
    aligned_reference,
    check_settings,
    estimate_in_memory,
)
from fewlabels.predictions import Predictions
from fewlabels.shifts.analysis import Correction
from fewlabels.tasks import estimate_tasks


def estimate(
    predictions: Any,
    method: str | LabelModel = "auto",
    metrics: str | Metric | Callable[..., Any] | Sequence[Any] | None = None,
    by: str | Sequence[str] | None = None,
    confidence_level: float | None = 0.95,
    estimand: Estimand = "population",
    against: Against = "auto",
    random_state: RandomState = 0,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    shift: Correction | None = None,
    *,
    y_true: Any = None,
    reference: Any = None,
    cluster: Any = None,
    stratum: str | None = None,
    columns: Any = None,
    positive: Any = None,
    where: str | None = None,
    query: str | None = None,
) -> Estimates:
    """Estimate how good each classifier is, with intervals, from few labels.

    Parameters
    ----------
    predictions
        What the classifiers said, and the labels there are: `Predictions`, or the path, address,
        connection or frame that `read_predictions` would read; or arrays, with `y_true`. 15,000
        items and more are estimated from in parts, as by `estimate_files`
        (`diagnostics["stream"]` says so), unless the question needs all of them at once.
    method
        Name of a method (`fewlabels.models.METHODS`), a label model, or "auto".
    metrics
        Names (`fewlabels.metrics.METRICS`, `ALIASES`), metrics, or functions of
        (y_true, y_proba). None: what the predictions can answer; accuracy, ece, roc_auc and
        average_precision where there are probabilities; accuracy and cohen_kappa where there are
        hard predictions (error_rate instead of accuracy where nothing has a label); roc_auc and
        average_precision where there are scores. "default" among the names stands for these,
        and "grades" for all metrics of grades.
    by
        Names of groups to estimate separately as well; "domain" groups by the domain.
    confidence_level
        Probability with which an interval should contain the truth; None computes no intervals.
    estimand
        "population": the metric on the population that the items come from. "sample": on the
        items of `predictions` alone.
    against
        What a classifier is judged against where annotators' counts are given. "class": every
        item is of one class, of which each annotator's label is evidence. "distribution": the
        distribution of the labels that annotators give an item; accuracy is then how often a
        classifier says what a random annotator says. "auto": the distribution where some items
        have two labels or more and none of them a known label besides, else the class; methods
        that model votes, and those of means, know one class only.
    random_state
        Seed; the same seed gives the same bits. None means 0. A `numpy.random.Generator` or
        `RandomState` gives one and goes on, so that the next call has another, and a `SeedSequence`
        gives always the same; `Estimates.seed` is the number, which gives the same bits again.
    workers
        Threads; the answer does not depend on them. None: one per available processor.
    progress
        Called with (blocks done, blocks in all) of the step at hand, rows where it goes in parts;
        an estimate has several.
    shift
        Correct for a difference between labeled and unlabeled items; the estimates are then for
        the population that the unlabeled ones come from. "covariate": P(class | scores) is the
        same for both, and labeled items get density-ratio weights. "label": P(scores | class) is,
        and the classes' frequencies are estimated anew. "auto": what `fewlabels.shift` suggests,
        which may be nothing. None: no correction, only a warning where labeled items do not look
        like a random sample.
    y_true
        The label of each item, (n,), where `predictions` are what classifiers gave alone: an array
        (n,) or (n, K) of one classifier or (n, M) of several, a mapping of names to arrays, or a
        frame with a column per classifier. Values are classes, as in scikit-learn. A label is
        unknown where it is None, NaN, NA or masked, or -1 where the predictions do not have it.
        Classes in the order of columns: `columns={"classes": model.classes_}`.
    reference
        Labeled items of the same classifiers from elsewhere (a validation set, last month), as
        `predictions` are given: they say how calibrated the classifiers are and how their
        mistakes go together, as far as the labels at hand bear them out. Classes and classifiers
        are matched by name, items without a label left out. For "auto", which is then
        `learned-ensemble`, and for that method.
    cluster
        Columns of a path or frame, or groups of `Predictions`, whose values say which rows belong
        together (ratings of a case, sentences of a document): a name or several, which are
        crossed.
    stratum
        Column of a path or frame, or group of `Predictions`, that says of which stratum an item is,
        where the items to label were drawn at random within strata: labels count by their stratum's
        share of all items, and intervals know the design.
    columns
        What the columns of a path or frame are, as in `read_predictions`.
    positive
        The positive class; of more than two it is judged against the rest, and a warning says so.
        None: what `Predictions.positive` says.
    where, query
        Which rows of a path, address or connection, as in `fewlabels.source`.

    Raises
    ------
    UsageError, InputError
        One line that says what is wrong and how to mend it.

    Examples
    --------
    >>> import numpy as np
    >>> import fewlabels as fl
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(500) < 0.3
    >>> score = 1 / (1 + np.exp(-rng.normal(3 * truth - 1.5, 1.5)))
    >>> labels = np.where(np.arange(500) < 20, truth, -1)
    >>> estimates = fl.estimate(fl.Predictions(score[:, None], labels, models=["detector"]))
    >>> row = estimates.get("detector", "accuracy")
    >>> row.low <= row.value <= row.high
    True
    """
    check_settings(confidence_level, estimand, workers)
    question = Question(
        method, metrics, by, confidence_level, estimand, against, seed_of(random_state), shift=shift
    )
    predictions = chosen(predictions, where, query)
    items = predictions_of(
        predictions, columns, positive, cluster=cluster, stratum=stratum, tasks=True, y_true=y_true
    )
    elsewhere = aligned_reference(reference, items, method, shift, columns=columns)
    many: tuple[ManyGroups, ...] = ()
    if isinstance(by, Iterable) and question.columns:  # whatever else it is is refused below
        few, many = many_and_few(items, question.columns)
        question = replace(question, by=few)
    if many and question.shift is not None:
        raise UsageError(
            f"more than {MAX_GROUPS} groups of a column are estimated in one pass, which `shift` "
            "does not go with; leave one of them out, or group the values first"
        )
    return run_question(question.about(items, elsewhere), items, workers, progress, many)


def run_question(
    question: Question,
    items: Predictions,
    workers: int | None,
    progress: Progress | None,
    many: Sequence[ManyGroups] = (),
) -> Estimates:
    """The answer to a question about these items, from all of them at once or in parts.

    `many` are columns of many groups, which the question does not name.
    """
    if items.task is not None:
        with using_workers(workers), reporting(progress):
            return estimate_tasks(question, items, progress)
    setup = question.setup(items)
    with using_workers(workers), reporting(progress):
        if question.answered_in_parts(setup, items):
            from fewlabels.streaming.in_memory import estimate_in_parts

            in_parts = estimate_in_parts(question, items, workers, progress, many)
            if in_parts is not None:
                return in_parts
        return estimate_in_memory(question, setup, items, progress=progress, many=many)
