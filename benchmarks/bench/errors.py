"""Estimates to errors run by run, and to what a table says of a method in a setting.

Errors are averaged over the classifiers within a run, then over runs; where that of some classifier
is unknown the run counts as missing, with the reason. A setting is what one column of a table holds
fixed: `SETTING`, and the classifier where each has a column of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from bench.protocol import FLOOR, REFERENCE
from bench.results import Results
from fewlabels import Status
from fewlabels.metrics import ALIASES, METRICS

PLACE = ["dataset", "factor", "level", "n_labeled", "n_unlabeled"]
SETTING = [*PLACE, "metric", "group"]
NUMBERS = ["error", "signed", "covered", "width"]
CURVE = "curve"
"""Factor of the rows that belong to the labels-only curve and to no table."""

TRUTH_UNDEFINED = "the true value is undefined on the half that it is taken from"
NOT_RUN = "the run is missing"
INCOMPLETE = "not every classifier has an estimate"
_WORDS = {s.value: s.message for s in Status} | {
    Status.NOT_APPLICABLE.value: "the method or a classifier does not provide this metric"
}
RESAMPLES = 2000
FEWEST_RUNS = 5
"""Of fewer runs a bootstrap has too few different resamples for an interval."""

# What sharpening does not change, as it keeps the order of two classes' probabilities.
_OF_ORDER = frozenset({"accuracy", "error_rate", "roc_auc", "average_precision"})


def by_run(rows: pd.DataFrame, *, each_model: bool = False) -> pd.DataFrame:
    """One row per setting, method and run: `NUMBERS`, seconds, n_classifiers and reason.

    Numbers are means over the classifiers (`each_model`: of each) and in the metric's own unit,
    NaN where not known.
    """
    setting = [*SETTING, *(["model"] if each_model else [])]
    key = [*setting, "method", "run"]
    words = rows["status"].map(_WORDS).fillna(rows["status"])
    rows = rows.assign(reason=rows["message"].where(rows["message"] != "", words))
    known = rows["model"] != ""
    lost = rows.loc[~known, [*PLACE, "method", "run", "reason"]]
    own = rows[known].sort_values(list(dict.fromkeys([*key, "model"])))
    gap, width = own["estimate"] - own["truth"], own["high"] - own["low"]
    held = (own["low"] <= own["truth"]) & (own["truth"] <= own["high"])
    own = own.assign(
        error=gap.abs(), signed=gap, width=width,
        reason=own["reason"].where(own["truth"].notna(), TRUTH_UNDEFINED).where(gap.isna(), None),
        covered=held.astype(float).where(width.notna() & own["truth"].notna()),
    )  # fmt: skip
    grouped = own.groupby(key)
    found = grouped[NUMBERS].mean().where(grouped[NUMBERS].count().eq(grouped.size(), axis=0))
    found = found.assign(
        seconds=grouped["seconds"].first(), reason=grouped["reason"].first(),
        n_classifiers=grouped.size(),
    )  # fmt: skip
    # An average over fewer classifiers than elsewhere is none.
    most = found.groupby(level=setting)["n_classifiers"].transform("max")
    fewer = found["n_classifiers"] < most
    found[NUMBERS] = found[NUMBERS].mask(fewer)
    found["reason"] = found["reason"].where(found["reason"].notna() | ~fewer, INCOMPLETE)
    found = found.reset_index()
    lost = found[setting].drop_duplicates().merge(lost, on=PLACE)
    found = pd.concat([found, lost], ignore_index=True)
    # Every method has every run of its setting.
    methods = found[[*setting, "method"]].drop_duplicates()
    grid = methods.merge(found[[*setting, "run"]].drop_duplicates(), on=setting)
    found = grid.merge(found, on=key, how="left", indicator=True)
    absent = found.pop("_merge") == "left_only"
    found["reason"] = found["reason"].where(~absent, NOT_RUN)
    return found.assign(n_classifiers=found.groupby(setting)["n_classifiers"].transform("max"))


def spread(values: Any) -> dict[str, Any]:
    """Mean, sd (ddof 1) and standard error over the known values, and how many there are."""
    known = pd.Series(values, dtype=float).dropna()
    sd, n = known.std(ddof=1), len(known)
    return {"mean": known.mean(), "sd": sd, "se": sd / math.sqrt(max(n, 1)), "n_runs": n}


def coverage_error(covered: np.ndarray, n_classifiers: int) -> float:
    """Standard error of a coverage, above nothing even where every interval covers, or none does.

    The larger of that over runs, to which the classifiers of a run are one observation, and that
    of Agresti and Coull (1998), sqrt(p (1 - p) / n) with two successes and two failures added to
    the runs x classifiers intervals.
    """
    known = covered[~np.isnan(covered)]
    if not len(known):
        return math.nan
    n = len(known) * n_classifiers + 4
    p = (float(known.sum()) * n_classifiers + 2) / n
    return float(np.nanmax([math.sqrt(p * (1 - p) / n), spread(known)["se"]]))


def ratio(errors: np.ndarray, reference: np.ndarray) -> dict[str, float]:
    """Ratio of mean errors over the runs that both know, with a 95% bootstrap interval."""
    found = dict.fromkeys(("rmae", "rmae_low", "rmae_high"), math.nan)
    both = ~np.isnan(errors) & ~np.isnan(reference)
    n = int(np.count_nonzero(both))
    if not n or reference[both].mean() == 0:
        return found
    found["rmae"] = float(errors[both].mean() / reference[both].mean())
    if n >= FEWEST_RUNS:
        above, below = (resamples(n) @ part[both] for part in (errors, reference))
        # A resample of runs in which Labeled happens to make no error has no ratio.
        ends = np.quantile(above[below > 0] / below[below > 0], [0.025, 0.975])
        found["rmae_low"], found["rmae_high"] = ends.tolist()
    return found


@lru_cache(maxsize=8)
def resamples(n: int) -> np.ndarray:
    """How often each of n runs is drawn, (RESAMPLES, n): the same for all, so pairs stay pairs."""
    return np.random.default_rng([RESAMPLES, n]).multinomial(n, np.full(n, 1 / n), RESAMPLES) / n


def best(errors: pd.DataFrame) -> pd.Series:
    """Which methods no other one beats by more than one paired standard error.

    The leader has the least mean error of those with the most known errors: a method that fails on
    hard runs must not win by it. One method alone is not the best of anything.

    Parameters
    ----------
    errors
        A row per method, NaN where not known; columns (part, run), parts being groups whose mean
        is compared, or (run,). The floor takes no part.
    """
    if errors.columns.nlevels == 1:
        errors = pd.concat({"": errors}, axis=1)
    marks = pd.Series(False, index=errors.index)
    entered = errors[errors.notna().any(axis=1) & (errors.index != FLOOR)]
    if len(entered) < 2:
        return marks
    count = entered.notna().sum(axis=1)
    means = entered.T.groupby(level=0).mean().mean()
    leader = means[count == count.max()].idxmin()
    for method, own in entered.iterrows():
        # The mean over runs of the paired gaps, each averaged over the parts that both know.
        paired = spread((own - entered.loc[leader]).groupby(level=1).mean())
        level = paired["mean"] <= np.nan_to_num(paired["se"])
        marks[method] = method == leader or bool(level)
    return marks


NO_SIZE = {"ess": math.nan, "ess_bound": "", "ess_low": math.nan, "ess_high": math.nan}


def effective_size(curve: pd.DataFrame, error: float) -> dict[str, Any]:
    """The number of labels whose mean error is nearest; the smallest of several.

    ess_bound is ">" where the error is below the whole curve and "<" where it is above it, and ess
    is then the end of the curve. ess_low and ess_high are the least and greatest size whose error
    is within one standard error (of the curve) of the one given: wide where the curve is flat.

    Parameters
    ----------
    curve
        One of `Errors.curves`: mean and se by ascending size.
    """
    known = curve[curve["mean"].notna()]
    found = dict(NO_SIZE)
    if known.empty or math.isnan(error):
        return found
    sizes, gaps = known["n_labeled"], (known["mean"] - error).abs()
    near = sizes[gaps <= known["se"].fillna(0)]
    if len(near):
        found |= {"ess_low": near.iloc[0], "ess_high": near.iloc[-1]}
    if error < known["mean"].min():
        return found | {"ess": sizes.iloc[-1], "ess_bound": ">"}
    if error > known["mean"].max():
        return found | {"ess": sizes.iloc[0], "ess_bound": "<"}
    return found | {"ess": sizes[gaps.idxmin()]}


def rank_correlation(x: pd.Series, y: pd.Series) -> float:
    """Spearman's coefficient over the points where both are known; NaN where it has no meaning."""
    both = pd.DataFrame({"x": np.asarray(x), "y": np.asarray(y)}, dtype=float).dropna()
    if len(both) < 3 or both.nunique().min() < 2:
        return math.nan
    return float(spearmanr(both["x"], both["y"]).statistic)


