"""Rows that belong together: clusters of predictions, from files, told of where items repeat."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pyarrow as pa
import pytest

import fewlabels as fl
from fewlabels.data.options import column_options
from fewlabels.data.write import native_columns
from worlds import scored

N = 60
CASE = [f"case {i % 12}" for i in range(N)]
READER = [f"r{i // 12}" for i in range(N)]


def table(**columns):
    rng = np.random.default_rng(0)
    named = {"label": rng.integers(2, size=N), "p__net__1": rng.random(N)}
    return pa.table(named | {"case": CASE, "reader": READER} | columns)


def partition(keys):
    """Which rows have one key, whatever the keys are."""
    place = {}
    return [place.setdefault(key, len(place)) for key in keys]


# --- Predictions ----------------------------------------------------------------------------------


def test_they_travel_with_the_rows():
    items = scored(N, clusters={"case": CASE, "reader": READER})
    rows = np.arange(N)[::-2]
    for some, chosen in ((items.take(rows), rows), (items.take(slice(5, 30)), np.arange(5, 30))):
        assert some.clusters["case"].tolist() == [CASE[i] for i in chosen]
        for whole, part in zip(items.cluster_keys, some.cluster_keys, strict=True):
            assert (whole[chosen] == part).all()
    others = (
        items.with_labels(np.zeros(N)), items.with_weight(np.arange(1, N + 1)),
        items.select_models(["model1"]), items.keeping(()), items.thresholded(0.3),
        items.as_part(0.8), items.with_positive(0), pickle.loads(pickle.dumps(items)),
    )  # fmt: skip
    for other in others:
        assert {name: c.tolist() for name, c in other.clusters.items()} == {
            "case": CASE, "reader": READER,
        }  # fmt: skip
    with pytest.raises(ValueError, match="read-only"):
        items.clusters["case"][0] = "x"


def test_a_key_is_of_the_column_and_its_text_alone():
    items = scored(N, clusters={"case": CASE, "again": CASE})
    first, second = items.cluster_keys
    assert first.dtype == np.uint64
    assert partition(first) == partition(second) == partition(CASE)
    assert not (first == second).any()
    other = scored(N, seed=1, clusters={"case": CASE[::-1]})
    assert (other.cluster_keys[0][::-1] == first).all()


def test_without_clusters_every_row_is_one():
    items = scored(N)
    assert (items.cluster_keys[0] == items.keys).all()
    some = scored(N, clusters={"case": [None, np.nan, *CASE[2:]]})
    assert (some.cluster_keys[0][:2] == some.keys[:2]).all()
    assert partition(some.cluster_keys[0][2:]) == partition(CASE[2:])
    (note,) = some.notes
    assert note.startswith("2 rows without a value of the cluster 'case' count as one cluster each")


def test_rows_that_differ_in_cluster_alone_are_told_apart():
    equal = fl.Predictions(np.full(N, 0.3)[:, None], clusters={"case": CASE})
    order = np.random.default_rng(1).permutation(N)
    shuffled = equal.take(order)

    def by_case(items):
        cases = zip(items.clusters["case"].tolist(), items.keys.tolist(), strict=True)
        return sorted(cases)

    assert by_case(equal) == by_case(shuffled)
    assert len(set(equal.keys.tolist())) == N


def test_groups_as_clusters():
    items = scored(N, groups={"case": CASE}, domain=READER)
    known = items.with_clusters(["case", "domain"])
    assert known.clusters["case"].tolist() == CASE
    assert known.clusters["domain"].tolist() == READER
    with pytest.raises(fl.UsageError, match="unknown cluster 'cas'; did you mean 'case'"):
        items.with_clusters("cas")
    estimates = fl.estimate(items, metrics="accuracy", cluster="case")
    assert estimates.predictions.clusters["case"].tolist() == CASE


# --- Files ----------------------------------------------------------------------------------------


def test_columns_of_a_table():
    found = fl.read_predictions(table(), cluster=["case", "reader"])
    assert list(found.clusters) == ["case", "reader"]
    assert found.clusters["case"].tolist() == CASE
    assert list(fl.read_predictions(table(), cluster="case", keep=()).clusters) == ["case"]
    # A column may be the item, the domain or a group as well.
    both = fl.read_predictions(table(), cluster=["case", "reader"], item="case", domain="reader")
    assert (both.item, both.domain.tolist()) == ("case", READER)
    assert list(both.clusters) == ["case", "reader"]


@pytest.mark.parametrize("said", ['cluster = "case"', 'cluster = ["case"]'])
def test_said_in_a_file_of_columns(write, said):
    path = write(said + "\n", "columns.toml")
    assert fl.read_predictions(table(), columns=path).clusters["case"].tolist() == CASE
    options = column_options(columns=path)
    assert options.arguments() == ["--cluster", "case"]
    assert column_options(columns=write(options.to_toml(), "again.toml")) == options
    assert column_options(columns=path, cluster="reader").cluster == ("reader",)


def test_arrays(tmp_path):
    path = tmp_path / "items.npz"
    arrays = {"probabilities": np.linspace(0, 1, N)[:, None], "groups__reader": READER}
    np.savez(path, **arrays, clusters__case=np.array(CASE))
    found = fl.read_predictions(path, cluster="reader", keep=())
    assert {name: c.tolist() for name, c in found.clusters.items()} == {
        "case": CASE, "reader": READER,
    }  # fmt: skip
    with pytest.raises(fl.InputError, match=r"no cluster 'site'; .* are case, reader"):
        fl.read_predictions(path, cluster="site")
    assert fl.diagnose(path).roles["clusters__case"] == "cluster"


def test_written_and_read_again():
    items = scored(N, clusters={"case": CASE})
    again = fl.read_predictions(pa.table(native_columns(items)), cluster="case")
    assert again.clusters["case"].tolist() == CASE


def test_beside_long_votes():
    votes = pa.table({
        "item": ["a", "a", "b", "c"], "annotator": ["x", "y", "x", "y"], "label": [1, 0, 1, 0],
        "talk": ["t", "t", "u", None],
    })  # fmt: skip
    assert fl.read_predictions(votes=votes, cluster="talk").clusters["talk"].tolist() == [
        "t", "u", None,
    ]  # fmt: skip
    wide = pa.table({"item": ["b", "a"], "label": [1, 1], "site": ["v", "w"]})
    found = fl.read_predictions(wide, votes=votes, cluster=["site", "talk"])
    assert found.clusters["site"].tolist() == ["v", "w", None]
    assert found.clusters["talk"].tolist() == ["u", "t", None]


def test_the_doctor_shows_them(write):
    path = write("label,p__a__1,case\n" + "1,.2,x\n0,.7,x\n,.5,y\n")
    found = fl.diagnose(path, cluster="case")
    assert found.roles["case"] == "cluster"
    assert re.search(r"clusters +case", found.summary())
    assert "--cluster case" in found.command
    assert 'cluster = ["case"]' in found.columns


# --- Rows that are fewer items --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["item", "case", "Patient", "question_id", "doc id"])
def test_a_repeated_item_is_told_of(name):
    data = table(**{name: CASE}).drop_columns(["case"] * (name != "case"))
    (note,) = fl.read_predictions(data, keep=()).notes
    where = "" if name == "item" else f" (column '{name}')"
    flag = f"'{name}'" if " " in name else name
    assert note.startswith(f"60 rows are 12 items{where}, and every row counts as one by itself")
    assert note.endswith(f"say --cluster {flag}")
    assert note in fl.estimate(data, metrics="accuracy").warnings
    assert not fl.read_predictions(data, keep=(), cluster=name).notes


def test_nothing_is_told_of_groups_and_single_rows():
    plain = table().drop_columns(["case"])
    for name, values in (
        ("item", range(N)), ("case_type", CASE), ("case", [i % 4 for i in range(N)]),
        ("case", [0, 0, *range(2, N)]),
    ):  # fmt: skip
        data = plain.append_column(name, pa.array(values))
        assert fl.read_predictions(data).notes == (), name


def test_the_coarsest_of_several():
    scan = [f"{c} {i % 24}" for i, c in enumerate(CASE)]
    (note,) = fl.read_predictions(table(scan=scan)).notes
    assert note.startswith("60 rows are 12 items (column 'case')")


@pytest.mark.parametrize("name", ["groups", "clusters"])
def test_what_is_no_mapping_is_refused_in_a_line(name):
    for odd in (np.arange(N), list(range(N)), "case"):
        with pytest.raises(fl.InputError, match=f"`{name}` must map names to arrays"):
            scored(N, **{name: odd})
    with pytest.raises(fl.UsageError, match="`cluster` must be names of groups; got 3"):
        fl.estimate(scored(N), cluster=3)
