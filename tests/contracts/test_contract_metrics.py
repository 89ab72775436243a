"""What every metric in the registry must do."""

from __future__ import annotations

import pickle
import re
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score, matthews_corrcoef, mean_absolute_error

import fewlabels
from fewlabels import Predictions
from fewlabels.kernels.weighting import Drawn, Soft
from fewlabels.metrics import ALIASES, METRICS, custom, resolve
from fewlabels.metrics.base import Plan, ScoreView
from fewlabels.metrics.confusion import GRADE_METRICS, step_of
from fewlabels.metrics.registry import asked_of, defaults

NAMES = list(METRICS)


def view(p: np.ndarray, *, exact: bool = True) -> ScoreView:
    return ScoreView(p.shape[1], p, np.argmax(p, axis=1), exact=exact)


def one_hot(labels: np.ndarray, n_classes: int) -> np.ndarray:
    return (labels[:, None, :] == np.arange(n_classes)[None, :, None]).astype(float)


def state(plan: Plan, weights: np.ndarray) -> np.ndarray:
    """Of label weights (n, K, D), every class of every item by itself."""
    return plan.state(Soft(weights, np.ones((len(weights), 1)), counts=True))[..., 0, :]


def value(name: str, plan: Plan, weights: np.ndarray) -> np.ndarray:
    return METRICS[name].finish(plan.digest(state(plan, weights)))


def of_labels(name: str, plan: Plan, labels: np.ndarray, k: int) -> np.ndarray:
    """Of drawn labels (n, D), which stand for themselves."""
    drawn = Drawn(labels, np.ones((len(labels), 1)), k, labels.shape[1])
    return METRICS[name].finish(plan.digest(plan.state(drawn)[..., 0, :]))


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities with many ties, and labels of several draws."""
    n_classes = draw(st.sampled_from([2, 3]))
    n = draw(st.integers(1, 40))
    raw = draw(arrays(np.float64, (n, n_classes), elements=st.sampled_from([0.0, 0.1, 0.3, 1.0])))
    raw[raw.sum(axis=1) == 0] = 1
    p = raw / raw.sum(axis=1, keepdims=True)
    labels = draw(arrays(np.int64, (n, 3), elements=st.integers(0, n_classes - 1)))
    return p, labels


@settings(max_examples=15, deadline=None)
@given(case=cases())
def test_drawn_labels_are_their_weights_in_bounds_or_undefined(case):
    p, labels = case
    for name in NAMES:
        plan = METRICS[name].statistic.prepare(view(p))
        quick = of_labels(name, plan, labels, p.shape[1])
        slow = value(name, plan, one_hot(labels, p.shape[1]))
        np.testing.assert_allclose(quick, slow, atol=1e-12, err_msg=name)
        low, high = METRICS[name].bounds
        defined = slow[~np.isnan(slow)]
        assert ((defined >= low - 1e-12) & (defined <= high + 1e-12)).all(), name


@settings(max_examples=15, deadline=None)
@given(case=cases(), seed=st.integers(0, 9))
def test_states_of_parts_add_up(case, seed):
    """One plan over all items: zero weight outside a part gives the part's state."""
    p, labels = case
    weights = one_hot(labels, p.shape[1])
    inside = np.random.default_rng(seed).random(len(p)) < 0.5
    cut = int(inside.sum())
    drawn = Drawn(labels, np.ones((len(p), 1)), p.shape[1], 3)
    for name in NAMES:
        plan = METRICS[name].statistic.prepare(view(p, exact=False))
        assert not plan.whole, name
        parts = [state(plan, weights * mask[:, None, None]) for mask in (inside, ~inside)]
        whole = state(plan, weights)
        np.testing.assert_allclose(parts[0] + parts[1], whole, atol=1e-12, err_msg=name)
        blocks = [slice(0, cut), slice(cut, len(p))]
        each = [plan.state(drawn.take(block), block) for block in blocks if len(p[block])]
        np.testing.assert_allclose(sum(each), plan.state(drawn), atol=1e-12, err_msg=name)


@settings(max_examples=15, deadline=None)
@given(case=cases(), seed=st.integers(0, 9))
def test_order_of_items_is_irrelevant_and_an_item_twice_is_one_of_weight_two(case, seed):
    p, labels = case
    order = np.random.default_rng(seed).permutation(len(p))
    weights = one_hot(labels, p.shape[1])
    twice = np.repeat(weights, 2, axis=0)
    for name in NAMES:
        prepare = METRICS[name].statistic.prepare
        single, turned = prepare(view(p)), prepare(view(p[order]))
        np.testing.assert_allclose(
            value(name, single, weights), value(name, turned, weights[order]), atol=1e-12,
            err_msg=name,
        )  # fmt: skip
        if name != "ece_quantile":  # quantiles of the items place its bins
            double = value(name, prepare(view(np.repeat(p, 2, axis=0))), twice)
            np.testing.assert_allclose(
                value(name, single, 2 * weights), double, atol=1e-12, err_msg=name
            )


