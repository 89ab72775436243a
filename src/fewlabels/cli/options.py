"""Options: fields of records, each said once, shown in groups and completed by shells.

A record's field says what an option is called, what it may be (its annotation), what it is unless
given, and what `--help` says of it, in which group. Commands take all options of a record or some;
they are made when the command is used, since there are hundreds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import cache, partial, wraps
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    Self,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import click

from fewlabels.cli.files import READ, Named, Role, check_files
from fewlabels.errors import UsageError, unknown

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Callback = TypeVar("Callback", bound=Callable[..., Any])

INPUT, CHOICE, HOW, OUTPUT, RUNNING = (
    "Input",
    "Which classifiers and metrics",
    "How",
    "Output",
    "Running",
)
GROUPS = {
    INPUT: "columns are recognised by names and values; say what is not",
    CHOICE: "by default all",
    HOW: "",
    OUTPUT: "besides the text",
    RUNNING: "",
}
"""The groups of `--help` in their order, with descriptions."""

NAMED, EVERYTHING = "fewlabels.named", "fewlabels.everything"
"""Keys of the click context: the files of a run, and whether `--help` shows rare options too."""

LOUDNESS = "fewlabels.loudness"
"""Key of the click context for what --quiet and --verbose ask."""


class Field(NamedTuple):
    """Description of an option in a record; see `option`."""

    default: Any
    group: str
    flag: str | None
    at_least: int | None
    file: Role | None
    rare: bool
    attributes: Mapping[str, Any]
    spreads: bool = False


def option(
    group: str, about: str | None = None, metavar: str | None = None, default: Any = None, *,
    flag: str | None = None, at_least: int | None = None, file: Role | None = None,
    rare: bool = False, spreads: bool = False, **attributes: Any,
) -> Any:  # fmt: skip
    """A field of a record that an option of the command line fills.

    Parameters
    ----------
    group
        Where `--help` shows it.
    about
        What `--help` says; None where every command says its own.
    metavar
        What stands for a value.
    default
        What the field is unless the option is given: () where it may be repeated, False of a
        switch; others are shown.
    flag
        Unless given, the field's name with dashes.
    at_least
        Bound of a whole number.
    file
        What a value that is a path names; None where it is none.
    rare
        Whether `--help` leaves it to `--help-all`.
    spreads
        Whether all arguments up to the next option are values, as a shell makes of a pattern.
    **attributes
        Of `click.option`, besides what the field's annotation says.
    """
    attributes |= {"help": about} if metavar is None else {"help": about, "metavar": metavar}
    return Field(default, group, flag, at_least, file, rare, attributes, spreads)


class Record:
    """Values of options: those that a command takes, and the defaults of the others.

    Subclasses list `option`s as annotated fields.
    """

    def __init__(self, **values: Any) -> None:
        kind: Any = type(self)
        defaults = {name: one.default for name, one in fields_of(kind).items()}
        vars(self).update(defaults | values)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is what was given, and stays")

    def but(self, **values: Any) -> Self:
        """The same with some values replaced."""
        return type(self)(**vars(self) | values)


def fields_of(record: Any) -> dict[str, Field]:
    """The options of a record by the names of its fields, inherited ones first."""
    classes = reversed(record.__mro__)
    return {n: f for c in classes for n, f in vars(c).items() if isinstance(f, Field)}


def takes(
    argument: str,
    record: Any,
    *names: str,
    without: Collection[str] = (),
    **changes: str | Mapping[str, Any],
) -> Callable[[Callback], Callback]:
    """Add options of a record, which the command gets as one argument.

    The record is made by its classmethod `from_values`, if it has one. `names` are the options that
    are taken, beside those of `changes`; unless given, all but those of `without`. `changes` are
    what a command says otherwise: the help of an option, or several attributes.
    """
    make = getattr(record, "from_values", record)
    registered = fields_of(record)
    missing = {*names, *changes, *without} - registered.keys()
    if missing:
        raise TypeError(f"{record.__name__} has no {', '.join(sorted(missing))}")
    wanted = {*names, *changes} if names else registered.keys() - {*without}
    taken = [name for name in registered if name in wanted]

    def params() -> list[Made]:
        return [_param(record, name, changes.get(name, {})) for name in taken]

    def add(command: Callback) -> Callback:
        @wraps(command)
        def wrapper(**given: Any) -> Any:
            values = {name: given.pop(name) for name in taken}
            return command(**{argument: make(**values)}, **given)

        wrapper.__dict__["params"] = [params, *getattr(command, "params", ())]
        return cast(Callback, wrapper)

    return add


class _Number(click.types.FloatParamType):
    """A number, which may be a share in percent: 80% is 0.8."""

    def convert(self, value: Any, *where: Any) -> Any:
        if isinstance(value, str) and value.rstrip().endswith("%"):
            with suppress(ValueError):
                return float(value.rstrip()[:-1]) / 100
        return super().convert(value, *where)


class Made(NamedTuple):
    """An option of a command, and whose field it is."""

    record: Any
    name: str
    field: Field
    param: click.Parameter


def _param(record: Any, name: str, change: str | Mapping[str, Any]) -> Made:
    """The option of a field: by its annotation, its default, and what was said of it."""
    kind, field = _kinds(record)[name], fields_of(record)[name]
    if NoneType in get_args(kind):
        kind = get_args(kind)[0]
    made: dict[str, Any] = {}
    if kind is bool:
        made = {"is_flag": True}
    elif get_origin(kind) is tuple:
        made = {"multiple": True, "type": text}
    elif get_origin(kind) is Literal:
        made = {"type": click.Choice(get_args(kind))}
    elif kind is int:
        bounded = field.at_least is not None
        made = {"type": click.IntRange(min=field.at_least) if bounded else click.INT}
        made["metavar"] = "N"
    else:
        made = {"type": text if kind is str else _Number()}
    if field.default is not None and field.default != () and field.default is not False:
        made |= {"default": field.default, "show_default": True}
    if name in ("method", "metric", "metrics") or field.file is not None:
        made["shell_complete"] = partial(_suggested, file=field.file is not None)
    made |= field.attributes
    made |= {"help": change} if isinstance(change, str) else change
    if made.get("multiple") and made.get("help"):
        made["help"] += " Repeatable."
    field = field._replace(rare=made.pop("rare", field.rare))
    if made.pop("positional", False):
        made.pop("help", None)
        return Made(record, name, field, click.Argument([name], required=False, **made))
    flag = field.flag or f"--{name.replace('_', '-')}"
    return Made(record, name, field, click.Option([flag, name], **made))


_kinds = cache(get_type_hints)


def _say_less(context: click.Context, param: click.Parameter, given: bool) -> None:
    if given:
        context.meta[LOUDNESS] = str(param.name)


class Loudness(Record):
    """What any command says on standard error beside its answer; the last one given holds."""

    quiet: bool = option(
        RUNNING,
        "No progress and no notes on standard error; warnings stay.",
        default=False,
        rare=True,
        expose_value=False,
        callback=_say_less,
    )
    verbose: bool = option(
        RUNNING,
        "Say on standard error how long each step took, and with how much memory.",
        default=False,
        rare=True,
        expose_value=False,
        callback=_say_less,
    )


def loudness() -> str:
    """What was asked of the running command: "quiet", "verbose", or nothing."""
    context = click.get_current_context(silent=True)
    return "" if context is None else str(context.meta.get(LOUDNESS, ""))


def _show_all(context: click.Context, param: click.Parameter, given: bool) -> None:
    if given and not context.resilient_parsing:
        context.meta[EVERYTHING] = True
        click.echo(context.get_help())
        context.exit()


class GroupedCommand(click.Command):
    """A command whose options come from records, and stand in groups in its `--help`."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """All parameters, which are made when they are first asked for."""
        if not self.params:
            makers = getattr(self.callback, "params", ())
            self.made: list[Made] = [made for params in makers for made in params()]
            self.made += [_param(Loudness, name, {}) for name in fields_of(Loudness)]
            shows: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False}
            every = click.Option(
                ["--help-all"], callback=_show_all, help="Show all options.", **shows
            )
            self.params = [*(made.param for made in self.made), every]
        return super().get_params(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with an option before each of the values that it has several of."""
        self.get_params(ctx)
        spread = {flag for one in self.made if one.field.spreads for flag in one.param.opts}
        if sum(isinstance(one.param, click.Argument) for one in self.made) > 1:
            spread = set()  # what follows may be another argument
        out: list[str] = []
        flag = None
        for arg in args:
            if arg in spread:
                flag, first = arg, True
                continue
            if arg.startswith("-") and arg != "-":
                if flag is not None and first:
                    out.append(flag)  # without a value: click says so
                flag = None
            if flag is not None:
                out.append(flag)
                first = False
            out.append(arg)
        if flag is not None and first:
            out.append(flag)
        return super().parse_args(ctx, out)

    def invoke(self, ctx: click.Context) -> Any:
        """Run it, unless a file that it writes is one that it reads."""
        named = ctx.meta[NAMED] = [
            Named(str(param.metavar) if param.opts == [param.name] else param.opts[0], path, role)
            for _, _, field, param in self.made
            if (role := field.file) is not None
            for values in [ctx.params[str(param.name)]]
            for path in ([values] if isinstance(values, str) else values or ())
        ]
        if any(one.role not in READ for one in named):
            check_files(named)
        return super().invoke(ctx)

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section per group, in a fixed order; within it as they were declared."""
        everything = context.meta.get(EVERYTHING, False)
        options = [one for one in self.made if isinstance(one.param, click.Option)]
        shown = [one for one in options if everything or not one.field.rare]
        for group, sentence in GROUPS.items():
            rows = [one.param.get_help_record(context) for one in shown if one.field.group == group]
            if rows:
                with formatter.section(f"{group} ({sentence})" if sentence else group):
                    formatter.write_dl([row for row in rows if row is not None])
        self.n_hidden = len(options) - len(shown)

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what stands below, and last how to see the options that are left out."""
        super().format_epilog(context, formatter)
        if self.n_hidden:
            formatter.write_paragraph()
            formatter.write_text(
                f"{self.n_hidden} rarer options: {context.command_path} --help-all"
            )


