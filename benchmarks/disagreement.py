"""Label histograms: losses without bias, disagreement, and what calibration makes of them.

    python benchmarks/disagreement.py all | debiasing | truth | protocol | oracle | temperature |
        penalty | joined | maps | items | network ... [--data DIR] [--work DIR] [--workers N]
        [--fresh] [--quick]

Every part consists of cells, which are kept as JSON files in the folder --work, outside the
repository; another run goes on where one stopped, and with --fresh starts anew. The tables go
between the marks of docs/benchmarks/disagreement.md, the figures beside it. With --quick there are
a few cells of each part, and the page is a copy in the folder.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import fewlabels
from curves_parts import Plan, run_part
from disagreement_joined import JOINED
from disagreement_maps import ITEMS, MAPS
from disagreement_network import NETWORK
from disagreement_protocol import PENALTY, PROTOCOL, TEMPERATURE
from disagreement_truth import DEBIASING, ORACLE, TRUTH
from paper import fill
from runs import parser as command_line

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "disagreement.md"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))

PARTS = {
    "debiasing": DEBIASING,
    "truth": TRUTH,
    "protocol": PROTOCOL,
    "oracle": ORACLE,
    "temperature": TEMPERATURE,
    "penalty": PENALTY,
    "joined": JOINED,
    "maps": MAPS,
    "items": ITEMS,
    "network": NETWORK,
}


def main() -> None:
    """Run the parts that are asked for, and fill the page."""
    parser = command_line(__doc__, data=True)
    work = CACHE / "fewlabels" / "benchmarks" / "disagreement"
    parser.add_argument("parts", nargs="+", choices=[*PARTS, "all"], metavar="PART")
    parser.add_argument("--work", type=Path, default=work)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--fresh", action="store_true", help="start over")
    parser.add_argument("--quick", action="store_true", help="a few cells of each part")
    given = parser.parse_args()
    if not given.data.is_dir():
        parser.error(f"no data at {given.data}; name the folder with --data or FEWLABELS_DATA")
    work = given.work / "quick" if given.quick else given.work
    work.mkdir(parents=True, exist_ok=True)
    page = PAGE
    if given.quick:
        page = work / PAGE.name
        shutil.copyfile(PAGE, page)
    plan = Plan(given.data.resolve(), page.parent / "figures", given.quick)
    for name in PARTS if "all" in given.parts else dict.fromkeys(given.parts):
        if given.fresh:
            shutil.rmtree(work / name, ignore_errors=True)
        found, seconds = run_part(
            name, PARTS[name], plan, work / name, given.workers, "with --fresh"
        )
        quick, design = "", PARTS[name].design
        if given.quick:
            quick, design = " --quick", f"a few cells; in full {design}"
        caption = (
            f"`python benchmarks/disagreement.py {name}{quick}`: {design}. fewlabels "
            f"{fewlabels.__version__}, {seconds / 60:.1f} minutes of one processor."
        )
        fill(page, {mark: f"{caption}\n\n{text}" for mark, text in found.items()})
    print(f"wrote {page}")


if __name__ == "__main__":
    main()
