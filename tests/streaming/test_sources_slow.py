"""Two million rows from databases and a store: bounded memory, killed and gone on with."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import places

pytestmark = pytest.mark.slow

ROWS, MEGABYTES = 2_000_000, 600


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    with places.postgres() as url:
        os.environ["PGPASSWORD"] = places.PASSWORD
        yield url
        del os.environ["PGPASSWORD"]


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    with places.object_store() as environment, pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        yield environment


def run(source: Any, folder: Path, name: str, *more: str) -> tuple[subprocess.Popen[bytes], Path]:
    """`fewlabels estimate` in a process of its own, which reads in parts."""
    out = folder / name
    options = ["--metrics", "accuracy,roc_auc", "--workers", "2", "--json", str(out), *more]
    command = [sys.executable, "-m", "fewlabels", "estimate", str(source), *options]
    environment = {**os.environ, "FEWLABELS_CHECKPOINTS": str(folder / "checkpoints")}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL), out


def ended(process: subprocess.Popen[bytes]) -> float:
    """The most memory that it held, in megabytes, once it has succeeded.

    The kernel's count for a child that has ended has that of this process in it, which held the
    table when it made the child: so it is asked while it runs.
    """
    most, status = 0, Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        held = re.search(r"VmHWM:\s*(\d+)", status.read_text())
        most = max(most, int(held[1])) if held else most
        time.sleep(0.05)
    assert process.returncode == 0
    return most / 1024


@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgresql", "s3 hive"])
def test_two_million_rows(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    source = places.place(kind, places.rows(ROWS, third=True), tmp_path, request)
    begun = time.monotonic()
    process, whole = run(source, tmp_path, "whole.json")
    most = ended(process)
    print(f"\n{kind}: {time.monotonic() - begun:.0f} s, {most:.0f} MB")
    process, _ = run(source, tmp_path, "killed.json", "--resume")
    saved = tmp_path / "checkpoints"
    while process.poll() is None and not (saved.is_dir() and [*saved.glob("[!.]*-0*")]):
        time.sleep(0.1)
    assert process.poll() is None, "it ended before it was killed"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process, again = run(source, tmp_path, "again.json", "--resume")
    most = max(most, ended(process))
    found, expected = (json.loads(path.read_text()) for path in (again, whole))
    print(f"{kind}: {most:.0f} MB, {found['diagnostics']['stream']['resumed']}")
    assert found["diagnostics"]["stream"]["resumed"]
    assert found["n_items"] == ROWS
    assert found["estimates"] == expected["estimates"]
    assert most < MEGABYTES
