"""How far people agree: alpha, kappa, AC1, PABAK; of all, of each with the others, of pairs.

Labels r_ik of class k among the r_i of item i, and weights w_kl in [0, 1] of two classes (1 alike),
give the observed agreement, a mean over items of two labels or more,

    p_a = mean_i sum_kl r_ik (w_kl r_il - 1[k = l]) / (r_i (r_i - 1)),

and (p_a - p_e) / (1 - p_e) with, for pi_k the mean share of class k, T = sum w_kl and K classes,

    p_e = sum w_kl pi_k pi_l                        Fleiss' kappa (1971), by weights Gwet's (2014)
    p_e = T sum pi_k (1 - pi_k) / (K (K - 1))       AC1, with weights AC2 (Gwet 2008)
    p_e = T / K^2                                   PABAK (Byrt 1993; Brennan and Prediger 1981)
    p_e = sum w_kl a_k b_l                          Cohen's kappa (1960), of two with shares a, b

Krippendorff's (2019, chapter 12) alpha = 1 - D_o / D_e has D_e over all N labels of those items.
All are functions of sums over items, whose bootstrap draws are those of `drawn_sums`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import scipy.sparse

from fewlabels import __version__
from fewlabels.annotations.losses import draws_for
from fewlabels.checks.arguments import RandomState, label_counts, level_of, seed_of
from fewlabels.checks.class_words import alphabetical
from fewlabels.checks.conditions import NOT_RANDOM
from fewlabels.data.inputs import predictions_of
from fewlabels.errors import InputError, Status, UsageError, listed, plain_name, unknown
from fewlabels.evaluation.draws import drawn_sums
from fewlabels.evaluation.status import judge_losses
from fewlabels.kernels.arrays import Floats, Frozen, Ints, UInts
from fewlabels.kernels.clusters import intraclass_correlation, worth
from fewlabels.kernels.interval_draws import inflated, interval
from fewlabels.kernels.weighting import Indicator
from fewlabels.predictions import Predictions
from fewlabels.report.shown import Result, plain_values

Scale = Literal["nominal", "ordinal", "interval"]

METRICS = ("agreement", "alpha", "fleiss_kappa", "cohen_kappa", "ac1", "ac2", "pabak")
"""Names of the coefficients; Fleiss' is of all, Cohen's of two."""

EVERYBODY = "all annotators"

MOST = 200
"""Annotators, and pairs of them, with rows: those of the most items."""


class AgreementRow(NamedTuple):
    """One coefficient: of all, of an annotator with the others, or of two annotators."""

    annotator: str | None
    other: str | None
    metric: str
    value: float
    low: float
    high: float
    confidence_level: float
    status: Status
    n_items: int

    @property
    def model(self) -> str:
        """Whom it is of, as a condition on it says."""
        return ", ".join(filter(None, (self.annotator, self.other))) or EVERYBODY


class Independence(NamedTuple):
    """Whether who labels explains the label beyond the item.

    `p_value` is of labels exchanged among the annotators of an item. On the `n_items` that the
    `n_annotators` disagree on, who labels explains the share `explained` of the variance of labels
    within items, above what it does by chance. `panel_share` of all annotators label an item.
    """

    p_value: float
    explained: float
    panel_share: float
    n_items: int
    n_annotators: int

    @property
    def doubted(self) -> bool:
        """Whether labels of an item are shown to be far from independent draws."""
        surely = self.p_value < _SURELY and self.explained >= _MUCH
        return surely and self.panel_share >= _LARGE_SHARE


_SURELY, _MUCH, _LARGE_SHARE = 0.01, 0.05, 0.1
_PERMUTATIONS, _MOST_LABELS, _MOST_ITEMS = 499, 20_000, 5_000


@dataclass(frozen=True, repr=False)
class Agreement(Frozen, Result):
    """What `agreement` returns.

    `rows` are of all annotators, then of each with the others, then of pairs. Metrics are
    `agreement` (the chance that two who label one item say the same), `alpha`, `fleiss_kappa` (of
    all) or `cohen_kappa`, `ac1` (`ac2` where grades are near one another) and `pabak`: 1 is
    perfect, 0 what chance gives. `n_items` have two labels or more, `n_labels` in all;
    `n_annotators` and `independence` are None where only counts are known, the latter too where
    nobody disagrees. `shares` are those of classes among labels, `diagnostics` of a `selection`.
    """

    _page = "agreement"
    _row_fields = AgreementRow._fields
    _text_columns = ("annotator", "other")

    rows: tuple[AgreementRow, ...]
    n_items: int
    n_labels: int
    n_annotators: int | None
    scale: str
    classes: tuple[Any, ...]
    shares: tuple[float, ...]
    independence: Independence | None
    notes: tuple[str, ...]
    diagnostics: Mapping[str, Any] = field(repr=False)

    @property
    def models(self) -> tuple[str, ...]:
        """Whom a condition is on that names no annotator: all."""
        return (EVERYBODY,)

    def get(self, annotator: str | None, metric: str, other: str | None = None) -> AgreementRow:
        """The row of one coefficient: of all (None), one annotator or two.

        Raises
        ------
        UsageError
            If there is no such row.
        """
        names = {None if annotator == EVERYBODY else annotator, other}
        for row in self.rows:
            if row.metric == metric and {row.annotator, row.other} == names:
                return row
        raise UsageError(
            f"no agreement {metric!r} of {listed(repr(n) for n in names if n) or EVERYBODY}; "
            f"metrics: {listed(dict.fromkeys(row.metric for row in self.rows))}; "
            f"annotators: {listed(dict.fromkeys(row.annotator or EVERYBODY for row in self.rows))}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values; NaN is None."""
        plain = ("scale", "n_items", "n_labels", "n_annotators", "shares")
        out: dict[str, Any] = plain_values(
            {"fewlabels": __version__}
            | {name: getattr(self, name) for name in plain}
            | {
                "classes": [plain_name(c) for c in self.classes],
                "estimates": [row._asdict() for row in self.rows],
                "independence": self.independence and self.independence._asdict(),
                "warnings": self.notes,
            }
        )
        return out


