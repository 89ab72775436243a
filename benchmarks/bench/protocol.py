"""A protocol: what a benchmark varies, repeats and measures, as one small TOML file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import pairwise
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewlabels.checks.side_files import side_text, toml_of
from fewlabels.errors import InputError, UsageError, did_you_mean, listed, one_line, quoted, unknown

if TYPE_CHECKING:
    from fewlabels.methods.base import LabelModel


PROTOCOLS = Path(__file__).parent / "protocols"

SERVES = ("two classes", "more than two classes", "any")
TRAINED, HISTOGRAMS = "trained sets", "histograms"
DESIGNS = ("predictions", TRAINED, HISTOGRAMS)
SAMPLERS = ("released", "uniform")
ESTIMANDS = ("sample", "population")
FACTORS = ("", "sharpness", "labels", "classifiers", "subset")
_VARIES: Mapping[str, tuple[str, ...]] = {
    "predictions": ("sharpness", "labels", "subset"), TRAINED: ("classifiers", "sharpness"),
    HISTOGRAMS: (),
}  # fmt: skip
"""What each design can vary; it would take the levels of another for empty ones."""

HISTOGRAM_OPTIONS: Mapping[str, str] = {
    "runs": "runs", "methods": "methods", "seed": "seed", "labels_per_item": "n_labeled",
}  # fmt: skip
"""What may be asked of a protocol of histograms -> its field."""

BY_ITEM = "by-item"
LABELS = ("drawn", "expected", BY_ITEM)
"""Levels of what labels are: drawn, expected, or compared with the scores item by item."""

MOST = 100_000
"""Runs, draws of the curve and subsets: with more of them only their count would be computed."""


@dataclass(frozen=True)
class Protocol:
    """What a benchmark does; every field may be set in a protocol's file or by an option.

    Parameters
    ----------
    name, title, source
        What it is called, in words, and which tables and figures of which paper it makes.
    serves
        "two classes", "more than two classes" or "any": data sets that fit.
    design
        "predictions" (files of predictions), "trained sets" (a table of features, on which
        sets of classifiers are trained, a new one in every run) or "histograms" (files with counts
        of annotators; see `bench.disagreement`).
    methods, metrics
        Rows and kinds of tables, in their order; a method may carry settings,
        `ssme-kde[compat=official]`.
    n_labeled, n_unlabeled, runs
        Sizes, each combined with each, and how often each is drawn anew. Of histograms,
        `n_labeled` are labels per validation item.
    sampler
        "released" (that of the released SSME code) or "uniform"; see `bench.splits`.
    seed
        0 gives the splits of the released code.
    estimand, confidence_level
        As at `fewlabels.estimate`; no level, no intervals. Where a level is set and no estimand,
        it is "population": the truth is that of other items than those of the intervals.
    factor, levels
        What is varied besides: "sharpness", "labels" (`LABELS`), "classifiers" (how
        many), "subset" (which; the levels are then made from the data set).
    by, bins
        Columns to estimate by, and edges at which numeric ones are cut.
    curve_first, curve_last, curve_step, curve_runs
        Sizes of the labeled-only curve behind effective sample sizes, and draws of each; 0 draws
        make no curve.
    subset_size, subsets
        How many classifiers in a subset, and how many subsets at most.
    slice_by, train_rows, truth_rows
        Trained sets: the numeric column whose ranges the classifiers learn from, rows that each
        learns from, and rows that the truth is computed on.
    tables, figures
        What the page shows (`bench.tables.TABLES`, `bench.figures.FIGURES`).
    """

    name: str
    title: str
    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    n_labeled: tuple[int, ...]
    n_unlabeled: tuple[int, ...]
    runs: int
    source: str = ""
    serves: str = "any"
    design: str = "predictions"
    sampler: str = "released"
    seed: int = 0
    estimand: str = "sample"
    confidence_level: float | None = None
    factor: str = ""
    levels: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    bins: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    curve_first: int = 10
    curve_last: int = 1000
    curve_step: int = 5
    curve_runs: int = 50
    subset_size: int = 3
    subsets: int = 20
    slice_by: str = ""
    train_rows: int = 100
    truth_rows: int = 10_000
    tables: tuple[str, ...] = ("methods",)
    figures: tuple[str, ...] = ()

    def with_options(self, **options: Any) -> Protocol:
        """The same protocol with some fields set otherwise.

        Raises
        ------
        UsageError
            If a field is unknown, or a value is not of its kind.
        """
        changed = replace(self, **_checked(options, "option"))
        if changed.factor not in ("", "subset") and not changed.levels:
            raise UsageError(f"a protocol that varies {changed.factor!r} needs `levels`")
        for level in changed.levels:
            _check_level(changed.factor, level)
        varies = _VARIES[changed.design]
        if changed.factor and changed.factor not in varies:
            raise UsageError(
                f"`factor` of design {changed.design!r} must be {listed(map(quoted, varies))}; got "
                f"{changed.factor!r}"
            )
        return changed

    def with_fitting_estimand(self) -> Protocol:
        """The same with the estimand of intervals, if it has any: nobody said which.

        Intervals for the very items of a run cannot be held against the truth of other items.
        Where labels are varied, the levels say what is estimated.
        """
        if self.confidence_level is None or self.factor == "labels":
            return self
        return replace(self, estimand="population")

    def plain(self) -> dict[str, Any]:
        """Every field as plain JSON values."""
        values = asdict(self)
        return {
            name: list(v) if isinstance(v, tuple) else v
            for name, v in (values | {"bins": {c: list(e) for c, e in self.bins.items()}}).items()
        }

    @property
    def curve_sizes(self) -> range:
        """Numbers of labels on the labeled-only curve; none where it is not drawn."""
        if not self.curve_runs:
            return range(0)
        return range(self.curve_first, self.curve_last + 1, self.curve_step)


def names() -> tuple[str, ...]:
    """Names of the protocols that come with the package, those of SSME first."""
    files = PROTOCOLS.iterdir()
    found = [f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml")]
    return tuple(sorted(found, key=lambda name: (not name.startswith("ssme"), name)))


def load(name: str | Path) -> Protocol:
    """Read a protocol that comes with the package, or a file of one's own (a path to a .toml).

    Raises
    ------
    UsageError
        If there is none of that name.
    InputError
        If the file is not a protocol.
    """
    text = str(name)
    if text in names():
        file = PROTOCOLS / f"{text}.toml"
        return parse(file.read_text(encoding="utf-8"), text)
    if not text.endswith(".toml"):
        hint = unknown("protocol", text, names())
        raise UsageError(f"{hint}; or name a .toml file of your own")
    try:
        content = side_text(text)
    except InputError as error:
        raise InputError(f"protocol {quoted(text)} {error}") from None
    return parse(content, Path(text).stem)


def parse(text: str, name: str) -> Protocol:
    """Read a protocol from TOML.

    Raises
    ------
    InputError
        If it is not TOML, or a field is missing, unknown or of another kind.
    """
    try:
        said = toml_of(text)
    except InputError as error:
        raise InputError(f"protocol {quoted(name)} {error}") from None
    protocol = from_plain({"name": name} | said)
    try:
        _check_levels_used(protocol)
        _check_curve_used(protocol)
    except UsageError as error:
        raise InputError(f"protocol {quoted(name)}: {error}") from None
    return protocol


def from_plain(said: Mapping[str, Any]) -> Protocol:
    """The protocol of which `said` is `Protocol.plain`, or what a file says.

    Raises
    ------
    InputError
        If a field is missing, unknown or of another kind.
    """
    name = quoted(str(said.get("name", "")))
    try:
        values = _checked(said, "field")
        missing = [f for f in _REQUIRED if f not in values]
        if missing:
            raise UsageError(f"`{missing[0]}` is missing")
        protocol = Protocol(**values).with_options()
        return protocol if "estimand" in values else protocol.with_fitting_estimand()
    except UsageError as error:
        raise InputError(f"protocol {name}: {error}") from None


# --- what would be ignored -------------------------------------------------------------------


def check_used(protocol: Protocol, options: Mapping[str, Any]) -> None:
    """Refuse options that the protocol, with them, would ignore.

    Raises
    ------
    UsageError
        Naming the option and why it has no use.
    """
    name, trains = quoted(protocol.name), protocol.design == TRAINED
    for field_ in ("slice_by", "train_rows", "truth_rows"):
        if field_ in options and not trains:
            raise UsageError(
                f"`{field_}` serves protocols that train their classifiers; protocol {name} reads "
                "predictions: leave it out"
            )
    if "levels" in options:
        _check_levels_used(protocol)
    if "curve_runs" in options:
        _check_curve_used(protocol)
    if "estimand" in options and protocol.factor == "labels":
        raise UsageError(
            f"`estimand` has no use in protocol {name}: its levels, drawn and expected, say it; "
            "leave it out"
        )
    unused = [c for c in protocol.bins if c not in protocol.by]
    if "bins" in options and unused and not trains:
        columns = listed(map(quoted, protocol.by)) or "none"
        raise UsageError(
            f"`bins` cuts column {quoted(unused[0])}, which is not among those to estimate by "
            f"({columns}); name it with `by` too"
        )


def histogram_options(protocol: Protocol, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a protocol of histograms as its fields.

    Raises
    ------
    UsageError
        If an option has no use here, or a value is not of its kind.
    """
    for name in options:
        if name not in HISTOGRAM_OPTIONS:
            raise UsageError(
                f"`{name}` has no use in protocol {quoted(protocol.name)}: leave it out; its "
                f"options are {listed(f'`{name}`' for name in HISTOGRAM_OPTIONS)}"
            )
    given = {HISTOGRAM_OPTIONS[name]: value for name, value in options.items()}
    try:
        protocol.with_options(**given)
    except UsageError as error:
        # It goes by its own fields.
        raise UsageError(str(error).replace("`n_labeled`", "`labels_per_item`")) from None
    return given


