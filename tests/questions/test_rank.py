"""Contestants ranked by judges and people: leagues whose truth is known, files of all shapes."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fewlabels as fl
from fewlabels.data.comparisons import read_comparisons

WORDS = np.array(["model_a", "model_b", "tie"])
Run = Callable[..., tuple[int, str, str]]


def davidson(rng: np.random.Generator, a: Any, b: Any, tie: float, order: float) -> Any:
    p = np.exp(np.stack([a + order / 2, b - order / 2, (a + b) / 2 + tie], axis=1))
    return (rng.random((len(a), 1)) > np.cumsum(p / p.sum(axis=1, keepdims=True), axis=1)).sum(1)


def league(
    seed: int, n: int = 600, labeled: int = 60, size: int = 5, right: float = 0.75,
    order: float = 0.0, length: float = 0.0,
) -> tuple[pa.Table, dict[str, float]]:  # fmt: skip
    """Comparisons, a judge's verdict on each and people's on some; the true win rates.

    A judge who does not say what people would goes by the order and the length.
    """
    rng = np.random.default_rng(seed)
    s = np.linspace(0.8, -0.8, size)
    a = rng.integers(size, size=n)
    b = (a + rng.integers(1, size, size=n)) % size
    truth = davidson(rng, s[a], s[b], -0.5, 0.0)
    long = length * np.where(np.arange(size) == size - 2, 1.0, 0.0)
    biased = davidson(rng, long[a], long[b], -1.0, order)
    said = np.where(rng.random(n) < right, truth, biased)
    p = np.exp(np.stack([s[:, None] + 0 * s, s + 0 * s[:, None], (s[:, None] + s) / 2 - 0.5]))
    wins = (p[0] + p[2] / 2) / p.sum(axis=0)
    rates = (wins.sum(axis=1) - 0.5) / (size - 1)
    return pa.table({
        "model_a": [f"m{i}" for i in a],
        "model_b": [f"m{i}" for i in b],
        "judge": WORDS[said].tolist(),
        "human": [WORDS[y] if i < labeled else None for i, y in enumerate(truth)],
    }), {f"m{c}": float(rates[c]) for c in range(size)}  # fmt: skip


def wide(**changes: Any) -> dict[str, Any]:
    """Comparisons of three, all judged by people."""
    table: dict[str, Any] = {
        "model_a": ["x", "y", "x", "z", "y", "z"] * 8,
        "model_b": ["y", "x", "z", "x", "z", "y"] * 8,
        "winner": ["model_a", "model_b", "tie", "model_b", "model_a", "model_a", "model_b"] * 6
        + ["model_a"] * 6,
    }
    return table | changes


def test_win_rates_of_people_alone_are_counted() -> None:
    table = wide()
    rows = [*zip(*(table[c] for c in ("model_a", "model_b", "winner")), strict=True)]

    def share(one: str, other: str) -> float:
        met = [(a, w) for a, b, w in rows if {a, b} == {one, other}]
        won = [0.5 if w == "tie" else float((w == "model_a") == (a == one)) for a, w in met]
        return sum(won) / len(won)

    ranking = fl.rank(pa.table(table))
    for one in "xyz":
        expected = np.mean([share(one, other) for other in "xyz" if other != one])
        assert ranking.estimates.get(one, "win_rate").value == pytest.approx(expected, abs=1e-12)
    assert ranking.judges == ()
    assert not ranking.next
    elo, log = (ranking.estimates.get("x", m).value for m in ("elo", "bradley_terry"))
    assert elo == pytest.approx(1000 + 400 / np.log(10) * log)


def test_winners_and_losers_are_contestants_whose_order_nobody_saw() -> None:
    """Names that are words elsewhere; the order of the rows does not matter, nor a second judge."""
    rng = np.random.default_rng(3)
    names = np.array(["a", "tie", "2"])
    two = np.array([rng.choice(3, 2, replace=False) for _ in range(500)])
    won = rng.random(500) < 1 / (1 + np.exp(0.8 * (two[:, 0] - two[:, 1])))
    first, second = np.where(won, two.T, two.T[::-1])
    columns = {"winner": names[first], "loser": names[second]}
    found = fl.rank(pa.table(columns))
    for k, name in enumerate(names):
        share = (first == k).sum() / (two == k).sum()
        assert found.estimates.get(name, "win_rate").value == pytest.approx(share, abs=0.08)
    order = rng.permutation(500)
    again = fl.rank(pa.table({column: values[order] for column, values in columns.items()}))
    for row in found.rows:
        other = again.estimates.get(row.model, row.metric)
        assert other.value == pytest.approx(row.value, abs=0.02 * (row.high - row.low))
    assert any("who was seen first is not known" in line for line in str(found).splitlines())
    held = read_comparisons(
        pa.table({column: [*values, *values] for column, values in columns.items()}
                 | {"question": [*range(500)] * 2, "judge": ["x"] * 500 + ["y"] * 500})
    )  # fmt: skip
    assert not held.verdicts.swapped.any()
    assert len(held.items.labels) == 500


@pytest.mark.parametrize("options", [
    {}, {"winner": "winner_model_a,winner_model_b,winner_tie"},
])  # fmt: skip
def test_winners_may_be_one_hot(options: dict[str, str]) -> None:
    table = wide()
    said = table.pop("winner")
    hot = {f"winner_{word}": [int(w == word) for w in said] for word in WORDS}
    read = read_comparisons(pa.table(table | hot), **options)
    assert not read.judges
    np.testing.assert_array_equal(
        read.items.labels, read_comparisons(pa.table(wide())).items.labels
    )


@pytest.mark.parametrize("label", [{}, {"label": "winner"}])
def test_labels_of_people_may_be_in_a_file_of_their_own(label: dict[str, str]) -> None:
    table, _ = league(1, n=120, labeled=30)
    names = [f"c{i}" for i in range(120)]
    here = table.append_column("id", [names])
    column = label.get("label", "label")
    apart = pa.table({"id": names[:30], column: table["human"].to_pylist()[:30]})
    read = read_comparisons(here.drop_columns("human"), labels=apart)
    expected = read_comparisons(here)
    np.testing.assert_array_equal(read.items.labels, expected.items.labels)
    assert read.judges == expected.judges == ("judge",)


@pytest.mark.parametrize("verdict", [
    {"winner": ["A", "B", "C"]}, {"winner": ["[[A]]", "[[B]]", "tie (bothbad)"]},
    {"verdict": ["1", "2", "0"]}, {"preference": ["A>>B", "B>A", "A=B"]},
    {"winner": ["{a}", "{b}", "both"]}, {"y__expert": [1, 2, 0]}, {"winner": [1, -1, 0]},
    {"winner": ["1", "0", "0.5"]}, {"winner": ["W", "L", "D"]}, {"result": ["won", "lost", "tie"]},
    {"winner": [">", "<", "="]}, {"winner": ["Model A is better", "Response 2", "tie"]},
])  # fmt: skip
def test_verdicts_are_told_by_their_words(verdict: dict[str, list[Any]]) -> None:
    (name, words), table = next(iter(verdict.items())), wide()
    place = {"model_a": 0, "model_b": 1, "tie": 2}
    said = [words[place[w]] for w in table.pop("winner")]
    if isinstance(said[0], str):
        pairs = zip(said, table["model_a"], table["model_b"], strict=True)
        said = [text.format(a=a, b=b) for text, a, b in pairs]
    read = read_comparisons(pa.table(table | {name: said}))
    assert not read.judges
    np.testing.assert_array_equal(
        read.items.labels, read_comparisons(pa.table(wide())).items.labels
    )


def test_of_zero_and_one_the_one_is_the_first() -> None:
    first = [str(int(w == "model_a")) for w in wide()["winner"]]
    read = read_comparisons(pa.table(wide(winner=first)))
    np.testing.assert_array_equal(read.items.labels == 0, np.array(first) == "1")


@pytest.mark.parametrize(("said", "line"), [
    ([1, 0], "'winner': 1 = model_a, 0 = model_b"),
    ([True, False], "'winner': true = model_a, false = model_b"),
    ([2, 1, -1], "'winner': 2 = model_b, 1 = model_a, -1 = no verdict (16 rows)"),
    ([None, -1, 1], "'winner': -1 = model_b, 1 = model_a"),
    (["x", "z", "model_a"], "'winner': names of contestants"),
])  # fmt: skip
def test_the_reading_says_what_verdicts_are_taken_for(said: list[Any], line: str) -> None:
    winner = (said * 48)[:48]
    table = {"model_a": ["x"] * 48, "model_b": ["y", "z", "z"] * 16, "winner": winner}
    assert line in read_comparisons(pa.table(table)).items.reading


def test_names_that_are_words_are_read_by_what_explains_every_row() -> None:
    """A, B and E meet: verdicts A and B are names, or say which of the two."""
    table = {"model_a": ["A", "B", "E", "A"], "model_b": ["B", "A", "B", "E"]}
    by_word = read_comparisons(pa.table(table | {"winner": ["A", "A", "A", "B"]}))
    assert by_word.items.labels.tolist() == [0, 0, 0, 1]
    by_name = read_comparisons(pa.table(table | {"winner": ["A", "A", "B", "E"]}))
    assert by_name.items.labels.tolist() == [0, 1, 1, 1]
    with pytest.raises(fl.InputError, match=r"'A' in row 2; .* not what may be both"):
        read_comparisons(pa.table(table | {"winner": ["A", "A", "B", "A"]}))


def test_names_that_differ_by_case_are_told() -> None:
    read = read_comparisons(pa.table(wide(model_a=["x", "y", "X", "z", "y", "z"] * 8)))
    assert "x, X differ in upper and lower case, and count apart" in read.items.notes


def test_comparisons_of_one_person_go_together() -> None:
    """Three people with tastes of their own are three draws, not as many as their verdicts."""
    rng = np.random.default_rng(4)
    person, n = np.repeat(np.arange(3), 30), 90
    a = rng.integers(3, size=n)
    b = (a + rng.integers(1, 3, size=n)) % 3
    taste = rng.normal(0, 1.5, (3, 3))
    said = davidson(rng, taste[person, a], taste[person, b], -9.0, 0.0)
    table = {
        "id": [*range(n)], "model_a": [f"m{i}" for i in a], "model_b": [f"m{i}" for i in b],
        "winner": WORDS[said].tolist(),
    }  # fmt: skip
    apart = fl.rank(pa.table(table), size=0)
    known = pa.table(table | {"judge": [f"expert_{i}" for i in person]})
    together = fl.rank(known, size=0)
    same = fl.rank(known, size=0, cluster="judge")
    for one, other, asked in zip(apart.rows[::3], together.rows[::3], same.rows[::3], strict=True):
        assert other.value == pytest.approx(one.value)
        assert other.high - other.low > 1.4 * (one.high - one.low)
        assert other.high - other.low == pytest.approx(asked.high - asked.low, rel=0.15)
    assert "comparisons of one 'person' go together" in together.estimates.warnings
    alone = pa.table(table | {"judge": ["expert_1"] * n})
    assert not read_comparisons(alone).items.clusters


@pytest.mark.slow
def test_people_who_judge_what_a_contestant_lost_are_no_random_sample() -> None:
    """By what the judge says of m0; not where they judge any, or more of some contestants."""
    table = league(5, n=400)[0].to_pydict()
    truth = league(5, n=400, labeled=400)[0].to_pydict()["human"]
    a, b, said = (np.array(table[c]) for c in ("model_a", "model_b", "judge"))
    lost = ((a == "m0") & (said == "model_b")) | ((b == "m0") & (said == "model_a"))
    met = (a == "m1") | (b == "m1")
    rng = np.random.default_rng(0)
    for chance, random in ((1 + 8 * lost, False), (1 + 0 * lost, True), (1 + met, True)):
        chosen = rng.choice(400, 60, replace=False, p=chance / chance.sum())
        human = [y if i in chosen else None for i, y in enumerate(truth)]
        ranking = fl.rank(pa.table(table | {"human": human}), size=0)
        shifts = [w for w in ranking.estimates.warnings if w.startswith("shift:")]
        assert bool(shifts) is not random
        if shifts:
            assert "judges on m0 scores labeled items -" in shifts[0]
            assert {row.status for row in ranking.rows} == {fl.Status.ASSUMPTION}


def test_an_order_that_few_verdicts_tell_of_does_not_run_off() -> None:
    """x wins whenever it is first, and half of the times it is not: order or strength."""
    table = pa.table({
        "model_a": ["x", "y"] * 10, "model_b": ["y", "x"] * 10,
        "winner": ["model_a", "model_a", "model_a", "model_b"] * 5,
    })  # fmt: skip
    ranking = fl.rank(table, size=0)
    row = ranking.estimates.get("x", "bradley_terry")
    assert row.status is fl.Status.OK
    assert 0.3 < row.value < 0.9
    assert row.high < 1.5
    assert ranking.people.order.value < 0.85
    assert ranking.people.order.high < 0.97


def test_few_verdicts_are_told_of_in_the_headline() -> None:
    table = pa.table({"model_a": ["x"] * 3, "model_b": ["y"] * 3, "winner": ["A", "A", "B"]})
    assert "Few labels: see the warnings" in fl.rank(table).summary().replace("\n", " ")


def long_form() -> dict[str, list[Any]]:
    """A judge's verdicts in both orders, a second judge's, and an expert's in the other order."""
    return {
        "question_id": [1, 1, 1, 1, 2, 2, 3, 3],
        "model_a": ["x", "y", "x", "y", "x", "x", "y", "x"],
        "model_b": ["y", "x", "y", "x", "z", "z", "z", "y"],
        "winner": ["model_a", "model_a", "tie", "model_a", "x", "model_b", "tie", "A"],
        "judge": ["gpt", "gpt", "claude", "expert_1", "gpt", "expert_1", "gpt", "claude"],
    }


