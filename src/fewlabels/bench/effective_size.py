"""Effective sample size: how many labels alone would have given the same error (SSME, B.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from fewlabels.bench.summary_errors import CURVE, REFERENCE, Comparison, Setting
from fewlabels.kernels.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Curve:
    """Mean error of the labels alone by their number.

    sizes (S,) ascending; error, se and runs (S,); an error is NaN where no run has one, the
    standard error where fewer than two have.
    """

    sizes: Ints
    error: Floats
    se: Floats
    runs: Ints

    NOTHING: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"ess": None, "ess_bound": "", "ess_low": None, "ess_high": None}
    )

    def size(self, error: float) -> dict[str, Any]:
        """The size whose mean error is nearest; the smallest of several.

        ess_bound is ">" where the error is below the whole curve and "<" where it is above it,
        and ess is then the end of the curve. ess_low and ess_high are the least and greatest
        size whose error is within one standard error (of the curve) of the one given: wide where
        the curve is flat.
        """
        known = ~np.isnan(self.error)
        if not known.any():
            return dict(self.NOTHING)
        sizes, curve, se = self.sizes[known], self.error[known], self.se[known]
        near = sizes[np.abs(curve - error) <= np.nan_to_num(se)]
        ends = {
            "ess_low": int(near[0]) if len(near) else None,
            "ess_high": int(near[-1]) if len(near) else None,
        }
        if error < curve.min():
            return {"ess": int(sizes[-1]), "ess_bound": ">", **ends}
        if error > curve.max():
            return {"ess": int(sizes[0]), "ess_bound": "<", **ends}
        nearest = sizes[np.argmin(np.abs(curve - error))]
        return {"ess": int(nearest), "ess_bound": "", **ends}

    def points(self, scale: float) -> list[dict[str, Any]]:
        """The curve as plain values, errors times `scale`."""
        rows = zip(self.sizes, self.error, self.se, self.runs, strict=True)
        return [
            {"x": int(n), "y": _plain(y * scale), "se": _plain(se * scale), "n": int(runs)}
            for n, y, se, runs in rows
        ]


def curves(found: Mapping[Setting, Comparison]) -> dict[tuple[str, str, str], Curve]:
    """(dataset, metric, group) -> the curve, from the rows of the labeled-only curve."""
    points: dict[tuple[str, str, str], list[tuple[int, Floats]]] = {}
    for setting, compared in found.items():
        row = compared.of(REFERENCE)
        if setting.factor == CURVE and row is not None:
            key = (setting.dataset, setting.metric, setting.group)
            points.setdefault(key, []).append((setting.n_labeled, compared.errors[row]))
    return {key: _curve(sorted(part, key=lambda p: p[0])) for key, part in points.items()}


def _curve(points: list[tuple[int, Floats]]) -> Curve:
    known = [errors[~np.isnan(errors)] for _, errors in points]
    return Curve(
        np.asarray([size for size, _ in points]),
        np.asarray([e.mean() if len(e) else np.nan for e in known]),
        np.asarray([e.std(ddof=1) / np.sqrt(len(e)) if len(e) > 1 else np.nan for e in known]),
        np.asarray([len(e) for e in known]),
    )


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
