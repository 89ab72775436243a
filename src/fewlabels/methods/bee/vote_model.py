"""What every Gibbs-sampled model of votes shares: hyperparameters, the driver, the posterior."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from time import perf_counter
from typing import Any, ClassVar, Literal

import numpy as np

from fewlabels.errors import Status, UsageError
from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.kernels.hmc import effective_size, split_r_hat
from fewlabels.methods.base import (
    FittedLabelModel,
    LabelModel,
    check_count,
    check_positive,
    with_hard_votes,
)
from fewlabels.methods.bee.constraints import Constraints
from fewlabels.methods.bee.rates import LabelDraws, RateDraws, VoteRates
from fewlabels.methods.bee.table import (
    ALONE,
    DOMAINS,
    FRANCHISE,
    Rules,
    Schedule,
    VoteDraws,
    VotePrior,
)
from fewlabels.methods.votes.data import States, VoteData, by_domain, domain_texts, domains_of
from fewlabels.methods.votes.warnings import (
    INDEPENDENT,
    announce_wait,
    not_identified,
    straddling,
    told_wait,
)
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

Strength = float | Literal["learned", "held-out"]
"""A concentration: given, drawn under a Gamma(1, 1) prior, or chosen by held-out likelihood."""

CONVERGED = 1.1
"""Largest split R-hat of a run whose chains agree."""

_FEWEST = 4
"""Draws of a chain whose halves can be compared."""


@dataclass(frozen=True)
class VoteModel(LabelModel):
    """Error rates and labels from votes by Gibbs sampling; see what is built on it."""

    class_prior: float = 1.0
    error_prior: tuple[float, float] = (1.0, 10.0)
    burn_in: int = 1000
    sweeps: int = 2000
    thin: int = 10
    chains: int = 4
    labeled_at_random: bool = True
    flip: bool = True
    constraints: Constraints | None = None

    name: ClassVar[str]
    one_rate: ClassVar[bool]
    coupling: ClassVar[int] = ALONE

    def __post_init__(self) -> None:
        for name in ("sweeps", "thin", "chains"):
            check_count(name, getattr(self, name))
        if not isinstance(self.burn_in, Integral) or self.burn_in < 0:
            raise UsageError(f"`burn_in` must be a whole number, 0 or more; got {self.burn_in!r}")
        if self.sweeps < self.thin:
            raise UsageError(
                "`sweeps` must be at least `thin`, the sweeps per kept draw; got "
                f"{self.sweeps} and {self.thin}"
            )
        check_positive("class_prior", self.class_prior)
        pair = self.error_prior
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise UsageError(f"`error_prior` must be two numbers, (errors, hits); got {pair!r}")
        for value in pair:
            check_positive("error_prior", value)
        if self.constraints is not None and not isinstance(self.constraints, Constraints):
            raise UsageError(
                "`constraints` must be fewlabels.models.Constraints; got "
                f"{type(self.constraints).__name__}"
            )

    @property
    def strengths(self) -> tuple[Strength, Strength]:
        """Concentrations alpha and gamma."""
        return 1.0, 1.0

    @abstractmethod
    def rules(self) -> tuple[Rules, Rules]:
        """How to sweep while burning in, and after."""

    def with_strengths(self, predictions: Predictions, rng: np.random.Generator) -> VoteModel:
        """The same model, with every concentration that is to be chosen by the data chosen."""
        return self

    def prior(self, states: States, n_classes: int) -> VotePrior:
        """Dirichlet priors; every row of a confusion matrix errs as often as a single rate does."""
        wrong, right = self.error_prior
        if self.one_rate:
            rates = np.array([[wrong, right]], dtype=np.float64)
        else:
            rates = np.full((n_classes, n_classes), wrong / (n_classes - 1), dtype=np.float64)
            np.fill_diagonal(rates, right)
        # States that a group does not have never get an item; a Dirichlet needs them positive.
        weights = np.where(states.weights > 0, states.weights, 1.0)
        return VotePrior(weights * float(self.class_prior), rates)

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedVoteModel:
        """Run the chains on the distinct rows of votes."""
        started = perf_counter()
        (out,) = self.fit_each([predictions], [rng])
        return out.after(perf_counter() - started)

    @property
    def work(self) -> int:
        """Sweeps of all chains of a fit."""
        return self.chains * (self.burn_in + self.sweeps)

    def fit_each(
        self,
        samples: Sequence[Predictions],
        generators: Sequence[np.random.Generator],
        ahead: int = 0,
    ) -> list[FittedVoteModel]:
        """Fit to every one of some samples, as `fit` does; together that is quicker.

        `ahead` is how many sweeps of such chains follow, for who wants to know how long it takes.
        """
        # Compilers are slow to load: not before there is something to sample.
        from fewlabels.methods.bee.chains import Run, run_chains

        fits, runs = [], []
        for predictions, rng in zip(samples, generators, strict=True):
            served, _ = with_hard_votes(predictions, self.name)
            model = self.with_strengths(served, rng)
            # In the order of their names, so that the order of the items does not matter.
            domains = tuple(sorted(domains_of(served), key=str))
            states = States.of(served.n_classes, domains, self.constraints)
            data = VoteData.of(
                served, domains, states, self.constraints, labeled_at_random=self.labeled_at_random
            )
            alpha, gamma = (1.0 if isinstance(s, str) else float(s) for s in model.strengths)
            n_units = len(domains) * served.n_models
            prior = self.prior(states, served.n_classes)
            runs.append(Run(data.table, prior, n_units, (alpha, gamma), rng))
            fits.append((model, served, domains, states))
        # Concentrations that were chosen are given ones; whether others are learned is the same.
        burn_in, after = fits[0][0].rules()
        if self.constraints is not None:
            # Rules tell classes apart: a mirror image is not as likely.
            burn_in, after = burn_in._replace(flip=False), after._replace(flip=False)
        schedule = Schedule(self.burn_in, self.sweeps, self.thin, self.chains)
        return [
            FittedVoteModel(
                model=model,
                models=served.models,
                classes=tuple(map(str, served.classes)),
                domains=domains,
                states=states,
                draws=draws,
                voted=np.bincount(run.table.unit, minlength=run.n_units) > 0,
                salt=int(run.rng.integers(2**63)),
            )
            for (model, served, domains, states), run, draws in zip(
                fits,
                runs,
                run_chains(runs, after, burn_in, schedule, ahead, announce_wait),
                strict=True,
            )
        ]


def check_strength(name: str, value: Any) -> None:
    """Refuse a concentration that is neither a positive number nor a way to find one.

    Raises
    ------
    UsageError
        If so.
    """
    if isinstance(value, str):
        if value not in ("learned", "held-out"):
            raise UsageError(f"`{name}` must be a number, 'learned' or 'held-out'; got {value!r}")
    else:
        check_positive(name, value)


@dataclass(frozen=True, eq=False)
class FittedVoteModel(FittedLabelModel):
    """Draws of a model of votes, which apply to any items of the same domains.

    voted (units,) says which classifier votes in which domain of the items it was fitted on.
    """

    model: VoteModel
    models: tuple[str, ...]
    classes: tuple[str, ...]
    domains: tuple[str | None, ...]
    states: States
    draws: VoteDraws
    voted: Bools
    salt: int
    notes: tuple[str, ...] = ()

    def after(self, seconds: float) -> FittedVoteModel:
        """The same, with a note if these seconds were many for want of a compiler."""
        from fewlabels.methods.bee.compiled import IS_COMPILED

        return self if IS_COMPILED else replace(self, notes=told_wait(seconds))

    def pooled(self) -> RateDraws:
        """Draws of all chains, in turns."""
        d = self.draws
        size = d.rates.shape[0] * d.rates.shape[1]
        shares = d.shares.reshape(size, *d.shares.shape[2:]) * (self.states.weights > 0)
        shares /= shares.sum(axis=2, keepdims=True)
        return RateDraws(d.rates.reshape(size, *d.rates.shape[2:]), shares, len(self.classes))

    def _data(self, predictions: Predictions) -> VoteData:
        return VoteData.of(predictions, self.domains, self.states, self.model.constraints)

    def log_predictive(self, predictions: Predictions) -> Floats:
        """Log P(votes, evidence) of every item, the mean over the draws, (n,)."""
        data = self._data(predictions.select_models(self.models))
        return self.pooled().log_predictive(data.table)[data.of_item]

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        """Labels, error rates and class shares of these items."""
        served = predictions.select_models(self.models)
        data = self._data(served)
        draws = self.pooled()
        # Fitted in the order of their names, shown in that of the items.
        names = dict.fromkeys((*domains_of(served), *self.domains))
        order = np.array([self.domains.index(name) for name in names if name in self.domains])
        rates = VoteRates.of(served, self.domains, order, draws, self.states, data)
        voted = self.voted.reshape(len(self.domains), -1)[order]
        r_hat, effective = self._mixing(rates)
        status = Status.ASSUMPTION if r_hat <= CONVERGED else Status.NOT_CONVERGED
        if predictions.labeled.all() and status is Status.ASSUMPTION:
            status = Status.OK  # there is nothing left to assume
        return LabelPosterior(
            data.labels(draws.marginals(data.table), slice(None), draws.n_classes),
            LabelDraws(draws, data),
            predictions.keys,
            salt=self.salt,
            value_from="draws",
            vote_rates=rates,
            status=status,
            warnings=self._warnings(served, data, rates, voted, r_hat),
            diagnostics=self._diagnostics(rates, data, voted, r_hat, effective)
            | self._clusters(rates.domains, order),
        )

    def _mixing(self, rates: VoteRates) -> tuple[float, float]:
        """Largest R-hat and least effective number of draws of error rates and class shares."""
        t, c = self.draws.rates.shape[:2]
        values = np.concatenate(
            [rates.error_rates.reshape(t, c, -1), rates.shares.reshape(t, c, -1)], axis=2
        )
        if t < _FEWEST:
            return float("nan"), float("nan")
        return float(split_r_hat(values).max()), float(effective_size(values).min())

    def _diagnostics(
        self, rates: VoteRates, data: VoteData, voted: Bools, r_hat: float, effective: float
    ) -> dict[str, Any]:
        mean, share = rates.error_rates.mean(axis=0), rates.shares.mean(axis=0)
        if self.model.coupling == ALONE:
            # Where nobody lends rates, those of a classifier that does not vote are its prior.
            mean = np.where(voted, mean, np.nan)
        return {
            "error_rate": by_domain(mean, rates.domains, self.models),
            "class_share": by_domain(share, rates.domains, self.classes),
            "vote_patterns": len(data.table.items),
            "chains": self.model.chains,
            "r_hat": r_hat,
            "effective_draws": effective,
        }

    def _clusters(self, domains: Sequence[str | None], order: Ints) -> dict[str, Any]:
        """Who shares rates with whom, where the model lets them."""
        coupling = self.model.coupling
        if coupling == ALONE:
            return {}
        atom = self.draws.atom.reshape(-1, len(self.domains), len(self.models))[:, order]
        alpha, gamma = self.draws.concentration.mean(axis=(0, 1)).tolist()
        return {
            "concentration": alpha,
            **({"top_concentration": gamma} if coupling == FRANCHISE else {}),
            **summary(atom, domains, self.models, by_domain=coupling == DOMAINS),
        }

    def _warnings(
        self,
        predictions: Predictions,
        data: VoteData,
        rates: VoteRates,
        voted: Bools,
        r_hat: float,
    ) -> tuple[str, ...]:
        said = list(not_identified(predictions, data.domain, self.domains))
        doubt = straddling(rates.error_rates, voted, rates.domains)
        if doubt:
            said.append(doubt)
        if not predictions.labeled.all():
            said.append(INDEPENDENT)
        if np.isnan(r_hat):
            said.append("not-converged: too few draws to tell whether the chains agree; keep more")
        elif r_hat > CONVERGED:
            said.append(
                f"not-converged: the chains do not agree (R-hat {r_hat:.2f}, should be below "
                f"{CONVERGED}); use more sweeps, or get labels"
            )
        return (*said, *self.notes)


# --- who shares rates with whom ---------------------------------------------------------------


_MOST_NAMES = 200
"""Beyond so many names a matrix of their similarities helps nobody."""


def summary(
    atom: Ints, domains: Sequence[str | None], models: Sequence[str], *, by_domain: bool
) -> dict[str, Any]:
    """Similarities and the most probable partition.

    Parameters
    ----------
    atom
        Places (T, D, M): classifiers in domains that have the same one share their rates.
    by_domain
        Whether domains share the rates of all their classifiers, or single classifiers do.
    """
    names = domain_texts(domains)
    out: dict[str, Any] = {"clusters": float(np.mean([len(np.unique(draw)) for draw in atom]))}
    if by_domain:
        units = atom[:, :, 0]
        out["clusters"] = float(np.mean([len(np.unique(draw)) for draw in units]))
    if 1 < len(names) <= _MOST_NAMES:
        out["domain_similarity"] = _similarity(atom).tolist()
    if not by_domain and 1 < len(models) <= _MOST_NAMES:
        out["classifier_similarity"] = _similarity(atom.transpose(0, 2, 1)).tolist()
    if by_domain:
        members = names
    else:
        units = atom.reshape(len(atom), -1)
        several = len(names) > 1
        members = [f"{d}/{m}" if several else m for d in names for m in models]
    if len(members) <= _MOST_NAMES:
        blocks, share = _most_probable(units)
        out["partition"] = [[members[u] for u in np.flatnonzero(blocks == b)]
                            for b in dict.fromkeys(blocks.tolist())]  # fmt: skip
        out["partition_probability"] = share
    return out


def _similarity(atom: Ints) -> Floats:
    """Posterior probability of sharing rates between rows of (T, rows, columns), over columns."""
    rows = atom.shape[1]
    total = np.zeros((rows, rows))
    for draw in atom:
        total += (draw[:, None, :] == draw[None, :, :]).mean(axis=2)
    total /= len(atom)
    return total


def _most_probable(units: Ints) -> tuple[Ints, float]:
    """The partition that most draws (T, units) have, and how many; of equals the most central.

    Central: the least sum of squares from the posterior similarities (Dahl 2006).
    """
    named = [tuple(_renumber(draw)) for draw in units]
    count = Counter(named)
    most = max(count.values())
    best = [partition for partition, times in count.items() if times == most]
    if len(best) > 1:
        similar = _similarity(units[:, :, None])
        loss = [float((((np.array(p)[:, None] == np.array(p)) - similar) ** 2).sum()) for p in best]
        best = [best[int(np.argmin(loss))]]
    return np.array(best[0]), most / len(units)


def _renumber(draw: Ints) -> list[int]:
    """Places numbered by first appearance, so that equal partitions look equal."""
    first: dict[int, int] = {}
    return [first.setdefault(place, len(first)) for place in draw.tolist()]
