"""Losses of label histograms against golden values: the paper's conventions, and its code's."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet
import pytest

import fewlabels as fl
from fewlabels.kernels.binning import equal_width

OWN = {
    "L": "L",
    "EL": "EL_paper",
    "EL_plugin": "EL_plugin",
    "CL": "CL_debias_paper",
    "CL_plugin": "CL_plugin",
    "L_disagreement": "L_phiD",
    "CL_disagreement": "CLphi_debias_paper",
    "CL_disagreement_plugin": "CLphi_plugin",
}
CODE = {
    "accuracy": "accuracy",
    "L": "ps",
    "EL": "el_debias",
    "EL_plugin": "el_plugin",
    "CL": "cl_debias",
    "CL_plugin": "cl_plugin",
    "DL": "dl_debias",
    "DL_plugin": "dl_plugin",
    "L_disagreement": "d_bs",
    "CL_disagreement": "d_cl_debias",
    "CL_disagreement_plugin": "d_cl_plugin",
}
EXACT = {"rel": 1e-9, "abs": 1e-9}


@pytest.fixture(scope="module")
def golden(golden_folder):
    return json.loads((golden_folder / "golden_lh_calib.json").read_text())


def assert_same(found, expected, names):
    for ours, theirs in names.items():
        assert found[ours] == pytest.approx(expected[theirs], **EXACT), ours


@pytest.mark.parametrize("case", ["A_K3_n4_N12", "B_K2_varn", "C_K2_with_n1"])
def test_small_cases(golden, case):
    expected = golden[case]
    y, z = np.array(expected["Y"]), np.array(expected["Z"])
    found = fl.annotations.evaluate(y, z)
    assert_same(found, expected["own"], OWN)
    assert found["DL"] == pytest.approx(found["EL"] - found["CL"], abs=1e-15)
    assert found["accuracy"] == pytest.approx(expected["lh_calib_summary"]["accuracy"])
    residual = fl.annotations.evaluate(y, z, variance="residual")
    assert residual["CL"] == pytest.approx(expected["own"]["CL_debias_resid"], **EXACT)
    as_code = fl.annotations.evaluate(y, z, compat="lh_calib")
    assert_same(as_code, expected["lh_calib_summary"], CODE)


@pytest.mark.parametrize("case", ["A_K3_n4_N12", "B_K2_varn"])
def test_bins_of_small_cases(golden, case):
    # Case C differs: the code lets items of one label count in the epistemic loss.
    expected = golden[case]
    rows = fl.annotations.dispersion_map(expected["Y"], expected["Z"])
    for k, bins in expected["bins"].items():
        mine = [row for row in rows if row["class"] == int(k)]
        assert [row["bin"] for row in mine] == bins["bin"]
        assert [row["n_items"] for row in mine] == bins["bin_count"]
        np.testing.assert_allclose([row["low"] for row in mine], bins["bin_start"], atol=1e-15)
        np.testing.assert_allclose([row["high"] for row in mine], bins["bin_end"], atol=1e-15)
        for name, theirs in (("EL", "el"), ("CL", "cl"), ("DL", "dl")):
            plugin = np.array([row[f"{name}_plugin"] for row in mine])
            np.testing.assert_allclose(plugin, bins[f"{theirs}_plugin"], atol=1e-12)
            many = np.array(bins["bin_count"]) > 1
            bias = np.array(bins[f"{theirs}_bias"], dtype=float)
            found = plugin - np.array([row[name] for row in mine])
            np.testing.assert_allclose(found[many], bias[many], atol=1e-12)


def test_disagreement_of_small_cases(golden):
    for case in ("A_K3_n4_N12", "B_K2_varn", "C_K2_with_n1"):
        found = fl.annotations.DISAGREEMENT.observed(golden[case]["Y"])
        expected = np.array(golden[case]["gini"], dtype=float)
        np.testing.assert_allclose(found, expected, atol=1e-15)


def test_bins_at_ties(golden):
    values = np.array([float(v) for v in golden["D_binning15"]["values"]])
    assert equal_width(values).tolist() == golden["D_binning15"]["index"]


def test_expected_disagreement(golden):
    alpha = np.array(golden["E_alpha"]["alpha"])
    total = alpha.sum(axis=1)
    found = fl.annotations.DISAGREEMENT.expected(alpha / total[:, None], total)
    np.testing.assert_allclose(found, golden["E_alpha"]["disagreement_eq71"], atol=1e-15)


@pytest.fixture(scope="module")
def cifar(data_folder):
    columns = [f"h__{k}" for k in range(10)]
    table = pyarrow.parquet.read_table(data_folder / "cifar10" / "data.parquet", columns=columns)
    return np.stack([table[name].to_numpy() for name in columns], axis=1).astype(float)


def test_cifar10h(golden, cifar):
    expected = golden["J_cifar10h"]
    majority = np.eye(10)[cifar.argmax(axis=1)]
    classifiers = {
        "onehot_majority": majority,
        "0.9*majority+0.01": 0.9 * majority + 0.01,
        "uniform": np.full((10_000, 10), 0.1),
        "marginal": np.tile((cifar / cifar.sum(axis=1, keepdims=True)).mean(axis=0), (10_000, 1)),
        "smooth_0.6": 0.6 * majority + 0.04,
    }
    for name, z in classifiers.items():
        assert_same(fl.annotations.evaluate(cifar, z), expected[name]["own"], OWN)
        as_code = fl.annotations.evaluate(cifar, z, compat="lh_calib")
        assert_same(as_code, expected[name], CODE)
    observed = fl.annotations.DISAGREEMENT.observed(cifar)
    assert observed.mean() == pytest.approx(expected["mean_disagreement_U"], **EXACT)
    assert (observed == 0).mean() == expected["unanimous_fraction"]


def test_two_labels_of_cifar10h_tell_as_much_as_fifty(golden, cifar):
    # The draws behind the golden values of two labels cannot be drawn again; the truth can be met.
    z = 0.9 * np.eye(10)[cifar.argmax(axis=1)] + 0.01
    truth = golden["J_cifar10h"]["0.9*majority+0.01"]["own"]
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        two = rng.multivariate_hypergeometric
        found.append(fl.annotations.evaluate([two(y, 2) for y in cifar.astype(int)], z))
    for name in ("L", "EL", "CL", "L_disagreement", "CL_disagreement"):
        values = np.array([f[name] for f in found])
        error = values.std(ddof=1)  # of one; the mean of four has half of it
        assert abs(values.mean() - truth[OWN[name]]) < max(3 * error, 2e-4), name
    assert np.mean([f["EL_plugin"] for f in found]) > 3 * truth["EL_paper"]


@pytest.mark.parametrize(("part", "labels"), [("valid", 5), ("test", 10)])
def test_mixed_mnist_whose_truth_is_known(data_folder, part, labels):
    """Votes are draws of y1 with probability `ratio`, else of y2: the intervals hold the truth."""
    folder = data_folder / "mixed_lh"
    where = [("partition", "=", part)]
    votes = pyarrow.parquet.read_table(folder / "mixed_mnist.parquet", filters=where)
    table = pyarrow.parquet.read_table(folder / "mixed_mnist_predictions.parquet", filters=where)
    place = {name: i for i, name in enumerate(votes["id"].to_pylist())}
    rows = [place[name] for name in table["id"].to_pylist()]
    y = np.stack([votes[f"h__{k}"].to_numpy()[rows] for k in range(10)], axis=1)
    assert (y.sum(axis=1) == labels).all()
    mixed = table["mixed"].to_numpy(zero_copy_only=False).astype(bool)
    ratio = np.where(mixed, table["ratio"].to_numpy(), 1.0)
    q = ratio[:, None] * np.eye(10)[table["y1"].to_numpy()]
    second = np.nan_to_num(table["y2"].to_numpy()[mixed].astype(float)).astype(int)
    q[mixed] += (1 - ratio[mixed, None]) * np.eye(10)[second]
    for model in ("cnn_e8", "rf50", "knn15_pca60"):
        z = np.stack([table[f"p__{model}__{k}"].to_numpy() for k in range(10)], axis=1)
        truth = fl.annotations.evaluate(np.round(1e7 * q), z)
        found = fl.annotations.evaluate(y, z, confidence_level=0.99)
        for name in ("EL", "CL", "DL", "CL_disagreement"):
            low, high = found["intervals"][name]
            assert low <= truth[name] <= high, (model, name)
        assert abs(found["EL_plugin"] - truth["EL"]) > 4 * abs(found["EL"] - truth["EL"])
