"""`fewlabels doctor`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., tuple[int, str, str]]


def test_a_good_file(cli: Run, predictions_file: Path, tmp_path: Path) -> None:
    saved = tmp_path / "doctor.json"
    code, out, err = cli("doctor", predictions_file, "--json", saved)
    assert (code, err) == (0, "")
    for said in ("label", "good", "poor", "site"):
        assert said in out
    assert max(map(len, out.splitlines())) <= 80
    assert json.loads(saved.read_text())


def test_json_on_stdout_is_alone(cli: Run, predictions_file: Path) -> None:
    code, out, err = cli("doctor", predictions_file, "--json", "-")
    assert (code, err) == (0, "")
    assert isinstance(json.loads(out), dict)


def test_what_estimate_would_refuse_exits_with_2(
    cli: Run, columns: dict[str, list[Any]], write: Callable[..., Path]
) -> None:
    file = write(columns | {"p__good__1": [1.5, *columns["p__good__1"][1:]]})
    code, out, err = cli("doctor", file)
    assert code == 2
    assert "good" in out
    assert err.startswith("error: `fewlabels estimate` refuses ")
    assert len(err.splitlines()) == 1


def test_column_options(
    cli: Run, columns: dict[str, list[Any]], write: Callable[..., Path]
) -> None:
    file = write({"truth": columns["label"], "a1": columns["p__good__1"]})
    code, out, err = cli("doctor", file, "--label", "truth", "--model", "mine=a1")
    assert code == 0, err
    assert "mine" in out
