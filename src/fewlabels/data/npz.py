"""NPZ files: the arrays of `Predictions` under their argument names. Never pickled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fewlabels.data.options import ColumnOptions
from fewlabels.data.table import readable, told_of
from fewlabels.data.values import group_text
from fewlabels.errors import InputError, did_you_mean, listed, one_line, quoted
from fewlabels.kernels.arrays import Array

GROUP = "groups__"
_PER_ITEM = ("probabilities", "labels", "votes", "scores", "histogram", "domain", "weight")
_NAMES = ("models", "classes")
_NO_MEMORY = "does not fit into memory, or says so by mistake"
KEYS = (*_PER_ITEM, *_NAMES, f"{GROUP}<name>")


def read_npz(files: Sequence[Path], options: ColumnOptions) -> dict[str, Any]:
    """Arguments of `Predictions` from NPZ files, one after another.

    Raises
    ------
    InputError
        If a file is damaged, holds pickled objects, or has another key than `KEYS`.
    """
    flags = {"models": "model", "scores": "score", "no_label": "no-label", "votes": "annotator"}
    texts = ("label", "models", "hard", "scores", "confidence", "domain", "weight", "item")
    for option in (*texts, "no_label", "same", "votes"):
        if getattr(options, option):
            name = flags.get(option, option)
            raise InputError(
                f"--{name} names a column, but NPZ files have arrays: {listed(KEYS, 99)}"
            )
    loaded = []
    for file in files:
        with told_of(one_line(file.name) if len(files) > 1 else None):
            loaded.append(_load(file))
    arrays = loaded[0] if len(loaded) == 1 else _concatenate(loaded, files)
    return _arguments(arrays, options)


def described(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Key -> its role in words, for `doctor`."""
    said = {k: f"{k}, shape {np.shape(arguments[k])}" for k in KEYS if arguments.get(k) is not None}
    return said | {f"{GROUP}{name}": "group" for name in arguments["groups"]}


def _load(path: Path) -> dict[str, Array]:
    # Opened here: numpy leaves the file open where it finds no archive in it.
    with (
        readable("NPZ", mend="write it again with numpy.savez", memory=_NO_MEMORY),
        path.open("rb") as stream,
        np.load(stream, allow_pickle=False) as file,
    ):
        for key in file.files:
            if key not in KEYS and not (key.startswith(GROUP) and key != GROUP):
                raise InputError(
                    f"unknown key {quoted(key)}; {did_you_mean(key, KEYS)}the keys are "
                    f"{listed(KEYS, 99)}"
                )
        if not file.files:
            raise InputError(f"holds no arrays; the keys are {listed(KEYS, 99)}")
        return {key: _array(key, file) for key in file.files}


def _array(key: str, file: Mapping[str, Any]) -> Array:
    try:
        array = file[key]
    except ValueError as error:
        if "allow_pickle" in str(error):
            raise InputError(
                f"key {quoted(key)} holds Python objects (a pickle), which are never opened, as "
                "they can run code; save texts as numpy.asarray(texts, dtype=str)"
            ) from None
        raise
    # A member of the archive that is not an array comes back as bytes.
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufUS":
        raise InputError(f"key {quoted(key)} must be an array of numbers or text")
    return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array


def _concatenate(parts: Sequence[Mapping[str, Array]], files: Sequence[Path]) -> dict[str, Array]:
    first = parts[0]
    for part, file in zip(parts[1:], files[1:], strict=True):
        if set(part) != set(first):
            odd = sorted(set(part) ^ set(first))
            raise InputError(f"{file.name} and {files[0].name} differ in the keys {listed(odd)}")
        for key in set(_NAMES) & set(first):
            if part[key].tolist() != first[key].tolist():
                raise InputError(
                    f"{file.name} and {files[0].name} differ in `{key}`; make them agree"
                )
    try:
        return {
            key: first[key] if key in _NAMES else np.concatenate([part[key] for part in parts])
            for key in first
        }
    except ValueError as error:
        raise InputError(f"the files have arrays of different shapes ({error})") from None


def _arguments(arrays: Mapping[str, Array], options: ColumnOptions) -> dict[str, Any]:
    for key in _NAMES:
        if key in arrays and arrays[key].ndim != 1:
            raise InputError(f"key {quoted(key)} must be a list; got shape {arrays[key].shape}")
    groups = {key.removeprefix(GROUP): a for key, a in arrays.items() if key.startswith(GROUP)}
    if options.keep is not None:
        for name in options.keep:
            if name not in groups and not (name == "domain" and "domain" in arrays):
                raise InputError(
                    f"no group {quoted(name)}; the groups (keys {GROUP}<name>) are {listed(groups)}"
                )
        groups = {name: a for name, a in groups.items() if name in options.keep}
    found: dict[str, Any] = {key: arrays[key] for key in _PER_ITEM if key in arrays}
    for key in _NAMES:
        if key in arrays:
            found[key] = arrays[key].tolist()
    if options.classes is not None:
        found["classes"] = list(options.classes)
    if options.positive is not None:
        found["positive"] = options.positive
    if "domain" in found:
        found["domain"] = _texts(found["domain"])
    found["groups"] = {name: _texts(array) for name, array in groups.items()}
    return found


def _texts(array: Array) -> Array:
    """Texts as in a table: None where there is none."""
    values, codes = np.unique(array, return_inverse=True)
    texts = np.array([*(group_text(v) for v in values), None], dtype=object)
    return texts[codes.reshape(array.shape)]
