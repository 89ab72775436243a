"""Names inside messages."""

from __future__ import annotations

import pytest

from fewlabels.data.table import naming_file
from fewlabels.errors import InputError, did_you_mean, listed, one_line, quoted


def test_one_line():
    odd = "a\r\nb\tc\x1b[31m\x00\x7f\udcff\u2028\x85\u202e"
    assert one_line(odd) == r"a\r\nb\tc\x1b[31m\x00\x7f\udcff\u2028\x85\u202e"
    assert one_line("Zoë 🎈") == "Zoë 🎈"
    assert one_line("x" * 50, 10) == "x" * 7 + "..."


def test_quoted():
    assert quoted("a\nb") == r"'a\nb'"
    assert quoted(3) == "3"
    assert len(quoted("x" * 10_000_000)) == 60
    assert len(quoted(["x" * 100])) == 60


def test_listed():
    assert listed("abc") == "a, b, c"
    assert listed(range(1200), 2) == "0, 1 and 1,198 more"
    assert listed([]) == ""


def test_did_you_mean():
    assert did_you_mean("lable", ["weight", "label"]) == "did you mean 'label'? "
    assert did_you_mean("x", ["weight", "label"]) == ""


def test_told_of():
    with pytest.raises(InputError, match=r"^f: wrong\\nthing$"), naming_file("f"):
        raise InputError("wrong\nthing")
    with pytest.raises(InputError, match=r"^wrong$"), naming_file(None):
        raise InputError("wrong")
    with pytest.raises(InputError, match=r"^f: does not fit into memory"), naming_file("f"):
        raise MemoryError
