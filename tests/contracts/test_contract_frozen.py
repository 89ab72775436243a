"""Results cannot be written into: what is found in one is read-only, and writing changes nothing.

A walk goes through the fields of every public result, what it has cached, and its properties.
"""

from __future__ import annotations

import copy
import inspect
import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import fewlabels as fl
from contract_methods import fresh
from fewlabels.calibration.recalibration import Settings, fit

N = 60
RNG = np.random.default_rng(4)
Y = RNG.integers(0, 2, N)
P = np.clip(0.6 * Y[:, None] + 0.4 * RNG.random((N, 3)), 0.02, 0.98)
LABELS = np.where(np.arange(N) < 40, Y, -1)
COUNTS = np.stack([3.0 - 2 * Y, 2.0 * Y + 1], axis=1)
BY = np.array(["a", "b"])[np.arange(N) % 2]
TABLE = {"label": LABELS.tolist(), "p__m__1": P[:, 0].tolist(), "g": BY.tolist()}


def predictions(**more: Any) -> fl.Predictions:
    return fl.Predictions(**({"probabilities": P, "labels": LABELS, "groups": {"g": BY}} | more))


def votes() -> fl.Predictions:
    again = np.stack([np.arange(20), np.zeros(20), Y[:20]], axis=1)
    return fl.Predictions(
        votes=(P > 0.5).astype(int), labels=LABELS, repeated_votes=again, domain=BY
    )


def sparse() -> fl.Predictions:
    wide = scipy.sparse.random(3000, 2000, 0.001, "csr", random_state=1)
    wide.data[:] = 1
    return fl.Predictions(votes=wide.astype(np.int64), labels=RNG.integers(0, 2, 3000))


def judged(method: str) -> Callable[[], Any]:
    by_votes = method in ("dawid-skene", "bee", "majority-vote", "agreement-rates")
    return lambda: fl.estimate(votes() if by_votes else predictions(), method=fresh(method))


RESULTS: dict[str, Callable[[], Any]] = {
    "predictions": lambda: predictions(histogram=COUNTS, domain=BY, weight=P[:, 0]),
    "votes": votes,
    "sparse votes": sparse,
    "estimate": lambda: fl.estimate(predictions(), by="g"),
    **{
        method: judged(method)
        for method in (
            "labeled", "tempered-ensemble", "monotone-curves", "spe", "ssme-kde", "autoeval",
            "dawid-skene", "bee", "majority-vote", "agreement-rates",
        )
    },
    "of annotators": lambda: fl.estimate(predictions(histogram=COUNTS), against="distribution"),
    "calibration_curve": lambda: fl.calibration_curve(predictions(), method="ensemble"),
    "curve": lambda: fl.curve(predictions(), model="model0"),
    "curves": lambda: fl.curves(predictions(), model="model0"),
    "threshold": lambda: fl.threshold(predictions(), "model0", min_recall=0.5),
    "label_next": lambda: fl.label_next(predictions(), "model0", 5),
    "backtest": lambda: fl.backtest(predictions(), 10, 2, metrics="accuracy"),
    "compare": lambda: fl.compare(predictions(), by="g"),
    "shift": lambda: fl.shift(predictions()),
    "score": lambda: fl.score(predictions()),
    "assess": lambda: fl.annotations.assess(predictions(histogram=COUNTS), by="g"),
    "agreement": lambda: fl.annotations.agreement(COUNTS),
    "diagnose": lambda: fl.diagnose(TABLE),
}  # fmt: skip
METHODS_OWN = (
    "parameters", "interval_parameters", "vote_rates", "score_rates", "estimator",
    "label_posterior", "value_draws", "interval_draws", "means",
)  # fmt: skip
PLAIN = (str, bytes, int, float, complex, type, type(None), np.generic, np.random.Generator)


def inside(value: Any, *, properties: bool) -> Iterator[tuple[str, Any]]:
    """What a value holds, by name."""
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", part) for key, part in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"[{i}]", part) for i, part in enumerate(value))
    elif scipy.sparse.issparse(value):
        yield from ((f".{name}", getattr(value, name)) for name in ("data", "indices", "indptr"))
    elif type(value).__module__.startswith("fewlabels") and not callable(value):
        state = getattr(value, "__dict__", {})
        for name, part in state.items():
            if name in METHODS_OWN and not isinstance(part, np.ndarray):
                # What a label model works with: of it only what is public data.
                rates = (getattr(part, rate, None) for rate in ("error_rates", "confusion"))
                yield f".{name}", tuple(rates)
            else:
                yield f".{name}", part
        for name, kind in inspect.getmembers(type(value)) if properties else ():
            if name in METHODS_OWN:
                continue
            if isinstance(kind, property) or hasattr(kind, "__set_name__"):
                try:
                    yield f".{name}", getattr(value, name)
                except fl.FewlabelsError:
                    continue


