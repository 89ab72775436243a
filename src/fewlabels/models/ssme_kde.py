"""SSME-KDE: a semi-supervised mixture whose classes are kernel densities of classifier scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, Literal

import numpy as np

from fewlabels.errors import Status, UsageError
from fewlabels.kernels import bandwidth as rules
from fewlabels.kernels.arrays import Array, Bools, Floats, Ints, UInts
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.gaussian import KernelSums
from fewlabels.kernels.keyed import exponentials, uniforms
from fewlabels.kernels.simplex import additive_log_ratio, clip, linear_pool, softmax
from fewlabels.models.base import FittedLabelModel, LabelModel, with_probabilities
from fewlabels.models.em import EMResult, expectation_maximisation
from fewlabels.models.ensemble import with_evidence
from fewlabels.posterior import LabelPosterior, draw_labels
from fewlabels.predictions import Predictions

NARROW = 0.99
"""Self-share above which the kernels are too narrow for EM to learn from unlabeled items."""

_RULES = {
    "official": rules.official,
    "scott": rules.scott,
    "normal-reference": rules.normal_reference,
}


@dataclass(frozen=True)
class SSMEKDE(LabelModel):
    """P(scores | class) by kernel densities, P(class), and labels where they are known, by EM.

    Source: Shanmugam et al. (2025), section 4; bandwidth Botev et al. (2010).

    Parameters
    ----------
    bandwidth
        "isj" (improved Sheather-Jones per dimension), "official" (the released code's), "scott",
        "normal-reference", a number, or one number per dimension (M(K-1) of them).
    epochs
        EM steps; 50 unless given (20 with `compat`).
    leave_one_out
        Leave a point's own kernel out of its density. Without this, narrow kernels keep every
        item at its starting label.
    init
        Labels at the start: "draw" from the mean classifier (the paper), or "soft", its
        probabilities themselves.
    unlabeled_weight
        Weight of an unlabeled item against a labeled one (the paper's lambda).
    compat
        "official" reproduces the released code: one isotropic bandwidth, 20 epochs, labeled
        items weighted tenfold and not clamped during EM, class shares from drawn labels, class 0
        as reference with more than two classes, and clipping of exact zeros and ones only.
    replicates
        Bootstrap refits for the parameters' uncertainty.
    max_support
        Up to this many items EM uses all; beyond, half as many support points (labeled ones
        first), with the labels' weight scaled to match. The other items get their posterior in
        one pass.
    """

    bandwidth: str | float | tuple[float, ...] = "isj"
    epochs: int | None = None
    leave_one_out: bool = False
    init: Literal["draw", "soft"] = "draw"
    unlabeled_weight: float = 1.0
    compat: Literal["official"] | None = None
    replicates: int = 20
    max_support: int = 20_000

    def __post_init__(self) -> None:
        if not isinstance(self.bandwidth, str | float | int):
            widths = tuple(float(h) for h in self.bandwidth)
            object.__setattr__(self, "bandwidth", widths)
        if self.compat not in (None, "official"):
            raise UsageError(f"`compat` must be None or 'official'; got {self.compat!r}")
        if self.init not in ("draw", "soft"):
            raise UsageError(f"`init` must be 'draw' or 'soft'; got {self.init!r}")
        if isinstance(self.bandwidth, str) and self.bandwidth not in ("isj", *_RULES):
            raise UsageError(
                f"`bandwidth` must be 'isj', {', '.join(map(repr, _RULES))} or numbers; "
                f"got {self.bandwidth!r}"
            )
        for name, count in (("epochs", self.epochs), ("replicates", self.replicates)):
            if count is not None and (not isinstance(count, Integral) or count < 1):
                raise UsageError(f"`{name}` must be a whole number, at least 1; got {count!r}")

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Choose the bandwidth and the support points, and run EM."""
        served, probabilities = with_probabilities(predictions, "ssme-kde")
        salt = int(rng.integers(2**63))
        scores = self.log_ratios(probabilities)
        h, failed = self._bandwidths(scores)
        support = self._support(served, salt)
        mixture = _Mixture(
            model=self,
            models=served.models,
            bandwidths=h,
            points=scores[support] / h,
            keys=served.keys[support],
            evidence=served.evidence[support],
            pool=linear_pool(probabilities[support]),
            label_scale=_label_scale(served.labeled, support),
            salt=salt,
        )
        return _FittedKDE(mixture, mixture.fit(), failed)

    def log_ratios(self, p: Floats) -> Floats:
        """Additive log-ratios (n, M(K-1)) of probabilities (n, M, K), as this method clips them.

        A missing prediction is the mean of the other classifiers' there.
        """
        if self.compat == "official":
            p = np.where(p <= 0, 1e-4, np.where(p >= 1, 1 - 1e-4, p))
            reference = 0 if p.shape[2] > 2 else -1
        else:
            p = clip(p)
            reference = -1
        missing = np.isnan(p[:, :, 0])
        if missing.any():
            p = np.where(missing[:, :, None], clip(linear_pool(p))[:, None, :], p)
        return additive_log_ratio(p, reference)

    def _bandwidths(self, scores: Floats) -> tuple[Floats, int]:
        rule = "official" if self.compat == "official" else self.bandwidth
        failed = 0
        if rule == "isj":
            h, failed = rules.improved_sheather_jones(scores)
        elif isinstance(rule, str):
            h = _RULES[rule](scores)
        else:
            h = np.atleast_1d(np.asarray(rule, dtype=float))
            if h.shape not in ((1,), (scores.shape[1],)) or not (h > 0).all():
                raise UsageError(
                    f"`bandwidth` must be one positive number or {scores.shape[1]} of them, one "
                    f"per log-ratio; got {self.bandwidth!r}"
                )
        # A dimension without spread carries no information; any width will do there.
        return np.where(h > 0, h, 1.0) * np.ones(scores.shape[1]), failed

    def _support(self, predictions: Predictions, salt: int) -> Ints:
        n = predictions.n_items
        if n <= self.max_support:
            return np.arange(n)
        place = uniforms(predictions.keys, np.arange(1), salt)[:, 0]
        place[predictions.labeled] = -1.0
        size = max(self.max_support // 2, min(predictions.n_labeled, self.max_support))
        return np.sort(np.argpartition(place, size)[:size])


def _label_scale(labeled: Bools, support: Ints) -> float:
    """Share of the unlabeled items that are support points: labels must not outweigh them more."""
    unlabeled = int((~labeled).sum())
    return float((~labeled[support]).sum() / unlabeled) if unlabeled else 1.0


@dataclass(frozen=True, eq=False)
class _Mixture:
    """The support points and what is known there; EM over one or several row weightings."""

    model: SSMEKDE
    models: tuple[str, ...]
    bandwidths: Floats
    points: Floats
    keys: UInts
    evidence: Floats
    pool: Floats
    label_scale: float
    salt: int

    @cached_property
    def labeled(self) -> Bools:
        return (self.evidence != 0).any(axis=1)

    @cached_property
    def kernel(self) -> KernelSums:
        own = np.arange(len(self.points))
        return KernelSums(self.points, self.points, own, leave_out=self.model.leave_one_out)

    def fit(self) -> EMResult:
        """EM from the method's own start, every item counting once."""
        return self._run(np.ones((len(self.points), 1)), first_stream=0)

    def refit(self, size: int) -> EMResult:
        """EM of `size` bootstrap replicates at once: Exp(1) row weights and new starts."""
        return self._run(exponentials(self.keys, np.arange(size), self.salt), first_stream=1)

    def _run(self, row_weights: Floats, first_stream: int) -> EMResult:
        official = self.model.compat == "official"
        base = row_weights[:, None, :] * self.item_weights[:, None, None]
        start = self._start(row_weights.shape[1], first_stream)
        counter = iter(range(10**9))

        def step(w: Floats) -> Floats:
            if official:
                shares = self._drawn_shares(w, next(counter), first_stream)
                return self.e_step(self.kernel, w * base, w, shares, None, loo=None)
            return self.e_step(
                self.kernel, w * base, w * base, None, self.evidence, loo=np.arange(len(w))
            )

        epochs = self.model.epochs or (20 if official else 50)
        return expectation_maximisation(step, start, iterations=epochs)

    @cached_property
    def item_weights(self) -> Floats:
        """Weight of each support point in the densities."""
        if self.model.compat == "official":
            return np.where(self.labeled, 10.0 * self.label_scale, 1.0)
        return np.where(self.labeled, self.label_scale, self.model.unlabeled_weight)

    def starting_labels(self) -> Floats:
        """Class weights that EM starts from, (m, K)."""
        return self._start(1, 0)[:, :, 0]

    def _start(self, size: int, first_stream: int) -> Floats:
        k = self.evidence.shape[1]
        pool = np.repeat(with_evidence(self.pool, self.evidence)[:, :, None], size, axis=2)
        if self.model.init == "soft" and self.model.compat is None:
            return pool
        labels = draw_labels(
            pool, self.keys, np.arange(first_stream, first_stream + size), self.salt
        )
        return (labels[:, None, :] == np.arange(k)[None, :, None]).astype(float)

    def _drawn_shares(self, w: Floats, epoch: int, first_stream: int) -> Floats:
        """Class shares of one drawn assignment, known labels kept (the released code's)."""
        size = w.shape[2]
        streams = 1_000_000 + 1000 * epoch + first_stream + np.arange(size)
        total = w.sum(axis=1, keepdims=True)
        labels = draw_labels(w / np.where(total > 0, total, 1.0), self.keys, streams, self.salt)
        known = np.flatnonzero(self.labeled)
        labels[known] = np.argmax(self.evidence[known], axis=1)[:, None]
        return np.stack([(labels == k).mean(axis=0) for k in range(w.shape[1])])

    def e_step(
        self,
        kernel: KernelSums,
        weights: Floats,
        shares_of: Floats,
        shares: Floats | None,
        evidence: Floats | None,
        loo: Ints | None,
    ) -> Floats:
        """Posterior (n, K, B) of the kernel's queries from the support's class weights (m, K, B).

        `loo` (n,) says which support point each query is, -1 none; its weight leaves the
        normaliser as its kernel leaves the sum.
        """
        if shares is None:
            shares = shares_of.sum(axis=0) / shares_of.sum(axis=(0, 1))
        normaliser = np.broadcast_to(weights.sum(axis=0), (len(kernel.queries), *weights.shape[1:]))
        if self.model.leave_one_out and loo is not None:
            mine = np.flatnonzero(loo >= 0)
            normaliser = normaliser.copy()
            normaliser[mine] -= weights[loo[mine]]
        with np.errstate(divide="ignore"):
            logits = np.log(kernel.times(weights))
            logits -= np.log(np.maximum(normaliser, np.finfo(float).tiny))
            log_shares = np.log(shares)
            logits += log_shares
        if evidence is not None:
            known = np.flatnonzero((evidence != 0).any(axis=1))
            # A known label wins even where its class has no density at all.
            logits[known] = np.maximum(logits[known], -1e6) + evidence[known][:, :, None]
        logits = np.where(np.isneginf(logits.max(axis=1, keepdims=True)), log_shares, logits)
        return softmax(logits, out=logits)


@dataclass(frozen=True, eq=False)
class _FittedKDE(FittedLabelModel):
    mixture: _Mixture
    result: EMResult
    failed_bandwidths: int

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        served, given = with_probabilities(
            predictions.select_models(self.mixture.models), "ssme-kde"
        )
        rows = _Rows(self.mixture, served, given)
        probabilities = rows.extend(self.result, np.ones((len(self.mixture.points), 1)))[:, :, 0]
        share, neighbours = self.mixture.kernel.self_share(~self.mixture.labeled)
        narrow = share > NARROW and not self.mixture.model.leave_one_out
        return LabelPosterior(
            probabilities,
            _Replicates(rows, self.mixture.model.replicates),
            predictions.keys,
            salt=self.mixture.salt,
            value_from="marginals",
            status=self._status(narrow),
            warnings=self._warnings(narrow, share),
            diagnostics={
                "bandwidth": [float(h) for h in self.mixture.bandwidths],
                "self_share": share,
                "effective_neighbours": neighbours,
                "epochs": self.result.iterations,
                "last_change": self.result.change,
                "support_points": len(self.mixture.points),
                "bandwidths_not_found": self.failed_bandwidths,
            },
        )

    def _status(self, narrow: bool) -> Status:
        if not self.result.converged:
            return Status.NOT_CONVERGED
        return Status.ASSUMPTION if narrow or not self.mixture.labeled.any() else Status.OK

    def _warnings(self, narrow: bool, share: float) -> tuple[str, ...]:
        said = []
        if not self.mixture.labeled.any():
            said.append(
                "assumption: no labels; the classes are those that the averaged classifier starts "
                "EM with"
            )
        if narrow:
            said.append(
                f"the density is too narrow for EM to learn from the unlabeled items (self-share "
                f"{share:.3f}); the estimate equals the averaged classifier"
            )
        if not self.result.converged:
            said.append(
                f"not-converged: after {self.result.iterations} epochs the posteriors still change "
                f"by {self.result.change:.2g} on average"
            )
        if self.failed_bandwidths:
            said.append(
                f"no improved Sheather-Jones bandwidth in {self.failed_bandwidths} dimensions (too "
                "few distinct scores); the normal reference stands in"
            )
        return tuple(said)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The items of a posterior: support points keep EM's result, the others get one E-step."""

    mixture: _Mixture
    predictions: Predictions
    probabilities: Floats

    @cached_property
    def own(self) -> Ints:
        """Place of each item among the support points, -1 where it is none, (n,)."""
        order = np.argsort(self.mixture.keys)
        ordered = self.mixture.keys[order]
        place = np.searchsorted(ordered, self.predictions.keys)
        place = np.minimum(place, len(ordered) - 1)
        hit = ordered[place] == self.predictions.keys
        result: Ints = np.where(hit, order[place], -1)
        return result

    def extend(self, result: EMResult, row_weights: Floats) -> Floats:
        """P(label) of every item, (n, K, B), known labels at 1."""
        mixture, n = self.mixture, self.predictions.n_items
        out = np.empty((n, *result.responsibilities.shape[1:]))
        inside = np.flatnonzero(self.own >= 0)
        out[inside] = result.responsibilities[self.own[inside]]
        outside = np.flatnonzero(self.own < 0)
        if len(outside):
            scores = mixture.model.log_ratios(self.probabilities[outside]) / mixture.bandwidths
            weights = result.before * row_weights[:, None, :] * mixture.item_weights[:, None, None]
            shares = weights.sum(axis=0) / weights.sum(axis=(0, 1))
            for block in spans(len(outside), 4096):
                kernel = KernelSums(
                    scores[block], mixture.points, np.full(len(scores[block]), -1), keep=False
                )
                out[outside[block]] = mixture.e_step(kernel, weights, weights, shares, None, None)
        # Rounding, and the released code's unclamped EM, leave labeled items off their label.
        evidence = self.predictions.evidence
        known = np.flatnonzero(np.isneginf(evidence).any(axis=1))
        out[known] = np.isfinite(evidence[known])[:, :, None]
        return out


@dataclass(frozen=True, eq=False)
class _Replicates:
    """Bootstrap refits as parameter draws, run when the first interval is asked for."""

    rows: _Rows
    size: int

    @cached_property
    def probabilities(self) -> Array:
        mixture = self.rows.mixture
        weights = exponentials(mixture.keys, np.arange(self.size), mixture.salt)
        return self.rows.extend(mixture.refit(self.size), weights).astype(np.float32)

    def block(self, index: Ints, rows: Any) -> Floats:
        block: Floats = self.probabilities[rows][:, :, index].astype(np.float64)
        return block / block.sum(axis=1, keepdims=True)
