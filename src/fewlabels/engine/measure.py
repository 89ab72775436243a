"""From tallied states to values and interval draws of every metric.

The state of a parameter draw over all rows is its combination of the tallied draws' states, plus
what that leaves out, as a sample of the rows shows it. What drawn labels and drawn rows add to a
metric (the Bayesian bootstrap) is measured on a sample too, draw by draw and the same for all
classifiers and metrics, and shrinks as the square root of the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from fewlabels.engine.scan import Scan
from fewlabels.engine.skeleton import Skeleton, chunks
from fewlabels.engine.sketch import BottomRows
from fewlabels.engine.support import Support, mixed
from fewlabels.engine.tally import Key, Part, Scorer, Tally, distinct, provided
from fewlabels.evaluation.draws import DRAWS_AT_ONCE, LabelWeights
from fewlabels.evaluation.evaluator import Estimand, Evaluator, Measured, n_interval_draws
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import map_blocks
from fewlabels.kernels.interval_draws import give_up, over_draws, point_value, stretched
from fewlabels.metrics.base import Metric, Plan
from fewlabels.metrics.plans import Chosen, States, prepare, view_of
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

NOISE_ROWS = 4_000
"""Rows that noise is measured on, at most."""


class _Sample(NamedTuple):
    """Some of the rows of a group, under the posterior by which classifiers are judged."""

    rows: Predictions
    posterior: LabelPosterior


@dataclass(frozen=True, eq=False)
class Measurer:
    """Finishes a tally of the rows that a scan has counted."""

    scorer: Scorer
    tally: Tally
    support: Support
    scan: Scan
    metrics: Chosen
    estimand: Estimand
    confidence_level: float | None

    @cached_property
    def n_draws(self) -> int:
        """How many interval draws there are."""
        return n_interval_draws(self.confidence_level)

    def measure(self, group: str | None) -> dict[str, Measured]:
        """Every metric of every classifier on a group's rows."""
        m = len(self.scorer.metrics)
        out = {
            name: Measured(
                np.full(m, np.nan), np.full((self.n_draws, m), np.nan), np.zeros(m, dtype=np.int64)
            )
            for name in self.metrics
        }
        if group is not None and group not in self.support.of_groups:
            return out  # all its rows have weight 0
        if group is not None and self._all_held(self.scan.groups[group][1], group):
            return self._exactly(self.support.of_groups[group])
        rare = self.support.of_models if group is None else {}
        sample, size = self._sample(self.support.rows_of(group)), self._size(group)
        noise = self._noise(sample.rows, self.support.rows_of(group), size)
        for part in self.scorer.parts:
            columns = tuple(j for j in part.columns if j not in rare)
            if columns:
                self._enter(out, sample, part._replace(columns=columns), group, noise)
            for j in set(part.columns) & set(rare):
                if self.scan.models[j].complete:
                    found = self._exactly(rare[j])
                    for name in out:
                        for whole, own in zip(out[name], found[name], strict=True):
                            whole[..., j] = own[..., j]
                    continue
                own_sample = self._sample(rare[j])
                own_noise = self._noise(own_sample.rows, rare[j], int(self.scan.model_rows[j]))
                self._enter(out, own_sample, part._replace(columns=(j,)), group, own_noise)
        return out

    def _enter(
        self, out: Mapping[str, Measured], sample: _Sample, part: Part, group: str | None,
        noise: Mapping[str, Floats],
    ) -> None:  # fmt: skip
        """Values and draws of the classifiers of a part."""
        for j, digests in self._digests(sample, part, group).items():
            for name, digest in digests.items():
                value, drawn = self._finished(sample, part.skeleton, name, digest, noise, j)
                out[name].value[j] = value
                out[name].draws[:, j] = drawn
                out[name].undefined[j] = np.isnan(drawn).sum()

    def _size(self, group: str | None) -> int:
        """Rows of some weight."""
        return (self.scan.size if group is None else self.scan.groups[group][0]).weighty

    def _all_held(self, kept: BottomRows, group: str) -> bool:
        return kept.complete and self._size(group) <= kept.size

    def _exactly(self, rows: Predictions) -> dict[str, Measured]:
        """As in memory: all rows are held."""
        posterior = replace(self.scorer.posterior(rows), vote_rates=None)
        judged, level = self.scorer.judged(rows), self.confidence_level
        evaluator = Evaluator(judged, posterior, self.metrics, self.estimand, level)
        return evaluator.measure(np.arange(rows.n_items))

    def _sample(self, rows: Predictions) -> _Sample:
        posterior = self.scorer.posterior(rows)
        posterior.prepare()
        return _Sample(self.scorer.judged(rows), posterior)

    def _finished(
        self, sample: _Sample, skeleton: Skeleton, name: str, digest: Floats,
        noise: Mapping[str, Floats], j: int,
    ) -> tuple[float, Floats]:  # fmt: skip
        """Value and interval draws of a metric of a classifier, from the digest of all columns."""
        posterior, metric = sample.posterior.of(j), self.scorer.metrics[j][name]
        only_mean = self.estimand == "sample" and metric.linear
        found = metric.finish(digest[..., skeleton.of_values])[:, None]
        value = point_value(found, only_mean=only_mean or posterior.value_from == "marginals")
        if not self.n_draws:
            return float(value[0]), np.empty(0)
        doubted = digest[..., skeleton.of_intervals]
        drawn = self._drawn(metric, doubted, noise.get(name), value, j, posterior)
        return float(value[0]), drawn[:, 0]

    def _drawn(
        self, metric: Metric, digest: Floats, noise: Floats | None, value: Floats, j: int,
        posterior: LabelPosterior,
    ) -> Floats:  # fmt: skip
        """Interval draws (D, 1) from the digest of the parameter draws, and the noise."""
        index = np.arange(self.n_draws) % digest.shape[-1]
        drawn = metric.finish(digest)[index, None]
        if noise is not None:
            drawn = drawn + noise[:, j : j + 1]
        if metric.spread is not None and self.estimand == "population":
            gap = over_draws(np.nanmean, metric.spread(digest)[:, None])
            drawn = give_up(drawn, value, gap)
        if posterior.stretch != 1:
            drawn = stretched(drawn, value, posterior.stretch)
        return np.clip(drawn, *metric.bounds)

    # --- states of all draws ----------------------------------------------------------------

    def _digests(
        self, sample: _Sample, part: Part, group: str | None
    ) -> dict[int, dict[str, Floats]]:
        """Digests of every metric of the classifiers of a part, last axis all columns."""
        columns, skeleton = part
        posterior, weight = sample.posterior.of(columns[0]), sample.rows.weight[:, None, None]
        tallied = skeleton.soft(posterior) * weight
        few = {j: list(self._states(sample, group, j, tallied)) for j in columns}

        def run(chunk: slice) -> dict[int, dict[int, Floats]]:
            if skeleton.complete:
                whole = {j: [self.tally.states[own.key][..., chunk] for own in few[j]] for j in few}
            else:
                whole = self._combined(sample, part, group, few, chunk)
            return {
                j: {
                    own.key.statistic: own.plan.digest(state)
                    for own, state in zip(few[j], states, strict=True)
                }
                for j, states in whole.items()
            }

        width = DRAWS_AT_ONCE if skeleton.n_columns > DRAWS_AT_ONCE else skeleton.n_columns
        every = slice(0, skeleton.n_columns)
        found = list(map_blocks(run, chunks(every, width)))
        return {j: self._by_metric(j, [chunk[j] for chunk in found]) for j in columns}

    def _combined(
        self, sample: _Sample, part: Part, group: str | None,
        few: Mapping[int, Sequence[_SampleState]], chunk: slice,
    ) -> dict[int, list[Floats]]:  # fmt: skip
        """States over all rows of some columns: combined, with what that leaves out added."""
        columns, skeleton = part
        posterior, weight = sample.posterior.of(columns[0]), sample.rows.weight[:, None, None]
        soft = skeleton.columns(posterior, np.arange(chunk.start, chunk.stop)) * weight
        combine = skeleton.combine[:, chunk]
        out: dict[int, list[Floats]] = {}
        for j in columns:
            out[j] = []
            seen = self._states(sample, group, j, soft)
            for own, some in zip(few[j], seen, strict=True):
                left_out = some.state - own.state @ combine
                state = self.tally.states[some.key] @ combine
                out[j].append(state + left_out * (self.tally.mass[some.key] / some.mass))
        return out

    def _by_metric(self, j: int, found: Sequence[Mapping[int, Floats]]) -> dict[str, Floats]:
        whole = {s: np.concatenate([part[s] for part in found], axis=-1) for s in found[0]}
        numbers = {n: self.scorer.number(metric) for n, metric in self.scorer.metrics[j].items()}
        return {name: whole[number] for name, number in numbers.items() if number in whole}

    def _states(
        self, sample: _Sample, group: str | None, j: int, soft: Floats
    ) -> Iterator[_SampleState]:
        """States of a sample's label weights, one per statistic that is tallied too."""
        place = np.arange(sample.rows.n_items)
        for chosen, given in provided(sample.rows, place, self.scorer.metrics[j], j):
            inside = place[given]
            if not len(inside):
                continue
            mass = sample.rows.weight[inside]
            plans = prepare(view_of(sample.rows, inside, j), chosen, exact=False)
            for name, plan in distinct(plans):
                key = Key(group, j, self.scorer.number(chosen[name]))
                if key in self.tally.states:
                    state = plan.soft_state(soft[inside], mass)
                    yield _SampleState(key, plan, state, float(mass.sum()))

    # --- noise ------------------------------------------------------------------------------

    def _noise(self, judged: Predictions, given: Predictions, size: int) -> dict[str, Floats]:
        """What drawn labels and rows add to every metric, (D, M), at a number of rows."""
        if not self.n_draws:
            return {}
        place = mixed(judged, NOISE_ROWS)
        rows = given.take(place).as_part(self.support.accuracy)
        rows.__dict__["keys"] = judged.keys[place]
        judged, posterior = self.scorer.judged(rows), self.scorer.posterior(rows)
        level = self.confidence_level
        evaluator = Evaluator(judged, posterior, self.metrics, self.estimand, level)
        m = rows.n_models
        out = {name: np.full((self.n_draws, m), np.nan) for name in self.metrics}
        shrink = np.sqrt(len(place) / size)
        for own_posterior, chosen, columns, own in evaluator.patterns(np.arange(len(place))):
            weights = LabelWeights(judged, own_posterior, own, own[:0], self.n_draws)
            plans = [prepare(view_of(judged, own, int(j)), chosen, exact=True) for j in columns]
            run = partial(self._difference, weights, plans, chosen)
            parts = list(map_blocks(run, weights.chunks(self.n_draws)))
            for name in chosen:
                found = np.concatenate([part[name] for part in parts])
                out[name][:, columns] = shrink * (found - over_draws(np.nanmean, found))
        return out

    def _difference(
        self, weights: LabelWeights, plans: Sequence[Mapping[str, Plan]], chosen: Chosen,
        index: Ints,
    ) -> dict[str, Floats]:  # fmt: skip
        """Metrics of drawn labels and rows minus those of the same draws' soft labels, (D, M)."""
        everything = slice(0, len(weights))
        population = self.estimand == "population"
        drawn, soft = States(plans), States(plans)
        make = weights.population if population else weights.sample
        drawn.add(make(index, everything), everything)
        if population:
            drawn.unseen(*weights.pseudo_item(index))
        soft.add(weights.doubted(index, everything), everything)
        size = len(index)
        found, expected = drawn.finish(chosen, size), soft.finish(chosen, size)
        return {name: found[name] - expected[name] for name in chosen}


class _SampleState(NamedTuple):
    """A state of some rows, and their weight."""

    key: Key
    plan: Plan
    state: Floats
    mass: float
