"""Accuracy and its 90% interval from few labels, by fewlabels and by other packages.

    python benchmarks/peers.py --data DIR --out DIR [--runs 200]

Every package gets the items and labels that the study draws (`benchmarks/study.py`): 1,000
unlabeled ones (half of a small set) and 10, 20, 50 or 100 labels, on the real sets and on eight
made ones. What fewlabels says is read from the study's folder, if it holds one: seed and sizes are
the study's then, and `auto` and `labeled` have the runs that it has so far. Writes peers.md and
peers.json there; the study's page ends with the former. The packages are in the dependency group
`crosscheck`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import ppi_py
import scorio.eval
import truescore
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.isotonic import isotonic_regression

import study
from fewlabels.errors import FewlabelsError, UsageError, unknown
from fewlabels.kernels.arrays import Floats
from runs import parser as command_line
from study.heading import either
from study.page import number
from study.protocol import Study
from study.results import Place, StudyResults
from study.sets import known_sets
from study.statistics import coverage, interval_score, mean
from study.trial import Bench

ROOT = Path(__file__).resolve().parents[1]
MADE = tuple(
    f"{family}-9000"
    for family in (
        "classification", "quantiles", "blobs", "shapes", "friedman", "manifold", "digits", "wine",
    )
)  # fmt: skip
SIZES = (10, 20, 50, 100)
LEVEL = 0.9
ALPHA = 1 - LEVEL
_BOOTSTRAPS, _ISOTONIC_BOOTSTRAPS, _ISOTONIC_EVERY = 100, 40, 4
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


def ppi_own(j: Judged, rng: np.random.Generator) -> Answer:
    """PPI++ with the classifier's own confidence."""
    return _ppi(j.correct, j.own, j.own_other)


def ppi_all(j: Judged, rng: np.random.Generator) -> Answer:
    """PPI++ with what the mean of all classifiers thinks of its choice."""
    return _ppi(j.correct, j.all, j.all_other)


def _ppi(y: Floats, f: Floats, other: Floats) -> Answer:
    low, high = ppi_py.ppi_mean_ci(y, f, other, alpha=ALPHA)
    value = ppi_py.ppi_mean_pointestimate(y, f, other)
    return float(np.squeeze(value)), float(np.squeeze(low)), float(np.squeeze(high))


def truescore_ppi(j: Judged, rng: np.random.Generator) -> Answer:
    """PPI++ with a fallback to Wilson's width; the mean of all classifiers is the judge."""
    f = np.concatenate([j.all, j.all_other])
    found = truescore.ppi_estimate(f, j.correct, np.arange(len(j.correct)), alpha=ALPHA)
    return found.point, found.low, found.high


def truescore_rogan(j: Judged, rng: np.random.Generator) -> Answer:
    """Rogan and Gladen's correction; the judge says right where all think 1/2 at least."""
    f = (np.concatenate([j.all, j.all_other]) >= 0.5).astype(int)
    found = truescore.rogan_gladen_estimate(
        f, j.correct.astype(int), np.arange(len(j.correct)), alpha=ALPHA
    )
    return found.point, found.low, found.high


def scorio_bayes(j: Judged, rng: np.random.Generator) -> Answer:
    """The Bayesian mean of the labeled items with a uniform prior."""
    # One question with as many trials as there are labels: its accuracy has one prior.
    found = scorio.eval.bayes_ci(j.correct.astype(int)[None, :], confidence=LEVEL)
    return float(found[0]), float(found[2]), float(found[3])


def wilson(j: Judged, rng: np.random.Generator) -> Answer:
    """Wilson's interval of the labeled items."""
    n, p, z = len(j.correct), float(j.correct.mean()), float(norm.ppf(1 - ALPHA / 2))
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return p, middle - half, middle + half


def bootstrap(j: Judged, rng: np.random.Generator) -> Answer:
    """Percentiles of the accuracy of resampled labeled items.

    `sklearn.utils.resample` and `accuracy_score`, 1,000 times: their counts are binomial.
    """
    n, p = len(j.correct), float(j.correct.mean())
    low, high = np.quantile(rng.binomial(n, p, 1000) / n, [ALPHA / 2, 1 - ALPHA / 2])
    return p, float(low), float(high)


def cbpe_platt(j: Judged, rng: np.random.Generator) -> Answer:
    """CBPE's idea with Platt's map: calibrate confidence on the labels, then take its mean."""
    x, other = _log_odds(j.own), _log_odds(j.own_other)
    # A map of 1,000 items is read off at 100 of their quantiles: its mean differs by 1e-4.
    other = np.quantile(other, (np.arange(100) + 0.5) / 100)
    n = len(x)
    weight = np.vstack([np.ones(n), rng.multinomial(n, np.full(n, 1 / n), _BOOTSTRAPS)])
    a, b = _platt(x, j.correct, weight)
    drawn = expit(a[:, None] + b[:, None] * other).mean(axis=1)
    low, high = np.quantile(drawn[1:], [ALPHA / 2, 1 - ALPHA / 2])
    return float(drawn[0]), float(low), float(high)


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
    low, high = np.quantile(drawn, [ALPHA / 2, 1 - ALPHA / 2])
    return once(np.ones(n)), float(low), float(high)


