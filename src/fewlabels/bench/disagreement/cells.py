"""A cell: one method on one trial, all classifiers, their mean and their ensemble."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fewlabels.annotations import disagreement_reliability, evaluate
from fewlabels.bench.cells import FAILED, Body, Cell, body_of, failure
from fewlabels.bench.disagreement.data import HistogramWorld
from fewlabels.bench.disagreement.protocol import (
    BIN,
    BINS,
    DISAGREEMENT,
    LOSSES,
    METRICS,
    RELIABILITY,
    Method,
    method_of,
)
from fewlabels.bench.disagreement.trial import Fitted, Trial
from fewlabels.bench.protocol import Protocol
from fewlabels.calibration import ensemble_disagreement, ensemble_mean, ensemble_posterior
from fewlabels.errors import FewlabelsError, Status
from fewlabels.kernels.arrays import Array, Floats
from fewlabels.kernels.blocks import map_blocks, using_workers

MEAN, ENSEMBLE = "mean of all", "ensemble"
"""Rows beside the classifiers: their average probability as one more classifier, which is
calibrated as such, and the classifiers as draws of a class probability, equations 72, 73 and 81."""

GROUPS = ("", *(f"{BIN}={k + 1}" for k in range(BINS)))
_PLACE = {metric: k for k, metric in enumerate(METRICS)}


@dataclass(frozen=True)
class Forecast:
    """What is said of the test items: `probabilities` (n, K), `disagreement` (n,).

    `posterior` (m, K) is of those that were given a label, None where a method has none.
    """

    name: str
    probabilities: Floats
    disagreement: Floats
    posterior: Floats | None


class Bench:
    """Computes cells; those of a run and a number of labels share a trial."""

    def __init__(self, worlds: Mapping[str, HistogramWorld], protocol: Protocol) -> None:
        self._trial = lru_cache(maxsize=1)(
            lambda dataset, run, n: Trial(worlds[dataset], protocol.seed, run, n)
        )

    def run(self, cell: Cell) -> Body:
        """What a method finds; that it cannot be fitted is part of the answer."""
        started = time.perf_counter()
        method = method_of(cell.method)
        trial = self._trial(cell.dataset, cell.run, cell.n_labeled)
        try:
            said = list(forecasts(trial, method))
            parts = list(map_blocks(lambda f: _measured(f, trial, method), said))
        except FewlabelsError as error:
            return failure(FAILED, error, cell.run)
        values = np.stack(parts, axis=1)
        return body_of(
            [f.name for f in said], METRICS, GROUPS, [cell.run], values,
            status=_statuses(values, method), seconds=[time.perf_counter() - started],
        )  # fmt: skip


def forecasts(trial: Trial, method: Method) -> Iterator[Forecast]:
    """What every classifier says after a method, their mean, and their ensemble."""
    if not method.scaling:
        yield from _one_number(trial)
        return
    _, test = trial.with_mean(method.scaling)
    names = [*trial.models, *([MEAN] if test.shape[1] > len(trial.models) else [])]
    fitted = trial.alpha(method.scaling, method.concentration) if method.concentration else None
    for j, name in enumerate(names):
        p = test[:, j]
        if fitted is None:
            yield Forecast(name, p, np.clip(1.0 - (p**2).sum(axis=1), 0.0, 1.0), None)
        else:
            yield _calibrated(name, j, fitted, trial)
    if len(trial.models) > 1:
        yield _ensemble(trial, test[:, : len(trial.models)], fitted)


def _one_number(trial: Trial) -> Iterator[Forecast]:
    """The same for every item and classifier: what any prediction of disagreement must beat."""
    _, test = trial.with_mean("raw")
    several = len(trial.models) > 1
    said = np.full(len(test), trial.share_that_differ)
    for j, name in enumerate([*trial.models, *([MEAN, ENSEMBLE] if several else [])]):
        yield Forecast(name, test[:, min(j, test.shape[1] - 1)], said, None)


def _calibrated(name: str, j: int, fitted: Fitted, trial: Trial) -> Forecast:
    model, p, again = fitted.models[j], fitted.test[:, j], trial.again
    features = fitted.features
    later = None if features is None else features[again]
    return Forecast(
        name,
        p,
        model.predict_disagreement(p, features=features),
        model.posterior(p[again], trial.expert, features=later),
    )


def _ensemble(trial: Trial, test: Floats, fitted: Fitted | None) -> Forecast:
    samples = np.ascontiguousarray(test.swapaxes(0, 1))
    alpha = None
    if fitted is not None:
        own = range(len(samples))
        alpha = np.stack(
            [fitted.models[j].concentration(samples[j], features=fitted.features) for j in own]
        )
    some = None if alpha is None else alpha[:, trial.again]
    return Forecast(
        ENSEMBLE,
        ensemble_mean(samples),
        ensemble_disagreement(samples, concentration=alpha),
        ensemble_posterior(samples[:, trial.again], trial.expert, concentration=some),
    )


def _measured(forecast: Forecast, trial: Trial, method: Method) -> Floats:
    """Metrics (groups, metrics) of a forecast; NaN where the method has none, or undefined."""
    values = np.full((len(GROUPS), len(METRICS)), np.nan)
    with using_workers(1):
        found = evaluate(
            trial.histogram, forecast.probabilities, disagreement=forecast.disagreement, bins=BINS
        )
        for metric in _losses(method):
            values[0, _PLACE[metric]] = found[metric]
        prior = forecast.probabilities[trial.again] if method.scaling else None
        for metric, p in (("prior_EL", prior), ("posterior_EL", forecast.posterior)):
            if p is not None and len(p):
                values[0, _PLACE[metric]] = evaluate(trial.rest, p, bins=BINS)["EL"]
        for row in disagreement_reliability(
            trial.histogram, forecast.disagreement, bins=BINS, confidence_level=None
        ):
            place = 1 + row["bin"]
            seen = row["mean_probability"], row["label_frequency"], row["share"]
            for metric, value in zip(RELIABILITY, seen, strict=True):
                values[place, _PLACE[metric]] = value
    return values


def _losses(method: Method) -> tuple[str, ...]:
    """What `evaluate` says of a method: where it changes them, of the probabilities too."""
    plain = method.scaling and not method.concentration
    return (*(LOSSES if plain else ()), *DISAGREEMENT)


def _statuses(values: Floats, method: Method) -> Array:
    """A missing number of all items is undefined if the method could have had it."""
    status = np.where(np.isfinite(values), str(Status.OK), str(Status.NOT_APPLICABLE))
    could = (
        *_losses(method),
        *(("prior_EL",) if method.scaling else ()),
        *(("posterior_EL",) if method.concentration else ()),
    )
    for metric in could:
        column = status[0, :, _PLACE[metric]]
        column[column != str(Status.OK)] = str(Status.UNDEFINED)
    return status
