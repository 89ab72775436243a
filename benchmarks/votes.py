"""Error rates and labels from votes, measured against labels and known truth.

    python benchmarks/votes.py all | nell | brain | settings | coverage | crowd | honest | speed ...
        [--data DIR] [--work DIR] [--workers N] [--fresh] [--quick]

Every part consists of cells (mostly a data set and a method, or a replicate), which are kept as
JSON files in the folder --work, outside the repository; another run goes on where one stopped, and
with --fresh starts anew, as it should after a change of the code. The tables go between the marks
of docs/benchmarks/votes.md. With --quick there are a few cells of each part, and the page is a copy
in the folder.
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

import fewlabels
from curves_parts import Part, Plan, run_part
from paper import fill
from votes_coverage import COVERAGE
from votes_crowd import CROWD
from votes_honest import HONEST
from votes_nell import BRAIN, NELL
from votes_settings import SETTINGS_PART
from votes_speed import SPEED

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "votes.md"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))

PARTS = {
    "nell": NELL,
    "brain": BRAIN,
    "honest": HONEST,
    "settings": SETTINGS_PART,
    "coverage": COVERAGE,
    "crowd": CROWD,
    "speed": SPEED,
}
_NEED_DATA = {"nell", "brain", "crowd", "honest"}


def _caption(name: str, part: Part, plan: Plan, seconds: float) -> str:
    """Where a block comes from."""
    quick, design = "", part.design
    if plan.quick:
        quick, design = " --quick", f"a few cells; in full {part.design}"
    return (
        f"`python benchmarks/votes.py {name}{quick}`: {design}. fewlabels "
        f"{fewlabels.__version__}, {seconds / 60:.1f} minutes of one processor."
    )


def main() -> None:
    """Run the parts that are asked for, and fill the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = os.environ.get("FEWLABELS_DATA", ROOT.parent / "shared" / "data")
    parser.add_argument("parts", nargs="+", choices=[*PARTS, "all"], metavar="PART")
    parser.add_argument("--data", type=Path, default=Path(default))
    parser.add_argument("--work", type=Path, default=CACHE / "fewlabels" / "benchmarks" / "votes")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--fresh", action="store_true", help="start over")
    parser.add_argument("--quick", action="store_true", help="a few cells of each part")
    given = parser.parse_args()
    parts = list(PARTS) if "all" in given.parts else list(dict.fromkeys(given.parts))
    if not given.data.is_dir() and _NEED_DATA & set(parts):
        parser.error(f"no data at {given.data}; name the folder with --data or FEWLABELS_DATA")
    work = given.work / "quick" if given.quick else given.work
    work.mkdir(parents=True, exist_ok=True)
    page = PAGE
    if given.quick:
        page = work / PAGE.name
        shutil.copyfile(PAGE, page)
    plan = Plan(given.data.resolve(), page.parent / "figures", given.quick)
    for name in parts:
        if given.fresh:
            shutil.rmtree(work / name, ignore_errors=True)
        part = PARTS[name]
        found, seconds = run_part(name, part, plan, work / name, given.workers, "with --fresh")
        caption = _caption(name, part, plan, seconds)
        fill(page, {mark: f"{caption}\n\n{text}" for mark, text in found.items()})
    print(f"wrote {page}")


if __name__ == "__main__":
    main()
