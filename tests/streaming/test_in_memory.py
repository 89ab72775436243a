"""Items in memory, estimated from in parts: as their file, and single items afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm
from stream_cases import distance, write

import fewlabels as fl
from fewlabels.evaluation import draws
from fewlabels.evaluation.differences import errors_together
from fewlabels.models import MajorityVote, TemperedEnsemble
from fewlabels.streaming import in_memory, scan, sketch
from worlds import items_table

METRICS = ["accuracy", "ece", "auprc", "ece_quantile"]


class Own(TemperedEnsemble):
    """A label model that nobody has registered."""


@pytest.fixture(autouse=True)
def _few_are_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWLABELS_CHECKPOINTS", str(tmp_path / "checkpoints"))
    monkeypatch.setattr(draws, "ALL_DRAWS_ITEMS", 1000)
    monkeypatch.setattr(in_memory, "PART_ROWS", 700)


def votes(n: int = 2000) -> pa.Table:
    rng = np.random.default_rng(2)
    truth = rng.random(n) < 0.4
    said = (truth[:, None] ^ (rng.random((n, 4)) < [0.1, 0.2, 0.25, 0.3])).astype(int)
    said[rng.random(said.shape) < 0.1] = -1
    columns: dict[str, Any] = {"label": pa.array(truth.astype(int), mask=np.arange(n) >= 30)}
    columns |= {f"y__v{j}": said[:, j] for j in range(4)}
    return pa.table(columns | {"place": np.array(["north", "south"])[rng.integers(2, size=n)]})


def weighted() -> pa.Table:
    table = items_table(1200, known=80)
    p = table["p__m0__1"].to_numpy()
    rng = np.random.default_rng(3)
    return (
        table.append_column("s__m2", pa.array(np.log(p) * 3 + rng.normal(0, 1, 1200)))
        .set_column(2, "p__m0__1", pa.array(p, mask=rng.random(1200) < 0.3))
        .drop_columns(["p__m0__0"])
        .append_column("weight", pa.array(rng.integers(0, 4, 1200)))
    )


def annotated() -> pa.Table:
    table = items_table(1200, known=0).drop_columns(["label"])
    counts = np.random.default_rng(7).binomial(4, table["p__m0__1"].to_numpy())
    counts = np.where((np.arange(1200) < 300)[:, None], np.c_[4 - counts, counts], 0)
    return table.append_column("h__0", pa.array(counts[:, 0])).append_column(
        "h__1", pa.array(counts[:, 1])
    )


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("table", "method", "metrics"),
    [
        pytest.param(items_table(1200, k=3), "auto", METRICS, marks=pytest.mark.slow),
        (items_table(1200), "bayesian-calibration", ["accuracy", "auc"]),
        (weighted(), "auto", ["accuracy", "auc"]),
        (annotated(), "tempered-ensemble", ["accuracy", "brier"]),
        (votes(), "dawid-skene", ["error_rate", "cohen_kappa"]),
        (votes(), "auto", None),
    ],
    ids=["three classes", "per model", "weights and gaps", "annotators", "patterns", "votes"],
)
def test_as_a_file(table: pa.Table, method: str, metrics: Any, tmp_path: Path) -> None:
    there = fl.estimate_files(write(table, tmp_path / "a", 3), method, metrics, by="place")
    here = fl.estimate(fl.read_predictions(table), method, metrics, by="place")
    assert distance(here, there) < 1e-9
    assert here.groups == there.groups
    assert (here.n_items, here.n_labeled, here.n_annotated, here.against) == (
        there.n_items, there.n_labeled, there.n_annotated, there.against
    )  # fmt: skip
    run, of_file = here.diagnostics["stream"], there.diagnostics["stream"]
    assert run["engine"] == "memory"
    assert run["parts"] == -(-len(table) // 700)
    assert run["from"] == of_file["from"]
    assert run.get("draws_per_row") == of_file.get("draws_per_row")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("n", "k", "few"), [(299, 2, False), (300, 2, True), (360, 40, False), (375, 40, True)]
)
def test_one_rule_for_memory_and_files(
    n: int, k: int, few: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a bound on, a basis of draws; of more than 32 classes the bound is higher."""
    monkeypatch.setattr(draws, "ALL_DRAWS_ITEMS", 300)
    table, method = items_table(n, k=k, models=1), "auto" if k == 2 else "tempered-ensemble"
    here = fl.estimate(fl.read_predictions(table), method, "accuracy")
    there = fl.estimate_files(write(table, tmp_path / "a", 2), method, "accuracy")
    assert ("stream" in here.diagnostics) == few
    assert (there.diagnostics["stream"]["draws_per_row"] == draws.BASIS_DRAWS) == few


