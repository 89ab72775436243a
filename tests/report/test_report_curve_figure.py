from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from curve_samples import CURVES, THRESHOLDS, plain

from fewlabels.errors import MissingExtraError
from fewlabels.report.figure import render_curve_figure

pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")


@pytest.mark.parametrize("name", CURVES)
def test_a_panel_per_curve(name: str, tmp_path: Path) -> None:
    report = CURVES[name]()[0]
    figure = render_curve_figure(report)
    assert len(figure.axes) == len(report.get("curves", [0]))
    figure.savefig(tmp_path / "figure.svg")


def test_lines_lie_at_the_numbers() -> None:
    report = plain()[0]
    axes = render_curve_figure(report).axes[0]
    line = report["curves"]["precision-recall"]
    assert axes.lines[0].get_xdata().tolist() == line["recall"]
    assert axes.lines[0].get_ydata().tolist() == line["precision"]
    outline = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert outline.min() == min(line["low"])
    assert outline.max() == max(line["high"])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("recall", "precision")


@pytest.mark.parametrize("name", THRESHOLDS)
def test_thresholds(name: str, tmp_path: Path) -> None:
    report = THRESHOLDS[name]()
    figure = render_curve_figure(report)
    line, best = figure.axes[0].lines
    assert line.get_ydata().tolist() == report["probability"]
    assert best.get_xdata().tolist() == [report["best"]]
    figure.savefig(tmp_path / "figure.svg")


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"matplotlib is not installed.*fewlabels\[plot\]"):
        render_curve_figure(plain()[0])


def test_no_global_state_of_pyplot_is_touched() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from curve_samples import plain\n"
        "from fewlabels.report.figure import render_curve_figure\n"
        "render_curve_figure(plain()[0])\n"
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    command = [sys.executable, "-c", program, str(Path(__file__).parent)]
    assert subprocess.run(command).returncode == 0
