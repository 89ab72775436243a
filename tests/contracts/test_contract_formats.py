"""Files that later versions read: each says its format, all up to the newest are read.

`stored/formats` holds a file of every format that there was. FEWLABELS_RENEW=1 writes those of a
new number, and none anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.calibration.saved import _VERSION as CALIBRATION
from fewlabels.data.label_record import FORMAT as RECORD
from fewlabels.data.label_record import Header, parse_record
from fewlabels.streaming.periods import FORMAT as STATE

STORED = Path(__file__).parents[1] / "stored" / "formats"
ROWS = [
    {"date": f"2026-09-{day:02}", "label": k % 2 if k < 4 else None, "p__net__1": (k % 5) / 5}
    for day in range(1, 15)
    for k in range(8)
]


class Kind(NamedTuple):
    """A format: its newest number, how it says it, and how a file is written and read."""

    newest: int
    mark: bytes
    write: Callable[[Path], Any]
    read: Callable[[Path], Any]


def calibrated(path: Path) -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 60)
    fl.calibration.save(
        {"net": fl.calibration.VectorScaling(penalty=0.1).fit(p, p.argmax(1))}, path
    )


def recorded(path: Path) -> None:
    made = "2026-09-07T00:00:00Z"
    header = Header("items.csv", "id", 3, "0" * 24, ("no", "yes"), "yes", "ann", made)
    path.write_bytes(header.line())


def watched(path: Path) -> Any:
    return fl.monitor(ROWS, "date", "week", "accuracy", state=path)


KINDS = {
    "calibration.json": Kind(CALIBRATION, b'"version": %d', calibrated, fl.calibration.load),
    "labels.jsonl": Kind(
        RECORD, b'"format": %d', recorded, lambda path: parse_record(path.read_bytes())
    ),
    "monitor.state": Kind(STATE, b'"format": %d', watched, watched),
}


def stored(name: str, number: int) -> Path:
    return STORED / f"{number}-{name}"


@pytest.mark.parametrize("name", KINDS)
def test_every_format_that_there_was_is_read(name, tmp_path):
    kind = KINDS[name]
    for number in range(1, kind.newest + 1):
        path = stored(name, number)
        if os.environ.get("FEWLABELS_RENEW") and not path.exists():
            path.parent.mkdir(exist_ok=True)
            kind.write(path)
        copy = tmp_path / path.name
        copy.write_bytes(path.read_bytes())
        assert kind.read(copy)
    assert len([*STORED.glob(f"*-{name}")]) == kind.newest


@pytest.mark.parametrize("name", KINDS)
def test_what_is_written_says_the_newest_format(name, tmp_path):
    kind = KINDS[name]
    kind.write(tmp_path / name)
    assert kind.mark % kind.newest in (tmp_path / name).read_bytes()


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (b"2", "was written by a newer version (format 2, and this one reads up to 1); update"),
        (b"0", "does not say of which format it is"),
        (b'"1"', "does not say of which|no state of"),
        (b"-1", "does not say of which|no state of"),
        (b"1.0", "does not say of which|no state of"),
        (b"1" * 5000, "newer version|no state of|JSON|does not say|cut short"),
    ],
    ids=["newer", "zero", "text", "negative", "real", "long"],
)
@pytest.mark.parametrize("name", KINDS)
def test_another_number_is_one_line(name, number, message, tmp_path):
    kind = KINDS[name]
    content = stored(name, kind.newest).read_bytes()
    mark = kind.mark % kind.newest
    path = tmp_path / name
    path.write_bytes(content.replace(mark, mark[:-1] + number))
    with pytest.raises(fl.InputError) as caught:
        kind.read(path)
    said = str(caught.value)
    assert re.search(message if "|" in message else re.escape(message), said)
    assert "\n" not in said
    assert path.read_bytes() == content.replace(mark, mark[:-1] + number), "left as it was"


@pytest.mark.parametrize("name", KINDS)
def test_without_a_number_is_one_line(name, tmp_path):
    kind = KINDS[name]
    path = tmp_path / name
    path.write_bytes(
        stored(name, kind.newest).read_bytes().replace(kind.mark % kind.newest, b'"x": 1')
    )
    with pytest.raises(fl.InputError, match=r"does not say|no state of|of which items"):
        kind.read(path)
