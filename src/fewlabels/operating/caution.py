"""How far an answer about one classifier can be trusted, and the words behind it."""

from __future__ import annotations

from collections.abc import Iterable

from fewlabels.errors import Status, gravest_first
from fewlabels.evaluation.evaluator import MOST_DRAWS
from fewlabels.evaluation.status import Verdict, judge
from fewlabels.groups import Group
from fewlabels.metrics.registry import METRICS
from fewlabels.operating.question import AUTO, Question
from fewlabels.wording import listed

_WORST = (
    Status.UNDEFINED,
    Status.CONTRADICTED,
    Status.NOT_CONVERGED,
    Status.FEW_LABELS,
    Status.ASSUMPTION,
    Status.OK,
)


def worst(statuses: Iterable[Status]) -> Status:
    """The status that says most against an answer."""
    return min(statuses, key=_WORST.index)


def status_of(question: Question, metric: str, value: float) -> Verdict:
    """Status of an answer that stands or falls with a metric of rankings, of this value."""
    everything = Group(None, question.rows)
    found = judge(
        question.asked, question.posterior, everything, METRICS[metric], question.model, value
    )
    if found.status is Status.OK and not _informed(question):
        return Verdict(Status.ASSUMPTION)  # `facts` says why
    return found


def _informed(question: Question) -> bool:
    """Whether anything is known of any item's label."""
    return bool(question.asked.n_labeled or question.asked.n_annotated)


def facts(question: Question, level: float) -> list[str]:
    """What a person should know of the input, and what the method says of its fit."""
    said = list(question.asked.notes)
    labels = question.asked.labels[question.asked.labeled]
    absent = [c for k, c in enumerate(question.asked.classes) if not (labels == k).any()]
    if not _informed(question):
        prior = " (the prior alone)" if question.method == AUTO else ""
        said.append(
            "assumption: no labels at all, so the answer is what the method believes beforehand"
            f"{prior}"
        )
    elif len(labels) and absent:
        said.append(f"no labeled item of class {listed(absent)}")
    if question.asked.n_annotated and question.posterior.support is None:
        said.append(
            f"{question.asked.n_annotated:,} items without a label have counts of annotators (h__ "
            "columns), which weigh in as evidence of their labels"
        )
    left_out = len(question.scores) - len(question.rows)
    if left_out:
        said.append(
            f"{left_out:,} of {len(question.scores):,} items are left out: {question.model} gives "
            "no score there, or their weight is 0"
        )
    if question.posterior.support is not None and len(labels):
        said.append("only the labeled items are used")
    if 20 / (1 - level) > MOST_DRAWS:
        said.append(
            f"the ends of {level:.6g} intervals are the extremes of {MOST_DRAWS} draws; the true "
            "ends may lie further out"
        )
    return gravest_first([*said, *question.posterior.warnings])
