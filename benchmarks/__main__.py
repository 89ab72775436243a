"""One command for all that fewlabels is measured by.

    python -m benchmarks                               what there is
    python -m benchmarks PROTOCOL --data DIR --runs 50 --resume    a protocol of the papers
    python -m benchmarks NAME ...                      a study: writes or fills its pages in docs/
    python -m benchmarks stale [--data DIR]            pages whose code or data changed since

Run it from the root of the repository. DIR is by default FEWLABELS_DATA.
"""

from __future__ import annotations

import os
import re
import runpy
import shlex
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
sys.path.insert(0, str(HERE))  # modules of this folder import one another by their names


class Study(NamedTuple):
    """Pages of docs/ that a module of this folder writes or fills, and data that it reads."""

    pages: tuple[str, ...] = ()
    data: tuple[str, ...] = ()


_ALL_SETS = ("adult", "cifar10", "mixed_lh", "nell", "ssme_civilcomments")
_DECIDED = ("adult", "cifar10", "ssme_civilcomments", "ssme_multinli")
_SSME = (
    "adult", "cifar10", "civilcomments", "classifiers", "correlation", "drawn-vs-expected",
    "effective-sizes", "ensembling", "ensembling-trained", "flow-adult", "flow-cifar10",
    "flow-civilcomments", "flow-mix-mnist", "mix-mnist", "semisynthetic", "subgroups",
)  # fmt: skip

STUDIES = {
    "answered_by": Study(),
    "cluster_coverage": Study(("benchmarks/clusters",), ("llm_judges", "nell")),
    "compare_power": Study(("comparing",)),
    "curves": Study(("benchmarks/curves",), ("spe_scores",)),
    "decisions": Study(
        ("benchmarks/decisions",),
        (*_DECIDED, "chexpert", "llm_judges", "llm_rubric", "semeval_tweets", "sports_538"),
    ),
    "dependencies": Study((), ("ssme_civilcomments",)),
    "disagreement": Study(("benchmarks/disagreement",), ("cifar10", "mixed_lh")),
    "ensemble_prior": Study(),
    "evaluator_speed": Study(("speed",)),
    "judges": Study(("benchmarks/judges",), ("crowd", "llm_judges")),
    "labeling": Study(("benchmarks/labeling",), _ALL_SETS),
    "monitor": Study(
        ("benchmarks/monitor",), ("semeval_tweets", "sports_538", "ssme_civilcomments")
    ),
    "monotone_prior": Study(),
    "paper": Study(
        tuple(f"benchmarks/{name}" for name in _SSME),
        ("adult", "cifar10", "mixed_lh", "ssme_civilcomments"),
    ),
    "papers": Study(("papers",)),
    "peers": Study((), _ALL_SETS),
    "prior_judged": Study(),
    "quoted": Study(),
    "ranking": Study(("benchmarks/ranking",), ("llm_judges",)),
    "reference": Study(("reference-data",), ("llm_judges", "sports_538")),
    "screenshots": Study(),
    "speed": Study(("speed",)),
    "stress": Study(("when-it-fails",)),
    "study": Study(
        tuple(f"benchmarks/coverage-{n}" for n in ("study", "methods", "two-sets")), _ALL_SETS
    ),
    "task_coverage": Study(("benchmarks/tasks",), ("chexpert", "llm_rubric")),
    "taxonomies": Study(("benchmarks/taxonomies",)),
    "votes": Study(("benchmarks/votes",), ("brain_fmri", "crowd", "nell")),
    "votes_paper": Study(("benchmarks/votes-paper",), ("brain_fmri", "nell")),
}
"""Modules of this folder that are commands."""


def main(arguments: Sequence[str]) -> int:
    """Run what is named, and give the pages that it wrote their fingerprints."""
    name, *rest = arguments or ["--help"]
    if name in ("-h", "--help", "--list"):
        print("\n".join([__doc__ or "", *_what_there_is()]))
        return 0
    if name == "stale":
        return _stale(rest)
    if name not in STUDIES:
        from bench import command

        words = ["python", "-m", "benchmarks", *_without_folders(arguments)]
        return command.main(arguments, shlex.join(words))
    return _study(name, rest)


def _what_there_is() -> Iterator[str]:
    from bench.command import listed

    yield from ["Protocols", "", listed(), "", "Studies", ""]
    for name, study in STUDIES.items():
        head = (HERE / f"{name}.py").read_text(encoding="utf-8").partition("\n")[0]
        about = head.strip('" ')
        pages = f" [{', '.join(study.pages)}]" if 0 < len(study.pages) < 3 else ""
        yield f"{name:24}{about}{pages}"


def _study(name: str, arguments: Sequence[str]) -> int:
    from bench import fingerprints

    pages = [page for part in STUDIES[name].pages if (page := DOCS / f"{part}.md").exists()]
    before = {page: (page.stat().st_mtime_ns, fingerprints.stamps_of(page)) for page in pages}
    sys.argv = [f"python -m benchmarks {name}", *arguments]
    code = 0
    try:
        runpy.run_path(str(HERE / f"{name}.py"), run_name="__main__")
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    command = f"python -m benchmarks {shlex.join([name, *_without_folders(arguments)])}"
    for page, (changed, stamps) in before.items():
        if code or page.stat().st_mtime_ns == changed:
            continue
        fingerprints.write(page, stamps)  # what was not run again keeps the code that it ran on
        if "--page-only" not in arguments:
            fingerprints.stamp(page, command, name, _root(arguments), STUDIES[name].data)
    return code


def _without_folders(arguments: Sequence[str]) -> list[str]:
    """Arguments without the folders of a machine."""
    return [re.sub(r"^(--[\w-]+=)?/.*/", r"\1", argument) for argument in arguments]


def _root(arguments: Sequence[str]) -> Path:
    """The folder of the data: that of --data, or FEWLABELS_DATA."""
    given = [after for option, after in pairwise(arguments) if option == "--data"]
    given += [a.removeprefix("--data=") for a in arguments if a.startswith("--data=")]
    return Path(given[0] if given else os.environ.get("FEWLABELS_DATA", "data"))


def _stale(arguments: Sequence[str]) -> int:
    """Print each page that is no longer what its command would write; 1 if there is one."""
    from bench.fingerprints import stale

    found = [
        (page, why)
        for name, study in STUDIES.items()
        for page in study.pages
        if (why := stale(DOCS / f"{page}.md", name, _root(arguments)))
    ]
    for page, why in found:
        print(f"docs/{page}.md {why}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
