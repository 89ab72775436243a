"""A session without its faces: what comes next, what counts, and what may be taken back."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labeling_tables import table_of

import fewlabels as fl
from fewlabels.data.label_record import read_record
from fewlabels.labeling import items as items_module
from fewlabels.labeling.session import DecidedError, Session, class_keys

Open = Callable[..., Session]


def first(session: Session) -> str:
    return str(session.progress()["queue"][0]["key"])


def wait(session: Session) -> dict[str, Any]:
    """The estimates of all labels there are."""
    deadline = time.monotonic() + 60
    while not (report := session.estimate()) or not report["fresh"]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return report


def test_every_item_comes_once_with_the_probability_of_its_draw(
    opened: Open, file: Path, tmp_path: Path
) -> None:
    session = opened()
    keys = []
    while session.progress()["queue"]:
        keys.append(first(session))
        session.decide(keys[-1], ("fine", "toxic", None)[len(keys) % 3])
    assert sorted(keys) == [f"c{i:03d}" for i in range(60)]
    assert keys != sorted(keys)
    record = read_record(f"{file}.labels.jsonl")
    drawn = [(d.order, d.probability, d.left) for d in record.decisions.values()]
    assert drawn == [("random", pytest.approx(1 / left), left) for left in range(60, 0, -1)]
    assert session.progress() | {"recent": 0, "queue": 0, "version": 0} == {
        "labeled": 40, "cannot_say": 20, "known": 0, "items": 60, "left": 0, "queue": 0,
        "recent": 0, "undo": keys[-1], "version": 0, "notice": None,
    }  # fmt: skip


def test_who_goes_on_gets_the_item_that_was_next(opened: Open) -> None:
    session = opened()
    for _ in range(3):
        session.decide(first(session), "fine")
    wanted = first(session)
    session.close()
    assert first(opened()) == wanted


def test_an_undone_item_is_next_again_and_keeps_its_draw(opened: Open, file: Path) -> None:
    session = opened()
    key = first(session)
    session.decide(key, "fine")
    session.decide(first(session), "toxic")
    before = session.journal.decisions[key]
    for _ in range(2):
        session.undo()
    assert first(session) == key
    session.decide(key, "toxic")
    after = read_record(f"{file}.labels.jsonl").decisions[key]
    assert after[2:] == before[2:]
    assert after.label == "toxic"


def test_an_undo_takes_back_a_change_and_says_of_what(opened: Open) -> None:
    session = opened()
    a, _ = first(session), session.decide(first(session), "fine")
    b, _ = first(session), session.decide(first(session), "fine")
    session.change(a, "toxic")
    session.change(a, "toxic")  # the same again is no change
    assert session.undoable() == a
    assert session.undo(a) == a
    assert session.journal.decisions[a].label == "fine"
    with pytest.raises(DecidedError, match="the last decision is of item"):
        session.undo(a)
    assert session.undo() == b
    session.undo()
    with pytest.raises(fl.UsageError, match="there is nothing to undo"):
        session.undo()


def test_what_was_decided_is_gone_through_and_changed(opened: Open) -> None:
    session = opened()
    keys = []
    for _ in range(3):
        keys.append(first(session))
        session.decide(keys[-1], "fine")
    assert session.neighbour(None, -1)["key"] == keys[2]
    assert session.neighbour(keys[1], -1)["key"] == keys[0]
    assert session.neighbour(keys[0], -1) is None
    assert session.neighbour(keys[2], 1) is None
    assert [one["key"] for one in session.recent()] == keys[::-1]
    assert session.item(keys[0])["label"] == "fine"
    assert session.recent()[0]["text"].startswith("comment number ")


def test_what_cannot_be_decided(opened: Open) -> None:
    session = opened()
    key = first(session)
    with pytest.raises(fl.UsageError, match="there is no item 'zz'"):
        session.decide("zz", "fine")
    with pytest.raises(fl.UsageError, match="unknown class 'fien'; did you mean 'fine'"):
        session.decide(key, "fien")
    with pytest.raises(fl.UsageError, match="has no label to change"):
        session.change(key, "fine")
    session.decide(key, "fine")
    with pytest.raises(DecidedError, match=r"is decided already: 'fine' by anna"):
        session.decide(key, "toxic")
    for text in ("", " ", "x" * 5000):
        with pytest.raises(fl.UsageError, match="a note must have"):
            session.note(key, text)
    session.note(key, "hard")
    assert session.item(key)["notes"] == ["hard"]
    assert session.journal.n_events == 2


def test_labels_of_the_file_are_never_asked_for_nor_written(opened: Open, tmp_path: Path) -> None:
    known = [("fine" if i % 2 else "toxic") if i < 50 else None for i in range(60)]
    session = opened(tmp_path / "r.labels.jsonl", source=table_of(label=known))
    assert session.progress()["known"] == 50
    assert session.progress()["left"] == 10
    assert {item["key"] for item in session.progress()["queue"]} <= {
        f"c0{i}" for i in range(50, 60)
    }
    with pytest.raises(fl.UsageError, match="has a label in the frame"):
        session.decide("c001", "fine")
    all_known = table_of(label=["fine", "toxic"] * 30)
    with pytest.raises(fl.InputError, match="every item has a label"):
        opened(tmp_path / "s.labels.jsonl", source=all_known)


def test_predictions_are_shown_only_where_that_is_asked_for_and_noted(
    opened: Open, file: Path
) -> None:
    session = opened()
    assert session.progress()["queue"][0]["answers"] == []
    session.decide(first(session), "fine")
    session.close()
    session = opened(see_predictions=True)
    answers = dict(session.progress()["queue"][0]["answers"])
    assert set(answers) == {"good", "poor"}
    assert answers["good"].endswith("%)")
    session.decide(first(session), "fine")
    lines = Path(f"{file}.labels.jsonl").read_text().splitlines()[1:]
    assert ['"predictions_seen": true' in line for line in lines] == [False, True]


def test_estimates_come_from_the_labels_and_a_guard_beside(opened: Open) -> None:
    session = opened(metrics=["accuracy", "ece"], until=["width:accuracy<=0.9"])
    session.start()
    for _ in range(12):
        session.decide(first(session), "fine")
    report = wait(session)
    assert (report["n"], report["problem"], len(report["rows"])) == (12, None, 4)
    row = report["rows"][0]
    assert (row["model"], row["metric"]) == ("good", "accuracy")
    assert 0 <= row["guard_low"] <= row["value"] <= row["guard_high"] <= 1
    assert row["low"] < row["high"]
    assert report["rows"][1]["guard_low"] is None
    assert report["can_stop"]
    picture = session.picture("good", "accuracy")
    assert picture["points"][-1]["n"] == 12
    assert [g["n"] for g in picture["guard"]] == list(range(1, 13))
    drawn = session.decided()
    hard = session.items.predictions.hard[drawn.rows, 0]
    assert ((hard == drawn.labels).mean() - row["guard_low"]) > 0
    with pytest.raises(fl.UsageError, match="unknown model 'god'; did you mean 'good'"):
        session.picture("god", "accuracy")


def test_an_estimate_that_cannot_be_made_says_why(opened: Open) -> None:
    session = opened(metrics=["accuracy"], method="autoeval")
    report = session.estimate(wait=True)
    assert report is not None
    assert report["rows"] or report["problem"]


def test_what_was_estimated_of_more_labels_is_forgotten(opened: Open) -> None:
    session = opened()
    for _ in range(4):
        session.decide(first(session), "fine")
    session.estimate(wait=True)
    session.undo()
    session.estimate(wait=True)
    assert max(session.monitor.snapshots) == 3


def test_weights_of_labels_drawn_at_random_are_one(opened: Open) -> None:
    session = opened()
    for k in range(6):
        session.decide(first(session), "fine" if k else None)
    np.testing.assert_allclose(session.decided().weights(), np.ones(6))


def test_the_page_weighs_labels_as_the_record_does(
    opened: Open, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where somebody could not say the class of an item that was drawn by its gain."""
    from fewlabels.labeling import monitor as monitor_module

    judged = []

    def estimated(predictions: fl.Predictions, *arguments: Any, **more: Any) -> fl.Estimates:
        judged.append(predictions)
        return fl.estimate(predictions, *arguments, **more)

    monkeypatch.setattr(monitor_module, "estimate", estimated)
    record = tmp_path / "a.labels.jsonl"
    session = opened(record, order="informative")
    for k in range(4):
        session.decide(first(session), ("fine", "toxic")[k % 2])
    session._draw_more(8)
    for k in range(7):
        session.decide(first(session), None if k == 4 else "fine")
    session.estimate(wait=True)
    session.close()
    read = fl.read_predictions(file, labels=record)
    wanted = read.label_weight[read.labeled]
    assert not np.allclose(wanted, 1)
    found = judged[-1].label_weight[judged[-1].labeled]
    np.testing.assert_allclose(found, wanted)


