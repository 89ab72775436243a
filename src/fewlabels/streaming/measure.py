"""From a tally to values and interval draws of every metric.

The state of a statistic under parameter draw d, summed over all N rows, is

    S_all(d) = S_all(C) A_d + (N / n) [S_n(d) - S_n(C) A_d],

where C are the draws of the basis, of which the tally holds the states, A_d the coefficients of
draw d in that basis, and S_n sums over the n rows of a sample. So S_n(C) A_d is a control variate
of S_n(d), whose sum over all rows is known (Owen, Monte Carlo theory, 2013, section 8.9); N and n
are weights of rows. Where every draw is in the basis, A_d is one of its columns and nothing is left
out.

Metrics are finished from these states as from those of items that are all held. What drawn labels
and drawn rows add to a metric (`Evaluator.noise`) is measured on the sample, draw by draw and the
same for all classifiers and metrics, and shrinks as the square root of the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fewlabels.evaluation.draws import DRAWS_AT_ONCE
from fewlabels.evaluation.evaluator import (
    Estimand,
    Evaluator,
    Measured,
    draws_around,
    n_interval_draws,
    noise_alone,
    nothing_measured,
)
from fewlabels.evaluation.groups import all_and_groups
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import map_blocks, spans
from fewlabels.kernels.interval_draws import point_value
from fewlabels.kernels.weighting import Soft
from fewlabels.metrics.base import Plan
from fewlabels.metrics.plans import Chosen, prepare, view_of
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions
from fewlabels.streaming.samples import Samples, mixed
from fewlabels.streaming.scan import Scan
from fewlabels.streaming.tally import Key, Part, Scorer, Tally, distinct, provided

NOISE_ROWS = 4_000
"""Rows at most on which noise, and what the basis leaves out, are measured."""


_PROBABILITIES = 2**21
"""Numbers P(label) of a sample that are held at a time."""


class _Sample(NamedTuple):
    """Some of the rows of a group as they are judged, their posterior, and every metric's noise."""

    rows: Predictions
    posterior: LabelPosterior
    noise: Mapping[str, Floats]


class _Summed(NamedTuple):
    """Statistics of classifiers on the same rows (n,) of a sample, of weights `mass` (n,)."""

    rows: Ints
    mass: Floats
    plans: dict[Key, Plan]

    def states(self, p: Floats) -> Iterator[tuple[Key, Floats]]:
        """S_n of P(label) of the rows of the sample, (m, K, D), one after the other."""
        soft = Soft(p if len(self.rows) == len(p) else p[self.rows], self.mass[:, None])
        for key, plan in self.plans.items():
            yield key, plan.state(soft)[..., 0, :]


