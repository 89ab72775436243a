"""Curves and thresholds from few labels, measured against all labels.

    python benchmarks/curves.py all | figure1 | figure2 | figure2-digits | figure2-other |
        figure3g | mcmc | one-class | synthetic | speed | label-next ...
        [--data DIR] [--work DIR] [--workers N] [--fresh] [--quick]

Every part consists of cells (mostly a list and a trial), which are kept as JSON files in the folder
--work, outside the repository; another run goes on where one stopped, and with --fresh starts anew,
as it should after a change of the code. The tables go between the marks of
docs/benchmarks/curves.md. With --quick there is one trial of a list or two, and the page is a copy
in the folder. Figure 4 is made from the fits of figure 2.
"""

from __future__ import annotations

from curves_bands import DIGITS, FIGURE2, OTHER
from curves_labels import FIGURE1, LABEL_NEXT, ONE_CLASS
from curves_mcmc import MCMC
from curves_parts import ROOT, run_page
from curves_spe import FIGURE3G, SYNTHETIC
from curves_speed import SPEED

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
    run_page(__doc__ or "", "curves", PARTS, page, set(PARTS) - {"synthetic", "speed"})
