"""spe against scipy.stats, quadrature and importance sampling of its posterior (section 5)."""

from __future__ import annotations

import json
import math
from functools import cache

import numpy as np
import pytest
from reference_questions import curve_of, threshold_of
from reference_spe_naive import (
    GRID,
    TRUNCATED,
    Mixture,
    adaptive_importance,
    distribution,
    draw_prior,
    log_density,
    log_prior,
    precision_at_recall,
    survival,
    unit_interval,
)
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit

import fewlabels as fl
from fewlabels.methods.spe.families import FAMILIES, Points
from fewlabels.methods.spe.mixture import ClassDensity, ScoreData, ScoreMixture
from worlds import ScoreWorld

NAMES = {
    "n": "normal", "t": "student-t", "g": "gamma", "ln": "log-normal", "g_r": "gumbel-right",
    "g_l": "gumbel-left", "gz": "gompertz", "f_r": "weibull-min",
}  # fmt: skip
X = np.array([1e-4, 0.003, 0.05, 0.2, 0.4, 0.5, 0.7, 0.9, 0.999, 1.0])


@pytest.fixture(scope="module")
def golden_spe(data_folder):
    path = data_folder.parent / "golden" / "golden_spe.json"
    if not path.is_file():
        pytest.skip(f"no golden values in {path}")
    return json.loads(path.read_text())


# the families


@pytest.mark.parametrize("family", NAMES)
def test_golden_families(golden_spe, family):
    """Both sides: the library's families, and the ones this folder compares them with."""
    g = golden_spe[family]
    s, u = np.array(golden_spe["s"]), np.array(g["u"])
    np.testing.assert_allclose(log_density(family, u, s), g["logpdf"], rtol=1e-12)
    np.testing.assert_allclose(survival(family, u, s), g["sf"], rtol=1e-12)
    assert log_prior(family, u) == pytest.approx(g["logprior_with_jacobian"], rel=1e-12)
    mine = FAMILIES[NAMES[family]]
    density = mine.log_density(Points(s), u[None]) - mine.log_mass(u[None], "left")
    np.testing.assert_allclose(density[:, 0], g["logpdf"], rtol=1e-12)
    tail = np.exp(mine.log_survival(s, u[None], "left"))[:, 0]
    np.testing.assert_allclose(tail, g["sf"], rtol=1e-10)
    prior = mine.log_prior(u[None])[0]
    np.testing.assert_allclose(prior, [g["logprior_with_jacobian"]], rtol=1e-12)


def test_golden_mixture(golden_spe):
    g, s = golden_spe["mixture_n_g"], np.array(golden_spe["s"])
    mixture, u, y = Mixture("n", "g"), np.array(g["theta"]), np.array(g["y"])
    likelihood = mixture.log_likelihood(u, s, y)
    assert likelihood + mixture.log_prior(u) == pytest.approx(g["logpost"], rel=1e-12)
    np.testing.assert_allclose(mixture.gamma(u, s), g["gamma"], rtol=1e-12)
    precision, recall, _ = mixture.population(u, s)
    np.testing.assert_allclose(precision, g["population_precision"], rtol=1e-12)
    np.testing.assert_allclose(recall, g["population_recall"], rtol=1e-12)
    theirs = library_mixture("n", "g")
    data = score_data(s, y)
    assert theirs.log_likelihood(u[None], data) == pytest.approx(g["loglik"], rel=1e-12)
    assert theirs.log_posterior(u[None], data) == pytest.approx(g["logpost"], rel=1e-12)
    gamma = expit(theirs.log_odds(Points(s), u[None]))[:, 0]
    np.testing.assert_allclose(gamma, g["gamma"], rtol=1e-10)
    rates = [part[:, 0] for part in theirs.survival(s, u[None])]
    np.testing.assert_allclose(rates[0], g["population_recall"], rtol=1e-10)
    share = expit(u[-1])
    precision = share * rates[0] / (share * rates[0] + (1 - share) * rates[1])
    np.testing.assert_allclose(precision, g["population_precision"], rtol=1e-10)


def library_mixture(positive: str, negative: str) -> ScoreMixture:
    return ScoreMixture(*(ClassDensity(FAMILIES[NAMES[f]]) for f in (positive, negative)))


