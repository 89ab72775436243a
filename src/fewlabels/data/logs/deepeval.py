"""Test runs of DeepEval (`.latest_test_run.json`): verdict, score and threshold of each metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fewlabels.data.logs.documents import opened
from fewlabels.data.logs.record import MODEL, Log, Said

LISTS = tuple(
    (*before, cases)
    for before in ((), ("testRunData",))
    for cases in ("testCases", "conversationalTestCases", "test_results")
)


def read(path: Path, log: Log) -> Iterator[Said]:
    """What metrics say of the test cases: people's labels are not in it."""
    log.about.append("DeepEval test run")
    seen: Counter[str] = Counter()
    with opened(path) as scanner:
        for where, case in scanner.within(LISTS):
            if where in LISTS:
                yield from _of_case(case, log, seen)


def _of_case(case: Mapping[str, Any], log: Log, seen: Counter[str]) -> Iterator[Said]:
    name = log.before + str(log.need(case, "name", "a test case"))
    seen[name] += 1
    # Runs that were put together name their cases alike.
    item = name if seen[name] == 1 else f"{name} ({seen[name]})"
    metrics = case.get("metricsData", case.get("metrics_data"))
    if not metrics:
        log.left["test cases have no metrics"] += 1
        return
    log.show(
        item, input=case.get("input"), output=case.get("actualOutput", case.get("actual_output"))
    )
    for metric in metrics:
        criterion = str(log.need(metric, "name", "a metric"))
        if metric.get("error"):
            log.left["judgments ended in an error and are left out"] += 1
            continue
        judge = metric.get("evaluationModel", metric.get("evaluation_model")) or criterion
        success = metric.get("success")
        word = None if success is None else "pass" if success else "fail"
        yield Said(item, criterion, MODEL, str(judge), word, metric.get("score"))
