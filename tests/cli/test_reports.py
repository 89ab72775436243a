"""The report that each command writes: its size, where it comes from, and what it can do.

What SECURITY.md says of pages, of what leaves the machine and of other users is tested here.
"""

from __future__ import annotations

import base64
import hashlib
import html.parser
import io
import re
import shlex
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import pytest

from fewlabels.cli.app import app
from fewlabels.data.sources import standard_input
from fewlabels.streaming.checkpoint import Checkpoint

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

REPORTS = {
    "estimate": "moderation.csv --by language",
    "compare": "moderation.csv --metric accuracy,ece --by language",
    "curve": "moderation.csv --model large",
    "threshold": "moderation.csv --model large --min-precision .9",
    "label-next": "moderation.csv --metric accuracy",
    "shift": "moderation.csv",
    "backtest": "moderation_labeled.csv --labels 20 --runs 2 --metrics accuracy,ece",
    "annotations": "slides.csv",
    "calibrate": "slides.csv --method alpha",
}


@pytest.mark.parametrize("command", REPORTS)
def test_a_report_is_small_and_says_where_it_comes_from(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Callable[..., tuple[int, str, str]],
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")
    file, *options = shlex.split(REPORTS[command])
    page = tmp_path / "report.html"
    typed = [command, str(EXAMPLES / file), *options, "--html", str(page)]
    code, _, err = cli(*typed)
    assert (code, err) == (0, "")
    source = page.read_text(encoding="utf-8")
    assert len(source.encode()) < 300_000
    assert f'<p class="kicker">fewlabels report · {file} · 1 January 2026</p>' in source
    end = source[source.index('<h2 id="provenance">') :]
    for said in (f"<dd>{EXAMPLES / file}</dd>", "2026-01-01 00:00 UTC", "<dt>Version</dt>"):
        assert said in end
    assert f"<code>{shlex.join(['fewlabels', *typed])}</code>" in end
    if file == "moderation.csv":
        assert "<dt>Positive class</dt><dd>toxic</dd>" in end


class Page(html.parser.HTMLParser):
    """What a browser would run, fetch or send of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.policies: list[str] = []
        self.scripts: list[str] = []
        self.active: list[str] = []
        self._inside = ""
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        said = {name: value or "" for name, value in attrs}
        if said.get("http-equiv") == "Content-Security-Policy":
            self.policies.append(said["content"])
        if tag in ("link", "img", "iframe", "object", "embed", "form", "base", "source", "video"):
            self.active.append(tag)
        self.active += [f"{tag} {name}" for name in said if name.startswith("on") or name == "src"]
        self.active += [
            f"{tag} {name}={value}"
            for name, value in said.items()
            if (name.endswith("href") and not value.startswith("#")) or "url(" in value
        ]

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts.append(data)
        if self._inside == "style" and re.search(r"url\(|@import|https?:", data):
            self.active.append("style")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""


SIMULATED = {
    "demo": ["--out", "PAGE"],
}
"""Commands that write a page without --html."""


def test_each_command_with_a_page_is_here() -> None:
    found = {
        name
        for name, command in app.commands.items()
        if "html" in {param.name for param in command.get_params(click.Context(command))}
    }
    assert found == REPORTS.keys()
    assert not found & SIMULATED.keys()


@pytest.mark.parametrize("command", [*REPORTS, *SIMULATED])
def test_a_page_runs_its_own_script_and_asks_nobody(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Callable[..., tuple[int, str, str]],
    write: Callable[..., Path],
) -> None:
    def connect(*_: object) -> None:
        raise AssertionError("something leaves the machine")

    monkeypatch.setattr(socket.socket, "connect", connect)
    page = tmp_path / "report.html"
    if command in REPORTS:
        file, *options = shlex.split(REPORTS[command])
        arguments = [str(EXAMPLES / file), *options, "--html", str(page)]
    else:
        rng = np.random.default_rng(0)
        truth = rng.integers(2, size=200)
        p = (0.2 + 0.6 * truth + 0.15 * rng.random(200)).round(4)
        places = {
            "PAGE": page,
            "FOLDER": tmp_path,
            "FILE": write({"label": truth.tolist(), "p__m__1": p.tolist()}, "all.csv").rename(
                tmp_path.parent / f"{tmp_path.name}.csv"
            ),
        }
        arguments = [str(places.get(a, a)) for a in SIMULATED[command]]
    code, _, err = cli(command, *arguments)
    assert code == 0, err
    found = Page(page)
    assert found.active == []
    (policy,) = found.policies
    allowed = dict(part.split(" ", 1) for part in policy.split("; "))
    assert allowed.pop("default-src") == allowed["base-uri"] == allowed["form-action"] == "'none'"
    # Connections, frames and whatever is not named here are those of default-src.
    assert allowed.keys() <= {"style-src", "script-src", "img-src", "base-uri", "form-action"}
    assert allowed["img-src"] == "data:"
    (script,) = found.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert allowed["script-src"] == f"'sha256-{digest}'"
    assert not re.search(r"fetch|XMLHttp|WebSocket|sendBeacon|import|eval|innerHTML", script)


def test_what_is_made_for_the_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints, and the copy of standard input."""
    checkpoint = Checkpoint(tmp_path, "key")
    checkpoint.save({"value": 1})
    assert stat.S_IMODE(checkpoint.path.stat().st_mode) == 0o600
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"label,p__m__1\n1,0.5\n")))
    assert stat.S_IMODE(standard_input("csv").parent.stat().st_mode) == 0o700
