"""JUDGES_LOG=examples/verdicts.csv pytest examples/judges_in_ci."""


def test_the_judge_is_good_enough(judges, assert_accuracy):
    """At least 70% right, and surely so: the lower end of the interval decides."""
    assert_accuracy(judges, ">=0.7", model="large")
