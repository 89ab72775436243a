"""EM drivers: methods supply the steps, the driver counts and stops."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from fewlabels.kernels.arrays import Floats


class EMResult(NamedTuple):
    """Responsibilities after and before the last step, and diagnostics."""

    responsibilities: Floats
    before: Floats
    iterations: int
    change: float
    converged: bool


def expectation_maximisation(
    step: Callable[[Floats], Floats],
    start: Floats,
    *,
    iterations: int,
    tolerance: float = 0.0,
    counts: Floats | None = None,
) -> EMResult:
    """Apply `step` until the responsibilities change by at most `tolerance` on average.

    A step is one M-step followed by one E-step: responsibilities (n, K, ...) to new ones. With
    `tolerance` 0 all `iterations` are made, as in papers that fix them, unless an exact fixed point
    comes first. `counts` (n, ...) weigh the rows in the mean, by default equally.
    """
    before, now, change, taken = start, start, np.inf, 0
    for taken in range(1, iterations + 1):  # noqa: B007 - the count is part of the result
        before, now = now, step(now)
        change = _change(before, now, counts)
        if change <= tolerance:
            break
    return _result(before, now, taken, change, tolerance)


Theta = TypeVar("Theta", bound=tuple[Floats, ...])

_LEAST_STEP = 0.1
"""An extrapolated parameter is at least this share of its value after plain EM."""

_ROUNDING = 1e-10


def accelerated_em(
    expect: Callable[[Theta], tuple[Floats, Floats]],
    maximise: Callable[[Floats], Theta],
    feasible: Callable[[Theta], Theta],
    start: Floats,
    *,
    iterations: int,
    tolerance: float,
    counts: Floats,
) -> EMResult:
    """EM with squared extrapolation: the same fixed points in fewer steps.

    From parameters t0, two EM steps give t1, t2; with r = t1 - t0, v = t2 - t1 - r and a = max(|r|
    / |v|, 1) the next are t0 + 2 a r + a^2 v, which for a = 1 is t2. If they are less likely than
    t1, they are t2, so the likelihood never falls. Source: Varadhan and Roland (2008), scheme S3.

    `expect` maps parameters, arrays (..., B) of B parallel runs, to responsibilities (n, K, B) and
    log-likelihoods (B,); `maximise` maps responsibilities to parameters; `feasible` normalises
    positive numbers to parameters. An extrapolation counts as a step.
    """
    old = maximise(start)
    before, likely = expect(old)
    change, taken = _change(start, before, counts), 1
    if change <= tolerance or iterations == 1:
        return _result(start, before, taken, change, tolerance)
    while True:
        one = maximise(before)
        now, likely = expect(one)
        taken += 1
        change = _change(before, now, counts)
        if change <= tolerance or taken >= iterations:
            return _result(before, now, taken, change, tolerance)
        two = maximise(now)
        old = _extrapolated(old, one, two, feasible)
        before, further = expect(old)
        taken += 1
        # Not a number compares as false: an extrapolation that went wrong is taken back too.
        worse = ~(further >= likely - _ROUNDING * np.abs(likely))
        if worse.any():
            for tried, plain in zip(old, two, strict=True):
                tried[..., worse] = plain[..., worse]
            before, _ = expect(old)
        if taken >= iterations:
            return _result(now, before, taken, _change(now, before, counts), tolerance)


def _extrapolated(old: Theta, one: Theta, two: Theta, feasible: Callable[[Theta], Theta]) -> Theta:
    """The squared step of every run; see `accelerated_em`."""
    step = [b - a for a, b in zip(old, one, strict=True)]
    bend = [c - b - r for b, c, r in zip(one, two, step, strict=True)]
    length, curve = (
        sum(np.square(part).reshape(-1, part.shape[-1]).sum(axis=0) for part in parts)
        for parts in (step, bend)
    )
    far = np.maximum(np.sqrt(length / np.maximum(curve, np.finfo(float).tiny)), 1.0)
    # A run that has arrived stays: its curvature is rounding.
    far = np.where(curve > 0, far, 1.0)
    moved = [
        np.maximum(a + 2 * far * r + far**2 * v, _LEAST_STEP * c)
        for a, r, v, c in zip(old, step, bend, two, strict=True)
    ]
    return feasible(type(old)(*moved))


def _change(before: Floats, now: Floats, counts: Floats | None) -> float:
    """Mean absolute change of the responsibilities of an item."""
    gap = np.abs(now - before)
    return float(gap.mean() if counts is None else np.average(gap.mean(axis=1), weights=counts))


def _result(before: Floats, now: Floats, taken: int, change: float, tolerance: float) -> EMResult:
    return EMResult(now, before, taken, change, change <= max(tolerance, 1e-3))
