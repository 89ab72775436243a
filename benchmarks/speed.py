"""Speed and memory, as ratios within one run against what a user would run instead.

    python -m benchmarks speed [--out docs/speed.md] [--rows 1000000]

Each figure is the best of three runs of ours against the rival's, one after the other in the same
process; the rival's slow loops are timed on a part and scaled, as said beside them. Data are made
here: seven classifiers whose log-odds share a signal and an error, 11% positive.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

import fewlabels as fl
from fewlabels.kernels.blocks import using_workers
from measure import best, elsewhere, memory, timed

HEAD = ("what", "fewlabels", "instead", "ratio", "target")
MODELS = 7


Line = tuple[str, ...]
"""A row of the table, as `HEAD` says."""


def beside(
    what: str, ours: float, rival: float, instead: str, target: str, digits: int = 0
) -> Line:
    """A row of seconds, and how many times as long what is run instead takes."""
    return (
        what, f"{ours:.2f} s", f"{rival:.{digits}f} s ({instead})", f"{rival / ours:.0f}x", target
    )  # fmt: skip


def make_scores(n: int, seed: int, models: int = MODELS) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (n, M) and labels (n,) of correlated, differently calibrated classifiers."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.11).astype(np.int64)
    shared = rng.normal(size=n)
    skill = np.linspace(2.0, 3.5, models)
    noise = rng.normal(size=(n, models))
    logits = skill * (labels[:, None] - 0.5) + 0.8 * shared[:, None] + noise - 1.5
    return 1 / (1 + np.exp(-logits * np.linspace(0.7, 1.8, models))), labels


def few_labels(n: int, seed: int, known: int = 20) -> fl.Predictions:
    """Predictions of `n` items of which `known` are labeled."""
    scores, truth = make_scores(n, seed)
    return fl.Predictions(scores, np.where(np.arange(n) < known, truth, -1))


def reference_epochs(points: np.ndarray, start: np.ndarray, epochs: int) -> np.ndarray:
    """EM as the reference states it, in double precision by brute force: posteriors (n, K)."""
    w = start.copy()
    half = 0.5 * (points**2).sum(axis=1)
    for _ in range(epochs):
        density = np.empty_like(w)
        for block in range(0, len(points), 500):
            rows = slice(block, block + 500)
            exponent = points[rows] @ points.T - half[rows, None] - half
            density[rows] = np.exp(np.minimum(exponent, 0)) @ w
        joint = density / w.sum(axis=0) * w.mean(axis=0)
        joint[:20] = start[:20]
        w = joint / joint.sum(axis=1, keepdims=True)
    return w


def sklearn_epoch(points: np.ndarray, w: np.ndarray) -> None:
    """One epoch as the released code does it: a tree of kernels per class, at bandwidth 1."""
    from sklearn.neighbors import KernelDensity

    for weight in w.T:
        KernelDensity(bandwidth=1.0).fit(points, None, weight + 1e-300).score_samples(points)


def kde(bandwidth: str, n: int = 10_000, epochs: int = 20) -> Line:
    """The fit of ssme-kde, 20 epochs; scikit-learn timed for one epoch."""
    predictions = few_labels(n, 1)
    model = fl.models.SSMEKDE(bandwidth=bandwidth, epochs=epochs)
    ours, fitted = best(lambda: model.fit(predictions, np.random.default_rng(0)), 2)
    mixture = fitted.mixture
    start = mixture._start(1, 0)[:, :, 0]
    expected = reference_epochs(mixture.points, start, epochs)
    error = float(np.abs(expected - fitted.result.responsibilities[:, :, 0]).max())
    epoch, _ = best(lambda: sklearn_epoch(mixture.points, start), 1)
    peak = elsewhere("speed", f"kde_memory({bandwidth!r}, {n}, {epochs})")
    return beside(
        f"ssme-kde fit, n={n}, d=7, K=2, {epochs} epochs, bandwidth {bandwidth}; posteriors within "
        f"{error:.0e} of double precision; peak {peak:.0f} MB",
        ours, epochs * epoch, "scikit-learn KernelDensity; one epoch timed", "200x, 1e-6, 1500 MB",
    )  # fmt: skip


def kde_memory(bandwidth: str, n: int, epochs: int) -> float:
    """Peak memory in MB of the fit alone."""
    model = fl.models.SSMEKDE(bandwidth=bandwidth, epochs=epochs)
    model.fit(few_labels(n, 1), np.random.default_rng(0))
    return memory()


def sklearn_metrics(y: np.ndarray, p: np.ndarray) -> list[float]:
    """Accuracy, AUC, average precision and both ECEs of one draw, as a user would write them."""
    from sklearn.metrics import accuracy_score, average_precision_score, roc_auc_score

    width = np.digitize(p, np.linspace(0, 1, 16)[1:-1])
    edges = np.quantile(p, np.linspace(0, 1, 11))
    quantile = np.clip(np.searchsorted(edges, p, side="left") - 1, 0, 9)
    gaps = [abs(p[width == b].sum() - y[width == b].sum()) for b in range(15)]
    means = [abs(p[quantile == b].mean() - y[quantile == b].mean()) for b in np.unique(quantile)]
    return [
        accuracy_score(y, p > 0.5), roc_auc_score(y, p), average_precision_score(y, p),
        sum(gaps) / len(y), float(np.mean(means)),
    ]  # fmt: skip


def draws(n: int = 10_000, size: int = 400) -> Line:
    """Intervals from labels alone: 400 draws x 7 models x 5 metrics; scikit-learn for 5 draws."""
    scores, truth = make_scores(n, 2)
    scores = scores.round(3)  # ties
    predictions = fl.Predictions(scores, truth)
    names = ["accuracy", "roc_auc", "average_precision", "ece", "ece_quantile"]
    ours, found = best(lambda: fl.estimate(predictions, "labeled", names))
    values = np.array([[found.get(m, name).value for name in names] for m in predictions.models])
    error = np.abs(values - [sklearn_metrics(truth, scores[:, j]) for j in range(MODELS)]).max()
    few, rng = 5, np.random.default_rng(3)
    chosen = [rng.integers(n, size=n) for _ in range(few)]
    loop, _ = best(
        lambda: [[sklearn_metrics(truth[rows], scores[rows, j]) for j in range(MODELS)]
                 for rows in chosen], 1
    )  # fmt: skip
    return beside(
        f"labels alone with intervals of {size} draws x {MODELS} models x 5 metrics, n={n}, with "
        f"ties; values equal within {error:.0e}",
        ours, loop * size / few, f"bootstrap through scikit-learn; {few} draws timed",
        "100x, 1e-12",
    )  # fmt: skip


def default_method() -> Line:
    """What `auto` takes, with intervals, on 1,020 items x 7 models."""
    predictions = few_labels(1020, 4)
    ours, _ = best(lambda: fl.estimate(predictions), 5)
    rival, _ = best(lambda: sklearn_bootstrap(predictions), 1)
    return beside(
        "auto (learned-ensemble), 4 metrics with intervals, 1,020 items x 7 models",
        ours, rival, "400 bootstrap resamples of the 20 labels through scikit-learn", "1 s", 1,
    )  # fmt: skip


def flow(models: int, classes: int) -> Line:
    """The paper's 300 + 700 epochs on 1,020 items, on one thread of BLAS as it always is."""
    rng = np.random.default_rng(5)
    truth = rng.integers(classes, size=1020)
    logits = 2 * np.eye(classes)[truth][:, None, :] + rng.normal(size=(1020, models, classes))
    p = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    predictions = fl.Predictions(p, np.where(np.arange(1020) < 20, truth, -1))
    ours, _ = best(lambda: fl.models.SSMEFlow().infer(predictions, 0), 1)
    size, dimensions = 1024, models * (classes - 1)
    a = np.ones((size, size), dtype=np.float32)
    with using_workers(1):
        product, _ = best(lambda: a @ a, 20)
    # Multiply-adds of the networks, forward and twice that backward, 10 couplings, 1,000 epochs.
    half = dimensions - dimensions // 2
    work = 2 * 3 * 1020 * 1e4 * (128 * (half + 128) + 2 * 128 * half)
    floor = work / (2 * size**3 / product)
    return (
        f"ssme-flow fit, n=1020, d={dimensions}, 1,000 epochs", f"{ours:.0f} s",
        f"{floor:.0f} s (its matrix products alone, at the speed of a large one)",
        f"{floor / ours:.2f} of the limit", "60 s" if dimensions < 10 else "120 s",
    )  # fmt: skip


