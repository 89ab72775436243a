"""A run: its rows, what it keeps and resumes, what it varies, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewlabels as fl
from bench import Results
from bench.datasets import cut, find_files, name_files
from bench.experiment import Bench
from bench.results import CELLS, COLUMNS
from bench.splits import draw, halve
from bench.world import Body, Cell, likeness, quality, sharpen
from fewlabels import FewlabelsError, InputError, UsageError

Run = Callable[..., Results]
Write = Callable[..., Path]
Same = Callable[[Results, Results], bool]


def estimates(found: Results, column: str = "estimate", **keys: Any) -> np.ndarray:
    rows = found.rows
    for name, value in keys.items():
        rows = rows[rows[name] == value]
    return rows[column].to_numpy()


def test_every_row_is_there_once(short: Run) -> None:
    found = short()
    assert list(found.rows) == list(COLUMNS)
    keys = list(COLUMNS)[: list(COLUMNS).index("estimate")]
    assert not found.rows.duplicated(keys).any()
    rows = found.rows[found.rows["factor"] == ""]
    # Three methods (with the floor), two runs, three classifiers, two metrics.
    assert len(rows) == 3 * 2 * 3 * 2
    assert set(rows["status"]) <= {"ok", "few-labels", "assumption", "contradicted"}
    curve = found.rows[found.rows["factor"] == "curve"]
    assert sorted(set(curve["n_labeled"])) == [10, 20, 30, 40]
    assert np.isfinite(found.rows["truth"]).all()


def test_values_are_those_of_estimate(short: Run, write: Write) -> None:
    """By hand: the accuracy of each half of the data, and the estimates of the public function."""
    path = write()
    found = short(data=path)
    frame = pd.read_parquet(path)
    half, others = halve(300, 1)
    right = {m: (frame[f"p__{m}__1"] > 0.5) == frame["label"] for m in ("good", "fair", "poor")}
    items = fl.read_predictions(path, keep=())
    rows, labeled = draw("released", items.labels, half, 10, 40, 2, run=1, seed=0, dataset="toy")
    seen = items.take(rows).with_labels(np.where(labeled, items.labels[rows], -1))
    ensemble = fl.estimate(seen, "ensemble", ["accuracy"], confidence_level=None, estimand="sample")
    for model, hits in right.items():
        at = {"run": 1, "factor": "", "metric": "accuracy", "model": model}
        (truth,) = estimates(found, "truth", method="labeled", **at)
        assert truth == pytest.approx(hits[others].mean())
        for method, of in (("labeled", rows[labeled]), ("all-labels-known", rows)):
            (value,) = estimates(found, method=method, **at)
            assert value == pytest.approx(hits[of].mean())
        (row,) = (row for row in ensemble.rows if row.model == model)
        assert estimates(found, method="ensemble", **at) == pytest.approx([row.value])


@pytest.mark.slow
def test_workers_and_going_on_do_not_show(
    short: Run, write: Write, tmp_path: Path, same: Same, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write()
    whole = short(data=data, runs=3, n_labeled=[10, 20])
    compute = Bench.run

    def stop(bench: Bench, cell: Cell) -> Body:
        if (cell.kind, cell.run) == ("estimates", 1):
            raise KeyboardInterrupt
        return compute(bench, cell)

    with monkeypatch.context() as patched:
        patched.setattr(Bench, "run", stop)
        with pytest.raises(KeyboardInterrupt):
            short(data=data, out=tmp_path / "other")
    cells = tmp_path / "other" / CELLS
    kept = cells.read_bytes()
    assert kept.count(b"\n") > 5
    # A line that was damaged, one of other settings, and one that was cut short are not taken.
    other = kept.replace(b'"settings": "', b'"settings": "0')
    cells.write_bytes(b"not a line\n" + other + kept[:-40])
    grown = short(
        data=data, out=tmp_path / "other", runs=3, n_labeled=[10, 20], workers=2, resume=True
    )
    assert same(whole, grown)
    assert same(Results.load(tmp_path / "other"), grown)
    assert kept[: kept[:-40].rindex(b"\n")] in cells.read_bytes()


def test_folders_that_cannot_be_used(short: Run, write: Write, tmp_path: Path) -> None:
    data = write()
    short(data=data)
    with pytest.raises(UsageError, match="holds a benchmark; go on by `resume`"):
        short(data=data)
    with pytest.raises(UsageError, match="holds protocol 'ssme-binary', not 'ssme-ess'"):
        short("ssme-ess", data=data, resume=True)
    with pytest.raises(InputError, match="nothing to resume"):
        short(data=data, out=tmp_path / "none", resume=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "report.md").write_text("a person's")
    with pytest.raises(UsageError, match=r"holds report.md of something else"):
        short(data=data, out=tmp_path / "mine")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write in"):
        short(data=data, out=tmp_path / "file" / "below")
    (tmp_path / "out" / "results.parquet").write_text("broken")
    with pytest.raises(InputError, match="holds no finished benchmark"):
        Results.load(tmp_path / "out")
    (tmp_path / "out" / "manifest.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        short(data=data, resume=True)


def test_what_a_method_cannot_do_is_a_row(short: Run, write: Write) -> None:
    found = short("ssme-multiclass", data=write(n_classes=3), methods=["labeled", "spe"])
    lost = found.rows[found.rows["model"] == ""]
    assert set(lost["method"]) == {"spe"}
    assert set(lost["status"]) == {"not-applicable"}
    assert lost["message"].str.len().min() > 10


def test_active_testing_asks_for_its_labels(short: Run) -> None:
    found = short(methods=["labeled", "active-testing"], metrics=["accuracy"])
    assert np.isfinite(estimates(found, method="active-testing")).all()


def test_intervals_are_for_the_population(short: Run) -> None:
    found = short(confidence_level=0.9, metrics=["accuracy"])
    assert found.protocol.estimand == "population"
    rows = found.rows[found.rows["factor"] == ""]
    assert (rows["low"] <= rows["estimate"]).all()
    assert (rows["estimate"] <= rows["high"]).all()


@pytest.mark.slow
def test_groups_rows_and_classifiers_that_are_asked_for(short: Run, write: Write) -> None:
    label = [None if k % 10 == 0 else k % 2 for k in range(300)]
    found = short(
        data=write(label=label), by=["site", "age"], bins={"age": [40]}, models=["good", "poor"],
        where={"site": "south"}, n_unlabeled=[30],
    )  # fmt: skip
    assert set(found.rows["group"]) == {"", "site=south", "age=<40", "age=>=40"}
    assert found.datasets[0].models == ("good", "poor")
    assert found.datasets[0].n_items == 180
    assert {"only rows of site=south", "20 rows without a label are left out"} <= {
        *found.datasets[0].notes
    }


def test_numeric_groups_are_cut() -> None:
    ages = pd.Series([*range(20, 70), None], name="age").astype(object)
    names, notes = cut(ages, None)
    assert pd.Series(names).value_counts().tolist() == [11, 10, 10, 10, 9]
    assert names[-1] is None
    assert "cut at its quintiles (29, 39, 49, 59)" in notes[0]
    names, _ = cut(ages, [30.0, 50.5])
    assert list(dict.fromkeys(names)) == ["<30", "30 to <50.5", ">=50.5", None]
    with pytest.raises(InputError, match="column 'x' cannot be cut"):
        cut(pd.Series(["a", "b"], name="x"), [1.0])


def test_folders_and_names(write: Write, tmp_path: Path) -> None:
    paths = [write(f"{name}.parquet") for name in ("b/data", "a", "c/toy", "d/toy")]
    found = find_files([tmp_path / "b", tmp_path / "a.parquet", tmp_path / "c", tmp_path / "d"])
    assert found == paths
    assert name_files(found) == ["b", "a", "toy", "d-toy"]


# --- what is varied ------------------------------------------------------------------------------


@pytest.mark.slow
def test_sharpening_keeps_the_order(short: Run) -> None:
    assert sharpen(np.array([[0.8, 0.2]]), 2)[0, 0] == pytest.approx(0.64 / 0.68)
    found = short("ssme-ensembling", levels=[1, 2], metrics=["roc_auc", "ece"])
    at = {"factor": "sharpness", "method": "labeled"}
    auc, ece = ([estimates(found, "truth", level=level, metric=m, **at) for level in "12"]
                for m in ("roc_auc", "ece"))  # fmt: skip
    assert auc[0] == pytest.approx(auc[1])
    assert not np.allclose(*ece)


def test_drawn_and_expected_labels_and_item_by_item(short: Run) -> None:
    found = short("ssme-drawn-vs-expected", methods=["labeled", "ensemble"], curve_runs=0)
    by_item = found.rows[(found.rows["level"] == "by-item") & (found.rows["method"] == "ensemble")]
    known = by_item.set_index("metric")["estimate"].notna()
    assert known["ece_quantile"].all()
    assert not known["accuracy"].any()


def test_subsets_and_how_alike_they_are(short: Run, write: Write) -> None:
    found = short("ssme-correlation", data=write(models=("a", "b", "c", "d")), subsets=3, runs=1)
    levels = {*found.rows["level"]}
    assert len(levels) == 3
    for level in levels:
        assert {*estimates(found, "model", level=level)} == {*level.split("+")}
    traits = found.traits[found.traits["name"] == "error_correlation"].set_index("level")["value"]
    a, b, c = (level := min(levels)).split("+")
    assert traits[level] == pytest.approx(traits[[f"{a}+{b}", f"{a}+{c}", f"{b}+{c}"]].mean())


def test_likeness_of_made_up_pairs() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=4000)
    logit, noise = (1.5 * (2 * labels - 1) + rng.standard_normal(4000) for _ in range(2))
    p = 1 / (1 + np.exp(-np.stack([logit, logit, noise], axis=1)))
    predictions = fl.Predictions(p, labels, models=["a", "copy", "other"])
    found = likeness(predictions)
    assert found["a", "copy"] == pytest.approx(dict.fromkeys(found["a", "copy"], 1.0))
    apart = found["a", "other"]
    assert apart["score_correlation"] == pytest.approx(1.5**2 / (1.5**2 + 1), abs=0.03)
    assert apart["score_correlation_within_class"] == pytest.approx(0, abs=0.05)
    assert apart["error_correlation"] == pytest.approx(0, abs=0.05)
    accuracy = quality(predictions)["mean_accuracy"]
    assert apart["agreement"] == pytest.approx(accuracy**2 + (1 - accuracy) ** 2, abs=0.02)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """600 rows with a number to slice by, another, a text, and a label."""
    rng = np.random.default_rng(0)
    age, x = rng.integers(18, 90, size=600), rng.standard_normal(600)
    label = rng.random(600) < 1 / (1 + np.exp(-2 * x - 0.05 * (age - 50)))
    frame = pd.DataFrame({
        "age": age, "x": np.where(np.arange(600) % 50, x, np.nan), "split": "train",
        "town": rng.choice(["a", "b", "c", None], 600), "label": np.where(label, "yes", "no"),
    })  # fmt: skip
    frame.to_parquet(tmp_path / "table.parquet")
    return tmp_path / "table.parquet"


def test_trained_sets(short: Run, table: Path) -> None:
    options = {"data": table, "train_rows": 20, "truth_rows": 200, "levels": [2, 3]}
    found = short("ssme-semisynthetic", metrics=["accuracy"], **options)
    assert found.datasets[0].models == ("classifier_1", "classifier_2", "classifier_3")
    assert "not used as features: split" in found.datasets[0].notes
    assert {*estimates(found, "model", level="2")} == {"classifier_1", "classifier_2"}
    # The sets of three hold the sets of two, and a run is judged on the same rows.
    at = {"model": "classifier_2", "method": "labeled"}
    two, three = (estimates(found, "truth", level=level, **at) for level in "23")
    assert np.array_equal(two, three)
    # Classifiers are new in every run.
    assert two[0] != two[1]
    own = estimates(found, "truth", level="2", run=0, method="labeled")
    traits = found.traits[(found.traits["level"] == "2") & (found.traits["run"] == 0)]
    assert traits.set_index("name")["value"]["mean_accuracy"] == pytest.approx(own.mean())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slice_by": "height"}, r"has no column 'height' \(`slice_by`\)"),
        ({"slice_by": "town"}, r"column 'town' \(`slice_by`\) has no numbers"),
        ({"truth_rows": 10_000}, "has 600 labeled rows; 10,000 for the truth"),
        ({"columns": {"label": "town"}}, "serves two classes; 'town' has 3"),
    ],
)
def test_tables_that_cannot_be_used(
    short: Run, table: Path, options: dict[str, Any], message: str
) -> None:
    asked = {"train_rows": 20, "truth_rows": 200, "levels": [2]} | options
    with pytest.raises(InputError, match=message):
        short("ssme-semisynthetic", data=table, **asked)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["nothing"]}, "unknown method 'nothing'"),
        ({"methods": ["ssme-kde[size=3]"]}, "unknown setting 'size'"),
        ({"metrics": ["nothing"]}, "nothing"),
        ({"tables": ["nothing"]}, "unknown table 'nothing'; choose from methods"),
        ({"runs": 0}, "`runs` must be at least 1; got 0"),
        ({"runs": "2"}, "`runs` must be a whole number; got '2'"),
        ({"sampler": "all"}, "`sampler` must be one of released, uniform; got 'all'"),
        ({"bins": {"age": [3, 1]}}, "rising numbers"),
        ({"factor": "classifiers", "levels": [2]}, "cannot vary 'classifiers'"),
        ({"factor": "sharpness", "levels": [-1]}, "numbers above 0; got '-1'"),
        ({"nothing": 1}, "unknown field `nothing`"),
        ({"n_unlabeled": [500]}, "nothing can run: .* needs 512 items, .* from 150; ask for fewer"),
        ({"where": {"nothing": "1"}}, "has no column 'nothing'"),
        ({"by": ["nothing"]}, "has no column 'nothing' to estimate by"),
        ({"models": ["nothing"]}, "has no classifier 'nothing'"),
        ({"protocol": "ssme-multiclass"}, "has 2 classes; ssme-multiclass serves more than two"),
        ({"protocol": "ssme-correlation", "models": ["good"]}, "subsets need 3 .`subset_size`"),
    ],
)
def test_requests_that_are_refused(short: Run, options: dict[str, Any], message: str) -> None:
    with pytest.raises(FewlabelsError, match=message):
        short(options.pop("protocol", "ssme-binary"), **options)
