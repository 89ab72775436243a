"""Speed and memory of the models of votes, as ratios within one run against what a user has."""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
import warnings
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from scipy.special import expit

import fewlabels as fl
from curves_data import stream
from fewlabels.kernels.arrays import Floats, Ints
from measure import ONE_THREAD, Line, best, memory, timed
from measure import elsewhere as _elsewhere
from parts import speed_part
from votes_worlds import Size, World, draw_votes, one_rate

_BEE_ERRORS = np.array([0.1, 0.15, 0.2, 0.25])
_BURN_IN, _SWEEPS, _THIN = 4000, 2000, 10
_TIMED = 300
"""Sweeps of the per-item sampler that are timed."""


elsewhere = partial(_elsewhere, "votes_speed")


def four_classifiers(domains: int, items: int) -> World:
    """Two classes, four classifiers with the same error rates in every domain."""
    rng = stream("votes", "speed", domains, items)
    confusion = one_rate(np.tile(_BEE_ERRORS, (domains, 1)), 2)
    return draw_votes(confusion, np.full((domains, 2), 0.5), Size(domains, 4, items), rng)


# --- bee against Gibbs sampling item by item ------------------------------------------------------


def per_item_gibbs(votes: Ints, sweeps: int, rng: np.random.Generator, *, products: bool) -> Floats:
    """BEE as one writes it with numpy: labels of all items at once, sweep by sweep.

    Votes that differ from the labels are counted as they stand, or by matrix products, which BLAS
    makes twice as fast.
    """
    n = len(votes)
    signs = 2.0 * votes - 1.0
    labels = votes.mean(axis=1) > 0.5
    total = np.zeros(votes.shape[1])
    for _ in range(sweeps):
        positive = labels.sum()
        share = rng.beta(1 + positive, 1 + n - positive)
        if products:
            wrong = (n - signs.T @ (2.0 * labels - 1.0)) / 2
        else:
            wrong = (votes != labels[:, None]).sum(axis=0)
        error = rng.beta(1 + wrong, 10 + n - wrong)
        logits = signs @ (np.log1p(-error) - np.log(error))
        labels = rng.random(n) < expit(logits + np.log(share) - np.log1p(-share))
        total += error
    return total / sweeps


def bee_lines(items: list[int]) -> list[Line]:
    """One chain of the paper's 6,000 sweeps on more and more items."""
    model = fl.models.BEE(burn_in=_BURN_IN, sweeps=_SWEEPS, thin=_THIN, chains=1)
    few = fl.models.BEE(burn_in=0, sweeps=2, thin=1, chains=1)
    out = []
    for n in items:
        world = four_classifiers(1, n)
        predictions = world.predictions()
        model.infer(predictions, np.random.default_rng(0))  # compiled, votes counted
        fit, fitted = best(lambda p=predictions: model.fit(p, np.random.default_rng(0)), 5)
        gather, _ = best(lambda p=predictions: few.fit(p, np.random.default_rng(0)), 5)
        fresh, _ = best(lambda w=world: model.infer(w.predictions(), np.random.default_rng(0)), 2)
        rng, scale = np.random.default_rng(0), (_BURN_IN + _SWEEPS) / _TIMED
        (quick, naive), (plain, _) = (
            best(lambda w=world, r=rng, p=p: per_item_gibbs(w.votes, _TIMED, r, products=p), 3)
            for p in (True, False)
        )
        rival, counting = quick * scale, plain * scale
        rates = fitted.draws.rates[..., 0, 0].mean(axis=(0, 1))
        out.append(
            Line(
                f"`bee`, {n:,} items x 4 classifiers x {_BURN_IN + _SWEEPS:,} sweeps, one chain; "
                f"rates within {np.abs(rates - naive).max():.1g} of each other",
                f"fit {fit:.3f} s, its sweeps {fit - gather:.3f} s; "
                f"arrays to P(label) {fresh:.3f} s",
                f"numpy, all items of a sweep at once ({_TIMED} sweeps timed): {counting:.1f} s, "
                f"by matrix products {rival:.1f} s",
                f"{counting / fit:.0f}x, {counting / (fit - gather):.0f}x; "
                f"{counting / fresh:.0f}x; by products "
                f"{rival / fit:.0f}x, {rival / (fit - gather):.0f}x; {rival / fresh:.0f}x",
                "50x, whatever the number of items" if n == 20_000 else "",
            )
        )
    return out


