"""What CSV files in the wild look like."""

from __future__ import annotations

import shlex

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fewlabels as fl
from fewlabels.data.read import column_names


def read(path, **options) -> fl.Predictions:
    return fl.read_predictions(path, **options)


def test_empty_lines_spaces_and_line_ends(write):
    for text in (
        "\n\nlabel, p__a__1\n\n1,0.5\n\n0, 0.25 \n",
        "label,p__a__1\r\n1,0.5\r\n0,0.25\r\n",
        "label,p__a__1\r1,0.5\r0,0.25\r",
        "label,p__a__1\n1,0.5\n0,0.25",
        '"label","p__a__1"\n"1","0.5"\n"0","0.25"\n',
    ):
        predictions = read(write(text))
        assert predictions.labels.tolist() == [1, 0]
        assert predictions.probabilities[:, 0, 1].tolist() == [0.5, 0.25]


@pytest.mark.parametrize(("delimiter", "name"), [(";", "a.csv"), ("\t", "a.csv"), ("\t", "a.tsv")])
def test_delimiters(write, delimiter, name):
    text = "label,p__a__1,a;b\n1,0.5,x\n".replace(",", delimiter)
    if delimiter == ";":
        text = text.replace("a;b", '"a;b"')
    assert read(write(text, name)).groups["a;b"].tolist() == ["x"]


def test_texts_stay_as_they_are_written(write):
    path = write('p__a__1,zip,flag,note\n.5,01,True,"a, ""b""\nc"\n.5,NA,,nan\n')
    groups = read(path).groups
    assert groups["zip"].tolist() == ["01", "NA"]
    assert groups["flag"].tolist() == ["True", None]
    assert groups["note"].tolist() == ['a, "b"\nc', "nan"]


def test_missing_predictions(write):
    path = write("p__a__0,p__a__1,y__b,s__c\n.5,.5,1,1.5\n,,,NA\nnan,nan,-1,NULL\n")
    predictions = read(path)
    assert predictions.has_probabilities[:, 0].tolist() == [True, False, False]
    assert predictions.votes[:, 1].tolist() == [1, -1, -1]
    assert predictions.scores[1:, 2].tolist() != [1.5, 1.5]


def test_odd_quotes_that_open_nothing(write):
    for end in ("", "\n\n\n"):
        path = write(f'p__a__1,size\n.5,5"\n.5,6\n{end}')
        assert read(path).groups["size"].tolist() == ['5"', "6"]


STRAY = [
    "\t".join([str(i), '"' * (i % 5 == 3) + f"said {i}" + '"' * (i % 7 == 6), f"{i % 2}\t.{i % 9}"])
    for i in range(60)
]


def test_quotes_that_swallow_rows_are_part_of_the_cells(write):
    path = write("\n".join(["id\ttext\tlabel\tp__net__1", *STRAY]), "t.tsv")
    items = read(path)
    assert items.n_items == items.n_labeled == 60
    assert items.groups["text"].tolist()[3:7] == ['"said 3', "said 4", "said 5", 'said 6"']
    assert any("that of line 5 is around no cell" in note for note in items.notes)
    streamed = fl.estimate_files(path, method="labeled", metrics="accuracy")
    assert {*items.notes} <= {*streamed.warnings}
    assert streamed.n_items == 60


@pytest.mark.parametrize("far", [False, True], ids=["at once", "far below"])
def test_quotes_that_swallow_rows_beside_honest_ones_are_refused(far, write, monkeypatch):
    monkeypatch.setattr("fewlabels.data.delimited._HEADER", 600 if far else 4 << 20)
    rows = [f'{i}\t"two\nlines {i}"\t1\t.5' for i in range(60)] + STRAY[:58]
    path = write("\n".join(["id\ttext\tlabel\tp__net__1", *rows]), "t.tsv")
    with pytest.raises(fl.InputError, match="the double quote of line 125 opens a cell that"):
        read(path)


HONEST = ("Dear all, yes\nsee you", "one, no\ntwo, yes\nthree", "x,y\n1,yes\n2,no\n", "a\n\nb")


@pytest.mark.parametrize("text", HONEST)
def test_cells_of_several_lines_stay_one(text, write):
    rows = "".join(f'"{text} {i}",{("no", "yes")[i % 2]}\n' for i in range(40))
    path = write("text,label\n" + rows)
    found = fl.data.sources.open_source(path, fl.data.sources.locate(path)).read((), ("label",))
    assert found.cell("label", 1) == "yes"
    assert found.n_rows == 40