QUICK = "labeled,majority-vote,pseudo-label,dawid-skene,autoeval,bayesian-calibration,ssme-kde"


def protocol(n: int = 133_782) -> Line:
    """`python -m benchmarks ssme-binary` on a file as large as CivilComments, and its page."""
    scores, labels = make_scores(n, 6)
    columns = {f"p__m{j}__1": scores[:, j].astype(np.float32) for j in range(MODELS)}
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "predictions.parquet", Path(folder) / "out"
        pyarrow.parquet.write_table(pyarrow.table({"label": labels, **columns}), file)
        command = [sys.executable, "-m", "benchmarks", "ssme-binary", "--data", str(file),
                   "--methods", QUICK, "--out", str(out)]  # fmt: skip
        quiet: dict[str, Any] = {"check": True, "capture_output": True}
        ours, _ = best(lambda: subprocess.run(command, cwd=Path(__file__).parents[1], **quiet), 1)
        ssme = [("method", "=", "ssme-kde")]
        rows = pyarrow.parquet.read_table(out / "results.parquet", filters=ssme)
    of_ssme = float(np.mean(rows["seconds"].to_numpy()))
    points = np.log(scores[:1020] / (1 - scores[:1020]))
    weights = np.column_stack([1 - labels[:1020], labels[:1020]]).astype(float)
    epoch, _ = best(lambda: sklearn_epoch(points, weights), 3)
    return (
        "ssme-binary: 7 methods x 3 n_l x 50 runs x 4 metrics, curve and report; one ssme-kde run "
        f"with metrics {of_ssme:.2f} s",
        f"{ours:.0f} s",
        f"{150 * 20 * epoch:.0f} s (150 SSME fits by scikit-learn's KernelDensity alone; one epoch "
        "timed)",
        f"{20 * epoch / of_ssme:.0f}x per run (9.4 s by the reference: {9.4 / of_ssme:.0f}x)",
        "300 s",
    )  # fmt: skip


