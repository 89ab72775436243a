"""Files to run the commands on, and ways to run them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from worlds import rounded

Columns = dict[str, list[Any]]


@pytest.fixture
def columns() -> Columns:
    """Two classifiers, 80 items, 20 labels, two groups."""
    rng = np.random.default_rng(7)
    truth = rng.integers(2, size=80)
    table: Columns = {"label": ["" if i >= 20 else int(y) for i, y in enumerate(truth)]}
    for model, spread in (("good", 0.8), ("poor", 2.0)):
        logit = (2 * truth - 1) * 1.5 + spread * rng.standard_normal(80)
        table[f"p__{model}__1"] = [round(float(p), 4) for p in 1 / (1 + np.exp(-logit))]
        table[f"p__{model}__0"] = [round(1 - p, 4) for p in table[f"p__{model}__1"]]
    table["site"] = ["north" if i % 2 else "south" for i in range(80)]
    return table


@pytest.fixture(scope="session")
def histograms() -> Columns:
    """Two classifiers, 90 items, 60 of them with 1 to 5 labels, two sites."""
    rng = np.random.default_rng(3)
    truth = rng.dirichlet([0.5, 0.5, 0.5], size=90)
    size = np.where(np.arange(90) < 60, rng.integers(1, 6, size=90), 0)
    counts = np.array([rng.multinomial(m, q) for m, q in zip(size, truth, strict=True)])
    out: Columns = {"item": [f"x{i}" for i in range(90)]}
    for name, noise in (("good", 0.3), ("poor", 1.5)):
        logits = np.log(truth + 0.05) + noise * rng.normal(size=truth.shape)
        p = rounded(softmax(logits, axis=1))
        out |= {f"p__{name}__{k}": p[:, j].tolist() for j, k in enumerate("abc")}
    out |= {f"h__{k}": counts[:, j].tolist() for j, k in enumerate("abc")}
    out["site"] = ["north" if i % 2 else "south" for i in range(90)]
    return out


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write columns as a CSV file; header names may repeat where pairs are given."""

    def save(
        table: Mapping[str, Sequence[Any]] | Sequence[tuple[str, Sequence[Any]]],
        name: str = "predictions.csv",
    ) -> Path:
        pairs = list(table.items()) if isinstance(table, Mapping) else list(table)
        path = tmp_path / name
        with path.open("w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow([header for header, _ in pairs])
            out.writerows(zip(*(values for _, values in pairs), strict=True))
        return path

    return save


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def refused(cli: Run, tmp_path: Path) -> Callable[..., str]:
    """The message of a command that must be refused, and must write nothing."""

    def run(*arguments: str | Path) -> str:
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
        code, out, err = cli(*arguments)
        assert (code, out) == (2, ""), err
        assert err.startswith("error: ")
        assert err.endswith("\n")
        assert len(err.splitlines()) == 1, err
        after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
        assert after == before, "something was written"
        return err

    return run


@pytest.fixture
def answer(cli: Run) -> Callable[..., dict[str, Any]]:
    """What a command that succeeds writes to `--json -`: strict JSON, an object."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    def run(*arguments: str | Path) -> dict[str, Any]:
        code, out, err = cli(*arguments, "--json", "-")
        assert code == 0, err
        assert out.endswith("}\n")
        value = json.loads(out, parse_constant=refuse)
        assert isinstance(value, dict)
        assert err.count("\n") == err.count("warning: ") == len(value.get("warnings", []))
        return value

    return run


@pytest.fixture
def predictions_file(columns: Columns, write: Callable[..., Path]) -> Path:
    """The two classifiers as a CSV file."""
    return write(columns)


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `fewlabels demo` has run once, with everything it can write."""
    from fewlabels.cli import main

    folder = tmp_path_factory.mktemp("demo")
    arguments = ["--out", "report.html", "--json", "demo.json", "--save-data", "data.parquet"]
    code = main(["demo", *(str(folder / a) if "." in a else a for a in arguments)])
    assert code == 0
    return folder


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """MLflow traces of two criteria, two judges, and 30 labels."""
    path = tmp_path / "log.jsonl"
    with path.open("w") as file:
        for i in range(90):
            said = [
                {
                    "assessment_name": name,
                    "source": {"source_type": kind, "source_id": who},
                    "feedback": {"value": (i + k) % 3 > 0 if i % 7 else i % 2 > 0},
                }
                for k, name in enumerate(("good", "kind"))
                for kind, who in (("LLM_JUDGE", "a"), ("LLM_JUDGE", "b"), ("HUMAN", "ann"))
                if kind != "HUMAN" or i < 30
            ]
            file.write(json.dumps({"info": {"trace_id": f"t{i}", "assessments": said}}) + "\n")
    return path