@pytest.mark.parametrize("name", [name for name in NAMES if METRICS[name].linear])
def test_linear_metrics_are_linear(name):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], size=50)
    soft = rng.dirichlet([1, 1, 1], size=50)[:, :, None]
    plan = METRICS[name].statistic.prepare(view(p))
    draws = np.stack([rng.choice(3, p=q, size=4000) for q in soft[:, :, 0]])
    found = of_labels(name, plan, draws, 3)
    error = found.std() / np.sqrt(len(found))
    assert abs(found.mean() - value(name, plan, soft)[0]) < 4 * error


def test_metrics_say_what_they_are():
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.description
        assert metric.direction in (-1, 1) or name == "bias"  # whose best value is 0
        assert metric.bounds[0] < metric.bounds[1]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_binned_rankings_are_close(n_classes):
    rng = np.random.default_rng(0)
    n = 60_000
    truth = rng.integers(n_classes, size=n)
    logits = 1.5 * np.eye(n_classes)[truth] + rng.normal(size=(n, n_classes))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    weights = one_hot(truth[:, None], n_classes)
    for name, tolerance in (("roc_auc", 1e-5), ("average_precision", 1e-4)):
        exact, binned = (METRICS[name].statistic.prepare(view(p, exact=e)) for e in (True, False))
        gap = value(name, exact, weights) - value(name, binned, weights)
        assert 0 < abs(gap[0]) < tolerance


def test_aliases_name_metrics():
    assert set(ALIASES.values()) <= set(METRICS)
    assert list(resolve(["auc", "roc_auc"])) == ["auc", "roc_auc"]
    found = resolve(["acc", "error", "kappa", "mcc", "ap", "auprc", "logloss", "brier_score_loss"])
    assert [metric.name for metric in found.values()] == [
        "accuracy", "error_rate", "cohen_kappa", "matthews_corrcoef", "average_precision",
        "average_precision", "log_loss", "brier",
    ]  # fmt: skip


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("cohen_kappa", cohen_kappa_score),
        ("weighted_kappa", partial(cohen_kappa_score, weights="quadratic")),
        ("matthews_corrcoef", matthews_corrcoef),
    ],
)
def test_agreement_is_that_of_scikit_learn(name, reference, n_classes, weighted):
    rng = np.random.default_rng(n_classes)
    n = 200
    truth = rng.choice(n_classes, n, p=rng.dirichlet(np.ones(n_classes)))
    hard = np.where(rng.random(n) < 0.6, truth, rng.integers(n_classes, size=n))
    weight = rng.gamma(1.0, size=n) if weighted else np.ones(n)
    for said in (hard, (truth + 1) % n_classes, truth):
        plan = METRICS[name].statistic.prepare(ScoreView(n_classes, None, said))
        found = value(name, plan, one_hot(truth[:, None], n_classes) * weight[:, None, None])
        wanted = reference(truth, said, sample_weight=weight)
        assert found[0] == pytest.approx(wanted, abs=1e-12)


