"""Texts as users see them, stored: a change of wording is reviewed as a difference of files.

FEWLABELS_RENEW=1 writes them anew; `git diff tests/stored/outputs` is the review.
"""

from __future__ import annotations

import os
from pathlib import Path

STORED = Path(__file__).parent / "stored" / "outputs"


def check(name: str, text: str) -> None:
    """A text is what `stored/outputs/NAME.txt` holds."""
    path = STORED / f"{name}.txt"
    text = text.rstrip("\n") + "\n"
    if os.environ.get("FEWLABELS_RENEW"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    assert path.exists(), f"nothing stored as {name}; FEWLABELS_RENEW=1 writes it"
    assert text == path.read_bytes().decode()


def together(texts: dict[str, str]) -> str:
    """Several texts as one, under a heading each."""
    return "\n".join(f"# {name}\n{text}\n" for name, text in texts.items())
