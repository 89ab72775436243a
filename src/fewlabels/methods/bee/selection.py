"""Held-out likelihood of models of votes: what chooses concentrations, and weighs models.

The items of every domain are held out in turns; log P(votes of a held-out item), the mean over the
draws of a fit on the others, is summed. The paper holds out a tenth once; that is noisy, and
cross-validation is the default. Source: Platanios, Dubey, Mitchell (2016), section 5.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from fewlabels.checks.arguments import chosen_from
from fewlabels.errors import Status, UsageError, listed
from fewlabels.kernels.arrays import Bools, Floats, Ints, UInts
from fewlabels.kernels.blocks import report, reporting, spans
from fewlabels.kernels.counter_based import exponential_sums, some_items
from fewlabels.kernels.simplex import softmax
from fewlabels.methods.base import FittedLabelModel, LabelModel, with_hard_votes
from fewlabels.methods.bee.bee import (
    BEE,
    CBEE,
    SELECTIONS,
    ConfusionBEE,
    ConfusionCBEE,
    Selection,
    VoteModel,
)
from fewlabels.methods.bee.fitted import FittedVoteModel, mean_rates, mixture
from fewlabels.methods.bee.table import ALONE
from fewlabels.methods.votes.data import (
    INDEPENDENT,
    VoteRates,
    domain_codes,
    domains_of,
    item_domains,
)
from fewlabels.methods.votes.dependence import Counted, counted_votes
from fewlabels.posterior import Allowance, LabelPosterior
from fewlabels.predictions import Predictions

_SOME_SALT, _WEIGH_SALT = 0x50E3, 0x3E16
_MOST_VOTES = 200_000
"""With more votes the comparison would only take longer, not change the best model."""

_FEW_VOTES = 20_000
"""With more votes, models are compared by variational fits, faster and with the same result."""

_REWEIGHTED = 400
"""Random reweightings of the items, which show how often each model is the best."""

_BLOCK = 2**14
"""Items that are reweighted at a time."""

_SWEEPS, _WORK, _DRAWN = (100, 1000), 5_000_000, 5
"""Least and most sweeps of a chain, to go through so many votes of two classes; drawing a rate
takes as long as five of these."""

_MOST_RATES = 20_000
"""A model with more rates than this, and than votes, is not tried: most would be its prior's."""

_LEAST_WEIGHT = 0.02
"""Models of smaller weight are left out."""

_ALLOWANCE, _OF_FEW, _DIFFICULT, _TOGETHER, _ALIKE = 0.15, 0.1, 0.2, 0.25, 0.4
"""Standard deviation, in log-odds, of the error of every model of votes: always; with few
classifiers, and with few items; if items differ in difficulty; if classifiers also share mistakes.
With more than two classes some look alike to every classifier, which makes all worse than their
votes say, and none better.

Set on some 250 simulated sets of nine families (docs/votes.md names them), examined several times,
none of which is reported. That few items need more was seen on a tenth of the brain data; that an
unconditional .05 is too little, on two worlds of `llm_judges`; that classes look alike, on three
crowd sets of four classes. All of these are reported."""

_SHARED_BY_ALL = (
    "assumption: nothing says whether all classifiers make some mistakes alike, which no vote can "
    "show; intervals allow for a moderate share of such mistakes, not for a large one"
)

_DIFFER_IN_DIFFICULTY = (
    "assumption: some items are harder than others, for all classifiers at once; on these they "
    "err together, and votes alone do not tell how often: intervals are wider for it"
)

_FEW, _FEW_ITEMS, _GROUPED = 5, 200, 0.7
"""So many classifiers, and items of a domain, can show that two err together; and the probability
that items differ in difficulty if several groups do."""


