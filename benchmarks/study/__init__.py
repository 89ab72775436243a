"""The study: errors and intervals of every method, on real sets of classifiers and on made ones.

What happens, in order:

1. `protocol`: what is asked for becomes a `Study`, a fractional design of sets, sizes and methods.
2. `sets`, `families`: real sets are read, made ones made once and kept; the truth of each is the
   metric on all its items.
3. `trial`: a part, some runs of one method at one place, reduced to means over the classifiers.
4. `runner`: parts on every core, kept by `bench.folder`, block after block of runs, so
   that a stop at any time leaves all cells with about equally many; `facts` of the sets are kept
   beside them, so that a page can be written without the sets.
5. `results`, `statistics`: runs of every cell; means, paired ratios and their standard errors.
6. `targets`, `heading`, `page`: what the default promises, which cells break it, and the page that
   says so.

Traps: the classifiers of a run share its labels and miss together, so errors are averaged over
them before anything is said of runs; items of a run depend on its number and place alone, so that
methods added later are paired with those that were there; the code of a method is not part of the
fingerprint of a part, so after a change its lines in `cells.jsonl` (those with `"study-<method>"`)
are to be deleted before it is resumed.
"""

from __future__ import annotations

from study.page import render, render_text
from study.runner import run, so_far
from study.targets import promises

__all__ = ["promises", "render", "render_text", "run", "so_far"]
