"""Figures for slides: where their marks lie, what their titles say, and what cannot be drawn."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from curve_samples import THRESHOLDS, plain
from every_report import _made, some
from report_samples import Report, all_undefined, demo, many_models, minimal, two_classes

import fewlabels as fl
from fewlabels.errors import MissingExtraError, UsageError
from fewlabels.report import render_figure

pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")

DRAWN = [
    "estimates: two_classes", "estimates: nasty_names", "estimates: all_undefined",
    "annotations: plain", "calibration: alpha", "calibration-curve: nasty", "comparison: nasty",
    "comparison: many", "curves: plain", "curves: score_unit", "curves: nasty_names",
    "threshold: met", "threshold: nasty_conditions", "shift: two", "shift: nasty",
    "label-next: curve", "label-next: metric", "backtest: two", "backtest: nasty",
    "agreement: people", "agreement: hostile", "annotations: no_intervals",
    "annotations: hostile", "calibration: unchecked", "monitoring: two", "monitoring: nasty",
]  # fmt: skip


def title_of(figure: Any) -> str:
    return " ".join(figure.get_suptitle().split())


def spans(axes: Any) -> list[tuple[float, ...]]:
    """The intervals of a forest, from above."""
    return [tuple(line.get_xdata()) for line in axes.lines if len(line.get_xdata()) == 2]


@pytest.mark.few(7)
@pytest.mark.parametrize("name", DRAWN)
def test_every_report_is_drawn_for_a_slide(name: str, tmp_path: Path) -> None:
    kind, _, which = name.partition(": ")
    figure = render_figure(kind, _made(kind, which)[0])
    figure.savefig(tmp_path / "figure.png")
    width, height = figure.get_size_inches()
    assert width / height == pytest.approx(16 / 9)
    assert title_of(figure)
    assert 1 <= len(figure.axes) <= 6
    assert "\x1b" not in title_of(figure)
    box = figure.get_tightbbox()
    assert (box.x0 >= -0.05, box.x1 <= width + 0.05) == (True, True), "something is cut off"


def test_points_lie_at_the_estimates() -> None:
    report = minimal()
    axes = render_figure("estimates", report, metric="ece").axes[0]
    rows = sorted((r for r in report["estimates"] if r["metric"] == "ece"),
                  key=lambda row: row["value"])  # fmt: skip
    points = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    assert points == [row["value"] for row in rows]
    assert spans(axes) == [(row["low"], row["high"]) for row in rows]
    assert [text.get_text() for text in axes.get_yticklabels()] == [row["model"] for row in rows]


def test_a_group_is_a_figure_of_its_own() -> None:
    report = two_classes()
    (axes,) = render_figure("estimates", report, "accuracy, sex=female").axes
    rows = [
        r for r in report["estimates"] if (r["metric"], r["group"]) == ("accuracy", "sex=female")
    ]
    assert sorted(spans(axes)) == sorted((row["low"], row["high"]) for row in rows)


def test_of_many_rows_the_first_are_drawn() -> None:
    report = many_models()
    axes = render_figure("estimates", report).axes[0]
    assert len(axes.get_yticks()) == 20
    rows = [row for row in report["estimates"] if row["metric"] == "accuracy"]
    shown = [row for row in rows if row["status"] != "not-applicable"]
    more = sum(row["group"] is None for row in shown) - 20
    assert axes.get_xlabel().endswith(f"; {more} more rows are not drawn")


def test_the_title_is_the_answer_in_a_sentence_or_two() -> None:
    assert title_of(render_figure("estimates", demo())) == (
        "By accuracy, forest is probably the best of 5 classifiers, with probability 82%. "
        "Its accuracy is estimated at 0.930, with a 95% interval from 0.895 to 0.959"
    )
    assert title_of(render_figure("estimates", two_classes())) == (
        "By accuracy, it is open which of 7 classifiers is the best: bert-base has the best "
        "estimate, but gpt-zero-shot is more probably the best (45% against 24%)"
    )
    assert title_of(render_figure("estimates", all_undefined())).endswith("is undefined here")


def test_the_truth_is_marked_where_it_is_known() -> None:
    def marks(report: Report) -> int:
        axes = render_figure("estimates", report, metric="accuracy").axes[0]
        return sum(len(line.get_xdata()) for line in axes.lines if line.get_marker() == "|")

    assert (marks(demo()), marks(minimal())) == (5, 0)


def test_what_has_no_value_is_named() -> None:
    axes = render_figure("estimates", all_undefined(), metric="accuracy").axes[0]
    assert [text.get_text() for text in axes.texts] == ["undefined"] * 3


def test_a_name_is_no_formula(tmp_path: Path) -> None:
    report = minimal()
    for row in report["estimates"]:
        row["model"] = {"a": r"$\bad{$", "b": "two\nlines"}[row["model"]]
    figure = render_figure("estimates", report)
    figure.savefig(tmp_path / "figure.png")
    names = {t.get_text() for t in figure.axes[0].get_yticklabels()}
    assert names == {r"$\bad{$", r"two\nlines"}


def test_an_unknown_metric() -> None:
    with pytest.raises(UsageError, match="unknown metric 'f1'"):
        render_figure("estimates", minimal(), metric="f1")


def test_lines_lie_at_the_numbers() -> None:
    report = plain()[0]
    axes = render_figure("curves", report).axes[0]
    line = report["curves"]["precision-recall"]
    assert axes.lines[-1].get_xdata().tolist() == line["recall"]
    assert axes.lines[-1].get_ydata().tolist() == line["precision"]
    outline = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert outline.min() == min(line["low"])
    assert outline.max() == max(line["high"])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("recall", "precision")
    assert len(render_figure("curves", report, metric="roc").axes) == 1


@pytest.mark.parametrize("name", ["met", "nasty_conditions"])
def test_thresholds(name: str) -> None:
    report = THRESHOLDS[name]()
    half, line, best = render_figure("threshold", report).axes[0].lines
    assert set(half.get_ydata()) == {0.5}
    known = dict(zip(report["thresholds"], report["probability"], strict=True))
    drawn = dict(zip(line.get_xdata().tolist(), line.get_ydata().tolist(), strict=True))
    assert drawn == {cut: known[cut] or 0.0 for cut in drawn}
    assert report["best"] in drawn
    assert best.get_xdata().tolist() == [report["best"]]


def test_what_is_drawn_is_chosen_by_the_titles_of_the_page() -> None:
    report = _made("monitoring", "two")[0]
    assert [axes.get_title("left") for axes in render_figure("monitoring", report).axes] == [
        "a",
        "b",
    ]
    (axes,) = render_figure("curves", plain()[0], "roc").axes
    assert axes.get_xlabel() == "false-positive rate"
    (axes,) = render_figure("comparison", _made("comparison", "two")[0], "Differences").axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a − b"]


def test_cells_have_the_colour_and_the_number_of_the_page() -> None:
    matrices = fl.estimate(some(["a", "b"], ["no", "yes"]), "labeled").confusion().to_dict()
    first, second = render_figure("confusion", matrices).axes
    shares = [cell["of_label"] for cell in matrices["cells"] if cell["model"] == "a"]
    image = first.images[0].get_array()
    assert image[:2, :2, 3].ravel().tolist() == pytest.approx(shares)
    assert second.get_title("left") == "b"
    assert len(first.texts) == 9


def test_bars_are_shares_of_the_longest() -> None:
    report = _made("label-next", "curve")[0]
    axes = render_figure("label-next", report).axes[0]
    gains = report["gain"]
    assert [bar.get_width() for bar in axes.patches] == [gain / max(gains) for gain in gains]


def test_results_without_figures_say_so() -> None:
    with pytest.raises(UsageError, match="has nothing to draw"):
        render_figure("predictions", some(["a"], ["no", "yes"])._report_of_text())


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"matplotlib is not installed.*fewlabels\[plot\]"):
        render_figure("estimates", minimal())


def test_no_global_state_of_pyplot_is_touched() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from report_samples import minimal\n"
        "import matplotlib\n"
        "before = matplotlib.rcParams['font.size']\n"
        "from fewlabels.report import render_figure\n"
        "render_figure('estimates', minimal())\n"
        "sys.exit('matplotlib.pyplot' in sys.modules or before != matplotlib.rcParams['font.size'])"
    )
    command = [sys.executable, "-c", program, str(Path(__file__).parent)]
    assert subprocess.run(command).returncode == 0


@pytest.mark.slow
def test_names_of_any_script_are_drawn_by_a_font_of_the_system(tmp_path: Path) -> None:
    """No font of matplotlib's own has Chinese: one that has is found, else squares stand there."""
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen
    from matplotlib.font_manager import fontManager

    report, pen = minimal(), TTGlyphPen(None)
    report = json.loads(json.dumps(report).replace(json.dumps(report["models"][0]), '"模"'))
    before = render_figure("estimates", report)
    before.savefig(tmp_path / "before.png")  # where a warning would be an error
    for place in ((0, 0), (0, 700), (700, 700)):
        (pen.lineTo if place[1] else pen.moveTo)(place)
    pen.closePath()
    glyph, font = pen.glyph(), FontBuilder(1000, isTTF=True)
    font.setupGlyphOrder([".notdef", "mo"])
    font.setupCharacterMap({ord("模"): "mo"})
    font.setupGlyf({".notdef": glyph, "mo": glyph})
    font.setupHorizontalMetrics({".notdef": (800, 0), "mo": (800, 0)})
    font.setupHorizontalHeader(ascent=800, descent=-200)
    font.setupNameTable({"familyName": "Hanzi", "styleName": "Regular"})
    font.setupOS2()
    font.setupPost()
    font.save(tmp_path / "hanzi.ttf")
    installed = [*fontManager.ttflist]
    try:
        fontManager.addfont(tmp_path / "hanzi.ttf")
        figure = render_figure("estimates", report)
        figure.savefig(tmp_path / "after.png")
    finally:
        fontManager.ttflist[:] = installed
    names = [label for axes in figure.axes for label in axes.get_yticklabels()]
    assert "模" in {label.get_text() for label in names}
    assert all(label.get_fontfamily()[-1] == "Hanzi" for label in names)
    if not any("CJK" in font.name for font in installed):
        assert "模" not in title_of(before)
        assert "\N{WHITE SQUARE}" in title_of(before)
