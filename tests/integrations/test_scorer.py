"""`fewlabels.scorer` in scikit-learn's own cross-validation and search."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import LinearSVC

import fewlabels as fl
from fewlabels.errors import InputError, UsageError

X, Y = make_classification(2000, n_features=20, n_informative=6, flip_y=0.1, random_state=3)
FEW, MORE, REST = slice(0, 60), slice(60, 460), slice(460, None)


def folds_of(labels: int, more: int, seed: int) -> dict[str, float]:
    """Mean error of the scores of five folds, against accuracy on 1,500 items that nobody saw."""
    items, truth = make_classification(
        1500 + labels + more, n_features=20, n_informative=6, flip_y=0.1, random_state=seed
    )
    x, y, unlabeled = items[:labels], truth[:labels], items[labels : labels + more]
    scoring = {"few": "accuracy", "more": fl.scorer("accuracy", unlabeled=unlabeled)}
    found = cross_validate(
        LogisticRegression(C=0.1), x, y, scoring=scoring, cv=StratifiedKFold(5),
        return_estimator=True,
    )  # fmt: skip
    rest = [e.score(items[labels + more :], truth[labels + more :]) for e in found["estimator"]]
    return {name: float(np.abs(found[f"test_{name}"] - rest).mean()) for name in scoring}


@pytest.mark.slow
def test_what_it_is_for() -> None:
    """Of 20 labels in a fold, 600 unlabeled items beside them make its score less of a lottery."""
    errors = [folds_of(100, 600, seed) for seed in range(8)]
    few, more = (np.mean([e[name] for e in errors]) for name in ("few", "more"))
    assert more < 0.85 * few


@pytest.mark.few(1)
@pytest.mark.parametrize("metric", ["recall", "ap", "f1"])
def test_words_that_do_not_say_which_is_positive_are_refused(metric: str) -> None:
    named = np.array(["ok", "bad"])[Y[FEW]]
    model = LogisticRegression().fit(X[FEW], named)
    with pytest.raises(InputError, match=r"needs positive=, one of bad, ok$"):
        fl.scorer(metric)(model, X[FEW], named)
    scores = [fl.scorer(metric, positive=word)(model, X[FEW], named) for word in ("bad", "ok")]
    assert scores[0] != scores[1]
    # Of no class, or of classes that say it.
    fl.scorer("accuracy")(model, X[FEW], named)
    for words in (["ham", "spam"], ["no", "yes"], [1, 2], [False, True]):
        y = np.array(words)[Y[FEW]]
        model = LogisticRegression().fit(X[FEW], y)
        found = fl.scorer(metric)(model, X[FEW], y)
        assert found == fl.scorer(metric, positive=words[1])(model, X[FEW], y)


def test_in_every_fold_the_unlabeled_items_count() -> None:
    scoring = {
        "own": fl.scorer("accuracy"),
        "more": fl.scorer("accuracy", unlabeled=X[MORE]),
        "loss": fl.scorer("log_loss", method="labeled"),
        "labeled": fl.scorer("accuracy", unlabeled=X[MORE], method="labeled"),
    }
    found = cross_validate(
        LogisticRegression(), X[FEW], Y[FEW], scoring=scoring, cv=2, return_estimator=True,
        return_indices=True,
    )  # fmt: skip
    for i, (model, fold) in enumerate(
        zip(found["estimator"], found["indices"]["test"], strict=True)
    ):
        x, y = X[FEW][fold], Y[FEW][fold]
        labels = np.append(y, np.full(400, -1))
        block = model.predict_proba(np.append(x, X[MORE], axis=0))
        whole = fl.estimate({"m": block}, y_true=labels, metrics="accuracy")
        assert found["test_more"][i] == pytest.approx(whole.get("m", "accuracy").value, abs=1e-12)
        assert found["test_own"][i] != found["test_more"][i]
        assert found["test_labeled"][i] == pytest.approx(accuracy_score(y, model.predict(x)))
        assert found["test_loss"][i] == pytest.approx(-log_loss(y, model.predict_proba(x)))


def test_in_a_search() -> None:
    scoring = fl.scorer("roc_auc", unlabeled=X[MORE], method="labeled")
    search = GridSearchCV(LogisticRegression(), {"C": [1e-4, 1.0]}, scoring=scoring, cv=2)
    search.fit(X[FEW], Y[FEW])
    means = [
        cross_validate(LogisticRegression(C=c), X[FEW], Y[FEW], scoring=scoring, cv=2)["test_score"]
        for c in (1e-4, 1.0)
    ]
    assert search.cv_results_["mean_test_score"].tolist() == np.mean(means, axis=1).tolist()
    assert search.best_score_ == np.mean(means, axis=1).max() > 0.6


@pytest.mark.parametrize("unknown", [-1, np.nan, None])
def test_folds_with_unlabeled_items(unknown: Any) -> None:
    scoring = fl.scorer("accuracy", method="labeled")
    y = [v if i < 30 else unknown for i, v in enumerate(Y[FEW].tolist())]
    model = LogisticRegression().fit(X[FEW], Y[FEW])
    right = accuracy_score(Y[:30], model.predict(X[:30]))
    assert scoring(model, X[FEW], np.array(y)) == pytest.approx(right)
    semi = SelfTrainingClassifier(LogisticRegression())
    if unknown == -1:
        found = cross_validate(semi, X[FEW], np.array(y), scoring=scoring, cv=2)
        assert ((found["test_score"] > 0.5) & (found["test_score"] <= 1)).all()


@pytest.mark.parametrize("names", [[-1, 1], ["fraud", "legit"], [False, True], [3, 7]])
def test_classes_of_any_kind(names: list[Any]) -> None:
    y = np.array(names)[Y]
    machine = LinearSVC(dual=False).fit(X[FEW], y[FEW])
    scoring = fl.scorer("recall", method="labeled", positive=names[1])
    held = slice(60, 160)
    right = np.mean(machine.predict(X[held])[Y[held] == 1] == names[1])
    assert scoring(machine, X[held], y[held]) == pytest.approx(right)


def test_it_is_a_value() -> None:
    scoring = pickle.loads(pickle.dumps(fl.scorer("accuracy", unlabeled=X[MORE])))
    model = LogisticRegression().fit(X[FEW], Y[FEW])
    assert 0.5 < scoring(model, X[:30], Y[:30]) < 1


def test_what_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown metric 'acuracy'"):
        fl.scorer("acuracy")
    with pytest.raises(UsageError, match="does not say whether larger or smaller is better"):
        fl.scorer("bias")
    with pytest.raises(InputError, match=r"is for classifiers of one label.* got LinearRegression"):
        fl.scorer("accuracy")(LinearRegression().fit(X, Y), X, Y)
    with pytest.raises(InputError, match=r"`y` holds '2', and the classes .* are 0, 1"):
        fl.scorer("accuracy")(LogisticRegression().fit(X[FEW], Y[FEW]), X[FEW], Y[FEW] * 2)
