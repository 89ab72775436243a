"""pytest: assertions on estimates, which pass only where the interval says so.

The fixtures `assert_estimate` and `assert_accuracy` are there wherever the package is installed;
both are functions of this file as well. What they looked at is listed at the end of the run, and is
a property of the test in JUnit's XML.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fewlabels.estimates import Estimates

_PROPERTY = "fewlabels"


def assert_estimate(
    results: Any, condition: str, *, note: Callable[[str], None] | None = None, **settings: Any
) -> Estimates:
    """Assert a condition on estimates, by the end of the interval that could break it.

    Parameters
    ----------
    results
        `Estimates`, or what `fewlabels.estimate` takes.
    condition
        As `--require` has it: "accuracy>=0.9" for every classifier, "large:accuracy>=0.9" for one.
        `>=` and `>` test the lower end of the interval, `<=` and `<` the upper one; "low:", "high:"
        and "width:" in front say which.
    note
        Called with a line on each classifier, whether the condition is met or not.
    settings
        Further arguments of `fewlabels.estimate`, such as y_true.

    Returns
    -------
    Estimates
        Those that were looked at.

    Raises
    ------
    AssertionError
        If the condition is not met: the line of `--require` for each classifier.
    UsageError
        If the condition is none.
    """
    __tracebackhide__ = True
    from fewlabels.checks.conditions import match_requirement
    from fewlabels.errors import UsageError
    from fewlabels.estimates import Estimates
    from fewlabels.metrics.registry import bounds_of

    required = match_requirement(condition, bounds_of)
    if required is not None and required.bound == "value":
        end = "low" if required.compare.startswith(">") else "high"
        required = match_requirement(f"{end}:{condition}")
    if required is None:
        raise UsageError(
            "the condition must be METRIC>=NUMBER (or >, <=, <), such as 'accuracy>=0.9' or "
            f"'MODEL:accuracy>=0.9'; got {condition!r}"
        )
    if not isinstance(results, Estimates):
        from fewlabels.estimating import estimate

        results = estimate(results, metrics=[required.metric], **settings)
    elif settings:
        raise UsageError(f"estimates are made already; leave out {', '.join(settings)}")
    cases = required.cases(results)
    for model, line in cases if note else ():
        row = results.get(model, required.metric)
        found = f"{row.value:.4g} ({row.low:.4g} to {row.high:.4g})"
        note and note(line or f"met: {required.text}: model {model!r} has {found}")
    lines = [line for _, line in cases if line is not None]
    if lines:
        raise AssertionError("\n".join(lines))
    return results


def assert_accuracy(
    results: Any, condition: str, *, model: str | None = None,
    note: Callable[[str], None] | None = None, **settings: Any,
) -> Estimates:  # fmt: skip
    """Assert ">=0.9" of the accuracy of every classifier, or of one; see `assert_estimate`."""
    __tracebackhide__ = True
    of = "" if model is None else f"{model}:"
    return assert_estimate(results, f"{of}accuracy{condition}", note=note, **settings)


def _noting(request: pytest.FixtureRequest) -> Callable[[str], None]:
    properties = request.node.user_properties
    return lambda line: properties.append((_PROPERTY, line))


@pytest.fixture(name="assert_estimate")
def _assert_estimate(request: pytest.FixtureRequest) -> Callable[..., Estimates]:
    """`assert_estimate(results, "accuracy>=0.9", **settings)`."""
    return partial(assert_estimate, note=_noting(request))


@pytest.fixture(name="assert_accuracy")
def _assert_accuracy(request: pytest.FixtureRequest) -> Callable[..., Estimates]:
    """`assert_accuracy(results, ">=0.9", model=None, **settings)`."""
    return partial(assert_accuracy, note=_noting(request))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """List what assertions looked at; workers of pytest-xdist send it with their reports."""
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, ())]
    said = [
        f"{report.nodeid}: {line}"
        for report in reports
        if report.when == "call"
        for name, line in report.user_properties
        if name == _PROPERTY
    ]
    if said:
        terminalreporter.section("fewlabels")
        for line in said:
            terminalreporter.write_line(line)
