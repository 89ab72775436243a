"""Curves and thresholds from few labels, measured against all labels.

    python benchmarks/curves.py --data DIR [--only PART ...] [--workers N] [--resume] [--quick]

Every part consists of cells (mostly a list and a trial), which are kept as JSON files in the folder
--work; an interrupted part goes on with --resume, with unchanged code. The tables go between the
marks of docs/benchmarks/curves.md. With --quick there is one trial of a list or two, and the page
is a copy in the folder. Figure 4 is made from the fits of figure 2.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import fewlabels
from curves_bands import DIGITS, FIGURE2, OTHER
from curves_labels import FIGURE1, LABEL_NEXT, ONE_CLASS
from curves_mcmc import MCMC
from curves_parts import Part, Plan, run_part
from curves_spe import FIGURE3G, SYNTHETIC
from curves_speed import SPEED
from paper import fill
from runs import parser as command_line

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "curves.md"

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


def _caption(name: str, part: Part, plan: Plan, seconds: float) -> str:
    """Where a block comes from."""
    quick, design = "", part.design
    if plan.quick:
        quick, design = " --quick", f"one trial of a list or two; in full {part.design}"
    return (
        f"`python benchmarks/curves.py --only {name}{quick}`: {design}. fewlabels "
        f"{fewlabels.__version__}, {seconds / 60:.1f} minutes of one processor."
    )


def main() -> None:
    """Run the parts that are asked for, or all, and fill the page."""
    parser = command_line(__doc__, data=True)
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "curves")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--resume", action="store_true", help="go on with what is in --work")
    parser.add_argument("--quick", action="store_true", help="one trial of a list or two")
    given = parser.parse_args()
    if not given.data.is_dir() and set(given.only) - {"synthetic", "speed", "figure2-digits"}:
        parser.error(f"no data at {given.data}; name the folder with --data or FEWLABELS_DATA")
    work = given.work / "quick" if given.quick else given.work
    work.mkdir(parents=True, exist_ok=True)
    page = PAGE
    if given.quick:
        page = work / PAGE.name
        shutil.copyfile(PAGE, page)
    plan = Plan(given.data.resolve(), page.parent / "figures", given.quick)
    for name in given.only:
        if not given.resume:
            # Cells of an earlier state of the code must not mix with those of this one.
            shutil.rmtree(work / name, ignore_errors=True)
        part = PARTS[name]
        found, seconds = run_part(name, part, plan, work / name, given.workers, "without --resume")
        caption = _caption(name, part, plan, seconds)
        fill(page, {mark: f"{caption}\n\n{text}" for mark, text in found.items()})
    print(f"wrote {page}")


if __name__ == "__main__":
    main()
