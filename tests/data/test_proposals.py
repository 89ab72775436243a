"""What messages propose is run: each proposal reads the file, or is not printed."""

from __future__ import annotations

import csv
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_field_shapes import CASES, SHAPES, TAKEN

import fewlabels as fl
from fewlabels.data.options import ColumnOptions
from fewlabels.data.shapes import shaped
from fewlabels.data.sources import locate, open_source
from proposed import proposed, run_all

sys.path.append(str(Path(__file__).resolve().parents[1] / "ordinary"))
from ordinary_files import FILES

N = 200
RNG = np.random.default_rng(42)
TRUTH = RNG.integers(0, 2, N)
SCORE = np.round(TRUTH + RNG.normal(size=N), 4)
KNOWN = np.array(["yes", "no"])[TRUTH]
VOTES = RNG.multinomial(5, [0.2, 0.5, 0.3], N).T


def said(file: Path) -> list[str]:
    """All that is said of a file: a refusal or what was read, and what the doctor finds."""
    texts = []
    try:
        read = fl.read_predictions(file)
        texts += [*read.reading, *read.notes]
    except fl.InputError as error:
        texts.append(str(error))
    found = fl.diagnose(file)
    texts += [text for one in found.findings for text in (one.what, one.mend)]
    return [*texts, *found.reading]


def names(file: Path) -> list[str]:
    """The columns, of a file without a header too."""
    found: list[str] = []
    for place in (file, f"{file}#no-header"):
        try:
            source = open_source(place, locate(place))
            found += [*source.names, *shaped(source, ColumnOptions())[0].names]
        except fl.InputError:
            continue
    return found


def checked(file: Path, cli: Any) -> int:
    try:
        texts, columns = said(file), names(file)
        command = fl.diagnose(file).command
    except fl.InputError as error:
        if "fewlabels[excel]" in str(error):
            pytest.skip("Excel needs the extra `excel`")
        raise
    if command is not None:
        code, _, err = cli("doctor", *shlex.split(command)[2:])
        assert code == 0, err
    return run_all(texts, columns, file, cli)


@pytest.mark.few(16)
@pytest.mark.parametrize("name", FILES)
def test_of_ordinary_files(name: str, cli: Any) -> None:
    checked(FILES[name].path, cli)


@pytest.mark.slow
def test_of_shapes_and_columns(cli: Any, tmp_path: Path) -> None:
    tables = {name: pd.DataFrame(shape.table) for name, shape in SHAPES.items()} | TAKEN
    tried = 0
    for i, table in enumerate(tables.values()):
        file = tmp_path / f"{i}.csv"
        table.to_csv(file, index=False)
        tried += checked(file, cli)
    assert tried > 50


@pytest.mark.skipif(not CASES.is_dir(), reason="no field cases")
def test_of_field_cases(cli: Any) -> None:
    tried = 0
    for file in sorted(CASES.iterdir()):
        if file.suffix in (".csv", ".tsv", ".parquet"):
            tried += checked(file, cli)
    assert tried > 3


PUBLIC: dict[str, tuple[pd.DataFrame, list[str]]] = {
    # Counts of annotators and their majority: the labels are named, but nothing predicts.
    "counts": (
        pd.DataFrame({"hate_speech": VOTES[0], "offensive_language": VOTES[1],
                      "neither": VOTES[2], "class": np.argmax(VOTES, axis=0)}), []),
    # A judge's preference, the logarithm of its probability and what it cost.
    "costs": (
        pd.DataFrame({"output": [f"text {i}" for i in range(N)], "preference": 1 + RNG.random(N),
                      "seconds_spent": 20 * RNG.random(N)}), []),
    # A rank, of which the first items are relevant, and what was found of some of them.
    "ranks": (
        pd.DataFrame({"record_id": np.arange(N) * 7 + 3, "included": TRUTH,
                      "asreview_ranking": np.argsort(np.argsort(-SCORE)) + 1}),
        ["--label included --positive 0 --score asreview_ranking=asreview_ranking"]),
    # A frequency beside two predictions, which is no label.
    "frequencies": (
        pd.DataFrame({"SIFT_pred": np.where(TRUTH, "D", "T"),
                      "FATHMM_pred": np.where(TRUTH ^ (SCORE > 2), "D", "T"),
                      "ExAC_ALL": [f"{x:.6f}" if x < .4 else "." for x in RNG.random(N)]}), []),
}  # fmt: skip
"""Tables of public shapes, and what is proposed of them."""


@pytest.mark.parametrize("name", PUBLIC)
def test_of_public_shapes(name: str, cli: Any, tmp_path: Path) -> None:
    table, expected = PUBLIC[name]
    file = tmp_path / "file.csv"
    table.to_csv(file, index=False)
    texts = said(file)
    assert {" ".join(one) for text in texts for one in proposed(text, list(table))} == {*expected}
    checked(file, cli)
    if expected:
        auc = fl.estimate(file, **arguments(table), method="labeled", metrics="roc_auc")
        assert auc.rows[0].value > 0.5


def arguments(table: pd.DataFrame) -> dict[str, Any]:
    return {"columns": {"scores": {"rank": table.columns[2]}, "label": "included"}, "positive": "0"}


def test_without_a_header_the_whole_way_is_proposed(cli: Any, tmp_path: Path) -> None:
    file = tmp_path / "scores.txt"
    with file.open("w", newline="") as out:
        csv.writer(out, delimiter=" ").writerows(
            (f"LA_E_{i}", "A07", k, s) for i, (k, s) in enumerate(zip(KNOWN, SCORE, strict=True))
        )
    with pytest.raises(fl.InputError, match="looks like an item") as error:
        fl.read_predictions(file)
    options = "--no-header --label c3 --positive no --score c4=c4"
    assert str(error.value).endswith(options)
    code, out, err = cli("estimate", file, *options.split(), "--metrics", "roc_auc", "--json", "-")
    assert code == 0, err


def test_where_nothing_reads_it_says_why() -> None:
    table = pd.DataFrame({"preference": 1 + RNG.random(N), "weighing": 9 * RNG.random(N)})
    with pytest.raises(fl.InputError) as error:
        fl.read_predictions(table)
    assert "--label" not in str(error.value).replace("--labels", "")
    assert "it cannot be read as it stands: it has no labels" in str(error.value)