@dataclass(frozen=True)
class VoteSelection(LabelModel):
    """Mixes the models of the votes that predict held-out votes best, and allows for their errors.

    One error rate per classifier, a confusion matrix, or one each for easy and for hard items; with
    several domains also rates that domains share. Their priors are learned from all classifiers.
    Classifiers that make the same mistakes count less (`votes.dependence`). Weights are those of
    pseudo-BMA+ (Yao, Vehtari, Simpson, Gelman 2018): how likely each candidate is the best when
    the items are weighed anew, its held-out likelihood taken one standard error lower than that of
    the best plainer one. Source of the held-out likelihood: Platanios, Dubey, Mitchell (2016),
    section 5.

    Parameters
    ----------
    candidates
        Models to mix, plainest first; None: `BEE`, `ConfusionBEE` and this with two levels of
        difficulty, with several domains also `CBEE` and `ConfusionCBEE`.
    selection
        "folds" (cross-validation) or "split" (a tenth held out once).
    """

    candidates: Sequence[VoteModel] | None = None
    selection: Selection = "folds"

    def __post_init__(self) -> None:
        chosen_from("selection", self.selection, SELECTIONS)
        if self.candidates is not None and not (
            len(self.candidates) and all(isinstance(c, VoteModel) for c in self.candidates)
        ):
            raise UsageError(
                "`candidates` must be models of votes (BEE, CBEE, HCBEE, CBCC and their confusion "
                f"versions); got {self.candidates!r}"
            )

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Compare the candidates, and fit on all items those that may be the best."""
        started = perf_counter()
        served = with_hard_votes(predictions, "vote-selection")
        domains = domains_of(served)
        candidates = list(self.candidates or _models(served, several=len(domains) > 1))
        counted = counted_votes(served, domains)
        some, parts = in_parts(_some(served), self.selection)
        if _n_votes(some) > _FEW_VOTES:  # held out twice, so many items tell models apart
            parts = parts[:2]
        scores = _compare(candidates, some, parts, int(rng.integers(2**63)), counted)
        seen = ~np.isnan(scores).any(axis=0)
        scores, times = scores[:, seen], (some.times * some.information)[seen]
        weights = _weights(scores, times, some.clusters_of(np.flatnonzero(seen)))
        chosen = np.flatnonzero(weights >= _LEAST_WEIGHT)
        fits = [
            candidates[m].fit_each([served], [generator], counted=counted)[0]
            for m, generator in zip(chosen.tolist(), rng.spawn(len(chosen)), strict=True)
        ]
        seconds, names = perf_counter() - started, _names(candidates)
        return _FittedSelection(
            tuple(fitted.after(seconds) for fitted in fits),
            tuple(names[m] for m in chosen),
            weights[chosen] / weights[chosen].sum(),
            names,
            scores,
            times,
            counted,
            int(rng.integers(2**63)),
        )


def _models(predictions: Predictions, *, several: bool) -> list[VoteModel]:
    """Candidate models, plainest first.

    Hard items have rates of their own if there are more votes than parameters: K^M - 1 shares of
    joint votes for 2 K M (K - 1) rates and 2 K - 1 shares of states.
    """
    # Half the sweeps of a model alone, as there are several, and fewer of many votes, in which the
    # chains soon agree; those that do not go on.
    sweeps = _sweeps(predictions)
    learned: Any = {
        "error_prior": "learned", "burn_in": sweeps // 2, "sweeps": sweeps,
        "thin": max(sweeps // 200, 1),
    }  # fmt: skip
    if _n_rates(predictions) > max(_n_votes(predictions), _MOST_RATES):
        return [BEE(**learned), *([CBEE(**learned)] if several else [])]
    models: list[VoteModel] = [BEE(**learned), ConfusionBEE(**learned)]
    k, m = predictions.n_classes, min(predictions.n_models, 64)
    if k**m - 1 >= 2 * k * m * (k - 1) + 2 * k - 1:
        models.append(ConfusionBEE(levels=2, **learned))
    return models + ([CBEE(**learned), ConfusionCBEE(**learned)] if several else [])


def _weights(scores: Floats, times: Floats, clusters: Sequence[UInts]) -> Floats:
    """How likely each candidate is the best, (candidates,); the plainest if nothing was held out.

    scores (candidates, n) are log-likelihoods of held-out items that count `times` (n,) each, of
    clusters with these keys.
    """
    if not scores.size:
        return np.eye(len(scores))[0]
    gap = scores - scores[0]
    size = times.sum()
    total = gap @ times
    penalty = np.zeros(len(gap))
    for m in range(1, len(gap)):
        # One standard error lower than the best of the plainer ones.
        plain = int(np.argmax(total[:m] - penalty[:m]))
        off = gap[m] - gap[plain]
        spread = np.average((off - np.average(off, weights=times)) ** 2, weights=times)
        penalty[m] = penalty[plain] + np.sqrt(spread * size)
    totals, mass = np.zeros((len(gap), _REWEIGHTED)), np.zeros(_REWEIGHTED)
    for block in spans(len(times), _BLOCK):
        block_keys = [keys[block] for keys in clusters]
        anew = exponential_sums(block_keys, np.arange(_REWEIGHTED), times[block], _WEIGH_SALT)
        totals += gap[:, block] @ anew
        mass += anew.sum(axis=0)
    totals = totals * (size / mass) - penalty[:, None]
    return np.asarray(softmax(totals.T).mean(axis=0))


def _names(candidates: Sequence[VoteModel]) -> tuple[str, ...]:
    """Names of the candidates; those of one class are numbered."""
    names = [f"{m.name}, hard items" if m.levels > 1 else m.name for m in candidates]
    return tuple(
        f"{name} ({names[: i + 1].count(name)})" if names.count(name) > 1 else name
        for i, name in enumerate(names)
    )


def _sweeps(predictions: Predictions) -> int:
    """How many sweeps a chain makes, of many votes and rates as few as bound its work."""
    rates = min(_n_rates(predictions), max(_n_votes(predictions), _MOST_RATES))
    visits = predictions.vote_counts.nnz * predictions.n_classes / 2 + _DRAWN * rates
    return int(np.clip(_WORK / max(visits, 1), *_SWEEPS))


def _n_rates(predictions: Predictions) -> int:
    """How many rates all confusion matrices have."""
    return predictions.n_models * predictions.n_classes**2


def _n_votes(predictions: Predictions) -> float:
    """How many votes there are."""
    return float(np.diff(predictions.vote_counts.indptr) @ predictions.times)


def _some(predictions: Predictions) -> Predictions:
    """All items, or as many, chosen by key, as have enough votes to compare models."""
    share = _MOST_VOTES / max(_n_votes(predictions), 1)
    if share >= 1:
        return predictions
    size = int(share * predictions.size) + 1
    if predictions.multiplicity is not None:
        times = some_items(predictions.multiplicity, predictions.keys, size, _SOME_SALT)
        rows = np.flatnonzero(times)
        return predictions.take(rows).with_multiplicity(times[rows])
    return predictions.take(np.sort(np.argsort(predictions.keys)[:size]))


@dataclass(frozen=True, eq=False)
class _FittedSelection(FittedLabelModel):
    fits: tuple[FittedVoteModel, ...]
    chosen: tuple[str, ...]
    weights: Floats
    names: tuple[str, ...]
    scores: Floats
    times: Floats
    counted: Counted
    salt: int

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        parts = [fitted.posterior(predictions) for fitted in self.fits]
        best = parts[int(np.argmax(self.weights))]
        difficult = float(self.weights @ [fitted.states.levels > 1 for fitted in self.fits])
        diagnostics: dict[str, Any] = {"chosen": self.chosen[int(np.argmax(self.weights))]}
        diagnostics["weights"] = dict(zip(self.chosen, self.weights.tolist(), strict=True))
        diagnostics |= best.diagnostics
        if self.scores.size:
            diagnostics["held_out"] = dict(zip(self.names, self.means.tolist(), strict=True))
        diagnostics |= self.counted.diagnostics()
        mixed = mixture(parts, self.weights, self.salt)
        if isinstance(mixed.vote_rates, VoteRates):
            diagnostics |= mean_rates(mixed.vote_rates, mixed.vote_rates.n_votes > 0)
        agree = mixed.status is not Status.NOT_CONVERGED
        warnings = dict.fromkeys(
            warning
            for part in [best, *parts]
            for warning in part.warnings
            if not (agree and warning.startswith(Status.NOT_CONVERGED.value))
        )
        return replace(
            mixed,
            allowance=Allowance() if predictions.labeled.all() else self._doubt(difficult),
            warnings=(
                self._why(),
                *self.counted.warnings(),
                *((_DIFFER_IN_DIFFICULTY,) if difficult >= 0.5 else ()),
                *(_SHARED_BY_ALL if warning == INDEPENDENT else warning for warning in warnings),
            ),
            diagnostics=diagnostics,
        )

    def _doubt(self, difficult: float) -> Allowance:
        """Allowance for the mixture's error, by the probability that items differ in difficulty."""
        groups = len(self.counted.groups)
        several = max(Counter(group.domain for group in self.counted.groups).values(), default=0)
        items = self.times.sum() / max(len(self.fits[0].domains), 1)
        few = (len(self.fits[0].models) < _FEW) + (items < _FEW_ITEMS)
        shared = max(difficult, _GROUPED if several > 1 else 0.0)
        doubt = _ALLOWANCE + _OF_FEW * few + shared * (_DIFFICULT + _TOGETHER * (groups > 0))
        return Allowance(doubt, doubt + _ALIKE * (len(self.fits[0].classes) > 2))

    @property
    def means(self) -> Floats:
        """Mean log-likelihood of an item under every candidate."""
        return np.asarray(np.average(self.scores, axis=1, weights=self.times))

    def _why(self) -> str:
        """Say which models explain the votes, and by how much better than others."""
        order = np.argsort(-self.weights)
        shares = [f"{self.chosen[m]} ({self.weights[m]:.0%})" for m in order]
        chosen = self.chosen[order[0]] if len(order) == 1 else listed(shares, 5)
        if not self.scores.size or len(self.names) == 1:
            return f"the votes are explained by {chosen}: there was nothing to compare it with"
        best = self.names.index(self.chosen[order[0]])
        gaps = []
        for other, name in enumerate(self.names):
            if other != best:
                gap = self.scores[best] - self.scores[other]
                mean = np.average(gap, weights=self.times)
                spread = np.sqrt(np.average((gap - mean) ** 2, weights=self.times))
                error = spread / np.sqrt(self.times.sum())
                gaps.append((mean, f"{name} by {mean:.3g} +- {error:.1g}"))
        others = listed([text for _, text in sorted(gaps)], 5)
        return (
            f"the votes are explained by {chosen}, by the likelihood of held-out votes (log per "
            f"item {self.means[best]:.4g} for {self.names[best]}; ahead of {others})"
        )


