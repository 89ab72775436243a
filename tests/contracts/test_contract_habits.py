"""Groups by column and value, and whatever gives a seed, wherever there are such arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.checks.arguments import RandomState, seed_of
from fewlabels.errors import UsageError

rng = np.random.default_rng(0)
TRUTH = rng.random(200) < 0.4
P = np.clip(0.6 * TRUTH + 0.4 * rng.random((2, 200)), 0.01, 0.99)
ITEMS = fl.Predictions(
    {"a": P[0], "b": P[1]},
    np.where(np.arange(200) < 80, TRUTH, -1),
    groups={
        "language": np.array(["en", "es"])[rng.integers(2, size=200)],
        "year": np.full(200, 2026.0),
    },
)


@pytest.fixture(scope="module")
def estimates() -> fl.Estimates:
    return fl.estimate(ITEMS, metrics=["accuracy"], by=["language", "year"])


def test_a_group_by_its_column_and_value(estimates: fl.Estimates) -> None:
    name, group = "language=es", {"language": "es"}
    assert estimates.get("a", "accuracy", group=group) == estimates.get("a", "accuracy", name)
    assert estimates.get("a", "accuracy", {"year": 2026}).group == "year=2026"
    assert estimates.difference("a", "b", "accuracy", group) == estimates.difference(
        "a", "b", "accuracy", name
    )
    assert estimates.probability_best("accuracy", group) == estimates.probability_best(
        "accuracy", name
    )
    assert estimates.confusion(group).to_dict() == estimates.confusion(name).to_dict()
    compared = fl.compare(estimates)
    assert compared.get("accuracy", group) is compared.get("accuracy", name)


@pytest.mark.parametrize("group", [{}, {"language": "es", "year": 2026}])
def test_groups_are_of_one_column(estimates: fl.Estimates, group: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="`group` must be one column and its value"):
        estimates.get("a", "accuracy", group)
    with pytest.raises(UsageError, match=r"in group 'language=fr'.*groups: language=e"):
        estimates.get("a", "accuracy", {"language": "fr"})


KINDS = {
    "Generator": lambda: np.random.default_rng(3),
    "RandomState": lambda: np.random.RandomState(3),
    "SeedSequence": lambda: np.random.SeedSequence(3),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_of_random_numbers_gives_a_seed(kind: str) -> None:
    source = KINDS[kind]()
    seeds = [seed_of(source) for _ in range(3)]
    assert seeds == [seed_of(again) for again in [KINDS[kind]()] for _ in range(3)]
    assert len(set(seeds)) == (1 if kind == "SeedSequence" else 3)
    assert all(0 <= seed < 2**32 for seed in seeds)


ASK: dict[Any, dict[str, Any]] = {
    fl.estimate: {"metrics": "accuracy"}, fl.compare: {"metric": "accuracy"}, fl.score: {},
    fl.curve: {"model": "a"}, fl.threshold: {"model": "a", "min_recall": 0.5},
    fl.calibration_curve: {"models": ["a"]}, fl.label_next: {"metric": "accuracy"}, fl.shift: {},
}  # fmt: skip


@pytest.mark.few(3)
@pytest.mark.parametrize("ask", ASK, ids=lambda ask: ask.__name__)
def test_one_seed_is_drawn_from_a_generator_and_gives_the_same_bits_again(ask: Any) -> None:
    def answer(random_state: RandomState) -> Any:
        return ask(ITEMS, random_state=random_state, **ASK[ask]).to_dict()

    source = np.random.default_rng(3)
    found, after = answer(source), np.random.default_rng(3)
    seed = seed_of(after)
    assert source.bit_generator.state == after.bit_generator.state
    assert found == answer(seed)


def test_calibration_takes_generators() -> None:
    counts = np.stack([~TRUTH, TRUTH], axis=1).astype(int) * 3
    block = np.stack([1 - P[0], P[0]], axis=1)
    fits = [
        fl.calibration.VectorScaling(penalty="cross-validated", random_state=state)
        .fit(block, counts).predict_proba(block)
        for state in (np.random.RandomState(3), seed_of(np.random.RandomState(3)))
    ]  # fmt: skip
    assert np.array_equal(*fits)
