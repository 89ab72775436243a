"""Layouts typed by hand: traps, what is said of them, and what is refused in one line."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from typing import get_args

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.cli.input import _Log
from fewlabels.data.doctor.diagnose import diagnose
from fewlabels.data.logs import ALIASES, tools
from fewlabels.data.logs.columns import LogOptions
from fewlabels.data.logs.documents import keys_at_the_beginning, opened
from fewlabels.errors import InputError, UsageError


def assessment(name, value, kind="LLM_JUDGE", who="gpt", **more):
    source = {"source_type": kind, "source_id": who}
    return {"assessment_name": name, "source": source, "feedback": {"value": value}, **more}


def trace(i, *assessments):
    return {"info": {"trace_id": f"t{i}", "assessments": list(assessments)}, "data": {"spans": []}}


def rows(path_writer, traces, name="traces.jsonl"):
    return path_writer("".join(json.dumps(t) + "\n" for t in traces), name)


def judged(n=30, labeled=12):
    return [
        trace(
            i,
            assessment("good", i % 3 > 0),
            *([assessment("good", i % 4 > 0, "HUMAN", "ann")] if i < labeled else []),
        )
        for i in range(n)
    ]


def refused(path, message, **options):
    with pytest.raises(InputError, match=message) as caught:
        fl.read_predictions(path, **options)
    assert "\n" not in str(caught.value)


# What is said of a log ---------------------------------------------------------------------------


def test_what_stands_behind_the_mark():
    asked = LogOptions.parse("a & b, c&people=votes&pass-from=3.5&repeats=all&format=mlflow")
    assert asked == LogOptions("a & b, c", "votes", "all", 3.5, "mlflow")
    assert LogOptions.parse(asked.under("x")) == LogOptions("x", "votes", "all", 3.5, "mlflow")
    assert LogOptions.parse("people=majority") == LogOptions(None, "majority")
    with pytest.raises(UsageError, match="unknown --people 'vote'; did you mean 'votes'"):
        LogOptions.parse("x&people=vote")
    with pytest.raises(UsageError, match="--pass-from must be a number; got 'much'"):
        LogOptions.parse("&pass-from=much")


def test_every_format_has_a_name_that_the_command_line_takes():
    assert {*tools(), *ALIASES} == {*get_args(_Log)}
    assert {tool["tool"] for tool in tools().values()} >= {
        "Inspect",
        "MLflow",
        "promptfoo",
        "DeepEval",
    }


def test_people_are_labels_and_judges_classifiers(write):
    found = fl.read_predictions(rows(write, judged()))
    assert (found.n_items, found.n_labeled, found.models) == (30, 12, ("gpt",))
    assert found.labels[:5].tolist() == [0, 1, 1, 1, 0]
    assert found.hard[:4, 0].tolist() == [0, 1, 1, 0]
    assert found.reading[1:] == ("criterion: 'good'", "labels: ann, of 12 items", "judges: gpt")


def test_the_doctor_tells_what_was_found(write):
    path = rows(write, judged())
    said = diagnose(path)
    assert said.ok
    assert "MLflow traces with assessments" in said.reading
    assert said.command == f"fewlabels estimate {path}"
    assert not any("votes of two classifiers" in finding.what for finding in said.findings)


def several(n=20):
    """Two people who differ on every fifth item."""
    return [
        trace(
            i,
            assessment("good", i % 3 > 0),
            assessment("good", i % 2 > 0, "HUMAN", "ann"),
            assessment("good", (i % 2 > 0) != (i % 5 == 0), "HUMAN", "ben"),
        )
        for i in range(n)
    ]


def test_labels_of_several_people(write):
    path = rows(write, several())
    counts = fl.read_predictions(path)
    assert counts.n_labeled == 0
    assert counts.histogram.sum(axis=1).tolist() == [2.0] * 20
    most = fl.read_predictions(f"{path}#&people=majority")
    assert most.n_labeled == 16
    assert any("4 ties are left unlabeled" in note for note in most.notes)
    votes = fl.read_predictions(f"{path}#&people=votes")
    assert (votes.models, votes.n_labeled) == (("gpt", "ann", "ben"), 0)


def test_the_last_label_of_a_person_counts(write):
    early, late = {"create_time": "2026-01-01T00:00:00Z"}, {"create_time": "2026-01-02T00:00:00Z"}
    traces = [
        trace(
            i,
            assessment("good", True),
            assessment("good", False, "HUMAN", "ann", **late),
            assessment("good", True, "HUMAN", "ann", **early),
        )
        for i in range(5)
    ]
    found = fl.read_predictions(rows(write, [*traces, trace(9, assessment("good", False))]))
    assert found.labels[:5].tolist() == [0] * 5
    assert "5 labels were changed by the same person later; the last one counts" in found.notes


def test_a_judge_that_repeats_itself_has_shares(write):
    traces = [
        trace(i, *(assessment("good", (i + k) % 3 > 0) for k in range(3 if i % 2 else 1)))
        for i in range(12)
    ]
    found = fl.read_predictions(rows(write, traces))
    assert np.allclose(np.nanmax(found.probabilities[1::2, 0], axis=1), 2 / 3)
    assert any("judged 6 items repeatedly" in note for note in found.notes)


def test_corrections_alone_are_no_random_sample(write):
    """People who change what they find wrong, and leave the rest, make a judge look bad."""
    traces = []
    for i in range(30):
        said = [assessment("good", True, assessment_id=f"a{i}", valid=i > 5)]
        if i <= 5:
            said.append(assessment("good", False, "HUMAN", "ann", overrides=f"a{i}"))
        traces.append(trace(i, *said))
    found = fl.read_predictions(rows(write, traces))
    assert (found.hard[:6, 0] == 1).all()  # the judge's, before it was corrected
    assert any("(6 changed, 0 confirmed)" in n and "no random sample" in n for n in found.notes)


def test_a_judge_that_is_its_own_correction(write):
    traces = [
        trace(i, assessment("good", i % 3 > 0), assessment("good", i % 3 > 0, "HUMAN", "ann"))
        for i in range(25)
    ]
    found = fl.read_predictions(rows(write, traces))
    assert any("says what the labels say on all 25 labeled items" in n for n in found.notes)


# Criteria ----------------------------------------------------------------------------------------


def test_which_criterion(write):
    traces = [
        trace(
            i,
            assessment("kind", i % 2 > 0),
            assessment("good", i % 3 > 0),
            assessment("good (person)", i % 4 > 0, "HUMAN", "ann"),
        )
        for i in range(20)
    ]
    path = rows(write, traces)
    refused(path, r"has 3 criteria: 'kind' .*people and judges have no criterion in common: name")
    pair = fl.read_predictions(f"{path}#good (person),good")
    assert (pair.n_labeled, pair.models) == (20, ("gpt",))
    refused(f"{path}#goof", "unknown criterion 'goof'; did you mean 'good'")
    both = fl.read_predictions(f"{path}#good (person),good,kind")
    assert both.models == ("gpt (kind)", "gpt (good)")
    two = [trace(i, assessment("good", True), assessment("human", True, "HUMAN")) for i in range(9)]
    found = fl.read_predictions(rows(write, two, "two.jsonl"))
    assert any("the only ones there are" in line for line in found.reading)


def test_numbers_are_grades_shares_or_scores(write):
    def of(value, label, name):
        traces = [
            trace(i, assessment("x", value(i)), assessment("x", label(i), "HUMAN", "ann"))
            for i in range(20)
        ]
        return rows(write, traces, name)

    grades = fl.read_predictions(of(lambda i: i % 5 + 1.0, lambda i: i % 5 + 1, "grades.jsonl"))
    assert grades.classes == (1, 2, 3, 4, 5)
    share = fl.read_predictions(of(lambda i: i / 20, lambda i: i % 2 > 0, "share.jsonl"))
    assert share.probabilities[4, 0, 1] == pytest.approx(0.2)
    score = fl.read_predictions(of(lambda i: i / 2, lambda i: i % 2 > 0, "score.jsonl"))
    assert score.scores[4, 0] == 2.0
    real = of(lambda i: i / 20, lambda i: i / 19, "real.jsonl")
    refused(real, r"people's labels are numbers such as 0\.5\d* and no classes: .*--pass-from")
    cut = fl.read_predictions(f"{real}#&pass-from=0.5")
    assert cut.classes == ("fail", "pass")
    assert cut.hard[:, 0].tolist() == [0] * 10 + [1] * 10
    mixed = of(lambda i: i % 4 + 1.25, lambda i: i % 5 + 1, "mixed.jsonl")
    refused(mixed, "judge 'gpt' gives numbers such as 1.25, and people the classes '1', '2'")


def test_nothing_is_scored(write):
    log = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"},
           "samples": [{"id": 1, "epoch": 1, "scores": {}}]}  # fmt: skip
    refused(write(json.dumps(log), "log.json"), r"of Inspect without a single score \(1 samples")
    del log["samples"]
    refused(write(json.dumps(log), "log.json"), "a log of Inspect without samples")


# Layouts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"version": 9, "eval": {"task": "t"}, "samples": [{"name": 1}]},
         "Inspect in a layout that is not known: a sample has no field 'id'"),
        ({"version": 9, "eval": {"task": "t"}, "samples": [{"id": 1, "scores": {"a": {"v": 1}}}]},
         "Inspect in a layout that is not known: a score has no field 'value'"),
        ({"version": 9, "eval": {"task": "t"}, "samples": [{"id": 1, "scores": [1]}]},
         "Inspect in a layout that is not known"),
        ({"evalId": "e", "results": {"version": 9, "prompts": [], "outputs": []}},
         "no field 'results.results'"),
        ({"evalId": "e", "results": {"version": 3, "prompts": [], "results": [
            {"testIdx": 0, "promptIdx": 0, "gradingResult": {"componentResults": [{"ok": 1}]}}]}},
         "a component of a result has no field 'pass'"),
        ({"testRunData": {"testCases": [{"input": "x"}]}}, "a test case has no field 'name'"),
        ([{"info": {"trace_id": "a", "assessments": [{"feedback": {"value": 1}}]}}],
         "an assessment has no field 'assessment_name'"),
        ([{"id": 1, "data": {}, "annotations": [{"result": 3}]}], "Label Studio in a layout"),
        ({"columns": ["inputs"], "data": [["x"]]}, "none of them a score"),
    ],
)  # fmt: skip
def test_layouts_that_are_not_known(write, document, message):
    refused(write(json.dumps(document), "log.json"), message)


def test_formats_that_are_said(write):
    path = write(json.dumps([{"a": 1}]), "log.json")
    refused(f"{path}#&format=promptfoo", r"has not the fields of promptfoo \(results.results\)")
    refused(f"{path}#&format=prompt", "unknown format 'prompt'; did you mean 'promptfoo'")
    refused(
        f"{path}#good", "is JSON, which has no sheet 'good', and no log of a tool; leave it out"
    )
    table = write("item,label,y__a\n1,x,x\n2,y,y\n", "table.csv")
    refused(f"{table}#&format=inspect", "is CSV, and --format says inspect")


def test_promptfoo_without_the_persons_component(write):
    """An older thumb leaves no trace of the judge: it counts neither as label nor as verdict."""

    def result(i, reason):
        graded = {
            "pass": True,
            "score": 1,
            "reason": reason,
            "componentResults": [{"pass": i % 2 == 0, "score": 1, "assertion": {"type": "equals"}}],
        }
        return {"testIdx": i, "promptIdx": 0, "gradingResult": graded, "vars": {"q": i}}

    results = [result(i, "Manual result" if i < 3 else "ok") for i in range(10)]
    log = {
        "evalId": "e",
        "results": {"version": 3, "prompts": [], "results": [*results, results[0]]},
    }
    found = fl.read_predictions(write(json.dumps(log), "log.json"))
    assert (found.n_items, found.n_labeled, found.models) == (10, 0, ("equals",))
    assert found.hard[:, 0].tolist() == [1, 0] * 5
    assert any("say 'Manual result' without the person's verdict" in note for note in found.notes)
    assert any("1 repeats are left out" in note for note in found.notes)


def test_label_studio_of_two_choices_and_regions(write):
    def task(i):
        result = [
            {
                "from_name": "c",
                "value": {"choices": ["a", "b"] if i == 0 else ["a" if i % 2 else "b"]},
            }
        ]
        result.append({"from_name": "span", "value": {"start": 1, "end": 2, "labels": ["x"]}})
        said = {"completed_by": 3, "result": result, "created_at": f"2026-01-0{i % 8 + 1}"}
        guess = {"model_version": "m", "result": [{"from_name": "c", "value": {"choices": ["a"]}}]}
        return {"id": i, "data": {"text": "t"}, "annotations": [said], "predictions": [guess]}

    found = fl.read_predictions(write(json.dumps([task(i) for i in range(8)]), "tasks.json"))
    assert (found.n_items, found.n_labeled) == (8, 7)
    assert "1 results are several choices at once, which are no class" in found.notes
    assert any(note.startswith("8 results are regions or texts") for note in found.notes)


def test_doccano(write):
    lines = [
        {"id": i, "text": "t", "label": ["a" if i % 2 else "b"], "Comments": []} for i in range(6)
    ]
    lines += [{"id": 7, "text": "t", "label": ["a", "b"], "Comments": []},
              {"id": 8, "text": "t", "label": [[0, 2, "a"]], "Comments": []}]  # fmt: skip
    path = write("".join(json.dumps(line) + "\n" for line in lines), "alice.jsonl")
    table = {"item": list(range(10)), "y__m": ["a"] * 10}
    found = fl.read_predictions(table, labels=path)
    assert found.n_labeled == 6


def flat(kinds=("EVAL", "ANNOTATION"), value="value"):
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["id", "trace_id", "name", "source", value, "timestamp"])
    for i in range(20):
        for kind in kinds:
            said = "NaN" if i == 3 and kind == kinds[0] else float(i % 3 > 0)
            writer.writerow([f"{kind}{i}", f"t{i}", "good", kind, said, f"2026-01-{i + 1:02}"])
    return out.getvalue()


def test_flat_exports(write):
    found = fl.read_predictions(write(flat()))
    assert (found.n_items, found.n_labeled, found.models) == (20, 20, ("good",))
    assert found.hard[3, 0] == -1
    assert "1 verdicts are empty, NaN or long texts (unscored) and are left out" in found.notes
    # A table whose column of sources says something else is no log.
    other = write(flat(("web", "mail")), "other.csv")
    refused(other, "no prediction columns")
    odd = fl.read_predictions(write(flat(("EVAL", "ANNOTATION", "GREMLIN")), "odd.csv"))
    assert any("20 rows are of unknown authors ('GREMLIN')" in note for note in odd.notes)


def test_a_folder_of_logs(write, tmp_path):
    for name, n in (("a", 30), ("b", 29)):
        rows(write, judged(n), f"logs/{name}.jsonl")
    refused(tmp_path / "logs", "has the trace 't0' twice; remove one")
    write(json.dumps({"evalId": "e", "results": {"version": 3, "stats": {}, "results": []}}),
          "logs/c.json")  # fmt: skip
    refused(tmp_path / "logs", "holds logs of several tools")


def test_a_folder_with_one_log_under_two_names(write, tmp_path):
    for name in ("a", "b"):
        write(archive({"header.json": {"eval": {}}}), f"logs/{name}.eval")
    refused(tmp_path / "logs", "holds one log twice, as 'a.eval' and 'b.eval'; remove one")


def archive(members, compression=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as made:
        for name, content in members.items():
            made.writestr(name, json.dumps(content))
    return out.getvalue()


def test_the_summaries_of_an_eval_are_not_asked(write):
    """They have no history: a person's correction would be the judge's own verdict there."""
    edit = {"value": "C", "provenance": {"author": "ann", "timestamp": "2026-01-01T00:00:00Z"}}
    samples = {
        f"samples/{i}_epoch_1.json": {
            "id": i, "epoch": 1, "input": "q", "output": {"choices": []},
            "scores": {"judge": {"value": "C", "history": [{"value": "I"}, edit]}},
        }
        for i in range(6)
    }  # fmt: skip
    header = {"version": 2, "eval": {"task": "t", "model": "m", "config": {}}}
    content = archive({"header.json": header, "summaries.json": [], **samples})
    found = fl.read_predictions(write(content, "run.eval"))
    assert found.n_labeled == 6
    assert (found.hard[:, 0] != found.labels).all()
    refused(write(archive({"header.json": header}), "run.eval"), "without samples")
    cut = write(content[: len(content) - 40], "run.eval")
    refused(cut, "zip archive that is damaged or cut short")


# A truth beside what models say -------------------------------------------------------------------


def accuracy(source, **options):
    """The share of right predictions among the labeled items, by classifier."""
    found = source if isinstance(source, fl.Predictions) else fl.read_predictions(source, **options)
    both = found.has_hard & found.labeled[:, None]
    right = (found.hard == found.labels[:, None]) & both
    return dict(zip(found.models, (right.sum(axis=0) / both.sum(axis=0)).tolist(), strict=True))


def test_what_is_marked_as_the_truth_is_the_label_and_others_answers_are_votes(write):
    def said(who, choice, **more):
        result = [{"from_name": "c", "value": {"choices": [choice]}}]
        return {"completed_by": who, "result": result, **more}

    def task(i):
        truth = "ab"[i % 2]
        people = [said(1, truth), said(2, "ab"[i % 4 > 1], ground_truth=False)]
        people += [said(1, truth, ground_truth=True)] * (i < 12)
        guess = {"model_version": "net", "score": 0.6, **said(0, "a" if i % 3 else truth)}
        return {"id": i, "data": {}, "annotations": people, "predictions": [guess]}

    path = write(json.dumps([task(i) for i in range(20)]), "tasks.json")
    found = fl.read_predictions(path)
    assert (found.models, found.n_labeled) == (("net", "1", "2"), 12)
    assert accuracy(found) == {"net": 8 / 12, "1": 1.0, "2": 0.5}
    every = fl.read_predictions(f"{path}#&people=majority")
    assert (every.models, every.n_labeled) == (("net",), 10)  # the others differ


def test_a_table_of_mlflow_with_what_is_right(write):
    """Case and punctuation are no other answer, which is said; options name the columns."""
    truth = ["bug", "other", "billing"] * 10
    answers = ["BUG.", "other", "bug"] * 10
    columns = ["inputs", "ground_truth", "outputs", "exact_match/score", "judge/v1/score"]
    data = [["q", t, a, t == a, 4] for t, a in zip(truth, answers, strict=True)]
    path = write(json.dumps({"columns": columns, "data": data}), "eval_results_table.json")
    found = fl.read_predictions(path)
    assert accuracy(found) == {"outputs": 2 / 3}
    assert any(note.startswith("10 of 30 answers are a class but for case") for note in found.notes)
    assert any("'exact_match' (judges exact_match), 'judge'" in line for line in found.reading)
    plain = fl.read_predictions(path, label="ground_truth", hard={"net": "outputs"})
    assert accuracy(plain)["net"] == 2 / 3
    assert fl.read_predictions(f"{path}#exact_match").models == ("exact_match",)


def pairs(judge, games):
    return [
        {"pair_id": f"p{i}", "label": "A>B", "judge_name": judge, "question": "q",
         "judgments": [{"judgment": {}, "decision": one} for one in decisions]}
        for i, decisions in enumerate(games)
    ]  # fmt: skip


def test_games_of_a_judge(write, tmp_path):
    """Every second game has the answers turned round; a judge that contradicts itself is wrong."""
    two = [("A>B", "B>A"), ("A>B", "A=B"), ("A>B", "A>B"), ("B>A", "A>B"), ("A>B", None)] * 4
    one = [("A>B",), ("A>B",), ("B>A",), ("A>B",), (None,)] * 4
    folder = tmp_path / "games"
    for judge, games in (("arena", two), ("reward", one)):
        rows(write, pairs(judge, games), f"games/judge_name={judge},judge_model=m-1.jsonl")
    expected = {"arena m-1": 0.6, "reward m-1": 0.75}
    assert accuracy(folder) == expected
    single = folder / "judge_name=arena,judge_model=m-1.jsonl"
    assert accuracy(single) == {"arena m-1": 0.6}


def test_statistics_of_instances(tmp_path):
    """An exact match says that the model is right; changed questions are no further items."""

    def stat(name, value):
        return {"name": {"name": name, "split": "test"}, "mean": value}

    for model, right in (("small", 2), ("large", 3)):
        instances = [
            {"instance_id": f"id{i}", "train_trial_index": 0,
             "stats": [stat("num_tokens", 7.0), stat("exact_match", float(i % 4 < right))]}
            for i in range(40)
        ]  # fmt: skip
        instances.append({**instances[0], "perturbation": {"name": "typos"}})
        folder = tmp_path / "runs" / f"task:subject=x,model={model}"
        folder.mkdir(parents=True)
        (folder / "per_instance_stats.json").write_text(json.dumps(instances), "utf-8")
    assert accuracy(tmp_path / "runs") == {"large": 0.75, "small": 0.5}
    one = tmp_path / "runs/task:subject=x,model=small/per_instance_stats.json"
    found = fl.read_predictions(one)
    assert (found.n_items, accuracy(found)) == (40, {"small": 0.5})
    assert "1 answers to changed questions (perturbation) are left out" in found.notes


def test_events_of_a_run(write, tmp_path):
    """Only a comparison is an item; two runs meet by the sample; no answer is no verdict."""
    for model, step in (("small", 2), ("large", 4)):
        events = [{"spec": {"completion_fns": [model], "eval_name": "quiz"}}, {"final_report": {}}]
        for i in sorted(range(20), key=lambda i: i * 7 % 20):
            picked = None if i == 0 else "AB"[(i + (i % step == 1)) % 2]
            about = {"run_id": "r", "sample_id": f"quiz.{i}"}
            events.append({**about, "type": "sampling", "data": {"sampled": ["x"]}})
            data = {"expected": "AB"[i % 2], "picked": picked, "correct": None}
            events.append({**about, "type": "match", "data": data})
        rows(write, events, f"evals/{model}.jsonl")
    assert accuracy(tmp_path / "evals") == {"large": 14 / 19, "small": 9 / 19}
    found = fl.read_predictions(tmp_path / "evals" / "small.jsonl")
    assert (found.n_items, found.n_labeled, found.models) == (20, 20, ("small",))
    # Of free words the label is whether they are right.
    free = [{"spec": {"completion_fns": ["m"]}}]
    for i in range(40):
        data = {"expected": f"sum {i}", "picked": f"sum {i + i % 2}", "correct": i % 2 == 0}
        free.append({"sample_id": f"s{i}", "type": "match", "data": data})
    assert accuracy(rows(write, free, "free.jsonl")) == {"m": 0.5}


def test_two_models_of_one_task_are_joined_by_the_document(write, tmp_path):
    def sample(i, best):
        scores = [[str(-1.0 - 2.0 * (k != best)), "False"] for k in range(3)]
        return {"doc_id": i, "target": i % 3, "filtered_resps": scores, "doc_hash": f"{best}{i}",
                "filter": "none", "metrics": ["acc"], "acc": 1.0}  # fmt: skip

    files = [
        rows(write, [sample(i, (i + (i % step == 0)) % 3) for i in range(30)],
             f"{name}/samples_task_2026-01-01T00-00-00.1.jsonl")
        for name, step in (("small", 2), ("large", 5))
    ]  # fmt: skip
    expected = {"small": 0.5, "large": 0.8}
    assert accuracy(files[0], join=str(files[1])) == expected
    assert accuracy(tmp_path) == expected


def test_one_judge_and_no_label(write):
    """A preference from 1 to 2 is a probability, and how often it is right nobody knows."""
    judged = [
        {"instruction": "q", "output_1": "x", "generator_1": "base", "output_2": "y",
         "generator_2": "new", "annotator": "gpt", "preference": None if i == 3 else 1 + i % 5 / 4,
         "price_per_example": 0.1}
        for i in range(40)
    ]  # fmt: skip
    path = write(json.dumps(judged), "annotations.json")
    found = fl.read_predictions(path)
    assert (found.n_items, found.n_labeled, found.models) == (39, 0, ("gpt",))
    assert found.probabilities[1, 0].tolist() == [0.75, 0.25]
    note = next(note for note in found.notes if note.startswith("the log has one judge"))
    assert "its own share of 'preferred' is 0.494" in note
    labels = {"item": [f"row {i + 1}" for i in range(20)], "label": ["preferred"] * 20}
    # The command that is proposed, with labels that people made.
    assert f"fewlabels score {path} --labels" in note
    scores = fl.score(fl.read_predictions(path, labels=labels))
    assert scores.get("labels only").value > 0.9


def test_labels_of_people_and_of_a_machine(write):
    """SageMaker: a row is a person's answer or a machine's, so that nothing tells who is right."""
    lines = [
        {"source-ref": f"s3://b/{i}.png", "job": i % 2, "job-metadata": {
            "class-name": "ab"[i % 2], "confidence": 0.8, "job-name": "labeling-job/job",
            "human-annotated": "no" if i % 3 else "yes", "creation-date": "2026-01-01"}}
        for i in range(30)
    ]  # fmt: skip
    found = fl.read_predictions(rows(write, lines, "output.manifest"))
    assert (found.n_items, found.n_labeled, found.models) == (30, 10, ("job",))
    assert found.has_hard.sum() == 20
    assert any("no item has both a label and a verdict ('job')" in note for note in found.notes)


def test_a_scorer_that_may_be_a_person(write):
    """Which criterion is asked by a command that runs; a scorer's verdicts may be the labels."""
    samples = [
        {"id": i, "epoch": 1, "scores": {
            "rubric": {"value": None if i == 0 else {"good": i % 2, "short": i % 3 > 0}},
            "human_check": {"value": "CI"[i % 2 == 0]}}}
        for i in range(20)
    ]  # fmt: skip
    log = {"version": 2, "eval": {"task": "t", "model": "m"}, "samples": samples}
    path = write(json.dumps(log), "log.json")
    with pytest.raises(InputError, match="unless 'human_check' is what people say") as caught:
        fl.read_predictions(path)
    criteria = "human_check,rubric/good,rubric/short"
    assert f"fewlabels estimate {path} --criterion {criteria} --label human_check" in str(
        caught.value
    )
    found = fl.read_predictions(f"{path}#{criteria}", label="human_check")
    assert accuracy(found)["rubric (rubric/good)"] == 1.0
    assert found.n_labeled == 20
    assert fl.read_predictions(f"{path}#human_check").models == ("human_check",)


