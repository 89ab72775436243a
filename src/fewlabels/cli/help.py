"""`--help`: options in groups, each with its sentence; commands by what they are for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import click

from fewlabels.cli.completion import suggesting
from fewlabels.errors import unknown

INPUT, CHOICE, HOW, OUTPUT, RUNNING, OTHER = (
    "Input",
    "Which classifiers and metrics",
    "How",
    "Output",
    "Running",
    "Other",
)

SENTENCES = {
    INPUT: "What to read, and which column is what.",
    CHOICE: "What to look at; everything where nothing is said.",
    HOW: "How the answer is computed.",
    OUTPUT: "What to write besides the text, and what decides the exit code.",
    RUNNING: "Who does the work, and how much of it at once.",
    OTHER: "",
}

_OPTIONS: Mapping[str, Iterable[str]] = {
    INPUT: [
        "label",
        "labels",
        "reference",
        "model",
        "hard",
        "score",
        "confidence",
        "annotator",
        "answer",
        "sheet",
        "same",
        "votes",
        "annotator",
        "item",
        "duplicates",
        "domain",
        "weight",
        "columns",
        "classes",
        "positive",
        "no-label",
        "format",
        "where",
        "most-items",
        "data",
    ],
    CHOICE: [
        "models",
        "exclude-models",
        "methods",
        "metric",
        "metrics",
        "by",
        "bins",
        "statistic",
        "threshold",
        "min-precision",
        "min-recall",
        "min-specificity",
        "min-f1",
        "min-accuracy",
        "max-fpr",
        "max-cost",
        "cost",
        "condition",
        "size",
        "kind",
        "features",
        "levels",
        "sets",
        "slice-by",
    ],
    HOW: [
        "method",
        "confidence-level",
        "estimand",
        "interval",
        "against",
        "shift",
        "calibration",
        "concentration",
        "penalty",
        "seed",
        "runs",
        "n-labeled",
        "n-unlabeled",
        "labels-per-item",
        "sampler",
        "curve-runs",
        "reduced",
        "train-rows",
        "truth-rows",
        "apply",
    ],
    OUTPUT: [
        "require",
        "probability",
        "json",
        "html",
        "svg",
        "out",
        "write",
        "save",
        "save-data",
        "labels-out",
        "posterior",
        "list",
    ],
    RUNNING: ["engine", "scheduler", "workers", "resume", "skip-bad-files", "help"],
}

_ELSEWHERE = {("demo", "labels"): HOW}
"""Options that mean something else in one command."""

COMMANDS: Mapping[str, Iterable[str]] = {
    "Look at a file": ("doctor",),
    "How good are the classifiers": ("estimate", "compare", "annotations"),
    "Decide": ("curve", "threshold"),
    "Label": ("label-next", "label"),
    "Repair": ("shift", "calibrate"),
    "Try": ("demo", "benchmark", "methods"),
}
"""Commands by task, in the order in which somebody needs them."""


def option_name(option: click.Parameter) -> str:
    """What an option is called, without its dashes."""
    return max(option.opts, key=len).lstrip("-")


def group_of(command: str | None, name: str) -> str:
    """The group of an option; "Other" where nobody has put it into one."""
    if (command, name) in _ELSEWHERE:
        return _ELSEWHERE[command or "", name]
    return next((group for group, names in _OPTIONS.items() if name in names), OTHER)


class GroupedCommand(click.Command):
    """A command whose `--help` shows its options in groups, and whose values can be completed."""

    @classmethod
    def of(cls, command: click.Command) -> GroupedCommand:
        """The same command, with options whose values can be completed."""
        made = cls(
            command.name,
            context_settings=command.context_settings,
            callback=command.callback,
            params=command.params,
            help=command.help,
            epilog=command.epilog,
            short_help=command.short_help,
            hidden=command.hidden,
        )
        for param in made.params:
            param.type = suggesting(param.type, option_name(param))
        return made

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section per group, in a fixed order; within it as in the table."""
        found: dict[str, list[tuple[str, tuple[str, str]]]] = {}
        for param in self.get_params(context):
            record = param.get_help_record(context)
            if record is not None and isinstance(param, click.Option):
                name = option_name(param)
                found.setdefault(group_of(self.name, name), []).append((name, record))
        for group, sentence in SENTENCES.items():
            if group in found:
                place = {name: k for k, name in enumerate(_OPTIONS.get(group, ()))}
                rows = sorted(found[group], key=lambda row: place.get(row[0], len(place)))
                with formatter.section(group):
                    if sentence:
                        formatter.write_text(sentence)
                        formatter.write_paragraph()
                    formatter.write_dl([record for _, record in rows])


class Commands(click.Group):
    """The commands by task; a name that is misspelt is answered with the nearest one."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command with its options in groups."""
        super().add_command(GroupedCommand.of(cmd), name)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section per task."""
        for task, names in self._by_task():
            longest = max(map(len, self.commands))
            room = formatter.width - 6 - longest
            with formatter.section(task):
                commands = ((name, self.commands[name]) for name in names)
                formatter.write_dl(
                    [(name.ljust(longest), c.get_short_help_str(room)) for name, c in commands]
                )

    def _by_task(self) -> Iterator[tuple[str, list[str]]]:
        known = {name for names in COMMANDS.values() for name in names}
        others = {OTHER: [name for name in sorted(self.commands) if name not in known]}
        for task, names in {**COMMANDS, **others}.items():
            there = [name for name in names if name in self.commands]
            if there:
                yield task, there

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; the error names the nearest one."""
        name = args[0] if args else "-"
        misspelt = not name.startswith("-") and self.get_command(context, name) is None
        if misspelt and not context.resilient_parsing:
            known = [command for _, commands in self._by_task() for command in commands]
            context.fail(unknown("command", name, known))
        return super().resolve_command(context, args)
