from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_bench_summary import results, row

from fewlabels.bench.protocol import load
from fewlabels.bench.results import Results
from fewlabels.bench.summary import command
from fewlabels.methods.settings import canonical


def ran(name: str = "ssme-binary", folder: Path | None = None, **options: Any) -> Results:
    """Results of a protocol of the package, spelled as a run spells it."""
    asked = load(name).with_options(**options)
    asked = replace(asked, methods=tuple(canonical(m) for m in asked.methods))
    return replace(results([row("labeled", 0, 0.1)]), protocol=asked, folder=folder)


def test_a_protocol_as_it_comes_needs_its_name_and_the_data() -> None:
    assert command(ran()) == "fewlabels benchmark ssme-binary --data d.csv"


def test_what_was_set_otherwise_is_an_option() -> None:
    said = command(
        ran(runs=3, n_labeled=[20, 50], confidence_level=0.9, methods=["ssme-kde", "labeled"])
    )
    assert shlex.split(said)[5:] == [
        "--runs", "3", "--methods", "ssme-kde,labeled", "--n-labeled", "20,50",
        "--estimand", "sample", "--confidence-level", "0.9",
    ]  # fmt: skip
    # A level without an estimand would mean the population's, so that is written too.
    assert "--estimand population" in command(ran(confidence_level=0.9, estimand="population"))
    assert command(ran("ssme-subgroup", bins={"age": [30.0, 45.5]})).endswith("--bins age=30,45.5")


def test_how_files_were_read_comes_from_the_manifest_without_folders(tmp_path: Path) -> None:
    reading = {
        "exclude_models": ["A", "B"],
        "where": {"split": "test set"},
        "columns": {"label": "y", "models": {"m": ["p0", "p1"]}, "columns": "/mine/c.toml"},
    }
    manifest = {"data": ["/mine/predictions"], "reading": reading}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    said = command(ran(folder=tmp_path))
    assert shlex.split(said)[3:] == [
        "--data", "predictions", "--exclude-models", "A,B", "--where", "split=test set",
        "--label", "y", "--model", "m=p0,p1", "--columns", "c.toml",
    ]  # fmt: skip


@pytest.mark.parametrize("content", ["", "[]", "{"])
def test_without_a_manifest_the_data_sets_name_their_files(tmp_path: Path, content: str) -> None:
    (tmp_path / "manifest.json").write_text(content)
    assert command(ran(folder=tmp_path)) == command(ran(folder=tmp_path / "none")) == command(ran())


def test_a_protocol_of_ones_own_is_a_file() -> None:
    assert command(results([row("labeled", 0, 0.1)])) == "fewlabels benchmark p.toml --data d.csv"
