"""Runs whose numbers are kept: a change of the structure changes none of them."""

from __future__ import annotations

import json

import pytest
from stored_runs import RUNS, STORED, differences, plain

KEPT = json.loads(STORED.read_text())

CHAINS = (
    "bee", "hcbee", "cbcc", "crowd-svm", "ssme", "spe", "vote-selection", "auto, votes",
    "curve of scores",
)  # fmt: skip
"""Long chains and descents: rounding on another processor takes them elsewhere."""


def test_every_run_is_kept():
    assert list(KEPT) == list(RUNS)


@pytest.mark.few(14)
@pytest.mark.slow_with(
    "streamed auto", "curve of scores", "auto, distribution", "monotone-curves, population",
    "averaged-curves, population", "vote-selection, population", "crowd-svm, population",
    "hcbee, population", "cbcc, population", "confusion-hcbee, population",
    "confusion-cbee, population", "ssme-kde-marginal, population", "confusion-bee, population",
    "cbee, population", "spe, population", "ssme-flow, population",
)  # fmt: skip
@pytest.mark.parametrize("name", RUNS)
def test_numbers_are_as_they_were(name):
    within = 0.2 if any(chain in name for chain in CHAINS) else 1e-4
    assert not list(differences(plain(RUNS[name]()), KEPT[name], within))
