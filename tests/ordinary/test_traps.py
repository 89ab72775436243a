"""Files that were read wrongly once, with a status of ok: each is right now, said, or refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewlabels as fl
from fewlabels.cli import main
from fewlabels.data.read import column_names
from proposed import run_all

N = 240
RNG = np.random.default_rng(23)
TRUTH = RNG.integers(0, 3, N)
KNOWN = np.arange(N) % 4 == 0


def words(*names: str, right: float = 0.85, seed: int = 0) -> list[str]:
    """What a classifier says of each item in these words, one per class."""
    rng = np.random.default_rng(seed)
    k = len(names)
    truth = TRUTH % k
    said = np.where(rng.random(N) < right, truth, (truth + rng.integers(1, k, N)) % k)
    return [names[i] for i in said]


def labels(*names: str) -> list[str]:
    """The known labels in these words; empty where unknown."""
    return [names[t % len(names)] if known else "" for t, known in zip(TRUTH, KNOWN, strict=True)]


def shares(seed: int = 0, k: int = 2) -> np.ndarray:
    """P(class 1) of a fair classifier of two classes."""
    rng = np.random.default_rng(seed)
    return (1 / (1 + np.exp(-rng.normal(3.0 * (TRUTH % k == 1) - 1.5, 1.2)))).round(3)


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write columns as a CSV file."""

    def writer(name: str = "file.csv", **columns: Any) -> Path:
        pd.DataFrame(columns).to_csv(tmp_path / name, index=False)
        return tmp_path / name

    return writer


def refused(path: Path, *said: str, **options: Any) -> None:
    with pytest.raises((fl.InputError, fl.UsageError)) as error:
        fl.read_predictions(path, **options)
    for text in said:
        assert text in str(error.value)
    if path.is_file() and not options:  # what is proposed is run as it stands
        names = column_names(path)
        run_all([str(error.value)], names, path, lambda *said: (main([*map(str, said)]), "", ""))


def test_a_class_that_is_written_as_no_label_is_asked_about(write):
    for text, mend in (("NA", "--no-label=NA"), ("TODO", "--classes"), ("-1", "--same=-1=NAME")):
        path = write(gold=labels("EU", text, "APAC"), gpt=words("EU", text, "APAC"))
        refused(path, f"'{text}' stands for an unknown label", mend)
    path = write(gold=labels("EU", "NA", "APAC"), gpt=words("EU", "NA", "APAC"))
    found = fl.read_predictions(path, classes=["APAC", "EU", "NA"])
    assert found.n_labeled == KNOWN.sum()
    without = fl.read_predictions(path, no_label=["NA"])
    assert without.n_classes == 2
    # Words of the language are classes where labels and predictions both say them.
    path = write(gold=labels("play", "skip", "stop"), gpt=words("play", "skip", "stop"))
    assert fl.read_predictions(path).classes == ("play", "skip", "stop")
    minus = write(gold=labels("1", "-1"), gpt=words("1", "-1"))
    assert fl.read_predictions(minus, same={"-1": "0"}).n_labeled == KNOWN.sum()


def test_words_for_no_label(write):
    for text in ("n.a.", "k.A.", "-999", ".", "unsure"):
        gold = [label or text for label in labels("yes", "no")]
        found = fl.read_predictions(write(gold=gold, gpt_verdict=words("yes", "no")))
        assert (found.n_labeled, found.n_classes) == (KNOWN.sum(), 2)
        assert any(repr(text) in note and "no label" in note for note in found.notes)
    gold = [label or "whatever" for label in labels("yes", "no")]
    found = fl.read_predictions(write(gold=gold, gpt_verdict=words("yes", "no")))
    assert any("75% of the labels" in n and "--no-label 'whatever'" in n for n in found.notes)


def test_predictions_in_other_words_than_the_labels_are_refused(write):
    path = write(gold=labels("real", "fake"), m=words("0", "1"))
    refused(path, "none of which is a label", "--same", hard={"m": "m"})
    told = fl.read_predictions(path, hard={"m": "m"}, same={"0": "real", "1": "fake"})
    assert told.n_classes == 2
    # Except where a library numbers the classes.
    path = write(gold=labels("0", "1"), bert=words("LABEL_0", "LABEL_1", seed=3))
    found = fl.read_predictions(path)
    assert found.models == ("bert",)
    assert np.mean(found.votes[KNOWN, 0] == found.labels[KNOWN]) > 0.7


def test_body_weight_is_told(write):
    path = write(weight=RNG.normal(70, 9, N), gold=labels("ill", "well"), cnn_prob=shares())
    assert any("sampling weights: column 'weight'" in s for s in fl.read_predictions(path).reading)


def test_models_in_rows_are_votes(write):
    rows = {
        "item": np.repeat(np.arange(N), 2),
        "model": ["gpt-4o", "claude"] * N,
        "prediction": np.stack([words("a", "b", seed=s) for s in (1, 2)], axis=1).ravel(),
        "gold": np.repeat(labels("a", "b"), 2),
    }  # fmt: skip
    found = fl.read_predictions(write(**rows))
    assert (found.n_items, sorted(found.models)) == (N, ["claude", "gpt-4o"])
    assert found.n_labeled == KNOWN.sum()
    # A column that is the same in all rows of an item is its label, also where it is named so.
    rows["label"] = rows.pop("gold")
    again = fl.read_predictions(write(**rows))
    np.testing.assert_array_equal(again.labels, found.labels)
    rows["prediction"] = np.repeat(shares(), 2)
    refused(write(**rows), "give each item one row and each classifier a column")


