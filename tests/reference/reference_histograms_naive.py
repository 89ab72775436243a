"""Losses of label histograms, written item by item and subset by subset, to test against.

Source: Mimori et al. (2021) with the resolutions of its ambiguities: `(n, K)` counts y, mu = y/n,
predictions z. Everything here is loops; nothing is shared with the library.
"""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy.special import softmax

NAN = float("nan")
KEYS = (
    "accuracy", "L", "EL", "EL_plugin", "CL", "CL_plugin", "CE", "DL", "DL_plugin",
    "L_disagreement", "CL_disagreement", "CL_disagreement_plugin", "CE_disagreement",
)  # fmt: skip
DISAGREEMENT_KEYS = KEYS[9:]


def bin_of(value, bins: int = 15):
    """[a, b), the last closed; edges as np.linspace rounds them (the paper's code)."""
    return np.sum(np.asarray(value)[..., None] >= np.linspace(0, 1, bins + 1)[1:-1], axis=-1)


def annotated(y, z, w=None, d=None):
    """The rows with a label and a prediction, and their weights and predicted disagreements."""
    keep = [i for i in range(len(y)) if y[i].sum() >= 1 and np.isfinite(z[i]).all()]
    w = np.ones(len(y)) if w is None else np.asarray(w, float)
    d = 1 - np.sum(np.square(z), axis=1) if d is None else np.asarray(d, float)
    return y[keep], z[keep], w[keep], d[keep]


def gini(row) -> float:
    """U-statistic of disagreement: the share of unequal pairs of labels."""
    n = row.sum()
    return NAN if n < 2 else float(1 - (row * (row - 1)).sum() / (n * (n - 1)))


def squared_bins(mu, z, w, *, bins=15, variance="labels", singletons="paper"):
    """CL of one column: the plugin sum and the debiased sum, over bins of `z`."""
    index = bin_of(z, bins)
    total, plugin, debiased = w.sum(), 0.0, 0.0
    for rows in (np.flatnonzero((index == b) & (w > 0)) for b in range(bins)):
        if not len(rows):
            continue
        v, m, p = w[rows], mu[rows], z[rows]
        size = v.sum()
        gap = (v * (m - p)).sum() / size
        plugin += size / total * gap**2
        if len(rows) == 1:
            debiased += 0.0 if singletons == "paper" else size / total * gap**2
            continue
        r = m if variance == "labels" else m - p
        mean = (v * r).sum() / size
        s2, s3 = (v**2).sum(), (v**3).sum()
        sigma2 = (v**2 * (r - mean) ** 2).sum() / (s2 - 2 * s3 / size + s2**2 / size**2)
        debiased += size / total * (gap**2 - sigma2 * s2 / size**2)
    return plugin, debiased


def evaluate(y, z, *, w=None, d=None, bins=15, variance="labels"):
    """Every key of `fl.annotations.evaluate`, by the paper's rules."""
    y, z, w, d = annotated(np.asarray(y, float), np.asarray(z, float), w, d)
    n, K = y.sum(axis=1), y.shape[1]
    mu = y / n[:, None]
    out = dict.fromkeys(("L", "EL_plugin", "CL_plugin", "CL", "accuracy"), 0.0)
    kept, el = 0.0, 0.0
    for i in range(len(y)):
        share = w[i] / w.sum()
        error = sum((mu[i, k] - z[i, k]) ** 2 for k in range(K))
        spread = sum(mu[i, k] * (1 - mu[i, k]) for k in range(K))
        out["L"] += share * (error + spread)
        out["EL_plugin"] += share * error
        out["accuracy"] += share * (np.argmax(y[i]) == np.argmax(z[i]))
        if n[i] >= 2:
            kept += w[i]
            el += w[i] * (error - spread / (n[i] - 1))
    out["EL"] = el / kept if kept else NAN
    for k in range(K):
        plugin, debiased = squared_bins(mu[:, k], z[:, k], w, bins=bins, variance=variance)
        out["CL_plugin"] += plugin
        out["CL"] += debiased
    out["CE"] = math.sqrt(max(out["CL"], 0))
    out["DL"] = out["EL"] - out["CL"]
    out["DL_plugin"] = out["EL_plugin"] - out["CL_plugin"]
    rows = n >= 2
    u, dd, ww = np.array([gini(row) for row in y[rows]]), d[rows], w[rows]
    names = ("L", "CL", "CL_plugin", "CE")
    if not rows.any():
        return out | {f"{a}_disagreement".replace("CL_plugin_disagreement",
                      "CL_disagreement_plugin"): NAN for a in names}  # fmt: skip
    loss = [g * (1 - p) ** 2 + (1 - g) * p**2 for g, p in zip(u, dd, strict=True)]
    plugin, debiased = squared_bins(u, dd, ww, bins=bins, variance=variance)
    return out | {
        "L_disagreement": float((ww * loss).sum() / ww.sum()),
        "CL_disagreement_plugin": plugin,
        "CL_disagreement": debiased,
        "CE_disagreement": math.sqrt(max(debiased, 0)),
    }


