"""Every door for arrays, every kind of array: read as the same plain data, or refused in a line.

Where nothing is known plain data hold -1 (labels, votes), NaN (numbers) or None (names).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import fewlabels as fl
from fewlabels.calibration import (
    AlphaCalibration,
    TemperatureScaling,
    VectorScaling,
    ensemble_disagreement,
    ensemble_mean,
    ensemble_posterior,
)
from fewlabels.evaluation.groups import values_of

N = 40
RNG = np.random.default_rng(1)
Y = np.r_[0, 1, RNG.integers(0, 2, N - 2)]
P1 = np.clip(0.6 * Y + 0.4 * RNG.random(N), 0.02, 0.98)
P, BLOCK = np.stack([P1, P1**2], axis=1), np.stack([1 - P1, P1], axis=1)
VOTES, COUNTS = np.stack([Y, 1 - Y], axis=1), np.stack([3.0 - 2 * Y, 2.0 * Y + 1], axis=1)
AGAIN = np.stack([np.arange(N), Y, Y], axis=1)
GONE = np.isin(np.arange(N), [3, 7, 11])
FIELDS = (
    "probabilities", "votes", "scores", "labels", "histogram", "weight", "multiplicity",
    "label_weight", "repeated_votes", "n_labeled", "models",
)  # fmt: skip


def facts(found: fl.Predictions) -> dict[str, Any]:
    names = [*found.groups, *(["domain"] if found.domain is not None else [])]
    texts = {name: (codes.tolist(), of) for name in names for codes, of in [values_of(found, name)]}
    return {name: getattr(found, name) for name in FIELDS} | texts


def made(**given: Any) -> dict[str, Any]:
    return facts(fl.Predictions(**({"probabilities": P, "labels": Y} | given)))


def assessed(concentration: Any) -> list[Any]:
    found = fl.Predictions(P, histogram=COUNTS)
    return list(fl.annotations.assess(found, concentration=concentration).rows)


class Door(NamedTuple):
    """What takes an array; plain data for it; what stands for nothing; kinds it may well take."""

    call: Callable[[Any], Any]
    data: Any
    nothing: Any = np.nan
    takes: tuple[str, ...] = ()


OF = fl.Predictions(P, Y)
NUMBERS = ("large", "fraction", "unsigned")
NAMES = (*NUMBERS, "times", "durations", "infinite", "huge", "text", "dates", "one word")
annotations = fl.annotations
DOORS = {
    "probabilities": Door(lambda a: made(probabilities=a), P),
    "block": Door(lambda a: made(probabilities=a), BLOCK),
    "labels": Door(lambda a: made(labels=a), Y, -1),
    "votes": Door(lambda a: made(probabilities=None, votes=a), VOTES, -1, ("sparse",)),
    "scores": Door(lambda a: made(probabilities=None, scores=a), np.log(P), takes=NUMBERS),
    "histogram": Door(lambda a: made(labels=None, histogram=a), COUNTS, takes=NUMBERS),
    "groups": Door(lambda a: made(groups={"g": a}), Y, None, NAMES),
    "domain": Door(lambda a: made(domain=a), Y, None, NAMES),
    "weight": Door(lambda a: made(weight=a), P1 + 1, takes=NUMBERS),
    "multiplicity": Door(lambda a: made(multiplicity=a), Y + 1, takes=NUMBERS),
    "label_weight": Door(lambda a: made(label_weight=a), P1 + 1, takes=NUMBERS),
    "repeated_votes": Door(
        lambda a: made(probabilities=None, votes=VOTES, repeated_votes=a), AGAIN
    ),
    "mapping, one": Door(lambda a: made(probabilities={"m": a}), P1, takes=("large", "fraction")),
    "mapping, block": Door(lambda a: made(probabilities={"m": a}), BLOCK),
    "mapping, votes": Door(
        lambda a: made(probabilities={"m": a}), Y, -1, ("fraction", "one word", "text", "dates")
    ),
    "mapping, scores": Door(
        lambda a: made(probabilities={"m": a}), np.log(P1), takes=("large", "fraction")
    ),
    "with_labels": Door(lambda a: facts(OF.with_labels(a)), Y, -1),
    "with_weight": Door(lambda a: facts(OF.with_weight(a)), P1 + 1, takes=NUMBERS),
    "with_label_weight": Door(lambda a: facts(OF.with_label_weight(a)), P1 + 1, takes=NUMBERS),
    "with_multiplicity": Door(lambda a: facts(OF.with_multiplicity(a)), Y + 1, takes=NUMBERS),
    "with_evidence": Door(lambda a: facts(OF.with_evidence(a)), Y, -1),
    "with_probabilities": Door(lambda a: facts(OF.with_probabilities(a)), P),
    "evaluate": Door(lambda a: annotations.evaluate(COUNTS, a), BLOCK),
    "evaluate, counts": Door(lambda a: annotations.evaluate(a, BLOCK), COUNTS, takes=NUMBERS),
    "evaluate, pairs": Door(lambda a: annotations.evaluate(COUNTS, BLOCK, disagreement=a), P1),
    "evaluate, weight": Door(
        lambda a: annotations.evaluate(COUNTS, BLOCK, weight=a), P1 + 1, takes=NUMBERS
    ),
    "evaluate_statistic": Door(
        lambda a: annotations.evaluate_statistic(annotations.unanimity(2), COUNTS, a), P1
    ),
    "agreement": Door(annotations.agreement, COUNTS, takes=NUMBERS),
    "reliability": Door(lambda a: annotations.reliability(COUNTS, a), BLOCK),
    "dispersion_map": Door(lambda a: annotations.dispersion_map(COUNTS, a), BLOCK),
    "disagreement": Door(lambda a: annotations.disagreement_reliability(COUNTS, a), P1),
    "assess": Door(assessed, P1 + 1, takes=(*NUMBERS, "infinite", "no dimension")),
    "fit": Door(lambda a: TemperatureScaling().fit(a, Y).predict_proba(BLOCK), BLOCK),
    "fit, labels": Door(lambda a: TemperatureScaling().fit(BLOCK, a).predict_proba(BLOCK), Y, -1),
    "fit, counts": Door(
        lambda a: VectorScaling().fit(BLOCK, a).predict_proba(BLOCK), COUNTS, takes=NUMBERS
    ),
    "fit, weight": Door(
        lambda a: TemperatureScaling().fit(BLOCK, Y, sample_weight=a).predict_proba(BLOCK),
        P1 + 1, takes=NUMBERS,
    ),
    "predict_proba": Door(TemperatureScaling().fit(BLOCK, Y).predict_proba, BLOCK),
    "alpha, features": Door(
        lambda a: AlphaCalibration("features").fit(BLOCK, COUNTS, features=a).coef_,
        P, takes=NUMBERS,
    ),
    "ensemble": Door(lambda a: ensemble_mean([a, a]), BLOCK),
    "ensemble, counts": Door(
        lambda a: ensemble_posterior([BLOCK, BLOCK], a), COUNTS, takes=NUMBERS
    ),
    "ensemble, alpha": Door(
        lambda a: ensemble_disagreement([BLOCK, BLOCK], a), P1, takes=NUMBERS
    ),
    "columns, label": Door(
        lambda a: facts(fl.read_predictions({"label": a, "p__m__1": P1, "p__m__0": 1 - P1})), Y, -1
    ),
    "columns, probability": Door(
        lambda a: facts(fl.read_predictions({"label": Y.tolist(), "p__m__1": a})), P1
    ),
    "columns, weight": Door(
        lambda a: facts(fl.read_predictions({"weight": a, "p__m__1": P1.tolist()})),
        P1 + 1, takes=NUMBERS,
    ),
}  # fmt: skip


def everywhere(x: np.ndarray) -> np.ndarray:
    """Where nothing is known, in the shape of the data."""
    return np.broadcast_to(GONE.reshape(-1, *[1] * (x.ndim - 1)), x.shape)


def objects(x: np.ndarray, nothing: Any) -> np.ndarray:
    out = np.array(x, dtype=object)
    out[everywhere(x)] = nothing
    return out


def masked(x: np.ndarray) -> np.ma.MaskedArray:
    """Data with wrong values under the mask."""
    return np.ma.array(np.where(everywhere(x), x[:1], x), mask=everywhere(x))


def series(x: np.ndarray, of: Callable[[list[Any]], Any]) -> Any:
    """One column as `of` makes it; objects where there are several."""
    return objects(x, None) if x.ndim > 1 else of(objects(x, None).tolist())


HOLED: dict[str, Callable[[np.ndarray], Any]] = {
    "masked": masked,
    "list of masked": lambda x: list(masked(x)),
    "masked objects": lambda x: np.ma.array(objects(x, "?"), mask=everywhere(x)),
    "NA": lambda x: objects(x, pd.NA),
    "NaT": lambda x: objects(x, pd.NaT),
    "None": lambda x: objects(x, None),
    "lists": lambda x: objects(x, None).tolist(),
    "pandas": lambda x: series(x, lambda v: pd.Series(pd.array(v), index=range(N, 0, -1))),
    "polars": lambda x: series(x, pl.Series),
    "arrow": lambda x: series(x, pa.array),
    "chunked": lambda x: series(x, lambda v: pa.chunked_array([v[:5], v[5:]])),
}
PLAIN: dict[str, Callable[[np.ndarray], Any]] = {
    "nothing masked": np.ma.array,
    "matrix": lambda x: np.matrix(x) if x.ndim == 2 else x,
    "lists": lambda x: x.tolist(),
    "another index": lambda x: pd.Series(x, range(N, 0, -1)) if x.ndim == 1 else x,
    "strided": lambda x: np.repeat(x, 2, axis=0)[::2],
    "read-only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
}
RECORDS = np.zeros(N, dtype=[("a", float), ("b", float)])


def somewhere(x: np.ndarray, value: Any, dtype: Any = None) -> np.ndarray:
    return np.where(everywhere(x), value, np.asarray(x, dtype=dtype))


REFUSED: dict[str, Callable[[np.ndarray], Any]] = {
    "complex": lambda x: x + 1j,
    "complex objects": lambda x: np.array(x + 1j, dtype=object),
    "times": lambda x: np.asarray(x, dtype=int).astype("M8[s]"),
    "durations": lambda x: np.asarray(x, dtype=int).astype("m8[s]"),
    "dates": lambda x: np.full(x.shape, pd.Timestamp("2020-01-01"), dtype=object),
    "ragged": lambda x: [[1, 2], [1]] * (N // 2),
    "no columns": lambda x: np.zeros((N, 0)),
    "sparse": lambda x: scipy.sparse.csr_matrix(np.atleast_2d(x)),
    "records": lambda x: RECORDS,
    "recarray": lambda x: RECORDS.view(np.recarray),
    "masked records": lambda x: np.ma.array(RECORDS, mask=False),
    "no dimension": lambda x: np.array(1.0),
    "infinite": lambda x: somewhere(x, np.inf),
    "huge": lambda x: somewhere(x, 10**400, object),
    "large": lambda x: somewhere(x, 10**13),
    "fraction": lambda x: x + 1.5,
    "unsigned": lambda x: somewhere(np.round(np.abs(x)), 255).astype(np.uint8),
    "text": lambda x: np.full(x.shape, "zzz"),
    "bytes": lambda x: np.full(x.shape, b"\xff\xfe"),
    "one word": lambda x: somewhere(x, "abc", object),
    "a set": lambda x: {1, 2},
}


def outcome(door: Door, given: Any) -> Any:
    """What comes of it; of an error of this package its kind, if it is one line."""
    try:
        return door.call(given)
    except fl.FewlabelsError as error:
        return type(error) if str(error).isprintable() else error


@pytest.mark.product
@pytest.mark.parametrize("kind", HOLED)
@pytest.mark.parametrize("name", DOORS)
def test_what_is_missing_is_missing_in_every_kind_of_array(name, kind):
    door = DOORS[name]
    plain = np.array(door.data, dtype=object if door.nothing is None else None)
    plain = plain.astype(float) if door.nothing is np.nan else plain
    plain[GONE] = door.nothing
    np.testing.assert_equal(outcome(door, HOLED[kind](door.data)), outcome(door, plain))


@pytest.mark.product
@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("name", DOORS)
def test_the_same_data_are_the_same_in_every_kind_of_array(name, kind):
    door = DOORS[name]
    found = outcome(door, door.data)
    assert not isinstance(found, type)
    np.testing.assert_equal(outcome(door, PLAIN[kind](door.data)), found)


@pytest.mark.product
@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("name", DOORS)
def test_what_is_no_such_array_is_refused_in_one_line(name, kind):
    door = DOORS[name]
    assert isinstance(outcome(door, REFUSED[kind](door.data)), type) or kind in door.takes


def test_masked_labels_and_votes_change_the_estimates_as_plain_ones_do():
    plain = fl.estimate(fl.Predictions(P, np.where(GONE, -1, Y)), metrics="accuracy")
    found = fl.estimate(
        fl.Predictions(P, np.ma.array(1 - Y * ~GONE, mask=GONE)), metrics="accuracy"
    )
    assert found.n_labeled == plain.n_labeled == N - 3
    right = fl.estimate(fl.Predictions(P, np.ma.array(Y, mask=GONE)), metrics="accuracy")
    assert right.rows == plain.rows


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_minus_one_that_became_unsigned_is_refused(dtype):
    wrapped = np.where(GONE, -1, Y).astype(dtype)
    for given in ({"labels": wrapped}, {"votes": wrapped[:, None], "probabilities": None},
                  {"probabilities": {"m": wrapped}}):  # fmt: skip
        with pytest.raises(fl.InputError, match=r"-1 becomes in uint\d+: pass signed integers"):
            made(**given)
    assert made(labels=Y.astype(dtype))["n_labeled"] == N


def test_labels_of_booleans_bytes_nan_and_none_at_all():
    assert made(labels=Y.astype(bool))["labels"].tolist() == Y.tolist()
    words = np.array(["no", "yes"])[Y]
    for given in (words, words.astype("S"), words.astype(object), pd.Categorical(words),
                  words.astype(np.dtypes.StringDType())):  # fmt: skip
        found = made(labels=given, classes=["no", "yes"])
        assert found["labels"].tolist() == Y.tolist()
    for given in (np.full(N, np.nan), [None] * N, np.ma.masked_all(N), None, pd.array([pd.NA] * N)):
        assert made(labels=given)["n_labeled"] == 0
    for given in ([], np.zeros(0)):
        with pytest.raises(fl.InputError, match="labels"):
            made(labels=given)


def test_more_classes_than_memory_holds_are_refused_before_the_work(monkeypatch):
    with pytest.raises(fl.InputError, match="means 1,000,000,000,001 classes"):
        made(probabilities=None, votes=VOTES * 10**12)
    many = fl.Predictions(votes=VOTES * 300, labels=Y * 300)
    monkeypatch.setattr("fewlabels.checks.arguments.available_memory", lambda: 10**6)
    of_method = {"auto": "to 40 labels of 301", "dawid-skene": "of 301 classes for each of 2"}
    for method, what in of_method.items():
        with pytest.raises(fl.InputError, match=f"{what} class.* takes about .* of memory, and"):
            fl.estimate(many, method=method)


@pytest.mark.parametrize("classes", [[True, False], [False, True]])
def test_truths_are_names_of_classes_that_are_truths(classes):
    truth = np.arange(20) % 3 == 0
    found = fl.Predictions(votes=np.zeros((20, 1), dtype=int), labels=truth, classes=classes)
    assert [found.classes[k] for k in found.labels] == truth.tolist()


@pytest.mark.parametrize("base", [2**53, 2**62])
def test_whole_numbers_that_would_tie_are_refused(base):
    labels = np.arange(20) % 2
    with pytest.raises(fl.InputError, match=r"up to 2\^53, beyond which neighbours are one"):
        fl.Predictions(scores=(base + labels)[:, None], labels=labels)
    fl.Predictions(scores=(2**52 + labels)[:, None], labels=labels)