def test_a_large_file_is_sampled_by_its_keys(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same items whatever the order of the rows, and those of the record in any sample."""
    monkeypatch.setattr(items_module, "POOL_ROWS", 25)
    table = table_of(300)
    session = opened(tmp_path / "a.labels.jsonl", source=table)
    assert len(session.items.keys) == 25
    assert session.progress()["items"] == 300
    key = first(session)
    session.decide(key, "fine")
    session.close()
    order = np.random.default_rng(0).permutation(300)
    again = opened(tmp_path / "a.labels.jsonl", source=table.take(order), seed=5)
    assert key in again.items.place
    same = opened(tmp_path / "b.labels.jsonl", source=table.take(order))
    assert set(same.items.keys) == set(session.items.keys)
    row = session.items.place[key]
    assert session.items.text(row, "text") == same.items.text(same.items.place[key], "text")


@pytest.mark.parametrize(
    ("classes", "keys"),
    [
        (["fine", "toxic"], ["1 f", "2 t"]),
        (["no", "yes"], ["1 o", "2 y"]),  # n is a note
        (["cat", "cow", "unicorn"], ["1 c", "2 o", "3 i"]),
        (["1", "2", "3", "4", "5"], ["1", "2", "3", "4", "5"]),
        (["s", "u"], ["1", "2"]),
        (["Über", "ß"], ["1 ü", "2"]),
        ([f"k{i}" for i in range(11)], ["1 k", *map(str, range(2, 10)), "", ""]),
    ],
)
def test_keys_of_classes(classes: list[str], keys: list[str]) -> None:
    found = class_keys(classes)
    assert [" ".join(found[name]) for name in classes] == keys


def test_an_order_that_fails_leaves_nobody_waiting(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Items are drawn uniformly then, and the page and the record say so."""
    from fewlabels.labeling import session as session_module

    session = opened(order="informative")
    drawn = session_module.next_items

    def fails(*arguments: Any, order: str, **more: Any) -> Any:
        if order == "informative":
            raise fl.UsageError("the method is too slow")
        return drawn(*arguments, order=order, **more)

    monkeypatch.setattr(session_module, "next_items", fails)
    session.start()
    for _ in range(12):
        session.decide(first(session), "fine")
    deadline = time.monotonic() + 20
    while session.progress()["notice"] is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert session.progress()["notice"] == "items are drawn at random: the method is too slow"
    orders = [d.order for d in session.journal.decisions.values()]
    assert orders[-1] == "random"
    assert session.estimate(wait=True) is not None
