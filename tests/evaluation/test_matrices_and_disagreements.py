"""Judges against people in one look: confusion matrices, and where the two differ."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

import fewlabels as fl
from fewlabels.cli import main
from fewlabels.errors import UsageError

CLASSES = ("a", "b", "c")


def world(n: int = 300, labeled: int = 120, k: int = 3, seed: int = 0) -> dict[str, Any]:
    """Two classifiers that are right on 80 and 60% of the items."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n)
    votes = np.stack(
        [np.where(rng.random(n) < s, truth, rng.integers(k, size=n)) for s in (0.7, 0.4)], axis=1
    )
    labels = np.where(np.arange(n) < labeled, truth, -1)
    return {"votes": votes, "labels": labels, "classes": CLASSES[:k], "models": ["good", "poor"]}


def matrix(found: Any, name: str, model: str, k: int = 3) -> Any:
    """One number of every cell, (K labels, K predicted)."""
    values = [cell._asdict()[name] for cell in found.rows if cell.model == model]
    return np.array(values, dtype=float).reshape(k, k)


@pytest.mark.parametrize("estimand", ["population", "sample"])
def test_all_labels_known_the_matrix_is_that_of_scikit_learn(estimand: Any) -> None:
    items = world(labeled=300)
    estimates = fl.estimate(fl.Predictions(**items), "labeled", estimand=estimand)
    found: Any = estimates.confusion()
    for j, model in enumerate(items["models"]):
        wanted = confusion_matrix(items["labels"], items["votes"][:, j])
        assert (matrix(found, "labeled", model) == wanted).all()
        np.testing.assert_allclose(matrix(found, "value", model), wanted / 300, atol=1e-12)
        rows, columns = wanted.sum(axis=1, keepdims=True), wanted.sum(axis=0)
        np.testing.assert_allclose(matrix(found, "of_label", model), wanted / rows, atol=1e-12)
        shares = matrix(found, "of_predicted", model)
        np.testing.assert_allclose(shares, wanted / columns, atol=1e-12)
        low, high = matrix(found, "low", model), matrix(found, "high", model)
        width = 0 if estimand == "sample" else 1e-3
        assert (high - low >= width).all()
        assert (low <= wanted / 300).all()
        assert (high >= wanted / 300).all()


@pytest.mark.parametrize("method", ["auto", "labeled", "dawid-skene", "bee"])
def test_cells_are_a_distribution_with_intervals(method: str) -> None:
    """Whatever the guard moves; their diagonal is the accuracy, of labels alone exactly."""
    estimates = fl.estimate(fl.Predictions(**world(labeled=60)), method, "accuracy")
    found: Any = estimates.confusion()
    assert found.to_dict()["counted"] == ("labeled" if method == "labeled" else "all")
    for model in ("good", "poor"):
        value = matrix(found, "value", model)
        assert value.sum() == pytest.approx(1, abs=1e-12)
        assert matrix(found, "of_label", model).sum(axis=1) == pytest.approx(1, abs=1e-12)
        close = 1e-9 if method == "labeled" else 0.03
        wanted = estimates.get(model, "accuracy").value
        assert np.trace(value) == pytest.approx(wanted, abs=close)
        for name in ("of_label", "of_predicted"):
            low, high = matrix(found, f"{name}_low", model), matrix(found, f"{name}_high", model)
            assert (low <= matrix(found, name, model)).all()
            assert (matrix(found, name, model) <= high).all()
    assert found.to_frame("pyarrow").num_rows == 18
    assert "Found is the share" in " ".join(found.summary(80).split())


