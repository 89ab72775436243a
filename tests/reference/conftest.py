"""Data folders: $FEWLABELS_DATA, else ../shared/data beside the repository; absent = skipped."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from reference_questions import Golden

ROOT = Path(__file__).resolve().parents[2]


def _folder(default: str) -> Path:
    data = Path(os.environ.get("FEWLABELS_DATA", ROOT.parent / "shared" / "data"))
    return data if default == "data" else data.parent / default


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the cases of one equation one is quick."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.few(1))


@pytest.fixture(scope="session")
def data_folder() -> Path:
    folder = _folder("data")
    if not folder.is_dir():
        pytest.skip(f"no data in {folder}; set FEWLABELS_DATA")
    return folder


@pytest.fixture(scope="session")
def golden(data_folder: Path) -> Golden:
    folder = _folder("golden")
    if not (folder / "ssme_civilcomments_reference.parquet").is_file():
        pytest.skip(f"no golden values in {folder}")
    return Golden(data_folder, folder)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240229)
