"""Benchmarks: the protocols of the papers on any files of predictions.

What happens, in order:

1. `protocol`: a TOML file and options become one `Protocol`.
2. `datasets`, `semisynthetic`: files become worlds, in which every label is known.
3. `plan`: all cells (one method on one split, the truth of a run, a size of the curve), in jobs.
4. `pool`, `cells`: processes compute them, and keep each as its own file (`parts`) when it is done.
5. `merge`: the parts become sorted tidy rows (`results`), each estimate beside its truth.
6. `summary`: tables and figures as a plain dictionary, which `fewlabels.report` renders.

What needs histograms of labels and no methods of `fewlabels.estimate` is read, planned, computed
and summed up by `fewlabels.bench.disagreement`; all else is the same (`runner.conduct`).

Traps: histograms and votes would tell the truth, so no method sees them; labeled items of the
released sampler hold more of a rare class than the data; levels of one run share their split and
seed, so that differences between them are paired; a part is only taken over if the fingerprint of
all that it depends on is the same (`manifest.fingerprint`), so a new field of `Protocol` either
belongs there or among `manifest.GROWS`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fewlabels.bench.protocol import Protocol, load, names
    from fewlabels.bench.results import Results
    from fewlabels.bench.runner import run
    from fewlabels.bench.summary import summarise

__all__ = ["Protocol", "Results", "load", "names", "run", "summarise"]

# Nothing is imported before it is asked for: listing the protocols needs no numpy.
_LAZY = {
    "Protocol": "fewlabels.bench.protocol",
    "Results": "fewlabels.bench.results",
    "load": "fewlabels.bench.protocol",
    "names": "fewlabels.bench.protocol",
    "run": "fewlabels.bench.runner",
    "summarise": "fewlabels.bench.summary",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'fewlabels.bench' has no attribute {name!r}")
