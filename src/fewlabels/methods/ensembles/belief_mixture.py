"""The model of the ensembles: a mixture of beliefs about classifiers, weighed by labels.

A belief is a Gaussian prior of the coefficients of

P(y = k | s_i) = softmax_k(a_k + (b + c_k) f_ik + h g_ik + sum_j w_j d_ijk + sum_j v_j e_ijk)

with f an index: between the linear and the log pool of the classifiers (g is half their gap,
kernels/simplex.py), one classifier alone, the pool without it, a latent class learned without
labels, or a map learned from reference items. d_j is the deviation of classifier j, and e_j its
vote. Every belief is fitted to the labels by Newton's method; its posterior weight is its prior
weight times its evidence (Laplace).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from fewlabels.checks.arguments import refuse_beyond_memory
from fewlabels.errors import InputError
from fewlabels.kernels.arrays import Bools, Floats, Ints, UInts
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.importance import systematic
from fewlabels.kernels.multinomial import Mode, fit_maps, log_posterior
from fewlabels.kernels.simplex import Pool, calibrated_pool, softmax
from fewlabels.kernels.votes import has_evidence
from fewlabels.methods.base import FittedLabelModel, status_of, with_probabilities
from fewlabels.methods.ensembles.informants import Informants, PoolMaker
from fewlabels.methods.ensembles.pooled_index import Feature, PooledIndex, PoolName, ReferenceMap
from fewlabels.methods.voices import copies, voices
from fewlabels.posterior import LabelPosterior, ParameterDraws
from fewlabels.predictions import Predictions

WEIGHED_ITEMS, WEIGHED_CELLS = 2_000, 2**19
"""Limits of labels, and of labels times classes, by which beliefs are weighed; those of positive
weight are then fitted to all."""

MOST_LEADERS = 20
"""With more classifiers, only those with most predictions have an index of their own."""

MOST_EACH = 50
"""With more classifiers, only those with most predictions have a coefficient of their own."""

MOST_OFFSETS = 300
"""With more classes, none has coefficients of its own: their cost is the cube of the classes, and
each has too few labels to estimate them (docs/scaling.md)."""

POOL_ITEMS, POOL_CELLS = 20_000, 2**23
"""Items, and probabilities, from which constants of pools, maps and latent classes are found."""

CLASS_DRAWS, LEAST_DRAWS = 20_000, 20
"""Parameter draws times classes: with more than a hundred classes there are fewer draws, as each
costs its share, and the many classes of an item average out the noise of a draw."""

OF_JUDGED = 2 / 3
"""Share of a belief about one classifier, whichever it is, that is about the one that is judged."""

HELD_FEATURES = 2**25
"""Features that are kept in memory; more are computed block by block."""

SKEWED_UP_TO, CANDIDATES = 500, 8
"""With at most so many labels, each draw is chosen among so many candidates."""

_NEVER_DRAWN = 1e-5


IndexName = Literal[
    "raw",
    "calibrated",
    "latent",
    "votes",
    "own",
    "tempered",
    "rank",
    "without",
    "beside",
    "ranks",
    "reference",
    "ordinal",
    "near",
]
_LEADERS = ("own", "tempered", "rank", "without", "beside")


class Belief(NamedTuple):
    """One prior: its weight, mean and sd of the slope b, and sds of all else (0: left out).

    Slope and its sd are multiples of the agreement slope where `anchored`. The sds of offsets
    are those of a difference between two classes; those of deviations and votes, of their sum
    over the classifiers. A belief about one classifier ("own", "tempered", "rank", "without",
    "beside") stands for as many as there are classifiers; each has most of the weight where that
    classifier is judged, and a share of the rest where others are. "beside" is the calibrated pool,
    with a deviation and a vote of that classifier alone. `grade_sd` is of the grade and its square
    (judges are lenient, or avoid the ends), `distance_sd` of the distance (errors far off).
    """

    weight: float
    pool: IndexName
    anchored: bool
    slope: float
    slope_sd: float
    offset_sd: float
    gap_sd: float = 0.0
    deviation_sd: float = 0.0
    vote_sd: float = 0.0
    class_slope_sd: float = 0.0
    grade_sd: float = 0.0
    distance_sd: float = 0.0


# --- coefficients ---------------------------------------------------------------------------


class _Term(NamedTuple):
    """A coefficient: its feature, mean and sd; one for every class where `by_class`."""

    feature: Feature
    mean: float
    sd: float
    by_class: bool = False


class _Member(NamedTuple):
    """A belief about one index: its coefficients, and which classifier it is about."""

    belief: int
    basis: Feature
    offset_sd: float
    terms: tuple[_Term, ...]
    about: str = ""


def _members(
    beliefs: Sequence[Belief], index: PooledIndex, coverage: Floats, n_classes: int
) -> list[_Member]:
    """The members of the mixture; coverage (M,) counts each classifier's items with predictions."""
    order = np.argsort(-coverage, kind="stable")
    leaders = [index.models[j] for j in np.sort(order[:MOST_LEADERS])]
    each = [index.models[j] for j in np.sort(order[:MOST_EACH])]
    share = 1 / np.sqrt(len(index.models))
    out = []
    if n_classes > MOST_OFFSETS:
        beliefs = [b._replace(offset_sd=0.0, class_slope_sd=0.0) for b in beliefs]
    for number, belief in enumerate(beliefs):
        kind, k = belief.pool, index.informants
        if kind in _LEADERS:
            leading = leaders if kind != "without" or len(index.models) > 2 else []
            indices = [Feature(kind, model) for model in leading]
        elif kind in ("raw", "calibrated"):
            indices = [Feature("pool", kind)]
        else:
            there = {
                "latent": k.latent is not None,
                "votes": k.voted is not None,
                "ranks": any(kind != "vote" for kind in k.kinds) and len(k.models) > 1,
                "reference": index.reference is not None,
                "ordinal": k.ordered,
                "near": k.grades is not None,
            }
            indices = [Feature(kind)] if there[kind] else []
        for feature in indices:
            about = feature.of if kind in _LEADERS else ""
            beside = kind == "beside"
            if beside:
                feature = Feature("pool", "calibrated")
            pool: PoolName = "calibrated" if kind in ("calibrated", "without", "beside") else "raw"
            anchor = index.anchors[pool] if belief.anchored else 1.0
            ratio = index.ratios[kind] if kind in ("raw", "calibrated") else 1.0
            terms = [_Term(feature, belief.slope * anchor, belief.slope_sd * anchor)]
            if belief.gap_sd:
                terms.append(_Term(Feature("gap", kind), 0.0, belief.gap_sd))
            if belief.grade_sd:
                grades = Feature("grade", "linear"), Feature("grade", "square")
                terms += [_Term(grade, 0.0, belief.grade_sd) for grade in grades]
            if belief.distance_sd:
                terms.append(_Term(Feature("distance"), 0.0, belief.distance_sd))
            if belief.class_slope_sd:
                terms.append(_Term(feature, 0.0, belief.class_slope_sd, by_class=True))
            sizes = {"deviation": belief.deviation_sd * ratio, "vote": belief.vote_sd}
            terms += [
                _Term(Feature(name, model), 0.0, sd * (1.0 if beside else share))
                for name, sd in sizes.items()
                if sd > 0
                for model in ([about] if beside else each)
            ]
            out.append(_Member(number, feature, belief.offset_sd, tuple(terms), about))
    return out


