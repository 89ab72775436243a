"""Losses of label histograms against plain loops, known worlds and their own identities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference_histograms_naive import (
    DISAGREEMENT_KEYS,
    KEYS,
    close,
    draw_many,
    evaluate,
    random_histograms,
    some_items,
    squared_bins,
    z_score,
)


@pytest.fixture(scope="module")
def annotations():
    return pytest.importorskip("fewlabels.annotations")


# ---------------------------------------------------------------- against loops


@pytest.mark.parametrize("variance", ["labels", "residual"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("N", "K", "bins"), [(1, 2, 15), (7, 2, 15), (60, 5, 15), (300, 3, 4)])
def test_losses(annotations, rng, variance, weighted, N, K, bins):
    y, z = some_items(rng, N, K)
    y[-1] = 0 if N > 1 else y[-1]
    w = rng.gamma(2, size=N) if weighted else None
    d = rng.random(N)
    for given in (None, d):
        found = annotations.evaluate(
            y, z, disagreement=given, weight=w, bins=bins, variance=variance
        )
        close(found, evaluate(y, z, w=w, d=given, bins=bins, variance=variance))
        assert found["n_annotated"] == (y.sum(axis=1) > 0).sum()
        assert found["n_labels"] == y.sum()


def test_losses_of_more_items_than_a_chunk(annotations, rng):
    """Vectorised over items here, so that sums over blocks of rows are compared with one sum."""
    N, K = 150_001, 3
    z = rng.dirichlet(np.ones(K), N)
    y = rng.multinomial(rng.integers(0, 5, N), z)
    found = annotations.evaluate(y, z)
    keep = y.sum(axis=1) > 0
    y, z = y[keep], z[keep]
    n = y.sum(axis=1, keepdims=True)
    mu = y / n
    spread = mu * (1 - mu)
    assert found["L"] == pytest.approx(((mu - z) ** 2 + spread).sum(1).mean(), rel=1e-9)
    two = n[:, 0] > 1
    debiased = ((mu - z) ** 2)[two] - spread[two] / (n[two] - 1)
    assert found["EL"] == pytest.approx(debiased.sum(1).mean(), abs=1e-10)
    ones = np.ones(len(z))
    parts = np.array([squared_bins(mu[:, k], z[:, k], ones) for k in range(K)]).sum(axis=0)
    assert found["CL_plugin"] == pytest.approx(parts[0], rel=1e-7, abs=1e-11)
    assert found["CL"] == pytest.approx(parts[1], abs=1e-10)


def test_many_labels_per_item(annotations):
    """Counts beyond 2^31: products of counts must not wrap around."""
    y = np.array([[3_000_000_000, 1_000_000_000], [2_000_000_000, 2_000_000_000]])
    z = np.array([[0.75, 0.25], [0.5, 0.5]])
    found = annotations.evaluate(y, z)
    assert found["EL"] == pytest.approx(0, abs=1e-9)
    assert found["L_disagreement"] == pytest.approx(
        np.mean([0.375 * 0.625**2 + 0.625 * 0.375**2, 0.25]), rel=1e-8
    )
    np.testing.assert_allclose(annotations.DISAGREEMENT.observed(y), [0.375, 0.5], rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float32, np.float64])
def test_dtypes_of_counts(annotations, rng, dtype):
    y, z = some_items(rng)
    close(annotations.evaluate((y * 40).astype(dtype), z), evaluate(y * 40, z))


# ---------------------------------------------------------------- identities


def test_decompositions(annotations, rng):
    y, z = some_items(rng, sizes=(2, 7))
    found = annotations.evaluate(y, z)
    n = y.sum(axis=1, keepdims=True)
    mu = y / n
    spread = (mu * (1 - mu)).sum(axis=1)
    assert found["L"] == pytest.approx(found["EL_plugin"] + spread.mean())
    corrected = (spread * n[:, 0] / (n[:, 0] - 1)).mean()
    assert found["L"] == pytest.approx(found["EL"] + corrected)
    assert corrected == pytest.approx(np.mean(annotations.DISAGREEMENT.observed(y)))
    assert found["DL"] == pytest.approx(found["EL"] - found["CL"])
    assert found["DL_plugin"] == pytest.approx(found["EL_plugin"] - found["CL_plugin"])
    assert found["CE"] == pytest.approx(math.sqrt(max(found["CL"], 0)))


def test_two_classes_are_twice_the_binary_losses(annotations, rng):
    y, z = some_items(rng, K=2, sizes=(2, 6))
    found = annotations.evaluate(y, z)
    n = y.sum(axis=1)
    mu, p = y[:, 0] / n, z[:, 0]
    assert found["L"] == pytest.approx(2 * np.mean((mu - p) ** 2 + mu * (1 - mu)))
    assert found["EL_plugin"] == pytest.approx(2 * np.mean((mu - p) ** 2))
    assert found["EL"] == pytest.approx(2 * np.mean((mu - p) ** 2 - mu * (1 - mu) / (n - 1)))
    plugin, debiased = squared_bins(mu, p, np.ones(len(y)))
    assert found["CL_plugin"] == pytest.approx(2 * plugin)
    assert found["CL"] == pytest.approx(2 * debiased)


def test_a_perfect_distribution_with_certain_labels_has_no_loss(annotations, rng):
    z = np.eye(3)[rng.integers(3, size=50)]
    found = annotations.evaluate((z * 4).astype(int), z)
    close(found, dict.fromkeys(KEYS, 0.0) | {"accuracy": 1.0})


# ---------------------------------------------------------------- invariances


@pytest.mark.parametrize("weighted", [False, True])
def test_invariances(annotations, rng, weighted):
    y, z = some_items(rng)
    d, w = rng.random(len(y)), rng.gamma(2, size=len(y)) if weighted else np.ones(len(y))
    before = annotations.evaluate(y, z, disagreement=d, weight=w)
    order = rng.permutation(len(y))
    close(annotations.evaluate(y[order], z[order], disagreement=d[order], weight=w[order]), before)
    for scale in (1e-6, 7.0):
        close(annotations.evaluate(y, z, disagreement=d, weight=w * scale), before)
    classes = rng.permutation(y.shape[1])
    relabelled = annotations.evaluate(y[:, classes], z[:, classes], disagreement=d, weight=w)
    close(relabelled, before, KEYS[1:])  # accuracy breaks ties by the order of classes
    if not weighted:
        close(annotations.evaluate(y, z, disagreement=d), before)


def test_relabelling_keeps_accuracy_without_ties(annotations, rng):
    y, z = some_items(rng, sizes=(9, 12))
    y[np.arange(len(y)), rng.integers(4, size=len(y))] += 40
    before = annotations.evaluate(y, z)["accuracy"]
    assert annotations.evaluate(y[:, ::-1], z[:, ::-1])["accuracy"] == before


def test_ties_go_to_the_first_class(annotations):
    y, z = np.array([[2, 2], [0, 2]]), np.array([[0.5, 0.5], [0.1, 0.9]])
    assert annotations.evaluate(y, z)["accuracy"] == 1
    y, z = np.array([[2, 2], [0, 2]]), np.array([[0.4, 0.6], [0.5, 0.5]])
    assert annotations.evaluate(y, z)["accuracy"] == 0


def test_duplicates_are_weights(annotations, rng):
    """All that is a weighted mean; the debiasing of CL knows that a weight is not another item."""
    y, z = some_items(rng)
    times = rng.integers(1, 4, len(y))
    many = annotations.evaluate(np.repeat(y, times, axis=0), np.repeat(z, times, axis=0))
    weighted = annotations.evaluate(y, z, weight=times)
    means = ("accuracy", "L", "EL", "EL_plugin", "CL_plugin", "DL_plugin", "L_disagreement")
    close(weighted, many, (*means, "CL_disagreement_plugin"))
    assert abs(weighted["CL"] - many["CL"]) > 1e-6


def test_a_weight_of_zero_is_no_item(annotations, rng):
    y, z = some_items(rng)
    w = rng.integers(0, 3, len(y)).astype(float)
    kept = w > 0
    close(annotations.evaluate(y, z, weight=w), annotations.evaluate(y[kept], z[kept],
          weight=w[kept]))  # fmt: skip


def test_means_of_groups(annotations, rng):
    """L, EL, EL_plugin, L_disagreement and accuracy of all items are the means of the groups'."""
    y, z = some_items(rng, N=90, sizes=(2, 6))
    group, w = rng.integers(3, size=90), rng.gamma(2, size=90)
    whole = annotations.evaluate(y, z, weight=w)
    parts = [annotations.evaluate(y[r], z[r], weight=w[r]) for r in (group == g for g in range(3))]
    sizes = [w[group == g].sum() for g in range(3)]
    for key in ("accuracy", "L", "EL", "EL_plugin", "L_disagreement"):
        assert whole[key] == pytest.approx(np.average([p[key] for p in parts], weights=sizes))
    assert abs(whole["CL"] - np.average([p["CL"] for p in parts], weights=sizes)) > 1e-4


