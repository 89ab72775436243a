"""The promises, and the page, on a table that was made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from study import page
from study.page import judged, ratios, shares
from study.sets import METRICS
from study.trial import FIGURES

RUNS = 100


def _runs(
    name: str, method: str, error: float, covered: float = 0.9, width: float = 0.1, *,
    n_labeled: int = 20, n_unlabeled: int = 1000, message: str = "", order: Any = slice(None),
) -> pd.DataFrame:  # fmt: skip
    """Runs around these means, the same noise in each method, so that ratios are exact."""
    noise = 1 + 0.3 * np.random.default_rng(0).standard_normal(RUNS)
    noise = (noise / noise.mean())[order]
    one = pd.DataFrame(0.0, index=range(RUNS), columns=list(FIGURES)).assign(
        **{"error": error * noise, "width_0.9": width * noise},
        **{"coverage_0.9": (np.arange(RUNS) < round(covered * RUNS)).astype(float)},
        run=range(RUNS), seconds=0.5, message=message, set=name, method=method,
        n_labeled=n_labeled, n_unlabeled=n_unlabeled, family="wine" * name.startswith("wine"),
    )  # fmt: skip
    return one.merge(pd.DataFrame({"metric": METRICS}), how="cross")


def _facts(*names: str) -> dict[str, Any]:
    return {
        name: {
            "family": "wine" * name.startswith("wine"), "n_items": 20_000, "n_models": 3,
            "n_classes": 2, "prevalence": 0.1, "accuracy": [0.8, 0.9],
        }
        for name in names
    }  # fmt: skip


@pytest.fixture
def by_hand() -> pd.DataFrame:
    """One real set where all is well, one made set where nothing is."""
    good, bad = "CivilComments", "wine-9000"
    return pd.concat(
        [
            _runs(good, "auto", 0.80, 0.90, 0.05), _runs(good, "labeled", 2.0, 0.90, 0.10),
            _runs(good, "ssme-kde", 1.0, 0.50, 0.01), _runs(bad, "auto", 1.2, 0.60, 0.12),
            _runs(bad, "labeled", 1.0, 0.90, 0.10), _runs(bad, "ssme-kde", 2.0, 0.50, 0.01),
        ],
        ignore_index=True,
    )  # fmt: skip


def _share(rows: pd.DataFrame, promise: str, part: str = "all") -> Any:
    (one,) = [s for s in shares(judged(rows)) if (s.promise, s.part) == (promise, part)]
    return one


@pytest.mark.slow
def test_shares_of_cells(by_hand: pd.DataFrame) -> None:
    assert [_share(by_hand, "lowest", part).kept.value for part in ("real", "made", "all")] == [
        1, 0, 0.5,
    ]  # fmt: skip
    lowest = _share(by_hand, "lowest")
    assert lowest.kept.n == 2 * len(METRICS)
    assert (lowest.worst["set"], lowest.worst.other) == ("wine-9000", "labeled")
    assert lowest.worst.value == pytest.approx(1.2)
    found = judged(by_hand)
    assert found[found.promise == "lowest"].sure.sum() == len(METRICS)


@pytest.mark.slow
def test_ratios_to_the_labels_and_coverage(by_hand: pd.DataFrame) -> None:
    assert _share(by_hand, "labeled").kept.value == 0.5
    assert _share(by_hand, "width").kept.value == 0.5
    assert _share(by_hand, "width").worst["set"] == "wine-9000"
    assert ratios(by_hand, "labeled", "width_0.9").value.median() == pytest.approx(0.85)
    assert _share(by_hand, "coverage").kept.value == 0.5
    assert _share(by_hand, "floor", "real").kept.value == 1
    assert _share(by_hand, "floor", "made").kept.value == 0
    assert _share(by_hand, "floor").worst.value == pytest.approx(0.6)


def test_the_published_method(by_hand: pd.DataFrame) -> None:
    found = {cell.metric: (cell.value, most) for cell, most in page.published(by_hand)}
    assert found["accuracy"] == (pytest.approx(0.8), 0.85)
    assert found["roc_auc"] == (pytest.approx(0.8), 1.0)
    assert set(found) == {"accuracy", "ece", "roc_auc", "average_precision"}


@pytest.mark.parametrize(("error", "kept"), [(1.04, 1), (1.06, 0)])
def test_within_five_percent_is_lowest(error: float, kept: int) -> None:
    rows = pd.concat([_runs("Adult", "auto", error), _runs("Adult", "labeled", 1.0)])
    assert _share(rows, "lowest").kept.value == kept
    assert _share(rows, "lowest").not_broken.value == kept  # ratios are exact here: it is sure


def test_chance_breaks_no_promise_surely() -> None:
    order = np.random.default_rng(1).permutation(RUNS)
    rows = pd.concat([_runs("Adult", "auto", 1.06, order=order), _runs("Adult", "labeled", 1.0)])
    assert _share(rows, "lowest").kept.value == 0
    assert _share(rows, "lowest").not_broken.value == 1


def test_few_labels_are_not_compared_with_the_labels_alone() -> None:
    rows = pd.concat([_runs("Adult", m, e, n_labeled=10) for m, e in (("auto", 2), ("labeled", 1))])
    assert set(judged(rows).promise) == {"lowest", "coverage", "floor"}


def test_a_rival_that_seldom_answers_is_none() -> None:
    mute = _runs("Adult", "ssme-kde", 0.1)
    mute.loc[mute.run < RUNS * 3 // 4, list(FIGURES)] = np.nan
    rows = pd.concat([_runs("Adult", "auto", 1.0), _runs("Adult", "labeled", 2.0), mute])
    assert _share(rows, "lowest").kept.value == 1


@pytest.mark.slow
def test_the_page_says_what_was_run_and_what_breaks(by_hand: pd.DataFrame) -> None:
    text = page.render(by_hand, _facts("CivilComments", "wine-9000"), 0, ["## Peers", "none"])
    assert "Runs per cell: auto 100; labeled 100; ssme-kde 100." in text
    assert "| 20 | accuracy | 0.85 | 0.800 ± 0.0" in text
    assert "1.20 ± 0.00 to labeled (wine-9000, accuracy, n_l 20): " in text
    assert "nan" not in text
    assert "Without an answer" not in text
    assert text.endswith("## Peers\n\nnone\n")
    assert "90% intervals hold 87% to 94%" in page.render_text(by_hand)


def test_the_page_says_why_there_is_no_answer_and_how_small_sets_are() -> None:
    rows = pd.concat(
        [
            _runs(name, method, 1.0, width=width, n_unlabeled=600, message=message)
            for name in ("Adult", "wine-9000")
            for method, width, message in (("auto", 0.05, ""), ("labeled", 0.1, "TypeError: a | b"))
        ],
        ignore_index=True,
    )
    text = page.render(rows, _facts("Adult", "wine-9000"), 0, [])
    assert "| labeled | 2 | TypeError: a   b |" in text
    assert "| accuracy | 20 | 100.0 ± " in text
    assert "at 600 unlabeled items" in text
    assert "| wine | all | 1.00" in text
    assert "| made | auto |" in text
    assert "accuracy, n_l 20, n_u 600)" in text
