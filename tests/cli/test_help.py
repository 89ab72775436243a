"""`--help`: every option in a group with its sentence, every command under its task."""

from __future__ import annotations

from collections.abc import Callable

import click
import pytest

from fewlabels.cli import app as module
from fewlabels.cli.help import COMMANDS, OTHER, SENTENCES, Commands, group_of, option_name

Run = Callable[..., tuple[int, str, str]]

commands = pytest.mark.parametrize("command", sorted(module.app.commands))


@commands
def test_every_option_has_a_group_and_a_sentence(command: str) -> None:
    found = module.app.commands[command]
    with click.Context(found, info_name=command) as context:
        options = [p for p in found.get_params(context) if isinstance(p, click.Option)]
    others = [option_name(o) for o in options if group_of(command, option_name(o)) == OTHER]
    assert others == []
    assert [option_name(o) for o in options if not o.help] == []


@commands
def test_groups_are_shown_in_order_each_with_its_sentence(command: str, cli: Run) -> None:
    _, out, _ = cli(command, "--help")
    lines = out.splitlines()
    shown = [group for group in SENTENCES if f"{group}:" in lines]
    assert shown
    assert OTHER not in shown
    places = [lines.index(f"{group}:") for group in shown]
    assert places == sorted(places)
    for group, place in zip(shown, places, strict=True):
        assert lines[place + 1] == f"  {SENTENCES[group]}"


def test_every_command_has_a_task(cli: Run) -> None:
    named = {name for names in COMMANDS.values() for name in names}
    assert set(module.app.commands) <= named
    lines = cli("--help")[1].splitlines()
    assert [line[:-1] for line in lines if line[:-1] in COMMANDS] == [
        task for task, names in COMMANDS.items() if set(names) & set(module.app.commands)
    ]


def test_what_nobody_has_put_anywhere_comes_last(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    group = Commands("fewlabels")
    group.add_command(click.Command("new", params=[click.Option(["--new"], help="New.")]))
    with click.Context(group, info_name="fewlabels") as context:
        assert "Other:\n  new" in group.get_help(context)
    found = group.commands["new"]
    with click.Context(found, info_name="new") as context:
        assert found.get_help(context).index("Running:") < found.get_help(context).index("Other:")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("estimat", "x.csv"), "unknown command 'estimat'; did you mean 'estimate'?"),
        (("estimate", "x.csv", "--metrcs", "ece"), "--metrics"),
    ],
)
def test_misspelt_commands_and_options(arguments: tuple[str, ...], hint: str, cli: Run) -> None:
    code, out, err = cli(*arguments)
    assert (code, out) == (2, "")
    assert hint in err
    assert err.count("\n") == 1
