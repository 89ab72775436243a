"""Kernels against independent implementations."""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import CancelledError

import numpy as np
import pytest
import scipy.fft
import scipy.optimize
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest, multivariate_normal

from fewlabels.kernels import counter_based, multinomial, simplex
from fewlabels.kernels.blocks import available_workers, go_on, map_blocks, spans, using_workers
from fewlabels.kernels.multinomial import fit_map, fit_maps, log_posterior
from fewlabels.kernels.votes import Patterns
from fewlabels.methods.ssme import kde as ssme_kde
from fewlabels.methods.ssme import kde_mixture
from fewlabels.methods.ssme.kde_mixture import KernelSums


class TestKeyed:
    def test_uniform_and_independent_of_each_other(self):
        key = np.arange(2000, dtype=np.uint64)
        u = counter_based.uniforms(key, np.arange(20), salt=1)
        assert kstest(u.ravel(), "uniform").pvalue > 1e-3
        assert np.abs(np.corrcoef(u.T) - np.eye(20)).max() < 5 / np.sqrt(2000)
        assert np.abs(np.corrcoef(u[:20]) - np.eye(20)).max() < 5 / np.sqrt(20)

    def test_exponentials_have_the_exponential_law(self):
        e = counter_based.exponentials(np.arange(5000, dtype=np.uint64), np.arange(2), salt=3)
        assert kstest(e.ravel(), "expon").pvalue > 1e-3

    def test_belongs_to_the_item(self):
        key = np.random.default_rng(0).integers(2**63, size=50).astype(np.uint64)
        order = np.random.default_rng(1).permutation(50)
        whole = counter_based.uniforms(key, np.arange(6), 7)
        np.testing.assert_array_equal(
            counter_based.uniforms(key[order], np.arange(3, 6), 7), whole[order, 3:]
        )

    def test_salt_and_stream_matter(self):
        key = np.arange(10, dtype=np.uint64)
        a, b = (counter_based.uniforms(key, np.arange(2), salt) for salt in (1, 2))
        assert (a != b).all()
        assert (a[:, 0] != a[:, 1]).all()

    def test_duplicates_are_told_apart(self):
        key = counter_based.hash_columns([np.array([1.0, 2.0, 1.0, 1.0])], 4)
        assert len(set(key.tolist())) == 2
        assert len(set(counter_based.distinguish(key).tolist())) == 4

    def test_zero_has_one_sign_and_nan_one_face(self):
        zeros = counter_based.hash_columns([np.array([0.0, -0.0])], 2)
        assert zeros[0] == zeros[1]
        nans = np.array([np.nan, -np.nan])
        hashed = counter_based.hash_columns([nans], 2)
        assert hashed[0] == hashed[1]


class TestBlocks:
    def test_results_keep_their_order_on_any_number_of_workers(self):
        for workers in (1, 2, 7):
            with using_workers(workers):
                assert available_workers() == workers
                assert list(map_blocks(lambda s: s.start, spans(100, 7))) == list(range(0, 100, 7))

    def test_results_that_nobody_takes_do_not_pile_up(self):
        begun = []
        with using_workers(2):
            results = map_blocks(begun.append, spans(100, 1))
            next(results)
            time.sleep(0.1)
            assert len(begun) <= 5
            assert len(list(results)) == 99
        assert len(begun) == 100

    def test_blocks_that_were_given_up_end_between_their_slices(self):
        ended = threading.Event()

        def long(first: bool) -> None:
            if first:
                time.sleep(0.05)
                raise KeyboardInterrupt
            try:
                while True:
                    time.sleep(0.01)
                    go_on()
            except CancelledError:
                ended.set()

        with using_workers(2), pytest.raises(KeyboardInterrupt):
            list(map_blocks(long, [True, False]))
        assert ended.wait(20)
        go_on()  # others go on

    def test_an_error_comes_through(self):
        def fail(_: slice) -> None:
            raise ValueError("broken block")

        with using_workers(2), pytest.raises(ValueError, match="broken block"):
            list(map_blocks(fail, spans(10, 3)))

    def test_spans_cover(self):
        assert [s.stop - s.start for s in spans(10, 4)] == [4, 4, 2]
        assert spans(0, 4) == []


