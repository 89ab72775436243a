"""Performance over time: periods, what changed and since when, and what is said of bad times."""

from __future__ import annotations

import datetime as dt
import json
import re

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.cli.app import main
from fewlabels.errors import InputError, UsageError
from fewlabels.questions.over_time import HELD, Calendar, condensed


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


def test_what_stays_raises_no_alarm():
    quiet = 0
    for seed in range(6):
        items, _, _ = weekly(falls=99, seed=seed, labels=25)
        over_time = fl.monitor(items, "date", metrics="accuracy")
        quiet += not over_time.alarms
    assert quiet == 6


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


def test_periods_are_named_by_their_first_day_whatever_times_are_written_as():
    days = ["2026-09-09", "2026-09-13", "2026-09-14", "2026-10-01", None]
    written = {
        "text": days,
        "dates": [d and dt.date.fromisoformat(d) for d in days],
        "numbers": [d and int(d.replace("-", "")) for d in days],
        "seconds": [
            d and dt.datetime.fromisoformat(f"{d}T12:00:00+00:00").timestamp() for d in days
        ],
        "zoned": [d and f"{d}T23:30:00-00:30" for d in days[:1]]
        + [d and f"{d}T10:00:00Z" for d in days[1:]],
    }
    for how, values in written.items():
        array = np.empty(5, dtype=object)
        array[:] = values
        weeks = Calendar.of(array, "t", "week")
        assert weeks.names == ("2026-09-07", "2026-09-14", "2026-09-28"), how
        assert weeks.codes.tolist() == [0, 0, 1, 2, -1], how
        assert any("no items in 1 periods: 2026-09-21" in note for note in weeks.notes)
        assert any("1 of 5 items have no time" in note for note in weeks.notes)
        assert not weeks.complete
    assert Calendar.of(np.array(days[:4]), "t", "month").names == ("2026-09-01", "2026-10-01")
    assert Calendar.of(np.array([2019, 2021, 2020]), "t", None).names == ("2019", "2020", "2021")
    assert Calendar.of(np.array([1, 2, 9]), "t", 5).names == ("0", "5")


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
    ],
)  # fmt: skip
def test_times_that_cannot_be_used_are_said(values, every, message):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    with pytest.raises((InputError, UsageError), match=re.escape(message)):
        Calendar.of(array, "t", every)


def test_held_items_stand_for_all_of_their_period():
    items, _, week = weekly(weeks=3, n=5000, labels=10, falls=2)
    held, counts = condensed(items, week, 3)
    assert counts.tolist() == [5000] * 3
    assert held.n_items <= 3 * HELD + items.n_labeled
    assert held.n_labeled == items.n_labeled
    p, q = items.probabilities[:, 0, 1], held.probabilities[:, 0, 1]
    of_held = np.array([d.toordinal() for d in held.groups["date"]])
    for w, day in enumerate(np.unique(of_held)):
        inside = of_held == day
        mean = np.average(q[inside], weights=held.weight[inside])
        share = np.average(q[inside] > 0.5, weights=held.weight[inside])
        assert abs(mean - p[week == w].mean()) < 0.002
        assert abs(share - (p[week == w] > 0.5).mean()) < 0.002


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
