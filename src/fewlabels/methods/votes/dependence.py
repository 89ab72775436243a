"""Classifiers that make the same mistakes, found in their votes alone, and how much they count.

From four classifiers on, votes say more than a model of independent errors needs. So a group of
classifiers may be given a joint distribution of its votes in each class instead of one for each
member: with d parameters more, twice the gain in log-likelihood is chi^2(d) where they are
independent (Dawid and Skene 1979, with joint voters). Groups are joined one after the other, the
best first, as long as the gain is more than chance and more than log n per parameter (BIC). Every
fit starts from a majority in which a group has one vote, for copies outvote the truth otherwise.

A member of a group counts 1 / (1 + sum of its error correlations with the others): g exact copies
count as one classifier, independent ones as g.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from fewlabels.errors import listed
from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.kernels.simplex import logsumexp, softmax
from fewlabels.methods.em import expectation_maximisation
from fewlabels.methods.votes.data import domain_codes, domain_texts
from fewlabels.predictions import Predictions

_CHANCE = 0.001
"""Probability of finding a group among independent classifiers."""

_COMMON = 20
"""Least items on which both vote, to compare two classifiers."""

_IDENTICAL = 50
"""Items without a difference between two classifiers, but with others, that make them copies."""

_LARGEST = 3
"""Members of a group, at most, and `_CELLS` cells of its joint votes; exact copies may be more."""

_CELLS = 64
_TRIPLES = 10
"""Most classifiers among whom all triples are tried, as copies can hide each other."""

_PAIRS = 45
"""Most pairs that are tried; of more, those whose agreement most exceeds independence."""

_CLASSIFIERS, _ITEMS, _ONE_HOT, _FEWEST = 60, 4000, 2**25, 500
"""Most classifiers of a domain that are compared, the busiest, and most items: of many classes
those whose one-hot votes are so many numbers, but no fewer than the last."""

_STEPS, _GLANCE, _FINALISTS = 60, 8, 8
"""Steps of EM; at a first look; and how many groups get a second one."""

_TOLERANCE = 1e-4
"""Mean change of P(class) at which EM stops."""


class SharedMistakes(NamedTuple):
    """Classifiers of a domain that err together: how often any two of them agree (the most)."""

    domain: str | None
    members: tuple[str, ...]
    agree: float
    expected: float
    z: float
    counted: float


@dataclass(frozen=True)
class Counted:
    """How much a vote of each classifier counts in each domain, and why.

    weights (D, M): 1 where it errs independently of all others.
    """

    domains: tuple[str | None, ...]
    models: tuple[str, ...]
    weights: Floats
    groups: tuple[SharedMistakes, ...]

    def of(self, domains: Sequence[str | None], models: Sequence[str]) -> Floats:
        """Weights of the units of some of the domains, (D M,)."""
        row = {name: d for d, name in enumerate(self.domains)}
        column = {name: m for m, name in enumerate(self.models)}
        rows, columns = [row[d] for d in domains], [column[m] for m in models]
        return self.weights[np.ix_(rows, columns)].ravel()

    def warnings(self) -> tuple[str, ...]:
        """One sentence per group of classifiers that share mistakes; of many the clearest."""
        groups = sorted(self.groups, key=lambda g: -g.z)
        shown = [_sentence(g, len(self.domains) > 1) for g in groups[:3]]
        if len(groups) > 3:
            shown.append(
                f"assumption: {len(groups) - 3} more groups of classifiers make the same mistakes; "
                "`shared_mistakes` among the diagnostics names them"
            )
        return tuple(shown)

    def diagnostics(self) -> dict[str, object]:
        """The groups, as they go into a result."""
        if not self.groups:
            return {}
        return {
            "shared_mistakes": [
                {
                    **({"domain": domain_texts([g.domain])[0]} if len(self.domains) > 1 else {}),
                    "classifiers": list(g.members),
                    "agree": g.agree,
                    "expected": g.expected,
                    "z": g.z,
                    "counted": g.counted,
                }
                for g in self.groups
            ]
        }


def _sentence(group: SharedMistakes, several: bool) -> str:
    place = f" in domain {domain_texts([group.domain])[0]}" if several else ""
    agree, expected = f"{group.agree:.0%}", f"{group.expected:.0%}"
    if agree == expected:
        agree, expected = f"{group.agree:.2%}", f"{group.expected:.2%}"
    return (
        f"assumption: {listed(group.members, 4)} make the same mistakes{place}: they agree on "
        f"{agree} of the items, {expected} if they erred independently (z = {group.z:.0f}); "
        f"together they count as {group.counted:.2g} classifiers"
    )


def counted_votes(predictions: Predictions, domains: Sequence[str | None]) -> Counted:
    """Find the classifiers that make the same mistakes, domain by domain."""
    domain = domain_codes(predictions, domains)
    weights = np.ones((len(domains), predictions.n_models))
    groups: list[SharedMistakes] = []
    for d, name in enumerate(domains):
        rows = np.flatnonzero(domain == d)
        width = min(predictions.n_models, _CLASSIFIERS) * predictions.n_classes
        most = min(_ITEMS, max(_ONE_HOT // width, _FEWEST))
        if len(rows) > most:
            rows = rows[np.argsort(predictions.keys[rows])[:most]]
        cast = predictions.vote_counts[rows].indices // predictions.n_classes
        busy = np.bincount(cast, minlength=predictions.n_models)
        models = np.sort(np.argsort(-busy, kind="stable")[:_CLASSIFIERS])
        models = models[busy[models] >= _COMMON]
        if len(models) < 3:
            continue
        votes = _Votes.of(predictions, rows, models)
        copies = _copies(votes)
        for members in copies:
            weights[d, models[members]] = 1 / len(members)
            pair = _clearest(votes, members, _majority(votes, copies))
            names = tuple(predictions.models[j] for j in models[members])
            groups.append(SharedMistakes(name, names, *pair, 1.0))
        apart = np.setdiff1d(np.arange(len(models)), [j for same in copies for j in same[1:]])
        votes = _Votes.of(predictions, rows, models[apart]) if copies else votes
        for group in _groups(votes):
            shares, pair = _share(votes, group)
            places = models[apart[group.members]]
            weights[d, places] *= shares
            names = tuple(predictions.models[j] for j in places)
            groups.append(SharedMistakes(name, names, *pair, float(shares.sum())))
    return Counted(tuple(domains), predictions.models, weights, tuple(groups))


# --- joint voters --------------------------------------------------------------------------------


class _Votes(NamedTuple):
    """Distinct rows: votes (U, M) -1 missing, one-hot (U, M, K), items (U,), evidence (U, K)."""

    votes: Ints
    cast: Floats
    items: Floats
    evidence: Floats

    @staticmethod
    def of(predictions: Predictions, rows: Ints, models: Ints) -> _Votes:
        votes = np.stack([predictions.hard_of(rows, int(j)) for j in models], axis=1)
        evidence = predictions.evidence[rows]
        distinct, first, of_item = np.unique(
            np.concatenate([votes, evidence], axis=1), axis=0, return_index=True,
            return_inverse=True,
        )  # fmt: skip
        items = np.bincount(of_item.ravel(), predictions.times[rows], len(distinct)).astype(float)
        votes = votes[first]
        cast = (votes[:, :, None] == np.arange(predictions.n_classes)).astype(np.float64)
        return _Votes(votes, cast, items, evidence[first])


class _Group(NamedTuple):
    """Members, rows on which all of them vote, one-hot joint votes (U, cells) there."""

    members: Ints
    all_vote: Bools
    joint: Floats

    @staticmethod
    def of(votes: _Votes, members: Sequence[int]) -> _Group:
        who, k = np.array(members), votes.cast.shape[2]
        members_votes = votes.votes[:, who]
        code = (members_votes * k ** np.arange(len(who))[::-1]).sum(axis=1)
        all_vote = np.asarray((members_votes >= 0).all(axis=1))
        joint = (code[all_vote, None] == np.arange(k ** len(who))).astype(np.float64)
        return _Group(who, all_vote, joint)


_Fit = tuple[Floats, float]
"""P(class) of the rows (U, K), and the log-likelihood."""


def _fit(votes: _Votes, groups: Sequence[_Group], start: Floats, steps: int = _STEPS) -> _Fit:
    """Dawid and Skene's EM, with groups as joint voters on the rows where all members vote."""
    k = votes.cast.shape[2]
    prior = np.full((k, k), 0.5 / (k - 1))
    np.fill_diagonal(prior, 1.0)
    flat = votes.cast.reshape(len(votes.cast), -1)

    def joint(classes: Floats) -> Floats:
        """Log P(votes, class) of the rows (U, K), by the rates that P(class) gives."""
        weight = classes * votes.items[:, None]
        share = (weight.sum(axis=0) + 1) / (weight.sum() + k)
        log_rates = np.log(_rates(weight, votes.cast, prior))
        logits = np.log(share) + votes.evidence
        logits = logits + flat @ log_rates.transpose(0, 2, 1).reshape(-1, k)
        for group in groups:
            here, cast = weight[group.all_vote], votes.cast[group.all_vote][:, group.members]
            # Two pseudo-items that vote independently keep every cell positive.
            counts = here.T @ group.joint + 2 * _independent(_rates(here, cast, prior))
            together = group.joint @ np.log(counts / counts.sum(axis=1, keepdims=True)).T
            apart = np.einsum("ugv,gkv->uk", cast, log_rates[group.members], optimize=True)
            logits[group.all_vote] += together - apart
        return logits

    em = expectation_maximisation(
        lambda classes: softmax(joint(classes)),
        start, iterations=steps, tolerance=_TOLERANCE, counts=votes.items,
    )  # fmt: skip
    return em.responsibilities, float(logsumexp(joint(em.responsibilities)) @ votes.items)


