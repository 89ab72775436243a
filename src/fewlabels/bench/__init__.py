"""Benchmarks: the protocols of the papers on any files of predictions.

What happens, in order:

1. `protocol`: a TOML file and options become one `Protocol`.
2. `datasets`, `semisynthetic`: files become worlds, in which every label is known.
3. `experiment`: all cells (one method on one split, the truth of a run, a size of the curve), in
   jobs; and how one is computed. For protocols of label histograms `disagreement` says both.
4. `runner`: processes compute the cells, and keep each as a line of one file (`folder`) when it is
   done; at the end they become sorted tidy rows (`results`), each estimate beside its truth.
5. `summary`: errors run by run (`comparisons`) become tables and figures (`tables`) in a plain
   dictionary, which `fewlabels.report` renders.

Traps: histograms and votes would tell the truth, so no method sees them; labeled items of the
released sampler hold more of a rare class than the data; levels of one run share their split and
seed, so that differences between them are paired; a cell is only taken over if the fingerprint of
all that it depends on is the same (`folder.fingerprint`), so a new field of `Protocol` either
belongs there or among `folder.GROWS`.
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
