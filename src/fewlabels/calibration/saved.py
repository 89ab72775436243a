"""Fitted calibrations as JSON: plain numbers that anyone can read and nothing can run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fewlabels import __version__
from fewlabels.calibration.alpha import CONCENTRATIONS, AlphaCalibration
from fewlabels.calibration.scaling import MatrixScaling, TemperatureScaling, VectorScaling
from fewlabels.checks.arguments import check_format, side_json
from fewlabels.errors import InputError, UsageError, listed, quoted

_LARGEST = 1e9
"""Coefficients of fits stay far below; powers and sums of what is below stay numbers."""

_NOT_NEGATIVE = ("temperature_", "floor_", "penalty_", "n_iter_", "n_labels_used_")

_UNREAD = "cannot be read: "
_FORMAT = "fewlabels-calibration"
_VERSION = 1

_SAVABLE = {
    kind.__name__: kind
    for kind in (AlphaCalibration, MatrixScaling, TemperatureScaling, VectorScaling)
}

# Fitted attributes: a type, or the axes of an array of numbers: K classes, d features, any length.
_COMMON: dict[str, Any] = {"n_features_in_": int, "converged_": bool, "n_iter_": int}
_SCALING = _COMMON | {"floor_": float}
_FITTED: dict[str, dict[str, Any]] = {
    "TemperatureScaling": _SCALING | {"temperature_": float},
    "VectorScaling": _SCALING | {"scale_": "K", "intercept_": "K", "penalty_": float},
    "MatrixScaling": _SCALING | {"weights_": "KK", "intercept_": "K", "penalty_": tuple},
    "AlphaCalibration": _COMMON
    | {
        "concentration_": str,
        "coef_": "d",
        "intercept_": float,
        "penalty_": float,
        "loss_": float,
        "n_labels_used_": int,
    },
}


def to_dict(estimator: Any) -> dict[str, Any]:
    """A fitted calibration as a dictionary that JSON holds without loss of a bit.

    Raises
    ------
    UsageError
        Not one of this room's calibrations, or a parameter that JSON cannot hold.
    """
    kind = type(estimator).__name__
    if _SAVABLE.get(kind) is not type(estimator):
        raise UsageError(f"a {kind} cannot be saved; what can be is {listed(_SAVABLE)}")
    check_is_fitted(estimator)
    parameters = {
        name: _plain(value, f"{kind}'s `{name}`")
        for name, value in estimator.get_params(deep=False).items()
    }
    fitted = {name: _plain(getattr(estimator, name), name) for name in _FITTED[kind]}
    fitted["classes_"] = _plain(estimator.classes_, "classes_")
    return {"kind": kind, "version": _VERSION, "parameters": parameters, "fitted": fitted}


def from_dict(stored: Mapping[str, Any]) -> Any:
    """The fitted calibration that `to_dict` described.

    Raises
    ------
    InputError
        Another kind, a newer version, or a description that is not whole.
    """
    if not isinstance(stored, Mapping):
        raise InputError("a saved calibration must be a JSON object; save it again")
    kind = str(stored.get("kind"))
    if kind not in _SAVABLE:
        raise InputError(f"unknown calibration {quoted(kind)}; known are {listed(_SAVABLE)}")
    _check_version(stored, "the calibration")
    fitted, parameters = stored.get("fitted"), stored.get("parameters")
    if not isinstance(fitted, Mapping) or not isinstance(parameters, Mapping):
        raise InputError(f"the saved {kind} lacks its parameters or its fit; save it again")
    chosen: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in parameters.items()
    }
    try:
        estimator = _SAVABLE[kind](**chosen)
    except TypeError as error:
        raise InputError(f"the saved {kind} has other parameters: {error}") from None
    _restore(estimator, kind, fitted)
    _check_possible(estimator, kind)
    return estimator


def save(
    models: Mapping[str, Any],
    path: str | os.PathLike[str],
    classes: Sequence[Any] | None = None,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write fitted calibrations, one per classifier, to a JSON file.

    Parameters
    ----------
    models
        Name of each classifier and its calibration.
    path
        Where to; a file there is replaced when the new one is whole.
    classes
        Names of the K classes, kept as `classes_` of each; None = as they were fitted.
    about
        Whatever else the file should say, plain JSON values, under the key "about".

    Raises
    ------
    UsageError
        As `to_dict`; no models; not one name per class.
    """
    if not models:
        raise UsageError("`models` must hold one calibration or more; got none")
    entries = {str(name): to_dict(model) for name, model in models.items()}
    if classes is not None:
        names = _plain(np.asarray(classes), "classes")
        for name, entry in entries.items():
            if len(names) != entry["fitted"]["n_features_in_"]:
                raise UsageError(
                    f"`classes` names {len(names)} classes but the calibration of {quoted(name)} "
                    f"has {entry['fitted']['n_features_in_']}"
                )
            entry["fitted"]["classes_"] = names
    document = {"format": _FORMAT, "version": _VERSION, "fewlabels": __version__, "models": entries}
    if about is not None:
        document["about"] = dict(about)
    text = json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False)
    target = Path(path)
    draft = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        draft.write_text(text + "\n", encoding="utf-8")
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what `save` wrote: the calibration of each classifier.

    Raises
    ------
    InputError
        No such file, not a saved calibration, or one of a newer version.
    """
    try:
        stored = side_json(path)
    except InputError as error:
        message = str(error)
        if message.startswith(_UNREAD):
            raise InputError(f"cannot read {path}: {message.removeprefix(_UNREAD)}") from None
        raise InputError(f"{path} {message}; pass a file that `save` wrote") from None
    if not isinstance(stored, dict) or stored.get("format") != _FORMAT:
        raise InputError(f"{path} holds no saved calibration; pass a file that `save` wrote")
    _check_version(stored, str(path))
    if not isinstance(stored.get("models"), dict) or not stored["models"]:
        raise InputError(f"{path} holds the calibration of no classifier; save it again")
    models = {}
    for name, entry in stored["models"].items():
        try:
            models[name] = from_dict(entry)
        except InputError as error:
            raise InputError(f"{path}, model {quoted(name)}: {error}") from None
    return models


def _check_version(stored: Mapping[str, Any], what: str) -> None:
    try:
        check_format(stored.get("version"), _VERSION)
    except InputError as error:
        raise InputError(f"{what} {error}") from None


def _plain(value: Any, name: str) -> Any:
    """A value as JSON has it: numbers, text, lists."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(v, name) for v in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise UsageError(f"{name} is a {type(value).__name__}, which cannot be saved; pass a number")


