"""What CSV files in the wild look like."""

from __future__ import annotations

import pytest

import fewlabels as fl


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