def _rates(weight: Floats, cast: Floats, prior: Floats) -> Floats:
    """P(vote | class), (M, K classes, K votes)."""
    u, m, k = cast.shape
    counts = (weight.T @ cast.reshape(u, m * k)).reshape(-1, m, k)
    out: Floats = counts.transpose(1, 0, 2) + prior
    return out / out.sum(axis=2, keepdims=True)


def _independent(rates: Floats) -> Floats:
    """Joint votes of independent voters (g, K, K), in the order of `_Group.joint`, (K, K^g)."""
    out = rates[0]
    for of_voter in rates[1:]:
        out = (out[:, :, None] * of_voter[:, None, :]).reshape(len(out), -1)
    return out


def _majority(votes: _Votes, groups: Sequence[Ints | list[int]]) -> Floats:
    """P(class) by votes, those of the members of a group as one."""
    each = np.ones(votes.cast.shape[1])
    for members in groups:
        each[members] /= len(members)
    logits = 4 * np.einsum("umv,m->uv", votes.cast, each) + votes.evidence
    out: Floats = np.exp(logits - logsumexp(logits)[:, None])
    return out


def _best(
    votes: _Votes, groups: Sequence[_Group], before: _Fit | None, steps: int = _STEPS
) -> _Fit:
    """The better of two starts: votes, and the classes found before."""
    out = _fit(votes, groups, _majority(votes, [group.members for group in groups]), steps)
    if before is None:
        return out
    other = _fit(votes, groups, before[0], steps)
    return other if other[1] > out[1] else out


