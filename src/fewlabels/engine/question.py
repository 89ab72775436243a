"""What is asked of a stream: settled after the first pass, answered after the second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from fewlabels.engine.measure import Measurer
from fewlabels.engine.scan import LABELED_ROWS, Scan, ScanPlan, Size
from fewlabels.engine.support import Support, support_of, with_keys
from fewlabels.engine.tally import Scorer, Tally
from fewlabels.errors import UsageError
from fewlabels.estimates import Estimates, GroupSize
from fewlabels.evaluation.details import details_of
from fewlabels.evaluation.evaluator import Estimand, Evaluator
from fewlabels.evaluation.input_facts import facts
from fewlabels.groups import Group, all_and_groups
from fewlabels.kernels.arrays import Ints
from fewlabels.kernels.blocks import using_workers
from fewlabels.metrics.base import Metric
from fewlabels.metrics.registry import asked_of, check_asked
from fewlabels.metrics.registry import resolve as resolve_metrics
from fewlabels.models.base import LabelModel
from fewlabels.models.label_distribution import LabelDistribution
from fewlabels.models.registry import METHODS
from fewlabels.models.registry import resolve as resolve_method
from fewlabels.pipeline import (
    Against,
    answered,
    check_settings,
    estimate,
    judged_against,
    reference_facts,
    reference_notes,
    seed_of,
)
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions


@dataclass(frozen=True)
class Question:
    """The arguments of `fewlabels.estimate` that concern what is estimated; see there."""

    method: str | LabelModel = "auto"
    metrics: Any = None
    by: tuple[str, ...] = ()
    confidence_level: float | None = 0.95
    estimand: Estimand = "population"
    against: Against = "auto"
    random_state: int | None = 0
    reference: Predictions | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_settings(self.confidence_level, self.estimand, None)
        seed_of(self.random_state)
        check_asked(self.metrics)

    def about(self, probe: Predictions) -> Question:
        """The same question, with the default metrics of rows that give all there is."""
        return replace(self, metrics=asked_of(self.metrics, probe))

    def plan(self, probe: Predictions) -> ScanPlan:
        """What the first pass looks for, by rows that give all that the columns can give."""
        name, _ = resolve_method(self.method, probe, self.reference)
        votes = _learns_from_votes(name)
        alone = votes and self._of_votes_alone(probe)
        quantiles = any(m.statistic.quantiles for m in resolve_metrics(self.metrics).values())
        return ScanPlan(self.by, probe.n_models, probe.n_classes, votes, alone, quantiles)

    def _of_votes_alone(self, probe: Predictions) -> bool:
        """Whether rows of votes are all that the answer depends on."""
        metrics = resolve_metrics(self.metrics).values()
        return all(m.needs == "hard" and not m.in_memory for m in metrics)

    def settle(
        self, scan: Scan, counts: Ints | None, models: Sequence[str], classes: Sequence[Any]
    ) -> Whole | Fitted:
        """Fit the label model, or find that the answer needs no second pass."""
        support = support_of(scan, counts, models, classes)
        name, model = resolve_method(self.method, support.known, self.reference)
        chosen = resolve_metrics(self.metrics)
        votes = scan.patterns if _learns_from_votes(name) else None
        counted = name in METHODS and METHODS[name].counts_rows
        if votes is not None and counted and scan.plan.groups_in_patterns:
            rows = votes.predictions(models, classes)
            return Whole(self, name, scan, rows, f"{len(votes.keys):,} distinct rows of votes")
        if self._by_sample(name, chosen):
            return Whole(self, name, scan, support.known, "a sample of the unlabeled rows")
        judged = judged_against(support.known, self.against, name)
        if judged == "distribution":
            model = LabelDistribution(model)
        fit_to = support.fitted_to
        if votes is not None and counted:
            fit_to = with_keys(votes.predictions(models, classes), support.accuracy)
        rng = np.random.default_rng(seed_of(self.random_state))
        fitted = model.fit(fit_to, rng)
        posterior = fitted.posterior(support.sample)
        posterior.prepare()  # what the workers then need is made once, before they are
        scorer = Scorer.of(
            fitted,
            posterior,
            support,
            chosen,
            scan,
            distribution=judged == "distribution",
        )
        return Fitted(self, name, scan, support, scorer, posterior, chosen, judged)

    def _by_sample(self, name: str, chosen: Mapping[str, Metric]) -> bool:
        known = METHODS.get(name)
        by_sample = known is not None and known.streams == "sample"
        if by_sample and self.estimand == "sample":
            raise UsageError(
                f"method {name!r} cannot judge these very items in a stream, for it would have to "
                "hold all of them; leave --estimand out, or read the files with --engine memory"
            )
        own = [m.name for m in chosen.values() if m.in_memory]
        if own and not by_sample:
            raise UsageError(
                f"metric {own[0]!r} is a function of all items, which a stream never holds at "
                "once; use a metric by name, or read the files whole"
            )
        return by_sample


def _learns_from_votes(name: str) -> bool:
    known = METHODS.get(name)
    return known is not None and known.learns_from == "hard predictions"


class Told(NamedTuple):
    """What is known of a run beside its numbers: diagnostics, and sentences for the warnings."""

    diagnostics: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Whole:
    """An answer from few rows that fit into memory: distinct rows of votes, or a sample."""

    question: Question
    name: str
    scan: Scan
    rows: Predictions
    what: str

    def estimates(self, told: Told, workers: int | None) -> Estimates:
        """Estimate in memory, and say how many rows there are."""
        asked = self.question
        method = self.name if asked.method == "auto" else asked.method
        found = estimate(
            self.rows.noting(told.notes, told.reading), method,
            asked.metrics, asked.by or None, asked.confidence_level, asked.estimand,
            asked.against, asked.random_state, workers, reference=asked.reference, details=False,
        )  # fmt: skip
        size = self.scan.size
        groups = _sizes(found.groups, self.scan)
        place = {g.group: i for i, g in enumerate(groups)}
        whole = replace(
            found,
            rows=tuple(sorted(found.rows, key=lambda row: place[row.group])),
            n_items=size.items,
            n_labeled=size.labeled,
            n_annotated=size.annotated,
            groups=groups,
            diagnostics={**found.diagnostics, "stream": {**told.diagnostics, "from": self.what}},
            warnings=(*found.warnings, *told.warnings, *_limits(self.scan)),
            streamed=True,
        )
        with using_workers(workers):
            metrics = resolve_metrics(asked.metrics)
            return replace(whole, details=details_of(whole, metrics))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted label model, ready for the second pass."""

    question: Question
    name: str
    scan: Scan
    support: Support
    scorer: Scorer
    posterior: LabelPosterior
    metrics: Mapping[str, Metric]
    judged: str

    def estimates(self, tally: Tally, told: Told, workers: int | None) -> Estimates:
        """Finish the tally of all rows."""
        with using_workers(workers):
            return self._estimates(tally, told)

    def _estimates(self, tally: Tally, told: Told) -> Estimates:
        asked, support, size = self.question, self.support, self.scan.size
        known, level = self.scorer.judged(support.known), asked.confidence_level
        on_known = self.scorer.posterior(support.known)
        evaluator = Evaluator(known, on_known, self.metrics, asked.estimand, level)
        measurer = Measurer(
            self.scorer, tally, support, self.scan, self.metrics, asked.estimand, level
        )
        judged = self.scorer.judged(support.sample)
        found = answered(
            self.name,
            evaluator,
            self._groups(known),
            lambda group: measurer.measure(group.name),
            self._said(on_known, told),
            seed=seed_of(asked.random_state),
            against=self.judged,
            n_items=size.items,
            n_labeled=size.labeled,
            n_annotated=size.annotated,
            sizes=tuple(
                GroupSize(name, group.items, group.labeled)
                for name, group in self._group_sizes().items()
            ),
            posterior=self.posterior,
            diagnostics={**on_known.diagnostics, "stream": self._told(told)},
            predictions=support.sample.noting(support.sample.notes, told.reading),
            judged=judged,
            streamed=True,
            reference=reference_facts(asked.reference),
        )
        return replace(found, details=details_of(found, self.metrics))

    def _said(self, on_known: LabelPosterior, told: Told) -> Iterator[str]:
        """What to say of the input, the method and the run."""
        given = self.support.known.noting(told.notes)
        level, distribution = self.question.confidence_level, self.judged == "distribution"
        yield from facts(given, self.name, level, distribution=distribution)
        yield from reference_notes(self.question.reference)
        yield from (*on_known.warnings, *told.warnings, *_limits(self.scan))

    def _told(self, told: Told) -> dict[str, Any]:
        skeletons = [part.skeleton for part in self.scorer.parts]
        m = self.support.sample.n_items
        return {
            **told.diagnostics,
            "from": "all rows",
            "fitted_rows": self.support.known.n_items,
            "sample_rows": m,
            "draws_per_row": max(len(s.chosen) for s in skeletons),
            "support_error": max(s.error for s in skeletons) / float(np.sqrt(m)),
        }

    def _group_sizes(self) -> dict[str | None, Size]:
        return {None: self.scan.size} | {
            name: size for name, (size, _) in self.scan.ordered_groups.items()
        }

    def _groups(self, known: Predictions) -> list[Group]:
        """All groups of the stream, with the rows of each that are held."""
        held = {g.name: g for g in all_and_groups(known, self.question.by or None)}
        nobody = np.empty(0, dtype=np.int64)
        return [held.get(name, Group(name, nobody)) for name in self._group_sizes()]


def _limits(scan: Scan) -> tuple[str, ...]:
    """What to say where not all labels were used."""
    n = scan.size.labeled + scan.size.annotated
    if n <= LABELED_ROWS:
        return ()
    return (
        f"the method is fitted to {LABELED_ROWS:,} of the {n:,} rows with a label, drawn by a hash "
        "of what they say",
    )


def _sizes(groups: Sequence[GroupSize], scan: Scan) -> tuple[GroupSize, ...]:
    """Groups with the numbers of all their rows."""
    sizes: dict[str | None, Size] = {None: scan.size}
    sizes |= {name: size for name, (size, _) in scan.ordered_groups.items()}
    there = {g.group for g in groups}
    return tuple(GroupSize(n, s.items, s.labeled) for n, s in sizes.items() if n in there)