def walk(value: Any, *, properties: bool = False) -> Iterator[tuple[str, Any]]:
    """Everything that can be reached from a value, with its path."""
    seen: set[int] = set()
    held: list[Any] = []  # or another might get the identity of one that is gone
    left = [("", value)]
    while left:
        path, part = left.pop()
        if isinstance(part, PLAIN) or id(part) in seen:
            continue
        seen.add(id(part))
        held.append(part)
        yield path, part
        left += [(path + name, more) for name, more in inside(part, properties=properties)]


def can_be_written(part: Any) -> bool:
    if isinstance(part, np.ndarray):
        return part.flags.writeable and part.size > 0
    return type(part) in (dict, list, set)


def scribble(result: Any) -> int:
    """Write into everything that lets itself be written into, and say how many that were."""
    done = 0
    for _, part in list(walk(result, properties=True)):
        try:
            if isinstance(part, np.ndarray):
                part[...] = np.zeros((), part.dtype)
            elif isinstance(part, dict | set | list):
                part.clear()
            else:
                continue
            done += 1
        except (ValueError, TypeError, AttributeError):
            continue  # read-only
    return done


def said(result: Any) -> str:
    """Everything that a result says of itself."""
    texts = [repr(result), str(result)]
    for name in ("to_dict", "report", "summary", "label_columns"):
        try:
            given = getattr(result, name, None)
            texts.append(repr(given() if callable(given) else given))
        except fl.FewlabelsError:
            continue
    return "\n".join(texts)


@pytest.mark.few(8)
@pytest.mark.slow_with("spe", "monotone-curves", "ssme-kde", "agreement-rates", "majority-vote",
                       "sparse votes")  # fmt: skip
@pytest.mark.parametrize("name", RESULTS)
def test_nothing_in_a_result_can_be_written_and_trying_changes_nothing(name):
    result = RESULTS[name]()
    before = said(result)  # what is cached is there
    found = [path for path, part in walk(result) if can_be_written(part)]
    assert found == []
    again = pickle.loads(pickle.dumps(result)) if name not in ("curve", "curves") else result
    assert [path for path, part in walk(again) if can_be_written(part)] == []
    scribble(result)
    assert said(result) == before
    if isinstance(result, fl.Predictions) and name != "sparse votes":
        assert fl.estimate(result).rows == fl.estimate(RESULTS[name]()).rows


def test_a_write_says_that_it_cannot_be_done():
    found = fl.estimate(predictions(), metrics="accuracy")
    for array in (found.predictions.hard, found.draws["accuracy", None], found.predictions.labels):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0
    for mapping in (found.draws, found.diagnostics, found.directions, found.predictions.groups):
        for write in (
            lambda m: m.update(a=1), lambda m: m.clear(), lambda m: m.popitem(),
            lambda m: m.setdefault("a", 1), lambda m: m.__setitem__("a", 1), lambda m: m.pop("a"),
        ):  # fmt: skip
            with pytest.raises(
                TypeError, match="a result cannot be written into; dict\\(\\) copies it"
            ):
                write(mapping)
    assert isinstance(copy.deepcopy(found.draws), type(found.draws))
    json.dumps(found.diagnostics)
    assert found.diagnostics | {"a": 1} == {**found.diagnostics, "a": 1}


def test_arrays_that_are_handed_over_stay_the_callers():
    sparse_votes = scipy.sparse.csr_matrix((P > 0.5).astype(np.int8) + 1)
    given = {
        "probabilities": P.copy(), "labels": LABELS.copy(), "histogram": COUNTS.copy(),
        "domain": BY.astype(object), "weight": P[:, 0] + 1, "multiplicity": np.ones(N),
        "label_weight": np.ones(N), "votes": (P > 0.5).astype(np.int8),
        "scores": np.log(P), "repeated_votes": np.zeros((1, 3), dtype=int),
    }  # fmt: skip
    groups = {"g": BY.copy()}
    made = [
        fl.Predictions(**given, groups=groups),
        fl.Predictions(votes=sparse_votes, labels=given["labels"]),
        fl.Predictions({"m": given["probabilities"][:, 0]}, given["labels"]),
        predictions().with_labels(given["labels"]).with_weight(given["weight"]),
        predictions().with_multiplicity(given["multiplicity"]),
        predictions().with_label_weight(given["label_weight"]),
        predictions().with_probabilities(given["probabilities"]),
    ]
    before = [pickle.dumps(one) for one in made]
    for array in (*given.values(), *groups.values(), sparse_votes.data, sparse_votes.indices):
        array[...] = array.ravel()[-1]  # raises where it has become read-only
    groups.clear()
    assert [pickle.dumps(one) for one in made] == before


def test_recalibrated_items_cannot_be_written():
    done = fit(predictions(), Settings("temperature")).apply(predictions())
    assert [path for path, part in walk(done) if can_be_written(part)] == []