def test_rows_that_are_not_read_are_not_judged(write):
    path = write("p__a__1,price\n.5,1e999\n.5,x\n")
    assert read(path, keep=()).n_items == 2


def test_a_wide_and_long_file(write):
    names = [f"p__m{j}__{k}" for j in range(40) for k in range(5)]
    row = ",".join(["0.2"] * 200)
    path = write(",".join(names) + "\n" + (row + "\n") * 20_000)
    predictions = read(path)
    assert predictions.probabilities.shape == (20_000, 40, 5)
    assert (predictions.probabilities == 0.2).all()


# Where the table begins, and what its columns are called ------------------------------------------

N = 60
RNG = np.random.default_rng(42)
TRUE = RNG.integers(0, 2, N)
SAID = np.where(RNG.random(N) < 0.8, TRUE, 1 - TRUE)
RIGHT = float((TRUE == SAID)[::2].mean())
WORDS = ("1:low", "2:high")
WEKA = "\n".join(
    f"{i + 1},{'1:?' if i % 2 else WORDS[t]},{WORDS[s]},{'+' if t != s else ''}"
    for i, (t, s) in enumerate(zip(TRUE, SAID, strict=True))
)
FRONTS = {
    "lines of text": "\n=== Predictions on test data ===\n\ninst#,actual,predicted,error\n" + WEKA,
    "text with a comma": "A run, invented\nModel: trees\ninst#,actual,predicted,error\n" + WEKA,
    "the delimiter said": "sep=;\n" + ("inst#,actual,predicted,error\n" + WEKA).replace(",", ";"),
    "columns by tabs": "A run, by trees\nMade by hand\n"
    + ("inst#,actual,predicted,error\n" + WEKA).replace(",", "\t"),
    "titles of a sheet": "Scored in April,,,\n,A1,A2,A3\ninst#,actual,predicted,error\n" + WEKA,
    "ARFF": "@relation 'a run'\n% invented\n@attribute inst numeric\n"
    "@ATTRIBUTE 'actual' {1:low,2:high}\n@attribute predicted {1:low,2:high}\n"
    "@attribute error {+}\n\n@data\n" + WEKA,
}


