"""What cannot fit into memory is refused before the work."""

from __future__ import annotations

from fewlabels.errors import InputError
from fewlabels.kernels.memory import available_memory


def refuse_beyond_memory(needed: float, what: str, mend: str) -> None:
    """Refuse work that needs more bytes than there are."""
    free = available_memory()
    if free is not None and needed > free:
        raise InputError(
            f"{what} takes about {needed / 1e9:,.1f} GB of memory, and {free / 1e9:,.1f} GB are "
            f"free; {mend}"
        )
