"""The benchmark of judges: who is judged, the ways, and that it runs and fills its page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fewlabels as fl
import judges as recipe

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks" / "judges.md"
NAME = "LLM judges: PandaLM"  # a set, for the stream of its draws
MARKS = {"summary", "sets", "judges", "orders", "score", "widths"}


def made(n: int, accuracy: tuple[float, ...], seed: int = 0, share: float = 1.0) -> fl.Predictions:
    """Two classes; each classifier votes on a share of the items."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=n)
    right = rng.random((n, len(accuracy))) < accuracy
    votes = np.where(right, labels[:, None], 1 - labels[:, None])
    votes[rng.random(votes.shape) > share] = -1
    return fl.Predictions(votes=votes, labels=labels)


def test_only_those_count_who_vote_often_or_the_busiest() -> None:
    rng = np.random.default_rng(0)
    often = (40, 60, 50, 10)
    votes = np.full((60, 4), -1)
    for j, n in enumerate(often):
        votes[:n, j] = rng.integers(2, size=n)
    some = fl.Predictions(votes=votes, labels=rng.integers(2, size=60), models=list("abcd"))
    assert recipe.judged_of(some) == tuple("abcd")  # four are fewer than ten
    names = [f"{m}{i}" for i in range(4) for m in "abcd"]
    many = fl.Predictions(votes=np.tile(votes, 4), labels=some.labels, models=names)
    # Eight have 50 votes; the ten busiest end among those with 40.
    assert set(recipe.judged_of(many)) == {f"{m}{i}" for i in range(4) for m in "abc"}


def test_half_of_a_set_stays_unlabeled() -> None:
    assert recipe.sizes_of(made(120, (0.8, 0.8, 0.8))) == (20, 50)
    votes = made(120, (0.8, 0.8, 0.8))
    given = recipe.drawn(votes, NAME, 20, 0)
    assert (given.n_items, given.n_labeled) == (120, 20)
    again, other = (recipe.drawn(votes, NAME, 20, run) for run in (0, 1))
    assert np.array_equal(given.labels, again.labels)
    assert not np.array_equal(given.labels, other.labels)


def test_rectified_estimates_use_what_is_not_labeled_and_stay_unbiased() -> None:
    votes = made(4_000, (0.9, 0.8, 0.85, 0.8, 0.75))
    truth = recipe.truth_of(votes)
    errors: dict[str, list[float]] = {}
    for run in range(12):
        given = recipe.drawn(votes, NAME, 100, run)
        for way in ("labels only", "ppi by shares of votes", "ppi by Dawid-Skene"):
            found = recipe.WAYS[way](given, run)
            assert (found.low <= found.high).all()
            errors.setdefault(way, []).append(float((found.value - truth)[1:].mean()))
    spread = {way: np.std(e) for way, e in errors.items()}
    for way, e in errors.items():
        assert abs(np.mean(e)) < 3 * spread[way] / np.sqrt(len(e)) + 0.002, way
    assert spread["ppi by Dawid-Skene"] < spread["labels only"]


def test_proxies_have_not_seen_a_label() -> None:
    given = recipe.drawn(made(500, (0.9, 0.8, 0.85)), NAME, 50, 0)
    other = given.with_labels(np.where(given.labeled, 1 - given.labels, -1))
    for proxy in (recipe._shares, recipe._by_votes):
        assert np.array_equal(proxy(given, 0), proxy(other, 0))


def test_a_proxy_that_tells_nothing_leaves_the_labels_alone() -> None:
    votes = np.zeros((60, 2), dtype=int)
    labels = np.where(np.arange(60) < 20, np.arange(60) % 4 == 0, -1).astype(int)
    given = fl.Predictions(votes=votes, labels=labels, classes=(0, 1))
    found = recipe.WAYS["ppi by shares of votes"](given, 0)
    assert found.value == pytest.approx(0.75)
    assert (found.low < 0.75).all()
    few = given.with_labels(np.where(np.arange(60) < 1, 1, -1))
    assert np.isnan(recipe.WAYS["ppi by shares of votes"](few, 0).value).all()


def test_real_sets_have_all_labels_and_room_for_some(data_folder: Path) -> None:
    read = 0
    for name, source in recipe.SETS.items():
        if not (data_folder / source.file).is_file():
            continue
        votes = source.read(data_folder)
        read += 1
        assert votes.n_labeled == votes.n_items, name
        assert votes.probabilities is None, name
        assert 20 in recipe.sizes_of(votes), name
        assert recipe.judged_of(votes), name
    assert read


def test_the_page_has_a_place_for_every_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert set(re.findall("<!-- end (.*) -->", page)) == MARKS


@pytest.mark.slow
def test_a_quick_run(tmp_path: Path, data_folder: Path) -> None:
    script = ROOT / "benchmarks" / "judges.py"
    command = [sys.executable, "-W", "error", str(script), "all", "--quick", "--workers", "1"]
    command += ["--work", str(tmp_path), "--data", str(data_folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    page = (tmp_path / "quick" / PAGE.name).read_text(encoding="utf-8")
    for mark in MARKS:
        (block,) = re.findall(f"<!-- {mark} -->\n(.*?)<!-- end {mark} -->", page, re.DOTALL)
        assert "--quick`" in block
        assert "\n| --- |" in block, mark
