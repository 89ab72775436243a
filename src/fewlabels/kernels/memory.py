"""How much memory there is, before it is asked for."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

_GROUPS = (
    ("/sys/fs/cgroup", "max", "current", ""),
    ("/sys/fs/cgroup/memory", "limit_in_bytes", "usage_in_bytes", "total_"),
)
"""A container by the second and the first version of cgroups: folder, files of what it may use and
what it does, and how its totals begin: cached files among them give way."""


def available_memory() -> int | None:
    """Bytes that can be had without swapping; None where the system does not say.

    The least of what the machine, a container and a limit of this process (`ulimit -v`) leave.
    """
    left: list[int] = []
    with suppress(OSError, ValueError, TypeError):
        found = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text("ascii"))
        left.append(int(found[1]) << 10 if found else _physical())
    for folder, limit, used, total in _GROUPS:
        with suppress(OSError, ValueError):  # "max" is none
            bound, now, parts = (
                Path(folder, f"memory.{name}").read_text("ascii") for name in (limit, used, "stat")
            )
            cached = re.findall(rf"^{total}(?:in)?active_file (\d+)$", parts, re.MULTILINE)
            left.append(int(bound) - int(now) + sum(map(int, cached)))
    with suppress(ImportError, OSError, ValueError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
            left.append(most - pages * os.sysconf("SC_PAGE_SIZE"))
    return max(min(left), 0) if left else None


def _physical() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
