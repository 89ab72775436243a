"""Parts of pages that the program itself knows, as Markdown: `<!-- generated: NAME -->` in a page.

Methods and metrics come from their registries, options from the commands, statuses from their enum.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import click

from fewlabels import Status
from fewlabels.annotations import METRICS as ANNOTATION_METRICS
from fewlabels.cli.app import COMMANDS
from fewlabels.cli.options import EVERYTHING
from fewlabels.methods.registry import AUTO, METHODS
from fewlabels.methods.settings import settings_of, shown
from fewlabels.metrics.registry import ALIASES, METRICS

_SPECIAL = re.compile(r"([<>|*\[\]{}]|(?<!\w)_|_(?!\w))")
_BETTER = {1: "larger", -1: "smaller", 0: "neither"}
_STREAMS = {"rows": "every row", "sample": "the labeled rows and a sample"}


def methods() -> str:
    """A table of all methods, and a section on each."""
    lines = [
        *_table(
            ("`--method`", "what it is", "learns from"),
            [
                (f"[`{m.name}`](#method-{m.name})", _plain(m.summary), m.learns_from)
                for m in METHODS.values()
            ],
        ),
        "",
        f"`auto` is {_plain(AUTO)}.",
    ]
    for method in METHODS.values():
        needs = f"; needs {' and '.join(sorted(method.needs))}" if method.needs else ""
        means = "" if method.serves == "all metrics" else "; metrics that are means only"
        lines += [
            "",
            f"(method-{method.name})=",
            f"## {method.name}",
            "",
            f"{_sentence(method.summary)} {_plain(method.how)}",
            "",
            "Assumes:",
            "",
            *(f"- {_plain(one)}" for one in method.assumes),
            "",
            "Fails when:",
            "",
            *(f"- {_plain(one)}" for one in method.fails_when),
            "",
            f"Learns from {method.learns_from}{needs}{means}. Of a file that does not fit into "
            f"memory it answers for {_STREAMS[method.streams]}. May the items to label be chosen "
            f"by score? {_sentence(method.chosen_by_score)}",
            "",
            f"Source: {_plain(method.source)}.",
        ]
        rows = [
            (f"`{s.name}`", _plain(s.meaning), _plain(s.values), f"`{shown(s.default)}`")
            for s in settings_of(method.name).values()
        ]
        if rows:
            lines += ["", *_table(("`--option`", "what it sets", "values", "default"), rows)]
        if method.diagnostics:
            told = [(f"`{k}`", _plain(v)) for k, v in method.diagnostics.items()]
            lines += ["", *_table(("diagnostic", "what it says"), told)]
    return "\n".join(lines)


def metrics() -> str:
    """A table of all metrics, and one of their other names."""
    rows = []
    for metric in METRICS.values():
        low, high = (f"{b:g}" if math.isfinite(b) else "no limit" for b in metric.bounds)
        rows.append(
            (
                f"`{metric.name}`",
                _plain(metric.description),
                _BETTER[metric.direction],
                f"{low} to {high}",
                metric.needs,
            )
        )
    also = [(f"`{other}`", f"`{name}`") for other, name in ALIASES.items()]
    return "\n".join(
        [
            *_table(("`--metrics`", "what it is", "better", "range", "needs"), rows),
            "",
            *_table(("also understood", "is"), also),
            "",
            "Of label histograms (`fewlabels annotations`): "
            + ", ".join(f"`{name}`" for name in ANNOTATION_METRICS)
            + ".",
        ]
    )


def commands() -> str:
    """The help of every command, as the program prints it."""
    lines = []
    for task, group in COMMANDS.items():
        lines += ["", f"## {task}"]
        for command in group:
            context = click.Context(
                command, info_name=f"fewlabels {command.name}", terminal_width=88
            )
            context.meta[EVERYTHING] = True
            lines += ["", f"### {command.name}", "", "```text", command.get_help(context), "```"]
    return "\n".join(lines)


def statuses() -> str:
    """What each status means, in the words of the program."""
    return "\n".join(
        _table(("status", "what it means"), [(f"`{s}`", _plain(s.message)) for s in Status])
    )


def changelog() -> str:
    """CHANGELOG.md below its title, with its links as from docs/."""
    text = (Path(__file__).parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
    return text.partition("\n")[2].replace("](docs/", "](")


PARTS: dict[str, Callable[[], str]] = {
    "methods": methods,
    "metrics": metrics,
    "commands": commands,
    "statuses": statuses,
    "changelog": changelog,
}
"""What a page may ask for by its name."""


_MARK = re.compile(r"^<!-- generated: ([\w-]+) -->$", re.MULTILINE)
_UP = re.compile(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+)([\w./-]+)(#[\w-]+)?\)")
_PAGES = {"CHANGELOG.md": "changelog.md", "examples/README.md": "gallery/index.rst"}
"""Files beside docs/ that are pages of the site under another name."""


def filled(text: str, depth: int) -> str:
    """A page with its generated parts, and without links to files beside docs/.

    Parameters
    ----------
    depth
        How many folders below docs/ the page lies.
    """

    def link(found: re.Match[str]) -> str:
        shown, up, target, anchor = found[1], found[2], found[3], found[4] or ""
        if up.count("../") <= depth:
            return found[0]
        if target in _PAGES:
            return f"[{shown}]({'../' * depth}{_PAGES[target]}{anchor})"
        return shown if target in shown else f"{shown} (`{target}`)"

    return _UP.sub(link, _MARK.sub(lambda found: PARTS[found[1]](), text))


def _plain(text: str) -> str:
    """One line of Markdown that shows this text; what stands in backticks stays."""
    parts = re.split(r"(`+[^`]*`+)", inspect.cleandoc(text).replace("``", "`"))
    return " ".join(
        "".join(p if p.startswith("`") else _SPECIAL.sub(r"\\\1", p) for p in parts).split()
    )


def _sentence(text: str) -> str:
    plain = _plain(text)
    return f"{plain[:1].upper()}{plain[1:]}."


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        # A line within code would end the cell; elsewhere `_plain` has seen to it.
        cells = (re.sub(r"(?<!\\)\|", r"\\|", cell) for cell in row)
        yield f"| {' | '.join(cells)} |"
