"""Test runs of promptfoo, version 3, also 2: a component per assertion.

A person's thumb overwrites `pass` and `score` of a result, so that these are the person's: the
judges are the other components, and all of them together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fewlabels.data.logs.documents import opened
from fewlabels.data.logs.record import CODE, MODEL, PERSON, Log, Verdict
from fewlabels.errors import InputError, quoted

_RESULTS = ("results", "results")
_HUMAN = "human"
CRITERION = "pass"
TOGETHER = "all assertions"
FOLLOWS = (
    f"{TOGETHER!r} follows from the single assertions and is no judge beside them: where labels "
    "are few, look at it alone (--models) or at them"
)
_BY_MODEL = (
    "llm-rubric", "model-graded", "g-eval", "factuality", "answer-relevance", "context-",
    "select-best", "moderation", "classifier", "similar", "pi", "search-rubric", "conversation-",
    "agent-rubric", "trajectory:goal",
)  # fmt: skip
"""What types of assertions begin with that ask a model."""


def read(path: Path, log: Log) -> Iterator[Verdict]:
    """What assertions and people say of the outputs."""
    with opened(path) as scanner:
        version: Any = None
        found = together = False
        for where, value in scanner.within([_RESULTS]):
            if where == ("results", "version"):
                version = value
                log.about.append(f"promptfoo results, version {version}")
            if where == _RESULTS:
                found = True
                for verdict in _promptfoo_result(value, log):
                    together |= verdict.author == TOGETHER
                    yield verdict
        if together:
            log.warnings.append(FOLLOWS)
        if not found:
            raise InputError(
                f"is a log of promptfoo in a layout that is not known (version {quoted(version)}): "
                "it has no field 'results.results'; write it with `promptfoo eval -o FILE.json`"
            )


def _promptfoo_result(result: Mapping[str, Any], log: Log) -> Iterator[Verdict]:
    test, prompt = result.get("testIdx"), result.get("promptIdx")
    named = test is not None
    cluster = log.before + (
        f"test {test} prompt {prompt}" if named else str(log.need(result, "id", "a result"))
    )
    # What asks the same again (--repeat) is a repeat of one test.
    item = log.distinct(cluster)
    if result.get("error") and not result.get("gradingResult"):
        log.left["results ended in an error and were not graded"] += 1
        return
    graded = result.get("gradingResult")
    if not graded:
        log.left["results have no assertions"] += 1
        return
    response = result.get("response") or {}
    shown = result.get("vars") or (result.get("testCase") or {}).get("vars")
    log.show(
        item, input=shown and ", ".join(map(str, shown.values())), output=response.get("output")
    )
    verdicts: list[bool] = []
    human = False
    for component in graded.get("componentResults") or []:
        if component is None:
            continue
        assertion = component.get("assertion") or {}
        kind = str(assertion.get("type") or "assertion")
        passed = log.need(component, "pass", "a component of a result")
        if kind == _HUMAN:
            human = True
            yield Verdict(item, CRITERION, PERSON, "person", passed, cluster=cluster)
            continue
        verdicts.append(bool(passed))
        name = str(assertion.get("metric") or kind)
        author = MODEL if kind.removeprefix("not-").startswith(_BY_MODEL) else CODE
        score = component.get("score")
        yield Verdict(item, CRITERION, author, name, passed, score, cluster=cluster)
    if not human and str(graded.get("reason") or "").startswith("Manual result"):
        log.left[
            "results say 'Manual result' without the person's verdict among their components: they "
            "count as unlabeled, and what is called pass there is not used"
        ] += 1
    if len(verdicts) > 1:
        yield Verdict(item, CRITERION, CODE, TOGETHER, all(verdicts), cluster=cluster)
    elif human and not verdicts:
        log.left["labeled results have no assertion beside the person's: no judge there"] += 1
