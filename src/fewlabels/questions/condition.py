"""Conditions on a classifier's rates: from arguments, from text, or a function of one's own."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from fewlabels.errors import UsageError, quoted, unknown
from fewlabels.kernels.arrays import Bools, Floats
from fewlabels.questions.rates import FORMULAS, Rates

_ROUNDING = 1e-12
"""A rate that is the bound but for rounding is the bound."""

_SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}

_COMPARISON = re.compile(r"\s*(\w+)\s*(>=|<=|>|<)\s*([^\s<>=]+)\s*")


@dataclass(frozen=True)
class Comparison:
    """A rate that must be at least, at most, above or below a bound.

    `most` is the largest value the rate can have, by which a shortfall is measured.
    """

    rate: str
    sign: str
    bound: float
    most: float = 1.0

    @property
    def text(self) -> str:
        """As a person would write it."""
        return f"{self.rate} {self.sign} {self.bound:.12g}"

    def holds(self, rates: Rates) -> Bools:
        """Where it holds, (G, D); an undefined rate meets nothing."""
        slack = _ROUNDING * self.most * (-1 if self.sign in (">=", "<") else 1)
        holds: Bools = _SIGNS[self.sign](rates[self.rate], self.bound + slack)
        return holds

    def shortfall(self, rates: Rates) -> Floats:
        """How far the rate is from the bound, (G, D), as a share of what the rate can be."""
        worst = 0.0 if self.sign[0] == ">" else self.most
        rate = np.where(np.isnan(rates[self.rate]), worst, rates[self.rate])
        gap = self.bound - rate if self.sign[0] == ">" else rate - self.bound
        short: Floats = np.maximum(gap, 0.0) / self.most
        return short


@dataclass(frozen=True)
class Function:
    """A function of one's own: rates (a mapping of arrays (G, D)) to where it holds, (G, D)."""

    call: Callable[[Rates], Any]

    @property
    def text(self) -> str:
        """Its name."""
        return str(getattr(self.call, "__name__", type(self.call).__name__))

    def holds(self, rates: Rates) -> Bools:
        """Where it holds.

        Raises
        ------
        UsageError
            If it fails, or gives something else than one yes or no per cut and draw.
        """
        try:
            with np.errstate(all="ignore"):
                holds = np.asarray(self.call(rates))
        except Exception as error:
            raise UsageError(
                f"`condition` {self.text} raised {type(error).__name__}: {error}; it is called "
                f"with a mapping of arrays: {', '.join(FORMULAS)}"
            ) from error
        shape = rates.tp.shape
        if holds.shape != shape or holds.dtype != np.bool_:
            raise UsageError(
                f"`condition` {self.text} must give an array of booleans of shape {shape}, "
                f"as its rates have; got {holds.dtype} of shape {holds.shape}: combine with & and "
                "|, and compare with >= or <="
            )
        return holds

    def shortfall(self, rates: Rates) -> Floats:
        """One where it does not hold: how far it is from it is not known."""
        return (~self.holds(rates)).astype(np.float64)


Condition = Comparison | Function


def conditions_of(
    bounds: Mapping[str, tuple[str, str, float | None]], condition: Any, cost: tuple[float, float]
) -> tuple[Condition, ...]:
    """All conditions asked for, at least one.

    Parameters
    ----------
    bounds
        Argument -> rate, sign and bound; None = not asked for.
    condition
        Text ("precision >= 0.8 and fpr <= 0.05"), a function of the rates, or several of these.
    cost
        Cost of a false positive and of a false negative.

    Raises
    ------
    UsageError
        If there is none, or one cannot be read or cannot be met.
    """
    out: list[Condition] = [
        _comparison(rate, sign, bound, cost, f"`{argument}`")
        for argument, (rate, sign, bound) in bounds.items()
        if bound is not None
    ]
    several = condition if isinstance(condition, (list, tuple)) else [condition]
    for one in several:
        if isinstance(one, str):
            out += _parsed(one, cost)
        elif callable(one):
            out.append(Function(one))
        elif one is not None:
            raise UsageError(
                "`condition` must be text such as 'precision >= 0.8 and fpr <= 0.05', or a "
                f"function of the rates; got {quoted(one)}"
            )
    if not out:
        raise UsageError(
            "no condition given: pass at least one of "
            f"{', '.join(f'`{name}`' for name in bounds)} or `condition`"
        )
    return tuple(out)


def checked_cost(cost: Any) -> tuple[float, float]:
    """Cost of a false positive and of a false negative.

    Raises
    ------
    UsageError
        If these are not two numbers, not negative and not both 0.
    """
    pair = tuple(cost) if isinstance(cost, (Sequence, np.ndarray)) else ()
    good = len(pair) == 2 and all(_number(c) and c >= 0 for c in pair) and any(pair)
    if not good or isinstance(cost, str):
        raise UsageError(
            "`cost` must be two numbers, the cost of a false positive and of a false negative, "
            f"neither negative and not both 0; got {quoted(cost)}"
        )
    return float(pair[0]), float(pair[1])


def _parsed(text: str, cost: tuple[float, float]) -> list[Condition]:
    """Comparisons joined by `and`."""
    out: list[Condition] = []
    for part in re.split(r"\band\b", text):
        match = _COMPARISON.fullmatch(part)
        if match is None:
            raise UsageError(
                f"`condition` cannot be read at {quoted(part.strip())}; write comparisons joined "
                "by `and`, such as 'precision >= 0.8 and fpr <= 0.05'"
            )
        name, sign, number = match.groups()
        if name not in FORMULAS:
            raise UsageError(unknown("rate", name, FORMULAS))
        try:
            bound = float(number)
        except ValueError:
            raise UsageError(
                f"`condition` must compare {name} with a number; got {quoted(number)}"
            ) from None
        out.append(_comparison(name, sign, bound, cost, "`condition`"))
    return out


def _comparison(
    rate: str, sign: str, bound: Any, cost: tuple[float, float], where: str
) -> Comparison:
    """A comparison whose bound the rate can reach."""
    most = max(cost) if rate == "cost" else 1.0
    if not _number(bound) or not 0 <= bound <= most:
        percent = " (write 80% as 0.8)" if rate != "cost" and _number(bound) and bound > 1 else ""
        raise UsageError(
            f"{where} must be between 0 and {most:g}, as {rate} is; got {quoted(bound)}{percent}"
        )
    if (sign, float(bound)) in ((">", most), ("<", 0.0)):
        raise UsageError(f"{where}: no {rate} can be {sign} {bound:g}; write {sign}= instead")
    return Comparison(rate, sign, float(bound), most)


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