# Hostile -----------------------------------------------------------------------------------------


def test_long_strings_are_cut_and_not_kept(write):
    long = trace(0, assessment("good", True, rationale="x" * (1 << 23)))
    long["info"]["request_preview"] = "y" * (1 << 22)
    path = rows(write, [long, *judged()[1:]])
    found = fl.read_predictions(path, keep=["input"])
    assert found.n_items == 30
    assert len(found.groups["input"][0]) == 2_000
    named = rows(write, [trace("z" * 5_000, assessment("good", True))], "named.jsonl")
    refused(named, "has an item whose name is 5,001 characters long; names have at most 1,000")


def test_deep_nesting_and_many_keys(write):
    deep = '{"info": {"trace_id": "a", "assessments": ' + "[" * 50_000 + "]" * 50_000 + "}}"
    refused(write(deep, "deep.json"), "nested too deeply")
    many = {"version": 2, "eval": {"task": "t"}, "samples": [
        {"id": 1, "scores": {f"s{i}": {"value": 1} for i in range(20_000)}}]}  # fmt: skip
    refused(write(json.dumps(many), "many.json"), "has more than 10,000 (criteria|authors)")


def test_nan_as_text_is_no_score(write):
    """As JSON of Python has it, and as words for it in other places: unscored, not a class."""
    said = ["NaN", "nan", "N/A", "null", "", float("nan"), float("inf"), None]
    traces = judged()
    for t, value in zip(traces[20:], said, strict=False):
        t["info"]["assessments"][0]["feedback"]["value"] = value
    found = fl.read_predictions(rows(write, traces, "nan.jsonl"))
    assert set(found.classes) <= {"true", "false"}
    assert found.has_hard.all()
    assert found.n_items == 22  # of the others nobody says anything
    assert any("8 verdicts are empty, NaN or long texts (unscored)" in note for note in found.notes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("a long string", None),
        ("a long name", r"item whose name is 50,000,001 characters long"),
        ("a long value", None),
        ("many keys", "has more than 10,000 (criteria|authors)"),
        ("many keys of one object", None),
        ("deep", "nested too deeply"),
    ],
)
def test_hostile_logs_of_many_megabytes(write, capsys, what, message):
    """50 MB of text, a million keys: read, or refused in one line."""
    from fewlabels.cli import main

    long = "x" * 50_000_000
    traces = judged()
    if what == "a long string":
        traces[0]["info"]["assessments"][0]["rationale"] = long
    elif what == "a long name":
        traces.append(trace(long, assessment("good", True)))
    elif what == "a long value":
        traces[0]["info"]["assessments"][0]["feedback"]["value"] = long
    elif what == "many keys of one object":
        traces[0]["info"]["tags"] = {f"k{i}": i for i in range(1_000_000)}
    text = "".join(json.dumps(t) + "\n" for t in traces)
    if what == "deep":
        text += '{"info": {"trace_id": "a", "assessments": ' + "[" * 10_000_000
    if what == "many keys":
        scores = {f"s{i}": {"value": 1} for i in range(1_000_000)}
        text = json.dumps({"version": 2, "eval": {"task": "t"},
                           "samples": [{"id": 1, "scores": scores}]})  # fmt: skip
    path = write(text, "hostile.json")
    code = main(["convert", str(path), str(path.with_name("out.csv"))])
    error = capsys.readouterr().err
    assert code == (0 if message is None else 2), error[:500]
    if message:
        assert error.count("\n") == 1
        assert len(error) < 1_000
        assert re.search(message, error)


