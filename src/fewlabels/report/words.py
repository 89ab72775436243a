"""Names and numbers for people: printable, in so many columns, rounded alike."""

from __future__ import annotations

import itertools
import math
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

NumberFormat = Callable[[float | None], str]

UNDEFINED = "undefined"
_MOST_ENTRIES = 30
"""Of a value with more entries the first are said; the JSON has all of them."""

# Line breaks, controls, lone surrogates and what is no character; of the invisible formatting
# characters (Cf), which can turn the direction of a line, only the joiners inside emoji and Indic
# words may stay.
_ESCAPED = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_JOINERS = frozenset("\u200c\u200d")
_ESTIMANDS = {
    "population": "for the population that the items come from",
    "sample": "for these items only",
}

_METRICS = {
    "fpr": "false-positive rate", "fnr": "false-negative rate", "tpr": "true-positive rate",
    "tnr": "true-negative rate", "predicted_positive_rate": "called positive",
    "cost": "cost per item", "cost_of_all": "cost, all positive",
    "cost_of_none": "cost, none positive", "ppv": "PPV", "npv": "NPV", "f1": "F1", "ece": "ECE",
    "top_label_ece": "top-label ECE", "ece_quantile": "ECE by quantiles", "auc": "AUC",
    "roc_auc": "ROC AUC", "brier": "Brier score", "icc2": "ICC2", "icc3": "ICC3",
    "cohen_kappa": "Cohen's kappa", "matthews_corrcoef": "Matthews' correlation",
    "spearman": "Spearman's correlation",
}  # fmt: skip
"""Metrics and rates that are called otherwise than their keys."""

STYLED: ContextVar[bool] = ContextVar("styled", default=False)
"""Whether texts have colour: whoever prints says so, and nobody else has to know."""


@contextmanager
def styled() -> Iterator[None]:
    """Texts that are made in this block have colour."""
    token = STYLED.set(True)
    try:
        yield
    finally:
        STYLED.reset(token)


def escape_control(text: object) -> str:
    """Text that stays on its line: controls, line breaks and turns of direction become escapes.

    So do code points that are no characters, which XML forbids.
    """
    text = str(text)
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c
        if c in _JOINERS or (unicodedata.category(c) not in _ESCAPED and ord(c) & 0xFFFE != 0xFFFE)
        else c.encode("unicode_escape").decode("ascii")
        for c in text
    )


def fit(text: str, width: int) -> str:
    """The text in at most `width` columns of a terminal; what is too long loses its middle.

    Examples
    --------
    >>> fit("a-classifier-with-a-long-name", 15)
    'a-clas...g-name'
    """
    from rich.cells import cell_len  # a command starts without rich

    if cell_len(text) <= width:
        return text
    dots = "..." if width > 3 else ""
    after = (width - 3) // 2 if dots else 0
    before = width - len(dots) - after
    head, tail = text[:before], text[len(text) - after :]
    while cell_len(head) > before:
        head = head[:-1]
    # A mark without the character that it sits on would move to the dots.
    while tail and (cell_len(tail) > after or not cell_len(tail[0])):
        tail = tail[1:]
    return head + dots + tail


def short_names(names: Sequence[str], width: int) -> dict[str, str]:
    """Each name in at most `width` columns, no two of them alike.

    Names that would look alike lose their common beginning, and if that does not tell them apart
    they get their number.

    Examples
    --------
    >>> short_names(["a/long/path/to/a/first", "a/long/path/to/a/fast"], 12)
    {'a/long/path/to/a/first': '...irst', 'a/long/path/to/a/fast': '...ast'}
    """
    cleaned = [escape_control(name) for name in names]
    short = [fit(name, width) for name in cleaned]
    if len(set(short)) < len(short):
        # All begin as the first and the last of the alphabet do.
        ends = zip(min(cleaned), max(cleaned), strict=False)
        start = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], ends))
        short = ["..." + fit(name[start:], width - 3) for name in cleaned]
    if len(set(short)) == len(short):
        return dict(zip(names, short, strict=True))
    marks = [f" #{number}" for number in range(1, len(names) + 1)]
    return {
        name: fit(text, width - len(mark)) + mark
        for name, text, mark in zip(names, cleaned, marks, strict=True)
    }


def number_format(values: Iterable[float | None]) -> NumberFormat:
    """One way to write all values of a metric: three decimals, fewer of hundreds, else scientific.

    A value that is missing is written as "undefined".
    """
    largest = max((abs(v) for v in values if v is not None), default=0.0)
    decimals = 3 if largest < 100 else 1 if largest < 1000 else 0
    spec = f".{decimals}f" if largest == 0 or 5e-3 <= largest < 1e5 else ".2e"

    def write(value: float | None) -> str:
        if value is None:
            return UNDEFINED
        # + 0.0 and a second look: neither -0.0 nor -0.0001 is written as minus nothing.
        text = format(value + 0.0, spec)
        return text.removeprefix("-") if float(text) == 0 else text

    return write


