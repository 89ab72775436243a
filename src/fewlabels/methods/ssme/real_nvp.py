"""RealNVP: an invertible map of score vectors with a tractable Jacobian, gradients by hand.

Items are columns here: arrays are (d, n), so that a half of the dimensions is a contiguous block of
rows, and a bias is one number per row. All parameters lie in one flat vector, of which the weights
are views, so that an optimiser is a handful of vector operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Array
from fewlabels.kernels.blocks import spans

BOUND = 2.0
"""Largest |log-scale| of one coupling: ten couplings may then stretch by e^10, not to infinity."""

BLOCK = 1024
"""Items at a time: enough that BLAS runs at full speed, few enough that memory stays small."""


class Weights(NamedTuple):
    """Weights (out, in) and biases (out, 1) of the three layers of one coupling's network."""

    first: Array
    first_bias: Array
    second: Array
    second_bias: Array
    last: Array
    last_bias: Array


@dataclass(frozen=True)
class Coupling:
    """One half of the dimensions, `moved`, is scaled and shifted by functions of the other."""

    given: slice
    moved: slice
    n_given: int
    n_moved: int


@dataclass(frozen=True)
class RealNVP:
    """Architecture of a flow of affine couplings; it holds no parameters.

    A coupling maps moved -> moved * exp(s(given)) + t(given). Here s and t come from one network
    of three fully connected layers with tanh in between, and s is bounded by `BOUND`. The halves
    take turns. The only coupling that one dimension can have is without a condition: the network
    then sees nothing, and its biases make an affine map.

    `n_dimensions` is the length d of a score vector, `hidden` the width of the networks. Source:
    Dinh, Sohl-Dickstein, Bengio (2017), equations 4 to 8.
    """

    n_dimensions: int
    n_couplings: int = 10
    hidden: int = 128
    dtype: type[np.floating] = np.float32

    @cached_property
    def couplings(self) -> tuple[Coupling, ...]:
        """The couplings in the order in which they apply to scores."""
        half = (self.n_dimensions + 1) // 2
        halves = slice(0, half), slice(half, self.n_dimensions)
        sizes = half, self.n_dimensions - half
        turns = [(1 - c % 2, c % 2) for c in range(self.n_couplings)]
        return tuple(
            Coupling(halves[given], halves[moved], sizes[given], sizes[moved])
            for given, moved in turns
            if sizes[moved]
        )

    @cached_property
    def size(self) -> int:
        """Number of parameters."""
        return sum(rows * columns for c in self.couplings for rows, columns in self._shapes(c))

    def start(self, rng: np.random.Generator) -> Array:
        """Parameters at which the flow is the identity: the last layers are zero."""
        parameters = np.zeros(self.size, self.dtype)
        for weights in self.views(parameters):
            for layer in (weights.first, weights.second):
                # Glorot and Bengio (2010): keeps the variance of activations under tanh.
                width = np.sqrt(6 / (layer.shape[0] + max(layer.shape[1], 1)))
                layer[...] = rng.uniform(-width, width, layer.shape)
        return parameters

    def views(self, flat: Array) -> tuple[Weights, ...]:
        """Each coupling's weights, as views of a flat vector (of parameters or of gradients)."""
        out, place = [], 0
        for coupling in self.couplings:
            parts = []
            for rows, columns in self._shapes(coupling):
                parts.append(flat[place : place + rows * columns].reshape(rows, columns))
                place += rows * columns
            out.append(Weights(*parts))
        return tuple(out)

    def forward(self, parameters: Array, x: Array) -> tuple[Array, Array]:
        """Latent z (d, n) of scores x (d, n), and log |det dz/dx| (n,)."""
        z, log_det = np.empty(x.shape, self.dtype), np.empty(x.shape[1], self.dtype)
        weights = self.views(parameters)
        for block in spans(x.shape[1], BLOCK):
            trace = Trace(self, block.stop - block.start, keep=False)
            z[:, block], log_det[block] = trace.forward(weights, x[:, block])
        return z, log_det

    def _shapes(self, coupling: Coupling) -> tuple[tuple[int, int], ...]:
        hidden, out = self.hidden, 2 * coupling.n_moved
        return (
            (hidden, coupling.n_given), (hidden, 1),
            (hidden, hidden), (hidden, 1),
            (out, hidden), (out, 1),
        )  # fmt: skip


