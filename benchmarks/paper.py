"""The SSME paper's experiments on real data: runs the protocols, and keeps what they found.

    python -m benchmarks paper --data DIR [--work DIR] [--only NAME ...] [--resume]

Every study is one protocol of `python -m benchmarks` on one or several sets; the command is
printed, and stands in the page. Pages and figures go to docs/benchmarks. An interrupted study goes
on with --resume; do so only with unchanged code, as finished cells are kept. At the end come the
tables and figures of several studies, of those whose results are there; `--only` alone makes these.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import linregress

import fewlabels as fl
from bench import command
from bench.errors import Errors
from bench.figures import Figure, Panel, draw, ratios
from bench.results import Results, joined
from bench.splits import draw as draw_split
from bench.splits import halve
from bench.tables import points
from fewlabels.kernels.simplex import additive_log_ratio, clip
from runs import DATA, ROOT, across, command_line, fill, markdown
from samples import Taken

PAGES = ROOT / "docs" / "benchmarks"
RESULTS = ROOT / "benchmarks" / "results"

CIVIL = ("--data", "ssme_civilcomments", "--exclude-models", "CORAL_seed1,CORAL_seed2")
ADULT = ("--data", "adult/predictions_test.parquet")
CIFAR = ("--data", "cifar10")
MULTINLI = ("--data", "ssme_multinli")
MNIST = ("--data", "mixed_lh/mixed_mnist_predictions.parquet", "--where", "partition=test")
QUICK = (
    "labeled,majority-vote,pseudo-label,dawid-skene,autoeval,active-testing,bayesian-calibration,"
    "ensemble,ssme-kde-marginal,ssme-kde,tempered-ensemble"
)
BINARY = f"{QUICK},spe"


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
    "labeled,majority-vote[hard=false],majority-vote[hard=true],"
    "pseudo-label[features=log-ratios],autoeval[proxy=ensemble],"
    "active-testing[weighted=false],active-surrogate,active-surrogate[rounds=1],"
    "ssme-kde-marginal[compat=official],ssme-kde-marginal[epochs=200],"
    "ssme-kde-marginal[epochs=1000],ssme-kde[bandwidth=scott],ssme-kde[bandwidth=normal-reference],"
    "ssme-kde[bandwidth=1.0],ssme-kde[bandwidth=2.0],ssme-kde[leave_one_out=true]"
)
BINARY_VARIANTS = (
    f"{VARIANTS},bayesian-calibration[offset_sd=1.0,slope_sd=0.3],"
    "bayesian-calibration[offset_sd=1.0,slope_sd=0.4],"
    "bayesian-calibration[offset_sd=1.0,slope_sd=1.0],"
    "spe[families=normal],spe[families=normal,scale=probability,truncation=unit]"
)

# The paper's EM of the flow: the flow is fixed in the second stage, covariances have no prior.
PAPER_FLOW = ("--methods", "labeled,ensemble,ssme-flow[covariance_prior=0.0,joint=false]")

# A flow takes a hundred times as long to fit as anything else: studies with it come last, apart
# from the others, and have fewer runs.
FLOW = ("--methods", "labeled,ensemble,ssme-kde,ssme-flow,tempered-ensemble")

STUDIES = {
    "civilcomments": Study("ssme-binary", (*CIVIL, "--methods", BINARY)),
    "adult": Study("ssme-binary", (*ADULT, "--methods", BINARY)),
    "cifar10": Study("ssme-multiclass", (*CIFAR, "--methods", QUICK)),
    "mix-mnist": Study("ssme-multiclass", (*MNIST, "--methods", QUICK)),
    "multinli": Study("ssme-multiclass", (*MULTINLI, "--methods", QUICK)),
    "drawn-vs-expected": Study("ssme-drawn-vs-expected", (*CIVIL, "--methods", FEW)),
    "effective-sizes": Study("ssme-ess", (*CIVIL, *MULTINLI, *ADULT, *CIFAR, "--methods", FEW)),
    "ensembling": Study("ssme-ensembling", (*CIVIL, *ADULT)),
    "subgroups": Study("ssme-subgroup", (*ADULT, *MULTINLI, "--methods", QUICK, "--runs", "10")),
    "correlation": Study("ssme-correlation", (*CIVIL, *ADULT, "--runs", "5")),
    "classifiers": Study("ssme-per-classifier", (*CIVIL, *MULTINLI, "--methods", QUICK)),
    "semisynthetic": Study(
        "ssme-semisynthetic", ("--data", "adult/data.parquet", "--methods", FEW)
    ),
    "variants": Study("ssme-binary", (*CIVIL, "--methods", BINARY_VARIANTS, "--curve-runs", "0")),
    "variants-multinli": Study(
        "ssme-multiclass", (*MULTINLI, "--methods", VARIANTS, "--curve-runs", "0")
    ),
    "ensembling-trained": Study("ssme-ensembling-trained", ("--data", "adult/data.parquet")),
    "flow-cifar10": Study("ssme-multiclass", (*CIFAR, *FLOW, "--runs", "10")),
    "flow-mix-mnist": Study("ssme-multiclass", (*MNIST, *FLOW, "--runs", "10")),
    "flow-civilcomments": Study("ssme-binary", (*CIVIL, *FLOW, "--runs", "10")),
    "flow-adult": Study("ssme-binary", (*ADULT, *FLOW, "--runs", "5")),
    "flow-em-multinli": Study("ssme-multiclass", (*MULTINLI, *PAPER_FLOW, "--runs", "10")),
    "flow-em-civilcomments": Study("ssme-binary", (*CIVIL, *PAPER_FLOW, "--runs", "10")),
}


def run(
    name: str, data: Path, work: Path, *, runs: int | None, workers: int | None, resume: bool
) -> None:
    """Run one study in the data folder, and copy its page and figures to docs."""
    out, study = work / name, STUDIES[name]
    asked = [study.protocol, *study.options, *(["--runs", str(runs)] if runs else [])]
    line = f"python -m benchmarks {shlex.join(asked)}"
    print(f"\n{name}: {line}", flush=True)
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
        if code := command.main(call, line):
            raise SystemExit(code)
    page = (out / "report.md").read_text(encoding="utf-8")
    heading, rest = page.split("\n", 1)
    told = f"{heading}\n\n    {line}\n\n{PRIOR}\n{rest}"
    (PAGES / f"{name}.md").write_text(told.replace("](figures/", f"](figures/{name}/"))
    figures = PAGES / "figures" / name
    shutil.rmtree(figures, ignore_errors=True)
    if (out / "figures").exists():  # a protocol may have tables alone
        shutil.copytree(out / "figures", figures)


SETS = {
    "CivilComments": "civilcomments", "Adult": "adult", "CIFAR-10": "cifar10",
    "Mix-MNIST": "mix-mnist", "MultiNLI": "multinli",
}  # fmt: skip
ECE = ("ece_quantile", "ece")
"""Of two classes, and of more."""


def overview(work: Path) -> str:
    """Errors of every method on every set, and RMAE against Labeled on the same splits."""
    parts, titles = [], {}
    for title, name in SETS.items():
        for study in (name, f"flow-{name}"):
            if (work / study / "results.parquet").exists():
                found = Results.load(work / study)
                titles[found.datasets[0].name] = title
                flow = found.rows["method"] == "ssme-flow"
                parts.append(replace(found, rows=found.rows[flow == (study != name)]))
    errors = Errors(joined(parts))
    cells = errors.cells[errors.cells["mean"].notna()]
    runs = cells["n_runs"].map(lambda n: f"; {n} runs" if n < 50 else "")
    text = cells["mean"].map("{:.2f} (".format) + cells["rmae"].map("{:.2f}".format) + runs + ")"
    order = pd.Categorical(cells["method"], errors.methods)
    cells = cells.assign(text=text, set=cells["dataset"].map(titles), method=order)
    cells = cells.sort_values(["method", "n_labeled"], kind="stable")
    cells["method"] = "`" + cells["method"].astype(str) + "`"
    tables = []
    for kind, metrics in {"accuracy": ["accuracy"], "ECE": [*ECE]}.items():
        own = cells[cells["metric"].isin(metrics)]
        wide = across(own, ["method", "n_labeled"], "set", empty="-")
        head = f"**{kind}**, mean absolute error in points (times that of `labeled`)"
        tables += [f"\n{head}\n\n{markdown(wide, ['', 'n_l'])}"]
    return "\n".join(tables)


FIGURES = {
    "Error over that of labels alone, two classes (Figure 2)": ("civilcomments", "adult"),
    "The same, more classes (Figure 3)": ("multinli", "cifar10", "mix-mnist"),
}
"""Figures of the paper that are of several studies."""


def figures(data: Path, work: Path) -> None:
    """Figures 1 to 3 of the paper: the first of the data, the others of studies that have run."""
    drawn = {"Scores, fitted classes and metrics (Figure 1)": (explained(data), ())}
    for title, names in FIGURES.items():
        if all((work / name / "results.parquet").exists() for name in names):
            errors = Errors(joined([Results.load(work / name) for name in names]))
            ((_, panels),) = ratios(errors)
            drawn[title] = Figure("ratios", "", panels), errors.methods
    lines = []
    for title, (figure, styles) in drawn.items():
        place = f"benchmarks/figures/ssme/figure{title[-2]}.svg"
        draw(figure, ROOT / "docs" / place, styles)
        lines += [f"\n![{title}]({place})"]
    fill(ROOT / "docs" / "choosing-a-method.md", {"figures": "\n".join(lines)})


def explained(data: Path) -> Figure:
    """Scores of two classifiers, what SSME-KDE says of their items, and a classifier's metrics."""
    pair, metrics = ["ERM", "IRM"], ["accuracy", "ece", "roc_auc", "average_precision"]
    file = data / CIVIL[1] / "data.parquet"
    everything = fl.read_predictions(file).select_models(pair)
    half, rest = halve(everything.n_items, 0)
    rows, labeled = draw_split(
        "released", everything.labels, half, 20, 1000, 2, run=0, seed=0, dataset=file.parent.name
    )
    items = everything.take(rows).revealing(labeled)
    x, y = additive_log_ratio(clip(items.probabilities), 0).T
    ask = partial(fl.estimate, metrics=metrics, confidence_level=None, estimand="sample")
    found = {"SSME-KDE": ask(items, "ssme-kde"), "labels alone": ask(items, "labeled"),
             "truth": ask(everything.take(rest), "labeled")}  # fmt: skip
    p = found["SSME-KDE"].posterior.marginals()[:, 1]

    def places(**shown: np.ndarray) -> dict[str, pd.DataFrame]:
        all_items = pd.DataFrame({"x": x, "mean": y, "se": 0.0})
        few = labeled | (np.arange(len(x)) < 400)  # as many as can be seen
        return {name.replace("_", " "): all_items[where & few] for name, where in shown.items()}

    values = {name: pd.DataFrame({"x": range(len(metrics)), "se": 0.0, "mean": [
        100 * one.get(pair[0], metric).value for metric in metrics
    ]}) for name, one in found.items()}  # fmt: skip
    known = places(no_label=~labeled, not_toxic=items.labels == 0, toxic=items.labels == 1)
    said = places(not_toxic=~labeled & (p <= 0.5), toxic=~labeled & (p > 0.5))
    across, up = (f"log-odds by {name}" for name in pair)
    return Figure("explained", "", [
        Panel("items, 20 of them labeled", across, "", known, y=up),
        Panel("the likelier class by SSME-KDE", across, "", said, y=up),
        Panel(f"metrics of {pair[0]}", "", "", values, metrics, y="points"),
    ])  # fmt: skip


