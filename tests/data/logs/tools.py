"""What the tools themselves write, in a run of their own: python tools.py TOOL FOLDER.

Run by the interpreter of an environment that has the tools (`make test-logs`); nothing of it is
imported by the tests or by fewlabels. Every log has 60 items, of which 24 are labeled, and says
the same: `VERDICTS` of two judges and what people say.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

N, LABELED = 60, 24

TRUTH = [i % 3 != 0 for i in range(N)]
JUDGE = [t != (i % 7 == 2) for i, t in enumerate(TRUTH)]
OTHER = [t != (i % 4 == 1) for i, t in enumerate(TRUTH)]


def is_labeled(i: int) -> bool:
    """Which items people label: no part of the others' pattern."""
    return i * 5 % 12 < 5 and i < 58


def inspect(folder: Path) -> None:
    """Inspect with its mock model; edits confirm and change; two epochs; NaN; an invalid sample."""
    os.environ["INSPECT_DISPLAY"] = "none"
    import tiktoken

    class Encoding:
        def encode(self, text: str, **_: object) -> list[str]:
            return text.split()

    # The mock model counts tokens by a table that it would download.
    tiktoken.get_encoding = tiktoken.encoding_for_model = lambda *_, **__: Encoding()
    from inspect_ai import Task
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import Sample
    from inspect_ai.log import (
        ProvenanceData,
        edit_score,
        invalidate_samples,
        read_eval_log,
        write_eval_log,
    )
    from inspect_ai.model import ModelOutput, get_model
    from inspect_ai.scorer import Score, ScoreEdit, mean, model_graded_qa, scorer

    @scorer(metrics={"*": [mean()]})
    def grades():
        async def score(state, target):
            i = int(state.sample_id)
            helpful = float("nan") if i == 3 else float(i % 5)
            return Score(value={"helpful": helpful, "polite": i % 2 == 0})

        return score

    @scorer(metrics=[mean()])
    def judge():
        async def score(state, target):
            verdict = JUDGE[int(state.sample_id)] == (state.epoch == 1 or True)
            return Score(value="C" if verdict else "I")

        return score

    def graded(epochs: int, name: str):
        grader = get_model(
            "mockllm/model",
            custom_outputs=[ModelOutput.from_content("mockllm/model", "GRADE: C")] * N * epochs,
        )
        task = Task(
            dataset=[Sample(id=i, input=f"question {i}", target=str(i)) for i in range(N)],
            scorer=[judge(), model_graded_qa(model=grader), grades()],
            epochs=epochs,
            name=name,
        )
        run = evaluate(task, model="mockllm/model", log_dir=str(folder / "runs"))[0]
        return read_eval_log(run.location)

    by = ProvenanceData(author="alice", reason="looked at")
    log = graded(1, "plain")
    for i in filter(is_labeled, range(N)):
        edit_score(log, i, "judge", ScoreEdit(value="C" if TRUTH[i] else "I", provenance=by))
    write_eval_log(log, str(folder / "edited.eval"))
    write_eval_log(log, str(folder / "edited.json"))
    log = invalidate_samples(log, [log.samples[59].uuid], by)
    write_eval_log(log, str(folder / "invalid.eval"))
    log = graded(2, "epochs")
    for i in filter(is_labeled, range(N)):
        value = "C" if TRUTH[i] else "I"
        edit_score(log, i, "judge", ScoreEdit(value=value, provenance=by), epoch=1 + i % 2)
    write_eval_log(log, str(folder / "epochs.eval"))


