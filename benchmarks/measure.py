"""How long a call takes and how much memory, here or in a process of its own."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def best(function: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """Shortest of several runs in seconds, and the last result."""
    shortest = np.inf
    for _ in range(repeats):
        started = time.perf_counter()
        result = function()
        shortest = min(shortest, time.perf_counter() - started)
    return shortest, result


def memory(of: str = "VmHWM") -> float:
    """Peak memory of this process image in MB, or what it has ("VmRSS").

    It is the kernel's mark; getrusage would count the parent's pages that were there at the fork.
    """
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition(f"{of}:")[2].split()[0]) / 1024


def timed(function: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """Seconds and processor seconds of a call, with its processes, and its result."""

    def processor() -> float:
        used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(one.ru_utime + one.ru_stime for one in used)

    began, cpu = time.perf_counter(), processor()
    result = function()
    return {"seconds": time.perf_counter() - began, "cpu": processor() - cpu}, result


def elsewhere(
    module: str, call: str, environment: Mapping[str, str] | None = None,
    limit: float | None = None, without: Sequence[str] = (),
) -> Any:  # fmt: skip
    """What a call within a module of this folder gives in a fresh interpreter.

    Modules named by `without` cannot be imported there. A `RuntimeError` says that the call failed,
    or took more than `limit` seconds.
    """
    code = (
        f"import json, sys\nsys.modules |= dict.fromkeys({tuple(without)})\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\nimport {module}\n"
        f"print(json.dumps(eval({call!r}, vars({module}))))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env=os.environ | dict(environment or {}),
    ) as running:  # fmt: skip
        try:
            out, wrong = running.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            raise RuntimeError(f"not done after {limit:.0f} s") from None
    if running.returncode:
        raise RuntimeError("".join(wrong.strip().splitlines()[-1:])[:200] or "killed")
    return json.loads(out.splitlines()[-1])