class TestSimplex:
    def test_softmax_and_logsumexp(self):
        x = np.random.default_rng(0).normal(size=(5, 4, 3)) * 50
        np.testing.assert_allclose(simplex.softmax(x), scipy.special.softmax(x, axis=1))
        np.testing.assert_allclose(simplex.logsumexp(x), scipy.special.logsumexp(x, axis=1))

    def test_softmax_of_minus_infinity(self):
        np.testing.assert_array_equal(simplex.softmax(np.array([[0.0, -np.inf]])), [[1.0, 0.0]])

    def test_linear_pool_leaves_missing_classifiers_out(self):
        p = np.array([[[0.2, 0.8], [0.6, 0.4]], [[np.nan] * 2, [0.1, 0.9]], [[np.nan] * 2] * 2])
        pool = simplex.linear_pool(p, np.array([0.7, 0.3]))
        np.testing.assert_allclose(pool[:2], [[0.4, 0.6], [0.1, 0.9]])
        np.testing.assert_allclose(pool[2], [0.7, 0.3])

    def test_additive_log_ratio(self):
        p = np.array([[[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]])
        expected = [np.log(0.5 / 0.2), np.log(0.3 / 0.2), np.log(0.1 / 0.8), np.log(0.1 / 0.8)]
        np.testing.assert_allclose(simplex.additive_log_ratio(p)[0], expected)
        first = [np.log(0.3 / 0.5), np.log(0.2 / 0.5), 0.0, np.log(8)]
        np.testing.assert_allclose(simplex.additive_log_ratio(p, 0)[0], first, atol=1e-12)

    @settings(max_examples=50, deadline=None)
    @given(st.lists(st.floats(0, 1), min_size=2, max_size=5))
    def test_clip_is_on_the_simplex(self, values):
        p = np.array(values) + 1e-9
        clipped = simplex.clip(p / p.sum())
        assert clipped.min() > 0
        assert clipped.sum() == pytest.approx(1)


class TestMultinomial:
    def case(self, soft: bool = False):
        rng = np.random.default_rng(0)
        design = rng.normal(size=(30, 3, 4))
        if soft:
            evidence = rng.normal(size=(30, 3))
        else:
            evidence = np.full((30, 3), -np.inf)
            evidence[np.arange(30), rng.integers(3, size=30)] = 0
        return design, evidence, np.array([0.0, 0.5, 1.0, -1.0]), np.array([1.0, 2.0, 0.5, 4.0])

    @staticmethod
    def objective(beta, design, evidence, mean, precision):
        logits = design @ beta
        value = scipy.special.logsumexp(logits + evidence, axis=1)
        value = (value - scipy.special.logsumexp(logits, axis=1)).sum()
        return -(value - 0.5 * (precision * (beta - mean) ** 2).sum())

    @pytest.mark.parametrize("soft", [False, True])
    def test_mode_curvature_and_evidence(self, soft):
        case = self.case(soft)
        mode = fit_map(*case)
        assert mode.converged
        best = scipy.optimize.minimize(self.objective, np.zeros(4), case, tol=1e-12)
        np.testing.assert_allclose(mode.coefficients, best.x, atol=1e-5)
        step = 1e-4 * np.eye(4)
        x = mode.coefficients
        numeric = [
            [
                sum(
                    i * j * self.objective(x + i * a + j * b, *case)
                    for i in (1, -1)
                    for j in (1, -1)
                )
                / 4e-8
                for a in step
            ]
            for b in step
        ]
        np.testing.assert_allclose(mode.hessian, numeric, atol=1e-3)
        log_evidence = -self.objective(x, *case) + 0.5 * np.log(case[3]).sum()
        log_evidence -= 0.5 * np.linalg.slogdet(mode.hessian)[1]
        assert mode.log_evidence == pytest.approx(log_evidence)

    @pytest.mark.parametrize("part", [2**20, 12])
    @pytest.mark.parametrize("soft", [False, True])
    def test_coefficients_by_class_are_columns_that_nobody_lays_out(self, soft, part, monkeypatch):
        """An offset and a slope of every class, as columns of a design and as they are fitted."""
        monkeypatch.setattr(multinomial, "_PART", part)
        monkeypatch.setattr(multinomial, "_AT_ONCE", part)
        monkeypatch.setattr(multinomial, "_HELD", part)
        design, evidence, mean, precision = self.case(soft)
        every = np.broadcast_to(np.eye(3), (30, 3, 3))
        columns = np.concatenate([every, every * design[:, :, :1], design], axis=2)
        means, precisions = np.r_[np.zeros(6), mean], np.r_[np.full(6, 3.0), precision]
        laid = fit_map(columns, evidence, means, precisions)
        features = np.concatenate([design, np.ones((30, 3, 1))], axis=2)
        two = [np.array([row, row]) for row in ([0, 1, 2, 3], [4, 0], means, precisions)]
        for mode in fit_maps(features, evidence, *two):
            np.testing.assert_allclose(mode.coefficients, laid.coefficients, atol=1e-7)
            np.testing.assert_allclose(mode.hessian, laid.hessian, atol=1e-7)
            assert mode.log_evidence == pytest.approx(laid.log_evidence)
            beta = np.random.default_rng(0).normal(size=(5, 10))
            apart = log_posterior(
                design,
                features[:, :, [4, 0]],
                evidence,
                means,
                precisions,
                beta,
                np.ones(len(evidence)),
            )
            nothing = np.empty((30, 3, 0))
            together = log_posterior(
                columns, nothing, evidence, means, precisions, beta, np.ones(len(evidence))
            )
            np.testing.assert_allclose(apart, together)
        offsets = fit_map(design, evidence, means[3:], precisions[3:], offsets=True)
        laid = fit_map(columns[:, :, [0, 1, 2, *range(6, 10)]], evidence, means[3:], precisions[3:])
        np.testing.assert_allclose(offsets.coefficients, laid.coefficients, atol=1e-7)

    def test_without_data_the_prior_remains(self):
        design, evidence, mean, precision = self.case()
        mode = fit_map(design[:0], evidence[:0], mean, precision)
        np.testing.assert_allclose(mode.coefficients, mean)
        np.testing.assert_allclose(mode.hessian, np.diag(precision))
        assert mode.log_evidence == pytest.approx(0)


class TestPools:
    @pytest.mark.parametrize(("shape", "axis"), [((40, 3), 1), ((4000, 3), 1), ((300, 5, 2), 2),
                                                 ((300, 5, 2), 1), ((900, 9), 1), ((5, 900), 0),
                                                 ((300, 2, 40), 1)])  # fmt: skip
    def test_sums_along_a_short_axis_have_the_bits_of_numpys(self, shape, axis):
        x = np.random.default_rng(0).normal(size=shape)
        before = x.copy()
        for fold in (np.add, np.maximum):
            wanted = fold.reduce(x, axis=axis, keepdims=True)
            np.testing.assert_array_equal(simplex.along(fold, x, axis), wanted)
        np.testing.assert_array_equal(x, before)

    @pytest.mark.parametrize("root", [1e-9, 0.02, 0.9, 1.0, 7.0, 90.0, 1e9])
    def test_a_crossing_is_found_in_few_steps_or_the_nearer_end(self, root):
        asked = []

        def rising(t: float) -> float:
            asked.append(t)
            return math.atan(t - root)

        found = simplex.crossing(rising, -7.0, 7.0)
        assert found == pytest.approx(min(max(root, math.exp(-7)), math.exp(7)), rel=1e-12)
        assert len(asked) == len(set(asked)) < 20

    @pytest.mark.parametrize("classes", [2, 3])
    def test_pools_are_the_means_of_what_is_there(self, classes):
        rng = np.random.default_rng(0)
        p = rng.dirichlet(np.ones(classes), (400, 4))
        p[rng.random((400, 4)) < 0.3] = np.nan
        p[0] = np.nan
        c = simplex.centred_logs(p)
        f, g = simplex.Pool(np.ones(4), 1.0, 1.0).features(c)
        assert (f[0] == 0).all()
        assert (g[0] == 0).all()
        for i in range(1, 400):
            there = ~np.isnan(p[i, :, 0])
            if there.any():
                linear = np.log(p[i, there].mean(axis=0))
                np.testing.assert_allclose((f + g)[i], linear - linear.mean(), atol=1e-4)
                np.testing.assert_allclose((f - g)[i], c[i, there].mean(axis=0), atol=1e-12)


class TestGaussian:
    def points(self, n: int = 60, d: int = 3):
        return np.random.default_rng(0).normal(size=(n, d)) * 2

    @pytest.mark.few(1)
    @pytest.mark.parametrize("keep", [True, False])
    @pytest.mark.parametrize("leave_out", [True, False])
    def test_ratios_equal_a_double_loop(self, keep, leave_out):
        x = self.points()
        weights = np.random.default_rng(1).random((60, 2))
        kernel = np.array([[multivariate_normal.pdf(a, b, np.eye(3)) for b in x] for a in x])
        if leave_out:
            np.fill_diagonal(kernel, 0)
        expected = kernel @ weights
        found = KernelSums(x, x, np.arange(60), leave_out, keep).times(weights)
        np.testing.assert_allclose(found[:, 0] / found[:, 1], expected[:, 0] / expected[:, 1])

    def test_narrow_kernels_do_not_underflow(self):
        x = self.points() * 1e3
        found = KernelSums(x, x, np.arange(60), leave_out=True).times(np.ones((60, 1)))
        assert (found >= 1).all()

    @pytest.mark.parametrize("scale", [0.5, 30.0])
    @pytest.mark.parametrize("leave_out", [True, False])
    @pytest.mark.parametrize("cache", [0, 20_000, 1e9])
    def test_however_kernels_are_kept_sums_are_the_same(self, scale, leave_out, cache, monkeypatch):
        """All, those that are something beside the largest, some blocks, or none."""
        x = self.points(400) * scale
        weights = np.random.default_rng(1).random((400, 5)) + 0.1
        plain = KernelSums(x, x, np.arange(400), leave_out, keep=False)
        monkeypatch.setattr(kde_mixture, "CACHE_BYTES", cache)
        kept = KernelSums(x, x, np.arange(400), leave_out, least=0.1)
        kinds = [type(kernels).__name__ for kernels in kept._kept]
        if cache == 1e9:
            assert set(kinds) == {"csr_matrix" if scale == 30 else "ndarray"}
        np.testing.assert_allclose(kept.times(weights), plain.times(weights), rtol=1e-12)

    def test_self_share_of_narrow_and_wide_kernels(self):
        rows = np.arange(60)
        share, neighbours = KernelSums(
            self.points() * 1e3, self.points() * 1e3, np.arange(60)
        ).self_share(rows)
        assert share == pytest.approx(1)
        assert neighbours == pytest.approx(1)
        wide = self.points() * 1e-3
        share, neighbours = KernelSums(wide, wide, np.arange(60)).self_share(rows)
        assert share == pytest.approx(1 / 60, rel=1e-3)
        assert neighbours == pytest.approx(60, rel=1e-3)


class TestBandwidth:
    def test_improved_sheather_jones_follows_the_scale(self):
        x = np.random.default_rng(1).normal(size=(800, 1))
        once, _ = ssme_kde.improved_sheather_jones(x)
        thousandth, _ = ssme_kde.improved_sheather_jones(x / 1000 + 7)
        assert thousandth[0] == pytest.approx(once[0] / 1000, rel=1e-3)

    def test_improved_sheather_jones_is_near_the_optimum_of_a_known_density(self):
        rng = np.random.default_rng(2)
        n, means, sds = 20_000, np.array([-3.0, 2.0]), np.array([0.5, 1.5])
        part = rng.integers(2, size=n)
        x = rng.normal(means[part], sds[part])
        # h = (R(K) / (n R(f''))^(1/5)), Silverman (1986) 3.21, with R(f'') by quadrature.
        grid = np.linspace(-8, 10, 20_001)
        z = (grid[:, None] - means) / sds
        second = (0.5 * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) / sds**3 * (z**2 - 1)).sum(axis=1)
        roughness = (second**2).sum() * (grid[1] - grid[0])
        best = (1 / (2 * np.sqrt(np.pi) * n * roughness)) ** 0.2
        assert ssme_kde.improved_sheather_jones(x[:, None])[0][0] == pytest.approx(best, rel=0.1)

    @pytest.mark.parametrize("kind", ["normal", "gamma", "two", "thirds", "rounded", "line"])
    def test_the_smallest_crossing_is_found_as_by_trying_every_point(self, kind):
        rng = np.random.default_rng(3)
        x = {
            "normal": rng.normal(size=300),
            "gamma": rng.gamma(0.5, size=300),
            "two": np.r_[rng.normal(size=200), rng.normal(8, 0.05, size=100)],
            "thirds": rng.integers(0, 3, 200).astype(float),
            "rounded": np.round(rng.normal(size=300), 1),
            "line": np.linspace(0, 1, 5),
        }[kind]
        low, span = x.min() - np.ptp(x) / 10, np.ptp(x) * 1.2
        count = np.bincount(((x - low) * (2**12 / span)).astype(int), minlength=2**12)
        energy = (scipy.fft.dct(count / len(x))[1:] / 2) ** 2
        squares, n = np.arange(1.0, 2**12) ** 2, len(np.unique(x))

        def mapped(t: float) -> float:  # Botev et al., Algorithm 1
            for s in range(7, 1, -1):
                roughness = squares**s * energy * np.exp(-squares * np.pi**2 * t)
                f = float(2 * np.pi ** (2 * s) * roughness.sum())
                if f <= 0:
                    return 0.0
                odd = math.prod(range(1, 2 * s - 2, 2)) / math.sqrt(2 * np.pi)
                rest = 2 * odd * (1 + 0.5 ** (s - 0.5)) / 3 if s > 2 else 1 / (2 * math.sqrt(np.pi))
                t = (rest / (n * f)) ** (2 / (1 + 2 * s))
            return t

        grid = np.logspace(-14, -1, 80)
        gaps = np.array([t - mapped(t) for t in grid])
        crossing = np.flatnonzero((gaps[:-1] < 0) & (gaps[1:] >= 0))
        found, failed = ssme_kde.improved_sheather_jones(x[:, None])
        assert failed == (not len(crossing))
        if len(crossing):
            t = scipy.optimize.brentq(lambda t: t - mapped(t), *grid[crossing[0] : crossing[0] + 2])
            assert found[0] == pytest.approx(np.sqrt(t) * span, rel=1e-9)

    def test_constant_and_few_values_fall_back(self):
        x = np.column_stack([np.zeros(50), np.repeat([0.0, 1.0], 25)])
        h, failed = ssme_kde.improved_sheather_jones(x)
        assert failed >= 1
        assert np.isfinite(h).all()


