"""What the caller says about the columns: arguments, `--model` texts, and the TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fewlabels.errors import InputError, UsageError
from fewlabels.frames.wording import told_of
from fewlabels.wording import did_you_mean, listed, quoted

_KEYS = ("label", "item", "domain", "weight", "classes", "models", "votes")

VOTE_ROLES = ("item", "annotator", "label", "domain")
"""What a column of long votes can hold; each is the name of that column unless said otherwise."""


@dataclass(frozen=True)
class ColumnOptions:
    """Which column is what, where the caller says so; None or empty where it does not.

    `models` maps a classifier to its probability columns in the order of the classes; one column
    is the probability of the last of two classes. `keep` names the columns to keep as groups.
    `item` is the column that long votes are joined by; `votes` maps `VOTE_ROLES` to the columns of
    the long votes.
    """

    label: str | None = None
    models: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    domain: str | None = None
    weight: str | None = None
    classes: tuple[Any, ...] | None = None
    keep: tuple[str, ...] | None = None
    item: str | None = None
    votes: Mapping[str, str] = field(default_factory=dict)


def column_options(
    *,
    label: str | None = None,
    models: Mapping[str, str | Sequence[str]] | None = None,
    domain: str | None = None,
    weight: str | None = None,
    columns: str | Path | None = None,
    classes: Sequence[Any] | None = None,
    keep: str | Sequence[str] | None = None,
    item: str | None = None,
    vote_columns: Mapping[str, str] | None = None,
) -> ColumnOptions:
    """Join the arguments and the TOML file `columns`; what an argument says wins.

    Raises
    ------
    UsageError
        If an argument is not of the kind described at `read_predictions`.
    InputError
        If the TOML file cannot be read or says something unknown.
    """
    if isinstance(classes, str):
        raise UsageError(f"`classes` must be a list of classes; got the text {quoted(classes)}")
    given = ColumnOptions(
        label,
        _model_columns(models or {}),
        domain,
        weight,
        None if classes is None else tuple(classes),
        (keep,) if isinstance(keep, str) else None if keep is None else tuple(keep),
        item,
        _vote_columns(vote_columns or {}, "vote_columns"),
    )
    if columns is None:
        return given
    said = read_column_file(columns)
    return ColumnOptions(
        given.label or said.label,
        {**said.models, **given.models},
        given.domain or said.domain,
        given.weight or said.weight,
        said.classes if given.classes is None else given.classes,
        given.keep,
        given.item or said.item,
        {**said.votes, **given.votes},
    )


def parse_model_option(text: str) -> tuple[str, tuple[str, ...]]:
    """Read `NAME=COL` (the probability of the last of two classes) or `NAME=COL,COL,...`.

    Raises
    ------
    UsageError
        If the text has another form.

    Examples
    --------
    >>> parse_model_option("forest=rf_no,rf_yes")
    ('forest', ('rf_no', 'rf_yes'))
    """
    name, equals, rest = text.partition("=")
    columns = tuple(column.strip() for column in rest.split(","))
    if not (name.strip() and equals and all(columns)):
        raise UsageError(
            f"--model must be NAME=COL (probability of class 1) or NAME=COL,COL,.. (one column per "
            f"class); got {quoted(text)}"
        )
    return name.strip(), columns


def parse_model_options(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Read every `--model` text.

    Raises
    ------
    UsageError
        If a text has another form than `parse_model_option` reads, or a name comes twice.
    """
    models: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, columns = parse_model_option(text)
        if name in models:
            raise UsageError(f"--model names two classifiers {quoted(name)}; rename one of them")
        models[name] = columns
    return models


def read_column_file(path: str | Path) -> ColumnOptions:
    """Read a TOML file: label, item, domain, weight, classes, the tables [models] and [votes].

    Raises
    ------
    InputError
        If the file cannot be read, is not TOML, or has an unknown key or a value of another kind.
    """
    with told_of(str(path)):
        said = _parse(_read_text(path))
        for key in said:
            if key not in _KEYS:
                raise InputError(
                    f"unknown key {quoted(key)}; {did_you_mean(key, _KEYS)}the keys are "
                    f"{', '.join(_KEYS)}"
                )
        single = ("label", "domain", "weight", "item")
        label, domain, weight, item = (_text(said, key) for key in single)
        classes = said.get("classes")
        if classes is not None and not isinstance(classes, list):
            raise InputError(f'`classes` must be a list like ["no", "yes"]; got {quoted(classes)}')
        models = said.get("models", {})
        if not isinstance(models, dict):
            raise InputError(f'`models` must be a table: [models] NAME = ["COL"]; got {models!r}')
        try:
            mapped = _model_columns(models)
        except UsageError as error:
            raise InputError(f"{error}; put names that hold a dot in quotes") from None
        try:
            votes = _vote_columns(said.get("votes", {}), "votes")
        except UsageError as error:
            raise InputError(str(error)) from None
        given = None if classes is None else tuple(classes)
        return ColumnOptions(label, mapped, domain, weight, given, None, item, votes)


def _read_text(path: str | Path) -> str:
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("is not UTF-8; save it again as UTF-8") from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise InputError(f"is not valid TOML: {error}") from None


def _text(said: Mapping[str, Any], key: str) -> str | None:
    value = said.get(key)
    if key not in said:
        return None
    if not isinstance(value, str) or not value:
        raise InputError(f"`{key}` must be the name of a column in quotes; got {quoted(value)}")
    return value


def _model_columns(models: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    if not isinstance(models, Mapping):
        raise UsageError(f"`models` must map names to columns; got {quoted(models)}")
    result = {}
    for name, columns in models.items():
        names = (columns,) if isinstance(columns, str) else columns
        if (
            not isinstance(names, (list, tuple))
            or not names
            or not all(isinstance(column, str) and column for column in names)
        ):
            raise UsageError(
                f"`models` must map {quoted(name)} to names of columns; got {quoted(columns)}"
            )
        if len(set(names)) < len(names):
            raise UsageError(
                f"`models` must map {quoted(name)} to different columns; got {listed(names)}"
            )
        result[str(name)] = tuple(names)
    return result


def _vote_columns(columns: Any, name: str) -> dict[str, str]:
    if not isinstance(columns, Mapping):
        raise UsageError(
            f"`{name}` must map {', '.join(VOTE_ROLES)} to columns of the votes; got "
            f"{quoted(columns)}"
        )
    for role, column in columns.items():
        if role not in VOTE_ROLES:
            raise UsageError(
                f"`{name}` has the unknown key {quoted(role)}; "
                f"{did_you_mean(str(role), VOTE_ROLES)}the keys are {', '.join(VOTE_ROLES)}"
            )
        if not isinstance(column, str) or not column:
            raise UsageError(
                f"`{name}` must map {quoted(role)} to the name of a column; got {quoted(column)}"
            )
    return dict(columns)
