"""Performance over time: periods, what changed and since when, and what is said of bad times."""

from __future__ import annotations

import datetime as dt
import json
import re
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.cli.app import main
from fewlabels.errors import InputError, UsageError
from fewlabels.evaluation.periods import NO_TIME, Calendar, days_of
from fewlabels.monitoring import Asked, monitor_files, rows_of, rows_to_label
from fewlabels.questions import over_time as questions
from fewlabels.streaming.in_memory import ArrayRows
from fewlabels.streaming.periods import HELD, DayScan
from fewlabels.streaming.reading import Batch


def weekly(weeks=8, n=400, labels=40, falls=5, seed=0):
    """A classifier that separates classes well until week `falls`, and badly from then on."""
    rng = np.random.default_rng(seed)
    week = np.repeat(np.arange(weeks), n)
    truth = rng.random(weeks * n) < 0.4
    apart = np.where(week < falls, 4.0, 0.8)
    score = 1 / (1 + np.exp(-rng.normal(apart * (truth - 0.5), 1)))
    labels = np.where(rng.permutation(weeks * n) < weeks * labels, truth, -1)
    day = np.array([dt.date(2026, 9, 7) + dt.timedelta(weeks=int(w)) for w in week], dtype=object)
    return fl.Predictions({"spam": score}, labels, groups={"date": day}), truth, week


def test_a_fall_is_found_where_it_began():
    items, truth, week = weekly()
    over_time = fl.monitor(items, "date", "week", metrics="accuracy")
    correct = (items.probabilities[:, 0, 1] > 0.5) == truth
    true = [correct[week == w].mean() for w in range(8)]
    inside = [row.low <= t <= row.high for row, t in zip(over_time.rows, true, strict=True)]
    assert sum(inside) >= 7
    (change,) = over_time.changes
    assert (change.alarm, change.since) == (True, "2026-10-12")
    assert change.what == "P(class | scores) and the mix of items"
    assert change.low < true[0] - true[-1] < change.high
    assert [p.name for p in over_time.periods][:2] == ["2026-09-07", "2026-09-14"]
    assert "has fallen since 2026-10-12" in over_time.summary()
    row = json.loads(json.dumps(over_time.to_dict()))["changes"][0]
    assert {"model", "metric", "since", "probability", "what"} <= row.keys()


@pytest.mark.slow
def test_what_stays_raises_no_alarm():
    quiet = 0
    for seed in range(6):
        items, _, _ = weekly(falls=99, seed=seed, labels=25)
        over_time = fl.monitor(items, "date", metrics="accuracy")
        quiet += not over_time.alarms
    assert quiet == 6


@pytest.mark.slow
def test_periods_whose_labels_say_next_to_nothing_are_as_the_others():
    """Most scores are 0, positives rare: for some curves the likelihood has no mode nearby."""
    rng = np.random.default_rng(4)
    periods, n = 15, 300
    week = np.repeat(np.arange(periods), n)
    truth = rng.random(periods * n) < 0.06
    score = 1 / (1 + np.exp(-rng.normal(np.where(truth, 0.5, -2.5), 1.3)))
    score[score < 0.35] = 0
    labels = np.where(rng.permutation(periods * n) < periods * 20, truth, -1)
    items = fl.Predictions({"spam": score}, labels, groups={"week": week})
    held = 0
    for w, row in enumerate(fl.monitor(items, "week", 1, "roc_auc").rows):
        pairs = score[truth & (week == w)][:, None] - score[~truth & (week == w)]
        held += row.low <= (pairs > 0).mean() + 0.5 * (pairs == 0).mean() <= row.high
        assert row.high - row.low > 0.03
    assert held >= 13


@pytest.mark.slow
def test_labels_that_complaints_chose_raise_no_alarm_and_no_status_is_ok():
    items, truth, _ = weekly(falls=99, labels=0, weeks=10)
    rng = np.random.default_rng(4)
    wrong = (items.probabilities[:, 0, 1] > 0.5) != truth
    noisy = items.probabilities[:, 0, 1] * 0.7 + 0.15 + rng.normal(0, 0.02, items.n_items)
    seen = rng.random(items.n_items) < np.where(wrong, 0.5, 0.03)
    chosen = fl.Predictions({"spam": noisy}, np.where(seen, truth, -1), groups=items.groups)
    over_time = fl.monitor(chosen, "date", "week", "accuracy")
    assert not over_time.alarms
    assert {str(row.status) for row in over_time.rows}.isdisjoint({"ok"})
    assert any("random sample of their periods" in said for said in over_time.warnings)
    # Fewer labels later on are no such choice.
    later = items.groups["date"] >= dt.date(2026, 10, 12)
    fewer = np.where(rng.random(items.n_items) < np.where(later, 0.03, 0.2), truth, -1)
    steady = fl.monitor(items.with_labels(fewer), "date", "week", "accuracy")
    assert not any("random sample" in said for said in steady.warnings)


@pytest.mark.slow
def test_a_change_of_the_mix_is_not_one_of_the_curve():
    rng = np.random.default_rng(3)
    week = np.repeat(np.arange(8), 800)
    # Items get harder: scores nearer to 1/2, whose meaning stays.
    spread = np.where(week < 5, 3.0, 0.4)
    logit = rng.normal(0, spread)
    truth = rng.random(len(week)) < 1 / (1 + np.exp(-logit))
    labels = np.where(rng.random(len(week)) < 0.1, truth, -1)
    items = fl.Predictions(
        {"m": 1 / (1 + np.exp(-logit))}, labels, groups={"week": week.astype(str)}
    )
    (change,) = fl.monitor(items, "week", metrics="accuracy").changes
    assert change.since == "5"
    assert change.what == "the mix of items"


