"""Traces of MLflow with assessments, and tables of `mlflow.evaluate`.

People and judges pair by equal names; an `expectation` is gold. An assessment that was overridden
stays what its author said: `valid` is false of a judge's verdict that a person corrected.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fewlabels.data.logs.record import CODE, MODEL, PERSON, Log, Verdict, time_text
from fewlabels.errors import InputError, listed, quoted

_KINDS: Mapping[str, str] = {"HUMAN": PERSON, "LLM_JUDGE": MODEL, "AI_JUDGE": MODEL, "CODE": CODE}


def traces(documents: Iterable[Any], log: Log) -> Iterator[Verdict]:
    """What assessments say of traces: of `Trace.to_dict`, or of the rows of `search_traces`."""
    log.about.append("MLflow traces with assessments")
    for trace in documents:
        about = trace.get("info", trace)
        if isinstance(about, str):  # a row of `search_traces` that went through a file of text
            about = json.loads(about)
        assessments = about.get("assessments")
        if isinstance(assessments, str):
            assessments = json.loads(assessments)
        item = about.get("trace_id") or about.get("request_id")
        if item is None:
            log.need(about, "trace_id", "a trace")
        log.once(str(item), "the trace")
        if assessments is None or not len(assessments):
            log.left["traces have no assessments"] += 1
            continue
        request = about.get("request_preview") or about.get("request")
        log.show(item, input=request, output=about.get("response_preview") or about.get("response"))
        yield from _of_trace(str(item), assessments, log)


def _of_trace(item: str, assessments: Sequence[Mapping[str, Any]], log: Log) -> Iterator[Verdict]:
    for one in assessments:
        name = one.get("assessment_name") or one.get("name")
        if name is None:
            name = log.need(one, "assessment_name", "an assessment")
        source = one.get("source") or {}
        kind = _KINDS.get(source.get("source_type", ""))
        what = one.get("feedback")
        if what is None:
            what, kind = one.get("expectation"), PERSON
            if what is None:
                log.left["assessments are neither feedback nor an expectation (issues)"] += 1
                continue
        value = what.get("value")
        if value is None:
            held = what.get("serialized_value") or {}
            value = held.get("value")
            if what.get("error") or one.get("error"):
                log.left["judgments ended in an error and are left out"] += 1
                continue
        if kind is None:
            log.left["assessments of unknown authors (source_type) are left out"] += 1
            continue
        time = None
        if kind == PERSON:
            time = time_text(one.get("last_update_time") or one.get("create_time"))
            if "overrides" in one:
                _note_override(one, value, assessments, log)
        yield Verdict(item, name, str(kind), source.get("source_id") or kind, value, None, time)


def _note_override(
    one: Mapping[str, Any], value: Any, assessments: Iterable[Mapping[str, Any]], log: Log
) -> None:
    """Count a person's correction of what a judge said, which stays the judge's verdict."""
    for other in assessments:
        by = _KINDS.get((other.get("source") or {}).get("source_type", ""))
        if other.get("assessment_id") == one["overrides"] and by in {MODEL, CODE}:
            same = (other.get("feedback") or {}).get("value") == value
            log.corrected[f"{'confirm' if same else 'change'} {one.get('assessment_name')}"] += 1


def table(document: Mapping[str, Any], log: Log) -> Iterator[Verdict]:
    """What `eval_results_table.json` holds: columns `metric/v1/score`, and no person's label."""
    log.about.append("MLflow table of evaluation results")
    columns = log.need(document, "columns", "the table", list)
    rows = log.need(document, "data", "the table", list)
    scores = {
        k: c.rpartition("/")[0].removesuffix("/v1")
        for k, c in enumerate(columns)
        if isinstance(c, str) and c.endswith(("/score", "/value"))
    }
    if not scores:
        raise InputError(
            f"is an MLflow table whose columns are {listed(map(quoted, columns), 6)}, none of them "
            "a score: evaluate with a metric that judges each row, or save the traces"
        )
    texts = {
        k: c for k, c in enumerate(columns) if c in ("inputs", "request", "outputs", "response")
    }
    for i, row in enumerate(rows):
        item = f"row {i + 1}"
        log.show(item, **{("input" if c in ("inputs", "request") else "output"): row[k]
                          for k, c in texts.items()})  # fmt: skip
        for k, name in scores.items():
            yield Verdict(item, name, MODEL, name, row[k])