def grade_values(said, truth, weight=None, grades=None):
    """Every metric of grades of predicted grades and labels, both as places of classes (n,)."""
    k = len(grades) if grades is not None else 1 + max(*said, *truth)
    view, mass = ScoreView(k, None, np.asarray(said), grades=grades), one_hot(truth[:, None], k)
    mass = mass if weight is None else mass * weight[:, None, None]
    return {
        metric.name: value(metric.name, metric.statistic.prepare(view), mass)[0]
        for metric in GRADE_METRICS
    }


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("grades", [np.arange(1.0, 6), np.array([0, 10, 35, 60, 100.0])])
def test_metrics_of_grades_are_their_formulas(grades, weighted):
    """Grades count as the numbers that they are; repeated items stand for integer weights."""
    rng = np.random.default_rng(3)
    truth = rng.integers(5, size=150)
    said = np.clip(truth + rng.integers(-1, 3, size=150), 0, 4)
    times = rng.integers(1, 4, size=150) if weighted else np.ones(150, dtype=int)
    found = grade_values(said, truth, times.astype(float), grades)
    a, b = grades[np.repeat(said, times)], grades[np.repeat(truth, times)]
    n, both = len(a), np.cov(a, b, ddof=0)
    per_item = np.stack([a, b], axis=1)
    rows, columns, mean = per_item.mean(1), per_item.mean(0), per_item.mean()
    between = 2 * ((rows - mean) ** 2).sum() / (n - 1)
    raters = n * ((columns - mean) ** 2).sum()
    error = ((per_item - rows[:, None] - columns + mean) ** 2).sum() / (n - 1)
    chance = ((a[:, None] - b) ** 2).mean()
    wanted = {
        "weighted_kappa": 1 - ((a - b) ** 2).mean() / chance,
        "mean_absolute_error": mean_absolute_error(b, a),
        "bias": (a - b).mean(),
        "within_one": (abs(a - b) <= np.gcd.reduce(np.diff(grades).astype(int))).mean(),
        "spearman": spearmanr(a, b).statistic,
        "concordance": 2 * both[0, 1] / (both[0, 0] + both[1, 1] + (a - b).mean() ** 2),
        "icc2": (between - error) / (between + error + 2 * (raters - error) / n),
        "icc3": (between - error) / (between + error),
    }
    assert found == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize(
    ("grades", "step"),
    [
        ([1, 2, 3, 4, 5], 1), ([2, 5, 8, 10], 1), ([0, 20, 50, 100], 10), ([0.5, 1, 2.5], 0.5),
        ([0, 1 / 3, 2 / 3], 1 / 3), ([0.1, 0.2, 0.3], 0.1),
    ],
)  # fmt: skip
def test_one_step_is_that_of_the_scale_also_where_grades_are_not_used(grades, step):
    """The least gap of the grades in a file would depend on which of the scale occur in it."""
    assert step_of(np.array(grades, dtype=float)) == pytest.approx(step)
    found = grade_values(*np.array([[0, 1, 0], [0, 0, 1]]), grades=np.array(grades, dtype=float))
    near = abs(grades[1] - grades[0]) <= step * 1.001
    assert found["within_one"] == pytest.approx(1 if near else 1 / 3)


def test_intraclass_correlations_are_those_of_pingouin():
    """`pingouin.intraclass_corr` 0.7.0 of these twelve items: ICC(A,1) and ICC(C,1)."""
    said = np.array([1, 2, 3, 5, 4, 2, 3, 3, 1, 5, 4, 4]) - 1
    truth = np.array([1, 3, 3, 4, 4, 1, 5, 2, 2, 5, 3, 5]) - 1
    found = grade_values(said, truth)
    assert found["icc2"] == pytest.approx(0.7695238095238094, abs=1e-8)
    assert found["icc3"] == pytest.approx(0.7551401869158878, abs=1e-8)


def test_grades_of_one_kind_are_undefined_and_rates_are_of_many_items():
    zeros, ones = np.zeros(6, dtype=int), np.ones(6, dtype=int)
    constant = grade_values(zeros, zeros, grades=np.arange(3.0))
    for name in ("spearman", "concordance", "icc2", "icc3", "weighted_kappa"):
        assert np.isnan(constant[name]), name
    assert grade_values(ones, zeros)["bias"] == 1
    # A population known by its rates has no correction for the number of items.
    matrix = np.array([[0.3, 0.1], [0.2, 0.4]])[:, :, None]
    icc2, concordance = (
        METRICS[n].finish(METRICS[n].statistic.of_matrix(matrix, np.arange(2.0)))
        for n in ("icc2", "concordance")
    )
    assert icc2 == pytest.approx(concordance, abs=1e-12)


def test_grades_stand_for_their_metrics():
    predictions = Predictions(votes=[[0], [1], [2]], classes=["1", "2", "3"])
    assert asked_of("grades", predictions) == [metric.name for metric in GRADE_METRICS]


