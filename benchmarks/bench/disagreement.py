"""The benchmark of disagreement: how far from the label distribution, and what calibration mends.

Any file with p__ and h__ columns; the protocol's `n_labeled` are labels per validation item. Files
become `HistogramWorld`s; a `Trial` holds what the cells of a run share: the two parts, the labels
that are drawn, scaled probabilities and fitted concentrations; a cell is one method on one trial,
every classifier of it; `tables.losses` shows what they found.

Traps: calibration maps see the drawn labels of the validation items alone, losses are those of
the test items with all their labels; a label that a posterior was given is taken out of the
histogram that judges it; draws of few labels are the first of the draws of more, so that numbers
of labels are compared on the same votes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path

import numpy as np

from bench.datasets import Reading, digest_of, find_files, kept_of, open_file, read_each
from bench.protocol import Protocol
from bench.splits import generator, seed_of
from bench.world import FAILED, Body, Cell, DatasetFacts, Job, failure
from fewlabels import FewlabelsError, InputError, Status, UsageError, calibration
from fewlabels.annotations import DISAGREEMENT as SHARE_THAT_DIFFER
from fewlabels.annotations import disagreement_reliability, evaluate
from fewlabels.calibration import AlphaCalibration

Array = np.ndarray

ONE_NUMBER = "one-number"
"""The share of pairs of labels that differ, of all validation items, for every item."""
SCALINGS = ("raw", "temperature", "vector", "matrix")
"""Maps of the probabilities, fitted to the labels of the validation items."""
CONCENTRATIONS = ("constant", "logits", "features")
"""What the concentration of alpha-calibration depends on."""

_ALPHA = "+alpha-"

METHODS = (
    ONE_NUMBER,
    *SCALINGS,
    *(f"{scaling}{_ALPHA}{kind}" for scaling in ("raw", "temperature") for kind in CONCENTRATIONS),
)

LOSSES = ("accuracy", "L", "EL", "CL", "CE", "EL_plugin", "CL_plugin")
"""Of the probabilities, which an alpha-calibration leaves as they are."""
DISAGREEMENT = ("L_disagreement", "CL_disagreement", "CE_disagreement")
UPDATES = ("prior_EL", "posterior_EL")
"""Before and after one label of an expert, on the other labels of the item."""

BIN = "bin"
RELIABILITY = ("predicted_disagreement", "observed_disagreement", "share")
"""Of the items in a bin of the predicted disagreement, group `bin=<number>`."""

METRICS = (*LOSSES, *DISAGREEMENT, *UPDATES, *RELIABILITY)

BINS = 15


@dataclass(frozen=True)
class Method:
    """A map of the probabilities, and what the concentration depends on; "" where there is none.

    Without either it is `ONE_NUMBER`, which looks at no classifier.
    """

    scaling: str
    concentration: str


def method_of(name: str) -> Method:
    """A method by its name, `<scaling>` or `<scaling>+alpha-<concentration>`."""
    if name == ONE_NUMBER:
        return Method("", "")
    scaling, plus, kind = name.partition(_ALPHA)
    if scaling not in SCALINGS or (plus and kind not in CONCENTRATIONS):
        raise UsageError(f"unknown method {name!r}; choose from {', '.join(METHODS)}")
    return Method(scaling, kind)


model_of = method_of


PARTITION = "partition"
VALID, TEST = ("valid", "validation"), ("test",)
"""Values of the column `partition`; rows of other values (of training, say) are left out."""


@dataclass(frozen=True, eq=False)
class HistogramWorld:
    """Items that every classifier has probabilities for and somebody labeled.

    `probabilities` (n, M, K); `histogram` (n, K) counts; `valid` (n,) marks the validation items
    where the file says which they are, else None.
    """

    facts: DatasetFacts
    probabilities: Array
    histogram: Array
    valid: Array | None

    def parts(self, seed: int, run: int) -> tuple[Array, Array]:
        """Rows to validate and to test on: the file's own, or random halves, new in every run."""
        if self.valid is not None:
            return np.flatnonzero(self.valid), np.flatnonzero(~self.valid)
        n = len(self.histogram)
        order = generator("parts", seed, self.facts.name, run).permutation(n)
        return np.sort(order[: n // 2]), np.sort(order[n // 2 :])


def read_worlds(
    sources: Sequence[str | Path], reading: Reading, protocol: Protocol | None = None
) -> tuple[list[HistogramWorld], list[str]]:
    """Every file with probabilities and histograms, and a line for each file without."""
    return read_each(find_files(sources), lambda file, name: _read(file, name, reading))


def _read(file: Path, name: str, reading: Reading) -> HistogramWorld:
    read, groups, rows, notes = open_file(file, (PARTITION,), reading)
    if read.histogram is None:
        raise InputError(
            "has no histograms of labels; name the counts of each class h__<class>, one column each"
        )
    histogram = np.asarray(read.histogram, dtype=float)
    valid = None
    needs = {
        "without a prediction of every classifier": read.has_probabilities.all(axis=1),
        "without a label": histogram.sum(axis=1) > 0,
    }
    if PARTITION in groups:
        texts = groups[PARTITION].astype(str).str.strip().str.lower()
        valid = texts.isin(VALID).to_numpy()
        needs = {"neither valid nor test": valid | texts.isin(TEST).to_numpy()} | needs
        notes.append("validation and test items are those of the column `partition`")
    rows, left_out = kept_of(rows, needs)
    notes += left_out
    probabilities, histogram = read.probabilities[rows], histogram[rows]
    valid = None if valid is None else valid[rows]
    # Nothing can be learned from, or measured on, fewer.
    for part in (np.ones(len(histogram), dtype=bool),) if valid is None else (valid, ~valid):
        if (histogram[part].sum(axis=1) >= 2).sum() < 2:
            raise InputError(
                "fewer than 2 items to validate or to test on have two labels or more: nobody can "
                "be seen to disagree; add items that several annotators labeled"
            )
    half = len(histogram) // 2 if valid is None else int(valid.sum())
    facts = DatasetFacts(
        name, len(histogram), half, read.models, tuple(map(str, read.classes)), tuple(notes),
        digest_of((read.models, read.classes), probabilities, histogram, valid),
    )  # fmt: skip
    return HistogramWorld(facts, probabilities, histogram, valid)


def plan(protocol: Protocol, worlds: Sequence[HistogramWorld]) -> tuple[list[Job], list[str]]:
    """A job per trial; every data set can serve every number of labels."""
    return [
        tuple(Cell("estimates", w.facts.name, "", n, 0, run, m) for m in protocol.methods)
        for w in worlds
        for run in range(protocol.runs)
        for n in protocol.n_labeled
    ], []


PAPER_PENALTY = 0.005
"""The penalty of alpha-calibration in the paper, whose protocol this is."""

FEWEST = 1e-12
"""Least probability whose logarithm is a feature: that of alpha-calibration itself."""

LEFT_TO_JUDGE = 2
"""Labels that an item must keep to judge a posterior: an unbiased loss needs two."""


class Trial:
    """What the methods of a run and a number of labels share, fitted once.

    `valid` and `test` are the rows of the two parts, `counts` and `histogram` their labels.
    Every validation item keeps `n_labels` of its labels at random (all, where it has fewer); test
    items keep theirs, except for one of each in `expert` that posteriors are given: `rest` holds
    the others, for the items (`again`) that have enough of them.
    """

    def __init__(self, world: HistogramWorld, seed: int, run: int, n_labels: int) -> None:
        self.world, self.seed, self.run = world, seed, run
        name = world.facts.name
        valid, test = world.parts(seed, run)
        self.valid, self.test = valid, test
        # One order of the labels per run: those of 2 labels are the first of those of 5.
        self.counts = first_labels(
            world.histogram[valid], n_labels, generator("labels", seed, name, run)
        )
        self.histogram = world.histogram[test]
        self.again: Array = self.histogram.sum(axis=1) > LEFT_TO_JUDGE
        judged = self.histogram[self.again]
        self.expert = first_labels(judged, 1, generator("expert", seed, name, run))
        self.rest = judged - self.expert
        self._scaled: dict[str, tuple[Array, Array]] = {}

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the classifiers."""
        return self.world.facts.models

    @property
    def share_that_differ(self) -> float:
        """Mean over validation items of the share of pairs of their labels that differ."""
        observed = SHARE_THAT_DIFFER.observed(self.counts)
        if np.isnan(observed).all():
            raise InputError(
                "no validation item keeps two labels, and one shows no disagreement; raise "
                "`n_labeled` to 2 at least"
            )
        return float(np.nanmean(observed))

    @cached_property
    def features(self) -> tuple[Array, Array]:
        """Log-probabilities of all classifiers on validation and test items, (n, M K)."""
        p = self.world.probabilities
        flat = np.log(np.maximum(p, FEWEST)).reshape(len(p), -1)
        return flat[self.valid], flat[self.test]

    def scaled(self, scaling: str) -> tuple[Array, Array]:
        """Probabilities of validation and test items after a map, each (n, M, K).

        The map of every classifier is fitted to the labels of the validation items.
        """
        if scaling not in self._scaled:
            raw = self.world.probabilities[self.valid], self.world.probabilities[self.test]
            drawn = seed_of("fit", self.seed, self.world.facts.name, self.run, scaling) % 2**32
            make = {
                "temperature": calibration.TemperatureScaling,
                "vector": partial(calibration.VectorScaling, random_state=drawn),
                "matrix": partial(calibration.MatrixScaling, random_state=drawn),
            }
            places = range(len(self.models)) if scaling != "raw" else ()
            fitted = [make[scaling]().fit(raw[0][:, j], self.counts) for j in places]
            self._scaled[scaling] = tuple(
                np.stack([one.predict_proba(p[:, j]) for j, one in enumerate(fitted)], axis=1)
                if fitted else p for p in raw
            )  # fmt: skip
        return self._scaled[scaling]

    def with_mean(self, scaling: str) -> tuple[Array, Array]:
        """The same with the mean of all classifiers behind them, where there are several."""
        valid, test = self.scaled(scaling)
        if len(self.models) == 1:
            return valid, test
        valid, test = (
            np.concatenate([p, p.mean(axis=1, keepdims=True)], axis=1) for p in (valid, test)
        )
        return valid, test

    def alpha(
        self, scaling: str, kind: str, penalty: float | str = PAPER_PENALTY
    ) -> tuple[list[AlphaCalibration], Array | None]:
        """Alpha-calibration of every classifier, and of their mean, with features of test items.

        These are None where the concentration does not depend on any.
        """
        valid, _ = self.with_mean(scaling)
        seen, later = self.features if kind == "features" else (None, None)
        return [
            AlphaCalibration(kind, penalty).fit(valid[:, j], self.counts, features=seen)
            for j in range(valid.shape[1])
        ], later


def first_labels(histogram: Array, size: int, rng: np.random.Generator) -> Array:
    """Counts (n, K) of the first `size` labels of every item in a random order of its labels.

    An item with fewer labels keeps them all.
    """
    counts = histogram.astype(np.int64)
    n, k = counts.shape
    labels = np.repeat(np.tile(np.arange(k), n), counts.ravel())
    items = np.repeat(np.arange(n), counts.sum(axis=1))
    order = np.lexsort((rng.random(len(items)), items))
    sizes = counts.sum(axis=1)
    place = np.arange(len(items)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kept = order[place < size]
    cells = items[kept] * k + labels[kept]
    return np.bincount(cells, minlength=n * k).reshape(n, k).astype(float)


MEAN, ENSEMBLE = "mean of all", "ensemble"
"""Rows beside the classifiers: their average probability as one more classifier, which is
calibrated as such, and the classifiers as draws of a class probability, equations 72, 73 and 81."""


@dataclass(frozen=True)
class Forecast:
    """What is said of the test items: `probabilities` (n, K), `disagreement` (n,).

    `posterior` (m, K) is of those that were given a label, None where a method has none.
    """

    name: str
    probabilities: Array
    disagreement: Array
    posterior: Array | None


class Bench:
    """Computes cells; those of a run and a number of labels share a trial."""

    def __init__(self, worlds: Mapping[str, HistogramWorld], protocol: Protocol) -> None:
        self._trial = lru_cache(maxsize=1)(
            lambda dataset, run, n: Trial(worlds[dataset], protocol.seed, run, n)
        )

    def run(self, cell: Cell) -> Body:
        """What a method finds; that it cannot be fitted is part of the answer."""
        method = method_of(cell.method)
        trial = self._trial(cell.dataset, cell.run, cell.n_labeled)
        try:
            found = [
                (group, forecast.name, metric, float(value))
                for forecast in forecasts(trial, method)
                for group, metric, value in _measured(forecast, trial, method)
            ]
        except FewlabelsError as error:
            return failure(FAILED, error, cell.run)
        rows = [
            [cell.run, *place, value, np.nan, np.nan,
             str(Status.OK if np.isfinite(value) else Status.UNDEFINED), ""]
            for *place, value in found
        ]  # fmt: skip
        return {"rows": rows, "traits": []}


def forecasts(trial: Trial, method: Method) -> Iterator[Forecast]:
    """What every classifier says after a method, their mean, and their ensemble."""
    _, test = trial.with_mean(method.scaling or "raw")
    several = len(trial.models) > 1
    names = [*trial.models, *([MEAN] if several else [])]
    if not method.scaling:
        # The same for every item and classifier: what any prediction of disagreement must beat.
        share = np.full(len(test), trial.share_that_differ)
        for j, name in enumerate([*names, *([ENSEMBLE] if several else [])]):
            yield Forecast(name, test[:, min(j, test.shape[1] - 1)], share, None)
        return
    alpha, features = None, None
    if method.concentration:
        alpha, features = trial.alpha(method.scaling, method.concentration)
    again = trial.again
    for j, name in enumerate(names):
        p = test[:, j]
        if alpha is None:
            yield Forecast(name, p, np.clip(1.0 - (p**2).sum(axis=1), 0.0, 1.0), None)
            continue
        later = None if features is None else features[again]
        after = alpha[j].posterior(p[again], trial.expert, features=later)
        yield Forecast(name, p, alpha[j].predict_disagreement(p, features=features), after)
    if several:
        samples = np.ascontiguousarray(test[:, : len(trial.models)].swapaxes(0, 1))
        of_items = alpha and np.stack([
            one.concentration(p, features=features) for one, p in zip(alpha, samples, strict=False)
        ])  # fmt: skip
        some = None if of_items is None else of_items[:, again]
        yield Forecast(
            ENSEMBLE, calibration.ensemble_mean(samples),
            calibration.ensemble_disagreement(samples, concentration=of_items),
            calibration.ensemble_posterior(samples[:, again], trial.expert, concentration=some),
        )  # fmt: skip


def _measured(forecast: Forecast, trial: Trial, method: Method) -> Iterator[tuple[str, str, float]]:
    """Group, metric and value of what a method has; bins without items are left out."""
    found = evaluate(
        trial.histogram, forecast.probabilities, disagreement=forecast.disagreement, bins=BINS
    )
    # What changes the probabilities is judged by their losses as well.
    changes = method.scaling and not method.concentration
    yield from (("", metric, found[metric]) for metric in (*LOSSES * bool(changes), *DISAGREEMENT))
    again = trial.again
    for metric, has, p in (
        ("prior_EL", bool(method.scaling), forecast.probabilities[again]),
        ("posterior_EL", forecast.posterior is not None, forecast.posterior),
    ):
        if has:
            yield "", metric, evaluate(trial.rest, p, bins=BINS)["EL"] if len(p) else np.nan
    for row in disagreement_reliability(
        trial.histogram, forecast.disagreement, bins=BINS, confidence_level=None
    ):
        seen = row["mean_probability"], row["label_frequency"], row["share"]
        for metric, value in zip(RELIABILITY, seen, strict=True):
            if np.isfinite(value):
                yield f"{BIN}={row['bin'] + 1}", metric, value
