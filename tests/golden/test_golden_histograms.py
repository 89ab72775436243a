"""Label histograms against golden values: cases A to J, the released code, Figure 2's table.

`golden_lh_calib.json` holds numbers of the released code (`lh_calib_summary`) and of an independent
implementation of the paper (`own`); `fig2_table.csv` holds means and standard deviations of
simulations with Q = (p, 1 - p), p uniform, z = Q and n labels for each of N items.
"""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest
from scipy.special import gammaln

SMALL = ("A_K3_n4_N12", "B_K2_varn", "C_K2_with_n1")
PAPER = {
    "L": "L", "EL_plugin": "EL_plugin", "EL_paper": "EL", "CL_plugin": "CL_plugin",
    "CL_debias_paper": "CL", "L_phiD": "L_disagreement", "CLphi_plugin": "CL_disagreement_plugin",
    "CLphi_debias_paper": "CL_disagreement",
}  # fmt: skip
RELEASED = {
    "accuracy": "accuracy", "ps": "L", "el_plugin": "EL_plugin", "el_debias": "EL",
    "cl_plugin": "CL_plugin", "cl_debias": "CL", "dl_plugin": "DL_plugin", "dl_debias": "DL",
    "d_bs": "L_disagreement", "d_cl_plugin": "CL_disagreement_plugin",
    "d_cl_debias": "CL_disagreement",
}  # fmt: skip
CLOSE = {"rel": 1e-9, "abs": 1e-12}


@pytest.fixture(scope="module")
def golden(golden_folder):
    return json.loads((golden_folder / "golden_lh_calib.json").read_text())


@pytest.fixture(scope="module")
def annotations():
    return pytest.importorskip("fewlabels.annotations")


@pytest.fixture(scope="module")
def calibration():
    return pytest.importorskip("fewlabels.calibration")


def case(golden, name):
    return np.array(golden[name]["Y"]), np.array(golden[name]["Z"])


def agree(found, expected, names):
    for theirs, ours in names.items():
        assert found[ours] == pytest.approx(expected[theirs], **CLOSE), ours


@pytest.mark.parametrize("name", SMALL)
def test_losses_of_the_paper(annotations, golden, name):
    found, own = annotations.evaluate(*case(golden, name)), golden[name]["own"]
    agree(found, own, PAPER)
    assert found["accuracy"] == pytest.approx(golden[name]["lh_calib_summary"]["accuracy"])
    assert found["DL"] == pytest.approx(own["EL_paper"] - own["CL_debias_paper"], **CLOSE)
    assert found["DL_plugin"] == pytest.approx(own["EL_plugin"] - own["CL_plugin"], **CLOSE)
    assert found["CE"] == pytest.approx(math.sqrt(max(0, own["CL_debias_paper"])), **CLOSE)
    expected = math.sqrt(max(0, own["CLphi_debias_paper"]))
    assert found["CE_disagreement"] == pytest.approx(expected, **CLOSE)


@pytest.mark.parametrize("name", SMALL)
def test_variance_of_residuals(annotations, golden, name):
    found = annotations.evaluate(*case(golden, name), variance="residual")
    own = golden[name]["own"]
    assert found["CL"] == pytest.approx(own["CL_debias_resid"], **CLOSE)
    assert found["CL_plugin"] == pytest.approx(own["CL_plugin"], **CLOSE)


@pytest.mark.parametrize("name", SMALL)
def test_released_code(annotations, golden, name):
    """Its rules for singleton bins, single labels and bins of agreement; else the paper's."""
    found = annotations.evaluate(*case(golden, name), compat="lh_calib")
    agree(found, golden[name]["lh_calib_summary"], RELEASED)


def test_the_golden_cases_tell_the_rules_apart(golden):
    """No rule above may pass under another rule's numbers."""
    for name in SMALL:
        own, released = golden[name]["own"], golden[name]["lh_calib_summary"]
        assert abs(own["CL_debias_paper"] - released["cl_debias"]) > 0.01
        assert abs(own["CL_debias_paper"] - own["CL_debias_resid"]) > 1e-4
        assert abs(own["CLphi_debias_paper"] - released["d_cl_debias"]) > 0.01
    single = golden["C_K2_with_n1"]
    assert abs(single["own"]["EL_paper"] - single["lh_calib_summary"]["el_debias"]) > 0.1