def _check_levels_used(protocol: Protocol) -> None:
    if protocol.levels and protocol.factor in ("", "subset"):
        why = "makes its levels from the classifiers" if protocol.factor else "varies nothing"
        raise UsageError(
            f"`levels` have no use in protocol {quoted(protocol.name)}, which {why}; leave them out"
        )


def _check_curve_used(protocol: Protocol) -> None:
    if protocol.curve_runs:
        return
    shown = {"effective-sizes", "labeled-curve"} & {*protocol.tables, *protocol.figures}
    if shown:
        raise UsageError(
            f"`curve_runs` must be at least 1 in protocol {quoted(protocol.name)}, which shows "
            f"{listed(sorted(shown))}; got 0"
        )


# --- what a field may hold -------------------------------------------------------------------


def _checked(said: Mapping[str, Any], kind: str) -> dict[str, Any]:
    for name in said:
        if name not in _KINDS:
            hint = did_you_mean(name, _KINDS)
            raise UsageError(f"unknown {kind} {quoted(name)}; {hint}there are {listed(_KINDS, 40)}")
    return {name: _KINDS[name](name, value) for name, value in said.items()}


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"`{name}` must be text; got {value!r}")
    return one_line(value)


def _one_of(choices: tuple[str, ...]) -> Callable[[str, Any], str]:
    def check(name: str, value: Any) -> str:
        if value not in choices:
            raise UsageError(f"`{name}` must be {listed(map(quoted, choices))}; got {value!r}")
        return str(value)

    return check


