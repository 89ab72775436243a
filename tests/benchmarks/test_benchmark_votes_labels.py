"""The benchmark of votes with labels: who is judged, the ways, further runs, and the tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fewlabels as fl
import votes_labels as recipe

NAME = "CIFAR-10, six networks"  # a name of a set, for its place in the table


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
        for way, ask in recipe.RIVALS.items():
            found = ask(given, run)
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
    found = recipe.RIVALS["ppi by shares of votes"](given, 0)
    assert found.value == pytest.approx(0.75)
    assert (found.low < 0.75).all()
    few = given.with_labels(np.where(np.arange(60) < 1, 1, -1))
    assert np.isnan(recipe.RIVALS["ppi by shares of votes"](few, 0).value).all()


def test_further_runs_are_added_and_the_same_as_all_at_once() -> None:
    votes = made(300, (0.9, 0.8, 0.7), share=0.6)
    ways = ("auto", "labels only")
    once = recipe.with_runs([], NAME, votes, 20, 3, ways)
    some = recipe.with_runs([], NAME, votes, 20, 1, ways)
    later = recipe.with_runs(some, NAME, votes, 20, 3, ways)
    assert later == once
    assert recipe.with_runs(once, NAME, votes, 20, 2, ways) == once
    for row in once:
        figures = np.array(row["runs"])
        assert figures.shape == (3, len(recipe.FIGURES))
        assert (figures[:, 0] >= 0).all()
        assert ((figures[:, 1] >= 0) & (figures[:, 1] <= 1)).all()
        assert (np.array(row["judges"])[:, 0] == 3).all()
    more = recipe.with_runs(once, NAME, votes, 20, 1, ("dawid-skene",))
    assert [row["way"] for row in more] == [*ways, "dawid-skene"]


def test_the_table_compares_with_the_best_rival_and_the_page_keeps_the_rest() -> None:
    def row(way: str, error: float, held: float) -> recipe.Row:
        runs = [[error, held, 0.2, 1 - held], [error, held, 0.2, 1 - held]]
        return {"set": NAME, "n_labeled": 20, "way": way, "runs": runs, "judges": [[2, 1], [2, 2]]}

    rows = [row("auto", 0.02, 0.75), row("labels only", 0.05, 0.9)]
    rows.append(row("ppi by Dawid-Skene", 0.04, 0.8))
    page = recipe.with_table(f"before\n{recipe.MARKS[0]}\nstale\n{recipe.MARKS[1]}\nafter\n", rows)
    lines = page.splitlines()
    assert "| 20 | 1 | 0.50 | 1 of 1 | 75% | 0 of 1 | 75% | 25% |" in lines
    assert (
        f"| {NAME} | 20 | 0.50 ± 0.00 | 50% | 25% | 2.0, 75%, 20 | 5.0, 90%, 20 | 4.0, 80%, 20 |"
        in lines
    )
    assert page.startswith("before\n")
    assert page.endswith("\nafter\n")
    assert "stale" not in page
    assert recipe.with_table(page, rows) == page


def test_the_tables_of_the_page_are_those_of_the_results() -> None:
    page = recipe.PAGE.read_text(encoding="utf-8")
    assert recipe.with_table(page, recipe.kept_rows(recipe.RESULTS)) == page


@pytest.mark.slow
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
