"""The bar names the step that runs and moves in each; nothing of it where nobody watches."""

from __future__ import annotations

from collections.abc import Iterator
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