def lh_calib(y, z, d=None, bins=15):
    """The numbers of the released code: its rules for single labels and for singleton bins."""
    y, z, w, d = annotated(np.asarray(y, float), np.asarray(z, float), None, d)
    n, (N, K) = y.sum(axis=1), y.shape
    mu = y / n[:, None]
    spread = mu * (1 - mu)
    el_bias = np.array([spread[i] / (n[i] - 1) if n[i] > 1 else np.zeros(K) for i in range(N)])
    out = {"el_plugin": ((mu - z) ** 2).sum() / N, "cl_plugin": 0.0, "cl_debias": 0.0}
    out["el_debias"] = out["el_plugin"] - el_bias.sum() / N
    dl_bias = 0.0
    for k in range(K):
        plugin, debiased = squared_bins(mu[:, k], z[:, k], w, bins=bins, singletons="plugin")
        out["cl_plugin"] += plugin
        out["cl_debias"] += debiased
        dl_bias -= plugin - debiased
        index = bin_of(z[:, k], bins)
        for b in set(index.tolist()):
            rows = [i for i in range(N) if index[i] == b]
            dl_bias += el_bias[rows, k].sum() / N if len(rows) > 1 else 0.0
    out["dl_plugin"] = out["el_plugin"] - out["cl_plugin"]
    out["dl_debias"] = out["dl_plugin"] - dl_bias
    return out | lh_calib_disagreement(y, d, bins)


def lh_calib_disagreement(y, d, bins):
    """Bins of predicted agreement; items of one label count in sizes and mean predictions."""
    u, N = [gini(row) for row in y], len(y)
    index = bin_of(1 - d, bins)
    plugin = debiased = 0.0
    for b in set(index.tolist()):
        rows = [i for i in range(N) if index[i] == b]
        seen = [u[i] for i in rows if not math.isnan(u[i])]
        if seen:
            gap = np.mean(seen) - np.mean(d[rows])
            plugin += len(rows) / N * gap**2
            bias = np.var(seen) / (len(rows) - 1) if len(rows) > 1 else 0.0
            debiased += len(rows) / N * (gap**2 - bias)
    return {"d_cl_plugin": plugin, "d_cl_debias": debiased}


def label_lists(row) -> list[int]:
    return [k for k, count in enumerate(row) for _ in range(int(count))]


def counts(labels, K):
    return np.bincount(np.array(labels, int), minlength=K)


def u_statistic(phi, order, row) -> float:
    """The mean of phi(counts) over all subsets of `order` of the item's labels."""
    labels = label_lists(row)
    subsets = combinations(range(len(labels)), order)
    values = [phi(counts([labels[i] for i in s], len(row))) for s in subsets]
    return float(np.mean(values)) if values else NAN


def subset_loss(phi, order, row, predicted) -> float:
    return u_statistic(lambda c: (phi(c) - predicted) ** 2, order, row)


def disjoint_product(phi, order, row, predicted) -> float:
    """Mean of (phi(s) - p)(phi(t) - p) over disjoint subsets: unbiased for (E phi - p)^2."""
    labels, values = label_lists(row), []
    for s in combinations(range(len(labels)), order):
        rest = [i for i in range(len(labels)) if i not in s]
        for t in combinations(rest, order):
            a, b = (phi(counts([labels[i] for i in part], len(row))) for part in (s, t))
            values.append((a - predicted) * (b - predicted))
    return float(np.mean(values)) if values else NAN