def test_broken_json_says_where(write):
    text = "".join(json.dumps(t) + "\n" for t in judged())
    refused(write(text[:-30], "cut.jsonl"), r"it ends too early, in line 30")
    refused(write(text.replace('"t3"', '"t3', 1), "bad.jsonl"), "is not valid JSON")
    refused(write(text.encode() + b'{"a": "\xff"}', "bytes.jsonl"), "is not UTF-8")
    twice = rows(write, [*judged(), judged()[2]], "twice.jsonl")
    refused(twice, "has the trace 't2' twice; remove one")


def test_values_that_are_read_in_pieces(write, monkeypatch):
    """Whatever is cut by the end of a block, within a number or a character, is read on."""
    import fewlabels.data.logs.documents as documents

    monkeypatch.setattr(documents, "_BLOCK", 7)
    items = [{"a": [1, 23456, -1.5e10], "b": 'ä\\"{[', "c": {"d": None}} for _ in range(5)]
    path = write(json.dumps(items, ensure_ascii=False), "list.json")
    with opened(path) as scanner:
        assert list(scanner.values()) == items
    lines = write("1234567890\n" * 4, "lines.json")
    with opened(lines) as scanner:
        assert list(scanner.values()) == [1234567890] * 4
    nested = write(json.dumps({"x": 1, "results": {"version": 3, "results": items}}), "n.json")
    with opened(nested) as scanner:
        found = list(scanner.within([("results", "results")]))
    assert found[:2] == [(("x",), 1), (("results", "version"), 3)]
    assert [value for where, value in found[2:]] == items
    assert keys_at_the_beginning(nested) >= {"x", "results.version", "results.results.a"}


def test_answers_beside_a_key_in_logs_of_inspect(write, tmp_path):
    """Each log is of a model; "C" is a choice, and a correct one; a long answer is none."""
    key = ["A", "B", "C", "D"] * 10
    for model, wrong in (("org/small", 4), ("org/large", 8)):
        samples = [
            {"id": i, "epoch": 1, "input": "which?", "target": t, "output": {}, "scores": {
                "choice": {"value": "I" if i % wrong == 0 else "C",
                           "answer": "ABCD"[(i + 1) % 4] if i % wrong == 0 else t}}}
            for i, t in enumerate(key)
        ]  # fmt: skip
        about = {"task": "mcq", "model": model, "config": {"epochs": 1}}
        log = {"version": 2, "status": "success", "eval": about, "samples": samples}
        write(json.dumps(log), f"{model[4:]}.json")
    found = fl.read_predictions(tmp_path)
    assert (found.n_items, found.n_labeled, found.classes) == (40, 40, ("A", "B", "C", "D"))
    assert accuracy(found) == {"org/small": 0.75, "org/large": 0.875}
    assert list(accuracy(fl.read_predictions(tmp_path / "small.json")).values()) == [0.75]
