"""Arrays as people have them, with `y_true` beside: what becomes of them, and what is refused."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fewlabels as fl
from fewlabels.data.inputs import predictions_of
from fewlabels.errors import InputError, UsageError

N, KNOWN = 60, 20
rng = np.random.default_rng(0)
TRUTH = np.arange(N) % 3 % 2
FEW = np.arange(N) < KNOWN
P = np.clip(0.7 * TRUTH + 0.3 * rng.random(N), 0.01, 0.99)
HARD = (P > 0.5).astype(int)
WORDS = np.array(["ham", "spam"])
THREE = np.eye(3)[np.arange(N) % 3] * 0.7 + 0.1


def read(source: Any, y_true: Any = None, **more: Any) -> fl.Predictions:
    return predictions_of(source, y_true=y_true, **more)


def hidden(values: Any, unknown: Any = None) -> list[Any]:
    return [v if few else unknown for v, few in zip(np.asarray(values).tolist(), FEW, strict=True)]


LABELS = {
    "None": hidden(TRUTH),
    "NaN": np.array(hidden(TRUTH, np.nan)),
    "-1": np.array(hidden(TRUTH, -1)),
    "masked": np.ma.array(TRUTH, mask=~FEW),
    "pd.NA": pd.Series(pd.array(hidden(TRUTH, pd.NA), dtype="Int64")),
    "polars": pl.Series(hidden(TRUTH)),
    "booleans": hidden(TRUTH.astype(bool)),
    "column": np.array(hidden(TRUTH, np.nan))[:, None],
    "no numbers": hidden(np.array(["no", "yes"])[TRUTH]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_ways_to_write_unknown_labels(kind: str) -> None:
    found = read(P, LABELS[kind])
    assert found.labels.tolist() == hidden(TRUTH, -1)
    said = "-1 in `y_true` (40 items) is an unknown label, as no prediction is -1"
    assert found.notes == ((said,) if kind == "-1" else ())


@pytest.mark.parametrize("unknown", [None, -1, np.nan, pd.NA, ""])
def test_unknown_among_words(unknown: Any) -> None:
    found = read(WORDS[HARD], hidden(WORDS[TRUTH], unknown))
    assert (found.classes, found.labels.tolist()) == (("ham", "spam"), hidden(TRUTH, -1))


PREDICTIONS = {
    "P(class 1)": (P, ["model0"], "probabilities"),
    "predict_proba": (np.stack([1 - P, P], axis=1), ["model0"], "probabilities"),
    "predict": (HARD, ["model0"], "votes"),
    "decision_function": (np.log(P / (1 - P)), ["model0"], "scores"),
    "a list": (P.tolist(), ["model0"], "probabilities"),
    "a series": (pd.Series(P, name="net"), ["net"], "probabilities"),
    "columns": (np.stack([P, P / 2], axis=1), ["model0", "model1"], "probabilities"),
    "hard columns": (np.stack([HARD, HARD, HARD], axis=1), ["model0", "model1", "model2"], "votes"),
    "blocks": (np.stack([np.stack([1 - P, P], 1)] * 2, 1), ["model0", "model1"], "probabilities"),
    "a mapping": ({"a": P, "b": P / 3}, ["a", "b"], "probabilities"),
    "a frame": (pd.DataFrame({"a": P, "b": P**2}), ["a", "b"], "probabilities"),
    "polars": (pl.DataFrame({"a": HARD, "b": 1 - HARD}), ["a", "b"], "votes"),
}


@pytest.mark.parametrize("kind", PREDICTIONS)
def test_kinds_of_predictions(kind: str) -> None:
    source, models, field = PREDICTIONS[kind]
    found = read(source, hidden(TRUTH))
    assert list(found.models) == models
    assert found.gives({"votes": "hard", "scores": "ranking"}.get(field, field)).all()
    assert getattr(found, field) is not None
    assert found.labels.tolist() == hidden(TRUTH, -1)


def test_columns_of_0_and_1_are_one_hot_from_three_on() -> None:
    one_hot = np.eye(3, dtype=int)[np.arange(N) % 3]
    assert read(one_hot, hidden(np.arange(N) % 3)).n_models == 1
    opposite = read(np.stack([HARD, 1 - HARD], axis=1), hidden(TRUTH))
    assert opposite.n_models == 2


def test_values_are_classes_and_not_indices() -> None:
    found = read(HARD + 1, hidden(TRUTH + 1))
    assert found.classes == (1, 2)
    assert found.labels.tolist() == hidden(TRUTH, -1)
    assert found.hard[:, 0].tolist() == HARD.tolist()
    of_three = read(THREE, np.array(hidden(np.arange(N) % 3 + 1, -1)))
    assert of_three.classes == (1, 2, 3)
    assert (of_three.labels[FEW] == of_three.hard[FEW, 0]).all()
    mixed = read(np.array(["1", "2"])[HARD], hidden(TRUTH + 1))
    assert (mixed.labels[FEW] == TRUTH[FEW]).all()


def test_classes_of_columns_are_in_the_order_of_scikit_learn_which_is_said() -> None:
    found = read(P, hidden(WORDS[TRUTH]))
    assert found.classes == ("ham", "spam")
    assert found.labels.tolist() == hidden(TRUTH, -1)
    said = "classes in the order of scikit-learn: ham, spam; probabilities and scores are of 'spam'"
    assert found.reading == (said,)
    one = [word if word == "spam" else None for word in hidden(WORDS[TRUTH])]
    with pytest.raises(InputError, match=r"of 2 classes.* are spam: name them all in their order"):
        read(P, one)
    named = read(P, one, columns={"classes": WORDS})
    assert named.n_labeled == sum(v is not None for v in one)
    frame = pd.DataFrame(np.stack([P, 1 - P], axis=1), columns=["spam", "ham"])
    by_name = read(frame, one)
    assert (by_name.classes, by_name.hard[:, 0].tolist()) == (("ham", "spam"), HARD.tolist())


def test_minus_one_is_a_class_where_the_predictions_have_it() -> None:
    signs = read(2 * HARD - 1, hidden(2 * TRUTH - 1))
    assert signs.labels.tolist() == hidden(TRUTH, -1)
    assert signs.notes == (
        "-1 in `y_true` is read as the class 0, as labels and predictions have it",
    )
    machine = read(np.log(P / (1 - P)), np.array(hidden(2 * TRUTH - 1, np.nan)))
    assert machine.labels.tolist() == hidden(TRUTH, -1)
    with pytest.raises(InputError, match="beside 0: if it is a class, call the classes by words"):
        read(np.arange(N) % 3 - 1, hidden(2 * TRUTH - 1))


def test_a_frame_of_native_columns_is_a_table_with_the_labels_beside() -> None:
    frame = pd.DataFrame({"p__net__spam": P, "language": np.array(["en", "es"])[HARD]})
    found = fl.estimate(frame, y_true=hidden(WORDS[TRUTH]), metrics="accuracy", by="language")
    assert found.get("net", "accuracy", {"language": "es"}).group == "language=es"
    with pytest.raises(UsageError, match="`y_true` and the column 'label' both give labels"):
        read(frame.assign(label="ham"), hidden(WORDS[TRUTH]))
    said = read(frame.rename(columns={"p__net__spam": "net"}), hidden(WORDS[TRUTH]),
                columns={"models": {"net": "net"}})  # fmt: skip
    assert (said.models, list(said.groups)) == (("net",), ["language"])


SERIES = pd.Series(TRUTH)
REFUSED = {
    "short": (P, TRUTH[:20], r"`y_true` must have 60 entries, one per item .*; got 20: the shape"),
    "part": (pd.Series(P), SERIES[:20], r"got 20: of some of them pass y_true\.reindex"),
    "order": (pd.Series(P), SERIES[::-1], r"index of `predictions` in another order; pass y_true"),
    "frame": (pd.DataFrame({"a": P}), SERIES[::-1], "in another order"),
    "one-hot": (P, np.eye(2)[TRUTH], r"got shape \(60, 2\): if a column is a class, pass y_true\."),
    "swapped": (TRUTH, P, r"`y_true` must be classes; got 0\.\d+: predictions come first"),
    "turned": (np.stack([P, P]), TRUTH, "`y_true` must have 2 entries"),
    "words": (HARD, hidden(WORDS[TRUTH]), "'model0' gives 0, 1, and the labels .* ham, spam"),
    "a group": (
        pd.DataFrame({"a": WORDS[HARD], "at": np.array(["en", "es"])[HARD]}), hidden(WORDS[TRUTH]),
        "'at' gives en, es, and the labels in `y_true` are ham, spam",
    ),
    "complex": (P + 0j, TRUTH, "`predictions` is complex"),
    "deep": (np.zeros((N, 2, 2, 2)), TRUTH, r"`predictions` must be .*; got shape \(60, 2, 2, 2\)"),
    "empty": ({}, TRUTH, "the mapping of classifiers is empty"),
    "twice": ({"a": P, "label": TRUTH}, TRUTH, "may each hold the labels"),
    "a path": ("items.csv", TRUTH, "for labels beside a file pass"),
    "made": (fl.Predictions(P[:, None]), TRUTH, r"predictions\.with_labels\(y_true\)"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_one_line_says_what_is_wrong(kind: str) -> None:
    source, y_true, line = REFUSED[kind]
    with pytest.raises(fl.FewlabelsError, match=line) as caught:
        read(source, y_true)
    assert "\n" not in str(caught.value)


def test_other_indices_are_not_looked_at() -> None:
    """Rows of a split have the numbers of the whole, and predictions of them start from 0."""
    assert read(pd.Series(P), pd.Series(TRUTH, index=range(100, 160))).n_labeled == N


def test_arrays_alone() -> None:
    assert fl.read_predictions(P).n_labeled == 0
    assert fl.read_predictions({"a": HARD + 1, "y_true": TRUTH + 1}).classes == (1, 2)


ASK = (
    fl.estimate, fl.compare, fl.score, fl.curve, fl.curves, fl.threshold, fl.calibration_curve,
    fl.label_next, fl.backtest, fl.shift,
)  # fmt: skip


@pytest.mark.few(4)
@pytest.mark.parametrize("ask", ASK, ids=lambda ask: ask.__name__)
def test_whatever_takes_predictions_takes_arrays(ask: Any) -> None:
    """Each gives what it gives of `Predictions` made by hand."""
    more: dict[str, Any] = {
        "threshold": {"min_recall": 0.5}, "compare": {"metric": "brier"},
        "label_next": {"metric": "accuracy", "size": 2}, "backtest": {"labels": 8, "runs": 1},
    }.get(ask.__name__, {})  # fmt: skip
    labels = TRUTH if ask is fl.backtest else hidden(TRUTH)
    several = ask in (fl.estimate, fl.compare)
    source = {"a": P, "b": P**2} if several else {"a": P}
    arrays = ask(source, y_true=labels, **more)
    by_hand = ask(fl.Predictions(source, labels), **more)
    assert arrays.to_dict() == by_hand.to_dict()


def test_the_list_of_those_functions_is_whole() -> None:
    public = [getattr(fl, name) for name in fl.__all__]
    takes = {f for f in public if inspect.isfunction(f) and f.__name__ in dir(fl)}
    takes = {f for f in takes if next(iter(inspect.signature(f).parameters)) == "predictions"}
    by_column = {fl.monitor, fl.label}  # their items have dates or texts, which are columns
    assert takes - by_column <= {*ASK}
