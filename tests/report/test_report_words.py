from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import NASTY
from rich.cells import cell_len

from fewlabels.errors import one_line
from fewlabels.report.document import Listing, Para, Table, name
from fewlabels.report.terminal import render_parts
from fewlabels.report.words import (
    enumerated,
    escape_control,
    fit,
    number_format,
    plural,
    probability,
    short_names,
)

# Lone surrogates included: they arrive from JSON and cannot be encoded.
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)


@given(ANY_TEXT)
def test_clean_text_is_one_line_that_can_be_encoded(text: str) -> None:
    cleaned = escape_control(text)
    cleaned.encode()
    assert len(cleaned.splitlines()) <= 1
    assert not {unicodedata.category(c) for c in cleaned} & {"Cc", "Cs", "Zl", "Zp"}


def test_clean_keeps_emoji_whole_and_turns_no_line_around() -> None:
    assert escape_control("👩‍👩‍👧") == "👩‍👩‍👧"
    assert escape_control("\u202eabc") == "\\u202eabc"
    assert escape_control("\x1b[31mred") == "\\x1b[31mred"
    assert escape_control(3) == "3"


@given(ANY_TEXT.map(escape_control), st.integers(0, 30))
def test_fit_never_takes_more_columns(text: str, width: int) -> None:
    assert cell_len(fit(text, width)) <= width
    if cell_len(text) <= width:
        assert fit(text, width) == text


def test_fit_keeps_both_ends() -> None:
    assert fit("beginning-middle-end", 11) == "begi...-end"
    assert fit("模型一二三四五六", 10) == "模型...六"


def test_fit_leaves_no_mark_without_its_character() -> None:
    assert fit("aaaaaaae\u0301b", 5) == "a...b"


@given(st.lists(ANY_TEXT, max_size=8).map(" ".join), st.integers(12, 40))
def test_wrap_stays_within_the_width_and_loses_nothing(text: str, width: int) -> None:
    lines = render_parts([Listing([name(text)])], width).split("\n")
    assert all(cell_len(line) <= width for line in lines)
    squeezed = re.sub("[\u200b\u200d]", "", "".join("".join(lines).split()))
    assert squeezed == "-" + "".join(escape_control(text).split()).replace("\u200d", "")


@pytest.mark.parametrize("command", ["::error::x", "##[error]x", "##vso[task.complete]x"])
def test_no_line_is_a_command_to_ci(command: str) -> None:
    """Which reads what programs print: `::` in front of a line, `##[` and `##vso[` anywhere."""
    table = Table(["", "n"], [[command, "1"], [f"a {command}", "2"]], "")
    shown = render_parts([Para(f"{command} leads. " * 9), table, Para(f"  {command}")])
    for text in (shown, one_line(command), one_line(f"the class {command!r}")):
        assert not re.search(r"(?m)^\s*::|##(\[|vso\[)", text)
        assert command in text.replace("\u200b", "")
    assert one_line("a ::b") == "a ::b"


@pytest.mark.parametrize("width", [10, 14, 20, 400])
def test_short_names_differ_and_fit(width: int) -> None:
    names = [*NASTY, "same\n", "same\\n", *(f"a/long/{k:02d}/name/of/a/model" for k in range(30))]
    short = short_names(names, width)
    assert list(short) == names
    assert len(set(short.values())) == len(names)
    assert all(cell_len(text) <= width for text in short.values())


def test_names_that_differ_in_the_middle_keep_what_differs() -> None:
    names = [f"organisation/family-{k:02d}-of-models/final" for k in range(30)]
    assert short_names(names, 14)[names[7]].startswith("...07")


@pytest.mark.parametrize(
    ("values", "value", "text"),
    [
        ([0.9, 0.1], 0.91234, "0.912"),
        ([12.0], 12.0, "12.000"),
        ([0.02, 0.0001], 0.0001, "0.000"),
        ([0.0004], 0.0004, "4.00e-04"),
        ([2e6], 2e6, "2.00e+06"),
        ([0.5], -0.0001, "0.000"),
        ([0.5], -0.0, "0.000"),
        ([-0.5], -0.25, "-0.250"),
        ([0.5, None], None, "undefined"),
        ([], 0.0, "0.000"),
    ],
)
def test_number_format(values: list[float | None], value: float | None, text: str) -> None:
    assert number_format(values)(value) == text


def test_a_probability_is_never_quite_certain() -> None:
    assert [probability(p) for p in (None, 0.0, 0.004, 0.006, 0.994, 0.996)] == [
        "-", "<1%", "<1%", "1%", "99%", ">99%"
    ]  # fmt: skip


def test_small_words() -> None:
    assert plural(0, "item") == "0 items"
    assert plural(1, "item") == "1 item"


def test_names_as_a_phrase() -> None:
    assert enumerated(["a"]) == "a"
    assert enumerated(["a", "b", "c"], 4) == "a, b and c"
    assert enumerated(list("abcdef"), 4) == "a, b, c, d and 2 others"


def test_columns_are_aligned_by_what_they_take() -> None:
    table = Table(["", "n"], [["模型", "1"], ["abcde", "10"]], "")
    assert render_parts([table]) == "          n\n  模型    1\n  abcde  10"