@pytest.mark.parametrize("name", SMALL)
def test_u_statistic_of_disagreement(annotations, golden, name):
    found = annotations.DISAGREEMENT.observed(case(golden, name)[0])
    expected = np.array([np.nan if u is None else u for u in golden[name]["gini"]])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", SMALL)
def test_cells_of_the_dispersion_map(annotations, golden, name):
    """The plugin terms per class and bin, as shares of the totals."""
    rows = annotations.dispersion_map(*case(golden, name))
    found = {(row["class"], row["bin"]): row for row in rows}
    assert len(found) == len(rows) == sum(len(b["bin"]) for b in golden[name]["bins"].values())
    for k, bins in golden[name]["bins"].items():
        for i, b in enumerate(bins["bin"]):
            row = found[int(k), int(b)]
            for key in ("EL_plugin", "CL_plugin", "DL_plugin"):
                expected = bins[key.lower()][i]
                assert row[key] == pytest.approx(expected, rel=1e-9, abs=1e-12), (k, b, key)


@pytest.mark.parametrize("name", SMALL)
def test_cells_of_the_reliability_diagram(annotations, golden, name):
    rows = annotations.reliability(*case(golden, name))
    found = {(row["class"], row["bin"]): row for row in rows}
    for k, bins in golden[name]["bins"].items():
        for i, b in enumerate(bins["bin"]):
            row, N = found.pop((int(k), int(b))), len(golden[name]["Y"])
            assert row["n_items"] == bins["bin_count"][i]
            assert row["share"] == pytest.approx(bins["bin_count"][i] / N)
            assert row["low"] == pytest.approx(bins["bin_start"][i])
            assert row["high"] == pytest.approx(bins["bin_end"][i])
            gap = row["mean_probability"] - row["label_frequency"]
            assert row["share"] * gap**2 == pytest.approx(bins["cl_plugin"][i], **CLOSE)
    assert not found


def test_bins_of_values_on_their_edges(annotations, golden):
    """D: [a, b), the last closed, edges rounded as np.linspace rounds them."""
    for text, index in zip(*golden["D_binning15"].values(), strict=True):
        p = float(text)
        rows = annotations.reliability(np.array([[1, 1]]), np.array([[p, 1 - p]]))
        assert [row["bin"] for row in rows if row["class"] == 0] == [index], text


def dirichlets(golden, key, name):
    """Parameters (..., K) as concentrations (...) and means (..., K)."""
    alpha = np.array(golden[key][name])
    return alpha.sum(axis=-1), alpha / alpha.sum(axis=-1, keepdims=True)


def test_disagreement_and_posterior_of_a_dirichlet(calibration, annotations, golden):
    """E: (71), and the posterior mean after one label."""
    alpha0, f = dirichlets(golden, "E_alpha", "alpha")
    expected = golden["E_alpha"]
    found = calibration.ensemble_disagreement(f[None], alpha0)
    np.testing.assert_allclose(found, expected["disagreement_eq71"], rtol=1e-9)
    found = annotations.DISAGREEMENT.expected(f, alpha0)
    np.testing.assert_allclose(found, expected["disagreement_eq71"], rtol=1e-9)
    labels = np.eye(3, dtype=int)[expected["posterior_probs_y"]]
    found = calibration.ensemble_posterior(f[None], labels, alpha0)
    np.testing.assert_allclose(found, expected["posterior_probs"], rtol=1e-9)


