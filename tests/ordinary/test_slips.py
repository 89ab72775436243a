"""Slips of a person at the keyboard: one line that says what, where and how to mend it."""

from __future__ import annotations

import pickle
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

Run = Callable[..., tuple[int, str, str]]

HEADER = "label,p__good__no,p__good__yes,p__poor__no,p__poor__yes,site,weight"
LONG = "item,annotator,label\n" + "".join(f"{i},{a},yes\n" for i in range(30) for a in "xyz")


def rows() -> list[list[str]]:
    """80 items, 20 labels, two classifiers, a group and a weight."""
    rng = np.random.default_rng(7)
    table = []
    for i in range(80):
        truth = int(rng.integers(2))
        p = [round(float(1 / (1 + np.exp(-(2 * truth - 1) - rng.normal()))), 3) for _ in "ab"]
        cells = [f"{q:.3f}" for yes in p for q in (1 - yes, yes)]
        table.append([["no", "yes"][truth] if i < 20 else "", *cells, "ns"[i % 2], "1"])
    return table


def table(change: Callable[[list[list[str]]], object] = len, header: str = HEADER) -> str:
    cells = rows()
    change(cells)
    return "\n".join([header, *map(",".join, cells)]) + "\n"


def cell(row: int, column: int, value: str) -> str:
    return table(lambda cells: cells[row].__setitem__(column, value))


def column(number: int, values: Callable[[int], str]) -> str:
    return table(lambda cells: [c.__setitem__(number, values(i)) for i, c in enumerate(cells)])


@dataclass(frozen=True)
class Slip:
    """What is typed, the files that lie in the folder, and what the line must say.

    `{}` stands for the folder.
    """

    typed: str
    said: tuple[str, ...]
    files: dict[str, str | bytes | Callable[[Path], object]] = field(default_factory=dict)


def typing(options: str, *said: str, command: str = "estimate") -> Slip:
    """A slip in the options, beside a file that is fine."""
    return Slip(f"{command} {{}}/items.csv {options}".strip(), said, {"items.csv": table()})


def content(
    text: str | bytes | Callable[[Path], object],
    *said: str,
    options: str = "",
    name: str = "items.csv",
) -> Slip:
    """A slip in the file."""
    return Slip(f"estimate {{}}/{name} {options}".strip(), said, {name: text})


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("items.csv", table())


def _tar(path: Path) -> None:
    inside = path.with_name("inside.csv")
    inside.write_text(table(), encoding="utf-8")
    with tarfile.open(path, "w") as archive:
        archive.add(inside, "items.csv")


