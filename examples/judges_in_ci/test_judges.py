"""JUDGES_LOG=examples/verdicts.csv pytest examples/judges_in_ci."""


def test_the_judge_is_good_enough(judges):
    """At least 70% right, and surely so."""
    large = judges.get("large", "accuracy")
    assert large.status == "ok"
    assert large.low >= 0.7, f"{large.value:.2f} ({large.low:.2f} to {large.high:.2f})"