# --- which groups --------------------------------------------------------------------------------


def _groups(votes: _Votes) -> list[_Group]:
    """Groups that explain the votes better than independence does."""
    n, k = votes.items.sum(), votes.cast.shape[2]
    groups: list[_Group] = []
    # Votes of two gain no more than 2 n log K^2 over votes that tell nothing; a joint distribution
    # of theirs in each class has (K - 1)^2 parameters more: of many classes too many for any gain.
    if np.log(n) * k * (k - 1) ** 2 >= 4 * n * np.log(k):
        return groups
    now = _best(votes, groups, None)
    while True:
        best: tuple[float, list[_Group], _Fit] | None = None
        tried = list(_joined(votes, groups, now))
        first = [_best(votes, joined, now, _GLANCE)[1] for joined, _ in tried]
        scores = 2 * np.array(first) - np.log(n) * np.array([extra for _, extra in tried])
        for place in np.argsort(-scores, kind="stable")[:_FINALISTS]:
            joined, extra = tried[place]
            fit = _best(votes, joined, now)
            gain = 2 * (fit[1] - now[1])
            by_chance = float(chdtrc(extra, max(gain, 0.0))) * len(tried)
            score = gain - np.log(n) * extra
            if by_chance < _CHANCE and score > (best[0] if best else 0.0):
                best = (score, joined, fit)
        if best is None:
            return groups
        _, groups, now = best


def _joined(votes: _Votes, groups: list[_Group], now: _Fit) -> Iterator[tuple[list[_Group], int]]:
    """Groups with two of them, or of the single classifiers, joined; parameters that this adds."""
    k, m = votes.cast.shape[2], votes.votes.shape[1]
    most = max(min(_LARGEST, int(np.log(_CELLS) / np.log(k) + 1e-9)), 2)
    together = {j: (j,) for j in range(m)}
    for group in groups:
        together |= dict.fromkeys(group.members.tolist(), tuple(group.members.tolist()))
    sets = [tuple(sorted({*together[a], *together[b]})) for a, b in _pairs(votes, now)]
    if not groups and 5 <= m <= _TRIPLES:
        sets += list(itertools.combinations(range(m), 3))
    for members in dict.fromkeys(sets):
        if len(members) > most:
            continue
        inside = [group for group in groups if set(group.members.tolist()) <= set(members)]
        rest = [group for group in groups if not set(group.members.tolist()) & set(members)]
        alone = len(members) - sum(len(group.members) for group in inside)
        before = alone * (k - 1) + sum(k ** len(group.members) - 1 for group in inside)
        extra = k * (k ** len(members) - 1 - before)
        if extra > 0:
            yield [*rest, _Group.of(votes, members)], extra


