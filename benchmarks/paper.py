"""The SSME paper's experiments on real data: runs the protocols, and keeps what they found.

    python -m benchmarks paper --data DIR [--work DIR] [--only NAME ...] [--resume]

Every study is one protocol of `python -m benchmarks`; the command is printed, and stands in the
page. Pages and figures go to docs/benchmarks. An interrupted study goes on with --resume; do so
only with unchanged code, as finished cells are kept.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bench import command
from runs import DATA, ROOT, command_line, fill, table
from samples import Taken

PAGES = ROOT / "docs" / "benchmarks"
RESULTS = ROOT / "benchmarks" / "results"

CIVIL = ("--data", "ssme_civilcomments", "--exclude-models", "CORAL_seed1,CORAL_seed2")
ADULT = ("--data", "adult/predictions_test.parquet")
CIFAR = ("--data", "cifar10")
MNIST = ("--data", "mixed_lh/mixed_mnist_predictions.parquet", "--where", "partition=test")
QUICK = (
    "labeled,majority-vote,pseudo-label,dawid-skene,autoeval,active-testing,bayesian-calibration,"
    "ensemble,ssme-kde-marginal,ssme-kde,tempered-ensemble"
)


PRIOR = (
    "The prior of `tempered-ensemble` was set with CivilComments and sets trained with\n"
    "scikit-learn in view, so its rows there describe it and prove little."
)


class Study(NamedTuple):
    """A protocol on data, with what is not as the protocol has it."""

    protocol: str
    options: tuple[str, ...]


FEW = "labeled,ensemble,ssme-kde,tempered-ensemble"

# Spelled as the seeds of the stored results have them: settings by name, of their types.
# What a sentence in docs/choosing-a-method.md says of settings other than the defaults.
VARIANTS = (
    "labeled,majority-vote[hard=false],pseudo-label[features=log-ratios],autoeval[proxy=ensemble],"
    "active-testing[weighted=false],active-surrogate,active-surrogate[rounds=1],"
    "bayesian-calibration[offset_sd=1.0,slope_sd=0.3],"
    "bayesian-calibration[offset_sd=1.0,slope_sd=0.4],"
    "bayesian-calibration[offset_sd=1.0,slope_sd=1.0],"
    "ssme-kde-marginal[compat=official],ssme-kde[bandwidth=scott],ssme-kde[leave_one_out=true]"
)

# The paper's EM of the flow: the flow is fixed in the second stage, covariances have no prior.
PAPER_FLOW = ("--methods", "labeled,ensemble,ssme-flow[covariance_prior=0.0,joint=false]")

# A flow takes a hundred times as long to fit as anything else: studies with it come last, apart
# from the others, and have fewer runs.
FLOW = ("--methods", "labeled,ensemble,ssme-kde,ssme-flow,tempered-ensemble")

STUDIES = {
    "civilcomments": Study("ssme-binary", (*CIVIL, "--methods", QUICK)),
    "adult": Study("ssme-binary", (*ADULT, "--methods", QUICK)),
    "cifar10": Study("ssme-multiclass", (*CIFAR, "--methods", QUICK)),
    "mix-mnist": Study("ssme-multiclass", (*MNIST, "--methods", QUICK)),
    "drawn-vs-expected": Study("ssme-drawn-vs-expected", (*CIVIL, "--methods", FEW)),
    "effective-sizes": Study("ssme-ess", (*CIVIL, "--methods", FEW)),
    "ensembling": Study("ssme-ensembling", (*CIVIL, *ADULT)),
    "subgroups": Study("ssme-subgroup", (*ADULT, "--methods", QUICK, "--runs", "10")),
    "correlation": Study("ssme-correlation", (*CIVIL, *ADULT, "--runs", "5")),
    "classifiers": Study("ssme-per-classifier", (*CIVIL, "--methods", QUICK, "--runs", "10")),
    "semisynthetic": Study(
        "ssme-semisynthetic", ("--data", "adult/data.parquet", "--methods", FEW)
    ),
    "variants": Study("ssme-binary", (*CIVIL, "--methods", VARIANTS, "--curve-runs", "0")),
    "ensembling-trained": Study("ssme-ensembling-trained", ("--data", "adult/data.parquet")),
    "flow-cifar10": Study("ssme-multiclass", (*CIFAR, *FLOW, "--runs", "10")),
    "flow-mix-mnist": Study("ssme-multiclass", (*MNIST, *FLOW, "--runs", "10")),
    "flow-civilcomments": Study("ssme-binary", (*CIVIL, *FLOW, "--runs", "10")),
    "flow-adult": Study("ssme-binary", (*ADULT, *FLOW, "--runs", "5")),
    "flow-em-cifar10": Study("ssme-multiclass", (*CIFAR, *PAPER_FLOW, "--runs", "10")),
    "flow-em-civilcomments": Study("ssme-binary", (*CIVIL, *PAPER_FLOW, "--runs", "10")),
}


def run(
    name: str, data: Path, work: Path, *, runs: int | None, workers: int | None, resume: bool
) -> None:
    """Run one study in the data folder, and copy its page and figures to docs."""
    out, study = work / name, STUDIES[name]
    asked = [study.protocol, *study.options, *(["--runs", str(runs)] if runs else [])]
    print(f"\n{name}: python -m benchmarks {shlex.join(asked)}", flush=True)
    call = [*asked, "--out", str(out)]
    if resume and (out / "manifest.json").exists():
        call.append("--resume")
    else:
        # Cells of an earlier state of the code must not mix with those of this one.
        shutil.rmtree(out, ignore_errors=True)
    if workers:
        call += ["--workers", str(workers)]
    with (
        open(work / f"{name}.log", "w", encoding="utf-8") as log,
        contextlib.chdir(data), contextlib.redirect_stdout(log),
    ):  # fmt: skip
        if code := command.main(call, f"python -m benchmarks {shlex.join(asked)}"):
            raise SystemExit(code)
    page = (out / "report.md").read_text(encoding="utf-8")
    heading, rest = page.split("\n", 1)
    told = f"{heading}\n\n    python -m benchmarks {shlex.join(asked)}\n\n{PRIOR}\n{rest}"
    (PAGES / f"{name}.md").write_text(told.replace("](figures/", f"](figures/{name}/"))
    figures = PAGES / "figures" / name
    if figures.exists():
        shutil.rmtree(figures)
    if (out / "figures").exists():  # a protocol may have tables alone
        shutil.copytree(out / "figures", figures)


SETS = {
    "CivilComments": "civilcomments",
    "Adult": "adult",
    "CIFAR-10": "cifar10",
    "Mix-MNIST": "mix-mnist",
}
ECE = {"CivilComments": "ece_quantile", "Adult": "ece_quantile"}

# CivilComments (the paper's "toxicity"), as the paper prints it: accuracy (Table S3), and the
# figures of the other metrics that are at hand (S4, S5).
PRINTED = {
    "labeled": (5.95, 4.03, 2.43),
    "majority-vote": (4.62, 4.47, 4.26),
    "pseudo-label": (5.03, 2.88, 1.90),
    "dawid-skene": (4.82, 4.65, 4.46),
    "autoeval": (5.27, 3.37, 2.34),
    "active-testing": (7.19, 7.26, 7.50),
    "bayesian-calibration": (5.29, 4.57, 3.78),
    "ssme-kde-marginal": (6.71, 5.38, 3.80),
    "ssme-kde": (2.34, 2.22, 2.14),
}
PRINTED_OTHERS = {
    "ece_quantile": {"ssme-kde": (2.35, 2.26, 2.19)},
    "roc_auc": {"ssme-kde": (3.34, 3.15, 3.09)},
    "average_precision": {"ssme-kde": (10.88, 9.90, 9.90)},
}


def errors(folder: Path, metric: str) -> pd.DataFrame:
    """Error of every method, n_l and run in points: the mean over the classifiers."""
    rows = pd.read_parquet(folder / "results.parquet")
    rows = rows[(rows.metric == metric) & (rows.factor == "") & (rows.group == "")]
    rows = rows.assign(error=100 * (rows.estimate - rows.truth).abs())
    return rows.groupby(["method", "n_labeled", "run"], sort=False).error.mean().unstack()


def overview(work: Path) -> str:
    """Errors of every method on every set, and RMAE against Labeled on the same splits."""
    parts = []
    for kind in ("accuracy", "ECE"):
        cells = {}
        for title, folder in SETS.items():
            metric = "accuracy" if kind == "accuracy" else ECE.get(title, "ece")
            for name in (folder, f"flow-{folder}"):
                if not (work / name / "results.parquet").exists():
                    continue
                found = errors(work / name, metric)
                for (method, n), own in found[found.notna().all(axis=1)].iterrows():
                    if (method == "ssme-flow") == name.startswith("flow-"):
                        ratio = own.mean() / found.loc[("labeled", n)].mean()
                        runs = f"; {len(own)} runs" if len(own) < 50 else ""
                        cells[title, method, n] = f"{own.mean():.2f} ({ratio:.2f}{runs})"
        wide = pd.Series(cells).unstack(0).reindex(columns=list(SETS)).fillna("-")
        rows = [
            [f"`{method}`" if n == 20 else "", n, *wide.loc[(method, n)]]
            for method in (*QUICK.split(","), "ssme-flow", "all-labels-known")
            for n in (20, 50, 100) if (method, n) in wide.index
        ]  # fmt: skip
        head = f"**{kind}**, mean absolute error in points (times that of `labeled`)"
        parts.append(f"\n{head}\n\n{table(['', 'n_l', *SETS], rows)}")
    return "\n".join(parts)


def beside_the_paper(work: Path) -> str:
    """Errors on CivilComments beside the paper's figures, a table for each metric."""
    parts = []
    for metric in ("accuracy", *PRINTED_OTHERS):
        printed = PRINTED if metric == "accuracy" else PRINTED_OTHERS[metric]
        found = errors(work / "civilcomments", metric)
        known = found.index[found.notna().all(axis=1)]
        texts = found.mean(axis=1).map("{:.2f} ± ".format) + found.std(axis=1).map("{:.2f}".format)
        rows = [
            [f"`{method}`", *(texts[method, n] for n in (20, 50, 100)),
             " / ".join(f"{value:.2f}" for value in printed.get(method, ())) or "-"]
            for method in PRINTED if (method, 20) in known
        ]  # fmt: skip
        head = ["", *(f"n_l = {n}" for n in (20, 50, 100)), "paper"]
        parts.append(f"\n**{metric}**\n\n{table(head, rows)}")
    return "\n".join(parts)