def mlflow(folder: Path) -> None:
    """MLflow with a local store: feedback of people and judges, an override, an expectation."""
    os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"
    import mlflow as ml
    from mlflow.entities import AssessmentSource

    ml.set_tracking_uri(f"sqlite:///{folder / 'store.db'}")
    experiment = ml.create_experiment("judged")
    ml.set_experiment(experiment_id=experiment)
    for i in range(N):
        with ml.start_span(name="answer") as span:
            span.set_inputs({"question": f"question {i}"})
            span.set_outputs({"answer": f"answer {i}"})
        trace = span.trace_id

        def say(name, value, kind, who, trace=trace):
            source = AssessmentSource(source_type=kind, source_id=who)
            return ml.log_feedback(trace_id=trace, name=name, value=value, source=source)

        first = say("correct", JUDGE[i], "LLM_JUDGE", "gpt")
        say("correct", OTHER[i], "LLM_JUDGE", "small")
        say("polite", i % 5 + 1, "LLM_JUDGE", "gpt")
        if is_labeled(i):
            if i % 2:  # a person overrides what the judge said
                ml.override_feedback(
                    trace_id=trace, assessment_id=first.assessment_id, value=TRUTH[i],
                    source=AssessmentSource(source_type="HUMAN", source_id="alice"),
                )  # fmt: skip
            else:
                say("correct", TRUTH[i], "HUMAN", "alice")
            ml.log_expectation(trace_id=trace, name="polite", value=i % 5 + 1)
    traces = ml.search_traces(
        locations=[experiment], return_type="list", max_results=N, order_by=["timestamp_ms ASC"]
    )
    (folder / "traces.json").write_text(json.dumps([json.loads(t.to_json()) for t in traces]))
    (folder / "traces.jsonl").write_text("".join(t.to_json() + "\n" for t in traces))
    frame = ml.search_traces(locations=[experiment], max_results=N)
    frame.to_json(folder / "frame.json", orient="records")
    frame.drop(columns=["spans"], errors="ignore").to_json(
        folder / "frame.jsonl", orient="records", lines=True
    )


CONFIG = """
<View><Text name="text" value="$text"/>
<Choices name="verdict" toName="text"><Choice value="pass"/><Choice value="fail"/></Choices></View>
"""


def label_studio(folder: Path) -> None:
    """Label Studio's converter writes the export of tasks that its SDK's classes describe."""
    from label_studio_sdk.converter import Converter
    from label_studio_sdk.label_interface import LabelInterface

    interface = LabelInterface(CONFIG)
    word = {True: "pass", False: "fail"}
    tasks = []
    for i in range(N):
        region = [{
            "from_name": "verdict", "to_name": "text", "type": "choices",
            "value": {"choices": [word[TRUTH[i]]]}, "origin": "manual",
        }]  # fmt: skip
        said = [{**region[0], "value": {"choices": [word[JUDGE[i]]]}}]
        del said[0]["origin"]
        task = {
            "id": 100 + i,
            "data": {"text": f"answer {i}"},
            "annotations": [],
            "predictions": [{"model_version": "gpt", "result": said, "score": 0.9}],
        }
        if is_labeled(i):
            who = 7 if i % 2 else {"id": 7, "email": "alice@example.org"}
            origin = "prediction-changed" if i % 4 == 0 else "manual"
            task["annotations"].append({
                "id": i, "completed_by": who, "was_cancelled": False,
                "created_at": "2026-01-01T00:00:00Z", "result": [{**region[0], "origin": origin}],
            })  # fmt: skip
        if i % 9 == 4:
            task["annotations"].append({
                "id": 500 + i, "completed_by": 8, "was_cancelled": True,
                "created_at": "2026-01-02T00:00:00Z", "result": region,
            })  # fmt: skip
        assert interface.validate_prediction(task["predictions"][0])
        tasks.append(task)
    source = folder / "tasks.json"
    source.write_text(json.dumps(tasks))
    out = folder / "converted"
    Converter(CONFIG, str(folder)).convert_to_json(str(source), str(out), is_dir=False)
    (out / "result.json").rename(folder / "export.json")


