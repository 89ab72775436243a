"""Estimates in parts: all rows are scanned, the label model is fitted to some, all are tallied.

The scan holds counts and a sample of the rows. The model fitted to these gives P(label) of any row
under a few parameter draws, a basis of all draws. The tally sums metric states of the basis over
all rows; `streaming/measure.py` finishes it. The rest is as for items in memory
(`pipeline.build_estimates`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fewlabels.errors import UsageError
from fewlabels.estimates import Estimates, GroupSize
from fewlabels.evaluation.evaluator import Evaluator, Measured
from fewlabels.evaluation.groups import Group, all_and_groups, groups_by_column
from fewlabels.evaluation.item_variance import design_effect
from fewlabels.kernels.arrays import Ints
from fewlabels.kernels.blocks import using_workers
from fewlabels.methods.base import FittedLabelModel
from fewlabels.methods.registry import METHODS
from fewlabels.methods.registry import resolve as resolve_method
from fewlabels.metrics.registry import resolve as resolve_metrics
from fewlabels.pipeline import (
    MOST_DESIGN_EFFECT,
    Question,
    Setup,
    build_estimates,
    estimate_in_memory,
)
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions
from fewlabels.streaming.measure import NOISE_ROWS, Measurer
from fewlabels.streaming.passes import COUNT, BatchSource, Passes, Piece
from fewlabels.streaming.posterior_files import PosteriorFiles
from fewlabels.streaming.samples import Samples, samples_of
from fewlabels.streaming.scan import LABELED_ROWS, Scan, ScanPlan, Size, ranks_of
from fewlabels.streaming.tally import Scorer, Tally

SCAN, TALLY, FIT, MEASURE = "reading", "estimating", "fitting", "measuring"
STEPS = (SCAN, COUNT, TALLY, FIT, MEASURE)


class Provenance(NamedTuple):
    """Where the rows come from: diagnostics, notes on them, warnings, and how they were read."""

    diagnostics: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()


def in_two_passes(
    question: Question,
    rows: BatchSource,
    example: Predictions,
    passes: Passes,
    provenance: Callable[[Scan], Provenance],
    *,
    workers: int | None = None,
    files: Callable[[str, tuple[Any, ...]], PosteriorFiles] | None = None,
) -> tuple[Fitted | SufficientSample, Estimates]:
    """The fitted label model and the estimates, made again if a file turns out bad late.

    `example` are items with everything that the rows can have; `provenance` is called after the
    passes, with the first; `files` are, by method and classes, where P(label) of every row is
    written.
    """
    once = partial(_in_two_passes, question, rows, example, passes, provenance, workers, files)
    with using_workers(workers):
        return passes.whole(once)


def _in_two_passes(
    question: Question, rows: BatchSource, example: Predictions, passes: Passes,
    provenance: Callable[[Scan], Provenance], workers: int | None,
    files: Callable[[str, tuple[Any, ...]], PosteriorFiles] | None,
) -> tuple[Fitted | SufficientSample, Estimates]:  # fmt: skip
    plan = scan_plan(question, example)
    scan = passes.run(SCAN, partial(scan_unit, rows, plan), plan.empty)
    counts, ranks = None, scan.repeated.ranks
    if not scan.complete and len(ranks):
        counts = passes.counts(rows, partial(ranks_of, by=plan.by), ranks)
    fitted = fit_to(question, scan, counts, example, passes)
    if isinstance(fitted, SufficientSample):
        if files is not None:
            raise UsageError(
                f"--posterior goes with methods that apply to every row; {fitted.setup.name} "
                f"estimates from {fitted.what} here"
            )
        return fitted, fitted.estimates(provenance(scan), workers)
    written = None if files is None else files(fitted.setup.name, example.classes)
    tally = passes.run(
        TALLY,
        partial(tally_unit, rows, fitted.scorer, written),
        Tally,
        scan.n_rows,
        None if written is None else written.start,
    )
    return fitted, fitted.estimates(tally, provenance(scan), workers, passes)


def scan_unit(rows: BatchSource, plan: ScanPlan, piece: Piece) -> Scan:
    """The first pass over a unit."""
    scan = plan.empty()
    for batch in rows.batches(piece.unit):
        scan.update(batch)
    return scan


def tally_unit(
    rows: BatchSource, scorer: Scorer, files: PosteriorFiles | None, piece: Piece
) -> Tally:
    """The second pass over a unit; posteriors of its rows go to a file where they are asked for."""
    tally = Tally()
    if files is None:
        for batch in rows.batches(piece.unit):
            tally.update(scorer, batch)
        return tally
    with files.writing(piece.number) as write:
        for batch in rows.batches(piece.unit):
            for block in scorer.blocks(batch):
                posterior = scorer.posterior(block.predictions)
                tally.add(scorer, block, posterior)
                first_row = piece.first_row + block.first_row
                write(piece.unit.name, first_row, block.predictions, posterior)
    return tally


def scan_plan(question: Question, example: Predictions) -> ScanPlan:
    """What the first pass looks for, by items that give all that the rows can give."""
    name, _ = resolve_method(question.method, example, question.reference)
    votes = name in METHODS and METHODS[name].learns_from == "hard predictions"
    metrics = resolve_metrics(question.metrics).values()
    return ScanPlan(
        question.columns,
        example.n_models,
        example.n_classes,
        patterns=votes,
        groups_in_patterns=votes and all(m.needs == "hard" and not m.in_memory for m in metrics),
        confidences=any(m.statistic.quantiles for m in metrics),
    )


def fit_to(
    question: Question,
    scan: Scan,
    counts: Ints | None,
    example: Predictions,
    passes: Passes | None = None,
) -> Fitted | SufficientSample:
    """Fit the label model, if possible to few enough rows that no second pass is needed.

    `counts` are as in `samples_of`; `example` has the same classifiers and classes; `passes` keep
    the fit, or have it from the resumed run.
    """
    if not scan.size.items:
        raise UsageError("there are no rows to estimate from")
    samples = samples_of(scan, counts, example.models, example.classes)
    if samples.sample.clusters and scan.size.weighty > NOISE_ROWS:
        raise UsageError(
            f"a stream of more than {NOISE_ROWS:,} rows looks at some of them alone, which "
            "would part the rows of a cluster; read the files with --engine memory, or leave "
            "out --cluster"
        )
    setup = question.setup(samples.known)
    registered, fit_to = METHODS.get(setup.name), samples.fitted_to
    kept = None if passes is None else passes.fitted(FIT)
    if registered is not None and registered.streams == "sample":
        if question.estimand == "sample":
            raise UsageError(
                f"method {setup.name!r} cannot estimate for these items only in a stream, for it "
                "would have to hold all of them; leave --estimand out, or read the files with "
                "--engine memory"
            )
        few, what = samples.known, "a sample of the unlabeled rows"
        return SufficientSample(question, setup, kept or setup.fit(question, few), scan, few, what)
    if scan.patterns is not None and registered is not None and registered.counts_rows:
        votes = scan.patterns.predictions(example.models, example.classes)
        if scan.plan.groups_in_patterns:
            what = f"{len(scan.patterns.keys):,} distinct rows of votes"
            fitted = kept or setup.fit(question, votes)
            if passes is not None and kept is None:
                passes.keep_fitted(FIT, fitted)
            return SufficientSample(question, setup, fitted, scan, votes, what)
        fit_to = votes.as_part(samples.accuracy, votes.keys)
    own = [m.name for m in setup.metrics.values() if m.in_memory]
    if own:
        raise UsageError(
            f"metric {own[0]!r} is a function of all items, which a stream never holds at "
            "once; use a metric by name, or read the files whole"
        )
    fitted = kept or setup.fit(question, fit_to)
    posterior = fitted.posterior(samples.sample)
    posterior.prepare()  # what the workers then need is made once, before they are
    if passes is not None and kept is None:
        passes.keep_fitted(FIT, fitted)
    scorer = Scorer.of(
        fitted, posterior, samples, setup.metrics, scan, distribution=setup.distribution
    )
    return Fitted(question, setup, fitted, scan, samples, scorer, posterior)


@dataclass(frozen=True, eq=False)
class SufficientSample:
    """A label model fitted to rows that determine the result: distinct votes, or a sample."""

    question: Question
    setup: Setup
    fitted: FittedLabelModel
    scan: Scan
    rows: Predictions
    what: str

    def estimates(self, provenance: Provenance, workers: int | None) -> Estimates:
        """Estimates from these rows, with the total number of rows."""
        rows = self.rows.noting(provenance.notes, provenance.reading)
        rows = rows.as_part(rows.annotator_accuracy, rows.keys)
        with using_workers(workers):
            return self._of_all(
                estimate_in_memory(self.question, self.setup, rows, self.fitted), provenance
            )

    def _of_all(self, estimates: Estimates, provenance: Provenance) -> Estimates:
        """The estimates with the numbers of all rows."""
        with_rows = {group.group for group in estimates.groups}
        groups = tuple(size for size in _sizes(self.scan) if size.group in with_rows)
        place = {size.group: i for i, size in enumerate(groups)}
        size = self.scan.size
        return replace(
            estimates,
            rows=tuple(sorted(estimates.rows, key=lambda row: place[row.group])),
            n_items=size.items,
            n_labeled=size.labeled,
            n_annotated=_n_annotated(self.setup, self.scan),
            groups=groups,
            diagnostics={
                **estimates.diagnostics, "stream": {**provenance.diagnostics, "from": self.what}
            },
            warnings=(*estimates.warnings, *provenance.warnings, *_limits(self.scan)),
            streamed=True,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted label model, ready for the second pass; `posterior` is of the sample."""

    question: Question
    setup: Setup
    fitted: FittedLabelModel
    scan: Scan
    samples: Samples
    scorer: Scorer
    posterior: LabelPosterior

    def estimates(
        self,
        tally: Tally,
        provenance: Provenance,
        workers: int | None,
        passes: Passes | None = None,
    ) -> Estimates:
        """Finish the tally of all rows; what is measured of a group is kept, as the fit is."""
        question, metrics, samples = self.question, self.setup.metrics, self.samples
        of_run = (question.estimand, question.confidence_level)
        sizes, limits = _sizes(self.scan), _limits(self.scan)
        with using_workers(workers):
            posterior = self.scorer.posterior(samples.known)
            known = self.scorer.judged(samples.known)
            evaluator = Evaluator(known, posterior, metrics, *of_run)
            measurer = Measurer(self.scorer, tally, samples, self.scan, metrics, *of_run)
            held = {g.name: g for g in all_and_groups(known, question.by)}
            nobody = np.empty(0, dtype=np.int64)
            kept: dict[str | None, dict[str, Measured]] = {}
            if passes is not None:
                kept = passes.fitted(MEASURE) or {}

            def measure(group: Group) -> dict[str, Measured]:
                if group.name not in kept:
                    kept[group.name] = measurer.measure(group.name)
                    if passes is not None:
                        passes.keep_fitted(MEASURE, kept, seldom=True)
                return dict(kept[group.name])

            return build_estimates(
                question,
                self.setup,
                evaluator,
                [held.get(size.group, Group(size.group, nobody)) for size in sizes],
                measure,
                samples.known.noting(provenance.notes, provenance.reading).as_part(
                    samples.accuracy, samples.known.keys
                ),
                (*posterior.warnings, *provenance.warnings, *limits, *_unequal(samples.sample)),
                sizes=sizes,
                n_annotated=_n_annotated(self.setup, self.scan),
                predictions=samples.sample.noting(samples.sample.notes, provenance.reading),
                label_posterior=self.posterior,
                judged=self.scorer.judged(samples.sample),
                group_rows=groups_by_column(samples.sample, question.by),
                judged_by=self.posterior,
                diagnostics={**posterior.diagnostics, "stream": self._diagnostics(provenance)},
                streamed=True,
            )

    def _diagnostics(self, provenance: Provenance) -> dict[str, Any]:
        bases = [part.basis for part in self.scorer.parts]
        m = self.samples.sample.n_items
        of_sample = float(np.sqrt(min(m, NOISE_ROWS)))
        return {
            **provenance.diagnostics,
            "from": "all rows",
            "fitted_rows": self.samples.known.n_items,
            "sample_rows": m,
            "draws_per_row": max(len(s.chosen) for s in bases),
            "basis_error": max(s.error for s in bases) / of_sample,
        }


