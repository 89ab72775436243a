"""The report that each command writes: small enough to forward, and where it comes from."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

REPORTS = {
    "estimate": "moderation.csv --by language",
    "compare": "moderation.csv --metric accuracy,ece --by language",
    "curve": "moderation.csv --model large",
    "threshold": "moderation.csv --model large --min-precision .9",
    "label-next": "moderation.csv --metric accuracy",
    "shift": "moderation.csv",
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
