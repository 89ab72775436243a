"""Options: what a record says of them, what the API says, `--help`, and the words of messages."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

import click
import pytest
from click.testing import CliRunner

import fewlabels as fl
from fewlabels.cli.app import COMMANDS, app, main
from fewlabels.cli.options import (
    CHOICE,
    GROUPS,
    HOW,
    GroupedCommand,
    Record,
    check_choice,
    comma_list,
    command,
    in_options,
    option,
    takes,
    text,
)
from fewlabels.errors import UsageError

Run = Callable[..., tuple[int, str, str]]

commands = pytest.mark.parametrize("name", sorted(app.commands))


class Kinds(Record):
    """Options of every kind."""

    name: str | None = option(CHOICE, "A name.", "NAME")
    no_label: tuple[str, ...] = option(CHOICE, "Texts.", default=())
    kind: Literal["a", "b"] = option(HOW, "Which.", default="a", flag="--of-kind")
    fast: bool = option(HOW, "Hurry.", default=False)
    size: int = option(HOW, "How many.", default=0, at_least=0)


class Doubled(Kinds):
    """One that is made of the values in its own way."""

    @classmethod
    def from_values(cls, name: str, **others: Any) -> Doubled:
        """With the name twice."""
        return cls(name=2 * name, **others)


def run(
    arguments: list[str], *names: str, record: Any = Kinds, **changes: Any
) -> tuple[dict[str, Any], str]:
    """What a command gets, and its help."""
    got: list[Kinds] = []

    @command()
    @takes("record", record, *names, **changes)
    def example(record: Kinds) -> None:
        got.append(record)

    result = CliRunner().invoke(example, arguments)
    assert result.exit_code == 0, result.output
    return vars(got[0]), CliRunner().invoke(example, ["--help"]).output


def test_a_command_takes_all_options_of_a_record() -> None:
    usual = {"name": None, "no_label": (), "kind": "a", "fast": False, "size": 0}
    given = ["--name", "x", "--no-label", "?", "--no-label", "-", "--of-kind", "b", "--fast"]
    record, shown = run(given)
    wanted = {"name": "x", "no_label": ("?", "-"), "kind": "b", "fast": True}
    assert record == usual | wanted
    assert "[default: a]" in shown
    assert "[default: 0; x>=0]" in shown
    assert run([])[0] == usual
    with pytest.raises(AttributeError, match="stays"):
        Kinds().name = "y"
    assert vars(Kinds(name="x").but(fast=True)) == usual | {"name": "x", "fast": True}


def test_a_command_takes_some_and_says_them_otherwise() -> None:
    record, shown = run(["--name", "x"], "fast", name={"help": "Who.", "metavar": "WHO"})
    assert record == vars(Kinds(name="x"))
    assert "--name WHO  Who." in shown
    assert "--fast" in shown
    assert "--of-kind" not in shown
    assert "--no-label" not in run([], without=("no_label",))[1]
    assert "Soon." in run([], "fast", fast="Soon.")[1]
    assert run(["--name", "ab"], record=Doubled)[0]["name"] == "abab"
    with pytest.raises(TypeError, match="Kinds has no colour"):
        run([], "colour")


# Which function a command calls, where a name differs, and what only a command has.
CALLS: dict[str, tuple[Callable[..., Any], dict[str, str]]] = {
    "estimate": (fl.estimate, {}),
    "compare": (fl.compare, {"metric": "metrics"}),
    "backtest": (fl.backtest, {}),
    "curve": (fl.curves, {}),
    "threshold": (fl.threshold, {}),
    "label-next": (fl.label_next, {}),
    "shift": (fl.shift, {}),
    "annotations": (fl.annotations.assess, {"statistic": "statistics"}),
}
# Comma lists, files and the like: text here, and other things in Python.
OTHERWISE = {"metrics", "cost", "by", "models", "workers", "columns", "posterior"}


def parameters(name: str) -> list[click.Parameter]:
    """All parameters of a command."""
    return app.commands[name].get_params(click.Context(app.commands[name]))


@pytest.mark.parametrize("name", CALLS)
def test_defaults_and_choices_are_those_of_the_function(name: str) -> None:
    function, renamed = CALLS[name]
    arguments = dict(inspect.signature(function).parameters)
    kinds = get_type_hints(function)
    aliases = {"seed": "random_state", **renamed}
    compared = set()
    for param in parameters(name):
        argument = aliases.get(str(param.name), str(param.name))
        if argument not in arguments or argument in OTHERWISE:
            continue
        compared.add(argument)
        given = None if param.multiple or param.default is None else param.default
        unset = (click.core.UNSET,) if hasattr(click.core, "UNSET") else ()
        given = None if given in unset else given
        default = arguments[argument].default
        assert given == (None if default in ((), inspect.Parameter.empty) else default), argument
        if isinstance(param.type, click.Choice) and kinds[argument] is not str:
            inner = [one for kind in (kinds[argument], *get_args(kinds[argument])) for one in
                     get_args(kind) if isinstance(one, str)]  # fmt: skip
            assert set(param.type.choices) == set(inner), argument
    assert "random_state" in compared


@commands
def test_every_option_has_a_group_and_a_sentence(name: str, cli: Run) -> None:
    found = app.commands[name]
    assert isinstance(found, GroupedCommand)
    options = [p for p in parameters(name) if isinstance(p, click.Option)]
    assert [o.name for o in options if not o.help] == []
    assert {made.field.group for made in found.made} <= set(GROUPS)
    code, out, err = cli(name, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: fewlabels {name} ")
    lines = out.splitlines()
    assert len(lines) <= 50
    heads = [
        f"{group} ({sentence}):" if sentence else f"{group}:" for group, sentence in GROUPS.items()
    ]
    places = [lines.index(head) for head in heads if head in lines]
    assert places == sorted(places)
    rare = [made.param.opts[0] for made in found.made if made.field.rare]
    assert not {*rare} & {line.split()[0] for line in lines if line.startswith("  --")}
    code, everything, err = cli(name, "--help-all")
    assert (code, err) == (0, "")
    assert all(f"  {flag}" in everything for flag in rare)
    assert lines[-1] == f"{len(rare)} rarer options: fewlabels {name} --help-all" or not rare


def test_every_command_has_a_task(cli: Run) -> None:
    lines = cli("--help")[1].splitlines()
    assert [line[:-1] for line in lines if line[:-1] in COMMANDS] == list(COMMANDS)


def test_comma_list_keeps_whole_names() -> None:
    assert comma_list("a,,b , a") == ["a", "b"]
    assert comma_list(["x,y", "a,b"], verbatim={"x,y": 1}) == ["x,y", "a", "b"]
    assert comma_list([]) == []


def test_check_choice_names_the_nearest() -> None:
    check_choice("model", "good", ["good", "poor"])
    with pytest.raises(UsageError, match=r"unknown model 'god'; did you mean 'good'\? choose from"):
        check_choice("model", "god", ["good", "poor"])
    with pytest.raises(UsageError, match="the file has none"):
        check_choice("group", "zzz", [])


def test_text_refuses_undecodable_bytes() -> None:
    assert text("ü😀") == "ü😀"
    with pytest.raises(click.BadParameter, match="must be text"):
        text("a\udcffb")


def test_python_keeps_its_own_words(predictions_file: Path) -> None:
    predictions = fl.read_predictions(predictions_file)
    with pytest.raises(fl.UsageError, match="`confidence_level` must be between 0 and 1"):
        fl.estimate(predictions, confidence_level=2)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("`random_state` must be whole", "--seed must be whole"),
        ("leave it out of `by`", "leave it out of --by"),
        ("pass `probabilities`, `votes` or `scores`", "pass probabilities, votes or scores"),
        ("`thresholds` must be numbers", "--threshold must be numbers"),
        ("`nothing_like_it` stays", "`nothing_like_it` stays"),
        ("see `fewlabels shift`", "see `fewlabels shift`"),
    ],
)
def test_words(line: str, wanted: str) -> None:
    assert in_options(line, app.commands["estimate"]) == wanted
    assert in_options(line, None) == line


def test_numbers_may_be_percentages(cli: Run, predictions_file: Path) -> None:
    asked = ("threshold", predictions_file, "--model", "good", "--json", "-", "--method", "labeled")
    shares, percent = (
        cli(*asked, "--min-recall", r, "--prevalence", p)
        for r, p in ((".6", ".035"), ("60%", "3.5 %"))
    )
    assert (shares[0], shares[1]) == (percent[0], percent[1])
    assert '"prevalence": 0.035' in shares[1]


def test_concentrations_may_be_words(cli: Run, tmp_path: Path):
    """Learned by the sampler or chosen by held-out likelihood, as in Python."""
    file = tmp_path / "votes.csv"
    rows = [f"{i},{name},{int(i % 3 == k % 2)}" for i in range(24) for k, name in enumerate("abcd")]
    file.write_text("item,annotator,label\n" + "\n".join(rows) + "\n")
    options = "--votes --method hcbee --option concentration=held-out --option burn_in=5"
    options += " --option selection=split --option top_concentration=learned"
    options += " --option sweeps=10 --option chains=2"
    code, out, _ = cli("estimate", file, *options.split(), "--json", "-")
    assert code == 0
    assert '"concentration":' in out


@commands
def test_an_option_of_other_commands_is_answered_with_their_names(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = {
        other: {flag for p in c.get_params(click.Context(c)) for flag in p.opts if flag[0] == "-"}
        for other, c in app.commands.items()
    }
    for flag in sorted(set().union(*flags.values()) - flags[name]):
        assert main([name, flag]) == 2
        answer = capsys.readouterr().err
        first = next(other for other in app.commands if flag in flags[other])
        assert f"No such option '{flag}': it belongs to `fewlabels {first}`" in answer
