"""What commands print and write as JSON, stored: see `outputs`.

Numbers that are estimated are shown as #.##: other tests say what they are.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from outputs import check

Columns = dict[str, list[Any]]
Run = Callable[..., tuple[int, str, str]]

FILES = {
    "above.csv": "label,p__m__1\n1,1.5\n0,.5\n",
    "range.csv": "label,s__m\n1,1e308\n0,-1e308\n",
    "empty.csv": "",
    "hard.csv": "label,y__m\n" + "0,0\n1,1\n,1\n" * 10,
    "votes.csv": "item,annotator,label\n"
    + "".join(f"{i},w{k},{(i + k) % 5 // 3 ^ i % 2}\n" for i in range(20) for k in range(3)),
    "twice.csv": "item,annotator,label\n1,a,0\n1,a,1\n1,b,1\n2,b,0\n",
    "tabs.tsv": "label\tp__m__1\ta,b,c\n1\t.5\tx\n0\t.25\ty\n",
    "verdicts.csv": "item,y__j\n" + "".join(f"{i},{i % 2}\n" for i in range(40)),
    "domains.csv": "item,annotator,label,domain\n"
    + "".join(
        f"{i},{a},{v},{d}\n"
        for i, d, said in (("x", "u", "nnn"), ("y", "u", "yyn"), ("x", "v", "yyy"))
        for a, v in zip("abc", said, strict=True)
    ),
    "beside.csv": "id,domain,label\nz,u,y\ny,u,\n",
    "page.csv": "item,label,p__a__y,y__b\n"
    + "".join(
        f"i{i},{'ny'[i % 2] if i < 30 else ''},0.{2 + i % 6},{'yn'[i % 2]}\n" for i in range(40)
    ),
    "more.csv": "item,annotator,label\ni30,ann,y\ni31,ann,n\n",
    "labels.csv": "item,label\n" + "".join(f"{i},{i % 2}\n" for i in range(20)),
}
CURVE = "--model good --method bayesian-calibration"
LABELED = "--method labeled --metrics accuracy"

TEXTS: dict[str, str] = {
    "doctor": """
        doctor two.csv
        doctor above.csv
        doctor range.csv
        doctor empty.csv
        doctor absent/a.csv
        doctor tabs.tsv
        doctor mapped.csv --label truth --model mine=a0,a1 --classes 0,1
        doctor named.csv --positive ham
        doctor --votes votes.csv
        doctor votes.csv
        doctor votes.csv --votes --item itme
        doctor --votes absent/a.csv
    """,
    "methods": """
        methods auto
        methods ssme-kde
    """,
    "estimate": """
        estimate two.csv --metrics accuracy
        estimate named.csv LABELED --positive ham --by site
        estimate votes.csv --method majority-vote --metrics accuracy
    """,
    "compare": """
        compare two.csv --metric accuracy,brier
        compare named.csv --positive ham --metric recall
    """,
    "annotations": """
        annotations named.csv --positive ham
        annotations histograms.csv --by site
    """,
    "curve": """
        curve two.csv CURVE
        curve named.csv CURVE --positive ham
    """,
    "threshold": """
        threshold two.csv CURVE --min-recall .5
        threshold named.csv CURVE --min-recall .5 --positive ham
        threshold two.csv CURVE --condition 'fpr <= 0 and recall >= 1'
    """,
    "label-next": """
        label-next two.csv CURVE --size 3
        label-next named.csv CURVE --size 4 --positive ham --kind roc
    """,
    "shift": """
        shift named.csv --positive ham
    """,
    "backtest": """
        backtest two.csv --labels 5,10 --runs 2 --metrics accuracy
        backtest named.csv --labels 5 --runs 1 --metrics recall --positive ham
    """,
    "calibrate": """
        calibrate page.csv --method temperature --out out.csv
        calibrate page.csv --method temperature --votes more.csv --item item --out out.csv
        calibrate histograms.csv --method alpha --out out.csv
        annotations page.csv --votes more.csv
    """,
    "calibration": """
        calibration two.csv --bins 4 --method ensemble
        calibration two.csv --models good --binning quantile --bins 3 --norm max
    """,
    "score": """
        score log.jsonl
        score verdicts.csv --labels labels.csv
    """,
}
"""What is printed, by command."""

BESIDE: dict[str, str] = {
    "requirements": """
        estimate two.csv LABELED --require accuracy>=0.01 --require 'high: accuracy < .999'
        estimate two.csv LABELED --require low:accuracy>=0.999
        estimate two.csv LABELED --require good:low:acc>=.999 --require poor:acc<=.99
        estimate hard.csv --method labeled --require log_loss<100
        estimate hard.csv --method labeled --require log_loss>=0
        annotations two.csv --require good:L<=1.9 --require 'high: CE < 2'
        annotations two.csv --require L_disagreement<=.99
        annotations histograms.csv --statistic unanimity:2 --require L_unanimity_2<=0
        annotations two.csv --require accuracy>=.999 --json -
        calibration two.csv --method ensemble --require ece<=0.01 --require high:good:ece<1
        threshold two.csv CURVE --min-recall .5 --min-precision .1 --probability .5
        threshold two.csv CURVE --min-recall .5 --min-precision .99 --probability 1
        threshold two.csv CURVE --min-recall .5 --min-precision .99 --probability 1 --json -
    """,
    "warnings": """
        estimate two.csv LABELED --json -
        estimate twice.csv --votes --duplicates keep --method majority-vote --json -
        estimate twice.csv --votes --duplicates last --method majority-vote --json -
        compare two.csv --method autoeval --json -
        annotations two.csv --json -
        annotations histograms.csv --json -
    """,
}
"""What is printed beside the answer, and the exit code."""

WRITTEN = """
    estimate two.csv --metrics accuracy --labels-out out.csv
    estimate page.csv --metrics accuracy --labels-out out.csv
    estimate --votes domains.csv --method majority-vote --metrics accuracy --labels-out out.csv
    estimate beside.csv --votes domains.csv --item id --method majority-vote --metrics accuracy \\
        --labels-out out.csv
    annotations histograms.csv --by site --out out.csv
    annotations histograms.csv --by site --statistic unanimity:2 --models poor --out out.csv
    calibrate histograms.csv --method temperature --out out.csv
    calibrate page.csv --method temperature --out out.csv
    calibrate page.csv --method temperature --votes more.csv --item item --out out.csv
    curve two.csv CURVE --out out.csv
    threshold two.csv CURVE --min-recall .5 --out out.csv
    label-next two.csv CURVE --size 2 --out out.csv
    convert log.jsonl#good out.csv
