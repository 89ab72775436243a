"""Seconds and memory of reading a log of 100,000 traces with 20 assessments each.

    python benchmarks/logs_speed.py [--traces 100000] [--folder DIR]

Writes MLflow's traces as lines of JSON, four judges and a person under four criteria, and reads one
criterion in a process of its own, from which the peak is taken.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

CRITERIA = ("correct", "grounded", "polite", "brief")
JUDGES = ("large", "medium", "small", "tiny")

MEASURED = """
import resource, subprocess, sys, time
begun = time.perf_counter()
read = "import sys, fewlabels as fl; p = fl.read_predictions(sys.argv[1]); print(p.n_items)"
done = subprocess.run([sys.executable, "-c", read, sys.argv[1]], check=True, capture_output=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(int(done.stdout), time.perf_counter() - begun, used.ru_utime + used.ru_stime,
      used.ru_maxrss / 1e3)
"""


def write(path: Path, traces: int) -> None:
    """The log: every judge is wrong now and then, and the person labels all."""
    with path.open("w", encoding="utf-8") as file:
        for i in range(traces):
            said = []
            for k, criterion in enumerate(CRITERIA):
                truth = (i * 7 + k) % 10 < 6
                for j, judge in enumerate(JUDGES):
                    said.append(_assessment(criterion, truth != ((i + j + k) % 7 == 0), judge))
                said.append(_assessment(criterion, truth, "anna", "HUMAN"))
            info = {
                "trace_id": f"tr-{i:032x}", "request_preview": f"question {i}",
                "response_preview": f"an answer to question {i}", "state": "OK",
                "assessments": said,
            }  # fmt: skip
            file.write(json.dumps({"info": info, "data": {"spans": []}}) + "\n")


def _assessment(name: str, value: bool, who: str, kind: str = "LLM_JUDGE") -> dict[str, object]:
    return {
        "assessment_name": name, "source": {"source_type": kind, "source_id": who},
        "create_time": "2026-01-01T00:00:00Z", "feedback": {"value": value}, "rationale": "because",
    }  # fmt: skip


def main() -> None:
    """Write, read, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=int, default=100_000)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        path = Path(folder) / "traces.jsonl"
        write(path, given.traces)
        each = len(CRITERIA) * (len(JUDGES) + 1)
        print(f"{given.traces:,} traces x {each} assessments, {path.stat().st_size / 1e6:.0f} MB")
        command = [sys.executable, "-c", MEASURED, f"{path}#{CRITERIA[0]}"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        items, clock, processor, peak = done.stdout.split()
        print(
            f"{int(items):,} items read in {float(clock):.1f} s ({float(processor):.1f} s of "
            f"processor time), peak {float(peak):.0f} MB"
        )


if __name__ == "__main__":
    main()
