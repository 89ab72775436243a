"""The coverage and error study, and its page.

    python benchmarks/study.py --data DIR [--out DIR] [--runs N] [--reduced] [--workers N]
        [--seed N] [--sets NAME,..] [--methods NAME,..] [--n-labeled N,..] [--n-unlabeled N,..]
        [--page FILE]
    python benchmarks/study.py --out DIR --page-only

Goes on where it stopped, if the output folder holds a study. `--page-only` trains and estimates
nothing: it writes the page from what is finished, while the study runs or after. The page ends
with the table of peers, where `benchmarks/peers.py` has written it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import study
from fewlabels.errors import FewlabelsError
from runs import parser as command_line

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "coverage-study.md"
PEERS = "peers.md"


def progress(done: int, total: int) -> None:
    """One line that is written over."""
    print(f"\r{done:,}/{total:,} parts", end="", flush=True, file=sys.stderr)


def split(text: str) -> list[str]:
    """What commas separate."""
    return [part.strip() for part in text.split(",") if part.strip()]


def numbers(text: str) -> list[int]:
    """Whole numbers that commas separate."""
    return [int(part) for part in split(text)]


def main() -> None:
    """Run, or go on with, the study, and write its page."""
    parser = command_line(__doc__, data=True)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "study")
    parser.add_argument("--page", type=Path, help="default: docs/, or the folder if reduced")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--sets", default="", help="names or families, by commas; default: all")
    parser.add_argument("--methods", default="", help="by commas; default: those of the design")
    parser.add_argument("--n-labeled", type=numbers, default=[], help="by commas; default: design")
    parser.add_argument("--n-unlabeled", type=numbers, default=[], help="the same")
    parser.add_argument("--seed", type=int, help="of what is drawn; default: 0")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--reduced", action="store_true")
    parser.add_argument("--page-only", action="store_true")
    options = parser.parse_args()
    there = (options.out / "manifest.json").exists()
    if options.page_only:
        results = study.so_far(options.out)
    else:
        results = study.run(
            options.data if options.data.exists() else (), options.out, resume=there,
            reduced=options.reduced and not there, runs=options.runs, seed=options.seed,
            workers=options.workers, sets=split(options.sets), methods=split(options.methods),
            n_labeled=options.n_labeled, n_unlabeled=options.n_unlabeled, progress=progress,
        )  # fmt: skip
    peers = options.out / PEERS
    more = [peers.read_text()] if peers.exists() else []
    page = options.page or (options.out / "report.md" if results.study.reduced else PAGE)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(study.render(results, more))
    print(f"\n{study.render_text(results)}\nwrote {page}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nstopped; what is finished is kept, and the same command goes on")
    except FewlabelsError as error:
        sys.exit(f"error: {error}")
