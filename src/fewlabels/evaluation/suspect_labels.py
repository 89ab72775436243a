"""Labels that the classifiers contradict: wrong ones, or items on which all classifiers err.

Let l_ik be the mean over classifiers of log P(class k), less its mean over classes and in units of
its spread over the labeled items; t_i is the true class of item i, and y_i its label. Then

    P(t_i = k) = softmax_k(beta l_ik + b_k),    P(y_i | t_i) = 1 - e,  or e / (K - 1) if y_i != t_i,

with normal priors of beta and b_k (Laplace) and a few shares e of wrong labels, each of which
counts by its evidence. Without wrong labels classifiers are wrong less often where they are surer,
at any beta; wrong labels contradict sure and unsure classifiers alike. So P(t_i != y_i) is large
for an item only if the classifiers are right on nearly all others that they are as sure of.

Classifiers that find the same items hard err together where they are sure, too. How often they do
is told by how they differ among themselves, on items without a label as well. With c_ik votes for
class k, of shares that are Dirichlet(a for the true class, b for each other) from item to item,

    P(t_i = k | votes) ~ P(k) G(a + c_ik) G(b) / (G(b + c_ik) G(a)),    G the gamma function,

the Dirichlet compound multinomial; a and b are averaged over by their likelihood. Its logarithm
beside l_ik, of those that give no mere votes, makes a second P(t_i != y_i): the lower one holds.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from fewlabels.errors import one_line, plain_name, quoted
from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.multinomial import fit_map
from fewlabels.kernels.simplex import logsumexp, softmax
from fewlabels.predictions import Predictions

FEWEST, _MOST_CELLS, _MOST_OFFSETS = 20, 2**16, 50
"""With fewer labels nothing is said; larger tables of labels and classes are fitted to a part, and
with more classes none has a constant of its own."""

_SHARES = np.array([0.0, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3])
_PRIOR = np.array([2.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2])
_OFFSET_SD, _LEAST = 0.5, 1e-3
_SLOPES = np.array([[2.0, 1.5]]), np.array([[0.0, 1.0], [1.0, 0.25]])
"""Means and standard deviations of beta, on 14 real sets .3 to 5, and of l and votes beside each
other; probabilities count as no less than the last."""

_RIGHT, _TOTAL, _UNLABELED = np.exp(np.linspace(0.25, 7, 14)), np.geomspace(0.25, 100, 12), 4096
"""Grids of a / b and of a + (K - 1) b, and how many items without a label tell of them."""

_SUSPECT, _FEWEST_SUSPECT, _OF_TENTH, _OF_SUSPECT, _LISTED = 0.35, 3, 0.6, 0.75, 0.2
"""Nothing is said unless so many labels are wrong with more than the first probability, and of the
sum of all probabilities a tenth of the labels has the third number as its share, or those above the
first have the fourth: else wrong labels look like hard items. Then labels above the last
probability are listed."""

_LEVELS = 5
"""Of fewer levels of sureness, such as those of the votes of two judges, the highest is no surer
than it happens to be: lenient judges would make all failures suspect."""

_SIGNIFICANT = 2.71
"""Gain in log-evidence that chance reaches once in a hundred times: half the 98% point of chi2(1),
as no share is below 0."""

SHOWN = 5


class Suspects(NamedTuple):
    """Items whose label is suspect, the most first: `rows`, `predicted` classes, P(wrong).

    `significant` says whether there are more of them than if all labels were right, at level .01.
    """

    rows: Ints
    predicted: Ints
    probability: Floats
    n_labels: int
    significant: bool

    def facts(self, predictions: Predictions) -> tuple[dict[str, Any], str]:
        """The diagnostic, which has all of them, and the warning, which has the first.

        Rows count from 0; those that are some of a stream have no number in its files.
        """
        names = [*predictions.item_names.values()]
        classes = [plain_name(c) for c in predictions.classes]
        columns = (self.rows.tolist(), self.predicted.tolist(), self.probability.tolist())
        records = [
            {
                "row": row if predictions.part_keys is None else None,
                "item": names[0][row] if names else None,
                "label": classes[predictions.labels[row]],
                "predicted": classes[k],
                "probability": round(p, 3),
            }
            for row, k, p in zip(*columns, strict=True)
        ]
        shown = "; ".join(map(_in_words, records[:SHOWN]))
        if records[0]["row"] is None and not names:
            shown = "read the files whole (--engine memory) to see which"
        elif len(records) > SHOWN:
            shown += f"; and {len(records) - SHOWN:,} more"
        significant = "; they are more than chance explains (p < .01)" if self.significant else ""
        return {"suspect_labels": records}, (
            f"suspect: check {len(records):,} of the {self.n_labels:,} labels, which sure "
            f"classifiers contradict: {shown}; either these labels are wrong, and the estimates "
            f"with them, or all classifiers err there{significant}"
        )


def _in_words(record: dict[str, Any]) -> str:
    where = f"item {record['row']} (from 0)"
    if record["item"] is not None:
        where = f"item {quoted(str(record['item']))}"
    label, predicted = (one_line(str(record[name]), 40) for name in ("label", "predicted"))
    return f"{where} has {label}, predicted {predicted}"


def suspect_labels(predictions: Predictions, voices: tuple[str, ...]) -> Suspects | None:
    """The labels that these classifiers contradict; None where they say nothing of single labels.

    Rows that stand for several items are not looked at: nobody could check their label.
    """
    known = predictions.labeled & (predictions.weight > 0)
    if known.sum() < FEWEST or predictions.multiplicity is not None:
        return None
    order = np.argsort(predictions.keys, kind="stable")  # whatever that of the rows
    rows, others = order[known[order]], order[~predictions.labeled[order]]
    n, labels = len(rows), predictions.labels[rows]
    words, votes, worth = _said(predictions, np.r_[rows, others[:_UNLABELED]], voices)
    several = [some[:n] for some in (words + worth, words)]
    sizes = [float(np.sqrt((x**2).sum() / (n * (x.shape[1] - 1)))) or 1.0 for x in several]
    logits, words = (x / size for x, size in zip(several, sizes, strict=True))
    ranks = np.partition(logits, -2, axis=1)
    if len(np.unique(np.round(ranks[:, -1] - ranks[:, -2], 6))) < _LEVELS:
        return None
    # As they were drawn: what stands out among labels is no matter of the strata's shares.
    power = (predictions.information / predictions.design_power)[rows]
    designs = logits[..., None], np.stack([words, _by_votes(votes)[:n]], axis=2)
    both = [_wrong(x, labels, power, s) for x, s in zip(designs, _SLOPES, strict=True)]
    wrong, gain = np.minimum(both[0][0], both[1][0]), min(both[0][1], both[1][1])
    for one, _, _ in both:
        ranked = -np.sort(-one)
        tenth, suspect = ranked[: max(n // 10, SHOWN)].sum(), ranked[ranked > _SUSPECT].sum()
        stand_out = max(tenth / _OF_TENTH, suspect / _OF_SUSPECT) >= ranked.sum()
        if not stand_out or (wrong > _SUSPECT).sum() < _FEWEST_SUSPECT:
            return None
    order = np.argsort(-wrong, kind="stable")
    order = order[wrong[order] > _LISTED]
    return Suspects(rows[order], both[0][2][order], wrong[order], n, gain > _SIGNIFICANT)


def _by_votes(votes: Floats) -> Floats:
    """Logs of P(class) by votes, (n, K) each, of classifiers that share an item's difficulty."""
    k, whole = votes.shape[1], votes.astype(np.int64)
    counts, place, times = np.unique(whole, axis=0, return_inverse=True, return_counts=True)
    size, steps = counts.sum(axis=1), np.arange(counts.max() + 1)
    prior = np.log((votes.sum(axis=0) + 1) / (votes.sum() + k))

    p, top = np.zeros(counts.shape), -np.inf
    for ratio, total in itertools.product(_RIGHT, _TOTAL):
        b = total / (ratio + k - 1)
        right, wrong = ((gammaln(c + steps) - gammaln(c))[counts] for c in (b * ratio, b))
        log_p = prior + right - wrong
        fits = wrong.sum(axis=1) - gammaln(total + size) + gammaln(total) + logsumexp(log_p)
        fit, last = float(times @ fits), top
        top = max(fit, top)
        p = p * np.exp(last - top) + softmax(log_p) * np.exp(fit - top)
    out: Floats = np.log(p / p.sum(axis=1, keepdims=True) + 1e-12)[place.ravel()]
    return out - out.mean(axis=1, keepdims=True)


