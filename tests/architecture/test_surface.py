"""The public surface: its names, their docstrings, and what importing them costs."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from test_rooms import tree

import fewlabels as fl
import outputs
import public_api

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "fewlabels"

SURFACE = [
    "Diagnosis",
    "Estimates",
    "FewlabelsError",
    "InputError",
    "MissingExtraError",
    "Predictions",
    "Status",
    "UsageError",
    "__version__",
    "annotations",
    "anytime",
    "backtest",
    "calibration",
    "calibration_curve",
    "compare",
    "curve",
    "curves",
    "diagnose",
    "estimate",
    "estimate_files",
    "label",
    "label_next",
    "metrics",
    "models",
    "monitor",
    "rank",
    "read_predictions",
    "score",
    "scorer",
    "shift",
    "source",
    "threshold",
]


def test_public_names() -> None:
    assert fl.__all__ == SURFACE
    assert dir(fl) == SURFACE
    assert all(getattr(fl, name) is not None for name in SURFACE)


def test_the_api_is_the_recorded_one() -> None:
    """Signatures, fields, choices and options: `git diff` of the record is what is reviewed."""
    outputs.check("public/python", public_api.surface())
    outputs.check("public/command-line", public_api.command_line())


def test_what_is_public_is_on_the_api_page() -> None:
    page = public_api.documented()
    listed = {
        f"{module.__name__}.{name}" for module in public_api.MODULES for name in module.__all__
    }
    assert listed - {module.__name__ for module in public_api.MODULES} <= {*page}
    assert public_api.given_back() == {}, "what public names give back is on the page too"
    for name, (thing, members) in page.items():
        there = (
            {n for kind in inspect.getmro(thing) for n in public_api.own(kind)} if members else {}
        )
        assert (members or set()) <= {*there}, f"{name} lacks what the page names"
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert inspect.getdoc(thing), f"{name} has no docstring"


def test_public_functions_and_methods_are_documented() -> None:
    bare = []
    for path in SOURCE.rglob("*.py"):
        of_file = tree(path)
        public = [node for node in of_file.body if _is_public(node)]
        inner = [m for c in public if isinstance(c, ast.ClassDef) for m in c.body if _is_public(m)]
        for node in [of_file, *public, *inner]:
            if not ast.get_docstring(node):  # type: ignore[arg-type]
                bare.append(f"{path.relative_to(SOURCE)}: {getattr(node, 'name', 'module')}")
    assert bare == []


def _is_public(node: ast.stmt) -> bool:
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return isinstance(node, kinds) and not node.name.startswith("_")


def test_files_are_named_after_what_they_hold() -> None:
    for path in [*SOURCE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        assert "util" not in path.stem, f"{path.name}: name it after what it holds"


def loaded(code: str) -> set[str]:
    """Top-level packages that are loaded after running `code` in a fresh interpreter."""
    return {name.split(".")[0] for name in modules_after(code)}


def modules_after(code: str) -> list[str]:
    """Names in sys.modules after running `code` in a fresh interpreter."""
    script = f"import sys\n{code}\nprint('\\n' + ' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1].split()


HEAVY = {
    "scipy",
    "sklearn",
    "pyarrow",
    "narwhals",
    "pandas",
    "polars",
    "matplotlib",
    "jinja2",
    "rich",
    "starlette",
    "uvicorn",
}


def test_importing_the_package_loads_nothing() -> None:
    assert loaded("import fewlabels") & (HEAVY | {"numpy", "click"}) == set()


def test_help_loads_nothing() -> None:
    """So it starts in a fraction of a second; the time itself is in `make bench`."""
    code = (
        "from fewlabels.cli import main\n"
        "for c in ([], ['estimate'], ['demo'], ['doctor'], ['label']):\n"
        "    assert main([*c, '--help']) == 0"
    )
    modules = modules_after(code)
    packages = {name.split(".")[0] for name in modules}
    assert packages & (HEAVY | {"numpy"}) == set()
    assert "click" in packages
    assert len(modules) < 250


def test_importing_everything_has_no_side_effect() -> None:
    code = (
        "import random, threading\n"
        "before = random.getstate()\n"
        "import fewlabels as fl\n"
        "[getattr(fl, name) for name in fl.__all__]\n"
        "assert random.getstate() == before\n"
        "assert threading.active_count() == 1"
    )
    assert loaded(code) & {"sklearn", "matplotlib", "pandas", "polars", "jinja2", "rich"} == set()


def test_oldest_requirements_are_the_lower_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # The extra `docs` builds the site; nothing that is installed for it runs with the package.
    named = project["optional-dependencies"].items()
    every = {line for extra, lines in named if extra != "docs" for line in lines}
    extras = {line for line in every if not line.startswith("fewlabels[")}
    for name, declared in (("oldest", project["dependencies"]), ("oldest-extras", extras)):
        lines = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        wanted = sorted(line.replace(">=", "==") for line in declared)
        assert [line for line in lines if line and not line.startswith("#")] == wanted


def test_every_bundled_file_is_named_with_its_licence() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    rows = [
        line for line in page.partition("## What is bundled")[2].splitlines() if line[:1] == "|"
    ]
    named = [name for row in rows for name in re.findall(r"`([\w./]+)`", row.split("|")[1])]
    files = [
        path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    bundled = sorted(str(p.relative_to(SOURCE)) for p in files if p.suffix != ".py")
    assert sorted(named) == bundled


def test_no_machine_paths_in_the_tree() -> None:
    machine = re.compile(r"(?<![\w.])/(?:work|home|Users|root|opt)/")
    skipped = re.compile(r"\.git|\.venv.*|__pycache__|build|dist|\..*_cache|\.hypothesis")
    texts = (".py", ".md", ".toml", ".txt", ".sh", ".j2", ".html", ".css", ".js", "Makefile")
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if not skipped.fullmatch(name)]
        for name in files:
            if name.endswith(texts):
                found = machine.search((Path(folder) / name).read_text(encoding="utf-8"))
                assert not found, f"{folder}/{name} holds a path of one machine"
