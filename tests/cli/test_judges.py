"""`fewlabels score` and `convert`; logs, and what else the command line says of them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

import fewlabels as fl
from fewlabels.cli import main


@pytest.mark.parametrize("positive", ["correct", "incorrect"])
def test_score_of_words_that_sort_the_other_way(tmp_path, capsys, positive):
    """'correct' comes before 'incorrect' in the alphabet, and is the positive one."""
    table = tmp_path / "a.csv"
    said = [("correct" if i % 10 else "incorrect", "correct" if i % 5 else "incorrect")
            for i in range(200)]  # fmt: skip
    table.write_text(
        "item,label,y__j\n"
        + "".join(
            f"{i},{label if i < 50 else ''},{verdict}\n" for i, (label, verdict) in enumerate(said)
        )
    )
    assert main(["score", str(table), "--positive", positive, "--json", "-"]) == 0
    rows = json.loads(capsys.readouterr().out)["criteria"][0]["rows"]
    found = {row["way"]: row["value"] for row in rows}
    passed = {"labels only": 0.9, "uncorrected": 0.8, "prediction-powered": 0.9}
    if positive == "incorrect":
        passed = {way: 1 - rate for way, rate in passed.items()}
    assert found == pytest.approx(passed, abs=0.02)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_convert(log, tmp_path, capsys, ending):
    out = tmp_path / f"out.{ending}"
    assert main(["convert", str(log), str(out), "--criterion", "good"]) == 0
    assert f"Table: {out}" in capsys.readouterr().out
    before, after = fl.read_predictions(f"{log}#good"), fl.read_predictions(out)
    assert after.models == before.models == ("a", "b")
    assert (after.hard == before.hard).all()
    assert (after.labels == before.labels).all()
    assert fl.estimate(before).to_dict()["estimates"] == fl.estimate(after).to_dict()["estimates"]


def test_convert_keeps_probabilities_scores_counts_and_groups(tmp_path):
    source, out = tmp_path / "in.csv", tmp_path / "out.parquet"
    source.write_text(
        "item,label,p__m__a,p__m__b,s__s,h__a,h__b,domain,weight,site\n"
        "1,a,.9,.1,-1.5,1,0,x,1,n\n2,,.3,.7,2,0,2,y,3,s\n3,b,.2,.8,,0,0,x,2,\n"
    )
    assert main(["convert", str(source), str(out)]) == 0
    before, after = fl.read_predictions(source), fl.read_predictions(out)
    for name in ("probabilities", "scores", "histogram", "weight", "labels"):
        left, right = getattr(before, name), getattr(after, name)
        assert ((left == right) | ((left != left) & (right != right))).all(), name
    assert after.domain.tolist() == before.domain.tolist()
    assert after.groups["site"].tolist() == before.groups["site"].tolist()


def test_markdown_and_junit(log, tmp_path, capsys):
    page, tests = tmp_path / "summary.md", tmp_path / "junit.xml"
    arguments = ["estimate", f"{log}#good", "--markdown", str(page), "--junit", str(tests)]
    arguments += ["--require", "a:accuracy>=0.5", "--require", "low:b:accuracy>=0.999"]
    assert main(arguments) == 1
    assert "JUnit: " in capsys.readouterr().out
    assert page.read_text().startswith("**fewlabels**: 90 items, 30 labeled")
    root = ET.parse(tests).getroot()
    assert root.attrib == {"tests": "2", "failures": "1"}
