"""Files that were left out, in words."""

from __future__ import annotations

from collections.abc import Sequence

from fewlabels.engine.units import BadFile
from fewlabels.wording import listed


def skipped_words(skipped: Sequence[BadFile], without: str) -> str:
    """Which files were skipped and why, and what is without them, such as "the losses are"."""
    named = listed([f"{bad.name} ({bad.reason})" for bad in skipped], 3)
    many = len(skipped) > 1
    what = f"{len(skipped)} files were" if many else "1 file was"
    return f"{what} skipped, and {without} without {'them' if many else 'it'}: {named}"
