"""Links of the pages lead somewhere, examples run, and the contributors' skeletons work."""

from __future__ import annotations

import importlib.util
import inspect
import re
import runpy
import shutil
import sys
import types
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.methods import registry as method_registry
from fewlabels.metrics import registry as metric_registry

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


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith("https://"):
            made = "gallery" in target  # the gallery is made with the site
            assert made or (page.parent / target).exists(), f"{page.name} links to {target}"
    for target in re.findall(r'(?:src|srcset)="([^"]+)"', page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} shows {target}"


def anchors(page: Path) -> set[str]:
    """Where one can link to in a page: its titles, as GitHub and the site make anchors of them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ +(.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_anchors_are_titles(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([\w./-]*\.md)?#([\w-]+)\)", text):
        there = page.parent / target if target else page
        assert anchor in anchors(there), f"{page.name} links to {target}#{anchor}"


def test_make_targets_that_pages_name_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        named = set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE))
        assert named <= targets, f"{page.name} names {named - targets}"


# Recipes need large packages: tests/streaming/test_recipes.py runs them where these are.
EXAMPLES = sorted(p.stem for p in (ROOT / "examples").glob("*.py") if "_recipe" not in p.stem)


@pytest.mark.slow_with(
    "compare_methods", "votes_without_labels", "experts_disagree", "shifted_labels",
    "how_many_labels", "backtest", "over_time",
)  # fmt: skip
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run(example: str, as_a_reader: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(as_a_reader / "examples" / f"{example}.py"), run_name="__main__")
    assert capsys.readouterr().out
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    assert f"`{example}.py`" in (ROOT / "examples" / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def skeleton_method(monkeypatch: pytest.MonkeyPatch) -> method_registry.Method:
    """The method of docs/add-a-method.md, registered as the page says."""
    (file,) = blocks("docs/add-a-method.md", "python")
    (entry,) = blocks("docs/add-a-method.md", "toml")
    # Loaded on first use, which must not be while the registry is another one.
    assert fl.models.METHODS is method_registry.METHODS
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
    from sklearn.metrics import jaccard_score

    from fewlabels.metrics import confusion

    function, line = blocks("docs/add-a-metric.md", "python")
    names = dict(vars(confusion))
    exec(compile(function, "add-a-metric.md", "exec"), names)
    metric = eval(compile(line, "add-a-metric.md", "eval"), names)
    assert metric.name not in metric_registry.METRICS, "the skeleton is of a new metric"
    grown = MappingProxyType({**metric_registry.METRICS, metric.name: metric})
    monkeypatch.setattr(metric_registry, "METRICS", grown)

    predictions = fl.read_predictions(ROOT / "examples" / "moderation.csv")
    row = fl.estimate(predictions, metrics="jaccard").get("large", "jaccard")
    assert 0 <= row.low < row.value < row.high <= 1

    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=200)
    p = rng.dirichlet(np.ones(3), size=(200, 1)) + 0.5 * np.eye(3)[truth][:, None]
    known = fl.Predictions(p / p.sum(axis=2, keepdims=True), truth)
    got = fl.estimate(known, "labeled", "jaccard", estimand="sample").rows[0].value
    wanted = jaccard_score(truth, p[:, 0].argmax(axis=1), average="macro")
    assert got == pytest.approx(wanted, abs=1e-12)
