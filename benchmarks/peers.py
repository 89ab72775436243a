"""Accuracy and its 90% interval from few labels, by fewlabels and by other packages.

    python -m benchmarks peers --data DIR [--out FILE] [--runs 200]

Every package gets the items and labels that the study draws: 1,000 unlabeled ones (half of a small
set) and 10, 20, 50 or 100 labels, on the real sets and on eight made ones. What fewlabels says is
read from the study's cells (FILE), if there are any: seed and sizes are the study's then, and
`auto` and `labeled` have the runs that it has so far. Writes peers.md beside FILE, with which the
study's page ends. The packages are in the dependency group `crosscheck`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import ppi_py
import scorio.eval
import truescore
from scipy.special import expit, logit
from scipy.stats import binomtest
from sklearn.isotonic import isotonic_regression

from bench.world import mean_of
from runs import DATA, ROOT, WORKERS, command_line, of_cells, read_lines, run_missing, table
from study.page import either
from study.sets import chosen as chosen_sets
from study.sets import load
from study.statistics import Figure, coverage, interval_score, mean, number
from study.trial import UNLABELED, items_of, unlabeled_of
from study.trial import table as trial_table

Floats = np.ndarray
_FAMILIES = "classification quantiles blobs shapes friedman manifold digits wine"
MADE = tuple(f"{family}-9000" for family in _FAMILIES.split())
SIZES = (10, 20, 50, 100)
LEVEL = 0.9
ALPHA = 1 - LEVEL
_BOOTSTRAPS, _ISOTONIC_BOOTSTRAPS, _ISOTONIC_EVERY = 100, 40, 4
_PACKAGES = ("ppi-python", "truescore", "scorio", "scikit-learn")
_FIGURES = ("error", "coverage", "width", "score", "failed", "empty", "outside")


class Judged(NamedTuple):
    """One classifier in one run.

    `correct` (n_l,) says whether it is right on the labeled items; `own_*` its probability of the
    class it chose, and `all_*` that of the mean of all classifiers, on labeled and other items.
    """

    correct: Floats
    own: Floats
    own_other: Floats
    all: Floats
    all_other: Floats


Answer = tuple[float, float, float]
Peer = Callable[[Judged, np.random.Generator], Answer]


def _ppi(y: Floats, f: Floats, other: Floats) -> Answer:
    """PPI++ with probabilities of being right on the labeled and on the other items."""
    value = ppi_py.ppi_mean_pointestimate(y, f, other)
    return tuple(float(np.squeeze(v)) for v in (value, *ppi_py.ppi_mean_ci(y, f, other, ALPHA)))


def truescore_ppi(j: Judged, rng: np.random.Generator, rogan: bool = False) -> Answer:
    """PPI++ with a fallback to Wilson's width; the mean of all classifiers is the judge.

    Or Rogan and Gladen's correction; the judge says right where all think 1/2 at least.
    """
    f, labels, ask = np.concatenate([j.all, j.all_other]), j.correct, truescore.ppi_estimate
    if rogan:
        f, labels, ask = (f >= 0.5).astype(int), labels.astype(int), truescore.rogan_gladen_estimate
    found = ask(f, labels, np.arange(len(labels)), alpha=ALPHA)
    return found.point, found.low, found.high


def scorio_bayes(j: Judged, rng: np.random.Generator) -> Answer:
    """The Bayesian mean of the labeled items with a uniform prior."""
    # One question with as many trials as there are labels: its accuracy has one prior.
    found = scorio.eval.bayes_ci(j.correct.astype(int)[None, :], confidence=LEVEL)
    return float(found[0]), float(found[2]), float(found[3])


def wilson(j: Judged, rng: np.random.Generator) -> Answer:
    """Wilson's interval of the labeled items."""
    n, p = len(j.correct), float(j.correct.mean())
    ends = binomtest(int(j.correct.sum()), n).proportion_ci(LEVEL, "wilson")
    return p, ends.low, ends.high