@pytest.mark.slow
def test_matrices_of_groups_and_in_parts() -> None:
    items, half = world(), np.repeat(["x", "y"], 150)
    estimates = fl.estimate(fl.Predictions(**items, groups={"half": half}), "labeled", by="half")
    found: Any = estimates.confusion("half=x")
    wanted = confusion_matrix(items["labels"][:120], items["votes"][:120, 0])
    assert (matrix(found, "labeled", "good") == wanted).all()
    with pytest.raises(UsageError, match="unknown group 'half=z'"):
        estimates.confusion("half=z")
    many = world(n=16_000, labeled=800)
    of_parts: Any = fl.estimate(fl.Predictions(**many), metrics="accuracy").confusion()
    truth = 0.7 + 0.3 / 3
    assert np.trace(matrix(of_parts, "value", "good")) == pytest.approx(truth, abs=0.05)


@pytest.mark.parametrize(
    ("arguments", "method", "message"),
    [
        ({"votes": np.arange(80).reshape(40, 2) % 40, "labels": np.arange(40)}, "labeled",
         "a confusion matrix of 40 classes cannot be read"),
        ({"scores": np.random.default_rng(0).normal(size=(40, 1)), "labels": np.arange(40) % 2},
         "labeled", "needs predicted classes, and there are scores alone"),
        ({"probabilities": np.random.default_rng(0).random((40, 1)), "labels": np.arange(40) % 2},
         "autoeval", "estimates one mean at a time and has no confusion matrix"),
    ],
)  # fmt: skip
def test_matrices_that_are_refused(arguments: Any, method: str, message: str) -> None:
    metrics = "roc_auc" if "scores" in arguments else "accuracy"
    estimates = fl.estimate(fl.Predictions(**arguments), method, metrics)
    with pytest.raises(UsageError, match=message):
        estimates.confusion()


def table(path: Path, n: int = 200, labeled: int = 100) -> tuple[Path, list[int]]:
    """Three sure classifiers, texts, and some labels that are wrong, by row from 1."""
    rng = np.random.default_rng(4)
    truth = rng.integers(2, size=n)
    logits = 6 * (truth[:, None] - 0.5) + rng.normal(size=(n, 3)) + rng.normal(size=(n, 1))
    p = 1 / (1 + np.exp(-logits))
    wrong = sorted(rng.choice(labeled, 8, replace=False).tolist())
    p[150] = [0.95, 0.02, 0.6]  # no label, and two sure classifiers differ
    p[151] = [0.55, 0.45, 0.5]  # none is sure
    labels = [("yes" if t else "no") if i < labeled else "" for i, t in enumerate(truth.tolist())]
    for i in wrong:
        labels[i] = "no" if truth[i] else "yes"
    columns = {
        "item": [f"q{i}" for i in range(n)],
        "text": [f"What is {i}?" for i in range(n)],
        "label": labels,
    }
    columns |= {f"p__m{j}__yes": np.round(p[:, j], 5).tolist() for j in range(3)}
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])
    return path, [i + 1 for i in wrong]