def test_a_row_per_judge_becomes_a_comparison_in_one_order() -> None:
    read = read_comparisons(pa.table(long_form()))
    items = read.items
    assert read.judges == ("gpt", "claude")
    assert items.models == ("gpt", "gpt (swapped)", "claude")
    assert read.contestants == ("x", "y", "z")
    assert list(zip(read.first.tolist(), read.second.tolist(), strict=True)) == [
        (0, 1), (0, 2), (1, 2), (0, 1),
    ]  # fmt: skip
    # x against y of question 1: gpt says the first twice, so x, then y; the expert y.
    assert items.votes is not None
    assert items.votes.tolist() == [[0, 1, 2], [0, -1, -1], [2, -1, -1], [-1, -1, 0]]
    assert items.labels.tolist() == [1, 1, -1, -1]
    assert "question_id" in items.clusters


def test_consistency_and_order_of_a_judge_who_likes_what_is_first() -> None:
    rng = np.random.default_rng(0)
    n = 80
    a = rng.integers(3, size=n)
    b = (a + rng.integers(1, 3, size=n)) % 3
    said = np.where(rng.random((2, n)) < 0.8, "model_a", "model_b")
    table = {
        "prompt": [*range(n)] * 2,
        "model_a": [*a.tolist(), *b.tolist()],
        "model_b": [*b.tolist(), *a.tolist()],
        "winner": said.ravel().tolist(),
        "judge": ["gpt"] * 2 * n,
    }
    ranking = fl.rank(pa.table(table), size=0)
    (judge,) = ranking.judges
    assert judge.n_verdicts == 2 * n
    assert judge.n_both_orders == n
    assert judge.consistent == pytest.approx(float((said[0] != said[1]).mean()))
    share = float((said == "model_a").mean())
    assert abs(judge.order.value - share) < 0.03
    assert 0.5 < judge.order.low < share < judge.order.high
    assert judge.p_value < 1e-4
    assert {row.status.value for row in ranking.rows} == {"assumption"}
    assert ranking.estimates.warnings[0].startswith("assumption: no verdict of people")


