"""`python -m benchmarks`: names, help, bad input, kills, and pages that are stale."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from bench import Results, fingerprints, load, names
from bench.command import main as command
from bench.folder import CELLS

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


# --- fingerprints --------------------------------------------------------------------------------


def test_code_and_data_that_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmarks, page = tmp_path / "benchmarks", tmp_path / "page.md"
    monkeypatch.setattr(fingerprints, "BENCHMARKS", benchmarks)
    monkeypatch.setattr(fingerprints, "PACKAGE", tmp_path / "package")
    files = {
        "package/a.py": "A = 1", "package/cli/b.py": "B = 1", "benchmarks/one.py": "import two",
        "benchmarks/two.py": "T = 1", "benchmarks/three.py": "T = 1", "data/x/y.csv": "1",
    }  # fmt: skip

    def put(name: str, text: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        fingerprints._code.cache_clear()
        fingerprints._content.cache_clear()
        return fingerprints.stale(page, "one", tmp_path / "data") if page.exists() else ""

    for name, text in files.items():
        put(name, text)
    page.write_text("text\n")
    assert fingerprints.stale(page, "one", tmp_path / "data") == "has no fingerprint"
    for _ in range(2):  # the line is replaced, not added
        for module in ("one", "three"):
            fingerprints.stamp(
                page, f"python -m benchmarks {module}", module, tmp_path / "data", ["x"]
            )
    for module in ("one", "three"):
        made_by = f"<!-- made by: python -m benchmarks {module}; code "
        assert page.read_text().count(made_by) == 1
    assert page.read_text().startswith("text\n\n<!-- ")
    for name in ("package/cli/b.py", "benchmarks/three.py"):
        assert put(name, "NEW = 2") == ""
    assert put("benchmarks/two.py", '"""A docstring."""\n\nT = 1  # the same') == ""
    for name, what in (("benchmarks/two.py", "code"), ("package/a.py", "code"),
                       ("data/x/y.csv", "data")):  # fmt: skip
        assert put(name, "NEW = 2") == f"{what} changed: python -m benchmarks one"
        assert put(name, files[name]) == ""
    (tmp_path / "data" / "x" / "y.csv").unlink()  # data that are not at hand have not changed
    assert fingerprints.stale(page, "one", tmp_path / "data") == ""


def test_a_page_of_stored_results_keeps_its_fingerprint(
    dispatcher: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, here = tmp_path / "page.md", tmp_path / "benchmarks"
    here.mkdir()
    (here / "one.py").write_text(f"from pathlib import Path\nPath({str(page)!r}).write_text('new')")
    page.write_text("old\n")
    monkeypatch.setattr(dispatcher, "HERE", here)
    monkeypatch.setattr(dispatcher, "DOCS", tmp_path)
    monkeypatch.setattr(fingerprints, "BENCHMARKS", here)
    monkeypatch.setitem(dispatcher.STUDIES, "one", dispatcher.Study(("page",)))  # type: ignore[attr-defined]
    run = dispatcher.main  # type: ignore[attr-defined]
    monkeypatch.setattr(fingerprints, "code_of", lambda module: "aaa")
    assert run(["one"]) == 0
    monkeypatch.setattr(fingerprints, "code_of", lambda module: "bbb")
    for words, code in ((["one", "--page-only"], "aaa"), (["one"], "bbb")):
        page.write_text(page.read_text().replace("new", "older"))
        assert run(words) == 0
        assert fingerprints.stamps_of(page)["one"].code == code
        assert page.read_text().startswith("new\n\n")


def test_stale_lists_pages(dispatcher: object, capsys: pytest.CaptureFixture[str]) -> None:
    code = dispatcher.main(["stale", "--data", "nowhere"])  # type: ignore[attr-defined]
    lines = capsys.readouterr().out.splitlines()
    assert code == bool(lines)
    assert all(line.startswith("docs/") for line in lines)
