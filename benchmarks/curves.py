"""Curves and thresholds from few labels, measured against all labels.

    python -m benchmarks curves --data DIR [--only PART ...] [--workers N] [--resume] [--quick]

Every part consists of cells (mostly a list and a trial), which are kept as lines of JSON in the
folder --work; an interrupted part goes on with --resume, with unchanged code. The tables go between
the marks of docs/benchmarks/curves.md. With --quick there are a few cells of each part, and the
page is a copy in the folder. Figure 4 is made from the fits of figure 2.
"""

from __future__ import annotations

from curves_bands import DIGITS, FIGURE2, OTHER
from curves_labels import FIGURE1, LABEL_NEXT, ONE_CLASS
from curves_mcmc import MCMC
from curves_spe import FIGURE3G, SYNTHETIC
from curves_speed import SPEED
from parts import run_page
from runs import ROOT

PARTS = {
    "figure1": FIGURE1,
    "figure2": FIGURE2,
    "figure2-digits": DIGITS,
    "figure2-other": OTHER,
    "figure3g": FIGURE3G,
    "mcmc": MCMC,
    "one-class": ONE_CLASS,
    "synthetic": SYNTHETIC,
    "speed": SPEED,
    "label-next": LABEL_NEXT,
}


if __name__ == "__main__":
    page = ROOT / "docs" / "benchmarks" / "curves.md"
    need_data = set(PARTS) - {"synthetic", "speed", "figure2-digits"}
    run_page(__doc__ or "", "curves", PARTS, page, need_data, anew=True)