"""
"""Commands that write a table."""

REPORTS: dict[str, str] = {
    "estimate": """
        estimate two.csv
        estimate two.csv --method labeled --metrics accuracy --require brier<=1
        estimate two.csv --metrics accuracy,brier --by site --models poor --confidence-level 0.8 \\
            --method labeled --estimand sample
        estimate mapped.csv LABELED --label truth --model mine=a0,a1 --by x,y --classes 0,1
        estimate hard.csv --method labeled --metrics ece
    """,
    "compare": """
        compare two.csv --by site
        compare two.csv --model a=p__poor__0,p__poor__1 --models a,good --positive 0
        compare two.csv --method autoeval
    """,
    "curve": """
        curve two.csv CURVE
        curve two.csv CURVE --positive 0 --confidence-level .8 --estimand sample --seed 3
        curve scores.csv --method labeled
        threshold two.csv CURVE --min-precision .6 --min-recall .5 --cost 1,4 \\
            --condition 'fpr <= .7 and cost <= 2' --condition 'prevalence > .01'
        label-next two.csv CURVE --size 2
    """,
    "others": """
        annotations two.csv --positive 0
        shift two.csv --positive 0
        backtest two.csv --labels 10 --runs 1 --metrics accuracy --positive 0
        doctor named.csv --positive ham
        doctor --votes votes.csv
        score log.jsonl --criterion kind --models b
        methods labeled
    """,
}
"""What `--json -` holds, by command."""


@pytest.fixture
def folder(
    columns: Columns, histograms: Columns, log: Path, write: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A folder with every file that the commands name, in which they are run."""
    monkeypatch.chdir(log.parent)
    for name, text in FILES.items():
        Path(name).write_text(text)
    classes = {"0": "ham", "1": "spam"}
    named = {f"{k[:-1]}{classes[k[-1]]}" if k[:3] == "p__" else k: v for k, v in columns.items()}
    mapped = dict(zip(("truth", "a1", "a0"), list(columns.values())[:3], strict=True))
    write(columns, "two.csv")
    write(histograms, "histograms.csv")
    margin = [None if i == 3 else 10 * p for i, p in enumerate(columns["p__good__1"])]
    write({"label": columns["label"], "s__margin": margin}, "scores.csv")
    write(named | {"label": [classes.get(str(v), v) for v in columns["label"]]}, "named.csv")
    write(mapped | {"x,y": columns["site"]}, "mapped.csv")