@pytest.mark.slow
def test_people_correct_a_judge_who_likes_long_answers() -> None:
    """m3 is long: the judge puts it first or near; people and the estimate do not."""
    table, truth = league(3, n=1500, labeled=200, right=0.5, length=2.0, order=0.8)
    ranking = fl.rank(table, size=5)
    alone = ranking.alone["judges alone"]
    worst = max(abs(alone[m].value - v) for m, v in truth.items())
    ours = max(abs(ranking.estimates.get(m, "win_rate").value - v) for m, v in truth.items())
    assert alone["m3"].low > truth["m3"]
    assert ours < 0.7 * worst
    row = ranking.estimates.get("m3", "win_rate")
    assert row.low < truth["m3"] < row.high
    (judge,) = ranking.judges
    assert judge.order.low > 0.5
    assert 0.4 < judge.agreement.value < 0.9
    assert len(ranking.next) == 5
    assert all(one.row >= 200 for one in ranking.next)
    assert 0 < sum(one.gain for one in ranking.next) < 1


@pytest.mark.slow
@pytest.mark.parametrize("labeled", [20, 50, 200])
@pytest.mark.parametrize("world", [{}, {"order": 1.0}, {"length": 1.5, "right": 0.7}])
def test_intervals_cover(labeled: int, world: dict[str, float]) -> None:
    held = []
    for seed in range(12):
        table, truth = league(seed, n=600, labeled=labeled, **world)
        ranking = fl.rank(table, size=0)
        for model, value in truth.items():
            row = ranking.estimates.get(model, "win_rate")
            held.append(row.low <= value <= row.high)
    # 60 intervals, five of a league: their spread is about .045.
    assert np.mean(held) > 0.95 - 3 * 0.045