@dataclass(frozen=True, eq=False)
class Measurer:
    """Finishes a tally of the rows that a scan has counted."""

    scorer: Scorer
    tally: Tally
    samples: Samples
    scan: Scan
    metrics: Chosen
    estimand: Estimand
    confidence_level: float | None

    def measure(self, group: str | None) -> dict[str, Measured]:
        """Every metric of every classifier on a group's rows."""
        size = n_interval_draws(self.confidence_level)
        out = nothing_measured(self.metrics, size, len(self.scorer.metrics))
        n_rows = self.scan.size.weighty
        if group is not None:
            if group not in self.samples.of_groups:
                return out  # all its rows have weight 0
            rows, (counted, kept) = self.samples.of_groups[group], self.scan.groups[group]
            if kept.complete and counted.weighty <= kept.size:
                return self._exactly(rows)
            n_rows = counted.weighty
        rare = self._rare(group)
        sample = self._sample(self.samples.rows_of(group), n_rows)
        for part in self.scorer.parts:
            columns = tuple(j for j in part.columns if j not in rare)
            if columns:
                self._enter(out, sample, part._replace(columns=columns), group)
            for j in set(part.columns) & set(rare):
                if not rare[j].n_items:
                    continue  # it says nothing there, as far as is known
                if self.scan.models[j].complete:
                    exact = self._exactly(rare[j])
                    for name in out:
                        for whole, own in zip(out[name], exact[name], strict=True):
                            whole[..., j] = own[..., j]
                else:
                    share = rare[j].n_items / self.samples.of_models[j].n_items
                    n_own = max(round(share * int(self.scan.model_rows[j])), rare[j].n_items)
                    own_sample = self._sample(rare[j], n_own)
                    self._enter(out, own_sample, part._replace(columns=(j,)), group)
        return out

    def _rare(self, group: str | None) -> dict[int, Predictions]:
        """Rows of a group with predictions of classifiers that predict on few rows of all."""
        if group is None:
            return self.samples.of_models
        return {
            j: rows.take(own)
            for j, rows in self.samples.of_models.items()
            for groups in [{g.name: g.rows for g in all_and_groups(rows, self.scan.plan.by)}]
            for own in [groups.get(group, np.empty(0, dtype=np.int64))]
        }

    def _evaluator(self, judged: Predictions, posterior: LabelPosterior) -> Evaluator:
        # Rates of votes are known of whole domains, and these are some rows.
        own = replace(posterior, vote_rates=None)
        return Evaluator(judged, own, self.metrics, self.estimand, self.confidence_level)

    def _exactly(self, rows: Predictions) -> dict[str, Measured]:
        """Metrics as in memory: all rows are held."""
        evaluator = self._evaluator(self.scorer.judged(rows), self.scorer.posterior(rows))
        return evaluator.measure(np.arange(rows.n_items))

    def _sample(self, rows: Predictions, n_rows: int) -> _Sample:
        """A sample of the rows, with the noise of `n_rows` rows."""
        judged = self.scorer.judged(rows)
        place = mixed(judged, NOISE_ROWS)
        some = rows.take(place).as_part(self.samples.accuracy, judged.keys[place])
        own, posterior = self.scorer.judged(some), self.scorer.posterior(some)
        posterior.prepare()
        shrink, noise = np.sqrt(len(place) / n_rows), self._evaluator(own, posterior).noise()
        return _Sample(own, posterior, {name: shrink * found for name, found in noise.items()})

    def _enter(
        self, out: Mapping[str, Measured], sample: _Sample, part: Part, group: str | None
    ) -> None:
        """Values and draws of the classifiers of a part."""
        digests, basis = self._digests(sample, part, group), part.basis
        for j in part.columns:
            posterior = sample.posterior.of(j)
            for name, metric in self.scorer.metrics[j].items():
                digest = digests.get(Key(group, j, self.scorer.number(metric)))
                if digest is None:
                    continue
                who = [self.samples.sample.models[j]]
                found = metric.finish(digest[..., basis.of_values])[:, None]
                found = posterior.drawn_for(who, found, "values")
                value = point_value(found, only_mean=self.estimand == "sample" and metric.linear)
                out[name].value[j] = value[0]
                if not len(out[name].draws):
                    continue
                of_intervals = digest[..., basis.of_intervals]
                index = np.arange(len(out[name].draws)) % of_intervals.shape[-1]
                drawn = metric.finish(of_intervals)[index, None] + sample.noise[name][:, [j]]
                drawn, gap = posterior.drawn_for(who, drawn, "intervals"), None
                if self.estimand == "population":
                    gap = noise_alone(metric, of_intervals[..., None, :])
                doubts = posterior.log_odds_errors(who, len(drawn))
                drawn = draws_around(
                    value, drawn, metric.bounds, metric.best, posterior.inflation, gap, doubts
                )
                out[name].draws[:, j] = drawn[:, 0]
                out[name].undefined[j] = np.isnan(drawn).sum()

    def _digests(self, sample: _Sample, part: Part, group: str | None) -> dict[Key, Floats]:
        """Digests of every statistic of the classifiers of a part, last axis all columns."""
        basis, posterior = part.basis, sample.posterior.of(part.columns[0])
        summed, tallied = self._summed(sample.rows, group, part.columns), self.tally.states
        plans = {key: plan for own in summed for key, plan in own.plans.items()}
        scale = {
            key: self.tally.mass[key] / float(own.mass.sum()) for own in summed for key in own.plans
        }
        rest = dict[Key, Floats]()  # S_all(C) - (N / n) S_n(C)
        if not basis.complete:
            p = basis.soft(posterior)
            for own in summed:
                rest |= {key: tallied[key] - scale[key] * s for key, s in own.states(p)}

        def run(draws: slice) -> dict[Key, Floats]:
            if basis.complete:
                return {key: plan.digest(tallied[key][..., draws]) for key, plan in plans.items()}
            p, out = basis.columns(posterior, np.arange(draws.start, draws.stop)), {}
            for own in summed:
                for key, state in own.states(p):
                    every = rest[key] @ basis.coefficients[:, draws]
                    every += scale[key] * state
                    out[key] = plans[key].digest(every)
            return out

        cells = sample.rows.n_items * sample.rows.n_classes
        width = min(DRAWS_AT_ONCE, max(_PROBABILITIES // cells, 1))
        found = list(map_blocks(run, spans(basis.n_columns, width)))
        return {key: np.concatenate([chunk[key] for chunk in found], axis=-1) for key in found[0]}

    def _summed(
        self, rows: Predictions, group: str | None, columns: Sequence[int]
    ) -> list[_Summed]:
        """The statistics of classifiers that are tallied, on a sample."""
        place, out = np.arange(rows.n_items), dict[bytes, _Summed]()
        for j in columns:
            for chosen, given in provided(rows, place, self.scorer.metrics[j], j):
                inside = place[given]
                if not len(inside):
                    continue
                for name, plan in distinct(prepare(view_of(rows, inside, j), chosen, exact=False)):
                    key = Key(group, j, self.scorer.number(chosen[name]))
                    if key in self.tally.states:
                        own = _Summed(inside, rows.weight[inside], {})
                        out.setdefault(given.tobytes(), own).plans[key] = plan
        return list(out.values())