def worth_of_two(folder: Path) -> dict[str, float]:
    """How much more accurate three classifiers would have to be, in points, to do as five do.

    The error of SSME-KDE falls by a slope with the mean accuracy of sets of three; what two more
    classifiers save is divided by it (the paper: worth more than 5%).
    """
    rows = pd.read_parquet(folder / "results.parquet")
    rows = rows[(rows.metric == "accuracy") & (rows.method == "ssme-kde")]
    rows = rows.assign(error=100 * (rows.estimate - rows.truth).abs())
    error = rows.groupby([rows.level.astype(str), "run"]).error.mean()
    traits = pd.read_parquet(folder / "traits.parquet")
    traits = traits[(traits.name == "mean_accuracy") & (traits.level == "3")]
    accuracy = 100 * traits.set_index("run")["value"]
    three, five = error["3"], error["5"]
    x = accuracy.reindex(three.index) - accuracy.mean()
    slope = float((x * (three - three.mean())).sum() / (x**2).sum())
    noise = float((three - three.mean() - slope * x).std(ddof=2) / (x**2).sum() ** 0.5)
    saved = float((three - five).mean())
    return {"slope": slope, "slope_se": noise, "saved": saved, "worth": saved / -slope}


def main() -> None:
    """Run the studies that are asked for, or all."""
    work = ROOT / "build" / "paper"
    parser = command_line(__doc__, data=DATA, work=work, runs=int, workers=int, resume=False)
    parser.add_argument("--only", nargs="+", choices=STUDIES, default=list(STUDIES))
    given = parser.parse_args()
    if not given.data.is_dir():
        parser.error(f"no data at {given.data}; name the folder with --data or FEWLABELS_DATA")
    given.work.mkdir(parents=True, exist_ok=True)
    (PAGES / "figures").mkdir(parents=True, exist_ok=True)
    for name in given.only:
        with contextlib.suppress(Taken):
            run(
                name, given.data.resolve(), given.work.resolve(),
                runs=given.runs, workers=given.workers, resume=given.resume,
            )  # fmt: skip
    if (given.work / "semisynthetic" / "results.parquet").exists():
        kept = {"command": "python -m benchmarks paper --only semisynthetic"}
        kept |= worth_of_two(given.work / "semisynthetic")
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "semisynthetic.json").write_text(json.dumps(kept) + "\n", encoding="utf-8")
    if all((given.work / folder / "results.parquet").exists() for folder in SETS.values()):
        tables = {"errors": overview(given.work), "paper": beside_the_paper(given.work)}
        fill(ROOT / "docs" / "choosing-a-method.md", tables)


if __name__ == "__main__":
    main()
