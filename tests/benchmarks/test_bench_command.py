"""`python -m benchmarks`: names, help, bad input, kills, and pages that are stale."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import fingerprints
import paper
import parts
import runs
import samples
from bench import Results, load, names
from bench.command import main as command
from bench.results import CELLS
from runs import run_missing

ROOT = Path(__file__).resolve().parents[2]
Write = Callable[..., Path]
Same = Callable[[Results, Results], bool]
OPTIONS = [
    "--methods", "labeled,ensemble,tempered-ensemble", "--n-labeled", "10,20", "--n-unlabeled",
    "60", "--curve-runs", "2", "--metrics", "accuracy,ece_quantile",
]  # fmt: skip


@pytest.fixture
def dispatcher(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.__main__")


def test_every_name_leads_somewhere(dispatcher: object, capsys: pytest.CaptureFixture[str]) -> None:
    studies = dispatcher.STUDIES  # type: ignore[attr-defined]
    for name, study in studies.items():
        assert (ROOT / "benchmarks" / f"{name}.py").is_file(), name
        for page in study.pages:
            assert (ROOT / "docs" / f"{page}.md").is_file(), page
    for words in ([], ["--help"], ["--list"]):
        assert dispatcher.main(words) == 0  # type: ignore[attr-defined]
        shown = capsys.readouterr().out
        assert all(name in shown for name in [*studies, *names()])
    assert not {*studies} & {*names()}


@pytest.mark.parametrize("name", names())
def test_each_protocol_is_whole(name: str) -> None:
    protocol = load(name)
    assert protocol.name == name
    assert protocol.title
    assert protocol.source
    assert protocol.runs >= 5


def test_a_protocol_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = 'title = "t"\nmethods = "labeled"\nmetrics = ["ece"]\nn_labeled = 20\n'
    path.write_text(text + "n_unlabeled = 50\nruns = 2\nfactor = 'sharpness'\nlevels = [0.50, 1]")
    mine = load(path)
    assert (mine.name, mine.methods, mine.levels) == ("mine", ("labeled",), ("0.5", "1"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], "unknown protocol 'nothing'; choose from ssme-binary"),
        (["ssme-binary"], "no data; name files or folders of predictions with --data"),
        (["ssme-binary", "--data", "nowhere"], "--data 'nowhere': there is no such file"),
        (["ssme-binary", "--data", "empty"], "holds no files of predictions"),
        (["ssme-binary", "--data", "broken.csv"], "no file can be used: broken.csv: "),
        (["ssme-binary", "--data", "broken.parquet"], "no file can be used: broken.parquet: "),
        (["ssme-binary", "--runs", "many"], "argument --runs: invalid int value"),
        (["ssme-binary", "--data", "x", "--resume"], "nothing to resume"),
        (["broken.toml"], "protocol 'broken.toml': "),
        (["short.toml"], "--methods is missing"),
        (["absent.toml"], "protocol 'absent.toml': "),
    ],
)
def test_bad_input_is_one_line(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.csv").write_text("p__a__0,label\n0.1")
    (tmp_path / "broken.parquet").write_text("no parquet")
    (tmp_path / "broken.toml").write_text("title =")
    (tmp_path / "short.toml").write_text("title = 't'")
    assert command(words) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: ")
    assert message in shown
    assert shown.count("\n") == 1


@pytest.mark.slow
def test_the_page_and_the_table(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["ssme-binary", "--data", str(write()), "--out", str(out), "--workers", "1", *OPTIONS]
    assert command([*words, "--runs", "2"], "python -m benchmarks ssme-binary") == 0
    page, shown = (out / "report.md").read_text(encoding="utf-8"), capsys.readouterr().out
    for text in ("2 runs: too few to rank methods.", "### toy, accuracy, 60 unlabeled"):
        assert text in page
        assert text in shown
    assert "- Command: python -m benchmarks ssme-binary\n" in page
    assert str(tmp_path) not in page
    (figure,) = (out / "figures").iterdir()
    assert f"(figures/{figure.name})" in page
    # The mean absolute error by hand, from the long table.
    rows = pd.read_parquet(out / "results.parquet")
    rows = rows[(rows["metric"] == "accuracy") & (rows["factor"] == "") & (rows["n_labeled"] == 10)]
    error = 100 * (rows["estimate"] - rows["truth"]).abs()
    by_run = error.groupby([rows["method"], rows["run"]]).mean()["ensemble"]
    assert f"{by_run.mean():.2f} ± {by_run.std():.2f}" in page
    assert command([*words, "--runs", "2", "--resume"]) == 0
    assert (out / "report.md").read_text(encoding="utf-8").replace("- Command: python -m "
            "benchmarks ssme-binary\n", "") == page.replace("- Command: python -m benchmarks "
            "ssme-binary\n", "")  # fmt: skip


@pytest.mark.slow
def test_killed_and_resumed(write: Write, tmp_path: Path, same: Same) -> None:
    data = str(write())
    words = ["ssme-binary", "--data", data, "--runs", "3", *OPTIONS, "--out"]
    call = [sys.executable, str(ROOT / "benchmarks"), *words, str(tmp_path / "a"), "--workers", "2"]
    cells = tmp_path / "a" / CELLS
    for kill, stop in enumerate((signal.SIGKILL, signal.SIGINT)):
        resume = ["--resume"] * bool(kill)
        started = subprocess.Popen([*call, *resume], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        before, deadline = cells.stat().st_size if kill else 0, time.monotonic() + 120
        while not cells.exists() or cells.stat().st_size <= before:
            assert started.poll() is None, started.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        workers = _children(started.pid)
        started.send_signal(stop)
        _, said = started.communicate(timeout=60)
        if stop == signal.SIGINT:
            assert started.returncode == 130
            assert said.strip().endswith(b"the same command with --resume goes on")
        while any(map(_runs, workers)):
            assert time.monotonic() < deadline, "a worker outlived the run"
            time.sleep(0.01)
    assert command([*words, str(tmp_path / "a"), "--workers", "2", "--resume"]) == 0
    assert command([*words, str(tmp_path / "b"), "--workers", "1"]) == 0
    assert same(Results.load(tmp_path / "a"), Results.load(tmp_path / "b"))


def _children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# --- fingerprints and samples --------------------------------------------------------------------

STUDY = """
from pathlib import Path
from pinned import PINNED
from runs import DATA, command_line, read_lines, run_missing