def worth_of_two(folder: Path) -> dict[str, float]:
    """How much more accurate three classifiers would have to be, in points, to do as five do.

    The error of SSME-KDE falls by a slope with the mean accuracy of sets of three; what two more
    classifiers save is divided by it (the paper: worth more than 5%).
    """
    errors = Errors(Results.load(folder))
    runs = errors.runs.query("metric == 'accuracy' and method == 'ssme-kde'")
    found = points(errors, runs, "mean_accuracy")
    three, five = (100 * found[found["level"] == level][["x", "error"]] for level in "35")
    line = linregress(three["x"], three["error"])
    saved = three["error"].mean() - five["error"].mean()
    return {"slope": line.slope, "slope_se": line.stderr, "saved": saved,
            "worth": saved / -line.slope}  # fmt: skip


def main() -> None:
    """Run the studies that are asked for, or all."""
    work = ROOT / "build" / "paper"
    parser = command_line(__doc__, data=DATA, work=work, runs=int, workers=int, resume=False)
    parser.add_argument("--only", nargs="*", choices=STUDIES, default=list(STUDIES))
    given = parser.parse_args()
    if not given.data.is_dir():
        parser.error(f"no data at {given.data}; name the folder with --data or FEWLABELS_DATA")
    given.work.mkdir(parents=True, exist_ok=True)
    (PAGES / "figures").mkdir(parents=True, exist_ok=True)
    for name in given.only:
        with contextlib.suppress(Taken):
            how = {"runs": given.runs, "workers": given.workers, "resume": given.resume}
            run(name, given.data.resolve(), given.work.resolve(), **how)
    if (given.work / "semisynthetic" / "results.parquet").exists():
        kept = {"command": "python -m benchmarks paper --only semisynthetic"}
        kept |= worth_of_two(given.work / "semisynthetic")
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "semisynthetic.json").write_text(json.dumps(kept) + "\n", encoding="utf-8")
    if all((given.work / folder / "results.parquet").exists() for folder in SETS.values()):
        fill(ROOT / "docs" / "choosing-a-method.md", {"errors": overview(given.work)})
    figures(given.data, given.work)


if __name__ == "__main__":
    main()
