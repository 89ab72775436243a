"""Every block of every page runs, and shows what it prints; commands in text have real options."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from page_blocks import ROOT, alike, blocks, commands, missing, run_python

import fewlabels as fl
import readability
from fewlabels.cli.app import app

PAGES = ["README.md", *sorted(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
PAGES += ["docs/benchmarks/index.md", "CONTRIBUTING.md"]
NOT_RUN = {"text", "toml", "yaml", "bibtex", "sh", "json", ""}
ELSEWHERE = {
    "docs/add-a-method.md": "the skeleton, in test_pages.py",
    "docs/add-a-metric.md": "the skeleton, in test_pages.py",
    "docs/benchmark.md": "the benchmark, in tests/benchmarks/test_bench_docs.py",
    "docs/shift.md": "tests/shift/test_shift_page.py, which also looks at the numbers",
}
"""Pages whose Python is run by a test of its own."""
SAID = {
    "docs/reference-data.md": ["1,500 reference items", "n_items=1500"],
    "docs/llm-judges.md": ["anna", "large/accuracy_low", "prediction-powered"],
    "docs/annotations.md": ["large", "EL"],
    "docs/comparing.md": ["large", "tuned"],
    "docs/monitoring.md": ["accuracy since 5 probability", "56 days"],
    "README.md": ["group='language=es'"],
}
"""What the commands or the Python of a page say besides what it shows."""


@pytest.fixture
def as_a_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples, as the reader of a page has them."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def runs(language: str) -> list[str]:
    return [page for page in PAGES if any(kind == language for kind, _ in blocks(page))]


@pytest.mark.slow_with("docs/votes.md", "docs/backtest.md", "docs/annotations.md",
                       "docs/shift.md", "docs/comparing.md", "docs/scaling.md",
                       "docs/monitoring.md")  # fmt: skip
@pytest.mark.parametrize("page", runs("console"))
def test_commands_print_what_the_page_shows(
    page: str, as_a_reader: Path, cli: Callable[..., tuple[int, str, str]]
) -> None:
    said = ""
    for kind, block in blocks(page):
        if kind == "python" and page in SAID:
            said += run_python(page, block)
        if kind != "console":
            continue
        for (program, *arguments), shown in commands(block):
            assert program == "fewlabels"
            if arguments[0] == "benchmark" and "--runs" in arguments:  # one shows that it runs
                arguments[arguments.index("--runs") + 1] = "1"
            code, out, err = cli(*arguments)
            assert (code, err) == (0, ""), arguments
            assert out.strip()
            said += out
            line = missing(shown, out)
            assert line is None, f"{page}: not printed, or not there: {line!r}"
            for option in ("--html", "--out", "--save", "--markdown", "--junit", "--alert"):
                if option in arguments:
                    written = as_a_reader / arguments[arguments.index(option) + 1]
                    assert written.stat().st_size > 50
    assert [words for words in SAID.get(page, []) if words not in said] == []


@pytest.mark.parametrize("page", [p for p in runs("python") if p not in {*ELSEWHERE, *SAID}])
def test_python_of_a_page_runs(page: str, as_a_reader: Path) -> None:
    printed = [run_python(page, block) for kind, block in blocks(page) if kind == "python"]
    assert any(printed)


def test_every_block_says_what_it_is() -> None:
    """A block that nothing runs is marked as text, so that none is left out by a slip."""
    for page in PAGES:
        for kind, block in blocks(page):
            known = NOT_RUN | {"console", "python"}
            assert kind in known or kind.startswith("{"), (page, kind)
            assert kind != "text" or "$ fewlabels" not in block, page


def test_pages_with_a_test_of_their_own_exist() -> None:
    assert set(ELSEWHERE) <= set(runs("python"))
    assert set(SAID) <= set(runs("python")) & set(runs("console"))


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_text_have_real_options(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n", " ")
    for name, rest in re.findall(r"fewlabels ([a-z][a-z-]*)((?: [^\n`|#]*)?)", text):
        command = app.commands.get(name)
        if command is None:
            continue
        parameters = command.get_params(click.Context(command))
        known = {o for p in parameters for o in (*p.opts, *p.secondary_opts)}
        named = set(re.findall(r"(?<!\S)--[a-z][a-z-]*", rest))
        assert named <= known, f"{page}: fewlabels {name} has no {sorted(named - known)}"


@pytest.mark.parametrize("page", PAGES)
def test_no_phrase_that_only_this_project_used(page: str) -> None:
    if page == "docs/readability.md":
        return  # it lists what was rewritten
    text = (ROOT / page).read_text(encoding="utf-8")
    assert readability.private_phrases(text) == [], "say it as tests/readability.toml does"


@pytest.mark.parametrize("page", ["index", "cheat-sheet", "instead-of"])
def test_first_pages_have_short_sentences(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert [one for one in readability.sentences(text) if readability.words(one) > 25] == []


def test_the_readme_is_short_and_names_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    assert re.search(r"^make test\b", text, re.MULTILINE)
    assert re.search(r"^make demo\b", text, re.MULTILINE)
    first = commands(next(block for kind, block in blocks("README.md") if kind == "console"))
    assert len(first) == 1
    assert 8 <= len([line for part in first[0].shown for line in part]) <= 14


def test_readable_sentences_are_counted() -> None:
    text = "# Title\n\nOne two three. Four five `six seven`!\n\n- an item\n\n| a | b |\n"
    text += "\n```text\nno\n```\n"
    assert readability.sentences(text) == ["One two three.", "Four five Code!", "an item"]


def test_what_a_page_shows_is_compared() -> None:
    assert alike(
        "  large  0.974 [0.914, 1.000]  89%   |--o-|", "  large  0.970 [0.91, 1.0]  88%  |o|"
    )
    assert not alike("  large  0.974", "  large  0.874")
    assert not alike("  large  0.974", "  small  0.974")
    (one,) = commands("$ fewlabels doctor a.csv \\\n    --write b.toml\nx\n...\ny\n")
    assert one.arguments == ["fewlabels", "doctor", "a.csv", "--write", "b.toml"]
    assert one.shown == [["x"], ["y"]]
    shown = [["a", "b"], ["d"]]
    assert missing(shown, "a\nb\nc\nd\n") is None
    assert missing(shown, "x\na\nb\nd") == "a"
    assert missing(shown, "a\nc\nb\nd") == "b"
    assert missing(shown, "a\nb\n") == "d"


def test_versions_agree() -> None:
    said = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {fl.__version__}\n" in said
    assert f"version = {{{fl.__version__}}}" in (ROOT / "docs/citing.md").read_text(
        encoding="utf-8"
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == "fewlabels"


def test_the_schema_is_that_of_what_is_written(
    as_a_reader: Path, cli: Callable[..., tuple[int, str, str]]
) -> None:
    schema = json.loads((ROOT / "docs/estimates.schema.json").read_text(encoding="utf-8"))
    statuses = schema["properties"]["estimates"]["items"]["properties"]["status"]["enum"]
    assert set(statuses) == {str(s) for s in fl.Status}
    seen: set[str] = set()
    for file, more in (
        ("moderation", ["--by", "language", "--metrics", "accuracy"]),
        ("slides", ["--metrics", "accuracy", "--method", "labeled"]),
        ("tickets", []),
    ):
        code, out, _ = cli("estimate", f"examples/{file}.csv", *more, "--json", "-")
        assert code == 0
        written = json.loads(out)
        assert faults(written, schema) == []
        seen |= set(written)
    assert seen == set(schema["properties"])
    page = (ROOT / "docs/json.md").read_text(encoding="utf-8")
    assert all(f"`{key}`" in page for key in seen)
    assert faults({**written, "n_items": "many"}, schema)
    assert faults({k: v for k, v in written.items() if k != "estimates"}, schema)


KINDS = {
    "object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
    "integer": int, "number": (int, float),
}  # fmt: skip


def faults(value: object, schema: dict, where: str = "$") -> list[str]:
    """What of a value is not as its schema says: of the keywords that ours uses."""
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(isinstance(value, KINDS[kind]) for kind in kinds):
        return [f"{where}: {value!r} is no {kinds}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: {value!r}")
    if isinstance(value, dict):
        found += [f"{where}: no {key}" for key in schema.get("required", []) if key not in value]
        rest = schema.get("additionalProperties", {})
        for key, one in value.items():
            found += faults(one, schema.get("properties", {}).get(key, rest), f"{where}.{key}")
    if isinstance(value, list):
        for k, one in enumerate(value):
            found += faults(one, schema.get("items", {}), f"{where}[{k}]")
    return found