def _pairs(votes: _Votes, now: _Fit) -> list[tuple[int, int]]:
    """Pairs with items in common; of many those that agree most beyond independence."""
    common = _both(votes)
    a, b = np.nonzero(np.triu(common >= _COMMON, 1))
    if len(a) > _PAIRS:
        agree, expected = _agreement(votes, now[0])
        z = (agree - expected) / np.sqrt(np.maximum(expected * (1 - expected), 1e-4))
        order = np.argsort(-(z * np.sqrt(common))[a, b], kind="stable")[:_PAIRS]
        a, b = a[order], b[order]
    return list(zip(a.tolist(), b.tolist(), strict=True))


def _both(votes: _Votes) -> Floats:
    """Items that both of two classifiers vote on, (M, M)."""
    voted = (votes.votes >= 0).astype(np.float64)
    out: Floats = (voted * votes.items[:, None]).T @ voted
    return out


def _agreement(votes: _Votes, classes: Floats) -> tuple[Floats, Floats]:
    """How often two classifiers agree, and would if they erred independently, (M, M)."""
    _, m, k = votes.cast.shape
    common = np.maximum(_both(votes), 1e-9)
    flat = votes.cast.transpose(1, 0, 2).reshape(m, -1)
    agree = (flat * np.repeat(votes.items, k)) @ flat.T / common
    prior = np.full((k, k), 0.1)
    rates = _rates(classes * votes.items[:, None], votes.cast, prior)
    voted = (votes.votes >= 0).astype(np.float64)
    expected = np.zeros((m, m))
    for c in range(k):
        weight = voted * (classes[:, c] * votes.items)[:, None]
        expected += (weight.T @ voted) * (rates[:, c] @ rates[:, c].T)
    return agree, expected / common


def _copies(votes: _Votes) -> list[list[int]]:
    """Classifiers that never differ from each other, while others differ from them."""
    common, (agree, _) = _both(votes), _agreement(votes, _majority(votes, []))
    # Somebody differs from a classifier on one item in twenty.
    voted = votes.votes >= 0
    most = np.where(voted, votes.votes, -1).max(axis=1)
    least = np.where(voted, votes.votes, votes.cast.shape[2]).min(axis=1)
    differ = (voted & (most != least)[:, None]) * votes.items[:, None]
    contested = differ.sum(axis=0) >= 0.05 * (voted * votes.items[:, None]).sum(axis=0)
    if not contested.any():  # nobody ever differs from anybody: they may all be one
        contested = np.ones(len(contested), dtype=bool)
    same = (common >= _IDENTICAL) & (agree > 1 - 1e-9)
    np.fill_diagonal(same, val=False)
    out, seen = [], set()
    for j in range(len(same)):
        members = [j, *np.flatnonzero(same[j]).tolist()]
        if len(members) > 1 and j not in seen and contested[j]:
            out.append(members)
            seen.update(members)
    return out


def _share(votes: _Votes, group: _Group) -> tuple[Floats, tuple[float, float, float]]:
    """How much each member counts; agreement, expected agreement and z of the clearest pair."""
    classes, _ = _best(votes, [group], None)
    who, here = group.members, group.all_vote
    weight = (classes * votes.items[:, None])[here]
    wrong = 1 - votes.cast[here][:, who]
    mean = np.einsum("uk,ugk->gk", weight, wrong) / np.maximum(weight.sum(axis=0), 1e-9)
    off = wrong - mean
    covariance = np.einsum("uk,ugk,uhk->gh", weight, off, off, optimize=True)
    spread = np.sqrt(np.maximum(np.diag(covariance), 1e-9))
    correlation = np.clip(covariance / np.outer(spread, spread), 0, 1)
    np.fill_diagonal(correlation, 1.0)
    return 1 / correlation.sum(axis=1), _clearest(votes, who, classes)


def _clearest(votes: _Votes, who: Ints | list[int], classes: Floats) -> tuple[float, float, float]:
    """Agreement, expected agreement and z of the pair that agrees most beyond independence."""
    both = np.ix_(np.asarray(who), np.asarray(who))
    agree, expected = _agreement(votes, classes)
    agree, expected = agree[both], expected[both]
    error = np.sqrt(np.maximum(expected * (1 - expected), 1e-6) / np.maximum(_both(votes)[both], 1))
    z = (agree - expected) / error
    np.fill_diagonal(z, -np.inf)
    a, b = np.unravel_index(int(np.argmax(z)), z.shape)
    return float(agree[a, b]), float(expected[a, b]), float(z[a, b])
