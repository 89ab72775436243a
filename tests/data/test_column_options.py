"""Options, the TOML file, and which of them wins."""

from __future__ import annotations

import pytest

import fewlabels as fl
from fewlabels.data.options import column_file, column_options, parse_model_options


def test_model_option():
    assert parse_model_options(["a=x"]) == {"a": ("x",)}
    assert parse_model_options([" a = x , y=z "]) == {"a": ("x", "y=z")}


@pytest.mark.parametrize("text", ["", "a", "=x", "a=", "a=x,", "a=,x", " =x"])
def test_model_option_of_another_form(text):
    with pytest.raises(fl.UsageError, match=r"--model must be NAME=COL .*; got "):
        parse_model_options([text])


def test_model_options_have_different_names():
    assert parse_model_options(["a=x", "b=x"]) == {"a": ("x",), "b": ("x",)}
    with pytest.raises(fl.UsageError, match="--model names two classifiers 'a'"):
        parse_model_options(["a=x", "a=y"])


TOML = """
label = "gold"
domain = "region"
classes = [0, 1]

[models]
net = ["u", "v"]
"a.b" = "w"
"""


def test_toml(write):
    said, _ = column_file(write("\ufeff" + TOML, "columns.toml"))
    assert said.label == "gold"
    assert said.domain == "region"
    assert said.weight is None
    assert said.classes == (0, 1)
    assert said.models == {"net": ("u", "v"), "a.b": ("w",)}


def test_arguments_win_over_toml(write):
    path = write(TOML, "columns.toml")
    joined = column_options(columns=path, label="y", models={"net": "z"}, classes=["a", "b"])
    assert joined.label == "y"
    assert joined.domain == "region"
    assert joined.models == {"net": ("z",), "a.b": ("w",)}
    assert joined.classes == ("a", "b")


def test_toml_reads_a_file(write):
    table = write("gold,region,u,v,w\n1,x,.2,.8,.5\n,y,.7,.3,.5\n")
    predictions = fl.read_predictions(table, columns=write(TOML, "columns.toml"))
    assert predictions.models == ("net", "a.b")
    assert predictions.domain.tolist() == ["x", "y"]
    assert predictions.labels.tolist() == [1, -1]


def test_toml_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(fl.InputError, match="cannot be read"):
            column_file(path)


@pytest.mark.parametrize("no_label", [9, [9], [["x"]], [None]])
def test_words_for_no_label_are_texts(no_label):
    with pytest.raises(fl.UsageError, match=r"^`no_label` must be texts; got "):
        column_options(no_label=no_label)
