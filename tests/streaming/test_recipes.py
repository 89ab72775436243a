"""The recipes for Spark and Ray give what `estimate_files` gives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import fewlabels as fl
from fewlabels.errors import InputError
from fewlabels.streaming.external import Stream

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RECIPES = {"spark_recipe": "pyspark", "ray_recipe": "ray"}

# Processes of their own: both leave threads, handlers and warnings behind.
_PROGRAM = """
import json, runpy, sys
recipe, folder = sys.argv[1:]
names = runpy.run_path(recipe)
names["make_rows"](__import__("pathlib").Path(folder))
if "session" in names:
    with names["session"]() as spark:
        found = names["estimates"](spark, folder)
else:
    names["ray"].init(num_cpus=2, include_dashboard=False)
    found = names["estimates"](folder)
print("FOUND", json.dumps([[row.value, row.low, row.high] for row in found.rows]))
"""


def test_every_recipe_is_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*_recipe.py")} == set(RECIPES)
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"`{name}.py`" in listed for name in RECIPES)


def test_parts_that_are_lost_or_come_twice() -> None:
    """A driver of Spark's that runs out of memory collects fewer, and says nothing."""
    rng = np.random.default_rng(0)
    table = pa.table({"label": rng.integers(2, size=60), "p__net__1": rng.random(60)})
    parts = [table.slice(0, 20), table.slice(20)]
    stream = Stream(
        table.column_names, classes=[0, 1], method="majority-vote", metrics="brier",
        confidence_level=None,
    )  # fmt: skip
    fitted = stream.fit(stream.scan([part]) for part in parts)
    first, second = (fitted.tally([part]) for part in parts)
    assert fitted.estimates([first, second]).n_items == 60
    for tallies in ([first], [], [first, second, second]):
        with pytest.raises(InputError, match=r"tallies are of \d+ rows, and the scans of 60; see"):
            fitted.estimates(tallies)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_same_as_files(recipe: str, tmp_path: Path) -> None:
    pytest.importorskip(RECIPES[recipe], reason="`make test-recipes` installs it")
    folder = tmp_path / "rows"
    folder.mkdir()
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(EXAMPLES / f"{recipe}.py"), str(folder)],
        capture_output=True, text=True, timeout=600, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    said = next(line for line in run.stdout.splitlines() if line.startswith("FOUND "))
    found = np.array(json.loads(said.removeprefix("FOUND ")))
    expected = fl.estimate_files(
        folder, metrics=["accuracy", "roc_auc"], workers=2, checkpoints=tmp_path / "saved"
    )
    rows = np.array([[row.value, row.low, row.high] for row in expected.rows])
    assert expected.n_items == 100_000
    assert np.abs(found - rows).max() < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_as_a_reader_runs_it(recipe: str, tmp_path: Path) -> None:
    pytest.importorskip(RECIPES[recipe], reason="`make test-recipes` installs it")
    run = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{recipe}.py")],
        capture_output=True, text=True, timeout=600, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "large" in run.stdout
