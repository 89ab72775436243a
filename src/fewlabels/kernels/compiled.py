"""Loops compiled where numba is installed; where it is not, plain Python or array forms of them.

A compiled function draws from the same `np.random.Generator`, bit for bit, as the plain one. Loops
over scalars that would take long in plain Python are also written in arrays: on small tables these
take up to five times as long as compiled loops, loops in plain Python a hundred times.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def _numba() -> Any:
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        return None
    try:
        import numba
    except ImportError:
        return None
    return numba


IS_COMPILED = _numba() is not None
"""Whether loops over scalars are quick."""


@cache
def _forget_stale(folder: Path) -> None:
    """Delete what was compiled before a file of this folder changed.

    The compiler notices a change of a function's own file, but not of others whose functions it has
    copied.
    """
    with suppress(OSError):
        changed = max(source.stat().st_mtime for source in folder.glob("*.py"))
        for index_file in (folder / "__pycache__").glob("*.nbi"):
            if index_file.stat().st_mtime < changed:
                index_file.unlink(missing_ok=True)


def compiled(function: Function) -> Function:
    """Compile a function on its first call, and keep what was compiled for the next process."""
    return _compile(function)


def compiled_part(function: Function) -> Function:
    """As `compiled`, for what only compiled functions call: half of the time to compile it."""
    return _compile(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def compiled_or(arrays: Function) -> Callable[[Function], Function]:
    """As `compiled_part`; where nothing is compiled `arrays`, which does the same, takes over."""
    return lambda loops: compiled_part(loops) if IS_COMPILED else arrays


def _compile(function: Function, **options: bool) -> Function:
    if not IS_COMPILED:
        return function
    _forget_stale(Path(function.__globals__.get("__file__", __file__)).parent)
    # As in numpy, x / 0 is infinite; Python's check of every division takes time.
    how = {"nogil": True, "error_model": "numpy", **options}
    try:
        out: Function = _numba().njit(cache=True, **how)(function)
    except RuntimeError:  # there is no folder to keep it in
        out = _numba().njit(**how)(function)
    return out
