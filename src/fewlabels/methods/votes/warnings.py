"""What votes cannot tell: too few classifiers on the same items, votes that never differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fewlabels.errors import listed
from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.kernels.notices import announce
from fewlabels.kernels.votes import in_triangle
from fewlabels.methods.votes.data import domain_texts
from fewlabels.predictions import Predictions

LEAST_OVERLAP = 3

INDEPENDENT = (
    "assumption: classifiers err independently of each other, given the class; where they share "
    "mistakes their error rates come out too low"
)
UNLABELED = (
    "assumption: no labels; error rates rest on classifiers that err independently of each other "
    "and are right more often than not"
)

VARIATIONAL = (
    "assumption: rates are fitted by variational inference{}; its intervals are about 1% narrower "
    "than those of chains, and held for .92 to .94 of annotators where these held for .94 to .97; "
    "inference='gibbs' samples chains"
)

LONG_WAIT = 10.0
"""Seconds that are worth a word."""


def announce_wait(seconds: float) -> None:
    """Say before a long wait for want of a compiler how long it will be."""
    if seconds >= LONG_WAIT:
        announce(_wait("are sampled", "takes", seconds))


def told_wait(seconds: float) -> tuple[str, ...]:
    """The same after it, for who did not hear."""
    return (_wait("were sampled", "took", seconds),) if seconds >= LONG_WAIT else ()


def _wait(sampled: str, takes: str, seconds: float) -> str:
    """How long votes take without a compiler, and what to install."""
    about = float(f"{seconds:.1g}" if seconds < 100 else f"{seconds:.2g}")
    long = f"{about:.0f} s" if about < 100 else f"{about / 60:.0f} minutes"
    return (
        f"votes {sampled} without numba, which {takes} about {long} here; "
        "pip install 'fewlabels[fast]' makes it some three times as fast after its first call"
    )


def not_identified(
    predictions: Predictions, domain: Ints, domains: Sequence[str | None]
) -> tuple[str, ...]:
    """Why these votes do not determine error rates without labels, one sentence per reason."""
    said = []
    few: dict[str, list[str]] = {}
    voters = np.diff(predictions.ballots.indptr)
    silent = []
    for d, name in enumerate(domain_texts(domains)):
        rows = np.flatnonzero(domain == d)
        if not voters[rows].any():
            silent.append(name)
            continue
        if (predictions.evidence[rows] != 0).any():
            continue
        counts = predictions.vote_counts[rows]
        lonely = ~in_triangle(counts, predictions.n_classes)
        voting = np.zeros(predictions.n_models, dtype=bool)
        voting[counts.indices // predictions.n_classes] = True
        if (lonely & voting).any():
            who = [predictions.models[j] for j in np.flatnonzero(lonely & voting)]
            whose = "" if len(who) == voting.sum() else f" of {listed(who, 3)}"
            few.setdefault(whose, []).append(name)
    if silent:
        said.append(
            f"assumption: no classifier votes in domain {listed(silent, 5)}: what is said of it, "
            "and of the labels there, is the prior alone"
        )
    for whose, where in few.items():
        place = f" in domain {listed(where, 5)}" if len(domains) > 1 else ""
        said.append(
            f"assumption: fewer than {LEAST_OVERLAP} classifiers vote on the same items{place}, "
            "and no label is known there: votes alone do not determine the error rates"
            f"{whose}; they rest on the assumption that a classifier is right more often than not"
        )
    return (*said, *_never_differ(predictions))


def _never_differ(predictions: Predictions) -> list[str]:
    """Classes that nobody votes for, and classifiers that always agree."""
    said = []
    counts = np.asarray(predictions.vote_counts.sum(axis=0)).reshape(-1, predictions.n_classes)
    never = [str(c) for c, n in zip(predictions.classes, counts.sum(axis=0), strict=True) if not n]
    if never:
        said.append(
            f"assumption: no classifier ever votes for class {listed(never, 5)}; how often it is "
            "missed cannot be seen in the votes"
        )
    ballots = predictions.ballots
    voters = np.diff(ballots.indptr)
    shared = np.zeros(predictions.n_items, dtype=np.int64)
    item = np.repeat(np.arange(predictions.n_items), voters)
    for k in range(predictions.n_classes):
        shared[np.unique(item[ballots.data == k + 1])] += 1
    several = voters > 1
    if several.any() and (shared[several] <= 1).all() and not predictions.n_labeled:
        said.append(
            "assumption: the classifiers never disagree; whether they are always right or share "
            "their mistakes cannot be told from the votes"
        )
    return said


def straddling(error_rates: Floats, voted: Bools, domains: Sequence[str | None]) -> str | None:
    """Say where draws (T, D, M) of most error rates lie on both sides of one half.

    Of the classifiers that vote there, (D, M): the others follow the prior.
    """
    above = (error_rates > 0.5).mean(axis=0)
    doubtful = (above > 0.05) & (above < 0.95) & voted
    both = 2 * doubtful.sum(axis=1) > voted.sum(axis=1)
    if not both.any():
        return None
    names = [name for name, doubt in zip(domain_texts(domains), both, strict=True) if doubt]
    place = f" in domain {listed(names, 5)}" if len(domains) > 1 else ""
    return (
        f"assumption: the data cannot tell right from wrong{place}: draws of most error rates lie "
        "on both sides of one half; a few labels would tell"
    )
