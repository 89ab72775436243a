"""Classes: which there are, in which order, and what a text means."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import fewlabels as fl
from fewlabels.checks.class_words import same_answer
from fewlabels.data.table import class_names, class_text, group_text, in_order


def read(**columns) -> fl.Predictions:
    options = columns.pop("options", {})
    return fl.read_predictions(pa.table(columns), **options)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"), (1.0, "1"), ("1", "1"), ("1.0", "1"), (" 1. ", "1"), (np.int8(1), "1"),
        (np.float32(1), "1"), (-0.0, "0"), ("-0", "0"), ("007", "007"), ("1e0", "1e0"),
        (True, "true"), (np.True_, "true"), ("True", "True"), (b"x", "x"), (None, ""), (2.5, "2.5"),
        (float("nan"), ""), ("", ""), ("9" * 5000, "9" * 5000), (1e300, str(int(1e300))),
        (float("inf"), "inf"),
    ],
)  # fmt: skip
def test_text_of_a_class(value, text):
    assert class_text(value) == text


def test_text_of_a_group_keeps_strings_as_they_are():
    assert [group_text(v) for v in ("1.0", " a ", 1, 2.0, 0.1, " ", None, float("nan"))] == [
        *("1.0", " a ", "1", "2", "0.1"),
        *(None, None, None),
    ]


def test_order_is_numeric_then_alphabetic():
    assert in_order(["b", "10", "-1.5", "9", "B", "a"]) == ("-1.5", "9", "10", "B", "a", "b")
    assert in_order(["100%", "8%", "22%"]) == ("8%", "22%", "100%")
    assert in_order(["100%", "8%"], in_words=False) == ("100%", "8%")  # as scikit-learn has them
    assert in_order(["10,0", "2,0", "2,5"]) == ("2,0", "2,5", "10,0")
    assert in_order(["Grade 10", "Grade 8", "grade 9"]) == ("Grade 8", "grade 9", "Grade 10")
    assert in_order(["Grade 10", "Form 9"]) == ("Form 9", "Grade 10")
    assert in_order(["-5%", "10%", "5%"]) == ("-5%", "10%", "5%")  # read as words
    assert in_order(["20-30", "100-200"]) == ("100-200", "20-30")
    assert class_names(("10", "9")) == (10, 9)
    assert class_names(("1", "1.5")) == ("1", "1.5")
    assert class_names(("9" * 40, "1")) == ("9" * 40, "1")


def test_one_is_one_in_every_writing():
    predictions = read(
        label=["1", "1.0", " 0 ", None], p__a__1=[0.5] * 4, **{"p__a__0.0": [0.5] * 4}
    )
    assert predictions.classes == (0, 1)
    np.testing.assert_array_equal(predictions.labels, [1, 1, 0, -1])


def test_unlabeled_texts():
    texts = ["", "-1", "-1.0", "nan", "NaN", "null", "NULL", None, "yes", "no"]
    predictions = read(label=texts, p__a__yes=[0.5] * 10, p__a__no=[0.5] * 10)
    np.testing.assert_array_equal(predictions.labels, [-1] * 8 + [1, 0])


def test_unlabeled_text_that_is_a_declared_class():
    predictions = read(label=["null", "x", ""], p__a__null=[0.5] * 3, p__a__x=[0.5] * 3)
    assert predictions.classes == ("null", "x")
    np.testing.assert_array_equal(predictions.labels, [0, 1, -1])


def test_other_class_from_the_labels():
    predictions = read(label=["ham", None], p__a__spam=[0.9, 0.1])
    assert predictions.classes == ("ham", "spam")
    np.testing.assert_allclose(predictions.probabilities[:, 0, 1], [0.9, 0.1])
    predictions = read(label=["zebra", None], p__a__spam=[0.9, 0.1])
    assert predictions.classes == ("spam", "zebra")
    np.testing.assert_allclose(predictions.probabilities[:, 0, 0], [0.9, 0.1])


def test_other_class_from_another_classifier():
    predictions = read(p__a__spam=[0.9], p__b__ham=[0.3])
    assert predictions.classes == ("ham", "spam")
    np.testing.assert_allclose(predictions.probabilities[0], [[0.1, 0.9], [0.3, 0.7]])


def test_other_class_that_nobody_names_is_called_not():
    predictions = read(label=["cat", None], p__a__cat=[0.9, 0.2])
    assert predictions.classes == ("not cat", "cat")
    np.testing.assert_allclose(predictions.probabilities[:, 0, 1], [0.9, 0.2])
    assert "the other is called 'not cat'" in predictions.notes[0]


def test_declared_classes_win_over_order():
    options = {"classes": ["spam", "ham"]}
    predictions = read(label=["ham"], p__a__spam=[0.9], options=options)
    assert predictions.classes == ("spam", "ham")
    np.testing.assert_allclose(predictions.probabilities[0, 0], [0.9, 0.1])


@pytest.mark.parametrize(
    ("classes", "negative"),
    [(("0", "1"), "0"), (("false", "true"), "false"), (("False", "True"), "False")],
)
def test_booleans(classes, negative):
    for label in ([True, False, None], ["True", "FALSE", ""], ["1", "0", "-1"]):
        predictions = read(label=label, **{f"p__a__{classes[1]}": [0.5] * 3})
        assert tuple(map(str, predictions.classes)) == classes
        np.testing.assert_array_equal(predictions.labels, [1, 0, -1])
        both = {f"p__a__{c}": [0.5] * 3 for c in classes}
        np.testing.assert_array_equal(read(label=label, **both).labels, [1, 0, -1])
    assert same_answer("cat", classes) is None
    assert negative in classes


def test_votes_and_labels_make_the_classes():
    predictions = read(label=["b", None, None], y__v=["a", "c", ""], y__w=["a", "-1", "b"])
    assert predictions.classes == ("a", "b", "c")
    np.testing.assert_array_equal(predictions.votes, [[0, 0], [2, -1], [-1, 1]])
    assert read(y__v=[10, 9, 9]).classes == (9, 10)
    assert read(y__v=[1, 1]).classes == (0, 1)
    assert read(y__v=[True, True]).classes == ("false", "true")
    assert read(y__v=[True, False], label=[1, 0]).classes == (0, 1)


def test_scores_alone_imply_two_classes():
    assert read(s__a=[0.5, 2.0]).classes == (0, 1)
    assert read(s__a=[0.5, 2.0], label=["spam", "ham"]).classes == ("ham", "spam")


def test_mapped_columns_take_their_classes_from_the_labels():
    models = {"m": ["u", "v"]}
    columns = {"u": [0.1, 0.6], "v": [0.9, 0.4]}
    assert read(**columns, options={"models": models}).classes == ("u", "v")
    predictions = read(
        **columns, label=["yes", None], options={"models": models, "classes": ["yes", "no"]}
    )
    np.testing.assert_array_equal(predictions.labels, [0, -1])
    np.testing.assert_allclose(predictions.probabilities[:, 0, 1], [0.9, 0.4])
    assert predictions.positive == "yes"


def test_one_mapped_column_is_the_last_class():
    predictions = read(u=[0.1, 0.6], label=[0, 1], options={"models": {"m": "u"}})
    np.testing.assert_allclose(predictions.probabilities[:, 0, 1], [0.1, 0.6])


def test_histogram_columns_declare_classes():
    predictions = read(p__a__x=[0.2, 0.4], h__x=[3, 0], h__y=[1, None])
    assert predictions.classes == ("x", "y")
    np.testing.assert_array_equal(predictions.histogram, [[3, 1], [0, 0]])


def test_categories_that_do_not_occur_are_no_classes():
    values = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", "b", "c"]))
    assert read(y__v=values).classes == ("a", "b")


def test_lists_of_numbers_are_in_the_order_of_scikit_learn_where_classes_are_not(tmp_path):
    """Classes called by numbers are sorted by these, a list of probabilities is not."""
    sides = ["Grade 10", "Grade 8", "Grade 9"]  # sorted, as `classes_`
    cells = ["[0.7, 0.2, 0.1]", "[0.1, 0.8, 0.1]", "[0.1, 0.3, 0.6]"]
    rows = [f'{label},"{cell}"' for label, cell in zip(sides, cells, strict=True)] * 4
    path = tmp_path / "grades.csv"
    path.write_text("\n".join(["label,probs", *rows]), encoding="utf-8")
    items = fl.read_predictions(path)
    assert items.classes == ("Grade 8", "Grade 9", "Grade 10")
    assert items.probabilities[0, 0].tolist() == pytest.approx([0.2, 0.1, 0.7])