# --- held-out likelihood ----------------------------------------------------------------------


def _compare(
    candidates: Sequence[VoteModel],
    predictions: Predictions,
    parts: list[Bools],
    seed: int,
    counted: Counted | None = None,
) -> Floats:
    """Log-likelihood of every item when it is held out, (candidates, n); NaN where it was not."""
    # Sweeps of all chains of `log_predictive`.
    work = len(parts) * _CHAINS * _sweeps(predictions) * 3 // 4
    out = []
    for done, model in enumerate(candidates):
        report(done, len(candidates))
        with reporting(None):
            # The same random numbers for all: less noise in their differences.
            own = np.random.default_rng(seed)
            ahead = (len(candidates) - 1 - done) * work + model.work
            out.append(log_predictive(model, predictions, parts, own, ahead, counted))
    return np.stack(out)


FOLDS = 6
GRID = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_COARSE = (0.1, 0.3, 1.0, 3.0, 10.0)
_SIZES: dict[Selection, int] = {"folds": FOLDS, "split": 10}
_PARTS_SALT = 0xF01D
_THIN, _CHAINS = 2, 1
"""A fit to compare by needs fewer draws than one to report, of half the sweeps."""


def held_out(predictions: Predictions, selection: Selection) -> list[Bools]:
    """Which items are held out in each fit, (n,) each: every domain in equal parts.

    By the items' keys, so that the order of the items does not matter.
    """
    domain = domain_codes(predictions, domains_of(predictions))
    order = np.lexsort((predictions.keys, domain))
    place = np.empty(len(order), dtype=np.int64)
    start = np.searchsorted(domain[order], domain[order])
    place[order] = np.arange(len(order)) - start
    return _parts(place % _SIZES[selection], selection)


