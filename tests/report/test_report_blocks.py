from __future__ import annotations

import pytest

from fewlabels.report.blocks import Block, Row, verdict


def _block(*rows: tuple[str, float | None, float | None], direction: int = 1) -> Block:
    """Rows of model, value, probability of being best; intervals reach 0.05 either way."""
    return Block(
        "accuracy",
        None,
        tuple(
            Row(m, v, None if v is None else v - 0.05, None if v is None else v + 0.05, "ok", best)
            for m, v, best in rows
        ),
        0.95,
        direction=direction,
    )


@pytest.mark.parametrize(
    ("best", "certainty"),
    [(0.97, "clear"), (0.95, "clear"), (0.9, "likely"), (0.6, "leaning"), (0.4, "open")],
)
def test_the_probability_of_being_best_is_graded(best: float, certainty: str) -> None:
    found = verdict(_block(("a", 0.9, best), ("b", 0.8, 1 - best)))
    assert found is not None
    assert (found.leader.model, found.certainty) == ("a", certainty)


def test_the_leader_has_the_best_value_in_the_direction_of_the_metric() -> None:
    rows = (("a", 0.9, 0.1), ("b", 0.2, 0.9))
    larger, smaller = verdict(_block(*rows)), verdict(_block(*rows, direction=-1))
    assert larger is not None
    assert smaller is not None
    assert (larger.leader.model, smaller.leader.model) == ("a", "b")


def test_rivals_are_those_who_may_well_be_best() -> None:
    found = verdict(_block(("a", 0.9, 0.3), ("b", 0.8, 0.2), ("c", 0.7, 0.45), ("d", 0.6, 0.05)))
    assert found is not None
    assert [row.model for row in found.rivals] == ["c", "b"]


def test_without_probabilities_rivals_are_those_whose_interval_overlaps() -> None:
    found = verdict(_block(("a", 0.9, None), ("b", 0.82, None), ("c", 0.7, None)))
    assert found is not None
    assert found.certainty == "unranked"
    assert [row.model for row in found.rivals] == ["b"]


def test_a_single_value_and_a_metric_without_direction() -> None:
    alone = verdict(_block(("a", 0.9, 1.0), ("b", None, None)))
    unordered = verdict(_block(("a", 0.9, None), ("b", 0.95, None), direction=0))
    assert alone is not None
    assert unordered is not None
    assert (alone.certainty, alone.n_ranked) == ("alone", 1)
    assert (unordered.certainty, unordered.leader.model) == ("unordered", "a")


def test_there_is_no_verdict_without_a_value() -> None:
    assert verdict(_block(("a", None, None))) is None