def test_input_is_untouched_and_seeds_repeat(annotations, rng):
    y, z = some_items(rng)
    before = y.copy(), z.copy()
    first = annotations.evaluate(y, z, confidence_level=0.9, random_state=3)
    assert first == annotations.evaluate(y, z, confidence_level=0.9, random_state=3)
    assert first != annotations.evaluate(y, z, confidence_level=0.9, random_state=4)
    np.testing.assert_array_equal(y, before[0])
    np.testing.assert_array_equal(z, before[1])


# ---------------------------------------------------------------- edge rules


def test_items_without_labels_or_predictions_are_dropped(annotations, rng):
    y, z = some_items(rng)
    y2, z2 = np.insert(y, 5, 0, axis=0), np.insert(z, 5, z[0], axis=0)
    y2, z2 = np.vstack([y2, y[:1]]), np.vstack([z2, np.full((1, 4), np.nan)])
    close(annotations.evaluate(y2, z2), annotations.evaluate(y, z), tol=1e-14)


def test_single_labels_leave_el_and_disagreement_undefined(annotations, rng):
    y, z = some_items(rng, sizes=(1, 2))
    found = annotations.evaluate(y, z)
    for key in ("EL", "DL", *DISAGREEMENT_KEYS):
        assert math.isnan(found[key]), key
    for key in ("accuracy", "L", "EL_plugin", "CL", "CL_plugin", "CE", "DL_plugin"):
        assert math.isfinite(found[key]), key
    assert found["L"] == pytest.approx(found["EL_plugin"])
    assert np.isnan(annotations.DISAGREEMENT.observed(y)).all()