def run(cell):
    time = {"seconds": 1.0 / cell["k"]}
    return time | {"rows": [{"value": PINNED / cell["k"], "held": 1.0, **time}]}

given = command_line("one", data=DATA, work=Path("w"), cells=20, page_only=False).parse_args()
cells, file = [{"k": k} for k in range(1, given.cells + 1)], given.work / "one.jsonl"
lines = read_lines(file) if given.page_only else run_missing(file, run, cells, 1)
Path("PAGE").write_text(f"text of {len(lines)}\\n")
"""
PARTED = """
from parts import Part, crossed, run_page
from pinned import PINNED

def run(data, k):
    return [{"value": PINNED / (3 + k)}]

def part(name):
    return Part(crossed(k=range(3)), run, lambda records, plan: {name: "table"}, "a design")

run_page("parted", "parted", {name: part(name) for name in ("a", "b")}, ())
"""
FILES = {
    "package/a.py": "A = 1", "package/cli/b.py": "B = 1", "package/of_others/c.py": "C = 1",
    "benchmarks/one.py": STUDY, "benchmarks/parted.py": PARTED, "benchmarks/three.py": "T = 1",
    "benchmarks/pinned.py": "PINNED = 1", "data/x/y.csv": "1", "docs/page.md": "text\n",
    "docs/benchmarks/parted.md": "<!-- a -->\n<!-- end a -->\n<!-- b -->\n<!-- end b -->\n",
}  # fmt: skip
Put = Callable[..., None]
Ask = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def put(dispatcher: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Write a file of a small repository with a study of one call and one of two parts."""
    for module, name, folder in (
        (dispatcher, "HERE", "benchmarks"), (dispatcher, "DOCS", "docs"), (parts, "ROOT", ""),
        (fingerprints, "BENCHMARKS", "benchmarks"), (fingerprints, "PACKAGE", "package"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, tmp_path / folder)
    study = dispatcher.Study
    studies = {"one": study(("page",), ("x",)), "parted": study(("benchmarks/parted",))}
    monkeypatch.setattr(dispatcher, "STUDIES", studies)
    monkeypatch.syspath_prepend(tmp_path / "benchmarks")

    def write(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("PAGE", str(tmp_path / "docs" / "page.md")))
        sys.modules.pop("pinned", None)
        importlib.invalidate_caches()
        fingerprints._code.cache_clear()
        fingerprints._content.cache_clear()

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name, text in FILES.items():
        write(name, text)
    return write


@pytest.fixture
def ask(dispatcher: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], put: Put) -> Ask:
    """Call `python -m benchmarks`: its code and lines."""

    def call(*words: str) -> tuple[int, list[str]]:
        capsys.readouterr()
        work = [] if words[0] == "stale" else ["--work", str(tmp_path / "work")]
        code = dispatcher.main([*words, "--data", str(tmp_path / "data"), *work])
        return code, capsys.readouterr().out.splitlines()

    return call