def agreement(
    annotations: Any,
    *,
    scale: Scale = "nominal",
    cluster: str | Sequence[str] | None = None,
    confidence_level: float | None = 0.95,
    random_state: RandomState = 0,
    columns: Any = None,
) -> Agreement:
    """Agreement of annotators who label the same items.

    Parameters
    ----------
    annotations
        Counts of labels per item and class, shape (n, K); or predictions, a path or a frame:
        annotators are who votes without probabilities or scores, and the counts of a histogram.
    scale
        How far classes are apart: "nominal", all alike; "interval", by the squared differences of
        the grades (their numbers, else their places); "ordinal", by how many labels lie between
        them in alpha (Krippendorff), and by ordinal weights in the others (Gwet).
    cluster
        Names of columns that say which items belong together.
    confidence_level
        Of intervals by a Bayesian bootstrap over the items or clusters; None computes none.
    random_state
        Seed; None means 0.
    columns
        As for `fewlabels.read_predictions`.

    Raises
    ------
    InputError
        If no item has two labels.
    UsageError
        If an argument is not what is said above.

    Examples
    --------
    >>> import fewlabels as fl
    >>> found = fl.annotations.agreement([[2, 0], [0, 2], [1, 1], [2, 0]])
    >>> [round(found.get(None, name).value, 3) for name in ("alpha", "ac1")]
    [0.533, 0.529]
    """
    level, seed = level_of(confidence_level), seed_of(random_state)
    counts = hasattr(annotations, "shape") and not hasattr(annotations, "columns")
    if counts or isinstance(annotations, list | tuple):
        nobody = np.full((len(label_counts(annotations)), 1), -1)
        annotations = Predictions(votes=nobody, histogram=annotations)
    annotations = predictions_of(annotations, columns)
    if cluster is not None:
        annotations = annotations.with_clusters(cluster)
    found = agreement_of(annotations, scale, level, seed)
    if found is None:
        raise InputError(
            "no item has two labels; the agreement of people needs several per item (votes, in a "
            "file --votes, or counts in columns h__<class>; of a log --people votes)"
        )
    return found