def test_ensembles(calibration, golden):
    """F: (72) and (81) with product weights; the released code's sums are another number."""
    samples = np.array(golden["F_ensemble"]["mc"]).transpose(1, 0, 2)
    labels = np.eye(3, dtype=int)[golden["F_ensemble"]["y"]]
    found = 1 - calibration.ensemble_disagreement(samples)
    np.testing.assert_allclose(found, golden["F_ensemble"]["agreement_eq72"], rtol=1e-9)
    found = calibration.ensemble_posterior(samples, labels)
    np.testing.assert_allclose(found, golden["F_ensemble"]["posterior_correct"], rtol=1e-9)
    other = np.array(golden["F_ensemble"]["posterior_lh_calib_buggy_sum"])
    assert np.abs(found - other).max() > 0.01
    np.testing.assert_allclose(calibration.ensemble_mean(samples), samples.mean(0), rtol=1e-12)


def test_ensembles_of_dirichlets(calibration, golden):
    """G: (73)."""
    alpha0, f = dirichlets(golden, "G_mcalpha_eq73", "mc_alpha")
    found = calibration.ensemble_disagreement(f.transpose(1, 0, 2), alpha0.T)
    np.testing.assert_allclose(1 - found, golden["G_mcalpha_eq73"]["agreement"], rtol=1e-9)


def test_likelihood_of_counts(calibration, golden):
    """H: the loss of a fit is -log DirMult / n + penalty log(alpha0)^2, without the coefficient."""

    def nll(y, f, a):
        y, f = np.array(y), np.array(f)
        terms = gammaln(a * f + y) - gammaln(a * f)
        return -(gammaln(a) - gammaln(a + y.sum()) + terms.sum())

    for row in golden["H_dirmult"]:
        y, f = np.array([row["y"]] * 3), np.array([row["f"]] * 3)
        theirs = nll(row["y"], row["f"], row["alpha0"])
        assert theirs == pytest.approx(row["nll_nocoef"], rel=1e-9)
        model = calibration.AlphaCalibration(concentration="constant", penalty=0.3).fit(f, y)
        log_alpha0 = math.log(model.concentration(f)[0])
        fit = nll(row["y"], row["f"], math.exp(log_alpha0)) / sum(row["y"])
        assert model.loss_ == pytest.approx(fit + 0.3 * log_alpha0**2, rel=1e-9)


def test_stationary_log_alpha0(calibration, golden):
    """I: one item, penalty .005."""
    for row in golden["I_opt_log_alpha0_lam.005"]:
        y, f = np.array([row["y"]]), np.array([[row["z1"], 1 - row["z1"]]])
        model = calibration.AlphaCalibration(concentration="constant", penalty=0.005)
        found = math.log(model.fit(f, y).concentration(f)[0])
        assert found == pytest.approx(row["log_alpha0"], abs=2e-6), row


@pytest.fixture(scope="module")
def cifar(data_folder):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = data_folder / "cifar10" / "data.parquet"
    if not path.is_file():
        pytest.skip(f"no CIFAR-10 in {data_folder}")
    table = parquet.read_table(path)
    if "h__0" not in table.column_names:
        pytest.skip("the human counts (CIFAR-10H) are not in this copy of CIFAR-10")
    return np.stack([table[f"h__{k}"].to_numpy() for k in range(10)], axis=1)


def cifar_predictors(histogram):
    majority = np.eye(10)[histogram.argmax(axis=1)]
    mu = histogram / histogram.sum(axis=1, keepdims=True)
    return {
        "onehot_majority": majority,
        "0.9*majority+0.01": 0.9 * majority + 0.01,
        "smooth_0.6": 0.6 * majority + 0.04,
        "uniform": np.full(majority.shape, 0.1),
        "marginal": np.tile(mu.mean(axis=0), (len(mu), 1)),
    }


def test_cifar10h(annotations, golden, cifar):
    stored = golden["J_cifar10h"]
    u = annotations.DISAGREEMENT.observed(cifar)
    assert u.mean() == pytest.approx(stored["mean_disagreement_U"], rel=1e-9)
    assert (u == 0).mean() == pytest.approx(stored["unanimous_fraction"])
    for name, z in cifar_predictors(cifar).items():
        for options in ({}, {"compat": "lh_calib"}):
            found = annotations.evaluate(cifar, z, **options)
            agree(found, stored[name]["own"], PAPER)
            agree(found, stored[name], {"accuracy": "accuracy"})
        agree(found, stored[name], RELEASED)
    assert found["n_annotated"] == stored["N"]
    assert found["n_labels"] == stored["N"] * stored["n_mean"]