def score_data(s: np.ndarray, y: np.ndarray) -> ScoreData:
    parts = []
    for known in (1, 0, -1):
        x = s[y == known]
        parts += [Points(x), np.ones(len(x))]
    return ScoreData(*parts, np.zeros((y == -1).sum()))


@pytest.mark.parametrize(
    ("positive", "negative"), [("n", "g"), ("t", "n"), ("f_r", "ln"), ("g_r", "g_l"), ("gz", "g")]
)
def test_the_mixture_and_its_gradient(positive, negative, rng):
    theirs, mine = library_mixture(positive, negative), Mixture(positive, negative)
    s = rng.uniform(0.02, 1, 30)
    y = np.where(np.arange(30) < 12, np.arange(30) % 2, -1)
    data = score_data(s, y)
    centre = np.concatenate(
        [FAMILIES[NAMES[f]].from_moments(*m)
         for f, m in ((positive, (0.6, 0.2)), (negative, (0.3, 0.15)))]
    )  # fmt: skip
    u = np.append(centre, -0.5) + rng.normal(0, 0.1, (5, len(centre) + 1))
    np.testing.assert_allclose(
        theirs.log_likelihood(u, data), mine.log_likelihood(u, s, y), rtol=1e-9
    )
    np.testing.assert_allclose(theirs.log_prior(u)[0], mine.log_prior(u), rtol=1e-9)
    gamma = expit(theirs.log_odds(Points(s), u)).T
    np.testing.assert_allclose(gamma, mine.gamma(u, s), rtol=1e-7, atol=1e-9)
    value, gradient = theirs.value_and_gradient(u, data)
    np.testing.assert_allclose(value, mine.log_likelihood(u, s, y) + mine.log_prior(u), rtol=1e-9)
    for c in range(u.shape[1]):
        step = 1e-5 * np.eye(u.shape[1])[c]
        up, down = (mine.log_likelihood(v, s, y) + mine.log_prior(v) for v in (u + step, u - step))
        np.testing.assert_allclose(gradient[:, c], (up - down) / 2e-5, rtol=1e-4, atol=1e-4)


