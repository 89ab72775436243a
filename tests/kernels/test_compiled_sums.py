"""Compiled loops over label weights: what the arrays beside them say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from fewlabels.kernels import weighting
from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.weighting import Drawn, PlacedObservations, Soft, Weighting
from fewlabels.metrics.base import ScoreView
from fewlabels.metrics.registry import METRICS

N, D = 300, 6


@pytest.fixture(autouse=True)
def _numba() -> None:
    pytest.importorskip("numba")


def weightings(k: int, n_groups: int, rng: np.random.Generator) -> Iterator[tuple[str, Weighting]]:
    """Labels and row weights of every draw, or one for all; distributions, and counts."""
    labels = rng.integers(k, size=(N, D)).astype(np.int8)
    rows = rng.standard_exponential((N, D))
    soft = rng.dirichlet(np.ones(k), size=(N, D)).transpose(0, 2, 1)
    mass = rng.gamma(1 / k, size=(D, k))
    at, called = rng.integers(N, size=D), rng.integers(k, size=D)
    pseudo = PlacedObservations(at, np.arange(D), called, mass, mass.sum(axis=1))
    yield "labels", Drawn(labels, rows, k, D, pseudo)
    yield "labels, even rows", Drawn(labels, rows[:, :1], k, D, pseudo)
    yield "one labeling", Drawn(labels[:, :1], rows, k, D)
    yield "one draw", Drawn(labels[:, :1], rows[:, :1], k, D)
    yield "distributions", Soft(soft, rows, pseudo)
    yield "distributions, even rows", Soft(soft, rows[:, :1])
    yield "counts", Soft(3 * soft, rows, pseudo, counts=True)


def values(k: int, exact: bool, n_groups: int) -> dict[tuple[str, str, bool], Floats]:
    """Every metric of the same items, whose scores are all different, or many equal."""
    rng = np.random.default_rng(k)
    out = {}
    for equal in (False, True):
        p = rng.dirichlet(np.ones(k), size=N)
        p = (p.round(1) + 0.01) / (p.round(1) + 0.01).sum(axis=1, keepdims=True) if equal else p
        group = None if n_groups == 1 else rng.integers(1, n_groups, size=N)  # nobody in the first
        view = ScoreView(k, p, p.argmax(axis=1), exact=exact, group=group, n_groups=n_groups)
        for what, weights in weightings(k, n_groups, rng):
            for name, metric in METRICS.items():
                plan = metric.statistic.prepare(view)
                found = plan.measured(weights)
                with np.errstate(invalid="ignore", divide="ignore"):
                    each = [metric.finish(found[..., g, :]) for g in range(n_groups)]
                    out[name, what, equal] = np.stack(each)
                if n_groups == 1:  # and from the state, which adds
                    state = plan.digested(plan.state(weights))
                    np.testing.assert_allclose(state, found, rtol=0, atol=1e-12 * abs(found).max())
    return out


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("k", "exact", "n_groups"),
    [(2, True, 1), (2, False, 1), (2, True, 4), (3, True, 1), (12, True, 1), (12, False, 1)],
)
def test_loops_say_what_arrays_say(
    k: int, exact: bool, n_groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weighting, "COMPILED_FROM", 2**60)
    arrays = values(k, exact, n_groups)
    monkeypatch.setattr(weighting, "COMPILED_FROM", 0)
    assert weighting.loops_for(1) is not None
    loops = values(k, exact, n_groups)
    for what, found in arrays.items():
        np.testing.assert_allclose(loops[what], found, rtol=0, atol=1e-12, err_msg=str(what))