def bootstrap(j: Judged, rng: np.random.Generator) -> Answer:
    """Percentiles of the accuracy of resampled labeled items.

    `sklearn.utils.resample` and `accuracy_score`, 1,000 times: their counts are binomial.
    """
    n, p = len(j.correct), float(j.correct.mean())
    return _percentiles(p, rng.binomial(n, p, 1000) / n)


def _percentiles(value: float, drawn: Any) -> Answer:
    """A value, and the interval of a bootstrap."""
    low, high = np.quantile(drawn, [ALPHA / 2, 1 - ALPHA / 2])
    return float(value), float(low), float(high)


def cbpe_platt(j: Judged, rng: np.random.Generator) -> Answer:
    """CBPE's idea with Platt's map: calibrate confidence on the labels, then take its mean."""
    x, other = _log_odds(j.own), _log_odds(j.own_other)
    # A map of 1,000 items is read off at 100 of their quantiles: its mean differs by 1e-4.
    other = np.quantile(other, (np.arange(100) + 0.5) / 100)
    n = len(x)
    weight = np.vstack([np.ones(n), rng.multinomial(n, np.full(n, 1 / n), _BOOTSTRAPS)])
    a, b = _platt(x, j.correct, weight)
    drawn = expit(a[:, None] + b[:, None] * other).mean(axis=1)
    return _percentiles(drawn[0], drawn[1:])


def _log_odds(p: Floats) -> Floats:
    return logit(np.clip(p, 1e-4, 1 - 1e-4))