def test_el_uses_items_of_two_labels_in_both_terms(annotations, rng):
    y, z = some_items(rng)
    two = y.sum(axis=1) > 1
    assert 0 < two.sum() < len(two)
    found, part = annotations.evaluate(y, z), annotations.evaluate(y[two], z[two])
    for key in ("EL", *DISAGREEMENT_KEYS):
        assert found[key] == pytest.approx(part[key], rel=1e-12)
    assert abs(found["EL_plugin"] - part["EL_plugin"]) > 1e-3


def test_a_bin_of_one_item_adds_nothing(annotations):
    y, z = np.array([[0, 3], [3, 0]]), np.array([[0.9, 0.1], [0.3, 0.7]])
    found = annotations.evaluate(y, z)
    assert found["CL"] == 0
    assert found["CE"] == 0
    assert found["CL_plugin"] == pytest.approx(0.81 + 0.49)
    assert found["CL_disagreement"] == 0


def test_unanimous_labels(annotations, rng):
    y = 3 * np.eye(3, dtype=int)[rng.integers(3, size=40)]
    z = rng.dirichlet(np.ones(3), 40)
    found = annotations.evaluate(y, z)
    assert found["L"] == pytest.approx(found["EL"]) == pytest.approx(found["EL_plugin"])
    assert found["L_disagreement"] == pytest.approx(np.mean((1 - (z**2).sum(axis=1)) ** 2))


def test_probabilities_of_exactly_zero_with_labels_on_them(annotations):
    y, z = np.array([[0, 4], [4, 0], [2, 2]]), np.array([[1.0, 0], [0, 1.0], [1.0, 0]])
    found = annotations.evaluate(y, z)
    close(found, evaluate(y, z))
    assert all(math.isfinite(found[key]) for key in KEYS)


# ---------------------------------------------------------------- unbiasedness, known Q


def test_el_and_l_are_unbiased(annotations, rng):
    """Items, Q and predictions fixed, labels drawn anew: plugin EL fails the same test."""
    N, K, reps = 40, 3, 400
    q, z, sizes = rng.dirichlet(np.ones(K), N), rng.dirichlet(np.ones(K), N), rng.integers(2, 6, N)
    found = [annotations.evaluate(y, z) for y in draw_many(rng, q, sizes, reps)]
    el = ((q - z) ** 2).sum(axis=1).mean()
    spread = (q * (1 - q)).sum(axis=1)
    assert abs(z_score([f["EL"] for f in found], el)) < 4
    assert z_score([f["EL_plugin"] for f in found], el) > 10
    assert abs(z_score([f["L"] for f in found], el + spread.mean())) < 4
    d = 1 - (z**2).sum(axis=1)
    loss = ((spread - d) ** 2 + spread * (1 - spread)).mean()
    assert abs(z_score([f["L_disagreement"] for f in found], loss)) < 4


