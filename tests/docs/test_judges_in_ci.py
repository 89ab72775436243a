"""The action and the fixture of `examples/judges_in_ci` do what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER, LOG = ROOT / "examples" / "judges_in_ci", ROOT / "examples" / "verdicts.csv"


@pytest.mark.slow
def test_the_fixture(tmp_path: Path) -> None:
    # The plugin by its module, whether or not the entry point is installed.
    plugin = ["-p", "no:fewlabels", "-p", "fewlabels.integrations.pytest_plugin"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    command += plugin
    done = subprocess.run(
        [*command, "--rootdir", str(FOLDER), str(FOLDER)],
        env=os.environ | {"JUDGES_LOG": str(LOG)},
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "1 passed" in done.stdout


@pytest.mark.slow_with("low:large:accuracy>=0.7")
@pytest.mark.parametrize(("need", "code"), [("low:large:accuracy>=0.7", 0), ("accuracy>=0.99", 1)])
def test_the_action(tmp_path: Path, need: str, code: int) -> None:
    (command,) = re.findall(r"- run: (fewlabels .*)", (FOLDER / "action.yml").read_text())
    shim = tmp_path / "fewlabels"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fewlabels "$@"\n')
    shim.chmod(0o755)
    summary = tmp_path / "summary.md"
    summary.touch()
    environment = {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "LOG": str(LOG), "REQUIRE": need,
        "GITHUB_STEP_SUMMARY": str(summary),
    }  # fmt: skip
    done = subprocess.run(
        ["bash", "-ec", command], env=os.environ | environment, capture_output=True, text=True,
        check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert "| large | 0.8" in summary.read_text()
    assert f'failures="{2 * code}"' in (tmp_path / "judges.xml").read_text()
