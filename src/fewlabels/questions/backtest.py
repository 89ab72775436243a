"""fl.backtest: on items whose labels are known, how far off estimates from few of them are.

Labels are hidden but for n, drawn at random, and every method estimates from what is left; again
and again. The truth is the metric on all labels. Of R runs with values v_r and intervals
[l_r, h_r] the error is sum |v_r - truth| / R, the bias sum (v_r - truth) / R, the coverage the
share of runs with l_r <= truth <= h_r, and the width the mean of h_r - l_r. Within a run all
methods see the same labels, and fewer labels are some of more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fewlabels import __version__
from fewlabels.checks.arguments import RandomState, level_of, seed_of, whole
from fewlabels.data.inputs import predictions_of
from fewlabels.errors import FewlabelsError, InputError, UsageError, listed, plain_name, quoted
from fewlabels.estimates import Estimate, Estimates, Selected, group_name
from fewlabels.estimating import estimate
from fewlabels.evaluation.evaluator import Estimand
from fewlabels.kernels.arrays import Floats, Frozen
from fewlabels.kernels.blocks import Progress, hearing_steps, silent
from fewlabels.kernels.counter_based import uniforms
from fewlabels.methods.base import LabelModel, refuse_multiplicity, refuse_strata
from fewlabels.methods.settings import canonical, make
from fewlabels.predictions import Predictions
from fewlabels.report.shown import Result, plain_values

ALWAYS = ("auto", "labeled")
"""Methods that every backtest has: the default, and the labels only."""

MOST_ITEMS = 5_000
"""With more items a sample is taken: an estimate then takes a second, and there are a hundred."""

_DRAW, _SAMPLE = 0xBAC7, 0xBAC8
_ROUNDING = 1e-9
"""An interval of zero width covers values that differ from it by rounding alone."""


class BacktestRow(NamedTuple):
    """Errors of one method's estimates from `n_labeled` labels, over `runs` draws of them.

    `model` None is the mean over all classifiers; `runs` are those in which the estimate was
    defined.
    """

    n_labeled: int
    method: str
    model: str | None
    metric: str
    group: str | None
    error: float
    bias: float
    coverage: float
    width: float
    runs: int


@dataclass(frozen=True, eq=False, repr=False)
class Backtest(Frozen, Result):
    """What `fewlabels.backtest` returns.

    `rows` are ordered by group, metric, classifier (the mean of several comes first), number of
    labels and method. `truth` are the metrics on all labels; their intervals show how far they may
    be from the population's. `n_runs` of the `n_asked` runs were made.
    """

    _page, _row_fields = "backtest", BacktestRow._fields
    _text_columns = ("model", "group")

    rows: tuple[BacktestRow, ...]
    truth: tuple[Estimate, ...]
    labels: tuple[int, ...]
    methods: tuple[str, ...]
    n_runs: int
    n_asked: int
    seed: int
    confidence_level: float
    estimand: str
    n_items: int
    n_labeled: int
    n_annotated: int
    models: tuple[str, ...]
    classes: tuple[Any, ...]
    positive: str | None
    reading: tuple[str, ...]
    warnings: tuple[str, ...]

    def get(
        self,
        n_labeled: int,
        method: str,
        metric: str,
        model: str | None = None,
        group: Selected = None,
    ) -> BacktestRow:
        """The row of one method and number of labels; `UsageError` if there is none."""
        model = self.models[0] if model is None and len(self.models) == 1 else model
        wanted = (n_labeled, method, model, metric, group_name(group))
        for row in self.rows:
            if row[:5] == wanted:
                return row
        raise UsageError(
            f"no backtest of method {method!r} from {n_labeled} labels by {metric!r}; methods: "
            f"{listed(self.methods)}; labels: {listed(map(str, self.labels))}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The JSON of the command line as a dictionary; NaN and infinities are None."""
        facts = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        out: dict[str, Any] = plain_values(
            {"fewlabels": __version__, "what": "backtest"}
            | facts
            | {
                "method": ", ".join(self.methods),
                "classes": [plain_name(c) for c in self.classes],
                "rows": [row._asdict() for row in self.rows],
                "truth": [row._asdict() for row in self.truth],
            }
        )
        return out


