from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from curve_samples import CURVES, THRESHOLDS, plain
from report_samples import SAMPLES, Report, all_undefined, demo, minimal, two_classes

from fewlabels.errors import MissingExtraError, UsageError
from fewlabels.report import render_curve_figure, render_figure

pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")


@pytest.mark.parametrize("name", ["two_classes", "nasty_names", "all_undefined"])
def test_axes_per_metric_and_a_line_per_row(name: str) -> None:
    report = SAMPLES[name]()
    figure = render_figure(report)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["accuracy", "ece", "auc", "log_loss"]
    rows = [row for row in report["estimates"] if row["metric"] == "accuracy"]
    groups = {row["group"] for row in rows} - {None}
    assert len(figure.axes[0].get_yticks()) == len(rows) + len(groups)


def test_points_lie_at_the_estimates() -> None:
    report = minimal()
    axes = render_figure(report, metric="ece").axes[0]
    rows = [row for row in report["estimates"] if row["metric"] == "ece"]
    (points,) = (line.get_xdata() for line in axes.lines if line.get_marker() == "o")
    ends = [tuple(span[:, 0]) for span in axes.collections[0].get_segments()]
    assert list(points) == [row["value"] for row in rows]
    assert ends == [(row["low"], row["high"]) for row in rows]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b"]


def test_one_metric_alone() -> None:
    assert len(render_figure(two_classes(), metric="auc").axes) == 1


def test_the_truth_is_marked_where_it_is_known() -> None:
    def marks(report: Report) -> int:
        axes = render_figure(report, metric="accuracy").axes[0]
        return sum(len(line.get_xdata()) for line in axes.lines if line.get_marker() == "|")

    assert (marks(demo()), marks(minimal())) == (5, 0)


def test_what_has_no_value_is_named() -> None:
    axes = render_figure(all_undefined(), metric="accuracy").axes[0]
    assert [text.get_text() for text in axes.texts] == ["undefined"] * 3


def test_a_name_is_no_formula(tmp_path: Path) -> None:
    report = minimal()
    for row in report["estimates"]:
        row["model"] = {"a": r"$\bad{$", "b": "two\nlines"}[row["model"]]
    figure = render_figure(report)
    figure.savefig(tmp_path / "figure.png")
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == [r"$\bad{$", r"two\nlines"]


def test_an_unknown_metric() -> None:
    with pytest.raises(UsageError, match="unknown metric 'f1'; estimated here: accuracy, ece"):
        render_figure(minimal(), metric="f1")


@pytest.mark.parametrize("name", ["plain", "score_unit", "nasty_names"])
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


@pytest.mark.parametrize("name", ["met", "nasty_conditions"])
def test_thresholds(name: str, tmp_path: Path) -> None:
    report = THRESHOLDS[name]()
    figure = render_curve_figure(report)
    line, best = figure.axes[0].lines
    assert line.get_ydata().tolist() == report["probability"]
    assert best.get_xdata().tolist() == [report["best"]]
    figure.savefig(tmp_path / "figure.svg")


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    missing = pytest.raises(
        MissingExtraError, match=r"matplotlib is not installed.*fewlabels\[plot\]"
    )
    with missing:
        render_figure(minimal())
    with missing:
        render_curve_figure(plain()[0])


def test_no_global_state_of_pyplot_is_touched() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from curve_samples import plain\n"
        "from report_samples import minimal\n"
        "from fewlabels.report import render_curve_figure, render_figure\n"
        "render_figure(minimal()), render_curve_figure(plain()[0])\n"
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    command = [sys.executable, "-c", program, str(Path(__file__).parent)]
    assert subprocess.run(command).returncode == 0
