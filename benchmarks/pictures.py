"""Pictures of the first page, and of how an interval is made.

    python -m benchmarks pictures [cases] [interval]

Cases: `plot()` of three results on files of examples/, written to docs/pictures/*.png in a palette
of 64 colours (Pillow comes with matplotlib). Interval: examples/moderation_labeled.csv, whose
labels are all known, with all but 20 of them hidden; accuracy of the classifier `small`, and
docs/pictures/interval-*.svg. Labels are drawn by seed 1, those of the fourth figure by 0 to 49.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import fewlabels as fl
from runs import ROOT, command_line, panels, save_svg

OUT, EXAMPLES = ROOT / "docs" / "pictures", ROOT / "examples"
COLOURS, DPI = 64, 90
FILE, MODEL, LABELS, SEED, REPEATS = "moderation_labeled.csv", "small", 20, 1, 50
BLUE, RED, GREY = "#2166ac", "#b2182b", "#777777"

CASES: Mapping[str, Callable[[], Any]] = {
    "judges": lambda: fl.score(EXAMPLES / "verdicts.csv").plot(),
    "moderation": lambda: fl.monitor(
        EXAMPLES / "messages.csv", "date", every="week", metrics="accuracy"
    ).plot(),
    "readers": lambda: fl.estimate(
        EXAMPLES / "readings.csv", metrics=["recall"], positive="nodule"
    ).plot(),
}
"""A figure for each case of the first page."""


def cases(out: Path) -> None:
    """Write the picture of each case."""
    for name, draw in CASES.items():
        raw = io.BytesIO()
        draw().savefig(raw, dpi=DPI)
        picture = Image.open(raw).convert("RGB")
        picture.quantize(COLOURS, dither=Image.Dither.NONE).save(out / f"{name}.png", optimize=True)


def hidden(seed: int, known: fl.Predictions) -> fl.Predictions:
    """The items with 20 of their labels."""
    chosen = np.random.default_rng(seed).permutation(known.n_items)[:LABELS]
    labels = np.full(known.n_items, -1)
    labels[chosen] = known.labels[chosen]
    return fl.Predictions(
        known.probabilities, labels, models=known.models, classes=known.classes,
        positive=known.positive,
    )  # fmt: skip


def accuracy(given: fl.Predictions, method: str = "auto") -> fl.Estimates:
    """Accuracy, 90% intervals, for the population that the items come from."""
    return fl.estimate(given, method, metrics="accuracy", confidence_level=0.9)


def interval(out: Path) -> None:
    """Write the four figures."""
    known = fl.read_predictions(EXAMPLES / FILE)
    j, toxic = known.models.index(MODEL), known.classes.index(known.positive)
    right = known.probabilities[:, j].argmax(axis=1) == known.labels
    truth, given = float(right.mean()), hidden(SEED, known)
    found = accuracy(given)
    save_svg(_probabilities(given, found, toxic), out / "interval-1.svg")
    save_svg(_draws(found, accuracy(given, "labeled"), j, truth), out / "interval-2.svg")
    save_svg(_sources(given, found, j, truth), out / "interval-3.svg")
    save_svg(_repeated(known, truth), out / "interval-4.svg")


def _probabilities(given: fl.Predictions, found: fl.Estimates, toxic: int) -> Any:
    """P(toxic) by twenty parameter draws, as moving averages over 75 items, and the labels."""
    draws = found.posterior.interval_draws
    p = draws.block(np.arange(draws.size), slice(None))[:, toxic]
    pool, known = given.probabilities[:, :, toxic].mean(axis=1), given.labels >= 0
    order = np.flatnonzero(~known)[np.argsort(pool[~known])]
    window = np.ones(75) / 75
    place = np.convolve(pool[order], window, "valid")[::10]
    figure, axes = panels((7, 2.8))
    for k, d in enumerate(range(0, draws.size, draws.size // 20)[:20]):
        axes.plot(place, np.convolve(p[order, d], window, "valid")[::10], color=BLUE, lw=0.7,
                  label=None if k else "a parameter draw")  # fmt: skip
    axes.plot(pool[known], given.labels[known] == toxic, "o", color=RED, ms=5, label="a label")
    axes.set(xlabel="mean of what the four classifiers say", ylabel="P(toxic)")
    axes.legend(frameon=False, loc="upper left")
    return figure


def _draws(found: fl.Estimates, labeled: fl.Estimates, j: int, truth: float) -> Any:
    """Accuracy in every draw, and the interval between two quantiles."""
    figure, axes = panels((7, 2.8))
    bins = np.linspace(0.6, 1, 41)
    for estimates, color, name in (
        (labeled, GREY, "labels only"), (found, BLUE, "with the unlabeled items")
    ):  # fmt: skip
        drawn = estimates.draws_of("accuracy", None)[:, j]
        row = estimates.get(MODEL, "accuracy")
        axes.hist(drawn, bins, density=True, color=color, alpha=0.45,
                  label=f"{name}: {row.value:.3f} [{row.low:.3f}, {row.high:.3f}]")  # fmt: skip
        axes.axvline(row.low, color=color, lw=1)
        axes.axvline(row.high, color=color, lw=1)
    axes.axvline(truth, color=RED, ls=":", label=f"the truth: {truth:.3f}")
    axes.set(xlabel=f"accuracy of {MODEL} in a draw; lines: ends of the 90% interval", yticks=[])
    axes.legend(frameon=False, loc="upper left")
    return figure


def _sources(given: fl.Predictions, found: fl.Estimates, j: int, truth: float) -> Any:
    """The interval with one source of uncertainty after the other."""
    rng = np.random.default_rng(SEED)
    n, draws = given.n_items, found.posterior.interval_draws
    choice = given.probabilities[:, j].argmax(axis=1)
    every = draws.block(np.arange(draws.size), slice(None))[np.arange(n), choice]
    known = given.labels >= 0
    every[known] = (choice == given.labels)[known, None]
    fixed = np.repeat(every.mean(axis=1, keepdims=True), draws.size, axis=1)
    row, only = found.get(MODEL, "accuracy"), accuracy(given, "labeled").get(MODEL, "accuracy")

    def ends(p: np.ndarray, weigh: bool) -> tuple[float, float]:
        drawn = rng.random(p.shape) < p
        weight = rng.exponential(size=p.shape) if weigh else np.ones(p.shape)
        low, high = np.quantile((weight * drawn).sum(axis=0) / weight.sum(axis=0), [0.05, 0.95])
        return float(low), float(high)

    steps = {
        "which labels the items have": ends(fixed, False),
        "+ what 20 labels leave open": ends(every, False),
        "+ other items might have come": ends(every, True),
        "+ the model may be wrong: the interval": (row.low, row.high),
        "20 labels only": (only.low, only.high),
    }
    figure, axes = panels((7, 2.4))
    for place, (low, high) in enumerate(reversed(steps.values())):
        axes.plot([low, high], [place, place], color=BLUE if place else GREY, lw=3)
        axes.text(1.005, place, f"{high - low:.3f} wide", va="center")
    axes.axvline(truth, color=RED, ls=":")
    axes.set_yticks(range(len(steps)), reversed(steps))
    axes.set(xlabel=f"accuracy of {MODEL}, 90% interval; dotted: the truth", xlim=(0.7, 1.1))
    axes.set_xticks(np.arange(0.7, 1.01, 0.1))
    axes.margins(y=0.15)
    return figure


def _repeated(known: fl.Predictions, truth: float) -> Any:
    """Intervals from other labels of the same items."""
    figure, both = panels((7, 3.2), 1, 2, sharey=True)
    for axes, method, name in zip(
        both, ("auto", "labeled"), ("with the unlabeled items", "labels only"), strict=True
    ):
        rows = [accuracy(hidden(k, known), method).get(MODEL, "accuracy") for k in range(REPEATS)]
        holds = [row.low <= truth <= row.high for row in rows]
        for place, (row, hit) in enumerate(zip(rows, holds, strict=True)):
            axes.plot([place, place], [row.low, row.high], color=BLUE if hit else RED, lw=1.5)
        axes.axhline(truth, color=GREY, ls=":")
        axes.set(title=f"{name}: {sum(holds)} of {REPEATS}", xlabel="draw of 20 labels")
    both[0].set_ylabel(f"accuracy of {MODEL}")
    return figure


PICTURES: Mapping[str, Callable[[Path], None]] = {"cases": cases, "interval": interval}


def main() -> None:
    """Write the pictures."""
    parser = command_line(__doc__)
    parser.add_argument("what", nargs="*", help="cases, interval, or both")
    for name in parser.parse_args().what or PICTURES:
        if name not in PICTURES:
            parser.error(f"no pictures of {name!r}; there are {', '.join(PICTURES)}")
        OUT.mkdir(exist_ok=True)
        PICTURES[name](OUT)


if __name__ == "__main__":
    main()
