"""The report that each command writes: its size, where it comes from, and what it can do.

What SECURITY.md says of pages, of what leaves the machine and of other users is tested here.
"""

from __future__ import annotations

import base64
import hashlib
import html
import io
import re
import shlex
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from fewlabels.cli.app import app
from fewlabels.data.sources import standard_input
from fewlabels.streaming.checkpoint import Checkpoint

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

REPORTS = {
    "estimate": "moderation.csv --by language",
    "compare": "moderation.csv --metric accuracy,ece --by language",
    "calibration": "moderation.csv",
    "score": "verdicts.csv --confusion",
    "curve": "moderation.csv --model large",
    "threshold": "moderation.csv --model large --min-precision .9",
    "label-next": "moderation.csv --metric accuracy",
    "shift": "moderation.csv",
    "monitor": "messages.csv --time date --every week --metrics accuracy",
    "rank": "battles.csv",
    "backtest": "moderation_labeled.csv --labels 20 --runs 2 --metrics accuracy,ece",
    "annotations": "slides.csv",
    "calibrate": "slides.csv --method alpha",
}


def test_each_command_with_a_page_is_here() -> None:
    found = {
        name
        for name, command in app.commands.items()
        if "html" in {param.name for param in command.get_params(click.Context(command))}
    }
    assert found == REPORTS.keys()


@pytest.mark.few(5)
@pytest.mark.parametrize("command", REPORTS)
def test_a_report_is_small_says_where_it_comes_from_and_asks_nobody(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Callable[..., tuple[int, str, str]],
) -> None:
    """What pages may run and fetch is tested of each kind in tests/report."""

    def connect(*_: object) -> None:
        raise AssertionError("something leaves the machine")

    monkeypatch.setattr(socket.socket, "connect", connect)
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
        assert '<dt>Positive</dt><dd><bdi class="name" title="toxic">' in source
    assert_safe(source)


def assert_safe(source: str) -> None:
    """The page runs its own script alone."""
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy"\s+content="([^"]*)"', source)
    (script,) = re.findall(r"<script>(.*?)</script>", source, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert html.unescape(policy) == (
        "default-src 'none'; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def test_the_page_of_the_demo_is_safe_too(demo_folder: Path) -> None:
    assert_safe((demo_folder / "report.html").read_text("utf-8"))


def test_what_is_made_for_the_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints, and the copy of standard input."""
    checkpoint = Checkpoint(tmp_path, "key")
    checkpoint.save({"value": 1})
    assert stat.S_IMODE(checkpoint.path.stat().st_mode) == 0o600
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"label,p__m__1\n1,0.5\n")))
    assert stat.S_IMODE(standard_input("csv").parent.stat().st_mode) == 0o700
