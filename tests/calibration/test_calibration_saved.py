"""Saved calibrations: the same bits back, and one line for anything else."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import fewlabels as fl
from fewlabels.calibration import (
    AlphaCalibration,
    MatrixScaling,
    TemperatureScaling,
    VectorScaling,
    from_dict,
    load,
    save,
    to_dict,
)


@pytest.fixture
def fitted(world):
    f, counts = world["f"], world["counts"]
    return {
        "temperature": TemperatureScaling().fit(f, counts),
        "vector": VectorScaling(penalties=(0.1, 1.0)).fit(f, counts),
        "matrix": MatrixScaling(penalty=(0.1, 2)).fit(f, counts),
        "constant": AlphaCalibration().fit(f, counts),
        "logits, ü": AlphaCalibration("logits", compat="lh_calib").fit(f, counts),
        "features": AlphaCalibration(penalty=0.01).fit(f, counts, world["features"]),
    }


def test_round_trip_is_exact(world, fitted, tmp_path):
    save(fitted, tmp_path / "model.json")
    back = load(tmp_path / "model.json")
    assert list(back) == list(fitted)
    for name, model in fitted.items():
        same = back[name]
        assert type(same) is type(model)
        assert same.get_params() == model.get_params()
        assert to_dict(same) == to_dict(model)
        np.testing.assert_array_equal(
            same.predict_proba(world["f"]), model.predict_proba(world["f"])
        )
        if isinstance(model, AlphaCalibration):
            x = world["features"] if name == "features" else None
            found = same.concentration(world["f"], x)
            np.testing.assert_array_equal(found, model.concentration(world["f"], x))
    assert [p.name for p in tmp_path.iterdir()] == ["model.json"]


def test_names_of_classes(world, fitted, tmp_path):
    names = ["ant", "bee", "cat", "dog"]
    save(fitted, tmp_path / "model.json", classes=names)
    for model in load(tmp_path / "model.json").values():
        assert list(model.classes_) == names
    assert set(load(tmp_path / "model.json")["vector"].predict(world["f"])) <= set(names)
    with pytest.raises(fl.UsageError, match="names 2 classes"):
        save(fitted, tmp_path / "other.json", classes=["a", "b"])


def test_what_cannot_be_saved(world, fitted, tmp_path):
    with pytest.raises(fl.UsageError, match="a Pipeline cannot be saved"):
        to_dict(make_pipeline(TemperatureScaling()))
    with pytest.raises(NotFittedError):
        to_dict(TemperatureScaling())
    with pytest.raises(fl.UsageError, match="one calibration or more"):
        save({}, tmp_path / "model.json")
    seeded = VectorScaling(random_state=np.random.default_rng(0)).fit(world["f"], world["counts"])
    with pytest.raises(fl.UsageError, match="`random_state` is a Generator"):
        to_dict(seeded)


BROKEN = {
    "kind": (["kind"], "Pickle", "unknown calibration 'Pickle'"),
    "version": (["version"], 2, "newer version .format 2"),
    "no fit": (["fitted"], None, "lacks its parameters or its fit"),
    "parameter": (["parameters", "colour"], 1, "other parameters"),
    "classes": (["fitted", "classes_"], [0, 1], "must name 4 classes"),
    "K": (["fitted", "n_features_in_"], "4", "no number of classes"),
    "shape": (["fitted", "scale_"], [1.0, 2.0], "finite numbers of shape"),
    "not numbers": (["fitted", "scale_"], ["a"], "finite numbers of shape"),
    "missing": (["fitted", "intercept_"], None, "finite numbers of shape"),
    "type": (["fitted", "converged_"], "yes", "must be a bool"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_descriptions(fitted, case):
    path, value, message = BROKEN[case]
    stored = json.loads(json.dumps(to_dict(fitted["vector"])))
    at = stored
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(fl.InputError, match=message) as caught:
        from_dict(stored)
    assert "\n" not in str(caught.value)


def test_broken_concentration(fitted):
    stored = to_dict(fitted["constant"])
    stored["fitted"]["concentration_"] = "logits"
    with pytest.raises(fl.InputError, match="a coefficient for each"):
        from_dict(stored)
    with pytest.raises(fl.InputError, match="JSON object"):
        from_dict([1])


def test_broken_files(fitted, tmp_path):
    path = tmp_path / "model.json"
    with pytest.raises(fl.InputError, match="cannot read"):
        load(path)
    for text, message in (
        ("{", "not JSON"),
        ("[1]", "no saved calibration"),
        ('{"format": "other"}', "no saved calibration"),
        ('{"format": "fewlabels-calibration", "version": 9}', "newer version .format 9"),
    ):
        path.write_text(text)
        with pytest.raises(fl.InputError, match=message):
            load(path)
    path.write_bytes(b"\x80\x04\x95")
    with pytest.raises(fl.InputError, match="not JSON"):
        load(path)
    save(fitted, path)
    whole = json.loads(path.read_text())
    whole["models"]["matrix"]["kind"] = "Other"
    path.write_text(json.dumps(whole))
    with pytest.raises(fl.InputError, match="model 'matrix': unknown calibration"):
        load(path)