def test_cifar10h_posterior_after_one_label(annotations, calibration, golden, cifar):
    """The stored label of each image is the second draw of seed 0: two labels, then one."""
    rng, stored = np.random.default_rng(0), golden["J_cifar10h"]
    pairs = np.array([rng.multivariate_hypergeometric(row, 2) for row in cifar])
    one = np.array([rng.multivariate_hypergeometric(row, 1) for row in cifar])
    prior = cifar_predictors(cifar)["0.9*majority+0.01"]
    found = annotations.evaluate(cifar - one, prior)["EL"]
    assert found == pytest.approx(stored["priorEL_on_rest"], rel=1e-9)
    for alpha0 in (0.5, 1, 2, 5, 20):
        posterior = calibration.ensemble_posterior(prior[None], one, np.full(len(prior), alpha0))
        found = annotations.evaluate(cifar - one, posterior)["EL"]
        assert found == pytest.approx(stored[f"postEL_a0_{alpha0}"], rel=1e-9)
    # Two labels an image: the plugin is far off, the debiased loss is not. Its standard deviation
    # over draws is about .0007 (200 draws).
    full = annotations.evaluate(cifar, prior)["EL"]
    found = annotations.evaluate(pairs, prior)
    assert found["EL_plugin"] > 3 * full
    assert abs(found["EL"] - full) < 4 * 0.0007


def figure2_losses(annotations, rng, n, N):
    p = rng.random(N)
    z = np.stack([p, 1 - p], axis=1)
    votes = rng.binomial(n, p)
    y = np.stack([votes, n - votes], axis=1)
    found = annotations.evaluate(y, z)
    residual = annotations.evaluate(y, z, variance="residual")["CL"]
    return [found[key] for key in ("EL_plugin", "EL", "CL_plugin", "CL")] + [residual]


def check_figure2(annotations, golden_folder, cells, reps, sigmas):
    with open(golden_folder / "fig2_table.csv", newline="") as file:
        table = {(int(row["n"]), int(row["N"])): row for row in csv.DictReader(file)}
    for n, N in cells or table:
        row, rng = table[n, N], np.random.default_rng([n, N])
        found = np.array([figure2_losses(annotations, rng, n, N) for _ in range(reps)])
        stored = int(row["reps"])
        for name, values in zip(("ELp", "ELd", "CLp", "CLd", "CLres"), found.T, strict=True):
            mean, sd = float(row[f"{name}_mean"]), float(row[f"{name}_sd"])
            error = sd * math.sqrt(1 / stored + 1 / reps)
            assert abs(values.mean() - mean) < sigmas * error, (n, N, name, values.mean(), mean)
            # The relative error of a standard deviation is 1/sqrt(2 reps) for a normal; bins of
            # few items have heavier tails, hence half as much again.
            error = 1.5 * math.sqrt(1 / (2 * stored) + 1 / (2 * reps))
            ratio = values.std(ddof=1) / sd
            assert abs(math.log(ratio)) < sigmas * error, (n, N, name, ratio)
        # Closed forms of EL and CL, plugin and debiased.
        for value, exact in zip(found.T, (1 / (3 * n), 0, 15 / (3 * n * N), 0), strict=False):
            error = value.std(ddof=1) / math.sqrt(reps)
            # CL's closed form needs items in every bin; 2% is beyond what N = 100 loses.
            assert abs(value.mean() - exact) < sigmas * error + 0.02 * exact, (n, N, exact)


def test_figure2(annotations, golden_folder):
    check_figure2(annotations, golden_folder, [(2, 100), (5, 100), (2, 1000), (5, 500)], 150, 4)


@pytest.mark.slow
def test_figure2_whole_table(annotations, golden_folder):
    check_figure2(annotations, golden_folder, None, 400, 4)