def agreement_of(
    predictions: Predictions, scale: Scale, level: float | None, seed: int
) -> Agreement | None:
    """The agreement of whoever is an annotator among these; None if no item has two labels."""
    if scale not in get_args(Scale):
        raise UsageError(unknown("scale", scale, get_args(Scale)))
    who = np.flatnonzero(predictions.silent & predictions.gives("hard"))
    people = predictions.select_models([predictions.models[j] for j in who])
    k = predictions.n_classes
    # Each annotator once: repeated labels of one person are no agreement of two.
    ballots = people.ballots.astype(np.int64)
    counts = _label_counts(ballots, k)
    if predictions.histogram is not None:
        counts += predictions.histogram
    size = counts.sum(axis=1)
    if not (size >= 2).any():
        return None
    labeled = counts.sum(axis=0)
    tables = _tables(scale, predictions.grades, counts[size >= 2].sum(axis=0))
    run, notes = _Run(predictions, scale, *tables, level, seed), list[str]()
    if scale != "nominal" and (steps := alphabetical(predictions.classes)):
        notes.append(f"agreement: scale {scale} counts {steps}")
    if people.repeated_votes is not None:
        notes.append(
            "agreement: of an annotator's several labels of one item only one counts, as people "
            "are compared with others"
        )
    rows = list(run.rows((), np.flatnonzero(size > 0), counts[size > 0]))
    columns = ballots.tocsc()

    def labels_of(*some: int) -> tuple[Ints, Floats]:
        """The items that all of some annotators label, and their labels as 0 and 1, (J, n_j, K)."""
        said = columns[:, some].toarray()
        index = np.flatnonzero((said > 0).all(axis=1))
        return index, np.eye(k)[said[index].T - 1]

    for j in np.sort(np.argsort(-np.diff(columns.indptr), kind="stable")[:MOST]).tolist():
        index, (label,) = labels_of(j)
        others = counts[index] - label
        met = others.any(axis=1)
        if met.any():
            share = others[met] / others[met].sum(axis=1, keepdims=True)
            rows += run.rows([people.models[j]], index[met], label[met], share)
    there = ballots.astype(bool).astype(np.int64)
    shared = scipy.sparse.triu(there.T @ there, 1).tocoo()
    most = np.lexsort((shared.col, shared.row, -shared.data))[:MOST]
    for i, j in sorted(zip(shared.row[most].tolist(), shared.col[most].tolist(), strict=True)):
        index, (label, other) = labels_of(i, j)
        rows += run.rows([people.models[i], people.models[j]], index, label, other)
    if max(len(who), shared.nnz) > MOST:
        notes.append(
            f"agreement: of {len(who):,} annotators and {shared.nnz:,} pairs of them, those of "
            f"the most items are assessed, {MOST} at most"
        )
    diagnostics = {}
    if found := selection(ballots, counts, predictions.keys, seed):
        names, p = [people.models[j] for j in found if j < len(who)], min(found.values())
        what, remedy = "how many label", "take as many labels of every item, those given first"
        if names:
            what, where = f"whether {listed(names, 3)} labels", f"not in ({', '.join(names)})"
            remedy = f"leave these labels out (votes alone: --where 'annotator {where}')"
        what += " an item depends on whether others agree on it"
        diagnostics[NOT_RANDOM] = {"p_value": p, "difference": what, "remedy": remedy}
        notes.insert(0, f"assumption: {what} (p = {f'{p:.3f}'[1:]}): {remedy}")
        for i, row in enumerate(rows):
            stands = names and row.other is not None and {*names}.isdisjoint(row[:2])
            if row.status is Status.OK and not stands:
                rows[i] = row._replace(status=Status.ASSUMPTION)
    return Agreement(
        rows=tuple(rows),
        n_items=int((size >= 2).sum()),
        n_labels=int(size[size >= 2].sum()),
        n_annotators=len(who) if predictions.histogram is None else None,
        scale=scale,
        classes=predictions.classes,
        shares=tuple(labeled / labeled.sum()),
        independence=independence(ballots, k, predictions.keys, seed),
        notes=tuple(notes),
        diagnostics=diagnostics,
    )


def _tables(scale: Scale, grades: Floats, labels: Floats) -> tuple[Floats, Floats]:
    """Weights (K, K) of two classes, 1 alike, and alpha's distances, (K, K).

    From the numbers of the classes and how many labels each has, (K,).
    """
    same = np.eye(len(labels))
    if scale == "nominal":
        return same, 1 - same
    if scale == "interval":
        apart = (grades[:, None] - grades) ** 2
        return 1 - apart / apart.max(), apart
    place = np.argsort(np.argsort(grades))
    steps = np.abs(place[:, None] - place)
    # How many pairs of classes lie from k to l (Gwet 2014).
    within = steps * (steps + 1) / 2
    # (sum of N_g between c and k, the ends by half)^2
    up = (np.cumsum(labels[np.argsort(place)])[place]) - labels / 2
    return 1 - within / within.max(), (up[:, None] - up) ** 2


