"""Tables for people: what a spreadsheet would run is text, and the same text when read again."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click import Context, Option

import fewlabels as fl
from fewlabels.cli.app import app

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., Path]

CLASSES = ["=cmd|' /C calc'!A0", "-2"]
ITEMS = ["=1+1", "@here", "+x", "-y", "\ttab", "'=quoted", "''+twice", "-2.5e3", "+7", "plain",
         "'plain", "-", "=", "\rline", "'-1", "=HYPERLINK(\"http://x\",\"y\")",
         "＝1+1", "＋1", "－1", "＠x"]  # fmt: skip
MODEL = "=m"


@pytest.fixture
def hostile(write: Write) -> Path:
    """Items, classes and a classifier that begin as formulas do."""
    labels = [CLASSES[i % 2] if i < 60 else "" for i in range(90)]
    # Behind the first characters there is a number, as names of items differ.
    items = [*ITEMS, *(f"{ITEMS[i % 5]}{i}" for i in range(90 - len(ITEMS)))]
    table: dict[str, Any] = {
        "item": items,
        "label": labels,
        "=site": ["@a", "+b", "3"] * 30,
        "rival": ["+b", "3", "@a"] * 30,
        "human": [(["@a", "+b", "3"][i % 3] if i % 4 else "tie") * (i < 60) for i in range(90)],
        "day": [f"2026-09-0{1 + i // 45}" for i in range(90)],
    }
    p = [round(0.2 + 0.6 * (i % 2) + 0.1 * ((i % 7) / 7 - 0.5), 4) for i in range(90)]
    table |= {f"p__{MODEL}__{CLASSES[0]}": [round(1 - x, 4) for x in p]}
    table |= {f"p__{MODEL}__{CLASSES[1]}": p}
    table |= {f"h__{c}": [(i + k) % 3 for i in range(90)] for k, c in enumerate(CLASSES)}
    return write(table)


def cells(path: Path) -> list[str]:
    with path.open(newline="", encoding="utf-8") as file:
        return [cell for row in csv.reader(file) for cell in row]


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


EXPORTS: dict[str, list[str]] = {
    "monitor": ["FILE", "--time", "day", "--metrics", "accuracy", "--to", "OUT"],
    "rank": [
        "FILE",
        "--first",
        "=site",
        "--second",
        "rival",
        "--winner",
        "=site",
        "--label",
        "human",
        "--item",
        "item",
        "--out",
        "OUT",
    ],
    "estimate": ["FILE", "--metrics", "accuracy", "--labels-out", "OUT"],
    "score": ["FILE", "--disagreements", "OUT"],
    "annotations": ["FILE", "--by", "=site", "--out", "OUT"],
    "calibrate": ["FILE", "--method", "temperature", "--out", "OUT"],
    "calibration": ["FILE", "--out", "OUT"],
    "curve": ["FILE", "--out", "OUT"],
    "threshold": ["FILE", "--min-precision", ".5", "--out", "OUT"],
    "label-next": ["FILE", "--out", "OUT"],
    "label": ["FILE", "--labels", "RECORD", "--out", "OUT"],
    "convert": ["FILE", "OUT"],
}


def exported(command: str, hostile: Path, cli: Run, *options: str) -> Path:
    out, record = hostile.with_name("out.csv"), hostile.with_name("mine.labels.jsonl")
    if command == "label" and not record.exists():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdin", io.StringIO("1\nq\n"))
            code, _, err = cli(
                "label", hostile, "--terminal", "--show", "=site", "--labels", record
            )
            assert code == 0, err
    places = {"FILE": hostile, "OUT": out, "RECORD": record}
    code, _, err = cli(command, *(places.get(a, a) for a in EXPORTS[command]), *options)
    assert code == 0, err
    return out


def test_every_command_with_a_table_has_the_option() -> None:
    found = {
        name
        for name, command in app.commands.items()
        for param in command.get_params(Context(command))
        if isinstance(param, Option) and param.opts[0] == "--raw-cells"
    }
    assert found == EXPORTS.keys()


@pytest.mark.few(4)
@pytest.mark.slow_with("threshold", "label-next")
@pytest.mark.parametrize("command", EXPORTS)
def test_no_cell_is_a_formula(command: str, cli: Run, hostile: Path) -> None:
    found = cells(exported(command, hostile, cli))
    live = [c for c in found if c[:1] in tuple("=+-@\t\r＝＋－＠") and c and not is_number(c)]
    assert live == []
    assert any(c.startswith("'") for c in found)
    raw = cells(exported(command, hostile, cli, "--raw-cells"))
    assert [c for c in raw if c[:1] in tuple("=@") and c]


def test_what_is_written_is_read_again(cli: Run, hostile: Path) -> None:
    """Names of items, classes, classifiers and groups are those of the file that was read."""
    read = fl.read_predictions(hostile)
    again = fl.read_predictions(exported("convert", hostile, cli))
    assert again.models == read.models == (MODEL,)
    assert again.classes == read.classes
    assert set(map(str, read.classes)) == set(CLASSES)
    assert again.item_names == read.item_names
    assert list(read.groups) == list(again.groups)
    for name, values in read.groups.items():
        assert list(again.groups[name]) == list(values)
    assert (again.labels == read.labels).all()
    (names,) = again.item_names.values()
    # An apostrophe before a formula marks it as text, whoever wrote the file.
    assert list(names[: len(ITEMS)]) == [re.sub("^'('*[=+])", r"\1", name) for name in ITEMS]


def test_a_name_that_begins_with_an_apostrophe_stays_another(tmp_path: Path, cli: Run) -> None:
    file, out = tmp_path / "a.csv", tmp_path / "out.csv"
    rows = ["'plain,0.5,a", "''plain,0.25,b", "'-1,0.5,", "-1,0.75,"]
    file.write_text("\n".join(["item,p__m__b,label", *rows]))
    assert cli("convert", file, out)[0] == 0
    (names,) = fl.read_predictions(out).item_names.values()
    assert list(names) == ["'plain", "''plain", "'-1", "-1"]
