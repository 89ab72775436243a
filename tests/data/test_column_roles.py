"""Which column is what."""

from __future__ import annotations

import pytest

import fewlabels as fl
from fewlabels.data.options import ColumnOptions
from fewlabels.data.roles import assign_roles, split_native


def roles(*names, **options):
    return assign_roles(names, ColumnOptions(**options))


def test_native_names_are_parsed_from_the_right():
    assert split_native("p__a__b__c") == ("p", "a__b", "c")
    assert split_native("p__a___1") == ("p", "a_", "1")
    assert split_native("p__a__1.0") == ("p", "a", "1")
    assert split_native("y__a__b") == ("y", "a__b", "")
    assert split_native("h__x y") == ("h", "", "x y")
    for name in ("p__a", "p____1", "p__a__", "y__", "s__", "h__", "label", "P__a__1", "q__a__1"):
        assert split_native(name) is None


def test_models_are_in_the_order_of_their_first_column():
    found = roles("s__c", "p__b__1", "u", "y__a", "h__0", "p__c__1", models={"m": ("u",)})
    assert found.models == ("c", "b", "m", "a")


def test_roles_in_words_cover_every_column():
    names = (
        "label",
        "p__a__0",
        "p__a__1",
        "y__b",
        "s__c",
        "h__0",
        "h__1",
        "domain",
        "weight",
        "u",
        "",
    )
    found = roles(*names, models={"m": ("u",)})
    said = found.described()
    assert set(said) == set(names)
    assert said["p__a__1"] == "probability of class 1 by a"
    assert said["u"] == "probability of the positive class by m"
    assert said["h__0"] == "annotators who chose class 0"
    assert said[""] == "not used"


def test_options_replace_native_names():
    found = roles("gold", "label", "p__a__1", label="gold")
    assert found.label == "gold"
    assert found.groups == ("label",)


def test_a_mapped_native_column_changes_its_classifier():
    found = roles("p__a__0", "p__a__1", models={"b": ("p__a__0", "p__a__1")})
    assert found.models == ("b",)


def test_missing_column():
    with pytest.raises(fl.InputError, match=r"no column 'Label' \(--label\); did you mean 'label'"):
        roles("label", "p__a__1", label="Label")
    with pytest.raises(fl.InputError, match=r"no column 'v' \(--model m\)"):
        roles("p__a__1", models={"m": ("v",)})


def test_two_roles_for_one_column():
    with pytest.raises(fl.InputError, match="'x' has two roles: --domain and --weight"):
        roles("p__a__1", "x", domain="x", weight="x")
    # Two classifiers may share a column: doctor says that they are identical.
    assert roles("u", models={"a": ("u",), "b": ("u",)}).models == ("a", "b")


def test_two_classifiers_of_one_name():
    with pytest.raises(fl.InputError, match=r"two classifiers are named 'a'.* 'p__a__1'"):
        roles("u", "p__a__1", models={"a": ("u",)})


def test_repeated_columns():
    with pytest.raises(fl.InputError, match="two columns are named 'x'"):
        roles("p__a__1", "x", "x")
    assert roles("p__a__1", "", "").models == ("a",)
    with pytest.raises(fl.InputError, match=r"'p__a__1' and 'p__a__1\.0' are both of class '1'"):
        roles("p__a__1", "p__a__1.0")


def test_no_predictions():
    with pytest.raises(
        fl.InputError, match=r"no prediction columns; the columns are 'a', 'b'.*--model"
    ):
        roles("a", "b")
    with pytest.raises(fl.InputError, match="and 92 more"):
        roles(*(f"c{i}" for i in range(100)))