def test_who_wins_all_has_no_strength() -> None:
    table = wide()
    won = ["model_a" if a == "x" else "model_b" if b == "x" else w
           for a, b, w in zip(*table.values(), strict=True)]  # fmt: skip
    ranking = fl.rank(pa.table(table | {"winner": won}))
    row = ranking.estimates.get("x", "bradley_terry")
    assert row.status is fl.Status.NOT_CONVERGED
    assert np.isnan(row.value)
    assert ranking.estimates.get("x", "win_rate").value == 1.0
    said = ranking.estimates.warnings[0]
    assert said.startswith("not-converged: 'x' and the others have not both won and lost")


def test_leagues_that_never_met_have_no_common_scale() -> None:
    table = pa.table({
        "model_a": ["x", "y", "u", "v"] * 6, "model_b": ["y", "x", "v", "u"] * 6,
        "winner": ["model_a", "model_a", "tie", "model_a"] * 6,
    })  # fmt: skip
    ranking = fl.rank(table)
    assert "have not both won and lost against each other" in ranking.estimates.warnings[0]
    assert all(np.isfinite(ranking.estimates.get(m, "win_rate").value) for m in "xyuv")


@pytest.mark.slow
def test_the_order_of_rows_and_the_seed_do_not_matter() -> None:
    table, _ = league(1, n=200, labeled=40)
    first = fl.rank(table, size=0)
    again = fl.rank(table.take(np.random.default_rng(0).permutation(200)), size=0)
    for row in first.rows[::3]:
        other = again.estimates.get(row.model, row.metric)
        assert other.value == pytest.approx(row.value, abs=0.03)
        assert other.low == pytest.approx(row.low, abs=0.08)
    assert fl.rank(table, size=0).to_dict() == first.to_dict()