def calendar(values, every=None):
    """The periods of some times, and that of each, -1 where it has none."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    days = days_of(array, "t")[0].tolist()
    made = Calendar.of([day for day in days if day != NO_TIME], "t", every)
    return made, [made.place.get(day, -1) for day in days]


def test_periods_are_named_by_their_first_day_whatever_times_are_written_as():
    days = ["2026-09-09", "2026-09-13", "2026-09-14", "2026-10-01"]
    moments = [dt.datetime.fromisoformat(f"{d}T12:00:00+00:00") for d in days]
    written = {
        "text": days,
        "dates": [dt.date.fromisoformat(d) for d in days],
        "numbers": [int(d.replace("-", "")) for d in days],
        "seconds": [moment.timestamp() for moment in moments],
        "milliseconds": [int(moment.timestamp() * 1000) for moment in moments],
        "zoned": ["2026-09-08T23:30:00-00:30", *(f"{d}T10:00:00Z" for d in days[1:])],
    }
    for how, values in written.items():
        weeks, codes = calendar([*values, None], "week")
        assert weeks.names == ("2026-09-07", "2026-09-14", "2026-09-28"), how
        assert codes == [0, 0, 1, 2, -1], how
        assert weeks.notes[0] == "no items in 1 periods: 2026-09-21"
        assert not weeks.complete
    assert calendar(days, "month")[0].names == ("2026-09-01", "2026-10-01")
    assert calendar(["2026-09-30", "2026-10-01"], "day")[0].complete
    assert calendar([2019, 2021, 2020])[0].names == ("2019", "2020", "2021")
    assert calendar([1, 2, 9], 5)[0].names == ("0", "5")


@pytest.mark.parametrize(
    ("values", "every", "message"),
    [
        (["2026-09-09", "soon"], None, "'soon', which is no time"),
        (["2026-09-09", "2026-09-10"], "week", "one period (2026-09-07)"),
        (["2026-09-09", "7"], None, "both dates and numbers"),
        ([1.5, 2.5], "week", "plain numbers"),
        (["2026-09-09", "2026-09-10"], "fortnight", "day, week, month, year or a whole number"),
        ([None, None], None, "holds no time"),
        ([str(dt.date(2000, 1, 1) + dt.timedelta(days=i)) for i in range(200)], "day", "--every"),
        (list(range(500)), None, "say how many are one period"),
    ],
)
def test_times_that_cannot_be_used_are_said(values, every, message):
    with pytest.raises((InputError, UsageError), match=re.escape(message)):
        calendar(values, every)


def scanned(items, spans):
    """The scan of some items that come in parts."""
    total = DayScan("date")
    rows = ArrayRows.of(items, ("date",)).items
    for span in spans:
        part = DayScan("date")
        part.update(Batch(rows.take(span), None, 0))
        total.take(part)
    return total


def held(scan, items, every):
    """What stands for the items of each period."""
    return scan.held(Calendar.of(scan.dated, "date", every), items.models, items.classes)


def test_held_items_stand_for_all_of_their_period():
    items, _, week = weekly(weeks=3, n=5000, labels=10, falls=2)
    sample = held(scanned(items, [slice(0, None)]), items, "week")
    assert [n for n, _ in sample.sizes] == [5000] * 3
    assert sum(labeled for _, labeled in sample.sizes) == sample.items.n_labeled == items.n_labeled
    assert sample.items.n_items <= 3 * HELD + items.n_labeled
    p, q = items.probabilities[:, 0, 1], sample.items.probabilities[:, 0, 1]
    for w, name in enumerate(sample.calendar.names):
        inside = sample.items.groups["date"] == name
        mean = np.average(q[inside], weights=sample.items.weight[inside])
        assert abs(mean - p[week == w].mean()) < 0.01
        share = np.average(q[inside] > 0.5, weights=sample.items.weight[inside])
        assert share == pytest.approx((p[week == w] > 0.5).mean())
        assert sample.numbers["mean score of spam"][w] == pytest.approx(p[week == w].mean())


def test_parts_in_any_order_hold_the_same_items():
    items, _, _ = weekly(weeks=4, n=3000, labels=30)
    whole = held(scanned(items, [slice(0, None)]), items, None)
    cut = [slice(i, i + 1700) for i in range(0, items.n_items, 1700)]
    parts = held(scanned(items, cut[::-1]), items, None)
    for name in ("probabilities", "labels", "weight"):
        np.testing.assert_array_equal(getattr(whole.items, name), getattr(parts.items, name))
    assert whole.sizes == parts.sizes


def test_few_distinct_rows_count_as_often_as_they_occur():
    rng = np.random.default_rng(2)
    day = np.repeat(["2026-09-07", "2026-09-14"], 40_000)
    said = rng.random(80_000) < np.where(day == "2026-09-07", 0.25, 0.75)
    labels = np.where(rng.random(80_000) < 0.002, said, -1)
    items = fl.Predictions({"rule": said.astype(int)}, labels, groups={"date": day})
    sample = held(scanned(items, [slice(0, None)]), items, None)
    for name, share in zip(sample.calendar.names, (0.25, 0.75), strict=True):
        inside = sample.items.groups["date"] == name
        weight = sample.items.weight[inside]
        assert np.average(sample.items.hard[inside, 0], weights=weight) == pytest.approx(
            share, abs=0.01
        )


def test_files_in_parts_and_items_in_memory_give_one_answer(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    items, _, week = weekly(weeks=6, n=700, falls=4)
    for w in range(6):
        rows = items.take(week == w)
        folder = tmp_path / f"date={dt.date(2026, 9, 7) + dt.timedelta(weeks=w)}"
        folder.mkdir()
        labels = [None if label < 0 else int(label) for label in rows.labels]
        columns = {"p__spam__1": rows.probabilities[:, 0, 1], "label": labels}
        parquet.write_table(pa.table(columns), folder / "part-0.parquet")
    in_parts = monitor_files(rows_of(tmp_path, ["date"]), Asked("date", "week", "accuracy"))
    at_once = fl.monitor(tmp_path, "date", "week", "accuracy")
    assert [row[:6] for row in in_parts.rows] == [row[:6] for row in at_once.rows]
    assert in_parts.changes == at_once.changes


@pytest.mark.slow
def test_a_run_each_week_says_what_one_run_over_all_says(tmp_path):
    items, _, week = weekly(weeks=5, n=200, falls=3)
    state = tmp_path / "state"
    for this in range(5):
        rows = items.take(week == this)
        # One week alone has nothing to be compared with but what the state has.
        with pytest.raises(InputError, match="one period"):
            fl.monitor(rows, "date", "week", "accuracy")
        latest = fl.monitor(rows, "date", "week", "accuracy", state=state)
    at_once = fl.monitor(items, "date", "week", "accuracy")
    assert latest.rows == at_once.rows
    assert latest.changes == at_once.changes
    again = fl.monitor(rows, "date", "week", "accuracy", state=state)
    assert again.rows == at_once.rows
    assert again.warnings[0] == "1 day was read before, and taken from this run"
    # Labels that come late: the days are read again.
    told = items.with_labels((items.probabilities[:, 0, 1] > 0.5).astype(int))
    late = fl.monitor(told.take(week >= 2), "date", "week", "accuracy", state=state)
    assert late.rows[-1].value == 1
    assert late.rows[0].low < 1


def test_the_first_week_starts_the_state_and_meets_conditions(tmp_path, capsys):
    path, page, state = tmp_path / "spam.csv", tmp_path / "a.html", tmp_path / "state"
    spam_file(path, team=lambda days: ["ab"[i % 2] for i in range(len(days))])
    week = ["--where", "date < 2026-09-14", "--state", state, "--method", "labeled"]
    assert monday(path, *week, "--html", page, "--require", "low:accuracy>=.3") == 0
    said = "Nothing to compare 2026-09-07 with yet; a later run with this state goes on from it."
    assert said in " ".join(capsys.readouterr().out.split())
    assert said in page.read_text("utf-8")
    assert monday(path, *week, "--require", "low:accuracy>=.999") == 1
    of_groups = fl.monitor(
        str(path), "date", "week", "accuracy", by="team", state=tmp_path / "s", method="labeled",
        where="date < 2026-09-14",
    )  # fmt: skip
    assert (of_groups.changes, len(of_groups.rows)) == ((), 1)
    assert "one period alone are left out" in of_groups.warnings[-1]


def test_a_week_without_labels_is_read_by_the_classes_of_the_state(tmp_path, capsys):
    """Its columns name one class of two, and nothing else says that `toxic` is one."""
    items, _, week = weekly(weeks=3, n=100, labels=50)
    written = {-1: "", 0: "ok", 1: "toxic"}
    for w in range(3):
        head = "when,net p(toxic)" + ",verdict" * (w < 2)
        rows = [
            f"{items.groups['date'][i]},{items.probabilities[i, 0, 1]:.3f}"
            + f",{written[int(items.labels[i])]}" * (w < 2)
            for i in np.flatnonzero(week == w)
        ]
        (tmp_path / f"{w}.csv").write_text("\n".join([head, *rows]) + "\n")
    asked = ["--time", "when", "--every", "week", "--metrics", "accuracy", "--method", "labeled"]
    for w in range(3):
        asked_of = ["monitor", str(tmp_path / f"{w}.csv"), *asked, "--state", str(tmp_path / "s")]
        assert main([*asked_of, "--json", str(tmp_path / "a.json")]) == 0
    found = json.loads((tmp_path / "a.json").read_text())
    assert (found["models"], found["classes"]) == (["net"], ["ok", "toxic"])
    told = [int((items.labels[week == w] >= 0).sum()) for w in range(2)]
    assert [period["n_labeled"] for period in found["periods"]] == [*told, 0]
    again = fl.monitor(
        str(tmp_path / "2.csv"), "when", "week", "accuracy", method="labeled", state=tmp_path / "s"
    )
    assert (again.models, len(again.periods)) == (("net",), 3)
    # Classes that are said are not those of the state.
    capsys.readouterr()
    assert main([*asked_of, "--classes", "fine,toxic"]) == 2
    assert "its classes are ['ok', 'toxic'], and those here ['fine'" in capsys.readouterr().err


def test_a_week_without_labels_rests_on_the_others_and_passes_no_gate(tmp_path, capsys):
    items, _, week = weekly(weeks=5, n=150, falls=99)
    late = items.with_labels(np.where(week == 4, -1, items.labels))
    over_time = fl.monitor(late, "date", "week", "accuracy")
    assert [str(row.status) for row in over_time.rows] == ["ok"] * 4 + ["assumption"]
    (said,) = (line for line in over_time.warnings if "no labeled item" in line)
    assert said.startswith("assumption: no labeled item in date=2026-10-05; its scores are taken")
    path = tmp_path / "spam.csv"
    spam_file(path)
    ask = ["--method", "ensemble", "--require", "accuracy>=.01"]
    assert monday(path, *ask) == 0
    lines = path.read_text().splitlines()
    rows = [line.split(",") for line in lines[1:]]
    bare = [[*row[:3], "" if row[1] >= "2026-10-26" else row[3], row[4]] for row in rows]
    path.write_text("\n".join([lines[0], *map(",".join, bare)]) + "\n")
    capsys.readouterr()
    assert monday(path, *ask) == 1
    assert "no item of 2026-10-26 has a label, so nobody" in capsys.readouterr().err


def test_a_classifier_may_come_and_go(tmp_path):
    items, _, week = weekly(n=300, falls=99)
    other = fl.Predictions(
        {"old": items.probabilities[:, 0, 1] ** 2, "spam": items.probabilities[:, 0, 1]},
        items.labels, groups=items.groups,
    )  # fmt: skip
    asked = {"every": "week", "metrics": "accuracy", "state": tmp_path / "s", "method": "labeled"}
    fl.monitor(other.take(week < 4), "date", **asked)
    later = fl.monitor(items.take(week >= 4), "date", **asked)
    assert set(later.models) == {"old", "spam"}
    values = {(row.model, row.group): row.value for row in later.rows}
    assert np.isnan(values["old", "date=2026-10-26"])
    assert values["spam", "date=2026-10-26"] > 0.8 < values["old", "date=2026-09-07"]


def test_what_is_no_state_is_left_alone(tmp_path):
    items, _, _ = weekly(n=100)
    state = tmp_path / "notes.txt"
    state.write_text("mine")
    with pytest.raises(InputError, match=r"notes\.txt: this is no state"):
        fl.monitor(items, "date", state=state)
    assert state.read_text() == "mine"
    fl.monitor(items, "date", state=tmp_path / "s", method="labeled")
    others = fl.Predictions(items.probabilities, items.labels, groups=items.groups,
                            classes=["ham", "spam"])  # fmt: skip
    with pytest.raises(InputError, match="its classes are"):
        fl.monitor(others, "date", state=tmp_path / "s")
    with pytest.raises(InputError, match="No such file or directory"):
        fl.monitor(items, "date", state=tmp_path / "nowhere" / "s")


def test_volume_and_scores_that_move_are_seen_without_a_label():
    rng = np.random.default_rng(1)
    sizes = [500, 510, 490, 505, 495, 500, 2000, 500]
    week = np.repeat(np.arange(8), sizes)
    score = rng.beta(2, 3 - 1.2 * (week == 7))
    labels = np.where(rng.random(len(week)) < 0.05, rng.random(len(week)) < score, -1)
    items = fl.Predictions({"m": score}, labels, groups={"week": week})
    periods = fl.monitor(items, "week", metrics="accuracy").periods
    assert "items" in periods[6].moved
    assert "mean score of m" in periods[7].moved
    assert not any(period.moved for period in periods[:6])


def test_the_command_fails_where_the_last_complete_period_does(tmp_path, capsys):
    items, _, _ = weekly(n=250)
    path = tmp_path / "spam.csv"
    lines = ["date,p__spam__1,label"]
    for i, label in enumerate(items.labels):
        day = items.groups["date"][i] + dt.timedelta(days=i % 7)
        lines.append(f"{day},{items.probabilities[i, 0, 1]:.4f},{label if label >= 0 else ''}")
    path.write_text("\n".join(lines))
    asked = ["monitor", str(path), "--time", "date", "--every", "week", "--metrics", "accuracy"]
    alert, table = tmp_path / "alert.jsonl", tmp_path / "rows.csv"
    code = main(
        [*asked, "--require", "low:accuracy>=.8", "--alert", str(alert), "--to", str(table)]
    )
    assert code == 1
    assert "not met: low:accuracy>=.8" in capsys.readouterr().err
    kinds = [json.loads(line)["kind"] for line in alert.read_text().splitlines()]
    assert kinds == ["fall", "require"]
    assert len(table.read_text().splitlines()) == 9
    assert main([*asked, "--require", "low:accuracy>=.3"]) == 0
    assert main(["monitor", str(path), "--time", "day"]) == 2


def test_a_reference_is_what_periods_are_compared_with():
    items, _, _ = weekly(falls=0, weeks=6)
    before, _, _ = weekly(falls=99, weeks=1, n=600, labels=600, seed=5)
    over_time = fl.monitor(items, "date", metrics="accuracy", reference=before)
    assert over_time.against == "reference"
    assert over_time.changes[0].since == "2026-09-07"
    with pytest.raises(UsageError, match="no reference is given"):
        fl.monitor(items, "date", against="reference")


def by_language(weeks=8, n=600, falls=5, seed=1):
    """Two languages, of which one becomes as bad as chance; and the share right of each."""
    items, truth, week = weekly(weeks, n, 120, falls=99, seed=seed)
    rng = np.random.default_rng(seed)
    language = np.where(rng.random(weeks * n) < 0.5, "de", "en").astype(object)
    bad = (language == "en") & (week >= falls)
    p = np.where(bad, rng.random(weeks * n), items.probabilities[:, 0, 1])
    groups = {**items.groups, "language": language}
    right = (p > 0.5) == truth
    shares = {name: right[(week == weeks - 1) & (language == name)].mean() for name in ("de", "en")}
    return fl.Predictions({"spam": p}, items.labels, groups=groups), shares


@pytest.mark.slow
def test_each_group_is_estimated_from_its_own_rows():
    items, shares = by_language()
    over_time = fl.monitor(items, "date", "week", "accuracy", by="language")
    alone = fl.monitor(items.take(items.groups["language"] == "en"), "date", "week", "accuracy")
    german, english = (over_time.subgroups[f"language={name}"] for name in ("de", "en"))
    assert [row[:6] for row in english.rows] == [row[:6] for row in alone.rows]
    assert [change.since for change in english.alarms] == ["2026-10-12"]
    assert not german.alarms
    for name, part in (("de", german), ("en", english)):
        assert part.rows[-1].low <= shares[name] <= part.rows[-1].high
    table = over_time.table()
    assert {*table["subgroup"]} == {"all items", "language=de", "language=en"}
    rows = list(zip(*(table[name] for name in over_time.KEY), strict=True))
    assert len(rows) == len(set(rows)) == 24
    assert table["start"][0] == np.datetime64("2026-09-07")
    assert "In language=en, accuracy of spam has fallen since 2026-10-12" in over_time.summary(200)
    assert [one["subgroup"] for one in over_time.to_dict()["subgroups"]] == [*over_time.subgroups]


@pytest.mark.slow
def test_the_reference_of_a_group_is_its_own():
    items, _ = by_language(falls=0)
    before, _ = by_language(weeks=1, falls=99, seed=7)
    over_time = fl.monitor(
        items, "date", "week", "accuracy", by="language",
        reference=before.take(before.groups["language"] == "en"),
    )  # fmt: skip
    parts = over_time.subgroups
    assert (parts["language=en"].against, parts["language=de"].against) == ("reference", "first")
    assert parts["language=en"].changes[0].since == "2026-09-07"
    assert not parts["language=de"].alarms
    with pytest.raises(UsageError, match="unknown group 'language'"):
        fl.monitor(items, "date", "week", "accuracy", by="language", reference=before.keeping(()))


def test_groups_in_parts_and_from_a_state_are_those_of_one_run(tmp_path):
    items, _ = by_language(weeks=4, n=200, falls=2)
    weeks = np.array([(day - dt.date(2026, 9, 7)).days // 7 for day in items.groups["date"]])
    asked = {"by": "language", "every": "week", "metrics": "accuracy", "method": "labeled"}
    for first, last in ((0, 3), (2, 4)):
        rows = items.take((weeks >= first) & (weeks < last))
        latest = fl.monitor(rows, "date", **asked, state=tmp_path / "s")
    whole = fl.monitor(items, "date", **asked)
    for name, part in whole.subgroups.items():
        assert latest.subgroups[name].rows == part.rows
    with pytest.raises(InputError, match=r"its groups are of \['language'\], and those here \[\]"):
        fl.monitor(items, "date", "week", "accuracy", state=tmp_path / "s")


def test_a_new_version_is_a_group_with_periods_of_its_own():
    items, _, week = weekly(n=300, falls=5)
    version = np.where(week < 5, "1.9", "2.0").astype(object)
    groups = {**items.groups, "version": version}
    asked = ("date", "week", "accuracy")
    over_time = fl.monitor(items.with_groups(groups), *asked, by="version", method="labeled")
    new = over_time.subgroups["version=2.0"]
    assert [period.name for period in new.periods] == ["2026-10-12", "2026-10-19", "2026-10-26"]
    # As bad from its first week on: nothing has changed since.
    assert not new.alarms
    assert over_time.alarms
    once = fl.monitor(
        items.with_groups({**groups, "version": np.where(week < 7, "1.9", "2.0")}),
        *asked, by="version", method="labeled",
    )  # fmt: skip
    assert list(once.subgroups) == ["version=1.9"]
    assert any("version=2.0" in said and "one period alone" in said for said in once.warnings)


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("date", "the column of times"),
        ("town", "unknown group 'town'"),
        ("number", "more than 24 values"),
    ],
)
def test_groups_that_cannot_be_told_apart_are_said(by, message):
    items, _, _ = weekly(n=50)
    groups = {**items.groups, "number": np.arange(items.n_items)}
    with pytest.raises(UsageError, match=re.escape(message)):
        fl.monitor(items.with_groups(groups), "date", "week", "accuracy", by=by)


# Bad input, and what comes later ------------------------------------------------------------------


def spam_file(path, falls=5, **columns):
    """A file of items by day, with names, from `weekly`; `columns` are made from the days."""
    items, truth, week = weekly(n=120, labels=30, falls=falls)
    names = [f"m{i}" for i in range(items.n_items)]
    days = [items.groups["date"][i] + dt.timedelta(days=i % 7) for i in range(items.n_items)]
    table = {
        "item": names,
        "date": [str(day) for day in days],
        "p__spam__1": [f"{p:.4f}" for p in items.probabilities[:, 0, 1]],
        "label": [str(label) if label >= 0 else "" for label in items.labels],
        "text": [f"text {name}" for name in names],
    }
    table |= {name: make(days) for name, make in columns.items()}
    lines = [",".join(row) for row in zip(*table.values(), strict=True)]
    path.write_text("\n".join([",".join(table), *lines]) + "\n")
    return truth, week


def monday(path, *options):
    """The command over a file of `spam_file`."""
    named = ["monitor", str(path), "--time", "date", "--every", "week", "--metrics", "accuracy"]
    return main([*named, *map(str, options)])


def test_labels_that_come_later_are_joined_by_item_and_said(tmp_path, capsys):
    path, state = tmp_path / "spam.csv", tmp_path / "state"
    truth, week = spam_file(path)
    quick = ("--method", "labeled", "--state", state)
    assert monday(path, *quick) == 0
    late = tmp_path / "late.csv"
    lines = [f"m{i},{int(truth[i])}" for i in np.flatnonzero(week == 2)[:40]]
    late.write_text("\n".join(["item,label", *lines]))
    capsys.readouterr()
    answer = tmp_path / "a.json"
    where = ["--where", "date >= 2026-09-21 and date < 2026-09-28"]
    assert monday(path, *where, "--labels", late, *quick, "--json", answer) == 0
    found = json.loads(answer.read_text())
    assert any(
        "labels of earlier days have come or gone (2026-09-21, 2026-09-22, 2026-09-23" in said
        for said in found["warnings"]
    )
    labels = {period["name"]: period["n_labeled"] for period in found["periods"]}
    assert labels["2026-09-21"] >= 40 > labels["2026-09-14"]
    assert len(labels) == 8


def test_a_table_keeps_the_periods_of_all_runs(tmp_path):
    path, table = tmp_path / "spam.csv", tmp_path / "rows.csv"
    spam_file(path)
    for span in ("date < 2026-10-05", "date >= 2026-09-28"):
        assert monday(path, "--method", "labeled", "--where", span, "--to", table) == 0
    rows = [line.split(",") for line in table.read_text().splitlines()]
    periods = [row[0].strip('"') for row in rows[1:]]
    assert sorted(periods) == [str(dt.date(2026, 9, 7) + dt.timedelta(weeks=w)) for w in range(8)]
    assert rows[0][:2] == ['"period"', '"start"']
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    assert monday(path, "--to", other) == 2
    assert other.read_text() == "a,b\n1,2\n"


def test_the_items_whose_labels_would_tell_most_are_rows_of_the_last_complete_period(
    tmp_path, capsys
):
    path, chosen = tmp_path / "spam.csv", tmp_path / "ask.csv"
    spam_file(path, falls=99)
    last = path.read_text().splitlines()[-1].split(",")
    path.write_text(path.read_text() + ",".join(["later", "2026-11-02", *last[2:]]) + "\n")
    assert monday(path, "--ask", 15, "--out", chosen) == 0
    head, *rows = [line.split(",") for line in chosen.read_text().replace('"', "").splitlines()]
    assert head == ["item", "date", "p__spam__1", "label", "text"]
    assert len({row[0] for row in rows}) == 15
    assert all("2026-10-26" <= row[1] <= "2026-11-01" and row[3] == "" for row in rows)
    unsure = np.abs([float(row[2]) - 0.5 for row in rows])
    others = [line.split(",") for line in path.read_text().splitlines()[1:]]
    every = np.abs([float(r[2]) - 0.5 for r in others if "2026-10-26" <= r[1] <= "2026-11-01"])
    assert np.median(unsure) < np.median(every)
    capsys.readouterr()
    assert monday(path, "--ask", 15) == 2
    assert "--ask N and --out FILE go together" in capsys.readouterr().err
    # The state knows of the period, and FILE has no row of it.
    state = ["--state", tmp_path / "state"]
    assert monday(path, *state, "--method", "labeled") == 0
    older = ["--where", "date < 2026-09-14", "--ask", 5, "--out", chosen]
    assert monday(path, *state, *older) == 2
    assert "no item without a label of 2026-10-26" in capsys.readouterr().err


def test_the_rows_of_files_in_parts_are_those_in_memory(tmp_path):
    path = tmp_path / "spam.csv"
    spam_file(path)
    rows = rows_of(path, ["date"])
    result = monitor_files(rows, Asked("date", "week", "accuracy"))
    in_parts = rows_to_label(result, 12, path, rows)
    at_once = rows_to_label(result, 12, path, fl.read_predictions(path))
    assert in_parts == at_once
    assert len(in_parts["item"]) == 12


def test_gaps_are_said_and_shown_as_gaps(tmp_path):
    items, _, week = weekly(n=200)
    over_time = fl.monitor(items.take(~np.isin(week, [3, 6])), "date", "week", "accuracy")
    found = over_time.to_dict()
    assert found["gaps"] == ["2026-09-28", "2026-10-19"]
    assert "no items in 2 periods: 2026-09-28, 2026-10-19" in over_time.warnings
    over_time.save_html(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text("utf-8")
    (line,) = re.findall(r'<path class="median" d="(M[^"]*)"', page.split("</ul>")[-1])
    # Weeks 0 to 2, 4 and 5, and week 7 by itself: three stretches, which no line joins.
    stretches = [part.count("L") + 1 for part in line.split("M")[1:]]
    assert stretches == [3, 2, 2]
    assert "Periods without items (2026-09-28, 2026-10-19)" in page


def test_times_with_zones_and_without_are_said(tmp_path):
    path = tmp_path / "spam.csv"
    hours = ["00:30:00+02:00", "23:30:00-05:00", "12:00:00"]
    spam_file(path, at=lambda days: [f"{day}T{hours[i % 3]}" for i, day in enumerate(days)])
    mixed = fl.monitor(path, "at", "week", "accuracy", method="labeled")
    assert "some times (at) have a zone, the others are taken as UTC" in mixed.warnings
    # Half past midnight of a Monday in Berlin is Sunday in UTC.
    assert mixed.periods[0].name == "2026-08-31"
    spam_file(path, at=lambda days: [f"{day}T12:00:00+02:00" for day in days])
    alike = fl.monitor(path, "at", "week", "accuracy", method="labeled")
    assert not any("zone" in said for said in alike.warnings)


def test_a_time_that_cannot_be_read_is_said_with_a_command_that_works(tmp_path, capsys):
    path = tmp_path / "spam.csv"
    spam_file(path, date=lambda days: [*map(str, days[:-1]), "n/k"])
    assert monday(path) == 2
    said = capsys.readouterr().err
    assert "column 'date' holds 'n/k', which is no time" in said
    (where,) = re.findall(r"--where (.*)$", said.strip())
    assert monday(path, "--where", *shlex.split(where)) == 0


@pytest.mark.slow_with("%d/%m/%Y", "%d %b %Y", "%m/%d/%y")
@pytest.mark.parametrize("form", ["%d.%m.%Y", "%d/%m/%Y", "%m/%d/%y", "%d %b %Y", "%d-%b-%Y %H:%M"])
def test_times_that_are_written_otherwise_are_asked_about_with_a_command_that_works(
    tmp_path, capsys, form
):
    path = tmp_path / "spam.csv"
    spam_file(path)
    quick = ("--method", "labeled")
    assert monday(path, *quick) == 0
    by_iso = capsys.readouterr().out
    spam_file(path, date=lambda days: [f"{day:{form}}" for day in days])
    assert monday(path) == 2
    (asked,) = re.findall(r"(--time-format .*) \(\d+ \w+ \d{4}\)$", capsys.readouterr().err.strip())
    assert shlex.split(asked)[1] == form
    assert monday(path, *quick, *shlex.split(asked)) == 0
    assert capsys.readouterr().out == by_iso


def test_a_date_that_can_be_two_days_is_asked_about():
    with pytest.raises(InputError) as caught:
        calendar(["05/04/2026", "06/04/2026"])
    said = str(caught.value)
    assert "%d/%m/%Y (5 April 2026) or" in said
    assert "%m/%d/%Y (4 May 2026)" in said
    found, _ = days_of(np.array(["05/04/2026", None, "06/04/2026"], dtype=object), "t", "%d/%m/%Y")
    assert found.tolist() == ["2026-04-05", NO_TIME, "2026-04-06"]
    # Months as numbers, and a value of another form than the one said.
    assert days_of(np.array([202607.0, 202608.0]), "t", "%Y%m")[0].tolist()[0] == "2026-07-01"
    with pytest.raises(UsageError, match="--time-format %Y%m"):
        calendar([202607, 202608], "month")
    with pytest.raises(InputError, match="no time of the form '%d/%m/%Y'"):
        days_of(np.array(["05/04/2026", "soon"], dtype=object), "t", "%d/%m/%Y")


def test_periods_of_three_rows_are_estimated_and_their_status_says_so():
    items, _, week = weekly(n=200, falls=99)
    few = np.flatnonzero(week == 5)[:3]
    small = items.take(np.concatenate([np.flatnonzero(week != 5), few]))
    over_time = fl.monitor(small, "date", "week", "accuracy")
    row = over_time.get("spam", "accuracy", "2026-10-12")
    assert over_time.periods[5].n_items == 3
    assert 0 <= row.low <= row.value <= row.high <= 1
    assert not over_time.alarms
    assert (str(row.status) == "ok") == (over_time.periods[5].n_labeled >= 10)


def test_the_dashboard_reads_the_table(tmp_path):
    """Every query of every panel and variable runs, with what Grafana puts into it."""
    page = Path(__file__).resolve().parents[2] / "examples" / "grafana_monitor.json"
    dashboard = json.loads(page.read_text("utf-8"))
    path = tmp_path / "spam.csv"
    spam_file(path, language=lambda days: ["de" if i % 2 else "en" for i in range(len(days))])
    to = f"sqlite:///{tmp_path}/m.db#estimates"
    assert monday(path, "--by", "language", "--method", "labeled", "--to", to) == 0
    with closing(sqlite3.connect(tmp_path / "m.db")) as connection:
        chosen = {"__from:date:iso": "2026-09-10T00:00:00.000Z",
                  "__to:date:iso": "2026-12-01T00:00:00.000Z"}  # fmt: skip
        for variable in dashboard["templating"]["list"][1:]:
            values = [row[0] for row in connection.execute(variable["query"]).fetchall()]
            assert values
            chosen[f"{variable['name']}:sqlstring"] = f"'{values[0]}'"
        assert chosen["subgroup:sqlstring"] == "'all items'"
        for panel in dashboard["panels"]:
            (target,) = panel["targets"]
            assert target["rawQueryText"] == target["queryText"] == target["rawSql"]
            query = re.sub(r"\$\{(.*?)\}", lambda found: chosen[found[1]], target["rawSql"])
            rows = connection.execute(query)
            names = [column[0] for column in rows.description]
            assert ("time" in names) == (panel["type"] == "timeseries")
            for override in panel["fieldConfig"]["overrides"]:
                assert override["matcher"]["options"] in names
            # Seven weeks from the second on; and the last one of all items and two groups.
            assert len(rows.fetchall()) == (7 if "time" in names else 3)
    squares = [panel["gridPos"] for panel in dashboard["panels"]]
    assert all(at["x"] + at["w"] <= 24 for at in squares)
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(squares)


def test_the_dashboard_is_one_of_grafana():
    """By the models of its own kit, where that is installed: nothing is lost."""
    kit = pytest.importorskip("grafana_foundation_sdk.models.dashboard")
    encoder = pytest.importorskip("grafana_foundation_sdk.cog.encoder")
    page = Path(__file__).resolve().parents[2] / "examples" / "grafana_monitor.json"
    dashboard = json.loads(page.read_text("utf-8"))
    again = json.loads(encoder.JSONEncoder().encode(kit.Dashboard.from_json(dashboard)))

    def within(one, other):
        if isinstance(one, dict):
            return all(key in other and within(value, other[key]) for key, value in one.items())
        if isinstance(one, list):
            return len(one) == len(other) and all(map(within, one, other))
        return one == other

    assert within(dashboard, again)


def test_a_fall_as_large_as_the_tolerance_is_an_alarm_once_it_is_surely_there():
    """It exceeds the tolerance in half of the draws; a fall by a third of it is none."""
    draws = np.random.default_rng(3).normal(size=(1, 4000, 1))
    base = {"accuracy": np.zeros((3, 4000, 1))}
    fallen = np.concatenate([-0.06 + 0.01 * draws, -0.05 + 0.05 * draws, -0.017 + 0.004 * draws])
    (found,) = (
        fall
        for _, fall in questions._falls(
            SimpleNamespace(directions={"accuracy": 1}, models=("m",)),
            questions._Baseline({"accuracy": fallen}, base, {"accuracy": np.zeros(1, int)}, 0),
            0.05,
        )
    )
    assert found.probability == pytest.approx([0.84, 0.5, 0], abs=0.03)
    assert found.alarm.tolist() == [True, False, False]


def test_a_period_is_complete_where_the_data_reach_as_far_into_it_as_into_others():
    """Weeks with one row of data a week, on whichever day, and weeks of working days."""

    def week(*days):
        return [str(dt.date(2026, 9, 7) + dt.timedelta(days=d)) for d in days]

    for days, complete in (
        (week(0, 7, 14, 21), True),
        (week(5, 12, 19, 26), True),
        (week(*range(5), *range(7, 12), *range(14, 19)), True),
        (week(*range(5), *range(7, 12), *range(14, 17)), False),
        (week(*range(15)), False),
        (week(*range(14)), True),
    ):
        assert calendar(days, "week")[0].complete == complete, days


@pytest.mark.slow
def test_three_rows_of_a_new_week_change_nothing():
    items, *_ = weekly(n=300, falls=5)
    mondays = items.groups["date"]
    days = np.array([day + dt.timedelta(days=i % 7) for i, day in enumerate(mondays)], object)
    over_time = fl.monitor(items.with_groups({"date": days}), "date", every="week")
    later = max(mondays) + dt.timedelta(days=7)
    monday = np.append(np.full(3, later), days[3:])
    early = fl.monitor(items.with_groups({"date": monday}), "date", every="week")
    assert early.complete.name == over_time.periods[-1].name
    assert [c.alarm for c in early.changes] == [c.alarm for c in over_time.changes]
    assert early.to_dict()["complete"] == early.complete.name


def two_classifiers(seed, weeks=9, n=300, sick=7, begins=0):
    """One stays as it is; the other, there from a week on, is noise in the last weeks."""
    rng = np.random.default_rng(seed)
    week = np.repeat(np.arange(weeks), n)
    truth = (rng.random(len(week)) < 0.35).astype(int)
    well = 2 * rng.normal(2.5 * (truth - 0.5))
    other = 2 * rng.normal(np.where(week >= sick, 0, 3) * (truth - 0.5))
    p = 1 / (1 + np.exp(-np.column_stack([well, np.where(week < begins, np.nan, other)])))
    labels = np.where(rng.random(len(week)) < 0.12, truth, -1)
    days = np.array([str(dt.date(2026, 9, 7) + dt.timedelta(weeks=int(w))) for w in week], object)
    items = fl.Predictions(
        p, labels, models=["well", "sick"], groups={"date": days}, classes=[0, 1]
    )
    return items, ((p[:, 0] > 0.5) == truth)[week == weeks - 1].mean()


@pytest.mark.slow
@pytest.mark.parametrize("begins", [0, 4])
def test_a_classifier_is_not_blamed_for_the_fall_of_another(begins):
    """Not even of one that came later, which is compared with its own first periods."""
    held = 0
    for seed in range(3):
        items, truth = two_classifiers(seed, begins=begins)
        over_time = fl.monitor(items, "date", every="week", metrics="accuracy")
        alarms = {change.model: change.alarm for change in over_time.changes}
        assert alarms == {"well": False, "sick": True}
        row = over_time.get("well", "accuracy")
        held += row.low <= truth <= row.high
    assert held >= 2


def test_draws_in_which_a_metric_is_undefined_are_of_no_fall():
    draws = np.full((3, 100, 1), 0.9)
    draws[2, 3:] = np.nan
    draws[2, :3] = 0
    levels, first = questions._before(draws, 4)
    assert (first[0], levels[2, 5, 0]) == (1, 0.9)
    base = questions._Baseline({"recall": draws}, {"recall": levels}, {"recall": first}, 0)
    told = SimpleNamespace(directions={"recall": 1}, models=("m",))
    ((_, found),) = questions._falls(told, base, 0.05)
    assert found.probability[1:].tolist() == [0, 0.03]


def test_a_last_period_without_a_label_is_said():
    items, _, week = weekly(n=200, falls=99)
    blank = items.with_labels(np.where(week < week.max(), items.labels, -1))
    text = fl.monitor(blank, "date", every="week", metrics="accuracy").summary()
    assert "nobody can say" in " ".join(text.split())
    assert "no sign" not in text
