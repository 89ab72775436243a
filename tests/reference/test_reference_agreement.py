"""Votes on NELL: the published agreement rates, and the errors of the methods without a sampler."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.methods.votes.agreement_rates import (
    agreement_rates,
    nearest_to_independence,
    subsets,
)
from fewlabels.models import AgreementRates, DawidSkene

NAMES = ("ADJ", "CMC", "CPL", "VERB")
THRESHOLDS = (0.05, 0.05, 0.1, 0.05)


@pytest.fixture(scope="module")
def nell(data_folder: Path) -> fl.Predictions:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(data_folder / "nell" / "data.parquet")
    p = np.stack([frame[f"p__{name}__1"] for name in NAMES], axis=1)
    return fl.Predictions(
        votes=(p >= THRESHOLDS).astype(int),
        labels=frame["label"].to_numpy(),
        domain=frame["domain"].to_numpy(),
        models=NAMES,
        classes=[0, 1],
    )


def errors_of(posterior, nell: fl.Predictions) -> tuple[float, float]:
    """Mean squared error of the error rates, and mean error of the hard labels, over domains."""
    square, wrong = [], []
    hard = posterior.marginals().argmax(axis=1) != nell.labels
    for name, found in posterior.diagnostics["error_rate"].items():
        rows = nell.domain == name
        truth = (nell.hard[rows] != nell.labels[rows, None]).mean(axis=0)
        square.append((np.array([found[m] for m in NAMES]) - truth) ** 2)
        wrong.append(hard[rows].mean())
    return float(np.mean(square)), float(np.mean(wrong))


def test_animals_of_nell(nell):
    """The case that Platanios et al. test their own code with."""
    rows = nell.domain == "animal"
    votes, labels = nell.hard[rows], nell.labels[rows]
    found = nearest_to_independence(agreement_rates(votes, np.ones(len(votes)), 4), 4, 4)
    assert found.converged
    np.testing.assert_allclose(found.values[:4], [0.2288, 0.2309, 0.1377, 0.3526], atol=6e-5)
    wrong = votes != labels[:, None]
    joint = np.array([wrong[:, a].all(axis=1).mean() for a in subsets(4, 4)])
    gap = np.abs(found.values - joint)
    assert gap[:4].mean() == pytest.approx(0.04148, abs=2e-5)
    assert gap.mean() == pytest.approx(0.02392, abs=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "rates", "labels"),
    [
        (AgreementRates(by_domain=True), 1.59e-4, 0.0146),
        (DawidSkene(rates="one", by_domain=True), 1.98e-4, 0.0152),
        (
            DawidSkene(
                by_domain=True, start="majority", smoothing=0.01, tolerance=1e-9, iterations=2000
            ),
            1.67e-5,
            0.0082,
        ),
    ],
    ids=["agreement-rates", "dawid-skene, one rate", "dawid-skene"],
)
def test_all_rows_of_nell(nell, model, rates, labels):
    found = errors_of(model.infer(nell.with_labels(None), 0), nell)
    assert found[0] == pytest.approx(rates, rel=0.02)
    assert found[1] == pytest.approx(labels, abs=2e-4)