def backtest(
    predictions: Any,
    labels: int | Sequence[int] = (20, 50, 100),
    runs: int = 20,
    *,
    method: str | LabelModel | Sequence[str | LabelModel] = (),
    metrics: Any = None,
    by: str | Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    confidence_level: float = 0.95,
    estimand: Estimand = "sample",
    positive: Any = None,
    columns: Any = None,
    random_state: RandomState = 0,
    workers: int | None = None,
    progress: Progress | None = None,
    y_true: Any = None,
) -> Backtest:
    """Hide all labels but a few, again and again, and say how far off the estimates are.

    Parameters
    ----------
    predictions
        Items with labels: `Predictions`, or the path or frame that `read_predictions` would read.
        Items without one are left out; of more than 5,000 a sample is taken, and `warnings` say so.
    labels
        How many labels to leave, one number or several; fewer than there are.
    runs
        How often to draw them.
    method
        Methods to try beside "auto" and "labeled": names, with settings in brackets
        ("ssme-kde[bandwidth=scott]"), or label models.
    models
        Only these classifiers.
    estimand
        "sample": estimates for these very items, whose truth is known. "population": intervals as
        `fewlabels.estimate` gives them by default, which are for all items alike and so hold the
        truth of these more often than they promise.
    metrics, by, confidence_level, positive, columns, random_state, workers, y_true
        As for `fewlabels.estimate`.
    progress
        Called with (estimates made, estimates in all).

    Raises
    ------
    UsageError, InputError
        One line that says what is wrong and how to mend it.

    Examples
    --------
    >>> import numpy as np
    >>> import fewlabels as fl
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(300) < 0.3
    >>> score = 1 / (1 + np.exp(-rng.normal(3 * truth - 1.5, 1.5)))
    >>> found = fl.backtest(fl.Predictions(score[:, None], truth), 30, runs=3, metrics="accuracy")
    >>> found.get(30, "auto", "accuracy").error < 0.1
    True
    """
    items = predictions_of(predictions, columns, positive, y_true=y_true)
    items = items if models is None else items.select_models(models)
    every = Runs.of(
        items, labels, runs, method, metrics=metrics, by=by, confidence_level=confidence_level,
        estimand=estimand, random_state=random_state, workers=workers,
    )  # fmt: skip
    for _ in every.each(progress):
        pass
    return every.result()


