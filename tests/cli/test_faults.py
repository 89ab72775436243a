"""Every command that writes, under faults: kills, full disks, read-only folders, runs at once.

Whatever happens, a target holds what was there before or all of what is new, and the same command
then gives what an undisturbed run gives.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="kills, and limits the size of files"),
]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

# Ends by SIGKILL before the k-th step that changes a folder, and says whether it did.
_PROGRAM = """
import os, signal, sys
from fewlabels.cli import main

k, count = int(sys.argv.pop(1)), 0

def counted(function):
    def wrapper(*given, **named):
        global count
        count += 1
        if count == k:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*given, **named)
    return wrapper

if __name__ == "__main__":
    for name in ("replace", "rename", "link", "unlink", "fsync", "rmdir"):
        setattr(os, name, counted(getattr(os, name)))
    sys.exit(main())
"""


class Case(NamedTuple):
    """A command, without the options that name its outputs, and these with the files' names.

    An output without an option is an argument.
    """

    asked: str
    outputs: dict[str, str]


CASES = {
    "estimate": Case(
        "estimate moderation.csv --metrics accuracy",
        {"--json": "a.json", "--html": "a.html", "--labels-out": "a.csv"},
    ),
    "estimate in parts": Case(
        "estimate moderation.csv --metrics accuracy --engine threads --method tempered-ensemble",
        {"--json": "a.json", "--html": "a.html", "--posterior": "posterior"},
    ),
    "compare": Case("compare moderation.csv", {"--json": "a.json", "--html": "a.html"}),
    "curve": Case(
        "curve moderation.csv --model large",
        {"--json": "a.json", "--html": "a.html", "--svg": "a.svg", "--out": "a.parquet"},
    ),
    "threshold": Case(
        "threshold moderation.csv --model large --min-precision .5",
        {"--json": "a.json", "--out": "a.csv"},
    ),
    "label-next": Case(
        "label-next moderation.csv --model large", {"--json": "a.json", "--out": "a.csv"}
    ),
    "shift": Case("shift moderation.csv", {"--json": "a.json"}),
    "backtest": Case(
        "backtest moderation_labeled.csv --labels 20 --runs 1 --metrics accuracy",
        {"--json": "a.json", "--html": "a.html"},
    ),
    "calibrate": Case(
        "calibrate moderation.csv --method temperature",
        {"--json": "a.json", "--save": "map.json", "--out": "a.csv", "--html": "a.html"},
    ),
    "annotations": Case(
        "annotations slides.csv", {"--json": "a.json", "--html": "a.html", "--out": "a.csv"}
    ),
    "estimate for a CI": Case(
        "estimate verdicts.csv --metrics accuracy --require accuracy>=0.1",
        {"--json": "a.json", "--markdown": "a.md", "--junit": "a.xml"},
    ),
    "score": Case("score verdicts.csv", {"--json": "a.json"}),
    "convert": Case("convert verdicts.csv", {"": "a.parquet"}),
    "label --out": Case("label comments.csv --labels {record}", {"--out": "a.csv"}),
    "doctor": Case("doctor moderation.csv", {"--json": "a.json", "--write": "a.toml"}),
    "demo": Case("demo", {"--json": "a.json", "--out": "a.html", "--save-data": "a.parquet"}),
}
NAMES = list(CASES)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record of three labels."""
    place = tmp_path_factory.mktemp("record") / "record.jsonl"
    subprocess.run(
        [sys.executable, "-m", "fewlabels", "label", EXAMPLES / "comments.csv", "--terminal",
         "--annotator", "a", "--labels", place],
        input="1\n2\n1\nq\n", text=True, capture_output=True, check=True,
    )  # fmt: skip
    return place


@pytest.fixture
def command(tmp_path: Path, record: Path) -> Callable[..., list[str]]:
    """The arguments of a case, with its outputs in a folder."""
    (tmp_path / "program.py").write_text(_PROGRAM)

    def arguments(name: str, folder: Path, *more: str) -> list[str]:
        case = CASES[name]
        words = [
            str(EXAMPLES / word) if word.endswith(".csv") else word.format(record=record)
            for word in case.asked.split()
        ]
        outputs = [str(part) for o, n in case.outputs.items() for part in (o, folder / n) if part]
        return [*words, *outputs, *more]

    return arguments


def _start(tmp_path: Path, words: list[str], kill: int = 0, **how: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(tmp_path / "program.py"), str(kill), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # joblib asks for semaphores, which are files, when scikit-learn loads it.
        env=os.environ
        | {
            "FEWLABELS_CHECKPOINTS": str(tmp_path / "saved"),
            "JOBLIB_MULTIPROCESSING": "0",
            "SOURCE_DATE_EPOCH": "0",  # pages say when they were made
        },
        **how,
    )


