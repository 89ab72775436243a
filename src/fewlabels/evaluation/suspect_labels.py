"""Labels that the classifiers contradict: wrong ones, or items on which all classifiers err.

Let l_ik be the mean over classifiers of log P(class k), less its mean over classes and in units of
its spread over the labeled items; t_i is the true class of item i, and y_i its label. Then

    P(t_i = k) = softmax_k(beta l_ik + b_k),    P(y_i | t_i) = 1 - e,  or e / (K - 1) if y_i != t_i,

with normal priors of beta and b_k (Laplace) and a few shares e of wrong labels, each of which
counts by its evidence. Without wrong labels classifiers are wrong less often where they are surer,
at any beta; wrong labels contradict sure and unsure classifiers alike. So P(t_i != y_i) is large
for an item only if the classifiers are right on nearly all others that they are as sure of.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fewlabels.errors import one_line, plain_name, quoted
from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.multinomial import fit_map
from fewlabels.kernels.simplex import softmax
from fewlabels.predictions import Predictions

FEWEST, _MOST_CELLS, _MOST_OFFSETS = 20, 2**16, 50
"""With fewer labels nothing is said; larger tables of labels and classes are fitted to a part, and
with more classes none has a constant of its own."""

_SHARES = np.array([0.0, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3])
_PRIOR = np.array([1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2])
_SLOPE, _SLOPE_SD, _OFFSET_SD, _LEAST = 2.0, 1.5, 0.5, 1e-3
"""On 14 real sets the slope was .3 to 5; probabilities count as no less than the last."""

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
    rows = np.flatnonzero(predictions.labeled & (predictions.weight > 0))
    if len(rows) < FEWEST or predictions.multiplicity is not None:
        return None
    rows = rows[np.argsort(predictions.keys[rows], kind="stable")]  # whatever their order
    labels, k = predictions.labels[rows], predictions.n_classes
    logits = _pooled(predictions, rows, voices)
    logits /= float(np.sqrt((logits**2).sum() / (len(rows) * (k - 1)))) or 1.0
    ranks = np.partition(logits, k - 2, axis=1)
    if len(np.unique(np.round(ranks[:, -1] - ranks[:, -2], 6))) < _LEVELS:
        return None
    # As they were drawn: what stands out among labels is no matter of the strata's shares.
    power = (predictions.information / predictions.design_power)[rows]
    wrong, gain, other = _wrong(logits, labels, power)
    order = np.argsort(-wrong, kind="stable")
    ranked = wrong[order]
    tenth, suspect = ranked[: max(len(rows) // 10, SHOWN)].sum(), ranked[ranked > _SUSPECT].sum()
    stand_out = max(tenth / _OF_TENTH, suspect / _OF_SUSPECT) >= ranked.sum()
    if ranked[_FEWEST_SUSPECT - 1] < _SUSPECT or not stand_out:
        return None
    order = order[ranked > _LISTED]
    return Suspects(rows[order], other[order], wrong[order], len(rows), gain > _SIGNIFICANT)


def _wrong(logits: Floats, labels: Array, power: Floats) -> tuple[Floats, float, Ints]:
    """P(label is wrong) (n,), the gain in log-evidence by wrong labels, the likeliest others."""
    n, k = logits.shape
    offsets, every = k <= _MOST_OFFSETS, np.arange(n)
    fitted = slice(0, max(_MOST_CELLS // k, 200))
    precision = np.r_[np.full(k * offsets, _OFFSET_SD**-2.0), _SLOPE_SD**-2.0]
    mean = np.r_[np.zeros(k * offsets), _SLOPE]
    log_evidence, wrong, best = np.empty(len(_SHARES)), np.empty((len(_SHARES), n)), logits
    for s, share in enumerate(_SHARES):
        told = np.full((n, k), np.log(share / (k - 1)) if share else -np.inf)
        told[every, labels] = np.log1p(-share)
        if not share:
            told[every, labels] = 0.0
        mode = fit_map(
            logits[fitted, :, None], told[fitted], mean, precision, offsets=offsets,
            power=power[fitted],
        )  # fmt: skip
        log_evidence[s] = mode.log_evidence
        model = mode.coefficients[-1] * logits
        if offsets:
            model += mode.coefficients[:k]
        wrong[s] = 1 - softmax(model + told)[every, labels]
        if log_evidence[s] == log_evidence[: s + 1].max():
            best = model
    weights = softmax((log_evidence + np.log(_PRIOR))[None])[0]
    best[every, labels] = -np.inf
    return weights @ wrong, float(log_evidence.max() - log_evidence[0]), best.argmax(axis=1)


def _pooled(predictions: Predictions, rows: Ints, voices: tuple[str, ...]) -> Floats:
    """Mean over classifiers of log P(class), less its mean over classes, (n, K).

    A score counts as standardised log-odds, and a vote as the log-odds of its being right, by how
    often votes of its classifier, and of all, are right on labeled items.
    """
    said, k = predictions.take(rows).select_models(voices), predictions.n_classes
    out, size = np.zeros((len(rows), k)), np.zeros(len(rows))
    voting = np.ones(said.n_models, dtype=bool)
    if not said.is_sparse:
        scored = said.has_probabilities.any(axis=0)
        ranked = said.gives("ranking") & ~scored
        voting = ~(scored | ranked)
        for j in np.flatnonzero(scored):
            given = said.has_probabilities[:, j]
            assert said.probabilities is not None
            log_p = np.log(np.maximum(said.probabilities[given, j], _LEAST))
            out[given] += log_p - log_p.mean(axis=1, keepdims=True)
            size[given] += 1
        for j in np.flatnonzero(ranked):
            assert said.scores is not None
            given = ~np.isnan(said.scores[:, j])
            z = said.scores[given, j]
            z = (z - z.mean()) / (z.std() or 1.0)
            out[given] += np.stack([-z, z], axis=1)
            size[given] += 1
    votes = said.ballots.tocoo()
    kept = voting[votes.col]
    item, model, vote = votes.row[kept], votes.col[kept], votes.data[kept].astype(np.int64) - 1
    right = vote == said.labels[item]
    share = (right.sum() + 1) / (len(right) + 2)
    n_votes = np.bincount(model, minlength=said.n_models)
    rate = (np.bincount(model, right, said.n_models) + 4 * share) / (n_votes + 4)
    worth = np.maximum(np.log(rate / (1 - rate)) + np.log(k - 1), 0.0)[model]
    np.add.at(out, (item, vote), worth)
    np.add.at(out, item, -worth[:, None] / k)
    np.add.at(size, item, 1.0)
    out /= np.maximum(size, 1.0)[:, None]
    return out
