"""Which column is what."""

from __future__ import annotations

import numpy as np
import pandas as pd
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


def test_two_classifiers_may_share_a_column():
    # The doctor says that they are identical.
    assert roles("u", models={"a": ("u",), "b": ("u",)}).models == ("a", "b")


def test_repeated_columns():
    assert roles("p__a__1", "", "").models == ("a",)


def weighted(name, weight, *, native=True):
    """A table with a column of weights, half of its items labeled."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 200)
    p = np.clip(0.6 * truth + 0.4 * rng.random(200), 0.01, 0.99)
    label = [int(y) if i % 2 else None for i, y in enumerate(truth)]
    columns = ("label", "p__net__1") if native else ("truth", "net_prob")
    return {columns[0]: label, columns[1]: p.tolist(), name: weight}


AS_LABELED = {"method": "labeled", "metrics": "accuracy"}
WEIGHTS = np.random.default_rng(4).choice([1.0, 3.0, 20.0], 200).tolist()


@pytest.mark.few(3)
@pytest.mark.product
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(
    "name",
    [
        "sampling_weight", "Sampling Weights", "survey_weight", "design-weight", "ipw", "pweight",
        "inverse_probability", "inverse_sampling_probability", "inv_prob_weight", "ip_weight",
    ],
)  # fmt: skip
def test_sampling_weights_by_another_name_are_used_and_said(name, native, tmp_path):
    table = weighted(name, WEIGHTS, native=native)
    plain = fl.estimate(weighted("weight", WEIGHTS, native=native), **AS_LABELED)
    found = fl.estimate(table, **AS_LABELED)
    assert found.rows == plain.rows
    assert f"sampling weights: column {name!r}" in " ".join(found.predictions.reading)
    assert f"column {name!r}" in found.summary()
    assert f'weight = "{name}"' in fl.diagnose(table).columns
    pd.DataFrame(table).to_csv(tmp_path / "table.csv", index=False)
    assert "--weight" in fl.diagnose(tmp_path / "table.csv").command
    pd.DataFrame(table).rename(columns={name: "weight"}).to_csv(tmp_path / "n.csv", index=False)
    files = (tmp_path / "table.csv", tmp_path / "n.csv")
    streamed, same = (fl.estimate_files(file, **AS_LABELED) for file in files)
    assert streamed.rows == same.rows


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("name", "weight"),
    [
        *((name, WEIGHTS) for name in ("sample_weight", "weights", "Weight", "wt", "w", "SW")),
        ("sampling_weight", [0.0, *WEIGHTS[1:]]), ("sampling_weight", [None, *WEIGHTS[1:]]),
        ("inverse_probability", [w / 20 for w in WEIGHTS]),
    ],
)  # fmt: skip
def test_what_may_be_sampling_weights_is_asked_about(name, weight, tmp_path):
    table = weighted(name, weight)
    unweighted = {key: column for key, column in table.items() if key != name}
    found = fl.estimate(table, **AS_LABELED)
    assert found.rows == fl.estimate(unweighted, **AS_LABELED).rows
    (said,) = (text for text in found.warnings if "weight" in text)
    assert said.startswith(f"column {name!r} may hold sampling weights, and is not used")
    proposed = f"--weight {name}" * all(w is not None for w in weight)  # else it is refused
    assert (f"--weight {name}" in said) == bool(proposed)
    assert said in found.summary(width=1000)
    (finding,) = (f for f in fl.diagnose(table).findings if "weight" in f.what)
    assert (finding.severity, finding.mend) == ("warning", proposed)
    pd.DataFrame(table).to_csv(tmp_path / "table.csv", index=False)
    assert said in fl.estimate_files(tmp_path / "table.csv", **AS_LABELED).warnings
    if weight is WEIGHTS:
        used = fl.estimate(table, **AS_LABELED, columns={"weight": name})
        assert used.rows == fl.estimate(weighted("weight", weight), **AS_LABELED).rows
        assert not any("weight" in text for text in used.warnings)
    kept = fl.read_predictions(table, keep=[name])  # said to be a group
    assert not any("weight" in text for text in kept.notes)


@pytest.mark.parametrize(
    ("name", "weight"),
    [
        *((name, WEIGHTS) for name in ("weight_kg", "body_weight", "loss_weight", "class_weight")),
        ("sampling_weight", [2.0] * 200), ("w", [1.0] * 200), ("w", ["a", "b"] * 100),
        ("sample_weight", [-1.0, *WEIGHTS[1:]]),
    ],
)  # fmt: skip
def test_what_is_no_sampling_weight_is_left_alone(name, weight):
    table = weighted(name, weight)
    found = fl.estimate(table, **AS_LABELED)
    assert (found.predictions.weight == 1).all()
    assert not any("weight" in text for text in (*found.warnings, *found.predictions.reading))


@pytest.mark.parametrize(
    "name",
    ["inclusion_probability", "prob_chosen", "selection_prob", "p_sampled", "propensity",
     "P(labeled)", "sampling probability"],
)  # fmt: skip
def test_how_likely_an_item_was_to_be_labeled_is_no_classifier(name):
    table = weighted("weight", WEIGHTS, native=False)
    del table["weight"]
    drawn = table | {name: [1 / w for w in WEIGHTS]}
    found, plain = fl.read_predictions(drawn), fl.read_predictions(table)
    assert found.models == plain.models
    (line,) = (line for line in found.reading if repr(name) in line)
    assert line.startswith(f"not used: {name!r} (how likely the item was to be labeled")
    assert "--weight" in line
    diagnosis = fl.diagnose(drawn)
    assert diagnosis.columns == fl.diagnose(table).columns
    assert not any(repr(name) in f.what for f in diagnosis.findings)


def test_a_classifier_named_by_a_class_chosen_is_one():
    words = np.array(["rejected", "chosen"])
    truth = np.arange(60) % 2
    shares = np.where(np.arange(60) % 5 > 0, truth, 1 - truth) * 0.6 + 0.2
    table = {"label": words[truth], "p_chosen": shares, "p_sampled": np.linspace(0.1, 0.9, 60)}
    found = fl.read_predictions(pd.DataFrame(table))
    assert found.n_models == 1
    np.testing.assert_allclose(found.probabilities[:, 0, list(found.classes).index("chosen")],
                               shares)  # fmt: skip


def test_the_native_weight_and_two_candidates():
    table = weighted("weight", WEIGHTS) | {"sampling_weight": WEIGHTS[::-1]}
    both = fl.read_predictions(table)
    np.testing.assert_allclose(both.weight, np.array(WEIGHTS) * 200 / sum(WEIGHTS))
    two = fl.read_predictions(weighted("ipw", WEIGHTS) | {"sampling_weight": WEIGHTS[::-1]})
    assert (two.weight == 1).all()
    assert sum("may hold sampling weights" in note for note in two.notes) == 2
