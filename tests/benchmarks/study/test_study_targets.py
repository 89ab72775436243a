"""The promises on a table that was made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from study import promises, render, render_text
from study.protocol import FIGURES, METRICS, Study
from study.results import Place, Runs, StudyResults

RUNS = 100


def _facts(name: str, family: str) -> dict[str, Any]:
    return {
        "name": name, "family": family, "n_items": 20_000, "n_models": 3, "n_classes": 2,
        "prevalence": 0.1, "accuracy": [0.8, 0.9], "digest": "",
    }  # fmt: skip


def _runs(error: float, covered: float = 0.9, width: float = 0.1) -> Runs:
    """Runs around these means, the same noise in each method, so that ratios are exact."""
    noise = 1 + 0.3 * np.random.default_rng(0).standard_normal(RUNS)
    noise /= noise.mean()
    values = np.zeros((RUNS, len(FIGURES), len(METRICS)))
    values[:, FIGURES.index("error")] = (error * noise)[:, None]
    values[:, FIGURES.index("width_0.9")] = (width * noise)[:, None]
    held = (np.arange(RUNS) < round(covered * RUNS)).astype(float)
    values[:, FIGURES.index("coverage_0.9")] = held[:, None]
    return Runs(np.arange(RUNS), values, np.full(RUNS, 0.5), ())


def _results(table: dict[tuple[Place, str], Runs], sets: dict[str, str]) -> StudyResults:
    study = Study(tuple(sets), ("auto", "labeled", "ssme-kde"), (), (20,), (1000,), RUNS)
    facts = {name: _facts(name, family) for name, family in sets.items()}
    return StudyResults(study, facts, table, (), Path())


@pytest.fixture
def by_hand() -> StudyResults:
    """One real set where all is well, one made set where nothing is."""
    good, bad = Place("CivilComments", 20, 1000), Place("wine-9000", 20, 1000)
    table = {
        (good, "auto"): _runs(0.80, 0.90, 0.05),
        (good, "labeled"): _runs(2.0, 0.90, 0.10),
        (good, "ssme-kde"): _runs(1.0, 0.50, 0.01),
        (bad, "auto"): _runs(1.2, 0.60, 0.12),
        (bad, "labeled"): _runs(1.0, 0.90, 0.10),
        (bad, "ssme-kde"): _runs(2.0, 0.50, 0.01),
    }
    return _results(table, {"CivilComments": "", "wine-9000": "wine"})


def test_shares_of_cells(by_hand: StudyResults) -> None:
    found = promises(by_hand)
    assert found.lowest["real"].kept.value == 1
    assert found.lowest["made"].kept.value == 0
    assert found.lowest["all"].kept.value == 0.5
    assert found.lowest["all"].kept.n == 2 * len(METRICS)
    worst = found.lowest["all"].extreme
    assert worst is not None
    assert (worst.place.set, worst.other) == ("wine-9000", "labeled")
    assert worst.figure.value == pytest.approx(1.2)
    assert len(found.lowest["all"].broken) == len(METRICS)


def test_ratios_to_the_labels(by_hand: StudyResults) -> None:
    found = promises(by_hand)
    assert found.labeled["all"].kept.value == 0.5
    assert found.median_width["real"].value == pytest.approx(0.5)
    assert found.median_width["made"].value == pytest.approx(1.2)
    assert found.median_width["all"].value == pytest.approx(0.85)
    assert found.width["all"].kept.value == 0.5
    extreme = found.width["all"].extreme
    assert extreme is not None
    assert extreme.place.set == "wine-9000"


def test_coverage_is_a_share_of_cells_between_bounds(by_hand: StudyResults) -> None:
    found = promises(by_hand)
    assert found.coverage["all"].kept.value == 0.5
    assert found.floor["real"].kept.value == 1
    assert found.floor["made"].kept.value == 0
    least = found.floor["all"].extreme
    assert least is not None
    assert least.figure.value == pytest.approx(0.6)


def test_the_published_method(by_hand: StudyResults) -> None:
    found = {c.metric: (c.figure.value, most) for c, most in promises(by_hand).published}
    assert found["accuracy"] == (pytest.approx(0.8), 0.85)
    assert found["roc_auc"] == (pytest.approx(0.8), 1.0)
    assert set(found) == {"accuracy", "ece", "roc_auc", "average_precision"}


def test_within_five_percent_is_lowest() -> None:
    place = Place("Adult", 20, 1000)
    table = {(place, "auto"): _runs(1.04), (place, "labeled"): _runs(1.0)}
    assert promises(_results(table, {"Adult": ""})).lowest["all"].kept.value == 1
    table[place, "auto"] = _runs(1.06)
    share = promises(_results(table, {"Adult": ""})).lowest["all"]
    assert share.kept.value == 0
    assert len(share.broken) == len(METRICS)  # ratios are exact here: it is sure


def test_chance_breaks_no_promise_surely() -> None:
    place = Place("Adult", 20, 1000)
    table = {(place, "auto"): _runs(1.06), (place, "labeled"): _runs(1.0)}
    shuffled = np.random.default_rng(1).permutation(RUNS)
    auto = table[place, "auto"]
    table[place, "auto"] = Runs(auto.runs, auto.values[shuffled], auto.seconds, ())
    share = promises(_results(table, {"Adult": ""})).lowest["all"]
    assert share.kept.value == 0
    assert share.not_broken.value == 1
    assert not share.broken


def test_few_labels_are_not_compared_with_the_labels_alone() -> None:
    place = Place("Adult", 10, 1000)
    table = {(place, "auto"): _runs(2.0), (place, "labeled"): _runs(1.0)}
    found = promises(_results(table, {"Adult": ""}))
    assert found.labeled["all"].kept.n == 0
    assert found.width["all"].extreme is None
    assert found.lowest["all"].kept.n == len(METRICS)


def test_a_rival_that_seldom_answers_is_none() -> None:
    place = Place("Adult", 20, 1000)
    mute = _runs(0.1)
    mute.values[: RUNS * 3 // 4] = np.nan
    table = {(place, "auto"): _runs(1.0), (place, "labeled"): _runs(2.0), (place, "ssme-kde"): mute}
    assert promises(_results(table, {"Adult": ""})).lowest["all"].kept.value == 1


def test_the_page_says_what_was_run_and_what_breaks(by_hand: StudyResults) -> None:
    page = render(by_hand, ["## Peers", "none"])
    assert "Runs per cell: auto 100; labeled 100; ssme-kde 100." in page
    assert "| 20 | accuracy | 0.85 | 0.800 ± 0.0" in page
    assert "1.20 ± 0.00 to labeled (wine-9000, accuracy, n_l 20): " in page
    assert "nan" not in page
    assert "Without an answer" not in page
    assert page.endswith("## Peers\nnone\n")
    assert "90% intervals hold 87% to 94%" in render_text(by_hand)


def test_the_page_says_why_there_is_no_answer() -> None:
    place = Place("Adult", 20, 1000)
    good = _runs(1.0)
    bad = Runs(good.runs, good.values, good.seconds, ("TypeError: a | b",))
    page = render(_results({(place, "auto"): good, (place, "labeled"): bad}, {"Adult": ""}))
    assert "| labeled | 1 | TypeError: a   b |" in page


def test_a_small_set_has_its_width_and_its_tables() -> None:
    """Half of its items is where it is compared."""
    names = {"Adult": "", "wine-9000": "wine"}
    table = {
        (Place(name, 20, 600), method): _runs(1.0, width=width)
        for name in names
        for method, width in (("auto", 0.05), ("labeled", 0.10))
    }
    results = _results(table, names)
    for facts in results.sets.values():
        facts["n_items"] = 1200  # type: ignore[index]
    found = promises(results)
    assert found.median_width["all"].value == pytest.approx(0.5)
    assert found.median_width["all"].n == 2 * len(METRICS)
    page = render(results)
    assert "| accuracy | 20 | 100.0 ± " in page
    assert "at 600 unlabeled items" in page
    assert "| wine | all | 1.00" in page
    assert "| made | auto |" in page
    assert "## Numbers of unlabeled items" not in page


def test_the_page_says_sizes_that_are_not_the_protocols(by_hand: StudyResults) -> None:
    first = render(by_hand).split("\n\n")[1]
    assert "`python benchmarks/study.py --data DIR --n-labeled 20 --n-unlabeled 1000`" in first
    assert "(n_l) are 20 here; the protocol has 0, 5, 10, 20, 50, 100." in first
    assert "(n_u) are 1,000 here; the protocol has 200, 1,000, 10,000." in first
    whole = StudyResults(Study(("wine-9000",)), {}, {}, (), Path())
    assert "here; the protocol has" not in render(whole).split("\n\n")[1]
    assert "`python benchmarks/study.py --data DIR`" in render(whole)
