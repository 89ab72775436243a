"""Files to label, and sessions of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest
from labeling_tables import table_of

from fewlabels.labeling.session import Session, SessionOptions, open_session


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """60 items as a CSV file."""
    path = tmp_path / "comments.csv"
    pyarrow.csv.write_csv(table_of(), path)
    return path


Open = Callable[..., Session]


@pytest.fixture
def opened(file: Path) -> Iterator[Open]:
    """`opened(labels=None, source=file, **wishes)`: a session, which is closed in the end."""
    sessions: list[Session] = []

    def run(labels: Path | None = None, source: Any = file, **wishes: Any) -> Session:
        wishes = {"annotator": "anna"} | wishes
        sessions.append(open_session(source, labels, SessionOptions(**wishes)))
        return sessions[-1]

    yield run
    for session in sessions:
        session.close()
