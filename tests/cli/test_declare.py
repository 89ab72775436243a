"""Records of options: what a command takes of them, and what it says otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click
from click.testing import CliRunner

from fewlabels.cli.declare import option, takes


@dataclass(frozen=True)
class Record:
    """Options of every kind."""

    name: str | None = option("A name.", metavar="NAME")
    no_label: tuple[str, ...] = option("Texts.", multiple=True)
    kind: str = option("Which.", "--of-kind", type=click.Choice(["a", "b"]), default="a")
    fast: bool = option("Hurry.", is_flag=True)


class Doubled(Record):
    """One that is made of the values in its own way."""

    @classmethod
    def of(cls, name: str, **others: Any) -> Doubled:
        """With the name twice."""
        return cls(2 * name, **others)


def run(arguments: list[str], *names: str, record: Any = Record, **changes: Any) -> tuple[Any, str]:
    """What a command gets, and its help."""
    got: list[Record] = []

    @click.command()
    @takes("record", record, *names, **changes)
    def command(record: Record) -> None:
        got.append(record)

    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    return got[0], CliRunner().invoke(command, ["--help"]).output


def test_a_command_takes_all_options_of_a_record() -> None:
    said = ["--name", "x", "--no-label", "?", "--no-label", "-", "--of-kind", "b", "--fast"]
    record, text = run(said)
    assert record == Record("x", ("?", "-"), "b", fast=True)
    assert "[default: a]" in text
    assert run([])[0] == Record()


def test_a_command_takes_some_and_says_them_otherwise() -> None:
    record, text = run(["--name", "x"], "fast", name={"help": "Who.", "metavar": "WHO"})
    assert record == Record("x")
    assert "--name WHO  Who." in text
    assert "--fast" in text
    assert "--of-kind" not in text
    assert "--no-label" not in run([], without=("no_label",))[1]
    assert "Soon." in run([], "fast", fast="Soon.")[1]


def test_a_record_may_be_made_in_its_own_way() -> None:
    assert run(["--name", "ab"], record=Doubled)[0].name == "abab"