command = partial(click.command, cls=GroupedCommand)
"""A command that takes records of options; else as `click.command`."""


def also_named(option: str, path: str, role: Role) -> None:
    """Check a file that is named by the command itself, not by an option, beside all others."""
    named: list[Named] = click.get_current_context().meta[NAMED]
    if not any(one.option == option for one in named):
        named.append(Named(option, path, role))
        check_files(named)


def _suggested(
    context: click.Context, param: click.Parameter, incomplete: str, *, file: bool
) -> list[CompletionItem]:
    """Methods, metrics (behind the last comma of a list), or that a file is meant."""
    from click.shell_completion import CompletionItem

    if file:
        return [CompletionItem(incomplete, type="file")]
    before, comma, last = "", "", incomplete
    if param.name == "method":
        names = method_names()
    else:
        from fewlabels.metrics import METRICS

        names, (before, comma, last) = list(METRICS), incomplete.rpartition(",")
    return [CompletionItem(before + comma + name) for name in names if name.startswith(last)]


def method_names() -> list[str]:
    """All methods, the default first."""
    from fewlabels.methods.registry import METHODS

    return ["auto", *(name for name in METHODS if name != "auto")]


def text(value: str) -> str:
    """Refuse lone surrogates, which is how undecodable bytes of the command line arrive.

    An option's `type`; what it lets through can be written to any file.
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        # Not a `UsageError`, which is a ValueError: click would put its own words for the message.
        raise click.BadParameter(
            f"it must be text in this terminal's encoding; got {value!r}"
        ) from None
    return value


def comma_list(values: str | Iterable[str], verbatim: Collection[str] = ()) -> list[str]:
    """Split at commas, except `verbatim` names; drop empty parts and repetitions.

    Examples
    --------
    >>> comma_list(["a, b", "b", "x,y"], verbatim={"x,y"})
    ['a', 'b', 'x,y']
    """
    names: list[str] = []
    for value in [values] if isinstance(values, str) else values:
        texts = [value] if value in verbatim else [one.strip() for one in value.split(",")]
        names.extend(one for one in texts if one)
    return list(dict.fromkeys(names))


def check_choice(kind: str, name: str, choices: Iterable[str]) -> None:
    """Refuse a name that is not among the choices."""
    registered = list(choices)
    if name not in registered:
        raise UsageError(unknown(kind, name, registered, "the file has none"))


# Messages of the library name arguments of Python; here they are options.

_NAMED = re.compile(r"`([a-z][a-z0-9_]*|--[a-z0-9-]+)`")

_ARGUMENTS = {"random_state": "seed"}
"""Python arguments whose options have another name; a plural's option may be the singular."""

