"""Numbers that pages quote in their sentences, read from what commands wrote.

    python -m benchmarks quoted [--write]

`quoted.toml` holds, for a page, sentences with places for numbers and where each number stands: in
a table of another page that a command wrote, or in a JSON file of results. Without --write it says
which sentences do not say what the results say; with it, it puts the numbers into the pages.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from runs import ROOT, command_line

SENTENCES = ROOT / "benchmarks" / "quoted.toml"
_MARK = re.compile(r"<!-- (?!end )([\w -]+?)(?::.*)? -->")
_TITLE = re.compile(r"(#+) +(.*)|\*\*(.+?)\*\*,?.*|<summary>(.*)</summary>")
_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*)?\.?\d+(?:e[-+]?\d+)?")
_PLACE = re.compile(r"\{(\w+)(?::([^}]*))?\}")


class Figure(str):
    """What a cell says: its text, and as a number the first one in it.

    Formats: none, the text; "n", the first number as it is written; ".1f" and its like, that
    number anew; "p2", with two decimals and no 0 before the point; "%", of a hundred;
    "#2", the first number of the second of the parts that commas divide.
    """

    @property
    def written(self) -> str:
        """The first number as it is written."""
        if (found := _NUMBER.search(self)) is None:
            raise ValueError(f"{self!r} holds no number")
        return found[0]

    @property
    def number(self) -> float:
        """The first number."""
        return float(self.written.replace(",", ""))

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        if spec == "n":
            return self.written
        if spec.startswith("#"):
            return Figure(self.split(", ")[int(spec[1:]) - 1]).written
        if spec == "%":
            return f"{100 * self.number:.0f}"
        if spec.startswith("p"):
            return f"{self.number:.{spec[1:]}f}".replace("0.", ".", 1)
        return format(self.number, spec)


class _Table(NamedTuple):
    """A table, and the titles above it, the nearest last."""

    titles: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def find(source: str) -> Figure:
    """What `source` says.

    "PAGE > TITLE > ROW > COLUMN" is a cell of a table of docs/PAGE.md: TITLE is a title, a bold
    line or the mark above it, or a part of one, ROW the first cell of the row (of several,
    "A | B"), COLUMN its head. "FILE.json > KEY > KEY" is a value of benchmarks/results/FILE.json.

    Raises
    ------
    LookupError
        If there is no such cell, or there are several that differ.
    """
    file, *path = (part.strip() for part in source.split(" > "))
    if file.endswith(".json"):
        value = _json(file)
        for key in path:
            value = value[int(key)] if isinstance(value, list) else value[key]
        return Figure(f"{value:.6g}" if isinstance(value, float) else str(value))
    title, row, column = path
    keys = [key.strip() for key in row.split(" | ")]
    titled = [t for t in _tables(file) if title in t.titles]
    titled = titled or [t for t in _tables(file) if any(title in one for one in t.titles)]
    found = {
        cells[table.header.index(column)]
        for table in titled if column in table.header
        for cells in table.rows if list(cells[: len(keys)]) == keys
    }  # fmt: skip
    if len(found) != 1:
        what = "no cell" if not found else f"{len(found)} cells"
        raise LookupError(f"{what} for {source!r}")
    return Figure(found.pop())


@cache
def _json(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / name).read_text(encoding="utf-8"))


@cache
def _tables(page: str) -> list[_Table]:
    tables, titles, block = list[_Table](), dict[int, str](), list[tuple[str, ...]]()
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            cells = re.sub(r"<sup>.*?</sup>", "", line).strip("| ").split(" | ")
            block.append(tuple(re.sub(r"[*`\\]", "", cell).strip() for cell in cells))
            continue
        if len(block) > 2:
            tables.append(_Table(tuple(titles.values()), block[0], tuple(block[2:])))
        block = []
        if found := _MARK.match(line):
            titles = {k: v for k, v in titles.items() if k < 7} | {7: found[1]}
        elif found := _TITLE.match(line):
            level = len(found[1]) if found[1] else 8
            name = found[2] or found[3] or found[4] or ""
            titles = {k: v for k, v in titles.items() if k < level} | {level: name}
    return tables


class Sentence(NamedTuple):
    """A sentence of a page with places for numbers, and where each of them stands."""

    page: str
    text: str
    sources: Mapping[str, str]

    @property
    def pattern(self) -> re.Pattern[str]:
        """What the sentence looks like with any numbers; lines may break anywhere."""
        parts = _PLACE.split(self.text)
        literal = [r"\s+".join(map(re.escape, re.split(r"\s+", part))) for part in parts[::3]]
        places = [
            rf"(?P<{name}_{k}>[^\s(),;]+(?: ± [^\s(),;]+)?)" for k, name in enumerate(parts[1::3])
        ]
        return re.compile("".join(a + b for a, b in zip(literal, [*places, ""], strict=True)))

    def figures(self) -> dict[str, str]:
        """Text of every place, by its name in `pattern`."""
        found = {name: find(source) for name, source in self.sources.items()}
        return {
            f"{name}_{k}": format(found[name], spec or "")
            for k, (name, spec) in enumerate(_PLACE.findall(self.text))
        }


def sentences() -> list[Sentence]:
    """All of them, in the order of the file."""
    said = tomllib.loads(SENTENCES.read_text(encoding="utf-8"))["sentence"]
    return [Sentence(one.pop("page"), one.pop("text"), one) for one in said]


def differences(sentence: Sentence, text: str) -> tuple[str, list[str]]:
    """The page's text with the right numbers, and what was wrong with it."""
    found = list(sentence.pattern.finditer(text))
    if len(found) != 1:
        return text, [f"{sentence.page}: {len(found)} times: {sentence.text!r}"]
    wrong = []
    figures = sentence.figures()
    for name in sorted(figures, key=found[0].start, reverse=True):
        right = figures[name]
        start, end = found[0].span(name)
        if text[start:end] != right:
            wrong.append(f"{sentence.page}: {text[start:end]} should be {right}: {sentence.text!r}")
            text = text[:start] + right + text[end:]
    return text, wrong


def main() -> int:
    """Check all sentences, or write them."""
    given = command_line(__doc__, write=False).parse_args()
    said = []
    for sentence in sentences():
        page = ROOT / sentence.page
        text, wrong = differences(sentence, page.read_text(encoding="utf-8"))
        said += wrong
        if given.write:
            page.write_text(text, encoding="utf-8")
    print("\n".join(said), file=sys.stderr)
    return 1 if said and not given.write else 0


if __name__ == "__main__":
    sys.exit(main())
