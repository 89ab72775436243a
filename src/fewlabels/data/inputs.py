"""What public functions take where they take predictions: these, or a path or frame to read."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from fewlabels.checks.arrays import UNKNOWN
from fewlabels.checks.class_words import same_answer
from fewlabels.errors import InputError, UsageError, listed, quoted
from fewlabels.kernels.arrays import Array
from fewlabels.kernels.counter_based import hash_columns
from fewlabels.predictions import Predictions


def predictions_of(
    source: Any,
    columns: Any = None,
    positive: Any = None,
    *,
    against_rest: bool = True,
    cluster: Any = None,
    stratum: str | None = None,
    tasks: bool = False,
    y_true: Any = None,
) -> Predictions:
    """`source` itself, or the predictions read from a path or frame, the positive class last."""
    # If `against_rest`, one of more than two classes is judged against the rest; unless `tasks`,
    # several tasks are refused. `y_true` are labels beside arrays or a frame.
    if y_true is not None:
        from fewlabels.data.read import with_labels_beside

        source, columns = with_labels_beside(source, y_true, columns, positive), None
    if not isinstance(source, Predictions):
        from fewlabels.data.read import read_predictions

        source = read_predictions(
            source, columns=columns, positive=positive, cluster=cluster, stratum=stratum
        )
        cluster = stratum = None
    elif columns is not None:
        raise UsageError("`columns` says what the columns of a file or frame are; leave it out")
    source = source if cluster is None else source.with_clusters(cluster)
    source = source if stratum is None else source.with_stratum(stratum)
    if not tasks:
        refuse_tasks(source)
    return against_the_rest(source, positive) if against_rest else source.with_positive()


def refuse_tasks(predictions: Predictions, what: str = "this") -> None:
    """Refuse several tasks where one is looked at."""
    if predictions.task is not None:
        raise one_at_a_time(predictions.tasks, what)


def one_at_a_time(tasks: Collection[str], what: str) -> UsageError:
    """Say that something is about one of several tasks."""
    return UsageError(
        f"there are {len(tasks)} tasks ({listed(tasks, 5)}), and {what} looks at one of them: name "
        "the column of its labels with --label COL (in Python `Predictions.of_task`)"
    )


def against_the_rest(predictions: Predictions, positive: Any) -> Predictions:
    """The predictions with this class positive, and a note if it is judged against several."""
    turned = predictions.with_positive(positive)
    if positive is None or predictions.n_classes == 2:
        return turned
    return turned.noting((*predictions.notes, one_against(positive, predictions.n_classes)))


def one_against(positive: Any, n_classes: int) -> str:
    """Say that one class is judged against all others."""
    return (
        f"class {quoted(str(positive))} is judged against the other {n_classes - 1} taken together"
    )


def apply_thresholds(
    reference: Predictions, threshold: float | None, thresholds: Mapping[str, float] | None
) -> Predictions:
    """The reference with hard predictions by the thresholds on P(positive) of the target."""
    given = np.flatnonzero(reference.has_probabilities.any(axis=0))
    found = {
        reference.models[j]: (thresholds or {}).get(reference.models[j], threshold) for j in given
    }
    cuts = {model: cut for model, cut in found.items() if cut is not None}
    return reference.thresholded(cuts) if cuts else reference


FEWEST_REFERENCE = 10
"""With fewer labeled items a reference says little."""


def reference_of(
    source: Any, target: Predictions, keep: Sequence[str] = (), **columns: Any
) -> Predictions:
    """Labeled items from elsewhere, with the classes and classifiers of `target`."""
    # The groups of some columns are kept.
    name = str(source) if isinstance(source, str | os.PathLike) else "`reference`"
    found = source
    if not isinstance(source, Predictions):
        from fewlabels.data.read import read_reference

        try:
            found = read_reference(source, target.positive, keep, **columns)
        except InputError as error:
            if isinstance(source, str | os.PathLike):  # the message begins with its name
                raise
            raise InputError(f"`reference`: {error}") from None
    rest = f"not {target.classes[-1]}"
    against_rest = found.n_classes > 2 and target.classes[0] == rest
    found = found.with_positive(target.classes[-1] if against_rest else None)
    if not found.n_labeled:
        raise InputError(
            f"{name}: none of its {found.size:,} items has a label, and reference data are labeled "
            "items; leave it out, or label some of it"
        )
    common = [model for model in target.models if model in found.models]
    if not common:
        raise InputError(
            f"{name}: has no classifier of these predictions ({listed(target.models, 5)}); its own "
            f"are {listed(found.models, 5)}: call the same ones by the same names"
        )
    notes = list(found.notes)
    others = [model for model in found.models if model not in common]
    if others:
        notes.append(f"classifiers that only the reference has are left out: {listed(others, 5)}")
    n = found.n_labeled
    if n < FEWEST_REFERENCE:
        notes.append(f"only {n} labeled item{'s' * (n > 1)}: so few say little")
    aligned = _aligned(found.take(found.labeled).select_models(common), target, name)
    there = [column for column in keep if column in aligned.groups]
    return aligned.keeping(there).noting(dict.fromkeys([*notes, *_in_both(aligned, target)]))


def _aligned(found: Predictions, target: Predictions, name: str) -> Predictions:
    """The same items with the classes and classifiers of the target, in its order."""
    place = np.array(_class_places(found, target, name))
    column = np.array([target.models.index(model) for model in found.models])
    n, m, k = found.n_items, target.n_models, target.n_classes

    def of_class(block: Array) -> Array:
        return np.where(block < 0, UNKNOWN, place[block])

    p = votes = scores = again = None
    if found.probabilities is not None:
        p = np.full((n, m, k), np.nan)
        p[:, column[:, None], place] = found.probabilities
    if found.votes is not None:
        votes = np.full((n, m), UNKNOWN)
        votes[:, column] = of_class(found.votes)
    if found.scores is not None:
        # Larger is more positive; the target's positive class is the last.
        turned = found.positive is not None and place[found.classes.index(found.positive)] == 0
        scores = np.full((n, m), np.nan)
        scores[:, column] = -found.scores if turned else found.scores
    if found.repeated_votes is not None:
        item, model, answer = found.repeated_votes.T
        again = np.stack([item, column[model], place[answer]], axis=1)
    return Predictions(
        p, of_class(found.labels), votes=votes, scores=scores, weight=found.weight,
        models=target.models, classes=target.classes, positive=target.positive,
        repeated_votes=again, multiplicity=found.multiplicity, groups=found.groups,
    )  # fmt: skip


def _class_places(found: Predictions, target: Predictions, name: str) -> list[int]:
    """Where each class of the reference is among those of the target."""
    classes = [str(c) for c in target.classes]
    meant = [same_answer(str(c), classes) for c in found.classes]
    own = [str(c) for c, same in zip(found.classes, meant, strict=True) if same is None]
    twice = next((c for c in classes if meant.count(c) > 1), None)
    absent = [c for c in classes if c not in meant]
    why = ""
    if own:
        why = f"has the class {listed(map(quoted, own), 5)}, which these predictions have not"
    elif twice is not None:
        why = f"has two classes that mean {quoted(twice)}"
    elif absent and found.probabilities is not None:
        why = f"has no class {listed(map(quoted, absent), 5)}"
    if why:
        raise InputError(
            f"{name}: {why} (their classes are {listed(classes, 5)}); call the same classes by the "
            "same names"
        )
    return [classes.index(same) for same in meant if same is not None]


_TOLD_APART = 0.95
"""Share of items with different contents; below it, equal contents may be coincidence."""


def _in_both(reference: Predictions, target: Predictions) -> list[str]:
    """Warn of labeled items that are in the reference too, if their numbers identify items."""
    in_reference = np.unique(hash_columns(content_columns(reference), reference.n_items))
    in_target = np.unique(hash_columns(content_columns(target), target.n_items)[target.labeled])
    there = np.isin(in_target, in_reference).sum()
    if 2 * there <= len(in_target) or len(in_reference) < _TOLD_APART * reference.n_items:
        return []
    return [
        f"{there:,} of the {len(in_target):,} labeled items are in it as well, and count twice; "
        "leave them out of one"
    ]


def content_columns(predictions: Predictions, *more: Array | None) -> list[Array]:
    """Label and predictions of the items, and more of them, a column each, (n,)."""
    blocks = (predictions.probabilities, predictions.scores, *more)
    columns = [b.reshape(len(b), -1) for b in blocks if b is not None]
    return [predictions.labels, *(column for block in columns for column in block.T)]
