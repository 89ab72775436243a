"""Predictions: outputs of classifiers, and the known labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal

import numpy as np
import scipy.sparse

from fewlabels.checks.arguments import matrix, whole_counts
from fewlabels.checks.arrays import (
    UNKNOWN,
    by_column,
    by_name,
    check_shapes,
    class_index,
    class_indices,
    class_names,
    cluster_values,
    dense_votes,
    known_labels,
    label_array,
    label_weights,
    missing_values,
    model_names,
    one_of_classes,
    per_item,
    positive_class,
    positive_counts,
    probability_block,
    refuse_beside_mapping,
    refuse_index,
    sampling_weight,
    sparse_votes,
    two_signs,
    votes_again,
)
from fewlabels.checks.class_words import numbers_of
from fewlabels.errors import InputError, UsageError, unknown
from fewlabels.kernels.arrays import (
    Array,
    Bools,
    Floats,
    Frozen,
    FrozenDict,
    Ints,
    UInts,
    frozen,
    read_only,
)
from fewlabels.kernels.blocks import computed_once
from fewlabels.kernels.clusters import (
    Worth,
    intraclass_correlation,
    pooled_words,
    powers,
    unexplained,
    worth,
)
from fewlabels.kernels.counter_based import (
    alone,
    distinguish,
    hash_columns,
    hash_rows,
    hash_strings,
    shared_exponentials,
    uniforms,
)
from fewlabels.kernels.votes import (
    agreement,
    annotator_accuracy,
    as_ballots,
    by_class,
    count_votes,
    votes_of,
)
from fewlabels.report.shown import HasSummary

Needs = Literal["hard", "probabilities", "ranking"]
"""Kinds of output that a metric may need."""

_CORRELATED, _TOGETHER = 2**17, 0x7063
"""At most this many labels times classes are used for the correlations within clusters."""

MOST_CELLS = 2**22
"""Up to this many items times annotators, votes are kept as a dense table."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Predictions(Frozen, HasSummary):
    """Predictions of M classifiers for n items of K classes, with the labels there are.

    Whatever array-like is copied, item by item in its order (an index of pandas is not looked at).
    What is masked, NA or None is missing, as -1 or NaN are; complex numbers, times, records, ragged
    and sparse arrays are refused. Nothing here can be written into.

    Parameters
    ----------
    probabilities
        Class probabilities, shape (n, M, K), or (n, M) = P(class 1) for two classes. A block
        (n, K) whose rows sum to 1 is one classifier. A row of NaN says that the classifier has no
        prediction for the item. Rows whose sum is 1 but for rounding are renormalised, with a
        warning. Or a mapping, name -> what that classifier said: (n, K) or (n,) probabilities,
        (n,) hard predictions (whole numbers, text, booleans), (n,) scores (other real numbers), or
        a frame whose columns are named by class.
    labels
        Class index per item, shape (n,); -1 (or NaN) = unknown. Strings are looked up in `classes`.
        Of labels that are 1 and -1 alone, without `classes`, -1 is the other class if the
        classifiers tell them apart, which a note says; NaN is always unknown.
    votes
        Hard predictions, shape (n, M); -1 = missing. They win over the argmax of `probabilities`.
        Kept in the smallest integers that hold the classes. Of thousands of annotators a SciPy
        sparse matrix (n, M) of class + 1, nothing where there is no vote: it stays sparse.
    scores
        Real-valued scores of two-class classifiers, shape (n, M), larger = more positive (more
        likely of the class `positive`); NaN = missing.
    histogram
        How many annotators chose each class, shape (n, K).
    groups
        Name -> group of each item, shape (n,); None (or NaN) = not given.
    domain
        Domain of each item, shape (n,).
    clusters
        Name -> cluster of each row, shape (n,), where rows belong together: the ratings of a case,
        the frames of a video. Several are crossed. Without a value (None, NaN) a row is a cluster
        of its own.
    weight
        Sampling weight, not negative, of each item or of just the labeled, (n,); sums to n then.
    models, classes
        Names.
    positive
        The positive one of two classes: that of a known word (1, yes, true, pass, fraud, spam ...)
        unless given, else the last. Of more than two, the one to judge against the rest, if any.
    repeated_votes
        Further votes of a classifier (an annotator) on an item that it has voted on, shape (E, 3):
        item, classifier, class. Label models that learn from votes count them; metrics go by
        `votes`.
    multiplicity
        How many items of the same predictions, votes and label each row stands for, shape (n,).
        Rows of votes are given once each so, however many items there are.
    label_weight
        Weight of each labeled item among the labeled ones, shape (n,), where they were drawn with
        unequal probabilities: those of `fewlabels.kernels.importance.lure_weights`. Who averages
        labels uses it; label models do not need it.
    item
        The group that holds the names of the items, which is kept in everything that is written.
    stratum
        The group that says of which stratum an item is, where the items to label were drawn at
        random within strata. Labels then count by their stratum's share of all items, and
        `label_weight` is made of it.
    task
        The group that says of which task a row is, where items have several tasks (tags of a text,
        criteria of a rubric), each with labels of its own. `estimate` estimates every task by
        itself, and `of_task` gives the rows of one.
    notes, reading
        Lines for the reader of results: what to be careful with, and which column of a file was
        taken for what where nobody had said it.

    Raises
    ------
    InputError
        Where the arrays are not what is said above; the message says which item and what to do.

    Examples
    --------
    >>> import fewlabels as fl
    >>> predictions = fl.Predictions([[0.9, 0.7], [0.2, 0.4]], [1, -1], models=["a", "b"])
    >>> predictions.n_items, predictions.n_models, predictions.n_classes, predictions.n_labeled
    (2, 2, 2, 1)
    """

    _page = "predictions"

    probabilities: Floats | None
    given_votes: Array | scipy.sparse.csr_matrix | None
    scores: Floats | None
    labels: Ints
    histogram: Floats | None
    groups: Mapping[str, Array]
    domain: Array | None
    clusters: Mapping[str, Array]
    known_correlation: tuple[float, ...] | None
    weight: Floats
    models: tuple[str, ...]
    classes: tuple[Any, ...]
    positive: Any
    repeated_votes: Ints | None
    multiplicity: Floats | None
    label_weight: Floats | None
    stratum: str | None
    item: str | None
    task: str | None
    notes: tuple[str, ...]
    reading: tuple[str, ...]
    part_keys: UInts | None = None
    part_accuracy: float | None = None

    def __init__(
        self,
        probabilities: Any = None,
        labels: Any = None,
        *,
        votes: Any = None,
        scores: Any = None,
        histogram: Any = None,
        groups: Mapping[str, Any] | None = None,
        domain: Any = None,
        clusters: Mapping[str, Any] | None = None,
        weight: Any = None,
        models: Sequence[str] | None = None,
        classes: Sequence[Any] | None = None,
        repeated_votes: Any = None,
        multiplicity: Any = None,
        label_weight: Any = None,
        stratum: str | None = None,
        positive: Any = None,
        item: str | None = None,
        task: str | None = None,
        notes: Iterable[str] = (),
        reading: Iterable[str] = (),
    ) -> None:
        messages = list(notes)
        if probabilities is None and isinstance(votes, Mapping) and scores is None:
            probabilities, votes = votes, None
        elif probabilities is None and isinstance(scores, Mapping) and votes is None:
            probabilities, scores = scores, None
        elif hasattr(probabilities, "columns") and np.ndim(probabilities) == 2 and models is None:
            probabilities = {"model0": probabilities}
        if isinstance(probabilities, Mapping):
            refuse_beside_mapping(votes=votes, scores=scores, models=models)
            labels = None if labels is None else label_array("labels", labels)
            probabilities, votes, scores, models, classes = by_name(probabilities, classes, labels)
        labels, votes, scores = (
            value if value is None or scipy.sparse.issparse(value) else label_array(name, value)
            for name, value in (("labels", labels), ("votes", votes), ("scores", scores))
        )
        probabilities = one_of_classes(probabilities, models, messages)
        if task is not None and task not in (groups or {}):
            raise InputError(f"`task` must be the name of a group; got {task!r}")
        names = model_names(models, probabilities, votes, scores)
        p = None if probabilities is None else probability_block(probabilities, names, messages)
        s = None if scores is None else matrix("scores", scores)
        ballots: scipy.sparse.csr_matrix | None = None
        if scipy.sparse.issparse(votes):
            ballots, votes = sparse_votes(votes), None
            if p is not None or s is not None or np.prod(ballots.shape) <= MOST_CELLS:
                ballots, votes = None, dense_votes(ballots)
        v = None if votes is None else class_indices("votes", votes, 2)
        h = (
            None
            if histogram is None
            else whole_counts(np.nan_to_num(matrix("histogram", histogram)))
        )
        if p is None and s is None and v is None and ballots is None:
            raise InputError(
                "no predictions given; pass `probabilities`, `votes` or `scores` (in a file: "
                "columns p__<model>__<class>, y__<model> or s__<model>)"
            )
        seen = v if ballots is None else ballots.data.astype(np.int64)[:, None] - 1
        called = class_names(classes, p, seen, s, h, labels)
        k = len(called)
        n = next(a.shape[0] for a in (p, v, s, ballots) if a is not None)
        check_shapes(n, k, len(names), p, v, s, h)
        if seen is not None and seen.size and seen.max() >= k:
            refuse_index("votes", int(seen.max()), called)
        small = np.min_scalar_type(-k - 1)
        table: Any = v if ballots is None else ballots.astype(small)
        if v is not None:
            table = v.astype(np.min_scalar_type(-k), copy=False)
        y = known_labels(labels, n, called)
        if classes is None and k == 2 and labels is not None:
            y, v = two_signs(labels, y, p, v, s, messages)
            table = table if v is None else v.astype(table.dtype, copy=False)
        self._set(
            probabilities=p,
            given_votes=table,
            scores=s,
            labels=y,
            histogram=h,
            groups={
                g: per_item(f"groups[{g!r}]", a, n) for g, a in by_column("groups", groups).items()
            },
            domain=None if domain is None else per_item("domain", domain, n),
            clusters=cluster_values(by_column("clusters", clusters), n, messages),
            known_correlation=None,
            weight=sampling_weight(weight, n, y, messages),
            models=names,
            classes=called,
            positive=positive_class(called, positive),
            repeated_votes=None
            if repeated_votes is None
            else votes_again(repeated_votes, n, len(names), k),
            multiplicity=None if multiplicity is None else positive_counts(multiplicity, n),
            label_weight=None if label_weight is None else label_weights(label_weight, y),
            stratum=None,
            item=item,
            task=task,
            notes=tuple(dict.fromkeys(messages)),
            reading=tuple(reading),
        )
        if stratum is not None:
            self._set(stratum=stratum, label_weight=self.with_stratum(stratum).label_weight)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, frozen(read_only(value)))

    def _report_of_text(self) -> dict[str, Any]:
        """Numbers of items and labels, and the outputs of each classifier."""
        kinds = {"probabilities": self.probabilities, "scores": self.scores}
        if not self.is_sparse:
            kinds["hard"] = self.votes
        has = {
            kind: (block >= 0 if kind == "hard" else ~np.isnan(block)).reshape(
                self.n_items, self.n_models, -1
            ).any(axis=(0, 2)).tolist()
            for kind, block in kinds.items() if block is not None
        }  # fmt: skip
        if self.is_sparse:
            has["hard"] = self.gives("hard").tolist()
        return {
            "n_items": self.size,
            "n_labeled": self.n_labeled,
            "n_annotated": self.n_annotated,
            "models": self.models,
            "classes": self.classes,
            "positive": self.positive,
            "reading": self.reading,
            "gives": has,
        }

    @property
    def item_names(self) -> dict[str, list[Any]]:
        """The names of the items, under the name of their column; empty where they have none."""
        return {} if self.item is None else {self.item: self.groups[self.item].tolist()}

    @property
    def n_items(self) -> int:
        """Number of items, n; where rows stand for several, number of rows (see `size`)."""
        return len(self.labels)

    @computed_once
    def times(self) -> Floats:
        """How many items each row stands for, shape (n,)."""
        return np.ones(self.n_items) if self.multiplicity is None else self.multiplicity

    def size_of(self, rows: Array | slice) -> int:
        """How many items some rows (indices, a mask or a slice) stand for."""
        return round(float(self.times[rows].sum()))

    def effective_size(self, rows: Ints) -> float:
        """How many labels of equal weight, and independent, those of these rows are worth."""
        return round(self.worth(rows, self.weight_of_labels[rows]).rows, 6)

    @computed_once
    def weight_of_labels(self) -> Floats:
        """What each item's label weighs among the labels, shape (n,): see `label_weight`."""
        return self.weight if self.label_weight is None else self.weight * self.label_weight

    @property
    def size(self) -> int:
        """How many items all rows stand for."""
        return self.size_of(slice(None))

    @computed_once
    def place(self) -> Mapping[str, int]:
        """Place of every classifier among them, by its name."""
        return FrozenDict({name: j for j, name in enumerate(self.models)})

    @property
    def n_models(self) -> int:
        """Number of classifiers, M."""
        return len(self.models)

    @property
    def n_classes(self) -> int:
        """Number of classes, K."""
        return len(self.classes)

    @computed_once
    def grades(self) -> Floats:
        """The classes as numbers, (K,): what they say if all are numbers, else their places."""
        values = numbers_of(self.classes)
        return np.arange(self.n_classes, dtype=float) if values is None else values

    def with_positive(self, positive: Any = None) -> Predictions:
        """The same predictions with this class, or `self.positive`, as the last of two.

        That is where label models and metrics look for the positive class. Of more than two
        classes it is judged against the rest: P(not c) = 1 - P(c), and every other label and vote
        becomes "not c". Scores turn round where the positive class changes.

        Raises
        ------
        UsageError
            If it is no class.
        """
        named = self.positive if positive is None else positive
        if named is None:
            return self
        k = class_index(named, self.classes)
        name = self.classes[k]
        if self.n_classes == 2:
            if k == 1 and name == self.positive:
                return self
            other = self.classes[1 - k]
        else:
            other = f"not {name}"

        def index(array: Array) -> Array:
            return np.where(array < 0, array, array == k).astype(array.dtype, copy=False)

        def rest(block: Floats) -> Floats:
            if self.n_classes == 2:
                return block[..., [1 - k, k]]
            chosen = block[..., k]
            return np.stack([block.sum(axis=-1) - chosen, chosen], axis=-1)

        again = self.repeated_votes
        return self._with(
            classes=(other, self.classes[k]),
            positive=self.classes[k],
            labels=index(self.labels),
            given_votes=self._votes_as(index),
            scores=self.scores if name == self.positive or self.scores is None else -self.scores,
            probabilities=None if self.probabilities is None else rest(self.probabilities),
            histogram=None if self.histogram is None else rest(self.histogram),
            repeated_votes=None if again is None else np.c_[again[:, :2], again[:, 2] == k],
        )

    def _votes_as(self, index: Callable[[Array], Array]) -> Array | scipy.sparse.csr_matrix | None:
        """The votes with other indices of their classes."""
        votes: Any = self.given_votes
        if not self.is_sparse:
            return None if votes is None else index(votes)
        data = index(votes.data - 1) + 1
        return scipy.sparse.csr_matrix((data, votes.indices, votes.indptr), votes.shape)

    @computed_once
    def labeled(self) -> Bools:
        """Which items have a known label, shape (n,)."""
        return self.labels >= 0

    @property
    def n_labeled(self) -> int:
        """Number of items with a known label."""
        return self.size_of(self.labeled)

    @property
    def n_annotated(self) -> int:
        """Number of items without a known label that annotators labeled (histogram)."""
        return self.size_of(self.annotated)

    @computed_once
    def annotated(self) -> Bools:
        """Items without a known label that annotators labeled (histogram), shape (n,)."""
        if self.histogram is None:
            return np.zeros(self.n_items, dtype=bool)
        return np.asarray(self.histogram.any(axis=1) & ~self.labeled)

    @property
    def told(self) -> Bools:
        """Items with a known label or annotators' counts, (n,); a tie of these has no evidence."""
        return self.labeled | self.annotated

    @computed_once
    def named(self) -> tuple[Ints, Ints]:
        """Items (E,) and classes (E,) that a known label, or else any annotator, names."""
        rows = np.flatnonzero(self.labeled)
        if self.histogram is None:
            return rows, self.labels[rows]
        others = np.flatnonzero(self.annotated)
        item, label = np.nonzero(self.histogram[others])
        return np.r_[rows, others[item]], np.r_[self.labels[rows], label]

    @computed_once
    def has_probabilities(self) -> Bools:
        """Where classifier j gives probabilities for item i, shape (n, M)."""
        if self.probabilities is None:
            return np.broadcast_to(np.False_, (self.n_items, self.n_models))
        return ~np.isnan(self.probabilities[:, :, 0])

    @property
    def is_sparse(self) -> bool:
        """Whether votes are all there is, and so many annotators give them that they are sparse."""
        return bool(scipy.sparse.issparse(self.given_votes))

    @computed_once
    def votes(self) -> Array | None:
        """The votes as they were given, shape (n, M); -1 = missing. None where there are none."""
        if not self.is_sparse:
            return self.given_votes
        return dense_votes(self.given_votes)

    @computed_once
    def ballots(self) -> scipy.sparse.csr_matrix:
        """Hard predictions, shape (n, M), as class + 1; nothing where there are none."""
        return self.given_votes if self.is_sparse else as_ballots(self.hard)

    @computed_once
    def _by_model(self) -> scipy.sparse.csc_matrix:
        """The same by classifier."""
        out = self.ballots.tocsc()
        out.sort_indices()
        return out

    def gives(self, needs: Needs) -> Bools:
        """Classifiers that give the output a metric needs for some item, shape (M,)."""
        return self._givers[needs]

    @computed_once
    def _givers(self) -> Mapping[Needs, Bools]:
        def givers(needs: Needs) -> Bools:
            votes_only = self.is_sparse and needs == "hard"
            columns = (
                np.bincount(self.ballots.indices, minlength=self.n_models) if votes_only else 0
            )
            nothing = self.is_sparse or (self.probabilities is None and needs == "probabilities")
            if nothing:
                return np.broadcast_to(np.asarray(columns) > 0, self.n_models)
            return np.asarray(self.provides(needs).any(axis=0))

        every: tuple[Needs, ...] = ("hard", "probabilities", "ranking")
        return FrozenDict({needs: read_only(givers(needs)) for needs in every})

    def given_by(self, needs: Needs, j: int) -> Ints:
        """Items with the output of classifier j that a metric needs, ascending."""
        if not (self.is_sparse and needs == "hard"):
            return np.flatnonzero(self.provides(needs)[:, j])
        columns = self._by_model
        out: Ints = columns.indices[columns.indptr[j] : columns.indptr[j + 1]].astype(np.int64)
        return out

    def hard_of(self, rows: Ints, j: int) -> Array:
        """Hard predictions of classifier j for these items, in the order of `rows`; -1 = none."""
        if not self.is_sparse:
            return self.hard[rows, j]
        columns = self._by_model
        column = slice(columns.indptr[j], columns.indptr[j + 1])
        items, classes = columns.indices[column], columns.data[column]
        place = np.minimum(np.searchsorted(items, rows), max(len(items) - 1, 0))
        if not len(items):
            return np.full(len(rows), UNKNOWN)
        return np.where(items[place] == rows, classes[place] - 1, UNKNOWN)

    @computed_once
    def hard(self) -> Array:
        """Hard predictions, shape (n, M): the vote, else the first argmax; -1 = missing.

        In the smallest integers that hold the classes.
        """
        if self.probabilities is None and self.votes is not None:
            return self.votes
        small = np.min_scalar_type(-self.n_classes)
        if self.probabilities is None:
            return np.full((self.n_items, self.n_models), UNKNOWN, dtype=small)
        out = np.where(self.has_probabilities, np.argmax(self.probabilities, axis=2), UNKNOWN)
        if self.votes is not None:
            out = np.where(self.votes >= 0, self.votes, out)
        return out.astype(small)

    @computed_once
    def has_hard(self) -> Bools:
        """Where classifier j gives a hard prediction for item i, shape (n, M)."""
        return np.asarray(self.hard >= 0)

    @computed_once
    def vote_counts(self) -> scipy.sparse.csr_matrix:
        """How often classifier j calls item i class l: row i, column j K + l, shape (n, M K)."""
        return count_votes(self.ballots, self.n_classes, self.repeated_votes)

    def provides(self, needs: Needs) -> Bools:
        """Whether classifier j gives item i the output a metric needs, shape (n, M).

        A ranking goes by probabilities where the classifier has any, else by its scores.
        """
        if needs == "hard":
            return self.has_hard
        if needs == "probabilities" or self.scores is None:
            return self.has_probabilities
        by_score = ~self.has_probabilities.any(axis=0)
        return np.where(by_score, ~np.isnan(self.scores), self.has_probabilities)

    @computed_once
    def evidence(self) -> Floats:
        """Log-likelihood of what is known of each item's label, shape (n, K).

        One-hot (0 and -inf) for a known label, 0 where nothing is known. A histogram is a
        multinomial: each annotator is right with probability r and else names any other class,
        where r is found from how often two annotators of one item agree,
        r^2 + (1 - r)^2 / (K - 1) (moments; r = .9 where no item has two labels).
        """
        out = np.zeros((self.n_items, self.n_classes))
        if self.histogram is not None:
            right = self.annotator_accuracy
            wrong = (1 - right) / (self.n_classes - 1)
            out += self.histogram * (np.log(right) - np.log(wrong))
            out -= out.max(axis=1, keepdims=True)
        out[self.labeled] = -np.inf
        rows = np.flatnonzero(self.labeled)
        out[rows, self.labels[rows]] = 0.0
        return out

    @computed_once
    def annotator_accuracy(self) -> float:
        """How often an annotator is right, by how often two of one item agree; see `evidence`."""
        if self.part_accuracy is not None:
            return self.part_accuracy
        if self.histogram is None:
            return 0.9
        return annotator_accuracy(*agreement(self.histogram, self.multiplicity))

    def as_part(self, accuracy: float | None = None, keys: UInts | None = None) -> Predictions:
        """The same items as a part of many more; whatever is made of them is a whole again.

        `accuracy` is that of annotators of all items (None: of the part), `keys` (n,) are those of
        these items among all (None: equal items have equal ones, as only all can tell them apart).
        """
        identity = alone(self.identity) if keys is None else keys
        return self._with(part_keys=identity, part_accuracy=accuracy)

    @computed_once
    def keys(self) -> UInts:
        """Key of each item, shape (n,): its identity, with equal items told apart.

        All randomness per item is drawn from it, so no answer depends on the order of the rows.
        """
        if self.part_keys is not None:
            return self.part_keys
        # The weight is known up to its unit only, and groups may come and go: neither belongs to
        # the identity, but both tell equal rows apart in an order of their own.
        aside: list[Array] = [self.weight.astype(np.float32)]
        aside += [hash_strings(texts) for texts in (*self.groups.values(), *self.clusters.values())]
        return distinguish(self.identity, hash_columns(aside, self.n_items))

    @computed_once
    def cluster_keys(self) -> tuple[UInts, ...]:
        """Keys of the clusters that each row is of, (n,) for every one of `clusters`.

        Rows of a cluster have one key, the same in any part of the data; others the item's.
        """
        if not self.clusters:
            return (self.keys,)
        out = []
        for name, values in self.clusters.items():
            # The name too: equal values of two columns are different clusters.
            column = np.broadcast_to(hash_strings(np.array([name])), self.n_items)
            key = hash_columns([column, hash_strings(values)], self.n_items)
            out.append(np.where(missing_values(values), self.keys, key))
        return tuple(out)

    def clusters_of(self, rows: Array) -> tuple[UInts, ...]:
        """The keys of the clusters of some rows."""
        return tuple(keys[rows] for keys in self.cluster_keys)

    @computed_once
    def correlation(self) -> tuple[float, ...]:
        """How far labels of two rows of one cluster go together, for every one of `clusters`.

        Intraclass correlations of what is known of labels, less what the classifiers together make
        of it: of that itself, or of how wrong they are, which is larger (`kernels.clusters`).
        """
        if self.known_correlation is not None or not self.clusters:
            return self.known_correlation or ()
        rows = np.flatnonzero(self.told)
        rows = rows[np.argsort(self.cluster_keys[0][rows], kind="stable")]  # whole clusters
        rows = rows[: max(_CORRELATED // self.n_classes, 2)]
        votes = by_class(self.vote_counts[rows], self.n_classes)
        votes = np.asarray(votes.sum(axis=1)).reshape(len(rows), self.n_classes)
        shares = [votes / np.maximum(votes.sum(axis=1, keepdims=True), 1.0)]
        for block in (self.probabilities, self.scores):
            if block is not None:
                shares.append(pooled_words(block[rows]))
        clusters = self.clusters_of(rows)
        both = unexplained(np.stack(shares, axis=2), self.evidence[rows], clusters)
        return tuple(max(intraclass_correlation(left, k) for left in both) for k in clusters)

    @computed_once
    def information(self) -> Floats:
        """Power of each row's likelihood, (n,): its information given the rest of its cluster.

        1 without clusters, and 1 / m of one of m copies of an item. Labels of few clusters count
        less, by what their variance may be larger than it looks. Labels drawn by stratum count by
        their weights (a pseudo-likelihood), and all of them as many as they are effectively (Kish).
        """
        if not self.clusters:
            return self.design_power
        out = powers(self.cluster_keys, self.correlation, self.told.astype(np.int64))
        known = np.flatnonzero(self.told)
        out[known] /= self.worth(known, np.ones(len(known))).widening
        return out * self.design_power

    @property
    def design_power(self) -> Floats:
        """Powers (n,) of likelihoods by the weights of strata; 1 where there are none."""
        out = np.ones(self.n_items)
        if self.stratum is not None and self.label_weight is not None and self.told.any():
            weight = self.label_weight[self.told]
            out[self.told] = weight * weight.sum() / (weight**2).sum()
        return out

    def apart(self, rows: Ints) -> Ints:
        """Of these rows, in their order, the first of every cluster."""
        for keys in self.cluster_keys if self.clusters else ():
            rows = rows[np.sort(np.unique(keys[rows], return_index=True)[1])]
        return rows

    @computed_once
    def label_keys(self) -> UInts:
        """Keys that labels are drawn by, (n,): rows with one key go together as far as may be.

        A share sqrt(rho) of the rows of a cluster, chosen at random, has that of the cluster, so
        that two rows share it with probability rho, their `correlation`.
        """
        if not self.clusters:
            return self.keys
        shares = np.sqrt(self.correlation)
        place = uniforms(self.keys, np.arange(1), _TOGETHER)[:, 0] * max(shares.sum(), 1.0)
        out = self.keys.copy()
        for keys, end, share in zip(self.cluster_keys, np.cumsum(shares), shares, strict=True):
            labeled = (place < end) & (place >= end - share)
            out[labeled] = keys[labeled]
        return out

    def worth(self, rows: Ints, weight: Floats) -> Worth:
        """How many independent rows of equal weight some rows of weights (m,) are worth."""
        keys = self.clusters_of(rows) if self.clusters else ()
        return worth(weight, keys, self.correlation, self.times[rows])

    def bootstrap(self, rows: Ints, weight: Floats, salt: int) -> Callable[[Ints], Floats]:
        """Weights (m, D) of a Bayesian bootstrap by draws (D,); rows' clusters share them."""
        keys = self.clusters_of(rows)
        shape = self.worth(rows, weight).exponent if self.clusters and len(rows) else 1.0
        return lambda index: shared_exponentials(keys, index, salt, shape) * weight[:, None]

    @computed_once
    def identity(self) -> UInts:
        """Identity of each item, shape (n,): a hash of its predictions, label and domain."""
        columns: list[Array] = [self.labels]
        for block in (self.probabilities, self.given_votes, self.scores, self.histogram):
            if scipy.sparse.issparse(block):
                columns.append(hash_rows(self.vote_counts))
            elif block is not None:
                columns.extend(block.reshape(len(block), -1).T)
        if self.domain is not None:
            columns.append(hash_strings(self.domain))
        if self.repeated_votes is not None and not self.is_sparse:
            columns.append(hash_rows(self.vote_counts))
        return hash_columns(columns, self.n_items)

    def take(self, rows: Array | slice) -> Predictions:
        """The same classifiers on some items (indices, a mask or a slice, which copies nothing).

        Weights are renormalised.
        """
        per_item = ("probabilities", "labels", "given_votes", "scores", "histogram", "domain")
        changes = {
            name: None if (block := getattr(self, name)) is None else block[rows]
            for name in (*per_item, "multiplicity", "label_weight")
        }
        if self.repeated_votes is not None:
            changes["repeated_votes"] = votes_of(
                self.repeated_votes, 0, np.asarray(rows), self.n_items
            )
        return self._with(
            **changes,
            groups={g: a[rows] for g, a in self.groups.items()},
            clusters={c: a[rows] for c, a in self.clusters.items()},
            known_correlation=self.correlation if self.clusters else None,
            weight=sampling_weight(self.weight[rows], len(self.weight[rows])),
        )

    @computed_once
    def tasks(self) -> Mapping[str, Ints]:
        """Task -> its rows, by first appearance; one of no name where `task` is None."""
        if self.task is None:
            return FrozenDict({"": np.arange(self.n_items)})
        names = np.array([str(t) for t in self.groups[self.task].tolist()], dtype=object)
        return FrozenDict({t: np.flatnonzero(names == t) for t in dict.fromkeys(names.tolist())})

    def of_task(self, name: str, *, together: bool = False) -> Predictions:
        """The rows of one task, as items by themselves.

        With `together` their clusters stay, of a row each or not, so that draws of row weights are
        those of the other tasks' rows of the same items.

        Raises
        ------
        UsageError
            If there is no such task.
        """
        if self.task is None or name not in self.tasks:
            raise UsageError(unknown("task", name, self.tasks if self.task else ()))
        own = self.take(self.tasks[name])
        several = {c for c, values in own.clusters.items() if len({*values}) < own.n_items}
        return own._with(
            task=None,
            groups={g: values for g, values in own.groups.items() if g != self.task},
            clusters={c: v for c, v in own.clusters.items() if together or c in several},
            known_correlation=None if several else (0.0,) * len(own.clusters) * together,
        ).with_stratum(self.stratum)

    def with_labels(self, labels: Any) -> Predictions:
        """The same predictions with other labels, shape (n,); -1 = unknown."""
        known = known_labels(labels, self.n_items, self.classes)
        return self._with(labels=known, known_correlation=None).with_stratum(self.stratum)

    @computed_once
    def strata(self) -> Ints:
        """Stratum of each item, (n,), by first appearance; all 0 where there are none."""
        if self.stratum is None:
            return np.zeros(self.n_items, dtype=np.int64)
        place: dict[str, int] = {}
        names = [str(value) for value in self.groups[self.stratum].tolist()]
        return np.array([place.setdefault(name, len(place)) for name in names], dtype=np.int64)

    def with_stratum(self, stratum: str | None) -> Predictions:
        """The same items, whose labels were drawn at random within the strata of a group.

        With weights v of items and labels of a stratum h, a label weighs sum_h v / sum_(labeled in
        h) v, up to a factor for which labels weigh 1 on average.

        Raises
        ------
        UsageError
            If there is no such group.
        """
        if stratum is None:
            return self
        if stratum not in self.groups:
            raise UsageError(unknown("stratum", stratum, self.groups, "there are no groups"))
        by = self._with(stratum=stratum)
        mass, labeled = self.weight * self.times, self.told
        every = np.bincount(by.strata, mass)
        known = np.bincount(by.strata, mass * labeled, len(every))
        counts = np.divide(every, known, out=np.ones(len(every)), where=known > 0)
        weight = np.where(labeled, counts[by.strata], 1.0)
        if known.any():
            weight[labeled] *= mass[labeled].sum() / (mass * weight)[labeled].sum()
        return by._with(label_weight=weight)

    def of_classifier(
        self, model: str, probabilities: Floats | None = None, *, votes: Ints | None = None
    ) -> Predictions:
        """The same items and labels, as these were drawn, with one other classifier.

        It gives probabilities (n, 1, K) or votes (n,). Of the groups only the strata stay.
        """
        return Predictions(
            probabilities, self.labels, votes=None if votes is None else votes[:, None],
            histogram=self.histogram, weight=self.weight, models=[model], classes=self.classes,
            multiplicity=self.multiplicity, label_weight=self.label_weight, stratum=self.stratum,
            groups={} if self.stratum is None else {self.stratum: self.groups[self.stratum]},
            positive=self.positive,
        ).in_clusters(self.clusters)  # fmt: skip

    def revealing(self, rows: Ints) -> Predictions:
        """The same items, of which labels and annotators' counts of these alone are known."""
        shown = np.zeros(self.n_items, dtype=bool)
        shown[rows] = True
        counts = None if self.histogram is None else np.where(shown[:, None], self.histogram, 0)
        return self._with(
            labels=np.where(shown, self.labels, -1), histogram=counts, known_correlation=None
        ).with_stratum(self.stratum)

    def keeping(self, groups: Iterable[str]) -> Predictions:
        """The same items with no other groups than some of these; their names are one of them."""
        wanted = {*groups, *filter(None, [self.task, self.stratum])}
        retained = {name: values for name, values in self.groups.items() if name in wanted}
        if len(retained) == len(self.groups):
            return self
        return self._with(groups=retained, item=self.item if self.item in retained else None)

    def with_groups(self, groups: Mapping[str, Any]) -> Predictions:
        """The same items in these groups alone: name -> (n,)."""
        checked = {g: per_item(f"groups[{g!r}]", a, self.n_items) for g, a in groups.items()}
        return self._with(groups=checked, item=None, task=None, stratum=None)

    def with_clusters(self, clusters: str | Sequence[str] | Mapping[str, Any]) -> Predictions:
        """The same predictions in these clusters: name -> (n,), or names of groups.

        Raises
        ------
        UsageError
            If a name is that of no group.
        InputError
            If all rows are of one cluster.
        """
        if not isinstance(clusters, Mapping):
            domain = {} if self.domain is None else {"domain": self.domain}
            columns = domain | dict(self.groups)
            names = [clusters] if isinstance(clusters, str) else clusters
            if not isinstance(names, Sequence):
                raise UsageError(f"`cluster` must be names of groups; got {clusters!r:.60}")
            for name in names:
                if name not in columns:
                    raise UsageError(unknown("cluster", name, columns, "there are no groups"))
            clusters = {name: columns[name] for name in names}
        notes = list(self.notes)
        values = cluster_values(clusters, self.n_items, notes)
        notes = list(dict.fromkeys(notes))
        return self._with(clusters=values, known_correlation=None, notes=tuple(notes))

    def in_clusters(self, clusters: Mapping[str, Array]) -> Predictions:
        """The same items, or a part of more, in clusters that were checked before."""
        return self._with(clusters=dict(clusters), known_correlation=None)

    def with_weight(self, weight: Any) -> Predictions:
        """The same predictions with other sampling weights, (n,), normalised to sum to n."""
        return self._with(weight=sampling_weight(weight, self.n_items))

    def with_label_weight(self, weight: Any) -> Predictions:
        """The same predictions, whose labels have these weights among each other, (n,)."""
        return self._with(label_weight=label_weights(weight, self.labels))

    def with_multiplicity(self, times: Floats | None) -> Predictions:
        """The same rows, each of which stands for `times` items, shape (n,)."""
        counts = None if times is None else positive_counts(times, self.n_items, some=True)
        return self._with(multiplicity=counts)

    def noting(self, notes: Iterable[str], reading: Iterable[str] | None = None) -> Predictions:
        """The same predictions with notes about where they come from, and how they were read."""
        how = self.reading if reading is None else tuple(reading)
        return self._with(notes=tuple(notes), reading=how)

    def with_probabilities(self, probabilities: Floats) -> Predictions:
        """The same items and classifiers with other probabilities, (n, M, K)."""
        return self._with(probabilities=probability_block(probabilities, self.models, []))

    def with_evidence(self, labels: Any = None, weight: Any = None) -> Predictions:
        """The same predictions with these labels (n,) for all that is known of the items.

        Counts of annotators are left out, and `weight` (n,), where given, takes the place of the
        sampling weights.
        """
        return self._with(
            labels=known_labels(labels, self.n_items, self.classes),
            histogram=None,
            weight=self.weight if weight is None else sampling_weight(weight, self.n_items),
        )

    @property
    def silent(self) -> Bools:
        """Which classifiers have neither probabilities nor scores for any item, shape (M,)."""
        silent = np.asarray(~self.has_probabilities.any(axis=0))
        return silent if self.scores is None else silent & np.isnan(self.scores).all(axis=0)

    def with_annotators(
        self, silent: Bools | Sequence[bool] | None = None, *, some: bool = True
    ) -> Predictions:
        """The same items, where whoever votes without probabilities or scores is an annotator.

        Their votes are added to the counts of annotators, every one of repeated votes too, and
        they are no classifiers any more. `silent`, shape (M,), says who they are, where these are
        only some of the items.

        Raises
        ------
        InputError
            If nobody else is left, so that there is no classifier, and `some` are needed.
        """
        silent = self.silent if silent is None else np.asarray(silent, dtype=bool)
        if not silent.any():
            return self
        if silent.all() and some:
            raise InputError(
                "no classifier has probabilities or scores: there are votes alone; add columns "
                "p__<model>__<class>, or use them as classifiers (`fewlabels estimate`)"
            )
        annotators = self.select_models([self.models[j] for j in np.flatnonzero(silent)])
        votes = by_class(annotators.vote_counts, self.n_classes)
        counts = np.asarray(votes.sum(axis=1)).reshape(self.n_items, self.n_classes)
        if self.histogram is not None:
            counts += self.histogram
        others = self.select_models([self.models[j] for j in np.flatnonzero(~silent)])
        return others._with(histogram=counts).with_stratum(self.stratum)

    def as_histograms(self) -> Predictions:
        """The same predictions, with each known label as the count of one annotator.

        Where annotators' counts are there too, they are kept and the label is left out.
        """
        if self.histogram is not None and not self.labeled.any():
            return self
        shape = (self.n_items, self.n_classes)
        counts = np.zeros(shape) if self.histogram is None else self.histogram.copy()
        alone = np.flatnonzero(self.labeled & ~counts.any(axis=1))
        counts[alone, self.labels[alone]] = 1.0
        return self._with(labels=np.full(self.n_items, UNKNOWN), histogram=counts)

    def thresholded(self, thresholds: Mapping[str, float] | float) -> Predictions:
        """The same predictions, with hard ones where P(positive) of a classifier reaches a cut.

        For two classes; other classifiers keep theirs (the argmax, or what they vote). A cut of
        .5 gives what there is without one: where both classes have .5, the first.

        Parameters
        ----------
        thresholds
            Classifier -> least probability that it calls positive; or one number for all that
            give probabilities.

        Raises
        ------
        UsageError
            If a classifier is unknown, or a threshold is not between 0 and 1.
        InputError
            If there are more than two classes, or no probabilities to cut.
        """
        if self.n_classes != 2:
            raise InputError(
                f"thresholds are for two classes, and there are {self.n_classes}; give hard "
                "predictions instead (`votes`, columns y__<model>)"
            )
        if not isinstance(thresholds, Mapping):
            giving = self.has_probabilities.any(axis=0)
            if not giving.any():
                raise InputError("no classifier has probabilities to cut at a threshold")
            thresholds = {self.models[j]: thresholds for j in np.flatnonzero(giving)}
        votes, k = self.hard.copy(), self.classes.index(self.positive)
        for name, cut in thresholds.items():
            if name not in self.models:
                raise UsageError(unknown("model", name, self.models))
            if not isinstance(cut, (int, float, np.number)) or not 0 <= cut <= 1:
                raise UsageError(f"the threshold of {name!r} must be from 0 to 1; got {cut!r}")
            j = self.models.index(name)
            provided = self.has_probabilities[:, j]
            if self.probabilities is None or not provided.any():
                raise InputError(f"classifier {name!r} has no probabilities to cut at a threshold")
            own = self.probabilities[provided, j]
            tied = (own[:, k] == cut) & (own[:, k] == own[:, 1 - k])
            reached = np.where(tied, k == 0, own[:, k] >= cut)
            votes[provided, j] = np.where(reached, k, 1 - k)
        return self._with(given_votes=votes)

    def select_models(self, models: Sequence[str]) -> Predictions:
        """The same items with some of the classifiers, in the order given.

        Raises
        ------
        UsageError
            If a classifier is unknown.
        """
        place = self.place
        for name in models:
            if name not in place:
                raise UsageError(unknown("model", name, self.models))
        if tuple(models) == self.models:
            return self
        columns = [place[m] for m in models]
        changes = {
            name: None if (block := getattr(self, name)) is None else block[:, columns]
            for name in ("probabilities", "given_votes", "scores")
        }
        if self.repeated_votes is not None:
            chosen = np.array(columns, dtype=np.int64)
            changes["repeated_votes"] = votes_of(self.repeated_votes, 1, chosen, self.n_models)
        return self._with(**changes, models=tuple(models), known_correlation=None)

    def _with(self, **changes: Any) -> Predictions:
        """A copy with other fields, which are known to be good: nothing is checked twice."""
        copy = object.__new__(Predictions)
        for name in _FIELDS:  # what is kept is frozen
            object.__setattr__(copy, name, getattr(self, name))
        copy._set(**changes)
        return copy


_FIELDS = tuple(field.name for field in fields(Predictions) if field.default is MISSING)
"""What a copy keeps: all but what makes items a part of more."""