@pytest.mark.parametrize("known", [True, False])
def test_classes_of_which_all_is_the_same_are_one(known, monkeypatch):
    """Of 60 classes 12 differ: mode, curvature and evidence are those of all 60."""
    rng = np.random.default_rng(5)
    features = rng.normal(size=(30, 12, 3))[:, np.r_[np.arange(11), np.full(49, 11)]]
    evidence = np.where(np.arange(60) == rng.integers(11, size=30)[:, None], 0.0, -np.inf)
    if not known:
        evidence = np.where(evidence == 0, 0.0, -1.5)
    columns, by_class = np.array([[0, 1], [2, 0]]), np.empty((2, 0), dtype=np.int64)
    asked = (features, evidence, columns, by_class, np.ones((2, 2)), np.full((2, 2), 4.0))
    power, sizes, find = rng.uniform(0.5, 2, size=30), [], multinomial.distinct_columns

    def counted(values):
        sizes.append(len(find(values).first))
        return find(values)

    monkeypatch.setattr(multinomial, "distinct_columns", counted)
    few = list(fit_maps(*asked, power=power))
    assert set(sizes) == {12}
    every = Patterns(np.arange(60), np.arange(60))
    monkeypatch.setattr(multinomial, "distinct_columns", lambda values: every)
    for one, other in zip(few, fit_maps(*asked, power=power), strict=True):
        np.testing.assert_allclose(one.coefficients, other.coefficients, atol=1e-9)
        np.testing.assert_allclose(one.hessian, other.hessian, atol=1e-8)
        np.testing.assert_allclose(one.log_evidence, other.log_evidence, atol=1e-9)
