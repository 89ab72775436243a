"""Vectors and objects in cells, one-hot labels, logits, no header, spaces, a file per classifier.

The worlds are generated, and the truth is that of their arrays; the files of others are read too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fewlabels as fl
from fewlabels.data.read import column_names

ROOT = Path(__file__).resolve().parents[3]
CASES = Path(os.environ.get("FEWLABELS_DATA", ROOT / "shared" / "data")) / "field_cases"

N, CLASSES = 120, ["bird", "cat", "dog"]
RNG = np.random.default_rng(3)
Y = RNG.integers(0, 3, N)
Z = RNG.normal(size=(N, 3))
Z[np.arange(N), Y] += 1.6
P = np.round(np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True), 6)
P[:, 2] = np.round(1 - P[:, 0] - P[:, 1], 6)
SHOWN = np.arange(N) < 80
LABEL = [CLASSES[k] if shown else None for k, shown in zip(Y, SHOWN, strict=True)]
TRUTH = float((P.argmax(axis=1) == Y)[SHOWN].mean())
ROWS = P.tolist()
NAMED = [dict(zip(CLASSES, row, strict=True)) for row in ROWS]
LOGITS = np.round(Z, 6)


def accuracy(items: fl.Predictions) -> dict[str, float]:
    found = fl.estimate(items, "labeled", "accuracy", estimand="sample", confidence_level=None)
    return {row.model: row.value for row in found.rows}


def both_ways(path: Path, **columns: Any) -> fl.Predictions:
    """Read whole; that the stream says the same is checked."""
    items = fl.read_predictions(path, columns=columns or None)
    streamed = fl.estimate_files(
        path, method="labeled", metrics="accuracy", confidence_level=None, columns=columns or None
    )
    assert {r.model: r.value for r in streamed.rows} == pytest.approx(accuracy(items))
    for note in items.notes:
        assert "renormalised" in note or note in streamed.warnings
    return items


def table(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"label": LABEL, **columns})


# Vectors and objects ------------------------------------------------------------------------------

WRITTEN: dict[str, Callable[[int], str]] = {
    "JSON": lambda i: json.dumps(ROWS[i]),
    "Python tuple": lambda i: str(tuple(ROWS[i])),
    "numpy": lambda i: str(P[i]),
    "numpy over lines": lambda i: "[" + "\n ".join(map(str, ROWS[i])) + "]",
    "numpy 2 scalars": lambda i: "[" + ", ".join(f"np.float64({v})" for v in ROWS[i]) + "]",
    "array": lambda i: f"array({ROWS[i]}, dtype=float32)",
    "tensor": lambda i: f"tensor({ROWS[i]}, device='cuda:0')",
    "nested": lambda i: str([ROWS[i]]),
}
OBJECTS: dict[str, Callable[[int], str]] = {
    "JSON object": lambda i: json.dumps(NAMED[i]),
    "Python dict": lambda i: str(NAMED[i]),
    "labels and scores": lambda i: json.dumps(
        sorted(
            ({"label": c, "score": p} for c, p in NAMED[i].items()), key=lambda one: -one["score"]
        )
    ),
    "pairs": lambda i: str(list(NAMED[i].items())),
}
ORDER = (
    "the numbers in column 'net_probs' are taken in the order of the classes (bird, cat, dog); "
    "--classes says another"
)


@pytest.mark.few(5)
@pytest.mark.parametrize("kind", [*WRITTEN, *OBJECTS])
def test_texts_of_vectors_and_objects(kind: str, tmp_path: Path) -> None:
    written = (WRITTEN | OBJECTS)[kind]
    table(net_probs=[written(i) for i in range(N)]).to_csv(tmp_path / "t.csv", index=False)
    items = both_ways(tmp_path / "t.csv")
    assert accuracy(items) == pytest.approx({"net": TRUTH})
    assert items.classes == tuple(CLASSES)
    np.testing.assert_allclose(items.probabilities[:, 0], P, atol=1e-5)
    assert (ORDER in items.notes) == (kind in WRITTEN)


FRAMES: dict[str, Callable[[], Any]] = {
    "pandas arrays": lambda: table(net_probs=list(P)),
    "pandas lists": lambda: table(net_probs=ROWS),
    "pandas dicts": lambda: table(net_probs=NAMED),
    "polars list": lambda: pl.DataFrame({"label": LABEL, "net_probs": ROWS}),
    "polars array": lambda: pl.DataFrame({"label": LABEL, "net_probs": P}),
    "polars struct": lambda: pl.DataFrame({"label": LABEL, "net_probs": NAMED}),
    "arrow fixed": lambda: pa.table(
        {"label": LABEL, "net_probs": pa.FixedSizeListArray.from_arrays(pa.array(P.ravel()), 3)}
    ),
    "columns": lambda: {"label": LABEL, "net_probs": ROWS},
    "rows": lambda: [{"label": a, "net_probs": b} for a, b in zip(LABEL, ROWS, strict=True)],
    "rows of objects": lambda: [
        {"label": a, "net_probs": b} for a, b in zip(LABEL, NAMED, strict=True)
    ],
}


@pytest.mark.parametrize("kind", FRAMES)
def test_vectors_in_frames(kind: str) -> None:
    items = fl.read_predictions(FRAMES[kind]())
    assert accuracy(items) == pytest.approx({"net": TRUTH})


@pytest.mark.parametrize(
    "column",
    [
        pa.array(ROWS),
        pa.array(NAMED),
        pa.array(ROWS, pa.large_list(pa.float32())),
        pa.FixedSizeListArray.from_arrays(pa.array(P.ravel()), 3),
        pa.array([row if i % 7 else None for i, row in enumerate(ROWS)]),
    ],
    ids=lambda column: str(column.type)[:20],
)
def test_vectors_in_parquet(column: pa.Array, tmp_path: Path) -> None:
    pq.write_table(pa.table({"label": LABEL, "probs": column}), tmp_path / "t.parquet")
    items = both_ways(tmp_path / "t.parquet")
    there = SHOWN & np.array(column.is_valid().to_pylist())
    truth = (P.argmax(axis=1) == Y)[there].mean()
    assert accuracy(items) == pytest.approx({"probs": truth})


def test_json_lines_and_many_row_groups(tmp_path: Path) -> None:
    lines = [json.dumps({"label": a, "probs": b}) for a, b in zip(LABEL, ROWS, strict=True)]
    (tmp_path / "t.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert accuracy(fl.read_predictions(tmp_path / "t.jsonl")) == pytest.approx({"probs": TRUTH})
    pq.write_table(
        pa.table({"label": LABEL, "probs": ROWS}), tmp_path / "t.parquet", row_group_size=7
    )
    assert accuracy(both_ways(tmp_path / "t.parquet")) == pytest.approx({"probs": TRUTH})


def test_a_vector_is_named_as_one_column(tmp_path: Path) -> None:
    texts = [str(row) for row in ROWS]
    table(a=texts, b=texts).to_csv(tmp_path / "t.csv", index=False)
    items = both_ways(tmp_path / "t.csv", label="label", models={"a": ["a"], "b": ["b"]})
    assert accuracy(items) == pytest.approx({"a": TRUTH, "b": TRUTH})


def test_another_order_is_refused_and_can_be_said(tmp_path: Path) -> None:
    """Nothing but the labels says that the numbers are of other classes than their order has."""
    path = tmp_path / "t.csv"
    table(probs=[str(row) for row in P[:, [2, 0, 1]].tolist()]).to_csv(path, index=False)
    with pytest.raises(fl.InputError, match=r"another order.*say --classes dog,bird,cat"):
        fl.read_predictions(path)
    with pytest.raises(fl.InputError, match="say --classes dog,bird,cat"):
        fl.estimate_files(path)
    items = both_ways(path, classes=["dog", "bird", "cat"])
    assert accuracy(items) == pytest.approx({"probs": TRUTH})


def test_a_cell_unlike_the_others_is_refused_with_its_place(tmp_path: Path) -> None:
    texts = [str(row) for row in ROWS]
    path = tmp_path / "t.csv"
    table(probs=[*texts[:50], str(ROWS[50][:2]), *texts[51:]]).to_csv(path, index=False)
    for read in (fl.read_predictions, fl.estimate_files):
        with pytest.raises(fl.InputError, match=r"holds 2 numbers in row 51.*and 3 in the first"):
            read(path)
    # Behind the rows by which it is told what the column is.
    for cell, said in (
        ("[0.1 0.2 ... 0.7]", r"numpy shortened.*set_printoptions"),
        ("[0.1, high, 0.7]", r"holds no numbers in row 1201"),
    ):
        frame = pd.DataFrame({"label": LABEL * 11, "probs": texts * 11})
        frame.loc[1200, "probs"] = cell
        frame.to_csv(path, index=False)
        with pytest.raises(fl.InputError, match=said):
            fl.read_predictions(path)


def test_what_is_no_vector_of_classes_is_said_and_not_used(tmp_path: Path) -> None:
    embedding = [str(row) for row in RNG.normal(size=(N, 8)).round(2).tolist()]
    ragged = [str(list(range(1 + i % 5))) for i in range(N)]
    tags = ["['a', 'b']"] * N
    path = tmp_path / "t.csv"
    table(net=[str(o) for o in NAMED], emb=embedding, tokens=ragged, tags=tags).to_csv(
        path, index=False
    )
    items = both_ways(path)
    assert accuracy(items) == pytest.approx({"net": TRUTH})
    assert any("'emb' holds 8 numbers" in note for note in items.notes)
    assert not any("--logits" in note for note in items.notes), "of three classes it is refused"
    assert any("'tokens' holds lists of 1 to 5 numbers" in note for note in items.notes)


def test_tags_in_one_cell_are_told_how_to_be_tasks(tmp_path: Path) -> None:
    has = RNG.random((N, 5)) < 0.5
    names = np.array(["clear", "primary", "water", "road", "haze"])
    frame = pd.DataFrame({"id": np.arange(N), "tags": [" ".join(names[row]) for row in has]})
    with pytest.raises(fl.InputError, match=r"'tags' holds several tags .*get_dummies\(' '\)"):
        fl.read_predictions(frame)
    said = has ^ (RNG.random((N, 5)) < 0.2)
    other = pd.DataFrame({"id": np.arange(N), "tags": [" ".join(names[row]) for row in said]})
    flags = [
        f.tags.str.get_dummies(" ").add_prefix(p) for f, p in ((frame, "true_"), (other, "pred_"))
    ]
    items = fl.read_predictions(pd.concat([frame[["id"]], *flags], axis=1))
    assert set(items.tasks) == {*names}
    assert (items.votes[:, 0] == items.labels).mean() == pytest.approx((has == said).mean())


def test_few_classes_among_the_labels_are_asked_for(tmp_path: Path) -> None:
    some = [None if label == "dog" else label for label in LABEL]
    frame = pd.DataFrame({"label": some, "probs": ROWS})
    with pytest.raises(fl.InputError, match="name the classes in the order of its columns"):
        fl.read_predictions(frame)
    items = fl.read_predictions(frame, classes=CLASSES)
    truth = (P.argmax(axis=1) == Y)[SHOWN & (Y < 2)].mean()
    assert accuracy(items) == pytest.approx({"probs": truth})


def test_two_classes_numbered_from_one() -> None:
    """Names of places are no names of classes: [1] is the second number, of class 2."""
    p = P[:, 1] / (P[:, 0] + P[:, 1])
    labels = np.where(Y == 0, 1, 2)
    frame = pd.DataFrame({"label": labels, "probs": np.stack([1 - p, p], axis=1).tolist()})
    found = fl.read_predictions(frame)
    np.testing.assert_allclose(found.probabilities[:, 0, 1], p)
    assert found.models == ("probs",)


def test_an_object_of_a_class_and_how_sure_it_is(tmp_path: Path) -> None:
    said = P[:, :2].argmax(axis=1)
    cells = [str({"label": CLASSES[k], "score": 0.5 + P[i, k] / 2}) for i, k in enumerate(said)]
    labels = [CLASSES[min(k, 1)] for k in Y]
    pd.DataFrame({"label": labels, "bert": cells}).to_csv(tmp_path / "t.csv", index=False)
    items = both_ways(tmp_path / "t.csv")
    assert accuracy(items) == pytest.approx({"bert": (said == np.minimum(Y, 1)).mean()})
    np.testing.assert_allclose(items.probabilities[0, 0].max(), 0.5 + P[0, said[0]] / 2)


# Logits -------------------------------------------------------------------------------------------


def test_logits_and_logarithms_of_probabilities(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    table(**{f"z_{c}": LOGITS[:, k] for k, c in enumerate(CLASSES)}).to_csv(path, index=False)
    items = both_ways(path, label="label", logits={"net": [f"z_{c}" for c in CLASSES]})
    np.testing.assert_allclose(items.probabilities[:, 0], P, atol=1e-5)
    assert any("softmax over the 3" in note for note in items.notes)
    table(**{f"net_{c}": LOGITS[:, k] for k, c in enumerate(CLASSES)}).to_csv(path, index=False)
    with pytest.raises(fl.InputError, match="softmax is --logits net=net_bird,net_cat,net_dog"):
        fl.read_predictions(path)


@pytest.mark.parametrize("name", ["logits", "log_probs"])
def test_vectors_that_say_that_they_are_logits(name: str, tmp_path: Path) -> None:
    numbers = LOGITS if name == "logits" else np.log(P) - 0.3  # which do not sum to 1
    path = tmp_path / "t.csv"
    table(**{name: [str(row) for row in numbers.tolist()]}).to_csv(path, index=False)
    for columns in ({}, {"logits": {"net": [name]}}):
        items = both_ways(path, **columns)
        np.testing.assert_allclose(items.probabilities[:, 0], P, atol=1e-5)
        assert any("softmax" in note for note in items.notes)
    table(out=[str(row) for row in numbers.tolist()]).to_csv(path, index=False)
    with pytest.raises(fl.InputError, match=r"no prediction columns.*say --logits NAME=out"):
        fl.read_predictions(path)
    for columns in (["out"], ["out[0]", "out[1]", "out[2]"]):
        items = both_ways(path, label="label", logits={"net": columns})
    np.testing.assert_allclose(items.probabilities[:, 0], P, atol=1e-5)


def test_one_column_of_logits_is_the_log_odds() -> None:
    p = P[:, 1]
    frame = pd.DataFrame({"label": Y == 1, "z": np.log(p / (1 - p))})
    items = fl.read_predictions(frame, label="label", logits={"net": "z"})
    np.testing.assert_allclose(items.probabilities[:, 0, 1], p)
    with pytest.raises(fl.UsageError, match="two classifiers are named 'net'"):
        fl.read_predictions(frame, models={"net": "z"}, logits={"net": "z"})
    frame.loc[3, "z"] = np.inf
    with pytest.raises(fl.InputError, match=r"'z' holds inf in item 3 .*which is no logit"):
        fl.read_predictions(frame, label="label", logits={"net": "z"})


# One-hot labels -----------------------------------------------------------------------------------


def one_hot(empty: Any, *, dtype: type = int) -> dict[str, Any]:
    return {
        f"label_{c}": [dtype(Y[i] == k) if SHOWN[i] else empty for i in range(N)]
        for k, c in enumerate(CLASSES)
    }


PROBABILITIES = {f"net_{c}": P[:, k] for k, c in enumerate(CLASSES)}


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", [int, bool])
@pytest.mark.parametrize("empty", [None, 0])
def test_one_hot_labels(dtype: type, empty: Any, tmp_path: Path) -> None:
    columns = one_hot(empty if empty is None else dtype(0), dtype=dtype)
    path = tmp_path / "t.csv"
    pd.DataFrame({**columns, **PROBABILITIES}).to_csv(path, index=False)
    items = both_ways(path)
    assert items.n_labeled == SHOWN.sum()
    assert accuracy(items) == pytest.approx({"net": TRUTH})
    # Rows without a 1 are said to be read as unlabeled.
    assert any("read 'none' (40 rows) as no label" in note for note in items.notes) == (empty == 0)
    for between in ",|":  # as it is typed, and as the doctor's command has it
        said = both_ways(path, label=between.join(columns), models={"net": list(PROBABILITIES)})
        assert accuracy(said) == pytest.approx({"net": TRUTH})


def test_a_row_of_two_labels_is_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({**one_hot(None), **PROBABILITIES})
    frame.loc[3, ["label_cat", "label_dog"]] = 1
    frame.to_csv(tmp_path / "t.csv", index=False)
    for read in (fl.read_predictions, fl.estimate_files):
        with pytest.raises(fl.InputError, match="hold 1 more than once in row 4"):
            read(tmp_path / "t.csv")


def test_label_vectors() -> None:
    cells = [[int(k == j) for j in range(3)] if SHOWN[i] else None for i, k in enumerate(Y)]
    items = fl.read_predictions(pd.DataFrame({"label": cells, "probs": ROWS}))
    assert (items.n_labeled, accuracy(items)) == (SHOWN.sum(), pytest.approx({"probs": TRUTH}))
    named = pd.DataFrame({"label": cells, **PROBABILITIES})
    with pytest.raises(fl.InputError, match="--classes 0,1,2"):  # which places mean which class
        fl.read_predictions(named)
    assert accuracy(fl.read_predictions(named, classes=[0, 1, 2])) == pytest.approx({"net": TRUTH})


# No header, spaces, names of rows -----------------------------------------------------------------

BINARY = Y > 0
SCORE = np.round(1 - P[:, 0], 6)
SHARE = float(((SCORE >= 0.5) == BINARY).mean())
LINES = [(f"item {i}", "yes" if BINARY[i] else "no", SCORE[i]) for i in range(N)]


@pytest.mark.parametrize(
    "rows",
    [
        [f"{1 - s:.6f},{s},{float(b)}" for (_, _, s), b in zip(LINES, BINARY, strict=True)],
        [f"{a},{b},{s}" for a, b, s in LINES],
        [f"{b},{'yes' if s > 0.5 else 'no'}" for _, b, s in LINES],
    ],
    ids=["numbers", "words", "classes alone"],
)
def test_a_first_row_of_data_is_not_taken_for_a_header(rows: list[str], tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join(rows), encoding="utf-8")
    for read in (fl.read_predictions, fl.estimate_files):
        with pytest.raises(fl.InputError, match=r"looks like an item.*--no-header"):
            read(path)


def test_a_file_without_a_header(tmp_path: Path, cli: Any) -> None:
    path = tmp_path / "t.csv"
    rows = [f"{1 - s:.6f},{s},{float(b)}" for (_, _, s), b in zip(LINES, BINARY, strict=True)]
    path.write_text("\n".join(rows), encoding="utf-8")
    columns = {"label": "c3", "models": {"net": ["c1", "c2"]}}
    items = both_ways(Path(f"{path}#no-header"), **columns)
    assert items.n_items == N
    assert accuracy(items) == pytest.approx({"net": SHARE})
    out = cli(
        "estimate", path, "--no-header", "--label", "c3", "--model", "net=c1,c2", "--method",
        "labeled", "--metrics", "accuracy", "--estimand", "sample", "--json", "-",
    )[1]  # fmt: skip
    assert json.loads(out)["estimates"][0]["value"] == pytest.approx(SHARE)
    code, _, err = cli("estimate", path, "--no-header", "--sheet", "x")
    assert (code, "--no-header is of a table" in err) == (2, True)


@pytest.mark.parametrize("header", ["0,1,label", "item,0.05,0.5,0.95,label", "a,label,p"])
def test_headers_of_numbers_are_headers(header: str, tmp_path: Path) -> None:
    cells = [",".join([f"x{i}", *["0.5"] * (header.count(",") - 1), "1"]) for i in range(20)]
    (tmp_path / "t.csv").write_text("\n".join([header, *cells]), encoding="utf-8")
    assert column_names(tmp_path / "t.csv") == tuple(header.split(","))


SEPARATED = {
    "R": ['"label" "prob"', *(f'"{i + 1}" "{b}" {s}' for i, (_, b, s) in enumerate(LINES))],
    "runs": ["label   prob", *(f"{b}    {s}" for _, b, s in LINES)],
    "spaces and tabs": [
        "label prob", *(f"{b}\t{s}" if i % 2 else f"{b} {s}" for i, (_, b, s) in enumerate(LINES))
    ],
    "blanks around": ["label prob", *(f"  {b} {s} " for _, b, s in LINES)],
    "quoted blanks": ["id label prob", *(f'"{a}" {b} {s}' for a, b, s in LINES)],
    "names of rows": ["label,prob", *(f"{i},{b},{s}" for i, (_, b, s) in enumerate(LINES))],
}  # fmt: skip


@pytest.mark.parametrize("kind", SEPARATED)
def test_columns_separated_by_spaces_and_names_of_rows(kind: str, tmp_path: Path) -> None:
    path = tmp_path / ("t.csv" if "," in SEPARATED[kind][0] else "t.txt")
    path.write_text("\n".join(SEPARATED[kind]) + "\n", encoding="utf-8")
    items = both_ways(path)
    assert (items.n_items, items.n_labeled) == (N, N)
    assert accuracy(items) == pytest.approx({"prob": SHARE})


def test_sentences_are_no_columns(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("text\n" + "two words\n" * 9, encoding="utf-8")
    assert column_names(tmp_path / "t.txt") == ("text",)


# A file per classifier ----------------------------------------------------------------------------

MODELS = {"gpt4": 0.85, "claude": 0.75, "llama": 0.65}
SAID = {m: np.where(RNG.random(N) < a, BINARY, ~BINARY).astype(int) for m, a in MODELS.items()}
RIGHT = {m: float((SAID[m] == BINARY).mean()) for m in MODELS}
IDS = [f"q{i}" for i in range(N)]
ANY_ORDER = RNG.permutation(N)


def of(model: str, **more: Any) -> pd.DataFrame:
    frame = pd.DataFrame({"id": IDS, "prediction": SAID[model], **more})
    return frame.iloc[ANY_ORDER]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """labels.csv, and a folder with a file per classifier whose columns have the same names."""
    (tmp_path / "preds").mkdir()
    pd.DataFrame({"id": IDS, "label": BINARY.astype(int)}).to_csv(
        tmp_path / "labels.csv", index=False
    )
    for model in MODELS:
        of(model).to_csv(tmp_path / "preds" / f"{model}.csv", index=False)
    return tmp_path


def test_files_are_joined_by_the_item(folder: Path, cli: Any) -> None:
    preds = folder / "preds"
    frames = {m: pd.read_csv(preds / f"{m}.csv") for m in MODELS}
    for source, join in (
        (folder / "labels.csv", f"{preds}/*.csv"),
        (folder / "labels.csv", preds),
        (preds / "gpt4.csv", [f"{preds}/*.csv", folder / "labels.csv"]),
        (pd.read_csv(folder / "labels.csv"), frames),
    ):
        assert accuracy(fl.read_predictions(source, join=join)) == pytest.approx(RIGHT)
    # As a shell makes several arguments of the pattern.
    files = sorted(preds.glob("*.csv"))
    out = cli(
        "estimate", folder / "labels.csv", "--join", *files, "--metrics", "accuracy", "--method",
        "labeled", "--estimand", "sample", "--json", "-",
    )[1]  # fmt: skip
    assert {r["model"]: r["value"] for r in json.loads(out)["estimates"]} == pytest.approx(RIGHT)
    code, _, err = cli("estimate", folder / "labels.csv", "--join")
    assert (code, "--join" in err) == (2, True)


def test_labels_and_columns_that_several_files_have(folder: Path) -> None:
    preds = folder / "preds"
    for m in MODELS:
        of(m, label=BINARY.astype(int), p_no=1 - SAID[m], p_yes=SAID[m], lang="en").drop(
            columns="prediction"
        ).to_csv(preds / f"{m}.csv", index=False)
    items = fl.read_predictions(preds / "gpt4.csv", join=f"{preds}/*.csv")
    assert accuracy(items) == pytest.approx(RIGHT)
    assert list(items.groups) == ["id", "lang"] or set(items.groups) == {"id", "lang"}
    wrong = pd.read_csv(preds / "llama.csv")
    wrong.loc[5, "label"] = 1 - wrong.label[5]
    wrong.to_csv(preds / "llama.csv", index=False)
    with pytest.raises(fl.InputError, match=r"has '[01]' in column 'label' of gpt4.csv, and"):
        fl.read_predictions(preds / "gpt4.csv", join=f"{preds}/*.csv")


def test_items_that_files_lack_or_repeat(folder: Path) -> None:
    some = of("gpt4")
    source, path = folder / "labels.csv", folder / "one.csv"
    some.iloc[:100].to_csv(path, index=False)
    items = fl.read_predictions(source, join=path)
    assert "'one' has no row of 20 of the 120 items" in items.notes
    there = np.isin(IDS, some.id[:100])
    assert accuracy(items) == pytest.approx({"one": (SAID["gpt4"] == BINARY)[there].mean()})
    pd.concat([some, some.iloc[:1].assign(id="zz")]).to_csv(path, index=False)
    assert (
        "'one' has 1 items that the first file has not"
        in fl.read_predictions(source, join=path).notes
    )
    for frame, said in (
        (pd.concat([some, some.iloc[:1]]), "is in row 1 .* and in row 121"),
        (some.assign(id="a" + some.id), "no item of 'one' is in the first file"),
        (some[1:].drop(columns="id"), "no column in common, nor as many rows"),
    ):
        frame.to_csv(path, index=False)
        with pytest.raises(fl.InputError, match=said):
            fl.read_predictions(source, join=path)
    with pytest.raises(fl.InputError, match="no file is named so"):
        fl.read_predictions(source, join=f"{folder}/nothing*.csv")


def test_a_folder_of_different_files_says_how_they_are_joined(folder: Path, cli: Any) -> None:
    preds = folder / "preds"
    for m in MODELS:
        of(m, label=BINARY.astype(int)).rename(columns={"prediction": f"{m}_pred"}).to_csv(
            preds / f"{m}.csv", index=False
        )
    code, _, err = cli("estimate", preds)
    assert code == 2
    command = err.rpartition("fewlabels ")[2].strip().replace("'", "").split()
    out = cli(
        *command, "--metrics", "accuracy", "--method", "labeled", "--estimand", "sample", "--json",
        "-",
    )[1]  # fmt: skip
    assert {r["model"]: r["value"] for r in json.loads(out)["estimates"]} == pytest.approx(RIGHT)


# Labels kept apart --------------------------------------------------------------------------------


def test_labels_of_several_annotators_in_one_file(tmp_path: Path) -> None:
    pd.DataFrame({"item": IDS, "p__net__1": SCORE}).to_csv(tmp_path / "p.csv", index=False)
    votes = {a: np.where(RNG.random(40) < 0.8, BINARY[:40], ~BINARY[:40]) for a in "xyz"}
    rows = [(IDS[i], a, int(v[i])) for a, v in votes.items() for i in range(40)]
    long = pd.DataFrame(rows, columns=["item", "annotator", "label"])
    counts = np.sum(list(votes.values()), axis=0)
    for columns in (["item", "annotator", "label"], ["item", "label"]):
        long[columns].to_csv(tmp_path / "l.csv", index=False)
        items = fl.read_predictions(
            tmp_path / "p.csv", labels=tmp_path / "l.csv", labels_as="counts"
        )
        assert items.n_annotated == 40
        np.testing.assert_array_equal(items.histogram[:40, 1], counts)
    long.to_csv(tmp_path / "l.csv", index=False)
    items = fl.read_predictions(tmp_path / "p.csv", labels=tmp_path / "l.csv", labels_as="votes")
    assert items.models == ("net", "x", "y", "z")
    with pytest.raises(fl.InputError, match=r"two labels.*--labels-as counts"):
        fl.read_predictions(tmp_path / "p.csv", labels=tmp_path / "l.csv")
    pd.concat([long, long.iloc[:1]]).to_csv(tmp_path / "l.csv", index=False)
    with pytest.raises(fl.InputError, match="annotator 'x' labels item 'q0' more than once"):
        fl.read_predictions(tmp_path / "p.csv", labels=tmp_path / "l.csv", labels_as="counts")


def test_criteria_that_both_files_have(tmp_path: Path) -> None:
    """What people say of a criterion judges what the judge says of it, under the same name."""
    for name, right in (("judge", SAID["gpt4"]), ("human", BINARY.astype(int))):
        pd.DataFrame({"id": range(N), "topic": "a", "safe": right, "short": SAID["llama"]}).to_json(
            tmp_path / f"{name}.jsonl", orient="records", lines=True
        )
    judge, human = tmp_path / "judge.jsonl", tmp_path / "human.jsonl"
    with pytest.raises(fl.InputError, match=r"say which it is with --label short or --label safe$"):
        fl.read_predictions(judge, labels=human)
    items = fl.read_predictions(judge, labels=human, label="safe")
    assert accuracy(items) == pytest.approx({"judge": RIGHT["gpt4"]})


# Frames with columns of any kind ------------------------------------------------------------------


def test_columns_that_are_not_needed_refuse_no_frame() -> None:
    frame = pd.DataFrame(
        {
            "label": BINARY.astype(int), "p__net__1": SCORE, "bin": pd.cut(SCORE, 3),
            "quarter": pd.qcut(SCORE, 4), "period": pd.period_range("2020", periods=N, freq="D"),
            "tags": [["a"] * (i % 3) for i in range(N)], "anything": [object()] * N,
            "mixed": [{"a": "b"}, [1], 2.0, None] * (N // 4), "late": pd.to_timedelta(np.arange(N)),
            "kind": pd.Categorical([(i % 2, "x") for i in range(N)]),
        }
    )  # fmt: skip
    found = fl.estimate(frame, "labeled", "accuracy", by=["bin", "quarter"], estimand="sample")
    assert found.rows[0].value == pytest.approx(SHARE)
    assert {row.group for row in found.rows if row.group} == {
        *(f"bin={one}" for one in frame.bin.cat.categories),
        *(f"quarter={one}" for one in frame.quarter.cat.categories),
    }


# Files of others ----------------------------------------------------------------------------------

FIELD: dict[str, tuple[dict[str, Any], float | str]] = {
    "c03_numpy_repr.csv": ({}, 50 / 60),
    "c03b_numpy_repr_only.csv": ({}, 50 / 60),
    "c04_json_list.csv": ({}, 0.7),
    "c06_dict_repr.csv": ({}, 0.71),
    "c07_list.parquet": ({}, 0.71),
    "noheader.csv": ({}, "--no-header"),
    "noheader.csv#no-header": ({"label": "c3", "models": {"m": ["c1", "c2"]}}, 0.8875),
    "k03_mace_noheader.csv": ({}, "--no-header"),
    "r_write_table.txt": ({}, 0.8875),
    "n01_half_ties.csv": ({}, 0.735),
}


@pytest.mark.skipif(not CASES.is_dir(), reason="no field cases")
@pytest.mark.parametrize("name", FIELD)
def test_files_of_others(name: str) -> None:
    columns, truth = FIELD[name]
    if isinstance(truth, str):
        with pytest.raises(fl.InputError, match=truth):
            fl.read_predictions(CASES / name)
        return
    found = accuracy(fl.read_predictions(CASES / name, columns=columns or None))
    assert found
    for value in found.values():
        assert value == pytest.approx(truth, abs=5e-4)


@pytest.mark.skipif(not CASES.is_dir(), reason="no field cases")
def test_further_files_of_others() -> None:
    models = CASES / "p01_per_model"
    items = fl.read_predictions(models / "model0_predictions.csv", join=f"{models}/*.csv")
    truth = {"model0": 84 / 90, "model1": 73 / 90, "model2": 66 / 90}
    assert accuracy(items) == pytest.approx(truth)
    judged = fl.read_predictions(
        CASES / "j02_judge.jsonl", labels=CASES / "j02_human.jsonl", label="overall_failed"
    )
    assert accuracy(judged) == pytest.approx({"j02_judge": 49 / 60})
    filtered = fl.read_predictions(CASES / "samples_gsm8k_old.jsonl")
    assert filtered.n_items == 40
    assert any("not looked at: 'gsm8k_old, filter 2'" in line for line in filtered.reading)
    log = fl.read_predictions(f"{CASES}/i01_inspect_null_value.json#rubric/faithful")
    assert log.n_items == 25
    chosen = fl.threshold(
        CASES / "t01_min_recall.csv", min_recall=0.9,
        columns={"label": "target", "models": {"m": ["prediction"]}},
    )  # fmt: skip
    assert chosen.best == pytest.approx(0.253, abs=0.02)
