"""The public surface as text: names, signatures, defaults, choices, and what results offer.

Public is what `docs/api.md` names, of each class the members that its directive names: all of them
(`:members:`), some, or the fields alone. Annotations stand as in the source, so that the text is
the same in every Python.
"""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, ForwardRef, Literal, NamedTuple, get_args, get_origin, is_typeddict

import click

import fewlabels as fl
from fewlabels.cli.app import app
from fewlabels.report.shown import Result

PAGE = Path(__file__).resolve().parents[1] / "docs" / "api.md"
MODULES = (fl, fl.annotations, fl.calibration, fl.metrics, fl.models)


class Member(NamedTuple):
    """A name as it is printed; the annotations of what it takes and gives, in a module's names."""

    text: str
    takes: str = ""
    gives: str = ""
    module: str = ""


class _Held(str):
    """What an attribute is annotated with, as in the source."""


def surface() -> str:
    """A block for each public name, in the order of the alphabet, then one for all choices."""
    things = {name: thing for name, (thing, _) in sorted(documented().items())}
    choices = {line for thing in things.values() for line in _choices(thing)}
    return "\n\n".join([*(_block(*item) for item in things.items()), "\n".join(sorted(choices))])


@cache
def documented() -> dict[str, tuple[Any, frozenset[str] | None]]:
    """What the page names, by its full name, and which members; none are named = None."""
    out: dict[str, tuple[Any, frozenset[str] | None]] = {}
    directive = re.compile(r"^\.\. auto(\w+):: ([\w.]+)\n((?:   :.*\n)*)", re.MULTILINE)
    for kind, name, options in directive.findall(PAGE.read_text(encoding="utf-8")):
        listed = re.search(r":members:(.*)", options)
        names = listed and frozenset(re.findall(r"\w+", listed[1]))
        if kind == "module":
            module = importlib.import_module(name)
            every = {f"{name}.{n}": (getattr(module, n), frozenset[str]()) for n in module.__all__}
            out = every | out
            continue
        full = name if name.startswith("fewlabels.") else f"fewlabels.{name}"
        module, _, last = full.rpartition(".")
        out[full] = getattr(importlib.import_module(module), last), names
    out["fewlabels.__version__"] = fl.__version__, None
    return out


def given_back() -> dict[type, str]:
    """Classes of ours that public functions and members give back, and which gives each.

    What is of a kind that the page names is no other.
    """
    return {
        kind: name
        for name, (thing, _) in documented().items()
        for member in (members(thing) if inspect.isclass(thing) else [_member("", thing)])
        for kind in _words(member.gives, member.module).values()
        if inspect.isclass(kind) and _is_ours(kind) and not any(map(is_documented, kind.__mro__))
    }


def members(kind: type) -> list[Member]:
    """The public members that a class defines, or a base of it that the page does not name."""
    found = own(kind)
    public = next(filter(None, map(_named, kind.__mro__)), _named(kind))
    if public is None:
        public = frozenset(name for name, thing in found.items() if isinstance(thing[0], _Held))
    names = [name for name in sorted(found) if name[0] != "_" and (not public or name in public)]
    return [_member(name, *found[name]) for name in names]


def _named(kind: type) -> frozenset[str] | None:
    """Which members of a class the page names; empty = all, None = its fields."""
    return next((names for thing, names in documented().values() if thing is kind), None)


def is_documented(kind: type) -> bool:
    """Whether the page names a class."""
    return any(thing is kind for thing, _ in documented().values())


def own(kind: type) -> dict[str, tuple[Any, str]]:
    """The members that a class defines, or a base that the page does not name, and where."""
    out: dict[str, tuple[Any, str]] = {}
    for base in reversed(kind.__bases__):
        if _is_ours(base) and not is_documented(base):
            out |= own(base)
    found = vars(kind) | dict.fromkeys(_assigned(kind), _Held())
    annotations = vars(kind).get("__annotations__", {})
    found |= {name: _Held(_source(held)) for name, held in annotations.items()}
    if issubclass(kind, enum.Enum):
        found |= {member.name: _Held(repr(member.value)) for member in kind}
    return out | {name: (thing, kind.__module__) for name, thing in found.items()}


def _source(annotation: Any) -> str:
    return annotation.__forward_arg__ if isinstance(annotation, ForwardRef) else str(annotation)


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "fewlabels"


def _assigned(kind: type) -> list[str]:
    """The attributes that methods of a class set: what a fit leaves."""
    return [
        node.attr
        for node in ast.walk(
            ast.parse(textwrap.dedent(inspect.getsource(kind) if _is_ours(kind) else ""))
        )
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    ]


