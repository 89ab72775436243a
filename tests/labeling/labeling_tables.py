"""Made-up items to label."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

HOSTILE = "<img src=x onerror='window.ran=1'><script>window.ran=1</script>\u202e\n\x1b[31m"
"""What no text may become: markup, a turn of direction, a command to a terminal."""


def table_of(n: int = 60, classes: tuple[str, str] = ("fine", "toxic"), **more: Any) -> pa.Table:
    """Items with a text and two classifiers, none of them labeled."""
    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=n)
    columns: dict[str, Any] = {"id": [f"c{i:03d}" for i in range(n)]}
    columns["text"] = [f"comment number {i} says {'a bad' if t else 'some'} thing"
                       for i, t in enumerate(truth)]  # fmt: skip
    for model, spread in (("good", 0.8), ("poor", 2.0)):
        p = 1 / (1 + np.exp(-rng.normal(2 * (2 * truth - 1), spread)))
        columns |= {f"p__{model}__{classes[1]}": p, f"p__{model}__{classes[0]}": 1 - p}
    return pa.table(columns | more)
