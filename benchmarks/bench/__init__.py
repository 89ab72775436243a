"""Protocols of the papers, and of one's own, on files of predictions.

What happens, in order:

1. `protocol`: a TOML file and options become one `Protocol`.
2. `datasets`, `semisynthetic`: files become data sets in which every label is known (`world`).
3. `experiment`: the cells (a method on a split, the truth of a run, a size of the curve), in jobs
   that share a split, and how one is computed; for histograms of labels, `disagreement`.
4. `runner`: processes compute cells, each a line of a file when its split is done (`runs`).
5. `results`: the folder, and one long table, a row per estimate, beside its truth.
6. `errors` averages them run by run; `tables`, `figures` and `page` show them.

It imports the public names of fewlabels, and how a method is read from text. Start at `runner.run`.

Traps: histograms and votes would tell the truth, so no method sees them; labeled items of the
released sampler hold more of a rare class than the data; levels of a run share their split and
seed, so that differences between them are paired; a cell is taken over on resuming only if the
fingerprint of all that it depends on is the same (`runner.fingerprint`).
"""

from bench.protocol import Protocol, load, names
from bench.results import Results
from bench.runner import run

__all__ = ["Protocol", "Results", "load", "names", "run"]
