"""Two tiny made sets in place of those of the study."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fewlabels.predictions import Predictions
from study import sets

TINY = ("tiny-1", "tiny-2")


def _tiny(seed: int) -> Predictions:
    rng = np.random.default_rng(seed)
    labels = (rng.random(400) < 0.4).astype(int)
    logits = 2.0 * (2 * labels[:, None] - 1) + 2 * rng.standard_normal((400, 2))
    return Predictions(1 / (1 + np.exp(-logits)), labels, models=["a", "b"], classes=[0, 1])


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The names of two sets of 400 items and 2 classifiers, for runs in this process.

    Their family is one that a learned prior can be without.
    """
    monkeypatch.setattr(sets, "MADE", {name: ("wine", k) for k, name in enumerate(TINY)})
    monkeypatch.setattr(
        sets, "_made", lambda name, folder: sets._with_truth(name, "wine", _tiny(TINY.index(name)))
    )
    return TINY


@pytest.fixture
def kept_small(tmp_path: Path) -> Path:
    """A folder with small sets under the names and recipes of made ones, for other processes."""
    folder = tmp_path / "small" / "sets"
    folder.mkdir(parents=True)
    for k, name in enumerate(("wine-9000", "wine-9001")):
        sets._keep(folder / f"{name}.npz", _tiny(k), sets.recipe_of(name))
    return folder.parent