class _Columns:
    """Where coefficients stand: offsets (K), one for every feature, K for those by class."""

    def __init__(self, n_classes: int, members: Sequence[_Member]) -> None:
        self.n_classes = n_classes
        terms = [term for member in members for term in member.terms]
        self.features = tuple(dict.fromkeys(term.feature for term in terms))
        self.by_class = tuple(dict.fromkeys(t.feature for t in terms if t.by_class))
        start = n_classes
        self.all_features = (*self.features, Feature("constant"))
        self._of_feature = {f: start + place for place, f in enumerate(self.features)}
        start += len(self.features)
        self._by_class = {f: start + n_classes * place for place, f in enumerate(self.by_class)}
        self.width = start + n_classes * len(self.by_class)

    def of(self, term: _Term) -> list[int]:
        """The columns of a term."""
        if term.by_class:
            return [self._by_class[term.feature] + c for c in range(self.n_classes)]
        return [self._of_feature[term.feature]]

    def prior(self, member: _Member) -> _Prior:
        """The coefficients of a member: of what, where they stand, their means and sds."""
        k, every = self.n_classes, [t for t in member.terms if t.sd > 0]
        by_class = [len(self.features)] if member.offset_sd > 0 else []
        columns = list(range(k)) if member.offset_sd > 0 else []
        terms = [-1] * len(columns)
        means, sds = [0.0] * len(columns), [member.offset_sd / np.sqrt(2)] * len(columns)
        for place, term in sorted(enumerate(every), key=lambda t: not t[1].by_class):
            places = self.of(term)
            columns += places
            means += [term.mean] * len(places)
            sds += [term.sd] * len(places)
            terms += [place] * len(places)
        by_class += [self._of_feature[t.feature] - k for t in every if t.by_class]
        single = [self._of_feature[t.feature] - k for t in every if not t.by_class]
        return _Prior(
            np.array(by_class, dtype=np.int64),
            np.array(single, dtype=np.int64),
            np.array(columns),
            np.argsort(terms, kind="stable"),
            np.array(means),
            np.array(sds) ** -2.0,
        )

    def by_feature(self, beta: Floats) -> tuple[Floats, Floats]:
        """Of coefficients (width, D): offsets (K, D), and those of every feature, (K, F, D)."""
        k, count = self.n_classes, len(self.features)
        slopes = np.repeat(beta[None, k : k + count], k, axis=0)
        for feature, start in self._by_class.items():
            slopes[:, self.features.index(feature)] += beta[start : start + k]
        return beta[:k], slopes

    def used(self, beta: Floats) -> tuple[Feature, ...]:
        """Features with a coefficient other than 0 in some draw, beta (D, width)."""
        _, slopes = self.by_feature(beta.T)
        some = (slopes != 0).any(axis=(0, 2))
        return tuple(f for f, s in zip(self.features, some, strict=True) if s)


