"""Files that people have, and what a data scientist would take from each: `files/readings.json`.

They were made from arrays whose truth is known; the values are those of the arrays.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "files"


@dataclass(frozen=True)
class Classifier:
    """One classifier as a data scientist would take it from the file.

    `names` are the acceptable ones, none where any will do; `kinds` likewise, of probabilities,
    hard and score. The accuracy is that of hard predictions or of the largest probability, the
    area that of scores or of the positive probability, both on the labeled items.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    accuracy: float | None = None
    roc_auc: float | None = None


@dataclass(frozen=True)
class OrdinaryFile:
    """What is in a file: a label per row (None: unknown), the classes, the classifiers.

    `answers` are what the classifiers are judged by: the labels, or, where the file has none, the
    truth that was kept out of it. `groups` must stay groups. `refusal` holds words that the one
    line of a refusal must have, where two readings are honestly possible. `votes` says that the
    rows are votes, so that `labels` are those of items.
    """

    name: str
    about: str
    path: Path
    labels: list[str | None]
    answers: list[str | None]
    classes: tuple[str, ...]
    classifiers: tuple[Classifier, ...]
    positive: str | None = None
    groups: tuple[str, ...] = ()
    weighted: bool = False
    refusal: tuple[str, ...] = ()
    votes: bool = False

    @property
    def n_labels(self) -> int:
        return sum(label is not None for label in self.labels)


def _read(entry: dict[str, Any]) -> OrdinaryFile:
    """Labels are the numbers of their classes, a point where nothing is known."""

    def labels(codes: str) -> list[str | None]:
        return [None if code == "." else entry["classes"][int(code)] for code in codes]

    lists = {name: tuple(entry.get(name, ())) for name in ("classes", "groups", "refusal")}
    own = {
        "path": FOLDER / entry["path"],
        "labels": labels(entry["labels"]),
        "answers": labels(entry.get("answers", entry["labels"])),
        "classifiers": tuple(
            Classifier(**one | {"names": tuple(one["names"]), "kinds": tuple(one["kinds"])})
            for one in entry["classifiers"]
        ),
    }
    return OrdinaryFile(**entry | lists | own)


FILES = {
    entry["name"]: _read(entry)
    for entry in json.loads((FOLDER / "readings.json").read_text(encoding="utf-8"))
}