def _restore(estimator: Any, kind: str, fitted: Mapping[str, Any]) -> None:
    """Set the fitted attributes, each of the type and shape that it must have."""
    k = fitted.get("n_features_in_")
    if type(k) is not int or k < 2:
        raise InputError(f"the saved {kind} has no number of classes; save it again")
    classes = fitted.get("classes_")
    names = classes if isinstance(classes, list) else []
    plain = all(isinstance(c, (str, int, float)) for c in names)
    if not plain or len(names) != k or len(set(map(str, names))) != k:
        raise InputError(f"the saved {kind} must name {k} classes; got {quoted(classes)}")
    estimator.classes_ = np.asarray(classes)
    for name, form in _FITTED[kind].items():
        setattr(estimator, name, _read(fitted.get(name), form, k, f"{kind}'s `{name}`"))
    if kind == "TemperatureScaling" and estimator.temperature_ <= 0:
        raise InputError(f"the saved {kind} must have a temperature above 0; save it again")
    if kind == "AlphaCalibration":
        wanted = {"constant": 0, "logits": k, "features": len(estimator.coef_)}
        if wanted.get(estimator.concentration_) != len(estimator.coef_):
            raise InputError(
                f"the saved {kind} must have a concentration of {listed(CONCENTRATIONS)} and a "
                "coefficient for each of its inputs; save it again"
            )


def _read(value: Any, form: Any, k: int, name: str) -> Any:
    if form is tuple:
        return tuple(_read(value, "d", k, name).tolist())
    if isinstance(form, str):
        try:
            array = np.array(value, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            array = np.array(np.nan)
        shape = tuple(k if axis == "K" else array.size for axis in form)
        if value is None or array.shape != shape or not np.isfinite(array).all():
            raise InputError(f"the saved {name} must be finite numbers of shape {shape}")
        return array
    if form is float and type(value) is int and abs(value) < _LARGEST:
        value = float(value)  # other programs write 1.0 as 1
    wrong = type(value) is not form or (form is float and not np.isfinite(value))
    if wrong or (form is int and abs(value) > 2**53):
        raise InputError(f"the saved {name} must be a {form.__name__}; got {quoted(value)}")
    return value


def _check_possible(estimator: Any, kind: str) -> None:
    """Refuse numbers that no fit gives: they are of the right kind and would give any answer."""
    for name in _FITTED[kind]:
        value = getattr(estimator, name)
        if isinstance(value, str | bool):
            continue
        low = 0.0 if name in _NOT_NEGATIVE else -_LARGEST
        numbers = np.atleast_1d(np.array(value, dtype=np.float64))
        wrong = numbers[~((numbers >= low) & (numbers <= _LARGEST))]
        if name == "floor_" and not 0 < value < 1 / estimator.n_features_in_:
            wrong = numbers
        if len(wrong):
            raise InputError(
                f"the saved {kind}'s `{name}` cannot be {quoted(float(wrong[0]))}, which no fit "
                "gives; save it again"
            )
    for name, value in estimator.get_params(deep=False).items():
        for one in value if isinstance(value, tuple) else (value,):
            number = isinstance(one, int | float) and not isinstance(one, bool)
            if number and not 0 <= one <= _LARGEST:
                raise InputError(
                    f"the saved {kind}'s parameter `{name}` cannot be {quoted(one)}; save it again"
                )
