"""Facts about the input that a user should know: notes, unused columns, duplicates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from fewlabels.checks.conditions import NOT_RANDOM
from fewlabels.errors import listed
from fewlabels.evaluation.evaluator import MOST_DRAWS
from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.votes import agreement as vote_agreement
from fewlabels.methods.per_model import score_of
from fewlabels.methods.registry import CHOOSING, METHODS
from fewlabels.methods.voices import Unheard
from fewlabels.metrics.base import Needs
from fewlabels.predictions import Predictions
from fewlabels.shifts.sampling_test import FEWEST_LABELS, GLANCE, QUICK, SamplingTest, Split
from fewlabels.shifts.sampling_test import sampling_test as run_test

_LEARNED_FROM: dict[str, Needs] = {
    "hard predictions": "hard",
    "probabilities": "probabilities",
    "scores": "ranking",
}


def facts(
    predictions: Predictions, method: str, level: float | None, unheard: Unheard, *,
    distribution: bool,
) -> list[str]:  # fmt: skip
    """Sentences about the user's input, and about what is not used of it.

    `level` is None without intervals; nothing is learned from `unheard` classifiers; with
    `distribution`, classifiers are judged against the distribution of annotators' labels.
    """
    sentences = list(predictions.notes)
    sentences += weights_of_labels(predictions) if np.ptp(predictions.weight) > 0 else []
    _, labels = (predictions.as_histograms() if distribution else predictions).named
    sentences += absent_classes(predictions.classes, labels)
    worse = below_chance(predictions)
    if worse:
        sentences.append(
            f"reversed: by the labels, worse than chance (probability above .99): {listed(worse)}; "
            "are the scores reversed, or the classes in another order?"
        )
    elif labels_look_misaligned(predictions):
        sentences.append(
            "unrelated: no classifier agrees with the labels better than chance, though the "
            "classifiers agree with one another; are the labels in the order of the items, and "
            "from the right column? If so, all classifiers err alike"
        )
    sentences += [
        f"seen: {one.model} is right on {one.right:.0%} of {one.n_labels:,} labeled items, and "
        f"agrees with {one.other} {'more' if one.there > one.elsewhere else 'less'} often "
        f"there ({one.there:.0%}) than elsewhere ({one.elsewhere:.0%}); if it was given these "
        "labels, in training or as examples, it looks better than it is"
        for one in unheard.exposed
    ]
    sentences += [
        f"{model} predicts the same as {twin} on every item; leave one of them out"
        for model, twin in unheard.copies.items()
    ]
    if distribution:
        sentences.append(_distribution(predictions))
    elif predictions.histogram is not None and not predictions.n_annotated:
        sentences.append(
            "counts of annotators (h__ columns) are not used, as the items that have them have a "
            "known label; against='distribution' (--against distribution) takes them instead"
        )
    if method == "labeled":
        sentences += ["only the labeled items are used"] if len(labels) else []
        if predictions.histogram is not None and not distribution:
            sentences.append("labeled does not use the histograms of annotators (h__ columns)")
    else:
        registered = METHODS.get(method)
        if predictions.n_annotated and registered is not None and registered.serves == "means":
            sentences.append(f"{method} does not use the histograms of annotators (h__ columns)")
        elif predictions.n_annotated and not distribution:
            sentences.append(annotators_weigh_in(predictions))
        what = "probabilities" if registered is None else registered.learns_from
        silent = []
        if what != "everything":
            gives = predictions.gives(_LEARNED_FROM[what])
            silent = [predictions.models[j] for j in np.flatnonzero(~gives)]
        if silent:
            sentences.append(
                f"{method} does not learn from classifiers without {what} "
                f"({listed(silent, 5)}); their estimates rest on the others"
                "; learned-ensemble learns from all"
            )
    return sentences + extreme_ends(level)


def absent_classes(classes: Sequence[Any], labels: Ints) -> list[str]:
    """Classes without a label, where there are labels."""
    absent = [c for k, c in enumerate(classes) if not (labels == k).any()]
    return [f"no labeled item of class {listed(absent)}"] if len(labels) and absent else []


def annotators_weigh_in(predictions: Predictions) -> str:
    """A note that counts of annotators serve as evidence of labels."""
    return (
        f"{predictions.n_annotated:,} items without a label have counts of annotators (h__ "
        "columns), which are used as evidence of their labels"
    )


def extreme_ends(level: float | None) -> list[str]:
    """A note where fewer than ten draws lie beyond each end of an interval."""
    if level is None or 20 / (1 - level) <= MOST_DRAWS:
        return []
    return [
        f"the ends of {level:.6g} intervals are the extremes of {MOST_DRAWS} draws; the true "
        "ends may lie further out"
    ]


_SURELY = 0.01
"""Level of the test for classifiers below chance."""


def below_chance(predictions: Predictions) -> list[str]:
    """Classifiers that their labels put below chance, with probability above .99.

    Of two classes the order of the items decides where a classifier gives one, else how often it
    agrees with the labels.
    """
    below: list[str] = []
    times, labeled = predictions.times, predictions.labeled
    if not labeled.any():
        return below
    for j, model in enumerate(predictions.models):
        p_values = []
        ranked = predictions.given_by("ranking", j)
        ranked = ranked[labeled[ranked]]
        if predictions.n_classes == 2 and predictions.multiplicity is None and ranked.size:
            scores = score_of(predictions, j)[ranked]
            p_values.append(below_chance_by_rank(scores, predictions.labels[ranked] == 1))
        voted = predictions.given_by("hard", j)
        voted = voted[labeled[voted]]
        if voted.size and (predictions.n_classes > 2 or not ranked.size):
            labels, hard = predictions.labels[voted], predictions.hard_of(voted, j)
            p_values.append(below_chance_by_agreement(labels, hard, times[voted]))
        if min(p_values, default=1.0) < _SURELY:
            below.append(model)
    return below


def _distribution(predictions: Predictions) -> str:
    """A note on how counts of annotators are used as label distributions."""
    assert predictions.histogram is not None
    counted = np.asarray(predictions.histogram.any(axis=1))
    labeled = predictions.labeled
    single, dropped = int((labeled & ~counted).sum()), int((labeled & counted).sum())
    one = f" and {single:,} with a label, which counts as one annotator's" if single else ""
    left_out = f" ({dropped:,} known labels beside counts are not used)" if dropped else ""
    return (
        f"{int(counted.sum()):,} items have counts of annotators (h__ columns){one}: classifiers "
        f"are judged against the distribution of annotators' labels{left_out}; against='class' "
        "(--against class) takes each item to be of one class"
    )


def weights_of_labels(predictions: Predictions) -> list[str]:
    """A warning where weights look like 1 / P(labeled), which are those of the labels alone.

    Weights of all items have the same mean in a random sample of labels. Where w = 1 / P(labeled),
    the labeled ones have the mean n / sum(1 / w), the harmonic one, as sum(1 / w) is the expected
    number of labels.
    """
    w = predictions.weight[predictions.weight > 0]
    own = predictions.weight[predictions.told & (predictions.weight > 0)]
    if len(own) < _FEWEST_WEIGHTS or len(own) == len(w) or (w == w[0]).all():
        return []
    mean, error = own.mean(), own.std(ddof=1) / math.sqrt(len(own))
    harmonic = len(w) / (1 / w).sum()
    if w.mean() - mean < _APART * error or abs(mean - harmonic) > _NEAR * error:
        return []
    return [
        f"shift: labeled items weigh {mean / w.mean():.0%} of the mean of all, as where a weight "
        "is 1 / P(labeled); such weights are of the labels, and here every item counts by them; "
        "leave them empty where there is no label"
    ]


_FEWEST_WEIGHTS, _APART, _NEAR = 20, 4.0, 3.0
"""Fewest labels whose weights tell, standard errors from which a mean is another, and those within
which it is the same."""

_SHIFT_LEVEL = 0.01
"""Level of the warning of a shift: below that of `fewlabels.shift`, as nobody requested the
test."""

_WORTH_A_LOOK = 0.1
_SHIFT_SALT = 0x5A3B


def not_a_random_sample(predictions: Predictions, method: str) -> SamplingTest | None:
    """What differs between labeled and unlabeled items; None where no difference is significant.

    A hundred permutations decide whether a thousand are worth their time: the level stays below
    .01. There is no test with fewer than 5 labels, with unequal sampling weights, which may undo
    how items were chosen, and for labels whose draws were recorded or that active testing chose.
    The items themselves are the seed, so that a warning does not come and go with the seed of
    estimates.
    """
    labeled, unlabeled = Split.from_predictions(predictions)
    if predictions.size_of(labeled) < FEWEST_LABELS or not unlabeled.any():
        return None
    weight = predictions.weight[predictions.weight > 0]
    if (weight != weight[:1]).any() or method in CHOOSING:
        return None
    if predictions.label_weight is not None:
        return None
    # Sums of keys wrap around and do not depend on the order of the items.
    rng = np.random.default_rng([_SHIFT_SALT, int(predictions.keys.sum())])
    if run_test(predictions, rng, GLANCE).p_value > _WORTH_A_LOOK:
        return None
    test = run_test(predictions, rng, QUICK)
    return test if test.p_value < _SHIFT_LEVEL else None


def selection_facts(
    predictions: Predictions, method: str, *, distribution: bool
) -> tuple[dict[str, Any], list[str]]:
    """Diagnostics and warnings where labeled items are shown to be no random sample; else none.

    They say what differs, what follows from it, and what to do: for a label `distribution` there is
    no correction but sampling weights.
    """
    test = not_a_random_sample(predictions, method)
    if test is None:
        return {}, []
    registered = None if distribution else METHODS.get(method)
    consequence = "estimates may be off by more than their intervals say"
    if registered is not None and registered.chosen_by_score.startswith("yes"):
        consequence = f"{method} assumes that they were chosen by their scores, and nothing else"
    # Named with the command that has it: others, such as `fewlabels score`, have no correction.
    remedy = "`fewlabels estimate --shift auto` (shift='auto') corrects by weights"
    if unlike := _never_labeled(predictions):
        remedy = f"no labeled item is one {unlike}, and no weights correct that: label some of them"
    if distribution:
        remedy = "draw the items to label at random, or give sampling weights (--weight COL)"
    p = f"{test.p_value:.3f}".lstrip("0")
    warning = (
        f"shift: labeled items do not look like a random sample of all items (p = {p}): "
        f"{test.worst}; {consequence}; {remedy}, `fewlabels shift` and docs/shift.md say more"
    )
    finding = {"p_value": test.p_value, "difference": test.worst, "remedy": remedy}
    return {NOT_RANDOM: finding}, [warning]


def _never_labeled(predictions: Predictions) -> str | None:
    """The kind of items of which none is labeled, though others are many, in words; else None.

    Kinds are what a classifier predicts, or not, and whether two of them agree. By chance none is
    labeled with probability exp(-5) at most.
    """
    if predictions.is_sparse or predictions.n_models > _MOST_PAIRED:
        return None
    hard, labeled, names = predictions.hard, predictions.labeled, predictions.models
    best, words = 5.0 / max(int(labeled.sum()), 1), None
    for j, k in itertools.combinations_with_replacement(range(predictions.n_models), 2):
        if not (predictions.gives("hard")[j] and predictions.gives("hard")[k]):
            continue
        if j == k:
            of = {c: f"where {names[j]} says {one}" for c, one in enumerate(predictions.classes)}
            kinds = [(hard[:, j] == c, said) for c, said in of.items()]
            kinds.append((hard[:, j] < 0, f"without a prediction of {names[j]}"))
        else:
            both = (hard[:, j] >= 0) & (hard[:, k] >= 0)
            same = hard[:, j] == hard[:, k]
            kinds = [(both & same, f"where {names[j]} and {names[k]} agree")]
            kinds.append((both & ~same, f"where {names[j]} and {names[k]} differ"))
        for kind, said in kinds:
            share = float(kind[~labeled].mean())
            if share > best and not kind[labeled].any():
                best, words = share, f"{said} ({share:.0%} of the others)"
    return words


_MOST_PAIRED = 20
"""Of more classifiers the pairs are not looked at."""


def below_chance_by_rank(scores: Floats, positive: Array) -> float:
    """P-value of "no worse than chance" against a smaller AUC, by the Mann-Whitney test.

    `scores` (n,) are of the labeled items, and `positive` (n,) marks those of the positive class.
    """
    m, n = sorted((int(positive.sum()), int((~positive).sum())))
    if not m:
        return 1.0
    _, code, ties = np.unique(scores, return_inverse=True, return_counts=True)
    rank = (np.cumsum(ties) - (ties - 1) / 2)[code]
    u = float(rank[positive].sum()) - positive.sum() * (positive.sum() + 1) / 2
    if m <= _EXACT_RANKS and len(ties) == len(scores):
        return float(_mann_whitney(m, n)[: int(u) + 1].sum())
    tied = (ties**3 - ties).sum() / ((m + n) * (m + n - 1))
    deviation = math.sqrt(m * n / 12 * (m + n + 1 - tied))
    return float(ndtr((u + 0.5 - m * n / 2) / deviation)) if deviation else 1.0


_EXACT_RANKS = 8
"""Up to this many items of a class the distribution of ranks is exact, where none tie."""


def _mann_whitney(m: int, n: int) -> Floats:
    """P(U = u) of m items and n others in random order, u = 0 .. m n, (m n + 1,).

    Their number is the coefficient of q^u in prod_i (1 - q^(n+i)) / (1 - q^i), i = 1 .. m.
    """
    out = np.zeros(m * n + 1)
    out[0] = 1.0
    for i in range(1, m + 1):
        out[n + i :] -= out[: -n - i].copy()
        steps = np.pad(out, (0, -len(out) % i)).reshape(-1, i)
        out = steps.cumsum(axis=0).ravel()[: len(out)]
    return out / out.sum()


def below_chance_by_agreement(labels: Array, hard: Array, times: Floats) -> float:
    """P-value of "no worse than chance" against less agreement than permuted predictions have.

    Normal, with a continuity correction. Parameters are those of `agreement_by_chance`.
    """
    agreed, mean, deviation = agreement_by_chance(labels, hard, times)
    return float(ndtr((agreed + 0.5 - mean) / deviation)) if deviation else 1.0


def agreement_by_chance(labels: Array, hard: Array, times: Floats) -> tuple[float, float, float]:
    """Number of agreements, and its mean and standard deviation under random permutations.

    `labels`, `hard` and `times`, (n,) each, are the class of each labeled item, the predicted one,
    and how many items the row stands for. With n_k items of class k and m_l predictions of class l,
    the number S of agreements under a random permutation has the mean sum_k n_k m_k / n and, with
    d_kl = [k = l] - m_k/n - n_l/n + sum_c n_c m_c / n^2, the variance sum_kl n_k m_l d_kl^2 /
    (n - 1) (Hoeffding's combinatorial central limit theorem).
    """
    n = float(times.sum())
    # Of the classes that occur: a table of all of them may be larger than memory.
    classes, codes = np.unique(np.r_[labels, hard], return_inverse=True)
    n_labels, n_predicted = (np.bincount(c, times, len(classes)) for c in np.split(codes, 2))
    agreed = float(times[labels == hard].sum())
    mean = float(n_labels @ n_predicted) / n
    d = np.eye(len(classes)) - n_predicted[:, None] / n - n_labels[None, :] / n + mean / n
    variance = float((n_labels[:, None] * n_predicted[None, :] * d**2).sum()) / max(n - 1, 1)
    return agreed, mean, float(np.sqrt(max(variance, 0.0)))


_FEWEST_TO_TELL, _MOST_TO_TELL = 10, 20_000
"""Fewer labels beside predictions do not tell chance from agreement; more are not needed."""

_UNLIKE = 0.05
"""Level of both tests for labels of other items."""


def labels_look_misaligned(predictions: Predictions) -> bool:
    """Whether labels seem to belong to other items: joined in another order, for example.

    That is so if no classifier agrees with them significantly better than chance, and all together
    significantly less than half as far beyond chance as with one another (Fleiss' kappa).
    """
    labeled = np.flatnonzero(predictions.labeled)
    if len(labeled) < _FEWEST_TO_TELL or len(predictions.models) < 2:
        return False
    most = min(_MOST_TO_TELL, 2**23 // predictions.n_classes)  # the counts must fit
    if len(labeled) > most:
        labeled = np.sort(labeled[np.argsort(predictions.keys[labeled])[:most]])
    chosen, times = np.zeros(predictions.n_items, dtype=bool), predictions.times[labeled]
    chosen[labeled] = True
    counts = np.zeros((len(labeled), predictions.n_classes))
    by_chance = compared = 0.0
    for j in range(len(predictions.models)):
        rows = predictions.given_by("hard", j)
        rows = rows[chosen[rows]]
        if not rows.size:
            continue
        labels, hard = predictions.labels[rows], predictions.hard_of(rows, j)
        counts[np.searchsorted(labeled, rows), hard] += 1
        agreed, mean, deviation = agreement_by_chance(labels, hard, predictions.times[rows])
        better = ndtr((mean + 0.5 - agreed) / deviation) if deviation else 1.0
        if better < _UNLIKE / len(predictions.models):
            return False
        size = float(predictions.times[rows].sum())
        if size > 1:
            # Of predictions with labels of other items: their own say nothing of chance.
            by_chance += (size * mean - agreed) / (size - 1)
            compared += size
    n_predictions = counts.sum(axis=1)
    pairs, items, _ = vote_agreement(counts, times)
    if min(items, compared) < _FEWEST_TO_TELL:
        return False
    share = times @ counts / (times @ n_predictions)
    kappa = (pairs / items - share @ share) / max(1 - share @ share, 1e-12)
    chance = by_chance / compared
    voted = n_predictions > 0
    votes = counts[np.arange(len(labeled)), predictions.labels[labeled]]
    agrees, times = votes[voted] / n_predictions[voted], times[voted]
    mean = float(np.average(agrees, weights=times))
    error = np.sqrt(np.average((agrees - mean) ** 2, weights=times) / float(times.sum()))
    return bool(-ndtri(_UNLIKE) * error < chance + (1 - chance) * kappa / 2 - mean)