class _Parts(NamedTuple):
    """Sums of parts by cluster, (C, 5 + 3 K)."""

    sums: Floats

    def take(self, rows: Any) -> _Parts:
        """Some of the clusters."""
        return _Parts(self.sums[rows])


class _Run(NamedTuple):
    """What is asked of every set of annotators, and how classes are compared (`_tables`)."""

    predictions: Predictions
    scale: Scale
    weight: Floats
    distance: Floats
    level: float | None
    seed: int

    def parts(self, first: Floats, second: Floats | None) -> Floats:
        """What the coefficients are functions of the sums of, (n, 5 + 3 K).

        Of counts (n, K), or of one annotator's label and another's, or the shares of others'.
        """
        counts = first if second is None else first + second
        size = counts.sum(axis=1, keepdims=True)
        share = counts / size
        two = (size > 1.5).astype(np.float64)  # shares may add up to a little less than 1

        def pairs(table: Floats) -> Floats:
            if second is not None:
                return (first @ table * second).sum(axis=1, keepdims=True)
            both = ((counts @ table - table.diagonal()) * counts).sum(axis=1, keepdims=True)
            return both * two / np.maximum(size * (size - 1), 1)

        return np.hstack([
            np.ones_like(size), two, pairs(np.eye(len(self.weight))), pairs(self.weight),
            size * pairs(self.distance), share, counts * two, share if second is None else first,
        ])  # fmt: skip

    def read(self, sums: Floats, *, paired: bool) -> dict[str, Floats]:
        """The coefficients from sums of parts, (D, 5 + 3 K), by name, (D,) each."""
        k, w = len(self.weight), self.weight
        items, two, same, near, apart = sums.T[:5]
        share, mass, first = (sums[:, 5 + i * k : 5 + (i + 1) * k] for i in range(3))
        with np.errstate(invalid="ignore", divide="ignore"):
            pi, first = share / items[:, None], first / items[:, None]
            p_a, total = near / two, mass.sum(axis=1)
            expected = np.einsum("dk,kl,dl->d", mass, self.distance, mass)
            by_chance = {
                "cohen_kappa": np.einsum("dk,kl,dl->d", first, w, 2 * pi - first),
                "fleiss_kappa": np.einsum("dk,kl,dl->d", pi, w, pi),
                "ac1": w.sum() / (k * (k - 1)) * (pi * (1 - pi)).sum(axis=1),
                "pabak": np.full(len(sums), w.sum() / k**2),
            }
            del by_chance["fleiss_kappa" if paired else "cohen_kappa"]
            # Where all labels are of one class nothing is expected: undefined.
            alpha = np.where(expected > 0, 1 - (total - 1) * apart / expected, np.nan)
            out = {"agreement": same / two, "alpha": alpha}
            for name, p_e in by_chance.items():
                name = "ac2" if name == "ac1" and self.scale != "nominal" else name
                out[name] = np.where(p_e < 1 - 1e-12, (p_a - p_e) / (1 - p_e), np.nan)
        return out

    def rows(
        self, who: Sequence[str], index: Ints, first: Floats, second: Floats | None = None
    ) -> Iterator[AgreementRow]:
        """The rows of all (nobody named), of an annotator with the others, or of two."""
        annotator, other = (*who, None, None)[:2]
        parts = self.parts(first, second) * self.predictions.weight_of_labels[index, None]
        paired, size = second is not None, first.sum(axis=1)
        n = len(index) if paired else int((size >= 2).sum())
        values = self.read(parts.sum(axis=0, keepdims=True), paired=paired)
        level = math.nan if self.level is None else self.level
        m = None if paired else round(float(size[size >= 2].mean()))
        several = () if self.level is None else self.predictions.clusters_of(index)
        drawn = [self._draws(keys, parts, m) for keys in several]
        for name, value in values.items():
            low, high = np.full((2, 1), math.nan)
            for sums, factor in drawn:
                draws = inflated(self.read(sums, paired=paired)[name][:, None], value, factor)
                ends = interval(value, draws, level, (-1.0, 1.0))
                low, high = np.fmin(low, ends[0]), np.fmax(high, ends[1])
            status = judge_losses(float(value[0]), n, 2, "", None).status
            ends_of = float(value[0]), float(low[0]), float(high[0])
            yield AgreementRow(annotator, other, name, *ends_of, level, status, n)

    def _draws(self, keys: UInts, parts: Floats, m: int | None) -> tuple[Floats, float]:
        """Draws of sums of parts by clusters, and how far few clusters widen an interval.

        An item has m labels, or those of two annotators.
        """
        assert self.level is not None
        place = np.unique(keys, return_inverse=True)[1]
        n, k = int(place.max()) + 1, len(self.weight)

        def by_unit(items: _Parts, rows: Ints, units: int) -> list[Floats]:
            state = Indicator(np.arange(len(rows)) % units, units).sums(items.sums[rows])
            return [state[:, :5], state[:, 5:]]

        def as_pseudo_observation(_: _Parts, mass: Floats, rng: np.random.Generator) -> _Parts:
            """As many labels as the items have, from a random distribution."""
            share = np.maximum(mass, 1e-300)
            share /= share.sum(axis=1, keepdims=True)
            counts = [rng.multinomial(size, share).astype(float) for size in ([m] if m else [1, 1])]
            return _Parts(self.parts(counts[0], None if m else counts[1]))

        states = drawn_sums(
            _Parts(Indicator(place, n).sums(parts)), by_unit, as_pseudo_observation, k,
            draws_for(self.level), self.seed,
        )  # fmt: skip
        drawn = np.concatenate([np.hstack(state) for state in states])
        if n == len(parts):
            return drawn, 1.0
        once = np.ones(len(parts))
        rho = intraclass_correlation(parts[:, [2]], keys)
        return drawn, math.sqrt(worth(once, (keys,), [rho], once).widening)


