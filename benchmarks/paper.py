"""The SSME paper's experiments on real data: runs the protocols, and keeps what they found.

    python benchmarks/paper.py --data DIR [--work DIR] [--only NAME ...] [--runs N] [--workers N]

Every study is one `fewlabels benchmark` (the command is printed, and stands in the page). Cells
are kept in the work folder, so an interrupted study resumes. Pages and figures go to
docs/benchmarks.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "benchmarks"

CIVIL = ("--data", "ssme_civilcomments", "--exclude-models", "CORAL_seed1,CORAL_seed2")
ADULT = ("--data", "adult/predictions_test.parquet")
CIFAR = ("--data", "cifar10")
MNIST = ("--data", "mixed_lh/mixed_mnist_predictions.parquet", "--where", "partition=test")
QUICK = (
    "labeled,majority-vote,pseudo-label,dawid-skene,autoeval,active-testing,bayesian-calibration,"
    "ensemble,ssme-kde-marginal,ssme-kde,tempered-ensemble"
)


class Study(NamedTuple):
    """A protocol on data, with what is not as the protocol has it."""

    protocol: str
    options: tuple[str, ...]


FEW = "labeled,ensemble,ssme-kde,tempered-ensemble"

# A flow takes a hundred times as long to fit as anything else: studies with it come last and have
# fewer runs of it than of the others (its own pages say how many).
STUDIES = {
    "civilcomments": Study("ssme-binary", (*CIVIL, "--methods", QUICK)),
    "adult": Study("ssme-binary", (*ADULT, "--methods", QUICK)),
    "cifar10": Study("ssme-multiclass", (*CIFAR, "--methods", QUICK)),
    "mix-mnist": Study("ssme-multiclass", (*MNIST, "--methods", QUICK)),
    "subgroups": Study("ssme-subgroup", (*ADULT, "--methods", QUICK)),
    "classifiers": Study("ssme-per-classifier", (*CIVIL, "--methods", QUICK)),
    "effective-sizes": Study("ssme-ess", (*CIVIL, "--methods", QUICK)),
    "drawn-vs-expected": Study("ssme-drawn-vs-expected", (*CIVIL, "--methods", FEW)),
    "ensembling": Study("ssme-ensembling", (*CIVIL, *ADULT)),
    "correlation": Study("ssme-correlation", (*CIVIL, *ADULT)),
    "semisynthetic": Study(
        "ssme-semisynthetic", ("--data", "adult/data.parquet", "--methods", FEW)
    ),
    "flow-civilcomments": Study("ssme-binary", CIVIL),
    "flow-adult": Study("ssme-binary", ADULT),
    "flow-cifar10": Study("ssme-multiclass", CIFAR),
    "flow-mix-mnist": Study("ssme-multiclass", MNIST),
}
FLOW_RUNS = 10
FLOW = ("--methods", "labeled,ensemble,ssme-kde,ssme-flow,tempered-ensemble")


def command(name: str, runs: int | None) -> list[str]:
    """The `fewlabels benchmark` of a study, with paths relative to the data folder."""
    study = STUDIES[name]
    options = list(study.options)
    if name.startswith("flow-"):
        runs = min(runs or FLOW_RUNS, FLOW_RUNS)
        options += FLOW
    if runs:
        options += ["--runs", str(runs)]
    return ["benchmark", study.protocol, *options]


def run(name: str, data: Path, work: Path, runs: int | None, workers: int | None) -> None:
    """Run one study in the data folder, and copy its page and figures to docs."""
    out = work / name
    asked = command(name, runs)
    print(f"\n{name}: fewlabels {shlex.join(asked)}", flush=True)
    call = [sys.executable, "-m", "fewlabels", *asked, "--out", str(out)]
    if (out / "manifest.json").exists():
        call.append("--resume")
    if workers:
        call += ["--workers", str(workers)]
    with open(work / f"{name}.log", "w", encoding="utf-8") as log:
        subprocess.run(call, cwd=data, stdout=log, check=True)
    page = (out / "report.md").read_text(encoding="utf-8")
    heading, rest = page.split("\n", 1)
    told = f"{heading}\n\n    fewlabels {shlex.join(asked)}\n{rest}"
    (PAGES / f"{name}.md").write_text(told.replace("](figures/", f"](figures/{name}/"))
    figures = PAGES / "figures" / name
    if figures.exists():
        shutil.rmtree(figures)
    shutil.copytree(out / "figures", figures)


def main() -> None:
    """Run the studies that are asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = os.environ.get("FEWLABELS_DATA", ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(default))
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "paper")
    parser.add_argument("--only", nargs="+", choices=STUDIES, default=list(STUDIES))
    parser.add_argument("--runs", type=int)
    parser.add_argument("--workers", type=int)
    given = parser.parse_args()
    if not given.data.is_dir():
        parser.error(f"no data at {given.data}; name the folder with --data or FEWLABELS_DATA")
    given.work.mkdir(parents=True, exist_ok=True)
    (PAGES / "figures").mkdir(parents=True, exist_ok=True)
    for name in given.only:
        run(name, given.data.resolve(), given.work.resolve(), given.runs, given.workers)


if __name__ == "__main__":
    main()
