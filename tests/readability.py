"""Sentences of the pages, and phrases in them that only this project used (readability.toml).

A sentence is what ends with a point, question or exclamation mark, an item of a list, or a
paragraph; code, tables, titles and comments are left out, and code within a sentence counts as one
word.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

_FENCE = re.compile(r"^(```+|:::+).*?^\1$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->|<[^>]+>", re.DOTALL)
_MADE = re.compile(
    r"^<!-- ([\w -]+?)(?::.*)? -->$.*?^<!-- end(?: of)? .*?-->$", re.DOTALL | re.MULTILINE
)
_END = re.compile(r"(?<=[.!?])[)\"'*]*\s+(?=[A-Z(\"'*`0-9])")
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")


def prose(text: str) -> Iterator[str]:
    """Paragraphs and items of lists, as plain text."""
    text = _COMMENT.sub("", _MADE.sub("", _FENCE.sub("", text)))
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        lines = block.splitlines()
        if not block.strip() or block.lstrip().startswith(("#", "|", ">", "    ", "(")):
            continue
        plain = " ".join(line.strip() for line in lines if not line.lstrip().startswith(("#", "|")))
        plain = re.sub(r"^(?:[-*]|\d+\.|: ) *", "", plain)
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", plain)
        plain = re.sub(r"`[^`]+`", "Code", plain).replace("**", "").replace("*", "")
        if plain.strip():
            yield plain


def sentences(text: str) -> list[str]:
    """The sentences of a page."""
    return [one for block in prose(text) for one in _END.split(block) if _WORD.search(one)]


def words(sentence: str) -> int:
    """How many words a sentence has."""
    return len(_WORD.findall(sentence))


def private_phrases(text: str) -> list[str]:
    """Phrases of readability.toml that stand in the prose of a page."""
    whole = " ".join(prose(text)).lower()
    return [p for p in WORDS["private"] for _ in re.findall(rf"\b{re.escape(p)}\b", whole)]
