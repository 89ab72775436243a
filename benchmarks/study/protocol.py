"""What the study varies: sets, sizes, methods and runs, as a fractional design."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from numbers import Integral
from typing import Any

from bench.cells import Cell
from fewlabels.errors import UsageError, listed, unknown
from fewlabels.methods.registry import METHODS
from fewlabels.methods.settings import canonical

NAME = "study"
TITLE = "Errors and intervals on real and made classifiers"
KIND = "study"

DEFAULT, REFERENCE, PUBLISHED = "auto", "labeled", "ssme-kde"
"""The method that is judged, the labels alone, and the published method that it must beat."""

METRICS = (
    "accuracy", "balanced_accuracy", "f1", "roc_auc", "average_precision", "ece", "brier",
)  # fmt: skip
LEVELS = (0.5, 0.8, 0.9, 0.95)
"""Probabilities that intervals are meant to hold the truth with."""

FIGURES = (
    "error", "bias", "failed",
    *(f"{what}_{level:g}" for what in ("coverage", "width", "score") for level in LEVELS),
)  # fmt: skip
"""What is known of a run, method and metric: means over the classifiers, see `trial.figures`."""

EVERYWHERE = (DEFAULT, REFERENCE, PUBLISHED, "tempered-ensemble")
"""Methods of all sets."""

OTHERS = (
    "agreement-ensemble", "ensemble", "ssme-kde-marginal", "pseudo-label", "majority-vote",
    "dawid-skene", "bayesian-calibration", "autoeval", "active-testing", "ssme-flow",
)  # fmt: skip
"""Methods of the central sets alone."""

CENTRAL = ("CivilComments", "CIFAR-10", "digits-9000", "classification-9001")
"""Sets that have every method, and every number of unlabeled items."""

N_LABELED = (0, 5, 10, 20, 50, 100)
N_UNLABELED = (200, 1000, 10_000)
USUAL = 1000
"""Unlabeled items of the sets that have one number of them, where the design has it; `Study.usual`
says how many they are on a set."""

REDUCED_N_LABELED, REDUCED_N_UNLABELED = (0, 20, 100), (USUAL,)

RUNS, REDUCED_RUNS = 200, 5
BLOCK = 5
"""Runs of a part: a kill loses so many, at most."""

_FORMAT = 1


@dataclass(frozen=True)
class Study:
    """A design: everything that decides which parts there are.

    `methods` are those of all sets, `others` those of the central ones alone.
    """

    sets: tuple[str, ...]
    methods: tuple[str, ...] = EVERYWHERE
    others: tuple[str, ...] = OTHERS
    n_labeled: tuple[int, ...] = N_LABELED
    n_unlabeled: tuple[int, ...] = N_UNLABELED
    runs: int = RUNS
    seed: int = 0
    reduced: bool = False

    def plain(self) -> dict[str, Any]:
        """Every field as plain JSON values, and the name of the protocol."""
        return {"name": NAME} | json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_plain(cls, said: Mapping[str, Any]) -> Study:
        """The inverse of `plain`.

        Raises
        ------
        ValueError
            If it is of another protocol.
        """
        if said["name"] != NAME:
            raise ValueError(f"protocol {said['name']!r} is another one")
        rest: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in said.items() if k != "name"
        }
        return cls(**rest)

    def grown(self, *, runs: int | None, methods: Sequence[str], sets: Sequence[str]) -> Study:
        """The design with more runs, methods and sets; what is there stays.

        Raises
        ------
        UsageError
            If there would be fewer runs.
        """
        if runs is not None and runs < self.runs:
            raise UsageError(
                f"`runs` is {self.runs} in what is resumed, and can only rise; got {runs}"
            )
        wide = tuple(dict.fromkeys([*self.methods, *methods]))
        return replace(
            self,
            runs=runs or self.runs,
            methods=wide,
            others=tuple(m for m in self.others if m not in wide),
            sets=tuple(dict.fromkeys([*self.sets, *sets])),
        )

    def cells(self, name: str, n_items: int, block: int) -> Iterator[Cell]:
        """The parts of a set, of `n_items`, that a block of runs has."""
        for size in self._sizes(name, n_items):
            usual = size == self.usual(n_items)
            central = self.others if name in CENTRAL and usual else ()
            for n_labeled in self.n_labeled:
                for method in (*self.methods, *central):
                    if self._has_block(method, size, block):
                        yield Cell(kind_of(method), name, "", n_labeled, size, block, method)

    def usual(self, n_items: int) -> int:
        """Unlabeled items where methods and sets are compared, on a set of `n_items`.

        `USUAL`, or the design's number that is nearest to it; at most half of the items, so that
        there is something to draw.
        """
        return min(min(self.n_unlabeled, key=lambda n: abs(n - USUAL)), n_items // 2)

    def _sizes(self, name: str, n_items: int) -> list[int]:
        """Numbers of unlabeled items; all of the design's on central sets alone."""
        if name not in CENTRAL:
            return [self.usual(n_items)]
        return list(dict.fromkeys(min(n, n_items // 2) for n in self.n_unlabeled))

    def _has_block(self, method: str, n_unlabeled: int, block: int) -> bool:
        """What is slow, or of central sets alone, has fewer blocks, and these come late."""
        if method == "ssme-flow":
            return block % 20 == 19
        if n_unlabeled > USUAL or method in self.others:
            return block % 4 == 3
        return method in (DEFAULT, REFERENCE) or block % 2 == 0

    @property
    def n_blocks(self) -> int:
        """Blocks of runs; the last may be shorter."""
        return -(-self.runs // BLOCK)

    def runs_of(self, block: int) -> range:
        """Runs of a block."""
        return range(block * BLOCK, min((block + 1) * BLOCK, self.runs))

    def fingerprint(self, digest: str) -> str:
        """Hash of what parts of a set with this digest depend on, besides their own keys."""
        said = [_FORMAT, self.seed, METRICS, LEVELS, FIGURES, BLOCK, digest]
        return hashlib.blake2b(json.dumps(said).encode(), digest_size=10).hexdigest()


def kind_of(method: str) -> str:
    """What the lines of a method's parts hold, so that a person can delete them."""
    return f"{KIND}-{method.partition('[')[0]}"


def asked(
    known: Mapping[str, str],
    *,
    sets: Sequence[str] = (),
    methods: Sequence[str] = (),
    runs: int | None = None,
    seed: int = 0,
    reduced: bool = False,
    n_labeled: Sequence[int] = (),
    n_unlabeled: Sequence[int] = (),
) -> Study:
    """The design that is asked for.

    Parameters
    ----------
    known
        Set -> its family, "" for a real one.
    sets
        Names of sets or families, "real" or "made"; none: all, or, reduced, the real ones and the
        first of each family.
    methods
        They run on all sets; none: `EVERYWHERE`, and `OTHERS` on the central sets.
    n_labeled, n_unlabeled
        Other numbers of items than the design's.

    Raises
    ------
    UsageError
        If a name is unknown, or a number too small.
    """
    whole("runs", () if runs is None else (runs,), 1)
    n_labeled = whole("n_labeled", n_labeled, 0)
    n_unlabeled = whole("n_unlabeled", n_unlabeled, 1)
    chosen = chosen_sets(known, sets)
    if not chosen:
        families = [family for family in known.values() if family]
        first = {next(n for n, f in known.items() if f == family) for family in set(families)}
        chosen = tuple(n for n, family in known.items() if not (reduced and family) or n in first)
    others = tuple(m for m in OTHERS if m in METHODS)
    study = Study(chosen, others=others, runs=runs or RUNS, seed=seed, reduced=reduced)
    if reduced:
        study = replace(
            study, others=(), n_labeled=REDUCED_N_LABELED, n_unlabeled=REDUCED_N_UNLABELED,
            runs=runs or REDUCED_RUNS,
        )  # fmt: skip
    if methods:
        study = replace(study, methods=chosen_methods(methods), others=())
    if n_labeled:
        study = replace(study, n_labeled=n_labeled)
    if n_unlabeled:
        study = replace(study, n_unlabeled=n_unlabeled)
    return study


def whole(name: str, values: Sequence[int], least: int) -> tuple[int, ...]:
    """Whole numbers, each once.

    Raises
    ------
    UsageError
        If one is no whole number, or below `least`.
    """
    for value in values:
        if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
            raise UsageError(f"`{name}` must be a whole number, at least {least}; got {value!r}")
    return tuple(dict.fromkeys(map(int, values)))


def chosen_methods(names: Sequence[str]) -> tuple[str, ...]:
    """The methods of these names, with settings in their one spelling.

    Raises
    ------
    UsageError
        If one is unknown.
    """
    return tuple(dict.fromkeys(n if n == DEFAULT else canonical(n) for n in names))


def chosen_sets(known: Mapping[str, str], names: Sequence[str]) -> tuple[str, ...]:
    """The sets that are meant by these names, in the order of the known ones.

    Raises
    ------
    UsageError
        If a name is none of a set or family, nor "real" or "made".
    """
    meant: set[str] = set()
    families = dict.fromkeys(f for f in known.values() if f)
    for name in names:
        own = {
            n for n, family in known.items()
            if name in (n, family, "made" if family else "real") and name
        }  # fmt: skip
        if not own:
            if name in ("real", "made"):
                raise UsageError(f"`sets`: there are no {name} sets here; have {listed(known)}")
            real = [n for n, family in known.items() if not family]
            raise UsageError(unknown("set", name, [*real, *families, "real", "made"]))
        meant |= own
    return tuple(n for n in known if n in meant)