# --- hcbee with and without a compiler ------------------------------------------------------------


def hcbee_seconds(items: int, **options: int) -> list[float]:
    """Seconds of a first call and of two later ones."""
    predictions = four_classifiers(15, items).predictions()
    model = fl.models.HCBEE(**options)
    return [best(lambda: model.infer(predictions, np.random.default_rng(0)), 1)[0]
            for _ in range(3)]  # fmt: skip


def hcbee_lines(items: int, sweeps: int) -> list[Line]:
    """The default schedule in processes of their own; plain Python is timed on fewer sweeps."""
    default = fl.models.HCBEE()
    total = default.burn_in + default.sweeps
    what = f"`hcbee`, 15 domains of {items:,} items x 4 classifiers, 4 chains x {total:,} sweeps"
    with tempfile.TemporaryDirectory() as folder:
        call = f"hcbee_seconds({items})"
        first, *later = elsewhere(call, {"NUMBA_CACHE_DIR": folder})
        kept, *_ = elsewhere(call, {"NUMBA_CACHE_DIR": folder})
    plain, base = (
        min(elsewhere(f"hcbee_seconds({items}, {options})", {"NUMBA_DISABLE_JIT": "1"}))
        for options in (f"burn_in=10, sweeps={sweeps}", "burn_in=0, sweeps=20")
    )
    rival = base + (plain - base) / (sweeps - 10) * total
    ours = min(later)
    return [
        Line(f"{what}, later calls", f"{ours:.1f} s", f"{rival:.0f} s (without numba; {sweeps} "
             "sweeps timed)", f"{rival / ours:.0f}x", "10 s"),
        Line(f"{what}, first call ever, with compilation", f"{first:.1f} s"),
        Line(f"{what}, first call of a later process", f"{kept:.1f} s"),
    ]  # fmt: skip


# --- two million votes ----------------------------------------------------------------------------


def many_votes(items: int, annotators: int, classes: int) -> Ints:
    """Votes (n, M) of 20 annotators on each item, in small integers."""
    rng = stream("votes", "speed", "many", items, annotators, classes)
    error = rng.beta(2, 3, annotators)  # hard enough for EM to take its time
    votes = np.full((items, annotators), -1, dtype=np.int8)
    labels = rng.integers(classes, size=items)
    for start in range(0, items, 1000):
        rows = np.arange(start, min(start + 1000, items))
        who = np.argpartition(rng.random((len(rows), annotators)), 20, axis=1)[:, :20]
        wrong = rng.random(who.shape) < error[who]
        other = rng.integers(1, classes, size=who.shape)
        said = (labels[rows][:, None] + wrong * other) % classes
        votes[rows[:, None], who] = said
    return votes


def fit_many(items: int, annotators: int, classes: int) -> dict[str, float]:
    """Our fit and P(label), with its peak memory, of votes made here."""
    votes = many_votes(items, annotators, classes)
    before = memory()

    def fit() -> Any:
        predictions = fl.Predictions(votes=votes, classes=tuple(range(classes)))
        posterior = fl.models.DawidSkene().infer(predictions, np.random.default_rng(0))
        return posterior, posterior.marginals().argmax(axis=1)

    found, (posterior, _) = timed(fit)
    steps = posterior.diagnostics["iterations"]
    return found | {"before": before, "peak": memory(), "steps": steps}


def peer_many(items: int, annotators: int, classes: int, steps: int) -> dict[str, float]:
    """The same by crowd-kit in so many steps of EM, and in none."""
    from crowdkit.aggregation import DawidSkene

    votes = many_votes(items, annotators, classes)
    task, worker = np.nonzero(votes >= 0)
    frame = pd.DataFrame({"task": task, "worker": worker, "label": votes[task, worker]})
    del votes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, more = (
            best(lambda n=n: DawidSkene(n_iter=n, tol=0.0).fit(frame), 1)[0] for n in (1, 1 + steps)
        )
    step = (more - one) / steps
    return {"start": one - step, "step": step, "peak": memory()}


