"""`fewlabels.scorer`: a metric as a scorer of scikit-learn that uses unlabeled items as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewlabels.checks.arguments import RandomState, is_missing, seed_of
from fewlabels.checks.arrays import UNKNOWN, label_array
from fewlabels.checks.class_words import positive_index
from fewlabels.errors import InputError, UsageError, listed, quoted
from fewlabels.estimating import estimate
from fewlabels.kernels.arrays import Array, Ints
from fewlabels.methods.base import LabelModel
from fewlabels.metrics.base import Metric
from fewlabels.metrics.registry import resolve
from fewlabels.predictions import Predictions

_OF_POSITIVE = ("precision", "recall", "specificity", "f1", "average_precision")


def scorer(
    metric: str | Metric | Callable[..., Any],
    *,
    unlabeled: Any = None,
    method: str | LabelModel = "auto",
    positive: Any = None,
    random_state: RandomState = 0,
) -> Scorer:
    """Make a scorer for `cross_val_score`, `GridSearchCV` and whatever takes `scoring`.

    In every fold the score is the estimate from the fold's items and from `unlabeled`, by which a
    metric moves less from fold to fold than with the few labels of a fold alone.

    Parameters
    ----------
    metric
        Name of a metric, a metric, or a function of (y_true, y_proba), as for `fewlabels.estimate`.
        Where smaller is better the score is the negative, as in scikit-learn.
    unlabeled
        Items without labels, in whatever form the estimator predicts, drawn as the labeled ones
        were. None: those of the fold alone.
    method, random_state
        As for `fewlabels.estimate`.
    positive
        The positive class. None: the last of numbers, else by words (yes, spam); or it is refused.

    Returns
    -------
    Scorer
        Called with (estimator, X, y). A fold's label may be None or NaN, or -1 where the estimator
        knows no such class.

    Raises
    ------
    UsageError
        If the metric is not one, or says of no value that it is better.

    Examples
    --------
    >>> import fewlabels as fl
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = make_classification(1000, random_state=0)
    >>> scoring = fl.scorer("accuracy", unlabeled=X[60:])
    >>> cross_val_score(LogisticRegression(), X[:60], y[:60], scoring=scoring, cv=3).shape
    (3,)
    """
    ((name, resolved),) = resolve([metric]).items()
    if resolved.direction == 0:
        raise UsageError(f"metric {name!r} does not say whether larger or smaller is better")
    return Scorer(metric, unlabeled, method, positive, seed_of(random_state), resolved.direction)


@dataclass(frozen=True, eq=False)
class Scorer:
    """What `fewlabels.scorer` returns; its arguments, the seed, and the metric's direction."""

    metric: Any
    unlabeled: Any
    method: str | LabelModel
    positive: Any
    seed: int
    direction: int

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """The score of a fitted classifier on a fold.

        Raises
        ------
        InputError
            If the estimator has no classes, or the fold has labels of others.
        """
        classes = getattr(estimator, "classes_", None)
        if classes is None or np.ndim(classes) != 1:
            raise InputError(
                "`scorer` is for classifiers of one label, which have `classes_`; got "
                f"{type(estimator).__name__}"
            )
        names = list(classes)
        labels = _indices("y", y, names)
        outputs = [_outputs(estimator, X, names)]
        if self.unlabeled is not None:
            outputs.append(_outputs(estimator, self.unlabeled, names))
            more = len(next(iter(outputs[1].values())))
            labels = np.concatenate([labels, np.full(more, UNKNOWN)])
        given: dict[str, Any] = {
            kind: np.concatenate([one[kind] for one in outputs]) for kind in outputs[0]
        }
        positive = None if self.positive is None else names.index(self.positive)
        if positive is None and len(names) == 2:
            (metric,) = resolve([self.metric]).values()
            if metric.name in _OF_POSITIVE and positive_index(names, sure=True) < 0:
                raise InputError(f"{metric.name} needs positive=, one of {listed(map(str, names))}")
            positive = positive_index(names)
        found = estimate(
            Predictions(**given, labels=labels, classes=range(len(names)), positive=positive),
            self.method, [self.metric], confidence_level=None, random_state=self.seed,
        )  # fmt: skip
        return float(self.direction * found.rows[0].value)


def _outputs(estimator: Any, X: Any, names: list[Any]) -> dict[str, Array]:
    """What an estimator gives: probabilities or scores where it has them, else classes."""
    votes = _indices("predict(X)", estimator.predict(X), names)
    out = {"votes": votes[:, None]}
    if hasattr(estimator, "predict_proba"):
        out["probabilities"] = np.asarray(estimator.predict_proba(X))[:, None, :]
    elif hasattr(estimator, "decision_function") and len(names) == 2:
        out["scores"] = np.asarray(estimator.decision_function(X)).reshape(-1, 1)
    return out


def _indices(what: str, values: Any, names: list[Any]) -> Ints:
    """Which class each value is, (n,); -1 where it is missing."""
    index = {name: k for k, name in enumerate(names)}
    array = label_array(what, values)
    out = [index.get(v, UNKNOWN) for v in array.tolist()]
    for value, k in zip(array.tolist(), out, strict=True):
        if k == UNKNOWN and not is_missing(value) and value != UNKNOWN:
            raise InputError(
                f"`{what}` holds {quoted(str(value))}, and the classes that the estimator was "
                f"fitted to are {listed(map(str, names), 10)}"
            )
    return np.array(out, dtype=np.int64)
