"""Adam: steps scaled by running moments of the gradient."""

from __future__ import annotations

import numpy as np

from fewlabels.kernels.arrays import Array


class Adam:
    """State of the optimiser for one flat vector of parameters, updated in place.

    Source: Kingma, Ba (2015), algorithm 1; decoupled weight decay, Loshchilov, Hutter (2019).

    Parameters
    ----------
    decay
        Share of every parameter that is taken away per step, relative to the learning rate.
    clip
        Largest norm of a gradient; longer ones are shortened to it.
    """

    def __init__(
        self, parameters: Array, *, decay: float = 0.0, clip: float = np.inf,
        beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
    ) -> None:  # fmt: skip
        self.parameters = parameters
        self.decay, self.clip = decay, clip
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
        self.mean, self.square, self._step = (np.zeros_like(parameters) for _ in range(3))
        self.taken = 0

    def ascend(self, gradient: Array, rate: float) -> float:
        """One step up the gradient, which is used up; returns its norm before clipping."""
        norm = float(np.sqrt(np.dot(gradient, gradient)))
        if norm > self.clip:
            gradient *= self.clip / norm
        self.taken += 1
        self.mean *= self.beta1
        np.multiply(gradient, 1 - self.beta1, out=self._step)
        self.mean += self._step
        gradient *= gradient
        gradient *= 1 - self.beta2
        self.square *= self.beta2
        self.square += gradient
        np.sqrt(self.square, out=self._step)
        unbiased = np.sqrt(1 - self.beta2**self.taken)
        self._step += self.epsilon * unbiased
        np.divide(self.mean, self._step, out=self._step)
        self._step *= rate * unbiased / (1 - self.beta1**self.taken)
        if self.decay:
            self.parameters *= 1 - rate * self.decay
        self.parameters += self._step
        return norm
