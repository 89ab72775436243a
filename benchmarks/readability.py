"""How easy the pages are to read: mean sentence length, and words that few people know.

    pip install --group readability
    python benchmarks/readability.py [--before COMMIT] [--rare]

A sentence is what ends with a point, question or exclamation mark, an item of a list, or a
paragraph; code, tables, titles and comments are left out, and code within a sentence counts as one
word. Rare words are those that are neither common English (wordfreq) nor terms of the field
(readability.toml); names, with a capital within a sentence, do not count. Private phrases are
counted by readability.toml too.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
WORDS = tomllib.loads((ROOT / "benchmarks" / "readability.toml").read_text(encoding="utf-8"))

HOW_TO = (
    "labeling", "llm-judges", "columns", "comparing", "curves", "votes", "annotations", "shift",
    "reference-data", "scaling",
)  # fmt: skip
EXPLANATION = ("choosing-a-method", "how-it-works", "default", "intervals", "when-it-fails")
PAGES = ("README.md", *(f"docs/{name}.md" for name in (*HOW_TO, *EXPLANATION)))

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


class Measured(NamedTuple):
    """What was counted on a page."""

    sentences: int
    words: int
    long: int
    rare: Counter[str]
    private: int

    @property
    def length(self) -> float:
        """Mean words of a sentence."""
        return self.words / max(self.sentences, 1)


def private_phrases(text: str) -> list[str]:
    """Phrases of readability.toml that stand in the prose of a page."""
    whole = " ".join(prose(text)).lower()
    return [p for p in WORDS["private"] for _ in re.findall(rf"\b{re.escape(p)}\b", whole)]


def measure(text: str) -> Measured:
    """Count a page."""
    from wordfreq import zipf_frequency

    field = set(WORDS["field"].split())

    def known(word: str) -> bool:
        word = word.removesuffix("'s").rstrip("'")
        return word in field or zipf_frequency(word, "en") >= WORDS["common"]

    found = sentences(text)
    rare: Counter[str] = Counter()
    words = 0
    for sentence in found:
        every = _WORD.findall(sentence)
        words += len(every)
        # The first word has its capital from the sentence; others with one are names.
        plain = [every[0].lower(), *(w for w in every[1:] if w.islower())]
        rare.update(w for w in plain if not (known(w) or all(map(known, w.split("-")))))
    long = sum(len(_WORD.findall(s)) > 30 for s in found)
    return Measured(len(found), words, long, rare, len(private_phrases(text)))


def read(page: str, commit: str | None) -> str:
    """A page as it is, or as it was."""
    if commit is None:
        return (ROOT / page).read_text(encoding="utf-8")
    return subprocess.run(
        ["git", "show", f"{commit}:{page}"],
        cwd=ROOT, check=True, capture_output=True, encoding="utf-8",
    ).stdout  # fmt: skip


def main() -> None:
    """Print a table of the pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", metavar="COMMIT", help="beside the pages as they were then")
    parser.add_argument("--rare", action="store_true", help="list the rare words")
    given = parser.parse_args()
    commits = [None] if given.before is None else [given.before, None]
    measured = {page: [measure(read(page, commit)) for commit in commits] for page in PAGES}
    print("| page | sentences | mean words | over 30 words | rare words | private phrases |")
    print("|---|---|---|---|---|---|")
    for page, found in measured.items():
        print(f"| {page.removeprefix('docs/')} | {_cells(found)} |")
    print(f"| all | {_cells([_together(*one) for one in zip(*measured.values(), strict=True)])} |")
    if given.rare:
        for page, found in measured.items():
            print(f"\n{page}:", ", ".join(f"{w} {n}" for w, n in found[-1].rare.most_common()))


def _together(*pages: Measured) -> Measured:
    sentences, words, long, rare, private = zip(*pages, strict=True)
    return Measured(sum(sentences), sum(words), sum(long), sum(rare, Counter()), sum(private))


def _cells(found: list[Measured]) -> str:
    """The cells of a page, as it was and as it is."""
    each = [
        (
            str(one.sentences),
            f"{one.length:.1f}",
            f"{one.long / max(one.sentences, 1):.0%}",
            f"{one.rare.total() / max(one.words, 1):.1%}",
            str(one.private),
        )
        for one in found
    ]
    return " | ".join(", ".join(cell) for cell in zip(*each, strict=True))


if __name__ == "__main__":
    main()
