"""One idea, written once: which files may do what only one place should."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
from test_rooms import SOURCE, modules, tree

# What is called -> the files that may call it.
ONCE = {
    "Estimates": {"pipeline.py"},
    "LabelWeights": {"evaluation/draws.py", "questions/counts.py"},
    "pseudo_observations": {
        "evaluation/draws.py",
        "methods/baselines/active_testing.py",
        "methods/baselines/autoeval.py",
    },
    "get_context": {"streaming/executors.py"},
}

# Quantiles of a level: of one interval, and of all at once.
LEVELS = {"kernels/interval_draws.py", "comparison/draws.py"}


@cache
def calls(path: Path) -> list[tuple[str, ast.Call]]:
    """Every call, by the last part of its name."""
    return [
        (node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id, node)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name))
    ]


def callers(name: str) -> set[str]:
    return {
        str(path.relative_to(SOURCE))
        for path in modules()
        if any(name == called for called, _ in calls(path))
    }


@pytest.mark.parametrize("name", sorted(ONCE))
def test_is_called_where_it_belongs(name: str) -> None:
    """A file that leaves takes its line with it; a new one asks why it does not ask another."""
    assert callers(name) == ONCE[name]


def test_one_place_takes_the_quantiles_of_a_level() -> None:
    found = set()
    for path in modules():
        for name, call in calls(path):
            if name not in {"quantile", "nanquantile"}:
                continue
            said = {n.id for n in ast.walk(call) if isinstance(n, ast.Name)}
            if said & {
                "level",
                "tails",
                "confidence_level",
            }:
                found.add(str(path.relative_to(SOURCE)))
    assert found == LEVELS