def expected_statistic(phi, order, p, alpha0=None) -> float:
    """E phi over all sequences of `order` labels: independent, or a Polya urn of alpha0 p."""
    total = 0.0
    for labels in product(range(len(p)), repeat=order):
        chance, seen = 1.0, np.zeros(len(p))
        for drawn, k in enumerate(labels):
            chance *= p[k] if alpha0 is None else (alpha0 * p[k] + seen[k]) / (alpha0 + drawn)
            seen[k] += 1
        total += chance * phi(counts(labels, len(p)))
    return float(total)


def log_dirmult(y, f, alpha0) -> float:
    """Log-likelihood of counts without their coefficient: the Polya urn, label by label."""
    value, drawn = 0.0, 0
    for k in range(len(y)):
        for seen in range(int(y[k])):
            value += math.log(alpha0 * f[k] + seen) - math.log(alpha0 + drawn)
            drawn += 1
    return value


def alpha_loss(y, f, log_alpha0, penalty=0.005) -> float:
    """Loss (50) over items of two labels and more."""
    log_alpha0 = np.broadcast_to(log_alpha0, len(y))
    rows = [i for i in range(len(y)) if y[i].sum() >= 2]
    fit = sum(log_dirmult(y[i], f[i], math.exp(log_alpha0[i])) for i in rows)
    n_labels = sum(y[i].sum() for i in rows)
    return float(-fit / n_labels + penalty * np.mean(log_alpha0[rows] ** 2))


def ensemble_posterior(samples, row, alpha0=None):
    """(81) with product weights: the mean of `samples` (S, K), or of Dirichlet posteriors."""
    weights, means = [], []
    for s in range(len(samples)):
        f = samples[s]
        if alpha0 is None:
            weights.append(math.prod(float(f[k]) ** int(row[k]) for k in range(len(row))))
            means.append(f)
        else:
            weights.append(math.exp(log_dirmult(row, f, alpha0[s])))
            means.append((alpha0[s] * f + row) / (alpha0[s] + row.sum()))
    return np.average(means, axis=0, weights=weights)


def random_histograms(rng, N, K, sizes=(1, 7), q=None):
    """Counts of N items with sizes[0]..sizes[1]-1 labels each, drawn from `q` (N, K)."""
    q = rng.dirichlet(np.ones(K), N) if q is None else q
    return np.array(
        [rng.multinomial(n, p) for n, p in zip(rng.integers(*sizes, N), q, strict=True)]
    )


def close(found, expected, keys=KEYS, tol=1e-10):
    for key in keys:
        root = key.startswith("CE")  # of a sum that may be 0 but for rounding
        near = pytest.approx(expected[key], rel=tol, abs=tol**0.5 if root else tol, nan_ok=True)
        assert found[key] == near, key


def z_score(draws, truth):
    draws = np.asarray(draws)
    return (draws.mean(axis=0) - truth) / (draws.std(axis=0, ddof=1) / math.sqrt(len(draws)))


def some_items(rng, N=60, K=4, sizes=(1, 7)):
    q = rng.dirichlet(np.ones(K), N)
    return random_histograms(rng, N, K, sizes, q), rng.dirichlet(np.ones(K), N)


def draw_many(rng, q, sizes, reps):
    return np.stack([rng.multinomial(sizes, q) for _ in range(reps)])


def world(rng, N, n, K=4, d=6, noise=1.0):
    """Features, predicted = mean distributions, true log alpha0, Q ~ Dir(alpha0 f), counts."""
    shared = np.random.default_rng(42)
    W, v = shared.normal(size=(d, K)), shared.normal(size=d)
    h = rng.normal(size=(N, d))
    f = softmax(noise * h @ W / math.sqrt(d) * 1.5, axis=1)
    log_alpha0 = v @ h.T / np.linalg.norm(v) * 1.5 + 0.3
    q = np.array([rng.dirichlet(a * p) for a, p in zip(np.exp(log_alpha0), f, strict=True)])
    q = np.clip(q, 1e-300, None)
    q /= q.sum(axis=1, keepdims=True)
    return h, f, log_alpha0, q, rng.multinomial(np.broadcast_to(n, N), q)


def slope(function, x, step=1e-5):
    eye = np.eye(len(x)) * step
    return np.array([(function(x + e) - function(x - e)) / (2 * step) for e in eye])
