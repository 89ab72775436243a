"""`--labels-out` and `Estimates.labels_frame`: the likeliest class of every item."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import fewlabels as fl

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., Path]
QUICK = ("--metrics", "accuracy")


def rows(path: Path) -> list[dict[str, Any]]:
    read = pa.csv.read_csv if path.suffix == ".csv" else pa.parquet.read_table
    found: list[dict[str, Any]] = read(path).to_pylist()
    return found


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_file(cli: Run, predictions_file: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"labels.{ending}"
    code, out, err = cli("estimate", predictions_file, *QUICK, "--labels-out", path)
    assert (code, err) == (0, "")
    assert out.endswith(f"\nLikeliest labels: {path}\n")
    found = rows(path)
    expected = fl.estimate(fl.read_predictions(predictions_file, keep=()), metrics="accuracy")
    p = expected.posterior.marginals()
    assert list(found[0]) == [
        "row", "likeliest", "known", "p__learned-ensemble__0", "p__learned-ensemble__1",
    ]  # fmt: skip
    assert [row["row"] for row in found] == list(range(1, 81))
    assert [row["known"] for row in found] == [True] * 20 + [False] * 60
    assert [row["likeliest"] for row in found] == p.argmax(axis=1).tolist()
    for k in (0, 1):
        got = [row[f"p__learned-ensemble__{k}"] for row in found]
        np.testing.assert_allclose(got, p[:, k], rtol=1e-12)
    labels = expected.predictions.labels
    assert [row["likeliest"] for row in found[:20]] == labels[:20].tolist()


def test_the_answer_is_the_same_with_and_without(
    cli: Run, predictions_file: Path, tmp_path: Path
) -> None:
    options = ("estimate", predictions_file, *QUICK, "--json", "-")
    code, plain, _ = cli(*options)
    assert code == 0
    assert cli(*options, "--labels-out", tmp_path / "labels.csv") == (0, plain, "")


@pytest.mark.parametrize("backend", [None, "pandas", "polars", "pyarrow"])
def test_frame(backend: str | None) -> None:
    if backend not in (None, "pyarrow"):
        pytest.importorskip(backend)
    predictions = fl.Predictions(
        votes=[[0, 0, 0], [1, 1, 0], [-1, -1, -1]],
        labels=[1, -1, -1],
        domain=np.array(["u", None, "v"], dtype=object),
        models=["a", "b", "c"],
        classes=["no", "yes"],
    )
    estimates = fl.estimate(predictions, "majority-vote", "accuracy")
    frame = estimates.labels_frame(backend)
    names = [
        "item",
        "domain",
        "likeliest",
        "known",
        "p__majority-vote__no",
        "p__majority-vote__yes",
    ]
    columns = frame.column_names if backend == "pyarrow" else list(frame.columns)
    assert columns == names
    found = json.loads(json.dumps(estimates.label_columns()))
    assert found["item"] == [0, 1, 2]
    assert found["domain"] == ["u", None, "v"]
    assert found["known"] == [True, False, False]
    assert found["likeliest"][:2] == ["yes", "yes"]
    assert found["p__majority-vote__yes"][0] == 1
    assert list(frame["likeliest"])[:1] == ["yes"] or frame["likeliest"][0].as_py() == "yes"


@pytest.mark.parametrize("method", sorted(fl.models.METHODS))
def test_every_method_gives_labels_or_one_line(method: str) -> None:
    if fl.models.METHODS[method].learns_from != "probabilities":
        pytest.skip("its own tests fit it; what it gives is a label posterior all the same")
    if method in ("ssme-flow",):
        pytest.skip("a fit takes too long here")
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=60)
    scores = 1 / (1 + np.exp(-rng.normal(2 * truth[:, None] - 1, 1.2, (60, 3))))
    labels = np.where(np.arange(60) < 20, truth, -1)
    estimates = fl.estimate(fl.Predictions(scores, labels), method, "accuracy")
    if method == "labeled" or fl.models.METHODS[method].serves == "means":
        with pytest.raises(fl.UsageError, match="says nothing of the labels of single items"):
            estimates.labels_frame()
        return
    columns = estimates.label_columns()
    p = np.array([columns[f"p__{method}__{k}"] for k in (0, 1)])
    np.testing.assert_allclose(p.sum(axis=0), 1)
    assert columns["likeliest"][:20] == truth[:20].tolist()


def test_the_table_read_back_has_no_labels(
    cli: Run, predictions_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "labels.csv"
    assert cli("estimate", predictions_file, *QUICK, "--labels-out", path)[0] == 0
    again = fl.read_predictions(path)
    assert (again.models, again.n_labeled) == (("learned-ensemble",), 0)