def commands(lines: str) -> list[str]:
    """One per line, unless this ends in a backslash."""
    whole = re.sub(r"\\\s+", "", lines).replace("LABELED", LABELED).replace("CURVE", CURVE)
    return [line.strip() for line in whole.strip().splitlines()]


def without_estimates(text: str) -> str:
    """Numbers with a point, percentages but the level, odds, and how many labels would do."""
    numbers = r"\d*\.\d+%?|\b(?!95%|100%)\d+%|(?<=1 in )\d+"
    numbers += r"|\d+(?=\s+more labels)|\d+\s+to\s+\d+(?=\)\.)"
    return re.sub(numbers, lambda found: re.sub(r"\d", "#", found[0]), text)


@pytest.mark.few(5)
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("about", TEXTS)
def test_what_is_printed(about: str, cli: Run) -> None:
    said = []
    for line in commands(TEXTS[about]):
        code, out, err = cli(*shlex.split(line))
        assert all(len(shown) <= 80 for shown in out.splitlines()), out
        end = f"exit {code}\n" if code else ""
        said.append(f"$ {line}\n{without_estimates(out + err)}{end}")
    check(f"cli/{about}", "\n".join(said))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("about", BESIDE)
def test_what_is_printed_beside_the_answer(about: str, cli: Run) -> None:
    said = []
    for line in commands(BESIDE[about]):
        code, out, err = cli(*shlex.split(line))
        assert out
        said.append(f"$ {line}\n{without_estimates(err)}exit {code}\n")
    check(f"cli/{about}", "\n".join(said))


def shape(value: Any, name: str = "") -> Any:
    """A report without what is estimated; of diagnostics and texts about methods, the names."""
    if name in ("diagnostics", "metric_info", "method_info", "status_messages", "fewlabels"):
        return sorted(value) if isinstance(value, dict) else "..."
    if isinstance(value, dict):
        return {key: shape(one, key) for key, one in value.items()}
    if isinstance(value, list):
        found = [shape(one) for one in value]
        return found if len(found) <= 12 else [found[0], f"{len(found) - 1} more"]
    if (isinstance(value, float) and name != "confidence_level") or name in ("more", "low", "high"):
        return "#"
    return without_estimates(value) if isinstance(value, str) else value


def laid_out(value: Any, indent: str = "") -> str:
    """JSON, of which a line holds what holds nothing further."""
    inside = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list) or not any(isinstance(v, dict | list) for v in inside):
        return json.dumps(value)
    names = [f"{json.dumps(key)}: " for key in value] if isinstance(value, dict) else repeat("")
    further = indent + "  "
    lines = [further + n + laid_out(v, further) for n, v in zip(names, inside, strict=False)]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return "\n".join([begin, ",\n".join(lines), indent + end])


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("about", REPORTS)
def test_what_a_report_holds(about: str, answer: Callable[..., dict[str, Any]]) -> None:
    said = {line: laid_out(shape(answer(*shlex.split(line)))) for line in commands(REPORTS[about])}
    check(f"cli/{about}-json", "\n".join(f"$ {line}\n{found}\n" for line, found in said.items()))


@pytest.mark.usefixtures("folder")
def test_what_a_table_holds(cli: Run) -> None:
    """The header, two rows from the beginning and two from the end."""
    said = []
    for line in commands(WRITTEN):
        code, _, err = cli(*shlex.split(line))
        assert code == 0, err
        rows = Path("out.csv").read_text("utf-8").splitlines()
        some = [rows[0], *rows[1:3], *rows[-2:]] if len(rows) > 5 else rows
        table = re.sub(r"\d*\.\d+(e-\d+)?", "#", "\n".join(some))
        said.append(f"$ {line}\n{table}\n{len(rows) - 1} rows\n")
    check("cli/tables", "\n".join(said))