@dataclass
class Runs:
    """The runs of a backtest, one by one, so that an interrupted one has a result."""

    items: Predictions
    labels: tuple[int, ...]
    n_runs: int
    methods: dict[str, str | LabelModel]
    seed: int
    settings: dict[str, Any]
    truth: Estimates
    notes: tuple[str, ...]
    done: list[Floats]
    failures: dict[str, list[str]]

    @classmethod
    def of(
        cls, predictions: Predictions, labels: int | Sequence[int], runs: int, method: Any,
        random_state: RandomState, **settings: Any,
    ) -> Runs:  # fmt: skip
        """Check the arguments of `backtest` and compute the truth; no run is made yet."""
        wanted = [labels] if isinstance(labels, int) else list(labels)
        sizes = tuple(sorted({whole("labels", n, least=2) for n in wanted}))
        seed = seed_of(random_state)
        if not sizes:
            raise UsageError("`labels` must be one number or several; got none")
        if level_of(settings["confidence_level"]) is None:
            raise UsageError("`confidence_level` must be between 0 and 1; got None")
        requested = [method] if isinstance(method, str) or hasattr(method, "fit") else list(method)
        methods = dict(map(_named, [*ALWAYS, *requested]))
        refuse_multiplicity(predictions, "a backtest")
        refuse_strata(predictions, "a backtest")
        labeled = np.flatnonzero(predictions.told)
        if not len(labeled):
            raise InputError(
                "no item has a label, and a backtest hides labels that are known; label some items "
                "drawn at random (`fewlabels label`)"
            )
        if sizes[-1] >= len(labeled):
            smaller = [n for n in sizes if n < len(labeled)] or [max(len(labeled) // 2, 2)]
            raise UsageError(
                f"`labels` must be fewer than the labels there are: {len(labeled):,} items have "
                f"one; got {sizes[-1]:,}: try {','.join(map(str, smaller))}"
            )
        notes = list(predictions.notes)
        if len(labeled) < predictions.n_items:
            notes.append(
                f"{predictions.n_items - len(labeled):,} of {predictions.n_items:,} items have no "
                "label and are left out, as nobody could tell how far off an estimate for them is"
            )
        if len(labeled) > MOST_ITEMS and sizes[-1] < MOST_ITEMS:
            notes.append(
                f"{MOST_ITEMS:,} of {len(labeled):,} labeled items, drawn at random, are used"
            )
            drawn = np.argsort(_uniform(predictions, seed, 0, _SAMPLE)[labeled], kind="stable")
            labeled = np.sort(labeled[drawn[:MOST_ITEMS]])
        items = predictions.take(labeled) if len(labeled) < predictions.n_items else predictions
        with hearing_steps(lambda name: None):
            truth = estimate(items, "labeled", **settings | {"estimand": "population"})
        settings["against"] = truth.against
        return cls(
            items, sizes, whole("runs", runs), methods, seed, settings, truth, tuple(notes), [], {}
        )

    def each(self, progress: Progress | None) -> Iterator[int]:
        """Make the runs, and say after each how many there are."""
        total = self.n_runs * len(self.labels) * len(self.methods)
        progress = progress or silent
        progress(0, total)
        for run in range(self.n_runs):
            order = np.argsort(_uniform(self.items, self.seed, run, _DRAW), kind="stable")
            shape = (len(self.labels), len(self.methods), len(self.truth.rows), 3)
            estimates, cells = np.full(shape, np.nan), np.ndindex(shape[:2])
            # The most labels first: what cannot be done from these cannot be done.
            for made, (size, j) in enumerate(sorted(cells, reverse=True)):
                shown = self.items.revealing(np.sort(order[: self.labels[size]]))
                name = list(self.methods)[j]
                try:
                    estimates[size, j] = self._estimate(shown, self.methods[name], run)
                except FewlabelsError as error:
                    if run == 0 and size == len(self.labels) - 1:
                        raise type(error)(f"method {quoted(name)}: {error}") from None
                    self.failures.setdefault(name, []).append(str(error))
                progress(run * estimates.shape[0] * estimates.shape[1] + made + 1, total)
            self.done.append(estimates)
            yield len(self.done)

    def _estimate(self, shown: Predictions, method: str | LabelModel, run: int) -> Floats:
        """Value, low and high of every row of the truth, (rows, 3)."""
        with hearing_steps(lambda name: None):
            estimates = estimate(shown, method, random_state=self.seed + run, **self.settings)
        by_row = {row[:3]: (row.value, row.low, row.high) for row in estimates.rows}
        return np.array([by_row[row[:3]] for row in self.truth.rows])

    def result(self) -> Backtest:
        """The result of the runs made so far, at least one."""
        truth, notes = self.truth, list(self.notes)
        for name, why in self.failures.items():
            notes.append(f"method {quoted(name)} gave no estimate {len(why):,} times: {why[0]}")
        if len(self.done) < self.n_runs:
            notes.append(f"stopped after {len(self.done):,} of {self.n_runs:,} runs")
        return Backtest(
            tuple(self._rows()), truth.rows, self.labels, tuple(self.methods), len(self.done),
            self.n_runs, self.seed, truth.confidence_level, self.settings["estimand"],
            self.items.n_items, self.items.n_labeled, self.items.n_annotated, truth.models,
            truth.classes, truth.positive, truth.predictions.reading, tuple(dict.fromkeys(notes)),
        )  # fmt: skip

    def _rows(self) -> Iterator[BacktestRow]:
        truth = np.array([row.value for row in self.truth.rows])
        value, low, high = np.moveaxis(np.stack(self.done), -1, 0)  # (R, sizes, methods, rows)
        off, slack = value - truth, _ROUNDING
        inside = ((low - slack <= truth) & (truth <= high + slack)).astype(float)
        inside[np.isnan(off + low + high)] = np.nan
        means = [_mean(array) for array in (np.abs(off), off, inside, high - low)]
        defined = (~np.isnan(off)).sum(axis=0)
        place = {row[:3]: i for i, row in enumerate(self.truth.rows)}
        models = self.truth.models
        for group in self.truth.groups:
            for metric in dict.fromkeys(row.metric for row in self.truth.rows):
                everyone = [place[model, metric, group.group] for model in models]
                columns = {model: [i] for model, i in zip(models, everyone, strict=True)}
                mean = {None: everyone} if len(models) > 1 else {}
                for model, rows in (mean | columns).items():
                    yield from self._rows_of_model(model, metric, group.group, rows, means, defined)

    def _rows_of_model(
        self, model: str | None, metric: str, group: str | None, rows: list[int],
        means: Sequence[Floats], defined: Floats,
    ) -> Iterator[BacktestRow]:  # fmt: skip
        """The rows of one classifier, or the mean of several, by number of labels and method."""
        for size, n_labeled in enumerate(self.labels):
            for j, method in enumerate(self.methods):
                error, bias, coverage, width = (float(_mean(p[size, j, rows])) for p in means)
                yield BacktestRow(
                    n_labeled, method, model, metric, group, error, bias, coverage, width,
                    runs=int(defined[size, j, rows].min()),
                )  # fmt: skip


def _named(method: str | LabelModel) -> tuple[str, str | LabelModel]:
    """A method by the name that tables show."""
    if isinstance(method, str):
        name = method if method == "auto" else canonical(method)
        return name, make(name) if name.endswith("]") else name
    return str(getattr(method, "name", type(method).__name__)), method


def _uniform(items: Predictions, seed: int, stream: int, salt: int) -> Floats:
    """A uniform variable per item, (n,), by its key: the order of the rows does not matter."""
    return uniforms(items.keys, np.array([stream]), salt ^ (seed << 16))[:, 0]


def _mean(values: Floats) -> Floats:
    """Mean over the first axis of what is defined; NaN where nothing is."""
    there = ~np.isnan(values)
    total, n = np.where(there, values, 0.0).sum(axis=0), there.sum(axis=0)
    out: Floats = np.divide(total, n, out=np.full(np.shape(n), np.nan), where=n > 0)
    return out