def sklearn_bootstrap(predictions: fl.Predictions, size: int = 400) -> None:
    """What a user runs instead for an interval: the labeled items, resampled."""
    from sklearn.metrics import accuracy_score, average_precision_score, roc_auc_score

    rows = np.flatnonzero(predictions.labeled)
    y, p = predictions.labels[rows], predictions.probabilities[rows, :, 1]
    rng = np.random.default_rng(0)
    for _ in range(size):
        take = rng.integers(len(rows), size=len(rows))
        for j in range(p.shape[1]):
            accuracy_score(y[take], p[take, j] > 0.5)
            if 0 < y[take].sum() < len(take):
                roc_auc_score(y[take], p[take, j])
                average_precision_score(y[take], p[take, j])


def read_large(path: str, kind: str) -> dict[str, float]:
    """Estimates of a file, as it is or read before: seconds, and MB above what was there."""
    source = path if kind == "file" else pyarrow.parquet.read_table(path)
    if kind == "arrays":
        names = [name for name in source.column_names if name.startswith("p__")]
        scores = np.stack([source[name].to_numpy() for name in names], axis=1)
        source = fl.Predictions(scores, source["label"].to_numpy())
        del scores
    before = memory("VmRSS")
    took, found = timed(lambda: (fl.estimate_files if kind == "file" else fl.estimate)(source))
    first = found.rows[0].value
    return took | {"above": memory() - before, "n": found.n_items, "first": first}


def large(rows: int) -> list[Line]:
    """Very many rows as a file, as arrays and as a frame: the same answer, with intervals."""
    with tempfile.TemporaryDirectory() as folder:
        scores, truth = make_scores(rows, 5)
        labels = np.where(np.random.default_rng(6).random(rows) < 100 / rows, truth, -1)
        columns = {"label": labels} | {f"p__m{j}__1": scores[:, j] for j in range(MODELS)}
        path = Path(folder) / "large.parquet"
        pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=2**17)
        del scores, columns
        read, _ = best(lambda: pyarrow.parquet.read_table(path), 1)
        runs = {
            kind: elsewhere("speed", f"read_large({str(path)!r}, {kind!r})")
            for kind in ("file", "arrays", "frame")
        }
        # Sums of blocks of other sizes differ in the last digit.
        assert np.ptp([run["first"] for run in runs.values()]) < 1e-12, "the same answer"
    lines = []
    for kind, run in runs.items():
        ratio = f"{run['cpu'] / runs['file']['cpu']:.2f} of its processor time"
        what, *rest = f"fl.estimate of {kind} in memory,", "the file", ratio, "1.3, 600 MB"
        if kind == "file":
            rest = [f"{read:.2f} s (reading the file alone)", "", "bounded memory"]
            what = "fl.estimate_files"
        lines.append((
            f"{what} {run['n']:,} rows x {MODELS} models, 4 metrics with intervals; "
            f"{run['above']:.0f} MB above what was there",
            f"{run['seconds']:.1f} s ({run['cpu']:.1f} s of processor time)", *rest,
        ))  # fmt: skip
    return lines


def start_up() -> list[Line]:
    """Import and help, in fresh interpreters, less the interpreter's own start."""

    def run(arguments: list[str]) -> float:
        return best(lambda: subprocess.run(arguments, check=True, capture_output=True), 5)[0]

    python = run([sys.executable, "-c", "pass"])
    numpy_ = run([sys.executable, "-c", "import numpy"]) - python
    ours = run([sys.executable, "-c", "import fewlabels"]) - python
    help_ = run([str(Path(sys.executable).with_name("fewlabels")), "--help"])
    return [
        ("import fewlabels", f"{ours:.3f} s", f"{numpy_:.3f} s (import numpy)",
         f"{ours / numpy_:.2f} of it", "2 x numpy"),
        ("fewlabels --help, warm", f"{help_:.2f} s", f"{python:.2f} s (python -c pass)", "",
         "0.5 s"),
    ]  # fmt: skip


def main() -> None:
    """Run everything and print, or write, a Markdown page."""
    # What is measured in a process of its own does not load these.
    from runs import command_line, fill, table

    options = command_line(__doc__, out=Path, rows=1_000_000).parse_args()
    lines = [
        kde("isj"), kde("scott"), draws(), default_method(), *start_up(), flow(8, 2), flow(10, 10),
        *large(options.rows), protocol(),
    ]  # fmt: skip
    text = (
        f"Made by `benchmarks/speed.py` (`make bench`) on {os.cpu_count()} processors, Python "
        f"{platform.python_version()}, numpy {np.__version__}. Ratios are of one run; absolute "
        f"times are of a shared machine.\n\n{table(HEAD, lines)}"
    )
    print(text)
    if options.out:
        fill(options.out, {"speed": text})


if __name__ == "__main__":
    main()
