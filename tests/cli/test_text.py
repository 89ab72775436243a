"""Text in and out."""

from __future__ import annotations

import click
import pytest

from fewlabels.cli.text import check_choice, comma_list, text
from fewlabels.errors import UsageError, one_line


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain ünïcode 😀", "plain ünïcode 😀"),
        ("a\r\nb\tc", r"a\r\nb\tc"),
        ("\x1b[31m\x00\x7f", r"\x1b[31m\x00\x7f"),
        ("\u2028\x85\u202e", r"\u2028\x85\u202e"),
        ("\udcff", r"\udcff"),
    ],
)
def test_one_line(given: str, shown: str) -> None:
    assert one_line(given) == shown
    assert len(one_line(given).splitlines()) == 1


def test_comma_list_keeps_whole_names() -> None:
    assert comma_list("a,,b , a") == ["a", "b"]
    assert comma_list(["x,y", "a,b"], whole={"x,y": 1}) == ["x,y", "a", "b"]
    assert comma_list([]) == []


def test_check_choice_names_the_nearest() -> None:
    check_choice("model", "good", ["good", "poor"])
    with pytest.raises(UsageError, match=r"unknown model 'god'; did you mean 'good'\? choose from"):
        check_choice("model", "god", ["good", "poor"])
    with pytest.raises(UsageError, match=r"unknown model 'zzz'; choose from good, poor"):
        check_choice("model", "zzz", ["good", "poor"])
    with pytest.raises(UsageError, match="the file has none"):
        check_choice("group", "zzz", [])


def test_text_refuses_undecodable_bytes() -> None:
    assert text("ü😀") == "ü😀"
    with pytest.raises(click.BadParameter, match="must be text"):
        text("a\udcffb")