@pytest.mark.parametrize("front", FRONTS)
def test_what_stands_before_the_table(front, write):
    path = write(FRONTS[front], "t.arff" if front == "ARFF" else "t.csv")
    items = read(path)
    assert (items.n_items, items.n_labeled, items.models) == (N, N // 2, ("predicted",))
    assert items.classes == WORDS
    known = items.labels >= 0
    assert (items.votes[known, 0] == items.labels[known]).mean() == pytest.approx(RIGHT)
    assert any("before the table" in note for note in items.notes) == (front != "ARFF")
    streamed = fl.estimate_files(path, method="labeled", metrics="accuracy")
    assert {*items.notes} <= {*streamed.warnings}


@pytest.mark.parametrize("roles", [["", "class", "", "meta"], None], ids=["roles", "types alone"])
def test_rows_that_declare_the_columns_are_no_items(roles, write):
    declared = [["continuous", "1:low 2:high", "string", "discrete"], *([roles] if roles else [])]
    header = ["inst#", "actual", "predicted", "error"]
    rows = "".join("\t".join(row) + "\n" for row in [header, *declared])
    rows += WEKA.replace(",", "\t").replace("1:?", "?") + "\n"
    items = read(write(rows, "t.tab"))
    assert (items.n_items, items.n_labeled, items.models) == (N, N // 2, ("predicted",))
    assert items.classes == WORDS
    said = f"{len(declared)} row{'s' * (len(declared) > 1)} below the header say what the columns"
    assert any(said in note for note in items.notes)


def test_a_row_of_such_words_that_is_an_item_stays_one(write):
    kinds = ["string", "time", "class", "meta"]
    rows = "".join(f"{kinds[i % 4]},{kinds[i % 3]},{i}\n" for i in range(40))
    assert read(write("label,y__net,n\n" + rows)).n_items == 40


DOUBTS = {
    "a ragged row": ("a,label,p\n1,x,.5\n2,.5\n3,y,.4\n4,x,.3\n", "row 2 after the header has 2"),
    "a header of one cell": (
        "text\nhello, world\nfoo, bar\nbaz, x\n",
        "row 1 after the header has",
    ),
    "a header over two lines": (
        "id;a name\nof;two\n1;yes;no\n2;yes;no\n",
        "has 2 columns, but row 2",
    ),
    "a row of totals": ("a,label,p\n1,x,.5\n2,y,.5\ntotal,3\n", "row 3 after the header has 2"),
    "sparse ARFF": (
        "@relation r\n@attribute a numeric\n@data\n{0 1}\n",
        "is sparse ARFF .*'{0 1}'",
    ),
    "ARFF without data": ("@relation r\n@attribute a numeric\n", "without a line @data"),
}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_fronts_in_doubt_are_refused_with_the_row(doubt, write):
    text, message = DOUBTS[doubt]
    with pytest.raises(fl.InputError, match=message):
        read(write(text))


def test_a_quoted_header_of_several_lines(write):
    path = write('"the\nitem",label,p__net__1\n' + "".join(f"{i},{i % 2},.5\n" for i in range(9)))
    assert column_names(path) == ("the\nitem", "label", "p__net__1")


READINGS = "\n".join(
    f"{r},{i},{0 if r < 0 else 1},{(i + r) % 5}" for r in (-1, 1) for i in range(9)
)
HEADLESS = {
    "items with classes": "".join(f"http://site{i:03}.org/\t{'GPRX'[i % 4]}\n" for i in range(40)),
    "votes": "".join(f"A{i % 7}X\thttp://s{i // 3}.org\t{'GP'[i % 2]}\n" for i in range(60)),
    "numbers": "".join(f"{i // 10}\t{i % 10}\t{i % 2}\t{i % 3 % 2}\n" for i in range(60)),
    "marked words": "".join(f"__mark__{'ab'[i % 2]} text {'xyz'[i % 3] * i}\n" for i in range(40)),
    "numbers after text": "A study\n\nNR: 2\n\nBEGIN DATA:\n" + READINGS,
}


@pytest.mark.parametrize("kind", HEADLESS)
def test_a_file_without_a_header_proposes_a_command_that_reads_it(kind, write, cli):
    path = write(HEADLESS[kind], "t.txt")
    with pytest.raises(fl.InputError, match="looks like an item") as refused:
        read(path)
    assert "if the file has no header, say so, and its columns are called" in str(refused.value)
    command = shlex.split(str(refused.value).rpartition(": fewlabels ")[2])
    out = cli(*command)[1]
    width = len(HEADLESS[kind].splitlines()[-1].replace("\t", ",").split(","))
    rows = HEADLESS[kind].partition("DATA:\n")[2] or HEADLESS[kind]
    assert f"{len(rows.splitlines())} items" in out
    assert column_names(f"{path}#no-header") == tuple(f"c{k + 1}" for k in range(width))


def test_a_name_that_is_a_value_below_too_is_said(write):
    answers = ["ham", "spam"]
    rows = "".join(f"{answers[i % 2]},{answers[i % 3 % 2]},{'xy'[i % 2]}\n" for i in range(40))
    items = read(write("truth,spam,city\n" + rows), label="truth", hard={"net": "spam"})
    assert items.n_items == 40
    assert any("'spam' is a value below it too" in note for note in items.notes)


REPEATED = pd.DataFrame(
    [
        [WORDS[t], WORDS[s], i % 3, i % 3, i % 5, i % 4]
        for i, (t, s) in enumerate(zip(TRUE, SAID, strict=True))
    ],
    columns=["truth", "predicted", "site", "site", "count", "count"],
)  # fmt: skip


@pytest.mark.parametrize("kind", ["CSV", "workbook", "pandas", "Arrow"])
def test_columns_of_one_name_are_one_or_numbered(kind, write, tmp_path):
    source = REPEATED
    if kind == "CSV":
        source = write(REPEATED.to_csv(index=False))
    elif kind == "workbook":
        source = tmp_path / "t.xlsx"
        REPEATED.to_excel(source, index=False)
    elif kind == "Arrow":
        columns = [pa.array(REPEATED.iloc[:, k]) for k in range(6)]
        source = pa.Table.from_arrays(columns, names=list(REPEATED.columns))
    items = read(source)
    assert (items.models, items.n_labeled) == (("predicted",), N)
    assert {"site", "count", "count.2"} <= {*items.groups}
    assert "two columns named 'site' are equal, and read as one" in items.notes
    assert any("called 'count.2'" in note for note in items.notes)
    assert items.groups["count.2"].tolist()[:5] == ["0", "1", "2", "3", "0"]


SAID = np.where(np.arange(40) % 3, "spam", "ham")
GUESS = np.where(np.arange(40) % 4, SAID, "spam")
SHARE = float((SAID == GUESS).mean())
QUOTED = [
    f'~{i}~^~a, "b" {i}~^~{s}~^~{g}~' for i, (s, g) in enumerate(zip(SAID, GUESS, strict=True))
]
TAGGED = [f"{w} NN {s} {g}" for w, s, g in zip(['"', "'", "it"] * 14, SAID, GUESS, strict=False)]
TEXTS = {
    "two rows of names, and one of the index": (
        ",meta,meta,net,net\n,age,label,pred,score\nid,,,,\n"
        + "\n".join(f"i{k},{20 + k},{s},{g},{k / 40}" for k, (s, g) in
                    enumerate(zip(SAID, GUESS, strict=True))), "meta_label", "net_pred"),
    "a header with more names than cells": (
        "# id, gold, said, version: 1.2, made: 2024\n"
        + "\n".join(f"i{k}, {s}, {g}" for k, (s, g) in enumerate(zip(SAID, GUESS, strict=True))),
        "gold", "said"),
    "another quote and delimiter": (
        "~id~^~text~^~gold~^~said~\n" + "\n".join(QUOTED), "gold", "said"),
    "quotes of load files": (
        "\ufeffþidþ\x14þtextþ\x14þgoldþ\x14þsaidþ\n"
        + "\n".join(QUOTED).replace("~^~", "þ\x14þ").replace("~", "þ"), "gold", "said"),
    "words that are quotes, and lines between documents": (
        "-DOCSTART- -X- O O\n\n" + "\n".join(TAGGED[:20]) + "\n\n-DOCSTART- -X- O O\n\n"
        + "\n".join(TAGGED[20:40]), "c3", "c4"),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_texts_of_other_writers(write, name):
    text, label, said = TEXTS[name]
    path = write(text + "\n", "a.txt" if label == "c3" else "a.csv")
    path = f"{path}#no-header" if label == "c3" else path
    predictions = read(path, label=label, hard={"net": said})
    assert predictions.n_items == len(SAID)
    words = np.array(predictions.classes)
    assert (words[predictions.labels] == SAID).all()
    assert float((predictions.votes[:, 0] == predictions.labels).mean()) == SHARE


@pytest.mark.parametrize("start", [
    "-- MySQL dump 10\n\n/*!40101 SET NAMES utf8 */;\n\nDROP TABLE IF EXISTS `a`;\n",
    "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCREATE TABLE a (\n",
])  # fmt: skip
def test_dumps_of_databases(write, start):
    with pytest.raises(fl.InputError, match="is a dump of a database: load it"):
        read(write(f"{start}INSERT INTO `a` VALUES (1,'x',0.5);\n"))
    assert read(write("set,p__a__1\nx,.5\ny,.25\n")).n_items == 2


def test_votes_of_persons_in_one_cell(write):
    """A hash of Ruby among other texts: every person is a classifier, and none is the truth."""
    rows = [f'"i{k}"," ROUND: {{""Ana""=>""{s}"", ""Bo""=>""{g}""}} | TAGS: x"' for k, (s, g) in
            enumerate(zip(SAID, GUESS, strict=True))]  # fmt: skip
    predictions = read(write("key,notes\n" + "\n".join(rows) + "\n"))
    assert (predictions.n_models, predictions.n_labeled) == (2, 0)
    assert float((predictions.votes[:, 0] == predictions.votes[:, 1]).mean()) == SHARE


def test_a_survey_has_its_raters_in_rows(write):
    names = [f"Q{k}" for k in range(30)]
    cells = np.where(np.arange(30 * 12).reshape(12, 30) % 7 < 3, "human", "machine")
    frame = pd.DataFrame(cells, columns=names)
    frame.insert(0, "ResponseId", [f"R_{k}" for k in range(12)])
    with pytest.raises(fl.InputError, match=r"30 columns \('Q0'.*what one rater says.*ResponseId"):
        read(write(frame.to_csv(index=False)))
