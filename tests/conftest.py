"""What tests share: where the data are, and files to read."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import settings

from not_checked import unchecked

# The same examples in every run: a change is judged by what it changed. HYPOTHESIS_PROFILE=search
# looks for new ones.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

ROOT = Path(__file__).resolve().parents[1]

# Processes of tests share the processors: threads on top of them cost a fifth of the time. What
# tests ask threads for by number they get.
if "PYTEST_XDIST_WORKER_COUNT" in os.environ and hasattr(os, "sched_getaffinity"):
    _ours = sorted(os.sched_getaffinity(0))
    _ours = _ours[: max(len(_ours) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"]), 1)]
    os.sched_getaffinity = lambda _: set(_ours)  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The real data sets: $FEWLABELS_DATA, or shared/data beside the repository."""
    folder = Path(os.environ.get("FEWLABELS_DATA", ROOT.parent / "shared" / "data"))
    return _there(folder, "set FEWLABELS_DATA to the folder of the data sets")


@pytest.fixture(scope="session")
def real_or_simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real data sets, or simulated files with their columns: for tests of code alone."""
    folder = Path(os.environ.get("FEWLABELS_DATA", ROOT.parent / "shared" / "data"))
    if folder.is_dir():
        return folder
    from stand_ins import write

    return write(tmp_path_factory.mktemp("stand-ins"))


@pytest.fixture(scope="session")
def golden_folder() -> Path:
    """Values to test against: $FEWLABELS_GOLDEN, or shared/golden beside the repository."""
    folder = Path(os.environ.get("FEWLABELS_GOLDEN", ROOT.parent / "shared" / "golden"))
    return _there(folder, "set FEWLABELS_GOLDEN to the folder of the golden values")


def _there(folder: Path, hint: str) -> Path:
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}; {hint}")
    return folder


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the command line in this process: exit code, stdout, stderr."""
    from fewlabels.cli import main

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def drawn(cases: Sequence[set[Any]]) -> Iterator[int]:
    """Cases that together hold what all of them hold: each adds most of what is still missing."""
    missing = set().union(*cases)
    while missing:
        gains = [len(case & missing) for case in cases]
        best = gains.index(max(gains))
        yield best
        missing -= cases[best]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the cases of a `product` those stay quick that hold every value; the others are slow.

    `product(2)`: that hold every pair of values. `few(k)`: k cases of a test, drawn by its name, so
    that tests of one list of cases take different ones. `slow_with` names values that take long.
    """
    products, several = defaultdict(list), defaultdict(list)
    for item in items:
        for mark in item.iter_markers("product"):
            products[item.nodeid.partition("[")[0], *mark.args].append(item)
        given = item.callspec.params.values() if hasattr(item, "callspec") else ()
        for mark in item.iter_markers("slow_with"):
            if any(isinstance(value, str) and value in mark.args for value in given):
                item.add_marker("slow")
    for (_, *strength), cases in products.items():
        values = [[(k, repr(value)) for k, value in each.callspec.params.items()] for each in cases]
        quick = set(drawn([set(combinations(each, *(strength or [1]))) for each in values]))
        for i, item in enumerate(cases):
            if i not in quick:
                item.add_marker("slow")
    for item in items:
        few = item.get_closest_marker("few")
        if few is not None and item.get_closest_marker("slow") is None:
            several[item.nodeid.partition("[")[0], few.args[0]].append(item)
    for (_, most), cases in several.items():
        for item in sorted(cases, key=lambda case: crc32(case.nodeid.encode()))[most:]:
            item.add_marker("slow")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Promises that nobody checked are said last, not left among the dots."""
    reports = terminalreporter.stats.get("skipped", [])
    skipped = [
        (r.nodeid, r.longrepr[2] if isinstance(r.longrepr, tuple) else str(r.longrepr))
        for r in reports
    ]
    lines = unchecked(skipped)
    if lines:
        terminalreporter.section("promises that were not checked", sep="=")
    for line in lines:
        terminalreporter.write_line(line)


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Bytes by the argument's name: those of archives hold the time at which they were made."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture
def curves_fitted_once(monkeypatch):
    """Curves of the same items are fitted once, whatever is asked of them."""
    from fewlabels.methods.curves.monotone_curves import MonotoneCurves
    from fits import remembered

    fit = MonotoneCurves.fit
    monkeypatch.setattr(
        MonotoneCurves,
        "fit",
        lambda model, *given: remembered(partial(fit, model), repr(model))(*given),
    )
