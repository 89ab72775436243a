"""Protocols of the papers on any files of predictions: a runner that resumes, a table, a page.

What happens, in order:

1. `protocol`: a TOML file and options become one `Protocol`.
2. `datasets`, `semisynthetic`: files become worlds, in which every label is known.
3. `experiment`: all cells (one method on one split, the truth of a run, a size of the curve), in
   jobs; and how one is computed. For protocols of label histograms `disagreement` says both.
4. `runner`: processes compute the cells, and keep each as a line of one file (`folder`) when it is
   done; at the end they become one long table (`results`), each estimate beside its truth.
5. `errors` averages them run by run; `tables`, `figures` and `page` write what is shown.

It stands on the package beside it, which imports nothing of it. Its own folder is on the path of
modules (`python -m benchmarks`), as for the scripts.

Traps: histograms and votes would tell the truth, so no method sees them; labeled items of the
released sampler hold more of a rare class than the data; levels of one run share their split and
seed, so that differences between them are paired; a cell is only taken over if the fingerprint of
all that it depends on is the same (`folder.fingerprint`), so a new field of `Protocol` either
belongs there or among `folder.GROWS`.
"""

from bench.protocol import Protocol, load, names
from bench.results import Results
from bench.runner import run

__all__ = ["Protocol", "Results", "load", "names", "run"]