def _sqlite(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("create table items (label text, p real)")
    connection.commit()
    connection.close()


SLIPS: dict[str, Slip] = {
    # Names that are misspelt: the name, and the one that was probably meant.
    "command": typing("", "estmate", "did you mean", "estimate", command="estmate"),
    "option": typing("--modles good", "--modles", "--models"),
    "file": Slip(
        "estimate {}/itmes.csv", ("itmes.csv", "did you mean", "items.csv"), {"items.csv": table()}
    ),
    "label column": typing("--label lable", "lable", "did you mean", "label"),
    "method": typing("--method ssme_kde", "ssme_kde", "did you mean", "ssme-kde"),
    "metric": typing("--metrics acuracy", "acuracy", "did you mean", "accuracy"),
    "group": typing("--by sight", "sight", "site"),
    "classifier": typing("--models god", "god", "did you mean", "good"),
    "column of a classifier": typing(
        "--model mine=p__god__no,p__god__yes", "p__god__no", "did you mean", "p__good__no"
    ),
    "weight column": typing("--weight wieght", "wieght", "did you mean", "weight"),
    "domain column": typing("--domain sit", "'sit'", "did you mean", "site"),
    "positive class": typing("--positive yess", "yess", "did you mean", "'yes'"),
    "class": typing("--classes no,yess", "'yes'", "(no, yess)"),
    "required metric": typing("--require acuracy>=.9", "acuracy", "did you mean", "accuracy"),
    "estimand": typing("--estimand populaton", "populaton", "population"),
    # Values that cannot be.
    "level in percent": typing("--confidence-level 95", "95", "0.95"),
    "threshold": typing("--threshold half", "half", "number"),
    "threshold of nobody": typing("--threshold god=.4", "god", "good"),
    "negative seed": typing("--seed -1", "seed", "-1"),
    "one class": typing("--classes yes", "'no'", "(yes)"),
    "malformed requirement": typing("--require accuracy=0.9", "accuracy=0.9", "accuracy>=0.9"),
    "requirement of text": typing("--require accuracy>=high", "accuracy>=high"),
    "malformed classifier": typing("--model good", "good", "NAME=COL"),
    "label is a prediction": typing("--label p__good__yes", "p__good__yes", "prediction"),
    # Where to write.
    "missing folder": typing("--json {}/results/out.json", "--json", "results"),
    "output is the input": typing("--json {}/items.csv", "--json", "input"),
    "one file for two outputs": typing("--json {}/out --html {}/out", "--html", "--json"),
    # What is no table.
    "empty file": content("", "empty"),
    "header alone": content(HEADER + "\n", "no rows"),
    "Latin-1": content(table().replace(",n,", ",Zürich,").encode("latin-1"), "UTF-8"),
    "folder without tables": Slip(
        "estimate {}/results", ("results", "CSV"), {"results/notes.md": "# Notes\n"}
    ),
    "archive": content(_zip, "items.zip", "archive", name="items.zip"),
    "tar": content(_tar, "items.tar", "archive", name="items.tar"),
    "SQLite": content(_sqlite, "items.db", "database", "sqlite:///", name="items.db"),
    "pickle": content(pickle.dumps({"p": [0.1]}), "items.pkl", "pickle", name="items.pkl"),
    "URL": Slip(
        "estimate https://example.org/items.csv",
        ("https://example.org/items.csv", "URL", "download"),
    ),
    "PDF": content(b"%PDF-1.7\n%\xe2\xe3\n", "items.pdf", "PDF", name="items.pdf"),
    "array": content(lambda path: np.save(path, np.eye(3)), "items.npy", "npz", name="items.npy"),
    # Tables that are damaged.
    "two columns of one name": content(
        table(header=HEADER.replace("weight", "label")), "two columns", "'label'"
    ),
    "ragged row": content(table(lambda cells: cells[4].append("extra")), "row 5", "8"),
    "unclosed quote": content(cell(4, 5, '"n'), "quote"),
    # Values that nobody can have meant, quoted as they stand in the file.
    "percentage": content(cell(4, 2, "66.6"), "66.6", "p__good__yes", "row 5"),
    "percentage of one column": content(
        "label,p__good__yes\n" + "".join(f"{'yes' if i % 2 else 'no'},{i}.6\n" for i in range(90)),
        "1.6",
        "p__good__yes",
        "percent",
    ),
    "negative probability": content(cell(4, 2, "-0.2"), "-0.2", "p__good__yes", "row 5"),
    "probability that is text": content(cell(4, 2, "high"), "high", "p__good__yes"),
    "part of a row": content(cell(4, 2, ""), "good", "row 5"),
    "rows that do not sum to 1": content(cell(4, 2, "0.999"), "sum to 1", "good", "row 5"),
    "infinite score": content(
        "label,s__net\n" + "".join(f"{i % 2},{i}\n" for i in range(40)) + "1,inf\n",
        "inf",
        "s__net",
    ),
    "negative weight": content(cell(4, 6, "-3"), "-3", "weight", "negative"),
    "too many groups": content(column(5, str), "80", "50", options="--by site"),
    "vote given twice": content(
        LONG + "7,x,no\n", "'7'", "'x'", "--duplicates", options="--votes", name="votes.csv"
    ),
    "votes without annotators": content(
        LONG.replace("annotator,", "c2,c3,").replace(",yes", ",a,yes"),
        "annotator",
        "'c2'",
        "--annotator",
        options="--votes",
    ),
    # The file that says it all.
    "broken TOML": Slip(
        "estimate {}/items.csv --columns {}/columns.toml",
        ("columns.toml", "line 1"),
        {"items.csv": table(), "columns.toml": "label = verdict\n"},
    ),
    "unknown key": Slip(
        "estimate {}/items.csv --columns {}/columns.toml",
        ("lable", "did you mean", "label"),
        {"items.csv": table(), "columns.toml": 'lable = "label"\n'},
    ),
    "no TOML file": typing("--columns {}/colums.toml", "colums.toml"),
}


def lay_out(slip: Slip, folder: Path) -> None:
    for name, what in slip.files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if callable(what):
            what(path)
        else:
            path.write_bytes(what.encode() if isinstance(what, str) else what)


def contents(folder: Path) -> Iterable[tuple[Path, bytes]]:
    return [(path, path.read_bytes()) for path in sorted(folder.rglob("*")) if path.is_file()]


@pytest.mark.parametrize("name", SLIPS)
def test_one_line_with_a_mend(name: str, cli: Run, tmp_path: Path) -> None:
    slip = SLIPS[name]
    lay_out(slip, tmp_path)
    before = contents(tmp_path)
    code, out, err = cli(*slip.typed.replace("{}", str(tmp_path)).split())
    assert (code, out) == (2, ""), err
    assert err.startswith("error: ")
    assert len(err.splitlines()) == 1, err
    assert "Traceback" not in err
    message = err.replace(str(tmp_path), "").casefold()
    for word in slip.said:
        assert word.casefold() in message, err
    assert contents(tmp_path) == before, "something was written"


def test_without_a_slip_the_file_is_fine(cli: Run, tmp_path: Path) -> None:
    lay_out(typing(""), tmp_path)
    code, _, err = cli("estimate", tmp_path / "items.csv", "--method", "labeled")
    assert (code, err) == (0, "")
