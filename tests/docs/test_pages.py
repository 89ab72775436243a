"""Every command and every Python block of the README runs; the contributors' skeletons work."""

from __future__ import annotations

import importlib.util
import inspect
import re
import runpy
import shlex
import shutil
import sys
import types
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.methods import registry as method_registry
from fewlabels.metrics import registry as metric_registry

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import reference as reference_recipe

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "examples" / "README.md"]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    found = [body for kind, body in _BLOCK.findall(text) if kind == language]
    assert found, f"{page} has no {language} block"
    return found


@pytest.fixture
def as_a_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples, as the reader of a page has them."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands_of(page: str) -> list[list[str]]:
    return [
        shlex.split(line.removeprefix("$ "))
        for block in blocks(page, "console")
        for line in block.splitlines()
        if line.startswith("$ ")
    ]


def test_readme_commands(as_a_reader: Path, cli: Callable[..., tuple[int, str, str]]) -> None:
    commands = commands_of("README.md")
    assert commands
    for program, *arguments in commands:
        assert program == "fewlabels"
        if "--runs" in arguments:  # one run of a benchmark shows that it runs
            arguments[arguments.index("--runs") + 1] = "1"
        code, out, err = cli(*arguments)
        assert (code, err) == (0, ""), arguments
        assert ("tempered-ensemble" if arguments[0] == "benchmark" else "large") in out
    assert (as_a_reader / "report.html").stat().st_size > 1000


