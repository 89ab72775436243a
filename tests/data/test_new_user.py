"""What new users stuck at: every message leads on by a command that works as it stands."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fewlabels as fl
from fewlabels.cli import main
from fewlabels.comparison.compare import compare as compare_draws
from fewlabels.data.reading_lines import left_out
from fewlabels.errors import InputError, UsageError
from fewlabels.evaluation.input_facts import weights_of_labels

N = 400
RNG = np.random.default_rng(4)
TRUTH = RNG.random(N) < 0.4
FEW = np.arange(N) < 40
SCORE = 1 / (1 + np.exp(-RNG.normal(np.where(TRUTH, 1.5, -1.5), 1)))
VOTES = TRUTH ^ (RNG.random((5, N)) < 0.15)


def words(values, yes: str, no: str, where=None) -> np.ndarray:
    held = np.where(values, yes, no).astype(object)
    return held if where is None else np.where(where, held, None)


def options_in(message: str) -> list[tuple[str, str]]:
    return re.findall(
        r"--(same|no-label|hard) ('[^']*'|[^\s,;]+)", message.partition(" or --label")[0]
    )


def test_labels_are_read_beside_scores_that_somebody_names():
    data = pd.DataFrame({
        "small": SCORE, "large": 100 * SCORE[::-1], "lang": words(RNG.random(N) < 0.5, "en", "es"),
        "spam": words(TRUTH, "spam", "ham", FEW),
    })  # fmt: skip
    named = fl.read_predictions(data, scores={"small": "small", "large": "large"})
    assert (named.n_labeled, named.models) == (40, ("small", "large"))
    # A verdict of the same words may be what the column repeats.
    data["judge"] = words(VOTES[0], "spam", "ham")
    assert fl.read_predictions(data, hard={"judge": "judge"}).n_labeled == 0


def test_columns_of_other_words_are_left_out_with_what_the_words_mean():
    reader = words(VOTES[0], "1", "0")
    reader[[50, 150, 250]] = "9"
    data = pd.DataFrame({
        "study": [f"S{i}" for i in range(N)], "ai_score": SCORE * 100, "reader": reader,
        "biopsy": words(TRUTH, "malignant", "benign", FEW),
    })  # fmt: skip
    [line] = left_out(fl.read_predictions(data).reading)
    assert "--same 0=benign --same 1=malignant --no-label 9" in line
    with pytest.raises(UsageError, match=r"two classifiers, and there is one; .*--same 0=benign"):
        fl.compare(data)
    assert line in fl.threshold(data, min_recall=0.8).warnings
    same = {"0": "benign", "1": "malignant"}
    assert "reader" in fl.read_predictions(data, same=same, no_label=["9"]).models


def test_labels_that_no_column_is_named_after_come_with_what_to_say():
    classes = ["bird", "cat", "dog"]
    shares = RNG.dirichlet([1, 1, 1], N).round(2)
    label = np.where(FEW, np.array(classes)[shares.argmax(1)], "").astype(object)
    label[[0, 1]] = "dgo", "horse"
    data = pd.DataFrame({f"prob_{c}": shares[:, k] for k, c in enumerate(classes)})
    data["label"] = label
    with pytest.raises(InputError) as refused:
        fl.read_predictions(data)
    assert options_in(str(refused.value)) == [("same", "dgo=dog"), ("no-label", "horse")]
    read = fl.read_predictions(data, same={"dgo": "dog"}, no_label=["horse"])
    assert read.n_labeled == 39


def test_votes_alone_may_be_all_there_is():
    people = ("anna", "ben", "carla", "dmitri", "eve")
    data = pd.DataFrame({n: words(v, "toxic", "ok") for n, v in zip(people, VOTES, strict=True)})
    with pytest.raises(InputError, match="or all are votes") as refused:
        fl.read_predictions(data)
    hard = dict(shlex.split(v)[0].split("=") for _, v in options_in(str(refused.value)))
    assert len(hard) == 5
    assert fl.read_predictions(data, hard=hard).n_models == 5


def test_the_command_that_converts_a_file_names_it(tmp_path: Path):
    path = tmp_path / "my export.csv"
    path.write_bytes("text,label,y__a\nMüller,ja,ja\n".encode("cp1252"))
    with pytest.raises(InputError) as refused:
        fl.read_predictions(path)
    command = str(refused.value).rpartition("convert it: ")[2]
    new = "'my export-utf8.csv'"
    assert command == f"iconv -f WINDOWS-1252 -t UTF-8 '{path}' > {new}"


def test_weights_of_labels_alone_are_told_from_weights_of_items():
    chance = np.where(SCORE > 0.5, 0.5, 0.05)
    label = np.where(RNG.random(N) < chance, TRUTH, -1).astype(int)
    scored = {"scores": SCORE[:, None], "labels": label}
    [warning] = weights_of_labels(fl.Predictions(**scored, weight=1 / chance))
    assert "1 / P(labeled)" in warning
    at_random = np.where(RNG.random(N) < 0.2, TRUTH, -1).astype(int)
    random = fl.Predictions(scores=SCORE[:, None], labels=at_random, weight=1 / chance)
    assert not weights_of_labels(random)
    assert not weights_of_labels(fl.Predictions(**scored))


def test_a_requirement_may_be_a_percentage():
    from fewlabels.checks.conditions import parse_requirement

    read = parse_requirement("gpt:low:accuracy>=90%")
    assert (read.model, read.bound, read.threshold) == ("gpt", "low", 0.9)
    assert read.text == "gpt:low:accuracy>=90%"


def test_the_only_one_that_labels_do_not_contradict_is_best_of_nobody():
    draws = RNG.normal([0.9, 0.8, 0.7], 0.02, (500, 3))
    ranked = {
        n: compare_draws(
            ["a", "b", "c"], draws.mean(axis=0), draws, 1, level=0.95, contradicted=["a", "b"][:n]
        ).standings[0]
        for n in (1, 2)
    }
    assert ranked[1].model == "b"
    assert ranked[1].probability_best > 0.99
    assert ranked[2].model == "c"
    assert np.isnan(ranked[2].probability_best)


def test_markdown_is_printed_alone_and_no_other_output_is(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"label": words(TRUTH, "yes", "no", FEW), "y__a": words(VOTES[0], "yes", "no"),
                  "y__b": words(VOTES[1], "yes", "no")}).to_csv("f.csv", index=False)  # fmt: skip
    assert main(["estimate", "f.csv", "--metrics", "accuracy", "--markdown", "-"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("**fewlabels**")
    assert "| a | 0." in said
    assert main(["estimate", "f.csv", "--html", "-"]) == 2
    assert "--json and --markdown alone print" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["f.csv"]


def options_of(message: str) -> list[str]:
    """The first proposal of a message, as arguments."""
    words = re.search(r"(?:--[a-z-]+[ =](?:'[^']*'|[^\s,;]+) ?)+", message)
    assert words is not None, message
    return shlex.split(words[0])


def test_numbers_beside_a_confidence_that_is_asked_about_stay_in_the_command(
    tmp_path: Path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    sure = np.where(VOTES[0] == TRUTH, 90, 60) + RNG.integers(0, 9, N)
    frame = pd.DataFrame({
        "confidence": sure, "gpt4o": words(VOTES[0], "PASS", "FAIL"),
        "llama_score": np.rint(SCORE * 9 + 1), "human": words(TRUTH, "PASS", "FAIL", FEW),
    })  # fmt: skip
    frame.to_csv("f.csv", index=False)
    assert main(["estimate", "f.csv"]) == 2
    options = options_of(capsys.readouterr().err.partition("say which with ")[2])
    assert options[-2:] == ["--confidence", "gpt4o=confidence"]
    assert "--score llama=llama_score" in shlex.join(options)
    assert main(["estimate", "f.csv", "--metrics", "roc_auc", *options]) == 0
    assert "2 classifiers" in capsys.readouterr().out
    # What is asked of one classifier is asked of all that have such a column.
    both = frame.drop(columns="llama_score").assign(llama=words(VOTES[1], "PASS", "FAIL"))
    both = both.rename(columns={"confidence": "gpt4o_conf"}).assign(llama_conf=sure[::-1])
    both.to_csv("g.csv", index=False)
    assert main(["estimate", "g.csv"]) == 2
    said = capsys.readouterr().err
    assert "--confidence gpt4o=gpt4o_conf --confidence llama=llama_conf" in said
    assert "--score gpt4o=gpt4o_conf --score llama=llama_conf" in said
    # Three classes have no scores, and a grade is then named as what is not used.
    three = np.where(SCORE > 0.9, "GREAT", frame["gpt4o"])
    frame["gpt4o"], frame["human"] = three, np.where(FEW, three, None)
    lines = left_out(fl.read_predictions(frame.drop(columns="confidence")).reading)
    assert any("'llama_score'" in line for line in lines)


@pytest.mark.parametrize("classes", [("spam", "ham"), ("1", "0")])
@pytest.mark.parametrize("column", ["spam_probability", "prob_spam", "p(spam)"])
def test_one_probability_column_names_its_classifier(classes, column: str):
    read = fl.read_predictions(pd.DataFrame({column: SCORE, "label": words(TRUTH, *classes, FEW)}))
    assert read.models == ("spam",)


def answered_by(message: str, file: str) -> int:
    """The exit code of the command that a message proposes."""
    return main(["estimate", file, "--metrics", "roc_auc", *options_of(message)])


def test_a_number_that_stands_for_no_score_is_asked_about(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    score = np.where(np.arange(N) % 9 == 4, -1, SCORE.round(3))
    pd.DataFrame({"net": score, "y": words(TRUTH, "1", "0", FEW)}).to_csv("f.csv", index=False)
    assert main(["estimate", "f.csv"]) == 2
    said = capsys.readouterr().err
    assert "column 'net' holds -1 in 44 rows, and else numbers from 0" in said
    assert answered_by(said, "f.csv") == 0
    assert f"{N - 44} items" in capsys.readouterr().out
    assert answered_by(said.partition(" or ")[2].partition("' or ")[2], "f.csv") == 0
    assert f"{N} items" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["Summe", "", None])
def test_a_row_of_sums_is_no_item(name, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({
        "case": [f"c{i}" for i in range(N)], "net": SCORE.round(3), "ai": SCORE[::-1].round(3),
        "label": words(TRUTH, "1", "0", FEW),
    })  # fmt: skip
    total = {"case": name, "net": frame["net"].sum().round(3), "ai": frame["ai"].sum().round(3)}
    pd.concat([frame, pd.DataFrame([total])]).to_csv("f.csv", index=False)
    assert main(["estimate", "f.csv"]) == 2
    said = capsys.readouterr().err
    assert "row 401 after the header holds the sums of the rows above it" in said
    assert answered_by(said, "f.csv") == 0
    assert f"{N} items" in capsys.readouterr().out


def test_slips_in_groups_are_told_as_those_in_classes_are():
    lang = np.array(["EN", "es", "en", " es"])[RNG.choice(4, N, p=[0.5, 0.3, 0.1, 0.1])]
    data = pd.DataFrame({"lang": lang, "net": SCORE, "label": words(TRUTH, "1", "0", FEW)})
    read = fl.read_predictions(data)
    assert {*read.groups["lang"]} == {"EN", "en", "es", " es"}
    [note] = read.notes
    assert "differ in case or blanks alone" in note
    assert {*options_of(note)} == {"--same", "en=EN", " es=es"}
    one = fl.read_predictions(data, same={"en": "EN", " es": "es"})
    assert {*one.groups["lang"]} == {"EN", "es"}
    # What means a class says nothing of groups.
    merged = fl.read_predictions(data, same={"en": "EN", "es": "1"})
    assert {*merged.groups["lang"]} == {"EN", "es", " es"}


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_several_tags_in_a_cell_are_told_how_to_be_read(kind: str, tmp_path: Path):
    tags = np.array(["art", "food", "news", "sport"])
    has = RNG.random((N, 4)) < 0.5
    cells = {
        "label": [tags[row].tolist() if i < 60 else None for i, row in enumerate(has)],
        "model_a": [tags[row].tolist() for row in has ^ (RNG.random((N, 4)) < 0.1)],
    }
    path, frame = tmp_path / f"f.{kind}", pd.DataFrame(cells)
    if kind == "csv":
        frame = frame.map(lambda cell: cell and ";".join(cell))
        frame.to_csv(path, index=False)
        frame = pd.read_csv(path)
    else:
        frame.to_json(path, orient="records", lines=True)
    with pytest.raises(InputError, match="column 'label' holds several tags in a cell") as refused:
        fl.read_predictions(path)
    said = re.findall(r"\(pandas: (.*?\(','\)|.*?\(';'\))\)", str(refused.value))[0]
    wide = [
        eval(said.replace("'label'", repr(name)), {"frame": frame}).add_prefix(prefix)
        for name, prefix in (("label", "true_"), ("model_a", "pred_"))
    ]
    read = fl.read_predictions(pd.concat(wide, axis=1))
    assert {*read.tasks} == {*tags}
    assert read.n_labeled == 4 * frame["label"].notna().sum()


def test_doctor_goes_on_behind_lines_that_cannot_be_read(tmp_path: Path, capsys):
    path = tmp_path / "f.csv"
    frame = pd.DataFrame({"net": SCORE.round(3), "label": words(TRUTH, "1", "0", FEW)})
    frame.loc[300, "label"] = "perhaps"
    lines = frame.to_csv(index=False).splitlines()
    lines[100] += ",7"
    lines[200] = "0.3"
    path.write_text("\n".join(lines))
    assert main(["doctor", str(path)]) == 2
    said = " ".join(capsys.readouterr().out.split())
    assert f"{N - 2} items" in said
    assert "has 2 columns, but row 100 after the header has 3" in said
    assert "has 2 columns, but row 200 after the header has 1" in said
    with pytest.raises(InputError, match="row 100 after the header"):
        fl.read_predictions(path)
    records = tmp_path / "f.jsonl"
    lines = frame.to_json(orient="records", lines=True).splitlines()
    lines[99] = lines[99][:-3]
    records.write_text("\n".join(lines))
    assert main(["doctor", str(records)]) == 2
    said = " ".join(capsys.readouterr().out.split())
    assert f"{N - 1} items" in said
    assert "line 100 is not valid JSON" in said


def test_repeated_rows_come_with_what_to_say(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    judged = pd.DataFrame({
        "item": np.repeat(np.arange(N), 2), "model": ["a", "b"] * N,
        "prediction": words(VOTES[:2].T.ravel(), "yes", "no"),
        "label": np.repeat(words(TRUTH, "yes", "no", FEW), 2),
    })  # fmt: skip
    pd.concat([judged, judged[:10]]).to_csv("f.csv", index=False)
    assert main(["estimate", "f.csv"]) == 2
    said = capsys.readouterr().err
    for way in ("--duplicates keep", "--duplicates last"):
        assert way in said
        assert answered_by(way, "f.csv") == 0
    wide = pd.DataFrame({"id": np.arange(N), "net": SCORE, "y": words(TRUTH, "1", "0", FEW)})
    pd.concat([wide, wide[:20]]).to_csv("f.csv", index=False)
    assert main(["estimate", "f.csv", "--metrics", "roc_auc"]) == 0
    said = capsys.readouterr().out
    assert "unless you say --cluster id" in " ".join(said.split())
    assert answered_by("--cluster id", "f.csv") == 0


def test_what_is_asked_of_patients_and_of_a_rate_names_the_way(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({
        "study": np.arange(N), "patient": [f"p{i // 3}" for i in range(N)], "net": SCORE,
        "biopsy": words(TRUTH, "malignant", "benign", FEW),
    }).to_csv("f.csv", index=False)  # fmt: skip
    assert main(["estimate", "f.csv", "--by", "patient"]) == 2
    assert "say by --cluster that rows go together" in capsys.readouterr().err
    assert answered_by("--cluster patient", "f.csv") == 0
    assert main(["estimate", "f.csv", "--metrics", "sensitivity@specificity"]) == 2
    assert "fewlabels threshold FILE --model NAME --min-specificity" in capsys.readouterr().err
    asked = ["threshold", "f.csv", "--min-specificity", "0.9", "--prevalence", "0.03"]
    assert main(asked) == 0


def test_arrays_in_another_order_than_the_labels_say_are_refused():
    names = np.array(["praise", "bug", "other"])
    truth = RNG.integers(3, size=N)
    p = np.exp(2.5 * np.eye(3)[truth] + RNG.normal(size=(N, 3)))
    p /= p.sum(axis=1, keepdims=True)
    known = np.arange(N) < 60
    y = pd.Series(pd.Categorical(np.where(known, names[truth], None), categories=names))
    with pytest.raises(fl.InputError, match=r"say columns=.'classes': .'praise', 'bug', 'other'"):
        fl.estimate({"large": p}, y_true=y)
    right = (p.argmax(axis=1) == truth).mean()
    for given in ({"columns": {"classes": list(names)}}, {}):
        array = p if given else p[:, np.argsort(names)]
        row = fl.estimate({"large": array}, metrics="accuracy", y_true=y, **given).rows[0]
        assert row.low < right < row.high
    # One number is taken for the second class by the alphabet.
    y = np.where(known, np.where(truth == 0, "fraud", "legit"), None)
    with pytest.raises(fl.InputError, match=r"say columns=.'classes': .'legit', 'fraud'"):
        fl.estimate({"large": p[:, 0]}, y_true=y)
    # A classifier no better than chance is no reason.
    assert fl.estimate({"large": RNG.random(N)}, y_true=y, metrics="roc_auc").rows


def test_rows_of_several_criteria_are_not_pooled(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    turn = np.repeat(np.arange(N), 2)
    truth = np.stack([TRUTH, 1 - TRUTH], axis=1).ravel()
    said = np.where(RNG.random(2 * N) < 0.9, truth, 1 - truth)
    pd.DataFrame({
        "turn_id": turn, "criterion": np.tile(["what's asked", "factual"], N),
        "gpt4o": words(said, "pass", "fail"),
        "human": words(truth, "pass", "fail", np.repeat(FEW, 2)),
    }).to_csv("f.csv", index=False)  # fmt: skip
    assert main(["score", "f.csv"]) == 2
    message = capsys.readouterr().err
    assert "'criterion'" in message
    options = shlex.split(message[message.index("--where") :])
    assert main(["score", "f.csv", *options[:2]]) == 0
    assert f"{N:,} items" in capsys.readouterr().out


def test_how_sure_a_judge_is_whose_verdicts_are_not_read_is_nobody_elses():
    sure = np.where(VOTES[0] == TRUTH, 0.9, 0.6)
    read = fl.read_predictions(pd.DataFrame({
        "gpt4o": words(VOTES[0], "Good", "Bad"), "gpt4o_confidence": sure,
        "claude": words(VOTES[1], "ok", "not ok"), "human": words(TRUTH, "ok", "not ok", FEW),
    }))  # fmt: skip
    assert read.models == ("claude",)
    assert any("'gpt4o_confidence'" in line for line in left_out(read.reading))


def test_groups_beside_arrays_are_told_and_names_of_metrics_too():
    y = np.where(FEW, TRUTH, -1)
    with pytest.raises(fl.UsageError, match="groups="):
        fl.estimate({"a": VOTES[0]}, y_true=y, by=words(TRUTH, "n", "s"))
    with pytest.raises(fl.UsageError, match="did you mean 'f1'"):
        fl.estimate({"a": VOTES[0]}, y_true=y, metrics="macro_f1")


def test_weights_on_labeled_rows_alone_weigh_the_labels_alone(tmp_path, capsys):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    p = 1 / (1 + np.exp(-2 * (2 * truth - 1 + rng.normal(size=300))))
    weight = np.where(p > 0.5, 2.5, 6.7)
    known = rng.random(300) < 1 / weight
    rows = [
        f"{y},{a:.4f},{w}" if k else f",{a:.4f},"
        for y, a, w, k in zip(truth, p, weight, known, strict=True)
    ]
    (tmp_path / "ipw.csv").write_text("\n".join(["label,p__a__1,drawn", *rows]) + "\n")
    asked = ["estimate", str(tmp_path / "ipw.csv"), "--weight", "drawn", "--metrics", "accuracy"]
    assert main([*asked, "--method", "labeled", "--json", str(tmp_path / "a.json")]) == 0
    assert "only the labels count by it" in " ".join(capsys.readouterr().out.split())
    (row,) = json.loads((tmp_path / "a.json").read_text())["estimates"]
    expected = np.average(((p > 0.5) == truth)[known], weights=weight[known])
    assert row["value"] == pytest.approx(expected, abs=1e-9)
    with pytest.raises(fl.InputError, match="must not be negative or missing"):
        fl.Predictions({"a": p}, np.where(known, truth, -1), weight=np.where(p > 0.5, 2.5, np.nan))