def test_order_and_workers_do_not_show() -> None:
    given = fl.read_predictions(items_table(1500))
    turned = given.take(np.random.default_rng(1).permutation(1500))
    one, three = (fl.estimate(given, metrics=METRICS, workers=w) for w in (1, 3))
    assert distance(one, three) == 0
    assert distance(one, fl.estimate(turned, metrics=METRICS)) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "majority-vote"])
def test_single_items_afterwards(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = fl.read_predictions(items_table(1500) if method == "auto" else votes(1500))
    here = fl.estimate(given, method, by="place")
    assert here.predictions is given
    p = here.posterior.marginals()
    assert p.shape == (1500, 2)
    table = here.labels_frame("pyarrow")
    assert table.num_rows == 1500
    assert table["known"].to_numpy().sum() == given.n_labeled
    np.testing.assert_array_equal(table[f"p__{here.method}__1"].to_numpy(), p[:, 1])
    assert "stream" in here.to_dict()["diagnostics"]
    assert len(errors_together(here, "place=south").to_dict()["models"]) == given.n_models
    assert here.summary()
    monkeypatch.setattr(draws, "ALL_DRAWS_ITEMS", 2000)
    whole = fl.estimate(given, method, by="place")
    np.testing.assert_allclose(p, whole.posterior.marginals(), atol=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {"estimand": "sample"},
        {"shift": "covariate"},
        {"metrics": lambda y, p: float(np.mean((p > 0.5) == y))},
        {"method": "labeled"},
        {"method": Own()},
    ],
    ids=["these items", "shift", "own function", "labels alone", "own model"],
)
def test_what_needs_all_items_at_once_has_them(options: dict[str, Any]) -> None:
    found = fl.estimate(fl.read_predictions(items_table(1100)), **options)
    assert "stream" not in found.diagnostics


@pytest.mark.slow
def test_rows_that_stand_for_several_are_looked_at_at_once() -> None:
    given = fl.read_predictions(votes(1100))
    several = given.with_multiplicity(np.full(1100, 2.0))
    assert "stream" not in fl.estimate(several, MajorityVote()).diagnostics


def test_more_patterns_than_parts_can_count(monkeypatch: pytest.MonkeyPatch) -> None:
    given = fl.read_predictions(votes(1100))
    monkeypatch.setattr(sketch, "MOST_PATTERNS", 20)
    assert "stream" not in fl.estimate(given, "dawid-skene", "error_rate").diagnostics


