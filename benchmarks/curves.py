"""Curves and thresholds from few labels, measured against all labels.

    python benchmarks/curves.py --data DIR [--only PART ...] [--workers N] [--resume] [--quick]

Every part consists of cells (mostly a list and a trial), which are kept as JSON files in the folder
--work; an interrupted part goes on with --resume, with unchanged code. The tables go between the
marks of docs/benchmarks/curves.md. With --quick there is one trial of a list or two, and the page
is a copy in the folder. Figure 4 is made from the fits of figure 2.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

import fewlabels
from curves_bands import FIGURE2, OTHER
from curves_labels import FIGURE1, LABEL_NEXT, ONE_CLASS
from curves_mcmc import MCMC
from curves_parts import Part, Plan, jobs_of, read_jobs, run_job
from curves_spe import FIGURE3G, SYNTHETIC
from curves_speed import SPEED
from paper import fill
from score_lists import spread

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "curves.md"

PARTS = {
    "figure1": FIGURE1,
    "figure2": FIGURE2,
    "figure2-other": OTHER,
    "figure3g": FIGURE3G,
    "mcmc": MCMC,
    "one-class": ONE_CLASS,
    "synthetic": SYNTHETIC,
    "speed": SPEED,
    "label-next": LABEL_NEXT,
}


def settings_of(plan: Plan) -> dict[str, object]:
    """What cells that are kept must agree in."""
    return {"quick": plan.quick, "fewlabels": fewlabels.__version__}


def run_part(name: str, plan: Plan, folder: Path, workers: int, resume: bool) -> dict[str, str]:
    """Run a part's cells, or those that are missing, and give its blocks of the page."""
    part = PARTS[name]
    settings = folder / "settings.json"
    if not resume:
        # Cells of an earlier state of the code must not mix with those of this one.
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    if settings.exists() and json.loads(settings.read_text()) != settings_of(plan):
        raise SystemExit(f"error: {folder} has cells of other settings; run without --resume")
    settings.write_text(json.dumps(settings_of(plan)))
    jobs = jobs_of(part, plan, folder)
    missing = [job for job in jobs if not job.file.exists()]
    if part.alone or workers == 1:
        for done, job in enumerate(missing, 1):
            run_job(job)
            print(f"\r{done}/{len(missing)} cells of {name}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
    elif missing:
        for _ in spread(run_job, missing, workers, f"cells of {name}"):
            pass
    records, seconds = read_jobs(jobs)
    blocks = part.blocks(records, plan)
    return {
        mark: f"{_caption(name, part, plan, seconds)}\n\n{text}" for mark, text in blocks.items()
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = os.environ.get("FEWLABELS_DATA", ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(default))
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "curves")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--resume", action="store_true", help="go on with what is in --work")
    parser.add_argument("--quick", action="store_true", help="one trial of a list or two")
    given = parser.parse_args()
    if not given.data.is_dir() and set(given.only) - {"synthetic", "speed"}:
        parser.error(f"no data at {given.data}; name the folder with --data or FEWLABELS_DATA")
    work = given.work / "quick" if given.quick else given.work
    work.mkdir(parents=True, exist_ok=True)
    page = PAGE
    if given.quick:
        page = work / PAGE.name
        shutil.copyfile(PAGE, page)
    plan = Plan(given.data.resolve(), page.parent / "figures", given.quick)
    for name in given.only:
        fill(page, run_part(name, plan, work / name, given.workers, given.resume))
    print(f"wrote {page}")


if __name__ == "__main__":
    main()
