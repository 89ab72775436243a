"""What no command takes, in the words of its one line: see `outputs`.

Where FILE is none.csv or torn.csv the mistake is found before it is read. Which files cannot be
read is in tests/data; which paths cannot be written to, in test_files.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outputs import check

Columns = dict[str, list[Any]]

FILES = {
    "empty.csv": "",
    "above.csv": "label,p__m__1\n1,1.5\n0,.5\n",
    "negative.csv": "label,p__m__1,weight\n1,.5,-1\n0,.5,1\n",
    "zeros.csv": "label,p__m__1,weight\n1,.5,0\n0,.5,0\n",
    "range.csv": "label,s__m\n1,1e308\n0,-1e308\n",
    "one.csv": "label,p__m__1\n1,.5\n0,.5\n",
    "sure.csv": "label,y__m,y__n\n1,0,1\n0,0,1\n",
    "words.csv": "item,p__m__a,p__m__b,h__a,h__b,word\n1,.5,.5,1,1,x\n2,.5,.5,1,0,y\n",
    "other.csv": "p__x__a,p__x__b,p__x__c,label\n.2,.3,.5,a\n.1,.8,.1,b\n",
    "votes.csv": "item,annotator,label\n0,a,0\n0,b,1\n1,a,1\n1,b,0\n",
    "twice.csv": "item,annotator,label\n1,a,0\n1,a,1\n2,b,1\n",
    "table.csv": "id,label\nc01,1\nc02,0\n",
    "torn.csv": "p__a__0,p__a__1\nx,y\n",
    "model.json": "{}",
    "old.json": "old",
    "choice.toml": 'duplicates = "all"',
    "number.toml": "labels_as = 3",
    "text.toml": 'pass-from = "much"',
    "true.toml": "pass_from = true",
    "list.toml": "labels = [1]",
    "unknown.toml": 'duplicate = "keep"',
    "nowhere.toml": 'labels = "nowhere.csv"',
}  # fmt: skip
"""Small files beside those that fixtures write."""

REFUSED: dict[str, str] = {
    "files": """
        estimate none.csv
        estimate empty.csv
        estimate folder
        estimate latin.csv
        estimate above.csv
        estimate negative.csv
        estimate zeros.csv
        estimate range.csv
        shift range.csv
        annotations negative_count.csv
        annotations half_count.csv
        annotations bare.csv
        calibrate bare.csv --method alpha --html a.html
        annotations votes_alone.csv
        annotations histograms.csv --by item
        compare one.csv
        estimate sure.csv --threshold 0.3
        calibrate words.csv --method alpha --features word --json -
        calibrate words.csv --method alpha --features h__a --json -
    """,
    "columns": """
        estimate two.csv --label lable
        estimate two.csv --domain nowhere
        estimate two.csv --weight nothing
        estimate two.csv --cluster sit
        estimate two.csv --by sight --json old.json
        compare two.csv --by place
        annotations two.csv --by place
        backtest two.csv --labels 5 --by place
        estimate two.csv --model good
        compare two.csv --model good
        shift two.csv --model good
        annotations two.csv --model good
        estimate two.csv --model m=no,such
        curve two.csv --model m=no,such
        estimate two.csv --model good=p__poor__0,p__poor__1 --model good=p__good__0,p__good__1
        estimate two.csv --columns none.toml
        estimate two.csv --columns choice.toml
        estimate two.csv --columns number.toml
        estimate two.csv --columns text.toml
        estimate two.csv --columns true.toml
        estimate two.csv --columns list.toml
        estimate two.csv --columns unknown.toml
        estimate two.csv --columns nowhere.toml
        estimate one.csv --classes=-1,1
        estimate one.csv --classes=1
    """,
    "numbers": """
        estimate two.csv --confidence-level 1
        estimate two.csv --confidence-level nan
        estimate two.csv --confidence-level 0.9999999999999999
        estimate two.csv --confidence-level 0.9999999999999999 --engine threads
        compare two.csv --confidence-level 0.9999999999999999
        compare two.csv --confidence-level 0
        curve two.csv --model good --confidence-level 1.5
        threshold two.csv --model good --min-recall .5 --confidence-level 1
        annotations two.csv --confidence-level=-1
        shift two.csv --confidence-level 3
        backtest two.csv --labels 5 --confidence-level 1
        estimate two.csv --seed=-1
        estimate two.csv --workers 0
        annotations torn.csv --bins 0
        calibration torn.csv --bins 0
        calibration two.csv --bins 20000
        backtest two.csv --labels 10,many
        backtest two.csv --labels 1
        backtest two.csv --labels 10,400
        backtest two.csv --labels 5 --runs 0
        demo --labels 1001
        demo --labels=-1
    """,
    "choices": """
        estimate two.csv --method ssme_kde
        compare two.csv --method auot
        shift two.csv --method auot
        curve two.csv --model good --method auto1
        backtest two.csv --labels 5 --method labelled
        calibrate histograms.csv --method platt --json -
        methods ssme-kd
        curve two.csv --model good --method autoeval
        threshold two.csv --model good --min-recall .5 --method autoeval
        label-next two.csv --model good --method autoeval
        compare two.csv --method autoeval --metric f1
        estimate two.csv --labels-out labels.csv --method labeled --json e.json
        estimate two.csv --labels-out labels.csv --method autoeval
        estimate two.csv --metrics acuracy
        estimate two.csv --metrics ,
        compare two.csv --metric acuracy
        estimate two.csv --estimand world
        curve two.csv --model good --estimand world
        label-next two.csv --model good --kind x
        estimate two.csv --models god
        compare two.csv --models good
        compare two.csv --models good,bad
        curve two.csv
        curve two.csv --model god
        label-next two.csv --model good --model poor
        annotations histograms.csv --models god
        calibrate histograms.csv --method alpha --models god --json -
        estimate two.csv --positive spam
        compare two.csv --positive 2
        curve two.csv --model good --positive 2
        shift two.csv --positive 2
        annotations two.csv --positive 2
        threshold two.csv --model good --min-recall .5 --positive 2
        label-next two.csv --model good --positive 2
        backtest two.csv --labels 10 --positive 2
        curve histograms.csv --model good
        calibration sure.csv
        calibration two.csv --norm l3
        calibration two.csv --models god
    """,
    "settings": """
        estimate none.csv --method ssme-kde --option bandwith=2
        curve none.csv --method ssme-kde --option epochs=many
        estimate none.csv --method ssme-kde --option epochs=-2
        estimate none.csv --method ssme-kde --option bandwidth=wide
        curve none.csv --method ssme-kde --option bandwidth
        estimate none.csv --method ssme-kde --option epochs=1 --option epochs=2
        estimate none.csv --method labeled --option x=1
        estimate none.csv --method auto --option epochs=2
        curve none.csv --method ssme-kd --option epochs=2
        estimate votes.csv --votes --method hcbee --option concentration=guess
    """,
    "conditions": """
        estimate two.csv --require accuracy
        estimate two.csv --require ece<nan
        estimate two.csv --require accu>=1
        estimate two.csv --require god:accuracy>=1
        estimate two.csv --models poor --require good:accuracy>=.1
        estimate two.csv --engine threads --require god:accuracy>=.1
        estimate two.csv --junit x.xml
        annotations torn.csv --require el<=.1
        calibration two.csv --require ece_l2<=.1
        calibration two.csv --require god:ece<=.1
        annotations histograms.csv --require L_unanimity_3<=.1
        annotations torn.csv --require EL=1
        annotations histograms.csv --require god:L<=1.9
        annotations torn.csv --statistic unanimty:3
        annotations torn.csv --statistic majority
        annotations torn.csv --statistic unanimity:1
        annotations histograms.csv --statistic disagreement
        annotations histograms.csv --statistic median_3
    """,
    "thresholds": """
        estimate two.csv --threshold 2
        estimate two.csv --threshold a=x
        estimate two.csv --threshold z=0.5
        estimate two.csv --threshold good=.3 --threshold good=.4
        threshold two.csv --model good
        threshold two.csv --model good --min-recall 1.5
        threshold two.csv --model good --min-precision 2
        threshold two.csv --model good --min-recall nan
        threshold two.csv --model good --min-recall many
        threshold two.csv --model good --condition 'cost <= 1' --cost 3
        threshold two.csv --model good --condition 'cost <= 1' --cost 1,inf
        threshold two.csv --model good --cost FP=1,FP=5
        threshold two.csv --model good --cost FP=0,FN=0
        threshold two.csv --model good --cost FN=5,FP=1,TP=-1
        threshold two.csv --model good --cost 1,FN=5
        threshold two.csv --model good --min-recall 150%
        threshold two.csv --model good --min-recall abc%
        threshold two.csv --model good --min-recall .5 --prevalence 3
        threshold two.csv --model good --min-npv 99
        threshold two.csv --model good --condition 'recal >= .5'
        threshold two.csv --model good --condition recall
        threshold two.csv --model good --condition "__import__('os') >= 1"
        threshold two.csv --model good --min-recall .5 --probability 2
    """,
    "outputs": """
        estimate two.csv --json two.csv
        estimate two.csv --json both --html both
        estimate two.csv --json ''
        estimate two.csv --json .
        estimate two.csv --json no/such/folder/out.json
        estimate none.csv --html empty.csv/a.html
        demo --out no/such/folder/report.html
        curve two.csv --model good --out x.txt
        label-next two.csv --model good --out x.txt
        annotations torn.csv --out o.txt
        annotations torn.csv --html torn.csv
        annotations torn.csv --calibration model.json --json model.json
        annotations counted.csv --by labels --out o.parquet
        estimate two.csv --labels-out x.xlsx
        calibrate histograms.csv --method alpha --out a.txt
        calibrate histograms.csv --method alpha --html histograms.csv
        calibrate histograms.csv --apply model.json --out model.json
        convert log.jsonl#good x.txt
        convert log.jsonl#good log.jsonl
        estimate votes.csv --votes --json votes.csv
    """,
    "calibrations": """
        calibrate histograms.csv
        calibrate histograms.csv --method alpha
        calibrate histograms.csv --method temperature --penalty 1 --json -
        calibrate histograms.csv --method vector --penalty=-1 --json -
        calibrate histograms.csv --method vector --features site --json -
        calibrate histograms.csv --apply model.json
        calibrate histograms.csv --apply model.json --html a.html --out a.csv
        calibrate histograms.csv --apply none.json --out a.csv
        annotations torn.csv --calibration none.json
    """,
    "logs": """
        estimate log.jsonl
        estimate log.jsonl --criterion goood
        estimate log.jsonl --format inspect
        estimate log.jsonl --criterion good --sheet S
        estimate --votes log.jsonl --people votes
    """,
    "votes": """
        estimate votes.csv --duplicates keep
        estimate votes.csv --votes --item itme
        estimate votes.csv --votes --duplicates first
        estimate --votes nowhere.csv
        estimate votes.csv --votes --model a=gold
        estimate votes.csv --votes --domain site
        estimate votes.csv --votes votes.csv
        estimate votes.csv --votes --classes a,b
        estimate twice.csv --votes
        estimate two.csv --format csv
        estimate two.csv --sheet S
    """,
    "labeling": """
        label nameless.csv --terminal
        label comments.csv --terminal --item idd
        label repeated.csv --terminal
        label several.csv --terminal
        label unnamed.csv --terminal
        label textless.csv --terminal
        label comments.csv --terminal --show txt
        label unpredicted.csv --terminal
        label labeled.csv --terminal
        label arrays.npz --terminal
        label comments.csv --terminal --positive 2
        label comments.csv --terminal --metrics acuracy
        label comments.csv --terminal --method auot
        label comments.csv --terminal --until soon
        label comments.csv --terminal --images none
        label comments.csv --terminal --annotator ' '
        label comments.csv --terminal --out x.xlsx
        label comments.csv --terminal --out x.csv
        label comments.csv --terminal --labels none/x.jsonl
        estimate comments.csv --anytime
        estimate comments.csv --anytime --labels table.csv
    """,
}
"""Command lines, by what is wrong with them."""


def labeling(columns: Columns) -> dict[str, Columns]:
    """Files to label: 80 items with names and texts, and what may be wrong with them."""
    names = [f"c{i:02d}" for i in range(80)]
    whole = {"id": names, "text": [f"this is comment number {i}" for i in range(80)], **columns}
    return {
        "comments.csv": whole,
        "nameless.csv": {k: v for k, v in whole.items() if k != "id"},
        "repeated.csv": whole | {"id": [*names[:7], "c03", *names[8:]]},
        "several.csv": whole | {"id": ["c50", "c51"] * 3 + names[6:]},
        "unnamed.csv": whole | {"id": [*names[:7], "", *names[8:]]},
        "textless.csv": {k: v for k, v in whole.items() if k != "text"},
        "unpredicted.csv": {k: v for k, v in whole.items() if k[:3] != "p__"},
        "labeled.csv": whole | {"label": [0, 1] * 40},
    }


def counts(histograms: Columns) -> dict[str, Columns]:
    """Annotators' counts, and what may be wrong with them."""
    bare = {k: v for k, v in histograms.items() if k[:3] != "h__"}
    votes = {k: v for k, v in bare.items() if k[:3] != "p__"} | {"y__m": ["a", "b"] * 45}
    return {
        "histograms.csv": histograms,
        "counted.csv": histograms | {"labels": histograms["site"]},
        "bare.csv": bare,
        "votes_alone.csv": votes,
        "negative_count.csv": histograms | {"h__a": [-1, *histograms["h__a"][1:]]},
        "half_count.csv": histograms | {"h__a": [0.5, *histograms["h__a"][1:]]},
    }


