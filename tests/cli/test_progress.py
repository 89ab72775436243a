"""The bar names the step that runs and moves in each; nothing of it where nobody watches."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewlabels.cli import main
from fewlabels.cli import output as terminal


class Bar:
    """What a bar is told."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.moves: dict[str, list[float]] = {}

    def add_task(self, description: str, **_: Any) -> int:
        self.steps.append(description)
        return 0

    def reset(self, _: int, description: str, **__: Any) -> None:
        self.steps.append(description)

    def update(self, _: int, completed: float, total: float) -> None:
        assert 0 <= completed <= total
        self.moves.setdefault(self.steps[-1], []).append(completed / total)


Run = Callable[..., tuple[int, str, str]]


def write(path: Path, sites: int) -> None:
    """A file of two classifiers and some sites."""
    rng = np.random.default_rng(0)
    lines = ["label,site,p__a__1,p__b__1"]
    for i in range(660):
        p = rng.random(2)
        lines.append(f"{int(p[0] > 0.5) if i < 30 else ''},s{i % sites},{p[0]:.3f},{p[1]:.3f}")
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(("sites", "last"), [(2, "estimating site=s1"), (60, "60 groups")])
def test_every_step_is_named_and_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sites: int, last: str
) -> None:
    bar = Bar()

    @contextmanager
    def shown() -> Iterator[Bar]:
        yield bar

    monkeypatch.setattr(terminal, "_bar", shown)
    write(tmp_path / "a.csv", sites)
    assert main(["estimate", str(tmp_path / "a.csv"), "--by", "site"]) == 0
    assert bar.steps[:3] == ["reading", "fitting the label model", "estimating"]
    assert any(last in step for step in bar.steps)
    moving = [step for step in bar.steps if step.startswith("estimating")]
    assert all(bar.moves[step][-1] == 1 for step in moving)
    assert len(bar.moves["estimating"]) > 4


def test_no_bar_without_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "a.csv", 2)
    assert main(["estimate", str(tmp_path / "a.csv")]) == 0
    assert capsys.readouterr().err == ""


def test_verbose_says_how_long_each_step_took(tmp_path: Path, cli: Run) -> None:
    write(tmp_path / "a.csv", 2)
    plain = cli("estimate", tmp_path / "a.csv")
    code, out, err = cli("estimate", tmp_path / "a.csv", "--html", tmp_path / "a.html", "--verbose")
    assert (code, out.splitlines()[0]) == (0, plain[1].splitlines()[0])
    lines = err.splitlines()
    assert [line.partition(":")[0] for line in lines[:2]] == ["reading", "fitting the label model"]
    assert lines[-1].startswith("writing: ")
    assert all(re.fullmatch(r"[^:]+: \d+\.\d s, [\d,]+ MB", line) for line in lines)


def test_verbose_of_files_read_in_parts(tmp_path: Path, cli: Run) -> None:
    write(tmp_path / "a.csv", 2)
    code, _, err = cli("estimate", tmp_path / "a.csv", "--engine", "threads", "--verbose")
    steps = [line.partition(":")[0] for line in err.splitlines() if " MB" in line]
    assert (code, len(steps) >= 2, len(steps) == len({*steps})) == (0, True, True)


@pytest.mark.slow
def test_quiet_leaves_warnings_alone(tmp_path: Path) -> None:
    """No bar even where somebody watches; what is wrong is still said."""
    write(tmp_path / "a.csv", 2)
    lines = (tmp_path / "a.csv").read_text().splitlines(keepends=True)
    unlabeled = [re.sub("^[01],", ",", line) for line in lines[5:]]  # four labels are left
    (tmp_path / "a.csv").write_text("".join(lines[:5] + unlabeled))
    program = (
        "import sys; from fewlabels.cli import main, output; sys.stderr.isatty = lambda: True\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    asked = ["estimate", str(tmp_path / "a.csv"), "--json", "-"]
    said = [
        subprocess.run(
            [sys.executable, "-c", program, *asked, *more], capture_output=True, text=True,
            env=os.environ | {"FORCE_COLOR": "1"}, check=True,
        )
        for more in ([], ["--quiet"])
    ]  # fmt: skip
    assert said[0].stdout == said[1].stdout
    assert "reading" in said[0].stderr
    assert " MB" in said[0].stderr
    assert "reading" not in said[1].stderr
    assert "warning: " in said[1].stderr


def test_an_interrupt_says_what_was_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fewlabels.cli.input import _kept
    from fewlabels.streaming.checkpoint import Checkpoint

    monkeypatch.setenv("FEWLABELS_CHECKPOINTS", str(tmp_path / "saved"))
    begun = time.time() - 1
    assert _kept(begun) == "nothing was saved yet"
    Checkpoint(None, "run").save({"rows": 1})
    assert re.fullmatch(
        rf"what was done up to \d+ s ago is kept in {re.escape(str(tmp_path / 'saved'))}: the same "
        "command with --resume goes on from there",
        _kept(begun),
    )
    assert _kept(time.time() + 60) == "nothing was saved yet"