def many_lines(items: int, annotators: int) -> list[Line]:
    """Dawid and Skene by EM on two million votes, each side in a process of its own."""
    out = []
    for classes in (2, 5):
        size = f"{items}, {annotators}, {classes}"
        ours = elsewhere(f"fit_many({size})")
        rival = elsewhere(f"peer_many({size}, 3)")
        same = rival["start"] + rival["step"] * ours["steps"]
        out.append(
            Line(
                f"`dawid-skene`, {20 * items:,} votes of {annotators:,} annotators on {items:,} "
                f"items, {classes} classes, {ours['steps']:.0f} steps; arrays to P(label)",
                f"{ours['seconds']:.1f} s, peak {ours['peak']:.0f} MB ({ours['before']:.0f} MB "
                "with the votes alone)",
                f"{same:.0f} s, peak {rival['peak']:.0f} MB (crowd-kit, as many steps; 3 timed)",
                f"{same / ours['seconds']:.1f}x",
                "30 s, 2 GB",
            )
        )
    return out


# --- thousands of annotators, from a file to its intervals ----------------------------------------


def long_votes(votes: int, annotators: int, classes: int, prior: bool = False) -> Any:
    """Five votes on each item: items, annotators, classes (E,), and the error rates (M,).

    Rows of confusion matrices err by Beta(2, 6); with `prior` they are of the models' own prior.
    """
    rng, n, k = stream("votes", "speed", "long", votes, annotators, classes), votes // 5, classes
    share = rng.dirichlet(np.full(k, 5.0))
    error = rng.beta(*((1, 10) if prior else (2, 6)), size=(annotators, k))
    spread = np.full(k - 1, 1 / (k - 1) if prior else 1.0)
    other = rng.dirichlet(spread, size=(annotators, k)) * error[:, :, None]
    confusion = np.zeros((annotators, k, k))
    for c in range(k):
        confusion[:, c, c] = 1 - error[:, c]
        confusion[:, c, np.arange(k) != c] = other[:, c]
    truth, item = rng.choice(k, n, p=share), np.repeat(np.arange(n), 5)
    step = rng.integers(1, annotators // 5, n)[:, None] * np.arange(5)
    who = ((rng.integers(annotators, size=n)[:, None] + step) % annotators).ravel()
    said = np.empty(len(item), dtype=np.int64)
    for part in range(0, len(item), 2**20):
        rows = slice(part, part + 2**20)
        below = confusion[who[rows], truth[item[rows]]].cumsum(axis=1)
        said[rows] = (rng.random(len(below))[:, None] > below).sum(axis=1).clip(0, k - 1)
    order = rng.permutation(len(item))
    return item[order], who[order], said[order], error @ share


def write_long(path: str, votes: int, annotators: int) -> None:
    """Long votes of five classes as a Parquet file."""
    item, who, said, _ = long_votes(votes, annotators, 5)
    frame = pd.DataFrame({"item": item, "annotator": who, "label": np.array(list("abcde"))[said]})
    frame["annotator"] = "a" + frame["annotator"].astype(str)
    frame.to_parquet(path)


def command(path: str, method: str) -> dict[str, float]:
    """`fewlabels estimate FILE --votes --method METHOD` with its intervals, in this process."""
    from fewlabels.cli import main

    started = time.perf_counter()
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        main(["estimate", path, "--votes", "--method", method, "--json", f"{path}.json"])
    return {"seconds": time.perf_counter() - started, "peak": memory()}


def crowd_kit(path: str) -> dict[str, float]:
    """crowd-kit's DawidSkene from a frame to its own convergence, point estimates alone."""
    from crowdkit.aggregation import DawidSkene

    frame = pd.read_parquet(path).rename(columns={"item": "task", "annotator": "worker"})
    started = time.perf_counter()
    fitted = DawidSkene(n_iter=100, tol=1e-5).fit(frame)
    steps = len(fitted.loss_history_)
    return {"seconds": time.perf_counter() - started, "steps": steps, "peak": memory()}


_MOST_SELECTED = 1_000_000
"""`vote-selection` fits five models and their held-out parts: of more votes it takes an hour."""


def scale_lines(sizes: list[list[int]], methods: list[str]) -> list[Line]:
    """Whole commands on long votes of many annotators, each in a process of its own."""
    out = []
    for votes, annotators in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/votes.parquet"
            elsewhere(f"write_long({path!r}, {votes}, {annotators})")
            rival = elsewhere(f"crowd_kit({path!r})")
            for method in methods:
                if method == "vote-selection" and votes > _MOST_SELECTED:
                    continue
                ours = elsewhere(f"command({path!r}, {method!r})", ONE_THREAD)
                out.append(
                    Line(
                        f"`{method}`, {votes:,} votes of {annotators:,} annotators, 5 classes; "
                        "Parquet file to intervals and JSON",
                        f"{ours['seconds']:.0f} s, peak {ours['peak']:.0f} MB",
                        f"{rival['seconds']:.0f} s, peak {rival['peak']:.0f} MB (crowd-kit's "
                        f"Dawid-Skene, {rival['steps']} steps, no intervals)",
                    )
                )
    return out


def variational_lines(sizes: list[list[int]], sweeps: int) -> list[Line]:
    """Chains beside variational inference: how often 95% intervals hold, and their widths."""
    out = []
    for votes, annotators in sizes:
        item, who, said, error = long_votes(votes, annotators, 5, prior=True)
        table = scipy.sparse.csr_matrix((said + 1, (item, who)), (votes // 5, annotators))
        told = []
        for inference in ("variational", "gibbs"):
            model = fl.models.ConfusionBEE(
                inference=inference, burn_in=sweeps // 2, sweeps=sweeps, thin=5, chains=2
            )
            started = time.perf_counter()
            fitted = model.fit(fl.Predictions(votes=table), np.random.default_rng(0))
            passed = time.perf_counter() - started
            fitted = fitted.pooled(fl.Predictions(votes=table))
            right = np.einsum("tmkk,tk->tm", fitted.rates, fitted.shares[:, 0])
            low, high = np.quantile(1 - right, [0.025, 0.975], axis=0)
            held, width = ((low <= error) & (error <= high)).mean(), (high - low).mean()
            told.append(f"{passed:.1f} s, {held:.3f} held, width {width:.4f}")
        out.append(
            Line(
                f"`confusion-bee`, {votes:,} votes of {annotators:,} annotators drawn from its "
                "prior: variational inference instead of chains",
                *told,
            )
        )
    return out


LINES = {
    "bee": (bee_lines, {"items": [2_000, 20_000, 200_000]}, {"items": [2_000]}),
    "hcbee": (hcbee_lines, {"items": 20_000, "sweeps": 200}, {"items": 200, "sweeps": 30}),
    "many": (
        many_lines,
        {"items": 100_000, "annotators": 1000},
        {"items": 1_000, "annotators": 100},
    ),
    "scale": (
        scale_lines,
        {
            "sizes": [[100_000, 3_000], [1_000_000, 10_000], [10_000_000, 100_000]],
            "methods": ["dawid-skene", "confusion-bee", "vote-selection"],
        },
        {"sizes": [[5_000, 100]], "methods": ["dawid-skene"]},
    ),
    "variational": (
        variational_lines,
        {"sizes": [[3_000, 30], [20_000, 1_000], [100_000, 1_000]], "sweeps": 1_000},
        {"sizes": [[1_000, 20]], "sweeps": 50},
    ),
}
"""Rows by topic: what makes them, in full and in a quick run."""


SPEED = speed_part(
    LINES,
    "one thread but in processes of their own (`hcbee`, `dawid-skene`), whose minutes are not "
    "counted here; the best of 2 to 5; ratios are of one run",
)
