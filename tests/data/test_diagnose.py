"""What doctor finds, and that it finds nothing where there is nothing."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fewlabels as fl
from fewlabels.data import Finding, diagnose
from fewlabels.data.doctor import facts

N = 400


def columns(rng: np.random.Generator, n: int = N) -> dict[str, np.ndarray]:
    """Two decent classifiers, every second item labeled."""
    y = rng.integers(0, 2, n)
    known = np.where(np.arange(n) % 2, y, -1)

    def classifier(strength: float) -> np.ndarray:
        return 1 / (1 + np.exp(-strength * (y - 0.5) - rng.normal(size=n)))

    return {
        "label": known,
        "p__a__1": classifier(3.0),
        "p__b__1": classifier(2.0),
        "p__c__1": classifier(2.5),
    }


@pytest.fixture
def healthy() -> dict[str, np.ndarray]:
    return columns(np.random.default_rng(7))


def findings(table, **options) -> tuple[Finding, ...]:
    return diagnose(pd.DataFrame(table), **options).findings


def the(found: tuple[Finding, ...], words: str) -> Finding:
    matching = [f for f in found if words in f.what]
    assert len(matching) == 1, [f.what for f in found]
    assert matching[0].mend
    return matching[0]


def none(found: tuple[Finding, ...], words: str) -> None:
    assert not [f for f in found if words in f.what]


ROW = np.arange(N)
NOISE = np.random.default_rng(3).uniform(0.01, 0.99, N)
NEARLY = np.random.default_rng(0).normal(0, 1e-3, N)

FOUND = {
    "copy": (lambda t: {"p__z__1": t["p__a__1"]}, {}, [
        ("are identical on every item", "classifiers a, z", ""), ("!nearly", "", ""),
    ]),
    "nearly a copy": (lambda t: {"p__z__1": np.clip(t["p__a__1"] + NEARLY, 0.001, 0.999)}, {}, [
        ("nearly identical", "classifiers a, z", ""),
    ]),
    "a copy with gaps": (lambda t: {"p__z__1": np.where(ROW < 50, np.nan, t["p__a__1"])}, {}, [
        ("nearly identical", "classifiers a, z", ""),
        ("no prediction for some items", "classifier z (12.5%)", ""),
    ]),
    **{
        f"constant {kind}": (lambda t, kind=kind: {kind: np.ones(N)}, {}, [
            ("says the same for every item", "classifier z", ""),
            ("!no better than chance", "", ""), ("!predicts class", "", ""),
        ])
        for kind in ("p__z__1", "s__z", "y__z")
    },
    "one class": (lambda t: {"p__z__1": t["p__a__1"] / 3}, {}, [
        ("predicts class 0 for every item", "classifier z", ""),
    ]),
    "noise": (lambda t: {"p__z__1": NOISE}, {}, [
        ("no better than chance", "classifier z", ""), ("against 200 labels", "classifier z", ""),
    ]),
    "inverted": (lambda t: {"p__z__1": 1 - t["p__a__1"]}, {}, [
        ("the wrong way round", "classifier z", "swap its class columns"),
    ]),
    "rounded": (lambda t: {"p__b__1": np.where(ROW < 40, t["p__b__1"].round(), t["p__b__1"])}, {}, [
        ("exactly 0 or 1", "classifier b (10%)", ""),
    ]),
    "few labels": (lambda t: {"label": np.where(ROW % 50, -1, 1)}, {"classes": [0, 1]}, [
        ("few labels: 8", "labels", ""), ("no labeled item is of class 0", "labels", ""),
    ]),
    **{
        f"the {end} rows": (
            lambda t, rows=rows: {"label": np.where(rows, np.resize([0, 1, 1, 0, 1, 0], N), -1)},
            {},
            [(f"the labeled items are the {end} 60 rows", "labels", "")],
        )
        for end, rows in (("first", ROW < 60), ("last", ROW >= N - 60))
    },
    "in order": (lambda t: {"label": np.sort(np.maximum(t["label"], 0))[::-1]}, {}, [
        ("the rows are ordered by label: it changes 1 times", "labels", ""),
    ]),
    "groups": (lambda t: {"one": ["x"] * N, "code": ROW, "sex": np.resize(["f", "m"], N)}, {}, [
        ("one value only", "group one", ""),
        ("more values than --by takes", "group code (400)", ""),
    ]),
    **{
        name: (lambda t, name=name: {name: ROW}, {}, [(what, f"column '{name}'", "")])
        for name, what in (
            ("prob_x", "may be a probability"), ("P__x__1", "may be a probability"),
            ("p_x_1", "may be a probability"), ("pred_x", "may be a hard prediction"),
            ("y_pred", "may be a hard prediction"), ("logit_x", "may be a score"),
            ("sample_weight", "may be the weight"), ("Domain", "may be the domain"),
        )
    },
}  # fmt: skip
"""What is done to healthy columns, options, and what is found: words (!: not), where, mend."""


@pytest.mark.parametrize("case", FOUND)
def test_what_is_found(healthy, case):
    change, options, expected = FOUND[case]
    found = findings(healthy | change(healthy), **options)
    for words, where, mend in expected:
        if words.startswith("!"):
            none(found, words[1:])
        else:
            assert the(found, words).where == where
            assert mend in the(found, words).mend


def test_nothing_to_find(healthy):
    diagnosis = diagnose(pd.DataFrame(healthy))
    assert diagnosis.findings == ()
    assert diagnosis.ok
    assert diagnosis.counts == {"n_items": N, "n_labeled": N // 2, "n_models": 3, "n_classes": 2}
    assert diagnosis.roles["p__a__1"] == "probability of class 1 by a"
    assert "No problems found." in diagnosis.summary()


def test_class_balance(healthy):
    balance = diagnose(pd.DataFrame(healthy | {"s__svm": healthy["p__a__1"]})).class_balance
    known = healthy["label"][healthy["label"] >= 0]
    assert balance["labels"] == pytest.approx({"0": 1 - known.mean(), "1": known.mean()})
    assert balance["predicted"]["a"]["1"] == pytest.approx(healthy["p__a__1"].mean())
    assert balance["predicted"]["svm"] is None


def test_classes_that_are_perhaps_one():
    table = {"y__a": ["Cat", "dog", "cat ", "Dog"] * 5, "y__b": ["Cat", "dog", "dog", "Cat"] * 5}
    (said,) = [f.what for f in findings(table) if f.severity == "error"]
    assert "'cat' (5 rows)" in said
    assert "'Cat' (5 rows)" in said
    assert "--same Cat=cat" in said or "--same cat=Cat" in said
    # Nobody means two classes by Yes and yes.
    table = {"y__a": ["Yes", "no", "yes ", "No"] * 5, "y__b": ["Yes", "no", "no", "Yes"] * 5}
    (said,) = [f.what for f in findings(table) if "'y__a'" in f.what]
    assert "as" in said


def test_numbers_that_are_no_classes():
    table = {"y__a": np.linspace(0, 1, 60), "y__b": np.linspace(0, 1, 60)}
    (found,) = [f for f in findings(table) if f.where == "classes"]
    assert found.what == "60 classes"
    assert "s__<model>" in found.mend


def test_identical_for_many_classes():
    p = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    table = {f"p__{m}__{k}": p[:, k] for m in "ab" for k in range(3)}
    assert the(findings(table), "are identical on every item").where == "classifiers a, b"


def test_orders_without_labels(healthy):
    rng = np.random.default_rng(3)
    table = healthy | {
        "label": np.full(N, -1),
        "p__noise__1": rng.uniform(0.01, 0.99, N),
        "s__reversed": -healthy["p__a__1"],
    }
    found = findings(table)
    chance = the(found, "no better than chance as seen by the others")
    assert chance.where == "classifier noise"
    assert "no label was used" in chance.what
    assert the(found, "the wrong way round as seen by the others").where == "classifier reversed"


def test_orders_of_many_classes_with_labels():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    good = rng.dirichlet(np.ones(3), 300) + 2 * np.eye(3)[y]
    good /= good.sum(axis=1, keepdims=True)
    noise = rng.dirichlet(np.ones(3), 300)
    table = {"label": y}
    table |= {f"p__good__{k}": good[:, k] for k in range(3)}
    table |= {f"p__noise__{k}": noise[:, k] for k in range(3)}
    assert the(findings(table), "no better than chance").where == "classifier noise"


def test_few_items_are_not_judged_by_the_others():
    rng = np.random.default_rng(0)
    found = findings({"p__a__1": rng.uniform(size=30), "p__b__1": rng.uniform(size=30)})
    none(found, "no better than chance")


@pytest.mark.parametrize("absent", [[], ["label"]])
def test_no_labels(healthy, absent):
    table = {c: v for c, v in healthy.items() if c not in absent}
    if not absent:
        table["label"] = np.full(N, -1)
    found = the(findings(table, classes=[0, 1]), "none is known")
    assert found.where == "labels"
    assert "--label" in found.mend


def test_minus_one_that_may_be_the_negative_class(healthy):
    label = np.where(healthy["label"] == 1, 1, -1)
    found = the(findings(healthy | {"label": label}, classes=[0, 1]), "holds -1 and '1' alone")
    assert "write it as 0" in found.mend
    label[0] = 0
    none(findings(healthy | {"label": label}), "holds -1")


def test_labels_that_are_no_random_sample(healthy):
    order = np.argsort(-healthy["p__a__1"])
    label = np.full(N, -1)
    label[order[:60]] = np.random.default_rng(0).integers(0, 2, 60)
    found = the(findings(healthy | {"label": label}), "scores labeled items higher")
    assert found.what.startswith("a ")
    assert "--weight" in found.mend
    weights = np.linspace(1, 2, N)
    none(findings(healthy | {"label": label, "weight": weights}), "scores labeled items")


@pytest.mark.parametrize(("copies", "severity"), [(10, "info"), (100, "warning")])
def test_duplicate_rows(healthy, copies, severity):
    table = {c: np.r_[v, v[:copies]] for c, v in healthy.items()}
    found = the(findings(table), "repeat an earlier row")
    assert found.what.startswith(f"{copies} of {N + copies} rows")
    assert found.severity == severity


def test_duplicate_votes_are_normal():
    rng = np.random.default_rng(0)
    table = {f"y__{m}": rng.integers(0, 2, 100) for m in "abc"}
    none(findings(table), "repeat an earlier row")


def test_renormalised_rows_and_other_notes(healthy):
    found = findings(healthy | {"p__a__0": 1.0003 - healthy["p__a__1"]})
    assert "more digits" in the(found, "did not sum to 1").mend
    found = findings({"p__a__cat": healthy["p__a__1"], "v": [[1.0]] * N})
    assert "--classes" in the(found, "the other is called 'not cat'").mend
    the(found, "not kept as a group: column 'v' holds list")


def test_columns_that_look_like_predictions(healthy):
    extra = {
        "svc score": healthy["p__a__1"],
        "net_no": 1 - healthy["p__b__1"],
        "net_yes": healthy["p__b__1"],
        "flag": healthy["label"] >= 0,
        "age": np.arange(N) * 1.0,
    }
    found = findings(healthy | extra)
    assert the(found, "looks like a probability").mend.endswith("--model 'svc score=svc score'")
    assert the(found, "look like probabilities that add up to 1").mend.endswith(
        "--model net=net_no,net_yes"
    )
    # The option that is proposed works.
    predictions = fl.read_predictions(
        pd.DataFrame(healthy | extra), models={"net": ["net_no", "net_yes"]}
    )
    assert "net" in predictions.models


def test_proposed_names_are_free(healthy):
    found = findings(healthy | {"a": healthy["p__c__1"]})
    assert the(found, "looks like a probability").mend.endswith("--model a_=a")
    found = findings(healthy | {"u,v": healthy["p__c__1"]})
    assert "--columns" in the(found, "looks like a probability").mend


@pytest.mark.parametrize("name", ["labels", "target", "y_true", "ground_truth", "Label", "class"])
def test_columns_that_may_hold_the_labels(healthy, name):
    table = {name: healthy["label"]} | {c: v for c, v in healthy.items() if c != "label"}
    assert diagnose(pd.DataFrame(table)).reading[0].startswith(f"labels: column '{name}'")
    none(findings(healthy | {name: healthy["label"]}), "may hold the labels")
    # Values that are no classes are no labels, whatever the name says.
    odd = table | {name: ["u", "w"] * (len(healthy["label"]) // 2)}
    assert the(findings(odd), "may hold the labels").mend == f"--label {name}"


def test_names_that_are_nothing_special(healthy):
    extra = {name: np.resize(["f", "m"], N) for name in ("sex", "place", "price", "style", "year")}
    assert findings(healthy | extra) == ()


def test_an_error_is_a_finding_and_the_rest_is_shown(write):
    path = write("label,prob_a,id\n1,.25,7\n0,.5,8\n")
    diagnosis = diagnose(path)
    assert not diagnosis.ok
    assert diagnosis.findings[0].severity == "error"
    assert "no prediction columns" in diagnosis.findings[0].what
    assert diagnosis.roles == {
        "label": "label",
        "prob_a": "not recognised",
        "id": "not recognised",
    }
    none(diagnosis.findings, "may hold the labels")
    assert diagnosis.counts == {"n_items": 2}
    the(diagnosis.findings, "may be a probability")
    assert "--model prob_a=prob_a" in the(diagnosis.findings, "looks like a probability").mend


def test_an_error_in_a_cell(write):
    diagnosis = diagnose(write("label,p__a__0,p__a__1,weights\nspam,.5,.5,2\n"))
    assert [f.severity for f in diagnosis.findings] == ["error", "warning"]
    assert "'spam' in column 'label', row 1" in diagnosis.findings[0].what
    assert diagnosis.roles["p__a__0"] == "probability of class 0 by a"
    assert diagnosis.findings[1].mend == "--weight weights"


@pytest.mark.parametrize(
    "content", [b"PAR1 and then nothing", b"label\xff\n", b"\n", b"a,a\n1,2\n"]
)
def test_a_damaged_file_is_a_finding(write, content):
    diagnosis = diagnose(write(content))
    assert diagnosis.findings[0].severity == "error"
    assert "error" in diagnosis.summary()


def test_no_such_file_and_wrong_options_are_refused(tmp_path):
    with pytest.raises(fl.InputError, match="no such file"):
        diagnose(tmp_path / "none.csv")
    with pytest.raises(fl.UsageError, match="`classes` must be a list"):
        diagnose(pa.table({"p__a__1": [0.5]}), classes="ab")


def test_npz(tmp_path, healthy):
    path = tmp_path / "file.npz"
    np.savez(
        path,
        probabilities=np.stack([healthy["p__a__1"], np.full(N, 0.5)], axis=1),
        labels=healthy["label"],
        groups__one=np.full(N, "x"),
    )
    diagnosis = diagnose(path)
    assert diagnosis.roles == {
        "probabilities": "probabilities, shape (400, 2)",
        "labels": "labels, shape (400,)",
        "groups__one": "group",
    }
    the(diagnosis.findings, "says the same for every item")
    the(diagnosis.findings, "one value only")


def test_to_dict_is_json(healthy):
    diagnosis = diagnose(pd.DataFrame(healthy | {"p__z__1": np.ones(N), "s__v": np.arange(N)}))
    said = json.loads(json.dumps(diagnosis.to_dict(), allow_nan=False))
    assert set(said) == {
        *("name", "ok", "counts", "roles", "class_balance", "findings", "reading", "command"),
        "positive",
    }
    assert set(said["findings"][0]) == {"severity", "what", "where", "mend"}


@pytest.mark.parametrize("width", [60, 80, 120])
def test_summary_keeps_to_the_width(healthy, width):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(12), N)
    table = {f"p__a_classifier_of_a_very_long_name_indeed_{k}__k{k}": p[:, k] for k in range(12)}
    table = {f"p__{'x' * 50}{m}__class_{k}": p[:, k] for m in range(30) for k in range(12)}
    table |= {"a\nb\x1b[31m": np.arange(N), "label": [f"class_{k}" for k in rng.integers(0, 12, N)]}
    for frame in (healthy, table):
        text = diagnose(pd.DataFrame(frame)).summary(width)
        assert max(map(len, text.splitlines())) <= width
        assert all(c.isprintable() or c == "\n" for c in text)
        assert str(diagnose(pd.DataFrame(frame))) == diagnose(pd.DataFrame(frame)).summary(80)


def test_summary_shows_all_there_is(healthy):
    text = diagnose(
        pd.DataFrame(healthy | {"y__v": np.resize([0, 1, 1], N), "sex": np.resize(["f", "m"], N)})
    ).summary()
    for line in (
        "the frame: 400 items, 200 labeled, 4 classifiers, 2 classes; positive: 1",
        "  labels            label",
        "  probabilities     p__a__1, p__b__1, p__c__1",
        "  hard predictions  y__v",
        "  groups            sex",
        f"{'  v':<26}{'33.5%':>8}{'66.5%':>8}",
    ):
        assert line in text.splitlines()


def test_diagnosis_does_not_depend_on_the_order_of_rows(healthy):
    frame = pd.DataFrame(healthy | {"p__z__1": np.random.default_rng(1).uniform(size=N)})
    shuffled = frame.sample(frac=1, random_state=0)
    first, second = diagnose(frame), diagnose(shuffled)
    assert first.findings == second.findings


def test_scores_of_very_many_classes_are_of_few_rows(tmp_path, monkeypatch):
    path = tmp_path / "names.csv"
    path.write_text("item,y__a\n" + "".join(f"i{i},v{i}\n" for i in range(1500)))
    sizes, scores = [], facts.class_scores

    def counted(predictions):
        out = scores(predictions)
        sizes.append(out.size)
        return out

    monkeypatch.setattr(facts, "class_scores", counted)
    diagnose(path)
    assert sizes
    assert max(sizes) <= max(facts._MOST_NUMBERS, 100 * 1500)
