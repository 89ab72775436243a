"""CivilComments on the released splits, against errors that Shanmugam et al. (2025) print.

The paper's figures are mean absolute errors of accuracy over 50 splits and 7 classifiers, in
points. Which variant of a baseline the paper ran is not said; the defaults give its figures.
"""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

import fewlabels as fl
from fewlabels.methods.baselines.plain import MajorityVote, PseudoLabel
from fewlabels.methods.votes.dawid_skene import DawidSkene

MODELS = ("CORAL", "ERM", "ERM_seed1", "ERM_seed2", "IRM", "IRM_seed1", "IRM_seed2")
BASELINES = {
    "majority-vote": MajorityVote(),
    "dawid-skene": DawidSkene(),
    "pseudo-label": PseudoLabel(),
}
# The paper draws labels from soft pseudo-labels, which moves the mean of a cell by up to .01.
PRINTED = {
    "majority-vote": ((4.62, 4.47, 4.26), 0.006),
    "dawid-skene": ((4.82, 4.65, 4.46), 0.006),
    "pseudo-label": ((5.03, 2.88, 1.90), 0.02),
}


@pytest.fixture(scope="module")
def civil(data_folder):
    columns = [f"p__{m}__1" for m in MODELS]
    path = data_folder / "ssme_civilcomments" / "data.parquet"
    table = pq.read_table(path, columns=["label", *columns])
    return np.stack([table[c].to_numpy() for c in columns], axis=1), table["label"].to_numpy()


@pytest.fixture(scope="module")
def truth(golden_folder):
    rows = pq.read_table(golden_folder / "ssme_civilcomments_reference.parquet").to_pylist()
    return {
        (r["n_labeled"], r["run"], r["model"].removeprefix("alg_")): r["truth"]
        for r in rows
        if r["method"] == "labeled" and r["metric"] == "acc"
    }


@pytest.mark.slow
@pytest.mark.slow_with("majority-vote", "pseudo-label")
@pytest.mark.parametrize("size", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2))])
@pytest.mark.parametrize("method", BASELINES)
def test_errors_of_accuracy_are_the_papers(golden_folder, civil, truth, method, size):
    scores, labels = civil
    n_labeled = (20, 50, 100)[size]
    index = np.load(golden_folder / f"ssme_civilcomments_splits_nl{n_labeled}.npz")
    errors = []
    for run, labeled, unlabeled in zip(
        index["runs"], index["labeled_idx"], index["unlabeled_idx"], strict=True
    ):
        known = np.append(labels[labeled], np.full(len(unlabeled), -1))
        predictions = fl.Predictions(scores[np.append(labeled, unlabeled)], known, models=MODELS)
        found = fl.estimate(predictions, BASELINES[method], "accuracy", confidence_level=None)
        errors += [
            abs(found.get(m, "accuracy").value - truth[n_labeled, int(run), m]) for m in MODELS
        ]
    printed, tolerance = PRINTED[method]
    assert 100 * np.mean(errors) == pytest.approx(printed[size], abs=tolerance)
