"""What doctor finds, and that it finds nothing where there is nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fewlabels as fl
from fewlabels.data.doctor import facts
from fewlabels.data.doctor.diagnose import diagnose
from fewlabels.data.doctor.facts import Diagnosis
from outputs import check

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


Table = dict[str, Any]
Cases = dict[str, Table | tuple[Table, dict[str, Any]]]

ROW = np.arange(N)
NOISE = np.random.default_rng(3).uniform(0.01, 0.99, N)
NEARLY = np.random.default_rng(0).normal(0, 1e-3, N)
HEALTHY = columns(np.random.default_rng(7))
A, B, C, LABEL = (HEALTHY[name] for name in ("p__a__1", "p__b__1", "p__c__1", "label"))
WITHOUT = {name: values for name, values in HEALTHY.items() if name != "label"}
CHOSEN = np.where(np.argsort(np.argsort(-A)) < 60, ROW % 2, -1)
TRUTH = np.random.default_rng(0).integers(0, 3, N)


def of_three(name: str, seed: int, strength: float = 0) -> Table:
    """A classifier of three classes, which knows the truth or does not."""
    p = np.random.default_rng(seed).dirichlet(np.ones(3), N) + strength * np.eye(3)[TRUTH]
    return {f"p__{name}__{k}": p[:, k] / p.sum(axis=1) for k in range(3)}


def names(*many: str) -> Cases:
    """Columns of numbers that have such a name."""
    return {f"a column {name!r}": HEALTHY | {name: ROW} for name in many}


FOUND: dict[str, Cases] = {
    "classifiers": {
        "nothing": HEALTHY,
        "a copy": HEALTHY | {"p__z__1": A},
        "nearly a copy": HEALTHY | {"p__z__1": np.clip(A + NEARLY, 0.001, 0.999)},
        "a copy with gaps": HEALTHY | {"p__z__1": np.where(ROW < 50, np.nan, A)},
        "a copy, of three classes": of_three("a", 0, 2) | of_three("z", 0, 2),
        "a constant probability": HEALTHY | {"p__z__1": np.ones(N)},
        "a constant score": HEALTHY | {"s__z": np.ones(N)},
        "a constant vote": HEALTHY | {"y__z": np.ones(N)},
        "one class alone": HEALTHY | {"p__z__1": A / 3},
        "noise": HEALTHY | {"p__z__1": NOISE},
        "noise, of three classes": {"label": TRUTH} | of_three("a", 0, 2) | of_three("z", 1),
        "noise and a score turned round, without labels": WITHOUT | {"p__z__1": NOISE, "s__r": -A},
        "few items, without labels": {"p__a__1": NOISE[:30], "p__b__1": NEARLY[:30] % 1},
        "turned round": HEALTHY | {"p__z__1": 1 - A},
        "rounded": HEALTHY | {"p__b__1": np.where(ROW < 40, B.round(), B)},
        "nearly a sum of 1": HEALTHY | {"p__a__0": 1.0003 - A},
    },
    "labels": {
        "few": (HEALTHY | {"label": np.where(ROW % 50, -1, 1)}, {"classes": [0, 1]}),
        "the first rows": HEALTHY | {"label": np.where(ROW < 60, np.resize([0, 1, 1], N), -1)},
        "the last rows": HEALTHY | {"label": np.where(ROW >= 340, np.resize([0, 1, 1], N), -1)},
        "in order": HEALTHY | {"label": np.sort(np.maximum(LABEL, 0))[::-1]},
        "none": (WITHOUT, {"classes": [0, 1]}),
        "none known": (HEALTHY | {"label": np.full(N, -1)}, {"classes": [0, 1]}),
        "-1 and 1": (HEALTHY | {"label": np.where(LABEL == 1, 1, -1)}, {"classes": [0, 1]}),
        "-1, 0 and 1": (HEALTHY | {"label": np.where(ROW, LABEL, 0)}, {"classes": [0, 1]}),
        "of those that score high": HEALTHY | {"label": CHOSEN},
        "chosen, with weights": HEALTHY | {"label": CHOSEN, "weight": np.linspace(1, 2, N)},
        "a column 'labels' beside": HEALTHY | {"labels": LABEL},
        "a column 'target' of other words": WITHOUT | {"target": ["u", "w"] * (N // 2)},
    },
    "columns": {
        "groups": HEALTHY | {"one": ["x"] * N, "code": ROW, "sex": np.resize(["f", "m"], N)},
        **names("prob_x", "P__x__1", "p_x_1", "pred_x", "y_pred", "logit_x", "sample_weight"),
        **names("Domain", "place", "price", "year"),
        "ten rows twice": {c: np.r_[v, v[:10]] for c, v in HEALTHY.items()},
        "a hundred rows twice": {c: np.r_[v, v[:100]] for c, v in HEALTHY.items()},
        "votes twice": {f"y__{m}": np.resize([k, 1, 0], 100) for k, m in enumerate("ab")},
        "a class and lists": {"p__a__cat": A, "v": [[1.0]] * N},
        "what looks like predictions": HEALTHY | {
            "svc score": A, "net_no": 1 - B, "net_yes": B, "flag": LABEL >= 0, "age": ROW * 1.0,
        },
        "a name that is taken": HEALTHY | {"a": C},
        "a name with a comma": HEALTHY | {"u,v": C},
        "two writings of a class": {
            "y__a": ["Cat", "dog", "cat ", "Dog"] * 5, "y__b": ["Cat", "dog", "dog", "Cat"] * 5,
        },
        "two writings of yes": {
            "y__a": ["Yes", "no", "yes ", "No"] * 5, "y__b": ["Yes", "no", "no", "Yes"] * 5,
        },
        "numbers that are no classes": {f"y__{m}": np.linspace(0, 1, 60) for m in "ab"},
    },
}  # fmt: skip
"""Tables, and options, by what is found."""


def votes(*rows: tuple[int, str, int]) -> Table:
    """One vote per row, in a dictionary."""
    return dict(zip(("item", "annotator", "label"), zip(*rows, strict=True), strict=True))


MANY = [(i, a, (i + (a == "odd")) % 2) for i in range(8) for a in ("ann", "bob", "odd")]
LONE = [(100, "lone", 0), (101, "lone", 1)]
TWICE = votes((1, "a", 0), (1, "a", 1), (2, "a", 1), (1, "a", 0))
VOTES: dict[str, dict[str, Any]] = {
    "annotators": {"votes": votes(*MANY, *((i, "same", 1) for i in range(8)), *LONE),
                   "classes": [0, 1, 2]},
    "agreement": {"votes": votes((1, "a", 0), (1, "b", 0), (2, "a", 1), (2, "b", 1))},
    "no overlap": {"votes": votes((1, "a", 0), (2, "b", 1))},
    "domains": {"source": {"item": [1, 2, 3], "domain": ["u", "v", "w"]},
                "votes": votes((1, "a", 0), (1, "b", 1), (1, "c", 1), (2, "a", 0))},
    "a vote twice": {"votes": TWICE},
    "a vote twice, kept": {"votes": TWICE, "duplicates": "keep"},
    "a vote twice, the last": {"votes": TWICE, "duplicates": "last"},
    "items of two files that do not meet": {
        "source": {"item": [1], "y__net": [0]}, "votes": votes((2, "a", 0), (2, "b", 1)),
    },
}  # fmt: skip

FILES: dict[str, str | bytes] = {
    "no predictions": "label,prob_a,id\n1,.25,7\n0,.5,8\n",
    "a label that is no class": "label,p__a__0,p__a__1,weights\nspam,.5,.5,2\n",
    "damaged": b"PAR1 and then nothing",
    "no UTF-8": b"label\xff\n",
    "an empty line": b"\n",
    "one name twice": b"a,a\n1,2\n",
}


def told(diagnosis: Diagnosis) -> str:
    """Every finding in a line; what columns are, of files in which something is wrong."""
    lines = [f"{f.severity}: {f.where}: {f.what} -> {f.mend}" for f in diagnosis.findings]
    if not diagnosis.ok:
        lines += [f"{name}: {role}" for name, role in diagnosis.roles.items()]
    # What Arrow calls its types differs from version to version.
    return "\n".join(f"  {re.sub('list<.*?>', 'list<...>', line)}" for line in lines)


@pytest.mark.parametrize("about", FOUND)
def test_what_is_found(about: str) -> None:
    lines = []
    for name, case in FOUND[about].items():
        table, options = case if isinstance(case, tuple) else (case, {})
        lines.append(f"{name}\n{told(diagnose(pd.DataFrame(table), **options))}")
    check(f"data/found-{about}", "\n".join(lines))


def test_what_is_found_among_votes() -> None:
    lines = []
    for name, given in VOTES.items():
        diagnosis = diagnose(**given)
        assert all(len(line) <= 80 for line in diagnosis.summary(80).splitlines())
        lines.append(f"{name}: {diagnosis.counts}\n{told(diagnosis)}")
    check("data/found-votes", "\n".join(lines))


def test_what_is_found_in_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error is a finding, and the rest is shown."""
    monkeypatch.chdir(tmp_path)
    lines = []
    for name, content in FILES.items():
        Path("a.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
        diagnosis = diagnose("a.csv")
        assert "error" in diagnosis.summary()
        lines.append(f"{name}\n{told(diagnosis)}")
    p = np.stack([A, np.full(N, 0.5)], axis=1)
    np.savez("a.npz", probabilities=p, labels=LABEL, groups__one=np.full(N, "x"))
    lines.append(f"arrays\n{told(diagnose('a.npz'))}\n{diagnose('a.npz').roles}")
    check("data/found-files", "\n".join(lines))


@pytest.mark.parametrize("name", ["labels", "target", "y_true", "ground_truth", "Label", "class"])
def test_columns_that_may_hold_the_labels(name: str) -> None:
    reading = diagnose(pd.DataFrame({name: LABEL} | WITHOUT)).reading
    assert reading[0].startswith(f"labels: column '{name}'")


def test_the_option_that_is_proposed_works() -> None:
    table = pd.DataFrame(HEALTHY | {"net_no": 1 - B, "net_yes": B})
    assert "net" in fl.read_predictions(table, models={"net": ["net_no", "net_yes"]}).models


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


def test_no_such_file_and_wrong_options_are_refused(tmp_path):
    with pytest.raises(fl.InputError, match="no such file"):
        diagnose(tmp_path / "none.csv")
    with pytest.raises(fl.UsageError, match="`classes` must be a list"):
        diagnose(pa.table({"p__a__1": [0.5]}), classes="ab")


def test_to_dict_is_json(healthy):
    diagnosis = diagnose(pd.DataFrame(healthy | {"p__z__1": np.ones(N), "s__v": np.arange(N)}))
    said = json.loads(json.dumps(diagnosis.to_dict(), allow_nan=False))
    assert set(said) == {
        *("name", "ok", "counts", "roles", "class_balance", "findings", "reading", "command"),
        *("positive", "evidence", "fewlabels"),
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
        "  v                 33.5%  66.5%",
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


def test_scores_rise_with_the_positive_class_wherever_it_stands() -> None:
    """The file shows the positive class first; AUC is of scores that are larger for it."""
    truth = np.where(np.arange(N) % 3, "ok", "Spam")
    score = (truth == "Spam") + np.random.default_rng(5).normal(size=N)
    for label in (truth, np.where(np.arange(N) < 50, truth, "")):
        found = diagnose(pd.DataFrame({"label": label, "s__m": 20 * score}))
        assert not [f.what for f in found.findings if "wrong way" in f.what]
    turned = diagnose(pd.DataFrame({"label": truth, "s__m": -20 * score}))
    assert [f.what for f in turned.findings if "wrong way round" in f.what]


def test_what_is_found_of_many_columns_is_one_line(healthy):
    many = {f"prob_{k}": np.random.default_rng(k).random(N).round(3) for k in range(360)}
    diagnosis = diagnose(pd.DataFrame(healthy | many))
    (found,) = (f for f in diagnosis.findings if "looks like" in f.what or "look like" in f.what)
    assert found.where == "columns 'prob_0', 'prob_1', 'prob_2' and 357 more"
    assert len(diagnosis.summary().splitlines()) < 60
