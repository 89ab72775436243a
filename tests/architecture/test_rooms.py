"""The arrows between the rooms: who may import whom."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "fewlabels"

# A room may import what stands on the floors below its own, inside functions as well as at the top:
# so there is no circle, and no arrow points up. A new room is a word here.
FLOORS = [
    {"errors", "kernels"},
    {"report", "checks", "posterior", "comparison"},
    {"predictions"},
    {"estimates", "data", "metrics", "methods"},
    {"shifts"},
    {"models", "evaluation"},
    {"pipeline", "annotations"},
    {"streaming", "calibration"},
    {"estimating"},
    {"questions"},
    {"labeling"},
    {"cli", "__main__"},
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

# Lines that a room may have; raised only by a change that says why. A file holds a subject.
# Labeling is a room of its own, as it alone writes while somebody works; what any command reads of
# its record, and how rows of a large file are drawn, is in `data`. The logs of ten evaluation tools
# are 2,350 lines of data, 50 to 200 each (data/logs). Pages say where they come from, list warnings
# by weight, stay under 300 KB, and shift and label-next have theirs (400 lines of report). Labels
# are found beside named classifiers, and slips of the pen named (200 of data); sequential Monte
# Carlo is a sampler of two methods (100 of kernels). Joint errors say what the labels contradict.
# How sure a classifier is, who agreed, what was done, and other words are told from predictions
# (250 of data). Labels of other items, and labels that a classifier has seen, are warned of (100 of
# evaluation); what labels say against a curve (60 of questions). Rows belong to clusters, which
# columns say, and rows that are fewer items are told of (170 of data, 33 of the nouns). No output
# is an input, by what options say of their paths (50 of cli); text of CSV is no formula, and read
# as it was (45 of data). Arrays of every kind pass one door, and results are frozen (125 of checks,
# 35 of the nouns, 130 of kernels); a draw is a label and a row weight (evaluation lost 1,000 lines,
# 110 of kernels and 100 of metrics are new). A record that is lost is noticed and rescued, and
# strangers hold few connections (140 of labeling). Records are held to what was shown of their
# items, and a bad line to itself; sampling weights are known by name (250 of data). A row counts in
# every fit as what it tells beside the others of its cluster (200 of kernels, 80 of the nouns).
# What would not end is bounded, and classes are different names (30 of checks, 10 of questions);
# what somebody may have edited is not replaced (15 of cli). Sums and rankings are compiled too, by
# what votes had for themselves (300 of kernels, 95 of them from methods; 50 fewer of metrics);
# classes of which all is the same are one there (25 of kernels). A backtest on one's own labels is
# a question, a command and a page (370 of questions, 95 of cli, 195 of report); what all results
# have is one mixin (55 of report, 60 fewer of questions). Draws share P(label), which is looked up
# (25 of kernels, 10 of evaluation); SPE is for two classes (400 fewer of methods). Whether labels
# are a random sample is asked in shifts (540 lines, from data). Names are nouns of the field, which
# are longer, and heads of rooms say what they may import and where to start (100 in all rooms).
LINES = {
    "annotations": 2_420, "calibration": 1_930, "checks": 1_430, "cli": 3_590,
    "comparison": 780, "data": 12_310, "evaluation": 4_160, "kernels": 3_380, "labeling": 2_450,
    "methods": 16_100, "metrics": 1_430, "questions": 4_250, "report": 5_360, "shifts": 1_700,
    "streaming": 5_300,
}  # fmt: skip
SURFACE = 2_680
"""Lines of all that stands beside the rooms: the nouns, errors, `estimate` and its pipeline. What a
method knows is of three kinds, which answer for themselves (50 lines; evaluation lost 90)."""

# Rooms that may import less than that.
ONLY = {
    "report": {"errors"},  # it computes nothing
    "kernels": set(),
}

# Heavy packages that a whole room is about: data when a file or frame is read, streaming
# when it is read in parts, calibration, whose estimators are scikit-learn's, when it is asked for.
AT_HOME = {("data", "pyarrow"), ("streaming", "pyarrow"), ("calibration", "sklearn")}

OUTSIDE = {
    "kernels": {"numpy", "scipy", "threadpoolctl", "numba"},
    "report": {"jinja2", "markupsafe", "matplotlib", "pandas", "polars", "pyarrow"},
    "cli": {"click", "rich"},
}


def modules() -> list[Path]:
    return sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")


@cache
def tree(path: Path) -> ast.Module:
    """A file, parsed once for all who look at it."""
    return ast.parse(path.read_text(encoding="utf-8"))


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(tree: ast.AST, *, inside: bool = False) -> Iterator[tuple[str, bool]]:
    """Every imported module with its dots, and whether the import stands inside a function."""
    for node in ast.iter_child_nodes(tree):
        within = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(node, ast.Import):
            yield from ((alias.name, within) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            if node.module == "fewlabels":
                yield from ((f"fewlabels.{alias.name}", within) for alias in node.names)
            else:
                yield node.module, within
        yield from imports(node, inside=within)


def below(room: str) -> set[str]:
    return {other for other, floor in FLOOR.items() if floor < FLOOR[room]}


def wrong_arrows(room: str, source: str) -> list[str]:
    wrong = []
    for name, _ in imports(ast.parse(source)):
        top, _, rest = name.partition(".")
        target = rest.partition(".")[0]
        if top != "fewlabels":
            if top in {"numpy", "scipy"} and room == "report":
                wrong.append(f"{room} imports {name}")
            continue
        if target in {room, "__version__"} or room == "__main__":
            continue
        if target not in ONLY.get(room, below(room)):
            wrong.append(f"{room} imports {target or 'fewlabels'}")
    return wrong


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_arrows(path: Path) -> None:
    assert room_of(path) in FLOOR, "a new room needs a word in FLOORS"
    assert wrong_arrows(room_of(path), path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("methods", "from fewlabels.metrics import METRICS"),
        ("metrics", "def f():\n    import fewlabels.methods"),
        ("data", "from fewlabels import methods"),
        ("kernels", "from fewlabels.errors import InputError"),
        ("estimates", "def f():\n    from fewlabels.evaluation import evaluator"),
        ("report", "import numpy as np"),
        ("methods", "import fewlabels"),
    ],
)
def test_a_wrong_arrow_is_seen(room: str, source: str) -> None:
    assert len(wrong_arrows(room, source)) == 1


def test_lines_of_a_room() -> None:
    count = dict.fromkeys(LINES, 0) | {"": 0}
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0]
        count[room if room in LINES else ""] += len(path.read_text("utf-8").splitlines())
    over = {r: n for r, n in count.items() if n > LINES.get(r, SURFACE)}
    assert not over, "more lines than LINES allows"


@pytest.mark.parametrize("room", sorted(OUTSIDE))
def test_outside_packages_of_a_room(room: str) -> None:
    import sys

    for path in modules():
        if room_of(path) != room:
            continue
        tops = {name.partition(".")[0] for name, _ in imports(tree(path))}
        foreign = tops - set(sys.stdlib_module_names) - {"fewlabels"} - OUTSIDE[room]
        assert not foreign, f"{path.name} imports {foreign}"


def test_heavy_packages_are_imported_inside_functions() -> None:
    heavy = {"pandas", "polars", "sklearn", "matplotlib", "rich", "jinja2", "pyarrow"}
    found = [
        f"{path.relative_to(SOURCE)} imports {name}"
        for path in modules()
        for name, within in imports(tree(path))
        if name.partition(".")[0] in heavy
        and not within
        and not _type_checking_only(path, name)
        and (room_of(path), name.partition(".")[0]) not in AT_HOME
    ]
    assert found == []


def _type_checking_only(path: Path, name: str) -> bool:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return any(found == name for found, _ in imports(node))
    return False


@pytest.mark.parametrize(
    "path",
    [*SOURCE.rglob("README.md"), *SOURCE.rglob("__init__.py")],
    ids=lambda p: str(p.relative_to(SOURCE)),
)
def test_files_that_the_head_of_a_room_names_are_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    head = text if path.suffix == ".md" else ast.get_docstring(ast.parse(text)) or ""
    roots = (path.parent, path.parent / "templates", SOURCE, SOURCE.parents[1])
    named = re.findall(r"[\w./-]*\w\.(?:py|j2|css|js|md|toml)\b", head)
    assert [n for n in named if not any((root / n).exists() for root in roots)] == []
