"""The study of decisions: what a run keeps, and what is said of the best and of the leader."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import decisions as recipe

NAME = "outsider +6, 3 alike, 2 classes, y"


@pytest.mark.slow
def test_a_run_keeps_every_classifier_beside_the_labels():
    cell = {"set": NAME, "n_labeled": 20, "start": 0, "stop": 1, "seed": 0}
    line = cell | recipe.run_cell(cell, Path())
    rows = recipe.frame_of([line])
    assert sorted(rows["model"]) == ["alike0", "alike1", "alike2", "outsider"]
    np.testing.assert_allclose(rows["error"], 100 * (rows["value"] - rows["truth"]))
    assert set(rows["held"]) <= {True, False}
    assert rows.loc[rows["truth"].idxmax(), "model"] == "outsider"
    said = recipe.summary(rows)
    assert said["bias best"] == pytest.approx(rows.set_index("model")["error"]["outsider"])
    first = rows.loc[rows["value"].idxmax(), "truth"]
    assert said["regret"] == pytest.approx(100 * (rows["truth"].max() - first))
    again = recipe.run_cell(cell, Path())
    assert again == {"rows": line["rows"]}
    assert recipe.text(rows, rows).count("\n| simulated | 20 |") == 2
