"""Other packages on the same items, a search by a scorer, and pictures: pages say what was kept."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import instead_of
import pictures
import scorer_search
from runs import read_lines

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("study", [instead_of, scorer_search], ids=lambda one: one.__name__)
def test_pages_have_the_tables_of_what_was_kept(study) -> None:
    text = study.PAGE.read_text(encoding="utf-8")
    for block in study.blocks(read_lines(study.RESULTS)).values():
        table, made = block.rsplit("\n\n", 1)
        assert table in text
        assert made.split("; fewlabels")[0] in text


def test_simulated_items_are_as_accurate_as_their_truth_says() -> None:
    items = instead_of.draw("simulated", np.random.default_rng(0))
    right = (items.probabilities.argmax(axis=2) == items.truth[:, None]).mean(axis=0)
    assert right == pytest.approx(items.accuracy, abs=0.04)


def test_a_candidate_is_chosen_among_those_that_were_trained() -> None:
    for line in read_lines(scorer_search.RESULTS):
        assert {line["plain"], line["scorer"]} <= set(range(len(line["accuracy"])))
        assert len(line["accuracy"]) == len(scorer_search.candidates(line["candidates"]))


def test_every_picture_is_made_and_shown() -> None:
    made = {f"{name}.png" for name in pictures.CASES}
    made |= {f"interval-{k}.svg" for k in (1, 2, 3, 4)}
    assert {path.name for path in pictures.OUT.iterdir()} == made
    shown = "".join(
        (ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("index.md", "intervals.md")
    )
    assert set(re.findall(r"pictures/([\w.-]+)", shown)) == made
    assert sum(path.stat().st_size for path in pictures.OUT.iterdir()) < 300_000
