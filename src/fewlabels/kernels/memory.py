"""How much memory there is, before it is asked for."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)
"""What a container may use, and what it does, by the second and the first version of cgroups."""


def available_memory() -> int | None:
    """Bytes that can be had without swapping; None where the system does not say.

    The least of what the machine, a container and a limit of this process (`ulimit -v`) leave.
    """
    left: list[int] = []
    with suppress(OSError, ValueError, TypeError):
        found = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text("ascii"))
        left.append(int(found[1]) << 10 if found else _physical())
    for limit, used in _GROUPS:
        with suppress(OSError, ValueError):  # "max" is none
            left.append(int(Path(limit).read_text("ascii")) - int(Path(used).read_text("ascii")))
    with suppress(ImportError, OSError, ValueError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
            left.append(most - pages * os.sysconf("SC_PAGE_SIZE"))
    return max(min(left), 0) if left else None


def _physical() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
