"""The benchmark of disagreement: what it draws, fits and measures, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pytest

from bench import Results, load, run
from bench.datasets import Reading
from bench.disagreement import (
    ENSEMBLE,
    MEAN,
    METHODS,
    METRICS,
    PAPER_PENALTY,
    Trial,
    first_labels,
    method_of,
    read_worlds,
)
from fewlabels import FewlabelsError, InputError
from fewlabels.annotations import evaluate
from fewlabels.calibration import (
    AlphaCalibration,
    TemperatureScaling,
    ensemble_disagreement,
    ensemble_posterior,
)

Make = Callable[..., Path]
SHORT: dict[str, Any] = {
    "methods": ["raw", "temperature", "raw+alpha-constant", "raw+alpha-features"],
    "runs": 2,
    "n_labeled": [2, 4],
    "workers": 1,
}


@pytest.fixture
def made(tmp_path: Path) -> Make:
    """Write items whose labels are draws of Q ~ Dirichlet(1.5 f): `sure` says f, `mild` f^.5."""

    def write(n: int = 300, labels: int = 6, name: str = "toy.csv", **columns: Any) -> Path:
        rng = np.random.default_rng(1)
        f = rng.dirichlet([0.7, 0.7, 0.7], size=n)
        q = np.array([rng.dirichlet(1.5 * row + 1e-3) for row in f])
        counts = rng.multinomial(labels, q / q.sum(axis=1, keepdims=True))
        mild = np.sqrt(f) / np.sqrt(f).sum(axis=1, keepdims=True)
        table: dict[str, Any] = {}
        for model, p in (("sure", f), ("mild", mild)):
            table |= {f"p__{model}__{k}": p[:, k] for k in range(3)}
        table |= {f"h__{k}": counts[:, k] for k in range(3)}
        kept = {k: v for k, v in (table | columns).items() if v is not None}
        path = tmp_path / name
        pv.write_csv(pa.table(kept), path)
        return path

    return write


@pytest.fixture
def short(made: Make, tmp_path: Path) -> Callable[..., Results]:
    def go(**options: Any) -> Results:
        asked = {"data": None, "out": tmp_path / "out"} | SHORT | options
        asked["data"] = asked["data"] or made()
        return run("histograms", **asked)

    return go


def value(results: Results, method: str, metric: str, model: str = "sure", **where: Any) -> float:
    place = {"n_labeled": 2, "run": 0, "group": ""} | where
    rows = np.ones(len(results.rows["run"]), dtype=bool)
    for name, wanted in ({"method": method, "metric": metric, "model": model} | place).items():
        rows &= results.rows[name] == wanted
    (found,) = results.rows["estimate"][rows]
    return float(found)


# --- draws ----------------------------------------------------------------------------------


def test_first_labels_are_a_random_part_of_the_histogram() -> None:
    histogram = np.tile([[3.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 2.0, 2.0]], (4000, 1))
    two, three = (first_labels(histogram, n, np.random.default_rng(0)) for n in (2, 3))
    assert (two <= three).all()
    assert (three <= histogram).all()
    assert two.sum(axis=1)[:3].tolist() == [2, 1, 2]
    mean = two.reshape(-1, 3, 3).mean(axis=0)
    # Without replacement: a label of 3 among 4 has mean 2 x 3/4 and variance 1/4.
    assert mean[0] == pytest.approx([1.5, 0.5, 0], abs=4 * 0.5 / np.sqrt(4000))
    assert mean[2] == pytest.approx([0, 1, 1], abs=4 * 0.6 / np.sqrt(4000))


def test_a_label_is_never_both_given_and_judged(made: Make) -> None:
    (world,), _ = read_worlds([made()], Reading())
    trial = Trial(world, 0, 0, 2)
    np.testing.assert_array_equal(trial.expert + trial.rest, trial.histogram[trial.again])
    assert (trial.expert.sum(axis=1) == 1).all()
    assert (trial.rest.sum(axis=1) >= 2).all()
    assert not set(trial.valid) & set(trial.test)


def test_runs_halve_anew_but_a_partition_stays(made: Make) -> None:
    (world,), _ = read_worlds([made()], Reading())
    assert world.parts(0, 0)[0].tolist() != world.parts(0, 1)[0].tolist()
    partition = np.array(["train", "valid", "test"] * 100)
    (world,), _ = read_worlds([made(partition=partition)], Reading())
    assert world.facts.n_items == 200
    assert "100 rows neither valid nor test are left out" in world.facts.notes
    valid, test = world.parts(0, 0)
    assert valid.tolist() == world.parts(0, 7)[0].tolist() == list(range(0, 200, 2))
    assert test.tolist() == list(range(1, 200, 2))


# --- what is measured -----------------------------------------------------------------------


def test_numbers_are_those_of_the_public_functions(
    made: Make, short: Callable[..., Results]
) -> None:
    path = made()
    results = short(data=path)
    (world,), _ = read_worlds([path], Reading())
    trial = Trial(world, 0, 0, 2)
    p, q = (world.probabilities[rows, 0] for rows in (trial.valid, trial.test))
    found = evaluate(trial.histogram, q)
    for metric in ("accuracy", "L", "EL", "CL", "CE", "L_disagreement", "CE_disagreement"):
        assert value(results, "raw", metric) == pytest.approx(found[metric], abs=1e-12)
    scaled = TemperatureScaling().fit(p, trial.counts).predict_proba(q)
    found = evaluate(trial.histogram, scaled)
    assert value(results, "temperature", "EL") == pytest.approx(found["EL"], abs=1e-12)
    alpha = AlphaCalibration(penalty=PAPER_PENALTY).fit(p, trial.counts)
    said = evaluate(trial.histogram, q, disagreement=alpha.predict_disagreement(q))
    assert value(results, "raw+alpha-constant", "L_disagreement") == said["L_disagreement"]
    after = evaluate(trial.rest, alpha.posterior(q[trial.again], trial.expert))
    assert value(results, "raw+alpha-constant", "posterior_EL") == after["EL"]
    samples = world.probabilities[trial.test].swapaxes(0, 1)
    said = evaluate(
        trial.histogram, samples.mean(axis=0), disagreement=ensemble_disagreement(samples)
    )
    for metric in ("L_disagreement", "EL"):
        found_here = value(results, "raw", metric, ENSEMBLE)
        assert found_here == pytest.approx(said[metric], abs=1e-12)
    after = evaluate(trial.rest, ensemble_posterior(samples[:, trial.again], trial.expert))
    assert value(results, "raw", "posterior_EL", ENSEMBLE) == pytest.approx(after["EL"], abs=1e-12)
    assert value(results, "raw", "EL", MEAN) == pytest.approx(value(results, "raw", "EL", ENSEMBLE))


def test_alpha_calibration_learns_disagreement_from_two_labels(
    short: Callable[..., Results],
) -> None:
    """Q ~ Dirichlet(1.5 f): experts agree more than f alone says, and a label teaches a lot."""
    results = short()
    for run_ in range(2):
        plain = value(results, "raw", "L_disagreement", run=run_)
        assert value(results, "raw+alpha-constant", "L_disagreement", run=run_) < plain - 0.01
        prior = value(results, "raw+alpha-constant", "prior_EL", run=run_)
        assert value(results, "raw+alpha-constant", "posterior_EL", run=run_) < prior - 0.05


@pytest.mark.slow
def test_results_do_not_depend_on_workers(short: Callable[..., Results], tmp_path: Path) -> None:
    one = short(methods=["raw+alpha-logits", "vector"])
    three = short(methods=["raw+alpha-logits", "vector"], out=tmp_path / "three", workers=3)
    for name, column in one.rows.items():
        if name != "seconds":
            np.testing.assert_array_equal(column, three.rows[name])
    again = Results.load(tmp_path / "three")
    np.testing.assert_array_equal(again.rows["estimate"], three.rows["estimate"])


def test_every_method_has_rows(short: Callable[..., Results]) -> None:
    results = short(methods=METHODS, runs=1, n_labeled=[4])
    assert set(results.rows["method"]) == set(METHODS)
    assert set(results.rows["status"]) == {"ok"}
    assert set(results.rows["model"]) == {"sure", "mild", MEAN, ENSEMBLE}


def test_one_number_is_the_share_of_pairs_that_differ(
    made: Make, short: Callable[..., Results]
) -> None:
    path = made()
    results = short(data=path, methods=["one-number"])
    (world,), _ = read_worlds([path], Reading())
    trial = Trial(world, 0, 0, 2)
    share = np.mean(trial.counts.max(axis=1) == 1)
    histogram, rows = trial.histogram, world.probabilities[trial.test, 0]
    found = evaluate(histogram, rows, disagreement=np.full(len(rows), share))
    for model in ("sure", "mild", MEAN, ENSEMBLE):
        got = value(results, "one-number", "L_disagreement", model)
        assert got == pytest.approx(found["L_disagreement"], abs=1e-12)
    assert set(results.rows["metric"]) >= {"L_disagreement", "CE_disagreement"}
    assert not {"EL", "prior_EL", "posterior_EL"} & set(results.rows["metric"])


def test_one_classifier_has_no_ensemble(short: Callable[..., Results]) -> None:
    results = short(models=["mild"])
    assert set(results.rows["model"]) == {"mild"}


# --- what is refused ------------------------------------------------------------------------

NO_COUNTS: dict[str, Any] = dict.fromkeys(("h__0", "h__1", "h__2"))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (NO_COUNTS | {"label": np.arange(300) % 3}, "has no histograms of labels; name the counts"),
        ({"h__0": np.ones(300, int), "h__1": np.zeros(300, int), "h__2": np.zeros(300, int)},
         "fewer than 2 items to validate or to test on"),
        ({"partition": np.array(["valid"] * 300)}, "fewer than 2 items to validate or to test on"),
    ],
)  # fmt: skip
def test_files_without_disagreement(
    made: Make, short: Callable[..., Results], columns: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        short(data=made(**columns))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["platt"]}, "unknown method 'platt'"),
        ({"methods": ["raw+alpha-"]}, "unknown method 'raw\\+alpha-'"),
        ({"n_labeled": [0]}, "`n_labeled` must be at least 1; got 0"),
        ({"models": ["best"]}, "has no classifier 'best'"),
        ({"where": {"site": "north"}}, "has no column 'site'"),
    ],
)
def test_options_that_cannot_be(
    short: Callable[..., Results], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(FewlabelsError, match=message) as caught:
        short(**options)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_fitted_is_said(short: Callable[..., Results]) -> None:
    """One label per item says nothing of the concentration: other methods go on."""
    results = short(n_labeled=[1], methods=["one-number", "raw", "raw+alpha-constant"])
    failed = results.rows["status"] == "failed"
    assert set(results.rows["method"][failed]) == {"one-number", "raw+alpha-constant"}
    assert all(results.rows["message"][failed])


def test_method_names() -> None:
    assert [name for name in METHODS if not method_of(name).scaling] == ["one-number"]
    assert method_of("raw").concentration == ""


def test_the_protocol_names_the_methods_and_metrics() -> None:
    protocol = load("histograms")
    assert (protocol.methods, protocol.metrics) == (METHODS, METRICS)
