"""Inspect: a judge grades 300 answers, people graded 60 of them, and the metrics use both.

Run with `inspect eval inspect_task.py --model mockllm/model`, or as a program.
"""

import random

from inspect_ai import Task, eval, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Target, accuracy, scorer
from inspect_ai.solver import Generate, TaskState, solver

from fewlabels.integrations.inspect_metrics import judge_accuracy, pass_rate


@scorer(metrics=[accuracy(), pass_rate(label="human"), judge_accuracy(label="human")])
def judge():
    """A judge that is too lenient: what a model would say is in the metadata here."""

    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=state.metadata["verdict"])

    return score


@solver
def answered():
    """The answers were given before: no model is asked."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return state

    return solve


@task
def graded_answers() -> Task:
    """60% of the answers are right; the judge lets 30% of the wrong ones pass."""
    draw, samples = random.Random(0), []  # noqa: S311
    for i in range(300):
        right = draw.random() < 0.6
        passes = right if right or draw.random() > 0.3 else True
        verdicts = {"verdict": CORRECT if passes else INCORRECT}
        if i < 60:
            verdicts["human"] = CORRECT if right else INCORRECT
        samples.append(Sample(input=f"question {i}", id=i, metadata=verdicts))
    return Task(dataset=samples, solver=answered(), scorer=judge())


if __name__ == "__main__":
    (log,) = eval(graded_answers(), model="mockllm/model", display="none", log_dir="logs")
    for each in log.results.scores:
        print(each.name, {name: round(m.value, 3) for name, m in each.metrics.items()})
