"""The flow written a second time, item by item, for any library that looks like numpy."""

from __future__ import annotations

from typing import Any

from fewlabels.methods.ssme.real_nvp import RealNVP

BOUND = 2.0


def naive_flow(numpy: Any, flow: RealNVP, parameters: Any, x: Any) -> tuple[Any, Any]:
    """Latent z (d,) and log |det| of one item x (d,); `numpy` may be autograd's."""
    half = (flow.n_dimensions + 1) // 2
    parts, log_det, place = [x[:half], x[half:]], 0.0, 0
    for c in range(flow.n_couplings):
        given, moved = parts[(c + 1) % 2], parts[c % 2]
        if len(moved) == 0:
            continue
        value = given
        for rows in (flow.hidden, flow.hidden, 2 * len(moved)):
            weight = parameters[place : place + rows * len(value)].reshape(rows, len(value))
            place += rows * len(value) + rows
            out = numpy.dot(weight, value) + parameters[place - rows : place]
            value = numpy.tanh(out)
        log_scale = BOUND * numpy.tanh(out[: len(moved)] / BOUND)
        parts[c % 2] = moved * numpy.exp(log_scale) + out[len(moved) :]
        log_det = log_det + numpy.sum(log_scale)
    return numpy.concatenate(parts), log_det