class Trace:
    """Memory for one pass of n items through a flow and back, allocated once.

    With `keep` False the couplings share their memory, and there is no way back.
    """

    def __init__(self, flow: RealNVP, n: int, keep: bool = True) -> None:
        self.flow = flow
        sizes = [c.n_moved for c in flow.couplings]
        if keep:
            self.layers = [_Layers(flow, m, n) for m in sizes]
        else:
            shared = {m: _Layers(flow, m, n) for m in set(sizes)}
            self.layers = [shared[m] for m in sizes]
        self.z = np.empty((flow.n_dimensions, n), flow.dtype)
        self.log_det = np.empty(n, flow.dtype)
        self._ones = np.ones(n, flow.dtype)
        self._hidden = np.empty((2, flow.hidden, n), flow.dtype)
        widest = max(sizes, default=0)
        self._out = np.empty((2 * widest, n), flow.dtype)
        self._given = np.empty((flow.n_dimensions, n), flow.dtype)

    def forward(self, weights: tuple[Weights, ...], x: Array) -> tuple[Array, Array]:
        """Latent z (d, n) of x (d, n) and log |det| (n,): this memory, good until the next pass."""
        self.z[...] = x
        self.log_det[...] = 0
        for coupling, own, layers in zip(self.flow.couplings, weights, self.layers, strict=True):
            layers.run(own, self.z[coupling.given])
            moved = self.z[coupling.moved]
            np.copyto(layers.before, moved)
            moved *= layers.stretch
            moved += layers.shift
            self.log_det += layers.log_scale.sum(axis=0)
        return self.z, self.log_det

    def backward(
        self,
        weights: tuple[Weights, ...],
        gradient_z: Array,
        gradient_log_det: Array,
        out: tuple[Weights, ...],
    ) -> None:
        """Gradient by the parameters, into `out`, of a function of the last z and log |det|.

        Its derivative by z, (d, n), becomes that by x. z is taken back through the flow on the way:
        `Trace.z` ends as x.
        """
        steps = zip(self.flow.couplings, weights, self.layers, out, strict=True)
        for coupling, own, layers, gradient in reversed(list(steps)):
            by_moved = gradient_z[coupling.moved]
            self.z[coupling.moved] = layers.before
            m = coupling.n_moved
            by_out = self._out[: 2 * m]
            by_out[m:] = by_moved
            by_moved *= layers.stretch
            by_scale = by_out[:m]
            np.multiply(by_moved, layers.before, out=by_scale)
            by_scale += gradient_log_det
            # d s / d raw = 1 - tanh^2; `bend` is tanh(raw / BOUND).
            np.multiply(layers.bend, layers.bend, out=layers.bend)
            np.subtract(1, layers.bend, out=layers.bend)
            by_scale *= layers.bend
            self._network(own, layers, self.z[coupling.given], by_out, gradient)
            by_given = self._given[: coupling.n_given]
            np.matmul(own.first.T, self._hidden[1], out=by_given)
            gradient_z[coupling.given] += by_given

    def _network(
        self, own: Weights, layers: _Layers, given: Array, by_out: Array, gradient: Weights
    ) -> None:
        """Gradients of one network's weights; what its first layer receives is in `_hidden[1]`."""
        by_second, by_first = self._hidden
        np.matmul(by_out, layers.second.T, out=gradient.last)
        np.matmul(by_out, self._ones, out=gradient.last_bias[:, 0])
        np.matmul(own.last.T, by_out, out=by_second)
        _through_tanh(by_second, layers.second)
        np.matmul(by_second, layers.first.T, out=gradient.second)
        np.matmul(by_second, self._ones, out=gradient.second_bias[:, 0])
        np.matmul(own.second.T, by_second, out=by_first)
        _through_tanh(by_first, layers.first)
        np.matmul(by_first, given.T, out=gradient.first)
        np.matmul(by_first, self._ones, out=gradient.first_bias[:, 0])


class _Layers:
    """What one coupling computes for n items."""

    def __init__(self, flow: RealNVP, n_moved: int, n: int) -> None:
        self.first, self.second = (np.empty((flow.hidden, n), flow.dtype) for _ in range(2))
        self._out = np.empty((2 * n_moved, n), flow.dtype)
        self.bend, self.shift = self._out[:n_moved], self._out[n_moved:]
        self.log_scale, self.stretch, self.before = (
            np.empty((n_moved, n), flow.dtype) for _ in range(3)
        )

    def run(self, weights: Weights, given: Array) -> None:
        """Log-scale, its exponential, and shift, from the other half (n_given, n)."""
        np.matmul(weights.first, given, out=self.first)
        self.first += weights.first_bias
        np.tanh(self.first, out=self.first)
        np.matmul(weights.second, self.first, out=self.second)
        self.second += weights.second_bias
        np.tanh(self.second, out=self.second)
        np.matmul(weights.last, self.second, out=self._out)
        self._out += weights.last_bias
        self.bend /= BOUND
        np.tanh(self.bend, out=self.bend)
        np.multiply(self.bend, BOUND, out=self.log_scale)
        np.exp(self.log_scale, out=self.stretch)


def _through_tanh(gradient: Array, value: Array) -> None:
    """Multiply a gradient by tanh' = 1 - tanh^2, in place; `value` (tanh) is used up."""
    np.multiply(value, value, out=value)
    np.subtract(1, value, out=value)
    gradient *= value
