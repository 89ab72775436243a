"""Temperature, vector and matrix scaling against scipy, scikit-learn and autograd."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import fewlabels as fl
from fewlabels.calibration import MatrixScaling, TemperatureScaling, VectorScaling, penalties
from fewlabels.calibration import scaling as kernel

SCALINGS = [TemperatureScaling, VectorScaling, MatrixScaling]


def naive_loss(z, counts):
    return -(counts * log_softmax(z, axis=1)).sum() / counts.sum()


@pytest.fixture
def labels(rng, world):
    tilted = world["logits"] * [0.5, 0.7, 0.6, 0.6] + [0, 0.5, 0, -0.3]
    return (tilted + rng.gumbel(size=tilted.shape)).argmax(axis=1)


def test_matrix_scaling_is_scipys(world):
    u, counts = world["logits"], world["counts"]
    model = MatrixScaling(penalty=(0.7, 0.2), inputs="logits").fit(u, counts)
    off = ~np.eye(4, dtype=bool)

    def loss(t):
        w, b = t[:16].reshape(4, 4), t[16:]
        return (
            naive_loss(u @ w.T + b, counts)
            + 0.7 / (4 * 3) * (w[off] ** 2).sum()
            + 0.2 / 4 * (b**2).sum()
        )

    other = minimize(loss, np.r_[np.eye(4).ravel(), np.zeros(4)], options={"gtol": 1e-6})
    mine = np.append(model.weights_.ravel(), model.intercept_)
    assert model.converged_
    assert loss(mine) <= other.fun + 1e-12
    np.testing.assert_allclose(model.weights_, other.x[:16].reshape(4, 4), atol=1e-3)


def test_matrix_scaling_without_penalty_is_logistic_regression(world, labels):
    u = world["logits"]
    model = MatrixScaling(penalty=0.0, inputs="logits").fit(u, labels)
    other = LogisticRegression(C=1e12, tol=1e-10, max_iter=10_000).fit(u, labels)
    np.testing.assert_allclose(model.predict_proba(u), other.predict_proba(u), atol=1e-5)


@pytest.mark.parametrize("full", [False, True])
def test_derivatives_are_autograds(world, full):
    autograd = pytest.importorskip("autograd")
    anp = autograd.numpy
    u, k = world["logits"][:50], 4
    weight = np.linspace(0.5, 2, 50)
    counts = world["counts"][:50]
    data = kernel.scaled_labels(counts.astype(float), weight)
    form = kernel.Affine(full, 0.7, 0.2)

    def loss(t):
        w, b = t[:-k], t[-k:]
        z = anp.dot(u, w.reshape(k, k).T) + b if full else u * w + b
        log_p = z - anp.log(anp.sum(anp.exp(z), axis=1, keepdims=True))
        value = -anp.sum(weight[:, None] * counts * log_p) / (weight @ counts.sum(axis=1))
        if full:
            off = w.reshape(k, k) * (1 - np.eye(k))
            value = value + 0.7 / (k * (k - 1)) * anp.sum(off**2)
        return value + 0.2 / k * anp.sum(b**2)

    theta = kernel.identity(k, full=full) + 0.1 * np.sin(np.arange(k * (k if full else 1) + k))
    value, slope = kernel.affine_loss(theta, u, data, form)
    assert value == pytest.approx(loss(theta), rel=1e-12)
    np.testing.assert_allclose(slope, autograd.grad(loss)(theta), atol=1e-12)
    found = kernel.affine_hessian(theta, u, data, form)
    np.testing.assert_allclose(found, autograd.hessian(loss)(theta), atol=1e-12)
    at = kernel.temperature_loss(0.4, u, data)
    steps = [kernel.temperature_loss(0.4 + h, u, data)[0] for h in (-1e-6, 1e-6)]
    assert at[1] == pytest.approx((steps[1] - steps[0]) / 2e-6, rel=1e-6)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_a_histogram_is_its_labels_one_by_one(world, scaling):
    f, counts = world["f"], world["counts"]
    item, label = np.nonzero(counts)
    times = np.repeat(np.arange(len(item)), counts[item, label])
    options = {} if scaling is TemperatureScaling else {"penalty": 0.1}
    whole = scaling(**options).fit(f, counts)
    single = scaling(**options).fit(f[item[times]], label[times])
    weighted = scaling(**options).fit(f[item], label, sample_weight=counts[item, label])
    for other in (single, weighted):
        np.testing.assert_allclose(whole.predict_proba(f), other.predict_proba(f), atol=1e-7)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_probabilities_are_their_logarithms(world, labels, scaling):
    a = scaling().fit(world["f"], labels)
    b = scaling(inputs="logits").fit(np.log(world["f"]), labels)
    p = a.predict_proba(world["f"])
    np.testing.assert_allclose(p, b.predict_proba(np.log(world["f"])), rtol=1e-9)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(a.predict(world["f"]), p.argmax(axis=1))


@pytest.mark.product
@pytest.mark.parametrize("scaling", [VectorScaling, MatrixScaling])
@pytest.mark.parametrize("validation", ["split", 3])
def test_the_penalty_of_the_least_held_out_loss(world, labels, scaling, validation):
    u = world["logits"][:60]
    model = scaling(penalties=(1e-4, 1e3), validation=validation, inputs="logits")
    model.fit(u, labels[:60])
    held = model._held_out(60)
    assert sum(h.sum() for h in held) == (12 if validation == "split" else 60)
    losses = {}
    for form in model._candidates():
        penalty = (form.off_diagonal, form.intercept) if form.full else form.intercept
        parts = [
            scaling(penalty=penalty, inputs="logits").fit(u[~h], labels[:60][~h]) for h in held
        ]
        losses[penalty] = sum(
            -m.score(u[h], labels[:60][h]) * h.sum() for m, h in zip(parts, held, strict=True)
        )
    assert model.penalty_ == min(losses, key=losses.__getitem__)
    again = scaling(penalties=(1e-4, 1e3), validation=validation, inputs="logits")
    np.testing.assert_array_equal(again.fit(u, labels[:60]).intercept_, model.intercept_)


def test_scikit_learn_around_it(world, labels):
    f = world["f"]
    search = GridSearchCV(
        MatrixScaling(), {"penalty": [0.01, 1.0, 100.0]}, scoring="neg_log_loss", cv=3
    ).fit(f, labels)
    assert search.best_params_["penalty"] in (0.01, 1.0, 100.0)
    on_counts = GridSearchCV(VectorScaling(), {"penalty": [0.1, 1.0]}, cv=3)
    assert np.isfinite(on_counts.fit(f, world["counts"]).best_score_)
    x = world["features"][:, :1]
    classifier = LogisticRegression().fit(x, labels)
    chain = make_pipeline(FunctionTransformer(classifier.predict_proba), TemperatureScaling())
    assert chain.fit(x, labels).predict_proba(x).shape == (900, 4)


def test_labels_by_name_and_unknown_labels(world, labels):
    f, names = world["f"], np.array(["ant", "bee", "cat", "dog"])
    by_index = TemperatureScaling().fit(f, labels)
    by_name = TemperatureScaling().fit(f, names[labels])
    assert by_name.temperature_ == by_index.temperature_
    assert list(by_name.classes_) == list(names)
    assert set(by_name.predict(f)) <= set(names)
    from_one = TemperatureScaling().fit(f, labels + 1)
    assert list(from_one.classes_) == [1, 2, 3, 4]
    assert from_one.temperature_ == by_index.temperature_
    some = labels.astype(object)
    some[::2], some[1] = None, float("nan")
    half = np.where(np.arange(900) % 2, labels, -1)
    half[1] = -1
    assert (
        TemperatureScaling().fit(f, some).temperature_
        == TemperatureScaling().fit(f, half).temperature_
        == TemperatureScaling().fit(f[half >= 0], half[half >= 0]).temperature_
    )


class Tensor:
    """What a PyTorch tensor is to numpy: readable once detached."""

    def __init__(self, values, recording=True):
        self.values, self.recording = values, recording

    def detach(self):
        return Tensor(self.values, recording=False)

    def cpu(self):
        return self

    def __array__(self, dtype=None, copy=None):
        if self.recording:
            raise RuntimeError("cannot turn a tensor that requires grad into an array")
        return np.asarray(self.values, dtype=dtype)


def test_tensors(world, labels):
    u = world["logits"].astype(np.float32)
    model = TemperatureScaling(inputs="logits").fit(Tensor(u), Tensor(labels))
    assert model.temperature_ == TemperatureScaling(inputs="logits").fit(u, labels).temperature_


def test_torch(world, labels):
    torch = pytest.importorskip("torch")
    u = torch.tensor(world["logits"], dtype=torch.float32, requires_grad=True)
    model = TemperatureScaling(inputs="logits").fit(u, torch.tensor(labels))
    assert model.predict_proba(u).shape == (900, 4)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_hopeless_data_stay_finite(scaling):
    sure = np.eye(3)
    for y in ([0, 1, 2], [1, 2, 0], [0, 0, 0]):
        p = scaling().fit(sure, y).predict_proba(sure)
        assert np.isfinite(p).all()
        np.testing.assert_allclose(p.sum(axis=1), 1)
    huge = scaling(inputs="logits").fit(1e99 * sure, [0, 1, 2])
    assert np.isfinite(huge.predict_proba(1e99 * sure)).all()


def test_temperatures_without_a_minimum():
    sure = np.eye(3)
    right = TemperatureScaling().fit(sure, [0, 1, 2])
    wrong = TemperatureScaling().fit(sure, [1, 2, 0])
    assert not right.converged_
    assert not wrong.converged_
    assert right.temperature_ == pytest.approx(np.exp(-7))
    assert wrong.temperature_ == pytest.approx(np.exp(7))
    flat = TemperatureScaling().fit(np.full((3, 3), 1 / 3), [0, 1, 2])
    assert flat.temperature_ == 1
    assert flat.converged_


def test_zeros_are_what_the_classifier_cannot_tell(rng):
    """Shares of 15 neighbours: with zeros at 1e-12 a few labels there would flatten everything."""
    q = rng.dirichlet(np.full(5, 0.5), 3000)
    f = rng.multinomial(15, q) / 15
    y = np.array([rng.choice(5, p=p) for p in q])
    model = TemperatureScaling().fit(f[:2000], y[:2000])
    assert model.floor_ == pytest.approx(1 / 30)
    fixed = TemperatureScaling(floor=1e-12).fit(f[:2000], y[:2000])
    assert fixed.floor_ == 1e-12
    errors = [
        ((p - q[2000:]) ** 2).sum(axis=1).mean()
        for p in (m.predict_proba(f[2000:]) for m in (model, fixed))
    ]
    assert errors[0] < 0.5 * errors[1]
    assert TemperatureScaling().fit(q, y).floor_ == 1e-12


P = [[0.2, 0.8], [0.5, 0.5]]
BAD = {
    "fractional": (P, [[0.5, 1.5], [1, 1]], "whole counts; got 0.5 for item 0"),
    "K": (P, [[1, 1, 0], [1, 1, 0]], r"\(2, 2\); got shape \(2, 3\)"),
    "no labels": (P, [[0, 0], [0, 0]], "no item has both a label and a weight"),
    "all unknown": (P, [-1, -1], "no item has both a label and a weight"),
    "length": (P, [0, 1, 1], "`labels` must have 2 entries"),
    "coded": (P, [-1, 1], "-1 marks an unknown label; pass 0 and 1"),
    "out of range": (P, [0, 2], None),
    "too many": (P, [5, 5], "`labels` name 1 classes"),
    "NaN": ([[np.nan, 1], [0.5, 0.5]], [0, 1], "`probabilities` must not have NaN"),
    "sums": ([[0.2, 0.7], [0.5, 0.5]], [0, 1], "must sum to 1.*softmax"),
    "flat": ([0.2, 0.8], [0, 1], "must have 2 dimensions"),
    "text": ([["a", "b"]], [0], "must be numbers"),
    "complex": (np.array(P) + 1j, [0, 1], "is complex"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(case):
    p, y, message = BAD[case]
    if message is None:  # 0 and 2 of two columns can only be names
        assert list(TemperatureScaling().fit(p, y).classes_) == [0, 2]
        return
    with pytest.raises(fl.InputError, match=message) as caught:
        TemperatureScaling().fit(p, y)
    assert "\n" not in str(caught.value)


def test_bad_use_is_one_line(world, labels):
    f = world["f"]
    with pytest.raises(fl.UsageError, match="unknown `inputs` 'logit'; did you mean 'logits'"):
        TemperatureScaling(inputs="logit").fit(f, labels)
    with pytest.raises(fl.UsageError, match="`penalty`"):
        VectorScaling(penalty=-1.0).fit(f, labels)
    with pytest.raises(fl.UsageError, match="unknown `penalty` 'cv'"):
        MatrixScaling(penalty="cv").fit(f, labels)
    with pytest.raises(fl.UsageError, match="one number, or two"):
        MatrixScaling(penalty=(1, 2, 3)).fit(f, labels)
    with pytest.raises(fl.UsageError, match="folds"):
        VectorScaling(validation=1).fit(f, labels)
    with pytest.raises(fl.UsageError, match="`penalties` must have one"):
        VectorScaling(penalties=()).fit(f, labels)
    with pytest.raises(fl.InputError, match="two labeled items"):
        VectorScaling().fit(f[:1], labels[:1])
    with pytest.raises(fl.InputError, match=r"`sample_weight` .* got -1 for item 0"):
        TemperatureScaling().fit(f, labels, sample_weight=-np.ones(900))
    with pytest.raises(fl.InputError, match="weight above zero"):
        TemperatureScaling().fit(f, labels, sample_weight=np.zeros(900))
    with pytest.raises(fl.InputError, match=r"within \+-1e100"):
        TemperatureScaling(inputs="logits").fit([[1e101, 0.0]], [0])
    with pytest.raises(NotFittedError):
        MatrixScaling().predict(f)
    with pytest.raises(fl.InputError, match="fitted on 4"):
        TemperatureScaling().fit(f, labels).predict_proba(P)


def test_fits_of_many_coefficients_go_on_from_each_other(world, labels, monkeypatch):
    starts, ends, tolerances = [], [], []
    descend = penalties.descend

    def followed(loss, hessian, start, *, tolerance, max_iter):
        found = descend(loss, hessian, start, tolerance=tolerance, max_iter=max_iter)
        starts.append(start)
        ends.append(found.point)
        tolerances.append(tolerance)
        return found

    monkeypatch.setattr(penalties, "descend", followed)
    few = MatrixScaling(inputs="logits").fit(world["logits"], labels)
    assert all((start == kernel.identity(4, full=True)).all() for start in starts)
    assert set(tolerances) == {1e-9}
    for recorded in (starts, ends, tolerances):
        recorded.clear()
    monkeypatch.setattr(penalties, "_LARGEST_HESSIAN", 0)
    many = MatrixScaling(inputs="logits", tol=1e-7).fit(world["logits"], labels)
    assert len(starts) == 10
    assert all((start == end).all() for start, end in zip(starts[1:9], ends[:8], strict=True))
    assert tolerances == [penalties._ROUGH] * 9 + [1e-7]
    assert many.penalty_ == few.penalty_
    np.testing.assert_allclose(many.weights_, few.weights_, atol=1e-3)
