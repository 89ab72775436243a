"""Simulated files that look like the real data sets, so that what reads these is always run.

They have the columns and kinds of values of the real ones, fewer rows, and say nothing: tests of
published numbers need the real files, and are counted as not checked where these are missing.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Columns = dict[str, np.ndarray]


def _save(columns: Columns, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def _softmax(logits: np.ndarray) -> np.ndarray:
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def _probabilities(
    labels: np.ndarray, k: int, models: list[str], rng: np.random.Generator
) -> Columns:
    out: Columns = {}
    for j, name in enumerate(models):
        noise = rng.normal(0, 1 + 0.15 * j, (len(labels), k))
        p = _softmax(3.0 * np.eye(k)[labels] + noise)
        out |= {f"p__{name}__{c}": p[:, c] for c in range(k)}
    return out


def score_lists(folder: Path, rng: np.random.Generator) -> None:
    """12 tasks with the scores of two classifiers."""
    tasks = [*(f"optdigits_{digit}" for digit in range(10)), "magic_g_1", "spambase_1"]
    n = 400
    label = (rng.random(n * len(tasks)) < 0.25).astype(np.int64)
    margin = rng.normal(2.5 * label - 1.5, 1.0)
    _save(
        {
            "task": np.repeat(tasks, n), "row": np.tile(np.arange(n), len(tasks)), "label": label,
            "s__logreg": margin, "s__linsvm": 0.4 * margin + rng.normal(0, 0.1, len(label)),
            "p__logreg__1": 1 / (1 + np.exp(-margin)),
        },
        folder / "spe_scores" / "data.parquet",
    )  # fmt: skip


def adult(folder: Path, rng: np.random.Generator) -> None:
    """Features, and the predictions of eight classifiers."""
    n = 12_000
    age = rng.integers(17, 90, n)
    x = rng.normal(size=(n, 3))
    label = (
        rng.random(n) < 1 / (1 + np.exp(-(x @ [1.0, 0.7, 0.3] + 0.02 * (age - 45) - 1)))
    ).astype(int)
    sex, race = rng.choice(["Female", "Male"], n), rng.choice(["White", "Black", "Other"], n)
    _save(
        {"age": age, "hours": x[:, 0], "education_num": x[:, 1], "capital_gain": x[:, 2],
         "sex": sex, "race": race, "label": label},
        folder / "adult" / "data.parquet",
    )  # fmt: skip
    models = [
        "logreg",
        "hgb",
        "rf100",
        "gnb",
        "knn25",
        "tree_overfit",
        "logreg_demog",
        "logreg_200",
    ]
    some = slice(0, 5_000)
    _save(
        {"label": label[some], "sex": sex[some], "race": race[some], "age": age[some],
         **_probabilities(label[some], 2, models, rng)},
        folder / "adult" / "predictions_test.parquet",
    )  # fmt: skip


def civilcomments(folder: Path, rng: np.random.Generator) -> None:
    """Nine networks, 11% positive."""
    label = (rng.random(6_000) < 0.114).astype(int)
    kinds = ("CORAL", "ERM", "IRM")
    models = [name for kind in kinds for name in (kind, f"{kind}_seed1", f"{kind}_seed2")]
    columns = {"label": label, **_probabilities(label, 2, models, rng)}
    _save(columns, folder / "ssme_civilcomments" / "data.parquet")


def cifar10(folder: Path, rng: np.random.Generator) -> None:
    """Ten classes with the counts of about fifty people, and ten classifiers."""
    label = rng.integers(10, size=3_000)
    q = _softmax(6.0 * np.eye(10)[label] + rng.normal(size=(len(label), 10)))
    counts = rng.multinomial(rng.integers(47, 64, len(label)), q)
    models = ["lenet5_netcal", "wrn16_4_netcal", "vgg16_vcalib", "cv_cleanlab", "qda_pca40",
              "knn20_pca40", *(f"smallcnn_e{k}" for k in (1, 4, 8, 12))]  # fmt: skip
    columns = {"label": label, **{f"h__{k}": counts[:, k] for k in range(10)}}
    _save(columns | _probabilities(label, 10, models, rng), folder / "cifar10" / "data.parquet")


def mixed_mnist(folder: Path, rng: np.random.Generator) -> None:
    """Mixtures of two digits with their ratio, the counts of raters, and six classifiers."""
    n = 3_000
    y1, y2 = rng.integers(10, size=(2, n))
    mixed = (np.arange(n) % 3 == 0).astype(int)
    ratio = np.where(mixed == 1, rng.uniform(0.5, 1.0, n), 1.0)
    q = ratio[:, None] * np.eye(10)[y1] + (1 - ratio)[:, None] * np.eye(10)[y2]
    partition = np.where(np.arange(n) < n // 2, "valid", "test")
    raters = np.where(partition == "valid", 5, 10)
    counts = rng.multinomial(raters, q)
    known = {
        "id": np.arange(n),
        "partition": partition,
        "mixed": mixed,
        "ratio": ratio,
        "y1": y1,
        "y2": y2,
    }
    histogram = {f"h__{k}": counts[:, k] for k in range(10)}
    _save(known | histogram, folder / "mixed_lh" / "mixed_mnist.parquet")
    models = ["gnb_pca60", "logreg_pca60", "knn15_pca60", "cnn_e8", "cnn_e1", "rf50"]
    _save(
        known | histogram | _probabilities(y1, 10, models, rng),
        folder / "mixed_lh" / "mixed_mnist_predictions.parquet",
    )


def nell(folder: Path, rng: np.random.Generator) -> None:
    """Three categories, four sources, few positives."""
    n = 800
    domain = np.repeat(["animal", "city", "vegetable"], n)
    label = (rng.random(3 * n) < 0.06).astype(int)
    columns: Columns = {"domain": domain, "row": np.tile(np.arange(n), 3), "label": label}
    for j, name in enumerate(("ADJ", "CMC", "CPL", "VERB")):
        columns[f"p__{name}__1"] = 1 / (1 + np.exp(-rng.normal(5 * label - 4, 1 + 0.2 * j)))
    _save(columns, folder / "nell" / "data.parquet")


def write(folder: Path) -> Path:
    """All of them, in a folder laid out as the real one."""
    rng = np.random.default_rng(0)
    for make in (score_lists, adult, civilcomments, cifar10, mixed_mnist, nell):
        make(folder, rng)
    return folder
