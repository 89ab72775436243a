"""One command for all that fewlabels is measured by.

    python -m benchmarks                               what there is
    python -m benchmarks PROTOCOL --data DIR --runs 50 --resume    a protocol of the papers
    python -m benchmarks NAME ...                      a study: writes or fills its pages in docs/
    python -m benchmarks stale [PAGE ...] [--data DIR]  pages whose code or data changed since
    python -m benchmarks stale [PAGE ...] --run [--minutes M]      runs some of their cells again
    python -m benchmarks stale [PAGE ...] --mark       lets pages say that their numbers are earlier

Run it from the root of the repository. DIR is by default FEWLABELS_DATA.
"""

from __future__ import annotations

import re
import runpy
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
sys.path.insert(0, str(HERE))  # modules of this folder import one another by their names

import fingerprints  # noqa: E402
import samples  # noqa: E402
from fingerprints import Record  # noqa: E402
from runs import DATA, command_line, rooms_imported  # noqa: E402
from samples import Sampler  # noqa: E402


class Study(NamedTuple):
    """Pages of docs/ that a module of this folder writes or fills, and data that it reads.

    Numbers that are `timed` are those of a machine and a day, which nothing can confirm.
    """

    pages: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    timed: bool = False


_ALL_SETS = ("adult", "cifar10", "mixed_lh", "nell", "ssme_civilcomments")
_DECIDED = ("adult", "cifar10", "ssme_civilcomments", "ssme_multinli")
_SSME = (
    "adult", "cifar10", "civilcomments", "classifiers", "correlation", "drawn-vs-expected",
    "effective-sizes", "ensembling", "ensembling-trained", "flow-adult", "flow-cifar10",
    "flow-civilcomments", "flow-em-civilcomments", "flow-em-multinli", "flow-mix-mnist",
    "mix-mnist", "multinli", "semisynthetic", "subgroups", "variants", "variants-multinli",
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
    "evaluator_speed": Study(("speed",), timed=True),
    "instead_of": Study(("instead-of",)),
    "judges": Study(("benchmarks/judges",), ("crowd", "llm_judges")),
    "labeling": Study(("benchmarks/labeling",), _ALL_SETS),
    "monitor": Study(
        ("benchmarks/monitor",), ("semeval_tweets", "sports_538", "ssme_civilcomments")
    ),
    "monotone_prior": Study(),
    "paper": Study(
        tuple(f"benchmarks/{name}" for name in _SSME),
        ("adult", "cifar10", "mixed_lh", "ssme_civilcomments", "ssme_multinli"),
    ),
    "papers": Study(("papers",)),
    "peers": Study((), _ALL_SETS),
    "pictures": Study(),
    "prior_judged": Study(),
    "quoted": Study(),
    "ranking": Study(("benchmarks/ranking",), ("llm_judges",)),
    "reference": Study(("reference-data",), ("llm_judges", "sports_538")),
    "scorer_search": Study(("tools",)),
    "screenshots": Study(),
    "speed": Study(("speed",), timed=True),
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


def _study(name: str, arguments: Sequence[str], sampler: Sampler | None = None) -> int:
    """Run a study, and keep records of the pages that it writes."""
    pages = [page for part in STUDIES[name].pages if (page := DOCS / f"{part}.md").exists()]
    before = {page: page.stat().st_mtime_ns for page in pages}
    sys.argv, sampler = [f"python -m benchmarks {name}", *arguments], sampler or Sampler()
    code = 0
    try:
        with samples.using(sampler):
            runpy.run_path(str(HERE / f"{name}.py"), run_name="__main__")
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    for page, changed in before.items():
        if not code and page.stat().st_mtime_ns != changed:
            stored = "--page-only" in arguments  # its code is that on which it ran
            new = {} if stored else _records(page, name, arguments, sampler)
            fingerprints.keep(name, page, new)
    return code


_HOW = re.compile(
    r" --(?:fresh|resume|run|(?:data|work|out|results|workers|minutes)[ =]\S+)(?= |$)"
)
"""Options on which no number depends: folders, processes, and what is taken over."""


def _records(
    page: Path, name: str, arguments: Sequence[str], sampler: Sampler
) -> dict[str, Record]:
    """What made a page: the calls of a command; one with the page's name is of no other page."""
    command = shlex.join(["python", "-m", "benchmarks", name, *_without_folders(arguments)])
    of_pages = {Path(part).name for part in STUDIES[name].pages} - {page.stem}
    calls = {c: s for c, s in sampler.found.items() if c not in of_pages}
    if page.stem in calls:
        calls = {page.stem: calls[page.stem]}
    elif sampler.found and not calls:
        return {}  # another study writes this page, in the same hour
    whole = {"cells": 0, "anew": 0, "seconds": 0, "rooms": sorted(rooms_imported()), "sample": []}
    places = sorted(STUDIES[name].data)
    made = {"command": _HOW.sub("", command), "places": places,
            "data": fingerprints.data_of(_root(arguments), places)}  # fmt: skip
    before, new = fingerprints.records_of(name).get(page.stem, {}), {}
    for call, sample in (calls or {"": whole}).items():
        if sample["anew"] == sample["cells"]:
            new[call] = {**made, **sample, "code": fingerprints.code_of(name, sample["rooms"])}
        elif sample["anew"] or before.get(call, {}).get("command") != made["command"]:
            # Nobody knows on which code the cells ran that were taken over.
            new[call] = {**made, **sample, "code": "unknown", "rooms": None}
    return new


def _without_folders(arguments: Sequence[str]) -> list[str]:
    """Arguments without the folders of a machine."""
    return [re.sub(r"^(--[\w-]+=)?/.*/", r"\1", argument) for argument in arguments]


def _root(arguments: Sequence[str]) -> Path:
    """The folder of the data: that of --data, or FEWLABELS_DATA."""
    given = re.search(r"--data[ =](\S+)", " ".join(arguments))
    return Path(given[1]) if given else DATA


def _stale(arguments: Sequence[str]) -> int:
    """Print each page that is no longer what its command would write; 1 if there is one.

    With --run a page whose sample agrees is confirmed, and is none of them. Nor is one that says
    that its numbers are of an earlier version, which --mark writes into it.
    """
    parser = command_line(__doc__, data=DATA, run=False, minutes=60.0, mark=False)
    parser.add_argument("pages", nargs="*", metavar="PAGE")
    given = parser.parse_args(arguments)
    asked, found, earlier = {Path(page).stem for page in given.pages}, 0, 0
    until = time.monotonic() + 60 * given.minutes
    for name, study in STUDIES.items():
        for page in (DOCS / f"{part}.md" for part in study.pages):
            for call in fingerprints.calls_of(page, name):
                if asked and page.stem not in asked:
                    continue
                why = fingerprints.stale(page, name, call, given.data, timed=study.timed)
                if why and given.run and call in fingerprints.records_of(name).get(page.stem, {}):
                    more = _confirm(page, name, call, given.data, until - time.monotonic())
                    why = f"{why}; {more}" if more else ""
                if why and given.mark:
                    fingerprints.mark(name, page, call)
                if why and fingerprints.is_marked(page, name, call):
                    earlier += 1
                elif why:
                    found += 1
                    print(f"docs/{page.relative_to(DOCS)}{' ' * bool(call)}{call} {why}")
    if earlier:
        print(f"{earlier} say themselves that they are of an earlier version.", file=sys.stderr)
    return int(found > 0)


def _confirm(page: Path, name: str, call: str, root: Path, seconds: float) -> str:
    """Run the sample of a call again, and confirm its record; why not, where it does not agree."""
    made = fingerprints.records_of(name)[page.stem][call]
    data, words = fingerprints.data_of(root, made["places"]), shlex.split(made["command"])[4:]
    if made["places"] and not data:
        return "its data are not at hand"
    if made["seconds"] > seconds:
        return f"its sample takes {made['seconds']:.0f} seconds"
    if not made["cells"]:
        return "its command fails" if _study(name, words) else ""
    with tempfile.TemporaryDirectory() as scratch:
        folders = dict.fromkeys(("work", "results"), Path(scratch))
        sampler = Sampler({call: made}, {"data": root.resolve(), **folders})
        try:
            failed = _study(name, words, sampler)
        except Exception as error:  # others are run nonetheless
            return f"its sample fails: {error!r}"
    if failed or sampler.differ or call not in sampler.found:
        return "; ".join(sampler.differ) or "its sample cannot be run"
    if made["rooms"] is not None:
        made["rooms"] = sorted({*made["rooms"], *sampler.found[call]["rooms"]})
    made.pop("earlier", None)
    made |= {"data": data, "confirmed": f"{len(made['sample'])} cells of {made['cells']:,}",
             "on": fingerprints.code_of(name, made["rooms"])}  # fmt: skip
    fingerprints.keep(name, page, {call: made})
    print(f"{page.stem} {call}: confirmed by {made['confirmed']}", file=sys.stderr)
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
