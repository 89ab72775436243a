"""All results alike: the same methods, of the same kind, with the same meaning."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fewlabels as fl
from fewlabels.calibration.recalibration import Settings, fit
from fewlabels.report.shown import Result

QUICK = {"method": "ensemble"}
A = "<b>a</b>"
METHODS = ("summary", "to_frame", "to_dict", "report", "save_html", "plot", "_repr_html_")


def predictions(**more: Any) -> fl.Predictions:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=80)
    p = 1 / (1 + np.exp(-(2 * truth - 1)[:, None] - rng.normal(size=(80, 2))))
    return fl.Predictions(p, np.where(np.arange(80) < 40, truth, -1), models=[A, "b"], **more)


COUNTS = np.random.default_rng(1).multinomial(3, [0.4, 0.6], 80)
# Each result: how it is made, and how many rows its table has.
RESULTS: dict[str, tuple[Callable[[], Result], Callable[[Any], int]]] = {
    "estimate": (lambda: fl.estimate(predictions(), **QUICK), lambda r: len(r.rows)),
    "curve": (lambda: fl.curve(predictions(), A, **QUICK), lambda r: 100),
    "curves": (lambda: fl.curves(predictions(), A, **QUICK), lambda r: 200),
    "threshold": (
        lambda: fl.threshold(predictions(), A, min_recall=0.5, **QUICK),
        lambda r: len(r.thresholds),
    ),
    "label_next": (lambda: fl.label_next(predictions(), A, 3, **QUICK), lambda r: 3),
    "compare": (lambda: fl.compare(predictions(), **QUICK), lambda r: 2),
    "shift": (lambda: fl.shift(predictions()), lambda r: 2),
    "calibration_curve": (
        lambda: fl.calibration_curve(predictions(), **QUICK), lambda r: len(r.bins),
    ),
    "score": (lambda: fl.score(predictions()), lambda r: len(r.rows)),
    "confusion": (lambda: fl.estimate(predictions(), **QUICK).confusion(), lambda r: 8),
    "disagreements": (
        lambda: fl.score(predictions()).disagreements(), lambda r: len(r.columns["row"]),
    ),
    "monitor": (
        lambda: fl.monitor(
            predictions(groups={"year": np.arange(80) // 20}), "year", metrics="accuracy"
        ),
        lambda r: 8,
    ),
    "rank": (
        lambda: fl.rank(pd.DataFrame({
            "model_a": [A, "b"] * 20, "model_b": ["b", A] * 20,
            "gpt": ["A", "tie", "B", "A", "A"] * 8, "human": ["A", "A", "B", None] * 10,
        }), size=2),
        lambda r: 6,
    ),
    "backtest": (
        lambda: fl.backtest(predictions(), 10, 1, metrics="accuracy"), lambda r: len(r.rows),
    ),
    "assess": (
        lambda: fl.annotations.assess(predictions(histogram=COUNTS), confidence_level=None),
        lambda r: len(r.rows),
    ),
    "agreement": (
        lambda: fl.annotations.agreement(COUNTS, confidence_level=None), lambda r: len(r.rows),
    ),
    "calibrate": (lambda: fit(predictions(), Settings("temperature")), lambda r: 14),
    "diagnose": (
        lambda: fl.diagnose(pd.DataFrame({"label": ["x", "y"] * 9, "p__a__x": [0.1, 0.9] * 9})),
        lambda r: len(r.findings),
    ),
}  # fmt: skip
results = pytest.mark.parametrize("name", RESULTS)


@cache
def made(name: str) -> Result:
    return RESULTS[name][0]()


def test_every_kind_of_result_is_here() -> None:
    def kinds(kind: type) -> set[type]:
        return {kind}.union(*map(kinds, kind.__subclasses__()))

    concrete = {kind for kind in kinds(Result) if not inspect.isabstract(kind)}
    assert concrete - {type(made(name)) for name in RESULTS} == set()


@results
def test_results_have_the_same_methods(name: str, tmp_path: Path) -> None:
    result = made(name)
    for method in METHODS:
        assert inspect.ismethod(getattr(result, method)), method
    for width in (80, 120):
        assert max(map(len, result.summary(width).splitlines())) <= width
    assert str(result) == result.summary()
    for plain in (result.to_dict(), result.report()):
        assert isinstance(plain, dict)
        json.dumps(plain, allow_nan=False)
    assert result.report()["fewlabels"] == fl.__version__
    assert result.to_dict() == result.to_dict()
    path = tmp_path / "a.html"
    result.save_html(path)
    assert path.read_text("utf-8").rstrip().endswith("</html>")
    fragment = result._repr_html_()
    assert fragment
    assert "<html" not in fragment
    with pytest.raises(fl.InputError, match="cannot write"):
        result.save_html(tmp_path / "no" / "a.html")


@results
def test_results_are_tables_of_every_kind(name: str) -> None:
    result, rows = made(name), RESULTS[name][1](made(name))
    pandas, arrow = result.to_frame("pandas"), result.to_frame("pyarrow")
    assert isinstance(pandas, pd.DataFrame)
    assert isinstance(arrow, pa.Table)
    assert len(pandas) == len(arrow) == rows
    assert list(pandas.columns) == arrow.column_names
    assert type(result.to_frame()) is pd.DataFrame
    with pytest.raises(fl.UsageError, match="unknown backend 'excel'"):
        result.to_frame("excel")


@results
def test_results_plot_what_there_is_to_draw(name: str) -> None:
    if name in ("disagreements", "diagnose"):
        with pytest.raises(fl.UsageError, match=r"has nothing to draw; see `to_frame\(\)`"):
            made(name).plot()
    else:
        assert made(name).plot().axes


class Tags(HTMLParser):
    """Names of all tags, and what their attributes ask for."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.addresses: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href")]


@results
def test_repr_is_a_dozen_lines(name: str) -> None:
    text = repr(made(name))
    lines = text.split("\n")
    assert lines[0].startswith(f"{type(made(name)).__name__}: ")
    assert 1 < len(lines) <= 12
    assert max(map(len, lines)) <= 100
    assert "array(" not in text


@pytest.mark.few(6)
@results
def test_a_fragment_is_whole_and_keeps_to_itself(name: str) -> None:
    page = made(name)._repr_html_()
    tags = Tags(page)
    assert page.startswith('<div class="fewlabels">')
    assert page.endswith("</div>")
    assert not {"script", "link", "img", "iframe", "html", "body", "head", "b>"} & set(tags.names)
    assert tags.addresses == []
    assert "<b>a" not in page
    style = page[page.index("<style>") + 7 : page.index("</style>")]
    assert "rem" not in re.sub(r"@media[^{]*", "", style).replace("remove", "")
    # All rules nest in those of the element.
    opened = re.sub(r"^div(\.fewlabels)+ \{", "", style.strip())
    depth = [opened[: k + 1].count("{") - opened[: k + 1].count("}") for k in range(len(opened))]
    assert min(depth[:-1]) == 0 > depth[-1]