PEERS: dict[str, Peer] = {
    "Wilson, labels alone": wilson,
    "scikit-learn bootstrap, labels alone": bootstrap,
    "scorio, labels alone": scorio_bayes,
    "ppi-python, own confidence": ppi_own,
    "ppi-python, mean of all": ppi_all,
    "truescore PPI++, mean of all": truescore_ppi,
    "truescore Rogan-Gladen, mean of all": truescore_rogan,
    "CBPE's idea, Platt": cbpe_platt,
    "CBPE's idea, isotonic": cbpe_isotonic,
}
OURS = ("auto", "labeled")


# --- runs -----------------------------------------------------------------------------------------


def sizes_of(design: Study) -> tuple[int, ...]:
    """Numbers of labels where peers can stand beside what a study found.

    Raises
    ------
    UsageError
        If the study has none of them.
    """
    sizes = tuple(size for size in SIZES if size in design.n_labeled)
    if not sizes:
        raise UsageError(
            f"the study has {', '.join(map(str, design.n_labeled))} labels, and peers are asked "
            f"with {', '.join(map(str, SIZES))}; name another `--out`"
        )
    return sizes


def run_set(
    name: str, design: Study, data: tuple[str, ...], folder: Path, runs: int
) -> dict[str, Floats]:
    """Figures (sizes, runs, figures) of every peer on a set; NaN where it was not asked."""
    bench = Bench(design, data, folder / "sets")
    chosen = bench.set_of(name)
    truth = chosen.truth[:, 0]
    n_unlabeled = design.usual(chosen.predictions.n_items)
    sizes = sizes_of(design)
    out = {peer: np.full((len(sizes), runs, len(_FIGURES)), np.nan) for peer in PEERS}
    for s, size in enumerate(sizes):
        for run in range(runs):
            items, labeled = bench.items(chosen, size, n_unlabeled, run)
            judged = list(_judged(items.probabilities, items.labels, labeled))
            rng = np.random.default_rng([size, run])
            for peer, ask in PEERS.items():
                if ask is not cbpe_isotonic or run % _ISOTONIC_EVERY == 0:
                    answers = np.array([_answer(ask, j, rng) for j in judged])
                    out[peer][s, run] = _measured(answers, truth)
    return out


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


def _measured(answers: Floats, truth: Floats) -> Floats:
    """Means over the classifiers; those without an answer count as failed, and nowhere else."""
    value, low, high = answers.T
    good = np.isfinite(answers).all(axis=1)
    failed = 1 - good.mean()
    if not good.any():
        return np.array([np.nan] * 4 + [failed, np.nan, np.nan])
    value, low, high, truth = value[good], low[good], high[good], truth[good]
    parts = (
        np.abs(value - truth), (low <= truth) & (truth <= high), high - low,
        interval_score(low, high, truth, LEVEL),
    )  # fmt: skip
    # Up to the last bits: a difference of two equal sums is not always 0.
    shapes = (high - low < 1e-9, (low < -1e-9) | (high > 1 + 1e-9))
    return np.array([x.mean() for x in parts] + [failed] + [x.mean() for x in shapes])


def from_study(results: StudyResults, name: str, method: str, runs: int) -> Floats | None:
    """The same figures of a method of fewlabels, from the study; None if it has not run.

    NaN where a run is not there yet.
    """
    if name not in results.sets:
        return None
    sizes = sizes_of(results.study)
    out = np.full((len(sizes), runs, len(_FIGURES)), np.nan)
    for s, size in enumerate(sizes):
        found = results.table.get((Place(name, size, results.usual(name)), method))
        if found is None:
            continue
        kept = found.runs < runs
        for k, figure in enumerate(("error", "coverage_0.9", "width_0.9", "score_0.9", "failed")):
            out[s, found.runs[kept], k] = found.figure(figure, "accuracy")[kept]
        # Intervals are cut at the bounds of the metric, and an empty one has width 0.
        width = found.figure("width_0.9", "accuracy")[kept]
        known = np.isfinite(width)
        out[s, found.runs[kept], 5] = np.where(known, width < 1e-9, np.nan)
        out[s, found.runs[kept], 6] = np.where(known, 0.0, np.nan)
    return None if np.isnan(out).all() else out


# --- the page -------------------------------------------------------------------------------------


