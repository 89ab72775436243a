"""The head of the study's page: what was run, and what its numbers mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from fewlabels import __version__
from study.protocol import (
    DEFAULT,
    N_LABELED,
    N_UNLABELED,
    REDUCED_N_LABELED,
    REDUCED_N_UNLABELED,
    Study,
)
from study.results import StudyResults

_MOST_RUNS = 4
"""Numbers of runs that a line names; more are given as a range."""


def heading(results: StudyResults) -> list[str]:
    """Lines of Markdown: what was run and how, in which sizes, and what was left out."""
    study = results.study
    made = [f for f in results.sets.values() if f["family"]]
    real = [f for f in results.sets.values() if not f["family"]]
    hours = sum(float(np.nansum(r.seconds)) for r in results.table.values()) / 3600
    lines = [
        "# Coverage and error study",
        "",
        f"Made by `{_command(study)}` with fewlabels {__version__}, seed "
        f"{study.seed}: {len(real)} real and {len(made)} made sets of classifiers, "
        f"{len(results.places)} settings, {len(results.table):,} cells with 7 metrics each, "
        f"{hours:.1f} processor hours of estimating. Runs per cell: {_runs(results)}."
        + _other_sizes(study),
        "",
        "A run draws items from the set at random, labels some of them at random (no class is "
        "forced to have a label), and every method sees the same. The truth is the metric on the "
        "whole set. Numbers are means over the classifiers of a run, then over runs; the "
        "classifiers share the labels, so standard errors (±) are over runs; those of coverage "
        "add two runs that hold and two that do not, so that agreement of all is not certainty. "
        "Those of a share of cells, or of a median over cells, are over sets (cluster bootstrap). "
        "Errors and widths are in percentage points.",
        "",
        f"On made sets `{DEFAULT}` has the prior that was learned without the set's family; seeds "
        "of the sets are not among those of the prior. Items are drawn without replacement, so "
        "intervals for the population are wider than they need be where the items are a large part "
        "of the set.",
        "",
        "The estimand is the metric on the population that the items come from, of each classifier "
        "as it is. What is assumed, and holds here by design: labeled items are a random sample "
        "of the items, these of the population, and labels are right. Not tested here: labels that "
        "were chosen otherwise, shift, labels that annotators disagree on, votes without "
        "probabilities, and single classifiers.",
        "",
    ]
    if study.reduced:
        lines += [
            "This is the reduced form, with few sets, sizes, methods and runs. It shows no "
            "coverage to the percent.",
            "",
        ]
    return lines + [f"- {note}" for note in results.notes] + ([""] if results.notes else [])


def _command(study: Study) -> str:
    """The command line that gives such a study."""
    command = f"python benchmarks/study.py --data DIR{' --reduced' if study.reduced else ''}"
    usual = (REDUCED_N_LABELED, REDUCED_N_UNLABELED) if study.reduced else (N_LABELED, N_UNLABELED)
    if (study.n_labeled, study.n_unlabeled) == usual:
        return command
    sizes = [",".join(map(str, sizes)) for sizes in (study.n_labeled, study.n_unlabeled)]
    return f"{command} --n-labeled {sizes[0]} --n-unlabeled {sizes[1]}"


def _other_sizes(study: Study) -> str:
    """Numbers of items that are not the protocol's, as a sentence each."""
    return "".join(
        f" {what} are {_counts(own)} here; the protocol has {_counts(protocol)}."
        for what, own, protocol in (
            ("Numbers of labels (n_l)", study.n_labeled, N_LABELED),
            ("Numbers of unlabeled items (n_u)", study.n_unlabeled, N_UNLABELED),
        )
        if own != protocol
    )


def _counts(numbers: Sequence[int]) -> str:
    return ", ".join(f"{n:,}" for n in numbers)


def _runs(results: StudyResults) -> str:
    """Runs of the cells by method and size."""
    by_method: dict[str, set[int]] = {}
    for (_, method), runs in results.table.items():
        by_method.setdefault(method, set()).add(len(runs.runs))
    return "; ".join(f"{method} {either(counts)}" for method, counts in by_method.items())


def either(counts: Iterable[int]) -> str:
    """Different numbers, as "5 or 10"; as a range if there are many."""
    named = [f"{n:,}" for n in sorted(set(counts))]
    return f"{named[0]} to {named[-1]}" if len(named) > _MOST_RUNS else " or ".join(named)


def at_usual(results: StudyResults) -> str:
    """How many unlabeled items there are where sets and methods are compared."""
    sizes = {results.usual(name) for name in results.sets}
    small = ", half of the items of a small set" if len(sizes) > 1 else ""
    return f"{either(sizes)} unlabeled items{small}"