def _label_counts(ballots: scipy.sparse.csr_matrix, classes: int) -> Floats:
    """Labels of each item and class, (n, K), from votes (n, A), class + 1."""
    entries = np.ones(ballots.nnz), ballots.data - 1, ballots.indptr
    out: Floats = scipy.sparse.csr_matrix(entries, (ballots.shape[0], classes)).toarray()
    return out


def independence(
    ballots: scipy.sparse.csr_matrix, classes: int, keys: UInts, seed: int
) -> Independence | None:
    """Whether who labels explains the label beyond the item, from votes (n, A), class + 1.

    If the labels of an item are independent draws of one distribution, they may be exchanged among
    its annotators. With O_jk labels of class k by annotator j, n_j in all, and E_jk what the shares
    of j's items make them expect, sum_jk (O_jk - E_jk)^2 / n_j is what annotators explain of the
    variance within items; with two annotators and classes it is McNemar's statistic.
    """
    size, counts = np.diff(ballots.indptr), _label_counts(ballots, classes)
    split = np.flatnonzero((counts > 0).sum(axis=1) >= 2)
    if not len(split):
        return None
    split = split[np.argsort(keys[split], kind="stable")]
    split = split[: max(int((np.cumsum(size[split]) <= _MOST_LABELS).sum()), 1)]
    chosen = ballots[split]
    item = np.repeat(np.arange(len(split)), np.diff(chosen.indptr))
    _, who = np.unique(chosen.indices, return_inverse=True)
    label, own = chosen.data - 1, np.bincount(who)
    share = counts[split] / size[split, None]
    expected = np.stack([np.bincount(who, share[item, k], len(own)) for k in range(classes)])

    def explained(labels: Ints) -> float:
        seen = np.bincount(labels * len(own) + who, minlength=classes * len(own))
        return float(((seen.reshape(classes, -1) - expected) ** 2 / own).sum())

    rng, value = np.random.default_rng(seed), explained(label)
    drawn = np.array([
        explained(label[np.argsort(item + rng.random(len(item)))]) for _ in range(_PERMUTATIONS)
    ])  # fmt: skip
    total, chance = float((size[split] * (1 - (share**2).sum(axis=1))).sum()), drawn.mean()
    return Independence(
        p_value=(1 + int((drawn >= value - 1e-9).sum())) / (1 + _PERMUTATIONS),
        explained=float(np.clip((value - chance) / max(total - chance, 1e-9), 0.0, 1.0)),
        panel_share=float(size[size >= 2].mean())
        / int((np.diff(ballots.tocsc().indptr) > 0).sum()),
        n_items=len(split),
        n_annotators=len(own),
    )


