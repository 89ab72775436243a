"""What is asked for: options without a use, sizes, counts, estimands, and lines that say so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import Results, load
from bench.cells import DatasetFacts
from bench.experiment import MOST_CELLS, curve_sizes, fitting, plan
from bench.protocol import parse
from bench.world import World
from fewlabels.errors import InputError, UsageError

Run = Callable[..., Results]
Write = Callable[..., Path]

OWN = 'title = "t"\nmethods = ["labeled"]\nmetrics = "accuracy"\nn_labeled = 5\nn_unlabeled = 9\n'


# --- estimand of intervals --------------------------------------------------------------------


def test_intervals_are_for_the_population(short: Run, write: Write, tmp_path: Path) -> None:
    path = write()
    found = short(data=path, confidence_level=0.9, metrics=["accuracy"])
    assert found.protocol.estimand == "population"
    again = short(data=path, confidence_level=0.9, metrics=["accuracy"], resume=True)
    assert again.protocol.estimand == "population"
    options = {"confidence_level": 0.9, "estimand": "sample", "metrics": ["accuracy"]}
    kept = short(data=path, out=tmp_path / "sample", **options)
    assert kept.protocol.estimand == "sample"
    # What was begun with the other estimand goes on with it.
    del options["estimand"]
    for protocol in ("ssme-binary", load("ssme-binary")):
        grown = short(protocol, data=path, out=tmp_path / "sample", resume=True, **options)
        assert grown.protocol.estimand == "sample"


def test_a_protocol_says_its_estimand_or_it_follows() -> None:
    text = OWN + "runs = 2\nconfidence_level = 0.9\n"
    assert parse(text, "x").estimand == "population"
    assert parse(text + 'estimand = "sample"\n', "x").estimand == "sample"
    assert parse(OWN + "runs = 2\n", "x").estimand == "sample"
    labels = 'factor = "labels"\nlevels = ["drawn", "expected"]\n'
    assert parse(text + labels, "x").estimand == "sample"


# --- sizes and counts -------------------------------------------------------------------------


def _facts(n_items: int, n_classes: int = 2) -> DatasetFacts:
    models, classes = ("m",), tuple(range(n_classes))
    return DatasetFacts("d", n_items, n_items // 2, models, classes, (), (), "d.csv", "0")


class Made(World):
    """A data set that is planned for and never read."""

    by = ()

    def __init__(self, n_items: int, levels: tuple[str, ...] = ("",)) -> None:
        self.facts = _facts(n_items)
        self._levels = levels

    def levels(self) -> tuple[str, ...]:
        return self._levels

    halves = predictions = traits = traits_of_run = None  # type: ignore[assignment]


Made.__abstractmethods__ = frozenset()


def test_sizes_that_do_not_fit_are_one_reason() -> None:
    sizes, lines = fitting(load("ssme-binary"), _facts(600))
    assert sizes == []
    assert lines == [
        "n_labeled 20, 50, 100 with n_unlabeled 1,000 needs up to 1,102 items, and a run draws "
        "from 300 (half of its 600 items are kept for the truth); the largest `n_unlabeled` that "
        "works with n_labeled 20, 50, 100 is 198"
    ]
    fits = load("ssme-binary").with_options(n_unlabeled=198)
    assert fitting(fits, _facts(600)) == ([(20, 198), (50, 198), (100, 198)], [])
    assert fitting(fits.with_options(n_unlabeled=199), _facts(600))[0] == [(20, 199), (50, 199)]
    few = fitting(load("ssme-binary"), _facts(30))[1][0]
    assert few.endswith("n_labeled and n_unlabeled can be 13 together")
    trained = fitting(load("ssme-semisynthetic"), replace(_facts(600), n_half=200))[1][0]
    assert "draws from 200 (the others of its 600 rows are for the truth and for train" in trained
    many = load("ssme-multiclass").with_options(n_labeled=[5, 20], n_unlabeled=10)
    sizes, lines = fitting(many, _facts(600, 10))
    assert sizes == [(20, 10)]
    assert lines == ["n_labeled 5: one label of each of 10 classes needs more labels"]


def test_each_data_set_says_it_once(short: Run, write: Write, tmp_path: Path) -> None:
    write("one.parquet"), write("two.parquet", seed=1)
    with pytest.raises(InputError, match=r"^nothing can run: one: n_labeled 10, 20") as found:
        short(data=tmp_path, n_labeled=[10, 20], n_unlabeled=[500, 1000])
    said = str(found.value)
    assert said.count("one: ") == said.count("two: ") == 1


def test_runs_and_cells_have_a_limit() -> None:
    with pytest.raises(UsageError, match="`runs` must be a whole number from 1 to 100,000; got 1"):
        load("ssme-binary").with_options(runs=10**8)
    protocol = load("ssme-binary").with_options(runs=100_000, n_unlabeled=100)
    with pytest.raises(UsageError, match=r"this makes 4,000,\d+ cells .* more than 3,000,000; ask"):
        plan(protocol, [Made(600)])
    jobs, _ = plan(protocol.with_options(runs=30, curve_runs=0), [Made(600), Made(900)])
    assert sum(map(len, jobs)) == 2 * (1 + 30 + 30 * 3 * 13)
    assert MOST_CELLS < 10_000_000


def test_curves_are_not_made_longer_than_the_data() -> None:
    long = load("ssme-binary").with_options(curve_first=1, curve_last=10**12, curve_step=7)
    assert curve_sizes(long, Made(60)) == [8, 15, 22]
    assert curve_sizes(long, Made(4)) == []
    usual = load("ssme-binary")
    assert curve_sizes(usual, Made(10**6)) == list(range(10, 1001, 5))


# --- options without a use --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "options", "message"),
    [
        ("ssme-binary", {"levels": [1, 2]}, "`levels` have no use in protocol 'ssme-binary', whi"),
        ("ssme-correlation", {"levels": ["a+b"]}, "which makes its levels from the classifiers"),
        ("ssme-binary", {"slice_by": "age"}, "`slice_by` serves protocols that train their"),
        ("ssme-binary", {"train_rows": 50}, "`train_rows` serves protocols that train"),
        ("ssme-binary", {"truth_rows": 50}, "`truth_rows` serves protocols that train"),
        ("ssme-ess", {"curve_runs": 0}, "`curve_runs` must be at least 1 .* effective-sizes, labe"),
        ("ssme-drawn-vs-expected", {"estimand": "sample"}, "`estimand` has no use in protocol"),
        ("ssme-binary", {"bins": {"age": [30]}}, r"`bins` cuts column 'age', .* by \(none\); name"),
        ("ssme-subgroup", {"by": ["site"], "bins": {"age": [30]}}, r"by \('site'\); name it with"),
        ("ssme-subgroup", {"by": ["site"], "bins": {"site": [3]}}, r"'site' cannot be cut \(`bins"),
        ("ssme-semisynthetic", {"bins": {"age": [30]}}, "`bins` serves files of predictions"),
        ("ssme-semisynthetic", {"columns": {"classes": ["a"]}}, "only `label` can be named"),
        ("ssme-binary", {"tables": ["method"]}, "unknown table 'method'; did you mean 'methods'"),
    ],
)
def test_options_that_would_be_ignored(
    short: Run, protocol: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((UsageError, InputError), match=message):
        short(protocol, **options)


def test_bins_of_the_protocol_itself_are_no_request(short: Run) -> None:
    found = short("ssme-subgroup", by=["site"], metrics=["accuracy"])
    assert found.protocol.bins == {"age": (30.0, 40.0, 50.0, 60.0)}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("levels = [2]\n", "protocol 'x': `levels` have no use"),
        ('curve_runs = 0\nfigures = "labeled-curve"\n', "protocol 'x': `curve_runs` must be at"),
    ],
)
def test_files_whose_fields_would_be_ignored(more: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(OWN + "runs = 2\n" + more, "x")


# --- what is said of data ---------------------------------------------------------------------


def test_data_that_are_no_paths(short: Run, write: Write) -> None:
    table = pq.read_table(write())
    for data, kind in ((table, "Table"), ([table], "Table"), (3, "int"), ([b"x"], "bytes")):
        with pytest.raises(UsageError, match=f"`data` must be paths of files .*; got {kind}: save"):
            short(data=data)
    short(data=iter([write()]), runs=1)


@pytest.mark.parametrize("prefix", ["y__", "s__"])
def test_votes_or_scores_alone(short: Run, tmp_path: Path, prefix: str) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=300)
    pq.write_table(pa.table({"label": labels, f"{prefix}net": labels}), tmp_path / "v.parquet")
    with pytest.raises(InputError, match="has votes or scores alone, and a benchmark needs proba"):
        short(data=tmp_path / "v.parquet")


def test_lines_that_name_what_to_do(short: Run, write: Write, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no classifier is left .*; those that do are good, fair"):
        short(exclude_models=["good", "fair", "poor"])
    with pytest.raises(InputError, match=r"'sex', 'race' to .* with `by`: there are 'site', 'age'"):
        short("ssme-subgroup", by=["sex", "race"])
    with pytest.raises(InputError, match="class 1 has fewer than 2 items; label more of it, or"):
        short(data=write(label=np.zeros(300, dtype=int)))
    with pytest.raises(InputError, match=r"has 1 classifier, and subsets need 3: .*`subset_size`"):
        short("ssme-correlation", data=write(models=("a",)))


def test_a_table_to_train_on_without_a_column_to_slice(short: Run, write: Write) -> None:
    own = load("ssme-semisynthetic").with_options(slice_by="")
    with pytest.raises(InputError, match="holds predictions; ssme-semisynthetic trains its own"):
        short(own)
    table = write(models=())
    with pytest.raises(
        InputError, match="name it with `slice_by`: there are 'label', 'site', 'age"
    ):
        short(own, data=table)