@pytest.mark.parametrize("by", ["site", 3])
def test_refusals_are_those_of_few_items(by: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given = fl.read_predictions(items_table(1100))
    with pytest.raises(fl.UsageError) as many:
        fl.estimate(given, by=by)
    monkeypatch.setattr(draws, "ALL_DRAWS_ITEMS", 2000)
    with pytest.raises(fl.UsageError) as few:
        fl.estimate(given, by=by)
    assert str(many.value) == str(few.value)


@pytest.mark.slow
def test_intervals_are_those_of_all_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Means and spread of draws, as far as so many draws tell: groups, weights, rankings.

    A mean is off by sd / sqrt(draws) and a standard deviation by sd / sqrt(2 draws), in both.
    """
    table = items_table(2_500, models=2, known=300)
    weight = np.random.default_rng(5).integers(1, 4, 2_500).astype(float)
    given = fl.read_predictions(table, keep=["place"]).with_weight(weight)
    metrics = ["accuracy", "f1", "ece", "auc", "auprc", "brier"]
    basis = fl.estimate(given, metrics=metrics, by="place")
    monkeypatch.setattr(draws, "ALL_DRAWS_ITEMS", 10**9)
    whole = fl.estimate(given, metrics=metrics, by="place")
    assert basis.diagnostics["stream"]["draws_per_row"] == draws.BASIS_DRAWS
    assert "stream" not in whole.diagnostics
    z = []
    for key, drawn in whole.draws.items():
        ours, error = basis.draws[key], drawn.std(axis=0) * np.sqrt(2 / len(drawn))
        z += [*((ours.mean(axis=0) - drawn.mean(axis=0)) / error)]
        z += [*((ours.std(axis=0) - drawn.std(axis=0)) / error * np.sqrt(2))]
    assert len(z) > 60
    assert np.abs(z).max() < norm.isf(1e-4 / len(z))
    assert np.sqrt(np.mean(np.square(z))) < 1.5
    for one, other in zip(basis.rows, whole.rows, strict=True):
        assert one.value == pytest.approx(other.value, abs=0.1 * (other.high - other.low))


@pytest.mark.slow
def test_very_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    table = items_table(300_000, models=4, known=100)
    here = fl.estimate(fl.read_predictions(table), metrics=METRICS)
    there = fl.estimate_files(
        write(table, tmp_path / "a", 3, 1), metrics=METRICS, checkpoints=tmp_path / "saved"
    )
    assert here.diagnostics["stream"]["parts"] > 1
    assert distance(here, there) < 1e-9


def test_a_group_without_a_row_in_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Differences in it allow for what they allow for among all items."""
    monkeypatch.setattr(scan, "SUPPORT_ROWS", 300)
    table = items_table(2500, known=60)
    place = np.where(np.arange(2500) < 2497, "large", "tiny")
    given = fl.read_predictions(table.append_column("spot", pa.array(place)), keep=["spot"])
    found = fl.estimate(given, "learned-ensemble", "accuracy", by="spot")
    a, b = found.models[:2]
    assert found.get(a, "accuracy", "spot=tiny").value >= 0
    assert set(found.paired) == {("accuracy", g.group) for g in found.groups}
    assert np.isfinite(found.difference(a, b, "accuracy", "spot=tiny").value)


def test_the_first_item_may_weigh_nothing() -> None:
    weight = np.r_[0.0, np.ones(1999)]
    given = fl.read_predictions(items_table(2000, known=60)).with_weight(weight)
    assert fl.estimate(given, metrics="accuracy").n_items == 2000


def test_annotated_items_are_counted_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    table = annotated()
    label = pa.array([1] * 5 + [None] * (len(table) - 5), pa.int64())
    counts = [np.where(np.arange(len(table)) < 5, 0, table[f"h__{k}"].to_numpy()) for k in (0, 1)]
    for k in (0, 1):
        table = table.set_column(
            table.column_names.index(f"h__{k}"), f"h__{k}", pa.array(counts[k])
        )
    given = fl.read_predictions(table.append_column("label", label))
    there = fl.estimate(given, "labeled", "accuracy", against="distribution")
    monkeypatch.setattr(draws, "ALL_DRAWS_ITEMS", 10**6)
    whole = fl.estimate(given, "labeled", "accuracy", against="distribution")
    assert there.n_annotated == whole.n_annotated


@pytest.mark.slow
def test_a_classifier_that_speaks_rarely_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows on which it says something are held, and looked at as they are in memory."""
    monkeypatch.setattr(scan, "SUPPORT_ROWS", 500)
    rng = np.random.default_rng(0)
    truth = rng.random(6000) < 0.5
    p = np.round(1 / (1 + np.exp(-rng.normal(2 * truth - 1, 1))), 6)  # the same by any processor
    rare = np.where(rng.random(6000) < 0.004, p, np.nan)
    groups = {"site": np.where(np.arange(6000) % 3 == 0, "a", "b")}
    labels = np.where(np.arange(6000) < 100, truth, -1)
    given = fl.Predictions(np.c_[p, rare], labels, groups=groups)
    there = fl.estimate(given, metrics=["accuracy", "auc"], by="site")
    monkeypatch.setattr(draws, "ALL_DRAWS_ITEMS", 10**6)
    whole = fl.estimate(given, metrics=["accuracy", "auc"], by="site")
    assert "stream" in there.diagnostics
    assert "stream" not in whole.diagnostics
    for group in ("site=a", "site=b"):
        for metric in ("accuracy", "auc"):
            one, other = (e.get("model1", metric, group) for e in (there, whole))
            # No label is of an item of this classifier: low bounds vary by .1 from seed to seed.
            assert one.value == pytest.approx(other.value, abs=0.02)
            assert one[4:6] == pytest.approx(other[4:6], abs=0.25)


def test_very_unequal_weights_are_looked_at_whole() -> None:
    weight = np.exp(3 * np.random.default_rng(0).normal(size=2000))
    given = fl.read_predictions(items_table(2000, known=60))
    assert "stream" in fl.estimate(given, metrics="accuracy").diagnostics
    found = fl.estimate(given.with_weight(weight), metrics="accuracy")
    assert "stream" not in found.diagnostics