def lm_eval(folder: Path) -> None:
    """The harness's own writer, of samples as its evaluator makes them."""
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.utils import hash_string

    for model, right in (("small", JUDGE), ("large", TRUTH)):
        tracker = EvaluationTracker(output_path=str(folder))
        tracker.general_config_tracker.model_name_sanitized = model
        tracker.date_id = "2026-01-01T00-00-00.000000"
        choices, answers = [], []
        for i in range(N):
            doc = {"question": f"question {i}", "gold": i % 4}
            chosen = i % 4 if right[i] else (i + 1) % 4
            shares = [-1.0 if k == chosen else -3.0 for k in range(4)]
            common = {
                "doc_id": i, "doc": doc, "doc_hash": hash_string(json.dumps(doc)),
                "prompt_hash": hash_string(str(i)), "target_hash": hash_string(str(i % 4)),
            }  # fmt: skip
            choices.append({
                **common, "target": i % 4, "filter": "none", "metrics": ["acc"],
                "arguments": [(doc["question"], f" {k}") for k in range(4)],
                "resps": [[(x, False)] for x in shares],
                "filtered_resps": [(x, False) for x in shares],
                "acc": float(right[i]),
            })  # fmt: skip
            for name in ("strict-match", "flexible-extract"):
                fine = right[i] and not (name == "strict-match" and i % 5 == 0)
                answers.append({
                    **common, "target": str(i), "filter": name, "metrics": ["exact_match"],
                    "arguments": [(doc["question"], {"until": ["\n"]})],
                    "resps": [[f"it is {i}"]], "filtered_resps": [str(i)],
                    "exact_match": float(fine),
                })  # fmt: skip
        tracker.save_results_samples("quiz", choices)
        tracker.save_results_samples("sums", answers)


def deepeval(folder: Path) -> None:
    """A test run as DeepEval's own manager saves it."""
    os.chdir(folder)
    os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "YES"
    from deepeval.test_run.api import LLMApiTestCase
    from deepeval.test_run.test_run import TestRun
    from deepeval.tracing.api import MetricData

    run = TestRun(testCases=[])
    for i in range(N):
        case = LLMApiTestCase(
            name=f"case {i // 2}", input=f"question {i}", actualOutput=f"answer {i}", order=i
        )
        score = 0.8 if JUDGE[i] else 0.3
        case.update_metric_data(MetricData(
            name="Correctness [GEval]", threshold=0.5, success=JUDGE[i], score=score,
            evaluationModel="gpt-4.1",
        ))  # fmt: skip
        error = "rate limit" if i == 5 else None
        case.update_metric_data(MetricData(
            name="Faithfulness", threshold=0.5, success=not error and OTHER[i],
            score=None if error else 0.6, evaluationModel="gpt-4.1", error=error,
        ))  # fmt: skip
        run.add_test_case(case)
    dumped = {"testRunData": run.model_dump(by_alias=True, exclude_none=True)}
    (folder / "test_run.json").write_text(json.dumps(dumped))


def argilla(folder: Path) -> None:
    """Records of Argilla's SDK as it exports them: nested, and flat with the responses' status."""
    import uuid

    import argilla as rg
    from argilla.records._io import GenericIO, JsonIO

    people = [uuid.UUID(int=k) for k in (1, 2)]
    records = []
    for i in range(N):
        responses = []
        if is_labeled(i):
            value = "pass" if TRUTH[i] else "fail"
            responses.append(rg.Response("verdict", value, people[0], status="submitted"))
        if i % 10 == 3:
            responses.append(rg.Response("verdict", "fail", people[1], status="draft"))
        if i % 10 == 6:
            responses.append(rg.Response("verdict", "fail", people[1], status="discarded"))
        guess = rg.Suggestion("verdict", "pass" if JUDGE[i] else "fail", agent="gpt", score=0.9)
        records.append(
            rg.Record(
                id=f"r{i}",
                fields={"text": f"answer {i}"},
                responses=responses,
                suggestions=[guess],
            )
        )
    JsonIO.to_json(records=records, path=folder / "nested.json")
    (folder / "flat.json").write_text(json.dumps(GenericIO.to_list(records, flatten=True)))


