"""One command for all that fewlabels is measured by.

    python -m benchmarks                               what there is
    python -m benchmarks PROTOCOL --data DIR --runs 50 --resume    a protocol of the papers
    python -m benchmarks NAME ...                      a study: writes or fills its pages in docs/
    python -m benchmarks stale [PAGE ...] [--data DIR]  pages whose code or data changed since
    python -m benchmarks stale [PAGE ...] --run [--minutes M]      runs some of their cells again

Run it from the root of the repository. DIR is by default FEWLABELS_DATA.
"""

from __future__ import annotations

import argparse
import re
import runpy
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
sys.path.insert(0, str(HERE))  # modules of this folder import one another by their names

import fingerprints  # noqa: E402
import samples  # noqa: E402
from fingerprints import Key, Stamp  # noqa: E402
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
    "evaluator_speed": Study(("speed",), timed=True),
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
    """Run a study; pages that it writes get the fingerprints and samples of its calls."""
    pages = [page for part in STUDIES[name].pages if (page := DOCS / f"{part}.md").exists()]
    before = {page: (page.stat().st_mtime_ns, fingerprints.stamps_of(page)) for page in pages}
    sys.argv, sampler = [f"python -m benchmarks {name}", *arguments], sampler or Sampler()
    code = 0
    try:
        with samples.using(sampler):
            runpy.run_path(str(HERE / f"{name}.py"), run_name="__main__")
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    for page, (changed, stamps) in before.items():
        if code or page.stat().st_mtime_ns == changed:
            continue
        if "--page-only" not in arguments:
            stamps |= _stamps(page, name, arguments, sampler, stamps)
        fingerprints.write(page, stamps)  # what was not run again keeps the code that it ran on
    return code


def _stamps(
    page: Path, name: str, arguments: Sequence[str], sampler: Sampler, before: Mapping[Key, Stamp]
) -> dict[Key, Stamp]:
    """Keep the samples of the calls that made a page, and give the lines that it has of them.

    A call with the page's name is of no other page.
    """
    command = shlex.join(["python", "-m", "benchmarks", name, *_telling(arguments)])
    found = {c: s for c, s in sampler.found.items() if c == page.stem} or sampler.found
    whole = {"cells": 0, "anew": 0, "seconds": 0, "rooms": sorted(rooms_imported()), "sample": []}
    kept, stamps = fingerprints.samples_of(name), {}
    root, places = _root(arguments), tuple(sorted(STUDIES[name].data))
    for call, one in (found or {"": whole}).items():
        sample, old = dict(one), before.get((name, call))
        if (anew := sample.pop("anew")) < sample["cells"]:
            if not anew and old and old.command == command:
                continue  # the cells are those of the line
            sample["rooms"] = None  # nobody knows which code the others ran on
        code = "unknown" if sample["rooms"] is None else fingerprints.code_of(name, sample["rooms"])
        kept[fingerprints.title(page, call)] = sample
        stamps[name, call] = Stamp(command, code, fingerprints.data_of(root, places), places)
    fingerprints.keep_samples(name, kept)
    return stamps


_HOW = re.compile(r"--(?:(data|work|out|results|workers|minutes)(=.*)?|fresh|resume|run)")


def _telling(arguments: Sequence[str]) -> Iterator[str]:
    """Arguments on which numbers depend: no folders, processes, or what is taken over."""
    left = iter(_without_folders(arguments))
    for argument in left:
        if (how := _HOW.fullmatch(argument)) is None:
            yield argument
        elif how[1] and not how[2]:
            next(left, None)


def _without_folders(arguments: Sequence[str]) -> list[str]:
    """Arguments without the folders of a machine."""
    return [re.sub(r"^(--[\w-]+=)?/.*/", r"\1", argument) for argument in arguments]


def _root(arguments: Sequence[str]) -> Path:
    """The folder of the data: that of --data, or FEWLABELS_DATA."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--data", type=Path, default=DATA)
    root: Path = parser.parse_known_args(arguments)[0].data
    return root


def _stale(arguments: Sequence[str]) -> int:
    """Print each page that is no longer what its command would write; 1 if there is one.

    With --run a page whose sample agrees is confirmed, and is none of them.
    """
    parser = command_line(__doc__, data=DATA, run=False, minutes=60.0)
    parser.add_argument("pages", nargs="*", metavar="PAGE")
    given = parser.parse_args(arguments)
    asked, found = {Path(page).stem for page in given.pages}, 0
    until = time.monotonic() + 60 * given.minutes
    every = [(DOCS / f"{part}.md", name) for name, study in STUDIES.items() for part in study.pages]
    for page, name in every:
        for call in fingerprints.calls_of(page, name) if page.stem in asked or not asked else ():
            timed = STUDIES[name].timed
            why = fingerprints.stale(page, (name, call), given.data, timed=timed)
            if why and given.run:
                why = _confirm(page, (name, call), why, given.data, until - time.monotonic())
            if why:
                found += 1
                print(f"docs/{page.relative_to(DOCS)}{' ' * bool(call)}{call} {why}", flush=True)
    return int(found > 0)


def _confirm(page: Path, key: Key, why: str, root: Path, seconds: float) -> str:
    """Run the sample of a call again, and stamp the page if it agrees; else why it is stale."""
    (name, call), title = key, fingerprints.title(page, key[1])
    stamps, kept = fingerprints.stamps_of(page), fingerprints.samples_of(name)
    made, sample = stamps.get(key), kept.get(title)
    if made is None or sample is None:
        return why
    data = fingerprints.data_of(root, made.places)
    if made.places and not data:
        return f"{why}; its data are not at hand"
    if sample["seconds"] > seconds:
        return f"{why}; its sample takes {sample['seconds']:.0f} seconds"
    words = shlex.split(made.command)[4:]
    if not sample["cells"]:  # it is run as a whole
        return f"{why}; its command fails" if _study(name, words) else ""
    with tempfile.TemporaryDirectory() as scratch:
        folders = dict.fromkeys(("work", "results"), Path(scratch))
        sampler = Sampler({call: sample}, {"data": root.resolve(), **folders})
        failed = _study(name, words, sampler)
    if failed or sampler.differ or call not in sampler.found:
        return "; ".join([why, *(sampler.differ or ["its sample cannot be run"])])
    if sample["rooms"] is not None:
        sample["rooms"] = sorted({*sample["rooms"], *sampler.found[call]["rooms"]})
        fingerprints.keep_samples(name, kept)
    stamps[key] = made._replace(
        data=data, cells=f"{len(sample['sample'])} cells of {sample['cells']:,}",
        on=fingerprints.code_of(name, sample["rooms"]),
    )  # fmt: skip
    fingerprints.write(page, stamps)
    print(f"{title}: confirmed by {stamps[key].cells}", file=sys.stderr)
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