@pytest.fixture
def folder(
    columns: Columns, histograms: Columns, log: Path, write: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A folder with every file that the commands name, in which they are run."""
    monkeypatch.chdir(log.parent)
    Path("folder").mkdir()
    for name, text in FILES.items():
        Path(name).write_text(text)
    Path("latin.csv").write_bytes("label,p__m__1,ort\n1,0.5,Zürich\n".encode("latin-1"))
    np.savez("arrays.npz", probabilities=np.full((4, 1), 0.5))
    for name, table in ({"two.csv": columns} | counts(histograms) | labeling(columns)).items():
        write(table, name)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("about", REFUSED)
def test_what_is_refused(about: str, refused: Callable[..., str]) -> None:
    lines = [line.strip() for line in REFUSED[about].strip().splitlines()]
    said = {line: refused(*shlex.split(line)) for line in lines}
    check(f"cli/refused-{about}", "\n".join(f"$ {line}\n{err}" for line, err in said.items()))
    assert not re.search("`[a-z]+_[a-z]+`", "".join(said.values()))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("estimat x.csv", "unknown command 'estimat'; did you mean 'estimate'?"),
        ("estimate", "FILE"),
        ("estimate a.csv b.csv", "b.csv"),
        ("estimate a.csv --metrcs ece", "--metrics"),
        ("estimate a.csv --json", "--json"),
        ("estimate --votes", "Missing argument 'FILE'"),
        ("convert a.csv", "Missing argument 'OUT'"),
        ("demo --labels many", "many"),
        ("doctor", "FILE"),
        ("estimate a.csv --format xml", "'--format': 'xml' is not one of"),
        ("--no-such-option", "--no-such-option"),
    ],
)
def test_words_that_are_those_of_click(line: str, words: str, refused: Callable[..., str]) -> None:
    """They differ from version to version."""
    assert words in refused(*line.split())


def test_names_are_on_one_line_and_text(
    refused: Callable[..., str], tmp_path: Path, predictions_file: Path
) -> None:
    err = refused("estimate", predictions_file, "--by", "a\nb\x1b[31m\u2028\x85")
    assert r"\n" in err
    assert "\x1b" not in err
    err = refused("estimate", predictions_file, "--model", "\udcff=p__good__1")
    assert "must be text" in err
    refused("estimate", tmp_path / "\udcff.csv")


def test_a_cell_of_100_mb(refused: Callable[..., str], tmp_path: Path) -> None:
    file = tmp_path / "large.csv"
    file.write_text('label,p__m__1,note\n1,0.5,"' + "x" * 100_000_000 + '"\n0,0.2,\n')
    assert len(refused("estimate", file, "--by", "note", "--json", tmp_path / "out.json")) < 2000