def scale(metric: str) -> float:
    """100 where errors are in percentage points: metrics that lie between 0 and 1."""
    known = METRICS.get(ALIASES.get(metric, metric))
    return 100.0 if known is None or known.bounds == (0.0, 1.0) else 1.0


def natural(text: str) -> tuple[Any, ...]:
    """Sort key by which 9 stands before 10, "<30" before "30 to <40" and ">=60" behind them."""
    bound = re.match(r"(<|>=?)?\s*(\d+(?:\.\d+)?)", text)
    parts = re.split(r"(\d+(?:\.\d+)?)", text)
    rest = [(0, float(p), "") if k % 2 else (1, 0.0, p) for k, p in enumerate(parts) if p]
    if bound is None:
        return (1, 0.0, 0, rest)
    return (0, float(bound[2]), {"<": -1, None: 0}.get(bound[1], 1), rest)


class Errors:
    """The errors of a benchmark's results, in the order in which they are shown."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.rows, self.traits = results.rows, results.traits
        self.datasets = [dataset.name for dataset in results.datasets]
        self.metrics = list(results.protocol.metrics)
        there = [*results.protocol.methods, *sorted({*self.rows["method"]})]
        order = [m for m in dict.fromkeys(there) if m != FLOOR] + [FLOOR]
        self.methods = [m for m in order if m in {*self.rows["method"]}]
        """As the protocol has them, others behind, and the floor last."""

    @cached_property
    def runs(self) -> pd.DataFrame:
        """`by_run` of all rows but those of the curve, in the order shown."""
        return self._ordered(by_run(self.rows[self.rows["factor"] != CURVE]))

    @cached_property
    def curves(self) -> pd.DataFrame:
        """Mean, se and n_runs of the labels alone by dataset, metric, group and n_labeled."""
        keys = ["dataset", "metric", "group", "n_labeled"]
        errors = by_run(self.rows[self.rows["factor"] == CURVE]).groupby(keys)["error"]
        found = {"mean": errors.mean(), "se": errors.sem(), "n_runs": errors.count()}
        return pd.DataFrame(found).reset_index()

    def curve(self, setting: Mapping[str, Any]) -> pd.DataFrame | None:
        """The curve that holds for a setting: that of the same classifiers, unchanged."""
        factor, metric = setting["factor"], setting["metric"]
        ordered = factor == "sharpness" and ALIASES.get(metric, metric) in _OF_ORDER
        found = self.curves
        for key in ("dataset", "metric", "group"):
            found = found[found[key] == setting[key]]
        return found if len(found) and (ordered or factor in ("", "labels")) else None

    @cached_property
    def cells(self) -> pd.DataFrame:
        """A row per setting and method, of the average over the classifiers; see `summary`."""
        return self._cells(self.runs, SETTING)

    @property
    def of_all(self) -> pd.DataFrame:
        """The cells of all items."""
        return self.cells[self.cells["group"] == ""]

    @cached_property
    def cells_of_models(self) -> pd.DataFrame:
        """A row per setting, classifier and method of all items, without effective sizes."""
        rows = self.rows
        rows = rows[((rows["group"] == "") | (rows["model"] == "")) & (rows["factor"] != CURVE)]
        return self._cells(self._ordered(by_run(rows, each_model=True)), [*SETTING, "model"])

    def _cells(self, runs: pd.DataFrame, setting: list[str]) -> pd.DataFrame:
        parts = []
        for key, part in runs.groupby(setting, sort=False):
            place = dict(zip(setting, key, strict=True))
            curve = None if "model" in place else self.curve(place)
            parts.append(summary(part, place, curve).assign(**place))
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=setting)

    def _ordered(self, runs: pd.DataFrame) -> pd.DataFrame:
        """Rows by data set, level, metric, group, size, classifier, method and run."""
        as_listed = {"dataset": self.datasets, "metric": self.metrics, "method": self.methods}
        keys: dict[str, Any] = {
            "level": natural, "group": lambda v: (v.partition("=")[0], natural(v.partition("=")[2]))
        }  # fmt: skip
        ranks = {}
        for name in ("dataset", "factor", "level", "n_unlabeled", "metric", "group", "n_labeled",
                     "model", "method", "run"):  # fmt: skip
            if name in runs:
                order = as_listed.get(name) or sorted(runs[name].unique(), key=keys.get(name))
                ranks[name] = runs[name].map({value: k for k, value in enumerate(order)})
        index = pd.DataFrame(ranks).sort_values(list(ranks)).index
        return runs.loc[index].reset_index(drop=True)


def summary(
    runs: pd.DataFrame, setting: Mapping[str, Any], curve: pd.DataFrame | None
) -> pd.DataFrame:
    """A row per method of one setting; errors, bias and width in points where these are shares.

    mean, sd (ddof 1) and se over the runs in which the error is known; bias, the mean signed error;
    rmae, the ratio of mean errors to Labeled's on the runs that both know, with a paired bootstrap
    interval over runs; ess, the effective size; coverage and width of intervals; seconds per run;
    n_runs of n_of; reasons, how many runs are missing by why; best, whether no method is better by
    more than one paired standard error. Unknown numbers are NaN. The effective size of Labeled is
    its own number of labels: read from the curve it would be that and noise.
    """
    unit = scale(setting["metric"])
    wide = runs.pivot(index="method", columns="run", values="error")
    marks = best(wide)
    labeled = wide.reindex([REFERENCE]).to_numpy()[0]
    found = []
    for method, own in runs.groupby("method", sort=False):
        errors, covered = wide.loc[method].to_numpy(), own["covered"].to_numpy(dtype=float)
        cell: dict[str, Any] = {
            "method": method, **spread(errors * unit), "bias": own["signed"].mean() * unit,
            "n_of": wide.shape[1], "coverage": own["covered"].mean(),
            "coverage_se": coverage_error(covered, int(np.nan_to_num(own["n_classifiers"].max()))),
            "width": own["width"].mean() * unit, "seconds": own["seconds"].mean(),
            "reasons": own["reason"].value_counts().sort_index().to_dict(),
            "best": bool(marks[method]), **ratio(errors, labeled),
        }  # fmt: skip
        size = NO_SIZE if curve is None else effective_size(curve, cell["mean"] / unit)
        if method == REFERENCE and not math.isnan(size["ess"]):
            size = {**NO_SIZE, "ess": setting["n_labeled"]}
        found.append(cell | size)
    return pd.DataFrame(found)
