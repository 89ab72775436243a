"""BEE and its coupled variants: error rates and labels from votes alone, by Gibbs sampling.

Rates are shared by none (BEE), by domains (CBEE), by classifiers within a domain (CBCC) or over all
domains (HCBEE). They are one error rate per classifier, or its confusion matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

import numpy as np

from fewlabels.checks.arguments import chosen_from, positive, whole
from fewlabels.errors import UsageError
from fewlabels.kernels.arrays import Floats
from fewlabels.methods.base import LabelModel, with_hard_votes
from fewlabels.methods.bee.fitted import FittedVoteModel, Mixing
from fewlabels.methods.bee.table import (
    ALONE,
    DOMAINS,
    EASY_COUNTS,
    FRANCHISE,
    HARD_COUNTS,
    TABLES,
    Constraints,
    Rules,
    Schedule,
    States,
    VoteData,
    VoteDraws,
    VotePrior,
    VoteTable,
)
from fewlabels.methods.votes.data import VARIATIONAL, announce_wait, domains_of
from fewlabels.methods.votes.dependence import Counted
from fewlabels.predictions import Predictions

if TYPE_CHECKING:
    from fewlabels.methods.bee.gibbs import Run

Strength = float | Literal["learned", "held-out"]
"""A concentration: given, drawn under a Gamma(1, 1) prior, or chosen by held-out likelihood."""

Selection = Literal["folds", "split"]
SELECTIONS: tuple[Selection, ...] = ("folds", "split")
"""Ways to hold items out."""

Rates = Literal["one", "confusion"]
"""What a classifier has: an error rate, or a confusion matrix."""

Inference = Literal["auto", "gibbs", "variational"]
"""Chains, or one deterministic fit."""

MANY_VOTES = 100_000
"""With more distinct votes, "auto" is variational inference."""

MOST_VISITS = 1_000_000_000
"""Votes times sweeps that take some minutes; above it, fewer sweeps are made."""

_FEWEST_SWEEPS, _RETAINED = 50, 2**25
"""Least sweeps of a chain, and largest size of all its draws together in numbers."""

_CONCENTRATIONS = ("concentration", "top_concentration")


@dataclass(frozen=True)
class VoteModel(LabelModel):
    """Error rates and labels from votes by Gibbs sampling; see what is built on it.

    `shared` says who may share rates, `rates` what they are: one error rate per classifier, or its
    confusion matrix. A subclass sets both, and adds the parameters that sharing takes.
    """

    class_prior: float = 1.0
    error_prior: tuple[float, float] | Literal["learned"] = (1.0, 10.0)
    burn_in: int = 1000
    sweeps: int = 2000
    thin: int = 10
    chains: int = 4
    labeled_at_random: bool = True
    flip: bool = True
    constraints: Constraints | None = None
    levels: int = 1
    inference: Inference = "auto"

    name: ClassVar[str]
    shared: ClassVar[int]
    rates: ClassVar[Rates]
    samplers: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name in ("sweeps", "thin", "chains"):
            whole(name, getattr(self, name))
        whole("burn_in", self.burn_in, 0)
        if self.sweeps < self.thin:
            raise UsageError(
                "`sweeps` must be at least `thin`, the sweeps per kept draw; got "
                f"{self.sweeps} and {self.thin}"
            )
        chosen_from("inference", self.inference, get_args(Inference))
        if self.inference == "variational" and self.shared != ALONE:
            raise UsageError(
                f"`inference` 'variational' is for models that share no rates (BEE, ConfusionBEE); "
                f"{self.name!r} does: leave it out"
            )
        positive("class_prior", self.class_prior)
        pair = self.error_prior
        if pair != "learned":
            if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
                raise UsageError(
                    f"`error_prior` must be two numbers, (errors, hits), or 'learned'; got {pair!r}"
                )
            for value in pair:
                positive("error_prior", value)
        whole("levels", self.levels)
        if self.levels > 1 and (self.rates == "one" or self.shared != ALONE or self.constraints):
            raise UsageError(
                "`levels` of difficulty are for confusion-bee without constraints; leave it at 1"
            )
        if self.constraints is not None and not isinstance(self.constraints, Constraints):
            raise UsageError(
                "`constraints` must be fewlabels.models.Constraints; got "
                f"{type(self.constraints).__name__}"
            )
        for name in _CONCENTRATIONS:
            value = getattr(self, name, 1.0)
            if not isinstance(value, str):
                positive(name, value)
            elif value not in ("learned", "held-out"):
                raise UsageError(
                    f"`{name}` must be a number, 'learned' or 'held-out'; got {value!r}"
                )
        if self.shared != ALONE:
            chosen_from("selection", getattr(self, "selection", None), SELECTIONS)
            chosen_from("sampler", getattr(self, "sampler", None), self.samplers)

    @property
    def strengths(self) -> tuple[Strength, Strength]:
        """Concentrations alpha and gamma; 1 where there is none."""
        alpha, gamma = (getattr(self, name, 1.0) for name in _CONCENTRATIONS)
        return alpha, gamma

    def rules(self) -> tuple[Rules, Rules]:
        """How to sweep while burning in, and after."""
        alpha, gamma = (strength == "learned" for strength in self.strengths)
        sampler = getattr(self, "sampler", "collapsed")
        collapsed = sampler in ("collapsed", "partially collapsed")
        # Where rules tell classes apart, a mirror image is not as likely.
        flip = self.flip and self.constraints is None and self.levels == 1
        learned = self.error_prior == "learned"
        orient = flip and getattr(self, "orient", False)
        after = Rules(self.shared, flip, collapsed, False, alpha, gamma, learned, orient)
        if sampler == "collapsed then uncollapsed":
            # Burn-in integrates the rates out of the labels too.
            return after._replace(collapsed=True, collapsed_labels=True), after
        return after, after

    def with_strengths(self, predictions: Predictions, rng: np.random.Generator) -> VoteModel:
        """The same model, with every concentration that is to be chosen by the data chosen."""
        if "held-out" not in self.strengths:
            return self
        from fewlabels.methods.bee.selection import chosen_strengths

        return chosen_strengths(self, predictions, rng)

    def prior(self, states: States, n_classes: int) -> VotePrior:
        """Dirichlet priors; every row of a confusion matrix errs as often as a single rate does."""
        wrong, right = EASY_COUNTS if isinstance(self.error_prior, str) else self.error_prior
        if self.rates == "one":
            rates = np.array([[wrong, right]], dtype=np.float64)
        else:
            same = np.eye(n_classes)
            rates = np.concatenate(
                [
                    (1 - same) * errors / (n_classes - 1) + same * hits
                    for errors, hits in [(wrong, right), *[HARD_COUNTS] * (self.levels - 1)]
                ]
            )
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
        counted: Counted | None = None,
    ) -> list[FittedVoteModel]:
        """Fit to each of several samples, as `fit` does; together is faster.

        `ahead` further sweeps of such chains will follow, for the estimate of the time; `counted`
        says how much the votes of classifiers that share mistakes count.
        """
        # Compilers are slow to load: not before there is something to sample.
        from fewlabels.methods.bee.gibbs import Run, run_chains

        fits: list[tuple[Predictions, tuple[str | None, ...], States, Floats | None]] = []
        runs: list[Run] = []
        for predictions, rng in zip(samples, generators, strict=True):
            served = with_hard_votes(predictions, self.name)
            model = self.with_strengths(served, rng)
            # In the order of their names, so that the order of the items does not matter.
            domains = tuple(sorted(domains_of(served), key=str))
            states = States.of(served.n_classes, domains, self.constraints, self.levels)
            weights = None if counted is None else counted.of(domains, served.models)
            data = VoteData.of(
                served, domains, states, self.constraints,
                labeled_at_random=self.labeled_at_random, counted=weights,
            )  # fmt: skip
            alpha, gamma = (1.0 if isinstance(s, str) else float(s) for s in model.strengths)
            n_units = len(domains) * served.n_models
            prior = self.prior(states, served.n_classes)
            runs.append(Run(data.table, prior, n_units, (alpha, gamma), rng))
            fits.append((served, domains, states, weights))
        # Concentrations that were chosen are given ones; whether others are learned is the same.
        burn_in, after = self.rules()
        cast = [_votes(run.table, run.n_units) for run in runs]
        votes = max(len(run.table.vote) for run in runs)
        schedule, notes = self.schedule(votes, max(r.n_units * r.prior.rates.size for r in runs))

        def accept(place: int, draws: VoteDraws) -> bool:
            return not Mixing.of(draws, fits[place][2], cast[place]).wants_more

        many = self.inference == "auto" and self.shared == ALONE and votes > MANY_VOTES
        if many or self.inference == "variational":
            every, notes = self._variational(runs, votes)
        else:
            judge = accept if self.chains > 1 and not notes else None
            every = run_chains(runs, after, burn_in, schedule, ahead, announce_wait, judge)
        return [
            FittedVoteModel(
                constraints=self.constraints,
                coupling=self.shared,
                models=served.models,
                classes=tuple(map(str, served.classes)),
                domains=domains,
                states=states,
                draws=draws,
                votes=votes_cast,
                salt=int(run.rng.integers(2**63)),
                counted=weights,
                notes=notes,
            )
            for (served, domains, states, weights), run, votes_cast, draws in zip(
                fits, runs, cast, every, strict=True
            )
        ]

    def schedule(self, votes: int, cells: int) -> tuple[Schedule, tuple[str, ...]]:
        """Sweeps for so many distinct votes and rates, and a note if they are fewer than asked."""
        burn_in, sweeps, thin = self.burn_in, self.sweeps, self.thin
        share = MOST_VISITS / max(votes * self.work, 1)
        notes: tuple[str, ...] = ()
        if share < 1 and self.inference == "auto":
            burn_in, sweeps = (
                min(max(int(n * share), _FEWEST_SWEEPS), n) for n in (burn_in, sweeps)
            )
            thin = min(max(sweeps // 50, 1), thin)
            notes = (
                f"{votes:,} votes are sampled in {burn_in:,} + {sweeps:,} sweeps of each of "
                f"{self.chains} chains, of {self.burn_in:,} + {self.sweeps:,}: more would take "
                "long; `effective_draws` says what they are worth, inference='gibbs' takes all",
            )
        # Draws of the rates of thousands of annotators are large.
        size = max(_RETAINED // max(cells * self.chains, 1), 10)
        thin = max(thin, -(-sweeps // size))
        return Schedule(burn_in, sweeps, thin, self.chains), notes

    def _variational(
        self, runs: Sequence[Run], votes: int
    ) -> tuple[list[VoteDraws], tuple[str, ...]]:
        """Draws around a variational fit to each, and what to say of them."""
        from fewlabels.methods.bee.variational import draw_variational, fit_variational, n_draws

        every, notes = [], list[str]()
        most = self.chains * self.sweeps // self.thin
        for run in runs:
            fit, prior = fit_variational(
                run.table, run.prior, run.n_units, learned=self.error_prior == "learned"
            )
            size = n_draws(fit.cells.size, len(run.table.vote), most)
            every.append(draw_variational(fit, run.table, prior, size, run.rng))
            if not fit.em.converged:
                notes.append(
                    f"not-converged: after {fit.em.iterations} variational steps P(label) still "
                    f"changes by {fit.em.change:.2g} on average"
                )
        why = f" for {votes:,} votes" if self.inference == "auto" else ""
        return every, tuple(dict.fromkeys([*notes, VARIATIONAL.format(why)]))


def _votes(table: VoteTable, n_units: int) -> Floats:
    """Votes of every unit, (units,)."""
    items = np.repeat(table.items, np.diff(table.start))
    return np.bincount(table.unit, table.times * items, n_units).astype(np.float64)


@dataclass(frozen=True)
class BEE(VoteModel):
    """p ~ Beta, label ~ Bernoulli(p), error e_j ~ Beta(1, 10), vote_j = label with P 1 - e_j.

    Every domain by itself, by conjugate Gibbs sampling. More than two classes: one error rate per
    classifier, a wrong vote is any other class with equal probability. Source: Platanios, Dubey,
    Mitchell (2016), section 4.1, equations 3 to 5.

    Parameters
    ----------
    class_prior
        Count of every class in the Dirichlet (two classes: Beta) prior of the class shares.
    error_prior
        Counts (alpha_e, beta_e) of errors and hits in the Beta prior of an error rate. The paper's
        (1, 10) expects classifiers to be good; it weighs as much as eleven labels. "learned": drawn
        with the rates, for every row of the rates by itself (`draw_rates_prior`).
    burn_in, sweeps, thin, chains
        Sweeps of each chain before the first draw, sweeps after it, sweeps per kept draw, and
        chains. Where the chains do not agree after `sweeps`, they go on up to four times as long,
        with as many draws kept. The paper: one chain, 4000, 2000, 10.
    labeled_at_random
        Whether known labels are of a random sample of the items; else they are left out of the
        class shares.
    flip
        Whether classes may trade names where that is as likely, which takes a chain out of the
        mirror image of the answer.
    constraints
        Logic between the labels of one item in several domains.
    levels
        2: an item is an easy or a hard one, and a classifier has a confusion matrix for each
        (confusion-bee alone).
    inference
        "gibbs": the chains above. "variational": a mean-field fit and draws around it, for
        millions of votes. "auto": chains, of fewer sweeps where votes times sweeps are many, and
        variational beyond 100,000 distinct votes; warnings say so.
    """

    name = "bee"
    shared = ALONE
    rates: ClassVar[Rates] = "one"


@dataclass(frozen=True)
class ConfusionBEE(BEE):
    """BEE with a confusion matrix per classifier: row k ~ Dirichlet, its error rate Beta(1, 10).

    Every class is missed at its own rate, and mistaken for each other class at its own rate.
    Parameters are those of `BEE`. Source: Platanios, Dubey, Mitchell (2016), section 6 (future
    work); Kim, Ghahramani (2012).
    """

    name = "confusion-bee"
    rates = "confusion"


@dataclass(frozen=True)
class CoupledVoteModel(VoteModel):
    """A model of votes with a concentration alpha; see `CBEE` for the parameters."""

    concentration: Strength = 1.0
    selection: Selection = "folds"
    sampler: str = "collapsed"

    rates: ClassVar[Rates] = "one"
    samplers: ClassVar[tuple[str, ...]] = ("collapsed", "uncollapsed", "collapsed then uncollapsed")


@dataclass(frozen=True)
class CBEE(CoupledVoteModel):
    """BEE whose domains are clustered by a Dirichlet process: e^d = phi_{z_d}, z ~ CRP(alpha).

    Domains in one cluster share the error rates of all their classifiers. Source: Platanios,
    Dubey, Mitchell (2016), section 4.2. Parameters beyond these are those of `BEE`.

    Parameters
    ----------
    concentration
        alpha: a number, "learned" (Gamma(1, 1) prior, Escobar and West 1995), or "held-out":
        chosen on a grid by held-out likelihood.
    selection
        For "held-out": "folds" (cross-validation) or "split" (one split, a tenth held out: the
        paper's, and noisy).
    sampler
        "partially collapsed": clusters with the rates integrated out, then rates, then labels;
        "uncollapsed": clusters under current rates (Neal 2000, algorithm 2); "collapsed then
        uncollapsed": burn-in with the rates integrated out of labels too, as in the paper.
    """

    sampler: Literal["partially collapsed", "uncollapsed", "collapsed then uncollapsed"] = (
        "partially collapsed"
    )

    name = "cbee"
    shared = DOMAINS
    samplers = ("partially collapsed", "uncollapsed", "collapsed then uncollapsed")


@dataclass(frozen=True)
class ConfusionCBEE(CBEE):
    """CBEE with confusion matrices: domains in one cluster share those of all their classifiers.

    Parameters are those of `CBEE`. Source: Platanios, Dubey, Mitchell (2016), sections 4.2, 6.
    """

    name = "confusion-cbee"
    rates = "confusion"


@dataclass(frozen=True)
class CBCC(CoupledVoteModel):
    """BEE whose classifiers are clustered within every domain by itself, by CRP(alpha).

    Clustered Bayesian classifier combination (Moreno, Teh, Perez-Cruz, Artes-Rodriguez 2015) with
    one error rate per cluster, as Platanios, Dubey, Mitchell (2016) adapt it; theirs is with
    `orient=False`, not the default. Parameters beyond these are those of `BEE`.

    Parameters
    ----------
    concentration, selection
        As in `CBEE`.
    sampler
        "collapsed": clusters with the rates integrated out; "uncollapsed": under current rates;
        "collapsed then uncollapsed": burn-in with the rates integrated out of labels too, as in
        the paper.
    orient
        Whether it is decided for every draw which of two classes is which, in domains without
        labels, by a prior that counts each classifier: a bad one then cannot outweigh several good
        ones that share a rate (`gibbs.orient`). false: the paper's posterior.
    """

    sampler: Literal["collapsed", "uncollapsed", "collapsed then uncollapsed"] = "collapsed"
    orient: bool = True

    name = "cbcc"
    shared = TABLES


@dataclass(frozen=True)
class HCBEE(CBCC):
    """BEE with a hierarchical Dirichlet process over error rates (Chinese restaurant franchise).

    In every domain classifiers share tables, CRP(alpha); tables of all domains share dishes,
    CRP(gamma): error rates. Source: Platanios, Dubey, Mitchell (2016), section 4.3 and figure 3;
    Teh, Jordan, Beal, Blei (2006). Its posterior is theirs with `orient=False`, which is not the
    default. Parameters beyond these are those of `CBCC`.

    Parameters
    ----------
    top_concentration
        gamma: a number, "learned" or "held-out", as `concentration` is.
    """

    top_concentration: Strength = 1.0

    name = "hcbee"
    shared = FRANCHISE


@dataclass(frozen=True)
class ConfusionHCBEE(HCBEE):
    """HCBEE with confusion matrices as dishes.

    Parameters are those of `HCBEE`. Source: Platanios, Dubey, Mitchell (2016), sections 4.3, 6.
    """

    name = "confusion-hcbee"
    rates = "confusion"
