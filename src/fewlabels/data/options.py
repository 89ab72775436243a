"""What the caller says about the columns: arguments, `--model` texts, and the TOML file."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

from fewlabels.checks.arguments import parse_toml, side_text
from fewlabels.data.table import class_text, naming_file
from fewlabels.errors import InputError, UsageError, did_you_mean, listed, quoted

_OTHER_NAMES = {"model": "models", "score": "scores"}

VOTE_ROLES = ("item", "annotator", "label", "domain")
"""What a column of long votes can hold; each is the name of that column unless said otherwise."""


class ColumnArguments(TypedDict, total=False):
    """What `read_predictions` says of columns, for the functions that pass it on."""

    label: str | None
    models: Mapping[str, str | Sequence[str]] | None
    logits: Mapping[str, str | Sequence[str]] | None
    hard: Mapping[str, str] | None
    scores: Mapping[str, str] | None
    confidence: Mapping[str, str] | None
    domain: str | None
    cluster: str | Sequence[str] | None
    weight: str | None
    stratum: str | None
    columns: str | Path | Mapping[str, Any] | ColumnOptions | None
    classes: Sequence[Any] | None
    positive: Any
    no_label: Sequence[str] | None
    same: Mapping[str, Any] | None
    keep: str | Sequence[str] | None
    item: str | Sequence[str] | None
    annotator: str | None
    answer: str | None
    vote_columns: Mapping[str, str] | None
    task: str | None
    tasks: Mapping[str, str | Sequence[str]] | None


def _said(kind: str, flag: str) -> Any:
    """A field that a key of the TOML file says, and an option of the command line."""
    metadata = {"kind": kind, "flag": flag}
    if kind in ("several", "one", "means"):
        return field(default_factory=dict, metadata=metadata)
    return field(default=() if kind == "texts" else None, metadata=metadata)


@dataclass(frozen=True)
class ColumnOptions:
    """Which column is what, where the caller says so; None or empty where it does not.

    `models` and `logits` map a classifier to its columns, one per class or that of the positive
    class; `hard`, `scores` and `confidence` map one to its column; `votes` maps `VOTE_ROLES` to the
    columns of long votes. `same` maps a text to the class it means. `perhaps_weights` may be
    sampling weights, which nobody has said. `tasks` maps a task to its columns; the other options
    then name what its columns are without the task. `task` is the column that says of which task a
    row is.
    """

    label: str | None = _said("text", "--label")
    item: str | None = _said("text", "--item")
    task: str | None = _said("text", "--task")
    domain: str | None = _said("text", "--domain")
    weight: str | None = _said("text", "--weight")
    stratum: str | None = _said("text", "--stratum")
    positive: str | None = _said("class", "--positive")
    classes: tuple[Any, ...] | None = _said("classes", "--classes")
    cluster: tuple[str, ...] = _said("texts", "--cluster")
    no_label: tuple[str, ...] = _said("texts", "--no-label")
    tasks: Mapping[str, tuple[str, ...]] = _said("several", "--task")
    models: Mapping[str, tuple[str, ...]] = _said("several", "--model")
    logits: Mapping[str, tuple[str, ...]] = _said("several", "--logits")
    hard: Mapping[str, str] = _said("one", "--hard")
    scores: Mapping[str, str] = _said("one", "--score")
    confidence: Mapping[str, str] = _said("one", "--confidence")
    same: Mapping[str, str] = _said("means", "--same")
    votes: Mapping[str, str] = field(default_factory=dict)
    keep: tuple[str, ...] | None = None
    perhaps_weights: tuple[str, ...] = ()

    @property
    def by_class(self) -> dict[str, tuple[str, ...]]:
        """Classifier -> its columns, one per class, of probabilities or of logits."""
        return {**self.models, **self.logits}

    @property
    def names_classifiers(self) -> bool:
        """Whether the caller says which columns are those of classifiers."""
        return bool(self.by_class or self.hard or self.scores or self.confidence)

    @property
    def of_classifiers(self) -> frozenset[str]:
        """The columns that the caller says are those of classifiers."""
        singles = (self.hard, self.scores, self.confidence)
        several = (column for columns in self.by_class.values() for column in columns)
        return frozenset([*several, *(c for mapped in singles for c in mapped.values())])

    def renamed(self, to: Callable[[str], str | None]) -> ColumnOptions:
        """The same of a table whose columns have other names, or where `to` gives None, no such."""
        out: dict[str, Any] = {}
        for key, (kind, _) in (SAID | {"votes": ("one", "")}).items():
            value = getattr(self, key)
            if kind == "several" and key != "tasks":
                mapped = {name: tuple(map(to, columns)) for name, columns in value.items()}
                out[key] = {name: of for name, of in mapped.items() if None not in of}
            elif kind == "one":
                named = {name: to(column) for name, column in value.items()}
                out[key] = {name: column for name, column in named.items() if column is not None}
            elif kind == "text" and value is not None:
                out[key] = to(value)
            elif key == "cluster":
                out[key] = tuple(column for one in value if (column := to(one)) is not None)
        return replace(self, **out)

    def to_dict(self) -> dict[str, Any]:
        """What is said, by the keys of the TOML file, the tables last."""
        out: dict[str, Any] = {}
        for key in (*SAID, "votes"):
            value = getattr(self, key)
            if isinstance(value, Mapping):
                value = {n: list(c) if isinstance(c, tuple) else c for n, c in value.items()}
            if value is not None and (value or key == "classes"):
                out[key] = list(value) if isinstance(value, tuple) else value
        return out

    def arguments(self) -> list[str]:
        """The same as options of the command line."""
        out: list[str] = []
        for key, (kind, flag) in SAID.items():
            value = getattr(self, key)
            if isinstance(value, Mapping):
                joined = _joined if kind == "several" else str
                texts = [f"{_joined([n], '=')}={joined(one)}" for n, one in value.items()]
            elif kind == "classes":
                texts = [] if value is None else [_joined(map(str, value))]
            else:
                texts = [value] if isinstance(value, str) else list(value or ())
            out += [word for text in texts for word in (flag, text)]
        for role, flag in (("item", "--item"), ("annotator", "--annotator"), ("label", "--answer")):
            if role in self.votes and not (role == "item" and self.item is not None):
                out += [flag, self.votes[role]]
        return out

    def to_toml(self) -> str:
        """The same as a TOML file of --columns."""
        lines, tables = [], []
        for key, value in self.to_dict().items():
            if isinstance(value, dict):
                tables += ["", f"[{key}]"]
                tables += [f"{_quoted_toml(k)} = {_quoted_toml(v)}" for k, v in value.items()]
            else:
                lines.append(f"{key} = {_quoted_toml(value)}")
        return "\n".join([*lines, *tables]).lstrip("\n") + "\n"

    def command(self, file: str, *, votes: bool = False) -> str:
        """The command line that reads a file so; by the file of --columns where it must be."""
        words = ["fewlabels", "estimate", file, *(["--votes"] if votes else [])]
        try:
            return shlex.join([*words, *self.arguments()])
        except UsageError:
            return shlex.join([*words, "--columns", "columns.toml"])


SAID = {
    one.name: (str(one.metadata["kind"]), str(one.metadata["flag"]))
    for one in fields(ColumnOptions)
    if one.metadata
}
"""Field -> what it holds (a text, texts, a table of one column or of several), and its option."""

_KEYS = (*SAID, "annotator", "answer", "votes")

COLUMN_KEYS = frozenset([*_KEYS, *_OTHER_NAMES])
"""What the file of `columns` may say, with `-` or `_`."""


def _quoted_toml(value: Any) -> str:
    # Strings, numbers and lists of JSON are those of TOML.
    return json.dumps(value, ensure_ascii=False)


def _joined(names: Iterable[str], mark: str = ",") -> str:
    held = list(names)
    for name in held:
        if mark in name:
            called = "a comma" if mark == "," else f"'{mark}'"
            raise UsageError(f"{quoted(name)} holds {called}; say it in the file of --columns")
    return ",".join(held)


def _checked(name: str, kind: str, value: Any) -> Any:
    """What an argument says, as its field holds it."""
    if kind in ("several", "one"):
        return _mapped(value or {}, name, several=kind == "several")
    if kind == "means":
        return {str(text): class_text(meant) for text, meant in (value or {}).items()}
    if kind == "classes" and isinstance(value, str):
        raise UsageError(f"`classes` must be a list of classes; got the text {quoted(value)}")
    if kind == "texts":
        of = "names of columns" if name == "cluster" else "texts"
        alone = isinstance(value, str) or not isinstance(value, Iterable)
        texts = () if value is None else (value,) if alone else tuple(value)
        plain = all(isinstance(text, str) for text in texts)
        if not plain or (name == "cluster" and "" in texts):
            raise UsageError(f"`{name}` must be {of}; got {quoted(texts if plain else value)}")
        return tuple(dict.fromkeys(texts)) if name == "cluster" else texts
    if value is None or kind == "text":
        return value
    return class_text(value) if kind == "class" else tuple(value)


def column_options(**arguments: Unpack[ColumnArguments]) -> ColumnOptions:
    """Join the arguments and `columns` (a TOML file, a mapping, or options); arguments win."""
    for name in arguments:
        if name not in ColumnArguments.__annotations__:
            raise TypeError(f"got an unexpected keyword argument {name!r}")
    get = dict[str, Any](arguments).get
    keep, columns, item = get("keep"), get("columns"), get("item")
    said_votes, what = get("vote_columns") or {}, f"{', '.join(VOTE_ROLES)} to columns of the votes"
    for role in said_votes if isinstance(said_votes, Mapping) else ():
        if role not in VOTE_ROLES:
            raise UsageError(
                f"`vote_columns` has the unknown key {quoted(role)}; "
                f"{did_you_mean(str(role), VOTE_ROLES)}the keys are {', '.join(VOTE_ROLES)}"
            )
    of_votes = {"annotator": get("annotator"), "label": get("answer")}
    given = ColumnOptions(
        **{name: _checked(name, kind, get(name)) for name, (kind, _) in SAID.items()},
        keep=(keep,) if isinstance(keep, str) else None if keep is None else tuple(keep),
        votes={
            **{role: column for role, column in of_votes.items() if column is not None},
            **_mapped(said_votes, "vote_columns", what),
        },
    )
    if item is not None and not isinstance(item, str):
        given = replace(given, item=",".join(item))
    for name in given.logits:
        if name in given.models:
            raise UsageError(f"two classifiers are named {quoted(name)}; rename one of them")
    if columns is None:
        return given
    if not isinstance(columns, ColumnOptions):
        mapped = isinstance(columns, Mapping)
        columns = _options_of(dict(columns)) if mapped else column_file(columns)[0]
    joined: dict[str, Any] = {}
    for name in (one.name for one in fields(ColumnOptions)):
        mine, theirs = getattr(given, name), getattr(columns, name)
        if isinstance(mine, Mapping):
            joined[name] = {**theirs, **mine}
        else:
            joined[name] = theirs if mine in (None, "", ()) and theirs is not None else mine
    return ColumnOptions(**joined)


def _divided(text: str, known: Collection[str]) -> tuple[str, str, str]:
    """The name, the equals sign and the columns behind it; names and columns may hold that, too."""
    at = text.find("=")
    while at >= 0:
        if {column.strip() for column in text[at + 1 :].split(",")} <= {*known}:
            return text[:at], "=", text[at + 1 :]
        at = text.find("=", at + 1)
    return text.partition("=")


def parse_model_options(
    texts: Iterable[str], known: Collection[str] = (), option: str = "--model"
) -> dict[str, tuple[str, ...]]:
    """Read `NAME=COL` (the probability of the positive class) or `NAME=COL,COL,...` texts."""
    one = "probability" if option == "--model" else "log-odds"
    what = f"COL ({one} of the positive class) or NAME=COL,COL,.. (one column per class)"
    pairs = parse_pairs(option, what, texts, known, several=True)
    return {name: _split(columns) for name, columns in pairs.items()}


def _split(columns: str) -> tuple[str, ...]:
    return tuple(column.strip() for column in columns.split(","))


def parse_task_options(texts: Sequence[str], known: Collection[str] = ()) -> dict[str, Any]:
    """Read every `--task` text, as arguments: tasks and their columns, or the column of tasks."""
    if len(texts) == 1 and (texts[0] in known or "=" not in texts[0]):
        return {"task": texts[0]}
    pairs = parse_pairs("--task", "LABEL,PREDICTION,..", texts, known)
    return {"tasks": {task: _split(columns) for task, columns in pairs.items()}}


def parse_pairs(
    option: str,
    what: str,
    texts: Iterable[str],
    known: Collection[str] = (),
    *,
    several: bool = False,
) -> dict[str, str]:
    """Read `NAME=VALUE` texts, as those of --hard; `several` columns are values."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in _divided(text, known))
        if not (name and equals and (all(_split(value)) if several else value)):
            mend = "; the level of intervals is --confidence-level" * (option == "--confidence")
            raise UsageError(f"{option} must be NAME={what}; got {quoted(text)}{mend}")
        if name in found:
            of = "tasks" if option == "--task" else "classifiers"
            raise UsageError(f"{option} names two {of} {quoted(name)}; rename one of them")
        found[name] = value
    return found