@pytest.mark.parametrize("weighted", [False, True])
def test_cl_is_unbiased_where_predictions_are_constant_in_a_bin(annotations, weighted):
    """Items are drawn anew: (14) is then exact, whatever Q within a bin, and the plugin is not."""
    rng = np.random.default_rng(11 + weighted)
    levels = np.array([[0.1, 0.3, 0.6], [0.45, 0.2, 0.35], [0.7, 0.25, 0.05], [0.02, 0.9, 0.08]])
    shift = np.array([[0.1, 0, -0.1], [0, 0.1, -0.1], [-0.1, 0, 0.1], [0.03, -0.05, 0.02]])
    cl, plugin, N = ((shift**2).sum(axis=1)).mean(), [], 80
    draws, dis = [], []
    for _ in range(200):
        level = rng.integers(4, size=N)
        q = np.array([rng.dirichlet(4 * p) for p in (levels + shift)[level]])
        y = np.array([rng.multinomial(n, p) for n, p in zip(rng.integers(1, 5, N), q, strict=True)])
        w = rng.gamma(1, size=N) if weighted else None
        d = np.array([0.1, 0.3, 0.5, 0.7])[level]
        found = annotations.evaluate(y, levels[level], disagreement=d, weight=w)
        draws.append(found["CL"])
        plugin.append(found["CL_plugin"])
        dis.append(found["CL_disagreement"])
    assert abs(z_score(draws, cl)) < 4
    assert z_score(plugin, cl) > 7
    # E disagreement of Q ~ Dir(4 p) is 4/5 (1 - sum p^2).
    gap = 0.8 * (1 - ((levels + shift) ** 2).sum(axis=1)) - [0.1, 0.3, 0.5, 0.7]
    assert abs(z_score(dis, (gap**2).mean())) < 4


def test_cl_of_a_calibrated_predictor_is_near_zero(annotations):
    """Uniform z: labels' variance leaves -K/(12 B N); the residuals' variance leaves nothing."""
    rng, draws, residual, N = np.random.default_rng(5), [], [], 30
    for _ in range(400):
        p = rng.random(N)
        votes = rng.binomial(3, p)
        y, z = np.stack([votes, 3 - votes], axis=1), np.stack([p, 1 - p], axis=1)
        draws.append(annotations.evaluate(y, z, bins=3)["CL"])
        residual.append(annotations.evaluate(y, z, bins=3, variance="residual")["CL"])
    assert abs(z_score(residual, 0)) < 4
    assert abs(z_score(draws, -2 / (12 * 3 * N))) < 4
    assert abs(z_score(np.subtract(residual, draws), 2 / (12 * 3 * N))) < 4


@pytest.mark.slow
@pytest.mark.parametrize(("N", "sizes"), [(100, (2, 3)), (400, (2, 6))])
def test_intervals_cover_the_population_losses(annotations, N, sizes):
    rng, reps = np.random.default_rng(N), 300
    levels = np.array([[0.1, 0.3, 0.6], [0.45, 0.2, 0.35], [0.7, 0.25, 0.05], [0.02, 0.9, 0.08]])
    shift = np.array([[0.2, 0, -0.2], [0, 0.2, -0.2], [-0.2, 0, 0.2], [0.03, -0.05, 0.02]])
    mean = levels + shift
    spread = 0.8 * (1 - (mean**2).sum(axis=1))
    cl = (shift**2).sum(axis=1).mean()
    el = cl + (0.2 * (1 - (mean**2).sum(axis=1))).mean()
    truth = {"CL": cl, "CE": math.sqrt(cl), "EL": el, "DL": el - cl, "L": el + spread.mean()}
    hits, widths = dict.fromkeys(truth, 0), {key: [] for key in truth}
    for rep in range(reps):
        level = rng.integers(4, size=N)
        q = np.array([rng.dirichlet(4 * p) for p in mean[level]])
        y = random_histograms(rng, N, 3, sizes, q)
        found = annotations.evaluate(y, levels[level], confidence_level=0.9, random_state=rep)
        for key, value in truth.items():
            low, high = found["intervals"][key]
            hits[key] += low <= value <= high
            widths[key].append(high - low)
    for key, hit in hits.items():
        assert 0.84 < hit / reps < 0.97, (key, hit / reps, np.mean(widths[key]))