def _wrong(
    design: Floats, labels: Array, power: Floats, slopes: Floats
) -> tuple[Floats, float, Ints]:
    """P(label is wrong) (n,), the gain in log-evidence by wrong labels, the likeliest others.

    The design is (n, K, p), and slopes have means and standard deviations (p, 2).
    """
    n, k, p = design.shape
    offsets, every = k <= _MOST_OFFSETS, np.arange(n)
    fitted = slice(0, max(_MOST_CELLS // k, 200))
    prior = np.r_[np.repeat([[0.0, _OFFSET_SD]], k * offsets, axis=0), slopes]
    log_evidence, wrong, best = np.empty(len(_SHARES)), np.empty((len(_SHARES), n)), design[..., 0]
    for s, share in enumerate(_SHARES):
        told = np.full((n, k), np.log(share / (k - 1)) if share else -np.inf)
        told[every, labels] = np.log1p(-share)
        mode = fit_map(
            design[fitted], told[fitted], prior[:, 0], prior[:, 1] ** -2.0, offsets=offsets,
            power=power[fitted],
        )  # fmt: skip
        log_evidence[s] = mode.log_evidence
        model = design @ mode.coefficients[-p:]
        if offsets:
            model += mode.coefficients[:k]
        wrong[s] = 1 - softmax(model + told)[every, labels]
        if log_evidence[s] == log_evidence[: s + 1].max():
            best = model
    weights = softmax((log_evidence + np.log(_PRIOR))[None])[0]
    best[every, labels] = -np.inf
    return weights @ wrong, float(log_evidence.max() - log_evidence[0]), best.argmax(axis=1)


def _said(
    predictions: Predictions, rows: Ints, voices: tuple[str, ...]
) -> tuple[Floats, Floats, Floats]:
    """Log P(class), less its mean over classes, votes, and what mere votes are worth, (n, K) each.

    Of the first and the last the mean over all classifiers. A score counts as standardised
    log-odds, and a vote as the log-odds of its being right, by how often votes of its classifier,
    and of all, are right on labeled items.
    """
    said, k = predictions.take(rows).select_models(voices), predictions.n_classes
    words, votes, worth = np.zeros((3, len(rows), k))
    voting = np.ones(said.n_models, dtype=bool)
    if not said.is_sparse:
        scored = np.asarray(said.has_probabilities.any(axis=0))
        voting = ~(scored | said.gives("ranking"))
        for j in np.flatnonzero(~voting):
            if scored[j] and said.probabilities is not None:
                given = said.has_probabilities[:, j]
                log_p = np.log(np.maximum(said.probabilities[given, j], _LEAST))
            elif said.scores is not None:
                given = ~np.isnan(said.scores[:, j])
                z = said.scores[given, j]
                log_p = np.outer((z - z.mean()) / (z.std() or 1.0), [-1.0, 1.0])
            words[given] += log_p - log_p.mean(axis=1, keepdims=True)
            votes[np.flatnonzero(given), log_p.argmax(axis=1)] += 1
    ballots = said.ballots.tocoo()
    kept = voting[ballots.col]
    item, model = ballots.row[kept], ballots.col[kept]
    vote = ballots.data[kept].astype(np.int64) - 1
    right, known = vote == said.labels[item], said.labels[item] >= 0
    share = (right.sum() + 1) / (known.sum() + 2)
    hits, tries = (np.bincount(model, these, said.n_models) for these in (right, known))
    rate = (hits + 4 * share) / (tries + 4)
    odds = np.maximum(np.log(rate / (1 - rate)) + np.log(k - 1), 0.0)[model]
    np.add.at(worth, (item, vote), odds)
    np.add.at(worth, item, -odds[:, None] / k)
    np.add.at(votes, (item, vote), 1.0)
    size = np.maximum(votes.sum(axis=1, keepdims=True), 1.0)
    return words / size, votes, worth / size