def _run(tmp_path: Path, words: list[str], kill: int = 0, **how: Any) -> tuple[int, str]:
    run = _start(tmp_path, words, kill, **how)
    _, err = run.communicate(timeout=300)
    return run.returncode, err


def _content(path: Path) -> Any:
    """What a target holds, which must be whole."""
    if path.is_dir():
        there = sorted(p for p in path.iterdir() if not p.name.startswith("."))
        return {p.name: _content(p) for p in there}
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pydict()
    text = path.read_text()
    # Whether it went on, and the command with its paths, are no part of the answer.
    if path.suffix == ".html":
        text = re.sub(r"<code>fewlabels .*?</code>", "", text)
    if path.suffix != ".json":
        return re.sub(r".*(resumed|were done already).*\n", "", text)
    found = json.loads(text)
    found.get("diagnostics", {}).get("stream", {}).pop("resumed", None)
    return found


def _contents(folder: Path, name: str) -> dict[str, Any]:
    """Of the targets that are there; files that are hidden are nobody's answer."""
    there = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    assert there <= set(CASES[name].outputs.values())
    return {path: _content(folder / path) for path in sorted(there)}


def _older(folder: Path, name: str) -> Path:
    """A folder in which all targets that are replaced are there already."""
    folder.mkdir()
    for option, path in CASES[name].outputs.items():
        if path != "posterior" and option != "--write":  # which somebody may have edited
            (folder / path).write_text('{"older": true}')
            if path.endswith(".parquet"):
                shutil.copy(_a_table(folder), folder / path)
    return folder


def _a_table(folder: Path) -> Path:
    place = folder.parent / "older.parquet"
    pq.write_table(pa.table({"older": [1]}), place)
    return place


def _same(found: dict[str, Any], quiet: dict[str, Any]) -> None:
    assert found.keys() == quiet.keys()
    for name, value in quiet.items():
        assert found[name] == value, name


@pytest.mark.parametrize("name", NAMES)
def test_killed_before_every_step_that_changes_a_folder(
    name: str, command: Callable[..., list[str]], tmp_path: Path
) -> None:
    quiet_folder = tmp_path / "quiet"
    quiet_folder.mkdir()
    assert _run(tmp_path, command(name, quiet_folder))[0] == 0
    quiet = _contents(quiet_folder, name)
    assert len(quiet) == len(CASES[name].outputs)
    folder = _older(tmp_path / "out", name)
    older = _contents(folder, name)
    resume = ["--resume"] if "posterior" in quiet else []
    for k in range(1, 40):
        code, _ = _run(tmp_path, command(name, folder, *resume), k)
        found = _contents(folder, name)
        for target, value in found.items():
            assert value in (quiet[target], older.get(target)), f"{target}, killed before step {k}"
        if code != -signal.SIGKILL:
            break
    assert code == 0
    assert k > len(quiet), "it was killed before each file had its place, at least"
    assert not list(folder.glob("posterior/.*"))
    _same(found, quiet)


@pytest.mark.parametrize("name", NAMES)
def test_killed_at_random_moments(
    name: str, command: Callable[..., list[str]], tmp_path: Path
) -> None:
    (tmp_path / "quiet").mkdir()
    begun = time.monotonic()
    assert _run(tmp_path, command(name, tmp_path / "quiet"))[0] == 0
    seconds = time.monotonic() - begun
    quiet = _contents(tmp_path / "quiet", name)
    folder = _older(tmp_path / "out", name)
    older = _contents(folder, name)
    resume = ["--resume"] if "posterior" in quiet else []
    chance = random.Random(name)
    for _ in range(4):
        run = _start(tmp_path, command(name, folder, *resume))
        try:
            run.communicate(timeout=chance.uniform(0.2, 1.0) * seconds)
        except subprocess.TimeoutExpired:
            run.kill()
            run.communicate()
        for target, value in _contents(folder, name).items():
            assert value in (quiet[target], older.get(target)), target
    assert _run(tmp_path, command(name, folder, *resume))[0] == 0
    _same(_contents(folder, name), quiet)