def test_readme_python(as_a_reader: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for block in blocks("README.md", "python"):
        exec(compile(block, "README.md", "exec"), {})
    assert "large" in capsys.readouterr().out
    assert (as_a_reader / "report.html").exists()


def test_commands_and_python_of_the_page_on_annotations(
    as_a_reader: Path, cli: Callable[..., tuple[int, str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    for _, *arguments in commands_of("docs/annotations.md"):
        code, out, err = cli(*arguments)
        assert (code, err) == (0, ""), arguments
        assert "large" in out
    for block in blocks("docs/annotations.md", "python"):
        exec(compile(block, "annotations.md", "exec"), {})
    assert capsys.readouterr().out
    assert {"slides.html", "scaled.csv", "alpha.json"} <= {p.name for p in as_a_reader.iterdir()}


def test_readme_names_every_method_metric_status_and_command() -> None:
    from fewlabels.cli.app import app

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    statuses = {status.value for status in fl.Status}
    commands = {f"fewlabels {name}" for name in set(app.commands) - {"demo"}}
    for name in {*fl.models.METHODS, *statuses}:
        assert f"`{name}`" in text, f"README.md does not name {name}"
    assert all(command in text for command in commands)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for name in {*fl.models.METHODS, *fl.metrics.METRICS, *fl.metrics.ALIASES}:
        assert f"`{name}`" in changelog, f"CHANGELOG.md does not name {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith("https://"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_make_targets_that_pages_name_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        named = set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE))
        assert named <= targets, f"{page.name} names {named - targets}"


# Recipes need large packages: tests/streaming/test_recipes.py runs them where these are.
EXAMPLES = [p for p in sorted((ROOT / "examples").glob("*.py")) if not p.stem.endswith("_recipe")]


# Nearly all methods on real data take long.
LONG = {"compare_methods": pytest.mark.slow}


@pytest.mark.parametrize(
    "example", [pytest.param(p, marks=LONG.get(p.stem, ()), id=p.stem) for p in EXAMPLES]
)
def test_examples_run(example: Path, as_a_reader: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(as_a_reader / "examples" / example.name), run_name="__main__")
    assert capsys.readouterr().out
    assert f"`{example.name}`" in (ROOT / "examples" / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def skeleton_method(monkeypatch: pytest.MonkeyPatch) -> method_registry.Method:
    """The method of docs/add-a-method.md, registered as the page says."""
    (file,) = blocks("docs/add-a-method.md", "python")
    (entry,) = blocks("docs/add-a-method.md", "toml")
    # A module of its own, as the file would be: dataclasses look their module up.
    module = types.ModuleType("fewlabels.methods.best_classifier")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(file, "add-a-method.md", "exec"), module.__dict__)
    (method,) = method_registry.methods_of(entry).values()
    grown = MappingProxyType({**method_registry.METHODS, method.name: method})
    monkeypatch.setattr(method_registry, "METHODS", grown)
    return method


def test_skeleton_method_estimates(skeleton_method: method_registry.Method) -> None:
    predictions = fl.read_predictions(ROOT / "examples" / "moderation.csv")
    estimates = fl.estimate(predictions, skeleton_method.name, by="language")
    assert estimates.method == skeleton_method.name
    assert len(estimates.rows) == 4 * 4 * 4
    assert all(row.low <= row.value <= row.high for row in estimates.rows)
    assert estimates.diagnostics["best_classifier"] in predictions.models
    assert any("taken to be calibrated" in warning for warning in estimates.warnings)
    marginals = estimates.posterior.marginals()
    unlabeled = ~predictions.labeled
    best = predictions.models.index(estimates.diagnostics["best_classifier"])
    assert predictions.probabilities is not None
    np.testing.assert_allclose(marginals[unlabeled], predictions.probabilities[unlabeled, best])


def test_skeleton_method_keeps_the_contract(
    skeleton_method: method_registry.Method, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "tests" / "contracts")
    contract = _load(ROOT / "tests" / "contracts" / "test_contract_methods.py")
    monkeypatch.setattr(contract, "METHODS", method_registry.METHODS)
    choices: dict[str, tuple[Any, ...]] = {
        "method": (skeleton_method.name,),
        "n_classes": (2, 4),
        "estimand": ("population", "sample"),
    }
    ran = 0
    for suite in (contract.TestPosterior(), contract.TestEstimates(), contract.TestIntervals()):
        for name, test in inspect.getmembers(suite, inspect.ismethod):
            parameters = inspect.signature(test).parameters
            if not name.startswith("test_") or not set(parameters) <= set(choices):
                continue
            for values in _product({p: choices[p] for p in parameters}):
                test(**values)
                ran += 1
    assert ran >= 10


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"skeleton_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _product(choices: dict[str, tuple[Any, ...]]) -> list[dict[str, Any]]:
    grid: list[dict[str, Any]] = [{}]
    for name, values in choices.items():
        grid = [row | {name: value} for row in grid for value in values]
    return grid


def test_skeleton_metric_is_that_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.metrics import cohen_kappa_score

    from fewlabels.metrics import confusion

    function, line = blocks("docs/add-a-metric.md", "python")
    names = dict(vars(confusion))
    exec(compile(function, "add-a-metric.md", "exec"), names)
    metric = eval(compile(line, "add-a-metric.md", "eval"), names)
    grown = MappingProxyType({**metric_registry.METRICS, metric.name: metric})
    monkeypatch.setattr(metric_registry, "METRICS", grown)

    predictions = fl.read_predictions(ROOT / "examples" / "moderation.csv")
    row = fl.estimate(predictions, metrics="cohen_kappa").get("large", "cohen_kappa")
    assert -1 <= row.low < row.value < row.high <= 1

    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=200)
    p = rng.dirichlet(np.ones(3), size=(200, 1)) + 0.5 * np.eye(3)[truth][:, None]
    known = fl.Predictions(p / p.sum(axis=2, keepdims=True), truth)
    got = fl.estimate(known, "labeled", "cohen_kappa", estimand="sample").rows[0].value
    assert got == pytest.approx(cohen_kappa_score(truth, p[:, 0].argmax(axis=1)), abs=1e-12)


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("docs/comparing.md", ["large"]),
        ("docs/llm-judges.md", ["large", "small", "anna"]),
        ("docs/reference-data.md", ["1,500 reference items", "support the reference data"]),
    ],
)
def test_commands_of_a_page(
    page: str, words: list[str], as_a_reader: Path, cli: Callable[..., tuple[int, str, str]]
) -> None:
    for program, *arguments in commands_of(page):
        assert program == "fewlabels"
        code, out, err = cli(*arguments)
        assert (code, err) == (0, ""), arguments
        assert all(word in out for word in words)
    if page == "docs/comparing.md":
        assert {"compare.html", "comparison.json"} <= {p.name for p in as_a_reader.iterdir()}


def test_python_of_the_page_on_judges(
    as_a_reader: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for block in blocks("docs/llm-judges.md", "python"):
        exec(compile(block, "docs/llm-judges.md", "exec"), {})
    out = capsys.readouterr().out
    assert "large/accuracy_low" in out
    assert "prediction-powered" in out


def test_python_of_the_page_on_comparing(
    as_a_reader: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for block in blocks("docs/comparing.md", "python"):
        exec(compile(block, "docs/comparing.md", "exec"), {})
    assert "large" in capsys.readouterr().out


def test_python_of_the_page_on_reference_data(
    as_a_reader: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for block in blocks("docs/reference-data.md", "python"):
        exec(compile(block, "docs/reference-data.md", "exec"), {})
    facts, weight = capsys.readouterr().out.splitlines()
    assert "n_items=1500" in facts
    assert 0 <= float(weight) <= 1


def test_tables_of_reference_data_are_those_of_the_results() -> None:
    page = (ROOT / "docs/reference-data.md").read_text(encoding="utf-8")
    assert reference_recipe.with_table(page, reference_recipe.kept_rows()) == page
