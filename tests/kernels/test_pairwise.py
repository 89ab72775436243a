"""Win rates and strengths of pairs against choix, evalica, and values worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.pairwise import both_orders, groups_of_equals, strengths, win_rates

SIZE = 7
PAIRS: Ints = np.array([(a, b) for a in range(SIZE) for b in range(SIZE) if a != b]).T


def league(ties: bool) -> Floats:
    """Counts (P, 3, 1) of a league in which everyone meets everyone in both orders."""
    rng = np.random.default_rng(5)
    s = rng.normal(size=SIZE)
    out = np.zeros((PAIRS.shape[1], 3, 1))
    for p, (a, b) in enumerate(PAIRS.T):
        weights = np.exp([s[a] + 0.2, s[b] - 0.2, (s[a] + s[b]) / 2 - (0.5 if ties else 50)])
        out[p, :, 0] = rng.multinomial(rng.integers(1, 40), weights / weights.sum())
    return out


def verdicts(mass: Floats, kinds: tuple[Any, Any, Any]) -> tuple[list[str], list[str], list[Any]]:
    """The same, a row per verdict."""
    rows = [
        (str(a), str(b), kind)
        for (a, b), counts in zip(PAIRS.T.tolist(), mass[:, :, 0].astype(int), strict=True)
        for kind, times in zip(kinds, counts, strict=True)
        for _ in range(times)
    ]
    x, y, winner = zip(*rows, strict=True)
    return list(x), list(y), list(winner)


def test_strengths_without_ties_are_those_of_choix() -> None:
    choix = pytest.importorskip("choix")
    mass = league(ties=False)
    data = [
        (a, b) if w == 0 else (b, a) for a, b, w in zip(*verdicts(mass, (0, 1, 2)), strict=True)
    ]
    theirs = choix.ilsr_pairwise(
        SIZE, [(int(a), int(b)) for a, b in data], max_iter=1000, tol=1e-13
    )
    ours = strengths(mass, PAIRS, SIZE, order=False)
    assert ours.tie == [-np.inf]
    np.testing.assert_allclose(ours.strength[:, 0], theirs - theirs.mean(), atol=1e-8)


def test_win_rates_and_ties_as_halves_are_those_of_evalica() -> None:
    evalica = pytest.importorskip("evalica")
    mass = league(ties=True)
    winner = (evalica.Winner.X, evalica.Winner.Y, evalica.Winner.Draw)
    rows = verdicts(mass, winner)
    order = [str(c) for c in range(SIZE)]
    theirs = evalica.average_win_rate(*rows, tie_weight=0.5).scores.reindex(order)
    np.testing.assert_allclose(win_rates(mass, PAIRS, SIZE)[:, 0], theirs, atol=1e-8)
    halves = mass.copy()
    halves[:, :2] += mass[:, 2:] / 2
    halves[:, 2] = 0
    fitted = evalica.bradley_terry(*rows, tie_weight=0.5, tolerance=1e-14, limit=100_000)
    logs = np.log(fitted.scores.reindex(order))
    ours = strengths(halves, PAIRS, SIZE, order=False).strength[:, 0]
    np.testing.assert_allclose(ours, logs - logs.mean(), atol=1e-8)


def test_two_contestants_by_hand() -> None:
    """With 6 wins, 2 losses and 4 ties of a: exp(s_a - s_b) = 3 and exp(t) = 4 / sqrt(12)."""
    mass = np.array([[[6.0], [2.0], [4.0]]])
    fit = strengths(mass, np.array([[0], [1]]), 2, order=False)
    np.testing.assert_allclose(fit.strength[:, 0], [np.log(3) / 2, -np.log(3) / 2], atol=1e-12)
    np.testing.assert_allclose(fit.tie, np.log(4 / np.sqrt(12)), atol=1e-12)
    assert win_rates(mass, np.array([[0], [1]]), 2)[:, 0].tolist() == [8 / 12, 4 / 12]


def test_an_order_effect_by_hand() -> None:
    """Of equals the first wins 3 of 4 in either order: the log odds of the order are ln 3."""
    mass = np.tile([[30.0], [10.0], [0.0]], (2, 1, 1))
    pairs = np.array([[0, 1], [1, 0]])
    fit = strengths(mass, pairs, 2, order=True)
    np.testing.assert_allclose(fit.strength, 0, atol=1e-12)
    np.testing.assert_allclose(fit.order, np.log(3), atol=1e-12)
    assert both_orders(mass[:, :, 0], pairs)
    assert not both_orders(mass[:1, :, 0], pairs[:, :1])


def test_expected_scores_of_the_fit_are_those_observed() -> None:
    """The likelihood equations of Davidson and Beaver, of each draw by itself."""
    draws = league(ties=True) * np.random.default_rng(1).gamma(3, size=(PAIRS.shape[1], 3, 5))
    fit = strengths(draws, PAIRS, SIZE, order=True)
    a, b = fit.strength[PAIRS]
    p = np.exp(np.stack([a + fit.order / 2, b - fit.order / 2, (a + b) / 2 + fit.tie], axis=1))
    expected = draws.sum(axis=1, keepdims=True) * p / p.sum(axis=1, keepdims=True)
    scores = [np.zeros((SIZE, 5)), np.zeros((SIZE, 5))]
    for score, mass in zip(scores, (draws, expected), strict=True):
        np.add.at(score, PAIRS[0], mass[:, 0] + mass[:, 2] / 2)
        np.add.at(score, PAIRS[1], mass[:, 1] + mass[:, 2] / 2)
    np.testing.assert_allclose(*scores, rtol=1e-9)
    np.testing.assert_allclose(expected[:, 2].sum(axis=0), draws[:, 2].sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(expected[:, 0].sum(axis=0), draws[:, 0].sum(axis=0), rtol=1e-9)


def test_a_prior_keeps_an_order_and_strengths_finite() -> None:
    """The gradient of the posterior is 0; a wide prior changes nothing where verdicts are many."""
    pairs, spread = np.array([[0, 1], [1, 0]]), np.array([[3.0], [3.0], [np.inf], [1.0]])
    mass = np.array([[[10.0], [0.0], [0.0]], [[5.0], [5.0], [0.0]]])
    centre = np.array([[0.0], [0.0], [0.0], [0.5]])
    fit = strengths(mass, pairs, 2, order=True, spread=spread, centre=centre)
    gap, order = fit.strength[0, 0] - fit.strength[1, 0], fit.order[0]
    first, second = 1 / (1 + np.exp(-np.array([gap + order, order - gap])))
    np.testing.assert_allclose(10 * (1 - first) + 5 - 10 * second, order - 0.5, atol=1e-9)
    np.testing.assert_allclose(
        10 * (1 - first) - 5 + 10 * second, 2 * fit.strength[0, 0] / 9 / 2, atol=1e-9
    )
    plain = strengths(league(ties=True) * 1e4, PAIRS, SIZE, order=True)
    wide = np.array([[3.0]] * SIZE + [[np.inf], [1.0]])
    priors = strengths(league(ties=True) * 1e4, PAIRS, SIZE, order=True, spread=wide)
    np.testing.assert_allclose(priors.strength, plain.strength, atol=1e-4)


def test_who_wins_all_is_no_equal() -> None:
    mass = league(ties=True)[:, :, 0]
    assert len(set(groups_of_equals(mass, PAIRS, SIZE))) == 1
    mass[PAIRS[0] == 3, 1:] = 0
    mass[np.ix_(PAIRS[1] == 3, [0, 2])] = 0
    codes = groups_of_equals(mass, PAIRS, SIZE)
    assert len(set(codes)) == 2
    assert (codes == codes[3]).sum() == 1
