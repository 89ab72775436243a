"""The record of labels: what is read of it, and what stands in the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labeling_tables import table_of

import fewlabels as fl
from fewlabels.data.label_record import (
    Event,
    Header,
    content_digest,
    key_hash,
    keys_digest,
    parse_record,
    read_record,
)
from fewlabels.labeling.journal import Journal


def digest_of(n: int) -> str:
    """Of the first items of `table_of`."""
    return keys_digest(np.array([key_hash(f"c{i:03d}") for i in range(n)], dtype=np.uint64))


HEADER = Header("comments.csv", "id", 60, digest_of(60), ("fine", "toxic"), "toxic", "anna", "t0")


def event(kind: str, item: str, label: str | None = None, **more: Any) -> Event:
    if kind in ("label", "cannot-say"):
        more = {"order": "random", "probability": 0.1, "left": 10} | more
    return Event(kind, item, more.pop("annotator", "anna"), "t1", label, **more)  # type: ignore[arg-type]


def lines(*events: Event, header: Header = HEADER) -> bytes:
    return header.line() + b"".join(e.line() for e in events)


def test_the_last_word_on_an_item_stands() -> None:
    record = parse_record(
        lines(
            event("label", "a", "fine"),
            event("label", "b", "toxic"),
            event("change", "a", "toxic"),
            event("cannot-say", "c"),
            event("change", "b", None),
            event("note", "c", text="two\nlines"),
        )
    )
    assert record.labels == {"a": "toxic"}
    assert list(record.decisions) == ["a", "b", "c"]
    assert record.ledger.notes == {"c": ["two\nlines"]}
    assert (record.n_events, record.torn, record.header) == (6, 0, HEADER)


def test_an_undo_takes_back_the_last_decision_of_its_item() -> None:
    record = parse_record(
        lines(
            event("label", "a", "fine", probability=0.25),
            event("change", "a", "toxic"),
            event("undo", "a"),
            event("label", "b", "toxic"),
            event("undo", "b"),
            event("undo", "b"),
        )
    )
    assert record.labels == {"a": "fine"}
    assert record.decisions["a"].probability == 0.25
    assert record.ledger.actions == ["a"]


def test_a_change_keeps_how_the_item_was_drawn() -> None:
    record = parse_record(
        lines(event("cannot-say", "a", probability=0.5, left=2), event("change", "a", "fine"))
    )
    assert record.decisions["a"][1:] == ("anna", "random", 0.5, 2)


@pytest.mark.parametrize(
    "tail", [b'{"event": "la', b"\x00" * 300 + b"\n", b"{}x\n", b'{"event"}\n']
)
def test_a_last_line_that_was_cut_short_is_dropped_and_counted(tail: bytes) -> None:
    whole = lines(event("label", "a", "fine"))
    record = parse_record(whole + tail)
    assert (record.labels, record.size, record.torn) == ({"a": "fine"}, len(whole), len(tail))


def test_weights_are_one_for_random_order_and_those_of_lure_for_others() -> None:
    drawn = [event("label", f"x{m}", "fine", probability=1 / (20 - m), left=20 - m)
             for m in range(5)]  # fmt: skip
    assert parse_record(lines(*drawn)).weights == {f"x{m}": 1.0 for m in range(5)}
    q = (0.3, 0.1, 0.2)
    drawn = [event("label", f"x{m}", "fine", probability=q[m], left=20 - m) for m in range(3)]
    n, size = 20, 3
    wanted = {
        f"x{m - 1}": 1 + (n - size) / (n - m) * (1 / ((n - m + 1) * q[m - 1]) - 1)
        for m in (1, 2, 3)
    }
    assert parse_record(lines(*drawn)).weights == pytest.approx(wanted)


BAD = {
    "newer": (lines().replace(b'"format": 1', b'"format": 2'), "newer version .format 2"),
    "no items": (lines().replace(b'"items": 60', b'"items": "many"'), "does not say of which"),
    "cut header": (HEADER.line()[:40], "cut short in its first line"),
    "unknown class": (lines(event("label", "a", "fyne")), "line 2: unknown class 'fyne'; did you"),
    "no class": (lines(event("label", "a")), "line 2: unknown class None"),
    "unknown event": (
        lines() + b'{"event": "delete", "item": "a"}\n' + b"{}\n",
        "line 2: no event",
    ),
    "no JSON inside": (lines() + b"what\n" + b"[]\n" + b"{}\n", "line 2: no event"),
    "no item": (lines() + b'{"event": "undo"}\n', "line 2: no event"),
    "infinite": (lines(event("label", "a", "fine")).replace(b"0.1,", b"Infinity,"), "line 2: no"),
    "probability": (lines(event("label", "a", "fine", probability=0.0)), "above 0 among 1 item"),
    "left": (lines(event("label", "a", "fine", left=0)), "above 0 among 1 item or more"),
    "half a draw": (lines(event("label", "a", "fine", left=None)), "got 0.1 among None"),
    "no record": (b'{"a": 1}\n', "is no record of labels"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_record_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    content, message = BAD[name]
    path = tmp_path / "x.labels.jsonl"
    path.write_bytes(content)
    with pytest.raises(fl.InputError, match=message) as caught:
        read_record(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value).splitlines()) == 1


def test_an_event_is_one_line_of_plain_text_whatever_its_names_hold() -> None:
    hostile = 'a"\n\u2028\x00\ud800 ü'
    made = event("note", hostile, text=hostile).line()
    assert made.isascii()
    assert made.count(b"\n") == 1
    assert json.loads(made)["item"] == hostile


ODD = {
    "no JSON": b"what\n",
    "half a character": event("note", "c001", text="\ud800").line(),
    "a probability of nothing": event("label", "c001", "fine", probability=1e-300).line(),
    "more left than there are": event("label", "c001", "fine", left=10**400).line(),
    "a truth for a number": event("label", "c001", "fine", left=True).line(),
    "NaN": event("label", "c001", "fine").line().replace(b"0.1,", b"NaN,"),
    "an item that is a list": b'{"event": "note", "item": [], "annotator": "a", "time": "t"}\n',
    "nested": b'{"event": ' + b"[" * 20_000 + b"]" * 20_000 + b"}\n",
}


@pytest.mark.parametrize("name", ODD)
def test_a_line_that_is_no_event_is_said_and_the_rest_is_kept(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.labels.jsonl"
    before, after = event("label", "c003", "toxic"), event("label", "c005", "fine")
    path.write_bytes(lines(before) + ODD[name] + after.line())
    record = read_record(path)
    assert record.labels == {"c003": "toxic", "c005": "fine"}
    (said,) = record.notes(path)
    assert said.startswith(f"{path}: line 3: ")
    assert said.endswith("; it is left out")
    assert said in fl.read_predictions(table_of(), labels=path).notes
    with Journal(path, HEADER) as journal:
        assert journal.notes == (said,)
        journal.add(event("label", "c007", "fine"))
    assert read_record(path).labels == {"c003": "toxic", "c005": "fine", "c007": "fine"}


def test_what_nobody_could_read_again_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "x.labels.jsonl"
    with Journal(path, HEADER) as journal:
        before = path.read_bytes()
        for odd in (
            event("note", "c001", text="\ud800"),
            event("label", "c001", "fine", left=10**400),
            event("label", "c001", "rude"),
        ):
            with pytest.raises(fl.InputError, match="this cannot be recorded: "):
                journal.add(odd)
        assert path.read_bytes() == before
        journal.add(event("label", "c001", "fine"))
    assert read_record(path).labels == {"c001": "fine"}


# Whose items they are -----------------------------------------------------------------------------


def shown(table: Any, *rows: int, header: Header = HEADER) -> bytes:
    """A record of some rows, of which the text was shown."""
    found = table.to_pylist()
    return lines(
        *(
            event("label", found[i]["id"], "fine", shown=("text",),
                  content=content_digest({"text": found[i]["text"]}, "id"))
            for i in rows
        ),
        header=header,
    )  # fmt: skip


def test_a_record_of_the_same_names_and_other_contents_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.labels.jsonl"
    path.write_bytes(shown(table_of(), 1, 2))
    assert fl.read_predictions(table_of(), labels=path).n_labeled == 2
    other = table_of().set_column(1, "text", [["something else"] * 60])
    with pytest.raises(fl.InputError, match=r"record of another file, .*: what was labeled"):
        fl.read_predictions(other, labels=path)
    # Labels were drawn without a look at the text, in which two tables may differ in spaces alone.
    spaced = table_of().set_column(
        1, "text", [[f"  {t.as_py()} \n" for t in table_of().column("text")]]
    )
    assert fl.read_predictions(spaced, labels=path).n_labeled == 2


def test_a_file_that_has_grown_keeps_its_labels_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "x.labels.jsonl"
    first = table_of().slice(0, 40)
    header = Header(**(vars(HEADER) | {"items": 40, "digest": digest_of(40)}))
    path.write_bytes(shown(first, 1, 2, header=header))
    found = fl.read_predictions(table_of(), labels=path)
    assert found.n_labeled == 2
    assert any("its 40 items (column 'id') are not the 60 of" in note for note in found.notes)
    blind = tmp_path / "y.labels.jsonl"  # nothing says what was shown
    blind.write_bytes(lines(event("label", "c001", "fine"), header=header))
    with pytest.raises(fl.InputError, match="nothing shows that those in both are the same"):
        fl.read_predictions(table_of(), labels=blind)


# Where any command reads one ----------------------------------------------------------------------


def write(folder: Path, name: str, *events: Event, annotator: str = "anna") -> Path:
    path = folder / f"{name}.labels.jsonl"
    path.write_bytes(lines(*events))
    return path


def labels(annotator: str, **said: str) -> list[Event]:
    return [event("label", item, label, annotator=annotator) for item, label in said.items()]


def test_a_record_joins_by_the_item(tmp_path: Path) -> None:
    path = write(tmp_path, "a", *labels("anna", c003="toxic", c001="fine"))
    predictions = fl.read_predictions(table_of(), labels=path)
    assert predictions.labels[[1, 3]].tolist() == [0, 1]
    assert predictions.n_labeled == 2
    estimates = fl.estimate(predictions, "labeled", "accuracy")
    assert estimates.n_labeled == 2


def test_what_is_left_out_of_a_record_is_said(tmp_path: Path) -> None:
    path = write(tmp_path, "a", *labels("anna", c003="toxic", zz="fine"))
    with path.open("ab") as file:
        file.write(b'{"event": "lab')
    notes = fl.read_predictions(table_of(), labels=path).notes
    assert any("the last line was cut short (14 bytes)" in note for note in notes)
    assert any("1 of 2 labels" in note for note in notes)


def test_several_records_say_one_label_of_an_item_or_are_refused(tmp_path: Path) -> None:
    a = write(tmp_path, "a", *labels("anna", c001="fine", c002="toxic"))
    b = write(tmp_path, "b", *labels("ben", c002="toxic", c003="toxic"))
    assert fl.read_predictions(table_of(), labels=[a, b]).n_labeled == 3
    other = write(tmp_path, "c", *labels("cleo", c001="toxic"))
    with pytest.raises(fl.InputError) as caught:
        fl.read_predictions(table_of(), labels=[a, b, other])
    said = str(caught.value)
    assert "item 'c001' has two labels: 'fine' (anna, " in said
    assert "'toxic' (cleo, " in said
    assert "--labels-as counts" in said
    assert "--labels-as votes" in said


def test_several_records_as_counts_and_as_votes(tmp_path: Path) -> None:
    a = write(tmp_path, "a", *labels("anna", c001="fine", c002="toxic"))
    b = write(tmp_path, "b", *labels("ben", c001="toxic", c002="toxic"))
    counts = fl.read_predictions(table_of(), labels=[a, b], labels_as="counts")
    assert counts.histogram is not None
    assert counts.histogram[[0, 1, 2]].tolist() == [[0, 0], [1, 1], [0, 2]]
    assert (counts.n_labeled, counts.models) == (0, ("good", "poor"))
    votes = fl.read_predictions(table_of(), labels=[a, b], labels_as="votes")
    assert votes.models == ("good", "poor", "anna", "ben")
    assert votes.hard[[1, 2], 2:].tolist() == [[0, 1], [1, 1]]
    assert votes.n_labeled == 0


def test_records_beside_tables_and_frames(tmp_path: Path) -> None:
    a = write(tmp_path, "a", *labels("anna", c001="fine"))
    table = tmp_path / "hand.csv"
    table.write_text("item,label\nc005,toxic\n")
    rows = [{"item": "c007", "label": "fine"}]
    found = fl.read_predictions(table_of(), labels=[a, table], item="id")
    assert np.flatnonzero(found.labeled).tolist() == [1, 5]
    assert fl.read_predictions(table_of(), labels=rows).labels[7] == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"labels_as": "both"}, "`labels_as` must be one of votes, counts"),
        ({"labels_as": "votes", "labels": None}, "add --labels"),
        ({"labels_as": "votes", "votes": [{"item": "c001", "annotator": "x", "label": "fine"}]},
         "both give votes"),
    ],
)  # fmt: skip
def test_what_labels_cannot_be(more: dict[str, Any], message: str, tmp_path: Path) -> None:
    a = write(tmp_path, "a", *labels("anna", c001="fine"))
    with pytest.raises(fl.UsageError, match=message):
        fl.read_predictions(table_of(), **({"labels": a} | more))


def test_counts_beside_counts_are_refused(tmp_path: Path) -> None:
    a = write(tmp_path, "a", *labels("anna", c001="fine"))
    with pytest.raises(fl.InputError, match="'h__fine' already counts annotators"):
        fl.read_predictions(table_of(h__fine=[0] * 60), labels=a, labels_as="counts")


def test_an_empty_record_and_one_of_other_items(tmp_path: Path) -> None:
    with pytest.raises(fl.InputError, match="there are no labels in it yet"):
        fl.read_predictions(table_of(), labels=write(tmp_path, "a", event("cannot-say", "c001")))
    with pytest.raises(fl.InputError, match=r"are the items the same.*there 'z', here 'c000'"):
        fl.read_predictions(table_of(), labels=write(tmp_path, "b", *labels("anna", z="fine")))


def test_an_unknown_class_is_told_as_of_any_labels(tmp_path: Path) -> None:
    header = Header("comments.csv", "id", 60, digest_of(60), ("fine", "rude"), "rude", "anna", "t0")
    path = tmp_path / "a.labels.jsonl"
    path.write_bytes(lines(*labels("anna", c001="rude"), header=header))
    with pytest.raises(fl.InputError, match="rude"):
        fl.read_predictions(table_of(), labels=path)


def test_the_file_s_own_unknown_labels_are_filled(tmp_path: Path) -> None:
    path = write(tmp_path, "a", *labels("anna", c001="fine", c002="toxic"))
    own = ["-1", "-1", "", "toxic", *[None] * 56]
    found = fl.read_predictions(table_of(label=own), labels=path)
    assert np.flatnonzero(found.labeled).tolist() == [1, 2, 3]


def test_a_record_in_a_folder_of_data_is_not_data(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for part in range(2):
        rows = table_of().slice(30 * part, 30).to_pylist()
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"part-{part}.jsonl").write_text(text)
    write(folder, "part-0.jsonl", *labels("anna", c001="fine"))
    found = fl.read_predictions(folder, labels=folder / "part-0.jsonl.labels.jsonl")
    assert (found.n_items, found.n_labeled) == (60, 1)


def test_a_whole_last_line_without_its_end_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.labels.jsonl"
    path.write_bytes(lines(event("label", "c003", "toxic"), event("label", "c005", "fine"))[:-1])
    record = read_record(path)
    assert (record.labels, record.torn) == ({"c003": "toxic", "c005": "fine"}, 0)
    with Journal(path, HEADER) as journal:
        assert journal.notes == ()
        journal.add(event("label", "c007", "fine"))
    assert read_record(path).labels == {"c003": "toxic", "c005": "fine", "c007": "fine"}


def test_a_record_without_its_first_line_is_no_table_of_labels(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(lines(event("label", "c003", "toxic")).split(b"\n", 1)[1])
    with pytest.raises(fl.InputError, match="record of labels without its first line"):
        fl.read_predictions(table_of(), labels=path)


def test_intervals_at_any_time_are_of_the_record_s_own_items(tmp_path: Path) -> None:
    drawn = [event("label", f"c{i:03d}", "fine", left=60 - i) for i in range(12)]
    path = write(tmp_path, "a", *drawn)
    found = fl.estimate(fl.read_predictions(table_of(), labels=path), "labeled", "accuracy")
    assert fl.anytime(found, path).diagnostics["anytime"]["labels"] == 12
    other = tmp_path / "b.labels.jsonl"
    header = Header(**(vars(HEADER) | {"digest": digest_of(59)}))
    other.write_bytes(lines(*drawn, header=header))
    with pytest.raises(fl.InputError, match="is the record of another file"):
        fl.anytime(found, other)