class _Prior(NamedTuple):
    """A member's coefficients: of features by class (c,) and others (p,), (c K + p,) in all.

    The constant is a further feature, whose coefficients by class are the offsets. `columns` are
    the positions of the coefficients, those by class first, with their means and precisions;
    `order` is that of the member's terms, in which they are drawn.
    """

    by_class: Ints
    features: Ints
    columns: Ints
    order: Ints
    mean: Floats
    precision: Floats


class _Fit(NamedTuple):
    """A member's prior, and its posterior mode."""

    prior: _Prior
    mode: Mode


# --- the fitted model -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FittedBeliefs(FittedLabelModel):
    """Draws of the coefficients for values and for intervals, and how they came about."""

    method: str
    index: PooledIndex
    columns: _Columns
    draws: Floats
    interval_draws: Floats
    salt: int
    diagnostics: Mapping[str, Any]
    converged: bool
    n_labels: float
    inflation: float
    assumption: str
    shares: Mapping[str, tuple[Floats, Floats]]

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        """Posterior of the labels of any items of the same classifiers."""
        served = predictions.select_models(self.index.models)
        if served.probabilities is None and not self.index.informants.every_kind:
            raise InputError(
                f"method {self.method!r} needs class probabilities, and these items have none"
            )
        used = self.columns.used(np.concatenate([self.draws, self.interval_draws]))
        design = _Design(self.index, served, self.columns, used)
        parameters, of_intervals = (
            _Draws(design, predictions.evidence, draws)
            for draws in (self.draws, self.interval_draws)
        )
        return LabelPosterior(
            None,
            parameters,
            predictions.keys,
            salt=self.salt,
            interval_parameters=of_intervals,
            inflation=self.inflation,
            status=status_of(self._warnings()),
            warnings=self._warnings(),
            diagnostics=self.diagnostics,
            shares=self.shares,
        )

    def _warnings(self) -> tuple[str, ...]:
        if not self.converged:
            return ("not-converged: Newton's method did not reach the posterior mode",)
        if not self.n_labels:
            return (f"assumption: no labels; the estimates rest on {self.assumption}",)
        weight = self.diagnostics.get("reference", {}).get("weight", 1.0)
        if weight < _CONTRADICTED:
            return (
                f"the labels contradict the reference (its weight is {weight:.1g} now), and the "
                "estimates rest on the labels: either what the classifiers say means something "
                "else for these items, or the labels are no random sample of them (fewlabels shift "
                "FILE tests that)",
            )
        return ()