def in_parts(predictions: Predictions, selection: Selection) -> tuple[Predictions, list[Bools]]:
    """The items, and which are held out in each fit, (n,) each.

    A row that stands for several items is repeated for every part that contains some of them.
    """
    if predictions.multiplicity is None:
        return predictions, held_out(predictions, selection)
    domain, size = domain_codes(predictions, domains_of(predictions)), _SIZES[selection]
    left, counts = predictions.multiplicity.copy(), np.zeros((size, predictions.n_items))
    for d in range(int(domain.max()) + 1):
        rows_of = np.flatnonzero(domain == d)
        keys, total = predictions.keys[rows_of], predictions.size_of(rows_of)
        for part in range(size):
            share = total // size + (part < total % size)
            counts[part, rows_of] = some_items(left[rows_of], keys, share, _PARTS_SALT + part)
            left[rows_of] -= counts[part, rows_of]
    place, rows = np.nonzero(counts)
    split = predictions.take(rows).with_multiplicity(counts[place, rows])
    return split, _parts(place, selection)


def _parts(place: Ints, selection: Selection) -> list[Bools]:
    """Masks of the parts that are held out, from the part of every item."""
    return [place == part for part in range(1 if selection == "split" else FOLDS)]


def log_predictive(
    model: VoteModel,
    predictions: Predictions,
    parts: list[Bools],
    rng: np.random.Generator,
    ahead: int = 0,
    counted: Counted | None = None,
) -> Floats:
    """Log P(votes) of every item that is held out in some part, (n,); NaN of the others.

    `ahead` is as of `VoteModel.fit_each`, in addition to what is held out here.
    """
    sweeps = _sweeps(predictions) // 2
    quick = replace(model, burn_in=sweeps // 2, sweeps=sweeps, thin=_THIN, chains=_CHAINS)
    if model.shared == ALONE and _n_votes(predictions) > _FEW_VOTES:
        quick = replace(quick, inference="variational")
    out = np.full(predictions.n_items, np.nan)
    names = item_domains(predictions)
    some = [
        (part, generator)
        for part, generator in zip(parts, rng.spawn(len(parts)), strict=True)
        if part.any() and not part.all()
    ]
    if not some:
        return out
    rest = [predictions.take(np.flatnonzero(~part)) for part, _ in some]
    fits = quick.fit_each(rest, [generator for _, generator in some], ahead, counted)
    for (part, _), fitted in zip(some, fits, strict=True):
        # A domain of a single item is not there when it is held out.
        held = np.array([i for i in np.flatnonzero(part).tolist() if names[i] in fitted.domains])
        if held.size:
            out[held] = fitted.log_predictive(predictions.take(held))
    return out


def chosen_strengths(
    model: VoteModel, predictions: Predictions, rng: np.random.Generator
) -> VoteModel:
    """The model with its "held-out" concentrations those of the largest held-out likelihood.

    On a grid; its middle where there is nothing to hold out: domains of an item each.
    """
    names = [
        name
        for name in ("concentration", "top_concentration")
        if getattr(model, name, None) == "held-out"
    ]
    selection: Selection = getattr(model, "selection", "folds")
    some, parts = in_parts(predictions, selection)
    seed = int(rng.integers(2**63))
    grid = itertools.product(*[GRID if len(names) == 1 else _COARSE] * len(names))
    fixed: list[Any] = [dict(zip(names, point, strict=True)) for point in grid]
    models = [replace(model, **strengths) for strengths in fixed]
    scores = _compare(models, some, parts, seed)
    seen = ~np.isnan(scores).any(axis=0)
    if not seen.any():
        return models[len(models) // 2]
    means = np.average(scores[:, seen], axis=1, weights=some.times[seen])
    return models[int(np.argmax(means))]
