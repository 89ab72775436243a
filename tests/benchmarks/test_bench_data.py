"""Files to data sets: what is used, what is left out, and the line that says why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import Protocol, load
from bench.datasets import Dataset, Reading, cut, find_files, name_files, read_datasets
from fewlabels.errors import InputError, UsageError

Write = Callable[..., Path]


def _read(
    path: Path | list[Path], protocol: str | Protocol = "ssme-binary", **reading: Any
) -> tuple[list[Dataset], list[str]]:
    asked = load(protocol) if isinstance(protocol, str) else protocol
    return read_datasets(path if isinstance(path, list) else [path], asked, Reading(**reading))


def test_folders_and_names(write: Write, tmp_path: Path) -> None:
    write("a/data.parquet")
    write("a/more.parquet")
    write("b/predictions.parquet")
    write("b/more.parquet")
    files = find_files([tmp_path])
    assert name_files(files) == ["a", "more", "b-more", "b"]
    # A file at the top hides those below, and one named twice counts once.
    top = write("top.parquet")
    assert find_files([tmp_path, top]) == [top]


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file or folder"):
        find_files([tmp_path / "none"])
    with pytest.raises(InputError, match="holds no files of predictions"):
        find_files([tmp_path])


def test_what_the_methods_never_see(write: Write) -> None:
    labels = np.random.default_rng(0).integers(2, size=300)
    path = write(y__hard=labels, h__0=10 * (labels == 0), h__1=10 * (labels == 1),
                 weight=1.0 + labels)  # fmt: skip
    (world,), skipped = _read(path)
    assert skipped == []
    everything = world.everything
    assert everything.histogram is None
    assert everything.votes is None
    assert everything.models == ("good", "fair", "poor")
    assert (everything.weight == 1).all()
    assert any("they give no probabilities: hard" in n for n in world.facts.notes)
    assert "weights are not used" in world.facts.notes


def test_rows_without_a_label_are_left_out(write: Write) -> None:
    labels = np.random.default_rng(0).integers(2, size=300)
    labels[:20] = -1
    (world,), _ = _read(write(label=labels))
    assert world.everything.n_items == 280
    assert "20 rows without a label are left out" in world.facts.notes


def test_truth_from_annotators(write: Write) -> None:
    (world,), _ = _read(write(n=6, label=None, h__0=[3, 0, 2, 0, 1, 5], h__1=[1, 4, 2, 0, 5, 0]))
    assert world.labels.tolist() == [0, 1, 1, 0]
    assert any("majority of the annotators" in n and "2 rows" in n for n in world.facts.notes)


def test_rows_and_classifiers_that_are_asked_for(write: Write) -> None:
    path = write()
    (world,), _ = _read(path, where=(("site", "north"),), exclude_models=("poor",))
    assert world.everything.n_items == 100
    assert world.facts.models == ("good", "fair")
    (world,), _ = _read(path, models=("poor", "good"))
    assert world.facts.models == ("poor", "good")


def test_files_whose_models_differ(write: Write) -> None:
    here, there = write("here.parquet"), write("there.parquet", models=("good", "other"))
    worlds, skipped = _read([here, there])
    assert [w.facts.models for w in worlds] == [("good", "fair", "poor"), ("good", "other")]
    worlds, skipped = _read([here, there], models=("fair",))
    assert [w.facts.name for w in worlds] == ["here"]
    assert "there.parquet: has no classifier fair (`models`); it has good, other" in skipped[0]
    with pytest.raises(UsageError, match=r"unknown model 'fiar'; did you mean 'fair'\?"):
        _read([here, there], models=("fiar",))
    with pytest.raises(UsageError, match="unknown model 'nobody'"):
        _read([here, there], exclude_models=("nobody",))


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"n_classes": 3}, {}, "has 3 classes; ssme-binary serves two classes"),
        ({"label": None}, {}, "has no labels to compare with"),
        ({"models": ()}, {}, "no prediction columns"),
        ({"label": np.zeros(300, dtype=int)}, {}, "class 1 has fewer than 2 items"),
        ({}, {"where": (("place", "north"),)}, "has no column 'place'"),
        ({}, {"where": (("site", "east"),)}, "no row is left by `where` site=east"),
        ({}, {"exclude_models": ("good", "fair", "poor")}, "no classifier is left"),
    ],
)
def test_files_that_cannot_be_used(
    write: Write, columns: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    bad, good = write("bad.parquet", **columns), write("good.parquet")
    with pytest.raises(InputError, match=r"no file can be used for protocol 'ssme-binary': .*"
                                         + message):  # fmt: skip
        _read(bad, **options)
    if not options:
        worlds, skipped = _read([bad, good])
        assert [w.facts.name for w in worlds] == ["good"]
        assert message in skipped[0]
        assert "\n" not in skipped[0]


def test_groups(write: Write) -> None:
    protocol = load("ssme-subgroup").with_options(by=["site", "age", "wealth"])
    (world,), _ = _read(write(), protocol)
    assert world.by == ("site", "age")
    assert "no column 'wealth' to estimate by" in world.facts.notes
    assert set(world.everything.groups["age"]) == {
        "<30", "30 to <40", "40 to <50", "50 to <60", ">=60",
    }  # fmt: skip
    protocol = protocol.with_options(by=["wealth"])
    with pytest.raises(InputError, match="has no column 'wealth' to estimate by"):
        _read(write(), protocol)


def test_numeric_groups_are_cut() -> None:
    values = np.array([str(k) for k in range(100)] + [None], dtype=object)
    rows = np.ones(101, dtype=bool)
    groups, notes = cut(values, rows, "age", None)
    assert notes == ["column 'age' is cut at its quintiles (19, 39, 59, 79); other edges by `bins`"]
    assert groups[[0, 19, 99]].tolist() == ["<19", "19 to <39", ">=79"]
    assert groups[100] is None
    few, notes = cut(values[:12], rows[:12], "age", None)
    assert few.tolist() == values[:12].tolist()
    assert notes == []
    assert cut(values[:3], rows[:3], "age", [1.5])[0].tolist() == ["<1.5", "<1.5", ">=1.5"]
    with pytest.raises(InputError, match="not all its values are numbers"):
        cut(np.array(["a"], dtype=object), rows[:1], "age", [1.0])
