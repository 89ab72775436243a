"""Facts of the sets, kept in the folder, so that a page can be written without the sets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.folder import replace_text

FILE = "facts.json"

KEYS = (
    "name", "family", "n_items", "n_models", "n_classes", "prevalence", "accuracy", "digest",
)  # fmt: skip
"""What is known of a set, see `sets.StudySet.facts`."""


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """Set -> its facts; none where the file is not there or damaged: they are found again."""
    try:
        said = json.loads((folder / FILE).read_bytes())
        return {name: dict(f) for name, f in said.items() if set(f) == set(KEYS)}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def write(folder: Path, facts: Mapping[str, Mapping[str, Any]]) -> None:
    """Keep what is known of the sets.

    Raises
    ------
    OSError
        If the system refuses.
    """
    replace_text(folder / FILE, json.dumps(facts, indent=1) + "\n")
