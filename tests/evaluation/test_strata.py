"""Labels drawn by stratum: what they weigh, the design effect, and what is said of gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.evaluation.draws import LabelWeights

SHARES = (0.7, 0.25, 0.05)


def world(seed: int, labels: tuple[int, ...], n: int = 2_000, **more: Any) -> fl.Predictions:
    """Three regions with other error rates, of which so many items are labeled at random.

    The classifier is right in .95, .75 and .6 of the cases, .8825 in all.
    """
    rng = np.random.default_rng(seed)
    region = rng.choice(3, n, p=SHARES)
    truth = (rng.random(n) < np.array([0.1, 0.4, 0.7])[region]).astype(int)
    right = rng.random(n) < np.array([0.95, 0.75, 0.6])[region]
    p = np.where(right == (truth == 1), 0.5, 0.0) + rng.random(n) / 2
    known = np.full(n, -1)
    for h, size in enumerate(labels):
        rows = rng.choice(np.flatnonzero(region == h), size, replace=False)
        known[rows] = truth[rows]
    names = np.array(["north", "south", "sea"])[region]
    return fl.Predictions(
        p[:, None], known, groups={"region": names}, models=["m"], classes=[0, 1],
        **{"stratum": "region"} | more,
    )  # fmt: skip


def by_hand(items: fl.Predictions) -> tuple[float, float]:
    """Stratified accuracy and its variance."""
    mean = variance = 0.0
    for name in np.unique(items.groups["region"]):
        inside = items.groups["region"] == name
        labeled = inside & items.labeled
        right = (items.hard[labeled, 0] == items.labels[labeled]).astype(float)
        mean += inside.mean() * right.mean()
        variance += inside.mean() ** 2 * right.var(ddof=1) / labeled.sum()
    return mean, variance


def test_the_mean_and_its_spread_by_hand():
    items = world(0, (40, 40, 40))
    mean, variance = by_hand(items)
    found = fl.estimate(items, "labeled", ["accuracy"])
    assert found.get("m", "accuracy").value == pytest.approx(mean, abs=1e-8)
    # The pseudo-observation, one in 121, adds a variance of (1 / 121)^2 (1 / 8 + (1 / 2 - mean)^2).
    spread = found.draws["accuracy", None].std()
    more = (1 / 8 + (mean - 0.5) ** 2) / 121**2
    assert spread == pytest.approx(np.sqrt(variance + more), rel=0.08)
    effect = found.diagnostics["strata"]["design_effect"]
    right = items.hard[items.labeled, 0] == items.labels[items.labeled]
    assert right.mean() < mean  # the harder regions have more labels than their share
    spread = mean - mean**2 + variance
    assert effect == [
        {"model": "m", "metric": "accuracy", "value": pytest.approx(variance / (spread / 120))}
    ]
    assert any("design effect for accuracy of m" in line for line in found.warnings)
    assert "not_a_random_sample" not in found.diagnostics


def test_labels_weigh_by_their_stratum_in_all_forms():
    items = world(1, (30, 20, 10))
    size = {n: (items.groups["region"] == n).sum() for n in ("north", "south", "sea")}
    for n, labels in (("north", 30), ("south", 20), ("sea", 10)):
        weight = items.weight_of_labels[items.labeled & (items.groups["region"] == n)]
        assert weight * 2_000 / 60 == pytest.approx(np.full(labels, size[n] / labels))
    some = np.flatnonzero(items.labeled)[::2]
    fewer = items.revealing(some)
    assert fewer.weight_of_labels[some].mean() == pytest.approx(1)
    assert fewer.stratum == "region"
    table = fl.read_predictions(
        {
            "label": [str(y) if y >= 0 else None for y in items.labels],
            "region": [str(r) for r in items.groups["region"]],
            "p__m__1": items.probabilities[:, 0, 1].tolist(),
        },
        stratum="region", keep=[],
    )  # fmt: skip
    np.testing.assert_allclose(table.weight_of_labels, items.weight_of_labels)
    bare = world(1, (30, 20, 10), stratum=None)
    one, other = (fl.estimate(bare, "labeled", ["recall"], stratum="region"),
                  fl.estimate(items, "labeled", ["recall"]))  # fmt: skip
    assert one.to_dict()["estimates"] == other.to_dict()["estimates"]
    with pytest.raises(fl.UsageError, match="unknown stratum 'site'"):
        fl.estimate(bare, stratum="site")


def test_sampling_weights_and_strata_go_together():
    """Shares of strata are those of the weighted items."""
    rng = np.random.default_rng(3)
    weight = rng.uniform(0.5, 2, 2_000)
    items = world(3, (30, 30, 30), weight=weight)
    value = 0.0
    for n in ("north", "south", "sea"):
        inside = items.groups["region"] == n
        labeled = inside & items.labeled
        right = items.hard[labeled, 0] == items.labels[labeled]
        value += weight[inside].sum() / weight.sum() * np.average(right, weights=weight[labeled])
    found = fl.estimate(items, "labeled", ["accuracy"])
    assert found.get("m", "accuracy").value == pytest.approx(value, abs=1e-8)


def test_strata_without_labels_or_with_one_are_said():
    found = fl.estimate(world(4, (40, 1, 0)), "labeled", ["accuracy"])
    row = found.get("m", "accuracy")
    assert row.status is fl.Status.ASSUMPTION
    assert row.high > row.low
    said = [line for line in found.warnings if line.startswith("assumption: ")]
    assert any("no label in 1 of 3 strata ('sea'; " in line for line in said)
    assert any("one label alone in 1 of 3 strata ('south'" in line for line in said)
    counts = found.diagnostics["strata"]["strata"]
    assert sorted(one["n_labeled"] for one in counts) == [0, 1, 40]
    enough = fl.estimate(world(4, (40, 9, 9)), "labeled", ["accuracy"])
    assert not any("of 3 strata" in line for line in enough.warnings)


def test_many_items_and_files_read_in_parts(tmp_path):
    """15,000 items are not estimated from in parts, and files that would be are refused."""
    items = world(5, (50, 50, 50), n=16_000)
    found = fl.estimate(items, metrics=["accuracy"])
    assert "stream" not in found.diagnostics
    path = tmp_path / "items.csv"
    path.write_text("label,region,p__m__1\n1,a,.5\n,b,.7\n0,a,.2\n")
    with pytest.raises(fl.UsageError, match="--stratum needs the shares of all items"):
        fl.estimate_files(path, columns={"stratum": "region"})


def test_how_many_labels_each_stratum_has_next():
    items = world(6, (30, 30, 30))
    found = fl.label_next(items, strata="region", size=60, metric="accuracy")
    plan = {one.name: one for one in found.strata}
    assert sum(one.n_next for one in found.strata) == 60 == len(set(found.items.tolist()))
    names = items.groups["region"][found.items]
    for name, one in plan.items():
        assert (names == name).sum() == one.n_next
        assert one.n_items == (items.groups["region"] == name).sum()
    assert (items.labels[found.items] == -1).all()
    # Neyman with what there is: in proportion to N S, where that is above the labels there are.
    effort = {n: one.n_items * one.spread for n, one in plan.items()}
    more = [n for n, one in plan.items() if one.n_next]
    held = {n: plan[n].n_labeled + plan[n].n_next for n in more}
    factor = sum(held.values()) / sum(effort[n] for n in more)
    assert all(abs(held[n] - factor * effort[n]) < 1 for n in more)
    assert plan["sea"].n_next == 0
    assert found.to_dict()["strata"][0]["name"] == found.strata[0].name
    assert "--stratum region" in found.statement
    # A stratum without labels has two at least.
    bare = fl.label_next(world(6, (30, 30, 0)), strata="region", size=5)
    assert {one.name: one.n_next for one in bare.strata}["sea"] >= 2
    with pytest.raises(fl.UsageError, match="mean over items"):
        fl.label_next(items, strata="region", metric="roc_auc")
    with pytest.raises(fl.UsageError, match="`strata` goes with a metric alone"):
        fl.label_next(items, strata="region", metric="accuracy", group="region")
    with pytest.raises(fl.UsageError, match="unknown stratum 'site'"):
        fl.label_next(items, strata="site")


def test_scores_alone_are_allocated_by_the_share_of_positives():
    items = world(7, (20, 20, 20))
    scores = fl.Predictions(
        scores=items.probabilities[:, :, 1], labels=items.labels, groups=dict(items.groups)
    )
    found = fl.label_next(scores, strata="region", size=9)
    assert found.kind == "share of positive items"
    assert sum(one.n_next for one in found.strata) == 9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("labels", "least"), [((7, 7, 6), 0.86), ((17, 17, 16), 0.88), ((67, 67, 66), 0.9)]
)
def test_coverage(labels, least):
    """95% intervals of the labels alone, 200 files each."""
    inside = []
    for seed in range(200):
        row = fl.estimate(world(seed, labels), "labeled", ["accuracy"], random_state=seed).rows[0]
        inside.append(row.low <= 0.8825 <= row.high)
    assert least <= np.mean(inside) <= 0.99


@pytest.mark.parametrize("n", [2, 3, 5, 40])
def test_means_of_few_rows_vary_as_their_unbiased_variance(n):
    """Draws of a stratum's mean of n rows have variance v / (n - 1), v the rows' own."""
    items = world(8, (n, n, n))
    posterior = fl.models.Labeled().infer(items, np.random.default_rng(0))
    rows = np.flatnonzero(items.labeled)
    weights = LabelWeights(items, posterior, rows, rows[:0], 4_000)
    drawn = weights.row_weights("bootstrap", np.arange(4_000))
    for name in ("north", "south", "sea"):
        inside = items.groups["region"][rows] == name
        size = (items.groups["region"] == name).sum()
        sums = drawn[inside].sum(axis=0)
        assert sums * 2_000 / len(rows) == pytest.approx(np.full(4_000, size))
        values = np.arange(n, dtype=float)
        means = values @ (drawn[inside] / sums)
        assert means.var() == pytest.approx(values.var() / (n - 1), rel=0.15)


def test_a_threshold_says_which_strata_lack_labels():
    for labels, status in (((40, 20, 0), fl.Status.ASSUMPTION), ((40, 20, 9), fl.Status.OK)):
        found = fl.threshold(world(9, labels), min_recall=0.5, method="labeled")
        assert found.status is status
        assert any("of 3 strata" in line for line in found.warnings) == (labels[2] == 0)