def test_label_and_gold_both_full_are_asked_about(write):
    full = [("a", "b")[t % 2] for t in TRUTH]
    refused(write(label=words("a", "b"), gold=full), "--label label", "--label gold")


def test_columns_of_the_same_words_without_a_helpful_name_are_asked_about(write):
    said = {f"reader{k}": words("none", "mild", "severe", seed=k) for k in (1, 2)}
    path = write(severity=words("none", "mild", "severe", right=1.0), **said)
    refused(path, "hold the same values", "--label severity")
    assert fl.read_predictions(path, label="severity").models == ("reader1", "reader2")


def test_confidence_in_the_own_prediction(write):
    p = shares()
    hard = np.where(p > 0.5, "yes", "no")
    sure = np.maximum(p, 1 - p)
    found = fl.read_predictions(write(gold=labels("no", "yes"), pred=hard, prob=sure))
    assert found.n_models == 1
    np.testing.assert_allclose(found.probabilities[:, 0, 1], p, atol=1e-12)
    refused(
        write(gold=labels("no", "yes"), gpt=hard, gpt_confidence=100 * sure), "--confidence gpt="
    )


def test_two_columns_of_one_classifier(write):
    p = shares()
    for names in (("not_spam_prob", "spam_prob"), ("0", "1")):
        columns = {"gold": labels("0", "1"), names[0]: (1 - p).round(3), names[1]: p}
        path = write(**columns)
        if names[0] != "0":
            refused(path, "not said by the names", "--classes 0,1")
        found = fl.read_predictions(path, classes=["0", "1"])
        assert found.n_models == 1
        np.testing.assert_allclose(found.probabilities[:, 0, 1], p, atol=1e-9)
    found = fl.read_predictions(write(gold=labels("0", "1"), y_pred=(p > 0.5) * 1, y_prob=p))
    assert found.n_models == 1


def test_a_score_named_for_the_negative_class_is_refused(write):
    path = write(gold=labels("fail", "pass"), fail_logit=np.log(shares() + 0.01))
    refused(path, "'fail_logit' is named for class 'fail'", "--positive fail")
    assert fl.read_predictions(path, positive="fail").positive == "fail"


def test_columns_that_judge_a_classifier_are_none(write):
    said = words("a", "b")
    right = [int(w == ("a", "b")[t % 2]) for w, t in zip(said, TRUTH, strict=True)]
    path = write(gold=labels("a", "b"), gpt=said, gpt_correct=right, gpt4_cost_usd=RNG.random(N))
    assert fl.read_predictions(path).models == ("gpt",)


def test_names_of_classifiers_are_whole(write):
    columns = {
        "gold": labels("no", "yes"),
        "llama[70b]": words("no", "yes"),
        "label_a": words("no", "yes", seed=4),
    }
    assert fl.read_predictions(write(**columns)).models == ("llama[70b]", "a")


def test_a_column_that_is_asked_for_and_not_there(write):
    path = write(gold=labels("no", "yes"), gpt=words("no", "yes"))
    refused(path, "no column 'godl' (--label)", "did you mean 'gold'", label="godl")
    refused(path, "no column 'itme' (--item)", item="itme")


def test_percentages_in_some_files_only(tmp_path):
    for name, share in (("a", "66.6"), ("b", "66.6%")):
        (tmp_path / f"{name}.csv").write_text(f"label,s__m\n1,{share}\n0,{share}\n")
    refused(tmp_path, "percentages in some rows or files")
    with pytest.raises(fl.InputError, match="percentages"):
        fl.estimate_files(tmp_path)


def test_a_stream_is_read_as_memory_is(tmp_path, write):
    p = shares()
    path = write(gold=labels("fraud", "legit"), rf_prob=[f"{100 * x:.1f}%" for x in p])
    memory = fl.estimate(path, metrics="accuracy", method="ensemble")
    stream = fl.estimate_files(path, metrics="accuracy", method="ensemble")
    assert stream.positive == memory.positive == "fraud"
    assert stream.get("rf", "accuracy").value == pytest.approx(
        memory.get("rf", "accuracy").value, abs=1e-3
    )
    assert stream.to_dict()["reading"] == memory.to_dict()["reading"]
    assert any("percentages read as shares" in w for w in stream.warnings)


def test_group_columns_of_native_files_stay_groups(write):
    flight = [("economy", "business", "first")[t] for t in TRUTH]
    path = write(
        **{"y__a": words("no", "yes"), "y__b": words("no", "yes", seed=2), "class": flight}
    )
    found = fl.read_predictions(path)
    assert (found.n_labeled, found.n_classes) == (0, 2)
    assert "class" in found.groups


def test_a_positive_class_in_another_spelling(write):
    path = write(label=labels("ham", "spam"), p__m__spam=shares())
    found = fl.estimate(path, positive="Ham", metrics="recall", method="labeled")
    assert found.positive == "ham"
    with pytest.raises(fl.UsageError, match="unknown class 'hamm'; did you mean 'ham'"):
        fl.estimate(path, positive="hamm")


def test_commands_of_the_doctor_can_be_pasted(write, cli):
    p = shares()
    data = write(id=[f"x{i}" for i in range(N)], rf_prob=p)
    kept = write("labels.csv", item_id=[f"x{i}" for i in range(N)], label=labels("0", "1"))
    code, out, _ = cli("doctor", data, "--labels", kept)
    assert code == 0
    command = out[out.index("fewlabels estimate") :].replace("\\\n", " ").split()[1:]
    code, out, err = cli(*command, "--json", "-", "--metrics", "accuracy", "--method", "labeled")
    assert (code, '"n_labeled": 60' in out) == (0, True), err