@pytest.mark.parametrize(("change", "line"), [
    ({"model_b": None}, "has no two columns that say who is compared"),
    ({"winner": None}, "has no column that says who won"),
    ({"winner": ["perhaps"] * 48}, "column 'winner' says 'perhaps' in row 1; it must say model_a"),
    ({"winner": [None] * 48}, "has no verdict"),
    ({"model_b": ["x", "y", "x", "z", "y", "z"] * 8}, "has no row with two different names"),
    ({"judge": ["gpt", "claude"] * 24}, "name that of the prompt with --item COL"),
])  # fmt: skip
def test_bad_files_are_one_line(change: dict[str, Any], line: str) -> None:
    table = {n: v for n, v in (wide() | change).items() if v is not None}
    with pytest.raises(fl.InputError, match=re.escape(line)) as error:
        fl.rank(pa.table(table))
    assert "\n" not in str(error.value)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "league.csv"
    table = league(2, n=150, labeled=40)[0].to_pydict()
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    return path


def test_the_command(cli: Run, file: Path, tmp_path: Path) -> None:
    chosen, report = tmp_path / "next.csv", tmp_path / "out.json"
    code, out, err = cli(
        "rank",
        file,
        "--next",
        3,
        "--out",
        chosen,
        "--json",
        report,
        "--require",
        "m0:win_rate>=.99",
    )
    assert code == 1
    assert "not met: m0:win_rate>=.99" in err
    assert all(len(line) <= 80 for line in out.splitlines() if str(tmp_path) not in line)
    assert "By win rate, m" in out
    assert "People should judge next: rows" in out
    page = json.loads(report.read_text())
    assert {row["metric"] for row in page["estimates"]} == {"win_rate", "bradley_terry", "elo"}
    assert page["n_labeled"] == 40
    assert sum(page["best"]["win_rate"].values()) == pytest.approx(1)
    with chosen.open() as lines:
        rows = [*csv.DictReader(lines)]
    assert len(rows) == 3
    assert {*rows[0]} == {"row", "first", "second", "gain"}
    table = fl.rank(file, size=3)
    assert [int(row["row"]) for row in rows] == [one.row + 1 for one in table.next]


@pytest.mark.parametrize(("options", "line"), [
    (["--winner", "wins"], "unknown column 'wins'"),
    (["--human", "bob"], "unknown judge 'bob'"),
    (["--next", "0", "--out", "next.csv"], "--out writes the comparisons of --next"),
    (["--require", "accuracy>=.5"], "unknown metric 'accuracy'"),
    (["--require", "m9:win_rate>=.5"], "unknown model 'm9'"),
    (["--confidence-level", "2"], "--confidence-level must be between 0 and 1"),
])  # fmt: skip
def test_bad_commands_are_one_line(cli: Run, file: Path, options: list[str], line: str) -> None:
    code, _, err = cli("rank", file, *options)
    assert code == 2
    assert line in err
    assert err.count("\n") == 1
