"""No output goes to a file that the run reads, or to one of another output, whatever names it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from fewlabels.cli.app import app
from fewlabels.cli.options import GroupedCommand

Run = Callable[..., tuple[int, str, str]]

PATHS = re.compile(r"PATH|FILE|FOLDER|DIR|TOML|VOTES|OUT|\.json")
"""Metavars of what is a path."""


def named(command: str) -> dict[click.Parameter, str]:
    """The options of a command that name files, and what these are to it."""
    found = app.commands[command]
    assert isinstance(found, GroupedCommand)
    found.get_params(click.Context(found))
    return {one.param: one.field.file for one in found.made if one.field.file is not None}


def pairs(*roles: str) -> Iterator[tuple[str, str | None, str | None]]:
    """Each command, an option that reads, and one that writes; None is an argument."""
    for command in sorted(app.commands):
        every = named(command)
        for read, role in every.items():
            for written, other in every.items():
                if role in roles and other not in ("read", "pictures"):
                    yield command, flag(read), flag(written)


def flag(param: click.Parameter) -> str | None:
    return param.opts[0] if isinstance(param, click.Option) else None


@pytest.mark.parametrize("command", sorted(app.commands))
def test_an_option_with_a_path_says_what_it_names(command: str) -> None:
    every = named(command)
    missing = [
        param.opts
        for param in app.commands[command].get_params(click.Context(app.commands[command]))
        if param not in every and PATHS.search(param.metavar or "")
    ]
    assert not missing, "say `file=` in the option"


@pytest.mark.product(2)
@pytest.mark.parametrize("by", ["path", "spelling", "hard link", "link", "chain"])
@pytest.mark.parametrize(("command", "read", "written"), list(pairs("read")))
def test_no_output_is_an_input(
    command: str, read: str | None, written: str | None, by: str, cli: Run, tmp_path: Path
) -> None:
    shared, other = tmp_path / "shared.csv", tmp_path / "other.csv"
    shared.write_text("label,p__m__1\n1,0.5\n0,0.25\n")
    if read == "--columns":  # read before anything else
        shared.write_text('label = "label"\n')
    other.write_text("label,p__m__1\n1,0.5\n0,0.25\n")
    again = tmp_path / "again.csv"
    if by == "spelling":
        again = tmp_path / "folder" / ".." / "shared.csv"
        (tmp_path / "folder").mkdir()
    elif by == "hard link":
        os.link(shared, again)
    elif by in ("link", "chain"):
        again.symlink_to(shared)
    else:
        again = shared
    if by == "chain":
        (tmp_path / "chain.csv").symlink_to(again)
        again = tmp_path / "chain.csv"
    before = {path: path.read_bytes() for path in (shared, other)}, shared.stat().st_ino
    there = sorted(tmp_path.iterdir())
    first = shared if read is None else other
    arguments: list[str | Path] = [first] if None in map(flag, named(command)) else []
    arguments += [] if read is None else [read, shared]
    arguments += [again] if written is None else [written, again]
    code, out, err = cli(command, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert "too; name another" in err
    assert ({path: path.read_bytes() for path in (shared, other)}, shared.stat().st_ino) == before
    assert sorted(tmp_path.iterdir()) == there


@pytest.mark.parametrize(
    ("command", "one", "other"),
    [
        (command, flag(one), flag(other))
        for command in sorted(app.commands)
        for one, role in named(command).items()
        for other, second in named(command).items()
        if one is not other and not {role, second} & {"read", "pictures"}
    ],
)
def test_no_output_is_another(
    command: str, one: str, other: str, cli: Run, predictions_file: Path, tmp_path: Path
) -> None:
    both, link = tmp_path / "both.csv", tmp_path / "link.csv"
    both.write_text("before")
    os.link(both, link)
    arguments = [predictions_file] if None in map(flag, named(command)) else []
    code, out, err = cli(command, *arguments, one, both, other, link)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert " too; name another" in err
    assert both.read_text() == "before"


def test_a_record_is_not_replaced_by_its_table(cli: Run, predictions_file: Path) -> None:
    """By its name, and by that which it has where none is given."""
    record = predictions_file.with_name("mine.csv")
    hidden = Path(f"{predictions_file}.labels.jsonl")
    for text, *options in (
        ('{"labels": "of a person"}\n', "--labels", record, "--out", record),
        ('{"labels": "of a person"}\n', "--out", record),
        ('label = "label"\n', "--columns", hidden),
        ('label = "label"\n', "--columns", record),
    ):
        record.write_text(text)
        hidden.unlink(missing_ok=True)
        os.link(record, hidden)
        code, out, err = cli("label", predictions_file, *options)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert " too; name another file" in err
        assert record.read_text() == text


def test_files_of_a_folder_are_read(cli: Run, predictions_file: Path, tmp_path: Path) -> None:
    folder, beside = tmp_path / "parts", tmp_path / "beside.csv"
    folder.mkdir()
    part = predictions_file.rename(folder / "part-0.csv")
    before = part.read_bytes()
    os.link(part, beside)
    for option, path in (("--json", part), ("--html", beside), ("--labels-out", beside),
                         ("--labels-out", folder / "new.csv"),
                         ("--markdown", folder / "new.csv")):  # fmt: skip
        code, out, err = cli("estimate", folder, "--method", "labeled", option, path)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert " too; name another file" in err
    assert {path.name for path in folder.iterdir()} == {"part-0.csv"}
    assert part.read_bytes() == before
    # Reports may lie beside the data, and be written again.
    for _ in range(2):
        assert cli("estimate", folder, "--metrics", "accuracy", "--json", folder / "o.json")[0] == 0


def test_what_standard_input_comes_from_is_read(
    cli: Run, predictions_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = predictions_file.read_bytes()
    with predictions_file.open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        code, _, err = cli("estimate", "-", "--json", predictions_file)
    assert code == 2
    assert "is the input file too" in err
    assert predictions_file.read_bytes() == before


def test_no_folder_of_outputs_holds_an_input(
    cli: Run, predictions_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "posterior"
    folder.mkdir()
    data = predictions_file.rename(folder / "results.csv")
    for arguments in (
        ("estimate", data, "--posterior", folder),
        ("estimate", folder, "--posterior", folder),
    ):
        code, out, err = cli(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert " too; name another folder" in err
    assert [path.name for path in folder.iterdir()] == ["results.csv"]


IMPOSSIBLE = ["", "n" * 300, "no/such/folder/a.csv", "nul\0byte.csv", "not-\udcff-text.csv", "."]
NEEDED = {
    "curve": ["--model", "good"], "label-next": ["--model", "good"], "label": ["--terminal"],
    "threshold": ["--model", "good", "--min-precision", ".5"],
    "calibrate": ["--method", "temperature", "--save", "map.json"],
}  # fmt: skip
ARGUMENTS = {
    "convert": ["FILE", "out.csv"],
    "methods": [],
    "demo": [],
}
# An empty folder may be written to, and one without pictures read; paths for output may be bytes.
MAY_BE = {("pictures", "."), ("folder", "."), ("folder", "no/such/folder/a.csv"),
          *((role, "not-\udcff-text.csv")
            for role in ("written", "text", "edited", "table"))}  # fmt: skip


@pytest.mark.product(2)
@pytest.mark.parametrize("path", IMPOSSIBLE)
@pytest.mark.parametrize(
    ("command", "option", "role"),
    [
        (command, flag(param), role)
        for command in sorted(app.commands)
        for param, role in named(command).items()
    ],
)
def test_paths_that_cannot_be_are_one_line(
    command: str,
    option: str | None,
    role: str,
    path: str,
    cli: Run,
    predictions_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And of what is written they are told before the work: FILE is not there either."""
    if (role, path) in MAY_BE or (option, path) == ("--votes", ""):
        return
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    needed = NEEDED.get(command, [])
    if option == "--apply":
        needed = ["--out", "o.csv"]
    elif option == "--save":
        needed = needed[:2]
    file = str(predictions_file) if role in ("read", "pictures", "record") else "none.csv"
    arguments = [file if a == "FILE" else a for a in ARGUMENTS.get(command, ["FILE"])]
    if option is None:
        arguments[0 if role == "read" else 1] = path
    else:
        arguments += [option, path]
    code, _, err = cli(command, *arguments, *needed)
    assert code == 2, err
    assert err.count("\n") == 1, err
    assert err.startswith("error: ")
    assert "none.csv" not in err
    assert list(empty.iterdir()) == []


def test_a_table_goes_to_a_path_that_is_no_text(
    cli: Run, predictions_file: Path, tmp_path: Path
) -> None:
    for ending in (".csv", ".parquet"):
        path = f"{tmp_path}/not-\udcff-text{ending}"
        assert cli("convert", predictions_file, path)[0] == 0
        assert os.path.getsize(path)


def test_what_somebody_may_have_edited_is_not_replaced(
    cli: Run, predictions_file: Path, tmp_path: Path
) -> None:
    columns, report = tmp_path / "columns.toml", tmp_path / "report.json"
    command = ("doctor", predictions_file, "--write", columns, "--json", report)
    assert cli(*command)[0] == 0
    report.unlink()
    assert cli(*command)[0] == 0  # the same again
    report.unlink()
    edited = columns.read_text() + "# by hand\n"
    columns.write_text(edited)
    code, _, err = cli(*command)
    assert (code, len(err.splitlines())) == (2, 1)
    assert "columns.toml" in err
    assert "name another file" in err
    assert columns.read_text() == edited
    assert not report.exists()  # all or nothing
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []
