"""Dawid-Skene: every classifier has a confusion matrix, found together with the labels by EM."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.optimize import linear_sum_assignment

from fewlabels.errors import Status, UsageError
from fewlabels.kernels.arrays import Floats, Ints, UInts
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.keyed import exponentials
from fewlabels.kernels.simplex import CLIP, softmax
from fewlabels.kernels.votes import Patterns, one_hot_votes, patterns, vote_shares
from fewlabels.models.base import FittedLabelModel, LabelModel, check_count, with_hard_votes
from fewlabels.models.em import EMResult, expectation_maximisation
from fewlabels.models.ensemble import with_evidence
from fewlabels.models.method import Method
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions
from fewlabels.wording import listed

FLOOR = 1e-10
"""Least count, in items, of a vote under a class, and least class share: what has not been seen is
nearly impossible, as in maximum likelihood, but has a logarithm."""

_REFIT_SALT, _ROWS, _MOST = 0xDA51D, 65_536, 2**24


@dataclass(frozen=True)
class DawidSkene(LabelModel):
    """P(votes | class) = prod_j P_j(vote_j | class), all K x K probabilities per classifier, by EM.

    Starts from the shares of the votes; known labels stay. Missing votes are skipped. Source:
    Dawid and Skene (1979), equations 2.3 to 2.5.

    Parameters
    ----------
    iterations
        EM steps at most.
    tolerance
        EM stops when class probabilities change by no more than this on average.
    replicates
        Bootstrap refits for the parameters' uncertainty.
    """

    iterations: int = 100
    tolerance: float = 1e-5
    replicates: int = 20

    def __post_init__(self) -> None:
        check_count("iterations", self.iterations)
        check_count("replicates", self.replicates)
        if not isinstance(self.tolerance, Real) or not self.tolerance >= 0:
            raise UsageError(f"`tolerance` must not be negative; got {self.tolerance!r}")

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Gather items of the same votes and run EM on these."""
        served, votes = with_hard_votes(predictions, "dawid-skene")
        items = patterns(votes, served.evidence)
        table = _Table.of(votes[items.first], served.evidence[items.first])
        share = np.bincount(votes[votes >= 0], minlength=served.n_classes) / (votes >= 0).sum()
        shares = vote_shares(votes[items.first], np.ones((served.n_models, 1)), share)
        fitted = _FittedDawidSkene(
            model=self,
            models=served.models,
            classes=tuple(map(str, served.classes)),
            table=table,
            items=items,
            keys=served.keys,
            start=with_evidence(shares, table.evidence, floor=CLIP),
            n_informed=int((served.evidence != 0).any(axis=1).sum()),
            salt=int(rng.integers(2**63)),
        )
        _ = fitted.result
        return fitted


class _Rates(NamedTuple):
    """Class shares (K, B) and P(vote | class), (M, K votes, K classes, B)."""

    shares: Floats
    confusion: Floats


@dataclass(frozen=True, eq=False)
class _Table:
    """Distinct rows of votes and evidence, and the two steps of EM on them."""

    votes: scipy.sparse.csr_matrix
    by_vote: scipy.sparse.csr_matrix
    evidence: Floats

    @staticmethod
    def of(votes: Ints, evidence: Floats) -> _Table:
        one_hot = one_hot_votes(votes, evidence.shape[1])
        return _Table(one_hot, one_hot.T.tocsr(), evidence)

    def maximise(self, responsibilities: Floats, counts: Floats) -> _Rates:
        """Rates that the responsibilities (U, K, B) of `counts` (U, B) items each give."""
        u, k, b = responsibilities.shape
        weights = responsibilities * counts[:, None, :]
        shares = np.maximum(weights.sum(axis=0) / counts.sum(axis=0), FLOOR)
        seen = (self.by_vote @ weights.reshape(u, k * b)).reshape(-1, k, k, b)
        np.maximum(seen, FLOOR, out=seen)
        seen /= seen.sum(axis=1, keepdims=True)
        return _Rates(shares, seen)

    def expect(self, rates: _Rates) -> Floats:
        """P(class | votes, evidence), (U, K, B)."""
        k, b = rates.shares.shape
        logits = (self.votes @ np.log(rates.confusion).reshape(-1, k * b)).reshape(-1, k, b)
        logits += np.log(rates.shares)
        logits += self.evidence[:, :, None]
        return softmax(logits, out=logits)


@dataclass(frozen=True, eq=False)
class _FittedDawidSkene(FittedLabelModel):
    model: DawidSkene
    models: tuple[str, ...]
    classes: tuple[str, ...]
    table: _Table
    items: Patterns
    keys: UInts
    start: Floats
    n_informed: int
    salt: int

    @cached_property
    def result(self) -> EMResult:
        return self._run(self.items.sums(np.ones((len(self.keys), 1))))

    @cached_property
    def rates(self) -> _Rates:
        """What EM's last step rests on, B = 1."""
        counts = self.items.sums(np.ones((len(self.keys), 1)))
        return self.table.maximise(self.result.before, counts)

    @cached_property
    def refits(self) -> _Rates:
        """As `rates`, of bootstrap replicates: Exp(1) weights of the items."""
        streams = np.arange(self.model.replicates)
        counts = np.zeros((len(self.items.first), len(streams)))
        for block in spans(len(self.keys), _ROWS):
            rows = exponentials(self.keys[block], streams, self.salt ^ _REFIT_SALT)
            counts += self.items._replace(of_item=self.items.of_item[block]).sums(rows)
        # EM holds a few arrays of all patterns, which are as many as the items in the worst case.
        width = max(_MOST // self.start.size, 1)
        parts = [
            self.table.maximise(self._run(counts[:, part]).before, counts[:, part])
            for part in spans(len(streams), width)
        ]
        return _Rates(*(np.concatenate(kind, axis=-1) for kind in zip(*parts, strict=True)))

    def _run(self, counts: Floats) -> EMResult:
        start = np.repeat(self.start, counts.shape[1], axis=2)
        return expectation_maximisation(
            lambda w: self.table.expect(self.table.maximise(w, counts)),
            start,
            iterations=self.model.iterations,
            tolerance=self.model.tolerance,
            counts=counts,
        )

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        votes = predictions.select_models(self.models).hard
        items = patterns(votes, predictions.evidence)
        table = _Table.of(votes[items.first], predictions.evidence[items.first])
        swapped = self._swapped()
        return LabelPosterior(
            table.expect(self.rates)[items.of_item, :, 0],
            _Refits(self, table, items),
            predictions.keys,
            salt=self.salt,
            value_from="marginals",
            status=self._status,
            warnings=self._warnings(swapped),
            diagnostics={
                "error_rate": dict(zip(self.models, self._error_rates(), strict=True)),
                "class_share": dict(
                    zip(self.classes, self.rates.shares[:, 0].tolist(), strict=True)
                ),
                "iterations": self.result.iterations,
                "last_change": self.result.change,
                "vote_patterns": len(self.items.first),
            },
        )

    def _error_rates(self) -> list[float]:
        right = np.einsum("jkkb,kb->j", self.rates.confusion, self.rates.shares)
        return [float(1 - r) for r in right / self.rates.shares.sum()]

    def _swapped(self) -> list[str]:
        """Classes that the classifiers together call by another's name.

        The likelihood is the same when classes trade names; only the start and the labels say
        which is which.
        """
        present = np.flatnonzero(self.rates.shares[:, 0] * len(self.keys) >= 1)
        called = self.rates.confusion[:, :, :, 0].mean(axis=0)[np.ix_(present, present)]
        vote, true = linear_sum_assignment(called, maximize=True)
        if called[vote, true].sum() <= np.trace(called) + 1e-9:
            return []
        return [self.classes[present[k]] for k in vote[vote != true]]

    @property
    def _status(self) -> Status:
        return Status.ASSUMPTION if self.result.converged else Status.NOT_CONVERGED

    def _warnings(self, swapped: list[str]) -> tuple[str, ...]:
        said = []
        if not self.n_informed and len(self.models) < 3:
            few = "one classifier" if len(self.models) == 1 else "two classifiers"
            said.append(
                f"assumption: no labels, and {few}: votes determine error rates only from three "
                "classifiers on; where EM ends depends on where it starts, the shares of the votes"
            )
        elif not self.n_informed:
            said.append(
                "assumption: no labels; error rates rest on classifiers that err independently of "
                "each other and are right more often than not"
            )
        else:
            said.append(
                "assumption: classifiers err independently of each other, given the class; where "
                "they share mistakes their error rates come out too low"
            )
        if swapped:
            said.append(
                f"assumption: items of {listed(swapped)} are mostly called otherwise by the "
                "classifiers; these classes may have traded names"
            )
        if not self.result.converged:
            said.append(
                f"not-converged: after {self.result.iterations} iterations the posteriors still "
                f"change by {self.result.change:.2g} on average"
            )
        return tuple(said)


@dataclass(frozen=True, eq=False)
class _Refits:
    """Bootstrap refits as parameter draws, run when the first interval is asked for."""

    fitted: _FittedDawidSkene
    table: _Table
    items: Patterns

    @property
    def size(self) -> int:
        return self.fitted.model.replicates

    @cached_property
    def probabilities(self) -> Floats:
        """P(class) of every distinct row, (U, K, B)."""
        return self.table.expect(self.fitted.refits)

    def prepare(self) -> None:
        """Run the refits."""
        _ = self.probabilities

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        return self.probabilities[:, :, index][self.items.of_item[rows]]


METHOD = Method(
    "dawid-skene",
    DawidSkene,
    "confusion matrices of the classifiers from their votes, by EM",
    "Every classifier has a confusion matrix: how often it predicts each class for items of each "
    "class. EM finds these matrices and the items' labels together, starting from the shares of "
    "the votes. Known labels stay. Probabilities are not used, only what is predicted.",
    (
        "classifiers err independently of each other, given the label",
        "labeled items are a random sample of all items",
    ),
    (
        "classifiers make the same mistakes: their agreement then looks like accuracy",
        "there are fewer than three classifiers and no labels: many error rates explain the votes",
        "most classifiers are worse than a guess on a class: classes trade names",
    ),
    "Dawid and Skene (1979)",
    diagnostics={
        "error_rate": "how often each classifier errs, by its confusion matrix",
        "class_share": "share of the items in each class",
        "iterations": "EM steps taken",
        "last_change": "mean change of the class probabilities in the last step",
        "vote_patterns": "distinct combinations of votes and labels",
    },
    learns_from="hard predictions",
)