def test_code_and_data_that_changed(ask: Ask, put: Put, tmp_path: Path) -> None:
    none = "docs/page.md has no record: python -m benchmarks one"
    assert ask("stale", "page") == (1, [none])
    page = tmp_path / "docs" / "page.md"
    for _ in range(2):  # the line is replaced, not added; cells that are taken over have theirs
        assert ask("one") == (0, [])
        assert page.read_text().startswith("text of 20\n\n<!-- made by: python -m benchmarks one; ")
        assert page.read_text().count("made by") == 1
        assert ask("stale", "docs/page.md") == (0, [])
    for name in ("package/cli/b.py", "package/of_others/c.py", "benchmarks/three.py"):
        put(name, "NEW = 2")  # on none of these a number depends
    put("benchmarks/pinned.py", '"""A docstring."""\n\nPINNED = 1  # the same')
    assert ask("stale", "page") == (0, [])
    for name, what in (("benchmarks/pinned.py", "code"), ("package/a.py", "code"),
                       ("data/x/y.csv", "data")):  # fmt: skip
        put(name, "NEW = 2")
        changed = f"docs/page.md {what} changed: python -m benchmarks one"
        assert ask("stale", "page") == (1, [changed])
        put(name, FILES[name])
        assert ask("stale", "page") == (0, [])
    (tmp_path / "data" / "x" / "y.csv").unlink()  # data that are not at hand have not changed
    assert ask("stale", "page") == (0, [])


def test_a_sample_confirms_a_page_or_says_what_changed(ask: Ask, put: Put, tmp_path: Path) -> None:
    ask("one")
    sample = fingerprints.records_of("one")["page"][""]
    assert (sample["cells"], len(sample["sample"])) == (20, samples.CELLS)
    assert {*range(1, samples.CELLS + 1)} != {one["cell"]["k"] for one in sample["sample"]}
    names = {name for one in sample["sample"] for name in one["numbers"]}
    assert names == {"rows/0/value"}  # neither seconds nor whole numbers
    page = tmp_path / "docs" / "page.md"
    before = page.read_text()
    put("benchmarks/pinned.py", "PINNED = 0.5 + 0.5")
    assert ask("stale", "page", "--run", "--minutes", "0")[0] == 1  # there is no time
    assert page.read_text() == before
    assert ask("stale", "page", "--run") == (0, [])
    assert ask("stale", "page") == (0, [])
    made, confirmed = (page.read_text(), f", confirmed by {samples.CELLS} cells of 20 on code ")
    assert confirmed in made
    assert made.replace(made[made.index(", confirmed") : made.index("; data")], "") == before
    put("benchmarks/pinned.py", "PINNED = 1.00001")
    code, (line,) = ask("stale", "page", "--run")
    assert code == 1
    one = sample["sample"][0]
    assert f"{one['cell']}: rows/0/value was {one['numbers']['rows/0/value']:g} and is " in line
    assert line.count(" was ") == samples.CELLS
    assert page.read_text() == made
    (tmp_path / "data" / "x" / "y.csv").unlink()
    assert ask("stale", "page", "--run")[1][0].endswith("; its data are not at hand")


def test_what_cells_of_unknown_code_made_is_stale_until_a_sample_agrees(
    ask: Ask, put: Put, tmp_path: Path
) -> None:
    page = tmp_path / "docs" / "page.md"
    ask("one", "--cells", "10")
    ask("one")
    assert "made by: python -m benchmarks one; code unknown; " in page.read_text()
    assert ask("stale", "page")[0] == 1
    assert ask("stale", "page", "--run") == (0, [])
    put("benchmarks/one.py", STUDY + "\nMORE = 1\n")
    made = page.read_text()
    ask("one", "--page-only")  # what it writes is of the code that ran, not of this
    assert page.read_text() == made


def test_a_page_says_that_its_numbers_are_of_an_earlier_version(
    ask: Ask, put: Put, tmp_path: Path
) -> None:
    page = tmp_path / "docs" / "page.md"
    page.write_text("# Title\n\ntext of none\n")
    said = "# Title\n\n> Numbers of an earlier version, not run again since: "
    assert ask("stale", "page", "--mark") == ask("stale", "page") == (0, [])
    assert page.read_text().startswith(f"{said}`python -m benchmarks one`.\n\ntext of none\n")
    ask("one")
    assert "earlier version" not in page.read_text()
    page.write_text("# Title\n\n" + page.read_text())
    put("benchmarks/pinned.py", "PINNED = 0.5 + 0.5")
    assert ask("stale", "page", "--mark") == ask("stale", "page") == (0, [])
    assert page.read_text().startswith(said)
    assert page.read_text().count("earlier") == 1
    put("benchmarks/pinned.py", "PINNED = 1.0 * 1")
    assert ask("stale", "page", "--run") == ask("stale", "page") == (0, [])
    assert page.read_text().startswith("# Title\n\ntext of 20\n")


