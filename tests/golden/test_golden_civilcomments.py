"""CivilComments on the released splits, against stored estimates of the released code.

The stored values were computed by the released SSME code (`ssme_kde`) and by the plain metrics
(`labeled`, `oracle_pool`) on the row numbers of `ssme_civilcomments_splits_nl*.npz`.
"""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

import fewlabels as fl

MODELS = ("CORAL", "ERM", "ERM_seed1", "ERM_seed2", "IRM", "IRM_seed1", "IRM_seed2")
METRICS = {"acc": "accuracy", "ece": "ece_quantile", "auc": "auc", "auprc": "auprc"}


@pytest.fixture(scope="module")
def civil(data_folder):
    table = pq.read_table(data_folder / "ssme_civilcomments" / "data.parquet")
    scores = np.stack([table[f"p__{m}__1"].to_numpy() for m in MODELS], axis=1)
    return scores, table["label"].to_numpy()


@pytest.fixture(scope="module")
def stored(golden_folder):
    rows = pq.read_table(golden_folder / "ssme_civilcomments_reference.parquet").to_pylist()
    return {
        (r["method"], r["n_labeled"], r["run"], r["model"].removeprefix("alg_"), r["metric"]): r[
            "estimate"
        ]
        for r in rows
    }


def split(golden_folder, civil, n_labeled, run):
    scores, labels = civil
    index = np.load(golden_folder / f"ssme_civilcomments_splits_nl{n_labeled}.npz")
    labeled, unlabeled = index["labeled_idx"][run], index["unlabeled_idx"][run]
    rows = np.append(labeled, unlabeled)
    known = np.append(labels[labeled], np.full(len(unlabeled), -1))
    return scores[rows], known, labels[rows]


@pytest.mark.parametrize("n_labeled", [20, 50, 100])
@pytest.mark.parametrize("run", [0, 17, 49])
def test_labeled_and_all_labels_agree_to_rounding(golden_folder, civil, stored, n_labeled, run):
    scores, known, truth = split(golden_folder, civil, n_labeled, run)
    for method, labels in (("labeled", known), ("oracle_pool", truth)):
        predictions = fl.Predictions(scores, labels, models=MODELS)
        found = fl.estimate(predictions, "labeled", list(METRICS.values()), confidence_level=None)
        for model in MODELS:
            for short, name in METRICS.items():
                expected = stored[method, n_labeled, run, model, short]
                assert found.get(model, name).value == pytest.approx(expected, abs=1e-12)


def test_released_ssme_in_distribution(golden_folder, civil, stored):
    """Paired over runs: ours and theirs differ by their random starts alone."""
    gaps = {short: [] for short in METRICS}
    for run in range(8):
        scores, known, _ = split(golden_folder, civil, 20, run)
        predictions = fl.Predictions(scores, known, models=MODELS)
        model = fl.models.SSMEKDE(compat="official")
        found = fl.estimate(
            predictions, model, list(METRICS.values()), estimand="sample", confidence_level=None,
            random_state=run,
        )  # fmt: skip
        for short, name in METRICS.items():
            theirs = [stored["ssme_kde", 20, run, m, short] for m in MODELS]
            gaps[short].append(
                np.mean([found.get(m, name).value for m in MODELS]) - np.mean(theirs)
            )
    for short, gap in gaps.items():
        error = np.std(gap, ddof=1) / np.sqrt(len(gap))
        assert abs(np.mean(gap)) < 4 * error, (short, gap)
