"""Figures of the curves benchmark as SVG files: the same bytes from the same numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_svg(figure: Figure, path: Path) -> None:
    """Write a figure with text as text, and no more digits than can be seen."""
    from matplotlib import rc_context

    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": path.stem}):
        figure.savefig(path, format="svg", metadata={"Date": None})
    # A hundredth of a point cannot be seen; the other digits are half of the file.
    path.write_text(re.sub(r"(\.\d\d)\d+", r"\1", path.read_text(encoding="utf-8")))


def draw_calibration(bins: Mapping[tuple[str, int], np.ndarray], path: Path) -> None:
    """Realised against claimed probability, a panel for each method and a line for each n_l.

    `bins` are, by method and n_l, rows of counts, summed claims and realisations, (3, bins).
    """
    from matplotlib.figure import Figure

    methods = list(dict.fromkeys(method for method, _ in bins))
    figure = Figure(figsize=(3.8 * len(methods), 3.8), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, len(methods), sharey=True))
    for axis, method in zip(axes, methods, strict=True):
        axis.plot([0, 1], [0, 1], color="0.6", lw=1, ls="--")
        for (own, n), (count, claimed, real) in bins.items():
            if own == method:
                some = count > 0
                axis.plot(claimed[some] / count[some], real[some] / count[some], "o-", ms=4,
                          label=f"{n} labels")  # fmt: skip
        axis.set(title=method, xlim=(0, 1), ylim=(0, 1.02), xlabel="claimed probability")
    axes[0].set_ylabel("share of thresholds that meet it")
    axes[-1].legend(frameon=False)
    save_svg(figure, path)