def test_golden_precision_at_recall(golden_spe):
    """The reference's own table, here and through fl.curve with every label known."""
    g = golden_spe["pr_at"]
    y, s = np.array(g["y_sorted"]), -np.arange(7.0)
    np.testing.assert_allclose(precision_at_recall(s, y, np.array(g["recall"])), g["precision"])
    d = curve_of(ScoreWorld(s, y, y).predictions(), method="monotone-curves").to_dict()
    wanted = precision_at_recall(s, y, np.array(d["recall"]))
    np.testing.assert_allclose(d["precision"], wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("truncation", ["left", "unit"])
@pytest.mark.parametrize("family", NAMES)
def test_families_at_draws_of_their_priors(family, truncation, rng):
    u = draw_prior(family, 60, rng)
    mine, d = FAMILIES[NAMES[family]], distribution(family, u[:, None])
    low = 0.0 if family in TRUNCATED or truncation == "unit" else -math.inf
    high = 1.0 if truncation == "unit" else math.inf
    # The mass as a difference of whichever tails are small: the other way it cancels.
    sides = np.stack([d.sf(low) - d.sf(high), d.cdf(high) - d.cdf(low)])[..., 0]
    from_sf = (d.sf(low) < 0.5)[:, 0]
    mass = np.where(from_sf, sides[0], sides[1])
    fine = mass > 1e-8
    assert fine.mean() > 0.5
    got = np.exp(mine.log_mass(u, truncation))
    np.testing.assert_allclose(got[fine], mass[fine], rtol=1e-7)
    density = mine.log_density(Points(X), u).T
    wanted = d.logpdf(X)
    there = np.isfinite(wanted) & (wanted > -600)
    np.testing.assert_allclose(density[there], wanted[there], rtol=1e-9, atol=1e-9)
    tail = np.exp(mine.log_survival(X, u, truncation)).T
    difference = np.where(
        from_sf[:, None], d.sf(X) - d.sf(high), d.cdf(high) - d.cdf(np.maximum(X, low))
    )
    ratio = difference[fine] / mass[fine, None]
    np.testing.assert_allclose(tail[fine], ratio, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(mine.log_prior(u)[0], log_prior(family, u), rtol=1e-9)


@pytest.mark.parametrize("family", NAMES)
def test_a_family_is_a_density(family):
    """Its integral from a cut on is its survival there; Gumbel's has some mass below zero."""
    mine = FAMILIES[NAMES[family]]
    u = mine.from_moments(0.4, 0.15)[None]
    x = np.linspace(1e-6, 6, 600_001)
    density = np.exp(mine.log_density(Points(x), u) - mine.log_mass(u, "left"))[:, 0]
    mean = np.trapezoid(density * x, x) / np.trapezoid(density, x)
    assert mean == pytest.approx(0.4, abs=0.08)
    for cut in (1e-6, 0.2, 0.4, 0.8):
        above = np.trapezoid(density[x >= cut], x[x >= cut])
        got = float(np.exp(mine.log_survival(np.array([cut]), u, "left"))[0, 0])
        assert got == pytest.approx(above, abs=3e-3)


@pytest.mark.parametrize("family", [*NAMES, "frechet"])
def test_gradients_are_those_of_differences(family, rng):
    mine = FAMILIES[NAMES.get(family, family)]
    draws = [mine.from_moments(m, sd) for m, sd in ((0.3, 0.1), (0.5, 0.2), (0.8, 0.05))]
    u = np.array(draws) + rng.normal(0, 0.05, (3, mine.size))
    weights = rng.normal(size=(len(X), 3))

    def total(v: np.ndarray) -> np.ndarray:
        return (weights * mine.log_density(Points(X), v)).sum(axis=0)

    for of, gradient in (
        (total, mine.pull(Points(X), u, weights)),
        (lambda v: mine.log_prior(v)[0], mine.log_prior(u)[1]),
        (lambda v: mine.log_mass(v, "unit"), mine.log_mass_gradient(u, "unit")),
        (lambda v: mine.log_mass(v, "left"), mine.log_mass_gradient(u, "left")),
    ):
        for c in range(mine.size):
            step = 1e-5 * np.eye(mine.size)[c]
            slope = (of(u + step) - of(u - step)) / 2e-5
            np.testing.assert_allclose(gradient[:, c], slope, rtol=2e-4, atol=2e-5)


# the posterior of the mixture

TRUE = {
    "n": {1: (0.7, math.log(0.13)), 0: (0.35, math.log(0.12))},
    "g": {1: (math.log(0.6), math.log(0.15)), 0: (math.log(0.25), math.log(0.1))},
}


@cache
def mixture_world(positive: str, negative: str, n: int = 60, labeled: int = 20, seed: int = 0):
    rng = np.random.default_rng([seed, n, labeled])
    u = np.array([*TRUE[positive][1], *TRUE[negative][0], -0.6])
    s, y = Mixture(positive, negative).sample(u, n, rng)
    return ScoreWorld(20 * s - 7, y, np.where(np.arange(n) < labeled, y, -1))


@cache
def exact(positive: str, negative: str, w: ScoreWorld, size: int = 4000):
    """Draws u from the posterior, by importance sampling; scores on the unit interval."""
    mixture, s = Mixture(positive, negative), unit_interval(w.scores)
    rng = np.random.default_rng(91)

    def log_target(u: np.ndarray) -> np.ndarray:
        return mixture.log_likelihood(u, s, w.shown) + mixture.log_prior(u)

    u, weights, effective, evidence = adaptive_importance(
        log_target, mixture.draw_prior(20_000, rng), rng
    )
    assert effective > 2500
    return mixture, s, u[rng.choice(len(u), size, p=weights)], evidence


def both(family: str) -> fl.models.SPE:
    """The method with one family for both classes, and the better proposal from the start.

    The paper's diagonal one is too narrow by so much that Pareto's k may not see it: here it
    gives a log evidence of -8.1 instead of -7.6 where k is .5 to .7.
    """
    return fl.models.SPE(families=(NAMES[family],), sampler="full")


def posterior(w: ScoreWorld, method: fl.models.SPE | str = "spe", seed: int = 0):
    return fl.estimate(
        w.predictions(), method=method, metrics=["roc_auc"], estimand="sample", random_state=seed
    ).posterior.of(0)


FAMILY = ["n", "g", pytest.param("ln", marks=pytest.mark.slow)]


@pytest.mark.parametrize("family", FAMILY)
def test_marginals_are_those_of_the_posterior(family):
    w = mixture_world("n", "g")
    mixture, s, u, _ = exact(family, family, w)
    wanted = mixture.gamma(u, s)
    hidden = w.shown < 0
    runs = np.array([posterior(w, both(family), k).marginals()[:, 1] for k in range(4)])
    off = (runs.mean(axis=0) - wanted.mean(axis=0))[hidden]
    spread = wanted.std(axis=0)[hidden]
    assert np.array_equal(runs[:, ~hidden], np.tile(w.shown[~hidden], (4, 1)))
    # 2000 weighted draws a run are worth at least 100
    assert (np.abs(off) <= 5 * spread / math.sqrt(4 * 100) + 1e-3).all()
    assert np.abs(off).mean() < 0.01


@pytest.mark.parametrize("family", FAMILY)
def test_rates_of_the_population_are_those_of_the_posterior(family):
    """Prevalence, S_1 and S_0 at cuts in the units of the file: quantiles over the draws."""
    w = mixture_world("n", "g")
    mixture, s, u, _ = exact(family, family, w)
    cut = np.argsort(s)[[10, 25, 35, 45, 55]]
    _, recall, fpr = mixture.population(u, s[cut])
    wanted = np.column_stack([expit(u[:, -1]), recall, fpr])
    got = []
    for seed in range(3):
        p = posterior(w, both(family), seed)
        prevalence, r, f = p.score_rates.rates(w.scores[cut], np.arange(p.parameters.size))
        assert r.shape == f.shape == (5, len(prevalence))
        assert (np.diff(r, axis=0) <= 1e-12).all()
        assert (np.diff(f, axis=0) <= 1e-12).all()
        got.append(np.column_stack([prevalence, r.T, f.T]))
    got = np.concatenate(got)
    for tail in (0.05, 0.25, 0.5, 0.75, 0.95):
        at = np.quantile(wanted, tail, axis=0)
        # rates next to 0 or 1 are one tie; the draws are worth at least 300
        slack = 4.5 * math.sqrt(tail * (1 - tail) / 300)
        assert ((got < at - 1e-6).mean(axis=0) < tail + slack).all(), tail
        assert ((got <= at + 1e-6).mean(axis=0) > tail - slack).all(), tail


@pytest.mark.slow
def test_pairs_are_averaged_by_their_marginal_likelihood():
    """Four pairs of normal and gamma, each by importance sampling, weighed by the evidence."""
    w = mixture_world("n", "g", 40, 14)
    each = {(a, b): exact(a, b, w) for a in "ng" for b in "ng"}
    evidence = np.array([e for *_, e in each.values()])
    share = np.exp(evidence - evidence.max())
    share /= share.sum()
    means = np.array([mixture.gamma(u, s).mean(axis=0) for mixture, s, u, _ in each.values()])
    hidden = w.shown < 0
    options = {"average": share @ means, "evidence": means[share.argmax()]}
    for selection, wanted in options.items():
        method = fl.models.SPE(families=("normal", "gamma"), selection=selection)
        got = np.mean([posterior(w, method, k).marginals()[:, 1] for k in range(3)], axis=0)
        assert np.abs(got - wanted)[hidden].mean() < 0.015, (selection, share)
    assert share.max() < 0.9  # so that averaging and selecting are two things


@pytest.mark.parametrize("estimand", ["sample", "population"])
def test_the_band_is_that_of_the_posterior(estimand):
    w = mixture_world("n", "n")
    mixture, s, u, _ = exact("n", "n", w)
    rng = np.random.default_rng(92)
    if estimand == "sample":
        y = rng.random((800, len(s))) < mixture.gamma(u[:800], s)
        drawn = np.where(w.shown >= 0, w.shown, y.astype(int))
        each = np.array([precision_at_recall(w.scores, d, GRID) for d in drawn])
    else:
        dense = np.linspace(0, 1.5, 3001)
        each = np.empty((500, 100))
        for row, draw in enumerate(u[:500]):
            precision, recall, _ = mixture.population(draw, dense)
            at = np.array([np.flatnonzero(recall >= r)[-1] for r in GRID])
            each[row] = precision[at]
    wanted = np.nanquantile(each, [0.5, 0.05, 0.95], axis=0)
    got = np.mean(
        [
            [*curve_of(
                w.predictions(), method=both("n"), estimand=estimand,
                interval="equal-tailed", random_state=k
            ).to_dict().values()][1:]
            for k in range(4)
        ],
        axis=0,
    )  # fmt: skip
    inner = slice(0, 100) if estimand == "sample" else slice(10, 90)
    assert np.abs(got - wanted)[:, inner].mean() < 0.025
    # Precisions of a sample at low recalls are few numbers: a quantile may jump between two.
    assert (np.abs(got - wanted)[:, inner] < 0.1).mean() > 0.95


def test_all_labels_known_the_prevalence_is_a_beta():
    """The likelihood factorises: Beta(1 + positives, 1 + negatives), and S_1 by quadrature."""
    w = mixture_world("n", "n", 60, 60)
    p = posterior(w, both("n"))
    s = unit_interval(w.scores)
    ones = int((w.truth == 1).sum())
    cut = np.argsort(s)[[20, 40, 50]]
    prevalence, recall, _ = p.score_rates.rates(w.scores[cut], np.arange(p.parameters.size))
    beta = stats.beta(1 + ones, 1 + 60 - ones)
    error = math.sqrt(1 / 150)
    assert abs(prevalence.mean() - beta.mean()) < 4 * beta.std() * error
    assert prevalence.std() == pytest.approx(beta.std(), rel=0.25)
    # location and log scale of the positives on a grid that holds their posterior
    a, b = (v.ravel() for v in np.meshgrid(np.linspace(-0.5, 1.6, 301), np.linspace(-4, 1, 301)))
    u = np.column_stack([a, b])
    lw = log_density("n", u, s[w.truth == 1]).sum(axis=1) + log_prior("n", u)
    weight = np.exp(lw - lw.max())
    weight /= weight.sum()
    tails = survival("n", u, s[cut])
    mean = weight @ tails
    sd = np.sqrt(weight @ np.square(tails - mean))
    assert (np.abs(recall.mean(axis=1) - mean) < 4 * sd * error).all()
    np.testing.assert_allclose(recall.std(axis=1), sd, rtol=0.3)


def likeliest(positive: str, negative: str, w: ScoreWorld) -> float:
    """The largest log-likelihood, by Nelder-Mead from several starts."""
    mixture, s = Mixture(positive, negative), unit_interval(w.scores)
    best = -math.inf
    for quantile in (0.5, 0.7, 0.9):
        high = s > np.quantile(s, quantile)
        start = []
        for family, part in ((positive, s[high]), (negative, s[~high])):
            start += list(FAMILIES[NAMES[family]].from_moments(part.mean(), part.std()))
        start.append(float(np.log(high.mean() / (1 - high.mean()))))
        found = minimize(
            lambda u: -mixture.log_likelihood(u, s, w.shown),
            start,
            method="Nelder-Mead",
            options={"maxiter": 3000, "xatol": 1e-4, "fatol": 1e-5, "adaptive": True},
        )
        best = max(best, -found.fun)
    return best


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("positive", "negative"), [("n", "g"), ("g", "g"), ("n", "n")])
def test_the_paper_takes_the_likeliest_pair_of_normal_and_gamma(positive, negative, seed):
    w = mixture_world(positive, negative, 300, 40, seed)
    each = {(a, b): likeliest(a, b, w) for a in "ng" for b in "ng"}
    first, second, *_ = sorted(each, key=each.get, reverse=True)
    if each[first] - each[second] < 0.5:
        pytest.skip("two pairs are as likely")
    mixture, s, u, _ = exact(*first, w)
    got = posterior(w, fl.models.SPE(selection="likelihood")).marginals()[:, 1]
    wanted = np.where(w.shown >= 0, w.shown, mixture.gamma(u, s).mean(axis=0))
    assert np.abs(got - wanted).mean() < 0.015, each


# what must not matter, and what must be said


@pytest.mark.slow
def test_the_unit_and_the_zero_of_a_score_do_not_matter():
    """Scores are brought to the unit interval first; thresholds return in the file's units."""
    w = mixture_world("n", "g")
    a = threshold_of(w.predictions(), method="spe", min_precision=0.7, min_recall=0.7)
    curve = [*curve_of(w.predictions(), method="spe").to_dict().values()]
    for scale, shift in ((0.01, 3.0), (1000.0, -1e4)):
        v = ScoreWorld(w.scores * scale + shift, w.truth, w.shown)
        b = threshold_of(v.predictions(), method="spe", min_precision=0.7, min_recall=0.7)
        np.testing.assert_allclose(
            b.thresholds, np.asarray(a.thresholds) * scale + shift, rtol=1e-9, atol=1e-9
        )
        assert np.abs(b.probability - a.probability).mean() < 0.01
        other = [*curve_of(v.predictions(), method="spe").to_dict().values()]
        assert np.abs(np.subtract(curve, other)).mean() < 0.01


def test_diagnostics_say_how_the_draws_were_got():
    w = mixture_world("n", "g")
    report = curve_of(w.predictions(), method="spe").report()
    said = json.dumps(report["diagnostics"]).lower()
    assert "pareto" in said
    assert "effective" in said or "ess" in said


@pytest.mark.slow
def test_no_labels_the_higher_scores_are_the_positive_ones():
    w = mixture_world("n", "n", 150, 20)
    p = posterior(w.with_labels(np.full(150, -1)))
    Q = p.marginals()[:, 1]
    top, bottom = (w.scores > np.quantile(w.scores, 0.9)), (w.scores < np.quantile(w.scores, 0.1))
    assert Q[top].mean() > Q[bottom].mean() + 0.3
    assert p.status != fl.Status.OK
    assert p.warnings


def test_separable_scores():
    rng = np.random.default_rng(94)
    y = (np.arange(120) % 3 == 0).astype(int)
    s = rng.uniform(0, 1, 120) + 5 * y
    w = ScoreWorld(s, y, np.where(np.arange(120) < 20, y, -1))
    Q = posterior(w).marginals()[:, 1]
    assert np.abs(Q - y).mean() < 0.02


# how often the bands hold where the densities are right


@pytest.mark.slow
@pytest.mark.parametrize(
    ("positive", "negative", "rate", "n", "labeled", "area"),
    [("n", "n", 0.3, 1000, 10, 0.02), ("n", "g", 0.1, 1000, 20, 0.075)],
)
def test_bands_hold_where_the_densities_are_right(positive, negative, rate, n, labeled, area):
    """Section 5: coverage of 90% bands .94, areas .022 and .041, in 40 trials of such worlds.

    A gamma that starts away from zero is no gamma once the smallest score is moved to zero: with
    mean .2 and sd .1 the exact posterior covers .91 (area .041) of scores as they are, and about
    .55 (area .15) of scores on the unit interval. Here it is steep at zero, and hardly moves.
    """
    low = {"n": TRUE["n"][0], "g": (math.log(0.15), math.log(0.14))}[negative]
    u = np.array([*TRUE[positive][1], *low, math.log(rate / (1 - rate))])
    held, off, alone = [], [], []
    for trial in range(40):
        rng = np.random.default_rng([95, trial])
        s, y = Mixture(positive, negative).sample(u, n, rng)
        w = ScoreWorld(s, y, np.where(np.arange(n) < labeled, y, -1))
        curve = curve_of(w.predictions(), method="spe", random_state=trial)
        _, value, low, high = (np.array(v) for v in curve.to_dict().values())
        real = precision_at_recall(s, y, GRID)
        held.append(((low - 1e-9 <= real) & (real <= high + 1e-9)).mean())
        off.append(np.abs(value - real).mean())
        if (w.shown == 1).any():
            labeled_only = curve_of(w.predictions(), method="labeled", random_state=trial)
            alone.append(np.abs(np.array(labeled_only.to_dict()["precision"]) - real).mean())
    error = 3.3 * np.std(held) / math.sqrt(40)
    assert np.mean(held) > 0.9 - error, np.mean(held)
    assert np.mean(off) < area, np.mean(off)
    # What knows nothing of the densities fails by the same measure.
    assert np.mean(alone) > 1.5 * area, np.mean(alone)