def _member(name: str, thing: Any, module: str = "") -> Member:
    function = thing
    for wrapped in ("fget", "func", "function", "__func__"):
        inner = getattr(function, wrapped, None)
        function = inner if inspect.isfunction(inner) else function
    if isinstance(thing, _Held):
        return Member(f"{name}: {thing}".removesuffix(": "), "", thing, module)
    if not inspect.isfunction(function):
        return Member(f"{name} = {_shown(thing)}")
    gives = str(function.__annotations__.get("return", "None"))
    if not callable(thing) and not isinstance(thing, classmethod | staticmethod):
        return Member(f"{name}: {gives}", "", gives, module)
    takes = "".join(f"{a} " for n, a in function.__annotations__.items() if n != "return")
    return Member(f"{name}{_arguments(function)} -> {gives}", takes, gives, function.__module__)


def _arguments(function: Callable[..., Any]) -> str:
    """Parameters with annotations and defaults; one in a line where there are several."""
    parts = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind == parameter.KEYWORD_ONLY and not any(p[0] == "*" for p in parts):
            parts.append("*")
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
        part = f"{stars.get(parameter.kind, '')}{parameter.name}: {parameter.annotation}"
        bare = parameter.default is parameter.empty
        parts.append(part if bare else f"{part} = {_shown(parameter.default)}")
    parts = [part for part in parts if part.partition(":")[0] not in ("self", "cls")]
    lines = "".join(f"\n    {part}," for part in parts)
    return f"({lines}\n)" if len(parts) > 2 else f"({', '.join(parts)})"


def _block(name: str, thing: Any) -> str:
    """A name of a module with its signature; of a class its bases and members too."""
    if not inspect.isclass(thing):
        return _member(name, thing).text
    bases = [base for base in thing.__mro__[1:] if is_documented(base)]
    head, texts = f"class {name}", [member.text for member in members(thing)]
    made_by_users = name.rpartition(".")[0] in {module.__name__ for module in MODULES}
    if made_by_users and not issubclass(thing, (Result, Exception, enum.Enum)):
        head += _arguments(thing)
        told = inspect.signature(thing).parameters
        texts = [text for text in texts if re.split(r"\W", text)[0] not in told]
    head += f": {', '.join(base.__name__ for base in bases)}" if bases else ""
    return "\n".join([head, *(textwrap.indent(text, "    ") for text in texts)])


def _choices(thing: Any) -> Iterator[str]:
    """What names of literals, and of sets of arguments, stand for where they annotate it."""
    for member in members(thing) if inspect.isclass(thing) else [_member("", thing)]:
        for name, meaning in _words(member.takes + member.gives, member.module).items():
            if get_origin(meaning) is Literal:
                yield f"{name} = {' | '.join(map(repr, get_args(meaning)))}"
            if is_typeddict(meaning):
                yield f"{name} = {', '.join(meaning.__annotations__)}"


def _words(annotation: str, module: str) -> dict[str, Any]:
    """What the names in an annotation stand for in a module."""
    scope = _scope(module) if annotation else {}
    return {word: scope[word] for word in re.findall(r"[A-Za-z_]\w*", annotation) if word in scope}


@cache
def _scope(name: str) -> Mapping[str, Any]:
    """The names that a module's annotations may use, those imported for types alone too."""
    module = importlib.import_module(name)
    scope: dict[str, Any] = {}
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fewlabels"):
            other = importlib.import_module(node.module or "")
            scope |= {a.asname or a.name: getattr(other, a.name, None) for a in node.names}
    return scope | vars(module)


def _shown(value: Any) -> str:
    """A value: of mappings the keys, of what has no text its type."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(map(str, value))}}}"
    bare = inspect.isclass(value) or inspect.isfunction(value) or " at 0x" in repr(value)
    return f"<{type(value).__name__}>" if bare else repr(value)


def command_line() -> str:
    """Every command with its arguments and options: types, choices, defaults."""
    context = click.Context(app)
    commands = {name: app.get_command(context, name) for name in app.list_commands(context)}
    # Every command has --help; click makes it at the first use, with the names of that one.
    return "\n\n".join(
        "\n    ".join(
            [f"fewlabels {name}"]
            + [_option(one) for one in command.get_params(context) if "--help" not in one.opts]
        )
        for name, command in commands.items()
        if command is not None
    )


def _option(parameter: click.Parameter) -> str:
    names = "/".join([*parameter.opts, *parameter.secondary_opts])
    takes = getattr(parameter.type, "choices", None)
    kind = f"{{{','.join(map(str, takes))}}}" if takes else parameter.type.name
    if getattr(parameter, "is_flag", False):
        kind = "flag"
    default = parameter.default
    told = (
        "" if default in (None, False, ()) or "UNSET" in repr(default).upper() else f" = {default}"
    )
    several = ", repeated" if parameter.multiple or parameter.nargs == -1 else ""
    return f"{names}: {kind}{several}{told}"
