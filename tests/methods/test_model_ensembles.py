"""The ensembles: what their beliefs say, and limits where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

import fewlabels as fl
from fewlabels.kernels.simplex import softmax
from fewlabels.methods.ensembles.belief_mixture import Belief, FittedBeliefs, each_belief
from fewlabels.methods.ensembles.ensembles import (
    AGREEMENT_INFLATION,
    EVEN,
    OPEN_WEIGHT,
    REFERENCE,
    WIDE_WEIGHT,
    _table,
    beliefs_of,
)
from fewlabels.models import AgreementEnsemble, LearnedEnsemble, TemperedEnsemble

FAMILIES = [family for family in _table()["weights"] if family]


def calibrated(n: int, seed: int, temper: float = 1.0, known: int = 100) -> fl.Predictions:
    """Classifiers around one calibrated score, all made sharper by `temper`."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(-1, 1.5, size=n)
    truth = rng.random(n) < 1 / (1 + np.exp(-logit))
    told = temper * (logit[:, None] + 0.1 * rng.normal(size=(n, 3)))
    labels = np.where(np.arange(n) < known, truth, -1)
    return fl.Predictions(1 / (1 + np.exp(-told)), labels)


def test_soft_evidence_counts_as_labels():
    """A histogram of many agreeing annotators teaches what the label teaches."""
    predictions = calibrated(1500, 1, temper=2.0, known=800)
    rows = np.flatnonzero(predictions.labeled)
    histogram = np.zeros((1500, 2))
    histogram[rows, predictions.labels[rows]] = 30
    told = fl.Predictions(predictions.probabilities, histogram=histogram)
    labeled = TemperedEnsemble().infer(predictions, 0).marginals()[800:]
    annotated = TemperedEnsemble().infer(told, 0).marginals()[800:]
    np.testing.assert_allclose(annotated, labeled, atol=0.01)