@pytest.mark.parametrize("command", ["estimate", "score"])
def test_disagreements_begin_with_suspect_labels_and_have_the_texts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    path, wrong = table(tmp_path / "judged.csv")
    out, page, record = (tmp_path / name for name in ("d.csv", "p.html", "r.json"))
    arguments = [command, str(path), "--disagreements", str(out), "--confusion"]
    assert main([*arguments, "--html", str(page), "--json", str(record)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Confusion matrices Each row is a label" in said
    assert f"Disagreements: {out}" in said
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    suspect = [int(row["row"]) for row in rows if row["suspect"]]
    assert len({*suspect} & {*wrong}) >= 7
    assert [bool(row["suspect"]) for row in rows] == sorted(
        [bool(row["suspect"]) for row in rows], reverse=True
    )
    rest = [float(row["strength"]) for row in rows[len(suspect) :]]
    assert rest == sorted(rest, reverse=True)
    by_row = {int(row["row"]): row for row in rows}
    assert by_row[151]["differ"] == "m0, m1"
    assert float(by_row[151]["strength"]) == pytest.approx(0.95 * 0.98, abs=1e-4)
    assert by_row[151]["text"] == "What is 150?"
    assert (by_row[151]["y__m0"], by_row[151]["y__m1"]) == ("yes", "no")
    assert 152 not in by_row
    found = json.loads(record.read_text())
    found = found["criteria"][0] if command == "score" else found
    cells = found["confusion"]["cells"]
    assert sum(cell["labeled"] for cell in cells) == 3 * 100
    assert page.read_text().count('title="label ') == 3 * 4
    # In Python the same.
    result = fl.estimate(path) if command == "estimate" else fl.score(path)
    assert result.disagreements().to_dict()["columns"]["row"] == [int(row["row"]) for row in rows]


def test_votes_are_as_sure_as_they_are_right() -> None:
    """By the labels alone: share right of a class, with one prior observation."""
    votes = np.array([[1], [1], [1], [1], [0], [0]])
    labels = np.array([1, 1, 1, 0, 0, 1])
    found: Any = fl.estimate(fl.Predictions(votes=votes, labels=labels), "labeled").disagreements()
    assert found.columns["row"] == [4, 6]
    prior = 4 / 6
    wanted = [(3 + prior) / 5, (1 + prior) / 3]
    assert found.columns["strength"] == pytest.approx(wanted, abs=1e-4)
    assert found.with_label == 2


def test_several_criteria_are_looked_at_one_by_one(tmp_path: Path) -> None:
    def said(name: str, value: bool, kind: str) -> dict[str, Any]:
        source = {"source_type": kind, "source_id": kind.lower()}
        return {"assessment_name": name, "source": source, "feedback": {"value": value}}

    with (tmp_path / "log.jsonl").open("w") as file:
        for i in range(80):
            kinds = ["LLM_JUDGE", "HUMAN"] if i < 30 else ["LLM_JUDGE"]
            each = [said(c, (i + k) % 3 > 0, kind) for k, c in enumerate("ab") for kind in kinds]
            file.write(json.dumps({"info": {"trace_id": f"{i}", "assessments": each}}) + "\n")
    scores = fl.score(tmp_path / "log.jsonl")
    with pytest.raises(UsageError, match="there are several criteria \\(a, b\\)"):
        scores.confusion()
    assert scores.confusion("b").to_dict()["n_labeled"] == 30
    assert scores.disagreements("a").to_dict()["columns"]["row"] == []


@pytest.mark.slow
def test_intervals_of_grades_and_cells_cover() -> None:
    """Populations whose values are known: between 86 and 99% of intervals of level .95."""
    metrics = ["mean_absolute_error", "bias", "spearman", "concordance", "icc2"]

    def drawn(rng: Any, n: int) -> tuple[Any, Any]:
        z = rng.normal(size=n)
        cuts = [-1.2, -0.4, 0.4, 1.2]
        return np.digitize(z, cuts), np.digitize(z + 0.3 + 0.5 * rng.normal(size=n), cuts)

    truth, judge = drawn(np.random.default_rng(99), 200_000)
    everything = fl.Predictions(votes=judge[:, None], labels=truth, classes=list("12345"))
    exact = fl.estimate(everything, "labeled", metrics, confidence_level=None)
    shares = confusion_matrix(truth, judge) / len(truth)
    hits, cells = [], []
    for seed in range(40):
        truth, judge = drawn(np.random.default_rng(seed), 300)
        labels = np.where(np.arange(300) < 50, truth, -1)
        items = fl.Predictions(votes=judge[:, None], labels=labels, classes=list("12345"))
        estimates = fl.estimate(items, "labeled", metrics, random_state=seed)
        hits += [
            row.low <= value.value <= row.high
            for row, value in zip(estimates.rows, exact.rows, strict=True)
        ]
        found: Any = estimates.confusion()
        low, high = (matrix(found, name, items.models[0], 5) for name in ("low", "high"))
        cells += ((low <= shares) & (shares <= high))[shares > 0.02].tolist()
    assert 0.86 < np.mean(hits) < 0.99
    assert 0.86 < np.mean(cells) < 0.99