def page(
    table: dict[str, dict[str, Floats]], sizes: tuple[int, ...], runs: int, seconds: float
) -> str:
    """A section of the study's page: `table` maps a set to the figures of each peer."""
    packages = ("ppi-python", "truescore", "scorio", "scikit-learn")
    lines = [
        "## Peers",
        "",
        f"Accuracy and its 90% interval, {runs} runs ({-(-runs // _ISOTONIC_EVERY)} of isotonic "
        f"CBPE), on the items of the study; {', '.join(map(_versioned, packages))}. `auto` and "
        "`labeled` have the runs that the study has so far, which may be fewer, and differ among "
        "sets; the table says how many. Means over classifiers, runs and sets; ± is over runs, "
        "within sets. Error, width and interval score are in percentage points, the rest in "
        "percent of the answers: failed (an exception or no number), empty (an interval of width "
        "0), outside (it reaches below 0 or above 1).",
        "",
        "PPI++ is given the classifier's own confidence, or what the mean of all classifiers "
        "thinks of its choice. CBPE's idea is NannyML's: calibrate confidence on the labels, and "
        "take its mean over all items; the interval is a bootstrap of the labels. NannyML 0.13.1 "
        "itself installs on Python 3.11, but is not asked: it works on chunks of a stream after a "
        "labeled reference period, and its bands are of the sampling of a chunk.",
        "",
    ]
    for title, sets in (
        ("Real sets", [s for s in table if s not in MADE]),
        ("Made sets", [s for s in table if s in MADE]),
    ):
        if not sets:
            continue
        lines += [
            f"**{title}**: {', '.join(sets)}.",
            "",
            "| method | n_l | runs | error | coverage | least | width | score | failed | empty | "
            "outside |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
        ]
        for peer in (*OURS, *PEERS):
            for s, size in enumerate(sizes):
                own = [table[name][peer][s] for name in sets if peer in table[name]]
                own = [x for x in own if _asked(x)]
                if own:
                    many = either(map(_asked, own))
                    lines.append(f"| {peer} | {size} | {many} | " + " | ".join(_row(own)) + " |")
        lines.append("")
    return "\n".join([*lines, f"Computed in {seconds:.0f} processor seconds.", ""])


def _asked(figures: Floats) -> int:
    """Runs in which a method was asked, whether or not it had an answer."""
    return int(np.isfinite(figures[:, _FIGURES.index("failed")]).sum())


def _row(own: list[Floats]) -> Iterator[str]:
    """Each figure as a mean over sets of means over runs, with the standard error of that."""
    for k, figure in enumerate(_FIGURES):
        found = [(coverage if figure == "coverage" else mean)(x[:, k]) for x in own]
        found = [f for f in found if f.n]
        if not found:
            yield from [""] * (2 if figure == "coverage" else 1)
            continue
        value = float(np.mean([f.value for f in found]))
        se = float(np.sqrt(np.sum([f.se**2 for f in found])) / len(found))
        yield number(found[0]._replace(value=value, se=se), 100, 1)
        if figure == "coverage":
            yield f"{100 * min(f.value for f in found):.0f}"


def _versioned(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package


def main() -> None:
    """Ask every peer on every set, on all processors."""
    parser = command_line(__doc__, data=True)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "study")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--sets", nargs="*", help="names; default: real ones and eight made ones")
    options = parser.parse_args()
    places = (str(options.data),)
    known, _ = known_sets(places)
    there = (options.out / "manifest.json").exists()
    results = study.so_far(options.out) if there else None
    chosen = results.study.sets if results else known
    sets = options.sets or [n for n in known if n in chosen and (not known[n] or n in MADE)]
    for name in sets:
        if name not in known:
            raise UsageError(unknown("set", name, known))
    design = results.study if results else Study(tuple(sets))
    options.out.mkdir(parents=True, exist_ok=True)
    before = time.process_time()
    with ProcessPoolExecutor() as pool:
        asked = {
            name: pool.submit(_timed, name, design, places, options.out, options.runs)
            for name in sets
        }
        found = {name: future.result() for name, future in asked.items()}
    seconds = time.process_time() - before + sum(spent for _, spent in found.values())
    table = {name: peers for name, (peers, _) in found.items()}
    if results:
        for name in sets:
            for method in OURS:
                ours = from_study(results, name, method, options.runs)
                if ours is not None:
                    table[name][method] = ours
    sizes = sizes_of(design)
    text = page(table, sizes, options.runs, seconds)
    (options.out / "peers.md").write_text(text)
    plain = {
        name: {peer: _means(x).round(6).tolist() for peer, x in peers.items()}
        for name, peers in table.items()
    }
    said = {"sizes": sizes, "figures": _FIGURES, "runs": options.runs, "sets": plain}
    (options.out / "peers.json").write_text(json.dumps(said).replace("NaN", "null"))
    print(text)


def _means(figures: Floats) -> Floats:
    """Means over the runs (axis 1) that have a figure; NaN where none has."""
    known = np.isfinite(figures)
    count = known.sum(axis=1)
    total = np.where(known, figures, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _timed(
    name: str, design: Study, data: tuple[str, ...], folder: Path, runs: int
) -> tuple[dict[str, Floats], float]:
    started = time.process_time()
    return run_set(name, design, data, folder, runs), time.process_time() - started


if __name__ == "__main__":
    try:
        main()
    except FewlabelsError as error:
        sys.exit(f"error: {error}")
