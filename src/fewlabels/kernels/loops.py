"""Sums of label weights and areas under curves as compiled loops: as `weighting` and `ranking`.

Labels are (n, D) or (n, 1), row weights (n, R) with R = D or 1. A row of draws is added at a time,
so that memory is read in order; labels of other classes add zero.
"""

from __future__ import annotations

import numpy as np

from fewlabels.kernels.arrays import Array, Bools, Floats, Ints
from fewlabels.kernels.compiled import compiled

FEW_PLACES = 4
"""With fewer classes than this every draw is added to, by zero if its label is of another class."""


@compiled
def drawn_events(labels: Array, rows: Floats, codes: Array, event: Ints, out: Floats) -> None:
    """Add the weights of one class of each item, event (n,), by code: (size, D)."""
    several, weighted = labels.shape[1] > 1, rows.shape[1] > 1
    for i in range(len(codes)):
        at, k = codes[i], event[i]
        for d in range(out.shape[1]):
            hit = labels[i, d if several else 0] == k
            out[at, d] += rows[i, d if weighted else 0] * hit


@compiled
def soft_events(p: Floats, rows: Floats, codes: Array, event: Ints, out: Floats) -> None:
    """Add P(label) (n, K, D) of one class of each item times row weights, by code: (size, D)."""
    weighted = rows.shape[1] > 1
    for i in range(len(codes)):
        at, k = codes[i], event[i]
        for d in range(out.shape[1]):
            out[at, d] += p[i, k, d] * rows[i, d if weighted else 0]


@compiled
def drawn_classes(labels: Array, rows: Floats, group: Array, out: Floats) -> None:
    """Add the weights of every class by group: (K, G, D)."""
    several, weighted = labels.shape[1] > 1, rows.shape[1] > 1
    for i in range(len(group)):
        at = group[i]
        for d in range(out.shape[2]):
            out[labels[i, d if several else 0], at, d] += rows[i, d if weighted else 0]


@compiled
def drawn_places(
    labels: Array, rows: Floats, place: Array, first: int, hits: Floats, total: Floats
) -> None:
    """Add the weights of classes `first` .. and of all by place (n, C): (size, D), (size, R)."""
    several, weighted = labels.shape[1] > 1, rows.shape[1] > 1
    few = place.shape[1] < FEW_PLACES
    for i in range(len(place)):
        for c in range(place.shape[1]):
            at = place[i, c]
            for d in range(total.shape[1]):
                total[at, d] += rows[i, d if weighted else 0]
    for i in range(len(place)):
        if few:
            for c in range(place.shape[1]):
                at, k = place[i, c], first + c
                for d in range(hits.shape[1]):
                    hit = labels[i, d if several else 0] == k
                    hits[at, d] += rows[i, d if weighted else 0] * hit
        else:
            for d in range(hits.shape[1]):
                c = labels[i, d if several else 0] - first
                if 0 <= c < place.shape[1]:
                    hits[place[i, c], d] += rows[i, d if weighted else 0]


@compiled
def soft_places(
    p: Floats, rows: Floats, every: Floats, place: Array, first: int, hits: Floats, total: Floats
) -> None:
    """As `drawn_places`, of P(label) (n, K, D); `every` (n, R) are the weights of all classes."""
    weighted, differ = rows.shape[1] > 1, every.shape[1] > 1
    for i in range(len(place)):
        for c in range(place.shape[1]):
            at, k = place[i, c], first + c
            for d in range(total.shape[1]):
                total[at, d] += every[i, d if differ else 0]
            for d in range(hits.shape[1]):
                hits[at, d] += p[i, k, d] * rows[i, d if weighted else 0]


@compiled
def areas(
    positive: Floats, total: Floats, ends: Ints, several: Bools, small: float, out: Floats
) -> None:
    """Both areas of each ranking from `ends` (S + 1): (2, S, D); see `ranking.areas`."""
    draws, weighted = positive.shape[1], total.shape[1] > 1
    hits, taken = np.empty(draws), np.empty(draws)
    pairs, step = np.empty(draws), np.empty(draws)
    for s in range(len(ends) - 1):
        hits[:], taken[:], pairs[:], step[:] = 0.0, 0.0, 0.0, 0.0
        for g in range(ends[s], ends[s + 1]):
            large = False
            if several[g]:
                for d in range(draws):
                    m = total[g, d if weighted else 0]
                    large |= m > small * (taken[d] + m - m)
            for d in range(draws):
                t, m = positive[g, d], total[g, d if weighted else 0]
                c, n = hits[d] + t, taken[d] + m
                pairs[d] += (m - t) * (c - 0.5 * t)
                precision = c / n if n > 0 else 0.0
                hits[d], taken[d] = c, n
                step[d] += t * precision
                if several[g] and m > 0 and t > 0:
                    above = n - m
                    if not large:
                        first, middle = (c - t) / above, (c - 0.5 * t) / (n - 0.5 * m)
                        step[d] += t * ((first + 4 * middle + precision) / 6 - precision)
                    else:
                        rate, bend = t / m, 0.0
                        if above > 0:
                            bend = (c - t - above * rate) * np.log1p(m / above) / m
                        step[d] += t * (rate + bend - precision)
        for d in range(draws):
            out[0, s, d] = pairs[d] / (hits[d] * (taken[d] - hits[d]))
            out[1, s, d] = step[d] / hits[d]
