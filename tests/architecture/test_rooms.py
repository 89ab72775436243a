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
    {"tasks"},
    {"streaming", "calibration"},
    {"estimating"},
    {"questions"},
    {"labeling", "monitoring", "integrations"},
    {"cli", "__main__"},
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

# Lines that a room may have, those of its templates too, so that growth is seen; raised only by a
# change that says why.
LINES = {
    "annotations": 2_944, "calibration": 2_149, "checks": 1_562, "cli": 4_299, "comparison": 694,
    "data": 18_675, "evaluation": 5_282, "integrations": 445, "kernels": 3_634, "labeling": 2_298,
    "methods": 16_560, "metrics": 1_596, "questions": 5_865, "report": 7_945, "shifts": 1_682,
    "streaming": 5_959,
}  # fmt: skip
SURFACE = 3_665
"""Lines of all that stands beside the rooms: the data classes, errors, `estimate`, its pipeline."""

# Rooms that may import less than that.
ONLY = {
    "report": {"errors"},  # it computes nothing
    "kernels": set(),
}

# Heavy packages that a whole room is about: data when a file or frame is read, streaming
# when it is read in parts, calibration, whose estimators are scikit-learn's, when it is asked for.
AT_HOME = {
    ("data", "pyarrow"), ("streaming", "pyarrow"), ("calibration", "sklearn"), ("report", "rich"),
}  # fmt: skip

OUTSIDE = {
    "kernels": {"numpy", "scipy", "threadpoolctl", "numba"},
    "report": {"jinja2", "markupsafe", "matplotlib", "pandas", "polars", "pyarrow", "rich"},
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


def test_arrows() -> None:
    assert {room_of(path) for path in modules()} <= {*FLOOR}, "a new room needs a word in FLOORS"
    for path in modules():
        assert wrong_arrows(room_of(path), path.read_text(encoding="utf-8")) == [], path


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


# The command line may import every room.
@pytest.mark.parametrize("room", sorted(set(LINES) - {"cli"}))
def test_the_head_of_a_room_lists_what_it_imports(room: str) -> None:
    head = ast.get_docstring(tree(SOURCE / room / "__init__.py")) or ""
    listed = re.search(r"The room imports ([^.]*)", head)
    assert listed, "it says 'The room imports ...'"
    names = [n for p in modules() if room_of(p) == room for n, _ in imports(tree(p))]
    rooms = {name.split(".")[1] for name in names if name.startswith("fewlabels.")}
    assert set(re.findall(r"`(\w+)`", listed[1])) == rooms - {room, "__version__"}


def test_lines_of_a_room() -> None:
    count = dict.fromkeys(LINES, 0) | {"": 0}
    for path in (*SOURCE.rglob("*.py"), *SOURCE.glob("report/templates/*")):
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


def test_names_in_the_guide_for_contributors_are_there() -> None:
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text("utf-8")
    named = re.findall(r"`((?:[a-z_]+/)*[a-z_]+)\.([A-Za-z_][\w.]*)`", text)
    assert len(named) > 20
    for module, rest in named:
        file, names = SOURCE / f"{module}.py", rest.split(".")
        if names[0] in ("py", "md", "toml"):
            pattern = f"**/{module}.{rest}"
            assert any(SOURCE.parents[1].glob(pattern)), f"{module}.{rest}"
        elif module != "fl":
            found = {n.name for n in ast.walk(tree(file)) if hasattr(n, "name")}
            assert set(names) <= found, f"{module}.{rest}"
