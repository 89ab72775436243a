"""assess(): every classifier, metric and group, with status and warnings."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.annotations import METRICS, assess, evaluate
from fewlabels.errors import InputError, Status, UsageError


def predictions(n=120, seed=0, most=4, **more):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(3), n)
    p = np.stack([q, q**2 / (q**2).sum(axis=1, keepdims=True)], axis=1)
    y = rng.multinomial(rng.integers(0, most + 1, n), q)
    given = {"histogram": y, "models": ["a", "b"], "classes": ["x", "y", "z"]} | more
    return fl.Predictions(p, **given)


def test_rows_are_evaluate():
    site = np.array(["n", "s"])[np.arange(120) % 2]
    p = predictions(groups={"site": site})
    found = assess(p, by="site", statistics=["unanimity_3"])
    names = [*METRICS, *(f"{m}_unanimity_3" for m in ("L", "CL", "CL_plugin", "CE", "EL"))]
    assert [(r.group, r.model, r.metric) for r in found.rows] == [
        (g, m, name) for g in (None, "site=n", "site=s") for m in "ab" for name in names
    ]
    for group, rows in ((None, site != ""), ("site=s", site == "s")):
        for j, model in enumerate("ab"):
            expected = evaluate(p.histogram[rows], p.probabilities[rows, j], confidence_level=0.95)
            for name in METRICS:
                row = found.get(model, name, group)
                assert row.value == pytest.approx(expected[name], rel=1e-12, abs=1e-14)
                ends = expected["intervals"][name]
                assert (row.low, row.high) == pytest.approx(ends, rel=1e-9, abs=1e-12)
                assert row.status is Status.OK
    phi = fl.annotations.unanimity(3)
    expected = fl.annotations.evaluate_statistic(
        phi, p.histogram, phi.expected(p.probabilities[:, 0])
    )
    assert found.get("a", "L_unanimity_3").value == pytest.approx(expected["L"])


def test_weights_count():
    w = np.random.default_rng(1).random(120)
    p = predictions(weight=w)
    expected = evaluate(p.histogram, p.probabilities[:, 0], weight=w)
    found = assess(p, confidence_level=None)
    assert found.get("a", "CL").value == pytest.approx(expected["CL"])
    assert math.isnan(found.get("a", "CL").low)
    assert math.isnan(found.get("a", "CL").confidence_level)


def test_items_of_weight_zero_are_left_out():
    site = np.array(["n", "s"])[np.arange(120) % 2]
    p = predictions(weight=(site == "n") * 1.0, groups={"site": site})
    found = assess(p, by="site", confidence_level=None)
    expected = evaluate(p.histogram[site == "n"], p.probabilities[site == "n", 0])
    for group in (None, "site=n"):
        assert found.get("a", "CL", group).value == pytest.approx(expected["CL"])
    assert found.get("a", "CL", "site=s").status is Status.UNDEFINED


def test_to_frame():
    frame = assess(predictions(), confidence_level=None).to_frame("pyarrow")
    assert frame.num_rows == 2 * len(METRICS)
    assert frame.column("status").to_pylist() == ["ok"] * frame.num_rows


def test_a_known_label_is_one_label():
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(3), 60)
    y = np.zeros((60, 3))
    y[:30] = rng.multinomial(3, q[:30])
    labels = np.where(np.arange(60) < 45, rng.integers(0, 3, 60), -1)
    p = fl.Predictions(q[:, None], labels, histogram=y)
    counted = y.copy()
    counted[np.arange(30, 45), labels[30:45]] = 1
    found = assess(p)
    assert found.n_annotated == 45
    assert found.n_labels == 105
    assert found.labels_per_item == {1: 15, 3: 30}
    assert found.get("model0", "L").value == pytest.approx(evaluate(counted, q)["L"])
    only = assess(fl.Predictions(q[:, None], labels), confidence_level=None)
    assert only.get("model0", "EL").status is Status.UNDEFINED
    assert only.get("model0", "L").status is Status.OK
    assert any("ask a second annotator" in text for text in only.warnings)
    assert only.to_dict()["estimates"][2]["value"] is None


def test_concentration_moves_disagreement_alone():
    p = predictions()
    plain, sure = (
        assess(p, confidence_level=None),
        assess(p, concentration={"a": np.full(120, 0.5)}, confidence_level=None),
    )
    assert sure.get("a", "L_disagreement").value != plain.get("a", "L_disagreement").value
    assert sure.get("b", "L_disagreement").value == plain.get("b", "L_disagreement").value
    assert sure.get("a", "EL").value == plain.get("a", "EL").value
    pair = (1 - (p.probabilities[:, 0] ** 2).sum(axis=1)) / 3
    expected = evaluate(p.histogram, p.probabilities[:, 0], disagreement=pair)
    assert sure.get("a", "L_disagreement").value == pytest.approx(expected["L_disagreement"])
    columns = assess(p, concentration=np.full((120, 2), [0.5, np.inf]), confidence_level=None)
    assert [r.value for r in columns.rows] == pytest.approx([r.value for r in sure.rows])


def test_few_labels_and_empty_groups():
    site = np.array(["n"] * 100 + ["s"] * 12 + ["t"] * 8)
    y = predictions().histogram.copy()
    y[112:] = 0
    found = assess(predictions(histogram=y, groups={"site": site}), by="site")
    assert found.get("a", "L", "site=n").status is Status.OK
    assert found.get("a", "L", "site=s").status is Status.FEW_LABELS
    assert found.get("a", "L", "site=t").status is Status.UNDEFINED
    assert any("no item with a label" in text and "site=t" in text for text in found.warnings)
    assert any("only" in text and "site=s" in text for text in found.warnings)


def test_missing_predictions():
    full = predictions()
    p = np.array(full.probabilities)
    p[:50, 0] = np.nan
    p[:, 1] = np.nan
    found = assess(
        fl.Predictions(p, histogram=full.histogram, models=["a", "b"]), confidence_level=None
    )
    assert found.models == ("a",)
    assert any("no probabilities" in text and "(b)" in text for text in found.warnings)
    expected = evaluate(full.histogram[50:], p[50:, 0])
    assert found.get("a", "EL").value == pytest.approx(expected["EL"])


def test_workers_and_progress():
    calls = []
    one = assess(predictions(), workers=1, progress=lambda done, of: calls.append((done, of)))
    assert calls == [(1, 2), (2, 2)]
    assert assess(predictions(), workers=3).to_dict() == one.to_dict()


def test_bad_arguments():
    p = predictions()
    votes = fl.Predictions(votes=[[0], [1]], labels=[0, 1])
    bare = predictions(histogram=None)
    for error, message, call in (
        (InputError, "no classifier has probabilities", lambda: assess(votes)),
        (InputError, "no item has a label", lambda: assess(bare)),
        (UsageError, "`source` must be a path or a frame", lambda: assess(1)),
        (UsageError, "unknown model 'c'", lambda: assess(p, concentration={"c": 1.0})),
        (InputError, "a column per", lambda: assess(p, concentration=np.ones((120, 3)))),
        (UsageError, "unknown statistic", lambda: assess(p, statistics="unanimous")),
        (UsageError, "twice", lambda: assess(p, statistics=["unanimity_2"] * 2)),
        (UsageError, "leave it out", lambda: assess(p, statistics=["disagreement"])),
        (UsageError, "no estimate", lambda: assess(p).get("a", "ece")),
        (UsageError, "unknown group", lambda: assess(p, by="site")),
    ):
        with pytest.raises(error, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)
