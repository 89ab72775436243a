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


@pytest.mark.slow
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
    ("labels", "least"),
    [((7, 7, 6), 0.86), ((17, 17, 16), 0.88), ((67, 67, 66), 0.9), ((18, 41, 41), 0.9)],
)
def test_coverage(labels, least):
    """95% intervals of the labels alone, 200 files each; at last few in a large stratum."""
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


def test_the_score_of_judges_is_that_of_the_strata():
    """Regions of .1, .4 and .7 yes, and 40 labels each: .205 of all items, .4 of the labels."""
    items = world(10, (40, 40, 40))
    found = fl.score(items, workers=1)
    region, yes = items.groups["region"], items.labels == 1
    mean = variance = 0.0
    for name in np.unique(region):
        own = yes[(region == name) & items.labeled]
        mean += (region == name).mean() * own.mean()
        variance += (region == name).mean() ** 2 * own.var(ddof=1) / 40
    row = found.get("labels only")
    assert row.value == pytest.approx(mean, abs=1e-8)
    assert yes[items.labeled].mean() > mean + 0.1
    spread = np.sqrt(variance + (1 / 8 + (mean - 0.5) ** 2) / 121**2)
    assert row.high - row.low == pytest.approx(3.92 * spread, rel=0.1)
    powered = found.get("prediction-powered", "m")
    assert powered.low < 0.205 < powered.high
    assert powered.high - powered.low < row.high - row.low
    (lacking,) = fl.score(world(10, (40, 20, 0)), workers=1).criteria[0].warnings
    assert "no label in 1 of 3 strata ('sea'; " in lacking


def test_rectified_means_vary_within_strata():
    """Labels that are the same within a stratum leave no spread but the pseudo-observation's."""
    n, small = 2_000, np.arange(2_000) % 10 == 0
    known = np.where(np.random.default_rng(0).random(n) < np.where(small, 0.3, 0.03), small, -1)
    for stratum, least, most in ((None, 0.1, 1.0), ("g", 0.0, 0.06)):
        items = fl.Predictions(
            np.full((n, 1), 0.5), known, models=["m"], groups={"g": small}, stratum=stratum
        ).thresholded(0.4)
        row = fl.estimate(items, "autoeval", ["accuracy"]).rows[0]
        assert least < row.high - row.low < most
        assert (abs(row.value - 0.1) < 0.01) == (stratum is not None)


def test_counts_of_annotators_weigh_by_stratum():
    items = world(11, (40, 40, 40))
    counts = np.eye(2)[np.maximum(items.labels, 0)] * 3 * items.labeled[:, None]
    crowd = fl.Predictions(
        items.probabilities, histogram=counts, groups=dict(items.groups), models=["m"],
        stratum="region",
    )  # fmt: skip
    np.testing.assert_allclose(crowd.weight_of_labels, items.weight_of_labels)
    accuracy = fl.estimate(items, "labeled", ["accuracy"]).rows[0].value
    assert fl.annotations.assess(crowd).get("m", "accuracy").value == pytest.approx(accuracy)
    assert fl.estimate(crowd, "labeled", ["accuracy"]).rows[0].value == pytest.approx(accuracy)


def test_labels_of_a_stratum_are_not_suspect_nor_contradict_a_curve():
    """In the small stratum the classifier is mostly wrong, which half of the labels show."""
    rng = np.random.default_rng(0)
    small = np.arange(2_000) % 10 == 0
    truth = rng.random(2_000) < np.where(small, 0.9, 0.19)
    said = truth ^ (rng.random(2_000) > np.where(small, 0.35, 0.95))
    known = np.full(2_000, -1)
    for inside in (small, ~small):
        rows = rng.choice(np.flatnonzero(inside), 60, replace=False)
        known[rows] = truth[rows]
    p = np.where(said, 0.5, 0.0) + rng.random(2_000) / 2
    items = fl.Predictions(p[:, None], known, groups={"area": small}, stratum="area")
    assert "suspect_labels" not in fl.estimate(items, metrics=["accuracy"]).diagnostics
    assert fl.label_next(items, size=3).status is fl.Status.OK


def test_strata_by_the_verdict_of_a_judge_keep_the_judge():
    """Some passed and some failed answers are labeled: the column is classifier and stratum."""
    rng = np.random.default_rng(0)
    truth = rng.random(300) < 0.3
    verdict = np.where(rng.random(300) < 0.85, truth, ~truth)
    known = np.zeros(300, dtype=bool)
    for said in (True, False):
        known[rng.choice(np.flatnonzero(verdict == said), 30, replace=False)] = True
    words = np.array(["no", "yes"])
    table = {
        "case": [f"c{i}" for i in range(300)],
        "expert label": [w if k else None for w, k in zip(words[truth * 1], known, strict=True)],
        "verdict": words[verdict * 1].tolist(),
    }
    native = {"label": table["expert label"], "y__judge": table["verdict"]}
    for source, column, more in (
        (table, "verdict", {}),
        (table, "verdict", {"hard": {"judge": "verdict"}}),
        (native, "y__judge", {}),
    ):
        items = fl.read_predictions(source, stratum=column, **more)
        assert items.hard[:, 0].tolist() == verdict.astype(int).tolist()
        assert len(set(items.weight_of_labels[items.labeled].round(6))) == 2
        row = fl.score(items, workers=1).get("labels only")
        share = [truth[known & (verdict == said)].mean() for said in (False, True)]
        assert row.value == pytest.approx(np.array(share)[verdict * 1].mean(), abs=1e-6)
    for column in ("expert label", "label"):
        source = {"p__m__yes": rng.random(300).tolist(), column: table["expert label"]}
        with pytest.raises(fl.InputError, match="two roles: --label and --stratum"):
            fl.read_predictions(source, label=column, stratum=column)
