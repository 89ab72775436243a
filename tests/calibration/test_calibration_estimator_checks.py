"""scikit-learn's own checks, and which of them cannot apply to maps of predictions, and why."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.utils import estimator_checks

from fewlabels.calibration import (
    AlphaCalibration,
    MatrixScaling,
    TemperatureScaling,
    VectorScaling,
)

COLUMNS = "the check's data have other numbers of columns and of classes; here they are the same"
NAMED = "the arguments are named for what they are (probabilities, labels_or_histogram), not X, y"
WORDS = "refused with a line of our own words, which the check does not know"
EXPECTED = {
    "check_estimators_overwrite_params": COLUMNS,
    "check_estimators_fit_returns_self": COLUMNS,
    "check_readonly_memmap_input": COLUMNS,
    "check_classifiers_classes": COLUMNS,
    "check_classifiers_train": COLUMNS,
    "check_fit_score_takes_y": NAMED,
    "check_sample_weight_equivalence_on_dense_data": NAMED,
    "check_n_features_in_after_fitting": WORDS,
    "check_dtype_object": WORDS,
    "check_estimators_empty_data_messages": WORDS,
    "check_classifiers_regression_target": WORDS,
    "check_supervised_y_2d": "two-dimensional labels are a histogram, of a column per class",
    "check_fit2d_1feature": WORDS,
    "check_requires_y_none": WORDS,
}
MORE = {
    "TemperatureScaling": {
        "check_classifiers_one_label": "a temperature never changes which class is the likeliest"
    },
    "VectorScaling": {"check_fit2d_1sample": WORDS},
    "MatrixScaling": {"check_fit2d_1sample": WORDS},
    "AlphaOfLabels": {
        "check_fit2d_1sample": WORDS,
        "check_sample_weights_pandas_series": COLUMNS,
        "check_positive_only_tag_during_fit": COLUMNS,
    },
}


class AlphaOfLabels(AlphaCalibration):
    """Alpha-calibration for checks that give labels: each of them counts twice."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, doubled(X, y), sample_weight=sample_weight)

    def score(self, X, y):
        return super().score(X, doubled(X, y))


def doubled(X, y):
    y, X = np.asarray(y), np.asarray(X)
    if y.ndim != 1 or X.ndim != 2:
        return y
    codes = np.unique(y, return_inverse=True)[1] % np.shape(X)[1]
    return 2.0 * np.eye(np.shape(X)[1])[codes]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "estimator",
    [
        TemperatureScaling(inputs="logits"),
        VectorScaling(penalty=1.0, inputs="logits"),
        MatrixScaling(penalty=1.0, inputs="logits"),
        AlphaOfLabels(inputs="logits"),
    ],
    ids=lambda e: type(e).__name__,
)
def test_estimator_checks(estimator):
    if not hasattr(estimator_checks, "estimator_checks_generator"):
        pytest.skip("this scikit-learn cannot be told of expected failures")
    expected = EXPECTED | MORE[type(estimator).__name__]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of skipped checks
        results = estimator_checks.check_estimator(
            estimator, expected_failed_checks=expected, on_fail=None
        )
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    assert sum(r["status"] == "passed" for r in results) >= 30