@pytest.mark.parametrize("name", NAMES)
def test_a_disk_that_is_full_after_so_many_bytes(
    name: str, command: Callable[..., list[str]], tmp_path: Path
) -> None:
    """No file may grow beyond a limit, whoever writes it, in whatever language."""
    folder = _older(tmp_path / "out", name)
    older = _contents(folder, name)
    refused = 0
    for limit in (0, 64, 2_000, 20_000):

        def small(limit: int = limit) -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

        code, err = _run(tmp_path, command(name, folder), preexec_fn=small)
        if code == 0:
            assert limit, "it has written nothing"
            break
        refused += 1
        lines = [line for line in err.splitlines() if not line.startswith("warning: ")]
        assert (code, len(lines)) == (2, 1), err
        assert lines[0].startswith("error: cannot write"), err
        assert any(f"{folder / output}'" in lines[0] for output in CASES[name].outputs.values())
        assert _contents(folder, name) == older
        hidden = {path.name for path in folder.iterdir() if path.name.startswith(".")}
        assert hidden <= {".posterior.unfinished"}
    assert refused


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A folder in which nothing can be written, by root neither."""
    place = tmp_path / "read-only"
    place.mkdir()
    if os.geteuid():
        place.chmod(0o555)
        yield place
        place.chmod(0o755)
        return
    how = ["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", str(place)]
    done = subprocess.run(how, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount a read-only folder: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("name", NAMES)
def test_a_read_only_folder(
    name: str, command: Callable[..., list[str]], tmp_path: Path, read_only: Path
) -> None:
    code, err = _run(tmp_path, command(name, read_only))
    assert (code, len(err.splitlines())) == (2, 1), err
    assert err.startswith("error: cannot write")


@pytest.mark.parametrize("name", ["estimate", "estimate in parts", "calibrate"])
def test_two_runs_that_write_the_same_files(
    name: str, command: Callable[..., list[str]], tmp_path: Path
) -> None:
    (tmp_path / "quiet").mkdir()
    assert _run(tmp_path, command(name, tmp_path / "quiet"))[0] == 0
    folder = tmp_path / "out"
    folder.mkdir()
    runs = [_start(tmp_path, command(name, folder)) for _ in range(2)]
    said = [run.communicate(timeout=300)[1] for run in runs]
    codes = sorted(run.returncode for run in runs)
    assert codes[0] == 0
    if name == "estimate in parts":  # unless the first had ended before the second began
        refused = next(err for run, err in zip(runs, said, strict=True) if run.returncode == 2)
        assert len(refused.splitlines()) == 1
        assert "another process writes" in refused or "holds files already" in refused
    else:
        assert codes == [0, 0]
    _same(_contents(folder, name), _contents(tmp_path / "quiet", name))


def test_a_clock_that_goes_back(command: Callable[..., list[str]], tmp_path: Path) -> None:
    """No file is older than it was, and a run that goes on does not ask what time it is."""
    program = (tmp_path / "program.py").read_text()
    clock = (
        "import time\nnow = iter(range(2_000_000_000, 0, -3600))\ntime.time = lambda: next(now)\n"
    )
    name = "estimate in parts"
    for folder in ("quiet", "out"):
        (tmp_path / folder).mkdir()
    assert _run(tmp_path, command(name, tmp_path / "quiet"))[0] == 0
    quiet = _contents(tmp_path / "quiet", name)
    (tmp_path / "program.py").write_text(clock + program)
    for k in range(1, 40):
        code, err = _run(tmp_path, command(name, tmp_path / "out", "--resume"), k)
        os.utime(tmp_path, ns=(-(10**18), -(10**18)))
        if code != -signal.SIGKILL:
            break
    assert (code, err) == (0, "")
    _same(_contents(tmp_path / "out", name), quiet)


def test_lives_of_half_the_time_that_a_run_takes(tmp_path: Path) -> None:
    """Of a million rows: each life ends by SIGKILL, and is counted in time of the processor."""
    rng = np.random.default_rng(6)
    n = 1_000_000
    truth = rng.random(n) < 0.3
    columns: dict[str, Any] = {"label": pa.array(truth.astype(int), mask=np.arange(n) >= 100)}
    for j in range(5):
        z = (1.5 + 0.3 * j) * (truth - 0.5) + rng.normal(size=n)
        columns[f"p__m{j}__1"] = 1 / (1 + np.exp(-z))
    pq.write_table(pa.table(columns), tmp_path / "in.parquet", row_group_size=50_000)

    def run(out: str, seconds: int, *more: str) -> tuple[int, float]:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = subprocess.run(
            [sys.executable, "-m", "fewlabels", "estimate", tmp_path / "in.parquet", "--engine",
             "threads", "--workers", "2", "--json", tmp_path / out, *more],
            env=os.environ | {"FEWLABELS_CHECKPOINTS": str(tmp_path / out[0])},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds)),
            capture_output=True, check=False,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return ended.returncode, used

    code, quiet = run("quiet.json", 600)
    assert code == 0
    for _ in range(6):
        code, _used = run("lives.json", max(round(quiet / 2), 1), "--resume")
        assert code in (0, -signal.SIGKILL)
        if code == 0:
            break
    else:
        code, _used = run("lives.json", 600, "--resume")
    assert code == 0
    resumed = json.loads((tmp_path / "lives.json").read_text())["diagnostics"]["stream"]["resumed"]
    parts = [re.match(r"(\w+): (\d+) of (\d+)", said) for said in resumed]
    done = {m[1]: (m[2], m[3]) for m in parts if m}
    assert done["reading"] == (done["reading"][1],) * 2
    assert int(done["estimating"][0]) > 0
    assert _content(tmp_path / "lives.json") == _content(tmp_path / "quiet.json")


# --- performance over time: a state and a table that are added to ---------------------------------


@pytest.fixture
def weeks(tmp_path: Path) -> Callable[..., list[str]]:
    """The command of a Monday, of the messages from one day on and before another."""

    def arguments(folder: Path, first: str, last: str) -> list[str]:
        return [
            "monitor", str(EXAMPLES / "messages.csv"), "--where",
            f"date >= {first} and date < {last}", "--time", "date", "--every", "week",
            "--metrics", "accuracy", "--state", str(folder / "state"),
            "--to", f"sqlite:///{folder / 'm.db'}#estimates", "--html", str(folder / "m.html"),
        ]  # fmt: skip

    (tmp_path / "program.py").write_text(_PROGRAM)
    return arguments


FIRST, LATER = ("2026-09-07", "2026-10-12"), ("2026-10-05", "2026-11-02")
"""Weeks of the first run, and of the second, which reads one of them again."""


def _rows(folder: Path) -> list[tuple[Any, ...]]:
    """The table, whose periods are there once each."""
    with closing(sqlite3.connect(folder / "m.db")) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        rows = connection.execute("select * from estimates order by period").fetchall()
    assert len({row[0] for row in rows}) == len(rows)
    return rows


def test_a_monday_that_is_killed_leaves_state_and_table_whole(
    weeks: Callable[..., list[str]], tmp_path: Path
) -> None:
    (tmp_path / "quiet").mkdir()
    assert _run(tmp_path, weeks(tmp_path / "quiet", *FIRST))[0] == 0
    shutil.copytree(tmp_path / "quiet", tmp_path / "first")
    before = _rows(tmp_path / "first")
    assert _run(tmp_path, weeks(tmp_path / "quiet", *LATER))[0] == 0
    after = _rows(tmp_path / "quiet")
    assert (len(before), len(after)) == (5, 8)
    for k in range(1, 40):
        folder = tmp_path / f"killed-{k}"
        shutil.copytree(tmp_path / "first", folder)
        code, _ = _run(tmp_path, weeks(folder, *LATER), k)
        assert _rows(folder) in (before, after), f"killed before step {k}"
        if code != -signal.SIGKILL:
            break
        assert _run(tmp_path, weeks(folder, *LATER))[0] == 0
        assert _rows(folder) == after
    assert (code, k > 5) == (0, True)


def test_mondays_at_once_wait_for_each_other(
    weeks: Callable[..., list[str]], tmp_path: Path
) -> None:
    (tmp_path / "quiet").mkdir()
    assert _run(tmp_path, weeks(tmp_path / "quiet", FIRST[0], LATER[1]))[0] == 0
    folder = tmp_path / "out"
    folder.mkdir()
    runs = [_start(tmp_path, weeks(folder, *span)) for span in (FIRST, LATER, FIRST)]
    for run in runs:
        assert run.communicate(timeout=300)[1] == ""
    assert _rows(folder) == _rows(tmp_path / "quiet")


def test_a_monday_on_a_full_disk_says_so_and_changes_nothing(
    weeks: Callable[..., list[str]], tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    assert _run(tmp_path, weeks(folder, *FIRST))[0] == 0
    before, state = _rows(folder), (folder / "state").read_bytes()

    def small() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, resource.RLIM_INFINITY))

    code, err = _run(tmp_path, weeks(folder, *LATER), preexec_fn=small)
    assert (code, len(err.splitlines())) == (2, 1), err
    assert "the state is as it was before" in err
    assert (folder / "state").read_bytes() == state
    assert _rows(folder) == before