def test_intervals(annotations, rng):
    y, z = some_items(rng, N=200)
    found = annotations.evaluate(y, z, confidence_level=0.9)
    wider = annotations.evaluate(y, z, confidence_level=0.99)["intervals"]
    assert "intervals" not in annotations.evaluate(y, z)
    for key in KEYS:
        low, high = found["intervals"][key]
        assert low <= found[key] <= high, key
        assert high > low, key
        assert wider[key][1] - wider[key][0] > high - low, key
        if key not in ("CL", "EL", "DL", "CL_disagreement"):
            assert low >= 0, key
    halves = annotations.evaluate(np.tile(y, (16, 1)), np.tile(z, (16, 1)), confidence_level=0.9)
    ratio = np.ptp(found["intervals"]["L"]) / np.ptp(halves["intervals"]["L"])
    assert 3 < ratio < 5.3  # 16 times the items: a quarter of the width


# ---------------------------------------------------------------- real histograms, known Q


@pytest.fixture(scope="module")
def mnist(data_folder):
    """Mix-MNIST's test part: counts of 10 raters, predictions of six classifiers, the true Q."""
    parquet = pytest.importorskip("pyarrow.parquet")
    path = data_folder / "mixed_lh" / "mixed_mnist_predictions.parquet"
    if not path.is_file():
        pytest.skip(f"no Mix-MNIST in {data_folder}")
    table = parquet.read_table(path, filters=[("partition", "=", "test")])
    y = np.stack([table[f"h__{k}"].to_numpy() for k in range(10)], axis=1)
    ratio, first, second = (table[c].to_numpy() for c in ("ratio", "y1", "y2"))
    q = np.eye(10)[first] * ratio[:, None]
    q += np.where(second >= 0, 1 - ratio, 0)[:, None] * np.eye(10)[np.maximum(second, 0)]
    q = np.clip(q, 0, 1) / q.sum(axis=1, keepdims=True)
    names = sorted({c.split("__")[1] for c in table.column_names if c.startswith("p__")})
    return y, q, {
        m: np.stack([table[f"p__{m}__{k}"].to_numpy() for k in range(10)], axis=1) for m in names
    }  # fmt: skip


@pytest.mark.parametrize("n", [2, 5, 10])
def test_mixed_mnist_el_against_the_true_distributions(annotations, mnist, n):
    """EL's error follows from the items' spread; the plugin is off by many standard errors."""
    y, q, models = mnist
    rng = np.random.default_rng(n)
    y = y if n == 10 else np.array([rng.multivariate_hypergeometric(row, n) for row in y])
    mu = y / n
    for name, z in models.items():
        z = z / z.sum(axis=1, keepdims=True)
        found = annotations.evaluate(y, z)
        el = ((q - z) ** 2).sum(axis=1)
        item = ((mu - z) ** 2).sum(axis=1) - (mu * (1 - mu)).sum(axis=1) / (n - 1)
        error = np.std(item - el) / math.sqrt(len(y))
        assert abs(found["EL"] - el.mean()) < 4 * error, name
        assert found["EL_plugin"] - el.mean() > 4 * error, name


@pytest.mark.parametrize("n", [2, 5])
def test_mixed_mnist_cl_against_the_true_distributions(annotations, mnist, n):
    """Given the items, E of debiased CL is exactly debiased CL of the true distributions."""
    _, q, models = mnist
    rng = np.random.default_rng(n)
    for name in ("cnn_e1", "knn15_pca60"):
        z = models[name].astype(float) / models[name].astype(float).sum(axis=1, keepdims=True)
        true = sum(squared_bins(q[:, k], z[:, k], np.ones(len(q)))[1] for k in range(10))
        found = [annotations.evaluate(rng.multinomial(n, q), z) for _ in range(16)]
        assert abs(z_score([f["CL"] for f in found], true)) < 5, name
        assert z_score([f["CL_plugin"] for f in found], true) > 10, name


@pytest.mark.slow
@pytest.mark.slow_with("rf50", "knn15_pca60")
@pytest.mark.parametrize("name", ["cnn_e8", "rf50", "knn15_pca60"])
def test_mixed_mnist_intervals_hold_the_losses_of_the_true_distributions(annotations, mnist, name):
    y, q, models = mnist
    truth = annotations.evaluate(np.round(1e7 * q), models[name])
    found = annotations.evaluate(y, models[name], confidence_level=0.99)["intervals"]
    for key in ("EL", "CL", "DL", "CL_disagreement"):
        assert found[key][0] <= truth[key] <= found[key][1], key
