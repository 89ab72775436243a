"""One idea, written once: which files may do what only one place should."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from test_rooms import SOURCE, modules

# What is called -> the files that may call it.
ONCE = {
    "Estimates": {"pipeline.py"},
    "LabelWeights": {"evaluation/draws.py", "questions/counts.py"},
    "pseudo_observations": {
        "evaluation/draws.py",
        "methods/baselines/active_testing.py",
        "methods/baselines/autoeval.py",
    },
    "get_context": {"streaming/processes.py"},
}

# Quantiles of a level: of one interval, and of all at once.
LEVELS = {"kernels/interval_draws.py", "comparison/draws.py"}


def calls(source: str) -> Iterator[tuple[str, ast.Call]]:
    """Every call, by the last part of its name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func
            if isinstance(name, ast.Attribute):
                yield name.attr, node
            elif isinstance(name, ast.Name):
                yield name.id, node


def callers(name: str) -> set[str]:
    return {
        str(path.relative_to(SOURCE))
        for path in modules()
        if any(name == called for called, _ in calls(path.read_text(encoding="utf-8")))
    }


@pytest.mark.parametrize("name", sorted(ONCE))
def test_is_called_where_it_belongs(name: str) -> None:
    """A file that leaves takes its line with it; a new one asks why it does not ask another."""
    assert callers(name) == ONCE[name]


def test_one_place_takes_the_quantiles_of_a_level() -> None:
    found = set()
    for path in modules():
        for name, call in calls(path.read_text(encoding="utf-8")):
            said = {n.id for n in ast.walk(call) if isinstance(n, ast.Name)}
            if name in {"quantile", "nanquantile"} and said & {
                "level",
                "tails",
                "confidence_level",
            }:
                found.add(str(path.relative_to(SOURCE)))
    assert found == LEVELS