def test_a_cell_that_is_gone_and_a_command_that_fails(ask: Ask, put: Put) -> None:
    ask("one")
    put("benchmarks/one.py", STUDY.replace("cells=20", "cells=1"))
    assert ask("stale", "page", "--run")[1][0].endswith("no such cell now")
    put("benchmarks/one.py", "raise SystemExit(2)")
    assert ask("stale", "page", "--run")[1][0].endswith("its sample cannot be run")


def test_each_part_of_a_page_has_a_record(
    ask: Ask, put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = lambda workers, *_, **__: ThreadPoolExecutor(workers)  # noqa: E731
    monkeypatch.setattr(runs, "ProcessPoolExecutor", threads)
    page = tmp_path / "docs" / "benchmarks" / "parted.md"
    assert ask("parted", "all")[0] == 0
    for p in "ab":
        assert f"<!-- made by: python -m benchmarks parted all ({p}); code " in page.read_text()
    assert ask("stale", "parted") == (0, [])
    put("benchmarks/pinned.py", "PINNED = 2 - 1")
    assert ask("parted", "b", "--fresh")[0] == 0
    old = "docs/benchmarks/parted.md a code changed: python -m benchmarks parted all"
    assert ask("stale", "parted") == (1, [old])
    assert ask("stale", "--run", "parted")[0] == 0
    page.write_text("`python -m benchmarks parted c`: more\n" + page.read_text())
    none = "docs/benchmarks/parted.md c has no record: python -m benchmarks parted c"
    assert ask("stale", "parted") == (1, [none])


def test_samples_are_of_cheap_cells_and_not_of_cells_within_cells(tmp_path: Path) -> None:
    def drawn(seconds: list[float]) -> dict[int, dict[str, float]]:
        sampler, cells = samples.Sampler(), [{"k": k} for k in range(len(seconds))]
        lines = [c | {"seconds": s, "v": 0.5} for c, s in zip(cells, seconds, strict=True)]
        sampler.draw("", cells, lines, 0, set())
        return {one["cell"]["k"]: one["numbers"] for one in sampler.found[""]["sample"]}

    assert drawn([20.0, 1e4, 20.0, 30.0, 1e4]).keys() < {0, 2, 3}
    assert drawn([1e4, 1e3]) == {1: {"v": 0.5}}

    def inner(cell: dict[str, Any]) -> dict[str, Any]:
        return {"v": cell["k"] + 0.5}

    def outer(cell: dict[str, Any]) -> dict[str, Any]:
        return {"lines": run_missing(tmp_path / "b" / "cells.jsonl", inner, [cell], 1)}

    sampler = samples.Sampler()
    with samples.using(sampler):
        run_missing(tmp_path / "a" / "cells.jsonl", outer, [{"k": 1}], 1)
    assert list(sampler.found) == ["a"]


@pytest.mark.slow
def test_a_protocol_of_a_paper_is_sampled_in_its_own_folder(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--data", "toy.parquet", *OPTIONS, "--runs", "2")
    monkeypatch.setattr(paper, "STUDIES", {"toy": paper.Study("ssme-binary", options)})
    monkeypatch.setattr(paper, "PAGES", tmp_path / "pages")
    (tmp_path / "pages" / "figures").mkdir(parents=True)
    (tmp_path / "again").mkdir()
    write()
    drawn = samples.Sampler()
    with samples.using(drawn):
        paper.run("toy", tmp_path, tmp_path, runs=None, workers=1, resume=False)
    (sample,) = drawn.found.values()
    again = samples.Sampler({"toy": sample})
    page = (tmp_path / "pages" / "toy.md").read_text()
    with samples.using(again), pytest.raises(samples.Taken):
        paper.run("toy", tmp_path, tmp_path / "again", runs=None, workers=1, resume=False)
    assert (again.differ, list(again.found)) == ([], ["toy"])
    assert page == (tmp_path / "pages" / "toy.md").read_text()
    sample["sample"][0]["numbers"] |= {"rows/0/9": 0.5}  # it was the tenth of a row's values
    with samples.using(again), pytest.raises(samples.Taken):
        paper.run("toy", tmp_path, tmp_path / "again", runs=None, workers=1, resume=False)
    assert len(again.differ) == 1


@pytest.mark.slow
def test_stale_lists_pages(dispatcher: object, capsys: pytest.CaptureFixture[str]) -> None:
    code = dispatcher.main(["stale", "--data", "nowhere"])  # type: ignore[attr-defined]
    lines = capsys.readouterr().out.splitlines()
    assert code == bool(lines)
    assert all(line.startswith("docs/") for line in lines)
