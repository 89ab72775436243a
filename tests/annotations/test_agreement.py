"""Agreement of people among themselves, and whether who labels explains the label."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import t as student

import fewlabels as fl
from fewlabels.annotations import agreement
from fewlabels.annotations.agreement import agreement_of, independence
from fewlabels.checks.conditions import Requirement
from fewlabels.errors import InputError, Status, UsageError

# Two packages' values: irrCAC 0.4.4 (Gwet's), krippendorff 0.9.0. Classes are numbers from 1.
TABLES = {
    "two raters, two classes": (
        "21 11 22 21 11 11 11 11 11 21 11 11 11 11 11",
        2,
        {
            "nominal": {"alpha": 0.304, "fleiss_kappa": 0.28, "ac1": 0.723076923077, "pabak": 0.6},
            "ordinal": {"alpha": 0.304, "fleiss_kappa": 0.28, "ac2": 0.723076923077, "pabak": 0.6},
            "interval": {"alpha": 0.304, "fleiss_kappa": 0.28, "ac2": 0.723076923077, "pabak": 0.6},
        },
    ),
    "three raters, four classes, some missing": (
        ".11 111 211 111 11. 143 1.4 111 111 111 111 11. 222 121",
        4,
        {
            "nominal": {
                "alpha": 0.352140077821,
                "fleiss_kappa": 0.310910582445,
                "ac1": 0.730912973839,
                "pabak": 0.68253968254,
            },
            "ordinal": {
                "alpha": 0.347191388595,
                "fleiss_kappa": 0.175965665236,
                "ac2": 0.814152867563,
                "pabak": 0.593650793651,
            },
            "interval": {
                "alpha": 0.222870478413,
                "fleiss_kappa": 0.150752639856,
                "ac2": 0.821591516944,
                "pabak": 0.571428571429,
            },
        },
    ),
    "five raters, three classes, many missing": (
        "1.1.1 .1.1. .222. .3.3. ..3.. ..111 1.... 33..2 1..11 .11.3 1.1.1 .1211",
        3,
        {
            "nominal": {
                "alpha": 0.609302325581,
                "fleiss_kappa": 0.659293780247,
                "ac1": 0.749185194959,
                "pabak": 0.725,
            },
            "ordinal": {
                "alpha": 0.692911877395,
                "fleiss_kappa": 0.726103278552,
                "ac2": 0.785367341825,
                "pabak": 0.715,
            },
            "interval": {
                "alpha": 0.664,
                "fleiss_kappa": 0.738371404121,
                "ac2": 0.792524535394,
                "pabak": 0.7125,
            },
        },
    ),
    "Gwet, 4 raters": (
        "11.1 2232 3333 3333 2222 1234 4444 1121 2222 .555 ..11 ..3.",
        5,
        {
            "nominal": {
                "alpha": 0.743421052632,
                "fleiss_kappa": 0.761169275422,
                "ac1": 0.775444068127,
                "pabak": 0.772727272727,
            },
            "ordinal": {
                "alpha": 0.815387503755,
                "fleiss_kappa": 0.850206189397,
                "ac2": 0.898939769908,
                "pabak": 0.886363636364,
            },
            "interval": {
                "alpha": 0.849107142857,
                "fleiss_kappa": 0.864935064935,
                "ac2": 0.914000723552,
                "pabak": 0.901515151515,
            },
        },
    ),
}


def votes(text):
    """Votes (n, A) from a word an item: a class from 1 per annotator, or nothing."""
    return np.array([[-1 if c == "." else int(c) - 1 for c in word] for word in text.split()])


def of(text_or_votes, classes=2, **arguments):
    said = votes(text_or_votes) if isinstance(text_or_votes, str) else np.asarray(text_or_votes)
    names = [f"p{j}" for j in range(said.shape[1])]
    people = fl.Predictions(votes=said, classes=list(range(1, classes + 1)), models=names)
    return agreement(people, **{"confidence_level": None, **arguments})


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("table", TABLES)
def test_coefficients_are_those_of_other_packages(table, scale):
    text, classes, by_scale = TABLES[table]
    found = of(text, classes, scale=scale)
    for metric, value in by_scale[scale].items():
        assert found.get(None, metric).value == pytest.approx(value, abs=1e-8)


@pytest.mark.parametrize("scale", ["nominal", "interval"])
def test_kappa_of_a_pair_is_scikit_learns(scale):
    from sklearn.metrics import cohen_kappa_score

    rng = np.random.default_rng(0)
    a = rng.integers(4, size=60)
    b = np.where(rng.random(60) < 0.6, a, rng.integers(4, size=60))
    weights = None if scale == "nominal" else "quadratic"
    found = of(np.stack([a, b], axis=1), 4, scale=scale)
    kappa = cohen_kappa_score(a, b, weights=weights, labels=range(4))
    assert found.get("p0", "cohen_kappa", "p1").value == pytest.approx(kappa, abs=1e-12)
    assert found.get("p1", "cohen_kappa", "p0") == found.get("p0", "cohen_kappa", "p1")
    # What needs no order of two is that of all.
    for metric in ("alpha", "agreement", "pabak"):
        of_pair = found.get("p0", metric, "p1").value
        assert of_pair == pytest.approx(found.get(None, metric).value, abs=1e-12)


def test_fleiss_own_example_and_statsmodels():
    """Fleiss (1971) as it is often printed: 10 subjects, 14 raters, kappa .210."""
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater")
    counts = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    found = agreement(counts, confidence_level=None)
    kappa = found.get(None, "fleiss_kappa").value
    assert round(kappa, 3) == 0.210
    assert kappa == pytest.approx(inter_rater.fleiss_kappa(np.array(counts)), abs=1e-12)
    assert round(found.get(None, "agreement").value, 3) == 0.378
    assert np.isnan(found.get(None, "agreement").low)
    assert (found.n_annotators, found.independence) == (None, None)


def test_an_annotator_with_the_others():
    """By hand: p0 says the same as the mean of the others on .5, 1 and 0 of three items."""
    found = of("112 11. 1.2 ..1 2..")
    row = found.get("p0", "agreement")
    assert (row.value, row.n_items) == (pytest.approx(0.5), 3)
    assert found.get("p2", "agreement").value == 0
    assert found.get("p1", "agreement", "p2").n_items == 1
    # Shares of p0 are (1, 0), of the others (.5, .5): chance .5, and kappa 0.
    assert found.get("p0", "cohen_kappa").value == pytest.approx(0)


def test_a_rare_class():
    """Nearly all items are alike: alpha is near 0, AC1 near the agreement."""
    found = of("11 " * 95 + "12 21 12 21 22")
    assert found.get(None, "agreement").value == 0.96
    assert found.get(None, "alpha").value < 0.35
    assert found.get(None, "ac1").value == pytest.approx(0.957, abs=1e-3)
    assert found.get(None, "pabak").value == pytest.approx(0.92)


def test_what_is_not_defined_or_seen_once():
    same = of("11 11 111"[:5] + " 11")
    assert np.isnan(same.get(None, "alpha").value)
    assert same.get(None, "alpha").status is Status.UNDEFINED
    assert (same.get(None, "ac1").value, same.get(None, "agreement").value) == (1, 1)
    # A class that one annotator alone uses, one who shares no item, and another with one item.
    found = of("13.. 11.. 22.. ..1. 11.2", 3)
    assert found.get("p0", "agreement").value == pytest.approx((0 + 1 + 1 + 0.5) / 4)
    assert found.get("p3", "agreement").n_items == 1
    with pytest.raises(UsageError, match="no agreement 'agreement' of 'p2'"):
        found.get("p2", "agreement")
    wide = of("11 " * 30, confidence_level=0.95)
    assert wide.get(None, "agreement").low < 0.99 < wide.get(None, "agreement").high


def test_numbers_of_the_classes_are_grades():
    said = votes("13 22 33 12 31 11")
    values = {
        classes: fl.annotations.agreement(
            fl.Predictions(votes=said, classes=list(classes)), scale="interval"
        ).get(None, "alpha").value
        for classes in ((1, 2, 3), (10, 20, 30), (1, 2, 10), ("a", "b", "c"))
    }  # fmt: skip
    assert values[1, 2, 3] == values[10, 20, 30] == values["a", "b", "c"] != values[1, 2, 10]


def test_an_order_of_words_that_nobody_said_is_noted():
    said = votes("13 22 33 12 31 11")
    for classes, scale, noted in (
        (("high", "low", "medium"), "ordinal", True), (("low", "medium", "high"), "ordinal", False),
        (("high", "low", "medium"), "nominal", False), (("8%", "22%", "100%"), "interval", False),
    ):  # fmt: skip
        items = fl.Predictions(votes=said, classes=list(classes))
        notes = " ".join(fl.annotations.agreement(items, scale=scale).notes)
        assert ("the alphabet (high, low, medium); say theirs with --classes" in notes) == noted


def test_an_annotators_second_label_is_no_second_annotator():
    once = fl.Predictions(votes=votes("12 11 22"), classes=[1, 2])
    again = fl.Predictions(
        votes=votes("12 11 22"), classes=[1, 2], repeated_votes=[(0, 0, 0), (1, 0, 1)]
    )
    assert agreement(once).rows == agreement(again).rows
    assert "only one counts" in agreement(again).notes[0]


def world(n, seed, prevalence=0.1, people=3, right=0.93, missing=0.2):
    rng = np.random.default_rng(seed)
    truth = rng.random((n, 1)) < prevalence
    said = np.where(rng.random((n, people)) < right, truth, ~truth).astype(int)
    said[rng.random((n, people)) < missing] = -1
    return said


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 50, 200])
def test_intervals_cover(n):
    """Of a rare class with missing labels: the truth is that of very many items."""
    runs, level = 100, 0.9
    exact = of(world(200_000, 0))
    metrics = ("agreement", "alpha", "ac1")
    held = dict.fromkeys(metrics, 0)
    for seed in range(runs):
        found = of(world(n, (n, seed)), confidence_level=level, random_state=seed)
        for metric in metrics:
            row, truth = found.get(None, metric), exact.get(None, metric).value
            held[metric] += np.isnan(row.value) or row.low <= truth <= row.high
    assert min(held.values()) >= runs * level - 3 * np.sqrt(runs * level * (1 - level))


def test_clusters_widen():
    """Ten copies of every item say no more than one."""
    said = np.repeat(world(30, 5, 0.4, missing=0), 10, axis=0)
    of_item = np.repeat(np.arange(30), 10)
    people = fl.Predictions(votes=said, classes=[0, 1], groups={"item": of_item})
    plain, clustered = (
        agreement(people, cluster=cluster).get(None, "ac1") for cluster in (None, "item")
    )
    alone = of(said[::10], confidence_level=0.95).get(None, "ac1")
    assert plain.value == clustered.value
    ratio = (clustered.high - clustered.low) / (alone.high - alone.low)
    assert 0.8 < ratio < 1.4
    assert plain.high - plain.low < 0.5 * (clustered.high - clustered.low)


def test_what_is_refused():
    with pytest.raises(InputError, match="no item has two labels"):
        agreement([[1, 0], [0, 1]])
    with pytest.raises(UsageError, match="unknown scale 'ratio'"):
        of("11 22", scale="ratio")
    with pytest.raises(InputError, match="no item has two labels"):
        agreement(fl.Predictions(votes=[[0], [1]], labels=[0, 1]))


# --- who labels -----------------------------------------------------------------------------------


def exchanged(said, seed=0):
    people = fl.Predictions(votes=said, classes=[0, 1])
    found = independence(people.ballots.astype(int), 2, people.keys, seed)
    assert found is not None
    return found


def test_independent_draws_are_not_doubted():
    """P-values are uniform where labels are independent draws, some missing."""
    p = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        said = (rng.random((80, 4)) < rng.beta(1, 2, size=(80, 1))).astype(int)
        said[rng.random((80, 4)) < 0.3] = -1
        p.append(exchanged(said).p_value)
    assert 0.5 - 4 / np.sqrt(12 * 60) < np.mean(p) < 0.5 + 4 / np.sqrt(12 * 60)


def thresholds(n, cuts, seed, noise=0.0):
    """Labels of annotators with thresholds of their own, (n, A), and a classifier, (n,)."""
    rng = np.random.default_rng(seed)
    q = rng.random(n)
    said = q[:, None] + noise * rng.standard_normal((n, len(cuts))) > np.array(cuts)
    return said.astype(int), np.clip(q + 0.05 * rng.standard_normal(n), 0.01, 0.99)


def test_thresholds_of_their_own_are_seen():
    said, _ = thresholds(300, (0.3, 0.7), 0)
    found = exchanged(said)
    assert (found.p_value, found.panel_share, found.n_annotators) == (0.002, 1, 2)
    assert found.explained > 0.99
    assert found.doubted
    assert not exchanged(thresholds(300, (0.5, 0.5, 0.5), 1, 0.2)[0]).doubted
    # Two of 40 label an item: who they are is drawn anew, and labels are near independent.
    rng = np.random.default_rng(2)
    many, _ = thresholds(400, rng.choice([0.3, 0.7], size=40), 2)
    many[np.argsort(rng.random(many.shape), axis=1) >= 2] = -1
    assert exchanged(many).p_value == 0.002
    assert not exchanged(many).doubted


def adjudicated(n, seed, people=3):
    """Two of some read each item, at random if more than three; another where the two differ."""
    rng = np.random.default_rng(seed)
    q = rng.random((n, 1))
    said = (q + 0.3 * rng.standard_normal((n, people)) > 0.5).astype(int)
    readers = np.argsort(rng.random((n, people - 1)), axis=1)[:, :2]
    split = np.ptp(np.take_along_axis(said, readers, axis=1), axis=1) > 0
    there = np.zeros(said.shape, dtype=bool)
    np.put_along_axis(there, readers, True, axis=1)
    there[:, -1] = split
    return np.where(there, said, -1), np.clip(q[:, 0], 0.01, 0.99)


@pytest.mark.parametrize("people", [3, 6])
def test_an_adjudicator_is_named(people):
    said, p = adjudicated(200, 1, people)
    found = fl.annotations.assess(
        fl.Predictions({"m": p, **{f"p{j}": column for j, column in enumerate(said.T)}})
    )
    last = f"p{people - 1}"
    assert found.agreement is not None
    for row in found.agreement.rows:
        stands = row.other is not None and last not in (row.annotator, row.other)
        if row.n_items >= 20 and not np.isnan(row.value):
            assert row.status is (Status.OK if stands else Status.ASSUMPTION)
    assert {row.status for row in found.rows} <= {Status.ASSUMPTION, Status.CONTRADICTED}
    named = [warning for warning in found.warnings if f"whether {last} labels an item" in warning]
    assert len(named) == 1
    assert f"--where 'annotator not in ({last})'" in named[0]
    # Those who read everything are not blamed, and a gate is not met.
    alone = of(said[:, :-1], confidence_level=0.95)
    assert alone.diagnostics == {}
    assert Requirement("agreement>=0", "value", "agreement", ">=", 0).failures(found.agreement)


def test_more_labels_where_they_differ_are_seen_without_names():
    """Of counts, and of a third of many annotators: how many labels depends on the labels."""
    said, _ = adjudicated(200, 2)
    counts = np.stack([(said == k).sum(axis=1) for k in (0, 1)], axis=1)
    found = agreement(counts, confidence_level=None)
    assert "how many label an item depends" in found.notes[0]
    assert {row.status for row in found.rows} == {Status.ASSUMPTION}
    crowd = np.full((200, 80), -1)
    who = np.argsort(np.random.default_rng(3).random(crowd.shape), axis=1)[:, :3]
    np.put_along_axis(crowd, who, said, axis=1)
    assert "how many label an item depends" in of(crowd).notes[0]


@pytest.mark.parametrize("design", ["at random", "three of five", "an audit", "teams"])
def test_who_labels_at_random_is_not_doubted(design):
    """Annotators of thresholds of their own, of whom those who label depend on no label."""
    doubted = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        said, _ = thresholds(100, (0.2, 0.4, 0.6, 0.7, 0.9), seed, 0.1)
        if design == "at random":
            there = rng.random(said.shape) < np.array([1, 0.9, 0.6, 0.4, 0.1])
        elif design == "three of five":
            there = np.argsort(rng.random(said.shape), axis=1) < 3
        elif design == "an audit":
            there = np.array([1, 1, 0, 0, 0]) + (rng.random((100, 1)) < 0.2) > 0
        else:
            first = rng.random((100, 1)) < 0.5
            there = np.where(first, [1, 1, 0, 0, 0], [0, 0, 1, 1, 1]) * rng.random((100, 5)) > 0.1
        doubted += bool(of(np.where(there, said, -1)).diagnostics)
    assert doubted <= 1


def test_a_fixed_panel():
    """Two who label every item: EL by their shares is exact; for a random pair it is below 0."""
    said, p = thresholds(400, (0.3, 0.7), 0)
    people = fl.Predictions({"m": p, "ann": said[:, 0], "bob": said[:, 1]})
    free = fl.annotations.assess(people)
    assert free.get("m", "EL").high < 0
    assert free.get("m", "EL").status is Status.CONTRADICTED
    assert "--panel fixed" in free.warnings[0]
    fixed = fl.annotations.assess(people, panel="fixed")
    shares = said.mean(axis=1)
    exact = 2 * ((p - shares) ** 2).mean()
    assert fixed.get("m", "EL").value == pytest.approx(exact, abs=1e-6)
    assert fixed.get("m", "EL").status is Status.OK
    assert (fixed.diagnostics["panel"], fixed.warnings) == (2, ())
    assert fixed.get("m", "L") == free.get("m", "L")
    # Counts alone: nobody is known, but the loss shows it too.
    counts = np.stack([2 - said.sum(axis=1), said.sum(axis=1)], axis=1)
    counted = fl.Predictions({"m": p}, histogram=counts)
    assert fl.annotations.assess(counted).get("m", "EL").status is Status.CONTRADICTED
    again = fl.annotations.assess(counted, panel="fixed").get("m", "EL")
    assert again == fixed.get("m", "EL")


def test_a_panel_of_which_some_label_an_item():
    """EL over the panel is unbiased whichever of its members label an item."""
    said, p = thresholds(200, (0.2, 0.4, 0.6, 0.9), 3)
    rows, both = np.arange(200), np.stack([1 - p, p], axis=1)
    exact = 2 * ((p - said.mean(axis=1)) ** 2).mean()
    rng, found = np.random.default_rng(4), []
    for _ in range(200):
        size = rng.integers(2, 5, size=200)
        chosen = np.argsort(rng.random(said.shape), axis=1)
        ones = np.array([said[i, chosen[i, : size[i]]].sum() for i in rows])
        counts = np.stack([size - ones, ones], axis=1)
        found.append(fl.annotations.evaluate(counts, both, panel=4)["EL"])
    assert np.mean(found) == pytest.approx(exact, abs=4 * np.std(found) / np.sqrt(200))


def panel(said, p):
    """EL of the fixed panel of all columns, -1 where somebody does not label."""
    people = fl.Predictions({"m": p, **{f"p{j}": column for j, column in enumerate(said.T)}})
    found = fl.annotations.assess(people, panel="fixed", confidence_level=None)
    return found.get("m", "EL")


@pytest.mark.slow
@pytest.mark.parametrize(
    "rates",
    [(0.9, 0.6, 0.3), *(pytest.param((1, 1, r), marks=pytest.mark.slow) for r in (0.02, 0.5))],
)
def test_a_panel_by_how_often_each_labels(rates):
    """EL is of the mean share of a label over the sets of annotators that items have."""
    rng, cuts, many = np.random.default_rng(8), (0.3, 0.6, 0.7), 200_000
    said, p = thresholds(many, cuts, 8, 0.1)
    there = rng.random(said.shape) < np.array(rates)
    several = there[there.sum(axis=1) >= 2]
    mean = said @ (several / several.sum(axis=1, keepdims=True)).mean(axis=0)
    exact, found = 2 * ((p - mean) ** 2).mean(), []
    for seed in range(40):
        said, p = thresholds(150, cuts, seed, 0.1)
        there = rng.random(said.shape) < np.array(rates)
        found.append(panel(np.where(there, said, -1), p).value)
    assert np.mean(found) == pytest.approx(exact, abs=3.5 * np.std(found) / np.sqrt(40))


def test_a_guest_does_not_make_a_panel():
    """Two label all, a third 3 of 200: EL is that of the two, who are not drawn from three."""
    said, p = thresholds(200, (0.3, 0.7, 0.5), 9)
    said[3:, 2] = -1
    guest, two = panel(said, p), panel(said[:, :2], p)
    assert guest.value == pytest.approx(two.value, rel=0.05)
    assert guest.status is Status.OK


def test_a_panel_at_random_is_known_by_its_size():
    """Every pair of five on as many items: what two at random of five add, 1 / 2 - 1 / 5."""
    said, p = thresholds(60, (0.2, 0.4, 0.5, 0.6, 0.9), 10)
    pairs = np.array([(i, j) for i in range(5) for j in range(i)] * 6)
    few = np.full(said.shape, -1)
    np.put_along_axis(few, pairs, np.take_along_axis(said, pairs, axis=1), axis=1)
    ones = (few == 1).sum(axis=1)
    counts, both = np.stack([2 - ones, ones], axis=1), np.stack([1 - p, p], axis=1)
    by_size = fl.annotations.evaluate(counts, both, panel=5)["EL"]
    assert panel(few, p).value == pytest.approx(by_size, abs=1e-8)


def test_a_panel_of_one():
    """Her label is the distribution: EL is L."""
    said, p = thresholds(60, (0.5,), 6)
    counts = np.stack([1 - said[:, 0], said[:, 0]], axis=1)
    found = fl.annotations.assess(fl.Predictions({"m": p}, histogram=counts), panel="fixed")
    assert found.get("m", "EL").value == pytest.approx(found.get("m", "L").value)
    assert found.get("m", "EL").status is Status.OK
    assert found.agreement is None
    statistic = fl.annotations.assess(
        fl.Predictions({"m": p}, histogram=2 * counts), panel="fixed", statistics="unanimity_2"
    )
    assert statistic.get("m", "EL_unanimity_2").status is Status.UNDEFINED
    assert any("not a fixed panel" in warning for warning in statistic.warnings)


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, *(pytest.param(n, marks=pytest.mark.slow) for n in (50, 200))])
def test_intervals_of_a_fixed_panel_cover(n):
    runs, level = 60, 0.9
    said, p = thresholds(200_000, (0.35, 0.6), 0, 0.1)
    exact, held = 2 * ((p - said.mean(axis=1)) ** 2).mean(), 0
    for seed in range(runs):
        said, p = thresholds(n, (0.35, 0.6), (n, seed), 0.1)
        ones = said.sum(axis=1)
        counts, both = np.stack([2 - ones, ones], axis=1), np.stack([1 - p, p], axis=1)
        low, high = fl.annotations.evaluate(
            counts, both, panel=2, confidence_level=level, random_state=seed
        )["intervals"]["EL"]
        held += low <= exact <= high
    assert held >= runs * level - 3 * np.sqrt(runs * level * (1 - level))


def test_annotators_alone():
    """Votes alone are assessed as people; there are no losses."""
    found = fl.annotations.assess(fl.Predictions(votes=votes("11 22 12 11"), classes=[1, 2]))
    assert (found.rows, found.models) == ((), ())
    assert found.agreement is not None
    assert found.agreement.get(None, "agreement").value == 0.75
    assert found.to_dict()["agreement"] == found.agreement.to_dict()
    assert "only annotators" in found.summary()
    with pytest.raises(InputError, match="votes alone"):
        fl.annotations.assess(fl.Predictions(votes=votes("1. .2"), classes=[1, 2]))
    # Most items without a vote: there are no classifiers by which they could differ.
    said = np.vstack([votes("11 22 12 11 " * 10), np.full((60, 2), -1)])
    assert fl.annotations.assess(fl.Predictions(votes=said, classes=[1, 2])).n_annotated == 40
    assert agreement_of(fl.Predictions(votes=votes("1. .2")), "nominal", None, 0) is None


def readers(seed, n, size, spread):
    """Labels of readers with drawn thresholds, (n, R), and a classifier, (n,)."""
    rng = np.random.default_rng(seed)
    x, cuts = 1.5 * rng.normal(size=n), spread * rng.normal(size=size)
    said = rng.random((n, size)) < expit(x[:, None] - cuts)
    return said.astype(int), expit(1.3 * x + 0.3)


def losses_of_all_readers(spread):
    """L and EL of the same world with infinitely many items and readers."""
    cut, weight = np.polynomial.hermite_e.hermegauss(40)
    x, density = cut * 1.5, weight / weight.sum()
    q = expit(x[:, None] - spread * cut) @ density
    z = expit(1.3 * x + 0.3)
    el = 2 * density @ (q - z) ** 2
    return {"L": el + 2 * density @ (q * (1 - q)), "EL": el}


def assess_readers(said, p):
    people = {f"r{j}": column for j, column in enumerate(said.T)}
    return fl.annotations.assess(fl.Predictions({"m": p, **people}), workers=1)


@pytest.mark.slow
def test_intervals_count_readers_who_differ_as_drawn_from_many():
    said, p = readers(0, 300, 5, 1.0)
    found = assess_readers(said, p)
    assert found.agreement.independence.doubted
    assert any("count these annotators as drawn from many" in line for line in found.warnings)
    alike = assess_readers(*readers(0, 300, 5, 0.0))
    assert not alike.agreement.independence.doubted
    by_items = fl.annotations.evaluate(
        np.stack([5 - said.sum(axis=1), said.sum(axis=1)], axis=1),
        np.stack([1 - p, p], axis=1),
        confidence_level=0.95,
    )["intervals"]
    for metric in ("L", "EL"):
        row = found.get("m", metric)
        assert row.status is Status.OK
        assert row.low < by_items[metric][0]
        assert row.high > by_items[metric][1]
        # By hand: what leaving each of the five out changes.
        each = [
            assess_readers(np.delete(said, j, axis=1), p).get("m", metric).value for j in range(5)
        ]
        reach = student.ppf(0.975, 4) * np.sqrt(0.8 * np.sum((each - np.mean(each)) ** 2))
        assert row.high - row.value == pytest.approx(
            np.hypot(by_items[metric][1] - row.value, reach), rel=1e-6
        )
    # Two cannot tell how annotators differ.
    two = assess_readers(said[:, :2], p)
    assert two.get("m", "EL").status in (Status.ASSUMPTION, Status.CONTRADICTED)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "size"), [(200, 3), (200, 8), (60, 5)])
def test_intervals_over_readers_cover(n, size):
    truth, inside = losses_of_all_readers(0.7), []
    for seed in range(100):
        found = assess_readers(*readers(seed, n, size, 0.7))
        inside.append([
            found.get("m", m).low <= value <= found.get("m", m).high for m, value in truth.items()
        ])  # fmt: skip
    assert (np.mean(inside, axis=0) >= 0.88).all()