_PLAIN = {
    "predictions": "FILE",
    "source": "FILE",
    "probabilities": "probabilities",
    "labels": "labels",
    "votes": "votes",
    "scores": "scores",
    "histogram": "annotators' counts",
    "path": "the path",
}
"""Python arguments that stand for the content of a file, even if options share their names."""


def in_options(line: str, command: click.Command | None) -> str:
    """A message of the library with the command's own options in place of what Python calls them.

    Examples
    --------
    >>> command = click.Command("estimate", params=[click.Option(["--confidence-level"])])
    >>> in_options("`confidence_level` must be between 0 and 1; got 2.0", command)
    '--confidence-level must be between 0 and 1; got 2.0'
    """
    if command is None:
        return line
    options: dict[str, str] = {}
    for param in command.get_params(click.Context(command)):
        longest = max(param.opts, key=len)
        if isinstance(param, click.Option):
            options |= {str(param.name): longest, longest.lstrip("-").replace("-", "_"): longest}

    def spelled(found: re.Match[str]) -> str:
        if found[1].startswith("--"):
            return found[1]
        name = _ARGUMENTS.get(found[1], found[1])
        return _PLAIN.get(name) or options.get(name) or options.get(name.rstrip("s"), found[0])

    # None cannot be typed: it is the default of the option.
    return _NAMED.sub(spelled, line).replace(", or None; got", "; got")
