"""Groups by the thousand: measured in one pass as each would be by itself, shown in part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fewlabels as fl
from fewlabels.cli import input as cli_settings
from fewlabels.cli import main
from fewlabels.evaluation import evaluator, groups
from fewlabels.streaming import scan

METRICS = ["accuracy", "ece", "ece_quantile", "roc_auc", "average_precision", "brier", "f1"]


def world(
    n_groups: int, each: int, classes: int = 2, labels: int = 200, missing: bool = False
) -> fl.Predictions:
    """Two classifiers with ties in their scores, on items of groups of unequal size."""
    rng = np.random.default_rng(3)
    n = n_groups * each
    truth = rng.integers(classes, size=n)
    z = rng.normal(size=(n, 2, classes))
    z[np.arange(n), :, truth] += np.array([1.0, 2.0])
    p = np.exp(np.round(z, 1))
    p /= p.sum(axis=2, keepdims=True)
    if missing:
        p[rng.random(n) < 0.3, 0] = np.nan
    site = np.minimum(rng.geometric(2 / n_groups, size=n), n_groups - 1)
    site[:n_groups] = np.arange(n_groups)
    known = np.where(rng.permutation(n) < labels, truth, -1)
    return fl.Predictions(p, known, groups={"site": site})


def by_group(estimates: Any) -> dict[tuple[str, str, str], Any]:
    """Rows of groups."""
    return {(r.model, r.metric, r.group): r for r in estimates.rows if r.group is not None}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("classes", "missing"),
    [(2, True), *(pytest.param(k, False, marks=pytest.mark.slow) for k in (2, 3))],
)
def test_as_measured_one_by_one(
    monkeypatch: pytest.MonkeyPatch, classes: int, missing: bool
) -> None:
    predictions = world(55, 30, classes, missing=missing)
    metrics = METRICS[::3] if missing else METRICS
    together = by_group(fl.estimate(predictions, metrics=metrics, by="site"))
    monkeypatch.setattr(groups, "MAX_GROUPS", 100)
    alone = by_group(fl.estimate(predictions, metrics=metrics, by="site"))
    assert together.keys() == alone.keys()
    for metric in metrics:
        own = [key for key in alone if key[1] == metric]
        # A class may be absent from a group, whoever measures it.
        own = [key for key in own if not np.isnan([alone[key].value, together[key].value]).any()]
        assert len(own) > 80
        a, b = (
            np.array([[found[key].value, found[key].low, found[key].high] for key in own])
            for found in (alone, together)
        )
        width = a[:, 2] - a[:, 1]
        # Of a single item average precision is the same in all draws, to rounding.
        gap = (b - a)[width > 1e-9] / width[width > 1e-9, None]
        # 50 parameter draws for 200, and 200 draws for 400: by quantiles of normal draws the ends
        # have a standard error of .06 and .04 of the width, so over groups their mean has .01.
        # A mean of 50 draws, a quarter of the width in spread, is off by .03 of it.
        assert np.abs(gap[:, 0]).max() < 0.1
        assert np.abs(gap[:, 1:].mean(axis=0)).max() < 0.05
        assert np.sqrt((gap[:, 1:] ** 2).mean()) < 0.12
    assert {r.status for r in together.values()} == {r.status for r in alone.values()}


def test_neither_order_nor_workers_show() -> None:
    predictions = world(55, 10)
    order = np.random.default_rng(0).permutation(predictions.n_items)
    once = by_group(fl.estimate(predictions, by="site", workers=1))
    again = by_group(fl.estimate(predictions.take(order), by="site", workers=2))
    assert once.keys() == again.keys()
    for key, row in once.items():
        np.testing.assert_allclose(again[key][3:6], row[3:6], atol=1e-9)


@pytest.mark.slow
def test_a_group_of_more_items_than_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    predictions = world(60, 20)
    expected = by_group(fl.estimate(predictions, by="site"))
    monkeypatch.setattr(evaluator, "_GROUP_CELLS", 200 * 2 * 40)
    found = by_group(fl.estimate(predictions, by="site"))
    assert found.keys() == expected.keys()
    gap = [found[key].value - row.value for key, row in expected.items()]
    assert np.nanmax(np.abs(gap)) < 0.02


def test_what_does_not_go_with_many_groups() -> None:
    predictions = world(60, 12)
    for said in ({"estimand": "sample"}, {"method": "labeled"}, {"shift": "label"}):
        with pytest.raises(fl.UsageError, match=r"more than 50 groups .*in one pass"):
            fl.estimate(predictions, by="site", **said)
    names = fl.Predictions(np.full((80, 1, 2), 0.5), groups={"site": np.arange(80)})
    with pytest.raises(fl.UsageError, match=r"80 values, more than 50, and 1 items of each"):
        fl.estimate(names, metrics="accuracy", by="site")
    one_each = fl.Predictions(np.full((10_001, 1, 2), 0.5), groups={"site": np.arange(10_001)})
    with pytest.raises(fl.UsageError, match="'site' has 10,001 values, more than 10,000"):
        fl.estimate(one_each, by="site")


def write(path: Path, predictions: fl.Predictions) -> None:
    """The predictions as a file."""
    p = predictions.probabilities
    assert p is not None
    label = pa.array(predictions.labels, mask=~predictions.labeled)
    columns = {f"p__{m}__1": p[:, j, 1] for j, m in enumerate(predictions.models)}
    site = predictions.groups["site"]
    pq.write_table(pa.table({"label": label, "site": pa.array(site.tolist())} | columns), path)


@pytest.mark.slow
def test_a_page_shows_the_largest_and_the_worst_and_json_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "a.parquet", world(70, 20))
    out = tmp_path / "a.json"
    assert main(["estimate", str(tmp_path / "a.parquet"), "--by", "site", "--json", str(out)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "site has 70 groups: shown are the 10 largest and the 10 where accuracy of" in text
    whole = json.loads(out.read_text())
    assert len({row["group"] for row in whole["estimates"]}) == 71
    assert 10 <= sum(f" site={g} (" in f" {text}" for g in range(70)) <= 20
    values = {
        row["group"]: row["high"] for row in whole["estimates"]
        if row["metric"] == "accuracy" and row["model"] == whole["models"][1] and row["group"]
    }  # fmt: skip
    worst = min(values, key=lambda group: values[group] if values[group] is not None else 2)
    assert f"{worst} (" in text


@pytest.mark.slow
def test_a_file_in_parts_is_read_whole_for_many_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "a.parquet", world(55, 10))
    monkeypatch.setattr(cli_settings, "STREAMED_ROWS", 100)
    tried = []
    refuse = scan.Scan._refuse_many
    monkeypatch.setattr(
        scan.Scan, "_refuse_many", lambda self, c, n=0: (tried.append(c), refuse(self, c, n))
    )
    said = ["estimate", str(tmp_path / "a.parquet"), "--by", "site", "--json", "-"]
    assert main(said) == 0
    assert tried
    assert len(json.loads(capsys.readouterr().out)["groups"]) == 56
    assert main([*said, "--engine", "threads"]) == 2
    error = capsys.readouterr().err
    assert "more than 50 values" in error
    assert "--engine memory" in error