@pytest.mark.slow
def test_simulation_based_calibration():
    """Ranks of the true slope among its draws are uniform on data from the model's own prior."""
    from fewlabels.methods.ensembles.ensembles import PRIORS
    from fewlabels.methods.ensembles.informants import Informants
    from fewlabels.methods.ensembles.pooled_index import Feature, PooledIndex

    ranks = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        logit = rng.normal(-0.5, 2, size=200)[:, None] + 0.5 * rng.normal(size=(200, 3))
        p = 1 / (1 + np.exp(-logit))
        told = fl.Predictions(p)
        informants = Informants.of(told, every_kind=False)
        index = PooledIndex.of(informants, informants.said(told), ("raw",))
        wanted = [Feature("pool", "raw"), *(Feature("deviation", m) for m in told.models)]
        features = index.matrix(told, wanted)
        prior = PRIORS[rng.choice(5, p=[c.weight for c in PRIORS])]
        a = rng.normal(0, prior.sa / np.sqrt(2), size=2)
        b = rng.normal(prior.mb, prior.sb)
        w = rng.normal(0, prior.sw / np.sqrt(3), size=3) if prior.sw else np.zeros(3)
        q = softmax(a + b * features[:, :, 0] + features[:, :, 1:] @ w)
        truth = (rng.random(200) < q[:, 1]).astype(int)
        labels = np.where(np.arange(200) < 60, truth, -1)
        fitted = TemperedEnsemble(n_draws=99).fit(fl.Predictions(p, labels), rng)
        ranks.append(int((fitted.draws[:, 2] < b).sum()))
    counts = np.bincount(np.array(ranks) // 10, minlength=10)
    # Laplace's approximation is not exact; a p-value of 1e-3 would still show a wrong posterior.
    assert chisquare(counts).pvalue > 1e-3, counts


def overconfident(columns: int, labeled: int, copies: int = 1) -> fl.Predictions:
    """Classifiers three times as confident as they should be, each given several times."""
    rng = np.random.default_rng(0)
    score = rng.normal(size=600)
    truth = (rng.random(600) < 1 / (1 + np.exp(-score))).astype(int)
    noisy = score[:, None] + 0.4 * rng.normal(size=(600, columns))
    p = np.repeat(1 / (1 + np.exp(-3 * noisy)), copies, axis=1)
    return fl.Predictions(p, np.where(np.arange(600) < labeled, truth, -1))


def interval(predictions: fl.Predictions) -> tuple[float, float, float]:
    """Value, low and high of the first classifier's accuracy."""
    row = fl.estimate(predictions, LearnedEnsemble(), "accuracy", confidence_level=0.9).rows[0]
    return row.value, row.low, row.high


@pytest.mark.parametrize("left_out", [None, *FAMILIES])
def test_weights_of_the_beliefs(left_out):
    beliefs = beliefs_of(left_out)
    assert sum(b.weight for b in beliefs) == pytest.approx(1, abs=1e-3)
    assert all(b.slope_sd > 0 and b.offset_sd > 0 for b in beliefs)
    by_kind: dict[str, float] = {}
    for belief in beliefs:
        kind = "pool" if belief.pool in ("raw", "calibrated") else belief.pool
        by_kind[kind] = by_kind.get(kind, 0.0) + belief.weight
    assert by_kind.pop("reference") == pytest.approx(REFERENCE, abs=1e-3)
    assert len(by_kind) == 10
    assert by_kind.pop("beside") > 2 * by_kind.pop("ranks") > 0
    usual = (1 - REFERENCE) * (1 - WIDE_WEIGHT) * (1 - OPEN_WEIGHT)
    assert min(by_kind.values()) >= usual * EVEN / len(by_kind) - 1e-9


def test_every_family_has_weights_of_its_own():
    """A family that is left out teaches nothing: the weights without it are others."""
    tables = {beliefs_of(f) for f in (None, *FAMILIES)}
    assert len(tables) == 1 + len(FAMILIES)


@pytest.mark.parametrize("labeled", [0, 20])
def test_copies_of_a_classifier_are_no_agreement(labeled):
    """Given twice it says what it says once; counted as agreement it would be far too sure."""
    once, twice = (interval(overconfident(1, labeled, copies)) for copies in (1, 2))
    np.testing.assert_allclose(twice, once, atol=0.1)
    agreeing = fl.models.AgreementEnsemble().infer(overconfident(1, labeled, 2), 0)
    assert agreeing.diagnostics["anchor"] > 2
    learned = LearnedEnsemble().infer(overconfident(1, labeled, 2), 0)
    assert learned.diagnostics["anchor"] == 1


@pytest.mark.slow
def test_without_labels_intervals_are_wide_and_say_what_they_rest_on():
    posterior = LearnedEnsemble().infer(overconfident(3, 0), 0)
    assert posterior.status == "assumption"
    assert any("no labels" in w for w in posterior.warnings)
    _, low, high = interval(overconfident(3, 0))
    _, low_100, high_100 = interval(overconfident(3, 100))
    assert high - low > 2 * (high_100 - low_100)


def test_labels_of_one_class_leave_the_other_open():
    p = overconfident(3, 20)
    labels = np.where(p.labels == 0, 0, -1)
    one_class = fl.Predictions(p.probabilities, labels)
    row = fl.estimate(one_class, LearnedEnsemble(), "recall", confidence_level=0.9).rows[0]
    assert row.high - row.low > 0.1
    assert row.status == "few-labels"


def test_a_copy_that_lacks_a_prediction_is_a_copy():
    twice = overconfident(1, 0, 2)
    p = twice.probabilities.copy()
    p[3, 1] = np.nan
    posterior = LearnedEnsemble().infer(fl.Predictions(p, twice.labels), 0)
    assert posterior.diagnostics["anchor"] == 1


def test_labels_of_items_without_predictions_are_no_labels():
    p = overconfident(2, 20)
    probabilities = p.probabilities.copy()
    probabilities[:20] = np.nan
    posterior = LearnedEnsemble().infer(fl.Predictions(probabilities, p.labels), 0)
    assert posterior.status == "assumption"


def test_many_annotators_of_ten_items_are_ten_labels(monkeypatch):
    p = overconfident(2, 10)
    histogram = np.zeros((600, 2))
    rng = np.random.default_rng(0)
    histogram[:10, 1] = rng.integers(5, 45, 10)
    histogram[:10, 0] = 50 - histogram[:10, 1]
    told = fl.Predictions(p.probabilities, histogram=histogram)
    model = fl.models.LabelDistribution(LearnedEnsemble(), imputations=1)
    counted = []
    warnings = FittedBeliefs._warnings
    monkeypatch.setattr(
        FittedBeliefs, "_warnings", lambda fit: counted.append(fit.n_labels) or warnings(fit)
    )
    model.infer(told, 0)
    assert max(counted) == pytest.approx(10, rel=0.05)  # others leave some out


@pytest.mark.slow
def test_many_labels_weigh_beliefs_by_some_and_fit_by_all(monkeypatch):
    """With more labels than beliefs are weighed by, posteriors are nearly those of all."""
    rng = np.random.default_rng(2)
    score = rng.normal(size=3000)
    truth = (rng.random(3000) < 1 / (1 + np.exp(-1.5 * score))).astype(int)
    p = 1 / (1 + np.exp(-(score[:, None] + 0.3 * rng.normal(size=(3000, 3)))))
    told = fl.Predictions(p, np.where(np.arange(3000) < 1500, truth, -1))
    everything = LearnedEnsemble().infer(told, 0).marginals()
    monkeypatch.setattr("fewlabels.methods.ensembles.belief_mixture.WEIGHED_ITEMS", 500)
    some = LearnedEnsemble().infer(told, 0).marginals()
    assert np.abs(some - everything).mean() < 0.01
    assert np.abs(some - everything).max() > 0


def test_intervals_of_a_sample_are_inflated_too():
    p = overconfident(3, 20)
    widths = []
    for inflation in (AGREEMENT_INFLATION, 1.0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("fewlabels.methods.ensembles.ensembles.AGREEMENT_INFLATION", inflation)
            row = fl.estimate(p, AgreementEnsemble(), "brier", estimand="sample").rows[0]
        widths.append(row.high - row.low)
    assert widths[0] == pytest.approx(AGREEMENT_INFLATION * widths[1], rel=0.05)


# --- The mixture of beliefs: draws of one belief's coefficients against its exact posterior


def exact(x: np.ndarray, y: np.ndarray, belief: Belief) -> tuple[float, float, float]:
    """Mean, sd and skewness of the offset a of log odds a + b x, on a grid of a and b."""
    a = np.linspace(-9, 15, 801)[:, None]
    b = np.linspace(belief.slope - 6 * belief.slope_sd, belief.slope + 6 * belief.slope_sd, 201)
    log = -0.5 * (a / belief.offset_sd) ** 2 - 0.5 * ((b - belief.slope) / belief.slope_sd) ** 2
    for value, label in zip(x, y, strict=True):
        log = log - np.logaddexp(0, -(2 * label - 1) * (a + b * value))
    weight = np.exp(log - log.max()).sum(axis=1)
    weight /= weight.sum()
    mean = float(weight @ a[:, 0])
    sd = float(np.sqrt(weight @ (a[:, 0] - mean) ** 2))
    return mean, sd, float(weight @ ((a[:, 0] - mean) / sd) ** 3)


@pytest.mark.parametrize(("n", "positives"), [(8, 8), (12, 11), (20, 10)])
def test_draws_are_of_the_posterior_however_skewed(n, positives):
    """With eight labels of one class the posterior leans: a normal at its mode does not."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=400)
    y = np.full(400, -1)
    y[:n] = np.arange(n) < positives
    belief = Belief(1.0, "own", False, 1.0, 0.3, 2.5)
    predictions = fl.Predictions(1 / (1 + np.exp(-x))[:, None], y)
    [(_, drawn)] = each_belief([belief], 4000, predictions, rng)
    at_zero = np.argmin(np.abs(x[n:])) + n
    p = drawn.block(np.arange(4000), np.array([at_zero]))[0, 1]
    offset = np.log(p / (1 - p)) - x[at_zero]
    mean, sd, skewness = exact(x[:n], y[:n], belief)
    assert offset.mean() == pytest.approx(mean, abs=0.08 * sd)
    assert offset.std() == pytest.approx(sd, rel=0.06)
    z = (offset - offset.mean()) / offset.std()
    assert (z**3).mean() == pytest.approx(skewness, abs=0.25)


@pytest.mark.parametrize("of_other_items", [False, True])
def test_labels_that_contradict_a_reference_are_said(of_other_items):
    """The classifier is right on the reference; on other items it knows nothing of the classes."""
    rng = np.random.default_rng(4)

    def items(n, labeled, knows=True):
        y = rng.random(n) < 0.3
        z = np.where(y[:, None] == knows, 1.0, -1.0) * (1.3, 0.8) + rng.normal(size=(n, 2))
        y = y if knows else rng.random(n) < 0.3
        known = np.where(np.arange(n) < labeled, y, -1)
        return fl.Predictions(1 / (1 + np.exp(-2 * z)), known, models=["a", "b"], classes=[0, 1])

    found = fl.estimate(
        items(800, 40, not of_other_items), metrics="accuracy", reference=items(1000, 1000)
    )
    said = [line for line in found.warnings if "the labels contradict the reference" in line]
    assert bool(said) == of_other_items == (found.diagnostics["reference"]["weight"] < 0.01)