def _whole(least: int, most: int | None = None) -> Callable[[str, Any], int]:
    span = f", at least {least}" if most is None else f" from {least} to {most:,}"

    def check(name: str, value: Any) -> int:
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        if not whole or int(value) < least or (most is not None and int(value) > most):
            raise UsageError(f"`{name}` must be a whole number{span}; got {value!r}")
        return int(value)

    return check


def _several(each: Callable[[str, Any], Any], least: int = 1) -> Callable[[str, Any], Any]:
    def check(name: str, value: Any) -> tuple[Any, ...]:
        single = isinstance(value, str | Mapping) or not isinstance(value, Iterable)
        found = tuple(dict.fromkeys(each(name, v) for v in ([value] if single else value)))
        if len(found) < least:
            raise UsageError(f"`{name}` is empty; name at least one")
        return found

    return check


def _level(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise UsageError(f"`{name}` must be between 0 and 1; got {value!r}")
    return float(value)


def _level_text(name: str, value: Any) -> str:
    """A level as results spell it: .50 and 0.5 are one."""
    if isinstance(value, bool):
        raise UsageError(f"`{name}` must hold numbers or names; got {value!r}")
    try:
        return f"{float(value):g}"
    except (TypeError, ValueError):
        return _text(name, value)


def _edges(name: str, value: Any) -> dict[str, tuple[float, ...]]:
    if not isinstance(value, Mapping):
        raise UsageError(f"`{name}` must map columns to edges; got {value!r}")
    found = {}
    for column, edges in value.items():
        numbers = [edges] if isinstance(edges, Real) else list(edges)
        if not numbers or any(isinstance(e, bool) or not isinstance(e, Real) for e in numbers):
            raise UsageError(f"`{name}` must map {quoted(column)} to numbers; got {edges!r}")
        if any(a >= b for a, b in pairwise(numbers)):
            raise UsageError(f"`{name}` must map {quoted(column)} to rising edges; got {edges!r}")
        found[str(column)] = tuple(float(e) for e in numbers)
    return found


def _check_level(factor: str, level: str) -> None:
    if factor == "labels" and level not in LABELS:
        raise UsageError(f"`levels` of 'labels' are {listed(LABELS)}; got {quoted(level)}")
    if factor in ("sharpness", "classifiers"):
        try:
            number = float(level)
        except ValueError:
            number = 0.0
        least = 1 if factor == "classifiers" else 1e-6
        if number < least or (factor == "classifiers" and not number.is_integer()):
            kind = "whole numbers" if factor == "classifiers" else "numbers"
            raise UsageError(f"`levels` of {factor!r} are {kind} above 0; got {quoted(level)}")


_KINDS: Mapping[str, Callable[[str, Any], Any]] = {
    "name": _text,
    "title": _text,
    "source": _text,
    "serves": _one_of(SERVES),
    "design": _one_of(DESIGNS),
    "methods": _several(_text),
    "metrics": _several(_text),
    "n_labeled": _several(_whole(1)),
    "n_unlabeled": _several(_whole(0)),
    "runs": _whole(1, MOST),
    "sampler": _one_of(SAMPLERS),
    "seed": _whole(0),
    "estimand": _one_of(ESTIMANDS),
    "confidence_level": _level,
    "factor": _one_of(FACTORS),
    "levels": _several(_level_text, least=0),
    "by": _several(_text, least=0),
    "bins": _edges,
    "curve_first": _whole(1),
    "curve_last": _whole(1),
    "curve_step": _whole(1),
    "curve_runs": _whole(0, MOST),
    "subset_size": _whole(1),
    "subsets": _whole(1, MOST),
    "slice_by": _text,
    "train_rows": _whole(2),
    "truth_rows": _whole(1),
    "tables": _several(_text, least=0),
    "figures": _several(_text, least=0),
}
_REQUIRED = ("name", "title", "methods", "metrics", "n_labeled", "n_unlabeled", "runs")
assert set(_KINDS) == {f.name for f in fields(Protocol)}


FLOOR = "all-labels-known"
"""The row of what the labels of all items would give."""

REFERENCE = "labeled"
"""The row that others are compared with."""


def asks_for_labels(model: LabelModel) -> bool:
    """Whether it chooses itself which items to label."""
    return {"oracle", "budget"} <= {f.name for f in fields(model)}  # type: ignore[arg-type]