def _sizes(scan: Scan) -> tuple[GroupSize, ...]:
    """How many rows, and labeled ones, there are in all and in every group."""
    sizes: dict[str | None, Size] = {None: scan.size}
    sizes |= {name: size for name, (size, _) in scan.ordered_groups.items()}
    return tuple(GroupSize(name, size.items, size.labeled) for name, size in sizes.items())


def _n_annotated(setup: Setup, scan: Scan) -> int:
    """How many items have counts of labels; a label is one annotator's of a distribution."""
    return scan.size.annotated + (scan.size.labeled if setup.distribution else 0)


def _unequal(sample: Predictions) -> tuple[str, ...]:
    """Warnings if a sample may miss the rows of largest weight."""
    if design_effect(sample.weight, sample.times) <= MOST_DESIGN_EFFECT:
        return ()
    return (
        "sampling weights are so unequal that intervals of a stream may be too narrow; read the "
        "files whole (--engine memory)",
    )


def _limits(scan: Scan) -> tuple[str, ...]:
    """Warnings if not all labels were used."""
    n = scan.size.labeled + scan.size.annotated
    if n <= LABELED_ROWS:
        return ()
    return (
        f"the method is fitted to {LABELED_ROWS:,} of the {n:,} rows with a label, drawn by a hash "
        "of what they say",
    )