def with_interval(entry: Mapping[str, Any], write: NumberFormat | None = None) -> str:
    """The `value` of an entry, with [`low`, `high`] behind it where they are known."""
    value, low, high = entry["value"], entry["low"], entry["high"]
    write = write or number_format([value, low, high])
    defined = value is not None and low is not None
    return f"{write(value)} [{write(low)}, {write(high)}]" if defined else write(value)


def percent(share: float | None) -> str:
    """A share that is known exactly, such as a confidence level; "no" where there is none.

    Examples
    --------
    >>> percent(0.95), percent(0.995)
    ('95%', '99.5%')
    """
    return "no" if share is None else f"{100 * share:.6g}%"


def probability(value: float | None) -> str:
    """A probability from draws, which is never quite 0 or 1."""
    if value is None:
        return "-"
    if value < 0.005:
        return "<1%"
    return ">99%" if value >= 0.995 else f"{100 * value:.0f}%"


def count(number: int) -> str:
    """A count with its thousands set apart."""
    return f"{number:,}"


def about(number: int) -> int:
    """A count to two digits, which is more than an estimate of it knows.

    Examples
    --------
    >>> about(7), about(112), about(1776)
    (7, 110, 1800)
    """
    return int(float(f"{number:.2g}"))


def enumerated(names: Sequence[str], most: int | None = None, rest: str = "others") -> str:
    """Names as a phrase; of more than `most` the first ones and how many there are besides."""
    if most is not None and len(names) > most:
        return f"{', '.join(names[:most])} and {count(len(names) - most)} {rest}"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def made_by(report: Mapping[str, Any]) -> str:
    """Version, method and seed."""
    return f"fewlabels {report['fewlabels']}, {report['method']}, seed {report['seed']}"


def speaks_of(report: Mapping[str, Any]) -> str:
    """What the intervals of a report cover: the population or these items."""
    return _ESTIMANDS.get(report["estimand"], escape_control(report["estimand"]))


def apart(one: float, other: float, digits: int = 2, unit: str = "f") -> tuple[str, str]:
    """Two numbers with so many decimals, or as many as show that they differ; "-" for nan.

    Examples
    --------
    >>> apart(0.8921, 0.8934), apart(0.4, 0.9, 0, "%"), apart(0.5, 0.5)
    (('0.892', '0.893'), ('40%', '90%'), ('0.50', '0.50'))
    """
    for more in range(digits, digits + 4 if one != other else 0):
        texts = f"{one:.{more}{unit}}", f"{other:.{more}{unit}}"
        if texts[0] != texts[1]:
            break
    else:
        texts = f"{one:.{digits}{unit}}", f"{other:.{digits}{unit}}"
    return tuple("-" if "nan" in text else text for text in texts)  # type: ignore[return-value]


def metric_name(key: str) -> str:
    """What a metric or a rate is called within a sentence.

    Examples
    --------
    >>> metric_name("roc_auc"), metric_name("error_rate")
    ('ROC AUC', 'error rate')
    """
    return _METRICS.get(key, escape_control(key.replace("_", " ")))


def capital(text: str) -> str:
    """A word at the beginning of a sentence or a heading."""
    return text[:1].upper() + text[1:]


def plural(number: int, one: str, many: str = "") -> str:
    """A count and its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def share(value: float) -> str:
    """A rate as a percentage."""
    return f"{100 * value:.1f}%"


def number(value: float | None) -> str:
    """A single number, formatted as in a table."""
    return number_format([value])(value)


def score_text(score: float | None, probability: bool) -> str:
    """A score or threshold, with digits that tell it from its neighbours near 0 and near 1.

    A curve has none where even the highest score is too low.
    """
    if score is None:
        return "none"
    room = min(score, 1 - score) if probability else abs(score)
    if room <= 0 or 0.0995 <= room < 1:
        return f"{score:.3f}"
    if probability and room >= 1e-6:
        return f"{score:.{2 - math.floor(math.log10(room))}f}"
    return f"{score:.4g}"


def fact(value: Any) -> str:
    """A diagnostic in words."""
    if value is None or isinstance(value, bool):
        return {None: "not known", True: "yes", False: "no"}[value]
    if isinstance(value, int):
        return count(value)
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e6 else f"{value:.4g}"
    if isinstance(value, Mapping):
        some = [f"{key}: {fact(inner)}" for key, inner in [*value.items()][:_MOST_ENTRIES]]
        more = f" and {count(len(value) - len(some))} more" if len(value) > len(some) else ""
        return ", ".join(some).replace("_", " ") + more
    if isinstance(value, (list, tuple)):
        more = f" and {count(len(value) - 12)} more" if len(value) > 12 else ""
        return ", ".join(map(fact, value[:12])) + more if value else "none"
    return str(value)