def promptfoo(folder: Path) -> None:
    """promptfoo with its echo provider, by npm; then thumbs, as its page adds them."""
    tests = [
        {
            "vars": {
                "question": f"{'good' if JUDGE[i] else 'bad'} {'fine' if OTHER[i] else 'off'} {i}"
            },
            "assert": [
                {"type": "contains", "value": "good", "metric": "judge"},
                {"type": "javascript", "value": "output.includes('fine')", "metric": "other"},
            ],
        }
        for i in range(N)
    ]
    config = {"prompts": ["{{question}}"], "providers": ["echo"], "tests": tests}
    (folder / "promptfooconfig.json").write_text(json.dumps(config))
    environment = os.environ | {
        "PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1",
        "PROMPTFOO_CONFIG_DIR": str(folder / "home"), "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    }  # fmt: skip
    command = [os.environ.get("FEWLABELS_PROMPTFOO", "promptfoo"), "eval", "-c"]
    subprocess.run(
        [*command, str(folder / "promptfooconfig.json"), "-o", str(folder / "plain.json"),
         "--no-progress-bar", "--no-table", "--no-cache"],
        env=environment, check=False, stdout=subprocess.DEVNULL, cwd=folder,
    )  # fmt: skip
    log = json.loads((folder / "plain.json").read_text())
    for result in log["results"]["results"]:
        i = result["testIdx"]
        if is_labeled(i):
            graded, score = result["gradingResult"], int(TRUTH[i])
            reason = "Manual result (overrides all other grading results)"
            graded["componentResults"].append(
                {"pass": TRUTH[i], "score": score, "reason": reason, "assertion": {"type": "human"}}
            )
            graded |= {"pass": TRUTH[i], "score": score, "reason": reason}
            result |= {"success": TRUTH[i], "score": score}
    (folder / "thumbs.json").write_text(json.dumps(log))


def phoenix(folder: Path) -> None:
    """What Phoenix's client makes of annotations: a table, and the rows of its API."""
    import pandas as pd
    from phoenix.client.resources.spans import _flatten_nested_column

    rows = []
    for i in range(N):
        for kind, name, value in (
            ("LLM", "correctness", JUDGE[i]), ("CODE", "correctness", OTHER[i]),
            *([("HUMAN", "correctness", TRUTH[i])] if is_labeled(i) else []),
        ):  # fmt: skip
            result = {"label": "correct" if value else "incorrect", "score": float(value)}
            rows.append({
                "id": f"{kind}{i}", "span_id": f"span{i}", "name": name, "annotator_kind": kind,
                "result": result, "metadata": {}, "identifier": kind.lower(), "source": "API",
                "created_at": "2026-01-01T00:00:00+00:00",
                "updated_at": "2026-01-01T00:00:00+00:00", "user_id": None,
            })  # fmt: skip
    (folder / "rows.json").write_text(json.dumps({"data": rows, "next_cursor": None}))
    frame = _flatten_nested_column(pd.DataFrame(rows), "result")
    frame = frame.rename(columns={"name": "annotation_name"}).set_index("span_id")
    frame.to_csv(folder / "annotations.csv")


def langfuse(folder: Path) -> None:
    """Scores as Langfuse's client has them, dumped by its own models."""
    import datetime as dt

    from langfuse.api.scores.types.score_v3 import ScoreV3_Boolean, ScoreV3_Categorical

    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    rows = []
    for i in range(N):
        for source, value in (
            ("EVAL", JUDGE[i]), *([("ANNOTATION", TRUTH[i])] if is_labeled(i) else []),
        ):  # fmt: skip
            common = {
                "id": f"{source}{i}", "project_id": "p", "name": "correct", "source": source,
                "timestamp": now, "environment": "default", "created_at": now, "updated_at": now,
                "subject": {"kind": "trace", "id": f"trace{i}"},
            }  # fmt: skip
            rows.append(ScoreV3_Boolean(value=value, **common))
            rows.append(ScoreV3_Categorical(**{
                **common, "id": f"tone{source}{i}", "name": "tone",
                "value": "friendly" if value else "cold",
            }))  # fmt: skip
    data = [json.loads(row.model_dump_json(by_alias=True)) for row in rows]
    (folder / "scores.json").write_text(json.dumps({"data": data, "meta": {}}))


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
