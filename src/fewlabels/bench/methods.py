"""Methods as a protocol names them: a registered name, and settings in brackets."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from fewlabels.errors import UsageError, did_you_mean, listed, quoted, unknown

if TYPE_CHECKING:
    from fewlabels.methods.base import LabelModel

FLOOR = "all-labels-known"
"""The row of what the labels of all items would give."""

REFERENCE = "labeled"
"""The row that others are compared with."""

_FORM = re.compile(r"([^\[\]]+?)\s*(?:\[(.*)\])?")


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

    Raises
    ------
    UsageError
        If the method, a setting or a value is unknown.

    Examples
    --------
    >>> canonical("ssme-kde[leave_one_out = true, bandwidth=scott]")
    'ssme-kde[bandwidth=scott,leave_one_out=true]'
    """
    name, settings = _parse(text)
    make(text)
    if not settings:
        return name
    return f"{name}[{','.join(f'{k}={_text(v)}' for k, v in settings.items())}]"


def make(text: str) -> LabelModel:
    """The label model of a method with its settings.

    Raises
    ------
    UsageError
        If the method, a setting or a value is unknown.
    """
    from fewlabels.methods.registry import METHODS

    name, settings = _parse(text)
    plain = METHODS[name].make()
    if not settings:
        return plain
    try:
        return type(plain)(**settings)
    except UsageError as error:
        raise UsageError(f"method {quoted(text)}: {error}") from None
    except (TypeError, ValueError) as error:
        raise UsageError(f"method {quoted(text)}: a value is not of its kind ({error})") from None


def asks_for_labels(model: LabelModel) -> bool:
    """Whether it chooses itself which items to label."""
    return {"oracle", "budget"} <= {f.name for f in fields(model)}  # type: ignore[arg-type]


def _parse(text: str) -> tuple[str, dict[str, Any]]:
    from fewlabels.methods.registry import METHODS

    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"a method is NAME or NAME[SETTING=VALUE,..]; got {quoted(text)}")
    name, inner = found[1], found[2]
    if name not in METHODS:
        raise UsageError(unknown("method", name, METHODS))
    if inner is None:
        return name, {}
    known = {f.name: f for f in fields(METHODS[name].make())}  # type: ignore[arg-type]
    settings = {}
    for part in filter(None, (p.strip() for p in inner.split(","))):
        key, equals, value = (p.strip() for p in part.partition("="))
        if not equals or not value:
            raise UsageError(f"method {quoted(text)}: {quoted(part)} must be SETTING=VALUE")
        if key not in known or key in ("oracle", "budget"):
            choices = [k for k in known if k not in ("oracle", "budget")]
            hint = did_you_mean(key, choices)
            raise UsageError(
                f"method {quoted(text)}: unknown setting {quoted(key)}; {hint}there are "
                f"{listed(choices, 20) or 'none'}"
            )
        if key in settings:
            raise UsageError(f"method {quoted(text)}: {quoted(key)} is set twice")
        settings[key] = _value(text, key, value, known[key].default)
    return name, dict(sorted(settings.items()))


def _value(method: str, key: str, text: str, default: Any) -> Any:
    """A value of the kind of the default: what is true of a number is not of a switch."""
    value = _plain(text)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    wanted = None
    if isinstance(default, bool):
        wanted = None if isinstance(value, bool) else "true or false"
    elif isinstance(default, int | float):
        wanted = None if number else "a number"
    if wanted:
        raise UsageError(f"method {quoted(method)}: {key} must be {wanted}; got {quoted(text)}")
    return value


def _plain(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