def column_file(
    path: str | Path, others: Collection[str] = ()
) -> tuple[ColumnOptions, dict[str, Any]]:
    """The options of a TOML file, and what it says by some other keys, which the caller checks."""
    with naming_file(str(path)):
        settings = parse_toml(side_text(path))
        settings = {key.replace("-", "_"): value for key, value in settings.items()}
        more = {key: settings.pop(key) for key in others if key in settings}
        return _options_of(settings, others), more


def _options_of(settings: Mapping[str, Any], others: Collection[str] = ()) -> ColumnOptions:
    """The options of a TOML file, or of a mapping with the same keys."""
    settings = {_OTHER_NAMES.get(key, key): value for key, value in settings.items()}
    known = (*_KEYS, *others)
    if isinstance(settings.get("cluster"), str):
        settings["cluster"] = [settings["cluster"]]
    for key in settings:
        if key not in known:
            raise InputError(
                f"unknown key {quoted(key)}; {did_you_mean(key, known)}the keys are "
                f"{', '.join(known)}"
            )
    for key, value in settings.items():
        kind = SAID[key][0] if key in SAID else "table" if key == "votes" else "text"
        if kind == "classes" and hasattr(value, "tolist"):  # model.classes_ of scikit-learn
            settings[key] = value = value.tolist()
        if kind == "text" and key in _KEYS and (not isinstance(value, str) or not value):
            raise InputError(f"`{key}` must be the name of a column in quotes; got {quoted(value)}")
        if kind in ("classes", "texts") and not isinstance(value, list | tuple):
            raise InputError(f'`{key}` must be a list like ["no", "yes"]; got {quoted(value)}')
        if kind in ("several", "one", "means", "table") and not isinstance(value, Mapping):
            raise InputError(f'`{key}` must be a table: [{key}] NAME = "COL"; got {quoted(value)}')
    named = {key: value for key, value in settings.items() if key in _KEYS}
    try:
        return column_options(vote_columns=named.pop("votes", None), **named)
    except UsageError as error:
        tables = (value for value in settings.values() if isinstance(value, Mapping))
        dotted = any(isinstance(one, Mapping) for table in tables for one in table.values())
        mend = "; put names that hold a dot in quotes" if dotted else ""
        raise InputError(f"{error}{mend}") from None


def _mapped(
    columns: Any, name: str, what: str = "names to columns", *, several: bool = False
) -> dict[str, Any]:
    """Names and the column of each, or `several`, checked."""
    if not isinstance(columns, Mapping):
        raise UsageError(f"`{name}` must map {what}; got {quoted(columns)}")
    for model, said in columns.items():
        each = said if several and isinstance(said, list | tuple) else [said]
        if not each or not all(isinstance(column, str) and column for column in each):
            of = "names of columns" if several else "the name of a column"
            raise UsageError(f"`{name}` must map {quoted(model)} to {of}; got {quoted(said)}")
        if len(set(each)) < len(each):
            raise UsageError(
                f"`{name}` must map {quoted(model)} to different columns; got {listed(each)}"
            )
    if not several:
        return {str(model): column for model, column in columns.items()}
    return {str(m): (of,) if isinstance(of, str) else tuple(of) for m, of in columns.items()}
