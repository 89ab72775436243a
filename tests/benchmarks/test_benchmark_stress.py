"""The worlds that are to break estimators, and what is recorded of estimates in them."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]

import stress  # noqa: E402
from stress_worlds import WORLDS  # noqa: E402

PAGE = ROOT / "docs" / "when-it-fails.md"


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_is_drawn_anew_by_the_seed_and_read_by_the_package(name):
    samples = [WORLDS[name](300, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    first, again, other = (sample.predictions(50) for sample in samples)
    assert (first.n_items, first.n_labeled) == (300, 50)
    assert first.models == samples[0].models
    np.testing.assert_array_equal(first.labels, again.labels)
    assert (samples[0].truth != samples[2].truth).any()
    assert other.classes == tuple(range(samples[0].n_classes))


@pytest.mark.parametrize(
    ("world", "row", "truth"),
    [
        ("one-strong", ("new", "accuracy", None), 0.967),
        ("one-constant", ("constant", "roc_auc", None), 0.5),
        ("votes-one-good", ("good", "accuracy", None), 0.95),
        ("ten-classes", ("small", "accuracy", None), 0.83),
        ("few-predictions", ("expensive", "accuracy", None), 0.91),
        ("failing-group", ("best", "roc_auc", "clinic=new"), 0.5),
    ],
)
def test_classifiers_are_as_good_as_the_world_says(world, row, truth):
    sample = WORLDS[world](50_000, np.random.default_rng(0))
    assert stress.truths(sample)[row] == pytest.approx(truth, abs=0.02)


def test_what_is_undefined_is_counted_and_not_compared():
    auto = np.array([[0.5, 0.4, 0.6], [0.8, 0.7, 0.9], [0.9, 0.8, 1.0], [0.6, 0.5, 0.7]])
    labeled = np.array([[0.4, 0.1, 0.7], [np.nan] * 3, [0.8, 0.6, 1.0], [0.5, 0.2, 0.8]])
    found = np.stack([auto, labeled])
    own = stress.summary(found, 0, 0.5, ["ok", "ok", "few-labels", "ok"])
    only = stress.summary(found, 1, 0.5, ["ok", "undefined", "ok", "ok"])
    assert own["error"] == pytest.approx(0.2)
    assert own["shared_error"] == pytest.approx(0.5 / 3)
    assert (own["coverage"], own["wrong_and_ok"], own["undefined"]) == (0.5, 0.25, 0)
    assert (only["coverage"], only["wrong_and_ok"], only["undefined"]) == (
        pytest.approx(2 / 3), 0.25, 1,
    )  # fmt: skip
    assert only["status"] == {"ok": 3, "undefined": 1}


@pytest.mark.slow
def test_the_page_has_all_worlds_and_results_are_of_them():
    page = PAGE.read_text(encoding="utf-8")
    cells = stress.read(ROOT / "benchmarks" / "stress_before.jsonl")
    for name in WORLDS:
        assert f"- **{name}**: {WORLDS[name].__doc__}" in page
        assert all(f"\n| {name} | {n} | " in page for n in stress.LABELS)
        assert all((name, n) in cells for n in stress.LABELS)
    for name in ("alone", "cascade"):
        seed = [stress.SEED, stress.crc32(name.encode())]
        truth = stress.truths(WORLDS[name](stress.TRUTH_ITEMS, np.random.default_rng(seed)))
        for row in cells[name, 20]["rows"]:
            own = truth[row["model"], row["metric"], row["group"]]
            assert own == pytest.approx(row["truth"], abs=1e-5)


def test_a_run_goes_on_where_one_stopped(tmp_path, monkeypatch):
    page, file = tmp_path / PAGE.name, tmp_path / "stress_after.jsonl"
    monkeypatch.setattr(stress, "TRUTH_ITEMS", 5_000)
    shutil.copyfile(PAGE, page)

    def run(*options: str) -> list[str]:
        where = ["--results", str(tmp_path), "--page", str(page), "--workers", "1"]
        monkeypatch.setattr(sys, "argv", ["stress.py", *where, *options])
        stress.main()
        return file.read_text(encoding="utf-8").splitlines()

    first = run("--worlds", "alone", "--labels", "20", "--runs", "1")
    both = run("--worlds", "alone", "judge-beside-scores", "--labels", "20", "--runs", "1")
    assert both[:1] == first
    assert [json.loads(line)["world"] for line in both] == ["alone", "judge-beside-scores"]
    assert "\n| judge-beside-scores | 20 | - | " in page.read_text(encoding="utf-8")
    fresh = run("--worlds", "alone", "--labels", "20", "--runs", "2", "--fresh")
    assert [json.loads(line)["runs"] for line in fresh] == [1, 2]