def selection(
    ballots: scipy.sparse.csr_matrix, counts: Floats, keys: UInts, seed: int
) -> dict[int, float]:
    """Annotators, by index, who label items because of others' labels, with p-values; A: anybody.

    From votes (n, A), class + 1, and counts (n, K). If who labels depends on no label, whether two
    say the same may be exchanged among the items of these two, whoever else labels them; p-values
    are of the largest covariance (Westfall and Young 1993). Where few of many label an item, or
    nobody is known, all are alike: their number is tested.
    """
    rows = np.flatnonzero(counts.sum(axis=1) >= 2)
    rows = rows[np.argsort(keys[rows], kind="stable")][:_MOST_ITEMS]
    votes, counts, rng = ballots[rows], counts[rows], np.random.default_rng(seed)
    (item, who, label), size = scipy.sparse.find(votes), counts.sum(axis=1)
    if len(item) < max(size.sum(), _LARGE_SHARE * len(np.unique(who)) * len(rows)):
        votes, who = votes * 0, np.zeros((2, len(rows)), dtype=np.int64)
        label, every = np.empty_like(who), np.arange(len(rows))
        for i, left in enumerate((size, size - 1)):  # the first, then one of the others
            place = rng.random(len(rows)) * left
            label[i] = (np.cumsum(counts, axis=1)[:, :-1] <= place[:, None]).sum(axis=1)
            counts[every, label[i]] -= 1
    else:
        partly = np.bincount(who)[who] < len(rows)  # who labels every item comes first
        order = np.lexsort((rng.random(len(item)), partly, item))
        two = order[np.unique(item[order], return_index=True)[1] + np.array([[0], [1]])]
        who, label = who[two], label[two]
    pair = np.unique(np.sort(who, axis=0), axis=1, return_inverse=True)[1].reshape(-1)
    order = np.argsort(pair, kind="stable")
    pair, same = pair[order], np.equal(*label)[order].astype(float)
    same -= (np.bincount(pair, same) / np.bincount(pair))[pair]
    further = scipy.sparse.hstack([votes > 0, size[:, None]]).tocsr()[order].T
    shuffled = (np.argsort(pair + rng.random(len(pair))) for _ in range(_PERMUTATIONS))
    value, drawn = abs(further @ same), np.abs([further @ same[rows] for rows in shuffled])
    p = (1 + (drawn.max(axis=1)[:, None] >= value - 1e-9).sum(axis=0)) / (1 + _PERMUTATIONS)
    much = value**2 >= _MUCH * len(same) * (drawn**2).mean(axis=0)
    return {int(j): float(p[j]) for j in np.flatnonzero((p < _SURELY) & much)}


def spread_of(ballots: scipy.sparse.csr_matrix, classes: int) -> float | None:
    """E sum (mu - Q)^2 of a fixed panel, over how often two labels differ, from votes (n, A).

    Q is the mean of mu over the sets of annotators of items, so that all count as often as they
    label. With m_ij = 1 / n_i where j labels item i, the former is -sum_jk cov(m_j, m_k) P(j, k
    differ), from the items that both label (Horvitz and Thompson 1952); who never meet differ as
    others do. It is 1 / n - 1 / R for n of R at random (Cochran 1977, 2.6). None: too many pairs.
    """
    if ballots.shape[1] > MOST:
        return None
    said = ballots[np.diff(ballots.indptr) >= 2].toarray()
    there, of_class = (said > 0).astype(float), [said == c + 1.0 for c in range(classes)]
    size, alike = there.sum(axis=1), sum(of.T.astype(float) @ of for of in of_class)
    unlike = (size**2 - sum(of.sum(axis=1) ** 2 for of in of_class)) / (size * (size - 1))
    both, covariance = there.T @ there, np.cov(there.T / size, bias=True)
    differ = (1 - alike / np.maximum(both, 1)) / max(unlike.mean(), 1e-9)
    return float((covariance * (1 - differ))[both > 0].sum())
