"""Methods and their settings as text: `ssme-kde[bandwidth=scott,epochs=20]`, `bandwidth=scott`.

A setting is a field of a label model, of the type that the field is annotated with, and explained
where the class's docstring lists its parameters; nothing is said of it a second time.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from fewlabels.errors import UsageError, did_you_mean, listed, quoted
from fewlabels.methods.base import LabelModel
from fewlabels.methods.registry import METHODS, named

_FOR_PYTHON = ("oracle", "budget")
"""How many labels to ask for has no meaning without the function that is asked."""

_FORM = re.compile(r"([^\[\]]+?)\s*(?:\[(.*)\])?")
_REFERS = re.compile(r"(?:are those of|As in) `(\w+)`")
_MOST, _LEAST = 10_000_000, 1e-30
"""Largest whole number, and smallest number, that text can set: larger sizes would never finish,
and squares of smaller numbers vanish."""

_PLAIN = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


class Setting(NamedTuple):
    """A field of a label model that text can set: its type, its default, and what it means."""

    name: str
    kind: Any
    default: Any
    meaning: str

    @property
    def values(self) -> str:
        """What it may be, in words."""
        return _words(self.kind)


def settings_of(name: str) -> dict[str, Setting]:
    """The settings of a method by their names, in the order of the class."""
    return {
        name: Setting(name, kind, default, _meanings(owner).get(name, ""))
        for owner, name, kind, default in _values(METHODS[named(name, METHODS)].make())
    }


def changed_settings(name: str, model: LabelModel) -> dict[str, Any]:
    """The settings of a label model that are not those of the method of this name."""
    if name not in METHODS:
        return {}
    usual = {setting: value for _, setting, _, value in _values(METHODS[name].make())}
    return {setting: v for _, setting, _, v in _values(model) if v != usual[setting]}


def model_of(name: str, options: Iterable[str] = ()) -> str | LabelModel:
    """The method of this name with settings such as "bandwidth=scott"; its name without any."""
    texts, name = list(options), named(name, ["auto", *METHODS])
    if not texts:
        return name
    if name == "auto":
        raise UsageError(
            "method 'auto' has no settings: it chooses a method, and they are the method's; name "
            "one with `--method`"
        )
    return _model(name, _read(name, texts, name), name)


def split_methods(text: str) -> list[str]:
    """Split at the commas outside brackets; drop empty parts and repetitions.

    Examples
    --------
    >>> split_methods("labeled, ssme-kde[bandwidth=scott,epochs=5]")
    ['labeled', 'ssme-kde[bandwidth=scott,epochs=5]']
    """
    parts = (part.strip() for part in re.split(r",(?![^\[]*\])", text))
    return list(dict.fromkeys(part for part in parts if part))


def canonical(text: str) -> str:
    """The one spelling of a method with its settings.

    Examples
    --------
    >>> canonical("ssme-kde[leave_one_out = true, bandwidth=scott]")
    'ssme-kde[bandwidth=scott,leave_one_out=true]'
    """
    name, settings = _parse(text)
    _model(name, settings, text)
    if not settings:
        return name
    return f"{name}[{','.join(f'{k}={shown(v)}' for k, v in settings.items())}]"


def make(text: str) -> LabelModel:
    """The label model of a method with its settings."""
    return _model(*_parse(text), text)


def shown(value: Any) -> str:
    """A value as the text that sets it.

    Examples
    --------
    >>> shown(True), shown((1.0, 10.0)), shown(None)
    ('true', '1.0,10.0', 'none')
    """
    if isinstance(value, tuple):
        return ",".join(map(shown, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _parse(text: str) -> tuple[str, dict[str, Any]]:
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"a method is NAME or NAME[SETTING=VALUE,..]; got {quoted(text)}")
    # A comma within a value is not before the name of another setting.
    parts = re.split(r",(?=\s*\w+\s*=)|,\s*$", match[2] or "")
    name = named(match[1], METHODS)
    return name, _read(name, (part.strip() for part in parts), text)


def _read(name: str, parts: Iterable[str], text: str) -> dict[str, Any]:
    """Values by setting, in the order of the alphabet; `text` is what messages quote."""
    settings, values = settings_of(name), dict[str, Any]()
    for part in filter(None, parts):
        key, equals, value = (p.strip() for p in part.partition("="))
        if not equals or not value:
            raise UsageError(f"method {quoted(text)}: {quoted(part)} must be SETTING=VALUE")
        if key not in settings:
            raise UsageError(
                f"method {quoted(text)}: unknown setting {quoted(key)}; "
                f"{did_you_mean(key, settings)}there are {listed(settings, 20) or 'none'}"
            )
        if key in values:
            raise UsageError(f"method {quoted(text)}: {quoted(key)} is set twice")
        try:
            values[key] = _value(value, settings[key].kind)
        except ValueError:
            raise UsageError(
                f"method {quoted(text)}: {key} must be {settings[key].values}{_limits(value)}; "
                f"got {quoted(value)}"
            ) from None
    return dict(sorted(values.items()))


def _model(name: str, values: Mapping[str, Any], text: str) -> LabelModel:
    try:
        return _with(METHODS[name].make(), values)
    except UsageError as error:
        raise UsageError(f"method {quoted(text)}: {error}") from None
    except (TypeError, ValueError) as error:
        raise UsageError(f"method {quoted(text)}: a value is not of its kind ({error})") from None


def _with(model: LabelModel, values: Mapping[str, Any]) -> LabelModel:
    """The model with these values, including those of a model that it holds."""
    changes: dict[str, Any] = {}
    for field in fields(model):  # type: ignore[arg-type]
        held = getattr(model, field.name)
        if isinstance(held, LabelModel):
            changes[field.name] = _with(held, values)
        elif field.name in values:
            changes[field.name] = values[field.name]
    return replace(model, **changes) if changes else model  # type: ignore[type-var]


def _values(model: LabelModel) -> Iterator[tuple[type, str, Any, Any]]:
    """What text can set of this very model: whose field, its name, type and value."""
    kinds = get_type_hints(type(model))
    for field in fields(model):  # type: ignore[arg-type]
        held = getattr(model, field.name)
        if isinstance(held, LabelModel):
            yield from _values(held)
        elif field.name not in _FOR_PYTHON and _is_text(kinds[field.name]):
            yield type(model), field.name, kinds[field.name], held


def _is_text(kind: Any) -> bool:
    """Whether some text is a value of the type."""
    inner = get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        return any(map(_is_text, inner))
    if get_origin(kind) is tuple:
        return all(_is_text(one) for one in inner if one is not Ellipsis)
    return kind in _PLAIN or get_origin(kind) is Literal


def _value(text: str, kind: Any) -> Any:
    """The value of the type that the text stands for."""
    inner = get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        # Text is anything, and one number a list of numbers too: these come last.
        for one in sorted(inner, key=lambda one: (one is str, tuple in (one, get_origin(one)))):
            with suppress(ValueError):
                return _value(text, one)
        raise ValueError(text)
    if get_origin(kind) is tuple:
        parts = [part.strip() for part in text.split(",")]
        kinds = inner[:1] * len(parts) if inner[-1] is Ellipsis else inner
        return tuple(_value(part, one) for part, one in zip(parts, kinds, strict=True))
    if get_origin(kind) is Literal and text in inner:
        return text
    if kind is NoneType and text == "none":
        return None
    if kind is bool and text in ("true", "false"):
        return text == "true"
    if kind is str:
        return text
    if kind is int and abs(int(text)) <= _MOST:
        return int(text)
    # Its square must still be a number.
    if kind is float and (float(text) == 0 or _LEAST <= abs(float(text)) <= 1 / _LEAST):
        is_whole = text.lstrip("+-").isdigit() and abs(float(text)) <= _MOST
        return int(text) if is_whole else float(text)
    raise ValueError(text)


def _limits(text: str) -> str:
    """The error for a number that is too large or too small to compute with."""
    with suppress(ValueError):
        size = abs(float(text))
        if size > _MOST or 0 < size < _LEAST:
            return f" (whole numbers to {_MOST:,}, others between {_LEAST:g} and {1 / _LEAST:g})"
    return ""


def _words(kind: Any) -> str:
    inner = get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(_words(one) for one in inner if one is NoneType or _is_text(one))
    if get_origin(kind) is Literal:
        return " or ".join(map(str, inner))
    if get_origin(kind) is tuple:
        several = {int: "whole numbers", float: "numbers"}.get(inner[0], "words")
        return f"{several} with commas between" if inner[-1] is Ellipsis else f"two {several}"
    return "none" if kind is NoneType else _PLAIN[kind]


def _meanings(made: type) -> dict[str, str]:
    """Parameters explained in docstrings: the class's own, then those of the class it refers to."""
    text = inspect.getdoc(made) or ""
    before, _, section = text.partition("\nParameters\n----------\n")
    meanings: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", section):
        names, _, meaning = entry.partition("\n")
        meanings |= dict.fromkeys(names.split(", "), inspect.cleandoc(meaning))
    beside = vars(sys.modules[made.__module__])
    for name in _REFERS.findall("\n".join([before, *meanings.values()])):
        if inspect.isclass(beside.get(name)) and beside[name] is not made:
            theirs = _meanings(beside[name])
            same = [
                key for key, meaning in meanings.items() if meaning.startswith(f"As in `{name}`")
            ]
            meanings = theirs | meanings | {key: theirs[key] for key in same if key in theirs}
    return meanings