def fit_beliefs(
    method: str,
    beliefs: Sequence[Belief],
    interval_weights: Sequence[float],
    n_draws: int,
    predictions: Predictions,
    rng: np.random.Generator,
    *,
    assumption: str,
    inflation: float = 1.0,
    copies_agree: bool = True,
    every_kind: bool = False,
    reference: Predictions | None = None,
) -> FittedBeliefs:
    """Fit every belief to the labels, weigh them, and draw coefficients.

    Intervals take twice as many draws, by `interval_weights`, and are wider about the estimate by
    the `inflation`. `assumption` says in words what estimates rest on without any label.
    `copies_agree`: classifiers that vote alike on every item count as agreeing; `every_kind`: those
    that give scores or votes are learned from as well. `reference` holds labeled items of the same
    classifiers from elsewhere.
    """
    ground = _Evidence.of(method, beliefs, predictions, copies_agree, every_kind, reference)
    most = min(WEIGHED_ITEMS, max(WEIGHED_CELLS // predictions.n_classes, 1))
    few: Ints | None = None
    if len(ground.keys) > most:  # some of the labels, chosen by the items' identity
        few = np.sort(np.argsort(ground.keys, kind="stable")[:most])
    fits = ground.fit(ground.members, few)
    log_evidence = np.array([fit.mode.log_evidence for fit in fits])
    priors = np.array([[b.weight for b in beliefs], interval_weights])
    salt = int(rng.integers(2**63))
    (weights, of_intervals), each = ground.weights(priors, log_evidence)
    fewer = min(n_draws, max(CLASS_DRAWS // predictions.n_classes, LEAST_DRAWS))
    never, n_draws = _NEVER_DRAWN if fewer == n_draws else 0.05 / fewer, fewer
    drawn = np.flatnonzero(np.maximum(weights, of_intervals) > never)
    if few is not None:
        for place, fit in zip(drawn, ground.fit([ground.members[d] for d in drawn]), strict=True):
            fits[place] = fit
    draws, whose = ground.draw(fits, weights, n_draws, rng)
    interval_draws, whose_interval = ground.draw(fits, of_intervals, 2 * n_draws, rng)
    twins = copies(predictions)
    shares = {
        model: (
            own[0][whose] / weights[whose],
            own[1][whose_interval] / of_intervals[whose_interval],
        )
        for model in predictions.models
        for own in [each.get(twins.get(model, model))]
        if own is not None
    }
    return FittedBeliefs(
        method=method,
        index=ground.index,
        columns=ground.columns,
        draws=draws,
        interval_draws=interval_draws,
        salt=salt,
        diagnostics=_diagnostics(ground, beliefs, weights, draws, whose),
        converged=all(fit.mode.converged for fit in fits),
        n_labels=ground.n_labels,
        inflation=inflation,
        assumption=assumption,
        shares=shares,
    )


# --- what the answer rests on ---------------------------------------------------------------


def _diagnostics(
    ground: _Evidence, beliefs: Sequence[Belief], weights: Floats, draws: Floats, whose: Ints
) -> dict[str, Any]:
    by_belief = np.zeros(len(beliefs))
    np.add.at(by_belief, [m.belief for m in ground.members], weights)
    slopes = [
        draw[ground.columns.of(ground.members[w].terms[0])[0]]
        for draw, w in zip(draws, whose, strict=True)
        if ground.members[w].basis.kind == "pool"
    ]
    out: dict[str, Any] = {
        "slope": float(np.mean(slopes)) if slopes else float("nan"),
        "slope_sd": float(np.std(slopes)) if slopes else float("nan"),
        "log_pool_scale": ground.index.pools["raw"].log_scale,
        "component_weights": by_belief.tolist(),
        "parameter_draws": len(draws),
    }
    if "calibrated" in ground.index.pools:
        out |= {"agreement": ground.index.agreement, "anchor": ground.index.anchors["raw"]}
    shares: dict[str, float] = {}
    for member, weight in zip(ground.members, weights, strict=True):
        kind, model = member.basis[:2]
        name = _ANSWERS.get(kind) or (f"all but {model}" if kind == "without" else f"{model} alone")
        shares[name] = shares.get(name, 0.0) + float(weight)
    if ground.index.informants.every_kind:
        says = "before any label, {} has a weight of {:.0%}"
        if ground.n_labels:
            says = "the labels give {} a weight of {:.0%}"
        out["answered_by"] = [
            {"member": name, "share": share, "says": says.format(name, share)}
            for name, share in sorted(shares.items(), key=lambda item: -item[1])
            if share >= _LEAST_SAID
        ]
    if ground.index.reference is not None:
        out["reference"] = {"weight": shares.get(_ANSWERS["reference"], 0.0)}
    return out


_ANSWERS = {
    "pool": "all classifiers pooled",
    "latent": "what the classifiers' scores share",
    "votes": "what the classifiers' votes agree on",
    "ranks": "all classifiers' ranks pooled",
    "reference": "the reference",
    "ordinal": "how near the grades are",
    "near": "how near the grades are",
}

_LEAST_SAID = 0.005
_CONTRADICTED = 0.01
"""Weight of a reference below which the labels are a hundred times likelier without it."""


# --- what beliefs are fitted to -------------------------------------------------------------


def _worth(predictions: Predictions, rows: Ints) -> float:
    """Effective labels of the rows with evidence; rows that share an item's weight are one.

    Rows without evidence count 0, rows weighted up at most 1, and rows of a cluster by their
    effective number.
    """
    weight, power = predictions.weight * _spoken_of(predictions), predictions.information[rows]
    others = np.delete(weight, rows)
    usual = others[others > 0].mean() if (others > 0).any() else weight.max(initial=0.0)
    count = float(power[weight[rows] > 0].sum())
    return min(count, float((power * weight[rows]).sum()) / usual) if count else 0.0


def _last_kept(make: PoolMaker) -> PoolMaker:
    """The same function, which keeps its last pool of logs."""
    last: list[tuple[Floats, Pool]] = []

    def pool(c: Floats) -> Pool:
        if not last or not np.array_equal(last[0][0], c, equal_nan=True):
            last[:] = [(c, make(c))]
        return last[0][1]

    return pool


@dataclass(frozen=True, eq=False)
class _Evidence:
    """What members are fitted to: evidence (n, K) of some rows of the items, and their features.

    The likelihood of a row counts to a power (n,) (`Predictions.information`).
    """

    index: PooledIndex
    members: list[_Member]
    columns: _Columns
    items: Predictions
    rows: Ints
    evidence: Floats
    power: Floats
    keys: UInts
    n_labels: float

    @staticmethod
    def of(
        method: str, beliefs: Sequence[Belief], predictions: Predictions, copies_agree: bool,
        every_kind: bool, reference: Predictions | None = None,
    ) -> _Evidence:  # fmt: skip
        served = predictions if every_kind else with_probabilities(predictions, method)[0]
        if every_kind:
            served = served.select_models(voices(served))
            reference = None if reference is None else reference.select_models(served.models)
        some = served
        most = max(POOL_CELLS // (served.n_models * served.n_classes), 1)
        if served.n_items > min(POOL_ITEMS, most):
            # Of those of which anything is said, whatever their order.
            spoken_of = np.flatnonzero(_spoken_of(served))
            order = np.argsort(served.keys[spoken_of], kind="stable")
            some = served.take(spoken_of[order[: min(POOL_ITEMS, most)]])
        # Found once where the latent classes start from the same logs (all give probabilities).
        pooled = _last_kept(calibrated_pool)
        informants = Informants.of(some, every_kind=every_kind, pooled=pooled)
        inputs = informants.said(some)
        names = tuple(dict.fromkeys(b.pool for b in beliefs if b.pool in ("raw", "calibrated")))
        if every_kind:
            names = ("raw", "calibrated")
        index = PooledIndex.of(
            informants,
            inputs,
            names,
            copies_agree=copies_agree,
            reference=None if reference is None else ReferenceMap.of(reference),
            pooled=pooled,
        )
        coverage = (~np.isnan(inputs.probabilities[:, :, 0])).sum(axis=0)
        members = _members(beliefs, index, coverage, served.n_classes)
        columns = _Columns(served.n_classes, members)
        evidence = served.evidence
        rows = np.flatnonzero(has_evidence(evidence))
        # Features of the labels, and Hessians of two members.
        k, n_features = served.n_classes, len(columns.features)
        refuse_beyond_memory(
            8.0 * (len(rows) * k * n_features + 2 * 6 * k**2),
            f"fitting {method!r} to {len(rows):,} labels of {k:,} classes",
            "give it fewer labels or classes, or take --method labeled",
        )
        return _Evidence(
            index,
            members,
            columns,
            served,
            rows,
            evidence[rows],
            served.information[rows],
            served.keys[rows],
            _worth(served, rows),
        )

    def weights(self, priors: Floats, log_evidence: Floats) -> tuple[Floats, Mapping[str, Floats]]:
        """Posterior weights of the members (P, m) under priors (P, B) of the beliefs, and by model.

        A question about one classifier has weights of its own: a belief about one classifier has
        `OF_JUDGED` of its weight for this one there, and the others share the rest. Where there
        are such beliefs, the weights of all are the mean.
        """
        belief = np.array([member.belief for member in self.members])
        about = np.array([member.about for member in self.members])
        models = [model for model in dict.fromkeys(about) if model]

        def posterior(model: str) -> Floats:
            of_one = np.where(about == model, OF_JUDGED, (1 - OF_JUDGED) / max(len(models) - 1, 1))
            some = np.where((about == "") | (len(models) < 2), 1.0, of_one)
            with np.errstate(divide="ignore"):
                return softmax(np.log(priors[:, belief] * some) + log_evidence)

        each = {model: posterior(model) for model in models}
        return np.mean([*each.values()], axis=0) if each else posterior(""), each

    def _features(self, priors: Sequence[_Prior], rows: Ints | slice) -> tuple[Floats, Ints]:
        """Features of the labels that some members need, (n, K, f), and which is where, (F,)."""
        n, k = self.evidence.shape
        every = self.columns.all_features
        needed = np.arange(len(every))
        if n * k * len(every) <= HELD_FEATURES:
            return self._every_feature[rows], needed
        for_some = np.unique(np.concatenate([[*p.features, *p.by_class] for p in priors]))
        needed[for_some.astype(np.int64)] = np.arange(len(for_some))
        wanted = [every[int(place)] for place in for_some]
        return self.index.matrix(self.items, wanted, self.rows[rows]), needed

    @cached_property
    def _every_feature(self) -> Floats:
        return self.index.matrix(self.items, self.columns.all_features, self.rows)

    def fit(self, members: Sequence[_Member], rows: Ints | None = None) -> list[_Fit]:
        """Modes of members given all labels, or some."""
        priors = [self.columns.prior(member) for member in members]
        some = slice(None) if rows is None else rows
        features, at = self._features(priors, some)
        evidence, power = self.evidence[some], self.power[some]
        fits: dict[int, _Fit] = {}
        sizes = [(len(prior.by_class), len(prior.features)) for prior in priors]
        for size in dict.fromkeys(sizes):
            alike = [place for place, shape in enumerate(sizes) if shape == size]
            by_class, columns, means, precisions = (
                np.stack([getattr(priors[a], name) for a in alike])
                for name in ("by_class", "features", "mean", "precision")
            )
            arrays = (features, evidence, at[columns], at[by_class], means, precisions)
            modes = fit_maps(*arrays, power=power)
            for place, mode in zip(alike, modes, strict=True):
                fits[place] = _Fit(priors[place], mode)
        return [fits[place] for place in range(len(members))]

    def draw(
        self, fits: Sequence[_Fit], weights: Floats, size: int, rng: np.random.Generator
    ) -> tuple[Floats, Ints]:
        """Coefficient draws (size, width) of the mixture, and whose; 0 is what is left out."""
        chosen = systematic(weights, size, rng)
        out = np.zeros((size, self.columns.width))
        for number in np.unique(chosen):
            rows = np.flatnonzero(chosen == number)
            out[np.ix_(rows, fits[number].prior.columns)] = self._of_member(
                fits[number], len(rows), rng
            )
        order = rng.permutation(size)
        return out[order], chosen[order]

    def _of_member(self, fit: _Fit, size: int, rng: np.random.Generator) -> Floats:
        """Draws (size, p) from the posterior of one member.

        The normal at the mode misses how skewed the posterior is with few labels. Of more such
        draws than are needed, those are kept that posterior over normal density favours. Ensembles
        of probabilities alone are defined with the normal, and keep it.
        """
        skewed = self.index.informants.every_kind and 0 < len(self.evidence) <= SKEWED_UP_TO
        mode, prior = fit.mode, fit.prior
        more = CANDIDATES * size if skewed else size
        half = rng.standard_normal(((more + 1) // 2, len(prior.columns)))
        # In pairs z, -z: what is odd in the noise cancels from every mean over draws.
        normal = np.concatenate([half, -half])[:more]
        root = np.linalg.cholesky(mode.hessian[np.ix_(prior.order, prior.order)])
        drawn = np.empty_like(normal)
        drawn[:, prior.order] = np.linalg.solve(root.T, normal.T).T
        drawn += mode.coefficients
        if not skewed:
            return drawn
        features, at = self._features([prior], slice(None))
        x, phi = features[:, :, at[prior.features]], features[:, :, at[prior.by_class]]
        arrays = (x, phi, self.evidence, prior.mean, prior.precision, drawn, self.power)
        ratio = log_posterior(*arrays)
        ratio += 0.5 * (normal**2).sum(axis=1)
        weights = np.exp(ratio - ratio.max())
        # No draw stands for very many (truncated importance sampling; Ionides 2008).
        weights = np.minimum(weights, weights.mean() * np.sqrt(more))
        return drawn[systematic(weights, size, rng)]


def _spoken_of(predictions: Predictions) -> Bools:
    """Mask (n,) of items with a prediction of any classifier."""
    speaks = predictions.has_hard | predictions.provides("ranking")
    return np.asarray(speaks.any(axis=1))


def each_belief(
    beliefs: Sequence[Belief],
    size: int,
    predictions: Predictions,
    rng: np.random.Generator,
    reference: Predictions | None = None,
) -> Iterator[tuple[float, ParameterDraws]]:
    """Log evidence of every belief by itself, and draws of its coefficients.

    A belief without an index here (the latent class of one classifier) has evidence -inf.
    """
    ground = _Evidence.of("beliefs", beliefs, predictions, False, True, reference)
    columns = ground.columns
    fits = ground.fit(ground.members)
    design = _Design(ground.index, predictions, columns, columns.features)
    for number in range(len(beliefs)):
        of_belief = [f for f, m in zip(fits, ground.members, strict=True) if m.belief == number]
        if not of_belief:
            yield -np.inf, _Draws(design, predictions.evidence, np.zeros((size, columns.width)))
            continue
        evidence = np.array([fit.mode.log_evidence for fit in of_belief])
        draws, _ = ground.draw(of_belief, softmax(evidence, axis=0), size, rng)
        top = evidence.max()
        yield (
            float(top + np.log(np.exp(evidence - top).mean())),
            _Draws(design, predictions.evidence, draws),
        )


class _Design:
    """Features of n items, to be multiplied by coefficients. For two classes, their difference.

    If all of them are too many to be kept, they are computed for the items at hand.
    """

    def __init__(
        self, index: PooledIndex, items: Predictions, columns: _Columns, used: Sequence[Feature]
    ) -> None:
        self.index, self.items, self.columns, self.used = index, items, columns, used
        self.places = np.array([columns.features.index(f) for f in used], dtype=np.int64)
        self.two = items.n_classes == 2
        self.held: Floats | None = None
        if self.two:
            # Indices by class are centred, so a class's slope counts half in the difference.
            features = index.matrix(items, used)
            self.held = features[:, 1] - features[:, 0]
        elif items.n_items * items.n_classes * len(used) <= HELD_FEATURES:
            self.held = index.matrix(items, used)

    def log_odds(self, rows: Ints | slice, beta: Floats) -> Floats:
        """Log odds (b, D) of the second of two classes, of draws beta (width, D)."""
        assert self.held is not None
        offsets, slopes = self.columns.by_feature(beta)
        out: Floats = self.held[rows] @ slopes[:, self.places].mean(axis=0)
        out += offsets[1] - offsets[0]
        return out

    def logits(self, rows: Ints | slice, beta: Floats) -> Iterator[tuple[slice, Floats]]:
        """Logits (b, K, D) of draws beta (width, D), of a few items at a time."""
        held = self.held
        features = self.index.matrix(self.items, self.used, rows) if held is None else held[rows]
        offsets, slopes = self.columns.by_feature(beta)
        slopes = slopes[:, self.places]
        alike = bool((slopes == slopes[:1]).all())
        n, k, f = features.shape
        for some in spans(n, max(_CACHED // max(k * beta.shape[1], 1), 1)):
            part = features[some]
            if alike:
                out = (part.reshape(-1, f) @ slopes[0]).reshape(len(part), k, -1)
            else:
                out = np.matmul(part.swapaxes(0, 1), slopes).swapaxes(0, 1)
            out += offsets
            yield some, out


_CACHED = 2**17
"""Logits that are worked on at a time: they stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class _Draws:
    design: _Design
    evidence: Floats
    coefficients: Floats

    @property
    def size(self) -> int:
        return len(self.coefficients)

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        beta = self.coefficients[index].T
        evidence = self.evidence[rows]
        out = np.empty((len(evidence), evidence.shape[1], len(index)))
        informed = has_evidence(evidence)
        if self.design.two:
            # The difference of two logits says it all, at half the work.
            gap = self.design.log_odds(rows, beta)
            gap[informed] += (evidence[informed, 1] - evidence[informed, 0])[:, None]
            _logistic(gap, out=out[:, 1])
            np.subtract(1, out[:, 1], out=out[:, 0])
            return out
        for some, logits in self.design.logits(rows, beta):
            informative = np.flatnonzero(informed[some])
            if len(informative):
                logits[informative] += evidence[some][informative][:, :, None]
            softmax(logits, out=out[some])
        return out


def _logistic(z: Floats, out: Floats) -> None:
    """1 / (1 + exp(-z)), in place of z and into `out`."""
    np.negative(z, out=z)
    with np.errstate(over="ignore"):  # exp of much is infinite, and its reciprocal zero
        np.exp(z, out=z)
    z += 1
    np.reciprocal(z, out=out)