@pytest.mark.parametrize(
    ("hard", "truth", "kappa", "mcc"),
    [
        ([1, 1, 1], [1, 1, 1], np.nan, np.nan),  # 0 / 0 both
        ([1, 1, 1], [0, 1, 1], 0.0, np.nan),  # one class alone is predicted
        ([0, 1, 1], [1, 1, 1], 0.0, np.nan),  # one class alone is there
        ([0, 0, 1], [1, 1, 0], -0.8, -1.0),
    ],
)
def test_agreement_of_one_class_is_undefined(hard, truth, kappa, mcc):
    # Of two classes every mistake is one grade off.
    for name, wanted in (
        ("cohen_kappa", kappa),
        ("weighted_kappa", kappa),
        ("matthews_corrcoef", mcc),
    ):
        plan = METRICS[name].statistic.prepare(ScoreView(2, None, np.array(hard)))
        # In thirds, so that sums round.
        found = value(name, plan, one_hot(np.array(truth)[:, None], 2) / 3)
        assert found[0] == pytest.approx(wanted, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    ("arrays_given", "wanted"),
    [
        ({"probabilities": [[0.2], [0.9]]}, ("accuracy", "ece", "roc_auc", "average_precision")),
        (
            {"probabilities": [[0.2, np.nan]], "scores": [[np.nan, 1.0]]},
            ("accuracy", "ece", "roc_auc", "average_precision"),
        ),
        ({"scores": [[0.2], [3.0]]}, ("roc_auc", "average_precision")),
        (
            {"scores": [[0.2, np.nan]], "votes": [[-1, 1]]},
            ("error_rate", "cohen_kappa", "roc_auc", "average_precision"),
        ),
        ({"votes": [[0], [1]]}, ("error_rate", "cohen_kappa")),
    ],
)
def test_the_default_follows_the_input(arrays_given, wanted):
    predictions = Predictions(**arrays_given)
    assert defaults(predictions) == wanted
    assert tuple(asked_of(None, predictions)) == wanted
    assert asked_of(["acc", "default"], predictions) == ["acc", *wanted]
    assert asked_of("acc", predictions) == ["acc"]


def test_custom_metric_that_fails_is_undefined():
    def picky(y_true, y_proba):
        if y_true.sum() > 1:
            raise ValueError("too many")
        return 1.0

    metric = custom(picky, direction=1)
    plan = metric.statistic.prepare(view(np.array([[0.5, 0.5]] * 3)))
    labels = np.array([[0, 1], [0, 1], [1, 1]])
    found = metric.finish(plan.state(Drawn(labels, np.ones((3, 1)), 2, 2))[0])
    assert found[0] == 1
    assert np.isnan(found[1])


def estimated_by(function):
    """Rows and warnings of a user's metric over two classifiers, half of the items labeled."""
    p = np.random.default_rng(2).uniform(0.05, 0.95, 80)
    labels = np.where(np.arange(80) < 40, p > 0.5, -1)
    found = fewlabels.estimate(Predictions({"a": p, "b": p**2}, labels), metrics=custom(function))
    return found.rows, " ".join(found.warnings)


@pytest.mark.parametrize(
    "value", [np.inf, -np.inf, np.nan, 10**400, Fraction(10**400), ValueError(), OverflowError()]
)
def test_what_is_not_finite_is_undefined_and_never_ok(value):
    def mine(y_true, y_proba):
        if isinstance(value, Exception):
            raise value
        return value

    rows, warnings = estimated_by(mine)
    assert all(np.isnan((row.value, row.low, row.high)).all() for row in rows)
    assert {str(row.status) for row in rows} == {"undefined"}
    assert "undefined: mine: " in warnings


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_draws_that_are_not_finite_are_counted(value):
    seen = []

    def mine(y_true, y_proba):
        seen.append(0)
        return value if len(seen) % 5 == 0 else 0.5

    rows, warnings = estimated_by(mine)
    assert all((row.value, row.low, row.high) == (0.5, 0.5, 0.5) for row in rows)
    assert re.search(r"mine was undefined in \d+ of \d+ draws", warnings)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1j, "got 1j"), (None, "got None"), ("0.5", "got '0.5'"), (np.ones(2), "got array"),
        (np.array(0.5), "got array"), ([0.5], r"got \[0.5\]"),
        (KeyError("a\nb"), "raised KeyError"), (TypeError("no"), "raised TypeError: no"),
    ],
)  # fmt: skip
def test_what_is_no_number_is_said_with_the_name_of_the_metric(value, message):
    def mine(y_true, y_proba):
        if isinstance(value, Exception):
            raise value
        return value

    with pytest.raises(fewlabels.InputError, match=f"metric 'mine' must return.*{message}") as told:
        estimated_by(mine)
    assert "\n" not in str(told.value)


def test_a_function_that_writes_into_its_arguments_changes_nothing():
    def mine(y_true, y_proba):
        return float(((y_proba > 0.5) == y_true).mean())

    clean = estimated_by(mine)

    def careless(y_true, y_proba):
        out = mine(y_true, y_proba)
        y_true[:], y_proba[:] = 0, 0
        return out

    assert [row[3:] for row in estimated_by(careless)[0]] == [row[3:] for row in clean[0]]


@pytest.mark.parametrize("name", METRICS)
def test_metrics_travel_to_other_processes(name: str) -> None:
    assert pickle.loads(pickle.dumps(METRICS[name])).name == name