def _platt(x: Floats, y: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Intercepts and slopes (B,) of logistic regressions, by Newton's method.

    Platt's targets (Platt 1999, equation 2) keep them finite where all labels agree.
    """
    total, ones = weight.sum(axis=1), weight @ y
    high, low = (ones + 1) / (ones + 2), 1 / (total - ones + 2)
    target = np.where(y > 0.5, high[:, None], low[:, None])
    # From a flat map Newton's steps need no damping; from a steep one they overshoot.
    a, b = np.zeros(len(weight)), np.zeros(len(weight))
    for _ in range(12):
        p = expit(a[:, None] + b[:, None] * x)
        g, h = weight * (p - target), weight * p * (1 - p)
        g0, g1 = g.sum(axis=1) + 1e-3 * a, g @ x + 1e-3 * b
        h0, h1, h2 = h.sum(axis=1) + 1e-3, h @ x, h @ (x * x) + 1e-3
        det = h0 * h2 - h1 * h1
        a = a - (h2 * g0 - h1 * g1) / det
        b = b - (h0 * g1 - h1 * g0) / det
    return a, b


def cbpe_isotonic(j: Judged, rng: np.random.Generator) -> Answer:
    """CBPE's idea with isotonic regression, which NannyML takes."""
    n = len(j.correct)
    # `IsotonicRegression` clipped at the ends, less the checks of its inputs.
    x, place = np.unique(j.own, return_inverse=True)

    def once(weight: Floats) -> float:
        total = np.bincount(place, weight)
        there = total > 0
        y = np.bincount(place, weight * j.correct)[there] / total[there]
        fitted = isotonic_regression(y, sample_weight=total[there])
        return float(np.interp(j.own_other, x[there], fitted).mean())

    drawn = [once(w) for w in rng.multinomial(n, np.full(n, 1 / n), _ISOTONIC_BOOTSTRAPS)]
    return _percentiles(once(np.ones(n)), drawn)


PEERS: dict[str, Peer] = {
    "Wilson, labels alone": wilson,
    "scikit-learn bootstrap, labels alone": bootstrap,
    "scorio, labels alone": scorio_bayes,
    "ppi-python, own confidence": lambda j, rng: _ppi(j.correct, j.own, j.own_other),
    "ppi-python, mean of all": lambda j, rng: _ppi(j.correct, j.all, j.all_other),
    "truescore PPI++, mean of all": truescore_ppi,
    "truescore Rogan-Gladen, mean of all": partial(truescore_ppi, rogan=True),
    "CBPE's idea, Platt": cbpe_platt,
    "CBPE's idea, isotonic": cbpe_isotonic,
}
OURS = ("auto", "labeled")


def run_cell(cell: dict[str, Any], data: Path) -> dict[str, Any]:
    """Figures of every peer in every run on a set, as means over the classifiers."""
    chosen = load(cell["set"], data)
    n_unlabeled = unlabeled_of(cell["n_unlabeled"], chosen.predictions.n_items)
    rows = []
    for run in range(cell["runs"]):
        items, labeled = items_of(chosen, cell["n_labeled"], n_unlabeled, run, cell["seed"])
        judged = list(_judged(items.probabilities, items.labels, labeled))
        rng = np.random.default_rng([cell["n_labeled"], run])
        for peer, ask in PEERS.items():
            if ask is not cbpe_isotonic or run % _ISOTONIC_EVERY == 0:
                answers = np.array([_answer(ask, j, rng) for j in judged])
                rows.append([peer, run, *_measured(answers, chosen.truth[:, 0])])
    return {"rows": rows}


def _judged(p: Floats, labels: np.ndarray, labeled: np.ndarray) -> Iterator[Judged]:
    pooled = p.mean(axis=1)
    rows = np.arange(len(p))
    for m in range(p.shape[1]):
        choice = p[:, m].argmax(axis=1)
        own, everyone = p[rows, m, choice], pooled[rows, choice]
        right = (choice == labels)[labeled].astype(float)
        yield Judged(right, own[labeled], own[~labeled], everyone[labeled], everyone[~labeled])


def _answer(ask: Peer, judged: Judged, rng: np.random.Generator) -> Answer:
    """NaN where a package raises: that is one of the things that are counted."""
    try:
        with np.errstate(all="ignore"):
            return ask(judged, rng)
    except (ValueError, ZeroDivisionError, FloatingPointError, np.linalg.LinAlgError):
        return float("nan"), float("nan"), float("nan")


def _measured(answers: Floats, truth: Floats) -> list[float]:
    """Means over the classifiers; those without an answer count as failed, and nowhere else."""
    good = np.isfinite(answers).all(axis=1)
    (value, low, high), truth, failed = answers[good].T, truth[good], float(1 - good.mean())
    # Up to the last bits: a difference of two equal sums is not always 0.
    parts = (
        np.abs(value - truth), (low <= truth) & (truth <= high), high - low,
        interval_score(low, high, truth, LEVEL),
        high - low < 1e-9, (low < -1e-9) | (high > 1 + 1e-9),
    )  # fmt: skip
    means = [mean_of(x) for x in parts]
    return [*means[:4], failed, *means[4:]]


def table_of(lines: list[dict[str, Any]]) -> pd.DataFrame:
    """A row per set, number of labels, peer and run."""
    rows = [(line["set"], line["n_labeled"], *row) for line in lines for row in line["rows"]]
    return pd.DataFrame(rows, columns=["set", "n_labeled", "peer", "run", *_FIGURES])


def from_study(rows: pd.DataFrame, sets: Sequence[str], runs: int) -> pd.DataFrame:
    """The same of fewlabels' own methods, from the rows of the study."""
    own = rows[(rows.metric == "accuracy") & rows.method.isin(OURS) & (rows.run < runs)]
    own = own[own["set"].isin(sets) & own.n_labeled.isin(SIZES)]
    own = own.rename(columns={"method": "peer"}).rename(columns=lambda c: c.removesuffix("_0.9"))
    # Intervals are cut at the bounds of the metric, and an empty one has width 0.
    empty = (own.width < 1e-9).astype(float).where(own.width.notna())
    own = own.assign(empty=empty, outside=(0 * own.width).where(own.width.notna()))
    return own[["set", "n_labeled", "peer", "run", *_FIGURES]]


def page(rows: pd.DataFrame, runs: int, seconds: float) -> str:
    """A section of the study's page."""
    packages = (f"{name} {version(name)}" for name in _PACKAGES)
    parts = [
        "## Peers",
        f"Accuracy and its 90% interval, {runs} runs ({-(-runs // _ISOTONIC_EVERY)} of isotonic "
        f"CBPE), on the items of the study; {', '.join(packages)}. `auto` and "
        "`labeled` have the runs that the study has so far, which may be fewer, and differ among "
        "sets; the table says how many. Means over classifiers, runs and sets; ± is over runs, "
        "within sets. Error, width and interval score are in percentage points, the rest in "
        "percent of the answers: failed (an exception or no number), empty (an interval of width "
        "0), outside (it reaches below 0 or above 1).",
        "PPI++ is given the classifier's own confidence, or what the mean of all classifiers "
        "thinks of its choice. CBPE's idea is NannyML's: calibrate confidence on the labels, and "
        "take its mean over all items; the interval is a bootstrap of the labels. NannyML 0.13.1 "
        "itself installs on Python 3.11, but is not asked: it works on chunks of a stream after a "
        "labeled reference period, and its bands are of the sampling of a chunk.",
    ]
    head = ["method", "n_l", "runs", "error", "coverage", "least", *_FIGURES[2:]]
    made = rows["set"].isin(MADE)
    for title, own in (("Real sets", rows[~made]), ("Made sets", rows[made])):
        body = [
            _row(cell, peer, size)
            for peer in (*OURS, *PEERS) for size in SIZES
            if len(cell := own[(own.peer == peer) & (own.n_labeled == size)])
        ]  # fmt: skip
        if body:
            names = ", ".join(dict.fromkeys(own["set"]))
            parts += [f"**{title}**: {names}.", table(head, body)]
    return "\n\n".join([*parts, f"Computed in {seconds:.0f} processor seconds.\n"])


def _row(own: pd.DataFrame, peer: str, size: int) -> list[Any]:
    """Each figure as a mean over sets of means over runs, with the standard error of that."""
    texts: list[Any] = [peer, size, either(own.groupby("set").run.nunique())]
    for figure in _FIGURES:
        average = coverage if figure == "coverage" else mean
        found = [f for _, x in own.groupby("set", sort=False)[figure] if (f := average(x)).n]
        value = float(np.mean([f.value for f in found])) if found else np.nan
        se = float(np.sqrt(np.sum([f.se**2 for f in found])) / len(found)) if found else np.nan
        texts.append(number(Figure(value, se, 1), 100, 1) if found else "")
        if figure == "coverage":
            texts.append(f"{100 * min(f.value for f in found):.0f}" if found else "")
    return texts


def main() -> None:
    """Ask every peer on every set, on all processors."""
    parser = command_line(__doc__, data=DATA, out=ROOT / "build" / "study.jsonl", runs=200)
    parser.add_argument("--sets", nargs="*", help="names; default: real ones and eight made ones")
    given = parser.parse_args()
    ours = read_lines(given.out)
    names = chosen_sets(given.sets or ["real", *MADE], given.data)
    there = {line["set"] for line in ours}
    names = [name for name in names if given.sets or not ours or name in there]
    seed = ours[0]["seed"] if ours else 0
    n_unlabeled = ours[0]["n_unlabeled"] if ours else UNLABELED
    cells = [
        {"set": name, "n_labeled": n, "n_unlabeled": n_unlabeled, "runs": given.runs, "seed": seed}
        for name in names for n in SIZES if not ours or n in {line["n_labeled"] for line in ours}
    ]  # fmt: skip
    run = partial(run_cell, data=given.data.resolve())
    kept = run_missing(given.out.with_name("peers.jsonl"), run, cells, WORKERS)
    lines = of_cells(kept, cells)
    rows = table_of(lines)
    if ours:
        rows = pd.concat([from_study(trial_table(ours), names, given.runs), rows])
    text = page(rows, given.runs, sum(line["seconds"] for line in lines))
    given.out.with_name("peers.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
